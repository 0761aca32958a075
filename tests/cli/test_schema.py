"""``podqos schema``: the published schemas are those of what is printed and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.cli.main import main

SCHEMAS = sorted((Path(__file__).parents[2] / "docs/schema").glob("*.json"), key=lambda path: path.stem)


@pytest.mark.parametrize("published", SCHEMAS, ids=lambda path: path.stem)
def test_the_published_schema_is_the_one_that_is_printed(capsys, published):
    assert main(["schema", published.stem]) == 0
    assert capsys.readouterr().out == published.read_text()


def test_every_schema_is_published(capsys):
    assert main(["schema"]) == 0
    assert capsys.readouterr().out.split() == [path.stem for path in SCHEMAS]


def test_a_schema_that_there_is_not_is_one_clear_message(capsys):
    assert main(["schema", "explian"]) == 2
    assert capsys.readouterr().err == "podqos: error: explian: there is no such schema (did you mean explain?)\n"
