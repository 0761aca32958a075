"""PQ1xx: classes and sizes of workloads."""

from __future__ import annotations

from podqos.advice.checks.finding import Check, Effect, Example, Severity

_QOS = "Kubernetes: pkg/apis/core/v1/helper/qos/qos.go"
_OOM = "Kubernetes: pkg/kubelet/qos/policy.go"
_RANKING = "Kubernetes: pkg/kubelet/eviction/helpers.go"
_DEFAULTS = "Kubernetes: pkg/apis/core/v1/defaults.go"
_VALIDATION = "Kubernetes: pkg/apis/core/validation/validation.go"
_LOCAL_STORAGE = "Kubernetes: pkg/kubelet/eviction/eviction_manager.go (localStorageEviction)"
_DAEMON_TOLERATIONS = "Kubernetes: pkg/controller/daemon/util/daemonset_util.go (AddOrUpdateDaemonPodTolerations)"
_DAEMON_BACKOFF = "Kubernetes: pkg/controller/daemon/daemon_controller.go (failedPodsBackoff)"

_GOOD_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
"""

ACCIDENTAL_BURSTABLE = Check(
    id="PQ101",
    name="accidental-burstable",
    severity=Severity.WARNING,
    title="One container keeps the pod from being Guaranteed",
    why=(
        "A pod is Guaranteed only if every container, init containers included, has cpu and memory limits equal to "
        "its requests. One sidecar without limits makes the whole pod Burstable: its main container loses the "
        "oom_score_adj of -997, and under memory pressure the pod is evicted together with the batch jobs, as soon "
        "as it uses more than it requests."
    ),
    fix="Give the container limits equal to its requests.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: article-service}
spec:
  containers:
    - name: article-service
      image: article-service
      resources:
        requests: {cpu: "2", memory: 4Gi}
        limits: {cpu: "2", memory: 4Gi, ephemeral-storage: 1Gi}
    - name: envoy-sidecar
      image: envoy
      resources:
        requests: {cpu: 100m, memory: 128Mi}
        limits: {ephemeral-storage: 1Gi}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: article-service}
spec:
  containers:
    - name: article-service
      image: article-service
      resources:
        requests: {cpu: "2", memory: 4Gi}
        limits: {cpu: "2", memory: 4Gi, ephemeral-storage: 1Gi}
    - name: envoy-sidecar
      image: envoy
      resources:
        requests: {cpu: 100m, memory: 128Mi}
        limits: {cpu: 100m, memory: 128Mi, ephemeral-storage: 1Gi}
"""),
    references=(_QOS, _OOM),
)

BEST_EFFORT = Check(
    id="PQ102",
    name="accidental-best-effort",
    severity=Severity.WARNING,
    title="A workload that keeps running asks for nothing",
    why=(
        "Without any request or limit the pod is BestEffort. The kernel adds 1000 to its score, so that it kills it "
        "before every pod that asked for something; whatever it uses is more than it requested, so that the kubelet "
        "evicts it with the first; and the scheduler puts it on nodes that are full."
    ),
    fix=(
        "State what the containers need; one memory request is enough to be Burstable. If nobody misses it, say so "
        "with the annotation podqos.dev/restart-cost: none."
    ),
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources: {}
"""),
    good=Example(_GOOD_POD),
    references=(_QOS, _OOM),
)

DAEMON_SET_BEST_EFFORT = Check(
    id="PQ103",
    name="daemonset-best-effort",
    severity=Severity.WARNING,
    title="A DaemonSet asks for nothing",
    why=(
        "Its pods are the first to be evicted and killed on every node. The DaemonSet controller adds a toleration of "
        "node.kubernetes.io/memory-pressure, which no manifest can take back: an evicted pod returns to the same node "
        "within seconds, uses more than it requests again, and is evicted again, until the controller's back-off (1 s, "
        "doubled up to 15 min) keeps it away. What it does for the node (logs, metrics, network) is missing just when "
        "it is needed."
    ),
    fix=(
        "State what the containers need; with a memory request that covers their use the pod is not evicted before "
        "others and stays. If the pods are expendable, say so with the annotation podqos.dev/restart-cost: none."
    ),
    bad=Example("""\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log-collector}
spec:
  selector: {matchLabels: {app: logs}}
  template:
    metadata: {labels: {app: logs}}
    spec:
      containers:
        - name: collector
          image: collector
"""),
    good=Example("""\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log-collector}
