"""podqos: which pods are slowed down or killed, in which order, and why.

``load`` reads files; ``explain``, ``check``, ``rank`` and the rest answer as the commands of those names do, with the
values that ``-o json`` prints (docs/library.md). Below them are the decisions themselves: ``classify``, ``oom_scores``.

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
    """Return the module of every public name: type checkers and this read the one list."""
    import re
    from pkgutil import get_data

    stub = get_data(__name__, "__init__.pyi") or b""
    return {name: module for module, name in re.findall(r"^from (\S+) import (\w+)", stub.decode(), re.MULTILINE)}
