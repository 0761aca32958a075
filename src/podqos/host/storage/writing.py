"""Writes a file whole or not at all: a full disk takes part of a write and says so only by its length."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def replace_file(file: Path, data: bytes) -> None:
    """Write a new file next to the old one and rename it into place; if that fails, the old one stays."""
    partial = file.with_suffix(".new")
    write_file(partial, data)
    partial.rename(file)


def write_file(file: Path, data: bytes) -> None:
    """Write a file; what could be written of it is removed again if the rest cannot."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        with suppress(OSError):
            file.unlink()
        raise
    finally:
        os.close(descriptor)
