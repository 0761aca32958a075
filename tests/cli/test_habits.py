"""What people type by habit, from kubectl, ruff and the like, is understood."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from argparse import Namespace
from functools import cache
from pathlib import Path

import pytest

from documents.grammar import Grammar, grammars
from outputs.recording import messages
from podqos.cli.cluster import object_arguments
from podqos.cli.command_list import COMMANDS, parser_of
from podqos.cli.main import main
from podqos.cli.options import duration_option, rate_option
from podqos.cli.spelling import offered, runs
from terminal import session

ROOT = Path(__file__).parents[2]
SCENARIOS = Path(__file__).parents[2] / "scenarios"
PLATFORM = SCENARIOS / "content-platform" / "platform"


def podqos(capsys, *words: object) -> tuple[int, str, str]:
    code = main([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@cache
def all_commands() -> dict[str, Grammar]:
    return grammars()


def commands() -> dict[str, Grammar]:
    """All commands and subcommands by name."""
    known = {}
    for name, grammar in all_commands().items():
        known[name] = grammar
        known |= {f"{name} {below.name}": below for below in grammar.below}
    assert len(known) > len(COMMANDS)
    return known


# ---- headers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("rank", "-f", PLATFORM, "-o", "wide"),
        ("rank", "-f", PLATFORM),
        ("explain", "-f", PLATFORM, "-o", "table"),
        ("explain", "-f", PLATFORM, "-o", "csv"),
        ("admit", "-f", PLATFORM, "-o", "table"),
        ("admit", "-f", PLATFORM, "-o", "csv"),
        ("place", "-f", PLATFORM, "--nodes", "2", "--node-capacity", "cpu=16,memory=64Gi"),
        ("cpu", "-f", PLATFORM),
        ("thresholds", "--eviction-hard", "memory.available<1Gi"),
        ("simulate", "race", "-o", "csv"),
        ("check", "--list"),
    ],
    ids=lambda words: " ".join(str(word) for word in words if word != PLATFORM),
)
def test_no_headers_leaves_out_the_header_rows_and_nothing_else(capsys, words):
    _, whole, said = podqos(capsys, *words)
    _, bare, also_said = podqos(capsys, *words, "--no-headers")
    kept = iter(bare.splitlines())
    left_out = []
    following = next(kept, None)
    for line in whole.splitlines():
        if line == following:
            following = next(kept, None)
        else:
            left_out.append(line)
    assert following is None
    assert left_out
    assert all(
        line.partition("  ")[0].isupper() or line.startswith(("#", "namespace,", "pod,", "workload"))
        for line in left_out
    )
    assert said == also_said


def test_no_headers_changes_nothing_for_programs(capsys):
    words = ("rank", "-f", PLATFORM, "-o", "json")
    assert podqos(capsys, *words, "--no-headers") == podqos(capsys, *words)


def test_every_command_that_prints_in_several_formats_takes_no_headers_and_wide():
    for name, command in commands().items():
        options = {spelling: option for option in command.options for spelling in option.names}
        output = options.get("-o")
        if output is not None and {"table", "text"} & set(output.words) and "--color" in options:
            assert "--no-headers" in options, name
            assert "wide" in output.words, name


# ---- width -------------------------------------------------------------------------------------------------------


NARROW = 60


@pytest.fixture
def narrow(monkeypatch):
    """Make standard output a narrow terminal."""
    monkeypatch.setenv("COLUMNS", str(NARROW))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("podqos.cli.streams.GuardedStream.isatty", lambda _: True)


@pytest.mark.parametrize(
    "words",
    [("rank",), ("explain",), ("admit",), ("place", "--nodes", "3", "--node-capacity", "cpu=16,memory=64Gi"), ("cpu",)],
    ids=" ".join,
)
def test_wide_is_the_same_on_a_narrow_terminal_as_in_a_file(capsys, narrow, monkeypatch, words):
    code, shown, _ = podqos(capsys, *words, "-f", PLATFORM, "-o", "wide")
    monkeypatch.undo()
    assert podqos(capsys, *words, "-f", PLATFORM, "-o", "wide")[:2] == (code, shown)
    assert max(map(len, shown.splitlines())) > NARROW


def test_wide_leaves_out_no_node(capsys):
    words = ("place", "-f", PLATFORM, "--nodes", "50", "--node-capacity", "cpu=16,memory=64Gi")
    _, table, _ = podqos(capsys, *words)
    assert "… and 10 nodes; -o wide has them all" in table
    _, wide, _ = podqos(capsys, *words, "-o", "wide")
    assert "… and" not in wide
    assert len(set(re.findall(r"^node-\d+", wide, re.MULTILINE))) == 50


@pytest.mark.parametrize(("variable", "columns"), [("0", 0), ("", 0), ("x", 0), ("²", 0), ("100", 100)])
def test_a_terminal_of_no_width_has_80_columns(monkeypatch, variable, columns):
    from podqos.cli.terminal import output_columns

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            return 1

    monkeypatch.setenv("COLUMNS", variable)
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((0, 0)))
    assert output_columns(Terminal()) == (columns or 80)


@pytest.mark.slow
def test_a_real_terminal_of_no_width_gets_whole_words():
    words = [sys.executable, "-m", "podqos", "rank", "--color=never", "-f", str(PLATFORM)]
    _, output, _ = session(words, b"", rows=0, columns=0)
    assert max(len(line) for line in output.decode().splitlines()) <= 80


# ---- directories ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [("-R", "-f"), ("-f",), ("-Rf",), ("--recursive", "-f")])
def test_recursive_changes_nothing(capsys, given):
    assert podqos(capsys, "explain", *given, PLATFORM) == podqos(capsys, "explain", PLATFORM)


def test_a_command_without_files_knows_no_recursive(capsys):
    assert "unknown option -R" in podqos(capsys, "demo", "-R")[2]


# ---- the page's port ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", ["http", "70000", "-1", "80 80", "127.0.0.1:80"])
def test_what_is_not_a_port_is_said(capsys, port):
    code, _, said = podqos(capsys, "ui", f"--port={port}")
    assert code == 2
    assert said == f"podqos: error: --port: {port!r} is not a port (a number up to 65535, for example 8080)\n"


def test_listen_has_the_port_already(capsys):
    code, _, said = podqos(capsys, "ui", "--port", "8080", "--listen", "0.0.0.0:80")
    assert (code, said) == (
        2,
        "podqos: error: --listen and --port cannot be combined (--listen has the port: ADDRESS:PORT)\n",
    )


# ---- standard input ------------------------------------------------------------------------------------------------

BARE_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: web
    image: web
    resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: 100m}}
"""


