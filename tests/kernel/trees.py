"""Small machines and trees of cgroups for tests."""

from __future__ import annotations

from hypothesis import strategies as st

from podqos.kernel.memcg import Kind, MemcgSettings, Memory
from podqos.kernel.memory import Machine, Watermarks

MI = 2**20
GI = 2**30

# Round figures: 16 MiB may never be handed out, kswapd wakes at 32 MiB and sleeps again at 48 MiB.
MARKS = Watermarks(16 * MI, 32 * MI, 48 * MI, zone_low_bytes=32 * MI, total_reserve_bytes=48 * MI)


def memory(total_bytes: int = GI, *, swap_bytes: int = 0, version: int = 2, **groups: MemcgSettings) -> Memory:
    """Return a machine; ``a__b=settings`` is the cgroup /a/b."""
    state = Memory(Machine(total_bytes, MARKS, swap_bytes, version))
    for name, settings in groups.items():
        state.add("/" + name.replace("__", "/"), settings)
    return state


def holding(state: Memory, path: str, **amounts_bytes: int) -> Memory:
    """Put memory into a cgroup: ``anon=``, ``active_file=``, ``inactive_file=``, ``kernel=``, ``swap=``."""
    for kind, size in amounts_bytes.items():
        state.put(path, Kind(kind), size)
    return state


def limited(max_bytes: int | None = None, **settings: int | bool) -> MemcgSettings:
    return MemcgSettings(max_bytes=max_bytes, **settings)


PATHS = ("/a", "/a/x", "/a/y", "/b", "/b/x", "/b/y", "/b/z")
LEAVES = ("/a/x", "/a/y", "/b/x", "/b/y", "/b/z")
SIZES = st.integers(0, 64).map(lambda units: units * 4 * MI)
SIZES_OR_NONE, SIZES_OR_ZERO = st.none() | SIZES, st.just(0) | SIZES


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    """Machines of 256 MiB with two levels of cgroups, some limited, some protected, some with swap."""
    state = Memory(
        Machine(
            256 * MI,
            MARKS,
            draw(st.sampled_from((0, 64 * MI))),
            draw(st.sampled_from((1, 2))),
            recursive_protection=draw(st.booleans()),
        )
    )
    for path in PATHS:
        state.add(
            path,
            MemcgSettings(
                max_bytes=draw(SIZES_OR_NONE),
                high_bytes=draw(SIZES_OR_NONE),
                min_bytes=draw(SIZES_OR_ZERO),
                low_bytes=draw(SIZES_OR_ZERO),
                swap_max_bytes=draw(SIZES_OR_NONE),
                memsw_max_bytes=draw(SIZES_OR_NONE),
                swappiness=draw(st.sampled_from((0, 60))),
            ),
        )
    return state


def charges() -> st.SearchStrategy[list[tuple[str, Kind, int]]]:
    """Sequences of allocations in leaves."""
    kinds = st.sampled_from((Kind.ANON, Kind.ACTIVE_FILE, Kind.INACTIVE_FILE, Kind.KERNEL))
    return st.lists(st.tuples(st.sampled_from(LEAVES), kinds, SIZES), max_size=12)
