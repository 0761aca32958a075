"""``python -m podqos``."""

from __future__ import annotations

import sys

from podqos.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
