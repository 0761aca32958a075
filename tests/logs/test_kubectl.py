"""What kubectl prints is read as Kubernetes' own values, as far as the text has them."""

from __future__ import annotations

# ruff: noqa: E501 - as it is printed
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.logs.kubectl import add_text, without_objects
from podqos.logs.said import Said
from podqos.model.pod import QOSClass

UID = "11111111-2222-3333-4444-555555555555"
LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
POD = f"""\
Name:             web-0
Namespace:        shop
Priority:         1000
Node:             worker-1/10.0.0.5
Start Time:       Wed, 18 Nov 2026 08:00:00 +0000
Labels:           app=web
                  tier=front
Status:           Running
Containers:
  app:
    Container ID:   containerd://{"cd" * 32}
    Image:          registry.example/web:1
    Args:
      --message
      State:          Terminated
    State:          Running
      Started:      Wed, 18 Nov 2026 09:00:05 +0000
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Wed, 18 Nov 2026 08:00:05 +0000
      Finished:     Wed, 18 Nov 2026 09:00:00 +0000
    Ready:          True
    Restart Count:  3
    Limits:
      memory:  512Mi
    Requests:
      memory:     256Mi
    Liveness:     http-get http://:8080/ delay=0s timeout=1s period=10s #success=1 #failure=3
    Environment:
      Reason:  Evicted
  log:
    Image:          registry.example/log:1
    State:          Running
    Restart Count:  0
Conditions:
  Type              Status
  Ready             True
  DisruptionTarget  False
QoS Class:                   Burstable
Events:
  Type     Reason   Age                From               Message
  ----     ------   ----               ----               -------
  Warning  BackOff  2m (x3 over 5m)    kubelet, worker-1  Back-off restarting failed container app in pod web-0_shop({UID})
  Normal   Pulled   1m                 kubelet            spec.containers{{app}}: Container image already present
"""
NODE = """\
Name:               worker-1
Roles:              <none>
CreationTimestamp:  Wed, 18 Nov 2026 07:00:00 +0000
Taints:             node.kubernetes.io/memory-pressure:NoSchedule
                    dedicated=db:NoExecute
Unschedulable:      true
Conditions:
  Type             Status  LastHeartbeatTime                 LastTransitionTime                Reason                       Message
  ----             ------  -----------------                 ------------------                ------                       -------
  MemoryPressure   True    Wed, 18 Nov 2026 09:00:00 +0000   Wed, 18 Nov 2026 08:59:00 +0000   KubeletHasInsufficientMemory kubelet has insufficient memory
Capacity:
  cpu:     4
  memory:  16Gi
Allocatable:
  memory:  15Gi
System Info:
  Kubelet Version:            v1.30.4
Events:
  Type     Reason                Age   From     Message
  ----     ------                ----  ----     -------
  Warning  EvictionThresholdMet  2m    kubelet  Attempting to reclaim memory
"""


def read(*texts: str) -> Said:
    said = Said()
    for text in texts:
        add_text(said, text)
    return said


@pytest.mark.parametrize("around", ["{}", "before\n{}after\n", "$ kubectl describe pod web-0\n{}", "```\n{}```\n"])
def test_a_description_of_a_pod_is_the_pod(around):
    (pod,) = read(around.format(POD)).pods
    assert (pod.key, pod.metadata.uid, pod.spec.node_name, pod.spec.priority) == ("shop/web-0", UID, "worker-1", 1000)
    assert (pod.status.phase, pod.status.qos_class, pod.is_whole) == ("Running", QOSClass.BURSTABLE, True)
    app, log = pod.status.container_statuses
    ended = app.last_state.terminated
    assert (ended.reason, ended.exit_code, ended.finished_at) == ("OOMKilled", 137, "2026-11-18T09:00:00+00:00")
    assert (app.restart_count, app.state.running is not None, log.name) == (3, True, "log")
    limits = {name: str(amount) for name, amount in pod.spec.containers[0].resources.limits.items()}
    assert limits == {"memory": "512Mi"}
    assert pod.spec.containers[0].liveness_probe is not None


def test_the_events_of_a_description_are_about_its_pod():
    backoff, pulled = read(POD).events
    assert (backoff.reason, backoff.host, backoff.count) == ("BackOff", "worker-1", 3)
    assert (backoff.about.namespace, backoff.about.name, backoff.about.field_path) == (
        "shop",
        "web-0",
        "spec.containers{app}",
    )
    assert pulled.about.field_path == "spec.containers{app}"


def test_a_description_of_a_node_is_the_node():
    said = read(NODE)
    (node,) = said.nodes
    assert (node.name, node.spec.unschedulable, node.status.node_info.kubelet_version) == ("worker-1", True, "v1.30.4")
    assert [taint.key for taint in node.spec.taints] == ["node.kubernetes.io/memory-pressure", "dedicated"]
    assert {name: str(amount) for name, amount in node.status.allocatable.items()} == {"memory": "15Gi"}
    assert [(condition.type, condition.status) for condition in node.status.conditions] == [("MemoryPressure", "True")]
    (event,) = said.events
    assert (event.reason, event.about.kind, event.about.name) == ("EvictionThresholdMet", "Node", "worker-1")


