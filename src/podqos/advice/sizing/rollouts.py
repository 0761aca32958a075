"""What it takes to bring advice to running pods: new pods or a resize in place, spare room, and a way back.

Sources: Kubernetes v1.36 pkg/controller/deployment/util/deployment_util.go (ResolveFenceposts: surge is rounded up,
what may be missing down, and not both are zero), pkg/controller/daemon/util/daemonset_util.go,
pkg/controller/statefulset.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from podqos.manifest.plain import Plain
from podqos.survival.drift.resizing import ResizeCost

_QUARTER = "25%"


class RolloutKind(StrEnum):
    """How a controller brings a new template to its pods."""

    ROLLING = "Rolling"
    """A few at a time."""
    RECREATE = "Recreate"
    """All old pods end before the first new one starts."""
    ON_DELETE = "OnDelete"
    """Only as somebody deletes them."""
    NEXT_RUN = "NextRun"
    """Of a Job or CronJob: what runs goes on as it is."""
    REPLACED = "Replaced"
    """A pod without a controller: it has to be deleted and created again."""
    OTHER = "Other"
    """As the controller of a custom resource does it, which is not known here."""


class Rollout(Struct, frozen=True, rename="camel"):
    """What bringing the advice to one workload takes."""

    kind: RolloutKind
    resize: ResizeCost | None
    """What a resize of running pods in place takes; null where no resources change."""
    surge: int = 0
    """Pods that there are in addition meanwhile."""
    unavailable: int = 0
    """Pods that may be missing meanwhile."""
    surge_fits: bool | None = None
    """Whether the additional pods find a node beside the old ones; null where it was not tried."""
    turn_fits: bool | None = None
    """Where they do not: whether a new pod finds a node once an old one has gone."""
    budgets: tuple[str, ...] = ()
    """PodDisruptionBudgets that cover its pods."""
    undo: str = ""
    """How to go back."""
    text: str = ""
    """The same in words."""


class StepKind(StrEnum):
    """A step on the way."""

    CREATE_CLASSES = "CreatePriorityClasses"
    ADD_NODES = "AddNodes"
    GROW = "Grow"
    """Workloads that ask for more."""
    SHRINK = "Shrink"
    """Workloads that ask for less."""
    WATCH = "Watch"
    REMOVE_NODES = "RemoveNodes"


class Step(Struct, frozen=True, rename="camel"):
    """One step, with the workloads, classes or pools it is about."""

    kind: StepKind
    names: tuple[str, ...]
    text: str


class Share(Struct, frozen=True):
    """Of how many pods more or fewer there may be during a rollout."""

    surge: int
    unavailable: int


def strategy_of(kind: str, value: Mapping[str, Plain], replicas: int) -> tuple[RolloutKind, Share]:
    """Return how an object of a kind, which says ``value``, brings a new template to its pods."""
    spec = value.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    if kind == "Pod":
        return RolloutKind.REPLACED, Share(0, 1)
    if kind in {"Job", "CronJob"}:
        return RolloutKind.NEXT_RUN, Share(0, 0)
    if kind in {"ReplicaSet", "ReplicationController"}:
        return RolloutKind.ON_DELETE, Share(0, 0)
    if kind not in {"Deployment", "StatefulSet", "DaemonSet"}:
        return RolloutKind.OTHER, Share(0, 0)
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    strategy = spec.get(field)
    strategy = strategy if isinstance(strategy, dict) else {}
    match strategy.get("type"):
        case "Recreate":
            return RolloutKind.RECREATE, Share(0, replicas)
        case "OnDelete":
            return RolloutKind.ON_DELETE, Share(0, 0)
    rolling = strategy.get("rollingUpdate")
    rolling = rolling if isinstance(rolling, dict) else {}
    if kind == "Deployment":
        surge = _scaled(rolling.get("maxSurge", _QUARTER), replicas, is_up=True)
        unavailable = _scaled(rolling.get("maxUnavailable", _QUARTER), replicas, is_up=False)
        return RolloutKind.ROLLING, Share(surge, unavailable if surge or unavailable else 1)
    surge = _scaled(rolling.get("maxSurge", 0), replicas, is_up=True) if kind == "DaemonSet" else 0
    unavailable = _scaled(rolling.get("maxUnavailable", 1), replicas, is_up=True)
    return RolloutKind.ROLLING, Share(surge, 0 if surge else max(1, unavailable))


def _scaled(amount: Plain, total: int, *, is_up: bool) -> int:
    """Return a number or a percentage of all pods; what is neither counts as a quarter."""
    if isinstance(amount, int):
        return max(0, amount)
    text = str(amount).removesuffix("%")
    percent = int(text) if text.isascii() and text.isdigit() else 25
    return -(-percent * total // 100) if is_up else percent * total // 100
