"""The quick look at all containers leads to the same victim and the same runner-up as asking the kernel about all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eviction.nodes import pod
from podqos.agent.port import ContainerPlan
from podqos.agent.reasons import OOMLevel
from podqos.kernel.memcg import MemcgSettings
from podqos.kernel.memory import machine
from podqos.kernel.oom import select
from podqos.qos.cgroup import Cgroup, Level
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import constant
from podqos.sim.node.memory import NodeMemory, next_kill
from podqos.sim.node.pods import SimContainer, SimPod
from sim.worlds import using

MI = 1 << 20

described = st.lists(
    st.tuples(
        st.sampled_from([0, 3, 900, 999, 1000, -997, -1000]),
        st.integers(0, 40).map(lambda pages: pages * 4096),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=8,
)


def never(*_: object) -> None:
    """Plan nothing: nothing changes here."""


@given(described, st.sampled_from(["/", "/kubepods"]))
def test_the_victim_and_the_runner_up_are_those_of_the_kernel_model(containers, domain):
    memory = NodeMemory(machine(1024 * MI), never, never)
    memory.write("/kubepods", MemcgSettings(), OOMLevel.KUBEPODS, 0)
    next_pid = 100
    for index, (adj, size_bytes, count) in enumerate(containers):
        name = f"c{index}"
        cgroup = Cgroup(Level.CONTAINER, f"/kubepods/{name}", (), name)
        group = memory.write(f"/kubepods/{name}", MemcgSettings(), OOMLevel.CONTAINER, 0)
        owner = SimPod(pod(name), group, lambda _: using())
        container = SimContainer(owner, ContainerPlan(name, cgroup, adj), group)
        container.first_pid, container.fixed_processes, container.is_running = next_pid, count, True
        container.anon = Allocation(constant(size_bytes), (memory.usage,), never, 0)
        memory.running[container.path] = container
        next_pid += count
    group = memory.groups[domain]
    group.limit_bytes, group.gauge = 0, memory.usage
    total = memory.machine.oom_total_pages
    everybody = [process for each in memory.running.values() for process in each.processes(1)]
    expected = select(everybody, total, domain)
    found = next_kill(memory, group, 1, None)
    if expected is None:
        assert found is None
        return
    victim = expected.victim.process
    assert (found.container.path, found.because.points) == (victim.cgroup, expected.victim.points)
    others = select((process for process in everybody if process.cgroup != victim.cgroup), total, domain)
    assert found.because.runner_up_points == (None if others is None else others.victim.points)
    assert found.because.runner_up_container == (None if others is None else others.victim.process.name)
