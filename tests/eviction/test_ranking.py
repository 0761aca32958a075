from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eviction.nodes import MI, by_uid, guaranteed, pod, using
from podqos.eviction.ranking import Policy, RankedPod, Ranking, Spared, Tier, can_rank, rank, ranking_keys
from podqos.eviction.signals import Layout, RankKey, Signal
from podqos.model.pod import QOSClass
from podqos.model.profile import parse_version
from podqos.model.stats import PodStats

MEMORY = Ranking(Signal.MEMORY)
TIERS = Ranking(Signal.MEMORY, policy=Policy.QOS_TIERS)
CLASSES = Ranking(Signal.MEMORY, policy=Policy.QOS_USAGE)


def names(ranked: tuple[RankedPod, ...]) -> list[str]:
    return [entry.pod.metadata.name for entry in ranked]


class TestABestEffortPodWithPriorityOneMillion:
    """Beside a Burstable pod of priority 0: who goes first depends on the policy alone."""

    precious = pod("precious", priority=1_000_000)
    ordinary = pod("ordinary", "memory=64Mi", priority=0)

    def order(self, policy: Policy, ordinary_mi: int) -> list[str]:
        stats = by_uid(using(self.precious, 100), using(self.ordinary, ordinary_mi))
        return names(rank([self.precious, self.ordinary], stats, Ranking(Signal.MEMORY, policy=policy)))

    def test_outlives_under_kubelet_a_pod_that_is_over_its_request_too(self):
        assert self.order(Policy.KUBELET, ordinary_mi=65) == ["ordinary", "precious"]

    def test_goes_first_under_kubelet_when_the_other_keeps_within_its_request(self):
        """A pod that requests nothing is over its request as soon as it uses anything."""
        assert self.order(Policy.KUBELET, ordinary_mi=64) == ["precious", "ordinary"]

    @pytest.mark.parametrize("ordinary_mi", [1, 64, 65, 999])
    @pytest.mark.parametrize("policy", [Policy.QOS_TIERS, Policy.QOS_USAGE])
    def test_goes_first_wherever_the_class_decides(self, policy, ordinary_mi):
        assert self.order(policy, ordinary_mi) == ["precious", "ordinary"]


def test_kubelet_ranks_by_usage_over_request_then_priority_then_excess():
    within = pod("within", "memory=1Gi", priority=-5)
    low = pod("low", "memory=64Mi", priority=1)
    high = pod("high", priority=7)
    hog = pod("hog", "memory=200Mi", priority=1)
    unknown = pod("unknown", "memory=1Gi", priority=9)
    stats = by_uid(using(within, 500), using(low, 100), using(high, 900), using(hog, 300))
    ranked = rank([within, low, high, hog, unknown], stats, MEMORY)
    assert names(ranked) == ["unknown", "hog", "low", "high", "within"]
    assert [entry.before_next_by for entry in ranked] == [
        RankKey.NO_STATISTICS,
        RankKey.EXCESS,
        RankKey.PRIORITY,
        RankKey.OVER_REQUEST,
        None,
    ]


def test_the_numbers_that_decide_are_in_the_result():
    burstable = pod("burstable", "memory=64Mi", priority=5)
    (entry,) = rank([burstable], by_uid(using(burstable, 100)), MEMORY)
    assert (entry.usage, str(entry.request), entry.priority) == (100 * MI, "64Mi", 5)
    assert entry.excess_nanos == 36 * MI * 10**9
    assert entry.over_request
    assert entry.qos_class is None


def test_without_statistics_a_pod_is_over_nothing():
    (entry,) = rank([pod("unknown", "memory=64Mi")], {}, MEMORY)
    assert (entry.has_statistics, entry.usage, entry.excess_nanos, entry.over_request) == (False, 0, 0, False)


def test_the_class_plays_no_part_under_kubelet():
    """A Guaranteed pod over its request goes before a BestEffort one that uses less over nothing."""
    safe, cheap = guaranteed("safe"), pod("cheap")
    ranked = rank([cheap, safe], by_uid(using(safe, 164), using(cheap, 50)), MEMORY)
    assert names(ranked) == ["safe", "cheap"]


