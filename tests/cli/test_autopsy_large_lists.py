"""``podqos autopsy`` on long lists in YAML: what tells nothing is counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

import pytest

from podqos.cli.main import main

RUNNING = "state:\n        running:\n          startedAt: '2026-01-05T15:00:00Z'"
POD = """\
- apiVersion: v1
  kind: Pod
  metadata:
    creationTimestamp: '2026-01-05T14:00:00Z'
    labels:
      app: web
    name: {name}
    namespace: shop
    uid: {uid}
  spec:
    containers:
    - image: registry.example.com/web:{number}
      name: app
      resources:
        limits:
          memory: {memory}
        requests:
          memory: 64Mi
    nodeName: {node}
  status:
    containerStatuses:
    - containerID: containerd://{number:064x}
      lastState: {last}
      name: app
      restartCount: {number}
      {state}
    phase: {phase}
    podIP: 10.1.2.{number}
    qosClass: Burstable
"""
TELLING = {
    "a container that was OOM-killed": {"last": "{terminated: {exitCode: 137, reason: OOMKilled}}"},
    "a container that was killed": {"last": "{terminated: {exitCode: 137, reason: Error}}"},
    "a container that exited": {"state": "state:\n        terminated:\n          exitCode: 3"},
    "one that ends again and again": {"state": "state:\n        waiting:\n          reason: CrashLoopBackOff"},
    "an evicted pod": {"phase": "Failed\n    reason: Evicted\n    message: 'The node was low on resource: memory. '"},
    "a pod that was deleted by a taint": {
        "phase": "Running\n    conditions:\n    - type: DisruptionTarget\n      status: 'True'\n"
        "      reason: DeletionByTaintManager"
    },
    "an init container that was OOM-killed": {
        "phase": "Pending\n    initContainerStatuses:\n    - name: init\n      state:\n        terminated:\n"
        "          exitCode: 137\n          reason: OOMKilled"
    },
}
QUIET = {
    "a pod that waits for its node": {"phase": "Pending", "node": "''"},
    "a job that ended well": {
        "state": "state:\n        terminated:\n          exitCode: 0\n          reason: Completed",
        "phase": "Succeeded",
    },
    "a text with an item of a list in it": {
        "phase": "Running\n    message: |+\n      items:\n      - apiVersion: v1\n\n      OOMKilled\n"
    },
}
EVENT = """\
- apiVersion: v1
  involvedObject:
    kind: Pod
    name: {name}
    namespace: shop
  kind: Event
  message: {message}
  metadata:
    name: {name}.{number}
    namespace: shop
    uid: event-{number}
  reason: {reason}
"""


def pod(number: int, **values: str) -> str:
    known = {"name": f"web-{number}", "uid": f"{number:08x}-aaaa-bbbb", "node": f"node-{number % 3}", "last": "{}"}
    known |= {"state": RUNNING, "phase": "Running", "memory": f"{number + 64}Mi"}
    return POD.format(number=number, **known | values)


def pods(numbers: Iterable[int]) -> str:
    return "".join(map(pod, numbers))


def event(number: int, reason: str, message: str = "x") -> str:
    return EVENT.format(number=number, name=f"web-{number}", reason=reason, message=message)


def listed(*items: str, rest: str = "kind: List\nmetadata:\n  resourceVersion: ''\n") -> str:
    return f"apiVersion: v1\nitems:\n{''.join(items)}{rest}"


Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(tmp_path, capsys) -> Iterator[Ask]:
    """Return the exit code and what is printed about a text."""

    def run(text: str, *arguments: str, form: str = "text") -> tuple[int, str, str]:
        path = tmp_path / "pods.yaml"
        path.write_text(text)
        code = main(["autopsy", str(path), *arguments, "-o", form])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.mark.parametrize("found", [*TELLING, *QUIET])
def test_what_tells_of_an_end_is_found_among_what_does_not(ask: Ask, found: str):
    values = {**TELLING, **QUIET}[found]
    _, told, _ = ask(listed(pods(range(20)), pod(20, **values), pods(range(21, 50))), form="json")
    assert json.loads(told)["read"]["pods"] == 50
    assert ("web-20" in told) is (found in TELLING)


@pytest.mark.parametrize("reason", ["Pulled", "Killing", "Evicted", "NodeNotReady", "SystemOOM", "Preempted"])
def test_events_that_tell_nothing_are_counted_and_others_read(ask: Ask, reason: str):
    probe = "Container app failed liveness probe, will be restarted"
    text = listed(pods(range(20)), *(event(number, "Pulled") for number in range(9)), event(9, reason, probe))
    whole = ask(text, form="json")
    assert json.loads(whole[1])["read"]["events"] == 10


def test_a_pod_is_counted_once_though_a_list_has_it_before_and_after_its_end(ask: Ask):
    text = listed(pods(range(20)), pod(5, **TELLING["a container that was OOM-killed"]), pods(range(10)))
    whole = ask(text, form="json")
    assert json.loads(whole[1])["read"]["pods"] == 20


def test_pods_that_a_log_may_be_about_are_all_read(ask: Ask, tmp_path):
    uid = "5e8cb31b-31d8-4b0c-ae3b-7b3b8e2b9a01"
    log = tmp_path / "kern.log"
    group = f"/kubepods/burstable/pod{uid}/{20:064x}"
    log.write_text(
        f"[1.0] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg={group},"
        f"task_memcg={group},task=web,pid=7,uid=0\n"
        "[1.0] Memory cgroup out of memory: Killed process 7 (web) total-vm:9kB, anon-rss:8kB, file-rss:0kB, "
        "shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:999\n"
    )
    text = listed(pods(range(20)), pod(20, uid=uid), pods(range(21, 30)))
    whole = ask(text, str(log))
    assert "shop/web-20" in whole[1]
