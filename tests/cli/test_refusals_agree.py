"""Bad input × every command that reads it: what becomes of it follows from what is asked, not from who asks.

A new command takes part here: give it a row in ``READERS``, and in ``KUBELET_READERS`` if it takes
``--kubelet-config``, or say in ``NOT_READERS`` why it reads no manifests. ``admission.relevance`` says which field
decides which question.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from library import clusters
from podqos.admission.relevance import Question
from podqos.cli.command_list import COMMANDS, parser_of
from podqos.cli.main import main
from podqos.manifest.encoding import SLOT

MANIFEST, SCENARIO, KUBELET = "bad.yaml", "scenario.yaml", "kubelet.yaml"
# What each command is asked about the pods of MANIFEST, and how; None: something that no error of theirs decides.
READERS: dict[str, tuple[Question | None, list[str]]] = {
    "explain": (Question.CLASS, ["-f", MANIFEST]),
    "check": (Question.CLASS, ["-f", MANIFEST]),
    "policy": (None, ["test", "-f", "policy.yaml", "-f", MANIFEST]),
    "drift": (Question.SURVIVAL, [MANIFEST, MANIFEST]),
    "advise": (Question.SURVIVAL, ["-f", MANIFEST]),
    "rank": (Question.SURVIVAL, ["-f", MANIFEST]),
    "cpu": (Question.SURVIVAL, ["-f", MANIFEST]),
    "forecast": (Question.SURVIVAL, ["-f", MANIFEST, "--growing", "good", "--rate", "1Gi/s"]),
    "blast": (Question.SURVIVAL, ["-f", MANIFEST]),
    "ui": (Question.SURVIVAL, [MANIFEST, "--html", "page.html"]),
    "place": (Question.PLACEMENT, ["-f", MANIFEST, "--nodes", "1", "--node-capacity", "cpu=8,memory=32Gi"]),
    "simulate": (Question.PLACEMENT, [SCENARIO]),
    "scenario": (Question.PLACEMENT, ["validate", SCENARIO]),
    "admit": (Question.ADMISSION, ["-f", MANIFEST]),
}
NOT_READERS = {
    "thresholds": "reads a kubelet's settings and no pods",
    "snapshot": "reads a cluster, whose API server has judged every pod",
    "overview": "likewise, or a snapshot of one",
    "exporter": "likewise",
    "webhook": "is asked by an API server about pods that it has read",
    "node": "runs pods: it admits them as an API server does (tests/host)",
    "rehearse": "runs a scenario on this kernel, and reads it as simulate does",
    "guard": "stands beside a kubelet, and reads the API server's pods",
    "autopsy": "explains deaths; manifests only tell it names and sizes",
    "demo": "shows what is shipped",
    "eval": "takes values, not manifests",
    "completion": "reads nothing",
    "schema": "reads nothing",
    "help": "reads nothing",
}

GOOD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: good, annotations: {podqos.dev/restart-cost: low, podqos.dev/latency-sensitive: "false"}}
spec:
  containers:
  - {name: app, image: app, resources: {requests: {cpu: 100m, memory: 1Gi}}}
"""


def _pod(spec: str = "", container: str = "name: app, image: app", resources: str = "{requests: {memory: 1Gi}}") -> str:
    return (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec:\n"
        f"  {spec or 'hostNetwork: false'}\n  containers:\n  - {{{container}, resources: {resources}}}\n"
    )


def _deployment(spec: str = "", metadata: str = "{}") -> str:
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: bad}}\nspec:\n  replicas: 1\n{spec}"
        f"  template:\n    metadata: {metadata}\n    spec: {{containers: [{{name: app, image: app}}]}}\n"
    )


