"""What to run next: for each death that what was read does not explain, the command that gets what is missing.

A complete answer has none. Of many deaths alike the last counts: logs are rotated, and Events expire.
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.survival.autopsy.autopsy import Autopsies, OOMAutopsy, Reason
from podqos.survival.autopsy.eviction_autopsy import PodEviction
from podqos.survival.autopsy.eviction_scene import EvictionReason
from podqos.survival.autopsy.eviction_traces import OOM_SIGNS, NodeSign, SignKind, TraceSource, seconds_of
from podqos.survival.autopsy.next_step import (
    TALOS,
    NextStep,
    StepReason,
    host_log,
    kubectl,
    node_log,
    pod_options,
    podqos_with,
    valid_name,
    valid_uid,
)
from podqos.survival.autopsy.terminations import ContainerTermination, TerminationCause
from podqos.survival.autopsy.what_was_read import WhatWasRead

MOST_STEPS = 3
_MOST_DELETED = 3
_CUT = {
    Reason.NO_TABLE,
    Reason.TABLE_IS_CUT,
    Reason.NOT_IN_TABLE,
    Reason.TOTAL_UNKNOWN,
    Reason.NO_VICTIM,
}
"""Why a verdict is missing that a complete log might have."""
STDIN = "-"
_OF_NODES = (SignKind.SYSTEM_OOM, SignKind.OOM_KILLING)
"""Events of Kubernetes, named by their reasons; the others are lines of a machine's log."""
_KUBEPODS = "kubepods"
_ID_CHARACTERS = 12
_ALL = "get pods,nodes,events -A -o json"
_ANY_BOOT = "_TRANSPORT=kernel"  # -k alone is the current one


def next_steps(found: Autopsies) -> tuple[NextStep, ...]:
    """Return what to run next, most helpful first."""
    read = found.read
    steps: dict[tuple[StepReason, str, str], NextStep] = {}
    for step in _steps(found):
        # A log of a node holds all of its deaths: one command for each node is enough.
        steps.setdefault((step.reason, step.node, "" if step.creates_pod else step.pod), step)
    commands: dict[str, NextStep] = {}
    for step in steps.values():
        commands.setdefault(step.command, step)
    kept = _few([*commands.values()])
    deleted = [
        NextStep(f"{kubectl(read)} delete pod {pod}", StepReason.DELETE_DEBUG_POD, pod=pod)
        for pod in read.debug_pods[-_MOST_DELETED:]
    ]
    return (*kept, *deleted)


def _few(steps: list[NextStep]) -> list[NextStep]:
    """Return the first of each reason, then more of them."""
    first: dict[StepReason, NextStep] = {}
    for step in steps:
        first.setdefault(step.reason, step)
    others = [step for step in steps if step not in first.values()]
    return [*first.values(), *others][:MOST_STEPS]


def _steps(found: Autopsies) -> Iterator[NextStep]:
    read = found.read
    for kill in reversed(found.kills):
        yield from _of_kill(kill, read)
    several = _of_several(found)
    # Their order is that of pods, not of time.
    for termination in sorted(found.terminations, key=lambda ended: -(seconds_of(ended.at) or 0.0)):
        yield from _of_termination(termination, read, several)
    for eviction in reversed(found.evictions):
        yield from _of_eviction(eviction, read)
    for killed in reversed(found.userspace_kills):
        yield from _pod_name(killed.pod_uid, killed.pod, read)
    if not (found.kills or found.terminations):
        latest = [sign for sign in found.node_events[::-1] if sign.kind in OOM_SIGNS or not found.evictions]
        for sign in sorted(latest, key=lambda sign: sign.kind not in OOM_SIGNS):
            yield from _of_sign(sign, read)
    if not (found.kills or found.evictions or found.terminations or found.node_events or found.userspace_kills):
        for ended in reversed(found.exits):
            if ended.cause is TerminationCause.UNKNOWN:
                yield from _of_restarts(ended, read)
            yield from _program_log(read, ended)
        if not (found.exits or found.program_failures):
            yield from _of_nothing(read)


def _of_kill(kill: OOMAutopsy, read: WhatWasRead) -> Iterator[NextStep]:
    is_unknown = str(kill.scope) == "unknown"
    is_of_journal = bool(kill.victims) and all(victim.pid is None for victim in kill.victims)
    has_no_kill = not kill.victims and kill.reason not in {Reason.NONE_KILLABLE, Reason.PANIC}
    if (kill.reason in _CUT or is_unknown or has_no_kill) and not is_of_journal:
        node = _node_of(kill.host, read)
        is_of_pods = bool(kill.pod_uid) or _KUBEPODS in f"{kill.cgroup}{kill.victim_cgroup}" or read.is_of_kubernetes
        if not (is_of_pods and node):
            yield NextStep(host_log(read, kill.at, kill.host), StepReason.REST_ON_HOST, node=_called(kill.host, node))
        if node:
            yield NextStep(
                node_log(read, node, kill.at),
                StepReason.REST_OF_REPORT,
                creates_pod=True,
                node=valid_name(node),
                pod=kill.pod,
            )
    yield from _pod_name(kill.pod_uid, kill.pod, read)


