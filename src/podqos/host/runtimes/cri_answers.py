"""The responses of a container runtime: the messages of ``cri_messages`` as types."""

from __future__ import annotations

from msgspec import Struct

READY = 0
"""The state of a sandbox whose process runs."""
RUNNING, EXITED = 1, 2
"""States of containers."""


class Metadata(Struct, frozen=True):
    """The pod of a sandbox."""

    uid: str = ""
    attempt: int = 0


class FoundSandbox(Struct, frozen=True):
    """A sandbox in the runtime."""

    id: str
    metadata: Metadata = Metadata()
    state: int = READY
    annotations: dict[str, str] = {}


class ListedContainer(Struct, frozen=True):
    """A container in the runtime."""

    id: str
    state: int = 0
    image_ref: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class CriStatus(Struct, frozen=True):
    """The status of a container."""

    state: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class Info(Struct, frozen=True):
    """The embedded JSON in the verbose information of containerd and CRI-O."""

    pid: int = 0


class CriNumber(Struct, frozen=True):
    """A number that may be absent."""

    value: int = 0


class Image(Struct, frozen=True):
    """An image in the runtime."""

    id: str
    repo_tags: tuple[str, ...] = ()
    size: int = 0
    uid: CriNumber | None = None
    username: str = ""
    pinned: bool = False

    @property
    def user(self) -> str:
        """The user it runs as, by number or name; empty for root."""
        return self.username if self.uid is None else str(self.uid.value)


class RuntimeConfig(Struct, frozen=True, rename="camel"):
    """The part of containerd's configuration that is used here."""

    sandbox_image: str = ""


class Answer(Struct, frozen=True):
    """Any response: each method fills in its own fields."""

    items: tuple[FoundSandbox, ...] = ()
    containers: tuple[ListedContainer, ...] = ()
    images: tuple[Image, ...] = ()
    image: Image | None = None
    status: CriStatus = CriStatus()
    info: dict[str, str] = {}
    pod_sandbox_id: str = ""
    container_id: str = ""
    exit_code: int = 0
