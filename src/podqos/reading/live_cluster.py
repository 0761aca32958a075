"""A snapshot of a live cluster, line by line as it is read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.cluster import resources
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubelets import Kubelets
from podqos.cluster.patience import ONCE
from podqos.cluster.refusals import question
from podqos.cluster.resources import NODE_METRICS, POD_METRICS, Resource
from podqos.cluster.sources import Found
from podqos.errors import BadAnswer, ClusterError, Forbidden, InputError, NotFound, Refused
from podqos.manifest.anonymous import Anonymizer
from podqos.manifest.pruning import prepare_usage, pruned_kubelet, pruned_list, pruned_summary
from podqos.model.assumption import Assumption
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Header, Missing, NodeKubelet, NodeSummary, Restart
from podqos.objects.spreading import Progress
from podqos.reading.cluster_part import EVERYTHING, Part

Answer = TypeVar("Answer")

_MOST_TOLD = 6
"""How many reasons for kubelets not answering are listed individually."""
_NODES_NAMED = 3
"""How many nodes that share a reason are named."""
_AT_ONCE = 8
"""How many kubelets are queried at a time, each through the API server."""

ABOUT_PODS = (
    resources.NAMESPACES,
    resources.LIMIT_RANGES,
    resources.RESOURCE_QUOTAS,
    resources.PRIORITY_CLASSES,
    resources.RUNTIME_CLASSES,
    resources.POD_DISRUPTION_BUDGETS,
    resources.HORIZONTAL_POD_AUTOSCALERS,
    resources.VERTICAL_POD_AUTOSCALERS,
    resources.SERVICES,
    resources.INGRESSES,
)
WORKLOADS = (
    resources.DEPLOYMENTS,
    resources.STATEFUL_SETS,
    resources.DAEMON_SETS,
    resources.JOBS,
    resources.CRON_JOBS,
)


def take(cluster: Cluster, part: Part = EVERYTHING, *, progress: Progress | None = None) -> ClusterSnapshot:
    """Return a part of a cluster as it is now."""
    return ClusterSnapshot(snapshot_lines(cluster, part, progress=progress), cluster.name)


def snapshot_lines(
    cluster: Cluster, part: Part = EVERYTHING, *, anonymous: bool = False, progress: Progress | None = None
) -> Iterator[bytes]:
    """Yield the lines of a snapshot while the cluster is read."""
    anonymizer = Anonymizer() if anonymous else None
    count = 0
    for line in _lines(cluster, part, progress, anonymizer):
        count += 1
        yield line if anonymizer is None or count == 1 else anonymizer.line(line)
    yield msgspec.json.encode(End(count))


def _lines(cluster: Cluster, part: Part, progress: Progress | None, anonymizer: Anonymizer | None) -> Iterator[bytes]:
    names = (part.namespace, part.node)
    namespace, node = names if anonymizer is None else map(anonymizer.name, names)
    yield msgspec.json.encode(
        Header(
            taken_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            server_version=cluster.version().git_version,
            is_anonymous=anonymizer is not None,
            namespace=namespace,
            node=node,
        )
    )
    nodes: list[str] = []
    try:
        selected = f"metadata.name={part.node}" if part.node else ""
        for line in list_lines(cluster, resources.NODES, field_selector=selected):
            nodes += (item.metadata.name for item in msgspec.json.decode(line, type=_Names).items)
            yield line
    except Forbidden as error:
        # Who works in a namespace may seldom read nodes; its pods, and what became of them, can be judged without.
        is_needed = part.node or not part.namespace
        if is_needed and (part.usage or not part.events):
            raise
        yield msgspec.json.encode(unread(resources.NODES, error))
    check_node(cluster, part, nodes)
    # The kubelet of one node is asked while its pods are listed.
    usage = None
    if part.node and part.usage:
        prepare_usage()
        usage = _Ahead(lambda: list(measured(cluster, nodes, part, progress)))
    if part.policies:
        yield from _optional(cluster, ABOUT_PODS, part)
    if part.workloads:
        yield from _optional(cluster, WORKLOADS, part)
    if part.pods:
        yield from list_lines(
            cluster,
            resources.PODS,
            part.namespace,
            selector=part.selector,
            field_selector=f"spec.nodeName={part.node}" if part.node else "",
        )
    if part.events:
        yield from _optional(cluster, (resources.EVENTS,), part)
    if usage is not None:
        yield from usage.answer()
    elif part.usage:
        yield from measured(cluster, nodes, part, progress)
    elif part.metrics:
        yield from _metrics(cluster, ((POD_METRICS, part.namespace),))


def check_node(cluster: Cluster, part: Part, nodes: list[str]) -> None:
    """Raise if the requested node does not exist."""
    if part.node and part.node not in nodes:
        raise InputError(f"no such node: {part.node}", where=cluster.where, fix="`kubectl get nodes` lists the nodes")


class _Ahead:
    """A request that runs in the background."""

    def __init__(self, ask: Callable[[], list[bytes]]) -> None:
        self._found: list[bytes] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(ask,), daemon=True)
        self._thread.start()

    def _run(self, ask: Callable[[], list[bytes]]) -> None:
        try:
            self._found = ask()
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            self._error = error

    def answer(self) -> list[bytes]:
        """Wait for it."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found


