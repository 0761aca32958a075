from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from podqos.agent.journal import Entry, Kind, decode
from podqos.host.storage.journal_file import JournalFile


def _entry(number: int) -> Entry:
    return Entry(number, "n", Kind.ADMITTED, f"default/p{number}")


def _times(path) -> list[int]:
    return [entry.time_us for entry in decode(path.read_bytes())]


def test_lines_are_appended_over_restarts(tmp_path):
    path = tmp_path / "journal.jsonl"
    for number in (1, 2):
        journal = JournalFile(path, pytest.fail)
        journal.write(_entry(number))
        journal.close()
    assert _times(path) == [1, 2]


def test_a_line_that_a_power_cut_tore_is_dropped(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, pytest.fail)
    journal.write(_entry(1))
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"time_us":2,"no')
    journal = JournalFile(path, pytest.fail)
    journal.write(_entry(3))
    journal.close()
    assert _times(path) == [1, 3]


def test_a_full_disk_keeps_lines_in_memory_and_says_so_once(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.symlink_to("/dev/full")
    notes: list[str] = []
    journal = JournalFile(path, notes.append)
    for number in (1, 2, 3):
        journal.write(_entry(number))
    assert len(notes) == 1
    assert "kept in memory" in notes[0]
    path.unlink()
    os.close(journal._file)
    journal._file = -1
    journal.write(_entry(4))
    journal.close()
    assert _times(path) == [1, 2, 3, 4]


def test_old_journals_are_rotated_away(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, pytest.fail, max_bytes=200, max_files=3)
    for number in range(20):
        journal.write(_entry(number))
    journal.close()
    kept = [path.with_name("journal.jsonl.2"), path.with_name("journal.jsonl.1"), path]
    assert sorted(tmp_path.iterdir()) == sorted(kept)
    times = [time for file in kept for time in _times(file)]
    assert times == list(range(20))[-len(times) :]


def test_every_line_that_was_written_survives_a_kill(tmp_path):
    path = tmp_path / "journal.jsonl"
    code = (
        "import sys; from pathlib import Path; from podqos.host.storage.journal_file import JournalFile; "
        "from podqos.agent.journal import Entry, Kind\n"
        f"journal = JournalFile(Path({str(path)!r}), print)\n"
        "for number in range(10**9):\n"
        "    journal.write(Entry(number, 'n', Kind.ADMITTED)); sys.stdout.write(f'{number}\\n'); sys.stdout.flush()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(100)]
        writer.send_signal(signal.SIGKILL)
        said += writer.stdout.read().split()
    assert _times(path)[: int(said[-1]) + 1] == list(range(int(said[-1]) + 1))
