"""What would have kept the kernel from killing a container: its choice, repeated with one change.

The OOM killer continues until enough is free. So a container is spared only if those with a higher badness free what is
missing; each counts with its worst process alone, and within the precision of the kernel's counters the container
itself is assumed to be killed first, because that is chance. Between two kills it gets what it was waiting for, and
counts with that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.usage import memory_bytes
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import is_within, parent_path
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.model.snapshot import PodUsage, Snapshot
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.counterfactual.counterfactual import (
    ALONE,
    Change,
    Counterfactual,
    ManifestChange,
    PodChange,
    SecondDecision,
    Surroundings,
    Trial,
    using_less,
)
from podqos.survival.counterfactual.pod_changes import (
    MIB,
    edits_between,
    holder_of,
    in_mebibytes,
    resources_of,
    with_headroom,
    with_limit,
    with_request,
)
from podqos.survival.node.processes import ContainerProcesses, container_processes
from podqos.survival.orders.orders import KilledContainer, OOMDomain, kernel_order

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
    trial = _Trial(moment, victim, containers, surroundings)
    now = trial.decision(trial.containers, trial.own)
    has_others = any(uid != trial.uid for uid, _ in containers)
    tried = () if now.spared else _counterfactuals(trial) if has_others else _own_limit(trial)
    return KernelPlace(now.place, now.others, tuple(tried))


_Key = tuple[str, str]
"""A container: the uid of its pod, and its name."""


class _Trial(Trial):
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


def _counterfactuals(trial: _Trial) -> Iterator[Counterfactual]:
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


def _own_limit(trial: _Trial) -> Iterator[Counterfactual]:
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
