"""The two decisions that kill, repeated with one change: the kernel's choice, and the kubelet's pass.

The OOM killer continues until enough is free. So a container is spared only if those with a higher badness free what is
missing; each counts with its worst process alone, and within the precision of the kernel's counters the container
itself is assumed to be killed first, because that is chance. Between two kills it gets what it was waiting for, and
counts with that.

A pass of the eviction manager is kept with all its input. ``synchronize`` itself decides again, so that local storage
limits, the clean-up, the ranking of every signal and the policy are all taken into account. Use is never the same
twice: a change has to spare the pod also if it, or another pod of its manifest, uses a page more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.priority import HIGHEST_USER_PRIORITY
from podqos.eviction.manager import (
    EvictPod,
    ManagerConfig,
    ManagerState,
    Pass,
    ReclaimTarget,
    after_clean_up,
    synchronize,
)
from podqos.eviction.pods import LocalStorageExcess, LocalStorageLimit, disk_bytes, memory_bytes
from podqos.eviction.ranking import RankedPod, Ranking, rank
from podqos.eviction.signals import SIGNALS, DiskUse, Layout, Observation, SignalObservation, SignalRow
from podqos.eviction.thresholds import Threshold, ThresholdValue
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import is_within, parent_path
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.model.snapshot import PodUsage, Snapshot
from podqos.model.stats import ContainerStats, FsStats, PodStats, VolumeStats
from podqos.orders.counterfactual import (
    ALONE,
    MIB,
    Change,
    Counterfactual,
    ManifestChange,
    PodChange,
    SecondDecision,
    Surroundings,
    Trial,
    edits_between,
    holder_of,
    in_mebibytes,
    least,
    resources_of,
    using_less,
    with_headroom,
    with_limit,
    with_priority,
    with_request,
    with_size_limit,
)
from podqos.orders.memory import ContainerProcesses, OOMDomain, container_processes
from podqos.orders.orders import KilledContainer, kernel_order
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import qos_class_of

_CLOSE_PAGES = MIB // 4 // PAGE_BYTES
"""The kernel counts memory in batches per CPU: of two processes closer than this either may be chosen."""


class KernelMoment(Struct, frozen=True, gc=False):
    """A node as the kernel saw it when a cgroup, or the machine, was out of memory."""

    snapshot: Snapshot
    settings: CgroupSettings
    domain: OOMDomain
    profile: Profile = LATEST
    lacking_bytes: int = 0
    """What has to be freed before the OOM killer stops."""
    withheld_bytes: Mapping[tuple[str, str], int] = {}
    """By uid and container: what it wants at once and has not got yet."""
    now_us: int = 0


class KernelPlace(Struct, frozen=True, gc=False):
    """Where a container stood when the kernel chose, and what would have spared it."""

    place: int
    others: int
    counterfactuals: tuple[Counterfactual, ...]


def kernel_counterfactuals(
    moment: KernelMoment, victim: tuple[str, str], surroundings: Surroundings = ALONE
) -> KernelPlace | None:
    """Return what would have kept a container (uid, name) from being the kernel's choice.

    None if it is not among those the kernel can choose from. A pod that is alone in the domain, as at its own limit,
    needs another limit.
    """
    inside = f"{moment.domain.path.rstrip('/')}/"
    containers = {
        (container_process.pod.pod.metadata.uid, container_process.usage.name): container_process
        for container_process in container_processes(moment.snapshot, moment.settings, moment.profile)
        if any(f"{process.cgroup}/".startswith(inside) for process in container_process.processes)
    }
    if victim not in containers:
        return None
    trial = _KernelTrial(moment, victim, containers, surroundings)
    now = trial.decision(trial.containers, trial.own)
    has_others = any(uid != trial.uid for uid, _ in containers)
    tried = () if now.spared else _against_kernel(trial) if has_others else _own_limit(trial)
    return KernelPlace(now.place, now.others, tuple(tried))


_Key = tuple[str, str]
"""A container: the uid of its pod, and its name."""


class _KernelTrial(Trial):
    """The containers of a domain, to be tried with changes to one pod."""

    def __init__(
        self, moment: KernelMoment, victim: _Key, containers: Mapping[_Key, ContainerProcesses], around: Surroundings
    ) -> None:
        self.container = containers[victim]
        super().__init__(self.container.pod.pod, [entry.pod for entry in moment.snapshot.pods], around, moment.profile)
        self.moment = moment
        self.victim = victim
        self.containers = containers

    def writing(self, change: Change) -> tuple[SecondDecision, int]:
        """Decide again with another manifest; return also the score that the container gets by it."""
        moment = self.moment
        entries = [
            replace(entry, pod=change(entry.pod))
            for entry in moment.snapshot.pods
            if entry.pod.metadata.uid in self.own and entry.containers
        ]
        made = container_processes(replace(moment.snapshot, pods=tuple(entries)), moment.settings, moment.profile)
        rescored = {(processes.pod.pod.metadata.uid, processes.usage.name): processes for processes in made}
        changed = {
            key: _with_score(container, rescored.get(key, container)) for key, container in self.containers.items()
        }
        return self.decision(changed, self.own), rescored[self.victim].score.value

    def using(self, less_bytes: int) -> SecondDecision:
        """Decide again with less in the container, evenly over its processes."""
        each = -(-less_bytes // PAGE_BYTES // len(self.container.processes))
        processes = tuple(
            replace(process, rss_pages=max(0, process.rss_pages - each)) for process in self.container.processes
        )
        lighter = replace(self.container, processes=processes)
        return self.decision({**self.containers, self.victim: lighter}, frozenset({self.uid}))

    def decision(self, containers: Mapping[_Key, ContainerProcesses], own: frozenset[str]) -> SecondDecision:
        """Decide, and return the place of the container."""
        killed = kernel_order(tuple(containers.values()), self.moment.domain)
        order = sorted(killed, key=lambda container: -self._points(container, own, grown=False))
        if order and _freed_bytes(order[0]) >= self.moment.lacking_bytes:
            taken = [order[0].pod]
        else:
            grown = sorted(killed, key=lambda container: -self._points(container, own, grown=True))
            taken = [container.pod for container in _until_enough(grown, self.moment.lacking_bytes)]
        # Where it stands if it is spared is told without any doubt in its disfavour.
        told = order if any(pod.metadata.uid in own for pod in taken) else killed
        pods = [*dict.fromkeys(container.pod.metadata.uid for container in told)]
        place = pods.index(self.uid) + 1 if self.uid in pods else len(pods)
        return SecondDecision.of(self.uid, own, taken, place, len(pods) - 1)

    def _points(self, killed: KilledContainer, own: frozenset[str], *, grown: bool) -> int:
        """Return a badness, of the own containers as bad as it may be: ``grown`` is with all they wait for."""
        uid, usage = killed.pod.metadata.uid, killed.usage
        if uid not in own:
            return killed.worst.points
        withheld = self.moment.withheld_bytes.get((uid, usage.name), 0) if grown else 0
        return killed.worst.points + _CLOSE_PAGES - (-withheld // PAGE_BYTES // max(1, usage.processes))


def _until_enough(order: list[KilledContainer], lacking_bytes: int) -> Iterator[KilledContainer]:
    freed_bytes = 0
    for container in order:
        yield container
        freed_bytes += _freed_bytes(container)
        if freed_bytes >= lacking_bytes:
            return


def _freed_bytes(killed: KilledContainer) -> int:
    return killed.worst.process.rss_pages * PAGE_BYTES


def _with_score(container: ContainerProcesses, other: ContainerProcesses) -> ContainerProcesses:
    """Return a container with the score of another; it stays where it is."""
    if container.score.value == other.score.value:
        return container
    score = other.score.value
    processes = tuple(replace(process, oom_score_adj=score) for process in container.processes)
    return replace(container, score=other.score, processes=processes)


def _against_kernel(trial: _KernelTrial) -> Iterator[Counterfactual]:
    victim, moment = trial.container, trial.moment
    if victim.qos_class is not QOSClass.GUARANTEED:
        name = holder_of(trial.pod, victim.usage.name, MEMORY, trial.profile)
        request, used = resources_of(trial.pod, name).requests.get(MEMORY), _used(victim.pod)
        # To reserve what is not in use is no remedy.
        if request is None or (used[name] if name else sum(used.values())) > request.value:
            yield from trial.requesting(name, MEMORY, moment.snapshot.node.memory_bytes)
        yield from trial.guaranteeing(used)
    at_least = trial.least_bytes(PodChange.LESS, MEMORY)
    yield from using_less(trial.using, victim.usage.anon_bytes, at_least=at_least)


def _used(entry: PodUsage) -> dict[str, int]:
    """Return what the containers of a pod use, by their working sets."""
    seen = (
        {} if entry.stats is None else {container.name: container.memory for container in entry.stats.containers or ()}
    )
    # Volumes in memory are charged to the container, and only statistics know them.
    return {
        container.name: max(container.working_set_bytes, memory_bytes(seen.get(container.name)))
        for container in entry.containers
    }


def _own_limit(trial: _KernelTrial) -> Iterator[Counterfactual]:
    """Yield the memory limit that leaves room for what was asked for.

    The pod is alone in what ran out, so that nobody else can go instead. If that is more than the pod's own cgroup,
    such as the machine, no limit of the pod was reached, and none helps.
    """
    victim, moment = trial.container, trial.moment
    if not is_within(moment.domain.path, parent_path(victim.processes[0].cgroup)):
        return
    name = holder_of(trial.pod, victim.usage.name, MEMORY, trial.profile)
    limit = resources_of(trial.pod, name).limits.get(MEMORY)
    if limit is None:
        return
    # All of the limit is in use, and this much was asked for.
    asked = max(PAGE_BYTES, moment.lacking_bytes, moment.withheld_bytes.get(trial.victim, 0))
    needed = in_mebibytes(with_headroom(limit.value + asked)).value

    is_guaranteed = victim.qos_class is QOSClass.GUARANTEED

    def raised(pod: Pod) -> Pod:
        made = with_limit(pod, name, MEMORY, needed)
        # So that the pod stays Guaranteed.
        return with_request(made, name, MEMORY, needed) if is_guaranteed else made

    container = name if len(trial.pod.running_containers) > 1 else None
    edits = edits_between(trial.pod, raised(trial.pod))
    found = trial.counterfactual(ManifestChange(PodChange.LIMIT, raised, needed, MEMORY, container, edits))
    yield replace(found, decision=SecondDecision(spared=True, place=1, others=0))


class KubeletMoment(Struct, frozen=True, gc=False):
    """One pass of the eviction manager, with all its input."""

    config: ManagerConfig
    state: ManagerState
    """Before the pass."""
    now_us: int
    observation: Observation
    pods: tuple[Pod, ...]
    """The active ones, in the order of the node's list."""
    cleaned_up: Observation | None = None
    """How the node looked after a clean-up; None where there was none, or it gained nothing."""

    def decide(self) -> Pass:
        """Run the pass."""
        done = synchronize(self.config, self.state, now_us=self.now_us, observation=self.observation, pods=self.pods)
        if done.awaiting is None:
            return done
        return after_clean_up(self.config, done, self.cleaned_up or self.observation)


