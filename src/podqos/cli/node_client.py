"""A running node: the client of its unix socket, its next victims, and its status as text. Errors are one line."""

from __future__ import annotations

import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import NoReturn, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos import __version__
from podqos.amounts import amount, mebibytes, two_units
from podqos.errors import HostError
from podqos.eviction.ranking import RankedPod, Ranking, rank
from podqos.eviction.signals import SIGNALS, Signal, decode_summary
from podqos.host.api.status_document import FastPath, NodeStatus, PodListDocument, ThresholdRow
from podqos.model.quantity import NANOS, Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.model.snapshot import Snapshot
from podqos.orders.memory import ContainerProcesses, container_processes, outlook
from podqos.orders.orders import KilledContainer, kernel_order
from podqos.orders.usage import from_summary, node_of
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.text.style import Style, columns, wrapped

_SOCKET_NAME = "api.sock"
_PATIENCE_SECONDS = 10.0

T = TypeVar("T")


def path(*segments: str, **query: object) -> str:
    """Return a request path; parameters that are None or False are left out."""
    given = {name: value for name, value in query.items() if value is not None and value is not False}
    text = "/" + "/".join(quote(segment, safe="") for segment in segments)
    return f"{text}?{urlencode({name: str(value).lower() for name, value in given.items()})}" if given else text


class NodeClient:
    """A client of a node."""

    def __init__(self, state_dir: str) -> None:
        self._socket = f"{state_dir.rstrip('/')}/{_SOCKET_NAME}"
        self._has_warned = False

    def get(self, target: str) -> bytes:
        """Return the node's answer."""
        with self._answered(target) as response:
            return response.read()

    def value(self, target: str, kind: type[T]) -> T:
        """Return the node's answer, decoded."""
        from podqos.manifest.amounts import decode_hook

        try:
            return msgspec.json.decode(self.get(target), type=kind, dec_hook=decode_hook)
        except msgspec.DecodeError as error:
            what = f"the node's response to {target} cannot be decoded: {error}; is it another version of podqos?"
            raise HostError(what) from error

    def lines(self, target: str, *, is_endless: bool = False) -> Iterator[bytes]:
        """Yield the lines of a response as they arrive, with newlines."""
        with self._answered(target, None if is_endless else _PATIENCE_SECONDS) as response:
            while line := response.readline():
                yield line

    @contextmanager
    def _answered(self, target: str, patience_seconds: float | None = _PATIENCE_SECONDS) -> Iterator[HTTPResponse]:
        """Send a request and yield the response; failures are one line."""
        connection = _Connection(self._socket)
        try:
            response = self._asked(connection, target, patience_seconds)
            try:
                self._check_version(response.getheader("Server", ""))
                if response.status >= 400:
                    _refuse(response)
                yield response
            except (OSError, HTTPException) as error:
                raise HostError("the node closed the connection: it stopped or crashed") from error
            finally:
                response.close()
        finally:
            connection.close()

    def _asked(self, connection: _Connection, target: str, patience_seconds: float | None) -> HTTPResponse:
        try:
            connection.request("GET", target)
            connection.sock.settimeout(patience_seconds)
            return connection.getresponse()
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
            raise HostError(
                f"no node is running with this state directory: no response at {self._socket}; start one with "
                "`podqos node run`, or give another directory with --state-dir"
            ) from error
        except PermissionError as error:
            what = f"{self._socket}: permission denied: run as the node's user, usually root"
            raise HostError(what) from error
        except TimeoutError as error:
            raise HostError(f"the node does not answer at {self._socket}") from error
        except (OSError, HTTPException) as error:
            raise HostError(f"{self._socket}: {error}") from error

    def _check_version(self, server: str) -> None:
        name, _, version = server.partition("/")
        if name != "podqos":
            raise HostError(f"{self._socket}: not a podqos node")
        if version != __version__ and not self._has_warned:
            self._has_warned = True
            print(
                f"podqos: the node is podqos {version}, this command {__version__}; restart the node to match",
                file=sys.stderr,
            )


def _refuse(response: HTTPResponse) -> NoReturn:
    text = response.read().decode(errors="replace").strip()
    raise HostError(f"the node rejected the request: {text}")


class _Connection(HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, name: str) -> None:
        super().__init__("localhost")
        self._name = name

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_PATIENCE_SECONDS)
        self.sock.connect(self._name)


_BYTES = (MEMORY, EPHEMERAL_STORAGE)


