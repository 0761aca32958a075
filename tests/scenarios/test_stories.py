"""What the shipped scenarios show, worked out by hand beforehand.

Each test states its arithmetic; none of it is taken from a run. Pages have 4096 bytes. A node of 64Gi has 16,777,216
pages, a thousandth of which is 16,777; one of 16Gi has 4,194,304, a thousandth is 4,194.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
import yaml

from podqos.agent.reasons import OOMLevel
from podqos.reading.scenario_files import load_scenario
from podqos.runs import run as library
from podqos.text.journal import line
from scenarios.runs import GI, MI, PAGE, ROOT, entries, kills, run_of, told

SCENARIOS = ROOT / "scenarios"

# What the kernel keeps of a machine of 16Gi: the min watermark.
KEPT_16GI = 132.9 * MI


class TestRace:
    """58Gi of 64Gi are in use; analytics-pipeline wants 6Gi more within a second."""

    def test_the_kernel_kills_twice_and_the_kubelet_nobody(self):
        """With 50Mi left at 1.0 s, and with the 250Mi of log-collector used up at 2.1 s."""
        assert kills("race") == [
            (1.0, "OOMKilled", "log-collector-worker-1"),
            (2.1, "OOMKilled", "analytics-pipeline-0"),
        ]

    def test_the_numbers_of_the_first_kill(self):
        """250Mi are 64,000 pages; 1000 × 16,777 + 64,000.

        Each of the two analytics processes has (2048Mi + 6Gi − 50Mi) ÷ 2 = 4071Mi, which are 1,042,176 pages:
        937 × 16,777 + 1,042,176.
        """
        first, _ = (entry.because for entry in entries("race", "OOMKilled"))
        assert (first.level, first.oom_score_adj, first.used_pages) == (OOMLevel.NODE, 1000, 64_000)
        assert (first.points, first.runner_up_points) == (16_841_000, 16_762_225)
        assert first.runner_up_pod == "batch/analytics-pipeline-0"
        assert first.freed_bytes == 250 * MI

    def test_the_analytics_container_dies_as_a_whole(self):
        """(2048Mi + 6Gi − 50Mi + 250Mi) ÷ 2 = 4196Mi: 937 × 16,777 + 1,074,176."""
        _, second = (entry.because for entry in entries("race", "OOMKilled"))
        assert (second.oom_score_adj, second.killed_processes, second.as_group) == (937, 2, True)
        assert (second.used_pages, second.points) == (1_074_176, 16_794_225)

    def test_whom_the_kubelet_would_have_evicted(self):
        """Both are over their requests: first the lower priority; then only analytics-pipeline is left."""
        first, second = (entry.because.would_evict for entry in entries("race", "OOMKilled"))
        assert first.pod == "monitoring/log-collector-worker-1"
        assert second.pod == "batch/analytics-pipeline-0"
        assert first.threshold_met
        assert second.threshold_met

    def test_both_come_back_after_the_second_kill(self):
        """The kubelet notices at the next full second, and a start takes 1.5 s."""
        assert told("race", "Restarted") == [
            (3.5, "Restarted", "log-collector-worker-1"),
            (4.5, "Restarted", "analytics-pipeline-0"),
        ]

    def test_at_ten_seconds_there_is_no_pressure(self):
        assert told("race", "Observed", "ConditionChanged") == [(10.0, "Observed", "worker-1")]
        (look,) = entries("race", "Observed")
        assert line(look) == "kubelet checked memory: 6Gi available, nothing to do"

    def test_what_serves_readers_is_never_touched(self):
        changed = {entry.pod for entry in run_of("race").entries if entry.time_us > 0 and entry.pod is not None}
        assert changed == {"monitoring/log-collector-worker-1", "batch/analytics-pipeline-0"}


class TestAccidentalBurstable:
    """Daemons grow by 51.2Mi a second from 20 s on; the kubelet evicts below 1Gi and looks every 10 s."""

    def test_article_service_goes_before_the_jobs_that_fill_the_node(self):
        """3 + 4.5 + 52.25 = 59.75Gi are in use; 3.25Gi more take 65 s, so the look at 90 s is the first to see it."""
        assert kills("accidental-burstable") == [(90.0, "Evicted", "article-service-0")]

    def test_because_only_article_service_is_over_its_request(self):
        """It uses 3Gi + 1.5Gi and requested 4Gi + 128Mi; 1Gi − 5 s × 51.2Mi are left by then."""
        (because,) = (entry.because for entry in entries("accidental-burstable", "Evicted"))
        assert (because.usage, because.request, because.over_request) == (4608 * MI, 4224 * MI, True)
        assert because.available == pytest.approx(768 * MI, abs=PAGE)
        assert because.before_next_by == "usage over request"
        assert because.next_pod.startswith("batch/analytics-job-")

    def test_readers_wait_until_the_node_is_open_again(self):
        """Five minutes after the last sign of pressure, and after the node's next report."""
        (_, _, pod), *_ = told("accidental-burstable", "Pending")
        back = [time for time, _, name in told("accidental-burstable", "Started") if name == pod]
        assert pod == "article-service-0-r1"
        assert back == [400.0]

    def test_with_the_two_lines_a_job_is_evicted_and_the_sidecar_is_oom_killed_at_every_start(self):
        """3 + 3 + 52.25 = 58.25Gi; 4.75Gi more take 95 s: seen at 120 s.

        The sidecar grows by 288Mi a second from 96Mi on, and reaches 128Mi after 1/9 s. It restarts at the next full
        second, then 10, 20, 40, 80 and 160 s after its end.
        """
        told_of = kills("accidental-burstable-undersized")
        assert [(time, pod) for time, kind, pod in told_of if kind == "Evicted"] == [(120.0, "analytics-job-2")]
        expected, started = [], 0.0
        for wait in (None, 10, 20, 40, 80, 160, 300):
            end = started + 1 / 9
            expected.append(end)
            started = 1.0 if wait is None else end + wait
        assert started > 600
        assert [time for time, kind, _ in told_of if kind == "OOMKilled"] == pytest.approx(expected, abs=0.1)
        killed = entries("accidental-burstable-undersized", "OOMKilled")
        assert {(entry.container, entry.because.limit_bytes) for entry in killed} == {("envoy-sidecar", 128 * MI)}

    def test_at_each_kill_article_service_is_the_last_in_the_kubelets_order(self):
        """With 128Mi for its sidecar it uses 3200Mi of 4224Mi."""
        wanted = {
            (entry.because.would_evict.pod, entry.because.would_evict.usage)
            for entry in entries("accidental-burstable-undersized", "OOMKilled")
        }
        assert wanted == {("batch/analytics-job-2", 13568 * MI), ("batch/analytics-job-0", 13 * GI)}
        places = {
            kill.kubelet_place
            for kill in library.simulate(load_scenario("accidental-burstable-undersized")).report.kills
            if kill.by == "kernel"
        }
        assert places == {4, 5}

    def test_because_everybody_is_within_the_request_and_the_busiest_job_has_the_least_to_spare(self):
        """13.25Gi of 13.5Gi; article-service uses 3Gi of 4224Mi."""
        (because,) = (entry.because for entry in entries("accidental-burstable-undersized", "Evicted"))
        assert (because.usage, because.request, because.over_request) == (13568 * MI, 13824 * MI, False)
        assert because.before_next_by == "larger usage - request"

    def test_sized_from_usage_article_service_runs_through_and_a_job_finds_no_room(self):
        """4Gi + 2Gi + 4 × 13.5Gi are 60Gi; 64Gi less 4Gi reserved and 1Gi for the threshold are 59Gi."""
        assert kills("accidental-burstable-fixed") == []
        assert told("accidental-burstable-fixed", "Pending") == [(0.0, "Pending", "analytics-job-3")]
        assert {pod for _, _, pod in told("accidental-burstable-fixed", "Started")} == {
            "article-service-0",
            *(f"analytics-job-{index}" for index in range(3)),
        }

    def test_the_three_days_differ_in_the_sidecars_resources_alone(self):
        first, *others = (
            yaml.safe_load((SCENARIOS / f"{name}.yaml").read_text())["spec"]
            for name in ("accidental-burstable", "accidental-burstable-undersized", "accidental-burstable-fixed")
        )
        for other in others:
            different = {key for key in first if first[key] != other[key]}
            assert different == {"description", "manifests"}
        folder = SCENARIOS / "content-platform" / "accidental"
        before, *after = (
            yaml.safe_load((folder / f"article-service{name}.yaml").read_text())
            for name in ("", "-undersized", "-fixed")
        )
        for document in (before, *after):
            sidecar = document["spec"]["template"]["spec"]["containers"][1]
            assert sidecar.pop("resources")["requests"]["cpu"] == "100m"
        assert [document == before for document in after] == [True, True]