def at_threshold(
    pods: tuple[Pod, ...],
    stats: Mapping[str, PodStats],
    ranking: Ranking,
    capacity: int,
    short: tuple[int, int] = (2, 1),
) -> KubeletMoment:
    """Return a pass in which a threshold is just met, so that one pod goes; ``short``: its amount, and what is left.

    Limits of the pods' own do not count.
    """
    threshold, available = short
    grace_ns = 0 if ranking.hard else 1
    met = Threshold(ranking.signal, ThresholdValue(Quantity.of_units(threshold, "BinarySI")), grace_ns)
    return KubeletMoment(
        config=ManagerConfig(
            (met,),
            0,
            layout=ranking.layout,
            local_storage_capacity_isolation=False,
            policy=ranking.policy,
            profile=ranking.profile,
        ),
        state=ManagerState(first_observed_us={} if ranking.hard else {met: 0}),
        now_us=0 if ranking.hard else 1,
        observation=Observation({ranking.signal: SignalObservation(available, capacity)}, stats),
        pods=pods,
    )


def kubelet_place(snapshot: Snapshot, ranking: Ranking, uid: str) -> int | None:
    """Return a pod's place among those the kubelet may evict; None if it is not among them."""
    return _place(rank([entry.pod for entry in snapshot.pods], snapshot.stats, ranking), uid)


