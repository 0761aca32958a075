"""What ``podqos check`` reports: the findings as published, the worst of them in a sentence, and the text for people.

The findings themselves come from ``advice``, as data; here they are worded. The shape is stable: fields are added,
never renamed or removed, and ``docs/schema/check.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.baseline import fingerprint
from podqos.advice.checks.catalogue import CHECKS, Facts
from podqos.advice.checks.finding import (
    Consequence,
    Effect,
    Fact,
    FailOn,
    Finding,
    FindingSeverity,
    Patch,
    PodStanding,
    Suppression,
)
from podqos.advice.checks.gate import CheckSummary
from podqos.advice.fixes.patches import FILE_KINDS
from podqos.amounts import counted, listed
from podqos.manifest.problems import Position
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.pod import CLASS_RANK, QOSClass
from podqos.naming import stated_with
from podqos.objects.purposes import Purpose
from podqos.text.style import Style, labelled, wrapped
from podqos.text.tables import Table

# ---- the answer ------------------------------------------------------------------------------------------------------


class AlsoFound(Struct, frozen=True, gc=False):
    """What a finding is about as well: a copy of the object in another file, or another object at the same place."""

    kind: str
    namespace: str
    name: str
    container: str | None
    source: str
    line: int
    column: int

    @property
    def subject(self) -> str:
        """Kind and name of the object."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class FindingReport(Struct, frozen=True, rename="camel"):
    """One finding."""

    check: str
    """The id of the check, such as ``PQ101``."""
    check_name: str
    severity: FindingSeverity
    title: str
    kind: str
    namespace: str
    name: str
    container: str | None
    source: str
    """The file, or the name of the cluster."""
    line: int
    """Zero where the object comes from a cluster; so is the column."""
    column: int
    path: str
    """The field at fault, from the object's root."""
    reason: str
    consequence: str
    """What it means for the kill order."""
    facts: Facts
    """The reason as data."""
    effects: Consequence
    """The consequence as data."""
    patch: Patch
    fingerprint: str
    """Stays the same when lines move; see the baseline."""
    suppression: Suppression | None
    also: tuple[AlsoFound, ...] = ()
    """What the same finding is about, too: it is counted once."""
    purpose: Purpose | None = None
    """Why its severity is lower than that of its check: the file is a test or an example, by its directory."""

    @property
    def also_text(self) -> str:
        """That in words; empty where there is nothing."""
        others = list(dict.fromkeys(map(self._other, self.also)))
        more = len(others) - _ALSO_NAMED
        return listed(others if more <= 0 else [*others[:_ALSO_NAMED], f"{more:,} more"])

    def _other(self, other: AlsoFound) -> str:
        if other.source != self.source:
            return f"{other.source}:{other.line}"
        if other.subject != self.subject or not other.container:
            return other.subject
        return f"container {other.container}"

    @property
    def subject(self) -> str:
        """Kind and name of the object."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def place(self) -> str:
        """Where it is: file, line and column, or the field of an object of a cluster."""
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.path


class Fate(StrEnum):
    """What becomes of the pods of an object, worst first."""

    NOT_CREATED = "not-created"
    """There will be none."""
    FEWER = "fewer"
    """Not all of them will be there."""
    EARLIER = "earlier"
    """They are evicted or killed before pods that would otherwise go first."""
    DISK = "disk"
    """They are among the first to be evicted when the disk fills up."""
    BY_CLASS = "by-class"
    """They are evicted when their QoS class says."""
    SAFER = "safer"
    """They are better off than their manifest says."""
    NONE = "none"
    """No pod is worse off by itself."""


class CheckVerdict(Struct, frozen=True, rename="camel"):
    """The worst that was found."""

    text: str
    """All of it in one sentence."""
    fate: Fate
    severity: FindingSeverity
    check: str
    kind: str
    namespace: str
    name: str
    reason: str
    is_cause: bool
    """Whether the finding leads to this fate: without it, as it was tried, the pods would have another."""
    others: int
    """How many further objects have the same fate, by findings of any check."""
    fingerprint: str
    """Of the finding, which has the rest: the facts, the consequence, the patch."""


class CheckReport(Listing[FindingReport], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos check -o json``."""

    items: tuple[FindingReport, ...]
    summary: CheckSummary
    kubernetes_version: str
    fail_on: FailOn
    notes: tuple[str, ...] = ()
    """Warnings about the input."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CheckReport"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    verdict: CheckVerdict | None = None
    """The worst of the findings that are not suppressed; null where there is none."""
    cluster: str = ""
    """The name of the cluster whose objects were checked; empty where they are of files."""

    def _listed(self) -> tuple[FindingReport, ...]:
        return self.items

    @property
    def fails(self) -> bool:
        """Whether a finding is as severe as ``fail_on`` says."""
        return any(item.suppression is None and self.fail_on.fails(item.severity) for item in self.items)


_ALSO_NAMED = 3


def finding_report(
    finding: Finding,
    source: str,
    position: Position,
    also: tuple[AlsoFound, ...] = (),
    purpose: Purpose | None = None,
) -> FindingReport:
    """Return a finding as published; ``purpose`` is that of its file, where it lowers the severity."""
    check, subject = CHECKS[finding.check], finding.subject
    return FindingReport(
        check=check.id,
        check_name=check.name,
        severity=finding.severity,
        title=check.title,
        kind=subject.kind,
        namespace=subject.namespace,
        name=subject.name,
        container=finding.container,
        source=source,
        line=position[0],
        column=position[1],
        path=finding.path,
        reason=finding.facts.sentence(finding.container or ""),
        consequence=consequence(finding.consequence, finding.facts),
        facts=finding.facts,
        effects=finding.consequence,
        patch=finding.patch,
        fingerprint=fingerprint(finding),
        suppression=finding.suppression,
        also=also,
        purpose=purpose,
    )


# ---- what follows from a finding -------------------------------------------------------------------------------------

_AT_THE_LIMITS = "when every pod is at its memory limit"
"""What is assumed about usage: ``AssumedUsage.LIMITS``."""
_EVICTED = {
    QOSClass.BEST_EFFORT: "eligible for eviction as soon as memory runs short",
    QOSClass.BURSTABLE: "evicted once it uses more than it requests",
    QOSClass.GUARANTEED: "evicted last, because it can't exceed its requests",
}


def consequence(found: Consequence, facts: Fact, *, names_container: bool = True) -> str:
    """Return what a finding means for survival, with or without the container whose score is the highest.

    Pods that are safe when memory runs short have another reason to worry, which is that of the facts.
    """
    now = found.now
    match found.effect:
        case Effect.NODE:
            return "the kernel chooses by size and oom_score_adj, not by priority"
        case Effect.DISK:
            if now is not None and now.is_spared:
                return "when it fills the disk, other pods are evicted in its place: it is never evicted itself"
            if found.disk_request == "0":
                first = "it is among the first to be evicted when the disk fills up"
                return f"{first}, because it requests no ephemeral-storage"
            return (
                f"evicted first when the disk fills up, once it uses more than the {found.disk_request} of "
                "ephemeral-storage it requests"
            )
        case Effect.NOT_CREATED:
            return "no pods are created or scheduled, and pods that die are not replaced"
        case Effect.LIMIT:
            return facts.harm() or "the container is OOM-killed at its own memory limit, even on an empty node"
        case Effect.FEWER:
            return "some of its pods are not created, and pods that die may not be replaced"
        case Effect.NONE:
            return facts.harm()
    if now is None:
        return ""
    compared = _compared(found)
    if not compared and (now.is_spared or now.qos_class is QOSClass.GUARANTEED):
        harm = facts.harm()
        if harm or (found.effect is not Effect.STANDING and now.oom_score_adj < 0):
            return harm
    container = f" ({now.container})" if names_container else ""
    standing = f"{now.qos_class}, oom_score_adj {now.oom_score_adj}{container}, {_when_evicted(now)}"
    if found.repaired is not None and found.repaired != now:
        after = f"{found.repaired.qos_class}, oom_score_adj {found.repaired.oom_score_adj}"
        standing = f"{standing}; {facts.without()}, {after}"
    return f"{compared}; {standing}" if compared else standing


def _compared(found: Consequence) -> str:
    """Name the pods that outlive the subject, if there are any."""
    evicted, killed = found.evicted_before, found.killed_before
    if evicted == killed:
        clauses = [] if evicted is None else [f"both the kubelet and the kernel pick it before {evicted}"]
    else:
        clauses = [f"the kubelet evicts it before {evicted}"] if evicted is not None else []
        clauses += [f"the kernel kills it before {killed}"] if killed is not None else []
    if not clauses:
        return ""
    cause = "because of this, " if found.repaired is not None else ""
    return f"{cause}{' and '.join(clauses)} {_AT_THE_LIMITS}"


def _when_evicted(now: PodStanding) -> str:
    return "never evicted, but the kernel kills by score" if now.is_spared else _EVICTED[now.qos_class]


# ---- what to write instead -------------------------------------------------------------------------------------------


def fix_words(patch: Patch) -> str:
    """Return what to write, a line for each edit, or what has to be chosen. What was not tried is not shown."""
    text = patch.text
    if patch.is_complete and not patch.is_tried:
        text = f"not tried with this many objects: {stated_with('only' if patch.on_request else 'diff')} tries it"
    chosen_from = f"look up first: {patch.look_up}" if patch.look_up and not patch.is_complete else ""
    return "\n".join(filter(None, (text, patch.refuted, chosen_from)))


def cost_words(patch: Patch) -> str:
    """Return what the fix costs, a line for each cost; empty where it costs nothing."""
    lines = [cost.text for cost in patch.costs]
    if patch.look_up and patch.is_complete:
        lines.append(f"look up first: {patch.look_up}")
    return "\n".join(lines)


def _alternatives(patch: Patch) -> str:
    """Return what can be chosen instead, each with its costs; empty where there is nothing."""
    lines = []
    for alternative in patch.alternatives:
        lines += [alternative.text, *(f"costs: {cost.text}" for cost in alternative.costs)]
    return "\n".join(lines)


def patch_lines(patch: Patch) -> list[str]:
    """Return all of it, each part under its name: ``fix: …``, ``cost: …``, ``or: …``."""
    return [f"{name}: {text}" for name, text in _fix_parts(patch).items() if text]


def _fix_parts(patch: Patch) -> dict[str, str]:
    return {"fix": fix_words(patch), "cost": cost_words(patch), "or": _alternatives(patch)}


def waiting_words(checks: Sequence[str], apply: str) -> str:
    """Return how many fixes, of these checks, the option ``apply`` leaves to a person unless they are named."""
    named = stated_with("only", ",".join(sorted(set(checks))))
    if len(checks) == 1:
        return f"1 fix needs your decision ({apply} {named} applies it)"
    return f"{len(checks):,} fixes need your decision ({apply} {named} applies them)"


# ---- the worst of it -------------------------------------------------------------------------------------------------


def badness(item: FindingReport) -> tuple[bool, int, int, int, str, int, int, str]:
    """Return what findings are sorted by, worst first: severity, what follows, priority of the pods, place."""
    found = item.effects
    priority = 0 if found.now is None else found.now.priority
    place = (item.source, item.line, item.column, item.check)
    return (item.suppression is not None, item.severity.rank, _harm(found), -priority, *place)


def _harm(found: Consequence) -> int:
    if found.effect in {Effect.NOT_CREATED, Effect.FEWER}:
        return 0
    if _is_safer(found):
        return 4
    if found.evicted_before or found.killed_before:
        return 1
    if found.effect is Effect.NODE:
        return 2
    return 3 if found.now is not None and found.now.qos_class is QOSClass.BEST_EFFORT else 4


def _is_safer(found: Consequence) -> bool:
    """Whether the pods would be worse off without the finding."""
    now, repaired = found.now, found.repaired
    return now is not None and repaired is not None and CLASS_RANK[now.qos_class] > CLASS_RANK[repaired.qos_class]


class _Outcome(Struct, frozen=True, gc=False):
    """What becomes of the subject of a finding."""

    fate: Fate
    words: str = ""
    """Empty where no pod of it is worse off."""
    is_cause: bool = False
    """Whether the finding leads to it."""


def verdict(items: Iterable[FindingReport]) -> CheckVerdict | None:
    """Return the worst of the findings that are not suppressed, as data and in one sentence."""
    open_items = [item for item in items if item.suppression is None]
    if not open_items:
        return None
    worst = min(open_items, key=badness)
    outcome = _outcome(worst)
    others = {
        (item.subject, item.source): item.subject
        for item in open_items
        # An info counts only where there is nothing else.
        if FindingSeverity.INFO not in {item.severity, worst.severity} or item.severity is worst.severity
        if _same_fate(_outcome(item), outcome)
    }
    others.pop((worst.subject, worst.source), None)
    return CheckVerdict(
        text=_headline_of(worst, outcome, list(others.values())),
        fate=outcome.fate,
        severity=worst.severity,
        check=worst.check,
        kind=worst.kind,
        namespace=worst.namespace,
        name=worst.name,
        reason=worst.reason,
        is_cause=outcome.is_cause,
        others=len(others),
        fingerprint=worst.fingerprint,
    )


def _same_fate(one: _Outcome, other: _Outcome) -> bool:
    return (one.fate, one.words) == (other.fate, other.words)


def _outcome(item: FindingReport) -> _Outcome:
    """Return what becomes of the subject, and whether because of the finding: only where that was compared."""
    found, now, has_cause = item.effects, item.effects.now, bool(item.facts.cause())
    if found.effect is Effect.NOT_CREATED:
        return _Outcome(Fate.NOT_CREATED, f"{'not ' * (item.kind == 'Pod')}created or scheduled", is_cause=True)
    if found.effect is Effect.FEWER:
        return _Outcome(Fate.FEWER)
    if _is_safer(found) and has_cause:
        return _Outcome(Fate.SAFER, "safer than its manifest suggests", is_cause=True)
    if found.effect is Effect.DISK and not (now is not None and now.is_spared):
        return _Outcome(Fate.DISK, "among the first to be evicted when the disk fills up")
    evicted, killed = found.evicted_before, found.killed_before
    if evicted is not None or killed is not None:
        ways = (("evicted", evicted), ("OOM-killed", killed))
        words = " and ".join(f"{way} before {other}" for way, other in ways if other is not None)
        earlier = f"evicted and OOM-killed before {evicted}" if evicted == killed else words
        return _Outcome(Fate.EARLIER, f"{earlier} {_AT_THE_LIMITS}", is_cause=has_cause and found.is_compared)
    if now is None or now.is_spared or now.qos_class is QOSClass.GUARANTEED or found.effect is Effect.NONE:
        return _Outcome(Fate.NONE)
    if found.repaired is None:
        decides_class = now.qos_class is QOSClass.BEST_EFFORT
    else:
        decides_class = CLASS_RANK[now.qos_class] < CLASS_RANK[found.repaired.qos_class]
    return _Outcome(Fate.BY_CLASS, _when_evicted(now), is_cause=has_cause and decides_class)


def _headline_of(item: FindingReport, outcome: _Outcome, others: Sequence[str]) -> str:
    """Return the headline: what becomes of the subject, and because of what, if that is so.

    What exactly was found is said below, as the reason; here is only what kind of finding it is.
    """
    first, _, rest = item.title.partition(" ")  # a name keeps its capitals
    title = f"{first.lower()} {rest}" if first[1:] == first[1:].lower() else item.title
    finding = item.facts.summary() or title
    if outcome.fate is Fate.NOT_CREATED:
        subject = item.subject if item.kind == "Pod" else f"no pod of {item.subject}"
        return f"{subject} is {outcome.words}: {finding}"
    if not outcome.words:
        return f"{item.subject}: {finding}"
    text = f"{item.subject} is {outcome.words}"
    if others:
        is_named = len(others) == 1 and others[0] != item.subject
        who = others[0] if is_named else counted(len(others), "other")
        text = f"{text} (so {'is' if len(others) == 1 else 'are'} {who})"
    return f"{text}, because {item.facts.cause()}" if outcome.is_cause else f"{text}. Worst finding: {finding}"


# ---- as text ---------------------------------------------------------------------------------------------------------

_SHARED = 3
"""From this many on, findings of one check are reported together."""
_PLACES_SHOWN = 10
_INDENT, _LABEL = 4, 5
_ANY = "the container"

_Block = Sequence[FindingReport]
"""Findings of one check that are reported together; mostly one."""
_Told = dict[str, list[tuple[str, str]]]
"""Whose consequences have been told: by the text, the objects with their files, or checks that many objects share."""


def is_shown(item: FindingReport, report: CheckReport, *, verbose: bool) -> bool:
    """Whether people are told about a finding without asking: not about infos, unless they make the gate fail."""
    return verbose or item.severity is not FindingSeverity.INFO or report.fail_on is FailOn.INFO


def table(report: CheckReport, style: Style, *, verbose: bool = False, was_fixed: bool = False) -> Iterator[str]:
    """Yield a verdict, then the findings by workload, worst first, and how many there are.

    A finding that many workloads share is reported once, with the list of them. ``verbose`` has infos and every place
    as well. Where nothing was checked nothing is said, least of all that nothing was found. ``was_fixed``: what
    ``--fix`` can do is done.
    """
    if not report.summary.objects:
        return
    items = [item for item in report.items if is_shown(item, report, verbose=verbose)]
    found = report.verdict
    if found is not None and any(item.suppression is None for item in items):
        yield from map(style.strong, wrapped(_shown(found.text), style, ""))
        yield ""
    told: _Told = {}
    for heading, blocks in _sections(items):
        yield from map(style.strong, wrapped(_shown(heading), style, "  ", ""))
        for block in blocks:
            yield from _block_lines(block, style, told, verbose=verbose)
        yield ""
    for line in _summary_lines(report, items, style, was_fixed=was_fixed):
        yield from wrapped(line, style, "")


def finding_lines(item: FindingReport, style: Style) -> list[str]:
    """Return one finding: where, why, what follows from it, the fix and its cost."""
    return [*_block_lines((item,), style, {}, verbose=False)]


def csv_rows(report: CheckReport) -> Table:
    """Return a row per finding."""
    headings = ("severity", "check", "name", "kind", "namespace", "object", "container", "source", "line", "path")
    return (*headings, "reason", "consequence", "fix"), (
        (
            *(item.severity, item.check, item.check_name, item.kind, item.namespace, item.name, item.container),
            *(item.source, item.line, item.path, item.reason, item.consequence, fix_words(item.patch)),
        )
        for item in report.items
    )


def _sections(items: Iterable[FindingReport]) -> list[tuple[str, list[_Block]]]:
    """Return what belongs together, under its heading: the findings of a workload, or a check of many; worst first."""
    ordered = sorted(items, key=badness)
    alike: dict[tuple[object, ...], list[FindingReport]] = {}
    for item in ordered:
        alike.setdefault((item.check, item.severity, item.suppression is None), []).append(item)
    sections: dict[tuple[str, str], list[_Block]] = {}
    for item in ordered:
        block = alike[item.check, item.severity, item.suppression is None]
        if len(block) < _SHARED:
            sections.setdefault(_object(item), []).append((item,))
        elif item is block[0]:
            objects = {_object(report) for report in block}
            shared = (f"{_headline(item)} ({counted(len(objects), 'object')})", "")
            sections.setdefault(shared if len(objects) > 1 else objects.pop(), []).append(block)
    return [(heading, blocks) for (heading, _), blocks in sections.items()]


def _headline(item: FindingReport) -> str:
    return f"{item.severity} {item.check} {item.check_name}: {item.title}"


def _object(item: FindingReport) -> tuple[str, str]:
    return item.subject, item.source


def _block_lines(block: _Block, style: Style, told: _Told, *, verbose: bool) -> Iterator[str]:
    """Yield one finding, or several of one check: what they share is said once."""
    one = block[0]
    if len(block) == 1:
        container = f", container {one.container}" if one.container else ""
        place = f"{_shown(one.place)}: " if one.place else ""
        start = f"{place}{style.severity(one.severity)} {_shown(f'{one.check} {one.check_name}{container}')}"
        yield from wrapped(start, style, " " * _INDENT, "  ")
        said = {"left": _left(one), "also": one.also_text, "why": one.reason, "so": _unless_told(one, told)}
        yield from _labelled(said | _fix_parts(one.patch), style)
        return
    if len({_object(report) for report in block}) == 1:
        yield from wrapped(_headline(one), style, " " * _INDENT, "  ")
    general: dict[str, Callable[[FindingReport], str]] = {
        "left": _left,
        "why": _reason,
        "so": _general_consequence,
        "fix": _general_fix,
        "cost": lambda item: cost_words(item.patch),
        "or": lambda item: _alternatives(item.patch),
    }
    shared = {label: words(one) for label, words in general.items() if len(set(map(words, block))) == 1}
    if shared.get("so"):
        shared["so"] = _unless_told(replace(one, consequence=shared["so"]), told, (one.check, ""))
    yield from _labelled(shared, style)
    shown = block if verbose else style.shown(block, _PLACES_SHOWN)
    by_consequence: dict[str, list[FindingReport]] = {}
    for report in shown:
        by_consequence.setdefault(_general_consequence(report), []).append(report)
    for so, group in by_consequence.items():
        for report in group:
            place = _listed_place(report, with_reason="why" not in shared)
            yield from wrapped(_shown(place), style, " " * (_INDENT + 2), " " * _INDENT)
            own = {"left": _left(report), "also": report.also_text, **_fix_parts(report.patch)}
            yield from _labelled({name: text for name, text in own.items() if name not in shared}, style, _INDENT + 2)
        if "so" not in shared:
            first = group[0] if len(group) == 1 else replace(group[0], consequence=so)
            yield from _labelled({"so": _unless_told(first, told)}, style, _INDENT + 2)
    if len(shown) < len(block):
        yield style.faint(f"    and {len(block) - len(shown):,} more; {stated_with('verbose')} lists all of them")


def _listed_place(item: FindingReport, *, with_reason: bool) -> str:
    """Return where a finding of many is, about what, and what it has of its own."""
    start = f"{item.place}: {item.subject}" if item.line else f"{item.subject} {item.path}".rstrip()
    if with_reason:
        return f"{start}: {item.reason}"
    names = _containers(item)
    return f"{start}, container{'s' * (len(names) > 1)} {listed(names)}" if names else start


def _general_consequence(item: FindingReport) -> str:
    """Return the consequence without the name of a container."""
    return consequence(item.effects, item.facts, names_container=False)


def _unless_told(item: FindingReport, told: _Told, whose: tuple[str, str] | None = None) -> str:
    """Return the consequence, unless it has been told: of the same object, or of two others."""
    objects = told.setdefault(_general_consequence(item) or item.consequence, [])
    whose = whose or _object(item)
    if whose in objects:
        return ""
    objects.append(whose)
    return f"same as for {objects[0][0]}" if item.consequence and len(objects) >= _SHARED else item.consequence


def _left(item: FindingReport) -> str:
    if item.suppression is None:
        return ""
    return f"suppressed by {item.suppression.by}: {item.suppression.reason or 'no reason given'}"


def _containers(item: FindingReport) -> list[str]:
    """Return the names of the containers that a finding is about."""
    found: tuple[object, ...] = getattr(item.facts, "containers", ())
    return [item.container] if item.container else [each for each in found if isinstance(each, str)]


def _reason(item: FindingReport) -> str:
    """Return the reason without the names of containers, which differ where the reason is the same."""
    if item.container:
        return item.facts.sentence(_ANY)
    return replace(item.facts, containers=(_ANY,)).sentence("") if _containers(item) else item.reason


def _general_fix(item: FindingReport) -> str:
    """Return the fix without the places, if it has to be chosen."""
    patch = item.patch
    if patch.needs_choice is None or patch.refuted:
        return fix_words(patch)
    candidates = f": {' or '.join(patch.candidates)}" if patch.candidates else ""
    return f"{patch.needs_choice.words}{candidates}"


def _labelled(parts: dict[str, str], style: Style, indent: int = _INDENT) -> Iterator[str]:
    for label, text in parts.items():
        yield from labelled(label, map(_shown, filter(None, text.split("\n"))), style, indent, _LABEL)


def _shown(text: str) -> str:
    """Return a text that quotes the input, without control characters for the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _summary_lines(
    report: CheckReport, shown: Sequence[FindingReport], style: Style, *, was_fixed: bool
) -> Iterator[str]:
    """Yield the counts, what was left out of the findings and why, and how to get more."""
    summary, told = report.summary, set(map(id, shown))
    hidden = len(report.items) - len(shown)
    numbers = ((summary.errors, "error"), (summary.warnings, "warning"), (0 if hidden else summary.infos, "info"))
    counts = ", ".join(
        f"{count:,} {style.severity(name)}{'' if count == 1 else 's'}" for count, name in numbers if count
    )
    none = f"no findings{' above info' if hidden else ''}{' in what could be read' if summary.unread else ''}"
    where = f"of {report.cluster}" if report.cluster else f"in {counted(summary.files, 'file')}"
    yield f"{counts or none}; {counted(summary.objects, 'object')} {where} checked"
    if hidden:
        yield f"  {counted(hidden, 'info')} hidden ({stated_with('verbose')} shows {'it' if hidden == 1 else 'them'})"
    if summary.suppressed:
        shows = f"({stated_with('verbose')} shows them)"
        yield f"  {summary.suppressed} suppressed by annotation or configuration {shows}"
    if summary.in_baseline:
        yield f"  {summary.in_baseline} known from the baseline"
    if summary.below_min_severity:
        yield f"  {summary.below_min_severity} hidden by {stated_with('min_severity')}"
    if summary.lowered:
        are = "is an info" if summary.lowered == 1 else "are infos"
        lowered = f"{counted(summary.lowered, 'finding')} in tests and examples {are}"
        yield f"  {lowered} (name such a directory to have it judged like the rest)"
    if summary.copies:
        copies = "1 copy" if summary.copies == 1 else f"{summary.copies:,} copies"
        yield f"  {copies} of workloads in other files not counted again"
    # A kubelet's file is no object of a cluster, and takes no patch.
    takes_all = not report.cluster
    fixed = [item for item in report.items if item.patch.is_applied and item.suppression is None]
    fixed = [item for item in fixed if takes_all or item.kind not in FILE_KINDS]
    apply = stated_with("fix") if takes_all else stated_with("patch", "kubectl")
    if fixed and not was_fixed:
        also = ", infos included" if any(id(item) not in told for item in fixed) else ""
        how = (
            f"with {apply}{also} ({stated_with('diff')} shows how)"
            if takes_all
            else f"by patches{also} ({apply} prints them)"
        )
        yield f"  {counted(len(fixed), 'finding')} {'is' if len(fixed) == 1 else 'are'} fixable {how}"
    waiting = [item.check for item in shown if item.patch.is_waiting and item.suppression is None]
    if waiting and not was_fixed:
        yield f"  {waiting_words(waiting, apply)}"
    if shown:
        explaining = stated_with("explain", min(item.check for item in shown))
        yield f"  {style.faint(f'podqos check {explaining} explains a check')}"
