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


class ListedContainer(Struct, frozen=True):
    """A container that the runtime has."""

    id: str
    state: int = 0
    image_ref: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Status(Struct, frozen=True):
    """How a container is."""

    state: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class Info(Struct, frozen=True):
    """The part of containerd's and CRI-O's verbose information that is JSON of its own."""

    pid: int = 0


class Image(Struct, frozen=True):
    """An image that the runtime has."""

    id: str
    repo_tags: tuple[str, ...] = ()
    size: int = 0
    pinned: bool = False


class RuntimeConfig(Struct, frozen=True, rename="camel"):
    """The part of containerd's configuration that matters here."""

    sandbox_image: str = ""


class Answer(Struct, frozen=True):
    """Any answer: each method fills in its own fields."""

    items: tuple[FoundSandbox, ...] = ()
    containers: tuple[ListedContainer, ...] = ()
    images: tuple[Image, ...] = ()
    image: Image | None = None
    status: Status = Status()
    info: dict[str, str] = {}
    pod_sandbox_id: str = ""
    container_id: str = ""
    exit_code: int = 0
