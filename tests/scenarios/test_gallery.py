"""The incidents of the gallery: who is killed or slowed, when, and what would have prevented it, as the pages say."""

from __future__ import annotations

import re
import shutil
from functools import cache

import pytest

from podqos.reading.scenario_files import load_scenario
from podqos.runs import run as library
from podqos.sim.run import simulate
from podqos.sim.variation import Variation, parse_assignment
from scenarios.runs import MI, PAGES, ROOT, entries, kills, run_of, told

GALLERY = re.findall(r"^## \[.+\]\((.+)\.md\)$", (PAGES / "gallery.md").read_text(), re.MULTILINE)


HPA = "hpa-at-cpu-limit"


@cache
def varied(name, *assignments):
    """Return the run of a scenario with other values."""
    return simulate(load_scenario(name, Variation([parse_assignment(text) for text in assignments])))


def outcome(name, *assignments):
    """Return who was killed, evicted, killed by a probe, lost or never placed with other values."""
    kinds = ("OOMKilled", "Evicted", "Unhealthy", "Pending")
    return [
        (entry.kind.value, entry.pod.rpartition("/")[2])
        for entry in varied(name, *assignments).entries
        if entry.kind in kinds
    ]


@cache
def summary(path):
    return library.simulate(load_scenario(str(path))).report.summary


def failed_requests(path):
    """Return the share of the requests to the only service that failed."""
    (service,) = summary(path).services
    return service.errors / service.requests


def granted(name, time_us):
    return {
        entry.pod.rpartition("/")[2]: entry.because.granted_milli
        for entry in entries(name, "Throttled")
        if entry.time_us == time_us
    }


@pytest.mark.parametrize("name", GALLERY)
def test_each_is_short_and_has_a_page_with_a_picture_and_the_remedy(name):
    assert len((ROOT / f"scenarios/{name}.yaml").read_text().splitlines()) <= 40
    page = (PAGES / f"{name}.md").read_text()
    assert f"\n    $ podqos simulate {name} --what-if " in page
    title, picture = re.findall(r"^# (.+)$|^!(\[.+\]\(pictures/.+\.svg\))$", page, re.MULTILINE)[:2]
    gallery = (PAGES / "gallery.md").read_text()
    assert f"## [{title[0]}]({name}.md)\n\n!{picture[1]}\n\n" in gallery
    assert f"[{name}]({name}.md)" in (PAGES / "README.md").read_text()


class TestNoisyNeighbour:
    """8 cores less 0.2 for the system; weights by requests: 125m has 5 (cgroup v2), 2 cores have 79."""

    def test_the_shop_gets_its_share_and_nobody_is_killed(self):
        """7800 × 5 ÷ (2 × 5 + 2 × 79) = 232 of the 1000 that 100 requests of 10 ms take each second."""
        assert kills("noisy-neighbour") == []
        assert granted("noisy-neighbour", 60_000_000) == {
            "checkout-0": 232, "checkout-1": 232, "transcoder-0": 3667, "transcoder-1": 3667,
        }  # fmt: skip

    def test_a_third_of_its_requests_fail(self):
        assert failed_requests("noisy-neighbour") == pytest.approx(0.33, abs=0.01)

    def test_with_a_request_of_its_peak_it_is_not_slowed(self):
        slowed = {
            entry.pod.rpartition("/")[2]
            for entry in varied("noisy-neighbour", "requests.cpu@checkout=1500m").entries
            if entry.kind == "Throttled"
        }
        assert slowed == {"transcoder-0", "transcoder-1"}
        assert [service.errors for service in varied("noisy-neighbour", "requests.cpu@checkout=1500m").services] == [0]


class TestBackupPageCache:
    """32Gi less 2 + 10 + 6 + 0.5Gi; 102.4Mi of cache a second from 20 s on leave less than 1Gi after 145 s."""

    def test_the_database_is_evicted_at_the_next_check(self):
        assert kills("backup-page-cache") == [(150.0, "Evicted", "postgres-0")]

    def test_with_a_larger_request_for_the_database_the_web_pods_are(self):
        changed = outcome("backup-page-cache", "requests.memory@postgres=12Gi")
        assert [pod for kind, pod in changed if kind == "Evicted"] == ["web-0", "web-1"]

    def test_with_a_limit_for_the_agent_nobody_is(self):
        assert outcome("backup-page-cache", "limits.memory@backup-agent=2Gi") == []


