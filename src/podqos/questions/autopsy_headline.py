"""The headline of ``podqos autopsy``: every death below it is counted in it, and nothing that is not below."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from podqos.amounts import counted, listed
from podqos.logs.said import EvictionCause, NodeSign, ProgramFailure, SignKind, WhatWasRead
from podqos.questions.autopsy_death import ContainerEnd, Death, EndCause, Manner, Reason
from podqos.questions.autopsy_words import PROGRAMS, end_words, failure_headline

_VERDICTS = {
    True: ("explained by the rules", "all explained by the rules"),
    False: ("against the rules", "all against the rules"),
    None: ("cannot be verified", "none of which can be verified"),
    "": ("not decided by ranking", "none decided by ranking"),
}
"""Of some, and where the same is true of several."""
_NOUNS = {
    EvictionCause.NOT_ADMITTED: "pod{s} not admitted",
    EvictionCause.NO_ROOM: "pod{s} not admitted",
    EvictionCause.NOT_ADMITTED_AT_SHUTDOWN: "pod{s} not admitted",
    EvictionCause.NODE_SHUTDOWN: "pod{s} terminated by a node shutdown",
    EvictionCause.PREEMPTED_BY_SCHEDULER: "pod{s} preempted",
    EvictionCause.TAINT: "pod{s} deleted",
    EvictionCause.POD_GC: "pod{s} deleted",
}
"""What is not an eviction."""
_CONTAINERS = {
    EndCause.PROBE: "container{s} killed after a failed probe",
    EndCause.GRACE_PERIOD: "container{s} killed at the end of the grace period",
    EndCause.NODE_LOST: "container{s} lost by the kubelet",
    EndCause.SIGKILL: "container{s} killed with SIGKILL, sender unknown",
}
_QUOTED = re.compile(r"[Kk]ill(?:ed)? process|oom-kill:constraint=|invoked oom-killer")
"""What the kernel says of a kill; in a sentence or in a program it proves none."""


def headline(deaths: Sequence[Death], left_out: int) -> str:
    """Return in one line what happened: of one death its own sentence, of several how many of what."""
    if len(deaths) == 1 and not left_out:
        return deaths[0].what
    programs = Counter(PROGRAMS[death.program.killer] for death in deaths if death.program is not None)
    numbers = [f"{counted(times, 'kill')} by {name}" for name, times in programs.most_common()]
    pieces = [f"Not the kernel: {listed(numbers)}."] * bool(numbers)
    judged = [
        death
        for death in deaths
        if death.manner in {Manner.OOM_KILL, Manner.EVICTION} and death.reason is not Reason.NO_REPORT
    ]
    if judged:
        nouns = Counter(_noun(death, also=bool(programs)) for death in judged)
        verdicts = Counter("" if death.reason is Reason.NOT_RANKED else death.follows_rule for death in judged)
        words = listed([f"{number:,} {noun.format(s='s' * (number > 1))}" for noun, number in nouns.items()])
        also = "Also " * bool(programs)
        if len(verdicts) == 1:
            one, every = _VERDICTS[next(iter(verdicts))]
            one = f"which {one}" if one.startswith("cannot") else one
            pieces.append(f"{also}{words}, {one if len(judged) == 1 else every}.")
        else:
            parts = [f"{verdicts[which]:,} {words[0]}" for which, words in _VERDICTS.items() if verdicts[which]]
            pieces.append(f"{also}{words}: {', '.join(parts)}.")
    more = "more " * bool(pieces)
    unreported = sum(death.times for death in deaths if death.reason is Reason.NO_REPORT)
    if unreported:
        pieces.append(f"{unreported:,} {more}OOM kill{'s' * (unreported > 1)}, without a report in the logs.")
    ends = Counter(
        _CONTAINERS.get(death.status.cause, "container{s} killed")
        for death in deaths
        if death.manner is Manner.CONTAINER and death.status is not None
    )
    pieces += [f"{number:,} {more}{noun.format(s='s' * (number > 1))}." for noun, number in ends.items()]
    if left_out:
        pieces.append(f"{left_out:,} more are counted, but not listed.")
    return " ".join(pieces)


def _noun(death: Death, *, also: bool) -> str:
    if death.eviction is not None:
        return _NOUNS.get(death.eviction.cause, "eviction{s}")
    if not death.victims:
        return "OOM{s} without a kill in the log"
    return "OOM kill{s} by the kernel" if also else "OOM kill{s}"


def headline_without_deaths(
    exits: Sequence[ContainerEnd], signs: Sequence[NodeSign], failures: Sequence[ProgramFailure], read: WhatWasRead
) -> str:
    """Return that nothing was killed, or that there was nothing that could have told of it."""
    if failures:
        return failure_headline(failures)
    if len(exits) == 1:
        words = end_words(exits[0])
        return f"{words[:1].upper()}{words[1:]}." if words.startswith("a container") else f"{words}."
    if exits:
        return _of_exits(exits)
    if read.is_given and read.is_nothing:
        return "Nothing to explain: the input is empty."
    if read.is_given and not (read.is_recognised or signs):
        what = "This does not look like a kernel or kubelet log"
        what = "This is binary data, not a log" if read.is_binary else what
        return f"{what}, and has no Kubernetes objects: nothing to explain.{_mentioned(read)}"
    lost = {sign.node or sign.pod for sign in signs if sign.kind is SignKind.NOT_READY}
    but = f", but {'a node' if len(lost) == 1 else f'{len(lost):,} nodes'} became NotReady" if lost else ""
    return f"No OOM kills and no evictions found{but}.{_mentioned(read)}"


def _mentioned(read: WhatWasRead) -> str:
    """Return which line speaks of a kill without saying what was killed."""
    mention = read.mention
    if mention is None:
        return ""
    of = f" of {read.logs[mention.log]}" if len(read.logs) > 1 and mention.log < len(read.logs) else ""
    if _QUOTED.search(mention.text):
        return f" Line {mention.line:,}{of} quotes the kernel's words, but is not a line of its log: {mention.text}"
    return f" Line {mention.line:,}{of} says {mention.word}, but not of what: {mention.text}"


def _of_exits(exits: Sequence[ContainerEnd]) -> str:
    """Return how many containers nobody killed, and how many may have been killed."""
    unclear = sum(ended.cause is EndCause.UNKNOWN for ended in exits)
    words = "No OOM kills and no evictions"
    if unclear < len(exits):
        words += f": {counted(len(exits) - unclear, 'container')} ended without being killed"
    if not unclear:
        return f"{words}."
    keep = "container keeps" if unclear == 1 else "containers keep"
    return f"{words} found, but {unclear:,} {keep} restarting, for a reason that is not in the input."
