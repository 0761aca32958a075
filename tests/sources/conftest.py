"""YAML text, as the documents print it, into pods."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podqos.admission.defaulting import defaulted
from podqos.cli.main import main
from podqos.manifest.reading import read
from podqos.model.pod import Pod
from said import without_assumptions

Reader = Callable[[str], Pod]
Explained = dict[str, Any]


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


@pytest.fixture
def explained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Explained]:
    """Put a pod's ``spec`` through ``podqos explain`` and return what it says of the pod."""

    def of(fragment: str, *options: str) -> Explained:
        (tmp_path / "example.yaml").write_bytes(_manifest(fragment))
        assert main(["explain", "-f", str(tmp_path / "example.yaml"), "-o", "json", *options]) == 0
        (item,) = json.loads(capsys.readouterr().out)["items"]
        return dict(item)

    return of


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Run a command on a text as it is printed, and return its exit code and what it says."""

    def of(name: str, text: str, *options: str) -> tuple[int, str, str]:
        file = tmp_path / "example.yaml"
        file.write_text(text)
        given = [str(file)] if name == "check" else ["-f", str(file)]
        code = main([name, *given, *options])
        said = capsys.readouterr()
        return code, said.out, without_assumptions(said.err).replace(f"{tmp_path}/", "")

    return of
