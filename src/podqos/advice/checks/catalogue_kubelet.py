"""PQ4xx: the settings of a kubelet."""

from __future__ import annotations

from podqos.advice.checks.finding import Check, Effect, Example, Severity

_THRESHOLDS = "Kubernetes: pkg/kubelet/eviction/helpers.go (ParseThresholdConfig)"
_MANAGER = "Kubernetes: pkg/kubelet/eviction/eviction_manager.go"
_ALLOCATABLE = "Kubernetes: pkg/kubelet/cm/node_container_manager_linux.go"
_TYPES = "Kubernetes: staging/src/k8s.io/kubelet/config/v1beta1/types.go"

_HEAD = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
"""
_GOOD = (
    _HEAD
    + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 1Gi}
evictionHard: {memory.available: 1Gi, nodefs.available: 10%}
"""
)

MEMORY_UNWATCHED = Check(
    id="PQ401",
    name="no-memory-threshold",
    severity=Severity.ERROR,
    title="The kubelet does not watch memory",
    why=(
        "Naming any hard threshold drops the defaults of all others. Without one for memory.available the kubelet "
        "never evicts for memory: the node runs until the kernel kills, which knows neither priorities nor requests "
        "nor grace periods."
    ),
    fix="Add memory.available to evictionHard.",
    bad=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 1Gi}
evictionHard: {nodefs.available: 10%}
"""
    ),
    good=Example(_GOOD),
    effect=Effect.NODE,
    references=(_THRESHOLDS, "Kubernetes: pkg/kubelet/eviction/defaults_linux.go"),
)

SOFT_AFTER_HARD = Check(
    id="PQ402",
    name="soft-after-hard",
    severity=Severity.WARNING,
    title="A soft threshold lies at or below the hard one",
    why=(
        "The hard threshold is met first and evicts at once, with a grace period of one second. The soft one, which "
        "was meant to end pods gently and in time, never gets its turn."
    ),
    fix="Set the soft threshold well above the hard one.",
    bad=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 3Gi}
evictionHard: {memory.available: 1Gi}
evictionSoft: {memory.available: 512Mi}
evictionSoftGracePeriod: {memory.available: 1m30s}
evictionMaxPodGracePeriod: 60
"""
    ),
    good=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 3Gi}
evictionHard: {memory.available: 1Gi}
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 1m30s}
evictionMaxPodGracePeriod: 60
"""
    ),
    effect=Effect.NODE,
    references=(_THRESHOLDS, _MANAGER),
)

SOFT_WITHOUT_GRACE = Check(
    id="PQ403",
    name="soft-without-grace",
    severity=Severity.ERROR,
    title="A soft threshold has no grace period",
    why=(
        "Without an entry in evictionSoftGracePeriod the kubelet does not start; with one of zero the threshold "
        "acts at once, as a second hard one at a higher mark, and evicts pods for every short burst."
    ),
    fix="Add a grace period to evictionSoftGracePeriod.",
    bad=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 3Gi}
evictionHard: {memory.available: 1Gi}
evictionSoft: {memory.available: 2Gi}
"""
    ),
    good=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 3Gi}
evictionHard: {memory.available: 1Gi}
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 1m30s}
"""
    ),
    effect=Effect.NODE,
    references=(_THRESHOLDS,),
)

KERNEL_FIRST = Check(
    id="PQ404",
    name="kernel-kills-first",
    severity=Severity.WARNING,
    title="Memory can run out between two looks of the kubelet",
    why=(
        "The kubelet looks every ten seconds. What pods can take in that time must fit between the threshold and "
        "nothing, or the kernel has to kill before the kubelet has seen anything: by oom_score_adj and size, "
        "without regard to priority, and without a grace period."
    ),
    fix=(
        "Raise evictionHard for memory.available. On cgroup v1 kernelMemcgNotification helps as well; on v2 the "
        "kubelet's notifier is a stub that never fires."
    ),
    bad=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 1Gi}
evictionHard: {memory.available: 100Mi}
"""
    ),
    good=Example(_GOOD),
    effect=Effect.NODE,
    references=(_MANAGER,),
)

