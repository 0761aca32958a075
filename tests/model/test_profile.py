"""Version profiles: each change at its version, and clear errors for the rest."""

from __future__ import annotations

import pytest

from podqos.errors import InvalidOption
from podqos.model.profile import LATEST, NEWEST, OLDEST, parse_version, profile_for

CHANGES = [
    # (since minor, field, before, from then on)
    (9, "eviction_ranking", "qos-usage", "kubelet"),
    (11, "memory_pressure_toleration", False, True),
    (11, "qos_reserved_gate", False, True),
    (12, "conditions_become_taints", False, True),
    (12, "daemon_set_backoff", False, True),
    (14, "lowest_score_for", "nobody", "critical"),
    (14, "pid_ranking", "none", "priority"),
    (16, "init_containers_decide_class", False, True),
    (17, "disk_pressure_admits_only_critical", False, True),
    (19, "pid_ranking", "priority", "priority-and-count"),
    (20, "guaranteed_oom_score_adj", -998, -997),
    (22, "lowest_score_for", "critical", "node-critical"),
    (22, "hard_eviction_grace", "zero", "pod"),
    (26, "eviction_message_amounts", False, True),
    (28, "memory_oom_group", False, True),
    (30, "imagefs_inodes_default", False, True),
    (31, "hard_eviction_grace", "pod", "one-second"),
    (32, "sidecar_oom_score", False, True),
    (32, "single_process_oom_kill", False, True),
    (32, "soft_grace_capped_by_pod", False, True),
    (33, "in_place_resize", False, True),
    (34, "pod_level_resources", False, True),
]


@pytest.mark.parametrize(
    ("minor", "field", "before", "since"), CHANGES, ids=[f"1.{row[0]}-{row[1]}" for row in CHANGES]
)
def test_a_rule_changes_at_its_version(minor, field, before, since):
    assert getattr(profile_for((1, minor - 1)), field) == before
    assert getattr(profile_for((1, minor)), field) == since


def test_every_version_between_oldest_and_newest_has_a_profile():
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        assert profile_for((1, minor)).version == (1, minor)


@pytest.mark.parametrize("text", ["1.36", "v1.36", "v1.36.4", "1.36.0-rc.1"])
def test_versions_are_read_with_and_without_v_and_patch(text):
    assert parse_version(text) == LATEST


@pytest.mark.parametrize("text", ["", "1", "2.0", "1.7", "1.37", "latest", "1.x"])
def test_unknown_versions_are_refused_with_the_known_range(text):
    with pytest.raises(InvalidOption, match=r"1\.8 to 1\.36"):
        parse_version(text)
