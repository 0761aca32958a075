"""``podqos autopsy`` on what people post: a line of a log in prose, a pager's cut lines, the words of a scheduler."""

from __future__ import annotations

import json

import pytest

from podqos.cli.main import main

CHOSEN = "Out of memory: Kill process 102 (java) score 990 or sacrifice child"
WORKLOAD = "/system.slice/work.slice"
SERVICE = f"{WORKLOAD}/a-service-of-a-rather-long-name.service"


@pytest.fixture
def told(tmp_path, capsys):
    """Return what the command answers, in words or as JSON."""

    def run(text: str, output: str = "text"):
        log = tmp_path / "pasted.txt"
        log.write_text(text)
        assert main(["autopsy", str(log), "-o", output]) == 0
        said = capsys.readouterr().out
        return json.loads(said) if output == "json" else said

    return run


# ---- the kernel's choice -------------------------------------------------------------------------------------------


def test_a_process_that_was_chosen_has_its_name_also_where_the_log_ends_before_the_kill(told):
    text = f"In the log is this line:\n\n{CHOSEN}\n\nWhat does that mean?\n"
    assert told(text).startswith("The machine ran out of memory: java (pid 102) was chosen; the log ends before")
    (kill,) = told(text, "json")["kills"]
    assert (kill["chosenPid"], kill["chosenName"], kill["victims"]) == (102, "java", [])


def test_a_parent_whose_child_was_killed_in_its_place_has_its_name(told):
    text = f"{CHOSEN}\nKilled process 103 (sh) total-vm:8000kB, anon-rss:4000kB, file-rss:96kB\n"
    assert "java (pid 102); it is a thread of the killed process, or its parent" in told(text)
    rows = "[ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name\n"
    rows += "".join(
        f"[  10{pid}]     0   10{pid}     2000     1000       4        0             0 java\n" for pid in (2, 3)
    )
    assert "java (pid 102); the kernel killed one of its children instead" in told(rows + text)


def test_a_name_with_a_colon_is_whole_behind_a_known_prefix(told):
    asked = "Nov 18 09:00:01 worker kernel: in:imjournal invoked oom-killer: gfp_mask=0x201da, order=0, oom_score_adj=0"
    (kill,) = told(f"{asked}\n", "json")["kills"]
    assert (kill["trigger"]["name"], kill["host"]) == ("in:imjournal", "worker")


# ---- other killers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["Killed", "Marked"])
@pytest.mark.parametrize("end", [">", "", " due", " due to mem", " for killing due t…"])
def test_systemd_oomds_kill_is_one_even_where_its_line_ends_before_it_says_why(told, verb, end):
    considered = "Nov 18 09:00:01 worker systemd-oomd[650]: Considered 9 cgroups for killing, top candidates were:"
    said = told(f"{considered}\nNov 18 09:00:01 worker systemd-oomd[650]: {verb} {SERVICE}{end}\n")
    assert said.startswith(
        "Not the kernel: systemd-oomd killed everything in …/a-service-of-a-rather-long-name.service"
    )
    assert "no kill is logged" not in said


def test_what_is_not_a_name_of_a_unit_is_not_called_one(told):
    said = told("The journal of that run:\n  scope: Failed with result 'oom-kill'; 16.0G memory peak.\n")
    assert said.startswith("The kernel OOM-killed a process of a systemd unit.")


@pytest.mark.parametrize(("second", "is_known"), [("01", True), ("02", True), ("09", False)])
def test_what_daemons_notice_at_the_time_of_a_kill_whose_cgroup_is_not_known_is_that_kill(told, second, is_known):
    kernel = "Nov 18 09:00:01 worker kernel: Memory cgroup out of memory: Killed process 102 (java) total-vm:8000kB"
    words = "A process of this unit has been killed by the OOM killer."
    noticed = f"Nov 18 09:00:{second} worker systemd[1]: work.service: {words}"
    said = told(f"{kernel}, anon-rss:4000kB, file-rss:96kB, shmem-rss:0kB\n{noticed}\n")
    assert ("a process of work.service: see above" in said) is is_known
    assert ("without a report in the logs" in said) is not is_known


