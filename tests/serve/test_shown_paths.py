"""No answer tells where files are on the server: visitors see names, or paths below what the command was given."""

from __future__ import annotations

import json
import sys

import pytest
from tests.library.clusters import lines
from tests.library.page_sources import JOURNAL, LOG, USAGE, pod

from podqos.cli.main import main
from podqos.manifest.encoding import json_line
from podqos.objects.files import InputFile
from podqos.page.session import LogFile, PageSource, SourceKind
from podqos.reading import built_page
from podqos.reading.scenario_files import load_scenario
from podqos.reading.shipped_scenarios import scenario_dir
from podqos.runs import run as simulation
from podqos.serve.shown_paths import ShownPaths, without_directories
from serve.running import SHORT, VIEWER, eventually, running

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
SECRET = "whose-home-this-is"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a directory with one of everything."""
    place = tmp_path_factory.mktemp(SECRET)
    shop = place / "shop"
    shop.mkdir()
    (shop / "pods.yaml").write_bytes(pod("a", "one") + b"---\n" + pod("b", "one"))
    (shop / "bad.yaml").write_bytes(b"kind: Pod\nmetadata: {name: [}\n")
    (shop / "more").mkdir()
    (shop / "more" / "kustomization.yaml").write_bytes(b"resources: [gone.yaml, c.yaml]\n")
    (shop / "more" / "c.yaml").write_bytes(pod("c", "one"))
    (place / "usage.csv").write_bytes(USAGE)
    (place / "kern.log").write_bytes(LOG)
    (place / "journal.jsonl").write_bytes(JOURNAL)
    (place / "pod.yaml").write_bytes(pod("leaky", "").replace(b"requests", b"limits"))
    (place / "scenario.yaml").write_bytes(SHORT)
    (place / "cluster.json").write_bytes(b"\n".join(lines()))
    (place / "run.json").write_bytes(json_line(simulation.simulate(load_scenario(str(place / "scenario.yaml"))).report))
    return place


SOURCES = {
    "manifests, their usage and a log": ["shop", "usage.csv", "kern.log"],
    "a scenario": ["scenario.yaml"],
    "a snapshot": ["cluster.json"],
    "a log": ["kern.log"],
    "a run": ["run.json"],
}


def asked(server, info):
    """Yield every answer about a source."""
    visitor = server.visitor()
    of = f"/api/sources/{info['id']}"
    for path in (
        "/api/session",
        "/api/live?once=1",
        of,
        *(f"{of}/{view}" for view in ("cluster", "check", "autopsy", "run")),
    ):
        yield path, visitor.ask(path)
    for view, body in (("what-if", {}), ("forecast", {}), ("fix", {}), ("forecast", {"node": "gone"})):
        yield view, visitor.ask(f"{of}/{view}", json.dumps(body).encode())
    for name in ("a", "leaky", "gone"):
        yield name, visitor.ask(f"{of}/pods?pod=default/{name}")
    yield "paste", visitor.ask(f"/api/autopsy?source={info['id']}", LOG)
    for kind in ("run", "blast"):
        if kind in info["views"] and info["kind"] != "run":
            job = visitor.value("/api/jobs", {"kind": kind, "source": info["id"]})["id"]
            visitor.ended(job)
            yield kind, visitor.ask(f"/api/jobs/{job}")
            yield kind, visitor.ask(f"/api/jobs/{job}/result")


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_no_answer_tells_where_a_source_is(folder, name):
    with running(*(folder / path for path in SOURCES[name])) as server:
        (info,) = server.visitor().value("/api/session")["sources"]
        assert info["name"] == ", ".join(SOURCES[name])
        assert 200 in {status for _, (status, _, _) in asked(server, info)}
        for path, (_, headers, data) in asked(server, info):
            assert SECRET not in data.decode(), path
            assert SECRET not in str(headers), path


@on_linux
def test_neither_a_problem_nor_the_trouble_with_a_file_tells_where_it_is(folder, tmp_path):
    (tmp_path / SECRET).mkdir()
    file = tmp_path / SECRET / "pods.yaml"
    file.write_bytes(pod("a") + b"---\nkind: Pod\nmetadata: {name: [}\n")
    with running(file) as server:
        visitor = server.visitor()
        (info,) = visitor.value("/api/session")["sources"]
        assert [problem["file"] for problem in info["problems"]] == ["pods.yaml"]
        assert info["problems"][0]["message"].startswith("pods.yaml:")
        file.unlink()

        def trouble():
            (age,) = [event for event in visitor.once() if "'trouble'" in str(event)][:1] or [""]
            return str(age) if "pods.yaml" in str(age) else ""

        assert SECRET not in eventually(trouble, "the trouble")


@pytest.mark.parametrize("name", SOURCES)
def test_no_saved_page_tells_where_its_source_is(folder, tmp_path, monkeypatch, capsys, name):
    monkeypatch.setattr(built_page, "built_viewer", lambda: VIEWER)
    main(["ui", *(str(folder / path) for path in SOURCES[name]), "--html", str(tmp_path / "saved.html")])
    capsys.readouterr()
    saved = (tmp_path / "saved.html").read_text()
    assert SOURCES[name][0] in saved
    assert SECRET not in saved


def test_no_saved_autopsy_tells_where_its_log_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(built_page, "built_viewer", lambda: VIEWER)
    log = tmp_path / SECRET / "kern.log"
    log.parent.mkdir()
    log.write_bytes((scenario_dir("content-platform") / "incident" / "kern.log").read_bytes())
    main(["autopsy", str(log), "--html", str(tmp_path / "saved.html")])
    capsys.readouterr()
    saved = (tmp_path / "saved.html").read_text()
    assert "kern.log" in saved
    assert SECRET not in saved


@pytest.mark.parametrize(
    ("given", "text", "shown"),
    [
        (["/home/me/shop"], "/home/me/shop/web/pods.yaml:3:5: error", "shop/web/pods.yaml:3:5: error"),
        (["/home/me/pods.yaml"], "in '/home/me/pods.yaml'.", "in 'pods.yaml'."),
        (["/a/x.yaml", "/b/x.yaml"], "/a/x.yaml, /b/x.yaml", "a/x.yaml, b/x.yaml"),
        (["../me/pods.yaml"], "../me/pods.yaml:1:1", "pods.yaml:1:1"),
        (["shop/pods.yaml"], "shop/pods.yaml:1:1", "shop/pods.yaml:1:1"),
        # Other paths stay, also longer ones that begin alike.
        (["/home/me/shop"], "/home/me/shopping/x, /mnt/home/me/shop", "/home/me/shopping/x, /mnt/home/me/shop"),
        (["/etc"], "mountPath: /etc, /etc/cache", "mountPath: /etc, /etc/cache"),
        (["/etc/x.yaml"], "/etc/x.yaml:1:1, /etc/cache", "x.yaml:1:1, /etc/cache"),
        (['/home/me/a"b.yaml'], '/home/me/a\\"b.yaml:1:1', 'a\\"b.yaml:1:1'),
    ],
)
def test_paths_become_names_below_what_was_given(given, text, shown):
    source = PageSource(SourceKind.MANIFESTS, "", looked_at=tuple(given))
    assert ShownPaths(source).hide(text.encode()).decode() == shown


def test_files_that_a_source_reads_elsewhere_become_their_names():
    files = (InputFile("/srv/chart/templates/web.yaml", data=b""), InputFile("/etc/x.yaml", data=b""))
    logs = (LogFile("/var/lib/podqos/guard/journal.jsonl"),)
    source = PageSource(SourceKind.MANIFESTS, "", looked_at=("/etc",), files=files, logs=logs)
    text = b"/srv/chart/templates/web.yaml /etc/x.yaml /var/lib/podqos/guard/journal.jsonl"
    assert ShownPaths(source).hide(text) == b"web.yaml etc/x.yaml journal.jsonl"


def test_messages_of_errors_do_not_tell_whose_server_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.chdir(tmp_path)
    assert without_directories(f"/home/me/.kube/config, {tmp_path}/a.yaml") == "~/.kube/config, a.yaml"
