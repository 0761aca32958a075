"""Long lists of objects in YAML are read a few objects at a time, and mean the same."""

from __future__ import annotations

import pytest

from podqos.manifest import alike, long_lists, lookup
from podqos.manifest.lookup import Lookup
from podqos.manifest.reading import read
from podqos.model.pod_fate import FatedPod

POD = """\
- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      note: |
        items:
        - apiVersion: v1
    name: web-{number}
    namespace: shop
    uid: uid-{number}
  spec:
    containers:
    - name: app
      resources:
        limits:
          memory: {limit}
  status:
    containerStatuses:
    - lastState:
        terminated:
          exitCode: {code}
          reason: OOMKilled
      name: app
    phase: Running
"""
NODE = """\
- apiVersion: v1
  kind: Node
  metadata:
    name: node-1
"""


def pods(count: int, **values: object) -> str:
    known = {"limit": "64Mi", "code": 137, **values}
    return "".join(POD.format(number=number, **known) for number in range(count))


def listed(items: str, rest: str = "kind: List\n") -> bytes:
    return f"apiVersion: v1\nitems:\n{items}{rest}".encode()


@pytest.fixture
def _short_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(long_lists, "_BATCH", 1000)


BROKEN = {
    "a value that is not valid": pods(20) + pods(1, limit="64Zi"),
    "a key twice": pods(20) + POD.format(number=20, limit="1Gi", code=0).replace("phase:", "phase: a\n    phase:"),
    "broken YAML": pods(20) + "- apiVersion: [v1\n",
    "what is not plain": pods(20) + "- &anchor\n  apiVersion: v1\n  kind: Node\n  metadata: {name: node-1}\n",
    "a line that is no item": pods(10) + "...\n" + pods(10),
    "an item in a wrong column": pods(10) + " " + pods(10),
}
REST = {
    "the kind behind the items": "kind: List\nmetadata:\n  resourceVersion: ''\n",
    "items that are set twice": "kind: List\nitems: []\n",
    "an object that is no list": "kind: Widget\n",
    "no kind": "",
}


@pytest.mark.parametrize("items", [pods(40), pods(20) + NODE + pods(20), *BROKEN.values()])
@pytest.mark.parametrize("rest", REST.values(), ids=REST)
def test_a_list_that_is_read_in_pieces_means_the_same(monkeypatch: pytest.MonkeyPatch, items: str, rest: str):
    text = listed(items, rest)
    whole = read("f", text, full_statuses=True)
    monkeypatch.setattr(long_lists, "_BATCH", 1000)
    assert read("f", text, full_statuses=True) == whole


@pytest.mark.usefixtures("_short_pieces")
def test_no_piece_of_a_long_list_is_much_longer_than_the_others(monkeypatch: pytest.MonkeyPatch):
    sizes = []
    split = alike.AlikeItems.split
    monkeypatch.setattr(alike.AlikeItems, "split", lambda self, data: sizes.append(len(data)) or split(self, data))
    assert len(read("f", listed(pods(100))).workloads) == 100
    assert max(sizes) < 2000 < sum(sizes)


@pytest.mark.usefixtures("_short_pieces")
def test_an_object_of_a_long_list_is_looked_up_in_its_piece(monkeypatch: pytest.MonkeyPatch):
    blank = "#\n" + "\n" * 3000
    text = listed(f"{blank}{pods(30)}{blank}{NODE}{blank}{pods(30)}")
    reading = read("f", text)
    monkeypatch.setattr(lookup, "read_plain", lambda _: pytest.fail("the list was read in whole"))
    known = Lookup(text)
    assert [known.plain(place)["metadata"]["name"] for place in reading.places] == [
        f"web-{number}" for number in (*range(30), *range(30))
    ]
    (node,) = reading.others
    assert known.plain(node.place) == {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}


@pytest.mark.parametrize("notation", ["yaml", "json"])
def test_pods_have_their_full_status_where_it_is_asked_for_and_in_order(notation: str):
    text = listed(pods(1)) if notation == "yaml" else JSON
    (workload,) = read("f", text, full_statuses=True).workloads
    (plain,) = read("f", text).workloads
    assert isinstance(workload.pod, FatedPod)
    assert workload.pod.status.container_statuses[0].last_state.terminated.exit_code == 137
    assert type(plain.pod) is not FatedPod
    (broken,) = read("f", text.replace(b"137", b'"137"'), full_statuses=True).workloads
    assert type(broken.pod) is not FatedPod
    assert broken.pod == plain.pod


JSON = b"""{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "web-0", "namespace": "shop", "uid": "uid-0"}, "spec": {"containers": [{"name": "app"}]},
  "status": {"containerStatuses": [{"name": "app", "lastState": {"terminated": {"exitCode": 137}}}]}}]}"""
