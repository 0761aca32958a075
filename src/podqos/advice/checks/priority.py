"""PQ301 and PQ303–PQ306: priorities that are missing, misspelt, or at odds with the class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from msgspec.structs import replace

from podqos.admission.priority import SYSTEM_PRIORITIES, Priority, global_default, priority_of
from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, INFO, WARNING, bundle_check, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Effect, Fact, Finding, Patch
from podqos.advice.checks.references import RANKING
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import CheckContext, View
from podqos.amounts import listed, verb
from podqos.model.pod import Pod, QOSClass

_PATH = "spec.priorityClassName"
_KUBE_SYSTEM = "kube-system"
# Everything, control planes, and nodes for add-ons: applications tolerate none of these.
_SYSTEM_TAINTS = (
    "",
    "CriticalAddonsOnly",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
)
_MEMORY_RANKING = f"{RANKING} (rankMemoryPressure)"
_PRIORITY = "Kubernetes: plugin/pkg/admission/priority/admission.go"


def _pod(name: str, priority_class: str, resources: tuple[str, str]) -> str:
    """Return a pod of the examples; without a class the line is left out."""
    spec = f"  priorityClassName: {priority_class}\n" if priority_class else ""
    return examples.pod(examples.container(name, *resources), name=name, spec=spec)


def user_classes(context: CheckContext) -> tuple[str, ...]:
    """Return the names of user-defined priority classes, highest first."""
    given = [
        priority_class
        for priority_class in context.priority_classes
        if priority_class.metadata.name not in SYSTEM_PRIORITIES
    ]
    return tuple(
        priority_class.metadata.name
        for priority_class in sorted(given, key=lambda each: (-each.value, each.metadata.name))
    )


# ---- PQ301–PQ303 -------------------------------------------------------------------------------------------------


class NoPriority(Fact, frozen=True, gc=False):
    """A workload that names no priority class while most others do."""

    priority: int
    """What it gets."""
    higher: str
    """The workload with the highest priority."""
    higher_priority: int | None
    """None where its class is not known."""

    def sentence(self, _: str) -> str:
        """Return what it gets beside the highest."""
        higher = "has one" if self.higher_priority is None else f"has {self.higher_priority:,}"
        return f"no priorityClassName, so priority {self.priority:,}; {self.higher} {higher}"

    def harm(self) -> str:
        """Return what happens to pods that are never evicted, or last."""
        return "the scheduler preempts it in favour of any pod with a higher priority"


class PriorityContradictsClass(Fact, frozen=True, gc=False):
    """A class that promises what the priority does not keep."""

    qos_class: QOSClass
    priority: int
    other: str
    other_class: QOSClass
    other_priority: int

    def sentence(self, _: str) -> str:
        """Return class and priority, beside those of the other workload."""
        own = f"{self.qos_class} with priority {self.priority:,}"
        return f"{own}, below {self.other}, which is {self.other_class} with {self.other_priority:,}"


def compare_priorities(context: CheckContext, sketches: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield what shows only in comparison with other priorities."""
    ranked = [sketch for sketch in sketches if not sketch.is_system]
    if not ranked:
        return
    default = global_default(context.priority_classes)
    has_default = default is not None and default.value != 0
    # Without the classes, only that there is a priority is known, not how high it is.
    highest = max(ranked, key=lambda sketch: (sketch.priority, sketch.names_priority, *_name(sketch)))
    is_known = context.knows_priorities or highest.priority > 0
    others_have = highest.names_priority and not is_known
    # One class among many workloads is an exception, not a rule that the others break.
    are_usual = 3 * sum(sketch.names_priority for sketch in ranked) >= 2 * (len(ranked) - 1)
    not_guaranteed = [sketch for sketch in ranked if sketch.qos_class is not QOSClass.GUARANTEED]
    rival = max(not_guaranteed, key=lambda sketch: (sketch.priority, *_name(sketch)), default=None)
    for sketch in ranked:
        facts: Fact
        if not sketch.names_priority:
            # A manifest that asks for nothing and has no priority is at least consistent.
            is_lower = highest.priority > sketch.priority or others_have
            # Where the default is a priority, to name none is to choose it.
            if sketch.asks_for_nothing or has_default or not (are_usual and is_lower):
                continue
            check = no_priority
            facts = NoPriority(sketch.priority, highest.subject.key, highest.priority if is_known else None)
        elif sketch.qos_class is QOSClass.GUARANTEED and rival is not None and rival.priority > sketch.priority:
            check = guaranteed_without_priority
            other = (rival.subject.key, rival.qos_class, rival.priority)
            facts = PriorityContradictsClass(QOSClass.GUARANTEED, sketch.priority, *other)
        else:
            continue
        patch = Patch.choose(Choice.PRIORITY_CLASS, (sketch.at(_PATH),), user_classes(context))
        yield sketch.finding(check, _PATH, facts, patch)


