"""The version of podqos: runs that are kept, and what it says to others, name it."""

from __future__ import annotations

__version__ = "0.1.0"
