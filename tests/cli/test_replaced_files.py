"""A file is replaced as a whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from podqos.errors import HostError
from podqos.reading import written_files
from podqos.reading.written_files import replace_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pod.yaml"
    path.write_bytes(b"old\r\n")
    path.chmod(0o640)
    return path


def only_file(path: Path) -> bool:
    return [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_new_text_takes_the_place_of_the_old_with_the_same_rights(file):
    replace_file(str(file), b"old\r\n", b"new\n")
    assert file.read_bytes() == b"new\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert only_file(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(file):
    os.chown(file, 1234, 2345)
    replace_file(str(file), b"old\r\n", b"new\n")
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 2345)


def test_a_link_is_followed_and_stays_one(file, tmp_path):
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.yaml"
    link.symlink_to("../pod.yaml")
    replace_file(str(link), b"old\r\n", b"new\n")
    assert link.is_symlink()
    assert file.read_bytes() == b"new\n"
    assert only_file(link)


def test_a_file_that_has_changed_meanwhile_is_left_alone(file):
    with pytest.raises(HostError, match=r"pod\.yaml: not written: it has changed since it was read"):
        replace_file(str(file), b"older\n", b"new\n")
    assert file.read_bytes() == b"old\r\n"


def test_a_read_only_file_is_left_alone(file, monkeypatch):
    monkeypatch.setattr(written_files.os, "access", lambda _path, _mode: False)  # root may write everything
    with pytest.raises(HostError, match=r"pod\.yaml: not written: it is read-only"):
        replace_file(str(file), b"old\r\n", b"new\n")
    assert file.read_bytes() == b"old\r\n"
    assert only_file(file)


def test_a_file_that_is_gone_is_an_error(tmp_path):
    with pytest.raises(HostError, match=r"gone\.yaml: not written: No such file or directory"):
        replace_file(str(tmp_path / "gone.yaml"), b"", b"new\n")


@pytest.mark.parametrize("step", ["fsync", "fchmod", "replace"])
@pytest.mark.parametrize(
    ("error", "raised"), [(KeyboardInterrupt(), KeyboardInterrupt), (OSError(28, "No space left"), HostError)]
)
def test_whatever_interrupts_it_the_old_text_is_there_and_nothing_else(file, monkeypatch, step, error, raised):
    def interrupted(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(written_files.os, step, interrupted)
    with pytest.raises(raised):
        replace_file(str(file), b"old\r\n", b"new\n")
    assert file.read_bytes() == b"old\r\n"
    assert only_file(file)
