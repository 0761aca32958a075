"""Node-level reclaim: what the node deletes before it evicts a pod, and whether that was enough.

What is deleted for which signal on which layout is in the table of ``signals``; for memory and process ids it is
nothing. The clean-up starts as soon as a threshold acts; the pressure transition period has nothing to do with it.

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (reclaimNodeLevelResources).
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.eviction.conditions import Observations, thresholds_met
from podqos.eviction.signals import SIGNALS, CleanUp, Layout, Signal
from podqos.eviction.thresholds import Threshold


def clean_up_for(signal: Signal, layout: Layout) -> tuple[CleanUp, ...]:
    """Return what can be thrown away for a signal, in the order in which it is."""
    return SIGNALS[signal].clean_up[layout]


def is_relieved(thresholds: Iterable[Threshold], observed: Observations) -> bool:
    """Whether no pod has to go any more: nothing of all thresholds, minimum reclaim included, is met."""
    return not thresholds_met(thresholds, observed, with_min_reclaim=True)
