"""When a pod exceeds one of its own limits on local storage, which makes the eviction loop look.

The eviction manager (``eviction.local_storage``) decides whether it is evicted; this module only finds the moment.
"""

from __future__ import annotations

from podqos.eviction.signals import Layout
from podqos.model.effective import pod_limits
from podqos.model.pod import Pod
from podqos.model.resources import EPHEMERAL_STORAGE
from podqos.sim.engine.event_queue import Action
from podqos.sim.engine.gauge import Gauge, GaugeMark, Planner


def local_limits(
    pod: Pod, layout: Layout, planner: Planner, alarm: Action, now_us: int
) -> dict[tuple[str, str], tuple[Gauge, ...]]:
    """Return, by container and part of its storage, the limited sums. ``alarm`` is called when one is exceeded."""
    found: dict[tuple[str, str], list[Gauge]] = {}
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    has_limit = any(EPHEMERAL_STORAGE in container.resources.limits for container in containers)
    if not has_limit and not pod.spec.volumes:
        return {}

    def limited(limit: int, parts: list[tuple[str, str]]) -> None:
        gauge = Gauge()
        gauge.since_us = now_us
        GaugeMark(gauge, planner, alarm).above(limit, now_us)
        for part in parts:
            found.setdefault(part, []).append(gauge)

    for volume in pod.spec.volumes:
        size = volume.empty_dir.size_limit if volume.empty_dir is not None else None
        if size is not None and size.sign > 0:
            limited(size.value, [(container.name, f"volume/{volume.name}") for container in containers])
    if has_limit:
        local = [f"volume/{volume.name}" for volume in pod.spec.volumes if volume.is_local]
        limit = pod_limits(pod).get(EPHEMERAL_STORAGE)
        if limit is not None:
            parts = ("rootfs", "logs", *local)
            limited(limit.value, [(container.name, part) for container in containers for part in parts])
    with_rootfs = layout in {Layout.SINGLE, Layout.CONTAINERS_APART}
    sidecars = (container for container in pod.spec.init_containers if container.is_sidecar)
    for container in (*pod.spec.containers, *sidecars):
        limit = container.resources.limits.get(EPHEMERAL_STORAGE)
        if limit:
            parts = ("logs", "rootfs") if with_rootfs else ("logs",)
            limited(limit.value, [(container.name, part) for part in parts])
    return {part: tuple(gauges) for part, gauges in found.items()}
