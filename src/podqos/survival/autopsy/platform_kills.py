"""How schedulers and platforms word that they ended a job, a task or an instance for its memory: Ray, Slurm, Lambda.

Some of them kill by themselves, some have a kernel do it and report that: what they say is that a limit of theirs was
reached. Known as they print it, not by their source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from podqos.survival.autopsy.lazy_pattern import LazyPattern
from podqos.survival.autopsy.program_failures import is_quoted
from podqos.survival.autopsy.userspace_kill import KillBasis, Killer, UserspaceKill

_UNIT = "[KMGT]?i?[Bb]"
_LIMIT = "memory limit"


class _Form(Struct, frozen=True):
    killer: Killer
    needs: str
    """What its lines hold; no other line is matched."""
    pattern: LazyPattern
    """Groups: victim, pid, used, limit, each amount with its unit; processes."""
    rule: str = _LIMIT
    unit: str = "MB"
    """Of amounts that have none."""
    is_detail: bool = False
    """Whether it tells more of the kill before it."""
    basis: KillBasis = KillBasis.LIMIT


_FORMS = (
    _Form(
        Killer.RAY,
        "node running low on memory",
        LazyPattern(
            r"(?:Error: |: )(?:Task|Actor|The actor|Your task) was killed due to the node running low on memory"
        ),
        basis=KillBasis.LOW_MEMORY,
    ),
    _Form(
        Killer.RAY,
        "memory usage threshold of",
        LazyPattern(
            r"where the (?:task|actor) \([^)]{0,300}?name=(?P<victim>[^,)]{1,64}), [^)]{0,100}?pid=(?P<pid>\d{1,10}), "
            rf"memory used=(?P<used>[\d.]{{1,12}})(?P<used_unit>{_UNIT})\) was running was "
            rf"(?P<taken>[\d.]{{1,12}})(?P<taken_unit>{_UNIT}) / (?P<total>[\d.]{{1,12}})(?P<total_unit>{_UNIT})"
        ),
        is_detail=True,
        basis=KillBasis.LOW_MEMORY,
    ),
    _Form(
        Killer.RAY,
        "killed due to memory pressure (OOM)",
        LazyPattern(r"(?P<processes>\d{1,9}) Workers \(tasks / actors\) killed due to memory pressure \(OOM\)"),
        is_detail=True,
        basis=KillBasis.LOW_MEMORY,
    ),
    _Form(
        Killer.DASK,
        "% memory budget",
        LazyPattern(
            r"Worker (?P<victim>\S{1,200}) \(pid=(?P<pid>\d{1,10})\) exceeded \d{1,3}% memory budget\. Restarting"
        ),
        rule="memory budget",
    ),
    _Form(
        Killer.HEROKU,
        "Error R15",
        LazyPattern(r"Error R15 \(Memory quota vastly exceeded\)"),
        rule="memory quota, by far",
    ),
    _Form(
        Killer.CLOUD_RUN,
        "Memory limit of ",
        LazyPattern(
            r"Memory limit of (?P<limit>[\d.]{1,12}) ?(?P<limit_unit>[KMGT]i?B?) exceeded with "
            r"(?P<used>[\d.]{1,12}) ?(?P<used_unit>[KMGT]i?B?) used\. Consider increasing the memory limit"
        ),
    ),
    _Form(
        Killer.CLOUD_RUN,
        "using too much memory and was terminated",
        LazyPattern(r"The container instance was found to be using too much memory and was terminated"),
    ),
    _Form(
        Killer.APP_ENGINE,
        "using too much memory and was terminated",
        LazyPattern(r"the process that handled this request was found to be using too much memory and was terminated"),
    ),
    _Form(
        Killer.APP_ENGINE,
        " memory limit of ",
        LazyPattern(
            rf"Exceeded (?:soft|hard)(?: private)? memory limit of (?P<limit>[\d.]{{1,12}}) (?P<limit_unit>{_UNIT}) "
            rf"with (?P<used>[\d.]{{1,12}}) (?P<used_unit>{_UNIT}) after servicing \d{{1,12}} requests"
        ),
    ),
    _Form(
        Killer.LAMBDA,
        "Runtime.OutOfMemory",
        LazyPattern(r"\"errorType\": ?\"Runtime\.OutOfMemory\"|RequestId: \S{1,64} Error Type: Runtime\.OutOfMemory"),
        rule="memory size",
    ),
    _Form(
        Killer.LAMBDA,
        "Max Memory Used: ",
        LazyPattern(
            r"Memory Size: (?P<limit>\d{1,6}) (?P<limit_unit>MB)\s{1,8}Max Memory Used: (?P<used>\d{1,6}) "
            r"(?P<used_unit>MB)\s.{0,400}?Error Type: Runtime\.OutOfMemory"
        ),
        rule="memory size",
        is_detail=True,
    ),
    _Form(
        Killer.RENDER,
        "Ran out of memory (used over ",
        LazyPattern(rf"Ran out of memory \(used over (?P<limit>[\d.]{{1,12}})(?P<limit_unit>{_UNIT})\) while running"),
    ),
    _Form(
        Killer.VERCEL,
        "event was detected during the build",
        LazyPattern(r'At least one "Out of Memory" \("OOM"\) event was detected during the build\.'),
    ),
    _Form(
        Killer.BITBUCKET,
        "' exceeded memory limit.",
        LazyPattern(r"^\W{0,8}Container '(?P<victim>[\w.-]{1,63})' exceeded memory limit\.\s{0,8}$"),
    ),
    _Form(
        Killer.MESOS,
        "Memory limit exceeded: Requested: ",
        LazyPattern(
            rf"Memory limit exceeded: Requested: (?P<limit>[\d.]{{1,12}}) ?(?P<limit_unit>{_UNIT}) "
            rf"Maximum Used: (?P<used>[\d.]{{1,12}}) ?(?P<used_unit>{_UNIT})"
        ),
    ),
    _Form(
        Killer.PBS,
        "PBS: job killed: ",
        LazyPattern(
            r"PBS: job killed: [vp]?mem (?P<used>\d{1,15})(?P<used_unit>[kmg]b) exceeded limit "
            r"(?P<limit>\d{1,15})(?P<limit_unit>[kmg]b)"
        ),
    ),
    _Form(
        Killer.LSF, "TERM_MEMLIMIT", LazyPattern(r"TERM_MEMLIMIT: job killed after reaching LSF memory usage limit\.?")
    ),
    _Form(
        Killer.HTCONDOR,
        "gone over ",
        LazyPattern(
            r"[Jj]ob has gone over (?:cgroup )?memory limit of (?P<limit>\d{1,12}) (?P<limit_unit>M)(?:b|egabytes)\b"
        ),
    ),
    _Form(
        Killer.SLURM,
        " memory limit (",
        LazyPattern(
            r"error: (?P<victim>(?:Job|Step) [\w.]{1,40}) exceeded (?:job )?memory limit "
            r"\((?P<used>\d{1,15}) > (?P<limit>\d{1,15})\), being killed"
        ),
        unit="KB",
    ),
)
WORDS = tuple({form.needs: None for form in _FORMS})
"""Any of these is in every such line."""


def platform_kills(text: str) -> Iterator[tuple[UserspaceKill, re.Match[str], bool]]:
    """Yield the kill of a line, what says so, and whether it only tells more of the one before it."""
    for form in _FORMS:
        if form.needs in text and (match := form.pattern.search(text)):
            if is_quoted(text, match.start()):
                return
            groups = match.groupdict()
            amounts = {
                name: _bytes(groups.get(name), groups.get(f"{name}_unit") or form.unit)
                for name in ("used", "limit", "taken", "total")
            }
            pid, processes = groups.get("pid"), groups.get("processes")
            total, taken = amounts["total"], amounts["taken"]
            kill = UserspaceKill(
                form.killer,
                form.basis,
                victim=groups.get("victim") or "",
                pid=None if pid is None else int(pid),
                rss_bytes=amounts["used"],
                limit_bytes=amounts["limit"],
                rule=form.rule if form.basis is KillBasis.LIMIT else "",
                memory_total_bytes=total,
                memory_available_bytes=None if total is None or taken is None else max(0, total - taken),
                processes=None if processes is None else int(processes),
            )
            yield kill, match, form.is_detail
            return


def _bytes(number: str | None, unit: str) -> int | None:
    if number is None:
        return None
    try:
        return int(float(number) * (1 << (10 * "KMGT".index(unit[0].upper()) + 10)))
    except (ValueError, OverflowError):
        return None
