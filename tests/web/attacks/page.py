"""A page's server with the memory of a small container, its attackers, and a visitor who must not notice them."""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from web.ui.running import POD, VIEWER, Visitor, eventually, running

LIMIT_BYTES = 1 << 30
VIEW_SECONDS, IDLE_SECONDS, ABANDONED_SECONDS = 5, 2, 2
# Smaller than shipped, so that they are reached quickly.
VISITORS, STREAMS, WAITING, JOBS, STORED_BYTES = 40, 24, 30, 8, 24 << 20
_START = f"""
import sys
from msgspec.structs import replace
from podqos.library import simulation
simulation.built_viewer = lambda: {VIEWER!r}
from podqos.web.ui import settings
settings.UI_LIMITS = replace(
    settings.UI_LIMITS,
    abandoned_seconds={ABANDONED_SECONDS},
    visitors={VISITORS}, all_streams={STREAMS}, all_jobs={JOBS}, total_bytes={STORED_BYTES},
    workers=replace(
        settings.UI_LIMITS.workers, view_seconds={VIEW_SECONDS}, idle_seconds={IDLE_SECONDS}, waiting={WAITING}
    ),
)
from podqos.web.ui import server
server.usable_bytes = lambda: {LIMIT_BYTES}
from podqos.cli.main import main
sys.exit(main(["ui", *sys.argv[1:]]))
"""
# Below this, a time says more about the scheduler of this machine than about the server.
_LEAST_SECONDS = 0.02
_PAUSE_SECONDS = 0.02
_LEAST_ROUNDS = 5
_MACHINE = "capacity: {cpu: 4, memory: 8Gi}"


def scenario(nodes: str, demand: str = "10Mi") -> bytes:
    """Return a scenario whose nodes are given."""
    return f"""apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: fleet}}
spec:
  duration: 5m
  manifests: [pod.yaml]
  nodes: {nodes}
  workloads: [{{workload: leaky, demand: {{memory: {demand}}}}}]
""".encode()


def counted(count: int) -> bytes:
    """Return a few bytes that stand for many nodes."""
    return scenario(f"[{{name: w, count: {count}, {_MACHINE}}}]")


def listed(count: int) -> bytes:
    """Return a scenario that lists its nodes."""
    return scenario("".join(f"\n    - {{name: n{number}, {_MACHINE}}}" for number in range(count)))


class Visited:
    """A visitor with a small source, who looks at it again and again."""

    def __init__(self, server) -> None:
        self.visitor = server.visitor()
        self.path = f"/api/sources/{self.visitor.upload({'pod.yaml': POD})['id']}/cluster"

    def seconds(self) -> float:
        """Return how long the visitor waits for a view."""
        began = time.monotonic()
        status, _, body = self.visitor.ask(self.path)
        assert status == 200, body
        return time.monotonic() - began


class Attacked:
    """The server, and a visitor; elsewhere another visitor of a server that nobody attacks on the same machine."""

    def __init__(self, server, calm, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self._visited, self._elsewhere = Visited(server), Visited(calm)
        self.peak_bytes = 0
        self._seconds()

    def _seconds(self, times: int = 7) -> tuple[float, float]:
        """Return how long the visitor waits, and the one elsewhere at the same time."""
        here, elsewhere = [], []
        for _ in range(times):
            here.append(self._visited.seconds())
            elsewhere.append(self._elsewhere.seconds())
            time.sleep(_PAUSE_SECONDS)
        return statistics.median(here), statistics.median(elsewhere)

    def still_serves(self, until=lambda: True) -> None:
        """Check that the visitor waits at most five times as long as one elsewhere, however busy the machine is."""
        times = [self._seconds() for _ in range(_LEAST_ROUNDS)]
        while not until():
            times.append(self._seconds())
        here, elsewhere = map(statistics.median, zip(*times, strict=True))
        assert here <= 5 * max(elsewhere, _LEAST_SECONDS), (here, elsewhere)

    def processes(self) -> list[int]:
        """Return the server's processes, without the server itself."""
        found, todo = [], [self.server.process.pid]
        while todo:
            pid = todo.pop()
            try:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            except OSError:
                continue
            found += (started := [int(child) for child in children])
            todo += started
        return found

    def used_bytes(self) -> int:
        """Return the memory of all its processes; what they share counts once for each."""
        return sum(map(_resident_bytes, (self.server.process.pid, *self.processes())))

    @contextmanager
    def watched(self):
        """Measure the most memory that is in use meanwhile."""
        is_over = threading.Event()

        def watch() -> None:
            while not is_over.wait(0.05):
                self.peak_bytes = max(self.peak_bytes, self.used_bytes())

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            yield
        finally:
            is_over.set()
            watching.join()

    def withstands(self, *attacks) -> list:
        """Let all attack at once, and check that the visitor and the memory limit hold; return what attackers got."""
        self.peak_bytes = 0
        with self.watched(), ThreadPoolExecutor(len(attacks)) as attackers:
            running = [attackers.submit(attack, Visitor(self.server.port)) for attack in attacks]
            self.still_serves(lambda: all(one.done() for one in running))
            answers = [one.result() for one in running]
        assert self.peak_bytes < LIMIT_BYTES, f"{self.peak_bytes >> 20} MiB"
        return answers

    def calms_down(self) -> None:
        """Check that everything is returned: processes, memory, files."""
        eventually(lambda: not self.processes(), "the end of all processes")
        eventually(lambda: self.used_bytes() < 256 << 20, "the memory")
        assert not list(self.folder.iterdir())


@contextmanager
def attacked(folder: Path):
    """Start a server whose temporary files are in a folder, and one that nobody attacks."""
    program = (sys.executable, "-c", _START)
    with (
        running(program=program, env={**os.environ, "TMPDIR": str(folder)}) as server,
        running(program=program) as calm,
    ):
        yield Attacked(server, calm, folder)


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
