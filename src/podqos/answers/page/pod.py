"""The view of a pod: class and why, what is stored and written for it, its place in both orders, and how to be safer.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.agent.journal import By
from podqos.answers.admission import AdmissionReport
from podqos.answers.explanation import Explanation
from podqos.answers.page.edits import PodEdit
from podqos.answers.page.neighbours import PlaceNeighbour
from podqos.answers.page.usage_history import UsageHistory
from podqos.answers.places import EvictionPlace, IdleContainer, KillPlace
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.qos.edits import Edit
from podqos.survival.counterfactual.counterfactual import PodChange
from podqos.words.autopsy_death import AutopsyDeath
from podqos.words.counterfactual import Saving


class PodStanding(Struct, frozen=True, rename="camel"):
    """Where a pod stands on its node."""

    qos_class: QOSClass
    oom_score_adj: int | None
    """Of the container that is killed first."""
    eviction_place: int | None
    kill_place: int | None
    """Among pods."""
    pods: int
    """How many there are in either order."""
    spared: str | None
    """Why the kubelet does not evict it."""


class PatchText(Struct, frozen=True):
    """A patch, to be copied."""

    kubectl: str | None
    """A command; null where an API server would refuse it, and the object has to be made anew."""
    kustomize: str
    """The contents of a patch file."""
    json: str
    """As RFC 6902; empty where the object is not known here, and so not where its containers stand."""


class SaferEdit(Struct, frozen=True, rename="camel"):
    """A way to save a pod: an edit with which it goes later, or how much less it has to use."""

    change: PodChange
    edits: tuple[Edit, ...]
    """The lines to write, from the object's root; none for a priority, and where it has to use less."""
    patch: PatchText | None
    """Null where a line has no value yet, or the object has no kind."""
    after: PodStanding
    by: By = By.KUBELET
    """Whom it was tried against."""
    remedy: Saving | None = None
    """In words: what to change, what follows, who goes instead, what it costs and rests on."""
    target: str = ""
    """The object to edit, as ``Deployment shop/web``: what made the pod; empty where it has to use less."""
    lines: str = ""
    """The edit as YAML of that object, also where it is not known here and there is no patch."""
    tries: tuple[PodEdit, ...] = ()
    """The same as a what-if, which was computed: the pod is safer with it."""
    then: str = ""
    """Who is first in both orders with it."""
    first_in_both: str = ""
    """The pod that is then evicted and OOM-killed first; empty where these are two."""
    still_first: tuple[By, ...] = ()
    """In whose orders the pod itself is first all the same."""


class WithheldChange(Struct, frozen=True, rename="camel"):
    """A change that is not offered as a fix, and why."""

    text: str
    tries: tuple[PodEdit, ...] = ()
    """The same as a what-if, for who wants it anyway; empty where it cannot be had."""


class PodPage(Struct, frozen=True, rename="camel"):
    """Everything that the view of a pod shows."""

    namespace: str
    name: str
    node: str
    workload: str
    """``Deployment shop/web`` for a replica; empty for a pod of its own."""
    kubernetes_version: str
    explanation: Explanation
    """Class and why, container by container, as stored; scores; cgroups with what is written there."""
    admission: AdmissionReport | None
    """How it got there, step by step; null for a pod that is stored already."""
    standing: PodStanding | None
    """Null where its node's pods are in no order."""
    eviction: EvictionPlace | None
    evicted_before: EvictionPlace | None
    """The pod that goes just before it, with why."""
    kills: tuple[KillPlace, ...]
    """Its containers."""
    killed_before: KillPlace | None
    """The container that goes just before its first, with why."""
    problem: str
    """Why it is in no order; empty where it is."""
    safer: tuple[SaferEdit, ...]
    """Lines to write first, then what it could use less. Each was tried."""
    deaths: tuple[AutopsyDeath, ...]
    """Of the past."""
    endings: tuple[str, ...]
    """How its containers were killed, by its status."""
    idle: tuple[IdleContainer, ...] = ()
    """Its containers without a process, and why: they are in no order of the kernel's."""
    neighbours: tuple[PlaceNeighbour, ...] = ()
    """Whom it comes just after and just before in both orders, with the reason."""
    usage: UsageHistory = UsageHistory()
    """What its containers used over time, with the moments at which they were killed or evicted."""
    assumptions: tuple[Assumption, ...] = ()
    unknown: str = ""
    """Why no amount can be computed for it: what it uses is not known; empty where it is."""
    withheld: tuple[WithheldChange, ...] = ()
    """What would save it, and is not among ``safer``."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "PodPage"
