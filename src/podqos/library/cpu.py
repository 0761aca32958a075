"""How much CPU each pod gets when all use as much as they can."""

from __future__ import annotations

from fractions import Fraction

from podqos.answers import cpu as answers
from podqos.answers.cpu import CpuRequest
from podqos.model.profile import LATEST, Profile
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import Objects
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.survival.orders.cpu import CpuReport


def cpu(
    objects: Objects,
    *,
    cores: int | Fraction | None = None,
    node: str | None = None,
    kubelet: Kubelet | None = None,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    profile: Profile = LATEST,
) -> CpuReport:
    """Return what each pod of a node wants and gets.

    ``cores`` are the node's, by default those of its Node, or 16; of those the daemons use what ``kubelet`` reserves,
    as far as the kernel gives it to them. ``node`` chooses among the pods of several. Raises InputError where there are
    no pods.
    """
    request = CpuRequest(
        cores=cores,
        node=node,
        kubelet=kubelet,
        cgroup_version=cgroup_version,
        profile=profile,
    )
    return answers.cpu(objects, request)