def kubelet_counterfactuals(
    moment: KubeletMoment, uid: str, surroundings: Surroundings = ALONE
) -> tuple[Counterfactual, ...]:
    """Return what would have kept a pod from being evicted, lines of YAML first; nothing if it is not evicted."""
    eviction = next((eviction for eviction in _evictions(moment.decide()) if eviction.pod.metadata.uid == uid), None)
    if eviction is None:
        return ()
    trial = _KubeletTrial(moment, eviction.pod, surroundings)
    because = eviction.because
    if not isinstance(because, ReclaimTarget):
        return tuple(_within_limits(trial, because))
    assert eviction.ranked is not None
    return tuple(_under_pressure(trial, SIGNALS[because.threshold.signal], eviction.ranked))


def _evictions(done: Pass) -> list[EvictPod]:
    return [command for command in done.commands if isinstance(command, EvictPod)]


def _place(order: tuple[RankedPod, ...], uid: str) -> int | None:
    evictable = (ranked_pod for ranked_pod in order if ranked_pod.spared is None)
    return next((at for at, ranked_pod in enumerate(evictable, start=1) if ranked_pod.pod.metadata.uid == uid), None)


class _KubeletTrial(Trial):
    """A pass, to be tried with changes to one of its pods."""

    def __init__(self, moment: KubeletMoment, pod: Pod, surroundings: Surroundings) -> None:
        super().__init__(pod, moment.pods, surroundings, moment.config.profile)
        self.moment = moment
        self.stats = moment.observation.pods.get(self.uid)
        self.with_margin: Callable[[PodStats], PodStats] = lambda stats: stats
        """Returns what a pod is to be spared with: a page more than it uses, of what counts."""

    def writing(self, change: Change) -> tuple[SecondDecision, None]:
        """Decide again with another manifest; scores do not count."""
        return self._verdict(replace(self.moment, pods=self.written(change)), self.own), None

    def using(self, stats: PodStats) -> SecondDecision:
        """Decide again with other figures of this one pod; the node is as short as before."""
        seen = self.moment.observation
        observation = replace(seen, pods={**seen.pods, self.uid: stats})
        return self._verdict(replace(self.moment, observation=observation), frozenset({self.uid}))

    def _verdict(self, moment: KubeletMoment, own: frozenset[str]) -> SecondDecision:
        # Of equals the first in the node's list is evicted, which is chance: a counterfactual must not depend on it.
        pods = tuple(sorted(moment.pods, key=lambda pod: pod.metadata.uid not in own))
        seen = moment.observation
        more = {uid: self.with_margin(stats) for uid, stats in seen.pods.items() if uid in own}
        done = replace(moment, pods=pods, observation=replace(seen, pods={**seen.pods, **more})).decide()
        evicted = [eviction.pod for eviction in _evictions(done)]
        if not own & {pod.metadata.uid for pod in evicted}:
            done = moment.decide()  # where it stands is told without any doubt in its disfavour
        others = sum(
            ranked_pod.spared is None and ranked_pod.pod.metadata.uid != self.uid for ranked_pod in done.ranking
        )
        place = _place(done.ranking, self.uid) or others + 1
        return SecondDecision.of(self.uid, own, evicted, place, others)


