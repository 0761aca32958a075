"""`podqos ui --prometheus`: memory over time on the pod page, and what happens when Prometheus is away."""

from __future__ import annotations

import json
import time

import pytest
from tests.cluster.serving import Server

from podqos.advice.sizing.samples import ContainerSamples
from podqos.cli.main import main
from podqos.errors import InputError
from podqos.page.session import PageSource, SourceKind
from podqos.reading import built_page
from podqos.serve import history_feed
from podqos.serve.history_feed import HistoryFeed
from serve.running import POD, VIEWER, eventually

LABELS = {"namespace": "default", "pod": "leaky", "container": "c"}
MI = 2**20


def _answer(request):
    start, end, step = (float(request.query[name]) for name in ("start", "end", "step"))
    query = request.query["query"]
    amounts = {"working_set": 90 * MI, "resource_limits": 100 * MI}
    amount = next((amount for name, amount in amounts.items() if name in query), None)
    points = int((end - start) / step) + 1
    values = [[start + number * step, str(amount)] for number in range(points)]
    result = [] if amount is None else [{"metric": LABELS, "values": values}]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


@pytest.fixture
def manifest(tmp_path, monkeypatch):
    monkeypatch.setattr(built_page, "built_viewer", lambda: VIEWER)
    path = tmp_path / "pod.yaml"
    path.write_bytes(POD)
    return path


def test_prometheus_is_asked_for_memory_and_kills_of_the_namespaces_on_the_page(manifest, tmp_path):
    page = tmp_path / "page.html"
    with Server(_answer) as server:
        assert main(["ui", str(manifest), "--prometheus", server.url, "--from", "2h", "--html", str(page)]) == 0
        queries = [request.query["query"] for request in server.requests]
    assert all('namespace="default"' in query for query in queries)
    assert not any("cpu_usage" in query for query in queries)
    assert any("container_oom_events_total" in query for query in queries)
    text = page.read_text()
    assert "90 % of the limit (100Mi)" in text


def test_what_is_not_about_pods_has_no_usage_over_time(tmp_path, capsys, manifest):
    log = tmp_path / "kern.log"
    log.write_text("Nov 16 03:12:07 worker-1 kernel: nothing happened\n")
    assert main(["ui", str(log), "--prometheus", "http://127.0.0.1:9", "--html", str(tmp_path / "page.html")]) == 2
    assert "only pods of manifests, of a snapshot or of something live have usage over time" in capsys.readouterr().err
    assert main(["ui", str(manifest), "--prometheus-token-file", "me"]) == 2
    assert "add --prometheus URL" in capsys.readouterr().err


def test_a_prometheus_that_does_not_answer_ends_the_command_with_one_message(manifest, tmp_path, capsys):
    with Server(lambda _: (503, {}, b"")) as server:
        arguments = ["ui", str(manifest), "--prometheus", server.url, "--html", str(tmp_path / "page.html")]
        assert main(arguments) != 0
    assert "Traceback" not in capsys.readouterr().err


class _Still:
    """A feed that does not change."""

    pause_seconds = 0.1

    def look(self):
        return None


def test_usage_is_queried_again_in_the_background_and_a_failure_keeps_what_is_known(monkeypatch):
    monkeypatch.setattr(history_feed, "_AGAIN_SECONDS", 0.0)
    answers = [(ContainerSamples("a"),), InputError("away"), InputError("away"), (ContainerSamples("b"),)]
    said: list[str] = []

    def query():
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, InputError):
            raise answer
        return answer

    own = ContainerSamples("own")
    feed = HistoryFeed(_Still(), PageSource(SourceKind.MANIFESTS, "all", samples=(own,)), query, said.append)
    assert [sample.pod for sample in feed.first.samples] == ["own", "a"]
    source = eventually(lambda: time.sleep(0.01) or feed.look())
    assert [sample.pod for sample in source.samples] == ["own", "b"]
    assert said == ["usage over time is not updated: away"]
