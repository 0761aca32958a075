"""The fast reading: what it admits means what the strict reading says, and it admits what manifests are made of."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from manifest.yaml_documents import documents
from podqos.manifest import fastyaml, strictyaml
from podqos.manifest.fastyaml import NotPlain, read_plain
from podqos.manifest.kinds import Scale
from podqos.manifest.objects import _Controller, _Template
from podqos.manifest.plain import Number, Plain
from podqos.manifest.reading import read
from podqos.manifest.strictyaml import read_documents
from podqos.model.pod import Workload
from podqos.reading.shipped_scenarios import scenario_dir
from timing import takes_less_than


def strictly(text: bytes) -> Plain:
    documents = list(read_documents(text))
    assert len(documents) <= 1
    assert not any(document.problems for document in documents)
    return documents[0].value if documents else None


def shown(value: Plain) -> str:
    """Write a value down so that 1, True and 1.0 differ, and numbers by their text."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(shown(item) for item in value) + "]"
    return value.text if isinstance(value, Number) else repr(value)


@settings(max_examples=1500, deadline=None)
@given(documents())
@example(b"a: b\n\n  c\n")
@example(b"a: b # c\n  d\n")
@example(b"a: 'x\n  b: |\n    y\n  z'\n")
@example(b"a: |\n  x\n    # not a comment")
@example(b"a:\n- b\n c: d\n")
@example(b"- a: 1\n  b:\n  - c\n- d\n")
@example(b"a:\n  b:\n- c\n")
@example("a: b\u0085c\n".encode())
@example(b"a: 'b\n--- c\n  d'\n")
def test_whatever_the_fast_reading_admits_means_the_same_to_the_strict_one(text: bytes):
    try:
        fast = read_plain(text)
    except NotPlain:
        return
    assert shown(fast) == shown(strictly(text))


CONTAINER = """\
- image: a
  env:
    - name: A
      value: "1"
    - name: B
      valueFrom:
        secretKeyRef:
          name: b
          key: c # d
  args:
  - --a=b
  - |
    x

    y
  - ::/0
  - 1.5
  volumeMounts:
    - name: a
      mountPath: /a
    - name: b
      mountPath: /b
      readOnly: true
  readinessProbe:
    httpGet:
      path: /a
      port: 80
    periodSeconds: 5
    failureThreshold: 2

  # e
  resources: {}
""".splitlines()
DAMAGE = (
    "",
    "  ",
    "- ",
    "# ",
    "x: ",
    "x",
    "  x",
    "name: ",
    "null: ",
    "'",
    '"',
    "{",
    "- [",
    "&a ",
    "\t",
    ": ",
    "~",
    "|",
    ".nan",
)


def damaged_container(seed: int) -> bytes:
    random = Random(seed)  # noqa: S311 - not for secrets
    lines = list(CONTAINER)
    for _ in range(random.randint(0, 3)):
        at, column = random.randrange(len(lines)), random.randint(0, 12)
        match random.randrange(4):
            case 0:
                lines.insert(at, random.choice(lines))
            case 1:
                del lines[at]
            case 2:
                lines[at] = lines[at][:column] + random.choice(DAMAGE) + lines[at][column:]
            case _:
                lines[at] = lines[at][:column] + random.choice(DAMAGE) + lines[at][column + 2 :]
    return "\n".join([*lines, ""] if random.random() < 0.9 else lines).encode()


UNREAD = ("args", "env", "volumeMounts")


def without_unread(value: Plain) -> Plain:
    if isinstance(value, dict):
        return {
            key: [] if key in UNREAD and isinstance(item, list) else without_unread(item) for key, item in value.items()
        }
    return [without_unread(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, 2**32).map(damaged_container))
