"""``podqos check --fix`` over a corpus of manifests in many styles, and what it does when it may not write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.reading import written_files

CORPUS = Path(__file__).parents[1] / "manifest" / "fix_corpus"
LIMITED = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: c, image: i, resources: {limits: {memory: 1Gi}}}
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a repository of its own, so that no configuration above it is found."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def findings(capsys: pytest.CaptureFixture[str], path: str) -> list[dict]:
    main(["check", "-o", "json", "-f", path])
    return json.loads(capsys.readouterr().out)["items"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_corpus_is_mended_once_and_what_was_mended_is_not_found_again(capsys):
    folder = Path("corpus")
    shutil.copytree(CORPUS, folder, ignore=shutil.ignore_patterns("expected"))
    original = contents(folder)
    before = findings(capsys, "corpus")
    assert main(["check", "--fix", "-f", "corpus"]) == 2  # some of it cannot be read
    err = capsys.readouterr().err
    mended = contents(folder)
    changed = {name for name in mended if mended[name] != original[name]}
    assert len(changed) >= 10
    after = findings(capsys, "corpus")
    assert len(after) < len(before)
    for finding in after:
        if finding["patch"]["isComplete"] and not finding["patch"]["onRequest"]:
            assert f"{finding['source']}: not fixed: {finding['check']} " in err
    main(["check", "--fix", "-f", "corpus"])
    assert contents(folder) == mended


def test_a_file_that_cannot_be_written_is_said_and_the_others_are_written(capsys, monkeypatch):
    for name in ("a.yaml", "b.yaml"):
        Path(name).write_text(LIMITED)
    monkeypatch.setattr(written_files.os, "access", lambda path, _mode: not path.endswith("a.yaml"))
    assert main(["check", "--fix", "-f", "a.yaml", "-f", "b.yaml"]) == 3
    err = capsys.readouterr().err
    assert "a.yaml: not written: it is read-only (make it writable)" in err
    assert "a.yaml: fixed" not in err
    assert "b.yaml: fixed 1 finding" in err
    assert Path("a.yaml").read_text() == LIMITED
    assert "requests: {memory: 1Gi}" in Path("b.yaml").read_text()


FAR = "requests: {cpu: 100m, memory: REQUEST}, limits: {memory: LIMIT, ephemeral-storage: 1Gi}"
BOUNDS = """\
---
apiVersion: v1
kind: LimitRange
metadata: {name: bounds, namespace: default}
spec: {limits: [{type: Container, ITEM}]}
"""


def pod(resources: str) -> str:
    return LIMITED.replace("limits: {memory: 1Gi}", resources)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        pytest.param("PQ105", pod(FAR.replace("REQUEST", "1Mi").replace("LIMIT", "8Gi")), id="a rule of thumb"),
        pytest.param(
            "PQ201", pod("") + BOUNDS.replace("ITEM", "default: {memory: 1Gi}"), id="the class of a LimitRange"
        ),
        pytest.param(
            "PQ202",
            pod("requests: {cpu: 1, memory: 1Gi}") + BOUNDS.replace("ITEM", "default: {memory: 2Gi}"),
            id="the limit of a LimitRange",
        ),
        pytest.param(
            "PQ203",
            pod("requests: {cpu: 1, memory: 1Gi}") + BOUNDS.replace("ITEM", "default: {memory: 512Mi}"),
            id="the bounds of a LimitRange",
        ),
    ],
)
def test_fix_leaves_rules_of_thumb_and_policies_of_others_alone_until_the_check_is_named(capsys, check, text):
    Path("web.yaml").write_text(text)
    main(["check", "--fix", "web.yaml"])
    assert Path("web.yaml").read_text() == text
    assert "fixable with --fix" not in capsys.readouterr().out
    main(["check", "web.yaml", "--patch", "kubectl"])
    assert "memory" not in capsys.readouterr().out
    assert check in [each["check"] for each in findings(capsys, "web.yaml")]

    main(["check", "--only", check, "web.yaml"])
    assert "1 finding is fixable with --fix" in capsys.readouterr().out
    main(["check", "--fix", "--only", check, "web.yaml"])
    capsys.readouterr()
    assert Path("web.yaml").read_text() != text
    assert check not in [each["check"] for each in findings(capsys, "web.yaml")]


@pytest.mark.parametrize(
    ("limit", "written"),
    [
        ("512M", "128M"),
        ("2G", "500M"),
        ("1Gi", "256Mi"),
        ("4Gi", "1Gi"),
        ("1Ti", "256Gi"),
        ("1001M", "251M"),
        ("1001Mi", "251Mi"),
        ("536870912", "135M"),
    ],
)
def test_fix_keeps_the_family_of_units(limit, written):
    Path("web.yaml").write_text(pod(FAR.replace("REQUEST", "2Mi").replace("LIMIT", limit)))
    main(["check", "--fix", "--only", "PQ105", "web.yaml"])
    assert f"requests: {{cpu: 100m, memory: {written}}}" in Path("web.yaml").read_text()


def test_only_takes_names_and_several_and_refuses_what_is_no_check(capsys):
    Path("web.yaml").write_text(pod(FAR.replace("REQUEST", "1Mi").replace("LIMIT", "8Gi").replace("ephemeral", "x")))
    main(["check", "--only", "memory-request-far-below-limit,PQ108", "web.yaml", "-o", "json"])
    assert {each["check"] for each in json.loads(capsys.readouterr().out)["items"]} <= {"PQ105", "PQ108"}
    assert main(["check", "--only", "PQ9", "web.yaml"]) == 2
    assert capsys.readouterr().err.startswith("podqos: error: --only: no check 'PQ9'")


def test_a_null_is_no_zero_and_a_request_beside_it_is_fixed_by_removing_it(capsys):
    Path("null.yaml").write_text(pod("requests: {memory: 1Gi}, limits: {cpu: null, memory: 1Gi}"))
    assert "PQ116" not in [each["check"] for each in findings(capsys, "null.yaml")]
    Path("zero.yaml").write_text(pod("requests: {memory: 1Gi}, limits: {cpu: 0, memory: 1Gi}"))
    assert "PQ116" in [each["check"] for each in findings(capsys, "zero.yaml")]
    Path("both.yaml").write_text(pod("requests: {cpu: 0, memory: 1Gi}, limits: {cpu: null, memory: 1Gi}"))
    assert [each["path"] for each in findings(capsys, "both.yaml") if each["check"] == "PQ116"] == [
        "spec.containers[0].resources.requests.cpu"
    ]
    Path("above.yaml").write_text(pod("requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: null, memory: 1Gi}"))
    (above,) = [each for each in findings(capsys, "above.yaml") if each["check"] == "PQ111"]
    assert above["reason"] == "c requests 100m cpu, more than its limit (null counts as zero)"
    main(["check", "--fix", "above.yaml"])
    assert "limits: {memory: 1Gi}" in Path("above.yaml").read_text()
    assert "cpu: 100m" in Path("above.yaml").read_text()


UNITS = """\
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  containers:
    - name: c
      image: i
      resources:
        requests: {{{0}}}
        limits: {{{1}}}
