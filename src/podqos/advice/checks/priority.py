"""PQ301–PQ306: priorities that are missing, misspelt, or at odds with the class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from podqos.admission.priority import SYSTEM_PRIORITIES, Priority, priority_of
from podqos.advice.checks import examples
from podqos.advice.checks.check import Check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.classes import request_paths
from podqos.advice.checks.finding import Choice, Effect, Fact, Finding, FindingSeverity, Patch
from podqos.advice.checks.references import OOM, RANKING
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import Context, View
from podqos.model.pod import QOSClass
from podqos.model.selector import selects
from podqos.wording import listed

_PATH = "spec.priorityClassName"
_KUBE_SYSTEM = "kube-system"
_MEMORY_RANKING = f"{RANKING} (rankMemoryPressure)"
_PRIORITY = "Kubernetes: plugin/pkg/admission/priority/admission.go"

_CLASSES = examples.documents(
    *(
        f"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n"
        for name, value in (("latency-critical", 1_000_000), ("batch-processing", 100_000))
    )
)


def _pod(name: str, priority_class: str, resources: tuple[str, str]) -> str:
    """Return a pod of the examples; without a class the line is left out."""
    spec = f"  priorityClassName: {priority_class}\n" if priority_class else ""
    return examples.pod(examples.container(name, *resources), name=name, spec=spec)


def user_classes(context: Context) -> tuple[str, ...]:
    """Return the names of the priority classes that people gave out, highest first."""
    given = [each for each in context.priority_classes if each.metadata.name not in SYSTEM_PRIORITIES]
    return tuple(each.metadata.name for each in sorted(given, key=lambda each: (-each.value, each.metadata.name)))


# ---- PQ301–PQ303 -------------------------------------------------------------------------------------------------


class NoPriority(Fact, frozen=True, gc=False):
    """A workload that names no priority class while others do."""

    priority: int
    """What it gets."""
    higher: str
    """The workload with the highest priority."""
    higher_priority: int | None
    """None where its class is not known."""

    def what(self, _: str) -> str:
        """Return what it gets beside the highest."""
        higher = "has one" if self.higher_priority is None else f"has {self.higher_priority:,}"
        return f"no priorityClassName, so priority {self.priority:,}; {self.higher} {higher}"


class PriorityContradictsClass(Fact, frozen=True, gc=False):
    """A priority that promises what the class does not keep, or the other way round."""

    qos_class: QOSClass
    priority: int
    other: str | None = None
    other_class: QOSClass | None = None
    other_priority: int | None = None

    def what(self, _: str) -> str:
        """Return class and priority, beside those of the other workload."""
        own = f"{self.qos_class} with priority {self.priority:,}"
        if self.other is None or self.other_priority is None:
            return own
        return f"{own}, below {self.other}, which is {self.other_class} with {self.other_priority:,}"


def compare_priorities(context: Context, sketches: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield what shows only beside the priorities of others."""
    ranked = [sketch for sketch in sketches if not sketch.is_system]
    if not ranked:
        return
    # Without the classes nobody knows how high a priority is, but that there is one.
    highest = max(ranked, key=lambda sketch: (sketch.priority, sketch.names_priority, *_name(sketch)))
    is_known = context.knows_priorities or highest.priority > 0
    others_have = highest.names_priority and not is_known
    not_guaranteed = [sketch for sketch in ranked if sketch.qos_class is not QOSClass.GUARANTEED]
    rival = max(not_guaranteed, key=lambda sketch: (sketch.priority, *_name(sketch)), default=None)
    for sketch in ranked:
        facts: Fact
        if not sketch.names_priority:
            # A manifest that asks for nothing and has no priority is at least consistent.
            if sketch.asks_for_nothing or not (highest.priority > sketch.priority or others_have):
                continue
            check = NO_PRIORITY
            facts = NoPriority(sketch.priority, highest.subject.key, highest.priority if is_known else None)
        elif sketch.qos_class is QOSClass.GUARANTEED and rival is not None and rival.priority > sketch.priority:
            check = GUARANTEED_WITHOUT_PRIORITY
            other = (rival.subject.key, rival.qos_class, rival.priority)
            facts = PriorityContradictsClass(QOSClass.GUARANTEED, sketch.priority, *other)
        else:
            continue
        patch = Patch.choose(Choice.PRIORITY_CLASS, (sketch.at(_PATH),), user_classes(context))
        yield sketch.finding(check, _PATH, facts, patch)


