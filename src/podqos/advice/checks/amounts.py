"""PQ111–PQ112 and PQ116–PQ117: amounts that the API server refuses, or takes for something else than was meant."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.admission.field_errors import FieldError
from podqos.admission.validation import CONTAINER_RESOURCES, validate_resources
from podqos.advice.checks.facts import ImplausibleAmount, Refused, RequestAboveLimit, ZeroAmount
from podqos.advice.checks.finding import Choice, FieldEdit, Patch
from podqos.advice.checks.view import View
from podqos.manifest.plain import format_path, parse_path
from podqos.model.pod import Container
from podqos.model.quantity import NANOS, Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, NO_RESOURCES, QOS_RESOURCES, is_overcommit_allowed

_LEAST_NANOS = (1 << 20) * NANOS
"""No container runs in less than a mebibyte of memory; whoever writes less means another unit."""
_MOST_NANOS = 1000 * NANOS
"""Nor has a machine a thousand cores to give to one container."""


def refused_amounts(view: View) -> bool:
    """PQ111, PQ112: what validation refuses; return whether there is no pod to look at.

    Objects from an API server have passed validation.
    """
    if view.workload.is_live:
        return not view.pod.spec.containers
    errors = validate_resources(view.defaulted)
    above = _above_limit(view) if errors else []
    for container, path, resource, request, limit in above:
        field = format_path((*parse_path(path), "requests", resource))
        view.report(
            "PQ111",
            field,
            RequestAboveLimit(resource, str(request), str(limit)),
            Patch((FieldEdit(view.prefix + field, str(limit), str(request)),)),
            container=container.name,
        )
    for error in _others(_written(errors, view), {f"{path}.requests" for _, path, *_ in above}):
        view.report(
            "PQ112",
            format_path(parse_path(error.path)),
            Refused("Validation", error.words),
            Patch(needs_choice=Choice.AMOUNT, paths=(view.prefix + format_path(parse_path(error.path)),)),
        )
    return bool(errors)


def _written(errors: tuple[FieldError, ...], view: View) -> tuple[FieldError, ...]:
    """Leave out the echo of an error in a request that was copied from its limit."""
    of_manifest = {error.path for error in validate_resources(view.pod)} if errors else set()
    return tuple(error for error in errors if error.path in of_manifest) or errors


def _above_limit(view: View) -> list[tuple[Container, str, str, Quantity, Quantity]]:
    found = []
    for container, path in _containers(view):
        limits = container.resources.limits
        for name, request in sorted(container.resources.requests.items()):
            limit = limits.get(name)
            if limit is not None and request > limit and is_overcommit_allowed(name):
                found.append((container, path, name, request, limit))
    return found


def _others(errors: tuple[FieldError, ...], explained: set[str]) -> Iterator[FieldError]:
    for error in errors:
        if not (error.path in explained and "must be less than or equal to" in error.detail):
            yield error


def suspicious_amounts(view: View) -> None:
    """PQ116, PQ117: zeros, and amounts in the wrong unit."""
    for container, path in _containers(view):
        resources = container.resources
        if resources is NO_RESOURCES:
            continue
        suspects: dict[str, None] = {}
        for amounts in (resources.limits, resources.requests):
            for name, amount in amounts.items():
                nanos = amount.nanos
                # Nearly all amounts lie between the bounds for cpu and those for memory; only the others are looked at.
                if not (0 < nanos < _MOST_NANOS if name == CPU else nanos >= _LEAST_NANOS):
                    suspects[name] = None
        for name in suspects:
            if name not in CONTAINER_RESOURCES:
                continue
            _zeros(view, container, path, name)
            _wrong_units(view, container, path, name)


def _is_suspicious(name: str, nanos: int) -> bool:
    if name == CPU:
        return not 0 < nanos < _MOST_NANOS
    return nanos < _LEAST_NANOS and name in {MEMORY, EPHEMERAL_STORAGE}


def _zeros(view: View, container: Container, path: str, name: str) -> None:
    limit, request = container.resources.limits.get(name), container.resources.requests.get(name)
    # A request of zero beside a limit says that nothing is to be reserved, which is a statement.
    if name not in QOS_RESOURCES or limit or request:
        return
    zeros = [(side, amount) for side, amount in (("limits", limit), ("requests", request)) if amount is not None]
    edits = tuple(FieldEdit(f"{view.prefix}{path}.{side}.{name}", None, str(amount)) for side, amount in zeros)
    side = zeros[0][0]
    view.report("PQ116", f"{path}.{side}.{name}", ZeroAmount(name, side), Patch(edits), container=container.name)


def _wrong_units(view: View, container: Container, path: str, name: str) -> None:
    wrong = [
        (side, amount)
        for side, amount in (
            ("limits", container.resources.limits.get(name)),
            ("requests", container.resources.requests.get(name)),
        )
        if amount and _is_suspicious(name, amount.nanos)
    ]
    if not wrong:
        return
    side, amount = wrong[0]
    view.report(
        "PQ117",
        f"{path}.{side}.{name}",
        ImplausibleAmount(name, side, str(amount), _meant(name, amount)),
        _in_right_units(container, name, {each: _meant(name, it) for each, it in wrong}, view.prefix + path),
        container=container.name,
    )


def _in_right_units(container: Container, name: str, meant: dict[str, str], path: str) -> Patch:
    """Return both sides at once, as a request must not exceed its limit; where it would, somebody has to choose."""
    resources = container.resources
    amounts = {side: getattr(resources, side).get(name) for side in ("limits", "requests")}
    after = amounts | {side: Quantity.parse(text) for side, text in meant.items()}
    limit, request = after["limits"], after["requests"]
    if limit is not None and request is not None and request > limit:
        return Patch(needs_choice=Choice.AMOUNT, paths=tuple(f"{path}.{side}.{name}" for side in meant))
    return Patch(tuple(FieldEdit(f"{path}.{side}.{name}", text, str(amounts[side])) for side, text in meant.items()))


def _meant(name: str, amount: Quantity) -> str:
    """Return the amount in the unit that was probably meant: 500 cores are 500m, 512m or 512 bytes are 512Mi."""
    if name == CPU:
        return f"{amount.value}m"
    if amount.nanos % NANOS:
        return f"{amount.milli_value}Mi"
    return f"{amount.value}Mi" if amount.value < 1 << 15 else f"{amount.value}Ki"


def _containers(view: View) -> Iterator[tuple[Container, str]]:
    spec = view.pod.spec
    for index, container in enumerate(spec.containers):
        yield container, f"spec.containers[{index}].resources"
    for index, container in enumerate(spec.init_containers):
        yield container, f"spec.initContainers[{index}].resources"
