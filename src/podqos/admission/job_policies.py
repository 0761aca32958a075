"""What the API server rejects about the policies of a Job: which failures count, and which successes are enough.

Source: Kubernetes v1.36 pkg/apis/batch/validation/validation.go (validatePodFailurePolicy, validateSuccessPolicy,
validateIndexesFormat).
"""

from __future__ import annotations

from podqos.admission.as_written import Errors, Fields, fields_of, items_of, number_of, objects_of, text_of
from podqos.admission.field_errors import (
    ErrorType,
    FieldError,
    duplicate,
    invalid,
    invalid_null,
    not_supported,
    required,
    too_long,
    too_many,
)
from podqos.admission.holders import negative_errors
from podqos.admission.names import qualified_name_complaints
from podqos.manifest.plain import Plain
from podqos.model.go_text import parse_int, quoted
from podqos.model.pod import PodSpec

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MOST_RULES = _MOST_PATTERNS = 20
_MOST_VALUES = 255
_LONGEST_INDEXES = 64 * 1024


def failure_policy_errors(spec: Fields, pod: PodSpec, path: str) -> Errors:
    """Check which failed pods mean what."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return
    names = {container.name for container in (*pod.containers, *pod.init_containers)}
    rules = fields_of(policy).get("rules")
    if len(items_of(rules)) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(items_of(rules)), _MOST_RULES)
    for rule, at in objects_of(rules, f"{path}.rules"):
        yield from _rule_errors(rule, at, names, has_limit=spec.get("backoffLimitPerIndex") is not None)


def _rule_errors(rule: Fields, path: str, names: set[str], *, has_limit: bool) -> Errors:
    action, codes, patterns = text_of(rule, "action"), rule.get("onExitCodes"), items_of(rule.get("onPodConditions"))
    if not action:
        yield required(f"{path}.action", f"valid values: {_listed(_ACTIONS)}")
    elif action == "FailIndex":
        if not has_limit:
            yield invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    elif action not in _ACTIONS:
        yield not_supported(f"{path}.action", action, _ACTIONS)
    if codes is not None:
        yield from _exit_code_errors(fields_of(codes), f"{path}.onExitCodes", names)
    if len(patterns) > _MOST_PATTERNS:
        yield too_many(f"{path}.onPodConditions", len(patterns), _MOST_PATTERNS)
    for pattern, at in objects_of(patterns, f"{path}.onPodConditions"):
        for complaint in qualified_name_complaints(text_of(pattern, "type")):
            yield invalid(f"{at}.type", text_of(pattern, "type"), complaint)
        status = text_of(pattern, "status")
        if status and status not in _STATUSES:
            yield not_supported(f"{at}.status", status, _STATUSES)
    if codes is not None and patterns:
        yield _whole(path, "specifying both OnExitCodes and OnPodConditions is not supported")
    if codes is None and not patterns:
        yield _whole(path, "specifying one of OnExitCodes and OnPodConditions is required")


def _whole(path: str, words: str) -> FieldError:
    """Return an error about a rule that does not print it."""
    return FieldError(path, ErrorType.INVALID, None, words)


def _listed(names: tuple[str, ...]) -> str:
    return f"[{' '.join(map(quoted, names))}]"


def _exit_code_errors(codes: Fields, path: str, names: set[str]) -> Errors:
    operator, name = text_of(codes, "operator"), codes.get("containerName")
    if not operator:
        yield required(f"{path}.operator", f"valid values: {_listed(_OPERATORS)}")
    elif operator not in _OPERATORS:
        yield not_supported(f"{path}.operator", operator, _OPERATORS)
    if isinstance(name, str) and name not in names:
        words = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", name, words)
    path = f"{path}.values"
    values = [value if isinstance(value, int) else 0 for value in items_of(codes.get("values"))]
    whole: list[Plain] = [*values]
    if not values:
        words = "at least one value is required"
        yield invalid_null(path, words) if codes.get("values") is None else invalid(path, [], words)
    elif len(values) > _MOST_VALUES:
        yield too_many(path, len(values), _MOST_VALUES)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid(f"{path}[{index}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{path}[{index}]", value)
        seen.add(value)
    if values != sorted(values):
        yield invalid(path, whole, "must be ordered")


# ---- success ---------------------------------------------------------------------------------------------------------


def success_policy_errors(spec: Fields, completions: int | None, path: str) -> Errors:
    """Check which successes are enough for a Job whose completions have numbers."""
    policy = spec.get("successPolicy")
    if policy is None:
        return
    rules = fields_of(policy).get("rules")
    if spec.get("completionMode") != "Indexed":
        yield invalid(path, _printed(rules), "requires indexed completion mode")
        return
    if not items_of(rules):
        words = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{path}.rules", words)
    if len(items_of(rules)) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(items_of(rules)), _MOST_RULES)
    for rule, at in objects_of(rules, f"{path}.rules"):
        yield from _success_errors(rule, at, completions)


def _printed(rules: Plain) -> Plain:
    listed: Plain = None
    if isinstance(rules, list):
        names = {"SucceededIndexes": "succeededIndexes", "SucceededCount": "succeededCount"}
        listed = [{name: fields_of(rule).get(own) for name, own in names.items()} for rule in rules]
    return {"Rules": listed}


def _success_errors(rule: Fields, path: str, completions: int | None) -> Errors:
    indexes, count = rule.get("succeededIndexes"), number_of(rule, "succeededCount")
    has_count = rule.get("succeededCount") is not None
    if indexes is None and not has_count:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    if completions is None:
        # Which is an error of its own; upstream dereferences nil here, and the client gets no answer at all.
        return
    total = 0
    if isinstance(indexes, str):
        if len(indexes.encode()) > _LONGEST_INDEXES:
            yield too_long(f"{path}.succeededIndexes", _LONGEST_INDEXES)
        try:
            total = _number_of_indexes(indexes, completions)
        except ValueError as error:
            yield invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if not has_count:
        return
    yield from negative_errors(rule, ("succeededCount",), path)
    path = f"{path}.succeededCount"
    if count > completions:
        words = f"must be less than or equal to {completions} (the number of specified completions)"
        yield invalid(path, count, words)
    if indexes is not None and count > total:
        words = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        yield invalid(path, count, words)


def _number_of_indexes(text: str, completions: int) -> int:
    """Return how many indexes there are in ``0,2-4``; raises ``ValueError`` with upstream's words."""
    total, last = 0, None
    for interval in text.split(",") if text else ():
        limits = interval.split("-")
        if len(limits) > 2:
            rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
            raise ValueError(f"the fragment {quoted(interval)} {rule}")
        first, *rest = (_index(limit, completions) for limit in limits)
        if rest and first >= rest[0]:
            raise ValueError(f"non-increasing order, previous: {first}, current: {rest[0]}")
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        last = rest[0] if rest else first
        total += last - first + 1
    return total


def _index(text: str, completions: int) -> int:
    try:
        index = parse_int(text)
    except ValueError:
        raise ValueError(f"cannot convert string to integer for index: {quoted(text)}") from None
    if index >= completions:
        raise ValueError(f"too large index: {quoted(text)}")
    return index
