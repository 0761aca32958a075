"""The options of ``podqos node run`` that select the container runtime."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from podqos.errors import InvalidOption

if TYPE_CHECKING:
    from podqos.host.runtimes.choice import RuntimeChoice

# Which option belongs to which runtime.
_BELONGS = {"images": "runc", "runtime_socket": "containerd", "podman_option": "podman"}


def add_runtime_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--runtime",
        choices=("process", "runc", "containerd", "podman"),
        default="process",
        help=(
            "how to run containers: as plain processes (default, needs nothing installed) or with a container runtime"
        ),
    )
    parser.add_argument(
        "--images",
        metavar="DIR",
        help="with --runtime runc: directory of images, as OCI image layouts or root filesystems",
    )
    parser.add_argument(
        "--runtime-socket",
        metavar="PATH",
        help="with --runtime containerd: its CRI socket (default: /run/containerd/containerd.sock)",
    )
    parser.add_argument(
        "--podman-option",
        metavar="OPTION",
        action="append",
        help="with --runtime podman: a global podman option, such as --root=DIR; may be repeated",
    )


def runtime_choice(arguments: argparse.Namespace) -> RuntimeChoice:
    """Return the chosen runtime; options of another runtime are rejected."""
    from pathlib import Path

    from podqos.host.runtimes.choice import RuntimeChoice, RuntimeName

    for name, runtime in _BELONGS.items():
        if getattr(arguments, name) is not None and arguments.runtime != runtime:
            option = f"--{name.replace('_', '-')}"
            raise InvalidOption(
                f"{option} does not apply to --runtime {arguments.runtime}", where=option, fix=f"--runtime {runtime}"
            )
    images, socket = arguments.images, arguments.runtime_socket
    if images is not None and not Path(images).is_dir():
        raise InvalidOption(f"{images} is not a directory", where="--images", fix="a directory of image layouts")
    return RuntimeChoice(
        name=RuntimeName(arguments.runtime),
        images=None if images is None else Path(images).absolute(),
        socket=None if socket is None else Path(socket).absolute(),
        options=tuple(arguments.podman_option or ()),
    )
