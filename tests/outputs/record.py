"""Write down again what every command prints, shows, writes and says (``make golden``). Read the difference."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from outputs.recording import record

if __name__ == "__main__":
    record()
