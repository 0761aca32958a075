"""The shell of an agent on a real machine: what a node and a guard next to a kubelet have in common.

    what happens ─► deliver ─► agent ─► commands ─► world
    clock ────────►     │        └────► journal
    kmsg ──────────────────► OOM kills ─►┘

It owns the agent's thread, whatever is open until the end, the journal, and the agent itself, which hears of one event
at a time. Where its pods come from, and what is done about them, is up to the node (``host.node``) and the guard
(``guard``).
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from podqos.agent.driver import Driver, World
from podqos.agent.journal import Entry
from podqos.agent.port import Event, Woken
from podqos.agent.state import AgentConfig, Resting
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.kmsg import KMSG, KernelLog
from podqos.host.linux.loop import Loop
from podqos.host.linux.notes import OnceNotes
from podqos.host.linux.stopping import on_stop
from podqos.host.linux.undisturbed import Undisturbed, journal_clock
from podqos.host.shell.agent_thread import AgentThread
from podqos.host.shell.delivery import Delivery
from podqos.host.shell.kernel_kills import RunningPod, oom_kill_entry
from podqos.host.storage.journal_file import JournalFile
from podqos.host.storage.syncing import SyncQueue

_Resource = TypeVar("_Resource", bound="_Closable")
JOURNAL = "journal.jsonl"
"""In the state directory."""


class _Closable(Protocol):
    def close(self) -> None: ...


class AgentShell(ABC):
    """An agent on this machine, and the thread it runs on."""

    driver: Driver
    journal: JournalFile
    _delivery: Delivery

    def __init__(self, node: str, say: Callable[[str], None], name: str) -> None:
        """``say`` prints a line; ``name`` is what goes on after an internal error, such as "the node"."""
        self._node, self._say = node, say
        self.thread = AgentThread(Loop(), OnceNotes(say, name), journal_clock())
        self.loop, self.now_us = self.thread.loop, self.thread.now_us
        self.loop.failed = self.thread.notes.add_error
        self._undisturbed = Undisturbed()
        self._open = contextlib.ExitStack()
        """What to close at the end, last to first."""
        self._open.callback(self.loop.close)
        self._syncing = self._keep(SyncQueue())

    # ---- life cycle ----------------------------------------------------------------------------------------------

    @abstractmethod
    def start(self) -> None:
        """Begin to watch and to decide."""

    def _run_until_stopped(self, stop: Callable[[], None]) -> None:
        """Run; signals that ask to end call ``stop``, which ends the loop now or later."""
        on_stop(self.loop, stop)
        self.start()
        self.loop.run()

    @contextlib.contextmanager
    def _opening(self) -> Iterator[None]:
        """Close everything again if not all that it takes can be opened."""
        try:
            yield
        except BaseException:
            self._release()
            raise

    def _keep(self, resource: _Resource) -> _Resource:
        """Return what is to be closed at the end."""
        return self._open.enter_context(contextlib.closing(resource))

    def _release(self) -> None:
        """Close whatever is open."""
        self._open.close()

    # ---- problems and the journal --------------------------------------------------------------------------------

    @property
    def notes(self) -> Mapping[str, int]:
        """Problems, and how often they occurred; each is printed once."""
        return self.thread.notes.counts

    def note(self, text: str) -> None:
        """Print a problem once, on one line, and count how often it occurs."""
        self.thread.note(text)

    def _open_journal(self, state: Path) -> None:
        """Open the journal in the state directory."""
        self.journal = self._keep(JournalFile(state / JOURNAL, self.note, sync=self._syncing.later))

    def _journal_kernel_kills(self, cgroups: Cgroups, pods: Callable[[], Iterable[RunningPod]], lost: str) -> None:
        """Write the kernel's OOM kills into the journal from now on; ``lost`` says what is missing without."""
        try:
            log = self._keep(KernelLog())
        except OSError as error:
            self.note(f"{KMSG}: {error.strerror}: {lost}")
            return

        def hear() -> None:
            for kill in log.kills():
                entry = oom_kill_entry(kill, self.now_us(), self._node, cgroups, pods())
                if entry is not None:
                    self.journal.write(entry)

        self.loop.watch(log.fileno(), hear)

    # ---- the agent -----------------------------------------------------------------------------------------------

    def _run_agent(self, config: AgentConfig, world: World, write: Callable[[Entry], object]) -> None:
        """Put an agent into its world; ``write`` takes what it notes."""
        self.driver = driver = Driver(config, world, write)
        self._delivery = Delivery(
            self.loop,
            self.now_us,
            handle=lambda event: self._handle(self.now_us(), event),
            settled=self._settled,
            wake_us=lambda: driver.wake_us,
            wake=self._wake,
        )

    def deliver(self, event: Event) -> None:
        """Let the agent hear of an event, and of everything that follows from it."""
        self._delivery.deliver(event)

    def _handle(self, now_us: int, event: Event) -> None:
        """Let the agent answer one event; must not raise."""
        try:
            self.driver.deliver(now_us, event)
        except Exception as error:  # noqa: BLE001 - the other events still count
            self._failed(event, error)

    def _failed(self, _event: Event, error: Exception) -> None:
        """Say that the agent could not handle an event."""
        self.thread.notes.add_error(error)

    @abstractmethod
    def _settled(self) -> None:
        """Do what is left to do when an event, and all that followed from it, is handled."""

    def _wake(self) -> None:
        """Wake the agent at the time that it asked for."""
        self.deliver(Woken())

    def _collect_garbage(self) -> None:
        """Collect garbage while nothing happens."""
        if isinstance(self.driver.state.loop, Resting):
            self._undisturbed.collect()
