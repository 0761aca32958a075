"""How far workloads are from what is advised, in the steps of krr."""

from __future__ import annotations

import pytest

from podqos.advice.sizing.applying import ContainerAdvice
from podqos.advice.sizing.severity import Severity, distance
from podqos.advice.sizing.sizing import Risk
from podqos.model.quantity import Quantity


def advice(before: dict[str, str], after: dict[str, str]) -> ContainerAdvice:
    old, new = ({name: Quantity.parse(text) for name, text in amounts.items()} for amounts in (before, after))
    return ContainerAdvice(
        container="web",
        requests_before=old,
        limits_before={},
        requests=new,
        limits={},
        memory_bytes=None,
        cpu_milli=None,
        risk=Risk(),
        doubts=(),
        needs_choice=False,
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, Severity.GOOD),
        ({"cpu": "1"}, {"cpu": "1"}, Severity.GOOD),
        ({"cpu": "1"}, {"cpu": "901m"}, Severity.GOOD),
        ({"cpu": "1"}, {"cpu": "900m"}, Severity.OK),
        ({"cpu": "1"}, {"cpu": "750m"}, Severity.WARNING),
        ({"cpu": "1"}, {"cpu": "500m"}, Severity.CRITICAL),
        ({"memory": "1Gi"}, {"memory": "1123Mi"}, Severity.GOOD),
        ({"memory": "1Gi"}, {"memory": "1124Mi"}, Severity.OK),
        ({"memory": "1Gi"}, {"memory": "1274Mi"}, Severity.WARNING),
        ({"memory": "1Gi"}, {"memory": "1524Mi"}, Severity.CRITICAL),
        ({}, {"memory": "10Mi"}, Severity.WARNING),
        ({"cpu": "1"}, {}, Severity.WARNING),
    ],
)
def test_the_steps_are_those_of_krr(before, after, expected):
    assert distance([advice(before, after)]).severity is expected


def test_the_worst_container_counts_and_is_named():
    found = distance([advice({"cpu": "1"}, {"cpu": "900m"}), advice({"memory": "1Gi"}, {"memory": "3Gi"})])
    assert (found.severity, found.field) == (Severity.CRITICAL, "requests.memory")
    assert (str(found.before), str(found.advised)) == ("1Gi", "3Gi")
