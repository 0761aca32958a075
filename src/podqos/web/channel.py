"""The bytes of one connection: TLS, if any, and answers that the client has not read yet.

TLS starts with the client's first complete record: before that, a connection costs little more than its socket. Of an
answer, only a little is encrypted and passed to the transport ahead of what the client reads. The rest stays where it
is, shared with the other connections that send the same answer.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

from podqos.web.holding import Held

_SLICE_BYTES = 64 << 10
_RECORD_BYTES = 16 << 10
"""A TLS record is never larger."""


_HANDSHAKE = 22
_RECORD_HEAD = 5


class HandshakeFailed(Exception):
    """What the client sent is not TLS, or not a version or cipher that the server accepts."""


class Channel:
    """Reads and writes a transport."""

    __slots__ = (
        "_context", "_held", "_hello", "_incoming", "_is_ending", "_is_paused", "_outgoing", "_tls", "_transport",
        "_unsent", "is_encrypted", "is_open", "is_over",
    )  # fmt: skip

    def __init__(self, transport: asyncio.Transport, context: ssl.SSLContext | None, held: Held) -> None:
        self._transport = transport
        self._context = context
        self._held = held
        self._hello = b""
        """The client's first TLS record, while it is incomplete."""
        self._tls: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO | None = None
        self._outgoing: ssl.MemoryBIO | None = None
        self._unsent: list[memoryview] = []
        self._is_paused = False
        self._is_ending = False
        self.is_encrypted = context is not None
        self.is_open = context is None
        """Whether answers can be sent: there is no TLS, or its handshake is complete."""
        self.is_over = False
        """Whether the client has ended TLS."""

    @property
    def is_shaking_hands(self) -> bool:
        """Whether the TLS handshake has begun and is not complete."""
        return self._tls is not None and not self.is_open

    @property
    def is_stalled(self) -> bool:
        """Whether something is left to send, and the client does not read."""
        return self._is_paused or bool(self._unsent)

    def holds_alone(self) -> bool:
        """Whether bytes are freed if this is closed."""
        return any(self._held.is_last(view.obj) for view in self._unsent)

    # ---- in ----------------------------------------------------------------------------------------------------------

    def received(self, data: bytes) -> list[bytes]:
        """Return what the client sent, decrypted. Raises HandshakeFailed."""
        if not self.is_encrypted:
            return [data]
        tls = self._tls
        if tls is None:
            data = self._hello = self._hello + data
            if not _is_whole(data):
                return []
            tls = self._begin()
        assert self._incoming is not None
        self._incoming.write(data)
        try:
            if not self.is_open:
                tls.do_handshake()
                self.is_open = True
            return self._decrypted(tls, self._incoming)
        except ssl.SSLWantReadError:
            return []
        except ssl.SSLZeroReturnError:
            self.is_over = True
            return []
        except ssl.SSLError as error:
            raise HandshakeFailed from error
        finally:
            self._flush()

    def _begin(self) -> ssl.SSLObject:
        assert self._context is not None
        self._hello = b""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        return self._tls

    def _decrypted(self, tls: ssl.SSLObject, incoming: ssl.MemoryBIO) -> list[bytes]:
        parts: list[bytes] = []
        try:
            while incoming.pending or tls.pending():
                part = tls.read(_RECORD_BYTES)
                if not part:
                    self.is_over = True
                    break
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_over = True
        return parts

    # ---- out ---------------------------------------------------------------------------------------------------------

    def write(self, data: bytes, body: bytes = b"") -> None:
        """Send, as fast as the client reads."""
        if not self.is_open or self._is_ending:
            return
        if not self.is_stalled and len(data) + len(body) <= _SLICE_BYTES:
            self._put(data + body if body else data)
            return
        for part in (data, body):
            if part:
                self._held.add(part)
                self._unsent.append(memoryview(part))
        self._pump()

    def pause(self) -> None:
        """Send no more until the client has read something."""
        self._is_paused = True

    def resume(self) -> None:
        """Send more."""
        self._is_paused = False
        self._pump()

    def _pump(self) -> None:
        unsent = self._unsent
        while unsent and not self._is_paused:
            view = unsent[0]
            if len(view) > _SLICE_BYTES:
                unsent[0] = view[_SLICE_BYTES:]
                view = view[:_SLICE_BYTES]
            else:
                unsent.pop(0)
                self._held.remove(view.obj)
            self._put(view)
        if self._is_ending and not unsent:
            self._close()

    def _put(self, data: bytes | memoryview) -> None:
        if self._tls is None:
            self._transport.write(data)
            return
        try:
            self._tls.write(data)
        except ssl.SSLError:  # the client has broken the protocol
            self.abort()
            return
        self._flush()

    def _flush(self) -> None:
        if self._outgoing is not None and self._outgoing.pending and not self._transport.is_closing():
            self._transport.write(self._outgoing.read())

    # ---- the end -----------------------------------------------------------------------------------------------------

    def pause_reading(self) -> None:
        """Receive no more."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Receive again."""
        self._transport.resume_reading()

    def close(self) -> None:
        """Close after everything is sent."""
        if not self._is_ending:
            self._is_ending = True
            if not self._unsent:
                self._close()

    def _close(self) -> None:
        if self._tls is not None and self.is_open:
            with suppress(ssl.SSLError):  # the client need not answer
                self._tls.unwrap()
            self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self.forget()
        self._transport.abort()

    def forget(self) -> None:
        """Drop what was not sent."""
        for view in self._unsent:
            self._held.remove(view.obj)
        self._unsent.clear()
        self._tls = self._incoming = self._outgoing = None


def _is_whole(hello: bytes) -> bool:
    """Whether the first TLS record has arrived. Raises HandshakeFailed if this is not TLS."""
    if hello[0] != _HANDSHAKE:
        raise HandshakeFailed
    size = int.from_bytes(hello[3:_RECORD_HEAD])
    if len(hello) >= _RECORD_HEAD and size > _RECORD_BYTES:
        raise HandshakeFailed
    return len(hello) >= _RECORD_HEAD + size
