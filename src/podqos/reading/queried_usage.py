"""What containers used over time, asked of Prometheus: memory and cpu, a series per container.

Of memory each sample is the highest since the one before, so that no peak between two is missed; of cpu the average.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.cluster.prometheus import Prometheus
from podqos.errors import InputError
from podqos.manifest.samples import PrometheusSeries
from podqos.model.assumption import Assumption
from podqos.naming import naming, stated_with

_LEAST_STEP_SECONDS = 60
_MOST_SAMPLES = 2_100
"""Of a series, about: seven days in steps of five minutes."""
_LEAST_WINDOW_SECONDS = 300
"""Holds two samples of a counter wherever they are taken at least every two minutes."""


class UsageQuery(Struct, frozen=True, kw_only=True):
    """What to ask, and whom."""

    url: str
    start_seconds: float
    """Since 1970."""
    end_seconds: float
    namespace: str = ""
    """Only pods of this one."""
    token_file: str = ""


class QueriedUsage(Struct, frozen=True):
    """What Prometheus has. At least one of the two has samples."""

    memory: tuple[PrometheusSeries, ...]
    cpu: tuple[PrometheusSeries, ...]

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What is assumed because Prometheus has no samples of it."""
        missing = [name for name, found in (("memory", self.memory), ("cpu", self.cpu)) if not found]
        return tuple(
            Assumption(f"{name} usage", "not known: Prometheus has no samples", stated_with("usage"))
            for name in missing
        )


def queried_usage(query: UsageQuery) -> QueriedUsage:
    """Ask; raises ``InputError`` where there are no samples at all."""
    seconds = query.end_seconds - query.start_seconds
    if seconds <= 0:
        raise InputError("there is no time between beginning and end", where=naming("prometheus"), fix="begin earlier")
    minutes = -(-seconds // (_MOST_SAMPLES * 60))
    step = max(_LEAST_STEP_SECONDS, int(minutes) * 60)
    window = max(_LEAST_WINDOW_SECONDS, step)
    # Containers alone: not the sums over a pod, and not what only holds its network.
    chosen = 'container!="",container!="POD"'
    if query.namespace:
        chosen += f',namespace="{query.namespace}"'
    by = "max by (namespace, pod, container, node)"
    memory = f"{by} (max_over_time(container_memory_working_set_bytes{{{chosen}}}[{step}s]))"
    cpu = f"{by} (rate(container_cpu_usage_seconds_total{{{chosen}}}[{window}s]))"
    with Prometheus(query.url, token_file=query.token_file) as prometheus:
        found = [
            prometheus.range(each, start=query.start_seconds, end=query.end_seconds, step_seconds=step)
            for each in (memory, cpu)
        ]
    if not any(found):
        what = "Prometheus has no samples of container_memory_working_set_bytes or container_cpu_usage_seconds_total"
        of = f" of the namespace {query.namespace}" if query.namespace else ""
        fix = "does it collect cAdvisor's metrics, and since when?"
        raise InputError(f"{what}{of} in that time", where=naming("prometheus"), fix=fix)
    return QueriedUsage(*found)
