"""Questions about one source, and their answers: the same in the server's own process and in a worker."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from podqos.answers.page.check import FixRequest
from podqos.answers.page.forecast import ForecastRequest
from podqos.answers.page.page import Page
from podqos.answers.page.what_if import WhatIf
from podqos.web.ui.refusal import RequestRefusal, decoded

CLUSTER = "cluster"
_ASKED_WITH_POST: Mapping[str, type[Struct]] = {"what-if": WhatIf, "forecast": ForecastRequest, "fix": FixRequest}
_ASKED_WITH_GET = frozenset({CLUSTER, "answer", "pods", "check", "autopsy", "run"})
SLOW = frozenset({"check", "autopsy", "fix"})
"""These read everything again; quick views do not wait for them."""


class Question(Struct, frozen=True):
    """A request for a view."""

    view: str
    pod: str = ""
    node: str = ""
    body: Struct | None = None


def question_of(method: str, view: str, query: Mapping[str, str], body: bytes) -> Question:
    """Return what is asked; raise ``RequestRefusal`` if there is no such view or the request is not valid."""
    if method == "POST" and view in _ASKED_WITH_POST:
        return Question(view, body=decoded(body, _ASKED_WITH_POST[view]))
    if method in {"GET", "HEAD"} and view in _ASKED_WITH_GET:
        return Question(view, query.get("pod", ""), query.get("node", ""))
    raise RequestRefusal(404, "no such view")


def answer(page: Page, question: Question) -> Struct:
    """Return the answer to a question about a source."""
    match question.view, question.body:
        case "cluster", _:
            return page.cluster()
        case "answer", _:
            return page.answer(question.node)
        case "pods", _:
            return page.pod(question.pod, question.node)
        case "check", _:
            return page.check()
        case "autopsy", _:
            return page.autopsy()
        case "what-if", WhatIf() as what_if:
            return page.what_if(what_if)
        case "forecast", ForecastRequest() as forecast:
            return page.forecast(forecast)
        case "fix", FixRequest() as fix:
            return page.fix(fix)
        case "run", _ if page.source.run is not None:
            return page.source.run
    raise RequestRefusal(404, "no such view")
