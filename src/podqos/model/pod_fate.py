"""Full statuses of pods in the shape of the Kubernetes API (core/v1), to find out why one died.

Apart from ``pod``, because no other decision reads more of it than whether containers run, and a large cluster has a
lot of it.
"""

from __future__ import annotations

from msgspec import field

from podqos.model.pod import ContainerRunning, Pod, PodCondition, PodStatus, RunState, RunStatus, WhyIdle

__all__ = (
    "ContainerRunning",
    "ContainerState",
    "ContainerStatus",
    "ContainerTerminated",
    "FatedPod",
    "FullPodStatus",
    "PodCondition",
)


class ContainerTerminated(WhyIdle, frozen=True, gc=False, rename="camel"):
    """How a container ended. Its message is left out: it is what the program wrote."""

    exit_code: int | None = 0
    """None: not in the text it was read from; the API always has it."""
    signal: int = 0
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = field(default="", name="containerID")


class ContainerState(RunState, frozen=True, gc=False):
    """The state of a container."""

    terminated: ContainerTerminated | None = None


class ContainerStatus(RunStatus, frozen=True, gc=False, rename="camel"):
    """The status of a container."""

    container_id: str = field(default="", name="containerID")
    """``containerd://`` and the id in the name of its cgroup."""
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class FullPodStatus(PodStatus, frozen=True, gc=False, rename="camel"):
    """The full status of a pod."""

    reason: str = ""
    message: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()


class FatedPod(Pod, frozen=True, gc=False, rename="camel"):
    """A pod with its full status."""

    status: FullPodStatus = FullPodStatus()

    @property
    def is_being_deleted(self) -> bool:
        """Whether something deleted it, and it is not gone yet."""
        return bool(self.metadata.deletion_timestamp)
