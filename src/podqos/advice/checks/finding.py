"""What a check finds, as values: where, what, what follows for survival, and what to write instead.

The facts of a finding are a structure of its check, which also words them. Its consequence says how the kill orders
change; its patch is a list of fields with their new values. The text that belongs to a check and not to a finding (its
title, why it matters) is data of the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Self, TypeAlias

from msgspec import Struct

from podqos.manifest.edits.writing import FlowStyle, flow_value
from podqos.manifest.plain import Plain
from podqos.manifest.text import Place
from podqos.model.pod import QOSClass


class FindingSeverity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """Does not work, or kills important pods."""
    WARNING = "warning"
    """Works until memory runs short."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the worst: findings are listed in this order, and ``--min-severity`` compares by it."""
        return _RANKS[self]


_RANKS = {FindingSeverity.ERROR: 0, FindingSeverity.WARNING: 1, FindingSeverity.INFO: 2}


class FailOn(StrEnum):
    """From which severity on findings make a gate fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"

    def fails(self, severity: FindingSeverity) -> bool:
        """Whether a finding of this severity makes it fail."""
        return self is not FailOn.NEVER and severity.rank <= FindingSeverity(self.value).rank


class Fact(Struct, frozen=True, gc=False, tag_field="type", tag=True, rename="camel"):
    """What one finding is about, as data: which resource, which numbers. Amounts are texts, as Kubernetes prints them.

    Every check has a structure of its own, or shares one. They are tagged with their names, so that a finding written
    as JSON can be read back.
    """

    def sentence(self, container: str) -> str:
        """Return what was found, without a full stop; ``container`` is the finding's, or nothing."""
        raise NotImplementedError

    def summary(self) -> str:
        """Return the finding in a few words, for a headline; empty where the check's title says enough."""
        return ""

    def cause(self) -> str:
        """Return in a few words why pods die earlier because of it, for a headline; empty where they need not."""
        return ""

    def harm(self) -> str:
        """Return what is bad about it for pods that are safe when memory runs short; empty where ``sentence`` says."""
        return ""

    def without(self) -> str:
        """Return what has to happen for the pod to stand as without the finding."""
        return "once fixed"


# Kubernetes reads a number there as well as a text: cpu: 2 needs no quotes.
_QUANTITY_FIELD = re.compile(r"(?:^|\.)(?:resources|overhead|hard)\.|\.limits\[\d+\]\.|\.sizeLimit$")
EditValue: TypeAlias = str | int | bool | list[str] | dict[str, str] | None


class FieldEdit(Struct, frozen=True, gc=False):
    """One field to write; ``value`` null removes it. Parents that are not there are made."""

    path: str
    """From the object's root, as ``manifest.plain.format_path`` writes it:
    ``spec.template.spec.containers[0].resources.limits.memory``, ``evictionHard[memory.available]``."""
    value: EditValue
    replaces: str | None = None
    """What stands there now, for a reader; None where there is nothing."""

    @property
    def text(self) -> str:
        """The edit as it is written: ``path: value``."""
        if self.value is None:
            return f"remove {self.path}"
        was = f" (was {self.replaces})" if self.replaces else ""
        is_amount = isinstance(self.value, str) and _QUANTITY_FIELD.search(self.path) is not None
        written = self.value if is_amount else flow_value(plain_value(self.value), FlowStyle())
        return f"{self.path}: {written}{was}"


def plain_value(value: EditValue) -> Plain:
    """Return what an edit writes."""
    if isinstance(value, dict):
        return dict(value)
    return list(value) if isinstance(value, list) else value


