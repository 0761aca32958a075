"""The kubelet's flags, as fields of its configuration.

Most flags have a field of the same meaning, so a command line, or the ``kubeletArguments`` of an OpenShift 3 node,
becomes the fields of a ``KubeletConfiguration`` and is read like one from there on. A flag is taken as the kubelet
takes it: of several uses the last counts, maps add up, and empty uses of a map clear its default. Flags that decide
nothing here are returned by name; one that looks misspelt is rejected, because the setting would silently be missing.

Sources: Kubernetes cmd/kubelet/app/options/options.go (v1.9 and v1.36), staging/src/k8s.io/component-base/cli/flag/
{langle_separated_map_string,map_string_string,map_string_bool}.go; openshift/origin 3.9
pkg/cmd/server/apis/config/types.go (ExtendedArguments).
"""

from __future__ import annotations

import difflib
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct

from podqos.errors import InvalidConfiguration


class Form(Enum):
    """How the value of a flag is written."""

    TEXT = "text"
    DURATION = "duration"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    LIST = "a,b"
    EQUALS = "name=value,…"
    BELOW = "name<value,…"
    GATES = "name=true,…"
    TAINTS = "key=value:effect,…"


class KubeletFields(Struct, frozen=True):
    """The fields of a ``KubeletConfiguration`` that flags set."""

    fields: dict[str, object]
    ignored: tuple[str, ...]
    """Flags that do not affect pods, in the given order."""


FLAGS: dict[str, tuple[str, Form]] = {
    "cgroup-driver": ("cgroupDriver", Form.TEXT),
    "cgroup-root": ("cgroupRoot", Form.TEXT),
    "cgroups-per-qos": ("cgroupsPerQOS", Form.BOOLEAN),
    "container-log-max-files": ("containerLogMaxFiles", Form.INTEGER),
    "container-log-max-size": ("containerLogMaxSize", Form.TEXT),
    "cpu-cfs-quota": ("cpuCFSQuota", Form.BOOLEAN),
    "cpu-cfs-quota-period": ("cpuCFSQuotaPeriod", Form.DURATION),
    "cpu-manager-policy": ("cpuManagerPolicy", Form.TEXT),
    "cpu-manager-policy-options": ("cpuManagerPolicyOptions", Form.EQUALS),
    "enforce-node-allocatable": ("enforceNodeAllocatable", Form.LIST),
    "eviction-hard": ("evictionHard", Form.BELOW),
    "eviction-max-pod-grace-period": ("evictionMaxPodGracePeriod", Form.INTEGER),
    "eviction-minimum-reclaim": ("evictionMinimumReclaim", Form.EQUALS),
    "eviction-pressure-transition-period": ("evictionPressureTransitionPeriod", Form.DURATION),
    "eviction-soft": ("evictionSoft", Form.BELOW),
    "eviction-soft-grace-period": ("evictionSoftGracePeriod", Form.EQUALS),
    "experimental-cgroups-per-qos": ("cgroupsPerQOS", Form.BOOLEAN),
    "experimental-fail-swap-on": ("failSwapOn", Form.BOOLEAN),
    "experimental-kernel-memcg-notification": ("kernelMemcgNotification", Form.BOOLEAN),
    "experimental-qos-reserved": ("qosReserved", Form.EQUALS),
    "fail-swap-on": ("failSwapOn", Form.BOOLEAN),
    "feature-gates": ("featureGates", Form.GATES),
    "image-gc-high-threshold": ("imageGCHighThresholdPercent", Form.INTEGER),
    "image-gc-low-threshold": ("imageGCLowThresholdPercent", Form.INTEGER),
    "kernel-memcg-notification": ("kernelMemcgNotification", Form.BOOLEAN),
    "kube-reserved": ("kubeReserved", Form.EQUALS),
    "kube-reserved-cgroup": ("kubeReservedCgroup", Form.TEXT),
    "kubelet-cgroups": ("kubeletCgroups", Form.TEXT),
    "local-storage-capacity-isolation": ("localStorageCapacityIsolation", Form.BOOLEAN),
    "max-pods": ("maxPods", Form.INTEGER),
    "memory-manager-policy": ("memoryManagerPolicy", Form.TEXT),
    "minimum-image-ttl-duration": ("imageMinimumGCAge", Form.DURATION),
    "node-status-update-frequency": ("nodeStatusUpdateFrequency", Form.DURATION),
    "oom-score-adj": ("oomScoreAdj", Form.INTEGER),
    "pod-max-pids": ("podPidsLimit", Form.INTEGER),
    "pods-per-core": ("podsPerCore", Form.INTEGER),
    "qos-reserved": ("qosReserved", Form.EQUALS),
    "register-with-taints": ("registerWithTaints", Form.TAINTS),
    "reserved-cpus": ("reservedSystemCPUs", Form.TEXT),
    "reserved-memory": ("reservedMemory", Form.TEXT),
    "system-cgroups": ("systemCgroups", Form.TEXT),
    "system-reserved": ("systemReserved", Form.EQUALS),
    "system-reserved-cgroup": ("systemReservedCgroup", Form.TEXT),
    "topology-manager-policy": ("topologyManagerPolicy", Form.TEXT),
    "topology-manager-policy-options": ("topologyManagerPolicyOptions", Form.EQUALS),
    "topology-manager-scope": ("topologyManagerScope", Form.TEXT),
}
"""Flag → field and how it is written."""