@pytest.fixture
def piped(monkeypatch):
    def give(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


@pytest.mark.parametrize(
    ("output", "place"),
    [
        ("table", "deploy/web.yaml:"),
        ("json", '"source": "deploy/web.yaml"'),
        ("github", "file=deploy/web.yaml,"),
        ("sarif", '"uri": "deploy/web.yaml"'),
        ("junit", "deploy/web.yaml"),
    ],
)
def test_stdin_filename_is_where_findings_are(capsys, piped, output, place):
    piped(BARE_POD)
    code, out, _ = podqos(capsys, "check", "-", "--stdin-filename", "deploy/web.yaml", "-o", output)
    assert code == 1
    assert place in out
    assert '"-"' not in out


def test_stdin_filename_finds_the_configuration_of_that_file(capsys, piped, tmp_path):
    (tmp_path / ".podqos.yaml").write_text("failOn: never\n")
    piped(BARE_POD)
    assert podqos(capsys, "check", "--stdin-filename", tmp_path / "app" / "web.yaml")[0] == 0
    piped(BARE_POD)
    assert podqos(capsys, "check", "-")[0] == 1


def test_stdin_filename_takes_the_place_of_what_is_saved_there_and_is_never_written(capsysbinary, piped, tmp_path):
    saved = tmp_path / "web.yaml"
    saved.write_text(BARE_POD.replace("name: web}", "name: saved}"))
    piped(BARE_POD.replace("cpu: 100m, memory: 1Gi", "cpu: 100m, memory: 1G"))
    main(["check", "-f", "-", "-f", str(tmp_path), "--stdin-filename", str(saved), "-o", "name"])
    assert capsysbinary.readouterr().out == b"pod/web\n"
    piped(BARE_POD)
    main(["check", "-", "--stdin-filename", str(saved), "--fix", "--only", "PQ105"])
    written = capsysbinary.readouterr().out.decode()
    assert written.startswith("apiVersion: v1")
    assert "name: web}" in written
    assert "name: saved}" in saved.read_text()


def test_stdin_filename_needs_standard_input(capsys, tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text(BARE_POD)
    code, _, said = podqos(capsys, "check", "-f", file, "--stdin-filename", "b.yaml")
    assert (code, said) == (2, "podqos: error: --stdin-filename: standard input is not read (add -f -)\n")


# ---- fixes ---------------------------------------------------------------------------------------------------------

SIDECAR = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: web, image: web, resources: {limits: {cpu: 100m, memory: 1Gi}}}
  - {name: proxy, image: proxy, resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: 100m}}}
