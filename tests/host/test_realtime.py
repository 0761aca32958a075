"""A real-time agent reacts in time although other processes want every core."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack

import pytest

from host.agents import Agent, until, until_up
from host.machine import needs_node
from host.nodes import PYTHON, pod_document

pytestmark = [needs_node, pytest.mark.slow]

TRIALS = 3
BUSY_LOOPS = max(2, os.cpu_count() or 1)
# Ignores SIGTERM and takes 4 MiB at a time, less than 200 MiB a second: a whole machine may be held up for a second.
ALLOCATOR = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); kept = []\n"
    "while True: kept.append(bytearray(b'x') * (4 << 20)); time.sleep(0.02)"
)


def _why_not_realtime() -> str | None:
    """Return why a process cannot have real-time priority here; a child tries, so that this one keeps its own."""
    words = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    done = subprocess.run([*PYTHON, words], capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("\n")[2] or None


@pytest.fixture
def agent():
    made = Agent(memory="768Mi", threshold="384Mi")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def _busy_cores():
    with ExitStack() as stack:
        for _ in range(BUSY_LOOPS):
            loop = stack.enter_context(subprocess.Popen([*PYTHON, "while True: pass"]))
            stack.callback(loop.kill)
        yield


@pytest.mark.usefixtures("_busy_cores")
def test_a_realtime_agent_is_before_the_kernel_with_every_core_busy(agent):
    if (why := _why_not_realtime()) is not None:
        pytest.skip(f"real-time priority is not permitted: {why}")
    agent.start("--realtime")
    fixed = {"memory": "64Mi", "cpu": "10m"}
    agent.put(pod_document("other", "sleep", "1000", resources={"requests": fixed, "limits": fixed}))
    until_up(agent, "1000")
    assert agent.process is not None
    policy = os.sched_getscheduler(agent.process.pid) & ~os.SCHED_RESET_ON_FORK
    assert policy == os.SCHED_FIFO
    # Under pressure a node admits no BestEffort pod: these ask for a little.
    little = {"requests": {"memory": "1Mi", "cpu": "10m"}}
    for number in range(TRIALS):
        spec = {"restartPolicy": "Never"}
        agent.put(pod_document(f"grows-{number}", *PYTHON, ALLOCATOR, resources=little, spec=spec))
        until(agent, lambda: sum(entry.kind == "CleanedUp" for entry in agent.entries()) > number)  # noqa: B023
    ends = [(entry.kind.value, entry.pod) for entry in agent.entries() if entry.kind in {"Evicted", "OOMKilled"}]
    assert ends == [("Evicted", f"default/grows-{number}") for number in range(TRIALS)]
    assert agent.commands()["1000"] == 1
    assert agent.end(signal.SIGTERM) == 0
