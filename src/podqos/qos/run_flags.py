"""The same decisions as flags of ``docker run`` and ``podman run``: for trying a container out without a cluster.

Every flag that concerns memory, cpu and the OOM killer is listed for every container, with what became of it: some
follow from the pod, some have no counterpart in Kubernetes, some are gone. The values are those of the cgroup plan;
nothing is computed a second time.

Sources: docker run and podman run reference manuals; moby/moby#42865 and containers/crun (oom-kill-disable on cgroup
v2), Docker 23.0 and Linux 5.16 (kernel memory), containers/podman#19843 (rootless oom_score_adj).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.cgroup_values import CgroupValues, Value, ValueReason, container_values, whole_cpus
from podqos.qos.oom import OOMScore, oom_scores

Engine = Literal["docker", "podman"]

# Docker refuses less (6 MiB); podman does not.
_DOCKER_MIN_MEMORY_BYTES = 6 * 2**20


class FlagStatus(StrEnum):
    """What became of a flag."""

    FOLLOWS = "Follows"
    """The pod decides it; without a value the flag is left out, which is what Kubernetes does too."""
    NO_COUNTERPART = "NoCounterpart"
    """Nothing in a pod says it."""
    GONE = "Gone"
    """It no longer does anything."""
    WINDOWS_ONLY = "WindowsOnly"
    """It does nothing on Linux."""


class Note(StrEnum):
    """What a reader should know about a flag besides its value."""

    OOM_SCORE = "OOMScore"
    """The container's oom_score_adj."""
    ROOTLESS_CLAMP = "RootlessClamp"
    """Rootless podman raises a value below its own oom_score_adj to that."""
    BELOW_DOCKER_MINIMUM = "BelowDockerMinimum"
    """Docker refuses a memory limit below 6 MiB."""
    CGROUP_VALUE = "CgroupValue"
    """The value, or its absence, is the cgroup plan's."""
    SOFT_LIMIT = "SoftLimit"
    """Requests are for the scheduler and the oom score; they reach the kernel only with MemoryQoS, as
    ``memory.low``."""
    SWAP_NEEDS_LIMIT = "SwapNeedsLimit"
    """Swap can be limited only together with memory; the engine lets a container without a limit swap freely."""
    SWAP_UNKNOWN = "SwapUnknown"
    """The kernel does not account swap; nothing is set."""
    SWAPPINESS = "Swappiness"
    """The kubelet leaves ``vm.swappiness`` of the node alone."""
    CPU_MANAGER = "CPUManager"
    """A static CPU manager would pick whole CPUs for this container when it starts; the pod does not say which."""
    SHARED_CPUS = "SharedCPUs"
    """The container shares the CPUs that no container has to itself."""
    OWN_CPUS = "OwnCPUs"
    """The static CPU manager picks the container's own CPUs when the pod is admitted."""
    MEMORY_MANAGER = "MemoryManager"
    """A static memory manager would pick NUMA nodes for this container when it starts."""
    SHARED_MEMORY_NODES = "SharedMemoryNodes"
    """All NUMA nodes may be used."""
    OOM_KILLER_STAYS = "OOMKillerStays"
    """Kubernetes counts on the OOM killer: a container at its limit dies and is started again."""
    NOT_ON_CGROUP_V2 = "NotOnCgroupV2"
    """cgroup v2 has no such file: docker drops the flag with a warning, podman does not start the container."""
    KERNEL_MEMORY = "KernelMemory"
    """Linux stopped limiting kernel memory apart in 5.16, Docker removed the flag in 23.0, podman in 4.0."""
    WINDOWS_ONLY = "WindowsOnly"
    """A share of all processors, for Windows containers; podman has no such flag."""


class Flag(Struct, frozen=True, gc=False):
    """One flag for one container."""

    name: str
    status: FlagStatus
    value: str | None
    note: Note
    because: ValueReason | None = None
    """The reason of the cgroup plan, where the value is from there."""
    oom_score: OOMScore | None = None
    """The reason of the oom score, where the value is one."""
    also: Note | None = None
    """A difference between the engines that matters for this value."""


class ContainerFlags(Struct, frozen=True, gc=False):
    """All flags for one container."""

    container: str
    flags: tuple[Flag, ...]

    def arguments(self) -> tuple[str, ...]:
        """Return the flags to put on the command line."""
        return tuple(f"{flag.name}={flag.value}" for flag in self.flags if flag.value is not None)


