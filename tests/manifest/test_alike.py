"""Items that are written alike are read without parsing, and mean what parsing would find."""

from __future__ import annotations

import pytest

from podqos.manifest import alike
from podqos.manifest.alike import AlikeItems
from podqos.manifest.fastyaml import NotPlain, read_plain

ITEM = """\
- apiVersion: v1
  kind: Pod
  metadata:
    creationTimestamp: "2026-01-05T14:00:{number:02d}Z"
    labels:
      app: web
      hash: 7d9f{number}
      100%: "yes"
    name: web-{number}
    uid: {number:08x}-aaaa-bbbb
  spec:
    containers:
    - env:
      - name: A
        value: b
      image: registry.example.com/web:{number}
      name: 'app: main'
      resources:
        limits:
          cpu: "{number}"
          memory: {number}Mi
    hostNetwork: false
    priority: {number}
  status:
    conditions:
    - lastProbeTime: null
      status: "True"
    containerStatuses:
    - lastState: {{}}
      state:
        terminated:
          exitCode: 1
    podIP: 10.0.0.{number}
"""
VALUES = (
    *("web", "null", "yes", "~", "No", "1e5", "0x1f", "0b12", "0o17", "1_000", ".5", "0.5", "-5", "12345678901"),
    *("1.2.3.4", "1.2.3", "64Mi", "64Zi", "5E1", "7e1b2", "7e12", "1e-5-6", "2026-01-05", "2026-01-05T14:00:00Z"),
    *('"2026-01-05T14:00:00Z"', "1:30", "'it''s'", "'it'", '"a\\nb"', "\"a'b\"", "'a\"b'", '"true"', '"5"', '"5x"'),
    *('"007"', "'5'", '""', "''", "'open", '"open', "[a, b]", "[open", "{a: b}", "{}", "|\n          text: b"),
    *(">-\n          a", "a: b", "a:b", "a #b", "a#b", "a ", "b: ", "web\n  more", "*a", "&a b", "!!str b", "ü"),
    *("a\tb", "%s", "100%", "a\\b", "Value0of", "7310000000", "731000000", "a, b", "@b", "a}b", "-", "- a", "?"),
)  # fmt: skip


OF_ENV = ("      - name: ", "        value: ")
"""No model reads these."""


def items(count: int) -> list[str]:
    return [ITEM.format(number=number) for number in range(1, count + 1)]


def read(text: str) -> list[object]:
    known = AlikeItems()
    return [known.value(item, shape) for item, shape in known.split(text.encode())]


def parsed(text: str) -> object:
    return read_plain(text.encode(), skims=True)


def agrees(text: str) -> None:
    """Check that a text is read as by parsing it."""
    try:
        expected = parsed(text)
    except NotPlain:
        with pytest.raises(NotPlain):
            read(text)
        return
    assert repr(read(text)) == repr(expected), text


def test_most_of_what_is_written_alike_is_not_parsed(monkeypatch: pytest.MonkeyPatch):
    whole = parsed("".join(items(30)))
    seen = []
    monkeypatch.setattr(alike, "read_plain", lambda data, **options: seen.append(data) or read_plain(data, **options))
    assert read("".join(items(30))) == whole
    assert len(seen) == 3  # the first two, and one with marks
    seen.clear()
    read("".join(item.replace("exitCode: 1", f"exitCode: {code}") for code, item in enumerate(items(30))))
    assert len(seen) == 30  # exit codes tell of an end


@pytest.mark.parametrize(
    "line", [line for line in ITEM.split("\n") if ": " in line and not line.startswith(OF_ENV)], ids=str.strip
)
def test_an_item_that_differs_in_a_value_is_read_as_by_parsing_it(line: str):
    texts = items(6)
    key = line.split(": ", 1)[0]
    for value in VALUES:
        own = ITEM.replace(line, f"{key}: {value.replace('{', '{{').replace('}', '}}')}").format(number=9)
        text = "".join((*texts, own, *texts))
        agrees(text)


@pytest.mark.parametrize("value", VALUES)
def test_items_that_all_have_an_odd_value_are_read_as_by_parsing_them(value: str):
    for line in ("      app: web", "    priority: {number}", "          memory: {number}Mi"):
        own = value.replace("{", "{{").replace("}", "}}")
        texts = [ITEM.replace(line, f"{line.split(': ')[0]}: {own}").format(number=5)] * 4
        text = "".join(item.replace("web-5", f"web-{number}") for number, item in enumerate(texts))
        agrees(text)


def test_nothing_is_looked_for_where_no_two_items_are_alike(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(alike, "_FIRST", 10)
    known = AlikeItems()
    text = "".join(f"- apiVersion: v1\n  key-{number}: a\n" for number in range(20)).encode()
    assert all(shape for _, shape in known.split(text))
    assert not any(shape for _, shape in known.split(text))


@pytest.mark.parametrize("data", [b"a: b\n", b"- a: b", b"- a: \xff\n", b"- a: \x01\n"])
def test_what_is_no_part_of_a_list_is_not_plain(data: bytes):
    with pytest.raises(NotPlain):
        list(AlikeItems().split(data))
