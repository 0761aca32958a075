"""Drawn settings: a node, its kubelet, its pods and what they use, as the files that commands read.

A seed gives the same setting for ever. What is drawn is nasty on purpose: reservations that the system exceeds, no
thresholds at all, thresholds below the kernel's watermarks, priorities on BestEffort pods, pods that nothing evicts,
ties, old versions. What no command could answer (usage beyond the node, a kubelet that does not start) is in
``tests/cli`` and not here: here every command has to answer.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from podqos.objects.cluster_snapshot import End, Header, NodeKubelet, NodeSummary

MI, GI = 1 << 20, 1 << 30
NODE = "n1"
PRIORITIES = {"low": -10, "high": 1000, "high-too": 1000}
CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
NOMINAL_BYTES = 64 * MI
"""What a container without a memory request is assumed to use."""
OLD_VERSIONS = ("1.8", "1.10", "1.14", "1.18", "1.20", "1.22", "1.24", "1.27", "1.30", "1.33", "1.35")
NEWEST = "1.36"

_Object = dict[str, Any]
PLAIN: _Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "plain", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
"""A pod of which nothing is special, for questions about the kubelet alone."""


PAGE_BYTES = 4096


class Used(NamedTuple):
    """What a container uses."""

    memory_bytes: int
    """Its working set."""
    inactive_bytes: int = 0
    """Page cache beyond it."""


class Setting(NamedTuple):
    """A node with its pods at one moment, and a container of theirs that grows."""

    seed: int
    version: str
    cgroup: str
    memory_bytes: int
    cpu_milli: int
    system_bytes: int
    kubelet: _Object
    pods: tuple[_Object, ...]
    """They run on the node."""
    waiting: tuple[_Object, ...]
    """They have no node yet."""
    usage: Mapping[tuple[str, str], Used]
    """By pod and container; all of them, also where the table leaves some out."""
    measured: frozenset[str]
    """The pods that the table of usage is about."""
    growing: tuple[str, str]
    rate: int

    @property
    def is_measured(self) -> bool:
        """Whether the table is about all pods."""
        return self.measured == {key(pod) for pod in self.pods}

    @property
    def is_notified(self) -> bool:
        """Whether the kernel notifies the kubelet of a threshold between two looks."""
        return self.cgroup == "v1" and self.kubelet.get("kernelMemcgNotification", False)

    @property
    def several(self) -> tuple[tuple[str, str], ...]:
        """Return containers that grow at once: the one that grows, and the last two that the table is about."""
        able = [each for each in self.usage if each[0] in self.measured]
        return (*dict.fromkeys((self.growing, *able[-2:])),)

    @property
    def begins_seconds(self) -> int:
        """Return when the container begins to grow in a simulation.

        A kubelet tells the kernel at a look what to notify it of: before its first look nothing does. The forecast is
        about one that runs already, so in a simulation it has to have looked once before anything grows.
        """
        return LOOK_SECONDS if self.is_notified else 0

    @property
    def usage_of_pods(self) -> dict[str, int]:
        """Return the working set of each pod."""
        found: dict[str, int] = {}
        for (pod, _), used in self.usage.items():
            found[pod] = found.get(pod, 0) + used.memory_bytes
        return found

    @property
    def usage_of_assumed_pods(self) -> dict[str, int]:
        """Return the same, with what is assumed of the pods that the table of usage leaves out."""
        return {key(pod): sum(_used(self, pod, each).memory_bytes for each in running(pod)) for pod in self.pods}

    @property
    def is_enforced(self) -> bool:
        """Whether all pods together are limited to what is not reserved."""
        return "pods" in self.kubelet.get("enforceNodeAllocatable", ["pods"])

    @property
    def pods_limit_bytes(self) -> int:
        """Return that limit, or the capacity."""
        reserved = (self.kubelet.get(name, {}).get("memory", "0") for name in ("kubeReserved", "systemReserved"))
        return self.memory_bytes - (sum(map(amount, reserved)) if self.is_enforced else 0)

    def allocatable(self, resource: str) -> int:
        """Return what the kubelet reports: bytes, or thousandths of a core."""
        capacity = self.memory_bytes if resource == "memory" else self.cpu_milli
        reserved = [self.kubelet.get(name, {}).get(resource, "0") for name in ("kubeReserved", "systemReserved")]
        held = sum(map(amount, reserved))
        hard = self.kubelet.get("evictionHard", {"memory.available": "100Mi"}).get("memory.available", "0")
        threshold = 0 if resource != "memory" else share_of(hard, self.memory_bytes)
        return max(0, capacity - held - threshold)

    def write(self, directory: Path) -> None:
        """Write the files."""
        classes = [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
            for name, value in PRIORITIES.items()
        ]
        node = _node(self)
        _write(directory / "pods.yaml", [*self.pods, *classes])
        _write(directory / "none.yaml", classes)
        _write(directory / "waiting.yaml", [*self.pods, *self.waiting, *classes])
        _write(directory / "node.yaml", [node])
        _write(directory / "plain.yaml", [PLAIN])
        (directory / "plain.csv").write_text("pod,memory\nplain,64Mi\n")
        _write(directory / "kubelet.yaml", [self.kubelet])
        rows = [
            f"{pod},{container},{used.memory_bytes},{used.inactive_bytes}\n"
            for (pod, container), used in self.usage.items()
            if pod in self.measured
        ]
        (directory / "usage.csv").write_text("".join(["pod,container,memory,inactiveFile\n", *rows]))
        rows = [f"{key(pod)},{each['name']},{assumed_bytes(each)}\n" for pod in self.pods for each in running(pod)]
        (directory / "limits.csv").write_text("".join(["pod,container,memory\n", *rows]))
        (directory / "cluster.json").write_bytes(b"".join(line + b"\n" for line in _cluster(self, node, classes)))
        for phase, seconds in enumerate(PHASE_SECONDS):
            self.write_scenario(directory / f"phase-{phase}.yaml", seconds, self.growing)
            self.write_scenario(directory / f"several-{phase}.yaml", seconds, *self.several)
        self.write_placement(directory / "placement.yaml")

    def write_scenario(self, path: Path, phase_seconds: int, *growing: tuple[str, str]) -> None:
        """Write a scenario in which containers grow and the kubelet looks first after ``phase_seconds``.

        Growth begins at a multiple of the time between two looks, so the next look comes ``phase_seconds`` after that.
        """
        demands = []
        for pod in self.pods:
            containers: _Object = {}
            for each in running(pod):
                used = self.usage[key(pod), each["name"]]
                memory: object = used.memory_bytes
                if (key(pod), each["name"]) in growing:
                    memory = f"{used.memory_bytes} + {self.rate} per second at {self.begins_seconds}s"
                containers[each["name"]] = {"memory": memory, "inactiveFile": used.inactive_bytes}
            demands.append({"workload": f"{key(pod)}", "containers": containers})
        path.write_text(json.dumps(self._scenario("pods.yaml", demands, phase_seconds)))

    def write_placement(self, path: Path) -> None:
        """Write a scenario in which all pods arrive at once and use next to nothing."""
        demands = [
            {"workload": key(pod), "containers": {each["name"]: {"memory": "1Ki"} for each in running(pod)}}
            for pod in (*self.pods, *self.waiting)
        ]
        made = self._scenario("waiting.yaml", demands, 5)
        made["spec"]["duration"] = "4s"
        made["spec"]["nodes"][0]["system"] = {}
        path.write_text(json.dumps(made))

    def _scenario(self, manifests: str, workloads: Iterable[_Object], phase_seconds: int) -> _Object:
        node = {
            "name": NODE,
            "capacity": {"cpu": f"{self.cpu_milli}m", "memory": str(self.memory_bytes)},
            "kubelet": self.kubelet,
            "cgroupVersion": int(self.cgroup[1]),
            "loopPhase": f"{phase_seconds}s",
            "system": {"memory": str(self.system_bytes)},
        }
        return {
            "apiVersion": "podqos.dev/v1alpha1",
            "kind": "Scenario",
            "metadata": {"name": "drawn"},
            "spec": {
                "duration": f"{self.memory_bytes // self.rate + 60}s",
                "kubernetesVersion": self.version,
                "manifests": [manifests],
                "nodes": [node],
                "workloads": list(workloads),
            },
        }


LOOK_SECONDS = 10
"""How often the kubelet looks."""
PHASE_SECONDS = (0, 3, 6)
"""When the kubelet looks first, in the simulations of a setting."""


# ---- amounts ---------------------------------------------------------------------------------------------------------


def amount(text: str) -> int:
    """Return bytes, or thousandths of a core."""
    for suffix, factor in (("Ki", 1 << 10), ("Mi", MI), ("Gi", GI)):
        if text.endswith(suffix):
            return int(float(text.removesuffix(suffix)) * factor)
    return int(text.removesuffix("m"))


def share_of(text: str, capacity: int) -> int:
    """Return a threshold in bytes: of a percentage the kubelet makes a 32-bit float, and truncates the product."""
    if not text.endswith("%"):
        return amount(text)
    (fraction,) = struct.unpack("f", struct.pack("f", float(text.removesuffix("%")) / 100))
    return int(capacity * fraction)


def key(pod: _Object) -> str:
    """Return ``namespace/name``."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def running(pod: _Object) -> list[_Object]:
    """Return the containers that run side by side."""
    init = pod["spec"].get("initContainers", ())
    return [*(each for each in init if each.get("restartPolicy") == "Always"), *pod["spec"]["containers"]]


