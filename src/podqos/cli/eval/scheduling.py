"""The ``scheduling`` family: pods that arrive one at a time in a small cluster. Pods are used as stored."""

from __future__ import annotations

import msgspec

from podqos.cli.eval.resources import list_of, pod_of
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.node import Node
from podqos.model.policy import Namespace
from podqos.model.profile import LATEST
from podqos.placement.budgets import Budgets
from podqos.placement.choosing import OneByOne
from podqos.placement.filters import SchedulerCluster
from podqos.placement.node_state import SchedulerNode
from podqos.placement.outcome import Status, refusal
from podqos.placement.pod_affinity import Namespaces
from podqos.placement.pod_view import PodView, Views
from podqos.placement.preemption import Candidate, Preemption
from podqos.words.placement import GATED_MESSAGE, refusal_message

_PREEMPTS = "Preempts"


class SchedulingStep(msgspec.Struct, rename="camel"):
    """The pod that arrives and where every other pod is then."""

    pod: str
    bound: dict[str, str] = {}
    disruption_budgets: list[dict[str, object]] = []


class SchedulingQuestion(msgspec.Struct):
    """One cluster and what happens in it."""

    nodes: list[dict[str, object]]
    pods: dict[str, dict[str, object]]
    steps: list[SchedulingStep]
    namespaces: list[dict[str, object]] = []


def evaluate(question: dict[str, object]) -> dict[str, object]:
    """Answer one question of the family: every step by the state that it gives."""
    asked = msgspec.convert(question, SchedulingQuestion)
    nodes = list_of(Node, asked.nodes)
    namespaces = Namespaces(
        {namespace.metadata.name: namespace.metadata.labels for namespace in list_of(Namespace, asked.namespaces)}
    )
    views = Views(LATEST)
    pods = {key: views.of(pod_of(pod)) for key, pod in asked.pods.items()}
    steps = []
    for step in asked.steps:
        states = {node.name: SchedulerNode(node, LATEST) for node in nodes}
        for key, name in step.bound.items():
            states[name].add(pods[key])
        budgets = Budgets(list_of(PodDisruptionBudget, step.disruption_budgets), pods.values())
        cluster = SchedulerCluster(states.values(), namespaces)
        steps.append({"pod": step.pod, **_decision(pods[step.pod], cluster, budgets)})
    return {"steps": steps}


def _decision(view: PodView, cluster: SchedulerCluster, budgets: Budgets) -> dict[str, object]:
    if view.pod.spec.scheduling_gates:
        return {"outcome": Status.GATED, "message": GATED_MESSAGE}
    best = OneByOne(cluster).best(view)
    if best:
        return {"outcome": Status.PLACED, "best": [state.name for state in best]}
    found = Preemption(cluster, budgets).candidate(view)
    if isinstance(found, Candidate):
        victims = sorted(victim.key for victim in found.victims)
        return {"outcome": _PREEMPTS, "nominatedNode": found.state.name, "victims": victims}
    return {"outcome": Status.PENDING, "message": refusal_message(refusal(view, cluster, found))}
