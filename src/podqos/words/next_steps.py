"""What an autopsy has read, and what to run next, in words."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from podqos.survival.autopsy.next_step import NextStep, StepReason
from podqos.survival.autopsy.what_was_read import WhatWasRead
from podqos.wording import counted, listed

_WHY = {
    StepReason.KERNEL_LOG: "the kernel log{of} has the OOM report: what ran out of memory, and why this process was "
    "killed",
    StepReason.KERNEL_CHECK: "the kernel log{of} shows whether the kernel killed it",
    StepReason.KERNEL_LOG_ON_HOST: "run it{on}: if the kernel killed something, its log has the report",
    StepReason.REST_OF_REPORT: "the report is incomplete; the kernel log{of} may have the rest",
    StepReason.REST_ON_HOST: "run it{on}: the report is incomplete, and the kernel log there may have the rest",
    StepReason.KUBELET_LOG: "the kubelet's log{of} has the ranking of that moment",
    StepReason.LIVE_CLUSTER: "gets status, Events and the logs of the nodes from the live cluster; it only reads",
    StepReason.POD: "its status has the node, the time, the exit code and the limits",
    StepReason.POD_NAME: "the report has only the uid of the victim's pod; the cluster has its name and its limits",
    StepReason.DELETED_POD: "none of the pods that were read has the uid in the report; if the pod was deleted, Events "
    "keep its name for an hour",
    StepReason.PODS_OF_NODE: "the eviction order depends on the other pods of the node",
    StepReason.EVENTS: "Events show whether a probe, a deletion or an eviction killed it; the API server keeps them "
    "for an hour",
    StepReason.PROGRAM_LOG: "the program's last lines may show why it ended, such as an out-of-memory error of its own",
    StepReason.NODE_OF_EVENT: "the Events name the node and the time",
    StepReason.NODE: "its conditions and Events show when it restarted or was lost",
    StepReason.CLUSTER_STATE: "finds OOM-killed containers and evicted pods, with their nodes and times",
    StepReason.THIS_MACHINE: "run it on the node: the kernel log has a report of every OOM kill",
    StepReason.PREVIOUS_BOOT: "run it on the node: this log has no OOM kill, the one before the last restart may",
    StepReason.DELETE_DEBUG_POD: "kubectl debug left this pod behind",
}
_USUAL_LINES = 10
_AGAIN = "then run podqos again with -f pods.json"
_CREATES = (
    "This creates a privileged pod{on}, which stays until you delete it: kubectl delete pod node-debugger-{node}-… "
    "(podqos prints its full name)."
)


class StepWords(Struct, frozen=True, rename="camel"):
    """A command, why it helps, and what it changes."""

    command: str
    why: str
    warning: str = ""


def step_words(step: NextStep) -> StepWords:
    """Return a step in words."""
    of, on = (f" {word} {step.node}" if step.node else "" for word in ("of", "on"))
    notes = [_WHY[step.reason].format(of=of, on=on or " on that machine")]
    if step.command.endswith("> pods.json"):
        notes.append(_AGAIN)
    warning = _CREATES.format(on=on, node=step.node) if step.creates_pod else ""
    if " -- chroot /host " in step.command:
        warning += " On the node itself, run only what follows chroot /host."
    return StepWords(step.command, "; ".join(notes), warning)


def read_words(read: WhatWasRead) -> str:
    """Return how much was read, as a sentence; empty where nothing was given to read."""
    if not read.is_given:
        return ""
    if read.is_nothing:
        return "Read 0 lines."
    parts = list(_parts(read))
    origin = f"the live cluster {read.cluster}" if read.cluster else ""
    if read.lines:
        origin = f"{origin} and {counted(read.lines, 'line')}" if origin else counted(read.lines, "line")
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
