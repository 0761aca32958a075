"""The headline of ``podqos autopsy`` never contradicts the lines below it, whatever was found."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kernel.oom_logs import CARRIERS, cgroup, killed, machine, read
from podqos.report.survival.autopsy import text
from podqos.report.survival.autopsy_markdown import markdown
from podqos.report.text.style import Style
from podqos.survival.autopsy.autopsy import Autopsies, Examiner, OOMAutopsy
from podqos.survival.autopsy.eviction_autopsy import PodEviction
from podqos.survival.autopsy.eviction_scene import EvictionReason
from podqos.survival.autopsy.eviction_traces import OOM_SIGNS, EvictionCause, NodeSign, SignKind
from podqos.survival.autopsy.next_steps import MOST_STEPS, next_steps
from podqos.survival.autopsy.program_failures import FailureKind, ProgramFailure
from podqos.survival.autopsy.terminations import ContainerTermination, TerminationCause
from podqos.survival.autopsy.userspace_kill import KillBasis, Killer, UserspaceKill
from podqos.survival.autopsy.what_was_read import WhatWasRead
from podqos.words.autopsy_headline import headline

ROWS = [(7, 1000, 200_000, 100, 0, 100, "python3"), (8, 1000, 100_000, 100, 0, 100, "sh")]
REPORTS = [
    machine(),
    machine()[:-2],
    machine()[:6],
    cgroup(ROWS, 7, "python3"),
    cgroup(ROWS, 8, "sh"),
    [killed()],
    [killed(why="Memory cgroup out of memory")],
]
KILLS = [
    Examiner().examine(report)
    for carrier in ("plain", "syslog", "dmesg-T", "syslog-iso")
    for lines in REPORTS
    for report in read(map(CARRIERS[carrier], lines))
]
NOT_RANKED = {cause: EvictionReason.NOT_RANKED for cause in EvictionCause if cause is not EvictionCause.NODE_PRESSURE}
POD = st.sampled_from(("shop/web-0", "shop/db-0", "db-0", "", "kube-system/x"))
NODE = st.sampled_from(("", "node-1", "ip-10-0-0-1.ec2.internal", "NODE 1"))
AT = st.sampled_from(("", "2026-11-16T10:29:00Z", "Jan  5 15:19:27", "5864.70", "0001-01-01T00:00:00Z", "soon"))
EVICTIONS = st.builds(
    lambda pod, cause, follows, at, node: PodEviction(
        pod or "x/y",
        cause,
        None if cause in NOT_RANKED else follows,
        NOT_RANKED.get(cause, EvictionReason.FIRST if follows else EvictionReason.PODS_UNKNOWN),
        at=at,
        node=node,
    ),
    POD,
    st.sampled_from(EvictionCause),
    st.sampled_from((True, None)),
    AT,
    NODE,
)
TERMINATIONS = st.builds(
    ContainerTermination,
    pod=POD,
    container=st.sampled_from(("app", "")),
    cause=st.sampled_from([cause for cause in TerminationCause if cause not in {"Kernel", "Eviction", "Exit"}]),
    at=AT,
    node=NODE,
    exit_code=st.sampled_from((137, 143, 1, None)),
)
SIGNS = st.builds(NodeSign, st.sampled_from(SignKind), at=AT, node=NODE, pod=POD, times=st.integers(1, 3))
USERSPACE = st.builds(UserspaceKill, st.sampled_from(Killer), st.just(KillBasis.UNKNOWN), at=AT, host=NODE)
FAILURES = st.builds(ProgramFailure, st.sampled_from(FailureKind), st.just("out of memory"), at=AT, host=NODE)
READ = st.builds(
    WhatWasRead,
    lines=st.integers(0, 3),
    bytes=st.integers(0, 99),
    kernel_messages=st.integers(0, 2),
    pods=st.integers(0, 2),
    logs=st.sampled_from(((), ("-",), ("kern.log",))),
    pod=POD,
)
AUTOPSIES = st.builds(
    Autopsies,
    kills=st.lists(st.sampled_from(KILLS), max_size=5).map(tuple),
    evictions=st.lists(EVICTIONS, max_size=4).map(tuple),
    terminations=st.lists(TERMINATIONS, max_size=4).map(tuple),
    node_events=st.lists(SIGNS, max_size=4).map(tuple),
    userspace_kills=st.lists(USERSPACE, max_size=2).map(tuple),
    program_failures=st.lists(FAILURES, max_size=2).map(tuple),
    read=READ,
)
COUNT = re.compile(r"([\d,]+) (?:more )?(OOM kill|OOM|eviction|pod|container|node event)(?:s\b|\b)")
NOTHING = re.compile(r"No OOM kills|[Nn]othing to explain")


def number(found: str, noun: str) -> int:
    return sum(int(count.replace(",", "")) for count, own in COUNT.findall(found) if own == noun)


@given(AUTOPSIES)
@settings(max_examples=120, deadline=None)
def test_the_headline_counts_what_is_below_it(found):
    said = headline(found)
    unreported = sum(sign.times for sign in found.node_events if sign.kind in OOM_SIGNS)
    below = (*found.kills, *found.evictions, *found.terminations, *found.userspace_kills)
    is_anything = (
        bool(below) or unreported or any(sign.kind is SignKind.CLEAN_UP_TIMED_OUT for sign in found.node_events)
    )
    is_silent = bool(NOTHING.match(said) or "nothing to explain" in said)
    if found.program_failures and not is_anything:
        assert "the kernel log says whether" in said.lower() or said.endswith("No OOM kill in the log.")
    else:
        assert is_silent is not bool(is_anything)
        assert said.endswith(".")
        assert "No OOM kill in the log" not in said
    assert sum(map(int, re.findall(r"(\d+) kills? by (?!the kernel)", said))) == len(found.userspace_kills)
    assert ("Not the kernel: " in said and bool(is_anything)) is bool(found.userspace_kills)
    if found.kills or found.evictions:
        with_victim = sum(bool(kill.victims) for kill in found.kills)
        assert number(said, "OOM kill") == with_victim
        assert number(said, "node event") == unreported
        assert number(said, "OOM") == len(found.kills) - with_victim
        assert number(said, "container") == len(found.terminations)
        verdicts = [*found.kills, *found.evictions]
        ranked = [verdict for verdict in verdicts if verdict.reason is not EvictionReason.NOT_RANKED]
        follows = Counter(verdict.follows_rule for verdict in ranked)
        assert _said(said, "explained by the rules", "all explained by the rules", len(verdicts)) == follows[True]
        assert _said(said, "cannot be verified", "none of which can be verified", len(verdicts)) == follows[None]
    elif len(found.terminations) > 1:
        assert number(said, "container") == len(found.terminations)


def _said(text: str, words: str, all_words: str, deaths: int) -> int:
    """Return of how many deaths something is said: a number of them, the only one, or all of them."""
    if match := re.search(rf"(\d[\d,]*) {words}", text):
        return int(match[1].replace(",", ""))
    if deaths == 1:
        return int(f", {words}" in text or f", which {words}" in text)
    return deaths if all_words in text else 0


@given(AUTOPSIES)
@settings(max_examples=60, deadline=None)
def test_every_answer_is_complete_or_ends_with_what_to_run_next(found):
    steps = next_steps(found)
    guided = replace(found, next_steps=steps)
    lines = text(guided, Style(width=80))
    assert len(steps) <= MOST_STEPS
    assert [line[2:] for line in lines if line[2:] in {step.command for step in steps}] == [
        step.command for step in steps
    ]
    assert all(step.command in "\n".join(markdown(guided)) for step in steps)
    if not steps:
        assert all(_is_complete(kill) for kill in found.kills)


def _is_complete(kill: OOMAutopsy) -> bool:
    return kill.follows_rule is not None and (bool(kill.pod) or not kill.pod_uid)