class TestLimitRangeTrap:
    """Both collectors leak 64Mi a minute from 256Mi on: 512Mi after four minutes."""

    def test_only_the_one_below_the_limit_range_is_killed_by_its_own_limit(self):
        """At 240 s; restarted at once: 241 + 240; then after 10 s, counted from its end: 491 + 240."""
        assert kills("limitrange-trap") == [
            (time, "OOMKilled", "log-collector-worker-1") for time in (240.0, 481.0, 731.0)
        ]
        assert {entry.pod for entry in entries("limitrange-trap", "OOMKilled")} == {"monitoring/log-collector-worker-1"}

    def test_the_limit_is_the_containers_and_the_node_is_empty(self):
        because = entries("limitrange-trap", "OOMKilled")[0].because
        assert (because.level, because.limit_bytes, because.oom_score_adj) == (OOMLevel.CONTAINER, 512 * MI, 999)

    def test_the_twin_is_best_effort_and_grows_on(self):
        classes = {entry.pod: entry.because.qos_class for entry in entries("limitrange-trap", "Started")}
        assert classes == {
            "monitoring/log-collector-worker-1": "Burstable",
            "logging/log-collector-worker-1": "BestEffort",
        }


class TestThreeQuestions:
    """16Gi; a Guaranteed pod grows from 4Gi by 2304Mi a second, from 1 s on. 12Gi are used, 4Gi less 133Mi are free."""

    TIME = round(1 + (4 * GI - KEPT_16GI) / (2304 * MI), 1)

    def test_1_of_equal_use_the_best_effort_pod_is_killed(self):
        """pod3: 1000 × 4,194 + 786,432; pod2, which requested 2Gi of 16Gi: 875 × 4,194 + 786,432."""
        assert kills("oom-by-class") == [(self.TIME, "OOMKilled", "pod3")]
        (kill,) = (entry.because for entry in entries("oom-by-class", "OOMKilled"))
        assert (kill.points, kill.runner_up_pod, kill.runner_up_points) == (4_980_432, "default/pod2", 4_456_182)
        assert kill.would_evict.pod == "default/pod3"

    def test_1_usage_turns_the_order_round(self):
        """pod2: 875 × 4,194 + 1,507,328 (5.75Gi); pod3: 1000 × 4,194 + 65,536 (256Mi)."""
        assert kills("oom-by-usage") == [(self.TIME, "OOMKilled", "pod2")]
        (kill,) = (entry.because for entry in entries("oom-by-usage", "OOMKilled"))
        assert (kill.points, kill.runner_up_pod, kill.runner_up_points) == (5_177_078, "default/pod3", 4_259_536)
        assert kill.would_evict.pod == "default/pod2"

    def test_2_who_asks_for_more_than_is_left_dies_and_dies_again(self):
        """pod2 gets 16Gi − 2Gi − 7Gi − 133Mi = 7035Mi, 4987Mi more than it began with, at 2Gi a second: after 3.4 s.

        Restarts: at the next full second, then 10, 20 and 40 s after the end.
        """
        life = round(1 + (5 * GI - KEPT_16GI) / (2 * GI), 2)
        expected, started = [], 0.0
        for wait in (None, 10, 20, 40, 80):
            end = started + life
            expected.append(end)
            started = float(int(end) + 1) if wait is None else end + wait
        assert [time for time, _, _ in kills("oom-loop")] == pytest.approx(expected, abs=0.1)
        assert {pod for _, _, pod in kills("oom-loop")} == {"pod2"}

    def test_3_of_the_same_class_the_higher_score_decides(self):
        """small-request: 938 × 4,194 + 524,288 (2Gi); large-request: 750 × 4,194 + 1,048,576 (4Gi)."""
        assert kills("oom-by-request") == [(self.TIME, "OOMKilled", "small-request")]
        (kill,) = (entry.because for entry in entries("oom-by-request", "OOMKilled"))
        assert (kill.points, kill.runner_up_points) == (4_458_260, 4_194_076)


