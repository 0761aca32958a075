"""What cannot be is rejected, with its place and one clear message; what has no end is not read for ever."""

from __future__ import annotations

import os
import threading
from textwrap import indent

import pytest

from podqos.cli.main import main
from podqos.reading import files, pipes

PODS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: web, resources: {limits: {cpu: 1, memory: 1Gi}}}
"""
HEAD = """apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: test}
spec:
  duration: 10m
  manifests: [pods.yaml]
  nodes:
    - {name: node, capacity: {cpu: 4, memory: 8Gi}}
"""


@pytest.fixture
def validate(tmp_path, capsys, monkeypatch):
    """Return what `podqos scenario validate` says: the exit code, and its lines."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods.yaml").write_text(PODS)

    def run(text):
        (tmp_path / "test.yaml").write_text(text)
        code = main(["scenario", "validate", "test.yaml"])
        return code, capsys.readouterr().err.splitlines()

    return run


NODES = [
    ("watermarks: {min: 9Gi}", "watermarks.min: 9Gi is not below the node's memory (8Gi)"),
    ("watermarks: {min: 1Gi, low: 10Gi}", "watermarks.low: 10Gi is not below the node's memory (8Gi)"),
    ("watermarks: {min: 1Gi, low: 2Gi, high: 8Gi}", "watermarks.high: 8Gi is not below the node's memory (8Gi)"),
    ("watermarks: {min: 3Gi, low: 2Gi, high: 1Gi}", "watermarks: min, low and high must increase"),
    ("watermarks: {min: -1Gi}", "watermarks.min: must be positive"),
    ("kubelet: {systemReserved: {memory: 9Gi}}", "kubelet: 9316Mi of memory is withheld from pods"),
    ("kubelet: {kubeReserved: {memory: 5Gi}, systemReserved: {memory: 5Gi}}", "kubelet: 10340Mi of memory is withheld"),
    ("kubelet: {evictionHard: {memory.available: 9Gi}}", "kubelet: 9Gi of memory is withheld from pods"),
    ("kubelet: {evictionHard: {nodefs.available: 900Gi}}", "kubelet: 900Gi of ephemeral-storage is withheld"),
    ("kubelet: {maxPods: -1}", "kubelet.maxPods: -1 is negative"),
    ("system: {memory: 9Gi}", "system.memory: starts above the node's memory (8Gi)"),
    ("system: {pids: 5000000}", "system.pids: starts above the node's process ids (4194304)"),
    ("system: {pids: 1.5}", "system.pids: 1.5 is not a whole number"),
    ("system: {nodefs: 200Gi}", "system.nodefs: starts above the capacity of nodefs (100Gi)"),
    ("system: {nodefsInodes: 2.5}", "system.nodefsInodes: 2.5 is not a whole number"),
    ("filesystems: {nodefs: {inodes: -1}}", "nodefs.inodes: must be a whole number, 0 or more"),
    ("filesystems: {nodefs: {inodes: 1.5}}", "nodefs.inodes: must be a whole number, 0 or more"),
    ("filesystems: {imagefs: {capacity: 0}}", "imagefs.capacity: must be positive"),
    ("filesystems: {nodefs: {capacity: 99999Ei}}", "nodefs.capacity: is more than any node has"),
    ("reclaimable: {images: -1Gi}", "reclaimable.images: -1Gi is below zero"),
    ("reclaimable: {images: 900Gi}", "reclaimable.images: 900Gi of unused images on a nodefs of 100Gi"),
    (
        "taints: [{key: a, effect: NoSchedul}]",
        'taints[0].effect: unknown effect "NoSchedul" (did you mean "NoSchedule"?)',
    ),
    ("taints: [{key: a}]", "taints[0].effect: Required value (one of NoSchedule, PreferNoSchedule, NoExecute)"),
    ("taints: [{effect: NoExecute}]", "taints[0].key: Required value"),
    ("taints: [{key: a, effect: NoExecute}, {key: a, effect: NoExecute}]", "taints[1]: has the key and effect of"),
    ("count: 0", "count: must lie between 1 and 100,000"),
    ("count: 1000000000", "count: must lie between 1 and 100,000"),
    ("loopPhase: -1s", "loopPhase: -1s is below zero"),
]
CAPACITIES = [
    ("{cpu: 4, memory: 1Ki}", "memory: 1Ki is too little memory for a node"),
    ("{cpu: 4, memory: 100m}", "memory: 100m is too little memory for a node"),
    ("{cpu: 4, memory: 99999Ei}", "memory: is more than any node has (check the unit: at most 4Pi)"),
    ("{cpu: 0, memory: 8Gi}", "cpu: must be positive"),
    ("{cpu: 99999E, memory: 8Gi}", "cpu: is more than any node has (check the unit: at most 100,000 cores)"),
    ("{cpu: 4, memory: 8Gi, pids: 0}", "pids: must be a whole number between 1 and 4,194,304"),
    ("{cpu: 4, memory: 8Gi, pids: 1.5}", "pids: must be a whole number between 1 and 4,194,304"),
    ("{cpu: 4, memory: 8Gi, pids: 1e15}", "pids: must be a whole number between 1 and 4,194,304"),
    ("{cpu: 4, memory: 8Gi, swap: -1Gi}", "swap: -1Gi is below zero"),
]
DEMANDS = [
    ("demand: {processes: 1.5}", "demand.processes: 1.5 is not a whole number (for example 2)"),
    ("demand: {pids: {steps: {0s: 1, 1m: 2.5}}}", "demand.pids: 2.5 is not a whole number (for example 3)"),
    ("demand: {processes: 1e12}", "demand.processes: Linux has at most 4,194,304 processes"),
    ("demand: {pids: 0}", "demand.pids: a container has at least one process"),
    ("demand: {processes: 10, pids: 2}", "demand.pids: is less than processes"),
    ("demand: {rootfsInodes: 1.5}", "demand.rootfsInodes: 1.5 is not a whole number"),
    ("demand: {memory: 100m}", "demand.memory: 100m is less than one byte (check the unit: Mi, not m)"),
    ("demand: {memory: 99999Ei}", "demand.memory: the demand is more than any machine has"),
    ("demand: {cpu: {wave: {low: 1, high: 2, period: 1us}}}", "demand.cpu: 600,000,000 periods (at most 100,000"),
    ("demand: {exits: {after: 1s, code: 999}}", "demand.exits.code: 999 is not an exit code (0 to 255)"),
    ("demand: {exits: {after: 1s, code: -1}}", "demand.exits.code: -1 is not an exit code (0 to 255)"),
    ("replicas: -1", "replicas: is below zero"),
    ("replicas: 1.5", "replicas: must be a whole number, not 1.5"),
    ("arrives: 11m", "arrives: is after the end of the scenario"),
]
EVENTS = [
    ("[{at: 11m, nodeLost: node}]", "events[0].at: is after the end of the scenario"),
    ("[{at: -1m, nodeLost: node}]", "events[0].at: -1m is below zero"),
    ("[{at: 1m, nodeLost: node}, {at: 2m, nodeLost: node}]", 'events[1].nodeLost: "node" is already lost'),
    ("[{at: 2m, nodeLost: node}, {at: 1m, nodeLost: node}]", 'events[0].nodeLost: "node" is already lost'),
    ("[{at: 1m, nodeJoins: node}, {at: 2m, nodeJoins: node}]", 'events[1].nodeJoins: "node" is already there'),
]