"""


@pytest.mark.parametrize("options", [("--diff",), ("--fix", "--diff"), ("--diff", "--fix")], ids=" ".join)
def test_diff_only_shows_with_fix_or_without(capsys, tmp_path, options):
    file = tmp_path / "web.yaml"
    file.write_text(SIDECAR)
    before = file.stat()
    code, out, said = podqos(capsys, "check", file, *options)
    assert code == 1
    assert f"+++ {file}" in out
    assert "fixed" not in said
    assert file.read_text() == SIDECAR
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [*tmp_path.iterdir()] == [file]


# ---- the first of an order -----------------------------------------------------------------------------------------

WORKLOADS = [
    ("Pod", "monitoring/debug-tools", 1, 1, 1),
    ("DaemonSet", "monitoring/log-collector", 1, 2, 2),
    ("Deployment", "batch/analytics-pipeline", 1, 3, 3),
    ("CronJob", "batch/content-generator", 2, 4, 5),
    ("StatefulSet", "batch/search-indexer", 2, 6, 7),
    ("Deployment", "production/cdn-origin", 1, 8, 8),
    ("Deployment", "production/article-service", 1, 9, 9),
    ("Deployment", "production/search-api", 1, 10, 10),
]


def test_by_workload_has_the_first_and_last_place_of_its_pods(capsys):
    code, out, _ = podqos(capsys, "rank", "-f", PLATFORM, "--by", "workload", "-o", "json")
    assert code == 0
    whole = json.loads(out)
    found = [
        (ranked["kind"], ranked["name"], ranked["pods"], ranked["firstEvicted"], ranked["lastEvicted"])
        for ranked in whole["workloads"]
    ]
    assert found == WORKLOADS
    _, table, _ = podqos(capsys, "rank", "-f", PLATFORM, "--by", "workload")
    assert re.search(r"^4  CronJob batch/content-generator +Burstable +2 +4 … 5 +5 … 6$", table, re.MULTILINE)
    _, names, _ = podqos(capsys, "rank", "-f", PLATFORM, "--by", "workload", "-o", "name")
    assert names.splitlines() == [f"{kind.lower()}/{name.partition('/')[2]}" for kind, name, *_ in WORKLOADS]


def test_pods_of_a_cluster_belong_to_what_made_them(capsys, tmp_path):
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"web-5d4f8c-{number}",
                "namespace": "shop",
                "uid": f"u{number}",
                "labels": {"pod-template-hash": "5d4f8c"},
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": "web-5d4f8c",
                        "uid": "r",
                        "controller": True,
                    }
                ],
            },
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        }
        for number in range(3)
    ]
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    _, out, _ = podqos(capsys, "rank", "-f", file, "--by", "workload", "-o", "csv", "--no-headers")
    assert out == "Deployment,shop/web,3,1,3,1,3,\n"


def test_top_shows_the_first_of_each_order_and_how_many_follow(capsys):
    _, out, _ = podqos(capsys, "rank", "-f", PLATFORM, "--top", "2")
    assert "… and 8 more pods" in out
    assert "… and 8 more containers" in out
    whole = json.loads(podqos(capsys, "rank", "-f", PLATFORM, "-o", "json")[1])
    first = json.loads(podqos(capsys, "rank", "-f", PLATFORM, "-o", "json", "--top", "2")[1])
    for order in ("evictionOrder", "killOrder", "workloads"):
        assert first[order] == whole[order][:2]
    names = podqos(capsys, "rank", "-f", PLATFORM, "-o", "name", "--top", "1")[1]
    assert names == "pod/debug-tools\n"
    rows = podqos(capsys, "rank", "-f", PLATFORM, "-o", "csv")[1].splitlines()
    assert podqos(capsys, "rank", "-f", PLATFORM, "-o", "csv", "--top", "3")[1].splitlines() == rows[:4]
    assert "… and 6 more workloads" in podqos(capsys, "rank", "-f", PLATFORM, "--by", "workload", "--top", "2")[1]


@pytest.mark.parametrize("text", ["0", "-1", "ten", "1.5", ""])
def test_top_is_a_number_above_zero(capsys, text):
    code, _, said = podqos(capsys, "rank", "-f", PLATFORM, f"--top={text}")
    assert (code, said) == (2, f"podqos: error: --top: {text!r} is not a number above zero (for example 10)\n")


# ---- advice --------------------------------------------------------------------------------------------------------


def _options_of(words: list[str]) -> set[str]:
    """Return the options of the command that a command line runs."""
    below, known = all_commands().get(words[0]), set()
    while below is not None:
        known |= {name for option in below.options for name in option.names}
        below = next((sub for sub in below.below if sub.name in words), None)
    return known


def test_no_recorded_message_advises_an_option_that_the_command_lacks():
    advised = []
    for line, text in messages().items():
        words = shlex.split(re.sub(r" \(exit \d+\)$", "", line))
        said = re.sub(r"`[^`]*`|(?:no|unknown) option \S+|(?:podqos|kubectl) [^:;]* -[^;)]*", "", text)
        named = re.findall(r"(?<![\w.-])--?[a-zA-Z][a-z-]*", said)
        advised += [(line, name) for name in named if words and name not in _options_of(words)]
    assert advised == []


@pytest.mark.parametrize(
    ("how", "read"),
    [
        ("--usage", "--usage"),
        ("--prometheus", ""),
        ("--prometheus, or --usage", "--usage"),
        ("--usage or --prometheus", "--usage"),
        ("-f FILE or --policies", "-f FILE"),
        ("--policies, or -f a.yaml, which applies to its directory", "-f a.yaml, which applies to its directory"),
        ("a source; --kubernetes-version 1.3 is exact", "a source; --kubernetes-version 1.3 is exact"),
        ("a log with dates", "a log with dates"),
        ("podqos simulate --what-if nodeLost@NODE=0s", "podqos simulate --what-if nodeLost@NODE=0s"),
        ("read-only access", "read-only access"),
    ],
)  # fmt: skip
def test_what_is_assumed_is_stated_with_options_that_the_command_has(how, read):
    parser, _ = parser_of("rank")
    runs(parser, [])
    assert offered(how) == read


def test_overview_advises_no_option_of_rank(capsys):
    code, _, said = podqos(capsys, "overview", "--snapshot", ROOT / "tests/outputs/inputs/cluster.jsonl")
    assert code == 0
    assert said == "assumed: usage: the pods' requests; kubelet settings: defaults\n"


# ---- names ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def without_cluster(monkeypatch, tmp_path):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("command", ["forecast", "rank", "cpu", "thresholds", "autopsy"])
def test_the_name_of_a_scenario_is_recognised_where_a_node_or_pod_is_expected(capsys, without_cluster, command):
    what = "pod" if command == "autopsy" else "node"
    code, _, said = podqos(capsys, command, "race")
    assert code == 2
    assert said == (
        f"podqos: error: race: this is a scenario, not a file or a {what} (`podqos simulate race` runs it; a {what} of "
        "that name needs --context)\n"
    )


@pytest.mark.parametrize("command", ["explain", "check", "admit", "advise"])
def test_the_name_of_a_scenario_is_recognised_where_a_file_is_expected(capsys, command):
    code, _, said = podqos(capsys, command, "race")
    assert code == 2
    assert "race: error: No such file or directory (`podqos simulate race` runs that scenario)\n" in said


@pytest.mark.parametrize("command", ["forecast", "rank", "cpu", "explain", "check", "admit", "advise"])
def test_a_scenario_file_is_recognised_where_manifests_are_expected(capsys, command):
    file = SCENARIOS / "race.yaml"
    code, _, said = podqos(capsys, command, file)
    assert code == 2
    assert said.startswith(
        f"podqos: error: {file}: this is a scenario, which has no pods of its own (`podqos simulate {file}`"
    )


@pytest.mark.parametrize(("command", "what"), [("rank", "node"), ("thresholds", "node"), ("autopsy", "pod")])
def test_a_file_that_is_not_there_is_not_a_missing_kubeconfig(capsys, without_cluster, command, what):
    code, _, said = podqos(capsys, command, "deplyo")
    assert code == 2
    fix = f"check the path; for a {what} set KUBECONFIG"
    assert said == f"podqos: error: deplyo: no such file, and no cluster to find a {what} in ({fix})\n"


def test_place_reports_a_missing_file_before_missing_nodes(capsys):
    code, _, said = podqos(capsys, "place", "deplyo")
    assert code == 2
    assert said.splitlines()[0] == "deplyo: error: No such file or directory (check the path)"


def test_blast_applies_the_version_to_a_scenario(capsys):
    words = ("blast", "race", "--growing", "monitoring/log-collector-worker-1", "-o", "csv", "--kubernetes-version")
    code, _, said = podqos(capsys, *words, "1.37")
    assert code == 0
    assert said.startswith("assumed: rules of Kubernetes 1.37: approximate")
    assert podqos(capsys, *words, "1.36")[2] == ""
    _, _, said = podqos(capsys, "blast", "race", "--kubernetes-version", "9")
    assert said.startswith("podqos: error: --kubernetes-version: unknown Kubernetes version '9'")


@pytest.mark.parametrize(
    ("option", "value"), [("--node-memory", "64Gi"), ("--system-memory", "1Gi"), ("-f", "x"), ("--priority", "a=1")]
)
def test_blast_refuses_what_a_scenario_states_itself(capsys, option, value):
    code, _, said = podqos(capsys, "blast", "race", option, value)
    assert code == 2
    assert f"a scenario and {option} cannot be combined" in said


def test_a_version_in_a_what_if_is_not_a_number(capsys):
    code, out, _ = podqos(capsys, "simulate", "race", "--what-if", "spec.kubernetesVersion=1.30")
    assert code == 0
    assert "Kubernetes 1.30" in out.splitlines()[0]


# ---- amounts and words ---------------------------------------------------------------------------------------------


def _node_memory(capsys, text: str) -> int:
    code, out, _ = podqos(capsys, "rank", "-f", PLATFORM / "search-api.yaml", "--node-memory", text, "-o", "json")
    assert code == 0
    memory_bytes: int = json.loads(out)["node"]["memoryBytes"]
    return memory_bytes


@pytest.mark.parametrize("text", ["64Gi", "65536Mi", "68719476736"])
def test_an_option_takes_an_amount_as_kubernetes_reads_it(capsys, text):
    assert _node_memory(capsys, text) == 64 << 30


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("64GiB", "did you mean 64Gi?"),
        ("64 GiB", "did you mean 64Gi?"),
        ("64gi", "did you mean 64Gi?"),
        ("68,719,476,736", "for example 64Gi"),
        ("64GB", "did you mean 64Gi or 64G?"),
        ("64 GB", "did you mean 64Gi or 64G?"),
        ("64gb", "did you mean 64Gi or 64G?"),
        ("64g", "did you mean 64Gi or 64G?"),
        ("1,024Gi", "did you mean 1024Gi or 1.024Gi?"),
        ("N/A", "leave the option out if it is unknown"),
        ("High", "for example 64Gi"),
    ],
)
def test_an_option_answers_other_amounts_with_the_word_to_write(capsys, text, fix):
    code, _, said = podqos(capsys, "rank", "-f", PLATFORM, "--node-memory", text)
    assert (code, said) == (2, f"podqos: error: --node-memory: {text!r} is not a valid quantity ({fix})\n")


@pytest.mark.parametrize(
    ("text", "fix"),
    [("2 cores", "did you mean 2?"), ("0,5", "did you mean 0.5?"), ("1 vCPU", "for example 16 or 500m")],
)
def test_cores_with_a_unit_are_answered_with_the_word_to_write(capsys, text, fix):
    code, out, said = podqos(capsys, "cpu", "-f", PLATFORM / "search-api.yaml", "--cores", text)
    assert (code, out) == (2, "")
    assert f"--cores: {text!r} is not a valid quantity ({fix})" in said


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("4Mi/s", 4 << 20),
        ("4Mi/sec", 4 << 20),
        ("240Mi/minute", 4 << 20),
        ("240Mi/min", 4 << 20),
    ],
)
def test_a_rate_may_be_written_out(text, rate):
    assert rate_option(text, "--rate") == rate


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("4 MiB / s", "did you mean 4Mi/s?"),
        ("4GB/s", "did you mean 4Gi/s or 4G/s?"),
        ("4MB/sec", "did you mean 4Mi/sec or 4M/sec?"),
        ("fast", "for example 128Mi/s"),
    ],
)
def test_another_rate_is_answered_with_the_word_to_write(capsys, text, fix):
    code, _, said = podqos(capsys, "forecast", "-f", PLATFORM, "--rate", text)
    assert (code, said) == (2, f"podqos: error: --rate: {text!r} is not a valid rate ({fix})\n")


def test_a_node_with_units_that_kubernetes_does_not_read_is_answered_with_the_word_to_write(capsys):
    words = ("place", "-f", PLATFORM, "--nodes", "2", "--node-capacity")
    code, out, said = podqos(capsys, *words, "cpu=16,memory=64 GiB")
    assert (code, out) == (2, "")
    assert "did you mean 64Gi?" in said


@pytest.mark.parametrize(
    "words",
    [("--min-severity", "Error"), ("--fail-on", "NEVER"), ("-o", "NAME"), ("--fail-on", "Warning")],
    ids=" ".join,
)
def test_a_choice_is_taken_in_any_case(capsys, words):
    option, value = words
    words = ("check", "-f", PLATFORM, "--node-memory", "64Gi")
    assert podqos(capsys, *words, option, value) == podqos(capsys, *words, option, value.lower())


@pytest.mark.parametrize(
    ("option", "value", "meant"),
    [
        ("--min-severity", "High", "error"),
        ("--min-severity", "medium", "warning"),
        ("--fail-on", "LOW", "info"),
        ("--fail-on", "warn", "warning"),
        ("--fail-on", "none", "never"),
    ],
)
def test_a_severity_of_another_tool_is_answered_with_ours(capsys, option, value, meant):
    code, _, said = podqos(capsys, "check", "-f", PLATFORM, option, value)
    assert (code, said) == (2, f"podqos: error: {option}: invalid value {value!r} (did you mean {meant}?)\n")


# ---- resizes -------------------------------------------------------------------------------------------------------

GUARANTEED_DATABASE = """\
apiVersion: v1
kind: Pod
metadata: {name: orders}
spec:
  containers:
  - {name: postgres, image: "postgres:16", resources: {limits: {cpu: "1", memory: 4Gi}}}
