"""Edge: what was used over time, from Prometheus or whatever speaks its query API.

Someone named this server, so what goes wrong here is an error, not an assumption.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/.
"""

from __future__ import annotations

import math
from typing import Self

from podqos.cluster.asking import Client
from podqos.cluster.kubeconfig import Access, User
from podqos.cluster.patience import Patience
from podqos.cluster.proxies import address_of
from podqos.errors import BadAnswer, InputError, NotFound
from podqos.manifest.samples import PrometheusSeries, read_samples
from podqos.naming import naming

_MOST_POINTS = 10_000
"""Of one series in one answer; Prometheus refuses more than 11,000."""
_PATIENCE = Patience(attempts=3, stall_seconds=120.0, total_seconds=300.0)
"""Prometheus says nothing while it computes, by default for up to two minutes."""


class Prometheus:
    """Asks one Prometheus. Its URL may hold a user and a password, and a path."""

    def __init__(self, url: str, *, token: str = "", token_file: str = "", patience: Patience = _PATIENCE) -> None:
        """Connect when first asked."""
        address = address_of(url)
        if address is None:
            fix = "write http://HOST:9090"
            raise InputError(f"{url!r} is no address of a Prometheus", where=naming("prometheus"), fix=fix)
        scheme, _, rest = url.partition("://")
        server = f"{scheme}://{rest.rpartition('@')[2]}".partition("?")[0].rstrip("/")
        user = User(token=token, token_file=token_file, username=address.username, password=address.password)
        self._client = Client(Access(server, user=user), patience=patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def range(self, query: str, *, start: float, end: float, step_seconds: float) -> tuple[PrometheusSeries, ...]:
        """Return the values of a query from start to end, in seconds since 1970, as ``query_range`` gives them.

        Ranges with more points than Prometheus answers at once are asked for in parts.
        """
        if not (math.isfinite(start) and math.isfinite(end) and step_seconds > 0 and end >= start):
            raise InputError("a range begins before it ends, and has steps", where=query)
        last = int((end - start) // step_seconds)
        found: dict[tuple[tuple[str, str], ...], PrometheusSeries] = {}
        for first in range(0, last + 1, _MOST_POINTS):
            part_start = start + first * step_seconds
            part_end = start + min(last, first + _MOST_POINTS - 1) * step_seconds
            for series in self._part(query, part_start, part_end, step_seconds):
                key = tuple(sorted(series.metric.items()))
                before = found.get(key)
                values = series.values if before is None else (*before.values, *series.values)
                found[key] = PrometheusSeries(series.metric, values)
        return tuple(found.values())

    def _part(self, query: str, start: float, end: float, step_seconds: float) -> tuple[PrometheusSeries, ...]:
        parameters = [("query", query), ("start", f"{start:.3f}"), ("end", f"{end:.3f}"), ("step", f"{step_seconds:g}")]
        data = self._ask("/api/v1/query_range", parameters)
        try:
            series = read_samples(self._client.where, data)
        except InputError as error:
            raise self._bad(error.what) from None
        if not isinstance(series, tuple):
            raise self._bad("not an answer of Prometheus")
        return series

    def _ask(self, path: str, parameters: list[tuple[str, str]]) -> bytes:
        try:
            return self._client.get(path, parameters).data
        except NotFound as error:
            fix = "is that the URL of a Prometheus, with its path?"
            raise NotFound("no query API there", status=error.status, where=error.where, fix=fix) from None

    def _bad(self, what: str) -> BadAnswer:
        return BadAnswer(what, where=self._client.where, fix="is that the URL of a Prometheus?")
