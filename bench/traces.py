"""Makes what containers use over a fortnight, for the back-test of ``advise``: no trace repeats, and no two are alike.

Every workload is drawn from ``[seed, family, index]``: its replicas, its size and its habits. A sample is the highest
demand within five minutes, as ``max_over_time`` gives it. ``demand`` is what the processes want; ``seen`` is what
monitoring shows of the first half under the limit of that time: cut off at the limit, with an OOM kill every time it is
hit. New versions are rolled out every few days, restart all replicas and change the size a little, up or down.

Families::

    seasonal   a day and a week, with noise of its own strength, and growth or decline
    leaky      grows until it is restarted; some are caches that fill up and stop growing
    bursty     many bursts a day, with light or heavy tails
    startup    calm, but for the first minutes after a start
    jvm        grows in steps that are not given back, up to a largest heap
    spikes     calm, but for a peak every few days on one replica
    mixed      two of the others on top of each other

The seeds: ``TUNING`` is what sizes were tuned with, ``HELD_OUT`` what the published figures come from. Both were chosen
before there was anything to tune.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TUNING = (31,)
HELD_OUT = (1031, 2031)

FAMILIES = ("seasonal", "leaky", "bursty", "startup", "jvm", "spikes", "mixed")
WORKLOADS = 150
"""Of each family; with three replicas on average that is more than 3,000 containers."""

STEP_SECONDS = 300
A_DAY = 86_400 // STEP_SECONDS
DAYS = 14
SAMPLES = DAYS * A_DAY
HALF = SAMPLES // 2
MIB = 1 << 20

Curve = NDArray[np.float64]


class Trace(NamedTuple):
    """One workload: an array has a row for every replica."""

    family: str
    demand_bytes: NDArray[np.int64]
    """What it wants, for all 14 days."""
    cpu_milli: NDArray[np.int64]
    limit_bytes: int
    """Its limit during the first half."""
    seen_bytes: NDArray[np.int64]
    """What monitoring saw of the first half."""
    oom_kills: int
    """In the first half, by that limit."""

    @property
    def replicas(self) -> int:
        """How many containers there are."""
        return len(self.demand_bytes)


def traces(seed: int, families: tuple[str, ...] = FAMILIES, workloads: int = WORKLOADS) -> Iterator[Trace]:
    """Draw the workloads of all families."""
    for family in families:
        for index in range(workloads):
            yield trace(family, index, seed)


def trace(family: str, index: int, seed: int) -> Trace:
    """Draw one workload."""
    chance = np.random.default_rng([seed, zlib.crc32(family.encode()), index])
    workload = _Workload(chance)
    parts = [family]
    if family == "mixed":
        parts = [str(name) for name in chance.choice(FAMILIES[:-1], 2, replace=False)]
    demand = workload.base * sum(_SHAPES[name](workload) for name in parts) / len(parts)
    demand *= workload.versions()
    demand = np.maximum(demand, 4 * MIB)
    # Most people ask for too much, some for too little.
    highest = float(demand[:, :HALF].max())
    limit = highest * (chance.uniform(0.7, 0.98) if chance.random() < 0.08 else chance.lognormal(0.6, 0.4))
    demand_bytes = demand.astype(np.int64)
    limit_bytes = int(limit / MIB + 1) * MIB
    first = demand_bytes[:, :HALF]
    over = first > limit_bytes
    kills = int(over[:, 0].sum() + (over[:, 1:] & ~over[:, :-1]).sum())
    return Trace(family, demand_bytes, _cpu(workload, demand), limit_bytes, np.minimum(first, limit_bytes), kills)


class _Workload:
    """What all replicas of a workload have in common."""

    def __init__(self, chance: np.random.Generator) -> None:
        self.chance = chance
        self.replicas = int(chance.choice([1, 2, 3, 4, 6], p=[0.2, 0.25, 0.25, 0.15, 0.15]))
        self.base = float(np.clip(chance.lognormal(np.log(400), 1.1), 24, 16_384)) * MIB
        # How unlike each other the replicas are: they share the work unevenly.
        self.share = chance.normal(1, chance.uniform(0.01, 0.1), (self.replicas, 1)).clip(0.6, 1.4)
        self.time = np.arange(SAMPLES) / A_DAY
        self.rollouts = self._times(chance.uniform(2, 9))

    def _times(self, mean_days: float) -> list[int]:
        """Draw moments that are so far apart on average; the first is before the traces begin."""
        moment = -self.chance.exponential(mean_days) * A_DAY
        moments = [int(moment)]
        while (moment := moment + max(12.0, self.chance.exponential(mean_days) * A_DAY)) < SAMPLES:
            moments.append(int(moment))
        return moments

    def versions(self) -> Curve:
        """Return by how much each version is larger or smaller than the first."""
        scatter = self.chance.uniform(0.0, 0.05)
        factor = np.ones(SAMPLES)
        for moment in self.rollouts[1:]:
            factor[max(0, moment) :] *= self.chance.normal(1, scatter)
        return factor.clip(0.5, 2)

    def noise(self, strength: float, memory: float = 0.9) -> Curve:
        """Draw noise that forgets slowly."""
        steps = self.chance.normal(0, strength * np.sqrt(1 - memory**2), (self.replicas, SAMPLES))
        found = np.empty_like(steps)
        value = self.chance.normal(0, strength, self.replicas)
        for index in range(SAMPLES):
            value = memory * value + steps[:, index]
            found[:, index] = value
        return found

    def starts(self) -> list[list[int]]:
        """Draw when each replica starts: with every rollout, and when its node is drained or it crashes."""
        mean_days = self.chance.uniform(3, 20)
        return [
            sorted({*(moment + 2 * replica for moment in self.rollouts), *self._times(mean_days)[1:]})
            for replica in range(self.replicas)
        ]


def _calm(workload: _Workload) -> Curve:
    noise = workload.noise(workload.chance.uniform(0.005, 0.04))
    return np.asarray(workload.share * (1 + noise), dtype=np.float64)


def _seasonal(workload: _Workload) -> Curve:
    chance, time = workload.chance, workload.time
    day, week = chance.uniform(0.1, 1.2), chance.uniform(0.0, 0.4)
    phase, sharpness = chance.uniform(0, 1), chance.uniform(1, 4)
    # No two days are equally busy.
    busy = 1 + chance.normal(0, chance.uniform(0.0, 0.12), DAYS).clip(-0.6, 0.6)
    wave = ((1 + np.cos(2 * np.pi * (time - phase))) / 2) ** sharpness * np.repeat(busy, A_DAY)
    weekend = np.where((time + chance.integers(7)) % 7 < 2, 1 - week, 1.0)
    growth = 1 + chance.normal(0.01, 0.03) * time / 7
    noise = 1 + workload.noise(chance.uniform(0.005, 0.08))
    return workload.share * (1 + day * wave * weekend) * growth * noise


def _leaky(workload: _Workload) -> Curve:
    chance = workload.chance
    kind = chance.choice(["leak", "cache"], p=[0.65, 0.35])
    a_day, full, fills_days = chance.lognormal(np.log(0.08), 0.8), chance.uniform(0.3, 2.0), chance.uniform(0.3, 4)
    grown = np.zeros((workload.replicas, SAMPLES))
    for replica, starts in enumerate(workload.starts()):
        for begin, end in zip(starts, [*starts[1:], SAMPLES], strict=True):
            pace = chance.normal(1, 0.1)
            lives = slice(*np.clip((begin, end), 0, SAMPLES))
            age = (np.arange(lives.start, lives.stop) - begin) / A_DAY * pace
            grown[replica, lives] = a_day * age if kind == "leak" else full * (1 - np.exp(-age / fills_days))
    return _calm(workload) + grown


def _bursty(workload: _Workload) -> Curve:
    chance = workload.chance
    a_day, height = chance.uniform(2, 40), chance.uniform(0.1, 0.8)
    heavy = chance.random() < 0.35
    spread = chance.uniform(0.2, 0.9)
    bursts = np.zeros((workload.replicas, SAMPLES))
    for replica in range(workload.replicas):
        for begin in chance.integers(0, SAMPLES, chance.poisson(a_day * DAYS)):
            size = height * (chance.pareto(4) + 0.5 if heavy else min(4.0, chance.lognormal(0, spread)))
            length = 1 + chance.geometric(0.3)
            stretch = bursts[replica, begin : begin + length]
            np.maximum(stretch, size * chance.uniform(0.7, 1, stretch.size), out=stretch)
    return _calm(workload) + bursts


def _startup(workload: _Workload) -> Curve:
    chance = workload.chance
    height, spread = chance.uniform(0.3, 2.0), chance.uniform(0.01, 0.15)
    peaks = np.zeros((workload.replicas, SAMPLES))
    for replica, starts in enumerate(workload.starts()):
        for begin in starts:
            if begin >= 0:
                length = int(chance.integers(1, 4))
                peaks[replica, begin : begin + length] = height * max(0.0, chance.normal(1, spread))
    return _calm(workload) + peaks


def _jvm(workload: _Workload) -> Curve:
    chance = workload.chance
    room, steps_a_day, part = chance.uniform(0.5, 2.5), chance.uniform(0.3, 4), chance.uniform(0.05, 0.35)
    heap = np.zeros((workload.replicas, SAMPLES))
    for replica, starts in enumerate(workload.starts()):
        for begin, end in zip(starts, [*starts[1:], SAMPLES], strict=True):
            level, moment = 0.15 * room, float(begin)
            while moment < end:
                until = min(float(end), moment + max(1.0, chance.exponential(A_DAY / steps_a_day)))
                heap[replica, max(0, int(moment)) : max(0, int(until))] = level
                level += (room - level) * part * chance.uniform(0.5, 1.5)
                moment = until
    return _calm(workload) + heap


def _spikes(workload: _Workload) -> Curve:
    chance = workload.chance
    mean_days, height, spread = chance.uniform(1, 8), chance.uniform(0.3, 2.0), chance.uniform(0.05, 0.35)
    peaks = np.zeros((workload.replicas, SAMPLES))
    for begin in chance.integers(0, SAMPLES, chance.poisson(DAYS / mean_days)):
        replica, length = chance.integers(workload.replicas), int(chance.integers(1, 7))
        stretch = peaks[replica, begin : begin + length]
        np.maximum(stretch, height * chance.lognormal(0, spread), out=stretch)
    return _calm(workload) + peaks


_SHAPES = {
    "seasonal": _seasonal,
    "leaky": _leaky,
    "bursty": _bursty,
    "startup": _startup,
    "jvm": _jvm,
    "spikes": _spikes,
}


def _cpu(workload: _Workload, demand: Curve) -> NDArray[np.int64]:
    """Draw CPU that follows the day and, loosely, the memory."""
    chance = workload.chance
    cores = chance.lognormal(np.log(200), 1.0)
    level = demand / demand.mean()
    wave = 1 + chance.uniform(0, 1) * np.cos(2 * np.pi * (workload.time - chance.uniform(0, 1)))
    flicker = chance.lognormal(0, chance.uniform(0.1, 0.6), demand.shape)
    return np.asarray(np.clip(cores * wave * level ** chance.uniform(0, 1) * flicker, 1, 64_000), dtype=np.int64)
