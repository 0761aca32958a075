"""Kills of the kernel's that another daemon noticed and logged: systemd, containerd, CRI-O, dockerd, the kubelet, runc.

They prove that the kernel killed, and name a unit, a container or a process. What ran out and why is in the kernel's
report alone.

Sources: systemd v243 to v261 src/core/{unit,cgroup,service}.c; containerd internal/cri/server/events.go and pkg/oom;
Kubernetes v1.8 to v1.36 pkg/kubelet/oom/oom_watcher_linux.go, cadvisor utils/oomparser; moby
daemon/monitor.go. What runc, Slurm, Flux, Nomad, Amazon ECS and bcc's oomkill write is known as they print it, not by
their source.
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
_STATUS = LazyPattern(
    r"Active: (?:failed|activating \(auto-restart\)|inactive \(dead\)|activating \(auto-restart-queued\))"
    r" \(Result: oom-kill\)"
    r"(?: since (?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: ([A-Z]{3,5}))?)?",
    needs=("Result: oom-kill",),
)
_RESULT = LazyPattern(r"^Result=oom-kill\s*$", needs=("Result=oom-kill",))
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
_SLURM = LazyPattern(
    r"Detected (\d{1,10}) oom[_-]kill event(?:\(s\)|s)? in (?:StepId=|step )(\S{1,80}?)\.?(?: |$)",
    needs=("Detected ",),
)
_BUILDKIT = LazyPattern(
    r"process \".{1,2000}?\" did not complete successfully: cannot allocate memory\s*$",
    needs=("did not complete successfully: cannot",),
)
"""BuildKit words exit code 137 so if the step's cgroup counts an OOM kill."""
_SLURM_STATE = LazyPattern(
    r"^(?:\s{0,20}(\d{1,12}(?:_\d{1,9})?(?:\.\w{1,20})?)\s.{0,200}? |State: )OUT_OF_ME(?:MORY|M?\+)"
    r"(?=\s{1,20}\d{1,3}:\d{1,3}(?:\s|$)| \(exit code \d)",
    needs=("OUT_OF_ME",),
)
_COUNTED = LazyPattern(r"^oom_kill ([1-9]\d{0,8})\s*$", needs=("oom_kill ",))
_COUNTED_METRIC = LazyPattern(
    r"^(?:container_oom_events_total|node_vmstat_oom_kill)(?:\{([^{}]{0,2000})\})? ([1-9]\d{0,8})(?:\.0)?"
    r"(?: \d{10,13})?\s*$",
    needs=("container_oom_events_total", "node_vmstat_oom_kill"),
)
_LABEL = LazyPattern(r"\b(pod|namespace|id|instance|node)=\"([^\"]{0,300})\"")

_TASK = LazyPattern(
    r"OutOfMemoryError: Container killed due to memory usage|Exit Message: \"OOM Killed",
    needs=("killed due to", "OOM Killed"),
)
_BCC = LazyPattern(
    r"Triggered by PID \d{1,10} \(.{1,40}?\), OOM kill of PID (\d{1,10}) \(\"(.{1,32}?)\"\), \d{1,20} pages",
    needs=("OOM kill of PID",),
)
_FLUX = LazyPattern(
    r"oom: Memory cgroup out of memory: killed \d{1,10} tasks? on ([\w.-]{1,253}?)\.?$", needs=("oom: Memory",)
)
_VIRTUOZZO = LazyPattern(
    r"OOM killed process (?:(\d{1,10}) \((.{0,32}?)\)(?: in UB (\d{1,10}))?"
    r"|(.{1,32}?) \(pid=(\d{1,10}), ve=(\d{1,10})\))",
    needs=("OOM killed process",),
)
_FREEBSD = LazyPattern(
    r"pid (\d{1,10}) \((.{1,32}?)\), (?:jid \d{1,10}, )?uid \d{1,10},? was killed: "
    r"(?:out of swap space|failed to reclaim memory|a thread waited too long to allocate a page)",
    needs=("was killed: ",),
)
"""The kernel of FreeBSD, in sys/vm/vm_pageout.c."""
_IN_UB = LazyPattern(r"Out of memory in UB (\d{1,10}): ")
_CONSIDERED = LazyPattern(
    r"Considered \d{1,10} cgroups for killing, top candidates were:|Failed to kill (?:any )?cgroup\(s\)",
    needs=("cgroups for killing", "Failed to kill "),
)
_EARLYOOM = LazyPattern(
    r"Invoking oom killer: done|successfully triggered kernel OOM killer",
    needs=("Invoking oom killer", "triggered kernel OOM"),
)