@example(b"- env:\n    - name: a\n      value: b\n      value: c\n")
@example(b"- args:\n  - a\n    b\n  c: d\n")
@example(b"- args:\n  - a\n\n  - b: c\n")
@example(b"- b:\n    args:\n  - a\n")
@example(b"- args:\n  - |\n    a\n   b\n")
def test_what_is_skimmed_is_in_order_to_the_strict_reading(text: bytes):
    try:
        skimmed = read_plain(text, skims=True)
    except NotPlain:
        return
    assert shown(without_unread(skimmed)) == shown(without_unread(strictly(text)))


def test_lists_that_no_model_reads_are_one_token_each():
    tokens = fastyaml.tokens("\n".join([*CONTAINER, ""]).encode(), skims=True)
    heads = [token[0].strip() for token in tokens]
    assert heads[:6] == ["- image:", "env:", "args:", "volumeMounts:", "readinessProbe:", "httpGet:"]


def test_a_long_list_is_read_a_few_objects_at_a_time_and_means_the_same(monkeypatch):
    item = [
        "- apiVersion: v1",
        "  kind: Pod",
        "  data: |",
        "    - apiVersion: v1",
        "   ",
        "    b",
        "",
        "  text: 'a",
        "   - apiVersion: b'",
        "  plain: a",
        "    b",
        "  list:",
        "  - apiVersion: x",
        "  flow: [a,",
        "   b]",
    ]
    text = "\n".join(["apiVersion: v1", "kind: List", "items:", *item * 5, "metadata:", "  name: a"]).encode()
    whole = [fastyaml.read_plain(text, skims=skims) for skims in (False, True)]
    monkeypatch.setattr(fastyaml, "_BATCH", 0)
    assert [fastyaml.read_plain(text, skims=skims) for skims in (False, True)] == whole
    assert len(whole[0]["items"]) == 5


def test_no_model_that_a_manifest_is_read_as_has_a_field_that_is_skimmed():
    found = [inspect.type_info(model) for model in (Workload, _Controller, _Template, Scale)]
    fields: set[str] = set()
    seen: set[type] = set()
    while found:
        match found.pop():
            case inspect.StructType() as model if model.cls not in seen:
                seen.add(model.cls)
                fields |= {field.encode_name for field in model.fields}
                found += (field.type for field in model.fields)
            case inspect.UnionType() as union:
                found += union.types
            case inspect.VarTupleType() as items:
                found.append(items.item_type)
            case inspect.DictType() as mapping:
                found.append(mapping.value_type)
    assert {"resources", "containerPort", "labels", "emptyDir"} <= fields  # it did look
    assert fields.isdisjoint(UNREAD)


