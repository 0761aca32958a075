"""A running guard: the agent over a kubelet's node, on one thread.

    watch of pods ──► what is known ─► PodAdopted, PodDeleted ─┐
    kernel, clock ──► memory crossed a level ──────────────────┼─► agent ─► evictions (``acting``)
    kmsg, statuses ─► what kubelet and kernel did ─────────┐   └──────┬──► journal
                                                           └──────────┘

Everything that may block is done on other threads: the watch, requests, the disk. Whether a decision is carried out or
only written down is asked anew for each (``brakes``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from podqos.agent.agent import handle
from podqos.agent.driver import Driver
from podqos.agent.events import (
    Event,
    MemoryNotified,
    Observed,
    Woken,
)
from podqos.agent.guard_status import FILE, ApiStatus, ExcludedPod, GuardStatus, SignalStatus
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import Because, GuardMode
from podqos.agent.state import Looking, Resting
from podqos.cluster.cluster import Cluster
from podqos.cluster.writing import Writer
from podqos.errors import HostError
from podqos.eviction.thresholds import Threshold, ThresholdValue
from podqos.guard.acting import Acting
from podqos.guard.brakes import Brakes, HeldBack, earlier_evictions
from podqos.guard.evictions import Evictions
from podqos.guard.explaining import Decided, Explaining
from podqos.guard.figures import GuardFigures
from podqos.guard.intents import Intents
from podqos.guard.known_pods import KnownPods, never_evicted
from podqos.guard.lifeline import Lifeline
from podqos.guard.metrics import GuardMetrics
from podqos.guard.node_pods import NodePods
from podqos.guard.sender import Sender
from podqos.guard.settings import GuardSettings, agent_config, cgroups_of
from podqos.guard.tree import find_kubepods
from podqos.guard.world import GuardWorld
from podqos.host.api.http_server import HttpServer
from podqos.host.linux.background import Background
from podqos.host.linux.capabilities import detect
from podqos.host.linux.kmsg import KernelLog
from podqos.host.linux.loop import Loop, Timer
from podqos.host.linux.notes import Notes
from podqos.host.linux.procfs import PAGE_BYTES, Procfs
from podqos.host.linux.psi import PressureWatch
from podqos.host.linux.stopping import on_stop, stop_at_once
from podqos.host.linux.undisturbed import Undisturbed, journal_clock
from podqos.host.shell.delivery import Delivery
from podqos.host.shell.kernel_kills import oom_kill_entry
from podqos.host.shell.protection import Protection
from podqos.host.storage.journal_file import JournalFile
from podqos.host.storage.syncing import Syncing
from podqos.host.storage.writing import replace_file
from podqos.model.quantity import Quantity
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.version import __version__

_JOURNAL = "journal.jsonl"
_EVERY_SECONDS = 1.0
_STATUS_SECONDS = 5.0
_SAVE_SECONDS = 5.0
_SETTLE_SECONDS = 0.02
_ASK_SECONDS, _ASK_AGAIN_SECONDS, _ASK_SOON_SECONDS = 30.0, 300.0, 1.0
_STALL_US, _WINDOW_US = 10_000, 500_000
# What agents note of pods that come and go is the kubelet's doing.
_NOT_OURS = frozenset({Kind.ADOPTED, Kind.STOPPED, Kind.CLEANED_UP})


class Guard:
    """A guard beside a kubelet."""

    def __init__(
        self,
        settings: GuardSettings,
        cluster: Cluster | None,
        say: Callable[[str], None],
        procfs: Procfs | None = None,
        ask: Callable[[], GuardSettings] | None = None,
    ) -> None:
        """``ask`` returns the settings as they are now, for which it may wait."""
        self.settings = settings
        self._ask = ask
        self.newer: GuardSettings | None = None
        """Those to begin anew with; None where it was told to stop."""
        self._procfs = procfs or Procfs()
        self._cluster = cluster
        self._notes = Notes(say, "the guard")
        self.note = self._notes.add
        self.loop = Loop()
        self.loop.failed = self._notes.add_error
        self.now_us = journal_clock()
        self.started_us = self.now_us()
        self._open = contextlib.ExitStack()
        self._open.callback(self.loop.close)
        try:
            self._begin()
        except BaseException:
            self._open.close()
            raise

    def _begin(self) -> None:
        settings = self.settings
        self._unprotected: list[str] = []
        self._make_folders()
        procfs = self._procfs
        capabilities = detect(procfs)
        self.cgroups = find_kubepods(cgroups_of(settings, capabilities.version, procfs), procfs)
        self.config = agent_config(settings, self.cgroups.version, procfs)
        self._protection = Protection(settings, self.cgroups, capabilities, procfs, self._lacks)
        self._protection.begin()
        self._open.callback(self._protection.end)
        self._syncing = self._open.enter_context(contextlib.closing(Syncing()))
        self._background = self._open.enter_context(contextlib.closing(Background(self.loop, "guard")))
        self._asking = self._open.enter_context(contextlib.closing(Background(self.loop, "asking")))
        self.journal = JournalFile(settings.state / _JOURNAL, self.note, sync=self._syncing.later)
        self._open.callback(self.journal.close)
        self.known = KnownPods(self._cluster, settings.node, settings.state / "pods.json", self.note)
        self._open.callback(self.known.close)
        since_us = self.now_us() - settings.most_within_us
        earlier = earlier_evictions(settings.state / _JOURNAL, since_us)
        self.brakes = Brakes(settings, lambda: self.known.is_switched_off, earlier)
        self.figures = GuardFigures(settings.node, self.cgroups, procfs)
        self.world = GuardWorld(
            node=settings.node,
            cgroups=self.cgroups,
            figures=self.figures,
            loop=self.loop,
            on_crossing=self._crossed,
            note=self.note,
            now_us=self.now_us,
        )
        self._open.callback(self.world.memory_watch.close)
        self.driver = Driver(self.config, self.world, self._write)
        self.deliver = Delivery(
            self.loop,
            self.now_us,
            handle=self._handle,
            settled=self._settled,
            wake_us=lambda: self.driver.wake_us,
            wake=self._regular_look,
        ).deliver
        self._again: Timer | None = None
        self._settling: Timer | None = None
        self._to_ask: Timer | None = None
        self._kubelet_says: object = ()
        self._entries: deque[Entry] = deque()
        """What is yet to be written."""
        self._decided: list[Decided] = []
        self._mode = GuardMode(settings.enforce, "not begun")
        self._count = 0
        self._is_unsaved = False
        self._undisturbed = Undisturbed()
        self.pods = NodePods(
            settings.node,
            self.known,
            self.cgroups,
            self.world,
            records=lambda: self.driver.state.pods,
            deliver=self.deliver,
            journal=self._journal,
        )
        self.evictions = Evictions(
            self.world,
            self.brakes,
            deliver=self.deliver,
            journal=self._journal,
            refresh=lambda: self.pods.refresh(anew=True),
            note=self.note,
            now_us=self.now_us,
        )
        self._explaining = Explaining(
            self.config.eviction, self.loop, self._background, journal=self._journal, note=self.note
        )
        self._open_acting()

    # ---- life cycle ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Guard until told to stop, or until the kubelet has other settings."""
        on_stop(self.loop, self._stop)
        self.start()
        self.loop.run()
        self.close()
        stop_at_once()

    def start(self) -> None:
        """Begin to watch and to decide."""
        self.known.start()
        self.loop.watch(self.known.fileno(), self._pods_changed)
        self._listen()
        self.driver.start(self.now_us())
        self.pods.refresh()
        self._check_mode()
        self.deliver(Woken())
        self._warm_up()
        self._protection.lock_what_is_used()
        self.loop.call_every(_EVERY_SECONDS, self._every_second)
        self.loop.call_every(_STATUS_SECONDS, self._write_status)
        self.loop.call_every(_SAVE_SECONDS, self._save)
        self._ask_kubelet()
        if self._sender is not None and self.settings.enforce:
            self.evictions.rehearse(self.loop, self._sender)
        self._undisturbed.begin()

    def close(self) -> None:
        """Let everything go; what was begun is finished by the next guard."""
        self._journal(Kind.WATCHING, because=GuardMode(self.settings.enforce, self._mode.held_back, ended=True))
        self._write_status()
        self._open.close()
        self._undisturbed.end()

    def serve_metrics(self, host: str, port: int) -> int:
        """Serve metrics from here on; return the port, for when 0 was requested."""
        metrics = GuardMetrics(self.status)
        self.journal.listen(metrics.heard)
        server = HttpServer(self.loop, metrics.answer, self.note, f"podqos/{__version__}")
        self._open.callback(server.close)
        return server.listen_tcp(host, port)

    def _make_folders(self) -> None:
        """Make the directories, and be the only guard in this run directory."""
        for folder in (self.settings.state, self.settings.run):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise HostError(f"{folder} cannot be made: {error.strerror} (choose others: --state, --run)") from error
        lock = os.open(self.settings.run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._open.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError(f"{self.settings.run}: another guard is running (choose another with --run)") from None

    def _open_acting(self) -> None:
        """Prepare to evict; what an earlier guard had begun is finished in any case."""
        intents = Intents(self.settings.run / "evictions")
        self._sender: Sender | None = None
        if self._cluster is None or not (self.settings.enforce or any(intents.left())):
            return
        self._sender = Sender(self.loop, Writer(self._cluster.client))
        lifeline: Lifeline | None = None
        try:
            lifeline = self._open.enter_context(contextlib.closing(Lifeline()))
        except HostError as error:
            self._lacks(str(error))
        acting = Acting(
            self.loop,
            self.cgroups,
            self._procfs,
            self._sender,
            intents,
            kill_when=self.settings.kill_when,
            tell=self.evictions.told,
            is_falling=self.world.is_falling,
            lifeline=lifeline,
        )
        self._open.callback(acting.close)
        self.evictions.carry_out_with(acting)

    def _listen(self) -> None:
        """Hear what the kernel says about kills and about pressure."""
        try:
            log = self._open.enter_context(contextlib.closing(KernelLog()))
        except OSError as error:
            self.note(f"/dev/kmsg: {error.strerror}: kills of the kernel are not seen")
        else:
            self.loop.watch(log.fileno(), lambda: self._hear_kernel(log))
        files = [self._procfs.root / "pressure" / "memory"]
        if self.cgroups.version is CgroupVersion.V2:
            files.append(self.cgroups.folder(self.cgroups.own) / "memory.pressure")
        for file in files:
            watch = PressureWatch(self.loop, file, _STALL_US, _WINDOW_US, self.world.memory_watch.look)
            self._open.callback(watch.close)

    def _warm_up(self) -> None:
        """Take every step of a decision once, without any effect: what it touches stays in memory from then on."""
        tight = Quantity.of_units(1 << 62, "BinarySI")
        thresholds = tuple(
            Threshold(each.signal, ThresholdValue(tight)) for each in self.config.eviction.thresholds if each.is_hard
        )
        config = replace(self.config, shadow=False, eviction=replace(self.config.eviction, thresholds=thresholds))
        self.world.summary(is_urgent=True)
        manager = replace(self.driver.state.manager, thresholds=None)
        state = replace(self.driver.state, loop=Looking(), manager=manager)
        handle(config, state, self.now_us(), Observed(self.world.observed))
        self.world.is_falling()

    # ---- the agent -----------------------------------------------------------------------------------------------

    def _settled(self) -> None:
        self.world.noticed_us = None
        # Only now: a disk that is busy, as it is when memory is short, is not waited for before a kill.
        while self._entries:
            self.journal.write(self._entries.popleft())
        if self._decided:
            self._follow_up()

    def _handle(self, event: Event) -> None:
        now_us, before = self.now_us(), self.driver.state
        held_back = self.brakes.held_back(now_us) or ""
        if held_back != self.driver.config.held_back or self.driver.config.shadow != bool(held_back):
            self.driver.config = replace(self.config, shadow=bool(held_back), held_back=held_back)
        decided = len(self._decided)
        try:
            self.driver.deliver(now_us, event)
        except Exception as error:  # noqa: BLE001 - the other events still count
            self._notes.add_error(error)
        self._decided[decided:] = [replace(each, before=before, now_us=now_us) for each in self._decided[decided:]]

    def _crossed(self) -> None:
        """Decide at once: memory is short."""
        noticed_us = self.now_us()
        self.pods.refresh()
        self.world.noticed_us = noticed_us
        self.deliver(MemoryNotified())

    def _write(self, entry: Entry) -> None:
        """Write what the agent notes: by the guard, and without what is the kubelet's doing."""
        if entry.kind in _NOT_OURS and not self._is_of_victim(entry):
            return
        own = replace(entry, by=By.GUARD) if entry.by is By.KUBELET else entry
        if own.kind is Kind.EVICTED:
            self.brakes.evicted(own.time_us)
            self._count += 1
        if own.kind in {Kind.EVICTED, Kind.WOULD_EVICT}:
            self.world.because = own.because
            self._decided.append(Decided(own, self.driver.state, own.time_us))
        self._entries.append(own)

    def _is_of_victim(self, entry: Entry) -> bool:
        is_evicted = any(each.pod == entry.pod for each in self.world.reactions.values())
        return entry.kind is Kind.STOPPED and is_evicted

    def _journal(self, kind: Kind, pod: str | None = None, by: By = By.GUARD, because: Because | None = None) -> None:
        self.journal.write(Entry(self.now_us(), self.settings.node, kind, pod, None, by, because))

    def _regular_look(self) -> None:
        noticed_us = self.now_us()
        self.pods.refresh()
        self.world.noticed_us = noticed_us
        self.deliver(Woken())

    def _check_mode(self) -> None:
        """Write down a change of mode; look again where nothing holds decisions back any more."""
        held_back = self.brakes.held_back(self.now_us())
        mode = GuardMode(self.settings.enforce, "" if held_back in {None, HeldBack.COOL_DOWN} else str(held_back))
        if mode == self._mode:
            return
        self._mode = mode
        self._journal(Kind.WATCHING, because=mode)
        if not mode.held_back and self.driver.state.manager.thresholds_met:
            self._crossed()

    def _follow_up(self) -> None:
        """See to what follows from decisions: look again when they can be carried out, and explain them."""
        decided, self._decided = self._decided, []
        now_us = self.now_us()
        free_us = self.brakes.free_again_us(now_us)
        if free_us is not None and any(each.entry.kind is Kind.WOULD_EVICT for each in decided):
            if self._again is not None:
                self._again.cancel()
            self._again = self.loop.call_after(max(0.0, (free_us - now_us) / 1e6), self._crossed)
        for each in decided:
            self._explaining.explain(each, self.world.observed)

    # ---- pods ----------------------------------------------------------------------------------------------------

    def _pods_changed(self) -> None:
        """Wait a moment: changes often come in groups."""
        self.known.heard()
        self.evictions.seen(self.known.take())
        if self._settling is None or self._settling.callback is None:
            self._settling = self.loop.call_after(_SETTLE_SECONDS, self._changes_settled)

    def _changes_settled(self) -> None:
        self._settling = None
        self._is_unsaved = True
        self.pods.refresh()
        self._check_mode()
        before, self._kubelet_says = self._kubelet_says, self.known.kubelet_says
        if before and before != self._kubelet_says:
            self._ask_after(_ASK_SOON_SECONDS)

    def _hear_kernel(self, log: KernelLog) -> None:
        for kill in log.kills():
            entry = oom_kill_entry(kill, self.now_us(), self.settings.node, self.cgroups, self.world.pods.values())
            if entry is not None:
                self.journal.write(entry)

    # ---- the kubelet's settings ----------------------------------------------------------------------------------

    def _ask_kubelet(self) -> None:
        """Go on with the last known settings until the kubelet says otherwise.

        It is asked until it answers, then every few minutes, and soon after the node shows that it has started anew.
        """
        self._to_ask = None
        if self._ask is not None:
            self._asking.run(self._ask, self._heard_kubelet)

    def _ask_after(self, seconds: float) -> None:
        if self._to_ask is not None:
            self._to_ask.cancel()
        self._to_ask = self.loop.call_after(seconds, self._ask_kubelet)

    def _heard_kubelet(self, result: GuardSettings | Exception) -> None:
        if isinstance(result, GuardSettings) and result != self.settings:
            self.note("the kubelet has other settings by now: the guard begins anew with them")
            self.newer = result
            self.loop.stop()
            return
        if isinstance(result, Exception):
            self.note(f"the last known settings count: {result}")
        if self._to_ask is None:
            self._ask_after(_ASK_SECONDS if isinstance(result, Exception) else _ASK_AGAIN_SECONDS)

    def _stop(self) -> None:
        self.newer = None
        self.loop.stop()

    # ---- now and then --------------------------------------------------------------------------------------------

    def _every_second(self) -> None:
        self.journal.sync()
        self._check_mode()
        if isinstance(self.driver.state.loop, Resting):
            self._undisturbed.collect()

    def _save(self) -> None:
        """Keep what is known of pods, in case the server is away at the next start."""
        if self._is_unsaved:
            self._is_unsaved = False
            self._background.run(self.known.save, lambda _result: None)

    def _write_status(self) -> None:
        try:
            replace_file(self.settings.run / FILE, msgspec.json.encode(self.status()))
        except OSError as error:
            self.note(f"{self.settings.run / FILE}: {error.strerror}")

    def status(self) -> GuardStatus:
        """Return how the guard is."""
        known, used = self.world.known, resource.getrusage(resource.RUSAGE_SELF)
        excluded = [
            ExcludedPod(pod.key, why)
            for pod in known.values()
            if not pod.is_over and (why := never_evicted(pod, self.settings.node))
        ]
        return GuardStatus(
            node=self.settings.node,
            pid=os.getpid(),
            version=__version__,
            started_us=self.started_us,
            updated_us=self.now_us(),
            enforce=self.settings.enforce,
            held_back=self._mode.held_back,
            kubepods=self.cgroups.own,
            cgroup=self.cgroups.version.value,
            signals=tuple(self._signals()),
            known=sum(not pod.is_over for pod in known.values()),
            candidates=sum(not each.pod.is_critical for each in self.world.pods.values()),
            excluded=tuple(excluded),
            unknown_cgroups=self.pods.unknown,
            api=ApiStatus(self.known.trouble, self.known.synced_us, self.known.is_from_disk),
            evictions=self._count,
            limit=self.brakes.limit(self.now_us()),
            stop_file=self.brakes.has_stop_file,
            node_annotation=self.known.is_switched_off,
            unprotected=tuple(self._unprotected),
            reactions_us=tuple(self.evictions.reactions_us),
            notes=tuple(self._notes.counts),
            cpu_seconds=used.ru_utime + used.ru_stime,
            rss_bytes=_resident_bytes(),
        )

    def _lacks(self, what: str) -> None:
        self._unprotected.append(what)
        self.note(what)

    def _signals(self) -> Iterator[SignalStatus]:
        """Yield the thresholds with the figures of this moment, or of the last pass where there are no others."""
        fresh = self.figures.look(self.world.pods.values()).signals
        for threshold in self.config.eviction.thresholds:
            seen = self.driver.state.manager.last_signals.get(threshold.signal)
            if seen is not None:
                now = fresh.get(threshold.signal)
                available = seen.available if now is None else now.available_bytes
                amount = threshold.amount(seen.capacity).value
                yield SignalStatus(threshold.signal, amount, available, seen.capacity, threshold.is_hard)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