class TestGracefulDegradation:
    """60Gi in use; the kubelet evicts below 1Gi. log-collector uses 192Mi, debug-tools 64Mi."""

    NAME = "graceful-degradation"

    def evicted(self, workload):
        return [time for time, _, pod in kills(self.NAME) if pod.startswith(workload)]

    def test_logs_then_analytics_then_indexing_and_nobody_else(self):
        """The pipeline grows by 50Mi a second from 55 s: 3Gi more at 116.4 s, seen at 120 s. 192Mi of logs are enough.

        From 240 s it grows by 44.8Mi a second: the look at 248 s, ten after the last, finds the collector away and
        729.6Mi left, which debug-tools' 64Mi do not make up for.

        9280Mi are left then. Indexers and daemons grow by 55.6Mi a second from 330 s: 8256Mi more at 478.5 s. For the
        first look after that evicting the collector is enough, for the second it is not.
        """
        order = ("log-collector", "debug-tools", "analytics-pipeline", "search-indexer")
        assert [self.evicted(each)[0] for each in order] == [120.0, 248.0, 249.0, 492.0]
        assert sum(len(self.evicted(each)) for each in order) == len(kills(self.NAME))

    def test_the_log_collector_comes_back_and_is_evicted_again_ever_later(self):
        """Removed at once while the last removal is longer ago than the back-off: 1, 2, 4, 8 s are less than 11 s.

        Back after 2 s, seen by the next look, 10 s after the last. 175 s − 164 s is less than 16 s: 16 s more.
        """
        assert self.evicted("log-collector") == [120, 131, 142, 153, 164, 175, 196, 237, 480, 491]
        started = [time for time, _, pod in told(self.NAME, "Started") if pod.startswith("log-collector")]
        assert started == [0, 122, 133, 144, 155, 166, 193, 230, 303, 482]

    def test_the_wait_of_the_controller_is_in_the_journal(self):
        replaced = [entry for entry in entries(self.NAME, "Replaced") if "log-collector" in entry.pod]
        assert [entry.because.back_off_seconds for entry in replaced] == [0, 0, 0, 0, 0, 16, 32, 64, 0]

    def test_by_priority_and_of_the_indexers_the_busiest(self):
        because = {entry.pod.partition("/")[2]: entry.because for entry in entries(self.NAME, "Evicted")}
        logs, analytics, indexer = (
            because[name] for name in ("log-collector-worker-1", "analytics-pipeline-0", "search-indexer-1")
        )
        assert (logs.priority, analytics.priority, indexer.priority) == (0, 100_000, 200_000)
        assert all(each.over_request for each in because.values())
        assert indexer.next_pod.startswith("batch/search-indexer-")
        assert indexer.before_next_by == "larger usage - request"

    def test_others_wait_where_the_log_collector_is_let_in(self):
        """The taint is there until five minutes after the last sign of pressure, and only a DaemonSet tolerates it."""
        waiting = {pod for _, _, pod in told(self.NAME, "Pending")}
        assert waiting == {"analytics-pipeline-0-r1", "search-indexer-1"}

    def test_nothing_that_readers_wait_for(self):
        touched = {entry.pod for entry in run_of("graceful-degradation").entries if entry.time_us > 0 and entry.pod}
        assert not any(pod.startswith("production/") for pod in touched)


