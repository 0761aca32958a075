"""Edge: what pods and nodes use, from metrics.k8s.io (metrics-server, or an adapter in its place).

Source: Kubernetes v1.36 staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go.
"""

from __future__ import annotations

from podqos.cluster.cluster import Cluster
from podqos.cluster.patience import ONCE
from podqos.cluster.resources import Model, Resource
from podqos.cluster.sources import Found, missing
from podqos.errors import ClusterError, NotFound, Refused, Unauthorized
from podqos.model.metrics import NodeMetrics, PodMetrics

_STATE_WITH = "install metrics-server, or --usage FILE"
_UNAVAILABLE = 503

POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", PodMetrics)
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", NodeMetrics, is_namespaced=False)


def pod_metrics(cluster: Cluster, namespace: str = "", *, selector: str = "") -> Found[list[PodMetrics]]:
    """Return what pods use."""
    return _found(cluster, POD_METRICS, "usage of pods", namespace, selector)


def node_metrics(cluster: Cluster) -> Found[list[NodeMetrics]]:
    """Return what nodes use."""
    return _found(cluster, NODE_METRICS, "usage of nodes", "", "")


def _found(cluster: Cluster, resource: Resource[Model], what: str, namespace: str, selector: str) -> Found[list[Model]]:
    try:
        return Found(cluster.read(resource, namespace, selector=selector, patience=ONCE))
    except Unauthorized:
        raise
    except NotFound as error:
        absent = NotFound("the cluster has no metrics.k8s.io", status=error.status)
        return Found(assumptions=(missing(what, absent, _STATE_WITH),))
    except ClusterError as error:
        if isinstance(error, Refused) and error.status == _UNAVAILABLE:
            error = Refused("metrics.k8s.io is registered but does not answer (503)", status=error.status)
        return Found(assumptions=(missing(what, error, _STATE_WITH),))
