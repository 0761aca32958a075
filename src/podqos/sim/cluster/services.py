"""The services of a simulated cluster: load goes to ready pods, and pods want CPU for it.

Every second, and every ten while all is well, the load of each service is divided evenly among its ready pods. What
each can answer follows from the CPU it could get (``services.queueing``). The same happens when pods start, end or
become ready, or their CPU changes. Between two such moments load and CPU are constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import OverloadCause, ServiceOverload, ThrottledBy
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.control_plane import NOTICED_AFTER_US, ControlPlane
from podqos.sim.engine.event_queue import CLUSTER, NEVER_US, EventPriority
from podqos.sim.node.node import SimNode
from podqos.sim.node.pods import SimContainer
from podqos.sim.scenario.scenario import ScenarioWorkload, ServiceDemand
from podqos.sim.services.outcome import ServiceOutcome, ServiceSample
from podqos.sim.services.queueing import (
    REFUSED,
    Answers,
    PodService,
    capacity,
    flow,
    latency,
    refused_share,
    waiting,
)

_STEP_US = SECOND_US
_LONG_STEP_US = 10 * SECOND_US
_BUSY = 0.8
"""The utilisation from which on each second counts."""
_OVERLOADED_PERMILLE = 10
_SETTLED_US = 5 * SECOND_US
"""How long after a change of pods each second counts."""
_RECOVERED_US = 10 * SECOND_US
"""How long a service has to answer before its overload is over."""
_MOST_AT_ONCE = 8
"""How often services are looked at anew at one moment: each look can change who is throttled."""
_MOST_SAMPLES = 200
_LONGEST_US = 1 << 50


class _Instance:
    """A running container that answers requests."""

    __slots__ = ("by", "container", "cpu_milli", "demand", "is_ready", "node", "state")

    def __init__(self, node: SimNode, container: SimContainer, state: PodService, *, is_ready: bool) -> None:
        assert container.demand.service is not None
        self.node = node
        self.container = container
        self.demand = container.demand.service
        """That of its revision: another may cost more."""
        self.state = state
        self.is_ready = is_ready
        self.cpu_milli = 0.0
        """How much CPU it could get."""
        self.by = ThrottledBy.NOTHING
        """What keeps it from more."""


class _Service:
    """One service."""

    def __init__(self, workload: ScenarioWorkload, demand: ServiceDemand) -> None:
        self.workload = workload
        self.name = f"{workload.namespace}/{workload.name}"
        self.demand = demand
        self.container = next(name for name, of in workload.demands[0].items() if of.service is not None)
        self.instances: list[_Instance] = []
        self.dead: dict[str, int] = {}
        """By uid: until when pods on lost nodes get requests, which fail; only then is it known that they are lost."""
        self.load = 0.0
        self.samples: list[ServiceSample] = []
        self.totals = dict.fromkeys(("requests", "refused", "late", "lost"), 0.0)
        self.overloads: list[list[int]] = []
        """When it was overloaded: from, until; −1 where that is not over."""
        self.answers_since_us = -1
        """Since when it has not failed; −1 while it does."""
        self.cause: OverloadCause | None = None

    def load_at(self, now_us: int) -> float:
        """Return the requests per second: from its arrival to its deletion."""
        deleted_us = self.workload.deleted_us
        if now_us < self.workload.arrives_us or (deleted_us is not None and now_us >= deleted_us):
            return 0.0
        return self.demand.requests_milli.at(now_us) / 1000

    @property
    def ready(self) -> list[_Instance]:
        """Those that get requests."""
        return [instance for instance in self.instances if instance.is_ready]

    @property
    def answers(self) -> list[Answers]:
        """How its ready pods answer."""
        return [instance.state.answers for instance in self.instances if instance.is_ready]

    @property
    def endpoints(self) -> list[Answers]:
        """How those answer that get requests: ready pods, and those of which no one knows that they are lost."""
        answers = self.answers
        if not self.dead and answers and answers.count(answers[0]) == len(answers):
            return answers[:1]  # as good as all
        return answers + [REFUSED] * len(self.dead)

    @property
    def utilisation(self) -> float:
        """Its load in relation to what its ready pods can answer."""
        ready = self.ready
        able = sum(instance.state.able.rate for instance in ready)
        return sum(instance.state.load for instance in ready) / able if able else float(self.load > 0)


class Services:
    """All services of a cluster."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        serving = [(workload, workload.service) for workload in cluster.scenario.workloads]
        self._services = [_Service(workload, demand) for workload, demand in serving if demand is not None]
        self._is_stale = True
        self._since_us = 0
        """Up to when requests have been answered."""
        self._disturbed_us, self._steps_left = 0, _MOST_AT_ONCE
        self._next_us = NEVER_US
        self._plan(0)

    def heard(self, entry: Entry) -> None:
        """Take note of an entry of the journal: it may be about pods that answer requests, or about their CPU."""
        if entry.kind is Kind.LOST or (entry.pod is not None and self._cluster.answers(entry.pod)):
            self.disturbed()
        elif entry.kind is Kind.THROTTLED:
            self._look_again()

    def disturbed(self) -> None:
        """Take note that pods may have started, ended or changed."""
        self._is_stale = True
        self._look_again()

    def _look_again(self) -> None:
        """Look again at once, but not for ever at one moment."""
        now_us = self._cluster.queue.now_us
        if now_us != self._disturbed_us:
            self._disturbed_us, self._steps_left = now_us, _MOST_AT_ONCE
        self._plan(now_us if self._steps_left else _next_second_us(now_us))

    def _plan(self, time_us: int) -> None:
        if time_us < self._next_us:
            self._next_us = time_us
            # After pods have been placed.
            self._cluster.queue.plan(time_us, CLUSTER, EventPriority.SHARING, self._step)

    # ---- a step ------------------------------------------------------------------------------------------------------

    def _step(self, now_us: int) -> None:
        if now_us != self._next_us:
            return
        self._next_us = NEVER_US
        self._steps_left -= now_us == self._disturbed_us and self._steps_left > 0
        self._advance(now_us)
        if self._is_stale:
            self._is_stale = False
            self._find_pods(now_us)
        for service in self._services:
            service.dead = {uid: until_us for uid, until_us in service.dead.items() if until_us > now_us}
            for instance in service.instances:
                service.dead.pop(instance.container.pod.uid, None)
                _look_for_cpu(instance, now_us)
        for service in self._services:
            service.load = service.load_at(now_us)
            ready = service.ready
            share = service.load / (len(ready) + len(service.dead)) if ready else 0.0
            for instance in service.instances:
                _serve(instance, share if instance.is_ready else 0.0)
        for service in reversed(self._services):
            for instance in service.instances:
                # Whoever takes notes of the node looks at it before that changes.
                self._cluster.fleet.get(instance.node.name)
                _want_cpu(instance, now_us)
            self._take_sample(service, now_us)
        self._plan(self._next_step_us(now_us))

    def _advance(self, now_us: int) -> None:
        """Let requests arrive and be answered up to now."""
        if self._since_us < now_us:
            for service in self._services:
                _pass(service, (now_us - self._since_us) / SECOND_US)
            self._since_us = now_us

    def _next_step_us(self, now_us: int) -> int:
        if now_us < self._disturbed_us + _SETTLED_US or any(map(_is_busy, self._services)):
            return _next_second_us(now_us)
        next_us = now_us + _LONG_STEP_US
        for service in self._services:
            workload = service.workload
            ends = (service.demand.requests_milli.piece(now_us).end_us, workload.arrives_us, workload.deleted_us)
            for end_us in (end_us for end_us in ends if end_us is not None and end_us > now_us):
                next_us = min(next_us, max(_next_second_us(now_us), -(-end_us // _STEP_US) * _STEP_US))
        return next_us

    def _find_pods(self, now_us: int) -> None:
        """Find the running pods of all services; what waited in those that ended is lost."""
        services = {id(service.workload): service for service in self._services}
        before = [(service, service.instances) for service in self._services]
        for service in self._services:
            service.instances = []
        for uid, replica in self._cluster.in_order():
            service_of = services.get(id(replica.workload))
            instance = None if service_of is None else self._running(uid, service_of.container, now_us)
            if service_of is not None and instance is not None:
                service_of.instances.append(instance)
        for service, earlier in before:
            kept = {id(instance.state) for instance in service.instances}
            for instance in earlier:
                if id(instance.state) not in kept:
                    service.totals["lost"] += instance.state.backlog
                    lost_us = instance.node.lost_us
                    if instance.is_ready and lost_us is not None:
                        service.dead[instance.container.pod.uid] = lost_us + NOTICED_AFTER_US

    def _running(self, uid: str, container_name: str, now_us: int) -> _Instance | None:
        cluster = self._cluster
        pod, name = cluster.pods[uid]
        node = None if name is None else cluster.fleet.present.get(name)
        made = None if node is None else node.world.pods.get(uid)
        container = None if made is None else made.containers.get(container_name)
        if node is None or container is None or not container.is_running or container.demand.service is None:
            return None
        if container.service is None:
            container.service = PodService(now_us)
        record = cluster.record_of(uid)
        is_ready = record is not None and record.is_ready and not cluster.is_deleted(pod)
        return _Instance(node, container, container.service, is_ready=is_ready)

    # ---- what came of it ---------------------------------------------------------------------------------------------

    def _take_sample(self, service: _Service, now_us: int) -> None:
        sample = _sample(service, now_us)
        last = service.samples[-1] if service.samples else None
        if last is not None and last.time_us == now_us:
            service.samples[-1] = sample
        elif last is None or _unlike(last, sample):
            service.samples.append(sample)
        is_failing = sample.errors_permille >= _OVERLOADED_PERMILLE
        if is_failing or service.answers_since_us < 0:
            service.answers_since_us = -1 if is_failing else now_us
        was_overloaded = bool(service.overloads) and service.overloads[-1][1] < 0
        is_overloaded = is_failing or (was_overloaded and now_us - service.answers_since_us < _RECOVERED_US)
        if is_overloaded == was_overloaded:
            return
        cause = None
        if is_overloaded:
            service.overloads.append([now_us, -1])
            cause = _cause(service)
            service.cause = service.cause or cause
        else:
            service.overloads[-1][1] = service.answers_since_us
        because = ServiceOverload(
            service.name,
            is_overloaded,
            sample.errors_permille,
            sample.p99_us or 0,
            sample.utilisation_permille,
            sample.waiting,
            cause,
        )
        self._cluster.write(Entry(now_us, "", Kind.OVERLOADED, None, None, None, because))

    def requests_milli(self, workload: str) -> dict[str, int]:
        """Return how many requests a second pods get, in thousandths by uid; ``workload`` is its namespace/name."""
        service = next((service for service in self._services if service.name == workload), None)
        ready = () if service is None else service.ready
        return {instance.container.pod.uid: round(instance.state.load * 1000) for instance in ready}

    def outcomes(self, end_us: int) -> tuple[ServiceOutcome, ...]:
        """Return what became of all requests until the end."""
        self._advance(end_us)
        return tuple(_outcome(service, end_us) for service in self._services)


def _next_second_us(now_us: int) -> int:
    return (now_us // _STEP_US + 1) * _STEP_US


def _pass(service: _Service, seconds: float) -> None:
    """Let requests arrive and be answered for a time."""
    totals = service.totals
    totals["requests"] += service.load * seconds
    served = sum(instance.state.load for instance in service.instances)
    totals["refused"] += (service.load - served) * seconds
    timeout_us = service.demand.timeout_us
    for instance in service.instances:
        state = instance.state
        passed = flow(state.able, state.load, state.backlog, instance.demand.queue, seconds)
        state.backlog = passed.backlog
        late = 0.0 if timeout_us is None else state.answers.late(timeout_us / SECOND_US)
        totals["refused"] += passed.refused
        totals["late"] += passed.answered * late


def _look_for_cpu(instance: _Instance, now_us: int) -> None:
    """Find out how much CPU a pod could get if all its workers were busy."""
    cpu = instance.node.world.cpu
    instance.cpu_milli, instance.by = cpu.could_get(instance.container, instance.demand.workers * 1000, now_us)


def _serve(instance: _Instance, load: float) -> None:
    """Let a pod answer at a rate from now on, with the CPU that it can get."""
    demand, state = instance.demand, instance.state
    state.load = load
    state.able = capacity(instance.cpu_milli / 1000, demand.cost_us / SECOND_US, demand.workers)
    state.answers = Answers(
        state.able.seconds,
        waiting(state.able, load, state.backlog, demand.queue),
        refused_share(state.able, load, state.backlog, demand.queue),
    )


def _want_cpu(instance: _Instance, now_us: int) -> None:
    """Let a pod want the CPU for its requests, of which its workers begin only so many."""
    cost, state = instance.demand.cost_us / SECOND_US, instance.state
    wanted = min(state.load + state.backlog, instance.demand.workers / cost) * cost * 1000
    instance.node.world.cpu.want(instance.container, ceil(wanted - 1e-6), now_us)


def _is_busy(service: _Service) -> bool:
    if service.utilisation >= _BUSY or any(instance.state.backlog > 0 for instance in service.instances):
        return True
    if service.overloads and service.overloads[-1][1] < 0:
        return True
    return bool(service.samples) and service.samples[-1].errors_permille > 0


def _sample(service: _Service, now_us: int) -> ServiceSample:
    answers = service.answers
    timeout_us = service.demand.timeout_us
    timeout = None if timeout_us is None else timeout_us / SECOND_US
    endpoints = service.endpoints
    errors = sum(pod.fails(timeout) for pod in endpoints) / len(endpoints) if endpoints else 1.0
    if not service.load:
        errors = 0.0
    ready = len(answers)
    if not service.dead:
        answers = endpoints
    return ServiceSample(
        now_us,
        ready,
        round(service.load * 1000),
        round(service.utilisation * 1000),
        round(sum(instance.state.backlog for instance in service.instances)),
        _us(latency(answers, 0.5)) if answers else None,
        _us(latency(answers, 0.99)) if answers else None,
        round(errors * 1000),
    )


def _us(seconds: float) -> int:
    return min(_LONGEST_US, round(min(seconds, 1e9) * SECOND_US))


def _unlike(before: ServiceSample, now: ServiceSample) -> bool:
    return any(getattr(before, name) != getattr(now, name) for name in now.__struct_fields__[1:])


_BY = {
    ThrottledBy.QUOTA: OverloadCause.CPU_LIMIT,
    ThrottledBy.CONTENTION: OverloadCause.CONTENTION,
    ThrottledBy.NOTHING: OverloadCause.CPU,
}


def _cause(service: _Service) -> OverloadCause:
    """Return what a service has too little of."""
    ready = service.ready
    if not ready:
        return OverloadCause.NOT_READY
    if service.dead and service.utilisation < 1:
        return OverloadCause.NODE_LOST
    worst = max(ready, key=lambda instance: instance.state.load / max(1e-9, instance.state.able.rate))
    return OverloadCause.WORKERS if worst.state.able.is_short_of_workers else _BY[worst.by]


def _outcome(service: _Service, end_us: int) -> ServiceOutcome:
    samples, totals = service.samples, service.totals
    late = max(samples, key=lambda sample: sample.p99_us or -1)
    failing = max(samples, key=lambda sample: sample.errors_permille)
    errors = sum(totals[name] for name in ("refused", "late", "lost"))
    return ServiceOutcome(
        workload=service.name,
        requests=round(totals["requests"]),
        errors=round(errors),
        refused=round(totals["refused"]),
        late=round(totals["late"]),
        lost=round(totals["lost"]),
        highest_utilisation_permille=max(sample.utilisation_permille for sample in samples),
        worst_p99_us=late.p99_us,
        worst_p99_at_us=late.time_us,
        worst_errors_permille=failing.errors_permille,
        worst_errors_at_us=failing.time_us,
        overloaded_us=sum((end_us if until < 0 else until) - since for since, until in service.overloads),
        first_overloaded_us=service.overloads[0][0] if service.overloads else None,
        cause=service.cause,
        samples=tuple(_thinned(samples, end_us)),
    )


def _thinned(samples: Sequence[ServiceSample], end_us: int) -> Iterator[ServiceSample]:
    """Yield the worst sample of each span of time, if there are too many."""
    if len(samples) <= _MOST_SAMPLES:
        yield from samples
        return
    span_us = -(-(end_us + 1) // _MOST_SAMPLES)
    spans: dict[int, ServiceSample] = {}
    for sample in samples:
        which = sample.time_us // span_us
        if which not in spans or _badness(sample) > _badness(spans[which]):
            spans[which] = sample
    yield from spans.values()


def _badness(sample: ServiceSample) -> tuple[int, int]:
    return sample.errors_permille, sample.p99_us or 0
