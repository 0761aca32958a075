"""Lost machines: when the control plane notices, when their pods are given up, and when nothing is left of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import Because, NodeUnreachable
from podqos.controllers.pod_garbage import orphans_deleted_us, out_of_service_us
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.control_plane import ControlPlane
from podqos.sim.cluster.controllers.controller import NODE_LOST, Controller
from podqos.sim.engine.event_queue import Action, EventQueue
from podqos.sim.scenario.replicas import tolerates_out_of_service, unreachable_seconds

NOTICED_AFTER_US = 50 * SECOND_US
"""How long the node controller waits for a silent node (node-monitor-grace-period since 1.32)."""


class LosingCluster(Protocol):
    """What is known of the cluster, and done to it, when a machine is lost."""

    queue: EventQueue
    control_plane: ControlPlane

    def plan(self, time_us: int, action: Action) -> None:
        """Plan something for later."""

    def note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: Because | None = None) -> None:
        """Write a journal entry about a pod."""

    def bound_to(self, name: str) -> Sequence[tuple[str, Pod]]:
        """Return the pods on a node, by uid, in the order of creation."""

    def keeper_of(self, uid: str) -> Controller:
        """Return the controller of a pod."""

    @property
    def has_watchers(self) -> bool:
        """Whether any controller is called when the status of a pod changes."""

    def tell(self, uid: str, now_us: int) -> None:
        """Tell the controller of a pod that its status has changed, if it wants to know."""

    def is_deleted(self, pod: Pod) -> bool:
        """Whether a pod that is still there has been deleted."""

    def mark_deleted(self, uid: str, why: str) -> None:
        """Delete a pod whose object stays."""

    def ended(self, pod: Pod, why: str) -> None:
        """Forget a pod that no longer runs, and tell its controller."""

    def node_of(self, uid: str) -> str:
        """Return the node of a pod; empty if it has none."""

    def collected(self, name: str) -> None:
        """Tell controllers that nothing is left of the pods of a node."""


class LostNodes:
    """The machines that are lost, and the pods that are still bound to them."""

    def __init__(self, cluster: LosingCluster) -> None:
        self._cluster = cluster
        self.noticed_us: dict[str, int] = {}
        """By name of a lost node: when the control plane notices it."""
        self._given_up_us: dict[str, int] = {}
        """By uid: when a pod on a lost node is given up, unless the node joins again before."""

    def lost(self, name: str) -> None:
        """Let the control plane notice that a node is lost, and delete its pods after their toleration time."""
        cluster = self._cluster
        noticed_us = self.noticed_us[name] = cluster.queue.now_us + NOTICED_AFTER_US
        cluster.plan(noticed_us, partial(cluster.control_plane.lost, name))
        if cluster.has_watchers:
            cluster.plan(noticed_us, partial(self._noticed, name))
        for uid, pod in cluster.bound_to(name):
            self._plan_loss(uid, pod, noticed_us)

    def bound(self, uid: str, pod: Pod) -> None:
        """Take note of a pod that was bound to a node that is lost."""
        self._plan_loss(uid, pod, self._cluster.queue.now_us + NOTICED_AFTER_US)

    def joined(self, name: str) -> None:
        """Forget a loss: the node is back."""
        self.noticed_us.pop(name, None)
        for uid, _ in self._cluster.bound_to(name):
            self._given_up_us.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._given_up_us.pop(uid, None)

    def node_deleted(self, name: str, now_us: int) -> None:
        """Let the garbage collector delete the pods of a node whose object is deleted."""
        self._cluster.plan(orphans_deleted_us(now_us), partial(self._collect, name))

    def out_of_service(self, name: str, now_us: int) -> None:
        """Delete the pods of a lost node that do not tolerate that; they are gone when they are collected."""
        noticed_us = self.noticed_us.get(name)
        if noticed_us is None:
            return
        for uid, pod in self._cluster.bound_to(name):
            if not tolerates_out_of_service(pod.spec.tolerations):
                self._give_up(uid, pod, 0)
        self._cluster.plan(out_of_service_us(now_us, noticed_us), partial(self._collect, name))

    def _noticed(self, name: str, now_us: int) -> None:
        """Tell controllers that the pods of a lost node are no longer ready."""
        for uid, _ in self._cluster.bound_to(name):
            self._cluster.tell(uid, now_us)

    def _plan_loss(self, uid: str, pod: Pod, noticed_us: int) -> None:
        seconds = unreachable_seconds(pod.spec.tolerations)
        if seconds is not None:
            self._given_up_us[uid] = noticed_us + seconds * SECOND_US
            self._cluster.plan(self._given_up_us[uid], partial(self._not_tolerated, uid, pod))

    def _not_tolerated(self, uid: str, pod: Pod, now_us: int) -> None:
        if self._given_up_us.get(uid) == now_us:
            del self._given_up_us[uid]
            self._give_up(uid, pod, unreachable_seconds(pod.spec.tolerations) or 0)

    def _give_up(self, uid: str, pod: Pod, seconds: int) -> None:
        """Delete a pod on a lost node: its object stays, for which some controllers wait."""
        cluster = self._cluster
        keeper = cluster.keeper_of(uid)
        if not keeper.waits_for_objects:
            cluster.ended(pod, NODE_LOST)
        elif not cluster.is_deleted(pod):
            name = cluster.node_of(uid)
            cluster.mark_deleted(uid, NODE_LOST)
            cluster.note(Kind.TERMINATING, pod, name, By.CONTROLLER, NodeUnreachable(name, seconds))
            keeper.changed(pod, cluster.queue.now_us)

    def _collect(self, name: str, _now_us: int) -> None:
        """Let nothing be left of the pods of a lost node, as the garbage collector does."""
        if self.noticed_us.pop(name, None) is None:
            return  # it has joined again
        for _, pod in self._cluster.bound_to(name):
            self._cluster.ended(pod, NODE_LOST)
        self._cluster.collected(name)
