"""Ports that pods take from the node itself.

Source: Kubernetes v1.36 pkg/scheduler/framework/plugins/nodeports/node_ports.go and
staging/src/k8s.io/kube-scheduler/framework/types.go (HostPortInfo). With host networking every container port is a
host port; the API server fills that in (pkg/apis/core/v1/defaults.go).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from podqos.model.pod import PodSpec

_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - what an empty hostIP means, not something we bind to


class HostPort(Struct, frozen=True, gc=False):
    """One port of the node."""

    port: int
    protocol: str
    host_ip: str

    def conflicts_with(self, other: HostPort) -> bool:
        """Whether both cannot be on one node: same port and protocol, and an address in common."""
        return (
            self.port == other.port
            and self.protocol == other.protocol
            and (self.host_ip == other.host_ip or _EVERY_ADDRESS in (self.host_ip, other.host_ip))
        )


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the node's ports that a pod takes; init containers take some only if they keep running."""
    sidecars = (container for container in spec.init_containers if container.is_sidecar)
    taken = []
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number > 0:
                taken.append(HostPort(number, port.protocol or "TCP", port.host_ip or _EVERY_ADDRESS))
    return tuple(taken)


def first_taken(wanted: tuple[HostPort, ...], used: Iterable[HostPort]) -> HostPort | None:
    """Return the first wanted port that is in use."""
    in_use = tuple(used)
    for port in wanted:
        if any(port.conflicts_with(other) for other in in_use):
            return port
    return None