@pytest.mark.parametrize("ranking", [MEMORY, CLASSES], ids=["kubelet", "qos-usage"])
def test_equals_keep_the_order_of_the_input(ranking):
    pods = [pod(name) for name in ("c", "a", "b")]
    ranked = rank(pods, by_uid(*(using(entry, 10) for entry in pods)), ranking)
    assert names(ranked) == ["c", "a", "b"]
    assert [entry.before_next_by for entry in ranked] == [RankKey.INPUT_ORDER, RankKey.INPUT_ORDER, None]


def test_equals_go_by_namespace_and_name_under_qos_tiers():
    pods = [pod(name) for name in ("c", "a", "b")]
    ranked = rank(pods, by_uid(*(using(entry, 10) for entry in pods)), TIERS)
    assert names(ranked) == ["a", "b", "c"]
    assert ranked[0].before_next_by is RankKey.NAME


class TestQosTiers:
    """The order of the second document: class first, priority inside the tier, then usage."""

    def test_tiers_come_in_order(self):
        best_effort, within = pod("best-effort"), pod("within", "memory=1Gi")
        over, safe = pod("over", "memory=64Mi"), guaranteed("safe")
        stats = by_uid(using(best_effort, 1), using(within, 900), using(over, 65), using(safe, 64))
        ranked = rank([safe, within, over, best_effort], stats, TIERS)
        assert names(ranked) == ["best-effort", "over", "within", "safe"]
        assert [entry.tier for entry in ranked] == list(Tier)
        assert ranked[-1].qos_class is QOSClass.GUARANTEED

    def test_priority_comes_before_usage_inside_a_tier(self):
        small, large = pod("small", priority=0), pod("large", priority=1000)
        assert names(rank([large, small], by_uid(using(small, 1), using(large, 900)), TIERS)) == ["small", "large"]

    def test_best_effort_pods_go_by_usage(self):
        small, large = pod("a-small"), pod("large")
        ranked = rank([small, large], by_uid(using(small, 1), using(large, 900)), TIERS)
        assert names(ranked) == ["large", "a-small"]
        assert ranked[0].before_next_by is RankKey.TIER_USAGE

    def test_burstable_pods_over_their_request_go_by_how_many_times_over(self):
        """300 of 100 is further over than 1000 of 500, though it is less."""
        twice, once = pod("twice", "memory=100Mi"), pod("once", "memory=500Mi")
        stats = by_uid(using(twice, 300), using(once, 1000))
        assert names(rank([once, twice], stats, TIERS)) == ["twice", "once"]

    def test_no_request_counts_as_infinitely_far_over(self):
        none, far = pod("none", "cpu=1"), pod("far", "memory=1Mi")
        assert names(rank([far, none], by_uid(using(none, 1), using(far, 900)), TIERS)) == ["none", "far"]

    def test_guaranteed_pods_are_spared_unless_the_threshold_is_hard(self):
        safe = guaranteed("safe")
        stats = by_uid(using(safe, 10))
        soft = Ranking(Signal.MEMORY, policy=Policy.QOS_TIERS, hard=False)
        assert rank([safe], stats, soft)[0].spared is Spared.GUARANTEED
        assert rank([safe], stats, TIERS)[0].spared is None

    def test_a_burstable_pod_without_statistics_counts_as_over_its_request(self):
        unknown, over = pod("unknown", "memory=1Gi"), pod("over", "memory=1Mi")
        assert names(rank([over, unknown], by_uid(using(over, 900)), TIERS)) == ["unknown", "over"]