spec:
  selector: {matchLabels: {app: logs}}
  template:
    metadata: {labels: {app: logs}}
    spec:
      containers:
        - name: collector
          image: collector
          resources:
            requests: {cpu: 50m, memory: 200Mi}
            limits: {memory: 200Mi, ephemeral-storage: 1Gi}
"""),
    references=(_QOS, _OOM, _DAEMON_TOLERATIONS, _DAEMON_BACKOFF),
)

USER_FACING_BEST_EFFORT = Check(
    id="PQ104",
    name="user-facing-best-effort",
    severity=Severity.ERROR,
    title="A workload that users wait for asks for nothing",
    why=(
        "A Service sends it traffic, and it is BestEffort: the kernel kills it before every batch job that asked "
        "for anything at all, and the kubelet evicts it with the first. Users notice before anybody else does."
    ),
    fix="Make it Guaranteed: limits equal to requests, for every container.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
    - name: web
      image: web
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 1Gi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
"""),
    references=(_QOS, _OOM),
)

LIMIT_FAR_ABOVE_REQUEST = Check(
    id="PQ105",
    name="memory-request-far-below-limit",
    severity=Severity.WARNING,
    title="The memory limit is many times the request",
    why=(
        "The scheduler reserves the request, the kernel allows the limit. A pod that uses what it may stands far "
        "above its request, which is what the kubelet ranks by: of two pods with the same priority the one further "
        "above its request is evicted first. The small request gives it a high oom_score_adj besides."
    ),
    fix="Raise the request towards what the container really uses, or lower the limit.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 256Mi}
        limits: {cpu: "1", memory: 8Gi, ephemeral-storage: 1Gi}
"""),
    good=Example(_GOOD_POD),
    references=(_RANKING, _OOM),
)

REQUEST_FOLLOWS_LIMIT = Check(
    id="PQ106",
    name="memory-limit-without-request",
    severity=Severity.INFO,
    title="The memory request is not written and becomes the limit",
    why=(
        "The API server copies a missing request from the limit. That may be meant (it is one way to be "
        "Guaranteed), but whoever raises the limit later also raises what the pod reserves, and a pod that does not "
        "fit any more stays pending without a line about requests in its manifest."
    ),
    fix="Write the request down.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
"""),
    good=Example(_GOOD_POD),
    effect=Effect.STANDING,
    references=(_DEFAULTS,),
)

NO_MEMORY_LIMIT = Check(
    id="PQ107",
    name="memory-request-without-limit",
    severity=Severity.WARNING,
    title="A container may take all memory of its node",
    why=(
        "With a limit, a container that leaks memory is killed in its own cgroup, alone. Without one it grows until "
        "the node has nothing left: then the kubelet evicts, or the kernel kills, and it need not be this container "
        "that dies."
    ),
    fix="Set a memory limit.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {ephemeral-storage: 1Gi}
"""),
    good=Example(_GOOD_POD),
    references=("Linux: Documentation/admin-guide/cgroup-v2.rst (memory.max)", _OOM),
)

NO_DISK_LIMIT = Check(
    id="PQ108",
    name="no-ephemeral-storage-limit",
    severity=Severity.INFO,
    title="Containers may fill the node's disk",
    why=(
        "Logs, the writable layer and emptyDir volumes share the node's disk. A container with a limit that exceeds "
        "it is evicted alone; without one it can fill the disk until the kubelet evicts pods for DiskPressure, this "
        "one or others."
    ),
    fix="Set limits.ephemeral-storage.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi}
"""),
    good=Example(_GOOD_POD),
    effect=Effect.DISK,
    references=(_LOCAL_STORAGE,),
)

MEMORY_VOLUME = Check(
    id="PQ109",
    name="memory-volume-without-size-limit",
    severity=Severity.WARNING,
    title="A volume in memory has no size limit",
    why=(
        "What is written to an emptyDir of medium Memory counts as memory of the container that writes it, and is "
        "neither freed when that container restarts nor swapped. Without a size limit it may grow to the pod's "
        "memory limit, and a container in which it has is killed again as soon as it starts."
    ),
    fix="Set emptyDir.sizeLimit, and count it in the memory limit.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
  volumes:
    - name: cache
      emptyDir: {medium: Memory}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
  volumes:
    - name: cache
      emptyDir: {medium: Memory, sizeLimit: 64Mi}
"""),
    references=("Kubernetes: pkg/volume/emptydir/empty_dir.go (calculateEmptyDirMemorySize)",),
)

DISK_VOLUME = Check(
    id="PQ110",
    name="volume-without-size-limit",
    severity=Severity.INFO,
    title="An emptyDir has no size limit",
    why=(
        "A volume that exceeds its size limit costs its own pod. Without one it can fill the node's disk, and the "
        "kubelet evicts for DiskPressure whoever is furthest above his ephemeral-storage request."
    ),
    fix="Set emptyDir.sizeLimit.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
  volumes:
    - name: cache
      emptyDir: {}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
  volumes:
    - name: cache
      emptyDir: {sizeLimit: 1Gi}
"""),
    effect=Effect.DISK,
    references=(_LOCAL_STORAGE,),
)

