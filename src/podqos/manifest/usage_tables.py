"""Tables of what containers used, in the forms in which people have them: one reader for every command.

    our own             time, namespace, pod, container, node, memory, cpu, oomKills, restarts, and what callers add
    kubectl top pods    with --containers, -A, --no-headers; printed once, or again and again into one file
    Grafana             "series joined by time" (a column per series), "series as rows", a table with a column Value
    Prometheus          the answer of /api/v1/query_range, and what `promtool query range` prints

Names of columns may be in any case and spelling (``Pod Name``, ``memory_bytes``, ``CPU(cores)``), columns that mean
nothing here are ignored; one that is nearly a known name is a typo, and rejected. Fields are separated by commas,
semicolons or tabs. Amounts may be written as dashboards and spreadsheets do (``1.5 GiB``, ``536,870,912``).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import takewhile

from msgspec.structs import replace

from podqos.amounts import nearest
from podqos.errors import InputError
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import Plain
from podqos.manifest.samples import PrometheusSeries, SampleRow, csv_rows, is_bare_top, is_top, read_samples
from podqos.manifest.times import read_time
from podqos.manifest.written_amounts import plain_amount
from podqos.model.time_units import SECOND_US

Table = Iterator[SampleRow] | tuple[PrometheusSeries, ...]

_MEMORY = ("memory", "mem", "memoryusage", "memusage", "memoryused", "memused", "memoryworkingset", "workingset")
_MEMORY_UNITS = {
    "": "", "b": "", "bytes": "", "inbytes": "", "kib": "Ki", "ki": "Ki", "kb": "k", "mib": "Mi", "mi": "Mi", "mb": "M",
    "inmib": "Mi", "inmb": "M", "gib": "Gi", "gi": "Gi", "gb": "G", "ingib": "Gi", "ingb": "G",
}  # fmt: skip
_CPU_UNITS = {"": "", "cores": "", "incores": "", "m": "m", "milli": "m", "millicores": "m", "mcores": "m", "mcpu": "m"}
# Spellings without case and punctuation → the column, and the unit of plain numbers in it.
_SPELLINGS = {
    **dict.fromkeys(("time", "timestamp", "t", "ts", "date", "datetime", "timeutc", "timestamputc"), ("time", "")),
    **dict.fromkeys(("namespace", "ns"), ("namespace", "")),
    **dict.fromkeys(("pod", "podname"), ("pod", "")),
    **dict.fromkeys(("container", "containername"), ("container", "")),
    **dict.fromkeys(("node", "nodename"), ("node", "")),
    **{f"{name}{unit}": ("memory", suffix) for name in _MEMORY for unit, suffix in _MEMORY_UNITS.items()},
    **{
        f"{name}{unit}": ("cpu", suffix)
        for name in ("cpu", "cpuusage", "cpuused")
        for unit, suffix in _CPU_UNITS.items()
    },
    "millicores": ("cpu", "m"),
    **dict.fromkeys(("oomkills", "ooms", "oomevents", "oomkilled"), ("oomKills", "")),
    **dict.fromkeys(("restarts", "restartcount"), ("restarts", "")),
    **dict.fromkeys(("series", "metric", "labels"), ("series", "")),
}
_VALUE = re.compile(r"value(#[a-z0-9]+)?")
_LABELS = re.compile(r"\s*([A-Za-z_:][\w:]*)?\s*\{(.*)\}\s*")
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_PROMTOOL = re.compile(r"(?P<series>\S.*?) =>(?:\s+(?P<value>\S+) @\[(?P<time>[0-9]+(?:\.[0-9]+)?)\])?\s*")
_PROMTOOL_VALUE = re.compile(r"(\S+) @\[([0-9]+(?:\.[0-9]+)?)\]\s*")
_USUAL = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:m|k|[MG]|[KMG]i)?", re.ASCII)
_SHARE = re.compile(r"%|percent|\bpct\b", re.IGNORECASE)
# What terminals, shells and programs print before a table.
_PREFACE = re.compile(r"\s*(?:#(?!\s*pod\b).*|[$>%] .*|kubectl .*|```\w*|[WIEF][0-9]{4} [0-9:.]+ .*)?\s*")
_NAME = "name"
_HEAD_CHARACTERS = 300
_PREFACE_CHARACTERS = 4096
_NO_FIGURES = frozenset({"time", "namespace", "pod", "container", "node", ""})
_NOT_MEASURED = frozenset(
    {
        "nan",
        "inf",
        "+inf",
        "-inf",
        "null",
        "none",
        "undefined",
        "-",
        "–",
        "—",
        "?",
        "n/a",
        "na",
        "#n/a",
        "<none>",
        "<unknown>",
        "unknown",
        "",
    }
)


def read_usage_table(source: str, data: bytes, columns: Sequence[str]) -> Table:
    """Return the rows of a table with the caller's columns, or series; ``source`` is the name in messages."""
    text = table_text(data)
    if is_top(text) or is_bare_top(text):
        return _named(read_samples(source, text.encode()), columns)
    first = text.lstrip()[:1]
    if first == "[":
        return _named(read_samples(source, text.encode()), columns)
    if _PROMTOOL.fullmatch(text.lstrip().partition("\n")[0]):
        return _promtool(source, text)
    if first == "{":
        return read_samples(source, text.encode())
    return _csv(source, text, columns)