"""
BURSTABLE_DATABASE = """\
apiVersion: v1
kind: Pod
metadata: {name: users}
spec:
  containers:
  - {name: postgres, image: "postgres:16", resources: {requests: {cpu: "2", memory: 8Gi}, limits: {memory: 12Gi}}}
  - {name: exporter, image: exporter, resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 128Mi}}}
"""


def test_a_file_to_resize_stays_in_the_directory_it_was_found_in(capsys, tmp_path):
    (tmp_path / "orders.yaml").write_text(GUARANTEED_DATABASE)
    users = tmp_path / "users.yaml"
    users.write_text(BURSTABLE_DATABASE)
    words = ("check", "-f", tmp_path, "--node-memory", "64Gi", "-o", "json")
    alone = [item["check"] for item in json.loads(podqos(capsys, *words)[1])["items"]]
    assert "PQ126" in alone
    assert [item["check"] for item in json.loads(podqos(capsys, *words, "--resize", users)[1])["items"]] == alone


# ---- units beyond pods ---------------------------------------------------------------------------------------------

QUOTA = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: q}}\nspec: {{hard: {{{key}: {amount}}}}}\n---\n"


@pytest.mark.parametrize(
    ("key", "amount", "reason"),
    [
        ("requests.memory", "64m", "the quota of requests.memory is 64m; 64Mi was probably meant"),
        ("limits.memory", "512", "the quota of limits.memory is 512; 512Mi was probably meant"),
        ("cpu", "500u", "the quota of cpu is 500u; 500m was probably meant"),
        ("requests.memory", "64Gi", None),
        ("requests.cpu", "2000", None),
        ("requests.cpu", "0", None),
        ("pods", "10", None),
        ("count/secrets", "1", None),
    ],
)
def test_a_quota_in_the_wrong_unit_is_found(capsys, tmp_path, key, amount, reason):
    file = tmp_path / "quota.yaml"
    file.write_text(QUOTA.format(key=key, amount=amount) + BARE_POD)
    _, out, _ = podqos(capsys, "check", "-f", file, "--node-memory", "64Gi", "-o", "json")
    found = [item["reason"] for item in json.loads(out)["items"] if item["check"] == "PQ117"]
    assert found == ([] if reason is None else [reason])


AUTOSCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: h}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  maxReplicas: 3
  metrics:
  - type: Resource
    resource: {{name: memory, target: {{type: AverageValue, averageValue: {amount}}}}}
---
"""


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (QUOTA.format(key="requests.memory", amount="64GB"), "spec.hard[requests.memory]"),
        (AUTOSCALER.format(amount="64GB"), "spec.metrics[0].resource.target.averageValue"),
    ],
    ids=["ResourceQuota", "HorizontalPodAutoscaler"],
)
def test_an_amount_that_the_api_server_rejects_is_answered_with_the_word_to_write(capsys, tmp_path, text, field):
    file = tmp_path / "objects.yaml"
    file.write_text(text + BARE_POD)
    code, _, said = podqos(capsys, "check", "-f", file)
    assert code == 2
    (line,) = [line for line in said.splitlines() if "64GB" in line]
    assert f": error: {field}: " in line
    assert line.endswith("(did you mean 64Gi or 64G?)")


