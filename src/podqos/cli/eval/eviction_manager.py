"""``podqos eval eviction_manager``: the eviction manager stepped through time."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from podqos.cli.eval.resources import pod_of
from podqos.cli.eval.thresholds import configured_thresholds
from podqos.eviction.admission import admit
from podqos.eviction.commands import CleanUpNode, Command, EvictPod
from podqos.eviction.manager import ManagerConfig, ManagerState, Pass, after_clean_up, synchronize
from podqos.eviction.messages import PHASE, REASON
from podqos.eviction.observation import observe
from podqos.eviction.signals import CleanUp, layout_of
from podqos.eviction.thresholds import Threshold
from podqos.model.pod import Pod
from podqos.model.stats import Summary


class ManagerStep(Struct, frozen=True, rename="camel"):
    """One pass of the manager: the clock, the pods, and what the node shows before and after each clean-up."""

    at_seconds: float
    active_pods: tuple[str, ...] | None
    summary: Summary
    summary_after_container_gc: Summary | None = msgspec.field(default=None, name="summaryAfterContainerGC")
    summary_after_image_gc: Summary | None = msgspec.field(default=None, name="summaryAfterImageGC")


class Setup(Struct, frozen=True, rename="camel"):
    """The settings of a scenario that are not thresholds."""

    eviction_pressure_transition_period_seconds: float = 0
    eviction_max_pod_grace_period_seconds: int = 0
    dedicated_image_fs: bool = False
    split_container_fs: bool = False
    local_storage_capacity_isolation: bool = True


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``eviction_manager``."""
    config = _config(msgspec.convert(input["config"], dict[str, object]))
    pods = {pod.metadata.name: pod for pod in map(pod_of, msgspec.convert(input["pods"], list[object]))}
    probes = {name: pod_of(pod) for name, pod in msgspec.convert(input["admissionProbes"], dict[str, object]).items()}
    state = ManagerState()
    answers = []
    for step in msgspec.convert(input["steps"], list[ManagerStep]):
        result, commands = _run(config, state, step, [pods[name] for name in step.active_pods or ()])
        state = result.state
        answers.append(
            {
                "nodeConditions": list(state.conditions),
                "thresholdsMet": sorted(map(_named, state.thresholds_met)),
                "reclaimAttempted": result.reclaiming.resource if result.reclaiming is not None else "",
                **_actions(commands),
                "admission": {name: asdict(admit(pod, state.conditions)) for name, pod in probes.items()},
            }
        )
    return {"steps": answers}


def _config(fields: dict[str, object]) -> ManagerConfig:
    setup = msgspec.convert(fields, Setup)
    return ManagerConfig(
        thresholds=configured_thresholds(fields),
        pressure_transition_period_ns=int(setup.eviction_pressure_transition_period_seconds * 10**9),
        max_pod_grace_seconds=setup.eviction_max_pod_grace_period_seconds,
        layout=layout_of(dedicated_image_fs=setup.dedicated_image_fs, split_container_fs=setup.split_container_fs),
        local_storage_capacity_isolation=setup.local_storage_capacity_isolation,
    )


def _run(config: ManagerConfig, state: ManagerState, step: ManagerStep, pods: list[Pod]) -> tuple[Pass, list[Command]]:
    """Run both phases of a pass, showing the manager what the clean-up left."""
    result = synchronize(
        config, state, now_us=round(step.at_seconds * 10**6), observation=observe(step.summary), pods=pods
    )
    commands = list(result.commands)
    if result.awaiting is not None:
        summary = step.summary
        for command in commands:
            if isinstance(command, CleanUpNode):
                after = {
                    CleanUp.CONTAINERS: step.summary_after_container_gc,
                    CleanUp.IMAGES: step.summary_after_image_gc,
                }
                summary = after[command.what] or summary
        result = after_clean_up(config, result, observe(summary))
        commands += result.commands
    return result, commands


def _named(threshold: Threshold) -> str:
    return f"{threshold.signal}:{'hard' if threshold.is_hard else 'soft'}"


def _actions(commands: Iterable[Command]) -> dict[str, object]:
    cleaned = {command.what for command in commands if isinstance(command, CleanUpNode)}
    return {
        "containerGCCalled": CleanUp.CONTAINERS in cleaned,
        "imageGCCalled": CleanUp.IMAGES in cleaned,
        "evictions": [_eviction(command) for command in commands if isinstance(command, EvictPod)],
    }


def _eviction(command: EvictPod) -> dict[str, object]:
    return {
        "pod": command.pod.metadata.name,
        "gracePeriodSeconds": command.grace_period_seconds,
        "phase": PHASE,
        "reason": REASON,
        "message": command.message,
        "eventAnnotations": command.annotations,
        "podCondition": command.condition and asdict(command.condition),
    }
