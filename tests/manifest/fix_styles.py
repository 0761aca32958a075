"""The same pod in every style: texts for the properties of editing."""

from __future__ import annotations

import json

from hypothesis import strategies as st

Value = str | int | dict[str, "Value"] | list["Value"] | None
COMMENTS = ("", "", "", "  # a comment", " # {}: 'odd'", "   ")


@st.composite
def resources(draw: st.DrawFn, names: tuple[str, ...]) -> Value:
    """Resources as people leave them: not there, empty, null, with some amounts."""
    amounts = st.dictionaries(st.sampled_from(names), st.sampled_from(("1", 2, "512Mi")))
    sides = st.dictionaries(st.sampled_from(("requests", "limits")), amounts | st.none())
    return draw(st.none() | sides)


@st.composite
def pods(draw: st.DrawFn, *, limited: bool) -> dict[str, Value]:
    """Pods with one to three containers, keys in any order; some have a memory limit without a request."""
    containers: list[Value] = []
    names = ("cpu", "memory") if limited else ("cpu", "memory", "nvidia.com/gpu")
    if limited:
        containers.append({"name": "limited", "resources": {"limits": {"memory": "1Gi"}}})
    for number in range(draw(st.integers(1, 3))):
        container: dict[str, Value] = {"name": f"c{number}"}
        if draw(st.booleans()):
            container["resources"] = draw(resources(names))
        if draw(st.booleans()):
            container["args"] = draw(st.lists(st.sampled_from(("a", "--b=c", "d: e", "# f", "{}")), max_size=2))
        if draw(st.booleans()):
            container["image"] = draw(st.sampled_from(("nginx", "é😀", "two\nlines\n", "kept\n\n")))
        keys = draw(st.permutations(list(container)))
        containers.append({key: container[key] for key in keys})
    pod: dict[str, Value] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    pod["spec"] = {"containers": containers}
    keys = draw(st.permutations(list(pod)))
    return {key: pod[key] for key in keys}


class _Writer:
    """Writes a value in a style that changes as it goes."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._unit = draw(st.sampled_from((1, 2, 3, 4)))
        self._offset = draw(st.sampled_from((0, 2, 4)))
        self._flows = draw(st.booleans())
        self._comments = draw(st.booleans())

    def lines(self, value: dict[str, Value], column: int) -> list[str]:
        lines: list[str] = []
        for key, item in value.items():
            lines += self._between(column)
            start = " " * column + self._quoted(key) + ":"
            lines += self._member(start, item, column)
        return lines

    def _member(self, start: str, item: Value, column: int) -> list[str]:
        if isinstance(item, dict) and item and not self._is_flow():
            return [start + self._comment(), *self.lines(item, column + self._unit)]
        if isinstance(item, list) and item and not self._is_flow():
            return [start + self._comment(), *self._items(item, column + self._offset)]
        if isinstance(item, str) and item.endswith("\n"):
            block = [" " * (column + self._unit) + line for line in item.removesuffix("\n").split("\n")]
            return [f"{start} |{'+' if item.endswith(chr(10) * 2) else ''}", *(line.rstrip() for line in block)]
        written = self._flow(item)
        return [f"{start} {written}{self._comment()}" if written else start + self._comment()]

    def _items(self, items: list[Value], column: int) -> list[str]:
        lines: list[str] = []
        for item in items:
            lines += self._between(column)
            if isinstance(item, dict) and not self._is_flow():
                gap = self._draw(st.sampled_from((1, 1, 3)))
                below = self.lines(item, column + 1 + gap)
                first = next(
                    index for index, line in enumerate(below) if line.strip() and not line.strip().startswith("#")
                )
                below[first] = " " * column + "-" + " " * gap + below[first].lstrip()
                lines += below
            else:
                lines.append(" " * column + f"- {self._flow(item) or 'null'}{self._comment()}")
        return lines

    def _flow(self, value: Value) -> str:
        pad = self._draw(st.sampled_from(("", " ")))
        if isinstance(value, dict):
            members = ", ".join(f"{self._quoted(key)}: {self._flow(item) or 'null'}" for key, item in value.items())
            return f"{{{pad}{members}{pad}}}"
        if isinstance(value, list):
            return "[" + ", ".join(self._flow(item) for item in value) + "]"
        if value is None:
            return self._draw(st.sampled_from(("", "null", "~")))
        if isinstance(value, int):
            return str(value)
        return json.dumps(value, ensure_ascii=False) if not value.isalnum() or value.isdigit() else self._quoted(value)

    def _quoted(self, text: str) -> str:
        return self._draw(st.sampled_from((text, text, text, f'"{text}"', f"'{text}'")))

    def _is_flow(self) -> bool:
        return self._flows and self._draw(st.integers(0, 3)) == 0

    def _comment(self) -> str:
        return self._draw(st.sampled_from(COMMENTS)) if self._comments else ""

    def _between(self, column: int) -> list[str]:
        if not self._comments or self._draw(st.integers(0, 5)):
            return []
        return self._draw(st.sampled_from(([""], [" " * column + "# between"], ["", "# left", ""])))


@st.composite
def manifests(draw: st.DrawFn, *, limited: bool = False) -> bytes:
    """Files that hold one pod, some with another document before or after it."""
    pod = draw(pods(limited=limited))
    if draw(st.integers(0, 4)) == 0:
        indent = draw(st.sampled_from((None, 2, 4, "\t")))
        separators = draw(st.sampled_from(((",", ":"), (", ", ": ")))) if indent is None else None
        text = json.dumps(pod, indent=indent, separators=separators, ensure_ascii=draw(st.booleans())) + "\n"
    else:
        text = "\n".join(_Writer(draw).lines(pod, 0)) + "\n"
        text = draw(st.sampled_from(("", "---\n", "# first\n", "a: b\n---\n"))) + text
        text += draw(st.sampled_from(("", "...\n", "---\na: b\n", "# last\n")))
    ends_with_block_scalar = text.rstrip("\n").endswith(("lines", "kept"))  # whose text the line end is part of
    if draw(st.booleans()) and not ends_with_block_scalar:
        text = text.removesuffix("\n")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from((b"", b"", b"\xef\xbb\xbf"))) + text.encode()
