"""memory.min and memory.low: what really holds, level by level."""

from __future__ import annotations

import pytest

from kernel.trees import MI, holding, limited, memory
from podqos.kernel.protection import Protection, protections


def effective_low(state, target="/", *, recursive=False):
    found = protections(state[target], recursive=recursive)
    return {path: each.low_bytes // MI for path, each in found.items()}


def test_children_of_the_reclaimed_cgroup_have_what_they_claim():
    state = memory(a=limited(low_bytes=50 * MI), b=limited(min_bytes=10 * MI))
    found = protections(state.root, recursive=True)
    assert found == {"/": Protection(0, 0), "/a": Protection(0, 50 * MI), "/b": Protection(10 * MI, 0)}


def test_children_that_claim_more_than_the_parent_has_share_it_by_use():
    """The example of the kernel's manual: a parent with 2 units, children that claim and use 3, 1, 0 and nothing."""
    state = memory(
        a=limited(low_bytes=20 * MI),
        a__b=limited(low_bytes=30 * MI),
        a__c=limited(low_bytes=10 * MI),
        a__d=limited(low_bytes=0),
        a__e=limited(low_bytes=100 * MI),
    )
    for path in ("/a/b", "/a/c", "/a/d"):
        holding(state, path, inactive_file=20 * MI)
    assert effective_low(state) == {"/": 0, "/a": 20, "/a/b": 13, "/a/c": 6, "/a/d": 0, "/a/e": 0}


@pytest.mark.parametrize(("recursive", "expected"), [(True, {"/a/b": 30, "/a/c": 10}), (False, {"/a/b": 0, "/a/c": 0})])
def test_what_nobody_claims_passes_to_children_by_size(recursive, expected):
    state = memory(a=limited(low_bytes=40 * MI), a__b=limited(), a__c=limited())
    holding(holding(state, "/a/b", anon=60 * MI), "/a/c", anon=20 * MI)
    found = effective_low(state, recursive=recursive)
    assert {path: found[path] for path in expected} == expected


def test_what_nobody_claims_passes_by_what_each_uses_beyond_its_claim():
    """Of 40 the one claims 10; the other 30 go to 20 and 40 that nobody claims, a third and two thirds."""
    state = memory(a=limited(low_bytes=40 * MI), a__b=limited(low_bytes=10 * MI), a__c=limited())
    holding(holding(state, "/a/b", anon=30 * MI), "/a/c", anon=40 * MI)
    assert effective_low(state, recursive=True) == {"/": 0, "/a": 40, "/a/b": 10 + 10, "/a/c": 20}


def test_a_claim_counts_only_as_far_as_it_is_used():
    state = memory(a=limited(low_bytes=40 * MI), a__b=limited(low_bytes=40 * MI), a__c=limited(low_bytes=40 * MI))
    holding(holding(state, "/a/b", anon=40 * MI), "/a/c", anon=0)
    assert effective_low(state)["/a/b"] == 40


def test_an_unprotected_parent_protects_no_child():
    state = memory(a=limited(), a__b=limited(low_bytes=40 * MI))
    holding(state, "/a/b", anon=40 * MI)
    assert effective_low(state, recursive=True)["/a/b"] == 0


def test_a_cgroup_is_not_protected_from_its_own_limit():
    state = memory(a=limited(low_bytes=40 * MI), a__b=limited(low_bytes=30 * MI))
    holding(state, "/a/b", anon=40 * MI)
    assert effective_low(state, "/a") == {"/a": 0, "/a/b": 30}
