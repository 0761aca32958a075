"""The headline of ``podqos autopsy`` never contradicts the deaths below it, and every answer ends with what to run."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.oom_logs import CARRIERS, cgroup, killed, machine, read
from podqos.logs.said import EvictionCause, KillBasis, Killer, NodeSign, SignKind, UserspaceKill, WhatWasRead
from podqos.questions.autopsy import Autopsy
from podqos.questions.autopsy_death import ContainerEnd, Death, EndCause, Eviction, Manner, Reason
from podqos.questions.autopsy_headline import headline, headline_without_deaths
from podqos.questions.autopsy_next import MOST_STEPS, next_steps
from podqos.questions.autopsy_oom import Examiner
from podqos.questions.autopsy_text import markdown, text
from podqos.questions.autopsy_words import noticed, worded
from podqos.text.style import Style

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
POD = st.sampled_from(("shop/web-0", "shop/db-0", "db-0", "", "kube-system/x"))
NODE = st.sampled_from(("", "node-1", "ip-10-0-0-1.ec2.internal", "NODE 1"))
AT = st.sampled_from(("", "2026-11-16T10:29:00Z", "Jan  5 15:19:27", "5864.70", "0001-01-01T00:00:00Z", "soon"))
BY_STATUS = [EndCause.SIGKILL, EndCause.PROBE, EndCause.GRACE_PERIOD, EndCause.NODE_LOST]


def _eviction(pod, cause, follows, at, node):
    is_ranked = cause is EvictionCause.NODE_PRESSURE
    reason = (Reason.FIRST if follows else Reason.PODS_UNKNOWN) if is_ranked else Reason.NOT_RANKED
    found = Eviction(cause)
    follows = follows if is_ranked else None
    return Death(Manner.EVICTION, "kubelet", "", "", at, node, "", follows, reason, pod=pod, eviction=found)


def _ended(pod, cause, at, node, code):
    end = ContainerEnd(pod, "app", cause, at, node, "Error", code)
    is_oom = cause is EndCause.KERNEL
    reason = Reason.NO_REPORT if is_oom else Reason.NOT_RANKED
    manner = Manner.OOM_KILL if is_oom else Manner.CONTAINER
    return Death(manner, "unknown", "", "", at, node, "", None, reason, pod=pod, status=end)


def _program(killer, at, host):
    kill = UserspaceKill(killer, KillBasis.UNKNOWN, at=at, host=host)
    return Death(Manner.PROGRAM, killer.value, "", "", at, host, program=kill)


EVICTIONS = st.builds(_eviction, POD, st.sampled_from(EvictionCause), st.sampled_from((True, None)), AT, NODE)
ENDS = st.builds(
    _ended, POD, st.sampled_from([*BY_STATUS, EndCause.KERNEL]), AT, NODE, st.sampled_from((137, 143, 1, None))
)
PROGRAMS = st.builds(_program, st.sampled_from(Killer), AT, NODE)
NOTICES = st.builds(noticed, st.builds(NodeSign, st.just(SignKind.SYSTEM_OOM), at=AT, node=NODE, pod=POD))
READ = st.builds(
    WhatWasRead,
    lines=st.integers(0, 3),
    bytes=st.integers(0, 99),
    kernel_messages=st.integers(0, 2),
    pods=st.integers(0, 2),
    logs=st.sampled_from(((), ("-",), ("kern.log",))),
    pod=POD,
)
DEATHS = st.lists(st.one_of(st.sampled_from(KILLS), EVICTIONS, ENDS, PROGRAMS, NOTICES), max_size=9)
COUNT = re.compile(r"([\d,]+) (more )?(OOM kill|OOM|container)(?:s\b|\b)")


@given(DEATHS)
@settings(max_examples=150, deadline=None)
def test_the_headline_counts_what_is_below_it(found):
    deaths = tuple(map(worded, found))
    if len(deaths) < 2:
        assert [headline(deaths, 0)] == [death.what for death in deaths] or not deaths
        return
    said = headline(deaths, 0)
    numbers = [(int(count), noun) for count, _, noun in COUNT.findall(said)]
    unreported = sum(death.reason is Reason.NO_REPORT for death in deaths)
    killed_by_kernel = sum(death.oom is not None and bool(death.victims) for death in deaths)
    assert sum(count for count, noun in numbers if noun == "OOM kill") == killed_by_kernel + unreported
    assert sum(count for count, noun in numbers if noun == "container") == sum(
        death.manner is Manner.CONTAINER for death in deaths
    )
    programs = sum(death.program is not None for death in deaths)
    assert sum(map(int, re.findall(r"(\d+) kills? by (?!the kernel)", said))) == programs
    assert ("Not the kernel: " in said) is bool(programs)
    judged = [death for death in deaths if death.oom is not None or death.eviction is not None]
    follows = sum(death.follows_rule is True for death in judged)
    words = re.search(r"(\d+) explained by the rules", said)
    is_all = "all explained by the rules" in said or (len(judged) == 1 and "explained by the rules" in said)
    assert follows == (int(words[1]) if words else len(judged) if is_all and judged else 0)
    assert said.endswith(".")


@given(READ)
def test_where_nothing_was_found_the_headline_says_so(read):
    said = headline_without_deaths((), (), (), read)
    assert re.match(r"No OOM kills|Nothing to explain|This does not look like", said)


@given(DEATHS, READ)
@settings(max_examples=60, deadline=None)
def test_every_answer_is_complete_or_ends_with_what_to_run_next(found, read):
    deaths = tuple(map(worded, found))
    steps = next_steps(found, (), (), read, others=False)
    said = headline(deaths, 0) if deaths else headline_without_deaths((), (), (), read)
    guided = Autopsy(deaths, headline=said, next_steps=steps)
    lines = text(guided, Style(width=80))
    assert len(steps) <= MOST_STEPS
    commands = [step.command for step in steps]
    assert [line[2:] for line in lines if line[2:] in commands] == commands
    assert all(command in "\n".join(markdown(guided)) for command in commands)
    if not steps:
        kills = [death for death in deaths if death.oom is not None]
        assert all(kill.follows_rule is not None and (kill.pod or not kill.pod_uid) for kill in kills)
