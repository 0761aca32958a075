"""PQ2xx: LimitRanges, quotas and injectors."""

from __future__ import annotations

from podqos.advice.checks.finding import Check, Effect, Example, Severity

_LIMIT_RANGER = "Kubernetes: plugin/pkg/admission/limitranger/admission.go"
_QUOTA = "Kubernetes: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go"
_QOS = "Kubernetes: pkg/apis/core/v1/helper/qos/qos.go"

_GUARANTEED = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 1Gi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
"""

LIMIT_RANGE_CHANGES_CLASS = Check(
    id="PQ201",
    name="limit-range-changes-class",
    severity=Severity.WARNING,
    title="A LimitRange gives the pod another class than its manifest shows",
    why=(
        "Defaults of a LimitRange are filled into every container that leaves something out. A pod that was "
        "BestEffort on purpose becomes Burstable, with a limit at which it is killed; one that was Burstable can "
        "become Guaranteed, and reserve what it never asked for. Who dies before whom changes, and no line of the "
        "manifest has."
    ),
    fix="Write down what the LimitRange fills in, or what was meant.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: debug-tools}
spec:
  containers:
    - name: shell
      image: shell
---
apiVersion: v1
kind: LimitRange
metadata: {name: default-limits, namespace: default}
spec:
  limits:
    - type: Container
      default: {cpu: "1", memory: 512Mi, ephemeral-storage: 1Gi}
      defaultRequest: {cpu: 100m, memory: 128Mi}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: debug-tools}
spec:
  containers:
    - name: shell
      image: shell
      resources:
        requests: {cpu: 100m, memory: 128Mi}
        limits: {cpu: "1", memory: 512Mi}
---
apiVersion: v1
kind: LimitRange
metadata: {name: default-limits, namespace: default}
spec:
  limits:
    - type: Container
      default: {cpu: "1", memory: 512Mi, ephemeral-storage: 1Gi}
      defaultRequest: {cpu: 100m, memory: 128Mi}
"""),
    references=(_LIMIT_RANGER, _QOS),
)

HIDDEN_LIMIT = Check(
    id="PQ202",
    name="limit-range-hidden-maximum",
    severity=Severity.WARNING,
    title="A LimitRange sets a memory limit that the manifest does not show",
    why=(
        "The container states a request and no limit, and the namespace gives it one: at that limit the kernel "
        "kills it, however much the node has free, and nobody who reads the manifest can see why."
    ),
    fix="Write the limit down, at this amount or a better one.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 100m, memory: 256Mi}
---
apiVersion: v1
kind: LimitRange
metadata: {name: default-limits, namespace: default}
spec:
  limits:
    - type: Container
      default: {cpu: "1", memory: 512Mi, ephemeral-storage: 1Gi}
      defaultRequest: {cpu: 100m, memory: 128Mi}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 100m, memory: 256Mi}
        limits: {memory: 1Gi}
---
apiVersion: v1
kind: LimitRange
metadata: {name: default-limits, namespace: default}
spec:
  limits:
    - type: Container
      default: {cpu: "1", memory: 512Mi, ephemeral-storage: 1Gi}
      defaultRequest: {cpu: 100m, memory: 128Mi}
"""),
    references=(_LIMIT_RANGER,),
)

REFUSED_BY_LIMIT_RANGE = Check(
    id="PQ203",
    name="refused-by-limit-range",
    severity=Severity.ERROR,
    title="A LimitRange refuses the pod",
    why=(
        "Its bounds do not allow the amounts, or its default limit is smaller than the request. No pod is created: "
        "a Deployment goes on with the pods it has, and nothing replaces one that is evicted or killed."
    ),
    fix="Keep to the bounds, or write a limit of your own.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 4Gi}
        limits: {cpu: "1", memory: 4Gi, ephemeral-storage: 1Gi}
---
apiVersion: v1
kind: LimitRange
metadata: {name: bounds, namespace: default}
spec:
  limits:
    - type: Container
      max: {memory: 2Gi}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 2Gi}
        limits: {cpu: "1", memory: 2Gi, ephemeral-storage: 1Gi}
---
apiVersion: v1
kind: LimitRange
metadata: {name: bounds, namespace: default}
spec:
  limits:
    - type: Container
      max: {memory: 2Gi}
"""),
    effect=Effect.NOT_CREATED,
    references=(_LIMIT_RANGER,),
)

