"""What would have spared an evicted pod: the kubelet's pass made again with one change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.commands import EvictPod
from podqos.eviction.signals import SIGNALS
from podqos.eviction.usage import request_of
from podqos.model.pod import Pod, QOSClass
from podqos.model.resources import MEMORY
from podqos.survival.autopsy.eviction_scene import Scene, UsageSource
from podqos.survival.autopsy.savings import SavedBy, with_margin
from podqos.survival.counterfactual.counterfactual import Counterfactual, PodChange, Surroundings
from podqos.survival.counterfactual.kubelet import KubeletMoment, at_threshold, kubelet_counterfactuals
from podqos.survival.counterfactual.turn import controlled_alike, room_beside

_CHANGES = {
    PodChange.LESS: SavedBy.USAGE,
    PodChange.REQUEST: SavedBy.REQUEST,
    PodChange.GUARANTEED: SavedBy.CLASS,
    PodChange.PRIORITY: SavedBy.PRIORITY,
    PodChange.LIMIT: SavedBy.LIMIT,
}


class EvictionSaving(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A change with which the pod would not have been evicted at that moment."""

    change: SavedBy
    more: int | None = None
    """How much more; of ``usage`` and ``threshold`` how much less. Bytes, inodes or processes."""
    amount: int | None = None
    """The request, limit or threshold as changed; the priority."""
    container: str = ""
    """Whose request or limit, where the pod has several; of an emptyDir's limit the volume."""
    qos_class: QOSClass | None = None
    instead: str = ""
    """The pod that would have been evicted. Empty: none."""
    advised: int | None = None
    """Of ``nodeSize``: how much more to give it, with a margin; tried, too."""
    is_assumed: bool = False
    """Whether it rests on what that pod used, which is assumed."""


def savings(scene: Scene, threshold: int | None, available: int | None) -> tuple[EvictionSaving, ...]:
    """Return what would have spared the pod, each tried; nothing where it is not evicted with the likely figures.

    Without the amounts of a message the node is one unit below its threshold.
    """
    if scene.own.source is not UsageSource.MESSAGE:
        return ()
    is_known = threshold is not None and available is not None and 0 < available < threshold
    met = threshold or 2
    left = available if is_known and available is not None else met - 1
    alike = controlled_alike(scene.pod, scene.others)
    pods = _deciding(scene, alike)
    moment = _moment(scene, pods, met, left)
    surroundings = Surroundings(_room_for(pods, scene), alike)
    tried = kubelet_counterfactuals(moment, scene.pod.metadata.uid, surroundings)
    found = [_saving(counterfactual, scene) for counterfactual in tried if _is_known(counterfactual, scene)]
    if tried and is_known:
        found += _of_node(scene, pods, met, left)
    return tuple(found)


def _is_known(counterfactual: Counterfactual, scene: Scene) -> bool:
    """Whether a change saves the pod, and how much is needed does not hang on what a pod used that grew later."""
    is_amount = counterfactual.change in {PodChange.LESS, PodChange.REQUEST}
    return counterfactual.saves and not (is_amount and counterfactual.decision.instead in scene.grown)


def _deciding(scene: Scene, alike: frozenset[str]) -> tuple[Pod, ...]:
    """Return the pods that the pass is repeated with: those that change, and the first of all others.

    A place in the ranking is a pod's own, so that no other can be evicted before that one.
    """
    changing = [other for other in scene.others if other.metadata.uid in alike]
    own = {scene.pod.metadata.uid, *alike}
    first = [
        ranked_pod.pod
        for ranked_pod in scene.order
        if ranked_pod.spared is None and ranked_pod.pod.metadata.uid not in own
    ][:1]
    return (scene.pod, *changing, *first)


def _room_for(pods: Iterable[Pod], scene: Scene) -> dict[str, int] | None:
    """Return what those pods may request together: the rest is the other pods'."""
    if scene.known.allocatable is None:
        return None
    deciding = {pod.metadata.uid for pod in pods}
    others = (pod for pod in scene.others if pod.metadata.uid not in deciding)
    return room_beside(others, scene.known.allocatable, scene.ranking.profile)


def _moment(scene: Scene, pods: tuple[Pod, ...], threshold: int, available: int) -> KubeletMoment:
    used = sum(bound.likely for bound in scene.bounds.values())
    capacity = max(scene.known.capacity.get(scene.ranking.signal, 0), threshold, available + used)
    return at_threshold(pods, scene.stats(pods), replace(scene.ranking, hard=True), capacity, (threshold, available))


def _of_node(scene: Scene, pods: tuple[Pod, ...], threshold: int, available: int) -> Iterator[EvictionSaving]:
    """Yield what else would have kept the node from evicting anything: a lower threshold, more memory."""
    lacking = threshold - available
    if not _evicts(_moment(scene, pods, available, available)):
        yield EvictionSaving(SavedBy.THRESHOLD, lacking, available)
    if SIGNALS[scene.ranking.signal].resource == MEMORY and not _evicts(_moment(scene, pods, threshold, threshold)):
        advised = with_margin(lacking, 0)
        is_tried = not _evicts(_moment(scene, pods, threshold, available + advised))
        yield EvictionSaving(SavedBy.NODE_SIZE, lacking, advised=advised if is_tried else None)


def _evicts(moment: KubeletMoment) -> bool:
    return any(isinstance(command, EvictPod) for command in moment.decide().commands)


def _saving(each: Counterfactual, scene: Scene) -> EvictionSaving:
    amount, more, profile = each.amount, None, scene.ranking.profile
    if each.change is PodChange.LESS and amount is not None:
        amount, more = scene.own.likely - amount, amount
    elif each.change is PodChange.REQUEST and each.pod is not None:
        before, after = (request_of(pod, each.resource, profile).value for pod in (scene.pod, each.pod))
        more = after - before
    named, instead = scene.next_in_log, each.decision.instead or ""
    is_unknown = bool(instead and named) and all(other.key != named for other in scene.others)
    return EvictionSaving(
        _CHANGES[each.change],
        more,
        amount,
        each.container or "",
        QOSClass.GUARANTEED if each.change is PodChange.GUARANTEED else None,
        named if is_unknown else instead,
        is_assumed=is_unknown
        or any(
            scene.bounds[other.metadata.uid].source is UsageSource.ASSUMED
            for other in scene.others
            if other.key == instead
        ),
    )
