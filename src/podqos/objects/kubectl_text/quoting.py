"""What events say about their pods in words: namespace, uid and node, which descriptions and tables lack."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from podqos.model.event import Event

_MOST_QUOTED = 2000
# "Back-off … in pod web-0_shop(uid)", "Successfully assigned shop/web-0 to node-1", "… for deletion Pod shop/web-0"
_QUOTE = re.compile(
    r"in pod (?P<own>[a-z0-9][a-z0-9.-]{0,252})_(?P<in>[a-z0-9][a-z0-9-]{0,62})\((?P<uid>[0-9a-f-]{32,36})\)"
    r"|(?:assigned|deletion Pod) (?P<namespace>[a-z0-9][a-z0-9-]{0,62})/(?P<name>[a-z0-9][a-z0-9.-]{0,252})"
    r"(?: to (?P<node>[a-z0-9][a-z0-9.-]{0,252}))?"
)


class Quoted(Struct, frozen=True, gc=False):
    """What messages of events say about their pod."""

    namespace: str = ""
    uid: str = ""
    node: str = ""


def named_in(events: Iterable[Event]) -> tuple[str, str]:
    """Return namespace and name of the one pod that messages of events name; empty if there is none, or several."""
    quotes = (_QUOTE.search(event.text[:_MOST_QUOTED]) for event in events)
    named = {(quote["namespace"] or quote["in"], quote["name"] or quote["own"]) for quote in quotes if quote}
    return named.pop() if len(named) == 1 else ("", "")


def quoted_in(events: Iterable[Event]) -> dict[str, Quoted]:
    """Return what the kubelet, the scheduler and the control plane write about pods into their messages, by name."""
    found: dict[str, Quoted] = {}
    for event in events:
        name = event.about.name
        quote = _QUOTE.search(event.text[:_MOST_QUOTED])
        if event.about.kind != "Pod" or quote is None or name not in {quote["name"], quote["own"]}:
            continue
        own = Quoted(quote["namespace"] or quote["in"], quote["uid"] or "", quote["node"] or "")
        before = found.get(name, Quoted())
        if before.namespace in {"", own.namespace}:
            found[name] = Quoted(own.namespace, own.uid or before.uid, own.node or before.node)
    return found
