"""An autopsy at a glance: how many were killed and evicted, whether the rules name them, and the main cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.wording import listed
from podqos.words.autopsy_death import NOT_RANKED, AutopsyDeath

_KERNEL = "kernel"
_REMOVERS = frozenset({"kubelet", "podqos guard", "user", "scheduler", "control plane"})
"""Who removes pods; whoever else is named kills processes: the kernel, or a program such as systemd-oomd."""
_ONE = {
    True: ("As expected", "{killed} the {what} {its} rule names"),
    False: ("Unexpected", "{killed} a {what} {its} rule does not name"),
    None: ("Unverified", "the input does not show which one the rule names"),
}
_KILLED: Mapping[str, Mapping[str, str]] = {
    _KERNEL: {"killed": "the kernel killed", "what": "process", "its": "its"},
    "kubelet": {"killed": "the kubelet evicted", "what": "pod", "its": "its"},
    "podqos guard": {"killed": "podqos guard evicted", "what": "pod", "its": "the kubelet's"},
}
"""Who chooses by a rule of the kernel or the kubelet."""


class TileWords(Struct, frozen=True, gc=False):
    """A figure with its name."""

    value: str
    name: str
    note: str = ""
    kind: str = ""
    """``kernel`` or ``kubelet``, whose colour it has, or nothing."""


def tiles(deaths: Sequence[AutopsyDeath]) -> tuple[TileWords, ...]:
    """Return the figures of some deaths."""
    return tuple(_tiles(deaths)) if deaths else ()


def _tiles(deaths: Sequence[AutopsyDeath]) -> Iterator[TileWords]:
    by = Counter(death.by for death in deaths)
    evicted = sum(by[name] for name in _REMOVERS)
    programs = [name for name in by if name != _KERNEL and name not in _REMOVERS]
    if number := by[_KERNEL]:
        yield TileWords(f"{number:,}", "OOM kill" if number == 1 else "OOM kills", "by the kernel", _KERNEL)
    if number := sum(by[name] for name in programs):
        yield TileWords(f"{number:,}", "killed by another program", listed(programs), _KERNEL)
    if evicted:
        yield TileWords(f"{evicted:,}", "pod evicted" if evicted == 1 else "pods evicted", "", "kubelet")
    yield from _rule(deaths)
    yield from _cause(deaths)
    ((who, times),) = Counter(death.who for death in deaths).most_common(1)
    if times > 1:
        yield TileWords(f"{times:,}×", "the same victim", who)


def _rule(deaths: Sequence[AutopsyDeath]) -> Iterator[TileWords]:
    """Yield whether the victims are those that the rules name."""
    ranked = [death for death in deaths if death.by in _KILLED and death.verdict != NOT_RANKED]
    if len(ranked) == 1:
        value, name = _ONE[ranked[0].follows_rule]
        yield TileWords(value, name.format(**_KILLED[ranked[0].by]))
    elif ranked:
        named = Counter(death.follows_rule for death in ranked)
        notes = [f"{named[False]:,} {'is' if named[False] == 1 else 'are'} not"] * bool(named[False])
        notes += [f"{named[None]:,} cannot be verified"] * bool(named[None])
        yield TileWords(f"{named[True]:,} of {len(ranked):,}", "victims are those the rules name", ", ".join(notes))


def _cause(deaths: Sequence[AutopsyDeath]) -> Iterator[TileWords]:
    """Yield what was behind most of them."""
    causes = Counter(death.cause for death in deaths if death.cause).most_common()
    if not causes:
        return
    cause, times = causes[0]
    if len(deaths) == 1:
        yield TileWords(f"{cause[:1].upper()}{cause[1:]}", "the main cause")
    else:
        yield TileWords(f"{times:,}×", cause, "the most frequent cause" if len(causes) > 1 else "the cause")
