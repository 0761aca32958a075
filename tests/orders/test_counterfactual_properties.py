"""No change is said to save a pod that does not: every one is decided again here, by the public decisions alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eviction.nodes import pod, volume
from eviction.nodes import using as stats_of
from orders.moments import short_of
from orders.nodes import GI, MI, settings, snapshot
from orders.nodes import using as pod_using
from podqos.admission.priority import HIGHEST_USER_PRIORITY
from podqos.admission.validation import validate_resources
from podqos.eviction.pods import local_storage_excess
from podqos.eviction.ranking import Policy, Ranking, rank
from podqos.eviction.signals import SIGNALS, Layout, Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import select
from podqos.model.pod import EmptyDir
from podqos.model.profile import LATEST
from podqos.model.quantity import Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.orders.counterfactual import PodChange, Surroundings
from podqos.orders.memory import OOMDomain, container_processes
from podqos.orders.trials import KernelMoment, kernel_counterfactuals, kubelet_counterfactuals
from podqos.placement.pods import demand_of

UNIT = 256 * MI
SIGNALS_TRIED = (
    (Signal.MEMORY, Layout.SINGLE),
    (Signal.ALLOCATABLE_MEMORY, Layout.SINGLE),
    (Signal.NODEFS, Layout.SINGLE),
    (Signal.NODEFS, Layout.DEDICATED),
    (Signal.NODEFS_INODES, Layout.SINGLE),
    (Signal.IMAGEFS, Layout.DEDICATED),
    (Signal.IMAGEFS_INODES, Layout.DEDICATED),
    (Signal.PID, Layout.SINGLE),
)
PRIORITIES = (0, 0, 0, 1, 7, HIGHEST_USER_PRIORITY, 2_000_000_000)


@st.composite
def pods_and_use(draw, resource):
    """Draw pods of one container, each with a request, a limit or none, a priority, and what it uses."""
    drawn = []
    for index in range(draw(st.integers(2, 5))):
        request = draw(st.integers(0, 8))
        limit = draw(st.one_of(st.none(), st.integers(max(1, request), 16)))
        stated = resource if resource in {MEMORY, EPHEMERAL_STORAGE} else EPHEMERAL_STORAGE
        size_limit = draw(st.one_of(st.none(), st.none(), st.integers(1, 16)))
        made = pod(
            f"p{index}",
            f"{stated}={request * 256}Mi" if request else "",
            f"{stated}={limit * 256}Mi" if limit else "",
            priority=draw(st.sampled_from(PRIORITIES)),
            volumes=(
                volume("scratch", empty_dir=EmptyDir("", size_limit and Quantity.parse(f"{size_limit * 256}Mi"))),
            ),
        )
        drawn.append((made, draw(st.one_of(st.none(), st.integers(0, 16)))))
    return drawn


def _stats(made, used, signal, layout):
    resource = SIGNALS[signal].resource
    if used is None:
        return None
    if resource == MEMORY:
        return stats_of(made, used * UNIT // MI)
    if resource == "pids":
        return stats_of(made, processes=used)
    if signal in {Signal.IMAGEFS, Signal.IMAGEFS_INODES}:
        return stats_of(made, rootfs=used * UNIT, ephemeral=used * UNIT)
    if layout is Layout.DEDICATED:
        return stats_of(made, logs=used * UNIT, ephemeral=used * UNIT)
    return stats_of(made, volumes={"scratch": used * UNIT}, ephemeral=used * UNIT)


@st.composite
def passes(draw):
    """Draw a pass on a node that is short of something; the first pods may come from one manifest."""
    signal, layout = draw(st.sampled_from(SIGNALS_TRIED))
    drawn = draw(pods_and_use(SIGNALS[signal].resource))
    alike = [made for made, _ in drawn[: draw(st.integers(0, 2))]]
    seen = []
    for made, used in drawn:
        pod_made = replace(made, spec=alike[0].spec) if made in alike else made
        seen.append((pod_made, _stats(pod_made, used, signal, layout)))
    allocatable = draw(st.integers(1, 40)) * UNIT
    return (
        signal,
        short_of(signal, *seen, layout=layout, policy=draw(st.sampled_from((None, *Policy)))),
        {MEMORY: allocatable, EPHEMERAL_STORAGE: allocatable, "cpu": 4000},
        frozenset(made.metadata.uid for made in alike),
    )


def _goes(moment, signal, pods, stats):
    """Return the uids of all pods that can go first, in any order of the node's list."""
    config = moment.config
    over = {
        each.metadata.uid
        for each in pods
        if each.metadata.uid in stats
        and local_storage_excess(each, stats[each.metadata.uid], config.layout)
        and not each.is_critical
    }
    if over:
        return over
    ranking = Ranking(signal, config.layout, config.policy, hard=True, profile=config.profile)
    orders = (rank(sorted(pods, key=lambda each: each is not first), stats, ranking) for first in pods)
    firsts = (next((each for each in order if each.spared is None), None) for order in orders)
    return {each.pod.metadata.uid for each in firsts if each is not None}


