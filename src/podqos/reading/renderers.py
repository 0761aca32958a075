"""The programs that render kustomizations and charts: how they are called, what they print, why they fail."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.manifest.problems import Problem, Severity, SyntaxProblem
from podqos.manifest.text import chunks, normalise
from podqos.model.profile import LATEST
from podqos.objects.files import RENDERED, STDIN, InputFile
from podqos.reading.files import read_bytes
from podqos.reading.paths import with_slashes

if TYPE_CHECKING:
    from podqos.reading.running import Output

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
CHART = "Chart.yaml"
_MOST_BYTES = 256 << 20
_TIMEOUT_S = 60.0
# Helm writes it above every document, and nothing else between.
_SOURCE = re.compile(rb"^---[ \t]*\r?\n# Source: ([^\r\n]+)\r?\n", re.MULTILINE)
_LACKING = re.compile(r"found in Chart\.yaml, but missing in charts/ directory: (.+)")
_ACCUMULATING = "accumulating resources from "
# How to call Helm, and what kustomize says of notation that it accepts.
_NOISE = ("Use --debug flag to render out invalid YAML", "# Warning: ")
# What renderers say, and what to do about it.
_FIXES = (
    (
        re.compile(r"chart requires kubeVersion"),
        f"give what Helm prints: `helm template … --kube-version {LATEST.version_text} | podqos check -`",
    ),
    (
        re.compile(r"execution error at|nil pointer evaluating|can't evaluate field|values don't meet the spec"),
        "give what Helm prints: `helm template … --values FILE | podqos check -`",
    ),
    (re.compile(r"library charts are not installable"), "render a chart that uses it"),
    (
        re.compile(r"must specify --enable-helm"),
        "give what kustomize prints: `kubectl kustomize --enable-helm … | podqos check -`",
    ),
    (
        re.compile(r"security; file .* is not in or below"),
        "give what kustomize prints: `kubectl kustomize --load-restrictor LoadRestrictionsNone … | podqos check -`",
    ),
    (
        re.compile(r"git (?:fetch|clone|init)|dial tcp|no such host|failed to (?:run|clone)"),
        "check the network: it names something remote",
    ),
)


class Tool(Enum):
    """What renders a kind of directory: the first program that is installed."""

    KUSTOMIZE = (
        "kustomization",
        "install kubectl: https://kubernetes.io/docs/tasks/tools/",
        ("kubectl", "kustomize"),
        ("kustomize", "build"),
    )
    HELM = ("Helm chart", "install helm: https://helm.sh/docs/intro/install/", ("helm", "template"))

    def __init__(self, noun: str, how_to_install: str, *programs: tuple[str, str]) -> None:
        self.noun = noun
        self.how_to_install = how_to_install
        self.programs = programs

    @property
    def program(self) -> tuple[str, str] | None:
        """The first program that is installed, with its subcommand."""
        import shutil

        return next((program for program in self.programs if shutil.which(program[0])), None)

    def command(self, directory: str) -> list[str]:
        """Return the command that renders a directory, for people."""
        return [*(self.program or self.programs[0]), directory]


class Failure(Struct, frozen=True):
    """Why a directory was not rendered."""

    problem: Problem
    cause: str = ""
    """The end of what the program said: the same for all kustomizations that take in a broken one."""
    lacks: str = ""
    """The chart's dependencies that are not in its directory."""


def render(directory: str, tool: Tool, scope: str | None) -> list[InputFile] | Failure:
    """Render a directory; its program must be installed."""
    assert tool.program is not None
    # Helm's tests are pods that run on `helm test` alone.
    own = ("--skip-tests",) if tool is Tool.HELM else ()
    # What begins with a dash would be an option.
    command = [*tool.program, os.path.join(".", directory) if directory.startswith("-") else directory, *own]
    from podqos.reading.running import run  # with what starts processes, which most commands do not need

    try:
        output = run(command, timeout_s=_TIMEOUT_S, most_bytes=_MOST_BYTES)
    except OSError as error:
        return Failure(
            _failed(directory, tool, f"cannot run {command[0]}: {error.strerror or error}", tool.how_to_install)
        )
    if output.stopped is not None or output.code:
        return _failure(directory, tool, command, output)
    parts = dict(_parts(directory, tool, output.text))
    if not parts:
        what, fix = f"this {tool.noun} renders no objects", "give it other values" if tool is Tool.HELM else ""
        return Failure(Problem(directory, 0, 0, Severity.WARNING, "", what, fix))
    return [InputFile(path, scope, text) for path, text in parts.items()]


