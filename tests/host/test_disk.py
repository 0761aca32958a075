from __future__ import annotations

import os
from pathlib import Path

from podqos.host.linux.disk import DiskMeter, advance, filesystem, removing, usage


def _fill(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "one").write_bytes(b"x" * 100_000)
    (folder / "deep" / "two").write_bytes(b"x" * 50_000)
    os.link(folder / "one", folder / "deep" / "one-again")
    (folder / "away").symlink_to("/usr")


def test_a_file_with_two_names_counts_once_and_links_are_not_followed(tmp_path):
    _fill(tmp_path)
    found = usage(tmp_path)
    assert found.inodes == 5
    assert 150_000 <= found.used_bytes < 250_000


def test_what_is_not_there_is_none(tmp_path):
    assert usage(tmp_path / "gone") is None
    assert filesystem(tmp_path / "gone") is None


def test_a_filesystem_has_what_statvfs_says(tmp_path):
    found, expected = filesystem(tmp_path), os.statvfs(tmp_path)
    assert found.capacity_bytes == expected.f_blocks * expected.f_frsize
    assert found.inodes == expected.f_files
    assert 0 <= found.available_bytes <= found.capacity_bytes


def test_a_meter_measures_a_little_at_a_time_and_keeps_the_last_figures(tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
        for number in range(300):
            (folder / str(number)).touch()
    meter = DiskMeter()
    meter.begin(folders)
    meter.go_on(0)
    assert not meter.is_done
    assert meter.of(folders[0]) is None
    meter.go_on(60)
    assert [meter.of(folder).inodes for folder in folders] == [301, 301]
    meter.begin([folders[0]])
    assert meter.of(folders[0]).inodes == 301
    assert meter.of(folders[1]) is None


def test_a_directory_is_removed_a_little_at_a_time_and_links_are_not_followed(tmp_path):
    kept, folder = tmp_path / "kept", tmp_path / "folder"
    kept.mkdir()
    (kept / "file").touch()
    (folder / "deep" / "er").mkdir(parents=True)
    for number in range(50):
        (folder / "deep" / str(number)).touch()
    (folder / "link").symlink_to(kept)
    work = removing(folder)
    assert not advance(work, 0)
    assert folder.exists()
    assert advance(work, 60)
    assert not folder.exists()
    assert (kept / "file").exists()
    assert advance(removing(folder), 0)