def _name(sketch: Sketch) -> tuple[str, str]:
    return sketch.subject.key, sketch.subject.kind


NO_PRIORITY = Check(
    id="PQ301",
    name="priority-unset",
    severity=FindingSeverity.WARNING,
    title="A workload has no priority while others have",
    why=(
        "Among pods that use more than they request the kubelet evicts the one of lowest priority first. Whoever "
        "names no class gets the default, usually zero, and dies before every batch job that was given one; the "
        "scheduler may preempt it for any of them, too."
    ),
    fix="Name a PriorityClass.",
    example=Example(
        examples.documents(
            _CLASSES, _pod("web", "", examples.USUAL), _pod("report", "batch-processing", examples.USUAL)
        ),
        chosen={_PATH: "latency-critical"},
    ),
    references=(_MEMORY_RANKING, _PRIORITY),
    bundle_rule=compare_priorities,
)


def best_effort_with_priority(view: View) -> None:
    """Find a priority that the class makes worthless. System priorities are another matter: they are spared."""
    if view.stored_class is not QOSClass.BEST_EFFORT or view.priority <= 0 or view.stored.is_critical:
        return
    facts = PriorityContradictsClass(QOSClass.BEST_EFFORT, view.priority)
    view.report(PRIORITY_WITHOUT_REQUESTS, _PATH, facts, view.choose(Choice.RESOURCES, *request_paths(view)))


PRIORITY_WITHOUT_REQUESTS = Check(
    id="PQ302",
    name="high-priority-best-effort",
    severity=FindingSeverity.WARNING,
    title="A BestEffort pod has a priority",
    why=(
        "The kernel knows no priorities: with an oom_score_adj of 1000 the pod is the first it kills. The kubelet "
        "asks first who uses more than he requested, and a pod that requests nothing always does. The priority only "
        "helps it to preempt others when it is scheduled."
    ),
    fix="Give it requests, or take its priority away.",
    example=Example(
        examples.documents(
            _CLASSES,
            """\
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
""",
        ),
        chosen={
            "spec.template.spec.containers[0].resources.requests": {"cpu": "500m", "memory": "512Mi"},
            "spec.template.spec.containers[0].resources.limits": {"memory": "1Gi", "ephemeral-storage": "1Gi"},
        },
    ),
    references=(_MEMORY_RANKING, OOM),
    rule=best_effort_with_priority,
)

GUARANTEED_WITHOUT_PRIORITY = Check(
    id="PQ303",
    name="low-priority-guaranteed",
    severity=FindingSeverity.INFO,
    title="A Guaranteed pod has a lower priority than one that is not",
    why=(
        "The class keeps it from the kernel and, while it stays within its request, from eviction; the scheduler "
        "goes by priority alone. When the cluster is full it removes this pod to make room for one that was meant "
        "to go first."
    ),
    fix="Give Guaranteed workloads the higher priorities.",
    example=Example(
        examples.documents(
            _CLASSES,
            _pod("web", "batch-processing", examples.EQUAL),
            _pod("report", "latency-critical", examples.USUAL),
        ),
        chosen={_PATH: "latency-critical"},
    ),
    effect=Effect.STANDING,
    references=("Kubernetes: pkg/scheduler/framework/preemption/preemption.go",),
    bundle_rule=compare_priorities,
)


# ---- PQ304–PQ306 -------------------------------------------------------------------------------------------------


class SystemPriority(Fact, frozen=True, gc=False):
    """A workload outside kube-system with a priority of the system."""

    class_name: str

    def what(self, _: str) -> str:
        """Return which."""
        return f"{self.class_name} is for the system's own pods"


def system_priority(view: View) -> None:
    """Find a system priority outside kube-system. Pods of a DaemonSet may be part of the node."""
    name = view.pod.spec.priority_class_name
    if name not in SYSTEM_PRIORITIES or view.pod.metadata.namespace == _KUBE_SYSTEM:
        return
    if view.workload.kind != "DaemonSet":
        patch = view.choose(Choice.PRIORITY_CLASS, _PATH, candidates=user_classes(view.context))
        view.report(SYSTEM_PRIORITY, _PATH, SystemPriority(name), patch)


