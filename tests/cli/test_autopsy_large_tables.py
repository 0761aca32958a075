"""``podqos autopsy`` on large tables and many descriptions: what tells nothing is counted, and nothing else changes."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from kernel.oom_logs import cgroup
from podqos.answers import pasted_text
from podqos.cli.main import main
from podqos.objects.kubectl_text import parts
from podqos.objects.kubectl_text.parts import PastedParts
from podqos.objects.kubectl_text.reader import read_text

PODS = "NAMESPACE   NAME    READY   STATUS    RESTARTS   AGE   IP         NODE     NOMINATED NODE   READINESS GATES\n"
BARE = PODS.removeprefix("NAMESPACE   ")
EVENTS = "NAMESPACE   LAST SEEN   TYPE      REASON      OBJECT        MESSAGE\n"
QUIET = ("Running", "Completed", "Pending", "Init:0/1", "ContainerCreating")
TELLING = ("OOMKilled", "Evicted", "CrashLoopBackOff", "Init:OOMKilled", "ExitCode:137")


def pod_row(name: str, status: str, node: str = "worker-3") -> str:
    return f"shop        {name:<7} 1/1     {status:<9} 3 (2h ago)   3d    10.1.2.3   {node}   <none>           <none>\n"


def event_row(name: str, reason: str, message: str, kind: str = "Normal") -> str:
    return f"shop        5m          {kind:<9} {reason:<11} pod/{name}     {message}\n"


def large(telling: str = "") -> str:
    """Return a table of many pods and one of their events, with some rows between those that tell nothing."""
    pods = "".join(pod_row(f"web-{number}", QUIET[number % len(QUIET)]) for number in range(300))
    events = "".join(event_row(f"web-{number}", "Pulled", "Container image is present") for number in range(140))
    return f"{PODS}{pods}{telling}\n{EVENTS}{events}"


@pytest.fixture
def read(tmp_path, capsys):
    """Return the answer about a text, with every row read and with only the needed ones read."""

    def run(monkeypatch, text: str) -> tuple[dict, dict]:
        path = tmp_path / "pasted.txt"
        path.write_text(text)
        answers = []
        for few in (10**9, -1):
            monkeypatch.setattr(pasted_text, "_FEW_CHARACTERS", few)
            assert main(["autopsy", str(path), "-o", "json"]) == 0
            answers.append(json.loads(capsys.readouterr().out))
        return answers[0], answers[1]

    return run


@pytest.mark.parametrize("status", TELLING)
def test_a_pod_that_ended_is_found_among_many_that_did_not(read, monkeypatch, status):
    whole, few = read(monkeypatch, large(pod_row("db-0", status)))
    assert few == whole
    assert few["read"]["pods"] == 301
    assert any(few[kind] for kind in ("terminations", "evictions", "exits"))


def test_pods_beyond_those_that_are_listed_are_counted_by_what_the_table_tells_of_them(read, monkeypatch):
    monkeypatch.setattr("podqos.objects.kubectl_text.reader.MOST_TOLD", 6)
    statuses = [*TELLING, "Running", "Error", "Signal:15", "Init:ExitCode:143", "ExitCode:2", "Evicted", "ExitCode:0"]
    rows = "".join(pod_row(f"db-{n}-{place}", status) for n in range(4) for place, status in enumerate(statuses))
    whole, few = read(monkeypatch, large(rows))
    assert few == whole
    listed = [len(few[kind]) for kind in ("evictions", "terminations", "exits")]
    left_out = [few[f"{kind}LeftOut"] for kind in ("evictions", "terminations", "exits")]
    monkeypatch.undo()
    everything, _ = read(monkeypatch, large(rows))
    assert [*map(sum, zip(listed, left_out, strict=True))] == [
        len(everything[kind]) for kind in ("evictions", "terminations", "exits")
    ]
    assert few["read"]["pods"] == everything["read"]["pods"] == 300 + 4 * len(statuses)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(event_row("web-7", "Killing", "Container app failed liveness probe"), id="probe"),
        pytest.param(event_row("web-8", "Evicted", "The node was low on resource: memory. ", "Warning"), id="evicted"),
        pytest.param("\n" + PODS + pod_row("web-9", "OOMKilled"), id="a row seen before"),
        pytest.param("\n" + BARE + pod_row("web-9", "Evicted")[12:], id="without a namespace"),
        pytest.param("\n" + PODS + pod_row("web-9", "Running", "worker-4"), id="another node"),
        pytest.param("\n" + BARE + pod_row("web-9", "Running")[12:], id="the same pod twice"),
        pytest.param("\n" + PODS + pod_row("web-1", "Running"), id="started again"),
        pytest.param("\n" + BARE + pod_row("web-1", "Running")[12:], id="started again, without a namespace"),
        pytest.param("$ kubectl get pods -n db\n" + pod_row("web-9", "Running")[12:], id="of the command's namespace"),
        pytest.param(
            "Jan  5 15:19:00 worker-4 kubelet[812]: I0105 15:19:00.123456     812 eviction_manager.go:615] "
            '"Eviction manager: pod is evicted successfully" pod="shop/web-9"\n',
            id="a kubelet's log",
        ),
        pytest.param("", id="nothing"),
    ],
)  # fmt: skip
def test_rows_that_tell_nothing_are_read_where_something_else_is_about_their_pod(read, monkeypatch, more):
    whole, few = read(monkeypatch, large() + more)
    assert few == whole


def test_a_wide_table_of_events_is_not_one_of_pods(read, monkeypatch):
    headings = "LAST SEEN  TYPE     REASON   OBJECT  SUBOBJECT  SOURCE  MESSAGE  FIRST SEEN  COUNT  NAME"
    row = (
        "5m  Warning  Evicted  pod/web-{0}  spec.containers{{app}}  kubelet, w-3  {1}  5m  1  web-{0}.17a5b3c4d5e6f7a8"
    )
    _, found = read(monkeypatch, "\n".join([headings, *(row.format(number, LOW) for number in range(3)), ""]))
    assert [eviction["pod"] for eviction in found["evictions"]] == ["web-0", "web-1", "web-2"]
    assert (found["read"].get("pods", 0), found["read"]["events"]) == (0, 3)


def test_rows_beyond_what_is_kept_are_counted(read, monkeypatch):
    monkeypatch.setattr("podqos.objects.kubectl_text.quiet_rows._MOST_CHARACTERS", 1 << 12)
    monkeypatch.setattr("podqos.objects.kubectl_text.quiet_rows.MOST_NAMES", 100)
    _, few = read(monkeypatch, large(pod_row("db-0", "OOMKilled")))
    assert (len(few["terminations"]), few["read"]["events"]) == (1, 140)
    assert few["read"]["pods"] >= 301


DESCRIBED = "".join(
    f"Name:         db-{number}\nNamespace:    shop\nNode:         worker-3/10.0.0.7\nStatus:       Running\n"
    f"Containers:\n  app:\n    State:          Waiting\n      Reason:       CrashLoopBackOff\n"
    f"    Last State:     Terminated\n"
    f"      Reason:       OOMKilled\n      Exit Code:    137\n    Restart Count:  {number}\nQoS Class:      Burstable\n"
    f"Events:         <none>\n\n\n"
    for number in range(40)
)


@pytest.mark.parametrize(
    "text", [pytest.param(large(pod_row("db-0", "OOMKilled")), id="tables"), pytest.param(DESCRIBED, id="descriptions")]
)
def test_a_text_read_in_parts_tells_what_it_tells_as_a_whole(monkeypatch, text):
    monkeypatch.setattr(parts, "_PART_BYTES", 1 << 11)
    fed = []
    monkeypatch.setattr(
        PastedParts, "_read", lambda self, part: (fed.append(part), self.reader.feed(part.decode()[:-1]))
    )
    reader = PastedParts()
    data = text.encode()
    for start, end in pairwise([*range(0, len(data), 700), len(data)]):
        reader.feed(data[start:end], is_ahead=True)
    reader.end()
    assert len(fed) > 4
    assert b"".join(fed) == data
    assert reader.reader.pasted(None) == read_text(text)


def test_a_log_after_a_table_is_not_read_as_a_paste_to_its_end():
    reader = PastedParts()
    reader.feed((large() * 80).encode(), is_ahead=True)
    line = b"Jan  5 15:19:00 node-1 app[3]: {} nothing to do with it\n"
    reader.feed(line * 40_000, is_ahead=False)
    reader.feed(line * 40_000, is_ahead=False)
    assert reader.is_over


POD = """\
Name:             app-{n}
Namespace:        shop
Priority:         0
Service Account:  default
Node:             worker-{node}/10.0.0.7
Start Time:       Wed, 18 Nov 2026 07:00:00 +0100
Labels:           app=web
                  part=a
