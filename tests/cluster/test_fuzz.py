"""Whatever a kubeconfig or a server says: our own error in one line, or a value; never a crash, never a hang."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.recorded import recorded, recorded_watch
from cluster.serving import Server
from cluster.test_kubeconfig import FIRST
from podqos.cluster.cluster import Cluster
from podqos.cluster.events import lines, read_event
from podqos.cluster.exec_plugin import _credentials
from podqos.cluster.kubeconfig import Access, ExecConfig, merge
from podqos.cluster.pages import ListPage
from podqos.cluster.patience import Patience
from podqos.cluster.prometheus import Prometheus, PrometheusAccess, TimeRange
from podqos.cluster.proxies import Address, proxy_for
from podqos.cluster.refusals import refusal, status_of
from podqos.cluster.resources import DEPLOYMENTS, NODES, PODS
from podqos.errors import ClusterError, InputError

EXAMPLES = settings(max_examples=60)
FEW = settings(max_examples=20)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def edited(draw, original):
    """Return a text with a few pieces cut, doubled or overwritten."""
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        data[start:end] = draw(st.binary(max_size=12) | st.just(bytes(data[start:end]) * 2))
    return bytes(data)


@st.composite
def replaced(draw, original):
    """Return JSON with one value somewhere in it replaced by any other."""
    document = json.loads(original)
    place = document
    while isinstance(place, (dict, list)) and place:
        key = draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else draw(st.integers(0, len(place) - 1))
        if not isinstance(place[key], (dict, list)) or not place[key] or draw(st.integers(0, 4)) == 0:
            place[key] = draw(values)
            break
        place = place[key]
    return json.dumps(document).encode()


def answered(act, *errors):
    """Do something that may fail only with our errors, each in one line."""
    said = ""
    try:
        act()
    except errors as error:
        said = str(error)
    assert "\n" not in said


@EXAMPLES
@given(edited(FIRST) | replaced(json.dumps({"clusters": [], "users": [{"user": {"exec": {}}}], "contexts": []})))
def test_any_kubeconfig(data):
    answered(lambda: merge([("f", data)]).access(), InputError)


@EXAMPLES
@given(st.dictionaries(st.sampled_from(["clusters", "users", "contexts", "current-context", "kind"]), values))
def test_any_document_as_kubeconfig(document):
    answered(lambda: merge([("f", json.dumps(document).encode())]).access("x"), InputError)


@EXAMPLES
@given(edited(recorded("pages/pods-6.json")) | replaced(recorded("pages/pods-6.json")))
def test_any_page_of_pods(data):
    def act():
        page = ListPage(PODS, data, where="x")
        list(page.items)
        assert page.metadata.continue_ is not None

    answered(act, ClusterError)


@FEW
@given(replaced(recorded("lists/nodes.json")), replaced(recorded("lists/deployments.json")))
def test_any_list_of_nodes_and_workloads(nodes, deployments):
    answered(lambda: ListPage(NODES, nodes).items, ClusterError)
    answered(lambda: ListPage(DEPLOYMENTS, deployments).items, ClusterError)


@EXAMPLES
@given(edited(b"\n".join(recorded_watch("pods-batch")[:2])) | replaced(recorded_watch("pods-batch")[0]))
def test_any_watch(data):
    def act():
        for line in lines([data[:100], data[100:] + b"\n"], "x"):
            read_event(PODS, line, "x")

    answered(act, ClusterError)


@EXAMPLES
@given(st.integers(100, 999), st.binary(max_size=300) | values.map(lambda value: json.dumps(value).encode()))
def test_any_refusal(code, data):
    assert "\n" not in str(refusal(None, status_of(code, data), "x"))


@EXAMPLES
@given(st.binary(max_size=200) | values.map(lambda value: json.dumps({"status": value}).encode()))
def test_anything_that_an_exec_plugin_prints(data):
    plugin = ExecConfig("p", api_version="client.authentication.k8s.io/v1")
    answered(lambda: _credentials(data, plugin, "p"), ClusterError)


@EXAMPLES
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_proxy_and_its_exceptions(url, exceptions):
    server = Address("https", "10.0.0.1", 443)
    answered(lambda: proxy_for(server, "", {"HTTPS_PROXY": url, "NO_PROXY": exceptions}), InputError)


@pytest.fixture(scope="module")
def any_server():
    """Return a server that sends what is put into it, whatever that is, and closes."""
    sent = []

    def reply(wire):
        with suppress(OSError):
            wire.send(sent[-1])

    with Server(lambda _: reply) as server:
        server.sent = sent
        yield server


HEADS = st.sampled_from(
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 999 \r\n\r\n",
        b"HTTP/1.1 00000000000 \r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\xff\xfe: \xff\r\n\r\n",
    ]
)


@FEW
@given(HEADS, edited(recorded("pages/pods-6.json")[:400]))
def test_anything_on_the_wire(any_server, head, body):
    any_server.sent.append(head + body)
    patience = Patience(attempts=1, stall_seconds=20.0, total_seconds=30.0, most_bytes=1 << 20)
    with Cluster(Access(any_server.url), patience=patience) as cluster:
        answered(lambda: cluster.read(PODS), ClusterError)
        answered(lambda: next(cluster.watch(PODS)), ClusterError)
    with Prometheus(PrometheusAccess(url=any_server.url), patience=patience) as prometheus:
        answered(lambda: prometheus.range("up", TimeRange(0, 1, 1)), ClusterError)