def _pod_name(pod_uid: str, pod: str, read: WhatWasRead) -> Iterator[NextStep]:
    """Yield how to find out which pod a uid is that of."""
    if not pod_uid or pod:
        return
    if read.pods <= 1 and not (read.cluster or read.snapshot):
        command = f"{kubectl(read)} get pods,nodes -A -o json"
        is_again = any(log != STDIN for log in read.logs)
        again = f"| {podqos_with(read, logs=True)}" if is_again else "> pods.json"
        yield NextStep(f"{command} {again}", StepReason.POD_NAME)
    elif uid := valid_uid(pod_uid):
        command = f"{kubectl(read)} get events -A --field-selector involvedObject.uid={uid}"
        yield NextStep(command, StepReason.DELETED_POD)


def _of_host(host: str, at: str, read: WhatWasRead) -> Iterator[NextStep]:
    """Yield how to read the kernel's log of a machine that may be a node."""
    node = _node_of(host, read)
    if node and read.is_of_kubernetes:
        yield from _kernel_check(read, node, at)
    else:
        yield NextStep(host_log(read, at, host), StepReason.KERNEL_LOG_ON_HOST, node=_called(host, node))


def _node_of(host: str, read: WhatWasRead) -> str:
    """Return the node that a host in a log is: nodes of clouds are named by host and domain."""
    name = valid_name(host)
    return read.node if not name or read.node.startswith(f"{name}.") else name


def _called(host: str, node: str) -> str:
    """Return a machine's name as its log has it; Kubernetes has it in small letters."""
    return host if valid_name(host) == node else valid_name(node)


def _of_termination(ended: ContainerTermination, read: WhatWasRead, several: str) -> Iterator[NextStep]:
    options, name = pod_options(ended.pod)
    node = valid_name(ended.node) or read.node
    is_unreported = ended.cause is TerminationCause.KERNEL_UNREPORTED or (
        ended.cause is TerminationCause.KERNEL_OF_CHILD and ended.kill is None
    )
    if ended.is_from_runtime and not ended.pod:
        if is_unreported or ended.cause is TerminationCause.SIGKILL:
            yield from _of_host(ended.node, ended.at, read)
    elif is_unreported:
        yield from _live(ended.pod, read, several)
        if node:
            yield _kernel_log(read, node, ended.at, ended.pod)
        elif name:
            command = f"{kubectl(read)} get pod {options}{name} -o yaml | {podqos_with(read)}"
            yield NextStep(command, StepReason.POD, pod=ended.pod)
        else:
            yield NextStep(_again(f"{kubectl(read)} {_ALL}", read), StepReason.CLUSTER_STATE)
    elif ended.cause is TerminationCause.SIGKILL:
        yield from _live(ended.pod, read, several)
        yield from _program_log(read, ended)
        if not (name or node):
            yield NextStep(_again(f"{kubectl(read)} {_ALL}", read), StepReason.CLUSTER_STATE)
        if not read.kernel_messages:
            yield from _kernel_check(read, node, ended.at, ended.pod)
    elif ended.cause is TerminationCause.NODE_LOST and node:
        command = f"{kubectl(read)} describe node {node}"
        yield NextStep(command, StepReason.NODE, node=node, pod=ended.pod)
        yield from _kernel_check(read, node, ended.at, ended.pod, _ANY_BOOT)


def _of_several(found: Autopsies) -> str:
    """Return the options that cover all pods whose containers ended: one namespace, or all; empty for one pod."""
    pods = {pod_options(ended.pod) for ended in found.terminations}
    if len(pods) <= 1:
        return ""
    options = {own for own, _ in pods}
    return (options.pop().rstrip() if len(options) == 1 else "") or "-A"


def _of_restarts(ended: ContainerTermination, read: WhatWasRead) -> Iterator[NextStep]:
    """Yield how to find out how a container ends that a table only shows to be restarting."""
    options, name = pod_options(ended.pod)
    if name and not read.cluster:
        command = f"{kubectl(read)} get pod {options}{name} -o yaml | {podqos_with(read)}"
        yield NextStep(command, StepReason.POD, pod=ended.pod)


def _live(pod: str, read: WhatWasRead, several: str) -> Iterator[NextStep]:
    """Yield the question to the live cluster, which gets everything that it serves, unless it was asked already."""
    options, name = pod_options(pod)
    if not read.cluster and name:
        yield NextStep(f"podqos autopsy {several or f'{options}{name}'}", StepReason.LIVE_CLUSTER)


def _program_log(read: WhatWasRead, ended: ContainerTermination) -> Iterator[NextStep]:
    options, name = pod_options(ended.pod)
    container = valid_name(ended.container)
    if container and name:
        previous = " --previous" if ended.is_previous else ""
        command = f"{kubectl(read)} logs {options}{name} -c {container}{previous} --tail=50"
        yield NextStep(command, StepReason.PROGRAM_LOG, pod=ended.pod)


