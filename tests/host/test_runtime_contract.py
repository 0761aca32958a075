"""What the node may expect of its runtime, asked of real processes."""

from __future__ import annotations

import contextlib
import time

import pytest

from host.machine import MI, needs_node
from host.runtime_stages import CANNOT_START_CODE, Stage, on_stage
from podqos.host.linux.procfs import Procfs
from podqos.host.runtimes.runtime import ContainerStart, Mount, Security

pytestmark = [pytest.mark.slow, needs_node]

READY_THEN_7 = 'trap "exit 7" TERM; echo ready; while :; do sleep 0.05; done'
# It starts no processes: a shell that may not, because it is being killed, would end with a code of its own.
STUBBORN = 'trap "" TERM; echo ready; while :; do :; done'
GROW = "x=xxxxxxxx; while :; do x=$x$x; done"
READ = "sleep 0.3"


@pytest.fixture
def stage():
    with on_stage() as made:
        yield made


def test_exit_code_and_output_are_those_of_the_command(stage: Stage):
    start = stage.start(f"echo out; echo err >&2; {READ}; exit 3")
    assert stage.ended(start).exit_code == 3
    stage.says(start, "out", "err")
    lines = [line.split(" ", 3)[1:] for line in start.log.read_text().splitlines()]
    assert sorted(lines) == [["stderr", "F", "err"], ["stdout", "F", "out"]]


def test_sigterm_reaches_the_main_process_and_sigkill_ends_everything(stage: Stage):
    polite, stubborn = stage.start(READY_THEN_7), stage.start(STUBBORN, name="stubborn")
    stage.says(polite, "ready")
    stage.says(stubborn, "ready")
    stage.runtime.terminate(stubborn.id)
    stage.runtime.terminate(polite.id)
    assert stage.ended(polite).exit_code == 7
    assert stubborn.id not in stage.exits
    stage.runtime.kill(stubborn.id)
    assert stage.ended(stubborn).exit_code == 137
    stage.until(lambda: stage.share.cgroups.processes(stage.cgroup(stubborn)) == [])


def test_a_container_runs_in_its_cgroup_with_its_values_its_environment_and_its_directory(stage: Stage):
    start = stage.start(
        'echo "$GREETING $0"; pwd; cat /proc/self/oom_score_adj; trap "exit 0" TERM; while :; do sleep 0.05; done',
        memory="32Mi",
        env={"GREETING": "good morning"},
        working_dir="/mnt",
    )
    stage.says(start, "good morning sh", "/mnt", "500")
    path = stage.cgroup(start)
    assert path.startswith(f"{stage.share.own}/kubepods/pod{stage.uid}/")
    assert stage.share.cgroups.memory_limit(path) == 32 * MI
    for file in start.cgroup.files:
        if file.text is not None:
            assert (stage.share.cgroups.read(path, file.name) or "").strip() == file.text
    (main, *_) = stage.share.cgroups.processes(path)
    assert Procfs().oom_score_adj(main) == 500


def test_containers_of_a_pod_share_its_volumes_and_may_not_write_where_they_only_read(stage: Stage):
    volume = stage.share.folder / "volume"
    volume.mkdir()
    writer = stage.start("echo hello > /mnt/file", name="writer", mounts=(Mount("v", str(volume), "/mnt"),))
    assert stage.ended(writer).exit_code == 0
    reader = stage.start(
        f"cat /mnt/file; echo no > /mnt/file && exit 1; {READ}; exit 4",
        name="reader",
        mounts=(Mount("v", str(volume), "/mnt", read_only=True),),
    )
    assert stage.ended(reader).exit_code == 4
    stage.says(reader, "hello")
    assert (volume / "file").read_text() == "hello\n"


def test_another_attempt_is_another_run_with_a_log_of_its_own(stage: Stage):
    first = stage.start("echo first; exit 1")
    stage.ended(first)
    second = stage.start(f"echo second; {READ}; exit 0", attempt=1)
    assert stage.ended(second).exit_code == 0
    stage.says(second, "second")
    assert "second" not in stage.said(first)
    stage.runtime.remove(first.id)
    assert [(each.id, each.exit_code) for each in stage.runtime.containers()] == [(second.id, 0)]


def test_the_next_agent_finds_what_runs_and_how_the_rest_ended(stage: Stage):
    polite, brief = stage.start(READY_THEN_7), stage.start("echo ready; sleep 0.3; exit 9", name="brief")
    stage.says(polite, "ready")
    stage.says(brief, "ready")
    path = stage.cgroup(polite)
    before = set(stage.share.cgroups.processes(path))
    stage.change_agent()
    stage.until(lambda: {each.id: each.exit_code for each in stage.runtime.containers()}.get(brief.id) == 9)
    found = {each.id: each for each in stage.runtime.containers()}
    assert found[polite.id].exit_code is None
    assert found[polite.id].cgroup == path
    assert found[polite.id].pid in before
    stage.exits.clear()
    stage.runtime.terminate(polite.id)
    assert stage.ended(polite).exit_code == 7


