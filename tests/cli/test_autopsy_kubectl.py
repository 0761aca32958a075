"""``podqos autopsy`` on what kubectl prints for people: descriptions and tables, as operators paste them."""

from __future__ import annotations

import json
import random
import re

import pytest

from kernel.oom_logs import CONTAINER, cgroup, machine
from podqos.cli.main import main
from podqos.objects.kubectl_text.reader import read_text

ROWS = [(7, 1000, 200_000, 100, 0, 100, "python3"), (8, 1000, 100_000, 100, 0, 100, "sh")]
UID = re.search(r"pod([0-9a-f_-]{36})", CONTAINER)[1].replace("_", "-")
ID = CONTAINER.rpartition("-")[2].removesuffix(".scope")
LOW = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. "
    "Container app was using 3Gi, request is 1Gi, has larger consumption of memory."
)
POD = f"""\
Name:             web-7d9
Namespace:        shop
Priority:         0
Service Account:  default
Node:             worker-3/10.0.0.7
Start Time:       Wed, 18 Nov 2026 07:00:00 +0100
Labels:           app=web
                  Status: fake
Annotations:      <none>
Status:           Running
IP:               10.1.2.3
IPs:
  IP:           10.1.2.3
Controlled By:  ReplicaSet/web
Init Containers:
  setup:
    Container ID:   containerd://{ID[::-1]}
    Image:          shop/setup:1
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
      Started:      Wed, 18 Nov 2026 07:00:00 +0100
      Finished:     Wed, 18 Nov 2026 07:00:01 +0100
    Ready:          True
    Restart Count:  0
    Environment:    <none>
    Mounts:         <none>
Containers:
  app:
    Container ID:  containerd://{ID}
    Image:         shop/web:1
    Image ID:      docker.io/shop/web@sha256:0
    Port:          8080/TCP
    Host Port:     0/TCP
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Wed, 18 Nov 2026 08:00:00 +0100
      Finished:     Wed, 18 Nov 2026 08:05:00 +0100
    Ready:          False
    Restart Count:  5
    Limits:
      cpu:     1
      memory:  256Mi
    Requests:
      cpu:        100m
      memory:     128Mi
    Liveness:     http-get http://:8080/healthz delay=0s timeout=1s period=10s #success=1 #failure=3
    Environment:  <none>
    Mounts:
      /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-x (ro)
  side:
    Container ID:   containerd://{ID[::-1]}
    Image:          shop/side:1
    State:          Running
      Started:      Wed, 18 Nov 2026 07:00:02 +0100
    Ready:          True
    Restart Count:  0
    Environment:    <none>
    Mounts:         <none>
Conditions:
  Type                        Status
  PodReadyToStartContainers   True
  Ready                       False
Volumes:
  cfg:
    Type:      ConfigMap (a volume populated by a ConfigMap)
    Name:      cfg
    Optional:  false
QoS Class:                   Burstable
Node-Selectors:              <none>
Tolerations:                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
Events:
  Type     Reason     Age                   From               Message
  ----     ------     ----                  ----               -------
  Normal   Scheduled  65m                   default-scheduler  Successfully assigned shop/web-7d9 to worker-3
  Warning  BackOff    2m (x20 over 60m)     kubelet            Back-off restarting failed container app
"""
KILLED = {
    "pod": "shop/web-7d9",
    "container": "app",
    "cause": "KernelUnreported",
    "at": "2026-11-18T08:05:00+01:00",
    "node": "worker-3",
    "reason": "OOMKilled",
    "exitCode": 137,
    "restarts": 5,
    "containerId": ID,
    "isPrevious": True,
    "memoryLimitBytes": 256 << 20,
}
EVICTED = f"""\
Name:             db-0
Namespace:        shop
Priority:         7
Node:             worker-1/10.0.0.5
Start Time:       Wed, 18 Nov 2026 07:00:00 +0000
Labels:           <none>
Status:           Failed
Reason:           Evicted
Message:          {LOW}
IP:
Containers:
  app:
    Image:      shop/db:1
    Requests:
      memory:   1Gi
    Environment:  <none>
QoS Class:      Burstable
Events:
  Type     Reason   Age   From     Message
  ----     ------   ----  ----     -------
  Warning  Evicted  5m    kubelet  {LOW}
"""
NODE = """\
Name:               worker-3
Roles:              <none>
Labels:             kubernetes.io/hostname=worker-3
Annotations:        node.alpha.kubernetes.io/ttl: 0
CreationTimestamp:  Mon, 02 Nov 2026 10:00:00 +0000
Taints:             node.kubernetes.io/memory-pressure:NoSchedule
Unschedulable:      false
Conditions:
  Type             Status   LastHeartbeatTime                 LastTransitionTime                Reason              Message
  ----             ------   -----------------                 ------------------                ------              -------
  MemoryPressure   True     Wed, 18 Nov 2026 08:00:00 +0000   Wed, 18 Nov 2026 07:58:00 +0000   KubeletHasNone      kubelet has insufficient memory
  Ready            Unknown  Wed, 18 Nov 2026 08:00:00 +0000   Wed, 18 Nov 2026 07:00:00 +0000   NodeStatusUnknown   Kubelet stopped posting node status.
Capacity:
  cpu:                4
  memory:             8148316Ki
Allocatable:
  memory:             7045468Ki
Non-terminated Pods:          (1 in total)
  Namespace   Name      CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
  ---------   ----      ------------  ----------  ---------------  -------------  ---
  shop        web-7d9   100m (2%)     1 (25%)     128Mi (1%)       256Mi (3%)     65m
Events:
  Type     Reason                     Age               From     Message
  ----     ------                     ----              ----     -------
  Warning  SystemOOM                  5m                kubelet  System OOM encountered, victim process: java, pid: 4711
  Warning  EvictionThresholdMet       4m (x3 over 2h)   kubelet  Attempting to reclaim memory
  Normal   NodeHasInsufficientMemory  4m                kubelet  Node worker-3 status is now: NodeHasInsufficientMemory
"""  # noqa: E501
PODS = """\
NAMESPACE     NAME      READY   STATUS             RESTARTS         AGE   IP         NODE       NOMINATED NODE   READINESS GATES
shop          web-7d9   0/1     OOMKilled          5 (3m ago)       10m   10.0.0.1   worker-3   <none>           <none>
shop          db-0      0/1     Evicted            0                3d    <none>     worker-1   <none>           <none>
shop          api-1     0/2     CrashLoopBackOff   17 (2m30s ago)   1h    10.0.0.4   worker-3   <none>           <none>
shop          job-x     0/1     Completed          0                1h    10.0.0.4   worker-3   <none>           <none>
kube-system   dns-1     1/1     Running            0                10d   10.0.0.5   worker-1   <none>           <none>
"""  # noqa: E501


