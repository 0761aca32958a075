"""PQ118 at its edges: who comes back under pressure, and what ends it."""

from __future__ import annotations

import pytest

from advice.bundles import check_text
from advice.test_checks_class import pod
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.finding import Choice
from podqos.advice.checks.toleration import ComesBack, MayExceed
from podqos.model.profile import profile_for

BURST = "{requests: {memory: 100Mi}, limits: {memory: 200Mi, ephemeral-storage: 1Gi}}"
EVEN = "{requests: {memory: 200Mi}, limits: {memory: 200Mi, ephemeral-storage: 1Gi}}"
LIMIT = "{requests: {cpu: 1}, limits: {memory: 200Mi, ephemeral-storage: 1Gi}}"
NO_LIMIT = "{requests: {memory: 100Mi}, limits: {ephemeral-storage: 1Gi}}"
LARGE = "{requests: {memory: 1Gi}, limits: {memory: 1Gi, ephemeral-storage: 1Gi}}"
MEMORY_PRESSURE = "tolerations: [{key: node.kubernetes.io/memory-pressure, operator: Exists}]"


def found(text, options=None):
    return [finding for finding in check_text(text, options) if finding.check == "PQ118"]


def daemon_set(*containers, **fields):
    return pod(*containers, kind="DaemonSet", **fields)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(daemon_set(BURST), True, id="limit above request"),
        pytest.param(daemon_set(NO_LIMIT), True, id="no limit"),
        pytest.param(daemon_set(EVEN, BURST), True, id="one of two containers"),
        pytest.param(daemon_set(EVEN), False, id="request as large as the limit"),
        pytest.param(daemon_set(LIMIT), False, id="the API server copies the request"),
        pytest.param(daemon_set("{}"), False, id="asks for nothing: PQ103"),
        pytest.param(daemon_set(BURST, init=[LARGE]), False, id="an init container requests enough for all"),
        pytest.param(daemon_set(BURST, extra="priorityClassName: system-node-critical"), False, id="never evicted"),
        pytest.param(pod(BURST, kind="Deployment"), False, id="kept away by the taint"),
        pytest.param(pod(BURST, kind="Deployment", extra=MEMORY_PRESSURE), True, id="tolerates the taint"),
        pytest.param(pod("{}", kind="Deployment", extra=MEMORY_PRESSURE), True, id="tolerates it and asks for nothing"),
        pytest.param(pod(EVEN, kind="Deployment", extra=MEMORY_PRESSURE), False, id="tolerates it and stays within"),
        pytest.param(pod(BURST, kind="Deployment", extra="tolerations: [{operator: Exists}]"), True, id="everything"),
        pytest.param(
            pod(BURST, kind="Deployment", extra=MEMORY_PRESSURE.replace("}", ", effect: NoExecute}")),
            False,
            id="another effect",
        ),
        pytest.param(pod(BURST, extra=MEMORY_PRESSURE), False, id="a bare pod does not come back"),
    ],
)
def test_who_comes_back(text, expected):
    assert bool(found(text)) is expected


def test_whoever_is_expendable_may_flap():
    text = daemon_set(BURST).replace("{name: p}", "{name: p, annotations: {podqos.dev/restart-cost: none}}")
    assert found(text) == []


def test_the_patch_raises_each_request_to_its_limit():
    (finding,) = found(daemon_set(BURST, EVEN, BURST))
    path = "spec.template.spec.containers[{}].resources.requests.memory"
    assert [(edit.path, edit.value, edit.replaces) for edit in finding.patch.edits] == [
        (path.format(0), "200Mi", "100Mi"),
        (path.format(2), "200Mi", "100Mi"),
    ]
    assert finding.facts == ComesBack(None, (MayExceed("c0", "100Mi", "200Mi"), MayExceed("c2", "100Mi", "200Mi")))


def test_without_a_limit_somebody_has_to_choose():
    (finding,) = found(daemon_set(NO_LIMIT))
    assert finding.patch.needs_choice is Choice.RESOURCES
    assert "may use all available memory and requests 100Mi" in finding.facts.sentence(finding.container)


def test_the_role_of_the_toleration_is_named():
    (by_controller,) = found(daemon_set(BURST))
    assert "the DaemonSet controller makes it tolerate memory-pressure" in by_controller.facts.sentence("")
    (own,) = found(pod(BURST, kind="Deployment", extra=MEMORY_PRESSURE))
    assert "spec.template.spec.tolerations[0] tolerates memory-pressure" in own.facts.sentence("")
    assert own.patch.text == "spec.template.spec.containers[0].resources.requests.memory: 200Mi (was 100Mi)"


LIMITS_OF_THE_POD = "resources: {requests: {memory: 100Mi}, limits: {memory: 200Mi}}"
BY_CONTAINER = "{limits: {ephemeral-storage: 1Gi}}"


def test_amounts_of_the_pod_count_where_there_are_some():
    (finding,) = found(daemon_set(BY_CONTAINER, extra=LIMITS_OF_THE_POD))
    assert finding.facts == ComesBack(None, (MayExceed("", "100Mi", "200Mi"),))
    assert [edit.path for edit in finding.patch.edits] == ["spec.template.spec.resources.requests.memory"]
    assert found(daemon_set(BY_CONTAINER, extra=LIMITS_OF_THE_POD.replace("100Mi", "200Mi"))) == []


def test_amounts_of_the_pod_do_not_count_before_1_34():
    older = CheckOptions(profile=profile_for((1, 33)))
    assert found(daemon_set(EVEN, extra=LIMITS_OF_THE_POD), older) == []


DEFAULTS = """\
---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults}
spec: {limits: [{type: Container, default: {memory: 200Mi}, defaultRequest: {memory: 100Mi}}]}
"""


def test_what_a_limit_range_fills_in_counts():
    (finding,) = found(daemon_set("{requests: {cpu: 1}, limits: {ephemeral-storage: 1Gi}}") + DEFAULTS)
    assert finding.facts == ComesBack(None, (MayExceed("c0", "100Mi", "200Mi"),))
    assert [(edit.value, edit.replaces) for edit in finding.patch.edits] == [("200Mi", None)]
