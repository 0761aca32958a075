"""PQ111–PQ112 and PQ116–PQ117: amounts that the API server rejects, or reads as something other than intended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.field_errors import FieldError
from podqos.admission.validation import CONTAINER_RESOURCES, LIMIT_REQUIRED, validate_resources
from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, WARNING, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Effect, Fact, FieldEdit, Finding, Patch
from podqos.advice.checks.references import QOS, VALIDATION
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.units import Machines, Meant, Stated, is_implausible, is_too_little, meant
from podqos.advice.checks.view import CheckContext, View
from podqos.amounts import listed, of_resource
from podqos.manifest.plain import format_path, parse_path
from podqos.model.pod import Container
from podqos.model.policy import LimitRangeItem
from podqos.model.quantity import NANOS, ZERO, NullQuantity, Quantity
from podqos.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    NO_RESOURCES,
    QOS_RESOURCES,
    ResourceRequirements,
    is_overcommit_allowed,
)

_USUAL_NANOS = {True: (NANOS // 1000, 20 * NANOS), False: (6 * (1 << 20) * NANOS, (1 << 45) * NANOS)}
"""Amounts of cpu, and of anything else, that ``units`` need not look at."""

# ---- PQ111, PQ112: before all other rules ------------------------------------------------------------------------


class RequestAboveLimit(Fact, frozen=True, gc=False):
    """A request that the API server rejects because the limit is smaller."""

    resource: str
    request: str
    limit: str
    is_null: bool = False
    """Whether the limit is a written null, which the API server reads as zero."""

    def sentence(self, container: str) -> str:
        """Return both amounts."""
        limit = "limit (null counts as zero)" if self.is_null else f"limit {self.limit}"
        return f"{container} requests {of_resource(self.request, self.resource)}, more than its {limit}"


class RefusedByServer(Fact, frozen=True, gc=False, tag="Refused"):
    """What the API server answers, in its own words."""

    step: str
    message: str
    source: str = ""
    """The policy object that refuses, where there is one."""

    def sentence(self, _: str) -> str:
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
        is_null = isinstance(limit, NullQuantity)
        facts = RequestAboveLimit(resource, str(request), str(limit), is_null)
        field, raised = (format_path((*parse_path(path), side, resource)) for side in ("requests", "limits"))
        if is_null:
            field = raised
        # What a container is said to need it must be allowed to use: lowering the request could get it killed.
        patch = Patch.write(view.edit(raised, None if is_null else request, "null" if is_null else limit))
        if any(view.is_in_wrong_unit(resource, str(amount)) for amount in (request, limit)):
            # Which of the two is too large is known once both are in the unit that was meant.
            patch = view.choose(Choice.UNIT, field)
        view.report(request_above_limit, field, facts, patch, container=container.name)
    if errors:
        suspicious_amounts(view)
    others = _others(_written(errors, view), {f"{path}.requests" for _, path, *_ in above})
    for error in {str(error): error for error in others}.values():
        field = format_path(parse_path(error.path))
        lacking = _without_limit(view, error.path) if error.detail == LIMIT_REQUIRED else []
        words = f"{error.words}: {listed(lacking)}" if lacking else error.words
        fields = [format_path((*parse_path(error.path), name)) for name in lacking] or [field]
        view.report(refused_resources, field, RefusedByServer("Validation", words), view.choose(Choice.AMOUNT, *fields))
    return bool(errors)


def _without_limit(view: View, path: str) -> list[str]:
    """Return the resources at fault where the API server only says that there are some."""
    return [
        name
        for container, place in view.resources()
        if path == f"{place}.limits"
        for name in sorted(container.resources.requests)
        if name not in container.resources.limits and not is_overcommit_allowed(name)
    ]


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
    ones are created.

    Fix: Raise the limit to the request, because a container must be allowed to use what it requests. Or lower the
    request, if that was the mistake.
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
    of_pod = view.pod.spec.resources
    if of_pod is not None:
        _suspicious(view, "", "spec.resources", of_pod)
    for container, path in view.resources():
        if container.resources is not NO_RESOURCES:
            _suspicious(view, container.name, path, container.resources)
    if view.pod.spec.volumes:
        _volume_sizes(view)


def _volume_sizes(view: View) -> None:
    """Find size limits of volumes in the wrong unit."""
    for index, volume in enumerate(view.pod.spec.volumes):
        size = None if volume.empty_dir is None else volume.empty_dir.size_limit
        if volume.empty_dir is None or size is None:
            continue
        name = MEMORY if volume.empty_dir.medium == "Memory" else EPHEMERAL_STORAGE
        if not is_implausible(Stated(name, "requests", size), NO_RESOURCES, view.machines):
            continue
        reading = meant(name, size, view.machines)
        path = f"spec.volumes[{index}].emptyDir.sizeLimit"
        patch = view.choose(Choice.UNIT, path, candidates=reading.readings)
        if reading.is_plain:
            patch = Patch.write(view.edit(path, reading.readings[0], size))
        facts = replace(implausible_facts(Stated(name, "limits", size), reading, patch), volume=volume.name)
        view.report(replace(implausible_amount, effect=Effect.NONE), path, facts, patch)


def _suspicious(view: View, container: str, path: str, resources: ResourceRequirements) -> None:
    suspects: dict[str, None] = {}
    for amounts in (resources.limits, resources.requests):
        for name, amount in amounts.items():
            least, most = _USUAL_NANOS[name == CPU]
            # Nearly all amounts lie between; only the others are looked at.
            if not least <= amount.nanos < most:
                suspects[name] = None
    for name in suspects:
        if name in CONTAINER_RESOURCES:
            _zeros(view, container, path, _sides(resources, name))
            _wrong_units(view, container, path, resources, name)


def _sides(resources: ResourceRequirements, name: str) -> _Sides:
    """Return what is stated of one resource."""
    sides = (("limits", resources.limits.get(name)), ("requests", resources.requests.get(name)))
    return _Sides(name, {side: amount for side, amount in sides if amount is not None})


class _Sides(Struct, frozen=True):
    """The limit and the request of one resource, as far as they are stated."""

    resource: str
    amounts: dict[str, Quantity]


def _owner(container: str) -> str:
    return container or "the pod"


class ZeroAmount(Fact, frozen=True, gc=False):
    """An amount of zero, which counts as none."""

    resource: str
    side: str

    def sentence(self, container: str) -> str:
        """Return which."""
        return f"{_owner(container)} has a {self.resource} {self.side[:-1]} of zero"


def _zeros(view: View, container: str, path: str, stated: _Sides) -> None:
    name, sides = stated.resource, stated.amounts
    # A request of zero beside a limit says that nothing is to be reserved, which is a statement. A null states nothing.
    if name not in QOS_RESOURCES or any(sides.values()):
        return
    sides = {side: amount for side, amount in sides.items() if not isinstance(amount, NullQuantity)}
    if not sides:
        return
    edits = [view.edit(f"{path}.{side}.{name}", None, amount) for side, amount in sides.items()]
    side = next(iter(sides))
    patch = Patch.write(*edits)
    view.report(zero_amount, f"{path}.{side}.{name}", ZeroAmount(name, side), patch, container=container or None)


@check("PQ116", "zero-amount", WARNING, QOS, rule=suspicious_amounts)
def zero_amount() -> Example:
    """PQ116: An amount of zero is ignored.

    Kubernetes ignores zero values for the class, and to the kernel a limit of zero means no limit. A container with
    cpu: 0 looks configured but is as BestEffort and unlimited as one that sets nothing. A null is different from zero:
    it is how charts and overlays remove a value.

    Fix: Remove the zero, or set a real amount.
    """
    return Example(examples.web("memory: 512Mi", 'cpu: "0", memory: 1Gi, ephemeral-storage: 1Gi'))


class ImplausibleAmount(Fact, frozen=True, gc=False):
    """An amount that was probably meant in another unit."""

    resource: str
    side: str
    amount: str
    meant: str
    """Empty where that is not plain."""
    readings: tuple[str, ...] = ()
    """What was probably meant, the likeliest first; none where there is no telling."""
    is_too_large: bool = False
    """Whether it is too much, rather than too little."""
    volume: str = ""
    """The volume whose size it limits, if it does."""
    default: str = ""
    """Of a LimitRange: ``default`` or ``defaultRequest``."""
    setting: str = ""
    """Of a kubelet: the field that it stands in."""

    def sentence(self, container: str) -> str:
        """Return the amount and what was probably meant."""
        unit = " cores" if self.resource == CPU and self.amount.isdecimal() else ""
        article = "an" if self.resource[0] in "ae" else "a"
        amount = f"{_owner(container)} has {article} {self.resource} {self.side[:-1]} of {self.amount}{unit}"
        if self.volume:
            amount = f"volume {self.volume} has a size limit of {self.amount}"
        if self.default:
            amount = f"containers without a {self.resource} {self.side[:-1]} get one of {self.amount}{unit}"
        if self.setting:
            amount = f"{self.setting} is {self.amount}{unit}"
        readings = (self.meant,) if self.meant else self.readings
        if readings:
            return f"{amount}; {' or '.join(readings)} was probably meant"
        return f"{amount}, {'more than any machine has' if self.is_too_large else 'too little for a container'}"

    def harm(self) -> str:
        """Return what becomes of pods that are never evicted, or last."""
        if self.volume:
            return "" if self.is_too_large else "nothing can be kept there"
        if self.is_too_large:
            return "no node has room for it" if self.side == "requests" else "the limit is never reached"
        if self.side == "requests":
            return ""
        starts = {CPU: "the container hardly runs", MEMORY: "the container is OOM-killed as it starts"}
        return starts.get(self.resource, "the pod is evicted as soon as it writes to the disk")


def implausible_facts(stated: Stated, reading: Meant, patch: Patch) -> ImplausibleAmount:
    """Return what is said of an amount in the wrong unit."""
    name, amount = stated.name, stated.amount
    return ImplausibleAmount(
        name,
        stated.side,
        amount.written or str(amount),
        reading.readings[0] if patch.is_complete else "",
        reading.readings,
        amount.nanos > _USUAL_NANOS[name == CPU][0],
    )


def _wrong_units(view: View, container: str, path: str, resources: ResourceRequirements, name: str) -> None:
    """Report amounts of one resource that were probably meant in another unit."""
    machines = view.machines
    sides = _sides(resources, name).amounts
    found = {
        side: meant(name, amount, machines)
        for side, amount in sides.items()
        if is_implausible(Stated(name, side, amount), resources, machines)
    }
    if not found:
        return
    fields = [f"{path}.{side}.{name}" for side in found]
    readings = list(dict.fromkeys(each.readings for each in found.values()))
    if all(each.is_plain for each in found.values()) and _fits_together(sides, found, resources):
        edits = (view.edit(f"{path}.{side}.{name}", each.readings[0], sides[side]) for side, each in found.items())
        patch = Patch.write(*edits)
    else:
        patch = view.choose(Choice.UNIT, *fields, candidates=readings[0] if len(readings) == 1 else ())
    side, first = next(iter(found.items()))
    facts = implausible_facts(Stated(name, side, sides[side]), first, patch)
    effect = _effect(facts, is_request="requests" in found or "requests" not in sides)
    check = replace(implausible_amount, effect=effect)
    view.report(check, fields[0], facts, patch, container=container or None)


def _effect(facts: ImplausibleAmount, *, is_request: bool) -> Effect:
    """Return what an amount in the wrong unit has an effect on; ``is_request``: it is requested, if only as a limit."""
    if facts.is_too_large:
        return Effect.NOT_CREATED if is_request else Effect.NONE
    if facts.side == "requests":
        return Effect.ORDER
    return Effect.LIMIT if facts.resource == MEMORY else Effect.NONE


def _fits_together(sides: dict[str, Quantity], found: dict[str, Meant], resources: ResourceRequirements) -> bool:
    """Whether all sides can be written as they were meant: no request above its limit, no cpu and memory swapped."""
    after = sides | {side: Quantity.parse(each.readings[0]) for side, each in found.items()}
    if len(after) == 2 and after["requests"] > after["limits"]:
        return False
    return not any(
        amounts.get(CPU, ZERO).written.endswith("i") and amounts.get(MEMORY, ZERO).written.endswith("m")
        for amounts in (resources.limits, resources.requests)
    )


@check(
    "PQ117",
    "implausible-unit",
    ERROR,
    "Kubernetes: staging/src/k8s.io/apimachinery/pkg/api/resource/suffix.go",
    rule=suspicious_amounts,
)
def implausible_amount() -> Example:
    """PQ117: An amount is in the wrong unit.

    m means thousandths, M millions: 512m of memory is half a byte, and 500M of cpu is five hundred million cores. The
    first container is killed as soon as it starts, or evicted as if it requested nothing; the second never fits a node.
    Where the unit leaves the meaning open (memory: 4, cpu: 500), the likely readings are listed and nothing is fixed.
    The same goes for fractional bytes (1073741824m). A memory limit of 4Mi can be meant: PQ128 is about it. Also
    checked: emptyDir sizes, LimitRange defaults, quotas below 1Mi, kubelet reservations and eviction thresholds. If the
    amount is intended, suppress the finding, or add the node that has it to the input.

    Fix: Write Mi for mebibytes, m for thousandths of a core.
    """
    return Example(examples.web("cpu: 500m, memory: 512m", 'cpu: "1", memory: 512m, ephemeral-storage: 1Gi'))


_DEFAULTS = {"limits": "default", "requests": "defaultRequest"}


def find_wrong_defaults(context: CheckContext, _: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield defaults of LimitRanges in the wrong unit, which every container of the namespace gets, and quotas."""
    surroundings = context.surroundings
    machines = Machines(surroundings.nodes, context.options.node_memory_bytes)
    for quota in context.policies.resource_quotas:
        metadata = quota.metadata
        subject = surroundings.subject("ResourceQuota", metadata.name, metadata.namespace)
        for key, amount in quota.spec.hard.items():
            if is_too_little(_bare(key), amount):
                path = format_path(("spec", "hard", key))
                reading = meant(_bare(key), amount, machines)
                patch = Patch.choose(Choice.UNIT, (path,), reading.readings)
                facts = implausible_facts(Stated(_bare(key), "limits", amount), reading, patch)
                facts = replace(facts, setting=f"the quota of {key}")
                yield implausible_amount.finding(subject, path, facts, patch, (metadata.annotations,))
    for limit_range in context.policies.limit_ranges:
        metadata = limit_range.metadata
        subject = surroundings.subject("LimitRange", metadata.name, metadata.namespace)
        for index, item in enumerate(limit_range.spec.limits):
            sides = {"limits": item.default, "requests": item.default_request}
            for name in dict.fromkeys((*item.default, *item.default_request)):
                stated = {side: amounts[name] for side, amounts in sides.items() if name in amounts}
                wrong = {
                    side: meant(name, amount, machines)
                    for side, amount in stated.items()
                    if is_implausible(Stated(name, side, amount), NO_RESOURCES, machines)
                }
                if wrong:
                    path = f"spec.limits[{index}]"
                    patch = _patch_of_defaults(path, name, stated, wrong, item)
                    side, first = next(iter(wrong.items()))
                    facts = replace(
                        implausible_facts(Stated(name, side, stated[side]), first, patch), default=_DEFAULTS[side]
                    )
                    at = format_path((*parse_path(path), _DEFAULTS[side], name))
                    yield implausible_amount.finding(subject, at, facts, patch, (metadata.annotations,))


