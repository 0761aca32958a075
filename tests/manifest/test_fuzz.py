"""Whatever the bytes are, the answer is a reading, soon."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from podqos.manifest.lookup import Lookup
from podqos.manifest.reading import read
from timing import takes_less_than

CORPUS = Path(__file__).parent / "corpus"
SEEDS = [path.read_bytes() for path in sorted(CORPUS.iterdir()) if path.suffix in {".yaml", ".json"}]
SEEDS += [gzip.decompress(path.read_bytes())[:4000] for path in sorted(CORPUS.glob("*.gz"))]
PIECES = [
    *(b"null", b"{}", b"[]", b"- ", b": ", b"\n", b"\t", b"'", b'"', b"&a ", b"*a ", b"!!str ", b"|\n", b"<<: "),
    *(b"\xff", b"\xc3", b"\x00", b"\x1b", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\\ud800", b"---\n", b"...\n", b"%YAML\n"),
    *(b"? ", b"#", b"{", b"}", b"[", b"]", b",", b"1e999", b"NaN", b"true", b"5", b"-", b"9" * 5000, b"\r", b">\n"),
    *(b"items:", b"kind: PodList\n", b'"kind":"Pod",', b"uid: x\n", b"status: {a: b}\n", b"resources: {a: 1}\n", b" "),
]  # fmt: skip
SECONDS = 5


def mutated(seed: int) -> bytes:
    random = Random(seed)  # noqa: S311 - not for secrets
    data = bytearray(random.choice(SEEDS))
    for _ in range(random.randint(1, 6)):
        at = random.randrange(len(data) + 1)
        kind = random.random()
        if kind < 0.5:
            data[at:at] = random.choice(PIECES)
        elif kind < 0.7:
            del data[at : at + random.randint(1, 30)]
        elif kind < 0.8:
            data[at : at + 1] = bytes([random.randrange(256)])
        else:
            other = random.randrange(len(data) + 1)
            data[at:at] = data[other : other + random.randint(1, 80)]
    return bytes(data)


def check(data: bytes) -> None:
    assert takes_less_than(SECONDS, lambda: _check(data))


def _check(data: bytes) -> None:
    reading = read("f", data)
    assert len(reading.places) == len(reading.workloads)
    assert all("\n" not in str(problem) and problem.line >= 1 and problem.column >= 1 for problem in reading.problems)
    places = [*reading.places, *(other.place for other in reading.others)]
    lookup = Lookup(data) if places else None
    for place in places:
        assert lookup is not None
        assert isinstance(lookup.plain(place), dict)
        line, column = lookup.locate(place, "spec.containers[0].resources.requests.cpu")
        assert (line, column) >= (1, 1)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60) | st.text("{}[]:,-\n \"'#&*!|>a0\t", max_size=40).map(str.encode))
@example(b'{"a":')
@example(b"[" * 100_000)
@example(b'{"a": ' * 100_000)
@example(b"- " * 100_000)
@example(b'{"a": "\\ud800"}')
@example(b'{"a": ' + b"9" * 10_000 + b"}")
@example(b'{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod", "\xff": 1}]}')
def test_arbitrary_bytes_give_a_reading(data: bytes):
    check(data)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32))
@example(5479)
def test_damaged_manifests_give_a_reading(seed: int):
    check(mutated(seed))
