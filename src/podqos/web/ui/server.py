"""The paths of the page: access control, requests, and answers as JSON.

Values come from ``answers.page``; nothing here decides. Input from visitors is looked up, decoded into a type or kept
as bytes. It never becomes a path, a command or markup.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import TypeVar
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct

from podqos.answers.page.job import JobKind
from podqos.answers.page.session import ErrorAnswer, ErrorInfo, Session, SessionLimits, SourceInfo
from podqos.answers.page.source import PageSource
from podqos.errors import InputError, PodqosError
from podqos.manifest.encoding import json_line
from podqos.naming import stated_with
from podqos.request_origin import is_from_elsewhere, is_loopback, is_own_name
from podqos.version import __version__
from podqos.web.http import JSON, Answer, EventStream, Request, Response, Server
from podqos.web.settings import Limits
from podqos.web.ui.demo import demo_files
from podqos.web.ui.giving_way import Bodies, Streams
from podqos.web.ui.inquiry import Busy, Inquiry
from podqos.web.ui.jobs import Job, JobRequest, Jobs, JobTask, check_request, encoded, new_id, pickled
from podqos.web.ui.live import Live, told
from podqos.web.ui.memory import usable_bytes
from podqos.web.ui.pasting import PASTED
from podqos.web.ui.refusal import RequestRefusal, decoded
from podqos.web.ui.sessions import NoRoom, SessionSource, TooLarge, Upload, Visitor, Visitors, file_name, source_key
from podqos.web.ui.settings import PASTE_PATH, UPLOAD_PATH, UiLimits, http_limits_within, limits_within
from podqos.web.ui.sharing import START
from podqos.web.ui.shown_paths import ShownPaths, without_directories
from podqos.web.ui.tasks import Comparison, Given, Paste, Reading, ReadSource
from podqos.web.ui.turns import Turns
from podqos.web.ui.views import CLUSTER, SLOW, Question, answer, question_of
from podqos.web.ui.worker_process import WorkerFailed
from podqos.web.ui.workers import Workers

T = TypeVar("T")

FILES_TYPE = "application/vnd.podqos.files+json"
_HTML = "text/html; charset=utf-8"
_EVENTS = "text/event-stream"
_UNBUFFERED = (("x-accel-buffering", "no"),)
"""For a proxy in front of this server."""
_KEPT_HEADERS = frozenset(
    {b"host", b"cookie", b"authorization", b"origin", b"sec-fetch-site", b"if-none-match", b"last-event-id"}
)
_CSP = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"\s*/?>')
_MORE_CSP = "frame-ancestors 'none'"
_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+)$")
_SECURITY = (
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
_ASK_AGAIN = (
    b"<!doctype html><title>podqos</title><p>Open the address that podqos ui printed: this token is not the one."
)
_SWEEP_SECONDS = 10.0
_ABANDONED_SWEEP_SECONDS = 2.0
_MOST_PARAMETERS = 16
_BRACES = 4
"""Names of uploaded files may contain some."""
_VIEWS = 2
"""Number of answers about the start source that are computed in parallel."""


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


class Ui:
    """Answers the requests of pages."""

    def __init__(
        self,
        viewer: str,
        access: PageAccess,
        *,
        limits: UiLimits | None = None,
        http_limits: Limits | None = None,
        jobs: Jobs | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.page, self._csp = served_page(viewer)
        self._page_etag = f'"{sha256(self.page).hexdigest()[:24]}"'
        self.access = access
        self.limits = limits = limits or limits_within(usable_bytes())
        self.say = say
        http_limits = http_limits or http_limits_within(usable_bytes())
        self.server = Server(
            self.handle, http_limits, kept_headers=_KEPT_HEADERS, body_bytes=self._body_bytes, compresses=True
        )
        self.visitors = Visitors(lambda: asyncio.get_running_loop().time(), limits)
        processes = limits.workers
        self.jobs = jobs or Jobs(process_bytes=processes.run_bytes, seconds=limits.job_seconds)
        self.workers = Workers(processes, self.jobs, say)
        self.live: Live | None = None
        self.pool = ThreadPoolExecutor(_VIEWS, "view")
        """For what follows the start source; visitors' questions about it have threads of their own."""
        self._quick = ThreadPoolExecutor(1, "quick")
        self._slow = ThreadPoolExecutor(1, "slow")
        self._turns, self._slow_turns = (
            Turns(pool, processes.waiting_of_one_visitor, processes.waiting) for pool in (self._quick, self._slow)
        )
        self._bodies = Bodies(limits.uploading_bytes)
        self._streams = Streams(limits.all_streams)
        self._start_pickled: tuple[int, bytes] = (0, b"")
        self._cookie = "podqos"
        self.instance = secrets.token_hex(4)
        """Identifies this server: a restarted one differs."""
        self._tasks: list[asyncio.Task[None]] = []
        self._paths: tuple[PageSource | None, ShownPaths] = (None, ShownPaths())

    def begin(self, live: Live | None, port: int) -> None:
        """Start with a source, if any. The cookie is named after the port, because ports share cookies."""
        self._cookie = f"podqos-{port}"
        self.live = live
        self._tasks.append(asyncio.ensure_future(self._sweep()))
        self._tasks.append(asyncio.ensure_future(self._sweep_jobs()))
        if live is not None:
            self._tasks.append(asyncio.ensure_future(live.follow()))

    async def end(self, seconds: float) -> bool:
        """Stop, with everything that was started here."""
        for task in self._tasks:
            task.cancel()
        await self.jobs.stop()
        was_clean = await self.server.stop(seconds)
        await self.workers.stop()
        for pool in (self.pool, self._quick, self._slow):
            pool.shutdown(wait=False, cancel_futures=True)
        return was_clean

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self.limits.expires_seconds / 4))
            self.visitors.forget_old()

    async def _sweep_jobs(self) -> None:
        while True:
            await asyncio.sleep(min(_ABANDONED_SWEEP_SECONDS, self.limits.abandoned_seconds / 4))
            self.visitors.end_abandoned()
            self.visitors.drop_results()
            self.jobs.go_on()

    def _body_bytes(self, target: bytes) -> int:
        match target.partition(b"?")[0].decode(errors="replace"):
            case path if path == UPLOAD_PATH:
                return self.limits.upload_bytes
            case path if path == PASTE_PATH:
                return self.limits.paste_bytes
        return self.server.limits.body_bytes

    # ---- who asks ----------------------------------------------------------------------------------------------------

    def handle(self, request: Request) -> Answer | Awaitable[Answer]:
        """Answer a request."""
        try:
            self._check_origin(request)
            if request.path == "/" and request.method in {"GET", "HEAD"}:
                return self._app(request)
            if request.path.startswith("/api/"):
                key, visitor = self._visitor(request)
                answering = asyncio.ensure_future(self._answered(request, key, visitor))
                visitor.asks(answering)
                return answering
        except RequestRefusal as refusal:
            return _refused(refusal.status, str(refusal))
        except NoRoom as error:
            return _refused(error.status, str(error))
        return _refused(404, "no such page")

    def _check_origin(self, request: Request) -> None:
        """Reject requests that another page makes a browser send: from another site, or through DNS rebinding."""
        headers = request.headers
        host = headers.get("host", "")
        if not is_own_name(host, self.access.names):
            raise RequestRefusal(421, f"unknown host name {host[:100]!r}; allow it with {stated_with('name')}")
        is_read = request.method in {"GET", "HEAD"}
        if is_read and request.path == "/":
            return
        origin, site, scheme = headers.get("origin"), headers.get("sec-fetch-site"), self.access.scheme
        if is_from_elsewhere(host, origin, site, is_read=is_read, scheme=scheme):
            raise RequestRefusal(403, "requests from other sites are not allowed")

    def _visitor(self, request: Request) -> tuple[str, Visitor]:
        """Return the visitor; the key is empty for a known one."""
        visitor = self.visitors.known(self._cookie_of(request))
        if visitor is not None:
            return "", visitor
        is_let_in = not self.access.token
        if not is_let_in:
            scheme, _, shown = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not self._is_token(shown):
                raise RequestRefusal(401, "open the address that podqos ui printed: it contains the token")
        return self.visitors.welcome(is_let_in=True)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.strip().encode(), self.access.token.encode())

    def _cookie_of(self, request: Request) -> str | None:
        # Python's own parser takes quadratic time for quotes and backslashes.
        cookies = (part.partition("=") for part in request.headers.get("cookie", "").split(";"))
        return next((value.strip() for name, _, value in cookies if name.strip() == self._cookie), None)

    def _setting_cookie(self, key: str) -> tuple[tuple[str, str], ...]:
        secure = "; Secure" if self.access.is_encrypted else ""
        value = f"{self._cookie}={key}; Path=/; HttpOnly; SameSite=Strict{secure}"
        return (("set-cookie", value),) if key else ()

    # ---- the app -----------------------------------------------------------------------------------------------------

    def _app(self, request: Request) -> Response:
        """Return the page itself, which contains no data; a token in its address becomes a cookie."""
        shown = _query(request).get("token")
        if shown is not None:
            if not self.access.token or not self._is_token(shown):
                return Response(_ASK_AGAIN, 401, _HTML, (*_SECURITY, ("content-security-policy", "default-src 'none'")))
            key, _ = self.visitors.welcome(is_let_in=True)
            return Response(b"", 303, _HTML, (*_SECURITY, *self._setting_cookie(key), ("location", "/")))
        headers = (
            ("content-security-policy", self._csp),
            ("etag", self._page_etag),
            *((name, "no-cache" if name == "cache-control" else value) for name, value in _SECURITY),
        )
        if request.headers.get("if-none-match") == self._page_etag:
            return Response(b"", 304, _HTML, headers)
        return Response(self.page, 200, _HTML, headers)

    # ---- the API -----------------------------------------------------------------------------------------------------

    async def _answered(self, request: Request, key: str, visitor: Visitor) -> Answer:
        """Answer an API request; any exception becomes an error answer."""
        try:
            answer = await self._route(request, visitor)
        except RequestRefusal as refusal:
            answer = _refused(refusal.status, str(refusal))
        except (NoRoom, Busy) as error:
            answer = _refused(error.status, str(error))
        except PodqosError as error:
            answer = _failed(error)
        except WorkerFailed as error:
            self.say(f"{request.method} {request.path}: {error}")
            answer = _refused(500, f"podqos failed: {str(error).partition(':')[0]}")
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug of ours must not take the server down
            self.say(f"{request.method} {request.path}: {type(error).__name__}: {str(error)[:500]}")
            answer = _refused(500, f"podqos failed: {type(error).__name__}")
        extra = self._setting_cookie(key)
        if isinstance(answer, EventStream):
            return EventStream(self._hidden(answer.parts), answer.content_type, (*answer.headers, *_SECURITY, *extra))
        body = self._shown_paths().hide(answer.body)
        return Response(body, answer.status, answer.content_type, (*answer.headers, *_SECURITY, *extra))

    def _shown_paths(self) -> ShownPaths:
        """Return what visitors see instead of the paths of the current source."""
        source = None if self.live is None else self.live.shown.source
        if self._paths[0] is not source:
            self._paths = (source, ShownPaths(source))
        return self._paths[1]

    async def _hidden(self, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        try:
            async for part in parts:
                yield self._shown_paths().hide(part)
        finally:
            await parts.aclose()

    async def _route(self, request: Request, visitor: Visitor) -> Answer:
        query = _query(request)
        match request.method, request.path.removeprefix("/api/").split("/"):
            case "GET" | "HEAD", ["session"]:
                self.workers.prepare()
                return _json(self._session(visitor))
            case "GET", ["live"]:
                last = request.headers.get("last-event-id", "") or query.get("since", "")
                is_once = "once" in query
                parts = told(self.live, visitor, self.instance, last, is_once=is_once)
                return await _at_once(parts) if is_once else self._stream(visitor, parts)
            case "POST", ["sources"]:
                return await self._upload(request, query, visitor)
            case "POST", ["demo"]:
                return await self._opened(await self._in(self._slow, demo_files), None, visitor)
            case "GET" | "HEAD", ["sources", key]:
                return _json(self._info(self._shown(visitor, key)))
            case "DELETE", ["sources", key]:
                self.workers.forget(_known(visitor.sources, key, "source").given.key)
                del visitor.sources[key]
                return Response(b"", 204)
            case "GET" | "HEAD", ["sources", key, "cluster"]:
                return await self._cluster(request, self._shown(visitor, key), visitor)
            case method, ["sources", key, view]:
                question = question_of(method, view, query, request.body)
                return Response(await self._asked(visitor, self._shown(visitor, key), question))
            case "POST", ["jobs"]:
                return self._begin_job(request, visitor)
            case "GET" | "HEAD", ["jobs"]:
                return _json([job.info() for job in visitor.jobs.values()])
            case method, ["jobs", key, *rest]:
                return self._job(method, rest, _known(visitor.jobs, key, "run"))
            case "POST", ["autopsy"]:
                return await self._pasted(request, query, visitor)
            case "GET" | "HEAD", ["compare"]:
                return await self._compare(query, visitor)
        raise RequestRefusal(404, "no such path")

    def _session(self, visitor: Visitor) -> Session:
        own = (self._info(source) for source in visitor.sources.values())
        start = () if self.live is None else (self._info(self.live.shown),)
        limits = self.limits
        return Session(
            __version__,
            (*start, *own),
            SessionLimits(
                limits.upload_bytes,
                limits.paste_bytes,
                limits.files,
                limits.sources,
                limits.visitor_bytes,
                limits.expires_seconds,
            ),
            self.live is not None and self.live.is_live,
        )

    def _info(self, shown: SessionSource | Upload) -> SourceInfo:
        if isinstance(shown, Upload):
            return shown.info()
        return shown.info(is_live=self.live is not None and self.live.is_live)

    def _shown(self, visitor: Visitor, key: str) -> SessionSource | Upload:
        if key == START and self.live is not None:
            return self.live.shown
        return self.visitors.used(_known(visitor.sources, key, "source"))

    def _stream(self, visitor: Visitor, parts: AsyncGenerator[bytes, None]) -> EventStream:
        if visitor.streams >= self.limits.streams:
            raise RequestRefusal(429, "too many pages are open; close some")
        return EventStream(self._streams.counted(visitor, parts), _EVENTS, _UNBUFFERED)

    async def _upload(self, request: Request, query: Mapping[str, str], visitor: Visitor) -> Response:
        """Store files as a new source, or add them to an existing one."""
        return await self._bodies.kept(len(request.body), self._kept(request, query, visitor))

    async def _kept(self, request: Request, query: Mapping[str, str], visitor: Visitor) -> Response:
        if request.content_type == FILES_TYPE:
            if request.body.count(b"{") > _BRACES * self.limits.files:  # each file has one: none is decoded
                raise self._too_many_files()
            given = {file_name(file.name): file.data for file in decoded(request.body, UploadedFiles).files}
        else:
            given = {file_name(query.get("name", "")): request.body}
        if not any(data.strip() for data in given.values()):
            raise InputError("it is empty", where=", ".join(given), fix="open a file with content")
        before = _known(visitor.sources, query["to"], "source") if "to" in query else None
        files = {**({} if before is None else before.files), **given}
        if len(files) > self.limits.files:
            raise self._too_many_files()
        return await self._opened(files, before, visitor)

    def _too_many_files(self) -> TooLarge:
        return TooLarge(f"more than {self.limits.files} files", fix="open one directory at a time")

    async def _opened(self, files: Mapping[str, bytes], before: Upload | None, visitor: Visitor) -> Response:
        """Store files as a visitor's source, or instead of one."""
        key, generation = (new_id(), 1) if before is None else (before.id, before.generation + 1)
        # Two additions at the same time have the same generation, but not the same files.
        attempt = source_key(key, generation) if before is None else f"{source_key(key, generation)}-{new_id()}"
        inquiry = Inquiry(Reading(), Given(attempt, files), next(iter(files)))
        read = msgspec.json.decode(await self.workers.ask(visitor, inquiry), type=ReadSource)
        if before is not None and visitor.sources.get(before.id) is not before:
            raise RequestRefusal(409, "the source was changed or removed while these files were read: add them again")
        shown = Upload(read, Given(attempt, files), key, generation)
        self.visitors.keep(visitor, shown)
        return _json(self._info(shown), 201)

    async def _pasted(self, request: Request, query: Mapping[str, str], visitor: Visitor) -> Response:
        """Answer with the autopsy of a text, which is not kept; the named source may know its pods."""
        shown = self._shown(visitor, query["source"]) if "source" in query else None
        given = shown.given if isinstance(shown, Upload) else None if shown is None else await self._start_given(shown)
        inquiry = Inquiry(Paste(request.body), given, PASTED, "paste the lines around one OOM kill")
        return Response(await self._bodies.kept(len(request.body), self.workers.ask(visitor, inquiry)))

    async def _start_given(self, shown: SessionSource) -> Given:
        """Return the start source for a worker; each state of it is pickled once."""
        generation, data = self._start_pickled
        if generation != shown.generation:
            self.workers.forget(source_key(START, generation))
            data = await self._in(self._slow, lambda: pickled(shown.source))
            self._start_pickled = shown.generation, data
        return Given(source_key(START, shown.generation), pickled=data)

    async def _cluster(self, request: Request, shown: SessionSource | Upload, visitor: Visitor) -> Response:
        live = self.live if isinstance(shown, SessionSource) else None
        etag = f'"{source_key(shown.id, shown.generation) if live is None else live.etag(shown.generation)}"'
        if request.headers.get("if-none-match") == etag:
            return Response(b"", 304, headers=(("etag", etag),))
        if live is not None:
            newest, data = await live.whole()
            etag = f'"{newest}"'
        else:
            data = await self._asked(visitor, shown, Question(CLUSTER))
        return Response(data, headers=(("etag", etag),))

    async def _asked(self, visitor: Visitor, shown: SessionSource | Upload, question: Question) -> bytes:
        """Return the encoded answer to a question about a source: in a worker if a visitor has uploaded it."""
        if isinstance(shown, Upload):
            return await self.workers.ask(visitor, Inquiry(question, shown.given, shown.info().name))
        if question.view in SLOW:  # on a copy, so that quick ones need not wait
            return await self._slow_turns.computed(
                visitor, shown.lock_apart, lambda: json_line(answer(shown.page_apart, question))
            )
        return await self._turns.computed(visitor, shown.lock, lambda: json_line(answer(shown.page, question)))

    async def _in(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    # ---- long runs ---------------------------------------------------------------------------------------------------

    def _begin_job(self, request: Request, visitor: Visitor) -> Response:
        asked = decoded(request.body, JobRequest)
        shown = self._shown(visitor, asked.source)
        info = self._info(shown)
        check_request(asked, info.kind, info.name)
        limits = self.limits
        running = sum(not job.is_over for job in visitor.jobs.values())
        if running >= limits.jobs or not self.jobs.has_room(visitor, limits.all_jobs):
            raise NoRoom("too many runs at once", fix="wait for one to finish, or cancel it")
        over = [key for key, job in visitor.jobs.items() if job.is_over]
        for key in over[: max(0, len(over) - limits.kept_jobs + 1)]:
            del visitor.jobs[key]

        def task() -> JobTask:
            shown = self._shown(visitor, asked.source)
            job.generation = shown.generation
            if isinstance(shown, Upload):
                return JobTask(asked.kind, None, asked.node, asked.edits, shown.given.files)
            return JobTask(asked.kind, shown.source, asked.node, asked.edits)

        job = Job(asked, task, shown.generation, visitor.bell.ring, visitor)
        visitor.jobs[job.id] = job
        visitor.bell.ring()
        self.jobs.add(job)
        return Response(encoded(job), 201)

    def _job(self, method: str, rest: list[str], job: Job) -> Answer:
        match "GET" if method == "HEAD" else method, rest:
            case "GET", []:
                return Response(encoded(job))
            case "GET", ["result"]:
                if job.result is None:
                    what = job.error or f"it is {job.state}"
                    raise RequestRefusal(409, f"no result: {what}")
                return Response(job.result)
            case "DELETE", []:
                job.cancel()
                self.jobs.go_on()
                return Response(encoded(job))
        raise RequestRefusal(404, "no such path")

    async def _compare(self, query: Mapping[str, str], visitor: Visitor) -> Response:
        before, after = (_known(visitor.jobs, query.get(each, ""), "run") for each in ("before", "after"))
        for job in (before, after):
            if job.request.kind is not JobKind.RUN or job.result is None:
                raise RequestRefusal(409, "only finished runs can be compared")

        inquiry = Inquiry(Comparison(before.result or b"", after.result or b""), where="compare", fix="run less of it")
        return Response(await self.workers.ask(visitor, inquiry))


async def _at_once(parts: AsyncGenerator[bytes, None]) -> Response:
    """Return a finite stream as one answer, which any proxy passes on."""
    return Response(b"".join([part async for part in parts]), 200, _EVENTS)


def _known(kept: Mapping[str, T], key: str, what: str) -> T:
    found = kept.get(key)
    if found is None:
        raise RequestRefusal(404, f"no such {what}: it was removed, has expired, or belongs to another visitor")
    return found


def _query(request: Request) -> dict[str, str]:
    """Return the parameters of a request; of repeated ones the first."""
    try:
        found = parse_qs(request.query, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise RequestRefusal(400, f"more than {_MOST_PARAMETERS} parameters") from None
    return {name: values[0] for name, values in found.items()}


def _json(value: object, status: int = 200) -> Response:
    return Response(json_line(value), status, JSON)


def _refused(status: int, message: str) -> Response:
    return Response(msgspec.json.encode(ErrorAnswer(ErrorInfo(message))), status, JSON, _SECURITY)


def _failed(error: PodqosError) -> Response:
    """Return the error in a visitor's input, and where it is."""
    where = str(error.where) if isinstance(error, InputError) else ""
    place = _PLACE.match(where)
    found = (
        ErrorInfo(without_directories(str(error)), where)
        if place is None
        else ErrorInfo(without_directories(str(error)), place["file"], int(place["line"]), int(place["column"]))
    )
    return Response(msgspec.json.encode(ErrorAnswer(found)), 422, JSON, _SECURITY)


def served_page(viewer: str) -> tuple[bytes, str]:
    """Return the page as it is served, and its policy as a header, which is stricter than the page's own."""
    found = _CSP.search(viewer)
    assert found is not None, "not the built viewer"
    return viewer.encode(), f"{found[1].rstrip('; ')}; {_MORE_CSP}"
