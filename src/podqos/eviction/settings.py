"""A kubelet's eviction settings as they are written, from the three places they are written in.

``KubeletConfiguration`` documents, command line flags (``--eviction-hard=memory.available<100Mi``) and OKD's
``kubeletArguments`` (flag names with lists of values) all become one ``EvictionSettings``. Nothing is interpreted here:
what ``10%`` means is in ``thresholds``.

Sources: Kubernetes v1.36 staging/src/k8s.io/kubelet/config/v1beta1/types.go,
pkg/kubelet/apis/config/v1beta1/defaults.go,
staging/src/k8s.io/component-base/cli/flag/{langle_separated_map_string,map_string_string}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from podqos.errors import InvalidConfiguration
from podqos.model.go_text import parse_duration_ns

DEFAULT_PRESSURE_TRANSITION_PERIOD = "5m"


class MemorySwap(Struct, frozen=True, gc=False, rename="camel"):
    """How pods may use swap."""

    swap_behavior: str = ""


class EvictionSettings(Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a ``KubeletConfiguration`` that eviction reads. Absent is None; who reads one knows its default."""

    eviction_hard: dict[str, str] | None = None
    eviction_soft: dict[str, str] | None = None
    eviction_soft_grace_period: dict[str, str] | None = None
    eviction_minimum_reclaim: dict[str, str] | None = None
    merge_default_eviction_settings: bool | None = None
    eviction_pressure_transition_period: str | None = None
    eviction_max_pod_grace_period: int = 0
    enforce_node_allocatable: tuple[str, ...] | None = None
    local_storage_capacity_isolation: bool | None = None
    fail_swap_on: bool | None = None
    memory_swap: MemorySwap | None = None


def settings_from_configuration(document: Mapping[str, object]) -> EvictionSettings:
    """Read a ``KubeletConfiguration`` (or the ``kubeletconfig`` of the kubelet's ``/configz``).

    A transition period of zero counts as absent there: upstream's defaulting cannot tell the two apart.
    """
    settings = _converted(document)
    if _is_zero_duration(settings.eviction_pressure_transition_period):
        return msgspec.structs.replace(settings, eviction_pressure_transition_period=None)
    return settings


def _is_zero_duration(text: str | None) -> bool:
    try:
        return text is not None and parse_duration_ns(text) == 0
    except ValueError:
        return False  # reported when it is used


def _converted(document: Mapping[str, object]) -> EvictionSettings:
    try:
        return msgspec.convert(document, EvictionSettings)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        place = path.strip("`").strip(".") or "KubeletConfiguration"
        raise InvalidConfiguration(
            what, where=place, fix="write what kubelet.config.k8s.io/v1beta1 asks for"
        ) from error


def settings_from_flags(arguments: Sequence[str]) -> EvictionSettings:
    """Read a kubelet's command line: ``--name=value`` or ``--name value``. Flags about other things are skipped."""
    given: dict[str, list[str]] = {}
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-"):
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        if name in _FLAGS:
            given.setdefault(name, []).append(value if equals else _next_value(name, rest))
    return settings_from_kubelet_arguments(given)


def settings_from_kubelet_arguments(arguments: Mapping[str, Sequence[str]]) -> EvictionSettings:
    """Read OKD's ``kubeletArguments``: per flag a list of values, each as one use of the flag."""
    fields: dict[str, object] = {}
    for name, values in arguments.items():
        if name in _FLAGS:
            if isinstance(values, str):
                raise InvalidConfiguration("expected a list of strings", where=name, fix=f'write {name}: ["{values}"]')
            fields[_FLAGS[name]] = _flag_value(name, values)
    return _converted(fields)


def parse_pairs(flag: str, separator: str) -> dict[str, str]:
    """Read ``a<b,c<d`` (or ``a=b,c=d``): empty parts are skipped, blanks trimmed, the last of equal names wins."""
    pairs: dict[str, str] = {}
    for part in flag.split(","):
        if part:
            name, found, value = part.partition(separator)
            if not found:
                raise InvalidConfiguration(
                    f"malformed pair, expect string{separator}string",
                    where=part,
                    fix=f"write signal{separator}value, several with commas between them",
                )
            pairs[name.strip()] = value.strip()
    return pairs


_FLAGS = {
    "eviction-hard": "evictionHard",
    "eviction-soft": "evictionSoft",
    "eviction-soft-grace-period": "evictionSoftGracePeriod",
    "eviction-minimum-reclaim": "evictionMinimumReclaim",
    "eviction-pressure-transition-period": "evictionPressureTransitionPeriod",
    "eviction-max-pod-grace-period": "evictionMaxPodGracePeriod",
    "enforce-node-allocatable": "enforceNodeAllocatable",
    "local-storage-capacity-isolation": "localStorageCapacityIsolation",
    "fail-swap-on": "failSwapOn",
}
_SEPARATORS = {
    "eviction-hard": "<",
    "eviction-soft": "<",
    "eviction-soft-grace-period": "=",
    "eviction-minimum-reclaim": "=",
}
# What Go's strconv.ParseBool takes.
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True", ""), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _flag_value(name: str, values: Sequence[str]) -> object:
    if name in _SEPARATORS:
        return {key: text for value in values for key, text in parse_pairs(value, _SEPARATORS[name]).items()}
    if name == "enforce-node-allocatable":
        return [part for value in values for part in value.split(",") if part and part != "none"]
    last = values[-1] if values else ""
    if name == "eviction-max-pod-grace-period":
        return _whole_number(name, last)
    if name == "eviction-pressure-transition-period":
        return last
    if last not in _BOOLEANS:
        raise InvalidConfiguration(f"{last!r} is neither true nor false", where=f"--{name}", fix="write true or false")
    return _BOOLEANS[last]


def _whole_number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        what = f"{text!r} is not a whole number"
        raise InvalidConfiguration(what, where=f"--{name}", fix="write seconds, such as 30") from None


def _next_value(name: str, rest: Iterable[str]) -> str:
    if name in {"local-storage-capacity-isolation", "fail-swap-on"}:
        return "true"
    for value in rest:
        return value
    raise InvalidConfiguration("flag needs a value", where=f"--{name}", fix=f"write --{name}=…")