@pytest.mark.parametrize("end", [f" for {WORKLOAD} be>", f" for {WORKLOAD[:-3]}>", " for", "…"])
def test_systemd_oomds_line_may_lack_its_end(told, end):
    line = f"Nov 18 09:00:01 worker systemd-oomd[7]: Killed {SERVICE} due to memory pressure{end}"
    units = f"Nov 18 09:00:01 worker systemd[1]: {SERVICE.rpartition('/')[2]}: systemd-oomd killed 2 process(es) in"
    (kill,) = told(f"{line}\n{units} this unit.\n", "json")["userspaceKills"]
    assert (kill["killer"], kill["basis"], kill["cgroup"]) == ("systemd-oomd", "memoryPressure", SERVICE)
    assert kill.get("pressureOf", "") == (WORKLOAD if end.endswith("be>") else "")
    assert kill["processes"] == 2


def test_a_unit_that_systemd_oomd_killed_has_its_whole_name(told):
    unit = SERVICE.rpartition("/")[2]
    text = f"Nov 18 09:00:01 worker systemd[1]: {unit}: systemd-oomd killed 2 process(es) in this unit.\n"
    out = told(text)
    assert out.startswith(f"Not the kernel: systemd-oomd killed {unit} (2 processes).")
    assert "logged    systemd-oomd killed 2 process(es) in this unit." in out


def test_a_journal_without_hosts_has_times(told):
    text = f"avril 16 21:08:50 systemd-oomd[93]: Killed {SERVICE} due to swap used (9) / total (10) being more than 80%"
    (kill,) = told(text, "json")["userspaceKills"]
    assert (kill["at"], kill.get("host")) == ("avril 16 21:08:50", None)


def test_a_number_of_processes_that_is_not_known_is_not_none(told):
    cgroup = '"cgroup": "/sys/fs/cgroup/kubepods/besteffort/pod11111111-2222-3333-4444-555555555555"'
    text = (
        f'[talos] Sending SIGKILL to cgroup {{"controller": "runtime.OOMController", {cgroup}}}\n'
        '[talos] victim processes: {"controller": "runtime.OOMController", "processes": ["pause"]}\n'
    )
    assert "0 processes" not in told(text)


# ---- Kubernetes ----------------------------------------------------------------------------------------------------


def test_the_start_of_an_evicted_pod_is_not_when_it_was_evicted(told):
    text = """Name:           web-1
Namespace:      shop
Node:           worker-1/
Start Time:     Sat, 21 Aug 2021 10:38:36 +0800
Status:         Failed
Reason:         Evicted
Message:        The node was low on resource: memory. Container web was using 1275700Ki, which exceeds its request of 0.
Containers:
  web:
    Image:      web
"""
    answer = told(text, "json")
    (eviction,) = answer["evictions"]
    assert "at" not in eviction
    assert not any("--since" in step["command"] for step in answer["nextSteps"])


def test_a_container_of_an_unknown_pod_that_an_unknown_sender_killed_has_a_next_step(told):
    text = """
"lastState": {
    "terminated": {
        "containerID": "docker://abababababababababababababababababababababababababababababababab",
        "exitCode": 137,
        "finishedAt": "2026-11-18T09:00:01Z",
        "reason": "Error"
    }
},
"""
    answer = told(text, "json")
    assert answer["terminations"]
    assert answer["nextSteps"]


def test_a_sentence_about_a_pod_without_a_name_begins_with_a_capital(told):
    assert told("> The node had condition: [MemoryPressure].\n").startswith("A pod was not admitted: ")


