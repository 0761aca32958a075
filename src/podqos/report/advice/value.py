"""What ``podqos advise`` says, as a value: the documented JSON shape, from which all other outputs follow.

The advice itself comes from ``advice``; here it is gathered and worded. The shape is stable: fields are added, never
renamed or removed, and ``docs/schema/advise.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from podqos.advice.sizing.applying import ContainerAdvice, PodAdvice
from podqos.advice.sizing.matrix import Because, Description, Recommendation, Tier
from podqos.advice.sizing.node_settings import NodeSettings, Setting, kubelet_configuration_of
from podqos.advice.sizing.sizing import Doubt, Percentiles, Risk
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.report.survival.drift import OvertakingReport, StandingReport, WorkloadDriftReport
from podqos.wording import mebibytes


class ContainerAdviceReport(Struct, frozen=True, rename="camel"):
    """What one container should ask for."""

    container: str
    requests_before: dict[str, str]
    limits_before: dict[str, str]
    requests: dict[str, str]
    limits: dict[str, str]
    memory_bytes: Percentiles | None
    """What was measured; null where nothing was."""
    cpu_milli: Percentiles | None
    risk: Risk
    """What the sizes leave to chance, counted from the samples."""
    doubts: tuple[Doubt, ...]
    needs_choice: bool
    """Whether amounts are missing that nobody can know from here."""


class WorkloadAdviceReport(Struct, frozen=True, rename="camel"):
    """What one workload should have."""

    workload: str
    source: str
    description: Description | None
    """Null where nobody described it: then only sizes are advised."""
    like: str
    """The service of the matrix in the same case."""
    because: tuple[Because, ...]
    reasons: tuple[str, ...]
    wanted_class: QOSClass
    before: StandingReport | None
    after: StandingReport | None
    priority_class: str | None
    """Null where the priority stays."""
    containers: tuple[ContainerAdviceReport, ...]
    moved_ahead: tuple[OvertakingReport, ...]
    """Where it would go first, and does not now."""
    moved_back: tuple[OvertakingReport, ...]
    refusal: str
    """Why the API server would not store the advised pod; empty where it would."""


class PriorityClassReport(Struct, frozen=True, rename="camel"):
    """A priority class that has to be created."""

    name: str
    value: int
    description: str


class NodeAdviceReport(Struct, frozen=True, rename="camel"):
    """What a node's kubelet should be told."""

    memory_bytes: int
    cpu_milli: int
    growth_bytes_per_second: int
    """What the hard threshold holds against."""
    hard_wins: float
    """The probability that it acts before the kernel, at that rate."""
    kernel_keeps_bytes: int
    hard_bytes: int
    soft_bytes: int
    soft_growth_bytes_per_second: int
    reasons: tuple[str, ...]
    configuration: dict[str, Setting]
    """The KubeletConfiguration."""


class AdviceReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos advise -o json``."""

    kubernetes_version: str
    node_memory_bytes: int
    workloads: tuple[WorkloadAdviceReport, ...] = ()
    priority_classes: tuple[PriorityClassReport, ...] = ()
    node: NodeAdviceReport | None = None
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Advice"


_BECAUSE = {
    Because.SOMEBODY_WAITS: "somebody waits for it: Guaranteed, so that it does not live on what others leave",
    Because.NOBODY_WAITS: "nobody waits for it: Burstable, it may use what is left over and give it back",
    Because.NOBODY_MISSES_IT: "nobody waits for it and a restart costs nothing: BestEffort, it goes first",
    Because.KEEPS_STATE: "it keeps state that cannot be made again, which BestEffort would lose first",
    Because.SLOW_START: "it is slow to start, which is a cost of every restart",
    Because.COSTLY_RESTART: "a restart is costly: it outlives others of its kind",
    Because.CHEAP_RESTART: "a restart is cheap: it makes room for what is costlier",
    Because.LIMITS_BOUND_BURSTS: "it bursts: limits keep its bursts away from its neighbours",
    Because.NEAREST_ROW: "the matrix has no such case; this is the nearest one on the safe side",
}

DOUBTS = {
    Doubt.FEW_SAMPLES: "fewer than 100 samples: what is rare has hardly been seen",
    Doubt.NEED_UNKNOWN: "it was OOM-killed: it needs more than was measured, nobody knows how much; repeat this later",
    Doubt.EXPECTED_ONLY: "nothing was measured: the amounts are what somebody expects",
    Doubt.NO_CPU_SAMPLES: "no samples of cpu: its amounts stay as they are",
    Doubt.NO_MEMORY_SAMPLES: "no samples of memory: its amounts stay as they are",
}


def workload_report(
    name: str,
    advice: PodAdvice,
    drift: WorkloadDriftReport,
    *,
    description: Description | None,
    recommendation: Recommendation | None,
    priority_class: str | None,
    refusal: str = "",
) -> WorkloadAdviceReport:
    """Render the advice about one workload."""
    because = () if recommendation is None else recommendation.because
    return WorkloadAdviceReport(
        workload=name,
        source=drift.source,
        description=description,
        like="" if recommendation is None else recommendation.like,
        because=because,
        reasons=tuple(_BECAUSE[each] for each in because),
        wanted_class=advice.qos_class,
        before=drift.before,
        after=drift.after,
        priority_class=priority_class,
        containers=tuple(_container(each, advice) for each in advice.containers),
        moved_ahead=drift.moved_ahead,
        moved_back=drift.moved_back,
        refusal=refusal,
    )


def priority_class_report(tier: Tier) -> PriorityClassReport:
    """Render a priority class."""
    return PriorityClassReport(tier.name, tier.value, tier.description)


def node_report(settings: NodeSettings) -> NodeAdviceReport:
    """Render the settings of a node."""
    needs = settings.needs
    chance = float(settings.hard_wins)
    return NodeAdviceReport(
        memory_bytes=needs.memory_bytes,
        cpu_milli=needs.cpu_milli,
        growth_bytes_per_second=needs.growth,
        hard_wins=chance,
        kernel_keeps_bytes=settings.kernel_keeps_bytes,
        hard_bytes=settings.hard_bytes,
        soft_bytes=settings.soft_bytes,
        soft_growth_bytes_per_second=settings.soft_growth_bytes_per_second,
        reasons=tuple(_node_reasons(settings)),
        configuration=kubelet_configuration_of(settings),
    )


def _node_reasons(settings: NodeSettings) -> Iterator[str]:
    needs = settings.needs
    kept, hard = mebibytes(settings.kernel_keeps_bytes), mebibytes(settings.hard_bytes)
    chance = f"the kubelet acts first with a probability of {float(settings.hard_wins):.0%}"
    yield f"evictionHard: the kernel kills at {kept}; with {hard} {chance} while memory grows by {_rate(needs.growth)}"
    leak = _rate(settings.soft_growth_bytes_per_second)
    grace = f"after {needs.soft_grace_seconds} s of grace"
    yield f"evictionSoft: acts, {grace}, before the hard threshold does, while memory grows by no more than {leak}"
    yield "kubeReserved: by the size of the node, less per unit the larger it is"
    system = "what was measured" if needs.system_memory_bytes is not None else "a usual amount for the system"
    yield f"systemReserved: {system}, and the soft thresholds, so that pods within their allocatable never meet them"
    yield "evictionHard names every signal, because naming one drops the defaults of the others"


def _rate(bytes_per_second: int) -> str:
    return f"{mebibytes(bytes_per_second)}/s"


def _container(advice: ContainerAdvice, pod: PodAdvice) -> ContainerAdviceReport:
    sizing = advice.sizing
    return ContainerAdviceReport(
        container=advice.name,
        requests_before=_texts(advice.before.requests),
        limits_before=_texts(advice.before.limits),
        requests=_texts(sizing.resources.requests),
        limits=_texts(sizing.resources.limits),
        memory_bytes=sizing.memory,
        cpu_milli=sizing.cpu,
        risk=sizing.risk,
        doubts=sizing.doubts,
        needs_choice=advice.name in pod.unsized,
    )


def _texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
