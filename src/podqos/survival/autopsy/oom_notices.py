"""Kills of the kernel's that another daemon noticed and logged: systemd, containerd, CRI-O, the kubelet, runc.

They prove that the kernel killed, and name a unit, a container or a process. What ran out and why is in the kernel's
report alone.

Sources: systemd v243 to v261 src/core/{unit,cgroup,service}.c; containerd internal/cri/server/events.go and pkg/oom;
Kubernetes v1.8 to v1.36 pkg/kubelet/oom/oom_watcher_linux.go, cadvisor utils/oomparser. What runc writes is known as
it prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from podqos.kernel.message import Message
from podqos.qos.cgroup_paths import CgroupLevel, place_of
from podqos.survival.autopsy.eviction_traces import NodeSign, SignKind
from podqos.survival.autopsy.lazy_pattern import LazyPattern
from podqos.survival.autopsy.log_times import carried, unit_before

_UNIT = LazyPattern(
    r": (?:A process of this unit has been killed by the OOM killer"
    r"|The kernel OOM killer killed some processes in this unit|Failed with result '?oom-kill\b)",
    needs=("this unit", "result 'oom-kill", "result oom-kill"),
)
_UNIT_NAME = LazyPattern(r"[^\s.]\.(?:service|scope|slice|socket|mount|swap)$")
"""systemd calls every unit by its whole name; what has none was taken out of it, or rewritten."""
_SCOPE = LazyPattern(r"[a-z-]{1,20}-([0-9a-f]{64})\.scope$")
"""The unit of a container, as its runtime names it."""
_CONTAINERD = LazyPattern(
    r"TaskOOM event &?(?:TaskOOM)?\{?(?:ContainerID|container_id): ?\\{0,2}\"?([0-9a-f]{12,64})",
    re.IGNORECASE,
    needs=("TaskOOM event", "taskoom event"),
)
_TOPIC = LazyPattern(r"/tasks/oom.{0,80}?\"?container_id\"?: ?\"([0-9a-f]{12,64})\"", needs=("/tasks/oom",))
_ANY_TASK = LazyPattern(r"topic=\"?/tasks/oom\b", needs=("/tasks/oom",))
_CONMON = LazyPattern(r"conmon ([0-9a-f]{12,64}) <\w{1,10}>: OOM (?:event )?received", needs=(": OOM ",))
_CADVISOR = LazyPattern(r"Created an OOM event in container \\?\"(/[^\"\\]{0,4000})\\?\"", needs=("n OOM event in",))
_KUBELET = LazyPattern(r"Got sys oom event", needs=("sys oom event",))
_STRUCTURED = LazyPattern(r"\\?\" event=")
_PID = LazyPattern(r"\bPid\"?: ?(\d{1,10})")
_NAME = LazyPattern(r"\bProcessName\"?: ?\"?(.{1,64}?)\"?(?:,| TimeOfDeath|\})")
_DIED = LazyPattern(
    r"\bTimeOfDeath\"?: ?\"?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d{1,9})?"
    r"(?:(Z| \+0000)|([+-]\d\d:\d\d)| ([+-]\d{4}))"
)
_VICTIM = LazyPattern(r"\bVictimContainerName\"?: ?\"?(/[^\s\",}]{0,4000})")
_INIT = LazyPattern(r"container init was OOM-killed \(memory limit too low\?\)", needs=("was OOM-killed",))

_CONSIDERED = LazyPattern(
    r"Considered \d{1,10} cgroups for killing, top candidates were:|Failed to kill (?:any )?cgroup\(s\)"
    r"|Rule '[^']{1,200}' conditions met for cgroup /|Memory pressure for /\S{0,4000} is greater than \d"
    r"|Swap used \(\d{1,19}\) / total \(\d{1,19}\) is more than \d",
    needs=("cgroups for killing", "Failed to kill ", "conditions met for", "Memory pressure for /", "Swap used ("),
)
_EARLYOOM = LazyPattern(
    r"Invoking oom killer: done|successfully triggered kernel OOM killer",
    needs=("Invoking oom killer", "triggered kernel OOM"),
)


_NOTICES = (_UNIT, _CONTAINERD, _TOPIC, _CONMON, _CADVISOR, _KUBELET, _INIT, _CONSIDERED, _EARLYOOM)
_WORDS = tuple({words for pattern in _NOTICES for words in pattern.needs})


def may_notice(text: str) -> bool:
    """Whether a line may say something of a kill, as far as its words say."""
    return bool([words for words in _WORDS if words in text])


def notices(message: Message) -> Iterator[NodeSign]:
    """Yield what a line says about kills of the kernel's."""
    text = message.text
    if not may_notice(text):
        return
    if match := _UNIT.search(text):
        at, host = carried(text[: match.start()], message)
        unit = unit_before(text, match)
        named = _SCOPE.search(unit)
        kind = SignKind.UNIT_OOM_KILLED if named is None else SignKind.CONTAINER_OOM_KILLED
        unit = unit if _UNIT_NAME.search(unit) else "a systemd unit"
        yield NodeSign(kind, at, host, unit=unit, container_id="" if named is None else named[1])
    elif match := _CONTAINERD.search(text) or _TOPIC.search(text) or _CONMON.search(text):
        at, host = carried("", message)
        yield NodeSign(SignKind.CONTAINER_OOM_KILLED, at, host, container_id=match[1])
    elif _ANY_TASK.search(text):
        yield NodeSign(SignKind.CONTAINER_OOM_KILLED, *carried("", message))
    elif match := _CADVISOR.search(text):
        place = place_of(match[1])
        is_machine = place.level is CgroupLevel.MACHINE
        kind = SignKind.SYSTEM_OOM if is_machine else SignKind.CONTAINER_OOM_KILLED
        yield NodeSign(kind, *carried("", message), container_id=place.container_id)
    elif match := _KUBELET.search(text):
        yield _of_kubelet(message, match)
    elif match := _INIT.search(text):
        at, host = carried("", message)
        yield NodeSign(SignKind.INIT_OOM_KILLED, at, host)
    elif match := _CONSIDERED.search(text):
        yield NodeSign(SignKind.OOMD_KILLED_NOTHING, *carried(text[: match.start()], message))
    elif match := _EARLYOOM.search(text):
        yield NodeSign(SignKind.EARLYOOM_TRIGGERED, *carried(text[: match.start()], message))


