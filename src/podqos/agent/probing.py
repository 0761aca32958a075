"""What the kubelet makes of the answers of a probe: when a container is unhealthy, has started, is ready.

Source: Kubernetes v1.36 pkg/kubelet/prober/worker.go (newWorker, doProbe). Only as many equal answers in a row as the
threshold says change the result. After a failed liveness probe, and after either result of a startup probe, the worker
waits for a new container. The count of equal answers survives a restart of the container.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.reasons import ProbeKind
from podqos.model.pod import Probe


class ProbeWorker(Struct, frozen=True, gc=False):
    """The state of one probe of one container."""

    kind: ProbeKind
    probe: Probe
    """With the API's defaults."""
    result: bool | None = None
    """What the kubelet acts on; None if unknown."""
    last: bool | None = None
    """The last answer."""
    in_a_row: int = 0
    """How often it was the same."""
    is_on_hold: bool = False
    """Whether it waits for a new container."""

    def renewed(self) -> ProbeWorker:
        """Return it for a new container: not ready, alive, not started."""
        return replace(self, result=_INITIAL[self.kind], is_on_hold=False)

    def passed(self) -> ProbeWorker:
        """Return it for a container that has run for long and has always answered."""
        is_over = self.kind is ProbeKind.STARTUP
        return replace(self, result=True, last=True, in_a_row=self.probe.success_threshold, is_on_hold=is_over)

    def answered(self, *, good: bool) -> ProbeWorker:
        """Return it after an answer."""
        in_a_row = self.in_a_row + 1 if self.last is good else 1
        after = replace(self, last=good, in_a_row=in_a_row)
        if in_a_row < (self.probe.success_threshold if good else self.probe.failure_threshold):
            return after
        after = replace(after, result=good)
        if self.kind is ProbeKind.STARTUP or (self.kind is ProbeKind.LIVENESS and not good):
            return replace(after, is_on_hold=True, in_a_row=0)
        return after


_INITIAL = {ProbeKind.LIVENESS: True, ProbeKind.READINESS: False, ProbeKind.STARTUP: None}
