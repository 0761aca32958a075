"""``podqos autopsy`` on deaths that the kernel's OOM killer did not decide, and on what daemons say of its kills."""

from __future__ import annotations

import csv
import io
import json

import pytest

from kernel.oom_logs import CONTAINER, machine
from podqos.answers.log_marks import next_mark
from podqos.answers.other_killers import MARKS, NOTICE_MARKS
from podqos.cli.main import main

UID = "11111111-2222-3333-4444-555555555555"
ID = "ab" * 32
HEADER = "Nov 18 09:00:01 worker-1"
OOMD = (
    f"{HEADER} systemd-oomd[713]: Killed {CONTAINER} due to memory pressure for /kubepods.slice being 62.61% > 50.00% "
    "for > 20s with reclaim activity"
)
EARLYOOM = (
    f"{HEADER} earlyoom[9]: mem avail:   374 of  7841 MiB ( 4.78%), swap free:    0 of    0 MiB ( 0.00%)",
    f"{HEADER} earlyoom[9]: low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%",
    (
        f'{HEADER} earlyoom[9]: sending SIGTERM to process 4711 uid 1000 "java": oom_score 1205, oom_score_adj 300, '
        'VmRSS 4096 MiB, cmdline "java --password=hunter2"'
    ),
)
TALOS = (
    (
        'user: warning: [2026-11-18T09:00:01Z]: [talos] Sending SIGKILL to cgroup {"component": "controller-runtime", '
        f'"controller": "runtime.OOMController", "cgroup": "/sys/fs/cgroup/kubepods/besteffort/pod{UID}"}}'
    ),
    (
        'user: warning: [2026-11-18T09:00:01Z]: [talos] victim processes: {"component": "controller-runtime", '
        '"controller": "runtime.OOMController", "processes": [4711, 4712]}'
    ),
)


@pytest.fixture
def told(tmp_path, capsys):
    """Return what the command answers, as JSON or in another form."""

    def run(lines, *options, output="json"):
        log = tmp_path / "log"
        log.write_text(lines if isinstance(lines, str) else "\n".join(lines) + "\n")
        assert main(["autopsy", str(log), "-o", output, *options]) == 0
        said = capsys.readouterr().out
        return json.loads(said) if output == "json" else said

    return run