def table_text(data: bytes) -> str:
    """Return the text of a file; lines before the table, such as the command that printed it, are empty."""
    text = data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig", errors="replace")
    lines = text[:_PREFACE_CHARACTERS].splitlines(keepends=True)
    preface = list(takewhile(_PREFACE.fullmatch, lines[:-1]))
    return "\n" * len(preface) + text[sum(map(len, preface)) :] if preface else text


def ignored_columns(data: bytes, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a CSV that mean nothing here; empty for any other form."""
    text = table_text(data).lstrip()
    first = text.partition("\n")[0]
    if not is_usage_table(text) or is_top(text) or is_bare_top(text) or first[:1] in {"{", "["} or " =>" in first:
        return ()
    heading = _heading(first, _delimiter(first))
    meant = _meanings(heading, columns)
    if any(_column(name)[0] in {"series", "value"} for name in heading):
        return tuple(name for name in heading if _column(name)[0] == "value")[1:]
    if not any(column for column, _ in meant.values()):
        return ()
    return tuple(name for name in heading if name and not meant[name][0] and not _column(name)[0])


def is_usage_table(text: str) -> bool:
    """Whether a text is a table of usage in one of these forms, by its first line; otherwise it may be YAML or JSON."""
    text = text.lstrip("\ufeff").lstrip()
    if is_top(text) or is_bare_top(text) or text.lower().startswith("sep="):
        return True
    first = text.partition("\n")[0]
    if first.startswith("{"):
        return _PROMTOOL.fullmatch(first) is not None or '"resultType"' in text[:_HEAD_CHARACTERS]
    if _PROMTOOL.fullmatch(first) is not None and labels_of(first.partition(" =>")[0]) is not None:
        return True
    names = _heading(first, _delimiter(first))
    heading = [column for column, _ in _meanings(names, ("pod", "memory", "cpu", "time")).values()]
    if len(names) > 1 and ("pod" in heading or (heading and heading[0] == "time")):
        return True
    return any(_column(name)[0] in {"pod", "series"} for name in names)


def is_measured(value: Plain) -> bool:
    """Whether a cell holds a figure; monitoring writes ``NaN`` or ``null`` if it has none."""
    return not isinstance(value, str) or value[:1].isdigit() or value.strip().lower() not in _NOT_MEASURED


def labels_of(text: str) -> dict[str, str] | None:
    """Return the labels of a series written as ``name{pod="web"}`` or ``{pod="web"}``; None for other texts."""
    matched = _LABELS.fullmatch(text)
    if matched is None:
        return None
    labels = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _LABEL.findall(matched[2])}
    if not labels and matched[2].strip():
        return None
    return {"__name__": matched[1], **labels} if matched[1] else labels


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9#]", "", name.lower())


def _column(name: str) -> tuple[str, str]:
    """Return which column a heading means, and the unit of plain numbers in it; no column for one that is unknown."""
    letters = _letters(name)
    if _SHARE.search(name):
        return "", ""
    if _VALUE.fullmatch(letters):
        return "value", ""
    return _SPELLINGS.get(letters, ("", ""))


# ---- rows ------------------------------------------------------------------------------------------------------------


def _named(rows: Table, columns: Sequence[str]) -> Table:
    if isinstance(rows, tuple):
        return rows
    return _renamed(rows, columns)


def _renamed(rows: Iterator[SampleRow], columns: Sequence[str], *, decimal_comma: bool = False) -> Iterator[SampleRow]:
    """Yield rows with the caller's columns alone."""
    meant: dict[str, tuple[str, str]] = {}
    seen: tuple[str, ...] | None = None
    for row in rows:
        if row.columns != seen:
            seen = row.columns
            meant = _meanings(seen, columns)
            _check(row, meant, columns)
        fields: dict[str, Plain] = {}
        for name, value in row.fields.items():
            column, unit = meant[name]
            if column and column not in fields:
                fields[column] = value if column in _NO_FIGURES else _amount(value, unit, decimal_comma=decimal_comma)
        namespace, pod = fields.get("namespace"), fields.get("pod")
        if namespace and isinstance(pod, str) and "/" not in pod:
            fields["pod"] = f"{namespace}/{pod}"
        yield replace(row, fields=fields, columns=tuple(column for column, _ in meant.values() if column))


def _meanings(names: Sequence[str], columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return which of the caller's columns each heading means; NAME is a pod, or next to POD a container."""
    meant = {name: _meant(name, columns) for name in names}
    known = {column for column, _ in meant.values()}
    bare = next((name for name in names if _letters(name) == _NAME and not meant[name][0]), None)
    if bare is not None and "pod" not in known:
        meant[bare] = "pod", ""
    elif bare is not None and "container" not in known and "CPU(CORES)" in map(str.upper, names):
        meant[bare] = "container", ""
    return meant


def _meant(name: str, columns: Sequence[str]) -> tuple[str, str]:
    if name in columns:
        return name, ""
    if _SHARE.search(name):
        return "", ""
    column, unit = _column(name)
    if column in columns or column == "value":
        return column, unit
    return {_letters(column): column for column in columns}.get(_letters(name), ""), ""


def _check(row: SampleRow, meant: dict[str, tuple[str, str]], columns: Sequence[str]) -> None:
    known = {column for column, _ in meant.values()}
    for name, (column, _) in meant.items():
        near = "" if column or _column(name)[0] or _SHARE.search(name) else nearest(name, columns)
        if near and near not in known:
            raise InputError(f"unknown column {name!r}", where=row.heading, fix=suggestion(name, columns))
    is_object = row.heading == row.where  # of JSON, which has no heading
    if not is_object and known <= _NO_FIGURES:
        raise InputError("no column has usage", where=row.heading, fix=f"the columns are {', '.join(columns)}")


def _amount(value: Plain, unit: str, *, decimal_comma: bool = False) -> Plain:
    if not isinstance(value, str):
        return f"{value}{unit}" if unit and isinstance(value, (int, float)) else value
    if _USUAL.fullmatch(value):  # by far the most are so
        return f"{value}{unit}" if unit and value[-1:].isdigit() else value
    # Grafana writes 250 MB for 250M. Who writes 250MB by hand may mean 250Mi.
    is_formatted = " " in value.strip()
    text = plain_amount(value, decimal_bytes=is_formatted, decimal_comma=decimal_comma)
    return f"{text}{unit}" if unit and text[-1:].isdigit() else text


# ---- CSV -------------------------------------------------------------------------------------------------------------


def _csv(source: str, text: str, columns: Sequence[str]) -> Table:
    skipped = len(text) - len(text.lstrip("\n"))
    text, delimiter = text[skipped:], ","
    first, _, rest = text.partition("\n")
    if first.strip().lower().startswith("sep=") and len(first.strip()) <= 5:  # what Grafana writes for Excel
        text, skipped = rest, skipped + 1
        delimiter = first.strip()[4:] or delimiter
    else:
        delimiter = _delimiter(first)
    heading = _heading(text, delimiter)
    meant = [column for column, _ in _meanings(heading, columns).values()]
    is_timed = bool(heading) and _column(heading[0])[0] == "time"
    if "series" in [_column(name)[0] for name in heading] or ("value" in meant and "pod" in meant):
        return _series_in_rows(csv_rows(source, text, delimiter, skipped), decimal_comma=delimiter != ",")
    if is_timed and len(heading) > 1 and not any(meant[1:]) and not any(nearest(name, columns) for name in heading[1:]):
        return _joined_by_time(source, text, delimiter, skipped)
    return _renamed(csv_rows(source, text, delimiter, skipped), columns, decimal_comma=delimiter != ",")


def _delimiter(heading: str) -> str:
    bare = re.sub(r'"(?:[^"]|"")*"', "", heading)
    return max(",;\t", key=bare.count)


def _heading(text: str, delimiter: str) -> list[str]:
    reader = csv.reader(StringIO(text, newline=None), delimiter=delimiter, skipinitialspace=True)
    try:
        return [name.strip() for name in next(reader, [])]
    except csv.Error:
        return []  # said by whoever reads the rows


def _joined_by_time(source: str, text: str, delimiter: str, skipped: int) -> tuple[PrometheusSeries, ...]:
    """Return a column per series; its heading has the labels, or is the pod's name, or ``namespace/pod/container``."""
    reader = csv.reader(StringIO(text, newline=None), delimiter=delimiter, skipinitialspace=True)
    heading = [name.strip() for name in next(reader)]
    points: list[list[tuple[float, str]]] = [[] for _ in heading]
    try:
        for cells in reader:
            where = f"{source}:{reader.line_num + skipped}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(heading):
                fix = f"the heading has {len(heading)} columns"
                raise InputError("the row has more or fewer columns than the heading", where=where, fix=fix)
            seconds = _seconds(cells[0].strip(), where)
            for index in range(1, len(cells)):
                if is_measured(cells[index]):
                    points[index].append(
                        (seconds, str(_amount(cells[index].strip(), "", decimal_comma=delimiter != ",")))
                    )
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", where=f"{source}:{reader.line_num}", fix="export it again") from None
    return tuple(
        PrometheusSeries(_identified(name), tuple(values))
        for name, values in zip(heading[1:], points[1:], strict=True)
        if name
    )


def _identified(name: str) -> dict[str, str]:
    """Return the labels that a legend tells."""
    labels = labels_of(name)
    if labels is not None:
        return labels
    parts = [part.strip() for part in name.split("/")]
    if len(parts) == 3:
        return dict(zip(("namespace", "pod", "container"), parts, strict=True))
    return {"pod": parts[-1], **({"namespace": parts[0]} if len(parts) == 2 else {})}


def _series_in_rows(rows: Iterator[SampleRow], *, decimal_comma: bool) -> tuple[PrometheusSeries, ...]:
    """Return the series of a table with a row per sample, whose figures are in one column called Value."""
    labels: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    points: dict[tuple[tuple[str, str], ...], list[tuple[float, str]]] = {}
    for row in rows:
        meant = {name: _column(name)[0] for name in row.columns}
        value_column = next((name for name, column in meant.items() if column == "value"), "")
        time_column = next((name for name, column in meant.items() if column == "time"), "")
        if not value_column:
            raise InputError("the column Value is missing", where=row.heading, fix="export it with its values")
        if value_column not in row.fields or not is_measured(row.fields[value_column]):
            continue
        given = {name: str(value) for name, value in row.fields.items() if name not in {value_column, time_column}}
        key = tuple(sorted(given.items()))
        if key not in labels:
            named: dict[str, str] = {}
            for name, value in given.items():
                named |= _identified(value) if meant[name] == "series" else {meant[name] or name: value}
            labels[key] = named
        seconds = _seconds(row.fields.get(time_column, 0), row.where) if time_column else 0.0
        amount = _amount(row.fields[value_column], "", decimal_comma=decimal_comma)
        points.setdefault(key, []).append((seconds, str(amount)))
    return tuple(PrometheusSeries(named, tuple(points[key])) for key, named in labels.items())


def _seconds(value: Plain, where: str) -> float:
    try:
        return read_time(value)[0] / SECOND_US
    except InputError:
        fix = "write 2026-11-15T04:00:00Z, 2026-11-15 04:00:00, or seconds since 1970"
        raise InputError(f"{value!r} is not a time", where=where, fix=fix) from None


# ---- promtool --------------------------------------------------------------------------------------------------------


def _promtool(source: str, text: str) -> tuple[PrometheusSeries, ...]:
    fix = "print it again with `promtool query range`"
    series: list[tuple[dict[str, str], list[tuple[float, str]]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        heading, sample = _PROMTOOL.fullmatch(line), _PROMTOOL_VALUE.fullmatch(line)
        if heading is not None:
            labels = labels_of(heading["series"])
            if labels is None:
                raise InputError("not a valid series", where=f"{source}:{number}", fix=fix)
            series.append((labels, [(float(heading["time"]), heading["value"])] if heading["value"] else []))
        elif sample is not None and series:
            series[-1][1].append((float(sample[2]), sample[1]))
        elif line.strip():
            raise InputError("not a valid sample", where=f"{source}:{number}", fix=fix)
    return tuple(PrometheusSeries(labels, tuple(values)) for labels, values in series)
