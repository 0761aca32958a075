"""Build the page of ``podqos ui`` and of every ``--html`` with npm: ``tools/page.py [--in-place]``.

It is built in a temporary directory, so that 36 MB of npm packages do not stay behind; ``--in-place`` keeps them in
``viewer/``, with those that check it, for whoever works on the page. Nothing happens if the page is newer than all of
its sources. As a build hook of hatchling it adds the page to wheels, so that ``pip install .`` is enough. Without npm
everything but the page works: that is one line of output and not an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # as a script it needs Python alone
    BuildHookInterface = object

PAGE = "src/podqos/page/viewer.html"
IN_WHEEL = "podqos/page/viewer.html"
SCHEMAS = tuple(f"docs/schema/{name}.json" for name in ("simulate", "blast", "autopsy", "page"))
_GENERATED = {"node_modules", "dist", "schema.ts"}
_CHECKS = {"tests", "lint"}
# The versions of Node.js that run Vite: the oldest of each line.
_LEAST_NODE = {20: 19, 22: 12}
_MOST_SECONDS = 600
# By default npm waits for five minutes, three times, and pip builds a wheel twice.
_INSTALL = (
    "ci", "--loglevel=error", "--ignore-scripts", "--no-audit", "--no-fund",
    "--fetch-timeout=30000", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000",
)  # fmt: skip
_BUILD = ("run", "--silent", "build", "--", "--logLevel", "warn")


class NotBuilt(Exception):
    """The page cannot be built here, and why."""


def sources(root: Path) -> Iterator[Path]:
    """Yield the files that the page is made from."""
    for name in SCHEMAS:
        yield root / name
    for directory, folders, names in os.walk(root / "viewer"):
        folders[:] = [name for name in folders if name not in _GENERATED | _CHECKS]
        yield from (Path(directory, name) for name in names if name not in _GENERATED)


def is_up_to_date(root: Path) -> bool:
    """Whether the page is there, and not older than what it is made from."""
    try:
        page = (root / PAGE).stat()
    except FileNotFoundError:
        return False
    # In an unpacked archive everything is equally old.
    return page.st_size > 0 and all(path.stat().st_mtime <= page.st_mtime for path in sources(root) if path.exists())


def build(root: Path, workplace: Path, say: Callable[[str], None]) -> Path:
    """Build the page from a copy of its sources in another directory, or in place, and return where it is."""
    npm = _npm()
    if workplace != root:
        for path in sources(root):
            copy = workplace / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    viewer = workplace / "viewer"
    # Whoever only wants the page needs no linter.
    install = _INSTALL if workplace == root else (*_INSTALL, "--omit=dev")
    for what, arguments in (("downloading what builds the page (npm ci)", install), ("building the page", _BUILD)):
        say(what)
        try:
            done = subprocess.run(  # noqa: S603 - npm, with arguments of our own
                [npm, *arguments], cwd=viewer, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                encoding="utf-8", errors="replace", timeout=_MOST_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise NotBuilt(f"`npm {arguments[0]}` took more than {_MOST_SECONDS} s") from None
        if done.returncode:
            lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            reason = lines[0].removeprefix("npm error ") if lines else f"exit code {done.returncode}"
            raise NotBuilt(f"`npm {arguments[0]}` failed: {reason}")
    return viewer / "dist/index.html"


def _npm() -> str:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise NotBuilt("npm is not installed")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    if not _runs_vite(version):
        least = ", ".join(f"{major}.{minor}" for major, minor in _LEAST_NODE.items())
        raise NotBuilt(f"it needs Node.js {least} or newer, and node is {version}")
    return npm


def _runs_vite(version: str) -> bool:
    major, minor = (int(part) if part.isdigit() else 0 for part in f"{version.removeprefix('v')}..".split(".")[:2])
    return major > max(_LEAST_NODE) or minor >= _LEAST_NODE.get(major, sys.maxsize)


def keep(built: Path, root: Path) -> None:
    """Put the page where podqos looks for it, at once or not at all."""
    scratch = root / f"{PAGE}.{os.getpid()}"
    try:
        shutil.copyfile(built, scratch)
        scratch.replace(root / PAGE)
    finally:
        scratch.unlink(missing_ok=True)


def outcome(root: Path, error: NotBuilt) -> str:
    """Return what it means that the page is not built."""
    if (root / PAGE).exists():
        return f"the page stays as it is: {error}"
    return f"the page is not built: {error}. Everything works except `podqos ui` and --html"


class PageHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the page to a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page unless it is there; an editable installation finds what is in the source tree."""
        self._workplace: tempfile.TemporaryDirectory[str] | None = None
        root = Path(self.root)
        if version == "editable" or not (root / "viewer/package.json").exists() or is_up_to_date(root):
            return
        self._workplace = tempfile.TemporaryDirectory(prefix="podqos-page-")
        try:
            built = build(root, Path(self._workplace.name), self.app.display_waiting)
        except (NotBuilt, OSError) as error:
            self.app.display_warning(outcome(root, NotBuilt(str(error))))
            return
        try:
            keep(built, root)
        except OSError:  # a source tree that cannot be written to
            build_data["force_include"][str(built)] = IN_WHEEL

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what npm brought."""
        if self._workplace is not None:
            self._workplace.cleanup()


def main(*arguments: str) -> int:
    """Build the page in the source tree that this file is part of."""
    root = Path(__file__).resolve().parents[1]
    is_in_place = "--in-place" in arguments
    # Type checks need what npm brings, also where the page was built elsewhere.
    lacks_packages = is_in_place and not (root / "viewer/node_modules").exists() and shutil.which("npm") is not None
    if is_up_to_date(root) and not lacks_packages:
        return 0
    with tempfile.TemporaryDirectory(prefix="podqos-page-") as scratch:
        workplace = root if is_in_place else Path(scratch)
        try:
            keep(build(root, workplace, lambda what: print(what, flush=True)), root)
        except (NotBuilt, OSError) as error:
            print(outcome(root, NotBuilt(str(error))))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
