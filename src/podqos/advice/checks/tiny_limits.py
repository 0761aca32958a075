"""PQ128: memory limits with hardly any room for the start of a container.

Such a limit may be meant: with crun a container starts in 4Mi. Sources: CRI-O's container_min_memory
(12 MiB; 512 KiB with crun), Docker's smallest --memory (6m), runc's "container init was OOM-killed (memory limit too
low?)".
"""

from __future__ import annotations

from podqos.advice.checks import examples
from podqos.advice.checks.check import WARNING, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Effect, Fact
from podqos.advice.checks.view import View
from podqos.model.quantity import NANOS
from podqos.model.resources import MEMORY

_MEBIBYTE_NANOS = (1 << 20) * NANOS
_ENOUGH_NANOS = 16 * _MEBIBYTE_NANOS
_ACCEPTED_NANOS = 12 * _MEBIBYTE_NANOS


class TinyLimit(Fact, frozen=True, gc=False):
    """A memory limit that the start of a container alone may exceed."""

    limit: str
    is_refused: bool
    """Whether a common runtime refuses it by default."""

    def sentence(self, container: str) -> str:
        """Return the limit, beside what a runtime takes."""
        limit = f"{container} has a memory limit of {self.limit}"
        if self.is_refused:
            return f"{limit}, less than the 12Mi that CRI-O demands by default"
        return f"{limit}, of which runc may need up to 15Mi to start it"

    def harm(self) -> str:
        """Return what becomes of the container."""
        return "the container may not start: it is OOM-killed before its own process runs, or the runtime refuses it"


def find_tiny_limit(view: View) -> None:
    """Find memory limits below what a runtime needs; Windows starts containers another way."""
    for container, path in view.resources():
        limit = container.resources.limits.get(MEMORY)
        if limit is None or not 0 < limit.nanos < _ENOUGH_NANOS:
            continue
        if view.pod.is_windows or view.is_in_wrong_unit(MEMORY, str(limit)):
            continue
        field = f"{path}.limits.memory"
        facts = TinyLimit(str(limit), limit.nanos < _ACCEPTED_NANOS)
        view.report(tiny_limit, field, facts, view.choose(Choice.MEMORY_LIMIT, field), container=container.name)


@check(
    "PQ128",
    "memory-limit-below-start",
    WARNING,
    "CRI-O: container_min_memory",
    "runc: container init was OOM-killed (memory limit too low?)",
    effect=Effect.LIMIT,
    rule=find_tiny_limit,
)
def tiny_limit() -> Example:
    """PQ128: The memory limit leaves no room to start the container.

    The runtime starts a container inside its memory limit, before the container's own process runs. runc needs several
    mebibytes for that, and versions that copy themselves into memory need more than their own size, about 15Mi. CRI-O
    refuses limits below 12Mi, unless it uses crun. The pod then fails with RunContainerError or CrashLoopBackOff, on
    some nodes and not on others. Reported below 16Mi; less than 1Mi is PQ117.

    Fix: Set the limit to at least 16Mi, plus what the process itself needs.
    """
    return Example(
        examples.web("cpu: 100m, memory: 10Mi", "cpu: 100m, memory: 10Mi, ephemeral-storage: 1Gi"),
        chosen={
            "spec.containers[0].resources.limits.memory": "32Mi",
            "spec.containers[0].resources.requests.memory": "32Mi",
        },
    )
