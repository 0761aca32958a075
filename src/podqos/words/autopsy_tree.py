"""The memory of an OOM as a picture: its rows with their names, and what each bar is made of."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.survival.autopsy.autopsy import OOMAutopsy
from podqos.survival.autopsy.memory_tree import BarKind, MemoryBar
from podqos.words.autopsy import process, short_path
from podqos.words.autopsy_death import MemoryPart, TreeRow

_ID_CHARACTERS = 12
_SPLIT = (("anon", "anonymous memory"), ("file", "page cache"), ("shmem", "tmpfs and shared memory"))
_RSS = ("rss", "resident memory")
_REST = (("kernel", "kernel memory"), ("other", "not in the report"), ("swap", "swap"))
_OF_PROCESS = {"file": "mapped files", "kernel": "page tables"}
_PROCESSES = {BarKind.PROCESS, BarKind.OTHERS}


def tree_rows(kill: OOMAutopsy) -> Iterator[TreeRow]:
    """Yield the rows, parents first."""
    for bar in kill.tree:
        yield TreeRow(
            depth=bar.depth,
            kind=bar.kind,
            name=_name(bar, kill),
            parts=tuple(_parts(bar)),
            used_bytes=bar.used_bytes,
            limit_bytes=bar.limit_bytes,
            peak_bytes=bar.peak_bytes,
            mark="killed" if bar.is_killed else "",
        )


def _name(bar: MemoryBar, kill: OOMAutopsy) -> str:
    match bar.kind:
        case BarKind.MACHINE:
            return f"node {kill.host}" if kill.host else "the machine"
        case BarKind.UNKNOWN:
            return "the machine or a cgroup"
        case BarKind.POD:
            return f"pod {kill.pod if kill.pod and bar.name == kill.pod_uid else bar.name}"
        case BarKind.CONTAINER:
            is_known = bool(kill.container) and bar.name == kill.container_id
            return f"container {kill.container if is_known else bar.name[:_ID_CHARACTERS]}"
        case BarKind.PROCESS:
            return process(bar.name, bar.pid)
        case BarKind.OTHERS:
            return f"{bar.tasks:,} other process{'' if bar.tasks == 1 else 'es'}"
    return f"cgroup {short_path(bar.name)}" if bar.name else "a cgroup"


def _parts(bar: MemoryBar) -> Iterator[MemoryPart]:
    """Yield what is in a bar; resident memory is told apart where the report does that."""
    if bar.kind not in _PROCESSES and bar.anon_bytes is None and bar.used_bytes:
        yield MemoryPart("usage", bar.used_bytes, "rss")
    kinds = (*(_SPLIT if bar.anon_bytes is not None else (_RSS,)), *_REST)
    for kind, name in kinds:
        amount: int | None = getattr(bar, f"{kind}_bytes")
        if amount:
            yield MemoryPart(_OF_PROCESS.get(kind, name) if bar.kind in _PROCESSES else name, amount, kind)
