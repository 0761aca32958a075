"""PQ120 and PQ121: containers that state no memory in pods that are otherwise sized."""

from __future__ import annotations

import pytest

from advice.bundles import check_text
from advice.test_checks_class import BURST, FULL, pod
from podqos.advice.checks import examples
from podqos.advice.checks.bundle import CheckOptions

CPU_ALONE = "{requests: {cpu: 500m}, limits: {cpu: 1}}"
LEFT_OUT = ("PQ108",)
LIMIT_RANGE = examples.limit_range("team", "default: {memory: 1Gi}\ndefaultRequest: {memory: 512Mi}\n")


def ids(text, options=None):
    """Return what is found, without what every pod here has."""
    return [each.check for each in check_text(text, options) if each.check not in LEFT_OUT]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(pod(CPU_ALONE, kind="Deployment"), ["PQ120"], id="Deployment"),
        pytest.param(pod("{limits: {cpu: 1}}"), ["PQ120"], id="a cpu limit alone"),
        pytest.param(pod(CPU_ALONE, kind="Job", extra="restartPolicy: Never"), [], id="a Job can be repeated"),
        pytest.param(
            pod(CPU_ALONE, kind="DaemonSet"), ["PQ118"], id="a DaemonSet returns to its node, which PQ118 tells"
        ),
        pytest.param(
            pod(CPU_ALONE, kind="DaemonSet", extra="priorityClassName: system-node-critical"),
            [],
            id="a node agent that is never evicted",
        ),
        pytest.param(pod("{}"), ["PQ102"], id="nothing at all is BestEffort"),
        pytest.param(pod(CPU_ALONE, BURST), ["PQ120"], id="beside one that is sized"),
        pytest.param(
            pod(CPU_ALONE, extra="resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}"), [], id="of the pod"
        ),
        pytest.param(f"{pod(CPU_ALONE)}---\n{LIMIT_RANGE}", [], id="a LimitRange gives it memory"),
    ],
)
def test_a_container_that_states_no_memory_is_reported_unless_that_is_fine(text, expected):
    assert ids(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(pod(BURST, "{}"), ["PQ121"], id="a sidecar without anything"),
        pytest.param(pod("{}", BURST), ["PQ121"], id="in any place"),
        pytest.param(pod(BURST, "{}", kind="Job", extra="restartPolicy: Never"), ["PQ121"], id="of a Job, too"),
        pytest.param(pod(FULL, "{}"), ["PQ101"], id="the one that spoils Guaranteed is told by PQ101"),
        pytest.param(pod(CPU_ALONE, "{}"), ["PQ119", "PQ120", "PQ120"], id="no container is sized"),
        pytest.param(
            pod(BURST, "{}", kind="DaemonSet"), ["PQ118", "PQ119"], id="a DaemonSet's memory is told by PQ118"
        ),
    ],
)
def test_a_container_without_resources_beside_a_sized_one_is_one_finding(text, expected):
    assert ids(text) == expected


def test_the_finding_names_who_is_sized_and_what_to_look_up():
    (finding,) = (each for each in check_text(pod(BURST, "{}")) if each.check == "PQ121")

    assert finding.container == "c1"
    assert finding.facts.sentence("c1").startswith("c1 has no CPU and memory requests or limits, while c0 requests")
    assert "kubectl top pod --containers" in finding.patch.text
    assert not finding.patch.edits


def test_where_it_is_suppressed_the_missing_cpu_is_told_instead():
    text = pod(BURST, "{}").replace("metadata: {", "metadata: {annotations: {podqos.dev/ignore: PQ121}, ", 1)

    assert [each.check for each in check_text(text) if each.suppression is None and each.check != "PQ108"] == ["PQ119"]
    assert "PQ119" in ids(pod(BURST, "{}"), CheckOptions(disabled=frozenset({"PQ121"})))
