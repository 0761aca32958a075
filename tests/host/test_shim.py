"""The shim holds every pod: no request, however wrong, and no process, however hostile, may end or block it."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from podqos.errors import HostError
from podqos.host.runtimes import shim
from podqos.host.runtimes.shim_client import Program, ShimClient


@pytest.fixture
def client(tmp_path) -> Iterator[ShimClient]:
    made = ShimClient(tmp_path)
    made.start(_program("bystander", "sleep", "1000"))
    pid = made.pid
    try:
        yield made
        assert made.pid == pid
        assert "bystander" in made.programs().running
    finally:
        for program in made.programs().running.values():
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
        made.end()


def _program(name: str, *argv: str, **more: object) -> Program:
    return Program(id=name, argv=argv, **{"env": {"PATH": "/bin:/usr/bin"}, "cwd": "/", "entrances": (), **more})


def _until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def _descriptors(client: ShimClient) -> int:
    return len(list(Path(f"/proc/{client.pid}/fd").iterdir()))


@pytest.mark.parametrize(
    "request_",
    [
        b"{", b"null", b"[]", b'"x"', b"{}", b'{"do": 7}', b'{"do": "dance"}', b'{"do": "start"}', b'{"do": "forget"}',
        b'{"do": "start", "id": "x", "argv": [], "env": {}, "cwd": "/", "entrances": [], "mounts": []}',
        b'{"do": "start", "id": "x", "argv": ["\\u0000"], "env": {}, "cwd": "/", "entrances": [], "mounts": []}',
        b'{"do": "start", "id": "x", "argv": ["true"], "env": 7, "cwd": "/", "entrances": [], "mounts": []}',
        b'{"do": "start", "id": "x", "argv": ["true"], "env": {}, "cwd": [], "entrances": 7, "mounts": [1]}',
        b'{"do": "start", "id": "x", "argv": ["true"], "log": {}}',
        b"\xff" * 100, b"[" * 60_000, b" " * 100_000, b'{"do": "list", "x": "' + b"y" * 3_000_000 + b'"',
    ],
)  # fmt: skip
def test_every_request_is_answered_and_what_makes_no_sense_with_a_message(client, request_):
    before = _descriptors(client)
    client._socket.settimeout(300)
    shim.send(client._socket, request_)
    assert msgspec.json.decode(shim.receive(client._socket))["error"]
    assert _descriptors(client) == before


def test_what_the_kernel_does_not_start_is_told_and_leaves_nothing_open(client, tmp_path):
    before = _descriptors(client)
    for more, words in (
        ({"env": {"BIG": "x" * 1_100_000}}, "Argument list too long"),
        ({"cwd": "/nowhere"}, "No such file or directory"),
        ({"entrances": ["/nowhere/cgroup.procs"]}, "No such file or directory"),
    ):
        with pytest.raises(HostError, match=words):
            client.start(_program("wrong", "true", **{"log": str(tmp_path / "log"), **more}))
    _until(lambda: _descriptors(client) == before)


def test_an_environment_larger_than_a_packet_reaches_its_process(client, tmp_path):
    env = {f"V{number}": "x" * 10_000 for number in range(110)}
    client.start(_program("large", "/bin/sh", "-c", "echo ${#V0} ${#V109}", env=env, log=str(tmp_path / "log")))
    _until(lambda: "10000 10000" in (tmp_path / "log").read_text())


def test_a_list_longer_than_a_packet_is_whole(client):
    for number in range(20):
        client.start(_program(f"p{number}", "sleep", "1000", label="x" * 20_000))
    assert len(client.programs().running) == 21


def test_a_command_that_hangs_ends_with_its_whole_process_group_and_leaves_no_descriptor_open(client, tmp_path):
    before = _descriptors(client)
    # The child of a process, and the group that it is in.
    told = f'sleep 1000 & read -r _ _ _ _ group _ < /proc/$!/stat; echo "$! $group" > {tmp_path}/partial'
    script = f"{told}; mv {tmp_path}/partial {tmp_path}/child; exec sleep 1000"
    started, told = 0, []
    for seconds in (1.0, 1.0, 5.0, 25.0):  # on a busy machine some may be killed before they have said anything
        leader = client.start(_program(f"exec:{started}", "/bin/sh", "-c", script, seconds=seconds))
        started += 1
        _until(lambda: len(client.programs().ended) == started)  # noqa: B023 - it is called here and now
        if not (tmp_path / "child").exists():
            continue
        pids = [int(pid) for pid in (tmp_path / "child").read_text().split()]
        told.append(pids[1:] == [leader])
        for pid in (pids[0], leader):
            _until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
        (tmp_path / "child").unlink()
        if len(told) == 2:
            break
    assert told == [True, True], "its child is in its group"
    _until(lambda: _descriptors(client) == before)


def test_a_command_that_ends_while_its_child_does_not_leaves_no_descriptor_open(client, tmp_path):
    before = _descriptors(client)
    client.start(_program("exec:1", "/bin/sh", "-c", f"sleep 1000 & echo $! > {tmp_path}/child", seconds=100))
    _until(lambda: client.programs().ended)
    _until(lambda: _descriptors(client) == before)
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def test_what_stays_silent_is_not_waited_for():
    read, write = os.pipe()
    try:
        assert shim.heard_within(read, 0.05) is None
        os.write(write, b"why")
        os.close(write)
        assert shim.heard_within(read, 10) == "why"
    finally:
        os.close(read)


def test_a_descriptor_beyond_what_select_takes_is_waited_for():
    read, write = os.pipe()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        high = fcntl.fcntl(read, fcntl.F_DUPFD, 2000)
        assert not shim.is_readable(high, 0)
        os.write(write, b"x")
        assert shim.is_readable(high, 10)
        os.close(high)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(read)
        os.close(write)


def test_a_message_of_any_length_arrives_whole_and_leaves_nothing_open():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for size in (1, 1 << 16, (1 << 16) + 1, 5_000_000):
            shim.send(one, b"x" * size)
            assert len(shim.receive(other)) == size
        assert len(list(Path("/proc/self/fd").iterdir())) == before
        one.close()
        assert shim.receive(other) == b""
