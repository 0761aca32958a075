"""Gets programs from Debian's packages without installing them: they are unpacked into the project's cache.

What the system has is used by whoever asks; nothing outside the cache is written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PROJECT_CACHE = Path(__file__).parents[1] / ".cache"


class Missing(Exception):
    """It cannot be had; the text says why."""


def library_path(root: Path) -> str:
    """Return where programs unpacked into a folder find their libraries, whatever the processor."""
    return ":".join(
        str(folder) for below in ("usr/lib", "lib") for folder in sorted((root / below).glob("*-linux-gnu*"))
    )


class Packages:
    """A folder of the cache."""

    def __init__(self, name: str) -> None:
        self.folder = PROJECT_CACHE / name

    def install(self, packages: list[str], root: Path) -> None:
        """Unpack packages, and those they need that the system does not have, into a folder."""
        options = ("install", "--download-only", "--yes", "--no-install-recommends")
        self.unpack(self.download(*options, *packages), root)

    def download(self, *arguments: str) -> list[Path]:
        """Let apt-get download what the arguments say."""
        target = self.folder / "packages"
        shutil.rmtree(target, ignore_errors=True)
        (target / "partial").mkdir(parents=True, exist_ok=True)
        done = self.apt("apt-get", "-o", f"Dir::Cache::archives={target}", *arguments, cwd=target)
        packages = sorted(target.glob("*.deb"))
        if done.returncode or not packages:
            raise Missing(f"apt-get {' '.join(arguments)}: {(done.stderr.strip() or 'nothing came').splitlines()[-1]}")
        return packages

    def update(self) -> None:
        """Read the lists of packages anew, into the cache."""
        (self.folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        self.apt("apt-get", "update")

    def apt(self, command: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of apt's."""
        if shutil.which(command) is None or shutil.which("dpkg") is None:
            raise Missing(f"{command} is missing, and with it a way to get Debian's packages")
        (self.folder / "apt").mkdir(parents=True, exist_ok=True)
        lists = self.folder / "lists"
        private = ["-o", f"Dir::State::lists={lists}"] if lists.exists() else []
        # Other programs may hold the package manager's lock; we only read.
        own = ["-o", f"Dir::Cache={self.folder / 'apt'}", "-o", "APT::Sandbox::User=root"]
        options = ["-o", "Debug::NoLocking=1", *own, *private]
        return subprocess.run(
            [command, *options, *arguments],
            cwd=cwd or self.folder,
            env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    @staticmethod
    def unpack(packages: list[Path], root: Path) -> None:
        """Unpack into a folder that appears whole or not at all."""
        partial = root.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        for package in packages:
            subprocess.run(["dpkg", "-x", package, partial], check=True)
        partial.rename(root)
        shutil.rmtree(packages[0].parent)
