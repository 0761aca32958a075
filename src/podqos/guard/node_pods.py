"""The pods that the agent knows: those that the API server knows, that run here, and that have their own cgroup.

Updated whenever either side changes. A pod that is being evicted stays until its processes are gone, whatever the
server says: its memory is not free yet, and no other pod must be evicted for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podqos.agent.driver import Driver
from podqos.agent.journal import By, Kind
from podqos.agent.port import Event, PodAdopted, PodDeleted, PodStopped
from podqos.agent.reasons import Because, SeenEvicted
from podqos.agent.state import Stage
from podqos.eviction.messages import REASON
from podqos.guard.figures import WatchedPod
from podqos.guard.known_pods import GuardedPod, KnownPods, never_evicted
from podqos.guard.tree import pod_at, pod_paths
from podqos.guard.world import GuardWorld
from podqos.qos.cgroup_paths import cgroup_uid

Journal = Callable[[Kind, str | None, By, Because | None], None]


class GuardedPods:
    """Informs the agent of pods that come, go and change."""

    def __init__(
        self,
        known: KnownPods,
        world: GuardWorld,
        driver: Driver,
        *,
        deliver: Callable[[Event], None],
        journal: Journal,
    ) -> None:
        """Set the agent's ``driver``; events delivered while another one is handled are queued."""
        self.known = known
        self._world, self._cgroups = world, world.cgroups
        self._driver, self._deliver, self._journal = driver, deliver, journal
        self._paths: Mapping[str, str] = {}
        self._seen_evicted: set[str] = set()
        self.unknown = 0
        """The number of pod cgroups without a pod in the API server."""

    def refresh(self, *, anew: bool = False) -> None:
        """Report changes; ``anew``: even if the server and the cgroups have not changed."""
        world, before = self._world, self._world.known
        known, paths = self.known.take(), dict(pod_paths(self._cgroups))
        if known is before and paths == self._paths and not anew:
            return
        world.known, self._paths = known, dict(paths)
        for uid, watched in list(world.pods.items()):
            self._check(uid, watched, known.get(uid), paths.get(cgroup_uid(watched.pod)))
        for uid, pod in known.items():
            path = paths.pop(cgroup_uid(pod), None)
            if path is not None and uid not in world.pods and self._is_candidate(uid, pod):
                self._adopt(uid, pod, path)
            if pod is before.get(uid) or uid in self._seen_evicted:
                continue
            if (eviction := pod.kubelet_eviction) is not None:
                self._seen_evicted.add(uid)
                if uid in before and uid not in world.evicted:
                    self._journal(Kind.EVICTED, pod.key, By.KUBELET, SeenEvicted(REASON, eviction.text))
        self.unknown = len(paths)
        world.evicted &= known.keys()
        self._seen_evicted &= known.keys()

    def _check(self, uid: str, watched: WatchedPod, pod: GuardedPod | None, path: str | None) -> None:
        """Remove a pod that is gone, and apply changes."""
        if path == watched.cgroup and self._is_dying(uid):
            return
        if path != watched.cgroup or pod is None or pod.is_over:
            self._leave(uid, watched)
        elif pod is not watched.pod:
            if pod.spec != watched.pod.spec and uid not in self._world.reactions:
                self._leave(uid, watched)
            elif not pod.unread:
                watched.pod = pod
                watched.found(pod_at(self._cgroups, uid, watched.cgroup))

    def _is_dying(self, uid: str) -> bool:
        """Whether a pod is frozen or killed and still has processes."""
        reaction = self._world.reactions.get(uid)
        if reaction is None or reaction.gone_us is not None:
            return False
        return reaction.held_us is not None or reaction.killed_us is not None

    def _is_candidate(self, uid: str, pod: GuardedPod) -> bool:
        """Whether the agent should know a pod: it may be evicted, or is one that is never evicted."""
        is_there = not pod.is_over and uid not in self._world.evicted
        return is_there and (pod.is_critical or not never_evicted(pod, self._world.node))

    def _adopt(self, uid: str, pod: GuardedPod, path: str) -> None:
        self._world.pods[uid] = WatchedPod(pod, pod_at(self._cgroups, uid, path))
        self._deliver(PodAdopted(pod))

    def _leave(self, uid: str, watched: WatchedPod) -> None:
        del self._world.pods[uid]
        self._cgroups.forget(watched.cgroup)
        record = self._driver.state.pods.get(uid)
        if record is not None:
            self._deliver(PodStopped(uid) if record.stage is Stage.STOPPING else PodDeleted(uid))