def _a_page_more(stats, own, signal):
    """Return the figures of a moment at which some pods use a page more of memory, or of a disk."""
    resource = SIGNALS[signal].resource
    if resource == "pids":
        return stats
    return {
        uid: _less(each, -PAGE_BYTES, resource, inodes=False) if uid in own else each for uid, each in stats.items()
    }


def _fits(before, after, allocatable):
    """Whether the node has room for all that is requested more than before."""
    old, new = _requested(before), _requested(after)
    return all(amount <= allocatable[name] for name, amount in new.items() if amount > old.get(name, 0))


def _requested(pods):
    total = {}
    for each in pods:
        for name, amount in demand_of(each).requested.items():
            total[name] = total.get(name, 0) + amount
    return total


def _request(made, resource):
    return made.spec.containers[0].resources.requests.get(resource, Quantity.parse("0")).value


@given(passes())
def test_whatever_saves_a_pod_from_the_kubelet_does_so_when_it_decides_again(drawn):
    """With the change in the manifest, and so in all pods that come from it."""
    signal, moment, allocatable, alike = drawn
    stats = moment.observation.pods
    for uid in _goes(moment, signal, moment.pods, stats):
        old = next(each for each in moment.pods if each.metadata.uid == uid)
        own = alike if uid in alike else {uid}
        for counterfactual in kubelet_counterfactuals(moment, uid, Surroundings(allocatable, frozenset(own))):
            if not counterfactual.saves or counterfactual.pod is None:
                continue
            pods = _written(moment.pods, counterfactual.pod, own)
            assert not own & _goes(moment, signal, pods, stats)
            assert not own & _goes(moment, signal, pods, _a_page_more(stats, own, signal)), "nor with a page more"
            assert validate_resources(counterfactual.pod) == ()
            assert _fits(moment.pods, pods, allocatable)
            assert (counterfactual.pod.spec.priority or 0) <= HIGHEST_USER_PRIORITY
            if counterfactual.change is PodChange.REQUEST:
                assert (
                    counterfactual.amount
                    == _request(counterfactual.pod, counterfactual.resource)
                    > _request(old, counterfactual.resource)
                )
                assert next(each for each in _ranked(moment, signal) if each.pod is old).over_request


@given(passes())
def test_the_request_or_limit_that_saves_a_pod_is_the_smallest_in_whole_mebibytes(drawn):
    signal, moment, _, _ = drawn
    stats = moment.observation.pods
    for uid in _goes(moment, signal, moment.pods, stats):
        for counterfactual in kubelet_counterfactuals(moment, uid):
            if counterfactual.change is PodChange.REQUEST and counterfactual.amount - MI > 0:
                smaller = _stating("requests", counterfactual)
            elif counterfactual.change is PodChange.LIMIT and not counterfactual.resource.startswith("emptydir"):
                smaller = _stating("limits", counterfactual)
            else:
                continue
            with_more = _a_page_more(stats, {uid}, signal)
            assert uid in _goes(moment, signal, _written(moment.pods, smaller, {uid}), with_more)


def _stating(which, counterfactual):
    """Return the pod with a mebibyte less than what saves it."""
    (main,) = counterfactual.pod.spec.containers
    resource = counterfactual.resource if which == "requests" else EPHEMERAL_STORAGE
    stated = getattr(main.resources, which) | {resource: Quantity.of_units(counterfactual.amount - MI, "BinarySI")}
    changed = replace(main, resources=replace(main.resources, **{which: stated}))
    return replace(counterfactual.pod, spec=replace(counterfactual.pod.spec, containers=(changed,)))


def _written(pods, changed, own):
    return tuple(
        replace(each, spec=changed.spec, status=changed.status) if each.metadata.uid in own else each for each in pods
    )


def _ranked(moment, signal):
    config = moment.config
    return rank(moment.pods, moment.observation.pods, Ranking(signal, config.layout, config.policy))