def _name(sketch: Sketch) -> tuple[str, str]:
    return sketch.subject.key, sketch.subject.kind


@bundle_check("PQ301", "priority-unset", WARNING, _MEMORY_RANKING, _PRIORITY, rule=compare_priorities)
def no_priority() -> Example:
    """PQ301: A workload has no priority while most others do.

    Among pods that use more than they request, the kubelet evicts the one with the lowest priority first. A pod without
    a class gets the default, usually zero: it is evicted before every batch job that has one, and the scheduler may
    preempt it for any of them. Reported if at least two thirds of the other workloads in the directory name a class: if
    few do, they are the exceptions. Not reported if the global default
    is another than zero.

    Fix: Set a PriorityClass.
    """
    return Example(
        examples.documents(
            examples.PRIORITY_CLASSES,
            _pod("web", "", examples.USUAL),
            _pod("report", "batch-processing", examples.USUAL),
        ),
        chosen={_PATH: "latency-critical"},
    )


@bundle_check(
    "PQ303",
    "low-priority-guaranteed",
    INFO,
    "Kubernetes: pkg/scheduler/framework/preemption/preemption.go",
    effect=Effect.STANDING,
    rule=compare_priorities,
)
def guaranteed_without_priority() -> Example:
    """PQ303: A Guaranteed pod has a lower priority than one that is not.

    The class protects it from the kernel and, within its request, from eviction. But the scheduler decides by priority
    alone. When the cluster is full, it preempts this pod in favour of one that should have been evicted first.

    Fix: Give Guaranteed workloads the higher priorities.
    """
    return Example(
        examples.documents(
            examples.PRIORITY_CLASSES,
            _pod("web", "batch-processing", examples.EQUAL),
            _pod("report", "latency-critical", examples.USUAL),
        ),
        chosen={_PATH: "latency-critical"},
    )


# ---- PQ304–PQ306 -------------------------------------------------------------------------------------------------


class SystemPriority(Fact, frozen=True, gc=False):
    """A workload outside kube-system with a priority of the system."""

    class_name: str

    def sentence(self, _: str) -> str:
        """Return which."""
        return f"{self.class_name} is meant for the cluster's own components"

    def harm(self) -> str:
        """Return what happens to pods that are never evicted, or last."""
        return "never evicted, and never preempted: if it leaks, every other pod on its node is evicted first"


def find_system_priority(view: View) -> None:
    """Find a system priority outside kube-system. Pods of a DaemonSet may be part of the node."""
    name = view.pod.spec.priority_class_name
    if name not in SYSTEM_PRIORITIES or view.pod.metadata.namespace == _KUBE_SYSTEM:
        return
    if view.workload.kind != "DaemonSet":
        patch = view.choose(Choice.PRIORITY_CLASS, _PATH, candidates=user_classes(view.context))
        is_misused = _is_application(view) and not _is_part_of_nodes(view.pod)
        check = system_priority if is_misused else replace(system_priority, severity=INFO)
        view.report(check, _PATH, SystemPriority(name), patch)


def _is_application(view: View) -> bool:
    """Whether something shows that it is no part of the cluster: a route for users, or no namespace of its own.

    A Service of type LoadBalancer is also what an ingress controller has.
    """
    serves = view.serves
    return view.pod.metadata.namespace_or_default == "default" or not (serves is None or serves.startswith("Service "))


