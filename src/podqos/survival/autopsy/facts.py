"""What is known of a node beside the kernel's report of its OOM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import Threshold, parse_thresholds
from podqos.kernel.cgroup import ROOT
from podqos.kernel.oom_circumstances import Origin
from podqos.kernel.oom_report import Constraint, OOMReport
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Node
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.qos.cgroup_paths import CgroupLevel, CgroupPlace, place_of
from podqos.qos.oom import BEST_EFFORT_OOM_SCORE_ADJ, COMPONENT_OOM_SCORE_ADJ

_BELOW_PODS = (CgroupLevel.KUBEPODS, CgroupLevel.CLASS, CgroupLevel.POD, CgroupLevel.CONTAINER)
_BY_HAND = -1
_HIDDEN_SHARE = 8  # zones that are in no line, of the machine's memory: more than holes and firmware take
_SANDBOX = COMPONENT_OOM_SCORE_ADJ["pod sandbox"]


class NodeFacts(Struct, frozen=True):
    """What manifests, a cluster and options say."""

    pods: Mapping[str, Pod] = {}
    """By the uid in the name of their cgroup."""
    memory_bytes: Mapping[str, int] = {}
    """Of nodes, by name: a cgroup's report does not say how large the machine is."""
    kubelet_of: Callable[[str], KubeletConfiguration | None] = lambda _: None
    """Returns the settings of a node's kubelet, by its name; None where they are not stated."""
    growth_bytes_per_second: int | None = None
    """How fast memory was used up, where that is known."""
    profile: Profile = LATEST


CONSTRAINED = (Constraint.CPUSET, Constraint.MEMORY_POLICY)
"""What keeps a request to some of the memory nodes."""
NOTHING_KNOWN = NodeFacts()


def with_nodes(facts: NodeFacts, nodes: Iterable[Node]) -> NodeFacts:
    """Return what is known with the sizes of more nodes."""
    sizes = {node.name: node.status.capacity[MEMORY].value for node in nodes if MEMORY in node.status.capacity}
    return replace(facts, memory_bytes={**facts.memory_bytes, **sizes}) if sizes else facts


MOST_BYTES = 1 << 62
"""Of what is added up over the tasks of a table: nothing in a log is trusted, and JSON's integers end at 64 bits."""


