"""How a pod is stopped: who is asked to end when, and who is killed when.

Every container has the pod's grace period, which is at least a second. Its ``preStop`` hook runs first, then a sidecar
waits for the regular containers and for the sidecars after it; both take whole seconds off the grace period. Then the
container gets SIGTERM, and SIGKILL when the rest of the grace period is over, which is at least two seconds: a pod
evicted by a hard threshold has one second, its containers have two. A grace period can be shortened, never extended.

Source: Kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go (killContainer, executePreStopHook,
minimumGracePeriodInSeconds), kuberuntime_termination_order.go (newTerminationOrdering, waitForTurn),
pkg/kubelet/pod_workers.go (calculateEffectiveGracePeriod). The runtime sends the signals.
"""

from __future__ import annotations

from collections.abc import Container as Collection
from collections.abc import Iterable, Mapping

from msgspec import Struct

from podqos.model.pod import Container, Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.time_units import SECOND_US

MINIMUM_GRACE_SECONDS = 2
"""From SIGTERM to SIGKILL, at least (minimumGracePeriodInSeconds)."""
_LEAST_POD_GRACE_SECONDS = 1
# For a pod that does not set it (pkg/apis/core/v1/defaults.go).
_DEFAULT_GRACE_SECONDS = 30


def grace_seconds_of(pod: Pod) -> int:
    """Return the grace period that a pod asks for; a negative one counts as a second (pkg/registry/core/pod)."""
    own = pod.spec.termination_grace_period_seconds
    if own is None:
        return _DEFAULT_GRACE_SECONDS
    return _LEAST_POD_GRACE_SECONDS if own < 0 else own


def pod_grace_seconds(asked_seconds: int, profile: Profile = LATEST) -> int:
    """Return the grace period of a pod that is stopped: since 1.22 at least a second, whoever asks."""
    return asked_seconds if profile.hard_eviction_grace == "zero" else max(_LEAST_POD_GRACE_SECONDS, asked_seconds)


def stop_seconds(grace_seconds: int) -> int:
    """Return the time between SIGTERM and SIGKILL if this much is left of the grace period."""
    return max(MINIMUM_GRACE_SECONDS, grace_seconds)


def left_seconds(grace_seconds: int, spent_us: int) -> int:
    """Return what a hook, or the wait of a sidecar, leaves of a grace period: only whole seconds count."""
    return grace_seconds - spent_us // SECOND_US


def stopped_before(pod: Pod, name: str) -> tuple[str, ...]:
    """Return the containers that a container waits for: a sidecar for the regular ones and the next sidecar."""
    sidecars = [container.name for container in pod.spec.init_containers if container.is_sidecar]
    if name not in sidecars:
        return ()
    regular = tuple(container.name for container in pod.spec.containers)
    return *regular, *sidecars[sidecars.index(name) + 1 :][:1]


def hook_us(container: Container, stated_us: int | None = None) -> int | None:
    """Return how long the ``preStop`` hook of a container takes; None if it has none.

    A ``sleep`` says so itself. How long a command or a request takes is stated, or 0.
    """
    lifecycle = container.lifecycle
    if lifecycle is None or lifecycle.pre_stop is None:
        return None
    if stated_us is not None:
        return stated_us
    return 0 if lifecycle.pre_stop.sleep is None else lifecycle.pre_stop.sleep.seconds * SECOND_US


class Shutdown(Struct, frozen=True, gc=False):
    """A pod that is being stopped, and what its containers do about it."""

    pod: Pod
    began_us: int
    grace_seconds: int
    """Of the pod (``pod_grace_seconds``)."""
    takes_us: int
    """How long a container takes to end after SIGTERM, if nobody kills it."""
    hooks_us: Mapping[str, int] = {}
    """By container: how long its ``preStop`` hook takes."""

    def ends_us(self, running: Iterable[str], ended_us: Mapping[str, int]) -> dict[str, int]:
        """Return when the containers that run will end; ``ended_us`` has those that already have, by themselves."""
        ends = dict(ended_us)
        spec = self.pod.spec
        order = [*reversed([container.name for container in spec.init_containers if container.is_sidecar])]
        names = [name for name in running if name not in ended_us]
        for name in sorted(names, key=lambda name: order.index(name) if name in order else -1):
            ends[name] = self._end_us(name, ends)
        return {name: ends[name] for name in names}

    def _end_us(self, name: str, ends_us: Mapping[str, int]) -> int:
        grace_seconds, at_us = self.grace_seconds, self.began_us
        hook = self.hooks_us.get(name)
        if hook is not None and grace_seconds > 0:
            spent_us = min(hook, grace_seconds * SECOND_US)
            grace_seconds, at_us = left_seconds(grace_seconds, spent_us), at_us + spent_us
        if grace_seconds > 0:
            turn_us = max((ends_us[other] for other in stopped_before(self.pod, name) if other in ends_us), default=0)
            spent_us = max(0, min(turn_us - at_us, grace_seconds * SECOND_US))
            grace_seconds, at_us = left_seconds(grace_seconds, spent_us), at_us + spent_us
        return at_us + min(self.takes_us, stop_seconds(grace_seconds) * SECOND_US)


def hooks_of(pod: Pod, stated_us: Mapping[str, int], names: Collection[str]) -> dict[str, int]:
    """Return how long the hooks of containers take, by name; ``stated_us`` where it is known better."""
    every = (*pod.spec.containers, *pod.spec.init_containers)
    taken = ((container.name, hook_us(container, stated_us.get(container.name))) for container in every)
    return {name: time_us for name, time_us in taken if time_us is not None and name in names}
