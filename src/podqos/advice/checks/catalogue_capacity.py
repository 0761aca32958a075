"""PQ5xx: what nodes can hold."""

from __future__ import annotations

from podqos.advice.checks.finding import Check, Effect, Example, Severity

_FIT = "Kubernetes: pkg/scheduler/framework/plugins/noderesources/fit.go"


def _example(requests: str, limits: str, replicas: int = 2) -> Example:
    return Example(f"""\
apiVersion: v1
kind: Node
metadata: {{name: worker}}
status:
  capacity: {{cpu: "4", memory: 8Gi}}
  allocatable: {{cpu: "4", memory: 8Gi}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
        - name: web
          image: web
          resources:
            requests: {{{requests}}}
            limits: {{{limits}, ephemeral-storage: 1Gi}}
""")


CPU_OVERCOMMIT = Check(
    id="PQ501",
    name="cpu-over-budget",
    severity=Severity.WARNING,
    title="More cpu is promised than the budget allows",
    why=(
        "When everybody bursts, each gets a fraction of its limit. Too little cpu does not kill, but it slows down "
        "probes and the very pods that are to free memory, and it does so to Burstable pods by their requests "
        "alone."
    ),
    fix="Lower the limits of those that exceed their requests most, or add nodes.",
    bad=_example("cpu: 500m, memory: 1Gi", 'cpu: "5", memory: 2Gi'),
    good=_example("cpu: 500m, memory: 1Gi", 'cpu: "2", memory: 2Gi'),
    effect=Effect.NONE,
    references=("Kubernetes: pkg/kubelet/cm/helpers_linux.go", "docs/place.md"),
)

MEMORY_OVERCOMMIT = Check(
    id="PQ502",
    name="memory-over-budget",
    severity=Severity.WARNING,
    title="More memory is promised than the budget allows",
    why=(
        "Memory cannot be shared out by the moment: when pods use what they may, somebody has to die. The further "
        "limits exceed what the nodes have, the fewer pods have to burst at the same time."
    ),
    fix="Lower the limits of those that exceed their requests most, or add nodes.",
    bad=_example("cpu: 500m, memory: 2Gi", 'cpu: "1", memory: 6Gi'),
    good=_example("cpu: 500m, memory: 2Gi", 'cpu: "1", memory: 4Gi'),
    effect=Effect.NODE,
    references=("Kubernetes: pkg/kubelet/eviction/helpers.go", "docs/place.md"),
)

OVERFULL = Check(
    id="PQ503",
    name="requests-exceed-nodes",
    severity=Severity.ERROR,
    title="More is requested than the nodes have",
    why=(
        "Some pods stay pending, or the scheduler preempts those of lower priority to make room; after a node is "
        "lost there is no room for its pods."
    ),
    fix="Lower requests or replicas, or add nodes.",
    bad=_example("cpu: 1500m, memory: 1Gi", "cpu: 1500m, memory: 1Gi", 3),
    good=_example("cpu: 1500m, memory: 1Gi", "cpu: 1500m, memory: 1Gi"),
    effect=Effect.NONE,
    references=(_FIT,),
)

LARGER_THAN_ANY_NODE = Check(
    id="PQ504",
    name="larger-than-any-node",
    severity=Severity.ERROR,
    title="A pod fits no node, however empty",
    why="It stays pending for ever: no preemption can make room for it.",
    fix="Lower its requests, or add a larger node.",
    bad=Example(
        """\
apiVersion: v1
kind: Node
metadata: {name: worker-1}
status:
  capacity: {cpu: "4", memory: 8Gi}
  allocatable: {cpu: "4", memory: 8Gi}
---
apiVersion: v1
kind: Node
metadata: {name: worker-2}
status:
  capacity: {cpu: "4", memory: 8Gi}
  allocatable: {cpu: "4", memory: 8Gi}
---
apiVersion: v1
kind: Pod
metadata: {name: model}
spec:
  containers:
    - name: model
      image: model
      resources:
        requests: {cpu: "1", memory: 10Gi}
        limits: {cpu: "1", memory: 10Gi, ephemeral-storage: 1Gi}
"""
    ),
    good=Example(
        """\
apiVersion: v1
kind: Node
metadata: {name: worker-1}
status:
  capacity: {cpu: "4", memory: 16Gi}
  allocatable: {cpu: "4", memory: 15Gi}
---
apiVersion: v1
kind: Pod
metadata: {name: model}
spec:
  containers:
    - name: model
      image: model
      resources:
        requests: {cpu: "1", memory: 10Gi}
        limits: {cpu: "1", memory: 10Gi, ephemeral-storage: 1Gi}
"""
    ),
    effect=Effect.NOT_CREATED,
    references=(_FIT,),
)

CAPACITY = (CPU_OVERCOMMIT, MEMORY_OVERCOMMIT, OVERFULL, LARGER_THAN_ANY_NODE)
