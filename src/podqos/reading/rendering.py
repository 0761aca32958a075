"""Directories whose manifests must be rendered first: kustomizations and Helm charts.

The files of such a directory are not what runs: bases without their patches, patches without their bases, templates. So
none of them is read. The directory is left out with the one command that renders it, and rendered only on request:
reading a repository never runs anything. A ``kustomization.yaml`` is read for the files it names, which may be in other
directories: patches are never mistaken for workloads.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError, InvalidArgument
from podqos.manifest.plain import Plain
from podqos.manifest.problems import Problem, Severity
from podqos.naming import hint, naming
from podqos.objects.files import STDIN, InputFile
from podqos.objects.purposes import Purpose
from podqos.reading.files import NO_RENDERING, Rendering, read_bytes
from podqos.reading.paths import RealPaths, relative, with_slashes
from podqos.reading.renderers import CHART, KUSTOMIZATIONS, Failure, Tool, render

_TEMPLATES = "templates"
_SHOWN = 10
# More than these that are skipped are one line.
_EACH = 3
# Where a kustomization names files and directories.
_BASES = ("resources", "bases", "components")
_NAMED = ("patchesStrategicMerge", "transformers", "generators", "validators", "configurations", "crds")
_IN_PATH = ("patches", "patchesJson6902", "replacements")
_GENERATORS = ("configMapGenerator", "secretGenerator")


class _Directory(Struct, frozen=True):
    """A directory to render."""

    path: str
    tool: Tool
    part_of: str = ""
    """What it cannot be rendered without: of a kustomize component a kustomization, of a library chart a chart."""


class Rendered:
    """Directories found that must be rendered, and the files they claim."""

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering
        self._directories: dict[str, _Directory] = {}
        self._asked: dict[str, _Directory] = {}
        self._claimed: set[str] = set()
        self._parts: set[str] = set()
        """Directories with files that a kustomization names: unused patches are found there, too."""
        self._uses: dict[str, set[str]] = {}
        """Directories that each kustomization includes."""
        self._purposes: dict[str, Purpose] = {}
        """What walked directories are for if not to be applied."""
        self._problems: list[Problem] = []
        self._real_paths = RealPaths()

    def takes(self, folder: str, folders: list[str], names: Collection[str], meant: Purpose | None = None) -> bool:
        """Whether a walked directory must be rendered; a chart includes everything below it."""
        if meant is not None:
            self._purposes[os.path.realpath(folder)] = meant
        if CHART in names:
            folders.clear()
            self._found(_chart(folder))
            return True
        chart = _chart_of_templates(folder)
        if chart is not None:
            folders.clear()
            self._found(_chart(chart))
            return True
        file = next((name for name in KUSTOMIZATIONS if name in names), None)
        return file is not None and self._kustomization(folder, file)

    def leaves_out(self, path: str) -> bool:
        """Whether a named file must be rendered: a kustomization, a patch next to one, a chart's template."""
        if path == STDIN:
            return False
        folder, name = os.path.split(path)
        chart = _chart_of_templates(folder) or (folder if name == CHART else None)
        if chart is not None and os.path.isfile(path):
            self._found(_chart(chart or "."))
            return True
        file = next((each for each in KUSTOMIZATIONS if os.path.isfile(os.path.join(folder, each))), None)
        if file is None:
            return False
        beside = Rendered(NO_RENDERING)
        is_one = beside._kustomization(folder or ".", file)
        if is_one and (name == file or os.path.realpath(path) in beside._patches(folder or ".", file)):
            self._found(*beside._directories.values())
            return True
        return False

    def claims(self, path: str) -> bool:
        """Whether a file belongs to a kustomization in another directory."""
        if not self._claimed:
            return False
        real = self._real_paths.of(path)
        return real in self._claimed or os.path.dirname(real) in self._parts

    def add(self, directory: str) -> None:
        """Add a directory to render."""
        names = os.listdir(directory) if os.path.isdir(directory) else []
        if CHART not in names and not set(KUSTOMIZATIONS) & set(names):
            what = f"no kustomization.yaml or Chart.yaml in {directory}"
            raise InvalidArgument(what, where=naming("kustomize"), fix="give the directory of a kustomization or chart")
        is_chart = CHART in names
        self._asked[os.path.realpath(directory)] = (
            _chart(directory) if is_chart else _Directory(directory, Tool.KUSTOMIZE)
        )

    def files(self) -> Iterator[InputFile]:
        """Yield rendered manifests; a kustomization that another includes is rendered with that one."""
        wanted: list[tuple[_Directory, str | None]] = [(directory, None) for directory in self._asked.values()]
        if self._rendering.render:
            wanted += [
                (self._directories[real], os.path.abspath(self._directories[real].path))
                for real in self._roots()
                if real not in self._asked and not self._directories[real].part_of
            ]
        failures: list[Failure] = []
        broken: list[str] = []
        for tool in Tool:
            directories = [(directory, scope) for directory, scope in wanted if directory.tool is tool]
            if directories and tool.program is None:
                self._problems.append(_not_installed(tool, [directory.path for directory, _ in directories]))
                continue
            for directory, scope in directories:
                rendered = render(directory.path, tool, scope)
                meant = None if scope is None else self._purposes.get(os.path.realpath(directory.path))
                if not isinstance(rendered, Failure):
                    yield from (replace(file, purpose=meant) for file in rendered)
                elif meant is Purpose.TEST:
                    broken.append(directory.path)
                else:
                    failures.append(rendered)
        self._problems += _told(failures)
        if broken:
            others = f", here and in {len(broken) - 1:,} more" if len(broken) > 1 else ""
            what = f"test input: what cannot be rendered is skipped{others}"
            fix = hint(naming("kustomize", _quoted(broken[0])) + " says why")
            self._problems.append(Problem(broken[0], 0, 0, Severity.WARNING, "", what, fix))

    def problems(self) -> list[Problem]:
        """Return which directories could not be rendered, and how to render those left out."""
        left = (
            []
            if self._rendering.render
            else [directory for real, directory in self._directories.items() if real not in self._asked]
        )
        # What others take in is rendered with them, so they come first.
        used = self._used()
        left.sort(key=lambda directory: (bool(directory.part_of), os.path.realpath(directory.path) in used))
        notes = [_left_out(directory) for directory in left] if len(left) <= _EACH else [_all_left_out(left)]
        return [*self._problems, *notes]

    def _used(self) -> set[str]:
        return set().union(*self._uses.values())

    def _roots(self) -> Iterator[str]:
        """Yield directories that no other one includes, and one of each circle: its renderer says what is wrong."""
        used, reached = self._used(), set[str]()
        for real in sorted(self._directories, key=used.__contains__):
            if real in reached:
                continue
            yield real
            waiting = [real]
            while waiting:
                below = self._uses.get(waiting.pop(), set()) - reached
                reached |= below
                waiting += below

    def _found(self, *directories: _Directory) -> None:
        for directory in directories:
            self._directories.setdefault(os.path.realpath(directory.path), directory)

    def _kustomization(self, folder: str, file: str) -> bool:
        """Add a kustomization and the files it names; False if the file is not a kustomization."""
        value = _document(os.path.join(folder, file))
        if "fluxcd.io" in str(value.get("apiVersion", "")):
            return False  # Flux has a kind of this name
        self._found(_Directory(folder, Tool.KUSTOMIZE, "kustomization" if value.get("kind") == "Component" else ""))
        claimed = self._patches(folder, file) | set(_existing(folder, _contents(value)))
        included = self._uses.setdefault(os.path.realpath(folder), set())
        for path in _existing(folder, _texts(value, _BASES)):
            (included if os.path.isdir(path) else claimed).add(path)
        self._claimed |= claimed
        below = os.path.join(os.path.realpath(folder), "")
        self._parts |= {os.path.dirname(path) for path in claimed if path.startswith(below)}
        return True

    @staticmethod
    def _patches(folder: str, file: str) -> set[str]:
        """Return the files of a kustomization that are no objects of their own."""
        return set(_existing(folder, _patch_texts(_document(os.path.join(folder, file)))))