REQUEST_ABOVE_LIMIT = Check(
    id="PQ111",
    name="request-above-limit",
    severity=Severity.ERROR,
    title="A request is larger than its limit",
    why=(
        "The API server refuses the pod. A Deployment around it is stored all the same: its old pods go on until "
        "they die, and no new one ever comes."
    ),
    fix="Lower the request to the limit, or raise the limit.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 2Gi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
"""),
    good=Example(_GOOD_POD),
    effect=Effect.NOT_CREATED,
    references=(_VALIDATION,),
)

REFUSED_RESOURCES = Check(
    id="PQ112",
    name="refused-resources",
    severity=Severity.ERROR,
    title="The API server refuses the resources",
    why="No pod is created. A controller around it keeps trying, and nothing replaces the pods that die.",
    fix="Write an amount, or a resource, that the API server takes.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 1Gi, storage: 1Gi}
"""),
    good=Example(_GOOD_POD),
    effect=Effect.NOT_CREATED,
    references=(_VALIDATION,),
)

CLASS_CHANGING_RESIZE = Check(
    id="PQ113",
    name="class-changing-resize",
    severity=Severity.ERROR,
    title="A resize would change the class",
    why=(
        "The class of a running pod is fixed: the API server refuses a resize that would make another of it. The "
        "pod keeps its old amounts, and is killed at its old limit."
    ),
    fix="Resize requests and limits together, or create the pod anew.",
    bad=Example(
        """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 1Gi}
        limits: {cpu: "1", memory: 2Gi, ephemeral-storage: 1Gi}
""",
        replaces="""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 1Gi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
""",
    ),
    good=Example(
        """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 2Gi}
        limits: {cpu: "1", memory: 2Gi, ephemeral-storage: 1Gi}
""",
        replaces="""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 1Gi}
        limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi}
""",
    ),
    effect=Effect.STANDING,
    references=(f"{_VALIDATION} (ValidatePodResize)",),
)

SMALL_SIDECAR = Check(
    id="PQ114",
    name="small-sidecar-dies-first",
    severity=Severity.WARNING,
    title="A small sidecar of an important pod is killed almost first",
    why=(
        "The oom_score_adj of a Burstable container follows from its own memory request, not from the pod's. A "
        "sidecar with a small one ends near 999: when the node runs out of memory the kernel kills it right after "
        "the BestEffort pods, and a pod without its proxy serves nobody, whatever its priority."
    ),
    fix=(
        "Make the pod Guaranteed, or the sidecar an init container with restartPolicy: Always, whose score follows "
        "the main container's."
    ),
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 4Gi}
        limits: {cpu: "2", memory: 8Gi, ephemeral-storage: 1Gi}
    - name: proxy
      image: proxy
      resources:
        requests: {cpu: 50m, memory: 32Mi}
        limits: {cpu: "1", memory: 64Mi, ephemeral-storage: 1Gi}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  initContainers:
    - name: proxy
      image: proxy
      restartPolicy: Always
      resources:
        requests: {cpu: 50m, memory: 32Mi}
        limits: {cpu: "1", memory: 64Mi, ephemeral-storage: 1Gi}
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "1", memory: 4Gi}
        limits: {cpu: "2", memory: 8Gi, ephemeral-storage: 1Gi}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
"""),
    references=(_OOM, "KEP-753: sidecar containers"),
)

FRACTIONAL_CPU = Check(
    id="PQ115",
    name="fractional-cpu-under-static-policy",
    severity=Severity.INFO,
    title="A Guaranteed container gets no cores of its own",
    why=(
        "Under the static CPU manager only Guaranteed containers with a whole number of cores get them to "
        "themselves. One with 1500m shares the pool with everybody else: it survives memory pressure, and is still "
        "slowed down by the neighbours it was meant to be safe from."
    ),
    fix="Ask for whole cores.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 1500m, memory: 1Gi}
        limits: {cpu: 1500m, memory: 1Gi, ephemeral-storage: 1Gi}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
systemReserved: {cpu: "1", memory: 1Gi}
evictionHard: {memory.available: 1Gi}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: "2", memory: 1Gi}
        limits: {cpu: "2", memory: 1Gi, ephemeral-storage: 1Gi}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
systemReserved: {cpu: "1", memory: 1Gi}
evictionHard: {memory.available: 1Gi}
"""),
    effect=Effect.STANDING,
    references=("Kubernetes: pkg/kubelet/cm/cpumanager/policy_static.go (guaranteedCPUs)",),
)

