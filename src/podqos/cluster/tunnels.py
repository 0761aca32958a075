"""Edge: the way to a server through a proxy: HTTP's CONNECT, SOCKS5, and TLS inside the proxy's own TLS."""

from __future__ import annotations

import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Callable
from typing import TypeVar

from podqos.cluster.proxies import Address
from podqos.errors import InputError, Unreachable

_Result = TypeVar("_Result")


class Deadline:
    """A deadline."""

    def __init__(self, stall_seconds: float, total_seconds: float) -> None:
        self.stall_seconds = stall_seconds
        self.total_seconds = total_seconds
        self.end = time.monotonic() + total_seconds

    def next_wait(self) -> float:
        """Return the time left for the next step; raise ``TimeoutError`` if there is none."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.stall_seconds)


def request_of(lines: list[str], where: str) -> bytes:
    """Return a request; reject a line with characters that would end or change it."""
    for number, line in enumerate(lines):
        if not line.isprintable() or not line.isascii():
            name = f"header {line.partition(':')[0]}" if number else "the path"
            raise InputError(f"{name} contains characters that HTTP does not allow", where=where)
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def through_proxy(opened: socket.socket, proxy: Address, server: Address, deadline: Deadline) -> None:
    """Ask a proxy for a connection to the server."""
    where = f"proxy {proxy}"
    try:
        if proxy.scheme.startswith("socks5"):
            refusal = _socks(opened, proxy, server, deadline)
        else:
            refusal = _tunnel(opened, proxy, server, deadline)
    except TimeoutError:
        raise Unreachable(f"connection to {server} timed out", where=where) from None
    except (OSError, ValueError):
        raise Unreachable(f"it closed the connection to {server}", where=where) from None
    if refusal:
        raise Unreachable(f"no connection to {server}: {refusal}", where=where, fix="check proxy-url or HTTPS_PROXY")


def proxy_authorization(proxy: Address) -> list[str]:
    """Return the authentication header for a proxy, if it has credentials."""
    pair = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    return [f"Proxy-Authorization: Basic {pair}"] if proxy.username else []


def _tunnel(opened: socket.socket, proxy: Address, server: Address, deadline: Deadline) -> str:
    lines = [f"CONNECT {server.authority} HTTP/1.1", f"Host: {server.authority}", *proxy_authorization(proxy)]
    opened.settimeout(deadline.next_wait())
    opened.sendall(request_of(lines, str(proxy)))
    head = b""
    while not head.endswith(b"\r\n\r\n"):  # byte by byte: what follows belongs to the server
        opened.settimeout(deadline.next_wait())
        byte = opened.recv(1)
        if not byte or len(head) > 65_536:
            raise ConnectionResetError
        head += byte
    status = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 1)[-1]
    return "" if status.startswith("2") else status


_SOCKS_REFUSALS = {
    1: "it failed",
    2: "not allowed",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
}


def _socks(opened: socket.socket, proxy: Address, server: Address, deadline: Deadline) -> str:
    """Ask a SOCKS5 proxy (RFC 1928, 1929), which looks up the name itself."""

    def exactly(count: int) -> bytes:
        data = b""
        while len(data) < count:
            opened.settimeout(deadline.next_wait())
            piece = opened.recv(count - len(data))
            if not piece:
                raise ConnectionResetError
            data += piece
        return data

    method = 2 if proxy.username else 0
    opened.settimeout(deadline.next_wait())
    opened.sendall(bytes((5, 1, method)))
    if exactly(2) != bytes((5, method)):
        return "it requires other credentials"
    if method:
        name, password = proxy.username.encode()[:255], proxy.password.encode()[:255]
        opened.sendall(bytes((1, len(name))) + name + bytes((len(password),)) + password)
        if exactly(2)[1]:
            return "it rejected the credentials"
    host = server.host.encode("idna") if not server.host.isascii() else server.host.encode()
    opened.sendall(bytes((5, 1, 0, 3, len(host))) + host + server.port.to_bytes(2, "big"))
    _version, code, _reserved, kind = exactly(4)
    if code:
        return _SOCKS_REFUSALS.get(code, f"code {code}")
    exactly({1: 4, 4: 16}.get(kind) or exactly(1)[0])
    exactly(2)
    return ""


class TLSInTLS:
    """TLS to a server through a connection that is TLS to a proxy, which Python's sockets cannot do; as a socket."""

    def __init__(self, outer: ssl.SSLSocket, context: ssl.SSLContext, host: str, seconds: float) -> None:
        self._outer = outer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._inner = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.settimeout(seconds)
        self._until_done(self._inner.do_handshake)

    def settimeout(self, seconds: float) -> None:
        """Set how long each of the next operations may take."""
        self._seconds = seconds

    def recv_into(self, buffer: memoryview) -> int:
        """Take in what has come; nothing at the end."""
        try:
            count: object = self._until_done(lambda: self._inner.read(len(buffer), buffer))
        except ssl.SSLZeroReturnError:
            return 0
        assert isinstance(count, int)  # it is bytes only without a buffer
        return count

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        while data:
            data = data[self._until_done(lambda rest=data: self._inner.write(rest)) :]  # type: ignore[misc]

    def shutdown(self, how: int) -> None:
        """End it, for whoever still reads."""
        self._outer.shutdown(how)

    def close(self) -> None:
        """Close the connection to the proxy."""
        self._outer.close()

    def _until_done(self, act: Callable[[], _Result]) -> _Result:
        deadline = Deadline(self._seconds, self._seconds)
        while True:
            try:
                result = act()
            except ssl.SSLWantReadError:
                self._flush(deadline)
                self._outer.settimeout(deadline.next_wait())
                piece = self._outer.recv(65_536)
                if piece:
                    self._incoming.write(piece)
                else:
                    self._incoming.write_eof()
            else:
                self._flush(deadline)
                return result

    def _flush(self, deadline: Deadline) -> None:
        if self._outgoing.pending:
            self._outer.settimeout(deadline.next_wait())
            self._outer.sendall(self._outgoing.read())


Socket = socket.socket | TLSInTLS
