"""Read and write the baseline file, with one entry per line, so that a review shows what was added."""

from __future__ import annotations

import msgspec

from podqos.advice.checks.baseline import Baseline
from podqos.errors import InputError
from podqos.naming import naming
from podqos.reading.files import read_bytes
from podqos.reading.written_files import write_file


def read_baseline(path: str) -> Baseline:
    """Return the contents of a baseline file."""
    data = read_bytes(path)
    try:
        return msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # the slow way knows lines
    from podqos.reading.strict_files import StrictFile

    file = StrictFile(path, Baseline)
    for problem in file.problems:
        where = f"{path}:{problem.line}:{problem.column}: {problem.field}".removesuffix(": ")
        raise InputError(problem.what, where=where, fix=problem.fix or "recreate it with " + naming("write_baseline"))
    assert file.value is not None
    return file.value


def write_baseline(path: str, baseline: Baseline) -> None:
    """Write a baseline file atomically."""
    entries = b",\n".join(b"    " + msgspec.json.encode(entry) for entry in baseline.findings)
    head = f'{{\n  "apiVersion": "{baseline.api_version}",\n  "kind": "{baseline.kind}",\n  "findings": ['
    text = head.encode() + (b"\n" + entries + b"\n  " if entries else b"") + b"]\n}\n"
    write_file(path, text)
