"""Edge: finds the settings of this machine's kubelet as an operator would: from its command line and its files.

For a guard that may not ask the kubelet: ``/configz`` is forbidden with the kubelet's own credentials. The kubelet's
process names its file (``--config``), its drop-ins (``--config-dir``) and flags that override both; if no kubelet is
visible, kubeadm's file is used. Nothing is guessed: a file that the kubelet names and that cannot be read is an error.

Only processes of this machine count, and only those of root or our own user: a pod can name its process kubelet, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from podqos.errors import HostError, InputError
from podqos.eviction.kubelet_merging import KubeletText, merged_settings
from podqos.host.linux.procfs import Procfs
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.kubelet_flags import FLAGS, arguments_from_words
from podqos.model.profile import LATEST, Profile
from podqos.wording import counted, listed

USUAL_FILE = "/var/lib/kubelet/config.yaml"
"""kubeadm's."""
_DROP_IN = ".conf"


class LocalKubelet(Struct, frozen=True):
    """A kubelet's settings on this machine."""

    configuration: KubeletConfiguration
    source: str
    """The files and flags that they come from."""
    trouble: str = ""
    """Why they may differ from the kubelet's actual settings."""


class _Process(Struct, frozen=True):
    """A running kubelet."""

    pid: int
    arguments: dict[str, list[str]]

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


def _of_file(name: str, profile: Profile) -> LocalKubelet:
    try:
        text = KubeletText(name, Path(name).read_bytes())
    except OSError as error:
        raise HostError(f"no kubelet process is visible, and {name}: {error.strerror}") from error
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
    return LocalKubelet(settings.configuration, source, trouble)


class _Place:
    """Where a kubelet reads its files: its own root, or ours if the kernel denies access to it."""

    def __init__(self, pid: int, procfs: Procfs) -> None:
        self._process = procfs.root / str(pid)
        self.changed: dict[str, float] = {}
        """When each file that was read last changed."""

    def read(self, name: str) -> KubeletText:
        path = self._path(name)
        try:
            data = path.read_bytes()
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


def _unreadable(name: str, error: OSError) -> HostError:
    return HostError(f"the kubelet reads {name}, which cannot be read here: {error.strerror}")


def _running(node: str, procfs: Procfs) -> _Process | None:
    """Return the running kubelet, None if there is none. Of several, the one named like the node."""
    found = list(_processes(procfs))
    if len(found) > 1:
        found = [process for process in found if process.last("hostname-override") == node] or found
    if len(found) > 1:
        raise HostError(f"{counted(len(found), 'kubelet')} run here: {listed([str(process.pid) for process in found])}")
    return found[0] if found else None


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
