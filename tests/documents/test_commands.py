"""Every command that the documents tell a reader to type runs as written, and prints what the page shows of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents.commands import PAGES, ROOT, Command, below, commands_of, help_commands, prose
from documents.grammar import Grammar, grammars
from documents.shown import difference
from documents.world import in_world, make_world, run
from podqos.cli.command_list import parser_of

# Commands of podqos that find something exit with 1; all others on the pages exit with 0.
FINDS = {"check", "drift", "admit", "place", "webhook", "--fail-on"}
# What cannot run in a test, by program or command: the rest of it is held by the tests at the end.
CANNOT_RUN = {
    "sudo": "needs root and a machine of its own",
    "podqos node": "needs root and a node that runs",
    "podqos rehearse": "needs root and memory cgroups",
    "helm": "needs Helm and a cluster",
    "make": "sets up environments, builds and tests everything",
    "pip": "fetches packages",
    "pipx": "fetches packages",
    "cat": "reads the files of a node",
    "cd": "reads the files of a node",
    ".venv/bin/pre-commit": "changes the hooks of this clone",
    "git": "has made the repository that all these commands run in",
    "cp": "has made the repository that all these commands run in",
}
NO_PAGE = "the page is not built: make viewer"
PAGE_OF_A_RUN = ROOT / "src/podqos/page/viewer.html"
EVERYWHERE = [*(each for page in PAGES for each in commands_of(page)), *help_commands()]


def reason(command: Command) -> str | None:
    """Return why a command cannot run, or None."""
    first, *rest = command.words
    if "--html" in rest and not PAGE_OF_A_RUN.exists():
        return NO_PAGE
    if rest[:1] in (["webhook"], ["exporter"]) and rest[1:2] not in (["test"], ["certificate"], ["manifests"]):
        return "serves until it is interrupted"
    if rest[:1] == ["guard"] and rest[1:2] != ["manifests"] and "--state" not in rest:
        return "needs a node with a guard"
    if rest[:1] == ["ui"] and "--html" not in rest:
        return "serves until it is interrupted"
    if "--prometheus" in rest:
        return "asks a server"
    if "--live" in rest:
        return "goes on until it is interrupted"
    return CANNOT_RUN.get(first) or CANNOT_RUN.get(" ".join([first, *rest[:1]]))


def own(command: Command) -> list[str] | None:
    """Return the arguments of a command that is podqos alone."""
    words = command.words[1:] if command.words[0] in {"sudo", "kubectl"} else command.words
    return words[1:] if words[0] == "podqos" else None


def runs(command: Command) -> bool:
    """Whether a command is complete and can run."""
    return reason(command) is None and not (own(command) is not None and (command.is_open or command.is_name))


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """Return a directory with all that the pages name."""
    directory = tmp_path_factory.mktemp("world")
    make_world(directory)
    return directory


def _by_page() -> dict[str, list[Command]]:
    """Return the commands of each page that run, each once, where it is shown with output or named first.

    Those of podqos in docs/internals/sources.md run in ``test_sources.py``.
    """
    found: dict[tuple[str, ...], Command] = {}
    pages: dict[str, list[Command]] = {}
    elsewhere = (each for each in EVERYWHERE if each.page != "docs/internals/sources.md" or own(each) is None)
    for command in sorted(filter(runs, elsewhere), key=lambda each: not each.shown):
        if command.shown or (*command.words,) not in found:
            found[*command.words] = command
            pages.setdefault(command.page, []).append(command)
    return {page: sorted(commands, key=lambda each: each.line) for page, commands in sorted(pages.items())}


def test_commands_that_write_a_page_are_tried():
    left_out = {each.text for each in EVERYWHERE if reason(each) == NO_PAGE}
    if left_out:
        pytest.skip(f"{NO_PAGE}. Not tried: {'; '.join(sorted(left_out))}")


@pytest.mark.parametrize(("page", "commands"), _by_page().items(), ids=_by_page())
def test_every_command_of_a_page_runs_and_prints_what_the_page_shows(world, page, commands):
    with in_world(world):
        for command in commands:
            ran = run(command)
            place = f"{page}:{command.line}: {command.text}"
            assert ran.code in ({0, 1} if FINDS & {*command.words} else {0}), f"{place}\n{ran.err}"
            if command.shown:
                assert difference(command.shown, ran.out) is None, place


def test_every_exception_is_needed():
    beginnings = {beginning for each in EVERYWHERE for beginning in (each.words[0], " ".join(each.words[:2]))}
    assert CANNOT_RUN.keys() - beginnings == set()


# ---- what does not run is right as far as that can be told -------------------------------------------------------

OWN = [(each, arguments) for each in EVERYWHERE if (arguments := own(each)) is not None]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [pytest.param(each, words, id=each.text) for each, words in OWN if reason(each) and not each.is_open],
)
def test_a_command_that_needs_root_is_understood(command, arguments):
    if not command.is_name:
        parser_of(arguments[0])[0].parse_args(arguments[1:])
    assert below(arguments)[0] is not None


@pytest.mark.parametrize(
    ("text", "arguments"), {each.text: words for each, words in OWN if each.is_open}.items(), ids=str
)
def test_a_synopsis_has_options_and_formats_that_exist(text, arguments):
    command, _ = below(arguments)
    assert command is not None
    options = {name: each for each in command.options for name in each.names}
    assert {*re.findall(r"(?<![\w-])--?[a-z][\w-]*", text)} <= {*options}
    for formats in re.findall(r"-o ([a-z]+(?:\|[a-z]+)+)", text):
        assert {*formats.split("|")} == {*options["-o"].words}


def test_targets_of_make_exist():
    targets = " ".join(re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)).split()
    named = [each.words[1] for each in EVERYWHERE if each.words[0] == "make"]
    assert named
    assert {*named} <= {*targets}


def test_nothing_is_installed_that_is_not_published():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    everything = "\n".join(page.read_text() for page in PAGES)
    installed = re.findall(r"(?<!\w)pipx? install((?: +[^\s`#]+)+)", everything)
    assert installed
    for words in installed:
        assert "podqos" not in words.split(), f"pip install{words}: podqos is not on an index"
    assert {*re.findall(r"(?:podqos|\.)\[(\w+)\]'", everything)} <= {*extras}


# Options of kubectl, docker, pip, uv, the kubelet and of what runs in containers that pages speak of.
FOREIGN = {
    "--cgroups-per-qos",
    "--config-dir",
    "--containers",
    "--cpu-percent",
    "--cpu-period",
    "--cpu-quota",
    "--cpu-shares",
    "--cpuset-cpus",
    "--cpuset-mems",
    "--dry-run",
    "--force-reinstall",
    "--hostname-override",
    "--ignore-not-found",
    "--package-lock-only",
    "--kernel-memory",
    "--max-old-space-size",
    "--maxmemory",
    "--memory-reservation",
    "--memory-swap",
    "--memory-swappiness",
    "--prefix",
} | {
    "--oom-kill-disable",
    "--oom-score-adj",
    "--raw",
    "--reinstall",
    "--subresource",
    "--version",  # of podqos itself, before a command
}


def _options(command: Grammar) -> Iterator[str]:
    for option in command.options:
        yield from option.names
    for sub in command.below:
        yield from _options(sub)


def test_every_option_that_prose_names_exists():
    spans = [span for page in PAGES for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose(page.read_text()))]
    named = {option for span in spans for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", span)}
    assert named - {option for command in grammars().values() for option in _options(command)} == FOREIGN
