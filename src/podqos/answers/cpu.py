"""How much CPU each pod gets when all use as much as they can."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.model.assumption import Assumption
from podqos.model.node import Node
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU
from podqos.objects.assumptions import KUBELET_SETTINGS, cluster_assumptions, node_cores, without_policies
from podqos.objects.kubelet_node import Kubelet, cgroups_of, chosen_kubelet, rules_of
from podqos.objects.node_pods import chosen_node, node_pods
from podqos.objects.objects import Objects
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.survival.orders.cpu import CpuReport, burst, cpu_report

_PLENTY_BYTES = 1 << 50


class CpuRequest(Struct, frozen=True, kw_only=True):
    """A node whose CPU is divided; its memory plays no part."""

    cores: int | Fraction | None = None
    """Else those of the Node of its name, of the smallest Node, or 16."""
    node: str | None = None
    """Its name, where the pods of several nodes are among the objects."""
    kubelet: Kubelet | None = None
    cgroup_version: CgroupVersion = CgroupVersion.V2
    profile: Profile = LATEST


def cpu(objects: Objects, request: CpuRequest) -> CpuReport:
    """Return what each pod of a node wants and gets. Raises InputError where there are no pods."""
    profile = request.profile
    pods = node_pods(objects, profile=profile, node=request.node)
    if not pods:
        fix = "fix the errors above" if objects.errors else "give manifests with pods"
        raise InputError("no pods to show", fix=fix)
    assumptions: list[Assumption] = []
    kubelet, cores = chosen_kubelet(objects, request.kubelet), request.cores
    if cores is None:
        # What a kubelet reserves the daemons get below; of one that is not known the Node states what it leaves.
        name = chosen_node(objects, request.node)
        cores, assumed_cores = node_cores(name, objects.of(Node), left_for_pods=kubelet is None)
        assumptions += assumed_cores
    if kubelet is None:
        kubelet = Kubelet()
        assumptions.append(KUBELET_SETTINGS)
    settings = cgroups_of(
        kubelet, memory_bytes=_PLENTY_BYTES, cores=cores, cgroup_version=request.cgroup_version, profile=profile
    )
    reserved = (each.get(CPU, ZERO) for each in (kubelet.config.reserved_for_kube, kubelet.config.reserved_for_system))
    reserved_milli = sum(amount.milli_value for amount in reserved)
    if reserved_milli:
        assumptions.append(Assumption("CPU of daemons", "all of their reservation", "kubeReserved, systemReserved"))
    result = burst((entry.pod for entry in pods), cores, settings, profile, reserved_milli=reserved_milli)
    assumed = (*rules_of(kubelet, profile), *assumptions, *without_policies(objects), *cluster_assumptions(objects))
    report = cpu_report(result, profile, assumed)
    chosen = {entry.pod.key for entry in pods if entry.is_chosen}
    return replace(report, pods=tuple(pod for pod in report.pods if pod.pod in chosen))
