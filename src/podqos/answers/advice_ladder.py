"""From sizes to advice: what does not pass its trial is raised and tried again, and not advised if that does not help.

A workload passes with no OOM kill, no eviction, and throttled no longer than now. Workloads that nobody changes have to
fare no worse than now, too: otherwise those whose requests were lowered are raised first, and then left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.applying import ContainerAdvice, PodAdvice
from podqos.advice.sizing.goals import with_containers
from podqos.advice.sizing.raising import Shortage, not_lowered, raised, with_amounts
from podqos.advice.sizing.sizing import UsageHistory
from podqos.advice.sizing.tried import AdviceTrial, Fate, Raised, Reason, Untried, WorkloadTrial
from podqos.answers.advice_trial import Trials, Tried
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.qos.classes import classify
from podqos.survival.drift.drift import Identity
from podqos.words.advice_trials import trial_words, whole_words

_RUNGS = 2
_ROUNDS = 5

Store = Callable[[Identity, Pod], tuple[Pod, str]]
"""From a workload and its pod to the pod as the API server would store it, and why it would not."""


CheckAll = Callable[[Mapping[Identity, Pod]], Mapping[Identity, str]]
"""From the workloads that change, and their pods as written, to what is found about some of them, and is not now."""


class Candidate(Struct, frozen=True):
    """Advice about one workload that is to be tried."""

    identity: Identity
    written: Pod
    """The pod as its manifest has it."""
    before: Pod | None
    """The same as stored; None for a workload that does not exist yet."""
    advice: PodAdvice
    after: Pod
    refusal: str
    usages: Mapping[str, UsageHistory]
    failed: tuple[Reason, ...] = ()
    rung: int = 0
    """How often it was raised."""
    is_withheld: bool = False
    worst: Fate | None = None
    """What became of it when it failed."""

    @property
    def changes(self) -> bool:
        """Whether anything of it is other than now."""
        return self.before != self.after


class Climbed(Struct, frozen=True):
    """What is left to advise, and how it fared."""

    ends: Mapping[Identity, Candidate]
    trials: Mapping[Identity, WorkloadTrial]
    """Of those that change, or would have."""
    whole: AdviceTrial | None
    """None where nothing changes."""


def climb(
    candidates: Sequence[Candidate], trials: Trials, others: Mapping[Identity, Pod], store: Store, checked: CheckAll
) -> Climbed:
    """Try all advice together, and raise or take back what does not pass, until the rest does.

    What the checks find only then is taken back, too.
    """
    tops = {candidate.identity: candidate if candidate.changes else _as_it_is(candidate) for candidate in candidates}
    sized = dict(tops)
    if not any(candidate.changes for candidate in candidates):
        return Climbed(tops, {}, None)
    for identity, top in tops.items():
        if top.refusal:
            tops[identity] = _withheld(top, (Reason.REFUSED,), None)
    tried = trials.run(_pods(tops, others))
    for _ in range(_ROUNDS):
        failing = _failing(tops, tried, trials.before)
        if not failing:
            break
        for identity, reasons in failing.items():
            tops[identity] = _next(tops[identity], reasons, tried.fates[identity], store)
        tried = trials.run(_pods(tops, others))
    while found := checked(_changing(tops)):
        for identity, finding in found.items():
            tops[identity] = replace(_withheld(tops[identity], (Reason.FOUND,), None), refusal=finding)
        tried = trials.run(_pods(tops, others))
    own = {
        identity: _trial(top, sized[identity], tried, trials)
        for identity, top in tops.items()
        if top.changes or top.is_withheld
    }
    return Climbed(tops, own, _whole(tops, tried, trials))


def _changing(tops: Mapping[Identity, Candidate]) -> dict[Identity, Pod]:
    return {identity: top.advice.pod for identity, top in tops.items() if top.changes and not top.is_withheld}


def _pods(tops: Mapping[Identity, Candidate], others: Mapping[Identity, Pod]) -> dict[Identity, Pod]:
    return {**others, **{identity: top.after for identity, top in tops.items()}}


def _failing(tops: Mapping[Identity, Candidate], tried: Tried, before: Tried) -> dict[Identity, tuple[Reason, ...]]:
    """Return the advice that did not pass, and why."""
    failing = {}
    for identity, top in tops.items():
        reasons = tuple(_reasons(tried.fates[identity], before.fates.get(identity)))
        if top.changes and not top.is_withheld and reasons:
            failing[identity] = reasons
    if not failing and _hurts_others(tops, tried, before):
        failing = {
            identity: (Reason.EVICTED,)
            for identity, top in tops.items()
            if top.changes and top.before is not None and _memory(top.after) < _memory(top.before)
        }
    return failing


def _reasons(fate: Fate, before: Fate | None) -> Iterator[Reason]:
    if fate.oom_kills:
        yield Reason.OOM_KILLED
    if fate.evictions:
        yield Reason.EVICTED
    if before is not None and (fate.throttled_seconds or 0) > (before.throttled_seconds or 0):
        yield Reason.THROTTLED


def _hurts_others(tops: Mapping[Identity, Candidate], tried: Tried, before: Tried) -> bool:
    """Whether a workload that does not change is killed or evicted more often than now."""
    for identity, fate in tried.fates.items():
        known = before.fates.get(identity)
        if known is None or (identity in tops and tops[identity].changes):
            continue
        if (fate.oom_kills or 0) + (fate.evictions or 0) > (known.oom_kills or 0) + (known.evictions or 0):
            return True
    return False


def _memory(pod: Pod) -> Quantity:
    return pod_requests(pod).get(MEMORY, ZERO)


def _next(candidate: Candidate, reasons: tuple[Reason, ...], fate: Fate, store: Store) -> Candidate:
    """Return advice with what ran short raised, or, where that was done or does nothing, none."""
    short = Shortage(
        killed=Reason.OOM_KILLED in reasons,
        evicted=Reason.EVICTED in reasons,
        throttled=Reason.THROTTLED in reasons,
    )
    failed = tuple(dict.fromkeys((*candidate.failed, *reasons)))
    for rung in range(candidate.rung, _RUNGS):
        containers = tuple(_raised(container, candidate, short, rung) for container in candidate.advice.containers)
        if containers != candidate.advice.containers:
            advice = with_containers(candidate.advice, containers)
            after, refusal = store(candidate.identity, advice.pod)
            if not refusal and after != candidate.before:
                return replace(candidate, advice=advice, after=after, rung=rung + 1, failed=failed, worst=fate)
    return _withheld(candidate, reasons, fate)


def _raised(advice: ContainerAdvice, candidate: Candidate, short: Shortage, rung: int) -> ContainerAdvice:
    usage = candidate.usages.get(advice.container)
    if rung == 0:
        return raised(advice, usage, short, candidate.advice.qos_class)
    return not_lowered(advice, usage, short)


def _withheld(candidate: Candidate, reasons: tuple[Reason, ...], fate: Fate | None) -> Candidate:
    """Return a workload as it is. One that does not exist yet stays as it was sized: there is nothing to go back to."""
    failed = tuple(dict.fromkeys((*candidate.failed, *reasons)))
    if candidate.before is None:
        return replace(candidate, is_withheld=True, failed=failed, worst=fate)
    same = _as_it_is(candidate)
    advice = replace(same.advice, qos_class=candidate.advice.qos_class)
    return replace(
        same,
        advice=advice,
        after=candidate.before,
        is_withheld=True,
        failed=failed,
        worst=fate or candidate.worst,
    )


def _as_it_is(candidate: Candidate) -> Candidate:
    """Return a workload with the amounts it states: others that come to the same are no advice."""
    assert candidate.before is not None
    containers = tuple(
        with_amounts(
            container, candidate.usages.get(container.container), container.requests_before, container.limits_before
        )
        for container in candidate.advice.containers
    )
    is_short = any(container.needs_choice for container in containers)
    qos_class = candidate.advice.qos_class if is_short else classify(candidate.before).qos_class
    return replace(candidate, advice=PodAdvice(candidate.written, qos_class, containers))


# ---- as published ----------------------------------------------------------------------------------------------------


def _trial(candidate: Candidate, sized: Candidate, tried: Tried, trials: Trials) -> WorkloadTrial:
    identity = candidate.identity
    made = WorkloadTrial(
        passed=not candidate.is_withheld
        and not tuple(_reasons(tried.fates[identity], trials.before.fates.get(identity))),
        before=trials.before.fates.get(identity, Fate()),
        after=candidate.worst if candidate.is_withheld and candidate.worst is not None else tried.fates[identity],
        failed=candidate.failed,
        raised=() if candidate.is_withheld else tuple(_raises(sized.advice, candidate)),
        untried=trials.untried(identity),
    )
    return replace(
        made,
        text=trial_words(made, candidate.usages.values(), is_withheld=candidate.is_withheld, refusal=candidate.refusal),
    )


def _raises(sized: PodAdvice, candidate: Candidate) -> Iterator[Raised]:
    for old, new in zip(sized.containers, candidate.advice.containers, strict=True):
        for field, resource, before, after in _amounts(old, new):
            if after is not None and after != before:
                yield Raised(new.container, field, before, after, _because(resource, candidate.failed))


def _amounts(old: ContainerAdvice, new: ContainerAdvice) -> Iterator[tuple[str, str, Quantity | None, Quantity | None]]:
    for resource in (CPU, MEMORY):
        yield f"requests.{resource}", resource, old.requests.get(resource), new.requests.get(resource)
        yield f"limits.{resource}", resource, old.limits.get(resource), new.limits.get(resource)


def _because(resource: str, failed: tuple[Reason, ...]) -> Reason:
    if resource == CPU:
        return Reason.THROTTLED
    return Reason.OOM_KILLED if Reason.OOM_KILLED in failed else Reason.EVICTED


def _pending(tried: Tried, before: Tried) -> Iterator[tuple[str, int]]:
    for identity, fate in sorted(tried.fates.items()):
        known = before.fates.get(identity, Fate())
        if (fate.pending or 0) > (known.pending or 0):
            yield str(identity), fate.pending or 0


def _whole(tops: Mapping[Identity, Candidate], tried: Tried, trials: Trials) -> AdviceTrial:
    untried = {untried for identity in tops for untried in trials.untried(identity)}
    has_samples = any(usage.memory_bytes for top in tops.values() for usage in top.usages.values())
    made = AdviceTrial(
        nodes=0 if trials.ground is None else len(trials.ground.nodes),
        pods=len(tried.fates) if tried.crew is None else len(tried.crew.pods),
        before=trials.before.whole,
        after=tried.whole,
        replayed_seconds=trials.recorded_seconds if has_samples else None,
        pending=dict(_pending(tried, trials.before)),
        untried=tuple(each for each in Untried if each in untried),
    )
    return replace(made, text=whole_words(made))
