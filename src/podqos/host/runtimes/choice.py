"""Selects the container runtime by the options of ``podqos node run``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.runtimes.engine import EngineRuntime
from podqos.host.runtimes.process import ProcessRuntime
from podqos.host.runtimes.runtime import Note, Runtime
from podqos.naming import naming


class RuntimeName(StrEnum):
    """The available runtimes."""

    PROCESS = "process"
    RUNC = "runc"
    CONTAINERD = "containerd"
    PODMAN = "podman"


class RuntimeChoice(Struct, frozen=True, kw_only=True):
    """A runtime and how to reach it."""

    name: RuntimeName = RuntimeName.PROCESS
    images: Path | None = None
    """Of runc: the directory of images."""
    socket: Path | None = None
    """Of containerd."""
    options: tuple[str, ...] = ()
    """Of podman: global options of each call."""


def make_runtime(
    choice: RuntimeChoice, folder: Path, cgroups: Cgroups, capabilities: Capabilities, note: Note
) -> Runtime:
    """Return the runtime; raises ``HostError`` with what is missing."""
    match choice.name:
        case RuntimeName.PROCESS:
            return ProcessRuntime(folder, cgroups, capabilities, note)
        case RuntimeName.RUNC:
            from podqos.host.runtimes.oci_layout import ImageFolder
            from podqos.host.runtimes.runc import RuncEngine

            images = ImageFolder(choice.images)
            return EngineRuntime(lambda note: RuncEngine(folder, images, cgroups, capabilities, note), cgroups, note)
        case RuntimeName.CONTAINERD:
            try:
                from podqos.host.runtimes.containerd import DEFAULT_SOCKET, CriEngine
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("podqos"):
                    raise
                raise HostError(
                    naming("runtime", "containerd")
                    + f" needs the Python package {error.name}: in a clone of podqos, pip install '.[containerd]'"
                ) from error

            socket = choice.socket or DEFAULT_SOCKET
            return EngineRuntime(lambda note: CriEngine(folder, cgroups, capabilities, note, socket), cgroups, note)
        case RuntimeName.PODMAN:
            from podqos.host.runtimes.podman import PodmanEngine

            return EngineRuntime(
                lambda note: PodmanEngine(folder, cgroups, capabilities, note, choice.options), cgroups, note
            )
