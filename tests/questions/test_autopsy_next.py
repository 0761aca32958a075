"""``podqos autopsy`` says what was read and, where that is not enough, the exact command to run next."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import sys

import pytest
import yaml

from cli.test_autopsy_kubelet import DB, EVENTS, LOW, NODE, WEB, as_list, event, pod
from deaths import parsed
from kernel.oom_logs import CARRIERS, cgroup, killed, machine
from podqos.cli.main import main
from podqos.logs.said import NodeSign, SignKind, WhatWasRead
from podqos.questions.autopsy_next import next_steps
from podqos.questions.autopsy_words import noticed

ROWS = [(7, 1000, 200_000, 100, 0, 100, "python3"), (8, 1000, 100_000, 100, 0, 100, "sh")]
OF_THE_KILL = ("oom-kill:", "Killed process", "oom_reaper")
UNFINISHED = [line for line in cgroup(ROWS, 7, "python3") if not any(word in line for word in OF_THE_KILL)]
ERROR_137 = {
    "name": "side",
    "state": {"running": {}},
    "lastState": {"terminated": {"exitCode": 137, "reason": "Error", "finishedAt": "2026-11-16T10:29:00Z"}},
}
DEBUG = "kubectl debug node/node-1 -it --image=busybox --profile=sysadmin -- chroot /host journalctl"
EARLIER = "--since '2026-11-16 09:55:02 UTC' --until '2026-11-16 10:02:02 UTC' -o short-iso --no-pager"
WINTER = "--since '2026-01-05 15:14:27 UTC' --until '2026-01-05 15:21:27 UTC' -o short-iso --no-pager"
WINDOW = "--since '2026-11-16 10:24:00 UTC' --until '2026-11-16 10:31:00 UTC' -o short-iso --no-pager"


def syslog(lines: list[str]) -> str:
    return "".join(f"{CARRIERS['syslog-iso'](line)}\n" for line in lines)


def objects(*items: dict) -> str:
    return yaml.safe_dump(as_list(*items))


def autopsy(capsys, *arguments: object) -> tuple[int, str, str]:
    code = main(["autopsy", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def answered(capsys, tmp_path, monkeypatch):
    """Return what is answered to a text, as values."""
    monkeypatch.chdir(tmp_path)

    def answer(text: str, *more: str) -> dict:
        (tmp_path / "given").write_text(text)
        code, out, err = autopsy(capsys, "given", *more, "-o", "json")
        assert (code, err) == (0, "")
        return parsed(out)

    return answer


CASES = [
    pytest.param(
        objects(DB),
        [
            "podqos autopsy -n shop db-0",
            f"{DEBUG} -k {WINDOW} | podqos autopsy - given",
        ],
        id="oom-killed-without-a-kernel-log",
    ),
    pytest.param(
        objects(pod("db-0", "u", {"containerStatuses": [ERROR_137]})),
        [
            "podqos autopsy -n shop db-0",
            "kubectl logs -n shop db-0 -c side --previous --tail=50",
            f"{DEBUG} -k {WINDOW} | podqos autopsy - given",
        ],
        id="137-without-evidence",
    ),
    pytest.param(
        objects(WEB),
        [
            "kubectl get pods -A --field-selector spec.nodeName=node-1 -o json | podqos autopsy - given",
            f"{DEBUG} -u kubelet {EARLIER} | podqos autopsy - given",
        ],
        id="evicted-with-its-node",
    ),
    pytest.param(
        objects(event("Evicted", LOW, {"kind": "Pod", "namespace": "shop", "name": "web-0"}, source={})),
        ["kubectl get pods,nodes,events -A -o json | podqos autopsy - given"],
        id="evicted-without-a-node",
    ),
    pytest.param(
        objects(EVENTS[1]),
        [f"{DEBUG} -k {EARLIER} | podqos autopsy - given"],
        id="system-oom-event",
    ),
    pytest.param(
        syslog(cgroup(ROWS, 7, "python3")),
        ["kubectl get pods,nodes -A -o json | podqos autopsy - given"],
        id="pod-unknown",
    ),
    pytest.param(
        syslog(UNFINISHED),
        [
            f"{DEBUG} -k {WINTER} | podqos autopsy -",
            "kubectl get pods,nodes -A -o json | podqos autopsy - given",
        ],
        id="no-victim",
    ),
    pytest.param(
        syslog([killed()]),
        [
            f"journalctl -k {WINTER} | podqos autopsy -",
            f"{DEBUG} -k {WINTER} | podqos autopsy -",
        ],
        id="table-missing",
    ),
    pytest.param(
        "[    1.000000] all is well\n",
        [
            "kubectl get pods,nodes,events -A -o json | podqos autopsy -",
            "journalctl -k -b -1 -o short-iso --no-pager | podqos autopsy -",
        ],
        id="log-with-nothing-in-it",
    ),
    pytest.param(
        "",
        ["kubectl get pods,nodes,events -A -o json | podqos autopsy -", "sudo dmesg | podqos autopsy -"],
        id="empty",
    ),
    pytest.param(
        "# Shopping list\n\n- eggs\n",
        ["kubectl get pods,nodes,events -A -o json | podqos autopsy -", "sudo dmesg | podqos autopsy -"],
        id="not-a-log",
    ),
    pytest.param(
        objects(NODE | {"status": {}}, pod("db-0", "u", {}), pod("db-1", "v", {})),
        [
            "kubectl get pods,nodes,events -A -o json | podqos autopsy -",
            f"{DEBUG} -k -o short-iso --no-pager | podqos autopsy - given",
        ],
        id="objects-without-a-log",
    ),
    pytest.param(
        "NAMESPACE   NAME    READY   STATUS    RESTARTS   AGE\nshop        web-0   0/1     Evicted   0          2d\n",
        ["kubectl get pod -n shop web-0 -o yaml | podqos autopsy -"],
        id="evicted-in-a-table",
    ),
    pytest.param(
        "LAST SEEN   TYPE     REASON         OBJECT          MESSAGE\n"
        "5m          Normal   NodeNotReady   node/worker-3   Node worker-3 status is now: NodeNotReady\n",
        ["kubectl describe node worker-3 | podqos autopsy -"],
        id="node-not-ready",
    ),
    pytest.param(syslog(machine()), [], id="complete"),
]


@pytest.mark.parametrize(("text", "commands"), CASES)
def test_an_incomplete_answer_has_the_exact_next_commands(answered, text, commands):
    steps = answered(text)["nextSteps"]
    assert [step["command"] for step in steps] == commands
    assert all(("warning" in step) == step["command"].startswith("kubectl debug") for step in steps)


def test_a_command_that_creates_a_pod_says_so_and_how_to_delete_it(capsys, tmp_path):
    (tmp_path / "pod.yaml").write_text(objects(DB))
    _, out, _ = autopsy(capsys, tmp_path / "pod.yaml")
    warning = out.partition("kubectl debug")[2]
    assert "creates a privileged pod on node-1" in warning
    assert "kubectl delete pod node-debugger-node-1-" in warning


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (
            syslog([killed()]),
            [
                "run it on node-1: the kernel log there may have the rest of the report",
                "the kernel log of node-1 may have the rest of the report",
            ],
        ),
        (
            objects(pod("db-0", "u", {})),
            [
                "reads status, Events and node logs from the live cluster, and changes nothing",
                "the kernel log of node-1 shows whether the kernel killed anything",
            ],
        ),
    ],
    ids=["a-host-that-may-be-a-node", "nothing-died"],
)
def test_the_reason_of_a_step_fits_what_is_known(capsys, tmp_path, text, reasons):
    (tmp_path / "given").write_text(text)
    out = autopsy(capsys, tmp_path / "given")[1]
    said = [line[6:] for line in out.splitlines() if line.startswith("    - ") and "This creates" not in line]
    assert said == reasons


def test_the_pod_that_kubectl_debug_left_behind_is_named_with_its_deletion(answered):
    made = "Creating debugging pod node-debugger-worker-3-x7k2p with container debugger on node worker-3.\r\n"
    answer = answered(made + "\n".join(UNFINISHED))
    commands = [step["command"] for step in answer["nextSteps"]]
    assert commands[0].startswith("kubectl debug node/worker-3 ")
    assert commands[-1] == "kubectl delete pod node-debugger-worker-3-x7k2p"


def test_the_next_command_completes_the_answer(answered, monkeypatch, capsys):
    """What kubectl debug prints, piped into the podqos that the command ends with, leaves only its pod to delete."""
    step = next(
        step for step in answered(objects(NODE, DB))["nextSteps"] if step["command"].startswith("kubectl debug")
    )
    arguments = shlex.split(step["command"].partition("| podqos autopsy ")[2])
    made = "Creating debugging pod node-debugger-node-1-x7k2p with container debugger on node node-1.\n"
    log = "".join(f"2026-11-16T10:28:59+0000 node-1 kernel: {line}\r\n" for line in cgroup(ROWS, 7, "python3"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((made + log).encode())))
    _, out, _ = autopsy(capsys, *arguments, "-o", "json")
    answer = parsed(out)
    assert [(kill["pod"], kill["followsRule"]) for kill in answer["kills"]] == [("shop/db-0", True)]
    assert [ended["cause"] for ended in answer["terminations"]] == ["Kernel"]
    assert [step["command"] for step in answer["nextSteps"]] == ["kubectl delete pod node-debugger-node-1-x7k2p"]


@pytest.mark.parametrize(
    "said",
    [
        "-- No entries --",
        "No journal files were found.",
        "chroot: can't execute 'journalctl': No such file or directory",
        "chroot: failed to run command ‘journalctl’: No such file or directory",
        "bash: journalctl: command not found",
    ],
)
def test_a_node_without_a_journal_is_asked_for_its_ring_buffer(answered, said):
    made = "Creating debugging pod node-debugger-node-1-x7k2p with container debugger on node node-1.\n"
    commands = [step["command"] for step in answered(f"{made}{said}\n")["nextSteps"]]
    assert "kubectl debug node/node-1 -it --image=busybox --profile=sysadmin -- dmesg | podqos autopsy -" in commands


WITHOUT_JOURNAL = {
    "talos": "node-1: kern: warning: [2026-01-05T15:19:27.708440Z]: {}",
    "talos without a host": "kern: warning: [2026-01-05T15:19:27.708440123Z]: {}",
    "openwrt": "Mon Jan  5 15:19:27 2026 kern.warn kernel: {}",
}


@pytest.mark.parametrize(
    ("carrier", "step"),
    [
        ("talos", "talosctl dmesg | podqos autopsy -\n    - add -n and the address of node-1: the kernel log there"),
        ("talos without a host", "talosctl dmesg | podqos autopsy -\n    - add -n and the address of the node: the"),
        ("openwrt", "sudo dmesg | podqos autopsy -\n    - run it on that machine: the kernel log there"),
    ],
)
def test_a_system_without_a_journal_is_known_by_its_log(capsys, tmp_path, carrier, step):
    asked = "x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    (tmp_path / "log").write_text(WITHOUT_JOURNAL[carrier].format(asked) + "\n")
    _, out, _ = autopsy(capsys, tmp_path / "log")
    assert f"  {step}" in out
    assert "journalctl" not in out


def test_what_only_begins_like_an_address_is_in_no_command():
    def command(host: str) -> str:
        death = noticed(NodeSign(SignKind.SYSTEM_OOM, node=host))
        return next_steps([death], (), (), WhatWasRead(is_talos=True), others=False)[0].command

    assert command("fe80::1%$(reboot)") == command("10.0.0.5; reboot") == command("")
    assert command("fe80::1").startswith("talosctl -n fe80::1 dmesg")


def test_talos_is_asked_at_the_address_that_its_log_names(capsys, tmp_path):
    asked = "x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    (tmp_path / "log").write_text(WITHOUT_JOURNAL["talos"].format(asked).replace("node-1", "10.0.0.5") + "\n")
    _, out, _ = autopsy(capsys, tmp_path / "log")
    assert "  talosctl -n 10.0.0.5 dmesg | podqos autopsy -\n    - the kernel log there" in out


@pytest.mark.parametrize(("namespace", "command"), [("shop", "podqos autopsy -n shop"), ("bank", "podqos autopsy -A")])
def test_several_pods_are_asked_for_at_once(answered, namespace, command):
    other = json.loads(json.dumps(DB)) | {"metadata": {"name": "db-1", "namespace": namespace, "uid": "u-2"}}
    steps = answered(objects(DB, other))["nextSteps"]
    assert steps[0]["command"] == command


def test_the_latest_of_several_deaths_is_looked_up_first(answered):
    later = json.loads(json.dumps(DB).replace("node-1", "node-2").replace("10:29:00", "11:29:00"))
    later |= {"metadata": {"name": "a", "namespace": "shop", "uid": "u-2"}}
    steps = [step["command"] for step in answered(objects(later, DB))["nextSteps"]]
    assert [command[:26] for command in steps[1:]] == ["kubectl debug node/node-2 ", "kubectl debug node/node-1 "]


def test_the_context_that_was_named_is_that_of_the_next_command(answered, tmp_path):
    (tmp_path / "it's.yaml").write_text(objects(DB))
    commands = [step["command"] for step in answered("", "-f", "it's.yaml")["nextSteps"]]
    assert shlex.split(commands[-1])[-1] == "it's.yaml"


@pytest.mark.parametrize("host", ["x;rm -rf ~", "$(reboot)", "a b", "`id`", "-oProxyCommand=x", "../../x", "x" * 300])
def test_a_name_of_a_log_never_becomes_a_command(answered, host):
    hostile = json.loads(json.dumps(DB).replace("node-1", host).replace("db-0", host).replace('"side"', '"a;b"'))
    for step in answered(objects(hostile))["nextSteps"]:
        assert host not in step["command"]
        assert "a;b" not in step["command"]
    line = json.dumps({"_HOSTNAME": host, "MESSAGE": killed()})
    assert all(host not in step["command"] for step in answered(line)["nextSteps"])


@pytest.mark.parametrize(
    ("carrier", "window"),
    [
        ("dmesg-iso", " --since '2026-01-05 15:14:27 UTC' --until '2026-01-05 15:21:27 UTC'"),
        ("journal-json", " --since '2026-01-05 15:14:27 UTC' --until '2026-01-05 15:21:27 UTC'"),
        # The machine's own time, which is how journalctl there reads it.
        ("dmesg-T", " --since '2026-01-05 15:14:27' --until '2026-01-05 15:21:27'"),
        ("syslog", ""),  # without a year
        ("dmesg", ""),  # since the boot
    ],
)
def test_a_time_is_given_as_journalctl_reads_it(answered, carrier, window):
    step = answered(CARRIERS[carrier](killed()))["nextSteps"][0]
    assert step["command"].startswith(f"journalctl -k{window} -o short-iso ")


def test_a_zone_of_its_own_is_converted(answered):
    line = f"2026-01-05T15:19:27.708440+05:30 node-1 kernel: {killed()}"
    assert "--since '2026-01-05 09:44:27 UTC'" in answered(line)["nextSteps"][0]["command"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (objects(DB), "0 kernel messages and 1 pod."),
        (objects(NODE, WEB, DB, *EVENTS), "0 kernel messages, 2 pods, 1 node and 3 events."),
        (syslog(machine()), "Read 15 lines: 15 kernel messages and 1 OOM report."),
        ("", "Read 0 lines."),
        ("a\nb", "Read 2 lines: 0 kernel messages."),
        (syslog(machine()).replace("\n", "\r"), "Read 15 lines: 15 kernel messages and 1 OOM report."),
    ],
)
def test_what_was_read_is_always_said(capsys, tmp_path, text, said):
    (tmp_path / "given").write_bytes(text.encode())
    _, out, _ = autopsy(capsys, tmp_path / "given")
    assert said in out
    _, out, _ = autopsy(capsys, tmp_path / "given", "-o", "markdown")
    assert said in out


@pytest.mark.parametrize("carrier", [name for name in CARRIERS if name not in {"journal-json-bytes", "journal-export"}])
def test_a_report_is_never_said_to_be_read_from_no_kernel_message(answered, carrier):
    read = answered("\n".join(map(CARRIERS[carrier], machine())))["read"]
    assert read["oomReports"] == 1
    assert read["lines"] == len(machine())


def test_without_arguments_it_explains_what_to_give(capsys):
    code, out, err = autopsy(capsys)
    assert (code, out) == (2, "")
    assert "kubectl get pods,nodes,events -A -o json | podqos autopsy -" in err
    assert "no log and no pod given" in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (syslog(machine()), 1),
        (objects(DB), 1),
        (objects(WEB), 1),
        (objects(EVENTS[1]), 1),
        ("[    1.0] well\n", 0),
        ("", 0),
    ],
)
def test_scripts_can_ask_for_an_exit_code(capsys, tmp_path, text, code):
    (tmp_path / "given").write_text(text)
    assert autopsy(capsys, tmp_path / "given", "--exit-code")[0] == code
    assert autopsy(capsys, tmp_path / "given")[0] == 0


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG picture, not a log (copy the log as text"),
        (b"%PDF-1.7", "a PDF, not a log (pdftotext"),
        (b"\x7fELF\x02", "a program or a core dump"),
        (b"JAVA PROFILE 1.0.2", "a Java heap dump"),
        (gzip.compress(b"\x89PNG\r\n\x1a\n", mtime=0), "a PNG picture, not a log"),
        (b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml", "an Office document, not a log"),
        (b"\0" * 257 + b"ustar", "a tar archive, not a log (tar -xOf"),
        (bytes(range(256)) * 4, "binary data, not a log (give the kernel log"),
        (b"\xfd7zXZ\0", "compressed with xz, not a log (xz -dc"),
    ],
)
def test_a_file_that_is_not_a_log_is_named_for_what_it_is_also_in_a_pipe(capsys, tmp_path, monkeypatch, head, said):
    (tmp_path / "given").write_bytes(head + b"\0" * 99)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(head + b"\0" * 99)))
    for given in (tmp_path / "given", "-"):
        code, out, err = autopsy(capsys, given)
        assert (code, out) == (2, "")
        assert said in err


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("", "Nothing to explain: the input is empty."),
        (
            "eggs\n",
            "This does not look like a kernel or kubelet log, and has no Kubernetes objects: nothing to explain.",
        ),
        ("\0" * 99, "This is binary data, not a log, and has no Kubernetes objects: nothing to explain."),
        (
            objects(EVENTS[1]),
            (
                "The machine ran out of memory, or a cgroup did (kubelets before 1.21 report both as SystemOOM): "
                "python3 (pid 7) was killed on node-1. The kernel's report is not in the log."
            ),
        ),
        (
            objects(pod("db-0", "u", {"containerStatuses": [ERROR_137]})),
            (
                "shop/db-0, container side: killed with SIGKILL, sender unknown; its status does not say OOMKilled "
                "(Error 137)."
            ),
        ),
        (
            objects(DB, pod("db-1", "v", {"containerStatuses": DB["status"]["containerStatuses"]})),
            "2 OOM kills, without a report in the logs.",
        ),
    ],
)
def test_the_headline_says_what_is_below_it(capsys, tmp_path, text, headline):
    (tmp_path / "given").write_text(text)
    assert autopsy(capsys, tmp_path / "given")[1].splitlines()[0] == headline


def test_prose_about_the_oom_killer_is_not_counted_as_kernel_messages(answered):
    quoted = 'The kernel prints "invoked oom-killer", then Killed process 1234 (foo) lines.'
    assert answered(f"{quoted}\nThe memory cgroup was full.\n")["read"].get("kernelMessages", 0) == 0
    assert answered("Killed process 1234 (foo)\n")["read"]["kernelMessages"] == 1


def test_after_a_panic_there_is_no_rest_of_the_report_to_look_for(answered):
    lines = [line for line in machine(ROWS) if not any(word in line for word in OF_THE_KILL)]
    panic = "Kernel panic - not syncing: Out of memory: compulsory panic_on_oom is enabled"
    answer = answered(syslog([*lines, panic]))
    assert (answer["kills"][0]["reason"], answer["nextSteps"]) == ("Panic", [])


def test_a_machine_is_called_as_it_calls_itself_and_its_node_in_small_letters(answered, capsys):
    answer = answered(f"Jan  5 15:19:27 VM-7 kernel: {killed()}\n")
    on_host, of_node = answer["nextSteps"]
    assert (on_host["node"], of_node["node"]) == ("VM-7", "vm-7")
    assert "debug node/vm-7 " in of_node["command"]
    assert [each["why"].partition(":")[0] for each in (on_host, of_node)] == [
        "run it on VM-7",
        "the kernel log of vm-7 may have the rest of the report",
    ]


def test_a_time_that_is_not_known_has_no_label(capsys, tmp_path):
    log = tmp_path / "given"
    log.write_text("\n".join(machine(ROWS)) + "\n")
    code, out, _ = autopsy(capsys, log)
    assert code == 0
    assert "  kernel    6.1\n" in out
    assert "  at " not in out
