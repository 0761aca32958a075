"""``qosReserved`` on the real kernel: the lower classes have ceilings, which follow the pods."""

from __future__ import annotations

import pytest

from host.machine import needs_node
from host.nodes import GROW, MI, PYTHON, kubelet, pod_document, running_node
from podqos.agent.reasons import OOMLevel
from podqos.host.node import cgroup_writing
from podqos.qos.cgroup_settings import CgroupVersion

pytestmark = [needs_node, pytest.mark.slow]

RESERVED = kubelet(
    qosReserved={"memory": "100%"}, featureGates={"QOSReserved": True}, evictionHard={"memory.available": "16Mi"}
)


def _ceilings(stage) -> tuple[int | None, ...]:
    root = f"{stage.settings.own}/kubepods"
    limits = (stage.node.cgroups.memory_limit(f"{root}/{name}") for name in ("burstable", "besteffort"))
    return tuple(None if limit is None else limit // MI for limit in limits)


def test_the_ceilings_of_the_lower_classes_follow_the_pods_that_come_and_go():
    fixed = {"memory": "128Mi", "cpu": "10m"}
    with running_node(RESERVED) as stage:
        assert _ceilings(stage) == (256, 256)
        stage.put(pod_document("guaranteed", "sleep", "1000", resources={"requests": fixed, "limits": fixed}))
        stage.until(lambda: stage.is_up("guaranteed"))
        assert _ceilings(stage) == (128, 128)
        stage.put(pod_document("burstable", "sleep", "1000", resources={"requests": {"memory": "32Mi"}}))
        stage.until(lambda: stage.is_up("burstable"))
        assert _ceilings(stage) == (128, 96)
        (stage.manifests / "guaranteed.json").unlink()
        stage.until(lambda: _ceilings(stage) == (256, 224))


def test_a_best_effort_pod_that_grows_dies_at_the_ceiling_of_its_class():
    """It wants 200Mi of 256Mi, of which 192Mi are reserved: the kubelet's threshold is never met."""
    fixed = {"memory": "192Mi", "cpu": "10m"}
    with running_node(RESERVED) as stage:
        stage.put(pod_document("guaranteed", "sleep", "1000", resources={"requests": fixed, "limits": fixed}))
        stage.until(lambda: stage.is_up("guaranteed"))
        stage.put(pod_document("grows", *PYTHON, GROW, "200"))
        stage.until(lambda: ("OOMKilled", "grows") in stage.lines())
        (killed,) = stage.entries("OOMKilled")[:1]
        assert (killed.because.level, killed.because.limit_bytes) == (OOMLevel.CLASS, 64 * MI)
        assert not stage.entries("Evicting")
        assert stage.is_up("guaranteed")


def test_a_class_that_uses_more_than_is_left_to_it_is_held_at_that_or_killed(monkeypatch):
    """Cgroup v1 refuses the limit, and the kubelet sets it to what is used and tries again; cgroup v2 kills."""
    monkeypatch.setattr(cgroup_writing, "_REFUSED_SECONDS", 0.2)
    fixed = {"memory": "192Mi", "cpu": "10m"}
    with running_node(RESERVED) as stage:
        stage.put(pod_document("grown", *PYTHON, GROW, "100"))
        stage.until(lambda: "grown" in stage.log("grown"))
        stage.put(pod_document("guaranteed", "sleep", "1000", resources={"requests": fixed, "limits": fixed}))
        stage.until(lambda: stage.is_up("guaranteed"))
        if stage.node.cgroups.version is CgroupVersion.V2:
            stage.until(lambda: ("OOMKilled", "grown") in stage.lines())
            assert _ceilings(stage)[1] == 64
            return
        assert 100 <= _ceilings(stage)[1] < 192
        assert [line for line in stage.said if "limited to its current usage" in line]
        assert stage.is_up("grown")
        (stage.manifests / "grown.json").unlink()
        stage.until(lambda: _ceilings(stage)[1] == 64)
