"""What to run next: for each death that what was read does not explain, the command that gets what is missing.

A complete answer has none. Of many deaths alike the last counts: logs are rotated, and Events expire. A command is
complete, so that it can be pasted. Names come from logs and are not trusted: one that is not a valid name of Kubernetes
never reaches a command, and file names are quoted for the shell.

Sources: kubectl v1.36 pkg/cmd/debug/debug.go (a pod for a node is named node-debugger-NODE-xxxxx, stays when it is
done, and mounts the node's files at /host; ``--profile=sysadmin`` is privileged); systemd src/journal/journalctl.c
(``-k`` implies the current boot) and man systemd.time: a time without a zone is the machine's own, ``UTC`` is
understood everywhere, ``Z`` and ``+00:00`` only by later versions.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from ipaddress import ip_address

from msgspec import Struct
from msgspec.structs import replace

from podqos.logs.said import MONTHS, NodeSign, SignKind, TraceSource, WhatWasRead, seconds_of
from podqos.questions.autopsy_death import ContainerEnd, Death, EndCause, Manner, Reason

MOST_STEPS = 3
_CUT = {Reason.NO_TABLE, Reason.TABLE_IS_CUT, Reason.NOT_IN_TABLE, Reason.TOTAL_UNKNOWN, Reason.NO_VICTIM}
"""Why a verdict is missing that a complete log might have."""
_STDIN = "-"
_KUBEPODS = "kubepods"
_ALL = "get pods,nodes,events -A -o json"
_ANY_BOOT = "_TRANSPORT=kernel"  # -k alone is the current one


class StepReason(StrEnum):
    """Why a command helps."""

    KERNEL_LOG = "KernelLog"
    KERNEL_CHECK = "KernelCheck"
    KERNEL_LOG_ON_HOST = "KernelLogOnHost"
    REST_OF_REPORT = "RestOfReport"
    REST_ON_HOST = "RestOnHost"
    KUBELET_LOG = "KubeletLog"
    LIVE_CLUSTER = "LiveCluster"
    POD = "Pod"
    POD_NAME = "PodName"
    DELETED_POD = "DeletedPod"
    PODS_OF_NODE = "PodsOfNode"
    PODS_OF_WORKLOAD = "PodsOfWorkload"
    PROGRAM_LOG = "ProgramLog"
    NODE_OF_EVENT = "NodeOfEvent"
    NODE = "Node"
    CLUSTER_STATE = "ClusterState"
    THIS_MACHINE = "ThisMachine"
    PREVIOUS_BOOT = "PreviousBoot"
    DELETE_DEBUG_POD = "DeleteDebugPod"


_WHY = {
    StepReason.KERNEL_LOG: "the kernel log{of} has the OOM report: what ran out of memory, and why this process was "
    "killed",
    StepReason.KERNEL_CHECK: "the kernel log{of} shows whether the kernel killed {victim}",
    StepReason.KERNEL_LOG_ON_HOST: "run it{on}: the kernel log there has a report of every OOM kill",
    StepReason.REST_OF_REPORT: "the kernel log{of} may have the rest of the report",
    StepReason.REST_ON_HOST: "run it{on}: the kernel log there may have the rest of the report",
    StepReason.KUBELET_LOG: "the kubelet's log{of} has the ranking of that moment",
    StepReason.LIVE_CLUSTER: "reads status, Events and node logs from the live cluster, and changes nothing",
    StepReason.POD: "its status has the node, the time, the reason and the limits",
    StepReason.POD_NAME: "gets the name and the limits of the victim's pod: the report has only its uid",
    StepReason.DELETED_POD: "no pod that was read has the uid in the report. If the pod was deleted, its Events "
    "name it for an hour",
    StepReason.PODS_OF_NODE: "the eviction order depends on the other pods of the node",
    StepReason.PODS_OF_WORKLOAD: "the status of its pods shows which were OOM-killed or evicted",
    StepReason.PROGRAM_LOG: "the program's last lines may show why it ended, such as an out-of-memory error of its own",
    StepReason.NODE_OF_EVENT: "the Events name the node and the time",
    StepReason.NODE: "its conditions and Events show when it restarted or was lost",
    StepReason.CLUSTER_STATE: "finds OOM-killed containers and evicted pods, with their nodes and times",
    StepReason.THIS_MACHINE: "run it on the node: the kernel log has a report of every OOM kill",
    StepReason.PREVIOUS_BOOT: "run it on the node: this log has no OOM kill, but the one from before the last restart "
    "may",
    StepReason.DELETE_DEBUG_POD: "kubectl debug left this pod behind",
}
_CREATES = (
    "This creates a privileged pod{on}, which stays until you delete it: kubectl delete pod node-debugger-{node}-… "
    "(podqos prints its full name)."
)
_IN_DEBUG_POD = " debug node/"
_CHROOT = " -- chroot /host "


class NextStep(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A command to run next, why it helps, and what it changes."""

    command: str
    reason: StepReason
    why: str = ""
    warning: str = ""
    """Of a command that leaves a pod in the cluster. Nothing else that is proposed changes anything, but
    ``DeleteDebugPod``."""
    node: str = ""
    """Where it runs, or what it is about; empty where that is not known."""
    pod: str = ""


