"""Command lines whose files, pictures, pages and messages matter: deaths, clusters, webhooks, guards, bad input.

They run in ``input_files.directory``. ``<`` and a name at the end of a line is what is piped in
(``input_files.piped``); files that a line writes are part of what it leads to.
"""

from __future__ import annotations

from collections.abc import Iterator

from outputs.commands import ACCIDENTAL, INCIDENT, KUBELET, NODE_MEMORY, NODES, PLATFORM, Line
from outputs.input_files import BAD_KUBELETS, BAD_MANIFESTS, BAD_POLICIES, BAD_SCENARIOS
from podqos.cli.command_list import COMMANDS
from podqos.cli.commands.evaluate import FAMILIES

SNAPSHOT = "inputs/cluster.jsonl"
WRITTEN = "written"
"""The directory that some of them write."""
GUARD = "scenarios/guard"
POLICY = "scenarios/policy/policy.yaml"
KERNELS = ("cgroup-v1", "linux-6.1-nodes", "linux-6.1", "linux-6.12-16k", "linux-6.12")
_OBJECTS = ("-f", "inputs/pods.yaml", "-f", "inputs/events.json")
_IMAGE = ("--image", "registry.example.com/podqos:1.0")
_LIVE = ("-f", PLATFORM, "--usage", "scenarios/content-platform/usage.csv", *NODE_MEMORY)
_POD = f"{PLATFORM}/log-collector.yaml"


def further_lines() -> Iterator[Line]:
    """Yield all of them, each once, in a fixed order."""
    yield from _deaths()
    yield from _clusters()
    yield from _admission()
    yield from _guards()
    yield from _pictures()
    yield from _scenarios()
    for family in FAMILIES:
        yield ("eval", family, "<", f"conformance/{family}")
    yield ("eval", "admission", "<", "conformance/admission_wide")
    yield ("eval", "qos", "<", 'text/{"id": 1, "input": {}}\nno JSON\n{"id": 2}\n')
    yield from bad_lines()


def _deaths() -> Iterator[Line]:
    every = ("text", "json", "jsonl", "csv", "markdown")
    yield from _each(("autopsy", "inputs/kern.log", "inputs/kubelet.log", *_OBJECTS), *every, "yaml")
    yield ("autopsy", "inputs/kern.log", *_OBJECTS, "-v", "--growth", "128Mi/s")
    yield ("autopsy", *_OBJECTS, "-n", "shop", "db-0", "-o", "json")
    incident = ("autopsy", f"{INCIDENT}/kern.log", "-f", f"{INCIDENT}/pods.yaml", "--kubelet-config", KUBELET)
    yield from _each(incident, *every)
    for kernel in KERNELS:
        yield from _each(("autopsy", "-"), "text", "csv", piped=f"ooms/{kernel}")
    yield ("autopsy", "-", "-o", "json", "<", "ooms/linux-6.1-nodes")
    for run in ("eviction_hard", "eviction_soft"):
        yield ("autopsy", "-", "-o", "json", "<", f"evictions/{run}")
    yield ("autopsy", "--snapshot", SNAPSHOT, "-o", "json")
    yield ("autopsy", f"{GUARD}/journal.jsonl", "-o", "json")
    yield ("autopsy", "bad/quiet.log")


def _clusters() -> Iterator[Line]:
    snapshot = ("--snapshot", SNAPSHOT)
    yield from _each(("overview", *snapshot), "table", "wide", "json", "yaml", "name")
    for command in ("explain", "check", "place", "advise", "admit"):
        yield (command, *snapshot, "-o", "json")
    for command in ("rank", "cpu", "blast"):
        yield (command, *snapshot, "--node", "atlas-1", "-o", "json")
    yield ("rank", *snapshot, "--node", "atlas-3", "-o", "json")
    yield ("blast", *snapshot)
    yield ("forecast", *snapshot, "--node", "atlas-1", "--growing", "shop/shell", "-o", "json")
    yield ("thresholds", "atlas-1", *snapshot, "-o", "json")
    yield ("policy", "test", "-f", POLICY, *snapshot, "-o", "json")
    yield ("drift", SNAPSHOT, SNAPSHOT, "-o", "json")
    yield from _each(("exporter", "manifests", *_IMAGE), "yaml", "json")


