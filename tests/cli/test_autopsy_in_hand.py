"""The table "What you have, what you get" of the documentation: every row is tried."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from cli.test_autopsy_kubelet import DB, LOW, NODE, WEB, event, pod
from cli.test_autopsy_next import ERROR_137, UNFINISHED, objects, syslog
from kernel.oom_logs import cgroup, killed
from podqos.cli.main import main

PAGE = Path(__file__).parents[2] / "docs/reference/commands/autopsy.md"
ROWS = [(7, 1000, 200_000, 100, 0, 100, "python3"), (8, 1000, 100_000, 100, 0, 100, "sh")]
KLOG = "I0105 15:19:27.708440    1234 eviction_manager.go:369]"
DESCRIBE_POD = """\
Name:             db-0
Namespace:        shop
Priority:         0
Node:             worker-3/10.0.0.3
Start Time:       Mon, 16 Nov 2026 10:00:00 +0000
Status:           Running
Containers:
  app:
    Container ID:   containerd://abababababababababababababababababababababababababababababababab
    Image:          shop/db:1
    State:          Running
      Started:      Mon, 16 Nov 2026 10:29:05 +0000
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Mon, 16 Nov 2026 10:00:01 +0000
      Finished:     Mon, 16 Nov 2026 10:29:00 +0000
    Ready:          True
    Restart Count:  3
    Limits:
      memory:  512Mi
    Requests:
      memory:     256Mi
QoS Class:                   Burstable
Events:                      <none>
"""
THAT_DAY = re.sub(r"\S+, \d+ \S+ 2026 10:29:00", "Mon, 05 Jan 2026 15:19:27", DESCRIBE_POD)
"""It runs again: the container that was killed had another id."""
THAT_DAY = THAT_DAY.replace("abab", "cdcd").replace("worker-3", "node-1")
DESCRIBE_NODE = """\
Name:               worker-3
Roles:              <none>
Labels:             kubernetes.io/hostname=worker-3
Taints:             <none>
Unschedulable:      false
Conditions:
  Type             Status  LastHeartbeatTime                 LastTransitionTime                Reason        Message
  ----             ------  -----------------                 ------------------                ------        -------
  MemoryPressure   True    Mon, 16 Nov 2026 10:30:00 +0000   Mon, 16 Nov 2026 10:28:00 +0000   KubeletHas    low
Capacity:
  memory:             16Gi
System Info:
  Kubelet Version:            v1.31.2
Events:
  Type     Reason     Age   From     Message
  ----     ------     ----  ----     -------
  Warning  SystemOOM  3m    kubelet  System OOM encountered, victim process: python3, pid: 7