# ---- under pressure --------------------------------------------------------------------------------------------------


def _under_pressure(trial: _KubeletTrial, row: SignalRow, ranked: RankedPod) -> Iterator[Counterfactual]:
    uses = row.disk_use[trial.moment.config.layout]
    local = {volume.name for volume in trial.pod.spec.volumes if volume.is_local}

    def counts(use: DiskUse, name: str) -> bool:
        return use in uses and (use is not DiskUse.LOCAL_VOLUMES or name in local)

    if row.resource in {MEMORY, EPHEMERAL_STORAGE}:
        trial.with_margin = lambda stats: _with_less(stats, row, -PAGE_BYTES, counts)
        if ranked.over_request:
            yield from _request(trial, row)
    if row.resource == MEMORY and qos_class_of(trial.pod, trial.profile) is not QOSClass.GUARANTEED:
        yield from _guaranteed(trial)
    yield from _priority(trial, ranked)
    if trial.stats is not None:
        stats = trial.stats
        yield from using_less(
            lambda amount: trial.using(_with_less(stats, row, amount, counts)),
            ranked.usage,
            row.resource,
            trial.least_bytes(PodChange.LESS, row.resource),
        )


def _request(trial: _KubeletTrial, row: SignalRow) -> Iterator[Counterfactual]:
    """Yield the smallest request with which another pod goes first; one that does not fit only if none fits."""
    holders = [holder_of(trial.pod, each, row.resource, trial.profile) for each in _hungriest(trial, row)]
    most = trial.moment.observation.signals[row.signal].capacity
    found = [
        counterfactual
        for name in dict.fromkeys(holders)
        for counterfactual in trial.requesting(name, row.resource, most)
    ]
    yield from sorted(found, key=lambda counterfactual: not counterfactual.saves)[:1]


