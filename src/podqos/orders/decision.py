"""The decisions about one pod: its class, and the oom scores of its containers on a node.

Everything else in an explanation follows from them; a list of a whole cluster needs only these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.admission.defaulting import defaulted
from podqos.model.effective import as_allocated
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import Classification, classify
from podqos.qos.oom import KUBELET_OOM_SCORE_ADJ, OOMScore, pod_qos_class, running_scores

if TYPE_CHECKING:
    from podqos.qos.run_flags import Engine


class ExplainSettings(Struct, frozen=True):
    """The node and the Kubernetes version a pod is explained for."""

    cgroups: CgroupSettings
    profile: Profile = LATEST
    engine: Engine = "docker"
    kubelet_oom_score_adj: int = KUBELET_OOM_SCORE_ADJ

    @property
    def node_memory_bytes(self) -> int:
        """The node's memory, which Burstable's oom score depends on."""
        return self.cgroups.node_memory_bytes

    @property
    def machine_bytes(self) -> int:
        """Memory and swap, which ``/proc/PID/oom_score`` is a share of."""
        return self.cgroups.node_memory_bytes + self.cgroups.node_swap_bytes


class PodDecision(Struct, frozen=True, gc=False):
    """The decisions about one pod."""

    pod: Pod
    """The pod as the API server stores it, after defaulting; while a resize is not done, with what its node runs it."""
    classification: Classification
    qos_class: QOSClass
    """The class that the kubelet uses: recorded in the status of a live pod, computed otherwise."""
    oom_scores: tuple[OOMScore, ...]


def decide(given: Pod, settings: ExplainSettings) -> PodDecision:
    """Gather the decisions about one pod."""
    pod = defaulted(as_allocated(given), settings.profile)
    classification = classify(pod, settings.profile)
    qos_class = pod_qos_class(pod, classification.qos_class)
    return PodDecision(
        pod=pod,
        classification=classification,
        qos_class=qos_class,
        oom_scores=running_scores(pod, qos_class, settings.node_memory_bytes, settings.profile),
    )
