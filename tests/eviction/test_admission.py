from __future__ import annotations

import pytest

from eviction.nodes import guaranteed, pod
from podqos.eviction.manager import AdmissionRule, admit
from podqos.eviction.signals import NodeCondition
from podqos.model.pod import PodStatus, QOSClass, Toleration
from podqos.model.profile import parse_version

MEMORY, DISK, PID = NodeCondition

TOLERATES_MEMORY = (Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule"),)
TOLERATES_DISK = (Toleration(key="node.kubernetes.io/disk-pressure", operator="Exists"),)
BEST_EFFORT = pod("best-effort")
TOLERANT = pod("tolerant", tolerations=TOLERATES_MEMORY)
BURSTABLE = pod("burstable", "memory=1Mi")
CRITICAL = pod("critical", priority=2_000_000_000)
STATIC = pod("static", annotations={"kubernetes.io/config.source": "file"})
EVERYBODY = (BEST_EFFORT, TOLERANT, BURSTABLE, CRITICAL, STATIC, guaranteed("guaranteed"))


def admitted(*conditions: NodeCondition, version: str = "1.36") -> set[str]:
    profile = parse_version(version)
    return {entry.metadata.name for entry in EVERYBODY if admit(entry, conditions, profile).admit}


def test_without_pressure_everybody_is_admitted():
    assert len(admitted()) == len(EVERYBODY)


def test_under_memory_pressure_only_best_effort_is_refused():
    """Unless it tolerates the taint."""
    assert admitted(MEMORY) == {"tolerant", "burstable", "guaranteed", "critical", "static"}


@pytest.mark.parametrize("conditions", [(DISK,), (PID,), (DISK, PID), (MEMORY, DISK), (MEMORY, PID)])
def test_under_any_other_pressure_only_critical_pods_are_admitted(conditions):
    assert admitted(*conditions) == {"critical", "static"}


def test_tolerating_disk_pressure_does_not_help():
    answer = admit(pod("hopeful", tolerations=TOLERATES_DISK), (DISK,))
    assert not answer.admit
    assert answer.rule is AdmissionRule.OTHER_PRESSURE


def test_up_to_1_16_memory_pressure_decided_alone_where_it_held():
    assert "burstable" in admitted(MEMORY, DISK, version="1.16")
    assert "burstable" not in admitted(DISK, version="1.16")
    assert "burstable" not in admitted(MEMORY, DISK, version="1.17")


def test_before_1_11_a_toleration_did_not_help():
    assert "tolerant" not in admitted(MEMORY, version="1.10")
    assert "tolerant" in admitted(MEMORY, version="1.11")


def test_a_refusal_has_the_kubelets_reason_and_message():
    answer = admit(BEST_EFFORT, (MEMORY,))
    assert (answer.reason, answer.message) == ("Evicted", "The node had condition: [MemoryPressure]. ")
    assert answer.rule is AdmissionRule.BEST_EFFORT_UNDER_MEMORY_PRESSURE


@pytest.mark.parametrize(
    ("given", "conditions", "rule"),
    [
        (BEST_EFFORT, (), AdmissionRule.NO_PRESSURE),
        (CRITICAL, (DISK,), AdmissionRule.CRITICAL),
        (BURSTABLE, (MEMORY,), AdmissionRule.NOT_BEST_EFFORT),
        (TOLERANT, (MEMORY,), AdmissionRule.TOLERATES_MEMORY_PRESSURE),
    ],
    ids=lambda value: str(value) if isinstance(value, AdmissionRule) else "",
)
def test_the_rule_that_let_a_pod_in_is_named(given, conditions, rule):
    assert admit(given, conditions).rule is rule


def test_the_class_the_api_server_recorded_is_the_one_that_counts():
    recorded = type(BEST_EFFORT)(BEST_EFFORT.metadata, BEST_EFFORT.spec, PodStatus(qos_class=QOSClass.BURSTABLE))
    assert admit(recorded, (MEMORY,)).admit