SYSTEM_PRIORITY = Check(
    id="PQ304",
    name="system-priority-misuse",
    severity=FindingSeverity.ERROR,
    title="A workload borrows a priority of the system",
    why=(
        "Pods with a system priority are never evicted: however much such a pod leaks, the kubelet takes all others "
        "first, and cluster DNS counts no more than it does. With system-node-critical the kernel spares it as "
        "well."
    ),
    fix="Name a PriorityClass of your own.",
    example=Example(_pod("web", "system-cluster-critical", examples.USUAL), chosen={_PATH: "latency-critical"}),
    references=("Kubernetes: pkg/kubelet/types/pod_update.go (IsCriticalPod)", _PRIORITY),
    rule=system_priority,
)


class UnknownPriorityClass(Fact, frozen=True, gc=False):
    """A priority class that does not exist."""

    class_name: str
    known: tuple[str, ...]

    def what(self, _: str) -> str:
        """Return which, and which there are."""
        known = f"; there are {listed(self.known)}" if self.known else ""
        return f"there is no PriorityClass {self.class_name}{known}"


def unknown_class(view: View) -> None:
    """Find a priority class that is not among those given; nothing is known where none are given."""
    name = view.pod.spec.priority_class_name
    if not name or not view.context.knows_priorities or view.workload.is_live:
        return
    if isinstance(priority_of(name, view.context.priority_classes), Priority):
        return
    known = user_classes(view.context)
    close = get_close_matches(name, known, 1)
    if set(known) <= set(view.context.surroundings.cluster.stated_classes):
        return  # classes that are stated one by one are not all of them
    if close:
        patch = Patch.write(view.edit(_PATH, close[0], name))
    else:
        patch = view.choose(Choice.PRIORITY_CLASS, _PATH, candidates=known)
    view.report(UNKNOWN_PRIORITY_CLASS, _PATH, UnknownPriorityClass(name, known), patch)


UNKNOWN_PRIORITY_CLASS = Check(
    id="PQ305",
    name="unknown-priority-class",
    severity=FindingSeverity.ERROR,
    title="The PriorityClass does not exist",
    why="The API server refuses every pod that names it: what runs goes on until it dies, and is not replaced.",
    fix="Name one of the classes that exist, or create it.",
    example=Example(examples.documents(_CLASSES, _pod("web", "latency-critcal", examples.USUAL))),
    effect=Effect.NOT_CREATED,
    references=(_PRIORITY,),
    rule=unknown_class,
)


class BudgetIsNoShield(Fact, frozen=True, gc=False):
    """A PodDisruptionBudget over pods that node pressure may end."""

    budget: str
    qos_class: QOSClass

    def what(self, _: str) -> str:
        """Return which, and over which class."""
        return f"PodDisruptionBudget {self.budget} covers it, and it is {self.qos_class}: node pressure asks no budget"


def budget(view: View) -> None:
    """Find PodDisruptionBudgets over pods that are not Guaranteed."""
    budgets = view.context.surroundings.disruption_budgets
    if not budgets or view.stored_class is QOSClass.GUARANTEED:
        return
    metadata = view.pod.metadata
    for each in budgets:
        if each.metadata.namespace == metadata.namespace and selects(each.spec.selector, metadata.labels):
            facts = BudgetIsNoShield(each.metadata.name, view.stored_class)
            view.report(BUDGET_IS_NO_SHIELD, "spec.containers[0].resources", facts, Patch.choose(Choice.RESOURCES))


BUDGET_IS_NO_SHIELD = Check(
    id="PQ306",
    name="disruption-budget-is-no-shield",
    severity=FindingSeverity.INFO,
    title="A PodDisruptionBudget does not protect from node pressure",
    why=(
        "Budgets bind those who ask, such as kubectl drain. The kubelet does not ask: when its node runs short it "
        "evicts pods that use more than they request, all of them if need be, and the kernel knows no budgets at "
        "all."
    ),
    fix="What protects a pod on its node is its class and its request: make it Guaranteed.",
    example=Example(
        examples.documents(
            examples.pod(examples.container("web", *examples.USUAL), metadata=", labels: {app: web}"),
            """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
""",
        ),
        chosen={
            "spec.containers[0].resources.requests.cpu": "1",
            "spec.containers[0].resources.requests.memory": "1Gi",
        },
    ),
    references=("Kubernetes: pkg/kubelet/eviction/eviction_manager.go (evictPod)",),
    rule=budget,
)
