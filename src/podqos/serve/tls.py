"""The server's certificate, which can be replaced without closing connections."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime

from podqos.errors import InputError


class Certificate:
    """A certificate and its key, in two files."""

    def __init__(self, certificate: str, key: str) -> None:
        self.certificate, self.key = certificate, key
        self.expires: float | None = None
        """Expiry in seconds since 1970."""
        self._current = self.load()
        self.context = self._load()
        """The server's context; each new connection uses the latest certificate."""
        # A context cannot swap certificate and key atomically, but a connection can swap its context.
        self.context.sni_callback = lambda connection, _name, _context: setattr(connection, "context", self._current)

    def load(self) -> ssl.SSLContext:
        """Load the files for new connections. Raises InputError and changes nothing if they are not valid."""
        context = self._load()
        self.expires = _expiry(self.certificate)
        self._current = context
        return context

    def _load(self) -> ssl.SSLContext:
        context = _context()
        try:
            context.load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ssl.SSLError) as error:
            raise InputError(*_why(error, self.certificate, self.key)) from None
        return context


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _why(error: OSError, certificate: str, key: str) -> tuple[str]:
    if isinstance(error, ssl.SSLError):
        reason = error.reason or str(error)
        what = (
            "the key does not match the certificate"
            if "MISMATCH" in reason
            else f"not a PEM certificate and key ({reason})"
        )
        return (f"{certificate}, {key}: {what}",)
    missing = next((path for path in (certificate, key) if not os.access(path, os.R_OK)), certificate)
    return (f"{missing}: {error.strerror or error}",)


def _expiry(certificate: str) -> float | None:
    """Return when a certificate expires, if Python can tell."""
    try:
        decoded = ssl._ssl._test_decode_cert(certificate)  # type: ignore[attr-defined] # noqa: SLF001 - there is no public one
        moment = datetime.fromtimestamp(ssl.cert_time_to_seconds(decoded["notAfter"]), UTC)
    except (AttributeError, KeyError, ValueError, OSError):
        return None
    return moment.timestamp()