@pytest.fixture
def autopsy(capsys, tmp_path):
    def run(*texts: str) -> dict:
        paths = []
        for number, text in enumerate(texts):
            paths.append(tmp_path / f"paste-{number}.txt")
            paths[-1].write_bytes(text.encode())
        assert main(["autopsy", *map(str, paths), "-o", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def lines(text: str, change) -> str:
    return "\n".join(change(line) for line in text.split("\n"))


def coloured(line: str) -> str:
    return re.sub(r"^(\s*)([A-Z][A-Za-z ]+:)", "\\1\x1b[1;32m\\2\x1b[0m", line)


CARRIERS = {
    "alone": lambda text: text,
    "after its command": lambda text: f"$ kubectl describe pod web-7d9 -n shop\n{text}$ ",
    "between prose": lambda text: f"Hello,\n\nmy pod dies all the time. Name: me. Any ideas?\n\n{text}\n\nThank you!\n",
    "in Markdown": lambda text: f"What I see:\n```\n{text}```\nHelp!\n",
    "in Markdown with a language": lambda text: f"~~~console\n$ kubectl -n shop describe po web-7d9\n{text}~~~\n",
    "quoted": lambda text: lines(text, "> {}".format),
    "quoted twice": lambda text: "On Monday she wrote:\n" + lines(text, ">> {}".format),
    "quoted and fenced": lambda text: lines(f"```\n{text}```", "> {}".format),
    "indented": lambda text: "Look:\n\n" + lines(text, "    {}".format),
    "coloured": lambda text: lines(text, coloured),
    "with no-break spaces": lambda text: text.replace("  ", "\u00a0 "),
    "from Windows": lambda text: text.replace("\n", "\r\n"),
    "with one space": lambda text: lines(text, lambda line: re.sub(r"(?<=\S)\s+", " ", line)),
    "without indentation": lambda text: lines(text, str.strip),
    "in a box": lambda text: lines(text, "│ {}".format),
    "with trailing spaces": lambda text: lines(text, "{}   ".format),
}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_description_is_the_same_pod_however_it_is_pasted(autopsy, carrier):
    found = autopsy(CARRIERS[carrier](POD))
    assert (found["terminations"], found["kills"], found["evictions"]) == ([KILLED], [], [])


def test_a_container_is_named_where_its_first_lines_were_left_out(autopsy):
    left_out = re.compile(r"^ +(?:Container ID|Image|Image ID|Port|Host Port):.*\n", re.MULTILINE)
    (ended,) = autopsy(left_out.sub("", POD))["terminations"]
    assert (ended["pod"], ended["container"], ended["reason"]) == ("shop/web-7d9", "app", "OOMKilled")


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_described_eviction_has_its_figures_however_it_is_pasted(autopsy, carrier):
    (eviction,) = autopsy(CARRIERS[carrier](EVICTED))["evictions"]
    facts = {key: eviction[key] for key in ("pod", "node", "cause", "available", "qosClass", "priority", "foundIn")}
    assert facts == {
        "pod": "shop/db-0", "node": "worker-1", "cause": "NodePressure", "available": 52 << 20,
        "qosClass": "Burstable", "priority": 7, "foundIn": ["event", "status"],
    }  # fmt: skip


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_described_node_tells_what_it_went_through(autopsy, carrier):
    signs = autopsy(CARRIERS[carrier](NODE))["nodeEvents"]
    assert [(sign["kind"], sign["node"], sign.get("pid"), sign.get("times", 1)) for sign in signs] == [
        ("SystemOOM", "worker-3", 4711, 1),
        ("EvictionThresholdMet", "worker-3", None, 3),
        ("NotReady", "worker-3", None, 1),
        ("PressureBegan", "worker-3", None, 1),
    ]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_table_of_pods_tells_who_was_killed_and_who_was_evicted(autopsy, carrier):
    found = autopsy(CARRIERS[carrier](PODS))
    (killed,), (evicted,) = found["terminations"], found["evictions"]
    assert killed == {
        "pod": "shop/web-7d9", "container": "", "cause": "KernelUnreported", "node": "worker-3", "reason": "OOMKilled",
        "restarts": 5, "isLimitUnknown": True,
    }  # fmt: skip
    assert (evicted["pod"], evicted["node"], evicted["cause"], evicted["reason"]) == (
        "shop/db-0", "worker-1", "Unknown", "NoMessage",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("row", "pod"),
    [
        ("web-0   0/1     OOMKilled   3 (5m ago)   10m", "web-0"),
        ("web-0   0/1     OOMKilled   3   10m   app=web,tier=front", "web-0"),
        ("pod/web-0   0/1     OOMKilled   3   10m", "web-0"),
        ("shop   web-0   0/1   OOMKilled   3 (5m ago)   10m   10.0.0.1   worker-1   <none>   <none>", "shop/web-0"),
        ("web-0   0/2     Init:OOMKilled   3 (5m ago)   10m", "web-0"),
        ("$ kubectl get pods -n shop\nNAME READY STATUS RESTARTS AGE\nweb-0   0/1   OOMKilled   3   10m", "shop/web-0"),
        ("~ ❯ kubectl get po --namespace=shop\nweb-0   0/1   OOMKilled   3   10m", "shop/web-0"),
    ],
)
def test_rows_of_pods_are_read_without_headings_and_have_the_namespace_that_the_text_has(autopsy, row, pod):
    assert [each["pod"] for each in autopsy(row)["terminations"]] == [pod]


@pytest.mark.parametrize(
    "text",
    [
        f"LAST SEEN   TYPE      REASON    OBJECT     MESSAGE\n5m19s       Warning   Evicted   pod/db-0   {LOW}",
        f"5m   Warning   Evicted   pod/db-0   {LOW}",
        f"LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n5m (x3 over 9m)   Warning   Evicted   Pod/db-0   {LOW}",
        (f"LAST SEEN  TYPE  REASON  OBJECT  SUBOBJECT  SOURCE  MESSAGE  FIRST SEEN  COUNT  NAME\n"
        f"5m    Warning   Evicted   pod/db-0      kubelet, worker-1   {LOW}   5m   1   db-0.17f3ab12cd34ef56"),
        (f"LASTSEEN   FIRSTSEEN   COUNT   NAME   KIND   SUBOBJECT   TYPE   REASON   SOURCE   MESSAGE\n"
        f"5m   5m   1   db-0.17f3ab12cd34ef56   Pod      Warning   Evicted   kubelet, worker-1   {LOW}"),
        (f"Events:\n  FirstSeen  LastSeen  Count  From  SubobjectPath  Type  Reason  Message\n"
        f"  5m  5m  1  {{kubelet worker-1}}    Warning  Evicted  {LOW}\nName: db-0\nNamespace: x"),
    ],
)  # fmt: skip
def test_events_are_read_from_tables_of_every_version(autopsy, text):
    (eviction,) = autopsy(text)["evictions"]
    assert (eviction["pod"] in {"db-0", ""}, eviction["available"]) == (True, 52 << 20)
    assert eviction.get("node", "worker-1") == "worker-1"


def test_an_event_that_a_test_of_kubernetes_dumps_has_its_time(autopsy):
    text = f"  At 2026-11-18 08:00:00 +0000 UTC - event for db-0: {{kubelet w-1}} Evicted: {LOW}"
    (eviction,) = autopsy(text)["evictions"]
    assert (eviction["pod"], eviction["node"], eviction["at"]) == ("db-0", "w-1", "2026-11-18 08:00:00 +0000")


def test_events_of_a_node_without_its_description_name_it(autopsy):
    text = (
        "Events:\n  Type  Reason  Age  From  Message\n"
        "  Normal   NodeNotReady  25m (x3 over 46m)   kubelet   Node w-1 status is now: NodeNotReady\n"
        "  Warning  SystemOOM     12m (x4 over 25m)   kubelet, w-1   System OOM encountered\n"
    )
    signs = [(sign["kind"], sign["node"], sign["times"]) for sign in autopsy(text)["nodeEvents"]]
    assert signs == [("NotReady", "w-1", 3), ("SystemOOM", "w-1", 4)]


@pytest.mark.parametrize("row", ["w-2   NotReady   <none>   41d   v1.30.1", "w-2   NotReady   41d   v1.7.0-alpha"])
def test_a_table_of_nodes_tells_which_are_not_ready(autopsy, row):
    found = autopsy(
        f"# _output/bin/kubectl get nodes\nNAME   STATUS   AGE   VERSION\nw-1   Ready   41d   v1.7.0\n{row}\n"
    )
    assert [(sign["kind"], sign["node"]) for sign in found["nodeEvents"]] == [("NotReady", "w-2")]


@pytest.mark.parametrize("options", [["web-7d9"], ["-n", "shop"], ["-n", "shop", "web-7d9"]])
@pytest.mark.parametrize("text", [POD + EVICTED, PODS, PODS.replace("shop          ", "")])
def test_one_pod_of_a_text_can_be_asked_for(capsys, tmp_path, text, options):
    path = tmp_path / "paste.txt"
    path.write_text(text)
    assert main(["autopsy", str(path), *options, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["pod"].removeprefix("shop/") for each in found["terminations"]] == ["web-7d9"]
    assert len(found["evictions"]) == ("web-7d9" not in options)


def test_a_table_of_all_namespaces_names_the_pods_in_full(autopsy):
    text = f"NAMESPACE   LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\nshop   5m   Warning   Evicted   pod/db-0   {LOW}"
    assert [each["pod"] for each in autopsy(text)["evictions"]] == ["shop/db-0"]


def test_an_event_and_a_row_of_one_pod_are_one_eviction(autopsy):
    text = f"{PODS}\n\nLAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n5m   Warning   Evicted   pod/db-0   {LOW}\n"
    (eviction,) = autopsy(text)["evictions"]
    assert (eviction["pod"], eviction["cause"], eviction["foundIn"]) == (
        "shop/db-0", "NodePressure", ["event", "status"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", [LOW, f"Message: {LOW}", f'message: "{LOW}"', f"> {LOW}", f"It said:\n\n{LOW}\n\nWhy?"]
)
def test_the_message_alone_is_an_eviction_of_an_unnamed_pod(autopsy, text):
    (eviction,) = autopsy(text)["evictions"]
    assert (eviction["pod"], eviction["cause"], eviction["available"], eviction["foundIn"]) == (
        "", "NodePressure", 52 << 20, ["message"],
    )  # fmt: skip


def test_a_wrapped_message_is_read_whole(autopsy):
    (eviction,) = autopsy(LOW.replace("available: ", "available:\n").replace("request is ", "request\nis "))[
        "evictions"
    ]
    assert (eviction["available"], eviction["containers"]) == (
        52 << 20, [{"name": "app", "used": 3 << 30, "request": 1 << 30}],
    )  # fmt: skip


def ended(code: int, reason: str = "Error", events: str = "", status: str = "Running") -> str:
    text = POD.replace("Reason:       OOMKilled", f"Reason:       {reason}").replace("137", str(code))
    return text.replace("Status:           Running", f"Status:           {status}") + events


PROBE = "  Normal   Killing    3m (x5 over 1h)   kubelet   Container app failed liveness probe, will be restarted\n"
SIDE = "  Normal   Killing    3m (x5 over 1h)   kubelet   Container side failed liveness probe, will be restarted\n"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (ended(137), "Sigkill"),
        (ended(137, events=PROBE), "Probe"),
        (ended(137, events=SIDE), "Sigkill"),
        (ended(143, events=PROBE), "Probe"),
        (ended(0, "Completed", PROBE), "Probe"),
        (ended(143), "Sigterm"),
        (ended(137, "ContainerStatusUnknown"), "NodeLost"),
        (ended(1, "OOMKilled"), "KernelOfChild"),
    ],
)
def test_who_ended_a_container_is_told_apart(autopsy, text, cause):
    found = autopsy(text)
    assert ([each["cause"] for each in found["terminations"]], found["exits"]) == ([cause], [])


@pytest.mark.parametrize(("code", "cause"), [(1, "Exit"), (0, "Exit"), (139, "Crash"), (134, "Crash"), (255, "Exit")])
def test_a_container_that_nobody_killed_is_named_as_such(autopsy, code, cause):
    found = autopsy(ended(code))
    assert ([(each["cause"], each["exitCode"]) for each in found["exits"]], found["terminations"]) == (
        [(cause, code)], [],
    )  # fmt: skip


def test_exits_are_shown_where_nothing_was_killed(capsys, tmp_path):
    path = tmp_path / "describe.txt"
    path.write_text(ended(139))
    assert main(["autopsy", str(path)]) == 0
    assert "shop/web-7d9, container app: crashed with SIGSEGV; not an OOM kill (Error 139," in capsys.readouterr().out


def test_a_pod_that_is_being_deleted_and_did_not_stop_in_time(autopsy):
    text = ended(137).replace("Status:           Running", "Status:           Terminating (lasts 5m)")
    text = text.replace("State:          Waiting\n      Reason:       CrashLoopBackOff\n    Last State:", "State:     ")
    assert [each["cause"] for each in autopsy(text)["terminations"]] == ["GracePeriod"]


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        ("Normal  TaintManagerEviction  3m  taint-eviction-controller  Marking for deletion Pod shop/web-7d9", "Taint"),
        ("Normal  Preempted  3m  default-scheduler  Preempted by pod 1-2 on node worker-3", "PreemptedByScheduler"),
        (
            "Normal  NodeControllerEviction  3m  node-controller  Marking for deletion Pod web-7d9 from Node w",
            "NodeLost",
        ),
        ("Warning  Preempting  3m  kubelet  Preempted in order to admit critical pod", "CriticalPod"),
    ],
)
def test_evictions_that_no_shortage_explains_are_told_apart(autopsy, events, cause):
    text = f"{POD.replace('OOMKilled', 'Completed').replace('137', '0')}  {events}\n"
    assert [(each["pod"], each["cause"]) for each in autopsy(text)["evictions"]] == [("shop/web-7d9", cause)]


