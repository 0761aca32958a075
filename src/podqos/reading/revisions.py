"""Manifests of a version: a file, a directory, or ``REV:path`` in a git repository.

git is called, never imitated: it decides what a revision means and which files it has. An existing path with a colon in
it is a path. Rendering needs the surrounding files, so a revision is then checked out into a directory of its own; the
repository, its index and its hooks are not touched.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import HostError, InputError
from podqos.manifest.problems import Problem, Severity
from podqos.naming import naming
from podqos.objects.files import STDIN
from podqos.objects.purposes import Purpose, is_assertion, purpose
from podqos.reading.files import NO_RENDERING, Rendering, is_manifest, read_bytes
from podqos.reading.gathering import applied_files
from podqos.reading.paths import begins_with_drive, with_slashes
from podqos.reading.rendering import left_out_of_tree


class ManifestText(Struct, frozen=True):
    """A manifest, and the name to report it under."""

    name: str
    data: bytes
    scope: str | None = None
    """The directory that was walked to find it; None if it was named."""
    purpose: Purpose | None = None
    """What it is for if not to be applied."""


def read_version(argument: str, rendering: Rendering = NO_RENDERING) -> tuple[list[ManifestText], list[Problem]]:
    """Return the manifests that an argument names, in the order of ``kubectl apply -R``, and what was left out.

    Kustomizations and charts are skipped, unless ``rendering`` asks to render them.
    """
    if _is_path(argument):
        return _from_files(argument, rendering)
    revision, _, path = argument.partition(":")
    if rendering.render:
        return _from_checkout(revision, path, rendering)
    found = sorted(_from_git(revision, path), key=lambda text: text.name)
    if not found:
        raise InputError("contains no YAML or JSON files", where=argument, fix="give a directory of manifests")
    left_out, directories = left_out_of_tree({text.name: text.data for text in found if text.scope is not None})
    fix = "add " + naming("render")
    skipped = [
        Problem(directory, 0, 0, Severity.WARNING, "", "skipped: it must be rendered first", fix)
        for directory in directories
    ]
    return [text for text in found if text.name not in left_out], skipped


def path_in(argument: str) -> str:
    """Return the path of a version: the whole text, or what follows the revision."""
    return argument if _is_path(argument) else argument.partition(":")[2] or argument


def _is_path(argument: str) -> bool:
    return argument == STDIN or ":" not in argument or begins_with_drive(argument) or os.path.exists(argument)


def _from_files(argument: str, rendering: Rendering) -> tuple[list[ManifestText], list[Problem]]:
    inputs = applied_files([argument], "compare", rendering)
    texts, problems = [], list(inputs.problems)
    for file in inputs.files:
        try:
            data = read_bytes(file.path) if file.data is None else file.data
            texts.append(ManifestText(file.path, data, file.scope, file.purpose))
        except InputError as error:
            if file.scope is None:
                raise
            problems.append(Problem(file.path, 0, 0, Severity.ERROR, "", error.what, error.fix))
    return texts, problems


def _from_checkout(revision: str, path: str, rendering: Rendering) -> tuple[list[ManifestText], list[Problem]]:
    """Return the manifests of a revision, rendered in a full checkout, because bases may be anywhere."""
    import tempfile

    _kind_in(revision, path)
    with tempfile.TemporaryDirectory(prefix="podqos-") as directory:
        top = with_slashes(os.path.join(os.path.realpath(directory), "tree", ""))
        os.mkdir(top)
        _check_out(revision, top)

        def named(text: str) -> str:
            if top.rstrip("/") not in text:
                return text  # which may name fields
            return text.replace(top, f"{revision}:").replace(top.rstrip("/"), f"{revision}:")

        try:
            texts, problems = _from_files(os.path.join(top, _from_top(path)), rendering)
        except InputError as error:
            raise InputError(error.what, where=f"{revision}:{path}", fix=error.fix) from None
        return (
            [replace(text, name=named(text.name), scope=text.scope and _absolute(named(text.scope))) for text in texts],
            [
                replace(
                    problem,
                    source=named(problem.source),
                    what=named(problem.what),
                    fix=named(problem.fix),
                    details=tuple(map(named, problem.details)),
                )
                for problem in problems
            ],
        )


def _check_out(revision: str, top: str) -> None:
    """Write the files of a revision into a directory, with a separate index."""
    repository = _output("rev-parse", "--absolute-git-dir").decode().strip()
    own = {"GIT_DIR": repository, "GIT_WORK_TREE": top, "GIT_INDEX_FILE": f"{top.rstrip('/')}.index"}
    no_hooks = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": os.devnull}
    for command in (("read-tree", f"{revision}^{{tree}}"), ("checkout-index", "--all")):
        _output(*command, own=own | no_hooks)


def _kind_in(revision: str, path: str) -> str:
    """Return the type of a path in a revision, ``blob`` or ``tree``; raise if it does not exist."""
    where = f"{revision}:{path}"
    _check_revision(revision, where)
    kind = _git("cat-file", "-t", f"{revision}:{_from_top(path)}")
    if kind.returncode:
        fix = "paths are relative to the top of the repository; ./path is relative to this directory"
        raise InputError(f"no such path in {revision}", where=where, fix=fix)
    return kind.stdout.decode().strip()


def _from_git(revision: str, path: str) -> Iterator[ManifestText]:
    kind = _kind_in(revision, path)
    tree = f"{revision}:{_from_top(path)}"
    if kind == "blob":
        yield ManifestText(f"{revision}:{path}", _output("cat-file", "blob", tree))
        return
    names = dict(_blobs(_output("ls-tree", "-r", "-z", "--full-tree", tree)))
    folders: dict[str, list[str]] = {}
    for name in names:
        folders.setdefault(os.path.dirname(name), []).append(os.path.basename(name))
    separator = "" if tree.endswith((":", "/")) else "/"
    for name, data in zip(names, _contents(names.values()), strict=True):
        folder, own = os.path.split(name)
        if not is_assertion(own):
            path = f"{tree}{separator}{name}"
            yield ManifestText(path, data, os.path.dirname(_absolute(path)), purpose(folder, folders[folder]))


def _from_top(path: str) -> str:
    """Return a path relative to the top of the repository, as git reads it unless it begins with a dot."""
    if path.partition("/")[0] in {".", ".."}:
        path = _output("rev-parse", "--show-prefix").decode().strip() + path
    normal = with_slashes(os.path.normpath(path)) if path else ""
    return "" if normal == "." else normal


def _absolute(path: str) -> str:
    return with_slashes(os.path.abspath(path))


def _check_revision(revision: str, where: str) -> None:
    fix = "run podqos inside a git repository, or give an existing file or directory"
    if _git("rev-parse", "--git-dir").returncode:
        raise InputError("no such file, and this is not a git repository", where=where, fix=fix)
    if not revision or revision.startswith("-"):
        raise InputError("no revision before the colon", where=where, fix="for example HEAD~1:deploy")
    if _git("rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}").returncode:
        raise InputError(f"git has no revision {revision!r}", where=where, fix="check it with: git rev-parse REV")


def _blobs(listing: bytes) -> Iterator[tuple[str, str]]:
    """Yield the name and id of every manifest of a tree, without links, submodules and hidden directories."""
    for entry in listing.split(b"\0"):
        about, _, raw_name = entry.partition(b"\t")
        name = os.fsdecode(raw_name)
        if not about.startswith(b"100") or not is_manifest(name):
            continue
        if not any(part.startswith(".") for part in name.split("/")[:-1]):
            yield name, about.split(b" ")[2].decode()


def _contents(ids: Iterable[str]) -> Iterator[bytes]:
    """Yield the contents of many blobs, read by one process."""
    wanted = "".join(f"{id_}\n" for id_ in ids)
    answer = _output("cat-file", "--batch", given=wanted.encode())
    start = 0
    while start < len(answer):
        end = answer.index(b"\n", start)
        size = int(answer[start:end].rpartition(b" ")[2])
        yield answer[end + 1 : end + 1 + size]
        start = end + 2 + size


def _output(*arguments: str, given: bytes | None = None, own: Mapping[str, str] | None = None) -> bytes:
    result = _git(*arguments, given=given, own=own)
    if result.returncode:
        lines = result.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise HostError(f"git {arguments[0]}: {lines[0]}")
    return result.stdout


def _git(
    *arguments: str, given: bytes | None = None, own: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    # Words for programs, and no lock that a status line would take.
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", **(own or {})}
    try:
        return subprocess.run(  # noqa: S603 # no shell; a revision that looks like an option was refused
            ["git", *arguments],  # noqa: S607 # git is where the user has it
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            check=False,
            env=environment,
        )
    except OSError as error:
        raise HostError(f"cannot run git: {error.strerror or error}") from error
