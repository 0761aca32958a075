"""What is remembered of pods with one spec is what would be worked out again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eviction.nodes import pod
from podqos.agent.agent import handle, start
from podqos.agent.port import PodBound, PodStarted
from podqos.agent.state import AgentConfig, PodPlans
from podqos.eviction.manager import configure
from podqos.eviction.signals import Layout
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import QOSClass
from podqos.model.profile import LATEST
from podqos.model.quantity import Quantity
from podqos.qos.cgroup_settings import CgroupSettings
from strategies import pods

CGROUPS = CgroupSettings(node_memory_bytes=64 << 30)
ALLOCATABLE = {
    "cpu": Quantity.parse("16"),
    "memory": Quantity.parse("60Gi"),
    "ephemeral-storage": Quantity.parse("1Ti"),
}
PLAIN = AgentConfig(
    node="n",
    cgroups=CGROUPS,
    eviction=configure(KubeletConfiguration(), layout=Layout.SINGLE),
    allocatable=ALLOCATABLE,
)
REMEMBERING = replace(PLAIN, plans=PodPlans(CGROUPS, LATEST, ALLOCATABLE))


@given(st.lists(pods(), min_size=1, max_size=3))
def test_an_agent_that_remembers_decides_as_one_that_does_not(made):
    states = [start(config, 0).state for config in (PLAIN, REMEMBERING)]
    for number in range(2):
        for index, each in enumerate(made):
            uid = f"{index}-{number}"
            named = replace(each, metadata=replace(each.metadata, name=f"pod-{uid}", uid=uid))
            for event in (PodBound(named), PodStarted(uid)):
                plain, remembering = (
                    handle(config, state, 0, event) for config, state in zip((PLAIN, REMEMBERING), states, strict=True)
                )
                assert plain == remembering
                states = [plain.state, remembering.state]


def test_a_pod_whose_status_says_another_class_is_another_pod():
    plans = PodPlans(CGROUPS, LATEST, ALLOCATABLE)
    first = pod("a")
    told = replace(first, status=replace(first.status, qos_class=QOSClass.GUARANTEED))
    assert plans.of(first).qos_class is QOSClass.BEST_EFFORT
    assert plans.of(told).qos_class is QOSClass.GUARANTEED


def test_replicas_share_a_plan():
    plans = PodPlans(CGROUPS, LATEST, ALLOCATABLE)
    first = pod("a", "memory=1Gi")
    assert plans.of(first) is plans.of(replace(first, metadata=replace(first.metadata, name="b", uid="b")))
