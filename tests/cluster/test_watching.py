"""Watches: begin with what exists, resume, begin again; events as recorded."""

from __future__ import annotations

import json
import threading
from itertools import islice, takewhile

import pytest
from msgspec.structs import replace

from cluster.recorded import api_server, recorded_answer, recorded_json, recorded_watch
from cluster.serving import Server, status, watch_of
from podqos.cluster import watching
from podqos.cluster.cluster import Cluster
from podqos.cluster.events import Bookmark, EventType, lines, read_event
from podqos.cluster.kubeconfig import Access
from podqos.cluster.refusals import ServerStatus
from podqos.cluster.resources import PODS
from podqos.errors import BadAnswer, Forbidden, Refused, Unauthorized, Unreachable


def event(kind, name="a", version="1", **metadata):
    found = {"name": name, "namespace": "n", "uid": name, "resourceVersion": version, **metadata}
    spec = {"containers": [{"name": "c"}] if kind != "BOOKMARK" else None}
    return json.dumps({"type": kind, "object": {"kind": "Pod", "metadata": found, "spec": spec, "status": {}}}).encode()


SYNCED = event("BOOKMARK", "", "10", annotations={"k8s.io/initial-events-end": "true"})
GONE = recorded_watch("gone-410")


def stalls(wire):
    wire.stall()


