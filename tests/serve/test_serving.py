"""The page's server as a person meets it: it begins, shows what changes, runs what takes long, and ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest

from serve.running import LONG, POD, SHORT, VIEWER, eventually, is_gone, running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
TOO_LONG = {"long.yaml": LONG, "pod.yaml": POD}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "pod.yaml").write_bytes(POD)
    return folder


@pytest.fixture(scope="module")
def server():
    with running() as server:
        yield server


# ---- beginning and ending --------------------------------------------------------------------------------------------


def test_without_a_source_the_page_begins_empty_and_takes_uploads(server):
    visitor = server.visitor()
    assert visitor.ask("/")[2].decode() == VIEWER
    assert visitor.value("/api/session")["sources"] == []
    assert visitor.error("/api/sources/start/cluster")[0] == 404
    assert [kind for kind, _, _ in visitor.once()] == ["hello", "jobs", "age"]
    source = visitor.value("/api/sources?name=pod.yaml", POD)
    assert (source["kind"], source["files"]) == ("manifests", ["pod.yaml"])
    assert visitor.value(f"/api/sources/{source['id']}/cluster")["pods"][0]["name"] == "leaky"
    assert visitor.value(f"/api/sources/{source['id']}/pods?pod=default%2Fleaky")["name"] == "leaky"
    assert visitor.ask(f"/api/sources/{source['id']}", method="DELETE")[0] == 204
    assert visitor.error(f"/api/sources/{source['id']}")[0] == 404


@pytest.mark.slow
def test_a_port_that_is_taken_is_one_clear_message(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with running(folder, listen=address) as server:
            _, said = server.process.communicate(timeout=300)
    assert server.process.returncode == 3
    how = "choose another address with --listen, or another port with --port"
    assert said == f"podqos: error: {address}: Address already in use ({how})\n"


@pytest.mark.slow
def test_a_port_may_be_chosen_alone_and_is_then_not_replaced_by_another(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with running(folder, "--port", port, listen=None) as server:
            _, said = server.process.communicate(timeout=300)
    assert server.process.returncode == 3
    assert said.startswith(f"podqos: error: 127.0.0.1:{port}: Address already in use")
    with running(folder, "--port", port, listen=None) as server:
        assert server.port == port


@pytest.mark.slow
def test_where_no_port_is_asked_for_another_one_will_do(folder):
    with running(folder, listen=None) as one, running(folder, listen=None) as other:
        assert one.port != other.port
        assert other.visitor().ask("/api/session")[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_told_with_open_streams_and_says_no_more(folder, how):
    with running(folder) as server:
        visitor = server.visitor()
        with visitor.events("/api/live") as events:
            next(clusters(events))
            out, said = server.stop(how)
        assert server.process.returncode == 0
        assert (out, said) == ("", "podqos ui: press Ctrl-C to stop\n")


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_a_run_leaves_no_process():
    with running() as server:
        server.visitor().begin(TOO_LONG)
        [worker] = eventually(server.workers, "a worker")
        server.stop()
        assert server.process.returncode == 0
        eventually(lambda: is_gone(worker), "the end of the worker")


@pytest.mark.slow
def test_a_server_that_is_killed_takes_its_workers_with_it():
    with running() as server:
        server.visitor().begin(TOO_LONG)
        [worker] = eventually(server.workers, "a worker")
        server.stop(signal.SIGKILL)
        eventually(lambda: is_gone(worker), "the end of the worker")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["missing.yaml"], "missing.yaml"),
        (["-"], "standard input"),
        (["--html", "page.html"], "no SOURCE to save"),
        (["--listen", "nowhere"], "'nowhere' is not a valid address"),
        (["race", "--all-namespaces"], "cannot be combined"),
        (["--state-dir", "/nowhere"], "no node is running"),
    ],
)
def test_what_cannot_be_shown_is_one_line_and_no_server(arguments, what, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "podqos", "ui", "--no-open", *arguments],
        capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False,
    )  # fmt: skip
    if "not built" in done.stderr:
        pytest.skip("the page is not built: make viewer")
    assert done.returncode in {2, 3}
    assert what in done.stderr
    assert len(done.stderr.splitlines()) == 1


# ---- the token -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_token_in_the_address_becomes_a_cookie_without_which_nothing_is_answered(folder):
    with running(folder, "--token") as server:
        stranger, visitor = server.visitor(), server.visitor()
        for path in ("/api/session", "/api/sources/start/cluster", "/api/live"):
            status, message = stranger.error(path)
            assert status == 401
            assert "token" in message
        assert stranger.error("/api/sources?name=a.yaml", POD)[0] == 401
        parts = urlsplit(server.url)
        assert stranger.ask("/?token=wrong")[0] == 401
        assert stranger.ask("/?token=")[0] == 200  # the page itself holds nothing
        assert not stranger.cookie
        status, headers, _ = visitor.ask(f"/?{parts.query}")
        assert (status, headers["location"]) == (303, "/")
        assert {"HttpOnly", "SameSite=Strict"} <= set(headers["set-cookie"].split("; "))
        assert visitor.value("/api/sources/start/cluster")["pods"]
        token = parts.query.partition("=")[2]
        assert stranger.ask("/api/session", Authorization=f"Bearer {token}")[0] == 200
        assert server.visitor().ask("/api/session", Authorization=f"Basic {token}")[0] == 401
        assert server.visitor().ask("/api/session", Cookie=f"podqos-{server.port}={token}")[0] == 401


@pytest.mark.slow
def test_whoever_listens_to_the_network_asks_for_a_token(folder):
    with running(folder, listen="0.0.0.0:0") as server:
        assert "/?token=" in server.url
        assert server.visitor().ask("/api/session")[0] == 401


# ---- what is live ----------------------------------------------------------------------------------------------------


def clusters(events):
    return (each for each in events if each[0] == "cluster")


@pytest.mark.slow
def test_a_file_that_changes_is_shown_as_it_is_now_and_a_broken_one_as_it_was(folder):
    with running(folder) as server:
        visitor = server.visitor()
        with visitor.events("/api/live") as events:
            _, first, value = next(clusters(events))
            assert [each["name"] for each in value["cluster"]["pods"]] == ["leaky"]
            # At once: between the two halves of a write the file is empty, and that is a change, too.
            (folder.parent / "partial").write_bytes(POD.replace(b"leaky", b"other"))
            (folder.parent / "partial").rename(folder / "pod.yaml")
            _, second, value = next(clusters(events))
            assert [each["name"] for each in value["cluster"]["pods"]] == ["other"]
            assert first != second
            folder.rename(folder.parent / "away")
            until = time.monotonic() + 60
            while not (broken := visitor.value("/api/sources/start")["broken"]):
                assert time.monotonic() < until
                time.sleep(0.1)
            assert broken
        assert visitor.value("/api/sources/start/cluster")["pods"][0]["name"] == "other"


@pytest.mark.slow
def test_whoever_comes_back_is_not_sent_what_is_known(folder):
    with running(folder) as server:
        visitor = server.visitor()
        with visitor.events("/api/live") as events:
            _, known, _ = next(clusters(events))
        for asked, then in (
            ({"Last_Event_ID": known}, "age"),
            ({"since": known}, "age"),
            ({"Last_Event_ID": "of-another-server"}, "cluster"),
            ({}, "cluster"),
        ):
            since = asked.pop("since", "")
            with visitor.events(f"/api/live?since={since}", **asked) as events:
                assert [next(events)[0] for _ in range(3)] == ["hello", "jobs", then]
            assert [kind for kind, _, _ in visitor.once(since, **asked)] == ["hello", "jobs", then]


@pytest.mark.slow
def test_a_view_that_has_not_changed_is_not_sent_again(folder):
    with running(folder) as server:
        visitor = server.visitor()
        for path in ("/", "/api/sources/start/cluster"):
            status, headers, _ = visitor.ask(path)
            assert status == 200
            assert visitor.ask(path, If_None_Match=headers["etag"])[::2] == (304, b"")


# ---- long runs -------------------------------------------------------------------------------------------------------


def test_a_run_tells_how_far_it_is_and_ends_with_its_result(server):
    visitor = server.visitor()
    key = visitor.begin({"dir/short.yaml": SHORT, "dir/pod.yaml": POD})
    with visitor.events("/api/live") as events:
        told = (value[0] for kind, _, value in events if kind == "jobs")
        done = next(each for each in told if each["state"] not in {"queued", "running"})
    assert (done["id"], done["state"], done["progress"]) == (key, "done", 1.0)
    # Whoever loads the page again is told the same.
    assert visitor.value("/api/jobs") == [done]
    assert [value for kind, _, value in visitor.once() if kind == "jobs"] == [[done]]
    assert visitor.value(f"/api/jobs/{key}/result")["kind"] == "SimulationReport"


def test_leaks_are_computed_for_manifests_and_scenarios(server):
    visitor = server.visitor()
    for files in ({"pod.yaml": POD}, {"short.yaml": SHORT, "pod.yaml": POD}):
        key = visitor.begin(files, "blast")
        assert visitor.ended(key)["error"] == ""
        assert visitor.value(f"/api/jobs/{key}/result")["leaks"][0]["pod"] == "default/leaky"


@pytest.mark.slow
def test_a_run_that_is_cancelled_is_gone_and_the_next_one_runs():
    with running() as server:
        visitor = server.visitor()
        key = visitor.begin(TOO_LONG)
        [worker] = eventually(server.workers, "a worker")
        eventually(lambda: visitor.job(key)["state"] == "running", "the run")
        assert visitor.error(f"/api/jobs/{key}/result")[0] == 409
        assert visitor.value(f"/api/jobs/{key}", method="DELETE")["state"] == "cancelled"
        eventually(lambda: is_gone(worker), "the end of the worker")
        following = visitor.begin({"short.yaml": SHORT, "pod.yaml": POD})
        assert visitor.ended(following)["state"] == "done"
        assert visitor.job(key)["state"] == "cancelled"


@pytest.mark.slow
def test_a_worker_that_is_killed_is_an_error_and_the_server_goes_on():
    with running() as server:
        visitor = server.visitor()
        key = visitor.begin(TOO_LONG)
        [worker] = eventually(server.workers, "a worker")
        os.kill(worker, signal.SIGKILL)
        ended = visitor.ended(key)
        assert ended["state"] == "failed"
        assert "out of memory?" in ended["error"]
        assert visitor.ended(visitor.begin({"short.yaml": SHORT, "pod.yaml": POD}))["state"] == "done"


def test_so_many_runs_at_once_and_no_more(server):
    visitor = server.visitor()
    source = visitor.upload(TOO_LONG)["id"]
    asked = json.dumps({"kind": "run", "source": source}).encode()
    begun = [visitor.value("/api/jobs", asked)["id"] for _ in range(4)]
    status, message = visitor.error("/api/jobs", asked)
    assert status == 429
    assert "too many runs" in message
    for key in begun:
        visitor.value(f"/api/jobs/{key}", method="DELETE")
    assert {each["state"] for each in visitor.value("/api/jobs")} == {"cancelled"}


def test_large_uploads_are_read_in_a_process_of_their_own_with_the_same_result(server):
    visitor = server.visitor()
    large = b"\n---\n".join(POD.replace(b"leaky", b"pod-%d" % number) + b"#" * 2000 for number in range(200))
    source = visitor.value("/api/sources?name=large.yaml", large)
    assert len(visitor.value(f"/api/sources/{source['id']}/cluster")["pods"]) == 200
    assert len(visitor.value(f"/api/sources/{source['id']}/check")["items"]) >= 200
    status, message = visitor.error("/api/sources?name=large.yaml", LONG + b"#" * len(large))
    assert status == 422
    eventually(lambda: not server.workers(), "the end of its process")
    assert message.startswith("large.yaml:6:15: pod.yaml: not among the given files")


# ---- one file --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_as_a_file_holds_what_its_server_would_answer(folder, tmp_path):
    (folder / "more.yaml").write_bytes(POD.replace(b"leaky", b"other").replace(b"image: i", b"image: </script>"))
    page = tmp_path / "page.html"
    with running(folder, "--html", page) as writing:
        out, err = writing.process.communicate(timeout=300)
        assert (out, err.partition(" (")[0]) == ("", f"podqos ui: wrote {page}")
        assert writing.process.returncode == 0
    text = page.read_text()
    start = text.index('<script id="run" type="application/json">') + len('<script id="run" type="application/json">')
    app = json.loads(text[start : text.index("</script>", start)])["app"]
    assert app["session"]["limits"] is None
    with running(folder) as server:
        visitor = server.visitor()
        for path, value in app["answers"].items():
            assert visitor.value(path) == value, path
        assert {"/api/sources/start/cluster", "/api/sources/start/pods?pod=default%2Fleaky"} <= set(app["answers"])
