"""Edge: usage over time from Prometheus, or from anything with its query API: Thanos, Mimir, VictoriaMetrics.

Someone named this server, so what goes wrong here is an error, not an assumption. A range is asked for in parts. Where
a server says that a part is too much, or does not finish it in time, the part is halved; smaller ones are asked for
from there on. Redirects are not followed: credentials go to the server that was named, and to no other.

Sources: https://prometheus.io/docs/prometheus/latest/querying/api/ (422 for what cannot be executed, 503 for what timed
out, ``warnings`` next to data); Thanos' partial responses are warnings, VictoriaMetrics says ``isPartial``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Self

from msgspec import Struct

from podqos.cluster.asking import Client
from podqos.cluster.kubeconfig import Access, User
from podqos.cluster.patience import Patience
from podqos.cluster.proxies import address_of
from podqos.cluster.refusals import as_line
from podqos.cluster.transport import AnswerTooLong, TimedOut
from podqos.errors import (
    BadAnswer,
    ClusterError,
    Forbidden,
    InputError,
    NotFound,
    Refused,
    Unauthorized,
    Unreachable,
)
from podqos.manifest.samples import PrometheusSeries, read_matrix
from podqos.naming import naming

_MOST_POINTS = 10_000
"""Maximum points of one series in one response; Prometheus rejects more than 11,000."""
_MOST_TOTAL = 20_000_000
"""Maximum samples of one query: some gigabytes here."""
PATIENCE = Patience(attempts=3, stall_seconds=120.0, total_seconds=300.0)
"""Prometheus sends nothing while it computes, by default for up to two minutes."""
_TOO_MUCH = re.compile(
    r"too many|exceed|limit|maximum|\bmax|too large|larger than|tim(ed|e) ?out|deadline", re.IGNORECASE
)
_TOO_MUCH_STATUS = frozenset({400, 413, 422, 500, 502, 503, 504})
_MOST_SLOW = 3
"""How many times in a row a part that takes too long is halved."""
_SMALLER = "query a single namespace or a shorter time range"
_SHOWN_CHARACTERS = 300

Report = Callable[[int, int], None]
"""Receives how many points of a range have arrived, and the total."""


class PrometheusAccess(Struct, frozen=True, kw_only=True):
    """The address of a Prometheus, credentials, and trusted CAs."""

    url: str
    """May contain a user, a password and a path."""
    token: str = ""
    token_file: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers sent with every request, such as the tenant's."""
    ca_data: str = ""
    """Certificates in PEM; by default, this machine's are trusted."""

    def __repr__(self) -> str:
        """Return nothing secret: what is printed in a traceback ends up in logs."""
        return "PrometheusAccess(…)"


