"""``podqos autopsy`` on words of programs about processes that were killed with SIGKILL."""

from __future__ import annotations

import pytest

from kernel.oom_logs import ROWS, cgroup

HEADER = "Nov 18 09:00:01 worker-1"
PARENTS = [
    'time="2026-11-18T09:00:01Z" level=error msg="worker exited with code 137" id=3',
    '{"level":"error","message":"worker exited with code 137"}',
    "=   YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
    "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.",
    "A jest worker process (pid=4711) was terminated by another process: signal=SIGKILL, exitCode=null.",
    "fish: Job 1, './serve' terminated by signal SIGKILL (Forced quit)",
    "The build failed because the process exited too early. This probably means the system ran out of memory or so",
    "reaped #<Process::Status: pid 4711 SIGKILL (signal 9)> worker=2",
    "make: *** [Makefile:3: all] Killed",
    "g++: internal compiler error: Killed (program cc1plus)",
    "Uncaught signal: 9, pid=1, tid=1, fault_addr=0.",
    "Container terminated on signal 9.",
    "collect2: fatal error: ld terminated with signal 9 [Killed]",
    "Build failed running assets.update: Subprocess return code: 137",
    "SolidQueue-0.3.3 Replaced terminated Worker  pid: 19, signaled: true, stopsig: nil, termsig: 9",
    "{local_task_job.py:1} INFO - Task exited with return code -9",
    "worker process 12 exited on signal 9",
    "[NOTICE] child 4711 exited on signal 9 (SIGKILL) after 12.5 seconds from start",
    "DAMN ! worker 2 (pid: 4711) died, killed by signal 9 :( trying respawn ...",
    "INFO exited: web (terminated by SIGKILL; not expected)",
    "subprocess.CalledProcessError: Command '['make', 'all']' died with <Signals.SIGKILL: 9>.",
    "subprocess.CalledProcessError: Command 'make' returned non-zero exit status 137.",
    "subprocess.CalledProcessError: Command 'make' returned non-zero exit status -9.",
    "E1118 09:00:01 failed (exitcode: -9) local_rank: 0 (pid: 4711) of binary: /usr/bin/python3",
    "  exitcode  : -9 (pid: 4711)",
    "  traceback : Signal 9 (SIGKILL) received by PID 4711",
    "The exit codes of the workers are {SIGKILL(-9)}",
    "> Process 'Gradle Test Executor 3' finished with non-zero exit value 137",
    "npm ERR! signal SIGKILL",
    'error Command failed with signal "SIGKILL".',
    "Error: Command was killed with SIGKILL (Forced termination): next build",
    "Error: Command failed with exit code 137: npm run build",
    '"task: non-zero exit (137)"',
    "Command terminated by signal 9",
    'level=warning msg="container ended" name=web exitCode=137',
    'level=warning msg="container ended" exit_code=137 name=web',
    "Program killed by signal: 9",
    "ProcessExitedException: Worker 3 terminated due to signal SIGKILL",
    "pod2 exited: signal: 9",
    "[pm2] App [api:0] exited with code [0] via signal [SIGKILL]",
    "PM2        | App [api:0] exited with code [0] via signal [SIGKILL]",
    "Container web exited with status 137",
    "app exited with exit status: 137",
    "Process terminated with status 137 after 12s",
    "<Process name='Process-1' pid=12 parent=1 stopped exitcode=-SIGKILL>",
    "Elixir port exit_status:137",
    "application stopped, exit_status=137 node=a",
    "dotnet exited with code 137; restarting",
    "Worker process received SIGKILL",
    "runner: job exited with value 137",
    "executor lost: Container exited with a non-zero exit code 137. Error file: prelaunch.err.",
    "ExecutorLostFailure (executor 3 exited) Reason: Container from a bad node: c_1. Exit status: 137. Diagnostics: x",
    "Container killed on request. Exit code is 137",
    "exec failed: exit status 137",
    "Process finished with exit code 137 (interrupted by signal 9:SIGKILL)",
]
"""One process says of another how it ended: who sent the signal it does not know."""
NO_CLAIMS = [
    "The process exited too early.",
    "A DataLoader worker is killed by signal: Killed if memory is short",
    "if (status.signaled && status.termsig == 9)",
    "make: *** [Makefile:3: all] Error 2",
    "error: exit status 13",
    "zsh: killed",
    "Killed: 90",
    "KILLED BY SIGNAL: 15 (Terminated)",
    "the previous instance of the container was OOMKilled",
    'echo "internal compiler error: Killed (program cc1plus)"',
    '    "its process was killed with SIGKILL; nothing says by whom",',
    "  Exit Code:    137",
    "      exitCode: 137",
    '      "exitCode": 137,',
    "exit_code=137",
    "  local exit_code=137",
    'if [ $? -eq 137 ]; then echo "exited with code 137"; fi',
    '    raise RuntimeError("process exited with code 137")',
    "log.error('killed by signal 9')",
    "assert proc.exitcode == -9",
    "expect(exitCode).toBe(137)",
    "The container was terminated with exit code 137, which means that it received SIGKILL.",
    "If a container exited with code 137:",
    "Exit code 137 means that the container was killed by SIGKILL.",
    "remaining processes are killed by SIGKILL.",
    "When the process is killed by signal 9, the shell reports 137",
    "# exited with code 137",
    "// terminated by signal 9",
    " * exited with status 137",
    "kill -9 4711",
    "SIGKILL cannot be caught.",
    "it exits with status 137 rather than 124",
    "reason: killed with SIGKILL and restarted",
    "Fixed a bug where a worker that exited with code 137 was restarted twice.",
    'const message = "exited with code 137";',
    'make(name="x", exit_code=137)',
    "    exit_code=137,",
    "Container exited with code 137 because of OOM",
    "the job failed with exit code 1370",
    "exited with code 13",
    "status 137 items",
    "docs say exited with code 137 is normal",
    "`exited with code 137`",
    '  "exited with code 137",',
    'fmt.Errorf("command terminated with exit code %d", 137)',
]
"""Source code, settings, documentation, and parts of statuses, which are read as such."""
UNIT = f"{HEADER} systemd[1]: web.service: Main process exited, code=killed, status=9/KILL"


