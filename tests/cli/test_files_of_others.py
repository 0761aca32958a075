"""Files of a repository that are not manifests: of other programs and of tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from podqos.cli.main import EXIT_BAD_INPUT, main

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: web:1}]}\n"
PART = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {(length(containers)): 2}}}\nstatus: {a: 1}\n"
BROKEN = "apiVersion: v1\nkind: Pod\nmetadata: {name: web\n"
OF_OTHERS = {
    "tsconfig.json": '{\n  // what to compile\n  "include": ["src"], /* all */\n  "files": [],\n}\n',
    "babel.config.json": '{"presets": ["env"], // "apiVersion" is only a word here\n}\n',
    "devcontainer.json": '{"features": {"ghcr.io/devcontainers/features/go:1": {}}, // containers\n "x": 1 }\n',
    "settings.json": '{"a": 1,, }\n',
    "events.json": '{"level": "info"}\n{"level": "warn"}\n{"level":\n',
    "package-lock.json": '{"lockfileVersion": 3, "packages": {"": {"name": "a", "name": "b"}}}\n',
    "pnpm-lock.yaml": "lockfileVersion: '9.0'\npackages: {a@1: {}}\n",
    "dashboard.json": '{"panels": [{"title": "{{pod}}"}], "schemaVersion": 39}\n',
    "empty.json": "",
    "site.yaml": "title: a\ntitle: b\n",
    "page.yaml": "{% include x %}\n  - a: [\n",
    "machine.yaml": "#cloud-config\n%{ for path in files }\n  - path: ${path}\n",
    "proposal.yaml": "reviewers:\n  - @somebody\n",
    "empty.yaml": "",
    "commented-out.yaml": "# apiVersion: v1\n# kind: Pod\n---\n",
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("tree").mkdir()
    Path("tree/web.yaml").write_text(POD)


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_file_of_another_program_is_passed_over_silently(capsys, name):
    Path("tree", name).write_text(OF_OTHERS[name])
    assert main(["explain", "tree"]) == 0
    assert name not in capsys.readouterr().err


def test_a_broken_manifest_in_json_is_an_error_with_its_place(capsys):
    Path("tree/pod.json").write_text('{"apiVersion": "v1",\n "kind": "Pod", // mine\n "metadata": {}}\n')
    assert main(["explain", "tree"]) == EXIT_BAD_INPUT
    assert "tree/pod.json:2:17: error: broken JSON: " in capsys.readouterr().err


def test_a_file_of_another_program_is_an_error_if_it_is_named(capsys):
    Path("tsconfig.json").write_text(OF_OTHERS["tsconfig.json"])
    assert main(["explain", "tsconfig.json"]) == EXIT_BAD_INPUT
    assert "tsconfig.json:3:12: error: broken " in capsys.readouterr().err


ASSERTIONS = [
    "00-assert.yaml",
    "assert.yaml",
    "assert-ready.yaml",
    "install-assert.yml",
    "assertions.yaml",
    "01-errors.yaml",
]
MANIFESTS = ["errors.yaml", "asserted.yaml", "custom-errors.yaml", "reassert.yaml"]


@pytest.mark.parametrize("name", ASSERTIONS)
def test_an_assertion_of_a_test_is_not_read_unless_it_is_named(capsys, name):
    Path("tree", name).write_text(PART)
    assert main(["explain", "tree"]) == 0
    skipped = f"tree: warning: skipped 1 test assertion (tree/{name}): parts of objects, not manifests"
    assert f"{skipped} (name a file to read it)\n" in capsys.readouterr().err
    assert main(["explain", f"tree/{name}"]) == EXIT_BAD_INPUT


@pytest.mark.parametrize("name", MANIFESTS)
def test_other_names_are_read(capsys, name):
    Path("tree", name).write_text(PART)
    assert main(["explain", "tree"]) == EXIT_BAD_INPUT
    assert f"tree/{name}:" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["testdata", "a/fixtures/b", "invalid", "test/web"])
def test_what_is_broken_in_the_input_of_tests_is_no_error_and_said_once(capsys, folder):
    below = Path("tree", folder)
    below.mkdir(parents=True)
    for number in range(3):
        (below / f"{number}.yaml").write_text(BROKEN)
    (below / "good.yaml").write_text(POD.replace("web", "good"))
    assert main(["explain", "tree"]) == 0
    out, err = capsys.readouterr()
    assert "good" in out
    what = f"{below}/0.yaml: warning: test input: what cannot be read is skipped, here and in 2 more files"
    assert err.count("warning: test input") == 1
    assert what in err
    assert main(["explain", str(below)]) == EXIT_BAD_INPUT


def test_next_to_assertions_parts_of_objects_are_no_errors(capsys):
    Path("tree/01-assert.yaml").write_text(PART)
    Path("tree/02-patch.yaml").write_text(PART.replace("(length(containers))", "replicas"))
    assert main(["check", "tree", "--fail-on", "never"]) == 0
    assert ": error: " not in capsys.readouterr().err


def test_files_of_tests_in_a_revision_are_treated_alike(capsys):
    Path(".git").rmdir()
    Path("tree/testdata").mkdir()
    Path("tree/testdata/broken.yaml").write_text(BROKEN)
    Path("tree/00-assert.yaml").write_text(PART)
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a"]):
        subprocess.run([*run, *command], check=True)
    assert main(["drift", "HEAD:tree", "tree"]) == 0
    assert ": error: " not in capsys.readouterr().err


def test_of_a_key_that_is_set_twice_the_last_counts_with_a_warning(capsys):
    Path("tree/web.yaml").write_text(POD.replace("image: web:1", "image: web:1, image: web:2"))
    assert main(["explain", "tree"]) == 0
    assert 'tree/web.yaml:4:48: warning: key "image" is set twice' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("nothing.yaml", None, "No such file or directory (check the path)"),
        ("program.yaml", bytes(range(256)), "binary data, not a manifest (give YAML or JSON)"),
        ("latin.yaml", b"caf\xe9: [", "byte 0xe9 is not UTF-8 (save the file as UTF-8)"),
    ],
)
def test_a_file_that_is_no_text_is_an_error_as_it_may_be_a_manifest(capsys, name, data, what):
    if data is None:
        Path("tree", name).symlink_to("elsewhere")
    else:
        Path("tree", name).write_bytes(data)
    assert main(["explain", "tree"]) == EXIT_BAD_INPUT
    (line,) = [line for line in capsys.readouterr().err.splitlines() if ": error: " in line]
    assert line.startswith(f"tree/{name}:")
    assert line.endswith(what)


def test_a_directory_that_cannot_be_read_is_an_error_and_the_rest_is_read(capsys, monkeypatch):
    Path("tree/closed").mkdir()
    scandir = os.scandir

    def closed(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert main(["explain", "tree"]) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert "web" in out
    assert "tree/closed: error: Permission denied (make the directory readable)\n" in err
