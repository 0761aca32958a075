"""The guide to a gate in CI, the hooks and the action: what they say is what works."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from podqos.cli.main import COMMANDS, main
from podqos.reading.configuration import read_configuration

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs/how-to/ci-gate.md").read_text()
BLOCKS = {
    name: yaml.safe_load(text) for name, text in re.findall(r"```yaml\n# ([^\n]+)\n(.*?)```", GUIDE, flags=re.DOTALL)
}
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a repository with the manifests that the guide speaks of, and with podqos on the path."""
    shutil.copytree(ROOT / "scenarios/content-platform", tmp_path, dirs_exist_ok=True)
    shutil.copytree(ROOT / "scenarios/content-platform/platform", tmp_path / "manifests")
    (tmp_path / ".git").mkdir()
    programs = tmp_path / ".programs"
    programs.mkdir()
    (programs / "podqos").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m podqos "$@"\n')
    (programs / "podqos").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)


def shell(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as CI servers do."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


# ---- the guide ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["how-to/ci-gate.md", "how-to/policy.md", "reference/configuration.md"])
def test_the_configuration_on_a_page_is_in_order(page):
    (shown,) = re.findall(r"```yaml\n# \.podqos\.yaml\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    Path(".podqos.yaml").write_text(shown)
    assert read_configuration(".podqos.yaml").problems == ()


def test_the_annotation_in_the_guide_suppresses(capsys):
    Path("one.yaml").write_text(yaml.safe_dump(BLOCKS["a manifest"]))
    assert main(["check", "one.yaml", "--fail-on", "info", "--min-severity", "warning"]) == 0
    assert "1 suppressed" in capsys.readouterr().out


def test_the_workflow_names_inputs_that_the_action_has():
    steps = BLOCKS[".github/workflows/podqos.yaml"]["jobs"]["check"]["steps"]
    assert steps[1]["with"].keys() <= ACTION["inputs"].keys()


def test_the_script_for_gitlab_writes_the_report_it_names():
    job = BLOCKS[".gitlab-ci.yml"]["podqos"]
    assert [shell(line).returncode for line in job["script"]] == [1]
    report = ET.parse(job["artifacts"]["reports"]["junit"])  # noqa: S314 - our own
    assert report.getroot().tag == "testsuites"


def test_the_workflow_for_reports_runs():
    steps = BLOCKS[".github/workflows/podqos-reports.yaml"]["jobs"]["reports"]["steps"]
    commands = [step["run"] for step in steps if step.get("run", "").startswith("podqos ")]
    made = shell(
        "rmdir .git && git init --quiet && git add manifests"
        " && git -c user.name=me -c user.email=me@example.org commit --quiet -m one"
        " && git update-ref refs/remotes/origin/main HEAD && cp accidental/article-service.yaml manifests/",
        GIT_CONFIG_GLOBAL=os.devnull,
    )
    assert made.returncode == 0, made.stderr
    assert [command.split()[1] for command in commands] == ["check", "drift"]
    assert [shell(command, GITHUB_BASE_REF="main").returncode for command in commands] == [0, 0]
    assert "Guaranteed → Burstable" in Path("drift.md").read_text()
    uploaded = next(step["with"]["sarif_file"] for step in steps if "sarif_file" in step.get("with", {}))
    assert yaml.safe_load(Path(uploaded).read_text())["version"] == "2.1.0"


def test_the_configuration_for_pre_commit_names_hooks_that_exist():
    hooks = BLOCKS[".pre-commit-config.yaml"]["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == ["podqos-check"]
    assert {hook["id"] for hook in hooks} <= HOOKS.keys()


# ---- hooks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS.keys())
def test_a_hook_runs_a_command_of_podqos_on_the_files_of_a_commit(hook):
    words = shlex.split(hook["entry"])
    assert words[0] == "podqos"
    assert words[1] in COMMANDS
    assert hook["language"] == "python"
    assert shell(f"{hook['entry']} manifests/debug-tools.yaml").returncode == 1
    assert shell(f"{hook['entry']} manifests/cdn-origin.yaml").returncode == 0


def test_the_hook_that_fixes_fixes():
    path = Path("rounded.yaml")
    amounts = "requests: {cpu: 1, memory: 4G}, limits: {cpu: 1, memory: 4Gi}"
    path.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
        f"spec:\n  containers:\n  - {{name: web, image: web, resources: {{{amounts}}}}}\n"
    )
    assert shell(f"{HOOKS['podqos-fix']['entry']} {path}").returncode == 0
    assert "requests: {cpu: 1, memory: 4Gi}" in path.read_text()


@pytest.mark.parametrize(
    ("name", "is_checked"),
    [
        ("manifests/web.yaml", True),
        ("web.yml", True),
        ("a/b.json", True),
        ("README.md", False),
        (".podqos.yaml", False),
        (".github/workflows/ci.yaml", False),
        ("charts/web/templates/deployment.yaml", False),
        ("charts/web/values.yaml", True),
    ],
)
@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS.keys())
def test_a_hook_sees_manifests(hook, name, is_checked):
    assert (re.search(hook["files"], name) is not None and re.search(hook["exclude"], name) is None) == is_checked


# ---- the action --------------------------------------------------------------------------------------------------


def run_action(**inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step that checks, with inputs where a workflow gives some and the defaults elsewhere."""
    step = ACTION["runs"]["steps"][-1]
    given = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
    variables = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda matched: given[matched[1]], value)
        for name, value in step["env"].items()
    }
    assert not [name for name, value in variables.items() if "${{" in value]
    assert "${{" not in step["run"]
    return shell(step["run"], **variables)


def test_the_action_shows_findings_as_workflow_commands():
    done = run_action(path="manifests")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("::")
    assert "::warning file=manifests/debug-tools.yaml,line=14,col=7,title=PQ102 " in done.stdout


def test_the_action_passes_its_inputs_on():
    assert run_action(path="manifests", **{"fail-on": "error"}).returncode == 0
    assert run_action(path="manifests/cdn-origin.yaml manifests/search-api.yaml").returncode == 0
    assert run_action(path="manifests", **{"min-severity": "error"}).stdout == ""
    shell("podqos check manifests --baseline known.json --write-baseline")
    assert run_action(path="manifests", baseline="known.json").returncode == 0
    titles = re.findall(r"title=(PQ\d+)", run_action(path="manifests", args="--only PQ102").stdout)
    assert {*titles} == {"PQ102"} < {*re.findall(r"title=(PQ\d+)", run_action(path="manifests").stdout)}


def test_inputs_of_the_action_are_no_text_of_its_script():
    done = run_action(path="manifests/cdn-origin.yaml", args="; touch broken-in; $(touch broken-in)")
    assert done.returncode == 2
    assert not Path("broken-in").exists()


def test_the_action_installs_what_it_comes_with_and_describes_its_inputs():
    install = ACTION["runs"]["steps"][1]
    assert install["env"]["PODQOS_SOURCE"] == "${{ github.action_path }}"
    assert ACTION["runs"]["using"] == "composite"
    assert all(one["description"] for one in ACTION["inputs"].values())
    assert (ROOT / "pyproject.toml").exists()
