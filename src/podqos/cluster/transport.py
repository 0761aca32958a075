"""Edge: one request over HTTP/1.1, within its time and size.

The parser of responses is Python's own (``http.client.HTTPResponse``); sockets are ours, so that every read ends by
the deadline of the whole answer. Requests are GET, and CONNECT to a proxy (``tunnels``); ``writing`` alone sends
something else.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import TypeVar

from msgspec import Struct

from podqos.cluster.patience import Patience
from podqos.cluster.proxies import Address
from podqos.cluster.tls import handshake_failure
from podqos.cluster.tunnels import Deadline, Socket, TLSInTLS, proxy_authorization, request_of, through_proxy
from podqos.errors import BadAnswer, Unreachable

_PIECE_BYTES = 1 << 18
_USER_AGENT = "podqos"
_Secured = TypeVar("_Secured")


class HttpAnswer(Struct, frozen=True):
    """A server's response. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def is_success(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300


class SentRequest(Struct, frozen=True):
    """A request with its headers and data."""

    method: str
    data: bytes = b""


GET = SentRequest("GET")


class Route(Struct, frozen=True):
    """The way to a server."""

    server: Address
    tls: ssl.SSLContext | None = None
    tls_server_name: str = ""
    proxy: Address | None = None
    proxy_tls: ssl.SSLContext | None = None
    """The TLS context for a proxy that uses TLS."""

    @property
    def is_relayed(self) -> bool:
        """Whether a proxy forwards each request, instead of tunneling a connection."""
        return self.proxy is not None and self.tls is None and not self.proxy.scheme.startswith("socks5")


class AnswerTooLong(BadAnswer):
    """A response is larger than allowed."""


class TimedOut(Unreachable):
    """No complete response arrived in time."""


class NoAnswer(Exception):
    """A kept connection was closed before a single byte came back: retry."""


class _IncomingBytes(io.RawIOBase):
    """Reads from a socket, each within the deadline."""

    def __init__(self, source: Socket, deadline: Deadline) -> None:
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
    """Passed to ``HTTPResponse`` as a socket."""

    def __init__(self, incoming: _IncomingBytes) -> None:
        self._incoming = incoming

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._incoming, _PIECE_BYTES)