def test_a_condition_of_a_description_has_no_reason_and_none_is_invented(autopsy):
    text = POD.replace("  Ready                       False", "  DisruptionTarget            True")
    assert [(each["pod"], each["cause"]) for each in autopsy(text)["evictions"]] == [("shop/web-7d9", "Unknown")]


@pytest.mark.parametrize("first", ["    State:          Waiting", "    Last State:     Terminated", "Containers:"])
def test_a_description_without_its_beginning_tells_what_is_left(autopsy, first):
    (killed,) = autopsy(POD[POD.rindex(first) if "Last" in first else POD.index(first, POD.index("\nCont")) :])[
        "terminations"
    ]
    assert killed["pod"] == "shop/web-7d9"  # as its events name it
    assert (killed["reason"], killed["exitCode"]) == ("OOMKilled", 137)
    assert killed["container"] == ("app" if first == "Containers:" else "")


def test_a_description_whose_first_line_lost_its_indentation(autopsy):
    (killed,) = autopsy(POD[POD.index("State:          Waiting") :])["terminations"]
    assert (killed["reason"], killed["restarts"], killed["memoryLimitBytes"]) == ("OOMKilled", 5, 256 << 20)


@pytest.mark.parametrize("last", ["    Ready:          False", "QoS Class:", "Events:"])
def test_a_description_without_its_end_tells_what_is_left(autopsy, last):
    (killed,) = autopsy(POD[: POD.index(last, POD.index("OOMKilled"))])["terminations"]
    assert (killed["pod"], killed["container"], killed["reason"]) == ("shop/web-7d9", "app", "OOMKilled")


