"""The page of a source, with what only its files can tell."""

from __future__ import annotations

from podqos.answers.page.page import Page
from podqos.answers.page.source import PageSource
from podqos.library.autopsy import autopsy
from podqos.library.parallel import over_cores
from podqos.model.profile import Profile
from podqos.objects.kubelet_node import Kubelet
from podqos.reading.logs import Log
from podqos.survival.autopsy.autopsy import Autopsies


def page_about(source: PageSource, before: Page | None = None) -> Page:
    """Return the page; whatever has not changed is taken from ``before``, the page of an earlier state."""
    return Page(source, _autopsied, before, spread=over_cores())


def _autopsied(source: PageSource, kubelet: Kubelet | None, profile: Profile) -> Autopsies:
    return autopsy(
        [log.name if log.data is None else Log(log.name, log.data) for log in source.logs],
        objects=source.objects,
        cluster=source.cluster,
        kubelet=kubelet,
        profile=profile,
    )
