"""Edge: one GET over HTTP/1.1, within its time and size.

The parser of responses is Python's own (``http.client.HTTPResponse``); sockets are ours, so that every read ends by
the deadline of the whole answer, which no client library offers. The only requests this module can write are GET, and
CONNECT to a proxy.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http.client import HTTPException, HTTPResponse

from msgspec import Struct

from podqos.cluster.patience import Patience
from podqos.cluster.proxies import Address
from podqos.cluster.tls import handshake_failure
from podqos.errors import BadAnswer, InputError, Unreachable

_PIECE_BYTES = 1 << 18
_USER_AGENT = "podqos"


class Answer(Struct, frozen=True):
    """What a server said. The names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    data: bytes


class Route(Struct, frozen=True):
    """The way to a server."""

    server: Address
    tls: ssl.SSLContext | None = None
    tls_server_name: str = ""
    proxy: Address | None = None


class NoAnswer(Exception):
    """A connection that was kept open is closed by now: not one byte came back. Asking again is right."""


class _Deadline:
    """By when something has to be over."""

    def __init__(self, stall_seconds: float, total_seconds: float) -> None:
        self.stall_seconds = stall_seconds
        self.total_seconds = total_seconds
        self.end = time.monotonic() + total_seconds

    def next_wait(self) -> float:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.stall_seconds)


class _Incoming(io.RawIOBase):
    """What comes in on a socket, each read within the deadline."""

    def __init__(self, source: socket.socket, deadline: _Deadline) -> None:
        self._source = source
        self._deadline = deadline
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        self._source.settimeout(self._deadline.next_wait())
        count = self._source.recv_into(buffer)
        self.count += count
        return count


class _ResponseSource:
    """What ``HTTPResponse`` takes for a socket."""

    def __init__(self, incoming: _Incoming) -> None:
        self._incoming = incoming

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._incoming, _PIECE_BYTES)