# ---- mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lint", "."), "unknown command 'lint' (did you mean `podqos check`?)"),
        (("diff", "a", "b"), "unknown command 'diff' (did you mean `podqos drift`?)"),
        (("describe", "pod", "web"), "unknown command 'describe' (did you mean `podqos explain`?)"),
        (("top",), "unknown command 'top' (did you mean `podqos overview`?)"),
        (("simulate", "race", "--seed", "x"), "--seed: 'x' is not a whole number (see `podqos simulate --help`)"),
        (
            ("check", "-f", PLATFORM, "-o", "jsonpath={.items}"),
            "-o/--output: invalid value 'jsonpath={.items}' (pipe -o json to jq)",
        ),
        (("rank", PLATFORM, "-A"), "-f and a cluster cannot be combined (give one of them)"),
        (("rank", "-", "--usage", "-"), "-: standard input can be read only once (name files for the rest)"),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, tuple) else "",
)
def test_a_mistake_is_answered_with_what_to_type(capsys, words, said):
    assert podqos(capsys, *words) == (2, "", f"podqos: error: {said}\n")


def test_a_url_is_answered_with_how_to_pipe_it(capsys):
    code, _, said = podqos(capsys, "check", "https://example.com/a.yaml")
    assert code == 2
    assert "(podqos reads no URLs: curl -sL https://example.com/a.yaml | podqos … -)" in said


