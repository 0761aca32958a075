"""Write an image of podqos as one file, without a container engine or a registry: ``tools/image.py --help``.

The image has two layers: a root file system with Python, as ``mmdebstrap`` or ``podman export`` writes it, and podqos
from its wheels. Nothing of either runs here, so neither root nor a daemon is needed. The same input gives the same
bytes. ``make image-archive`` calls this; ``make image`` has podman build the same from an image of a registry.
"""

from __future__ import annotations

import argparse
import bz2
import compileall
import gzip
import hashlib
import io
import json
import lzma
import platform
import py_compile
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PREFIX = "opt/podqos"
USER = "65532"
_ARCHITECTURES = {62: "amd64", 183: "arm64", 22: "s390x", 21: "ppc64le", 243: "riscv64"}
"""By the number of the machine in an ELF header."""
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_PYTHON = re.compile(r"(?:\./)?(usr(?:/local)?/bin)/python3\.(\d+)")
_LAUNCHER = f"""#!/{PREFIX}/bin/python
import sys
from podqos.cli.main import command_line
sys.exit(command_line())
"""
_ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/root:/sbin/nologin\npodqos:x:{USER}:{USER}:podqos:/:/sbin/nologin\n",
    "etc/group": f"root:x:0:\npodqos:x:{USER}:\n",
}


class Unusable(Exception):
    """No image can be built of this; the text says why and what to do."""


class RootFilesystem:
    """A root file system in a tar file: which Python it has, and the files of that."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise Unusable(f"{path}: no such file: build it with `make image-archive`, or `podman export` a container")
        self.path = path
        try:
            with tarfile.open(path) as tar:
                members = {member.name.removeprefix("./"): member for member in tar}
                self.names = members.keys()
                self._find_python(tar, members)
        except (tarfile.TarError, EOFError):
            raise Unusable(f"{path}: not a whole tar file of a root file system: build it again") from None

    def _find_python(self, tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> None:
        named = [match for name, member in members.items() if member.isfile() and (match := _PYTHON.fullmatch(name))]
        if not named:
            raise Unusable(f"{self.path}: no Python 3 in /usr/bin or /usr/local/bin: install python3 in it")
        python = max(named, key=lambda match: (match[1], int(match[2])))
        self.folder, self.minor = python[1], int(python[2])
        stored = tar.extractfile(members[python[0]])
        header = stored.read(20) if stored else b""
        self.architecture = _ARCHITECTURES.get(int.from_bytes(header[18:20], "little"), "")
        if header[:4] != b"\x7fELF" or not self.architecture:
            raise Unusable(f"{self.path}: /{python[0]} is not a program for Linux on a known architecture")

    def modules(self, to: Path) -> None:
        """Unpack the standard library, without tests."""
        library = f"{self.folder.removesuffix('bin')}lib/python3.{self.minor}/"
        with tarfile.open(self.path) as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                if not member.isfile() or not name.startswith(library) or not name.endswith(".py"):
                    continue
                if "/test/" not in name and (stored := tar.extractfile(member)) is not None:
                    (to / name).parent.mkdir(parents=True, exist_ok=True)
                    (to / name).write_bytes(stored.read())


def podqos_layer(base: RootFilesystem, wheels: Path) -> bytes:
    """Return the layer with podqos: a virtual environment, and what Python compiles, because nobody may write there."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        site = root / PREFIX / "lib" / f"python3.{base.minor}" / "site-packages"
        site.mkdir(parents=True)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-index",
            "--no-compile",
            "--disable-pip-version-check",
        ]
        command = [*pip, "--find-links", str(wheels), "--target", str(site), "podqos[webhook]"]
        if subprocess.run(command, check=False).returncode:  # noqa: S603 - our own pip
            raise Unusable(f"{wheels}: not the wheels of podqos and of what it depends on (pip's words are above)")
        for name in ("bin", "share"):  # scripts for this Python, and what else is shared
            shutil.rmtree(site / name, ignore_errors=True)
        (root / PREFIX / "bin").mkdir()
        (root / PREFIX / "bin" / "python").symlink_to(f"/{base.folder}/python3.{base.minor}")
        (root / PREFIX / "bin" / "podqos").write_text(_LAUNCHER)
        (root / PREFIX / "bin" / "podqos").chmod(0o755)
        settings = f"home = /{base.folder}\ninclude-system-site-packages = false\nversion = 3.{base.minor}\n"
        (root / PREFIX / "pyvenv.cfg").write_text(settings)
        for name, text in _ACCOUNTS.items():
            if name not in base.names:
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)
        base.modules(root)
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(root, quiet=2, stripdir=root, prependdir="/", invalidation_mode=unchecked)
        return _packed(root, base)


