"""``podqos guard run`` beside a kubelet: the suite's own, and a real one if there is one.

A pod takes so much memory that the kubelet's threshold is crossed and the limit of all pods is not: who is late loses
time, not the race.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from guard.kubelets import PATIENCE, REAL, SLEEP, RealKubelet, real_kubelet, suite_kubelet, wait_until
from guard.test_acting import is_frozen
from podqos.guard.requests import ANNOTATION
from podqos.host.linux.capabilities import detect
from podqos.host.linux.procfs import Procfs
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion

pytestmark = pytest.mark.slow
MI = 1 << 20
LIMIT, THRESHOLD = 320 * MI, 128 * MI


def limited(kubelet):
    """Give a kubelet's pods a limit, and thresholds before it."""
    kubelet.cgroups.create(kubelet.cgroups.own)
    assert kubelet.cgroups.set_memory_limit(kubelet.cgroups.own, LIMIT) is None
    kubelet.api.configz = {
        "cgroupRoot": kubelet.settings.cgroup_root,
        "cgroupDriver": kubelet.settings.cgroup_driver,
        "evictionHard": {"memory.available": f"{THRESHOLD >> 20}Mi"},
        "enforceNodeAllocatable": ["pods"],
        "failCgroupV1": False,
    }
    return kubelet


APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@pytest.fixture(params=[*CgroupDriver, "real"])
def node(request):
    """Run a kubelet whose pods have a limit: the suite's own with either driver, and a real one where there is one."""
    if request.param == "real" and REAL is None:
        pytest.skip("PODQOS_TEST_KUBELET names no kubeconfig")
    with real_kubelet() if request.param == "real" else suite_kubelet(request.param) as running:
        yield running if request.param == "real" else limited(running)


def grower(kubelet, go: str = "sleep 3"):
    """Return a command that takes memory to the middle between the threshold and the limit."""
    own = kubelet.cgroups.own
    size = ((kubelet.cgroups.memory_limit(own) or 0) - (kubelet.cgroups.usage(own) or 0)) // MI
    threshold = 300 if isinstance(kubelet, RealKubelet) else THRESHOLD >> 20
    return ("sh", "-c", f"{go}; dd if=/dev/zero bs={size - threshold // 2}M count=1 | sleep 1000")


@contextmanager
def guard(kubelet, folder, *options, within=()):
    """Run a guard, ``within`` what another command gives it; yield its process, which has begun to watch."""
    kubeconfig = REAL if isinstance(kubelet, RealKubelet) else str(folder / "kubeconfig")
    if not isinstance(kubelet, RealKubelet):
        entry = {"name": "suite", "cluster": {"server": kubelet.access.server}}
        context = {"name": "suite", "context": {"cluster": "suite", "user": "guard"}}
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "suite", "clusters": [entry]}
        config |= {"contexts": [context], "users": [{"name": "guard", "user": {}}]}
        Path(kubeconfig).write_text(json.dumps(config))
    status = folder / "run" / "status.json"
    status.unlink(missing_ok=True)
    command = [*within, sys.executable, "-m", "podqos", "guard", "run"]
    command += ["--node", kubelet.node, "--kubeconfig", kubeconfig]
    command += ["--state", str(folder / "state"), "--run", str(folder / "run"), *options]
    process = subprocess.Popen(command, env={**os.environ, "KUBECONFIG": os.devnull})
    try:
        wait_until(lambda: status.exists() or process.poll() is not None, "the guard has begun")
        assert process.poll() is None
        yield process
    finally:
        # A command that runs it elsewhere may not pass this on.
        for pid in Procfs().children(process.pid) if within else (process.pid,):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        try:
            process.wait(300 * PATIENCE)
        finally:
            process.kill()
            process.wait()


def knows_pods(folder):
    """Whether the guard that runs has all pods from the server, and on file."""
    said = json.loads((folder / "run" / "status.json").read_bytes())
    is_up_to_date = not said["api"]["trouble"] and not said["api"]["fromDisk"]
    return said["candidates"] and is_up_to_date and (folder / "state" / "pods.json").exists()


