"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from browser.windows import _offline_window, browser, window  # noqa: F401 - fixtures
from podqos.cli import spelling
from podqos.naming import Field

# Whoever starts the tests in the background, or with nohup, leaves SIGINT or SIGHUP ignored, and children would inherit
# that; some are sent one.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test reads the cluster of whoever runs them.
os.environ["KUBECONFIG"] = os.devnull


def _no_option(field: Field) -> str:
    raise AssertionError(f"a message names {field!r}, for which the command that prints it has no option")


# No command advises an option that it does not have, whichever test it runs in.
spelling.without_option = _no_option

# A busy machine is not a failing test: how long one example takes is not what these tests are about. Every run draws
# the same examples, so that a change and not chance decides; `PODQOS_DRAW=1` draws others, to search for more, and
# `PODQOS_EXAMPLES` says how many at most, also where a test says more.
_MOST_EXAMPLES = int(os.environ.get("PODQOS_EXAMPLES") or 0)
settings.register_profile(
    "podqos",
    deadline=None,
    derandomize="PODQOS_DRAW" not in os.environ,
    max_examples=_MOST_EXAMPLES or 50,
)
settings.load_profile("podqos")
if "PODQOS_DRAW" not in os.environ:
    # Constants of the modules that happen to be loaded are drawn, too: the examples would follow from the tests before.
    providers._get_local_constants = lambda: providers._local_constants


def _has_slow_tests(path: Path) -> bool:
    return b"mark.slow" in path.read_bytes()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files alone that have no slow test where only those are wanted: most have none, and each takes time."""
    is_left_out = config.option.markexpr == "slow" and collection_path.match("test_*.py")
    return (is_left_out and not _has_slow_tests(collection_path)) or None


_unfreeze = gc.unfreeze
_is_unfrozen = True
_GARBAGE = 100_000
"""Objects that are made before it is worthwhile to look which are needed still."""


def _note_unfreeze() -> None:
    global _is_unfrozen  # noqa: PLW0603 - there is one heap
    _unfreeze()
    _is_unfrozen = True


gc.unfreeze = _note_unfreeze


def pytest_runtest_setup() -> None:
    """Leave all tests and what they import out of every search for garbage: it would take a second each time.

    A node or a guard puts everything back when it ends, and commands collect nothing, because they end soon.
    """
    global _is_unfrozen  # noqa: PLW0603 - there is one heap
    if _is_unfrozen:
        gc.freeze()
        _is_unfrozen = False
    if gc.get_count()[0] > _GARBAGE:
        gc.collect(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Draw no more examples than are wanted, and have slow tests said to be slow where they stand."""
    for path in {item.path for item in items if item.get_closest_marker("slow") is not None}:
        if not _has_slow_tests(path):
            raise pytest.UsageError(f"{path}: write pytest.mark.slow in it, or `-m slow` does not find its slow tests")
    for item in items if _MOST_EXAMPLES else ():
        test = getattr(item, "function", None)
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if own is not None and own.max_examples > _MOST_EXAMPLES:
            test._hypothesis_internal_use_settings = settings(own, max_examples=_MOST_EXAMPLES)
