"""What an autopsy has read, and what to run next, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from podqos.survival.autopsy.next_step import TALOS, NextStep, StepReason
from podqos.survival.autopsy.what_was_read import WhatWasRead
from podqos.wording import counted, listed

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
_USUAL_LINES = 10
_AGAIN = ". Then run podqos again with -f pods.json"
_CREATES = (
    "This creates a privileged pod{on}, which stays until you delete it: kubectl delete pod node-debugger-{node}-… "
    "(podqos prints its full name)."
)


class StepWords(Struct, frozen=True, rename="camel"):
    """A command, why it helps, and what it changes."""

    command: str
    why: str
    warning: str = ""


def steps_words(steps: Sequence[NextStep]) -> tuple[StepWords, ...]:
    """Return steps in words."""
    on_host: set[str] = set()
    found = []
    for step in steps:
        found.append(_step_words(step, on_host))
        if step.reason is StepReason.REST_ON_HOST:
            on_host.add(step.node.lower())
    return tuple(found)


def _step_words(step: NextStep, on_host: Collection[str]) -> StepWords:
    """Return a step in words; ``on_host`` are the machines whose log the steps before it read."""
    of, on = (f" {word} {step.node}" if step.node else "" for word in ("of", "on"))
    victim = "it" if step.pod else "anything"
    why = _WHY[step.reason].format(of=of, on=on or " on that machine", victim=victim)
    if step.command.startswith("talosctl"):
        _, _, why = why.partition(": ")
    if step.command.startswith(TALOS):
        why = f"add -n and the address of {step.node or 'the node'}: {why}"
    if step.reason is StepReason.REST_OF_REPORT and step.node in on_host:
        why = f"the same, if {step.node} is a Kubernetes node"
    if step.command.endswith("> pods.json"):
        why += _AGAIN
    warning = _CREATES.format(on=on, node=step.node) if step.creates_pod else ""
    if " -- chroot /host " in step.command:
        warning += " On the node itself, run only what follows chroot /host."
    return StepWords(step.command, why, warning)


def read_words(read: WhatWasRead) -> str:
    """Return how much was read, as a sentence; empty where nothing was given to read."""
    if not read.is_given:
        return ""
    if read.is_nothing:
        return "Read 0 lines."
    parts = list(_parts(read))
    origin = f"the live cluster {read.cluster}" if read.cluster else ""
    if read.lines:
        lines = counted(read.lines, "line")
        if read.is_line_count_estimated:
            lines = f"about {round(read.lines, -3):,} lines"
        origin = f"{origin} and {lines}" if origin else lines
    return f"Read {origin}: {listed(parts)}." if origin else f"Read {listed(parts)}."


def _parts(read: WhatWasRead) -> Iterator[str]:
    least = "at least " if read.is_sampled else ""
    # A report without times and host, or in a carrier that is not counted, may have few lines that look like its own.
    is_marked = read.kernel_messages >= _USUAL_LINES * read.oom_reports
    if is_marked and (read.kernel_messages or not read.journal_entries):
        yield f"{least if read.kernel_messages else ''}{counted(read.kernel_messages, 'kernel message')}"
    for number, noun in (
        (read.oom_reports, "OOM report"),
        (read.kubelet_messages, "kubelet message"),
        (read.pods, "pod"),
        (read.workloads, "workload"),
        (read.nodes, "node"),
        (read.events, "event"),
        (read.containers, "container"),
        (read.program_messages, "message"),
    ):
        if number:
            yield counted(number, noun) + (" of other programs" if noun == "message" else "")
    if read.journal_entries:
        entries = "entry" if read.journal_entries == 1 else "entries"
        yield f"{read.journal_entries:,} {entries} of a podqos journal"
