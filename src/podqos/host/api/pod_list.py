"""The node's pods as the kubelet's ``/pods`` shows them: ``v1`` Pods with their status.

Pods share the machine's network, so ``podIP`` is absent. Everything else has the API's names and meanings.

Sources: Kubernetes v1.36 staging/src/k8s.io/api/core/v1/types.go (PodStatus, ContainerStatus), pkg/kubelet/
kubelet_pods.go (getPhase, convertToAPIContainerStatuses), pkg/kubelet/status/generate.go (conditions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from podqos.agent.port import Remembered
from podqos.agent.state import ContainerRecord, ContainerStage, PodRecord, Role
from podqos.host.api.documents import Document, Value, as_document, timestamp
from podqos.host.api.http_request import Pieces
from podqos.host.node.host_pod import ContainerRun, HostPod
from podqos.host.runtimes.runtime import LOST_CODE
from podqos.host.storage.state import PodState
from podqos.qos.classes import classify

if TYPE_CHECKING:
    from podqos.host.node.node import Node

# Failures after which the kubelet does not speak of a crash: the container never existed.
_BEFORE_START = ("CreateContainerConfigError",)
_KINDS = ("containers", "initContainers", "ephemeralContainers")


class PodList:
    """Turns pods into documents, and caches what does not change."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._written: dict[str, Document] = {}

    def pieces(self) -> Pieces:
        """Yield the answer to ``/pods``, a pod at a time."""
        yield b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":['
        separator = b""
        for uid in self.uids():
            document = self.document(uid)
            if document is not None:
                yield separator + msgspec.json.encode(document)
                separator = b","
        yield b"]}\n"

    def uids(self) -> list[str]:
        """Return the current pods: running ones first, then those that have ended."""
        world = self._node.world
        known = dict.fromkeys([*world.pods, *world.over])
        self._written = {uid: document for uid, document in self._written.items() if uid in known}
        return list(known)

    def document(self, uid: str) -> Document | None:
        """Return a pod; None if it is gone."""
        world = self._node.world
        running = world.pods.get(uid)
        state = running.state if running is not None else world.over.get(uid)
        if state is None:
            return None
        if uid not in self._written:
            self._written[uid] = _as_written(state, self._node.settings.node)
        written = self._written[uid]
        status = _status(state, running, self._node.driver.state.pods.get(uid))
        return {"apiVersion": "v1", "kind": "Pod", **written, "status": status}


def phase(state: PodState, record: PodRecord | None) -> str:
    """Return a pod's phase: Pending until the last init container has ended."""
    if state.is_over or record is None:
        return state.phase
    return "Running" if _is_initialized(record) else "Pending"


def _as_written(state: PodState, node: str) -> Document:
    """Return the part of a pod that never changes."""
    pod = state.pod
    metadata = as_document(pod.metadata)
    metadata.setdefault("namespace", "default")
    metadata["creationTimestamp"] = timestamp(state.started_us or state.ended_us)
    spec = as_document(pod.spec)
    spec["nodeName"] = node
    # Defaults that the API server would have filled in.
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    run = state.run
    if run.security_context is not None:
        spec["securityContext"] = as_document(run.security_context)
    every = (*run.containers, *run.init_containers, *run.ephemeral_containers)
    containers = {spec.name: as_document(spec) for spec in every}
    volumes = {volume.name: as_document(volume) for volume in run.volumes}
    for name, parts in (*((kind, containers) for kind in _KINDS), ("volumes", volumes)):
        if name in spec:
            spec[name] = _completed(spec[name], parts)
    return {"metadata": metadata, "spec": spec}


def _completed(parts: Value, runs: Mapping[str, Document]) -> list[Value]:
    """Return containers or volumes with the fields that no decision reads, such as the command."""
    assert isinstance(parts, list)
    found: list[Value] = []
    for part in parts:
        assert isinstance(part, dict)
        found.append({**part, **runs.get(str(part["name"]), {})})
    return found


# ---- status ----------------------------------------------------------------------------------------------------------


def _status(state: PodState, running: HostPod | None, record: PodRecord | None) -> Document:
    now = phase(state, record)
    init, regular = _container_statuses(state, running, record)
    status: Document = {
        "phase": now,
        "conditions": list(_conditions(state, now, record, regular)),
        "qosClass": classify(state.pod).qos_class.value,
    }
    if state.started_us:
        status["startTime"] = timestamp(state.started_us)
    if state.reason:
        status["reason"] = state.reason
    if state.message:
        status["message"] = state.message
    if init:
        status["initContainerStatuses"] = init
    if regular:
        status["containerStatuses"] = regular
    return status


