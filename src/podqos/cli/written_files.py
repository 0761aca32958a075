"""Files a command writes: whole or not at all, also when it is interrupted."""

from __future__ import annotations

import os
import tempfile

from podqos.errors import HostError


def write_file(path: str, data: bytes) -> None:
    """Write a file beside the old one, and only then put it in its place."""
    folder = os.path.dirname(path) or "."
    try:
        descriptor, unfinished = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.chmod(unfinished, 0o666 & ~_umask())
            os.replace(unfinished, path)
        except BaseException:
            os.unlink(unfinished)
            raise
    except OSError as error:
        raise HostError(f"{path}: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
