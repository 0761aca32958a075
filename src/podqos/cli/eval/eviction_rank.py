"""``podqos eval eviction_rank``: the order in which pods are evicted for a signal."""

from __future__ import annotations

import msgspec

from podqos.cli.eval.resources import pod_of
from podqos.eviction.ranking import Ranking, rank
from podqos.eviction.signals import Signal, layout_of
from podqos.model.stats import PodStats


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``eviction_rank``."""
    pods = [pod_of(pod) for pod in msgspec.convert(input["pods"], list[object])]
    stats = msgspec.convert(input["podStats"] or [], tuple[PodStats, ...])
    layout = layout_of(
        dedicated_image_fs=bool(input["dedicatedImageFs"]), split_container_fs=bool(input["splitContainerFs"])
    )
    ranked = rank(pods, {entry.pod_ref.uid: entry for entry in stats}, Ranking(Signal(str(input["signal"])), layout))
    return {"order": [entry.pod.metadata.name for entry in ranked]}
