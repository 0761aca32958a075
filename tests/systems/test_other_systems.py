"""Laptops are Macs and Windows machines, too: what reads manifests, snapshots and logs, or serves the page, runs there.

``elsewhere/sitecustomize.py`` takes away what only Unix has, in every process that is started.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.serving import Server
from library.test_live_cluster import api_server
from serve.running import LONG, POD, SHORT, VIEWER, Running, eventually, is_gone, running

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/podqos"
PLATFORM = "scenarios/content-platform/platform"
USAGE = "scenarios/content-platform/usage.csv"
SYSTEMS = pytest.mark.parametrize("system", ["win32", "darwin"])

# Exit code → commands, as one would type them in a clone; {} is a directory to write to.
COMMANDS = {
    0: [
        "--version",
        "--help",
        "help node",
        f"explain {PLATFORM}",
        f"explain {PLATFORM} -o json",
        f"rank {PLATFORM} --usage {USAGE}",
        f"cpu {PLATFORM} --cores 14",
        f"forecast {PLATFORM} --growing log-collector",
        f"advise {PLATFORM} --usage {USAGE}",
        f"admit {PLATFORM}",
        f"place {PLATFORM} --nodes 3 --node-capacity cpu=16,memory=64Gi,pods=110",
        f"drift {PLATFORM} {PLATFORM}",
        "thresholds scenarios/node/kubelet.yaml",
        "simulate race",
        "simulate race --html {}/race.html",
        "simulate race --svg {}/race.svg",
        "blast race",
        "simulate race --vary phase=0s,2s",
        "scenario list",
        f"ui {PLATFORM} {USAGE} --html {{}}/page.html",
        "autopsy tests/outputs/inputs/kern.log",
        "guard report --state scenarios/guard",
        "guard journal --state scenarios/guard",
        "guard manifests --image registry.example.com/podqos:1",
        "completion bash",
        "check {}/copy.yaml --fix --only PQ101",
        "overview",
        "rank atlas-1",
        "explain -A",
        "snapshot -o {}/cluster.json.gz",
        "overview --snapshot {}/cluster.json.gz",
        "ui {}/cluster.json.gz --html {}/cluster.html",
    ],
    1: ["check -A", f"check {PLATFORM}", "check scenarios/content-platform/accidental -o sarif"],
    3: [
        "node run --manifests pods",
        "node status",
        "guard run",
        "guard status",
        "rehearse race",
        "ui --state-dir /var/lib/podqos",
        "autopsy --live",
    ],
}
EVERY = [(code, command) for code, commands in COMMANDS.items() for command in commands]
RUN = """
import contextlib, io, json, sys
from podqos.reading import built_page
built_page.built_viewer = lambda: sys.argv[1]
from podqos.cli.main import main
for command in json.loads(sys.argv[2]):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(command)
        except SystemExit as ended:
            code = ended.code or 0
    texts = [(stream.flush(), stream.buffer.getvalue().decode())[1] for stream in (out, err)]
    print(json.dumps([code, *texts]))
