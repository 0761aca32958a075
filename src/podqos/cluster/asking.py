"""Edge: requests to one server: keeps connections open and credentials fresh, and retries where that helps."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlencode, urljoin, urlsplit

from msgspec.structs import replace

from podqos.cluster.credentials import Credentials, file_state
from podqos.cluster.kubeconfig import Access
from podqos.cluster.patience import PATIENT, Patience, is_temporary, pause_seconds
from podqos.cluster.proxies import address_of, proxy_for
from podqos.cluster.refusals import RBACQuestion, as_line, refusal, status_of
from podqos.cluster.tls import client_context, proxy_context
from podqos.cluster.transport import Connection, HttpAnswer, NoAnswer, ResponseStream, Route, SentRequest
from podqos.errors import BadAnswer, ClusterError, InputError, Unreachable

Query = Iterable[tuple[str, str]]
_Headers = list[tuple[str, str]]
_Ask = Callable[[Connection, _Headers], HttpAnswer]
"""Sends a request on a connection, with the headers that authenticate it."""
_JSON = "application/json"
_MOST_ERROR_BYTES = 1 << 20


class Client:
    """Sends requests to one server. Several threads may use it at once."""

    def __init__(
        self,
        access: Access,
        *,
        credentials: Credentials | None = None,
        patience: Patience = PATIENT,
        environment: Mapping[str, str] = os.environ,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Connect on the first request.

        ``credentials`` are those of another client, which keeps them fresh: a 401 here does not mean that they are not.
        ``environment`` is where proxies are named. ``headers`` are sent with every GET.
        """
        address = address_of(access.server)
        if address is None:
            raise InputError(f"{access.server!r} is not a valid address", fix="write https://HOST:PORT")
        self.access = access
        self.patience = patience
        self._address = address
        self._base = urlsplit(access.server).path.rstrip("/")
        self._proxy = proxy_for(address, access.proxy_url, environment)
        self.credentials = credentials or Credentials(access)
        self._is_guest = credentials is not None
        self._headers = list(headers)
        self._closing = threading.Event()
        self._idle: list[Connection] = []
        self._streaming: set[Connection] = set()
        self._kept_route: tuple[object, Route] | None = None
        self.has_answered = False
        """Whether the server has ever said anything."""

    @property
    def where(self) -> str:
        """The server, for errors."""
        return str(self._address)

    def is_closed(self) -> bool:
        """Whether it is closed."""
        return self._closing.is_set()

    def pause(self, seconds: float) -> None:
        """Wait, unless it is closed."""
        self._closing.wait(seconds)

    def close(self) -> None:
        """Close all connections; a watch in another thread ends."""
        self._closing.set()
        self._take(None)
        for connection in tuple(self._streaming):
            connection.close()

    def get(
        self, path: str, query: Query = (), *, asked: RBACQuestion | None = None, patience: Patience | None = None
    ) -> HttpAnswer:
        """Return a successful response; raise for any other."""
        encoding = "gzip" if self.access.is_compressed else "identity"
        headers = [("Accept", _JSON), ("Accept-Encoding", encoding), *self._headers]
        patience = patience or self.patience

        def ask(connection: Connection, credentials: _Headers) -> HttpAnswer:
            answer = connection.get(self._target(path, query), headers + credentials, patience)
            self._put_back(connection)
            return answer

        return self._persistently(ask, asked, patience)

    def send(self, sent: SentRequest, path: str, query: Query, content_type: str, patience: Patience) -> HttpAnswer:
        """Send a request other than GET once, and return any response; after a 401, again with fresh credentials."""
        said = [("Accept", _JSON), ("Content-Type", content_type)]

        def ask(connection: Connection, credentials: _Headers) -> HttpAnswer:
            answer = connection.exchange(sent, self._target(path, query), said + credentials, patience)
            self._put_back(connection)
            return answer

        headers = self.credentials.headers()
        answer = self._exchange(ask, headers, patience)
        if answer.status == 401 and not self._is_guest and self.credentials.refresh(headers):
            answer = self._exchange(ask, self.credentials.headers(), patience)
        return answer

    @contextmanager
    def stream(
        self, path: str, query: Query, *, asked: RBACQuestion, patience: Patience, accept: str = _JSON
    ) -> Iterator[ResponseStream]:
        """Open a response that lasts as long as the server wants; ``accept`` is the media type to ask for."""
        opened: list[tuple[ResponseStream, Connection]] = []

        def ask(connection: Connection, credentials: _Headers) -> HttpAnswer:
            self._streaming.add(connection)
            if self.is_closed():
                raise Unreachable("the connection is closed", where=self.where)
            stream = connection.stream(self._target(path, query), [("Accept", accept), *credentials], patience)
            if stream.head.is_success:
                opened.append((stream, connection))
                return stream.head
            data = b"".join(_first(stream.pieces, _MOST_ERROR_BYTES))
            stream.close()
            self._end(connection)
            return replace(stream.head, data=data)

        self._persistently(ask, asked, patience)
        stream, connection = opened.pop()
        try:
            yield stream
        finally:
            stream.close()
            self._end(connection)

    def _end(self, connection: Connection) -> None:
        self._streaming.discard(connection)
        connection.close()

    def _target(self, path: str, query: Query) -> str:
        parameters = urlencode(list(query))
        return f"{self._base}{path}{'?' if parameters else ''}{parameters}"

    def _persistently(self, ask: _Ask, asked: RBACQuestion | None, patience: Patience) -> HttpAnswer:
        """Retry until there is a good response, or no point in retrying."""
        begun = time.monotonic()
        attempt = 0
        is_refreshed = self._is_guest
        while True:
            headers = self.credentials.headers()
            failure: ClusterError
            retry_after = None
            try:
                answer = self._exchange(ask, headers, patience)
                self.has_answered = True
                if answer.is_success:
                    return answer
                if answer.status == 401 and not is_refreshed:
                    is_refreshed = True
                    if self.credentials.refresh(headers):
                        continue
                status = status_of(answer.status, answer.data)
                identity = self.credentials.described() if answer.status in {401, 403} else ""
                failure = refusal(asked, status, self.where, identity=identity)
                if 300 <= answer.status < 400 and "location" in answer.headers:
                    failure = self._redirected(failure, answer.headers["location"])
                if not is_temporary(answer.status):
                    raise failure
                retry_after = answer.headers.get("retry-after")
            except Unreachable as error:
                # A server that has never answered is not there; one that has may be back in a moment.
                if not self.has_answered or self.is_closed():
                    raise
                failure = error
            if attempt + 1 >= patience.attempts:
                raise failure
            pause = pause_seconds(attempt, retry_after, random.random())  # noqa: S311 - no secret
            if time.monotonic() + pause - begun > patience.total_seconds:
                raise failure
            attempt += 1
            self.pause(pause)

    def _redirected(self, failure: ClusterError, location: str) -> BadAnswer:
        """Return the error about a redirect, which would send credentials elsewhere."""
        try:
            parts = urlsplit(urljoin(f"{self._address}/", location))
        except ValueError:
            return BadAnswer(failure.what, where=self.where)
        place = as_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
        is_here = place.startswith(f"{self._address}/")
        fix = "use that address" if not is_here else "is it behind a login page? Give its direct address, or a token"
        return BadAnswer(
            f"{failure.what}: a redirect to {place}, which podqos does not follow", where=self.where, fix=fix
        )

    def _exchange(self, ask: _Ask, credentials: _Headers, patience: Patience) -> HttpAnswer:
        while True:
            route = self._route()
            connection = self._take(route) or Connection(route, patience)
            try:
                return ask(connection, credentials)
            except NoAnswer:
                self._end(connection)  # it was kept for too long; a new one says why if this was not the reason
            except BaseException:
                self._end(connection)
                raise

    def _take(self, route: Route | None) -> Connection | None:
        """Return an idle connection; close those made with other certificates."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.route is route:
                return connection
            connection.close()

    def _put_back(self, connection: Connection) -> None:
        if connection.is_reusable and not self.is_closed():
            self._idle.append(connection)
        else:
            connection.close()

    def _route(self) -> Route:
        """Return the way to the server; certificates may have changed since the last time."""
        access, proxy = self.access, self._proxy
        certificate = self.credentials.certificate() if self._address.is_tls else ""
        state = certificate, file_state(access.ca_file)
        if self._kept_route is None or self._kept_route[0] != state:
            tls = client_context(access, certificate) if self._address.is_tls else None
            proxy_tls = proxy_context(access) if proxy is not None and proxy.is_tls else None
            route = Route(self._address, tls, access.tls_server_name, proxy, proxy_tls)
            self._kept_route = state, route
        return self._kept_route[1]


def _first(pieces: Iterator[bytes], most_bytes: int) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        yield piece
        size += len(piece)
        if size > most_bytes:
            return
