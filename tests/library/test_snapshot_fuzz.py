"""Whatever a snapshot file holds: an answer, or our own error in one line; never a crash, never a hang."""

from __future__ import annotations

import gzip
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library import clusters
from podqos.errors import InputError, PodqosError
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.questions.node import cluster_state, node_capacities
from podqos.questions.overview import overview
from podqos.questions.rank import rank
from podqos.reading.loading import load
from podqos.reading.scenario_files import read_scenario
from podqos.reading.snapshot_files import read_snapshot
from podqos.reading.written_files import write_files
from podqos.runs.scenarios import cluster_scenario

EXAMPLES = settings(max_examples=100, deadline=None)
HUGE = 10**400
_CAPACITY = [
    {"capacity": {"cpu": "4", "memory": "8Gi"}, "allocatable": {}},
    {"capacity": {}, "allocatable": {}},
]
NUMBERS = (-1, 0, HUGE, -HUGE, 2**63, 2**64, 1e308, 0.5)
TEXTS = ("", "x", "9" * 400, "1e999", "1e99999", "-1Gi", "½", "\ud800", "../../etc", "a\nb", "a: b", "999999999999Ei")
OTHERS = (None, True, [], {}, [[]], {"": ""}, [None], {"name": 1}, *_CAPACITY)
values = st.sampled_from([*NUMBERS, *TEXTS, *OTHERS])


def lines() -> list[bytes]:
    usage = {"cpu": "120m", "memory": "300Mi"}
    names = ("web-7d4b9c-bbbbb", "shell")
    items = [
        {"metadata": {"name": name, "namespace": "shop"}, "containers": [{"name": "web", "usage": usage}]}
        for name in names
    ]
    metrics = {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items}
    header, *middle, _ = clusters.lines()
    made = [header, *middle, json.dumps(metrics).encode()]
    return [*made, json.dumps({"kind": "End", "lines": len(made)}).encode()]


LINES = lines()


def ask_everything(cluster: ClusterSnapshot) -> None:
    """Ask all that commands ask of a snapshot; each may refuse."""
    for ask in (
        lambda: load(cluster.declared()),
        lambda: load(cluster.policies()),
        lambda: cluster.pod_metrics,
        lambda: cluster.node_metrics,
        lambda: overview(cluster),
        lambda: _simulated(cluster),
        *(lambda node=node: rank(cluster_state(cluster, node)) for node in clusters.NODES),
        *(lambda node=node: node_capacities(cluster, node) for node in clusters.NODES),
    ):
        with suppress(PodqosError):
            ask()


def _simulated(cluster: ClusterSnapshot) -> None:
    made = cluster_scenario(cluster, "now")
    with tempfile.TemporaryDirectory() as folder:
        write_files(made.files, folder)
        read_scenario(str(Path(folder) / "now.yaml"))


@st.composite
def replaced(draw: Any) -> list[bytes]:
    """Return the lines with a few values anywhere replaced by others, of other types, or huge."""
    changed = list(LINES)
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(changed) - 1))
        document = json.loads(changed[number])
        place = document
        while True:
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or not place[key] or draw(st.integers(0, 5)) == 0:
                place[key] = draw(values)
                break
            place = place[key]
        changed[number] = json.dumps(document).encode()
    return changed


@EXAMPLES
@given(replaced())
def test_values_of_other_types_and_sizes_are_refused_or_answered(changed):
    with suppress(PodqosError):
        ask_everything(ClusterSnapshot(changed, "cluster.json"))


@EXAMPLES
@given(st.lists(st.tuples(st.integers(0), st.integers(0, 7)), min_size=1, max_size=4), st.integers(0), st.booleans())
def test_flipped_bits_and_cut_files_are_refused_or_answered(flips, cut, is_gzipped):
    data = b"\n".join(LINES) + b"\n"
    damaged = bytearray(gzip.compress(data, mtime=0) if is_gzipped else data)
    for place, bit in flips:
        damaged[place % len(damaged)] ^= 1 << bit
    if cut % 4 == 0:
        del damaged[cut % len(damaged) :]
    with tempfile.TemporaryDirectory() as folder, suppress(PodqosError):
        path = Path(folder) / "cluster.json"
        path.write_bytes(damaged)
        ask_everything(read_snapshot(str(path)))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["lists", "objects"])
@pytest.mark.parametrize("number", range(len(LINES)))
def test_deep_nesting_is_refused_or_answered(number, opening):
    closing = b"]" if opening == b"[" else b"}"
    deep = opening * 100_000 + b"1" + closing * 100_000
    changed = list(LINES)
    changed[number] = changed[number].rstrip()[:-1] + b',"deep":' + deep + b"}"
    with suppress(PodqosError):
        ask_everything(ClusterSnapshot(changed, "cluster.json"))


@pytest.mark.parametrize("version", [b"1", b'"\xf7"'], ids=["wrong type", "not UTF-8"])
def test_a_broken_list_of_workloads_is_refused_with_its_line(version):
    number = next(number for number, line in enumerate(LINES) if b'"DeploymentList"' in line)
    changed = [*LINES[:number], LINES[number].replace(b'"apps/v1"', version, 1), *LINES[number + 1 :]]

    with pytest.raises(InputError, match=f"cluster.json:{number + 1}: broken"):
        load(ClusterSnapshot(changed, "cluster.json").declared())


def test_an_amount_that_no_machine_has_is_refused():
    changed = [line.replace(b"120m", b"1e1999") for line in LINES]

    with pytest.raises(InputError, match="too large for Kubernetes"):
        cluster_scenario(ClusterSnapshot(changed, "cluster.json"), "now")


def test_limits_that_no_number_holds_are_still_counted_up():
    changed = [line.replace(b'"memory":"2Gi"', b'"memory":"1e999"') for line in LINES]

    assert len(overview(ClusterSnapshot(changed, "cluster.json")).nodes) == 2


def test_the_whole_snapshot_is_answered():
    cluster = ClusterSnapshot(LINES, "cluster.json")

    assert len(overview(cluster).nodes) == 2
    assert cluster_scenario(cluster, "now").pods == 4
