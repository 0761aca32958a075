"""The state directory: what a node has to know after it was killed, at any moment.

    lock                          one node at a time
    pods/<uid>.json               each pod: specification, restarts, how it ended
    pods/<uid>.ending             newer state of a pod that was ended urgently
    data/<uid>/volumes/<name>     emptyDir volumes
    data/<uid>/containers/…       what containers write
    logs/<namespace>_<name>_<uid>/<container>/<attempt>.log
    journal.jsonl                 the journal (``journal_file``)
    shim.sock, exits              the shim's (``runtimes.shim``)

Files are replaced by renaming, so that they are either old or new. What cannot be written or removed (a full disk, a
read-only filesystem) is kept in memory and done later; the node continues, and starts, on what it can read. What is
running is always checked against the runtime and the cgroup tree.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.agent.port import Remembered
from podqos.errors import HostError
from podqos.host.storage.pod_run import PodRun
from podqos.host.storage.syncing import Sync, sync
from podqos.host.storage.writing import replace_file, write_file
from podqos.manifest.amounts import decode_hook
from podqos.model.pod import TERMINAL_PHASES, Pod
from podqos.model.quantity import Quantity
from podqos.naming import naming

_ENDING = ".ending"


class PodState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The saved state of a pod."""

    pod: Pod
    run: PodRun
    source: str = ""
    """Its manifest."""
    containers: Mapping[str, Remembered] = {}
    phase: str = "Pending"
    """As in a pod's status; ``Failed`` and ``Succeeded`` are final."""
    reason: str = ""
    message: str = ""
    is_stopping: bool = False
    """It is being stopped."""
    is_gone: bool = False
    """Everything else of it has been removed."""
    started_us: int = 0
    ended_us: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it never runs again."""
        return self.phase in TERMINAL_PHASES


def _encode_hook(value: object) -> object:
    if isinstance(value, Quantity):
        return str(value)
    raise TypeError(type(value))


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook)
_decoder = msgspec.json.Decoder(PodState, dec_hook=decode_hook)


class StateDirectory:
    """A node's directory."""

    def __init__(self, root: Path, note: Callable[[str], None], sync: Sync = sync) -> None:
        self.root = root
        self._note = note
        self._sync = sync
        self._unsaved: dict[str, PodState | None] = {}
        """What is not on disk yet, by uid; None: the record is to be removed."""
        self._failed: set[str] = set()
        """Pods whose last write failed."""
        self._unsynced: set[Path] = set()
        try:
            for name in ("pods", "data", "logs"):
                (root / name).mkdir(parents=True, exist_ok=True)
            self._lock = _open_lock(root / "lock")
        except OSError as error:
            what = f"state directory {root}: {error.strerror}; choose another with "
            raise HostError(what + naming("state_dir")) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError(f"state directory {root}: another node is using it") from None

    def load(self) -> list[PodState]:
        """Return all pods, in the order of their start; an unreadable file is moved aside."""
        found = []
        for file in sorted((self.root / "pods").glob("*.json")):
            try:
                found.append(_ending(file) or _decoder.decode(file.read_bytes()))
            except (OSError, msgspec.DecodeError, ValueError) as error:
                self._note(f"{file}: not the state of a pod ({error}); moved aside")
                with suppress(OSError):
                    file.rename(file.with_suffix(".bad"))
        return sorted(found, key=lambda state: (state.started_us, state.pod.metadata.uid))

    def save(self, state: PodState, *, in_a_hurry: bool = False) -> None:
        """Save a pod, now or as soon as possible.

        Replacing a file can take milliseconds. If urgent, the end of a pod is written next to it, and moved into place
        a moment later (``save_late``), which also syncs what has to survive a power cut.
        """
        uid = state.pod.metadata.uid
        file = self.root / "pods" / f"{uid}.json"
        try:
            ending = file.with_suffix(_ENDING)
            if in_a_hurry and state.is_over:
                if not ending.exists():
                    write_file(ending, _encoder.encode(state))
                self._unsaved[uid] = state
                return
            replace_file(file, _encoder.encode(state))
            ending.unlink(missing_ok=True)
        except OSError as error:
            self._put_off(uid, state, f"state of {state.pod.key} not written: {error.strerror}")
        else:
            self._done(uid)
            if state.is_over:
                self._unsynced.add(file)

    def save_late(self) -> None:
        """Retry what could not be written, and sync what has to survive a power cut."""
        for uid, state in list(self._unsaved.items()):
            if state is None:
                self.forget(uid)
            else:
                self.save(state)
        while self._unsynced:
            self._sync(self._unsynced.pop())

    def forget(self, uid: str) -> None:
        """Delete the record of a pod."""
        try:
            for suffix in (".new", ".json", _ENDING):
                (self.root / "pods" / f"{uid}{suffix}").unlink(missing_ok=True)
        except OSError as error:
            self._put_off(uid, None, f"state of pod {uid} not removed: {error.strerror}")
        else:
            self._done(uid)

    def remove_data_except(self, uids: Collection[str]) -> None:
        """Remove the volumes and files of other pods; logs are kept until a pod is forgotten."""
        for folder in (self.root / "data").iterdir():
            if folder.name not in uids:
                shutil.rmtree(folder, ignore_errors=True)

    def remove_logs(self, pod: Pod) -> None:
        """Remove a pod's logs."""
        shutil.rmtree(self.logs(pod), ignore_errors=True)

    def data(self, uid: str) -> Path:
        """Return the directory of a pod's volumes and containers."""
        return self.root / "data" / uid

    def volume(self, uid: str, name: str) -> Path:
        """Return the directory of an emptyDir."""
        return self.data(uid) / "volumes" / name

    def container(self, uid: str, name: str, attempt: int) -> Path:
        """Return the directory for what a run of a container writes outside volumes."""
        return self.data(uid) / "containers" / name / str(attempt)

    def logs(self, pod: Pod) -> Path:
        """Return the directory of a pod's logs, named as by the kubelet."""
        metadata = pod.metadata
        return self.root / "logs" / f"{metadata.namespace_or_default}_{metadata.name}_{metadata.uid}"

    def log(self, pod: Pod, name: str, attempt: int) -> Path:
        """Return the log of one run of a container."""
        return self.logs(pod) / name / f"{attempt}.log"

    def _put_off(self, uid: str, state: PodState | None, why: str) -> None:
        if uid not in self._failed:
            self._note(f"{why}; will retry")
        self._failed.add(uid)
        self._unsaved[uid] = state

    def _done(self, uid: str) -> None:
        self._unsaved.pop(uid, None)
        if uid in self._failed:
            self._failed.remove(uid)
            if not self._failed:
                self._note("all state is saved again")

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)


def _open_lock(file: Path) -> int:
    """Open the lock file; the one on a read-only filesystem will do."""
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        return os.open(file, os.O_RDONLY | os.O_CLOEXEC)


def _ending(file: Path) -> PodState | None:
    """Return an urgently written state; None if there is none or it is incomplete."""
    try:
        return _decoder.decode(file.with_suffix(_ENDING).read_bytes())
    except (OSError, msgspec.DecodeError, ValueError):
        return None
