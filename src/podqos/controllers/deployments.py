"""How a Deployment moves from one ReplicaSet to another: by how much each is scaled next, and whether it progresses.

A sync is one step: the new ReplicaSet is scaled up if there is room below replicas + maxSurge, else old ones are scaled
down as far as replicas − maxUnavailable allows, those without available pods first. Terminating pods count for neither.
When the wanted number changes during a rollout, all ReplicaSets are scaled in proportion.

Source: Kubernetes v1.36.4 pkg/controller/deployment/rolling.go, recreate.go, sync.go (scale, isScalingEvent),
progress.go (syncRolloutStatus, requeueStuckDeployment) and util/deployment_util.go (ResolveFenceposts,
NewRSNewReplicas, GetReplicaSetProportion, DeploymentComplete, DeploymentProgressing, DeploymentTimedOut).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.controllers.int_or_percent import IntOrPercent, scaled
from podqos.model.time_units import SECOND_US

_RECHECK_US = SECOND_US
"""The controller looks this much later than the deadline, for the clock's sake."""


class DeploymentSpec(Struct, frozen=True, gc=False, kw_only=True):
    """What a Deployment wants."""

    replicas: int = 1
    recreate: bool = False
    """``strategy.type: Recreate``: all old pods end before the first new one is created."""
    max_surge: IntOrPercent = "25%"
    max_unavailable: IntOrPercent = "25%"
    min_ready_seconds: int = 0
    progress_deadline_seconds: int = 600
    states_deadline: bool = False
    """Whether the manifest states the deadline: then it holds for the first rollout, too."""

    @property
    def fenceposts(self) -> tuple[int, int]:
        """The surge, rounded up, and the unavailability, rounded down; if both are 0, one may be unavailable."""
        surge = scaled(self.max_surge, self.replicas, round_up=True)
        unavailable = scaled(self.max_unavailable, self.replicas, round_up=False)
        return surge, unavailable or (0 if surge else 1)

    @property
    def surge(self) -> int:
        """How many pods there may be beyond the wanted number."""
        return 0 if self.recreate else self.fenceposts[0]

    @property
    def unavailable(self) -> int:
        """How many of the wanted pods may be unavailable."""
        return 0 if self.recreate or not self.replicas else min(self.replicas, self.fenceposts[1])

    @property
    def most(self) -> int:
        """How many pods there may be."""
        return self.replicas + self.surge


class ReplicaSet(Struct, frozen=True, gc=False, kw_only=True):
    """One of the ReplicaSets of a Deployment."""

    number: int
    """In the order of creation, from 1."""
    replicas: int = 0
    """How many pods it is to have."""
    desired: int | None = None
    """What the Deployment wanted when it last scaled this one (annotation ``desired-replicas``)."""
    most: int | None = None
    """The same with the surge (annotation ``max-replicas``)."""
    pods: int = 0
    """How many active pods it has."""
    ready: int = 0
    available: int = 0


class DeploymentView(Struct, frozen=True, gc=False):
    """A Deployment and its ReplicaSets."""

    spec: DeploymentSpec
    new: ReplicaSet | None
    """The one whose template is the Deployment's; None before it is created."""
    old: tuple[ReplicaSet, ...] = ()
    """All others, in the order of creation."""
    old_pods_run: bool = False
    """Whether a pod of an old one is still there, even if it is terminating."""

    @property
    def all(self) -> tuple[ReplicaSet, ...]:
        """All of them."""
        return self.old if self.new is None else (*self.old, self.new)


def sync(view: DeploymentView) -> tuple[ReplicaSet, ...]:
    """Return the ReplicaSets that are scaled now, or created, with their new size; none if there is nothing to do."""
    if _is_scaling(view):
        return _scale(view)
    return _recreate(view) if view.spec.recreate else _roll(view)