class _Name(Struct, frozen=True):
    name: str


class _Named(Struct, frozen=True):
    metadata: _Name


class _Names(Struct, frozen=True):
    items: list[_Named]


def _optional(cluster: Cluster, wanted: tuple[Resource[Any], ...], part: Part) -> Iterator[bytes]:
    """Yield optional lists: those podqos has no permission to read are assumed to be empty, with a note."""
    for resource in wanted:
        namespace = part.namespace if resource.is_namespaced else ""
        try:
            yield from list_lines(cluster, resource, namespace)
        except NotFound:
            continue  # a cluster without this API has none
        except Refused as error:
            if isinstance(error, Forbidden) and resource.kind.lower() in part.named_kinds:
                raise
            yield msgspec.json.encode(unread(resource, error))


def list_lines(
    cluster: Cluster, resource: Resource[Any], namespace: str = "", *, selector: str = "", field_selector: str = ""
) -> Iterator[bytes]:
    """Yield a list as lines of a snapshot; raise if reading it is forbidden."""
    has_begun = False
    for page in cluster.pages(resource, namespace, selector=selector, field_selector=field_selector):
        if page.is_first and has_begun:
            yield msgspec.json.encode(Restart(f"{resource.kind}List"))
        has_begun = True
        page.check()
        line = pruned_list(page.data)
        if line is not None:
            yield line


def unread(resource: Resource[Any], error: Refused, verb: str = "list") -> Missing:
    """Return the assumption that a forbidden list is empty."""
    if isinstance(error, Forbidden) and error.user:
        assumed = Assumption(resource.plural, "none", f"permission of {error.user} to {verb} them")
    else:
        assumed = Assumption(f"{resource.plural} ({error.what})", "none", f"permission to {verb} them")
    return Missing(assumed, f"{resource.kind}List")


def _missing(what: str, value: str, state_with: str) -> bytes:
    return msgspec.json.encode(Missing(Assumption(what, value, state_with)))


# ---- usage -----------------------------------------------------------------------------------------------------------


def _at_once(ask: Callable[[str], Answer], nodes: list[str]) -> Iterator[Answer]:
    """Yield the answers about nodes in order; several nodes are queried at a time."""
    if len(nodes) == 1:
        yield ask(nodes[0])
        return
    from concurrent.futures import ThreadPoolExecutor

    prepare_usage()
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        yield from threads.map(ask, nodes)


class KubeletAnswer(Struct, frozen=True):
    """What a kubelet says of its node."""

    node: str
    summary: Found[bytes]
    """Usage, pruned."""
    settings: Found[bytes]

    @property
    def is_silent(self) -> bool:
        """Whether it left one of the two unanswered, and may answer later."""
        return self.summary.is_silent or self.settings.is_silent


