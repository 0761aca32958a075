"""YAML text, as the documents print it, into pods."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from podqos.admission.defaulting import defaulted
from podqos.manifest.reading import read
from podqos.model.pod import Pod

Reader = Callable[[str], Pod]


def _manifest(fragment: str) -> bytes:
    """Put the part of a pod's ``spec`` that a document shows into a whole pod."""
    spec = textwrap.indent(textwrap.dedent(fragment).strip(), "  ")
    return f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: example\nspec:\n{spec}\n".encode()


@pytest.fixture
def written() -> Reader:
    """Read a pod exactly as written."""

    def of(fragment: str) -> Pod:
        reading = read("example.yaml", _manifest(fragment))
        assert not reading.problems
        (workload,) = reading.workloads
        return workload.pod

    return of


@pytest.fixture
def admitted(written: Reader) -> Reader:
    """Read a pod as the API server stores it, with the requests that follow from limits."""
    return lambda fragment: defaulted(written(fragment))


@pytest.fixture
def refused() -> Callable[[str], list[str]]:
    """Return what is said about a pod that must not be accepted."""

    def of(fragment: str) -> list[str]:
        reading = read("example.yaml", _manifest(fragment))
        assert not reading.workloads
        assert reading.problems
        return [str(problem) for problem in reading.problems]

    return of