"""


def elsewhere(system: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "tests/systems/elsewhere"), str(ROOT / "src")])
    return {**os.environ, "PYTHONPATH": path, "PODQOS_TEST_SYSTEM": system, "PODQOS_TRACEBACK": "1"}


KUBECONFIG = """apiVersion: v1
kind: Config
current-context: test
clusters: [{{name: test, cluster: {{server: "{url}"}}}}]
contexts: [{{name: test, context: {{cluster: test, user: me, namespace: shop}}}}]
users: [{{name: me, user: {{}}}}]
"""


def commands_run(system: str, folder: Path) -> dict[str, tuple[int, str, str]]:
    """Return exit code, output and messages of every command; the current context is a small cluster."""
    shutil.copy(ROOT / "scenarios/content-platform/accidental/article-service.yaml", folder / "copy.yaml")
    arguments = json.dumps([[word.format(folder) for word in command.split()] for _, command in EVERY])
    with Server(api_server) as cluster:
        (folder / "kubeconfig").write_bytes(KUBECONFIG.format(url=cluster.url).replace("\n", "\r\n").encode())
        done = subprocess.run(
            [sys.executable, "-c", RUN, VIEWER, arguments],
            cwd=ROOT, env={**elsewhere(system), "KUBECONFIG": str(folder / "kubeconfig")}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = (json.loads(line) for line in done.stdout.splitlines())
    return {command: tuple(answer) for (_, command), answer in zip(EVERY, answers, strict=True)}


@pytest.mark.slow
@SYSTEMS
def test_commands_run_without_what_only_unix_has_and_those_of_linux_say_so_in_one_line(system, tmp_path):
    answers = commands_run(system, tmp_path)
    assert [err for code, _, err in answers.values() if code == 70] == []
    assert [(command, answers[command]) for code, command in EVERY if answers[command][0] != code] == []
    name = {"win32": "Windows", "darwin": "macOS"}[system]
    for command in COMMANDS[3][:-1]:
        _, out, err = answers[command]
        assert (out, err.count("\n")) == ("", 1), command
        assert f"needs Linux, and this is {name}" in err


@contextmanager
def page_served(system: str) -> Iterator[Running]:
    start = RUN.partition("for command")[0] + 'sys.exit(main(["ui", *sys.argv[2:]]))'
    program = [sys.executable, "-c", start, VIEWER]
    with running(program=program, env=elsewhere(system)) as server:
        yield server


@pytest.mark.slow
@SYSTEMS
def test_the_page_is_served_and_runs_scenarios_without_what_only_unix_has(system):
    with page_served(system) as server:
        visitor = server.visitor()
        status, _, page = visitor.ask("/")
        visitor.ended(visitor.begin({"short.yaml": SHORT, "pod.yaml": POD}))
        _, err = server.stop(signal.SIGTERM)
    assert (status, page[:15].lower()) == (200, b"<!doctype html>")
    assert server.process.returncode == 0, err


@pytest.mark.slow
def test_a_server_that_is_killed_takes_its_workers_with_it_where_the_kernel_does_not_see_to_that():
    with page_served("win32") as server:
        server.visitor().begin({"long.yaml": LONG, "pod.yaml": POD})
        (worker,) = eventually(server.workers, "a worker")
        server.stop(signal.SIGKILL)
        eventually(lambda: is_gone(worker), "the end of the worker")


# ---- what is written ---------------------------------------------------------------------------------------------

# Packages and modules that only Linux runs, or that are loaded after it was asked for.
LINUX_ONLY = ("host/", "guard/", "cli/node/", "rehearsal.py")
UNIX_MODULES = "fcntl resource pwd grp termios tty pty syslog uvloop inotify_simple jeepney".split()  # noqa: SIM905


def portable_modules() -> list[tuple[str, str]]:
    named = ((path.relative_to(SOURCE).as_posix(), path) for path in sorted(SOURCE.rglob("*.py")))
    return [(name, path.read_text(encoding="utf-8")) for name, path in named if not name.startswith(LINUX_ONLY)]


def test_no_module_that_runs_everywhere_imports_one_that_only_unix_has():
    pattern = re.compile(rf"^(?:import|from) ({'|'.join(UNIX_MODULES)})\b", re.MULTILINE)
    found = {(name, module) for name, text in portable_modules() for module in pattern.findall(text)}
    assert found == set()


def test_no_text_depends_on_the_encoding_of_the_locale():
    """Every file is opened for bytes, or with its encoding."""
    careless = []
    for name, text in portable_modules():
        if not re.search(r"\bopen\(|read_text|write_text", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or any(keyword.arg == "encoding" for keyword in node.keywords):
                continue
            is_open = isinstance(node.func, ast.Name) and node.func.id == "open"
            is_text = isinstance(node.func, ast.Attribute) and node.func.attr in {"read_text", "write_text"}
            modes = [each.value for each in node.args[1:2] if isinstance(each, ast.Constant)]
            if is_text or (is_open and not any("b" in mode for mode in modes)):
                careless.append(f"{name}:{node.lineno}")
    assert careless == []
