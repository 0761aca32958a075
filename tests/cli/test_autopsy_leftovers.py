"""``podqos autopsy`` on lines that say little: what they prove is said, and nothing more."""

from __future__ import annotations

import json

import pytest
import yaml

from cli.test_autopsy_kubelet import pod
from podqos.cli.main import main


def answer(capsys, tmp_path, text: str, *options: str) -> tuple[int, str]:
    path = tmp_path / "pasted"
    path.write_text(text)
    code = main(["autopsy", str(path), *options])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


def found(capsys, tmp_path, text: str) -> dict:
    return json.loads(answer(capsys, tmp_path, text, "-o", "json")[1])


@pytest.mark.parametrize(
    "line",
    [
        "Considered 3 cgroups for killing, top candidates were:",
        "Failed to kill any cgroup(s) under /user.slice based on pressure: No such process",
        "Failed to kill cgroup(s): Operation not permitted",
    ],
)
def test_systemd_oomd_that_killed_nothing_is_not_a_kill(capsys, tmp_path, line):
    code, out = answer(capsys, tmp_path, f"Nov 16 10:00:00 box systemd-oomd[700]: {line}\n", "--exit-code")
    assert code == 0
    assert out.startswith("No OOM kills and no evictions found.\n")
    assert "box: systemd-oomd considered killing a cgroup; no kill is logged" in out


def test_what_systemd_oomd_considered_before_a_kill_is_not_listed(capsys, tmp_path):
    log = (
        "Nov 16 10:00:00 box systemd-oomd[7]: Considered 3 cgroups for killing, top candidates were:\n"
        "Nov 16 10:00:00 box systemd-oomd[7]: Killed /a.slice/b.service due to memory pressure for /a.slice being "
        "71.22% > 60.00% for > 20s with reclaim activity\n"
    )
    value = found(capsys, tmp_path, log)
    assert len(value["userspaceKills"]) == 1
    assert "nodeEvents" not in value or value["nodeEvents"] == []


@pytest.mark.parametrize("reason", ["OOM Killed", "OOMKilled"])
def test_a_status_of_2014_says_that_a_container_was_oom_killed(capsys, tmp_path, reason):
    text = f"Name: web-0\nNamespace: shop\nContainers:\n  app:\n    Last State: Terminated\n      Reason: {reason}\n"
    (ended,) = found(capsys, tmp_path, f"{text}      Exit Code: 137\n")["terminations"]
    assert (ended["pod"], ended["cause"], ended["reason"]) == ("shop/web-0", "KernelUnreported", reason)


def test_an_event_about_a_cgroups_oom_names_the_pod(capsys, tmp_path):
    table = (
        "LAST SEEN   TYPE      REASON      OBJECT      MESSAGE\n5m          Warning   CgroupOOM   pod/web-0   killed\n"
    )
    code, out = answer(capsys, tmp_path, table, "--exit-code")
    assert (code, out.splitlines()[0]) == (
        1,
        "The kernel OOM-killed a process in web-0. The kernel's report is not in the log.",
    )


def test_a_table_with_restarts_says_that_their_reason_is_not_in_it(capsys, tmp_path):
    table = (
        "NAME    READY   STATUS             RESTARTS      AGE\n"
        "web-0   0/1     CrashLoopBackOff   12 (2m ago)   1h\n"
        "db-0    1/1     Running            0             2d\n"
    )
    (ended,) = found(capsys, tmp_path, table)["exits"]
    assert (ended["pod"], ended["cause"], ended["reason"], ended["restarts"]) == (
        "web-0",
        "Unknown",
        "CrashLoopBackOff",
        12,
    )
    code, out = answer(capsys, tmp_path, table, "--exit-code")
    assert code == 0
    assert "Containers not known to have been killed:\n  a container of web-0: keeps ending" in out


@pytest.mark.parametrize(("exit_code", "status"), [(143, 0), (137, 1)])
def test_a_container_that_was_only_asked_to_stop_was_not_killed(capsys, tmp_path, exit_code, status):
    ended = {"exitCode": exit_code, "reason": "Error", "finishedAt": "2026-11-16T09:59:00Z"}
    running = {"running": {"startedAt": "2026-11-16T10:00:00Z"}}
    statuses = [{"name": "app", "restartCount": 1, "state": running, "lastState": {"terminated": ended}}]
    web = pod("web-0", "u", {"phase": "Running", "containerStatuses": statuses})
    assert answer(capsys, tmp_path, yaml.safe_dump(web), "--exit-code")[0] == status