def test_several_pods_in_one_paste_are_several_pods(autopsy):
    other = POD.replace("web-7d9", "web-2").replace(ID, ID[:-4] + "0000")
    text = f"$ kubectl describe pods -n shop\n{POD}\n\n{other}\n\n{EVICTED}"
    found = autopsy(text)
    assert [each["pod"] for each in found["terminations"]] == ["shop/web-7d9", "shop/web-2"]
    assert [each["pod"] for each in found["evictions"]] == ["shop/db-0"]


def test_what_a_program_wrote_is_never_a_field(autopsy):
    written = "    Args:\n      Last State:     Terminated\n      Reason:       Evicted\n      x:\n      Image: y\n"
    message = "      Message:      panic\nStatus: Failed\nReason: Evicted\nEvents:\n  Last State: Terminated\n"
    text = ended(1).replace("    State:          Waiting", f"{written}    State:          Waiting")
    text = text.replace("      Exit Code:    1\n", f"{message}      Exit Code:    1\n")
    text = text.replace(
        "    Environment:  <none>\n", "    Environment:\n      Last State:  Terminated\n      Reason:  OOMKilled\n", 1
    )
    found = autopsy(text)
    assert (found["terminations"], found["evictions"]) == ([], [])


def test_other_objects_are_no_pods(autopsy):
    text = "Name:  web\nNamespace:  shop\nCreationTimestamp:  Mon, 02 Nov 2026 10:00:00 +0000\nSelector:  app=web\n"
    text += "Pod Template:\n  Containers:\n   app:\n    Image:  x\n    Limits:\n      memory:  1Gi\n"
    text += f"Events:\n  Type  Reason  Age  From  Message\n  Warning  Evicted  5m  kubelet  {LOW}\n"
    found = autopsy(text)
    assert (found["terminations"], found["evictions"]) == ([], [])


