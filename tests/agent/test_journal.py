"""The journal: round trip, bytes, order, and what happens to lines that are none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.agent import reasons
from podqos.agent.journal import By, Entry, Kind, decode, encode, merged
from podqos.errors import InputError
from podqos.eviction.signals import NodeCondition

NAMES = st.text("abcxyz-", min_size=1, max_size=8)


def because() -> st.SearchStrategy[reasons.Because | None]:
    """Reasons of every kind, built from their types."""
    kinds = reasons.Because.__args__
    st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
    return st.none() | st.one_of(*(st.from_type(kind) for kind in kinds))


ENTRIES = st.builds(
    Entry,
    time_us=st.integers(0, 10**15),
    node=NAMES,
    kind=st.sampled_from(Kind),
    pod=st.none() | NAMES,
    container=st.none() | NAMES,
    by=st.none() | st.sampled_from(By),
    because=because(),
)
"""Lines of a journal. Strategies for that many types of reasons take a second to make."""


@given(st.lists(ENTRIES, max_size=5))
def test_what_is_written_can_be_read_back(journal):
    data = encode(journal)
    assert list(decode(data)) == journal
    assert encode(decode(data)) == data


def test_a_line_has_what_applies_and_nothing_else():
    entry = Entry(
        1, "n", Kind.CONDITION_CHANGED, by=By.KUBELET, because=reasons.ConditionStatus(NodeCondition.PID_PRESSURE, True)
    )
    assert encode([entry]) == (
        b'{"time_us":1,"node":"n","kind":"ConditionChanged","by":"kubelet",'
        b'"because":{"type":"ConditionStatus","condition":"PIDPressure","holds":true}}\n'
    )


@given(st.lists(st.lists(ENTRIES, max_size=6), max_size=4))
def test_merged_journals_are_in_order_of_time_then_node_and_lose_nothing(journals):
    in_order = [sorted(journal, key=lambda entry: (entry.time_us, entry.node)) for journal in journals]
    result = list(merged(in_order))
    assert sorted(map(encode, ([entry] for entry in result))) == sorted(
        encode([entry]) for journal in journals for entry in journal
    )
    keys = [(entry.time_us, entry.node) for entry in result]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"time_us":1,"node":"n","kind":"Vanished"}', b"\xff", b'{"time_us":1,"kind":"Started"}']
)
def test_a_line_that_is_no_entry_is_named_by_its_number(line):
    good = encode([Entry(1, "n", Kind.STARTED)])
    with pytest.raises(InputError, match=r"^run\.jsonl:3: not a journal entry"):
        list(decode(good + b"\n" + line + b"\n", "run.jsonl"))


SCRIPT = """
import sys
from agent.test_agent import GREEDY, MODEST, crowded, run
from eviction.nodes import pod
from podqos.agent.journal import encode

world = crowded(stop_seconds=0.5, clean_up_seconds=2)
running = run(world, GREEDY, MODEST, pod("third"), pod("critical", priority=2 * 10**9))
running.until(400)
sys.stdout.buffer.write(encode(running.journal))
"""


def test_two_hash_seeds_give_one_journal():
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    journals = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    (journal,) = journals
    assert journal.count(b"\n") > 10
