"""Run a scenario on the real kernel: a confined node whose containers use what the scenario says.

The node is podqos' own (``host.node``), in a cgroup of its own with the scenario's memory as its limit. Every container
is a process that follows its curve (``host.linux.load``); what the scenario says of the system is one more process
beside the pods. When all hold their initial memory, the clock of the scenario starts, at a moment at which the eviction
loop is in the phase that the scenario states.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Entry, decode
from podqos.agent.state import Resting
from podqos.errors import HostError, InputError
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.host.linux import load
from podqos.host.linux.capabilities import find_mounts, open_cgroups
from podqos.host.linux.procfs import Procfs
from podqos.host.node.leftovers import make_folder, remove, remove_leftovers, state_of
from podqos.host.node.node import Node
from podqos.host.node.settings import HostSettings
from podqos.host.runtimes.process import ProcessRuntime
from podqos.kernel.memory import machine
from podqos.manifest.plain import Plain
from podqos.manifest.written_amounts import positive_number
from podqos.model.pod import Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.time_units import SECOND_US
from podqos.naming import naming
from podqos.parallel import usable_cores
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.runs.comparison import Rehearsal, Tolerance, compare
from podqos.sim.blast import nodes_now
from podqos.sim.engine.curve import Clock, Curve
from podqos.sim.run import simulate
from podqos.sim.scaling import ScaleFactors, scaled
from podqos.sim.scenario.assumptions import assumptions_of
from podqos.sim.scenario.scenario import ContainerDemand, MachineSpec, Scenario, ScenarioWorkload

_INTERVAL_US = MONITORING_INTERVAL_SECONDS * SECOND_US
_LOOK_SECONDS = 0.1
_SETTLING_SECONDS = 2.0
_PATIENCE_SECONDS = 60.0
_HELD = 0.995
"""Of what all hold at the beginning: the kernel counts in batches."""
_MEMORY_SHARE = Fraction(3, 4)
"""Of the memory that is available: what a rehearsal may take."""
_MARGIN_SHARE = Fraction(1, 256)
"""Of the node's memory: what the kernel's batches and page tables make uncertain."""
# A container that is started again takes its time, as the scenario says, before it takes any memory.
_AGAIN = 'if [ -e "$1" ]; then sleep "$2"; fi; : > "$1"; shift 2; exec "$@"'


class Rehearsed(Struct, frozen=True):
    """The result of a rehearsal."""

    report: Rehearsal
    journal: tuple[Entry, ...]
    """Of the real node, with times counted from the beginning of the scenario."""


def rehearse(
    scenario: Scenario,
    *,
    scale: str = "1/32",
    speed: str = "1",
    until_us: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Rehearsed:
    """Run a scaled-down scenario on this machine's kernel, and compare what happens with what the simulation predicts.

    ``scale`` is how much of the scenario's memory to use, ``speed`` lets demands change faster. ``say`` gets progress
    messages.
    """
    left_out = unrehearsable(scenario)
    remove_leftovers()
    cores = Fraction(1000 * usable_cores(), scenario.nodes[0].spec.cpu_milli)
    part = positive_number(scale, naming("scale"), "fraction up to 1", "1/32", most=1)
    small = scaled(
        scenario,
        ScaleFactors(part, min(Fraction(1), cores), 1 / positive_number(speed, naming("speed"), "speed", "10")),
    )
    if until_us is not None:
        small = replace(small, duration_us=until_us)
    memory_bytes = small.nodes[0].spec.memory_bytes
    _refuse_too_large(memory_bytes)
    small = on_this_machine(small, open_cgroups("/podqos-rehearsal").version)
    predicted = simulate(small).entries
    journal, notes = RealRun(small, say).run()
    tolerance = Tolerance(margin_bytes=int(memory_bytes * _MARGIN_SHARE))
    found = compare(predicted, journal, tolerance)
    report = Rehearsal(
        scenario=scenario.name,
        scale=scale,
        same_victims=found.same_victims,
        same_order=found.same_order,
        flagged=len(found.flagged),
        victims=found.victims,
        left_out=tuple(left_out),
        notes=notes,
        assumptions=assumptions_of(scenario),
    )
    return Rehearsed(report, journal)


def _refuse_too_large(memory_bytes: int) -> None:
    there = Procfs().machine_memory().available_bytes
    if memory_bytes > there * _MEMORY_SHARE:
        what = f"the rehearsal needs {memory_bytes >> 20} MiB, but only {there >> 20} MiB is available"
        raise HostError(f"{what}: choose a smaller " + naming("scale"))


def on_this_machine(scenario: Scenario, version: CgroupVersion) -> Scenario:
    """Return the scenario as it is on this machine: with its version of cgroups, and without controllers."""
    number: Literal[1, 2] = 1 if version is CgroupVersion.V1 else 2
    nodes = tuple(
        replace(
            group,
            spec=replace(group.spec, cgroup_version=number),
        )
        for group in scenario.nodes
    )
    workloads = tuple(
        replace(workload, recreate=False, cron=None)
        for workload in scenario.workloads
        if not _is_only_scheduled(workload)
    )
    return replace(scenario, nodes=nodes, workloads=workloads, autoscalers=())


def _is_only_scheduled(workload: ScenarioWorkload) -> bool:
    """Whether it has pods by the clock alone."""
    return workload.cron is not None and not workload.active


def _confined(spec: MachineSpec) -> MachineSpec:
    """Return the node as a cgroup: what the kernel would keep of a machine is taken off its memory and thresholds.

    A machine kills when its last pages are reached, a cgroup at its limit.
    """
    kept = (spec.watermarks or machine(spec.memory_bytes).watermarks).min_bytes
    config = spec.config

    def lowered(thresholds: Mapping[str, str]) -> dict[str, str]:
        return {
            signal: str(max(1, _threshold(value, spec.memory_bytes) - kept)) if signal == "memory.available" else value
            for signal, value in thresholds.items()
        }

    hard = {"memory.available": "100Mi"} if config.eviction_hard is None else config.eviction_hard
    return replace(
        spec,
        memory_bytes=spec.memory_bytes - kept,
        # To take memory takes CPU: no quota may hold a container back from what the scenario says.
        config=replace(
            config, eviction_hard=lowered(hard), eviction_soft=lowered(config.eviction_soft), cpu_cfs_quota=False
        ),
    )


def _threshold(value: str, memory_bytes: int) -> int:
    if value.endswith("%"):
        return int(memory_bytes * Fraction(value.removesuffix("%")) / 100)
    return Quantity.parse(value).value


def unrehearsable(scenario: Scenario) -> list[str]:
    """Return the parts of a scenario that cannot be rehearsed; raise if nothing can."""
    if sum(group.count for group in scenario.nodes) != 1:
        raise InputError(
            "a rehearsal has exactly one node", where=scenario.name, fix="rehearse a scenario with one node"
        )
    left_out = []
    demands = [demand for workload in scenario.workloads for each in workload.demands for demand in each.values()]
    for what, found in (
        ("page cache", any(_is_used(demand.active_file_bytes, demand.inactive_file_bytes) for demand in demands)),
        ("disk", any(_is_used(demand.rootfs_bytes, demand.logs_bytes) for demand in demands)),
        ("volumes", any(demand.volumes for demand in demands)),
        ("cpu", any(_is_used(demand.cpu_milli) for demand in demands)),
        ("containers that exit on their own", any(demand.ends for demand in demands)),
        ("services", any(demand.service is not None for demand in demands)),
        ("schedules of CronJobs", any(map(_is_only_scheduled, scenario.workloads))),
        ("autoscalers", scenario.has_actors),
        ("events", bool(scenario.happenings or scenario.workload_changes)),
    ):
        if found:
            left_out.append(what)
    return left_out


def _is_used(*curves: Curve) -> bool:
    return any(value for curve in curves for _, value in curve.knots)


class RealRun:
    """One scenario on one confined node."""

    def __init__(self, scenario: Scenario, say: Callable[[str], None]) -> None:
        """Prepare a node."""
        (self._here,) = nodes_now(scenario)
        self._scenario = scenario
        self._spec = _confined(self._here.node)
        self._system_curve = scenario.nodes[0].spec.system.anon_bytes
        self._say = say
        self._folder = make_folder()
        self._begin = self._folder / "begin"
        self._begin_us = 0
        self._filler: subprocess.Popen[bytes] | None = None
        self._node: Node | None = None
        self._deadline = 0.0
        self._is_done = self._gave_up = False

    def run(self) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
        """Return the journal and what the machine did not allow; nothing stays behind, whatever happens."""
        with _interruptible():
            try:
                return self._run()
            finally:
                self._end_filler()
                remove(self._folder)

    def _run(self) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
        manifests = self._folder / "manifests"
        manifests.mkdir()
        self._write_manifests(manifests)
        settings = HostSettings(
            node=self._spec.name,
            manifests=manifests,
            state_dir=state_of(self._folder),
            cgroup_root=self._folder.name,
            memory_bytes=self._spec.memory_bytes,
            configuration=self._spec.config,
            fast_path=self._spec.fast_path,
            policy=self._scenario.policy,
            profile=self._scenario.profile,
        )
        node = self._node = Node(
            settings,
            lambda node: ProcessRuntime(settings.state_dir, node.cgroups, node.capabilities, node.note),
            self._pass_on,
        )
        self._start_filler(node)
        self._deadline = time.monotonic() + _PATIENCE_SECONDS
        node.loop.call_after(_LOOK_SECONDS, self._await_readiness)
        node.run(at_end=self._end_filler)
        if self._gave_up:
            for note in node.notes:  # there is no report
                self._say(note)
            raise HostError("the containers did not reach their initial memory; does this machine have enough?")
        if not self._is_done:
            raise KeyboardInterrupt
        data = (settings.state_dir / "journal.jsonl").read_bytes()
        entries = tuple(
            replace(entry, time_us=entry.time_us - self._begin_us)
            for entry in decode(data, "journal")
            if entry.time_us >= self._begin_us
        )
        end_us = self._scenario.duration_us
        return tuple(entry for entry in entries if entry.time_us <= end_us), tuple(node.notes)

    def _pass_on(self, text: str) -> None:
        """Pass on what the node says while it runs, except its notes, which are part of the report."""
        if self._node is not None and text not in self._node.notes and not self._is_done:
            self._say(text)

    # ---- the beginning -----------------------------------------------------------------------------------------------

    def _await_readiness(self) -> None:
        """Begin the scenario as soon as all containers hold their initial memory."""
        node = self._node
        assert node is not None
        wanted = sum(usage.anon_bytes for _, containers in self._here.pods for usage in containers)
        wanted += self._system_curve.at(0)
        memory = node.cgroups.memory(node.cgroups.own)
        held = 0 if memory is None else memory.usage_bytes
        runs = sum(len(pod.runs) for pod in node.world.pods.values())
        is_there = runs == sum(len(containers) for _, containers in self._here.pods)
        if is_there and held >= wanted * _HELD:
            # The last mebibytes are found step by step.
            node.loop.call_after(_SETTLING_SECONDS, lambda: self._begin_scenario(node))
        elif time.monotonic() > self._deadline:
            self._say(f"held {held >> 20} MiB of {wanted >> 20} MiB, {runs} containers run")
            self._gave_up = True
            node.stop()
        else:
            node.loop.call_after(_LOOK_SECONDS, self._await_readiness)

    def _begin_scenario(self, node: Node) -> None:
        """Set the scenario's clock so that the eviction loop is at the phase that the scenario says."""
        loop = node.driver.state.loop
        if not isinstance(loop, Resting):
            node.loop.call_after(_LOOK_SECONDS, self._await_readiness)
            return
        now_us = time.time_ns() // 1000
        begin_us = loop.wake_us - self._scenario.nodes[0].spec.loop_phase_us
        while begin_us < now_us + SECOND_US // 2:
            begin_us += _INTERVAL_US
        wait_us = begin_us - now_us
        self._begin_us = begin_us
        temporary = self._begin.with_suffix(".new")
        temporary.write_text(str(time.monotonic_ns() + wait_us * 1000))
        temporary.rename(self._begin)
        seconds = self._scenario.duration_us / SECOND_US
        self._say(f"the scenario starts in {wait_us / SECOND_US:.0f} s and takes {seconds:.0f} s")
        node.loop.call_after(wait_us / SECOND_US + seconds + 0.5, self._end_scenario)

    def _end_scenario(self) -> None:
        assert self._node is not None
        self._is_done = True
        self._node.stop()

    # ---- pods as manifests -------------------------------------------------------------------------------------------

    def _write_manifests(self, folder: Path) -> None:
        documents: list[Plain] = []
        priorities = {pod.spec.priority or 0 for pod, _ in self._here.pods}
        documents += [_priority_class(value) for value in sorted(priorities)]
        demands = _demands(self._scenario)
        for pod, _ in self._here.pods:
            documents.append(self._manifest(pod, demands(pod)))
        for number, document in enumerate(documents):
            (folder / f"{number:04}.json").write_text(json.dumps(document))

    def _manifest(self, pod: Pod, demands: Mapping[str, ContainerDemand]) -> Plain:
        containers: list[Plain] = [
            self._container(pod, container, demands.get(container.name, ContainerDemand()))
            for container in pod.spec.containers
        ]
        sidecars: list[Plain] = [
            {
                **self._container(pod, container, demands.get(container.name, ContainerDemand())),
                "restartPolicy": "Always",
            }
            for container in pod.spec.init_containers
            if container.is_sidecar
        ]
        grace = pod.spec.termination_grace_period_seconds
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace},
            "spec": {
                "restartPolicy": pod.spec.restart_policy or "Always",
                "priorityClassName": _class_name(pod.spec.priority or 0),
                "terminationGracePeriodSeconds": 30 if grace is None else grace,
                "initContainers": sidecars,
                "containers": containers,
            },
        }

    def _container(self, pod: Pod, container: Container, demand: ContainerDemand) -> dict[str, Plain]:
        name = f"{pod.metadata.namespace}.{pod.metadata.name}.{container.name}"
        options = self._scenario.options
        curve = demand.anon_bytes
        processes = max(1, demand.processes.at(0))
        path = self._write_load(name, curve, processes)
        delay = (options.container_start_us + options.pleg_period_us) / SECOND_US
        command: list[Plain] = ["/bin/sh", "-c", _AGAIN, "sh", f"{path}.begun", f"{delay:.3f}", *_program(), str(path)]
        amounts = container.resources
        resources: dict[str, Plain] = {
            "requests": {resource: str(amount) for resource, amount in amounts.requests.items()},
            "limits": {resource: str(amount) for resource, amount in amounts.limits.items()},
        }
        return {"name": container.name, "image": "load", "command": command, "resources": resources}

    def _write_load(self, name: str, curve: Curve, processes: int) -> Path:
        root, usage = _memory_files()
        path = self._folder / f"{name}.load"
        lines = {
            "memory": " ".join(f"{time_us}:{value}" for time_us, value in curve.knots),
            "period": str(curve.period_us or 0),
            "clock": "container" if curve.clock is Clock.CONTAINER else "scenario",
            "processes": str(processes),
            "begin": str(self._begin),
            "memcg": f"{root} {usage}",
        }
        path.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
        return path

    # ---- the system beside the pods ----------------------------------------------------------------------------------

    def _start_filler(self, node: Node) -> None:
        """Let a process hold what everything outside of pods holds; it is not to be the kernel's first choice."""
        path = f"{node.cgroups.own}/system"
        node.cgroups.create(path)
        entrances = node.cgroups.entrances(path)
        settings = self._write_load("system", self._system_curve, 1)

        def enter() -> None:
            for entrance in entrances:
                with Path(entrance).open("w") as file:
                    file.write("0")

        self._filler = subprocess.Popen(  # noqa: S603 - our own program
            [*_program(), str(settings)],
            preexec_fn=enter,  # noqa: PLW1509 - it only writes two files
            stdin=subprocess.DEVNULL,
        )

    def _end_filler(self) -> None:
        if self._filler is not None:
            self._filler.kill()
            self._filler.wait()
            self._filler = None


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let signals that would end this process interrupt it, once, so that it can clean up."""
    # Under nohup SIGHUP stays ignored.
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]

    def interrupt(_number: int, _frame: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _demands(scenario: Scenario) -> Callable[[Pod], Mapping[str, ContainerDemand]]:
    """Return what finds the demand of a pod by its name: ``workload`` or ``workload-number``."""
    by_name: dict[tuple[str, str], Mapping[str, ContainerDemand]] = {}
    for workload in scenario.workloads:
        for number in range(max(1, workload.replicas)):
            demand = workload.demands[number % len(workload.demands)]
            by_name[workload.namespace, f"{workload.name}-{number}"] = demand
        by_name[workload.namespace, workload.name] = workload.demands[0]

    def find(pod: Pod) -> Mapping[str, ContainerDemand]:
        namespace, name = pod.metadata.namespace, pod.metadata.name
        while (namespace, name) not in by_name:
            name, dash, _ = name.rpartition("-")
            assert dash, f"no workload has a pod {pod.key}"
        return by_name[namespace, name]

    return find


def _class_name(priority: int) -> str:
    return f"priority-{priority}" if priority >= 0 else f"priority-minus-{-priority}"


def _priority_class(priority: int) -> Plain:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": _class_name(priority)},
        "value": priority,
    }


def _program() -> Sequence[str]:
    return os.path.realpath(sys.executable), "-I", "-S", os.path.realpath(load.__file__)


def _memory_files() -> tuple[str, str]:
    """Return where memory cgroups are mounted, and the file with what they use."""
    mounts = find_mounts(Procfs())
    if mounts.v1.get("memory") is not None:
        return str(mounts.v1["memory"]), "memory.usage_in_bytes"
    if mounts.v2 is None:
        raise HostError("no memory cgroups are mounted here")
    return str(mounts.v2), "memory.current"
