"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is not a failing test: how long one example takes is not what these tests are about.
settings.register_profile("podqos", deadline=None)
settings.load_profile("podqos")
