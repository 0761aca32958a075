"""All values of the page's API in one place, for ``docs/schema/page.json``, from which the viewer's types are made."""

from __future__ import annotations

from msgspec import Struct

from podqos.report.page.check import CheckView, FixRequest, FixView
from podqos.report.page.cluster import ClusterChange, ClusterView
from podqos.report.page.compare import CompareView
from podqos.report.page.forecast import ForecastRequest, ForecastView
from podqos.report.page.job import Age, Hello, JobInfo
from podqos.report.page.pod import PodPage
from podqos.report.page.session import ErrorAnswer, Session
from podqos.report.page.what_if import WhatIf, WhatIfView


class PageValues(Struct, frozen=True, rename="camel"):
    """What the page asks for, and what it is answered."""

    cluster: ClusterView
    change: ClusterChange
    pod: PodPage
    what_if_request: WhatIf
    what_if: WhatIfView
    forecast_request: ForecastRequest
    forecast: ForecastView
    check: CheckView
    fix_request: FixRequest
    fix: FixView
    compare: CompareView
    session: Session
    job: JobInfo
    hello: Hello
    age: Age
    error: ErrorAnswer