IGNORED_FLAGS = (
    "address", "allow-privileged", "allowed-unsafe-sysctls", "alsologtostderr", "anonymous-auth",
    "api-servers", "application-metrics-count-limit", "authentication-token-webhook",
    "authentication-token-webhook-cache-ttl", "authorization-mode",
    "authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl",
    "azure-container-registry-config", "babysit-daemons", "boot-id-file", "bootstrap-checkpoint-path",
    "bootstrap-kubeconfig", "cadvisor-port", "cert-dir", "chaos-chance", "client-ca-file", "cloud-config",
    "cloud-provider", "cluster-dns", "cluster-domain", "cni-bin-dir", "cni-cache-dir", "cni-conf-dir",
    "config", "config-dir", "configure-cbr0", "container-hints", "container-runtime",
    "container-runtime-endpoint", "containerd", "containerd-namespace", "containerized",
    "contention-profiling", "cpu-manager-reconcile-period", "docker", "docker-disable-shared-pid",
    "docker-endpoint", "docker-env-metadata-whitelist", "docker-exec-handler", "docker-only", "docker-root",
    "docker-tls", "dynamic-config-dir", "enable-cadvisor-json-endpoints", "enable-controller-attach-detach",
    "enable-custom-metrics", "enable-debugging-handlers", "enable-load-reader", "enable-server",
    "enable-tracing", "event-burst", "event-qps", "event-storage-age-limit", "event-storage-event-limit",
    "exit-on-lock-contention", "experimental-allowed-unsafe-sysctls", "experimental-bootstrap-kubeconfig",
    "experimental-check-node-capabilities-before-mount", "experimental-dockershim",
    "experimental-flannel-overlay", "experimental-mounter-path", "experimental-nvidia-gpus",
    "file-check-frequency", "global-housekeeping-interval", "google-json-key", "hairpin-mode",
    "healthz-bind-address", "healthz-port", "host-ipc-sources", "host-network-sources", "host-pid-sources",
    "hostname-override", "housekeeping-interval", "http-check-frequency", "image-credential-provider-bin-dir",
    "image-credential-provider-config", "image-pull-progress-deadline", "image-service-endpoint",
    "init-config-dir", "iptables-drop-bit", "iptables-masquerade-bit", "keep-terminated-pod-volumes",
    "kube-api-burst", "kube-api-content-type", "kube-api-qps", "kubeconfig", "lock-file", "log-backtrace-at",
    "log-cadvisor-usage", "log-dir", "log-file", "log-flush-frequency", "logging-format", "logtostderr",
    "machine-id-file", "make-iptables-util-chains", "manifest-url", "manifest-url-header",
    "master-service-namespace", "max-open-files", "maximum-dead-containers",
    "maximum-dead-containers-per-container", "minimum-container-ttl-duration", "network-plugin",
    "network-plugin-mtu", "node-ip", "node-labels", "node-status-max-images", "non-masquerade-cidr",
    "outofdisk-transition-frequency", "pod-cidr", "pod-infra-container-image", "pod-manifest-path", "port",
    "protect-kernel-defaults", "provider-id", "read-only-port", "really-crash-for-testing", "reconcile-cidr",
    "register-node", "register-schedulable", "registry-burst", "registry-qps", "require-kubeconfig",
    "resolv-conf", "resource-container", "rkt-api-endpoint", "rkt-path", "rkt-stage1-image", "root-dir",
    "rotate-certificates", "rotate-server-certificates", "runonce", "runtime-cgroups",
    "runtime-request-timeout", "seccomp-default", "seccomp-profile-root", "serialize-image-pulls",
    "skip-headers", "skip-log-headers", "stderrthreshold", "storage-driver-buffer-duration",
    "storage-driver-db", "storage-driver-host", "storage-driver-password", "storage-driver-secure",
    "storage-driver-table", "storage-driver-user", "streaming-connection-idle-timeout", "sync-frequency",
    "system-container", "tls-cert-file", "tls-cipher-suites", "tls-min-version", "tls-private-key-file", "v",
    "vmodule", "volume-plugin-dir", "volume-stats-agg-period",
)  # fmt: skip
"""Flags that the kubelet of some version has and that have no effect here."""

_REFUSED_IF_TRUE = {
    "experimental-allocatable-ignore-eviction": "podqos always subtracts hard thresholds from allocatable"
}
_SUGGESTED = 0.8
"""How alike two names must be for one to be a misspelling of the other."""
# What Go's strconv.ParseBool takes.
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_TAINT = re.compile(r"([^=:]+)(?:=([^=:]*))?:([^=:]+)")
_FIELD_FLAGS = {field: name for name, (field, _) in reversed(FLAGS.items()) if not name.startswith("experimental-")}


