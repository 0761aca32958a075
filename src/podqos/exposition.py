"""Prometheus' text format, counters and histograms.

Sources: https://prometheus.io/docs/instrumenting/exposition_formats/, https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Default upper bounds of histogram buckets, in seconds."""
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Labels = tuple[tuple[str, str], ...]


class Counter:
    """A counter for each set of labels."""

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about
        self._counts: dict[Labels, int] = {}

    def add(self, labels: Labels = (), count: int = 1) -> None:
        """Count."""
        self._counts[labels] = self._counts.get(labels, 0) + count

    def lines(self) -> Iterator[str]:
        """Yield its text."""
        yield from family(self.name, "counter", self.about, ((dict(labels), n) for labels, n in self._counts.items()))


class Histogram:
    """Durations in seconds, for each set of labels."""

    def __init__(self, name: str, about: str, bounds: Sequence[float] = BOUNDS, known: Iterable[Labels] = ()) -> None:
        """Make one; the ``known`` sets of labels are exported even before their first observation."""
        self.name, self.about = name, about
        self._bounds = bounds
        self._seen = {labels: self._nothing() for labels in known}

    def _nothing(self) -> tuple[list[int], list[float]]:
        return [0] * (len(self._bounds) + 1), [0.0]

    def add(self, seconds: float, labels: Labels) -> None:
        """Add an observation."""
        seen = self._seen.get(labels)
        if seen is None:
            seen = self._seen[labels] = self._nothing()
        seen[0][bisect_left(self._bounds, seconds)] += 1
        seen[1][0] += seconds

    def lines(self) -> Iterator[str]:
        """Yield its text."""
        yield f"# HELP {self.name} {self.about}"
        yield f"# TYPE {self.name} histogram"
        for labels, (counts, [total]) in self._seen.items():
            so_far = 0
            for bound, count in zip((*map(repr, self._bounds), "+Inf"), counts, strict=True):
                so_far += count
                yield sample(f"{self.name}_bucket", {**dict(labels), "le": bound}, so_far)
            yield sample(f"{self.name}_sum", dict(labels), total)
            yield sample(f"{self.name}_count", dict(labels), so_far)


def family(name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """Yield a metric."""
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield sample(name, labels, value)


def single(name: str, kind: str, about: str, value: float) -> Iterator[str]:
    """Yield a metric without labels."""
    yield from family(name, kind, about, [({}, value)])


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """Return one line: a metric's name, labels and value."""
    named = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels.items())
    return f"{name}{{{named}}} {value!r}" if named else f"{name} {value!r}"
