"""``podqos autopsy`` as text, Markdown and CSV, the verdict first: of many deaths who died how often and of what.

Nothing of a log is markup in Markdown: what podqos says is escaped as a whole, because names are a part of its
sentences, and names in tables are code. GitHub cuts long texts; the document stays below that, and says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from podqos.amounts import counted
from podqos.naming import stated_with
from podqos.questions.autopsy import Autopsy
from podqos.questions.autopsy_death import Death
from podqos.questions.autopsy_words import process
from podqos.text.style import Style, Unwrapped, columns, cut, labelled, wrapped
from podqos.text.tables import Table


def groups(deaths: Sequence[Death]) -> list[tuple[tuple[str, str, str], int, str]]:
    """Return who died how often, by whom and of what, the most frequent first, and when last."""
    keys = [(death.who, death.by, death.cause) for death in deaths]
    last = dict(zip(keys, (death.when for death in deaths), strict=True))
    return [(key, times, last[key]) for key, times in Counter(keys).most_common()]


# ---- text ------------------------------------------------------------------------------------------------------------

SCREEN = 24
"""Lines that a death takes at most, at 80 columns."""
_FEW = 3
_MOST_GROUPS, _MOST_CAUSES, _MOST_SAVINGS, _MOST_OTHERS = 12, 2, 3, 12
"""So many are shown where there is no room for all."""
_LABEL, _WHO, _MOST_WORDS = 10, 44, 200
_LEAST = ("rule", "trigger", "group")
"""What is left out where there is no room, in this order."""
_LEAST_RANKED = 2


def text(found: Autopsy, style: Style, *, verbose: bool = False) -> list[str]:
    """Return what died; of more than a few the last alone, unless all are asked for."""
    deaths = found.deaths
    shown = deaths if verbose or len(deaths) <= _FEW else deaths[-1:]
    lines = [] if _is_alone(found) else wrapped(style.strong(found.headline), style, "")
    if len(deaths) > _FEW:
        rows = [
            (f"{times:,}", who if style.is_wide else cut(who, _WHO, 0), by, cause or "–", last or "–")
            for (who, by, cause), times, last in style.shown(groups(deaths), _MOST_GROUPS)
        ]
        lines += columns(("DIED", "WHO", "BY", "CAUSE", "LAST"), rows, style, "  ")
        others = len(groups(deaths)) - len(rows)
        lines += [f"  … and {others:,} others"] * bool(others)
    if len(shown) < len(deaths):
        page = f"{stated_with('html', 'FILE')} writes a page"
        lines += ["", f"The last one ({stated_with('verbose')} shows all {len(deaths):,}, {page}):"]
    for death in shown:
        lines += ["", *death_lines(death, style, verbose=verbose)]
    lines = lines[1:] if _is_alone(found) else lines
    # The headline has the only one.
    exits = [line.words for line in found.exits] if verbose or len(found.exits) > (1 if not deaths else 0) else []
    exits = exits if verbose or not deaths else []
    for title, told in (
        ("Containers not known to have been killed:", exits),
        ("Programs' own errors:", found.program_errors),
        ("Node events:", found.node_events),
    ):
        lines += _others(title, told, style, verbose=verbose)
    if found.read:
        lines += ["", *wrapped(found.read, style, "")]
    lines += ["", style.strong("Run next:")] * bool(found.next_steps)
    for step in found.next_steps:
        # A command is never wrapped, so that it can be copied.
        lines += [Unwrapped(f"  {step.command}"), *wrapped(step.why, style, "      ", "    - ")]
        lines += wrapped(step.warning, style, "      ", "    - ") if step.warning else []
    return lines


def _is_alone(found: Autopsy) -> bool:
    """Whether there is one death, whose own first line is the headline."""
    return len(found.deaths) == 1 and not found.left_out


def _others(title: str, told: Sequence[str], style: Style, *, verbose: bool) -> list[str]:
    """Return a line for each of what is known besides."""
    shown = told if verbose else style.shown(told, _MOST_OTHERS)
    lines = ["", style.strong(title)] * bool(told)
    lines += chain.from_iterable(wrapped(words, style, "    ", "  ") for words in shown)
    if len(shown) < len(told):
        lines.append(f"  … and {len(told) - len(shown):,} more ({stated_with('verbose')})")
    return lines


def death_lines(death: Death, style: Style, *, verbose: bool = False) -> list[str]:
    """Return a death; within a screen unless more is asked for."""
    verbose = verbose or style.is_wide
    heading = wrapped(style.strong(death.what), style, "")
    causes = [cause.words for cause in death.causes if cause.words]
    savings = [saving.words for saving in death.saved_by if saving.words]
    sections: dict[str, Sequence[str]] = {
        "verdict": [death.why] * bool(death.why),
        "cause": causes if verbose else causes[:_MOST_CAUSES],
        "next": [death.next] * bool(death.next),
        "saved by": savings,
    }
    for fact in death.evidence:
        sections[fact.label] = [
            *sections.get(fact.label, ()),
            fact.words if verbose else cut(fact.words, _MOST_WORDS, 0),
        ]
    sections["rule"] = [death.rule] * bool(death.rule)
    told = {label: labelled(label, words, style, 2, _LABEL) for label, words in sections.items()}
    is_bounded = not verbose and style.width is not None
    # A ranking has a heading above its rows, and how many there are below.
    room = SCREEN - len(heading) - 2
    for label in _LEAST:
        if is_bounded and sum(map(len, told.values())) > room - _LEAST_RANKED:
            told.pop(label, None)
    if is_bounded and sum(map(len, told.values())) > room - _LEAST_RANKED and len(savings) > _MOST_SAVINGS:
        few = [*savings[:_MOST_SAVINGS], f"… {len(savings) - _MOST_SAVINGS} more (-v)"]
        told["saved by"] = labelled("saved by", few, style, 2, _LABEL)
    lines = [*heading, *chain.from_iterable(told.values())]
    if death.is_ranked:
        rows = [(process(row.name, None), *row.cells, row.mark or row.standing) for row in death.ranking]
        rows = rows[: max(_LEAST_RANKED, SCREEN - len(lines) - 2)] if is_bounded else rows
        lines += columns((*death.columns, ""), rows, style, "  ")
        if death.candidates > len(rows):
            lines.append(f"  … of {counted(death.candidates, death.unit)}")
    return lines


def csv_rows(found: Autopsy) -> Table:
    """Return headings, and a row per process or pod that was killed."""
    headings = (
        "at", "where", "by", "manner", "scope", "cgroup", "pod", "container", "class", "pid", "name", "oomScoreAdj",
        "badness", "followsRule", "reason", "cause", "runnerUp", "marginPages",
    )  # fmt: skip
    return headings, _csv(found)


def _csv(found: Autopsy) -> Iterator[tuple[object, ...]]:
    for death in found.deaths:
        oom, eviction = death.oom, death.eviction
        runner_up: object = None
        if oom is not None and oom.runner_up is not None:
            runner_up = oom.runner_up.pid
        elif eviction is not None and eviction.runner_up is not None:
            runner_up = eviction.runner_up.name
        for victim in death.victims or (None,):
            yield (
                death.when, death.where, death.by, death.manner, oom and oom.scope, oom and oom.cgroup,
                death.pod or death.pod_uid, death.container or death.container_id, death.qos_class,
                victim and victim.pid, victim and victim.name, victim and victim.oom_score_adj,
                victim and victim.badness, death.follows_rule, death.reason, death.cause, runner_up,
                oom and oom.margin_pages,
            )  # fmt: skip


# ---- Markdown for a post-mortem --------------------------------------------------------------------------------------

MOST_CHARACTERS = 65_536
_FOR_DEATHS = 40_000
_MOST_EVENTS, _MOST_LISTED, _MOST_RANKED, _MOST_TOLD = 50, 20, 10, 500
_MARKUP = re.compile(r"([\\`*_\[\]<>|~$&])")
# What GitHub makes links and pictures of afterwards, in text that a backslash does not protect: mentions, references,
# addresses, emojis. A space without width takes them apart.
_LINKED = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=//|(?:[a-z+-][\w+-]*|100|1234):)|(?<=www)(?=\.)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def markdown(found: Autopsy) -> list[str]:
    """Return the lines of the document."""
    deaths = found.deaths
    lines = [f"# Post-mortem{_title(found)}", "", f"**{plain(found.headline)}**"]
    if deaths:
        lines += ["", "## Timeline", "", "| when | where | who | by | cause |", "|---|---|---|---|---|"]
    for death in deaths[:_MOST_EVENTS]:
        cells = (code(death.when), code(death.where), code(death.who), death.by, plain(death.cause) or "–")
        lines.append(f"| {' | '.join(cells)} |")
    if len(deaths) > _MOST_EVENTS:
        lines += ["", f"… and {len(deaths) - _MOST_EVENTS:,} more."]
    alike = groups(deaths)
    if len(alike) < len(deaths):
        lines += ["", "## Deaths by pod", "", "| times | who | by | cause |", "|---:|---|---|---|"]
        for (who, by, cause), times, _ in alike[:_MOST_LISTED]:
            lines.append(f"| {times:,} | {code(who)} | {by} | {plain(cause) or '–'} |")
        lines += ["", f"… and {len(alike) - _MOST_LISTED:,} others."] * (len(alike) > _MOST_LISTED)
    room = _FOR_DEATHS
    for number, death in enumerate(deaths, 1):
        told = ["", *_death(death, number if len(deaths) > 1 else None, found.headline)]
        room -= sum(map(len, told))
        if room < 0:
            lines += ["", f"… and {len(deaths) - number + 1:,} more; `podqos autopsy -v` prints them all."]
            break
        lines += told
    exits = [line.words for line in found.exits]
    for title, others in (
        ("Containers not known to have been killed", exits),
        ("Programs' own errors", found.program_errors),
        ("Node events", found.node_events),
    ):
        if others:
            left = [f"- … and {len(others) - _MOST_LISTED:,} more"] * (len(others) > _MOST_LISTED)
            lines += ["", f"## {title}", "", *(f"- {plain(other)}" for other in others[:_MOST_LISTED]), *left]
    lines += ["", "## Next steps"] * bool(found.next_steps)
    for step in found.next_steps:
        # Of one line that begins with a command, nothing in a fence is markup.
        command = _CONTROL.sub("", _SPACE.sub(" ", step.command))
        lines += ["", "```sh", command, "```", "", f"Why: {plain(step.why)}."]
        lines += ["", plain(step.warning)] * bool(step.warning)
    lines += ["", "## What was read", "", plain(found.read)] * bool(found.read)
    assumed = [f"{each.what}: {each.value} ({each.state_with})" for each in found.assumptions] or ["nothing"]
    return [*lines, "", "## Assumed", "", *(f"- {plain(each)}" for each in assumed)]


def plain(words: str) -> str:
    """Return a sentence in which nothing is markup."""
    return _MARKUP.sub(r"\\\1", _LINKED.sub("\u200b", _clean(words)))


def code(name: str) -> str:
    """Return a name in which nothing is markup."""
    clean = _clean(name).replace("`", "'").replace("|", "¦")
    return f"`{clean}`" if clean else "–"


def _clean(words: str) -> str:
    clean = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", _SPACE.sub(" ", words)).strip()
    return clean if len(clean) <= _MOST_TOLD else f"{clean[: _MOST_TOLD - 1]}…"


def _title(found: Autopsy) -> str:
    who = [*dict.fromkeys(who for (who, _, _), _, _ in groups(found.deaths))]
    if not who:
        return ""
    return f": {code(who[0])}" + (f" and {counted(len(who) - 1, 'other')}" if len(who) > 1 else "")


def _death(death: Death, number: int | None, headline: str) -> Iterator[str]:
    yield f"## {'What happened' if number is None else f'{number}. {code(death.who)}'}"
    yield from ("",) if death.what == headline else ("", plain(death.what), "")
    if death.why:
        yield f"- **Why this one:** {plain(death.why)}"
    yield from (f"- **Cause:** {plain(cause.words)}" for cause in death.causes if cause.words)
    if death.next:
        yield f"- **Next in line:** {plain(death.next)}"
    yield from (f"- **{fact.label.capitalize()}:** {plain(fact.words)}" for fact in death.evidence)
    if savings := [saving.words for saving in death.saved_by if saving.words]:
        yield from ("", "### Fix: what would have saved it", "")
        yield from (f"{place}. {plain(each)}" for place, each in enumerate(savings, 1))
    if not death.is_ranked:
        return
    yield from ("", "### Ranking", "")
    yield from (plain(death.rule), "") if death.rule else ()
    yield f"| # | {' | '.join(map(plain, map(str.lower, death.columns)))} | |"
    yield f"|---:|---{'|---:' * (len(death.columns) - 1)}|---|"
    for place, row in enumerate(death.ranking[:_MOST_RANKED], 1):
        mark = f"**{row.mark}**" if row.mark else ""
        yield f"| {place} | {code(row.name)} | {' | '.join(map(plain, row.cells))} | {mark} |"
    if death.candidates > _MOST_RANKED:
        yield from ("", f"… of {counted(death.candidates, death.unit)}.")