def _sized(spec: DeploymentSpec, scaled_set: ReplicaSet, replicas: int) -> ReplicaSet:
    return replace(scaled_set, replicas=replicas, desired=spec.replicas, most=spec.most)


# ---- rolling update --------------------------------------------------------------------------------------------------


def _roll(view: DeploymentView) -> tuple[ReplicaSet, ...]:
    """Scale up, if possible, else down (``rolloutRolling``)."""
    spec = view.spec
    if view.new is None:
        created = ReplicaSet(number=max((old.number for old in view.old), default=0) + 1)
        return (_sized(spec, created, _new_size(spec, view.all, created)),)
    if view.new.replicas > spec.replicas:
        return (_sized(spec, view.new, spec.replicas),)
    size = _new_size(spec, view.all, view.new)
    return (_sized(spec, view.new, size),) if size != view.new.replicas else _scale_down(view, view.new)


def _new_size(spec: DeploymentSpec, everything: Sequence[ReplicaSet], new: ReplicaSet) -> int:
    """Return how many pods the new ReplicaSet may have (``NewRSNewReplicas``)."""
    if spec.recreate:
        return spec.replicas
    room = spec.replicas + scaled(spec.max_surge, spec.replicas, round_up=True) - _total(everything)
    return new.replicas if room <= 0 else new.replicas + min(room, spec.replicas - new.replicas)


def _scale_down(view: DeploymentView, new: ReplicaSet) -> tuple[ReplicaSet, ...]:
    """Scale down old ReplicaSets (``reconcileOldReplicaSets``): first by what is unavailable, then by what is spare."""
    spec = view.spec
    least = spec.replicas - spec.unavailable
    most_down = _total(view.all) - least - (new.replicas - new.available)
    if not _total(view.old) or most_down <= 0:
        return ()
    sizes = {old.number: old.replicas for old in view.old if old.replicas}
    available = {old.number: old.available for old in view.old}
    cleaned = 0
    for number, size in sizes.items():
        count = max(0, min(most_down - cleaned, size - available[number]))
        sizes[number] = size - count
        cleaned += count
    spare = sum(old.available for old in view.all) - least
    for number, size in sizes.items():
        count = min(size, max(0, spare))
        sizes[number] = size - count
        spare -= count
    return tuple(_sized(spec, old, sizes[old.number]) for old in view.old if sizes.get(old.number, 0) != old.replicas)


# ---- Recreate --------------------------------------------------------------------------------------------------------


def _recreate(view: DeploymentView) -> tuple[ReplicaSet, ...]:
    """Scale all old ReplicaSets to 0; when none of their pods is left, scale up the new one (``rolloutRecreate``)."""
    spec = view.spec
    down = tuple(_sized(spec, old, 0) for old in view.old if old.replicas)
    if down or view.old_pods_run:
        return down
    new = view.new or ReplicaSet(number=max((old.number for old in view.old), default=0) + 1)
    is_wanted = view.new is None or new.replicas != spec.replicas
    return (_sized(spec, new, spec.replicas),) if is_wanted else ()


# ---- scaling ---------------------------------------------------------------------------------------------------------


def _is_scaling(view: DeploymentView) -> bool:
    """Whether the wanted number has changed since an active ReplicaSet was last scaled (``isScalingEvent``)."""
    return any(
        active.desired is not None and active.desired != view.spec.replicas for active in view.all if active.replicas
    )


def _scale(view: DeploymentView) -> tuple[ReplicaSet, ...]:
    """Scale the only active ReplicaSet, or all in proportion (``scale``)."""
    spec, new = view.spec, view.new
    active = [known for known in view.all if known.replicas]
    if len(active) == 1:
        return () if active[0].replicas == spec.replicas else (_sized(spec, active[0], spec.replicas),)
    if new is not None and new.replicas == new.desired == new.available == spec.replicas:
        return tuple(_sized(spec, old, 0) for old in view.old if old.replicas)
    if spec.recreate:
        return ()
    allowed = spec.most if spec.replicas else 0
    to_add = allowed - _total(active)
    # The largest first; of equal ones, the newest when adding and the oldest when removing.
    active.sort(key=lambda known: (-known.replicas, -known.number if to_add > 0 else known.number))
    added, sizes = 0, {}
    for known in active:
        share = _share(spec, known, to_add, added)
        sizes[known.number] = known.replicas + share
        added += share
    sizes[active[0].number] = max(0, sizes[active[0].number] + to_add - added)
    return tuple(_sized(spec, known, sizes[known.number]) for known in active)


