"""What ``podqos autopsy`` tells, most important first: how many deaths, who died how often and of what, then each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from podqos.survival.autopsy.autopsy import Autopsies, OOMAutopsy
from podqos.survival.autopsy.eviction_scene import EvictionReason
from podqos.survival.autopsy.eviction_traces import EvictionCause, SignKind, seconds_of
from podqos.survival.autopsy.terminations import ContainerTermination, TerminationCause
from podqos.survival.autopsy.what_was_read import WhatWasRead
from podqos.wording import counted, listed, mebibytes
from podqos.words.autopsy_death import AutopsyDeath
from podqos.words.autopsy_kills import of_kill
from podqos.words.evictions import ended_words, of_eviction, sign_words, termination_words
from podqos.words.next_steps import StepWords, read_words, step_words

_TIMED_OUT = SignKind.CLEAN_UP_TIMED_OUT
_NOT_RANKED = "not decided by ranking"
_NOUNS = {
    EvictionCause.NOT_ADMITTED: "pod{s} not admitted",
    EvictionCause.NOT_ADMITTED_AT_SHUTDOWN: "pod{s} not admitted",
    EvictionCause.NODE_SHUTDOWN: "pod{s} terminated by a node shutdown",
    EvictionCause.PREEMPTED_BY_SCHEDULER: "pod{s} preempted",
    EvictionCause.TAINT: "pod{s} deleted",
    EvictionCause.POD_GC: "pod{s} deleted",
}
"""What is not an eviction."""
_CONTAINERS = {
    "OOM-killed, without a report in the logs": {TerminationCause.KERNEL_UNREPORTED, TerminationCause.KERNEL},
    "with another process OOM-killed, without a report in the logs": {TerminationCause.KERNEL_OF_CHILD},
    "killed with an evicted pod": {TerminationCause.EVICTION},
    "killed after a failed probe": {TerminationCause.PROBE},
    "killed at the end of the grace period": {TerminationCause.GRACE_PERIOD},
    "lost by the kubelet": {TerminationCause.NODE_LOST},
    "killed by an unknown sender": {TerminationCause.SIGKILL},
    "stopped with SIGTERM": {TerminationCause.SIGTERM},
    "crashed": {TerminationCause.CRASH},
    "exited": {TerminationCause.EXIT},
}
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
    read: str = ""
    """How much of what was read."""
    next_steps: tuple[StepWords, ...] = ()
    """What to run next, where the answer is incomplete."""
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
        read_words(found.read),
        tuple(map(step_words, found.next_steps)),
    )


def deaths(found: Autopsies) -> tuple[AutopsyDeath, ...]:
    """Return what died: in the order of time where that is known, else of the logs, evictions last."""
    told = [*map(of_kill, found.kills), *map(of_eviction, found.evictions)]
    times = [seconds_of(death.at) for death in told]
    known = [time for time in times if time is not None]
    if len(known) < len(told):
        return tuple(told)
    return tuple(told[place] for place in sorted(range(len(told)), key=known.__getitem__))


def speaks_for_itself(found: Autopsies) -> bool:
    """Whether there is one death and nothing else: its own first line is the headline."""
    return len(found.kills) + len(found.evictions) == 1 and not (_unexplained(found) or _unreported(found))


def headline(found: Autopsies) -> str:
    """Return in one line what happened: every death below it is counted in it, and nothing else is."""
    known = _verdicts(found)
    unexplained = _unexplained(found)
    if not known and len(unexplained) == 1 and not _unreported(found):
        return _one_container(unexplained[0])
    more = "more " * bool(known)
    pieces = [known] if known else []
    for words, causes in _CONTAINERS.items():
        if number := sum(ended.cause in causes for ended in unexplained):
            pieces.append(f"{number:,} {more}container{'s' * (number > 1)} {words}")
    if number := _unreported(found):
        pieces.append(f"{number:,} {more}OOM kill{'s' * (number > 1)} in node events, without a kernel report")
    if number := len({sign.pod for sign in found.node_events if sign.kind is _TIMED_OUT} - _evicted(found)):
        pieces.append(f"{counted(number, 'pod')} evicted, by the kubelet's log alone")
    if not pieces and found.exits:
        return f"No OOM kills and no evictions: {counted(len(found.exits), 'container')} ended without being killed."
    if not pieces:
        return _nothing(found.read)
    return pieces[0] if len(pieces) == 1 else ". ".join(pieces) + "."


def _verdicts(found: Autopsies) -> str:
    """Return how many OOMs and evictions there are, and whether they follow from the rules."""
    nouns = Counter(_noun(kill) for kill in found.kills)
    nouns.update(_NOUNS.get(eviction.cause, "eviction{s}") for eviction in found.evictions)
    if not nouns:
        return ""
    verdicts: Counter[str] = Counter(_COUNTED[kill.follows_rule] for kill in found.kills)
    verdicts.update(
        _NOT_RANKED if eviction.reason is EvictionReason.NOT_RANKED else _COUNTED[eviction.follows_rule]
        for eviction in found.evictions
    )
    numbers = [f"{number:,} {noun.format(s='s' * (number > 1))}" for noun, number in nouns.items()]
    parts = [f"{verdicts[words]:,} {words}" for words in (*_COUNTED.values(), _NOT_RANKED) if verdicts[words]]
    left_out = found.kills_left_out + found.evictions_left_out
    before = f" (and {left_out:,} before them)" if left_out else ""
    return f"{listed(numbers)}: {', '.join(parts)}{before}"


def _noun(kill: OOMAutopsy) -> str:
    return "OOM kill{s}" if kill.victims else "OOM{s} without a kill in the log"


def _unexplained(found: Autopsies) -> list[ContainerTermination]:
    """Return the containers whose end is not among the kills and evictions."""
    return [ended for ended in found.terminations if ended.kill is None and ended.eviction is None]


def _unreported(found: Autopsies) -> int:
    """Return how many OOM kills only events of nodes tell of."""
    kinds = (SignKind.SYSTEM_OOM, SignKind.OOM_KILLING)
    return sum(sign.times for sign in found.node_events if sign.kind in kinds and sign.kill is None)


def _evicted(found: Autopsies) -> set[str]:
    return {eviction.pod for eviction in found.evictions}


def _nothing(read: WhatWasRead) -> str:
    """Return that nothing was found, or that there was nothing in which it could have been found."""
    if read.is_given and read.is_nothing:
        return "Nothing to explain: the input is empty."
    if read.is_given and not read.is_recognised:
        what = "This is binary data, not a log" if read.is_binary else "This does not look like a kernel or kubelet log"
        return f"{what}, and has no Kubernetes objects: nothing to explain."
    return "No OOM kills and no evictions found."


def _one_container(ended: ContainerTermination) -> str:
    """Return how the only container ended."""
    if ended.cause is TerminationCause.KERNEL_UNREPORTED:
        return _oom_killed(ended)
    return f"{ended_words(ended)}."


def _oom_killed(ended: ContainerTermination) -> str:
    """Return what a pod's status alone says about an OOM kill, and where the rest is."""
    times = f" ({counted(ended.restarts, 'restart')})" if ended.restarts else ""
    who = f"{ended.pod} ({ended.container})" if ended.container else ended.pod or "A container"
    killed = f"{who} was OOM-killed{times}"
    log = f"the kernel log of {ended.node}" if ended.node else "its node's kernel log"
    if not ended.container:  # a table, which has no limits
        return f"{killed}: {log} says what was full."
    if ended.memory_limit_bytes is None:
        return f"{killed}. It has no memory limit: {log} says what was full."
    limit = mebibytes(ended.memory_limit_bytes)
    return f"{killed}, at its memory limit of {limit} or because the node was full: {log} says which."


def groups(told: Sequence[AutopsyDeath]) -> tuple[DeathGroup, ...]:
    """Return who died how often and of what, the most frequent first."""
    keys = [(death.who, death.by, death.cause) for death in told]
    last = dict(zip(keys, (death.at for death in told), strict=True))
    return tuple(DeathGroup(*key, times, last[key]) for key, times in Counter(keys).most_common())
