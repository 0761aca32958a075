"""``podqos demo``: the whole story, and the page it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.cli.commands import demo
from podqos.cli.main import main


@pytest.fixture
def told(capsys, tmp_path, monkeypatch) -> tuple[str, Path]:
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    return capsys.readouterr().out, tmp_path


def test_it_goes_from_the_manifest_over_the_incident_to_the_repair(told):
    out, _ = told
    turns = [
        "article-service.yaml:42:11: warning PQ101 accidental-burstable",
        "article-service-0 evicted by the kubelet",
        "+              cpu: 100m",
        "the kubelet evicted 1 pod",
        "BestEffort → Burstable: the LimitRange default-limits",
        "log-collector-worker-1 (collector) killed by the kernel",
    ]
    places = [out.find(turn) for turn in turns]
    assert [turn for turn, place in zip(turns, places, strict=True) if place < 0] == []


def test_article_service_comes_through_once_repaired(told):
    before, after = told[0].split("The same day with the fix:")
    assert "article-service-0 evicted" in before
    assert "article-service-0 evicted" not in after.split("6. ")[0]


def test_it_writes_the_page_where_it_was_called_and_says_so(told):
    out, folder = told
    page = folder / demo.PAGE
    if page.exists():
        assert f"The page, as a file: file://{page}" in out
        assert b"OOMKilled" in page.read_bytes()
    else:
        assert "The page is not built" in out
    assert [path for path in folder.iterdir() if path != page] == []