def asked_kubelets(cluster: Cluster, nodes: list[str], progress: Progress | None = None) -> Iterator[KubeletAnswer]:
    """Yield what the kubelets of nodes answer, in order."""
    kubelets = Kubelets(cluster)

    def ask(node: str) -> KubeletAnswer:
        return KubeletAnswer(node, kubelets.summary(node, pruned_summary), kubelets.settings(node, pruned_kubelet))

    for number, answer in enumerate(_at_once(ask, nodes), 1):
        yield answer
        if progress is not None:
            progress(number, len(nodes))


class ReportedSettings(Struct, frozen=True):
    """How a node is set up, as its kubelet says."""

    node: str
    settings: Found[bytes]
    """Pruned."""
    cgroup_version: Found[int]


def reported_settings(cluster: Cluster, nodes: list[str]) -> Iterator[ReportedSettings]:
    """Yield what the kubelets of nodes report, in order."""
    kubelets = Kubelets(cluster)

    def ask(node: str) -> ReportedSettings:
        return ReportedSettings(node, kubelets.settings(node, pruned_kubelet), kubelets.cgroup_version(node))

    yield from _at_once(ask, nodes)


def measured(cluster: Cluster, nodes: list[str], part: Part, progress: Progress | None) -> Iterator[bytes]:
    """Yield usage and settings from the kubelets, and usage from metrics.k8s.io for those that do not answer."""
    silent: list[str] = []

    def noted() -> Iterator[KubeletAnswer]:
        for answer in asked_kubelets(cluster, nodes, progress):
            silent.extend([answer.node] if answer.summary.value is None else [])
            yield answer

    yield from measured_lines(noted())
    if silent:
        yield from metrics_lines(cluster, part)


def measured_lines(answers: Iterable[KubeletAnswer]) -> Iterator[bytes]:
    """Yield what kubelets answer as lines of a snapshot."""
    missing: dict[Assumption, list[str]] = {}
    for answer in answers:
        node, summary, configz = answer.node, answer.summary.value, answer.settings.value
        if summary is not None:
            yield msgspec.json.encode(NodeSummary(node, msgspec.Raw(summary)))
        if configz is not None:
            yield msgspec.json.encode(NodeKubelet(node, msgspec.Raw(configz)))
        for assumption in (*answer.summary.assumptions, *answer.settings.assumptions):
            missing.setdefault(replace(assumption, what=assumption.what.removesuffix(f" of node {node}")), []).append(
                node
            )
    told = list(missing.items())
    for assumption, nodes_without in told[:_MOST_TOLD]:
        yield _missing(f"{assumption.what} of {_nodes(nodes_without)}", assumption.value, assumption.state_with)
    if others := sorted({node for _, nodes_without in told[_MOST_TOLD:] for node in nodes_without}):
        yield _missing(f"usage or settings of {_nodes(others)}", "not known", "kubelets that answer")


def metrics_lines(cluster: Cluster, part: Part) -> Iterator[bytes]:
    """Yield usage from metrics.k8s.io."""
    yield from _metrics(cluster, ((NODE_METRICS, ""), (POD_METRICS, part.namespace)))


def _nodes(names: list[str]) -> str:
    if len(names) == 1:
        return f"node {names[0]}"
    more = ", …" if len(names) > _NODES_NAMED else ""
    return f"{len(names)} nodes ({', '.join(names[:_NODES_NAMED])}{more})"


def _metrics(cluster: Cluster, wanted: tuple[tuple[Resource[Any], str], ...]) -> Iterator[bytes]:
    try:
        for resource, namespace in wanted:
            asked = question("list", resource, namespace)
            answer = cluster.client.get(resource.path(namespace), asked=asked, patience=ONCE)
            line = pruned_list(answer.data)
            if line is None:
                raise BadAnswer(f"it sent something else instead of a list of {resource.plural}")
            yield line
    except (ClusterError, InputError) as error:
        yield _missing(f"metrics.k8s.io ({error.what})", "none", "a metrics server, and permission to list its metrics")
