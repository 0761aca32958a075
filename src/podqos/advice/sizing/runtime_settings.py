"""What a runtime is told to use, changed together with the memory limit of its container.

A heap of 3g stays where the new limit still leaves room for the rest of the process; otherwise it is lowered to the
largest share of the limit that does (``LARGEST_SHARES``). It never grows with the limit: what was OOM-killed needs the
room beside its heap. Percentages of the limit, and variables that refer to it, follow by themselves. Amounts
that a ConfigMap or Secret holds are not known here: they are named.

``manifest.runtime_memory`` reads the settings; which of them are wrong as they are is for ``checks`` to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct

from podqos.manifest.runtime_memory import MemorySetting, Runtime

_MIB = 1 << 20

LARGEST_SHARES = {
    Runtime.JAVA: Fraction(75, 100),
    Runtime.NODE: Fraction(80, 100),
    Runtime.GO: Fraction(90, 100),
    Runtime.DOTNET: Fraction(80, 100),
    Runtime.REDIS: Fraction(80, 100),
    Runtime.MEMCACHED: Fraction(85, 100),
    Runtime.POSTGRES: Fraction(40, 100),
    Runtime.MYSQL: Fraction(75, 100),
    Runtime.MONGODB: Fraction(60, 100),
}
"""How much of the limit a runtime may be told to use: what else the process needs comes on top."""


class Follows(StrEnum):
    """What becomes of a setting when the limit changes."""

    LOWERED = "Lowered"
    """It gets the largest share of the limit that leaves room for the rest of the process."""
    UNKNOWN = "Unknown"
    """A ConfigMap or Secret holds it: it has to be changed there."""


class RuntimeChange(Struct, frozen=True, rename="camel"):
    """How a setting has to change."""

    runtime: Runtime
    path: str
    """The field, from the pod: ``spec.containers[0].env[1].value``."""
    variable: str
    """The environment variable; empty where the command says so."""
    before: str
    """As it is written: ``-Xmx3g``."""
    after: str
    """As it should be written; empty where that is not known here."""
    because: Follows
    held_by: str = ""
    """What holds an amount that is not known: ``ConfigMap app``."""
    field_text: str = ""
    """The whole field as it should be written; empty where it has to be edited by hand."""

    @property
    def field(self) -> tuple[str, int]:
        """The list of the container that has it, and where: ``env``, 1."""
        # spec.initContainers[0].env[1].value
        name, _, rest = self.path.split(".")[2].partition("[")
        return name, int(rest.removesuffix("]"))


def runtime_changes(
    settings: Iterable[MemorySetting], limit_before_bytes: int | None, limit_bytes: int | None
) -> tuple[RuntimeChange, ...]:
    """Return which settings have to change with the limit; nothing where there is none, or it stays."""
    if limit_bytes is None or limit_bytes == limit_before_bytes:
        return ()
    changes = (_changed(setting, limit_bytes) for setting in settings)
    return tuple(change for change in changes if change is not None)


def _changed(setting: MemorySetting, limit_bytes: int) -> RuntimeChange | None:
    if setting.unknown:
        return RuntimeChange(
            setting.runtime, setting.path, setting.variable, setting.text, "", Follows.UNKNOWN, setting.unknown
        )
    # A percentage, or a reference to the limit, follows by itself; what the runtime cannot read is for a check to say.
    if not setting.amount_bytes or setting.share is not None or setting.path.endswith(".valueFrom"):
        return None
    amount = int(LARGEST_SHARES[setting.runtime] * limit_bytes)
    if setting.amount_bytes <= amount:
        return None
    after = written(setting, amount)
    return RuntimeChange(setting.runtime, setting.path, setting.variable, setting.text, after, Follows.LOWERED)


def written(setting: MemorySetting, amount_bytes: int) -> str:
    """Return the setting with another amount, in the runtime's own units, rounded down to whole mebibytes."""
    mebibytes = max(1, amount_bytes // _MIB)
    amount = {
        Runtime.JAVA: f"{mebibytes}m",
        Runtime.NODE: f"{mebibytes}",
        Runtime.GO: f"{mebibytes}MiB",
        Runtime.DOTNET: f"0x{mebibytes * _MIB:X}",
        Runtime.REDIS: f"{mebibytes}mb",
        Runtime.MEMCACHED: f"{mebibytes}",
        Runtime.POSTGRES: f"{mebibytes}MB",
        Runtime.MYSQL: f"{mebibytes}M",
        Runtime.MONGODB: f"{mebibytes / 1024:.2f}",
    }[setting.runtime]
    return _option(setting.text) + amount


def edited(text: str, change: RuntimeChange) -> str:
    """Return the text of the field with the setting changed; empty where the setting is not found in it.

    A variable may hold nothing but the amount, and so may the word of a command behind its option.
    """
    if not change.after:
        return ""
    if change.before in text:
        return text.replace(change.before, change.after)
    option = change.before.removesuffix(text)
    if option != change.before and change.after.startswith(option):
        return change.after.removeprefix(option)
    return ""


def _option(text: str) -> str:
    """Return a setting up to its amount: ``-Xmx``, ``--maxmemory ``, ``GOMEMLIMIT=``."""
    if text.startswith("-Xmx"):
        return "-Xmx"
    for end in ("=", " "):
        option, found, _ = text.rpartition(end)
        if found:
            return option + found
    # memcached's -m1024
    return text.rstrip("0123456789.kKmMgGbB") or text