GONE = [
    (
        "events: [{at: 1m, drain: {node: node, ignoreDaemonSets: true}}]",
        "drain.ignoreDaemonSets: a drain has no options (it leaves pods of DaemonSets and evicts all others",
    ),
    (
        "workloads: [{workload: web, demand: {hugePages: 1Gi}}]",
        "demand.hugePages: a run knows no use of huge pages (capacity and requests of hugepages-2Mi count)",
    ),
    (
        "images: [{image: a, size: 1Gi}]",
        "spec.images: a run knows no images (timing.imagePull is how long any takes that a node does not have)",
    ),
    (
        "events: [{at: 1m, kubeletConfig: {node: node, maxPods: 9}}]",
        "events[0].kubeletConfig: no kubelet restarts during a run (state its settings at nodes[].kubelet)",
    ),
    (
        "events: [{at: 1m, resize: {workload: web}}]",
        "events[0].resize: a run resizes no pods in place (podqos admit says what one does)",
    ),
    (
        "clusterAutoscaler: {nodeGroups: [{nodes: node, max: 3}]}",
        "spec.clusterAutoscaler: a run has no cluster autoscaler (events with nodeJoins add nodes)",
    ),
]


def of_spec(fields):
    return HEAD + indent(f"{fields}\n", "  ")


def of_node(fields):
    return HEAD.replace("{name: node,", f"{{name: node, {fields},")


def of_capacity(capacity):
    return HEAD.replace("{cpu: 4, memory: 8Gi}", capacity)


def of_demand(fields):
    return HEAD + indent(f"workloads: [{{workload: web, {fields}}}]\n", "  ")


