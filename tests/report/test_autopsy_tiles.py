"""The figures of an autopsy, in plain words."""

from __future__ import annotations

import pytest

from podqos.cli.main import main
from podqos.words.autopsy_death import NOT_RANKED, AutopsyDeath
from podqos.words.autopsy_tiles import tiles

KERN_LOG = "scenarios/content-platform/incident/kern.log"


def death(by="kernel", *, follows=True, verdict="", cause="page cache", who="default/web"):
    """Return a death."""
    return AutopsyDeath(by, "", "", who, "", verdict, follows_rule=follows, cause=cause)


def said(*deaths):
    """Return the tiles of deaths as value and name."""
    return [(tile.value, tile.name) for tile in tiles(deaths)]


@pytest.mark.parametrize(
    ("by", "follows", "tile"),
    [
        ("kernel", True, ("As expected", "the kernel killed the process its rule names")),
        ("kernel", False, ("Unexpected", "the kernel killed a process its rule does not name")),
        ("kubelet", True, ("As expected", "the kubelet evicted the pod its rule names")),
        ("podqos guard", True, ("As expected", "podqos guard evicted the pod the kubelet's rule names")),
        ("kernel", None, ("Unverified", "the input does not show which one the rule names")),
    ],
)
def test_of_one_death_it_says_whether_the_rule_names_the_victim(by, follows, tile):
    assert tile in said(death(by, follows=follows))
    assert ("Page cache", "the main cause") in said(death(by, follows=follows))


def test_of_several_deaths_it_counts_those_that_the_rules_name():
    found = tiles((death(), death(follows=False), death("kubelet", follows=None, cause="", who="default/db")))
    assert [(tile.value, tile.name, tile.note) for tile in found] == [
        ("2", "OOM kills", "by the kernel"),
        ("1", "pod evicted", ""),
        ("1 of 3", "victims are those the rules name", "1 is not, 1 cannot be verified"),
        ("2×", "page cache", "the cause"),
        ("2×", "the same victim", "default/web"),
    ]


def test_no_rule_is_named_where_none_decides():
    assert [value for value, _ in said(death("user", follows=None, verdict=NOT_RANKED, cause=""))] == ["1"]
    assert said(death("systemd-oomd", follows=None, cause="")) == [("1", "killed by another program")]
    assert tiles(()) == ()


def test_a_ranking_names_the_victim_and_who_would_have_been_next(capsys):
    assert main(["autopsy", KERN_LOG]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert next(row for row in rows if row[:2] == ["log-forwarder", "4760"])[-1] == "killed"
    assert next(row for row in rows if row[:2] == ["log-collector", "5510"])[-3:] == ["next", "in", "line"]
    assert sum(row[-3:] == ["next", "in", "line"] for row in rows) == 1
