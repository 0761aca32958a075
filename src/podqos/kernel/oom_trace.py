"""Whose memory ran out, by the stack of the process that asked.

Innermost frames come first, so the first that decides does. Frames with a question mark may be left from earlier calls.

Sources: Linux mm/oom_kill.c, mm/memcontrol.c (mem_cgroup_out_of_memory and its callers), mm/page_alloc.c
(__alloc_pages_may_oom), drivers/tty/sysrq.c (moom_callback).
"""

from __future__ import annotations

import re

from msgspec import Struct

_FRAME = re.compile(r"(\? {0,4})?\b([A-Za-z_]\w{2,63})(?:\.\w{1,16}){0,4}\+0x[0-9a-f]{1,8}/0x")
_OOM = {"dump_header", "oom_kill_process", "out_of_memory", "__out_of_memory"}
_REPORTING = "dump_header"
_REPORTING_ON_ARM = re.compile(
    r"\bdump_header\)? from (?:\[<[0-9a-f]{8,16}>\] \()?(?:oom_kill_process|out_of_memory)\+0x"
)
_OF_CGROUP = {
    "mem_cgroup_out_of_memory",
    "mem_cgroup_oom_synchronize",
    "mem_cgroup_handle_oom",
    "mem_cgroup_oom",
    "try_charge",
    "try_charge_memcg",
    "__mem_cgroup_try_charge",
}
_OF_MACHINE = {"pagefault_out_of_memory", "moom_callback"}
_ALLOCATION = "__alloc_pages"


class Trace(Struct):
    """The frames so far."""

    is_cgroups: bool | None = None
    """Whether a cgroup ran out, or the machine; None: not known."""
    has_frames: bool = False
    is_of_report: bool = False
    """Whether the OOM killer was writing its report."""
    _maybe_cgroups: bool = False
    _last: str = ""

    def read(self, text: str) -> bool:
        """Read a line; return whether it has a frame."""
        if "+0x" not in text:
            return False
        frames = _FRAME.findall(text)
        for unsure, name in frames:
            self._read(name, is_sure=not unsure)
        self.has_frames |= bool(frames)
        self.is_of_report |= _REPORTING in text and _REPORTING_ON_ARM.search(text) is not None
        return bool(frames)

    @property
    def is_perhaps_cgroups(self) -> bool:
        """Whether a cgroup ran out by frames that are all uncertain, as those of kernels without frame pointers."""
        return self.is_cgroups is None and self._maybe_cgroups

    def _read(self, name: str, *, is_sure: bool) -> None:
        if not is_sure:
            self._maybe_cgroups |= name in _OF_CGROUP
            return
        self.is_of_report |= self._last == _REPORTING and name in _OOM
        if self.is_cgroups is None:
            if name in _OF_CGROUP:
                self.is_cgroups = True
            elif self._last in _OOM and (name in _OF_MACHINE or name.startswith(_ALLOCATION)):
                self.is_cgroups = False
        self._last = name
