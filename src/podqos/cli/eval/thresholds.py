"""``podqos eval thresholds``: eviction thresholds worked out from kubelet settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import msgspec

from podqos.errors import InvalidConfiguration
from podqos.eviction.signals import layout_of
from podqos.eviction.thresholds import Threshold, ThresholdValue, derive_containerfs, parse_thresholds
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.kubelet_flags import parse_pairs

_SEPARATORS = {"flagLessThan": "<", "flagEquals": "="}


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``thresholds``."""
    kind = str(input.get("kind", ""))
    try:
        if kind in _SEPARATORS:
            return {"ok": True, "map": parse_pairs(str(input["flag"]), _SEPARATORS[kind])}
        return {"ok": True, **_answer(input, configured_thresholds(input))}
    except InvalidConfiguration as error:
        return {"ok": False, "possibleErrors": [error.what], "error": str(error)}


def configured_thresholds(fields: dict[str, object]) -> tuple[Threshold, ...]:
    """Read the threshold fields of a line. Unlike in a kubelet's configuration, nothing is enforced by default."""
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        settings = msgspec.convert({"enforceNodeAllocatable": (), **given}, KubeletConfiguration)
    except msgspec.ValidationError as error:
        raise InvalidConfiguration(str(error)) from error
    return parse_thresholds(settings)


def _answer(fields: dict[str, object], thresholds: tuple[Threshold, ...]) -> dict[str, object]:
    answer: dict[str, object] = {"thresholds": _listed(thresholds)}
    if "capacity" in fields:
        capacity = msgspec.convert(fields["capacity"], int)
        effective = [_at_capacity(threshold, capacity) for threshold in thresholds]
        answer["effectiveAtCapacity"] = sorted(effective, key=_by_signal_grace_and("quantityValue"))
    if "dedicatedImageFs" in fields:
        layout = layout_of(
            dedicated_image_fs=bool(fields["dedicatedImageFs"]), split_container_fs=bool(fields.get("splitContainerFs"))
        )
        derived = derive_containerfs(thresholds, layout)
        answer["afterContainerFsUpdate"] = _listed(derived.in_place + derived.added)
        answer["containerFsIgnoredWarning"] = bool(derived.ignored)
    return answer


def _listed(thresholds: Iterable[Threshold]) -> list[dict[str, object]]:
    listed = [
        {
            "signal": threshold.signal,
            "operator": "LessThan",
            "gracePeriodSeconds": threshold.grace_period_ns / 10**9,
            "value": _value(threshold.value),
            **({} if threshold.min_reclaim is None else {"minReclaim": _value(threshold.min_reclaim)}),
        }
        for threshold in thresholds
    ]
    return sorted(listed, key=_by_signal_grace_and("value"))


def _by_signal_grace_and(field: str) -> Callable[[dict[str, object]], tuple[str, float, str]]:
    """Return the order of the family's lists; among equals (a soft threshold without grace) the JSON text decides."""

    def key(line: dict[str, object]) -> tuple[str, float, str]:
        grace = msgspec.convert(line["gracePeriodSeconds"], float)
        return str(line["signal"]), grace, msgspec.json.encode(line[field]).decode()

    return key


def _value(value: ThresholdValue) -> dict[str, object]:
    if value.quantity is not None:
        return {"quantity": str(value.quantity), "quantityValue": value.quantity.value}
    return {"percentage": "NaN" if math.isnan(value.fraction) else value.fraction}


def _at_capacity(threshold: Threshold, capacity: int) -> dict[str, object]:
    amount = threshold.amount(capacity)
    answer: dict[str, object] = {
        "signal": threshold.signal,
        "gracePeriodSeconds": threshold.grace_period_ns / 10**9,
        "quantity": str(amount),
        "quantityValue": amount.value,
    }
    if threshold.min_reclaim is not None:
        answer["withMinReclaim"] = threshold.amount(capacity, with_min_reclaim=True).value
    return answer
