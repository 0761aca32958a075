"""``podqos autopsy`` on the kubelet's side: objects, events, logs, journals, a cluster, one pod."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading

import pytest
import yaml

from deaths import parsed
from kernel.oom_logs import CONTAINER, cgroup
from podqos.cli.main import main
from podqos.manifest.anonymous import Anonymizer
from podqos.manifest.pruning import pruned_list
from podqos.objects.cluster_snapshot import End, Header

UID, SECRET = "11111111-2222-3333-4444-555555555555", "correct-horse-battery-staple"
ID = CONTAINER.rpartition("-")[2].removesuffix(".scope")
LOW = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
    "Container app was using 3Gi, request is 1Gi, has larger consumption of memory. "
)
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "status": {
        "capacity": {"memory": "8Gi", "cpu": "4", "pods": "110"},
        "conditions": [{"type": "MemoryPressure", "status": "True", "lastTransitionTime": "2026-11-16T10:00:00Z"}],
    },
}


def pod(name: str, uid: str, status: dict, *, request: str = "1Gi", limit: str = "", priority: int = 0) -> dict:
    resources = {"requests": {"memory": request}, "limits": {"memory": limit} if limit else {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": uid},
        "spec": {
            "nodeName": "node-1",
            "priority": priority,
            "containers": [{"name": "app", "image": "x", "resources": resources}, {"name": "side", "image": "x"}],
        },
        "status": {"startTime": "2026-11-16T09:00:00Z", **status},
    }


WEB = pod(
    "web-0",
    "u-web",
    {
        "phase": "Failed",
        "reason": "Evicted",
        "message": LOW,
        "conditions": [
            {"type": "Ready", "status": "False", "message": SECRET},
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "TerminationByKubelet",
                "lastTransitionTime": "2026-11-16T10:00:02Z",
            },
        ],
    },
)
DB = pod(
    "db-0",
    UID,
    {
        "phase": "Running",
        "message": SECRET,
        "containerStatuses": [
            {
                "name": "side",
                "containerID": f"containerd://{ID}",
                "restartCount": 2,
                "state": {"running": {"startedAt": "2026-11-16T10:30:00Z"}},
                "lastState": {
                    "terminated": {
                        "exitCode": 137,
                        "reason": "OOMKilled",
                        "message": SECRET,
                        "finishedAt": "2026-11-16T10:29:00Z",
                        "containerID": f"containerd://{ID}",
                    }
                },
            }
        ],
    },
    priority=5,
)


def event(reason: str, message: str, about: dict, **more: object) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['name']}.{reason}".lower(), "namespace": about.get("namespace", "default")},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "involvedObject": about,
        "source": {"component": "kubelet", "host": "node-1"},
        "firstTimestamp": "2026-11-16T10:00:02Z",
        "lastTimestamp": "2026-11-16T10:00:02Z",
        **more,
    }


EVENTS = [
    event("Evicted", LOW, {"kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "u-web"}),
    event("SystemOOM", "System OOM encountered, victim process: python3, pid: 7", {"kind": "Node", "name": "node-1"}),
    event("Unhealthy", f"Liveness probe failed: {SECRET}", {"kind": "Pod", "namespace": "shop", "name": "db-0"}),
]
ROWS = [(7, 1000, 200_000, 100, 0, 100, "python3"), (8, 1000, 100_000, 100, 0, 100, "sh")]
KERNEL_LOG = "\n".join(cgroup(ROWS, 7, "python3")) + "\n"


def as_list(*items: dict, kind: str = "List") -> dict:
    return {"apiVersion": "v1", "kind": kind, "items": list(items)}


def autopsy(capsys, *arguments: object) -> dict:
    code = main(["autopsy", *map(str, arguments), "-o", "json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return parsed(out)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump(as_list(NODE, WEB, DB)))
    (tmp_path / "events.json").write_text(json.dumps(as_list(*EVENTS), indent=2))
    (tmp_path / "kern.log").write_text(KERNEL_LOG)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("-f", "pods.yaml", "-f", "events.json", "kern.log"),
        ("pods.yaml", "events.json", "kern.log"),
        ("kern.log", "events.json", "-f", "pods.yaml"),
    ],
)
def test_objects_events_and_a_kernel_log_are_put_together(capsys, files, arguments):
    found = autopsy(capsys, *arguments)
    (kill,), (eviction,), (ended,) = found["kills"], found["evictions"], found["terminations"]
    assert (kill["pod"], kill["container"], kill["qosClass"]) == ("shop/db-0", "side", "Burstable")
    assert (eviction["pod"], eviction["followsRule"], eviction["reason"]) == ("shop/web-0", True, "First")
    assert (eviction["threshold"], eviction["available"]) == (100 << 20, 90 << 20)
    assert eviction["foundIn"] == ["event", "status"]
    assert eviction["runnerUp"]["name"] == "shop/db-0"
    assert (ended["pod"], ended["container"], ended["cause"], ended["isReported"]) == (
        "shop/db-0",
        "side",
        "Kernel",
        True,
    )
    assert found["nodeEvents"] == ["2026-11-16T10:00:00Z node-1: MemoryPressure began"]
    assert {"label": "noticed", "words": "by the kubelet (SystemOOM)"} in kill["evidence"]
    assert len(found["deaths"]) == 2


SYSTEM_OOM = "the machine ran out of memory: python3 (pid 7) was killed"
EITHER = (
    "the machine ran out of memory, or a cgroup did (kubelets before 1.21 report both as SystemOOM): python3 (pid 7)"
)


@pytest.mark.parametrize(
    ("version", "said"),
    [("v1.36.4", SYSTEM_OOM), ("v1.21.0-eks", SYSTEM_OOM), ("v1.20.15", EITHER), ("v1.9.1", EITHER), ("", EITHER)],
)
def test_an_event_of_a_kubelet_that_may_mistake_a_cgroup_for_the_machine_does_not_prove_which(
    capsys, tmp_path, version, said
):
    node = {**NODE, "status": {**NODE["status"], "nodeInfo": {"kubeletVersion": version}}}
    (tmp_path / "objects.json").write_text(json.dumps(as_list(node, EVENTS[1])))
    assert main(["autopsy", str(tmp_path / "objects.json")]) == 0
    assert capsys.readouterr().out[1:].startswith(said[1:])


@pytest.mark.parametrize(
    ("words", "is_machines"),
    [
        ('"Got sys oom event" event="&{Pid:7 ProcessName:python3 TimeOfDeath:x VictimContainerName:/}"', True),
        ("Got sys oom event: &{Pid:7 ProcessName:python3 TimeOfDeath:x VictimContainerName:/}", False),
        ("Got sys oom event from cadvisor: &{7 python3 2020-01-01 /}", False),
    ],
)
def test_a_line_of_the_kubelets_proves_that_the_machine_was_full_in_the_form_of_those_that_know(
    capsys, tmp_path, words, is_machines
):
    (tmp_path / "log").write_text(
        f"Nov 16 10:00:02 node-1 kubelet[9]: I1116 10:00:02.000001 9 oom_watcher.go:8] {words}\n"
    )
    (death,) = autopsy(capsys, tmp_path / "log")["deaths"]
    assert (death["reason"], "or a cgroup did" not in death["what"]) == ("NoReport", is_machines)


def test_text_says_the_verdict_and_what_it_rests_on(capsys, files):
    assert main(["autopsy", "pods.yaml", "events.json"]) == 0
    out = capsys.readouterr().out
    assert "The node was low on memory: shop/web-0 was evicted." in out
    assert "the kubelet evicted the pod its rule names: it ranks first, no matter what the others used" in out
    assert "memory.available 90Mi, threshold 100Mi" in out


def test_objects_may_be_piped_in(capsys, files, monkeypatch):
    text = json.dumps(as_list(NODE, WEB, DB, *EVENTS)).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert [each["pod"] for each in autopsy(capsys, "-")["evictions"]] == ["shop/web-0"]


def watched(*items: dict) -> list[dict]:
    """Return what a watch sends: objects in states that came before, then as they are."""
    earlier = [{"type": "ADDED", "object": {**each, "status": {}, "reason": ""}} for each in items]
    bookmark = {"type": "BOOKMARK", "object": {"kind": "Event", "metadata": {"resourceVersion": "9"}}}
    return [*earlier, bookmark, *({"type": "MODIFIED", "object": each} for each in items)]


SEEN = [
    WEB, *({"action": "Killing", **each, "metadata": {**each["metadata"], "uid": each["reason"]}} for each in EVENTS)
]  # fmt: skip


@pytest.mark.parametrize("text", [
    json.dumps(SEEN),
    json.dumps(SEEN[::-1], indent=2),
    yaml.safe_dump(SEEN[::-1]),
    "\n".join(json.dumps(each) for each in watched(*SEEN)),
    "\n".join(json.dumps(each, indent=4) for each in watched(*SEEN)),
    "\n".join(json.dumps(each) for each in watched(*SEEN)) + '\n{"type": "DELETED", "object": {"kind": "Po',
    "\n".join(json.dumps({"received": "10:00", **each}) for each in watched(*SEEN)),
    "\n".join(json.dumps(each, indent=4) for each in SEEN[::-1]),
])  # fmt: skip
@pytest.mark.parametrize("option", [[], ["-f"]])
def test_objects_may_be_an_array_or_what_a_watch_printed(capsys, tmp_path, text, option):
    path = tmp_path / "objects.json"
    path.write_text(text)
    found = autopsy(capsys, *option, path)
    assert [(each["pod"], each["foundIn"]) for each in found["evictions"]] == [("shop/web-0", ["event", "status"])]
    assert [death["reason"] for death in found["unreported"]] == ["NoReport"]


def test_an_array_that_is_cut_is_refused(capsys, tmp_path):
    path = tmp_path / "objects.json"
    path.write_text(json.dumps(SEEN)[:-1])
    assert main(["autopsy", str(path)]) == 2
    assert "broken JSON" in capsys.readouterr().err


def test_containers_that_were_killed_are_not_called_nothing(capsys, files):
    assert main(["autopsy", "pods.yaml", "db-0"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("shop/db-0 (side) was OOM-killed")
    assert "kernel log of" in out.partition("\n\n")[0]


def test_an_oom_that_two_logs_have_counts_once(capsys, tmp_path):
    lines = [f"Jan  5 15:19:27 node-1 kernel: [ 5864.708440] {each}" for each in cgroup(ROWS, 7, "python3")]
    later = [each.replace("15:19:27", "15:19:28") for each in lines]
    (tmp_path / "kern.log").write_text("\n".join([*lines, *later]))
    (tmp_path / "syslog").write_text("\n".join(["Jan  5 15:19:26 node-1 cron[9]: ran", *lines]))
    found = autopsy(capsys, tmp_path / "kern.log", tmp_path / "syslog")
    assert [each["at"] for each in found["kills"]] == ["Jan  5 15:19:27", "Jan  5 15:19:28"]


def test_logs_and_a_pod_may_stand_behind_options(capsys, files):
    found = autopsy(capsys, "kern.log", "-f", "pods.yaml", "db-0")
    assert ([each["pod"] for each in found["kills"]], found["evictions"]) == (["shop/db-0"], [])


@pytest.mark.parametrize("options", [["syslog"], ["syslog", "-f", "pods.yaml"], ["-f", "pods.yaml", "-n", "x", "db-0"]])
def test_a_name_of_neither_a_file_nor_a_pod_is_refused(capsys, files, options):
    assert main(["autopsy", "kern.log", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "no such file or pod: " in err


def test_a_pipe_that_is_a_file_is_read_once(capsys, files):
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: (files / "pipe").write_text(KERNEL_LOG))
    writer.start()
    try:
        assert [each["victims"][0]["pid"] for each in autopsy(capsys, "pipe")["kills"]] == [7]
    finally:
        writer.join()


@pytest.mark.parametrize("text", [
    f"LAST SEEN   TYPE      REASON    OBJECT        MESSAGE\n5m          Warning   Evicted   pod/web-0     {LOW}\n",
    "\n".join(json.dumps(each) for each in EVENTS) + "\n",
])  # fmt: skip
def test_events_may_be_a_table_or_lines_of_json(capsys, tmp_path, text):
    path = tmp_path / "events.txt"
    path.write_text(text)
    (eviction,) = autopsy(capsys, path)["evictions"]
    assert (eviction["pod"].rpartition("/")[2], eviction["available"]) == ("web-0", 90 << 20)


def test_an_eviction_is_found_deep_in_a_large_log(capsys, tmp_path):
    noise = "Nov 16 09:59:00 node-1 systemd[1]: Started Session 42 of user root.\n" * 20_000
    log = [
        "attempting to reclaim memory",
        "pods ranked for eviction: web-0_shop(u-web), db-0_shop(u-db)",
        "pod web-0_shop(u-web) is evicted successfully",
    ]
    lines = [
        f"Nov 16 10:00:00 node-1 kubelet[7]: I1116 10:00:00.1 7 eviction_manager.go:1] eviction manager: {each}\n"
        for each in log
    ]
    path = tmp_path / "syslog"
    path.write_text(noise + noise.join(lines) + noise)
    (eviction,) = autopsy(capsys, path)["evictions"]
    assert (eviction["node"], eviction["reason"], eviction["rivals"]) == ("node-1", "FirstInLog", ["shop/db-0"])


def test_a_host_that_a_log_calls_otherwise_is_the_node_of_the_pod(capsys, files):
    line = 'I1116 10:00:02.1 7 eviction_manager.go:1] "Eviction manager: {}"'
    lines = [
        line.format('pods ranked for eviction" pods=["shop/web-0","shop/db-0"]')[:-1],
        line.format('pod is evicted successfully" pod="shop/web-0"')[:-1],
    ]
    (files / "kubelet.log").write_text("".join(f"Nov 16 10:00:02 host-1 kubelet[7]: {each}\n" for each in lines))
    (eviction,) = autopsy(capsys, "kubelet.log", "pods.yaml")["evictions"]
    assert (eviction["node"], eviction["foundIn"], eviction["candidates"]) == ("node-1", ["status", "kubeletLog"], 2)


def test_a_journal_of_podqos_tells_its_evictions_and_kills(capsys, tmp_path):
    for scenario in ("soft-eviction", "oom-by-class"):
        main(["simulate", f"scenarios/{scenario}.yaml", "-o", "jsonl"])
        (tmp_path / f"{scenario}.jsonl").write_text(capsys.readouterr().out)
    found = autopsy(capsys, tmp_path / "soft-eviction.jsonl", tmp_path / "oom-by-class.jsonl")
    assert {(each["pod"], each["followsRule"], each["resource"]) for each in found["evictions"]} == {
        ("default/worker-0", True, "memory"),
        ("default/worker-1", True, "memory"),
    }
    assert all(each["rivals"] and each["ranking"][0]["usageFrom"] == "journal" for each in found["evictions"])
    (kill,) = found["kills"]
    assert (kill["pod"], kill["container"], kill["scope"], kill["followsRule"]) == (
        "default/pod3", "app", "machine", True,
    )  # fmt: skip
    assert "pid" not in kill["victims"][0]


# ---- clusters --------------------------------------------------------------------------------------------------------


def snapshot_file(path, *, anonymous: bool = False):
    """Write a snapshot of the objects, as ``podqos snapshot`` keeps them."""
    import msgspec

    lists = [
        pruned_list(json.dumps(as_list(*items, kind=kind)).encode())
        for kind, items in (("NodeList", [NODE]), ("PodList", [WEB, DB]), ("EventList", EVENTS))
    ]
    lines = [each for each in lists if each is not None]
    if anonymous:
        anonymizer = Anonymizer()
        lines = [anonymizer.line(line) for line in lines]
    lines.insert(0, msgspec.json.encode(Header(taken_at="2026-11-16T11:00:00Z", server_version="v1.36.0")))
    lines.append(msgspec.json.encode(End(len(lines))))
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    return path


def test_a_snapshot_has_what_is_needed_and_no_secrets(capsys, tmp_path):
    path = snapshot_file(tmp_path / "cluster.json.gz")
    kept = gzip.decompress(path.read_bytes())
    assert SECRET.encode() not in kept
    found = autopsy(capsys, "--snapshot", path)
    assert [(each["pod"], each["foundIn"]) for each in found["evictions"]] == [("shop/web-0", ["event", "status"])]
    assert [each["container"] for each in found["terminations"]] == ["side"]
    log = tmp_path / "kern.log"
    log.write_text(KERNEL_LOG)
    (kill,) = autopsy(capsys, log, "--snapshot", path)["kills"]
    assert (kill["pod"], kill["container"]) == ("shop/db-0", "side")


def test_an_anonymous_snapshot_still_explains_the_eviction(capsys, tmp_path):
    path = snapshot_file(tmp_path / "cluster.json.gz", anonymous=True)
    kept = gzip.decompress(path.read_bytes())
    assert not any(name in kept for name in (b"web", b"shop", b"python3", b"side"))
    (eviction,) = autopsy(capsys, "--snapshot", path)["evictions"]
    assert (eviction["reason"], eviction["available"], eviction["containers"][0]["used"]) == (
        "First",
        90 << 20,
        3 << 30,
    )


def test_one_pod_may_be_asked_for(capsys, tmp_path):
    path = snapshot_file(tmp_path / "cluster.json.gz")
    found = autopsy(capsys, "--snapshot", path, "-n", "shop", "db-0")
    assert (found["evictions"], [each["pod"] for each in found["terminations"]]) == ([], ["shop/db-0"])
    found = autopsy(capsys, "--snapshot", path, "pod/web-0")
    assert ([each["pod"] for each in found["evictions"]], found["terminations"]) == (["shop/web-0"], [])


# ---- mistakes and hostile input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.log"], "missing.log: No such file"),
        (["a", "b"], "two pods: a and b"),
        (["cluster.json"], "give it with --snapshot"),
        (["-f", "pods.yaml", "--snapshot", "cluster.json"], "cannot be combined"),
    ],
)
def test_a_mistake_is_one_line(capsys, files, arguments, said):
    (files / "cluster.json").write_bytes(gzip.decompress(snapshot_file(files / "x.gz").read_bytes()))
    assert main(["autopsy", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


HOSTILE = [
    {"reason": "Evicted", "message": ["x"], "involvedObject": {"kind": "Pod", "name": "a"}},
    {
        "reason": "Evicted",
        "message": LOW + "\x1b[31m" * 9000,
        "involvedObject": {"kind": "Pod", "name": "a\x1b]0;x\x07"},
    },
    {"reason": "Evicted", "message": "x" * 3_000_000, "involvedObject": {"kind": "Pod", "name": "a" * 5000}},
    {"reason": 7, "involvedObject": []},
    {"time_us": "x", "kind": "Evicted"},
    {"time_us": 1 << 70, "node": "n", "kind": "OOMKilled", "because": {"type": "OOMKill"}},
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_in_a_line_is_trusted(capsys, tmp_path, line):
    path = tmp_path / "lines.json"
    path.write_text("\n".join(['{"involvedObject": {}, "reason": ""}', json.dumps(line)]))
    assert main(["autopsy", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(character.isprintable() or character == "\n" for character in out)


@pytest.mark.parametrize(
    "status",
    [
        {"containerStatuses": "none"},
        {"containerStatuses": [{"state": {"terminated": {"exitCode": "137"}}}]},
        {"conditions": {"type": 7}},
        {"phase": "Failed", "reason": "Evicted", "message": 7},
        {"containerStatuses": [{"name": "\x1b[2J", "state": {"terminated": {"exitCode": 137, "finishedAt": "never"}}}]},
    ],
)
def test_a_status_that_is_not_in_order_leaves_the_rest_of_the_pod(capsys, tmp_path, status):
    (tmp_path / "pods.json").write_text(json.dumps(as_list(pod("a", "u-a", status), WEB, DB)))
    assert main(["autopsy", str(tmp_path / "pods.json")]) in {0, 2}
    out, err = capsys.readouterr()
    assert "shop/web-0 was evicted" in out
    assert "Traceback" not in err
    assert "\x1b" not in out