class TimeRange(Struct, frozen=True):
    """Start, end and step, in seconds since 1970."""

    start: float
    end: float
    step_seconds: float
    most_points: int = _MOST_POINTS
    """Maximum points per request."""

    @property
    def points(self) -> int:
        """The maximum number of points of a series."""
        return int((self.end - self.start) // self.step_seconds) + 1


class RangeAnswer(Struct, frozen=True):
    """Series, and the server's warnings, such as missing data."""

    series: tuple[PrometheusSeries, ...]
    warnings: tuple[str, ...] = ()


class Prometheus:
    """Queries one Prometheus."""

    def __init__(self, access: PrometheusAccess, *, patience: Patience = PATIENCE) -> None:
        """Connect on the first query."""
        url = access.url
        address = address_of(url)
        if address is None:
            shown = url.rpartition("@")[2]  # without a password
            fix = "write http://HOST:9090"
            raise InputError(f"{shown!r} is not the address of a Prometheus", where=naming("prometheus"), fix=fix)
        scheme, _, rest = url.partition("://")
        server = f"{scheme}://{rest.rpartition('@')[2]}".partition("?")[0].rstrip("/")
        user = User(
            token=access.token,
            token_file=access.token_file,
            username=address.username,
            password=address.password,
        )
        self._client = Client(
            Access(server, user=user, ca_data=access.ca_data),
            patience=patience,
            headers=access.headers,
        )
        self._tenant = any(name.lower() == "x-scope-orgid" for name, _ in access.headers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def range(self, query: str, asked: TimeRange, report: Report | None = None) -> RangeAnswer:
        """Return the result of a range query."""
        start, step, is_finite = asked.start, asked.step_seconds, math.isfinite(asked.start + asked.end)
        if not (is_finite and step > 0 and asked.end >= start):
            raise InputError("a range begins before it ends, and has steps", where=query)
        gathered = _Gathered(self._client.where)
        points, first = asked.points, 0
        size = min(asked.most_points, _MOST_POINTS)
        slow = 0
        while first < points:
            count = min(size, points - first)
            try:
                data = self._ask(query, start + first * step, start + (first + count - 1) * step, step)
            except ClusterError as error:
                if not _is_too_much(error):
                    raise
                slow += _is_slow(error)
                if count == 1 or slow > _MOST_SLOW:
                    raise ClusterError(error.what, where=error.where, fix=_SMALLER) from None
                size = count // 2
                continue
            gathered.take(data)
            first += count
            slow = 0
            if report is not None:
                report(first, points)
        return gathered.answer()

    def _ask(self, query: str, start: float, end: float, step_seconds: float) -> bytes:
        parameters = [("query", query), ("start", f"{start:.3f}"), ("end", f"{end:.3f}"), ("step", f"{step_seconds:g}")]
        try:
            return self._client.get("/api/v1/query_range", parameters).data
        except NotFound as error:
            fix = "is this the URL of a Prometheus, including its path?"
            raise NotFound("no query API at this URL", status=error.status, where=error.where, fix=fix) from None
        except Unauthorized as error:
            raise Unauthorized(
                f"401 Unauthorized{_said(error)}", status=401, where=error.where, fix=self._who(error)
            ) from None
        except Forbidden as error:
            fix = "is this user allowed to query, and is it the right tenant?"
            raise Forbidden(f"403 Forbidden{_said(error)}", where=error.where, fix=fix) from None
        except Refused as error:
            what = f"Prometheus rejected the query: {error.status}{_said(error)}"
            raise Refused(what, status=error.status, where=error.where, fix=error.fix, said=error.said) from None
        except Unreachable as error:
            if "kubeconfig" not in error.fix:
                raise
            fix = "give the CA that signed it, and the name it was issued for"
            raise Unreachable(error.what, where=error.where, fix=fix) from None

    def _who(self, error: Unauthorized) -> str:
        user = self._client.access.user
        if "org id" in error.said.lower() and not self._tenant:
            return "give a tenant"
        if user.token_file:
            return f"the token in {user.token_file} was not accepted"
        if user.token or user.username:
            return "the token was not accepted" if user.token else f"the password of {user.username} was not accepted"
        return "no credentials given: it requires a bearer token, or a user and a password"


class _Gathered:
    """Combines the parts of a result."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._series: dict[tuple[tuple[str, str], ...], tuple[dict[str, str], list[tuple[float, str]]]] = {}
        self._warnings: dict[str, None] = {}
        self._total = 0

    def take(self, data: bytes) -> None:
        """Add a part. A server may return a little more than requested; each timestamp counts once."""
        try:
            matrix = read_matrix(self._where, data)
        except InputError as error:
            raise BadAnswer(error.what, where=self._where, fix="is this the URL of a Prometheus?") from None
        for series in matrix.series:
            key = tuple(sorted(series.metric.items()))
            _, values = self._series.setdefault(key, (series.metric, []))
            until = values[-1][0] if values else -math.inf
            values += series.values if until == -math.inf else [value for value in series.values if value[0] > until]
            self._total += len(series.values)
        if self._total > _MOST_TOTAL:
            what = f"more than {_MOST_TOTAL:,} samples"
            raise InputError(what, where=self._where, fix=_SMALLER)
        self._warnings |= dict.fromkeys(as_line(warning)[:_SHOWN_CHARACTERS] for warning in matrix.warnings)

    def answer(self) -> RangeAnswer:
        """Return the combined result."""
        series = (PrometheusSeries(metric, tuple(values)) for metric, values in self._series.values())
        return RangeAnswer(tuple(series), tuple(self._warnings))


def _is_too_much(error: ClusterError) -> bool:
    """Whether a smaller query may succeed."""
    if isinstance(error, Refused):
        return error.status in _TOO_MUCH_STATUS and _TOO_MUCH.search(error.said) is not None
    return isinstance(error, AnswerTooLong | TimedOut)


def _is_slow(error: ClusterError) -> bool:
    """Whether the server took long to reject the query."""
    return isinstance(error, TimedOut) or (isinstance(error, Refused) and error.status >= 500)


def _said(error: Refused) -> str:
    return f": {error.said[:_SHOWN_CHARACTERS]}" if error.said else ""