SOFT_NOT_COVERED = Check(
    id="PQ405",
    name="soft-not-covered-by-reservation",
    severity=Severity.WARNING,
    title="Pods within their requests can meet the soft threshold",
    why=(
        "Allocatable leaves the hard threshold out, but not the soft one. On a full node pods that keep to their "
        "requests bring it down to the soft threshold, and the kubelet evicts one of them though the scheduler was "
        "right to put it there."
    ),
    fix="Add the soft threshold to systemReserved.",
    bad=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 1Gi}
evictionHard: {memory.available: 1Gi}
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 1m30s}
"""
    ),
    good=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 3Gi}
evictionHard: {memory.available: 1Gi}
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 1m30s}
"""
    ),
    effect=Effect.NODE,
    references=(_ALLOCATABLE, "OKD: Handling out of resource errors"),
)

NOTHING_RESERVED = Check(
    id="PQ406",
    name="no-memory-reserved",
    severity=Severity.WARNING,
    title="No memory is reserved for the system and the kubelet",
    why=(
        "Everything but the hard threshold is offered to pods. On a full node the daemons live from what the pods "
        "were promised: pods within their requests are evicted or killed for memory that the system uses."
    ),
    fix="Set kubeReserved.memory and systemReserved.memory to what they use.",
    bad=Example(
        _HEAD
        + """\
evictionHard: {memory.available: 1Gi}
"""
    ),
    good=Example(_GOOD),
    effect=Effect.NODE,
    references=(_ALLOCATABLE,),
)

SWAP_HIDES_PRESSURE = Check(
    id="PQ407",
    name="swap-hides-pressure",
    severity=Severity.WARNING,
    title="Swap hides memory pressure from the kubelet",
    why=(
        "While pods swap, memory.available does not fall, so that the kubelet sees no pressure and evicts nobody. "
        "Pods slow down instead, and when swap is full the kernel kills."
    ),
    fix="Set memorySwap.swapBehavior to NoSwap, or failSwapOn to true.",
    bad=Example(
        _GOOD
        + """\
failSwapOn: false
memorySwap: {swapBehavior: LimitedSwap}
"""
    ),
    good=Example(
        _GOOD
        + """\
failSwapOn: false
memorySwap: {swapBehavior: NoSwap}
"""
    ),
    effect=Effect.NODE,
    references=(_TYPES, "KEP-2400: node swap"),
)

PODS_NOT_ENFORCED = Check(
    id="PQ408",
    name="pods-not-enforced",
    severity=Severity.WARNING,
    title="Pods are not held to what is allocatable",
    why=(
        "Without pods in enforceNodeAllocatable no cgroup limits all pods together: they can use what is reserved "
        "for the system, and when memory runs out the kernel chooses among all processes of the machine. The "
        "threshold for allocatable memory is gone as well."
    ),
    fix="Add pods to enforceNodeAllocatable.",
    bad=Example(_GOOD + "enforceNodeAllocatable: [none]\n"),
    good=Example(_GOOD + "enforceNodeAllocatable: [pods]\n"),
    effect=Effect.NODE,
    references=(_ALLOCATABLE, _THRESHOLDS),
)

RECLAIMS_TOO_MUCH = Check(
    id="PQ409",
    name="minimum-reclaim-too-large",
    severity=Severity.WARNING,
    title="Every eviction takes more pods than pressure asks for",
    why=(
        "Once a threshold is met the kubelet evicts until evictionMinimumReclaim more than the threshold is free. "
        "If that is many times the threshold, one moment of pressure costs several pods."
    ),
    fix="Set it to about the threshold.",
    bad=Example(_GOOD + "evictionMinimumReclaim: {memory.available: 16Gi}\n"),
    good=Example(_GOOD + "evictionMinimumReclaim: {memory.available: 500Mi}\n"),
    effect=Effect.NODE,
    references=(_THRESHOLDS, _MANAGER),
)

