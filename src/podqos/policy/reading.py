"""Reads policies from plain values, with all problems: first the structure, then values that make no sense."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from msgspec import Struct

from podqos.admission.constraints import key_errors, selector_errors
from podqos.admission.field_errors import FieldError
from podqos.admission.names import subdomain_complaints
from podqos.manifest.decode import convert
from podqos.manifest.examine import Examination
from podqos.manifest.fields import suggestion
from podqos.manifest.kinds import meant_holder
from podqos.manifest.plain import FieldPath, Plain, parse_path
from podqos.manifest.problems import FieldProblem
from podqos.model.pod import CLASS_RANK
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepages
from podqos.model.selector import LabelSelector
from podqos.policy.model import API_VERSION, Budget, Exemption, Globs, Match, Policy, PolicySpec, Priority, Rule

_GLOB = frozenset("*?[")
_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)


class PolicyFileReading(Struct, frozen=True):
    """A policy, or None and its problems."""

    policy: Policy | None
    findings: tuple[FieldProblem, ...] = ()


def read_policy(value: Plain) -> PolicyFileReading:
    """Return the policy of an object, or all its problems."""
    version = value.get("apiVersion") if isinstance(value, dict) else None
    if isinstance(version, str) and version != API_VERSION:
        what = f'no kind "Policy" in version "{version}"'
        return PolicyFileReading(None, (FieldProblem(("apiVersion",), what, f"use {API_VERSION}"),))
    examination = Examination(is_live=False)
    cleaned = examination.clean(value, Policy, ())
    if examination.findings:
        return PolicyFileReading(None, tuple(examination.findings))
    policy = convert(cleaned, Policy)
    found = [
        FieldProblem(("metadata", "name"), complaint, "choose a name such as shop")
        for complaint in subdomain_complaints(policy.name)
    ]
    found += nonsense(policy.spec, ("spec",))
    return PolicyFileReading(None if found else policy, tuple(found))


def nonsense(spec: PolicySpec, at: FieldPath) -> Iterator[FieldProblem]:
    """Yield values that are well-formed but make no sense; ``at`` is the path of the policy."""
    if not spec.rules and not spec.budgets:
        yield FieldProblem(at, "has no requirements", "add rules or budgets")
    yield from _doubles(spec, at)
    for index, rule in enumerate(spec.rules):
        yield from _of_rule(rule, (*at, "rules", index))
    for index, budget in enumerate(spec.budgets):
        yield from _of_budget(budget, (*at, "budgets", index))
    names = [*(rule.name for rule in spec.rules), *(budget.name for budget in spec.budgets)]
    for index, exemption in enumerate(spec.exemptions):
        yield from _of_exemption(exemption, names, (*at, "exemptions", index))


def _doubles(spec: PolicySpec, at: FieldPath) -> Iterator[FieldProblem]:
    """Yield duplicate names: exemptions and messages refer to them."""
    named = [(rule.name, (*at, "rules", index, "name")) for index, rule in enumerate(spec.rules)]
    named += [(budget.name, (*at, "budgets", index, "name")) for index, budget in enumerate(spec.budgets)]
    seen: set[str] = set()
    for name, path in named:
        for complaint in subdomain_complaints(name):
            yield FieldProblem(path, complaint, "choose a name such as memory-limits")
        if name in seen:
            yield FieldProblem(path, f'Duplicate value: "{name}"', "rename one")
        seen.add(name)


def _of_rule(rule: Rule, at: FieldPath) -> Iterator[FieldProblem]:
    require, within = rule.require, (*at, "require")
    if not (
        require.min_class or require.max_class or require.class_label or require.requests or require.limits
        or require.max_limit_request_ratio or require.priority
    ):  # fmt: skip
        fix = "add minClass, maxClass, classLabel, requests, limits, maxLimitRequestRatio or priority"
        yield FieldProblem(within, "has no requirements", fix)
    yield from _of_match(rule.match, (*at, "match"))
    if require.min_class is not None and CLASS_RANK[require.min_class] == 0:
        yield FieldProblem((*within, "minClass"), "every pod is at least BestEffort", "choose Burstable or Guaranteed")
    if require.max_class is not None:
        least = CLASS_RANK[require.min_class] if require.min_class else 0
        if CLASS_RANK[require.max_class] == len(CLASS_RANK) - 1:
            yield FieldProblem((*within, "maxClass"), "no pod is above Guaranteed", "choose BestEffort or Burstable")
        elif CLASS_RANK[require.max_class] < least:
            what = f"is below minClass {require.min_class}: no pod can satisfy both"
            yield FieldProblem((*within, "maxClass"), what, "swap the two")
    if require.class_label:
        yield from _field_errors(key_errors(require.class_label, ""), (*within, "classLabel"))
    for field, names in (("requests", require.requests), ("limits", require.limits)):
        for index, name in enumerate(names):
            yield from _of_resource(name, (*within, field, index))
            if name in names[:index]:
                yield FieldProblem((*within, field, index), f'Duplicate value: "{name}"', "remove one")
    for name in require.max_limit_request_ratio:
        yield from _of_resource(name, (*within, "maxLimitRequestRatio", name))
    if require.priority is not None:
        yield from _of_priority(require.priority, (*within, "priority"))


def _of_priority(priority: Priority, at: FieldPath) -> Iterator[FieldProblem]:
    if priority == Priority():
        yield FieldProblem(at, "has no requirements", "add required, classes, forbiddenClasses, min or max")
    if priority.min is not None and priority.max is not None and priority.min > priority.max:
        yield FieldProblem((*at, "min"), f"is above max {priority.max}: no priority can satisfy both", "swap the two")
    yield from _of_globs({"classes": priority.classes, "forbiddenClasses": priority.forbidden_classes}, at)


def _of_budget(budget: Budget, at: FieldPath) -> Iterator[FieldProblem]:
    yield from _of_match(budget.match, (*at, "match"))
    yield from _of_resource(budget.resource, (*at, "resource"))
    if budget.limits is None and budget.requests is None:
        yield FieldProblem(at, "has no requirements", "add limits or requests, as a multiple of allocatable")


def _of_match(match: Match, at: FieldPath) -> Iterator[FieldProblem]:
    globs = {"namespaces": match.namespaces, "kinds": match.kinds, "names": match.names}
    yield from _of_globs(globs, at)
    for index, kind in enumerate(match.kinds):
        yield from _of_kind(kind, (*at, "kinds", index))
    yield from _of_selector(match.namespace_selector, (*at, "namespaceSelector"))
    yield from _of_selector(match.object_selector, (*at, "objectSelector"))
    for key in match.annotations:
        yield from _field_errors(key_errors(key.lower(), ""), (*at, "annotations", key))


def _of_exemption(exemption: Exemption, names: list[str], at: FieldPath) -> Iterator[FieldProblem]:
    globs = {
        "rules": exemption.rules, "namespaces": exemption.namespaces, "objects": exemption.objects,
        "containers": exemption.containers, "users": exemption.users, "groups": exemption.groups,
    }  # fmt: skip
    if exemption.namespace_selector is None and not any(globs.values()):
        fix = "add rules, namespaces, namespaceSelector, objects, containers, users or groups"
        yield FieldProblem(at, "does not say what is exempt, and so would exempt everything", fix)
    yield from _of_globs(globs, at)
    for index, name in enumerate(exemption.rules):
        if name not in names and not _GLOB & set(name):
            yield FieldProblem((*at, "rules", index), f'no such rule or budget: "{name}"', suggestion(name, names))
    for index, name in enumerate(exemption.objects):
        if "/" in name:
            yield from _of_kind(name.partition("/")[0], (*at, "objects", index))
        elif name and name != "*":
            yield FieldProblem((*at, "objects", index), f'"{name}" is not of the form Kind/name', f"write */{name}")
    yield from _of_selector(exemption.namespace_selector, (*at, "namespaceSelector"))
    if exemption.until is not None:
        try:
            is_day = date.fromisoformat(exemption.until).isoformat() == exemption.until
        except ValueError:
            is_day = False
        if not is_day:
            yield FieldProblem((*at, "until"), f'"{exemption.until}" is not a valid date', 'write it as "2027-01-31"')


def _of_globs(fields: dict[str, Globs], at: FieldPath) -> Iterator[FieldProblem]:
    for field, globs in fields.items():
        for index, glob in enumerate(globs):
            if not glob:
                yield FieldProblem((*at, field, index), "is empty and matches nothing", 'remove it, or write "*"')
            elif glob in globs[:index]:
                yield FieldProblem((*at, field, index), f'Duplicate value: "{glob}"', "remove one")


def _of_selector(selector: LabelSelector | None, at: FieldPath) -> Iterator[FieldProblem]:
    if selector is None:
        return
    yield from _field_errors(selector_errors(selector, ""), at)
    for index, requirement in enumerate(selector.match_expressions):
        fixed = selector.match_labels.get(requirement.key)
        if fixed is not None and not requirement.matches({requirement.key: fixed}):
            what = f'contradicts matchLabels, which require "{requirement.key}: {fixed}": nothing is selected'
            yield FieldProblem((*at, "matchExpressions", index), what, "remove one of the two")


def _field_errors(errors: Iterable[FieldError], at: FieldPath) -> Iterator[FieldProblem]:
    for error in errors:
        yield FieldProblem((*at, *parse_path(error.path)), error.words)


def _of_kind(kind: str, at: FieldPath) -> Iterator[FieldProblem]:
    meant = meant_holder(kind)
    if meant is not None and meant.kind != kind:
        yield FieldProblem(at, f'unknown kind "{kind}"', f"did you mean {meant.kind}?")


def _of_resource(name: str, at: FieldPath) -> Iterator[FieldProblem]:
    if name not in _RESOURCES and "/" not in name and not is_hugepages(name):
        yield FieldProblem(at, f'unknown resource "{name}"', suggestion(name, _RESOURCES))
