"""What the node writes, on a disk that is full, read-only, or has one page left."""

from __future__ import annotations

import json
import resource
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from host.small_filesystem import needs_small_filesystem, on_small_filesystem
from podqos.agent.journal import Entry, Kind, decode
from podqos.host.runtimes.shim import ContainerLog, Shim
from podqos.host.storage.journal_file import JournalFile
from podqos.host.storage.pod_run import ContainerRunSpec, PodRun
from podqos.host.storage.state import PodState, StateDirectory
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec

POD = Pod(ObjectMeta(name="web", namespace="shop", uid="u1"), PodSpec((Container("main"),)))
OLD = PodState(POD, PodRun(containers=(ContainerRunSpec("main", command=("sleep",)),)), phase="Running")
NEW = replace(OLD, run=PodRun(containers=(ContainerRunSpec("main", command=("x" * 9000,)),)))
_STATE = (
    "from host.test_full_disk import *\n"
    "state = StateDirectory(folder, said.append)\nstate.save(OLD)\n"
    "def loaded(): said.append({repr(OLD): 'old', repr(NEW): 'new'}.get(*map(repr, state.load()), 'torn'))\n"
)


@contextmanager
def files_of_at_most(size: int):
    """Let this process write no further than so many bytes into any file: what is short of it is written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def notes():
    return []


class TestState:
    def test_a_write_that_is_cut_short_leaves_the_old_state_whole(self, tmp_path, notes):
        state = StateDirectory(tmp_path, notes.append)
        state.save(OLD)
        with files_of_at_most(4096):
            state.save(NEW)
            assert state.load() == [OLD]
        assert notes == ["state of shop/web not written: File too large; will retry"]
        state.save_late()
        assert state.load() == [NEW]
        assert notes[1:] == ["all state is saved again"]
        assert [file.name for file in (tmp_path / "pods").iterdir()] == ["u1.json"]
        state.close()

    def test_a_hurried_end_that_is_cut_short_is_written_later(self, tmp_path, notes):
        state = StateDirectory(tmp_path, notes.append)
        state.save(OLD)
        ending = replace(NEW, phase="Failed")
        with files_of_at_most(4096):
            state.save(ending, in_a_hurry=True)
            assert not (tmp_path / "pods" / "u1.ending").exists()
            assert state.load() == [OLD]
        state.save_late()
        assert state.load() == [ending]
        state.close()

    @needs_small_filesystem
    @pytest.mark.parametrize("pages", [0, 1], ids=["full", "one free page"])
    def test_a_full_disk_keeps_the_old_state_until_there_is_space(self, tmp_path, pages):
        said = on_small_filesystem(
            tmp_path, 64, f"{_STATE}fill(); free({pages}); state.save(NEW); loaded()\n"
            "state.close(); state = StateDirectory(folder, said.append); loaded()\n"
            "state.save(NEW); free(8); state.save_late(); loaded()",
        )  # fmt: skip
        full = "state of shop/web not written: No space left on device; will retry"
        assert said == [full, "old", "old", full, "all state is saved again", "new"]

    @needs_small_filesystem
    def test_read_only_state_is_read_and_written_once_that_is_possible(self, tmp_path):
        said = on_small_filesystem(
            tmp_path, 64, f"{_STATE}state.close(); remount('ro'); state = StateDirectory(folder, said.append)\n"
            "state.save(NEW); loaded(); remount('rw'); state.save_late(); loaded()\n"
            "remount('ro'); state.forget('u1'); loaded(); remount('rw'); state.save_late(); said.append(state.load())",
        )  # fmt: skip
        assert said == [
            "state of shop/web not written: Read-only file system; will retry", "old",
            "all state is saved again", "new",
            "state of pod u1 not removed: Read-only file system; will retry", "new",
            "all state is saved again", [],
        ]  # fmt: skip

    @needs_small_filesystem
    def test_a_damaged_record_on_a_read_only_disk_does_not_stop_the_node(self, tmp_path):
        said = on_small_filesystem(
            tmp_path, 64, f"{_STATE}(folder / 'pods' / 'bad.json').write_text('x'); state.close(); remount('ro')\n"
            "state = StateDirectory(folder, said.append); loaded()",
        )  # fmt: skip
        assert said[1:] == ["old"]
        assert "not the state of a pod" in said[0]


def entry(number: int, size: int = 0) -> Entry:
    return Entry(number, "n", Kind.ADMITTED, "p" * size)


class TestJournal:
    def test_a_line_that_is_cut_short_is_kept_in_memory_and_said(self, tmp_path, notes):
        path = tmp_path / "journal.jsonl"
        journal = JournalFile(path, notes.append)
        journal.write(entry(1))
        with files_of_at_most(4096):
            journal.write(entry(2, 8000))
            journal.write(entry(3))
            assert [each.time_us for each in decode(path.read_bytes())] == [1]
        assert notes == [f"{path}: No space left on device; the journal is kept in memory until it can be written"]
        journal.sync()
        assert [each.time_us for each in decode(path.read_bytes())] == [1, 2, 3]
        assert notes[1:] == [f"{path}: the journal is writable again"]
        journal.close()

    @needs_small_filesystem
    def test_a_full_and_a_read_only_disk_lose_no_line(self, tmp_path):
        said = on_small_filesystem(
            tmp_path, 64, "from host.test_full_disk import *\n"
            "notes = []; journal = JournalFile(folder / 'journal.jsonl', notes.append)\n"
            "journal.write(entry(1)); fill()\nfor number in range(2, 9): journal.write(entry(number, 1000))\n"
            "free(8); journal.sync(); remount('rw'); journal.close(); remount('ro')\n"
            "journal = JournalFile(folder / 'journal.jsonl', notes.append); journal.write(entry(9))\n"
            "remount('rw'); journal.sync()\n"
            "said += [entry.time_us for entry in decode((folder / 'journal.jsonl').read_bytes())]\n"
            "said += [note.split(': ')[1].split(';')[0] for note in notes]",
        )  # fmt: skip
        again = "the journal is writable again"
        assert said == [*range(1, 10), "No space left on device", again, "Read-only file system", again]


class TestKeeper:
    def test_a_log_without_space_loses_whole_lines_and_says_how_many(self, tmp_path):
        path = tmp_path / "0.log"
        log = ContainerLog(str(path), 1 << 20, 3)
        log.write(b"stdout", b"first", is_whole=True)
        with files_of_at_most(path.stat().st_size + 8):
            for _ in range(2):
                log.write(b"stdout", b"no space", is_whole=True)
        log.write(b"stdout", b"last", is_whole=True)
        log.end()
        lines = [line.split(" ", 3)[1:] for line in path.read_text().splitlines()]
        assert lines == [
            ["stdout", "F", "first"],
            ["stderr", "F", "podqos: 2 lines lost: No space left on device"],
            ["stdout", "F", "last"],
        ]

    def test_a_log_that_cannot_be_opened_at_first_is_written_once_it_can(self, tmp_path):
        log = ContainerLog(str(tmp_path / "logs" / "0.log"), 1 << 20, 3)
        log.write(b"stdout", b"lost", is_whole=True)
        (tmp_path / "logs").mkdir()
        log.write(b"stdout", b"kept", is_whole=True)
        log.end()
        assert (tmp_path / "logs" / "0.log").read_text().endswith("kept\n")

    def test_an_exit_that_is_cut_short_is_recorded_with_the_next_one(self, tmp_path, monkeypatch):
        monkeypatch.setattr("signal.set_wakeup_fd", lambda *_args, **_kwargs: -1)
        monkeypatch.setattr("signal.signal", lambda *_args: None)
        shim = Shim(str(tmp_path / "shim.sock"))
        with files_of_at_most(16):
            shim._record("a/main/0", 1, "")
        assert (tmp_path / "exits").read_bytes() == b""
        shim._record("b/main/0", 2, "")
        lines = [json.loads(line) for line in (tmp_path / "exits").read_bytes().splitlines()]
        assert [(line["id"], line["code"]) for line in lines] == [("a/main/0", 1), ("b/main/0", 2)]
        shim._listener.close()
        shim._selector.close()
