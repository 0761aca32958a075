"""What ``podqos autopsy`` tells, most important first: how many deaths, who died how often and of what, then each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from podqos.survival.autopsy.autopsy import Autopsies
from podqos.survival.autopsy.eviction_traces import seconds_of
from podqos.words.autopsy_death import AutopsyDeath
from podqos.words.autopsy_headline import headline, speaks_for_itself
from podqos.words.autopsy_kills import of_kill
from podqos.words.autopsy_tiles import TileWords, tiles
from podqos.words.evictions import of_eviction, sign_words, termination_words
from podqos.words.next_steps import StepWords, read_words, steps_words
from podqos.words.other_killers import failure_words, of_userspace_kill


class DeathGroup(Struct, frozen=True, rename="camel"):
    """Deaths alike."""

    who: str
    by: str
    cause: str
    times: int
    last: str
    """When."""


class AutopsyPage(Struct, frozen=True, rename="camel"):
    """Everything that the page of ``podqos autopsy`` shows."""

    headline: str
    groups: tuple[DeathGroup, ...]
    deaths: tuple[AutopsyDeath, ...]
    containers: tuple[str, ...] = ()
    """Those that were killed, by the status of their pods."""
    signs: tuple[str, ...] = ()
    """Node events: pressure, crossed thresholds, OOM kills that no report explains."""
    assumptions: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """Programs that ran out of their own memory."""
    read: str = ""
    """How much of what was read."""
    next_steps: tuple[StepWords, ...] = ()
    """What to run next, where the answer is incomplete."""
    lead: str = ""
    """What the page says first: what the only death is, where there is nothing else, or the headline."""
    exits: tuple[str, ...] = ()
    """Containers not known to have been killed."""
    tiles: tuple[TileWords, ...] = ()
    """The figures at a glance."""
    kind: str = "AutopsyPage"


def page_of(found: Autopsies) -> AutopsyPage:
    """Return what the page shows."""
    told = deaths(found)
    return AutopsyPage(
        headline(found),
        groups(told),
        told,
        tuple(map(termination_words, found.terminations)),
        tuple(map(sign_words, found.node_events)),
        tuple(f"{assumption.what}: {assumption.value} ({assumption.state_with})" for assumption in found.assumptions),
        tuple(map(failure_words, found.program_failures)),
        read_words(found.read),
        steps_words(found.next_steps),
        told[0].what if speaks_for_itself(found) else headline(found),
        tuple(map(termination_words, found.exits)),
        tiles(told),
    )


def deaths(found: Autopsies) -> tuple[AutopsyDeath, ...]:
    """Return what died: in the order of time where that is known, else by who killed."""
    told = [
        *map(of_kill, found.kills),
        *map(of_eviction, found.evictions),
        *map(of_userspace_kill, found.userspace_kills),
    ]
    times = [seconds_of(death.at) for death in told]
    known = [time for time in times if time is not None]
    if len(known) < len(told):
        return tuple(told)
    return tuple(told[place] for place in sorted(range(len(told)), key=known.__getitem__))


def groups(told: Sequence[AutopsyDeath]) -> tuple[DeathGroup, ...]:
    """Return who died how often and of what, the most frequent first."""
    keys = [(death.who, death.by, death.cause) for death in told]
    last = dict(zip(keys, (death.at for death in told), strict=True))
    return tuple(DeathGroup(*key, times, last[key]) for key, times in Counter(keys).most_common())
