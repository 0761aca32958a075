"""Random rollouts, scalings, drains and losses: invariants that hold whatever happens."""

from __future__ import annotations

import json
import random

import pytest

from podqos.agent.journal import encode
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import read_given_scenario
from podqos.sim.run import simulate
from podqos.sim.summary import run_summary

DEPLOYMENTS = (
    {},
    {"strategy": {"type": "Recreate"}},
    {"progressDeadlineSeconds": 30},
    *({"strategy": {"rollingUpdate": {"maxSurge": a, "maxUnavailable": b}}} for a, b in ((0, 1), (1, 0), (2, "50%"))),
)
STATEFUL_SETS = tuple(
    {"podManagementPolicy": policy, "updateStrategy": strategy}
    for policy in ("OrderedReady", "Parallel")
    for strategy in ({}, {"type": "OnDelete"}, {"type": "RollingUpdate"}, {"rollingUpdate": {"partition": 1}})
)
DAEMON_SETS = tuple(
    {"updateStrategy": strategy}
    for strategy in (
        {},
        {"type": "OnDelete"},
        {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        {"rollingUpdate": {"maxUnavailable": "50%"}},
    )
)
KINDS = {"web": ("Deployment", DEPLOYMENTS), "w": ("StatefulSet", STATEFUL_SETS), "agent": ("DaemonSet", DAEMON_SETS)}
TIMINGS = (
    {"recreate": "0s"},
    {"containerStart": "5s"},
    {"containerStart": "5s", "containerStop": "2s", "cleanUp": "3s"},
    {"containerStop": "2s", "cleanUp": "3s", "recreate": "0s"},
)
CHANGES = (
    {"image": "y"},
    {"resources": {"requests": {"cpu": "100"}}},
    {"demand": {"memory": "500Mi"}},
)


class RandomScenario:
    """A scenario of three sets on three nodes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.manifests = [self._manifest(name, *kind) for name, kind in KINDS.items()]
        self.parts = [self._part(name) for name in KINDS]
        self.joins: list[tuple[int, str]] = []
        self.events = self._events()

    def _manifest(self, name: str, kind: str, specs: tuple[dict, ...]) -> dict:
        labels = {"app": name}
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
        spec = {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            **self.random.choice(specs),
        }
        if kind != "DaemonSet":
            spec["replicas"] = self.random.randint(0, 5)
        if self.random.random() < 0.4:
            spec["minReadySeconds"] = self.random.choice((3, 10))
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}

    def _part(self, name: str) -> dict:
        choice = self.random.choice
        fails = {"memory": "10Mi", "exits": {"after": "50s", "code": 1}}
        part = {"workload": name, "demand": choice(({"memory": "10Mi"}, {"memory": "3Gi over 100s"}, fails))}
        if name == "web":
            part["arrives"] = choice(("0s", "7s"))
        if name != "agent" and self.random.random() < 0.3:
            part["nodes"] = ["node-0", "node-1"]
        return part

    def _events(self) -> list[dict]:
        events: list[dict] = [{"at": "8s", "scale": {"workload": name, "replicas": 2}} for name in ("web", "w")]
        events.append({"at": "9s", "rollout": {"workload": "agent", "image": "y"}})
        rolled, up = {"agent"}, dict.fromkeys(("node-0", "node-1", "node-2"), True)
        time = 20
        while (time := time + self.random.randint(1, 40)) < 400:
            name, at = self.random.choice(tuple(KINDS)), {"at": f"{time}s"}
            match self.random.randrange(6):
                case 0 | 1:
                    events.append({**at, "rollout": {"workload": name, **self.random.choice(CHANGES)}})
                    rolled.add(name)
                case 2 if name in rolled:
                    events.append({**at, "rollback": {"workload": name}})
                case 3 if name != "agent":
                    events.append({**at, "scale": {"workload": name, "replicas": self.random.randint(0, 7)}})
                case 4:
                    node = self.random.choice(tuple(up))
                    field = "nodeLost" if up[node] else "nodeJoins"
                    if not up[node]:
                        self.joins.append((time * SECOND_US, node))
                    up[node] = not up[node]
                    events.append({**at, field: node})
                case 5:
                    node = self.random.choice(tuple(up))
                    events += (
                        [{**at, "drain": {"node": node}}, {"at": f"{time + 40}s", "uncordon": node}] if up[node] else []
                    )
        return events

    def read(self) -> object:
        """Read the scenario."""
        spec = {
            "duration": "900s",
            "nodes": [{"name": "node", "count": 3, "capacity": {"cpu": 4, "memory": "4Gi"}}],
            "manifests": ["all.json"],
            "workloads": self.parts,
            "events": self.events,
            "timing": self.random.choice(TIMINGS),
        }
        document = {
            "apiVersion": "podqos.dev/v1alpha1",
            "kind": "Scenario",
            "metadata": {"name": "random"},
            "spec": spec,
        }
        listed = {"apiVersion": "v1", "kind": "List", "items": self.manifests}
        given = {"scenario.yaml": json.dumps(document).encode(), "all.json": json.dumps(listed).encode()}
        return read_given_scenario("scenario.yaml", given).loaded()


def check_names(entries, joins) -> None:
    """Assert that no two pods have one name at a time, and of a StatefulSet none while its node is lost."""
    ends = {(entry.time_us, entry.pod) for entry in entries if entry.kind == "Stopped"}
    there: dict[str, str] = {}
    lost: dict[str, tuple[str, int]] = {}
    for entry in entries:
        pod = entry.pod
        if entry.kind == "Lost" and pod is None:
            lost.update({pod: (node, entry.time_us) for pod, node in there.items() if node == entry.node})
            there = {pod: node for pod, node in there.items() if node != entry.node}
        elif entry.kind == "Admitted" and pod is not None:
            # Entries of one moment are in the order of their nodes' names.
            assert there.get(pod) in {None, entry.node} or (entry.time_us, pod) in ends, entry
            if pod.startswith("default/w-") and pod in lost:
                node, since = lost.pop(pod)
                assert any(name == node and since <= time <= entry.time_us for time, name in joins), entry
            there[pod] = entry.node
        elif entry.kind in {"Stopped", "Rejected"} and entry.container is None:
            there.pop(pod, None)


def check(seed: int) -> None:
    made = RandomScenario(seed)
    scenario = made.read()
    done = simulate(scenario, check=True)
    assert encode(done.entries) == encode(simulate(scenario).entries)
    check_names(done.entries, made.joins)
    run_summary(done)


@pytest.mark.parametrize("seed", range(8))
def test_names_are_used_once_at_a_time_and_memory_is_conserved_whatever_happens(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_the_same_for_many_seeds(seed):
    check(seed)
