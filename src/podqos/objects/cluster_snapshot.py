"""A cluster at a moment, as one value, and the file it is kept in.

The file is JSON lines, gzipped if its name ends so: a header; then lists as an API server sends them, in pages, without
what no decision reads (``manifest.pruning``); what each kubelet says about usage and its settings; and at last how many
lines there are. It is written and read as a stream, and one that was cut off is not treated as a whole one.

A live cluster yields the same lines, so that whoever takes a snapshot does not know where it is from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError, InvalidArgument, InvalidQuantity
from podqos.eviction.signals import decode_summary
from podqos.manifest.decode import REFUSALS, model_decoder
from podqos.manifest.kubelet import kubelet_settings_in
from podqos.model.assumption import Assumption
from podqos.model.event import Event
from podqos.model.metrics import NodeMetrics, PodMetrics
from podqos.model.node import Node
from podqos.model.pod import ObjectMeta
from podqos.model.pod_fate import FatedPod
from podqos.model.profile import LATEST, Profile, parse_version
from podqos.model.stats import Summary
from podqos.objects.cluster_node import ClusterNode
from podqos.objects.files import InputFile, Inputs
from podqos.objects.held import held_objects
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import FoundWorkload, Objects
from podqos.objects.selection import Selection
from podqos.objects.sources import Source

KIND = "ClusterSnapshot"


Model = TypeVar("Model", bound=Struct)


class Header(Struct, frozen=True, rename="camel"):
    """The first line: what the snapshot contains."""

    api_version: Literal["podqos.dev/v1alpha1"] = "podqos.dev/v1alpha1"
    kind: Literal["ClusterSnapshot"] = "ClusterSnapshot"
    taken_at: str = ""
    """When, in RFC 3339."""
    server_version: str = ""
    """Of the API server, such as v1.36.4."""
    is_anonymous: bool = False
    """Whether names were replaced."""
    namespace: str = ""
    """The only namespace with pods in it; empty for all."""
    node: str = ""
    """The only node with pods in it; empty for all."""


class NodeSummary(Struct, frozen=True, rename="camel", tag_field="kind", tag="NodeSummary"):
    """A kubelet's /stats/summary."""

    node: str
    summary: msgspec.Raw


class NodeKubelet(Struct, frozen=True, rename="camel", tag_field="kind", tag="NodeKubelet"):
    """A kubelet's /configz."""

    node: str
    configz: msgspec.Raw


class Missing(Struct, frozen=True, rename="camel", tag_field="kind", tag="Missing"):
    """A source that did not answer, and what is assumed instead."""

    assumption: Assumption
    list: str = ""
    """The list that podqos has no permission to read and assumes to be empty."""


class Restart(Struct, frozen=True, rename="camel", tag_field="kind", tag="Restart"):
    """A list that expired while it was read starts over: its earlier pages are void."""

    list: str


class End(Struct, frozen=True, rename="camel", tag_field="kind", tag="End"):
    """The last line: how many came before it."""

    lines: int


Note = NodeSummary | NodeKubelet | Missing | Restart | End


_NOTE_BEGINS = 40
_NOTES = {"NodeSummary", "NodeKubelet", "Missing", "Restart", "End"}
_PODS = "PodList"
_BESIDE = ("PodMetricsList", "NodeMetricsList", "EventList")
"""Kinds that do not affect pods, read only on request."""
_WORKLOADS = ("DeploymentList", "StatefulSetList", "DaemonSetList", "ReplicaSetList", "JobList", "CronJobList")


class _List(Struct, frozen=True):
    """A page of a list, and its line."""

    kind: str
    number: int
    data: bytes


