"""``podqos autopsy`` on what systemd, Slurm and counters of the kernel's say of OOM kills."""

from __future__ import annotations

import pytest

STATUS = "● web.service - Web\n     Active: {} (Result: oom-kill) since Wed 2026-11-18 09:00:01 UTC; 5s ago\n"
SACCT = """JobID           JobName  Partition      State ExitCode
------------ ---------- ---------- ---------- --------
4711              train        gpu {} {}
"""
EVENTS = "low 0\nhigh 0\nmax 340\noom 3\noom_kill {}\noom_group_kill 0\n"


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (STATUS.format("failed"), "web.service"),
        (STATUS.format("activating (auto-restart)"), "web.service"),
        (STATUS.format("inactive (dead)"), "web.service"),
        ("systemd[1]: web.service: Failed with result oom-kill\n", "web.service"),
        ("Id=web.service\nResult=oom-kill\n", "web.service"),
        ("Result=oom-kill\n", ""),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.batch\n", "Slurm step 4711.batch"),
        ("slurmstepd: error: Detected 2 oom_kill events in StepId=4711.0. Some step tasks have been OOM Killed.\n",
         "Slurm step 4711.0"),
        (SACCT.format("OUT_OF_ME+", "0:125"), "Slurm job 4711"),
        ("State: OUT_OF_MEMORY (exit code 0)\n", "a Slurm job"),
    ],
)  # fmt: skip
def test_a_unit_or_job_whose_result_is_an_oom_kill_was_oom_killed(told, text, unit):
    (sign,) = told(text)["nodeEvents"]
    assert (sign["kind"], sign.get("unit", "")) == ("UnitOOMKilled", unit)
    assert told(text, output="text").startswith(
        f"The kernel OOM-killed a process of {unit or 'a unit'}. The kernel's report"
    )


@pytest.mark.parametrize(
    ("text", "counted", "pod"),
    [
        (EVENTS.format(3), 3, ""),
        ('container_oom_events_total{container="app",namespace="shop",pod="web-0"} 2\n', 2, "shop/web-0"),
        ("node_vmstat_oom_kill 7\n", 7, ""),
    ],
)
def test_a_counter_tells_of_kills_but_not_when(told, text, counted, pod):
    (sign,) = told(text)["nodeEvents"]
    assert (sign["kind"], sign["counted"], sign.get("pod", "")) == ("OOMKillsCounted", counted, pod)
    who = pod or ("the machine" if "vmstat" in text else "a cgroup")
    assert told(text, output="text").startswith(
        f"The kernel's counter for {who} shows {counted} OOM kills, but not when."
    )


@pytest.mark.parametrize(
    "text",
    [
        EVENTS.format(0),
        'container_oom_events_total{container="app",namespace="shop",pod="web-0"} 0\n',
        "# TYPE container_oom_events_total counter\n",
        'increase(container_oom_events_total{namespace="shop"}[5m]) > 0\n',
        "The field oom_kill 3 counts processes that were killed.\n",
        "    oom_kill 3 times\n",
        "Result=success\n",
        "With OnFailure= and Result=oom-kill the unit is restarted.\n",
        "A job ends as OUT_OF_MEMORY if it uses too much.\n",
        SACCT.format("COMPLETED ", "0:0"),
    ],
)  # fmt: skip
def test_counters_at_zero_queries_and_prose_count_nothing(told, text):
    assert not told(text)["nodeEvents"]
