"""Usage that objects tell of: what a cluster measured at one moment, and what VerticalPodAutoscalers recommend.

Either is less than a history, and advice that rests on it is provisional.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from podqos.advice.sizing.matching import owner_of
from podqos.advice.sizing.samples import ContainerSamples
from podqos.errors import InputError
from podqos.manifest.times import read_time
from podqos.model.assumption import Assumption
from podqos.model.resources import CPU, MEMORY
from podqos.model.time_units import SECOND_US
from podqos.objects.autoscaling import Autoscalers
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.objects import Objects
from podqos.questions.advise import identity_of


def measured_samples(cluster: ClusterSnapshot) -> tuple[ContainerSamples, ...]:
    """Return one sample of every container: what its kubelet measured, else what metrics.k8s.io says.

    OOM kills are those that pods still tell of: the last end of each container.
    """
    sampled = {(samples.pod, samples.container): samples for samples in (*_of_metrics(cluster), *_of_kubelets(cluster))}
    killed: list[ContainerSamples] = []
    for pod in cluster.fated_pods:
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
            ends = (state.terminated for state in (status.state, status.last_state) if state is not None)
            if any(end is not None and end.reason == "OOMKilled" for end in ends):
                own = sampled.pop((pod.key, status.name), ContainerSamples(pod.key, status.name))
                where, node = own.where or cluster.source, own.node or pod.spec.node_name
                killed.append(replace(own, oom_kills=1, where=where, node=node))
    return (*sampled.values(), *killed)


def _of_metrics(cluster: ClusterSnapshot) -> Iterator[ContainerSamples]:
    for key, pod in cluster.pod_metrics.items():
        try:
            time_us = read_time(pod.timestamp)[0] if pod.timestamp else None
        except InputError:
            time_us = None
        for container in pod.containers:
            memory, cpu = container.usage.get(MEMORY), container.usage.get(CPU)
            amounts = None if memory is None else memory.value, None if cpu is None else cpu.milli_value
            yield _sample((key, container.name), *amounts, time_us, "metrics.k8s.io")


def _of_kubelets(cluster: ClusterSnapshot) -> Iterator[ContainerSamples]:
    for node in cluster.nodes:
        summary = cluster.summary(node)
        for pod in () if summary is None else summary.pods or ():
            for container in pod.containers or ():
                memory, cpu = container.memory, container.cpu
                time = None if memory is None else memory.time
                yield _sample(
                    (f"{pod.pod_ref.namespace}/{pod.pod_ref.name}", container.name),
                    None if memory is None else memory.working_set_bytes,
                    None if cpu is None or cpu.usage_nano_cores is None else -(-cpu.usage_nano_cores // 10**6),
                    None if time is None else int(time.timestamp()) * SECOND_US,
                    f"kubelet of {node}",
                )


def _sample(
    names: tuple[str, str], memory_bytes: int | None, cpu_milli: int | None, time_us: int | None, where: str
) -> ContainerSamples:
    times_us = () if time_us is None else (time_us,)
    return ContainerSamples(
        *names,
        memory_bytes=() if memory_bytes is None else (memory_bytes,),
        cpu_milli=() if cpu_milli is None else (cpu_milli,),
        where=where,
        memory_times_us=() if memory_bytes is None else times_us,
        cpu_times_us=() if cpu_milli is None else times_us,
    )


def recommended_samples(
    objects: Objects, known: Sequence[ContainerSamples]
) -> tuple[tuple[ContainerSamples, ...], tuple[Assumption, ...]]:
    """Return what VerticalPodAutoscalers recommend for workloads without samples, and that this is assumed."""
    autoscalers = Autoscalers(objects)
    if not autoscalers:
        return (), ()
    workloads = {identity_of(workload): workload for workload in objects.latest(warn=False)}
    measured = {owner_of(samples.pod, workloads) for samples in known}
    samples: list[ContainerSamples] = []
    assumptions: list[Assumption] = []
    for identity, found in workloads.items():
        autoscaler = None if identity in measured else autoscalers.recommending(found)
        if autoscaler is None or not autoscaler.recommendations:
            continue
        name = f"VerticalPodAutoscaler {autoscaler.metadata.name}"
        for recommendation in autoscaler.recommendations:
            memory, cpu = recommendation.need.get(MEMORY), recommendation.need.get(CPU)
            samples.append(
                ContainerSamples(
                    f"{identity.namespace}/{identity.name}",
                    recommendation.container_name,
                    memory_bytes=() if memory is None else (memory.value,),
                    cpu_milli=() if cpu is None else (cpu.milli_value,),
                    where=name,
                    is_recommendation=True,
                )
            )
        assumptions.append(Assumption(f"usage of {identity}", f"the recommendation of {name}", "usage samples"))
    return tuple(samples), tuple(assumptions)
