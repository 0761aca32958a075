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

from inotify_simple import INotify, flags
from msgspec.structs import replace

from podqos.agent.driver import Driver
from podqos.agent.events import (
    Event,
    PodBound,
    PodDeleted,
    Remembered,
    Woken,
)
from podqos.agent.state import ContainerRecord, PodRecord, Resting, Stage
from podqos.errors import HostError
from podqos.host.linux.background import Background
from podqos.host.linux.capabilities import Machine, open_machine
from podqos.host.linux.claim import Claim
from podqos.host.linux.disk import advance
from podqos.host.linux.kmsg import KernelLog
from podqos.host.linux.loop import Loop, Timer
from podqos.host.linux.notes import Notes, words
from podqos.host.linux.stopping import on_stop
from podqos.host.linux.undisturbed import Undisturbed, journal_clock
from podqos.host.node.adoption import Adoption
from podqos.host.node.delivery import Delivery
from podqos.host.node.figures import Figures
from podqos.host.node.kernel_kills import oom_kill_entry
from podqos.host.node.manifests import ManifestFolder, Refused, Scan, Wanted
from podqos.host.node.protection import Protection
from podqos.host.node.settings import HostSettings, agent_config
from podqos.host.node.world import HostWorld
from podqos.host.runtimes.runtime import Runtime
from podqos.host.storage.journal_file import JournalFile
from podqos.host.storage.state import PodState, StateDirectory
from podqos.host.storage.syncing import Syncing
from podqos.qos.cgroup_paths import node_path

MakeRuntime = Callable[["Node"], Runtime]
_CHANGES = (
    flags.CLOSE_WRITE | flags.MOVED_TO | flags.MOVED_FROM | flags.DELETE | flags.CREATE | flags.ATTRIB
    | flags.DELETE_SELF | flags.MOVE_SELF
)  # fmt: skip
_RESCAN_SECONDS = 20.0  # in case a notification was missed, as in the kubelet (fileCheckFrequency)
_SETTLE_SECONDS = 0.05
_UNSETTLED_SECONDS = 1.0
_SLICE_SECONDS = 0.005
_SYNC_SECONDS = 1.0
_END_SECONDS = 2.0


