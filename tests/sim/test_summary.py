"""How a run ended, counted from its journal."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import CPUThrottled, ExitedWith, JobEnded, ReplacementFor, ThrottledBy
from podqos.model.pod import QOSClass
from podqos.sim.summary import PodWorkload, RepeatedEvictions, summarized
from text.test_journal import KILL, PRESSURE

END_US = 100
OWNER = PodWorkload("ns/web", QOSClass.BURSTABLE, 0)


def entry(time_us, kind, pod="ns/a", container=None, because=None):
    return Entry(time_us, "node", kind, pod, container, None, because)


def summary(*entries, pods=("ns/a",)):
    return summarized(entries, dict.fromkeys(pods, OWNER), nodes=1, end_us=END_US)


def test_a_killed_container_is_down_until_it_restarts():
    found = summary(
        entry(0, Kind.STARTED),
        entry(10, Kind.OOM_KILLED, container="main", because=KILL),
        entry(11, Kind.EXITED, container="main"),
        entry(35, Kind.RESTARTED, container="main"),
    )
    assert found.downtime_us == 25
    assert (found.oom_kills, found.restarts, found.untouched) == (1, 1, 0)
    assert found.oom_kills_by_level == {"node": 1}


def test_what_never_comes_back_is_down_to_the_end():
    assert summary(entry(0, Kind.STARTED), entry(10, Kind.EVICTED, because=PRESSURE)).downtime_us == END_US - 10


def test_an_evicted_pod_is_down_until_its_replacement_runs_whatever_befalls_that_before():
    found = summary(
        entry(10, Kind.EVICTED, because=PRESSURE),
        entry(12, Kind.REPLACED, "ns/b", because=ReplacementFor("ns/a", "Evicted")),
        entry(13, Kind.REJECTED, "ns/b"),
        entry(14, Kind.REPLACED, "ns/c", because=ReplacementFor("ns/b", "Failed")),
        entry(40, Kind.STARTED, "ns/c"),
        entry(50, Kind.OOM_KILLED, "ns/c", because=KILL),
        pods=("ns/a", "ns/b", "ns/c"),
    )
    assert found.downtime_us == (40 - 10) + (END_US - 50)
    assert found.evictions_by_signal == {"memory.available": 1}
    assert (found.pods, found.untouched, found.rejections) == (1, 0, 1), "a replacement is the pod it stands for"


def test_a_pod_is_down_while_any_of_its_containers_is():
    found = summary(
        entry(0, Kind.STARTED),
        entry(10, Kind.OOM_KILLED, container="one", because=KILL),
        entry(20, Kind.OOM_KILLED, container="two", because=KILL),
        entry(30, Kind.RESTARTED, container="one"),
        entry(35, Kind.RESTARTED, container="two"),
        entry(40, Kind.OOM_KILLED, container="two", because=KILL),
        entry(45, Kind.RESTARTED, container="two"),
    )
    assert found.downtime_us == 25 + 5


def test_a_deletion_that_was_wanted_is_no_downtime():
    found = summary(entry(0, Kind.STARTED), entry(10, Kind.DELETED), entry(11, Kind.STOPPED))
    assert (found.downtime_us, found.untouched) == (0, 1)


def test_pods_of_a_lost_node_are_down_until_their_replacements_run():
    found = summary(
        entry(0, Kind.STARTED),
        entry(0, Kind.STARTED, "ns/b"),
        entry(0, Kind.STARTED, "ns/c"),
        entry(5, Kind.SUCCEEDED, "ns/c"),
        Entry(10, "node", Kind.LOST),
        entry(60, Kind.REPLACED, "ns/d", because=ReplacementFor("ns/a", "NodeLost")),
        entry(70, Kind.STARTED, "ns/d"),
        pods=("ns/a", "ns/b", "ns/c", "ns/d"),
    )
    assert (found.pods, found.untouched) == (3, 1)
    assert found.downtime_us == (70 - 10) + (END_US - 10)


SHORT = CPUThrottled(3000, 2000, ThrottledBy.QUOTA)
ENOUGH = CPUThrottled(1000, 1000, ThrottledBy.NOTHING)


def test_being_short_of_cpu_ends_when_all_is_granted_or_the_container_ends():
    found = summary(
        entry(0, Kind.THROTTLED, container="main", because=SHORT),
        entry(5, Kind.THROTTLED, container="main", because=CPUThrottled(3000, 2500, ThrottledBy.CONTENTION)),
        entry(20, Kind.THROTTLED, container="main", because=ENOUGH),
        entry(30, Kind.THROTTLED, container="main", because=SHORT),
        entry(40, Kind.EXITED, container="main", because=ExitedWith(0)),
        entry(90, Kind.THROTTLED, container="main", because=SHORT),
    )
    assert found.workloads[0].throttled_us == 20 + 10 + 10


def test_two_containers_short_of_cpu_at_the_same_time_count_once():
    found = summary(
        entry(0, Kind.STARTED),
        entry(0, Kind.STARTED, "ns/b"),
        entry(10, Kind.THROTTLED, container="one", because=SHORT),
        entry(12, Kind.THROTTLED, container="two", because=SHORT),
        entry(15, Kind.THROTTLED, container="one", because=ENOUGH),
        entry(17, Kind.THROTTLED, container="two", because=ENOUGH),
        entry(10, Kind.THROTTLED, "ns/b", container="one", because=SHORT),
        entry(17, Kind.THROTTLED, "ns/b", container="one", because=ENOUGH),
        pods=("ns/a", "ns/b"),
    )
    assert found.workloads[0].throttled_us == 7 + 7, "pods are added up, their containers are not"
    assert (found.throttled, found.untouched) == (2, 0)


def test_a_pod_that_waits_for_a_node_is_down_meanwhile_and_affected():
    found = summary(
        entry(0, Kind.PENDING),
        entry(0, Kind.PENDING, "ns/b"),
        entry(30, Kind.PLACED, "ns/b"),
        entry(30, Kind.STARTED, "ns/b"),
        entry(0, Kind.PENDING, "ns/c"),
        entry(0, Kind.STARTED, "ns/c"),
        pods=("ns/a", "ns/b", "ns/c"),
    )
    assert (found.pods, found.untouched, found.never_ran, found.waited) == (3, 1, 1, 1)
    assert found.downtime_us == END_US + 30


def test_a_container_that_fails_or_is_restarted_interrupts_its_pod():
    found = summary(
        *(entry(0, Kind.STARTED, f"ns/{each}") for each in "abcd"),
        entry(10, Kind.EXITED, "ns/a", "main", ExitedWith(1, finished_us=9, restarts=True)),
        entry(20, Kind.RESTARTED, "ns/a", "main"),
        entry(30, Kind.EXITED, "ns/b", "main", ExitedWith(0, restarts=True)),
        entry(40, Kind.EXITED, "ns/c", "main", ExitedWith(0)),
        entry(50, Kind.EXITED, "ns/d", "main", ExitedWith(2)),
        entry(50, Kind.FAILED, "ns/d"),
        pods=tuple(f"ns/{each}" for each in "abcd"),
    )
    assert (found.untouched, found.interrupted) == (1, 3)
    assert found.downtime_us == (20 - 9) + (END_US - 30) + (END_US - 50)


def test_a_pod_that_does_not_get_past_its_init_containers_never_ran():
    owner = PodWorkload("ns/web", QOSClass.BURSTABLE, 0, regular=frozenset({"main"}))
    failing = (
        entry(0, Kind.STARTED),
        entry(10, Kind.EXITED, container="setup", because=ExitedWith(1, restarts=True)),
        entry(20, Kind.RESTARTED, container="setup"),
    )
    found = summarized(failing, {"ns/a": owner}, nodes=1, end_us=END_US)
    assert (found.never_ran, found.interrupted, found.restarts) == (1, 0, 1)
    assert found.downtime_us == END_US - 10
    mended = (*failing, entry(30, Kind.EXITED, container="setup", because=ExitedWith(0)))
    found = summarized((*mended, entry(30, Kind.STARTED, container="main")), {"ns/a": owner}, nodes=1, end_us=END_US)
    assert (found.never_ran, found.interrupted, found.downtime_us) == (0, 1, 20)


def test_a_container_that_loses_one_process_and_lives_is_affected_but_not_down():
    lives = replace(KILL, container_lives=True)
    found = summary(entry(0, Kind.STARTED), entry(10, Kind.OOM_KILLED, container="main", because=lives))
    assert (found.oom_kills, found.interrupted, found.downtime_us) == (1, 1, 0)


def test_what_is_deleted_is_no_longer_missed():
    owner = PodWorkload("ns/web", QOSClass.BURSTABLE, 0, until_us=60)
    entries = (entry(0, Kind.STARTED), entry(10, Kind.EVICTED, because=PRESSURE))
    assert summarized(entries, {"ns/a": owner}, nodes=1, end_us=END_US).downtime_us == 50


def test_a_pod_deleted_the_moment_it_arrives_was_never_there():
    assert summary(entry(10, Kind.DELETED)).pods == 0


def test_entries_of_nobody_in_particular_are_not_counted():
    assert summary(Entry(0, "node", Kind.OBSERVED), entry(1, Kind.EVICTED, "other/pod")).evictions == 0


def test_a_pod_that_is_evicted_three_times_under_three_names_is_named_once():
    found = summary(
        entry(10, Kind.EVICTED, because=PRESSURE),
        entry(11, Kind.REPLACED, "ns/b", because=ReplacementFor("ns/a", "Evicted")),
        entry(20, Kind.EVICTED, "ns/b", because=PRESSURE),
        entry(21, Kind.REPLACED, "ns/c", because=ReplacementFor("ns/b", "Evicted")),
        entry(30, Kind.EVICTED, "ns/c", because=PRESSURE),
        entry(40, Kind.EVICTED, "ns/d", because=PRESSURE),
        pods=("ns/a", "ns/b", "ns/c", "ns/d"),
    )
    assert found.repeated_evictions == (RepeatedEvictions("ns/a", 3, 10, 30),)


def test_the_outages_of_a_failed_job_end_with_it_also_where_its_pods_are_evicted_later():
    found = summarized(
        (
            entry(0, Kind.STARTED, "ns/web-0"),
            entry(0, Kind.STARTED, "ns/web-1"),
            entry(10, Kind.FAILED, "ns/web-0"),
            entry(15, Kind.JOB_FAILED, None, because=JobEnded("ns/web", "BackoffLimitExceeded")),
            entry(16, Kind.EVICTED, "ns/web-1", because=PRESSURE),
        ),
        dict.fromkeys(("ns/web-0", "ns/web-1"), OWNER),
        nodes=1,
        end_us=END_US,
    )
    assert (found.downtime_us, found.evictions) == (15 - 10, 1)