class TestSoftEviction:
    """1.5Gi are left from 65 to 125 s, from 185 to 245 s and from 305 s on; soft below 2Gi for two minutes."""

    def test_only_the_lasting_burst_evicts_when_its_grace_is_over(self):
        """First seen at 310 s."""
        assert sorted(kills("soft-eviction")) == [(430.0, "Evicted", "worker-0"), (430.0, "Evicted", "worker-1")]
        assert not any(entry.because.hard for entry in entries("soft-eviction", "Evicted"))

    def test_the_pod_has_thirty_of_its_sixty_seconds_and_needs_ten(self):
        assert {entry.because.grace_period_seconds for entry in entries("soft-eviction", "Evicted")} == {30}
        assert {time for time, _, _ in told("soft-eviction", "Stopped")} == {440.0}

    @pytest.mark.parametrize(
        ("node", "changes"),
        [
            pytest.param("steady", [(70, True), (731, False)], id="for five minutes after the last sign"),
            pytest.param(
                "flapping",
                [(70, True), (150, False), (190, True), (270, False), (310, True), (461, False)],
                id="for 30 seconds: on and off",
            ),
        ],
    )
    def test_how_long_a_node_is_under_pressure(self, node, changes):
        seen = [
            (entry.time_us // 1_000_000, entry.because.holds)
            for entry in entries("soft-eviction", "ConditionChanged")
            if entry.node == node
        ]
        assert seen == changes


class TestDiskPressure:
    """128Gi, 105Gi used, 102.4Mi more a second from 10 s on: below 12.8Gi at 112 s."""

    def test_both_nodes_clean_up_and_only_the_cluttered_one_gains(self):
        gains = {
            entry.node: entry.because.available_after - entry.because.available_before
            for entry in entries("disk-pressure", "Reclaimed")
        }
        assert gains == {"cluttered": 24 * GI, "tidy": 0}

    def test_only_the_tidy_node_has_to_evict(self):
        """The scratch directory holds 51Gi of 8Gi requested; web is within its request."""
        assert kills("disk-pressure") == [(120.0, "Evicted", "report-tidy-0")]
        (because,) = (entry.because for entry in entries("disk-pressure", "Evicted"))
        assert because.signal == "nodefs.available"
        assert because.usage == pytest.approx(51 * GI, abs=PAGE)
        assert because.request == 8 * GI

    def test_the_report_finds_no_other_place(self):
        assert told("disk-pressure", "Pending")[-1][2] == "report-tidy-0-r1"
        assert told("disk-pressure", "Rejected") == []


class TestCPUBurst:
    """16 cores, 2 for the system, 6 for what is Guaranteed: 8 for the rest."""

    def granted(self, node):
        return {
            entry.pod.rpartition("/")[2].rpartition("-")[0]: entry.because.granted_milli
            for entry in entries("cpu-burst", "Throttled")
            if entry.node == node and entry.time_us == 15_000_000
        }

    def test_wide_limits_a_quarter_on_average_by_weight(self):
        """Weights 20 and 39 of 4 × 59: 8000 × 20 ÷ 236 and 8000 × 39 ÷ 236."""
        assert self.granted("wide") == {"analytics": 677, "indexer": 1322}

    def test_narrow_limits_half(self):
        assert self.granted("narrow") == {"analytics": 1000, "indexer": 1000}

    def test_nobody_is_killed_and_what_is_guaranteed_gets_everything(self):
        assert kills("cpu-burst") == []
        assert not any("serving" in entry.pod for entry in entries("cpu-burst", "Throttled"))


class TestPageCache:
    """32Gi, 11Gi used; 122.88Mi of cache more a second from 10 s on: 20Gi at 176.7 s."""

    def test_active_cache_gets_a_pod_evicted_and_inactive_cache_does_not(self):
        assert kills("page-cache") == [(180.0, "Evicted", "importer-0")]
        assert {entry.node for entry in entries("page-cache", "Evicted")} == {"rereading"}

    def test_the_pod_counts_with_its_cache(self):
        """1Gi and 170 s of cache."""
        (because,) = (entry.because for entry in entries("page-cache", "Evicted"))
        assert because.usage == pytest.approx(GI + 170 * 122.88 * MI, abs=2 * PAGE)


class TestPIDExhaustion:
    """32768 ids, 2564 used at first, 200 more a second: fewer than 3276 are left after 134.6 s."""

    def test_the_runner_is_evicted_where_nothing_limits_it(self):
        assert kills("pid-exhaustion") == [(140.0, "Evicted", "runner-unlimited-0")]
        (because,) = (entry.because for entry in entries("pid-exhaustion", "Evicted"))
        assert because.signal == "pid.available"
        assert because.usage == pytest.approx(64 + 140 * 200, abs=2)

    def test_a_limit_per_pod_keeps_the_trouble_inside(self):
        """64 + 200 a second reach 4096 after 20.2 s."""
        assert told("pid-exhaustion", "Refused") == [(20.2, "Refused", "runner-limited-0")]


class TestSlowLeak:
    """16Gi, of which web, batch and the system use 10.5Gi; session-cache has 1Gi and leaks 512Mi a minute."""

    def test_the_leak_is_evicted_again_and_again_and_placed_on_another_node_each_time(self):
        """4.5Gi less 1Gi, at 512Mi a minute: seven minutes, and up to 10 s until the kubelet looks.

        On the node where checkout has taken the place of a batch pod there are 2Gi more: four minutes longer.
        """
        evicted = [(entry.time_us / 1e6, entry.node) for entry in entries("slow-leak", "Evicted")]
        placed = [
            (entry.time_us / 1e6, entry.node)
            for entry in entries("slow-leak", "Started")
            if "session-cache" in entry.pod
        ]
        lives = [end - start for (end, _), (start, _) in zip(evicted, placed, strict=False)]
        assert [420 <= life <= 430 or 660 <= life <= 670 for life in lives] == [True] * len(lives)
        assert len(lives) == 4
        assert all(one != other for (_, one), (_, other) in pairwise(placed))

    def test_checkout_displaces_a_batch_pod_which_waits_until_it_is_gone(self):
        assert [time for time, _, _ in told("slow-leak", "Preempted")] == [600.0]
        (preempted,) = entries("slow-leak", "Preempted")
        assert preempted.because.preemptor == "default/checkout-0"
        replacement = f"{preempted.pod}-r1"
        started = [entry.time_us / 1e6 for entry in entries("slow-leak", "Started") if entry.pod == replacement]
        assert started == [1500.0]

    def test_nobody_is_killed_by_the_kernel(self):
        assert told("slow-leak", "OOMKilled") == []


class TestSystemOverrun:
    """3584 + 1920 + 3840 + 3712 = 13056Mi of pods and 1Gi of daemons leave 2304Mi; from 30 s on 32Mi less a second."""

    def test_the_early_kubelet_evicts_once_the_batch_pod_that_is_closer_to_its_request(self):
        """At 80 s there are 2304 − 50 × 32 = 704Mi, at 90 s 384Mi."""
        evicted = entries("system-overrun", "Evicted")
        assert [(entry.time_us, entry.node, entry.pod) for entry in evicted] == [
            (90_000_000, "early", "default/batch-0")
        ]
        assert evicted[0].because.available // MI == 384
        assert not evicted[0].because.over_request

    def test_the_late_kubelet_never_acts_and_the_kernel_kills_api_first(self):
        """It keeps 132.9Mi, which are reached (2304 − 132.9) ÷ 32 = 67.8 s after 30 s.

        api: 875 × 4,194 + 491,520 pages; batch-1: 750 × 4,194 + 983,040.
        """
        first, *others = entries("system-overrun", "OOMKilled")
        assert (round(first.time_us / 1_000_000, 1), first.node, first.pod) == (97.8, "late", "default/api-1")
        assert first.because.points - first.because.runner_up_points == 125 * 4194 - 491_520
        assert {entry.pod for entry in others} == {"default/api-1", "default/batch-1"}
        assert all(entry.time_us < 300_000_000 for entry in others)

    def test_no_kill_finds_the_late_threshold_met(self):
        """The kernel keeps 132.9Mi, the kubelet evicts below 100Mi, whatever a container that restarts asks for."""
        wanted = [entry.because.would_evict for entry in entries("system-overrun", "OOMKilled")]
        assert not any(evicted.threshold_met for evicted in wanted)

    def test_every_look_of_the_late_kubelet_comes_between_two_kills(self):
        looks = [entry for entry in entries("system-overrun", "Observed") if entry.node == "late"]
        assert len(looks) == 7
        assert all(look.because.available > 600 * MI for look in looks)
