"""A small HTTP and TLS server for these tests: it answers as recorded, or as badly as a test wants."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl, urlsplit

Reply = "tuple[int, dict[str, str], bytes] | bytes | Callable[[Wire], None]"


@dataclass
class Request:
    method: str
    target: str
    headers: list[tuple[str, str]]
    peer_certificate: dict | None = None

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Wire:
    """The server's end of a connection, for answers that are not whole."""

    def __init__(self, connection: socket.socket, stopped: threading.Event) -> None:
        self._connection = connection
        self.stopped = stopped

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def chunk(self, data: bytes) -> None:
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def head(self, status: int = 200, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def stall(self) -> None:
        """Say nothing until the test is over."""
        self.stopped.wait(300)

    def trickle(self, data: bytes, every_seconds: float) -> None:
        for byte in data:
            if self.stopped.wait(every_seconds):
                return
            self.send(bytes([byte]))

    def abort(self) -> None:
        """Close with a reset, as a crash does."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@dataclass
class Server:
    """Answers each request by ``answer``; ``requests`` is what came."""

    answer: Callable[[Request], object]
    tls: ssl.SSLContext | None = None
    compresses: bool = False
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> Self:
        self.stopped = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while not self.stopped.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # A client that goes away, and a handshake that fails, are part of what is tested.
        with suppress(OSError, ValueError), connection:
            connection.settimeout(300)
            secured = self.tls.wrap_socket(connection, server_side=True) if self.tls else connection
            with secured:
                for request in _requests(secured):
                    self.requests.append(request)
                    if not self._reply(secured, request):
                        return

    def _reply(self, connection: socket.socket, request: Request) -> bool:
        """Answer, and return whether the connection stays open."""
        reply = self.answer(request) if _is_acceptable(request) else _NOT_ACCEPTABLE
        if callable(reply):
            reply(Wire(connection, self.stopped))
            return False
        status, headers, body = (
            (200, {"Content-Type": "application/json"}, reply) if isinstance(reply, bytes) else reply
        )
        headers = dict(headers)
        if self.compresses and "gzip" in (request.header("Accept-Encoding") or ""):
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
        connection.sendall(head.encode() + body)
        return True


# What go-restful answers: https://github.com/emicklei/go-restful, jsr311.go.
_NOT_ACCEPTABLE = (406, {"Content-Type": "text/plain"}, b"406: Not Acceptable\n\nAvailable representations: ")


def _is_acceptable(request: Request) -> bool:
    """Whether a server would send any answer: a kubelet's logs have no media type, its pods and statistics are JSON."""
    _, is_kubelet, path = request.path.partition("/proxy/")
    accepted = {part.partition(";")[0].strip() for part in (request.header("Accept") or "*/*").split(",")}
    if "*/*" in accepted or not is_kubelet:
        return True
    if path.startswith(("logs/", "containerLogs/")):
        return False
    return "application/json" in accepted or not path.startswith(("stats/", "pods", "runningpods"))


def _requests(connection: socket.socket) -> Iterator[Request]:
    buffer = b""
    while True:
        while b"\r\n\r\n" not in buffer:
            piece = connection.recv(65_536)
            if not piece:
                return
            buffer += piece
            if buffer[0] == 0x16:  # TLS, to a server that speaks none
                connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
                return
        head, _, buffer = buffer.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        method, target, _version = first.split(" ")
        certificate = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
        yield Request(method, target, [tuple(line.split(": ", 1)) for line in rest], certificate)  # type: ignore[misc]


def status(code: int, reason: str, message: str = "") -> tuple[int, dict[str, str], bytes]:
    """Return a Status as the API server sends one."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message or reason}
    body |= {"reason": reason, "code": code}
    return code, {"Content-Type": "application/json"}, json.dumps(body).encode()


def watch_of(lines: list[bytes], *, then: Callable[[Wire], None] | None = None) -> Callable[[Wire], None]:
    """Return an answer that is a watch with these events, which then ends or does something else."""

    def reply(wire: Wire) -> None:
        wire.head(Content_Type="application/json", Transfer_Encoding="chunked")
        for line in lines:
            wire.chunk(line.rstrip(b"\n") + b"\n")
        if then is not None:
            then(wire)
        else:
            wire.send(b"0\r\n\r\n")
            time.sleep(0)

    return reply
