"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from podqos.reading.written_files import write_file


def test_what_was_there_is_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    write_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_it_may_be_read_by_whoever_may_read_new_files(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    write_file(str(tmp_path / "file"), b"")
    usual, own = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "file"))
    assert own == usual


def test_an_interruption_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
