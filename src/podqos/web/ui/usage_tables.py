"""The usage tables of a source: what pods use now, and what containers used over time."""

from __future__ import annotations

from collections.abc import Mapping

from podqos.advice.sizing.samples import ContainerSamples, read_samples
from podqos.answers.page.usage_history import is_over_time
from podqos.errors import InputError
from podqos.survival.node.usage_file import UsageRow, read_usage


def read_usage_tables(tables: Mapping[str, bytes]) -> tuple[tuple[UsageRow, ...] | None, tuple[ContainerSamples, ...]]:
    """Return what pods use, and what their containers used over time; at most one table may be about one moment.

    Without a table about one moment, the newest samples of the first table over time count.
    """
    over_time = {name: _samples(name, data) for name, data in tables.items()}
    moments = [name for name, samples in over_time.items() if not samples]
    if len(moments) > 1:
        raise InputError(f"more than one: {moments[0]} and {moments[1]}", where="usage table", fix="open one at a time")
    name = next(iter(moments or over_time), None)
    usage = None if name is None else read_usage(name, tables[name])
    return usage, tuple(sample for samples in over_time.values() for sample in samples)


def read_samples_of(tables: Mapping[str, bytes]) -> tuple[ContainerSamples, ...]:
    """Return what containers used over time, for a source that knows what they use now."""
    samples = {name: _samples(name, data) for name, data in tables.items()}
    for name, own in samples.items():
        if not own:
            fix = "leave it out: the snapshot has the usage of its moment"
            raise InputError("a usage table without times cannot be combined with a snapshot", where=name, fix=fix)
    return tuple(sample for own in samples.values() for sample in own)


def _samples(name: str, data: bytes) -> tuple[ContainerSamples, ...]:
    """Return the samples of a table over time; none for a table about one moment."""
    try:
        return tuple(sample for sample in read_samples(name, data) if is_over_time(sample))
    except InputError:  # it has columns that only a moment has; what is wrong with it, its reader says
        return ()