def run_flags(
    pod: Pod, qos_class: QOSClass, settings: CgroupSettings, engine: Engine = "docker", profile: Profile = LATEST
) -> tuple[ContainerFlags, ...]:
    """Return the flags for every container, in the order of ``oom_scores``."""
    spec = pod.spec
    containers = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    scores = oom_scores(pod, qos_class, settings.node_memory_bytes, profile)
    found = []
    for container, score in zip(containers, scores, strict=True):
        values = container_values(pod, container, qos_class, settings, profile)
        found.append(
            ContainerFlags(
                container.name,
                (
                    _oom_score_adj(score, engine),
                    _memory(values, engine),
                    _memory_reservation(values),
                    _memory_swap(values),
                    _cgroup_v1_only("--memory-swappiness", Note.SWAPPINESS, settings),
                    _plan_flag("--cpu-shares", values.cpu_shares),
                    *_cpu_quota(values),
                    *_cpusets(container, values, qos_class),
                    Flag("--cpu-percent", FlagStatus.WINDOWS_ONLY, None, Note.WINDOWS_ONLY),
                    _cgroup_v1_only("--oom-kill-disable", Note.OOM_KILLER_STAYS, settings),
                    Flag("--kernel-memory", FlagStatus.GONE, None, Note.KERNEL_MEMORY),
                ),
            )
        )
    return tuple(found)


def _oom_score_adj(score: OOMScore, engine: Engine) -> Flag:
    also = Note.ROOTLESS_CLAMP if engine == "podman" and score.value < 0 else None
    return Flag("--oom-score-adj", FlagStatus.FOLLOWS, str(score.value), Note.OOM_SCORE, oom_score=score, also=also)


def _memory(values: CgroupValues, engine: Engine) -> Flag:
    limit = values.memory_limit_bytes
    too_small = limit is not None and limit.amount is not None and limit.amount < _DOCKER_MIN_MEMORY_BYTES
    return _plan_flag("--memory", limit, Note.BELOW_DOCKER_MINIMUM if engine == "docker" and too_small else None)


def _memory_reservation(values: CgroupValues) -> Flag:
    low = values.memory_low_bytes
    if low is None or not low.amount:
        return Flag("--memory-reservation", FlagStatus.NO_COUNTERPART, None, Note.SOFT_LIMIT)
    return Flag("--memory-reservation", FlagStatus.FOLLOWS, str(low.amount), Note.SOFT_LIMIT, low.because)


def _memory_swap(values: CgroupValues) -> Flag:
    """Return memory and swap together, as the flag counts them."""
    name, memory, swap = "--memory-swap", values.memory_limit_bytes, values.memory_swap_bytes
    if swap is None or swap.amount is None:
        return Flag(name, FlagStatus.FOLLOWS, None, Note.SWAP_UNKNOWN)
    if memory is None or memory.amount is None:
        return Flag(name, FlagStatus.FOLLOWS, None, Note.SWAP_NEEDS_LIMIT, swap.because)
    return Flag(name, FlagStatus.FOLLOWS, str(memory.amount + swap.amount), Note.CGROUP_VALUE, swap.because)


def _cpu_quota(values: CgroupValues) -> tuple[Flag, Flag]:
    """Return period and quota: a period alone would say nothing, so both come or neither does."""
    quota = values.cpu_quota_us
    assert quota is not None
    period_us = values.cpu_period_us if quota.amount is not None else None
    return _plan_flag("--cpu-period", Value(period_us, quota.because)), _plan_flag("--cpu-quota", quota)


def _cpusets(container: Container, values: CgroupValues, qos_class: QOSClass) -> tuple[Flag, Flag]:
    """Return the two flags that only a static CPU or memory manager would fill, and only for Guaranteed pods."""
    guaranteed = qos_class is QOSClass.GUARANTEED
    cpus = Note.CPU_MANAGER if guaranteed and whole_cpus(container) else Note.SHARED_CPUS
    own = values.exclusive_cpus is not None
    return (
        Flag("--cpuset-cpus", FlagStatus.FOLLOWS, None, Note.OWN_CPUS)
        if own
        else Flag("--cpuset-cpus", FlagStatus.NO_COUNTERPART, None, cpus),
        Flag(
            "--cpuset-mems",
            FlagStatus.NO_COUNTERPART,
            None,
            Note.MEMORY_MANAGER if guaranteed else Note.SHARED_MEMORY_NODES,
        ),
    )


def _cgroup_v1_only(name: str, note: Note, settings: CgroupSettings) -> Flag:
    also = Note.NOT_ON_CGROUP_V2 if settings.cgroup_version is CgroupVersion.V2 else None
    return Flag(name, FlagStatus.GONE if also else FlagStatus.NO_COUNTERPART, None, note, also=also)


def _plan_flag(name: str, value: Value | None, also: Note | None = None) -> Flag:
    assert value is not None
    text = None if value.amount is None else str(value.amount)
    return Flag(name, FlagStatus.FOLLOWS, text, Note.CGROUP_VALUE, value.because, also=also)
