from __future__ import annotations

from importlib.util import find_spec

import pytest

from podqos.placement.choosing import OneByOne

# The fast way needs numpy, which is an extra.
WAYS = ["one-by-one", "columnar"] if find_spec("numpy") else ["one-by-one"]


@pytest.fixture(params=WAYS)
def each_chooser(request, monkeypatch):
    """Run a test of a rule once for every way to choose nodes."""
    chooser = OneByOne
    if request.param == "columnar":
        from podqos.placement.columnar import Columnar as chooser  # noqa: N813 - a value here
    monkeypatch.setattr("podqos.placement.place.best_chooser", lambda _, cluster: chooser(cluster))
