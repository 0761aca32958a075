"""What it takes to bring advice to running pods: new pods or a resize in place, spare room, and a way back.

How many pods are added or missing is what the controllers' rules say (``controllers``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.controllers.daemon_sets import DaemonSetSpec
from podqos.controllers.deployments import DeploymentSpec
from podqos.controllers.rollout_spec import RolloutReader
from podqos.controllers.stateful_sets import StatefulSetSpec
from podqos.manifest.plain import Plain
from podqos.survival.drift.resizing import ResizeCost


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
    match RolloutReader(spec).of_kind(kind):
        case DeploymentSpec(recreate=True):
            return RolloutKind.RECREATE, Share(0, replicas)
        case StatefulSetSpec(on_delete=True) | DaemonSetSpec(on_delete=True):
            return RolloutKind.ON_DELETE, Share(0, 0)
        case DeploymentSpec() as deployment:
            return RolloutKind.ROLLING, Share(*replace(deployment, replicas=replicas).fenceposts)
        case DaemonSetSpec() as daemon_set:
            surge, unavailable = daemon_set.counts(replicas)
            return RolloutKind.ROLLING, Share(surge, 0 if surge else unavailable)
        case _:
            return RolloutKind.ROLLING, Share(0, 1)