def _chart(path: str) -> _Directory:
    is_library = _document(os.path.join(path, CHART)).get("type") == "library"
    return _Directory(path, Tool.HELM, "chart" if is_library else "")


def _left_out(directory: _Directory) -> Problem:
    if directory.part_of:
        kind = "kustomize component" if directory.tool is Tool.KUSTOMIZE else "library chart"
        what, fix = f"skipped: a {kind}", f"render a {directory.part_of} that uses it"
    else:
        command = " ".join(map(_quoted, directory.tool.command(os.path.normpath(directory.path))))
        what, fix = (
            f"skipped: a {directory.tool.noun}",
            command + hint(" | podqos … " + naming("files", "-")) + hint(", or add " + naming("render")),
        )
    return Problem(directory.path, 0, 0, Severity.WARNING, "", what, fix)


def _all_left_out(directories: Sequence[_Directory]) -> Problem:
    """Return the warning about many directories at once."""
    where = _common(directory.path for directory in directories)
    first = ", ".join(os.path.relpath(directory.path, where) for directory in directories[:_EACH])
    what = f"skipped {len(directories)} kustomizations and charts: {with_slashes(first)}, …"
    return Problem(where, 0, 0, Severity.WARNING, "", what, hint(naming("render") + " renders them"))


def _not_installed(tool: Tool, paths: list[str]) -> Problem:
    """Return the error about all directories that need a program."""
    names = [program for program, _ in tool.programs]
    missing = f"{names[0]} is not installed" if len(names) == 1 else f"neither {' nor '.join(names)} is installed"
    many = f"{len(paths)} {tool.noun}s" if len(paths) > 1 else f"this {tool.noun}"
    where = _common(paths) if len(paths) > 1 else paths[0]
    what = f"cannot render {many}: {missing}"
    return Problem(where, 0, 0, Severity.ERROR, "", what, tool.how_to_install)


