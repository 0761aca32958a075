"""Attacks on the HTTP server by clients that connect, and send or read less than they should.

Each with the limits that are shipped, against a process of its own. Others are served in time, the memory stays below
the limit of the manifests, and everything is returned.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from web.attacks.page import attacked as page_attacked
from web.attacks.target import allow_many_connections, attacked, target

MANIFESTS = Path(__file__).parents[3] / "deploy" / "kustomize"
MIB = 1 << 20


def shipped_bytes(part):
    """Return the memory limit in a part's manifests."""
    text = (MANIFESTS / part / "manifests.yaml").read_text()
    [mebibytes] = set(re.findall(r"^            memory: (\d+)Mi$", text, re.MULTILINE))
    return int(mebibytes) * MIB


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Start one server of each kind: it has to recover from each attack."""
    with target("webhook", tmp_path_factory.mktemp("certificates")) as webhook, target("page") as page:
        yield webhook, page


@pytest.fixture
def webhook(servers):
    servers[0].begin()
    yield servers[0]
    servers[0].close_all()


@pytest.fixture
def page(servers):
    servers[1].begin()
    yield servers[1]
    servers[1].close_all()


def unfinished_hello(trust):
    """Return what a client says first, after which it waits for the server."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trust.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.mark.slow
def test_silent_connections_count_before_tls_and_make_room(webhook):
    count = min(9000, allow_many_connections() - 500)
    for _ in range(count):
        webhook.connect(is_silent=True)
    webhook.still_serves()
    assert webhook.held()["connections"] <= 2049
    webhook.stays_below(webhook.base_bytes + 32 * MIB)
    webhook.stays_below(shipped_bytes("webhook"))
    webhook.calms_down()


@pytest.mark.parametrize("what", ["the first bytes", "a whole hello", "garbage", "a record that is too large"])
def test_handshakes_that_never_end_cost_little_and_lock_nobody_out(webhook, what):
    data = {
        "the first bytes": b"\x16\x03\x01\x02\x00\x01",
        "a whole hello": unfinished_hello(webhook.trust),
        "garbage": b"GET / HTTP/1.1\r\n\r\n" * 50,
        "a record that is too large": b"\x16\x03\x01\xff\xff" + b"\x00" * 1000,
    }[what]
    for _ in range(600):
        webhook.connect(data, is_silent=True)
    webhook.still_serves()
    assert webhook.held()["handshakes"] <= 257
    webhook.stays_below(webhook.base_bytes + 48 * MIB)
    webhook.calms_down()


def test_a_client_that_renegotiates_is_refused(webhook):
    old = ssl.create_default_context()
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", webhook.port)) as plain, old.wrap_socket(plain) as client:
        assert client.version() == "TLSv1.2"
    from podqos.web.tls import _context

    assert _context().options & ssl.OP_NO_RENEGOTIATION


HALVES = (
    b"",
    b"GET / HTTP/1.1\r\nHost: x\r\nX-",
    b"POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
    b"POST /wait HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n",
    b"\r\n\r\n\r\n",
)


@pytest.mark.parametrize(
    "data", HALVES, ids=["silent", "half a head", "half a body", "waiting to be told to continue", "empty lines"]
)
def test_half_open_requests_lock_nobody_out(page, data):
    for _ in range(1200):
        page.connect(data)
    page.still_serves()
    assert page.held()["connections"] <= 1025
    page.stays_below(page.base_bytes + 32 * MIB)
    page.calms_down()


@pytest.mark.slow
def test_a_server_with_few_descriptors_makes_room_before_it_has_none():
    with target("page", most_files=128) as server:
        for _ in range(200):
            server.connect()
        server.still_serves()
        assert server.held()["connections"] <= 128 - 64 + 1
        server.calms_down()


def test_attackers_that_come_again_and_again_lock_nobody_out(page):
    is_over = threading.Event()

    def attack():
        while not is_over.wait(0.005):
            page.connect(b"POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")

    for _ in range(1100):
        page.connect(b"GET / HTTP/1.1\r\nHost: x\r\nX-")
    attacking = threading.Thread(target=attack)
    attacking.start()
    try:
        page.still_serves()
    finally:
        is_over.set()
        attacking.join()
    page.calms_down()


@pytest.mark.slow
def test_a_view_of_the_page_is_answered_in_time_behind_half_open_requests(tmp_path):
    with page_attacked(tmp_path) as attacked_page:
        port = attacked_page.server.port
        sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(1200)]
        for number, client in enumerate(sockets):
            with suppress(OSError):
                client.sendall(HALVES[number % len(HALVES)])
        attacked_page.still_serves()
        for client in sockets:
            client.close()