class TestIngressLeak:
    """16Gi less 1Gi + 3.5Gi + 900Mi + 8Gi leave 2684Mi, and 12.8Mi a second less."""

    def test_the_ingress_is_evicted_a_minute_before_the_leak(self):
        """2684 − 180 × 12.8 = 380Mi at 180 s; with 900Mi more the rest lasts for another minute."""
        assert kills("ingress-leak") == [(180.0, "Evicted", "ingress-nginx-0"), (241.0, "Evicted", "orders-0")]
        first, second = (entry.because for entry in entries("ingress-leak", "Evicted"))
        assert (first.usage - first.request) // MI == 810
        assert first.before_next_by == "larger usage - request"
        assert second.over_request

    def test_nothing_gets_in_for_six_minutes(self):
        back = [time for time, _, pod in told("ingress-leak", "Started") if pod == "ingress-nginx-0-r1"]
        assert back == [550.0]

    def test_with_a_priority_only_the_leak_is_evicted(self):
        evicted = [pod for kind, pod in outcome("ingress-leak", "priority@ingress-nginx=1000000") if kind == "Evicted"]
        assert evicted == ["orders-0"]


class TestMidnightCronStorm:
    """13Gi are left; eight pods take 8 × 102.4Mi a second from 60.1 s on: the kernel keeps 132.9Mi at 76.2 s."""

    def test_the_jobs_kill_each_other_and_never_the_shop(self):
        assert kills("midnight-cron-storm") == [
            (76.2, "OOMKilled", "mirror-29913120-1"),
            (78.5, "OOMKilled", "mirror-29913120-0"),
            (102.8, "OOMKilled", "clean-up-29913120-1"),
            (112.8, "OOMKilled", "clean-up-29913120-0"),
            (120.0, "Evicted", "billing-29913120-0"),
        ]

    def test_with_requests_one_job_waits_and_all_complete(self):
        jobs = ("billing", "reports", "clean-up", "mirror")
        changes = [f"requests.memory@{job}=2Gi" for job in jobs]
        assert outcome("midnight-cron-storm", *changes) == [
            ("Pending", "mirror-29913120-0"),
            ("Pending", "mirror-29913120-1"),
        ]
        done = [entry for entry in varied("midnight-cron-storm", *changes).entries if entry.kind == "JobComplete"]
        assert len(done) == len(jobs)


class TestOvercommittingRollout:
    """1Gi of system, 3Gi of cache and 4 × 2Gi leave 4Gi; four new pods start with 1Gi each and want 4Gi more."""

    def test_every_web_pod_is_killed_or_evicted_and_the_cache_is_not(self):
        assert {pod for _, _, pod in kills("overcommitting-rollout")} == {
            *(f"web-{number}" for number in range(4)),
            *(f"web-rev2-{number}" for number in range(4)),
        }
        assert kills("overcommitting-rollout")[0] == (92.0, "OOMKilled", "web-3")
        assert told("overcommitting-rollout", "RolledOut") == []

    def test_with_requests_of_its_usage_it_completes_without_a_kill(self):
        changed = outcome("overcommitting-rollout", "requests.memory@web=2Gi")
        assert {kind for kind, _ in changed} == {"Pending"}
        run = varied("overcommitting-rollout", "requests.memory@web=2Gi")
        assert [entry.kind for entry in run.entries if entry.kind == "RolledOut"] == ["RolledOut"]


class TestStatefulSetLostNode:
    """Noticed 50 s after the loss, given up 300 s later: 60 + 50 + 300 s; replaced a second after that."""

    def test_the_web_pod_is_replaced_and_the_database_waits_for_the_node(self):
        assert told("statefulset-lost-node", "Terminating") == [(410.0, "Terminating", "db-0")]
        started = [(time, pod) for time, _, pod in told("statefulset-lost-node", "Started") if time > 0]
        assert started == [(411.0, "web-0-r1"), (1261.0, "db-0")]

    def test_a_node_that_is_back_in_time_takes_up_both(self):
        run = varied("statefulset-lost-node", "spec.events[1].at=3m")
        assert [entry for entry in run.entries if entry.kind in {"Terminating", "Replaced"}] == []