Annotations:      <none>
Status:           {status}
IP:               10.1.2.3
IPs:
  IP:           10.1.2.3
Controlled By:  ReplicaSet/web
Init Containers:
  setup:
    Container ID:   containerd://{init:064x}
    Image:          setup:1
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
    Ready:          True
    Restart Count:  0
    Environment:    <none>
Containers:
  app:
    Container ID:   containerd://{n:064x}
    Image:          web:1
    State:          {state}
      Started:      Wed, 18 Nov 2026 07:00:02 +0100
    Ready:          True
    Restart Count:  0
    Limits:
      memory:  {limit}Mi
    Requests:
      memory:  {n}Mi
    Environment:    <none>
    Mounts:         <none>
Conditions:
  Type              Status
  Ready             True
  PodScheduled      True
Volumes:            <none>
QoS Class:          Burstable
Node-Selectors:     <none>
Tolerations:        <none>
Events:             {events}


"""
NODE = """\
Name:               worker-{n}
Roles:              <none>
Labels:             kubernetes.io/os=linux
Annotations:        <none>
CreationTimestamp:  Mon, 05 Jan 2026 15:19:00 +0000
Taints:             <none>
Unschedulable:      false
Conditions:
  Type             Status  LastHeartbeatTime                 LastTransitionTime                Reason   Message
  ----             ------  -----------------                 ------------------                ------   -------
  MemoryPressure   {pressure}   Mon, 05 Jan 2026 15:19:00 +0000   Mon, 05 Jan 2026 10:19:00 +0000   Kubelet  is
