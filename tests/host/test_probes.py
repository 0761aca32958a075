"""Probes: they never block the node, never overlap, and whatever goes wrong about one is a failed probe."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
import time
from types import SimpleNamespace

import pytest

from host.virtual_loop import virtual_loop
from podqos.host.linux.loop import Loop
from podqos.host.node.probes import Prober
from podqos.host.runtimes.runtime import ContainerId
from podqos.host.storage.pod_run import (
    ContainerRunSpec,
    ExecAction,
    HTTPGetAction,
    Port,
    Probe,
    TCPSocketAction,
    pod_run,
)
from podqos.serve.certificate import make

_SPEC = ContainerRunSpec("main")


class _World:
    """Notes which commands are run; they never end."""

    def __init__(self) -> None:
        self.runtime = self
        self.executed: list[str] = []
        self.restarted: list[object] = []
        self.error: Exception | None = None

    def execute(self, _start: object, _command: object, token: str, _seconds: float) -> None:
        if self.error is not None:
            raise self.error
        self.executed.append(token)

    def restart_container(self, name: object, _grace_seconds: int) -> None:
        self.restarted.append(name)


@pytest.fixture
def loop():
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def world():
    return _World()


@pytest.fixture
def prober(loop, world):
    world.said = []
    made = Prober(loop, world, world.said.append)
    yield made
    made.close()


@pytest.fixture
def virtual(world):
    """Return a prober of commands alone, and its loop, whose time passes at once."""
    world.said = []
    with virtual_loop() as (loop, _):
        made = Prober(loop, world, world.said.append)
        yield made, loop
        made.close()


def _run() -> SimpleNamespace:
    return SimpleNamespace(id=ContainerId("uid", "main", 0), start=None, is_ready=False)


def _asked(prober: Prober, loop: Loop, probe: Probe, spec: ContainerRunSpec = _SPEC) -> bool:
    answers: list[bool] = []
    prober.ask(_run(), spec, probe, answers.append)
    end = time.monotonic() + 300
    while not answers and time.monotonic() < end:
        loop.step(0.05)
    (answer,) = answers
    return answer


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made.getsockname()[1]


def test_a_name_of_a_host_is_resolved_and_connected_to(prober, loop, listener):
    spec = ContainerRunSpec("main", ports=(Port("web", listener),))
    for host in ("localhost", "127.0.0.1", ""):
        assert _asked(prober, loop, Probe(tcp_socket=TCPSocketAction("web", host), timeout_seconds=60), spec)


def test_an_address_of_the_sixth_version_is_one(prober, loop):
    try:
        made = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with made:
        assert _asked(prober, loop, Probe(tcp_socket=TCPSocketAction(made.getsockname()[1], "::1"), timeout_seconds=60))


def test_a_request_over_a_name_is_answered(prober, loop):
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        get = HTTPGetAction(server.server_port, "/nowhere", "localhost")
        assert not _asked(prober, loop, Probe(http_get=get, timeout_seconds=60)), "404"
        thread.join()


@pytest.mark.parametrize(("path", "is_good"), [("/", True), ("/nowhere", False)])
def test_an_https_probe_is_encrypted_and_accepts_any_certificate(prober, loop, tmp_path, path, is_good):
    make(str(tmp_path), ("elsewhere.invalid",))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        get = HTTPGetAction(server.server_port, path, "localhost", "HTTPS")
        assert _asked(prober, loop, Probe(http_get=get, timeout_seconds=60)) == is_good
        thread.join()


def test_an_https_probe_of_a_server_without_tls_fails_and_one_that_says_nothing_times_out(prober, loop, listener):
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        get = HTTPGetAction(server.server_port, scheme="HTTPS")
        assert not _asked(prober, loop, Probe(http_get=get, timeout_seconds=60))
        thread.join()
    get = HTTPGetAction(listener, scheme="HTTPS")
    assert not _asked(prober, loop, Probe(http_get=get, timeout_seconds=0.2))


def test_a_probe_that_cannot_be_asked_is_as_if_it_were_not_there(virtual, world):
    prober, loop = virtual
    run = _run()
    spec = pod_run({"containers": [{"name": "main", "readinessProbe": {"grpc": {"port": 1}},
                                    "livenessProbe": {"grpc": {"port": 1}}}]}).container("main")  # fmt: skip
    prober.begin(run, spec)
    assert run.is_ready
    loop.run_for(60)
    assert world.restarted == []
    prober.end(run)


@pytest.mark.parametrize("host", ["a\0b", "x" * 300, "..", "é" * 70, "no-such-host.invalid"])
def test_a_name_that_cannot_be_resolved_fails_the_probe(prober, loop, host, listener):
    assert not _asked(prober, loop, Probe(tcp_socket=TCPSocketAction(listener, host), timeout_seconds=3))


@pytest.mark.parametrize("port", [70_000, -1, 2**40, "none"])
def test_a_port_that_is_none_fails_the_probe(prober, loop, port):
    assert not _asked(prober, loop, Probe(tcp_socket=TCPSocketAction(port)))


def test_a_name_server_that_does_not_answer_holds_up_neither_the_loop_nor_other_probes(
    prober, loop, listener, monkeypatch
):
    gate, asked, real = threading.Event(), [], socket.getaddrinfo

    def hangs(host: str, *arguments: object, **named: object) -> object:
        asked.append(host)
        if host == "slow.test":
            gate.wait(300)
        return real("127.0.0.1", *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    slow = TCPSocketAction(listener, "slow.test")
    answers: list[bool] = []
    for _ in range(3):
        prober.ask(_run(), _SPEC, Probe(tcp_socket=slow, timeout_seconds=1000), answers.append)
    assert _asked(prober, loop, Probe(tcp_socket=TCPSocketAction(listener, "fast.test"), timeout_seconds=60))
    assert not _asked(prober, loop, Probe(tcp_socket=slow, timeout_seconds=0.1))
    assert answers == []
    assert asked.count("slow.test") == 1, "one thread for one name"
    gate.set()


def test_a_probe_that_hangs_is_not_started_again_until_it_is_over(virtual, world):
    prober, loop = virtual
    run = _run()
    probe = Probe(exec=ExecAction(("hang",)), period_seconds=0.05, timeout_seconds=0.4, failure_threshold=9)
    prober.begin(run, ContainerRunSpec("main", liveness_probe=probe))
    loop.run_for(0.3)
    assert len(world.executed) == 1
    loop.run_for(0.3)
    assert len(world.executed) == 2
    prober.end(run)


@pytest.mark.parametrize("error", [OSError(7, "Argument list too long"), ValueError("embedded null byte")])
def test_a_probe_that_cannot_be_run_has_failed_and_the_reason_is_said(virtual, world, error):
    prober, loop = virtual
    world.error = error
    run = _run()
    probe = Probe(exec=ExecAction(("x",)), failure_threshold=1)
    prober.begin(run, ContainerRunSpec("main", liveness_probe=probe))
    loop.run_for(0.05)
    assert world.restarted == [run.id]
    assert "a probe fails" in world.said[0]
    prober.end(run)


def test_thresholds_of_zero_are_the_defaults(virtual, world):
    prober, loop = virtual
    world.error = OSError("no")
    run = _run()
    probe = Probe(exec=ExecAction(("x",)), period_seconds=1, failure_threshold=0, success_threshold=0)
    prober.begin(run, ContainerRunSpec("main", liveness_probe=probe))
    loop.run_for(0.05)
    assert world.restarted == []
    prober.end(run)
