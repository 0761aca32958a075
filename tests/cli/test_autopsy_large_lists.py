"""``podqos autopsy`` on long lists in YAML: what tells nothing is counted, and nothing else changes."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator

import pytest

from podqos.cli.main import main
from podqos.manifest import alike, long_lists
from podqos.manifest.reading import read
from podqos.reading import quiet_objects
from podqos.reading.quiet_objects import sifted

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
def ask(tmp_path, capsys, monkeypatch) -> Iterator[Ask]:
    """Return the exit code and what is printed about a text; ``sift``: with what tells nothing left out."""

    def run(text: str, *arguments: str, sift: bool, form: str = "text") -> tuple[int, str, str]:
        path = tmp_path / "pods.yaml"
        path.write_text(text)
        monkeypatch.setattr(quiet_objects, "LEAST_BYTES", 1 if sift else 10**9)
        monkeypatch.setattr(quiet_objects, "_PART_BYTES", 2000)
        monkeypatch.setattr(long_lists, "_BATCH", 2000)
        code = main(["autopsy", str(path), *arguments, "-o", form])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def left_out(text: str) -> int:
    """Return how many pods are only counted."""
    return sifted("f", text.encode(), io.BytesIO()).left_out.pods


@pytest.fixture
def _any_length(monkeypatch):
    monkeypatch.setattr(quiet_objects, "LEAST_BYTES", 1)
    monkeypatch.setattr(quiet_objects, "_PART_BYTES", 2000)


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
@pytest.mark.parametrize("found", [*TELLING, *QUIET])
def test_what_is_said_of_a_long_list_does_not_change(ask: Ask, found: str, form: str):
    values = {**TELLING, **QUIET}[found]
    text = listed(pods(range(20)), pod(20, **values), pods(range(21, 40)), pod(41, **values), pods(range(40, 50)))
    whole = ask(text, sift=False, form=form)
    assert ask(text, sift=True, form=form) == whole
    assert "50" in whole[1]  # one of them twice


@pytest.mark.usefixtures("_any_length")
@pytest.mark.parametrize("found", [*TELLING, *QUIET])
def test_only_pods_that_tell_something_are_kept_and_those_an_evicted_one_was_ranked_with(found: str):
    values = {**TELLING, **QUIET}[found]
    text = listed(pods(range(30)), pod(30, **values), pods(range(31, 60)))
    kept = 20 if found in {"an evicted pod", "a pod that was deleted by a taint"} else 1 if found in TELLING else 0
    file = sifted("f", text.encode(), io.BytesIO())
    assert file.left_out.pods == 60 - kept
    assert len(file.reading.workloads) == kept
    assert file.left_out.bytes == len(text) - len(file.data)


@pytest.mark.usefixtures("_any_length")
@pytest.mark.parametrize("found", TELLING)
def test_what_is_kept_stays_at_its_line_and_is_what_the_text_says(found: str):
    text = listed(pods(range(30)), pod(30, **TELLING[found]), pods(range(31, 60)))
    file = sifted("f", text.encode(), io.BytesIO())
    assert file.reading == read("f", file.data, full_statuses=True)
    lines = text.split("\n")
    for number, line in enumerate(file.data.decode().split("\n")):
        assert line in {"", "#", lines[number]}


@pytest.mark.usefixtures("_any_length")
def test_a_pod_whose_lines_are_those_of_another_that_told_nothing_is_not_parsed(monkeypatch):
    parsed = []
    read_plain = alike.read_plain
    monkeypatch.setattr(alike, "read_plain", lambda data, **options: parsed.append(data) or read_plain(data, **options))
    assert left_out(listed(pods(range(1, 100)))) == 99
    assert len(parsed) == 1


@pytest.mark.usefixtures("_any_length")
def test_events_whose_messages_have_quotes_inside_are_not_parsed_either(monkeypatch):
    parsed = []
    read_plain = alike.read_plain
    monkeypatch.setattr(alike, "read_plain", lambda data, **options: parsed.append(data) or read_plain(data, **options))
    events = (event(number, "Pulled", f'Container image "web:{number}", present [x]') for number in range(1, 50))
    assert sifted("f", listed(*events).encode(), io.BytesIO()).left_out.events == 49
    assert len(parsed) == 1


DAMAGES = {
    "an amount that is not valid": ("memory: 80Mi", "memory: 80Zi"),
    "a word in place of a number": ("restartCount: 16", "restartCount: many"),
    "a number in place of a text": ("app: web", "app: 5"),
    "a class that does not exist": ("qosClass: Burstable", "qosClass: Bursty"),
    "a kind that does not exist": ("kind: Pod", "kind: Pot"),
    "a quote that is not closed": ("app: web", "app: 'web"),
    "a key without a space": ("app: web", "app:web"),
    "a line in a wrong column": ("      name: app", "     name: app"),
    "a key twice": ("      name: app", "      name: app\n      name: app"),
    "a line that was left out": ("    containers:\n", ""),
    "a mark of what was left out": ("    containers:\n", "...\n    containers:\n"),
    "an anchor": ("app: web", "app: &web web"),
    "a tab": ("app: web", "app:\tweb"),
    "a comment": ("app: web", "app: web # or not"),
    "a switch that is a text": ("app: web", "app: yes"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_pod_that_is_not_in_order_is_reported_in_a_long_list_as_well(ask: Ask, damage: str):
    damaged = pod(16)
    assert DAMAGES[damage][0] in damaged
    text = listed(pods(range(16)), damaged.replace(*DAMAGES[damage], 1), pods(range(17, 40)))
    assert ask(text, sift=True) == ask(text, sift=False)


def test_a_container_named_like_another_of_its_pod_is_reported_in_a_long_list_as_well(ask: Ask):
    two = [
        pod(number).replace("    nodeName", f"    - image: x\n      name: {name}\n    nodeName")
        for number, name in enumerate(["side"] * 20 + ["app"])
    ]
    text = listed(*two)
    whole = ask(text, sift=False)
    assert ask(text, sift=True) == whole
    assert "app" in whole[2]


@pytest.mark.parametrize("end", [0.3, 0.6, 0.97])
def test_a_long_list_that_is_truncated_is_read_as_far_as_before(ask: Ask, end: float):
    text = listed(pods(range(40)), pod(40, **TELLING["a container that was OOM-killed"]))
    text = text[: int(len(text) * end)]
    assert ask(text, sift=True) == ask(text, sift=False)


@pytest.mark.parametrize(
    "rest", ["kind: Widgets\n", "kind: PodList\n", "", "kind: List\nitems: []\n", "kind: List\nmore: 1\n"]
)
def test_what_is_no_list_of_kubectl_is_read_in_whole(ask: Ask, rest: str):
    text = listed(pods(range(40)), rest=rest)
    assert ask(text, sift=True) == ask(text, sift=False)


@pytest.mark.parametrize("reason", ["Pulled", "Killing", "Evicted", "NodeNotReady", "SystemOOM", "Preempted"])
def test_events_that_tell_nothing_are_counted_and_others_read(ask: Ask, reason: str):
    probe = "Container app failed liveness probe, will be restarted"
    text = listed(pods(range(20)), *(event(number, "Pulled") for number in range(9)), event(9, reason, probe))
    whole = ask(text, sift=False, form="json")
    assert ask(text, sift=True, form="json") == whole
    assert json.loads(whole[1])["read"]["events"] == 10


@pytest.mark.usefixtures("_any_length")
@pytest.mark.parametrize(("reason", "kept"), [("Pulled", 0), ("Killing", 1), ("Evicted", 10)])
def test_pods_that_an_event_about_an_end_names_are_kept_and_those_an_evicted_one_was_ranked_with(reason, kept):
    assert left_out(listed(pods(range(30)), event(1, reason))) == 30 - kept
    assert left_out(listed(event(1, reason), pods(range(30)))) == 30 - kept


@pytest.mark.parametrize("reason", ["Killing", "Evicted"])
@pytest.mark.parametrize("uid", ["", "00000007-aaaa-bbbb", "of one that is gone"])
def test_what_events_say_of_pods_that_tell_nothing_does_not_change(ask: Ask, reason: str, uid: str):
    probe = "Container app failed liveness probe, will be restarted"
    own = event(7, reason, probe).replace(
        "    namespace: shop\n  kind", f"    namespace: shop\n    uid: '{uid}'\n  kind", 1
    )
    for text in (
        listed(pods(range(30)), own),
        listed(own, event(8, reason, probe), pods(range(30)), pod(30, phase="Failed")),
    ):
        assert ask(text, sift=True, form="json") == ask(text, sift=False, form="json")


def test_a_pod_is_counted_once_though_a_list_has_it_before_and_after_its_end(ask: Ask):
    text = listed(pods(range(20)), pod(5, **TELLING["a container that was OOM-killed"]), pods(range(10)))
    whole = ask(text, sift=False, form="json")
    assert ask(text, sift=True, form="json") == whole
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
    whole = ask(text, str(log), sift=False)
    assert ask(text, str(log), sift=True) == whole
    assert "shop/web-20" in whole[1]


def test_a_pod_that_is_asked_for_is_found_among_those_that_tell_nothing(ask: Ask):
    text = listed(pods(range(20)), pod(20, **TELLING["a container that was OOM-killed"]))
    assert ask(text, "pod/web-3", sift=True) == ask(text, "pod/web-3", sift=False)
    assert ask(text, "-n", "shop", sift=True) == ask(text, "-n", "shop", sift=False)


def test_a_long_list_is_the_same_from_standard_input(ask: Ask, monkeypatch, capsys):
    text = listed(pods(range(40)), pod(40, **TELLING["a container that was OOM-killed"]))
    _, whole, _ = ask(text, sift=False, form="json")
    monkeypatch.setattr(quiet_objects, "LEAST_BYTES", 1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["autopsy", "-", "-o", "json"]) == 0
    ours, theirs = json.loads(capsys.readouterr().out), json.loads(whole)
    assert ours["terminations"] == theirs["terminations"]
    assert {**ours["read"], "files": ()} == {**theirs["read"], "files": ()}
