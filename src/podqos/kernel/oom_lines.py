"""Lines of the OOM killer that begin, decide or end a report, told from prose and source code that quote them.

A line that a log carries is the kernel's; one without a time or a host may be from a mail, a patch or a manual, and
has to be whole. Linux 2.6 to 6.x.

Sources: Linux mm/oom_kill.c (dump_header, oom_kill_process, __oom_kill_process, out_of_memory, check_panic_on_oom),
also as of v2.6.9 to v2.6.36.
"""

from __future__ import annotations

import re

from msgspec import Struct

_MOST_ORDER = 18
_MOST_NAME = 15  # TASK_COMM_LEN holds a zero byte, too

_INVOKED = re.compile(r"(?:(?:(.{1,64}?) )?invoked )?oom-killer(?::|$)(.*)")
_MASK_BEGINS = "gfp_mask=0x"
_DETAILS = re.compile(r"gfp_mask=0x[0-9a-f]|order=-?\d")
_ORDER = re.compile(r"order=(-?\d{1,3})")
_GFP = re.compile(r"gfp_mask=0x([0-9a-f]{1,8})")
_QUOTES = tuple("\"'`“‘«*%")
_MESSAGE = r"(?:(Memory cgroup out of memory|[Oo]ut of [Mm]emory[^:]{0,64}|No available memory[^:]{0,32}): )?"
_CHOSEN = re.compile(
    _MESSAGE + r"([Kk])ill process (\d{1,10}) \((.{0,64}?)\)(?: {0,2}$|(?: with)? score(?: (\d{1,18})(.*)|$))"
)
_KILLED = re.compile(_MESSAGE + r"Killed process (\d{1,10})(?:, UID \d{1,10},)? \((.{0,15}|.{16,64}?)\)(?=$|[ ,.])(.*)")
_NAMELESS = re.compile(r"(?:(Memory cgroup out of memory|Out of memory[^:]{0,64}): )?Killed process (\d{1,10})$")
_AFTER_KILLED = re.compile(r"[ ,.]*$|[ ,]{1,4}(?:tot(?!al-vm:\s?[^\s\d])|vsz|anon-|file-|UID|oom_)")
_PANIC = re.compile(r"Kernel panic - not syncing: ((?:[Oo]ut of memory|System is deadlocked on memory).{0,80})")
_OWN = (
    "oom-kill:constraint=",
    "oom_reaper: ",
    "Memory cgroup out of memory: Kill",
    "Out of memory: Kill",
    "Killed process ",
)
_TASK = re.compile(r"\[ {0,12}+[0-9]{1,10}+\](?: {1,16}+[0-9]{1,15}+){4} {1,16}+-?[0-9]", re.ASCII)
"""A row of the table of tasks."""
_OLD_CHOICE = ("or a child", "and children")


class Invocation(Struct, frozen=True, gc=False):
    """The first line of a report."""

    trigger: str
    """Empty where it is not known: before 2.6.18, or behind something that is no part of a name."""
    order: int | None
    gfp_mask: int | None
    has_flag_names: bool
    is_certain: bool
    """Whether nothing but the kernel writes such a line; else more of a report has to follow."""


class KillLine(Struct, frozen=True, gc=False):
    """A line that names the process that is chosen, or that is killed."""

    pid: int
    name: str
    message: str
    """What comes before the kill, such as "Out of memory"; empty where kernels left that to the line before."""
    is_done: bool
    """Whether it is killed; else chosen, and a child may die in its place."""
    score: int | None
    """None where the line ends before it."""
    rest: str
    is_old_rule: bool
    """Whether only kernels before 2.6.36 write it, which compare processes by another badness."""


def is_killers_own(text: str) -> bool:
    """Whether nothing but the kernel's OOM killer begins a line like this."""
    if text.startswith("[") and _TASK.match(text):
        return True
    return text.startswith(_OWN) or "invoked oom-killer: gfp_mask=0x" in text


def invocation(text: str) -> Invocation | None:
    """Read ``NAME invoked oom-killer: gfp_mask=…``, before 2.6.18 without a name."""
    line = _INVOKED.match(text) if "oom-killer" in text else None
    if line is None:
        return None
    trigger, rest = (line[1] or "").strip(), line[2].strip()
    details = _DETAILS.match(rest)
    if details is None and not _MASK_BEGINS.startswith(rest):
        return None
    if not trigger and details is None:
        return None
    is_name = len(trigger) <= _MOST_NAME and not trigger.startswith(_QUOTES)
    order, mask = _ORDER.search(rest), _GFP.search(rest)
    return Invocation(
        trigger=trigger if is_name else "",
        order=min(int(order[1]), _MOST_ORDER) if order else None,
        gfp_mask=int(mask[1], 16) if mask else None,
        has_flag_names=mask is not None and rest[mask.end() :].startswith("("),
        is_certain=is_name and details is not None,
    )


def kill_line(text: str, *, is_marked: bool) -> KillLine | None:
    """Read ``Killed process N (NAME)`` or ``Kill process N (NAME) score …``, with what is said before it."""
    if "ill" not in text:
        return None
    if line := _CHOSEN.match(text):
        message, rest, score = line[1] or "", line[6] or "", None if line[5] is None else int(line[5])
        is_old = line[2] == "k" or any(words in rest for words in _OLD_CHOICE) or _is_old_message(message)
        return KillLine(int(line[3]), line[4], message, is_done=False, score=score, rest=rest, is_old_rule=is_old)
    if line := _KILLED.match(text):
        message, rest = line[1] or "", line[4]
        if not _AFTER_KILLED.match(rest):
            return None
        is_old = _is_old_message(message)
        return KillLine(int(line[2]), line[3], message, is_done=True, score=None, rest=rest, is_old_rule=is_old)
    nameless = _NAMELESS.match(text) if is_marked else None
    return None if nameless is None else _nameless(nameless)


def _nameless(line: re.Match[str]) -> KillLine:
    """Return a kill whose line ends before the name."""
    return KillLine(int(line[2]), "", line[1] or "", is_done=True, score=None, rest="", is_old_rule=False)


def _is_old_message(message: str) -> bool:
    return message.startswith(("Out of Memory", "No available memory"))


def panic(text: str) -> str:
    """Return why the kernel panics in place of a kill; empty for other lines."""
    line = _PANIC.match(text)
    return line[1] if line else ""