KILLS = {
    "systemd-oomd, pressure": (
        [OOMD],
        {"killer": "systemd-oomd", "basis": "memoryPressure", "cgroup": CONTAINER, "pressurePercent": 62.61,
         "pressureLimitPercent": 50.0, "pressureOf": "/kubepods.slice", "pressureDuration": "20s", "podUid": UID,
         "containerId": ID, "qosClass": "Burstable", "at": "Nov 18 09:00:01", "host": "worker-1"},
    ),
    "systemd-oomd, marked before a hook": (
        [("systemd-oomd[713]: Marked /user.slice/a.scope for killing due to memory pressure for /user.slice being "
         "70.00% > 60.00% for > 1min 30s with reclaim activity")],
        {"killer": "systemd-oomd", "cgroup": "/user.slice/a.scope", "pressureDuration": "1min 30s"},
    ),
    "systemd-oomd, memory and swap": (
        [("Killed /user.slice/b.scope due to memory used (7516192768) / total (8589934592) and swap used (3865470566) "
         "/ total (4294967296) being more than 90.00%")],
        {"killer": "systemd-oomd", "basis": "memoryAndSwap", "memoryUsedBytes": 7516192768,
         "swapUsedBytes": 3865470566, "swapTotalBytes": 4294967296, "swapLimitPercent": 90.0},
    ),
    "systemd-oomd, swap alone (v248)": (
        ["Killed /user.slice/b.scope due to swap used (3865470566) / total (4294967296) being more than 90.00%"],
        {"killer": "systemd-oomd", "basis": "swap", "swapUsedBytes": 3865470566},
    ),
    "systemd about systemd-oomd": (
        [f"{HEADER} systemd[1]: db.service: systemd-oomd killed 3 process(es) in this unit."],
        {"killer": "systemd-oomd", "basis": "unknown", "victim": "db.service", "processes": 3, "host": "worker-1"},
    ),
    "earlyoom": (
        EARLYOOM,
        {"killer": "earlyoom", "basis": "lowMemory", "victim": "java", "pid": 4711, "signal": "SIGTERM",
         "memoryAvailableBytes": 374 << 20, "memoryTotalBytes": 7841 << 20, "memoryLimitPercent": 10.0,
         "rssBytes": 4 << 30, "oomScoreAdj": 300, "at": "Nov 18 09:00:01", "host": "worker-1"},
    ),
    "earlyoom 1.3, its last line alone": (
        ['sending SIGKILL to process 4711 "java": badness 905, VmRSS 4096 MiB'],
        {"killer": "earlyoom", "basis": "unknown", "victim": "java", "pid": 4711, "rssBytes": 4 << 30},
    ),
    "earlyoom 1.2": (
        [
            "Low Memory! At or below sigterm limits (mem: 10 %, swap: 10 %)",
            "mem avail:  644 of 5875 MiB (10 %), swap free:    0 of    0 MiB ( 0 %)",
            "Killing process 'bash' with signal 15, pid: 4711, badness: 538, VmRSS: 3160 MiB",
        ],
        {"killer": "earlyoom", "basis": "lowMemory", "victim": "bash", "pid": 4711, "signal": "SIGTERM",
         "memoryAvailableBytes": 644 << 20, "memoryLimitPercent": 10.0},
    ),
    "Talos": (
        TALOS,
        {"killer": "talos", "basis": "memoryPressure", "cgroup": f"/kubepods/besteffort/pod{UID}", "podUid": UID,
         "qosClass": "BestEffort", "processes": 2},
    ),
}  # fmt: skip


NEAR_THE_BEGINNING = {
    "systemd-oomd, swap alone (v248)",
    "systemd about systemd-oomd",
    "earlyoom 1.3, its last line alone",
}
"""Looked for in the first chunk of a log alone."""


@pytest.mark.parametrize("name", KILLS)
def test_a_kill_by_a_program_is_not_the_kernels_and_has_the_figures_it_went_by(told, name):
    lines, expected = KILLS[name]
    found = told(lines)
    (kill,) = found["userspaceKills"]
    assert {key: kill.get(key) for key in expected} == expected
    assert not (found["kills"])
    assert not (found["evictions"])
    first = told(lines, output="text").splitlines()[0]
    assert first.startswith("Not the kernel: ")


def test_the_headline_says_who_killed_whom_and_why(told):
    said = told([OOMD], output="wide").splitlines()
    assert said[0].startswith("Not the kernel: systemd-oomd killed everything in ")
    assert said[0].endswith("because memory pressure in /kubepods.slice was 62.61 %, above 50 % for more than 20s.")
    assert told(EARLYOOM, output="text").splitlines()[0] == (
        "Not the kernel: earlyoom sent SIGTERM to java (pid 4711, 4Gi used), because 374Mi of 7841Mi memory was "
        "available, 10 % or less."
    )


def test_a_process_that_is_killed_after_it_ignored_sigterm_died_once(told):
    again = EARLYOOM[2].replace("SIGTERM", "SIGKILL")
    (kill,) = told([*EARLYOOM, again])["userspaceKills"]
    assert kill.get("signal", "SIGKILL") == "SIGKILL"
    (kill,) = told([*EARLYOOM, f"{HEADER} earlyoom[9]: escalating to SIGKILL after 0.512 seconds"])["userspaceKills"]
    assert kill.get("signal", "SIGKILL") == "SIGKILL"


def test_arguments_of_a_victim_are_not_repeated(told):
    assert "hunter2" not in json.dumps(told(EARLYOOM))


