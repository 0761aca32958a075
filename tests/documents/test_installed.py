"""A new user's first hour: podqos installed as README says, every command of README and the tutorials as written."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from documents.commands import ROOT, Command, commands_of
from documents.tasks import TASKS
from documents.test_commands import FINDS, NO_PAGE, reason, runs
from documents.world import in_world, make_world

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs/tutorials").glob("*.md")))
COMMANDS = [command for page in PAGES for command in commands_of(page)]
# What is not typed here, and where it is held: each says in place what it needs.
ELSEWHERE = {
    "pip install .": "here, offline",
    "pipx install .": "fetches packages",
    "uv tool install .": "fetches packages",
    "make demo": "sets up an environment",
    "podqos ui -A": "serves until it is interrupted",
    "podqos ui": "serves until it is interrupted",
    "sudo podqos rehearse race": "needs root, which README says",
    **{task.command: "a transcript of tests/documents/tasks" for task in TASKS},
}


def _text(command: Command) -> str:
    return command.text.partition(" #")[0].strip()


def test_every_command_of_readme_and_tutorials_is_typed_here_or_known_to_need_more():
    waiting = {_text(each) for each in COMMANDS if reason(each) not in {None, NO_PAGE} and not each.is_name}
    prepared = {text for text in waiting if text.startswith(("git ", "cp ", "cat ", "cd "))}
    assert waiting - prepared - ELSEWHERE.keys() == set()


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Return where the clone was installed by the line in README; offline, with what it needs being here already."""
    (command,) = (each for each in COMMANDS if _text(each) == "pip install ." and each.page == "README.md")
    target = tmp_path_factory.mktemp("installed")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(target)]
    subprocess.run([sys.executable, "-m", *_text(command).split(), *offline], cwd=ROOT, check=True, capture_output=True)
    return target


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pip") is None, reason="needs pip")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_works_after_the_installation_that_readme_shows(installed, tmp_path, page):
    make_world(tmp_path)
    typed = [command for command in COMMANDS if command.page == str(page.relative_to(ROOT)) and runs(command)]
    has_page = (installed / "podqos/page/viewer.html").exists()
    with in_world(tmp_path):
        # The program that was installed, from a directory that is not the clone.
        variables = {**os.environ, "PYTHONPATH": str(installed), "PATH": f"{installed / 'bin'}:{os.environ['PATH']}"}
        for command in typed:
            if "--html" in command.words and not has_page:
                continue
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-uo", "pipefail", "-c", command.text],
                env=variables,
                capture_output=True,
                text=True,
                check=False,
            )
            place = f"{command.page}:{command.line}: {command.text}"
            assert done.returncode in ({0, 1} if FINDS & {*command.words} else {0}), f"{place}\n{done.stderr}"
            assert str(ROOT / "src") not in done.stderr, place


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pip") is None, reason="needs pip")
def test_the_program_is_the_installed_one(installed):
    where = [sys.executable, "-c", "import podqos; print(podqos.__file__)"]
    variables = {**os.environ, "PYTHONPATH": str(installed)}
    assert subprocess.run(where, env=variables, check=True, capture_output=True, text=True).stdout.startswith(
        str(installed)
    )