class TestHPAAtCPULimit:
    """Two pods of 500m, 80 %: 400 requests of 10 ms want 4 cores, of which they are granted one."""

    def test_it_adds_a_quarter_at_a_time(self):
        """⌈2 × 1.25⌉ = 3, ⌈3.75⌉ = 4, 5, ⌈6.25⌉ = 7, ⌈8.75⌉ = 9; the last is by 97 %: ⌈9 × 97 ÷ 80⌉ = 11."""
        scaled = [(entry.time_us // 1_000_000, entry.because.desired) for entry in entries(HPA, "Scaled")]
        assert scaled == [(75, 3), (90, 4), (105, 5), (120, 7), (135, 9), (150, 11)]
        assert failed_requests(HPA) == pytest.approx(0.31, abs=0.01)

    def test_with_a_higher_limit_it_doubles_and_nobody_is_slowed(self):
        run = varied(HPA, "limits.cpu@api=2")
        assert [entry.because.desired for entry in run.entries if entry.kind == "Scaled"] == [4, 8, 11]
        assert [entry for entry in run.entries if entry.kind == "Throttled"] == []


class TestProbeStarvation:
    """170 requests of 20 ms want 3.4 cores of the 3 that the limits allow."""

    def test_all_pods_are_restarted_twice(self):
        killed = [pod for _, _, pod in told("probe-starvation", "Unhealthy")]
        assert sorted(killed) == sorted(2 * ["search-0", "search-1", "search-2"])
        assert told("probe-starvation", "Unhealthy")[0][0] == 61.0
        assert failed_requests("probe-starvation") == pytest.approx(0.2, abs=0.01)

    def test_with_a_higher_limit_nobody_is_slowed(self):
        assert outcome("probe-starvation", "limits.cpu@search=1500m") == []
        run = varied("probe-starvation", "limits.cpu@search=1500m")
        assert [entry for entry in run.entries if entry.kind == "Throttled"] == []

    def test_with_a_longer_timeout_nobody_is_restarted(self, tmp_path):
        shutil.copytree(ROOT / "scenarios/probe-starvation", tmp_path / "probe-starvation")
        shutil.copy(ROOT / "scenarios/probe-starvation.yaml", tmp_path)
        pods = tmp_path / "probe-starvation/pods.yaml"
        text = pods.read_text()
        pods.write_text(text.replace("port: 8080 } }", "port: 8080 }, timeoutSeconds: 5 }"))
        assert pods.read_text() != text
        assert failed_requests(tmp_path / "probe-starvation.yaml") == pytest.approx(0.05, abs=0.01)
        assert summary(tmp_path / "probe-starvation.yaml").restarts == 0


class TestDaemonSetUpgradePressure:
    """8Gi less 0.5Gi + 5.5Gi + 300Mi leave 1748Mi; the new version takes 51.2Mi a second for 40 s."""

    def test_the_application_is_evicted_on_one_node_after_the_other(self):
        assert kills("daemonset-upgrade-pressure") == [
            (60.0, "Evicted", "app-0"),
            (120.0, "Evicted", "app-1"),
            (180.0, "Evicted", "app-2"),
        ]
        assert [time for time, _, _ in told("daemonset-upgrade-pressure", "RolledOut")] == [213.0]

    def test_with_a_limit_the_agent_is_killed_and_the_rollout_stops(self):
        changed = outcome("daemonset-upgrade-pressure", "limits.memory@agent=512Mi")
        assert {*changed} == {("OOMKilled", "agent-rev2-worker-0")}


class TestDaemonsBeyondReservation:
    """512Mi + 2 × 3584Mi + 2 × 3840Mi leave 1Gi; from 60 s on 128Mi a minute less: below 500Mi after 305.6 s."""

    def test_a_pod_within_its_request_is_evicted(self):
        assert kills("daemons-beyond-reservation") == [(310.0, "Evicted", "reports-0")]
        (because,) = (entry.because for entry in entries("daemons-beyond-reservation", "Evicted"))
        assert not because.over_request

    def test_with_a_larger_reservation_it_is_not_placed_and_nobody_is_evicted(self):
        changed = outcome("daemons-beyond-reservation", "kubelet.systemReserved.memory=3Gi")
        assert changed == [("Pending", "reports-1")]


def test_every_incident_has_its_facts_here():
    tested = {name.removeprefix("Test").lower() for name in globals() if name.startswith("Test")}
    assert {name.replace("-", "") for name in GALLERY} == tested
    assert all(run_of(name).entries for name in GALLERY)
