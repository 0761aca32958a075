"""PQ118: pods that come back to the node they were evicted from, over their request again."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from podqos.advice.checks.facts import ComesBack, MayExceed
from podqos.advice.checks.finding import Choice
from podqos.advice.checks.repair import patch_of, with_edits
from podqos.advice.checks.view import View
from podqos.eviction.usage import request_of
from podqos.model.effective import pod_level_is_set
from podqos.model.node import TAINT_MEMORY_PRESSURE
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY, ResourceRequirements
from podqos.qos.edits import Edit

_DAEMON_SET = "DaemonSet"
# No controller replaces these.
_ALONE = ("Pod", "PodTemplate")


class _Amounts(Struct, frozen=True, gc=False):
    """The memory of a container that keeps running, or of the pod."""

    path: str
    name: str
    written: Quantity | None
    """The request of the manifest."""
    request: Quantity | None
    """The request as stored."""
    limit: Quantity | None

    @property
    def asked(self) -> Quantity | None:
        """The request that is enough; None where it has to be chosen, as another would be stored than is written."""
        return None if self.written == self.limit else self.limit


def comes_back(view: View) -> None:
    """PQ118: may use more than it requests, and tolerates the taint that keeps others from the node meanwhile.

    A DaemonSet that asks for nothing has PQ103, which says the same. What the kubelet never evicts has nothing to fear.
    """
    is_daemon_set = view.workload.kind == _DAEMON_SET
    tolerated_by = None if is_daemon_set else _own_toleration(view)
    if not is_daemon_set and tolerated_by is None:
        return
    if is_daemon_set and view.stored_class is QOSClass.BEST_EFFORT:
        return
    if view.is_expendable or view.standing.is_spared:
        return
    amounts = list(_amounts(view))
    request = request_of(view.stored, MEMORY, view.options.profile)
    limits = [each.limit.value for each in amounts if each.limit is not None]
    if len(limits) == len(amounts) and sum(limits) <= request.value:
        return
    exceeding = [each for each in amounts if each.limit is None or each.request is None or each.request < each.limit]
    edits = [Edit(f"{each.path}.requests.memory", each.asked, each.written) for each in exceeding]
    view.report(
        "PQ118",
        f"{exceeding[0].path}.requests.memory" if exceeding[0].written is not None else exceeding[0].path,
        ComesBack(
            tolerated_by,
            tuple(MayExceed(each.name, _text(each.request), _text(each.limit)) for each in exceeding),
        ),
        patch_of(edits, view.prefix, Choice.RESOURCES),
        container=exceeding[0].name if len(exceeding) == 1 and exceeding[0].name else None,
        repaired=lambda: with_edits(view.pod, edits),
    )


def _own_toleration(view: View) -> str | None:
    """Return the field that lets pods of other controllers back onto a node under memory pressure."""
    if view.workload.kind in _ALONE:
        return None
    for index, toleration in enumerate(view.pod.spec.tolerations):
        if toleration.tolerates(TAINT_MEMORY_PRESSURE, "", "NoSchedule"):
            return f"{view.prefix}spec.tolerations[{index}]"
    return None


def _amounts(view: View) -> Iterator[_Amounts]:
    """Yield what decides whether the pod can use more than it requests."""
    written, stored = view.pod.spec, view.stored.spec
    if view.options.profile.pod_level_resources and pod_level_is_set(view.stored):
        assert stored.resources is not None
        yield _of("spec.resources", "", written.resources or stored.resources, stored.resources)
        return
    for index, container in enumerate(written.containers):
        path = f"spec.containers[{index}].resources"
        yield _of(path, container.name, container.resources, stored.containers[index].resources)
    for index, container in enumerate(written.init_containers):
        if container.is_sidecar:
            path = f"spec.initContainers[{index}].resources"
            yield _of(path, container.name, container.resources, stored.init_containers[index].resources)


def _of(path: str, name: str, written: ResourceRequirements, stored: ResourceRequirements) -> _Amounts:
    return _Amounts(
        path, name, written.requests.get(MEMORY), stored.requests.get(MEMORY), stored.limits.get(MEMORY) or None
    )


def _text(amount: Quantity | None) -> str | None:
    return None if amount is None else str(amount)
