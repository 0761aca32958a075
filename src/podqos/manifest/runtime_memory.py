"""Memory settings of runtimes in a container's command, arguments and environment: ``-Xmx4g``, ``GOMEMLIMIT``.

The models have neither commands nor environments, which may hold secrets; this reads them as plain values, where a text
mentions a runtime at all, and keeps only amounts. References to the container's own limits are resolved, those to
ConfigMaps and Secrets are unknown here. What an amount means for a limit is not decided here.

Sources: the JDK's java(1) (-Xmx, -XX:MaxRAMPercentage), Go's runtime (parseByteCount), Node's --max-old-space-size in
mebibytes, Redis' memtoull, PostgreSQL's GUC units, memcached -m in mebibytes, MySQL's and MongoDB's options, .NET's
GCHeapHardLimit in hexadecimal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InvalidQuantity
from podqos.manifest.plain import Plain
from podqos.model.quantity import Quantity

_MARKS = (
    # Options of Java, by themselves or in a variable such as JAVA_TOOL_OPTIONS, KAFKA_HEAP_OPTS or MAX_HEAP_SIZE.
    *(b"-Xm", b"-XX:Max", b"_OPT", b"HEAP"),
    *(b"-old-space", b"_old_space", b"GOMEMLIMIT", b"GCHeap"),
    # shared_buffers, innodb-buffer-pool-size
    *(b"maxmemory", b"memcached", b"buffer", b"wiredTiger"),
)
"""What every text has that says how much memory a runtime uses. Few, because all of a text is searched for each."""

# The two that are written most, as they are written mostly.
_USUAL = re.compile(
    rb"""GOMEMLIMIT"?\n[ ]+value:[ ]["']?([0-9]+)([KMG])iB["']?\n|-Xm[sx]([0-9]+)([kmgKMG])(?=["' \n])"""
)
_USUAL_MARKS = frozenset({b"GOMEMLIMIT", b"-Xm", b"_OPT"})
_LARGEST_JAVA_SHARE = Fraction(80, 100)


class Written(Struct, frozen=True):
    """An object whose commands and environments may have memory settings of runtimes."""

    read: Callable[[], Plain]
    """Returns its full contents, which takes a while."""
    harmless_bytes: int | None = None
    """Whatever it says fits memory limits from here on; None if only reading tells."""


class Mention(Struct, frozen=True, gc=False):
    """A text that may say how much memory runtimes use."""

    marks: tuple[bytes, ...]
    """What in it says so."""
    harmless_bytes: int | None = None
    """As for an object."""


def mention(text: bytes, among: Sequence[bytes] = _MARKS) -> Mention | None:
    """Return whether a text mentions a runtime; None if it does not, as most. ``among``: those of a longer text."""
    marks = tuple(mark for mark in among if mark in text)
    if not marks:
        return None
    usual = _USUAL.findall(text) if _USUAL_MARKS.issuperset(marks) else []
    named = text.count(b"GOMEMLIMIT") + text.count(b"-Xm")
    if not usual or len(usual) != named or (b"_OPT" in marks and b"valueFrom" in text):
        return Mention(marks)
    go = [int(number) * _BINARY[unit.decode().lower()] for number, unit, _, _ in usual if number]
    java = [int(number) * _BINARY[unit.decode().lower()] for _, _, number, unit in usual if number]
    return Mention(marks, max([*go, *(int(each / _LARGEST_JAVA_SHARE) + 1 for each in java)]))


def written(text: bytes, read: Callable[[], Plain]) -> Written | None:
    """Return an object by its text, which ``read`` reads; None if no runtime is mentioned."""
    found = mention(text)
    return None if found is None else Written(read, found.harmless_bytes)


class Runtime(StrEnum):
    """What limits its own memory."""

    JAVA = "Java"
    NODE = "Node.js"
    GO = "Go"
    DOTNET = ".NET"
    REDIS = "Redis"
    MEMCACHED = "memcached"
    POSTGRES = "PostgreSQL"
    MYSQL = "MySQL"
    MONGODB = "MongoDB"


class MemorySetting(Struct, frozen=True, gc=False):
    """One memory setting of a runtime."""

    runtime: Runtime
    text: str
    """As it is written: ``-Xmx4g``, ``GOMEMLIMIT=400MiB``."""
    path: str
    """The path of the field in the pod."""
    variable: str = ""
    """The environment variable; empty if the command says so."""
    amount_bytes: int | None = None
    share: Fraction | None = None
    """Of the memory limit, instead of an amount."""
    unknown: str = ""
    """What holds the value, where that is not the manifest: ``ConfigMap app``."""

    @property
    def is_malformed(self) -> bool:
        """Whether the runtime rejects it."""
        return self.amount_bytes is None and self.share is None and not self.unknown


# ---- amounts -----------------------------------------------------------------------------------------------------

_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_GO = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_REDIS = {"": 1, "b": 1, "k": 10**3, "kb": 1 << 10, "m": 10**6, "mb": 1 << 20, "g": 10**9, "gb": 1 << 30}
_POSTGRES = {"": 8 << 10, "B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_NUMBER = re.compile(r"([0-9]+)([A-Za-z]*)", re.ASCII)
_LIKE_AN_AMOUNT = re.compile(r"[0-9]+(?:\.[0-9]+)?[A-Za-z]*", re.ASCII)
"""What was meant as an amount, even where a runtime cannot read it."""


def _in(units: Mapping[str, int], *, any_case: bool = False) -> Callable[[str], int | None]:
    """Return what reads a whole number with one of these units."""

    def read(text: str) -> int | None:
        matched = _NUMBER.fullmatch(text)
        if matched is None:
            return None
        unit = units.get(matched[2].lower() if any_case else matched[2])
        return None if unit is None else int(matched[1]) * unit

    return read


def _decimal(unit: int) -> Callable[[str], int | None]:
    return lambda text: int(Fraction(text) * unit) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else None


def _hexadecimal(text: str) -> int | None:
    return int(text, 16) if re.fullmatch(r"(?:0x)?[0-9A-Fa-f]+", text) else None


_java = _in(_BINARY, any_case=True)


# ---- options -----------------------------------------------------------------------------------------------------


class _Option(Struct, frozen=True):
    """An option of a command, which may also be in an environment variable."""

    runtime: Runtime
    pattern: re.Pattern[str]
    """Its group is the value."""
    read: Callable[[str], int | None]
    is_share: bool = False
    """Whether the value is a percentage of the limit."""
    needs: str = ""
    """What the container's image or command must mention for the option to mean this."""


_VALUE = r"""["']?([^\s"';&|})\\,]+)"""
_OPTIONS = (
    _Option(Runtime.JAVA, re.compile(rf"-(?:Xmx|XX:MaxHeapSize=){_VALUE}"), _java),
    _Option(Runtime.JAVA, re.compile(rf"-XX:MaxRAMPercentage={_VALUE}"), _decimal(1000), is_share=True),
    _Option(Runtime.JAVA, re.compile(rf"-XX:MaxRAM={_VALUE}"), _java),
    _Option(Runtime.JAVA, re.compile(rf"-(?:Xms|XX:InitialHeapSize=){_VALUE}"), _java),
    _Option(Runtime.NODE, re.compile(rf"--max[-_]old[-_]space[-_]size[= ]{_VALUE}"), _decimal(1 << 20)),
    _Option(Runtime.GO, re.compile(rf"\bGOMEMLIMIT={_VALUE}"), _in(_GO)),
    _Option(Runtime.REDIS, re.compile(rf"--maxmemory[= ]+{_VALUE}"), _in(_REDIS, any_case=True)),
    _Option(Runtime.POSTGRES, re.compile(rf"\bshared_buffers\s*=\s*{_VALUE}"), _in(_POSTGRES)),
    _Option(Runtime.MYSQL, re.compile(rf"--innodb[-_]buffer[-_]pool[-_]size[= ]{_VALUE}"), _java),
    _Option(Runtime.MONGODB, re.compile(rf"--wiredTigerCacheSizeGB[= ]{_VALUE}"), _decimal(1 << 30)),
    _Option(
        Runtime.MEMCACHED,
        re.compile(rf"(?:^|\s)(?:-m ?|--memory-limit[= ]){_VALUE}"),
        _decimal(1 << 20),
        needs="memcached",
    ),
)
_MALFORMED_COUNTS = frozenset({Runtime.JAVA, Runtime.GO, Runtime.REDIS})
"""Runtimes that do not start with an amount they cannot read."""
_VARIABLES: Mapping[str, tuple[Runtime, Callable[[str], int | None], bool]] = {
    "GOMEMLIMIT": (Runtime.GO, _in(_GO), False),
    **dict.fromkeys(("MAX_HEAP_SIZE", "SOLR_HEAP", "ES_HEAP_SIZE"), (Runtime.JAVA, _java, False)),
    **dict.fromkeys(
        ("DOTNET_GCHeapHardLimit", "COMPlus_GCHeapHardLimit"),
        (Runtime.DOTNET, _hexadecimal, False),
    ),
    **dict.fromkeys(
        ("DOTNET_GCHeapHardLimitPercent", "COMPlus_GCHeapHardLimitPercent"),
        (Runtime.DOTNET, lambda text: None if (share := _hexadecimal(text)) is None else share * 1000, True),
    ),
}
"""Variables whose whole value is an amount, or a percentage."""
_TELLING_NAME = re.compile(
    r"GOMEMLIMIT|(?:JDK)?_?JAVA_(?:TOOL_)?OPT\w*|\w*_JAVA_OPTS|\w*JVM_OPTS|\w*HEAP_OPTS|NODE_OPTIONS"
)
"""Variables that say how much, whatever their values are."""
# Which of several wins for a JVM: these are read before the command line, this one after it.
_BEFORE_COMMAND, _AFTER_COMMAND = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"), "_JAVA_OPTIONS"
# What a JVM takes the memory of the machine to be, and how large its heap is at first.
_MACHINE, _INITIAL = ("-XX:MaxRAM=",), ("-Xms", "-XX:InitialHeapSize=")


class _Default(Struct, frozen=True):
    """What a runtime takes that is told nothing: a share of its memory limit."""

    text: str
    share: Fraction
    programs: frozenset[str]
    """Words of a command by which it is known."""
    variables: re.Pattern[str]
    """Variables by which it is known."""


_DEFAULTS = {
    Runtime.JAVA: _Default(
        "no -Xmx",
        Fraction(25, 100),
        frozenset({"java", "-jar"}),
        re.compile(r"_?JAVA_(?:TOOL_)?OPT\w*|JDK_JAVA_OPTIONS|\w*_JAVA_OPTS|\w*JVM_OPTS"),
    ),
    # 259 MiB of 512 in Node.js 20.
    Runtime.NODE: _Default(
        "no --max-old-space-size", Fraction(50, 100), frozenset({"node"}), re.compile("NODE_OPTIONS")
    ),
}
_UNKNOWN = "\0"
_REFERENCE = re.compile(r"\$\(([A-Za-z_][\w.-]*)\)|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)")


class _Variable(Struct, frozen=True):
    """A variable of the environment."""

    name: str
    path: str
    value: str | None
    """None if it is unknown."""
    source: str = ""
    """What holds it then."""


def memory_settings(container: Plain, path: str, resources: Mapping[str, int]) -> list[MemorySetting]:
    """Return what the runtimes of a container are told, as far as it counts; ``path`` is where the container is.

    ``resources`` are its amounts that a variable may refer to, in bytes: ``limits.memory``.
    """
    if not isinstance(container, dict):
        return []
    variables = {variable.name: variable for variable in _variables(container, path, resources)}
    words = [*_words(container, "command", path), *_words(container, "args", path)]
    said = " ".join(text for _, text in words)
    about = f"{container.get('image', '')} {said}"
    settings = [
        setting
        for variable in variables.values()
        for setting in _of_variable(variable, _expanded(variable.value, variables), variables, about)
    ]
    text = _expanded(said, variables) or ""
    where = words[0][0] if words else path
    for option in _OPTIONS:
        found = list(_found(option, text, about))
        if found:
            # The last one counts.
            settings.append(_setting(option, found[-1], _path_of(found[-1], words) or where, "", variables))
    counting = list(_counting(settings))
    known, programs = {setting.runtime for setting in counting}, {word.rpartition("/")[2] for word in text.split()}
    for runtime, default in _DEFAULTS.items():
        named = not programs.isdisjoint(default.programs) or any(map(default.variables.fullmatch, variables))
        if named and runtime not in known:
            counting.append(MemorySetting(runtime, default.text, where, share=default.share))
    return counting


def _words(container: Mapping[str, Plain], field: str, path: str) -> Iterator[tuple[str, str]]:
    values = container.get(field)
    for index, value in enumerate(values if isinstance(values, list) else ()):
        yield f"{path}.{field}[{index}]", str(value)


def _variables(container: Mapping[str, Plain], path: str, resources: Mapping[str, int]) -> Iterator[_Variable]:
    values = container.get("env")
    for index, item in enumerate(values if isinstance(values, list) else ()):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            continue
        name, at = str(item["name"]), f"{path}.env[{index}]"
        value_from = item.get("valueFrom")
        if not isinstance(value_from, dict):
            yield _Variable(name, f"{at}.value", str(item.get("value") or ""))
            continue
        value, source = _referred(value_from, resources)
        yield _Variable(name, f"{at}.valueFrom", value, source)


def _referred(value_from: Mapping[str, Plain], resources: Mapping[str, int]) -> tuple[str | None, str]:
    """Return what a reference stands for; of ConfigMaps and Secrets only which it is."""
    field = value_from.get("resourceFieldRef")
    if isinstance(field, dict):
        amount = resources.get(str(field.get("resource")))
        try:
            divisor = Quantity.parse(str(field.get("divisor") or "1")).value
        except InvalidQuantity:
            divisor = 0
        if amount is None or divisor <= 0 or field.get("containerName"):
            return None, ""
        return str(-(-amount // divisor)), ""
    for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        reference = value_from.get(key)
        if isinstance(reference, dict):
            return None, f"{kind} {reference.get('name')}"
    return None, ""


def _expanded(text: str | None, variables: Mapping[str, _Variable]) -> str | None:
    """Return a text with the values of variables; one that is unknown is marked with its name."""
    if text is None or "$" not in text:
        return text

    def value(matched: re.Match[str]) -> str:
        name = matched[1] or matched[2] or matched[3]
        if name not in variables:
            return matched[0]
        known = variables[name].value
        return f"{_UNKNOWN}{name}{_UNKNOWN}" if known is None else known

    return _REFERENCE.sub(value, text)


def _of_variable(
    variable: _Variable, value: str | None, variables: Mapping[str, _Variable], about: str
) -> Iterator[MemorySetting]:
    if value is None:
        telling = _TELLING_NAME.fullmatch(variable.name)
        if variable.source and telling is not None:
            runtime = _runtime_of(variable.name)
            yield MemorySetting(runtime, variable.name, variable.path, variable.name, unknown=variable.source)
        return
    whole = _VARIABLES.get(variable.name)
    if whole is not None:
        runtime, read, is_share = whole
        if value in {"", "off"}:
            return
        amount = read(value)
        text = f"{variable.name}={value}"
        if amount is not None or _is_malformed(runtime, value):
            yield _made(runtime, text, variable.path, variable.name, amount, is_share=is_share)
        return
    for option in _OPTIONS:
        found = list(_found(option, value, about))
        if found:
            yield _setting(option, found[-1], variable.path, variable.name, variables)


def _is_malformed(runtime: Runtime, value: str) -> bool:
    return runtime in _MALFORMED_COUNTS and _LIKE_AN_AMOUNT.fullmatch(value) is not None


def _runtime_of(name: str) -> Runtime:
    if name == "GOMEMLIMIT":
        return Runtime.GO
    return Runtime.NODE if name == "NODE_OPTIONS" else Runtime.JAVA


def _found(option: _Option, text: str, about: str) -> Iterator[re.Match[str]]:
    if not option.needs or option.needs in about:
        yield from option.pattern.finditer(text)


def _setting(
    option: _Option, found: re.Match[str], path: str, variable: str, variables: Mapping[str, _Variable]
) -> MemorySetting:
    text, value = found[0].strip().replace('"', "").replace("'", ""), found[1]
    if _UNKNOWN in value or "$" in value:
        names = [name for name in value.split(_UNKNOWN) if name in variables]
        source = next((variables[name].source for name in names if variables[name].source), "another place")
        written = text.replace(_UNKNOWN, "$", 1).replace(_UNKNOWN, "")
        return MemorySetting(option.runtime, written, path, variable, unknown=source)
    amount = option.read(value)
    if amount is None and not _is_malformed(option.runtime, value):
        return MemorySetting(option.runtime, text, path, variable, amount_bytes=0)
    return _made(option.runtime, text, path, variable, amount, is_share=option.is_share)


def _made(
    runtime: Runtime, text: str, path: str, variable: str, amount: int | None, *, is_share: bool
) -> MemorySetting:
    if is_share and amount is not None:
        return MemorySetting(runtime, text, path, variable, share=Fraction(amount, 100_000))
    return MemorySetting(runtime, text, path, variable, amount)


def _path_of(found: re.Match[str], words: list[tuple[str, str]]) -> str:
    """Return the word in which an option's value ends; empty where variables moved it."""
    end, start = found.end(), 0
    for path, text in words:
        start += len(text) + 1
        if end < start and found[1] in text:
            return path
    return ""


def _counting(settings: list[MemorySetting]) -> Iterator[MemorySetting]:
    """Yield the settings that are not overridden by others.

    A JVM reads JAVA_TOOL_OPTIONS, then its command line, then _JAVA_OPTIONS, and a heap size beats a percentage, which
    is of -XX:MaxRAM where that is stated. Without a size the heap is at least as large as it is at first. One that is
    unknown overrides nothing.
    """
    java = [setting for setting in settings if setting.runtime is Runtime.JAVA and not setting.unknown]
    machine, initial = (_last(java, prefixes) for prefixes in (_MACHINE, _INITIAL))
    heaps = [setting for setting in java if not setting.text.startswith((*_MACHINE, *_INITIAL))]
    sizes = [setting for setting in heaps if setting.share is None] or heaps
    last = max(map(_precedence, sizes), default=0)
    for setting in settings:
        is_overridden = setting in java and (setting not in sizes or _precedence(setting) < last)
        if not is_overridden and setting.amount_bytes != 0 and (setting.share is None or machine not in java):
            yield setting
    if all(setting.share is not None for setting in sizes):
        if machine is not None:
            share = max((setting.share or 0 for setting in sizes), default=_DEFAULTS[Runtime.JAVA].share)
            yield replace(machine, amount_bytes=int((machine.amount_bytes or 0) * share))
        if initial is not None:
            yield initial


def _last(settings: Iterable[MemorySetting], prefixes: tuple[str, ...]) -> MemorySetting | None:
    """Return which of several counts; of several with the same precedence the last one."""
    found = None
    for setting in settings:
        if setting.text.startswith(prefixes) and (found is None or _precedence(setting) >= _precedence(found)):
            found = setting
    return found


def _precedence(setting: MemorySetting) -> int:
    if setting.variable == _AFTER_COMMAND:
        return 3
    if setting.variable in _BEFORE_COMMAND:
        return 0
    return 1 if setting.variable else 2