class Node:
    """A running node."""

    def __init__(
        self,
        settings: HostSettings,
        make_runtime: MakeRuntime,
        say: Callable[[str], None],
        machine: Machine | None = None,
    ) -> None:
        self.settings = settings
        self.loop = Loop()
        self.now_us = journal_clock()
        self._notes = Notes(say, "the node")
        self.loop.failed = self._notes.add_error
        machine = machine or open_machine(settings.own)
        self.procfs, self.capabilities, self.cgroups = machine.procfs, machine.capabilities, machine.cgroups
        self.notes = self._notes.counts
        """Problems, and how often they occurred; each is printed once."""
        self._say = say
        self._open = contextlib.ExitStack()
        """What to close at the end, last to first."""
        self._open.callback(self.loop.close)
        self._open.callback(self.cgroups.close)
        self._reader = self._open.enter_context(contextlib.closing(Background(self.loop, "manifests")))
        self._syncing = self._open.enter_context(contextlib.closing(Syncing()))
        try:
            self.state = StateDirectory(settings.state_dir, self.note, self._syncing.later)
            self._open.callback(self.state.close)
            self._open.enter_context(contextlib.closing(Claim(self.cgroups, settings.state_dir)))
        except BaseException:
            self._open.close()
            raise
        self._protection = Protection(settings, self.cgroups, self.capabilities, self.procfs, self.note)
        try:
            self._confine()
            for line in self.capabilities.lines():
                self.note(line)
            self._protection.begin()
            self.config = agent_config(settings, self.cgroups, self.procfs)
            self.journal = JournalFile(settings.state_dir / "journal.jsonl", self.note, sync=self._syncing.later)
            self._open.callback(self.journal.close)
            self.runtime = make_runtime(self)
        except BaseException:
            self._give_up()
            raise
        self.figures = Figures(
            settings.node,
            cgroups=self.cgroups,
            state=self.state,
            capacity_bytes=settings.memory_bytes,
            kubepods=node_path(self.config.cgroups),
            procfs=self.procfs,
        )
        self.figures.image_folder = self.runtime.image_folder()
        self.deliver = Delivery(
            self.loop,
            self.now_us,
            handle=self._handle,
            settled=self._settled,
            wake_us=lambda: self.driver.wake_us,
            wake=lambda: self.deliver(Woken()),
        ).deliver
        self.world = HostWorld(
            node=settings.node,
            cgroups=self.cgroups,
            runtime=self.runtime,
            state=self.state,
            figures=self.figures,
            loop=self.loop,
            report=self.deliver,
            note=self.note,
            logs=settings.logs,
            allow_privileged=settings.allow_privileged,
        )
        self.driver = Driver(self.config, self.world, self.journal.write)
        self.world.phase_of = self._phase_of
        self.folder = ManifestFolder(settings.manifests, settings.profile, self.config.max_pods)
        self.scan = Scan(is_listed=False)
        """The directory of manifests when it was last read."""
        self.refused: dict[str, Refused] = {}
        """Pods that admission rejected, by uid."""
        self.wanted: dict[str, Wanted] = {}
        """Pods in the directory of manifests, by uid."""
        self._saved: dict[str, PodRecord] = {}
        self._stops = 0
        self._undisturbed = Undisturbed()
        self._settling: Timer | None = None
        self._is_scanning = self._is_outdated = False
        self._reconciling: Iterator[None] | None = None
        self.is_ending = False

    # ---- life cycle ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Adopt running pods, start listening, and scan the directory for the first time."""
        self.driver.start(self.now_us())
        Adoption(self.world, self.driver, self.now_us, self.deliver).adopt()
        self._listen()
        self.loop.call_every(_RESCAN_SECONDS, self._rescan)
        self.loop.call_every(_SYNC_SECONDS, self._keep_syncing)
        self.deliver(Woken())
        self._undisturbed.begin()

    def run(self, at_end: Callable[[], None] = lambda: None) -> None:
        """Run until told to stop; ``at_end`` is called before the node releases its cgroups."""
        on_stop(self.loop, self.stop)
        self.start()
        self.loop.run()
        at_end()
        self.close()

    def stop(self) -> None:
        """Start stopping: pods get their grace period, a second call kills them at once."""
        self._stops += 1
        if self.settings.keep_pods or not self.world.pods:
            self.loop.stop()
            return
        if self._stops == 1:
            self._say("stopping pods; interrupt again to kill them at once")
            self.is_ending = True
            self._reconciling = None
            for uid in [uid for uid, record in self.driver.state.pods.items() if record.is_active]:
                self.deliver(PodDeleted(uid))
            self._stop_when_empty()
        else:
            for pod in list(self.world.pods.values()):
                self.world.kill(pod)

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

    def _give_up(self) -> None:
        """Restore the machine, before anything was started."""
        if not self.cgroups.processes(self.cgroups.own):
            self.cgroups.remove(self.cgroups.own)
        self._protection.end()
        self._release()

    def _release(self) -> None:
        """Close every file, and unlock the cgroup and the state directory."""
        self._open.close()

    # ---- the agent -----------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Print a problem once, on one line, and count how often it occurs."""
        self._notes.add(text)

    def _handle(self, event: Event) -> None:
        before = len(self.driver.state.pods)
        try:
            self.driver.deliver(self.now_us(), event)
        except Exception as error:  # noqa: BLE001 - the other events still count
            self._event_failed(event, error)
        if len(self.driver.state.pods) < before:
            # A pod with the same name may have been waiting for this.
            self.loop.call_after(0, self._reconcile)

    def _settled(self) -> None:
        try:
            self._save()
        finally:
            self.world.settled()

    def _event_failed(self, event: Event, error: Exception) -> None:
        """Say that the agent could not handle an event; a pod that it was to start is refused."""
        self._notes.add_error(error)
        if isinstance(event, PodBound) and event.pod.metadata.uid not in self.driver.state.pods:
            uid = event.pod.metadata.uid
            self.world.runs.pop(uid, None)
            source = self.world.sources.pop(uid, "")
            self.refused[uid] = Refused(event.pod.key, source, f"podqos cannot run it: {words(error)}")
            self.note(f"{source}: {event.pod.key}: {self.refused[uid].why}")

    def _phase_of(self, uid: str) -> str | None:
        record = self.driver.state.pods.get(uid)
        return None if record is None or record.phase is None else record.phase.value

    # ---- records on disk -----------------------------------------------------------------------------------------

    def _save(self) -> None:
        """Save the pods that have changed."""
        records = self.driver.state.pods
        for uid, record in records.items():
            pod = self.world.pods.get(uid)
            if pod is None or self._saved.get(uid) is record:
                continue
            self._saved[uid] = record
            due = {each.container: each.wake_us for each in self.driver.state.restarts if each.uid == uid}
            changed = replace(
                pod.state,
                containers={
                    each.plan.name: _remembered(each, due.get(each.plan.name, 0)) for each in record.containers
                },
                is_stopping=record.stage in {Stage.STOPPING, Stage.STOPPED},
            )
            pod.state = changed
            self._save_state(changed, in_a_hurry=self.world.is_hurried)
        for uid in [uid for uid in self._saved if uid not in records]:
            del self._saved[uid]
        # Only now: if the agent is killed before it has reported that a pod is gone, the next one does.
        while self.world.gone:
            uid = self.world.gone.pop()
            if uid in self.world.over:
                self._save_state(self.world.over[uid])
            else:
                self.state.forget(uid)

    def _save_state(self, state: PodState, *, in_a_hurry: bool = False) -> None:
        try:
            self.state.save(state, in_a_hurry=in_a_hurry)
        except Exception as error:  # noqa: BLE001 - the other pods still count
            self.note(f"{state.pod.key}: its state cannot be saved: {words(error)}")

    # ---- manifests -----------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._inotify = inotify = self._open.enter_context(contextlib.closing(INotify(nonblocking=True)))
        if not self.world.pods:
            # An empty directory would end adopted pods: one that is missing then is unknown.
            with contextlib.suppress(OSError):  # the scan says so
                self.settings.manifests.mkdir(parents=True, exist_ok=True)
        self.loop.watch(inotify.fileno(), lambda: self._folder_changed(inotify))
        try:
            log = self._open.enter_context(contextlib.closing(KernelLog()))
        except OSError as error:
            self.note(f"/dev/kmsg: {error.strerror}: OOM kills are reported without the kernel's reasons")
            return
        self.loop.watch(log.fileno(), lambda: self._hear_kernel(log))

    def _folder_changed(self, inotify: INotify) -> None:
        """Wait a moment: changes often come in groups."""
        inotify.read(timeout=0)
        if self._settling is None or self._settling.callback is None:
            self._settling = self.loop.call_after(_SETTLE_SECONDS, self._changes_settled)

    def _changes_settled(self) -> None:
        self._settling = None
        self._scan()

    def _rescan(self) -> None:
        where = self.settings.manifests
        try:
            # Again and again: it may be another directory of the same name.
            self._inotify.add_watch(str(where), _CHANGES)
        except OSError as error:
            self.note(f"{where}: {error.strerror}: changes are found every {_RESCAN_SECONDS:.0f} s only")
        if self._is_scanning:
            self.note(f"{where}: not read within {_RESCAN_SECONDS:.0f} s: pods are left as they are until it is")
        self._scan()

    def _scan(self) -> None:
        """Read the directory on another thread; what changes meanwhile is read afterwards."""
        self._is_outdated = self._is_scanning
        if not self._is_scanning:
            self._is_scanning = True
            self._reader.run(self.folder.scan, self._scanned)

    def _scanned(self, scan: Scan | Exception) -> None:
        self._is_scanning = False
        if self._is_outdated:
            self._scan()
        if isinstance(scan, Exception):
            self._notes.add_error(scan)
            return
        for note in scan.notes:
            self.note(note)
        self.scan = scan
        self.wanted = {each.pod.metadata.uid: each for each in scan.wanted}
        if not scan.is_settled:
            self.loop.call_after(_UNSETTLED_SECONDS, self._scan)
        self._reconcile()

    def _reconcile(self) -> None:
        """Reconcile running pods with the directory, a few at a time; start over if this was going on."""
        is_scheduled = self._reconciling is not None
        self._reconciling = self._reconciled()
        if not is_scheduled:
            self._go_on_reconciling()

    def _go_on_reconciling(self) -> None:
        work = self._reconciling
        try:
            if work is None or advance(work, _SLICE_SECONDS):
                self._reconciling = None
        finally:
            if self._reconciling is not None:
                self.loop.call_after(0, self._go_on_reconciling)

    def _reconciled(self) -> Iterator[None]:
        """Do one thing after the other."""
        if self.is_ending:
            return
        wanted, records = self.wanted, self.driver.state.pods
        for uid, record in list(records.items()):
            is_left = uid in wanted or self.scan.leaves(self.world.sources.get(uid, ""))
            if not is_left and record.stage in _CAN_STOP:
                self.deliver(PodDeleted(uid))
                yield
        for uid, over in list(self.world.over.items()):
            if uid not in wanted and not self.scan.leaves(over.source):
                self.state.remove_logs(self.world.over.pop(uid).pod)
                self.state.forget(uid)
                yield
        self.refused = {uid: each for uid, each in self.refused.items() if uid in wanted}
        names = {record.pod.key for record in self.driver.state.pods.values()}
        waiting = 0
        for uid, each in wanted.items():
            records = self.driver.state.pods
            is_known = uid in records or uid in self.world.over or uid in self.refused
            if is_known or each.pod.key in names:
                pass
            elif each.is_replica and len(records) >= self.config.max_pods:
                waiting += 1
            else:
                names.add(each.pod.key)
                self._bind(uid, each)
            yield
        if waiting:
            self.note(f"the node has its {self.config.max_pods} pods: {waiting} of controllers wait for a place")

    def _bind(self, uid: str, wanted: Wanted) -> None:
        try:
            pod = self.scan.admitted(wanted)
        except Exception as error:  # noqa: BLE001 - the other pods still count
            self._notes.add_error(error)
            pod = Refused(wanted.pod.key, wanted.source, f"podqos cannot admit it: {words(error)}")
        if isinstance(pod, Refused):
            self.refused[uid] = pod
            self.note(f"{pod.source}: {pod.key}: {pod.why}")
            return
        self.world.runs[uid] = wanted.run
        self.world.sources[uid] = wanted.source
        self.deliver(PodBound(pod))

    # ---- the machine ---------------------------------------------------------------------------------------------

    def _confine(self) -> None:
        """Limit the node's own cgroup."""
        if self.settings.memory_bytes is not None:
            failed = self.cgroups.set_memory_limit(self.cgroups.own, self.settings.memory_bytes)
            if failed is not None:
                raise HostError(f"the node cannot be confined: {failed}")

    def _hear_kernel(self, log: KernelLog) -> None:
        for kill in log.kills():
            entry = oom_kill_entry(kill, self.now_us(), self.settings.node, self.cgroups, self.world.pods.values())
            if entry is not None:
                self.journal.write(entry)

    def _keep_syncing(self) -> None:
        self.journal.sync()
        self.state.save_late()
        if isinstance(self.driver.state.loop, Resting):
            self._undisturbed.collect()

    def _stop_when_empty(self) -> None:
        if self.world.pods:
            self.loop.call_after(_SETTLE_SECONDS, self._stop_when_empty)
        else:
            self.loop.stop()


_CAN_STOP = (Stage.STARTING, Stage.RUNNING)


def _remembered(container: ContainerRecord, due_us: int) -> Remembered:
    return Remembered(
        container.stage.value,
        container.restarts,
        container.back_off_seconds,
        container.restarted_us,
        container.waited_seconds,
        container.exit_code,
        container.oom_killed,
        due_us,
    )
