"""How the agent protects itself: the last to be killed, the first to run, never swapped out or reclaimed.

What the machine does not allow is reported, and the node runs without it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from podqos.host.linux.capabilities import Capabilities, find_mounts
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.descriptors import raise_limit, restore_limit
from podqos.host.linux.procfs import Procfs
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.qos.cgroup_settings import CgroupVersion

NICE = -15
MEMORY_MIN_BYTES = 64 << 20
REALTIME_PRIORITY = 50
_MCL_CURRENT, _MCL_FUTURE, _MCL_ONFAULT = 1, 2, 4


class Protected(Protocol):
    """What is to be protected, and how."""

    @property
    def configuration(self) -> KubeletConfiguration:
        """Has ``oomScoreAdj``."""

    @property
    def realtime(self) -> bool:
        """Whether it runs before everything else."""

    @property
    def is_delegated(self) -> bool:
        """Whether its cgroup is another's business."""


class AgentProtection:
    """The protection of the agent."""

    def __init__(
        self,
        settings: Protected,
        cgroups: Cgroups,
        capabilities: Capabilities,
        procfs: Procfs,
        note: Callable[[str], None],
    ) -> None:
        self._settings, self._capabilities, self._procfs, self._note = settings, capabilities, procfs, note
        self._cgroup: Path | None = None
        self._nice = os.getpriority(os.PRIO_PROCESS, 0)
        self._came_from = procfs.cgroups(os.getpid()).get("", "/")
        # Under systemd, the agent's unit sets MemoryMin.
        if cgroups.version is CgroupVersion.V2 and not settings.is_delegated:
            root = find_mounts(procfs).v2
            assert root is not None
            self._cgroup = root / f"{cgroups.own.strip('/').replace('/', '-')}-agent"

    def begin(self) -> None:
        """Apply everything that the machine allows."""
        raise_limit()
        score, lack = self._capabilities.oom_score_adj(self._settings.configuration.oom_score_adj)
        if lack is not None:
            self._note(f"agent: oom_score_adj: {lack}")
        else:
            self._set_score(score)
        if self._cgroup is not None:
            self._keep_memory(self._cgroup)
        try:
            # Its children do not inherit that.
            os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
        except OSError as error:
            self._note(f"agent: nice {NICE}: {error.strerror}: slower to react on a busy machine")
        if self._settings.realtime:
            self._be_realtime()

    def end(self) -> None:
        """Return to the original cgroup and priority; a shim that keeps running keeps the cgroup."""
        restore_limit()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, self._nice)
            self._set_score(self._capabilities.own_oom_score_adj)
        if self._cgroup is not None:
            with contextlib.suppress(OSError):
                (self._cgroup.parent / self._came_from.strip("/") / "cgroup.procs").write_text("0")
                self._cgroup.rmdir()

    def _set_score(self, score: int) -> None:
        (self._procfs.root / "self" / "oom_score_adj").write_text(str(score))

    def _keep_memory(self, cgroup: Path) -> None:
        """Move to a cgroup next to the node's whose memory is not reclaimed."""
        try:
            cgroup.mkdir(exist_ok=True)
            (cgroup / "memory.min").write_text(str(MEMORY_MIN_BYTES))
            (cgroup / "cgroup.procs").write_text("0")
        except OSError as error:
            self._note(f"agent: memory.min: {error.strerror}")

    def _be_realtime(self) -> None:
        try:
            policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, policy, os.sched_param(REALTIME_PRIORITY))
        except OSError as error:
            self._note(f"agent: SCHED_FIFO: {error.strerror}")
        self._lock(_MCL_CURRENT | _MCL_FUTURE)

    def lock_what_is_used(self) -> None:
        """Keep in memory for good whatever has been or will be touched, and nothing else."""
        self._lock(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT)

    def _lock(self, flags: int) -> None:
        if ctypes.CDLL(None, use_errno=True).mlockall(flags):
            self._note(f"agent: mlockall: {os.strerror(ctypes.get_errno())}")
