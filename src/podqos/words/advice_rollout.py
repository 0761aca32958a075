"""What it takes to bring advice to running pods, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.advice.sizing.rollouts import Rollout, RolloutKind
from podqos.advice.sizing.tried import PoolNeed
from podqos.wording import counted, listed
from podqos.words.drift import resize_words

_KINDS = {
    RolloutKind.RECREATE: "strategy Recreate: all pods stop before new ones start, so plan for downtime",
    RolloutKind.ON_DELETE: "pods pick up the change only when they are deleted",
    RolloutKind.NEXT_RUN: "running pods are unaffected; the next run gets the new sizes",
    RolloutKind.OTHER: "rolled out by its own controller",
    RolloutKind.REPLACED: "no controller: delete and recreate the pod",
}


def rollout_words(rollout: Rollout) -> str:
    """Return what restarts, what it needs meanwhile, and how to go back."""
    return "; ".join(_rollout(rollout))


def _rollout(rollout: Rollout) -> Iterator[str]:
    if rollout.kind is RolloutKind.ROLLING:
        parts = []
        if rollout.surge:
            parts.append(f"up to {counted(rollout.surge, 'extra pod')}")
        if rollout.unavailable:
            parts.append(f"up to {rollout.unavailable} unavailable")
        yield f"rolling update with {listed(parts)}"
    else:
        yield _KINDS[rollout.kind]
    if rollout.surge_fits is False:
        way = "it fits with maxSurge 0 and maxUnavailable 1" if rollout.turn_fits else "add a node first"
        yield f"no room for extra pods while the old ones run: {way}"
    if rollout.resize is not None:
        yield resize_words(rollout.resize)
    if rollout.budgets:
        yield f"{listed(rollout.budgets)} applies to drains, not to rollouts"
    if rollout.undo:
        yield f"undo: {rollout.undo}"


def nodes_to_add(pools: Sequence[PoolNeed]) -> str:
    """Return which nodes to add before anything else."""
    said = listed([f"{(pool.needed or 0) - pool.nodes} of {pool.pool}" for pool in pools])
    return f"add nodes, or pods stay pending: {said}"


def nodes_to_remove(pools: Sequence[PoolNeed]) -> str:
    """Return which nodes are no longer needed."""
    said = listed([f"{pool.spared} of {pool.pool}" for pool in pools])
    return f"drain and remove spare nodes, one at a time: {said}"
