"""Source 000, "Pod QoS, Quality of Service Classes": its case table, its manifests, its scores."""

from __future__ import annotations

import textwrap

import pytest

from podqos.model.pod import QOSClass
from podqos.qos.classes import classify
from podqos.qos.oom import OOMRule, oom_scores

GIB = 2**30
NODE_BYTES = 64 * GIB

BEST_EFFORT, BURSTABLE, GUARANTEED = QOSClass.BEST_EFFORT, QOSClass.BURSTABLE, QOSClass.GUARANTEED

# How the table writes a pair of request and limit, as amounts of cpu and memory.
CPU = {"-": (None, None), "request < limit": ("250m", "500m"), "request = limit": ("500m", "500m")}
MEMORY = {"-": (None, None), "request < limit": ("128Mi", "256Mi"), "request = limit": ("128Mi", "128Mi")}


def _container(cpu: tuple[str | None, str | None], memory: tuple[str | None, str | None]) -> str:
    lines = ["containers:", "- name: app", "  resources:"]
    for side, amounts in (("requests", (cpu[0], memory[0])), ("limits", (cpu[1], memory[1]))):
        stated = [f"      {name}: {amount}" for name, amount in zip(("cpu", "memory"), amounts, strict=True) if amount]
        lines += [f"    {side}:", *stated] if stated else []
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        ("-", "-", BEST_EFFORT),
        ("-", "request < limit", BURSTABLE),
        ("-", "request = limit", BURSTABLE),
        ("request < limit", "-", BURSTABLE),
        ("request < limit", "request < limit", BURSTABLE),
        ("request < limit", "request = limit", BURSTABLE),
        ("request = limit", "request < limit", BURSTABLE),
        ("request = limit", "request = limit", GUARANTEED),
        pytest.param(
            "request = limit", "-", BURSTABLE, id="request = limit---Burstable (the row the table leaves out)"
        ),
    ],
)
def test_case_table(admitted, cpu, memory, expected):
    assert classify(admitted(_container(CPU[cpu], MEMORY[memory]))).qos_class is expected


ONLY_REQUESTS = _container(("500m", None), ("128Mi", None))
ONLY_ONE_LIMIT = _container((None, "500m"), (None, None))
ONLY_LIMITS = _container((None, "500m"), (None, "128Mi"))


@pytest.mark.parametrize("fragment", [ONLY_REQUESTS, ONLY_ONE_LIMIT], ids=["only requests", "only a cpu limit"])
def test_only_one_of_request_and_limit_is_burstable(admitted, fragment):
    assert classify(admitted(fragment)).qos_class is BURSTABLE


def test_only_limits_are_burstable_as_written_but_guaranteed_in_the_cluster(written, admitted):
    """The document calls every container with one side alone Burstable; with both limits, requests follow them."""
    assert classify(written(ONLY_LIMITS)).qos_class is BURSTABLE
    assert classify(admitted(ONLY_LIMITS)).qos_class is GUARANTEED


# The document's four manifests. Three of them misspell `requests` and `limits`.

WITHOUT_RESOURCES = """
    containers:
      - name: app
        image: busybox
      - name: fluentd
        image: fluent/fluentd
"""
MEMORY_DIFFERS = """
    containers:
      - name: app
        image: busybox
        resources:
          request:
            memory: "128Mi"
            cpu: "500m"
          limit:
            memory: "256Mi"
            cpu: "500m"
      - name: fluentd
        image: fluent/fluentd
        resources:
          request:
            memory: "128Mi"
            cpu: "500m"
          limit:
            memory: "128Mi"
            cpu: "500m"
"""
SIDECAR_CPU_DIFFERS = """
    containers:
      - name: app
        image: busybox
        resources:
          request:
            memory: "128Mi"
            cpu: "500m"
          limit:
            memory: "128Mi"
            cpu: "500m"
      - name: fluentd
        image: fluent/fluentd
        resources:
          request:
            memory: "128Mi"
            cpu: "200m"
          limit:
            memory: "128Mi"
            cpu: "500m"
"""
ALL_EQUAL = """
    containers:
      - name: app
        image: busybox
        resources:
          request:
            memory: "128Mi"
            cpu: "500m"
          limit:
            memory: "128Mi"
            cpu: "500m"
      - name: fluentd
        image: fluent/fluentd
        resources:
          request:
            memory: "128Mi"
            cpu: "200m"
          limit:
            memory: "128Mi"
            cpu: "200m"
"""
MISSPELT = pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        pytest.param(MEMORY_DIFFERS, BURSTABLE, id="Burstable: memory of the app differs"),
        pytest.param(SIDECAR_CPU_DIFFERS, BURSTABLE, id="Burstable: cpu of the sidecar differs"),
        pytest.param(ALL_EQUAL, GUARANTEED, id="Guaranteed"),
    ],
)


def _spelt_right(fragment: str) -> str:
    return fragment.replace("request:", "requests:").replace("limit:", "limits:")


def test_example_best_effort(admitted):
    assert classify(admitted(WITHOUT_RESOURCES)).qos_class is BEST_EFFORT


