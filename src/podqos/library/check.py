"""Run all checks over objects, on all cores where that pays; ``answers.check`` says what is found."""

from __future__ import annotations

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.gate import Gate
from podqos.answers.check import Checked, CheckRequest
from podqos.answers.findings import CheckReport
from podqos.library.node_state import Usage, usage_rows
from podqos.library.parallel import over_cores
from podqos.objects.files import file_behind
from podqos.objects.objects import Objects
from podqos.objects.spreading import Progress
from podqos.reading.configuration import relative_path


def check(
    objects: Objects,
    options: CheckOptions | None = None,
    gate: Gate | None = None,
    *,
    resized: Objects | None = None,
    usage: Usage | None = None,
) -> CheckReport:
    """Return what is found about objects, where, what follows from it, and what to write instead.

    ``gate`` says what is reported, known and ignored. ``resized`` are workloads of ``objects`` with other resources, as
    they are to be resized in place, ``usage`` what their pods use (a usage file, or its rows). What is wrong with the
    files is among the problems of both.
    """
    return run_checks(objects, options, gate, resized=resized, usage=usage).report


def run_checks(
    objects: Objects,
    options: CheckOptions | None = None,
    gate: Gate | None = None,
    *,
    resized: Objects | None = None,
    usage: Usage | None = None,
    progress: Progress | None = None,
    tries_all: bool = False,
) -> Checked:
    """Return what ``check`` reports, with everything that was looked at; ``tries_all`` where fixes are asked for."""
    gate = gate or Gate()
    sources = (*objects.sources, *(() if resized is None else resized.sources)) if gate.ignore else ()
    request = CheckRequest(
        objects=objects,
        options=options or CheckOptions(),
        gate=gate,
        resized=resized,
        usage=usage_rows(usage) or (),
        tries_all=tries_all,
        paths={source.path: relative_path(file_behind(source.path) or source.path, gate.folder) for source in sources},
    )
    return Checked(request, over_cores(progress))
