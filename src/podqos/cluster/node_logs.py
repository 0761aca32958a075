"""Edge: logs of nodes, which kubelets serve through the API server; needs ``get nodes/proxy``.

The kernel's is a file below /var/log, if the node writes one (``enableSystemLogHandler``, on by default). The kubelet's
own comes from journald, if the kubelet may be asked for it (the feature NodeLogQuery, and ``enableSystemLogQuery``).
"""

from __future__ import annotations

from podqos.cluster.asking import Query
from podqos.cluster.cluster import Cluster
from podqos.cluster.patience import ONCE
from podqos.cluster.refusals import as_line, question
from podqos.cluster.resources import NODES
from podqos.cluster.sources import Found, missing
from podqos.errors import BadAnswer, ClusterError, NotFound, Unauthorized
from podqos.model.assumption import Assumption

_ANYTHING = "*/*"  # the kubelet answers 406 to a request that names a media type: its route declares none
MOST_BYTES = 64 << 20
_KERNEL_FILES = ("kern.log", "messages", "syslog")
_WORDS_FOR_NONE = (b"\nlog not found for", b"\nerror", b"\nfailed ", b"\noptions present")
_LISTING = (b"<pre>", b"<!doctype")  # of /var/log: the kubelet does not know the question


def kernel_log(cluster: Cluster, node: str) -> Found[bytes]:
    """Return the kernel log of a node."""
    error: ClusterError = BadAnswer(f"/var/log has no {', '.join(_KERNEL_FILES[:-1])} or {_KERNEL_FILES[-1]}")
    for name in _KERNEL_FILES:
        try:
            return Found(_read(cluster, node, f"logs/{name}"))
        except Unauthorized:
            raise
        except NotFound:
            continue
        except ClusterError as refused:
            error = refused
    return Found(assumptions=(_unread("kernel log", node, error, "the node's log as FILE"),))


def kubelet_log(cluster: Cluster, node: str) -> Found[bytes]:
    """Return a kubelet's recent log."""
    try:
        data = _read(cluster, node, "logs/", [("query", "kubelet"), ("tailLines", "100000")])
        if data[:16].lower().startswith(_LISTING):
            raise BadAnswer("it does not support log queries")
        if data.startswith(_WORDS_FOR_NONE):
            raise BadAnswer(as_line(data[:200].decode(errors="replace")))
        return Found(data)
    except Unauthorized:
        raise
    except ClusterError as error:
        return Found(assumptions=(_unread("kubelet log", node, error, "NodeLogQuery, or the kubelet's log as FILE"),))


def _unread(what: str, node: str, error: ClusterError, fix: str) -> Assumption:
    return missing(f"{what} of node {node}", error, fix)


def _read(cluster: Cluster, node: str, path: str, query: Query = ()) -> bytes:
    """Return a response's bytes; only the last ones if there are too many."""
    asked = question("get", NODES, subresource="proxy")
    way = f"{NODES.path(name=node, subresource='proxy')}/{path}"
    kept: list[bytes] = []
    size = 0
    with cluster.client.stream(way, query, asked=asked, patience=ONCE, accept=_ANYTHING) as stream:
        for piece in stream.pieces:
            kept.append(piece)
            size += len(piece)
            while size - len(kept[0]) > MOST_BYTES:
                size -= len(kept.pop(0))
    return b"".join(kept)