def next_steps(
    deaths: Sequence[Death],
    exits: Sequence[ContainerEnd],
    signs: Sequence[NodeSign],
    read: WhatWasRead,
    *,
    others: bool,
) -> tuple[NextStep, ...]:
    """Return what to run next, most helpful first; ``others``: whether programs say that their own memory is full."""
    found: dict[tuple[StepReason, str, str], NextStep] = {}
    for step in _Steps(read, deaths).steps(exits, signs, others=others):
        # A log of a node holds all of its deaths: one command for each node is enough.
        found.setdefault((step.reason, step.node, "" if _IN_DEBUG_POD in step.command else step.pod), step)
    steps = [*{step.command: step for step in reversed(found.values())}.values()][::-1]
    # The first of each reason, then more of them.
    first = {step.reason: step for step in reversed(steps)}
    ordered = [*(step for step in steps if step is first[step.reason]), *(s for s in steps if s is not first[s.reason])]
    kept = ordered[:MOST_STEPS]
    for pod in read.debug_pods[-MOST_STEPS:]:
        kept.append(NextStep(f"{_kubectl(read)} delete pod {pod}", StepReason.DELETE_DEBUG_POD, pod=pod))
    return tuple(_worded(step) for step in kept)


def _worded(step: NextStep) -> NextStep:
    of, on = (f" {word} {step.node}" if step.node else "" for word in ("of", "on"))
    victim = "it" if step.pod else "anything"
    why = _WHY[step.reason].format(of=of, on=on or " on that machine", victim=victim)
    if step.command.startswith("talosctl"):
        _, _, why = why.partition(": ")
        if step.command.startswith("talosctl dmesg"):
            why = f"add -n and the address of {step.node or 'the node'}: {why}"
    if step.command.endswith("> pods.json"):
        why += ". Then run podqos again with -f pods.json"
    warning = _CREATES.format(on=on, node=step.node) if _IN_DEBUG_POD in step.command else ""
    if _CHROOT in step.command:
        warning += f" On the node itself, run only what follows{_CHROOT.removeprefix(' --').rstrip()}."
    return replace(step, why=why, warning=warning)


