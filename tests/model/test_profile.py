"""Version profiles: each change at its version, and clear errors for the rest."""

from __future__ import annotations

import pytest

from podqos.errors import InvalidArgument
from podqos.model.profile import LATEST, NEWEST, OLDEST, RECORDED, Profile, parse_version, profile_for

CHANGES = [
    # (since minor, field, before, from then on)
    (9, "eviction_ranking", "qos-usage", "kubelet"),
    (11, "memory_pressure_toleration", False, True),
    (11, "qos_reserved_gate", False, True),
    (12, "conditions_become_taints", False, True),
    (12, "daemon_set_backoff", False, True),
    (12, "has_kubelet_arguments", True, False),
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
    (28, "pods_swap", "always", "by-gate"),
    (30, "imagefs_inodes_default", False, True),
    (30, "pods_swap", "by-gate", "by-setting"),
    (30, "validating_admission_policies", False, True),
    (31, "hard_eviction_grace", "pod", "one-second"),
    (32, "sidecar_oom_score", False, True),
    (32, "single_process_oom_kill", False, True),
    (32, "soft_grace_capped_by_pod", False, True),
    (33, "in_place_resize", False, True),
    (22, "memory_qos", "absent", "alpha"),
    (27, "only_preempted_delay_preemption", False, True),
    (27, "memory_throttling_factor", 0.8, 0.9),
    (27, "memory_high_above_request", False, True),
    (33, "balance_ignores_best_effort", False, True),
    (33, "exclusive_cpu_quota", True, False),
    (33, "istio_sidecars_are_native", False, True),
    (34, "mutating_admission_policies", None, "v1beta1"),
    (34, "ending_victims_keep_nominations", False, True),
    (34, "pod_level_resources", False, True),
    (34, "memory_limit_decrease", False, True),
    (34, "namespace_selectors_leak", False, True),
    (35, "max_container_restart_period", False, True),
    (35, "container_restart_rules", False, True),
    (36, "balance_compares", False, True),
    (36, "declared_features", False, True),
    (36, "image_volumes_count", False, True),
    (36, "init_container_resize", False, True),
    (36, "memory_reservation_policy", False, True),
    (36, "mutating_admission_policies", "v1beta1", "v1"),
    (36, "pod_level_resize", False, True),
    (36, "resize_asks_node", False, True),
    (36, "restart_all_containers", False, True),
    (37, "broken_budget_ends_count", False, True),
    (37, "empty_pod_level_decides_class", True, False),
    (37, "hugepage_aware_eviction", False, True),
    (37, "image_volumes_raise_maximum", False, True),
    (37, "init_limits_with_sidecars", True, False),
    (37, "memory_high_of_pods", False, True),
    (37, "memory_low_of_node", False, True),
    (37, "memory_qos", "alpha", "beta"),
    (37, "memory_throttling_factor", 0.9, None),
    (37, "namespace_selectors_leak", True, False),
    (37, "pod_level_defaults_last", False, True),
    (37, "sidecar_storage_limits", False, True),
    (37, "unclaimed_request_below_zero", True, False),
]


@pytest.mark.parametrize(
    ("minor", "field", "before", "since"), CHANGES, ids=[f"1.{row[0]}-{row[1]}" for row in CHANGES]
)
def test_a_rule_changes_at_its_version(minor, field, before, since):
    assert getattr(profile_for((1, minor - 1)), field) == before
    assert getattr(profile_for((1, minor)), field) == since


def test_every_field_changes_at_some_version_of_the_table_and_at_no_other():
    """A change without a row here would be one that no test holds."""
    fields = [name for name in Profile.__struct_fields__ if name != "version"]
    changed = {
        (minor, name)
        for minor in range(OLDEST[1] + 1, NEWEST[1] + 1)
        for name in fields
        if getattr(profile_for((1, minor)), name) != getattr(profile_for((1, minor - 1)), name)
    }
    assert changed == {(row[0], row[1]) for row in CHANGES}
    assert {name for _, name in changed} == {*fields}


def test_the_default_is_the_newest_version_with_recorded_answers_and_newer_ones_are_approximate():
    assert LATEST.version == RECORDED < NEWEST
    assert not LATEST.is_approximate
    assert profile_for(NEWEST).is_approximate


def test_every_version_between_oldest_and_newest_has_a_profile():
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        assert profile_for((1, minor)).version == (1, minor)


@pytest.mark.parametrize("text", ["1.36", "v1.36", "v1.36.4", "1.36.0-rc.1"])
def test_versions_are_read_with_and_without_v_and_patch(text):
    assert parse_version(text) == LATEST


@pytest.mark.parametrize("text", ["", "1", "2.0", "1.7", "1.38", "latest", "1.x"])
def test_unknown_versions_are_refused_with_the_known_range(text):
    with pytest.raises(InvalidArgument, match=r"1\.8 to 1\.37"):
        parse_version(text)
