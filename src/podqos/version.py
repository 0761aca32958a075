"""The version of podqos: runs that are kept, and what it says to others, name it.

Between two releases it is that of the next one with ``.dev0``, so that nothing built from a checkout looks released.
"""

from __future__ import annotations

__version__ = "0.1.0.dev0"
PROJECT_URL = "https://podqos.dev"
"""Where the project and its documents are published; the same as in pyproject.toml."""