class ClusterSnapshot:
    """A cluster at a moment. ``lines`` are those of a file, or what a live cluster yields; ``source`` names them.

    ``before`` is the same cluster at an earlier moment: what has not changed since is not read again.
    """

    def __init__(self, lines: Iterable[bytes], source: str, before: ClusterSnapshot | None = None) -> None:
        self.source = source
        self._entries: list[tuple[bytes, _List | Note]] = []
        self._sources: dict[InputFile, Source] = {} if before is None else before._sources  # noqa: SLF001 - of the same class
        self._lists: list[_List] = []
        self._summaries: dict[str, bytes] = {}
        self._kubelets: dict[str, bytes] = {}
        self._missing: list[Missing] = []
        known = [] if before is None else before._entries  # noqa: SLF001
        self.header = self._read(lines, known)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What is assumed because a source did not answer when the snapshot was taken."""
        return tuple(missing.assumption for missing in self._missing)

    @property
    def profile(self) -> Profile:
        """The rules of the server's version; the newest where it is unknown."""
        try:
            return parse_version(self.header.server_version)
        except InvalidArgument:
            return LATEST

    def running(self) -> Inputs:
        """Return the pods, and the objects that affect them, as files to read."""
        return self._inputs({_PODS: _as_it_is})

    def policies(self) -> Inputs:
        """Return the objects that affect pods, as files to read."""
        return self._inputs({})

    def declared(self) -> Inputs:
        """Return the workloads, pods that none of them created, and the objects that affect them, as files to read.

        Quota usage is left out: it comes from these very pods, which would be charged twice.
        """
        known = {
            (workloads.kind.removesuffix("List"), f"{made.metadata.namespace}/{made.metadata.name}")
            for workloads in self._lists
            if workloads.kind in _WORKLOADS
            for made in self._decoded(workloads, _Made)
        }
        own = dict.fromkeys((_PODS, *_WORKLOADS), partial(_without_made, known))
        return self._inputs({**own, "ResourceQuotaList": _uncharged})

    @cached_property
    def objects(self) -> Objects:
        """The pods, and the objects that affect them."""
        inputs = self.running()
        objects = held_objects(inputs, self._sources)
        self._sources = dict(zip(inputs.files, objects.sources, strict=True))
        return objects

    def decisive_for(self, node: str) -> tuple[object, ...]:
        """Return everything else that affects the pods of a node, unchanged, for comparison."""
        own = self._summaries.get(node), self._kubelets.get(node)
        return (*own, self.header.server_version, *self._missing, *self._of_all)

    @cached_property
    def _of_all(self) -> tuple[bytes, ...]:
        about = {_PODS, "NodeList", "EventList", *_WORKLOADS}
        return tuple(each.data for each in self._lists if each.kind not in about)

    def on_node(self, name: str) -> Objects:
        """Return the same with only the pods of one node."""
        return self.objects.with_workloads(self.by_node.get(name, ()))

    def at(self, name: str, selection: Selection | None = None) -> ClusterNode:
        """Return a node with its pods and their usage; the answer covers the pods of ``selection``."""
        objects = self.on_node(name).with_selection(selection)
        summary = self.summary(name)
        # Metrics are not read where the kubelet has measured more.
        return ClusterNode(
            self.nodes[name],
            objects,
            self.kubelet(name),
            summary,
            self.pod_metrics if summary is None else {},
            self.node_metrics.get(name) if summary is None else None,
            self.assumptions,
        )

    @cached_property
    def by_node(self) -> dict[str, list[FoundWorkload]]:
        """The pods by the name of their node; those without one under an empty name."""
        found: dict[str, list[FoundWorkload]] = {}
        for workload in self.objects.workloads:
            found.setdefault(workload.workload.pod.spec.node_name, []).append(workload)
        return found

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """The nodes by name."""
        return {node.name: node for node in self.objects.of(Node)}

    @cached_property
    def pod_metrics(self) -> dict[str, PodMetrics]:
        """Usage of pods from metrics.k8s.io, by ``namespace/name``; empty if it did not answer."""
        return {
            f"{item.metadata.namespace}/{item.metadata.name}": item
            for item in self._items("PodMetricsList", PodMetrics)
        }

    @cached_property
    def node_metrics(self) -> dict[str, NodeMetrics]:
        """Usage of nodes from metrics.k8s.io, by name."""
        return {item.metadata.name: item for item in self._items("NodeMetricsList", NodeMetrics)}

    @cached_property
    def fated_pods(self) -> tuple[FatedPod, ...]:
        """The pods with their full status, each once."""
        return tuple({item.metadata.uid or item.key: item for item in self._items("PodList", FatedPod)}.values())

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Events of pods and nodes of the last hour; empty unless requested."""
        return tuple(self._items("EventList", Event))

    def _items(self, kind: str, model: type[Model]) -> Iterator[Model]:
        for each in self._lists:
            if each.kind == kind:
                yield from self._decoded(each, model)

    def _decoded(self, each: _List, model: type[Model]) -> list[Model]:
        try:
            items = msgspec.json.decode(each.data, type=_RawList).items
            return [model_decoder(model).decode(item) for item in items]
        except (*REFUSALS, InvalidQuantity) as error:
            raise self._error(each.number, f"broken: {error}") from None

    def summary(self, node: str) -> Summary | None:
        """Return the usage that a node's kubelet measured; None if it did not answer."""
        data = self._summaries.get(node)
        return None if data is None else decode_summary(data)

    def kubelet(self, node: str) -> Kubelet | None:
        """Return the settings of a node's kubelet; None if it did not report them."""
        data = self._kubelets.get(node)
        if data is None:
            return None
        path = f"{self.source}: kubelet of {node}"
        return Kubelet(kubelet_settings_in(path, data).configuration, path)

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _read(self, lines: Iterable[bytes], known: Sequence[tuple[bytes, _List | Note]]) -> Header:
        numbered = enumerate(lines, 1)
        header = self._header(next(numbered, (1, b""))[1])
        count, end = 1, None
        for number, line in numbered:
            if end is not None:
                raise self._error(number, "there is data after the end of the snapshot", "keep one snapshot per file")
            before = known[number - 2] if number - 2 < len(known) else None
            entry = before[1] if before is not None and before[0] == line else self._entry(number, line)
            self._entries.append((line, entry))
            end = self._take(entry)
            count = number
        if end is None and count == 1:
            what = "not a snapshot of a cluster, or only its first line"
            raise InputError(what, where=self.source, fix="take a snapshot with `podqos snapshot`")
        if end is None or end.lines != count - 1:
            raise InputError("it is truncated", where=self.source, fix="take the snapshot again")
        return header

    def _header(self, line: bytes) -> Header:
        try:
            return msgspec.json.decode(line, type=Header)
        except REFUSALS as error:
            fix = f'a snapshot starts with {{"apiVersion":"podqos.dev/v1alpha1","kind":"{KIND}", …}}'
            raise InputError(f"not a snapshot of a cluster: {error}", where=self.source, fix=fix) from None

    def _kind(self, number: int, line: bytes) -> str:
        try:
            return msgspec.json.decode(line, type=_Kind).kind
        except REFUSALS as error:
            raise self._error(number, f"broken: {error}") from None

    def _entry(self, number: int, line: bytes) -> _List | Note:
        kind = self._kind(number, line)
        if kind not in _NOTES:
            return _List(kind, number, line)
        try:
            return msgspec.json.decode(line, type=Note)  # type: ignore[no-any-return] # a union is no type to mypy
        except REFUSALS as error:
            raise self._error(number, f"broken: {error}") from None

    def _take(self, note: _List | Note) -> End | None:
        match note:
            case _List():
                self._lists.append(note)
            case NodeSummary():
                self._summaries[note.node] = bytes(note.summary)
            case NodeKubelet():
                self._kubelets[note.node] = bytes(note.configz)
            case Missing():
                self._missing.append(note)
            case Restart():
                self._lists = [each for each in self._lists if each.kind != note.list]
            case End():
                return note
        return None

    def _error(self, number: int, what: str, fix: str = "take the snapshot again") -> InputError:
        return InputError(what, where=f"{self.source}:{number}", fix=fix)

    def _inputs(self, kept: Mapping[str, Callable[[bytes], bytes]]) -> Inputs:
        files = []
        for each in self._lists:
            if each.kind in _BESIDE or (each.kind in {_PODS, *_WORKLOADS} and each.kind not in kept):
                continue
            try:
                data = kept.get(each.kind, _as_it_is)(each.data)
            except REFUSALS as error:
                raise self._error(each.number, f"broken: {error}") from None
            files.append(InputFile(f"{self.source}:{each.number}", data=data, cluster=self.source))
        unread = (
            missing.assumption for missing in self._missing if missing.list and (missing.list not in _WORKLOADS or kept)
        )
        return Inputs(files, assumptions=tuple(unread))