Capacity:
  cpu:                8
  memory:             {n}1Gi
Allocatable:
  cpu:                8
  memory:             {n}0Gi
Non-terminated Pods:          (1 in total)
  Namespace  Name   CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
  ---------  ----   ------------  ----------  ---------------  -------------  ---
  shop       app-0  0 (0%)        0 (0%)      32Mi (0%)        64Mi (1%)      6d
Events:
  Type     Reason                   Age   From     Message
  ----     ------                   ----  ----     -------
  Normal   NodeHasSufficientMemory  5m    kubelet  Node worker-{n} status is now: NodeHasSufficientMemory


"""
WARNED = """
  Type     Reason     Age  From     Message
  ----     ------     ---  ----     -------
  Warning  Unhealthy  5m   kubelet  Readiness probe failed"""
KILLED = WARNED.replace("Unhealthy", "Killing  ").replace("Readiness probe failed", "Stopping container app")
LOW = "The node was low on resource: memory. "
EVICTED = f"Failed\nReason:           Evicted\nMessage:          {LOW}"
OOM_KILLED = "Terminated\n      Reason:       OOMKilled\n      Exit Code:    137"
BY_OOMD = (
    "Jan  5 15:19:00 worker-1 systemd-oomd[812]: Killed /kubepods.slice/cri-containerd-{:064x}.scope due to memory "
    "pressure for /system.slice being 60.00% > 50.00% for > 20s with reclaim activity\n"
)
BY_KERNEL = "".join(
    f"Jan  5 15:19:00 worker-0 kernel: [    1.5] {line}\n"
    for line in cgroup([(7, 1000, 200_000, 100, 0, 100, "python3")], 7, "python3")
).replace("ab" * 32, f"{9:064x}")


def described(number: int, status: str = "Running", state: str = "Running", events: str = "<none>") -> str:
    where, init, limit = number % 3, number + 500, number + 64
    return POD.format(n=number, node=where, init=init, limit=limit, status=status, state=state, events=events)


def described_node(number: int, pressure: str = "False") -> str:
    return NODE.format(n=number, pressure=pressure)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("", id="nothing"),
        pytest.param(described(70, events=WARNED), id="an ordinary event"),
        pytest.param(described(70, events=KILLED), id="a container was stopped"),
        pytest.param(described(70, status=EVICTED), id="evicted"),
        pytest.param(described(70, state=OOM_KILLED), id="killed"),
        pytest.param(described_node(2, "True "), id="a node under pressure"),
        pytest.param(described(3), id="described twice"),
        pytest.param(PODS + pod_row("app-4", "OOMKilled"), id="a row about one"),
        pytest.param(EVENTS + event_row("app-5", "Evicted", LOW), id="an event about one"),
        pytest.param("$ kubectl get pods\n", id="a command"),
        pytest.param(BY_KERNEL, id="a kill in one"),
        pytest.param(BY_OOMD.format(9), id="a kill by a program"),
    ],
)
def test_descriptions_that_tell_nothing_are_read_where_anything_depends_on_them(read, monkeypatch, more):
    text = "".join([*map(described, range(40)), *map(described_node, range(3))])
    whole, few = read(monkeypatch, text + more)
    assert few == whole
    assert few["read"]["nodes"] == 3


def test_descriptions_that_tell_nothing_are_not_read(monkeypatch):
    reader = PastedParts()
    reader.feed("".join([*map(described, range(40)), described(99, state="Waiting")]).encode(), is_ahead=True)
    reader.end()
    assert [pod.metadata.name for pod in reader.reader.pasted(()).pods] == ["app-99"]
    assert len(reader.reader.pasted(None).pods) == 41


@pytest.mark.parametrize("text", [PODS + pod_row("web-0", "Running") * 3, described_node(0)], ids=["pod", "node"])
def test_the_only_object_is_named_however_much_is_said_of_it(read, monkeypatch, text):
    whole, few = read(monkeypatch, text)
    assert few == whole
    assert "pod" in few["read"] or "node" in few["read"]
