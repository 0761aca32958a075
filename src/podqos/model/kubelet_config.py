"""The kubelet's configuration file (``KubeletConfiguration``, kubelet.config.k8s.io/v1beta1).

The fields that some decision reads are here as a frozen value, under their own names and with the kubelet's own
defaults. The other known fields are only known by name: they are skipped (``kubelet_ignored`` says which of them to
tell of), while a name that does not exist is rejected with a suggestion, because a misspelt ``evictionHrad`` would
otherwise leave a node without its thresholds.

What the amounts mean is decided elsewhere: reservations in ``placement.allocatable``, thresholds in ``eviction``.

Source: Kubernetes v1.36 staging/src/k8s.io/kubelet/config/v1beta1/types.go and pkg/kubelet/apis/config/v1beta1/
defaults.go.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct, field

from podqos.errors import InputError, InvalidConfiguration
from podqos.model.go_text import parse_duration_ns
from podqos.model.kubelet_ignored import (
    MEMORY_QOS_GATE,
    NO_EXCLUSIVE_QUOTA_GATE,
    NODE_SWAP_GATE,
    QOS_RESERVED_GATE,
    RESTART_PERIOD_GATE,
    SKIPPED_FIELDS,
    gate_is_on,
)
from podqos.model.node import Taint
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY, ResourceList

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"

# What a machine has that is not a resource of the API (pkg/kubelet/stats/pidlimit).
PID = "pid"

# The resources that may be reserved (cmd/kubelet/app/server.go: parseResourceList).
_RESERVABLE = ("cpu", "memory", "ephemeral-storage", PID)


class MemorySwapConfiguration(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """The swap settings of containers."""

    swap_behavior: str = ""


class CrashLoopBackOffConfig(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """The back-off of a crash-looping container."""

    max_container_restart_period: str | None = None


class KubeletConfiguration(Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings of one node's kubelet that affect pods."""

    kube_reserved: dict[str, str] = {}
    system_reserved: dict[str, str] = {}
    reserved_system_cpus: str = field(default="", name="reservedSystemCPUs")
    """Cores reserved by number; they replace the two cpu reservations."""
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    max_pods: int = 110
    pods_per_core: int = 0
    """0 means no such limit."""
    """If pulls are not serialized; absent means no such limit."""

    eviction_hard: dict[str, str] | None = None
    """Absent means the defaults; an empty map means none."""
    eviction_soft: dict[str, str] = {}
    eviction_soft_grace_period: dict[str, str] = {}
    eviction_minimum_reclaim: dict[str, str] = {}
    eviction_pressure_transition_period: str = "5m"
    eviction_max_pod_grace_period: int = 0
    merge_default_eviction_settings: bool = False
    kernel_memcg_notification: bool = False
    local_storage_capacity_isolation: bool = True

    cgroup_root: str = ""
    cgroup_driver: str = ""
    """Absent means the runtime's driver (1.34), or cgroupfs if it reports none."""
    cgroups_per_qos: bool = field(default=True, name="cgroupsPerQOS")
    cpu_cfs_quota: bool = field(default=True, name="cpuCFSQuota")
    cpu_cfs_quota_period: str = field(default="100ms", name="cpuCFSQuotaPeriod")
    cpu_manager_policy: str = ""
    memory_swap: MemorySwapConfiguration = MemorySwapConfiguration()
    fail_swap_on: bool = True
    memory_throttling_factor: float | None = None
    memory_reservation_policy: str = "None"
    qos_reserved: dict[str, str] = field(default_factory=dict, name="qosReserved")
    """``{memory: 50%}``: that part of what higher classes request is kept from lower ones."""
    single_process_oom_kill: bool | None = field(default=None, name="singleProcessOOMKill")
    """Absent means the default of the machine: false on cgroup v2."""
    oom_score_adj: int = -999
    pod_pids_limit: int = -1
    crash_loop_back_off: CrashLoopBackOffConfig = CrashLoopBackOffConfig()

    node_status_update_frequency: str = "10s"
    register_with_taints: tuple[Taint, ...] = ()
    feature_gates: dict[str, bool] = {}

    @property
    def reserved_for_kube(self) -> ResourceList:
        """``kubeReserved`` as amounts."""
        return _without_cpu(self.kube_reserved) if self.reserved_system_cpus else _amounts(self.kube_reserved)

    @property
    def reserved_for_system(self) -> ResourceList:
        """``systemReserved`` as amounts; cores reserved by number are counted here."""
        if not self.reserved_system_cpus:
            return _amounts(self.system_reserved)
        cores = Quantity.of_units(len(cpu_set(self.reserved_system_cpus)))
        return {**_without_cpu(self.system_reserved), "cpu": cores}

    def qos_reserved_memory_percent(self, profile: Profile = LATEST) -> int | None:
        """Return how much of higher classes' memory requests is kept from lower ones; None if nothing is set.

        Without its feature gate the setting is read and has no effect.
        """
        text = self.qos_reserved.get(MEMORY)
        if text is None or (profile.qos_reserved_gate and not gate_is_on(self.feature_gates, QOS_RESERVED_GATE)):
            return None
        return _percentage(text)

    def has_memory_qos(self, profile: Profile = LATEST) -> bool:
        """Whether MemoryQoS is on."""
        is_beta = profile.memory_qos == "beta"
        return profile.memory_qos != "absent" and gate_is_on(self.feature_gates, MEMORY_QOS_GATE, default=is_beta)

    def lets_pods_swap(self, profile: Profile = LATEST) -> bool:
        """Whether pods use the node's swap, if it has any."""
        behavior = self.memory_swap.swap_behavior
        if self.fail_swap_on or behavior == "NoSwap":
            return False
        if profile.pods_swap == "always":
            return True
        is_by_setting = profile.pods_swap == "by-setting"
        # Beta all the time, also while it was off by default.
        is_on = self.feature_gates.get(NODE_SWAP_GATE, self.feature_gates.get("AllBeta", is_by_setting))
        return is_on and (behavior == "LimitedSwap" or not is_by_setting)

    def has_exclusive_cpu_quota(self, profile: Profile = LATEST) -> bool:
        """Whether containers with CPUs of their own have a CPU quota like all others."""
        return not gate_is_on(self.feature_gates, NO_EXCLUSIVE_QUOTA_GATE, default=not profile.exclusive_cpu_quota)

    def max_container_restart_seconds(self, profile: Profile = LATEST) -> int | None:
        """Return the longest back-off of a crash-looping container; None if it is not set."""
        period = self.crash_loop_back_off.max_container_restart_period
        is_on = gate_is_on(self.feature_gates, RESTART_PERIOD_GATE, default=profile.max_container_restart_period)
        return parse_duration_ns(period) // 10**9 if period is not None and is_on else None


