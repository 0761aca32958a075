"""The kubelet's probes on a simulated node: when they run, and how long the answers take, which is a model.

Liveness and startup probes run every ``periodSeconds`` from the admission of the pod. A readiness probe runs as soon as
its container runs or has just failed, and every period from then on. An answer that takes longer than
``timeoutSeconds`` is a failure, known when that time is over. A container that is neither short of CPU nor answers
requests passes its probes, so that they only run where one can fail, or where a container has just started.

An answer costs CPU time (``PROBE_COST_US`` unless the scenario says otherwise) and takes as much longer as its
container gets less CPU than it wants. In a service it also waits for its turn like the median request.

Source: Kubernetes v1.36 pkg/kubelet/prober/worker.go (run, doProbe), prober_manager.go (AddPod, UpdatePodStatus). Not
modelled: the kubelet's random delay after its own start, and the probes that its resync of a pod triggers in addition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from podqos.agent.containers import ProbeWorker, grace_seconds
from podqos.agent.port import Event, ProbeFailed, ReadinessChanged
from podqos.agent.reasons import ProbeFailure, ProbeKind, ThrottledBy
from podqos.model.pod import Container
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.event_queue import EventPriority
from podqos.sim.node.cpu import NodeCpu
from podqos.sim.node.pods import SimContainer

if TYPE_CHECKING:
    from podqos.sim.node.owner import WorldOwner
    from podqos.sim.node.pods import SimContainer, SimPod


class Answer(Struct, frozen=True, gc=False):
    """How a container answers a probe at a moment. That is a model.

    The answer costs CPU time and takes that long, stretched by as much as the container is short of CPU. In a service
    it waits in the queue like the median request.
    """

    response_us: int | None
    """None if it is refused, or never comes."""
    slowdown: int = 100
    throttled_by: ThrottledBy | None = None
    waiting: int = 0


class Answering(Protocol):
    """What knows how containers answer."""

    def answer(self, container: SimContainer, now_us: int) -> Answer:
        """Return how a container answers a probe now."""

    def may_be_slow(self, container: SimContainer) -> bool:
        """Whether it may take longer than a container that has all it wants."""


class _Probes:
    """The probes of one container."""

    __slots__ = ("_reset_us", "admitted_us", "asked_us", "container", "generation", "is_planned", "is_told", "workers")

    def __init__(self, container: SimContainer, spec: Container, admitted_us: int) -> None:
        self.container = container
        self.admitted_us = admitted_us
        self.generation = 0
        """Counts its runs: what was planned for an earlier one no longer happens."""
        self._reset_us = admitted_us
        """When the ticker of its readiness probe was last reset."""
        self.asked_us: dict[ProbeKind, int] = {}
        """When it was probed last."""
        self.is_told = False
        """Whether the journal says that it is not ready."""
        self.workers: dict[ProbeKind, ProbeWorker] = {
            kind: ProbeWorker(kind, probe.defaulted)
            for kind, probe in (
                (ProbeKind.STARTUP, spec.startup_probe),
                (ProbeKind.READINESS, spec.readiness_probe),
                (ProbeKind.LIVENESS, spec.liveness_probe),
            )
            if probe is not None
        }
        self.is_planned: set[ProbeKind] = set()

    @property
    def has_started(self) -> bool:
        startup = self.workers.get(ProbeKind.STARTUP)
        return startup is None or startup.result is True

    @property
    def is_ready(self) -> bool:
        readiness = self.workers.get(ProbeKind.READINESS)
        return self.has_started and (readiness is None or readiness.result is True)

    def trigger(self, now_us: int) -> None:
        """Run the readiness probe now, and every period from now on."""
        self._reset_us = now_us
        self.asked_us.pop(ProbeKind.READINESS, None)

    def tick_us(self, kind: ProbeKind, from_us: int) -> int:
        """Return the first tick of a probe from a time on, and after the last."""
        period_us = self.workers[kind].probe.period_seconds * SECOND_US
        is_readiness = kind is ProbeKind.READINESS
        anchor_us = self._reset_us if is_readiness else self.admitted_us
        # At the first tick of the others the container does not exist yet.
        ticks = max(0 if is_readiness else 1, -(-(from_us - anchor_us) // period_us))
        asked_us = self.asked_us.get(kind)
        if asked_us is not None:
            ticks = max(ticks, (asked_us - anchor_us) // period_us + 1)
        return anchor_us + ticks * period_us

    def begins_us(self, kind: ProbeKind) -> int:
        """Return when the initial delay of a probe is over."""
        return self.container.started_us + self.workers[kind].probe.initial_delay_seconds * SECOND_US

    def is_settled(self, kind: ProbeKind) -> bool:
        """Whether further good answers change nothing."""
        worker = self.workers[kind]
        return worker.is_on_hold or (worker.result is True and worker.last is not False)


class NodeProber:
    """Probes the containers of one node."""

    def __init__(self, owner: WorldOwner, answering: Answering) -> None:
        self._owner = owner
        self._answering = answering
        self._probes: dict[tuple[str, str], _Probes] = {}

    def begun(self, container: SimContainer, admitted_us: int) -> Sequence[Event]:
        """Probe a container that has just started; return what the kubelet has to know at once."""
        key = container.pod.uid, container.name
        probes = self._probes.get(key)
        if probes is None or probes.container is not container:
            spec = _probed(container)
            if spec is None:
                return ()
            probes = self._probes[key] = _Probes(container, spec, admitted_us)
        now_us = self._owner.now_us
        probes.generation += 1
        probes.is_planned.clear()
        probes.asked_us.clear()
        probes.trigger(now_us)
        if now_us == 0 and probes.generation == 1:
            # What is there from the start has long passed its probes.
            probes.workers = {kind: worker.passed() for kind, worker in probes.workers.items()}
        else:
            probes.workers = {kind: worker.renewed() for kind, worker in probes.workers.items()}
        if probes.is_ready:
            self._go_on(probes)
            return ()
        self._go_on(probes)
        return (ReadinessChanged(container.pod.uid, container.name, ready=False, is_news=False),)

    def ended(self, container: SimContainer) -> None:
        """Stop probing a container that has ended, until it runs again."""
        probes = self._probes.get((container.pod.uid, container.name))
        if probes is not None:
            probes.generation += 1
            probes.is_planned.clear()

    def forget(self, pod: SimPod) -> None:
        """Stop probing a pod that is being stopped."""
        for container in pod.containers.values():
            self.ended(container)
            self._probes.pop((pod.uid, container.name), None)

    def disturbed(self, container: SimContainer) -> None:
        """Resume probing a container that may answer slowly from now on."""
        probes = self._probes.get((container.pod.uid, container.name))
        if probes is not None and container.is_running:
            self._go_on(probes)

    # ---- ticks -------------------------------------------------------------------------------------------------------

    def _go_on(self, probes: _Probes) -> None:
        """Plan the next tick of each probe that has something to find out."""
        slow = self._answering.may_be_slow(probes.container)
        for kind in probes.workers:
            if kind not in probes.is_planned and self._is_due(probes, kind, slow=slow):
                from_us = max(self._owner.now_us, probes.begins_us(kind))
                self._plan(probes, kind, probes.tick_us(kind, from_us))

    def _is_due(self, probes: _Probes, kind: ProbeKind, *, slow: bool) -> bool:
        if kind is not ProbeKind.STARTUP and not probes.has_started:
            return False  # its turn comes once the container has started
        return not probes.workers[kind].is_on_hold and (slow or not probes.is_settled(kind))

    def _plan(self, probes: _Probes, kind: ProbeKind, time_us: int) -> None:
        probes.is_planned.add(kind)
        generation = probes.generation

        def tick(now_us: int) -> None:
            if generation == probes.generation:
                self._ask(probes, kind, now_us)

        # After the CPU has been shared out, on which the answer depends. In a service the queue counts, and CPU is
        # shared out once it is known who is ready.
        serves = probes.container.demand.service is not None
        self._owner.plan(time_us, EventPriority.KUBELET if serves else EventPriority.SHARING, tick)

    def _ask(self, probes: _Probes, kind: ProbeKind, now_us: int) -> None:
        """Probe once. The answer is that of this moment, even where it takes a while."""
        probes.asked_us[kind] = now_us
        answer = self._answering.answer(probes.container, now_us)
        timeout_us = probes.workers[kind].probe.timeout_seconds * SECOND_US
        if answer.response_us is not None and answer.response_us <= timeout_us:
            self._hear(probes, kind, answer, good=True)
            return
        generation = probes.generation

        def fail(_: int) -> None:
            if generation == probes.generation:
                self._hear(probes, kind, answer, good=False)

        self._owner.plan(now_us + timeout_us, EventPriority.KUBELET, fail)

    def _hear(self, probes: _Probes, kind: ProbeKind, answer: Answer, *, good: bool) -> None:
        was_ready, before = probes.is_ready, probes.workers[kind]
        worker = probes.workers[kind] = before.answered(good=good)
        probes.is_planned.discard(kind)
        container, now_us = probes.container, self._owner.now_us
        failure = None if good else _failure(probes, worker, before, answer)
        if failure is not None and worker.is_on_hold:
            self._owner.report(ProbeFailed(container.pod.uid, container.name, failure))
            return
        is_triggered = was_ready and not probes.is_ready
        if is_triggered or (kind is ProbeKind.STARTUP and worker.result is True):
            probes.trigger(now_us)
        if probes.is_ready is not was_ready:
            is_news = probes.is_told or not probes.is_ready
            probes.is_told = not probes.is_ready
            event = ReadinessChanged(container.pod.uid, container.name, probes.is_ready, failure, is_news)
            self._owner.report(event)
        asked_us = probes.asked_us.get(kind)
        if asked_us is not None and self._is_due(probes, kind, slow=self._answering.may_be_slow(container)):
            # A tick that came while the probe was waiting for its answer comes now.
            self._plan(probes, kind, max(now_us, probes.tick_us(kind, asked_us)))
        self._go_on(probes)


def _failure(probes: _Probes, worker: ProbeWorker, before: ProbeWorker, answer: Answer) -> ProbeFailure:
    in_a_row = before.in_a_row + 1 if before.last is False else 1
    is_fatal = worker.is_on_hold
    return ProbeFailure(
        worker.kind,
        in_a_row,
        worker.probe.timeout_seconds,
        answer.response_us,
        answer.slowdown,
        answer.throttled_by,
        answer.waiting,
        grace_seconds(probes.container.pod.pod, worker.probe) if is_fatal else 0,
    )


def _probed(container: SimContainer) -> Container | None:
    """Return a container as declared, if it runs for long and has probes."""
    spec = container.pod.pod.spec
    for declared in _lasting(spec.containers, spec.init_containers):
        if declared.name == container.name:
            has_probes = declared.liveness_probe or declared.readiness_probe or declared.startup_probe
            return declared if has_probes else None
    return None


def _lasting(regular: Sequence[Container], init: Sequence[Container]) -> Iterator[Container]:
    yield from regular
    yield from (container for container in init if container.is_sidecar)


PROBE_COST_US = 10_000
"""The CPU time of an answer: 10 ms."""


class ProbeAnswers:
    """The answers of the containers on one node."""

    def __init__(self, cpu: NodeCpu) -> None:
        self._cpu = cpu

    def may_be_slow(self, container: SimContainer) -> bool:
        """Whether a container may answer late: it has a service, or is short of CPU."""
        return container.demand.service is not None or self._cpu.throttled_by(container) is not ThrottledBy.NOTHING

    def answer(self, container: SimContainer, now_us: int) -> Answer:
        """Return how a container answers a probe now."""
        cost_us = container.demand.probe_cost_us
        if cost_us is None:
            cost_us = PROBE_COST_US
        by = self._cpu.throttled_by(container)
        wanted = granted = 1
        if by is not ThrottledBy.NOTHING:
            share = self._cpu.shares(now_us)[container.path]
            wanted, granted = share.demand_nano, share.granted_nano
        bound = None if by is ThrottledBy.NOTHING else by
        slowdown = 100 * wanted // granted if granted else 0
        service = container.service
        if service is not None:
            response_us = None if service.is_refusing else service.probe_wait_us + cost_us * wanted // max(1, granted)
            return Answer(response_us if granted else None, slowdown, bound, service.waiting)
        return Answer(cost_us * wanted // granted if granted else None, slowdown, bound)
