"""The state directory: what a node has to find again after it was killed, written so that no moment is a bad one.

    lock                          one node at a time
    pods/<uid>.json               each pod, how it is run, how often it was restarted, how it ended
    pods/<uid>.ending             the same, newer, of a pod that had to end in a hurry
    data/<uid>/volumes/<name>     emptyDir volumes
    data/<uid>/containers/…       what containers write
    logs/<namespace>_<name>_<uid>/<container>/<attempt>.log
    journal.jsonl                 what happened (``journal_file``)
    shim.sock, exits              the shim's (``runtimes.shim``)

Files are replaced by renaming, so that they are either old or new. What cannot be written (a full disk, a read-only
filesystem) is remembered and written later; the node goes on. What runs is checked against the runtime and the cgroup
tree, never believed from here.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.agent.events import Remembered
from podqos.errors import HostError
from podqos.host.storage.pod_run import PodRun
from podqos.host.storage.syncing import Sync, sync
from podqos.manifest.amounts import decode_hook
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity

_ENDING = ".ending"


class PodState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod as the node remembers it."""

    pod: Pod
    run: PodRun
    source: str = ""
    """The manifest it comes from."""
    containers: Mapping[str, Remembered] = {}
    phase: str = "Pending"
    """As in a pod's status; ``Failed`` and ``Succeeded`` are for good."""
    reason: str = ""
    message: str = ""
    is_stopping: bool = False
    """It has been told to go."""
    is_gone: bool = False
    """Nothing is left of it but this."""
    started_us: int = 0
    ended_us: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it never runs again."""
        return self.phase in {"Failed", "Succeeded"}


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
        self._unsaved: dict[str, PodState] = {}
        self._unsynced: set[Path] = set()
        try:
            for name in ("pods", "data", "logs"):
                (root / name).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HostError(f"state directory {root}: {error.strerror}; choose another with --state-dir") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError(f"state directory {root}: another node is using it") from None

    def load(self) -> list[PodState]:
        """Return all pods, in the order in which they were started; a file that cannot be read is put aside."""
        found = []
        for file in sorted((self.root / "pods").glob("*.json")):
            try:
                found.append(_ending(file) or _decoder.decode(file.read_bytes()))
            except (OSError, msgspec.DecodeError, ValueError) as error:
                self._note(f"{file}: not the state of a pod ({error}); moved aside")
                file.rename(file.with_suffix(".bad"))
        return sorted(found, key=lambda state: (state.started_us, state.pod.metadata.uid))

    def save(self, state: PodState, *, in_a_hurry: bool = False) -> None:
        """Write a pod down, now or as soon as that is possible.

        Replacing a file can take milliseconds. In a hurry the end of a pod is written beside it, and put in its place
        a moment later (``save_late``), as is what has to survive a power cut.
        """
        uid = state.pod.metadata.uid
        file = self.root / "pods" / f"{uid}.json"
        try:
            ending = file.with_suffix(_ENDING)
            if in_a_hurry and state.is_over:
                if not ending.exists():
                    ending.write_bytes(_encoder.encode(state))
                self._unsaved[uid] = state
                return
            _replace(file, _encoder.encode(state))
            ending.unlink(missing_ok=True)
        except OSError as error:
            if uid not in self._unsaved:
                self._note(f"state of {state.pod.key} not written: {error.strerror}; will retry")
            self._unsaved[uid] = state
        else:
            self._unsaved.pop(uid, None)
            if state.is_over:
                self._unsynced.add(file)

    def save_late(self) -> None:
        """Try again what could not be written, and bring to the disk what has to be found after a power cut."""
        for state in list(self._unsaved.values()):
            self.save(state)
        while self._unsynced:
            self._sync(self._unsynced.pop())

    def forget(self, uid: str) -> None:
        """Drop a pod from the records."""
        self._unsaved.pop(uid, None)
        try:
            for suffix in (".json", _ENDING):
                (self.root / "pods" / f"{uid}{suffix}").unlink(missing_ok=True)
        except OSError as error:
            self._note(f"state of pod {uid} not removed: {error.strerror}")

    def remove_data_except(self, uids: Collection[str]) -> None:
        """Remove the volumes and files of pods that are no more; logs stay until a pod is forgotten."""
        for folder in (self.root / "data").iterdir():
            if folder.name not in uids:
                shutil.rmtree(folder, ignore_errors=True)

    def remove_logs(self, pod: Pod) -> None:
        """Remove a pod's logs."""
        shutil.rmtree(self.logs(pod), ignore_errors=True)

    def data(self, uid: str) -> Path:
        """Return where a pod's volumes and containers write."""
        return self.root / "data" / uid

    def volume(self, uid: str, name: str) -> Path:
        """Return where an emptyDir is."""
        return self.data(uid) / "volumes" / name

    def container(self, uid: str, name: str, attempt: int) -> Path:
        """Return where a run of a container writes what is not in a volume."""
        return self.data(uid) / "containers" / name / str(attempt)

    def logs(self, pod: Pod) -> Path:
        """Return where a pod's logs are, by the kubelet's naming."""
        metadata = pod.metadata
        return self.root / "logs" / f"{metadata.namespace or 'default'}_{metadata.name}_{metadata.uid}"

    def log(self, pod: Pod, name: str, attempt: int) -> Path:
        """Return the log of one run of a container."""
        return self.logs(pod) / name / f"{attempt}.log"

    def close(self) -> None:
        """Let others use the directory."""
        os.close(self._lock)


def _ending(file: Path) -> PodState | None:
    """Return what was written in a hurry; None where nothing was, or not to its end."""
    try:
        return _decoder.decode(file.with_suffix(_ENDING).read_bytes())
    except (OSError, msgspec.DecodeError, ValueError):
        return None


def _replace(file: Path, data: bytes) -> None:
    """Write a file beside the old one and put it in its place."""
    partial = file.with_suffix(".new")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
    partial.rename(file)