def kubelet_configuration(
    document: Mapping[str, object], where: str = KIND, *, is_defaulted: bool = True
) -> KubeletConfiguration:
    """Return the configuration in a decoded document; ``where`` names its origin in errors.

    ``is_defaulted``: zero counts as not set where the kubelet's defaulting says so. It comes before flags, so that
    what a flag sets to zero is zero.
    """
    _check_identity(document, where)
    document = stated_fields(document) if is_defaulted else document
    # Numbers that remember how they were written are no plain ones to msgspec.
    settings = {
        name: float(value) if isinstance(value, float) else value
        for name, value in document.items()
        if value is not None
    }
    errors = []
    valid: dict[str, object] = {}
    for name, value in settings.items():
        refused = tuple(_refusals(name, value))
        errors += [InvalidConfiguration(what, where=_at(where, place), fix=fix) for place, what, fix in refused]
        if refused and isinstance(value, dict) and not any(_refusals(name, {})):
            valid[name] = {key: part for key, part in value.items() if not any(_refusals(name, {key: part}))}
        elif not refused and name not in _DURATIONS_BY_NAME:
            valid[name] = value
    config = msgspec.convert(valid, KubeletConfiguration)
    error = InvalidConfiguration.of((*errors, *_wrong_values(config, where)))
    if error is not None:
        error.rest = config
        raise error
    return config


def _refusals(name: str, value: object) -> Iterator[tuple[str, str, str]]:
    """Yield where a field cannot be read, why, and what to write; each entry of a map is looked at by itself."""
    if name not in KNOWN_FIELDS:
        close = difflib.get_close_matches(name, KNOWN_FIELDS, n=1)
        fix = f"did you mean {close[0]}?" if close else "it is not a field of KubeletConfiguration v1beta1"
        yield name, "unknown field", fix
        return
    if name in _DURATIONS_BY_NAME:
        if not isinstance(value, str):
            yield name, _in_words(f"Expected `str`, got `{type(value).__name__}`"), _meant(name, value, "str")
        elif wrong := _not_a_duration(value):
            yield name, wrong, duration_fix(value)
        return
    parts = value.items() if isinstance(value, dict) and value else ((None, value),)
    for key, part in parts:
        try:
            msgspec.convert({name: value if key is None else {key: part}}, KubeletConfiguration)
        except msgspec.ValidationError as error:
            text, _, path = str(error).partition(" - at ")
            place = path.strip("`").removeprefix("$.") or name
            place = place.removesuffix("[...]") + (f"[{key}]" if key is not None and place.endswith("[...]") else "")
            wanted = text.removeprefix("Expected `").partition("`")[0] if text.startswith("Expected `") else ""
            yield place, _in_words(text), _meant(place, part, wanted)


