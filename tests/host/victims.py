"""Random pods of a real node, one of which grows until the kernel kills: the predicted and the actual victim."""

from __future__ import annotations

import random
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from host.nodes import MI, PYTHON, NodeStage, pod_document
from podqos.orders.growing import Growth, grown
from podqos.orders.memory import OOMDomain, container_processes
from podqos.orders.orders import kernel_order
from podqos.orders.usage import from_summary, node_of
from podqos.qos.cgroup_paths import node_path

MEMORY_BYTES = 256 * MI
HELD_MIB = 195
GUARANTEED_MIB = 60
"""More than most, and yet the last to be killed, where scores can be negative."""
MARGIN_BYTES = 2 * MI
"""Page tables and what a process maps of its own files are in no statistics: closer ones are not told apart."""

# Takes so many MiB, says so; once there is a file of that name, grows without end.
GROWER = (
    "import os, sys, time\nkept = [bytearray(b'x') * (int(sys.argv[1]) << 20)]\nprint('grown', flush=True)\n"
    "while not os.path.exists(sys.argv[2]): time.sleep(0.02)\n"
    "while True: kept.append(bytearray(b'x') * (1 << 20)); time.sleep(0.001)"
)


class Verdict(NamedTuple):
    """The actual victim, and the predicted one."""

    killed: str
    grower: str
    foretold: tuple[str, ...]
    """The first to go, and those too close behind it to be told apart."""
    is_container_told: bool
    """Whether the kernel's kill is in the journal with the container it hit."""

    @property
    def agrees(self) -> bool:
        """Whether it came as foretold."""
        return self.killed in self.foretold


def trial(stage: NodeStage, number: int, chance: random.Random) -> Verdict:
    """Run one trial on a node without a fast path, and leave the node empty."""
    go = stage.folder / f"go-{number}"
    names = [f"trial-{number}-{index}" for index in range(chance.randrange(3, 6))]
    # Together they leave little: who is killed is then a matter of sizes and scores, and not only of who grows.
    has_guaranteed = stage.node.capabilities.can_lower_oom_score
    left_mib = HELD_MIB - (GUARANTEED_MIB if has_guaranteed else 0)
    weights = [chance.uniform(1, 6) for _ in names]
    for name, weight in zip(names, weights, strict=True):
        held_mib = int(weight / sum(weights) * left_mib)
        resources = {"requests": {"memory": f"{chance.randrange(4, 34)}Mi", "cpu": "10m"}}
        stage.put(_pod(name, held_mib, go, resources if chance.random() < 0.7 else {}))
    if has_guaranteed:
        fixed = {"memory": "80Mi", "cpu": "100m"}
        stage.put(_pod("guaranteed", GUARANTEED_MIB, go, {"requests": fixed, "limits": fixed}))
        names.append("guaranteed")
    stage.until(lambda: all("grown" in stage.log(name) for name in names))
    grower = chance.choice([name for name in names if name != "guaranteed"])
    before = len(stage.entries("OOMKilled"))
    order = _foretold(stage, grower)
    # Only the pod that is to grow sees the file: each looks for one of its own.
    go.with_name(f"{go.name}-{grower}").touch()
    stage.until(lambda: len(stage.entries("OOMKilled")) > before)
    killed = stage.entries("OOMKilled")[before]
    for name in names:
        (stage.manifests / f"{name}.json").unlink()
    stage.until(lambda: not stage.node.world.pods)
    return Verdict(
        str(killed.pod).removeprefix("default/"),
        grower,
        _too_close_to_call(order),
        killed.container == "main",
    )


def _too_close_to_call(order: tuple) -> tuple[str, ...]:
    """Return the first of the kernel's order and all that follow it by less than the margin."""
    behind = accumulate((entry.margin_bytes or 0 for entry in order[:-1]), initial=0)
    return tuple(entry.pod.metadata.name for entry, by in zip(order, behind, strict=True) if by < MARGIN_BYTES)


def _pod(name: str, held_mib: int, go: Path, resources: dict[str, object]) -> dict[str, object]:
    words = (*PYTHON, GROWER, str(held_mib), f"{go}-{name}")
    return pod_document(name, *words, spec={"restartPolicy": "Never"}, resources=resources)


def _foretold(stage: NodeStage, grower: str) -> tuple:
    """Return the kernel's order when the grower has taken what is left, by the figures of now."""
    node = stage.node
    summary = node.world.summary()
    usage = node_of(summary)
    assert usage is not None
    pods = [record.pod for record in node.driver.state.pods.values()]
    snapshot = from_summary(pods, summary, usage)
    (uid,) = (pod.metadata.uid for pod in pods if pod.metadata.name == grower)
    left = (
        MEMORY_BYTES
        - usage.system_bytes
        - sum(container.anon_bytes for entry in snapshot.pods for container in entry.containers)
    )
    settings = node.config.cgroups
    after = grown(snapshot, Growth(uid, "main"), left)
    return kernel_order(container_processes(after, settings), OOMDomain(MEMORY_BYTES, node_path(settings)))