def of_events(events):
    return HEAD + indent(f"events: {events}\n", "  ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((of_node(fields), said) for fields, said in NODES),
        *((of_capacity(capacity), said) for capacity, said in CAPACITIES),
        *((of_demand(fields), said) for fields, said in DEMANDS),
        *((of_events(events), said) for events, said in EVENTS),
        *((of_spec(fields), said) for fields, said in GONE),
        (HEAD.replace("10m", "-1s"), "spec.duration: -1s is below zero"),
        (HEAD.replace("10m", ".inf"), ".inf is not a number"),
        (HEAD.replace("cpu: 4", "cpu: .nan"), ".nan is not a number"),
    ],
    ids=[
        *(fields for fields, _ in (*NODES, *CAPACITIES, *DEMANDS, *EVENTS, *GONE)),
        "a negative duration",
        "an infinite duration",
        "cores that are not a number",
    ],
)
def test_nonsense_is_rejected_once_with_its_place(validate, text, said):
    code, lines = validate(text)
    assert code == 2
    assert len(lines) == 1, lines
    assert said in lines[0]
    assert lines[0].startswith(f"test.yaml:{9 if text.startswith(HEAD) else 5 if 'duration: 10m' not in text else 8}:")


@pytest.mark.parametrize(
    "events",
    [
        "[{at: 10m, nodeLost: node}]",
        "[{at: 1m, nodeLost: node}, {at: 2m, nodeJoins: node}, {at: 3m, nodeLost: node}]",
        "[{at: 2m, nodeJoins: node}, {at: 1m, nodeLost: node}]",
        "[{at: 1m, nodeJoins: node}]",
    ],
)
def test_a_node_may_come_and_go_and_come_again(validate, events):
    assert validate(of_events(events)) == (0, [])


def test_daemons_may_outgrow_the_node(validate):
    assert validate(of_node("system: {memory: 1Gi per minute}")) == (0, [])


def test_swap_on_a_kubelet_that_would_not_start_with_it_is_a_warning(validate):
    code, (line,) = validate(of_capacity("{cpu: 4, memory: 8Gi, swap: 1Gi}"))
    assert code == 0
    assert "warning: spec.nodes[0].kubelet: the node has swap, and failSwapOn is true" in line


def test_a_what_if_after_the_end_is_rejected(validate, capsys):
    validate(HEAD)
    assert main(["simulate", "test.yaml", "--what-if", "nodeLost@node=11m"]) == 2
    assert "11m is after the end of the scenario" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["rank", "pods.yaml", "--system-memory", "0"],
        ["forecast", "pods.yaml", "--growing", "system", "--system-memory", "0"],
        ["thresholds", "--system-memory", "0"],
        ["thresholds", "--advise", "--node-memory", "64Gi", "--node-cpu", "16", "--system-memory", "0"],
        ["explain", "pods.yaml", "--node-swap", "0"],
    ],
    ids=" ".join,
)
def test_nothing_is_an_amount_of_usage(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods.yaml").write_text(PODS)
    assert main(command) == 0
    assert capsys.readouterr().out


def test_usage_below_zero_is_rejected(capsys):
    assert main(["thresholds", "--system-memory=-1Gi"]) == 2
    assert "--system-memory: -1Gi is below zero" in capsys.readouterr().err


def test_a_node_larger_than_any_is_rejected(capsys):
    assert main(["rank", "-", "--node-memory", "99999Ei"]) == 2
    assert "--node-memory: 99999Ei is more memory than any node has" in capsys.readouterr().err


# ---- files without an end ----------------------------------------------------------------------------------------

ENDLESS = {
    "/dev/zero": "a device, not a file",
    "/dev/urandom": "a device, not a file",
    "pipe": "no program has opened this pipe for writing within 0.1 s",
    "large.yaml": "larger than 0Gi, or endless",
    "zeros.yaml": "not a text: it begins with zero bytes",
}
READERS = [["check"], ["simulate"], ["thresholds", "-f"], ["rank", "pods.yaml", "--usage"]]


@pytest.fixture
def endless(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pipes, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(files, "MOST_BYTES", 100_000)
    (tmp_path / "pods.yaml").write_text(PODS)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large.yaml").write_text("a: b\n" * 30_000)
    (tmp_path / "zeros.yaml").write_bytes(bytes(70_000))


@pytest.mark.parametrize(
    ("command", "path"),
    [
        *((command, path) for command in READERS for path in ENDLESS),
        # Logs are read piece by piece: they may be larger than memory, and have zeros in them.
        *((["autopsy"], path) for path in ("/dev/zero", "/dev/urandom", "pipe")),
    ],
)
@pytest.mark.usefixtures("endless")
def test_a_file_without_an_end_is_rejected(capsys, command, path):
    code = main([*command, path])
    assert code in {1, 2}
    assert f"{path}: {ENDLESS[path]}" in capsys.readouterr().err.replace(": error", "")


def test_a_pipe_whose_writer_comes_later_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(PODS))
    writer.start()
    assert main(["explain", "pipe"]) == 0
    writer.join()
    assert "Deployment default/web" in capsys.readouterr().out


def test_nothing_can_be_read(capsys):
    assert main(["autopsy", os.devnull]) == 0
    assert "the input is empty" in capsys.readouterr().out