def test_kind_and_names_may_be_apart_as_for_kubectl(capsys, without_cluster):
    arguments = Namespace(files=["sts", "web", "api"])
    object_arguments(arguments)
    assert arguments.objects == [("statefulset", "web"), ("statefulset", "api")]
    assert arguments.files == []


@pytest.mark.parametrize(("text", "seconds"), [("5min", 300), ("90 seconds", 90), ("1 hour", 3600), ("2d", 172_800)])
def test_a_time_may_have_its_unit_written_out(text, seconds):
    assert duration_option(text, "--until") == seconds * 10**6


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("failOn: ERROR", 'failOn: must be one of error, warning, info, never, not "ERROR" (write error)'),
        ("options: {nodeMemory: 64GB}", "(did you mean 64Gi or 64G?)"),
    ],
)
def test_a_configuration_is_answered_with_the_word_to_write(capsys, tmp_path, setting, said):
    (tmp_path / ".podqos.yaml").write_text(f"{setting}\n")
    (tmp_path / "pod.yaml").write_text(BARE_POD)
    code, _, err = podqos(capsys, "check", "-f", tmp_path)
    assert code == 2
    assert err.splitlines()[0].endswith(said)


TWO = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: a, image: x}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}
"""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("pod", "web", "-f", "two.yaml"), ["Pod default/web"]),
        (("-f", "two.yaml", "deploy", "api"), ["Deployment default/api"]),
        (("deploy/api", "pod/web", "-f", "two.yaml"), ["Pod default/web", "Deployment default/api"]),
        (("two.yaml", "po/web"), ["Pod default/web"]),
    ],
)
def test_objects_that_are_named_with_files_are_those_of_the_files(capsys, tmp_path, monkeypatch, words, shown):
    monkeypatch.chdir(tmp_path)
    Path("two.yaml").write_text(TWO)
    code, out, err = podqos(capsys, "explain", *words)
    assert code == 0, err
    assert [line.partition("  ")[0] for line in out.splitlines() if "default/" in line] == shown


def test_an_object_that_the_files_lack_is_an_error(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("two.yaml").write_text(TWO)
    code, _, err = podqos(capsys, "explain", "pod", "web", "nope", "-f", "two.yaml")
    assert code == 2
    assert "pod/nope: the input has no such pod" in err
    code, _, err = podqos(capsys, "admit", "pod", "web", "nope", "-f", "two.yaml")
    assert code == 2
    assert "pod/nope: the input has no such pod" in err
