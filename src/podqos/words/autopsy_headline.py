"""The headline of ``podqos autopsy``: every death below it is counted in it, and nothing that is not below."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from podqos.survival.autopsy.autopsy import Autopsies, OOMAutopsy
from podqos.survival.autopsy.eviction_scene import EvictionReason
from podqos.survival.autopsy.eviction_traces import OOM_SIGNS, EvictionCause, NodeSign, SignKind
from podqos.survival.autopsy.terminations import ContainerTermination, TerminationCause
from podqos.survival.autopsy.what_was_read import WhatWasRead
from podqos.wording import counted, listed, mebibytes
from podqos.words.evictions import container_words, oom_sign_words, termination_words
from podqos.words.other_killers import NAMES, failure_headline

_COUNTED = {True: "explained by the rules", False: "against the rules", None: "cannot be verified"}
_NOT_RANKED = "not decided by ranking"
_ALL = {
    _COUNTED[True]: "all explained by the rules",
    _COUNTED[False]: "all against the rules",
    _COUNTED[None]: "none of which can be verified",
    _NOT_RANKED: "none decided by ranking",
}
"""Where the same is true of several."""
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
    TerminationCause.KERNEL: "OOM-killed, without a report in the logs",
    TerminationCause.KERNEL_UNREPORTED: "OOM-killed, without a report in the logs",
    TerminationCause.KERNEL_OF_CHILD: "with another process OOM-killed, without a report in the logs",
    TerminationCause.EVICTION: "killed with an evicted pod",
    TerminationCause.PROBE: "killed after a failed probe",
    TerminationCause.GRACE_PERIOD: "killed at the end of the grace period",
    TerminationCause.NODE_LOST: "lost by the kubelet",
    TerminationCause.SIGKILL: "killed with SIGKILL, sender unknown",
    TerminationCause.SIGTERM: "stopped with SIGTERM",
    TerminationCause.CRASH: "crashed",
    TerminationCause.EXIT: "exited",
    TerminationCause.UNKNOWN: "restarting",
}
_QUOTED = re.compile(r"[Kk]ill(?:ed)? process|oom-kill:constraint=|invoked oom-killer")
"""What the kernel says of a kill; in a sentence or in a program it proves none."""
_SEVERAL_SENTENCES = {TerminationCause.KERNEL_UNREPORTED}
"""The headline about these has what was full, and the list what the status shows."""


def speaks_for_itself(found: Autopsies) -> bool:
    """Whether there is one death and nothing else: its own first line is the headline."""
    deaths = len(found.kills) + len(found.evictions) + len(found.userspace_kills)
    return deaths == 1 and not (_unexplained(found) or _unreported(found))


def is_of_one_container(found: Autopsies) -> bool:
    """Whether the headline has all that is known of the only container that was killed."""
    deaths = len(found.kills) + len(found.evictions) + len(found.userspace_kills)
    ended = found.terminations
    return len(ended) == 1 and not (deaths or _unreported(found)) and ended[0].cause not in _SEVERAL_SENTENCES


def headline(found: Autopsies) -> str:
    """Return in one line what happened."""
    pieces = list(filter(None, (_by_programs(found), _verdicts(found))))
    unexplained = _unexplained(found)
    noticed = _unreported(found)
    if not pieces and len(unexplained) == 1 and not noticed:
        return _one_container(unexplained[0])
    more = "more " * bool(pieces)
    causes = Counter(_CONTAINERS.get(ended.cause, "killed") for ended in unexplained)
    pieces += [f"{number:,} {more}container{'s' * (number > 1)} {words}" for words, number in causes.items()]
    if pieces and found.terminations_left_out:
        pieces.append(f"{found.terminations_left_out:,} more containers killed, which are not listed")
    if noticed == 1 and not pieces:
        (sign,) = (sign for sign in found.node_events if _is_unreported(sign))
        pieces.append(f"{_capital(oom_sign_words(sign))}. The kernel's report is not in the log.")
    elif noticed:
        pieces.append(f"{counted(noticed, 'node event')} of OOM kills, without a report in the logs")
    if number := len(_evicted_by_log(found)):
        pieces.append(f"{counted(number, 'pod')} evicted, by the kubelet's log alone")
    if not pieces:
        return _without_kills(found)
    return " ".join(piece if piece.endswith(".") else f"{piece}." for piece in pieces)


def _by_programs(found: Autopsies) -> str:
    """Return how many kills there are by programs, and by which."""
    by = Counter(NAMES[kill.killer] for kill in found.userspace_kills)
    numbers = [f"{counted(times, 'kill')} by {name}" for name, times in by.most_common()]
    left_out = found.userspace_kills_left_out
    more = f", and {left_out:,} more" if left_out else ""
    return f"Not the kernel: {listed(numbers)}{more}." if numbers else ""


def _verdicts(found: Autopsies) -> str:
    """Return how many OOMs and evictions there are, and whether they follow from the rules."""
    also = bool(found.userspace_kills)
    nouns = Counter(_noun(kill, also) for kill in found.kills)
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
    if len(parts) == 1:
        (words,) = verdicts
        own = "which cannot be verified" if words == _COUNTED[None] else words
        return f"{'Also ' * also}{listed(numbers)}, {own if verdicts.total() == 1 else _ALL[words]}{before}"
    return f"{'Also ' * also}{listed(numbers)}: {', '.join(parts)}{before}"


def _noun(kill: OOMAutopsy, also: bool) -> str:
    if not kill.victims:
        return "OOM{s} without a kill in the log"
    return "OOM kill{s} by the kernel" if also else "OOM kill{s}"


def _unexplained(found: Autopsies) -> list[ContainerTermination]:
    """Return the containers whose end is not among the kills and evictions."""
    return [
        ended
        for ended in found.terminations
        if ended.kill is None and ended.eviction is None and ended.userspace_kill is None
    ]


def _unreported(found: Autopsies) -> int:
    """Return how many events of nodes tell of OOM kills that have no report; several may tell of one."""
    return sum(sign.times for sign in found.node_events if _is_unreported(sign))


def _is_unreported(sign: NodeSign) -> bool:
    return sign.kind in OOM_SIGNS and sign.kill is None


def _evicted_by_log(found: Autopsies) -> set[str]:
    evicted = {eviction.pod for eviction in found.evictions}
    return {sign.pod for sign in found.node_events if sign.kind is SignKind.CLEAN_UP_TIMED_OUT} - evicted


def _without_kills(found: Autopsies) -> str:
    """Return that nothing was killed, or that there was nothing that could have told of it."""
    read = found.read
    if found.program_failures:
        return failure_headline(found.program_failures)
    if found.exits:
        return _of_exits(found.exits)
    if read.is_given and read.is_nothing:
        return "Nothing to explain: the input is empty."
    if read.is_given and not (read.is_recognised or found.node_events):
        return f"{_other_data(read)}, and has no Kubernetes objects: nothing to explain.{_mentioned(read)}"
    lost = {sign.node or sign.pod for sign in found.node_events if sign.kind is SignKind.NOT_READY}
    but = f", but {'a node' if len(lost) == 1 else f'{len(lost):,} nodes'} became NotReady" if lost else ""
    return f"No OOM kills and no evictions found{but}.{_mentioned(read)}"


def _mentioned(read: WhatWasRead) -> str:
    """Return which line speaks of a kill without saying what was killed."""
    found = read.mention
    if found is None:
        return ""
    of = f" of {read.logs[found.log]}" if len(read.logs) > 1 and found.log < len(read.logs) else ""
    if _QUOTED.search(found.text):
        return f" Line {found.line:,}{of} quotes the kernel's words, but is not a line of its log: {found.text}"
    return f" Line {found.line:,}{of} says {found.word}, but not of what: {found.text}"


def _of_exits(exits: Sequence[ContainerTermination]) -> str:
    """Return how many containers nobody killed, and how many may have been killed."""
    unclear = sum(ended.cause is TerminationCause.UNKNOWN for ended in exits)
    words = "No OOM kills and no evictions"
    if unclear < len(exits):
        words += f": {counted(len(exits) - unclear, 'container')} ended without being killed"
    if not unclear:
        return f"{words}."
    keep = "container keeps" if unclear == 1 else "containers keep"
    return f"{words} found, but {unclear:,} {keep} restarting, for a reason that is not in the input."


def _other_data(read: WhatWasRead) -> str:
    return "This is binary data, not a log" if read.is_binary else "This does not look like a kernel or kubelet log"


def _one_container(ended: ContainerTermination) -> str:
    """Return how the only container ended."""
    if ended.cause is TerminationCause.KERNEL_UNREPORTED:
        return _oom_killed(ended)
    words = f"{termination_words(ended)}."
    return words if ended.pod and ended.container else _capital(words)


def _oom_killed(ended: ContainerTermination) -> str:
    """Return what a status alone says about an OOM kill, and where the rest is."""
    times = f" ({counted(ended.restarts, 'restart')})" if ended.restarts else ""
    own = f"{ended.pod} ({ended.container})" if ended.container else ended.pod
    killed = f"{own if ended.pod else _capital(container_words(ended))} was OOM-killed{times}"
    machine = "node" if ended.pod else "machine"
    log = f"the kernel log of {ended.node}" if ended.node else f"the {machine}'s kernel log"
    if ended.is_limit_unknown or (ended.is_from_runtime and ended.memory_limit_bytes is None):
        return f"{killed}: {log} says what was full."
    if ended.memory_limit_bytes is None:
        return f"{killed}. It has no memory limit: {log} says what was full."
    limit = mebibytes(ended.memory_limit_bytes)
    if ended.stated_limit_bytes is not None:
        limit += f" (in force by its status; its spec states {mebibytes(ended.stated_limit_bytes)})"
    return f"{killed}, at its memory limit of {limit} or because the {machine} was full: {log} says which."


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"