class TestQosUsage:
    """What the kubelet did up to 1.8."""

    def test_class_then_usage_over_request(self):
        best_effort, hog = pod("best-effort"), pod("hog", "memory=64Mi", priority=-9)
        modest, safe = pod("modest", "memory=1Gi"), guaranteed("safe")
        stats = by_uid(using(best_effort, 1), using(hog, 900), using(modest, 950), using(safe, 64))
        assert names(rank([safe, modest, hog, best_effort], stats, CLASSES)) == ["best-effort", "hog", "modest", "safe"]

    def test_disk_goes_by_raw_usage(self):
        """A request for ephemeral storage buys nothing."""
        paid, free = pod("paid", "cpu=1,ephemeral-storage=1Gi"), pod("free", "cpu=1")
        stats = by_uid(using(paid, logs=20), using(free, logs=10))
        ranked = rank([free, paid], stats, Ranking(Signal.NODEFS, policy=Policy.QOS_USAGE))
        assert names(ranked) == ["paid", "free"]

    def test_is_the_policy_of_version_1_8(self):
        assert ranking_keys(Ranking(Signal.MEMORY, profile=parse_version("1.8"))) == ranking_keys(CLASSES)
        assert ranking_keys(Ranking(Signal.MEMORY, profile=parse_version("1.9"))) == ranking_keys(MEMORY)


@pytest.mark.parametrize(
    "critical",
    [
        pod("static", annotations={"kubernetes.io/config.source": "file"}),
        pod("mirror", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("system", priority=2_000_000_000),
    ],
    ids=lambda critical: critical.metadata.name,
)
@pytest.mark.parametrize("policy", Policy)
def test_critical_pods_are_ranked_but_spared(critical, policy):
    (entry,) = rank([critical], {}, Ranking(Signal.MEMORY, policy=policy))
    assert entry.spared is Spared.CRITICAL


@pytest.mark.parametrize("policy", Policy)
def test_a_pod_the_kubelet_got_from_the_api_server_is_not_spared(policy):
    ordinary = pod("ordinary", annotations={"kubernetes.io/config.source": "api"}, priority=1_999_999_999)
    (entry,) = rank([ordinary], {}, Ranking(Signal.MEMORY, policy=policy))
    assert entry.spared is None


class TestDisk:
    """The same criteria with what a pod keeps on the disk in question."""

    writer = pod("writer", "ephemeral-storage=50")
    logger = pod("logger", "ephemeral-storage=50")
    stats = by_uid(using(writer, rootfs=100, logs=1), using(logger, rootfs=1, logs=90))

    @pytest.mark.parametrize(
        ("signal", "layout", "first"),
        [
            (Signal.NODEFS, Layout.SINGLE, "writer"),
            (Signal.NODEFS, Layout.DEDICATED, "logger"),
            (Signal.IMAGEFS, Layout.DEDICATED, "writer"),
            (Signal.CONTAINERFS, Layout.DEDICATED, "writer"),
            (Signal.NODEFS, Layout.SPLIT, "writer"),
            (Signal.IMAGEFS, Layout.SPLIT, "logger"),
        ],
    )
    def test_what_counts_depends_on_the_layout(self, signal, layout, first):
        """On a split layout nobody uses imagefs, so the order of the input stays."""
        assert names(rank([self.logger, self.writer], self.stats, Ranking(signal, layout)))[0] == first

    def test_inodes_have_no_request_yet_the_storage_request_is_subtracted(self):
        """Upstream's own mixture: any use is over, and 100 inodes minus 50 bytes compare with 90 minus 0."""
        other = pod("other")
        stats = {**self.stats, **by_uid(using(other, rootfs=60))}
        ranked = rank([self.writer, self.logger, other], stats, Ranking(Signal.NODEFS_INODES))
        assert all(entry.over_request for entry in ranked)
        assert names(ranked) == ["other", "writer", "logger"]


class TestProcessIds:
    """Priority first; requests play no role."""

    few, many = pod("few", priority=0), pod("many", priority=5)
    stats = by_uid(using(few, processes=1), using(many, processes=900))
    ranking = Ranking(Signal.PID)

    def test_priority_comes_before_the_count(self):
        assert names(rank([self.many, self.few], self.stats, self.ranking)) == ["few", "many"]

    def test_the_count_decides_among_equals_since_1_19(self):
        calm, busy = pod("calm"), pod("busy")
        stats = by_uid(using(calm, processes=1), using(busy, processes=2))
        assert names(rank([calm, busy], stats, self.ranking)) == ["busy", "calm"]
        before = Ranking(Signal.PID, profile=parse_version("1.18"))
        assert names(rank([calm, busy], stats, before)) == ["calm", "busy"]

    def test_nobody_is_ranked_up_to_1_13(self):
        assert not can_rank(Ranking(Signal.PID, profile=parse_version("1.13")))
        assert can_rank(Ranking(Signal.MEMORY, profile=parse_version("1.13")))
        assert can_rank(Ranking(Signal.PID, profile=parse_version("1.14")))

    def test_without_statistics_comes_first_among_equal_priority_only(self):
        unknown, low = pod("unknown", priority=5), pod("low", priority=0)
        stats = by_uid(using(low, processes=1), using(self.many, processes=900))
        assert names(rank([self.many, unknown, low], stats, self.ranking)) == ["low", "unknown", "many"]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list, dict[str, PodStats]]:
    """Pods with requests, priorities and, mostly, statistics."""
    pods, stats = [], []
    for index in range(draw(st.integers(0, 12))):
        request = draw(st.sampled_from(["", "cpu=1", "memory=1Mi", "memory=64Mi", "memory=1Gi,ephemeral-storage=9"]))
        limit = request if draw(st.booleans()) and request.startswith("memory=6") else ""
        entry = pod(f"p{index}", request, limit, priority=draw(st.sampled_from([None, -1, 0, 10**6, 2 * 10**9])))
        pods.append(entry)
        if draw(st.integers(0, 5)):
            figure = st.integers(0, 200)
            stats.append(using(entry, draw(figure), rootfs=draw(figure), logs=draw(figure), processes=draw(figure)))
    return pods, by_uid(*stats)


