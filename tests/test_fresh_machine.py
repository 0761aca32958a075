"""What a machine may lack: a Python that is new enough, or the means to make environments. It is said in one line.

Machines are directories of a few programs that stand in for the ``PATH``; none of them has apt-get.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


class Machine:
    """A machine with as many Pythons as are put on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for program in ("sh", "id", "sed", "sort", "make"):
            (directory / program).symlink_to(shutil.which(program))

    def add(self, name: str, version: str, *, has_venv: bool = True) -> Path:
        """Put a program there that answers like a Python of that version; only what is asked of it here."""
        is_old = tuple(map(int, version.split("."))) < (3, 11)
        python = self.directory / name
        python.write_text(
            f"""#!{self.directory}/sh
            case "$2" in
              *python_version*) echo {version} ;;
              *version_info*) exit {int(is_old)} ;;
              *ensurepip*) exit {int(not has_venv)} ;;
              pass) ;;
              *) echo "the real thing" >&2; exit 9 ;;
            esac
            """
        )
        python.chmod(0o755)
        return python

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the repository with nothing but this machine's programs."""
        return subprocess.run(
            command,
            cwd=ROOT,
            env={"PATH": str(self.directory), "HOME": str(self.directory)},
            capture_output=True,
            text=True,
            check=False,
        )

    def environment(self, python: str) -> tuple[int, str]:
        """Ask for an environment; return exit code and what is said."""
        done = self.run("sh", "tools/environment", python, str(self.directory / "venv"))
        assert not (self.directory / "venv").exists()
        return done.returncode, done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_python_that_is_too_old_is_named_with_what_to_install(machine):
    machine.add("python3", "3.10.12")
    code, said = machine.environment("python3")
    assert code == 1
    assert said.startswith("podqos needs Python 3.11 or newer, and python3 is 3.10.12; ")
    assert "sudo apt install python3.11-venv" in said
    assert "make PYTHON=" in said
    assert said.count("\n") == 1


def test_a_python_that_is_not_there_is_named(machine):
    code, said = machine.environment("python3.12")
    assert (code, said.count("\n")) == (1, 1)
    assert "python3.12 does not run" in said


def test_a_python_without_venv_is_named_with_its_package(machine):
    machine.add("python3", "3.12.3", has_venv=False)
    code, said = machine.environment("python3")
    assert code == 1
    assert said == (
        "python3 (3.12.3) cannot make virtual environments; on Debian and Ubuntu: sudo apt install python3.12-venv\n"
    )


def test_a_python_that_is_new_enough_is_used(machine):
    machine.add("python3", "3.11.0")
    assert machine.environment("python3") == (9, "the real thing\n")


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        pytest.param({"python3": "3.11.0", "python3.13": "3.13.0"}, "python3", id="python3 where it will do"),
        pytest.param(
            {"python3": "3.10.12", "python3.11": "3.11.0", "python3.13": "3.13.1"},
            "python3.13",
            id="or else the newest",
        ),
        pytest.param({"python3": "3.10.12"}, "python3", id="an old one is refused later, by name"),
        pytest.param({}, "python3", id="none"),
    ],
)
def test_make_chooses_a_python(machine, pythons, chosen):
    for name, version in pythons.items():
        machine.add(name, version)
    venv = machine.directory / "venv"
    done = machine.run("make", "-n", f"VENV={venv}", f"{venv}/.installed")
    assert f"tools/environment {chosen} {venv}" in done.stdout


def make(machine: Machine, target: str, system: Path | str) -> subprocess.CompletedProcess[str]:
    """Make a target with the environment that is running this."""
    venv = Path(sys.executable).parents[1]
    variables = f"VENV={venv}", f"SYSTEM_PYTHON={system}", f"SYSTEM_VENV={machine.directory}/venv"
    return machine.run("make", "--silent", "-o", f"{venv}/.installed", *variables, target)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("3.9.18", "3.9.18 is older than 3.11"),
        (".".join(map(str, sys.version_info[:3])), "{version}, as in {venv}"),
    ],
    ids=["too old", "the same"],
)
def test_the_systems_python_is_skipped_with_a_reason(machine, version, reason):
    python = machine.add("system", version)
    done = make(machine, "check-system", python)
    shown = reason.format(version=version, venv=Path(sys.executable).parents[1])
    assert (done.returncode, done.stdout) == (0, f"skipped: fast tests with {python} ({shown})\n")


def test_without_a_systems_python_that_is_said(machine):
    done = make(machine, "check-system", "/nowhere/python3")
    assert (done.returncode, done.stdout) == (0, "skipped: fast tests with /nowhere/python3 (there is none)\n")


def test_another_python_of_the_system_runs_the_fast_tests(machine):
    done = make(machine, "check-system", machine.add("system", "3.11.0"))
    assert f"fast tests with {machine.directory}/system (3.11.0)" in done.stdout
    assert done.returncode != 0
    assert "the real thing" in done.stderr


@pytest.mark.slow
def test_another_environment_of_the_same_python_links_the_files_of_the_tests(tmp_path):
    made, named = ROOT / ".venv/.installed", (ROOT / "requirements.lock", ROOT / "pyproject.toml")
    if not made.exists() or any(file.stat().st_mtime >= made.stat().st_mtime for file in named):
        pytest.skip("the tests run in another environment")
    if tmp_path.stat().st_dev != ROOT.stat().st_dev:
        pytest.skip("links need one filesystem")
    venv = tmp_path / "venv"
    python = os.path.realpath(ROOT / ".venv/bin/python")
    done = subprocess.run(["tools/environment", python, venv], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "packages of .venv" in done.stdout
    shown = subprocess.run([venv / "bin/podqos", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("podqos ")
    (linked,) = venv.glob("lib/python*/site-packages/msgspec/__init__.py")
    assert linked.stat().st_nlink > 1
    assert (venv / "bin/podqos").read_text().startswith(f"#!{venv}/bin/python\n")


def test_a_release_names_the_versions_that_were_not_tried(machine):
    done = make(machine, "test-versions", "/nowhere/python3")
    assert done.returncode != 0
    assert done.stdout.splitlines()[-1] == "not tried, because there is no such Python here: 3.13 3.12 3.11"


def test_the_oldest_version_claimed_is_the_one_that_is_required():
    claimed = [text for text in PROJECT["classifiers"] if re.search(r":: 3\.\d", text)]
    assert PROJECT["requires-python"] == f">={claimed[0].rpartition(' ')[2]}"
    for file in ("Makefile", "tools/environment"):
        assert {*re.findall(r"version_info < \(([\d, ]+)\)", (ROOT / file).read_text())} == {"3, 11"}
