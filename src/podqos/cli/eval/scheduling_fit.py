"""The ``scheduling_fit`` family: one pod against one node with pods on it. Pods are used as given."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict

from podqos.admission.tolerations import with_daemon_set_tolerations, with_memory_pressure_toleration
from podqos.cli.eval.resources import plain, pod_of
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.node import Node
from podqos.model.profile import LATEST
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.placement.demand import Amounts, is_scalar
from podqos.placement.filters import static_reasons
from podqos.placement.fit import insufficient
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_view import PodView, Shape
from podqos.placement.reasons import Unschedulable, UntoleratedTaint
from podqos.qos.classes import classify
from podqos.words.placement import reason_text


class FitQuestion(msgspec.Struct, rename="camel"):
    """One pod, one node, and the pods that are there."""

    pod: dict[str, object]
    node: dict[str, object]
    existing_pods: list[dict[str, object]] = []
    is_daemon_set_pod: bool = False
    pod_toleration_restriction_plugin: bool = False


def evaluate(question: dict[str, object]) -> dict[str, object]:
    """Answer one question of the family."""
    asked = msgspec.convert(question, FitQuestion)
    pod = pod_of(asked.pod)
    qos_class = classify(pod).qos_class
    if asked.is_daemon_set_pod:
        pod = with_daemon_set_tolerations(pod)
    if asked.pod_toleration_restriction_plugin:
        pod = with_memory_pressure_toleration(pod, qos_class)
    view = PodView(pod, Shape(pod))
    state = _state(asked)
    missing = insufficient(view.shape.demand, state)
    against = tuple(static_reasons(view, state, LATEST))
    taints = [reason.taint for reason in against if isinstance(reason, UntoleratedTaint)]
    return {
        "podRequests": plain(pod_requests(pod)),
        "podLimits": plain(pod_limits(pod)),
        "insufficient": [
            {**asdict(reason), "reason": reason_text(reason), "unresolvable": reason.unresolvable}
            for reason in sorted(missing, key=lambda reason: reason.resource)
        ],
        "resourcesFit": not missing,
        "untoleratedTaint": asdict(taints[0]) if taints else None,
        "unschedulableBlocks": any(isinstance(reason, Unschedulable) for reason in against),
        "schedulable": not missing and not against,
        "nodeRequested": _counted(state.requested, 0),
        "nodeAllocatable": _counted(state.allocatable, state.allowed_pods),
        "qosClass": qos_class,
    }


def _state(asked: FitQuestion) -> SchedulerNode:
    state = SchedulerNode(msgspec.convert(asked.node, Node, dec_hook=lambda _, text: Quantity.from_json(str(text))))
    for index, existing in enumerate(asked.existing_pods):
        pod = pod_of(existing)
        view = PodView(pod, Shape(pod))
        view.key = f"{view.key}#{index}"  # Nothing in the family says that names differ.
        state.add(view)
    return state


def _counted(counted: Amounts, allowed_pods: int) -> dict[str, object]:
    return {
        "milliCPU": counted.get(CPU, 0),
        "memory": counted.get(MEMORY, 0),
        "ephemeralStorage": counted.get(EPHEMERAL_STORAGE, 0),
        "allowedPodNumber": allowed_pods,
        "scalar": {name: amount for name, amount in sorted(counted.items()) if is_scalar(name)},
    }
