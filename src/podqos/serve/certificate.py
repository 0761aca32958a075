"""A certificate for the webhook and its CA, for clusters without cert-manager.

One directory holds ``ca.crt``, ``ca.key``, ``tls.crt`` and ``tls.key``. Running it again keeps what is still valid. The
serving certificate is renewed when a third of its lifetime is left or its names change, the CA when it would expire
before the certificate. A replaced CA stays in ``ca.crt`` until it expires, so that clients of that file trust both the
old and the new certificate during the rollout.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from podqos.errors import HostError, InputError
from podqos.serve.settings import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE

AUTHORITY_KEY_FILE = "ca.key"
_AUTHORITY_DAYS = 3650
_SKEW = timedelta(hours=1)
_NAME = "podqos webhook CA"
# Windows has no O_NOFOLLOW, and would change line ends.
_TO_REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_LABEL = "[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_DNS_NAME = re.compile(rf"(?=.{{1,253}}$)(\*\.)?{_LABEL}(\.{_LABEL})*")

_Key = ec.EllipticCurvePrivateKey


class Made(Struct, frozen=True):
    """The current content of a directory."""

    folder: str
    names: tuple[str, ...]
    expires: datetime
    is_new: bool
    """Whether the serving certificate was created just now."""
    is_new_authority: bool


def make(
    folder: str, names: Sequence[str], *, days: int = 365, now: datetime | None = None, force: bool = False
) -> Made:
    """Create or renew the certificates in a directory; ``names`` are DNS names and addresses."""
    now = now or datetime.now(UTC)
    lifetime = timedelta(days=days)
    _alternatives(names)
    try:
        os.makedirs(folder, exist_ok=True)
        authorities, authority_key = _authority(folder)
        is_new_authority = (
            not authorities
            or authority_key is None
            or authority_key.public_key() != authorities[0].public_key()
            or authorities[0].not_valid_after_utc < now + lifetime
        )
        if is_new_authority:
            authority_key = ec.generate_private_key(ec.SECP256R1())
            living = [authority for authority in authorities if authority.not_valid_after_utc > now]
            authorities = [
                _authority_certificate(authority_key, now, max(lifetime * 2, timedelta(_AUTHORITY_DAYS))),
                *living,
            ]
        assert authority_key is not None
        serving = None if is_new_authority or force else _serving(folder, names, authorities[0], now)
        is_new = serving is None
        if serving is None:
            key = ec.generate_private_key(ec.SECP256R1())
            serving = _serving_certificate(key, names, (authorities[0], authority_key), now, lifetime)
            if is_new_authority:
                # Trusted before it is needed; its key only where nothing else is lost by it.
                _write(folder, AUTHORITY_KEY_FILE, _key_text(authority_key), 0o600)
                _write(folder, AUTHORITY_FILE, b"".join(map(_text, authorities)), 0o644)
            _write(folder, KEY_FILE, _key_text(key), 0o600)
            _write(folder, CERTIFICATE_FILE, _text(serving), 0o644)
    except OSError as error:
        raise HostError(f"{error.filename or folder}: {error.strerror or error}") from error
    return Made(folder, tuple(names), serving.not_valid_after_utc, is_new, is_new_authority)


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the DNS names of a Service; the first is the one that an API server uses."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}", service, f"{service}.{namespace}.svc.cluster.local")


def check_service(folder: str, service: str, namespace: str, now: datetime | None = None) -> None:
    """Raise InputError unless the certificate in a directory is valid for that Service."""
    where = os.path.join(folder, CERTIFICATE_FILE)
    host = service_names(service, namespace)[0]
    fix = f"make one with `podqos webhook certificate {folder} -n {namespace}`"
    try:
        found = x509.load_pem_x509_certificate(_read(folder, CERTIFICATE_FILE))
        extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = extension.value.get_values_for_type(x509.DNSName)
    except (ValueError, x509.ExtensionNotFound) as error:
        raise InputError(f"not a PEM certificate with DNS names: {error}", where=where, fix=fix) from None
    if host not in names:
        raise InputError(
            f"the certificate is for {names[0] if names else 'no DNS name'}, not for {host}", where=where, fix=fix
        )
    if found.not_valid_after_utc < (now or datetime.now(UTC)):
        raise InputError(f"the certificate expired on {found.not_valid_after_utc:%Y-%m-%d}", where=where, fix=fix)


# ---- what is there --------------------------------------------------------------------------------------------------


def _authority(folder: str) -> tuple[list[x509.Certificate], _Key | None]:
    text, key_text = _read(folder, AUTHORITY_FILE), _read(folder, AUTHORITY_KEY_FILE)
    try:
        authorities = x509.load_pem_x509_certificates(text) if text else []
        key = serialization.load_pem_private_key(key_text, None) if key_text else None
    except ValueError as error:
        where = os.path.join(folder, AUTHORITY_FILE)
        raise InputError(
            f"not a PEM certificate authority: {error}", where=where, fix="choose another directory"
        ) from None
    return authorities, key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _serving(folder: str, names: Sequence[str], authority: x509.Certificate, now: datetime) -> x509.Certificate | None:
    """Return the certificate in a directory if it is still valid."""
    text, key_text = _read(folder, CERTIFICATE_FILE), _read(folder, KEY_FILE)
    if not text or not key_text:
        return None
    try:
        found = x509.load_pem_x509_certificate(text)
        key = serialization.load_pem_private_key(key_text, None)
        found.verify_directly_issued_by(authority)
        stated = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # noqa: BLE001 - an unusable one is replaced
        return None
    lifetime = found.not_valid_after_utc - found.not_valid_before_utc
    is_good = (
        key.public_key() == found.public_key()
        and set(stated) == set(_alternatives(names))
        and found.not_valid_after_utc - now > lifetime / 3
    )
    return found if is_good else None


# ---- what is made ---------------------------------------------------------------------------------------------------


def _authority_certificate(key: _Key, now: datetime, lifetime: timedelta) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return (
        _builder(name, name, key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )


def _serving_certificate(
    key: _Key, names: Sequence[str], authority: tuple[x509.Certificate, _Key], now: datetime, lifetime: timedelta
) -> x509.Certificate:
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    issuing, issuing_key = authority
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuing_key.public_key())
    return (
        _builder(subject, issuing.subject, key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_alternatives(names)), critical=False)
        .add_extension(issuer, critical=False)
        .sign(issuing_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: _Key, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _alternatives(names: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            if not _DNS_NAME.fullmatch(name):
                raise InputError(f"{name!r} is not a valid DNS name", fix="use letters, digits, - and .") from None
            found.append(x509.DNSName(name))
    return found


def _text(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_text(key: _Key) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _read(folder: str, name: str) -> bytes:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _write(folder: str, name: str, text: bytes, mode: int) -> None:
    """Replace a file atomically; a key is never readable by others, not even briefly."""
    path = os.path.join(folder, name)
    scratch = f"{path}.new"
    descriptor = os.open(scratch, _TO_REPLACE, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(scratch, mode)
    os.replace(scratch, path)
