"""What would have saved a pod that the guard chose: the same pass made again with one change, off the fast path."""

from __future__ import annotations

from podqos.agent.reasons import Saving, WouldHaveSaved
from podqos.eviction.manager import ManagerConfig, ManagerState
from podqos.eviction.observation import Observation
from podqos.model.pod import Pod


def what_would_have_saved(
    config: ManagerConfig,
    before: ManagerState,
    now_us: int,
    observation: Observation,
    *,
    pods: tuple[Pod, ...],
    uid: str,
) -> WouldHaveSaved:
    """Return the changes that work; ``before`` is the manager's state before its pass."""
    from podqos.survival.kubelet_counterfactual import KubeletMoment, kubelet_counterfactuals

    moment = KubeletMoment(config, before, now_us, observation, pods)
    return WouldHaveSaved(
        tuple(
            Saving(each.change.value, each.resource, each.amount, each.container, each.decision.instead)
            for each in kubelet_counterfactuals(moment, uid)
            if each.saves
        )
    )