# What is wrong, the field at fault, and the first question that it decides: of those before it, it is a warning.
BAD: dict[str, tuple[str, str, Question]] = {
    "no image": (_pod(container="name: app"), "image", Question.ADMISSION),
    "no name": (_pod(container="image: app"), "containers[0].name", Question.ADMISSION),
    "volume name": (_pod("volumes: [{name: A_b, emptyDir: {}}]"), "volumes[0].name", Question.ADMISSION),
    "no selector": (_deployment(), "spec.selector", Question.ADMISSION),
    "selects others": (
        _deployment("  selector: {matchLabels: {app: other}}\n", "{labels: {app: bad}}"),
        "spec.template.metadata.labels",
        Question.ADMISSION,
    ),
    "selects all": (_deployment("  selector: {}\n", "{labels: {app: bad}}"), "spec.selector", Question.ADMISSION),
    "toleration": (_pod("tolerations: [{key: a, operator: Like}]"), "tolerations[0].operator", Question.PLACEMENT),
    "bound": (
        _pod(
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: a, operator: Gt, values: [b, c]}]}]}}}"
        ),
        "affinity",
        Question.PLACEMENT,
    ),
    "restart policy": (_pod("restartPolicy: Sometimes"), "restartPolicy", Question.SURVIVAL),
    "request above limit": (
        _pod(resources="{requests: {memory: 2Gi}, limits: {memory: 1Gi}}"),
        "resources",
        Question.CLASS,
    ),
}


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """Return a directory with what commands need beside what they are asked about."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("podqos.reading.built_page.built_viewer", lambda: f"<html>{SLOT}</html>")
    (tmp_path / SCENARIO).write_text(
        "apiVersion: podqos.dev/v1alpha1\nkind: Scenario\nmetadata: {name: bad}\nspec:\n  duration: 10s\n"
        f"  nodes: [{{name: node-1, capacity: {{cpu: 8, memory: 32Gi}}, kubelet: {KUBELET}}}]\n"
        f"  manifests: [{MANIFEST}]\n"
    )
    (tmp_path / KUBELET).write_text(_kubelet("maxPods: 110"))
    (tmp_path / "policy.yaml").write_text(
        "apiVersion: podqos.dev/v1alpha1\nkind: Policy\nmetadata: {name: any}\n"
        "spec: {rules: [{name: any, require: {requests: [memory]}, action: Audit}]}\n"
    )
    return tmp_path


def _kubelet(line: str) -> str:
    return f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{line}\n"


def podqos(capsys, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    return code, *capsys.readouterr()


def test_every_command_reads_bad_manifests_here_or_says_why_not():
    assert sorted({*READERS, *NOT_READERS}) == sorted(COMMANDS)
    assert not {*READERS} & {*NOT_READERS}


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("bad", BAD)
def test_what_decides_the_answer_is_an_error_and_what_does_not_a_warning(bad, command, place, capsys):
    text, field, decides = BAD[bad]
    question, words = READERS[command]
    (place / MANIFEST).write_text(text + GOOD)
    code, out, err = podqos(capsys, command, *words)
    said = [line for line in err.splitlines() if field in line]

    if command == "admit":
        assert code == 1
        assert field in out
        assert "rejected" in out
    elif command == "check":
        assert code == 1
        assert ("error PQ11" if decides is Question.CLASS else "error PQ127") in out
        assert field in out
    elif question is None or decides > question:
        assert code in {0, 1}, err
        assert len(said) == 1, err
        assert "warning: " in said[0]
        assert "the API server rejects it" in said[0]
        assert not [line for line in err.splitlines() if "error: " in line]
    else:
        assert code == 2
        assert [line for line in said if "error: " in line], err


def test_a_pod_that_is_warned_about_has_its_place_in_every_answer(place, capsys):
    (place / MANIFEST).write_text(BAD["no image"][0] + GOOD)
    for command, (question, words) in READERS.items():
        if question is Question.ADMISSION or command in {"advise", "policy", "scenario", "ui", "drift", "check"}:
            continue  # which name the workloads that something is known, or wrong, about
        asked = ["bad" if word == "good" else word for word in words]
        out = podqos(capsys, command, *asked, *(["-o", "json"] if command != "simulate" else []))[1]
        assert "bad" in out, command
    assert "default/bad" in (podqos(capsys, *("ui", *READERS["ui"][1])) and (place / "page.html").read_text())


def test_a_part_of_a_manifest_is_not_held_to_what_it_leaves_out(place, capsys):
    (place / MANIFEST).write_text("spec:\n  containers:\n  - {name: app, resources: {requests: {memory: 1Gi}}}\n")
    for command in ("explain", "rank", "check"):
        assert "rejects" not in podqos(capsys, command, "-f", MANIFEST)[2]


def test_a_container_without_a_name_is_called_by_its_place(place, capsys):
    (place / MANIFEST).write_text(BAD["no name"][0])
    for command in ("explain", "rank", "check"):
        assert "containers[0]" in podqos(capsys, command, "-f", MANIFEST)[1]


def test_what_policies_refuse_is_not_hidden_by_what_does_not_matter(place, capsys):
    limits = "kind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: Pod, max: {memory: 1Mi}}]}\n"
    (place / MANIFEST).write_text(f"{BAD['no image'][0]}---\napiVersion: v1\n{limits}")
    assert "denied" in podqos(capsys, "explain", "-f", MANIFEST)[1]
    assert "PQ203" in podqos(capsys, "check", "-f", MANIFEST)[1]
    assert "maximum memory usage per Pod" in podqos(capsys, "rank", "-f", MANIFEST)[2]


# ---- kubelets that do not start --------------------------------------------------------------------------------------

_GOOD_POD = ["-f", MANIFEST]
_OPTION = ["--kubelet-config", KUBELET]
_NODES = ["--nodes", "1", "--node-capacity", "cpu=8,memory=32Gi"]
KUBELET_READERS: dict[str, list[str]] = {
    "explain": [*_GOOD_POD, *_OPTION],
    "check": [*_GOOD_POD, *_OPTION],
    "drift": [MANIFEST, MANIFEST, *_OPTION],
    "advise": [*_GOOD_POD, *_OPTION],
    "rank": [*_GOOD_POD, *_OPTION],
    "place": [*_GOOD_POD, *_NODES, *_OPTION],
    "cpu": [*_GOOD_POD, *_OPTION],
    "forecast": [*_GOOD_POD, "--growing", "good", *_OPTION],
    "blast": [*_GOOD_POD, *_OPTION],
    "thresholds": [KUBELET],
    "ui": [MANIFEST, KUBELET, "--html", "page.html"],
    "simulate": [SCENARIO],
    "scenario": ["validate", SCENARIO],
}
NOT_KUBELET_READERS = {
    "autopsy": "the kubelet did start: it killed something",
    "node": "tests/host/node: a node of podqos' own",
    "guard": "stands beside a kubelet that runs",
}
BESIDE_FILES = {"rank", "forecast", "blast", "place"}
"""The commands that find a kubelet's settings among the files as well."""
NOT_STARTING = {
    "cgroups": "cgroupsPerQOS: false",
    "reserved": "systemReserved: {memory: 100Gi}",
    "soft": "evictionSoft: {memory.available: 1Gi}",
    "static": "cpuManagerPolicy: static",
}


