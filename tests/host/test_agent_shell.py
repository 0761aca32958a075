"""What a node and a guard have in common: one thread, and whatever goes wrong on it ends nothing else."""

from __future__ import annotations

import os

import pytest

from podqos.agent.journal import By, Entry, Kind, decode
from podqos.agent.port import MemoryNotified, Woken
from podqos.errors import HostError
from podqos.host.linux.kmsg import KernelKill
from podqos.host.shell import agent_shell
from podqos.host.shell.agent_shell import AgentShell


class Shell(AgentShell):
    """A shell with nothing around its agent."""

    def __init__(self, folder):
        self.said, self.settled = [], 0
        super().__init__("n", self.said.append, "the test")
        self._open_journal(folder)

    def start(self): ...

    def _settled(self):
        self.settled += 1

    def close(self):
        self._release()


@pytest.fixture
def shell(tmp_path):
    made = Shell(tmp_path)
    yield made
    if not made.loop._poll.closed:
        made.close()


def test_what_cannot_be_set_up_leaves_nothing_open(shell):
    closed = []
    shell._open.callback(closed.append, "opened before")
    with pytest.raises(HostError, match="another one"), shell._opening():
        raise HostError("another one is running")
    assert closed == ["opened before"]
    assert shell.loop._poll.closed


def test_an_event_that_the_agent_cannot_handle_is_said_and_the_next_one_is_handled(shell, monkeypatch):
    shell._run_agent(None, None, shell.journal.write)
    handled = []

    def deliver(_now_us, event):
        handled.append(type(event))
        if len(handled) == 1:
            raise ValueError("odd figures")

    monkeypatch.setattr(shell.driver, "deliver", deliver)
    shell.deliver(MemoryNotified())
    shell.deliver(Woken())
    assert handled == [MemoryNotified, Woken]
    assert shell.settled == 2
    (said,) = shell.said
    assert said.startswith("internal error: ValueError: odd figures")
    assert said.endswith("the test keeps running")


class Log:
    """A kernel log with two kills: one of a pod, and one of another program."""

    def __init__(self):
        self._event = os.eventfd(1, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self):
        return self._event

    def kills(self):
        os.eventfd_read(self._event)
        return [KernelKill(4711, "c", "/own/pod", f"{own}/pod/c", 100, 0, True) for own in ("/own", "/other")]

    def close(self):
        os.close(self._event)


class Cgroups:
    own = "/own"

    def memory_limit(self, _path):
        return 1 << 20


def test_oom_kills_of_its_own_cgroup_are_written_down_as_the_kernels(shell, tmp_path, monkeypatch):
    monkeypatch.setattr(agent_shell, "KernelLog", Log)
    shell._journal_kernel_kills(Cgroups(), list, "lost")
    shell.loop.step(1)
    (entry,) = decode((tmp_path / "journal.jsonl").read_bytes())
    assert isinstance(entry, Entry)
    assert (entry.node, entry.kind, entry.by, entry.because.used_pages) == ("n", Kind.OOM_KILLED, By.KERNEL, 100)


def test_a_kernel_log_that_cannot_be_read_is_said_with_what_is_lost(shell, monkeypatch):
    def refused():
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(agent_shell, "KernelLog", refused)
    shell._journal_kernel_kills(Cgroups(), list, "kills are not seen")
    assert shell.said == ["/dev/kmsg: Operation not permitted: kills are not seen"]