def _hungriest(trial: _KubeletTrial, row: SignalRow) -> list[str]:
    """Return the containers, those furthest over their own requests first."""
    used = {}
    for container in (trial.stats.containers or ()) if trial.stats is not None else ():
        disk = disk_bytes(container.rootfs) + disk_bytes(container.logs)
        used[container.name] = memory_bytes(container.memory) if row.resource == MEMORY else disk

    def excess(name: str) -> int:
        request = resources_of(trial.pod, name).requests.get(row.resource)
        return used.get(name, 0) - (0 if request is None else request.value)

    return sorted((container.name for container in trial.pod.running_containers), key=excess, reverse=True)


def _guaranteed(trial: _KubeletTrial) -> Iterator[Counterfactual]:
    measured = (trial.stats.containers or ()) if trial.stats is not None else ()
    return trial.guaranteeing({stats.name: memory_bytes(stats.memory) for stats in measured})


def _priority(trial: _KubeletTrial, ranked: RankedPod) -> Iterator[Counterfactual]:
    """Yield the smallest priority with which another goes first."""
    above = {(pod.spec.priority or 0) + 1 for pod in trial.moment.pods if pod.metadata.uid not in trial.own}
    tried = (
        trial.counterfactual(ManifestChange(PodChange.PRIORITY, partial(with_priority, priority=priority), priority))
        for priority in sorted(value for value in above if ranked.priority < value <= HIGHEST_USER_PRIORITY)
    )
    yield from islice((counterfactual for counterfactual in tried if counterfactual.decision.spared), 1)


# ---- limits of the pod's own -----------------------------------------------------------------------------------------


