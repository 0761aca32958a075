"""Limits for pods that must be Guaranteed and lack them, as CEL for a MutatingAdmissionPolicy.

Only limits are filled in: the API server then makes requests that are missing of them. A pod is only touched where that
makes it Guaranteed. Injected containers are filled in when the policy is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podqos.manifest.plain import Plain
from podqos.model.resources import QOS_RESOURCES
from podqos.policy import cel
from podqos.policy.admission_objects import PODS, needed, resource_rules
from podqos.policy.model import Rule
from podqos.policy.rule_expressions import RuleExpressions


def filling_spec(rule: Rule, said: RuleExpressions, given: Mapping[str, str]) -> dict[str, Plain]:
    """Return the ``spec`` of the policy; ``given`` are limits of containers that state neither request nor limit."""
    conditions = ["!variables.exempt"] if said.exemptions else []
    if rule.require.class_label:
        conditions.append("variables.wanted == 2")
    can_be = f"variables.containers.all(c, {cel.any_of((said.excused('c.name'), _can_be_fixed('c', given)))})"
    decides = said.pod_decides("variables.spec")
    if decides != "false":
        within = cel.all_of(map(_is_within_pod, QOS_RESOURCES))
        of_pod = cel.all_of((_can_be_fixed("variables.spec", {}), f"variables.containers.all(c, {within})"))
        can_be = f"({decides} ? {of_pod} : {can_be})"
    conditions.append(can_be)
    mutations: list[Plain] = [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": mutation}}
        for mutation in _mutations(said, given)
    ]
    variables = (*said.variables(PODS), ("fill", cel.all_of(conditions)))
    return {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {"resourceRules": resource_rules(rule.match, PODS)},
        "matchConditions": said.conditions(PODS),
        "variables": needed(variables, mutations),
        "mutations": mutations,
    }


def _can_be_fixed(place: str, given: Mapping[str, str]) -> str:
    """Return whether limits equal the requests, or can be made to."""
    found = []
    for resource in QOS_RESOURCES:
        request, limit = (cel.stated(place, side, resource) for side in ("requests", "limits"))
        stored = f"{cel.stored_request(place, resource)}.orValue('0')"
        is_fixed = f"quantity({stored}).compareTo(quantity({limit}.orValue('0'))) == 0"
        can_be = f"{request}.hasValue()" if resource not in given else "true"
        is_none = f"{request}.hasValue() && sign(quantity({stored})) == 0"
        found.append(f"({limit}.hasValue() ? sign(quantity({stored})) > 0 && {is_fixed} : {can_be} && !({is_none}))")
    return cel.all_of(found)


def _is_within_pod(resource: str) -> str:
    """Return whether a container's limit is at most what the pod requests, which becomes its limit."""
    limit, request = cel.stated("c", "limits", resource), cel.stated("variables.spec", "requests", resource)
    return f"!quantity({limit}.orValue('0')).isGreaterThan(quantity({request}.orValue('0')))"


def _mutations(said: RuleExpressions, given: Mapping[str, str]) -> Iterator[str]:
    """Yield one change each: a missing field cannot be changed to nothing."""
    decides = said.pod_decides("object.spec")
    for field in ("containers", "initContainers"):
        kind = f"Object.spec.{field}"
        limits = _missing_limits("c", given)
        made = f"{kind}{{name: c.name, resources: {kind}.resources{{limits: {limits}}}}}"
        is_lacking = f"{limits}.size() > 0"
        excused = said.excused("c.name")
        if excused != "false":
            is_lacking = f"!{excused} && {is_lacking}"
        lacking = f"object.spec.{field}.filter(c, {is_lacking})"
        filled = f"Object{{spec: Object.spec{{{field}: {lacking}.map(c, {made})}}}}"
        conditions = [
            "variables.fill",
            f"has(object.spec.{field})",
            *([f"!{decides}"] if decides != "false" else []),
        ]
        condition = cel.all_of(conditions)
        yield f"{condition} ? {filled} : Object{{}}"
    if decides != "false":
        limits = _missing_limits("object.spec", {})
        filled = f"Object{{spec: Object.spec{{resources: Object.spec.resources{{limits: {limits}}}}}}}"
        yield f"(variables.fill && {decides} && {limits}.size() > 0) ? {filled} : Object{{}}"


def _missing_limits(place: str, given: Mapping[str, str]) -> str:
    """Return the missing limits: the requests, else the given ones."""
    found = []
    for resource in QOS_RESOURCES:
        amount = cel.stated(place, "requests", resource)
        if resource in given:
            amount += f".or(optional.of({cel.quoted(given[resource])}))"
        is_there = f"{cel.stated(place, 'limits', resource)}.hasValue()"
        found.append(f"?{cel.quoted(resource)}: {is_there} ? optional.none() : {amount}")
    return f"{{{', '.join(found)}}}"
