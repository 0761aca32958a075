"""``simulate DIR --growing POD``: pods of manifests on their node, with what they use and what grows, as a scenario.

They are the pods that ``rank`` and ``forecast`` are about: each under its own name, on the node, at once. One that a
controller made is replaced when it is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from podqos.model.node import Node
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.model.snapshot import ContainerUsage
from podqos.objects.objects import Objects
from podqos.orders.growing import OF_SYSTEM, Growth
from podqos.questions.forecast import growths_of
from podqos.questions.node import NodeState
from podqos.runs.scenarios import container_demand, kubelet_part, memory_text
from podqos.sim.scenario_format.writing import (
    Part,
    manifests_text,
    pod_manifest,
    scenario_text,
    seconds_text,
)

_CORES = 16
"""Of a node that no Node object describes, as ``podqos cpu`` assumes."""
_NAME = "node"
_STAYS = ("DaemonSet", "Node")
_NOT_REPLACED = ("", "Pod", "Job", "CronJob")


def manifest_scenario(
    objects: Objects,
    state: NodeState,
    name: str,
    *,
    growing: Mapping[str, int | None],
    rate: int,
    duration_us: int,
) -> dict[str, str]:
    """Return the files of a scenario by path, itself first; ``state`` is what is known of the node and its pods.

    ``growing`` names pods, ``pod:container``, workloads or ``system``, each with its own rate in bytes per second, or
    None for ``rate``.
    """
    state.check_fits()
    found = growths_of(state, growing) if growing else []
    rates = {growth: own or rate for growth, own in found}
    pods = [entry for entry in state.snapshot.pods if entry.containers]
    parts: list[Part] = []
    for entry in pods:
        kind, _ = state.owners.get(entry.pod.metadata.uid, ("", ""))
        demands = {
            usage.name: _demand(usage, rates.get(Growth(entry.pod.metadata.uid, usage.name)))
            for usage in entry.containers
        }
        parts.append(
            {
                "workload": f"Pod/{entry.pod.key}",
                "nodes": [state.snapshot.node.name or _NAME],
                **({} if kind in _NOT_REPLACED else {"recreate": True}),
                "containers": {container: demand for container, demand in demands.items() if demand},
            }
        )
    manifest = f"{name}/pods.yaml"
    spec: Part = {
        "duration": seconds_text(duration_us),
        "manifests": [manifest],
        "nodes": [_node(objects, state, rates.get(OF_SYSTEM))],
        "workloads": parts,
    }
    manifests = (
        pod_manifest(
            entry.pod,
            entry.pod.metadata,
            keeps_node=state.owners.get(entry.pod.metadata.uid, ("", ""))[0] in _STAYS,
        )
        for entry in pods
    )
    return {f"{name}.yaml": scenario_text(name, spec), manifest: manifests_text(manifests)}


def _demand(usage: ContainerUsage, rate: int | None) -> Part:
    demand = container_demand(usage)
    if usage.processes > 1:
        demand["processes"] = usage.processes
    if rate is not None:
        demand["memory"] = _growing(str(demand.get("memory", "0")), rate)
    return demand


def _growing(held: str, rate: int) -> str:
    """Return memory that grows from what is held now; a container that is started again holds that and grows anew."""
    return f"{held} + {Quantity.of_units(rate, 'BinarySI')} per second"


def _node(objects: Objects, state: NodeState, system_rate: int | None) -> Part:
    machine = state.snapshot.node
    node = next((node for node in objects.of(Node) if machine.name in {"", node.name}), None)
    cores = None if node is None else node.status.capacity.get(CPU)
    made: Part = {
        "name": machine.name or _NAME,
        "capacity": {CPU: str(cores or _CORES), MEMORY: memory_text(machine.memory_bytes)},
    }
    if node is not None and node.metadata.labels:
        made["labels"] = dict(node.metadata.labels)
    held = memory_text(machine.system_bytes)
    if system_rate is not None:
        made["system"] = {"memory": _growing(held, system_rate)}
    elif machine.system_bytes:
        made["system"] = {"memory": held}
    if state.known_kubelet is not None:
        made["kubelet"] = kubelet_part(state.kubelet.config)
    return {name: part for name, part in made.items() if part != {}}