def _share(spec: DeploymentSpec, known: ReplicaSet, to_add: int, added: int) -> int:
    """Return what one ReplicaSet gets of what is added or removed (``GetReplicaSetProportion``)."""
    if to_add in {0, added}:
        return 0
    if not spec.replicas:
        fraction = -known.replicas
    else:
        assert known.most, "an active ReplicaSet has been scaled by its Deployment"
        fraction = _rounded(known.replicas * spec.most, known.most) - known.replicas
    return min(fraction, to_add - added) if to_add > 0 else max(fraction, to_add - added)


def _rounded(dividend: int, divisor: int) -> int:
    """Return a quotient, rounded half up."""
    return (2 * dividend + divisor) // (2 * divisor)


def _total(sets: Sequence[ReplicaSet]) -> int:
    return sum(known.replicas for known in sets)


# ---- progress --------------------------------------------------------------------------------------------------------


class ProgressReason(StrEnum):
    """The reason of a Deployment's condition ``Progressing``."""

    CREATED = "NewReplicaSetCreated"
    UPDATED = "ReplicaSetUpdated"
    COMPLETE = "NewReplicaSetAvailable"
    TIMED_OUT = "ProgressDeadlineExceeded"


class DeploymentProgress(Struct, frozen=True, gc=False, kw_only=True):
    """A Deployment's status, as far as progress is concerned."""

    reason: ProgressReason = ProgressReason.COMPLETE
    updated_us: int = 0
    """When it last made progress."""
    pods: int = 0
    updated: int = 0
    ready: int = 0
    available: int = 0


def begun(progress: DeploymentProgress, now_us: int) -> DeploymentProgress:
    """Return the progress after a ReplicaSet was created."""
    return replace(progress, reason=ProgressReason.CREATED, updated_us=now_us)


def progressed(view: DeploymentView, before: DeploymentProgress, now_us: int) -> DeploymentProgress:
    """Return the progress after a sync (``syncRolloutStatus``)."""
    new = view.new
    after = replace(
        before,
        pods=sum(known.pods for known in view.all),
        updated=0 if new is None else new.pods,
        ready=sum(known.ready for known in view.all),
        available=sum(known.available for known in view.all),
    )
    if before.reason is ProgressReason.COMPLETE and after.pods == after.updated:
        return after
    if after.updated == after.pods == after.available == view.spec.replicas:
        return replace(after, reason=ProgressReason.COMPLETE, updated_us=now_us)
    is_progress = (
        after.updated > before.updated
        or after.pods - after.updated < before.pods - before.updated
        or after.ready > before.ready
        or after.available > before.available
    )
    if is_progress:
        return replace(after, reason=ProgressReason.UPDATED, updated_us=now_us)
    is_late = after.updated_us + view.spec.progress_deadline_seconds * SECOND_US < now_us
    if is_late and after.reason is not ProgressReason.COMPLETE:
        return replace(after, reason=ProgressReason.TIMED_OUT)
    return after


def check_us(spec: DeploymentSpec, progress: DeploymentProgress) -> int | None:
    """Return when the controller looks whether the deadline has passed; None if it need not."""
    if progress.reason in {ProgressReason.COMPLETE, ProgressReason.TIMED_OUT}:
        return None
    return progress.updated_us + spec.progress_deadline_seconds * SECOND_US + _RECHECK_US
