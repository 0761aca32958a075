"""The four-hour incident of the content platform: a sidecar without limits, and no priorities.

The service itself stays within what it asked for. Its sidecar does not, and that is the whole pod's excess.
"""

from __future__ import annotations

from admission.pods import container
from eviction.nodes import pod, pod_of
from orders.nodes import GI, evicted, killed, orders
from podqos.eviction.signals import RankKey
from podqos.model.pod import Pod, QOSClass
from podqos.model.quantity import Quantity
from podqos.model.snapshot import NodeUsage
from podqos.orders.orders import Orders
from podqos.orders.pods import NodePod
from podqos.orders.usage import UsageRow, from_usage

SERVICE = container("article-service", requests="cpu=2,memory=4Gi", limits="cpu=2,memory=4Gi")
ANALYTICS = pod("analytics", "cpu=1,memory=4130Mi", "cpu=2,memory=10Gi")


def article_service(sidecar_limits: str) -> Pod:
    """Make the pod with its sidecar."""
    return pod_of(
        "article-service", SERVICE, container("envoy", requests="cpu=100m,memory=128Mi", limits=sidecar_limits)
    )


def node(article: Pod, sidecar: str) -> Orders:
    """Rank the service, whose sidecar uses so much, beside a job that uses a little less than it asked for."""
    rows = [
        UsageRow(article.key, "article-service", Quantity.parse("3500Mi")),
        UsageRow(article.key, "envoy", Quantity.parse(sidecar)),
        UsageRow(ANALYTICS.key, memory=Quantity.parse("4000Mi")),
    ]
    return orders(from_usage([NodePod(each, each.key) for each in (ANALYTICS, article)], rows, NodeUsage(64 * GI)))


def test_a_sidecar_without_limits_takes_the_service_with_it():
    found = node(article_service(""), "1Gi")
    assert evicted(found) == ["article-service", "analytics"]
    assert found.eviction[0].before_next_by is RankKey.OVER_REQUEST
    assert killed(found) == ["article-service", "analytics"]
    assert (found.kernel[0].usage.name, found.kernel[0].score.value) == ("envoy", 999)


def test_with_two_lines_the_order_turns_round():
    found = node(article_service("cpu=100m,memory=128Mi"), "128Mi")
    assert evicted(found) == killed(found) == ["analytics", "article-service"]
    assert found.kernel[-1].qos_class is QOSClass.GUARANTEED
    assert {place.score.value for place in found.kernel} == {937, -997}
