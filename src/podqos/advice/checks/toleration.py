"""PQ118: pods that return to the node they were evicted from and exceed their request again."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from podqos.advice.checks import examples
from podqos.advice.checks.check import WARNING, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.classes import DAEMON_COMES_BACK
from podqos.advice.checks.finding import Choice, Fact
from podqos.advice.checks.references import DAEMON_BACKOFF, DAEMON_TOLERATIONS, RANKING
from podqos.advice.checks.repair import patch_of, with_edits
from podqos.advice.checks.view import Repair, View
from podqos.amounts import listed
from podqos.eviction.pods import request_of
from podqos.model.effective import pod_level_is_set
from podqos.model.node import TAINT_MEMORY_PRESSURE
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY, ResourceRequirements
from podqos.qos.edits import Edit

_DAEMON_SET = "DaemonSet"
# No controller replaces these.
_ALONE = ("Pod", "PodTemplate")


class MayExceed(Struct, frozen=True, gc=False):
    """A container that may use more memory than it requests."""

    container: str
    """Empty for the pod as a whole."""
    request: str | None
    limit: str | None
    """None where nothing limits it."""

    @property
    def text(self) -> str:
        """Both amounts in words."""
        may = "all available memory" if self.limit is None else f"{self.limit} of memory"
        beyond = "and requests none" if self.request is None else f"and requests {self.request}"
        return f"{self.container or 'the pod'} may use {may} {beyond}"


class ComesBack(Fact, frozen=True, gc=False):
    """Pods that are put back on the node they were evicted from, while it is still under pressure."""

    tolerated_by: str | None
    """The field that tolerates memory pressure; None where the DaemonSet controller adds it."""
    containers: tuple[MayExceed, ...]

    def sentence(self, _: str) -> str:
        """Return which containers may exceed their requests, and what lets the pod return."""
        exceeding = listed([container.text for container in self.containers])
        if self.tolerated_by is None:
            return f"{exceeding}, and {DAEMON_COMES_BACK}"
        return (
            f"{exceeding}, and {self.tolerated_by} tolerates memory-pressure: once evicted, it can return to the "
            "same node and is evicted again"
        )

    def cause(self) -> str:
        """Return what gets it evicted."""
        return "it may use more memory than it requests"


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


def find_comes_back(view: View) -> None:
    """Find pods that may use more than they request and tolerate the taint that keeps others from the node."""
    exceeding = _exceeding(view)
    if not exceeding:
        return
    edits = [Edit(f"{amounts.path}.requests.memory", amounts.asked, amounts.written) for amounts in exceeding]
    view.report(
        comes_back,
        f"{exceeding[0].path}.requests.memory" if exceeding[0].written is not None else exceeding[0].path,
        ComesBack(
            None if view.workload.kind == _DAEMON_SET else _own_toleration(view),
            tuple(MayExceed(amounts.name, _text(amounts.request), _text(amounts.limit)) for amounts in exceeding),
        ),
        patch_of(edits, view, Choice.RESOURCES),
        container=exceeding[0].name if len(exceeding) == 1 and exceeding[0].name else None,
        repair=Repair(lambda: with_edits(view.pod, edits)),
    )


def is_told_with_return(view: View, container: str) -> bool:
    """Whether PQ118 says that a container may use more than it requests: then no other check has to."""
    if not view.options.runs(comes_back.id) or view.is_suppressed(comes_back):
        return False
    return any(amounts.name == container for amounts in _exceeding(view))


def _exceeding(view: View) -> list[_Amounts]:
    """Return the containers of such pods that may use more than they request.

    A DaemonSet that asks for nothing has PQ103, which says the same. Pods that the kubelet never evicts are left out.
    """
    is_daemon_set = view.workload.kind == _DAEMON_SET
    if not is_daemon_set and _own_toleration(view) is None:
        return []
    if is_daemon_set and view.stored_class is QOSClass.BEST_EFFORT:
        return []
    if view.is_expendable or view.standing.is_spared:
        return []
    amounts = list(_amounts(view))
    request = request_of(view.stored, MEMORY, view.options.profile)
    limits = [amount.limit.value for amount in amounts if amount.limit is not None]
    if len(limits) == len(amounts) and sum(limits) <= request.value:
        return []
    return [
        amount for amount in amounts if amount.limit is None or amount.request is None or amount.request < amount.limit
    ]


def _own_toleration(view: View) -> str | None:
    """Return the field that lets pods of other controllers back onto a node under memory pressure."""
    if view.workload.kind in _ALONE:
        return None
    for index, toleration in enumerate(view.pod.spec.tolerations):
        if toleration.tolerates(TAINT_MEMORY_PRESSURE, "", "NoSchedule"):
            return view.at(f"spec.tolerations[{index}]")
    return None


def _amounts(view: View) -> Iterator[_Amounts]:
    """Yield what decides whether the pod can use more than it requests."""
    written, stored = view.pod.spec, view.stored.spec
    if view.options.profile.pod_level_resources and pod_level_is_set(view.stored):
        assert stored.resources is not None
        yield _of("spec.resources", "", written.resources or stored.resources, stored.resources)
        return
    as_stored = (*stored.containers, *stored.init_containers)
    for number, ((container, path), kept) in enumerate(zip(view.resources(), as_stored, strict=True)):
        if number < len(written.containers) or container.is_sidecar:
            yield _of(path, container.name, container.resources, kept.resources)


def _of(path: str, name: str, written: ResourceRequirements, stored: ResourceRequirements) -> _Amounts:
    return _Amounts(
        path, name, written.requests.get(MEMORY), stored.requests.get(MEMORY), stored.limits.get(MEMORY) or None
    )


def _text(amount: Quantity | None) -> str | None:
    return None if amount is None else str(amount)


@check(
    "PQ118",
    "comes-back-under-pressure",
    WARNING,
    RANKING,
    DAEMON_TOLERATIONS,
    DAEMON_BACKOFF,
    rule=find_comes_back,
    fix_on_request=True,
)
def comes_back() -> Example:
    """PQ118: A pod returns to a node that is still under memory pressure.

    A node under memory pressure has the taint node.kubernetes.io/memory-pressure, which keeps new pods away. DaemonSet
    pods tolerate it, because the controller adds the toleration; others do if their manifest says so. A pod that uses
    more than it requests is evicted first, returns to the same node within seconds and is evicted again. Each round
    frees memory only for a moment, and the kubelet, which evicts one pod at a time, may be busy with it while memory
    keeps falling. PQ105 and PQ107 are not reported for the same containers in addition.

    Fix: Request as much memory as the containers may use: a pod within its request is not among the first to be
    evicted. Or remove the toleration, if the manifest has it. Pods with the priority class system-node-critical are
    never evicted, but that class is meant for node components only.
    """
    return Example(examples.daemon_set("cpu: 50m, memory: 150Mi", "memory: 200Mi, ephemeral-storage: 1Gi"))
