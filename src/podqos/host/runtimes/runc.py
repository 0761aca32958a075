"""Containers through runc: OCI bundles made from images on disk, no daemon.

The shim starts ``runc run --detach``, which exits once the container runs; the orphaned main process is then the shim's
child, so that the shim learns how it ends and writes its log. Containers outlive the agent, and no other process runs
per container.

Below the state directory:

    runc/state/            runc's own
    runc/bundles/<run id>  config.json, the mounted root filesystem, the record of this node
    images/<digest>        unpacked images, shared by all containers of the image

Each container writes into an overlay of its own, whose upper directory is in the container's directory; where the
filesystem allows no overlay, the image is copied.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.disk import usage
from podqos.host.runtimes.engine import Engine, call
from podqos.host.runtimes.oci_config import bundle_config
from podqos.host.runtimes.oci_layout import FoundImage, ImageFolder
from podqos.host.runtimes.oci_unpack import unpack
from podqos.host.runtimes.resources import planned_path
from podqos.host.runtimes.runtime import (
    LOST_CODE,
    ContainerExit,
    ContainerId,
    ContainerPlace,
    ContainerStart,
    FoundContainer,
    Note,
    StartError,
)
from podqos.host.runtimes.shim_client import Program, ShimClient, ShimLost
from podqos.naming import naming

_MNT_DETACH = 2
_CALL_SECONDS = 20.0
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")


class _Record(Struct, frozen=True):
    """What an adopting agent has to know about a bundle."""

    id: str
    cgroup: str
    image: str


class RuncEngine(Engine):
    """Calls runc."""

    name = "runc"

    def __init__(
        self, folder: Path, images: ImageFolder, cgroups: Cgroups, capabilities: Capabilities, note: Note
    ) -> None:
        super().__init__(cgroups, capabilities, note)
        program = shutil.which("runc")
        if program is None:
            what = "runc is not installed: apt-get install runc, or "
            raise HostError(what + naming("runtime", "process") + ", which needs no installation")
        self._state = folder / "runc" / "state"
        self._bundles = folder / "runc" / "bundles"
        self._unpacked = folder / "images"
        for path in (self._state, self._bundles, self._unpacked):
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o700)  # set-user-id programs of an image are not for users of this machine
        self._runc = (program, "--root", str(self._state))
        self._images = images
        self._codes: dict[str, int] = {}
        self._shim = ShimClient(folder)

    def start(self, container: ContainerStart) -> ContainerPlace:
        """Create the bundle and have the shim run it."""
        path = planned_path(container)
        with _image_errors():
            image = self._images.find(container.image)
        bundle = self._bundle(container.id)
        self._remove_bundle(bundle)
        bundle.mkdir()
        record = _Record(str(container.id), path, image.digest)
        (bundle / "podqos.json").write_bytes(msgspec.json.encode(record))
        try:
            rootfs = self._rootfs(container, image, bundle)
            score, hostname = self._score(container), self._hostname(container)
            config = bundle_config(container, image.config, rootfs, oom_score_adj=score, hostname=hostname)
            (bundle / "config.json").write_bytes(msgspec.json.encode(config))
            self._cgroups.create(path)
            for unwritten in self._cgroups.write(path, container.cgroup.files):
                self._note(str(unwritten))
            return ContainerPlace(container.id, path, self._run(container, bundle, path))
        except Exception:
            self._remove_bundle(bundle)
            raise

    def ended(self, container: ContainerId) -> ContainerExit | None:
        """Ask the shim."""
        self.tidy()
        code = self._codes.get(str(container))
        if code is None:
            code = self._lost_code(container)
        if code is None:
            return None
        record = self._record(self._bundle(container))
        is_oom = record is not None and code != 0 and self._cgroups.oom_kills(record.cgroup) > 0
        return ContainerExit(container, code, is_oom)

    def execute(self, container: ContainerStart, command: Sequence[str], seconds: float) -> int:
        """Run ``runc exec``."""
        return self._execute(self._runc, container.id.run_id, container, command, seconds)

    def remove(self, container: ContainerId) -> None:
        """Delete it in runc, and remove the bundle."""
        self._remove_bundle(self._bundle(container))
        self._codes.pop(str(container), None)
        with contextlib.suppress(ShimLost):
            self._shim.forget(str(container))

    def containers(self) -> list[FoundContainer]:
        """Compare bundles with the shim's programs; a container unknown to the shim is killed."""
        kept = self._shim.programs()
        self._codes.update({name: program.code for name, program in kept.ended.items() if program.code is not None})
        found = []
        for bundle in sorted(self._bundles.iterdir()):
            record = self._record(bundle)
            container = None if record is None else ContainerId.parse(record.id)
            if record is None or container is None:
                self._remove_bundle(bundle)
                continue
            running = kept.running.get(record.id)
            if running is not None:
                found.append(FoundContainer(container, record.cgroup, running.pid, None))
                continue
            if record.id not in self._codes:
                self._cgroups.kill(record.cgroup)
            found.append(FoundContainer(container, record.cgroup, None, self._codes.get(record.id, LOST_CODE)))
        return found

    def tidy(self) -> None:
        """Collect exits from the shim."""
        try:
            self._codes.update({each.id: each.code for each in self._shim.exits()})
        except ShimLost as lost:
            self._note(f"{lost}; its containers are stopped and restarted")
            self._shim.reconnect()
            self.containers()

    def remove_unused_images(self) -> int:
        """Remove unpacked images; the layouts belong to the user and stay."""
        gained = 0
        for folder in self._unused_images():
            gained += _bytes(folder)
            shutil.rmtree(folder, ignore_errors=True)
        return gained

    def image_folder(self) -> Path:
        """Return the directory of unpacked images."""
        return self._unpacked

    def close(self, *, end: bool) -> None:
        """Disconnect from the shim, or end it."""
        if not end:
            self._shim.close()
            return
        for bundle in list(self._bundles.iterdir()):
            self._remove_bundle(bundle)
        self._shim.forget_records()
        self._shim.end()

    # ---- bundles -------------------------------------------------------------------------------------------------

    def _bundle(self, container: ContainerId) -> Path:
        return self._bundles / container.run_id

    @staticmethod
    def _record(bundle: Path) -> _Record | None:
        try:
            return msgspec.json.decode((bundle / "podqos.json").read_bytes(), type=_Record)
        except (OSError, msgspec.DecodeError):
            return None

    def _rootfs(self, container: ContainerStart, image: FoundImage, bundle: Path) -> Path:
        """Return a root filesystem that the container may write to."""
        lower = image.rootfs or self._unpack(image)
        rootfs, upper, work = bundle / "rootfs", container.folder / "upper", container.folder / "work"
        for path in (rootfs, upper, work):
            path.mkdir(parents=True, exist_ok=True)
        container.folder.chmod(0o700)
        upper.chmod(0o755)  # the container's root, whatever the umask
        options = f"lowerdir={_escaped(lower)},upperdir={_escaped(upper)},workdir={_escaped(work)}"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"overlay", os.fsencode(rootfs), b"overlay", 0, options.encode()) == 0:
            return rootfs
        self._note(f"no overlay on {container.folder}: {os.strerror(ctypes.get_errno())}; copying images instead")
        copy = container.folder / "rootfs"
        self._call(["cp", "--archive", "--no-target-directory", str(lower), str(copy)])
        return copy

    def _unpack(self, image: FoundImage) -> Path:
        target = self._unpacked / image.digest.replace(":", "-")
        if not target.is_dir():
            with _image_errors():
                unpack(image, target)
        return target

    def _run(self, container: ContainerStart, bundle: Path, path: str) -> int:
        log, pid_file = bundle / "runc.log", bundle / "pid"
        container.log.parent.mkdir(parents=True, exist_ok=True)
        options = ("--log", str(log), "--log-format", "json")
        argv = (
            *self._runc, *options, "run", "--detach", "--pid-file", str(pid_file), "--bundle", str(bundle),
            container.id.run_id,
        )  # fmt: skip
        program = Program(
            id=str(container.id),
            argv=argv,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            cwd=str(bundle),
            entrances=(),
            log=str(container.log),
            log_bytes=container.log_bytes,
            log_files=container.log_files,
            label=path,
            pid_file=str(pid_file),
        )
        try:
            return self._shim.start(program)
        except ShimLost:
            self.tidy()
            return self._shim.start(program)
        except HostError as error:
            raise HostError(_last_error(log) or str(error)) from error

    def _remove_bundle(self, bundle: Path) -> None:
        """Kill and delete the container in runc, unmount, and remove the files."""
        if not bundle.is_dir():
            return
        with contextlib.suppress(HostError):
            self._call([*self._runc, "delete", "--force", bundle.name])
        rootfs = bundle / "rootfs"
        if rootfs.is_mount():
            ctypes.CDLL(None).umount2(os.fsencode(rootfs), _MNT_DETACH)
        shutil.rmtree(bundle, ignore_errors=True)

    def _unused_images(self) -> list[Path]:
        records = (self._record(bundle) for bundle in self._bundles.iterdir())
        used = {record.image.replace(":", "-") for record in records if record is not None}
        return [folder for folder in sorted(self._unpacked.iterdir()) if folder.name not in used]

    def _lost_code(self, container: ContainerId) -> int | None:
        """Return the exit code of a container of a lost shim, as far as recorded."""
        kept = self._shim.programs()
        program = kept.ended.get(str(container))
        if program is not None:
            return program.code
        return None if str(container) in kept.running else LOST_CODE

    @staticmethod
    def _call(arguments: Sequence[str]) -> None:
        done = call(arguments, _CALL_SECONDS)
        if done.returncode:
            raise HostError(f"{arguments[0]}: {done.stderr.strip()}")


@contextlib.contextmanager
def _image_errors() -> Iterator[None]:
    """Give errors of an image the kubelet's word."""
    try:
        yield
    except StartError:
        raise
    except (HostError, OSError) as error:
        raise StartError("ErrImagePull", str(error)) from error


def _bytes(folder: Path) -> int:
    found = usage(folder)
    return 0 if found is None else found.used_bytes


def _escaped(path: Path) -> str:
    """Return a path escaped for overlay's options."""
    return str(path).replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


class _LogLine(Struct, frozen=True):
    level: str = ""
    msg: str = ""


def _last_error(log: Path) -> str:
    """Return runc's last error."""
    try:
        lines = log.read_bytes().splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        with contextlib.suppress(msgspec.DecodeError):
            told = msgspec.json.decode(line, type=_LogLine)
            if told.level in {"error", "fatal"}:
                return told.msg
    return ""
