"""Pure: the requests that report an eviction to the server, exactly as a kubelet expects them.

The kubelet's status manager reverts a status alone: it sees a foreign change to its own pod. A changed annotation makes
it look at the pod again, and a ``Failed`` pod is torn down. The uid makes the server reject the request (422) if the
pod was replaced by one of the same name; the Event has a fixed name, so that posting it twice is harmless.

Sources: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (evictPod), pkg/api/v1/pod/util.go
(UpdatePodCondition), client-go tools/record/event.go (makeEvent) and util/event_name_generator.go.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from podqos.eviction.messages import GUARD_ANNOTATION, GUARD_COMPONENT, PHASE, REASON, disruption_condition
from podqos.guard.eviction import GuardVictim, Looked

ANNOTATION, COMPONENT = GUARD_ANNOTATION, GUARD_COMPONENT
_MOST_NAME = 253


def patch_of(victim: GuardVictim, repairs: int = 0) -> dict[str, object]:
    """Return the patch of a pod's status: a strategic merge, which merges conditions by type.

    When sent again, it has a different annotation: an unchanged one would not make the kubelet look.
    """
    condition = disruption_condition(victim.message)
    told: dict[str, object] = {"type": condition.type, "status": condition.status, "reason": condition.reason}
    told |= {"message": condition.message, "lastTransitionTime": _whole_second(victim)}
    if victim.generation:
        told["observedGeneration"] = victim.generation
    return {
        "metadata": {"uid": victim.uid, "annotations": {ANNOTATION: _mark(victim, repairs)}},
        "status": {"phase": PHASE, "reason": REASON, "message": victim.message, "conditions": [told]},
    }


def event_of(victim: GuardVictim) -> dict[str, object]:
    """Return the Event of an eviction."""
    when = _whole_second(victim)
    metadata: dict[str, object] = {"name": _event_name(victim), "namespace": victim.namespace}
    if victim.annotations:
        metadata["annotations"] = victim.annotations
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": victim.namespace,
            "name": victim.name,
            "uid": victim.uid,
        },
        "reason": REASON,
        "message": victim.message,
        "type": "Warning",
        "count": 1,
        "firstTimestamp": when,
        "lastTimestamp": when,
        "source": {"component": COMPONENT, **({"host": victim.node} if victim.node else {})},
        "reportingComponent": COMPONENT,
        "reportingInstance": victim.node,
    }


def eviction_of(victim: GuardVictim, grace_seconds: int) -> dict[str, object]:
    """Return the request to evict by the server's own rules."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": victim.namespace, "name": victim.name},
        "deleteOptions": {"gracePeriodSeconds": grace_seconds, "preconditions": {"uid": victim.uid}},
    }


class _Metadata(Struct, frozen=True, rename="camel"):
    uid: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _Pod(Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_POD = msgspec.json.Decoder(_Pod)


def looked(data: bytes | None, victim: GuardVictim, *, is_soft: bool) -> Looked:
    """Return what the server's pod says about an eviction."""
    if data is None:
        return Looked(None)
    there = _POD.decode(data).metadata
    is_patched = (there.annotations or {}).get(ANNOTATION, "").startswith(victim.decided_at)
    return Looked(there.uid, is_told=bool(there.deletion_timestamp) if is_soft else is_patched)


def _mark(victim: GuardVictim, repairs: int) -> str:
    return f"{victim.decided_at} ({repairs + 1})" if repairs else victim.decided_at


def _whole_second(victim: GuardVictim) -> str:
    """Return the time of the decision as ``metav1.Time``."""
    return f"{victim.decided_at[:19]}Z"


def _event_name(victim: GuardVictim) -> str:
    since = datetime.fromisoformat(victim.decided_at) - datetime.fromisoformat("1970-01-01T00:00:00Z")
    suffix = f".{(since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000:x}"
    long = f"{victim.name}{suffix}"
    return long if len(long) <= _MOST_NAME else f"{victim.uid}{suffix}"
