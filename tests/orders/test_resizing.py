"""Whether running pods can get the resources of a new version in place, by Kubernetes version."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container, pod, resources
from podqos.model.pod import Pod, ResizePolicy
from podqos.model.profile import LATEST, parse_version
from podqos.orders.versions import Resizing, resizing

RESTARTS = (ResizePolicy("memory", "RestartContainer"),)


def one(requests: str, limits: str = "", *, restarts: bool = False) -> Pod:
    """Make a pod of a container ``app``."""
    app = container("app", requests=requests, limits=limits)
    return pod(replace(app, resize_policy=RESTARTS) if restarts else app)


def outcome(before: Pod, after: Pod, version: str = "1.36") -> Resizing | None:
    """Return only what it takes."""
    verdict = resizing(before, after, parse_version(version))
    return None if verdict is None else verdict.outcome


def test_a_change_of_amounts_within_the_class_is_made_in_place():
    assert outcome(one("cpu=1,memory=1Gi"), one("cpu=2,memory=2Gi")) is Resizing.IN_PLACE


def test_no_change_of_resources_asks_for_no_resize():
    assert resizing(one("cpu=1"), replace(one("cpu=1")), LATEST) is None


def test_a_resize_policy_restarts_the_container_only_for_its_resource():
    before = one("cpu=1,memory=1Gi", restarts=True)
    memory = resizing(before, one("cpu=1,memory=2Gi", restarts=True), LATEST)
    assert memory is not None
    assert (memory.outcome, memory.restarts) == (Resizing.RESTART, ("app",))
    assert outcome(before, one("cpu=2,memory=1Gi", restarts=True)) is Resizing.IN_PLACE


def test_the_class_must_stay():
    verdict = resizing(one("cpu=1,memory=1Gi", "cpu=1,memory=1Gi"), one("cpu=1,memory=1Gi", "cpu=1,memory=2Gi"), LATEST)
    assert verdict is not None
    assert verdict.outcome is Resizing.REFUSED
    assert verdict.reasons == ("Pod QOS Class may not change as a result of resizing",)


def test_a_request_cannot_be_taken_away():
    verdict = resizing(one("cpu=1,memory=1Gi"), one("cpu=1"), LATEST)
    assert verdict is not None
    assert verdict.reasons == ("resource requests cannot be removed",)


@pytest.mark.parametrize(
    ("version", "restarts", "expected"),
    [
        ("1.32", False, Resizing.REFUSED),
        ("1.33", False, Resizing.REFUSED),
        ("1.33", True, Resizing.RESTART),
        ("1.34", False, Resizing.IN_PLACE),
    ],
)
def test_lowering_a_memory_limit_needs_a_restart_before_1_34(version, restarts, expected):
    before = one("memory=1Gi", "memory=4Gi", restarts=restarts)
    assert outcome(before, one("memory=1Gi", "memory=2Gi", restarts=restarts), version) is expected


def test_before_1_33_nothing_is_resized_in_place():
    verdict = resizing(one("cpu=1"), one("cpu=2"), parse_version("1.32"))
    assert verdict is not None
    assert verdict.reasons == ("in-place resize is on by default since 1.33",)


@pytest.mark.parametrize(("version", "expected"), [("1.35", Resizing.REFUSED), ("1.36", Resizing.IN_PLACE)])
def test_pod_level_resources_are_resized_since_1_36(version, expected):
    before, after = (pod(container("app"), resources=resources("memory=" + each)) for each in ("1Gi", "2Gi"))
    assert outcome(before, after, version) is expected


def test_an_added_container_does_not_hide_the_resize_of_the_others():
    before, after = one("cpu=1"), one("cpu=2")
    with_sidecar = replace(after, spec=replace(after.spec, containers=(*after.spec.containers, container("logger"))))
    assert outcome(before, with_sidecar) is Resizing.IN_PLACE
