"""What the tests of ``podqos autopsy`` share."""

from __future__ import annotations

import json

import pytest

from podqos.cli.main import main


@pytest.fixture
def told(tmp_path, capsys):
    """Return what autopsy answers to a log, as JSON or in another form."""

    def run(*lines, output="json"):
        log = tmp_path / "log"
        log.write_text("\n".join(lines).removesuffix("\n") + "\n")
        assert main(["autopsy", str(log), "-o", output]) == 0
        said = capsys.readouterr().out
        return json.loads(said) if output == "json" else said

    return run
