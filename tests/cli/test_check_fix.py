"""``podqos check --fix`` over a corpus of manifests in many styles, and what it does when it may not write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.library import written_files

CORPUS = Path(__file__).parents[1] / "manifest" / "fix_corpus"
LIMITED = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: c, image: i, resources: {limits: {memory: 1Gi}}}
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a repository of its own, so that no configuration above it is found."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def findings(capsys: pytest.CaptureFixture[str], path: str) -> list[dict]:
    main(["check", "-o", "json", "-f", path])
    return json.loads(capsys.readouterr().out)["items"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_corpus_is_mended_once_and_what_was_mended_is_not_found_again(capsys):
    folder = Path("corpus")
    shutil.copytree(CORPUS, folder, ignore=shutil.ignore_patterns("expected"))
    original = contents(folder)
    before = findings(capsys, "corpus")
    assert main(["check", "--fix", "-f", "corpus"]) == 2  # some of it cannot be read
    err = capsys.readouterr().err
    mended = contents(folder)
    changed = {name for name in mended if mended[name] != original[name]}
    assert len(changed) >= 10
    after = findings(capsys, "corpus")
    assert len(after) < len(before)
    for finding in after:
        if finding["patch"]["isComplete"] and not finding["patch"]["onRequest"]:
            assert f"{finding['source']}: not fixed: {finding['check']} " in err
    main(["check", "--fix", "-f", "corpus"])
    assert contents(folder) == mended


def test_a_file_that_cannot_be_written_is_said_and_the_others_are_written(capsys, monkeypatch):
    for name in ("a.yaml", "b.yaml"):
        Path(name).write_text(LIMITED)
    monkeypatch.setattr(written_files.os, "access", lambda path, _mode: not path.endswith("a.yaml"))
    assert main(["check", "--fix", "-f", "a.yaml", "-f", "b.yaml"]) == 3
    err = capsys.readouterr().err
    assert "a.yaml: not written: it is read-only (make it writable)" in err
    assert "a.yaml: fixed" not in err
    assert "b.yaml: fixed 1 finding" in err
    assert Path("a.yaml").read_text() == LIMITED
    assert "requests: {memory: 1Gi}" in Path("b.yaml").read_text()


def test_colours_are_for_a_terminal(capsys):
    Path("a.yaml").write_text(LIMITED)
    main(["check", "--diff", "--color", "always", "-f", "a.yaml"])
    assert "\x1b[32m+  - {name: c" in capsys.readouterr().out
    main(["check", "--diff", "-f", "a.yaml"])
    assert "\x1b" not in capsys.readouterr().out
    assert Path("a.yaml").read_text() == LIMITED
