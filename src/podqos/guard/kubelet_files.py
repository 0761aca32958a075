"""Edge: finds the settings of this machine's kubelet as an operator would: from its command line and its files.

For a guard that may not ask the kubelet: ``/configz`` is forbidden with the kubelet's own credentials. The kubelet's
process names its file (``--config``), its drop-ins (``--config-dir``) and flags that override both; if no kubelet is
visible, kubeadm's file is used. Nothing is guessed: a file that the kubelet names and that cannot be read is an error.

Only processes of this machine count, and only those of root or our own user: a pod can name its process kubelet, too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from podqos.amounts import counted, listed
from podqos.errors import HostError, InputError
from podqos.guard.kubelet_merging import KubeletText, merged_settings
from podqos.host.linux.procfs import Procfs
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.kubelet_flags import FLAGS, arguments_from_words
from podqos.model.profile import LATEST, Profile
from podqos.naming import stated_with

USUAL_FILE = "/var/lib/kubelet/config.yaml"
"""kubeadm's."""
_DROP_IN = ".conf"
_MOST_BYTES = 4 << 20


class LocalKubelet(Struct, frozen=True):
    """A kubelet's settings on this machine."""

    configuration: KubeletConfiguration
    source: str
    """The files and flags that they come from."""
    trouble: str = ""
    """Why they may differ from the kubelet's actual settings."""
    is_running: bool = False
    """Whether they are those of a running kubelet."""


class NoKubeletRuns(HostError):
    """No kubelet process is visible, and kubeadm's file cannot be read."""


class _Process(Struct, frozen=True):
    """A running kubelet."""

    pid: int
    arguments: dict[str, list[str]]

    @property
    def node(self) -> str:
        """The name of its node; empty if that is the host's."""
        return self.last("hostname-override").strip().lower()

    def last(self, flag: str) -> str:
        """Return the effective value of a flag; empty if it is not set."""
        return (self.arguments.get(flag) or [""])[-1]


def local_kubelet(node: str, profile: Profile = LATEST) -> LocalKubelet:
    """Return the settings of this machine's kubelet; raise HostError if they cannot be determined."""
    procfs = Procfs()
    process = _running(node, procfs)
    try:
        return _of_file(USUAL_FILE, profile) if process is None else _of_process(process, profile, procfs)
    except InputError as error:
        raise HostError(str(error)) from error


def local_node(last: str = "") -> str:
    """Return the name that this machine's kubelet registers its node with; ``last`` is it if no kubelet is running.

    The name of the host, unless a flag says otherwise.
    """
    host = os.uname().nodename
    try:
        names = {process.node or host for process in _processes(Procfs())}
    except HostError:
        names = set()
    return (names.pop() if len(names) == 1 else last or host).strip().lower()  # as pkg/util/node (GetHostname)


def _of_file(name: str, profile: Profile) -> LocalKubelet:
    try:
        text = KubeletText(name, _content(Path(name)))
    except OSError as error:
        raise NoKubeletRuns(f"no kubelet process is visible, and {name}: {error.strerror}") from error
    settings = merged_settings(text, (), {}, profile)
    return LocalKubelet(settings.configuration, f"{name} (no kubelet process is visible)")


def _of_process(process: _Process, profile: Profile, procfs: Procfs) -> LocalKubelet:
    place = _Place(process.pid, procfs)
    file, folder = process.last("config"), process.last("config-dir")
    base = place.read(file) if file else None
    drop_ins = list(place.drop_ins(folder)) if folder else []
    settings = merged_settings(base, drop_ins, process.arguments, profile)
    flags = [f"--{name}" for name in process.arguments if name in FLAGS]
    parts = [
        *([file] if file else []),
        *([f"{counted(len(drop_ins), 'drop-in')} in {folder}"] if folder else []),
        *([f"its {'flag' if len(flags) == 1 else 'flags'} {listed(flags)}"] if flags else []),
    ]
    source = f"{listed(parts) or 'the defaults'}, as the kubelet (process {process.pid}) was started"
    started = procfs.started_seconds(process.pid)
    late = [name for name, changed in place.changed.items() if started is not None and changed > started]
    trouble = f"{listed(late)} changed after the kubelet started: it may still use the old settings" if late else ""
    return LocalKubelet(settings.configuration, source, trouble, is_running=True)


class _Place:
    """Where a kubelet reads its files: its own root, or ours if the kernel denies access to it."""

    def __init__(self, pid: int, procfs: Procfs) -> None:
        self._process = procfs.root / str(pid)
        self.changed: dict[str, float] = {}
        """When each file that was read last changed."""

    def read(self, name: str) -> KubeletText:
        path = self._path(name)
        try:
            data = _content(path)
            self.changed[name] = path.stat().st_mtime
        except OSError as error:
            raise _unreadable(name, error) from error
        return KubeletText(name, data)

    def drop_ins(self, folder: str) -> Iterator[KubeletText]:
        """Yield the files in the order of Go's ``WalkDir``: by name, directories in place, no links to directories."""
        path = self._path(folder)
        if path.is_symlink():
            return
        try:
            entries = sorted(os.scandir(path), key=lambda each: each.name)
        except OSError as error:
            raise _unreadable(folder, error) from error
        for entry in entries:
            name = f"{folder.rstrip('/')}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from self.drop_ins(name)
            elif entry.name.endswith(_DROP_IN):
                yield self.read(name)

    def _path(self, name: str) -> Path:
        is_absolute = name.startswith("/")
        parent = self._process / ("root" if is_absolute else "cwd")
        try:
            parent.stat()
        except OSError:  # no permission to look into it
            parent = Path("/")
            if not is_absolute:
                what = f"the kubelet's {name} is relative to a directory that is not visible"
                raise HostError(what) from None
        return parent / name.lstrip("/")


def _content(path: Path) -> bytes:
    """Return what a file holds; a pipe or a device would never end, or never begin."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise OSError(0, f"larger than {_MOST_BYTES >> 20}Mi")
    return data


def _unreadable(name: str, error: OSError) -> HostError:
    return HostError(f"the kubelet reads {name}, which cannot be read here: {error.strerror}")


def _running(node: str, procfs: Procfs) -> _Process | None:
    """Return the running kubelet, None if there is none. Of several, the one named like the node."""
    found = list(_processes(procfs))
    own = [process for process in found if process.node == node]
    if len(found) > 1 and len(own) != 1:
        pids = listed([str(process.pid) for process in found])
        raise HostError(f"{len(found)} kubelets run here (processes {pids}): the node's name does not tell them apart")
    (process,) = own or found or (None,)
    if process is not None and process.node not in {"", node}:
        fix = stated_with("node", process.node)
        raise HostError(f"the kubelet that runs here (process {process.pid}) is that of node {process.node} ({fix})")
    return process


def _processes(procfs: Procfs) -> Iterator[_Process]:
    for pid in procfs.pids():
        words = procfs.command_line(pid)
        name = words[0].rpartition("/")[2] if words else ""
        if name == "hyperkube":
            words, name = words[1:], "".join(words[1:2])
        if name != "kubelet" or procfs.user(pid) not in {0, os.geteuid()} or procfs.is_in_inner_namespace(pid):
            continue
        try:
            yield _Process(pid, arguments_from_words(words[1:]))
        except InputError as error:
            raise HostError(f"the command line of the kubelet (process {pid}) is not valid: {error}") from error
