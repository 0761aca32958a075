"""podqos: which pods are slowed down or killed, in which order, and why.

``load`` reads files; ``explain``, ``check``, ``rank`` and the rest answer as the commands of those names do, with the
values that ``-o json`` prints (docs/reference/library.md). Below them are the decisions
themselves: ``classify``, ``oom_scores``.

The public names are those that ``__init__.pyi`` imports. They are loaded on first use, because the command line starts
faster when what it does not need is never imported.
"""

from __future__ import annotations


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    from importlib import import_module

    if name == "__all__":
        return __dir__()
    if name not in (modules := _modules()):
        raise AttributeError(f"module 'podqos' has no attribute {name!r}")
    value: object = globals().setdefault(name, getattr(import_module(modules[name]), name))
    return value


def __dir__() -> list[str]:
    return sorted(_modules())


def _modules() -> dict[str, str]:
    """Return the module of every public name, from the list that type checkers read: there is no second one to keep.

    Each line of the stub is ``from MODULE import NAME as NAME``. ``lazy_loader`` of scientific-python does the same.
    """
    from pkgutil import get_data

    lines = (get_data(__name__, "__init__.pyi") or b"").decode().splitlines()
    imports = (line.split() for line in lines if line.startswith("from "))
    return {name: module for _, module, _, name, *_ in imports}
