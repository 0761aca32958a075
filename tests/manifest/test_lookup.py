"""Going back to the text: in full, and to the place of every field."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from podqos.manifest.lookup import Lookup
from podqos.manifest.reading import read

CORPUS = Path(__file__).parent / "corpus"

YAML = """\
# two documents
a: b
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: LimitRange
  metadata:
    name: limits
  spec:
    limits:
    - type: Container
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web
  spec:
    template:
      spec:
        containers:
        - name: a
          resources:
            requests:
              memory: 1Gi
              nvidia.com/gpu: 1
"""
FIELDS = {
    "": (14, 3),
    "kind": (15, 3),
    "spec.template.spec.containers[0].resources.requests.memory": (25, 15),
    "spec.template.spec.containers[0].resources.requests[memory]": (25, 15),
    "spec.template.spec.containers[0].resources.requests[nvidia.com/gpu]": (26, 15),
    "spec.template.spec.containers[0].resources.limits.memory": (23, 11),
    "spec.template.spec.containers[7].name": (21, 9),
    "spec.replicas": (18, 3),
}


@pytest.mark.parametrize(("field", "position"), FIELDS.items())
def test_fields_of_yaml_are_located(field: str, position: tuple[int, int]):
    reading = read("f", YAML.encode())
    assert Lookup(YAML.encode()).locate(reading.places[0], field) == position


def test_fields_of_json_are_located():
    data = b'{"kind": "x"}\n' + gzip.decompress((CORPUS / "kubectl-pods.json.gz").read_bytes())
    reading = read("f", data)
    lookup = Lookup(data)
    lines = data.decode().splitlines()
    for workload, place in zip(reading.workloads, reading.places, strict=True):
        line, column = lookup.locate(place, "metadata.name")
        assert lines[line - 1][column - 1 :] == f'"name": "{workload.metadata.name}",'


def test_places_of_the_express_lane_lead_to_their_items():
    data = gzip.decompress((CORPUS / "kubectl-pods.json.gz").read_bytes())
    reading = read("f", data)
    lookup = Lookup(data)
    items = json.loads(data)["items"]
    assert [lookup.plain(place) for place in reading.places] == items
    assert [place.path for place in reading.places[1:3]] == [("items", 1), ("items", 2)]


def test_other_objects_are_told_in_full():
    data = YAML.encode()
    (other,) = read("f", data).others
    assert Lookup(data).plain(other.place) == {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits"},
        "spec": {"limits": [{"type": "Container"}]},
    }


def test_a_broken_neighbour_does_not_matter():
    data = b"apiVersion: v1\nkind: Node\nmetadata: {name: n}\n--- x\n--- [\n"
    (other,) = read("f", data).others
    assert Lookup(data).locate(other.place, "metadata.name") == (3, 12)
