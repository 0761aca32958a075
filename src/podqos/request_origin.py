"""Whether another site makes a browser send a request: directly, or by a name that it rebound to this machine."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Container

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str | None:
    """Return the name or address in a Host header, without its port, in lower case; None: it is not valid."""
    given = _HOST.fullmatch(host)
    return None if given is None else given[1].strip("[]").lower()


def is_own_name(host: str, names: Container[str]) -> bool:
    """Whether a Host header is one of these names, or an IP address, which cannot be rebound."""
    name = host_name(host)
    if name is None:
        return False
    if name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_from_elsewhere(host: str, origin: str | None, site: str | None, *, is_read: bool, scheme: str = "http") -> bool:
    """Whether the page of another site sends a request, by its Origin and Sec-Fetch-Site headers; None: absent."""
    if site is not None and site != "same-origin" and not (is_read and site == "none"):
        return True
    return origin is not None and origin != f"{scheme}://{host}"