def _told(failures: Iterable[Failure]) -> Iterator[Problem]:
    """Yield what could not be rendered; charts without their dependencies are one error, and so is a common cause."""
    lacking: list[Failure] = []
    by_cause: dict[str, list[Problem]] = {}
    for failure in failures:
        if failure.lacks:
            lacking.append(failure)
        elif failure.cause:
            by_cause.setdefault(failure.cause, []).append(failure.problem)
        else:
            yield failure.problem
    if lacking:
        yield _lacking(lacking)
    for first, *others in by_cause.values():
        names = [problem.source for problem in others]
        more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        line = f"the same error: {', '.join(names[:_SHOWN])}{more}"
        yield replace(first, details=(*first.details, line)) if others else first


def _lacking(failures: Sequence[Failure]) -> Problem:
    """Return the error about charts without their dependencies."""
    paths = [failure.problem.source for failure in failures]
    commands = [f"helm dependency build {_quoted(path)}" for path in paths]
    if len(failures) == 1:
        what = f"cannot render this Helm chart: its dependencies are not in charts/: {failures[0].lacks}"
        return Problem(paths[0], 0, 0, Severity.ERROR, "", what, f"run `{commands[0]}`")
    what = f"cannot render {len(failures)} Helm charts: their dependencies are not in charts/"
    lines = [f"{command}  # {failure.lacks}" for command, failure in zip(commands, failures, strict=True)]
    return Problem(_common(paths), 0, 0, Severity.ERROR, "", what, "run these commands first", details=tuple(lines))


def _chart_of_templates(folder: str) -> str | None:
    """Return the chart whose templates, or something below them, a directory is."""
    path = folder
    while os.path.basename(path):
        above = os.path.dirname(path)
        if os.path.basename(path) == _TEMPLATES and os.path.isfile(os.path.join(above, CHART)):
            return above or "."
        path = above
    return None


def _common(paths: Iterable[str]) -> str:
    """Return the common parent directory; on Windows there is none across drives."""
    try:
        return relative(os.path.commonpath([os.path.abspath(path) for path in paths]))
    except ValueError:
        return "."


def _normal(folder: str, path: str) -> str:
    return with_slashes(os.path.normpath(os.path.join(folder, path)))


def left_out_of_tree(texts: Mapping[str, bytes]) -> tuple[set[str], list[str]]:
    """Return which files of a tree, by their paths in it, must be rendered first, and the directories to render."""
    left_out: set[str] = set()
    directories: list[str] = []
    for name in texts:
        folder, file = os.path.split(name)
        if file == CHART:
            directories.append(folder)
            left_out |= {text for text in texts if not folder or text.startswith(f"{folder}/")}
        elif file in KUSTOMIZATIONS:
            value = _value(name, texts[name])
            if "fluxcd.io" in str(value.get("apiVersion", "")):
                continue
            directories.append(folder)
            named = {_normal(folder, patch_text) for patch_text in _patch_texts(value)}
            named |= {_normal(folder, text) for text in _texts(value, _BASES)}
            claimed = named & texts.keys()
            parts = {os.path.dirname(each) for each in claimed if not folder or each.startswith(f"{folder}/")}
            left_out |= claimed | {text for text in texts if os.path.dirname(text) in {folder, *parts}}
    return left_out, directories


def _document(path: str) -> dict[str, Plain]:
    """Return the contents of a kustomization, as far as it can be read."""
    try:
        return _value(path, read_bytes(path))
    except InputError:
        return {}


def _value(path: str, data: bytes) -> dict[str, Plain]:
    from podqos.manifest.documents import plain_documents

    try:
        documents = plain_documents(path, data)
    except InputError:
        return {}
    value = documents[0].value if documents else None
    return value if isinstance(value, dict) else {}


def _existing(folder: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the real paths of the files and directories that are named and exist."""
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            yield os.path.realpath(path)


def _patch_texts(value: dict[str, Plain]) -> Iterator[str]:
    """Yield what a kustomization names that changes its resources."""
    yield from _texts(value, _NAMED)
    for item in _items(value, _IN_PATH):
        yield from _texts(item, ("path",))


def _contents(value: dict[str, Plain]) -> Iterator[str]:
    """Yield what a kustomization puts into ConfigMaps and Secrets: by itself it may be any file, also a manifest."""
    for item in _items(value, _GENERATORS):
        for text in _texts(item, ("files", "envs")):
            yield text.rpartition("=")[2]


def _items(value: dict[str, Plain], fields: Collection[str]) -> Iterator[dict[str, Plain]]:
    for field in fields:
        items = value.get(field)
        yield from (item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


def _texts(value: dict[str, Plain], fields: Collection[str]) -> Iterator[str]:
    """Yield the file names in fields, without inline patches and URLs."""
    for field in fields:
        items = value.get(field)
        for item in items if isinstance(items, list) else [items]:
            if isinstance(item, str) and item and "\n" not in item and "://" not in item:
                yield item


def _quoted(word: str) -> str:
    from shlex import quote

    return quote(word)