@pytest.mark.parametrize(
    "lines",
    [
        [*EARLYOOM, f"{HEADER} earlyoom[9]: dryrun, not actually sending any signal"],
        ["oomd kill: 1.00 2.00 3.00 a.slice 1999 ruleset:[r] detectorgroup:[d] killer:(dry)kill_by_pressure v2"],
        [
            "Memory pressure for /a is greater than 10 for more than 10 seconds and there was reclaim activity",
            "Failed to kill any cgroup(s) under /a based on pressure",
        ],
        ["systemd-oomd[1]: oomd dry-run: Would have tried to kill /a.slice and all its descendants"],
        [f"{HEADER} earlyoom[9]: mem avail:  5374 of  7841 MiB (68.54%), swap free:    0 of    0 MiB ( 0.00%)"],
        [
            EARLYOOM[0],
            EARLYOOM[1],
            f"{HEADER} earlyoom[9]: trigger_kernel_oom: successfully triggered kernel OOM killer",
        ],
        ['log_notice("Killed %s due to memory pressure for %s being %lu.%02lu%% > %lu.%02lu%%"'],
        ["Killing some time until memory pressure goes down; the low memory warning was sent"],
    ],
)
def test_dry_runs_statistics_source_code_and_prose_are_not_kills(told, lines):
    assert not told(lines)["userspaceKills"]


def test_systemds_line_about_a_unit_is_the_same_kill(told):
    about = f"{HEADER} systemd[1]: cri-containerd-{ID}.scope: systemd-oomd killed 12 process(es) in this unit."
    (kill,) = told([OOMD, about])["userspaceKills"]
    assert (kill["basis"], kill["processes"]) == ("memoryPressure", 12)