def _kernel_log(read: WhatWasRead, node: str, at: str, pod: str = "") -> NextStep:
    return NextStep(node_log(read, node, at), StepReason.KERNEL_LOG, creates_pod=True, node=valid_name(node), pod=pod)


def _kernel_check(read: WhatWasRead, node: str, at: str, pod: str = "", journal: str = "-k") -> Iterator[NextStep]:
    """Yield how to read the kernel's log of a node that may have a report."""
    if node:
        command = node_log(read, node, at, journal)
        yield NextStep(command, StepReason.KERNEL_CHECK, creates_pod=True, node=node, pod=pod)


def _of_eviction(eviction: PodEviction, read: WhatWasRead) -> Iterator[NextStep]:
    node = _node_of(eviction.node, read)
    if TraceSource.JOURNAL in eviction.found_in:
        return
    if eviction.reason in {EvictionReason.PODS_UNKNOWN, EvictionReason.POD_UNKNOWN}:
        if node:
            command = f"{kubectl(read)} get pods -A --field-selector spec.nodeName={node} -o json"
            yield NextStep(_again(command, read), StepReason.PODS_OF_NODE, node=node, pod=eviction.pod)
        else:
            yield NextStep(_again(f"{kubectl(read)} {_ALL}", read), StepReason.CLUSTER_STATE, pod=eviction.pod)
    elif eviction.reason is EvictionReason.NO_MESSAGE:
        options, name = pod_options(eviction.pod)
        if name and not read.cluster:
            command = f"{kubectl(read)} get pod {options}{name} -o yaml | {podqos_with(read)}"
            yield NextStep(command, StepReason.POD, pod=eviction.pod)
    is_open = eviction.reason in {
        EvictionReason.PODS_UNKNOWN,
        EvictionReason.POD_UNKNOWN,
        EvictionReason.USAGE_DECIDES,
        EvictionReason.SIGNAL_UNKNOWN,
    }
    is_cut = eviction.reason is EvictionReason.NO_MESSAGE and TraceSource.KUBELET_LOG in eviction.found_in
    if node and (is_cut or (is_open and TraceSource.KUBELET_LOG not in eviction.found_in)):
        yield NextStep(
            node_log(read, node, eviction.at, "-u kubelet"),
            StepReason.KUBELET_LOG,
            creates_pod=True,
            node=node,
            pod=eviction.pod,
        )


def _again(command: str, read: WhatWasRead) -> str:
    """Return a command whose output is explained together with the files that were given."""
    return f"{command} | {podqos_with(read, logs=True)}"


def _of_sign(sign: NodeSign, read: WhatWasRead) -> Iterator[NextStep]:
    node = valid_name(sign.node) or read.node
    if sign.kind in OOM_SIGNS and sign.kill is None:
        if node and ((sign.kind in _OF_NODES and not sign.unit) or read.is_of_kubernetes):
            yield _kernel_log(read, node, sign.at)
        elif sign.kind in _OF_NODES and read.events:
            command = f"{kubectl(read)} get events -A --field-selector reason={sign.kind.value} -o json"
            yield NextStep(f"{command} | {podqos_with(read)}", StepReason.NODE_OF_EVENT)
        else:
            yield NextStep(
                host_log(read, sign.at, sign.node), StepReason.KERNEL_LOG_ON_HOST, node=_called(sign.node, node)
            )
    elif sign.kind is SignKind.REBOOTED:
        yield from _kernel_check(read, node, sign.at, journal=_ANY_BOOT)
    elif sign.kind is SignKind.NOT_READY and node and not (read.nodes and sign.at):
        yield NextStep(f"{kubectl(read)} describe node {node} | {podqos_with(read)}", StepReason.NODE, node=node)
    elif not (read.pods or read.cluster):
        yield NextStep(_again(f"{kubectl(read)} {_ALL}", read), StepReason.CLUSTER_STATE, node=node)


def _of_nothing(read: WhatWasRead) -> Iterator[NextStep]:
    """Yield where to look, where nothing was found."""
    if read.cluster:
        return
    options, name = pod_options(read.pod)
    if name:
        yield NextStep(f"podqos autopsy {options}{name}", StepReason.LIVE_CLUSTER, pod=read.pod)
    elif read.selector and not read.pods:
        command = f"{kubectl(read)} get pods {read.selector} -o json | podqos autopsy -"
        yield NextStep(command, StepReason.PODS_OF_WORKLOAD)
        return
    elif not (read.pods and read.events):
        yield NextStep(f"{kubectl(read)} {_ALL} | podqos autopsy -", StepReason.CLUSTER_STATE)
    if read.node and not read.kernel_messages:
        yield from _kernel_check(read, read.node, "")
    elif read.kernel_messages and not read.lacks_journal:
        yield NextStep("journalctl -k -b -1 -o short-iso --no-pager | podqos autopsy -", StepReason.PREVIOUS_BOOT)
    else:
        command = TALOS if read.is_talos else "sudo dmesg"
        yield NextStep(f"{command} | podqos autopsy -", StepReason.THIS_MACHINE)
