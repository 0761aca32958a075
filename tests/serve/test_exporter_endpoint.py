"""The exporter's endpoint: scrapes are computed once, and no failure is a traceback."""

from __future__ import annotations

import gzip
import http.client
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from podqos.errors import HostError
from podqos.serve.exporter import serve


class Exporter:
    """Computes when it is released."""

    def __init__(self):
        self.mirror = SimpleNamespace(fatal=None)
        self.is_ready = True
        self.release = threading.Event()
        self.begun = threading.Event()
        self.computed = 0

    def unready(self):
        return "the cluster has not been read yet\n"

    def metrics(self):
        self.computed += 1
        self.begun.set()
        assert self.release.wait(60)
        return "podqos_pods 1\n" * 1000


@pytest.fixture
def exporter():
    return Exporter()


@pytest.fixture
def server(exporter):
    said = []
    with serve(exporter, "127.0.0.1", 0, say=said.append) as server:
        server.said = said
        yield server
        exporter.release.set()


def asked(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.address[1], timeout=60)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.getheader("content-encoding"), answer.read()
    finally:
        connection.close()


def test_scrapes_that_arrive_together_are_computed_once_and_probes_do_not_wait(server, exporter):
    with ThreadPoolExecutor(5) as pool:
        scrapes = [pool.submit(asked, server, "/metrics") for _ in range(5)]
        assert exporter.begun.wait(60)
        assert asked(server, "/healthz")[0] == asked(server, "/readyz")[0] == 200
        time.sleep(0.5)  # all five have been taken: what is computed once is computed once, however late they come
        exporter.release.set()
        assert [scrape.result()[0] for scrape in scrapes] == [200] * 5
    assert exporter.computed == 1


def test_a_scrape_is_compressed_if_it_may_be(server, exporter):
    exporter.release.set()
    status, coding, body = asked(server, "/metrics", Accept_Encoding="gzip")
    assert (status, coding) == (200, "gzip")
    assert gzip.decompress(body) == b"podqos_pods 1\n" * 1000


def test_a_bug_is_an_answer_and_one_line(server, exporter, capfd):
    exporter.metrics = lambda: 1 // 0
    assert asked(server, "/metrics")[::2] == (500, b"podqos failed: ZeroDivisionError\n")
    assert server.said == ["/metrics: ZeroDivisionError: integer division or modulo by zero"]
    assert "Traceback" not in capfd.readouterr().err


def test_a_loopback_address_answers_only_to_names_of_this_machine(server):
    for host, status in (("localhost:9753", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("evil.example", 421)):
        assert asked(server, "/healthz", Host=host)[0] == status, host


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 200), ("POST", "/metrics", 405), ("GET", "/elsewhere", 404), ("HEAD", "/healthz", 200)],
)
def test_other_paths_and_methods(server, method, path, status):
    assert asked(server, path, method)[0] == status


def test_before_anything_was_read_it_is_not_ready(server, exporter):
    exporter.is_ready = False
    assert asked(server, "/metrics")[0] == asked(server, "/readyz")[0] == 503
    exporter.mirror.fatal = "may not watch pods"
    assert asked(server, "/healthz")[::2] == (500, b"may not watch pods\n")


def test_a_port_that_is_taken_is_one_clear_message(server, exporter):
    with pytest.raises(HostError, match=r"^127\.0\.0\.1:\d+: Address already in use"):
        serve(exporter, "127.0.0.1", server.address[1])