class Script:
    """Answers one request after the other as a test says; what it was asked is kept."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.asked = []

    def __call__(self, request):
        self.asked.append(request.query)
        return self.replies.pop(0) if self.replies else watch_of([], then=stalls)


def seen(script, count, patience, **options):
    """Return the first events of a watch, as words."""
    with Server(script) as server, Cluster(Access(server.url), patience=patience) as cluster:
        events = list(islice(cluster.watch(PODS, **options), count))
    return [f"{each.type} {each.object.metadata.name}" if each.object else str(each.type) for each in events]


# ---- what exists, and what changes ---------------------------------------------------------------------------------


def test_the_recorded_watch_list_is_what_exists_and_then_that_this_was_all(patient):
    with Server(api_server) as server, Cluster(Access(server.url), patience=patient) as cluster:
        events = list(takewhile(lambda each: each.type is not EventType.SYNCED, cluster.watch(PODS, "platform")))
    assert [each.type for each in events] == [EventType.RESET] + [EventType.ADDED] * 15
    assert events[1].object.metadata.name == "bad-image"
    query = server.requests[0].query
    assert query["sendInitialEvents"] == query["allowWatchBookmarks"] == query["watch"] == "true"
    assert query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in query
    assert 240 <= int(query["timeoutSeconds"]) <= 480


def test_every_event_of_the_recorded_watch_is_read(patient):
    recorded = [json.loads(line) for line in recorded_watch("pods-batch")]
    changes = [each for each in recorded if each["type"] != "BOOKMARK"]
    assert {each["type"] for each in recorded} == {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}
    found = seen(Script(watch_of([SYNCED, *recorded_watch("pods-batch")], then=stalls)), len(changes) + 2, patient)
    assert found[2:] == [f"{each['type']} {each['object']['metadata']['name']}" for each in changes]


def test_objects_of_a_watch_are_those_of_a_list(patient):
    with Server(api_server) as server, Cluster(Access(server.url), patience=patient) as cluster:
        listed = {pod.metadata.uid: pod for pod in cluster.read(PODS)}
        watched = list(takewhile(lambda each: each.type is not EventType.SYNCED, cluster.watch(PODS)))[1:]
    pairs = [(each.object, listed[each.object.metadata.uid]) for each in watched]
    unchanged = [
        (one, other) for one, other in pairs if one.metadata.resource_version == other.metadata.resource_version
    ]
    assert len(unchanged) > 10
    assert all(one == other for one, other in unchanged)


def test_a_watch_goes_on_where_the_server_ended_it(patient):
    script = Script(
        watch_of([event("ADDED"), SYNCED, event("MODIFIED", "b", "12")]),
        watch_of([event("DELETED", "b", "13"), event("BOOKMARK", "", "20")]),
        watch_of([event("ADDED", "c", "21")], then=stalls),
    )
    assert seen(script, 6, patient) == ["RESET", "ADDED a", "SYNCED", "MODIFIED b", "DELETED b", "ADDED c"]
    assert [query.get("resourceVersion") for query in script.asked] == [None, "12", "20"]
    assert [query.get("sendInitialEvents") for query in script.asked] == ["true", None, None]


def breaks_off(wire):
    wire.send(b"20\r\n" + event("DELETED")[:20])


def test_an_event_that_is_cut_off_is_not_seen_and_comes_again(patient):
    script = Script(
        watch_of([event("ADDED"), SYNCED], then=breaks_off), watch_of([event("DELETED", version="11")], then=stalls)
    )
    assert seen(script, 4, patient) == ["RESET", "ADDED a", "SYNCED", "DELETED a"]
    assert script.asked[1]["resourceVersion"] == "10"


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(watch_of(GONE), id="as an event in a 200"),
        pytest.param(recorded_answer("errors.json", "exact-resource-version-compacted-410"), id="as a 410"),
    ],
)
def test_a_version_that_is_too_old_means_that_all_begins_again(patient, gone):
    told = []
    script = Script(watch_of([event("ADDED"), SYNCED]), gone, watch_of([event("ADDED", "b"), SYNCED], then=stalls))
    found = seen(script, 6, patient, on_trouble=told.append)
    assert found == ["RESET", "ADDED a", "SYNCED", "RESET", "ADDED b", "SYNCED"]
    assert script.asked[2]["sendInitialEvents"] == "true"
    assert told == []


# ---- servers without watch lists -----------------------------------------------------------------------------------

PAGE = b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","uid":"a"}}]}'


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(
            recorded_answer("watch_and_chunks.json", "match-without-initial-events-422"), id="older than 1.27"
        ),
        pytest.param(status(400, "BadRequest"), id="another API server"),
    ],
)
def test_a_server_without_watch_lists_is_listed_first(patient, refusal):
    script = Script(refusal, PAGE, watch_of([event("MODIFIED", version="8")], then=stalls))
    assert seen(script, 4, patient) == ["RESET", "ADDED a", "SYNCED", "MODIFIED a"]
    assert script.asked[1]["limit"] == "500"
    assert script.asked[2]["resourceVersion"] == "7"


def test_a_server_that_never_says_that_this_was_all_is_listed(patient):
    script = Script(watch_of([event("ADDED")], then=stalls), PAGE, watch_of([], then=stalls))
    patience = replace(patient, stall_seconds=1.0)
    assert seen(script, 5, patience) == ["RESET", "ADDED a", "RESET", "ADDED a", "SYNCED"]


def test_once_it_is_known_watch_lists_are_not_tried_again(patient):
    script = Script(status(422, "Invalid"), PAGE, watch_of(GONE), PAGE, watch_of([], then=stalls))
    assert seen(script, 6, patient) == ["RESET", "ADDED a", "SYNCED"] * 2
    assert [query.get("sendInitialEvents") for query in script.asked] == ["true", None, None, None]


# ---- trouble -------------------------------------------------------------------------------------------------------


def test_interruptions_are_bridged_with_growing_pauses_and_told(patient, pauses):
    told = []
    script = Script(
        watch_of([SYNCED]),
        *[status(500, "InternalError")] * 2,
        (429, {"Content-Type": "text/plain", "Retry-After": "1"}, b"Too many requests"),
        lambda _: None,
        watch_of([event("ADDED", version="11")], then=stalls),
    )
    patience = replace(patient, attempts=1)
    assert seen(script, 3, patience, on_trouble=told.append) == ["RESET", "SYNCED", "ADDED a"]
    assert [type(error) for error in told] == [Refused, Refused, Refused, Unreachable, type(None)]
    assert sorted(pauses) == pauses
    assert [query.get("resourceVersion") for query in script.asked][1:] == ["10"] * 5


def test_a_server_that_ends_every_watch_at_once_is_not_asked_all_the_time(patient, pauses):
    script = Script(
        watch_of([SYNCED]), watch_of([]), watch_of([]), watch_of([event("ADDED", version="11")], then=stalls)
    )
    assert seen(script, 3, patient) == ["RESET", "SYNCED", "ADDED a"]
    assert pauses == [0.25, 0.5]


def test_pauses_are_short_again_once_an_event_has_come(patient, pauses):
    script = Script(
        watch_of([SYNCED]),
        *[watch_of([])] * 3,
        watch_of([event("ADDED", version="11")]),
        watch_of([]),
        watch_of([event("ADDED", name="b", version="12")], then=stalls),
    )
    assert seen(script, 4, patient) == ["RESET", "SYNCED", "ADDED a", "ADDED b"]
    assert pauses == [0.25, 0.5, 1.0, 0.25]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param(recorded_answer("errors.json", "rbac-watch-403"), Forbidden, id="403"),
        pytest.param(recorded_answer("errors.json", "invalid-bearer-token-401"), Unauthorized, id="401"),
        pytest.param(status(404, "NotFound"), Refused, id="404"),
        pytest.param((302, {"Location": "/"}, b""), BadAnswer, id="302"),
        pytest.param(lambda _: None, Unreachable, id="no server"),
    ],
)
def test_what_will_not_change_ends_the_watch(patient, reply, error):
    with pytest.raises(error):
        seen(lambda _: reply, 1, patient)


def test_what_an_error_event_says_is_one_line_without_control_characters(patient):
    said = {"kind": "Status", "code": 403, "message": 'User "a\x1b[2J\nb" cannot watch'}
    with pytest.raises(Forbidden) as caught:
        seen(Script(watch_of([SYNCED, json.dumps({"type": "ERROR", "object": said}).encode()])), 3, patient)
    assert "cannot watch pods as a?[2J b (" in str(caught.value)
    assert "\x1b" not in caught.value.role


def test_a_403_in_the_middle_ends_the_watch(patient):
    with pytest.raises(Forbidden, match="cannot watch pods as alice"):
        seen(Script(watch_of([SYNCED]), recorded_answer("errors.json", "rbac-watch-403")), 3, patient)


def test_garbage_that_does_not_stop_ends_the_watch(patient):
    with pytest.raises(BadAnswer, match="its watch of pods cannot be read"):
        seen(Script(watch_of([SYNCED]), *[watch_of([b"garbage"])] * 20), 3, patient)


def test_a_watch_that_is_not_ended_in_time_is_taken_for_dead(patient, monkeypatch):
    monkeypatch.setattr(watching, "_WATCH_SECONDS", (0, 0))
    monkeypatch.setattr(watching, "_GRACE_SECONDS", 0.3)
    told = []
    again = watch_of([event("ADDED", version="11")], then=stalls)
    script = Script(watch_of([SYNCED], then=stalls), *[again] * 50)  # a busy machine may be too late for some
    assert seen(script, 3, patient, on_trouble=told.append) == ["RESET", "SYNCED", "ADDED a"]


def test_closing_the_cluster_ends_a_watch_in_another_thread(patient):
    ended = threading.Event()
    begun = threading.Event()

    def run():
        for each in cluster.watch(PODS):
            if each.type is EventType.SYNCED:
                begun.set()
        ended.set()

    with Server(api_server), Server(api_server) as server:
        cluster = Cluster(Access(server.url), patience=patient)
        threading.Thread(target=run, daemon=True).start()
        assert begun.wait(300)
        cluster.close()
        assert ended.wait(300)


# ---- bytes to values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_the_stream_is_cut(size):
    data = b"first\n\nsecond line\nthird\nnot whole"
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert list(lines(pieces, "x")) == [b"first", b"", b"second line", b"third"]


def test_a_line_that_never_ends_is_given_up():
    with pytest.raises(BadAnswer, match="an event is larger than 64Mi"):
        list(lines((bytes(1 << 20) for _ in range(100)), "x"))


@pytest.mark.parametrize("name", [each["name"] for each in recorded_json("watch_and_chunks.json") if "events" in each])
def test_every_recorded_event_says_something(name):
    recorded = next(each for each in recorded_json("watch_and_chunks.json") if each["name"] == name)
    for each in recorded["events"]:
        line = json.dumps({"type": each["type"], "object": each["object"]}).encode()
        what = read_event(PODS, line, "x")
        if each["type"] == "BOOKMARK":
            assert isinstance(what, Bookmark)
        elif each["type"] == "ERROR":
            assert isinstance(what, ServerStatus)
            assert what.code == 410
        else:
            assert what[0].type == each["type"]
            assert what[1] == each["object"]["metadata"]["resourceVersion"]


def test_a_kind_of_event_of_a_later_version_is_passed_over():
    assert read_event(PODS, event("RENAMED"), "x") is None
    assert read_event(PODS, b"  ", "x") is None
