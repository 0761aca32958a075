"""Texts of YAML documents for property tests: manifests as people write them, and as they should not.

A document is nested mappings and lists whose scalars are raw pieces of YAML, written down in one of the usual styles;
some are then damaged line by line. It follows from one number: thousands of documents are worth more here than
small counterexamples.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

# Every notation that some YAML parser takes for something else than a text, and some that break a line apart.
SCALARS = (
    *("a", "foo", "x-1", "a b c", "it's", "/bin/sh", "$(VAR)", "http://a:80/b?c=d#e", "--flag=x", "-c", "a,b", "é"),
    *("y", "n", "yes", "No", "ON", "off", "true", "True", "FALSE", "null", "Null", "~", "nan", "inf", "=", "<<"),
    *("0", "1", "-1", "+1", "007", "010", "08", "0x1F", "0o17", "0b11", "1_000", "0.5", ".5", "1.", "1.50", "1e3"),
    *("1E-7", "1e400", "12:30", "2026-01-01", "2026-01-01T00:00:00Z", "1.2.3", "10.0.0.0/8", "--", "_1", "1__0", "0x"),
    *("250m", "64Mi", "0.1Gi", "1e", "9223372036854775808", "99999999999999999999", "0777777777777777777777777"),
    *('"q"', "'q'", '""', "''", "'it''s'", '"a\\"b\\n\\t\\\\"', '"1"', "'yes'", '"a: b # c"', "[]", "{}"),
    *("日本", "-.5", "[a, 1, yes]", "{a: b, c: 010}", "[\"a\", 'b']", "[--x, -c]", "::/0", "?x", "- x", "- - y"),
    *("{a: {b: c, d: [1, x]}, e: {}}", '[{a: b}, {c: "d"}]', "{\"a\": b, 'c': 'd'}", "[a b, c:d, /x*y]", "{on: off}"),
    *('"it\\\'s"', '"\\u00e9\\x41\\0"', '"a\\ b"', '["a", "b\\\'c"]', "{a: 1.50}", "[{}, []]", "--- x", "-- x"),
)  # fmt: skip
ODD_SCALARS = (
    *("-", ".inf", "-.INF", ".NaN", '"\\x41"', '"\\u00e9"', "[a, b,]", "{a: 1, a: 2}", "[[a]]", "[a", "{", "[a b]"),
    *("&x a", "*x", "!!str 1", "!t x", "%a", "@a", "`a", "? a", ": a", "a: b", "a:", "a #b", "a#b", "a\tb", "# c", ""),
    *("'a", '"a', "a'", "|", ">", "|+ # c", "|2", "a  ", "...", "---", "- a", "\\", "a\u2028b", "\ufeff", "\x7f"),
    *('"\\ud800"', '"\\q"', "[a: b]", "{a}", "[a], b", "{a: b} c", "{a:b}", "[a #b]", "[a? b]", "[-]", "{a: }", "[,]"),
    *('"\\', "'\\'", '"a\\\'b\\a"', "[\ta]", "{a: b,, c: d}", "[a]]", "{- a}", "[!a]", "x: |", "# |", "- # x"),
)  # fmt: skip
KEYS = (
    "a",
    "b",
    "c",
    "d",
    "name",
    "kind",
    "app.kubernetes.io/name",
    "f:x",
    'k:{"n":"v"}',
    ".",
    '"q"',
    "'s'",
    "10-x.conf",
)
ODD_KEYS = ("on", "null", "1", "1.50", "<<", "? k", "a b", "é", "- k", "*x", "&x k", '"a\\n"', "-k", "k" * 1030)
TEXT_LINES = ("plain text", "# no comment", "key: value", "- item", "'quote", "\ttab", "  deeper", "", "   ", "last")
WORDS = ("a", "b c", "it''s", "1", "# d", "", "x: y", "- z", "e\\", 'f\\"g', "h\\n", "[i,", "j,", "x: |")
CHARACTERS = "-?:,[]{}#&*!|>'\"%@`\\ \t\nab1.~"


def documents() -> st.SearchStrategy[bytes]:
    """Documents, sound or damaged."""
    return st.integers(0, 2**32).map(lambda seed: _Writer(Random(seed)).document())  # noqa: S311 - not for secrets


class _Writer:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._oddity = random.choice((0.0, 0.0, 0.02, 0.1))

    def document(self) -> bytes:
        lines = self._mapping(3) if self._is_likely(0.8) else self._list(3)
        for _ in range(self._random.choice((0, 0, 0, 1, 2))):
            self._damage(lines)
        return ("\n".join(lines) + self._random.choice(("\n", "\n", "\n", ""))).encode()

    def _is_likely(self, share: float) -> bool:
        return self._random.random() < share

    def _pick(self, usual: tuple[str, ...], odd: tuple[str, ...]) -> str:
        return self._random.choice(odd if self._is_likely(self._oddity) else usual)

    def _mapping(self, depth: int) -> list[str]:
        lines = []
        keys = [self._pick(KEYS, ODD_KEYS) for _ in range(self._random.randint(1, 4))]
        for key in keys if self._is_likely(self._oddity) else dict.fromkeys(keys):
            kind = self._random.random()
            if depth and kind < 0.2:
                indent = " " * self._random.choice((2, 2, 4))
                lines += [f"{key}:{self._tail()}", *(indent + line for line in self._mapping(depth - 1))]
            elif depth and kind < 0.4:
                indent = " " * self._random.choice((0, 2))
                lines += [f"{key}:", *(indent + line for line in self._list(depth - 1))]
            else:
                first, *rest = self._scalar()
                lines += [f"{key}: {first}", *rest]
        return lines

    def _list(self, depth: int) -> list[str]:
        lines = []
        for _ in range(self._random.randint(1, 3)):
            dash = self._random.choice(("- ", "- ", "- ", "-   "))
            first, *rest = self._mapping(depth - 1) if depth and self._is_likely(0.5) else self._scalar()
            lines += [dash + first, *(" " * len(dash) + line for line in rest)]
        return lines

    def _scalar(self) -> list[str]:
        """Write a scalar; what goes beyond its first line is indented by two."""
        kind = self._random.random()
        count = self._random.randint(1, 4)
        if kind < 0.1:
            header = self._random.choice(("|", "|-", "|+", ">", ">-", ">+"))
            return [header, *(f"  {self._random.choice(TEXT_LINES)}" for _ in range(count))]
        if kind < 0.2:
            quote = self._random.choice(("", "'", '"'))
            first, *rest = (self._random.choice(WORDS) for _ in range(count + 1))
            return [quote + first, *(f"  {word}" for word in rest[:-1]), f"  {rest[-1]}{quote}"]
        if kind < 0.25:
            opening, closing = self._random.choice(("[]", "{}"))
            entry = "" if opening == "[" else "k{}: "
            words = (entry.format(number) + self._pick(SCALARS, ODD_SCALARS) for number in range(count))
            return [opening, *(f"  {word},{self._tail()}" for word in words), f"  {entry.format('x')}y", "  " + closing]
        return [self._pick(SCALARS, ODD_SCALARS) + self._tail()]

    def _tail(self) -> str:
        return self._random.choice(("", "", "", "", "  ", " # comment", " # it's: 'x"))

    def _damage(self, lines: list[str]) -> None:
        index = self._random.randrange(len(lines))
        line = lines[index]
        middle = self._random.randint(0, len(line))
        lines[index : index + 1] = self._random.choice(
            (
                [line, "    # comment: 'x"],
                [line, ""],
                [" " + line],
                [line[1:]],
                [line, line],
                [line, self._pick(SCALARS, ODD_SCALARS)],
                [line, "  " + self._pick(SCALARS, ODD_SCALARS)],
                [line.lstrip(" ")],
                [line[:middle] + self._random.choice(CHARACTERS) + line[middle:]],
                [line[:middle] + self._random.choice(CHARACTERS) + line[middle + 1 :]],
                [line[:middle] + line[middle + 1 :]],
            )
        )
