"""The server alone, with nothing behind it: what clients do, however rude, and what becomes of the loop meanwhile."""

from __future__ import annotations

import random
import socket
import time
from contextlib import suppress

import pytest

from podqos.host.api import http_connection, http_server
from podqos.host.api.http_request import HttpRefusal, HttpResponse, parse_request
from podqos.host.api.http_server import HttpServer
from podqos.host.linux.loop import Loop

LARGE = b"x" * 65536


class Stage:
    """A server on a unix socket and on a port, and clients that take turns with it on one thread."""

    def __init__(self, folder):
        self.loop = Loop()
        self.notes = []
        self.made = 0
        self.server = HttpServer(self.loop, self.answer, self.notes.append, "test/1")
        self.path = str(folder / "s")
        self.server.listen_unix(folder / "s")
        self.port = self.server.listen_tcp("127.0.0.1", 0)
        self.clients = []

    def answer(self, request):
        match request.segments:
            case ("large",):
                return HttpResponse(self.large())
            case ("slow",):
                return HttpResponse(self.slow())
            case ("endless",):
                return HttpResponse(self.endless(), follows=True)
            case ("broken",):
                raise ZeroDivisionError("a bug")
            case ("broken-later",):
                return HttpResponse(self.broken())
            case _:
                return HttpResponse(b"ok")

    def large(self):
        for _ in range(1024):
            self.made += 1
            yield LARGE

    def slow(self):
        for _ in range(1000):
            self.made += 1
            time.sleep(0.01)
            yield b"x"

    def endless(self):
        yield b"one\n"
        while True:
            yield None

    def broken(self):
        yield b""
        raise ZeroDivisionError("another bug")

    def client(self, data=b"", *, tcp=False):
        client = socket.create_connection(("127.0.0.1", self.port)) if tcp else socket.socket(socket.AF_UNIX)
        if not tcp:
            client.connect(self.path)
        client.setblocking(False)
        self.clients.append(client)
        self.loop.step(0.01)
        if data:
            client.send(data)
        return client

    def read(self, client, seconds=60.0):
        """Return everything up to the end of the answer."""
        data, end = bytearray(), time.monotonic() + seconds
        while time.monotonic() < end:
            self.loop.step(0.01)
            try:
                piece = client.recv(1 << 20)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                return bytes(data)
            if not piece:
                return bytes(data)
            data += piece
        raise AssertionError(f"no end after {bytes(data[:200])!r}")

    def until(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end
            self.loop.step(0.01)

    def ask(self, target="/healthz", *, tcp=False):
        return self.read(self.client(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), tcp=tcp))

    def close(self):
        for client in self.clients:
            client.close()
        self.server.close()
        self.loop.close()


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def status(answer):
    return int(answer.split(b" ")[1])


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
def test_an_answer_is_complete_and_the_connection_ends(stage, tcp):
    head, _, body = stage.ask(tcp=tcp).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 2" in head
    assert b"Connection: close" in head
    assert body == b"ok"


