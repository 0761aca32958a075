"""The images of a simulated node: which are there, which are being pulled, and who waits for them.

How long a pull takes is stated, or follows from the size of the image and the bandwidth of the node: a model, in which
pulls do not slow each other down and an image that is there takes no time even if its policy is ``Always``. Images
take no disk space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from podqos.agent.events import Event
from podqos.agent.image_pulls import PullError, PullPolicy, next_back_off_seconds, pull_policy, pulls_at_once
from podqos.agent.journal import Kind
from podqos.agent.reasons import ImagePulled, ImagePullFailed
from podqos.model.pod import Container
from podqos.model.time_units import SECOND_US
from podqos.sim.node.owner import WorldOwner
from podqos.sim.node.pods import SimContainer
from podqos.sim.scenario.scenario import ImageOptions, MachineSpec

Then = Callable[[], Sequence[Event]]
Later = Callable[[int, Then], Sequence[Event]]


class NodeImages:
    """The images of one node."""

    def __init__(
        self, spec: MachineSpec, options: ImageOptions, cached: set[str], owner: WorldOwner, later: Later
    ) -> None:
        """Set them up; ``cached`` is what the machine has, and outlives a loss of the machine."""
        self._spec = spec
        self._options = options
        self._cached = cached
        self._cached.update(spec.images)
        self._owner = owner
        self._later = later
        self._ends_us: dict[str, int] = {}
        """By image that is being pulled: when it is there."""
        self._slots: list[int] = []
        """When the pulls end that take place or wait, the first first."""
        self._back_off: dict[tuple[str, str], int] = {}
        """By pod and image: the last wait, in seconds."""

    def ensure(self, container: SimContainer, then: Then) -> Sequence[Event]:
        """Go on when the image of a container is there."""
        now_us, spec = self._owner.now_us, _spec(container)
        image, policy = spec.image, pull_policy(spec)
        if not now_us:
            self._cached.add(image)  # what is there from the start runs
        is_there = image in self._cached
        if is_there and (policy is not PullPolicy.ALWAYS or not now_us):
            return then()
        if policy is PullPolicy.NEVER:
            self._note(container, ImagePullFailed(image, PullError.ERR_IMAGE_NEVER_PULL))
            return ()
        stated = self._options.images.get(image)
        if stated is not None and stated.is_unavailable:
            return self._fail(container, image, then)
        if is_there:
            return then()
        return self._pull(container, image, then)

    def _fail(self, container: SimContainer, image: str, then: Then) -> Sequence[Event]:
        key = container.pod.uid, image
        seconds = self._back_off[key] = next_back_off_seconds(self._back_off.get(key, 0))
        self._note(container, ImagePullFailed(image, PullError.ERR_IMAGE_PULL, seconds))
        return self._later(
            seconds * SECOND_US, lambda: () if container.pod.is_stopping else self.ensure(container, then)
        )

    def _pull(self, container: SimContainer, image: str, then: Then) -> Sequence[Event]:
        now_us = self._owner.now_us
        begins_us, ends_us = self._planned_us(image)

        def pulled() -> Sequence[Event]:
            if image not in self._cached:
                self._cached.add(image)
                self._ends_us.pop(image, None)
                because = ImagePulled(image, (ends_us - begins_us) / SECOND_US, (begins_us - now_us) / SECOND_US)
                self._owner.note(Kind.IMAGE_PULLED, because, container.pod.key, container.name)
            return then()

        return self._later(ends_us - now_us, pulled)

    def _planned_us(self, image: str) -> tuple[int, int]:
        """Return from when to when an image is pulled; one that is being pulled is not pulled again."""
        now_us, config = self._owner.now_us, self._spec.config
        at_once = pulls_at_once(serialized=config.serialize_image_pulls, at_most=config.max_parallel_image_pulls)
        while self._slots and self._slots[0] <= now_us:
            heappop(self._slots)
        if image in self._ends_us:
            ends_us = max(self._ends_us[image], max(self._slots, default=0) if at_once == 1 else 0)
            return ends_us, ends_us
        begins_us = now_us
        if at_once is not None and len(self._slots) >= at_once:
            begins_us = sorted(self._slots)[-at_once]
        ends_us = self._ends_us[image] = begins_us + self._duration_us(image)
        heappush(self._slots, ends_us)
        return begins_us, ends_us

    def _duration_us(self, image: str) -> int:
        options, stated = self._options, self._options.images.get(image)
        if stated is None or (stated.pull_us is None and stated.size_bytes is None):
            return options.pull_us
        if stated.pull_us is not None:
            return stated.pull_us
        assert stated.size_bytes is not None
        return -(-stated.size_bytes * SECOND_US // self._spec.image_bytes_per_second)

    def _note(self, container: SimContainer, because: ImagePullFailed) -> None:
        self._owner.note(Kind.IMAGE_PULL_FAILED, because, container.pod.key, container.name)


def _spec(container: SimContainer) -> Container:
    spec = container.pod.pod.spec
    every = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    return next(known for known in every if known.name == container.name)
