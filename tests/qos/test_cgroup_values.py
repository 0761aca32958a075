"""What is set for pods and containers, and why: limits and their absence, shares, MemoryQoS, swap, groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from admission.pods import amounts, container, pod, resources
from podqos.admission.validation import validate_resources
from podqos.model.pod import QOSClass
from podqos.model.profile import LATEST, profile_for
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion, MemoryQoS, SwapBehavior
from podqos.qos.cgroup_values import Rule, container_values, pod_values
from podqos.qos.classes import classify
from strategies import accepted_pods, pods

MI, GI = 2**20, 2**30
NODE = CgroupSettings(node_memory_bytes=64 * GI)
V1 = replace(NODE, cgroup_version=CgroupVersion.V1)


def values_of(given_pod, settings=NODE, profile=LATEST):
    return pod_values(given_pod, classify(given_pod, profile).qos_class, settings, profile)


def first(given_pod, settings=NODE, profile=LATEST):
    qos_class = classify(given_pod, profile).qos_class
    return container_values(given_pod, given_pod.spec.containers[0], qos_class, settings, profile)


def decided(value):
    """Return the number and the rule of a value; None where that level has no such value."""
    return value and (value.amount, value.because.rule)


FULL = "cpu=1,memory=1Gi"


class TestPodLimits:
    def test_one_container_without_a_limit_leaves_the_pod_unlimited_and_is_named(self):
        found = values_of(pod(container("a", limits="memory=1Gi"), container("b"), container("c", limits="cpu=1")))
        memory, quota = found.memory_limit_bytes, found.cpu_quota_us
        assert (decided(memory), memory.because.containers) == ((None, Rule.NO_LIMIT), ("b", "c"))
        assert (decided(quota), quota.because.containers) == ((None, Rule.NO_LIMIT), ("a", "b"))
        assert found.cpu_period_us is None

    def test_limits_of_all_containers_add_up(self):
        found = values_of(pod(container("a", limits=FULL), container("b", requests="cpu=1", limits=FULL)))
        assert decided(found.memory_limit_bytes) == (2 * GI, Rule.POD_LIMIT)
        assert decided(found.cpu_quota_us) == (200_000, Rule.POD_LIMIT)

    def test_an_init_container_is_covered_by_the_sidecars_started_before_it(self):
        sidecar = container("proxy", limits=FULL, restart_policy="Always")
        main, bare = container("main", limits=FULL), container("setup")
        covered = values_of(pod(main, init=(sidecar, bare)))
        uncovered = values_of(pod(main, init=(bare, sidecar)))
        assert decided(covered.memory_limit_bytes) == (2 * GI, Rule.POD_LIMIT)
        assert uncovered.memory_limit_bytes.because.containers == ("setup",)

    def test_since_1_37_every_init_container_needs_a_limit_of_its_own(self):
        sidecar = container("proxy", limits=FULL, restart_policy="Always")
        given_pod = pod(container("main", limits=FULL), init=(sidecar, container("setup")))
        memory = values_of(given_pod, profile=profile_for((1, 37))).memory_limit_bytes
        assert (decided(memory), memory.because.containers) == ((None, Rule.NO_LIMIT), ("setup",))

    def test_a_pod_level_limit_holds_although_containers_have_none(self):
        found = values_of(pod(container("a"), resources=resources(limits="memory=1Gi")))
        assert decided(found.memory_limit_bytes) == (GI, Rule.POD_LIMIT)
        assert decided(found.cpu_quota_us) == (None, Rule.NO_LIMIT)

    def test_pod_level_resources_are_unknown_before_1_34(self):
        given_pod = pod(container("a", requests="cpu=1"), resources=resources(limits="memory=1Gi"))
        found = values_of(given_pod, profile=profile_for((1, 33)))
        assert decided(found.memory_limit_bytes) == (None, Rule.NO_LIMIT)

    def test_best_effort_has_the_least_share_and_no_limits(self):
        found = values_of(pod(container()))
        assert decided(found.cpu_shares) == (2, Rule.BEST_EFFORT)
        assert decided(found.memory_limit_bytes) == decided(found.cpu_quota_us) == (None, Rule.BEST_EFFORT)

    def test_overhead_counts(self):
        given_pod = pod(container(requests=FULL, limits=FULL), overhead=resources("cpu=100m,memory=64Mi").requests)
        found = values_of(given_pod)
        assert decided(found.cpu_shares) == (1126, Rule.POD_REQUEST)
        assert decided(found.memory_limit_bytes) == (GI + 64 * MI, Rule.POD_LIMIT)

    def test_process_limit_is_the_kubelets(self):
        found = values_of(pod(container()), replace(NODE, pod_pids_limit=512))
        assert decided(found.pids_limit) == (512, Rule.POD_PIDS_LIMIT)
        assert values_of(pod(container()), replace(NODE, pod_pids_limit=-1)).pids_limit is None


class TestContainers:
    @pytest.mark.parametrize(
        ("requests", "limits", "expected"),
        [
            pytest.param("cpu=500m", "cpu=2", (512, Rule.REQUEST), id="request"),
            pytest.param("", "cpu=2", (2048, Rule.LIMIT_AS_REQUEST), id="absent follows the limit"),
            pytest.param("cpu=0", "cpu=2", (2, Rule.NO_REQUEST), id="an explicit zero does not"),
            pytest.param("", "", (2, Rule.NO_REQUEST), id="nothing"),
        ],
    )
    def test_shares(self, requests, limits, expected):
        assert decided(first(pod(container(requests=requests, limits=limits))).cpu_shares) == expected

    def test_without_a_limit_the_pods_is_inherited(self):
        found = first(pod(container(requests="cpu=100m"), resources=resources(limits=FULL)))
        assert decided(found.memory_limit_bytes) == (GI, Rule.POD_LEVEL_LIMIT)
        assert decided(found.cpu_quota_us) == (100_000, Rule.POD_LEVEL_LIMIT)

    def test_a_limit_below_what_the_kernel_can_measure_is_raised(self):
        quota = first(pod(container(limits="cpu=1m"))).cpu_quota_us
        assert (quota.amount, quota.because.clamped) == (1000, True)

    @pytest.mark.parametrize("limit", ["10m", "1", "1500m"])
    def test_a_limit_the_kernel_can_measure_is_not_called_raised(self, limit):
        assert first(pod(container(limits=f"cpu={limit}"))).cpu_quota_us.because.clamped is False

    def test_quota_off_writes_no_quota_and_no_period(self):
        found = first(pod(container(limits="cpu=1")), replace(NODE, cpu_cfs_quota=False))
        assert decided(found.cpu_quota_us) == (None, Rule.QUOTA_DISABLED)
        assert found.cpu_period_us is None

    @pytest.mark.parametrize(
        ("minor", "single", "version", "expected"),
        [
            pytest.param(27, False, "v2", None, id="before 1.28"),
            pytest.param(28, False, "v2", (1, Rule.OOM_GROUP), id="since 1.28"),
            pytest.param(31, True, "v2", (1, Rule.OOM_GROUP), id="singleProcessOOMKill unknown before 1.32"),
            pytest.param(32, True, "v2", None, id="singleProcessOOMKill"),
            pytest.param(36, False, "v1", None, id="cgroup v1 kills one process"),
        ],
    )
    def test_death_as_a_group(self, minor, single, version, expected):
        settings = replace(NODE, single_process_oom_kill=single, cgroup_version=CgroupVersion(version))
        assert decided(first(pod(container()), settings, profile_for((1, minor))).memory_oom_group) == expected

    def test_huge_pages_of_sizes_not_asked_for_are_limited_to_nothing(self):
        settings = replace(NODE, hugepage_sizes_bytes=(GI, 2 * MI))
        found = first(pod(container(limits="hugepages-2Mi=4Mi")), settings).hugepage_limits
        assert [(limit.page_size_bytes, *decided(limit.limit_bytes)) for limit in found] == [
            (2 * MI, 4 * MI, Rule.LIMIT),
            (GI, 0, Rule.NOT_REQUESTED_SIZE),
        ]


class TestSwap:
    LIMITED = replace(NODE, swap_behavior=SwapBehavior.LIMITED_SWAP, node_swap_bytes=8 * GI)

    def test_a_burstable_container_gets_its_share(self):
        found = first(pod(container(requests="memory=4Gi")), self.LIMITED)
        assert decided(found.memory_swap_bytes) == (GI // 2, Rule.SWAP_SHARE)

    @pytest.mark.parametrize(
        ("given_pod", "settings", "rule"),
        [
            pytest.param(pod(container(requests=FULL)), NODE, Rule.NO_SWAP, id="the default"),
            pytest.param(
                pod(container(requests=FULL)),
                replace(LIMITED, cgroup_version=CgroupVersion.V1),
                Rule.NO_SWAP,
                id="cgroup v1",
            ),
            pytest.param(pod(container()), LIMITED, Rule.SWAP_NOT_BURSTABLE, id="BestEffort"),
            pytest.param(pod(container(requests=FULL, limits=FULL)), LIMITED, Rule.SWAP_NOT_BURSTABLE, id="Guaranteed"),
            pytest.param(
                pod(container(requests=FULL), priority=2_000_000_000), LIMITED, Rule.SWAP_CRITICAL, id="critical"
            ),
            pytest.param(pod(container(requests="cpu=1")), LIMITED, Rule.SWAP_NO_REQUEST, id="cpu only"),
            pytest.param(
                pod(container(requests="memory=1Gi", limits="memory=1Gi")), LIMITED, Rule.SWAP_FIXED, id="fixed memory"
            ),
            pytest.param(
                pod(container(requests="memory=65Gi")), LIMITED, Rule.SWAP_REQUEST_TOO_LARGE, id="more than the node"
            ),
        ],
    )
    def test_who_does_not_swap(self, given_pod, settings, rule):
        assert decided(first(given_pod, settings).memory_swap_bytes) == (0, rule)

    def test_without_swap_accounting_nothing_is_said(self):
        assert first(pod(container()), replace(self.LIMITED, swap_controller=False)).memory_swap_bytes is None


class TestMemoryQoS:
    TIERED = replace(NODE, memory_qos=MemoryQoS(0.9, "TieredReservation", 8 * GI))

    def test_guaranteed_is_protected_hard(self):
        given_pod = pod(container(requests=FULL, limits=FULL))
        found = first(given_pod, self.TIERED)
        assert decided(found.memory_min_bytes) == (GI, Rule.RESERVATION)
        assert (found.memory_low_bytes, found.memory_high_bytes) == (None, None)
        assert decided(values_of(given_pod, self.TIERED).memory_min_bytes) == (GI, Rule.RESERVATION)

    def test_burstable_is_protected_softly_and_slowed_near_its_limit(self):
        given_pod = pod(container(requests="memory=128Mi", limits="memory=2Gi"))
        found = first(given_pod, self.TIERED)
        assert decided(found.memory_low_bytes) == (128 * MI, Rule.RESERVATION)
        assert found.memory_min_bytes is None
        assert decided(found.memory_high_bytes) == (1_946_157_056, Rule.THROTTLING)
        assert decided(values_of(given_pod, self.TIERED).memory_low_bytes) == (128 * MI, Rule.RESERVATION)

    def test_without_a_limit_the_allocatable_stands_in(self):
        found = first(pod(container(requests="memory=1536Mi")), self.TIERED)
        assert decided(found.memory_high_bytes) == (7_892_000_768, Rule.THROTTLING_ALLOCATABLE)
        unknown = replace(NODE, memory_qos=MemoryQoS(0.9, "TieredReservation", 0))
        assert first(pod(container(requests="memory=1536Mi")), unknown).memory_high_bytes is None

    def test_a_limit_beyond_all_machines_is_no_trouble(self):
        found = first(pod(container(requests="memory=1Gi", limits="memory=1e400")), self.TIERED)
        assert found.memory_high_bytes.amount <= 2**63

    def test_no_reservation_is_written_as_zero_to_containers_only(self):
        settings = replace(NODE, memory_qos=MemoryQoS())
        given_pod = pod(container(requests=FULL, limits=FULL))
        found = first(given_pod, settings)
        assert decided(found.memory_min_bytes) == decided(found.memory_low_bytes) == (0, Rule.NO_RESERVATION)
        assert values_of(given_pod, settings).memory_min_bytes is None

    @pytest.mark.parametrize(("minor", "high"), [(36, None), (37, (7_730_937_856, Rule.THROTTLING_ALLOCATABLE))])
    def test_since_1_37_best_effort_is_slowed_before_the_node_is_full(self, minor, high):
        """0.9 × 8Gi = 7730941132.8 in whole pages."""
        assert decided(first(pod(container()), self.TIERED, profile_for((1, minor))).memory_high_bytes) == high

    @pytest.mark.parametrize(
        ("minor", "of_container", "of_pod"),
        [
            (36, (4_563_402_752, Rule.THROTTLING_ALLOCATABLE), None),
            (37, None, (1_610_612_736, Rule.THROTTLING_POD)),
        ],
    )
    def test_since_1_37_a_pod_level_limit_slows_the_pod_as_a_whole(self, minor, of_container, of_pod):
        """1.36: 512Mi + 0.5 × (8Gi − 512Mi) for the container without a limit. 1.37: 1Gi + 0.5 × 1Gi for the pod."""
        settings, profile = replace(NODE, memory_qos=MemoryQoS(0.5, "None", 8 * GI)), profile_for((1, minor))
        given_pod = pod(container(requests="memory=512Mi"), resources=resources("memory=1Gi", "memory=2Gi"))
        assert decided(first(given_pod, settings, profile).memory_high_bytes) == of_container
        assert decided(values_of(given_pod, settings, profile).memory_high_bytes) == of_pod

    @pytest.mark.parametrize(
        ("requests", "limits", "of_containers", "overhead", "high"),
        [
            pytest.param("memory=1Gi", "memory=1Gi", "", "", None, id="request and limit agree"),
            pytest.param("memory=1Gi", "", "memory=2Gi", "", 1_610_612_736, id="all containers are limited"),
            pytest.param("memory=1Gi", "", "", "", None, id="nothing is limited"),
            pytest.param("", "memory=2Gi", "", "", 1_073_741_824, id="nothing is requested"),
            pytest.param(
                "memory=1Gi", "memory=2Gi", "", "memory=1Gi", 2_684_354_560, id="overhead counts on both sides"
            ),
        ],
    )
    def test_where_a_pod_is_slowed_in_1_37(self, requests, limits, of_containers, overhead, high):
        settings = replace(NODE, memory_qos=MemoryQoS(0.5, "None", 8 * GI))
        given_pod = pod(
            container(limits=of_containers), resources=resources(requests, limits), overhead=amounts(overhead)
        )
        found = values_of(given_pod, settings, profile_for((1, 37))).memory_high_bytes
        assert (found and found.amount) == high

    def test_since_1_37_nothing_is_slowed_unless_a_factor_is_set(self):
        settings = replace(NODE, memory_qos=MemoryQoS(None, "None", 8 * GI))
        found = first(pod(container(requests="memory=1Gi", limits="memory=2Gi")), settings, profile_for((1, 37)))
        assert found.memory_high_bytes is None
        assert decided(found.memory_min_bytes) == decided(found.memory_low_bytes) == (0, Rule.NO_RESERVATION)

    @pytest.mark.parametrize("policy", ["None", "TieredReservation"])
    def test_up_to_1_35_every_request_was_protected_hard_whatever_the_class(self, policy):
        settings, profile = replace(NODE, memory_qos=MemoryQoS(0.9, policy, 8 * GI)), profile_for((1, 35))
        given_pod = pod(container(requests="memory=128Mi", limits="memory=2Gi"), container("b"))
        found, of_pod = first(given_pod, settings, profile), values_of(given_pod, settings, profile)
        assert decided(found.memory_min_bytes) == decided(of_pod.memory_min_bytes) == (128 * MI, Rule.RESERVATION)
        assert found.memory_low_bytes is of_pod.memory_low_bytes is None
        without = container_values(given_pod, given_pod.spec.containers[1], QOSClass.BURSTABLE, settings, profile)
        assert without.memory_min_bytes is without.memory_low_bytes is None

    def test_up_to_1_26_memory_high_was_a_share_of_the_limit(self):
        settings = replace(NODE, memory_qos=MemoryQoS(0.8, "None", 8 * GI))
        burstable = pod(container(requests="memory=128Mi", limits="memory=2Gi"))
        guaranteed = pod(container(requests=FULL, limits=FULL))
        assert decided(first(burstable, settings, profile_for((1, 26))).memory_high_bytes) == (
            1_717_986_918,
            Rule.THROTTLING,
        )
        assert first(guaranteed, settings, profile_for((1, 26))).memory_high_bytes is None

    def test_cgroup_v1_knows_nothing_of_it(self):
        found = first(pod(container(requests=FULL)), replace(self.TIERED, cgroup_version=CgroupVersion.V1))
        assert (found.memory_min_bytes, found.memory_low_bytes, found.memory_high_bytes) == (None, None, None)


@given(accepted_pods())
def test_no_container_is_allowed_more_memory_or_cpu_than_its_pod(accepted):
    """For every pod the API server accepts: where both have a limit, the child's is within the parent's."""
    assert not validate_resources(accepted)
    parent = values_of(accepted)
    qos_class = classify(accepted).qos_class
    for each in (*accepted.spec.containers, *accepted.spec.init_containers):
        child = container_values(accepted, each, qos_class, NODE)
        for limit in ("memory_limit_bytes", "cpu_quota_us"):
            above, below = getattr(parent, limit).amount, getattr(child, limit).amount
            assert above is None or below is None or below <= above


@given(pods())
def test_an_absent_limit_always_has_somebody_to_blame_or_a_class(given_pod):
    found = values_of(given_pod)
    for value in (found.memory_limit_bytes, found.cpu_quota_us):
        if value.amount is None and value.because.rule is Rule.NO_LIMIT:
            names = {each.name for each in (*given_pod.spec.containers, *given_pod.spec.init_containers)}
            assert set(value.because.containers) <= names
            assert value.because.containers


def test_the_recorded_class_wins_over_the_resources():
    """A pod that was Guaranteed when it was admitted stays where it is."""
    found = pod_values(pod(container()), QOSClass.GUARANTEED, NODE)
    assert decided(found.memory_limit_bytes) == (None, Rule.POD_LIMIT)
    assert found.memory_limit_bytes.because.containers == ()


class TestExclusiveCPUs:
    """``cpuManagerPolicy: static``."""

    STATIC = replace(NODE, static_cpu_manager=True)
    WHOLE = pod(container(requests="cpu=2,memory=1Gi", limits="cpu=2,memory=1Gi"))

    def test_a_whole_request_of_a_guaranteed_pod_has_cpus_of_its_own_and_no_quota(self):
        values = first(self.WHOLE, self.STATIC)
        assert decided(values.exclusive_cpus) == (2, Rule.EXCLUSIVE_CPUS)
        assert decided(values.cpu_quota_us) == (None, Rule.EXCLUSIVE_CPUS)
        assert decided(values_of(self.WHOLE, self.STATIC).cpu_quota_us) == (None, Rule.EXCLUSIVE_CPUS)

    def test_the_quota_stays_up_to_1_32(self):
        values = first(self.WHOLE, replace(self.STATIC, exclusive_cpu_quota=True))
        assert decided(values.exclusive_cpus) == (2, Rule.EXCLUSIVE_CPUS)
        assert decided(values.cpu_quota_us) == (200_000, Rule.LIMIT)

    @pytest.mark.parametrize(
        "given_pod",
        [
            pytest.param(pod(container(requests="cpu=1500m,memory=1Gi", limits="cpu=1500m,memory=1Gi")), id="fraction"),
            pytest.param(pod(container(requests="cpu=2,memory=1Gi", limits="cpu=2,memory=2Gi")), id="Burstable"),
            pytest.param(
                pod(
                    container(requests="cpu=2,memory=1Gi", limits="cpu=2,memory=1Gi"),
                    resources=resources("cpu=2,memory=1Gi", "cpu=2,memory=1Gi"),
                ),
                id="pod-level resources",
            ),
        ],
    )
    def test_others_share_the_pool(self, given_pod):
        values = first(given_pod, self.STATIC)
        assert values == first(given_pod)
        assert values.exclusive_cpus is None
        assert values_of(given_pod, self.STATIC) == values_of(given_pod)

    def test_one_container_with_cpus_of_its_own_frees_the_pod_of_its_quota_but_not_the_other_container(self):
        both = pod(
            container("a", requests="cpu=2,memory=1Gi", limits="cpu=2,memory=1Gi"),
            container("b", requests="cpu=500m,memory=1Gi", limits="cpu=500m,memory=1Gi"),
        )
        other = container_values(both, both.spec.containers[1], QOSClass.GUARANTEED, self.STATIC)
        assert decided(values_of(both, self.STATIC).cpu_quota_us) == (None, Rule.EXCLUSIVE_CPUS)
        assert decided(other.cpu_quota_us) == (50_000, Rule.LIMIT)
