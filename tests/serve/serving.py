"""A webhook that serves on this machine, in a thread of its own, and a client that speaks to it."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from contextlib import contextmanager

from podqos.serve.audit import AuditLog
from podqos.serve.certificate import make
from podqos.serve.server import Server, run
from podqos.serve.tls import Certificate
from podqos.serve.webhook import Webhook

NAMES = ("localhost", "127.0.0.1")


class Served:
    """A webhook with its address."""

    def __init__(self, webhook, folder):
        self.webhook, self.folder = webhook, folder
        self._server = Server(webhook.app, "127.0.0.1", 0, webhook.certificate.context, last_seconds=5)
        self.address = self._server.address
        self._thread = threading.Thread(target=lambda: run(self._server.serve()), daemon=True)
        self._thread.start()

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

    def stop(self):
        self._server.stop()
        self._thread.join(300)


@contextmanager
def served(folder, reviewer, audit=None):
    make(str(folder), NAMES)
    certificate = Certificate(str(folder / "tls.crt"), str(folder / "tls.key"))
    server = Served(Webhook(reviewer, AuditLog(audit), certificate), folder)
    try:
        yield server
    finally:
        server.stop()