def _conditions(state: PodState, now: str, record: PodRecord | None, containers: list[Value]) -> Iterator[Document]:
    is_ready = now == "Running" and all(isinstance(container, dict) and container["ready"] for container in containers)
    is_initialized = now == "Succeeded" if record is None else _is_initialized(record)
    why = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(now, "ContainersNotReady")
    since = timestamp(state.ended_us or state.started_us)
    yield _condition("PodReadyToStartContainers", now in {"Pending", "Running"}, since)
    yield _condition("Initialized", is_initialized, since, "ContainersNotInitialized")
    yield _condition("Ready", is_ready, since, why)
    yield _condition("ContainersReady", is_ready, since, why)
    yield _condition("PodScheduled", True, timestamp(state.started_us or state.ended_us))
    if state.reason == "Evicted":
        yield {**_condition("DisruptionTarget", True, since), "reason": "TerminationByKubelet"}


def _condition(kind: str, holds: bool, since: str, why_not: str = "") -> Document:
    condition: Document = {"type": kind, "status": str(holds), "lastTransitionTime": since}
    if not holds and why_not:
        condition["reason"] = why_not
    return condition


def _is_initialized(record: PodRecord) -> bool:
    return all(
        container.stage is ContainerStage.ENDED and container.exit_code == 0
        for container in record.containers
        if container.role is Role.INIT
    )


def _container_statuses(
    state: PodState, running: HostPod | None, record: PodRecord | None
) -> tuple[list[Value], list[Value]]:
    """Return the statuses of init containers and sidecars, and of regular ones; none if the pod never started."""
    if running is None and not state.containers:
        return [], []
    known = {container.plan.name: container for container in record.containers} if record is not None else {}

    def statuses(names: list[str]) -> list[Value]:
        return [_container_status(name, state, running, known.get(name)) for name in names]

    spec = state.pod.spec
    return statuses([container.name for container in spec.init_containers]), statuses(
        [each.name for each in spec.containers]
    )


def _container_status(name: str, state: PodState, running: HostPod | None, record: ContainerRecord | None) -> Document:
    run = running.runs.get(name) if running is not None else None
    remembered = state.containers.get(name, Remembered())
    status: Document = {
        "name": name,
        "state": _state(run, record, remembered, state),
        "lastState": _last_state(name, running, record),
        "ready": run is not None and run.is_ready,
        "restartCount": remembered.restarts if record is None else record.restarts,
        "image": state.run.container(name).image,
        "imageID": "",
        "started": run is not None and run.is_running,
    }
    if run is not None:
        status["containerID"] = f"podqos://{run.cgroup.rpartition('/')[2]}"
    return status


def _state(
    run: ContainerRun | None, record: ContainerRecord | None, remembered: Remembered, state: PodState
) -> Document:
    if run is not None and run.is_running:
        return {"running": {"startedAt": timestamp(run.started_us)}}
    if record is not None and record.stage is ContainerStage.BACKING_OFF:
        return {"waiting": _waiting(run, record)}
    if run is not None:
        return {"terminated": _terminated(run)}
    if remembered.stage == ContainerStage.ENDED:
        ended = _end(remembered.exit_code, remembered.oom_killed)
        return {"terminated": {**ended, "finishedAt": timestamp(state.ended_us)} if state.ended_us else ended}
    if state.is_over:
        return {"terminated": {"exitCode": LOST_CODE, "reason": "ContainerStatusUnknown"}}
    return {"waiting": {"reason": "PodInitializing"}}


def _waiting(run: ContainerRun | None, record: ContainerRecord) -> Document:
    """Return why a container waits for its next start."""
    failure = "" if run is None else run.failure
    if run is not None and failure in _BEFORE_START:
        return {"reason": failure, "message": run.message}
    message = f"back-off {record.waited_seconds}s restarting failed container"
    return {"reason": "CrashLoopBackOff", "message": message}


def _last_state(name: str, running: HostPod | None, record: ContainerRecord | None) -> Document:
    """Return how the previous run ended."""
    dead = [run for run in running.dead if run.id.name == name] if running is not None else []
    run = running.runs.get(name) if running is not None else None
    if run is not None and not run.is_running and record is not None and record.stage is ContainerStage.BACKING_OFF:
        dead.append(run)
    if dead:
        return {"terminated": _terminated(dead[-1])}
    if record is not None and record.restarts:
        return {"terminated": _end(record.exit_code, record.oom_killed)}
    return {}


def _terminated(run: ContainerRun) -> Document:
    failed = {"reason": "StartError", "message": f"{run.failure}: {run.message}"} if run.failure else {}
    return {
        **_end(run.exit_code or 0, run.oom_killed),
        **failed,
        "startedAt": timestamp(run.started_us),
        "finishedAt": timestamp(run.ended_us),
    }


def _end(exit_code: int, oom_killed: bool) -> Document:
    reason = "OOMKilled" if oom_killed else "Completed" if exit_code == 0 else "Error"
    return {"exitCode": exit_code, "reason": reason}