def fields_from_arguments(arguments: Mapping[str, object]) -> KubeletFields:
    """Read flags by name, each with the list of its values: one for every use of the flag."""
    fields: dict[str, object] = {}
    ignored = []
    for name, values in arguments.items():
        checked = _values(name, values)
        if name in _REFUSED_IF_TRUE:
            if checked and _flag_value(name, Form.BOOLEAN, checked):
                fix = "remove it"
                raise InvalidConfiguration(f"not supported: {_REFUSED_IF_TRUE[name]}", where=name, fix=fix)
        elif name not in FLAGS:
            _check_spelling(name)
            ignored.append(name)
        elif checked:
            field, form = FLAGS[name]
            fields[field] = _flag_value(name, form, checked)
    return KubeletFields(fields, tuple(ignored))


def arguments_from_words(words: Iterable[str]) -> dict[str, list[str]]:
    """Take a command line apart: ``--name=value``, ``--name value``, and ``name=value`` without dashes.

    The kubelet has nothing but flags on its command line: behind one that is unknown here, a word without dashes is
    its value.
    """
    arguments: dict[str, list[str]] = {}
    rest = deque(words)
    while rest:
        word = rest.popleft()
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if not equals:
            if not word.startswith("-"):
                raise InvalidConfiguration(f"{word!r} is not a valid flag", fix="write name=value")
            value = _value_behind(name, rest)
        arguments.setdefault(name, []).append(value)
    return arguments


def flag_of(field: str) -> str | None:
    """Return the flag that sets a field of the configuration; None if there is none."""
    return _FIELD_FLAGS.get(field)


def flag_values(flag: str, value: object) -> list[str]:
    """Return the values of a flag that say what a field says: the reverse of reading."""
    form = FLAGS[flag][1]
    if isinstance(value, Mapping):
        separator = "<" if form is Form.BELOW else "="
        return [f"{name}{separator}{each}" for name, each in value.items()]
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


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
                    fix=f"write NAME{separator}VALUE, separated by commas",
                )
            pairs[name.strip()] = value.strip()
    return pairs


def _values(name: str, values: object) -> list[str]:
    """Return the uses of a flag; none at all is as if it were not there."""
    if values is None:
        return []
    if isinstance(values, str):
        raise InvalidConfiguration("expected a list of strings", where=name, fix=f'write {name}: ["{values}"]')
    if not isinstance(values, list | tuple):
        raise InvalidConfiguration("expected a list of strings", where=name, fix=f'write {name}: ["…"]')
    for value in values:
        if not isinstance(value, str):
            fix = f'put it in quotes: "{value}"' if isinstance(value, int | float) else f'write {name}: ["…"]'
            raise InvalidConfiguration(f"{value!r} is not a string", where=name, fix=fix)
    return list(values)


def _check_spelling(name: str) -> None:
    if name not in IGNORED_FLAGS:
        close = difflib.get_close_matches(name, (*FLAGS, *IGNORED_FLAGS), n=1, cutoff=_SUGGESTED)
        if close:
            raise InvalidConfiguration(f"unknown kubelet flag {name!r}", where=name, fix=f"did you mean {close[0]}?")


def _flag_value(name: str, form: Form, values: Sequence[str]) -> object:
    try:
        return _read(form, values)
    except InvalidConfiguration as error:
        what = f"{error.where!r}: {error.what}" if error.where else error.what
        raise InvalidConfiguration(what, where=name, fix=error.fix) from None


def _read(form: Form, values: Sequence[str]) -> object:
    last = values[-1]
    match form:
        case Form.TEXT | Form.DURATION:
            return last
        case Form.INTEGER:
            return _integer(last)
        case Form.BOOLEAN:
            return _boolean(last)
        case Form.LIST:
            return [part for value in values for part in value.split(",") if part]
        case Form.TAINTS:
            return [_taint(part.strip()) for value in values for part in value.split(",") if part]
    pairs = {
        key: text for value in values for key, text in parse_pairs(value, "<" if form is Form.BELOW else "=").items()
    }
    return {key: _boolean(text) for key, text in pairs.items()} if form is Form.GATES else pairs


def _integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None or not -(2**63) <= int(text) < 2**63:
        raise InvalidConfiguration(f"{text!r} is not a whole number", fix="write a number, such as 30")
    return int(text)


def _boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        raise InvalidConfiguration(f"{text!r} is neither true nor false", fix="write true or false")
    return _BOOLEANS[text]


def _taint(text: str) -> dict[str, str]:
    matched = _TAINT.fullmatch(text)
    if matched is None:
        raise InvalidConfiguration(f"{text!r} is not a valid taint", fix="write key=value:NoSchedule")
    key, value, effect = matched.groups()
    return {"key": key, "value": value or "", "effect": effect}


def _value_behind(name: str, rest: deque[str]) -> str:
    form = FLAGS.get(name, ("", None))[1]
    is_switch = form is Form.BOOLEAN or (form is None and (not rest or rest[0].startswith("-")))
    if is_switch:
        return "true"
    if not rest:
        raise InvalidConfiguration("flag needs a value", where=name, fix=f"write --{name}=…")
    return rest.popleft()