@MISSPELT
def test_examples_as_written_are_refused_with_the_right_spelling(refused, fragment, expected):
    """Nothing here may turn into a silent BestEffort."""
    said = refused(fragment)

    suggestions = ["requests", "limits"] * 2
    assert [line.partition(": ")[0] for line in said] == [f"example.yaml:{line}:9" for line in (10, 13, 19, 22)]
    assert all(f'did you mean "{right}"?' in line for right, line in zip(suggestions, said, strict=True))


@MISSPELT
def test_examples_spelt_right_have_the_class_the_document_gives_them(admitted, fragment, expected):
    assert classify(admitted(_spelt_right(fragment))).qos_class is expected


def test_every_sidecar_must_match_for_guaranteed(admitted):
    decided = classify(admitted(_spelt_right(SIDECAR_CPU_DIFFERS)))

    (cpu,) = decided.unequal
    assert cpu.resource == "cpu"
    assert [each.place.container for each in cpu.differences] == ["fluentd"]


# The manifests as the document prints them: no kind, between the dots that end a document.


def _as_printed(fragment: str, indentation: int = 0) -> str:
    spec = "spec:\n" + textwrap.indent(textwrap.dedent(fragment).lstrip(), "  ")
    return f"...\n{textwrap.indent(spec, ' ' * indentation)}...\n"


NOTICE = "example.yaml:2:{column}: warning: no kind: treated as Pod example (add apiVersion: v1 and kind: Pod)\n"


def test_the_snippet_as_printed_is_taken_for_a_pod_and_that_is_said(command):
    """The first of them is indented, as if cut out of a template."""
    code, out, err = command("explain", _as_printed(WITHOUT_RESOURCES, indentation=4), "-o", "csv")

    assert (code, err) == (0, NOTICE.format(column=5))
    assert out.splitlines()[1:] == ["default,example,app,BestEffort,1000", "default,example,fluentd,BestEffort,1000"]


@MISSPELT
def test_misspelt_keys_of_a_snippet_are_errors_at_their_place(command, fragment, expected):
    code, out, err = command("explain", _as_printed(fragment), "-o", "csv")

    first, *errors, summary = err.splitlines()
    assert (code, f"{first}\n", summary) == (2, NOTICE.format(column=1), "no pods explained; 4 errors")
    assert [line.partition(": ")[0] for line in errors] == [f"example.yaml:{line}:9" for line in (7, 10, 16, 19)]
    assert ['did you mean "requests"?' in line for line in errors] == [True, False, True, False]
    assert out.splitlines() == ["namespace,pod,container,class,oom_score_adj"]


@MISSPELT
@pytest.mark.parametrize("name", ["explain", "check", "admit", "cpu", "place", "rank"])
def test_every_command_reads_a_snippet_that_is_spelt_right(command, tmp_path, name, fragment, expected):
    (tmp_path / "usage.csv").write_text("pod,container,memory\nexample,app,64Mi\nexample,fluentd,64Mi\n")
    options = {
        "place": ["--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi"],
        "rank": ["--usage", str(tmp_path / "usage.csv"), "--node-memory", "8Gi"],
        "check": ["--fail-on", "never", "-v"],
    }

    code, out, err = command(name, _as_printed(_spelt_right(fragment)), *options.get(name, []))

    assert (code, err) == (0, NOTICE.format(column=1))
    assert "example" in out
    assert name in {"place", "check"} or expected.value in out


def test_a_document_without_a_kind_that_is_no_pod_is_left_out_as_before(command):
    code, _, err = command("explain", "spec:\n  ports: [80]\n")

    assert (code, err) == (2, "no pods explained; skipped 1 object without pods\n")


# The table of oom_score_adj values.


def _burstable(memory: str) -> str:
    return f"containers: [{{name: app, resources: {{requests: {{memory: {memory}}}}}}}]"


def _score(pod, qos_class):
    (score,) = oom_scores(pod, qos_class, NODE_BYTES)
    return score


def test_guaranteed_is_fixed_at_minus_997(admitted):
    assert {s.value for s in oom_scores(admitted(_spelt_right(ALL_EQUAL)), GUARANTEED, NODE_BYTES)} == {-997}


def test_best_effort_is_fixed_at_1000(admitted):
    assert {s.value for s in oom_scores(admitted(WITHOUT_RESOURCES), BEST_EFFORT, NODE_BYTES)} == {1000}


@pytest.mark.parametrize(
    ("memory", "value", "rule"),
    [
        ("8Gi", 875, OOMRule.BURSTABLE),
        ("32Gi", 500, OOMRule.BURSTABLE),
        ("1Mi", 999, OOMRule.CEILING),
        ("64Gi", 3, OOMRule.FLOOR),
    ],
)
def test_burstable_follows_its_memory_request(admitted, memory, value, rule):
    """The document's lower bound of 2 is that of versions up to 1.19; it goes with -998 and not with -997."""
    score = _score(admitted(_burstable(memory)), BURSTABLE)

    assert (score.value, score.rule) == (value, rule)


def test_the_larger_the_request_the_lower_the_score(admitted):
    values = [_score(admitted(_burstable(f"{gib}Gi")), BURSTABLE).value for gib in (1, 2, 4, 8, 16, 32, 64)]

    assert values == sorted(values, reverse=True)
    assert len(set(values)) == len(values)


def test_a_burstable_pod_that_requests_next_to_nothing_is_one_step_from_best_effort(admitted):
    assert _score(admitted(_burstable("1")), BURSTABLE).value == 999