_WRONG_TYPE = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_TYPES = {
    **dict.fromkeys(("str",), "text"),
    **dict.fromkeys(("int", "float", "Number"), "a number"),
    **dict.fromkeys(("object", "dict"), "a mapping"),
    **dict.fromkeys(("array", "list"), "a list"),
    **dict.fromkeys(("null", "NoneType"), "nothing"),
    "bool": "true or false",
}


def _in_words(text: str) -> str:
    """Return what a decoder says of a type, as a person would."""
    found = _WRONG_TYPE.fullmatch(text)
    if found is None:
        return text
    wanted = [name for name in found[1].split(" | ") if name != "null"]
    expected = " or ".join(dict.fromkeys(_TYPES.get(name, name) for name in wanted))
    return f"it is {_TYPES.get(found[2], found[2])}, but has to be {expected}"


def _meant(place: str, value: object, wanted: str) -> str:
    """Return what to write instead of a value of the wrong type; empty where that is anybody's guess."""
    name = place.partition(".")[0].partition("[")[0]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted.startswith("str") and is_number:
        return _quoted(name, place, value)
    if wanted.startswith("str") and value is None:
        return "write a value, or remove it"
    if wanted.startswith(("int", "float")) and isinstance(value, str):
        return _bare_number(value, wanted)
    if wanted.startswith(("int", "float")):
        return "write a whole number" if wanted.startswith("int") else "write a number"
    if wanted.startswith("bool"):
        words = {"true": "true", "yes": "true", "on": "true", "1": "true"}
        words |= {"false": "false", "no": "false", "off": "false", "0": "false"}
        bare = words.get(str(value).lower(), "true or false")
        return f"write {bare}, without quotes" if isinstance(value, str) else f"write {bare}"
    if wanted.startswith("object"):
        given = value if isinstance(value, list) else str(value).split(",")
        pairs = [re.split("[<=]", text, maxsplit=1) for text in given if isinstance(text, str)]
        if pairs and not place.endswith("]") and all(len(pair) == 2 for pair in pairs):
            return f"write {{{', '.join(f'{key.strip()}: {text.strip()}' for key, text in pairs)}}}"
        return "write a mapping: {name: value}"
    if wanted.startswith("array"):
        return f"write [{value}]" if isinstance(value, str) else "write a list: [value]"
    return "put the value in quotes" if wanted.startswith("str") and isinstance(value, bool) else ""


def _quoted(name: str, place: str, number: object) -> str:
    """Return the text for a number: with its unit where a bare number has none, otherwise in quotes."""
    if name in (*_DURATION_BOUNDS, *_DURATIONS, *_DURATIONS_BY_NAME) or place in _DURATIONS:
        return duration_fix(str(number), _DURATION_BOUNDS.get(place))
    if name == "qosReserved":
        return f"write {number}%"
    is_bytes = place.endswith(("memory", "ephemeral-storage", ".available]", ".available", "memory]", "-storage]"))
    if is_bytes and "pid" not in place and isinstance(number, int | float) and 0 < number < _LEAST_BYTES:
        share = f" or {number}%" if name.startswith("eviction") and number <= 100 else ""
        return f"write it with its unit, such as {number}Mi{share}"
    return f'put it in quotes: "{number}"'


def _bare_number(text: str, wanted: str) -> str:
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = None
    if number is not None and wanted.startswith("float"):
        return f"write {number / 100 if text.endswith('%') else number:g}"
    if number is not None and number.is_integer() and not text.endswith("%"):
        return f"write {int(number)}, without quotes"
    with suppress(ValueError):
        seconds, rest = divmod(parse_duration_ns(text), 10**9)
        if not rest:
            return f"write {seconds}"
    return "write a whole number, without quotes" if wanted.startswith("int") else "write a number, without quotes"