def _within_limits(trial: _KubeletTrial, excess: LocalStorageExcess) -> Iterator[Counterfactual]:
    """Yield the smallest limit that the pod would not have exceeded, and how much less it would have had to use."""
    assert trial.stats is not None
    stats, kind, pod = trial.stats, excess.kind, trial.pod
    if kind is LocalStorageLimit.EMPTY_DIR:
        holders = [excess.name]
    else:
        limited = [
            container.name for container in pod.running_containers if EPHEMERAL_STORAGE in container.resources.limits
        ]
        holders = [name for name in limited if excess.name in {"", name}]
    layer_counts = trial.moment.config.layout in {Layout.SINGLE, Layout.CONTAINERS_APART}

    def counts(use: DiskUse, name: str) -> bool:
        if kind is LocalStorageLimit.POD:
            return True
        if use is DiskUse.ROOTFS and not layer_counts:
            return False
        return (use is DiskUse.LOCAL_VOLUMES) == (kind is LocalStorageLimit.EMPTY_DIR) and name == excess.name

    trial.with_margin = lambda stats: _less_disk(stats, -PAGE_BYTES, counts, inodes=False)
    yield from islice((counterfactual for name in holders for counterfactual in _limit_of(trial, excess, name)), 1)
    yield from using_less(
        lambda amount: trial.using(_less_disk(stats, amount, counts, inodes=False)),
        excess.used_bytes,
        EPHEMERAL_STORAGE,
    )


def _limit_of(trial: _KubeletTrial, excess: LocalStorageExcess, name: str) -> Iterator[Counterfactual]:
    is_volume = excess.kind is LocalStorageLimit.EMPTY_DIR
    stated = excess.limit if is_volume else resources_of(trial.pod, name).limits[EPHEMERAL_STORAGE]

    def limiting(amount: int) -> Change:
        if is_volume:
            return lambda pod: with_size_limit(pod, name, amount)
        return lambda pod: with_limit(pod, name, EPHEMERAL_STORAGE, amount)

    most = stated.value + excess.used_bytes + MIB
    found = least(stated.value + 1, most, MIB, lambda amount: trial.writing(limiting(amount))[0].spared)
    if found is not None:
        edits = edits_between(trial.pod, limiting(found)(trial.pod))
        yield trial.counterfactual(
            ManifestChange(PodChange.LIMIT, limiting(found), found, str(excess.kind), name, edits)
        )


# ---- a pod that uses less --------------------------------------------------------------------------------------------

_Part = TypeVar("_Part", FsStats, VolumeStats)
_Counts = Callable[[DiskUse, str], bool]
"""Whether a part of a pod's disk counts: what it is, and of which container, or which volume."""


def _with_less(stats: PodStats, row: SignalRow, amount: int, counts: _Counts) -> PodStats:
    """Return the statistics of a pod that uses less of what a signal is about."""
    if row.resource == MEMORY:
        memory = stats.memory
        if memory is None:
            return stats
        return replace(stats, memory=replace(memory, working_set_bytes=(memory.working_set_bytes or 0) - amount))
    if any(row.disk_use.values()):
        return _less_disk(stats, amount, counts, inodes=row.resource != EPHEMERAL_STORAGE)
    processes = stats.process_stats
    assert processes is not None
    return replace(stats, process_stats=replace(processes, process_count=(processes.process_count or 0) - amount))


def _less_disk(stats: PodStats, amount: int, counts: _Counts, *, inodes: bool) -> PodStats:
    """Return the statistics of a pod that keeps less on disk, of what counts; the first parts go first."""
    figure = "inodes_used" if inodes else "used_bytes"
    rest = amount

    def smaller(part: _Part) -> _Part:
        nonlocal rest
        held = getattr(part, figure) or 0
        taken = min(rest, held)
        rest -= taken
        return replace(part, **{figure: held - taken})

    def container(each: ContainerStats) -> ContainerStats:
        rootfs, logs = each.rootfs, each.logs
        if rootfs is not None and counts(DiskUse.ROOTFS, each.name):
            rootfs = smaller(rootfs)
        if logs is not None and counts(DiskUse.LOGS, each.name):
            logs = smaller(logs)
        return replace(each, rootfs=rootfs, logs=logs)

    containers = tuple(map(container, stats.containers or ()))
    volumes = tuple(
        smaller(volume) if counts(DiskUse.LOCAL_VOLUMES, volume.name) else volume for volume in stats.volumes
    )
    whole = stats.ephemeral_storage
    if whole is not None:
        rest = amount - rest
        whole = smaller(whole)
    return replace(stats, containers=containers, volumes=volumes, ephemeral_storage=whole)
