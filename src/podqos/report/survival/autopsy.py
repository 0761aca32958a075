"""``podqos autopsy`` as text and CSV: of many deaths who died how often and of what, of one a screen, verdict first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from podqos.naming import stated_with
from podqos.report.text.style import Style, Unwrapped, columns, cut, labelled, wrapped
from podqos.report.text.tables import Table
from podqos.survival.autopsy.autopsy import Autopsies
from podqos.wording import counted
from podqos.words.autopsy import process
from podqos.words.autopsy_death import AutopsyDeath, RankedRow
from podqos.words.autopsy_headline import headline, is_of_one_container, speaks_for_itself
from podqos.words.autopsy_story import deaths, groups
from podqos.words.evictions import sign_words, termination_words
from podqos.words.next_steps import read_words, steps_words
from podqos.words.other_killers import failure_words

SCREEN = 24
"""Lines that a death takes at most, at 80 columns."""
_FEW = 3
_MOST_GROUPS = 12
_MOST_CAUSES = 2
_MOST_SAVINGS = 3
"""So many are shown where there is no room for all."""
_LABEL = 10
_WHO = 44
_MOST_WORDS = 200
_LEAST = ("rule", "trigger", "group")
"""What is left out where there is no room, in this order."""
_LEAST_RANKED = 2
_MOST_OTHERS = 12


def text(found: Autopsies, style: Style, *, verbose: bool = False) -> list[str]:
    """Return what died; of more than a few the last alone, unless all are asked for."""
    told = deaths(found)
    lines = [
        *wrapped(style.strong(headline(found)), style, ""),
        *(_group_lines(told, style) if len(told) > _FEW else ()),
    ]
    shown = told if verbose or len(told) <= _FEW else told[-1:]
    if len(shown) < len(told):
        page = f"{stated_with('html', 'FILE')} writes a page"
        lines += ["", f"The last one ({stated_with('verbose')} shows all {len(told):,}, {page}):"]
    for death in shown:
        lines += ["", *death_lines(death, style, verbose=verbose)]
    if speaks_for_itself(found):
        lines = lines[2:]
    for title, is_from_runtime in (("the status of their pods", False), ("their container runtime", True)):
        ended = [
            termination_words(termination)
            for termination in found.terminations
            if termination.is_from_runtime is is_from_runtime and not is_of_one_container(found)
        ]
        lines += _others(f"Killed containers, from {title}:", ended, style, verbose=verbose)
    if verbose or not (told or found.terminations):
        title = "Containers not known to have been killed:"
        lines += _others(title, [termination_words(own) for own in found.exits], style, verbose=verbose)
    failures = [failure_words(failure) for failure in found.program_failures]
    lines += _others("Programs' own errors:", failures, style, verbose=verbose)
    signs = [sign_words(node_event) for node_event in found.node_events]
    lines += _others("Node events:", signs, style, verbose=verbose)
    return lines + _guidance(found, style)


def _guidance(found: Autopsies, style: Style) -> list[str]:
    """Return what was read, and what to run next; a command is never wrapped, so that it can be copied."""
    lines = []
    if read := read_words(found.read):
        lines += ["", *wrapped(read, style, "")]
    if found.next_steps:
        lines += ["", style.strong("Run next:")]
    for step in steps_words(found.next_steps):
        lines += [Unwrapped(f"  {step.command}"), *wrapped(step.why, style, "      ", "    - ")]
        lines += wrapped(step.warning, style, "      ", "    - ") if step.warning else []
    return lines


def _others(title: str, found: Sequence[str], style: Style, *, verbose: bool) -> list[str]:
    """Return a line for each of what is known besides."""
    shown = found if verbose else style.shown(found, _MOST_OTHERS)
    lines = ["", style.strong(title)] * bool(found)
    for words in shown:
        lines += wrapped(words, style, "    ", "  ")
    if len(shown) < len(found):
        lines.append(f"  … and {len(found) - len(shown):,} more ({stated_with('verbose')})")
    return lines


def death_lines(death: AutopsyDeath, style: Style, *, verbose: bool = False) -> list[str]:
    """Return a death; within a screen unless more is asked for."""
    verbose = verbose or style.is_wide
    heading = wrapped(style.strong(death.what), style, "")
    told = {label: labelled(label, paragraphs, style, 2, _LABEL) for label, paragraphs in _told(death, verbose=verbose)}
    is_bounded = not verbose and style.width is not None
    # A ranking has a heading above its rows, and how many there are below.
    room = SCREEN - len(heading) - 2
    for label in _LEAST:
        if is_bounded and sum(map(len, told.values())) > room - _LEAST_RANKED:
            told.pop(label, None)
    if is_bounded and sum(map(len, told.values())) > room - _LEAST_RANKED and len(death.saved_by) > _MOST_SAVINGS:
        few = [*death.saved_by[:_MOST_SAVINGS], f"… {len(death.saved_by) - _MOST_SAVINGS} more (-v)"]
        told["saved by"] = labelled("saved by", few, style, 2, _LABEL)
    lines = [*heading, *chain.from_iterable(told.values())]
    if death.ranking:
        rows = [_row(ranked_row) for ranked_row in death.ranking]
        rows = rows[: max(_LEAST_RANKED, SCREEN - len(lines) - 2)] if is_bounded else rows
        lines += columns((*death.columns, ""), rows, style, "  ")
        if death.candidates > len(rows):
            lines.append(f"  … of {counted(death.candidates, death.unit)}")
    return lines


def _told(death: AutopsyDeath, *, verbose: bool) -> Iterator[tuple[str, Sequence[str]]]:
    yield "verdict", [death.verdict]
    yield "cause", death.causes if verbose else death.causes[:_MOST_CAUSES]
    yield "next", [death.next] if death.next else []
    yield "saved by", death.saved_by
    for fact in death.facts:
        yield fact.label, [fact.words if verbose else cut(fact.words, _MOST_WORDS, 0)]
    if death.rule:
        yield "rule", [death.rule]


def _group_lines(told: Sequence[AutopsyDeath], style: Style) -> list[str]:
    found = groups(told)
    rows = [
        (
            f"{death_group.times:,}",
            death_group.who if style.is_wide else cut(death_group.who, _WHO, 0),
            death_group.by,
            death_group.cause or "–",
            death_group.last or "–",
        )
        for death_group in style.shown(found, _MOST_GROUPS)
    ]
    lines = columns(("DIED", "WHO", "BY", "CAUSE", "LAST"), rows, style, "  ")
    return [*lines, *[f"  … and {len(found) - len(rows):,} others"] * (len(found) > len(rows))]


def _row(each: RankedRow) -> tuple[str, ...]:
    return process(each.name, None), *each.cells, each.mark or each.standing


def csv_rows(found: Autopsies) -> Table:
    """Return headings, and a row per process that was killed."""
    headings = (
        "at", "host", "scope", "cgroup", "pod", "container", "class", "pid", "name", "oomScoreAdj", "badness",
        "followsRule", "reason", "runnerUp", "marginPages",
    )  # fmt: skip
    return headings, _csv(found)


def _csv(found: Autopsies) -> Iterator[tuple[object, ...]]:
    runner_up: int | str | None
    for kill in found.kills:
        runner_up = None if kill.runner_up is None else kill.runner_up.pid
        for victim in kill.victims:
            yield (
                kill.at, kill.host, kill.scope, kill.cgroup, kill.pod or kill.pod_uid,
                kill.container or kill.container_id, kill.qos_class, victim.pid, victim.name,
                victim.oom_score_adj, victim.badness, kill.follows_rule, kill.reason, runner_up, kill.margin_pages,
            )  # fmt: skip
    for eviction in found.evictions:
        runner_up = None if eviction.runner_up is None else eviction.runner_up.pod
        yield (
            eviction.at, eviction.node, "eviction", "", eviction.pod, "", eviction.qos_class, None, eviction.cause,
            None, None, eviction.follows_rule, eviction.reason, runner_up, None,
        )  # fmt: skip
    for killed in found.userspace_kills:
        yield (
            killed.at, killed.host, killed.killer, killed.cgroup, killed.pod or killed.pod_uid,
            killed.container or killed.container_id, killed.qos_class, killed.pid, killed.victim,
            killed.oom_score_adj, None, None, killed.basis, None, None,
        )  # fmt: skip
