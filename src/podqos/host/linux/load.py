"""A process that holds as much memory as a curve says: what a container of a rehearsal runs.

It is started as a program of its own, ``python -I -S load.py FILE``, and imports next to nothing (not even pathlib):
its own memory counts, and a log collector of a scenario in small has little of it. FILE has a line per setting, words
apart by spaces::

    memory    TIME:BYTES …    the curve: times in microseconds, straight lines in between, a step where a time is twice
    period    TIME            after which the curve repeats; 0: never
    clock     scenario | container
    processes COUNT           over how many processes the memory is spread evenly
    begin     FILE            holds the beginning of the scenario (monotonic clock, nanoseconds) once it is there
    memcg     DIR FILE        where memory cgroups are mounted, and their file with what they use
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
# A page of the page table holds 512 entries: of 513 pages that are charged one is not ours to use.
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


class Holding:
    """Memory that is really there: every page of it has been written."""

    def __init__(self) -> None:
        self.chunks: list[tuple[mmap.mmap, int]] = []
        self.size = 0

    def become(self, wanted: int) -> None:
        """Take more, or give back what is too much."""
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
    """Return the number in a file; None where there is none yet."""
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
    """Become so many processes; return which of them this is, the first being the one that was started."""
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
    # A container of the first hour counts from the beginning of the scenario, one that was restarted from its own.
    own_clock = settings["clock"][0] == "container" and begin is not None
    count = int(settings["processes"][0])
    root, usage_file = settings["memcg"]
    usage = root + own_cgroup() + "/" + usage_file
    number = fork_into(count)
    time.sleep(SETTLING_SECONDS)
    # What the processes have before they take anything is part of what they hold.
    spent = (read_number(usage) or 0) // count
    holding = Holding()
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
            # There is time to come closer: the kernel charges this and that besides.
            time.sleep(SETTLING_SECONDS)
            spent += ((read_number(usage) or total) - total) // (2 * count)
        else:
            time.sleep(BUSY_SECONDS if share != before else QUIET_SECONDS)
        before = share


if __name__ == "__main__":
    main()
