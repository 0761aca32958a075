"""``podqos drift``: what a change to manifests does to both kill orders: two versions on one node, with the same usage.

Both versions are admitted, injectors first, with the policies of each. Pods without measurements are taken to use what
the older version requests, so that every difference comes from the manifests. ``orders.drift`` compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.injectors import CustomInjector, Injector, inject
from podqos.amounts import counted, listed, mebibytes, verb
from podqos.errors import InputError, InvalidArgument
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.node import Node
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.naming import naming, stated_with
from podqos.objects.admitting import admitted_pod
from podqos.objects.assumptions import KUBELET_SETTINGS, cluster_assumptions, node_memory
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet, judged_cgroups, rules_of
from podqos.objects.node_pods import numbered
from podqos.objects.objects import Objects
from podqos.orders.drift import (
    DriftStatus,
    Identity,
    ManifestVersion,
    Order,
    ReversedPair,
    Standing,
    VersionWorkload,
    WorkloadDrift,
)
from podqos.orders.drift import drift as compared
from podqos.orders.pods import NodePod, pods_on_node
from podqos.orders.usage import UsageRow, assumed_amounts, from_usage, is_unmeasured, with_assumed
from podqos.orders.versions import DifferenceKind, PodChange, ResizeCost, Resizing
from podqos.placement.workloads import POD
from podqos.text.qos import kept_scores
from podqos.text.style import Style, columns, wrapped
from podqos.text.tables import Table

USAGE = Assumption("unmeasured usage", "the requests of the older version", stated_with("usage"))

MOST_CHARACTERS = 65_536
"""GitHub cuts longer comments."""
# Room for the heading, the last lines and what is said about the rest.
_FOR_TABLE, _FOR_DETAILS = 25_000, 35_000
_NAMED = 5
"""So many workloads of one sentence are named."""
_WORST_FIRST = (
    DriftStatus.BELOW_USAGE,
    DriftStatus.DOWNGRADED,
    DriftStatus.AHEAD,
    DriftStatus.MIXED,
    DriftStatus.ADDED,
    DriftStatus.REMOVED,
    DriftStatus.UPGRADED,
    DriftStatus.BACK,
    DriftStatus.CHANGED,
    DriftStatus.UNCHANGED,
)

# ---- the answer ------------------------------------------------------------------------------------------------------


class DriftReport(Listing[WorkloadDrift], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos drift -o json``."""

    old: str
    new: str
    kubernetes_version: str
    node_memory_bytes: int
    usage: str | None
    """The file with what pods use; null where it is assumed."""
    injectors: tuple[str, ...]
    workloads: tuple[WorkloadDrift, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Drift"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""

    def _listed(self) -> tuple[WorkloadDrift, ...]:
        return self.workloads

    @property
    def fails(self) -> bool:
        """Whether a workload is worse off."""
        return any(workload.fails for workload in self.workloads)

    @property
    def changed(self) -> list[WorkloadDrift]:
        """The workloads that changed in any way, worst first."""
        order = {status: place for place, status in enumerate(_WORST_FIRST)}
        return sorted(
            (each for each in self.workloads if each.status is not DriftStatus.UNCHANGED),
            key=lambda each: (not each.fails, each.is_shifted, order[each.status], each.workload),
        )


def drift(
    old: Objects,
    new: Objects,
    usage: Sequence[UsageRow] = (),
    *,
    usage_file: str | None = None,
    names: tuple[str, str] = ("old", "new"),
    injectors: Sequence[Injector | CustomInjector] = (),
    allowed: Collection[str] = (),
    node_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    profile: Profile = LATEST,
) -> DriftReport:
    """Compare two versions of manifests, workload by workload.

    ``usage`` is what pods use in both, from the file ``usage_file``. ``names`` are those of the versions. ``allowed``
    are workloads that may be worse off, as ``name`` or ``namespace/name``.
    """
    named = [row.pod for row in usage]
    before, after = (_version(objects, injectors, named, profile) for objects in (old, new))
    if not before and not after:
        raise InputError("no workloads in either version", fix="name files or directories with manifests")
    identities = {*before, *after}
    known = {name for identity in identities for name in (identity.name, f"{identity.namespace}/{identity.name}")}
    for name in sorted({*allowed} - known):
        raise InvalidArgument(f"no such workload: {name}", where=naming("allow"), fix="name one from the manifests")
    memory_bytes, assumptions = node_memory(node_memory_bytes, new.of(Node) or old.of(Node))
    of_cluster = dict.fromkeys(assumed for objects in (old, new) for assumed in cluster_assumptions(objects))
    kubelet = kubelet or DEFAULT_KUBELET
    settings = judged_cgroups(kubelet, memory_bytes=memory_bytes, profile=profile)
    versions, of_usage = _on_node(usage, before, after, NodeUsage(memory_bytes))
    found = compared(*versions, Ranking(Signal.MEMORY, profile=profile), settings, frozenset(allowed))
    return DriftReport(
        old=names[0],
        new=names[1],
        kubernetes_version=profile.version_text,
        node_memory_bytes=memory_bytes,
        usage=usage_file,
        injectors=tuple(injector.name for injector in injectors),
        workloads=tuple(map(with_words, found)),
        assumptions=(
            *rules_of(kubelet, profile),
            *assumptions,
            *of_usage,
            *(() if kubelet.is_stated else (KUBELET_SETTINGS,)),
            *of_cluster,
        ),
    )


# ---- the two versions ------------------------------------------------------------------------------------------------

_Version = dict[Identity, tuple[VersionWorkload, tuple[NodePod, ...]]]
"""The workloads of a version, each with the pods it has on a node."""


def _version(
    objects: Objects, injectors: Sequence[Injector | CustomInjector], named: Sequence[str], profile: Profile
) -> _Version:
    """Return the workloads as an API server would store them; ``named`` are pods that a usage file speaks of.

    What is wrong is noted with its place. Workloads that get their names from the API server are counted.
    """
    version: _Version = {}
    taken: set[str] = set()
    objects.check_kubelets()
    for found in objects.latest():
        pod: Pod | None = found.workload.pod
        injected: dict[str, str] = {}
        if not (found.workload.is_live and found.workload.kind == POD):
            try:
                for injector in injectors:
                    assert pod is not None
                    injection = inject(pod, injector, profile)
                    pod = injection.pod
                    injected.update({added.container.name: injection.injector for added in injection.added})
            except InputError as error:
                objects.refuse(found, f"{error.where}: {error.what}", error.fix)
                continue
            pod = admitted_pod(replace(found, workload=replace(found.workload, pod=pod)), objects, profile)
        if pod is None:
            continue
        pods = tuple(numbered(pods_on_node(replace(found.workload, pod=pod), named), taken))
        namespace, _, name = pod.key.partition("/")
        identity, number = Identity(namespace, found.workload.kind, name), 1
        while identity in version:
            number += 1
            identity = Identity(namespace, found.workload.kind, f"{name}#{number}")
        uids = tuple(entry.pod.metadata.uid for entry in pods)
        where = objects.source_name(found), objects.unit(found)
        version[identity] = VersionWorkload(identity, pod, uids, injected, *where), pods
    return version


def _on_node(
    rows: Sequence[UsageRow], old: _Version, new: _Version, node: NodeUsage
) -> tuple[tuple[ManifestVersion, ManifestVersion], tuple[Assumption, ...]]:
    """Return both versions with the same figures, and what of them is assumed.

    Rows about pods of one version do not disturb the other.
    """
    named = [_containers(version) for version in (old, new)]
    for row in rows:
        if not row.is_listed and not any(row.pod in containers for containers in named):
            raise InputError(f"no such pod: {row.pod}", where=row.where, fix="name a pod or workload in either version")
    versions = []
    unmeasured: list[Pod] = []
    for version, own, other in zip((old, new), named, reversed(named), strict=True):
        fitting = [fitted for row in rows if (fitted := _fitted(row, own, other)) is not None]
        known = from_usage([pod for _, pods in version.values() for pod in pods], fitting, node)
        older = {
            uid: old[identity][0].pod
            for identity, (workload, _) in version.items()
            if identity in old
            for uid in workload.uids
        }
        pods = tuple(with_assumed(entry, older.get(entry.pod.metadata.uid)) for entry in known.pods)
        unmeasured += [older.get(pod.pod.metadata.uid, pod.pod) for pod in known.pods if is_unmeasured(pod, ())]
        measured = {entry.pod.metadata.uid: entry for entry in known.pods if entry.stats is not None}
        workloads = tuple(workload for workload, _ in version.values())
        versions.append(ManifestVersion(workloads, Snapshot(node, pods), measured))
    usage = replace(USAGE, value=assumed_amounts(unmeasured, USAGE.value))
    return (versions[0], versions[1]), (usage,) if unmeasured else ()


def _containers(version: _Version) -> dict[str, list[str]]:
    """Return the containers of every pod, by all names that a usage file may use for it."""
    found: dict[str, list[str]] = {}
    for _, pods in version.values():
        for pod in pods:
            names = [container.name for container in pod.pod.running_containers]
            for key in (pod.pod.key, pod.workload):
                found[key] = found[key.partition("/")[2]] = names
    return found


def _fitted(row: UsageRow, own: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> UsageRow | None:
    """Return a row as it applies to a version: a container that it leaves out is the only one of some version."""
    containers = own.get(row.pod)
    if containers is None:
        return None
    name, alone = row.container, other.get(row.pod, [])
    if not name and len(containers) > 1 and len(alone) == 1:
        name = alone[0]
    if name and name not in containers and name in alone:
        return None
    return replace(row, container=name)


# ---- words -----------------------------------------------------------------------------------------------------------


def with_words(change: WorkloadDrift) -> WorkloadDrift:
    """Return what happened to a workload with its texts."""

    def told(pairs: Iterable[ReversedPair]) -> tuple[ReversedPair, ...]:
        return tuple(replace(pair, text=_overtakings((pair,), change.workload)[0]) for pair in pairs)

    return replace(
        change,
        differences=tuple(replace(each, text=_difference(each)) for each in change.differences),
        moved_ahead=told(change.moved_ahead),
        moved_back=told(change.moved_back),
        resize=None if change.resize is None else replace(change.resize, text=resize_words(change.resize)),
    )


def _difference(difference: PodChange) -> str:
    by = f" by {difference.injected_by}" if difference.injected_by else ""
    where = difference.container or "the pod"
    match difference.kind:
        case DifferenceKind.CONTAINER_ADDED:
            return f"container {where} was {'injected' if by else 'added'}{by}"
        case DifferenceKind.CONTAINER_REMOVED:
            return f"container {where} was removed"
        case DifferenceKind.POD_RESOURCES:
            return "pod-level resources were " + ("added" if difference.after else "removed")
        case DifferenceKind.PRIORITY:
            return f"priority {difference.before} → {difference.after}"
        case _:
            return f"{where}: {difference.field} {difference.before or 'none'} → {difference.after or 'none'}"


def resize_words(cost: ResizeCost) -> str:
    """Return what it takes to give running pods their new resources."""
    scores = f"; {kept_scores(cost.keeps_scores)}" if cost.keeps_scores else ""
    match cost.outcome:
        case Resizing.IN_PLACE:
            return f"running pods can be resized in place, without a restart{scores}"
        case Resizing.RESTART:
            return f"running pods can be resized in place; restarts: {', '.join(cost.restarts)} (resizePolicy){scores}"
        case Resizing.BELOW_USAGE:
            return "running pods are not resized in place: the kubelet sets no memory limit below current usage"
        case Resizing.REFUSED:
            return f"needs new pods: the API server rejects a resize ({'; '.join(cost.reasons)})"


def _overtakings(moves: Iterable[ReversedPair], workload: str) -> list[str]:
    """Return moves from the side of a workload that is part of all; those of one kind are one sentence."""
    kinds: dict[tuple[bool, str, bool, bool], list[str]] = {}
    for move in moves:
        reason = f"never evicted: {move.spared}" if move.spared is not None else str(move.key)
        is_first = workload == move.goes_first
        changed = (move.first_changed, move.other_changed)
        dies = "evicted" if move.order is Order.EVICTION else "killed"
        kind = (is_first, f"{dies} before {{}} ({reason})", *(changed if is_first else changed[::-1]))
        kinds.setdefault(kind, []).append(move.outlives if is_first else move.goes_first)
    said = []
    for (is_first, turned, own_changed, other_changed), names in kinds.items():
        rest = len(names) - _NAMED
        others = listed(names) if rest <= 0 else f"{', '.join(names[:_NAMED])} and {rest} more"
        text = f"now {turned.format(others)}"
        if not is_first:
            text = f"{others} {verb(names, 'is', 'are')} now {turned.format('it')}"
        if not own_changed:
            text += f"; only {others if len(names) == 1 else 'these'} changed"
        elif other_changed:
            text += f"; {'both' if len(names) == 1 else 'all'} changed"
        said.append(text)
    return said


def _summary(report: DriftReport) -> str:
    counts = Counter(workload.status for workload in report.workloads)
    names = {
        DriftStatus.BELOW_USAGE: "with a memory limit below usage",
        DriftStatus.AHEAD: "worse in a kill order",
        DriftStatus.BACK: "better in a kill order",
    }
    parts = [f"{count} {names.get(status, status)}" for status in DriftStatus if (count := counts[status])]
    failing = [workload for workload in report.workloads if workload.fails]
    who = f"{counted(len(failing), 'workload')} {'is' if len(failing) == 1 else 'are'}" if failing else "No workload is"
    is_partly = bool(failing) and all(workload.status is DriftStatus.MIXED for workload in failing)
    shifted = sum(workload.is_shifted for workload in failing)
    only = f" Only because others became safer: {shifted}." if shifted else ""
    worse = "partly worse off" if is_partly else "worse off"
    return f"{who} {worse}.{only} Of {len(report.workloads)} compared: {', '.join(parts)}."


def _basis(report: DriftReport) -> str:
    usage = f"usage from {report.usage}" if report.usage else "no usage given, assumed to equal the old requests"
    injected = f"; injected: {', '.join(report.injectors)}" if report.injectors else ""
    return f"Node of {mebibytes(report.node_memory_bytes)}; {usage}{injected}."


def _reasons(workload: WorkloadDrift) -> Iterator[str]:
    """Yield what changed in a workload, and the effect on others."""
    yield from (difference.text for difference in workload.differences)
    yield from (limit.sentence for limit in workload.below_usage)
    if workload.resize is not None:
        yield workload.resize.text
    yield from _overtakings((*workload.moved_ahead, *workload.moved_back), workload.workload)


# ---- as text ---------------------------------------------------------------------------------------------------------


def table(report: DriftReport, style: Style) -> list[str]:
    """Return what it comes to, a line per workload that changed, then the reasons."""
    changed = report.changed
    basis = [style.faint(line) for line in wrapped(_basis(report), style, "")]
    if not changed:
        compared_count = f"({len(report.workloads)} compared)"
        return [f"No workload changed class, score or place in a kill order {compared_count}.", *basis]
    rows = []
    for workload in changed:
        word = _status(workload)
        classes = (standing and style.qos_class(standing.qos_class) for standing in (workload.before, workload.after))
        rows.append(
            (workload.workload, style.alarm(word) if workload.fails else word, change(*classes), *_figures(workload))
        )
    headers = ("WORKLOAD", "", "CLASS", "ADJ", "EVICTED #", "KILLED #", "PRIORITY")
    lines = [*map(style.strong, wrapped(_summary(report), style, "")), "", *columns(headers, rows, style)]
    for workload in changed:
        if workload.differences:  # what they name go earlier or later because of it
            lines += ["", style.strong(workload.workload)]
            lines += [line for reason in _reasons(workload) for line in wrapped(reason, style, "  ")]
    return [*lines, "", *basis]


def change(before: object, after: object) -> str:
    """Return a value before and after, or once if it did not change."""
    one, other = ("–" if each is None else str(each) for each in (before, after))
    return one if one == other else f"{one} → {other}"


def worst_score(standing: Standing | None) -> str | None:
    """Return the highest oom_score_adj, with its container if there are others."""
    if standing is None:
        return None
    worst = standing.worst
    alike = len({score.oom_score_adj for score in standing.scores}) == 1
    return str(worst.oom_score_adj) if alike else f"{worst.oom_score_adj} ({worst.container})"


def _status(workload: WorkloadDrift) -> str:
    return {DriftStatus.AHEAD: "worse", DriftStatus.BACK: "better"}.get(workload.status, str(workload.status))


def _figures(workload: WorkloadDrift) -> Iterator[str]:
    """Yield what the columns after the class show: score, places in both orders, priority."""
    before, after = workload.before, workload.after
    yield change(worst_score(before), worst_score(after))
    for name in ("eviction_place", "kernel_place", "priority"):
        yield change(before and getattr(before, name), after and getattr(after, name))


def csv_rows(report: DriftReport) -> Table:
    """Return a row per workload, its figures before and after."""
    names = ("qosClass", "oomScoreAdj", "evictionPlace", "killPlace", "priority")
    headings = ("workload", "status", "fails", *(f"{name}{when}" for name in names for when in ("Before", "")))

    def figures(standing: Standing | None) -> tuple[object, ...]:
        if standing is None:
            return (None,) * len(names)
        places = standing.eviction_place, standing.kernel_place
        return standing.qos_class, standing.worst.oom_score_adj, *places, standing.priority

    return headings, (
        (
            each.workload,
            each.status,
            each.fails,
            *(value for pair in zip(figures(each.before), figures(each.after), strict=True) for value in pair),
        )
        for each in report.workloads
    )


# ---- as Markdown, for a comment on a pull request --------------------------------------------------------------------


def markdown(report: DriftReport) -> str:
    """Return a comment. What comes from manifests is in code spans, where nothing is a mention or markup."""
    changed = report.changed
    parts = [f"### podqos drift: {_plain(_summary(report))}"]
    if changed:
        head = "| workload | | class | oom_score_adj | evicted # | killed # | priority |\n|---|---|---|---|---|---|---|"
        rows = []
        for workload in changed:
            status = f"**{_status(workload)}**" if workload.fails else _status(workload)
            classes = (standing and standing.qos_class for standing in (workload.before, workload.after))
            score, *places = _figures(workload)
            cells = (_code(workload.workload), status, change(*classes), _code(score), *places)
            rows.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join([head, *_within(rows, _FOR_TABLE)]))
        details = [
            f"{_code(workload.workload)}\n" + "\n".join(f"- {_code(reason)}" for reason in _reasons(workload)) + "\n"
            for workload in changed
            if workload.differences
        ]
        told = "\n".join(_within(details, _FOR_DETAILS))
        parts += [f"<details><summary>Why</summary>\n\n{told}\n\n</details>"] if details else []
    parts.append(f"<sub>{_code(report.old)} → {_code(report.new)}. {_plain(_basis(report))}</sub>")
    text = "\n\n".join(parts)
    assert len(text) < MOST_CHARACTERS
    return text


def _within(lines: Sequence[str], room: int) -> list[str]:
    """Return the lines that fit, and how many were left out."""
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return [*kept, f"\n… and {len(lines) - len(kept)} more workloads; `podqos drift` prints them all."]
        kept.append(line)
    return kept


def _code(text: str) -> str:
    """Return a text in which nothing is markup."""
    clean = " ".join(text.replace("`", "'").replace("|", "¦").split())
    return f"`{clean[:500]}`"


def _plain(text: str) -> str:
    """Return a sentence of podqos, which may hold a file name, without markup."""
    return "".join(character for character in text if character not in "<>@`|*[]")
