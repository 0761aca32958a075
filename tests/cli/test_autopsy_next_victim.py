"""Who would have been evicted next: the kubelet's log says it, then the message of the pod's own eviction."""

from __future__ import annotations

import json

import pytest

from podqos.cli.main import main

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "status": {"capacity": {"memory": "16Gi", "cpu": "4", "pods": "110"}},
}


def pod(name: str, request: str = "1Gi", **status: object) -> dict:
    resources = {"requests": {"memory": request}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": f"u-{name}"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "x", "resources": resources}]},
        "status": {"startTime": "2026-11-16T09:00:00Z", **status},
    }


def evicted(name: str, used: str, second: int) -> dict:
    message = (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
        f"Container app was using {used}, request is 1Gi, has larger consumption of memory. "
    )
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    condition["lastTransitionTime"] = f"2026-11-16T10:00:{second:02}Z"
    return pod(name, phase="Failed", reason="Evicted", message=message, conditions=[condition])


WEB, LEAK = evicted("web", "5Gi", 2), evicted("leak", "3Gi", 14)
OVER = pod("over", "2Gi", phase="Running")  # of pods whose usage is unknown, the one with the largest request is next


def line(second: int, text: str) -> str:
    return f'Nov 16 10:00:{second:02} node-1 kubelet[7]: I1116 10:00:{second:02}.1 7 eviction_manager.go:1] "{text}\n'


def passes(*order: str) -> str:
    pods = ",".join(f'"shop/{name}"' for name in order)
    return (
        line(2, 'Eviction manager: must evict pod(s) to reclaim" resourceName="memory"')
        + line(2, f'Eviction manager: pods ranked for eviction" pods=[{pods}]')
        + line(2, 'Eviction manager: pod is evicted successfully" pod="shop/web"')
    )


def evictions(capsys, tmp_path, pods: list[dict], log: str = "") -> list[dict]:
    (tmp_path / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *pods]}))
    (tmp_path / "kubelet.log").write_text(log)
    files = [str(tmp_path / "pods.json"), *([str(tmp_path / "kubelet.log")] if log else [])]
    assert main(["autopsy", *files, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)["evictions"]


def test_a_pod_that_was_evicted_later_used_what_its_own_message_says(capsys, tmp_path):
    first, _ = evictions(capsys, tmp_path, [WEB, OVER, LEAK])
    assert (first["pod"], first["runnerUp"]["pod"]) == ("shop/web", "shop/leak")
    assert (first["runnerUp"]["usage"], first["runnerUp"]["usageFrom"]) == (3 << 30, "measured")
    assert {saving["instead"] for saving in first["savedBy"] if "instead" in saving} == {"shop/leak"}


@pytest.mark.parametrize("names", [("web", "leak", "over"), ("web", "over", "leak")])
def test_the_order_of_the_kubelets_log_outranks_the_computed_one(capsys, tmp_path, names):
    first, _ = evictions(capsys, tmp_path, [WEB, OVER, LEAK], passes(*names))
    assert [row["pod"] for row in first["ranking"]] == [f"shop/{name}" for name in names]
    assert [row["logPlace"] for row in first["ranking"]] == [1, 2, 3]
    assert first["runnerUp"]["pod"] == f"shop/{names[1]}"
    assert first["reason"] == "FirstInLog"


def test_the_next_pod_of_the_log_is_named_although_nothing_else_is_known_of_it(capsys, tmp_path):
    (first,) = evictions(capsys, tmp_path, [WEB, OVER], passes("web", "leak", "over"))
    assert "runnerUp" not in first
    assert first["rivals"] == ["shop/leak"]
    assert {saving["instead"] for saving in first["savedBy"] if "instead" in saving} == {"shop/leak"}
    main(["autopsy", str(tmp_path / "pods.json"), str(tmp_path / "kubelet.log")])
    (following,) = [text.split() for text in capsys.readouterr().out.splitlines() if text.startswith("  next ")]
    assert following == ["next", "shop/leak"]


def test_a_pod_that_only_the_log_saw_evicted_later_was_there_before(capsys, tmp_path):
    """Times in a log have no year: they are compared with the others all the same."""
    leak = pod("leak", phase="Running")
    later = line(14, 'Eviction manager: pods ranked for eviction" pods=["shop/leak"]')
    later += line(14, 'Eviction manager: pod is evicted successfully" pod="shop/leak"')
    found = evictions(capsys, tmp_path, [WEB, OVER, leak], passes("web", "leak", "over") + later)
    assert [eviction["pod"] for eviction in found] == ["shop/web", "shop/leak"]
    assert found[0]["runnerUp"]["pod"] == "shop/leak"


def test_a_pod_that_was_evicted_later_has_grown_since(capsys, tmp_path):
    """It was not the first to be evicted, so it used less above its request than the pod that was."""
    first, second = evictions(capsys, tmp_path, [WEB, OVER, evicted("leak", "9Gi", 59)])
    assert [row["pod"] for row in first["ranking"]] == ["shop/web", "shop/leak", "shop/over"]
    assert (first["runnerUp"]["usage"], first["runnerUp"]["usageFrom"]) == ((5 << 30) - 1, "assumed")
    assert {saving["instead"] for saving in first["savedBy"] if "instead" in saving} == {"shop/leak"}
    assert not {"request", "usage"} & {saving["change"] for saving in first["savedBy"]}, "1Mi more is no advice"
    assert second["containers"][0]["used"] == 9 << 30
