"""Evictions that end ``Succeeded``, and those of ``podqos guard``: told by condition, annotation and Event."""

from __future__ import annotations

import json

import pytest

from guard.journals import chose, met, watching, written
from podqos.cli.main import main
from podqos.eviction.signals import Signal

LOW = (
    "The node was low on resource: memory. Threshold quantity: 300Mi, available: 120Mi. Container app was using"
    " 900Mi, request is 0, has larger consumption of memory. "
)
AT = "2026-11-16T19:46:15Z"


def pod(name, phase="Succeeded", message=LOW, annotations=None, **status):
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message}
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": "2026-11-16T11:00:00Z", "finishedAt": AT}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": f"u-{name}", "annotations": annotations or {}},
        "spec": {"nodeName": "worker-1", "containers": [{"name": "app", "image": "x"}]},
        "status": {
            "phase": phase,
            "startTime": "2026-11-16T11:00:00Z",
            "conditions": [{**condition, "lastTransitionTime": AT}],
            "containerStatuses": [{"name": "app", "state": {"terminated": ended}}],
            **status,
        },
    }


def event(name, component):
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": name, "uid": f"u-{name}"},
        "reason": "Evicted",
        "message": LOW,
        "source": {"component": component, "host": "worker-1"},
        "firstTimestamp": AT,
    }


@pytest.fixture
def read(tmp_path, capsys):
    """Return a function that gives objects to a command: its output, as JSON or as text."""

    def run(items, *command, output="json"):
        file = tmp_path / "objects.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        code = main([*map(str, command), "-f", str(file), "-o", output])
        out, err = capsys.readouterr()
        assert code == 0, err
        return json.loads(out) if output == "json" else " ".join(out.split())

    return run


def test_autopsy_knows_an_eviction_that_ended_succeeded_by_its_condition(read):
    (death,) = read([pod("calm")], "autopsy")["deaths"]
    assert (death["manner"], death["by"], death["who"]) == ("Eviction", "kubelet", "shop/calm")
    assert (death["when"], death["where"]) == (AT, "worker-1")
    found = death["eviction"]
    assert found["cause"] == "NodePressure"
    assert (found["threshold"], found["available"]) == (300 << 20, 120 << 20)
    assert found["containers"] == [{"name": "app", "used": 900 << 20, "request": 0}]
    assert "isByGuard" not in found


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("Pod was preempted by Kubelet to accommodate a critical pod.", "CriticalPod"),
        ("Pod was terminated in response to imminent node shutdown.", "NodeShutdown"),
        ("", "Unknown"),
    ],
)
def test_the_condition_also_says_what_was_no_pressure(read, message, cause):
    (death,) = read([pod("calm", message=message)], "autopsy")["deaths"]
    assert death["eviction"]["cause"] == cause


def test_an_event_and_a_status_without_a_reason_are_one_eviction(read):
    (death,) = read([pod("calm"), event("calm", "kubelet")], "autopsy")["deaths"]
    assert death["eviction"]["foundIn"] == ["event", "status"]


def test_a_description_of_such_a_pod_tells_of_the_eviction(tmp_path, capsys):
    described = f"""\
Name:             calm
Namespace:        shop
Node:             worker-1/10.0.0.1
Start Time:       Mon, 16 Nov 2026 11:00:00 +0000
Status:           Succeeded
Containers:
  app:
    Container ID:  containerd://{"ab" * 32}
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
Conditions:
  Type               Status
  DisruptionTarget   True
  Ready              False
QoS Class:          BestEffort
Events:
  Type     Reason   Age   From     Message
  ----     ------   ----  ----     -------
"""
    row = f"  Warning  Evicted  12s   {{}}  {LOW}\n"
    file = tmp_path / "described"
    for component, by in (("kubelet     ", "kubelet"), ("podqos-guard", "podqos guard")):
        file.write_text(described + row.format(component))
        assert main(["autopsy", str(file), "-o", "json"]) == 0
        (death,) = json.loads(capsys.readouterr().out)["deaths"]
        assert (death["pod"], death["by"], death["eviction"]["cause"]) == ("shop/calm", by, "NodePressure")
        assert death["eviction"].get("isByGuard", False) is (by == "podqos guard")


def test_autopsy_credits_the_guard_with_what_it_evicted(read):
    evicted = pod("web", "Failed", annotations={"podqos.dev/evicted-at": "2026-11-16T19:46:14.990753Z (2)"})
    evicted["status"] |= {"reason": "Evicted", "message": LOW}
    for found in ([evicted], [event("web", "podqos-guard")]):
        (death,) = read(found, "autopsy")["deaths"]
        assert death["by"] == "podqos guard"
        assert death["eviction"]["isByGuard"]
    text = read([evicted, event("web", "podqos-guard")], "autopsy", output="text")
    assert "The node was low on memory: shop/web was evicted by podqos guard." in text


def test_an_annotation_of_another_day_does_not_make_it_the_guards(read):
    evicted = pod("web", annotations={"podqos.dev/evicted-at": "2026-11-10T19:46:14Z"})
    (death,) = read([evicted], "autopsy")["deaths"]
    assert death["by"] == "kubelet"
    assert "isByGuard" not in death["eviction"]


def test_guard_report_has_both_of_two_kubelet_evictions_and_not_the_guards_own(read, tmp_path):
    state = written(
        tmp_path / "state", watching(), met(1.0, Signal.MEMORY), chose(1.0, "shop/calm"), chose(1.0, "shop/web")
    )
    failed = pod("web", "Failed", reason="Evicted")
    marked = pod("own", "Failed", reason="Evicted", annotations={"podqos.dev/evicted-at": AT})
    told = read([pod("calm"), failed, marked], "guard", "report", "--state", state)
    assert [(death["by"], death["pod"]) for death in told["deaths"]] == [
        ("kubelet", "shop/calm"),
        ("kubelet", "shop/web"),
    ]
    assert told["tallies"][1]["pods"] == 2