def test_a_described_container_is_found_in_the_kernels_log(autopsy):
    log = "\n".join(cgroup(ROWS, 7, "python3"))
    found = autopsy(f"{POD}\n$ dmesg\n{log}\n")
    assert [(each["pod"], each["container"], each["qosClass"]) for each in found["kills"]] == [
        ("shop/web-7d9", "app", "Burstable")
    ]
    assert found["terminations"] == [{**KILLED, "cause": "Kernel", "kill": 0}]


def restarted(text: str) -> str:
    """Return a description of the pod after its container was started again, with an id that no report has."""
    running = "State:          Running\n      Started:      Wed, 18 Nov 2026 08:05:02 +0100\n"
    waiting = "State:          Waiting\n      Reason:       CrashLoopBackOff\n"
    return text.replace(waiting, running).replace(ID, "c" * 64)


def test_the_uid_in_an_event_finds_the_kernels_report(autopsy):
    quoted = f"Back-off restarting failed container app in pod web-7d9_shop({UID})"
    text = restarted(POD).replace("Back-off restarting failed container app", quoted)
    found = autopsy(text + "\n".join(cgroup(ROWS, 7, "python3")))
    assert [each["pod"] for each in found["kills"]] == ["shop/web-7d9"]


@pytest.mark.parametrize(
    ("at", "host", "kill"),
    [
        ("2026-11-18T07:05:01+00:00", "worker-3", 0),
        ("2026-11-18T07:05:01+00:00", "worker-9", None),
        ("2026-11-18T07:09:00+00:00", "worker-3", None),
    ],
)
def test_the_one_kill_at_that_moment_on_that_node_is_the_containers(autopsy, at, host, kill):
    log = "\n".join(f"{at} {host} kernel: {line}" for line in cgroup(ROWS, 7, "python3"))
    (killed,) = autopsy(f"{restarted(POD)}\n```\n{log}\n```\n")["terminations"]
    assert (killed.get("kill"), killed["cause"]) == (kill, "KernelUnreported" if kill is None else "Kernel")


