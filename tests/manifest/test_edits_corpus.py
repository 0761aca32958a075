"""Manifests by hand, in many styles: every container is given 256Mi to request and to use, or the file is left alone.

``fix_corpus`` holds the manifests, ``fix_corpus/expected`` what has to come out, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podqos.manifest.edits.apply import CannotEdit, Edited, ObjectEdit, Reason, apply_edits
from podqos.manifest.reading import read
from podqos.manifest.text import Chunk, Place
from podqos.model.pod import Workload
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY

CORPUS = Path(__file__).parent / "fix_corpus"
EXPECTED = CORPUS / "expected"
# Why, and on which line; None where it is the whole file.
REFUSED: dict[str, tuple[Reason, int | None]] = {
    "60-helm-source.yaml": (Reason.TEMPLATE, 4),
    "61-helm-source-that-parses.yaml": (Reason.TEMPLATE, 4),
    "62-helm-source-of-several.yaml": (Reason.TEMPLATE, 9),
    "63-shared-resources.yaml": (Reason.SHARED, 9),
    "64-shared-scalar.yaml": (Reason.SHARED, 10),
    "65-merged-container.yaml": (Reason.MERGED, 13),
    "66-shared-pods.yaml": (Reason.SHARED, 8),
    "67-tagged.yaml": (Reason.TAGGED, 10),
    "68-complex-key.yaml": (Reason.COMPLEX_KEY, 7),
    "69-duplicate-key.yaml": (Reason.UNREADABLE, None),
    "70-broken.yaml": (Reason.UNREADABLE, None),
    "71-not-a-mapping.yaml": (Reason.NOT_A_MAPPING, None),
    "72-utf-16.yaml": (Reason.UNREADABLE, None),
    "73-duplicate-key.json": (Reason.DUPLICATE_KEY, 1),
}
UNCHANGED = {"47-already.yaml"}
ALL = sorted(path.name for path in CORPUS.iterdir() if path.is_file())
AMOUNT = "256Mi"


def resources_paths(workload: Workload) -> Iterator[str]:
    prefix = f"{workload.pod_path}." if workload.pod_path else ""
    spec = workload.pod.spec
    for name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index in range(len(containers)):
            yield f"{prefix}spec.{name}[{index}].resources"


def wanted_edits(data: bytes) -> list[ObjectEdit]:
    reading = read("", data)
    edits = [
        ObjectEdit(place, f"{path}.{side}.memory", AMOUNT)
        for workload, place in zip(reading.workloads, reading.places, strict=True)
        for path in resources_paths(workload)
        for side in ("requests", "limits")
    ]
    # What is no workload: the object that was refused, or the file as if it were one.
    places = [refused.place for refused in reading.refused] or [Place(Chunk(0, len(data), "yaml"))]
    return edits or [ObjectEdit(places[0], "spec.containers[0].resources.limits.memory", AMOUNT)]


def test_the_corpus_is_large_and_every_file_has_an_outcome():
    assert len(ALL) >= 60
    assert {path.name for path in EXPECTED.iterdir()} == set(ALL) - REFUSED.keys()


@pytest.mark.parametrize("name", [name for name in ALL if name not in REFUSED])
def test_what_comes_out_is_what_was_expected_and_stays(name):
    data = (CORPUS / name).read_bytes()
    assert apply_edits(data, wanted_edits(data)) == Edited((EXPECTED / name).read_bytes())
    fixed = (EXPECTED / name).read_bytes()
    assert apply_edits(fixed, wanted_edits(fixed)) == Edited(fixed)
    assert (fixed == data) == (name in UNCHANGED)


@pytest.mark.parametrize("name", [name for name in ALL if name not in REFUSED])
def test_what_comes_out_can_be_read_and_says_what_was_meant(name):
    reading = read("", (EXPECTED / name).read_bytes())
    assert reading.workloads
    assert not reading.problems
    for workload in reading.workloads:
        for container in (*workload.pod.spec.containers, *workload.pod.spec.init_containers):
            for amounts in (container.resources.requests, container.resources.limits):
                assert amounts[MEMORY] == Quantity.parse(AMOUNT)


@pytest.mark.parametrize(("name", "reason", "line"), [(name, *outcome) for name, outcome in REFUSED.items()])
def test_what_cannot_be_edited_safely_is_refused_with_a_reason(name, reason, line):
    data = (CORPUS / name).read_bytes()
    result = apply_edits(data, wanted_edits(data))
    assert isinstance(result, CannotEdit)
    assert result.reason is reason
    assert (result.position[0] if result.position else None) == line
