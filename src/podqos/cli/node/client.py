"""The client of a running node's unix socket; errors are one line."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import NoReturn, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from podqos import __version__
from podqos.errors import HostError, InvalidOption

STATE_DIR = "/var/lib/podqos"
_SOCKET_NAME = "api.sock"
_PATIENCE_SECONDS = 10.0

T = TypeVar("T")


def add_state_dir_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--state-dir``, which identifies a node."""
    parser.add_argument(
        "--state-dir", metavar="DIR", default=STATE_DIR, help=f"the node's state directory (default: {STATE_DIR})"
    )


def add_lines_options(parser: argparse.ArgumentParser, following: str) -> None:
    """Declare ``--follow`` and ``--tail``."""
    parser.add_argument("-f", "--follow", action="store_true", help=following)
    parser.add_argument("--tail", metavar="LINES", type=int, help="only the last LINES lines")


def print_lines(
    arguments: argparse.Namespace, *segments: str, shown: Callable[[bytes], bytes] = bytes, **query: object
) -> None:
    """Print the lines of a response as they arrive."""
    if arguments.tail is not None and arguments.tail < 0:
        raise InvalidOption(f"{arguments.tail} lines", where="--tail", fix="0 or more")
    target = path(*segments, **query, tailLines=arguments.tail, follow=arguments.follow)
    for line in NodeClient(arguments.state_dir).lines(target, is_endless=arguments.follow):
        sys.stdout.buffer.write(shown(line))
        if arguments.follow:
            sys.stdout.buffer.flush()
    sys.stdout.buffer.flush()


def path(*segments: str, **query: object) -> str:
    """Return a request path; parameters that are None or False are left out."""
    given = {name: value for name, value in query.items() if value is not None and value is not False}
    text = "/" + "/".join(quote(segment, safe="") for segment in segments)
    return f"{text}?{urlencode({name: str(value).lower() for name, value in given.items()})}" if given else text


class NodeClient:
    """A client of a node."""

    def __init__(self, state_dir: str) -> None:
        self._socket = f"{state_dir.rstrip('/')}/{_SOCKET_NAME}"
        self._has_warned = False

    def get(self, target: str) -> bytes:
        """Return the node's answer."""
        with self._answered(target) as response:
            return response.read()

    def value(self, target: str, kind: type[T]) -> T:
        """Return the node's answer, decoded."""
        from podqos.manifest.amounts import decode_hook

        try:
            return msgspec.json.decode(self.get(target), type=kind, dec_hook=decode_hook)
        except msgspec.DecodeError as error:
            what = f"the node's response to {target} cannot be decoded: {error}; is it another version of podqos?"
            raise HostError(what) from error

    def lines(self, target: str, *, is_endless: bool = False) -> Iterator[bytes]:
        """Yield the lines of a response as they arrive, with newlines."""
        with self._answered(target, None if is_endless else _PATIENCE_SECONDS) as response:
            while line := response.readline():
                yield line

    @contextmanager
    def _answered(self, target: str, patience_seconds: float | None = _PATIENCE_SECONDS) -> Iterator[HTTPResponse]:
        """Send a request and yield the response; failures are one line."""
        connection = _Connection(self._socket)
        try:
            response = self._asked(connection, target, patience_seconds)
            try:
                self._check_version(response.getheader("Server", ""))
                if response.status >= 400:
                    _refuse(response)
                yield response
            except (OSError, HTTPException) as error:
                raise HostError("the node closed the connection: it stopped or crashed") from error
            finally:
                response.close()
        finally:
            connection.close()

    def _asked(self, connection: _Connection, target: str, patience_seconds: float | None) -> HTTPResponse:
        try:
            connection.request("GET", target)
            connection.sock.settimeout(patience_seconds)
            return connection.getresponse()
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
            raise HostError(
                f"no node is running with this state directory: no response at {self._socket}; start one with "
                "`podqos node run`, or give another directory with --state-dir"
            ) from error
        except PermissionError as error:
            what = f"{self._socket}: permission denied: run as the node's user, usually root"
            raise HostError(what) from error
        except TimeoutError as error:
            raise HostError(f"the node does not answer at {self._socket}") from error
        except (OSError, HTTPException) as error:
            raise HostError(f"{self._socket}: {error}") from error

    def _check_version(self, server: str) -> None:
        name, _, version = server.partition("/")
        if name != "podqos":
            raise HostError(f"{self._socket}: not a podqos node")
        if version != __version__ and not self._has_warned:
            self._has_warned = True
            print(
                f"podqos: the node is podqos {version}, this command {__version__}; restart the node to match",
                file=sys.stderr,
            )


def _refuse(response: HTTPResponse) -> NoReturn:
    text = response.read().decode(errors="replace").strip()
    raise HostError(f"the node rejected the request: {text}")


class _Connection(HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, name: str) -> None:
        super().__init__("localhost")
        self._name = name

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_PATIENCE_SECONDS)
        self.sock.connect(self._name)