def _parts(directory: str, tool: Tool, text: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the texts that were rendered: of a chart, by template."""
    files = (name for name in KUSTOMIZATIONS if os.path.isfile(os.path.join(directory, name)))
    # The first part of a name is the chart's, which its directory need not have.
    parts = (
        {name.partition("/")[2] or CHART: part for name, part in _by_template(text).items()}
        if tool is Tool.HELM
        else {next(files, KUSTOMIZATIONS[0]): text}
    )
    for name, part in parts.items():
        if next(chunks(normalise(part)), None) is not None:
            yield with_slashes(os.path.join(directory, name)) + RENDERED, part


def piped() -> list[InputFile]:
    """Return standard input; if Helm printed it, by template: a pipe has no lines to look up."""
    data = read_bytes(STDIN)
    if _SOURCE.search(data) is not None:
        with suppress(SyntaxProblem):  # reading it will say why
            parts = _by_template(normalise(data))
            if "" not in parts:
                return [InputFile(name + RENDERED, data=part) for name, part in parts.items()]
    return [InputFile(STDIN, data=data)]


def _by_template(text: bytes) -> dict[str, bytes]:
    """Return what Helm printed by template, each as ``helm template --show-only`` prints it.

    Text without a template, or with a name that cannot be one, is under an empty name.
    """
    starts = list(_SOURCE.finditer(text))
    bounds = [0, *(start.start() for start in starts), len(text)]
    names = ["", *(_template(start[1]) for start in starts)]
    parts: dict[str, list[bytes]] = {}
    for name, start, end in zip(names, bounds, bounds[1:], strict=False):
        part = text[start:end]
        if name or part.strip():
            parts.setdefault(name, []).append(part)
    return {name: b"".join(part) for name, part in parts.items()}


def _template(name: bytes) -> str:
    text = name.decode(errors="replace").strip()
    folders = text.split("/")
    return text if len(folders) > 1 and text.isprintable() and not {"", ".", ".."} & {*folders} else ""


def _failure(directory: str, tool: Tool, command: list[str], output: Output) -> Failure:
    import shlex

    lines = [line for line in output.errors.splitlines() if line.strip() and not line.startswith(_NOISE)]
    what, fix = _reason(output)
    what = what or ("" if lines else f"failed with exit code {output.code} and no message")
    what = f"{' '.join(command[:2])} {what}" if what else ""
    lacking = _LACKING.search(output.errors)
    problem = _failed(directory, tool, what, fix, (f"$ {shlex.join(command)}", *lines))
    cause = output.errors.rpartition(_ACCUMULATING)[2] if _ACCUMULATING in output.errors else ""
    return Failure(problem, cause, lacking[1].strip() if lacking else "")


def _reason(output: Output) -> tuple[str, str]:
    """Return how a program ended, unless it failed and said why itself, and how to fix it."""
    from podqos.reading.running import Stopped

    if output.stopped is Stopped.LATE:
        what = f"did not finish within {_TIMEOUT_S:g} s and was killed"
        return what, "render it into a file, and give that"
    if output.stopped is Stopped.LONG:
        what = f"printed more than {_MOST_BYTES >> 20}Mi and was killed"
        return what, "give it values that render less, or render it into files"
    ended = f"was killed by signal {-output.code}" if output.code < 0 else ""
    return ended, next((fix for pattern, fix in _FIXES if pattern.search(output.errors)), "")


def _failed(directory: str, tool: Tool, what: str, fix: str, lines: tuple[str, ...] = ()) -> Problem:
    text = f"cannot render this {tool.noun}{': ' if what else ''}{what}"
    return Problem(directory, 0, 0, Severity.ERROR, "", text, fix, details=lines)
