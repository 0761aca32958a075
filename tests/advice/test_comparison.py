"""Who dies before whom because of a finding, held against both orders of the same pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advice.bundles import bundle_of, check, check_text, plain_objects
from advice.test_checks_class import BURST, FULL, pod
from podqos.advice.checks.comparison import _usage
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.orders.orders import both_orders
from podqos.qos.cgroup_settings import CgroupSettings


def named(text: str, name: str, priority: int = 0) -> str:
    """Return a pod under another name, with a priority of its own."""
    return text.replace("{name: p,", f"{{name: {name},", 1).replace("spec:\n", f"spec:\n  priority: {priority}\n", 1)


def finding_about(text: str, check_id: str):
    """Return the one finding of a check."""
    (finding,) = (each for each in check_text(text) if each.check == check_id)
    return finding


def test_a_spoilt_pod_is_evicted_before_a_batch_job_of_higher_priority():
    text = named(pod(FULL, "{requests: {cpu: 1, memory: 1Gi}}"), "service") + "---\n" + named(pod(BURST), "batch", 5)
    told = finding_about(text, "PQ101").consequence

    assert told.evicted_before == "batch"
    assert told.repaired.oom_score_adj == -997


@pytest.mark.parametrize(
    ("text", "is_spared"),
    [
        pytest.param(pod("{}"), False, id="ordinary"),
        pytest.param(pod("{}", extra="priorityClassName: system-cluster-critical"), True, id="by its priority"),
        pytest.param(
            pod("{}").replace("name: p,", "name: p, annotations: {kubernetes.io/config.source: file},"),
            True,
            id="static, whatever its priority",
        ),
    ],
)
def test_critical_pods_are_said_to_be_spared(text, is_spared):
    finding = finding_about(text, "PQ102")
    assert finding.consequence.now.is_spared is is_spared


def test_a_mended_pod_keeps_its_priority():
    finding = finding_about(named(pod(FULL, "{}"), "a", 1000) + "---\n" + named(pod(BURST), "b"), "PQ101")
    assert [each.priority for each in (finding.consequence.now, finding.consequence.repaired)] == [1000, 1000]


def test_without_another_workload_only_the_own_place_is_told():
    told = finding_about(pod(FULL, "{}"), "PQ101").consequence

    assert (told.evicted_before, told.killed_before) == (None, None)
    assert (told.now.oom_score_adj, told.now.container) == (999, "c1")


def test_equals_do_not_die_before_each_other():
    text = named(pod("{}"), "a") + "---\n" + named(pod("{}"), "b")

    assert {(each.consequence.evicted_before, each.consequence.killed_before) for each in check_text(text)} == {
        (None, None)
    }


RESOURCES = st.sampled_from(
    [
        "{}",
        FULL,
        BURST,
        "{requests: {cpu: 1, memory: 64Mi}, limits: {cpu: 1, memory: 4Gi, ephemeral-storage: 1Gi}}",
        "{requests: {cpu: 1, memory: 8Gi}, limits: {ephemeral-storage: 1Gi}}",
    ]
)


@given(st.lists(st.tuples(RESOURCES, st.integers(0, 3)), min_size=2, max_size=5))
def test_who_outlives_the_subject_does_so_in_both_orders(drawn):
    """Whoever is named really is evicted, or killed, later than the subject as it is."""
    texts = [named(pod(resources), f"w{index}", priority) for index, (resources, priority) in enumerate(drawn)]
    bundle = bundle_of(plain_objects("---\n".join(texts)))
    memory_bytes = bundle.surroundings.node_memory_bytes
    pods = {found.subject.key: found.workload.pod for found in bundle.workloads}
    snapshot = Snapshot(NodeUsage(memory_bytes), tuple(_usage(key, each) for key, each in pods.items()))
    orders = both_orders(snapshot, Ranking(Signal.MEMORY), CgroupSettings(node_memory_bytes=memory_bytes))
    evicted = [each.pod.metadata.uid for each in orders.eviction]
    killed = [each.metadata.uid for each in orders.kernel_pods]

    for finding in check(bundle):
        told = finding.consequence
        for order, other in ((evicted, told.evicted_before), (killed, told.killed_before)):
            assert other is None or order.index(finding.subject.key) < order.index(other)
