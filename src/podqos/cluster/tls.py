"""Edge: TLS as kubectl does it: which CAs to trust, and the client certificate.

Python's defaults are stricter than Go's in two points that break real clusters: since 3.13 it rejects authorities
without certain extensions (VERIFY_X509_STRICT), and before that it takes only roots for an anchor, where Go takes any
certificate of the authority's file.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from podqos.cluster.kubeconfig import Access
from podqos.errors import InputError

# Why verification failed: OpenSSL's numbers (x509_vfy.h), and what to do about it.
_NOT_YET_VALID = 9
_EXPIRED = 10
_WRONG_HOST = frozenset({62, 64})


def client_context(access: Access, certificate: str) -> ssl.SSLContext:
    """Return the TLS context for a server; ``certificate`` is the client's, with its key, in PEM, or empty."""
    context = _context(access)
    if not access.is_insecure:
        _trust(context, access)
    if certificate:
        _load_certificate(context, certificate, access)
    return context


def proxy_context(access: Access) -> ssl.SSLContext:
    """Return the TLS context for a proxy: this machine's CAs and the cluster's are trusted."""
    context = _context(access)
    if not access.is_insecure:
        context.load_default_certs()
        _trust(context, access)
    return context


def _context(access: Access) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if access.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _trust(context: ssl.SSLContext, access: Access) -> None:
    try:
        if access.ca_data:
            context.load_verify_locations(cadata=access.ca_data)
        elif access.ca_file:
            context.load_verify_locations(cafile=access.ca_file)
        else:
            context.load_default_certs()
    except FileNotFoundError:
        raise InputError("no such file", where=access.ca_file, fix="fix certificate-authority") from None
    except OSError as error:
        where = access.ca_file if access.ca_file and not access.ca_data else f"cluster of context {access.context}"
        reason = error.strerror if not isinstance(error, ssl.SSLError) else "no PEM certificate"
        raise InputError(
            f"certificate-authority: {reason}", where=where, fix="give the CA certificate in PEM"
        ) from None


def _load_certificate(context: ssl.SSLContext, certificate: str, access: Access) -> None:
    """Load a certificate from text. Python accepts only files; on Linux this one never reaches a disk."""
    where = f"user of context {access.context}" if access.context else access.server

    def no_password() -> str:
        raise InputError("the client key has a password", where=where, fix="`openssl pkey` removes it")

    try:
        with _as_file(certificate.encode()) as path:
            context.load_cert_chain(path, password=no_password)
    except ssl.SSLError as error:
        reason = (
            "the client key belongs to another certificate" if "KEY_VALUES_MISMATCH" in str(error) else "is not PEM"
        )
        raise InputError(f"client certificate: {reason}", where=where, fix="log in again") from None


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Return the path of a file with this content; except on Linux it has a name, and only its owner can read it."""
    if hasattr(os, "memfd_create"):
        memory = os.memfd_create("client-certificate")
        try:
            os.write(memory, data)
            yield f"/proc/self/fd/{memory}"
        finally:
            os.close(memory)
        return
    import tempfile

    handle, path = tempfile.mkstemp()
    try:
        with open(handle, "wb") as file:
            file.write(data)
        yield path
    finally:
        os.unlink(path)


def handshake_failure(error: ssl.SSLError, host: str) -> tuple[str, str]:
    """Return why a TLS handshake failed, and how to fix it."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        text = (error.reason or str(error)).lower().replace("_", " ")
        if "alert" in text and "certificate" in text:
            return f"the server rejected the client certificate ({text})", "log in again"
        if "wrong version number" in text or "http request" in text:
            return "the server does not speak TLS", "is it http:// only, or a proxy?"
        return f"TLS failed: {text}", "check the server's address and port"
    code, message = error.verify_code, error.verify_message
    if code == _EXPIRED:
        return "its certificate has expired", "renew it on the server; check this machine's clock"
    if code == _NOT_YET_VALID:
        return "its certificate is not valid yet", "check this machine's clock"
    if code in _WRONG_HOST:
        return f"its certificate was not issued for {host}", "set tls-server-name in the kubeconfig"
    return f"its certificate is not trusted: {message}", "check certificate-authority in the kubeconfig"
