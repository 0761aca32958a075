from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podqos.host.storage import tailing
from podqos.host.storage.tailing import lines_of


def _all(pieces):
    return b"".join(piece for piece in pieces if piece)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(tailing, "_PIECE_BYTES", 16)


@given(
    files=st.lists(
        st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"-")), max_size=8), max_size=4
    ),
    last=st.none() | st.integers(0, 30),
    piece=st.integers(1, 64),
)
@settings(max_examples=60, deadline=None)
def test_the_last_lines_are_the_last_lines_over_all_files(tmp_path_factory, files, last, piece):
    folder = tmp_path_factory.mktemp("files")
    paths = []
    for number, lines in enumerate(files):
        paths.append(folder / str(number))
        paths[-1].write_bytes(b"".join(line + b"\n" for line in lines))
    every = [line + b"\n" for lines in files for line in lines]
    wanted = every if last is None else every[len(every) - min(last, len(every)) :]
    before, tailing._PIECE_BYTES = tailing._PIECE_BYTES, piece
    try:
        assert _all(lines_of(lambda: paths, last=last)) == b"".join(wanted)
    finally:
        tailing._PIECE_BYTES = before


def test_following_goes_on_over_a_rename_and_ends_with_the_writer(tmp_path, small_pieces):
    log, runs = tmp_path / "log", [True]
    log.write_bytes(b"one\n")
    pieces = lines_of(lambda: [log], goes_on=lambda: runs[0])
    assert next(pieces) == b"one\n"
    assert next(pieces) is None
    with log.open("ab") as file:
        file.write(b"two\nhal")
    assert next(pieces) == b"two\n"
    assert next(pieces) is None
    with log.open("ab") as file:
        file.write(b"f\n")
    log.rename(tmp_path / "log.1")
    log.write_bytes(b"three\n")
    got = []
    while (piece := next(pieces)) is not None:
        got.append(piece)
    assert b"".join(got) == b"half\nthree\n"
    with log.open("ab") as file:
        file.write(b"last words")
    runs[0] = False
    assert _all(pieces) == b"last words"


def test_a_file_that_is_not_there_has_no_lines(tmp_path):
    assert list(lines_of(lambda: [tmp_path / "none"])) == []
    assert list(lines_of(lambda: [tmp_path / "none"], last=3)) == []


def test_lines_come_whole(tmp_path, small_pieces):
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"%d\n" % number for number in range(100)))
    assert all(piece.endswith(b"\n") for piece in lines_of(lambda: [log]) if piece)
