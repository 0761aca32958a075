"""The page's server: who may ask, what is asked, and answers as JSON.

Values come from ``podqos.page``; nothing here decides. Input from visitors is looked up, decoded into a type or kept as
bytes. It never becomes a path, a command or markup. What the command was started with is answered by this process; what
a visitor uploads or pastes, and every long run, by a process of its own.
"""

from __future__ import annotations

import asyncio
import gc
import hmac
import re
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from podqos.errors import HostError, InputError, PodqosError
from podqos.manifest.encoding import json_line
from podqos.naming import stated_with
from podqos.page.session import ErrorAnswer, ErrorInfo, JobKind, PageSource, Session, SessionLimits, SourceInfo
from podqos.request_origin import is_from_elsewhere, is_loopback, is_own_name
from podqos.serve import sessions
from podqos.serve.compute import Compute, Failed
from podqos.serve.feeds import Feed
from podqos.serve.jobs import Job, JobRequest, Jobs
from podqos.serve.live import Live, told
from podqos.serve.server import Bodies, Server, on_request_to_stop, run
from podqos.serve.sessions import NoRoom, StartSource, TooLarge, Upload, Visitor, Visitors, file_name
from podqos.serve.sharing import START
from podqos.serve.shown_paths import ShownPaths, without_directories
from podqos.serve.sources import demo_files
from podqos.serve.tls import Certificate
from podqos.serve.work import (
    CLUSTER,
    JobTask,
    Question,
    RequestRefusal,
    answer,
    answer_about,
    compared,
    decoded,
    pasted,
    question_of,
    read,
)
from podqos.version import __version__

T = TypeVar("T")

FILES_TYPE = "application/vnd.podqos.files+json"
_HTML = "text/html; charset=utf-8"
_JSON = "application/json"
_EVENTS = "text/event-stream"
_CSP = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"\s*/?>')
_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+)$")
_SECURITY = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_ASK_AGAIN = (
    b"<!doctype html><title>podqos</title><p>Open the address that podqos ui printed: this token is not the one."
)
_BODY_BYTES = {"/api/sources": sessions.UPLOAD_BYTES, "/api/autopsy": sessions.PASTE_BYTES}
_OTHER_BODY_BYTES = 256 << 10
_BODIES_BYTES = 64 << 20
_BRACES = 4
"""Names of uploaded files may contain some."""
_STREAMS, _JOBS, _KEPT_JOBS = 8, 4, 8
"""Of one visitor at a time."""
_VIEW_SECONDS, _READ_SECONDS = 20.0, 60.0
_PROCESSES, _PROCESS_BYTES = 4, 1 << 30
_RUNS, _RUN_BYTES = 2, 4 << 30
_SWEEP_SECONDS = 5.0


class UploadedFile(Struct, frozen=True):
    """One of several files that are uploaded together."""

    name: str
    data: bytes
    """Base64-encoded."""


class UploadedFiles(Struct, frozen=True):
    """Files that belong together: a scenario and its manifests, or a directory."""

    files: tuple[UploadedFile, ...]


class PageAccess(Struct, frozen=True):
    """Who may use the page."""

    names: frozenset[str]
    """Allowed host names in lower case, besides IP addresses."""
    token: str = ""
    """The token that a visitor must present first; empty: none."""
    is_encrypted: bool = False

    @property
    def scheme(self) -> str:
        """Of the page's address."""
        return "https" if self.is_encrypted else "http"

    @classmethod
    def to(cls, host: str, names: tuple[str, ...] = (), *, token: str = "", is_encrypted: bool = False) -> PageAccess:
        """Return the access rules for an address."""
        own = {"localhost", host.lower(), *(name.lower() for name in names)}
        return cls(frozenset(own if is_loopback(host) else {*own, socket.gethostname().lower()}), token, is_encrypted)

    def is_token(self, text: str) -> bool:
        """Whether it is the token."""
        return hmac.compare_digest(text.strip().encode(), self.token.encode())


