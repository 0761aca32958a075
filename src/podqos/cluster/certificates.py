"""Pure: the expiry of a certificate, which Python does not tell for one that is not in use."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from datetime import UTC, datetime

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0xA0, 0x17, 0x18


def valid_until(pem: str) -> datetime | None:
    """Return when the first certificate in a text expires; None if that cannot be read."""
    block = _BLOCK.search(pem)
    if block is None:
        return None
    try:
        data = b64decode(block[1])
        _, at, _ = _element(data, 0)  # Certificate
        _, at, _ = _element(data, at)  # TBSCertificate
        tag, _, end = _element(data, at)
        if tag == _VERSION:
            at = end
        for _field in ("serialNumber", "signature", "issuer"):
            at = _element(data, at)[2]
        _, at, _ = _element(data, at)  # validity
        at = _element(data, at)[2]  # notBefore
        tag, at, end = _element(data, at)
        text = data[at:end].decode("ascii")
        formats = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}
        return datetime.strptime(text, formats[tag]).replace(tzinfo=UTC)
    except (binascii.Error, IndexError, KeyError, ValueError):
        return None


def _element(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag, and the start and end of the contents, of the DER element at an offset."""
    tag, length, start = data[at], data[at + 1], at + 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[at + 2 : start], "big")
    return tag, start, start + length
