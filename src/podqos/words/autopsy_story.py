"""What ``podqos autopsy`` tells, most important first: how many deaths, who died how often and of what, then each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from podqos.survival.autopsy.autopsy import Autopsies
from podqos.survival.autopsy.eviction_traces import SignKind, seconds_of
from podqos.survival.autopsy.terminations import ContainerTermination, TerminationCause
from podqos.wording import counted, listed, mebibytes
from podqos.words.autopsy_death import AutopsyDeath
from podqos.words.autopsy_kills import of_kill
from podqos.words.evictions import container_words, of_eviction, sign_words, termination_words
from podqos.words.other_killers import NAMES, failure_headline, failure_words, of_userspace_kill

_UNREPORTED = TerminationCause.KERNEL_UNREPORTED
_NOTICED = {SignKind.UNIT_OOM_KILLED, SignKind.CONTAINER_OOM_KILLED, SignKind.INIT_OOM_KILLED, SignKind.SYSTEM_OOM}
_COUNTED = {True: "explained by the rules", False: "against the rules", None: "cannot be verified"}


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


def headline(found: Autopsies) -> str:
    """Return how many there are, and whether they follow from the rule."""
    verdicts = [kill.follows_rule for kill in found.kills] + [eviction.follows_rule for eviction in found.evictions]
    if found.userspace_kills:
        return _with_userspace(found, verdicts)
    if not verdicts and len(found.terminations) == 1 and found.terminations[0].cause is _UNREPORTED:
        return _oom_killed(found.terminations[0])
    if not verdicts and found.terminations:
        return (
            f"{counted(len(found.terminations), 'container')} killed; the logs have no OOM report and no eviction for "
            "it."
        )
    if not verdicts and any(sign.kind in _NOTICED for sign in found.node_events):
        return "The kernel OOM-killed a process: see the node events. Its report is not in the log."
    if not verdicts and found.program_failures:
        return failure_headline(found.program_failures)
    if not verdicts:
        return "No OOM kills and no evictions found."
    numbers = [
        counted(len(each), noun) for each, noun in ((found.kills, "OOM kill"), (found.evictions, "eviction")) if each
    ]
    parts = [f"{verdicts.count(each):,} {words}" for each, words in _COUNTED.items() if each in verdicts]
    left_out = found.kills_left_out + found.evictions_left_out
    before = f" (and {left_out:,} before them)" if left_out else ""
    return f"{listed(numbers)}: {', '.join(parts)}{before}"


def _with_userspace(found: Autopsies, verdicts: list[bool | None]) -> str:
    """Return how many kills there are by whom: those that are not the kernel's first."""
    by = Counter(NAMES[kill.killer] for kill in found.userspace_kills)
    numbers = [f"{counted(times, 'kill')} by {name}" for name, times in by.most_common()]
    kernels = [
        counted(len(deaths_of), noun)
        for deaths_of, noun in ((found.kills, "OOM kill by the kernel"), (found.evictions, "eviction"))
        if deaths_of
    ]
    parts = [f"{verdicts.count(verdict):,} {words}" for verdict, words in _COUNTED.items() if verdict in verdicts]
    explained = f" ({', '.join(parts)})" if parts else ""
    left_out = found.userspace_kills_left_out + found.kills_left_out + found.evictions_left_out
    more = f", and {left_out:,} more" if left_out else ""
    return f"Not the kernel: {listed(numbers)}{more}." + (f" Also {listed(kernels)}{explained}." if kernels else "")


def _oom_killed(ended: ContainerTermination) -> str:
    """Return what a pod's status alone says about an OOM kill, and where the rest is."""
    times = f" ({counted(ended.restarts, 'restart')})" if ended.restarts else ""
    who = f"{ended.pod} ({ended.container})" if ended.pod else _capital(container_words(ended))
    killed = f"{who} was OOM-killed{times}"
    if ended.is_from_runtime and ended.memory_limit_bytes is None:
        return f"{killed}. The kernel log of its machine says what was full."
    log = f"the kernel log of {ended.node}" if ended.node else "its node's kernel log"
    if ended.memory_limit_bytes is None:
        return f"{killed}. It has no memory limit: {log} says what was full."
    limit = mebibytes(ended.memory_limit_bytes)
    return f"{killed}, at its memory limit of {limit} or because the node was full: {log} says which."


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def groups(told: Sequence[AutopsyDeath]) -> tuple[DeathGroup, ...]:
    """Return who died how often and of what, the most frequent first."""
    keys = [(death.who, death.by, death.cause) for death in told]
    last = dict(zip(keys, (death.at for death in told), strict=True))
    return tuple(DeathGroup(*key, times, last[key]) for key, times in Counter(keys).most_common())
