"""PQ301–PQ306: priorities that are missing, misspelt, or at odds with the class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from podqos.admission.priority import SYSTEM_PRIORITIES, Priority, priority_of
from podqos.advice.checks.facts import (
    BudgetIsNoShield,
    NoPriority,
    PriorityContradictsClass,
    SystemPriority,
    UnknownPriorityClass,
)
from podqos.advice.checks.finding import Choice, FieldEdit, Finding, Patch
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import DEFAULT_NAMESPACE, Context, View
from podqos.model.pod import Pod, QOSClass
from podqos.model.selector import selects

_PATH = "spec.priorityClassName"
_KUBE_SYSTEM = "kube-system"


def unknown_class(view: View) -> None:
    """PQ305: a priority class that is not among those given; nothing is known where none are given."""
    name = view.pod.spec.priority_class_name
    if not name or not view.context.knows_priorities or view.workload.is_live:
        return
    if isinstance(priority_of(name, view.context.priority_classes), Priority):
        return
    known = user_classes(view.context)
    close = get_close_matches(name, known, 1)
    path = view.prefix + _PATH
    patch = (
        Patch((FieldEdit(path, close[0], name),))
        if close
        else Patch(needs_choice=Choice.PRIORITY_CLASS, paths=(path,), candidates=known)
    )
    view.report("PQ305", _PATH, UnknownPriorityClass(name, known), patch)


def system_priority(view: View) -> None:
    """PQ304: a system priority outside kube-system. Pods of a DaemonSet may be part of the node."""
    name = view.pod.spec.priority_class_name
    if name not in SYSTEM_PRIORITIES or view.pod.metadata.namespace == _KUBE_SYSTEM:
        return
    if view.workload.kind == "DaemonSet":
        return
    path = view.prefix + _PATH
    patch = Patch(needs_choice=Choice.PRIORITY_CLASS, paths=(path,), candidates=user_classes(view.context))
    view.report("PQ304", _PATH, SystemPriority(name), patch)


def best_effort_with_priority(view: View) -> None:
    """PQ302: a priority that the class makes worthless. System priorities are another matter: they are spared."""
    if view.stored_class is not QOSClass.BEST_EFFORT or view.priority <= 0 or view.stored.is_critical:
        return
    containers = view.pod.spec.containers
    paths = tuple(f"{view.prefix}spec.containers[{index}].resources.requests" for index in range(len(containers)))
    view.report(
        "PQ302",
        _PATH,
        PriorityContradictsClass(QOSClass.BEST_EFFORT, view.priority),
        Patch(needs_choice=Choice.RESOURCES, paths=paths),
    )


def budget(view: View) -> None:
    """PQ306: a PodDisruptionBudget over pods that are not Guaranteed."""
    budgets = view.context.surroundings.disruption_budgets
    if not budgets or view.stored_class is QOSClass.GUARANTEED:
        return
    for name in _budgets_of(view.pod, view.context):
        view.report(
            "PQ306",
            "spec.containers[0].resources",
            BudgetIsNoShield(name, view.stored_class),
            Patch(needs_choice=Choice.RESOURCES),
        )


def _budgets_of(pod: Pod, context: Context) -> Iterator[str]:
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    for each in context.surroundings.disruption_budgets:
        in_namespace = (each.metadata.namespace or DEFAULT_NAMESPACE) == namespace
        if in_namespace and selects(each.spec.selector, pod.metadata.labels):
            yield each.metadata.name


def user_classes(context: Context) -> tuple[str, ...]:
    """Return the names of the priority classes that people gave out, highest first."""
    given = [each for each in context.priority_classes if each.metadata.name not in SYSTEM_PRIORITIES]
    return tuple(each.metadata.name for each in sorted(given, key=lambda each: (-each.value, each.metadata.name)))


def compare_priorities(sketches: Sequence[Sketch], context: Context) -> Iterator[Finding]:
    """PQ301, PQ303: what shows only beside the priorities of others."""
    ranked = [sketch for sketch in sketches if not sketch.is_system]
    if not ranked:
        return
    # Without the classes nobody knows how high a priority is, but that there is one.
    highest = max(ranked, key=lambda sketch: (sketch.priority, sketch.names_priority, *_name(sketch)))
    is_known = context.knows_priorities or highest.priority > 0
    others_have = highest.names_priority and not is_known
    not_guaranteed = [sketch for sketch in ranked if sketch.qos_class is not QOSClass.GUARANTEED]
    rival = max(not_guaranteed, key=lambda sketch: (sketch.priority, *_name(sketch)), default=None)
    classes = user_classes(context)
    for sketch in ranked:
        choice = Patch(needs_choice=Choice.PRIORITY_CLASS, paths=(sketch.prefix + _PATH,), candidates=classes)
        if not sketch.names_priority:
            # A manifest that asks for nothing and has no priority is at least consistent.
            if not sketch.asks_for_nothing and (highest.priority > sketch.priority or others_have):
                facts = NoPriority(sketch.priority, highest.subject.key, highest.priority if is_known else None)
                yield sketch.finding("PQ301", _PATH, facts, choice)
        elif sketch.qos_class is QOSClass.GUARANTEED and rival is not None and rival.priority > sketch.priority:
            yield sketch.finding(
                "PQ303",
                _PATH,
                PriorityContradictsClass(
                    QOSClass.GUARANTEED, sketch.priority, rival.subject.key, rival.qos_class, rival.priority
                ),
                choice,
            )


def _name(sketch: Sketch) -> tuple[str, str]:
    return sketch.subject.key, sketch.subject.kind