def test_every_command_that_takes_a_kubelet_refuses_one_that_does_not_start():
    with_option = {
        name
        for name in COMMANDS
        if any("--kubelet-config" in action.option_strings for action in parser_of(name)[0]._actions)
    }
    assert with_option <= {*KUBELET_READERS, *NOT_KUBELET_READERS}


@pytest.mark.parametrize(
    ("setting", "command"),
    [
        (setting, command)
        for setting in NOT_STARTING
        for command in KUBELET_READERS
        if (setting, command) != ("reserved", "cpu")  # which knows the cores of a node and not its memory
    ],
)
def test_a_kubelet_that_does_not_start_is_an_error(setting, command, place, capsys):
    (place / MANIFEST).write_text(GOOD)
    (place / KUBELET).write_text(_kubelet(NOT_STARTING[setting]))
    _refuses(capsys, command, KUBELET_READERS[command])


@pytest.mark.parametrize("command", sorted(BESIDE_FILES))
@pytest.mark.parametrize("setting", NOT_STARTING)
def test_so_it_is_where_its_file_is_among_the_manifests(setting, command, place, capsys):
    (place / MANIFEST).write_text(GOOD)
    (place / KUBELET).write_text(_kubelet(NOT_STARTING[setting]))
    words = [word for word in KUBELET_READERS[command] if word not in _OPTION]
    _refuses(capsys, command, [*words, "-f", KUBELET])


def _refuses(capsys, command: str, words: list[str]) -> None:
    code, out, err = podqos(capsys, command, *words)
    if command == "check":
        assert code == 1
        assert "error PQ4" in out
    else:
        assert code == 2, out
        assert "does not start" in err


def test_check_removes_what_keeps_a_kubelet_from_starting(place, capsys):
    (place / KUBELET).write_text(_kubelet("kubeReserved: {memory: 1Gi}\ncgroupsPerQOS: false"))
    podqos(capsys, "check", "-f", KUBELET, "--fix")
    assert "cgroupsPerQOS" not in (place / KUBELET).read_text()


# ---- nodes of a cluster ----------------------------------------------------------------------------------------------


def _snapshot(path: Path, *, change: Callable[[dict], None]) -> None:
    """Write the snapshot of a cluster that nothing measures, with something changed."""
    lines = [json.loads(line) for line in clusters.lines() if b'"NodeSummary"' not in line[:40]]
    for each in lines:
        change(each)
    lines[-1]["lines"] = len(lines) - 1
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))


