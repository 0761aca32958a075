"""How controllers bring a new template to their pods."""

from __future__ import annotations

import pytest

from podqos.advice.sizing.rollouts import RolloutKind, Share, strategy_of


@pytest.mark.parametrize(
    ("kind", "spec", "replicas", "expected"),
    [
        ("Deployment", {}, 4, (RolloutKind.ROLLING, Share(1, 1))),
        ("Deployment", {}, 1, (RolloutKind.ROLLING, Share(1, 0))),
        ("Deployment", {}, 10, (RolloutKind.ROLLING, Share(3, 2))),
        ("Deployment", {"strategy": {"type": "Recreate"}}, 3, (RolloutKind.RECREATE, Share(0, 3))),
        (
            "Deployment",
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}},
            4,
            # Both would be zero: then one may be missing.
            (RolloutKind.ROLLING, Share(0, 1)),
        ),
        (
            "Deployment",
            {"strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}},
            3,
            (RolloutKind.ROLLING, Share(2, 0)),
        ),
        ("StatefulSet", {}, 5, (RolloutKind.ROLLING, Share(0, 1))),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, 5, (RolloutKind.ON_DELETE, Share(0, 0))),
        ("DaemonSet", {}, 5, (RolloutKind.ROLLING, Share(0, 1))),
        (
            "DaemonSet",
            {"updateStrategy": {"rollingUpdate": {"maxSurge": "20%", "maxUnavailable": 0}}},
            5,
            (RolloutKind.ROLLING, Share(1, 0)),
        ),
        ("ReplicaSet", {}, 2, (RolloutKind.ON_DELETE, Share(0, 0))),
        ("Rollout", {"strategy": {"canary": {}}}, 4, (RolloutKind.OTHER, Share(0, 0))),
        ("CronJob", {}, 1, (RolloutKind.NEXT_RUN, Share(0, 0))),
        ("Job", {}, 1, (RolloutKind.NEXT_RUN, Share(0, 0))),
        ("Pod", {}, 1, (RolloutKind.REPLACED, Share(0, 1))),
    ],
)
def test_what_there_is_more_and_fewer_of_meanwhile(kind, spec, replicas, expected):
    assert strategy_of(kind, {"spec": spec}, replicas) == expected
