from __future__ import annotations

import os

import pytest

from podqos.host.linux.kmsg import KernelKill, KernelLog, OOMLines

_MEMCG_SUMMARY = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/podqos/kubepods/podx,"
    "task_memcg=/podqos/kubepods/podx/abc,task=stress, really,pid=30678,uid=0"
)
_MEMCG_KILLED = (
    "Memory cgroup out of memory: Killed process 30678 (stress, really) total-vm:53540kB, anon-rss:43776kB, "
    "file-rss:5992kB, shmem-rss:0kB, UID:0 pgtables:144kB oom_score_adj:-5"
)
_GLOBAL_SUMMARY = (
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
    "task_memcg=/podqos/kubepods/pody/def,task=java,pid=77,uid=1000"
)
_GLOBAL_KILLED = (
    "Out of memory: Killed process 77 (java) total-vm:1kB, anon-rss:4000kB, file-rss:0kB, shmem-rss:4kB, UID:1000 "
    "pgtables:8kB oom_score_adj:1000"
)
_PAGE_KIB = os.sysconf("SC_PAGESIZE") // 1024


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            (_MEMCG_SUMMARY, _MEMCG_KILLED),
            KernelKill(
                30678, "stress, really", "/podqos/kubepods/podx", "/podqos/kubepods/podx/abc",
                (43776 + 5992 + 144) // _PAGE_KIB, -5, is_of_cgroup=True,
            ),
        ),
        (
            (_GLOBAL_SUMMARY, _GLOBAL_KILLED),
            KernelKill(
                77, "java", "", "/podqos/kubepods/pody/def", (4000 + 4 + 8) // _PAGE_KIB, 1000, is_of_cgroup=False
            ),
        ),
    ],
    ids=["memcg", "global"],
)  # fmt: skip
def test_the_two_lines_about_a_kill_belong_together(lines, expected):
    reader = OOMLines()
    assert reader.feed("usb 1-1: new high-speed device") is None
    assert reader.feed(lines[0]) is None
    assert reader.feed(lines[1]) == expected


def test_those_killed_with_their_group_share_its_summary():
    reader = OOMLines()
    group = "Tasks in /podqos/kubepods/podx/abc are going to be killed due to memory.oom.group set"
    other = _MEMCG_KILLED.replace("30678", "30679")
    # The kernel kills the victim once more with its group.
    fed = [reader.feed(line) for line in (_MEMCG_SUMMARY, _MEMCG_KILLED, group, _MEMCG_KILLED, other)]
    victim, member = (kill for kill in fed if kill is not None)
    assert (victim.pid, member.pid) == (30678, 30679)
    assert (member.domain, member.cgroup) == (victim.domain, victim.cgroup)
    # Ids are used again: this is another process.
    assert [reader.feed(line) for line in (_MEMCG_SUMMARY, _MEMCG_KILLED)] == [None, victim]


def test_a_kill_whose_summary_was_lost_has_no_cgroup():
    assert OOMLines().feed(_GLOBAL_KILLED).cgroup == ""


def test_the_kernels_own_log_can_be_followed():
    try:
        log = KernelLog()
    except OSError as error:
        pytest.skip(f"/dev/kmsg: {error.strerror}")
    assert log.kills() == []
    log.close()