@pytest.mark.parametrize(
    "text",
    [
        (
            "    lastState:\n      terminated:\n        containerID: containerd://x\n        exitCode: 137\n"
            '        finishedAt: "2026-11-18T08:00:00Z"\n        reason: OOMKilled\n    name: app\n    restartCount: 3'
        ),
        '"lastState": {\n  "terminated": {\n    "exitCode": 137,\n    "reason": "OOMKilled"\n  }\n},\n"name": "app"\n',
    ],
)
def test_a_part_of_a_status_is_the_end_of_an_unnamed_pods_container(autopsy, text):
    (killed,) = autopsy(f"The status says:\n\n{text}\nwhat now?")["terminations"]
    assert (killed["pod"], killed["container"], killed["reason"], killed["exitCode"]) == ("", "app", "OOMKilled", 137)


def test_a_watched_table_keeps_what_it_showed_before(autopsy):
    rows = [
        "1/1 Running 0 5s",
        "0/1 OOMKilled 0 9s",
        "0/1 CrashLoopBackOff 1 (2s ago) 11s",
        "1/1 Running 2 (3s ago) 28s",
    ]
    (killed,) = autopsy("".join(f"web-0   {row}\n" for row in rows))["terminations"]
    assert (killed["pod"], killed["reason"], killed["restarts"], killed["isPrevious"]) == (
        "web-0",
        "OOMKilled",
        2,
        True,
    )


@pytest.mark.parametrize("text", [f"Message:  {LOW}", LOW, f"Reason:  Evicted\nMessage:  {LOW}"])
def test_the_command_names_the_pod_that_the_rest_leaves_out(autopsy, text):
    (eviction,) = autopsy(f"**#kubectl  -nshop describe pods db-0\n{text}\n")["evictions"]
    assert (eviction["pod"], eviction["available"]) == ("shop/db-0", 52 << 20)


def test_a_text_may_be_given_as_a_file_with_pods(capsys, tmp_path):
    (tmp_path / "describe.txt").write_text(POD)
    (tmp_path / "kern.log").write_text("\n".join(cgroup(ROWS, 7, "python3")))
    assert main(["autopsy", str(tmp_path / "kern.log"), "-f", str(tmp_path / "describe.txt"), "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert ([each["pod"] for each in found["kills"]], found["terminations"][0]["kill"]) == (["shop/web-7d9"], 0)


def test_a_failed_probe_is_told_from_events_alone(autopsy):
    text = "2m   Normal   Killing   pod/web-0   Container app failed liveness probe, will be restarted\n"
    (stopped,) = autopsy(text)["terminations"]
    assert (stopped["pod"], stopped["container"], stopped["cause"]) == ("web-0", "app", "Probe")


def test_a_limit_that_is_not_in_the_text_is_unknown(autopsy):
    cut = POD[: POD.index("    Limits:")]
    assert [each["isLimitUnknown"] for each in autopsy(cut)["terminations"]] == [True]


def test_a_message_that_is_broken_inside_of_a_word_is_read_whole(autopsy):
    text = EVICTED.replace("which", "").replace("request is 1Gi, has", "req\nuest is 1Gi, has", 1)
    (eviction,) = autopsy(text[: text.index("Events:")])["evictions"]
    assert eviction["containers"] == [{"name": "app", "used": 3 << 30, "request": 1 << 30}]


ENDED = {"containerID": "x", "exitCode": 137, "finishedAt": "2026-11-18T08:00:00Z", "reason": "OOMKilled"}
STATUS = {"name": "app", "restartCount": 3, "lastState": {"terminated": ENDED}, "state": {"running": {}}}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "value", [ENDED, STATUS, [STATUS], {"containerStatuses": [STATUS]}, {"items": [{"s": STATUS}]}]
)
def test_what_jq_cuts_out_of_a_status_is_the_end_of_a_container(autopsy, value, indent):
    (killed,) = autopsy(f"$ kubectl get pod x -o json | jq .x\n{json.dumps(value, indent=indent)}\n")["terminations"]
    assert (killed["pod"], killed["reason"], killed["exitCode"], killed["at"]) == (
        "x", "OOMKilled", 137, "2026-11-18T08:00:00Z",
    )  # fmt: skip


KILLING = "Memory cgroup out of memory: Killed process 4711 (java) total-vm:9kB, anon-rss:5kB, file-rss:0kB"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "value",
    [
        {
            "source": "kernel-monitor",
            "events": [
                {"severity": "warn", "timestamp": "2026-11-18T08:00:00Z", "reason": "OOMKilling", "message": KILLING}
            ],
            "conditions": [{"type": "KernelDeadlock", "status": "False", "reason": "KernelHasNoDeadlock"}],
        },
        {
            "verb": "ADDED",
            "event": {
                "metadata": {"name": "worker-3.1", "namespace": "default"},
                "involvedObject": {"kind": "Node", "name": "worker-3"},
                "reason": "OOMKilling",
                "message": KILLING,
                "source": {"component": "kernel-monitor", "host": "worker-3"},
                "firstTimestamp": "2026-11-18T08:00:00Z",
            },
        },
    ],
)
def test_what_a_node_problem_detector_writes_is_a_node_event(autopsy, value, indent):
    found = autopsy(json.dumps(value, indent=indent) + "\n")
    signs = [(sign["kind"], sign["pid"], sign["process"], sign["at"]) for sign in found["nodeEvents"]]
    assert signs == [("OOMKilling", 4711, "java", "2026-11-18T08:00:00Z")]


