"""What keeps a guard from evicting, and when it may again."""

from __future__ import annotations

import os
import time

import pytest

from podqos.agent.journal import By, Entry, Kind, encode
from podqos.guard.brakes import Brakes, HeldBack, earlier_evictions
from podqos.guard.settings import GuardSettings
from podqos.host.storage.journal_file import JournalFile, journal_files
from podqos.model.kubelet_config import KubeletConfiguration

SECOND = 1_000_000


def brakes(tmp_path, *, off=False, evicted=(), **options):
    settings = GuardSettings(
        node="n", kubelet=KubeletConfiguration(), run=tmp_path, **{"enforce": True, "cool_down_us": SECOND, **options}
    )
    return Brakes(settings, lambda: off, evicted)


def test_a_guard_that_was_not_told_to_enforce_evicts_nothing_ever(tmp_path):
    assert brakes(tmp_path, enforce=False).held_back(0) is HeldBack.SHADOW


def test_a_stop_file_and_the_nodes_annotation_each_switch_it_off(tmp_path):
    assert brakes(tmp_path).held_back(0) is None
    assert brakes(tmp_path, off=True).held_back(0) is HeldBack.NODE_ANNOTATION
    (tmp_path / "stop").touch()
    assert brakes(tmp_path).held_back(0) is HeldBack.STOP_FILE


def test_no_more_than_so_many_evictions_within_a_time(tmp_path):
    held = brakes(tmp_path, most=2, most_within_us=100 * SECOND)
    held.evicted(10 * SECOND)
    assert held.held_back(20 * SECOND) is None
    held.evicted(20 * SECOND)
    assert held.held_back(30 * SECOND) is HeldBack.RATE_LIMIT
    assert held.free_again_us(30 * SECOND) == 110 * SECOND
    assert held.limit(30 * SECOND).recent == 2
    assert held.held_back(110 * SECOND - 1) is HeldBack.RATE_LIMIT
    assert held.held_back(110 * SECOND) is None


def test_between_two_evictions_lies_the_cool_down(tmp_path):
    held = brakes(tmp_path)
    held.evicted(10 * SECOND)
    assert held.held_back(11 * SECOND - 1) is HeldBack.COOL_DOWN
    assert held.free_again_us(11 * SECOND - 1) == 11 * SECOND
    assert held.limit(11 * SECOND - 1).cool_down_until_us == 11 * SECOND
    assert held.held_back(11 * SECOND) is None
    assert held.free_again_us(11 * SECOND) is None


def test_the_cool_down_counts_from_the_latest_eviction(tmp_path):
    held = brakes(tmp_path, most=5)
    held.evicted(10 * SECOND)
    held.evicted(20 * SECOND)
    assert held.held_back(20 * SECOND + SECOND // 2) is HeldBack.COOL_DOWN
    assert held.free_again_us(20 * SECOND + SECOND // 2) == 21 * SECOND
    assert held.limit(20 * SECOND + SECOND // 2).cool_down_until_us == 21 * SECOND
    assert held.held_back(21 * SECOND) is None


def test_a_server_that_refuses_is_not_asked_for_a_while(tmp_path):
    held = brakes(tmp_path)
    held.refused_until_us = 60 * SECOND
    assert held.held_back(59 * SECOND) is HeldBack.REFUSED
    assert held.held_back(60 * SECOND) is None


@pytest.mark.parametrize("torn", [b"", b'{"time_us": 3, "no'])
def test_a_restarted_guard_is_held_to_the_same_rate(tmp_path, torn):
    entries = [
        Entry(10, "n", Kind.EVICTED, "a/b", by=By.GUARD),
        Entry(20, "n", Kind.EVICTED, "a/c", by=By.GUARD),
        Entry(30, "n", Kind.EVICTED, "a/d", by=By.KUBELET),
        Entry(40, "n", Kind.WOULD_EVICT, "a/e", by=By.GUARD),
    ]
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(encode(entries) + torn)
    assert list(earlier_evictions(journal, 0)) == [10, 20]
    assert list(earlier_evictions(journal, 10)) == [20]
    assert brakes(tmp_path, most=2, evicted=[20, 10]).held_back(SECOND * 30) is HeldBack.RATE_LIMIT


def test_evictions_count_however_much_was_written_since_and_in_older_files(tmp_path):
    journal = tmp_path / "journal.jsonl"
    kept = JournalFile(journal, print, max_bytes=2 << 20)
    now_us = time.time_ns() // 1000
    for number in range(3):
        kept.write(Entry(now_us + number, "n", Kind.EVICTED, "a/b", by=By.GUARD))
        for _ in range((3 << 20) // 1000):
            kept.write(Entry(now_us + number, "n", Kind.OBSERVED, "x" * 1000))
    kept.close()
    assert len(journal_files(journal)) > 3
    assert list(earlier_evictions(journal, now_us - SECOND)) == [now_us, now_us + 1, now_us + 2]
    assert list(earlier_evictions(journal, now_us)) == [now_us + 1, now_us + 2]


def test_old_files_are_not_read(tmp_path):
    journal = tmp_path / "journal.jsonl"
    line = encode([Entry(7, "n", Kind.EVICTED, "a/b", by=By.GUARD)])
    journal.write_bytes(line)
    os.utime(journal, (1, 1))
    assert list(earlier_evictions(journal, 0)) == [7]
    assert not list(earlier_evictions(journal, 2 * SECOND))


def test_without_a_journal_nothing_was_evicted(tmp_path):
    assert not list(earlier_evictions(tmp_path / "journal.jsonl", 0))
