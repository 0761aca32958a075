"""Whatever visitors upload, paste or ask: others are answered as before, memory stays bounded, all is returned."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
from contextlib import contextmanager, suppress

import pytest

from web.attacks.page import VIEW_SECONDS, attacked, counted, listed
from web.ui.running import LONG, POD, SHORT, eventually
from web.ui.test_source_caps import DAEMON_SET

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with attacked(tmp_path_factory.mktemp("temporary")) as page:
        yield page


@pytest.fixture(autouse=True)
def everything_is_returned(page):
    yield
    page.calms_down()


def sent(visitor, files):
    """Upload files; return status and answer."""
    from base64 import b64encode

    named = [{"name": name, "data": b64encode(data).decode()} for name, data in files.items()]
    body = json.dumps({"files": named}).encode()
    status, _, data = visitor.ask("/api/sources", body, Content_Type="application/vnd.podqos.files+json")
    return status, json.loads(data)


def viewed(files, *views):
    """Return an attack that uploads files and asks for views of them."""

    def attack(visitor):
        status, source = sent(visitor, files)
        assert status == 201, source
        return [visitor.ask(f"/api/sources/{source['id']}/{view}")[0] for view in views]

    return attack


def test_scenarios_of_a_few_bytes_with_many_nodes_stop_nobody(page):
    def rejected(visitor):
        return [sent(visitor, {"s.yaml": counted(100_000), "pod.yaml": POD}) for _ in range(10)]

    for answers in page.withstands(*[rejected] * 4):
        for status, answer in answers:
            assert status == 422
            assert "100,000 nodes; a page shows at most 5,000" in answer["error"]["message"]


def test_views_that_take_too_long_end_with_a_message_and_stop_nobody(page):
    files = {"s.yaml": counted(5000), "pod.yaml": DAEMON_SET}

    def attack(visitor):
        _, source = sent(visitor, files)
        return visitor.ask(f"/api/sources/{source['id']}/cluster")

    for status, _, body in page.withstands(*[attack] * 4):
        if status == 422:
            refused = rf"it needs more than {VIEW_SECONDS} s|it needs more memory than|reading it takes more than"
            assert re.search(refused, body.decode())
            assert "open a smaller part" in body.decode()
        else:
            assert status in {200, 429}


def test_thousands_of_listed_nodes_stop_nobody(page):
    page.withstands(*[viewed({"s.yaml": listed(4000), "pod.yaml": POD}, "cluster")] * 3)


def test_deep_and_repeated_yaml_is_rejected_and_stops_nobody(page):
    deep = b"a: " + b"[" * 100_000
    bomb = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
        b"%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n" % (later, later, *[later - 1] * 8)
        for later in range(ord("b"), ord("k"))
    )

    def attack(visitor):
        return [sent(visitor, {"pod.yaml": text})[1] for text in (deep, bomb) for _ in range(5)]

    page.withstands(*[attack] * 3)


def test_logs_made_to_be_slow_stop_nobody(page):
    mark = b"[ 1.0] a invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0\n"
    texts = [
        mark + b"[ 1.0] " + b"[1.0] " * 100_000,
        mark + b"[ 1.0] Mem-Info:" + b" active_anon:1" * 100_000,
        b"\n".join([mark + b"[ 1.0] Tasks state" + b" " * 5_000] * 60),
        b"[ 1.0] oom-kill:" + b"constraint=" * 100_000,
    ]

    def attack(visitor):
        return [visitor.ask("/api/autopsy", text)[0] for text in texts]

    assert all(status in {200, 422, 429} for got in page.withstands(*[attack] * 3) for status in got)


def test_large_bodies_that_wait_in_the_queue_stay_within_the_memory_limit(page):
    body = b"Nov 18 10:00:00 node kernel: nothing of interest here, again and again\n" * (28 * (1 << 20) // 71)

    def attack(visitor):
        try:
            return visitor.ask("/api/sources?name=kern.log", body)[0]
        except OSError:  # refused before everything was sent
            return 429

    assert {*page.withstands(*[attack] * 24)} <= {201, 413, 422, 429}


def test_many_questions_at_once_stop_nobody(page):
    files = {"s.yaml": counted(300), "pod.yaml": DAEMON_SET}

    def attack(visitor):
        _, source = sent(visitor, files)
        path = f"/api/sources/{source['id']}"
        what_if = {"edits": [], "node": "w-1"}
        for _ in range(3):
            # An answer, or a refusal in words: not a request that is malformed, nor a source that is gone.
            assert visitor.ask(f"{path}/what-if", json.dumps(what_if).encode())[0] in {200, 422, 429}
            assert visitor.ask(f"{path}/forecast", b'{"node": "w-1"}')[0] in {200, 422, 429}
            visitor.ask("/api/jobs", json.dumps({"kind": "blast", "source": source["id"]}).encode())
        return [job["state"] for job in visitor.value("/api/jobs")]

    for states in page.withstands(*[attack] * 6):
        assert {*states} <= {"queued", "running", "done", "failed", "cancelled"}


def newcomer(page):
    """Return what a new visitor gets: for an upload, a view of it, its stream and a run."""
    visitor = page.server.visitor()
    status, source = sent(visitor, {"long.yaml": SHORT, "pod.yaml": POD})
    path = f"/api/sources/{source.get('id')}/cluster"
    run = json.dumps({"kind": "run", "source": source.get("id")}).encode()
    with visitor.events("/api/live") as events:
        return status, visitor.ask(path)[0], next(events)[0], visitor.ask("/api/jobs", run)[0]


WELCOME = (201, 200, "hello", 201)


def test_visitors_without_number_who_all_store_something_lock_nobody_out(page):
    def attack(visitor):
        statuses = []
        for _ in range(20):
            visitor.cookie = ""
            statuses.append(sent(visitor, {"pod.yaml": POD})[0])
        return statuses

    assert all(status == 201 for got in page.withstands(*[attack] * 4) for status in got)
    assert newcomer(page) == WELCOME


def test_a_few_visitors_who_store_very_much_lock_nobody_out(page):
    def attack(visitor):
        return visitor.ask("/api/sources?name=pod.yaml", POD + b"#" + b"x" * (7 << 20))[0]

    assert {*page.withstands(*[attack] * 4)} <= {201, 429}
    assert newcomer(page) == WELCOME


@contextmanager
def asking(*asked):
    """Send requests of visitors, and wait for no answer."""
    clients = []
    try:
        for visitor, path in asked:
            clients.append(client := socket.create_connection(("127.0.0.1", visitor.port)))
            lines = f"GET {path} HTTP/1.1", "Host: localhost", f"Cookie: {visitor.cookie}"
            client.sendall("\r\n".join([*lines, "", ""]).encode())
        yield
    finally:
        for client in clients:
            client.close()


def test_streams_and_runs_without_number_lock_nobody_out(page):
    visitors = [page.server.visitor() for _ in range(6)]
    for visitor in visitors:
        _, source = sent(visitor, {"long.yaml": LONG, "pod.yaml": POD})
        for _ in range(4):
            visitor.ask("/api/jobs", json.dumps({"kind": "run", "source": source["id"]}).encode())
    with asking(*[(visitor, "/api/live") for visitor in visitors for _ in range(8)]):
        assert newcomer(page) == WELCOME
        page.withstands(lambda _: None)


def test_questions_without_number_lock_nobody_out(page):
    visitors = [page.server.visitor() for _ in range(2)]
    slow = {"s.yaml": counted(5000), "pod.yaml": DAEMON_SET}
    asked = [(visitor, f"/api/sources/{sent(visitor, slow)[1]['id']}/cluster") for visitor in visitors]
    with asking(*asked * 20):
        assert newcomer(page) == WELCOME
        page.withstands(lambda _: None)


def test_files_without_number_are_refused_before_they_are_decoded(page):
    body = b'{"files":[' + b'{"name":"","data":""},' * 1_000_000 + b'{"name":"","data":""}]}'

    def attack(visitor):
        return visitor.ask("/api/sources", body, Content_Type="application/vnd.podqos.files+json")[0]

    assert {*page.withstands(*[attack] * 2)} == {413}


def test_killed_and_stopped_processes_are_replaced(page):
    for how in (signal.SIGKILL, signal.SIGSTOP):
        _, source = sent(visitor := page.server.visitor(), {"pod.yaml": POD})
        stopped = page.processes()
        for process in stopped:
            with suppress(ProcessLookupError):
                os.kill(process, how)
        path = f"/api/sources/{source['id']}/cluster"
        eventually(lambda path=path, visitor=visitor: visitor.ask(path)[0] == 200, "an answer")


def test_visitors_who_disconnect_leave_nothing_behind(page):
    files = {"s.yaml": counted(2000), "pod.yaml": DAEMON_SET}

    def attack(visitor):
        _, source = sent(visitor, files)
        for _ in range(5):
            with asking((visitor, f"/api/sources/{source['id']}/check")):
                pass

    page.withstands(*[attack] * 4)


def test_a_run_ends_with_the_page_of_its_visitor_but_not_with_a_reload(page):
    visitor = page.server.visitor()
    key = visitor.begin({"long.yaml": LONG, "pod.yaml": POD})
    with visitor.events("/api/live") as events:
        next(events)
        eventually(lambda: visitor.job(key)["state"] == "running", "the run")
    with visitor.events("/api/live") as events:  # a reload
        assert visitor.job(key)["state"] == "running"
        next(events)
    eventually(lambda: not page.server.workers(), "the end of the run")
    assert visitor.job(key)["state"] == "cancelled"
    assert visitor.job(key)["error"] == ""


def test_runs_tell_their_place_in_the_queue_and_visitors_take_turns(page):
    one, other = page.server.visitor(), page.server.visitor()
    with one.events("/api/live") as hers, other.events("/api/live") as his:
        next(hers), next(his)
        long = {"long.yaml": LONG, "pod.yaml": POD}
        jobs = [one.begin(long) for _ in range(3)]
        jobs.append(other.begin({"long.yaml": SHORT, "pod.yaml": POD}))
        queued = [one.job(key)["place"] for key in jobs[:3]] + [other.job(jobs[3])["place"]]
        waiting = sorted(place for place in queued if place)
        assert waiting == list(range(1, len(waiting) + 1))
        if queued[3]:
            assert queued[3] < queued[2]
        for key in jobs[:3]:
            one.ask(f"/api/jobs/{key}", method="DELETE")
        assert other.ended(jobs[3])["state"] == "done"
        assert [one.job(key)["place"] for key in jobs[:3]] == [0, 0, 0]
