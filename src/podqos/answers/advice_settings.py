"""Settings that would help the advised workloads: ``qosReserved``, and a ClusterResourceOverride for a namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.resource_override import apply_override
from podqos.advice.sizing.overcommitment import SHARES, SettingAdvice, SettingKind
from podqos.advice.sizing.tried import Fate
from podqos.answers.advice_trial import Trials, Tried
from podqos.model.kubelet_ignored import QOS_RESERVED_GATE
from podqos.model.pod import Pod, QOSClass
from podqos.model.policy import ClusterResourceOverride
from podqos.model.profile import Profile
from podqos.model.resources import MEMORY
from podqos.placement.overcommit import Overcommit, overcommit
from podqos.qos.classes import qos_class_of
from podqos.survival.drift.drift import Identity
from podqos.words.advice_settings import override_words, reserved_words

# An override that leaves requests this close to limits is not worth having.
_MOST_PERCENT = 75
_LEAST_WORKLOADS = 2
# Every setting is tried with all pods.
_MOST_PODS = 1_000


class Settled(Struct, frozen=True):
    """All workloads as advised, and which of them were measured."""

    pods: Mapping[Identity, Pod]
    measured: frozenset[Identity]
    """Those that are advised new sizes."""
    tried: Tried
    profile: Profile


def settings_of(settled: Settled, trials: Trials) -> tuple[SettingAdvice, ...]:
    """Return the settings that help and pass the trial."""
    if settled.tried.crew is not None and len(settled.tried.crew.pods) > _MOST_PODS:
        return ()
    return (*_reserved(settled, trials), *_overrides(settled, trials))


# ---- qosReserved -------------------------------------------------------------------------------------------------


def _reserved(settled: Settled, trials: Trials) -> Iterator[SettingAdvice]:
    ground, landing = trials.ground, settled.tried.landing
    if ground is None or landing is None or ground.config.qos_reserved:
        return
    crowded = [found for state in landing.placement.cluster.states for found in _crowded(overcommit(state))]
    if not crowded:
        return
    for percent in SHARES:
        share = {MEMORY: f"{percent}%"}
        gates = {QOS_RESERVED_GATE: True} if settled.profile.qos_reserved_gate else {}
        config = replace(ground.config, qos_reserved=share, feature_gates={**ground.config.feature_gates, **gates})
        fate = trials.with_config(config).run(settled.pods).whole
        if _is_no_worse(fate, settled.tried.whole):
            worst = max(crowded, key=lambda found: (found.others_to_rest or 0, found.node))
            yield SettingAdvice(
                setting=SettingKind.QOS_RESERVED,
                configuration={"qosReserved": share, **({"featureGates": gates} if gates else {})},
                about=tuple(found.node for found in crowded),
                tried=fate,
                text=reserved_words(percent, worst, len(crowded), has_gate=bool(gates)),
            )
            return


def _crowded(found: Sequence[Overcommit]) -> Iterator[Overcommit]:
    """Yield a node's memory where pods that are not Guaranteed may take what Guaranteed ones have requested."""
    for each in found:
        if each.resource == MEMORY and each.guaranteed and ((each.others_to_rest or 0) > 1 or each.unlimited):
            yield each


def _is_no_worse(fate: Fate, than: Fate) -> bool:
    deaths = (fate.oom_kills or 0) + (fate.evictions or 0)
    return deaths <= (than.oom_kills or 0) + (than.evictions or 0) and (fate.pending or 0) <= (than.pending or 0)


# ---- requests as a share of limits -------------------------------------------------------------------------------


def _overrides(settled: Settled, trials: Trials) -> Iterator[SettingAdvice]:
    by_namespace: dict[str, list[Identity]] = {}
    for identity, pod in sorted(settled.pods.items()):
        if identity in settled.measured and qos_class_of(pod, settled.profile) is QOSClass.BURSTABLE:
            by_namespace.setdefault(identity.namespace, []).append(identity)
    for namespace, own in by_namespace.items():
        percents = [_percent(settled.pods[identity]) for identity in own]
        known = [percent for percent in percents if percent is not None]
        if len(own) < _LEAST_WORKLOADS or len(known) < len(percents) or max(known) > _MOST_PERCENT:
            continue
        percent = max(known)
        override = ClusterResourceOverride(memory_request_to_limit_percent=percent)
        pods = {**settled.pods, **{identity: apply_override(settled.pods[identity], override) for identity in own}}
        fate = trials.run(pods).whole
        if _is_no_worse(fate, settled.tried.whole):
            yield SettingAdvice(
                setting=SettingKind.RESOURCE_OVERRIDE,
                configuration={
                    "apiVersion": "operator.autoscaling.openshift.io/v1",
                    "kind": "ClusterResourceOverride",
                    "metadata": {"name": "cluster"},
                    "spec": {"podResourceOverride": {"spec": {"memoryRequestToLimitPercent": percent}}},
                },
                about=tuple(map(str, own)),
                tried=fate,
                text=override_words(percent, namespace, len(own)),
            )


def _percent(pod: Pod) -> int | None:
    """Return which share of its memory limits a pod requests at most; None where a container has no limit."""
    shares = []
    for container in pod.running_containers:
        request, limit = container.resources.requests.get(MEMORY), container.resources.limits.get(MEMORY)
        if not request or not limit:
            return None
        shares.append(-(-request.value * 100 // limit.value))
    return max(shares, default=None)
