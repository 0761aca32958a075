"""What containers, and everything beside them, want to use over time.

A demand is what would be used without limits. The simulation finds out how much of it is granted, and what happens
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from podqos.sim.engine.curve import ZERO, Clock, Curve, constant
from podqos.sim.scenario.service import ServiceDemand

ONE = constant(1)


class VolumeDemand(Struct, frozen=True, gc=False):
    """What is written into one volume."""

    used_bytes: Curve = ZERO
    inodes: Curve = ZERO


class ContainerDemand(Struct, frozen=True, gc=False, kw_only=True):
    """What one container wants. Each curve has its own clock."""

    anon_bytes: Curve = ZERO
    """Private memory, spread evenly over ``processes``."""
    active_file_bytes: Curve = ZERO
    """Page cache in use: counted by the kubelet, though the kernel can reclaim it."""
    inactive_file_bytes: Curve = ZERO
    """Page cache out of use."""
    processes: Curve = ONE
    """How many processes share the memory. Never less than one while the container runs."""
    pids: Curve | None = None
    """Processes and threads together, each of which takes a process id; None is as many as ``processes``."""
    cpu_milli: Curve = ZERO
    rootfs_bytes: Curve = ZERO
    """The writable layer."""
    rootfs_inodes: Curve = ZERO
    logs_bytes: Curve = ZERO
    logs_inodes: Curve = ZERO
    volumes: Mapping[str, VolumeDemand] = {}
    """By name of the pod's volume. A ``medium: Memory`` volume takes memory, any other emptyDir disk."""
    exits_after_us: int | None = None
    """How long after its start the container ends by itself; None is never."""
    exit_code: int = 0
    service: ServiceDemand | None = None
    """Requests that it answers; its CPU demand follows from them."""
    probe_cost_us: int | None = None
    """The CPU time of the answer to a probe; None is what the model says."""
    pre_stop_us: int | None = None
    """How long its ``preStop`` hook takes; None is what the hook says: a ``sleep`` its seconds, others nothing."""
    work_us: int | None = None
    """How much CPU time it has to get until it ends by itself; None: that does not end it. A container that is started
    again begins anew."""

    def settles_us(self, start_us: int) -> int | None:
        """Return how long after its start it no longer changes: at once if it is constant, None if it always does.

        A model: that long an init container runs that does not state when it ends.
        """
        curves = [getattr(self, name) for name in self.__struct_fields__]
        curves += [curve for volume in self.volumes.values() for curve in (volume.used_bytes, volume.inodes)]
        after_us = 0
        for curve in curves:
            if not isinstance(curve, Curve) or curve.is_constant:
                continue
            if curve.period_us is not None:
                return None
            last_us, _ = curve.knots[-1]
            after_us = max(after_us, last_us if curve.clock is Clock.CONTAINER else last_us - start_us)
        return after_us

    @property
    def ends(self) -> bool:
        """Whether it ends by itself."""
        return self.exits_after_us is not None or self.work_us is not None

    @property
    def pids_wanted(self) -> Curve:
        """How many process ids it takes."""
        return self.processes if self.pids is None else self.pids


IDLE = ContainerDemand()
"""One process that uses nothing."""


class SystemDemand(Struct, frozen=True, gc=False, kw_only=True):
    """What everything outside of pods uses: kubelet, container runtime, daemons, the kernel. Its clock is SCENARIO."""

    anon_bytes: Curve = ZERO
    """Memory that cannot be reclaimed. Its processes have the scores of system daemons and are never chosen first."""
    active_file_bytes: Curve = ZERO
    inactive_file_bytes: Curve = ZERO
    cpu_milli: Curve = ZERO
    pids: Curve = ZERO
    nodefs_bytes: Curve = ZERO
    nodefs_inodes: Curve = ZERO
    imagefs_bytes: Curve = ZERO
    """Images in use, where images have a filesystem of their own; else they are part of nodefs."""
