"""Cgroups as planned, written to this machine; a class that uses more than its share is limited to what it uses."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from podqos.errors import HostError
from podqos.host.linux.cgroupfs import Cgroups, Unwritten
from podqos.host.linux.loop import Loop
from podqos.qos.cgroup import Cgroup, Level

_MEMORY_LIMITS = ("memory.max", "memory.limit_in_bytes")
_REFUSED_SECONDS = 60.0  # as often as the kubelet rewrites the cgroups of the classes


class CgroupWriter:
    """Writes cgroups, again later where the kernel refuses a limit."""

    def __init__(self, cgroups: Cgroups, loop: Loop, note: Callable[[str], None]) -> None:
        self._cgroups = cgroups
        self._loop = loop
        self._note = note
        self._refused: dict[str, Cgroup] = {}
        """Cgroups of classes, by path, whose limit the kernel refused: more was in use."""
        self.found_held: set[str] = set()
        """Cgroups of pods, by path, that an earlier agent had kept from growing when it was killed."""

    def write(self, cgroup: Cgroup) -> None:
        """Make a cgroup, if it is not there, and write its values; what cannot be written is noted."""
        if cgroup.path is None:
            return
        was_refused = self._refused.pop(cgroup.path, None) is not None
        try:
            self._cgroups.create(cgroup.path)
        except HostError as error:
            self._note(str(error))
            return
        for unwritten in self._cgroups.write(cgroup.path, cgroup.files):
            if cgroup.level is Level.QOS and unwritten.file in _MEMORY_LIMITS:
                self._limit_to_usage(cgroup, unwritten, say=not was_refused)
            else:
                self._note(str(unwritten))

    def _limit_to_usage(self, cgroup: Cgroup, refused: Unwritten, *, say: bool) -> None:
        """Limit a class that uses more than its share to its usage, and retry in a minute.

        The kubelet does the same (retrySetMemoryReserve). On cgroup v2 the kernel accepts the limit, and kills.
        """
        assert cgroup.path is not None
        self._refused[cgroup.path] = cgroup
        used = self._cgroups.memory(cgroup.path)
        if say:
            self._note(f"{refused}: the class is limited to its current usage")
        if used is not None:
            limit = next(file for file in cgroup.files if file.name == refused.file)
            for unwritten in self._cgroups.write(cgroup.path, (replace(limit, text=str(used.usage_bytes)),)):
                self._note(str(unwritten))

        def again() -> None:
            if self._refused.get(cgroup.path or "") is cgroup:
                self.write(cgroup)

        self._loop.call_after(_REFUSED_SECONDS, again)

    def undo_hold(self, cgroup: Cgroup) -> None:
        """Let a pod grow again that an earlier agent was about to stop, in case this one does not."""
        if cgroup.level is Level.POD and cgroup.path is not None and self._cgroups.release(cgroup.path):
            self.found_held.add(cgroup.path)
