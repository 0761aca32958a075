"""Services (core/v1), and what leads users to them: Ingresses and the routes of the Gateway API, as frozen values.

Sources: Kubernetes v1.36 staging/src/k8s.io/api/core/v1/types.go, staging/src/k8s.io/api/networking/v1/types.go;
gateway.networking.k8s.io apis/v1 (HTTPRoute, GRPCRoute) and apis/v1alpha2 (TCPRoute, TLSRoute, UDPRoute).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from podqos.model.pod import DEFAULT_NAMESPACE, ObjectMeta

_FROM_OUTSIDE = ("LoadBalancer", "NodePort")
# What asks at such a port is a monitoring system or the API server.
_NOT_FOR_USERS = ("metrics", "webhook")


class ServicePort(Struct, frozen=True, gc=False):
    """A port of a service."""

    name: str = ""


class ServiceSpec(Struct, frozen=True, gc=False):
    """Which pods a service sends traffic to, and from where."""

    selector: dict[str, str] = {}
    type: str = "ClusterIP"
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = field(default="", name="clusterIP")
    """``None`` for a service that only gives its pods names."""


class Service(Struct, frozen=True, gc=False):
    """A name and an address for pods that serve."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()

    @property
    def is_public(self) -> bool:
        """Whether it is reached from outside the cluster by itself, for more than metrics or webhooks."""
        if self.spec.type not in _FROM_OUTSIDE:
            return False
        ports = [port.name for port in self.spec.ports]
        return not ports or any(not any(word in name for word in _NOT_FOR_USERS) for name in ports)

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether pods of a namespace with these labels get its traffic. Without a selector none do."""
        selector = self.spec.selector
        if not selector or self.metadata.namespace_or_default != (namespace or DEFAULT_NAMESPACE):
            return False
        return all(labels.get(key) == value for key, value in selector.items())


class BackendReference(Struct, frozen=True, gc=False):
    """What a route sends traffic to; the kind is a Service unless it says otherwise."""

    name: str = ""
    namespace: str = ""
    kind: str = "Service"


class RouteRule(Struct, frozen=True, gc=False, rename="camel"):
    """One rule of a route."""

    backend_refs: tuple[BackendReference, ...] = ()


class RouteSpec(Struct, frozen=True, gc=False):
    """The rules of a route."""

    rules: tuple[RouteRule, ...] = ()


class GatewayRoute(Struct, frozen=True, gc=False):
    """A route of the Gateway API, of any protocol."""

    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: RouteSpec = RouteSpec()

    def backends(self) -> Iterator[tuple[str, str]]:
        """Yield namespace and name of the Services it leads to; no namespace where it is the route's own."""
        for rule in self.spec.rules:
            for backend_ref in rule.backend_refs:
                if backend_ref.kind == "Service":
                    yield backend_ref.namespace, backend_ref.name


class IngressBackend(Struct, frozen=True, gc=False):
    """Where an Ingress sends traffic: ``service.name``, or ``serviceName`` before networking.k8s.io/v1."""

    service: BackendReference = BackendReference()
    service_name: str = field(default="", name="serviceName")


class IngressPath(Struct, frozen=True, gc=False):
    """One path of a host."""

    backend: IngressBackend = IngressBackend()


class IngressPaths(Struct, frozen=True, gc=False):
    """The paths of a host."""

    paths: tuple[IngressPath, ...] = ()


class IngressRule(Struct, frozen=True, gc=False):
    """The rule for one host."""

    http: IngressPaths = IngressPaths()


class IngressSpec(Struct, frozen=True, gc=False, rename="camel"):
    """The rules of an Ingress, and what takes the rest; ``backend`` before networking.k8s.io/v1."""

    default_backend: IngressBackend = IngressBackend()
    backend: IngressBackend = IngressBackend()
    rules: tuple[IngressRule, ...] = ()


class Ingress(Struct, frozen=True, gc=False):
    """Leads HTTP traffic from outside to Services of its namespace."""

    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: IngressSpec = IngressSpec()

    def backends(self) -> Iterator[tuple[str, str]]:
        """Yield the Services it leads to, in its own namespace."""
        spec = self.spec
        of_paths = (path.backend for rule in spec.rules for path in rule.http.paths)
        for backend in (spec.default_backend, spec.backend, *of_paths):
            if name := backend.service.name or backend.service_name:
                yield "", name
