"""How a run ended, counted from its journal."""

from __future__ import annotations

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import CPUThrottled, ReplacementFor, ThrottledBy
from podqos.model.pod import QOSClass
from podqos.sim.summary import Owner, RepeatedEvictions, summarized
from report.test_journal_words import KILL, PRESSURE

END_US = 100
OWNER = Owner("ns/web", QOSClass.BURSTABLE, 0)


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


def test_a_pod_of_two_containers_counts_each_that_is_missing():
    found = summary(
        entry(10, Kind.OOM_KILLED, container="one", because=KILL),
        entry(20, Kind.OOM_KILLED, container="two", because=KILL),
        entry(30, Kind.RESTARTED, container="one"),
        entry(30, Kind.RESTARTED, container="two"),
    )
    assert found.downtime_us == 20 + 10


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


def test_being_short_of_cpu_ends_when_all_is_granted_or_the_container_ends():
    short = CPUThrottled(3000, 2000, ThrottledBy.QUOTA)
    found = summary(
        entry(0, Kind.THROTTLED, container="main", because=short),
        entry(5, Kind.THROTTLED, container="main", because=CPUThrottled(3000, 2500, ThrottledBy.CONTENTION)),
        entry(20, Kind.THROTTLED, container="main", because=CPUThrottled(1000, 1000, ThrottledBy.NOTHING)),
        entry(30, Kind.THROTTLED, container="main", because=short),
        entry(40, Kind.EXITED, container="main"),
        entry(90, Kind.THROTTLED, container="main", because=short),
    )
    assert found.workloads[0].throttled_us == 20 + 10 + 10


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
