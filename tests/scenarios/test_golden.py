"""The same scenario gives the same bytes: again, under another hash seed, and as it was written down."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import pytest

from podqos.agent.journal import encode
from podqos.reading.scenario_files import load_scenario
from podqos.sim.run import simulate
from scenarios.pages import timeline, with_timeline
from scenarios.record import draw
from scenarios.runs import GOLDEN, NAMES, PAGES, run_of

_DIGESTS = """
import sys, hashlib
from podqos.agent.journal import encode
from podqos.reading.scenario_files import load_scenario
from podqos.sim.run import simulate
for name in sys.argv[1:]:
    print(name, hashlib.sha256(encode(simulate(load_scenario(name)).entries)).hexdigest())
"""


def golden(name: str) -> bytes:
    return gzip.decompress((GOLDEN / f"{name}.jsonl.gz").read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_what_was_written_down(name):
    assert encode(run_of(name).entries).decode().splitlines() == golden(name).decode().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_a_second_run_without_checkers_gives_the_same_bytes(name):
    assert encode(simulate(load_scenario(name)).entries) == encode(run_of(name).entries)


def test_every_journal_belongs_to_a_scenario():
    assert sorted(path.name.removesuffix(".jsonl.gz") for path in GOLDEN.glob("*.gz")) == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "4242"])
def test_another_hash_seed_gives_the_same_bytes(seed):
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", _DIGESTS, *NAMES], env=environment, capture_output=True, text=True, check=True
    )
    from hashlib import sha256

    expected = [f"{name} {sha256(encode(run_of(name).entries)).hexdigest()}" for name in NAMES]
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("name", NAMES)
def test_the_page_tells_what_the_run_does(name):
    page = (PAGES / f"{name}.md").read_text()
    assert with_timeline(page, timeline(run_of(name).entries)) == page, "`make golden` writes it anew"
    assert f"(pictures/{name}.svg)" in page
    assert f"podqos simulate {name}" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_that_of_the_run_and_small(name, tmp_path, capsys):
    assert draw(name, tmp_path / "picture.svg") == 0
    picture = PAGES / "pictures" / f"{name}.svg"
    assert picture.read_text() == (tmp_path / "picture.svg").read_text(), "`make golden` draws it anew"
    assert picture.stat().st_size < 60_000


def test_every_page_is_listed():
    listing = (PAGES / "README.md").read_text()
    assert [name for name in NAMES if f"({name}.md)" not in listing] == []