"""


@pytest.mark.parametrize(
    ("requests", "limits", "fixed_requests", "fixed_limits"),
    [
        ("cpu: 500M", "cpu: 1", "cpu: 500m", "cpu: 1"),
        ("cpu: 500M", "cpu: 500M", "cpu: 500m", "cpu: 500m"),
        ("cpu: 100Mi", "cpu: 200Mi", "cpu: 100m", "cpu: 200m"),
        ("memory: 512m", "memory: 512m", "memory: 512Mi", "memory: 512Mi"),
        ("memory: 512Mi", "memory: 512m", "memory: 512Mi", "memory: 512Mi"),
        ("memory: 256", "memory: 512", "memory: 256Mi", "memory: 512Mi"),
        ("cpu: 250M, memory: 128m", "cpu: 1, memory: 128m", "cpu: 250m, memory: 128Mi", "cpu: 1, memory: 128Mi"),
        ("memory: 4", "memory: 4", None, None),
        ("memory: 1g", "memory: 1g", None, None),
        ("cpu: 500", "cpu: 500", None, None),
        ("cpu: 500000", "cpu: 500000", None, None),
        ("cpu: 500000m", "cpu: 500000m", None, None),
        ("cpu: 512Mi, memory: 500m", "cpu: 512Mi, memory: 500m", None, None),
        ("memory: 64Ti", "memory: 64Ti", None, None),
    ],
)
def test_a_wrong_unit_is_fixed_once_where_it_is_plain_and_otherwise_found_until_a_person_fixes_it(
    capsys, requests, limits, fixed_requests, fixed_limits
):
    Path("pod.yaml").write_text(UNITS.format(requests, limits))
    plain = fixed_requests is not None
    after = UNITS.format(fixed_requests, fixed_limits) if plain else UNITS.format(requests, limits)
    for _ in range(2):
        main(["check", "--fix", "pod.yaml"])
        assert Path("pod.yaml").read_text() == after
        capsys.readouterr()
    code = main(["check", "pod.yaml", "--fail-on", "error"])
    said = "".join(capsys.readouterr())
    assert ("PQ117" in said or "did you mean 1Gi or 1G?" in said) is not plain
    assert (code != 0) is not plain


NEARLY = """\
apiVersion: v1
kind: Pod
metadata: {{name: p, labels: {{app: p}}}}
spec:
  containers:
  - name: main
    image: i
    resources: {{limits: {{cpu: 1, memory: 4Gi, ephemeral-storage: 1Gi}}, requests: {{memory: 4Gi}}}}
{}"""
SIDECAR = (
    "  - {name: NAME, image: i, resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {ephemeral-storage: 1Gi}}}\n"
)


def test_the_fix_of_the_one_container_names_throttling_and_the_number_to_look_up(capsys):
    Path("web.yaml").write_text(NEARLY.format(SIDECAR.replace("NAME", "proxy")))
    main(["check", "web.yaml"])
    out = capsys.readouterr().out
    assert "cost proxy is throttled at its cpu limit of 50m, even on an idle node" in out
    assert "proxy is OOM-killed at its memory limit of 64Mi" in out
    assert "look up first: the peak memory usage of proxy (now: kubectl top pod -n default --containers)" in out
    main(["check", "web.yaml", "--fix", "--only", "PQ101"])
    assert "proxy is throttled at its cpu limit of 50m" in capsys.readouterr().err
    assert "limits: {ephemeral-storage: 1Gi, cpu: 50m, memory: 64Mi}" in Path("web.yaml").read_text()


def test_limits_that_an_injector_would_be_told_to_set_cost_and_are_not_written_unasked(capsys):
    asked = "annotations: {config.linkerd.io/proxy-cpu-request: 100m, config.linkerd.io/proxy-memory-request: 64Mi}"
    text = NEARLY.format("").replace("labels: {app: p}", f"labels: {{app: p}}, {asked}")
    Path("web.yaml").write_text(text)
    Path(".podqos.yaml").write_text("inject: [linkerd]\n")
    main(["check", "web.yaml", "--fix"])
    out = capsys.readouterr().out
    assert "fix  metadata.annotations[config.linkerd.io/proxy-cpu-limit]: 100m" in out
    assert "cost linkerd-proxy is throttled at its cpu limit of 100m, even on an idle node" in out
    assert Path("web.yaml").read_text() == text
    main(["check", "web.yaml", "--fix", "--only", "PQ205"])
    assert "config.linkerd.io/proxy-cpu-limit: 100m" in Path("web.yaml").read_text()


def test_several_containers_get_a_cpu_limit_only_where_that_is_asked_for(capsys):
    text = NEARLY.format(SIDECAR.replace("NAME", "proxy") + SIDECAR.replace("NAME", "agent"))
    Path("web.yaml").write_text(text)
    main(["check", "web.yaml", "--fix"])
    assert Path("web.yaml").read_text() == text
    assert "fixable" not in capsys.readouterr().out
    main(["check", "web.yaml", "--fix", "--only", "PQ101"])
    assert Path("web.yaml").read_text().count("cpu: 50m, memory: 64Mi") == 4


def test_guaranteed_is_a_choice_with_what_it_throttles_and_reserves(capsys):
    served = (
        "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: p}\nspec: {selector: {app: p}, ports: [{port: 80}]}\n"
    )
    small = SIDECAR.replace("NAME", "proxy").replace("limits: {", "limits: {memory: 128Mi, ")
    text = NEARLY.format(small).replace("memory: 4Gi}}", "cpu: 500m, memory: 2Gi}}") + served
    Path("web.yaml").write_text(text)
    (item,) = [each for each in findings(capsys, "web.yaml") if each["check"] == "PQ114"]
    (way,) = item["patch"]["alternatives"]
    assert way["name"] == "guaranteed"
    assert [(cost["kind"], cost["container"], cost["amount"]) for cost in way["costs"]] == [
        ("throttling", "proxy", "50m"),
        ("reservation", "", "500m"),
        ("reservation", "", "2112Mi"),
    ]
    main(["check", "web.yaml"])
    assert "or   make the pod Guaranteed:" in capsys.readouterr().out
    main(["check", "web.yaml", "--fix"])
    assert Path("web.yaml").read_text() == text


def test_no_cpu_limit_comes_in_by_way_of_a_limit_range(capsys):
    text = pod("requests: {cpu: 0, memory: 1Gi}, limits: {cpu: 0, memory: 1Gi}")
    Path("alone.yaml").write_text(text)
    main(["check", "alone.yaml", "--fix"])
    assert "cpu" not in Path("alone.yaml").read_text()
    text += BOUNDS.replace("ITEM", "default: {cpu: 1}")
    Path("bound.yaml").write_text(text)
    main(["check", "bound.yaml", "--fix"])
    assert Path("bound.yaml").read_text() == text