class Choice(StrEnum):
    """What has to be chosen before anything can be written."""

    words: str

    def __new__(cls, value: str, words: str) -> Self:
        """Make a member: its name in JSON, and what to choose in words."""
        member = str.__new__(cls, value)
        member._value_, member.words = value, words
        return member

    RESOURCES = "resources", "set requests and limits that match the containers' usage"
    MEMORY_LIMIT = "memory-limit", "set a memory limit"
    EPHEMERAL_STORAGE_LIMIT = "ephemeral-storage-limit", "set an ephemeral-storage limit"
    VOLUME_SIZE_LIMIT = "volume-size-limit", "set a size limit"
    PRIORITY_CLASS = "priority-class", "set a PriorityClass"
    SMALLER_LIMITS = "smaller-limits", "choose whose limits to lower, or add nodes"
    SMALLER_REQUESTS = "smaller-requests", "choose whose requests to lower, or add nodes"
    ONE_DEFAULT = "one-default", "choose which LimitRange sets the default"
    RESERVATION = "reservation", "reserve what the daemons use"
    SIDECAR_FORM = (
        "sidecar-form",
        "make the pod Guaranteed, or the sidecar an init container with restartPolicy: Always",
    )
    AMOUNT = "amount", "use an amount that the API server accepts"
    FIELD = "field", "use a value that the API server accepts"
    UNIT = "unit", "write the intended amount"
    POD_SPEC_PATCH = "pod-spec-patch", "write it into podSpecPatch"
    THRESHOLD = "threshold", "choose another value"
    INJECTOR_RESOURCES = "injector-resources", "set requests and limits for the injected containers"
    QUOTA = "quota", "raise the quota, or request fewer or smaller pods"
    AUTOSCALER = "autoscaler", "change the target or the limit"
    MOST_REPLICAS = "most-replicas", "lower maxReplicas, or make room for that many pods"
    QOS_CLASS = "qos-class", "choose Guaranteed, Burstable or BestEffort"
    DISRUPTIONS = "disruptions", "allow at least one pod to be evicted, or run more of them"
    USAGE = (
        "usage",
        "look up the peak (kubectl top pod --containers, or container_memory_working_set_bytes) and request that much",
    )
    HEAP = "heap", "lower the setting, or raise the limit (kubectl top pod --containers shows current usage)"
    KNOWN_SETTING = "known-setting", "write the value into the manifest, or compare it with the limit yourself"
    SHARE = "share", "use a percentage, or a number below what the node has (df -i; sysctl kernel.pid_max)"


class CostKind(StrEnum):
    """What a fix costs."""

    THROTTLING = "throttling"
    """A CPU limit: once the container has used its share of a period of 100 ms, it stands still until the next."""
    MEMORY_LIMIT = "memory-limit"
    """A memory limit where there was none: what uses more is OOM-killed."""
    RESERVATION = "reservation"
    """More is requested, which is kept free on a node whether it is used or not, and paid for."""


class FixCost(Struct, frozen=True, gc=False, rename="camel"):
    """One thing that a fix costs."""

    kind: CostKind
    container: str
    """Empty for the pod as a whole."""
    resource: str
    amount: str
    """The new limit, or what is requested more by each pod."""
    text: str
    """In words."""


class Alternative(Struct, frozen=True, gc=False):
    """Another way out, which a person has to choose: ``--fix`` never applies it. It has been tried like a fix."""

    name: str
    """``guaranteed``."""
    edits: tuple[FieldEdit, ...]
    costs: tuple[FixCost, ...]
    text: str


class Patch(Struct, frozen=True, gc=False, rename="camel"):
    """What makes the finding go away."""

    is_complete: bool
    """Whether it can be applied as it is; otherwise something has to be chosen first."""
    edits: tuple[FieldEdit, ...]
    """All of them together are enough. Empty where something has to be chosen first."""
    needs_choice: Choice | None
    candidates: tuple[str, ...]
    """What can be chosen, where that is known: the names of priority classes."""
    text: str
    """The same in words, a line for each edit."""
    paths: tuple[str, ...]
    """Where the chosen values are to be written."""
    on_request: bool = False
    """Whether ``--fix`` leaves it alone unless the check is named (``--only``): it rests on a rule of thumb, or on
    another object's policy, or costs something: a CPU limit throttles."""
    is_tried: bool = False
    """Whether the edits were applied and the result was checked: it is admitted, fits a node, and is better by the
    checks' own measure. What was not tried is not printed as a fix; ``--fix`` and ``--diff`` try it."""
    refuted: str = ""
    """What was tried and did not help, and why; empty where nothing was refuted."""
    costs: tuple[FixCost, ...] = ()
    """What the edits cost."""
    look_up: str = ""
    """The number that nobody but a running system knows, and the command that shows it; empty where none is needed."""
    alternatives: tuple[Alternative, ...] = ()
    """What can be chosen instead."""

    @property
    def is_applied(self) -> bool:
        """Whether ``--fix`` applies it."""
        return self.is_complete and self.is_tried and not self.on_request

    @property
    def is_waiting(self) -> bool:
        """Whether ``--fix`` applies it as soon as its check is named."""
        return self.is_tried and self.on_request

    @classmethod
    def write(cls, *edits: FieldEdit) -> Patch:
        """Return the patch that makes all of these edits."""
        return cls(bool(edits), edits, None, (), "\n".join([edit.text for edit in edits]), ())

    @classmethod
    def choose(cls, choice: Choice, paths: Sequence[str] = (), candidates: tuple[str, ...] = ()) -> Patch:
        """Return the patch that lacks a choice, which is then written at ``paths``."""
        named = f": {' or '.join(candidates)}" if candidates else ""
        where = f" ({', '.join(paths)})" if paths else ""
        return cls(False, (), choice, candidates, f"{choice.words}{named}{where}", tuple(paths))


