"""What the API server rejects about how controllers replace their pods: amounts such as ``1`` and ``25%``.

Source: Kubernetes v1.36 pkg/apis/apps/validation/validation.go (ValidateDeploymentStrategy,
ValidateRollingUpdateDeployment, ValidateDaemonSetUpdateStrategy, ValidateRollingUpdateDaemonSet,
ValidateStatefulSetSpec, ValidatePositiveIntOrPercent, IsNotMoreThan100Percent), pkg/apis/apps/v1/defaults.go.
"""

from __future__ import annotations

import re

from podqos.admission.as_written import Errors, Fields, fields_of, number_of, text_of
from podqos.admission.field_errors import forbidden, invalid, not_supported, required
from podqos.admission.holders import NEGATIVE, negative_errors
from podqos.manifest.plain import Plain
from podqos.model.go_text import parse_int

_ROLLING, _RECREATE, _ON_DELETE = "RollingUpdate", "Recreate", "OnDelete"
_WRONG_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_LARGEST_INT64 = 2**63 - 1


def deployment_strategy_errors(spec: Fields) -> Errors:
    """Check how a Deployment replaces its pods."""
    path, strategy = "spec.strategy", fields_of(spec.get("strategy"))
    update = strategy.get("rollingUpdate")
    match text_of(strategy, "type") or _ROLLING:
        case "Recreate":
            if update is not None:
                words = f"may not be specified when strategy `type` is '{_RECREATE}'"
                yield forbidden(f"{path}.rollingUpdate", words)
        case "RollingUpdate":
            path = f"{path}.rollingUpdate"
            unavailable = _given(fields_of(update), "maxUnavailable", "25%")
            surge = _given(fields_of(update), "maxSurge", "25%")
            yield from _amount_errors(unavailable, f"{path}.maxUnavailable")
            yield from _amount_errors(surge, f"{path}.maxSurge")
            if not _value(unavailable) and not _value(surge):
                yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
            yield from _whole_errors(unavailable, f"{path}.maxUnavailable")
        case _:
            yield not_supported(path, _printed(strategy), (_RECREATE, _ROLLING))


def daemon_set_strategy_errors(spec: Fields) -> Errors:
    """Check how a DaemonSet replaces its pods."""
    path, strategy = "spec.updateStrategy", fields_of(spec.get("updateStrategy"))
    kind = text_of(strategy, "type") or _ROLLING
    if kind not in {_ROLLING, _ON_DELETE}:
        yield not_supported(path, _printed(strategy), (_ROLLING, _ON_DELETE))
    if kind != _ROLLING:
        return
    update, path = fields_of(strategy.get("rollingUpdate")), f"{path}.rollingUpdate"
    unavailable, surge = _given(update, "maxUnavailable", 1), _given(update, "maxSurge", 0)
    yield from _amount_errors(unavailable, f"{path}.maxUnavailable")
    yield from _amount_errors(surge, f"{path}.maxSurge")
    yield from _whole_errors(unavailable, f"{path}.maxUnavailable")
    yield from _whole_errors(surge, f"{path}.maxSurge")
    if _value(unavailable) and _value(surge):
        yield invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not _value(unavailable) and not _value(surge):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def stateful_set_strategy_errors(spec: Fields) -> Errors:
    """Check how a StatefulSet replaces its pods; ``maxUnavailable`` is dropped, because its feature is off."""
    path, strategy = "spec.updateStrategy", fields_of(spec.get("updateStrategy"))
    update = strategy.get("rollingUpdate")
    printed: Plain = None
    if update is not None:
        printed = {"Partition": number_of(fields_of(update), "partition"), "MaxUnavailable": None}
    match text_of(strategy, "type") or _ROLLING:
        case "OnDelete":
            if printed is not None:
                yield invalid(f"{path}.rollingUpdate", printed, f"only allowed for updateStrategy '{_ROLLING}'")
        case "RollingUpdate":
            yield from negative_errors(fields_of(update), ("partition",), f"{path}.rollingUpdate")
        case other:
            whole: Plain = {"Type": other, "RollingUpdate": printed}
            yield invalid(path, whole, f"must be '{_ROLLING}' or '{_ON_DELETE}'")


def _given(update: Fields, name: str, default: int | str) -> int | str:
    value = update.get(name)
    return value if isinstance(value, int | str) else default


def _printed(strategy: Fields) -> Plain:
    """Return a strategy as Go prints it: complete, by Go's names."""
    update = strategy.get("rollingUpdate")
    amounts: Plain = None
    if update is not None:
        own = fields_of(update)
        amounts = {"MaxUnavailable": _given(own, "maxUnavailable", 0), "MaxSurge": _given(own, "maxSurge", 0)}
    return {"Type": text_of(strategy, "type"), "RollingUpdate": amounts}


def _amount_errors(amount: int | str, path: str) -> Errors:
    if isinstance(amount, int):
        if amount < 0:
            yield invalid(path, amount, NEGATIVE)
    elif _percent(amount) is None:
        yield invalid(path, amount, _WRONG_PERCENT)


def _whole_errors(amount: int | str, path: str) -> Errors:
    percent = _percent(amount) if isinstance(amount, str) else None
    if percent is not None and percent > 100:
        yield invalid(path, amount, "must not be greater than 100%")


def _percent(amount: str) -> int | None:
    if not re.fullmatch("[0-9]+%", amount):
        return None
    digits = amount[:-1].lstrip("0") or "0"
    return _LARGEST_INT64 if len(digits) > 19 else min(int(digits), _LARGEST_INT64)


def _value(amount: int | str) -> int:
    """Return a number or the number of a percentage; what is neither counts as none."""
    if isinstance(amount, int):
        return amount
    percent = _percent(amount)
    if percent is not None:
        return percent
    try:
        return parse_int(amount)
    except ValueError as error:
        return 0 if "syntax" in str(error) else _LARGEST_INT64
