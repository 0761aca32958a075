"""No client holds the server up: slow ones, rude ones, and a thousand that say nothing."""

from __future__ import annotations

import json
import socket
import time

import pytest
from msgspec.structs import replace

from podqos.advice.reviewing import Reviewer
from podqos.web.settings import Limits
from reviews import pod, review
from web.serving import served

# With time enough for whoever means well on a machine that is held up.
SMALL = Limits(
    body_bytes=64 << 10, head_bytes=8 << 10, connections=50, sweep_seconds=0.1,
    handshake_seconds=300, receive_seconds=300, idle_seconds=600, linger_seconds=60,
)  # fmt: skip


@pytest.fixture
def server(tmp_path, request):
    """Serve with little room and, where a test is about that, little time."""
    with served(tmp_path, Reviewer(), replace(SMALL, **getattr(request, "param", {}))) as server:
        yield server


def hurried(**limits):
    return pytest.mark.parametrize("server", [limits], ids=["hurried"], indirect=True)


def goes_on(server):
    server.webhook.server.limits = SMALL
    status, body = server.ask("/validate", review(pod(), uid="still-here"))
    assert status == 200
    assert json.loads(body)["response"]["uid"] == "still-here"


def head(length, path="/validate", extra=""):
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{extra}\r\n".encode()


def comes(client, text):
    """Read until a text has come, or nothing more does; whether it has."""
    found = b""
    while text not in found:
        try:
            part = client.recv(65536)
        except (ConnectionError, TimeoutError):
            return False
        if not part:
            return False
        found += part
    return True


def read_all(client):
    found = b""
    while True:
        try:
            part = client.recv(65536)
        except (ConnectionError, TimeoutError):
            return found
        if not part:
            return found
        found += part


def test_many_requests_go_over_one_connection(server):
    connection = server.connect()
    for number in range(50):
        _, body = server.ask("/validate", review(pod(), uid=str(number)), connection=connection)
        assert json.loads(body)["response"]["uid"] == str(number)
    assert len(server.webhook.server.connections) == 1
    connection.close()


def test_requests_sent_without_waiting_are_answered_in_order(server):
    bodies = [review(pod(), uid=f"u{number}") for number in range(10)]
    with server.socket() as client:
        client.sendall(
            b"".join(
                head(len(body), extra="Connection: close\r\n" if index == 9 else "") + body
                for index, body in enumerate(bodies)
            )
        )
        text = read_all(client).decode()
    assert [f'"uid":"u{number}"' in text for number in range(10)] == [True] * 10
    places = [text.index(f'"uid":"u{number}"') for number in range(10)]
    assert places == sorted(places)


def test_a_body_may_come_in_chunks(server):
    body = review(pod(), uid="chunked")
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:100], body[100:])) + b"0\r\n\r\n"
    with server.socket() as client:
        client.sendall(
            b"POST /validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunks
        )
        assert comes(client, b'"uid":"chunked"')


def test_a_client_that_asks_first_is_told_to_go_on(server):
    body = review(pod(), uid="expected")
    with server.socket() as client:
        client.sendall(head(len(body), extra="Expect: 100-continue\r\nConnection: close\r\n"))
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(body)
        assert comes(client, b'"uid":"expected"')


def test_a_body_that_is_too_large_is_refused_before_it_comes(server):
    with server.socket() as client:
        client.sendall(head(1 << 30))
        assert comes(client, b" 413 ")
    goes_on(server)


def test_a_chunked_body_that_grows_too_large_is_refused(server):
    with server.socket() as client:
        client.sendall(b"POST /validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n10000\r\n" + b"x" * 0x10000)
        assert comes(client, b" 413 ")
    goes_on(server)
    assert server.webhook.server.buffered_bytes == 0


def test_huge_headers_are_refused(server):
    with server.socket() as client:
        client.sendall(b"POST /validate HTTP/1.1\r\nHost: x\r\nX-Huge: " + b"x" * 100_000)
        assert comes(client, b" 431 ")
    goes_on(server)


