"""Makes the pods that run those of the directory of manifests: some are started, some ended, some refused.

A few at a time: a directory of thousands holds nothing else up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podqos.agent.driver import Driver
from podqos.agent.port import Event, PodBound, PodDeleted
from podqos.agent.state import Stage
from podqos.host.linux.disk import advance
from podqos.host.linux.notes import words
from podqos.host.node.manifest_watch import ManifestWatch
from podqos.host.node.manifests import RefusedManifest, Wanted
from podqos.host.node.world import HostWorld
from podqos.host.shell.agent_thread import AgentThread
from podqos.model.pod import Pod

_SLICE_SECONDS = 0.005
_CAN_STOP = (Stage.STARTING, Stage.RUNNING)


class Reconciliation:
    """Reconciles pods with manifests."""

    def __init__(
        self,
        manifests: ManifestWatch,
        world: HostWorld,
        driver: Driver,
        thread: AgentThread,
        deliver: Callable[[Event], None],
    ) -> None:
        self.refused: dict[str, RefusedManifest] = {}
        """Pods that admission rejected, by uid."""
        self.is_over = False
        """Whether no pod is started any more."""
        self._manifests, self._world, self._driver = manifests, world, driver
        self._thread, self._deliver = thread, deliver
        self._work: Iterator[None] | None = None

    @property
    def is_working(self) -> bool:
        """Whether it is not yet through."""
        return self._work is not None

    def begin(self) -> None:
        """Reconcile running pods with the directory, a few at a time; start over if this was going on."""
        is_scheduled = self._work is not None
        self._work = self._steps()
        if not is_scheduled:
            self._go_on()

    def end(self) -> None:
        """Start and end nothing any more: the node ends."""
        self.is_over = True
        self._work = None

    def not_bound(self, pod: Pod, error: Exception) -> None:
        """Refuse a pod that the agent could not take."""
        uid = pod.metadata.uid
        if uid not in self._driver.state.pods:
            self._world.runs.pop(uid, None)
            source = self._world.sources.pop(uid, "")
            self._refuse(uid, RefusedManifest(pod.key, source, f"podqos cannot run it: {words(error)}"))

    def _go_on(self) -> None:
        work = self._work
        try:
            if work is None or advance(work, _SLICE_SECONDS):
                self._work = None
        finally:
            if self._work is not None:
                self._thread.loop.call_after(0, self._go_on)

    def _steps(self) -> Iterator[None]:
        """Do one thing after the other."""
        if self.is_over:
            return
        world, scan, wanted = self._world, self._manifests.last, self._manifests.wanted
        for uid, record in list(self._driver.state.pods.items()):
            is_left = uid in wanted or scan.leaves(world.sources.get(uid, ""))
            if not is_left and record.stage in _CAN_STOP:
                self._deliver(PodDeleted(uid))
                yield
        for uid, over in list(world.over.items()):
            if uid not in wanted and not scan.leaves(over.source):
                world.state.remove_logs(world.over.pop(uid).pod)
                world.state.forget(uid)
                yield
        self.refused = {uid: refused for uid, refused in self.refused.items() if uid in wanted}
        yield from self._bind_wanted()

    def _bind_wanted(self) -> Iterator[None]:
        """Start what is not there yet, as far as there is a place for it."""
        most, waiting = self._driver.config.max_pods, 0
        names = {record.pod.key for record in self._driver.state.pods.values()}
        for uid, wanted in self._manifests.wanted.items():
            records = self._driver.state.pods
            is_known = uid in records or uid in self._world.over or uid in self.refused
            if is_known or wanted.pod.key in names:
                pass
            elif wanted.is_replica and len(records) >= most:
                waiting += 1
            else:
                names.add(wanted.pod.key)
                self._bind(uid, wanted)
            yield
        if waiting:
            self._thread.note(f"the node is full ({most} pods): {waiting} more pending")

    def _bind(self, uid: str, wanted: Wanted) -> None:
        try:
            pod = self._manifests.last.admitted(wanted)
        except Exception as error:  # noqa: BLE001 - the other pods still count
            self._thread.notes.add_error(error)
            pod = RefusedManifest(wanted.pod.key, wanted.source, f"podqos cannot admit it: {words(error)}")
        if isinstance(pod, RefusedManifest):
            self._refuse(uid, pod)
            return
        self._world.runs[uid] = wanted.run
        self._world.sources[uid] = wanted.source
        self._deliver(PodBound(pod))

    def _refuse(self, uid: str, refused: RefusedManifest) -> None:
        self.refused[uid] = refused
        self._thread.note(f"{refused.source}: {refused.key}: {refused.why}")
