"""Edge: usage and settings from kubelets: /stats/summary and /configz.

First through the API server's node proxy, which needs ``get nodes/proxy``. Where that is forbidden the kubelet is asked
directly, which needs only ``get nodes/stats`` and ``nodes/configz``, a network that leads there, and a serving
certificate that the cluster's authority signed: a token is shown to no one else.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct, field
from msgspec.structs import replace

from podqos.cluster.asking import Client, Query
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access
from podqos.cluster.patience import ONCE, is_temporary
from podqos.cluster.refusals import question
from podqos.cluster.resources import NODES, Model, Resource
from podqos.cluster.sources import Found, missing
from podqos.errors import BadAnswer, ClusterError, Forbidden, InputError, NotFound, Refused, Unauthorized, Unreachable
from podqos.naming import stated_with

_ENOUGH = 16
_INTERNAL_ERROR = 500
_CGROUP_VERSION = re.compile(rb"^kubelet_cgroup_version ([12])$", re.MULTILINE)
_PATIENCE = replace(ONCE, connect_seconds=5.0)
_ORDER = ("InternalIP", "InternalDNS", "Hostname", "ExternalIP", "ExternalDNS")


class _Address(Struct, frozen=True):
    type: str = ""
    address: str = ""


class _Port(Struct, frozen=True):
    port: int = field(default=0, name="Port")


class _Endpoints(Struct, frozen=True, rename="camel"):
    kubelet_endpoint: _Port = _Port()


class _Status(Struct, frozen=True, rename="camel"):
    addresses: tuple[_Address, ...] = ()
    daemon_endpoints: _Endpoints = _Endpoints()


class _Node(Struct, frozen=True):
    """Where a kubelet listens."""

    status: _Status = _Status()

    @property
    def server(self) -> str | None:
        by_type = {address.type: address.address for address in reversed(self.status.addresses) if address.address}
        host = next((by_type[kind] for kind in _ORDER if kind in by_type), None)
        port = self.status.daemon_endpoints.kubelet_endpoint.port or 10250
        return None if host is None else f"https://{f'[{host}]' if ':' in host else host}:{port}"


_ADDRESSES: Resource[_Node] = Resource("", "v1", "nodes", "Node", _Node, is_namespaced=False)


class Kubelets:
    """The kubelets of a cluster. Several threads may use it at once."""

    def __init__(self, cluster: Cluster) -> None:
        """Set up without querying."""
        self._cluster = cluster
        self._unproxied: set[str] = set()
        """The nodes whose proxy is forbidden: RBAC can allow it for some of them (``resourceNames``)."""
        self._reached = 0
        self._failures: list[Unreachable] = []
        """Kubelets queried directly: how many answered, and why others did not."""

    def summary(self, node: str, read: Callable[[bytes], Model]) -> Found[Model]:
        """Return the usage of a node and its pods; at least memory and CPU."""
        path, option = "stats/summary", stated_with("stats", "FILE")

        def asked() -> Found[Model]:
            try:
                return Found(self.ask(node, path, read))
            except Refused as error:
                if error.status != _INTERNAL_ERROR:
                    raise
                # A kubelet that cannot find a filesystem still knows memory.
                summary = self.ask(node, path, read, [("only_cpu_and_memory", "true")])
                return Found(summary, (missing(f"disk usage of node {node}", error, option),))

        return _found(asked, path, f"usage of node {node}", option)

    def settings(self, node: str, read: Callable[[bytes], Model]) -> Found[Model]:
        """Return a kubelet's settings."""
        path = "configz"
        what = f"kubelet settings of node {node}"
        return _found(lambda: Found(self.ask(node, path, read)), path, what, stated_with("kubelet_config", "FILE"))

    def cgroup_version(self, node: str) -> Found[int]:
        """Return which cgroups a node has, 1 or 2: kubelets since 1.31 have a metric for it."""
        path, what = "metrics", f"cgroup version of node {node}"
        return _found(lambda: Found(self.ask(node, path, _cgroup_version)), path, what, stated_with("cgroup", "v1"))

    def ask(self, node: str, path: str, read: Callable[[bytes], Model], query: Query = ()) -> Model:
        """Return a kubelet's decoded response at a path; raise ClusterError if it does not answer."""
        data = self._get(node, path, query)
        try:
            return read(data)
        except InputError as error:
            raise BadAnswer(str(error)) from error

    def _get(self, node: str, path: str, query: Query) -> bytes:
        if node not in self._unproxied:
            asked = question("get", NODES, subresource="proxy")
            try:
                way = f"{NODES.path(name=node, subresource='proxy')}/{path}"
                return self._cluster.client.get(way, query, asked=asked, patience=_PATIENCE).data
            except Forbidden:
                if self._cluster.access.user.impersonate:
                    raise  # a kubelet knows no impersonation: it would answer to someone else
                self._unproxied.add(node)
        return self._get_directly(node, path, query)

    def _get_directly(self, node: str, path: str, query: Query) -> bytes:
        cluster = self._cluster
        if len(self._failures) >= _ENOUGH and not self._reached:
            # A firewall in between, or certificates of their own: thousands of nodes need not each be tried.
            raise Unreachable(f"{self._failures[-1].what}, as with other kubelets")
        server = cluster.one(_ADDRESSES, node).server
        if server is None:
            raise NotFound("the node has no address", status=404)
        access: Access = replace(cluster.access, server=server, tls_server_name="")
        client = Client(access, credentials=cluster.client.credentials, patience=_PATIENCE)
        asked = question("get", NODES, subresource=path.partition("/")[0])
        try:
            data = client.get(f"/{path}", query, asked=asked).data
        except Unreachable as error:
            self._failures.append(error)
            raise
        except Unauthorized as error:
            # It does not know our credentials; the API server does, so these are not wrong.
            raise BadAnswer(f"{error.what} at the kubelet", where=client.where) from None
        else:
            self._reached += 1
            return data
        finally:
            client.close()


def _cgroup_version(data: bytes) -> int:
    found = _CGROUP_VERSION.search(data)
    if found is None:
        raise InputError("the kubelet's metrics do not state it")
    return int(found[1])


def _found(asked: Callable[[], Found[Model]], path: str, what: str, option: str) -> Found[Model]:
    """Return an answer; if there is none, an assumption with ``what`` is missing and the ``option`` that states it."""
    try:
        return asked()
    except Unauthorized:
        raise
    except InputError as error:
        return Found(assumptions=(missing(what, BadAnswer(str(error)), option),), is_silent=True)
    except Forbidden as error:
        subresource = path.partition("/")[0]
        allow = f"permission to get nodes/proxy, or nodes/{subresource} on the kubelet itself; or {option}"
        return Found(assumptions=(missing(what, error, allow),))
    except ClusterError as error:
        is_silent = not isinstance(error, Refused) or is_temporary(error.status)
        return Found(assumptions=(missing(what, error, option),), is_silent=is_silent)