def threshold_of(folder):
    said = json.loads((folder / "run" / "status.json").read_bytes())
    return min((each["threshold"] for each in said["signals"] if "emory" in each["signal"]), default=None)


def entries(folder):
    file = folder / "state" / "journal.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]  # the last may be being written


def names(entry, pod):
    return entry.get("pod", "").endswith(pod.name)


def kinds(folder, pod):
    return [each["kind"] for each in entries(folder) if names(each, pod)]


def outcomes(folder, pod):
    return [each["because"]["outcome"] for each in entries(folder) if each["kind"] == "Reported" and names(each, pod)]


def evicts_the_grower(node, folder, *options, **given):
    """Have the guard evict the pod that grows, and hold to what has to be so then; return both pods."""
    other = node.run("steady", SLEEP)
    pod = node.run("grower", grower(node))
    with guard(node, folder, "--enforce", *options, **given):
        wait_until(lambda: node.is_evicted(pod), "it is evicted")
        wait_until(lambda: node.events(pod.uid), "it has its Event")
        wait_until(lambda: outcomes(folder, pod), "the guard is done with it")
    there = node.pod(pod.name)
    assert there["status"]["message"].startswith("The node was low on resource: memory. Threshold quantity: ")
    assert there["metadata"]["annotations"][ANNOTATION]
    assert outcomes(folder, pod) == ["Evicted"]
    assert not list((folder / "run" / "evictions").iterdir())
    assert "Evicted" in kinds(folder, pod)
    assert node.processes(other)
    assert not is_frozen(node, other)
    assert not kinds(folder, other).count("Evicted")
    assert not oom_kills(node)
    return pod, other


def oom_kills(kubelet):
    """Return how many processes of pods the kernel has killed; version 1 counts where none of them is any more."""
    text = kubelet.cgroups.read(kubelet.cgroups.own, "memory.events") or ""
    return sum(int(count) for count in re.findall(r"^oom_kill (\d+)", text, re.MULTILINE))


@pytest.mark.parametrize("when", ["patch", "answer"])
def test_the_pod_that_grows_is_evicted_and_the_others_go_on(node, tmp_path, when):
    pod, _other = evicts_the_grower(node, tmp_path, "--kill-after", when)
    assert node.restarts(pod.name) == 0 or when == "patch", "only a machine too busy to tell the server is too late"


