from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from podqos.errors import InputError
from podqos.eviction.signals import Signal, SignalObservation, available_quantity, decode_summary, observe

RECORDED = Path(__file__).parents[1] / "recordings" / "kubelet" / "stats_summary.json.gz"


def seen(node: dict[str, object], pods: object = None) -> dict[Signal, SignalObservation]:
    return dict(observe(decode_summary(json.dumps({"node": node, "pods": pods}).encode())).signals)


def test_a_recorded_summary_of_a_kubelet_shows_every_signal():
    """The figures are those of the file; its one filesystem is shown three times."""
    observation = observe(decode_summary(gzip.decompress(RECORDED.read_bytes())))
    assert set(observation.signals) == set(Signal)
    assert observation.signals[Signal.MEMORY] == SignalObservation(
        19_676_319_744, 19_676_319_744 + 5_598_806_016, 1_794_705_704_000_000
    )
    assert observation.signals[Signal.ALLOCATABLE_MEMORY].capacity == 24_192_634_880 + 8_749_056
    assert observation.signals[Signal.PID] == SignalObservation(32768 - 317, 32768, 1_794_705_709_000_000)
    assert observation.signals[Signal.NODEFS].available == observation.signals[Signal.IMAGEFS].available
    pod = observation.pods["71acc99a-9b20-4c59-938d-a6aa0527c776"]
    assert (pod.pod_ref.name, pod.containers[0].memory.working_set_bytes) == ("besteffort", 233_472)


def test_memory_capacity_is_what_is_left_plus_the_working_set_of_the_same_sample():
    assert seen({"memory": {"availableBytes": 300, "workingSetBytes": 700}}) == {
        Signal.MEMORY: SignalObservation(300, 1000)
    }


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"memory": {"availableBytes": 300}},
        {"memory": {"workingSetBytes": 300}},
        {"fs": {"availableBytes": 1, "inodesFree": 1}},
        {"rlimit": {"maxpid": 10}},
        {"runtime": {}},
        {"systemContainers": [{"name": "kubelet", "memory": {"availableBytes": 1, "workingSetBytes": 1}}]},
        {"systemContainers": [{"name": "pods"}]},
    ],
    ids=str,
)
def test_incomplete_figures_are_no_observation(node):
    assert seen(node) == {}


def test_the_filesystems_are_seen_one_by_one():
    fs = {"availableBytes": 1, "capacityBytes": 2, "inodesFree": 3, "inodes": 4}
    assert set(seen({"fs": fs})) == {Signal.NODEFS, Signal.NODEFS_INODES}
    assert set(seen({"runtime": {"imageFs": fs}})) == {Signal.IMAGEFS, Signal.IMAGEFS_INODES}
    assert seen({"runtime": {"containerFs": fs}}) == {
        Signal.CONTAINERFS: SignalObservation(1, 2),
        Signal.CONTAINERFS_INODES: SignalObservation(3, 4),
    }


@pytest.mark.parametrize(
    ("time", "time_us"),
    [
        ("1970-01-01T00:00:02Z", 2_000_000),
        ("1970-01-01T01:00:00.000001+01:00", 1),
        ("0001-01-01T00:00:00Z", None),
        (None, None),
    ],
)
def test_a_sample_time_is_whole_microseconds_and_gos_zero_time_is_none(time, time_us):
    memory = {"availableBytes": 1, "workingSetBytes": 1, "time": time}
    assert seen({"memory": memory})[Signal.MEMORY].time_us == time_us


def test_empty_lists_may_be_null():
    """As Go writes them."""
    summary = {"node": {}, "pods": [{"podRef": {"uid": "a"}, "containers": None}]}
    assert observe(decode_summary(json.dumps(summary).encode())).pods["a"].containers is None
    assert observe(decode_summary(b'{"node": {}, "pods": null}')).pods == {}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"node": []}', b'{"node": {"memory": {"time": "soon"}}}', b"\xff"])
def test_what_is_no_summary_is_one_clear_message(data):
    with pytest.raises(InputError, match="not a kubelet summary"):
        decode_summary(data)


@pytest.mark.parametrize(
    ("signal", "text"), [(Signal.MEMORY, "1Mi"), (Signal.NODEFS_INODES, "1048576"), (Signal.PID, "1048576")]
)
def test_bytes_print_in_binary_units_and_counts_in_decimal_ones(signal, text):
    assert str(available_quantity(signal, SignalObservation(2**20, 2**21))) == text