def _of_kubelet(message: Message, match: re.Match[str]) -> NodeSign:
    """Return what the kubelet read in the kernel's log. It logs the machine's OOMs alone, if it can tell them apart.

    cAdvisor read the cgroup of no OOM of kernels since 5.0 until 0.39, which came with Kubernetes 1.21, as did the
    form of these lines with keys and values.
    """
    at, host = carried("", message)
    text = message.text[match.end() :]
    if not at and (died := _DIED.search(text)):  # klog has no year
        at = f"{died[1]}T{died[2]}{'Z' if died[3] else died[4] or died[5]}"
    event = message.fields.get("event")
    is_machines = isinstance(event, dict) or _STRUCTURED.match(text) is not None
    if isinstance(event, dict):
        pid, name, cgroup = event.get("Pid"), event.get("ProcessName"), event.get("VictimContainerName")
        process_id = pid if isinstance(pid, int) else None
        process = name if isinstance(name, str) else ""
        path = cgroup if isinstance(cgroup, str) else ""
    else:
        number, named, victim = _PID.search(text), _NAME.search(text), _VICTIM.search(text)
        process_id = None if number is None else int(number[1])
        process = "" if named is None else named[1]
        path = "" if victim is None else victim[1]
    place = place_of(path)
    return NodeSign(
        SignKind.SYSTEM_OOM,
        at,
        host,
        pid=process_id,
        process=process,
        container_id=place.container_id,
        is_machines=is_machines,
    )