def _packed(root: Path, base: RootFilesystem) -> bytes:
    """Return a folder as a layer, without what is in the layer below."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            if name in base.names:
                continue
            info = tar.gettarinfo(path, name)
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = ""
            info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
            if info.isfile():
                tar.addfile(info, io.BytesIO(path.read_bytes()))
            else:
                tar.addfile(info)
    return buffer.getvalue()


def full_name(name: str) -> str:
    """Return the name by which a container engine finds an image: with registry and tag."""
    path, _, digest = name.partition("@")
    if digest or not re.fullmatch(r"[a-z0-9.:_/-]+(:[A-Za-z0-9._-]+)?", path):
        raise Unusable(f"{name}: not the name of an image, such as registry.example.com/podqos:1.0")
    first, slash, _ = path.partition("/")
    if not slash:
        path = f"docker.io/library/{path}"
    elif not re.search(r"[.:]", first) and first != "localhost":
        path = f"docker.io/{path}"
    return path if ":" in path.rpartition("/")[2] else f"{path}:latest"


class Archive:
    """An image as a tar file that container engines read: an OCI layout, and the index that ``docker load`` wants."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def blob(self, data: bytes, kind: str) -> dict[str, object]:
        """Store something under its digest and return its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def add_image(self, name: str, architecture: str, layers: list[bytes]) -> None:
        """Store the image; ``layers`` are tar files."""
        settings = {"User": f"{USER}:{USER}", "Entrypoint": [f"/{PREFIX}/bin/podqos"], "WorkingDir": "/"}
        settings["Env"] = [f"PATH=/{PREFIX}/bin:/usr/local/bin:/usr/bin:/bin"]
        digests = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
        config = {"architecture": architecture, "os": "linux", "created": "1970-01-01T00:00:00Z", "config": settings}
        stored = self.blob(_json({**config, "rootfs": {"type": "layers", "diff_ids": digests}}), "config.v1+json")
        packed = [self.blob(gzip.compress(layer, 6, mtime=0), "layer.v1.tar+gzip") for layer in layers]
        kind = "application/vnd.oci.image.manifest.v1+json"
        manifest = {"schemaVersion": 2, "mediaType": kind, "config": stored, "layers": packed}
        described = self.blob(_json(manifest), "manifest.v1+json")
        # containerd reads an annotation of its own, other tools the standard one.
        described["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
        described["platform"] = {"architecture": architecture, "os": "linux"}
        self.files["index.json"] = _json({"schemaVersion": 2, "manifests": [described]})
        self.files["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
        paths = [str(layer["digest"]).replace("sha256:", "blobs/sha256/") for layer in (stored, *packed)]
        self.files["manifest.json"] = _json([{"Config": paths[0], "RepoTags": [name], "Layers": paths[1:]}])

    def write(self, path: Path) -> None:
        """Write everything as one file."""
        with tarfile.open(path, "w") as tar:
            for name, data in sorted(self.files.items()):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _plain_tar(path: Path) -> bytes:
    data = path.read_bytes()
    for start, packer in {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ": lzma}.items():
        if data.startswith(start):
            return packer.decompress(data)
    return data


def build(name: str, rootfs: Path, wheels: Path, output: Path) -> str:
    """Write the image and return a line about it."""
    name, base = full_name(name), RootFilesystem(rootfs)
    if base.minor != sys.version_info.minor:
        fix = f"run this with Python 3.{base.minor} (`make PYTHON=python3.{base.minor} VENV=… image-archive`)"
        wheels_are_for = f"the wheels are for Python 3.{sys.version_info.minor}"
        raise Unusable(f"{rootfs} has Python 3.{base.minor}, but {wheels_are_for}: {fix}")
    if (here := _MACHINES.get(platform.machine().lower(), platform.machine())) != base.architecture:
        raise Unusable(
            f"{rootfs} is for {base.architecture}, but the wheels are for {here}: build it on such a machine"
        )
    archive = Archive()
    archive.add_image(name, base.architecture, [_plain_tar(rootfs), podqos_layer(base, wheels)])
    archive.write(output)
    return f"{output}: {name}, {base.architecture}, Python 3.{base.minor}, {output.stat().st_size / 1e6:.0f} MB"


def main(words: list[str]) -> int:
    """Build what the options say."""
    parser = argparse.ArgumentParser(prog="tools/image.py", description="Write an image of podqos as an archive.")
    parser.add_argument(
        "--name", metavar="IMAGE", required=True, help="its name, such as registry.example.com/podqos:1.0"
    )
    parser.add_argument(
        "--rootfs", metavar="FILE", type=Path, required=True, help="a root file system with Python, as tar"
    )
    parser.add_argument(
        "--wheels", metavar="DIR", type=Path, required=True, help="the wheels of podqos and its dependencies"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, required=True, help="the archive to write")
    options = parser.parse_args(words)
    try:
        print(build(options.name, options.rootfs, options.wheels, options.output))
    except Unusable as unusable:
        print(f"error: {unusable}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
