"""What it takes to bring advice to running pods, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.advice.sizing.rollouts import Rollout, RolloutKind
from podqos.advice.sizing.tried import PoolNeed
from podqos.wording import counted, listed
from podqos.words.drift import resize_words

_KINDS = {
    RolloutKind.RECREATE: "a new template ends all pods before the first new one starts: plan an outage",
    RolloutKind.ON_DELETE: "a new template reaches a pod only when it is deleted",
    RolloutKind.NEXT_RUN: "what runs goes on as it is; the next run has the new sizes",
    RolloutKind.OTHER: "its own controller brings a new template to the pods",
    RolloutKind.REPLACED: "the pod has no controller: delete it and create it again",
}


def rollout_words(rollout: Rollout) -> str:
    """Return what restarts, what it needs meanwhile, and how to go back."""
    return "; ".join(_rollout(rollout))


def _rollout(rollout: Rollout) -> Iterator[str]:
    if rollout.kind is RolloutKind.ROLLING:
        parts = []
        if rollout.surge:
            parts.append(f"up to {counted(rollout.surge, 'pod')} more")
        if rollout.unavailable:
            parts.append(f"up to {rollout.unavailable} fewer")
        yield f"a new template replaces the pods step by step, with {listed(parts)} meanwhile"
    else:
        yield _KINDS[rollout.kind]
    if rollout.surge_fits is False:
        way = "with maxSurge 0 and maxUnavailable 1 they do" if rollout.turn_fits else "add a node first"
        yield f"the additional pods find no node beside the old ones: {way}"
    if rollout.resize is not None:
        yield resize_words(rollout.resize)
    if rollout.budgets:
        yield f"{listed(rollout.budgets)} counts for drains, not for a rollout"
    if rollout.undo:
        yield f"undo: {rollout.undo}"


def nodes_to_add(pools: Sequence[PoolNeed]) -> str:
    """Return which nodes to add before anything else."""
    said = listed([f"{(each.needed or 0) - each.nodes} of {each.pool}" for each in pools])
    return f"add nodes first, or pods stay pending: {said}"


def nodes_to_remove(pools: Sequence[PoolNeed]) -> str:
    """Return which nodes are no longer needed."""
    said = listed([f"{each.spared} of {each.pool}" for each in pools])
    return f"drain and remove what is no longer needed, one node at a time: {said}"
