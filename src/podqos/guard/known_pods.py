"""What the API server says about this node: its pods, and whether the guard is switched off. Cached for API outages.

A pod that cannot be decoded, because a later Kubernetes writes it differently, is known by its name alone: it is never
evicted, and the others are unaffected.

Two threads watch. The loop is woken by a descriptor and takes the current state. The last known state is on disk, so
that a guard started during an API outage still knows whose cgroup is whose. Environment variables, commands and
other annotations are never saved.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.cluster.cluster import Cluster
from podqos.cluster.following import FollowedKind, Follower
from podqos.cluster.refusals import as_line
from podqos.cluster.resources import NODES, PODS, Resource
from podqos.errors import PodqosError
from podqos.eviction.messages import CONDITION, GUARD_ANNOTATION, REASON
from podqos.host.storage.writing import replace_file
from podqos.logs.said import EvictionCause, EvictionTrace
from podqos.manifest.amounts import decode_hook
from podqos.manifest.decode import REFUSALS, model_decoder
from podqos.model.pod import SYSTEM_CRITICAL_PRIORITY, TERMINAL_PHASES, ObjectMeta
from podqos.model.pod_fate import ContainerStatus, FatedPod
from podqos.model.quantity import Quantity
from podqos.questions.autopsy_eviction import status_trace

SWITCH = "podqos.dev/guard"
"""The Node annotation that switches its guard off."""
OFF = "off"
_STACK_BYTES = 1 << 20
_MOST_NAMES = 5000
_KEPT_ANNOTATIONS = ("kubernetes.io/config.", GUARD_ANNOTATION)
_BY_KUBELET = frozenset(
    {
        EvictionCause.NODE_PRESSURE,
        EvictionCause.LOCAL_STORAGE_LIMIT,
        EvictionCause.OTHER,  # a later kubelet may use other words
        EvictionCause.UNKNOWN,
    }
)


class GuardedMeta(ObjectMeta, frozen=True, gc=False, rename="camel"):
    """The identity of a pod, and the generation of its spec."""

    generation: int = 0


class GuardedPod(FatedPod, frozen=True, gc=False, rename="camel"):
    """A pod of this node."""

    metadata: GuardedMeta = GuardedMeta()
    unread: str = ""
    """Why only its name is known; empty if everything is."""

    @property
    def is_over(self) -> bool:
        """Whether it never runs again."""
        return self.status.phase in TERMINAL_PHASES

    @property
    def kubelet_eviction(self) -> EvictionTrace | None:
        """The kubelet's eviction of this pod, None if there is none; a pod that a guard evicted looks almost the same.

        A pod that was never admitted has the same reason, too, but did not run.
        """
        if not (self.is_over and (self.status.reason or self.status.conditions)):
            return None
        trace = status_trace(self)
        return trace if trace is not None and trace.cause in _BY_KUBELET and not trace.is_by_guard else None

    @property
    def container_names(self) -> Mapping[str, str]:
        """The names of its containers by id, as in cgroup names."""
        status = self.status
        every = (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses)
        return {status.container_id.rpartition("/")[2]: status.name for status in every if status.container_id}


def never_evicted(pod: GuardedPod, node: str) -> str:
    """Return why the guard never evicts a pod; empty if it may."""
    priority = pod.spec.priority
    if pod.unread:
        return f"podqos cannot read it: {pod.unread}"
    if pod.is_static or pod.is_mirror:
        return "static pod"
    if priority is None:
        return "its priority is unknown"
    if priority >= SYSTEM_CRITICAL_PRIORITY:
        return "critical priority"
    if pod.spec.node_name != node:
        return "it runs on another node"
    if not pod.metadata.uid or not pod.metadata.name or not pod.metadata.namespace:
        return "its name or uid is unknown"
    return ""


class _NodeMeta(Struct, frozen=True, gc=False):
    uid: str = ""
    annotations: dict[str, str] = {}


class _Condition(Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    last_transition_time: str | None = None


class _NodeInfo(Struct, frozen=True, gc=False, rename="camel"):
    kubelet_version: str = ""


class _NodeStatus(Struct, frozen=True, gc=False, rename="camel"):
    """What a kubelet changes when it starts or is reconfigured; not what it reports repeatedly."""

    allocatable: dict[str, str] = {}
    conditions: tuple[_Condition, ...] = ()
    node_info: _NodeInfo = _NodeInfo()


class _Node(Struct, frozen=True, gc=False):
    metadata: _NodeMeta = _NodeMeta()
    status: _NodeStatus = _NodeStatus()


class _Name(Struct, frozen=True, gc=False):
    name: str
    namespace: str
    uid: str


class _Named(Struct, frozen=True, gc=False):
    """A pod, as far as every version of Kubernetes writes it the same way."""

    metadata: _Name


_PODS: Resource[msgspec.Raw] = replace(PODS, model=msgspec.Raw)  # type: ignore[arg-type] # read one by one
_NODE: Resource[_Node] = replace(NODES, model=_Node)  # type: ignore[arg-type] # of another model


class LastKnown(Struct, frozen=True, rename="camel"):
    """The saved state."""

    node: str
    saved_us: int
    pods: tuple[GuardedPod, ...]
    names: dict[str, str] = {}
    """namespace/name by uid, also of deleted pods: a kernel log only has uids."""


def _encode_hook(value: object) -> object:
    if isinstance(value, Quantity):
        return str(value)
    raise TypeError(type(value))


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook)
_decoder = msgspec.json.Decoder(LastKnown, dec_hook=decode_hook)


class KnownPods:
    """The pods of this node, as last known."""

    def __init__(self, cluster: Cluster | None, node: str, file: Path, note: Callable[[str], None]) -> None:
        """Read the saved state without asking the cluster yet. Without a cluster, nothing is updated."""
        self._cluster, self._node, self._file, self._note = cluster, node, file, note
        self._pods, self._own_node = FollowedKind(_PODS, self._read), FollowedKind(_NODE)
        kinds = (self._pods, self._own_node)
        self._follower = Follower(kinds, node=node, on_change=self._changed, on_trouble=self._interrupted)
        self._lock = self._follower.lock
        self._taken: Mapping[str, GuardedPod] | None = None
        self._names: dict[str, str] = {}
        self.synced_us: int | None = None
        """When the pods were last known to be complete and current, in wall-clock time."""
        self.is_from_disk = False
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_closed = False
        self._restore()

    # ---- the loop's side -----------------------------------------------------------------------------------------

    def fileno(self) -> int:
        """Return the descriptor that becomes readable on changes."""
        return self._event

    def heard(self) -> None:
        """Wait for the next change."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._event)

    def take(self) -> Mapping[str, GuardedPod]:
        """Return the known pods by uid: the same object while nothing changes."""
        with self._lock:
            if self._taken is None:
                self._taken = dict(self._pods.objects)
            return self._taken

    @property
    def is_switched_off(self) -> bool:
        """Whether the node's annotation says so."""
        return any(node.metadata.annotations.get(SWITCH, "").strip().lower() == OFF for node in self._nodes())

    @property
    def kubelet_says(self) -> object:
        """The kubelet's self-description: it differs after a restart or with other settings."""
        return tuple(node.status for node in self._nodes())

    def _nodes(self) -> Iterable[_Node]:
        with self._lock:
            return tuple(self._own_node.objects.values())

    @property
    def trouble(self) -> str:
        """Why this may be outdated; empty if it is current."""
        return next(iter(self._follower.troubles), "")

    # ---- the threads ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start watching."""
        if self._cluster is not None:
            self._follower.start(self._cluster, stack_bytes=_STACK_BYTES)

    def close(self) -> None:
        """Stop watching; the threads end with their connections."""
        self._follower.close()
        with self._lock:
            self._is_closed = True
            os.close(self._event)

    def _changed(self, kind: FollowedKind) -> None:
        """Record a change, with the lock held."""
        if kind is self._pods:
            self._taken = None
            if kind.is_complete:
                self.synced_us, self.is_from_disk = time.time_ns() // 1000, False
        self._wake()

    def _interrupted(self) -> None:
        with self._lock:
            self._wake()

    def _read(self, data: msgspec.Raw) -> GuardedPod | None:
        """Return a pod, or only its name if the rest cannot be read; None if not even that can."""
        try:
            return _kept(model_decoder(GuardedPod).decode(data))
        except (*REFUSALS, ValueError, PodqosError) as error:
            why = as_line(str(error))
        try:
            named = model_decoder(_Named).decode(data).metadata
        except (*REFUSALS, ValueError, PodqosError):
            self._note(f"a pod of this node cannot be read, not even its name: {why}")
            return None
        pod = GuardedPod(GuardedMeta(name=named.name, namespace=named.namespace, uid=named.uid), unread=why)
        self._note(f"pod {pod.key} cannot be read and is never evicted: {why}")
        return pod

    def _wake(self) -> None:
        if not self._is_closed:
            os.eventfd_write(self._event, 1)

    # ---- on disk -------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Save the known pods; called from a thread that may wait for the disk."""
        with self._lock:
            pods = tuple(self._pods.objects.values())
            if not self._pods.is_complete:
                return
        for pod in pods:
            self._names[pod.metadata.uid] = pod.key
        for uid in [*self._names][: max(0, len(self._names) - _MOST_NAMES)]:
            del self._names[uid]
        known = LastKnown(self._node, time.time_ns() // 1000, pods, self._names)
        try:
            replace_file(self._file, _encoder.encode(known))
        except OSError as error:
            self._note(f"{self._file}: {error.strerror}: the pod cache was not saved")

    def _restore(self) -> None:
        try:
            known = _decoder.decode(self._file.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, msgspec.DecodeError, ValueError, PodqosError) as error:
            self._note(f"{self._file}: not a valid pod cache: {error}")
            return
        if known.node == self._node:
            self._names = known.names
            self._pods.objects = {pod.metadata.uid: pod for pod in known.pods}
            self.synced_us, self.is_from_disk = known.saved_us, True


def _kept(item: GuardedPod) -> GuardedPod:
    """Return a pod without the fields that no decision reads."""
    own = {key: value for key, value in item.metadata.annotations.items() if key.startswith(_KEPT_ANNOTATIONS)}
    metadata = replace(item.metadata, annotations=own, labels={}, managed_fields=())
    status = replace(
        item.status,
        message=item.status.message if item.status.reason == REASON else "",
        conditions=tuple(condition for condition in item.status.conditions if condition.type == CONDITION),
        container_statuses=tuple(_without_states(item.status.container_statuses)),
        init_container_statuses=tuple(_without_states(item.status.init_container_statuses)),
        ephemeral_container_statuses=tuple(_without_states(item.status.ephemeral_container_statuses)),
    )
    return replace(item, metadata=metadata, status=status)


def _without_states(statuses: Iterable[ContainerStatus]) -> Iterator[ContainerStatus]:
    return (
        ContainerStatus(name=status.name, container_id=status.container_id, restart_count=status.restart_count)
        for status in statuses
    )