class NextVictims(Struct, frozen=True):
    """The next victims for memory."""

    evicted: RankedPod | None = None
    """By the kubelet, if memory ran short now; None if no pod may be evicted."""
    killed: KilledContainer | None = None
    """By the kernel."""


def next_victims(client: NodeClient, status: NodeStatus) -> NextVictims:
    """Query the node's pods and figures, and rank them for memory in both orders."""
    pods = client.value("/pods", PodListDocument).items
    summary = decode_summary(client.get("/stats/summary"))
    node = node_of(summary)
    measured = {stats.pod_ref.uid for stats in summary.pods or () if stats.containers}
    running = [pod for pod in pods if pod.metadata.uid in measured]
    if node is None or not running:
        return NextVictims()
    snapshot = from_summary(running, summary, node)
    settings = CgroupSettings(
        node_memory_bytes=node.memory_bytes,
        node_swap_bytes=node.swap_bytes,
        node_allocatable=_allocatable(status),
        cgroup_version=CgroupVersion(status.cgroup_version),
    )
    evicted = (ranked for ranked in rank(running, snapshot.stats, Ranking(Signal.MEMORY)) if ranked.spared is None)
    killed = kernel_order(_as_kept(snapshot, settings, status), outlook(snapshot, settings).domain)
    return NextVictims(next(evicted, None), killed[0] if killed else None)


def _allocatable(status: NodeStatus) -> dict[str, Quantity]:
    limit = status.pods_memory_limit_bytes
    return {} if limit is None else {MEMORY: Quantity.of_units(limit, "BinarySI")}


def _as_kept(snapshot: Snapshot, settings: CgroupSettings, status: NodeStatus) -> list[ContainerProcesses]:
    """Return the processes with the kernel's adjustments, which may differ from the planned ones."""
    kept = {
        (pod.uid, container.name): container.kept_oom_score_adj
        for pod in status.pods
        for container in pod.containers
        if container.kept_oom_score_adj is not None
    }
    found = []
    for container_process in container_processes(snapshot, settings):
        score = kept.get((container_process.pod.pod.metadata.uid, container_process.usage.name))
        processes = container_process.processes
        if score is not None:
            processes = tuple(replace(process, oom_score_adj=score) for process in processes)
        found.append(replace(container_process, processes=processes))
    return found


def status_lines(status: NodeStatus, victims: NextVictims, style: Style) -> list[str]:
    """Return the status of a node."""
    up = two_units(status.now_us - status.start_us)
    mode = ", shadow mode: no pod is evicted" if status.shadow else ""
    facts = [
        ("node", f"{status.node}, podqos {status.version}, up {up}{mode}"),
        ("runs", f"{status.runtime} runtime in cgroup {status.cgroup} ({status.cgroup_version}), pid {status.pid}"),
        ("manifests", status.manifests),
        ("memory", _memory(status)),
        ("conditions", _conditions(status, style)),
        ("pressure", _pressure(status)),
        ("fast path", _fast_path(status.fast_path)),
        ("pods", _pod_counts(status)),
        ("next evicted", _next_evicted(victims, style)),
        ("next killed", _next_killed(victims, style)),
    ]
    return [
        *(f"{style.strong(name.ljust(14))}{text}" for name, text in facts),
        "",
        *_resources(status, style),
        "",
        *_thresholds(status, style),
        *_remarks(status, style),
    ]


def _memory(status: NodeStatus) -> str:
    """Return how much memory the node has left."""
    used, left = status.memory.working_set_bytes, status.memory.available_bytes
    if used is None or left is None:
        return "unknown"
    share = ", a share of this machine" if status.is_confined else ""
    return f"{mebibytes(used)} of {mebibytes(used + left)} in use, {mebibytes(left)} available{share}"


def _conditions(status: NodeStatus, style: Style) -> str:
    """Return the node's conditions."""
    holding = [
        f"{condition.type} since {condition.last_transition_time}"
        for condition in status.conditions
        if condition.status and condition.type != "Ready"
    ]
    ready = "ending" if status.is_ending else "Ready"
    return f"{ready}, {style.alarm('; '.join(holding)) if holding else 'no pressure'}"


def _pressure(status: NodeStatus) -> str:
    """Return the share of the last ten seconds that tasks spent waiting."""
    if not status.pressure:
        return "unknown: the kernel has no pressure stall information"
    parts = []
    for name, file in status.pressure.items():
        full = "" if file.full is None else f" (all: {file.full.avg10:.1f} %)"
        parts.append(f"{name} {file.some.avg10:.1f} %{full}")
    return f"{', '.join(parts)} of the last 10 s stalled, machine-wide"


