"""podqos: who is slowed, who is killed, in which order, and why.

The public names are those in ``__all__``. They are loaded on first use, because the command line starts
faster when what it does not need is never imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podqos.model.pod import Pod
    from podqos.model.profile import Profile
    from podqos.model.quantity import Quantity

__version__ = "0.1.0"

# public name → the module that defines it
_PUBLIC: dict[str, str] = {
    "Quantity": "podqos.model.quantity",
    "Pod": "podqos.model.pod",
    "Profile": "podqos.model.profile",
}

__all__ = ["Pod", "Profile", "Quantity", "__version__"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    try:
        module = _PUBLIC[name]
    except KeyError:
        raise AttributeError(f"module 'podqos' has no attribute {name!r}") from None
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
