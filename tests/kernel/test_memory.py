"""Watermarks and MemAvailable: by hand, and as the kernel of this machine computes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.procfs import meminfo, zoneinfo
from podqos.kernel.memory import (
    Watermarks,
    Zone,
    ZoneWatermarks,
    default_min_free_kib,
    machine,
    mem_available_bytes,
    watermarks,
    x86_zones,
    zone_watermarks,
)

MI = 2**20
GI = 2**30

# A machine with 5 GiB, read from its /proc/zoneinfo; vm.min_free_kbytes is 67584.
ZONES = (Zone("DMA", 3840), Zone("DMA32", 772578), Zone("Normal", 491520), Zone("Movable", 0))
SHOWN = (
    ZoneWatermarks(ZONES[0], 51, 63, 75, 4937),
    ZoneWatermarks(ZONES[1], 10295, 12868, 15441, 1920),
    ZoneWatermarks(ZONES[2], 6549, 8186, 9823, 0),
    ZoneWatermarks(ZONES[3], 32, 32, 32, 0),
)


def test_watermarks_of_each_zone_are_those_the_kernel_showed():
    assert zone_watermarks(ZONES, 67584) == SHOWN


def test_huge_pages_raise_what_is_kept_free():
    """Three zones of eleven page blocks each: 66 MiB, on every machine big enough."""
    assert default_min_free_kib(ZONES) == 67584
    assert default_min_free_kib(x86_zones(64 * GI)) == 67584
    assert default_min_free_kib(x86_zones(64 * GI), huge_pages=False) == 32768


def test_a_small_machine_keeps_at_most_a_twentieth_free_for_huge_pages():
    assert default_min_free_kib(x86_zones(600 * MI)) == 600 * 1024 // 20


def test_a_tiny_machine_has_no_huge_pages_to_keep_memory_for():
    assert default_min_free_kib(x86_zones(400 * MI)) == 2560


@pytest.mark.parametrize(
    ("memory", "kib"), [(512 * 1024, 128), (MI, 128), (4 * MI, 256), (4096 * GI, 262144), (16384 * GI, 262144)]
)
def test_what_is_kept_free_grows_with_the_root_of_memory_within_bounds(memory, kib):
    """init_per_zone_wmark_min: 4 × √KiB, at least 128 and at most 262144."""
    assert default_min_free_kib((Zone("DMA", memory // 4096),), huge_pages=False) == kib


def test_huge_pages_begin_at_512_mib():
    """hugepage_init: less memory than that is not worth them."""
    assert default_min_free_kib((Zone("DMA32", 512 * MI // 4096),)) == 11 * 512 * 4
    assert default_min_free_kib((Zone("DMA32", 512 * MI // 4096 - 1),)) == 2896


def test_on_a_large_machine_the_marks_are_a_thousandth_of_memory_apart():
    """vm.watermark_scale_factor is 10, of 10,000."""
    (mark,) = zone_watermarks((Zone("Normal", 16_000_000),), 67584)
    assert (mark.min_pages, mark.low_pages, mark.high_pages) == (16896, 16896 + 16000, 16896 + 32000)


def test_each_zone_reserves_a_part_of_those_above_it_and_the_highest_nothing():
    """vm.lowmem_reserve_ratio is 256 256 32."""
    zones = (Zone("DMA", 3840), Zone("DMA32", 700_000), Zone("Normal", 1_000_000), Zone("Movable", 640_000))
    reserves = [mark.lowmem_reserve_pages for mark in zone_watermarks(zones, 67584)]
    assert reserves == [2_340_000 // 256, 1_640_000 // 256, 640_000 // 32, 0]


def test_the_lowest_zone_is_wholly_out_of_reach_of_ordinary_allocations():
    """Its reserve for others is bigger than itself: 15 MiB can stay free while processes are killed."""
    marks = watermarks(SHOWN)
    assert marks.min_bytes == 4096 * (3840 + 10295 + 1920 + 6549)
    assert marks.total_reserve_bytes == 4096 * (3840 + 15441 + 1920 + 9823)


def test_marks_rise_from_min_to_low_to_high():
    marks = machine(64 * GI).watermarks
    assert 66 * MI < marks.min_bytes < marks.low_bytes < marks.high_bytes < GI


def test_adjustments_in_a_global_oom_are_of_ram_and_swap():
    assert machine(64 * GI, swap_bytes=8 * GI).oom_total_pages == 72 * GI // 4096


@pytest.mark.parametrize(
    ("free", "file", "expected"),
    [
        pytest.param(500, 0, 400, id="free memory less the reserve"),
        pytest.param(500, 400, 750, id="of much cache the low watermark stays"),
        pytest.param(500, 60, 430, id="of little cache half stays"),
        pytest.param(50, 0, 0, id="never below zero"),
    ],
)
def test_mem_available(free, file, expected):
    marks = Watermarks(20, 50, 80, zone_low_bytes=50, total_reserve_bytes=100)
    assert mem_available_bytes(marks, free_bytes=free, file_bytes=file) == expected


@pytest.mark.skipif(not Path("/proc/zoneinfo").exists(), reason="/proc/zoneinfo is missing: this is not Linux")
class TestAgainstProc:
    """The same arithmetic with this machine's own numbers."""

    def test_watermarks(self):
        shown = zoneinfo()
        if len({zone.zone.name for zone in shown}) < len(shown):
            pytest.skip("this machine has several memory nodes; the model has one")
        if any(zone.zone.name == "HighMem" for zone in shown):
            pytest.skip("this machine has high memory; the model is of 64-bit kernels")
        scale = int(Path("/proc/sys/vm/watermark_scale_factor").read_text())
        least = int(Path("/proc/sys/vm/min_free_kbytes").read_text())
        computed = zone_watermarks(tuple(zone.zone for zone in shown), least, scale)
        for zone, mark in zip(shown, computed, strict=True):
            # Memory that came or went since the marks were set, or a boost, shifts them a little.
            for name in ("min_pages", "low_pages", "high_pages"):
                assert getattr(mark, name) == pytest.approx(getattr(zone, name), rel=0.02, abs=64), zone.zone.name

    def test_mem_available(self):
        """Counters move between two lines of the file; one quiet moment in many proves it."""
        marks = watermarks(zoneinfo())
        distances = []
        for _ in range(50):
            shown = meminfo()
            computed = mem_available_bytes(
                marks,
                free_bytes=shown["MemFree"],
                file_bytes=shown["Active(file)"] + shown["Inactive(file)"],
                reclaimable_kernel_bytes=shown["KReclaimable"],
            )
            distances.append(abs(computed - shown["MemAvailable"]))
        assert min(distances) <= MI
