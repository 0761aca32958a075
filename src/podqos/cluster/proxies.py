"""Pure: which proxy to use for a server, by the rules of Go, and so of kubectl.

Sources: golang.org/x/net/http/httpproxy (FromEnvironment, useProxy).
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from podqos.errors import InputError

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class Address(Struct, frozen=True):
    """An address and its protocol."""

    scheme: str
    host: str
    port: int
    username: str = ""
    password: str = ""

    @property
    def is_tls(self) -> bool:
        """Whether it uses TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """``host:port``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        """Return it without credentials."""
        return f"{self.scheme}://{self.authority}"


def proxy_for(server: Address, stated: str, environment: Mapping[str, str]) -> Address | None:
    """Return the proxy for a server: the given one, else the environment's; None for a direct connection."""
    if stated:
        return proxy_address(stated, "proxy-url")
    name = "HTTPS_PROXY" if server.is_tls else "HTTP_PROXY"
    found = environment.get(name) or environment.get(name.lower())
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not found or not _uses_proxy(server, exceptions):
        return None
    return proxy_address(found, name)


def proxy_address(url: str, where: str) -> Address:
    """Return the address of a proxy."""
    address = address_of(url if "://" in url else f"http://{url}", _DEFAULT_PORTS)
    if address is None:
        raise InputError(
            f"{url!r} is not a valid proxy address", where=where, fix="write http://HOST:PORT, https:// or socks5://"
        )
    return address


def address_of(url: str, ports: Mapping[str, int] = {"http": 80, "https": 443}) -> Address | None:
    """Return the address of a URL, or None if it is invalid; ``ports`` has the default ports by scheme."""
    try:
        parts: SplitResult = urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
        if not host.isascii():
            host = host.encode("idna").decode()
    except ValueError:
        return None
    if parts.scheme not in ports or not host or port == 0 or not host.isprintable() or " " in host:
        return None
    return Address(
        parts.scheme,
        host,
        port or ports[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def _uses_proxy(server: Address, exceptions: str) -> bool:
    host = server.host.rstrip(".").lower()
    if host == "localhost":
        return False
    from ipaddress import ip_address, ip_network

    try:
        ip = ip_address(host)
    except ValueError:
        ip = None
    if ip is not None and ip.is_loopback:
        return False
    for entry in (part.strip().lower() for part in exceptions.split(",")):
        if not entry:
            continue
        if entry == "*":
            return False
        if "/" in entry:
            try:
                if ip is not None and ip in ip_network(entry, strict=False):
                    return False
            except ValueError:
                pass
            continue
        name, port = _split_port(entry)
        if port and port != str(server.port):
            continue
        if ip is not None:
            try:
                if ip == ip_address(name):
                    return False
            except ValueError:
                pass
            continue
        name = name.removeprefix("*")
        if host.endswith(name if name.startswith(".") else f".{name}") or host == name:
            return False
    return True


def _split_port(entry: str) -> tuple[str, str]:
    """Return host and port of an exception; an IPv6 address has a port only behind brackets."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""
