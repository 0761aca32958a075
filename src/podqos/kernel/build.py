"""How the kernel was built, as far as its arithmetic depends on it: the common distributions' builds for x86-64."""

from __future__ import annotations

PAGE_BYTES = 4096

PAGE_BLOCK_PAGES = 512
"""What the kernel keeps together to be able to build huge pages."""

HZ = 250
"""Ticks a second (CONFIG_HZ): delays and sampling intervals are whole ticks."""
