"""What a container runtime answers, as far as it is read here: the messages of ``cri_messages`` as types."""

from __future__ import annotations

from msgspec import Struct

READY = 0
"""The state of a sandbox whose process runs."""
RUNNING, EXITED = 1, 2
"""States of containers."""


class Metadata(Struct, frozen=True):
    """Which pod a sandbox is of."""

    uid: str = ""
    attempt: int = 0


class FoundSandbox(Struct, frozen=True):
    """A sandbox that the runtime has."""

    id: str
    metadata: Metadata = Metadata()
    state: int = READY
    annotations: dict[str, str] = {}


class Sandboxes(Struct, frozen=True):
    """The answer of ``ListPodSandbox``."""

    items: tuple[FoundSandbox, ...] = ()


class ListedContainer(Struct, frozen=True):
    """A container that the runtime has."""

    id: str
    state: int = 0
    image_ref: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Containers(Struct, frozen=True):
    """The answer of ``ListContainers``."""

    containers: tuple[ListedContainer, ...] = ()


class Status(Struct, frozen=True):
    """How a container is."""

    state: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class StatusAnswer(Struct, frozen=True):
    """The answer of ``ContainerStatus``."""

    status: Status = Status()
    info: dict[str, str] = {}


class Info(Struct, frozen=True):
    """The part of containerd's and CRI-O's verbose information that is JSON of its own."""

    pid: int = 0


class Image(Struct, frozen=True):
    """An image that the runtime has."""

    id: str
    repo_tags: tuple[str, ...] = ()
    size: int = 0
    pinned: bool = False


class Images(Struct, frozen=True):
    """The answer of ``ListImages``."""

    images: tuple[Image, ...] = ()


class ImageAnswer(Struct, frozen=True):
    """The answer of ``ImageStatus``."""

    image: Image | None = None


class RuntimeAnswer(Struct, frozen=True):
    """The answer of ``Status``."""

    info: dict[str, str] = {}


class RuntimeConfig(Struct, frozen=True, rename="camel"):
    """The part of containerd's configuration that matters here."""

    sandbox_image: str = ""


class Made(Struct, frozen=True):
    """The answers of ``RunPodSandbox`` and ``CreateContainer``."""

    pod_sandbox_id: str = ""
    container_id: str = ""


class ExecAnswer(Struct, frozen=True):
    """The answer of ``ExecSync``."""

    exit_code: int = 0