RANKINGS = st.builds(Ranking, st.sampled_from(Signal), st.sampled_from(Layout), st.sampled_from(Policy), st.booleans())


@given(crowds(), RANKINGS)
def test_a_ranking_is_a_permutation(crowd, ranking):
    pods, stats = crowd
    assert sorted(names(rank(pods, stats, ranking))) == sorted(entry.metadata.name for entry in pods)


@given(crowds(), RANKINGS, st.randoms(use_true_random=False))
def test_the_order_of_the_input_matters_only_among_equals(crowd, ranking, chance):
    """The order is total: shuffled pods come out the same, up to those that no criterion tells apart."""
    pods, stats = crowd
    ranked = rank(pods, stats, ranking)
    shuffled = list(pods)
    chance.shuffle(shuffled)
    assert groups(rank(shuffled, stats, ranking)) == groups(ranked)


def groups(ranked: tuple[RankedPod, ...]) -> list[set[str]]:
    result: list[set[str]] = [set()]
    for entry in ranked:
        result[-1].add(entry.pod.metadata.name)
        if entry.before_next_by is not RankKey.INPUT_ORDER:
            result.append(set())
    return result


@given(crowds(), st.data())
def test_more_memory_never_makes_a_pod_rank_later_under_kubelet(crowd, data):
    pods, stats = crowd
    with_stats = [entry for entry in pods if entry.metadata.uid in stats]
    if not with_stats:
        return
    chosen = data.draw(st.sampled_from(with_stats))
    before = names(rank(pods, stats, MEMORY)).index(chosen.metadata.name)
    now_mi = stats[chosen.metadata.uid].memory.working_set_bytes // MI + data.draw(st.integers(0, 2000))
    after = names(rank(pods, {**stats, **by_uid(using(chosen, now_mi))}, MEMORY)).index(chosen.metadata.name)
    assert after <= before


@given(crowds(), st.sampled_from([MEMORY, TIERS]), st.data())
def test_a_higher_priority_never_makes_a_pod_rank_earlier(crowd, ranking, data):
    pods, stats = crowd
    if not pods:
        return
    place = data.draw(st.integers(0, len(pods) - 1))
    chosen = pods[place]
    spec = replace(chosen.spec, priority=(chosen.spec.priority or 0) + 1)
    raised = [*pods[:place], replace(chosen, spec=spec), *pods[place + 1 :]]
    name = chosen.metadata.name
    assert names(rank(raised, stats, ranking)).index(name) >= names(rank(pods, stats, ranking)).index(name)