def duration_fix(text: str, bounds: tuple[str, str] | None = None) -> str:
    """Return how to write a duration that has no unit, or none that Go knows."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if bounds is not None and bounds[1] == "1s":
        return "write it with its unit, such as 100ms"
    if not number.is_integer() or number <= 0 or number > 10**9:
        return "write a number with its unit, such as 30s or 1m30s"
    seconds = int(number)
    minutes = f" or {seconds // 60}m" if seconds % 60 == 0 else ""
    return f"write it with its unit: {seconds}s{minutes}"


def _not_a_duration(text: str) -> str:
    try:
        parse_duration_ns(text)
    except ValueError as error:
        return str(error)
    return ""


def stated_fields(document: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that are set: not those with a zero that the kubelet's defaulting takes for not set."""
    return {
        name: value
        for name, value in document.items()
        if value is not None and not (name in _ZERO_MEANS_DEFAULT and _is_zero(value))
    }


def _at(where: str, field: str) -> str:
    return f"{where}: {field}" if where else field


def _is_zero(value: object) -> bool:
    try:
        return value in (0, "") or (isinstance(value, str) and parse_duration_ns(value) == 0)
    except ValueError:
        return False  # a text, or reported when it is checked


def cpu_set(text: str) -> frozenset[int]:
    """Return the cores that a list such as ``0-3,8`` names (Linux cpuset notation)."""
    cores: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and (not last.isdecimal() or int(last) < int(first))):
            raise InvalidConfiguration(f"{text!r} is not a valid list of cores", fix="write it as 0-3,8")
        cores.update(range(int(first), int(last or first) + 1))
    return frozenset(cores)


def _check_identity(document: Mapping[str, object], where: str) -> None:
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind != KIND or version != API_VERSION:
        raise InvalidConfiguration(
            f"this is {kind or 'a document without kind'} of {version or 'no apiVersion'}, not a kubelet configuration",
            where=where,
            fix=f"apiVersion: {API_VERSION}, kind: {KIND}",
        )


def _wrong_values(config: KubeletConfiguration, where: str) -> Iterator[InvalidConfiguration]:
    """Parse every quantity and duration once, so that none fails later; yield what the kubelet rejects."""
    for place, what, fix in (
        *_wrong_reservations("kubeReserved", config.kube_reserved),
        *_wrong_reservations("systemReserved", config.system_reserved),
        *_wrong_durations(config),
        *_wrong_choices(config),
        *_wrong_numbers(config),
        *_wrong_shares(config),
    ):
        yield InvalidConfiguration(what, where=_at(where, place), fix=fix)


Wrong = Iterator[tuple[str, str, str]]
"""Fields, what is wrong with them, and how to fix it."""


def _wrong_shares(config: KubeletConfiguration) -> Wrong:
    for name, text in config.qos_reserved.items():
        if name != MEMORY:
            yield "qosReserved", f"{name!r} cannot be reserved", "the kubelet can reserve memory only"
        elif _percentage(text) is None:
            what, fix = f"{text!r} is not a percentage from 0% to 100%", "write a whole number with %, such as 50%"
            yield f"qosReserved.{name}", what, fix
    if config.reserved_system_cpus:
        try:
            cpu_set(config.reserved_system_cpus)
        except InputError as error:
            yield "reservedSystemCPUs", error.what, error.fix


def _wrong_durations(config: KubeletConfiguration) -> Wrong:
    durations = {
        "evictionPressureTransitionPeriod": config.eviction_pressure_transition_period,
        "cpuCFSQuotaPeriod": config.cpu_cfs_quota_period,
        "nodeStatusUpdateFrequency": config.node_status_update_frequency,
        "crashLoopBackOff.maxContainerRestartPeriod": config.crash_loop_back_off.max_container_restart_period,
    }
    for name, text in durations.items():
        if text is None:
            continue
        if wrong := _not_a_duration(text):
            yield name, wrong, duration_fix(text, _DURATION_BOUNDS.get(name))
            continue
        least, most = _DURATION_BOUNDS.get(name, (text, text))
        if not parse_duration_ns(least) <= parse_duration_ns(text) <= parse_duration_ns(most):
            yield name, f"{text} is out of range", f"{least} to {most}"


def _wrong_choices(config: KubeletConfiguration) -> Wrong:
    given = {
        "cgroupDriver": (config.cgroup_driver,),
        "cpuManagerPolicy": (config.cpu_manager_policy,),
        "enforceNodeAllocatable": config.enforce_node_allocatable,
        "memoryReservationPolicy": (config.memory_reservation_policy,),
        "memorySwap.swapBehavior": (config.memory_swap.swap_behavior,),
    }
    for name, values in given.items():
        for value in values:
            if value not in _CHOICES[name]:
                fix = f"write {' or '.join(choice for choice in _CHOICES[name] if choice)}"
                yield name, f"{value!r} is not a valid value", fix