class _Steps:
    def __init__(self, read: WhatWasRead, deaths: Sequence[Death]) -> None:
        self.read = read
        self._deaths = deaths
        self._kubectl = _kubectl(read)

    def steps(self, exits: Sequence[ContainerEnd], signs: Sequence[NodeSign], *, others: bool) -> Iterator[NextStep]:
        """Yield the steps for everything, most helpful first."""
        read, deaths = self.read, self._deaths
        kills = [death for death in deaths if death.manner is Manner.OOM_KILL]
        for kill in reversed(kills):
            if kill.reason is not Reason.NO_REPORT:
                yield from self._of_kill(kill)
        # Their order is that of pods, not of time.
        for death in sorted(deaths, key=lambda death: -(seconds_of(death.when) or 0.0)):
            if death.status is not None and death.reason in {Reason.NO_REPORT, Reason.NOT_RANKED}:
                yield from self._of_end(death.status)
        for death in reversed(deaths):
            if death.manner is Manner.EVICTION:
                yield from self._of_eviction(death)
            elif death.manner is Manner.PROGRAM:
                yield from self._pod_name(death)
            elif death.manner is Manner.OOM_KILL and death.reason is Reason.NO_REPORT and death.status is None:
                yield from self._of_notice(death)
        if not deaths:
            for sign in reversed(signs):
                yield from self._of_sign(sign)
        if not (deaths or signs):
            for ended in reversed(exits):
                if ended.cause is EndCause.UNKNOWN and _pod_options(ended.pod)[1] and not read.cluster:
                    yield self._pod(ended.pod)
                yield from self._program_log(ended)
            if not (exits or others):
                yield from self._of_nothing()

    def _of_kill(self, kill: Death) -> Iterator[NextStep]:
        read, oom = self.read, kill.oom
        is_of_journal = bool(kill.victims) and all(victim.pid is None for victim in kill.victims)
        has_no_kill = not kill.victims and kill.reason not in {Reason.NONE_KILLABLE, Reason.PANIC}
        is_unknown = oom is None or str(oom.scope) == "unknown"
        if (kill.reason in _CUT or is_unknown or has_no_kill) and not is_of_journal:
            node = self._node(kill.where)
            paths = "" if oom is None else f"{oom.cgroup}{oom.victim_cgroup}"
            is_of_pods = bool(kill.pod_uid) or _KUBEPODS in paths or read.is_of_kubernetes
            if not (is_of_pods and node):
                command, called = self._host_log(kill.when, kill.where), _called(kill.where, node)
                yield NextStep(command, StepReason.REST_ON_HOST, node=called)
            if node:
                yield self._node_log(StepReason.REST_OF_REPORT, node, kill.when, kill.pod)
        yield from self._pod_name(kill)

    def _pod_name(self, death: Death) -> Iterator[NextStep]:
        """Yield how to find out which pod a uid is that of."""
        read = self.read
        if not death.pod_uid or death.pod:
            return
        if read.pods <= 1 and not (read.cluster or read.snapshot):
            is_again = any(log != _STDIN for log in read.logs)
            again = f"| {self._podqos(logs=True)}" if is_again else "> pods.json"
            yield NextStep(f"{self._kubectl} get pods,nodes -A -o json {again}", StepReason.POD_NAME)
        elif _UID.fullmatch(death.pod_uid):
            command = f"{self._kubectl} get events -A --field-selector involvedObject.uid={death.pod_uid}"
            yield NextStep(command, StepReason.DELETED_POD)

    def _of_end(self, ended: ContainerEnd) -> Iterator[NextStep]:
        read, (_, name) = self.read, _pod_options(ended.pod)
        node = valid_name(ended.node) or read.node
        is_oom = ended.cause in {EndCause.KERNEL, EndCause.KERNEL_OF_CHILD}
        if ended.is_from_runtime and not ended.pod:
            if is_oom or ended.cause is EndCause.SIGKILL:
                yield self._host_step(ended.node, ended.at)
        elif is_oom:
            yield from self._live(ended.pod)
            if node:
                yield self._node_log(StepReason.KERNEL_LOG, node, ended.at, ended.pod)
            else:
                yield self._pod(ended.pod) if name else self._cluster_state()
        elif ended.cause is EndCause.SIGKILL:
            yield from self._live(ended.pod)
            yield from self._program_log(ended)
            if not (name or node):
                yield self._cluster_state()
            if not read.kernel_messages and node:
                yield self._node_log(StepReason.KERNEL_CHECK, node, ended.at, ended.pod)
        elif ended.cause is EndCause.NODE_LOST and node:
            yield NextStep(f"{self._kubectl} describe node {node}", StepReason.NODE, node=node, pod=ended.pod)
            yield self._node_log(StepReason.KERNEL_CHECK, node, ended.at, ended.pod, _ANY_BOOT)

    def _of_eviction(self, death: Death) -> Iterator[NextStep]:
        node, found = self._node(death.where), death.eviction
        if found is None or TraceSource.JOURNAL in found.found_in:
            return
        if death.reason in {Reason.PODS_UNKNOWN, Reason.POD_UNKNOWN}:
            if node:
                command = f"{self._kubectl} get pods -A --field-selector spec.nodeName={node} -o json"
                again = f"{command} | {self._podqos(logs=True)}"
                yield NextStep(again, StepReason.PODS_OF_NODE, node=node, pod=death.pod)
            else:
                yield self._cluster_state(death.pod)
        elif death.reason is Reason.NO_MESSAGE and _pod_options(death.pod)[1] and not self.read.cluster:
            yield self._pod(death.pod)
        is_logged = TraceSource.KUBELET_LOG in found.found_in
        is_open = death.reason in {
            Reason.PODS_UNKNOWN,
            Reason.POD_UNKNOWN,
            Reason.USAGE_DECIDES,
            Reason.SIGNAL_UNKNOWN,
        }
        if node and ((death.reason is Reason.NO_MESSAGE and is_logged) or (is_open and not is_logged)):
            yield self._node_log(StepReason.KUBELET_LOG, node, death.when, death.pod, "-u kubelet")

    def _of_notice(self, death: Death) -> Iterator[NextStep]:
        """Yield where the report is of a kill that something else tells of."""
        read, node = self.read, valid_name(death.where) or self.read.node
        if node and read.is_of_kubernetes:
            yield self._node_log(StepReason.KERNEL_LOG, node, death.when)
        elif read.events:
            reasons = f"reason={SignKind.SYSTEM_OOM.value}"
            command = f"{self._kubectl} get events -A --field-selector {reasons} -o json | {self._podqos()}"
            yield NextStep(command, StepReason.NODE_OF_EVENT)
        else:
            yield self._host_step(death.where, death.when)

    def _of_sign(self, sign: NodeSign) -> Iterator[NextStep]:
        read, node = self.read, valid_name(sign.node) or self.read.node
        if sign.kind is SignKind.REBOOTED and node:
            yield self._node_log(StepReason.KERNEL_CHECK, node, sign.at, journal=_ANY_BOOT)
        elif sign.kind is SignKind.NOT_READY and node and not (read.nodes and sign.at):
            command = f"{self._kubectl} describe node {node} | {self._podqos()}"
            yield NextStep(command, StepReason.NODE, node=node)
        elif not (read.pods or read.cluster):
            yield replace(self._cluster_state(), node=node)

    def _of_nothing(self) -> Iterator[NextStep]:
        """Yield where to look, where nothing was found."""
        read = self.read
        if read.cluster:
            return
        options, name = _pod_options(read.pod)
        if name:
            yield NextStep(f"podqos autopsy {options}{name}", StepReason.LIVE_CLUSTER, pod=read.pod)
        elif read.selector and not read.pods:
            command = f"{self._kubectl} get pods {read.selector} -o json | podqos autopsy -"
            yield NextStep(command, StepReason.PODS_OF_WORKLOAD)
            return
        elif not (read.pods and read.events):
            yield NextStep(f"{self._kubectl} {_ALL} | podqos autopsy -", StepReason.CLUSTER_STATE)
        if read.node and not read.kernel_messages:
            yield self._node_log(StepReason.KERNEL_CHECK, read.node, "")
        elif read.kernel_messages and not read.lacks_journal:
            yield NextStep("journalctl -k -b -1 -o short-iso --no-pager | podqos autopsy -", StepReason.PREVIOUS_BOOT)
        else:
            command = "talosctl dmesg" if read.is_talos else "sudo dmesg"
            yield NextStep(f"{command} | podqos autopsy -", StepReason.THIS_MACHINE)

    def _live(self, pod: str) -> Iterator[NextStep]:
        """Yield the question to the live cluster, which gets everything that it serves, unless it was asked already.

        Of several pods that ended one namespace, or all.
        """
        options, name = _pod_options(pod)
        if self.read.cluster or not name:
            return
        ended = {_pod_options(death.status.pod) for death in self._deaths if death.status is not None}
        namespaces = {own.rstrip() for own, _ in ended}
        what = f"{options}{name}"
        if len(ended) > 1:
            what = (namespaces.pop() if len(namespaces) == 1 else "") or "-A"
        yield NextStep(f"podqos autopsy {what}", StepReason.LIVE_CLUSTER)

    def _program_log(self, ended: ContainerEnd) -> Iterator[NextStep]:
        (options, name), container = _pod_options(ended.pod), valid_name(ended.container)
        if container and name:
            previous = " --previous" if ended.is_previous else ""
            command = f"{self._kubectl} logs {options}{name} -c {container}{previous} --tail=50"
            yield NextStep(command, StepReason.PROGRAM_LOG, pod=ended.pod)

    def _pod(self, pod: str) -> NextStep:
        options, name = _pod_options(pod)
        return NextStep(f"{self._kubectl} get pod {options}{name} -o yaml | {self._podqos()}", StepReason.POD, pod=pod)

    def _cluster_state(self, pod: str = "") -> NextStep:
        """Return the command whose output is explained together with the files that were given."""
        command = f"{self._kubectl} {_ALL} | {self._podqos(logs=True)}"
        return NextStep(command, StepReason.CLUSTER_STATE, pod=pod)

    def _host_step(self, host: str, at: str) -> NextStep:
        """Return how to read the kernel's log of a machine that may be a node."""
        node = self._node(host)
        if node and self.read.is_of_kubernetes:
            return self._node_log(StepReason.KERNEL_CHECK, node, at)
        return NextStep(self._host_log(at, host), StepReason.KERNEL_LOG_ON_HOST, node=_called(host, node))

    def _node(self, host: str) -> str:
        """Return the node that a host in a log is: nodes of clouds are named by host and domain."""
        name = valid_name(host)
        return self.read.node if not name or self.read.node.startswith(f"{name}.") else name

    def _node_log(self, reason: StepReason, node: str, at: str, pod: str = "", journal: str = "-k") -> NextStep:
        """Return the command that reads a part of the journal of a node with a valid name, and explains it."""
        read = self.read
        debug = f"{self._kubectl}{_IN_DEBUG_POD}{node} -it --image=busybox --profile=sysadmin"
        if read.lacks_journal or read.is_talos:  # the image's own: the ring buffer is that of the machine
            command = f"{debug} -- dmesg | {self._podqos()}"
        else:
            command = f"{debug}{_CHROOT}{self._host_log(at, node, journal)}"
        return NextStep(command, reason, node=valid_name(node), pod=pod)

    def _host_log(self, at: str, host: str, journal: str = "-k") -> str:
        """Return the command that does so on the machine itself, or where talosctl knows it: by its address."""
        if self.read.is_talos:
            return f"{f'talosctl -n {host} dmesg' if _is_address(host) else 'talosctl dmesg'} | {self._podqos()}"
        if self.read.lacks_journal:
            return f"sudo dmesg | {self._podqos()}"
        return f"journalctl {journal}{_window(at)} -o short-iso --no-pager | {self._podqos()}"

    def _podqos(self, *, logs: bool = False) -> str:
        """Return ``podqos autopsy`` with another input in addition to the files that were given before."""
        read = self.read
        given = [*(read.logs if logs else ()), *read.files]
        files = [shlex.quote(file) for file in given if file != _STDIN]
        snapshot = ["--snapshot", shlex.quote(read.snapshot)] if read.snapshot else []
        return " ".join(["podqos autopsy -", *files, *snapshot])


