"""What a check finds, as values: where, what, what follows for survival, and what to write instead.

A finding carries no sentence. Its facts are one of the structures of ``facts``, its consequence says who dies before
whom, its patch is a list of fields with their new values; ``report.finding_words`` makes text of them. The text that
belongs to a check and not to a finding (its title, why it matters) is data of the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from podqos.advice.checks.facts import Facts
from podqos.manifest.text import Place
from podqos.model.pod import QOSClass


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """Does not work, or kills what must not die."""
    WARNING = "warning"
    """Works until memory runs short."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the worst: findings are listed in this order, and ``--min-severity`` compares by it."""
        return _RANKS[self]


_RANKS = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}

EditValue: TypeAlias = str | int | bool | list[str] | dict[str, str] | None


class FieldEdit(Struct, frozen=True, gc=False):
    """One field to write. Parents that are not there are made."""

    path: str
    """From the object's root, as ``manifest.plain.format_path`` writes it:
    ``spec.template.spec.containers[0].resources.limits.memory``, ``evictionHard[memory.available]``."""
    value: EditValue
    """None removes the field."""
    replaces: str | None = None
    """What stands there now, for a reader; None where there is nothing."""


class Choice(StrEnum):
    """What somebody has to choose before anything can be written."""

    RESOURCES = "resources"
    """Requests and limits that fit what the containers use."""
    MEMORY_LIMIT = "memory-limit"
    EPHEMERAL_STORAGE_LIMIT = "ephemeral-storage-limit"
    VOLUME_SIZE_LIMIT = "volume-size-limit"
    PRIORITY_CLASS = "priority-class"
    SMALLER_LIMITS = "smaller-limits"
    SMALLER_REQUESTS = "smaller-requests"
    ONE_DEFAULT = "one-default"
    """Which of several LimitRanges is to give the default."""
    RESERVATION = "reservation"
    """What the system and the kubelet themselves use."""
    SIDECAR_FORM = "sidecar-form"
    """Whether a sidecar becomes an init container that restarts, or gets limits like its requests."""
    AMOUNT = "amount"
    """An amount that the API server takes."""
    THRESHOLD = "threshold"
    """A setting that the kubelet takes."""
    INJECTOR_RESOURCES = "injector-resources"
    """Limits for what the injector adds."""
    QUOTA = "quota"
    """A larger quota, or fewer or smaller pods."""


class Patch(Struct, frozen=True, gc=False):
    """What to write to make the finding go away."""

    edits: tuple[FieldEdit, ...] = ()
    """Complete: all of them together are enough. Empty where something has to be chosen first."""
    needs_choice: Choice | None = None
    paths: tuple[str, ...] = ()
    """Where the chosen values are to be written."""
    candidates: tuple[str, ...] = ()
    """What can be chosen, where that is known: the names of priority classes."""

    @property
    def is_complete(self) -> bool:
        """Whether it can be applied without asking anybody."""
        return self.needs_choice is None and bool(self.edits)


class Subject(Struct, frozen=True, gc=False):
    """The object a finding is about, and where it stands."""

    kind: str
    name: str
    namespace: str = ""
    """Empty for what has none."""
    api_version: str = ""
    source: str = ""
    """The file."""
    place: Place | None = None
    """Where in the file."""

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def position(self) -> tuple[int, ...]:
        """Which object of its file it is, for sorting."""
        if self.place is None:
            return ()
        indexes = (step for step in self.place.path if isinstance(step, int))
        return (self.place.chunk.start, self.place.document, *indexes)


class Standing(Struct, frozen=True, gc=False, rename="camel"):
    """Where a pod stands when memory runs short."""

    qos_class: QOSClass
    priority: int
    oom_score_adj: int
    """The highest of its containers: the kernel takes that one first."""
    container: str
    """Whose it is."""
    is_spared: bool = False
    """Critical: the kubelet never evicts it."""