def assumed_bytes(container: _Object) -> int:
    """Return what a container uses that uses what it may: its limit, or twice its request, or 64Mi."""
    resources = container.get("resources", {})
    limit, request = (resources.get(kind, {}).get("memory") for kind in ("limits", "requests"))
    return amount(limit) if limit else 2 * amount(request) if request else 64 * MI


# ---- files -----------------------------------------------------------------------------------------------------------


def _write(path: Path, objects: Iterable[_Object]) -> None:
    path.write_text("---\n".join(f"{json.dumps(each)}\n" for each in objects))


def _node(setting: Setting) -> _Object:
    capacity = {"cpu": f"{setting.cpu_milli}m", "memory": str(setting.memory_bytes), "pods": "110"}
    allocatable = {
        "cpu": f"{setting.allocatable('cpu')}m",
        "memory": str(setting.allocatable("memory")),
        "pods": "110",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def stored(pod: _Object) -> _Object:
    """Return a pod as the API server has it once it runs."""
    made = json.loads(json.dumps(pod))
    name = made["spec"].get("priorityClassName", "")
    made["metadata"]["uid"] = f"uid-{key(pod)}"
    made["spec"]["priority"] = (PRIORITIES | CRITICAL).get(name, 0)
    for each in (*made["spec"]["containers"], *made["spec"].get("initContainers", ())):
        resources = each.setdefault("resources", {})
        if "limits" in resources:
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    made["status"] = {"phase": "Running" if "nodeName" in made["spec"] else "Pending"}
    return made


def _cluster(setting: Setting, node: _Object, classes: list[_Object]) -> list[bytes]:
    """Return a snapshot of a cluster with this one node, line by line."""

    def listed(kind: str, version: str, items: Iterable[_Object]) -> bytes:
        return json.dumps({"kind": kind, "apiVersion": version, "items": list(items)}).encode()

    pods = [*setting.pods, *setting.waiting]
    made = [
        listed("NodeList", "v1", [node]),
        listed("PriorityClassList", "scheduling.k8s.io/v1", classes),
        listed("PodList", "v1", map(stored, pods)),
        msgspec.json.encode(NodeSummary(NODE, msgspec.Raw(json.dumps(_summary(setting)).encode()))),
        msgspec.json.encode(NodeKubelet(NODE, msgspec.Raw(json.dumps({"kubeletconfig": setting.kubelet}).encode()))),
    ]
    header = Header(taken_at="2026-11-15T00:00:00Z", server_version=f"v{setting.version}.0")
    return [msgspec.json.encode(header), *made, msgspec.json.encode(End(len(made) + 1))]


def _used(setting: Setting, pod: _Object, container: _Object) -> Used:
    """Return what a container uses, by the table or by what is assumed without a row."""
    if key(pod) in setting.measured:
        return setting.usage[key(pod), container["name"]]
    resources = container.get("resources", {})
    requested = resources.get("requests", {}).get("memory") or resources.get("limits", {}).get("memory")
    return Used((amount(requested) if requested else 0) or NOMINAL_BYTES, 0)


def _summary(setting: Setting) -> _Object:
    """Return what the kubelet measures; of pods that the table of usage leaves out, what is assumed without a row.

    A pod that a kubelet itself has no figures of is evicted first, so that none is left out here.
    """
    at = "2026-11-15T00:00:00Z"

    def memory(used: Used) -> _Object:
        return {
            "time": at,
            "workingSetBytes": used.memory_bytes,
            "usageBytes": used.memory_bytes + used.inactive_bytes,
            "rssBytes": used.memory_bytes,
        }

    pods = []
    used = inactive = 0
    for pod in setting.pods:
        own = {each["name"]: _used(setting, pod, each) for each in running(pod)}
        whole = Used(sum(each[0] for each in own.values()), sum(each[1] for each in own.values()))
        used, inactive = used + whole.memory_bytes, inactive + whole.inactive_bytes
        pods.append(
            {
                "podRef": {
                    "name": pod["metadata"]["name"],
                    "namespace": pod["metadata"]["namespace"],
                    "uid": f"uid-{key(pod)}",
                },
                "startTime": at,
                "containers": [{"name": name, "memory": memory(used)} for name, used in own.items()],
                "memory": memory(whole),
            }
        )
    whole = Used(used + setting.system_bytes, inactive)
    limit = setting.pods_limit_bytes // PAGE_BYTES * PAGE_BYTES
    node = {
        "nodeName": NODE,
        "memory": {**memory(whole), "availableBytes": setting.memory_bytes - whole.memory_bytes},
        "systemContainers": [
            {
                "name": "pods",
                "memory": {**memory(Used(used, inactive)), "availableBytes": limit - used},
            }
        ],
    }
    return {"node": node, "pods": pods}


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def drawn(seed: int) -> Setting:
    """Draw a setting."""
    chance = random.Random(seed)  # noqa: S311
    version = NEWEST if chance.random() < 0.7 else chance.choice(OLD_VERSIONS)
    memory_bytes = chance.choice(
        (GI, 2 * GI, 4 * GI, 8 * GI, 8033705984, 16 * GI, 64 * GI, 64 * GI, 128 * GI, 512 * GI)
    )
    cpu_milli = chance.choice((2000, 4000, 8000, 64000))
    kubelet = _kubelet(chance, memory_bytes)
    blank = Setting(seed, version, "v2", memory_bytes, cpu_milli, 0, kubelet, (), (), {}, frozenset(), ("", ""), 1)
    allocatable = blank.allocatable("memory")
    reserved = sum(amount(kubelet.get(name, {}).get("memory", "0")) for name in ("kubeReserved", "systemReserved"))
    system_bytes = chance.choice(
        (0, memory_bytes // 50, reserved * 9 // 10, reserved, reserved + memory_bytes // 50, memory_bytes // 8)
    )
    # Together the pods use from a tenth to nearly all that there is for them.
    room = min(memory_bytes - system_bytes, memory_bytes - reserved) * chance.choice((0.1, 0.5, 0.8, 0.93))
    count = chance.choice((1, 2, 3, 4, 6, 9))
    names = [f"{chance.choice('abcxyz')}{number}" for number in range(count)]
    weights = [chance.uniform(0.05, 1) for _ in names]
    pods: list[_Object] = []
    usage: dict[tuple[str, str], Used] = {}
    left = allocatable
    for name, weight in zip(names, weights, strict=True):
        share = int(room * weight / sum(weights))
        pod, used = _pod(chance, name, share, min(left, allocatable // 2), version)
        left -= _requested(pod)
        pods.append(pod)
        usage |= {(key(pod), container): each for container, each in used.items()}
    some = chance.random() < 0.1 and count > 1
    measured = frozenset(key(each) for each in (pods[: count // 2] if some else pods))
    able = [each for each in usage if each[0] in measured]
    growing = chance.choice([each for each in able if _limit(pods, each) is None] or able)
    return blank._replace(
        cgroup="v1" if chance.random() < 0.1 else "v2",
        system_bytes=system_bytes,
        pods=tuple(pods),
        waiting=tuple(
            _waiting(chance, f"w{number}", left, allocatable) for number in range(chance.choice((0, 0, 1, 2)))
        ),
        usage=usage,
        measured=measured,
        growing=growing,
        rate=_rate(chance, memory_bytes - system_bytes - sum(each.memory_bytes for each in usage.values())),
    )


def _rate(chance: random.Random, free_bytes: int) -> int:
    """Return a growth that takes from half a second to minutes: the kubelet looks every ten seconds."""
    return max(1, int(free_bytes / 10 ** chance.uniform(-0.3, 2.2)) // MI) * MI


def _kubelet(chance: random.Random, memory_bytes: int) -> _Object:
    def part(most: float) -> str:
        share = chance.uniform(0.001, most)
        return chance.choice((f"{int(memory_bytes * share) // MI}Mi", str(int(memory_bytes * share))))

    def threshold(most: float) -> str:
        return chance.choice((part(most), f"{chance.choice((1, 2, 5, 10, 12.5))}%"))

    made: _Object = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    kind = chance.random()
    if kind < 0.1:
        made["evictionHard"] = {}
    elif kind < 0.75:
        made["evictionHard"] = {"memory.available": chance.choice(("100Mi", "10Mi", "500Mi", threshold(0.2)))}
        if chance.random() < 0.5:
            made["evictionHard"]["nodefs.available"] = "10%"
    if chance.random() < 0.3:
        made["evictionSoft"] = {"memory.available": threshold(0.3)}
        made["evictionSoftGracePeriod"] = {"memory.available": chance.choice(("5s", "30s", "2m"))}
    if chance.random() < 0.2:
        made["evictionMinimumReclaim"] = {"memory.available": "64Mi"}
    for name, most in (("kubeReserved", 0.15), ("systemReserved", 0.1)):
        if chance.random() < 0.5:
            made[name] = {"memory": part(most), **({"cpu": "250m"} if chance.random() < 0.5 else {})}
    if chance.random() < 0.3:
        made["enforceNodeAllocatable"] = chance.choice((["pods"], [], ["none"]))
    if chance.random() < 0.1:
        made["kernelMemcgNotification"] = True
    return made


def _pod(chance: random.Random, name: str, share: int, most: int, version: str) -> tuple[_Object, dict[str, Used]]:
    """Return a pod that uses this much, and what its containers use; it requests no more than ``most``."""
    is_new = version == NEWEST
    spec: _Object = {"nodeName": NODE}
    metadata: _Object = {"name": name, "namespace": chance.choice(("default", "default", "shop"))}
    kind = chance.random()
    if kind < 0.3:
        spec["priorityClassName"] = chance.choice(tuple(PRIORITIES))
    elif kind < 0.42:
        spec["priorityClassName"] = chance.choice(tuple(CRITICAL))
        metadata["namespace"] = "kube-system"
    elif kind < 0.47:
        metadata["annotations"] = {"kubernetes.io/config.source": "file"}
    count = chance.choice((1, 1, 1, 2, 3))
    form = chance.choice(("none", "request", "request", "limit", "equal", "both", "cpu"))
    containers, used = [], {}
    for number in range(count):
        inactive = int(share / count * chance.choice((0, 0, 0, 0.1, 0.4)))
        uses = max(MI, share // count - inactive)
        used[f"c{number}"] = Used(uses, inactive)
        containers.append(
            {"name": f"c{number}", "image": "i", **_resources(chance, form, uses + inactive, most // count)}
        )
    if is_new and count > 1 and chance.random() < 0.2:
        spec["initContainers"] = [{**containers.pop(), "restartPolicy": "Always"}]
    spec["containers"] = containers
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, used


def _resources(chance: random.Random, form: str, uses: int, most: int) -> _Object:
    """Return the resources of a container that uses so much and may request no more than ``most``."""
    request = min(int(uses * chance.choice((0.1, 0.5, 0.9, 1, 1.2))), most)
    limit = int(uses * chance.choice((1.02, 1.3, 2, 8)))
    cpu = f"{chance.choice((1, 10, 25))}m"
    if form == "none" or (form in {"limit", "equal"} and limit > most) or request <= 0:
        return {}
    requests, limits = {"cpu": cpu, "memory": str(request)}, {"cpu": "50m", "memory": str(max(limit, request))}
    made = {
        "request": {"requests": requests},
        "cpu": {"requests": {"cpu": cpu}},
        "limit": {"limits": limits},
        "equal": {"requests": limits, "limits": limits},
        "both": {"requests": requests, "limits": limits},
    }
    return {"resources": made[form]}


def _waiting(chance: random.Random, name: str, left: int, allocatable: int) -> _Object:
    """Return a pod without a node, which may not fit."""
    shares = (left * share for share in (0.3, 0.6, 0.999, 1, 1.001, 1.5))
    request = max(1, int(chance.choice((*shares, allocatable + 1))))
    resources = (
        {} if chance.random() < 0.2 else {"requests": {"cpu": chance.choice(("100m", "1900m")), "memory": str(request)}}
    )
    spec: _Object = {"containers": [{"name": "c0", "image": "i", "resources": resources}]}
    if chance.random() < 0.2:
        spec["priorityClassName"] = "high"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _requested(pod: _Object) -> int:
    found = 0
    for each in running(pod):
        resources = each.get("resources", {})
        found += amount({**resources.get("limits", {}), **resources.get("requests", {})}.get("memory", "0"))
    return found


def _limit(pods: Iterable[_Object], of: tuple[str, str]) -> str | None:
    for pod in pods:
        for each in running(pod):
            if (key(pod), each["name"]) == of:
                found: str | None = each.get("resources", {}).get("limits", {}).get("memory")
                return found
    return None
