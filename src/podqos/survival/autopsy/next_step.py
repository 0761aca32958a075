"""The next command to run, where what was read is not enough: complete, so that it can be pasted.

Names come from logs and are not trusted: one that is not a valid name of Kubernetes becomes a placeholder, and file
names are quoted for the shell.

Sources: kubectl v1.36 pkg/cmd/debug/debug.go (a pod for a node is named node-debugger-NODE-xxxxx, stays when it is
done, and mounts the node's files at /host; ``--profile=sysadmin`` is privileged); systemd src/journal/journalctl.c
(``-k`` implies the current boot) and man systemd.time: a time without a zone is the machine's own, ``UTC`` is
understood everywhere, ``Z`` and ``+00:00`` only by later versions.
"""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from ipaddress import ip_address

from msgspec import Struct

from podqos.survival.autopsy.eviction_traces import MONTHS
from podqos.survival.autopsy.what_was_read import WhatWasRead

_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_UID = re.compile(r"[0-9a-f][0-9a-f-]{7,63}")
TALOS = "talosctl dmesg"
"""Without the address of the node, which only those who run it know."""
_BEFORE, _AFTER = timedelta(minutes=5), timedelta(minutes=2)
_EPOCH = re.compile(r"\d{9,11}(?:\.\d{1,9})?", re.ASCII)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(?: ?(UTC|Z|[+-]\d\d:?\d\d))?", re.ASCII)
_DATED = re.compile(r"([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})", re.ASCII)


class StepReason(StrEnum):
    """Why a command helps."""

    KERNEL_LOG = "KernelLog"
    """The kernel's log of that time has the report."""
    KERNEL_CHECK = "KernelCheck"
    """The kernel's log of that time shows whether it killed anything."""
    KERNEL_LOG_ON_HOST = "KernelLogOnHost"
    """It has the report; nothing says that the host is a node of Kubernetes."""
    REST_OF_REPORT = "RestOfReport"
    """Lines of the report are missing; the node's log may still have them."""
    REST_ON_HOST = "RestOnHost"
    """The same where nothing says that the host is a node of Kubernetes."""
    KUBELET_LOG = "KubeletLog"
    """It has the ranking of that moment."""
    LIVE_CLUSTER = "LiveCluster"
    """podqos asks the cluster for status, Events and logs of the nodes; it only reads."""
    POD = "Pod"
    """Its status has node, time, exit code and limits."""
    POD_NAME = "PodName"
    """The report has the uid of the victim's pod; the cluster knows the name."""
    DELETED_POD = "DeletedPod"
    """No pod that was read has the uid; Events keep the name for a while."""
    PODS_OF_NODE = "PodsOfNode"
    """Which pod is evicted first depends on the other pods of the node."""
    PODS_OF_WORKLOAD = "PodsOfWorkload"
    """A Deployment's description does not show how its containers ended; its pods do."""
    PROGRAM_LOG = "ProgramLog"
    """The last lines of the program may say why it ended."""
    NODE_OF_EVENT = "NodeOfEvent"
    """The Event names the node and the time."""
    NODE = "Node"
    """Its conditions and Events say when it restarted or was lost."""
    CLUSTER_STATE = "ClusterState"
    """Finds OOM-killed containers and evicted pods, with their nodes and times."""
    THIS_MACHINE = "ThisMachine"
    """The kernel's log of the machine on which it runs."""
    PREVIOUS_BOOT = "PreviousBoot"
    """The kernel's log before the machine last restarted."""
    DELETE_DEBUG_POD = "DeleteDebugPod"
    """kubectl debug leaves its pod behind."""


class NextStep(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A command to run next."""

    command: str
    reason: StepReason
    creates_pod: bool = False
    """It leaves a pod in the cluster, to be deleted afterwards. Nothing else that is proposed changes anything, but
    ``DeleteDebugPod``."""
    node: str = ""
    """Where it runs, or what it is about; empty where that is not known."""
    pod: str = ""


def valid_name(text: str) -> str:
    """Return a name that Kubernetes allows; else nothing."""
    name = text.lower()
    return name if _NAME.fullmatch(name) else ""


def kubectl(read: WhatWasRead) -> str:
    """Return how to call kubectl for the cluster that was asked."""
    return f"kubectl --context {shlex.quote(read.context)}" if read.context else "kubectl"


def podqos_with(read: WhatWasRead, first: str = "-", *, logs: bool = False) -> str:
    """Return ``podqos autopsy`` with another input in addition to the files that were given before."""
    given = [*(read.logs if logs else ()), *read.files]
    files = [shlex.quote(file) for file in given if file != "-"]
    snapshot = ["--snapshot", shlex.quote(read.snapshot)] if read.snapshot else []
    return " ".join(["podqos autopsy", first, *files, *snapshot])


def node_log(read: WhatWasRead, node: str, at: str, journal: str = "-k") -> str:
    """Return the command that reads a part of the journal of a node with a valid name, and explains it."""
    debug = f"{kubectl(read)} debug node/{node} -it --image=busybox --profile=sysadmin"
    if read.lacks_journal:
        return f"{debug} -- dmesg | {podqos_with(read)}"  # the image's own: the ring buffer is that of the machine
    return f"{debug} -- chroot /host {host_log(read, at, node, journal)}"


def host_log(read: WhatWasRead, at: str, host: str, journal: str = "-k") -> str:
    """Return the command that does so on the machine itself, or where talosctl knows it: by its address."""
    if read.is_talos:
        return f"{f'talosctl -n {host} dmesg' if _is_address(host) else TALOS} | {podqos_with(read)}"
    if read.lacks_journal:
        return f"sudo dmesg | {podqos_with(read)}"
    return f"journalctl {journal}{_window(at)} -o short-iso --no-pager | {podqos_with(read)}"


def _is_address(host: str) -> bool:
    try:
        return "%" not in host and bool(ip_address(host))  # anything may stand behind a percent sign
    except ValueError:
        return False


def pod_options(pod: str) -> tuple[str, str]:
    """Return the option with the namespace of a pod, and its name; empty where they are not valid."""
    namespace, _, name = pod.rpartition("/")
    namespace, name = valid_name(namespace), valid_name(name)
    return (f"-n {namespace} " if namespace else ""), name


def valid_uid(text: str) -> str:
    """Return a uid that can be put into a command; else nothing."""
    return text if _UID.fullmatch(text) else ""


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