class PageServer:
    """Answers the requests of pages."""

    def __init__(self, viewer: str, access: PageAccess, say: Callable[[str], None] = lambda _: None) -> None:
        found = _CSP.search(viewer)
        assert found is not None, "not the built viewer"
        self._page = viewer.encode()
        self._csp = f"{found[1].rstrip('; ')}; frame-ancestors 'none'"
        """As a header it can be stricter than the page's own."""
        self._page_etag = f'"{sha256(self._page).hexdigest()[:24]}"'
        self._access = access
        self._say = say
        self.app: ASGIApp = GZipMiddleware(
            Bodies(
                self._serve,
                lambda path: _BODY_BYTES.get(path, _OTHER_BODY_BYTES),
                in_all=_BODIES_BYTES,
                refuse=_refused,
            )
        )
        self._visitors = Visitors()
        self._views = Compute(_PROCESSES, _PROCESS_BYTES, "podqos.serve.work")
        self._runs = Compute(_RUNS, _RUN_BYTES, "podqos.serve.work")
        self._jobs = Jobs(self._runs)
        self._pool = ThreadPoolExecutor(2, "view")
        """For what the command was started with."""
        self._live: Live | None = None
        self._cookie = "podqos"
        self._instance = secrets.token_hex(4)
        """Identifies this server: a restarted one differs."""
        self._tasks: list[asyncio.Task[None]] = []
        self._paths: tuple[PageSource | None, ShownPaths] = (None, ShownPaths())

    async def begin(self, source: PageSource | None, feed: Feed | None, port: int) -> None:
        """Start with a source, if any. The cookie is named after the port, because ports share cookies."""
        self._cookie = f"podqos-{port}"
        self._tasks.append(asyncio.ensure_future(self._sweep()))
        if source is not None:
            self._live = Live(source, feed, self._pool, self._say, self._instance)
            await self._live.prepare()
            self._tasks.append(asyncio.ensure_future(self._live.follow()))

    def end(self) -> None:
        """Stop everything that was started here."""
        for task in self._tasks:
            task.cancel()
        self._visitors.end_all()
        for each in (self._views, self._runs):
            each.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self._visitors.forget_old()

    # ---- who asks ----------------------------------------------------------------------------------------------------

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            self._check_origin(request)
            if request.url.path == "/" and request.method in {"GET", "HEAD"}:
                found = self._app(request)
            elif request.url.path.startswith("/api/"):
                key, visitor = self._visitor(request)
                body = await request.body()
                found = await _unless_gone(receive, self._answered(request, body, visitor))
                found.headers.update(self._setting_cookie(key))
            else:
                found = _refused(404, "no such page")
        except RequestRefusal as refusal:
            found = _refused(refusal.status, str(refusal))
        await found(scope, receive, send)

    def _check_origin(self, request: Request) -> None:
        """Reject requests that another page makes a browser send: from another site, or through DNS rebinding."""
        headers = request.headers
        host = ", ".join(headers.getlist("host"))
        if not is_own_name(host, self._access.names):
            raise RequestRefusal(421, f"unknown host name {host[:100]!r}; allow it with {stated_with('name')}")
        is_read = request.method in {"GET", "HEAD"}
        if is_read and request.url.path == "/":
            return
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if is_from_elsewhere(host, origin, site, is_read=is_read, scheme=self._access.scheme):
            raise RequestRefusal(403, "requests from other sites are not allowed")

    def _visitor(self, request: Request) -> tuple[str, Visitor]:
        """Return the visitor; the key is empty for a known one."""
        visitor = self._visitors.known(self._cookie_of(request))
        if visitor is not None:
            return "", visitor
        if self._access.token:
            scheme, _, shown = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not self._access.is_token(shown):
                raise RequestRefusal(401, "open the address that podqos ui printed: it contains the token")
        return self._visitors.welcome()

    def _cookie_of(self, request: Request) -> str | None:
        # Python's own parser takes quadratic time for quotes and backslashes.
        cookies = (part.partition("=") for part in request.headers.get("cookie", "").split(";"))
        return next((value.strip() for name, _, value in cookies if name.strip() == self._cookie), None)

    def _setting_cookie(self, key: str) -> dict[str, str]:
        secure = "; Secure" if self._access.is_encrypted else ""
        return {"set-cookie": f"{self._cookie}={key}; Path=/; HttpOnly; SameSite=Strict{secure}"} if key else {}

    def _app(self, request: Request) -> Response:
        """Return the page itself, which contains no data; a token in its address becomes a cookie."""
        shown = _query(request).get("token")
        if shown is not None:
            if not self._access.token or not self._access.is_token(shown):
                return _response(_ASK_AGAIN, 401, _HTML, {"content-security-policy": "default-src 'none'"})
            key, _ = self._visitors.welcome()
            return _response(b"", 303, _HTML, {**self._setting_cookie(key), "location": "/"})
        headers = {"content-security-policy": self._csp, "etag": self._page_etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == self._page_etag:
            return _response(b"", 304, _HTML, headers)
        return _response(self._page, 200, _HTML, headers)

    # ---- the API -----------------------------------------------------------------------------------------------------

    async def _answered(self, request: Request, body: bytes, visitor: Visitor) -> Response:
        """Answer an API request; no answer tells where the files of this machine are, errors neither."""
        found = await self._routed(request, body, visitor)
        if not isinstance(found, StreamingResponse):
            found.body = self._shown_paths().hide(bytes(found.body))
            found.headers["content-length"] = str(len(found.body))
        return found

    async def _routed(self, request: Request, body: bytes, visitor: Visitor) -> Response:
        """Answer an API request; any exception becomes an error answer."""
        try:
            return await self._route(request, body, visitor)
        except RequestRefusal as refusal:
            return _refused(refusal.status, str(refusal))
        except NoRoom as error:
            return _refused(error.status, str(error))
        except TimeoutError:
            return _refused(422, "it takes too long to compute here: open a smaller part")
        except PodqosError as error:
            return _failed(error)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not take the server down
            what = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {str(error)[:500]}"
            self._say(f"{request.method} {request.url.path}: {what}")
            return _refused(500, f"podqos failed: {what.partition(':')[0]}")

    def _shown_paths(self) -> ShownPaths:
        """Return what visitors see instead of the paths of the current source."""
        source = None if self._live is None else self._live.shown.source
        if self._paths[0] is not source:
            self._paths = (source, ShownPaths(source))
        return self._paths[1]

    async def _route(self, request: Request, body: bytes, visitor: Visitor) -> Response:
        query = _query(request)
        match request.method, request.url.path.removeprefix("/api/").split("/"):
            case "GET" | "HEAD", ["session"]:
                return _json(self._session(visitor))
            case "GET", ["live"]:
                last = request.headers.get("last-event-id", "") or query.get("since", "")
                is_once = "once" in query
                parts = told(self._live, visitor, self._instance, last, is_once=is_once)
                if is_once:  # a finite answer, which any proxy passes on
                    return _response(b"".join([part async for part in parts]), 200, _EVENTS)
                return self._stream(visitor, parts)
            case "POST", ["sources"]:
                return await self._upload(request, query, body, visitor)
            case "POST", ["demo"]:
                return await self._opened(await self._in_pool(demo_files), None, visitor)
            case "GET" | "HEAD", ["sources", key]:
                return _json(self._info(self._shown(visitor, key)))
            case "DELETE", ["sources", key]:
                del visitor.sources[_known(visitor.sources, key, "source").id]
                return _response(b"", 204)
            case "GET" | "HEAD", ["sources", key, "cluster"]:
                return await self._cluster(request, self._shown(visitor, key))
            case method, ["sources", key, view]:
                question = question_of(method, view, query, body)
                return _response(await self._asked(self._shown(visitor, key), question))
            case "POST", ["jobs"]:
                return self._begin_job(body, visitor)
            case "GET" | "HEAD", ["jobs"]:
                return _json([job.info() for job in visitor.jobs.values()])
            case method, ["jobs", key, *rest]:
                return self._job(method, rest, _known(visitor.jobs, key, "run"))
            case "POST", ["autopsy"]:
                known = self._shown(visitor, query["source"]) if "source" in query else None
                source = known.files if isinstance(known, Upload) else known and known.source
                return _response(await self._views.run(pasted, body, source, seconds=_READ_SECONDS))
            case "GET" | "HEAD", ["compare"]:
                return await self._compare(query, visitor)
        raise RequestRefusal(404, "no such path")

    def _session(self, visitor: Visitor) -> Session:
        own = (self._info(source) for source in visitor.sources.values())
        start = () if self._live is None else (self._info(self._live.shown),)
        return Session(
            __version__,
            (*start, *own),
            SessionLimits(
                sessions.UPLOAD_BYTES,
                sessions.PASTE_BYTES,
                sessions.FILES,
                sessions.SOURCES,
                sessions.VISITOR_BYTES,
                sessions.EXPIRES_SECONDS,
            ),
            self._live is not None and self._live.is_live,
        )

    def _info(self, shown: StartSource | Upload) -> SourceInfo:
        if isinstance(shown, Upload):
            return shown.info()
        return shown.info(is_live=self._live is not None and self._live.is_live)

    def _shown(self, visitor: Visitor, key: str) -> StartSource | Upload:
        if key == START and self._live is not None:
            return self._live.shown
        return self._visitors.used(_known(visitor.sources, key, "source"))

    def _stream(self, visitor: Visitor, parts: AsyncGenerator[bytes, None]) -> Response:
        if visitor.streams >= _STREAMS:
            raise RequestRefusal(429, "too many pages are open; close some")

        async def counted() -> AsyncGenerator[bytes, None]:
            visitor.streams += 1
            try:
                async for part in parts:
                    yield self._shown_paths().hide(part)
            finally:
                visitor.streams -= 1
                await parts.aclose()

        unbuffered = {"x-accel-buffering": "no"}  # for a proxy in front of this server
        return StreamingResponse(counted(), headers={**_SECURITY, **unbuffered, "content-type": _EVENTS})

    async def _upload(self, request: Request, query: Mapping[str, str], body: bytes, visitor: Visitor) -> Response:
        """Store files as a new source, or add them to an existing one."""
        if request.headers.get("content-type") == FILES_TYPE:
            if body.count(b"{") > _BRACES * sessions.FILES:  # each file has one: none is decoded
                raise _too_many_files()
            given = {file_name(file.name): file.data for file in decoded(body, UploadedFiles).files}
        else:
            given = {file_name(query.get("name", "")): body}
        if not any(data.strip() for data in given.values()):
            raise InputError("it is empty", where=", ".join(given), fix="open a file with content")
        before = _known(visitor.sources, query["to"], "source") if "to" in query else None
        files = {**({} if before is None else before.files), **given}
        if len(files) > sessions.FILES:
            raise _too_many_files()
        return await self._opened(files, before, visitor)

    async def _opened(self, files: Mapping[str, bytes], before: Upload | None, visitor: Visitor) -> Response:
        """Store files as a visitor's source, or instead of one."""
        found = await self._views.run(read, files, seconds=_READ_SECONDS)
        if before is None:
            shown = Upload(found, files, secrets.token_hex(8))
        else:
            if visitor.sources.get(before.id) is not before:
                what = "the source was changed or removed while these files were read: add them again"
                raise RequestRefusal(409, what)
            shown = Upload(found, files, before.id, before.generation + 1)
        self._visitors.keep(visitor, shown)
        return _json(self._info(shown), 201)

    async def _cluster(self, request: Request, shown: StartSource | Upload) -> Response:
        live = self._live if isinstance(shown, StartSource) else None
        etag = f'"{f"{shown.id}-{shown.generation}" if live is None else live.etag(shown.generation)}"'
        if request.headers.get("if-none-match") == etag:
            return _response(b"", 304, headers={"etag": etag})
        if live is not None:
            newest, data = await live.whole()
            etag = f'"{newest}"'
        else:
            data = await self._asked(shown, Question(CLUSTER))
        return _response(data, headers={"etag": etag})

    def _asked(self, shown: StartSource | Upload, question: Question) -> Awaitable[bytes]:
        """Return the encoded answer to a question about a source, computed once."""

        async def here() -> bytes:
            assert isinstance(shown, StartSource)
            async with shown.lock:
                return await self._in_pool(lambda: answer(shown.page, question))

        async def elsewhere() -> bytes:
            assert isinstance(shown, Upload)
            return await self._views.run(answer_about, shown.files, question, seconds=_VIEW_SECONDS)

        return shown.answers.of(question, elsewhere if isinstance(shown, Upload) else here)

    async def _in_pool(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    # ---- long runs ---------------------------------------------------------------------------------------------------

    def _begin_job(self, body: bytes, visitor: Visitor) -> Response:
        asked = decoded(body, JobRequest)
        shown = self._shown(visitor, asked.source)
        info = self._info(shown)
        asked.check(info.kind, info.name)
        if sum(not job.is_over for job in visitor.jobs.values()) >= _JOBS:
            raise NoRoom("too many runs at once", fix="wait for one to finish, or cancel it")
        over = [key for key, job in visitor.jobs.items() if job.is_over]
        for key in over[: max(0, len(over) - _KEPT_JOBS + 1)]:
            del visitor.jobs[key]
        source, files = (None, shown.files) if isinstance(shown, Upload) else (shown.source, {})
        job = Job(asked, shown.generation, visitor.bell.ring)
        visitor.jobs[job.id] = job
        self._jobs.begin(job, JobTask(asked.kind, source, asked.node, asked.edits, files))
        visitor.bell.ring()
        return _json(job.info(), 201)

    def _job(self, method: str, rest: list[str], job: Job) -> Response:
        match "GET" if method == "HEAD" else method, rest:
            case "GET", []:
                return _json(job.info())
            case "GET", ["result"]:
                if job.result is None:
                    raise RequestRefusal(409, f"no result: {job.error or f'it is {job.state}'}")
                return _response(job.result)
            case "DELETE", []:
                job.cancel()
                return _json(job.info())
        raise RequestRefusal(404, "no such path")

    async def _compare(self, query: Mapping[str, str], visitor: Visitor) -> Response:
        before, after = (_known(visitor.jobs, query.get(each, ""), "run") for each in ("before", "after"))
        for job in (before, after):
            if job.request.kind is not JobKind.RUN or job.result is None:
                raise RequestRefusal(409, "only finished runs can be compared")
        return _response(await self._views.run(compared, before.result, after.result, seconds=_VIEW_SECONDS))


async def _unless_gone(receive: Receive, work: Coroutine[Any, Any, Response]) -> Response:
    """Answer, unless the client leaves before: then nobody needs it, and what was begun for it ends."""
    gone, answering = asyncio.ensure_future(receive()), asyncio.ensure_future(work)
    try:
        await asyncio.wait((gone, answering), return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else Response(status_code=499)
    finally:
        gone.cancel()
        answering.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await answering


def _known(kept: Mapping[str, T], key: str, what: str) -> T:
    found = kept.get(key)
    if found is None:
        raise RequestRefusal(404, f"no such {what}: it was removed, has expired, or belongs to another visitor")
    return found


def _too_many_files() -> TooLarge:
    return TooLarge(f"more than {sessions.FILES} files", fix="open one directory at a time")


def _query(request: Request) -> dict[str, str]:
    """Return the parameters of a request; of repeated ones the first."""
    try:
        found = parse_qs(request.url.query, max_num_fields=16)
    except ValueError:
        raise RequestRefusal(400, "more than 16 parameters") from None
    return {name: values[0] for name, values in found.items()}


def _response(
    body: bytes, status: int = 200, content_type: str = _JSON, headers: Mapping[str, str] | None = None
) -> Response:
    kind = {} if status in {204, 304} else {"content-type": content_type}
    return Response(body, status, {**_SECURITY, **kind, **(headers or {})})


def _json(value: object, status: int = 200) -> Response:
    return _response(json_line(value), status)


def _refused(status: int, message: str) -> Response:
    return _response(msgspec.json.encode(ErrorAnswer(ErrorInfo(message))), status)


def _failed(error: PodqosError) -> Response:
    """Return the error in a visitor's input, and where it is."""
    where = str(error.where) if isinstance(error, InputError) else ""
    place = _PLACE.match(where)
    found = (
        ErrorInfo(without_directories(str(error)), where)
        if place is None
        else ErrorInfo(without_directories(str(error)), place["file"], int(place["line"]), int(place["column"]))
    )
    return _response(msgspec.json.encode(ErrorAnswer(found)), 422)


# ---- serving ---------------------------------------------------------------------------------------------------------


class Started(Struct, frozen=True):
    """What the server starts with."""

    source: PageSource | None
    """None: the page is empty until a visitor opens something."""
    feed: Feed | None = None
    """The feed that updates it."""


class ListenAddress(Struct, frozen=True):
    """Where a server listens."""

    host: str
    port: int
    or_any_port: bool = False
    """Whether to try another port if this one is taken."""
    certificate: Certificate | None = None
    """None: without TLS."""


def serve_page(
    viewer: str,
    access: PageAccess,
    started: Started,
    listening: ListenAddress,
    *,
    ready: Callable[[str], None],
    say: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM; ``ready`` is called with the address."""
    gc.enable()
    run(_run(PageServer(viewer, access, say), access, started, listening, ready))


async def _run(
    page: PageServer, access: PageAccess, started: Started, listening: ListenAddress, ready: Callable[[str], None]
) -> None:
    is_told = asyncio.Event()
    on_request_to_stop(is_told.set)
    context = None if listening.certificate is None else listening.certificate.context
    try:
        server = Server(page.app, listening.host, listening.port, context)
    except HostError:
        if not listening.or_any_port:
            raise
        server = Server(page.app, listening.host, 0, context)
    serving = asyncio.create_task(server.serve())
    port = server.address[1]
    await page.begin(started.source, started.feed, port)
    name = f"[{listening.host}]" if ":" in listening.host else listening.host
    query = f"?token={access.token}" if access.token else ""
    ready(f"{access.scheme}://{name}:{port}/{query}")
    await is_told.wait()
    server.stop()
    page.end()
    await serving
