"""What the nodes of a cluster say of themselves, for answers about cgroups.

That is the kubelet's settings and version, the container runtime and the cgroup version. Only the kubelets of nodes
with selected pods are queried: a cluster may have thousands.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import suppress

from podqos.errors import InvalidArgument
from podqos.model.assumption import Assumption
from podqos.model.node import Node
from podqos.model.profile import Profile, parse_version
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.selection import Selection
from podqos.qos.cgroup_settings import CgroupVersion, Runtime
from podqos.questions.explain import NodeSettings

_CGROUP_VERSIONS: Mapping[int | None, CgroupVersion] = {1: CgroupVersion.V1, 2: CgroupVersion.V2}
_RUNTIMES = {"containerd": Runtime.CONTAINERD, "cri-o": Runtime.CRIO, "docker": Runtime.DOCKER}


def own_settings(
    arguments: argparse.Namespace, selection: Selection | None
) -> tuple[dict[str, NodeSettings], tuple[Assumption, ...]]:
    """Return what the nodes of the selected pods say, by name, and what is assumed because they do not.

    Nothing of what the options state instead.
    """
    cluster: ClusterSnapshot | None = getattr(arguments, "cluster", None)
    if cluster is None or arguments.files or arguments.kustomize:
        return {}, ()
    objects = cluster.objects.with_selection(selection)
    names = {found.workload.pod.spec.node_name for found in objects.workloads if objects.takes(found)}
    nodes = [node for node in cluster.nodes.values() if node.name in names]
    found = {node.name: NodeSettings(cluster.kubelet(node.name)) for node in nodes}
    assumptions: tuple[Assumption, ...] = ()
    unknown = [name for name, settings in found.items() if settings.kubelet is None]
    if unknown and arguments.snapshot is None:
        asked, assumptions = _asked(arguments, unknown)
        found |= asked
    return {node.name: _unless_stated(found[node.name], node, arguments) for node in nodes}, assumptions


def _unless_stated(found: NodeSettings, node: Node, arguments: argparse.Namespace) -> NodeSettings:
    """Return what a node says, without what options state."""
    runtime = _RUNTIMES.get(node.status.node_info.container_runtime_version.partition(":")[0])
    return NodeSettings(
        kubelet=found.kubelet if arguments.kubelet_config is None else None,
        profile=_profile(node) if arguments.kubernetes_version is None else None,
        runtime=runtime if arguments.runtime is None else None,
        cgroup_version=found.cgroup_version if arguments.cgroup is None else None,
    )


def _asked(arguments: argparse.Namespace, names: list[str]) -> tuple[dict[str, NodeSettings], tuple[Assumption, ...]]:
    """Return what the kubelets of a live cluster report, and what is not known because they do not."""
    from podqos.cluster.cluster import connect
    from podqos.manifest.kubelet import kubelet_settings_in
    from podqos.reading.live_cluster import reported_settings

    found: dict[str, NodeSettings] = {}
    assumptions: dict[Assumption, None] = {}
    with connect(arguments.context, kubeconfig=arguments.kubeconfig) as live:
        for reported in reported_settings(live, names):
            path, data = f"configz of node {reported.node}", reported.settings.value
            kubelet = None if data is None else Kubelet(kubelet_settings_in(path, data).configuration, path)
            version = _CGROUP_VERSIONS.get(reported.cgroup_version.value)
            found[reported.node] = NodeSettings(kubelet, cgroup_version=version)
            if arguments.kubelet_config is None:
                assumptions |= dict.fromkeys(reported.settings.assumptions)
            if arguments.cgroup is None:
                assumptions |= dict.fromkeys(reported.cgroup_version.assumptions)
    return found, tuple(assumptions)


def _profile(node: Node) -> Profile | None:
    """Return the rules of a kubelet's version; None where it is not known."""
    with suppress(InvalidArgument):
        return parse_version(node.status.node_info.kubelet_version)
    return None
