"""What a webhook watches: interruptions are said once, and what it may not see it does without."""

from __future__ import annotations

import threading

from cluster.test_following import SYNCED, Watches, interrupted, until
from podqos.errors import Forbidden
from podqos.serve.webhook_rules import Watched


def test_an_interruption_is_said_once_and_that_it_is_over_is_not_said():
    go_on = threading.Event()
    ended = []

    def recovers(on_trouble):
        go_on.wait(300)
        on_trouble(None)
        ended.append(True)

    script = [SYNCED, interrupted("away"), recovers]
    cluster = Watches(namespaces=[script], limitranges=[script], priorityclasses=[script], runtimeclasses=[script])
    said = []
    watched = Watched(cluster, said.append)
    watched.start()
    until(lambda: said and watched.is_complete)
    go_on.set()
    until(lambda: len(ended) == 4)
    cluster.closing.set()
    assert set(said) == {"away"}, "it may interrupt one watch when another has gone on already"


def test_what_may_not_be_watched_is_done_without():
    fine = [[SYNCED]]
    refused = [[Forbidden("cannot watch limitranges")]]
    cluster = Watches(namespaces=fine, limitranges=refused, priorityclasses=fine, runtimeclasses=fine)
    said = []
    watched = Watched(cluster, said.append)
    watched.start()
    until(lambda: watched.is_complete)
    cluster.closing.set()
    assert said == ["continuing without limitranges: cannot watch limitranges"]
    assert watched.cluster().policies.limit_ranges == ()