@pytest.mark.parametrize(
    "text",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /validate HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(server, text):
    with server.socket() as client:
        client.sendall(text)
        assert comes(client, b" 400 ")
    goes_on(server)


@hurried(receive_seconds=1.0)
def test_a_client_that_trickles_its_headers_is_dropped(server):
    with server.socket() as client:
        client.sendall(b"POST /validate HTTP/1.1\r\nHost: x\r\n")
        answer = b""
        client.settimeout(0.3)
        for number in range(40):
            try:
                client.sendall(b"X-%d: y\r\n" % number)
                answer = client.recv(1000)
            except TimeoutError:
                continue
            except OSError:
                pass
            break
        assert b" 408 " in answer
    assert server.webhook.server.counts.timed_out == 1
    goes_on(server)


@hurried(receive_seconds=0.5)
def test_a_client_that_sends_half_a_body_is_dropped(server):
    with server.socket() as client:
        client.sendall(head(1000) + b"{")
        assert comes(client, b" 408 ")
    goes_on(server)
    assert server.webhook.server.buffered_bytes == 0


@pytest.mark.slow
@hurried(handshake_seconds=5.0)
def test_a_handshake_that_never_ends_holds_nothing_up(server):
    silent = [socket.create_connection(server.address) for _ in range(30)]
    silent[0].sendall(b"\x16\x03\x01\x02\x00")
    while len(server.webhook.server.connections) < len(silent):  # they count before any handshake
        time.sleep(0.05)
    goes_on(server)
    for client in silent:
        client.settimeout(300)
        assert read_all(client) == b""
        client.close()


def test_plain_http_is_no_harm(server):
    with socket.create_connection(server.address, timeout=300) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        read_all(client)
    goes_on(server)


def test_the_longest_idle_connection_makes_room_for_a_new_one(server):
    idle = [server.connect() for _ in range(SMALL.connections)]
    goes_on(server)
    goes_on(server)
    assert server.webhook.server.counts.pushed_out >= 1
    assert len(server.webhook.server.connections) <= SMALL.connections + 1
    for connection in idle:
        connection.close()


def test_of_idle_connections_the_one_that_has_waited_longest_is_closed(server):
    idle = [server.connect() for _ in range(SMALL.connections)]
    for connection in idle[1:]:
        server.ask("/validate", review(pod()), connection=connection)
    late = server.connect()
    server.ask("/validate", review(pod()), connection=late)
    assert server.webhook.server.counts.pushed_out == 1
    for connection in idle[1:]:
        assert server.ask("/validate", review(pod()), connection=connection)[0] == 200
    for connection in (*idle, late):
        connection.close()


@hurried(idle_seconds=0.5)
def test_an_idle_connection_is_closed_at_last(server):
    with server.socket() as client:
        assert read_all(client) == b""


def test_a_client_that_closes_in_the_middle_is_forgotten(server):
    for _ in range(20):
        client = server.socket()
        client.sendall(head(1000) + b"{")
        client.close()
    goes_on(server)
    end = time.monotonic() + 300
    while server.webhook.server.connections and time.monotonic() < end:
        time.sleep(0.05)
    assert not server.webhook.server.connections
    assert server.webhook.server.buffered_bytes == 0


@pytest.mark.slow
def test_a_thousand_idle_connections_do_not_matter(tmp_path):
    with served(tmp_path, Reviewer(), Limits(handshake_seconds=300, idle_seconds=600)) as server:
        idle = [server.socket() for _ in range(1000)]
        for _ in range(20):
            assert server.ask("/validate", review(pod()))[0] == 200
        assert len(server.webhook.server.connections) >= 1000
        for client in idle[:3]:
            body = review(pod(), uid="woken")
            client.sendall(head(len(body)) + body)
            assert b'"uid":"woken"' in client.recv(65536)
        for client in idle:
            client.close()
