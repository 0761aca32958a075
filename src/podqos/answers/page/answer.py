"""The answer card of the cluster view: who dies first and why, kubelet or kernel, and the safest fix.

Who dies first on which node is part of the cluster view, because its pods are ranked anyway. What takes longer is asked
for afterwards, for one node: the race between kubelet and kernel, as ``forecast`` runs it, and a fix that was tried.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from heapq import nsmallest

from msgspec import Struct

from podqos.agent.journal import By
from podqos.answers.page.cluster import NextDeath, NodePanel
from podqos.answers.page.pod import SaferEdit, WithheldChange
from podqos.survival.forecast.turning import TurningRates

MOST_NEXT = 10
"""So many of the next deaths of a cluster are listed."""


class LikelyEnd(Struct, frozen=True, gc=False, rename="camel"):
    """What happens at a growth, and how likely that is."""

    by: By
    pod: str
    probability: Fraction
    text: str


class GrowthAnswer(Struct, frozen=True, rename="camel"):
    """Whether kubelet or kernel acts first while a container grows; ``podqos forecast`` says the same."""

    growing: str
    """``namespace/name:container``: what the forecast opens with."""
    rate_bytes_per_second: int
    """The growth that ``ends`` are about."""
    first_by: By
    """Which of the two is more likely to be first at that growth."""
    kubelet_first: Fraction
    turning: TurningRates
    text: str
    """Up to which growth the kubelet is first, and from which on the kernel."""
    ends: tuple[LikelyEnd, ...]
    """By time, as the forecast has them."""
    verdict: str = ""
    """How it ends at that growth, as one sentence."""


class Unknown(Struct, frozen=True, rename="camel"):
    """What the answer lacks: what is assumed instead, and how to get it."""

    text: str
    how: str


class AnswerFix(Struct, frozen=True, rename="camel"):
    """The safest fix that was found for a pod that is first in an order. It was applied, and the node ranked again."""

    pod: str
    by: By
    """Which of the two it is protected against, in whose order it is first now."""
    edit: SaferEdit
    copied: str
    """What *Copy* puts on the clipboard: a command of kubectl, or lines of YAML."""
    is_command: bool


class AnswerView(Struct, frozen=True, rename="camel"):
    """What is asked for after the cluster view, about one node."""

    node: str
    growth: GrowthAnswer | None
    """Null where nothing on the node can grow, or its pods are in no order."""
    fix: AnswerFix | None
    no_fix: str
    """Why there is none; empty where there is one."""
    unknowns: tuple[Unknown, ...]
    problem: str = ""
    """What keeps the node from being judged; empty where nothing does."""
    withheld: WithheldChange | None = None
    """What ``noFix`` says of a change that can be tried all the same."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "AnswerView"


def next_deaths(panels: Iterable[NodePanel]) -> tuple[NextDeath, ...]:
    """Return the next pods to die, on nodes with the least headroom; on a node of its own each."""
    return tuple(nsmallest(MOST_NEXT, _deaths(panels), key=lambda death: (death.headroom_bytes, death.node)))


def _deaths(panels: Iterable[NodePanel]) -> Iterator[NextDeath]:
    for panel in panels:
        is_kernel = panel.first_by is By.KERNEL
        victim = panel.next_killed if is_kernel else panel.next_evicted
        left = panel.kernel_left_bytes if is_kernel else panel.headroom_bytes
        if victim is not None and left is not None and panel.first_by is not None:
            yield NextDeath(
                panel.name,
                victim.pod,
                panel.first_by,
                left,
                victim.explanation,
                victim.is_assumed,
                victim.qos_class,
            )