class _Kind(Struct, frozen=True):
    kind: str = ""


class _Made(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _RawList(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    items: list[msgspec.Raw] = []


class _QuotaList(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    items: list[dict[str, Any]] = []


def _as_it_is(data: bytes) -> bytes:
    return data


def _uncharged(data: bytes) -> bytes:
    """Return a list of quotas as if nothing was used of them."""
    found = msgspec.json.decode(data, type=_QuotaList)
    for quota in found.items:
        if isinstance(status := quota.get("status"), dict) and isinstance(hard := status.get("hard"), dict):
            status["used"] = dict.fromkeys(hard, "0")
    return msgspec.json.encode(found)


def _without_made(known: set[tuple[str, str]], data: bytes) -> bytes:
    """Return a list without the objects created by known workloads."""
    found = msgspec.json.decode(data, type=_RawList)
    items = [item for item in found.items if not _is_made(msgspec.json.decode(item, type=_Made).metadata, known)]
    return msgspec.json.encode(replace(found, items=items))


def _is_made(metadata: ObjectMeta, known: set[tuple[str, str]]) -> bool:
    """Whether a known workload created it. A Deployment creates its pods through a ReplicaSet."""
    for owner in metadata.owner_references:
        made_by = {(owner.kind, f"{metadata.namespace}/{owner.name}")}
        if owner.kind == "ReplicaSet":
            made_by.add(("Deployment", f"{metadata.namespace}/{owner.name.rpartition('-')[0]}"))
        if owner.controller and made_by & known:
            return True
    return False


# ---- the file --------------------------------------------------------------------------------------------------------


def is_cluster_snapshot(data: bytes) -> bool:
    """Whether a file's beginning is that of a snapshot of a cluster."""
    return data[:2] == b"\x1f\x8b" or KIND.encode() in data[:200]


def noting_missing(lines: Iterable[bytes], missing: list[Assumption]) -> Iterator[bytes]:
    """Pass on the lines of a snapshot, and keep what could not be read, with the missing permission."""
    for line in lines:
        # Notes are short lines of their own; lists are not decoded again.
        if b'"kind":"Missing"' in line[:_NOTE_BEGINS]:
            missing.append(msgspec.json.decode(line, type=Missing).assumption)
        yield line
