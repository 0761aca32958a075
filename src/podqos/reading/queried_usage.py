"""Container usage over time from Prometheus: memory, CPU, OOM kills and restarts, one series per container.

Memory samples are interval maxima, so that no peak between two is missed; cpu samples are interval averages. Plain
metrics of cAdvisor and kube-state-metrics are asked for: no recording rules are needed. Two servers that scrape the
same pods (an HA pair) are merged by the query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from podqos.advice.sizing.samples import ContainerSamples, Measure, samples_of
from podqos.amounts import listed
from podqos.cluster.prometheus import Prometheus, PrometheusAccess, RangeAnswer, TimeRange
from podqos.errors import InputError
from podqos.manifest.samples import PrometheusSeries
from podqos.model.assumption import Assumption
from podqos.naming import naming, stated_with

_LEAST_STEP_SECONDS = 60
_MOST_SAMPLES = 2_100
"""Samples of a series, approximately: seven days in steps of five minutes."""
_LEAST_WINDOW_SECONDS = 300
"""Contains two samples of a counter if it is scraped at least every two minutes."""
_PART_SECONDS = 86_400
"""The time range of one query: Thanos and Mimir split longer ones into the same parts."""
_MOST_NAMESPACES = 100
"""The most namespaces named in a query; with more, all are queried."""
_MOST_WARNINGS = 5
_MOST_NAMED = 5
CLUSTER_LABEL = "cluster"
"""The label that by convention distinguishes the clusters of a shared store."""
_MATCHER = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?P<operator>=~|!~|!=|=)\s*(?P<value>.*)", re.ASCII | re.DOTALL)

Progress = Callable[[int, int], None]


class LabelMatcher(Struct, frozen=True):
    """A label matcher: ``cluster="prod"``."""

    name: str
    operator: str
    value: str

    def __str__(self) -> str:
        """Return it as PromQL."""
        escaped = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'{self.name}{self.operator}"{escaped}"'


class UsageQuery(Struct, frozen=True, kw_only=True):
    """What to query."""

    access: PrometheusAccess
    start_seconds: float
    """Seconds since 1970."""
    end_seconds: float
    namespaces: Sequence[str] = ()
    """Only pods of these namespaces; all if empty."""
    matchers: Sequence[LabelMatcher] = ()
    with_kills: bool = False
    """Whether to query OOM kills and restarts as well."""
    with_cpu: bool = True
    most_samples: int = _MOST_SAMPLES
    """Of a series, approximately."""


class QueriedUsage(Struct, frozen=True):
    """Prometheus' samples. At least one of memory and CPU has some."""

    memory: tuple[PrometheusSeries, ...]
    cpu: tuple[PrometheusSeries, ...]
    oom_events: tuple[PrometheusSeries, ...] = ()
    oom_reasons: tuple[PrometheusSeries, ...] = ()
    restarts: tuple[PrometheusSeries, ...] = ()
    limits: tuple[PrometheusSeries, ...] = ()
    """Memory limits that the pods had at the time."""
    warnings: tuple[str, ...] = ()
    """Warnings of Prometheus, such as missing data."""
    with_kills: bool = False

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What is assumed because Prometheus has no samples, or not all."""
        missing = [name for name, series in (("memory", self.memory), ("cpu", self.cpu)) if not series]
        assumptions = [
            Assumption(f"{name} usage", "not known: Prometheus has no samples", stated_with("usage"))
            for name in missing
        ]
        if self.with_kills and not (self.oom_events or self.oom_reasons or self.restarts):
            assumptions.append(
                Assumption(
                    "OOM kills and restarts", "none: Prometheus has no samples", "kube-state-metrics in Prometheus"
                )
            )
        assumptions += [
            Assumption("usage", f"complete, though Prometheus warns: {warning}", "run it again")
            for warning in self.warnings[:_MOST_WARNINGS]
        ]
        return tuple(assumptions)

    def samples(self) -> tuple[ContainerSamples, ...]:
        """Return the same, pod by pod."""
        measured: dict[Measure, tuple[PrometheusSeries, ...]] = {
            "memory": self.memory,
            "cpu": self.cpu,
            "oomKills": self.oom_events,
            "oomReason": self.oom_reasons,
            "restarts": self.restarts,
            "limit": self.limits,
        }
        return samples_of("Prometheus", measured.items())


def read_matcher(text: str) -> LabelMatcher:
    """Read ``cluster=prod``, ``cluster=~prod-.*``, ``cluster!=dev`` or ``cluster!~dev-.*``, with or without quotes."""
    matched = _MATCHER.fullmatch(text.strip())
    if matched is None:
        raise InputError(f"{text!r} does not select series by a label", fix="write cluster=prod, or cluster=~'prod-.*'")
    value = matched["value"].strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return LabelMatcher(matched["name"], matched["operator"], value)


def queried_usage(query: UsageQuery, progress: Progress | None = None) -> QueriedUsage:
    """Query; raises ``InputError`` if there are no samples at all."""
    asked = _time_range(query)
    queries = _queries(query, int(asked.step_seconds))
    results: dict[Measure, RangeAnswer] = {}
    with Prometheus(query.access) as prometheus:
        for number, (measure, text) in enumerate(queries.items()):
            report = None if progress is None else _Report(progress, number * asked.points, len(queries) * asked.points)
            results[measure] = prometheus.range(text, asked, report)
    nothing = RangeAnswer(())
    if not (results["memory"].series or results.get("cpu", nothing).series):
        raise _no_samples(query)
    _check_clusters(query, results.values())
    return QueriedUsage(
        memory=results["memory"].series,
        cpu=results.get("cpu", nothing).series,
        oom_events=results.get("oomKills", nothing).series,
        oom_reasons=results.get("oomReason", nothing).series,
        restarts=results.get("restarts", nothing).series,
        limits=results.get("limit", nothing).series,
        warnings=tuple(dict.fromkeys(warning for answer in results.values() for warning in answer.warnings)),
        with_kills=query.with_kills,
    )


class _Report:
    """Reports the progress of all queries, given the progress of one."""

    def __init__(self, progress: Progress, before: int, total: int) -> None:
        self._progress, self._before, self._total = progress, before, total

    def __call__(self, count: int, _points: int) -> None:
        self._progress(self._before + count, self._total)


def _time_range(query: UsageQuery) -> TimeRange:
    """Return the times to query: multiples of the step, which servers round to and cache."""
    seconds = query.end_seconds - query.start_seconds
    if seconds <= 0:
        raise InputError("the time range is empty", where=naming("prometheus"), fix="start earlier")
    minutes = -(-seconds // (query.most_samples * 60))
    step = max(_LEAST_STEP_SECONDS, int(minutes) * 60)
    start, end = query.start_seconds // step * step, -(-query.end_seconds // step) * step
    return TimeRange(start, end, step, max(1, _PART_SECONDS // step))


def _queries(query: UsageQuery, step: int) -> dict[Measure, str]:
    # Containers alone: not the sums over a pod, and not what only holds its network.
    matchers = ['container!=""', 'container!="POD"']
    if len(query.namespaces) == 1:
        matchers.append(f'namespace="{query.namespaces[0]}"')
    elif 1 < len(query.namespaces) <= _MOST_NAMESPACES:
        matchers.append(f'namespace=~"{"|".join(sorted(query.namespaces))}"')
    chosen = ",".join((*matchers, *map(str, query.matchers)))
    window = max(_LEAST_WINDOW_SECONDS, step)
    by = f"max by (namespace, pod, container, node, {CLUSTER_LABEL})"
    queries: dict[Measure, str] = {
        "memory": f"{by} (max_over_time(container_memory_working_set_bytes{{{chosen}}}[{step}s]))"
    }
    if query.with_cpu:
        queries["cpu"] = f"{by} (rate(container_cpu_usage_seconds_total{{{chosen}}}[{window}s]))"
    if query.with_kills:
        by = f"max by (namespace, pod, container, {CLUSTER_LABEL})"
        reason = f'reason="OOMKilled",{chosen}'
        last = f"kube_pod_container_status_last_terminated_reason{{{reason}}}"
        queries["oomKills"] = f"{by} (max_over_time(container_oom_events_total{{{chosen}}}[{step}s]))"
        queries["oomReason"] = f"{by} (max_over_time({last}[{step}s]))"
        queries["restarts"] = f"{by} (max_over_time(kube_pod_container_status_restarts_total{{{chosen}}}[{step}s]))"
        limits = f'kube_pod_container_resource_limits{{resource="memory",{chosen}}}'
        queries["limit"] = f"{by} (max_over_time({limits}[{step}s]))"
    return queries


def _no_samples(query: UsageQuery) -> InputError:
    what = "Prometheus has no samples of container_memory_working_set_bytes or container_cpu_usage_seconds_total"
    of = f" of the namespace {listed(list(query.namespaces))}" if query.namespaces else ""
    labels = f" with {','.join(map(str, query.matchers))}" if query.matchers else ""
    fix: str = "does it scrape cAdvisor's metrics, and since when?"
    if "default" in query.namespaces:
        fix += " Manifests without a namespace are in default unless you give " + naming("namespace")
    return InputError(f"{what}{of}{labels} in that time range", where=naming("prometheus"), fix=fix)


def _check_clusters(query: UsageQuery, answers: Iterable[RangeAnswer]) -> None:
    """Refuse to mix pods of several clusters unless one was selected."""
    if any(matcher.name == CLUSTER_LABEL for matcher in query.matchers):
        return
    clusters = {series.metric.get(CLUSTER_LABEL, "") for answer in answers for series in answer.series} - {""}
    if len(clusters) > 1:
        raise _several_clusters(sorted(clusters))


def _several_clusters(clusters: list[str]) -> InputError:
    """Return the error that a store has several clusters, where pods of the same name are different pods."""
    named = listed([*clusters[:_MOST_NAMED], *(["…"] if len(clusters) > _MOST_NAMED else [])])
    fix = "choose one: " + naming("prometheus_label", f"{CLUSTER_LABEL}={clusters[0]}")
    what = f"Prometheus has samples of {len(clusters)} clusters: {named}"
    return InputError(what, where=naming("prometheus"), fix=fix)