def test_a_description_of_something_else_is_no_pod():
    text = "Name: web\nNamespace: shop\nSelector: app=web\nReplicas: 3 desired\nPod Template:\n  Containers:\n   app:\n"
    assert read(text).pods == []


HEADER = "NAME    READY   STATUS      RESTARTS      AGE   IP           NODE\n"


@pytest.mark.parametrize("header", [HEADER, ""])
@pytest.mark.parametrize(
    ("row", "key", "node"),
    [
        ("web-0   0/1     OOMKilled   3 (5m ago)    2d    10.0.0.7     worker-1", "web-0", "worker-1"),
        ("shop  web-0   0/1   OOMKilled   3   2d", "shop/web-0", ""),
        ("pod/web-0   0/1   OOMKilled   3   2d", "web-0", ""),
        ("web-0 0/1 OOMKilled 3 2d", "web-0", ""),
    ],
)
def test_a_row_of_pods_is_a_pod(header, row, key, node):
    (pod,) = read(header + row + "\n").pods
    (status,) = pod.status.container_statuses
    assert (pod.key, pod.spec.node_name, status.state.terminated.reason, status.restart_count) == (
        key, node, "OOMKilled", 3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "phase", "reason"),
    [("Evicted", "Failed", "Evicted"), ("Running", "", ""), ("OutOfmemory", "Failed", "OutOfmemory")],
)
def test_what_a_table_shows_of_a_pod_is_its_status(shown, phase, reason):
    (pod,) = read(f"NAME READY STATUS RESTARTS AGE\nweb-0   0/2   {shown}   0   2d\n").pods
    assert (pod.status.phase or "", pod.status.reason) == (phase or "Running", reason)


@pytest.mark.parametrize(
    ("row", "namespace", "host"),
    [
        (f"2m   Warning   Evicted   pod/web-0   {LOW}", "", ""),
        (f"shop   2m (x3 over 9m)   Warning   Evicted   pod/web-0   {LOW}", "shop", ""),
        (
            f"2m   Warning   Evicted   pod/web-0   spec.containers{{app}}   kubelet, worker-1   {LOW}   2m   1   web-0.17ab34cd56ef7890",
            "",
            "worker-1",
        ),
    ],
)  # fmt: skip
def test_a_row_of_events_is_an_event(row, namespace, host):
    for text in (row, f"LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n{row}\n"):
        (event,) = read(text).events
        assert (event.reason, event.about.kind, event.about.name) == ("Evicted", "Pod", "web-0")
        assert (event.about.namespace, event.host, event.text) == (namespace, host, LOW.strip())


def test_a_row_and_a_description_of_one_pod_are_one_pod():
    (pod,) = read(f"{HEADER}web-0   0/1   OOMKilled   3   2d\n", POD).pods
    assert (pod.key, pod.is_whole) == ("shop/web-0", True)
    (pod,) = read("NAME READY STATUS RESTARTS AGE\nweb-0 0/1 OOMKilled 3 2d\nweb-0 1/1 Running 4 2d\n").pods
    (status,) = pod.status.container_statuses
    assert (status.state.running is not None, status.last_state.terminated.reason) == (True, "OOMKilled")


def test_the_namespace_of_a_command_is_that_of_its_rows():
    (pod,) = read(f"$ kubectl get pods -n shop\n{HEADER}web-0   0/1   OOMKilled   3   2d\n").pods
    assert pod.key == "shop/web-0"


@pytest.mark.parametrize(
    "text",
    [
        "Then web-0 was OOMKilled with RESTARTS 3.\n",
        "GET /api/1/2 Running 3 OOMKilled\n",
        "Reason: Evicted\nName: x\n",
        "Warning: Evicted pods are deleted\n",
    ],
)
def test_prose_and_logs_have_no_pods_and_no_events(text):
    said = read(text)
    assert (said.pods, said.events, said.nodes) == ([], [], [])


YAML = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web-0\nstatus:\n  reason: Evicted\n"
JSON = '{"apiVersion": "v1", "kind": "Pod",\n "metadata": {"name": "web-0"}}'


@pytest.mark.parametrize("own", [YAML, JSON, "kind: Pod\napiVersion: v1\n"])
def test_objects_in_the_midst_of_a_text_are_taken_out(own):
    objects, rest = without_objects(f"$ kubectl get pod -o yaml\n{own}\n[ 12.5] eth0: up\n")
    assert objects.strip() == own.strip()
    assert "eth0" in rest
    assert "kind" not in rest


def test_what_only_begins_like_an_object_stays():
    text = 'kind: of\nslow\n{"kind": cut\n'
    assert without_objects(text) == ("", text)


LINES = [*POD.splitlines(), *NODE.splitlines(), HEADER, "web-0 0/1 OOMKilled 3 2d", "{", "apiVersion: v1", "\x00"]


@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=40)), max_size=30))
def test_no_text_makes_the_reader_fail(lines):
    text = "\n".join(lines)
    read(text)
    objects, rest = without_objects(text)
    assert len(objects) + len(rest) <= len(text) + 5 * len(lines)
