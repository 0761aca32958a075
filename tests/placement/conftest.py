from __future__ import annotations

import pytest

from podqos.placement.choosing import OneByOne


@pytest.fixture(params=["one-by-one", "columnar"])
def each_chooser(request, monkeypatch):
    """Run a test of a rule once for every way to choose nodes; the fast one needs numpy."""
    chooser = OneByOne
    if request.param == "columnar":
        chooser = pytest.importorskip("podqos.placement.columnar", reason="needs numpy (podqos[fleet])").Columnar
    monkeypatch.setattr("podqos.placement.place.best_chooser", lambda _, cluster: chooser(cluster))
