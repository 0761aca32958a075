"""Services (core/v1), as frozen values: which pods traffic is sent to."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from podqos.model.pod import ObjectMeta


class ServiceSpec(Struct, frozen=True, gc=False):
    """Which pods a service sends traffic to."""

    selector: dict[str, str] = {}
    cluster_ip: str = field(default="", name="clusterIP")
    """``None`` for a service that only gives its pods names."""


class Service(Struct, frozen=True, gc=False):
    """A name and an address for pods that serve."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()

    def sends_traffic_to(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether pods of a namespace with these labels get traffic. Without a selector none do."""
        return self.spec.cluster_ip != "None" and self.selects(namespace, labels)

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether pods of a namespace with these labels belong to the service. Without a selector none do."""
        selector = self.spec.selector
        if not selector:
            return False
        if (self.metadata.namespace or "default") != (namespace or "default"):
            return False
        return all(labels.get(key) == value for key, value in selector.items())
