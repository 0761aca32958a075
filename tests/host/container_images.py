"""Small images made of busybox: as an OCI image layout, and as the archive that runtimes import."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

_APPLETS = ("sh", "cat", "echo", "sleep", "ls", "pwd", "touch", "id", "hostname", "seq", "true", "false", "grep")


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


class Layout:
    """An OCI image layout that is being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        self.manifests: list[dict[str, object]] = []
        self._write_index()

    def blob(self, data: bytes, media_type: str) -> dict[str, object]:
        """Store something under its digest; return its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def add(
        self,
        name: str,
        layers: list[bytes],
        config: dict[str, object],
        compress: Callable[[bytes], bytes] = _gzip,
    ) -> str:
        """Add an image of uncompressed layers under a reference; return its digest."""
        kind = "application/vnd.oci.image"
        configuration = {
            "architecture": "amd64",
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{kind}.manifest.v1+json",
            "config": self.blob(json.dumps(configuration).encode(), f"{kind}.config.v1+json"),
            "layers": [self.blob(compress(each), f"{kind}.layer.v1.tar+gzip") for each in layers],
        }
        descriptor = self.blob(json.dumps(manifest).encode(), f"{kind}.manifest.v1+json")
        return self._named(name, descriptor)

    def add_index(self, name: str, manifests: list[dict[str, object]]) -> str:
        """Add an image of several platforms."""
        kind = "application/vnd.oci.image.index.v1+json"
        index = {"schemaVersion": 2, "mediaType": kind, "manifests": manifests}
        return self._named(name, self.blob(json.dumps(index).encode(), kind))

    def archive(self, path: Path) -> Path:
        """Pack the layout into one file."""
        with tarfile.open(path, "w") as tar:
            for each in sorted(self.folder.rglob("*")):
                tar.add(each, arcname=str(each.relative_to(self.folder)), recursive=False)
        return path

    def _named(self, name: str, descriptor: dict[str, object]) -> str:
        # containerd uses its own annotation, other tools the standard one.
        names = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name}
        self.manifests.append({**descriptor, "annotations": names})
        self._write_index()
        return str(descriptor["digest"])

    def _write_index(self) -> None:
        index = {"schemaVersion": 2, "manifests": self.manifests}
        (self.folder / "index.json").write_text(json.dumps(index))


def layer(*members: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Return a layer."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member in members:
            info, data = member if isinstance(member, tuple) else (member, b"")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def directory(name: str, mode: int = 0o755) -> tarfile.TarInfo:
    """Return a directory of a layer."""
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    return info


def symlink(name: str, target: str) -> tarfile.TarInfo:
    """Return a link of a layer."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


def file(name: str, data: bytes = b"", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    """Return a file of a layer."""
    info = tarfile.TarInfo(name)
    info.mode = mode
    return info, data


def busybox_layer(busybox: Path) -> bytes:
    """Return a root filesystem in which a shell runs."""
    folders = (directory("bin"), directory("etc"), directory("mnt"), directory("tmp", 0o1777))
    links = (symlink(f"bin/{name}", "busybox") for name in _APPLETS)
    return layer(*folders, file("bin/busybox", busybox.read_bytes(), 0o755), *links)
