"""How to bring advice to running pods: what restarts, in which order, with what spare room, and how to go back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.matrix import PriorityTier
from podqos.advice.sizing.rollouts import Rollout, RolloutKind, Step, StepKind, strategy_of
from podqos.advice.sizing.tried import AdviceTrial
from podqos.answers.advice_effects import Amounts
from podqos.answers.advice_trial import Trials
from podqos.manifest.plain import Plain
from podqos.model.disruption import PodDisruptionBudget, disruptions_allowed
from podqos.model.pod import Pod, Workload
from podqos.model.selector import selects
from podqos.survival.drift.drift import Identity
from podqos.survival.drift.resizing import ResizeCost
from podqos.wording import listed
from podqos.words.advice_rollout import nodes_to_add, nodes_to_remove, rollout_words

_UNDONE = ("Deployment", "StatefulSet", "DaemonSet")


class Rolled(Struct, frozen=True):
    """A workload that advice changes."""

    identity: Identity
    workload: Workload
    value: Mapping[str, Plain]
    """Everything that its object says."""
    replicas: int
    after: Pod
    added: Amounts
    """What all its pods request more."""
    resize: ResizeCost | None


def rollouts(
    rolled: Sequence[Rolled], trials: Trials, budgets: Sequence[PodDisruptionBudget]
) -> dict[Identity, Rollout]:
    """Return what bringing the advice to each workload takes."""
    found = {}
    for each in rolled:
        kind, share = strategy_of(each.workload.kind, each.value, each.replicas)
        fits = trials.has_room_for(each.identity, each.after, share.surge) if share.surge else None
        made = Rollout(
            kind=kind,
            resize=each.resize,
            surge=share.surge,
            unavailable=share.unavailable,
            surge_fits=fits,
            turn_fits=trials.has_room_for(each.identity, each.after, 1, instead=True) if fits is False else None,
            budgets=tuple(_covering(each, budgets)),
            undo=_undo(each, kind),
        )
        found[each.identity] = replace(made, text=rollout_words(made))
    return found


def _covering(rolled: Rolled, budgets: Sequence[PodDisruptionBudget]) -> Iterator[str]:
    namespace, labels = rolled.identity.namespace, rolled.workload.pod.metadata.labels
    for budget in budgets:
        metadata = budget.metadata
        if metadata.namespace_or_default == namespace and selects(budget.spec.selector, labels):
            allowed = disruptions_allowed(budget, healthy=rolled.replicas, expected=rolled.replicas)
            yield f"PodDisruptionBudget {metadata.name} (allows {allowed} of {rolled.replicas} to be disrupted)"


def _undo(rolled: Rolled, kind: RolloutKind) -> str:
    identity = rolled.identity
    if identity.kind in _UNDONE:
        return f"kubectl rollout undo {identity.kind.lower()}/{identity.name} -n {identity.namespace}"
    if kind is RolloutKind.NEXT_RUN:
        return "apply the old manifest before the next run"
    return "apply the old manifest"


def steps_of(
    rolled: Sequence[Rolled], classes: Sequence[PriorityTier], trial: AdviceTrial | None, *, grow_first: bool
) -> tuple[Step, ...]:
    """Return the steps in order; ``grow_first``: whether workloads that need more fit before others need less."""
    steps: list[Step] = []
    if classes:
        names = tuple(qos_class.name for qos_class in classes)
        text = f"create the priority classes {listed(names)} first: pods that name a missing one are rejected"
        steps.append(Step(StepKind.CREATE_CLASSES, names, text))
    pools = () if trial is None else trial.pools
    missing = [pool for pool in pools if (pool.needed or 0) > max(pool.nodes, pool.needed_before or 0)]
    if missing:
        steps.append(Step(StepKind.ADD_NODES, tuple(pool_need.pool for pool_need in missing), nodes_to_add(missing)))
    grow = tuple(str(each.identity) for each in rolled if _grows(each))
    shrink = tuple(str(each.identity) for each in rolled if not _grows(each))
    growing = Step(StepKind.GROW, grow, f"apply increases, one workload at a time: {listed(grow)}")
    shrinking = Step(StepKind.SHRINK, shrink, f"apply decreases: {listed(shrink)}")
    ordered = (growing, shrinking) if grow_first else (shrinking, growing)
    if grow and shrink and not grow_first:
        ordered = (replace(shrinking, text=f"{shrinking.text} first (the increases need the room)"), growing)
    steps += [step for step in ordered if step.names]
    if rolled:
        text = "watch OOM kills, evictions and throttling for a normal day, then run advise again with the new samples"
        steps.append(Step(StepKind.WATCH, (), text))
    saved = [pool for pool in pools if pool.spared > 0]
    if saved and not missing:
        steps.append(Step(StepKind.REMOVE_NODES, tuple(pool_need.pool for pool_need in saved), nodes_to_remove(saved)))
    return tuple(steps)


def _grows(rolled: Rolled) -> bool:
    return rolled.added.memory_bytes > 0 or (rolled.added.memory_bytes == 0 and rolled.added.cpu_milli >= 0)
