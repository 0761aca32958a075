"""The node's local API: the kubelet's read endpoints, the node's status and its journal.

    /healthz /readyz                        liveness, readiness
    /pods                                   v1 PodList, with status
    /stats/summary                          the kubelet's figures, for ``podqos rank --stats`` and similar tools
    /configz                                the kubelet's configuration in force
    /metrics                                Prometheus
    /status                                 the node's own status (``node_status``)
    /journal?follow=&sinceUs=&tailLines=    the journal as JSON lines

The unix socket is for the node's owner. An optional port is open to every user of the machine, like the kubelet's
read-only port.
"""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from podqos.eviction.thresholds import effective_eviction_hard
from podqos.exposition import CONTENT_TYPE
from podqos.host.api.counters import Counters
from podqos.host.api.documents import Document, as_document, as_value, timestamp
from podqos.host.api.http_request import JSON, JSON_LINES, HttpRefusal, HttpResponse, KubeletRequest, Pieces
from podqos.host.api.http_server import HttpServer
from podqos.host.api.metrics import metrics
from podqos.host.api.node_status import node_status
from podqos.host.api.pod_list import PodList
from podqos.host.node.host_pod import HostPod
from podqos.host.storage.tailing import lines_of
from podqos.model.kubelet_config import API_VERSION, KIND
from podqos.model.stats import PodStats

if TYPE_CHECKING:
    from podqos.host.node.node import Node

SOCKET_NAME = "api.sock"


class Api:
    """Serves one node."""

    def __init__(self, node: Node, version: str) -> None:
        self._node = node
        self._version = version
        self._pods = PodList(node)
        self.counters = Counters()
        self.server = HttpServer(node.loop, self.answer, node.note, f"podqos/{version}")
        node.journal.listen(self.counters.heard)
        node.world.reacted = self.counters.reacted

    def open(self, listen: tuple[str, int] | None = None) -> int | None:
        """Start serving; return the port, if one was requested. The node also runs without its socket."""
        try:
            self.server.listen_unix(self._node.settings.state_dir / SOCKET_NAME)
        except OSError as error:
            self._node.note(
                f"no API: {error.strerror}; `podqos node status` and `podqos node journal` cannot reach this node"
            )
        return None if listen is None else self.server.listen_tcp(*listen)

    def close(self) -> None:
        """Stop serving."""
        self.server.close()
        with suppress(OSError):
            (self._node.settings.state_dir / SOCKET_NAME).unlink()

    def answer(self, request: KubeletRequest) -> HttpResponse:
        """Return the answer to a request."""
        match request.segments:
            case ("healthz",) | ("livez",):
                return HttpResponse(b"ok")
            case ("readyz",):
                if self._node.is_ending:
                    return HttpResponse(b"the node is ending", status=HTTPStatus.SERVICE_UNAVAILABLE)
                return HttpResponse(b"ok")
            case ("pods",):
                return HttpResponse(self._pods.pieces(), JSON)
            case ("stats", "summary"):
                return HttpResponse(self._summary(), JSON)
            case ("configz",):
                return HttpResponse(_json({"kubeletconfig": self._configuration()}), JSON)
            case ("metrics",):
                return HttpResponse(metrics(self._node, self.counters), CONTENT_TYPE)
            case ("status",):
                return HttpResponse(self._status(), JSON)
            case ("journal",):
                return self._journal(request)
            case _:
                raise HttpRefusal(HTTPStatus.NOT_FOUND, "no such path")

    def _status(self) -> Pieces:
        status = yield from node_status(self._node, self.counters, self._version)
        yield msgspec.json.encode(status)

    # ---- figures -------------------------------------------------------------------------------------------------

    def _summary(self) -> Pieces:
        """Yield ``/stats/summary``, a pod at a time."""
        node = self._node
        own = as_document(node.figures.of_node())
        own["startTime"] = timestamp(self.counters.start_us)
        self._add_cpu(own, node.cgroups.own)
        yield b'{"node":' + msgspec.json.encode(own) + b',"pods":['
        separator = b""
        for pod in list(node.world.pods.values()):
            yield separator + msgspec.json.encode(self._pod_summary(pod, node.figures.of_pod(pod)))
            separator = b","
        yield b"]}\n"

    def _pod_summary(self, pod: HostPod, stats: PodStats) -> Document:
        document = as_document(stats)
        document["startTime"] = timestamp(pod.state.started_us)
        self._add_cpu(document, pod.cgroup)
        containers: list[Document] = []
        for container in stats.containers or ():
            each = as_document(container)
            run = pod.runs.get(container.name)
            if run is not None:
                each["startTime"] = timestamp(run.started_us)
                self._add_cpu(each, run.cgroup)
            containers.append(each)
        document["containers"] = [*containers]
        return document

    def _add_cpu(self, document: Document, cgroup: str) -> None:
        used = self._node.cgroups.cpu_usage_ns(cgroup)
        if used is not None:
            document["cpu"] = {"time": timestamp(self.counters.now_us()), "usageCoreNanoSeconds": used}

    def _configuration(self) -> Document:
        """Return the configuration in force, with default thresholds filled in."""
        settings = self._node.settings
        hard = effective_eviction_hard(settings.configuration, settings.profile)
        return {
            "kind": KIND,
            "apiVersion": API_VERSION,
            **_every(settings.configuration),
            "evictionHard": as_value(hard),
            "containerLogMaxSize": str(settings.logs.max_bytes),
            "containerLogMaxFiles": settings.logs.max_files,
        }

    # ---- journal -------------------------------------------------------------------------------------------------

    def _journal(self, request: KubeletRequest) -> HttpResponse:
        follow, since_us = request.flag("follow"), request.count("sinceUs")
        pieces = lines_of(
            self._node.journal.files, last=request.count("tailLines"), goes_on=(lambda: True) if follow else None
        )
        return HttpResponse(pieces if since_us is None else _since(pieces, since_us), JSON_LINES, follows=follow)


class _Moment(Struct):
    time_us: int


_moment = msgspec.json.Decoder(_Moment)


def _since(pieces: Pieces, since_us: int) -> Pieces:
    for piece in pieces:
        yield piece and b"".join(
            line for line in piece.splitlines(keepends=True) if _moment.decode(line).time_us >= since_us
        )


def _every(settings: Struct) -> Document:
    """Return all settings, including defaults; unset ones are left out."""
    written = ((field.encode_name, getattr(settings, field.name)) for field in msgspec.structs.fields(settings))
    return {name: as_value(value) for name, value in written if value is not None}


def _json(document: Document) -> bytes:
    return msgspec.json.encode(document) + b"\n"
