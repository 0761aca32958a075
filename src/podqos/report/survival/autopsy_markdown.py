"""``podqos autopsy`` as Markdown for a post-mortem: timeline, cause, ranking, fix, and what is assumed.

Nothing of a log is markup: what podqos says is escaped as a whole, because names are a part of its sentences, and names
in tables are code. GitHub cuts long texts; this stays below that and says what it left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from podqos.survival.autopsy.autopsy import Autopsies
from podqos.wording import counted
from podqos.words.autopsy_death import AutopsyDeath
from podqos.words.autopsy_headline import is_of_one_container
from podqos.words.autopsy_story import AutopsyPage, page_of
from podqos.words.next_steps import StepWords

MOST_CHARACTERS = 65_536
_FOR_DEATHS = 40_000
_MOST_EVENTS = 50
_MOST_GROUPS = 20
_MOST_OTHERS = 20
_MOST_RANKED = 10
_MOST_WORDS = 500
_MARKUP = re.compile(r"([\\`*_\[\]<>|~$&])")
# What GitHub makes links and pictures of afterwards, in text that a backslash does not protect: mentions, references,
# addresses, emojis. A space without width takes them apart.
_LINKED = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=//|(?:[a-z+-][\w+-]*|100|1234):)|(?<=www)(?=\.)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def markdown(found: Autopsies) -> list[str]:
    """Return the lines of the document."""
    page = page_of(found)
    title = f"# Post-mortem: {_title(page)}" if page.deaths else "# Post-mortem"
    lines = [title, "", f"**{plain(page.lead)}**"]
    if page.deaths:
        lines += ["", *_timeline(page)]
    if len(page.groups) < len(page.deaths):
        lines += ["", *_groups(page)]
    room = _FOR_DEATHS
    for number, death in enumerate(page.deaths):
        told = ["", *_death(death, number + 1 if len(page.deaths) > 1 else None, page.lead)]
        room -= sum(map(len, told))
        if room < 0:
            lines += ["", f"… and {len(page.deaths) - number:,} more; `podqos autopsy -v` prints them all."]
            break
        lines += told
    others_known = (
        ("Killed containers", () if is_of_one_container(found) else page.containers),
        ("Programs' own errors", page.failures),
        ("Node events", page.signs),
    )
    for title, others in others_known:
        if others:
            left = [f"- … and {len(others) - _MOST_OTHERS:,} more"] * (len(others) > _MOST_OTHERS)
            lines += ["", f"## {title}", "", *(f"- {plain(other)}" for other in others[:_MOST_OTHERS]), *left]
    if page.next_steps:
        lines += ["", "## Next steps", "", *chain.from_iterable(map(_step, page.next_steps))][:-1]
    if page.read:
        lines += ["", "## What was read", "", plain(page.read)]
    lines += ["", "## Assumed", "", *(f"- {plain(assumption)}" for assumption in page.assumptions or ("nothing",))]
    return lines


def _step(step: StepWords) -> Iterator[str]:
    # Of one line that begins with a command, nothing in a fence is markup.
    yield from ("```sh", _CONTROL.sub("", _SPACE.sub(" ", step.command)), "```", "", f"Why: {plain(step.why)}.")
    if step.warning:
        yield from ("", plain(step.warning))
    yield ""


def plain(text: str) -> str:
    """Return a sentence in which nothing is markup."""
    return _MARKUP.sub(r"\\\1", _LINKED.sub("\u200b", _clean(text)))


def code(text: str) -> str:
    """Return a name in which nothing is markup."""
    clean = _clean(text).replace("`", "'").replace("|", "¦")
    return f"`{clean}`" if clean else "–"


def _clean(text: str) -> str:
    clean = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", _SPACE.sub(" ", text)).strip()
    return clean if len(clean) <= _MOST_WORDS else f"{clean[: _MOST_WORDS - 1]}…"


def _title(page: AutopsyPage) -> str:
    who = dict.fromkeys(group.who for group in page.groups)
    first = next(iter(who))
    others = f" and {counted(len(who) - 1, 'other')}" if len(who) > 1 else ""
    return f"{code(first)}{others}"


def _timeline(page: AutopsyPage) -> Iterator[str]:
    yield from ("## Timeline", "", "| when | where | who | by | cause |", "|---|---|---|---|---|")
    for death in page.deaths[:_MOST_EVENTS]:
        cells = (code(death.at), code(death.host), code(death.who), death.by, plain(death.cause) or "–")
        yield f"| {' | '.join(cells)} |"
    if len(page.deaths) > _MOST_EVENTS:
        yield from ("", f"… and {len(page.deaths) - _MOST_EVENTS:,} more.")


def _groups(page: AutopsyPage) -> Iterator[str]:
    yield from ("## Deaths by pod", "", "| times | who | by | cause |", "|---:|---|---|---|")
    for group in page.groups[:_MOST_GROUPS]:
        yield f"| {group.times:,} | {code(group.who)} | {group.by} | {plain(group.cause) or '–'} |"
    if len(page.groups) > _MOST_GROUPS:
        yield from ("", f"… and {len(page.groups) - _MOST_GROUPS:,} others.")


def _death(death: AutopsyDeath, number: int | None, lead: str) -> Iterator[str]:
    yield f"## {'What happened' if number is None else f'{number}. {code(death.who)}'}"
    yield from ("",) if death.what == lead else ("", plain(death.what), "")
    yield f"- **Why this one:** {plain(death.verdict)}"
    for cause in death.causes:
        yield f"- **Cause:** {plain(cause)}"
    if death.next:
        yield f"- **Next in line:** {plain(death.next)}"
    for fact in death.facts:
        yield f"- **{fact.label.capitalize()}:** {plain(fact.words)}"
    if death.saved_by:
        yield from ("", "### Fix: what would have saved it", "")
        yield from (f"{place}. {plain(each)}" for place, each in enumerate(death.saved_by, 1))
    if death.ranking:
        yield from ("", "### Ranking", "", *_ranking(death))


def _ranking(death: AutopsyDeath) -> Iterator[str]:
    if death.rule:
        yield from (plain(death.rule), "")
    yield f"| # | {' | '.join(map(plain, map(str.lower, death.columns)))} | |"
    yield f"|---:|---{'|---:' * (len(death.columns) - 1)}|---|"
    for place, ranked_row in enumerate(death.ranking[:_MOST_RANKED], 1):
        mark = f"**{ranked_row.mark}**" if ranked_row.mark else ""
        yield f"| {place} | {code(ranked_row.name)} | {' | '.join(map(plain, ranked_row.cells))} | {mark} |"
    if death.candidates > _MOST_RANKED:
        yield from ("", f"… of {counted(death.candidates, death.unit)}.")