PLAIN = {
    "mapping": b"a: 1\nb: x y\nc:\nd: null\n",
    "nested": b"a:\n  b:\n    c: 1\n  d: 2\ne: 3\n",
    "list below its key": b"a:\n  - 1\n  - b: 2\n    c: 3\nd: 4\n",
    "list in the column of its key": b"a:\n- 1\n- b: 2\n  c:\n  - 3\n  d: 4\ne: 5\n",
    "top-level list": b"- a\n- b: c\n",
    "wide dash": b"a:\n  -   b: 1\n      c: 2\n",
    "comments and blank lines": b"# a\n\na: 1 # b\n  # c\nb:\n  # d\n  c: 2\n\n",
    "yaml 1.1 scalars": b"a: yes\nb: 010\nc: 0x1F\nd: 1_000\ne: ~\nf: 1e3\n",
    "keys that are no texts": b"on: 1\n2: b\n1.50: c\n",
    "quoted": b"a: \"x: y # z\"\nb: 'it''s'\n\"c d\": \"\\\"\\n\"\n",
    "flow": b'a: [x, "y", 1]\nb: {c: d, e: 5}\nf: []\ng: {}\n',
    "nested flow": b'a: {b: {c: d}, "e": [1, {f: g}]} # h\ni: [[x], {}]\n',
    "flow over several lines": b"a: [\n  b, # c\n  d\n  ]\ne: {\n  f: g\n  }\n",
    "nested dashes": b"- - a\n  - b: 1\n    c: 2\n-  - d\n",
    "colons at the beginning": b"- ::/0\n- :a\n",
    "escapes": b'a: "it\\\'s \\x41\\u00e9\\0\\t"\n',
    "quoted over several lines with escapes": b'a: "b \\"c\\" \\\n  \\ d\n  e"\nf: 1\n',
    "literal block": b"a: |\n  x\n    y\n\n  # z\nb: |-\n  v\nc: |+\n  w\n\nd: 1\n",
    "literal block in a list": b"- |\n  x\n- a: |\n    y\n  b: 1\n",
    "folded block": b"a: >-\n  x\n  y\nb: 1\n",
    "quoted over several lines": b"a: 'x\n  y: z\n  v. '\nb: \"c\n    d\"\n",
    "unquoted over several lines": b"a: x y\n  z\n  v\nb:\n- c\n  d\n",
    "managed fields": b'f:metadata:\n  k:{"name":"a"}:\n    .: {}\n',
    "tab in a block": b"a: |\n  x\ty\n",
    "beyond ascii": "a: größe\n# ü\n".encode(),
    "arguments": b"args:\n- --a=b\n- -c\n- /bin/sh\n- $(X)\n- a:b\n- a#b\n",
    "no line end": b"a: 1",
    "no line end below a block": b"a: |\n  b\nc: 1",
    "block that begins with empty lines": b"a: |\n\n\n  b\n",
}  # fmt: skip


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN.keys())
def test_what_manifests_are_made_of_is_plain(text: bytes):
    assert shown(read_plain(text)) == shown(strictly(text))


def test_plain_manifests_never_take_the_slow_way(monkeypatch: pytest.MonkeyPatch):
    """Whatever Python it is: were the fast reading to match nothing, everything would still work, ten times slower."""

    def strict_reading(*_: object) -> None:
        pytest.fail("took the slow way")

    monkeypatch.setattr(strictyaml, "read_documents", strict_reading)
    files = sorted(scenario_dir("content-platform").glob("platform/*.yaml"))
    assert len(files) >= 8
    for file in files:
        assert not read(file.name, file.read_bytes()).problems


