"""Headroom is one number: ``overview``, the exporter, ``rank``, the page and ``forecast`` agree on it."""

from __future__ import annotations

import json
from fractions import Fraction

import msgspec
import pytest

from library import clusters
from podqos.cli.main import main
from podqos.manifest.pruning import pruned_kubelet
from podqos.model.profile import LATEST
from podqos.objects.cluster_snapshot import ClusterSnapshot, NodeKubelet
from podqos.objects.kubelet_node import Kubelet
from podqos.page.session import PageSource, SourceKind
from podqos.questions.forecast import forecast
from podqos.questions.metrics import overview_metrics
from podqos.questions.node import NodeState, cluster_state, watched_memory
from podqos.questions.overview import overview
from podqos.questions.rank import rank
from podqos.serve.work import page_about
from sim.growths import drawn

MI, GI = 1 << 20, 1 << 30
# The kubelet of atlas-1 (8Gi, 4Gi available) leaves pods 4Gi, of which they use 3436Mi.
RESERVED = {"evictionHard": {"memory.available": "500Mi"}, "systemReserved": {"memory": "4Gi"}}
SOFT = {
    **RESERVED,
    "systemReserved": {},
    "evictionSoft": {"memory.available": "3Gi"},
    "evictionSoftGracePeriod": {"memory.available": "90s"},
}


def cluster_lines(config: dict) -> list[bytes]:
    """Return the snapshot of a cluster whose first kubelet is set so."""
    raw = msgspec.Raw(pruned_kubelet(json.dumps({"kubeletconfig": config}).encode()))
    kubelet = msgspec.json.encode(NodeKubelet("atlas-1", raw))
    return [kubelet if b'"kind":"NodeKubelet"' in line else line for line in clusters.lines()]


def cluster_of(config: dict) -> ClusterSnapshot:
    return ClusterSnapshot(cluster_lines(config), "cluster.json")


@pytest.mark.parametrize(
    ("config", "signal", "kind", "headroom_bytes"),
    [
        pytest.param(RESERVED, "allocatableMemory.available", "hard", (4096 - 3436 - 500) * MI, id="reserved"),
        pytest.param(
            {**RESERVED, "enforceNodeAllocatable": []}, "memory.available", "hard", 3596 * MI, id="unenforced"
        ),
        pytest.param(SOFT, "memory.available", "soft", GI, id="soft"),
    ],
)
def test_every_answer_has_the_headroom_of_the_nearest_threshold(config, signal, kind, headroom_bytes):
    cluster = cluster_of(config)
    whole = overview(cluster)
    node = next(each for each in whole.nodes if each.name == "atlas-1")
    found = node.headroom
    assert (found.signal, found.type, found.headroom_bytes) == (signal, kind, headroom_bytes)
    assert node.headroom_bytes == found.available_bytes - found.threshold_bytes == headroom_bytes
    metrics = overview_metrics(whole, {})
    assert f'podqos_node_memory_headroom_bytes{{node="atlas-1"}} {headroom_bytes}\n' in metrics
    by = f'{{node="atlas-1",signal="{signal}",type="{kind}"}} {found.threshold_bytes}\n'
    assert f"podqos_node_memory_headroom_threshold_bytes{by}" in metrics
    assert rank(cluster_state(cluster, "atlas-1")).node.headroom == found
    page = page_about(PageSource(SourceKind.SNAPSHOT, "acme", cluster=cluster)).cluster()
    panel = next(each for each in page.nodes if each.name == "atlas-1")
    assert (panel.headroom, panel.headroom_bytes) == (found, headroom_bytes)


def test_a_node_with_reservations_is_sorted_by_what_pods_have_left_and_says_so(tmp_path, capsys):
    path = tmp_path / "cluster.json"
    path.write_bytes(b"\n".join(cluster_lines(RESERVED)))
    assert main(["overview", "--snapshot", str(path)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("atlas-1"))
    assert "160Mi (allocatable)" in row
    assert "42%" in row  # of the 8Gi that the API server calls allocatable, pods use 3436Mi
    assert main(["rank", "atlas-1", "--snapshot", str(path)]) == 0
    assert "160Mi headroom before eviction (allocatableMemory.available < 500Mi)." in capsys.readouterr().out


def test_where_the_kernel_kills_before_the_kubelet_evicts_that_is_said(tmp_path, capsys):
    path = tmp_path / "cluster.json"
    path.write_bytes(b"\n".join(cluster_lines({"evictionHard": {"memory.available": "10Mi"}})))
    assert main(["overview", "--snapshot", str(path)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("atlas-1"))
    assert "4086Mi (OOM kill after 3995Mi)" in row
    assert main(["rank", "atlas-1", "--snapshot", str(path)]) == 0
    out = capsys.readouterr().out
    assert "\nAs memory fills up, the kernel kills before the kubelet evicts. " in out
    assert "4086Mi headroom before eviction (memory.available < 10Mi)." in out
    assert "Headroom before an OOM kill: 3995Mi." in out


def test_without_a_threshold_the_kubelet_never_evicts_and_rank_says_so(tmp_path, capsys):
    pods, config = tmp_path / "pods.yaml", tmp_path / "kubelet.yaml"
    pods.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n")
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {pid.available: 10%}\n"
    )
    assert main(["rank", "-f", str(pods), "--kubelet-config", str(config), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["node"]["headroom"] is None
    assert main(["rank", "-f", str(pods), "--kubelet-config", str(config)]) == 0
    assert "No memory threshold is set: the kubelet never evicts for memory." in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(40))
def test_the_forecast_meets_its_first_threshold_when_the_headroom_is_used_up(seed):
    setting = drawn(seed)
    # Reclaim relieves the kubelet, too: without page cache a threshold is met for good.
    pods = tuple(
        (pod, tuple(msgspec.structs.replace(each, active_file_bytes=0, inactive_file_bytes=0) for each in usage))
        for pod, usage in setting.pods
    )
    growing = setting._replace(pods=pods, swap_bytes=0).growing()
    state = NodeState(growing.snapshot, kubelet=Kubelet(setting.config))
    watched = watched_memory(state, LATEST)
    if not growing.levels:
        assert watched.headroom is None
        return
    assert watched.available == growing.available
    assert max(0, watched.headroom_bytes) == min(map(growing.crossed_bytes, growing.levels))
    if watched.headroom_bytes > 0:
        report = forecast(state, growing=f"{growing.grower.pod.key}:{growing.growth.container}", rates=(1 << 20,))
        first = min(each.crossed_after_seconds for each in report.growths[0].thresholds)
        assert first == Fraction(watched.headroom_bytes, 1 << 20)