def _wrong_numbers(config: KubeletConfiguration) -> Wrong:
    for name, number in (("maxPods", config.max_pods), ("podsPerCore", config.pods_per_core)):
        if number < 0:
            yield name, f"{number} is negative", "use 0 or more"
    score, factor = config.oom_score_adj, config.memory_throttling_factor
    if not -1000 <= score <= 1000:
        yield "oomScoreAdj", f"{score} is out of range", "-1000 to 1000"
    if factor is not None and not 0 < factor <= 1:
        yield "memoryThrottlingFactor", f"{factor} is out of range", "more than 0, up to 1"


def _wrong_reservations(field: str, reserved: Mapping[str, str]) -> Wrong:
    for name, text in reserved.items():
        if name not in _RESERVABLE:
            yield field, f"{name!r} cannot be reserved", f"the kubelet can reserve {', '.join(_RESERVABLE)}"
            continue
        try:
            negative = Quantity.parse(text).sign < 0
        except InputError as error:
            yield f"{field}.{name}", f"{text!r}: {error.what}", error.fix or "such as 500m or 1Gi"
            continue
        if negative:
            yield f"{field}.{name}", f"{text} is negative", "reserve 0 or more"


def _percentage(text: str) -> int | None:
    """Return a percentage as the kubelet reads it (pkg/kubelet/cm: parsePercentage); None if it is none."""
    matched = re.fullmatch(r"([+-]?[0-9]{1,18})%+", text)
    percent = int(matched[1]) if matched else -1
    return percent if 0 <= percent <= 100 else None


def _amounts(texts: Mapping[str, str]) -> ResourceList:
    return {name: Quantity.parse(text) for name, text in texts.items()}


def _without_cpu(texts: Mapping[str, str]) -> ResourceList:
    return {name: amount for name, amount in _amounts(texts).items() if name != "cpu"}


# Below this a number of bytes is a number without its unit.
_LEAST_BYTES = 1 << 20
_DURATIONS = (
    "evictionPressureTransitionPeriod", "evictionSoftGracePeriod", "nodeStatusUpdateFrequency",
    "crashLoopBackOff.maxContainerRestartPeriod",
)  # fmt: skip
# Known by name only; a kubelet does not start with one that cannot be read.
_DURATIONS_BY_NAME = frozenset((
    "containerLogMonitorInterval", "cpuManagerReconcilePeriod", "draManagerReconcilePeriod", "fileCheckFrequency",
    "httpCheckFrequency", "imageMaximumGCAge", "imageMinimumGCAge", "nodeStatusReportFrequency",
    "runtimeRequestTimeout", "shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "streamingConnectionIdleTimeout",
    "syncFrequency", "volumeStatsAggPeriod",
))  # fmt: skip
# What the kubelet takes (pkg/kubelet/apis/config/validation, pkg/kubelet/cm).
_DURATION_BOUNDS = {
    "cpuCFSQuotaPeriod": ("1ms", "1s"),
    "crashLoopBackOff.maxContainerRestartPeriod": ("1s", "5m"),
}
_CHOICES = {
    "cgroupDriver": ("", "cgroupfs", "systemd"),
    "cpuManagerPolicy": ("", "none", "static"),
    "enforceNodeAllocatable": (
        "pods", "system-reserved", "kube-reserved", "system-reserved-compressible", "kube-reserved-compressible",
        "none", "",
    ),
    "memoryReservationPolicy": ("None", "TieredReservation"),
    "memorySwap.swapBehavior": ("", "NoSwap", "LimitedSwap"),
}  # fmt: skip

# Fields whose zero value the kubelet replaces by its default.
_ZERO_MEANS_DEFAULT = (
    "maxPods", "evictionPressureTransitionPeriod", "cgroupDriver", "nodeStatusUpdateFrequency",
    "memoryReservationPolicy",
)  # fmt: skip


def _declared(fields: Iterable[msgspec.structs.FieldInfo]) -> list[str]:
    return [declared.encode_name for declared in fields]


KNOWN_FIELDS = frozenset((*_declared(msgspec.structs.fields(KubeletConfiguration)), *SKIPPED_FIELDS))
