"""The journal of a large fleet: the shards' journals in a temporary file, merged while they are read.

Memory does not grow with the fleet. The file has no name: it is gone with the process, however that ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryFile
from weakref import finalize

from podqos.agent.journal import Entry, decode, merged
from podqos.errors import HostError
from podqos.sim.cluster.long_journal import GeneratedJournal

_READ_BYTES = 1 << 16


class SpilledJournal(GeneratedJournal):
    """Journals of nodes, in any order of nodes, each by time."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - it lives as long as the journal
        finalize(self, self._file.close)
        self._parts: list[tuple[int, int]] = []
        self._end = self._length = 0

    def add(self, journal: bytes, entries: int) -> None:
        """Store the journal of a shard."""
        try:
            self._file.seek(self._end)
            self._file.write(journal)
        except OSError as error:
            what = f"the journal does not fit into the temporary directory: {error.strerror}"
            raise HostError(f"{what} (set TMPDIR to use another)") from error
        self._parts.append((self._end, self._end + len(journal)))
        self._end += len(journal)
        self._length += entries

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Entry]:
        self._file.flush()
        return merged(self._read(*part) for part in self._parts)

    def _read(self, begin: int, end: int) -> Iterator[Entry]:
        rest = b""
        while begin < end:
            self._file.seek(begin)  # others read elsewhere meanwhile
            data = self._file.read(min(_READ_BYTES, end - begin))
            begin += len(data)
            whole, newline, cut = (rest + data).rpartition(b"\n")
            yield from decode(whole + newline)
            rest = cut
