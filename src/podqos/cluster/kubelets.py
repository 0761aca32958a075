"""Edge: what kubelets say about themselves: /stats/summary and /configz.

First through the API server's node proxy, which needs ``get nodes/proxy``. Where that is forbidden the kubelet is asked
directly, which needs only ``get nodes/stats`` and ``nodes/configz``, a network that leads there, and a serving
certificate that the cluster's authority signed: a token is shown to no one else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from podqos.cluster.asking import Client, Query
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access
from podqos.cluster.patience import ONCE
from podqos.cluster.refusals import question
from podqos.cluster.resources import NODES, Model, Resource
from podqos.cluster.sources import Found, missing
from podqos.errors import BadAnswer, ClusterError, Forbidden, InputError, NotFound, Refused, Unauthorized, Unreachable
from podqos.eviction.observation import decode_summary
from podqos.manifest.kubelet import KubeletSettings, kubelet_settings_in
from podqos.model.stats import Summary

_AT_ONCE = 16
_ENOUGH = 16
_INTERNAL_ERROR = 500
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
        by_type = {each.type: each.address for each in reversed(self.status.addresses) if each.address}
        host = next((by_type[kind] for kind in _ORDER if kind in by_type), None)
        port = self.status.daemon_endpoints.kubelet_endpoint.port or 10250
        return None if host is None else f"https://{f'[{host}]' if ':' in host else host}:{port}"


_ADDRESSES: Resource[_Node] = Resource("", "v1", "nodes", "Node", _Node, is_namespaced=False)


class Kubelets:
    """The kubelets of a cluster. Several threads may ask at once."""

    def __init__(self, cluster: Cluster) -> None:
        """Ask nothing yet."""
        self._cluster = cluster
        self._is_proxied = True
        """Until the proxy turns out to be forbidden, which it then is for all nodes."""
        self._reached = 0
        self._failures: list[Unreachable] = []
        """Of kubelets that were asked directly: how many said something, and why others did not."""

    def answer(self, node: str, path: str, read: Callable[[bytes], Model], what: str, option: str) -> Found[Model]:
        """Return what a kubelet answers at a path, read from the bytes; ``what`` names it where it does not."""

        def decoded(node: str, path: str) -> Found[Model]:
            return Found(self.ask(node, path, read))

        return self._found(node, path, decoded, f"{what} of node {node}", option)

    def ask(self, node: str, path: str, read: Callable[[bytes], Model]) -> Model:
        """Return what a kubelet answers at a path, read from the bytes; raise ClusterError where it does not."""
        data = self._get(node, path)
        try:
            return read(data)
        except InputError as error:
            raise BadAnswer(str(error)) from error

    def summary(self, node: str) -> Found[Summary]:
        """Return what a node and its pods use."""
        return self._found(node, "stats/summary", self._decoded_summary, f"usage on node {node}", "--stats FILE")

    def summaries(self, nodes: Iterable[str]) -> Iterator[tuple[str, Found[Summary]]]:
        """Yield what nodes and their pods use, in the order of the names; several are asked at once."""
        return _at_once(self.summary, nodes)

    def settings(self, node: str) -> Found[KubeletSettings]:
        """Return a kubelet's settings."""

        def decoded(node: str, path: str) -> Found[KubeletSettings]:
            data = self._get(node, path)
            return Found(kubelet_settings_in(f"configz of node {node}", data))

        return self._found(node, "configz", decoded, f"kubelet settings of node {node}", "--kubelet-config FILE")

    def _found(
        self, node: str, path: str, decoded: Callable[[str, str], Found[Model]], what: str, option: str
    ) -> Found[Model]:
        try:
            return decoded(node, path)
        except Unauthorized:
            raise
        except InputError as error:
            wrong = BadAnswer(str(error))
            return Found(assumptions=(missing(what, wrong, option),))
        except Forbidden as error:
            subresource = path.partition("/")[0]
            allow = f"RBAC: get nodes/proxy, or get nodes/{subresource} for the kubelet itself; or {option}"
            return Found(assumptions=(missing(what, error, allow),))
        except ClusterError as error:
            return Found(assumptions=(missing(what, error, option),))

    def _decoded_summary(self, node: str, path: str) -> Found[Summary]:
        try:
            return Found(decode_summary(self._get(node, path)))
        except Refused as error:
            if error.status != _INTERNAL_ERROR:
                raise
            # A kubelet that cannot find a filesystem still knows memory.
            summary = decode_summary(self._get(node, path, [("only_cpu_and_memory", "true")]))
            return Found(summary, (missing(f"disk usage on node {node}", error, "--stats FILE"),))

    def _get(self, node: str, path: str, query: Query = ()) -> bytes:
        if self._is_proxied:
            asked = question("get", NODES, subresource="proxy")
            try:
                way = f"{NODES.path(name=node, subresource='proxy')}/{path}"
                return self._cluster.client.get(way, query, asked=asked, patience=_PATIENCE).data
            except Forbidden:
                if self._cluster.access.user.impersonate:
                    raise  # a kubelet knows no impersonation: it would answer to someone else
                self._is_proxied = False
        return self._get_directly(node, path, query)

    def _get_directly(self, node: str, path: str, query: Query) -> bytes:
        cluster = self._cluster
        if len(self._failures) >= _ENOUGH and not self._reached:
            # A firewall in between, or certificates of their own: thousands of nodes need not each be tried.
            raise Unreachable(f"{self._failures[-1].what}, as of other kubelets")
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


def _at_once(ask: Callable[[str], Model], names: Iterable[str]) -> Iterator[tuple[str, Model]]:
    from concurrent.futures import ThreadPoolExecutor

    every = list(names)
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        yield from zip(every, pool.map(ask, every), strict=True)
    finally:  # whoever stops listening need not wait for the rest
        pool.shutdown(cancel_futures=True)
