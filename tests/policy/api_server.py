"""What an API server does with admission policies: matches, evaluates, refuses, mutates; as far as tests need it.

Expressions are evaluated by a CEL library; the functions that Kubernetes adds to the language are registered here, with
quantities as texts.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings
from msgspec import Struct, convert
from msgspec.structs import replace

from podqos.model.quantity import Quantity
from podqos.model.selector import LabelSelector

_STRING, _INT, _BOOL, _DYN, _LIST = (
    cel.Type.STRING,
    cel.Type.INT,
    cel.Type.BOOL,
    cel.Type.DYN,
    cel.Type.List(cel.Type.DYN),
)
_LARGEST = 2**63
VARIABLES = ("object", "oldObject", "request", "namespaceObject", "variables")


def _nanos(text: str) -> int:
    return Quantity.parse(text).nanos


def _text(nanos: int) -> str:
    return f"{nanos}n"


def _is_integer(text: str) -> bool:
    whole, rest = divmod(_nanos(text), 10**9)
    return not rest and -_LARGEST <= whole < _LARGEST


def _as_integer(text: str) -> int:
    if not _is_integer(text):
        raise ValueError("cannot convert value to integer")
    return _nanos(text) // 10**9


def _compared(one: str, other: str) -> int:
    a, b = _nanos(one), _nanos(other)
    return (a > b) - (a < b)


# name → (returns, parameters, is a method, what it does)
_FUNCTIONS: dict[str, tuple[cel.Type, list[cel.Type], bool, Any]] = {
    "quantity": (_STRING, [_STRING], False, lambda text: _text(_nanos(text))),
    "sign": (_INT, [_STRING], False, lambda text: _compared(text, "0")),
    "compareTo": (_INT, [_STRING, _STRING], True, _compared),
    "isGreaterThan": (_BOOL, [_STRING, _STRING], True, lambda one, other: _compared(one, other) > 0),
    "add": (_STRING, [_STRING, _STRING], True, lambda one, other: _text(_nanos(one) + _nanos(other))),
    "isInteger": (_BOOL, [_STRING], True, _is_integer),
    "asInteger": (_INT, [_STRING], True, _as_integer),
    "sum": (_INT, [_LIST], True, sum),
    "max": (_INT, [_LIST], True, max),
}


@cache
def _environment() -> cel.Env:
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml("name: kubernetes\nextensions:\n- name: two-var-comprehensions\n"),
        variables=dict.fromkeys(VARIABLES, _DYN),
        functions=[
            cel.FunctionDecl(
                name, [cel.Overload(f"k8s_{name}", returns, parameters, is_member=is_method, impl=function)]
            )
            for name, (returns, parameters, is_method, function) in _FUNCTIONS.items()
        ],
        extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
    )


class EvaluationError(Exception):
    """An expression failed, which the API server takes for a refusal."""


@cache
def compiled(expression: str) -> cel.Expression:
    """Return a compiled expression."""
    return _environment().compile(_without_types(expression))


def _without_types(expression: str) -> str:
    """Return the expression of a mutation with maps in place of typed objects, which the library does not know."""
    if "Object" not in expression:
        return expression
    parts = re.split(r"('(?:[^'\\]|\\.)*')", expression)
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"\bObject[\w.]*\{", "{", re.sub(r"(?<=[{ ])(\w+): ", r"'\1': ", parts[index]))
    return "".join(parts)


def evaluate(expression: str, **data: Any) -> Any:
    """Return the value of an expression."""
    found = compiled(expression).eval(data=data)
    if found.type() == cel.Type.ERROR:
        raise EvaluationError(f"{found.value()} in {expression}")
    return found.plain_value()


Value = dict[str, Any]


class Failure(Struct, frozen=True):
    """A validation that failed."""

    policy: str
    actions: tuple[str, ...]
    message: str
    reason: str


class Request(Struct, frozen=True, kw_only=True):
    """What a client asks for."""

    object: Value
    old: Value | None = None
    namespace: Value = {}
    user: str = "someone"
    groups: tuple[str, ...] = ("system:authenticated",)

    @property
    def namespace_name(self) -> str:
        return self.namespace.get("metadata", {}).get("name", "default")

    @property
    def data(self) -> Value:
        """Return what expressions may read; the namespace is not known to conditions."""
        return {
            "object": self.object,
            "oldObject": self.old,
            "request": {
                "operation": "UPDATE" if self.old is not None else "CREATE",
                "namespace": self.namespace_name,
                "kind": {"kind": self.object["kind"]},
                "userInfo": {"username": self.user, "groups": [*self.groups]},
            },
        }

    @property
    def labels_of_namespace(self) -> dict[str, str]:
        labels = self.object["metadata"].get("labels") if self.object["kind"] == "Namespace" else None
        if labels is None:
            labels = self.namespace.get("metadata", {}).get("labels", {})
        return {"kubernetes.io/metadata.name": self.namespace_name, **labels}


_RESOURCES = {
    "Pod": ("", "pods"),
    "Namespace": ("", "namespaces"),
    "ReplicationController": ("", "replicationcontrollers"),
    "Deployment": ("apps", "deployments"),
    "StatefulSet": ("apps", "statefulsets"),
    "DaemonSet": ("apps", "daemonsets"),
    "ReplicaSet": ("apps", "replicasets"),
    "Job": ("batch", "jobs"),
    "CronJob": ("batch", "cronjobs"),
}


class ApiServer:
    """An API server that has nothing but admission policies."""

    def __init__(self, objects: Iterable[Value]) -> None:
        self._policies: dict[str, Value] = {}
        self._bindings: list[Value] = []
        for each in objects:
            if each["kind"].endswith("Binding"):
                self._bindings.append(each)
            else:
                self._policies[each["kind"] + each["metadata"]["name"]] = each["spec"]

    def validate(self, request: Request) -> list[Failure]:
        """Return every validation that fails."""
        return [
            Failure(
                binding["spec"]["policyName"],
                tuple(binding["spec"]["validationActions"]),
                _said(validation, variables, request),
                validation["reason"],
            )
            for binding, policy in self._about(request, "ValidatingAdmissionPolicy")
            for variables in [_variables(policy, request)]
            for validation in policy["validations"]
            if not _holds(validation["expression"], variables, request)
        ]

    def mutate(self, request: Request) -> Value:
        """Return the object as mutations make it: merged as a server-side apply would be."""
        for _, policy in self._about(request, "MutatingAdmissionPolicy"):
            for mutation in policy["mutations"]:
                assert mutation["patchType"] == "ApplyConfiguration"
                expression = mutation["applyConfiguration"]["expression"]
                variables = _variables(policy, request)
                patch = evaluate(expression, **request.data, namespaceObject=request.namespace, variables=variables)
                request = replace(request, object=applied(request.object, patch))
        return request.object

    def _about(self, request: Request, kind: str) -> Iterator[tuple[Value, Value]]:
        for binding in self._bindings:
            if binding["kind"] != f"{kind}Binding":
                continue
            policy = self._policies[kind + binding["spec"]["policyName"]]
            constraints = (policy["matchConstraints"], binding["spec"].get("matchResources", {}))
            if all(_selects(each, request) for each in constraints) and all(
                _holds(each["expression"], {}, request, knows_namespace=False)
                for each in policy.get("matchConditions", ())
            ):
                yield binding, policy


def applied(value: Any, patch: Any) -> Any:
    """Return what a server-side apply makes of a value: maps are merged, lists of containers by name."""
    if isinstance(value, dict) and isinstance(patch, dict):
        return {**value, **{key: applied(value.get(key), each) for key, each in patch.items()}}
    if isinstance(value, list) and isinstance(patch, list):
        named = {each["name"]: each for each in patch}
        return [applied(each, named.get(each["name"], {})) for each in value]
    return copy.deepcopy(patch)


def _selects(match: Value, request: Request) -> bool:
    group, resource = _RESOURCES[request.object["kind"]]
    rules = match.get("resourceRules")
    is_meant = rules is None or any(
        group in rule["apiGroups"]
        and resource in rule["resources"]
        and request.data["request"]["operation"] in rule["operations"]
        for rule in rules
    )
    labels = [each["metadata"].get("labels", {}) for each in (request.object, request.old) if each is not None]
    return (
        is_meant
        and _selector(match, "namespaceSelector").matches(request.labels_of_namespace)
        and any(map(_selector(match, "objectSelector").matches, labels))
    )


def _selector(match: Value, field: str) -> LabelSelector:
    return convert(match.get(field, {}), LabelSelector)


def _variables(policy: Value, request: Request) -> Value:
    """Return the variables; one that fails is missing, because it only matters where it is used."""
    found: Value = {}
    for each in policy.get("variables", ()):
        data = {**request.data, "namespaceObject": request.namespace, "variables": found}
        with suppress(EvaluationError):
            found[each["name"]] = evaluate(each["expression"], **data)
    return found


def _holds(expression: str, variables: Value, request: Request, *, knows_namespace: bool = True) -> bool:
    if not knows_namespace:
        assert "namespaceObject" not in expression, "conditions do not know the namespace"
    found = evaluate(expression, **request.data, namespaceObject=request.namespace, variables=variables)
    assert isinstance(found, bool), expression
    return found


def _said(validation: Value, variables: Value, request: Request) -> str:
    expression = validation["messageExpression"]
    said = evaluate(expression, **request.data, namespaceObject=request.namespace, variables=variables)
    assert isinstance(said, str)
    assert said.strip()
    assert "\n" not in said
    return said
