"""Kubelet settings that podqos knows by name only, and which of them deserve a note.

A setting that is read changes an answer (a test holds that for every field). Most of the others are about
certificates, logs or the network; those that could change who gets, keeps or loses resources are named once, unless
they say what the kubelet does anyway. How that is worded is the business of ``report.kubelet_words``.

Source: Kubernetes v1.36 staging/src/k8s.io/kubelet/config/v1beta1/types.go, pkg/kubelet/apis/config/v1beta1/defaults.go
and pkg/features/kube_features.go.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from msgspec import Struct

Reader = Literal["plan", "simulation", "node"]
"""The reader of a configuration: a plan or check of some settings, a whole simulated node, or a real one."""

QOS_RESERVED_GATE = "QOSReserved"
MEMORY_QOS_GATE = "MemoryQoS"
NODE_SWAP_GATE = "NodeSwap"
RESTART_PERIOD_GATE = "KubeletCrashLoopBackOffMax"
NO_EXCLUSIVE_QUOTA_GATE = "DisableCPUQuotaWithExclusiveCPUs"

# Without consequence for any decision here.
_OTHER_FIELDS = (
    "address", "allowedUnsafeSysctls", "apiVersion", "authentication", "authorization", "clusterDNS", "clusterDomain",
    "configMapAndSecretChangeDetectionStrategy", "containerLogMaxFiles", "containerLogMaxSize",
    "containerLogMaxWorkers", "containerLogMonitorInterval", "containerRuntimeEndpoint", "contentType",
    "cpuManagerReconcilePeriod", "defaultPodSysctls", "draManagerReconcilePeriod", "enableContentionProfiling",
    "enableControllerAttachDetach", "enableDebugFlagsHandler", "enableDebuggingHandlers", "enableProfilingHandler",
    "enableServer", "enableSystemLogHandler", "enableSystemLogQuery", "eventBurst", "eventRecordQPS", "failCgroupV1",
    "fileCheckFrequency", "hairpinMode", "healthzBindAddress", "healthzPort", "httpCheckFrequency",
    "imagePullCredentialsVerificationPolicy", "imageServiceEndpoint", "iptablesDropBit", "iptablesMasqueradeBit",
    "kind", "kubeAPIBurst", "kubeAPIQPS", "logging", "makeIPTablesUtilChains", "maxOpenFiles", "maxParallelImagePulls",
    "nodeLeaseDurationSeconds", "nodeStatusMaxImages", "nodeStatusReportFrequency", "podCIDR",
    "podLogsDir", "port", "preloadedImagesVerificationAllowlist", "protectKernelDefaults", "providerID",
    "readOnlyPort", "registerNode", "registryBurst", "registryPullQPS", "resolvConf", "rotateCertificates", "runOnce",
    "runtimeRequestTimeout", "seccompDefault", "serializeImagePulls", "serverTLSBootstrap",
    "showHiddenMetricsForVersion", "staticPodPath", "staticPodURL", "staticPodURLHeader",
    "streamingConnectionIdleTimeout", "syncFrequency", "tlsCertFile", "tlsCipherSuites", "tlsCurvePreferences",
    "tlsMinVersion", "tlsPrivateKeyFile", "tracing", "userNamespaces", "volumePluginDir", "volumeStatsAggPeriod",
)  # fmt: skip

_NO_TIME = ("0s", "0", "0m0s")
# Could change who gets, keeps or loses resources, and are not modelled; with the values that change nothing.
_BEARING_FIELDS: dict[str, tuple[object, ...]] = {
    "cpuManagerPolicyOptions": (),
    "imageGCHighThresholdPercent": (85,),
    "imageGCLowThresholdPercent": (80,),
    "imageMaximumGCAge": _NO_TIME,
    "imageMinimumGCAge": ("2m", "2m0s"),
    "kubeReservedCgroup": (),
    "kubeletCgroups": (),
    "memoryManagerPolicy": ("None",),
    "reservedMemory": (),
    "shutdownGracePeriod": _NO_TIME,
    "shutdownGracePeriodByPodPriority": (),
    "shutdownGracePeriodCriticalPods": _NO_TIME,
    "systemCgroups": (),
    "systemReservedCgroup": (),
    "topologyManagerPolicy": ("none",),
    "topologyManagerPolicyOptions": (),
    "topologyManagerScope": ("container",),
}

SKIPPED_FIELDS = (*_OTHER_FIELDS, *_BEARING_FIELDS)
"""Known to the kubelet, and to podqos by name only."""

# Read by some commands, but not by those that run a whole node; with the values that change nothing there.
_UNREAD_BY: dict[Reader, dict[str, tuple[object, ...]]] = {
    "plan": {},
    "simulation": {
        "cpuManagerPolicy": ("none",),
        "kernelMemcgNotification": (False,),
    },
    "node": {
        "cgroupDriver": ("cgroupfs",),
        "cgroupRoot": ("/",),
        "cpuManagerPolicy": ("none",),
        "nodeStatusUpdateFrequency": ("10s",),
        "registerWithTaints": (),
    },
}

READ_GATES = (MEMORY_QOS_GATE, NO_EXCLUSIVE_QUOTA_GATE, QOS_RESERVED_GATE, RESTART_PERIOD_GATE)
"""The feature gates that change an answer; AllAlpha and AllBeta do so through them."""

# Always taken to be on, as they are by default: to say so changes nothing.
_ASSUMED_GATES = (
    "CPUManager", "ContainerRestartRules", "HugepageAwareEviction", "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScaling", "InPlacePodVerticalScalingInitContainers", "KubeletSeparateDiskGC",
    "LocalStorageCapacityIsolation", "NodeDeclaredFeatures", "NodeSwap", "PodLevelResources",
    "PodLevelResourcesFixDefaulting", "PodLevelResourcesFixKubeletQOSClass", "PodPriority",
    "RestartAllContainersOnContainerExits", "SidecarContainers", "SupportNodePidsLimit", "SupportPodPidsLimit",
    "TaintNodesByCondition",
)  # fmt: skip
_GROUP_GATES = ("AllAlpha", "AllBeta")
# Gates with one of these in their names are about something else.
_OTHER_TOPICS = (
    "API", "Auth", "Certificate", "ConfigMap", "CSI", "DNS", "Log", "Metric", "Proxy", "Secret", "Service", "TLS",
    "Token", "Tracing", "UserNamespaces", "Volume", "Watch", "Windows",
)  # fmt: skip

# Settings without effect unless a gate is on; with the values that ask for nothing.
_GATED_FIELDS: dict[str, tuple[str, tuple[object, ...]]] = {
    "memoryReservationPolicy": (MEMORY_QOS_GATE, ("None",)),
    "memoryThrottlingFactor": (MEMORY_QOS_GATE, (0.9,)),
    "qosReserved": (QOS_RESERVED_GATE, ()),
}
# Where the setting is older than its gate, and where the gate came to be on by default.
_GATED_SINCE = {"qosReserved": (1, 11)}
_GATED_UNTIL = {"memoryReservationPolicy": (1, 36), "memoryThrottlingFactor": (1, 36)}


class Gated(Struct, frozen=True, gc=False):
    """A setting without effect for lack of a feature gate."""

    field: str
    gate: str
    since: tuple[int, int] | None = None
    """From this version on; None: from the first with the setting."""
    until: tuple[int, int] | None = None
    """Up to this version: since then the gate is on unless it is turned off. None: to the last."""

    def is_of(self, version: tuple[int, int]) -> bool:
        """Whether that is so in a version."""
        return (self.since is None or version >= self.since) and (self.until is None or version <= self.until)


class IgnoredGate(Struct, frozen=True, gc=False):
    """A feature gate that nothing reads."""

    name: str
    meant: str = ""
    """One of those that are read, if the name looks like it was misspelt."""


class Ignored(Struct, frozen=True, gc=False):
    """Settings of a configuration that have no effect here, although they could on a real node."""

    fields: tuple[str, ...] = ()
    gates: tuple[IgnoredGate, ...] = ()
    without_gate: tuple[Gated, ...] = ()
    flags: tuple[str, ...] = ()
    """Flags without a field in the configuration: they do not affect pods."""

    def __bool__(self) -> bool:
        return bool(self.fields or self.gates or self.without_gate or self.flags)


def gate_is_on(gates: Mapping[str, bool], name: str, *, default: bool = False) -> bool:
    """Whether a gate is on: by its own name, else with all of its stage (alpha is off by default, beta on)."""
    return gates.get(name, gates.get("AllBeta" if default else "AllAlpha", default))


def ignored_settings(
    document: Mapping[str, object], reader: Reader = "plan", version: tuple[int, int] | None = None
) -> Ignored:
    """Return what ``reader`` ignores of a configuration that was accepted, as decoded; None: in any version."""
    given = document.get("featureGates")
    gates = {name: on for name, on in given.items() if isinstance(on, bool)} if isinstance(given, Mapping) else {}
    gated = tuple(
        gated
        for name, (gate, values) in _GATED_FIELDS.items()
        if _asks(document.get(name), values) and not gate_is_on(gates, gate)
        for gated in [Gated(name, gate, _GATED_SINCE.get(name), _gated_until(name, gates.get(gate)))]
        if version is None or gated.is_of(version)
    )
    told = {each.field for each in gated}
    unread = {**_BEARING_FIELDS, **_UNREAD_BY[reader]}
    fields = sorted(name for name, values in unread.items() if name not in told and _asks(document.get(name), values))
    return Ignored(tuple(fields), tuple(_ignored_gates(gates)), gated)


def _gated_until(name: str, stated: bool | None) -> tuple[int, int] | None:
    return None if stated is False else _GATED_UNTIL.get(name)


def _asks(value: object, defaults: Collection[object]) -> bool:
    """Whether a setting asks for something that the kubelet does not do anyway."""
    return value not in (None, "", {}, [], ()) and value not in defaults


def _ignored_gates(gates: Mapping[str, bool]) -> Iterator[IgnoredGate]:
    for name, on in sorted(gates.items()):
        if name in READ_GATES or name in _GROUP_GATES or (on and name in _ASSUMED_GATES):
            continue
        close = difflib.get_close_matches(name, READ_GATES, n=1, cutoff=0.85)
        if close or not any(topic in name for topic in _OTHER_TOPICS):
            yield IgnoredGate(name, close[0] if close else "")
