"""A running guard: the agent over a kubelet's node, on one thread.

    watch of pods ──► what is known ─► PodAdopted, PodDeleted ─┐
    kernel, clock ──► memory crossed a level ──────────────────┼─► agent ─► evictions (``acting``)
    kmsg, statuses ─► what kubelet and kernel did ─────────┐   └──────┬──► journal
                                                           └──────────┘

Everything that may block runs on other threads: the watch, requests, the disk. ``brakes`` decides for each decision
whether it is carried out or only recorded.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from podqos.agent.agent import handle
from podqos.agent.guard_status import FILE, GuardStatus
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.port import Event, MemoryNotified, Observed, Woken
from podqos.agent.reasons import Because, GuardMode
from podqos.agent.state import Looking
from podqos.cluster.cluster import Cluster
from podqos.cluster.writing import Writer
from podqos.errors import HostError
from podqos.eviction.thresholds import Threshold, ThresholdValue
from podqos.guard.acting import Evictor, Instruments
from podqos.guard.brakes import Brakes, HeldBack, earlier_evictions
from podqos.guard.decisions import Decisions
from podqos.guard.evictions import Evictions
from podqos.guard.explaining import DecisionExplainer
from podqos.guard.figures import GuardFigures
from podqos.guard.intents import Intents
from podqos.guard.known_pods import KnownPods
from podqos.guard.kubelet_follower import KubeletFollower
from podqos.guard.lifeline import Lifeline
from podqos.guard.metrics import GuardMetrics
from podqos.guard.node_pods import GuardedPods
from podqos.guard.sender import Sender
from podqos.guard.settings import GuardSettings, agent_config, cgroups_of
from podqos.guard.status import StatusParts, guard_status
from podqos.guard.tree import find_kubepods
from podqos.guard.world import GuardWorld
from podqos.host.api.http_server import HttpServer
from podqos.host.linux.background import Background
from podqos.host.linux.capabilities import detect
from podqos.host.linux.cgroupfs import why_no_signals
from podqos.host.linux.loop import Debounce
from podqos.host.linux.procfs import Procfs
from podqos.host.linux.psi import PressureWatch
from podqos.host.linux.stopping import stop_at_once
from podqos.host.shell.agent_shell import JOURNAL, AgentShell
from podqos.host.shell.protection import AgentProtection
from podqos.host.storage.writing import replace_file
from podqos.model.quantity import Quantity
from podqos.naming import naming
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.version import __version__

_EVERY_SECONDS = 1.0
_STATUS_SECONDS = 5.0
_SAVE_SECONDS = 5.0
_SETTLE_SECONDS = 0.02
_STALL_US, _WINDOW_US = 10_000, 500_000
_FOR_A_MOMENT = {None, HeldBack.COOL_DOWN, HeldBack.UNFINISHED}


class Guard(AgentShell):
    """A guard next to a kubelet."""

    def __init__(
        self,
        settings: GuardSettings,
        cluster: Cluster | None,
        say: Callable[[str], None],
        procfs: Procfs | None = None,
        ask: Callable[[], GuardSettings] | None = None,
    ) -> None:
        """``ask`` returns the current settings and may block."""
        super().__init__(settings.node, say, "the guard")
        self.settings = settings
        self.started_us = self.now_us()
        self.newer: GuardSettings | None = None
        """The settings to restart with; None after a shutdown."""
        self._mode = GuardMode(settings.enforce, "not begun")
        self._unprotected: list[str] = []
        with self._opening():
            self._claim()
            self._protect(procfs or Procfs())
            self._open_journal(settings.state)
            self.known = self._keep(KnownPods(cluster, settings.node, settings.state / "pods.json", self.note))
            self.kubelet = self._keep(KubeletFollower(settings, ask, self.thread, self._begin_anew))
            self._begin()
            self._open_acting(cluster)

    def _begin(self) -> None:
        """Connect the agent, its world, and everything around it."""
        settings, thread = self.settings, self.thread
        earlier = earlier_evictions(settings.state / JOURNAL, self.now_us() - settings.most_within_us)
        self.brakes = Brakes(settings, lambda: self.known.is_switched_off, earlier)
        figures = GuardFigures(settings.node, self.cgroups, self._procfs)
        self.world = GuardWorld(settings.node, self.cgroups, figures, thread, self._crossed)
        self._open.callback(self.world.memory_watch.close)
        self._background = self._keep(Background(self.loop, "guard"))
        explaining = DecisionExplainer(self.config.eviction, thread, self._background, self._journal)
        self.decisions = Decisions(self.world, self.brakes, explaining, thread, self._crossed)
        self._run_agent(self.config, self.world, self.decisions.take)
        self.pods = GuardedPods(self.known, self.world, self.driver, deliver=self.deliver, journal=self._journal)
        self.evictions = Evictions(
            self.world, self.pods, self.brakes, thread, deliver=self.deliver, journal=self._journal
        )
        self._changes = Debounce(self.loop, _SETTLE_SECONDS, self._changes_settled)
        self._is_unsaved = False

    # ---- life cycle ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until shutdown, or until the kubelet's settings change."""
        self._run_until_stopped(self._stop)
        self.close()
        stop_at_once()

    def start(self) -> None:
        """Start watching and deciding."""
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
        self.kubelet.ask()
        if self._sender is not None and self.settings.enforce:
            self.evictions.rehearse(self.loop, self._sender)
        self._undisturbed.begin()

    def close(self) -> None:
        """Release everything; the next guard continues unfinished evictions."""
        self._journal(Kind.WATCHING, because=GuardMode(self.settings.enforce, self._mode.held_back, ended=True))
        self._write_status()
        self._release()
        self._undisturbed.end()

    def serve_metrics(self, host: str, port: int) -> int:
        """Serve metrics; return the port, in case 0 was requested."""
        metrics = GuardMetrics(self.status)
        self.journal.listen(metrics.heard)
        server = HttpServer(self.loop, metrics.answer, self.note, f"podqos/{__version__}")
        self._open.callback(server.close)
        return server.listen_tcp(host, port)

    def _claim(self) -> None:
        """Create the directories, and make sure that no other guard uses this run directory."""
        for folder in (self.settings.state, self.settings.run):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                what = f"{folder} cannot be created: {error.strerror} (choose others: "
                raise HostError(what + naming("state") + ", " + naming("run_dir") + ")") from error
        lock = os.open(self.settings.run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._open.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"{self.settings.run}: another guard is running (choose another with "
            raise HostError(what + naming("run_dir") + ")") from None

    def _protect(self, procfs: Procfs) -> None:
        """Find the kubelet's cgroups, and protect the guard itself as far as the machine allows."""
        self._procfs, capabilities = procfs, detect(procfs)
        self.cgroups = find_kubepods(cgroups_of(self.settings, capabilities.version, procfs), procfs)
        self.config = agent_config(self.settings, self.cgroups.version, procfs)
        self._see_processes()
        self._protection = AgentProtection(self.settings, self.cgroups, capabilities, procfs, self._lacks)
        self._protection.begin()
        self._open.callback(self._protection.end)

    def _see_processes(self) -> None:
        """Refuse to enforce where no pod can be killed; in shadow mode, say so before somebody enforces."""
        what = why_no_signals()
        if not what and self.cgroups.hides_processes():
            what = "the processes of pods cannot be seen and killed from this container (give its pod hostPID: true)"
        if what and self.settings.enforce:
            raise HostError(what)
        if what:
            self._lacks(what)

    def _open_acting(self, cluster: Cluster | None) -> None:
        """Prepare evictions; an earlier guard's evictions are continued in any case."""
        intents = Intents(self.settings.run / "evictions")
        self._sender: Sender | None = None
        if cluster is None or not (self.settings.enforce or any(intents.left())):
            return
        self._sender = Sender(self.loop, Writer(cluster.client))
        lifeline: Lifeline | None = None
        try:
            lifeline = self._keep(Lifeline())
        except HostError as error:
            self._lacks(str(error))
        acting = Evictor(
            self.loop,
            self.cgroups,
            Instruments(self._sender, intents, lifeline),
            kill_when=self.settings.kill_when,
            tell=self.evictions.told,
            is_falling=self.world.is_falling,
        )
        self.evictions.carry_out_with(self._keep(acting), self._crossed)

    def _listen(self) -> None:
        """Listen for the kernel's OOM kills and for pressure."""
        self._journal_kernel_kills(self.cgroups, self.world.pods.values, "the kernel's OOM kills are not detected")
        files = [self._procfs.root / "pressure" / "memory"]
        if self.cgroups.version is CgroupVersion.V2:
            files.append(self.cgroups.folder(self.cgroups.own) / "memory.pressure")
        for file in files:
            watch = PressureWatch(self.loop, file, _STALL_US, _WINDOW_US, self.world.memory_watch.look)
            self._open.callback(watch.close)

    def _warm_up(self) -> None:
        """Run every step of a decision once, without side effects, so that its memory pages stay resident."""
        tight = Quantity.of_units(1 << 62, "BinarySI")
        thresholds = tuple(
            Threshold(threshold.signal, ThresholdValue(tight))
            for threshold in self.config.eviction.thresholds
            if threshold.is_hard
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
        self.decisions.settle(self.journal.write)

    def _handle(self, now_us: int, event: Event) -> None:
        held_back = self.brakes.held_back(now_us) or ""
        if held_back != self.driver.config.held_back or self.driver.config.shadow != bool(held_back):
            self.driver.config = replace(self.config, shadow=bool(held_back), held_back=held_back)
        self.decisions.begin(self.driver.state, now_us)
        super()._handle(now_us, event)

    def _crossed(self) -> None:
        """Decide at once: memory is short."""
        self._look(MemoryNotified())

    def _wake(self) -> None:
        self._look(Woken())

    def _look(self, event: MemoryNotified | Woken) -> None:
        """Let the agent check the current pods."""
        noticed_us = self.now_us()
        self.pods.refresh()
        self.world.noticed_us = noticed_us
        self.deliver(event)

    def _journal(self, kind: Kind, pod: str | None = None, by: By = By.GUARD, because: Because | None = None) -> None:
        self.journal.write(Entry(self.now_us(), self.settings.node, kind, pod, None, by, because))

    def _check_mode(self) -> None:
        """Record a change of mode; check again when evictions are no longer blocked."""
        held_back = self.brakes.held_back(self.now_us())
        mode = GuardMode(self.settings.enforce, "" if held_back in _FOR_A_MOMENT else str(held_back))
        if mode == self._mode:
            return
        self._mode = mode
        self._journal(Kind.WATCHING, because=mode)
        if not mode.held_back and self.driver.state.manager.thresholds_met:
            self._crossed()

    # ---- pods and the kubelet ------------------------------------------------------------------------------------

    def _pods_changed(self) -> None:
        self.known.heard()
        self.evictions.seen(self.known.take())
        self._changes.heard()

    def _changes_settled(self) -> None:
        self._is_unsaved = True
        self.pods.refresh()
        self._check_mode()
        self.kubelet.seen(self.known.kubelet_says)

    def _begin_anew(self, settings: GuardSettings) -> None:
        self.note("the kubelet's settings have changed: the guard restarts with the new ones")
        self.newer = settings
        self.loop.stop()

    def _stop(self) -> None:
        self.newer = None
        self.loop.stop()

    # ---- now and then --------------------------------------------------------------------------------------------

    def _every_second(self) -> None:
        self.journal.sync()
        self._check_mode()
        self._collect_garbage()

    def _save(self) -> None:
        """Save the known pods, in case the server is unavailable at the next start."""
        if self._is_unsaved:
            self._is_unsaved = False
            self._background.run(self.known.save, lambda _result: None)

    def _write_status(self) -> None:
        try:
            replace_file(self.settings.run / FILE, msgspec.json.encode(self.status()))
        except OSError as error:
            self.note(f"{self.settings.run / FILE}: {error.strerror}")

    def status(self) -> GuardStatus:
        """Return the guard's status."""
        parts = StatusParts(
            settings=self.settings,
            thread=self.thread,
            driver=self.driver,
            world=self.world,
            pods=self.pods,
            brakes=self.brakes,
            decisions=self.decisions,
            evictions=self.evictions,
        )
        return guard_status(parts, self._mode, self.started_us, self._unprotected)

    def _lacks(self, what: str) -> None:
        self._unprotected.append(what)
        self.note(what)
