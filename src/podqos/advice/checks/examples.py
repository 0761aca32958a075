"""What the examples of checks are made of: small manifests that say nothing but what they show."""

from __future__ import annotations

from textwrap import indent

USUAL = ("cpu: 500m, memory: 512Mi", 'cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi')
"""Requests and limits that no check objects to."""
EQUAL = ('cpu: "1", memory: 1Gi', 'cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi')
"""Those of a Guaranteed pod."""

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80}]
"""

PRIORITY_CLASSES = "---\n".join(
    f"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n"
    for name, value in (("latency-critical", 1_000_000), ("batch-processing", 100_000))
)


def documents(*texts: str) -> str:
    """Return objects as the documents of one file."""
    return "---\n".join(texts)


def container(name: str = "web", requests: str = "", limits: str = "", image: str = "") -> str:
    """Return an item of ``containers``."""
    sides = (("requests", requests), ("limits", limits))
    stated = "".join(f"        {side}: {{{amounts}}}\n" for side, amounts in sides if amounts)
    return f"    - name: {name}\n      image: {image or name}\n" + (f"      resources:\n{stated}" if stated else "")


def pod(*containers: str, name: str = "web", metadata: str = "", spec: str = "") -> str:
    """Return a Pod; ``metadata`` and ``spec`` are further fields."""
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}{metadata}}}
spec:
{spec}  containers:
{"".join(containers)}"""


def web(requests: str, limits: str = "") -> str:
    """Return the pod of most examples."""
    return pod(container("web", requests, limits))


def deployment(replicas: int, requests: str, limits: str) -> str:
    """Return a Deployment."""
    head = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n"
    return head + _template("web", container("web", requests, limits))


def daemon_set(requests: str = "", limits: str = "") -> str:
    """Return a DaemonSet."""
    head = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: log-collector}\nspec:\n"
    return head + _template("logs", container("collector", requests, limits))


def stateful_set(name: str, *containers: str, spec: str = "") -> str:
    """Return a StatefulSet; ``spec`` are further fields of its pods."""
    head = f"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: {name}}}\nspec:\n  serviceName: {name}\n"
    return head + _template(name, "".join(containers)) + indent(spec, "    ")


def _template(app: str, containers: str) -> str:
    selector = f"  selector: {{matchLabels: {{app: {app}}}}}\n  template:\n    metadata: {{labels: {{app: {app}}}}}\n"
    return f"{selector}    spec:\n      containers:\n{indent(containers, '    ')}"


def node(name: str = "worker") -> str:
    """Return a Node of four cores and 8Gi."""
    return f"""\
apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status:
  capacity: {{cpu: "4", memory: 8Gi}}
  allocatable: {{cpu: "4", memory: 8Gi}}
"""


def autoscaler(most: int, metric: str) -> str:
    """Return a HorizontalPodAutoscaler of the Deployment; ``metric`` is a resource with its target."""
    return f"""\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: web}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  minReplicas: 2
  maxReplicas: {most}
  metrics:
    - type: Resource
      resource: {{{metric}}}
"""


def limit_range(name: str, item: str) -> str:
    """Return a LimitRange for containers; ``item`` are its lines."""
    return f"""\
apiVersion: v1
kind: LimitRange
metadata: {{name: {name}, namespace: default}}
spec:
  limits:
    - type: Container
{indent(item, "      ")}"""


def quota(hard: str) -> str:
    """Return a ResourceQuota."""
    return f"""\
apiVersion: v1
kind: ResourceQuota
metadata: {{name: team, namespace: default}}
spec:
  hard: {{{hard}}}
"""


def kubelet(settings: str) -> str:
    """Return a KubeletConfiguration."""
    return f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{settings}"
