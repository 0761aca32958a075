"""What the metrics API says of pods: the last two measurements of each container, and the usage between them.

CPU is the average between two measurements, memory the working set at the last. A container that has just started has
a metric once it has run for ten seconds; a pod has one once all its containers do.

Source: kubernetes-sigs/metrics-server pkg/storage/pod.go (Store, GetMetrics) and pkg/storage/types.go (resourceUsage).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from podqos.controllers.replica_calculator import PodMetric
from podqos.model.resources import CPU
from podqos.model.time_units import SECOND_US

RESOLUTION_US = 15 * SECOND_US
"""``--metric-resolution`` of the manifests that metrics-server is installed with."""
_FRESH_US = 10 * SECOND_US
"""A container younger than this has no metric yet."""
_MILLI = 1000


class Point(Struct, frozen=True, gc=False):
    """One measurement of a container."""

    time_us: int
    started_us: int
    cpu_milli_us: int
    """All that it got since it was started: thousandths of a core, times microseconds."""
    working_set_bytes: int


Points = Mapping[str, Mapping[str, Point]]
"""By pod and container."""


class Stored(Struct, frozen=True):
    """The last measurement of all containers, and the one before."""

    last: Points = {}
    before: Points = {}

    def with_points(self, points: Points, resolution_us: int = RESOLUTION_US) -> Stored:
        """Add a measurement of all containers that run (``Store``)."""
        before: dict[str, dict[str, Point]] = {}
        for pod, containers in points.items():
            earlier = self.last.get(pod, {})
            kept: dict[str, Point] = {}
            for name, point in containers.items():
                age_us = point.time_us - point.started_us
                if _FRESH_US <= age_us < resolution_us:
                    kept[name] = Point(point.started_us, point.started_us, 0, point.working_set_bytes)
                elif name in earlier and point.started_us < earlier[name].time_us < point.time_us:
                    kept[name] = earlier[name]
            if kept:
                before[pod] = kept
        return Stored(points, before)

    def metric(self, pod: str, resource: str, container: str = "") -> PodMetric | None:
        """Return the usage of a pod, or of one of its containers; None if it has none yet (``GetMetrics``)."""
        last, before = self.last.get(pod), self.before.get(pod)
        if not last or before is None or any(name not in before for name in last):
            return None
        if container and container not in last:
            return None
        first = min(last, key=lambda name: (last[name].time_us, name))
        names = (container,) if container else tuple(last)
        values = sum(_usage_milli(last[name], before[name], resource) for name in names)
        return PodMetric(values, last[first].time_us, last[first].time_us - before[first].time_us)


def _usage_milli(last: Point, before: Point, resource: str) -> int:
    """Return the usage of a container in thousandths, CPU rounded up as a quantity is."""
    if resource != CPU:
        return last.working_set_bytes * _MILLI
    used, passed_us = last.cpu_milli_us - before.cpu_milli_us, last.time_us - before.time_us
    return -(-used // passed_us)
