"""A node: the agent, this machine, a directory of manifests, and the one thread they share.

    inotify ─► manifests ─► PodBound, PodDeleted ─┐
    shim ────► runs that ended ───────────────────┤
    kernel ──► memory crossed a level ────────────┼─► agent ─► commands ─► this machine
    clock ───► the next pass, the next restart ───┤      └─► journal
    kmsg ────► OOM kills                          └────────────────────────► journal

Slow work is split into pieces, or done on another thread (reading manifests); urgent work (memory) does only the
minimum. The records of pods are on disk before anything is done about them, and are reconciled with the runtime and
the cgroup tree at the start. What goes wrong about one pod, or in one callback, is said and concerns nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from podqos.agent.port import Event, PodBound, PodDeleted, Woken
from podqos.errors import HostError
from podqos.host.linux.capabilities import HostMachine, open_machine
from podqos.host.linux.claim import Claim
from podqos.host.node.adoption import Adoption
from podqos.host.node.container_starts import ContainerStarts
from podqos.host.node.figures import Figures
from podqos.host.node.manifest_watch import ManifestWatch
from podqos.host.node.manifests import ManifestFolder
from podqos.host.node.reconciliation import Reconciliation
from podqos.host.node.saved_records import SavedRecords
from podqos.host.node.settings import HostSettings, agent_config
from podqos.host.node.world import HostWorld, NodeParts
from podqos.host.runtimes.runtime import Runtime
from podqos.host.shell.agent_shell import AgentShell
from podqos.host.shell.protection import AgentProtection
from podqos.host.storage.state import StateDirectory
from podqos.qos.cgroup_paths import node_path

MakeRuntime = Callable[["Node"], Runtime]
_SYNC_SECONDS = 1.0
_EMPTY_POLL_SECONDS = 0.05
_END_SECONDS = 2.0


class Node(AgentShell):
    """A running node."""

    def __init__(
        self,
        settings: HostSettings,
        make_runtime: MakeRuntime,
        say: Callable[[str], None],
        machine: HostMachine | None = None,
    ) -> None:
        super().__init__(settings.node, say, "the node")
        self.settings = settings
        self._stops = 0
        with self._opening():
            self._claim(machine or open_machine(settings.own))
            with self._restoring_machine():
                self._take_over()
                self._open_journal(settings.state_dir)
                self.runtime = make_runtime(self)
        self.figures = self._make_figures()
        self.world = self._make_world()
        self._run_agent(self.config, self.world, self.journal.write)
        self._records = SavedRecords(self.world, self.driver, self.note)
        folder = ManifestFolder(settings.manifests, settings.profile, self.config.max_pods)
        self.manifests = self._keep(ManifestWatch(folder, self.thread))
        self.reconciliation = Reconciliation(self.manifests, self.world, self.driver, self.thread, self.deliver)

    # ---- set-up --------------------------------------------------------------------------------------------------

    def _claim(self, machine: HostMachine) -> None:
        """Be the only node in this cgroup and with this state directory."""
        self.procfs, self.capabilities, self.cgroups = machine.procfs, machine.capabilities, machine.cgroups
        self._open.callback(self.cgroups.close)
        self.state = self._keep(StateDirectory(self.settings.state_dir, self.note, self._syncing.later))
        self._keep(Claim(self.cgroups, self.settings.state_dir))
        self._protection = AgentProtection(self.settings, self.cgroups, self.capabilities, self.procfs, self.note)

    def _take_over(self) -> None:
        """Confine the node, protect the agent, and measure what there is for pods."""
        if self.settings.memory_bytes is not None:
            failed = self.cgroups.set_memory_limit(self.cgroups.own, self.settings.memory_bytes)
            if failed is not None:
                raise HostError(f"the node cannot be confined: {failed}")
        for line in self.capabilities.lines():
            self.note(line)
        self._protection.begin()
        self.config = agent_config(self.settings, self.cgroups, self.procfs)

    @contextlib.contextmanager
    def _restoring_machine(self) -> Iterator[None]:
        """Restore the machine if the node cannot be set up; nothing was started by then."""
        try:
            yield
        except BaseException:
            if not self.cgroups.processes(self.cgroups.own):
                self.cgroups.remove(self.cgroups.own)
            self._protection.end()
            raise

    def _make_figures(self) -> Figures:
        return Figures(
            self.settings.node,
            cgroups=self.cgroups,
            state=self.state,
            capacity_bytes=self.settings.memory_bytes,
            kubepods=node_path(self.config.cgroups),
            procfs=self.procfs,
        )

    def _make_world(self) -> HostWorld:
        settings = self.settings
        starts = ContainerStarts(
            settings.node,
            self.state,
            self.note,
            logs=settings.logs,
            allow_privileged=settings.allow_privileged,
        )
        parts = NodeParts(self.cgroups, self.runtime, self.state, self.figures, starts)
        world = HostWorld(parts, self.thread, self.deliver)
        world.phase_of = self._phase_of
        return world

    # ---- life cycle ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Adopt running pods, start listening, and scan the directory for the first time."""
        self.driver.start(self.now_us())
        Adoption(self.world, self.driver, self.now_us, self.deliver).adopt()
        if not self.world.pods:
            # An empty directory would end adopted pods: one that is missing then is unknown.
            self.manifests.make_folder()
        lost = "OOM kills are reported without the kernel's reasons"
        self._journal_kernel_kills(self.cgroups, self.world.pods.values, lost)
        self.manifests.start(self.reconciliation.begin)
        self.loop.call_every(_SYNC_SECONDS, self._keep_syncing)
        self.deliver(Woken())
        self._undisturbed.begin()

    def run(self, at_end: Callable[[], None] = lambda: None) -> None:
        """Run until shutdown; ``at_end`` is called before the node releases its cgroups."""
        self._run_until_stopped(self.stop)
        at_end()
        self.close()

    @property
    def is_ending(self) -> bool:
        """Whether its pods are being ended."""
        return self.reconciliation.is_over

    def stop(self) -> None:
        """Start stopping: pods get their grace period, a second call kills them at once."""
        self._stops += 1
        if self.settings.keep_pods or not self.world.pods:
            self.loop.stop()
            return
        if self._stops == 1:
            self._say("stopping pods; interrupt again to kill them at once")
            self.reconciliation.end()
            for uid in [uid for uid, record in self.driver.state.pods.items() if record.is_active]:
                self.deliver(PodDeleted(uid))
            self._stop_when_empty()
        else:
            for pod in list(self.world.pods.values()):
                self.world.kill(pod)

    def _stop_when_empty(self) -> None:
        if self.world.pods:
            self.loop.call_after(_EMPTY_POLL_SECONDS, self._stop_when_empty)
        else:
            self.loop.stop()

    def close(self) -> None:
        """Release everything; if no pods are left, nothing stays on the machine."""
        self.world.memory_watch.close()
        self.world.prober.close()
        is_empty = not self.world.pods
        self.runtime.close(end=is_empty and not self.settings.keep_pods)
        if is_empty and not self.settings.keep_pods:
            self.cgroups.end([self.cgroups.own], _END_SECONDS)
        self._protection.end()
        self._release()
        self._undisturbed.end()

    # ---- the agent -----------------------------------------------------------------------------------------------

    def _handle(self, now_us: int, event: Event) -> None:
        before = len(self.driver.state.pods)
        super()._handle(now_us, event)
        if len(self.driver.state.pods) < before:
            # A pod with the same name may have been waiting for this.
            self.loop.call_after(0, self.reconciliation.begin)

    def _failed(self, event: Event, error: Exception) -> None:
        """Say that the agent could not handle an event; a pod that it was to start is refused."""
        super()._failed(event, error)
        if isinstance(event, PodBound):
            self.reconciliation.not_bound(event.pod, error)

    def _settled(self) -> None:
        try:
            self._records.save()
        finally:
            self.world.settled()

    def _phase_of(self, uid: str) -> str | None:
        record = self.driver.state.pods.get(uid)
        return None if record is None or record.phase is None else record.phase.value

    def _keep_syncing(self) -> None:
        self.journal.sync()
        self.state.save_late()
        self._collect_garbage()
