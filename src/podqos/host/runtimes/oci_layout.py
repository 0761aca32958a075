"""Finds images on disk: the directory or OCI image layout of a reference, and its configuration.

Below the directory given by ``--images`` an image is found under its whole name or the last part of it, with or without
its tag: ``registry.example/shop/web:1.2`` is ``registry.example/shop/web:1.2``, ``registry.example/shop/web``,
``web:1.2`` or ``web``. That is an OCI image layout (``index.json`` and ``blobs``) whose ``org.opencontainers.image.
ref.name`` is the tag or the reference, or simply a root filesystem. The directory may also be one layout with many
images. Nothing is ever pulled. Every blob is checked against its digest before use.

Source: opencontainers/image-spec image-layout.md, manifest.md, config.md, image-index.md, annotations.md; distribution
reference grammar for defaults (``docker.io/library``, ``latest``).
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from podqos.errors import HostError
from podqos.host.runtimes.runtime import StartError

_REF_NAMES = ("org.opencontainers.image.ref.name", "io.containerd.image.name")
_INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_READ_BYTES = 1 << 20
_MOST_DOCUMENT_BYTES = 4 << 20  # as registries allow for a manifest
# What may be a reference; the grammar itself is the API server's to check.
_REFERENCE = re.compile(r"[\w.:/@-]{1,1000}", re.ASCII)
Decoded = TypeVar("Decoded", "_Index", "_Manifest", "_Configuration")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "ppc64le": "ppc64le", "s390x": "s390x"}


class Platform(Struct, frozen=True):
    """The platform of a manifest."""

    architecture: str = ""
    os: str = "linux"


class Descriptor(Struct, frozen=True, rename="camel"):
    """A blob by its digest."""

    digest: str
    size: int = 0
    media_type: str = ""
    annotations: dict[str, str] = {}
    platform: Platform | None = None


class _Index(Struct, frozen=True):
    manifests: tuple[Descriptor, ...] = ()


class _Manifest(Struct, frozen=True):
    config: Descriptor
    layers: tuple[Descriptor, ...] = ()


class ImageConfig(Struct, frozen=True):
    """The run configuration of an image."""

    entrypoint: tuple[str, ...] | None = field(name="Entrypoint", default=None)
    cmd: tuple[str, ...] | None = field(name="Cmd", default=None)
    env: tuple[str, ...] | None = field(name="Env", default=None)
    working_dir: str = field(name="WorkingDir", default="")
    user: str = field(name="User", default="")


class _Rootfs(Struct, frozen=True):
    diff_ids: tuple[str, ...] = ()


class _Configuration(Struct, frozen=True):
    config: ImageConfig | None = None
    rootfs: _Rootfs = _Rootfs()


class Reference(Struct, frozen=True):
    """The parts of an image's name."""

    name: str
    tag: str
    digest: str

    @property
    def full_name(self) -> str:
        """The name with defaults filled in."""
        first, _, rest = self.name.partition("/")
        if not rest:
            return f"docker.io/library/{self.name}"
        is_registry = "." in first or ":" in first or first == "localhost"
        return self.name if is_registry else f"docker.io/{self.name}"

    def is_same(self, text: str) -> bool:
        """Whether another reference means this image."""
        other = parse_reference(text)
        return other.full_name == self.full_name and other.tag == self.tag


class FoundImage(Struct, frozen=True):
    """An image on disk."""

    config: ImageConfig
    rootfs: Path | None
    """A ready root filesystem; None: layers to unpack."""
    digest: str = ""
    layers: tuple[Descriptor, ...] = ()
    diff_ids: tuple[str, ...] = ()
    """The digests of the uncompressed layers; none if the image does not say."""
    layout: Path = Path()


def parse_reference(text: str) -> Reference:
    """Parse ``[registry/]name[:tag][@digest]``."""
    name, _, digest = text.partition("@")
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return Reference(f"{head}{slash}{last}", tag or "latest", digest)


