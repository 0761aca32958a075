"""What renderers are given, what becomes of their output, and how they are stopped. Stand-ins for them print it."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.reading import renderers

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i}]}\n"
CHART = "apiVersion: v2\nname: webapp\nversion: 1.0.0\n"
KUSTOMIZATION = "resources: []\n"


def documents(*names):
    """Return pods as Helm prints them, each under its template."""
    return "".join(f"---\n# Source: {name}\n{POD.replace('NAME', f'p{i}')}" for i, name in enumerate(names))


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in a directory with a chart, web, and a kustomization, base, without any tool on the PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for path, text in {"web/Chart.yaml": CHART, "base/kustomization.yml": KUSTOMIZATION}.items():
        Path(path).parent.mkdir()
        Path(path).write_text(text)

    def command(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return command


def tool(name, output="", script=""):
    """Put a program on the PATH that notes its arguments, runs a script and prints a text."""
    Path("bin").mkdir(exist_ok=True)
    Path(f"{name}.out").write_bytes(output.encode() if isinstance(output, str) else output)
    program = Path("bin", name)
    text = f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {name}.args\n{script}\n/bin/cat {name}.out\n"
    program.write_text(text)
    program.chmod(0o755)


def arguments_of(name):
    return Path(f"{name}.args").read_text().splitlines()


def places(out):
    return [(item["source"], item["line"]) for item in json.loads(out)["items"]]


# ---- what renderers are given --------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--values", "--set", "--helm-args", "--kustomize-args", "--render-timeout"])
def test_what_else_a_renderer_may_need_is_given_to_it_directly(run, option):
    code, _, err = run("check", "-k", "web", option, "x")
    assert (code, err.count("\n")) == (2, 1)
    assert f"unknown option {option} (give what " in err
    assert "| podqos check -`" in err


# ---- what they print -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_template_is_the_place_of_what_it_renders_with_lines_as_show_only_prints_them(run, end):
    text = documents("webapp/templates/a.yaml", "webapp/charts/sub/templates/b.yaml", "webapp/templates/a.yaml")
    tool("helm", text.replace("\n", end))
    _, out, err = run("check", "-k", "web", "-o", "json")
    assert sorted(places(out)) == [
        ("web/charts/sub/templates/b.yaml (rendered)", 6),
        ("web/templates/a.yaml (rendered)", 6),
        ("web/templates/a.yaml (rendered)", 12),
    ], err


def test_a_template_outside_of_the_chart_is_not_believed(run):
    tool("helm", documents("webapp/../../etc/passwd", "webapp//etc/passwd", "webapp/x\x1b[31m.yaml", "plain"))
    _, out, _ = run("check", "-k", "web", "-o", "json")
    assert {source for source, _ in places(out)} == {"web/Chart.yaml (rendered)"}


def test_a_template_of_comments_is_not_mentioned_and_a_chart_of_nothing_is(run):
    tool("helm", "---\n# Source: webapp/templates/a.yaml\n# nothing\n" + documents("webapp/templates/b.yaml"))
    code, _, err = run("explain", "-k", "web")
    assert (code, "a.yaml" in err) == (0, False)
    tool("helm", "---\n# Source: webapp/templates/a.yaml\n# nothing\n")
    _, _, err = run("explain", "-k", "web")
    assert "web: warning: this Helm chart renders no objects (give it other values)" in err


def test_code_scanners_get_the_template_without_a_line_that_it_does_not_have(run):
    tool("helm", documents("webapp/templates/a.yaml"))
    _, out, _ = run("check", "-k", "web", "-o", "sarif")
    (result,) = json.loads(out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "web/templates/a.yaml"}}
    assert "fixes" not in result
    _, out, _ = run("check", "-k", "web", "-o", "github")
    assert out.startswith("::warning file=web/templates/a.yaml,title=PQ102")
    assert "Pod default/p0 spec.containers[0].resources: c requests no cpu" in out
    _, out, _ = run("check", "-k", "web", "-o", "junit")
    assert 'file="web/templates/a.yaml">' in out


def test_an_ignored_path_is_that_of_the_template(run):
    tool("helm", documents("webapp/templates/a.yaml", "webapp/templates/b.yaml"))
    Path(".podqos.yaml").write_text('ignore: [{paths: ["web/templates/a.yaml"], reason: known}]\n')
    _, out, err = run("check", "-k", "web", "-o", "json")
    assert places(out) == [("web/templates/b.yaml (rendered)", 6)], err


RELEASE = (
    "NAME: rel\nLAST DEPLOYED: Wed Nov 18 18:23:03 2026\nNAMESPACE: default\nSTATUS: pending-install\nREVISION: 1\n"
    "USER-SUPPLIED VALUES:\na: {\n\nHOOKS:\n{hooks}MANIFEST:\n{manifest}\nNOTES:\n1. Get the URL: run: this\n\t- {\n"
)


def release(start=""):
    hooks = documents("webapp/templates/hook.yaml").replace("p0", "hook")
    return start + RELEASE.replace("{hooks}", hooks).replace("{manifest}", documents("webapp/templates/a.yaml"))


@pytest.mark.parametrize("start", ["", 'Release "rel" has been upgraded. Happy Helming!\n'])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_all_that_helm_says_around_the_manifests_of_a_release_is_passed_over(run, start, end):
    text = release(start).replace("\n", end).encode()
    code, out, err = run("explain", "-", "-o", "csv", stdin=text)
    assert (code, sorted(line.split(",")[1] for line in out.splitlines()[1:])) == (0, ["hook", "p0"]), err
    assert "error" not in err
    Path("saved.yaml").write_bytes(text)
    _, out, err = run("check", "saved.yaml", "-o", "json")
    lines = text.decode().splitlines()
    assert [lines[line - 1].startswith("spec:") for _, line in places(out)] == [True, True], err


def test_notes_after_the_last_document_are_passed_over(run):
    text = documents("webapp/templates/a.yaml") + "\nNOTES:\n1. Get: it: {\n"
    code, _, err = run("explain", "-", stdin=text.encode())
    assert (code, "error" in err) == (0, False), err


def test_templates_that_are_piped_in_are_the_places_of_findings(run):
    text = documents("webapp/templates/a.yaml", "webapp/templates/b.yaml").encode()
    _, out, _ = run("check", "-", "-o", "json", stdin=text)
    assert places(out) == [("webapp/templates/a.yaml (rendered)", 6), ("webapp/templates/b.yaml (rendered)", 6)]
    _, out, _ = run("check", "-", "--fix", stdin=text)
    assert out.encode() == text  # what is written is the whole text
    text = b"---\n# Source: https://example.com/a.yaml\n" + POD.encode()
    _, out, _ = run("check", "-", "-o", "json", stdin=text)
    assert {source for source, _ in places(out)} == {"-"}


# ---- how they fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "directory", "said", "fix"),
    [
        ("helm", "web", "Error: execution error at (a/t.yaml:1:2): no!", "helm template … --values FILE"),
        ("helm", "web", "Error: values don't meet the specifications of the schema(s)", "give what Helm prints"),
        ("helm", "web", "Error: chart requires kubeVersion: >=1.99", "helm template … --kube-version"),
        ("helm", "web", "Error: library charts are not installable", "render a chart that uses it"),
        ("kubectl", "base", "error: must specify --enable-helm", "kubectl kustomize --enable-helm …"),
        ("kubectl", "base", "error: security; file '/a' is not in or below '/b'", "LoadRestrictionsNone …"),
        ("kubectl", "base", "error: git fetch origin: exit 128", "check the network: it names something remote"),
    ],
)  # fmt: skip
def test_an_error_that_is_known_comes_with_its_fix(run, program, directory, said, fix):
    tool(program, script=f'echo "{said}" >&2; exit 1')
    code, _, err = run("explain", "-k", directory)
    first, command, line, *_ = err.splitlines()
    assert (code, first.startswith(f"{directory}: error: cannot render this "), fix in first) == (2, True, True), err
    assert (command.split()[:2], line) == (["$", program], f"    {said}")


def test_dependencies_that_are_missing_are_one_error_for_all_charts(run):
    said = "Error: An error occurred while checking for chart dependencies. You may need to run `helm dependency build`"
    lacks = "found in Chart.yaml, but missing in charts/ directory: redis, kafka"
    tool("helm", script=f"echo '{said} to fetch missing dependencies: {lacks}' >&2; exit 1")
    _, _, err = run("explain", "-k", "web")
    assert err.splitlines()[0] == (
        "web: error: cannot render this Helm chart: its dependencies are not in charts/: redis, kafka "
        "(run `helm dependency build web`)"
    )
    Path("more").mkdir()
    Path("more/Chart.yaml").write_text(CHART)
    _, _, err = run("explain", "web", "more", "--render")
    assert err.splitlines()[:3] == [
        ".: error: cannot render 2 Helm charts: their dependencies are not in charts/ (run these commands first)",
        "    helm dependency build web  # redis, kafka",
        "    helm dependency build more  # redis, kafka",
    ]


def test_what_kustomizations_take_in_fails_them_once(run):
    for name in ("one", "two"):
        Path(name).mkdir()
        Path(name, "kustomization.yaml").write_text(KUSTOMIZATION)
    said = "error: accumulating resources from '$2': accumulating resources from 'x.yaml': no such file"
    tool("kubectl", script=f'echo "{said}" >&2; exit 1')
    _, _, err = run("explain", "one", "two", "base", "--render")
    assert err.count("error: cannot render") == 1
    assert "    the same error: two, base\n" in err


def test_a_library_chart_is_not_rendered_alone(run):
    Path("web/Chart.yaml").write_text(CHART + "type: library\n")
    tool("helm", script="exit 1")
    Path("pod.yaml").write_text(POD.replace("NAME", "beside"))
    code, _, err = run("explain", "web", "pod.yaml", "--render")
    assert (code, Path("helm.args").exists(), "error" in err) == (0, False, False)
    _, _, err = run("explain", "web", "pod.yaml")
    assert "web: warning: skipped: a library chart (render a chart that uses it)" in err


def test_a_renderer_that_takes_too_long_is_killed_with_all_it_started(run, monkeypatch):
    monkeypatch.setattr("podqos.reading.renderers._TIMEOUT_S", 0.5)
    tool("helm", script="echo waiting for godot >&2; /bin/sleep 300 & echo $! > child; wait")
    start = time.monotonic()
    code, _, err = run("explain", "-k", "web")
    assert (code, time.monotonic() - start < 20) == (2, True)
    assert err.splitlines()[:3] == [
        (
            "web: error: cannot render this Helm chart: helm template did not finish within 0.5 s and was killed "
            "(render it into a file, and give that)"
        ),
        "    $ helm template web --skip-tests",
        "    waiting for godot",
    ]
    assert has_ended(int(Path("child").read_text()))


def test_a_renderer_that_prints_without_end_is_stopped(run, monkeypatch):
    monkeypatch.setattr(renderers, "_MOST_BYTES", 1 << 20)
    tool(
        "helm",
        script="while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
    )
    code, _, err = run("explain", "-k", "web")
    assert (code, "helm template printed more than 1Mi and was killed" in err) == (2, True)


def test_a_renderer_cannot_ask_questions(run):
    tool("helm", documents("webapp/templates/a.yaml"), 'read answer; echo "$answer${GIT_TERMINAL_PROMPT}" > asked')
    assert run("explain", "-k", "web")[0] == 0
    assert Path("asked").read_text() == "0\n"


def test_an_interrupted_command_leaves_no_renderer_behind(run):
    tool("helm", script="echo $$ > child; exec /bin/sleep 300")
    command = [sys.executable, "-m", "podqos", "explain", "-k", "web"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not (Path("child").exists() and Path("child").read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in err) == (130, False)
    assert has_ended(int(Path("child").read_text()))


def has_ended(pid):
    """Whether a process ends soon; one that nobody has waited for yet has ended, too."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False
