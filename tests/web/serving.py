"""A webhook that serves on this machine, in a thread of its own, and a client that speaks to it."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import threading
from contextlib import contextmanager

import uvloop

from podqos.web.audit import AuditLog
from podqos.web.certificate import make
from podqos.web.settings import Limits
from podqos.web.tls import Certificate
from podqos.web.webhook import Webhook

NAMES = ("localhost", "127.0.0.1")


class Served:
    """A webhook with its address."""

    def __init__(self, webhook, folder):
        self.webhook, self.folder = webhook, folder
        self.loop = uvloop.new_event_loop()
        started = threading.Event()

        def run():
            asyncio.set_event_loop(self.loop)
            starting = webhook.server.start("127.0.0.1", 0, webhook.certificate.context)
            self.address = self.loop.run_until_complete(starting)
            started.set()
            self.loop.run_forever()
            self.loop.close()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert started.wait(300)

    @property
    def trust(self):
        return ssl.create_default_context(cafile=str(self.folder / "ca.crt"))

    def connect(self):
        connection = http.client.HTTPSConnection("127.0.0.1", self.address[1], timeout=300, context=self.trust)
        connection.connect()
        return connection

    def socket(self):
        plain = socket.create_connection(self.address, timeout=300)
        return self.trust.wrap_socket(plain, server_hostname="127.0.0.1")

    def ask(self, path, body=None, method=None, connection=None, **headers):
        client = connection or self.connect()
        client.request(method or ("GET" if body is None else "POST"), path, body, headers)
        response = client.getresponse()
        answer = response.status, response.read()
        if connection is None:
            client.close()
        return answer

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(300)

    def stop(self):
        self.run(self.webhook.server.stop(5))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(300)


@contextmanager
def served(folder, reviewer, limits=None, audit=None):
    make(str(folder), NAMES)
    webhook = Webhook(reviewer, AuditLog(audit), limits or Limits())
    webhook.certificate = Certificate(str(folder / "tls.crt"), str(folder / "tls.key"))
    server = Served(webhook, folder)
    try:
        yield server
    finally:
        server.stop()
