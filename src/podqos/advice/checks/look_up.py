"""Which number has to be looked up before an amount is chosen, and the command that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from podqos.amounts import listed


def peak_usage(namespace: str, containers: Sequence[str], resource: str = "memory") -> str:
    """Return the usage that decides about a request or limit of containers; without any, of all of a pod's."""
    where = f" -n {quote(namespace)}" if namespace else ""
    of = f" of {listed(containers)}" if containers else ""
    return f"the peak {resource} usage{of} (now: kubectl top pod{where} --containers)"
