"""Objects kept up to date by threads: what is known, why it may not be, and what becomes of a watch that ended."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from podqos.cluster import following
from podqos.cluster.events import Event, EventType
from podqos.cluster.following import FollowedKind, Follower
from podqos.cluster.resources import NODES, PODS
from podqos.errors import ClusterError, Forbidden, NotFound, Unreachable

RESET, SYNCED = Event(EventType.RESET), Event(EventType.SYNCED)


def added(uid, kind=EventType.ADDED):
    return Event(kind, SimpleNamespace(metadata=SimpleNamespace(uid=uid)))


class Watches:
    """A cluster whose watches go as a test says: events, errors to raise, troubles to tell. The last one never ends."""

    def __init__(self, **scripts):
        self.scripts = {plural: iter(script) for plural, script in scripts.items()}
        self.asked, self.paused = [], []
        self.closing = threading.Event()
        self.client = SimpleNamespace(is_closed=self.closing.is_set, pause=self.paused.append)

    def watch(self, resource, *, field_selector, on_trouble):
        self.asked.append((resource.plural, field_selector))
        for each in next(self.scripts[resource.plural], ()):
            if isinstance(each, Exception):
                raise each
            if callable(each):
                each(on_trouble)
            else:
                yield each
        self.closing.wait()


def interrupted(text):
    return lambda on_trouble: on_trouble(Unreachable(text))


def until(condition):
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.002)


@pytest.fixture
def followed(monkeypatch):
    monkeypatch.setattr(following, "pause_seconds", lambda attempt, *_: attempt)
    opened = []

    def start(cluster, *kinds, **options):
        opened.append(cluster)
        follower = Follower(kinds, **options)
        follower.start(cluster)
        return follower

    yield start
    for each in opened:
        each.closing.set()


def test_objects_come_and_go_and_count_until_a_new_beginning_is_complete(followed):
    begun = threading.Event()

    def wait(_):
        begun.wait(300)

    pods = FollowedKind(PODS)
    script = [RESET, added("a"), added("b"), SYNCED, added("a", EventType.DELETED), RESET, added("c"), wait, SYNCED]
    seen = []
    follower = followed(Watches(pods=[script]), pods, on_change=lambda kind: seen.append(sorted(kind.objects)))
    until(lambda: len(seen) == 7)
    assert seen == [[], [], [], ["a", "b"], ["b"], ["b"], ["b"]]
    begun.set()
    until(lambda: sorted(pods.objects) == ["c"])
    assert (follower.is_complete, follower.changes, follower.troubles) == (True, 8, [])


def test_of_one_node_only_its_pods_and_itself_are_asked_for(followed):
    kinds = {"pods": [[SYNCED]], "nodes": [[SYNCED]]}
    cluster, everywhere = Watches(**kinds), Watches(**kinds)
    first, second = (
        followed(cluster, FollowedKind(PODS), FollowedKind(NODES), node="n"),
        followed(everywhere, FollowedKind(PODS), FollowedKind(NODES)),
    )
    until(lambda: first.is_complete and second.is_complete)
    assert sorted(cluster.asked) == [("nodes", "metadata.name=n"), ("pods", "spec.nodeName=n")]
    assert sorted(everywhere.asked) == [("nodes", ""), ("pods", "")]


def test_what_cannot_be_read_is_left_out_and_the_rest_is_kept(followed):
    pods = FollowedKind(PODS, lambda item: None if item.metadata.uid == "bad" else item)
    follower = followed(Watches(pods=[[RESET, added("bad"), added("good"), SYNCED]]), pods)
    until(lambda: follower.is_complete)
    assert [*pods.objects] == ["good"]


def test_a_reason_is_said_once_for_all_watches_and_known_until_they_go_on(followed):
    told, said = [], []
    go_on = threading.Event()

    def recovers(on_trouble):
        go_on.wait(300)
        on_trouble(None)

    script = [SYNCED, interrupted("away"), interrupted("away"), recovers]
    cluster, kinds = Watches(pods=[script], nodes=[script]), (FollowedKind(PODS), FollowedKind(NODES))
    follower = followed(cluster, *kinds, say=said.append, on_trouble=lambda: told.append(1))
    until(lambda: len(told) == 2)
    assert (follower.troubles, said) == (["away"], ["away"])
    go_on.set()
    until(lambda: len(told) == 4)
    assert (follower.troubles, said) == ([], ["away"])


def test_a_watch_that_ended_begins_again_ever_later_and_soon_after_it_has_worked(followed):
    refused = Forbidden("no")
    missing = NotFound("gone", status=404)
    cluster = Watches(pods=[[refused], [ValueError("bug")], [SYNCED, refused], [missing], [SYNCED]])
    pods, troubles = FollowedKind(PODS), []
    follower = followed(cluster, pods, on_trouble=lambda: troubles.append(pods.trouble))
    until(lambda: len(troubles) == 6)
    assert troubles == ["no", "ValueError: bug", "", "no", "gone", ""]
    assert cluster.paused == [0, 1, 0, 1]
    assert follower.is_complete


def test_a_watch_that_ended_for_good_is_reported_and_not_begun_again(followed):
    ended = {}
    cluster = Watches(pods=[[SYNCED, Forbidden("no")]], nodes=[[KeyError("bug")]])
    followed(
        cluster,
        FollowedKind(PODS),
        FollowedKind(NODES),
        on_end=lambda kind, why: ended.update({kind.resource.plural: why}),
    )
    until(lambda: len(ended) == 2)
    assert isinstance(ended["pods"], Forbidden)
    assert isinstance(ended["nodes"], ClusterError), "nobody waits for a thread that is gone"
    assert str(ended["nodes"]) == "KeyError: 'bug'"
    assert (len(cluster.asked), cluster.paused) == (2, [])


def test_an_api_that_a_cluster_does_not_have_is_complete_and_empty(followed):
    ended = []
    follower = followed(
        Watches(pods=[[NotFound("no", status=404)]]), FollowedKind(PODS), on_end=lambda *what: ended.append(what)
    )
    until(lambda: follower.is_complete)
    assert ended == []


def test_nothing_is_watched_again_once_it_is_closed(followed):
    closed, errors = threading.Event(), [Forbidden("no")]
    cluster = Watches(pods=[[lambda _: closed.wait(300), *errors], errors, errors])
    follower = followed(cluster, FollowedKind(PODS))
    until(lambda: cluster.asked)
    follower.close()
    closed.set()
    until(lambda: cluster.paused)
    until(lambda: not [each for each in threading.enumerate() if each.name == "pods"])
    assert len(cluster.asked) == 1
