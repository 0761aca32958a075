"""Kustomizations and Helm charts: left out with the command that renders them, and rendered only when asked."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from podqos.cli.main import main

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i}]}\n"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
"""
PATCH = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n"


@pytest.fixture
def tree(capsys, tmp_path, monkeypatch):
    """Write files, by path, and run commands among them, without any tool on the PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def write(files):
        for path, text in files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text)

        def run(*arguments):
            code = main([str(each) for each in arguments])
            return code, *capsys.readouterr()

        return run

    return write


def tool(name, script):
    """Put a program on the PATH that tells that it ran."""
    path = Path("bin") / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> ran\n{script}\n')
    path.chmod(0o755)


def ran():
    return Path("ran").read_text().splitlines() if Path("ran").exists() else []


def names(out):
    return sorted(line.split(",")[1] for line in out.splitlines()[1:])


OVERLAY = {
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "base/web.yaml": DEPLOYMENT,
    "overlay/kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}, {path: more/patch.yaml}]\n",
    "overlay/patch.yaml": PATCH,
    "overlay/more/patch.yaml": PATCH,
    "overlay/more/unused.yaml": PATCH,
    "plain/pod.yaml": POD.replace("NAME", "plain"),
}


def test_a_kustomization_is_skipped_with_the_command_that_renders_it(tree):
    code, out, err = tree(OVERLAY)("explain", "-f", ".", "-o", "csv")
    assert (code, names(out)) == (0, ["plain"])
    assert "skipped: a kustomization (kubectl kustomize overlay | podqos … -f -, or add --render)" in err
    assert "kubectl kustomize base |" in err
    assert "error" not in err


@pytest.mark.parametrize("command", [["check"], ["cpu", "--cores", "1"], ["rank"], ["admit"], ["explain"]])
def test_looking_at_a_repository_runs_nothing(tree, command):
    run = tree(OVERLAY)
    for name in ("kubectl", "kustomize", "helm"):
        tool(name, "exit 1")
    run(*command, "-f", ".")
    assert ran() == []


def test_every_command_says_what_it_skipped(tree):
    run = tree(OVERLAY)
    for command in (
        ["check"],
        ["cpu", "--cores", "1"],
        ["rank"],
        ["admit"],
        ["place", "--nodes", "1", "--node-capacity", "cpu=1,memory=1Gi"],
    ):
        _, _, err = run(*command, "-f", ".")
        assert "kubectl kustomize overlay" in err, command
    _, _, err = run("drift", ".", ".")
    assert "kubectl kustomize overlay" in err


def test_a_directory_of_nothing_else_is_an_error_with_the_commands(tree):
    files = {path: text for path, text in OVERLAY.items() if not path.startswith("plain")}
    run = tree(files)
    code, _, err = run("explain", "-f", ".")
    assert code == 2
    assert "kubectl kustomize overlay" in err
    assert "no pods explained" in err
    assert run("check", "-f", ".")[0] == 2


def test_render_renders_what_no_other_takes_in(tree):
    run = tree(OVERLAY)
    tool("kubectl", f"/bin/cat <<'END'\n{DEPLOYMENT}END")
    code, out, err = run("explain", "-f", ".", "--render", "-o", "csv")
    assert (code, names(out)) == (0, ["plain", "web"])
    assert [line.split()[1:] for line in ran()] == [["kustomize", "./overlay"]]
    assert "skipped" not in err


def test_a_named_directory_is_rendered_and_kustomize_will_do(tree):
    run = tree(OVERLAY)
    tool("kustomize", f"/bin/cat <<'END'\n{DEPLOYMENT}END")
    code, out, _ = run("explain", "-k", "base", "-o", "csv")
    assert (code, names(out)) == (0, ["web"])
    assert [line.split()[1:] for line in ran()] == [["build", "base"]]


def test_findings_in_what_was_rendered_name_the_kustomization(tree):
    run = tree(OVERLAY)
    tool("kubectl", f"/bin/cat <<'END'\n{DEPLOYMENT}END")
    _, out, _ = run("check", "-k", "overlay")
    assert "\n  overlay/kustomization.yaml (rendered):" in out


def test_what_was_rendered_is_not_fixed_in_place(tree):
    code, _, err = tree(OVERLAY)("check", "-k", "overlay", "--fix")
    assert code == 2
    assert "rendered manifests cannot be fixed in place" in err


def test_all_that_a_failing_tool_says_is_below_one_line_and_the_rest_goes_on(tree):
    run = tree(OVERLAY)
    tool("kubectl", "echo '# Warning: old' >&2; printf 'error: no such base\\n  in \\033[31mred\\n' >&2; exit 1")
    code, out, err = run("explain", "-f", ".", "--render", "-o", "csv")
    assert (code, names(out)) == (2, ["plain"])
    assert err.splitlines()[:4] == [
        "./overlay: error: cannot render this kustomization",
        "    $ kubectl kustomize ./overlay",
        "    error: no such base",
        "      in \\x1b[31mred",
    ]


def test_a_missing_tool_is_one_line_for_all_that_need_it(tree):
    run = tree({**OVERLAY, **CHART, "other/Chart.yaml": CHART["chart/Chart.yaml"]})
    code, _, err = run("explain", "-f", ".", "--render")
    assert code == 2
    assert [line for line in err.splitlines() if "error:" in line] == [
        (
            ".: error: cannot render 2 Helm charts: helm is not installed "
            "(install helm: https://helm.sh/docs/intro/install/)"
        ),
        (
            "./overlay: error: cannot render this kustomization: neither kubectl nor kustomize is installed "
            "(install kubectl: https://kubernetes.io/docs/tasks/tools/)"
        ),
    ]


def test_a_directory_without_anything_to_render_is_refused(tree):
    for name in ("plain", "nowhere"):
        code, _, err = tree(OVERLAY)("explain", "-k", name)
        assert code == 2
        assert f"no kustomization.yaml or Chart.yaml in {name}" in err


@pytest.mark.parametrize("name", ["overlay/patch.yaml", "overlay/kustomization.yaml"])
def test_a_patch_that_is_named_is_not_read_as_a_workload(tree, name):
    code, _, err = tree(OVERLAY)("check", name)
    assert code == 2  # nothing is left to check
    assert "kubectl kustomize overlay" in err
    assert "error:" not in err


def test_a_resource_that_is_named_is_read_as_it_is(tree):
    code, out, _ = tree(OVERLAY)("explain", "-f", "base/web.yaml", "-o", "csv")
    assert (code, names(out)) == (0, ["web"])


def test_a_component_cannot_be_rendered_alone(tree):
    files = {"part/kustomization.yaml": "kind: Component\nresources: []\n", "plain/pod.yaml": OVERLAY["plain/pod.yaml"]}
    run = tree(files)
    tool("kubectl", "exit 1")
    code, _, err = run("explain", "-f", ".")
    assert "skipped: a kustomize component (render a kustomization that uses it)" in err
    assert run("explain", "-f", ".", "--render")[0] == code == 0
    assert ran() == []


def test_flux_has_a_kind_of_the_same_name(tree):
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec: {}\n"
    files = {"a/kustomization.yaml": flux, "a/pod.yaml": POD.replace("NAME", "beside")}
    code, out, err = tree(files)("explain", "-f", ".", "-o", "csv")
    assert (code, names(out)) == (0, ["beside"])
    assert "skipped: a" not in err


CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "chart/values.yaml": "replicas: 1\n",
    "chart/templates/web.yaml": "{{- if .Values.a }}\n"
    + DEPLOYMENT
    + '{{- end }}\n---\n{{ include "x" . }}: {{ 5 }}\n',
    "chart/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    "chart/charts/sub/templates/x.yaml": "{{ broken\n",
    "plain/pod.yaml": POD.replace("NAME", "plain"),
}


@pytest.mark.parametrize("where", [".", "chart/templates", "chart/templates/web.yaml"])
def test_a_chart_is_one_line_with_helm_template(tree, where):
    _, _, err = tree(CHART)("explain", "-f", where, "-f", "plain", "-o", "csv")
    (line,) = [line for line in err.splitlines() if "chart" in line]
    assert line.endswith("skipped: a Helm chart (helm template chart | podqos … -f -, or add --render)")
    assert "error" not in err


def test_render_renders_a_chart(tree):
    run = tree(CHART)
    tool("helm", f"/bin/cat <<'END'\n{DEPLOYMENT}END")
    code, out, _ = run("explain", "-f", ".", "--render", "-o", "csv")
    assert (code, names(out)) == (0, ["plain", "web"])
    assert [line.split()[1:] for line in ran()] == [["template", "./chart", "--skip-tests"]]


def test_many_skipped_directories_are_one_line(tree):
    files = {f"d{number:02}/kustomization.yaml": "resources: []\n" for number in range(15)}
    _, _, err = tree(files)("explain", "-f", ".")
    assert err.count("skipped") == 1
    assert "skipped 15 kustomizations and charts: d00, d01, d02, … (--render renders them)" in err.splitlines()[0]


def test_a_broken_kustomization_is_still_one(tree):
    run = tree({"a/kustomization.yaml": "resources: [\n", "a/pod.yaml": POD})
    _, _, err = run("explain", "-f", ".")
    assert "kubectl kustomize a |" in err
    assert "Traceback" not in err


def test_kustomizations_and_charts_of_a_revision_are_skipped_as_those_of_a_directory(tree, monkeypatch):
    monkeypatch.setenv("PATH", os.environ["PATH"] + os.pathsep + os.defpath)
    files = {f"k8s/{path}": text for path, text in {**OVERLAY, **CHART}.items()}
    run = tree(files)
    for command in ("init -q", "add .", "-c user.name=x -c user.email=x@y commit -qm x"):
        assert subprocess.run(["git", *command.split()], check=False).returncode == 0
    code, out, err = run("drift", "HEAD:k8s", "k8s")
    assert code == 0, err
    assert "removed" not in out
    assert "HEAD:k8s/overlay: warning: skipped: it must be rendered first" in err


def test_hidden_files_and_other_yaml_of_a_repository_are_no_errors(tree):
    files = {
        ".tool.yml": "a: 1\na: 2\n",
        "mkdocs.yml": "x: !!python/name:a.b\na: {\n",
        "feed.json": '{{ define "x" }}{"a": 1}\n',
        "pod.yaml": POD.replace("NAME", "plain"),
    }
    code, out, err = tree(files)("explain", "-f", ".", "-o", "csv")
    assert (code, names(out)) == (0, ["plain"])
    assert "error" not in err
    code, _, err = tree(files)("explain", "-f", "mkdocs.yml")
    assert (code, "mkdocs.yml:" in err) == (2, True)


@pytest.mark.parametrize("included", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "b"}], ids="".join)
def test_of_kustomizations_that_include_each_other_one_is_rendered_to_see_why(tree, included):
    run = tree({f"{name}/kustomization.yaml": f"resources: [../{other}]\n" for name, other in included.items()})
    tool("kubectl", "echo cycle detected >&2; exit 1")
    code, _, err = run("explain", "-f", ".", "--render")
    assert code == 2
    assert ran() == [f"{Path('bin/kubectl').absolute()} kustomize ./a"]
    assert "    cycle detected\n" in err


def test_what_tests_and_examples_render_is_judged_like_their_files(tree):
    files = {"kustomization.yaml": "resources: [web.yaml]\n", "web.yaml": DEPLOYMENT}
    run = tree({f"{folder}/{name}": text for folder in ("tests/a", "docs", "prod") for name, text in files.items()})
    tool("kubectl", 'cat "$2/web.yaml" | sed "s/name: web/name: $(basename "$2")/"'.replace("cat", "/bin/cat"))
    Path("bin/sed").symlink_to("/bin/sed")
    Path("bin/basename").symlink_to("/usr/bin/basename")
    _, out, _ = run("check", "-f", ".", "--render", "-o", "json")
    found = {item["name"]: item["severity"] for item in json.loads(out)["items"] if item["check"] == "PQ102"}
    assert found == {"a": "info", "docs": "info", "prod": "warning"}


def test_what_tests_keep_and_cannot_be_rendered_is_one_warning(tree):
    broken = {f"tests/{name}/kustomization.yaml": "resources: [none.yaml]\n" for name in "ab"}
    run = tree({**broken, "web.yaml": DEPLOYMENT})
    tool("kubectl", "echo no such file >&2; exit 1")
    code, _, err = run("explain", "-f", ".", "--render")
    assert code == 0
    said = (
        "./tests/a: warning: test input: what cannot be rendered is skipped, here and in 1 more (-k ./tests/a says why)"
    )
    assert err.count("test input") == 1
    assert said in err
    assert run("explain", "-f", "tests/a", "--render")[0] == 2
