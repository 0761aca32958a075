"""All values of the page's API in one place, for ``docs/schema/page.json``, from which the viewer's types are made."""

from __future__ import annotations

from msgspec import Struct

from podqos.answers.page.answer import AnswerView
from podqos.answers.page.check import CheckView, FixRequest, FixView
from podqos.answers.page.cluster import ClusterChange, ClusterView
from podqos.answers.page.compare import CompareView
from podqos.answers.page.forecast import ForecastRequest, ForecastView
from podqos.answers.page.job import Age, Hello, JobInfo
from podqos.answers.page.pasted import PastedAutopsy
from podqos.answers.page.pod import PodPage
from podqos.answers.page.session import ErrorAnswer, Session
from podqos.answers.page.what_if import WhatIf, WhatIfView


class PageValues(Struct, frozen=True, rename="camel"):
    """What the page asks for, and what it is answered."""

    cluster: ClusterView
    change: ClusterChange
    answer: AnswerView
    pod: PodPage
    what_if_request: WhatIf
    what_if: WhatIfView
    forecast_request: ForecastRequest
    forecast: ForecastView
    check: CheckView
    fix_request: FixRequest
    fix: FixView
    compare: CompareView
    pasted: PastedAutopsy
    session: Session
    job: JobInfo
    hello: Hello
    age: Age
    error: ErrorAnswer
