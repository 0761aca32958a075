"""``podqos check`` as text: a verdict, then the findings by workload, worst first, and how many there are.

A finding that many workloads share is reported once, with the list of them. Infos are left out unless they are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from podqos.advice.checks.finding import FailOn, FindingSeverity
from podqos.advice.checks.gate import CheckSummary
from podqos.answers.findings import CheckReport, FindingReport
from podqos.answers.verdict import badness
from podqos.naming import stated_with
from podqos.report.text.style import Style, labelled, wrapped
from podqos.wording import counted, listed
from podqos.words.consequences import worded
from podqos.words.fixes import alternative_words, cost_words, fix_words, waiting_words

# From this many on, findings of one check are reported together.
_SHARED = 3
_PLACES_SHOWN = 10
_INDENT = 4
_LABEL = 5
_ANY = "the container"

Block = Sequence[FindingReport]
"""Findings of one check that are reported together; mostly one."""
Told = dict[str, list[tuple[str, str]]]
"""Whose consequences have been told: by the text, the objects with their files, or checks that many objects share."""


def is_shown(item: FindingReport, report: CheckReport, *, verbose: bool) -> bool:
    """Whether people are told about a finding without asking: not about infos, unless they make the gate fail."""
    return verbose or item.severity is not FindingSeverity.INFO or report.fail_on is FailOn.INFO


def table(report: CheckReport, style: Style, *, verbose: bool = False, was_fixed: bool = False) -> Iterator[str]:
    """Yield the lines of the whole report; ``verbose`` has infos and every place as well.

    Nothing was checked: nothing is said, least of all that nothing was found. ``was_fixed``: what ``--fix`` can do is
    done.
    """
    if not report.summary.objects:
        return
    items = [item for item in report.items if is_shown(item, report, verbose=verbose)]
    found = report.verdict
    if found is not None and any(item.suppression is None for item in items):
        yield from map(style.strong, wrapped(_shown(found.text), style, ""))
        yield ""
    told: Told = {}
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


def _sections(items: Iterable[FindingReport]) -> list[tuple[str, list[Block]]]:
    """Return what belongs together, under its heading: the findings of a workload, or a check of many; worst first."""
    ordered = sorted(items, key=badness)
    alike: dict[tuple[object, ...], list[FindingReport]] = {}
    for item in ordered:
        alike.setdefault(_kind(item), []).append(item)
    sections: dict[tuple[str, str], list[Block]] = {}
    for item in ordered:
        block = alike[_kind(item)]
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


def _kind(item: FindingReport) -> tuple[object, ...]:
    return item.check, item.severity, item.suppression is None


def _block_lines(block: Block, style: Style, told: Told, *, verbose: bool) -> Iterator[str]:
    """Yield one finding, or several of one check: what they share is said once."""
    one = block[0]
    if len(block) == 1:
        container = f", container {one.container}" if one.container else ""
        name = _shown(f"{one.check} {one.check_name}{container}")
        place = f"{_shown(one.place)}: " if one.place else ""
        start = f"{place}{style.severity(one.severity)} {name}"
        yield from wrapped(start, style, " " * _INDENT, "  ")
        said = {"left": _left(one), "also": one.also_text, "why": one.reason, "so": _consequence(one, told)}
        yield from _labelled(said | _fix_parts(one), style)
        return
    if len({_object(report) for report in block}) == 1:
        yield from wrapped(_headline(one), style, " " * _INDENT, "  ")
    general = {"left": _left, "why": _reason, "so": _general_consequence, "fix": _fix, "cost": _cost, "or": _or}
    shared = {label: words(one) for label, words in general.items() if len(set(map(words, block))) == 1}
    if shared.get("so"):
        shared["so"] = _consequence(replace(one, consequence=shared["so"]), told, (one.check, ""))
    yield from _labelled(shared, style)
    shown = block if verbose else style.shown(block, _PLACES_SHOWN)
    by_consequence: dict[str, list[FindingReport]] = {}
    for report in shown:
        by_consequence.setdefault(_general_consequence(report), []).append(report)
    for group in by_consequence.values():
        for report in group:
            place = _listed_place(report, with_reason="why" not in shared)
            yield from wrapped(_shown(place), style, " " * (_INDENT + 2), " " * _INDENT)
            own = {"left": _left(report), "also": report.also_text, **_fix_parts(report)}
            yield from _labelled({name: text for name, text in own.items() if name not in shared}, style, _INDENT + 2)
        if "so" not in shared:
            first = group[0] if len(group) == 1 else replace(group[0], consequence=_general_consequence(group[0]))
            yield from _labelled({"so": _consequence(first, told)}, style, _INDENT + 2)
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
    return worded(item.effects, item.facts, names_container=False)


def _consequence(item: FindingReport, told: Told, whose: tuple[str, str] | None = None) -> str:
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


def _fix(item: FindingReport) -> str:
    """Return the fix without the places, if it has to be chosen."""
    patch = item.patch
    if patch.needs_choice is None or patch.refuted:
        return fix_words(patch)
    candidates = f": {' or '.join(patch.candidates)}" if patch.candidates else ""
    return f"{patch.needs_choice.words}{candidates}"


def _cost(item: FindingReport) -> str:
    return cost_words(item.patch)


def _or(item: FindingReport) -> str:
    return alternative_words(item.patch)


def _fix_parts(item: FindingReport) -> dict[str, str]:
    """Return what to do about one finding, with its places, what it costs and what can be chosen instead."""
    return {"fix": fix_words(item.patch), "cost": _cost(item), "or": _or(item)}


def _labelled(parts: dict[str, str], style: Style, indent: int = _INDENT) -> Iterator[str]:
    for label, text in parts.items():
        yield from labelled(label, map(_shown, filter(None, text.split("\n"))), style, indent, _LABEL)


def _shown(text: str) -> str:
    """Return a text that quotes the input, without control characters for the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _summary_lines(
    report: CheckReport, shown: Sequence[FindingReport], style: Style, *, was_fixed: bool
) -> Iterator[str]:
    """Yield the counts, and how to get more."""
    summary = report.summary
    objects = counted(summary.objects, "object")
    checked = f"{objects} of {report.cluster}" if report.cluster else f"{objects} in {counted(summary.files, 'file')}"
    told = set(map(id, shown))
    set_apart = [item for item in report.items if id(item) not in told]
    hidden = len(set_apart)
    counts = _counts(summary, style, without_infos=hidden > 0)
    none = f"no findings{' above info' if hidden else ''}{' in what could be read' if summary.unread else ''}"
    yield f"{counts or none}; {checked} checked"
    if hidden:
        yield f"  {counted(hidden, 'info')} hidden ({stated_with('verbose')} shows {'it' if hidden == 1 else 'them'})"
    yield from (f"  {line}" for line in left_out(summary))
    if summary.lowered:
        are = "is an info" if summary.lowered == 1 else "are infos"
        lowered = f"{counted(summary.lowered, 'finding')} in tests and examples {are}"
        yield f"  {lowered} (name such a directory to have it judged like the rest)"
    if summary.copies:
        copies = "1 copy" if summary.copies == 1 else f"{summary.copies:,} copies"
        yield f"  {copies} of workloads in other files not counted again"
    fixed = [item for item in report.items if _is_fixable(item, report)]
    fixable = len(fixed)
    if fixable and not was_fixed:
        are = "is" if fixable == 1 else "are"
        also = ", infos included" if any(id(item) not in told for item in fixed) else ""
        how = f"with {stated_with('fix')}{also} ({stated_with('diff')} shows how)"
        if report.cluster:
            how = f"by patches{also} ({stated_with('patch_format', 'kubectl')} prints them)"
        yield f"  {counted(fixable, 'finding')} {are} fixable {how}"
    waiting = [item.check for item in shown if item.patch.is_waiting and item.suppression is None]
    if waiting and not was_fixed:
        apply = stated_with("patch_format", "kubectl") if report.cluster else stated_with("fix")
        yield f"  {waiting_words(waiting, apply)}"
    if shown:
        explaining = stated_with("explain", min(item.check for item in shown))
        yield f"  {style.faint(f'podqos check {explaining} explains a check')}"


def _is_fixable(item: FindingReport, report: CheckReport) -> bool:
    """Whether ``--fix`` writes it, or, in a cluster, a patch does: a kubelet's file is none of its objects."""
    if report.cluster:
        from podqos.advice.fixes.patches import FILE_KINDS

        if item.kind in FILE_KINDS:
            return False
    return item.patch.is_applied and item.suppression is None


def _counts(summary: CheckSummary, style: Style, *, without_infos: bool) -> str:
    counts = (("error", summary.errors), ("warning", summary.warnings), ("info", 0 if without_infos else summary.infos))
    return ", ".join(f"{count:,} {style.severity(name)}{'' if count == 1 else 's'}" for name, count in counts if count)


def left_out(summary: CheckSummary) -> Iterator[str]:
    """Yield what was left out of the findings, and why."""
    if summary.suppressed:
        shows = f"({stated_with('show_suppressed')} shows them)"
        yield f"{summary.suppressed} suppressed by annotation or configuration {shows}"
    if summary.in_baseline:
        yield f"{summary.in_baseline} known from the baseline"
    if summary.below_min_severity:
        yield f"{summary.below_min_severity} hidden by {stated_with('min_severity')}"