# ---- broken and joined lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("quote", ["", "> "])
@pytest.mark.parametrize("rest", ["(my app) score 948 or sacrifice child", "(my app) total-vm:8kB, anon-rss:4kB"])
def test_a_line_may_be_broken_before_the_name(told, quote, rest):
    verb = "Kill" if "score" in rest else "Killed"
    text = f"{quote}Dec 1 15:01:07 worker kernel: Out of memory: {verb} process 7\n{quote}{rest}\n\nIs that a lot?\n"
    (kill,) = told(text, "json")["kills"]
    assert (kill["scope"], kill["chosenPid"], kill["host"]) == ("machine", 7, "worker")
    assert (kill["chosenName"] or kill["victims"][0]["name"]) == "my app"


@pytest.mark.parametrize("time", ["", "[19735.008] "])
@pytest.mark.parametrize("prose", ["", "我的程序经常被杀死, 日志如下 ", "# dmesg | grep -i oom "])
def test_a_page_may_join_messages_into_one_paragraph(told, prose, time):
    killed = "Killed process 102, UID 27, (java) total-vm:47388kB, anon-rss:3744kB, file-rss:80kB"
    asked = (
        "httpd invoked oom-killer: gfp_mask=0x201da, order=0, oom_adj=0, oom_score_adj=0 httpd cpuset=/ mems_allowed=0"
    )
    stack = "Pid: 8911, comm: httpd Not tainted 2.6.32-279.1.1.el6.i686 #1"
    text = (
        f"{prose}{time}" + f" {time}".join((CHOSEN, killed, asked, stack)) + " Linux 内核根据应用程序的要求分配内存\n"
    )
    first, second = told(text, "json")["kills"]
    assert [(victim["pid"], victim["name"], victim["rssBytes"]) for victim in first["victims"]] == [
        (102, "java", 3824 * 1024)
    ]
    assert (first["scope"], second["scope"]) == ("machine", "unknown")
    assert (second["trigger"]["name"], second["trigger"]["pid"]) == ("httpd", 8911)


def test_the_one_kill_of_a_paragraph_is_found_after_the_machines_memory(told):
    zone = "free:680kB min:928kB low:1856kB high:2784kB active:236kB inactive:148kB present:901120kB pages_scanned:544"
    memory = f"Free pages: 14732kB Active:21 inactive:14 dirty:0 free:3683 slab:3741 DMA {zone} Normal {zone}"
    (kill,) = told(f"{memory} 5620 reserved pages Out of Memory: Killed process 24620 (java).\n", "json")["kills"]
    assert (kill["scope"], kill["victims"][0]["name"]) == ("machine", "java")


# ---- a ring buffer that begins in the stack ------------------------------------------------------------------------

STACKS = {
    "x86-64": (" dump_header+0x40/0x16c", " oom_kill_process+0x1b4/0x1b8", " out_of_memory+0x208/0x300"),
    "ARM": ("dump_header from oom_kill_process+0x23c/0x248", "oom_kill_process from out_of_memory+0x218/0x34c"),
    "older ARM": (
        "[<802249ec>] (dump_header) from [<80223d54>] (oom_kill_process+0x478/0x584)",
        "[<80223d54>] (oom_kill_process) from [<802243f4>] (out_of_memory+0x124/0x38c)",
    ),
}


@pytest.mark.parametrize("arch", STACKS)
@pytest.mark.parametrize(
    ("caller", "scope"), [("__alloc_pages_slowpath", "machine"), ("mem_cgroup_out_of_memory", "cgroup")]
)
def test_the_stack_of_the_oom_killer_is_that_of_an_oom(told, arch, caller, scope):
    called = "out_of_memory from " if arch == "ARM" else ""
    lines = ("Hardware name: BCM2711", *STACKS[arch], f" {called}{caller}+0x860/0x978")
    text = "".join(f"[  501.05{number}] {line}\n" for number, line in enumerate(lines))
    (kill,) = told(text, "json")["kills"]
    assert (kill["scope"], kill["reason"], kill["victims"]) == (scope, "NoVictim", [])


def test_the_stack_of_another_function_is_not_that_of_an_oom(told):
    text = (
        "[  501.05] dump_stack+0x40/0x16c\n[  501.05] oom_badness+0x1b4/0x1b8\n[  501.05] out_of_memory+0x208/0x300\n"
    )
    assert told(text, "json")["kills"] == []