def _admission() -> Iterator[Line]:
    for number in range(0, 180, 11):
        yield ("webhook", "test", "-f", "-", "--policy", POLICY, "--warn-on", "info", "<", f"review/{number}")
    for door in ("validate", "mutate"):
        yield ("webhook", "test", "-f", "scenarios/policy/review.json", "--policy", POLICY, "--webhook", door)
    yield from _each(("webhook", "manifests", *_IMAGE), "yaml", "json")
    yield ("webhook", "manifests", *_IMAGE, "--policy", POLICY, "--mutate", "--fail-closed", "--replicas", "3")
    configuration = "scenarios/sources/master-config.yaml"
    override = ("--policy", configuration, "--webhook", "mutate")
    for number in (0, 55, 121):
        yield ("webhook", "test", "-f", "-", *override, "<", f"review/{number}")
    yield from _each(("admit", "-f", "scenarios/sources/override.yaml", "--policies", configuration), "text", "json")
    yield from _each(("policy", "cel", "-f", POLICY), "yaml", "json")
    yield ("policy", "cel", "-f", POLICY, "--workloads", "Deny", "--fill-limits")
    yield ("schema", "policy")


def _guards() -> Iterator[Line]:
    report = ("guard", "report", "--state", GUARD)
    yield from _each((*report, "--journal", f"{GUARD}/journal.jsonl"), "text", "json", "yaml", "csv")
    yield (*report, "--kernel-log", "inputs/kern.log", *_OBJECTS, "-o", "json")
    yield from _each(("guard", "journal", "--state", GUARD), "text", "jsonl")
    yield from _each(("guard", "manifests", *_IMAGE), "yaml", "json")
    yield ("guard", "manifests", *_IMAGE, "--enforce", "--host-pid", "--eviction-api")


def _pictures() -> Iterator[Line]:
    for name in ("oom-by-class", "pid-exhaustion", "limitrange-trap"):
        yield ("simulate", name, "--svg", "run.svg", "--html", "run.html")
    yield ("simulate", "race", "--svg", "run.svg")
    yield ("forecast", *_LIVE, "--growing", "log-collector", "--svg", "curve.svg")
    yield ("thresholds", "-f", KUBELET, *NODE_MEMORY, "--svg", "bar.svg")
    yield ("autopsy", "inputs/kern.log", *_OBJECTS, "--html", "autopsy.html")
    yield ("check", "-f", PLATFORM, *NODE_MEMORY, "-o", "github")
    yield ("ui", "oom-loop", "--html", "page.html")
    yield ("ui", f"{INCIDENT}/pods.yaml", f"{INCIDENT}/kern.log", "--html", "page.html")


def _scenarios() -> Iterator[Line]:
    yield ("scenario", "new", WRITTEN)
    yield ("scenario", "new", WRITTEN, "--from-cluster", "--snapshot", SNAPSHOT)
    usage = ("-f", PLATFORM, "--usage", f"{INCIDENT}/samples.csv", "--nodes", "2")
    yield ("scenario", "from-usage", WRITTEN, *usage, "--node-capacity", "cpu=16,memory=64Gi")
    for command in ("explain", "check"):
        yield (command, "-f", "configured", *NODE_MEMORY, "-o", "json")


