"""What an autopsy has read: how much of what, and from where. An answer is only as good as that."""

from __future__ import annotations

from msgspec import Struct


class Mention(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A line that speaks of a kill, in words that prove none or that were not understood."""

    line: int
    """Its number in its log, from 1."""
    word: str
    """What it says, such as OOMKilled."""
    text: str
    """What is around that word."""
    log: int = 0
    """In which of several logs, from 0."""


class WhatWasRead(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How much was read, by kind."""

    lines: int = 0
    """Of logs, and of files with objects."""
    bytes: int = 0
    kernel_messages: int = 0
    kubelet_messages: int = 0
    journal_entries: int = 0
    """Of a podqos node, or of a simulation."""
    is_sampled: bool = False
    """A log is large: messages are counted at its beginning alone."""
    is_line_count_estimated: bool = False
    """A log is very large: beyond its first 64 MiB lines are counted in an eighth of it."""
    oom_reports: int = 0
    pods: int = 0
    workloads: int = 0
    """Deployments and the like, which have no status of containers."""
    nodes: int = 0
    events: int = 0
    containers: int = 0
    """As container runtimes show them, such as ``docker inspect``."""
    program_messages: int = 0
    """Of other killers than the kernel, and of programs that ran out of their own memory."""
    is_binary: bool = False
    """Nothing in it is text."""
    logs: tuple[str, ...] = ()
    """Names of files; - is standard input."""
    files: tuple[str, ...] = ()
    """With pods, nodes or events."""
    snapshot: str = ""
    cluster: str = ""
    """The name of a live cluster."""
    context: str = ""
    """The one that was asked for, where it is not the current one."""
    pod: str = ""
    """namespace/name, if there is only one."""
    node: str = ""
    """The node of the pods, or the host of the log, if there is only one."""
    lacks_journal: bool = False
    """journalctl said that it has nothing, a shell that there is no journalctl, or the log is of a system without."""
    is_talos: bool = False
    """The log is one of Talos, which nobody can log in to."""
    debug_pods: tuple[str, ...] = ()
    """Pods that ``kubectl debug`` says it made to read a log."""
    selector: str = ""
    """Of a Deployment or the like that kubectl describes: the options that find its pods."""
    mention: Mention | None = None
    """The first line that speaks of a kill, the plainest words first; of a large log near its beginning."""

    @property
    def is_given(self) -> bool:
        """Whether there was anything that could be read."""
        return bool(self.bytes or self.logs or self.files or self.snapshot or self.cluster)

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to read."""
        return not (self.bytes or self.pods or self.nodes or self.events or self.workloads or self.cluster)

    @property
    def is_of_kubernetes(self) -> bool:
        """Whether anything says that the logs are those of nodes."""
        objects = self.pods or self.nodes or self.events or self.workloads
        return bool(objects or self.kubelet_messages or self.cluster or self.snapshot or self.debug_pods)

    @property
    def is_recognised(self) -> bool:
        """Whether anything in it was a log of the kernel or the kubelet, or an object."""
        return any(
            (
                self.kernel_messages,
                self.kubelet_messages,
                self.journal_entries,
                self.oom_reports,
                self.pods,
                self.workloads,
                self.nodes,
                self.events,
                self.containers,
                self.selector,
                self.program_messages,
                self.cluster,
            )
        )
