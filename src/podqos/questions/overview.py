"""``podqos overview``: a cluster on one screen: nodes by headroom, which pod dies next on each, what is wrong where.

The figures of a node are those of the page as well. What is wrong is what ``check`` finds, with a score per namespace:
an object without errors and warnings counts 1, one with warnings ½, one with an error 0, and the score is their mean,
in percent, rounded down. Counted are the objects that have pods, and others that have errors or warnings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.finding import FindingSeverity
from podqos.agent.journal import By
from podqos.amounts import counted, mebibytes
from podqos.errors import InputError
from podqos.model.assumption import Assumption, of_version
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.node import PODS, Node
from podqos.model.pod import TERMINAL_PHASES, Pod, QOSClass
from podqos.model.profile import Profile
from podqos.model.resources import CPU, MEMORY, ResourceList, sum_of
from podqos.naming import published, stated_with
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.held import held_objects
from podqos.objects.spreading import Progress, Spread, one_by_one
from podqos.orders.memory import Headroom
from podqos.orders.orders import EvictionPlace, KillPlace
from podqos.qos.classes import qos_class_of
from podqos.questions.check import Checked
from podqos.questions.findings import FindingReport
from podqos.questions.node import NodeState, WatchedMemory, bound_by, briefly, cluster_state, watched_memory
from podqos.questions.rank import RankReport, rank
from podqos.text.style import Style, columns
from podqos.text.tables import Table
from podqos.text.why import why_first_evicted, why_first_killed

MOST_RANKED = 200
"""Of so many nodes, those nearest to running out, the pods are ranked."""
# People read a screenful; programs get everything.
_WIDE = stated_with("output", "wide")
_NODES_SHOWN, _NAMESPACES_SHOWN, _NAMES_SHOWN = 20, 12, 4
_HALVES = {FindingSeverity.ERROR: 0, FindingSeverity.WARNING: 1, FindingSeverity.INFO: 2}

# ---- the answer ------------------------------------------------------------------------------------------------------


class Share(Struct, frozen=True, rename="camel"):
    """One resource of a node: memory in bytes, cpu in thousandths of a core."""

    allocatable: int
    requests: int
    limits: int
    used: int | None = None
    """By pods and system together, where it was measured."""
    used_by_pods: int | None = None
    """By pods alone, which is what allocatable bounds."""


class NextVictim(Struct, frozen=True, rename="camel"):
    """The pod that dies next."""

    pod: str
    qos_class: QOSClass
    reason: str
    """Why it and not the next."""
    explanation: str = ""
    """The same in plain words: a clause that follows "is evicted first:" or "is OOM-killed first:"."""
    is_assumed: bool = False
    """Whether what it uses is assumed."""


class NodeOverview(Struct, frozen=True, rename="camel"):
    """A node: how near it is to running out, and which pods die first."""

    name: str
    pods: int
    most_pods: int | None
    memory: Share
    cpu: Share
    conditions: tuple[str, ...] = ()
    """What is not as it should be: NotReady, MemoryPressure, Unschedulable …"""
    headroom_bytes: int | None = None
    """Memory until the kubelet evicts, by memory.available or allocatableMemory.available, whichever has less; negative
    where it does already; null without figures."""
    is_measured: bool = False
    """Whether usage was measured, or pods are taken to use what they request."""
    next_evicted: NextVictim | None = None
    next_killed: NextVictim | None = None
    headroom: Headroom | None = None
    """The threshold that ``headroomBytes`` is about; null without figures, and where the kubelet has none."""
    problem: str = ""
    """What keeps its pods from being ranked, or contradicts itself; empty where nothing does."""
    kernel_left_bytes: int | None = None
    """What the kernel can still allocate before it kills; null where pods were not ranked. Not more than
    ``headroomBytes``: the kernel kills before the kubelet evicts."""
    first_by: By | None = None
    """Which of the two acts first however slowly memory grows; null where pods were not ranked. A faster growth can
    turn that around: ``podqos forecast``."""


class NamespaceOverview(Struct, frozen=True, rename="camel"):
    """A namespace: its pods, and what ``check`` finds there."""

    namespace: str
    """Empty for what belongs to none."""
    classes: dict[str, int]
    """Pods that have not ended, by class."""
    score: int
    """From 0, every object has an error, to 100, none has errors or warnings."""
    errors: int
    warnings: int
    objects: int
    """How many objects have errors or warnings."""


class Overview(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos overview -o json``."""

    taken_at: str
    server_version: str
    nodes: tuple[NodeOverview, ...]
    """Least headroom first."""
    classes: dict[str, int]
    """Pods that have not ended, by class."""
    pending: tuple[str, ...]
    """Pods without a node."""
    stored_otherwise: tuple[str, ...]
    """Pods whose stored class is not the one their resources make."""
    namespaces: tuple[NamespaceOverview, ...]
    """Worst first."""
    checks: dict[str, int]
    """Errors and warnings by check."""
    verdict: str
    """The worst finding in a sentence; empty where there is none."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "ClusterOverview"
    assumptions: tuple[Assumption, ...] = ()


def overview(
    cluster: ClusterSnapshot,
    *,
    profile: Profile | None = None,
    progress: Progress | None = None,
    spread: Spread = one_by_one,
) -> Overview:
    """Return how a cluster stands.

    ``progress`` gets the number of ranked nodes and the total; ``spread`` may check objects on several cores.
    """
    profile = profile or cluster.profile
    pods = [found.workload.pod for found in cluster.objects.workloads]
    alive = [pod for pod in pods if pod.status.phase not in TERMINAL_PHASES]
    by_node: dict[str, list[Pod]] = {}
    for pod in alive:
        by_node.setdefault(pod.spec.node_name, []).append(pod)
    classes = {pod.key: qos_class_of(pod, profile) for pod in alive}
    checked = Checked(held_objects(cluster.declared()), CheckOptions(profile=profile), spread=spread)
    report = checked.report
    wrong = [item for item in report if item.suppression is None and item.severity is not FindingSeverity.INFO]
    nodes, assumptions = _nodes(cluster, by_node, profile, progress)
    return Overview(
        taken_at=cluster.header.taken_at,
        server_version=cluster.header.server_version,
        nodes=tuple(sorted(nodes, key=lambda node: (node.headroom_bytes is None, node.headroom_bytes or 0, node.name))),
        classes=dict(sorted(Counter(map(str, classes.values())).items())),
        pending=tuple(pod.key for pod in by_node.get("", ())),
        stored_otherwise=tuple(
            pod.key for pod in alive if pod.status.qos_class is not None and pod.status.qos_class != classes[pod.key]
        ),
        namespaces=tuple(_namespaces(wrong, checked, alive, classes)),
        checks=dict(sorted(Counter(item.check for item in wrong).items())),
        verdict="" if report.verdict is None else report.verdict.text,
        assumptions=tuple(dict.fromkeys((*of_version(profile), *cluster.assumptions, *assumptions))),
    )


def _nodes(
    cluster: ClusterSnapshot, by_node: Mapping[str, list[Pod]], profile: Profile, progress: Progress | None
) -> tuple[list[NodeOverview], list[Assumption]]:
    """Return every node; those nearest to running out with the pods that die next."""
    assumptions: list[Assumption] = []
    found: list[tuple[Node, NodeState | None, WatchedMemory | None]] = []
    problems: dict[str, str] = {}
    for node in cluster.nodes.values():
        state = watched = None
        try:
            if by_node.get(node.name):
                state = cluster_state(cluster, node.name, profile=profile)
                watched = watched_memory(state)
        except InputError as error:
            state, problems[node.name] = None, error.worded(published)
        found.append((node, state, watched))
    found.sort(key=lambda each: (True, 0) if each[2] is None else (False, each[2].headroom_bytes))
    made = []
    for number, (node, state, watched) in enumerate(found, 1):
        report = None
        if state is not None and number <= MOST_RANKED:
            try:
                report = rank(state, remedies=False)
                assumptions += report.assumptions
            except InputError as error:
                problems[node.name] = error.worded(published)
        one = node_overview(node, by_node.get(node.name, []), state, watched, report)
        made.append(replace(one, problem=problems.get(node.name, one.problem)))
        if progress is not None:
            progress(number, len(found))
    return made, assumptions


def _namespaces(
    wrong: Iterable[FindingReport], checked: Checked, pods: Iterable[Pod], classes: Mapping[str, QOSClass]
) -> Iterator[NamespaceOverview]:
    """Yield every namespace with objects that have pods, errors or warnings, worst first."""
    counts: dict[str, Counter[FindingSeverity]] = {}
    worst: dict[str, dict[str, FindingSeverity]] = {}
    for item in wrong:
        counts.setdefault(item.namespace, Counter())[item.severity] += 1
        objects = worst.setdefault(item.namespace, {})
        objects[item.subject] = min(objects.get(item.subject, item.severity), item.severity, key=_rank)
    for subject in checked.with_pods:
        worst.setdefault(subject.namespace, {}).setdefault(f"{subject.kind} {subject.key}", FindingSeverity.INFO)
    by_class: dict[str, Counter[str]] = {}
    for pod in pods:
        by_class.setdefault(pod.metadata.namespace, Counter())[str(classes[pod.key])] += 1
    made = []
    for name, severities in worst.items():
        found, each = counts.get(name, Counter()), severities.values()
        made.append(
            NamespaceOverview(
                namespace=name,
                classes=dict(sorted(by_class.get(name, Counter()).items())),
                score=50 * sum(_HALVES[severity] for severity in each) // len(severities),
                errors=found[FindingSeverity.ERROR],
                warnings=found[FindingSeverity.WARNING],
                objects=sum(severity is not FindingSeverity.INFO for severity in each),
            )
        )
    yield from sorted(made, key=lambda item: (item.score, -item.errors, -item.warnings, item.namespace))


def _rank(severity: FindingSeverity) -> int:
    return severity.rank


def node_overview(
    node: Node,
    pods: Sequence[Pod],
    state: NodeState | None,
    watched: WatchedMemory | None,
    report: RankReport | None,
) -> NodeOverview:
    """Return a node with its pods; ``watched`` is the memory of ``state``, and ``report`` ranks its pods."""
    evicted = [] if report is None else [place for place in report.eviction_order if place.spared is None]
    killed = () if report is None else report.kill_order
    unmeasured: Collection[str] = () if state is None else state.unmeasured
    return NodeOverview(
        name=node.name,
        pods=len(pods),
        most_pods=node.status.allocatable[PODS].value if PODS in node.status.allocatable else None,
        memory=_share(node, pods, MEMORY, state),
        cpu=_share(node, pods, CPU, None),
        conditions=tuple(_conditions(node)),
        headroom_bytes=None if watched is None else watched.headroom_bytes,
        headroom=None if watched is None else watched.headroom,
        kernel_left_bytes=None if report is None else report.node.kernel_left_bytes,
        is_measured=state is not None and state.is_kubelets,
        next_evicted=_evicted(evicted, unmeasured),
        next_killed=_killed(killed, unmeasured),
        first_by=None if report is None else first_by(report),
        problem="" if report is None else report.problem,
    )


def first_by(report: RankReport) -> By:
    """Return who acts first on a node while memory grows slowly."""
    return By.KERNEL if report.node.kernel_first else By.KUBELET


def _evicted(places: Sequence[EvictionPlace], unmeasured: Collection[str]) -> NextVictim | None:
    """Return the pod that is evicted first; the one after it says why."""
    if not places:
        return None
    first, is_assumed = places[0], places[0].pod in unmeasured
    explanation = why_first_evicted(first, next(iter(places[1:]), None), is_assumed=is_assumed)
    return NextVictim(first.pod, first.qos_class, first.reason, explanation, is_assumed)


def _killed(places: Sequence[KillPlace], unmeasured: Collection[str]) -> NextVictim | None:
    """Return the pod of the container that is OOM-killed first; the one after it says why."""
    if not places:
        return None
    first, is_assumed = places[0], places[0].pod in unmeasured
    container = first.container if any(place.pod == first.pod for place in places[1:]) else ""
    explanation = why_first_killed(first, next(iter(places[1:]), None), container, is_assumed=is_assumed)
    return NextVictim(first.pod, first.qos_class, first.reason, explanation, is_assumed)


def _share(node: Node, pods: Sequence[Pod], resource: str, state: NodeState | None) -> Share:
    def amount(of: ResourceList) -> int:
        found = of.get(resource)
        return 0 if found is None else found.milli_value if resource == CPU else found.value

    is_measured = state is not None and state.is_kubelets
    return Share(
        allocatable=amount(node.status.allocatable),
        requests=amount(sum_of(map(pod_requests, pods))),
        limits=amount(sum_of(map(pod_limits, pods))),
        used=state.used_bytes if state is not None and is_measured else None,
        used_by_pods=state.snapshot.pods_working_set_bytes if state is not None and is_measured else None,
    )


def _conditions(node: Node) -> Iterator[str]:
    """Yield what is not as it should be."""
    for condition in node.status.conditions:
        if condition.type == "Ready":
            if condition.status != "True":
                yield "NotReady"
        elif condition.status == "True":
            yield condition.type
    if node.spec.unschedulable:
        yield "Unschedulable"


# ---- as text ---------------------------------------------------------------------------------------------------------


def text(whole: Overview, style: Style) -> list[str]:
    """Return the overview as lines for one screen; in a wide style all nodes and namespaces, and all about them."""
    lines = []
    known = [(node.headroom_bytes, node.name, node) for node in whole.nodes if node.headroom_bytes is not None]
    if known:
        left, name, node = min(known, key=lambda entry: entry[:2])
        qualified = _in_parentheses(briefly(node.headroom))
        least = f"Least headroom: {name}, {mebibytes(left)}{qualified} before eviction." if left >= 0 else ""
        lines.append(style.strong(least or f"{name} is {mebibytes(-left)} past its eviction threshold{qualified}."))
    version = f"Kubernetes {whole.server_version}: " if whole.server_version else ""
    pods = f"{counted(sum(whole.classes.values()), 'pod')} ({_classes(whole.classes)})"
    taken = f"; {whole.taken_at}" if whole.taken_at else ""
    lines.append(f"{version}{counted(len(whole.nodes), 'node')}, {pods}{taken}")
    if whole.verdict:
        lines.append(style.alarm(whole.verdict))
    lines += ["", *_node_lines(whole.nodes, style)]
    if whole.pending:
        lines += ["", f"{counted(len(whole.pending), 'pod')} without a node: {_some(whole.pending)}"]
    if whole.stored_otherwise:
        others = counted(len(whole.stored_otherwise), "pod")
        differs = f"{others} whose stored class differs from what their resources give"
        lines += ["", f"{differs}: {_some(whole.stored_otherwise)}"]
    namespaces = [each for each in whole.namespaces if each.objects or style.is_wide]
    return [*lines, "", *_namespace_lines(namespaces, style)] if namespaces else lines


def _classes(classes: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in classes.items())


def _node_lines(nodes: Sequence[NodeOverview], style: Style) -> Iterator[str]:
    shown = nodes if style.is_wide else nodes[:_NODES_SHOWN]
    rows = [
        (
            node.name,
            "?" if node.headroom_bytes is None else _headroom(node, node.headroom_bytes, style),
            f"{node.pods}/{node.most_pods}" if node.most_pods is not None else str(node.pods),
            _percent(node.memory.used_by_pods, node.memory.allocatable),
            _percent(node.memory.requests, node.memory.allocatable),
            _times(node.memory),
            _percent(node.cpu.requests, node.cpu.allocatable),
            *((_times(node.cpu), "–" if node.headroom is None else bound_by(node.headroom)) if style.is_wide else ()),
            *("–" if victim is None else victim.pod for victim in (node.next_evicted, node.next_killed)),
            ", ".join(node.conditions),
        )
        for node in shown
    ]
    cpu = ("CPU REQUESTED", "CPU LIMITS", "EVICTS BY") if style.is_wide else ("CPU REQUESTED",)
    headers = ("NODE", "HEADROOM", "PODS", "MEMORY USED", "REQUESTED", "LIMITS", *cpu)
    yield from columns((*headers, "EVICTED NEXT", "KILLED NEXT", "CONDITIONS"), rows, style)
    if len(nodes) > len(shown):
        yield style.faint(f"and {counted(len(nodes) - len(shown), 'more node')} with more headroom ({_WIDE})")
    yield from (style.alarm(f"{node.name}: {node.problem}") for node in nodes if node.problem)


def _namespace_lines(namespaces: Sequence[NamespaceOverview], style: Style) -> Iterator[str]:
    shown = namespaces if style.is_wide else namespaces[:_NAMESPACES_SHOWN]
    rows = [
        (
            each.namespace or "(cluster)",
            str(each.score),
            *(str(count or "–") for count in (each.errors, each.warnings, each.objects)),
            *((_classes(each.classes) or "–",) if style.is_wide else ()),
        )
        for each in shown
    ]
    headers = ("NAMESPACE", "SCORE", "ERRORS", "WARNINGS", "OBJECTS AFFECTED", *(("PODS",) if style.is_wide else ()))
    yield from columns(headers, rows, style)
    if len(namespaces) > len(shown):
        yield style.faint(f"and {counted(len(namespaces) - len(shown), 'more namespace')} ({_WIDE})")


def _headroom(node: NodeOverview, headroom_bytes: int, style: Style) -> str:
    """Return what is left until the kubelet evicts, and by what; or that the kernel kills before."""
    killed, remarks = node.kernel_left_bytes, [briefly(node.headroom)]
    if killed is not None and killed <= headroom_bytes:
        # In whole MiB, as thresholds are: the two amounts are compared.
        remarks.append(f"OOM kill after {_signed(killed >> 20 << 20, style)}")
    return f"{_signed(headroom_bytes, style)}{_in_parentheses(*remarks)}"


def _in_parentheses(*remarks: str) -> str:
    said = ", ".join(filter(None, remarks))
    return f" ({said})" if said else ""


def _signed(size_bytes: int, style: Style) -> str:
    return mebibytes(size_bytes) if size_bytes >= 0 else style.alarm(f"−{mebibytes(-size_bytes)}")


def _percent(part: int | None, whole: int) -> str:
    return "?" if part is None else f"{part / whole:.0%}" if whole else "–"


def _times(share: Share) -> str:
    return f"{share.limits / share.allocatable:.2f}×" if share.allocatable else "–"


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more


def csv_rows(whole: Overview) -> Table:
    """Return a row per node."""
    shares = [f"{resource}{part}" for resource in ("memory", "cpu") for part in ("Allocatable", "Requests", "Limits")]
    headings = ("node", "headroomBytes", "kernelLeftBytes", "pods", "mostPods", "memoryUsedByPods", *shares)
    return (*headings, "evictedNext", "killedNext", "firstBy", "conditions", "problem"), (
        (
            *(node.name, node.headroom_bytes, node.kernel_left_bytes, node.pods, node.most_pods),
            node.memory.used_by_pods,
            *(
                amount
                for share in (node.memory, node.cpu)
                for amount in (share.allocatable, share.requests, share.limits)
            ),
            *(None if victim is None else victim.pod for victim in (node.next_evicted, node.next_killed)),
            *(node.first_by, " ".join(node.conditions), node.problem),
        )
        for node in whole.nodes
    )