class CheckedObject(Struct, frozen=True, gc=False):
    """The object a finding is about, and where it stands."""

    kind: str
    name: str
    namespace: str = ""
    """Empty for what has none."""
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


class PodStanding(Struct, frozen=True, gc=False, rename="camel"):
    """Where a pod stands when memory runs short."""

    qos_class: QOSClass
    priority: int
    oom_score_adj: int
    """The highest of its containers: the kernel kills that one first."""
    container: str
    """The container with that score."""
    is_spared: bool = False
    """Critical: the kubelet never evicts it."""


class AssumedUsage(StrEnum):
    """What pods are assumed to use where nothing is measured."""

    LIMITS = "limits"
    """Each container its memory limit; without one twice its request; without either 64Mi, as everywhere."""


class Effect(StrEnum):
    """On what a finding has an effect, and so what its consequence says."""

    ORDER = "order"
    """On the kill orders when memory runs short."""
    STANDING = "standing"
    """On the pods alone: they keep their places among the others."""
    DISK = "disk"
    """On which pods are evicted when the node's disk fills up."""
    NOT_CREATED = "not-created"
    """There will be no pod."""
    FEWER = "fewer"
    """Not all of its pods will be there."""
    LIMIT = "limit"
    """On the container alone, at its own memory limit."""
    NODE = "node"
    """On whether the kubelet or the kernel chooses the victims of a node."""
    NONE = "none"
    """On no order."""


class Consequence(Struct, frozen=True, gc=False, rename="camel"):
    """What a finding does to survival: which workloads it goes before because of it."""

    effect: Effect
    now: PodStanding | None = None
    """Of the pods of the subject; None for findings about nodes."""
    repaired: PodStanding | None = None
    """Where they would stand without the finding; None where that is unknown, or the same."""
    evicted_before: str | None = None
    """The least important workload that the kubelet evicts after the subject, and, without the finding, would evict
    before it."""
    killed_before: str | None = None
    """The same for the kernel's OOM killer."""
    is_compared: bool = False
    """Whether both were compared with the pods as they would be without the finding."""
    disk_request: str | None = None
    """The ephemeral-storage request, above which a pod is evicted first when the disk runs full."""
    usage: AssumedUsage = AssumedUsage.LIMITS
    """What the orders assume that pods use."""


class SuppressedBy(StrEnum):
    """What suppressed a finding."""

    ANNOTATION = "annotation"
    CONFIGURATION = "configuration"
    BASELINE = "baseline"
    POLICY = "policy"
    """An exemption in the policy that is violated."""


class Suppression(Struct, frozen=True, gc=False):
    """What suppressed the finding, and why."""

    by: SuppressedBy
    reason: str = ""


class Finding(Struct, frozen=True, gc=False):
    """One thing that one check found."""

    check: str
    """The check's id, such as ``PQ101``."""
    severity: FindingSeverity
    subject: CheckedObject
    path: str
    """The field at fault, from the object's root; empty for the object as a whole."""
    facts: Fact
    consequence: Consequence
    patch: Patch
    container: str | None = None
    suppression: Suppression | None = None
    is_lowered: bool = False
    """Whether it would be more severe in a file that is neither a test nor an example."""

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