def _bare(key: str) -> str:
    """Return the resource that a quota is of."""
    return key.removeprefix("requests.").removeprefix("limits.")


def _patch_of_defaults(
    path: str, name: str, stated: dict[str, Quantity], wrong: dict[str, Meant], item: LimitRangeItem
) -> Patch:
    """Return the defaults as they were meant, tried: the API server takes them beside the other bounds of the item."""
    fields = {side: format_path((*parse_path(path), _DEFAULTS[side], name)) for side in wrong}
    if all(each.is_plain for each in wrong.values()):
        after = stated | {side: Quantity.parse(each.readings[0]) for side, each in wrong.items()}
        in_order = [item.min.get(name), after.get("requests"), after.get("limits"), item.max.get(name)]
        amounts = [amount for amount in in_order if amount is not None]
        if all(one <= other for one, other in pairwise(amounts)):
            edits = (FieldEdit(fields[side], each.readings[0], str(stated[side])) for side, each in wrong.items())
            return replace(Patch.write(*edits), is_tried=True)
    readings = list(dict.fromkeys(each.readings for each in wrong.values()))
    return Patch.choose(Choice.UNIT, list(fields.values()), readings[0] if len(readings) == 1 else ())


implausible_amount = replace(implausible_amount, bundle_rule=find_wrong_defaults)