def test_known_visitors_keep_their_connections_during_a_flood(page):
    known = page.connect(b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 200 " in known.recv(65536)
    for _ in range(1200):
        page.connect()
    page.still_serves()
    known.sendall(b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 200 " in known.recv(65536)


def test_requests_that_wait_for_a_lock_leave_room_for_others_and_end_with_their_clients(page):
    for _ in range(1200):
        page.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    page.still_serves()
    page.stays_below(page.base_bytes + 48 * MIB)
    page.calms_down()


@pytest.mark.slow
def test_bodies_are_charged_until_they_are_processed(page):
    """Each is complete, and waits for a lock."""
    body = bytes(28 * MIB)
    for _ in range(24):
        page.connect(b"POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert page.held()["buffered"] <= 128 * MIB
    assert page.ask("/quick", b"x" * 1000) == (200, b"1000 bytes\n")
    page.still_serves()
    page.stays_below(page.base_bytes + (128 + 2 * 28 + 24) * MIB)
    page.calms_down()


@pytest.mark.slow
def test_bodies_that_stop_arriving_make_room_for_others(page):
    body = bytes(20 * MIB)
    half = b"POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (32 * MIB) + body
    for _ in range(8):
        page.connect(half)
    page.still_serves()
    time.sleep(2.1)  # from now on they are slow
    page.connect(b"POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    until = time.monotonic() + 60
    while "/wait" not in page.ask("/seen")[1].decode():
        assert time.monotonic() < until
        time.sleep(0.05)
    page.stays_below(page.base_bytes + (128 + 2 * 32 + 24) * MIB)
    page.calms_down()


def test_a_body_in_tiny_chunks_is_refused_before_it_costs_much(page):
    client = page.connect(b"POST /wait HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    answer = b""
    try:
        for _ in range(100):
            client.sendall(b"1\r\nx\r\n" * 1000)
    except OSError:
        pass
    client.settimeout(60)
    answer = client.recv(1000)
    assert b" 400 " in answer
    page.still_serves()


@pytest.mark.slow
@pytest.mark.parametrize(("path", "most"), [("/page", 32), ("/large", 64 + 32), ("/stream", 64 + 48)])
def test_clients_that_do_not_read_their_answers_cost_little(page, path, most):
    for _ in range(60):
        client = page.connect()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    page.still_serves()
    page.stays_below(page.base_bytes + most * MIB)
    page.calms_down()


@pytest.mark.parametrize("path", ["/page", "/large", "/quick"])
def test_a_thousand_requests_in_one_packet_do_not_become_a_thousand_answers(page, path):
    for _ in range(5):
        page.connect(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 2000)
    page.still_serves()
    page.stays_below(page.base_bytes + 96 * MIB)
    page.calms_down()


def test_garbage_after_a_request_ends_what_is_done_for_it(page):
    for _ in range(20):
        page.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n\x00\x01garbage")
    page.still_serves()
    page.calms_down()


@pytest.mark.slow
def test_the_exporter_holds_with_its_own_limits():
    with target("exporter") as server:
        for _ in range(600):
            server.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\nX-")
        server.still_serves()
        server.stays_below(shipped_bytes("exporter"))
        server.calms_down()


@pytest.mark.slow
def test_the_webhook_command_holds_below_its_shipped_limit(tmp_path):
    """All at once: silent ones, handshakes, large reviews that never end, and complete ones."""
    from podqos.web.certificate import make

    make(str(tmp_path), ("localhost", "127.0.0.1"))
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    start = (
        "import re, sys, threading; from podqos.cli.main import main; import podqos.web.serving as web\n"
        "real = web.serve\n"
        "def serve(*given, say, **more):\n"
        "    tell = lambda text: print(text.rpartition(':')[2], flush=True) if 'listening' in text else None\n"
        "    return real(*given, say=tell, **more)\n"
        "web.serve = serve\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = ["-c", start, "webhook", "--certificate", tmp_path, "--listen", "127.0.0.1:0"]
    with attacked([*command, "--audit", tmp_path / "audit.log"], trust, "/healthz") as server:
        hello = unfinished_hello(trust)
        for _ in range(1200):
            server.connect(is_silent=True)
        for _ in range(300):
            server.connect(hello, is_silent=True)
        half = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (3 * MIB) + bytes(2 * MIB)
        for _ in range(40):
            server.connect(half)
        server.still_serves()
        server.stays_below(shipped_bytes("webhook"))
