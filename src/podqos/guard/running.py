"""A running guard: the agent over a kubelet's node, on one thread.

    watch of pods ──► what is known ─► PodAdopted, PodDeleted ─┐
    kernel, clock ──► memory crossed a level ──────────────────┼─► agent ─► evictions (``acting``)
    kmsg, statuses ─► what kubelet and kernel did ─────────┐   └──────┬──► journal
                                                           └──────────┘

Everything that may block is done on other threads: the watch, requests, the disk. Whether a decision is carried out or
only written down is asked anew for each (``_held_back``).
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import resource
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.agent import handle
from podqos.agent.driver import Driver
from podqos.agent.events import (
    Event,
    MemoryNotified,
    Observed,
    PodAdopted,
    PodDeleted,
    PodStopped,
    Woken,
)
from podqos.agent.journal import By, Entry, Kind, decode
from podqos.agent.reasons import EvictionReport, GuardMode, SeenEvicted
from podqos.agent.state import AgentState, Looking, Resting, Stage
from podqos.cluster.cluster import Cluster
from podqos.cluster.writing import Writer
from podqos.errors import HostError, InputError
from podqos.eviction.thresholds import Threshold, ThresholdValue
from podqos.guard.acting import Acting, Did, Noted
from podqos.guard.eviction import Answered, Outcome, Victim
from podqos.guard.explaining import what_would_have_saved
from podqos.guard.figures import GuardFigures, WatchedPod
from podqos.guard.intents import Intents
from podqos.guard.known_pods import GuardedPod, KnownPods, never_evicted
from podqos.guard.metrics import GuardMetrics
from podqos.guard.sender import Reply, Sender
from podqos.guard.settings import STOP_FILE, GuardSettings, agent_config, cgroups_of
from podqos.guard.status import FILE, ApiStatus, ExcludedPod, GuardStatus, RateLimit, SignalStatus
from podqos.guard.tree import find_kubepods, pod_at, pod_paths
from podqos.guard.world import GuardWorld, Reaction
from podqos.host.api.http_server import HttpServer
from podqos.host.linux.background import Background
from podqos.host.linux.capabilities import detect
from podqos.host.linux.kmsg import KernelLog
from podqos.host.linux.loop import Loop, Timer
from podqos.host.linux.notes import Notes, words
from podqos.host.linux.procfs import PAGE_BYTES, Procfs
from podqos.host.linux.psi import pressure_trigger
from podqos.host.linux.stopping import on_stop
from podqos.host.node.kernel_kills import oom_kill_entry
from podqos.host.node.protection import Protection
from podqos.host.storage.journal_file import JournalFile
from podqos.host.storage.syncing import Syncing
from podqos.host.storage.writing import replace_file
from podqos.model.quantity import Quantity
from podqos.qos.cgroup_paths import cgroup_uid
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.version import __version__

_SECOND_US = 1_000_000
_SWITCH_SECONDS = 0.001
_GARBAGE = 20_000
_EVERY_SECONDS = 1.0
_STATUS_SECONDS = 5.0
_SAVE_SECONDS = 5.0
_SETTLE_SECONDS = 0.02
_EXPLAIN_SECONDS = 0.3
_EXPLAINED_AGAIN_US = 60 * _SECOND_US
_REFUSED_US = 60 * _SECOND_US
_REHEARSAL_SECONDS = 300.0
_OK, _REFUSALS = 200, frozenset({401, 403})
_STALL_US, _WINDOW_US = 10_000, 500_000
_REACTIONS_KEPT = 1000
_TAIL_BYTES = 1 << 20
_PASSING = frozenset({"cool-down", "rate limit"})
# What agents note of pods that come and go is the kubelet's doing.
_NOT_OURS = frozenset({Kind.ADOPTED, Kind.STOPPED, Kind.CLEANED_UP})


class _Decided(Struct, frozen=True):
    """An eviction that was decided, with all that the agent knew."""

    entry: Entry
    before: AgentState
    now_us: int


class Guard:
    """A guard beside a kubelet."""

    def __init__(self, settings: GuardSettings, cluster: Cluster | None, say: Callable[[str], None]) -> None:
        self.settings = settings
        self._cluster = cluster
        self._notes = Notes(say, "the guard")
        self.note = self._notes.add
        self.loop = Loop()
        self.loop.failed = self._notes.add_error
        self._started_us = (time.time_ns() - time.monotonic_ns()) // 1000
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
        procfs = Procfs()
        capabilities = detect(procfs)
        self.cgroups = find_kubepods(cgroups_of(settings, capabilities.version, procfs), procfs)
        self.config = agent_config(settings, self.cgroups.version, procfs)
        self._protection = Protection(settings, self.cgroups, capabilities, procfs, self._lacks)
        self._protection.begin()
        self._open.callback(self._protection.end)
        self._syncing = self._open.enter_context(contextlib.closing(Syncing()))
        self._background = self._open.enter_context(contextlib.closing(Background(self.loop, "guard")))
        self.journal = JournalFile(settings.state / "journal.jsonl", self.note, sync=self._syncing.later)
        self._open.callback(self.journal.close)
        self._evicted_us = deque(self._earlier_evictions())
        """When pods were evicted, as far as the rate limit needs to know."""
        self.known = KnownPods(self._cluster, settings.node, settings.state / "pods.json", self.note)
        self._open.callback(self.known.close)
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
        self._procfs = procfs
        self._waiting: deque[Event] = deque()
        self._is_delivering = False
        self._timer: Timer | None = None
        self._again: Timer | None = None
        self._settling: Timer | None = None
        self._entries: deque[Entry] = deque()
        """What is yet to be written."""
        self._decided: list[_Decided] = []
        self._explained: dict[str, int] = {}
        self._paths: Mapping[str, str] = {}
        """The cgroups of pods, when they were last looked at."""
        self._seen_evicted: set[str] = set()
        self._refused_until_us = 0
        self._mode = GuardMode(settings.enforce, "not begun")
        self._reactions: deque[int] = deque(maxlen=_REACTIONS_KEPT)
        self._evictions = 0
        self._unknown = 0
        self._is_unsaved = False
        self._switch_seconds = sys.getswitchinterval()
        self._open_acting()

    # ---- life cycle ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Guard until told to stop."""
        on_stop(self.loop, self.loop.stop)
        self.start()
        self.loop.run()
        self.close()

    def start(self) -> None:
        """Begin to watch and to decide."""
        self.known.start()
        self.loop.watch(self.known.fileno(), self._pods_changed)
        self._listen()
        self.driver.start(self.now_us())
        self._refresh()
        self._check_mode()
        self.deliver(Woken())
        self._warm_up()
        self._protection.lock_what_is_used()
        self.loop.call_every(_EVERY_SECONDS, self._every_second)
        self.loop.call_every(_STATUS_SECONDS, self._write_status)
        self.loop.call_every(_SAVE_SECONDS, self._save)
        self._rehearse()
        # Another thread lets this one go on that soon.
        sys.setswitchinterval(_SWITCH_SECONDS)
        # A collection takes longer than a reaction may; it runs when nothing happens (``_every_second``).
        gc.disable()
        gc.collect()
        gc.freeze()

    def close(self) -> None:
        """Let everything go; what was begun is finished by the next guard."""
        self._journal(Kind.WATCHING, because=GuardMode(self.settings.enforce, self._mode.held_back, ended=True))
        self._write_status()
        self._open.close()
        sys.setswitchinterval(self._switch_seconds)
        gc.unfreeze()
        gc.enable()

    def serve_metrics(self, host: str, port: int) -> int:
        """Serve metrics from here on; return the port, for when 0 was requested."""
        metrics = GuardMetrics(self.status)
        self.journal.listen(metrics.heard)
        server = HttpServer(self.loop, metrics.answer, self.note, f"podqos/{__version__}")
        self._open.callback(server.close)
        return server.listen_tcp(host, port)

    def now_us(self) -> int:
        """Return the time for the journal: the wall clock's at the start, monotonic from there on."""
        return self._started_us + time.monotonic_ns() // 1000

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

    def _earlier_evictions(self) -> Iterator[int]:
        """Yield when earlier guards evicted pods, so that a guard that is restarted is held to the same rate."""
        file = self.settings.state / "journal.jsonl"
        since = self.now_us() - self.settings.most_within_us
        try:
            with file.open("rb") as stream:
                stream.seek(max(0, file.stat().st_size - _TAIL_BYTES))
                tail = stream.read()
        except OSError:
            return
        first = tail.find(b"\n") + 1 if len(tail) == _TAIL_BYTES else 0
        for line in tail[first:].splitlines():
            with contextlib.suppress(InputError):
                for entry in decode(line):
                    if entry.kind is Kind.EVICTED and entry.by is By.GUARD and entry.time_us > since:
                        yield entry.time_us

    def _open_acting(self) -> None:
        """Prepare to evict; what an earlier guard had begun is finished in any case."""
        intents = Intents(self.settings.run / "evictions")
        self.acting: Acting | None = None
        if self._cluster is None or not (self.settings.enforce or any(intents.left())):
            return
        self._sender = Sender(self.loop, Writer(self._cluster.client))
        self.world.acting = self.acting = Acting(
            self.loop,
            self.cgroups,
            self._procfs,
            self._sender,
            intents,
            kill_when=self.settings.kill_when,
            tell=self._told,
            is_falling=self.world.is_falling,
        )
        self._open.callback(self.acting.close)
        self.acting.take_up()
        self.world.evicted |= self.acting.busy.keys()

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
            trigger = pressure_trigger(file, _STALL_US, _WINDOW_US)
            if trigger is not None:
                self._open.callback(os.close, trigger)
                self.loop.watch(trigger, self.world.memory_watch.look, select.EPOLLPRI)

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

    def deliver(self, event: Event) -> None:
        """Deliver an event to the agent, and everything that follows from it."""
        self._waiting.append(event)
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self._waiting:
                self._deliver_one(self._waiting.popleft())
        finally:
            self._is_delivering = False
            self.world.noticed_us = None
            self._set_timer()
            # Only now: a disk that is busy, as it is when memory is short, is not waited for before a kill.
            while self._entries:
                self.journal.write(self._entries.popleft())
        if self._decided:
            self._follow_up()

    def _deliver_one(self, event: Event) -> None:
        now_us, before = self.now_us(), self.driver.state
        held_back = self._held_back(now_us)
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
        self.world.noticed_us = self.now_us()
        self._refresh()
        self.deliver(MemoryNotified())

    def _write(self, entry: Entry) -> None:
        """Write what the agent notes: by the guard, and without what is the kubelet's doing."""
        if entry.kind in _NOT_OURS and not self._is_of_victim(entry):
            return
        own = replace(entry, by=By.GUARD) if entry.by is By.KUBELET else entry
        if own.kind is Kind.EVICTED:
            self._evicted_us.append(own.time_us)
            self._evictions += 1
        if own.kind in {Kind.EVICTED, Kind.WOULD_EVICT}:
            self.world.because = own.because
            self._decided.append(_Decided(own, self.driver.state, own.time_us))
        self._entries.append(own)

    def _is_of_victim(self, entry: Entry) -> bool:
        is_evicted = any(each.pod == entry.pod for each in self.world.reactions.values())
        return entry.kind is Kind.STOPPED and is_evicted

    def _journal(self, kind: Kind, pod: str | None = None, by: By = By.GUARD, because: object = None) -> None:
        self.journal.write(Entry(self.now_us(), self.settings.node, kind, pod, None, by, because))  # type: ignore[arg-type]

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wake_us = self.driver.wake_us
        if wake_us is not None:
            seconds = max(0.0, (wake_us - self.now_us()) / 1e6)
            self._timer = self.loop.call_after(seconds, self._regular_look)

    def _regular_look(self) -> None:
        self.world.noticed_us = self.now_us()
        self._refresh()
        self.deliver(Woken())

    # ---- whether it is done --------------------------------------------------------------------------------------

    def _held_back(self, now_us: int) -> str:
        """Return why nothing is evicted now; empty where it would be."""
        settings = self.settings
        if not settings.enforce:
            return "shadow"
        if (settings.run / STOP_FILE).exists():
            return "stop file"
        if self.known.is_switched_off:
            return "node annotation"
        if now_us < self._refused_until_us:
            return "refused by the API server"
        while self._evicted_us and self._evicted_us[0] <= now_us - settings.most_within_us:
            self._evicted_us.popleft()
        if len(self._evicted_us) >= settings.most:
            return "rate limit"
        if self._evicted_us and now_us - self._evicted_us[-1] < settings.cool_down_us:
            return "cool-down"
        return ""

    def _free_again_us(self, now_us: int) -> int | None:
        """Return when a rate limit or a cool-down ends."""
        match self._held_back(now_us):
            case "cool-down":
                return self._evicted_us[-1] + self.settings.cool_down_us
            case "rate limit":
                return self._evicted_us[-self.settings.most] + self.settings.most_within_us
            case _:
                return None

    def _check_mode(self) -> None:
        """Write down a change of mode; look again where nothing holds decisions back any more."""
        held_back = self._held_back(self.now_us())
        mode = GuardMode(self.settings.enforce, "" if held_back == "cool-down" else held_back)
        if mode == self._mode:
            return
        self._mode = mode
        self._journal(Kind.WATCHING, because=mode)
        if not mode.held_back and self.driver.state.manager.thresholds_met:
            self._crossed()

    def _follow_up(self) -> None:
        """See to what follows from decisions: look again when they can be carried out, and explain them."""
        decided, self._decided = self._decided, []
        free_us = self._free_again_us(self.now_us())
        if free_us is not None and any(each.entry.kind is Kind.WOULD_EVICT for each in decided):
            if self._again is not None:
                self._again.cancel()
            self._again = self.loop.call_after(max(0.0, (free_us - self.now_us()) / 1e6), self._crossed)
        for each in decided:
            last_us = self._explained.get(each.entry.pod or "")
            if last_us is None or each.now_us - last_us > _EXPLAINED_AGAIN_US or each.entry.kind is Kind.EVICTED:
                self._explained[each.entry.pod or ""] = each.now_us
                self._explain_later(each)
        self._explained = {pod: us for pod, us in self._explained.items() if us > self.now_us() - _EXPLAINED_AGAIN_US}

    def _explain_later(self, decided: _Decided) -> None:
        observation, before, pod = self.world.observed, decided.before, decided.entry.pod
        pods = before.active_pods
        uid = next((each.metadata.uid for each in pods if each.key == pod), "")

        def work() -> object:
            return what_would_have_saved(
                self.config.eviction, before.manager, decided.now_us, observation, pods=pods, uid=uid
            )

        def done(result: object) -> None:
            if isinstance(result, Exception):
                self.note(f"what would have saved {pod} is not known: {words(result)}")
            else:
                self._journal(Kind.EXPLAINED, pod, because=result)

        self.loop.call_after(_EXPLAIN_SECONDS, lambda: self._background.run(work, done))

    def _rehearse(self) -> None:
        """Ask the server whether it would take an eviction, without any effect, before memory is short."""
        if self.acting is None or not self.settings.enforce:
            return
        pod = next((each.pod for each in self.world.pods.values() if not each.pod.is_critical), None)
        if pod is not None:
            self._sender.rehearse(
                self.world.victim(pod, "podqos guard would be allowed to evict this pod"), self._rehearsed
            )
        self.loop.call_after(_REHEARSAL_SECONDS if pod is not None else _EVERY_SECONDS, self._rehearse)

    def _rehearsed(self, reply: Reply) -> None:
        if isinstance(reply, Answered) and reply.status in _REFUSALS:
            self.note(f"the API server would refuse evictions: {reply.message}")
            self._refused_until_us = self.now_us() + 2 * round(_REHEARSAL_SECONDS * _SECOND_US)
        elif isinstance(reply, Answered) and reply.status == _OK:
            self._refused_until_us = 0
        self._check_mode()

    # ---- what comes of evictions ---------------------------------------------------------------------------------

    def _told(self, victim: Victim, noted: Noted) -> None:
        """Hear how far an eviction is."""
        since_us = round(noted.seconds * 1e6)
        begun = Reaction(f"{victim.namespace}/{victim.name}", self.now_us() - since_us)  # by another guard
        reaction = self.world.reactions.setdefault(victim.uid, begun)
        at_us = reaction.decided_us + since_us
        match noted.what:
            case Did.HELD:
                reaction.held_us = at_us
            case Did.KILLED if reaction.killed_us is None:
                reaction.killed_us = at_us
                if reaction.noticed_us is not None:
                    self._reactions.append(at_us - reaction.noticed_us)
            case Did.ANSWERED if reaction.answered_us is None:
                reaction.answered_us = at_us
            case Did.GONE:
                reaction.gone_us = at_us
                self.deliver(PodStopped(victim.uid))
            case Did.FAILED:
                self.note(f"{reaction.pod}: {noted.text}")
            case Did.OVER:
                self._over(victim, reaction, noted)
            case _:
                pass

    def _over(self, victim: Victim, reaction: Reaction, noted: Noted) -> None:
        """Write down what came of an eviction; a pod that is still there is a candidate again."""
        self.deliver(PodStopped(victim.uid))
        del self.world.reactions[victim.uid]
        because = EvictionReport(
            noted.outcome.value if noted.outcome is not None else "",
            noted.text,
            reaction.noticed_us,
            reaction.decided_us,
            reaction.held_us,
            reaction.killed_us,
            reaction.gone_us,
            reaction.answered_us,
            reaction.major_faults,
        )
        self._journal(Kind.REPORTED, reaction.pod, because=because)
        if noted.outcome is not Outcome.EVICTED:
            self.note(f"{reaction.pod} was not evicted: {because.outcome} {noted.text}".rstrip())
            self.world.evicted.discard(victim.uid)
            self.world.pods.pop(victim.uid, None)
            if noted.outcome is Outcome.REFUSED:
                self._refused_until_us = self.now_us() + _REFUSED_US
        self._paths = {}
        self._refresh()

    # ---- pods ----------------------------------------------------------------------------------------------------

    def _pods_changed(self) -> None:
        """Wait a moment: changes often come in groups."""
        self.known.heard()
        if self.acting is not None and (busy := self.acting.busy):
            pods = self.known.take()
            for pod in (pods[uid] for uid in busy if uid in pods):
                self.acting.seen(pod.metadata.uid, pod.status.phase, pod.status.reason)
        if self._settling is None or self._settling.callback is None:
            self._settling = self.loop.call_after(_SETTLE_SECONDS, self._changes_settled)

    def _changes_settled(self) -> None:
        self._settling = None
        self._is_unsaved = True
        self._refresh()
        self._check_mode()

    def _refresh(self) -> None:
        """Tell the agent which pods there are: those that the API server knows, with the cgroups of this moment."""
        before, known, paths = self.world.known, self.known.take(), dict(pod_paths(self.cgroups))
        if known is before and paths == self._paths:
            return
        self.world.known, self._paths = known, dict(paths)
        for uid, watched in list(self.world.pods.items()):
            pod = known.get(uid)
            is_there = paths.get(cgroup_uid(watched.pod)) == watched.cgroup
            if is_there and self._is_dying(uid):
                continue  # what it holds has yet to be freed, whatever the server says
            if not is_there or pod is None or pod.is_over:
                self._leave(uid, watched)
            elif pod is not watched.pod:
                if pod.spec != watched.pod.spec and uid not in self.world.reactions:
                    self._leave(uid, watched)
                else:
                    watched.pod = pod
                    watched.found(pod_at(self.cgroups, uid, watched.cgroup))
        for uid, pod in known.items():
            path = paths.pop(cgroup_uid(pod), None)
            if path is not None and uid not in self.world.pods and self._is_candidate(uid, pod):
                self._adopt(uid, pod, path)
            if pod.is_evicted and uid not in self._seen_evicted:
                self._seen_evicted.add(uid)
                if uid not in before or uid in self.world.evicted:
                    continue  # so it was before, or the guard did it
                because = SeenEvicted(pod.status.reason, pod.status.message)
                self._journal(Kind.EVICTED, pod.key, By.KUBELET, because)
        self._unknown = len(paths)
        self.world.evicted &= known.keys()
        self._seen_evicted &= known.keys()

    def _is_dying(self, uid: str) -> bool:
        """Whether a pod is held or killed and has processes left."""
        reaction = self.world.reactions.get(uid)
        if reaction is None or reaction.gone_us is not None:
            return False
        return reaction.held_us is not None or reaction.killed_us is not None

    def _is_candidate(self, uid: str, pod: GuardedPod) -> bool:
        """Whether the agent is to know a pod: it may be evicted, or is one that is spared."""
        is_there = not pod.is_over and uid not in self.world.evicted
        return is_there and (pod.is_critical or not never_evicted(pod, self.settings.node))

    def _adopt(self, uid: str, pod: GuardedPod, path: str) -> None:
        self.world.pods[uid] = WatchedPod(pod, pod_at(self.cgroups, uid, path))
        self.deliver(PodAdopted(pod))
        if uid not in self.driver.state.pods and not self._is_delivering:
            # The agent could not take it in, and has said why: it is no candidate.
            del self.world.pods[uid]

    def _leave(self, uid: str, watched: WatchedPod) -> None:
        del self.world.pods[uid]
        self.cgroups.forget(watched.cgroup)
        record = self.driver.state.pods.get(uid)
        if record is not None:
            self.deliver(PodStopped(uid) if record.stage is Stage.STOPPING else PodDeleted(uid))

    def _hear_kernel(self, log: KernelLog) -> None:
        for kill in log.kills():
            entry = oom_kill_entry(kill, self.now_us(), self.settings.node, self.cgroups, self.world.pods.values())
            if entry is not None:
                self.journal.write(entry)

    # ---- now and then --------------------------------------------------------------------------------------------

    def _every_second(self) -> None:
        self.journal.sync()
        self._check_mode()
        if gc.get_count()[0] > _GARBAGE and isinstance(self.driver.state.loop, Resting):
            gc.collect()

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
            unknown_cgroups=self._unknown,
            api=ApiStatus(self.known.trouble, self.known.synced_us, self.known.is_from_disk),
            evictions=self._evictions,
            limit=self._limit(),
            stop_file=(self.settings.run / STOP_FILE).exists(),
            node_annotation=self.known.is_switched_off,
            unprotected=tuple(self._unprotected),
            reactions_us=tuple(self._reactions),
            notes=tuple(self._notes.counts),
            cpu_seconds=used.ru_utime + used.ru_stime,
            rss_bytes=_resident_bytes(),
        )

    def _limit(self) -> RateLimit:
        settings, now_us = self.settings, self.now_us()
        recent = sum(each > now_us - settings.most_within_us for each in self._evicted_us)
        cool_us = self._evicted_us[-1] + settings.cool_down_us if self._evicted_us else 0
        return RateLimit(settings.most, settings.most_within_us, recent, cool_us if cool_us > now_us else None)

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