@pytest.mark.parametrize("name", ["web-<id>", "***", "web-XXXXX", "<pod-name>"])
def test_names_that_were_made_unreadable_are_names(autopsy, name):
    text = f"{name}   0/1   OOMKilled   3 (5m ago)   10m\n5m   Warning   Evicted   pod/{name}   {LOW}\n"
    found = autopsy(text)
    assert ([each["pod"] for each in found["terminations"]], [each["pod"] for each in found["evictions"]]) == (
        [name], [name],
    )  # fmt: skip


OBJECT = """\
apiVersion: v1
kind: Pod
metadata:
  name: web-7d9
  namespace: shop
  uid: 11111111-2222-3333-4444-555555555555
spec:
  nodeName: worker-3
  containers:
  - name: app
    image: shop/web:1
    resources:
      limits:
        memory: 256Mi
status:
  containerStatuses:
  - name: app
    restartCount: 5
    state:
      waiting:
        reason: CrashLoopBackOff
    lastState:
      terminated:
        containerID: containerd://0
        exitCode: 137
        reason: OOMKilled
        finishedAt: "2026-11-18T08:05:00+01:00"
"""


@pytest.mark.parametrize(
    "carrier", [each for each in CARRIERS if each not in {"with one space", "without indentation"}]
)
@pytest.mark.parametrize("notation", ["yaml", "json", "json line"])
def test_an_object_is_the_same_pod_however_it_is_pasted(autopsy, carrier, notation):
    import yaml

    text = OBJECT
    if notation != "yaml":
        text = json.dumps(yaml.safe_load(OBJECT), indent=4 if notation == "json" else None) + "\n"
    found = autopsy(CARRIERS[carrier](text))
    wanted = {key: value for key, value in KILLED.items() if key != "containerId"}
    assert (found["terminations"], found["evictions"]) == ([wanted], [])


@pytest.mark.parametrize("text", [
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web-7d9\n" + OBJECT[OBJECT.index("status:") :],
    OBJECT.replace("  uid: 11111111-2222-3333-4444-555555555555\n", "").replace("    image: shop/web:1\n", ""),
])  # fmt: skip
@pytest.mark.parametrize("before", ["", "My pod:\n\n"])
def test_a_pod_of_which_someone_left_out_a_part_is_no_invalid_manifest(autopsy, text, before):
    (killed,) = autopsy(before + text)["terminations"]
    assert (killed["pod"].removeprefix("shop/"), killed["container"], killed["reason"]) == (
        "web-7d9",
        "app",
        "OOMKilled",
    )


def test_an_object_and_a_log_may_be_one_text(autopsy):
    found = autopsy(f"{OBJECT}\n[ 12.0] Out of memory: Killed process 77 (java) total-vm:10kB, anon-rss:5kB\n")
    assert ([each["pod"] for each in found["terminations"]], len(found["kills"])) == (["shop/web-7d9"], 1)


def test_a_text_with_objects_and_a_log_is_counted_once(autopsy):
    text = f"My pod:\n{OBJECT}\n[ 12.0] Out of memory: Killed process 77 (java) total-vm:10kB, anon-rss:5kB\n"
    assert autopsy(text)["read"]["lines"] == text.count("\n")


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        (
            POD,
            "shop/web-7d9 (app) was OOM-killed (5 restarts), at its memory limit of 256Mi or because the node was full",
        ),
        (
            POD[POD.index("    State:          Waiting") : POD.index("    Limits:")],
            "A container was OOM-killed (5 restarts):",
        ),
        (PODS.replace("Evicted", "Running"), "shop/web-7d9 was OOM-killed (5 restarts):"),
        (LOW, "The node was low on memory: a pod was evicted; the text does not say which."),
        (ended(1), "No OOM kills and no evictions: 1 container ended without being killed."),
        (ended(137, events=PROBE), "shop/web-7d9, container app: failed its probe and was stopped by the kubelet"),
    ],
)
def test_the_first_line_says_no_more_than_the_text(capsys, tmp_path, text, headline):
    path = tmp_path / "paste.txt"
    path.write_text(text)
    assert main(["autopsy", str(path)]) == 0
    assert capsys.readouterr().out.startswith(headline)


def test_an_object_that_is_cut_is_read_as_far_as_it_goes(autopsy):
    text = OBJECT.replace("spec:\n", "spec:\n  [...]\n").replace("    image: shop/web:1\n", "")
    assert [each["reason"] for each in autopsy(f"My pod:\n{text}")["terminations"]] == ["OOMKilled"]


def test_a_description_and_an_object_of_one_pod_are_one_pod(autopsy):
    assert len(autopsy(f"My pod:\n\n{OBJECT}\n```\n{POD}```\n")["terminations"]) == 1