@pytest.mark.parametrize("line", PARENTS)
def test_a_process_that_ended_by_sigkill_has_no_known_sender(told, line):
    for before in ("", f"{HEADER} app[12]: ", "2026-11-18T09:00:01.5Z stderr F "):
        found = told(before + line)
        (failure,) = found["programFailures"]
        assert failure["kind"] == "ProcessKilled"
        assert not any(found[kind] for kind in ("kills", "evictions", "terminations", "userspaceKills"))
        assert found["nextSteps"]
    assert told(line, output="text").startswith(
        "A process was killed with SIGKILL. The kernel log says whether that was an OOM kill."
    )


@pytest.mark.parametrize("line", NO_CLAIMS)
def test_source_code_and_prose_about_sigkill_claim_nothing(told, line):
    assert not told(line)["programFailures"]


def test_systemd_names_the_unit_whose_process_was_killed(told):
    (failure,) = told(UNIT)["programFailures"]
    assert (failure["kind"], failure["host"]) == ("UnitKilled", "worker-1")
    assert "web.service" in failure["message"]
    (failure,) = told("   Main PID: 4711 (code=killed, signal=KILL)")["programFailures"]
    assert failure["kind"] == "UnitKilled"


def test_a_unit_that_systemd_killed_because_it_did_not_stop_is_no_open_question(told):
    killed = f"{HEADER} systemd[1]: web.service: Killing process 4711 (java) with signal SIGKILL."
    assert not told(killed, UNIT)["programFailures"]
    assert told(killed.replace("web.", "db."), UNIT)["programFailures"]


def test_where_a_kill_is_known_its_parents_words_add_nothing(told):
    oom = f"{HEADER} systemd[1]: web.service: Failed with result 'oom-kill'."
    assert not told(UNIT, oom)["programFailures"]
    found = told(*cgroup(ROWS, 102, "java (main) [x]"), "make: *** [Makefile:3: all] Error 137")
    assert (len(found["kills"]), found["programFailures"]) == (1, [])


@pytest.mark.parametrize("line", ["signal: killed", "error: exit status 137"])
def test_a_line_that_says_nothing_else_is_a_claim(told, line):
    (failure,) = told(line)["programFailures"]
    assert failure["kind"] == "ProcessKilled"
    assert not told(f"expected {line} here")["programFailures"]


@pytest.mark.parametrize(
    "line",
    ["zsh: killed     python3 train.py --password=hunter2", "./run.sh: line 3:  4711 Killed: 9     ./serve -p hunter2"],
)
def test_what_a_shell_ran_is_not_repeated(told, line):
    (failure,) = told(line)["programFailures"]
    assert failure["kind"] == "ShellLostProcess"
    assert "hunter2" not in failure["message"]


def test_buildkit_says_of_a_step_that_it_was_oom_killed(told):
    line = '#12 ERROR: process "/bin/sh -c npm run build" did not complete successfully: cannot allocate memory'
    (sign,) = told(line)["nodeEvents"]
    assert (sign["kind"], sign["unit"]) == ("UnitOOMKilled", "a BuildKit step")