NO_EFFECT = Check(
    id="PQ410",
    name="eviction-setting-without-effect",
    severity=Severity.INFO,
    title="An eviction setting does nothing",
    why=(
        "A grace period without its soft threshold, a threshold of containerfs (the kubelet overwrites it) or a "
        "share of zero is read and never acts: what somebody set up to protect pods is not there."
    ),
    fix="Remove it, or complete it.",
    bad=Example(_GOOD + "evictionSoftGracePeriod: {memory.available: 2m}\n"),
    good=Example(_GOOD),
    effect=Effect.NONE,
    references=(_THRESHOLDS,),
)

GRACE_CUT = Check(
    id="PQ411",
    name="eviction-cuts-grace-period",
    severity=Severity.INFO,
    title="A soft eviction gives pods less time than they ask for",
    why=(
        "Under a soft threshold a pod gets the smaller of evictionMaxPodGracePeriod, which is zero unless it is "
        "set, and its own terminationGracePeriodSeconds. What it needs longer for, such as writing its state, is "
        "cut off. (Under a hard threshold it is always one second.)"
    ),
    fix="Set evictionMaxPodGracePeriod to the longest grace period on the node.",
    bad=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 3Gi}
evictionHard: {memory.available: 1Gi}
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 1m30s}
---
apiVersion: v1
kind: Pod
metadata: {name: index}
spec:
  terminationGracePeriodSeconds: 120
  containers:
    - name: index
      image: index
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
"""
    ),
    good=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 3Gi}
evictionHard: {memory.available: 1Gi}
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 1m30s}
evictionMaxPodGracePeriod: 120
---
apiVersion: v1
kind: Pod
metadata: {name: index}
spec:
  terminationGracePeriodSeconds: 120
  containers:
    - name: index
      image: index
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
"""
    ),
    effect=Effect.NONE,
    references=(_MANAGER,),
)

KUBELET_REFUSES = Check(
    id="PQ412",
    name="kubelet-does-not-start",
    severity=Severity.ERROR,
    title="The kubelet does not start with these settings",
    why="The node drops out with the next restart of its kubelet, and all its pods are moved or lost.",
    fix="Correct the setting.",
    bad=Example(
        _HEAD
        + """\
kubeReserved: {memory: 1Gi}
systemReserved: {memory: 1Gi}
evictionHard: {memory.available: -1Gi}
"""
    ),
    good=Example(_GOOD),
    effect=Effect.NONE,
    references=(_THRESHOLDS, _ALLOCATABLE),
)

QOS_CGROUPS_OFF = Check(
    id="PQ413",
    name="qos-cgroups-off",
    severity=Severity.WARNING,
    title="The classes have no cgroups",
    why=(
        "Without cgroupsPerQOS there is no cgroup per class and pod: under contention a BestEffort pod gets as much "
        "cpu as a Burstable one asks for, nothing holds pods to what is allocatable, and memory of a pod is not "
        "accounted as one."
    ),
    fix="Set cgroupsPerQOS to true, which is the default.",
    bad=Example(
        _GOOD
        + """\
cgroupsPerQOS: false
enforceNodeAllocatable: []
"""
    ),
    good=Example(_GOOD),
    effect=Effect.NODE,
    references=(_TYPES, "Kubernetes: pkg/kubelet/cm/qos_container_manager_linux.go"),
)

KUBELET = (
    MEMORY_UNWATCHED,
    SOFT_AFTER_HARD,
    SOFT_WITHOUT_GRACE,
    KERNEL_FIRST,
    SOFT_NOT_COVERED,
    NOTHING_RESERVED,
    SWAP_HIDES_PRESSURE,
    PODS_NOT_ENFORCED,
    RECLAIMS_TOO_MUCH,
    NO_EFFECT,
    GRACE_CUT,
    KUBELET_REFUSES,
    QOS_CGROUPS_OFF,
)