def _fast_path(state: FastPath) -> str:
    """Return the state of the fast path."""
    if not state.enabled:
        return "off: pressure is detected within 10 s"
    if not state.levels_bytes:
        return "on, but no level set: no hard memory threshold, or an eviction is in progress"
    levels = ", ".join(f"{path} at {mebibytes(level)}" for path, level in state.levels_bytes.items())
    last = (
        "" if state.last_seconds is None else f"; the last victim was frozen after {state.last_seconds * 1000:.1f} ms"
    )
    return f"on: the kernel watches {levels}{last}"


def _pod_counts(status: NodeStatus) -> str:
    """Return the number of pods by phase."""
    counts = Counter(pod.phase for pod in status.pods)
    parts = [f"{count} {phase}" for phase, count in sorted(counts.items())]
    if status.refused:
        parts.append(f"{len(status.refused)} rejected")
    return ", ".join(parts) or "none"


def _next_evicted(victims: NextVictims, style: Style) -> str:
    """Return the pod the kubelet would evict for memory."""
    ranked = victims.evicted
    if ranked is None:
        return "no pod"
    excess = ranked.excess_nanos // NANOS
    where = f"{mebibytes(excess)} above" if ranked.over_request else f"{mebibytes(-excess)} below"
    request = f"{where} its request" if ranked.request.value else "without a request"
    return f"{style.strong(ranked.pod.key)}: uses {mebibytes(ranked.usage)}, {request}, priority {ranked.priority}"


def _next_killed(victims: NextVictims, style: Style) -> str:
    """Return the container the kernel would kill."""
    killed = victims.killed
    if killed is None:
        return "no pod"
    process = killed.worst.process
    margin = "" if killed.margin_bytes is None else f", {mebibytes(killed.margin_bytes)} ahead of the next"
    score = str(process.oom_score_adj).replace("-", "−")
    who = f"{style.strong(killed.pod.key)} ({killed.usage.name})"
    return f"{who}: {mebibytes(killed.usage.anon_bytes)} at oom_score_adj {score}{margin}"


def _resources(status: NodeStatus, style: Style) -> list[str]:
    rows = []
    for row in status.resources:
        share = f" ({row.requested * 100 // row.allocatable} %)" if row.allocatable else ""
        capacity = "–" if row.capacity is None else _units(row.capacity, row.name)
        rows.append((row.name, capacity, _units(row.allocatable, row.name), _units(row.requested, row.name) + share))
    return columns(("RESOURCE", "CAPACITY", "ALLOCATABLE", "REQUESTED"), rows, style)


def _units(value: int, name: str) -> str:
    if name == CPU:
        return f"{value}m" if value % 1000 else str(value // 1000)
    return mebibytes(value) if value and name in _BYTES else str(value)


def _thresholds(status: NodeStatus, style: Style) -> list[str]:
    rows = [
        (
            row.signal.value,
            "hard" if row.hard else f"soft, {row.grace_period_seconds} s",
            *(
                "–" if each is None else amount(each, SIGNALS[row.signal].resource)
                for each in (row.threshold, row.available)
            ),
            _to_go(row, style),
        )
        for row in status.thresholds
    ]
    return columns(("EVICTS BELOW", "KIND", "THRESHOLD", "AVAILABLE", "HEADROOM"), rows, style)


def _to_go(row: ThresholdRow, style: Style) -> str:
    if row.distance is None:
        return "not observed"
    if row.is_met or row.distance < 0:
        return style.alarm("met")
    return amount(row.distance, SIGNALS[row.signal].resource)


def _remarks(status: NodeStatus, style: Style) -> Iterator[str]:
    refused = [f"{refused_row.source}: {refused_row.pod}: {refused_row.why}" for refused_row in status.refused]
    counted = [
        f"{note.text} ({note.count} times)" if note.count > 1 else note.text
        for note in status.notes
        if note.text not in {*status.degraded, *refused}
    ]
    for title, texts in (
        ("Limitations on this machine:", status.degraded),
        ("Rejected:", refused),
        ("Notes:", counted),
    ):
        if texts:
            yield ""
            yield style.strong(title)
            for text in texts:
                yield from wrapped(text, style, "  ")
