"""No drawn workload gets advice that its own recorded usage would not survive."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import podqos
from podqos.advice.sizing.goals import Goal
from podqos.advice.sizing.samples import ContainerSamples
from podqos.manifest.encoding import yaml_bytes
from podqos.objects.objects import Objects

MIB = 1 << 20
_sizes = st.sampled_from([None, 64, 256, 700, 1500])
_milli = st.sampled_from([None, 50, 250, 1000])


@st.composite
def workloads(draw, name):
    """Draw a Deployment and what one or two of its pods used."""
    request, limit = draw(_sizes), draw(_sizes)
    cpu, most_cpu = draw(_milli), draw(_milli)
    if request and limit:
        request, limit = sorted((request, limit))
    if cpu and most_cpu:
        cpu, most_cpu = sorted((cpu, most_cpu))
    requests = {"memory": f"{request}Mi"} if request else {}
    limits = {"memory": f"{limit}Mi"} if limit else {}
    requests |= {"cpu": f"{cpu}m"} if cpu else {}
    limits |= {"cpu": f"{most_cpu}m"} if most_cpu else {}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": name, "image": name, "resources": {"requests": requests, "limits": limits}}]},
    }
    spec = {"replicas": draw(st.integers(1, 4)), "selector": {"matchLabels": {"app": name}}, "template": template}
    value = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    most = limit or 2000
    samples = []
    for pod in range(draw(st.integers(0, 2))):
        memory = draw(st.lists(st.integers(10, most), min_size=2, max_size=12))
        used = draw(st.lists(st.integers(1, 1500), min_size=len(memory), max_size=len(memory)))
        repeated = draw(st.sampled_from([1, 30]))
        samples.append(
            ContainerSamples(
                f"{name}-{pod}",
                name,
                tuple(each * MIB for each in memory * repeated),
                tuple(used * repeated),
                draw(st.sampled_from([0, 0, 1])),
            )
        )
    return value, samples


@settings(max_examples=25, deadline=None)
@given(
    drawn=st.tuples(workloads("a"), workloads("b")),
    goal=st.sampled_from([None, *Goal]),
    nodes=st.sampled_from([None, 1, 2, 3]),
    size=st.sampled_from(["2Gi", "6Gi"]),
)
def test_what_is_advised_survives_its_own_usage(drawn, goal, nodes, size):
    """No OOM kill, no eviction, no more throttling than now; what would not pass stays as it is."""
    objects = Objects()
    for value, _ in drawn:
        objects = objects.with_text(f"{value['metadata']['name']}.yaml", yaml_bytes(value))
    samples = [each for _, own in drawn for each in own]
    if not samples and goal is None:
        return
    for number in range(nodes or 0):
        status = {"capacity": {"cpu": "4", "memory": size, "pods": "110"}}
        value = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}, "status": status}
        objects = objects.with_text(f"node-{number}.yaml", yaml_bytes(value))
    report = podqos.advise(objects, samples=samples, goal=goal)
    for advice in report.workloads:
        own = [each for each in samples if advice.workload.endswith(f"/{each.container}")]
        (container,) = advice.containers
        if advice.is_withheld:
            assert (container.requests, container.limits) == (container.requests_before, container.limits_before)
            assert advice.tried is not None
            assert advice.tried.failed
            continue
        limit = container.limits.get("memory")
        changed = limit != container.limits_before.get("memory")
        if limit is not None and changed:
            assert all(limit.value >= max(each.memory_bytes) for each in own)
        if advice.tried is not None:
            assert advice.tried.passed
            before, after = advice.tried.before, advice.tried.after
            assert (after.oom_kills, after.evictions) == (0, 0)
            assert (after.throttled_seconds or 0) <= (before.throttled_seconds or 0)
