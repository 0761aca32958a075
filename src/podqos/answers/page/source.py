"""What a page is about, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from podqos.advice.sizing.samples import ContainerSamples
from podqos.answers.page.guard import GuardPanel
from podqos.answers.run_view import RunView
from podqos.manifest.problems import Problem
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.files import InputFile
from podqos.objects.objects import Objects
from podqos.sim.scenario.scenario import Scenario
from podqos.survival.node.usage_file import UsageRow


class SourceKind(StrEnum):
    """What a source is."""

    MANIFESTS = "manifests"
    SNAPSHOT = "snapshot"
    SCENARIO = "scenario"
    LOG = "log"
    RUN = "run"


class Follows(StrEnum):
    """What a source is kept up to date with."""

    NOTHING = ""
    FILES = "files"
    CLUSTER = "cluster"
    NODE = "node"
    GUARD = "guard"


class Changed(Struct, frozen=True):
    """The last change of files."""

    file: str
    """The one that was changed last, without its directory."""
    at: str
    """In RFC 3339."""
    files: int
    """How many there are."""


class LogFile(Struct, frozen=True):
    """A log that autopsy reads."""

    name: str
    data: bytes | None = None
    """What it holds; None: the command line names it, and it is read as a stream, however large."""


class PageSource(Struct, frozen=True):
    """What a page is about, read."""

    kind: SourceKind
    name: str
    """What people know it by."""
    files: tuple[InputFile, ...] = ()
    """The manifests, with what they hold."""
    problems: tuple[Problem, ...] = ()
    objects: Objects | None = None
    """Of manifests; those of a snapshot are in the cluster."""
    cluster: ClusterSnapshot | None = None
    scenario: Scenario | None = None
    given: Mapping[str, bytes] = {}
    """The scenario's file, which is the first, and those that it refers to."""
    usage: tuple[UsageRow, ...] | None = None
    """What the pods of manifests use, where that was given."""
    samples: tuple[ContainerSamples, ...] = ()
    """What containers used over time, where that was given."""
    node_memory_bytes: int | None = None
    """The memory of their nodes, where a command states it; None: that of Nodes among them, or assumed."""
    logs: tuple[LogFile, ...] = ()
    run: RunView | None = None
    guard: GuardPanel | None = None
    """The guard that a cluster of one node is seen through."""
    looked_at: tuple[str, ...] = ()
    """The files and directories on disk that it is made of."""
    size_bytes: int = 0
    """Of the files given, unpacked."""
    known_by: tuple[str, ...] = ()
    """Of a live cluster: the options by which a command names it."""
    follows: Follows = Follows.NOTHING
    broken: tuple[Problem, ...] = ()
    """What is wrong with files that are shown as they were before."""
    changed: Changed | None = None
    """Of files: when what is shown was changed last."""