@pytest.mark.skipif(detect().version is CgroupVersion.V1, reason="version 1 does not list processes it cannot see")
def test_on_cgroup_v2_it_needs_neither_the_hosts_pids_nor_its_cgroup_namespace(node, tmp_path):
    """As in a container: it is process 1, and no process of any pod has a number there."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    evicts_the_grower(node, tmp_path, within=(*APART, "--cgroup"))
    assert json.loads((tmp_path / "run" / "status.json").read_bytes())["pid"] == 1


@pytest.mark.skipif(detect().version is CgroupVersion.V2, reason="version 2 kills what it cannot see")
@pytest.mark.parametrize("mode", ["--enforce", "--shadow"])
def test_on_cgroup_v1_a_guard_without_the_hosts_pids_does_not_claim_to_evict(node, tmp_path, mode, capfd):
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    node.run("steady", SLEEP)
    missing = "the processes of pods cannot be seen and killed from this container (give its pod hostPID: true)"
    if mode == "--shadow":
        with guard(node, tmp_path, mode, within=APART):
            wait_until((tmp_path / "run" / "status.json").exists, "it watches all the same")
    else:
        with pytest.raises(AssertionError), guard(node, tmp_path, mode, within=APART) as _ended:
            pass
    assert missing in capfd.readouterr().err


def links(folder):
    for each in folder.iterdir():
        with suppress(FileNotFoundError):
            yield str(each.readlink())


def test_it_protects_itself_as_far_as_the_machine_allows_and_says_where_not(suite, tmp_path):
    limited(suite)
    suite.run("steady", SLEEP)
    with guard(suite, tmp_path) as process:
        wait_until(lambda: knows_pods(tmp_path), "the guard knows the pods")
        said = json.loads((tmp_path / "run" / "status.json").read_bytes())["unprotected"]
        score = int(Path(f"/proc/{process.pid}/oom_score_adj").read_text())
        locked = int(re.search(r"VmLck:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1])
        heard = set(links(Path(f"/proc/{process.pid}/fd")))
    assert (score == -999) is not any("oom_score_adj" in each for each in said)
    assert (locked > 0) is not any("mlockall" in each for each in said)
    if detect().can_lower_oom_score:
        assert score == -999
        assert any(each.endswith("/pressure/memory") for each in heard), "pressure of the machine wakes it"
        own = str(suite.cgroups.folder(suite.cgroups.own) / "memory.pressure")
        assert own in heard or detect().version is CgroupVersion.V1, "and so does that of all pods"


def test_in_shadow_it_is_only_written_down(node, tmp_path):
    pod = node.run("grower", grower(node))
    with guard(node, tmp_path):
        wait_until(lambda: "WouldEvict" in kinds(tmp_path, pod), "it is written down")
        assert node.processes(pod)
        assert not is_frozen(node, pod)
    assert ANNOTATION not in node.pod(pod.name)["metadata"].get("annotations", {})


def test_a_stop_file_keeps_it_from_evicting(node, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stop").touch()
    pod = node.run("grower", grower(node))
    with guard(node, tmp_path, "--enforce"):
        wait_until(lambda: "WouldEvict" in kinds(tmp_path, pod), "it is written down")
        assert node.processes(pod)
    assert ANNOTATION not in node.pod(pod.name)["metadata"].get("annotations", {})


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_pod_is_held_while_the_server_is_away_and_never_left_frozen(suite, tmp_path, is_killed):
    """Also where the guard is killed with -9 then, and the next one, if there is any, is started while it hangs."""
    limited(suite)
    flag, options = tmp_path / "go", ("--enforce", "--kill-after", "answer")
    pod = suite.run("grower", grower(suite, f"while [ ! -e {flag} ]; do sleep 0.05; done"))
    with guard(suite, tmp_path, *options) as process:
        wait_until(lambda: knows_pods(tmp_path), "the guard knows the pods")
        suite.api.is_away = True
        flag.touch()
        wait_until(lambda: is_frozen(suite, pod), "it is held")
        if is_killed:
            process.kill()
            process.wait()
            wait_until(lambda: not is_frozen(suite, pod), "its lifeline thaws it")
            assert suite.processes(pod)
        else:
            suite.api.is_away = False
            wait_until(lambda: suite.is_evicted(pod), "it is evicted")
            wait_until(lambda: suite.events(pod.uid), "it has its Event")
    if is_killed:
        suite.api.hangs, suite.api.is_away = True, False
        with guard(suite, tmp_path, *options):
            wait_until(lambda: not suite.processes(pod), "the next guard does not wait for the server")
            suite.api.hangs = False
            wait_until(lambda: suite.is_evicted(pod), "it is evicted")
            wait_until(lambda: suite.events(pod.uid), "it has its Event")
            wait_until(lambda: not list((tmp_path / "run" / "evictions").iterdir()), "the guard is done with it")
    assert not is_frozen(suite, pod)


def test_a_guard_goes_by_its_last_knowledge_from_the_start_and_by_new_settings_when_it_hears_of_them(suite, tmp_path):
    limited(suite)
    flag = tmp_path / "go"
    pod = suite.run("grower", grower(suite, f"while [ ! -e {flag} ]; do sleep 0.05; done"))
    with guard(suite, tmp_path):
        wait_until(lambda: knows_pods(tmp_path), "the guard knows the pods")
    suite.api.hangs = True
    suite.api.configz = {**suite.api.configz, "evictionHard": {"memory.available": "64Mi"}}
    with guard(suite, tmp_path):
        flag.touch()
        wait_until(lambda: "WouldEvict" in kinds(tmp_path, pod), "it decides while the server hangs")
        suite.api.hangs = False
        wait_until(lambda: threshold_of(tmp_path) == 64 * MI, "it goes by the kubelet's new threshold")