class Usage(StrEnum):
    """What pods are assumed to use where nothing is measured."""

    LIMITS = "limits"
    """Each container its memory limit; without one twice its request; without either 256Mi."""


class Effect(StrEnum):
    """On what a finding has an effect, and so what its consequence says."""

    ORDER = "order"
    """On who dies before whom when memory runs short."""
    STANDING = "standing"
    """On the pods alone: they keep their places among the others."""
    DISK = "disk"
    """On who is evicted when the node's disk runs full."""
    NOT_CREATED = "not-created"
    """There will be no pod."""
    NODE = "node"
    """On who chooses the victims of a node: the kubelet or the kernel."""
    NONE = "none"
    """On no order."""


class Consequence(Struct, frozen=True, gc=False, rename="camel"):
    """What a finding does to survival: who dies before whom because of it."""

    effect: Effect
    now: Standing | None = None
    """Of the pods of the subject; None for findings about nodes."""
    repaired: Standing | None = None
    """Where they would stand but for the finding; None where that is not known, or the same."""
    evicted_before: str | None = None
    """The least important workload that the kubelet evicts after the subject, and, but for the finding, would evict
    before it."""
    killed_before: str | None = None
    """The same for the kernel's OOM killer."""
    disk_request: str | None = None
    """The ephemeral-storage request, above which a pod is evicted first when the disk runs full."""
    first_evicted: str | None = None
    """Whom the kubelet would take first; for findings about nodes."""
    first_killed: str | None = None
    """Whom the kernel takes first."""
    usage: Usage = Usage.LIMITS
    """What the orders assume that pods use."""


class SuppressedBy(StrEnum):
    """Who said that a finding does not matter."""

    ANNOTATION = "annotation"
    CONFIGURATION = "configuration"
    BASELINE = "baseline"


class Suppression(Struct, frozen=True, gc=False):
    """A finding that somebody has seen and left as it is."""

    by: SuppressedBy
    reason: str = ""


class Finding(Struct, frozen=True, gc=False):
    """One thing that one check found."""

    check: str
    """The check's id, such as ``PQ101``."""
    severity: Severity
    subject: Subject
    path: str
    """The field at fault, from the object's root; empty for the object as a whole."""
    facts: Facts
    consequence: Consequence
    patch: Patch
    container: str | None = None
    suppression: Suppression | None = None

    @property
    def order(self) -> tuple[str, tuple[int, ...], str, str, str, str, str]:
        """The order of findings in every report: file, object, check, field, container."""
        subject = self.subject
        of_object = (subject.source, subject.position, subject.kind, subject.key)
        return (*of_object, self.check, self.path, self.container or "")


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by ``Finding.order``, without working out the same object's part again for each of them."""
    keys: dict[int, tuple[str, tuple[int, ...], str, str]] = {}
    ordered: list[tuple[tuple[str, tuple[int, ...], str, str], str, str, str, int, Finding]] = []
    for finding in findings:
        subject = finding.subject
        key = keys.get(id(subject))
        if key is None:
            key = keys[id(subject)] = (subject.source, subject.position, subject.kind, subject.key)
        ordered.append((key, finding.check, finding.path, finding.container or "", len(ordered), finding))
    ordered.sort()
    return tuple(each[-1] for each in ordered)


class Example(Struct, frozen=True):
    """Manifests that show a check, and the options it needs."""

    text: str
    inject: tuple[str, ...] = ()
    """Injectors that are simulated."""
    replaces: str = ""
    """What runs already and is resized to the first workload of ``text``."""


class Check(Struct, frozen=True):
    """A rule by which findings are made."""

    id: str
    name: str
    severity: Severity
    title: str
    """What is wrong, in a few words."""
    why: str
    """What it does to survival."""
    fix: str
    """How to mend it."""
    bad: Example
    good: Example
    effect: Effect = Effect.ORDER
    references: tuple[str, ...] = ()
    """Where upstream the rule can be read."""