def _is_part_of_nodes(pod: Pod) -> bool:
    """Whether it uses its node's network or files, or may run where applications may not."""
    spec = pod.spec
    if spec.host_network or any(volume.host_path is not None for volume in spec.volumes):
        return True
    return any(toleration.key in _SYSTEM_TAINTS for toleration in spec.tolerations)


@check(
    "PQ304",
    "system-priority-misuse",
    WARNING,
    "Kubernetes: pkg/kubelet/types/pod_update.go (IsCriticalPod)",
    _PRIORITY,
    rule=find_system_priority,
)
def system_priority() -> Example:
    """PQ304: A workload uses a priority of the system.

    Pods with a system priority are never evicted: however much such a pod leaks, the kubelet evicts all others first,
    and it ranks equal to cluster DNS. With system-node-critical the kernel spares it as well. A warning for
    applications: in the namespace default, or reached by an Ingress or a Gateway API route. An info for what may well
    be a part of the cluster: in a namespace of its own, on its node's network, with a hostPath volume, or with a
    toleration for control-plane nodes. DaemonSets and kube-system are not reported.

    Fix: Use a PriorityClass of your own.
    """
    return Example(_pod("web", "system-cluster-critical", examples.USUAL), chosen={_PATH: "latency-critical"})


class UnknownPriorityClass(Fact, frozen=True, gc=False):
    """A priority class that does not exist."""

    class_name: str
    known: tuple[str, ...]

    def sentence(self, _: str) -> str:
        """Return which, and which there are."""
        known = f"; existing classes: {listed(self.known)}" if self.known else ""
        return f"PriorityClass {self.class_name} does not exist{known}"


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
    view.report(unknown_priority_class, _PATH, UnknownPriorityClass(name, known), patch)


@check("PQ305", "unknown-priority-class", ERROR, _PRIORITY, effect=Effect.NOT_CREATED, rule=unknown_class)
def unknown_priority_class() -> Example:
    """PQ305: The PriorityClass does not exist.

    The API server rejects every pod that names it: running pods continue until they die and are not replaced.

    Fix: Name an existing class, or create it.
    """
    return Example(examples.documents(examples.PRIORITY_CLASSES, _pod("web", "latency-critcal", examples.USUAL)))


class BudgetIsNoShield(Fact, frozen=True, gc=False):
    """A PodDisruptionBudget over pods that node pressure may end."""

    budget: str
    """The first of them."""
    qos_class: QOSClass
    budgets: tuple[str, ...] = ()
    """All that cover the pods, by name."""

    def sentence(self, _: str) -> str:
        """Return which, and over which class."""
        names = self.budgets or (self.budget,)
        which = f"PodDisruptionBudget{'s' * (len(names) > 1)} {listed(names)} {verb(names, 'does', 'do')}"
        return f"it is {self.qos_class}, and {which} not apply to node-pressure eviction"


def budget(view: View) -> None:
    """Find PodDisruptionBudgets over pods that are neither Guaranteed nor critical, which are never evicted."""
    budgets = view.context.surroundings.disruption_budgets
    if not budgets or view.stored_class is QOSClass.GUARANTEED:
        return
    names = tuple(dict.fromkeys(budget.subject.name for budget in budgets if budget.covers(view.pod)))
    if names and not view.standing.is_spared:
        facts = BudgetIsNoShield(names[0], view.stored_class, names)
        view.report(budget_is_no_shield, "spec.containers[0].resources", facts, Patch.choose(Choice.RESOURCES))


@check(
    "PQ306",
    "disruption-budget-is-no-shield",
    INFO,
    "Kubernetes: pkg/kubelet/eviction/eviction_manager.go (evictPod)",
    rule=budget,
)
def budget_is_no_shield() -> Example:
    """PQ306: A PodDisruptionBudget does not protect against node pressure.

    Budgets only bind clients of the Eviction API, such as kubectl drain. The kubelet does not use it: when its node
    runs short it evicts pods that use more than they request, all of them if necessary, and the kernel ignores budgets
    entirely. Critical pods (system priorities, static pods) are never evicted and not reported.

    Fix: On its node a pod is protected by its class and its request: make it Guaranteed.
    """
    return Example(
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
    )
