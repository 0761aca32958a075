"""``podqos blast``: the impact of a leak in each pod on its neighbours: who dies, how soon, and what kills them.

Each pod leaks in turn, slowly and fast, in a simulation of its node (``sim.blast``). The nodes are those of a scenario
at its beginning, which brings its own kubelets and Kubernetes version; or the one node of a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from podqos.agent.journal import By
from podqos.amounts import counted, listed, mebibytes, rounded
from podqos.errors import InputError, InvalidArgument
from podqos.eviction.ranking import Policy
from podqos.model.assumption import of_version
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import QOSClass
from podqos.model.snapshot import Snapshot
from podqos.naming import naming, stated_with
from podqos.objects.spreading import Progress
from podqos.orders.growing import SYSTEM
from podqos.questions.node import NodeState
from podqos.sim.blast import (
    Blast,
    BlastNode,
    BlastPods,
    BlastRadius,
    EvictedBefore,
    Leak,
    leaks,
    nodes_now,
    radius_of,
    system_leak,
    victims_of,
)
from podqos.sim.engine.curve import constant
from podqos.sim.scenario.scenario import Filesystem, MachineSpec, Scenario, SystemDemand
from podqos.text.style import Style, columns, wrapped
from podqos.text.tables import Table

# A node of which nothing is known but its memory: enough of everything else.
_PLENTY_CPU_MILLI = 1_000_000
_PLENTY = Filesystem(capacity_bytes=1 << 50, inodes=1 << 40)
_SHOWN_PODS = 3
_MOST_NAMED = 3
Spread = Callable[..., Iterator[Any]]
"""``spread(task, inputs, workers=, progress=)`` yields ``task(input)`` for each, in order, from so many processes."""
_OfNode = tuple[list[Blast], tuple[EvictedBefore, ...]]


def blast(
    source: Scenario | NodeState,
    slow_bytes_per_second: int = 4 << 20,
    fast_bytes_per_second: int = 1 << 30,
    *,
    spread: Spread,
    cores: int,
    policy: Policy | None = None,
    growing: str | None = None,
    progress: Progress | None = None,
) -> BlastRadius:
    """Let each pod leak in turn, slowly and fast, and return which other pods die, how soon and what kills them.

    ``policy`` overrides how the kubelet ranks. ``growing`` is the only pod to leak, or ``system``: what runs besides
    pods. ``progress`` gets how many leaks are done, and how many there are; ``spread`` computes them on ``cores``.
    """
    rates = tuple(dict.fromkeys((slow_bytes_per_second, fast_bytes_per_second)))
    neighbours: frozenset[str] = frozenset()
    if isinstance(source, Scenario):
        found, profile, policy = nodes_now(source), source.profile, policy or source.policy
        options, assumptions = source.options, of_version(profile)
    else:
        source.cgroups()  # a kubelet that does not start there is an error
        found, profile = (pods_of_node(source.snapshot, source.kubelet.config),), source.profile
        options, assumptions, neighbours = None, source.growing_on, source.neighbours
    nodes = [node for node in found if node.pods]
    set_up = partial(BlastNode, slowest=min(rates), profile=profile, policy=policy, options=options)
    every = partial(_every, rates=rates, growing=_growing(growing, nodes))
    at_once = len(nodes) >= cores > 1
    done = (_at_once if at_once else _one_by_one)(set_up, nodes, every, partial(spread, workers=cores), progress)
    blasts = [each for of_node, _ in done for each in of_node]
    evicted_before = [before for _, evicted in done for before in evicted]
    if not blasts and not evicted_before:
        raise InputError("no pods there", fix="name a scenario with pods, or manifests with their usage")
    radius = radius_of(
        blasts,
        slow=slow_bytes_per_second,
        fast=fast_bytes_per_second,
        assumptions=assumptions,
        evicted_before=evicted_before,
    )
    own = replace(radius, leaks=tuple(leak for leak in radius.leaks if leak.pod not in neighbours))
    return replace(own, headline=headline(own), victims=victims_of(own.leaks))


_SetUp = Callable[[BlastPods], BlastNode]
_Leaks = Callable[[BlastPods], Iterator[Leak]]


def _at_once(
    set_up: _SetUp, nodes: Sequence[BlastPods], every: _Leaks, spread: Spread, told: Progress | None
) -> list[_OfNode]:
    """Let each core take one node after the other."""

    def of_node(pods: BlastPods) -> _OfNode:
        node = set_up(pods)
        return [node.unleash(leak) for leak in every(node.pods)], node.evicted_before

    total = _count(nodes, every)
    progress = None if told is None else lambda done, _: told(done * total // len(nodes), total)
    return list(spread(of_node, nodes, progress=progress))


def _one_by_one(
    set_up: _SetUp, nodes: Sequence[BlastPods], every: _Leaks, spread: Spread, told: Progress | None
) -> list[_OfNode]:
    """Let all cores simulate the leaks of one node after the other."""
    done, total = 0, _count(nodes, every)
    found = []
    for pods in nodes:
        node = set_up(pods)
        own = list(every(node.pods))
        progress = None if told is None else lambda simulated, _, before=done: told(before + simulated, total)
        found.append((list(spread(node.unleash, own, progress=progress)), node.evicted_before))
        done += len(own)
    if told is not None:
        told(total, total)
    return found


def _every(node: BlastPods, *, rates: Sequence[int], growing: frozenset[str] | None) -> Iterator[Leak]:
    """Yield what leaks: every pod, those of ``growing``, or what runs besides pods."""
    for rate in rates:
        if growing is None or growing != {SYSTEM}:
            yield from (leak for leak in leaks(node, rate) if growing is None or leak.pod in growing)
        else:
            yield system_leak(rate)


def _growing(name: str | None, nodes: Sequence[BlastPods]) -> frozenset[str] | None:
    """Return the pods that are meant, or ``system``, unless a pod is called that; None for every pod."""
    if name is None:
        return None
    keys = [pod.key for node in nodes for pod, _ in node.pods]
    found = frozenset(key for key in keys if name in {key, key.partition("/")[2]})
    # The name of a workload stands for all its pods.
    found = found or frozenset(key for key in keys if f"/{key}-".find(f"/{name}-") >= 0)
    if not found and name == SYSTEM:
        return frozenset({SYSTEM})
    if not found:
        some = ", ".join(sorted(keys)[:_SHOWN_PODS])
        raise InvalidArgument(f"no such pod: {name}", where=naming("growing"), fix=f"such as {some}, or {SYSTEM}")
    return found


def _count(nodes: Sequence[BlastPods], every: _Leaks) -> int:
    return sum(len(list(every(node))) for node in nodes)


def pods_of_node(snapshot: Snapshot, kubelet: KubeletConfiguration) -> BlastPods:
    """Return a node of which nothing is known but its memory, with what its containers hold."""
    # The simulation knows no memory of pods outside containers.
    system_bytes = max(0, snapshot.node.system_bytes + snapshot.node.pods_other_bytes)
    spec = MachineSpec(
        name=snapshot.node.name or "node",
        memory_bytes=snapshot.node.memory_bytes,
        swap_bytes=snapshot.node.swap_bytes,
        cpu_milli=_PLENTY_CPU_MILLI,
        nodefs=_PLENTY,
        system=SystemDemand(anon_bytes=constant(system_bytes)),
        config=kubelet,
    )
    return BlastPods(spec, tuple((entry.pod, entry.containers) for entry in snapshot.pods))


# ---- as text ---------------------------------------------------------------------------------------------------------


def headline(report: BlastRadius) -> str:
    """Return which pods take others down when they leak, and what the most dangerous of them does."""
    harmful = [leak for leak in report.leaks if leak.others]
    if not report.leaks:
        return "No pod is left to leak."
    if all(leak.is_of_system for leak in report.leaks):
        return _of_system(harmful)
    if not harmful:
        return "No pod takes others down: a leaking pod is always the first to be OOM-killed or evicted."
    return f"{_who(report, harmful)} {_worst(harmful)}"


def _of_system(harmful: Sequence[Blast]) -> str:
    if not harmful:
        return "System daemons that leak take no pod down."
    worst = harmful[0]
    taken, first = counted(worst.pods_taken, "pod"), rounded(worst.others[0].after_seconds)
    return f"System daemons that leak {_rate_of(worst)} take {taken} down, the first after {first}."


def _who(report: BlastRadius, harmful: Sequence[Blast]) -> str:
    pods = list(dict.fromkeys((blast.node, blast.pod) for blast in harmful))
    names = [pod for _, pod in pods[:_MOST_NAMED]]
    more = [f"{len(pods) - _MOST_NAMED:,} more"] if len(pods) > _MOST_NAMED else []
    who = listed([*names, *more])
    if report.pods == 1:
        return f"{who} takes others down when it leaks."
    takes = "takes others down when it leaks" if len(pods) == 1 else "take others down when they leak"
    return f"{len(pods):,} of {counted(report.pods, 'pod')} {takes}: {who}."


def _worst(harmful: Sequence[Blast]) -> str:
    """Return what the most dangerous leak does."""
    leak = harmful[0]
    first = leak.others[0]
    is_alone = len({(blast.node, blast.pod) for blast in harmful}) == 1
    who = f"At {_rate_of(leak)} it" if is_alone else f"Worst: {leak.pod} at {_rate_of(leak)}"
    how = f"{'OOM-killed' if first.by is By.KERNEL else 'evicted'} after {rounded(first.after_seconds)}"
    if leak.pods_taken == 1:
        return f"{who} takes down {first.pod}, {how}."
    return f"{who} takes down {leak.pods_taken:,} pods, first {first.pod}, {how}."


def _rate_of(leak: Blast) -> str:
    """Return how fast a leak grows."""
    return f"{mebibytes(leak.rate_bytes_per_second)}/s"


_SHOWN = 20
_WIDEST_MATRIX = 24
_SHOWN_EVICTED = 3
_SHOWN_VICTIMS = 3
_CSV: Mapping[str, Callable[[Blast], object]] = {
    **{name: attrgetter(name) for name in Blast.__struct_fields__[:6]},
    "others_killed": lambda blast: blast.pods_taken,
    "guaranteed_killed": lambda blast: sum(death.qos_class is QOSClass.GUARANTEED for death in blast.others),
    "critical_killed": lambda blast: sum(death.is_critical for death in blast.others),
    "first_other": lambda blast: next((death.pod for death in blast.others), None),
    "first_other_after_seconds": lambda blast: next((death.after_seconds for death in blast.others), None),
    "ends_after_seconds": lambda blast: blast.end and blast.end.after_seconds,
    "ended_by": lambda blast: blast.end and blast.end.by,
}


def table(report: BlastRadius, style: Style, *, verbose: bool = False) -> list[str]:
    """Return the most dangerous pods, and for a small node the impact matrix."""
    if not report.leaks:
        return wrapped(f"{report.headline} {_evicted_before(report)}", style, "")
    rates = {report.slow_bytes_per_second: "slow", report.fast_bytes_per_second: "fast"}
    harmful = [leak for leak in report.leaks if leak.others]
    slow, fast = _rate(report.slow_bytes_per_second), _rate(report.fast_bytes_per_second)
    where = "one node" if report.nodes == 1 else f"{report.nodes:,} nodes"
    is_of_system = all(leak.is_of_system for leak in report.leaks)
    what = "System daemons" if is_of_system else counted(report.pods, "pod")
    lines = wrapped(style.strong(report.headline), style, "")
    lines.append(f"{what} on {where}, {'each ' if report.pods > 1 else ''}leaking {slow} (slow) and {fast} (fast).")
    if report.evicted_before:
        lines += wrapped(_evicted_before(report), style, "")
    if not harmful:
        return lines
    shown = harmful if verbose else style.shown(harmful, _SHOWN)
    title = "Victims" if is_of_system else "The most dangerous pods"
    lines += ["", style.strong(title)]
    headers = ("POD", "NODE", "CLASS", "LEAK", "OTHERS", "FIRST AFTER", "TAKES DOWN", "OUTCOME")
    lines += columns(headers, [_row(blast, rates, style) for blast in shown], style, "  ")
    if len(shown) < len(harmful):
        lines.append(f"  … and {len(harmful) - len(shown):,} more ({stated_with('verbose')})")
    names = list(dict.fromkeys(leak.pod for leak in report.leaks))
    if report.nodes == 1 and 1 < len(names) <= _WIDEST_MATRIX:
        lines += ["", *_matrix(report, rates, style)]
    return lines


def _evicted_before(report: BlastRadius) -> str:
    evicted = [f"{before.pod} on {before.node}" for before in report.evicted_before]
    more = len(evicted) - _SHOWN_EVICTED
    shown = listed(evicted if more <= 0 else [*evicted[:_SHOWN_EVICTED], f"{more:,} more"])
    begin = f" Leaks begin when {'it is' if len(evicted) == 1 else 'they are'} gone." if report.leaks else ""
    return f"Evicted without any leak: {shown}.{begin}"


def csv_table(report: BlastRadius) -> Table:
    """Return headings, and a row per pod and rate."""
    return _CSV, ([column(leak) for column in _CSV.values()] for leak in report.leaks)


def _row(each: Blast, rates: Mapping[int, str], style: Style) -> tuple[str, ...]:
    return (
        each.pod,
        each.node,
        "–" if each.qos_class is None else style.qos_class(each.qos_class),
        rates.get(each.rate_bytes_per_second, _rate(each.rate_bytes_per_second)),
        str(each.pods_taken),
        rounded(each.others[0].after_seconds),
        _takes(each, style),
        _ends(each),
    )


def _takes(each: Blast, style: Style) -> str:
    """Return the victims, in order; critical and Guaranteed pods stand out."""
    counts: dict[str, int] = {}
    for death in each.others:
        name = death.pod
        if death.is_critical or death.qos_class is QOSClass.GUARANTEED:
            name = style.alarm(f"{name} ({'critical' if death.is_critical else death.qos_class})")
        counts[name] = counts.get(name, 0) + 1
    names = [f"{name} ×{count}" if count > 1 else name for name, count in counts.items()]
    shown = style.shown(names, _SHOWN_VICTIMS)
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")


def _ends(each: Blast) -> str:
    if each.end is None:
        return "never"
    how = "OOM-killed" if each.end.by is By.KERNEL else "evicted"
    return f"{how} after {rounded(each.end.after_seconds)}"


def _matrix(report: BlastRadius, rates: Mapping[int, str], style: Style) -> list[str]:
    """Return the impact matrix: a row per pod that leaks, a column per pod that may die."""
    names = sorted({leak.pod for leak in report.leaks})
    by_pod: dict[str, dict[str, set[str]]] = {name: {} for name in names}
    for leak in report.leaks:
        for death in leak.others:
            by_pod[leak.pod].setdefault(death.pod, set()).add(rates.get(leak.rate_bytes_per_second, "?"))
    victims = report.victims
    rows = [
        (name, *(_cell(by_pod[name].get(victim, set()), is_self=name == victim) for victim in victims), "")
        for name in names
    ]
    legend = "s: at the slow rate, f: at the fast rate, ·: not at all"
    return [style.strong(f"Impact matrix ({legend})"), *columns(("LEAKS", *victims, ""), rows, style, "  ")]


def _cell(found: set[str], *, is_self: bool) -> str:
    if is_self:
        return "–"
    return "".join(letter for letter, name in (("s", "slow"), ("f", "fast")) if name in found) or "·"


def _rate(rate: int) -> str:
    return f"{mebibytes(rate)}/s"
