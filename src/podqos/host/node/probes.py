"""Startup, liveness and readiness probes, without ever blocking.

A startup probe delays the other two until it has succeeded once; a liveness probe that fails too often in a row ends
its container (and the agent restarts it); a readiness probe only sets readiness. Without one a container is ready once
it runs.

Source: Kubernetes v1.36 pkg/kubelet/prober/{worker,prober}.go, pkg/probe/{http,tcp,exec}. The first probe runs
right after the initial delay; the kubelet adds a random part of a period. A probe that is not over when the next one is
due is the next one.

As for the kubelet, an HTTPS probe accepts any certificate.

Names of hosts are resolved on other threads: a name server that does not answer makes its probe fail, and nothing else.
Whatever goes wrong about a probe is a failed probe.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Protocol

from podqos.host.linux.background import Background
from podqos.host.linux.loop import Loop, Timer
from podqos.host.node.host_pod import ContainerRun
from podqos.host.runtimes.runtime import ContainerId, Runtime
from podqos.host.storage.pod_run import ContainerRunSpec, HTTPGetAction, Probe

_ANSWER_BYTES = 256
_MOST_LOOKUPS = 32
Answer = Callable[[bool], None]
Address = tuple[socket.AddressFamily, tuple[object, ...]]
Located = Callable[[Address | None], None]


class Probed(Protocol):
    """What runs the containers."""

    runtime: Runtime

    def restart_container(self, name: ContainerId, grace_seconds: int | None) -> None:
        """End a container whose probe fails."""


class Prober:
    """Runs the probes of all containers."""

    def __init__(self, loop: Loop, world: Probed, note: Callable[[str], None] = lambda _text: None) -> None:
        self.loop = loop
        self._world = world
        self._note = note
        self._lookups: Background | None = None
        self._resolving: dict[str, list[Located]] = {}
        """Who waits for the address of a host."""
        self._tokens = count()
        self._workers: dict[ContainerId, list[_Worker]] = {}
        self._waiting: dict[str, Answer] = {}

    def begin(self, run: ContainerRun, spec: ContainerRunSpec) -> None:
        """Start the probes of a container that has started."""
        startup, liveness, readiness = (
            None if probe is None or not probe.can_be_asked else probe
            for probe in (spec.startup_probe, spec.liveness_probe, spec.readiness_probe)
        )
        run.is_ready = readiness is None and startup is None
        later = [
            _Worker(self, run, spec, probe, act)
            for probe, act in ((liveness, self._is_alive), (readiness, self._is_ready))
            if probe is not None
        ]
        self._workers[run.id] = later
        if startup is None:
            for worker in later:
                worker.begin()
            return

        def has_started(run: ContainerRun, probe: Probe, good: bool) -> bool:
            if not good:
                return self._is_alive(run, probe, good)
            run.is_ready = readiness is None
            for worker in later:
                worker.begin()
            return False

        first = _Worker(self, run, spec, startup, has_started)
        self._workers[run.id] = [first, *later]
        first.begin()

    def end(self, run: ContainerRun) -> None:
        """Stop probing: the container has ended."""
        for worker in self._workers.pop(run.id, ()):
            worker.end()

    def close(self) -> None:
        """Forget the names that are being resolved."""
        if self._lookups is not None:
            self._lookups.close()

    def answered(self, token: str, good: bool) -> None:
        """Handle the result of a command inside a container."""
        waiting = self._waiting.pop(token, None)
        if waiting is not None:
            waiting(good)

    # ---- results of probes; True: keep probing -------------------------------------------------------------------

    def _is_alive(self, run: ContainerRun, probe: Probe, good: bool) -> bool:
        if good:
            return True
        self._world.restart_container(run.id, probe.termination_grace_period_seconds)
        return False

    @staticmethod
    def _is_ready(run: ContainerRun, _probe: Probe, good: bool) -> bool:
        run.is_ready = good
        return True

    # ---- the kinds of probes -------------------------------------------------------------------------------------

    def ask(self, run: ContainerRun, spec: ContainerRunSpec, probe: Probe, answer: Answer) -> None:
        """Probe once; the answer comes exactly once, at the latest after the timeout."""
        if probe.exec is not None:
            self._execute(run, probe, answer)
        elif probe.http_get is not None:
            self._get(spec, probe, probe.http_get, answer)
        else:
            assert probe.tcp_socket is not None
            target = (probe.tcp_socket.host or "127.0.0.1", _port(spec, probe.tcp_socket.port))
            self._connect(target, probe, b"", answer)

    def failed(self, run: ContainerRun, error: Exception) -> None:
        """Say why a probe could not even be tried."""
        self._note(f"container {run.id.name}: a probe fails: {type(error).__name__}: {error}")

    def _execute(self, run: ContainerRun, probe: Probe, answer: Answer) -> None:
        assert probe.exec is not None
        token = f"probe-{os.getpid()}-{next(self._tokens)}"

        seconds = probe.timeout_seconds or 1
        timer = self.loop.call_after(seconds, lambda: self.answered(token, good=False))

        def in_time(good: bool) -> None:
            timer.cancel()
            answer(good)

        self._waiting[token] = in_time
        try:
            self._world.runtime.execute(run.start, probe.exec.command, token, seconds)
        except Exception as error:  # noqa: BLE001 - a probe that cannot run has failed
            self.failed(run, error)
            self.answered(token, good=False)

    def _get(self, spec: ContainerRunSpec, probe: Probe, get: HTTPGetAction, answer: Answer) -> None:
        host = get.host or "127.0.0.1"
        headers = "".join(f"{header.name}: {header.value}\r\n" for header in get.http_headers)
        request = f"GET {get.path or '/'} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
        self._connect((host, _port(spec, get.port)), probe, request.encode(), answer)

    def _connect(self, target: tuple[str, int], probe: Probe, request: bytes, answer: Answer) -> None:
        """Connect; with a request, send it and read the status. Never blocks."""
        is_encrypted = probe.http_get is not None and probe.http_get.scheme.upper() == "HTTPS"
        connection: socket.socket | None = None
        is_over = False

        def close(good: bool) -> None:
            nonlocal is_over
            if is_over:
                return
            is_over = True
            timer.cancel()
            if connection is not None:
                self.loop.unwatch(connection.fileno())
                connection.close()
            answer(good)

        def located(address: Address | None) -> None:
            nonlocal connection
            if is_over:
                return
            if address is None:
                close(False)
                return
            family, where = address
            try:
                connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
                failed = connection.connect_ex((*where[:1], target[1], *where[2:]))
            except (OSError, OverflowError):
                failed = errno.EHOSTUNREACH
            if connection is None or failed not in {0, errno.EINPROGRESS}:
                close(False)
                return
            self.loop.watch(connection.fileno(), connected, select.EPOLLOUT)

        def connected() -> None:
            assert connection is not None
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                close(False)
            elif not request:
                close(True)
            else:
                exchange()

        def exchange() -> None:
            """Encrypt, send and receive, each as soon as it needs not wait."""
            nonlocal connection, request
            assert connection is not None
            self.loop.unwatch(connection.fileno())
            try:
                if is_encrypted and not isinstance(connection, ssl.SSLSocket):
                    connection = _any_certificate().wrap_socket(
                        connection, server_hostname=target[0], do_handshake_on_connect=False
                    )
                if request:
                    connection.send(request)  # after the handshake, if there is one
                    request = b""
                head = connection.recv(_ANSWER_BYTES).split()
            except (BlockingIOError, ssl.SSLWantReadError):
                self.loop.watch(connection.fileno(), exchange)
                return
            except ssl.SSLWantWriteError:
                self.loop.watch(connection.fileno(), exchange, select.EPOLLOUT)
                return
            except (OSError, ValueError):
                head = []
            close(len(head) > 1 and head[1].isdigit() and 200 <= int(head[1]) < 400)

        timer = self.loop.call_after(probe.timeout_seconds or 1, lambda: close(False))
        self._locate(target[0], located)

    def _locate(self, host: str, located: Located) -> None:
        """Find the address of a host: at once if it is one, otherwise on another thread."""
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                socket.inet_pton(family, host)
            except (OSError, ValueError):
                continue
            located((family, (host, 0)))
            return
        waiting = self._resolving.setdefault(host, [])
        waiting.append(located)
        if len(waiting) > 1:
            return  # someone is asking already
        if self._lookups is None:
            self._lookups = Background(self.loop, "lookup", _MOST_LOOKUPS)

        def found(address: Address | Exception) -> None:
            for each in self._resolving.pop(host):
                each(None if isinstance(address, Exception) else address)

        self._lookups.run(lambda: _resolved(host), found)


class _Worker:
    """One probe of one container: counts results against the thresholds."""

    def __init__(
        self,
        prober: Prober,
        run: ContainerRun,
        spec: ContainerRunSpec,
        probe: Probe,
        act: Callable[[ContainerRun, Probe, bool], bool],
    ) -> None:
        self._prober, self._run, self._spec, self._probe, self._act = prober, run, spec, probe, act
        self._timer: Timer | None = None
        self._last: bool | None = None
        self._in_a_row = 0
        self._is_asking = False
        self._is_over = False

    def begin(self) -> None:
        """Probe for the first time after the initial delay."""
        self._timer = self._prober.loop.call_after(self._probe.initial_delay_seconds, self._ask)

    def end(self) -> None:
        """Stop probing."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()

    def _ask(self) -> None:
        self._timer = self._prober.loop.call_after(self._probe.period_seconds or 10, self._ask)
        if self._is_asking:
            return
        self._is_asking = True
        try:
            self._prober.ask(self._run, self._spec, self._probe, self._hear)
        except Exception as error:  # noqa: BLE001 - a probe that cannot run has failed
            self._prober.failed(self._run, error)
            self._hear(good=False)

    def _hear(self, good: bool) -> None:
        if self._is_over or not self._is_asking:
            return
        self._is_asking = False
        self._in_a_row = self._in_a_row + 1 if good == self._last else 1
        self._last = good
        enough = (self._probe.success_threshold or 1) if good else (self._probe.failure_threshold or 3)
        if self._in_a_row >= enough and not self._act(self._run, self._probe, good):
            self.end()


@cache
def _any_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _resolved(host: str) -> Address:
    """Ask for the address of a host; this may take minutes."""
    family, _, _, _, where = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    return family, where


def _port(spec: ContainerRunSpec, port: int | str) -> int:
    """Return a port by number or name."""
    if isinstance(port, int):
        return port
    return next((each.container_port for each in spec.ports if each.name == port), 0)
