"""What a picture of a node shows, and in which order."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.agent.reasons import LocalStorageExceeded, OOMKill, OOMLevel
from podqos.answers.run_story import story
from podqos.eviction.local_storage import LocalStorageLimit
from podqos.eviction.signals import Signal
from podqos.sim.node.recording import ThresholdLine
from podqos.sim.series import SignalSeries
from report.runs import EVICTED, GI, KILLED, NODE, WEB, series

LIMIT = OOMKill(OOMLevel.CONTAINER, "/kubepods/web", GI, 1, 0, 1, 1, 1, as_group=True)


def _granted(index, *anon_bytes):
    short = series(index, *anon_bytes)
    return replace(short, cpu_granted_milli=short.cpu_wanted_milli)


def _node(**fields):
    """Return a node that has memory and CPU enough for a pod."""
    usual = {
        "times_us": (0, 20_000_000),
        "available_bytes": (5 * GI, 5 * GI),
        "free_bytes": (5 * GI, 5 * GI),
        "system_bytes": (GI, GI),
        "pods": (_granted(0, 2 * GI, 2 * GI),),
        "conditions": (),
    }
    return replace(NODE, **(usual | fields))


def _disk(*left):
    return SignalSeries(Signal.NODEFS, 128 * GI, left)


DISK_LOW = ThresholdLine(Signal.NODEFS, True, 12 * GI, 0, "nodefs.available < 12Gi")


def test_where_memory_ends_it_is_seen_by_pod_and_by_what_is_left():
    node = _node(available_bytes=(5 * GI, 0))
    assert story(node, ()) == ("memory", "memory.available")


def test_a_pod_at_its_own_limit_needs_no_picture_of_what_the_node_has_left():
    assert story(_node(), (replace(KILLED, because=LIMIT),)) == ("memory",)


def test_a_story_of_disk_leaves_memory_and_cpu_out():
    node = _node(signals=(_disk(60 * GI, 11 * GI),), thresholds=(*NODE.thresholds, DISK_LOW))
    assert story(node, ()) == ("nodefs.available",)


def test_a_story_of_cpu_leaves_memory_out():
    assert story(_node(pods=(series(0, 2 * GI, 2 * GI),)), ()) == ("cpu",)


def test_what_killed_comes_before_what_ran_short():
    own = LocalStorageExceeded(LocalStorageLimit.POD, "", 2 * GI, GI)
    node = _node(available_bytes=(5 * GI, 0), signals=(_disk(60 * GI, 11 * GI),))
    assert story(node, (replace(EVICTED, pod=WEB.key, because=own),))[0] == "nodefs.available"


def test_where_nothing_runs_short_what_changes_is_shown_and_else_memory():
    assert story(_node(), ()) == ("memory",)
    assert story(_node(signals=(_disk(60 * GI, 40 * GI),)), ()) == ("nodefs.available",)
    assert story(_node(available_bytes=(5 * GI, 3 * GI)), ()) == ("memory",)