_NOTICES = (
    *(
        _UNIT,
        _STATUS,
        _CONTAINERD,
        _TOPIC,
        _CONMON,
        _CADVISOR,
        _KUBELET,
        _INIT,
        _SLURM,
        _TASK,
        _BCC,
        _VIRTUOZZO,
        _FREEBSD,
    ),
    *(_CONSIDERED, _EARLYOOM, _FLUX, _RESULT, _BUILDKIT, _SLURM_STATE, _COUNTED, _COUNTED_METRIC),
)
_WORDS = tuple({words for pattern in _NOTICES for words in pattern.needs})


def may_notice(text: str) -> bool:
    """Whether a line may say something of a kill, as far as its words say."""
    return bool([words for words in _WORDS if words in text])


def notices(message: Message, unit: str = "") -> Iterator[NodeSign]:
    """Yield what a line says about kills of the kernel's; of ``unit`` systemctl shows the status."""
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
    elif match := _STATUS.search(text):
        at = f"{match[1].replace(' ', 'T')}{'Z' * (match[2] == 'UTC')}" if match[1] else ""
        yield NodeSign(SignKind.UNIT_OOM_KILLED, at, message.host, unit=unit)
    elif _RESULT.search(text):
        yield NodeSign(SignKind.UNIT_OOM_KILLED, message.at, message.host, unit=unit)
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
    elif match := _SLURM.search(text):
        at, host = carried(text[: match.start()], message)
        yield NodeSign(SignKind.UNIT_OOM_KILLED, at, host, unit=f"Slurm step {match[2]}")
    elif match := _BUILDKIT.search(text):
        yield NodeSign(SignKind.UNIT_OOM_KILLED, *carried(text[: match.start()], message), unit="a BuildKit step")
    elif match := _SLURM_STATE.search(text):
        yield NodeSign(SignKind.UNIT_OOM_KILLED, unit=f"Slurm job {match[1]}" if match[1] else "a Slurm job")
    elif match := _COUNTED.search(text):
        yield NodeSign(SignKind.OOM_KILLS_COUNTED, counted=int(match[1]))
    elif match := _COUNTED_METRIC.search(text):
        yield _of_metric(match)
    elif match := _TASK.search(text):
        yield NodeSign(SignKind.CONTAINER_OOM_KILLED, *carried(text[: match.start()], message))
    elif match := _BCC.search(text) or _FREEBSD.search(text):
        at, host = carried(text[: match.start()], message)
        yield NodeSign(SignKind.OOM_KILLING, at, host, process=match[2], pid=int(match[1]))
    elif match := _VIRTUOZZO.search(text):
        yield _of_virtuozzo(message, match)
    elif match := _CONSIDERED.search(text):
        yield NodeSign(SignKind.OOMD_KILLED_NOTHING, *carried(text[: match.start()], message))
    elif match := _EARLYOOM.search(text):
        yield NodeSign(SignKind.EARLYOOM_TRIGGERED, *carried(text[: match.start()], message))
    elif match := _FLUX.search(text):
        yield NodeSign(SignKind.UNIT_OOM_KILLED, carried("", message)[0], match[1], unit="a Flux job")


def _of_metric(match: re.Match[str]) -> NodeSign:
    """Return what a metric counts, of a container or of a machine."""
    labels = {label[1]: label[2] for label in _LABEL.finditer(match[1] or "")}
    pod = labels.get("pod", "")
    return NodeSign(
        SignKind.OOM_KILLS_COUNTED,
        node=labels.get("node", ""),
        pod=f"{labels.get('namespace', '')}/{pod}".removeprefix("/") if pod else "",
        counted=int(match[2]),
        unit="the machine" if match[0].startswith("node_") else "",
        container_id=place_of(labels.get("id", "")).container_id,
    )


def _of_virtuozzo(message: Message, match: re.Match[str]) -> NodeSign:
    """Return a kill that a kernel of Virtuozzo or OpenVZ reports in its own words: a container is a UB or VE."""
    before = message.text[: match.start()]
    named = _IN_UB.search(before)
    container = match[3] or match[6] or ("" if named is None else named[1])
    at, host = carried(before[: None if named is None else named.start()], message)
    pid, process = match[1] or match[5], match[2] or match[4]
    unit = f"Virtuozzo container {container}" if container and container != "0" else ""
    return NodeSign(SignKind.OOM_KILLING, at, host, pid=int(pid), process=process, unit=unit)


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