MALFORMED = {
    "no version": b"GET /\r\n\r\n",
    "old version": b"GET / HTTP/0.9\r\n\r\n",
    "next version": b"GET / HTTP/2.0\r\n\r\n",
    "no path": b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "relative path": b"GET pods HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "small letters": b"get / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "unknown method": b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n",
    "folded header": b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n",
    "header without colon": b"GET / HTTP/1.1\r\nHost: localhost\r\nabc\r\n\r\n",
    "blank before colon": b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "zero byte": b"GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "zero byte in header": b"GET / HTTP/1.1\r\nHost: localhost\0\r\n\r\n",
    "line feeds only, later a proper end": b"GET / HTTP/1.1\nHost: a\n\n\r\n\r\n",
    "negative length": b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    "length in letters": b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ten\r\n\r\n",
    "length in other digits": "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ²\r\n\r\n".encode("latin-1"),
    "two lengths": b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "huge length": b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999999999999\r\n\r\n",
    "chunked": b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "endless headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 4000,
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
def test_a_malformed_request_is_refused_with_a_reason(stage, request_bytes, tcp):
    answer = stage.read(stage.client(request_bytes, tcp=tcp))
    assert 400 <= status(answer) < 500
    assert len(answer.partition(b"\r\n\r\n")[2]) > 5
    assert stage.notes == []


def test_random_bytes_and_damaged_requests_never_get_through_as_a_failure_of_the_server():
    dice = random.Random(7)  # noqa: S311 - the same bytes every time
    good = b"GET /evict/a%2Fb/c?x=%zz&y HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(dice.randint(1, 6)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            parsed = parse_request(bytes(data))
        except HttpRefusal:
            continue
        assert parsed is None or parsed[0].body_bytes <= http_connection._READ_BYTES


def test_a_request_may_come_a_byte_at_a_time(stage):
    client = stage.client()
    for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n":
        client.send(bytes([byte]))
        stage.loop.step(0)
    assert status(stage.read(client)) == 200


def test_who_says_no_more_after_the_request_is_answered_all_the_same(stage):
    client = stage.client(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    client.shutdown(socket.SHUT_WR)
    answer = stage.read(client)
    assert answer.endswith(b"0\r\n\r\n")
    assert len(answer) > 1024 * len(LARGE)


def test_a_head_request_gets_only_the_head(stage):
    answer = stage.read(stage.client(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    assert status(answer) == 200
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("target", ["/broken", "/broken-later"])
def test_a_failure_of_an_answer_is_answered_and_noted_and_nothing_else(stage, target):
    assert status(stage.ask(target)) == 500
    assert "ZeroDivisionError" in stage.notes[0]
    assert status(stage.ask()) == 200


def test_an_answer_that_is_not_read_is_not_produced(stage):
    stage.client(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for _ in range(50):
        stage.loop.step(0.01)
    made = stage.made
    assert 0 < made < 100
    for _ in range(20):
        stage.loop.step(0.01)
    assert stage.made == made


def test_who_does_not_read_is_dropped(stage, monkeypatch):
    monkeypatch.setattr(http_connection, "_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(http_server, "_SWEEP_SECONDS", 0.05)
    client = stage.client(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    stage.until(lambda: any(endpoint.connections for _, endpoint in stage.server._listeners))
    stage.until(lambda: not any(endpoint.connections for _, endpoint in stage.server._listeners))
    assert len(stage.read(client)) < 1024 * len(LARGE)


def test_who_begins_a_request_and_goes_silent_is_told_and_dropped(stage, monkeypatch):
    monkeypatch.setattr(http_connection, "_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(http_server, "_SWEEP_SECONDS", 0.05)
    client = stage.client(b"GET / HTTP/1.1\r\n")
    assert status(stage.read(client)) == 408


def test_too_many_connections_are_rejected_and_do_not_affect_the_other_socket(stage):
    for _ in range(http_server._MOST_CONNECTIONS):
        stage.client(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n", tcp=True)
        stage.loop.step(0.01)
    assert status(stage.ask(tcp=True)) == 503
    assert status(stage.ask()) == 200


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1\r\nHost: local"], ids=["silent", "half a request"])
def test_clients_without_a_complete_request_lock_nobody_out(stage, data):
    for _ in range(2 * http_server._MOST_CONNECTIONS):
        stage.client(data, tcp=True)
        stage.loop.step(0.01)
    assert status(stage.ask(tcp=True)) == 200
    assert all(len(endpoint.connections) <= http_server._MOST_CONNECTIONS for _, endpoint in stage.server._listeners)


def test_clients_that_do_not_read_their_answer_lock_nobody_out(stage, monkeypatch):
    monkeypatch.setattr(http_connection, "_STALLED_SECONDS", 0.1)
    for _ in range(http_server._MOST_CONNECTIONS):
        stage.client(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", tcp=True)
    endpoint = stage.server._listeners[1][1]
    stage.until(lambda: any(connection.uselessness for connection in endpoint.connections))
    assert status(stage.ask(tcp=True)) == 200


def test_a_follower_gets_what_is_there_and_ends_when_it_disconnects(stage):
    client = stage.client(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
    heard = bytearray()

    def has_come():
        with suppress(BlockingIOError):
            heard.extend(client.recv(4096))
        return heard.endswith(b"4\r\none\n\r\n")

    stage.until(has_come)
    assert stage.server._turns.followers == 1
    client.close()
    stage.until(lambda: stage.server._turns.followers == 0)


def test_only_so_many_may_follow(stage):
    for _ in range(http_connection.MOST_FOLLOWERS):
        stage.client(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
    stage.until(lambda: stage.server._turns.followers == http_connection.MOST_FOLLOWERS)
    assert status(stage.ask("/endless")) == 503
    assert status(stage.ask()) == 200


def test_however_many_ask_a_turn_of_the_loop_makes_one_piece_at_most(stage):
    """So that what is urgent never waits for more than one."""
    for _ in range(http_server._MOST_CONNECTIONS - 1):
        stage.client(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    turns = []
    while sum(turns) < 300:
        before = stage.made
        stage.loop.step(0.01)
        turns.append(stage.made - before)
        for client in stage.clients:
            with suppress(BlockingIOError):
                client.recv(1 << 16)
    assert max(turns) == 1


def test_answering_never_takes_more_than_half_of_the_time(stage):
    for _ in range(4):
        stage.client(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
    before, began = stage.made, time.monotonic()
    stage.until(lambda: stage.made - before >= 20)
    assert time.monotonic() - began >= 0.38  # each takes a hundredth of a second, and as long again is left


def test_a_port_answers_only_to_the_names_of_this_machine(stage):
    good = ("localhost", "localhost:10255", "127.0.0.1:80", "127.0.0.1", "[::1]:1", "[::1]")
    bad = ("evil.example", "localhost.evil.example", "127.evil.example:80", "10.0.0.1", "[::2]:1")
    for host, code in (*((host, 200) for host in good), *((host, 403) for host in bad)):
        client = stage.client(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), tcp=True)
        assert status(stage.read(client)) == code, host


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ("Origin: http://localhost:10255\r\n", 200),
        ("Sec-Fetch-Site: same-origin\r\n", 200),
        ("Sec-Fetch-Site: none\r\n", 200),
        ("Origin: http://evil.example\r\n", 403),
        ("Origin: null\r\n", 403),
        ("Origin: https://localhost:10255\r\n", 403),
        ("Sec-Fetch-Site: cross-site\r\n", 403),
        ("Sec-Fetch-Site: same-site\r\n", 403),
        ("Origin: http://localhost:10255\r\nOrigin: http://evil.example\r\n", 400),
    ],
)
def test_a_port_answers_no_page_of_another_site(stage, headers, code):
    client = stage.client(f"GET / HTTP/1.1\r\nHost: localhost:10255\r\n{headers}\r\n".encode(), tcp=True)
    assert status(stage.read(client)) == code


def test_a_port_of_every_address_answers_to_addresses_and_the_own_name_and_to_nothing_else(stage):
    stage.port = stage.server.listen_tcp("0.0.0.0", 0)  # noqa: S104
    own = socket.gethostname()
    for host, code in (("10.0.0.1:80", 200), (own, 200), (f"{own}:80", 200), ("evil.example", 403)):
        client = stage.client(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), tcp=True)
        assert status(stage.read(client)) == code, host


def test_the_socket_is_for_its_owner_alone(stage, tmp_path):
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600
