"""``python -m podqos``."""

from __future__ import annotations

from podqos.cli.main import command_line

if __name__ == "__main__":
    command_line()
