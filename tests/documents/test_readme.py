"""The README: what a reader sees first, and its claims."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from conformance import test_scheduling as scheduling
from conformance.compare import difference, vectors
from documents.commands import ROOT, commands_of
from podqos.cli.families import evaluate

README = ROOT / "README.md"
TEXT = README.read_text()
RESULTS = (ROOT / "bench/RESULTS.md").read_text()
FIRST_SCREEN = TEXT.splitlines()[:40]


def _numbers(pattern: str, text: str) -> list[tuple[int, ...]]:
    """Return the numbers that a pattern finds, wherever lines are broken."""
    found = re.findall(pattern.replace(" ", r"\s+"), text.replace(",", ""))
    assert found, pattern
    return [tuple(map(int, each if isinstance(each, tuple) else (each,))) for each in found]


def test_it_has_a_sentence_a_picture_the_installation_and_three_commands_in_this_order():
    assert re.findall(r"^## (.*)$", TEXT, re.MULTILINE) == [
        "Install",
        "Three commands",
        "What is your problem?",
        "What it is not",
        "Why trust it",
        "Documentation",
    ]
    assert len(TEXT.splitlines()) <= 130
    sentence, picture = (part for part in TEXT.split("\n\n")[1:3])
    assert sentence.count(".") == 1
    assert picture.startswith("![")
    assert "## Three commands" in FIRST_SCREEN


def test_the_three_commands_are_shown_with_what_they_print():
    part = TEXT.partition("## Three commands")[2].partition("\n## ")[0]
    shown = [command for command in commands_of(README) if command.shown]
    assert [command.words[1] for command in shown] == ["check", "rank", "simulate"]
    assert all(f"$ {command.text}" in part for command in shown)
    assert any("limits.memory: 128Mi" in line for line in shown[0].shown)
    assert all(len(command.shown) <= 12 for command in shown)


def test_the_count_of_recorded_answers_is_that_of_the_files():
    # Of hostile workloads only those were kept to which podqos gave the same answer: they prove nothing.
    others = {"scheduling.jsonl.gz", "workload_admission_hostile.jsonl.gz"}
    files = [path for path in (ROOT / "tests/conformance").glob("*.jsonl.gz") if path.name not in others]
    lines = sum(len(gzip.decompress(path.read_bytes()).splitlines()) for path in files)
    assert _numbers(r"(\d+) answers in (\d+) families", TEXT) == [(lines, len(files))]


def test_the_count_of_answers_that_differ_is_that_of_the_fields_not_judged():
    about = [line for line in vectors("admission_wide") if line.get("about")]
    differing = [
        line for line in about if difference(line["expected"], evaluate("admission", line["input"])) is not None
    ]
    assert _numbers(r"all of them but (\d+)", TEXT) == [(len(differing),)]


def test_the_count_of_decisions_of_the_scheduler_is_that_of_the_recording():
    halfway = [
        step
        for line in vectors("scheduling")
        for step in line["expected"]["steps"]
        if step["outcome"] == "Preempts" and step.get("victims") == []
    ]
    clusters, every = len(vectors("scheduling")), len(scheduling.decisions())
    lower = len(scheduling.RECORDED_IN_BETWEEN)
    agreeing = every - len(halfway) - lower
    assert _numbers(r"in (\d+) clusters of a running scheduler (\d+) of (\d+) decisions", TEXT) == [
        (clusters, agreeing, every)
    ]
    assert _numbers(r"others (\d+) were recorded mid-decision and (\d+) went", TEXT) == [(len(halfway), lower)]


def test_the_trials_on_a_real_kernel_are_those_that_were_measured():
    assert _numbers(r"killed in (\d+) of (\d+) trials", TEXT) == _numbers(r"(\d+) of (\d+) as foretold", RESULTS)
    race, others = _numbers(r"race \(1/16\) (\d+) of (\d+)", RESULTS), _numbers(r"(\d+) of (\d+) each", RESULTS)
    names = re.findall(r"oom-(?:by-\w+|loop)", RESULTS.partition("## Rehearsals")[2].partition("each")[0])
    right, runs = (race[0][which] + others[0][which] * len(names) for which in (0, 1))
    assert _numbers(r"(\d+) of (\d+) scenario runs", TEXT) == [(right, runs)]


def test_every_page_can_be_reached_from_the_readme_by_links():
    reached, waiting = set(), [README]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.is_relative_to(ROOT):
            continue
        reached.add(page)
        waiting += [(page.parent / link).resolve() for link in re.findall(r"\]\((?!\w+:)([\w./-]+)", page.read_text())]
    assert {*ROOT.glob("docs/**/*.md")} - reached == set()


@pytest.mark.skipif(find_spec("pip") is None, reason="needs pip")
def test_pip_installs_a_clone_as_written(tmp_path):
    (command,) = (each for each in commands_of(README) if each.words[:2] == ["pip", "install"] and not each.is_inline)
    # Offline: what podqos needs is here already, the tools that build it, too.
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(tmp_path)]
    subprocess.run([sys.executable, "-m", *command.words, *offline], cwd=ROOT, check=True, capture_output=True)
    help_text = subprocess.run(
        [sys.executable, str(tmp_path / "bin/podqos"), "help"],
        env={"PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "explain" in help_text
    assert (tmp_path / "bin/kubectl-podqos").exists()
