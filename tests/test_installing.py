"""Every line by which README installs podqos, run as written: in a clone of its own, without npm and then with it.

pip, pipx and uv come from the package index of this machine; where it has none, all of this is skipped.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
_INSTALLERS = r"(?:python3? -m )?pip|pipx|uv tool|uv pip"
LINES = re.findall(rf"^    ((?:{_INSTALLERS}) install [^#\n]*[^#\s])", README, re.MULTILINE)
MANIFEST = str(ROOT / "scenarios/content-platform/accidental/article-service.yaml")
# What a machine has besides Python, pip, pipx and uv.
_PROGRAMS = ("sh", "git", "make", "sed", "sort", "id", "grep", "touch", "env", "uname", "cut", "dirname")
_LEFT_OUT = shutil.ignore_patterns("node_modules", "dist", "viewer.html", "schema.ts", "__pycache__", ".*")


class Machine:
    """A clone, the programs of a laptop, and a home of its own."""

    def __init__(self, directory: Path) -> None:
        self.clone = directory / "podqos"
        self.home = directory / "home"
        self.python = directory / "venv"
        self.programs = directory / "bin"
        for made in (self.home, self.programs):
            made.mkdir()
        shutil.copytree(ROOT, self.clone, ignore=_left_out)
        for name in _PROGRAMS:
            if found := shutil.which(name):
                (self.programs / name).symlink_to(found)
        (self.programs / "python3").symlink_to(os.path.realpath(sys.executable))
        self.has_npm = False

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the clone."""
        path = [self.home / ".local/bin", self.python / "bin", self.programs]
        if self.has_npm:
            path += [Path(str(shutil.which(name))).parent for name in ("npm", "node")]
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "UV_", "HTTP"))}
        own = {
            "PATH": os.pathsep.join(map(str, path)), "HOME": str(self.home), "LANG": "C.UTF-8", "PIP_NO_COMPILE": "1",
            "PIPX_HOME": str(self.home / "pipx"), "PIPX_BIN_DIR": str(self.home / ".local/bin"), "USE_EMOJI": "0",
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
            "npm_config_cache": str(Path.home() / ".npm"), "UV_PYTHON_DOWNLOADS": "never",
        }  # fmt: skip
        return subprocess.run(
            command, cwd=self.clone, env={**kept, **own}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    def installed(self, line: str) -> str:
        """Install by a line of README and return the path of podqos, which nothing else brought."""
        for folder in (self.home / ".local/bin", self.python / "bin"):
            for path in folder.glob("*podqos"):
                path.unlink()
        done = self.run(*shlex.split(line))
        assert done.returncode == 0, done.stderr
        found = self.run("env", "sh", "-c", "command -v podqos").stdout.strip()
        assert found.startswith(str(self.home.parent)), found
        return found


def _left_out(directory: str, names: list[str]) -> set[str]:
    outermost = {"tests", "bench", "build"} if directory == str(ROOT) else set()
    return {*_LEFT_OUT(directory, names), *outermost}


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_readme_installs_by_habit():
    assert {"pip install .", "pipx install .", "uv tool install ."} <= set(LINES)
    assert "--config-settings" not in README


@pytest.mark.slow
def test_every_install_line_of_readme_works_without_npm_and_what_it_then_advises_brings_the_page(machine):
    # One test, because making the machine takes as long as using it.
    _make_environment(machine.python)
    brought = machine.run("python", "-m", "pip", "install", "--quiet", "uv", "pipx")
    if brought.returncode:
        pytest.skip(f"no package index: {brought.stderr.strip().rpartition(chr(10))[2]}")
    advised = {line: _works_without_the_page(machine, machine.installed(line)) for line in LINES}
    _is_installed_from_a_repository(machine)
    if shutil.which("npm") is not None:
        machine.has_npm = True
        _has_the_page(machine, machine.installed(advised["pip install ."]))


def _make_environment(directory: Path) -> None:
    """Make an environment as `python -m venv` does; the pip in it is a link to ours, in a tenth of the time."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    where = {"base": str(directory), "platbase": str(directory)}
    own, made = (Path(sysconfig.get_path("purelib", vars=variables)) for variables in ({}, where))
    for package in own.glob("pip*"):
        if package.is_dir():
            (made / package.name).symlink_to(package)
    pip = directory / "bin/pip"
    pip.write_text(f"#!{directory}/bin/python\nfrom pip._internal.cli.main import main\n\nraise SystemExit(main())\n")
    pip.chmod(0o755)


def _works_without_the_page(machine: Machine, podqos: str) -> str:
    """Try an installation without the page, and return the first command that it advises."""
    version = machine.run(podqos, "--version")
    assert (version.returncode, version.stdout.splitlines()[-1]) == (0, "page: not built")
    assert machine.run(podqos, "check", MANIFEST).returncode == 1
    for command in (("simulate", "race", "--html", "race.html"), ("ui", "race")):
        done = machine.run(podqos, *command)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), done.stderr
        assert "nodejs.org" in done.stderr
    return re.findall(r"`([^`]+)`", done.stderr)[0]


def _is_installed_from_a_repository(machine: Machine) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "--quiet"), ("add", "--all"), (*who, "commit", "--quiet", "--message", "all")):
        assert machine.run("git", *command).returncode == 0
    podqos = machine.installed(f"pip install --no-deps --force-reinstall git+file://{machine.clone}")
    assert machine.run(podqos, "--version").returncode == 0


def _has_the_page(machine: Machine, podqos: str) -> None:
    if "page: built" not in machine.run(podqos, "--version").stdout:
        pytest.skip("npm cannot build the page here (no network?)")
    done = machine.run(podqos, "simulate", "race", "--html", "race.html")
    assert done.returncode == 0, done.stderr
    assert (machine.clone / "race.html").stat().st_size > 100_000
    assert not (machine.clone / "viewer/node_modules").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_demo_installs_what_running_needs_and_says_what_it_does(machine):
    done = machine.run("make", "demo")
    if "Could not find a version" in done.stderr or "Temporary failure" in done.stderr:
        pytest.skip("no package index")
    assert done.returncode == 0, done.stderr
    first, second, third, *_ = done.stdout.splitlines()
    assert first.startswith("making .venv-demo with Python 3.")
    assert second == "installing 18 packages"
    assert third == "the page is not built: npm is not installed. Everything works except `podqos ui` and --html"
    sizes = (path.stat().st_size for path in (machine.clone / ".venv-demo").rglob("*") if path.is_file())
    assert sum(sizes) < 20 << 20
