"""As many containers as the limits of open files and processes allow; the next one waits and says why."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from host.machine import needs_node
from podqos.host.linux import cgroupfs, descriptors
from podqos.host.linux.cgroupfs import Gauges
from podqos.host.runtimes.shim import Shim

_AGENT = """
import json, os, resource, signal, sys, time
from pathlib import Path
soft, hard = int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from podqos.errors import HostError
from podqos.host.linux.descriptors import raise_limit
from podqos.host.runtimes.shim_client import Program, ShimClient
folder, said = Path(sys.argv[1]), {}
raise_limit()
said["agent"] = resource.getrlimit(resource.RLIMIT_NOFILE)
keeper = ShimClient(folder)
said["keeper"] = resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE)
def start(name, script):
    return keeper.start(Program(
        id=f"u/{name}/0", argv=("sh", "-c", script), env=dict(os.environ), cwd="/", entrances=(),
        log=str(folder / f"{name}.log"),
    ))
"""
_END = """
for program in keeper.programs().running.values():
    os.kill(program.pid, signal.SIGKILL)
keeper.end()
print(json.dumps(said))
"""


def open_files() -> list[str]:
    return sorted(each.name for each in Path("/proc/self/fd").iterdir())


def agent(folder, soft: int, hard: int, code: str) -> dict:
    """Run an agent with a keeper under these limits of open files; return what it says."""
    done = subprocess.run(
        [sys.executable, "-c", f"{_AGENT}{code}{_END}", str(folder), str(soft), str(hard)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_agent_and_keeper_may_open_what_the_machine_allows_and_containers_what_they_always_could(tmp_path):
    said = agent(
        tmp_path, 60, 240, "start('main', 'ulimit -Sn; ulimit -Hn')\nwhile not keeper.exits(): pass\n"
        "while (folder / 'main.log').read_text().count('\\n') < 2: pass\n"
        "said['container'] = [line.split()[3] for line in (folder / 'main.log').read_text().splitlines()]",
    )  # fmt: skip
    assert said == {"agent": [240, 240], "keeper": [240, 240], "container": ["60", "240"]}


def test_at_the_limit_the_next_container_does_not_start_and_the_others_live_on(tmp_path):
    said = agent(
        tmp_path, 64, 64, "pids = []\n"
        "def again():\n    while True:\n        try: return start('again', 'exec sleep 100')\n"
        "        except HostError: time.sleep(0.01)  # its pipes are read to their end first\n"
        "try:\n    while len(pids) < 64: pids.append(start(f'c{len(pids)}', 'exec sleep 100'))\n"
        "except HostError as error: said['why'] = str(error)\n"
        "keeper.close(); keeper = ShimClient(folder)\n"  # another agent still finds everything
        "said['running'] = len(keeper.programs().running) - len(pids)\n"
        "os.kill(pids[0], signal.SIGKILL)\nwhile not keeper.exits(): pass\n"
        "keeper.forget('u/c0/0'); said['again'] = again() > 0\n"
        "said['exits'] = (folder / 'exits').exists(); said['started'] = len(pids)",
    )  # fmt: skip
    assert said["why"] == "sh: Too many open files: the limit is 64"
    assert said["started"] >= 10
    assert (said["running"], said["again"], said["exits"]) == (0, True, True)


@pytest.mark.slow
@needs_node
def test_a_node_with_more_pods_than_descriptors_goes_on():
    code = (
        "import json, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
        "from host.nodes import kubelet, pod_document, running_node\n"
        "with running_node(kubelet()) as stage:\n"
        "    stage.put(*(pod_document(f'p{n}', 'sleep', '1000') for n in range(40)))\n"
        "    stage.until(lambda: len(stage.node.world.pods) == 40)\n"
        "    stage.until(lambda: len(stage.lines('Exited')) >= 16)\n"
        "    up = sum(bool(pod.running) for pod in stage.node.world.pods.values())\n"
        "    measured = sum(pod.memory is not None for pod in stage.node.world.summary().pods)\n"
        "    said = sum('Too many open files' in line for line in stage.said)\n"
        "    print(json.dumps([up, measured, said]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    up, measured, said = json.loads(done.stdout)
    assert (up >= 20, measured, said > 0) == (True, 40, True)


@pytest.fixture
def keeper(tmp_path, monkeypatch):
    monkeypatch.setattr("signal.set_wakeup_fd", lambda *_args, **_kwargs: -1)
    monkeypatch.setattr("signal.signal", lambda *_args: None)
    shim = Shim(str(tmp_path / "shim.sock"))
    yield shim
    shim._listener.close()
    shim._selector.close()


@pytest.mark.parametrize(
    ("function", "number", "why"),
    [
        ("fork", errno.EAGAIN, "no more processes are allowed: Resource temporarily unavailable"),
        ("fork", errno.ENOMEM, "Cannot allocate memory"),
        ("pipe2", errno.EMFILE, "Too many open files"),
        ("pipe2", errno.ENFILE, "Too many open files in system"),
    ],
)
def test_what_the_kernel_refuses_is_an_answer_and_leaves_nothing_open(keeper, monkeypatch, function, number, why):
    def refused(*_args: object) -> None:
        raise OSError(number, os.strerror(number))

    before = open_files()
    request = {"do": "start", "id": "a", "argv": ["true"], "log": f"{keeper._path}.log", "logBytes": 1, "logFiles": 1}
    with monkeypatch.context() as patch:
        patch.setattr(os, function, refused)
        assert keeper._answer(request) == {"error": why}
    assert open_files() == before
    assert keeper._answer({"do": "list"}) == {"running": [], "ended": []}


def test_files_of_figures_are_not_kept_open_when_descriptors_run_short(tmp_path, monkeypatch):
    (tmp_path / "usage").write_bytes(b"7")
    gauges = Gauges(lambda _path: [tmp_path / "usage"])
    monkeypatch.setattr(cgroupfs, "is_reserved", lambda _descriptor: True)
    before = open_files()
    assert gauges.read("/pod") == [b"7"]
    assert open_files() == before


def test_the_reserve_is_the_last_descriptors():
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert [descriptors.is_reserved(soft - descriptors.RESERVE + each) for each in (-1, 0)] == [False, True]
    descriptors.check_free()