@pytest.mark.parametrize("seed", range(40))
def test_lines_that_are_cut_lost_or_mixed_up_invent_nothing(seed):
    draw = random.Random(seed)  # noqa: S311 - the same mixtures in every run
    whole = [*POD.split("\n"), *EVICTED.split("\n"), *NODE.split("\n"), *PODS.split("\n"), *OBJECT.split("\n")]
    some = [line[: draw.choice((len(line), draw.randrange(1 + len(line))))] for line in whole if draw.random() < 0.8]
    for _ in range(draw.randrange(30)):
        place, other = draw.randrange(len(some)), draw.randrange(len(some))
        some[place], some[other] = some[other], some[place]
    paste = read_text("\n".join(some))
    words = set(re.findall(r"[\w.-]+", "\n".join(some)))
    for pod in paste.pods:
        statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
        told = [pod.metadata.name, pod.metadata.namespace, pod.spec.node_name, pod.status.reason]
        told += [name for status in statuses for name in (status.name, status.container_id.rpartition("/")[2])]
        assert {each for each in told if each} <= words
    assert {node.name for node in paste.nodes if node.name} | {event.reason for event in paste.events} <= words


@pytest.mark.parametrize(
    "text",
    [
        "Normal   " * 20_000,
        "Name:" + " " * 60_000 + "\n" + "Last State:" * 9000,
        "Last State:     Terminated\n" * 20_000,
        "shop web-0 0/1 " + "A" * 60_000,
        "5m Warning Evicted pod/a " + "x  " * 9000,
        ("Name:  a\nNamespace:  b\nNode:  c\nContainers:\n" + "  a:\n    Image:  x\n" * 50) * 100,
        "\x1b[" * 30_000 + "Last State:",
        "> " * 30_000 + "Last State:",
        "{\n" * 9000 + "Last State:",
        EVICTED[: EVICTED.index("IP:")] + "x\n" * 9000,
        "apiVersion: v1\nkind: Pod\n" * 900 + "{" * 900 + " RESTARTS ",
        "prose\n" + "{\n" * 3000 + '"kind": "Pod" ' * 300,
    ],
)
def test_hostile_texts_end_soon(autopsy, text):
    assert autopsy(f"x\n{text}")["kills"] == []


@pytest.mark.parametrize(
    "text",
    [
        "ALERT       SEVERITY   LAST\nOOMKilled   critical   5m\n",
        "NAME         COMMAND   STATUS\noom-killer   run       OOMKilled\n",
        "NAME     LAST\nweb-0    Success\nweb-1    5m\n",
    ],
)
def test_tables_of_other_things_have_no_ends_of_containers(autopsy, text):
    assert not autopsy(text)["terminations"]


@pytest.mark.parametrize(
    ("message", "container"),
    [
        ("Container failed liveness probe, will be restarted", ""),
        ("Container app failed startup probe, will be restarted", "app"),
        (
            'Killing container with id docker://app:pod "web-0" is unhealthy, it will be killed and re-created.',
            "",
        ),
    ],
)
def test_a_probe_that_kills_is_told_with_and_without_the_containers_name(autopsy, message, container):
    row = f"2m          Normal    Killing     pod/web-0    {message}\n"
    (ended,) = autopsy(row)["terminations"]
    assert (ended["cause"], ended["pod"], ended["container"]) == ("Probe", "web-0", container)


NO_ROOM = "Node didn't have enough resource: memory, requested: 1073741824, used: 15032385536, capacity: 16106127360"


@pytest.mark.parametrize(
    ("text", "pod"),
    [
        ("NAME    READY   STATUS        RESTARTS   AGE\nweb-0   0/1     OutOfmemory   0          5m\n", "web-0"),
        (f"5m          Warning   OutOfmemory   pod/web-0    {NO_ROOM}\n", "web-0"),
        (f"Status:         Failed\nReason:         OutOfmemory\nMessage:        Pod was rejected: {NO_ROOM}\n", ""),
    ],
)
def test_a_pod_that_did_not_fit_was_not_admitted(autopsy, text, pod):
    (eviction,) = autopsy(text)["evictions"]
    assert (eviction["cause"], eviction["pod"]) == ("NoRoom", pod)


@pytest.mark.parametrize("bar", ["|", "\u2502"])
def test_a_table_with_bars_is_read_like_one_without(autopsy, bar):
    rows = [
        ("NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"),
        ("---", ":-:", "---", "---", "---", "---"),
        ("shop", "`web-0`", "0/1", "**OOMKilled**", "3 (2m ago)", "5m"),
        ("shop", "db-0", "1/1", "Running", "0", "2d"),
    ]
    found = autopsy("".join(f"{bar} " + f" {bar} ".join(row) + f" {bar}\n" for row in rows))
    assert [(ended["pod"], ended["restarts"]) for ended in found["terminations"]] == [("shop/web-0", 3)]


def test_a_log_that_a_config_map_holds_is_read(autopsy):
    log = "".join(f"    {line}\n" for line in machine())
    found = autopsy(f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kern\ndata:\n  kern.log: |\n{log}")
    assert [kill["scope"] for kill in found["kills"]] == ["machine"]
