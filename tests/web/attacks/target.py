"""The HTTP server alone, as a process with the limits that are shipped, its attackers, and a visitor who is in a hurry.

Run as a program, it serves: `python target.py LIMITS [CERTIFICATES [FILES]]`.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

# Below this, a time says more about the scheduler of this machine than about the server.
LEAST_SECONDS = 0.02
PATIENCE = 60.0
LARGE_BYTES = 1_500_000


def serve(limits_name, certificates="", most_files=""):
    """Serve some quick and slow things until the end, and print the port."""
    from msgspec.structs import replace

    from podqos.web import event_loop
    from podqos.web.exporter_endpoint import EXPORTER_LIMITS
    from podqos.web.http import EventStream, Response, Server, text_response
    from podqos.web.settings import LIMITS
    from podqos.web.tls import Certificate
    from podqos.web.ui.settings import HTTP_LIMITS

    # Nobody else is on this machine's loopback: only what makes room is tested, not what ends by itself.
    limits = replace(
        {"page": HTTP_LIMITS, "webhook": LIMITS, "exporter": EXPORTER_LIMITS}[limits_name],
        receive_seconds=PATIENCE, handshake_seconds=PATIENCE, idle_seconds=PATIENCE, sweep_seconds=0.2,
    )  # fmt: skip
    page = os.urandom(LARGE_BYTES)
    seen = []

    async def main():
        context = None
        if certificates:
            context = Certificate(f"{certificates}/tls.crt", f"{certificates}/tls.key").context
        lock = asyncio.Event()

        async def waiting():
            await lock.wait()
            return text_response(200, "at last")

        async def endless():
            while True:
                yield os.urandom(1 << 20)

        def handle(request):
            seen.append(request.path)
            match request.path:
                case "/page":
                    return Response(page, 200, "image/png")
                case "/large":
                    return Response(os.urandom(4 << 20), 200, "image/png")
                case "/wait":
                    return waiting()
                case "/stream":
                    return EventStream(endless(), "text/event-stream")
                case "/seen":
                    return Response(json.dumps(seen[-20:]).encode())
                case "/held":
                    held = {
                        "connections": len(server.connections), "buffered": server.buffered_bytes,
                        "unsent": server.held.total_bytes, "handshakes": len(server.handshakes),
                    }  # fmt: skip
                    return Response(json.dumps(held).encode())
            return text_response(200, f"{len(request.body)} bytes")

        server = Server(handle, limits, body_bytes=lambda target: 32 << 20 if target == b"/wait" else limits.body_bytes)
        print((await server.start("127.0.0.1", 0, context))[1], flush=True)  # noqa: T201
        await asyncio.Event().wait()

    if most_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(most_files), int(most_files)))
    event_loop.run(main())


class Target:
    """A server's process, and a visitor of it."""

    def __init__(self, process, port, trust=None, path="/quick"):
        self.process, self.port, self.trust, self.path = process, port, trust, path
        self.opened = []
        self.begin()
        self._is_over = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def begin(self):
        """Measure how it is without attackers."""
        self.ask()
        self.unloaded = self.seconds()
        self._peak = self.base_bytes = self.used_bytes()

    def _watch(self):
        while not self._is_over.wait(0.02):
            self._peak = max(self._peak, self.used_bytes())

    def used_bytes(self):
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0

    def end(self):
        self._is_over.set()
        self._watching.join()
        self.close_all()

    # ---- attackers ---------------------------------------------------------------------------------------------------

    def connect(self, data=b"", *, is_silent=False):
        """Open a connection and send something, without waiting for anything; whoever was pushed out does not care."""
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        self.opened.append(client)
        try:
            if self.trust is not None and not is_silent:
                client = self.trust.wrap_socket(client, server_hostname="localhost", do_handshake_on_connect=True)
                self.opened[-1] = client
            client.sendall(data)
        except OSError:
            pass
        return client

    def close_all(self):
        for client in self.opened:
            client.close()
        self.opened.clear()

    # ---- the visitor -------------------------------------------------------------------------------------------------

    def ask(self, path=None, body=None):
        """Return status and body of an answer, over a connection of its own."""
        if self.trust is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        else:
            connection = http.client.HTTPSConnection("localhost", self.port, timeout=PATIENCE, context=self.trust)
        try:
            connection.request("GET" if body is None else "POST", path or self.path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def seconds(self, times=9):
        def once():
            began = time.monotonic()
            status, body = self.ask()
            assert status == 200, body
            return time.monotonic() - began

        return statistics.median(once() for _ in range(times))

    def held(self):
        return json.loads(self.ask("/held")[1])

    # ---- what must hold ----------------------------------------------------------------------------------------------

    def still_serves(self):
        """Check that a visitor waits at most five times as long as without attackers."""
        allowed = 5 * max(self.unloaded, LEAST_SECONDS)
        times = []
        for _ in range(5):  # the machine may be busy with something else
            times.append(self.seconds())
            if times[-1] <= allowed:
                return
        raise AssertionError(f"a visitor waits {min(times):.3f} s, and {self.unloaded:.3f} s without attackers")

    def stays_below(self, limit_bytes):
        assert self._peak < limit_bytes, f"{self._peak >> 20} MiB of {limit_bytes >> 20} MiB"

    def calms_down(self, more_bytes=12 << 20):
        """Check that everything is returned when the attackers have gone."""
        self.close_all()
        until = time.monotonic() + 60
        nothing = {"connections": 1, "buffered": 0, "unsent": 0, "handshakes": 0}
        while (held := self.held()) != nothing or self.used_bytes() > self.base_bytes + more_bytes:
            assert time.monotonic() < until, (held, self.base_bytes >> 20, self.used_bytes() >> 20)
            time.sleep(0.1)


def allow_many_connections():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


@contextmanager
def attacked(command, trust=None, path="/quick"):
    """Start a server that prints its port, and end it."""
    allow_many_connections()
    process = subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        target = Target(process, int(process.stdout.readline()), trust, path)
        try:
            yield target
        finally:
            target.end()
    finally:
        process.kill()
        process.communicate()


@contextmanager
def target(limits, folder=None, most_files=""):
    """Start this file as a server, with TLS if there is a folder for the certificates."""
    if folder is None:
        with attacked([__file__, limits, "", most_files]) as server:
            yield server
        return
    from podqos.web.certificate import make

    make(str(folder), ("localhost", "127.0.0.1"))
    with attacked([__file__, limits, folder], ssl.create_default_context(cafile=str(folder / "ca.crt"))) as server:
        yield server


if __name__ == "__main__":
    serve(*sys.argv[1:])
