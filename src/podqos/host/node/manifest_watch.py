"""Keeps up with the directory of manifests: it is read again, on another thread, whenever something in it changes.

What a manifest says is ``manifests``' business, what is done about it ``reconciliation``'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from inotify_simple import INotify, flags

from podqos.host.linux.background import Background
from podqos.host.linux.loop import Debounce
from podqos.host.node.manifests import FolderReading, ManifestFolder, Scan, Wanted
from podqos.host.shell.agent_thread import AgentThread

_CHANGES = (
    flags.CLOSE_WRITE | flags.MOVED_TO | flags.MOVED_FROM | flags.DELETE | flags.CREATE | flags.ATTRIB
    | flags.DELETE_SELF | flags.MOVE_SELF
)  # fmt: skip
_RESCAN_SECONDS = 20.0  # in case a notification was missed, as in the kubelet (fileCheckFrequency)
_SETTLE_SECONDS = 0.05
_UNSETTLED_SECONDS = 1.0


class ManifestWatch:
    """Watches the directory of manifests."""

    def __init__(self, folder: ManifestFolder, thread: AgentThread) -> None:
        self.folder = folder
        self.last = Scan(reading=FolderReading(is_listed=False))
        """The directory when it was last read."""
        self.wanted: Mapping[str, Wanted] = {}
        """Its pods, by uid."""
        self._thread = thread
        self._on_scan: Callable[[], None] = lambda: None
        self._inotify: INotify | None = None
        self._reader = Background(thread.loop, "manifests")
        self._changes = Debounce(thread.loop, _SETTLE_SECONDS, self.scan)
        self._is_scanning = self._is_outdated = False

    @property
    def is_scanning(self) -> bool:
        """Whether the directory is being read."""
        return self._is_scanning

    def make_folder(self) -> None:
        """Make the directory if there is none."""
        with contextlib.suppress(OSError):  # the scan says so
            self.folder.folder.mkdir(parents=True, exist_ok=True)

    def start(self, on_scan: Callable[[], None]) -> None:
        """Read the directory, and again whenever it changes; ``on_scan`` is called whenever it was read."""
        self._on_scan = on_scan
        self._inotify = inotify = INotify(nonblocking=True)
        self._thread.loop.watch(inotify.fileno(), lambda: self._changed(inotify))
        self._thread.loop.call_every(_RESCAN_SECONDS, self.rescan)

    def close(self) -> None:
        """Stop watching."""
        if self._inotify is not None:
            self._inotify.close()
        self._reader.close()

    def scan(self) -> None:
        """Read the directory on another thread; what changes meanwhile is read afterwards."""
        self._is_outdated = self._is_scanning
        if not self._is_scanning:
            self._is_scanning = True
            self._reader.run(self.folder.scan, self._scanned)

    def rescan(self) -> None:
        """Read the directory, even if nothing has said that it changed."""
        where = self.folder.folder
        assert self._inotify is not None
        try:
            # Again and again: it may be another directory of the same name.
            self._inotify.add_watch(str(where), _CHANGES)
        except OSError as error:
            self._thread.note(f"{where}: {error.strerror}: changes are only detected every {_RESCAN_SECONDS:.0f} s")
        if self._is_scanning:
            late = f"not read within {_RESCAN_SECONDS:.0f} s: pods stay as they are until then"
            self._thread.note(f"{where}: {late}")
        self.scan()

    def _changed(self, inotify: INotify) -> None:
        inotify.read(timeout=0)
        self._changes.heard()

    def _scanned(self, scan: Scan | Exception) -> None:
        self._is_scanning = False
        if self._is_outdated:
            self.scan()
        if isinstance(scan, Exception):
            self._thread.notes.add_error(scan)
            return
        for note in scan.reading.notes:
            self._thread.note(note)
        self.last = scan
        self.wanted = {wanted.pod.metadata.uid: wanted for wanted in scan.wanted}
        if not scan.reading.is_settled:
            self._thread.loop.call_after(_UNSETTLED_SECONDS, self.scan)
        self._on_scan()