"""
PODS = """\
NAME    READY   STATUS      RESTARTS      AGE
db-0    0/1     OOMKilled   3 (40s ago)   29m
web-0   1/1     Running     0             2d
"""
EVENT_TABLE = f"""\
LAST SEEN   TYPE      REASON    OBJECT      MESSAGE
5m          Warning   Evicted   pod/web-0   {LOW}
"""
KUBELET = f"""\
{KLOG} "Eviction manager: attempting to reclaim" resourceName="memory"
{KLOG} "Eviction manager: pods ranked for eviction" pods=["shop/web-0","shop/db-0"]
{KLOG} "Eviction manager: pod is evicted successfully" pod="shop/web-0"
"""
PROBED = event(
    "Killing",
    "Container side failed liveness probe, will be restarted",
    {"kind": "Pod", "namespace": "shop", "name": "db-0", "uid": "u", "fieldPath": "spec.containers{side}"},
    firstTimestamp="2026-11-16T10:28:30Z",
    lastTimestamp="2026-11-16T10:28:30Z",
)
DESCRIBE_DEPLOYMENT = """\
Name:                   web
Namespace:              shop
CreationTimestamp:      Mon, 16 Nov 2026 10:00:00 +0000
Labels:                 app=web
Annotations:            <none>
Selector:               app=web,tier=front
Replicas:               3 desired | 3 updated | 3 total | 2 available | 1 unavailable
StrategyType:           RollingUpdate
Events:                 <none>
"""
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "x"}]},
        },
    },
}
DOCKER = {
    "Id": "ab" * 32,
    "Name": "/web",
    "State": {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "FinishedAt": "2026-11-16T10:29:00.1Z"},
    "HostConfig": {"Memory": 512 << 20},
    "RestartCount": 0,
}
DOCKER_PS = """\
CONTAINER ID   IMAGE   COMMAND   CREATED       STATUS                       PORTS   NAMES
abababababab   web:1   "serve"   2 hours ago   Exited (137) 5 minutes ago           web
"""
OOMD = (
    "Nov 16 10:29:00 node-1 systemd-oomd[512]: Killed /system.slice/build.service due to memory pressure for "
    "/system.slice being 71.22% > 60.00% for > 20s with reclaim activity\n"
)
OTHER = pod("api-0", "u-api", {"phase": "Running"}, request="2Gi", limit="2Gi", priority=1000)
CGROUP = syslog(cgroup(ROWS, 7, "python3"))

IN_HAND: dict[str, tuple[list[str | bytes], str, list[str]]] = {
    # the inputs, what the text says, and what the commands to run next begin with
    "the kernel's log of the OOM kill": (
        [CGROUP],
        "verdict   the kernel killed the process its rule names",
        ["kubectl get pods,nodes -A"],
    ),
    "the kernel's log and the pods": ([CGROUP, objects(NODE, DB)], "python3 (pid 7) of shop/db-0 was killed", []),
    "a kernel log without OOM kills": (
        ["[    1.000000] all is well\n"],
        "No OOM kills and no evictions found.",
        ["kubectl get pods,nodes,events -A", "journalctl -k -b -1 "],
    ),
    "only the line `Killed process`": (
        [syslog([killed(7, "python3", why="Memory cgroup out of memory")])],
        "python3 (pid 7) was killed",
        ["journalctl -k --since", "kubectl debug node/node-1 "],
    ),
    "a report whose end is missing": (
        [syslog(UNFINISHED)],
        "the kill itself is not in the log",
        ["kubectl debug node/node-1 ", "kubectl get pods,nodes -A"],
    ),
    "`kubectl get pod -o yaml` of an OOMKilled pod": (
        [yaml.safe_dump(DB)],
        "shop/db-0 (side) was OOM-killed (2 restarts)",
        ["podqos autopsy -n shop db-0", "kubectl debug node/node-1 "],
    ),
    "`kubectl describe pod` of an OOMKilled pod": (
        [DESCRIBE_POD],
        "shop/db-0 (app) was OOM-killed (3 restarts), at its memory limit of 512Mi",
        ["podqos autopsy -n shop db-0", "kubectl debug node/worker-3 "],
    ),
    "`kubectl describe pod` and `dmesg` in one paste": (
        [f"$ kubectl describe pod db-0\n{THAT_DAY}\n$ dmesg | tail -n 40\n{CGROUP}"],
        "A container reached its limit: python3 (pid 7) of shop/db-0 was killed.\n",
        [],
    ),
    "a table of `kubectl get pods`": (
        [PODS],
        "db-0 was OOM-killed (3 restarts)",
        ["podqos autopsy db-0", "kubectl get pod db-0 -o yaml"],
    ),
    "a table with `CrashLoopBackOff`": (
        ["NAME    READY   STATUS             RESTARTS      AGE\nweb-0   0/1     CrashLoopBackOff   12 (2m ago)   1h\n"],
        "but 1 container keeps restarting",
        ["kubectl get pod web-0 -o yaml"],
    ),
    "exit code 137 without `OOMKilled`": (
        [objects(pod("db-0", "u", {"containerStatuses": [ERROR_137]}))],
        "killed with SIGKILL, sender unknown",
        [
            "podqos autopsy -n shop db-0",
            "kubectl logs -n shop db-0 -c side --previous",
            "kubectl debug node/node-1 ",
        ],
    ),
    "exit code 137 and the pod's Events": (
        [objects(pod("db-0", "u", {"containerStatuses": [ERROR_137]}), PROBED)],
        "probe",
        [],
    ),
    "`kubectl get pod -o yaml` of an evicted pod": (
        [yaml.safe_dump(WEB)],
        "The node was low on memory: shop/web-0 was evicted.",
        ["kubectl get pods -A --field-selector spec.nodeName=node-1", "kubectl debug node/node-1 "],
    ),
    "an evicted pod, the other pods and the nodes": (
        [objects(NODE, WEB, OTHER)],
        "verdict   the kubelet evicted the pod its rule names: it ranks first",
        [],
    ),
    "a table of `kubectl get events`": (
        [EVENT_TABLE],
        "The node was low on memory: web-0 was evicted.",
        ["kubectl get pods,nodes,events -A"],
    ),
    "only the message of an eviction": (
        [LOW + "\n"],
        "memory.available 90Mi, threshold 100Mi",
        ["kubectl get pods,nodes,events -A"],
    ),
    "`kubectl describe node`": (
        [DESCRIBE_NODE],
        "worker-3: the machine ran out of memory: python3 (pid 7)",
        ["kubectl debug node/worker-3 ", "kubectl get pods,nodes,events -A"],
    ),
    "the kubelet's log": ([KUBELET], "it ranks first in the node's own log", []),
    "`docker inspect` or `crictl inspect`": (
        [json.dumps([DOCKER])],
        "Container web was OOM-killed, at its memory limit of 512Mi",
        ["journalctl -k --since '2026-11-16 10:24:00 UTC'"],
    ),
    "a line of systemd, containerd or the kubelet about an OOM kill": (
        ["Nov 16 10:29:00 box systemd[1]: db.service: A process of this unit has been killed by the OOM killer.\n"],
        "The kernel OOM-killed a process of db.service on box.",
        ["journalctl -k -o short-iso"],
    ),
    "lines of systemd-oomd, earlyoom or Talos about a kill": ([OOMD], "Not the kernel: systemd-oomd killed", []),
    "a heap that the JVM, Node.js, Go or Python logs to be full": (
        ['Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n'],
        "Not the kernel: the JVM, because its heap is full.",
        [],
    ),
    "pods and nodes on which nothing died": (
        [objects(NODE | {"status": {}}, OTHER, pod("api-1", "u-api-1", {"phase": "Running"}))],
        "No OOM kills and no evictions found.",
        ["kubectl get pods,nodes,events -A", "kubectl debug node/node-1 "],
    ),
    "a Deployment or another manifest": (
        [json.dumps(DEPLOYMENT)],
        "1 workload",
        ["kubectl get pods,nodes,events -A", "sudo dmesg"],
    ),
    "`kubectl describe deployment` (or of a StatefulSet, DaemonSet, Job)": (
        [DESCRIBE_DEPLOYMENT],
        "No OOM kills and no evictions found.",
        ["kubectl get pods -n shop -l app=web,tier=front -o json | podqos autopsy -"],
    ),
    "an empty input": ([""], "the input is empty", ["kubectl get pods,nodes,events -A", "sudo dmesg"]),
    "a text that says OOMKilled, SIGKILL or 137, but not of what": (
        ["on call:\nthe cart pods were OOMKilled again\n"],
        "Line 2 says OOMKilled, but not of what: the cart pods were OOMKilled again",
        ["kubectl get pods,nodes,events -A", "sudo dmesg"],
    ),
    "a text that is not a log": (
        ["# Shopping list\n\n- eggs\n"],
        "does not look like a kernel or kubelet log",
        ["kubectl get pods,nodes,events -A", "sudo dmesg"],
    ),
    "a picture, a PDF, an archive or a core dump": ([b"\x89PNG\r\n\x1a\n\0\0"], "a PNG picture", []),
}


def documented() -> list[str]:
    section = PAGE.read_text().partition("## What you have, what you get")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| .+? \| .+? \|$", section, re.MULTILINE)
    return rows[1:]


def test_every_row_of_the_documentation_is_tried():
    assert documented() == list(IN_HAND)


@pytest.mark.parametrize("row", IN_HAND)
def test_what_is_in_hand_gives_what_the_documentation_says(capsys, tmp_path, monkeypatch, row):
    monkeypatch.chdir(tmp_path)
    inputs, said, commands = IN_HAND[row]
    for number, given in enumerate(inputs):
        Path(f"given-{number}").write_bytes(given if isinstance(given, bytes) else given.encode())
    names = [f"given-{number}" for number in range(len(inputs))]
    code = main(["autopsy", *names])
    out, err = capsys.readouterr()
    assert said in out + err
    if isinstance(inputs[0], bytes):
        assert code == 2
        return
    assert (code, err) == (0, "")
    main(["autopsy", *names, "-o", "json"])
    steps = json.loads(capsys.readouterr()[0])["nextSteps"]
    assert [step["command"][: len(start)] for step, start in zip(steps, commands, strict=True)] == commands