ZERO_AMOUNT = Check(
    id="PQ116",
    name="zero-amount",
    severity=Severity.WARNING,
    title="An amount of zero counts as none",
    why=(
        "For the class only amounts above zero count, and to the kernel a limit of zero is no limit. A container "
        "with cpu: 0 looks careful and is as BestEffort, and as unlimited, as one that says nothing."
    ),
    fix="Remove the zero, or write an amount.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {memory: 512Mi}
        limits: {cpu: "0", memory: 1Gi, ephemeral-storage: 1Gi}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {memory: 512Mi}
        limits: {memory: 1Gi, ephemeral-storage: 1Gi}
"""),
    references=(_QOS,),
)

IMPLAUSIBLE_AMOUNT = Check(
    id="PQ117",
    name="implausible-unit",
    severity=Severity.ERROR,
    title="An amount is written in the wrong unit",
    why=(
        "m means thousandths: 512m of memory is half a byte, and cpu: 500 is five hundred cores. The first "
        "container is killed as soon as it starts, or is evicted as one that requests nothing; the second never "
        "finds a node."
    ),
    fix="Write Mi for mebibytes, m for thousandths of a core.",
    bad=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512m}
        limits: {cpu: "1", memory: 512m, ephemeral-storage: 1Gi}
"""),
    good=Example("""\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: "1", memory: 512Mi, ephemeral-storage: 1Gi}
"""),
    references=("Kubernetes: staging/src/k8s.io/apimachinery/pkg/api/resource/suffix.go",),
)

COMES_BACK = Check(
    id="PQ118",
    name="comes-back-under-pressure",
    severity=Severity.WARNING,
    title="An evicted pod comes back to the node and is evicted again",
    why=(
        "A node under memory pressure has the taint node.kubernetes.io/memory-pressure, which keeps new pods away. "
        "Pods of a DaemonSet tolerate it, because the controller adds the toleration; others do if their manifest "
        "says so. A pod that uses more than it requests is evicted first, returns to the same node within seconds, "
        "and is evicted again. Each round frees memory for a moment only, and the kubelet, which evicts one pod at a "
        "time, may be busy with it while memory goes on falling."
    ),
    fix=(
        "Request as much memory as the containers may use: a pod within its request is not among the first to be "
        "evicted. Or remove the toleration, where the manifest has it. Pods with the priority class system-node- "
        "critical are never evicted, which is meant for parts of the node only."
    ),
    bad=Example("""\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log-collector}
spec:
  selector: {matchLabels: {app: logs}}
  template:
    metadata: {labels: {app: logs}}
    spec:
      containers:
        - name: collector
          image: collector
          resources:
            requests: {cpu: 50m, memory: 150Mi}
            limits: {memory: 200Mi, ephemeral-storage: 1Gi}
"""),
    good=Example("""\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log-collector}
spec:
  selector: {matchLabels: {app: logs}}
  template:
    metadata: {labels: {app: logs}}
    spec:
      containers:
        - name: collector
          image: collector
          resources:
            requests: {cpu: 50m, memory: 200Mi}
            limits: {memory: 200Mi, ephemeral-storage: 1Gi}
"""),
    references=(_RANKING, _DAEMON_TOLERATIONS, _DAEMON_BACKOFF),
)

WORKLOADS = (
    ACCIDENTAL_BURSTABLE,
    BEST_EFFORT,
    DAEMON_SET_BEST_EFFORT,
    USER_FACING_BEST_EFFORT,
    LIMIT_FAR_ABOVE_REQUEST,
    REQUEST_FOLLOWS_LIMIT,
    NO_MEMORY_LIMIT,
    NO_DISK_LIMIT,
    MEMORY_VOLUME,
    DISK_VOLUME,
    REQUEST_ABOVE_LIMIT,
    REFUSED_RESOURCES,
    CLASS_CHANGING_RESIZE,
    SMALL_SIDECAR,
    FRACTIONAL_CPU,
    ZERO_AMOUNT,
    IMPLAUSIBLE_AMOUNT,
    COMES_BACK,
)