class ImageFolder:
    """The directory of images."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self, text: str) -> FoundImage:
        """Return an image by reference; raises ``HostError`` with what was looked for."""
        if self._folder is None:
            what = f"images are not pulled: give the directory of {text} with the node's option images"
            raise StartError("ErrImageNeverPull", what)
        if not text:
            raise StartError("InvalidImageName", "the container has no image")
        if _REFERENCE.fullmatch(text) is None:
            raise StartError("InvalidImageName", f"{text[:100]!r} is not the name of an image")
        wanted = parse_reference(text)
        for folder in self._candidates(wanted):
            if (folder / "index.json").is_file():
                found = _in_layout(folder, wanted, is_own=folder != self._folder)
                if found is not None:
                    return found
            elif folder != self._folder and folder.is_dir() and any(folder.iterdir()):
                return FoundImage(ImageConfig(), folder)
        names = " or ".join(dict.fromkeys((wanted.name, wanted.name.rpartition("/")[2])))
        raise StartError(
            "ErrImageNeverPull",
            f"images are not pulled: {text} is not in {self._folder} "
            f"(looked for a root filesystem or an OCI image layout {names}, with or without :{wanted.tag})",
        )

    def _candidates(self, wanted: Reference) -> Iterator[Path]:
        assert self._folder is not None
        yield self._folder
        root = self._folder.resolve()
        for name in (wanted.name, wanted.name.rpartition("/")[2]):
            for spelled in (f"{name}:{wanted.tag}", name):
                folder = self._folder / spelled
                # A name must not lead out of the directory.
                if name and folder.resolve().is_relative_to(root):
                    yield folder


def checked_blob(layout: Path, blob: Descriptor) -> Path:
    """Return the path of a blob, after checking its digest."""
    if _DIGEST.fullmatch(blob.digest) is None:
        raise HostError(f"{layout}: {blob.digest!r} is not a digest this node can check (sha256 or sha512)")
    kind, _, wanted = blob.digest.partition(":")
    path = layout / "blobs" / kind / wanted
    digest = hashlib.new(kind)
    try:
        if path.exists() and not path.is_file():
            raise HostError(f"{path}: not a file: the image layout is damaged")
        with path.open("rb") as file:
            while part := file.read(_READ_BYTES):
                digest.update(part)
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}: the image layout is incomplete") from error
    if digest.hexdigest() != wanted:
        raise HostError(f"{path}: content does not match its digest (found {kind}:{digest.hexdigest()})")
    return path


def _in_layout(layout: Path, wanted: Reference, *, is_own: bool) -> FoundImage | None:
    """Return an image in a layout, if present; in a layout of its own the tag is enough."""
    index = _decode(_Index, layout / "index.json")
    chosen = _choose(index.manifests, wanted, is_own=is_own)
    if chosen is None:
        return None
    while chosen.media_type in _INDEX_TYPES:
        nested = _decode(_Index, checked_blob(layout, chosen))
        fitting = _for_this_machine(nested.manifests)
        if fitting is None:
            raise HostError(f"{layout}: no image for {_architecture()}")
        chosen = fitting
    manifest = _decode(_Manifest, checked_blob(layout, chosen))
    configuration = _decode(_Configuration, checked_blob(layout, manifest.config))
    diff_ids = configuration.rootfs.diff_ids
    if diff_ids and len(diff_ids) != len(manifest.layers):
        raise HostError(f"{layout}: {len(manifest.layers)} layers, but {len(diff_ids)} diff_ids")
    config = configuration.config or ImageConfig()
    return FoundImage(config, None, chosen.digest, manifest.layers, diff_ids, layout)


def _choose(manifests: tuple[Descriptor, ...], wanted: Reference, *, is_own: bool) -> Descriptor | None:
    if wanted.digest:
        return next((manifest for manifest in manifests if manifest.digest == wanted.digest), None)

    def is_meant(each: Descriptor) -> bool:
        names = [each.annotations[name] for name in _REF_NAMES if name in each.annotations]
        if is_own and (wanted.tag in names or not names):
            return True
        return any(wanted.is_same(name) for name in names)

    return _for_this_machine(tuple(manifest for manifest in manifests if is_meant(manifest)))


def _for_this_machine(manifests: tuple[Descriptor, ...]) -> Descriptor | None:
    def fits(each: Descriptor) -> bool:
        return each.platform is None or (each.platform.os == "linux" and each.platform.architecture == _architecture())

    return next((manifest for manifest in manifests if fits(manifest)), None)


def _architecture() -> str:
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def _decode(kind: type[Decoded], file: Path) -> Decoded:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_DOCUMENT_BYTES + 1)
        if len(data) > _MOST_DOCUMENT_BYTES:
            raise HostError(f"{file}: not an OCI image layout: more than {_MOST_DOCUMENT_BYTES >> 20} MiB")
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise HostError(f"{file}: not an OCI image layout: {error}") from error