class Connection:
    """One connection to a server, used for one request after another."""

    def __init__(self, route: Route, patience: Patience) -> None:
        self.route = route
        self._where = str(route.server)
        self._socket = self._open(patience)
        self.is_used = False
        self.is_reusable = True
        """Whether it can be used for another request."""

    def close(self) -> None:
        """Close it; this wakes a reader in another thread."""
        self.is_reusable = False
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def get(self, target: str, headers: Iterable[tuple[str, str]], patience: Patience) -> HttpAnswer:
        """Return the complete response, decompressed."""
        return self.exchange(GET, target, headers, patience)

    def exchange(
        self, sent: SentRequest, target: str, headers: Iterable[tuple[str, str]], patience: Patience
    ) -> HttpAnswer:
        """Send a request and return the complete response, decompressed."""
        deadline = Deadline(patience.stall_seconds, patience.total_seconds)
        with self._translated(deadline), closing(self._ask(sent, target, headers, deadline)) as response:
            is_gzip = response.headers.get("Content-Encoding", "").lower() in {"gzip", "x-gzip"}
            # One piece of known length need not be put together; what is inflated should come in small ones.
            arriving = _pieces(response, _PIECE_BYTES if is_gzip else patience.most_bytes + 1)
            pieces = []
            size = 0
            for piece in _inflated(arriving) if is_gzip else arriving:
                size += len(piece)
                if size > patience.most_bytes:
                    raise AnswerTooLong(f"the response is larger than {patience.most_bytes >> 20}Mi", where=self._where)
                pieces.append(piece)
            self.is_reusable = not response.will_close
            return HttpAnswer(response.status, _lower(response), pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def stream(self, target: str, headers: Iterable[tuple[str, str]], patience: Patience) -> ResponseStream:
        """Return a response whose data is still to come."""
        deadline = Deadline(patience.stall_seconds, patience.total_seconds)
        with self._translated(deadline):
            response = self._ask(GET, target, headers, deadline)
            return ResponseStream(response, self._arriving(response, deadline), deadline)

    def _arriving(self, response: HTTPResponse, deadline: Deadline) -> Iterator[bytes]:
        with self._translated(deadline):
            yield from _pieces(response)

    def _ask(
        self, sent: SentRequest, target: str, headers: Iterable[tuple[str, str]], deadline: Deadline
    ) -> HTTPResponse:
        server = self.route.server
        proxy = self.route.proxy if self.route.is_relayed else None
        way = target if proxy is None else f"{server}{target}"
        lines = [f"{sent.method} {way} HTTP/1.1", f"Host: {server.authority}", f"User-Agent: {_USER_AGENT}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += [] if proxy is None else proxy_authorization(proxy)
        lines += [f"Content-Length: {len(sent.data)}"] if sent.data else []
        is_kept, self.is_used, self.is_reusable = self.is_used, True, False
        incoming = _IncomingBytes(self._socket, deadline)
        response = HTTPResponse(_ResponseSource(incoming), method=sent.method)  # type: ignore[arg-type]
        try:
            self._socket.settimeout(deadline.next_wait())
            self._socket.sendall(request_of(lines, self._where) + sent.data)
            response.begin()
        except BaseException as error:
            response.close()
            has_failed = isinstance(error, ConnectionError | HTTPException | ssl.SSLError)
            if has_failed and is_kept and not incoming.count and not isinstance(error, TimeoutError):
                raise NoAnswer from None
            raise
        return response

    def _translated(self, deadline: Deadline) -> _Translation:
        return _Translation(self, self._where, deadline)

    def _open(self, patience: Patience) -> Socket:
        route = self.route
        first = route.proxy or route.server
        deadline = Deadline(patience.connect_seconds, patience.connect_seconds)
        try:
            plain = socket.create_connection((first.host, first.port), deadline.next_wait())
        except (OSError, UnicodeError) as error:
            raise _not_connected(error, first, is_proxy=route.proxy is not None) from None
        opened: Socket = plain
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _keep_alive(plain)
            if route.proxy is not None:
                if route.proxy_tls is not None:
                    opened = plain = _secured(plain, route.proxy_tls, first, first.host, deadline)
                if not route.is_relayed:
                    through_proxy(plain, route.proxy, route.server, deadline)
            if route.tls is not None:
                host = route.tls_server_name or route.server.host
                outer, tls = plain, route.tls
                if isinstance(outer, ssl.SSLSocket):
                    opened = _handshake(lambda left: TLSInTLS(outer, tls, host, left), route.server, host, deadline)
                else:
                    opened = _secured(outer, tls, route.server, host, deadline)
        except BaseException:
            opened.close()
            raise
        return opened


def _secured(opened: socket.socket, tls: ssl.SSLContext, to: Address, host: str, deadline: Deadline) -> ssl.SSLSocket:
    def wrap(seconds: float) -> ssl.SSLSocket:
        opened.settimeout(seconds)
        return tls.wrap_socket(opened, server_hostname=host)

    return _handshake(wrap, to, host, deadline)


def _handshake(wrap: Callable[[float], _Secured], to: Address, host: str, deadline: Deadline) -> _Secured:
    """Start TLS within some seconds, or raise why it failed."""
    try:
        return wrap(deadline.next_wait())
    except TimeoutError:
        what, fix = f"no TLS within {deadline.total_seconds:g} s", "is it the right port?"
    except ssl.SSLError as error:
        what, fix = handshake_failure(error, host)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the connection was closed"
        what, fix = f"no TLS: {reason}", "is it the right port?"
    raise Unreachable(what, where=str(to), fix=fix)


class ResponseStream:
    """A response whose data arrives in chunks."""

    def __init__(self, response: HTTPResponse, pieces: Iterator[bytes], deadline: Deadline) -> None:
        self._response = response
        self._deadline = deadline
        self.head = HttpAnswer(response.status, _lower(response), b"")
        """Without data."""
        self.pieces = pieces

    def may_be_quiet(self) -> None:
        """Allow any pause between chunks."""
        self._deadline.stall_seconds = self._deadline.total_seconds

    def close(self) -> None:
        """Stop reading."""
        self._response.close()


class _Translation:
    """Turns network errors into our errors, and closes the connection."""

    def __init__(self, connection: Connection, where: str, deadline: Deadline) -> None:
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
            what = f"no complete response within {seconds:g} s" if is_over else f"no data for {seconds:g} s"
            raise TimedOut(what, where=self._where, fix="is it overloaded?") from None
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            what, fix = handshake_failure(error, self._where)
            raise Unreachable(what, where=self._where, fix=fix) from None
        if isinstance(error, OSError):
            raise Unreachable("the server closed the connection", where=self._where) from None
        if isinstance(error, _Incomplete | IncompleteRead):
            raise Unreachable("the response was cut off", where=self._where) from None
        if isinstance(error, HTTPException | zlib.error | ValueError | OverflowError):
            raise BadAnswer("the response is not HTTP", where=self._where) from None


class _Incomplete(Exception):
    """Fewer bytes arrived than announced."""


def _pieces(response: HTTPResponse, most_bytes: int = _PIECE_BYTES) -> Iterator[bytes]:
    """Yield the body as it arrives, or in pieces of a size where its length is known."""
    if response.length is None:
        while piece := response.read1(_PIECE_BYTES):
            yield piece
    else:  # not by read1(), whose bytes Python before 3.12.2 does not count
        while piece := response.read(most_bytes):
            yield piece
    if response.length:
        raise _Incomplete


def _inflated(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield decompressed data in chunks of bounded size."""
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


def _keep_alive(opened: socket.socket) -> None:
    """Let the kernel notice that a server is gone, however long a watch is quiet."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _not_connected(error: Exception, to: Address, *, is_proxy: bool) -> Unreachable:
    if isinstance(error, socket.gaierror | UnicodeError):
        what, fix = f"cannot resolve {to.host}", "check the name and DNS"
    elif isinstance(error, TimeoutError):
        what, fix = "connection timed out", "check the network, firewall and VPN"
    elif isinstance(error, ConnectionRefusedError):
        what, fix = "connection refused", "check the address and port, and that the server is running"
    else:
        what, fix = (
            f"no connection: {getattr(error, 'strerror', None) or error}",
            "check the network, firewall and VPN",
        )
    return Unreachable(what, where=f"proxy {to}" if is_proxy else str(to), fix=fix)
