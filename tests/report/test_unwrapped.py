"""Commands are copied from a terminal: a line break would cut them in two."""

from __future__ import annotations

from podqos.cli import terminal
from podqos.cli.main import main
from podqos.text.style import Unwrapped, fitted

COMMAND = "  kubectl get pods,nodes -A -o json | podqos autopsy - kern.log"


def test_a_command_stays_on_one_line_on_a_narrow_terminal():
    assert list(fitted([Unwrapped(COMMAND)], 40)) == [COMMAND]
    assert len(list(fitted([COMMAND], 40))) == 2


def test_a_next_command_is_printed_on_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(terminal, "output_columns", lambda _: 40)
    (tmp_path / "log").write_text("[    1.000000] all is well\n")
    assert main(["autopsy", str(tmp_path / "log")]) == 0
    assert "\n  kubectl get pods,nodes,events -A -o json | podqos autopsy -\n" in capsys.readouterr()[0]