def _small_nodes(line: dict) -> None:
    if line["kind"] == "NodeList":
        line["items"][0]["status"]["capacity"]["memory"] = "1Gi"


def _broken_kubelets(line: dict) -> None:
    if line["kind"] == "NodeKubelet":
        line["configz"]["kubeletconfig"]["cgroupsPerQOS"] = False


@pytest.mark.parametrize(
    ("change", "words"),
    [(_small_nodes, "the node has 1Gi"), (_broken_kubelets, "the kubelet does not start")],
    ids=["usage beyond memory", "kubelet that does not start"],
)
def test_overview_says_so_of_the_node_and_ranks_the_others(change, words, place, capsys):
    _snapshot(place / "cluster.json", change=change)
    code, out, err = podqos(capsys, "overview", "--snapshot", "cluster.json")
    assert code == 0, err
    assert [line for line in out.splitlines() if line.startswith("atlas-1: ") and words in line]
    nodes = json.loads(podqos(capsys, "overview", "--snapshot", "cluster.json", "-o", "json")[1])["nodes"]
    assert {each["name"]: bool(each["problem"]) for each in nodes} == {"atlas-1": True, "atlas-2": False}


def test_rank_of_a_node_whose_pods_are_assumed_to_use_more_than_it_has_says_so(place, capsys):
    _snapshot(place / "cluster.json", change=_small_nodes)
    code, out, _ = podqos(capsys, "rank", "--snapshot", "cluster.json", "--node", "atlas-1")
    assert code == 0
    assert "the node has 1Gi: usage is assumed or stale" in " ".join(out.split())


# ---- a kubelet's file of another time --------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [name for name in KUBELET_READERS if name != "ui"])
def test_a_file_of_openshift_3_says_which_rules_it_gets(command, place, capsys):
    (place / MANIFEST).write_text(GOOD)
    (place / KUBELET).write_text("kubeletArguments:\n  eviction-hard: [memory.available<500Mi]\n")
    err = " ".join(podqos(capsys, command, *KUBELET_READERS[command])[2].split())
    assert "rules for kubeletArguments (OpenShift 3): those of Kubernetes 1.36" in err


def test_asked_for_the_rules_of_its_time_nothing_is_assumed(place, capsys):
    (place / MANIFEST).write_text(GOOD)
    (place / KUBELET).write_text("kubeletArguments:\n  eviction-hard: [memory.available<500Mi]\n")
    words = (*KUBELET_READERS["rank"], "--kubernetes-version", "1.9")
    assert "kubeletArguments" not in podqos(capsys, "rank", *words)[2]


# ---- the page --------------------------------------------------------------------------------------------------------


def test_the_page_takes_the_memory_of_the_node(place, capsys):
    (place / MANIFEST).write_text(GOOD)
    assert podqos(capsys, "ui", MANIFEST, "--html", "page.html", "--node-memory", "3Gi")[0] == 0
    assert f'"memoryBytes":{3 << 30},' in (place / "page.html").read_text()


def test_pods_that_do_not_fit_into_the_stated_memory_are_an_error_of_the_page_as_of_rank(place, capsys):
    (place / MANIFEST).write_text(GOOD)
    for words in (["ui", MANIFEST, "--html", "page.html"], ["rank", "-f", MANIFEST]):
        code, _, err = podqos(capsys, *words, "--node-memory", "512Mi")
        assert code == 2
        assert "the pods use 1Gi, but the node has 512Mi" in err


@pytest.mark.parametrize("source", [["race"], []], ids=["scenario", "nothing"])
def test_the_memory_of_a_node_is_for_manifests_alone(source, place, capsys):
    code, _, err = podqos(capsys, "ui", *source, "--html", "page.html", "--node-memory", "3Gi")
    assert code == 2
    assert "--node-memory: " in err


def test_the_same_warning_about_many_manifests_is_printed_three_times_and_then_counted(tmp_path, capsys):
    pods = (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\nspec: {{containers: [{{name: c}}]}}\n" for n in range(9)
    )
    (tmp_path / "pods.yaml").write_text("---\n".join(pods))
    assert main(["explain", str(tmp_path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert sum("spec.containers[0].image: Required value" in line and "warning: " in line for line in lines) == 3
    assert "6 more warnings like these: spec.containers[0].image: Required value" in lines
