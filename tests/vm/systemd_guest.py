"""A node under systemd: what it asks for, what it gets, and what is left afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from host.nodes import kubelet, pod_document
from vm.boot import report

CGROUPS = Path("/sys/fs/cgroup")
FOLDER = Path("/run/podqos-test")
SCOPE = CGROUPS / "system.slice" / "podqos.scope"


def start() -> subprocess.Popen[bytes]:
    """Be a node."""
    words = ("--manifests", FOLDER / "manifests", "--config", FOLDER / "kubelet.json", "--memory", "200Mi")
    command = [sys.executable, "-m", "podqos", "node", "run", *map(str, words), "--state-dir", str(FOLDER / "state")]
    return subprocess.Popen(command)


def wait_for(condition, seconds: float = 200) -> bool:
    """Wait until something holds, or too long."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return bool(condition())


def pod_processes() -> list[str]:
    """Return the process ids in all pods."""
    return [pid for file in SCOPE.glob("node/kubepods/**/cgroup.procs") for pid in file.read_text().split()]


def main() -> None:
    """Start, be killed, start again, end."""
    (FOLDER / "manifests").mkdir(parents=True)
    (FOLDER / "kubelet.json").write_bytes(kubelet(evictionHard={"memory.available": "10Mi"}))
    (FOLDER / "manifests" / "web.json").write_bytes(msgspec.json.encode(pod_document("web", "sleep", "1000")))
    agent = start()
    report(check="started", good=wait_for(pod_processes), where=str(Path("/proc/self/cgroup").read_text()))
    limit = (SCOPE / "node" / "memory.max").read_text().strip()
    shown = subprocess.run(
        ["systemctl", "show", "podqos.scope", "-p", "Delegate", "-p", "ActiveState"], capture_output=True, check=False
    )
    report(check="scope", limit=limit, shown=shown.stdout.decode(), shim=(SCOPE / "shim" / "cgroup.procs").read_text())
    before = pod_processes()
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    report(check="outlives", good=pod_processes() == before)
    agent = start()
    journal = FOLDER / "state" / "journal.jsonl"
    report(check="adopted", good=wait_for(lambda: "Adopted" in journal.read_text()) and pod_processes() == before)
    time.sleep(2)
    agent.send_signal(signal.SIGTERM)
    report(check="ended", good=agent.wait(60) == 0 and wait_for(lambda: not SCOPE.exists()))
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.sync()


if __name__ == "__main__":
    main()