KILLED = (
    "Memory cgroup out of memory: Killed process 4242 (python3) total-vm:4000000kB, anon-rss:2000000kB, "
    "file-rss:100kB, shmem-rss:0kB, UID:0 pgtables:100kB oom_score_adj:0"
)
NPD = (
    "I1116 10:00:01.123456       1 log_monitor.go:160] New status generated: &{Source:kernel-monitor Events:[{Severity:"
    f"warn Timestamp:2026-11-16 10:00:00.1 +0000 UTC Reason:OOMKilling Message:{KILLED}}}] Conditions:[]}}\n"
)


@pytest.mark.parametrize("prefix", ["Nov 16 10:00:00 node-1 kernel: ", "[  100.100000] "])
def test_a_line_of_the_node_problem_detector_is_not_a_second_kill(capsys, tmp_path, prefix):
    (kill,) = found(capsys, tmp_path, f"{prefix}{KILLED}\n{NPD}")["kills"]
    assert kill["victims"][0]["pid"] == 4242
    assert not kill["at"].startswith("2026-")


def test_the_same_process_killed_in_two_boots_was_killed_twice(capsys, tmp_path):
    invoked = "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    log = "".join(f"[  {at}.100000] {text}\n" for at in (100, 200) for text in (invoked, KILLED))
    assert len(found(capsys, tmp_path, log)["kills"]) == 2


def test_an_event_beside_its_report_points_at_it(capsys, tmp_path):
    event = f"5m          Warning   OOMKilling   node/node-1     {KILLED}\n"
    _, out = answer(capsys, tmp_path, f"Nov 16 10:00:00 node-1 kernel: [100.1] {KILLED}\n{event}")
    assert out.count("was killed") == 1
    assert "node-1: the kernel OOM-killed python3 (pid 4242): see above" in out


@pytest.mark.parametrize(
    ("zone", "at"), [("UTC", "2026-11-16 10:00:00.708440Z"), ("CET", "2026-11-16 10:00:00.708440")]
)
def test_an_entry_of_journalctl_verbose_has_the_time_above_it(capsys, tmp_path, zone, at):
    head = f"Mon 2026-11-16 10:00:00.708440 {zone} [s=ab12;i=1;b=cd;m=1;t=1;x=1]\n"
    (kill,) = found(capsys, tmp_path, f"{head}    MESSAGE={KILLED}\n")["kills"]
    assert kill["at"] == at


def test_records_of_kmsg_may_hold_lines_of_syslog(capsys, tmp_path):
    invoked = "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    log = f"4,1234,100000000,-;Nov 16 10:00:00 node-1 kernel: [100.0] {invoked}\n"
    log += f"3,1235,100000001,-;Nov 16 10:00:00 node-1 kernel: [100.1] {KILLED}\n"
    (kill,) = found(capsys, tmp_path, log)["kills"]
    assert (kill["host"], kill["trigger"]["name"], kill["victims"][0]["name"]) == ("node-1", "python3", "python3")


@pytest.mark.parametrize(
    "said", ["Invoking oom killer: done", "trigger_kernel_oom: successfully triggered kernel OOM killer"]
)
def test_earlyoom_with_k_leaves_the_kill_to_the_kernel(capsys, tmp_path, said):
    log = f"Nov 16 10:00:00 box earlyoom[612]: {said}\n"
    log += "Nov 16 10:00:00 box kernel: kworker/0:1 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=-1\n"
    value = found(capsys, tmp_path, f"{log}Nov 16 10:00:00 box kernel: {KILLED.removeprefix('Memory cgroup o')}\n")
    assert [sign["kind"] for sign in value["nodeEvents"]] == ["EarlyoomTriggered"]
    assert value["userspaceKills"] == []


@pytest.mark.parametrize(
    ("end", "request_bytes"),
    [("request is 1Gi, has larger cons", 1 << 30), ("request is 1G", None), ("\nrequest is", None)],
)
def test_a_message_of_an_eviction_that_is_cut_says_what_the_container_used(capsys, tmp_path, end, request_bytes):
    low = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
    (eviction,) = found(capsys, tmp_path, f"Message:  {low}Container app was using 3Gi, {end}\n")["evictions"]
    assert eviction["threshold"] == 100 << 20
    (container,) = eviction["containers"]
    assert (container["name"], container["used"], container.get("request")) == ("app", 3 << 30, request_bytes)
