"""What a paste tells of a cluster: pods, nodes and events as far as the text has them. Nothing is added.

A text has no uids unless an event quotes one, a table no namespace unless all are listed, and ages are relative to an
unknown moment. All of that stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.event import Event
from podqos.model.node import Node
from podqos.model.pod_fate import ContainerState, ContainerStatus, FatedPod

if TYPE_CHECKING:
    from podqos.objects.kubectl_text.quoting import Quoted


class PastedPod(FatedPod, frozen=True, gc=False, rename="camel"):
    """A pod as far as a text tells."""

    is_whole: bool = False
    """Whether its containers with their requests and its class are known: only then it can be ranked."""
    is_terminating: bool = False
    """Whether it is being deleted; the text does not say since when."""

    @property
    def key(self) -> str:
        """``namespace/name``; the name alone where the text has no namespace."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

    @property
    def is_being_deleted(self) -> bool:
        """Whether something deleted it."""
        return self.is_terminating


class Pasted(Struct, frozen=True):
    """What kubectl printed."""

    pods: tuple[PastedPod, ...] = ()
    nodes: tuple[Node, ...] = ()
    events: tuple[Event, ...] = ()
    messages: tuple[str, ...] = ()
    """Of evictions whose pod is not in the text."""


NOTHING = Pasted()


def joined(pastes: Iterable[Pasted]) -> Pasted:
    """Return several texts as one: a pod that two tell of is one pod."""
    pastes = list(pastes)
    if not pastes:
        return NOTHING
    pods: dict[tuple[str, str], PastedPod] = {}
    nameless: list[PastedPod] = []
    nodes: dict[str, Node] = {}
    events: list[Event] = []
    messages: dict[str, None] = {}
    for paste in pastes:
        for pod in paste.pods:
            own = pod.metadata.namespace, pod.metadata.name
            if not pod.metadata.name:
                nameless.append(pod)
            else:
                pods[own] = _merged(pods[own], pod) if own in pods else pod
        for node in paste.nodes:
            before = nodes.get(node.name)
            nodes[node.name] = node if before is None or not before.status.capacity else before
        events += paste.events
        messages |= dict.fromkeys(paste.messages)
    from podqos.objects.kubectl_text.quoting import quoted_in

    quoted = quoted_in(events)
    known = [_completed(pod, quoted) for pod in _with_namespaces(pods)]
    namespaces = {name: own.namespace for name, own in quoted.items() if own.namespace}
    namespaces |= _namespaces(known) if events else {}
    placed = [_placed(event, namespaces) for event in events]
    return Pasted((*known, *nameless), tuple(nodes.values()), tuple(placed), tuple(messages))


def _completed(pod: PastedPod, quoted: dict[str, Quoted]) -> PastedPod:
    own = quoted.get(pod.metadata.name)
    if own is None or pod.metadata.namespace not in {"", own.namespace}:
        return pod
    metadata = replace(pod.metadata, namespace=own.namespace, uid=own.uid)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=pod.spec.node_name or own.node))


def without_known(paste: Pasted, pods: Iterable[FatedPod]) -> Pasted:
    """Return a paste without the pods that are known in full; events of those get their namespaces."""
    keys, named = set(), dict[str, set[str]]()
    for pod in pods:
        keys.add(pod.key)
        named.setdefault(pod.metadata.name, set()).add(pod.metadata.namespace_or_default)
    if not keys:
        return paste
    namespaces = {name: min(known) for name, known in named.items() if len(known) == 1}
    kept = tuple(
        pod
        for pod in paste.pods
        if pod.key not in keys and (pod.metadata.namespace or pod.metadata.name not in namespaces)
    )
    return replace(paste, pods=kept, events=tuple(_placed(event, namespaces) for event in paste.events))


def _merged(one: PastedPod, other: PastedPod) -> PastedPod:
    """Return what two texts tell of a pod: a description counts before a row of a table."""
    first, second = (other, one) if other.is_whole or not one.is_whole else (one, other)
    spec = first.spec if first.spec.node_name else replace(first.spec, node_name=second.spec.node_name)
    if first.is_whole:
        return replace(first, spec=spec)
    status = first.status
    if second.status.phase == "Failed" and status.phase != "Failed":
        status = replace(status, phase="Failed", reason=second.status.reason, message=second.status.message)
    status = replace(
        status,
        conditions=status.conditions or second.status.conditions,
        container_statuses=_followed(second.status.container_statuses, status.container_statuses),
        init_container_statuses=_followed(second.status.init_container_statuses, status.init_container_statuses),
    )
    return replace(first, spec=spec, status=status)


def _followed(before: tuple[ContainerStatus, ...], after: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    """Return the later of two statuses of a table that is watched, with how the container ended before it."""
    if not after or len(before) != 1 or len(after) != 1:
        return after or before
    ended = _ended(before[0].state) or _ended(before[0].last_state)
    if ended is None or after[0].last_state is not None or _ended(after[0].state) is not None:
        return after
    return (replace(after[0], last_state=ended),)


def _ended(state: ContainerState | None) -> ContainerState | None:
    return state if state is not None and state.terminated is not None else None


def _namespaces(pods: Iterable[PastedPod]) -> dict[str, str]:
    """Return the namespace of each name that has only one."""
    named: dict[str, str] = {}
    for pod in pods:
        namespace = pod.metadata.namespace
        if named.setdefault(pod.metadata.name, namespace) != namespace:
            named[pod.metadata.name] = ""
    return {name: namespace for name, namespace in named.items() if namespace}


def _with_namespaces(pods: dict[tuple[str, str], PastedPod]) -> list[PastedPod]:
    """Return pods once each: one without a namespace is the one of its name, where there is only one."""
    if all(namespace for namespace, _ in pods):
        return list(pods.values())
    namespaces = _namespaces(pod for (namespace, _), pod in pods.items() if namespace)
    kept: dict[tuple[str, str], PastedPod] = {}
    for (namespace, name), pod in pods.items():
        own = namespace or namespaces.get(name, ""), name
        placed = pod if namespace else replace(pod, metadata=replace(pod.metadata, namespace=own[0]))
        kept[own] = _merged(kept[own], placed) if own in kept else placed
    return list(kept.values())


def _placed(event: Event, namespaces: dict[str, str]) -> Event:
    about = event.about
    if about.namespace or about.kind != "Pod" or about.name not in namespaces:
        return event
    return replace(event, involved_object=replace(about, namespace=namespaces[about.name]))
