"""Fields become options of the command that runs, in ``cli`` alone."""

from __future__ import annotations

import ast
from argparse import Action
from collections.abc import Iterator

import pytest

import podqos
from podqos.cli import spelling
from podqos.cli.command_list import COMMANDS, parser_of
from podqos.cli.main import main
from podqos.cli.parser import CommandParser, subcommands
from podqos.errors import InvalidArgument
from podqos.model.profile import parse_version
from podqos.naming import hint, naming
from ratchets import SOURCE

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: app, image: web}]}
"""


def _said(command: str, text: str) -> str:
    name, *words = command.split()
    spelling.runs(parser_of(name)[0], words)
    return spelling.spelled(text)


@pytest.mark.parametrize(
    ("command", "field", "option"),
    [
        pytest.param("rank", "node_memory", "--node-memory", id="as-it-is-called"),
        pytest.param("guard run", "run_dir", "--run", id="where-the-option-is-called-otherwise"),
        pytest.param("forecast", "kubelet_config", "--kubelet-config", id="one-of-two-names-of-an-option"),
        pytest.param("explain", "files", "-f", id="short-where-that-comes-first"),
        pytest.param("policy test", "kubernetes_version", "--kubernetes-version", id="of-a-subcommand"),
    ],
)
def test_a_field_is_the_option_of_the_command_that_runs(command: str, field: str, option: str):
    assert _said(command, "see " + naming(field)) == f"see {option}"
    assert _said(command, naming(field, "X")) == f"{option} X"


def test_a_hint_to_an_option_of_another_command_is_not_printed():
    text = "set KUBECONFIG" + hint(", or give files with " + naming("files"))
    assert _said("explain", text) == "set KUBECONFIG, or give files with -f"
    assert _said("exporter", text) == "set KUBECONFIG"


def test_without_a_kubeconfig_a_server_is_not_told_of_files(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["overview"]) == 2
    assert capsys.readouterr().err.endswith("no kubeconfig found (set KUBECONFIG)\n")


def test_a_program_reads_the_parameter_and_the_terminal_shows_the_option(tmp_path, capsys):
    with pytest.raises(InvalidArgument, match=r"^kubernetes_version: unknown Kubernetes version '9'"):
        parse_version("9")
    pod = tmp_path / "pod.yaml"
    pod.write_text(POD)
    assert main(["explain", "-f", str(pod), "--kubernetes-version", "9"]) == 2
    assert "error: --kubernetes-version: unknown Kubernetes version '9'" in capsys.readouterr().err

    with pytest.raises(InvalidArgument, match=r"^growing: no such pod: nobody"):
        podqos.forecast(podqos.load(str(pod)), growing="nobody")
    assert main(["forecast", "-f", str(pod), "--node-memory", "8Gi", "--growing", "nobody"]) == 2
    assert "error: --growing: no such pod: nobody" in capsys.readouterr().err


def _options_of(parser: CommandParser) -> Iterator[Action]:
    """Yield the options of a command and of what is below it."""
    for action in parser._actions:
        if action.option_strings:
            yield action
        for below in subcommands(action).values():
            yield from _options_of(below)


def _fields() -> Iterator[tuple[str, str]]:
    """Yield the fields that the source names, with the file."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "podqos.naming" in text else ():
            match node:
                case ast.Call(func=ast.Name(id="naming" | "stated_with"), args=[ast.Constant(value=str(name)), *_]):
                    yield path.relative_to(SOURCE).as_posix(), name


def test_every_field_that_a_text_names_is_an_option_of_some_command():
    names = {
        name
        for command in COMMANDS
        for action in _options_of(parser_of(command)[0])
        for name in (action.dest, *(each.lstrip("-").replace("-", "_") for each in action.option_strings))
    }
    fields = sorted(set(_fields()))
    assert len(fields) > 50
    assert [field for field in fields if field[1] not in names] == []


@pytest.mark.parametrize("command", ["scenario validate", "simulate"])
def test_a_scenario_is_not_told_to_state_a_node_by_an_option(command: str, tmp_path, capsys):
    (tmp_path / "scenario.yaml").write_text(
        "apiVersion: podqos.dev/v1alpha1\nkind: Scenario\nmetadata: {name: small}\nspec:\n  duration: 10s\n  nodes:\n"
        "  - {name: a, capacity: {cpu: 2, memory: 4Gi}, kubelet: {kubeReserved: {memory: 9Gi}}}\n  workloads: []\n"
    )
    assert main([*command.split(), str(tmp_path / "scenario.yaml")]) == 2
    assert "the kubelet does not start (reserve less)\n" in capsys.readouterr().err


def test_a_rendering_is_advised_to_commands_that_can_do_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()
    (tmp_path / "base/kustomization.yaml").write_text("resources: [pod.yaml]\n")
    (tmp_path / "base/pod.yaml").write_text(POD)
    command = "kubectl kustomize base"
    assert main(["check", "-f", "base", "-o", "json"]) == 2
    said = capsys.readouterr()
    assert f"skipped: a kustomization ({command} | podqos … -f -, or add --render)\n" in said.err
    assert f"({command} | podqos … -f -, or add --render)" in said.out
