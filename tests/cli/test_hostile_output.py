"""What the input holds never steers a terminal, a log, a spreadsheet or the program itself."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from podqos.cli.main import main
from podqos.cli.output import print_csv
from podqos.model.quantity import Quantity

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: "a\\e[31mred\\n::error::forged\\u009bx\\r", namespace: "=cmd|calc", labels: {"\\e]0;t\\a": "-1"}}
spec:
  containers:
    - {name: "::warning::c\\e]0;title\\a", image: "x\\u202e", resources: {requests: {memory: 1Gi}}}
    - {name: "@sum", image: "…é日"}
"""
PLAIN = """\
apiVersion: v1
kind: Pod
metadata: {name: café-日本, namespace: shop}
spec: {containers: [{name: c, image: x, resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}}]}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: 100000000
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: x, resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}}]}
"""
SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  duration: 10s
  manifests: [many.yaml]
  nodes: [{name: worker, count: 1, capacity: {cpu: 4, memory: 8Gi}}]
"""
OUTPUTS = [
    *(f"explain -o {output}" for output in ("text", "table", "wide", "csv", "json", "yaml")),
    *(f"check -v -o {output}" for output in ("table", "json", "yaml", "sarif", "github", "junit")),
    *(f"admit -o {output}" for output in ("text", "table", "json", "yaml")),
]
NODES = "--nodes 2 --node-capacity cpu=16,memory=64Gi"


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def podqos(*arguments: str | bytes, **options: object) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **options.pop("env", {})}
    command = [sys.executable, "-m", "podqos", *arguments]
    return subprocess.run(command, check=False, stderr=subprocess.PIPE, env=environment, timeout=300, **options)


@pytest.mark.parametrize("command", OUTPUTS)
def test_controls_of_the_input_reach_no_output(here, capsys, command):
    (here / "pod.yaml").write_text(POD)
    main([*command.split(), "-f", "pod.yaml"])
    out, err = capsys.readouterr()
    assert out + err
    for line in (out + err).split("\n"):
        assert line.replace("\t", "").isprintable(), line


@pytest.mark.parametrize("command", OUTPUTS)
def test_no_line_is_a_workflow_command_but_those_of_the_github_output(here, capsys, command):
    (here / "pod.yaml").write_text(POD)
    main([*command.split(), "-f", "pod.yaml"])
    out, err = capsys.readouterr()
    commands = [line for line in (out + err).split("\n") if line.lstrip().startswith("::")]
    if "github" in command:
        assert commands
        assert all(line.startswith(("::error file=", "::warning file=", "::notice file=")) for line in commands)
    else:
        assert not commands


def test_colours_are_those_of_podqos_alone(here, capsys):
    (here / "pod.yaml").write_text(POD)
    main(["explain", "-f", "pod.yaml", "--color", "always"])
    out = capsys.readouterr().out
    assert "\x1b[1mPod" in out
    assert "\x1b[31mred" not in out
    assert "\\x1b[31mred" in out


def test_cells_of_a_csv_that_begin_like_formulas_are_text_and_numbers_stay(here, capsys):
    (here / "pod.yaml").write_text(POD)
    (here / "critical.yaml").write_text(PLAIN.replace("spec: {", "spec: {priorityClassName: system-node-critical, "))
    main(["explain", "-o", "csv", "-f", "pod.yaml", "-f", "critical.yaml"])
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    cells = [cell for row in rows for cell in row]
    assert any("=cmd|calc" in cell for cell in cells)
    assert not [cell for cell in cells if cell[:1] in set("=+@\t\r")]
    assert "-997" in cells


def test_every_csv_goes_through_the_same_rule(capsys):
    print_csv(("=a", "b", "c", "d", "e"), [("+1+cmd|x", "-5.5", -5, Quantity.parse("-1Gi"), "\t=1")])
    assert list(csv.reader(io.StringIO(capsys.readouterr().out)))[1] == ["'+1+cmd|x", "-5.5", "-5", "-1Gi", "'\t=1"]


@pytest.mark.parametrize("command", OUTPUTS)
def test_a_file_name_that_is_not_utf_8_can_be_printed(here, capsys, command):
    name = os.fsdecode(b"n\xff\xe9.yaml")
    (here / name).write_text(PLAIN)
    assert main([*command.split(), "-f", name]) in {0, 1}
    text = capsys.readouterr().out
    assert text.encode()
    match command.split()[-1]:
        case "json" | "sarif":
            json.loads(text)
        case "yaml":
            yaml.safe_load(text)
        case "junit":
            ET.fromstring(text)  # noqa: S314 - our own
    if command == "check -v -o sarif":
        assert "n%FF%E9.yaml" in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("command", OUTPUTS)
def test_output_in_another_encoding_is_written_and_formats_for_programs_are_utf_8(here, monkeypatch, encoding, command):
    (here / "pod.yaml").write_text(PLAIN)
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    assert main([*command.split(), "-f", "pod.yaml"]) in {0, 1}
    written = stream.buffer.getvalue()
    if command.split()[-1] in {"text", "table", "wide"}:
        assert "\\u65e5\\u672c" in written.decode(encoding)
    else:
        assert "café-日本" in written.decode()


def test_the_command_writes_to_a_terminal_that_knows_ascii_only(here):
    (here / "pod.yaml").write_text(PLAIN)
    done = podqos("explain", "-f", "pod.yaml", stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"caf\\xe9-\\u65e5\\u672c" in done.stdout
    assert done.stdout.isascii()


@pytest.mark.parametrize("arguments", ["explain -f pod.yaml", "explain -f pod.yaml -o json", "--help", "scenario list"])
def test_a_full_disk_is_one_line(here, arguments):
    (here / "pod.yaml").write_text(PLAIN)
    with Path("/dev/full").open("wb") as full:
        done = podqos(*arguments.split(), stdout=full)
    assert done.stderr.decode().splitlines()[-1] == "podqos: error: standard output: No space left on device"
    assert b"Traceback" not in done.stderr
    assert done.returncode == 3


@pytest.mark.parametrize("closed", [">&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("command", ["explain -f pod.yaml", "explain -f -", "--help"])
def test_a_closed_stream_is_no_traceback(here, closed, command):
    (here / "pod.yaml").write_text(PLAIN)
    line = f"{sys.executable} -m podqos {command} {closed}"
    done = subprocess.run(["sh", "-c", line], check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr
    assert done.returncode in {0, 1, 2}


def test_a_reader_that_has_gone_is_no_error(here):
    (here / "pod.yaml").write_text("---\n".join([PLAIN] * 1000))
    line = f"{sys.executable} -m podqos explain -f pod.yaml | head -n 1"
    done = subprocess.run(["sh", "-c", line], check=False, capture_output=True, timeout=300)
    assert done.stdout.count(b"\n") == 1
    assert b"Broken pipe" not in done.stderr
    assert b"error" not in done.stderr


@pytest.mark.parametrize("digits", [4000, 5000])
@pytest.mark.parametrize("amount", ["{}", "0.{}", "1e{}", "1e-{}", "{}Ki", "-{}", '"{}"'])
def test_an_amount_of_thousands_of_digits_is_answered_or_refused(here, capsys, digits, amount):
    (here / "pod.yaml").write_text(PLAIN.replace("memory: 1Gi", f"memory: {amount.format('9' * digits)}"))
    for command in ("explain", "explain -o json", "check", "admit", "rank --node-memory 8Gi", "cpu --cores 4"):
        assert main([*command.split(), "-f", "pod.yaml"]) in {0, 1, 2}
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        *("explain", "check", "admit", "cpu --cores 4", "rank --node-memory 8Gi", "advise", f"place {NODES}"),
        *("forecast --node-memory 8Gi", "blast --node-memory 8Gi"),
    ],
)
def test_a_hundred_million_replicas_are_counted_or_refused(here, capsys, command):
    (here / "many.yaml").write_text(DEPLOYMENT)
    code = main([*command.split(), "-f", "many.yaml"])
    assert code in {0, 1, 2}
    assert code != 2 or capsys.readouterr().err.count("\n") <= 2


@pytest.mark.parametrize("command", ["simulate", "blast", "simulate --seeds 2", "scenario validate", "rehearse"])
def test_a_scenario_of_a_hundred_million_replicas_is_refused(here, capsys, command):
    (here / "many.yaml").write_text(DEPLOYMENT)
    (here / "small.yaml").write_text(SCENARIO)
    assert main([*command.split(), "small.yaml"]) == 2
    assert "default/many has 100,000,000 replicas" in capsys.readouterr().err


def test_a_version_with_a_hundred_million_replicas_is_refused(here, capsys):
    (here / "many.yaml").write_text(DEPLOYMENT)
    assert main(["drift", "many.yaml", "many.yaml"]) == 2
    assert "100,000,000 replicas" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pipe.yaml", "kustomization.yaml", "Chart.yaml", ".podqos.yaml"])
@pytest.mark.parametrize("command", ["explain", "check -v --render"])
def test_pipes_and_devices_in_a_directory_are_skipped(here, name, command):
    (here / "d").mkdir()
    (here / "d" / "pod.yaml").write_text(PLAIN)
    (here / "d" / "zero.yaml").symlink_to("/dev/zero")
    os.mkfifo(here / "d" / name)
    done = podqos(*command.split(), "-f", "d", stdout=subprocess.PIPE)
    assert b"Traceback" not in done.stderr
    assert b"zero.yaml" not in done.stderr
    assert "café-日本" in done.stdout.decode()