def bad_lines() -> Iterator[Line]:
    """Yield command lines that are refused, or answered with a warning."""
    for name in BAD_MANIFESTS:
        yield ("explain", "-f", f"bad/{name}")
        yield ("check", "-f", f"bad/{name}")
        yield ("rank", "-f", f"bad/{name}", *NODE_MEMORY)
    for name in ("no-image", "above-limit", "restart-policy", "no-selector"):
        for command in ("admit", "cpu", "advise", "blast"):
            yield (command, "-f", f"bad/{name}.yaml")
        yield ("place", "-f", f"bad/{name}.yaml", "-f", NODES)
        yield ("drift", _POD, f"bad/{name}.yaml")
    for name in BAD_KUBELETS:
        yield ("thresholds", f"bad/{name}", *NODE_MEMORY)
        for command in ("explain", "rank", "check"):
            yield (command, "-f", _POD, *NODE_MEMORY, "--kubelet-config", f"bad/{name}")
    for name in BAD_SCENARIOS:
        yield ("simulate", f"bad/{name}")
        yield ("scenario", "validate", f"bad/{name}")
    for name in BAD_POLICIES:
        yield ("policy", "test", "-f", f"bad/{name}", "-f", _POD)
        yield ("webhook", "test", "-f", "scenarios/policy/review.json", "--policy", f"bad/{name}")
    for name in ("usage-amount.csv", "usage-column.csv", "usage-stranger.csv"):
        yield ("rank", "-f", PLATFORM, *NODE_MEMORY, "--usage", f"bad/{name}")
    yield ("webhook", "test", "-f", "bad/review.json")
    yield ("overview", "--snapshot", "bad/cut.jsonl")
    yield ("overview", "--snapshot", "bad/quiet.log")
    yield ("overview", "--snapshot", "missing.json")
    yield ("autopsy", "missing.log")
    yield ("guard", "report", "--state", "missing")
    yield ("ui", "bad/no-yaml.yaml", "--html", "page.html")
    yield ("ui", "--html", "page.html")
    yield from _bad_options()


def _bad_options() -> Iterator[Line]:
    for name in COMMANDS:
        yield (name, "--no-such-option")
    yield ()
    yield ("explian",)
    yield ("--verbose",)
    yield ("help", "explian")
    yield ("scenario",)
    yield ("explain",)
    yield ("explain", "-f", "missing.yaml")
    yield ("explain", "-f", _POD, "-o", "xml")
    yield ("explain", "-f", _POD, "--node-memory", "much")
    yield ("explain", "-f", _POD, "--kubernetes-version", "2.0")
    yield ("explain", "-f", _POD, "-n", "nowhere")
    yield ("explain", "-f", _POD, "--fail-on", "x")
    yield ("check", "-f", _POD, "--only", "PQ999")
    yield ("check", "--explain", "PQ999")
    yield ("rank", "-f", _POD, "--signal", "memory")
    yield ("rank", "-f", PLATFORM, "--node-memory", "1Gi")
    yield ("rank", "-f", PLATFORM, *NODE_MEMORY, "--policy", "x")
    yield ("forecast", "-f", PLATFORM, *NODE_MEMORY, "--growing", "nobody")
    yield ("forecast", "-f", PLATFORM, *NODE_MEMORY, "--growing", "log-collector", "--rate", "fast")
    yield ("place", "-f", PLATFORM)
    yield ("place", "-f", PLATFORM, "--nodes", "2", "--node-capacity", "cpu=many")
    yield ("cpu", "-f", PLATFORM, "--cores", "0")
    yield ("drift", PLATFORM)
    yield ("drift", PLATFORM, f"{ACCIDENTAL}/missing.yaml")
    yield ("simulate", "rase")
    yield ("simulate", "race", "--node", "nowhere")
    yield ("simulate", "race", "--vary", "phase")
    yield ("simulate", "race", "--vary", "nothing=1")
    yield ("thresholds", "--advise")
    yield ("overview",)
    yield ("eval", "nothing")


def _each(line: Line, *outputs: str, piped: str = "") -> Iterator[Line]:
    for output in outputs:
        yield (*line, "-o", output, *(("<", piped) if piped else ()))
