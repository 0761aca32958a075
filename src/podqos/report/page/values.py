"""All values of the page's API in one place, for ``docs/schema/page.json``, from which the viewer's types are made."""

from __future__ import annotations

from msgspec import Struct

from podqos.report.page.cluster import ClusterView
from podqos.report.page.job import Age, JobInfo
from podqos.report.page.pod import PodPage
from podqos.report.page.session import ErrorAnswer, Session


class PageValues(Struct, frozen=True, rename="camel"):
    """What the page asks for, and what it is answered."""

    cluster: ClusterView
    pod: PodPage
    session: Session
    job: JobInfo
    age: Age
    error: ErrorAnswer