class Connection:
    """One connection to a server, used for one GET after the other."""

    def __init__(self, route: Route, patience: Patience) -> None:
        self._route = route
        self._where = str(route.server)
        self._socket = self._open(patience)
        self.is_used = False
        self.is_reusable = True
        """Whether it can be used for another GET."""

    def close(self) -> None:
        """Close it; whoever reads from it in another thread is woken."""
        self.is_reusable = False
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def get(self, target: str, headers: Iterable[tuple[str, str]], patience: Patience) -> Answer:
        """Return the whole answer, decompressed."""
        deadline = _Deadline(patience.stall_seconds, patience.total_seconds)
        with self._translated(deadline):
            response = self._ask(target, headers, deadline)
            pieces = []
            size = 0
            for piece in _decompressed(_pieces(response), response.headers.get("Content-Encoding", "")):
                size += len(piece)
                if size > patience.most_bytes:
                    raise BadAnswer(f"the answer is longer than {patience.most_bytes >> 20}Mi", where=self._where)
                pieces.append(piece)
            self.is_reusable = not response.will_close
            return Answer(response.status, _lower(response), pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def stream(self, target: str, headers: Iterable[tuple[str, str]], patience: Patience) -> Stream:
        """Return an answer whose data is still to come."""
        deadline = _Deadline(patience.stall_seconds, patience.total_seconds)
        with self._translated(deadline):
            response = self._ask(target, headers, deadline)
            head = Answer(response.status, _lower(response), b"")
            return Stream(head, self._arriving(response, deadline), deadline)

    def _arriving(self, response: HTTPResponse, deadline: _Deadline) -> Iterator[bytes]:
        with self._translated(deadline):
            yield from _pieces(response)

    def _ask(self, target: str, headers: Iterable[tuple[str, str]], deadline: _Deadline) -> HTTPResponse:
        server = self._route.server
        host = f"[{server.host}]" if ":" in server.host else server.host
        lines = [f"GET {target} HTTP/1.1", f"Host: {host}:{server.port}", f"User-Agent: {_USER_AGENT}"]
        lines += [f"{name}: {value}" for name, value in headers]
        is_kept, self.is_used, self.is_reusable = self.is_used, True, False
        incoming = _Incoming(self._socket, deadline)
        try:
            self._socket.settimeout(deadline.next_wait())
            self._socket.sendall(_request(lines, self._where))
            response = HTTPResponse(_ResponseSource(incoming), method="GET")  # type: ignore[arg-type]
            response.begin()
        except (ConnectionError, HTTPException, ssl.SSLError) as error:
            if is_kept and not incoming.count and not isinstance(error, TimeoutError):
                raise NoAnswer from None
            raise
        return response

    def _translated(self, deadline: _Deadline) -> _Translation:
        return _Translation(self, self._where, deadline)

    def _open(self, patience: Patience) -> socket.socket:
        route = self._route
        first = route.proxy or route.server
        deadline = _Deadline(patience.connect_seconds, patience.connect_seconds)
        try:
            opened = socket.create_connection((first.host, first.port), deadline.next_wait())
        except (OSError, UnicodeError) as error:
            raise _not_connected(error, first, is_proxy=route.proxy is not None) from None
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _keep_alive(opened)
            if route.proxy is not None:
                if route.proxy.is_tls:
                    opened = self._secured(opened, ssl.create_default_context(), first.host, deadline)
                _through_proxy(opened, route.proxy, route.server, deadline)
            if route.tls is not None:
                opened = self._secured(opened, route.tls, route.tls_server_name or route.server.host, deadline)
        except BaseException:
            opened.close()
            raise
        return opened

    def _secured(self, opened: socket.socket, tls: ssl.SSLContext, host: str, deadline: _Deadline) -> socket.socket:
        try:
            opened.settimeout(deadline.next_wait())
            return tls.wrap_socket(opened, server_hostname=host)
        except TimeoutError:
            what = f"no TLS within {deadline.total_seconds:g} s"
            raise Unreachable(what, where=self._where, fix="is it the right port?") from None
        except ssl.SSLError as error:
            what, fix = handshake_failure(error, host)
            raise Unreachable(what, where=self._where, fix=fix) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "the connection was closed"
            raise Unreachable(f"no TLS: {reason}", where=self._where, fix="is it the right port?") from None


class Stream:
    """An answer whose data arrives piece by piece."""

    def __init__(self, head: Answer, pieces: Iterator[bytes], deadline: _Deadline) -> None:
        self.head = head
        """Without data."""
        self.pieces = pieces
        self.deadline = deadline

    def may_be_quiet(self) -> None:
        """Let it pause between pieces for as long as it lasts."""
        self.deadline.stall_seconds = self.deadline.total_seconds


class _Translation:
    """Turns what goes wrong on the wire into our errors, and gives the connection up."""

    def __init__(self, connection: Connection, where: str, deadline: _Deadline) -> None:
        self._connection = connection
        self._where = where
        self._deadline = deadline

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is None:
            return
        self._connection.close()
        if isinstance(error, TimeoutError):
            is_over = time.monotonic() >= self._deadline.end
            seconds = self._deadline.total_seconds if is_over else self._deadline.stall_seconds
            what = f"no whole answer within {seconds:g} s" if is_over else f"it said nothing for {seconds:g} s"
            raise Unreachable(what, where=self._where, fix="is it overloaded?") from None
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            what, fix = handshake_failure(error, self._where)
            raise Unreachable(what, where=self._where, fix=fix) from None
        if isinstance(error, OSError):
            raise Unreachable("it closed the connection", where=self._where) from None
        if isinstance(error, _Incomplete | HTTPException | zlib.error | ValueError | OverflowError):
            what = "the answer broke off" if isinstance(error, _BROKEN_OFF) else "what it says is not HTTP"
            kind = Unreachable if isinstance(error, _BROKEN_OFF) else BadAnswer
            raise kind(what, where=self._where) from None


class _Incomplete(Exception):
    """Fewer bytes came than were announced."""


def _broken_off() -> tuple[type[Exception], ...]:
    from http.client import IncompleteRead, RemoteDisconnected

    return (_Incomplete, IncompleteRead, RemoteDisconnected)


_BROKEN_OFF = _broken_off()


def _pieces(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the body as it arrives."""
    # Python before 3.12.2 does not count what read1() takes from an answer of known length.
    read = response.read1 if response.length is None else response.read
    while piece := read(_PIECE_BYTES):
        yield piece
    if response.length:
        raise _Incomplete


def _decompressed(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield pieces of bounded size, whatever they were compressed from."""
    if encoding.lower() not in {"gzip", "x-gzip"}:
        yield from pieces
        return
    inflater = zlib.decompressobj(wbits=31)
    for piece in pieces:
        rest = piece
        while rest and not inflater.eof:
            yield inflater.decompress(rest, _PIECE_BYTES * 16)
            rest = inflater.unconsumed_tail
    if not inflater.eof:
        raise _Incomplete


def _lower(response: HTTPResponse) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in response.headers.items()}


def _request(lines: list[str], where: str) -> bytes:
    """Return a request; a line that would end early or say something else is refused, not sent."""
    for number, line in enumerate(lines):
        if not line.isprintable() or not line.isascii():
            name = f"header {line.partition(':')[0]}" if number else "the path"
            raise InputError(f"{name} holds characters that HTTP does not allow", where=where)
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _keep_alive(opened: socket.socket) -> None:
    """Let the kernel notice that a server is gone, however long a watch is quiet."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _not_connected(error: Exception, to: Address, *, is_proxy: bool) -> Unreachable:
    if isinstance(error, socket.gaierror | UnicodeError):
        what, fix = f"no address is known for {to.host}", "check the name, and DNS"
    elif isinstance(error, TimeoutError):
        what, fix = "no connection in time", "check network, firewall and VPN"
    elif isinstance(error, ConnectionRefusedError):
        what, fix = "nothing listens there", "check address and port, and that it runs"
    else:
        what, fix = f"no connection: {getattr(error, 'strerror', None) or error}", "check network, firewall and VPN"
    return Unreachable(what, where=f"proxy {to}" if is_proxy else str(to), fix=fix)


def _through_proxy(opened: socket.socket, proxy: Address, server: Address, deadline: _Deadline) -> None:
    """Ask a proxy for a connection to the server."""
    where = f"proxy {proxy}"
    try:
        if proxy.scheme.startswith("socks5"):
            refusal = _socks(opened, proxy, server, deadline)
        else:
            refusal = _tunnel(opened, proxy, server, deadline)
    except TimeoutError:
        raise Unreachable(f"no connection to {server} in time", where=where) from None
    except (OSError, HTTPException, ValueError):
        raise Unreachable(f"it gave up the connection to {server}", where=where) from None
    if refusal:
        raise Unreachable(f"no connection to {server}: {refusal}", where=where, fix="check proxy-url or HTTPS_PROXY")


def _tunnel(opened: socket.socket, proxy: Address, server: Address, deadline: _Deadline) -> str:
    host = f"[{server.host}]" if ":" in server.host else server.host
    lines = [f"CONNECT {host}:{server.port} HTTP/1.1", f"Host: {host}:{server.port}"]
    if proxy.username:
        pair = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {pair}")
    opened.settimeout(deadline.next_wait())
    opened.sendall(_request(lines, str(proxy)))
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


def _socks(opened: socket.socket, proxy: Address, server: Address, deadline: _Deadline) -> str:
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
        return "it wants other credentials"
    if method:
        name, password = proxy.username.encode()[:255], proxy.password.encode()[:255]
        opened.sendall(bytes((1, len(name))) + name + bytes((len(password),)) + password)
        if exactly(2)[1]:
            return "it does not take the credentials"
    host = server.host.encode("idna") if not server.host.isascii() else server.host.encode()
    opened.sendall(bytes((5, 1, 0, 3, len(host))) + host + server.port.to_bytes(2, "big"))
    _version, code, _reserved, kind = exactly(4)
    if code:
        return _SOCKS_REFUSALS.get(code, f"code {code}")
    exactly({1: 4, 4: 16}.get(kind) or exactly(1)[0])
    exactly(2)
    return ""
