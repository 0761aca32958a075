"""A node that is a whole machine, where the kernel has to act: its victim is predicted, and all else survives.

Only a virtual machine of the tests is exhausted: its kernel was started with a mark that no other has.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from host.machine import needs_node
from host.nodes import MI, PYTHON, NodeStage, kubelet, pod_document, running_node
from kernel import kmsg, procfs
from podqos.agent.reasons import OOMLevel
from podqos.host.linux.procfs import read_text
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import Process, select
from vm.boot import EXPENDABLE

IS_EXPENDABLE = EXPENDABLE in (read_text(Path("/proc/cmdline")) or "").split()
pytestmark = [
    needs_node,
    pytest.mark.slow,
    pytest.mark.skipif(not IS_EXPENDABLE, reason="this machine is not ours to exhaust: it is done in a virtual one"),
]

VICTIM_MIB = 160
BEYOND_MIB = 70
"""What the grower takes beyond what there is: less than the victim leaves, so that one kill is enough."""
MCL_CURRENT = 1
HOLD = (
    "import sys, time; kept = bytearray(b'x') * (int(sys.argv[1]) << 20); print('grown', flush=True); time.sleep(9999)"
)
# Once there is a file of that name, takes as many MiB as it says. Not at once: the kernel does not always wait until
# the memory of its victim is free, and would kill again.
GROW_LATER = (
    "import os, sys, time; print('ready', flush=True)\n"
    "while not os.path.exists(sys.argv[1]): time.sleep(0.1)\n"
    "kept = []\n"
    "for _ in range(int(open(sys.argv[1]).read()) // 4): kept.append(bytearray(b'x') * (4 << 20)); time.sleep(0.05)\n"
    "print('grown', flush=True); time.sleep(9999)"
)
# Only the first run takes memory; others end by themselves.
HOLD_ONCE = 'test -e "$0" && exit 3; : > "$0"; exec "$@"'


def _pid(stage: NodeStage, name: str) -> int:
    (run,) = stage.pod(name).running
    return run.pid


def _grown(process: Process, mib: int) -> Process:
    pages = mib * MI // PAGE_BYTES
    return replace(
        process, rss_pages=process.rss_pages + pages, page_table_pages=process.page_table_pages + pages // 512
    )


def test_the_global_oom_killer_takes_the_predicted_pod_and_nothing_else_of_a_node():
    # The fast path is off and the threshold out of reach: nothing is evicted before memory is gone.
    hard = kubelet(evictionHard={"memory.available": "100Ki"})
    fixed = {"memory": "64Mi", "cpu": "500m"}
    with running_node(hard, memory_bytes=None, fast_path=False) as stage:
        go, once = stage.folder / "go", str(stage.folder / "once")
        stage.put(
            pod_document("guaranteed", *PYTHON, HOLD, "30", resources={"requests": fixed, "limits": fixed}),
            pod_document("burstable", *PYTHON, HOLD, "30", resources={"requests": {"memory": "100Mi"}}),
            pod_document("grower", *PYTHON, GROW_LATER, str(go), resources={"requests": {"memory": "400Mi"}}),
            pod_document("victim", "sh", "-c", HOLD_ONCE, once, *PYTHON, HOLD, str(VICTIM_MIB)),
        )
        others = ("guaranteed", "burstable", "grower")
        stage.until(lambda: all("grown" in stage.log(name) for name in ("guaranteed", "burstable", "victim")))
        stage.until(lambda: "ready" in stage.log("grower"))
        pids = {name: _pid(stage, name) for name in (*others, "victim")}
        scores = {name: stage.node.procfs.oom_score_adj(pid) for name, pid in pids.items()}
        shim = stage.node.runtime._shim.pid
        assert (scores["guaranteed"], scores["victim"]) == (-997, 1000)
        assert stage.node.procfs.oom_score_adj(os.getpid()) == stage.node.procfs.oom_score_adj(shim) == -999
        # Otherwise the interpreter is read in again and again while memory runs short.
        ctypes.CDLL(None).mlockall(MCL_CURRENT)
        log = kmsg.Log()
        shown = procfs.meminfo()
        total_pages = shown["MemTotal"] // PAGE_BYTES
        growth_mib = shown["MemAvailable"] // MI + BEYOND_MIB
        then = [_grown(each, growth_mib) if each.pid == pids["grower"] else each for each in procfs.processes()]
        predicted = select(then, total_pages)
        assert predicted is not None
        assert predicted.victim.process.pid == pids["victim"]

        go.with_name("partial").write_text(str(growth_mib))
        go.with_name("partial").rename(go)
        stage.until(lambda: len(stage.lines("Restarted")) == 2 and "grown" in stage.log("grower"))

        account = log.first_oom()
        log.close()
        assert account is not None
        assert account.victim_pid == pids["victim"]
        chosen = select(account.processes, total_pages)
        assert chosen is not None
        assert chosen.victim.process.pid == pids["victim"], "by the kernel's own numbers"
        (killed,) = stage.entries("OOMKilled")
        assert (killed.pod, killed.container, killed.by) == ("default/victim", "main", "kernel")
        assert (killed.because.level, killed.because.domain) == (OOMLevel.NODE, "/")
        assert (killed.because.limit_bytes, killed.because.oom_score_adj) == (shown["MemTotal"], 1000)
        first, second = stage.entries("Exited")[:2]
        assert (first.pod, first.because.exit_code, first.because.oom_killed) == ("default/victim", 137, True)
        assert (second.pod, second.because.exit_code, second.because.oom_killed) == ("default/victim", 3, False)
        restarts = [(entry.pod, entry.because.back_off_seconds) for entry in stage.entries("Restarted")]
        assert restarts == [("default/victim", 0), ("default/victim", 10)]
        assert stage.lines("Evicted") == []
        assert {name: _pid(stage, name) for name in others} == {name: pids[name] for name in others}
        assert stage.node.runtime._shim.pid == shim
        assert Path(f"/proc/{shim}").exists()