# ---- names and times from logs, which are not trusted ----------------------------------------------------------------

_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_UID = re.compile(r"[0-9a-f][0-9a-f-]{7,63}")
_BEFORE, _AFTER = timedelta(minutes=5), timedelta(minutes=2)
_EPOCH = re.compile(r"\d{9,11}(?:\.\d{1,9})?", re.ASCII)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(?: ?(UTC|Z|[+-]\d\d:?\d\d))?", re.ASCII)
_DATED = re.compile(r"([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})", re.ASCII)


def valid_name(text: str) -> str:
    """Return a name that Kubernetes allows; else nothing."""
    name = text.lower()
    return name if _NAME.fullmatch(name) else ""


def _called(host: str, node: str) -> str:
    """Return a machine's name as its log has it; Kubernetes has it in small letters."""
    return host if valid_name(host) == node else valid_name(node)


def _kubectl(read: WhatWasRead) -> str:
    """Return how to call kubectl for the cluster that was asked."""
    return f"kubectl --context {shlex.quote(read.context)}" if read.context else "kubectl"


def _is_address(host: str) -> bool:
    try:
        return "%" not in host and bool(ip_address(host))  # anything may stand behind a percent sign
    except ValueError:
        return False


def _pod_options(pod: str) -> tuple[str, str]:
    """Return the option with the namespace of a pod, and its name; empty where they are not valid."""
    namespace, _, name = pod.rpartition("/")
    namespace, name = valid_name(namespace), valid_name(name)
    return (f"-n {namespace} " if namespace else ""), name


def _window(at: str) -> str:
    """Return the options for the minutes around a time; nothing for one that says no year, or counts from the boot."""
    moment = _moment(at)
    if moment is None:
        return ""
    zone = "" if moment.tzinfo is None else " UTC"
    since, until = (f"'{edge:%Y-%m-%d %H:%M:%S}{zone}'" for edge in (moment - _BEFORE, moment + _AFTER))
    return f" --since {since} --until {until}"


def _moment(at: str) -> datetime | None:
    """Return a time in UTC; one without a zone, which is the machine's own, as it is."""
    try:
        if _EPOCH.fullmatch(at):
            moment = datetime.fromtimestamp(float(at), UTC)
        elif found := _ISO.search(at):
            zone = (found[3] or "").replace("UTC", "Z")
            moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}")
        elif (found := _DATED.search(at)) and found[1] in MONTHS:
            day = f"{found[4]}-{MONTHS.index(found[1]) + 1:02}-{int(found[2]):02}"
            moment = datetime.fromisoformat(f"{day}T{found[3]}")
        else:
            return None
        if not 1990 < moment.year < 9000:  # what Go writes for none, or nonsense
            return None
        return moment if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