def test_a_container_over_its_limit_is_known_to_be_killed_for_memory(stage: Stage):
    start = stage.start(GROW, memory="32Mi")
    ended = stage.ended(start)
    assert ended.exit_code == 137
    assert stage.share.cgroups.oom_kills(stage.cgroup(start)) > 0


def test_a_command_inside_a_container_tells_how_it_ended_and_is_killed_when_its_time_is_up(stage: Stage):
    start = stage.start(READY_THEN_7)
    stage.says(start, "ready")
    stage.cgroup(start)  # it can speak before the runtime knows that it runs
    stage.runtime.execute(start, ["sh", "-c", "exit 5"], "token-1", 60)
    stage.runtime.execute(start, ["sleep", "100"], "token-2", 3)
    stage.until(lambda: "token-1" in stage.results)
    assert stage.results["token-1"].exit_code == 5
    stage.until(lambda: "token-2" in stage.results or _sleepers(stage, start))
    stage.until(lambda: "token-2" in stage.results)
    assert stage.results["token-2"].exit_code != 0
    stage.until(lambda: not _sleepers(stage, start))
    assert start.id not in stage.exits


def test_a_command_that_is_stopped_at_any_moment_leaves_no_process(stage: Stage):
    start = stage.start(READY_THEN_7)
    stage.says(start, "ready")
    stage.cgroup(start)
    seconds = {f"token-{number}": number * 0.03 for number in range(8)}
    for token, limit in seconds.items():
        stage.runtime.execute(start, ["sleep", "100"], token, limit)
    stage.until(lambda: seconds.keys() <= stage.results.keys())
    assert all(stage.results[token].exit_code for token in seconds)
    # A command that was about to begin would do so now.
    time.sleep(0.5)
    stage.until(lambda: not _sleepers(stage, start))


def test_what_cannot_be_started_has_ended_and_the_reason_is_said(stage: Stage):
    start = stage.start("true", command=("/no/such/program",))
    assert stage.ended(start).exit_code == CANNOT_START_CODE
    assert any("/no/such/program" in note for note in stage.notes)


def test_a_log_does_not_grow_without_end(stage: Stage):
    line = "x" * 90
    start = stage.start(f"for i in $(seq 400); do echo {line}; done; {READY_THEN_7}", log_bytes=8192, log_files=2)
    stage.says(start, "ready")
    files = list(start.log.parent.glob("0.log*"))
    assert len(files) <= 2
    assert start.log.stat().st_size <= 8192


WHO = (
    "id -u; id -g; echo $(id -G); grep -E 'CapBnd|NoNewPrivs' /proc/self/status; "
    f"touch /new 2>/dev/null && echo written; echo end; {READ}"
)


def said_about(stage: Stage, start: ContainerStart) -> tuple[list[str], dict[str, str], bool]:
    """Return a container's ids, its privileges, and whether it could write to its root."""
    assert stage.ended(start).exit_code == 0, stage
    stage.says(start, "end")
    said = stage.said(start)
    return said[:3], dict(line.split(":\t") for line in said[3:5]), "written" in said


def test_user_groups_and_privileges_are_those_of_the_security_context(stage: Stage):
    security = Security(
        run_as_user=4321, run_as_group=4322, groups=(4323, 4324), drop=("ALL",), add=("CHOWN",), no_new_privileges=True
    )
    ids, privileges, _ = said_about(stage, stage.start(WHO, security=security))
    assert ids == ["4321", "4322", "4322 4323 4324"]
    assert (int(privileges["CapBnd"], 16), privileges["NoNewPrivs"]) == (1, "1")


def test_an_image_that_runs_as_root_does_not_start_where_that_is_forbidden(stage: Stage):
    start = stage.start("true", security=Security(run_as_non_root=True))
    assert stage.ended(start).exit_code == CANNOT_START_CODE
    assert any("runAsNonRoot and image will run as root" in note for note in stage.notes)


def test_a_plain_process_says_what_it_cannot_have(stage: Stage):
    assert stage.ended(stage.start("true", security=Security(read_only_root=True))).exit_code == 0
    assert any("readOnlyRootFilesystem is ignored" in note for note in stage.notes)


def _sleepers(stage: Stage, start: ContainerStart) -> list[int]:
    """Return the processes of a container that run ``sleep 100``."""
    found = []
    for pid in stage.share.cgroups.processes(stage.cgroup(start)):
        with contextlib.suppress(OSError):
            if b"sleep\x00100" in (Procfs().root / str(pid) / "cmdline").read_bytes():
                found.append(pid)
    return found