CONFLICTING_DEFAULTS = Check(
    id="PQ204",
    name="conflicting-limit-ranges",
    severity=Severity.WARNING,
    title="Two LimitRanges default the same resource differently",
    why=(
        "Which of them a container gets is not defined: the API server keeps them in no order. The same manifest "
        "can be killed at 512Mi today and at 2Gi tomorrow, and two replicas of it can have different scores."
    ),
    fix="Let one LimitRange of the namespace give the default.",
    bad=Example("""\
apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: default}
spec:
  limits:
    - type: Container
      default: {memory: 512Mi}
      defaultRequest: {memory: 256Mi}
---
apiVersion: v1
kind: LimitRange
metadata: {name: team, namespace: default}
spec:
  limits:
    - type: Container
      default: {memory: 2Gi}
      defaultRequest: {memory: 256Mi}
"""),
    good=Example("""\
apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: default}
spec:
  limits:
    - type: Container
      default: {memory: 512Mi}
      defaultRequest: {memory: 256Mi}
---
apiVersion: v1
kind: LimitRange
metadata: {name: team, namespace: default}
spec:
  limits:
    - type: Container
      default: {cpu: "1"}
      defaultRequest: {cpu: 100m}
"""),
    effect=Effect.NONE,
    references=(_LIMIT_RANGER,),
)

INJECTOR_DOWNGRADE = Check(
    id="PQ205",
    name="injector-downgrade",
    severity=Severity.WARNING,
    title="An injected sidecar lowers the class",
    why=(
        "The manifest is Guaranteed; the pod that runs is not, because the webhook adds containers whose requests "
        "and limits differ or are missing. The main container loses its oom_score_adj of -997 to a proxy nobody "
        "wrote down."
    ),
    fix="Set the injector's annotations so that its requests equal its limits.",
    bad=Example(_GUARANTEED, inject=("istio",)),
    good=Example(
        """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    sidecar.istio.io/proxyCPU: 500m
    sidecar.istio.io/proxyCPULimit: 500m
    sidecar.istio.io/proxyMemory: 256Mi
    sidecar.istio.io/proxyMemoryLimit: 256Mi
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 1Gi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
""",
        inject=("istio",),
    ),
    references=(
        _QOS,
        "istio: manifests/charts/istio-control/istio-discovery/files/injection-template.yaml",
        "linkerd2: charts/partials/templates/_proxy.tpl",
        "vault-k8s: agent-inject/agent/annotations.go",
    ),
)

QUOTA_DEMANDS = Check(
    id="PQ206",
    name="quota-demands-resources",
    severity=Severity.ERROR,
    title="A quota refuses pods that do not state their resources",
    why=(
        "A quota on cpu or memory demands that every container states it, and no LimitRange of the namespace fills "
        "it in. The pod is refused: what dies is not replaced."
    ),
    fix="State the resources, or put a LimitRange with defaults beside the quota.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {memory: 1Gi, ephemeral-storage: 1Gi}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: default}
spec:
  hard: {limits.cpu: "10"}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: default}
spec:
  hard: {limits.cpu: "10"}
"""),
    effect=Effect.NOT_CREATED,
    references=(_QUOTA, "Kubernetes: pkg/quota/v1/evaluator/core/pods.go"),
)

QUOTA_TOO_SMALL = Check(
    id="PQ207",
    name="quota-too-small",
    severity=Severity.ERROR,
    title="The quota has no room for all pods of the workload",
    why=(
        "The pods beyond the quota are refused. A workload that runs with fewer replicas than it was given does so "
        "without a word until one of them is evicted, and then there is no room to replace it either."
    ),
    fix="Raise the quota, or ask for less.",
    bad=Example("""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: web
          resources:
            requests: {cpu: 500m, memory: 512Mi}
            limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: default}
spec:
  hard: {requests.memory: 1Gi}
"""),
    good=Example("""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: web
          resources:
            requests: {cpu: 500m, memory: 512Mi}
            limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: default}
spec:
  hard: {requests.memory: 2Gi}
"""),
    effect=Effect.NOT_CREATED,
    references=(_QUOTA,),
)

POLICIES = (
    LIMIT_RANGE_CHANGES_CLASS,
    HIDDEN_LIMIT,
    REFUSED_BY_LIMIT_RANGE,
    CONFLICTING_DEFAULTS,
    INJECTOR_DOWNGRADE,
    QUOTA_DEMANDS,
    QUOTA_TOO_SMALL,
)
