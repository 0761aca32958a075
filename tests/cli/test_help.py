"""Finding one's way: commands by task, help, one line for a mistake, completion."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from documents.grammar import grammars
from podqos.cli.command_list import COMMANDS, GROUPS, parser_of
from podqos.cli.main import main
from podqos.cli.overview import STARTS

ROOT = Path(__file__).resolve().parents[2]


def podqos(capsys, *words: str) -> tuple[int, str, str]:
    code = main([*words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# ---- help --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)], ids=" ".join)
def test_all_commands_are_listed_by_task_a_line_each_in_80_columns(capsys, words):
    code, out, _ = podqos(capsys, *words)
    assert code == 0
    blocks = dict(re.findall(r"^(\w[\w ]*):\n((?:  .+\n?)+)", out, re.MULTILINE))
    listed = {title: [line.split()[0] for line in lines.splitlines()] for title, lines in blocks.items()}
    assert listed.pop("Where to start")
    assert listed == {title: [*commands] for title, commands in GROUPS.items()}
    assert max(map(len, out.splitlines())) <= 80


def test_the_tasks_hold_what_people_look_for_there():
    assert {title: [*commands] for title, commands in GROUPS.items()} == {
        "Manifests": ["explain", "check", "drift", "advise", "admit", "policy"],
        "Nodes": ["rank", "autopsy", "place", "cpu", "thresholds"],
        "Clusters": ["snapshot", "ui", "overview", "exporter", "webhook"],
        "What if": ["simulate", "forecast", "blast", "scenario"],
        "Real machine": ["node", "rehearse", "guard"],
        "Other": ["demo", "eval", "schema", "completion", "help"],
    }


@pytest.mark.parametrize("line", STARTS.values())
def test_every_command_to_start_with_can_be_typed_as_shown(line):
    name, *words = line.split()
    parser_of(name)[0].parse_args(words)


@pytest.mark.parametrize("words", [("check",), ("node",), ("node", "run"), ("scenario", "new")], ids=" ".join)
def test_help_on_a_command_is_what_its_own_option_prints(capsys, words):
    _, out, _ = podqos(capsys, "help", *words)
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert stopped.value.code == 0
    assert out == capsys.readouterr().out
    assert out.startswith(f"usage: podqos {' '.join(words)} ")


@pytest.mark.parametrize("command", ["scenario", "guard", "policy"])
def test_what_a_subcommand_does_stands_on_the_line_of_its_name_in_every_python(capsys, command):
    _, out, _ = podqos(capsys, "help", command)
    listed = re.findall(r"^    ([a-z-]+)( +\S.*)?$", re.split(r"\n  (?:COMMAND|ACTION)\n", out)[1], re.MULTILINE)
    assert listed
    assert [name for name, about in listed if not about] == []


@pytest.mark.parametrize("word", ["--version", "-V", "version"])
def test_the_version_is_printed(capsys, word):
    from podqos import __version__

    code, out, err = podqos(capsys, word)
    first, *others = out.splitlines()
    assert (code, first, err) == (0, f"podqos {__version__}", "")
    assert [line.partition(":")[0] for line in others if "release" not in line] == ["Kubernetes", "Python", "page"]


@pytest.mark.parametrize(("version", "is_said"), [("0.1.0.dev0", True), ("0.1.0", False)])
def test_a_development_version_says_that_it_is_no_release(capsys, monkeypatch, version, is_said):
    monkeypatch.setattr("podqos.cli.about.__version__", version)
    assert ("development version" in podqos(capsys, "--version")[1]) is is_said


# ---- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("chek", "unknown command 'chek' (did you mean check?)", id="command"),
        pytest.param("CHECK", "unknown command 'CHECK' (did you mean check?)", id="command-in-capitals"),
        pytest.param("rnak", "unknown command 'rnak' (did you mean rank?)", id="letters-swapped"),
        pytest.param("xyzzy", "unknown command 'xyzzy' (`podqos help` lists the commands)", id="like-none"),
        pytest.param("deploy/", "unknown command 'deploy/' (`podqos help` lists the commands)", id="a-file"),
        pytest.param("--verson", "unknown option --verson (did you mean --version?)", id="before"),
        pytest.param("check . --polices x", "unknown option --polices (did you mean --policies?)", id="option"),
        pytest.param("check . --polices=x", "unknown option --polices (did you mean --policies?)", id="option=value"),
        pytest.param("check . --zzz", "unknown option --zzz (see `podqos check --help`)", id="no-such-option"),
        pytest.param("check . -o jsno", "-o/--output: invalid value 'jsno' (did you mean json?)", id="choice"),
        pytest.param(
            "check . --fail-on x",
            "--fail-on: invalid value 'x' (one of error, warning, info, never)",
            id="choice-like-none",
        ),
        pytest.param("rank --usage", "--usage: expected one argument (see `podqos rank --help`)", id="no-value"),
        pytest.param("node jornal", "COMMAND: invalid value 'jornal' (did you mean journal?)", id="subcommand"),
        pytest.param("node status --state-dri x", "unknown option --state-dri (did you mean --state-dir?)", id="below"),
        pytest.param(
            "scenario from-cluster x",
            "ACTION: invalid value 'from-cluster' (`podqos scenario new NAME --from-cluster` writes it)",
            id="gone-subcommand",
        ),
        pytest.param(
            "place . --order arrival", "unknown option --order (pods queue by priority, as in the scheduler)", id="gone"
        ),
        pytest.param("help nod", "help: unknown command 'nod' (did you mean node?)", id="help"),
        pytest.param("help node rnu", "help: unknown command 'podqos node rnu' (did you mean run?)", id="help-below"),
        pytest.param("help check x", "help: unknown command 'podqos check x' (see `podqos check --help`)", id="no-sub"),
        pytest.param("scenario list x", "unexpected argument 'x' (see `podqos scenario list --help`)", id="one-more"),
        pytest.param("place --nodes x", "--nodes: 'x' is not a whole number (see `podqos place --help`)", id="type"),
    ],
)  # fmt: skip
def test_a_mistake_on_the_command_line_is_one_line_with_what_was_meant(capsys, line, said):
    assert podqos(capsys, *line.split()) == (2, "", f"podqos: error: {said}\n")


def test_a_command_that_needs_another_word_lists_the_words(capsys):
    code, out, err = podqos(capsys, "node")
    assert (code, out) == (2, "")
    assert err == "podqos: error: the following arguments are required: COMMAND (one of run, status, journal)\n"


# ---- start-up ----------------------------------------------------------------------------------------------------


def test_only_the_module_of_the_command_is_loaded():
    script = "import sys; from podqos.cli.main import main; main(['explain', '-f', '-']); print(*sys.modules)"
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: app}]}}"
    done = subprocess.run([sys.executable, "-c", script], input=pod, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert [each for each in loaded if each.startswith("podqos.cli.commands.")] == ["podqos.cli.commands.explain"]
    assert {"shtab", "podqos.cli.overview", "difflib"} & {*loaded} == set()


def test_the_command_does_not_load_typing_extensions_and_it_can_still_be_imported():
    script = "import sys, podqos.cli.main; print('typing_extensions' in sys.modules); import typing_extensions"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# ---- completion --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scripts(tmp_path_factory) -> dict[str, Path]:
    """Return the script of each shell, as a file."""
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert main(["completion", shell]) == 0
        (folder / shell).write_text(printed.getvalue())
    return {shell: folder / shell for shell in ("bash", "zsh", "fish")}


def completed(script: Path, *words: str) -> list[str]:
    """Return what a real bash offers for the last of the words."""
    assignments = " ".join(f"'{word}'" for word in words)
    run = (
        f"source {script}; COMP_WORDS=({assignments}); COMP_CWORD={len(words) - 1}; _shtab_podqos; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", run], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param(("ch",), ["check"], id="command"),
        pytest.param(("",), [*COMMANDS], id="all-commands"),
        pytest.param(("--v",), ["--version"], id="own-option"),
        pytest.param(("explain", "--kubel"), ["--kubelet-config"], id="option"),
        pytest.param(("explain", "-o", "js"), ["json"], id="choice"),
        pytest.param(("check", "-o", "json", "--fail-on", "w"), ["warning"], id="later-option"),
        pytest.param(("node", "jo"), ["journal"], id="subcommand"),
        pytest.param(("node", "journal", "--output", "t"), ["text"], id="choice-of-a-subcommand"),
        pytest.param(("simulate", "rac"), ["race"], id="shipped-scenario"),
        pytest.param(("completion", ""), ["bash", "zsh", "fish"], id="shell"),
        pytest.param(("help", "sn"), ["snapshot"], id="help"),
        pytest.param(("eval", "eviction_m"), ["eviction_manager"], id="family"),
    ],
)
def test_bash_completes(scripts, words, offered):
    assert completed(scripts["bash"], "podqos", *words) == offered


def test_bash_knows_every_option_of_every_command(scripts):
    script = scripts["bash"].read_text()
    for name, command in grammars().items():
        for path, each in [(name, command), *((f"{name}_{below.name}", below) for below in command.below)]:
            options = re.search(
                rf"^_shtab_podqos_{path.replace('-', '_')}_option_strings=\((.*)\)$", script, re.MULTILINE
            )
            shown = [argument for argument in each.options if argument.about != argparse.SUPPRESS]
            assert {*options[1].split()} == {name for argument in shown for name in argument.names}, path


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_read_its_script(scripts, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run([shell, "-n", scripts[shell]], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_help_of_completion_has_a_line_per_shell(capsys):
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ") and "podqos completion" in line] == [
        "bash", "zsh", "fish",
    ]  # fmt: skip


def test_a_scenario_that_does_not_exist_is_one_error(capsys):
    assert main(["simulate", "rase"]) == 2
    assert capsys.readouterr().err == "podqos: error: rase: No such file or directory (did you mean race?)\n"


def test_a_json_object_that_is_no_snapshot_is_not_called_truncated(capsys, tmp_path):
    path = tmp_path / "object.json"
    path.write_text("{}\n")
    assert main(["overview", "--snapshot", str(path)]) == 2
    assert "not a snapshot of a cluster" in capsys.readouterr().err


def test_the_reasons_of_kubelet_settings_have_a_space_between_their_words(capsys):
    assert main(["thresholds", "--advise", "--node-memory", "64Gi", "--node-cpu", "16"]) == 0
    assert "# systemReserved: a typical amount plus the soft threshold" in capsys.readouterr().out


def test_a_leak_that_takes_years_is_given_in_days(capsys, tmp_path):
    pod = tmp_path / "pod.yaml"
    pod.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n")
    assert main(["forecast", str(pod), "--growing", "a", "--rate", "1Ki/s", "--node-memory", "64Gi"]) == 0
    out = capsys.readouterr().out
    assert "default/a (c) grows by 1Ki/s\n  The machine runs out of memory after 772 days" in out
