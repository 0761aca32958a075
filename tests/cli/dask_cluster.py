"""A real Dask cluster on loopback: a scheduler and workers that nothing restarts, each a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest


class DaskCluster:
    """Its processes."""

    def __init__(self, folder: Path, workers: int) -> None:
        distributed = pytest.importorskip("distributed")
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        file = folder / "scheduler.json"
        self.scheduler = self._start(*command, "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file))
        self.address = self._address(file)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--no-nanny", "--no-dashboard"]
        self.workers = [
            self._start(*command, "--nthreads", "1", "--local-directory", str(folder)) for _ in range(workers)
        ]
        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers)

    def _address(self, file: Path) -> str:
        """Wait until the scheduler has written its address, all of it."""
        while self.scheduler.poll() is None:
            with suppress(FileNotFoundError, json.JSONDecodeError):
                return str(json.loads(file.read_text())["address"])
            time.sleep(0.02)
        raise AssertionError("the scheduler has ended")

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, *processes: subprocess.Popen[bytes]) -> None:
        for process in processes:
            process.kill()
            process.wait()
