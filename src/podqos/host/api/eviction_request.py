"""Evicting a pod on request, as ``kubectl drain`` does, rather than under pressure.

The pod gets its own grace period and stays ``Failed`` until its manifest changes. Pods that the node must not evict are
refused here as well.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.agent.events import PodDeleted
from podqos.agent.journal import By, Entry, Kind
from podqos.host.api.http_request import HttpRefusal
from podqos.host.api.pod_list import REQUESTED
from podqos.host.storage.state import PodState

if TYPE_CHECKING:
    from podqos.host.node.node import Node


def evict(node: Node, state: PodState) -> None:
    """Start evicting a pod; raises ``HttpRefusal`` with the reason if it must not be."""
    pod = state.pod
    running = node.world.pods.get(pod.metadata.uid)
    if running is None or state.is_over:
        raise HttpRefusal(HTTPStatus.CONFLICT, f"{pod.key} has already ended: {state.phase} {state.reason}".rstrip())
    if state.is_stopping:
        raise HttpRefusal(HTTPStatus.CONFLICT, f"{pod.key} is already stopping")
    if pod.is_critical:
        raise HttpRefusal(HTTPStatus.FORBIDDEN, f"{pod.key} is critical and never evicted; remove its manifest instead")
    now_us = node.now_us()
    running.state = replace(state, phase="Failed", reason="Evicted", message=REQUESTED, ended_us=now_us)
    node.journal.write(Entry(now_us, node.settings.node, Kind.EVICTED, pod.key, None, By.USER))
    node.deliver(PodDeleted(pod.metadata.uid))