class KilledNode(Struct, frozen=True):
    """A report's machine and the place of its victim, with all that is known of them."""

    facts: NodeFacts
    report: OOMReport
    page_bytes: int
    ran_out: CgroupPlace
    victim: CgroupPlace
    pod: Pod | None
    """The victim's pod, where it is known."""
    capacity_bytes: int | None
    """The machine's memory, as the kubelet reads it; None where nothing says."""
    is_machine: bool
    """Whether the machine ran out, and not a cgroup."""
    is_kubernetes: bool
    """Whether a kubelet runs there: by the cgroups that the report names, or a pod's sandbox in its table."""

    @property
    def name(self) -> str:
        """The node's, where the pod or the log says it."""
        return _node_name(self.pod, self.report)

    @property
    def kubelet(self) -> KubeletConfiguration | None:
        """The settings of its kubelet; None where they are not stated."""
        return self.facts.kubelet_of(self.name)

    @property
    def is_constrained(self) -> bool:
        """Whether the request was kept to some of the memory nodes."""
        return self.report.constraint in CONSTRAINED

    @property
    def is_by_hand(self) -> bool:
        """Whether someone called the OOM killer (sysrq f): since 4.3 the order says so, before it the call trace."""
        return self.report.order == _BY_HAND or self.report.circumstances.is_by_hand

    def is_pods(self, oom_score_adj: int) -> bool:
        """Whether a process belongs to a pod: the kubelet gives them scores that little else has."""
        if not self.is_kubernetes:
            return False
        if not self.is_machine and self.ran_out.level in _BELOW_PODS:
            return True
        fixed = (self.facts.profile.guaranteed_oom_score_adj, _SANDBOX)
        return 0 < oom_score_adj <= BEST_EFFORT_OOM_SCORE_ADJ or oom_score_adj in fixed

    def request_bytes(self, oom_score_adj: int, capacity_bytes: int) -> int | None:
        """Return the least request with which a container has a score; None where the score does not depend on it."""
        if oom_score_adj >= BEST_EFFORT_OOM_SCORE_ADJ - 1:
            return 0
        if oom_score_adj <= 1000 + self.facts.profile.guaranteed_oom_score_adj:
            return None
        return -(-capacity_bytes * (1000 - oom_score_adj) // 1000)

    @property
    def threshold_bytes(self) -> int | None:
        """The kubelet's hard threshold of free memory, its default where nothing is stated; None: it has none."""
        config, profile = self.kubelet, self.facts.profile
        for threshold in _default_thresholds(profile) if config is None else parse_thresholds(config, profile):
            if threshold.signal is Signal.MEMORY and threshold.is_hard:
                return threshold.amount(self.capacity_bytes or 0).value
        return None

    @property
    def reservations(self) -> tuple[int, ...] | None:
        """What the kubelet reserves for itself and for the system; None where its configuration is not stated."""
        config = self.kubelet
        if config is None:
            return None
        amounts = (config.reserved_for_kube, config.reserved_for_system)
        return tuple(amount[MEMORY].value for amount in amounts if MEMORY in amount)


@lru_cache(maxsize=8)
def _default_thresholds(profile: Profile) -> tuple[Threshold, ...]:
    return parse_thresholds(KubeletConfiguration(), profile)


def killed_node(report: OOMReport, page_kb: int, facts: NodeFacts) -> KilledNode:
    """Return a report with what is known of its machine."""
    ran_out = place_of(report.oom_cgroup or "")
    if report.constraint is None:
        ran_out = CgroupPlace(CgroupLevel.UNKNOWN)
    elif report.constraint is Constraint.MEMCG and ran_out.level is CgroupLevel.MACHINE:
        ran_out = CgroupPlace(CgroupLevel.CGROUP)
    victim = place_of(report.task_cgroup or "")
    is_kubernetes = (
        victim.level in _BELOW_PODS
        or ran_out.level in _BELOW_PODS
        or _SANDBOX in [task.oom_score_adj for task in report.tasks.values()]
    )
    is_machine = report.constraint is not None and report.constraint is not Constraint.MEMCG
    pod = facts.pods.get(victim.pod_uid) if victim.pod_uid else None
    capacity = facts.memory_bytes.get(_node_name(pod, report)) or None
    if report.ram_pages is not None and report.ram_pages > report.reserved_pages:
        capacity = (report.ram_pages - report.reserved_pages) * page_kb * 1024
    return KilledNode(facts, report, page_kb * 1024, ran_out, victim, pod, capacity, is_machine, is_kubernetes)


def _node_name(pod: Pod | None, report: OOMReport) -> str:
    return (pod.spec.node_name if pod is not None else "") or report.host


def constrained(report: OOMReport, page_kb: int) -> OOMReport:
    """Return a report with the constraint that its lines prove where none names it: kernels before 5.0 do not.

    As ``constrained_alloc`` decides: a policy's nodes first, then those of the cpuset, and only where the machine has
    others. A report lists the zones of the allowed nodes, and of all nodes the huge pages and how much RAM there is.
    """
    found = report.circumstances
    if report.order == _BY_HAND or found.is_by_hand:
        return replace(report, constraint=Constraint.NONE, oom_cgroup=ROOT)
    if report.constraint is not Constraint.NONE or report.is_constraint_named or report.gfp_mask == 0:
        return report
    seen = found.nodes | {zone.node for zone in report.zones}
    present = sum(zone.present_kb or 0 for zone in report.zones)
    ram = (report.ram_pages or 0) * page_kb
    is_hidden = bool(present) and ram - present > ram // _HIDDEN_SHARE

    def leaves_out(nodes: frozenset[int] | None) -> bool:
        return bool(nodes) and bool(seen) and (not seen <= (nodes or seen) or (is_hidden and seen == nodes))

    if leaves_out(found.nodemask):
        return replace(report, constraint=Constraint.MEMORY_POLICY, nodes=found.nodemask)
    if found.cpuset not in {"", ROOT} and leaves_out(report.nodes):
        return replace(report, constraint=Constraint.CPUSET)
    return report


def chosen_name(report: OOMReport) -> str:
    """Return the name of the process that was chosen, by the line that says so, the table, or its kill."""
    pid = report.chosen or 0
    task, victim = report.tasks.get(pid), report.victims.get(pid)
    return report.chosen_name or (task.name if task else victim.name if victim else "")


def origin_of(report: OOMReport) -> Origin | None:
    """Return what the chosen process did for which it is killed first: by its name, or by how it asked for memory."""
    if chosen_name(report) == Origin.SWAPOFF:
        return Origin.SWAPOFF
    return report.circumstances.origin if report.chosen == report.trigger_pid is not None else None


def is_guaranteed(node: KilledNode, oom_score_adj: int) -> bool:
    """Whether the victim has what Guaranteed gives already."""
    return node.victim.qos_class is QOSClass.GUARANTEED or oom_score_adj <= node.facts.profile.guaranteed_oom_score_adj