def test_one_kill_in_two_logs_counts_once(tmp_path, capsys):
    for name in ("syslog", "messages"):
        (tmp_path / name).write_text(OOMD + "\n")
    assert main(["autopsy", str(tmp_path / "syslog"), str(tmp_path / "messages"), "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["userspaceKills"]) == 1


def test_a_process_that_the_kernel_reports_is_not_counted_a_second_time(told):
    report = [f"{HEADER} kernel: [ 1.0] {line}" for line in machine()]
    (victim,) = told(report)["kills"][0]["victims"]
    kill = f'{HEADER} earlyoom[9]: sending SIGTERM to process {victim["pid"]} uid 0 "java": badness 9, VmRSS 1 MiB'
    found = told([kill, *report])
    assert (len(found["kills"]), len(found["userspaceKills"])) == (1, 0)
    other = kill.replace(f"process {victim['pid']} ", "process 99 ")
    found = told([other, *report])
    assert (len(found["kills"]), len(found["userspaceKills"])) == (1, 1)
    said = told([other, *report], output="text").splitlines()[0]
    assert said.startswith("Not the kernel: 1 kill by earlyoom. Also 1 OOM kill by the kernel")


def test_the_pod_of_a_userspace_kill_is_named_and_its_container_was_not_oom_killed(told, tmp_path):
    ended = {"exitCode": 137, "reason": "Error", "containerID": f"containerd://{ID}"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "db-0", "namespace": "shop", "uid": UID},
        "spec": {"containers": [{"name": "app", "image": "x"}], "nodeName": "worker-1"},
        "status": {"containerStatuses": [{"name": "app", "restartCount": 1, "lastState": {"terminated": ended}}]},
    }
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    found = told([OOMD], "-f", str(tmp_path / "pod.json"))
    (kill,) = found["userspaceKills"]
    assert (kill["pod"], kill["container"]) == ("shop/db-0", "app")
    (ended,) = found["terminations"]
    assert (ended["cause"], ended["userspaceKill"]) == ("UserspaceKiller", 0)
    said = told([OOMD], "-f", str(tmp_path / "pod.json"), output="wide")
    assert "shop/db-0, container app: killed by systemd-oomd, not by the kernel: see above" in said


def test_every_output_has_userspace_kills_and_failures(told):
    lines = [OOMD, "java.lang.OutOfMemoryError: Java heap space"]
    rows = list(csv.DictReader(io.StringIO(told(lines, output="csv"))))
    assert [(row["scope"], row["reason"]) for row in rows] == [("systemd-oomd", "memoryPressure")]
    assert [len(json.loads(line)["userspaceKills"]) for line in told(lines, output="jsonl").splitlines()] == [1, 0]
    said = told(lines, output="markdown")
    assert "Not the kernel: systemd-oomd" in said
    assert "## Programs' own errors" in said


def test_a_userspace_kill_deep_in_a_long_log_is_found(told):
    other = f"{HEADER} app[1]: took 12 ms, memory is fine, no OOM\n" * 4_000
    found = told(other + "\n".join((*EARLYOOM, *TALOS, OOMD)) + "\n" + other)
    assert [kill["killer"] for kill in found["userspaceKills"]] == ["earlyoom", "talos", "systemd-oomd"]
    assert found["userspaceKills"][0]["memoryAvailableBytes"] == 374 << 20


@pytest.mark.parametrize("name", KILLS)
def test_in_a_long_log_a_kill_has_a_mark_unless_its_words_are_rare(name):
    lines, _ = KILLS[name]
    text = "\n".join(lines).encode()
    is_marked = any(next_mark(text, mark, 0) >= 0 for mark in (*MARKS, *NOTICE_MARKS))
    assert is_marked is (name not in NEAR_THE_BEGINNING)


def test_quoted_lines_with_iso_times_have_their_host(told):
    lines = [f"> {line.replace('Nov 18 09:00:01', '2026-11-18T09:00:01+0100')}" for line in EARLYOOM]
    (kill,) = told(lines)["userspaceKills"]
    assert (kill["host"], kill["at"], kill["basis"]) == ("worker-1", "2026-11-18T09:00:01+0100", "lowMemory")


def test_hosts_do_not_mix(told):
    other = [line.replace("worker-1", "worker-2").replace("4711", "99").replace("374", "200") for line in EARLYOOM]
    mixed = [line for pair in zip(EARLYOOM, other, strict=True) for line in pair]
    found = told(mixed)["userspaceKills"]
    assert [(kill["host"], kill["pid"], kill["memoryAvailableBytes"] >> 20) for kill in found] == [
        ("worker-1", 4711, 374),
        ("worker-2", 99, 200),
    ]


@pytest.mark.parametrize("result_at", ["15:19:29", "15:25:00"])
def test_a_unit_that_systemd_oomd_killed_is_not_the_kernels_victim_as_well(capsys, tmp_path, result_at):
    log = tmp_path / "journal"
    log.write_text(
        "Jan  5 15:19:27 box systemd-oomd[812]: Killed /user.slice/app-firefox.scope due to memory pressure for "
        "/user.slice being 74.12% > 50.00% for > 20s with reclaim activity\n"
        "Jan  5 15:19:28 box systemd[2211]: app-firefox.scope: systemd-oomd killed 214 process(es) in this unit.\n"
        f"Jan  5 {result_at} box systemd[2211]: app-firefox.scope: Failed with result 'oom-kill'.\n"
    )
    assert main(["autopsy", str(log)]) == 0
    out = capsys.readouterr()[0]
    is_another = result_at == "15:25:00"
    assert ("the kernel OOM-killed a process of app-firefox.scope" in out) is is_another
    assert out.startswith("Not the kernel: systemd-oomd killed everything in") is not is_another
    assert ("Run next:" in out) is is_another


@pytest.mark.parametrize(
    "line",
    [
        '"Killed /user.slice/... due to memory pressure" is logged when a cgroup is killed.',
        "Killed /user.slice/app.scope due to memory pressure is what it then says",
        "Marked /user.slice/app.scope for killing due to memory used, the manual explains",
    ],
)
def test_a_manual_that_quotes_systemd_oomd_tells_of_no_kill(told, line):
    assert not told([line])["userspaceKills"]