@given(passes())
def test_the_use_that_would_have_saved_a_pod_is_the_most_that_does(drawn):
    """A mebibyte more (an inode, a process), and it goes again."""
    signal, moment, _, _ = drawn
    resource = SIGNALS[signal].resource
    before = moment.observation.pods
    for uid in _goes(moment, signal, moment.pods, before):
        less = [
            counterfactual
            for counterfactual in kubelet_counterfactuals(moment, uid)
            if counterfactual.change is PodChange.LESS
        ]
        for counterfactual in less:
            step = MI if counterfactual.resource in {MEMORY, EPHEMERAL_STORAGE} else 1
            with_less = {**before, uid: _less(before[uid], counterfactual.amount, resource)}
            assert uid not in _goes(moment, signal, moment.pods, _a_page_more(with_less, {uid}, signal))
            with_more = {**before, uid: _less(before[uid], counterfactual.amount - step, resource)}
            assert uid in _goes(moment, signal, moment.pods, _a_page_more(with_more, {uid}, signal))


def _less(stats, amount, resource, *, inodes=True):
    if resource == MEMORY:
        held = stats.memory.working_set_bytes
        return replace(stats, memory=replace(stats.memory, working_set_bytes=held - amount))
    if resource == "pids":
        return replace(
            stats, process_stats=replace(stats.process_stats, process_count=stats.process_stats.process_count - amount)
        )

    def part(each):
        if each is None:
            return None
        files = amount if inodes else 0
        return replace(each, used_bytes=each.used_bytes - amount, inodes_used=each.inodes_used - files)

    (container,) = stats.containers
    return replace(
        stats,
        containers=(replace(container, rootfs=part(container.rootfs), logs=part(container.logs)),),
        volumes=tuple(map(part, stats.volumes)),
        ephemeral_storage=part(stats.ephemeral_storage),
    )


# ---- the kernel ------------------------------------------------------------------------------------------------------


@st.composite
def ooms(draw):
    """Draw a node whose memory has run out, and how much is lacking."""
    used = []
    for made, amount in draw(pods_and_use(MEMORY)):
        count = draw(st.integers(1, 3))
        used.append(pod_using(made, f"{(amount or 1) * 256}Mi", processes=count))
    node = snapshot(*used)
    lacking_bytes = draw(st.sampled_from((0, 1, UNIT, 8 * UNIT)))
    allocatable = draw(st.integers(1, 40)) * UNIT
    moment = KernelMoment(node, settings(node), OOMDomain(64 * GI), LATEST, lacking_bytes)
    return moment, {MEMORY: allocatable, "cpu": 4000}


def _killed(moment, node, spare=None):
    """Return the uids of those whom the kernel kills until enough is free, one process after the other."""
    processes = {
        process.pid: (process, each.pod.pod.metadata.uid)
        for each in container_processes(node, moment.settings)
        for process in each.processes
    }
    if spare is not None:
        processes = {pid: (spare(process, uid), uid) for pid, (process, uid) in processes.items()}
    killed, freed = [], 0
    while processes and (not killed or freed < moment.lacking_bytes):
        victim = select((process for process, _ in processes.values()), moment.domain.total_bytes // 4096).victim
        killed.append(processes.pop(victim.process.pid)[1])
        freed += victim.process.rss_pages * 4096
    return killed


@given(ooms())
def test_whatever_saves_a_container_from_the_kernel_does_so_when_it_chooses_again(drawn):
    moment, allocatable = drawn
    uid = _killed(moment, moment.snapshot)[0]
    found = kernel_counterfactuals(moment, (uid, "main"), Surroundings(allocatable))
    old = next(entry.pod for entry in moment.snapshot.pods if entry.pod.metadata.uid == uid)
    for counterfactual in found.counterfactuals:
        if not counterfactual.saves:
            continue
        if counterfactual.change is PodChange.LESS:
            assert uid not in _killed(moment, moment.snapshot, _lighter(moment, uid, counterfactual.amount))
            continue
        pods = tuple(
            replace(entry, pod=counterfactual.pod) if entry.pod.metadata.uid == uid else entry
            for entry in moment.snapshot.pods
        )
        assert uid not in _killed(moment, replace(moment.snapshot, pods=pods))
        assert validate_resources(counterfactual.pod) == ()
        assert _fits([each.pod for each in moment.snapshot.pods], [each.pod for each in pods], allocatable)
        if counterfactual.change is PodChange.REQUEST:
            assert counterfactual.amount == _request(counterfactual.pod, MEMORY) > _request(old, MEMORY)
        limit = counterfactual.pod.spec.containers[0].resources.limits.get(MEMORY)
        used = next(entry.containers[0].anon_bytes for entry in pods if entry.pod.metadata.uid == uid)
        assert limit is None or used <= limit.value or counterfactual.change is PodChange.REQUEST


def _lighter(moment, uid, less_bytes):
    count = next(entry.containers[0].processes for entry in moment.snapshot.pods if entry.pod.metadata.uid == uid)
    pages = -(-less_bytes // 4096 // count)
    return lambda process, owner: (
        replace(process, rss_pages=max(0, process.rss_pages - pages)) if owner == uid else process
    )
