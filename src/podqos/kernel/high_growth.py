"""How far a process gets that allocates as fast as it can in a cgroup above ``memory.high``.

After each batch of 64 pages (256 KiB) it sleeps 64 s × (overage / high)², at most 2 s, and not at all below 10 ms,
which is an overage of 1/80. So the overage x grows by 256 KiB / (64 s × x²/high²), and x³ by 12288 B/s × high²: a model
of the kernel's sleeps, exact but for their rounding. The time of the allocations themselves is left out.

Source: Linux mm/memcontrol.c (calculate_overage, calculate_high_delay, mem_cgroup_handle_over_high), by
``charge.high_delay_usec``.
"""

from __future__ import annotations

_SECOND_USEC = 1_000_000
_UNHINDERED = 80
_CUBE_BYTES_PER_SECOND = 3 * 4096
_SLOWEST_BYTES_PER_SECOND = 128 << 10
"""With the longest sleep: 256 KiB every 2 s."""
_SLOWEST_SQUARE = 32
"""That is reached when overage² × 32 is high²."""


def unhindered_bytes(high_bytes: int) -> int:
    """Return up to where a process is not slowed."""
    return high_bytes + high_bytes // _UNHINDERED


def is_slowest(usage_bytes: int, high_bytes: int) -> bool:
    """Whether every batch costs the longest sleep."""
    return usage_bytes > high_bytes and _SLOWEST_SQUARE * (usage_bytes - high_bytes) ** 2 >= high_bytes**2


def usage_after_bytes(usage_bytes: int, high_bytes: int, time_usec: int) -> int:
    """Return what is in use after a while, from above ``high`` on."""
    begin = max(usage_bytes, unhindered_bytes(high_bytes))
    if is_slowest(begin, high_bytes):
        return begin + _SLOWEST_BYTES_PER_SECOND * time_usec // _SECOND_USEC
    cube = (begin - high_bytes) ** 3 + _CUBE_BYTES_PER_SECOND * high_bytes**2 * time_usec // _SECOND_USEC
    return high_bytes + _cube_root(cube)


def _cube_root(cube: int) -> int:
    """Return the cube root, rounded down, the same on every machine."""
    root = 1 << -(-cube.bit_length() // 3)
    while True:
        better = (2 * root + cube // root**2) // 3
        if better >= root:
            return root
        root = better
