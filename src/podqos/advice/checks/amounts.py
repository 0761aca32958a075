"""PQ111–PQ112 and PQ116–PQ117: amounts that the API server rejects, or reads as something other than intended."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.admission.field_errors import FieldError
from podqos.admission.validation import CONTAINER_RESOURCES, validate_resources
from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, WARNING, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Effect, Fact, Patch
from podqos.advice.checks.references import QOS, VALIDATION
from podqos.advice.checks.view import View
from podqos.manifest.plain import format_path, parse_path
from podqos.model.pod import Container
from podqos.model.quantity import NANOS, NullQuantity, Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, NO_RESOURCES, QOS_RESOURCES, is_overcommit_allowed

_LEAST_NANOS = (1 << 20) * NANOS
"""No container runs in less than a mebibyte of memory; a smaller amount means another unit."""
_MOST_NANOS = 1000 * NANOS
"""And no container gets a thousand cores."""

# ---- PQ111, PQ112: before all other rules ------------------------------------------------------------------------


class RequestAboveLimit(Fact, frozen=True, gc=False):
    """A request that the API server rejects because the limit is smaller."""

    resource: str
    request: str
    limit: str
    is_null: bool = False
    """Whether the limit is a written null, which the API server reads as zero."""

    def what(self, container: str) -> str:
        """Return both amounts."""
        limit = "limit, a null that counts as zero" if self.is_null else f"limit {self.limit}"
        return f"{container} requests {self.request} of {self.resource}, more than its {limit}"


class RefusedByServer(Fact, frozen=True, gc=False, tag="Refused"):
    """What the API server answers, in its own words."""

    step: str
    message: str
    source: str = ""
    """The policy object that refuses, where there is one."""

    def what(self, _: str) -> str:
        """Return the answer."""
        return self.message


def refused_amounts(view: View) -> bool:
    """Find what validation rejects; return whether there is no pod to look at.

    Objects from an API server have passed validation.
    """
    if view.workload.is_live:
        return not view.pod.spec.containers
    errors = validate_resources(view.defaulted)
    above = list(_above_limit(view)) if errors else []
    for container, path, resource, request, limit in above:
        field = format_path((*parse_path(path), "requests", resource))
        is_null = isinstance(limit, NullQuantity)
        facts = RequestAboveLimit(resource, str(request), str(limit), is_null)
        if is_null:
            field = format_path((*parse_path(path), "limits", resource))
        patch = Patch.write(view.edit(field, None if is_null else limit, "null" if is_null else request))
        view.report(request_above_limit, field, facts, patch, container=container.name)
    for error in _others(_written(errors, view), {f"{path}.requests" for _, path, *_ in above}):
        field = format_path(parse_path(error.path))
        refused = RefusedByServer("Validation", error.words)
        view.report(refused_resources, field, refused, view.choose(Choice.AMOUNT, field))
    return bool(errors)


def _written(errors: tuple[FieldError, ...], view: View) -> tuple[FieldError, ...]:
    """Leave out the echo of an error in a request that was copied from its limit."""
    of_manifest = {error.path for error in validate_resources(view.pod)} if errors else set()
    return tuple(error for error in errors if error.path in of_manifest) or errors


def _above_limit(view: View) -> Iterator[tuple[Container, str, str, Quantity, Quantity]]:
    for container, path in view.resources():
        limits = container.resources.limits
        for name, request in sorted(container.resources.requests.items()):
            limit = limits.get(name)
            if limit is not None and request > limit and is_overcommit_allowed(name):
                yield container, path, name, request, limit


def _others(errors: tuple[FieldError, ...], explained: set[str]) -> Iterator[FieldError]:
    for error in errors:
        if not (error.path in explained and "must be less than or equal to" in error.detail):
            yield error


@check("PQ111", "request-above-limit", ERROR, VALIDATION, effect=Effect.NOT_CREATED)
def request_above_limit() -> Example:
    """PQ111: A request is larger than its limit.

    The API server rejects the pod. A Deployment around it is stored anyway: its old pods run until they die, and no new
    ones appear.

    Fix: Lower the request to the limit, or raise the limit.
    """
    return Example(examples.web("cpu: 500m, memory: 2Gi", 'cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi'))


@check("PQ112", "refused-resources", ERROR, VALIDATION, effect=Effect.NOT_CREATED)
def refused_resources() -> Example:
    """PQ112: The API server rejects the resources.

    No pod is created. A controller keeps retrying, and nothing replaces the pods that die.

    Fix: Use an amount, or a resource, that the API server accepts.
    """
    return Example(
        examples.web("cpu: 500m, memory: 512Mi", 'cpu: "1", memory: 1Gi, storage: 1Gi'),
        chosen={
            "spec.containers[0].resources.limits.storage": None,
            "spec.containers[0].resources.limits.ephemeral-storage": "1Gi",
        },
    )


# ---- PQ116, PQ117 ------------------------------------------------------------------------------------------------


def suspicious_amounts(view: View) -> None:
    """Find zeros, and amounts in the wrong unit."""
    for container, path in view.resources():
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


def _sides(container: Container, name: str) -> dict[str, Quantity]:
    """Return what a container states of one resource."""
    resources = container.resources
    sides = (("limits", resources.limits.get(name)), ("requests", resources.requests.get(name)))
    return {side: amount for side, amount in sides if amount is not None}


class ZeroAmount(Fact, frozen=True, gc=False):
    """An amount of zero, which counts as none."""

    resource: str
    side: str

    def what(self, container: str) -> str:
        """Return which."""
        return f"{container} has a {self.resource} {self.side[:-1]} of zero"


def _zeros(view: View, container: Container, path: str, name: str) -> None:
    sides = _sides(container, name)
    # A request of zero beside a limit says that nothing is to be reserved, which is a statement. A null states nothing.
    if name not in QOS_RESOURCES or any(sides.values()):
        return
    sides = {side: amount for side, amount in sides.items() if not isinstance(amount, NullQuantity)}
    if not sides:
        return
    edits = [view.edit(f"{path}.{side}.{name}", None, amount) for side, amount in sides.items()]
    side = next(iter(sides))
    patch = Patch.write(*edits)
    view.report(zero_amount, f"{path}.{side}.{name}", ZeroAmount(name, side), patch, container=container.name)


@check("PQ116", "zero-amount", WARNING, QOS, rule=suspicious_amounts)
def zero_amount() -> Example:
    """PQ116: An amount of zero counts as none.

    Only amounts above zero count for the class, and to the kernel a limit of zero is no limit. A container with cpu: 0
    looks careful and is as BestEffort, and as unlimited, as one that states nothing. A null is no zero: it is how
    charts and overlays take an amount back.

    Fix: Remove the zero, or state an amount.
    """
    return Example(examples.web("memory: 512Mi", 'cpu: "0", memory: 1Gi, ephemeral-storage: 1Gi'))


class ImplausibleAmount(Fact, frozen=True, gc=False):
    """An amount that was probably meant in another unit."""

    resource: str
    side: str
    amount: str
    meant: str

    def what(self, container: str) -> str:
        """Return the amount and what was probably meant."""
        return f"{container} has a {self.resource} {self.side[:-1]} of {self.amount}; {self.meant} was probably meant"


def _wrong_units(view: View, container: Container, path: str, name: str) -> None:
    sides = _sides(container, name)
    meant = {side: _meant(name, amount) for side, amount in sides.items() if amount and _is_suspicious(name, amount)}
    if not meant:
        return
    # Both sides at once, as a request must not exceed its limit; where it would, a choice is needed.
    after = sides | {side: Quantity.parse(text) for side, text in meant.items()}
    if len(after) == 2 and after["requests"] > after["limits"]:
        patch = view.choose(Choice.AMOUNT, *(f"{path}.{side}.{name}" for side in meant))
    else:
        patch = Patch.write(*(view.edit(f"{path}.{side}.{name}", meant[side], sides[side]) for side in meant))
    side = next(iter(meant))
    facts = ImplausibleAmount(name, side, str(sides[side]), meant[side])
    view.report(implausible_amount, f"{path}.{side}.{name}", facts, patch, container=container.name)


def _is_suspicious(name: str, amount: Quantity) -> bool:
    if name == CPU:
        return not 0 < amount.nanos < _MOST_NANOS
    return amount.nanos < _LEAST_NANOS and name in {MEMORY, EPHEMERAL_STORAGE}


def _meant(name: str, amount: Quantity) -> str:
    """Return the amount in the unit that was probably meant: 500 cores are 500m, 512m or 512 bytes are 512Mi."""
    if name == CPU:
        return f"{amount.value}m"
    if amount.nanos % NANOS:
        return f"{amount.milli_value}Mi"
    return f"{amount.value}Mi" if amount.value < 1 << 15 else f"{amount.value}Ki"


@check(
    "PQ117",
    "implausible-unit",
    ERROR,
    "Kubernetes: staging/src/k8s.io/apimachinery/pkg/api/resource/suffix.go",
    rule=suspicious_amounts,
)
def implausible_amount() -> Example:
    """PQ117: An amount is in the wrong unit.

    m means thousandths: 512m of memory is half a byte, and cpu: 500 is five hundred cores. The first container is
    killed as soon as it starts, or evicted as if it requested nothing; the second never fits a node.

    Fix: Write Mi for mebibytes, m for thousandths of a core.
    """
    return Example(examples.web("cpu: 500m, memory: 512m", 'cpu: "1", memory: 512m, ephemeral-storage: 1Gi'))
