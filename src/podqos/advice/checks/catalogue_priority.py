"""PQ3xx: priority, and the order it stands for."""

from __future__ import annotations

from podqos.advice.checks.finding import Check, Effect, Example, Severity

_RANKING = "Kubernetes: pkg/kubelet/eviction/helpers.go (rankMemoryPressure)"
_OOM = "Kubernetes: pkg/kubelet/qos/policy.go"
_PRIORITY = "Kubernetes: plugin/pkg/admission/priority/admission.go"
_CRITICAL = "Kubernetes: pkg/kubelet/types/pod_update.go (IsCriticalPod)"
_PREEMPTION = "Kubernetes: pkg/scheduler/framework/preemption/preemption.go"

_CLASSES = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: latency-critical}
value: 1000000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: batch-processing}
value: 100000
---
"""


def _pod(name: str, priority_class: str, resources: str) -> str:
    """Return a pod of the examples; without a class the line is left out."""
    priority = f"  priorityClassName: {priority_class}\n" if priority_class else ""
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
{priority}  containers:
    - name: {name}
      image: {name}
{resources}"""


_BURSTABLE = """\
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
"""
_GUARANTEED = """\
      resources:
        requests: {cpu: "1", memory: 1Gi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
"""

NO_PRIORITY = Check(
    id="PQ301",
    name="priority-unset",
    severity=Severity.WARNING,
    title="A workload has no priority while others have",
    why=(
        "Among pods that use more than they request the kubelet evicts the one of lowest priority first. Whoever "
        "names no class gets the default, usually zero, and dies before every batch job that was given one; the "
        "scheduler may preempt it for any of them, too."
    ),
    fix="Name a PriorityClass.",
    bad=Example(_CLASSES + _pod("web", "", _BURSTABLE) + "---\n" + _pod("report", "batch-processing", _BURSTABLE)),
    good=Example(
        _CLASSES
        + _pod("web", "latency-critical", _BURSTABLE)
        + "---\n"
        + _pod("report", "batch-processing", _BURSTABLE)
    ),
    references=(_RANKING, _PRIORITY),
)

PRIORITY_WITHOUT_REQUESTS = Check(
    id="PQ302",
    name="high-priority-best-effort",
    severity=Severity.WARNING,
    title="A BestEffort pod has a priority",
    why=(
        "The kernel knows no priorities: with an oom_score_adj of 1000 the pod is the first it kills. The kubelet "
        "asks first who uses more than he requested, and a pod that requests nothing always does. The priority only "
        "helps it to preempt others when it is scheduled."
    ),
    fix="Give it requests, or take its priority away.",
    bad=Example(
        _CLASSES
        + """\
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  template:
    spec:
      priorityClassName: latency-critical
      restartPolicy: Never
      containers:
        - name: report
          image: report
"""
    ),
    good=Example(
        _CLASSES
        + """\
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  template:
    spec:
      priorityClassName: latency-critical
      restartPolicy: Never
      containers:
        - name: report
          image: report
          resources:
            requests: {cpu: 500m, memory: 512Mi}
            limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
"""
    ),
    references=(_RANKING, _OOM),
)

GUARANTEED_WITHOUT_PRIORITY = Check(
    id="PQ303",
    name="low-priority-guaranteed",
    severity=Severity.INFO,
    title="A Guaranteed pod has a lower priority than one that is not",
    why=(
        "The class keeps it from the kernel and, while it stays within its request, from eviction; the scheduler "
        "goes by priority alone. When the cluster is full it removes this pod to make room for one that was meant "
        "to go first."
    ),
    fix="Give Guaranteed workloads the higher priorities.",
    bad=Example(
        _CLASSES
        + _pod("web", "batch-processing", _GUARANTEED)
        + "---\n"
        + _pod("report", "latency-critical", _BURSTABLE)
    ),
    good=Example(
        _CLASSES
        + _pod("web", "latency-critical", _GUARANTEED)
        + "---\n"
        + _pod("report", "batch-processing", _BURSTABLE)
    ),
    effect=Effect.STANDING,
    references=(_PREEMPTION,),
)

SYSTEM_PRIORITY = Check(
    id="PQ304",
    name="system-priority-misuse",
    severity=Severity.ERROR,
    title="A workload borrows a priority of the system",
    why=(
        "Pods with a system priority are never evicted: however much such a pod leaks, the kubelet takes all others "
        "first, and cluster DNS counts no more than it does. With system-node-critical the kernel spares it as "
        "well."
    ),
    fix="Name a PriorityClass of your own.",
    bad=Example(_pod("web", "system-cluster-critical", _BURSTABLE)),
    good=Example(_CLASSES + _pod("web", "latency-critical", _BURSTABLE)),
    references=(_CRITICAL, _PRIORITY),
)

UNKNOWN_PRIORITY_CLASS = Check(
    id="PQ305",
    name="unknown-priority-class",
    severity=Severity.ERROR,
    title="The PriorityClass does not exist",
    why="The API server refuses every pod that names it: what runs goes on until it dies, and is not replaced.",
    fix="Name one of the classes that exist, or create it.",
    bad=Example(_CLASSES + _pod("web", "latency-critcal", _BURSTABLE)),
    good=Example(_CLASSES + _pod("web", "latency-critical", _BURSTABLE)),
    effect=Effect.NOT_CREATED,
    references=(_PRIORITY,),
)

BUDGET_IS_NO_SHIELD = Check(
    id="PQ306",
    name="disruption-budget-is-no-shield",
    severity=Severity.INFO,
    title="A PodDisruptionBudget does not protect from node pressure",
    why=(
        "Budgets bind those who ask, such as kubectl drain. The kubelet does not ask: when its node runs short it "
        "evicts pods that use more than they request, all of them if need be, and the kernel knows no budgets at "
        "all."
    ),
    fix="What protects a pod on its node is its class and its request: make it Guaranteed.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 1Gi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
"""),
    references=("Kubernetes: pkg/kubelet/eviction/eviction_manager.go (evictPod)",),
)

PRIORITY = (
    NO_PRIORITY,
    PRIORITY_WITHOUT_REQUESTS,
    GUARANTEED_WITHOUT_PRIORITY,
    SYSTEM_PRIORITY,
    UNKNOWN_PRIORITY_CLASS,
    BUDGET_IS_NO_SHIELD,
)