HOSTILE = {
    "colons": "a" + ":b" * 40_000 + ": [",
    "colons and number signs": "a: " + "b:#" * 40_000 + " : ",
    "escapes": 'a: "' + "\\n" * 40_000,
    "doubled quotes": "a: '" + "''" * 40_000 + "' b",
    "flow list": "a: [" + "b, " * 40_000,
    "flow list of quoted": "a: [" + "'b''c', " * 40_000 + "&]",
    "flow mapping": "a: {" + 'b: "c\\n", ' * 40_000 + "]",
    "words in a flow list": "a: [" + "b " * 40_000 + "&]",
    "flow lists that never close": "  a: [b,\n" * 40_000,
    "nested dashes": "- " * 40_000 + "b",
    "quotes over escaped line ends that never close": 'a: "b \\\n' + "  c \\\n" * 40_000,
    "dashes": "-" * 80_000 + " :",
    "unclosed quotes": "a: 'b\n" * 40_000,
    "quotes over lines that never close": "a: 'b\n" + "  c''d\n" * 40_000,
    "blocks without text": "a: |\n" * 40_000,
    "skimmed lists that end badly": "  args:\n" + "  - a\n" * 40_000 + "   b: &c\n",
    "skimmed lists in a row": "  env:\n  - name: a\n" * 20_000 + "&",
    "skimmed blocks": "  args:\n  - |\n" + "    a\n" * 40_000 + "   &",
    "skimmed blocks of blank lines": "  args:\n  - |\n    a\n" + "\n" * 40_000 + "   &",
    "skimmed blocks and blank lines": "  args:\n" + "  - |\n    a\n\n\n" * 20_000 + "   &",
    "skimmed words": "  args:\n" + "  - a:b#c:d\n" * 20_000 + "  - e: &\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_text_takes_linear_time(text: str):
    def work() -> None:
        with pytest.raises(NotPlain):
            read_plain(text.encode(), skims=True)

    assert takes_less_than(2, work)  # twenty times what it takes; the square would be minutes


LEFT_TO_THE_STRICT_READING = {
    "anchor": b"a: &x 1\n",
    "alias": b"a: *x\n",
    "tag": b"a: !!str 1\n",
    "merge key": b"<<: {a: 1}\n",
    "complex key": b"? a\n: b\n",
    "key set twice": b"a: 1\nb: 2\na: 3\n",
    "key set twice in a flow mapping": b"a: {b: 1, b: 2}\n",
    "null as a key": b"null: 1\n",
    "not a number": b"a: .nan\n",
    "two colons": b"a: b: c\n",
    "tab": b"a:\tb\n",
    "tab in the indentation": b"a:\n\tb: 1\n",
    "dedent to nowhere": b"a:\n    b: 1\n  c: 2\n",
    "deeper than a value": b"a: 1\n  b: 2\n",
    "key in a list": b"a:\n  - 1\n  b: 2\n",
    "item in a mapping": b"a: 1\n- b\n",
    "indented document": b"  a: 1\n",
    "bare dash": b"-\n  a: 1\n",
    "scalar document": b"a\n",
    "end of document": b"a: 1\n...\n",
    "directive": b"%YAML 1.1\n---\na: 1\n",
    "unclosed quote": b"a: 'b\n",
    "unclosed bracket": b"a: [b,\n  c\n",
    "key without a value in a flow mapping": b"a: {b}\n",
    "unknown escape": b'a: "\\q"\n',
    "half of a character": b'a: "\\ud800"\n',
    "blank line in quotes": b"a: 'b\n\n  c'\n",
    "block at the end without a line end": b"a: |\n  b",
    "indentation indicator": b"a: |2\n   x\n",
    "folded block with paragraphs": b"a: >\n  x\n\n  y\n",
    "control character": b"a: \x01\n",
    "line separator": "a: b\u2028c\n".encode(),
    "not utf-8": b"a: \xff\n",
    "utf-8 in pieces": b"a: \xc3b\xa9\n",
    "carriage return": b"a: b\rc: d\n",
    "long key": b"k" * 1100 + b": 1\n",
    "long line": b"a: " + b"b" * 1_000_000 + b"\n",
    "deep nesting": b"".join(b" " * depth + b"a:\n" for depth in range(150)),
}


@pytest.mark.parametrize("text", LEFT_TO_THE_STRICT_READING.values(), ids=LEFT_TO_THE_STRICT_READING.keys())
def test_what_needs_a_second_look_is_not_plain(text: bytes):
    with pytest.raises(NotPlain):
        read_plain(text)


def test_readers_of_the_same_line_get_flow_collections_of_their_own():
    first, second = read_plain(b"a: [1]\n"), read_plain(b"a: [1]\n")
    assert isinstance(first, dict)
    first["a"].append(2)
    assert second == {"a": [1]}


def test_what_is_remembered_is_bounded_and_what_came_first_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fastyaml, "_REMEMBERED", 10)
    monkeypatch.setattr(fastyaml, "heads", fastyaml._Heads())
    monkeypatch.setattr(fastyaml, "_values", fastyaml._Values())
    for number in range(50):
        assert read_plain(f"key{number}: {number}\n".encode()) == {f"key{number}": number}
    for remembered in (fastyaml.heads, fastyaml._values):
        assert len(remembered) == 10
    assert "key0: " in fastyaml.heads


def test_heads_are_parsed_once_even_if_no_two_values_are_alike():
    read_plain(b"some-key: first\n")
    known = len(fastyaml.heads)
    for number in range(9):
        read_plain(b"some-key: value %d\n" % number)
    assert len(fastyaml.heads) == known
