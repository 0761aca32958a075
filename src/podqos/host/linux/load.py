"""A process whose memory follows a curve: what a container of a rehearsal runs.

It runs as a program of its own, ``python -I -S load.py FILE``, and imports as little as possible (not even pathlib),
because its own memory counts and containers of a scaled-down scenario are small. FILE has a line per setting, with
words separated by spaces::

    memory    TIME:BYTES …    the curve: times in microseconds, linear in between, a step where a time occurs twice
    period    TIME            after which the curve repeats; 0: never
    clock     scenario | container
    processes COUNT           over how many processes the memory is spread evenly
    begin     FILE            contains the start of the scenario (monotonic clock, nanoseconds) once it exists
    memcg     DIR FILE        where memory cgroups are mounted, and the name of their usage file
"""

from __future__ import annotations

import mmap
import os
import sys
import time

PAGE = 4096
CHUNK = 1 << 20
QUIET_SECONDS = 0.02
BUSY_SECONDS = 0.002
SETTLING_SECONDS = 0.1
# A page of the page table holds 512 entries: of 513 charged pages one is the page table's.
TABLE_SHARE = 513

Knots = list[tuple[int, int]]


def value_at(knots: Knots, period: int, now: int) -> int:
    """Return the curve at a time; before its first knot and after its last it is constant."""
    if period:
        now %= period
    if now < knots[0][0]:
        return knots[0][1]
    for index in range(len(knots) - 1):
        start, low = knots[index]
        end, high = knots[index + 1]
        if start <= now < end:
            return low + (high - low) * (now - start) // (end - start)
    return knots[-1][1]


class HeldMemory:
    """Memory that is really allocated: every page is populated."""

    def __init__(self) -> None:
        self.chunks: list[tuple[mmap.mmap, int]] = []
        self.size = 0

    def become(self, wanted: int) -> None:
        """Allocate or free memory up to the wanted size."""
        while wanted - self.size >= PAGE:
            size = min(CHUNK, (wanted - self.size) // PAGE * PAGE)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
            self.chunks.append((mmap.mmap(-1, size, flags=flags), size))
            self.size += size
        while self.chunks and self.size - self.chunks[-1][1] >= wanted:
            chunk, size = self.chunks.pop()
            chunk.close()
            self.size -= size


def read_settings(path: str) -> dict[str, list[str]]:
    """Return the settings of the file: name → words."""
    settings = {}
    with open(path) as file:  # noqa: PTH123
        for line in file:
            name, *words = line.split()
            settings[name] = words
    return settings


def read_number(path: str) -> int | None:
    """Return the number in a file; None if there is none yet."""
    try:
        with open(path) as file:  # noqa: PTH123
            return int(file.read())
    except (OSError, ValueError):
        return None


def own_cgroup() -> str:
    """Return the path of this process' cgroup, of the memory controller where there are several."""
    whole = ""
    with open("/proc/self/cgroup") as file:  # noqa: PTH123
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if "memory" in controllers.split(","):
                return path
            if not controllers:
                whole = path
    return whole


def fork_into(count: int) -> int:
    """Fork into this many processes; return the number of this one, 0 for the original."""
    for number in range(1, count):
        if os.fork() == 0:
            return number
    return 0


def main() -> None:
    """Hold memory until killed."""
    settings = read_settings(sys.argv[1])
    words = (word.split(":") for word in settings["memory"])
    knots = [(int(when), int(value)) for when, value in words]
    period = int(settings["period"][0])
    begin = read_number(settings["begin"][0])
    started = time.monotonic_ns()
    # An initial container counts from the start of the scenario, a restarted one from its own start.
    own_clock = settings["clock"][0] == "container" and begin is not None
    count = int(settings["processes"][0])
    root, usage_file = settings["memcg"]
    usage = root + own_cgroup() + "/" + usage_file
    number = fork_into(count)
    time.sleep(SETTLING_SECONDS)
    # Memory used before the first allocation is part of the curve.
    spent = (read_number(usage) or 0) // count
    holding = HeldMemory()
    before = -1
    while True:
        if begin is None:
            begin = read_number(settings["begin"][0])
        origin = started if own_clock else begin
        now = 0 if origin is None else max(0, (time.monotonic_ns() - origin) // 1000)
        total = value_at(knots, period, now)
        share = total // count + (number < total % count)
        holding.become(max(0, share - spent) * (TABLE_SHARE - 1) // TABLE_SHARE)
        if begin is None:
            # Adjust while there is time: the kernel charges other memory as well.
            time.sleep(SETTLING_SECONDS)
            spent += ((read_number(usage) or total) - total) // (2 * count)
        else:
            time.sleep(BUSY_SECONDS if share != before else QUIET_SECONDS)
        before = share


if __name__ == "__main__":
    main()
