"""Files that commands write: whole or not at all, and what is no file stays what it is."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from podqos.errors import HostError
from podqos.reading.written_files import write_chunks, write_file


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_chunks(str(pipe), (b"a", b"b"))
    reader.join(300)

    assert got == [b"ab"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(HostError, match="No space left on device"):
        write_file(str(link), b"x")

    assert stat.S_ISCHR(link.stat().st_mode)


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(HostError, match="Is a directory"):
        write_file(str(tmp_path), b"x")


def test_what_fails_half_way_leaves_the_old_file(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")

    def chunks():
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_chunks(str(file), chunks())

    assert file.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
