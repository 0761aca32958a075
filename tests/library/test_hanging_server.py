"""An API server that hangs, answers half or is down: nobody waits for it, and what is known says how old it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from cluster.serving import Request, Server, Wire, status
from library.test_exporter import got, until, watched
from podqos.cluster import asking, kubelets, watching
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access
from podqos.cluster.patience import Patience
from podqos.errors import Unreachable
from podqos.reading import heartbeat, measuring
from podqos.reading.mirror import Mirror
from podqos.serve.exporter import Exporter, serve

BRIEF = Patience(connect_seconds=0.5, stall_seconds=0.3, total_seconds=1.0, attempts=1)
SCRAPE_SECONDS = 5.0
"""Much less than a request that hangs takes, much more than a scrape on a busy machine."""


def half(wire: Wire) -> None:
    """Answer the first bytes of something long."""
    wire.head(200, Content_Type="application/json", Content_Length="4096")
    wire.send(b'{"major":"1","gitVer')
    wire.stall()


ILLS = [
    pytest.param(Wire.stall, id="accepts-and-never-answers"),
    pytest.param(half, id="answers-half"),
    pytest.param(lambda _: status(503, "ServiceUnavailable", "etcd is ill"), id="answers-with-errors"),
    pytest.param(Wire.abort, id="closes"),
]


class Patient:
    """An API server whose state a test changes; watches that run stay as they are."""

    def __init__(self) -> None:
        self.ill: Callable[[Wire], object] | None = None
        self.about: Callable[[Request], bool] = lambda _: True
        self._well = watched({})

    def __call__(self, request: Request) -> object:
        if self.ill is None or not self.about(request):
            return self._well(request)
        if self.ill in {Wire.stall, Wire.abort, half}:
            return self.ill
        return self.ill(None)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(heartbeat, "_BRIEF", BRIEF)
    monkeypatch.setattr(heartbeat, "_EVERY_SECONDS", 0.05)
    monkeypatch.setattr(kubelets, "_PATIENCE", BRIEF)
    monkeypatch.setattr(measuring, "_RETRY_SECONDS", 0.05)
    for module in (asking, watching):
        monkeypatch.setattr(module, "pause_seconds", lambda *_: 0.05)


@contextmanager
def exporting(patient: Patient) -> Iterator[tuple[Exporter, object]]:
    """Yield an exporter of a served cluster, and its own server."""
    with Server(patient) as server, Cluster(Access(server=server.url)) as cluster:
        mirror = Mirror(cluster, usage_seconds=0.1)
        exporter = Exporter(mirror, every_seconds=0.0)
        with serve(exporter, "127.0.0.1", 0) as own:
            yield exporter, own


def start(exporter: Exporter) -> None:
    exporter.mirror.start()
    exporter.mirror.measure_in_background()


def scraped(server: object) -> dict[str, float]:
    """Return the samples by name and labels; the answer has to come at once."""
    began = time.monotonic()
    code, text = got(server, "/metrics")
    assert time.monotonic() - began < SCRAPE_SECONDS
    assert code == 200, text
    samples = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


HEADROOM = 'podqos_node_memory_headroom_bytes{node="atlas-1"}'
MEASURED = 'podqos_node_usage_measured{node="atlas-1"}'
OBJECTS, USAGE = (f'podqos_exporter_data_age_seconds{{source="{source}"}}' for source in ("objects", "usage"))


@pytest.mark.parametrize("ill", ILLS)
def test_a_scrape_is_answered_from_what_is_known_until_the_api_server_is_back(ill):
    patient = Patient()
    with exporting(patient) as (exporter, server):
        start(exporter)
        until(lambda: exporter.is_ready)
        until(lambda: scraped(server)["podqos_exporter_up"] == scraped(server)[MEASURED] == 1)
        healthy = scraped(server)
        patient.ill = ill
        until(lambda: not exporter.mirror.is_current)
        until(lambda: min(exporter.mirror.age().usage_seconds, exporter.mirror.age().objects_seconds) > 0.5)
        during = scraped(server)
        assert during["podqos_exporter_up"] == 0
        assert min(during[OBJECTS], during[USAGE], during['podqos_node_usage_age_seconds{node="atlas-1"}']) > 0.5
        assert (during[HEADROOM], during[MEASURED]) == (healthy[HEADROOM], 1)
        assert got(server, "/readyz")[0] == got(server, "/healthz")[0] == 200
        patient.ill = None
        until(lambda: scraped(server)["podqos_exporter_up"] == 1)
        until(lambda: scraped(server)[USAGE] < during[USAGE] and scraped(server)[OBJECTS] < during[OBJECTS])


def test_before_anything_was_read_the_answer_is_503_with_the_reason():
    patient = Patient()
    patient.ill, patient.about = Wire.stall, lambda request: "/proxy/" in request.path or request.path == "/version"
    with exporting(patient) as (exporter, server):
        assert got(server, "/metrics") == (503, "the cluster has not been read yet\n")
        assert (got(server, "/readyz")[0], got(server, "/healthz")[0]) == (503, 200)
        exporter.mirror._follower.start(exporter.mirror._cluster)
        exporter.mirror.measure_in_background()
        until(lambda: exporter.mirror.is_complete and exporter.mirror.age().trouble)
        code, text = got(server, "/metrics")
        assert code == 503
        assert text.startswith("usage has not been read yet: ")
        assert "no data for" in text


def test_a_silent_kubelet_leaves_its_node_the_last_figures_for_a_while(monkeypatch):
    patient = Patient()
    patient.about = lambda request: "/proxy/" in request.path
    with exporting(patient) as (exporter, server):
        start(exporter)
        until(lambda: exporter.is_ready)
        healthy = scraped(server)
        patient.ill = Wire.stall
        until(lambda: exporter.mirror.usage_ages()["atlas-1"] > 1.5)
        until(lambda: exporter.mirror.age().usage_seconds < 1.5)  # others are still asked
        until(lambda: scraped(server)["podqos_exporter_up"] == 1)
        during = scraped(server)
        assert (during[HEADROOM], during[MEASURED]) == (healthy[HEADROOM], 1)
        noted = [each for each in exporter.mirror.known().assumptions if "s ago" in each.value]
        assert [each.what for each in noted] == ["usage of node atlas-1"]
        monkeypatch.setattr(measuring, "_KEPT_SECONDS", 0.5)
        until(lambda: scraped(server)[MEASURED] == 0)


def test_what_a_kubelet_may_not_say_any_more_is_forgotten_at_once():
    patient = Patient()
    patient.about = lambda request: "/proxy/" in request.path
    with exporting(patient) as (exporter, server):
        start(exporter)
        until(lambda: exporter.is_ready)
        patient.ill = lambda _: status(404, "NotFound", "no such node")
        until(lambda: scraped(server)[MEASURED] == 0)


def test_growth_is_not_computed_from_figures_that_were_not_renewed():
    from library import clusters
    from podqos.questions.overview import overview
    from podqos.serve.exporter import HeadroomGrowth

    whole = overview(clusters.snapshot())
    node = next(each for each in whole.nodes if each.name == "atlas-1")

    def at(measured_at: float, headroom: int) -> dict[str, float]:
        shrunk = replace(whole, nodes=(replace(node, headroom_bytes=headroom),))
        return growth.pressure_seconds(shrunk, {"atlas-1": measured_at})

    growth = HeadroomGrowth()
    at(0.0, 1000)
    assert at(100.0, 900) == at(100.0, 900) == {"atlas-1": 900.0}


def test_the_exporter_starts_as_soon_as_the_api_server_answers(monkeypatch, capsys):
    from podqos.cli.commands import exporter

    class Late:
        attempts = 0

        def start(self) -> None:
            self.attempts += 1
            if self.attempts < 3:
                raise Unreachable("no TLS within 10 s", where="https://api.example.com")

    mirror = Late()
    monkeypatch.setattr(exporter, "_RETRY_SECONDS", 0.0)
    exporter._start(mirror)
    assert mirror.attempts == 3
    assert capsys.readouterr().err == (
        "podqos exporter: https://api.example.com: no TLS within 10 s; trying again\n"  # once
    )
