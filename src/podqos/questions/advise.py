"""``podqos advise``: class, priority and sizes of workloads, from their descriptions and usage.

Every workload that something is known about is sized within what surrounds it (LimitRanges, autoscalers, its own
program's settings), and tried (``advise_trial``). A bound is kept where what was used still fits. Where it does not,
sizes stay as they are needed, and the API server's refusal of them is the answer: no size that kills is advised for the
sake of a bound. What does not pass its trial is not advised, and what is not advised is not written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil

from msgspec import Struct
from msgspec.structs import asdict, replace

from podqos.admission.chain import admit
from podqos.admission.policies import Policies
from podqos.admission.relevance import Question, tolerated
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.finding import CheckedObject, FieldEdit, Finding, FindingSeverity, plain_value
from podqos.advice.checks.view import at_path
from podqos.advice.fixes.patches import ObjectPatch, object_patch
from podqos.advice.sizing.applying import Asked, ContainerAdvice, PodAdvice, advise_pod, priority_class_for
from podqos.advice.sizing.bounds import bounded, quota_shortfalls
from podqos.advice.sizing.description import DescribedWorkload, description_from_annotations
from podqos.advice.sizing.effect import Advised, effect
from podqos.advice.sizing.goals import Goal, caution_for, class_for, toward, with_containers
from podqos.advice.sizing.matching import match_samples
from podqos.advice.sizing.matrix import Because, BurstPattern, Description, PriorityTier, recommend
from podqos.advice.sizing.node_settings import NodeNeeds, reservations
from podqos.advice.sizing.node_settings import advise_node as node_settings
from podqos.advice.sizing.raising import with_amounts
from podqos.advice.sizing.runtime_settings import program_setting, unread_setting, with_room
from podqos.advice.sizing.samples import ContainerSamples
from podqos.advice.sizing.severity import distance
from podqos.advice.sizing.sizing import UsageHistory, percentile
from podqos.amounts import counted
from podqos.errors import InputError, InvalidArgument
from podqos.manifest.edits.apply import CannotEdit, Edited, ObjectEdit, apply_edits
from podqos.manifest.edits.values import with_field
from podqos.manifest.encoding import yaml_bytes
from podqos.manifest.plain import Plain, parse_path
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.text import Place
from podqos.model.assumption import Assumption, of_version
from podqos.model.autoscaling import ResourceMetric
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.node import Node
from podqos.model.owners import controllers
from podqos.model.pod import Container, ObjectMeta, Pod, QOSClass, Workload
from podqos.model.policy import PriorityClass, ResourceQuota
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, NO_RESOURCES, QOS_RESOURCES, ResourceList, ResourceRequirements
from podqos.naming import naming, stated_with
from podqos.objects.assumptions import KUBELET_SETTINGS, cluster_assumptions, node_memory
from podqos.objects.autoscaling import Autoscalers
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet, judged_cgroups, rules_of
from podqos.objects.objects import FoundWorkload, Objects
from podqos.orders.drift import Identity, WorkloadDrift
from podqos.orders.versions import Resizing
from podqos.placement.workloads import DAEMON_SET
from podqos.qos.classes import classify
from podqos.questions.advice import (
    REASONS,
    AdviceReport,
    Amounts,
    Effect,
    NodeAdvice,
    PodAmounts,
    WorkloadAdvice,
    node_reasons,
    trial_words,
    whole_words,
)
from podqos.questions.advise_trial import Candidate, CheckAll, Trials, climb, ground_of, recording_of, replicas_on
from podqos.questions.check import Checked
from podqos.questions.drift import with_words

USAGE = Assumption("unmeasured usage", "the pods' requests", stated_with("usage"))
_UNMATCHED_TOLD = 3
"""So many pods without a workload are named."""
_MIB = 1 << 20
_OF_SETTINGS = frozenset({"command", "args", "env", "terminationMessagePath"})
"""The API server fills in the last one: an object without any of them has been read without what may be secret."""
_LISTS = ("containers", "initContainers")


def advise(
    objects: Objects,
    *,
    samples: Sequence[ContainerSamples] = (),
    descriptions: Sequence[DescribedWorkload] = (),
    assumptions: tuple[Assumption, ...] = (),
    goal: Goal | None = None,
    node_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    profile: Profile = LATEST,
) -> AdviceReport:
    """Advise class, priority and sizes of every workload that something is known about.

    A workload is described by its annotations or by ``descriptions``; one that is described but not among the objects
    is new. ``samples`` are what containers used, ``assumptions`` what is assumed about them. ``goal`` is what all
    workloads are to be made into, whether or not something is known about them. What does not pass its trial is not
    advised.
    """
    objects.check_kubelets()
    advising = _Adviser(objects, goal, node_memory_bytes, profile)
    sized = advising.sized(samples, descriptions)
    others = advising.others(sized)
    ground = ground_of(objects, kubelet, profile)
    pods = {each.identity: each.written for each in sized}
    pods |= {identity: workload.pod for identity, (workload, _) in others.items()}
    trials = Trials(sized, others, ground, recording_of(samples, pods), profile)
    ends, whole = climb(sized, trials, advising.stored, advising.gate(sized))
    ends = [_end(start, end) for start, end in zip(sized, ends, strict=True)]
    nodes = objects.of(Node) if ground is None else ground.nodes
    memory_bytes, of_memory = node_memory(node_memory_bytes, nodes)
    settings = judged_cgroups(kubelet or DEFAULT_KUBELET, memory_bytes=memory_bytes, profile=profile)
    advised = [_advised(end) for end in ends]
    advised += [Advised(identity, pod, pod) for identity, (_, pod) in others.items()]
    drifts = effect(advised, settings, profile)
    is_assumed = any(each.before is not None and not each.memory_bytes for each in advised)
    workloads = tuple(advising.advice(end, drifts[end.identity], nodes) for end in ends)
    named = {workload.priority_class for workload in workloads}
    effects = [workload.effect for workload in workloads if workload.effect is not None]
    known, added = kubelet or DEFAULT_KUBELET, _added(ends, workloads)
    return AdviceReport(
        kubernetes_version=profile.version_text,
        node_memory_bytes=memory_bytes,
        workloads=workloads,
        priority_classes=tuple(tier for name, tier in advising.to_create.items() if name in named),
        assumptions=(
            *rules_of(known, profile),
            *of_memory,
            *((USAGE,) if is_assumed else ()),
            *(() if known.is_stated else (KUBELET_SETTINGS,)),
            *cluster_assumptions(objects),
            *assumptions,
        ),
        goal=goal,
        tried=None if whole is None else replace(whole, text=whole_words(whole)),
        total=sum((each.total for each in effects if each.total is not None), Amounts()),
        short_quotas=tuple(
            short
            for quota in objects.of(ResourceQuota)
            if (more := added.get(quota.metadata.namespace_or_default)) is not None
            for short in quota_shortfalls((quota,), more)
        ),
    )


def advise_node(needs: NodeNeeds, profile: Profile = LATEST, assumptions: tuple[Assumption, ...] = ()) -> AdviceReport:
    """Advise the settings of a node's kubelet: reservations, eviction thresholds and grace.

    ``assumptions`` are those about ``needs``.
    """
    if needs.growth_bytes_per_second is None:
        # What ``check`` assumes, so that it agrees, unless the node is too small for it.
        as_checked = replace(needs, growth_bytes_per_second=max(needs.growth, CheckOptions().growth_bytes_per_second))
        needs = as_checked if _withheld_bytes(as_checked) * 2 <= needs.memory_bytes else needs
    settings = node_settings(needs)
    withheld = _withheld_bytes(needs)
    if withheld * 2 > needs.memory_bytes:
        what = f"reservations and thresholds would take {withheld * 100 // needs.memory_bytes} % of the node's memory"
        fix = "plan for less growth, or allow a lower " + naming("probability")
        raise InvalidArgument(what, where=naming("growth"), fix=fix)
    return AdviceReport(
        kubernetes_version=profile.version_text,
        node_memory_bytes=needs.memory_bytes,
        node=NodeAdvice(**asdict(settings), reasons=tuple(node_reasons(settings, needs))),
        assumptions=(*of_version(profile), *assumptions),
    )


def _withheld_bytes(needs: NodeNeeds) -> int:
    """Return how much memory reservations and thresholds keep from pods."""
    settings = node_settings(needs)
    reserved = reservations(needs, settings.soft_bytes)
    return reserved.kube_memory_bytes + reserved.system_memory_bytes + settings.hard_bytes


# ---- sized -----------------------------------------------------------------------------------------------------------


def identity_of(found: FoundWorkload) -> Identity:
    """Return the identity of a workload."""
    namespace, _, name = found.workload.pod.key.partition("/")
    return Identity(namespace, found.workload.kind, name)


def without_owned(found: Iterable[FoundWorkload]) -> Iterator[FoundWorkload]:
    """Yield the workloads that no other of them has made: of a Deployment, its ReplicaSets and pods are left out."""
    every = [(each, each.workload.metadata) for each in found]
    names = {(each.workload.kind, metadata.namespace_or_default, metadata.name) for each, metadata in every}
    for each, metadata in every:
        makers = ((kind, metadata.namespace_or_default, name) for kind, name in controllers(metadata))
        if names.isdisjoint(makers):
            yield each


class _Adviser:
    """Workloads under the policies among the objects."""

    def __init__(self, objects: Objects, goal: Goal | None, node_memory_bytes: int | None, profile: Profile) -> None:
        self._objects, self._goal, self._profile = objects, goal, profile
        self._node_memory_bytes = node_memory_bytes
        self._autoscalers = Autoscalers(objects)
        self.to_create: dict[str, PriorityTier] = {}

    def sized(self, samples: Sequence[ContainerSamples], descriptions: Sequence[DescribedWorkload]) -> list[Candidate]:
        """Return what the workloads that something is known about should have, by name."""
        objects = self._objects
        described = {description.name: description for description in descriptions}
        # A dump of a cluster has Deployments and the pods they have made: advice is about what made them.
        found = {identity_of(workload): workload for workload in without_owned(objects.latest())}
        own: dict[Identity, DescribedWorkload | None] = {}
        for identity, workload in found.items():
            objects.tolerate(workload, tolerated(workload.workload, Question.SURVIVAL, objects.written(workload)))
            own[identity] = described.get(f"{identity.namespace}/{identity.name}") or described.get(identity.name)
        existing, used = set(found), {each.name for each in own.values() if each is not None}
        for name, entry in described.items():
            if name not in used:
                created = _created(entry)[0]
                found[identity_of(created)], own[identity_of(created)] = created, entry
        if not found:
            fix = "name manifests with " + naming("files") + ", or descriptions with " + naming("describe")
            raise InputError("nothing to advise about", fix=fix)
        matched = match_samples({identity: each.workload.pod for identity, each in found.items()}, samples)
        objects.note(*_unmatched(matched.unmatched, samples))
        chosen = [identity for identity in sorted(found) if objects.takes(found[identity])]
        candidates = []
        for identity in chosen:
            workload, known = found[identity], own[identity]
            usages = matched.usages.get(identity, {})
            description = self._annotated(workload) if known is None else known.description
            if known is not None and not usages:
                usages = _expected(known, workload)
            if self._goal is not None or description is not None or usages:
                candidates.append(self._sized(workload, description, usages, is_new=identity not in existing))
        if not candidates:
            self._refuse_all(len(chosen))
        return candidates

    def _annotated(self, found: FoundWorkload) -> Description | None:
        metadata, pod = found.workload.metadata, found.workload.pod.metadata
        try:
            return description_from_annotations({**metadata.annotations, **pod.annotations})
        except InputError as error:
            self._objects.refuse(found, f"{error.where}: {error.what}", error.fix)
            return None

    def _refuse_all(self, count: int) -> None:
        if self._objects.errors:
            raise InputError("nothing left to advise about", fix="fix the errors above")
        annotated = f"annotate {'it' if count == 1 else 'them'} with podqos.dev/latency-sensitive, or give "
        fix = annotated + naming("describe") + " or " + naming("usage")
        raise InputError(f"no usage or description for {counted(count, 'workload')}", fix=fix)

    def _sized(
        self,
        found: FoundWorkload,
        description: Description | None,
        usages: Mapping[str, UsageHistory],
        *,
        is_new: bool,
    ) -> Candidate:
        """Return what one workload should have."""
        goal, workload, written = self._goal, found.workload, found.workload.pod
        before, _ = self.stored(found, written)
        recommendation = priority_class = None
        if description is not None:
            used_bytes = sum(max(usage.memory_bytes, default=0) for usage in usages.values())
            is_daemon_set = workload.kind == DAEMON_SET
            recommendation = recommend(description, used_bytes=used_bytes, is_daemon_set=is_daemon_set)
            if goal is Goal.GUARANTEED:
                recommendation = replace(recommendation, qos_class=QOSClass.GUARANTEED)
            existing = self._objects.cluster(found.source).policies.priority_classes
            priority_class, is_missing = priority_class_for(recommendation.tier, existing)
            if is_missing:
                self.to_create[priority_class] = recommendation.tier
        advice = advise_pod(
            written if goal is None else _as_known(written, before),
            class_for(goal, classify(before, self._profile).qos_class, is_measured=bool(usages)),
            usages,
            recommendation,
            Asked(
                burst=BurstPattern.STEADY if description is None else description.burst_pattern,
                priority_class=priority_class,
                caution=caution_for(goal),
            ),
        )
        if not is_new:
            advice = with_room_for_settings(advice, workload, self._objects.plain(found), usages)
        if goal is not None:
            advice = toward(goal, advice, usages)
        advice = self._within_bounds(advice, found, usages)
        after, refusal = self.stored(found, advice.pod)
        return Candidate(
            found=found,
            identity=identity_of(found),
            usages=usages,
            before=None if is_new else before,
            advice=advice,
            after=after,
            refusal=refusal,
            description=description,
            recommendation=recommendation,
            priority_class=priority_class,
        )

    def _within_bounds(self, advice: PodAdvice, found: FoundWorkload, usages: Mapping[str, UsageHistory]) -> PodAdvice:
        """Return advice within the bounds of a namespace and an autoscaler, as far as what was used fits them."""
        ranges = tuple(self._policies(found).limit_ranges)
        autoscaler = self._autoscalers.vertical(found)
        containers = []
        for own in advice.containers:
            held = bounded(ResourceRequirements(own.requests, own.limits), ranges, autoscaler, own.container)
            least = 0 if own.memory_bytes is None else own.memory_bytes.most
            if own.setting is not None:
                least = max(least, own.setting.least_limit_bytes or 0)
            limit = held.resources.limits.get(MEMORY)
            if held.changes and (limit is None or limit.value >= least):
                usage = usages.get(own.container)
                amounts = with_amounts(own, usage, held.resources.requests, held.resources.limits)
                containers.append(replace(amounts, bounded=held.changes))
            else:
                containers.append(own)
        return advice if tuple(containers) == advice.containers else with_containers(advice, tuple(containers))

    def others(self, advised: Iterable[Candidate]) -> dict[Identity, tuple[Workload, Pod]]:
        """Return the other workloads of the files, which have places in the orders too, with their pods as stored."""
        known = {candidate.identity for candidate in advised}
        others = {}
        for found in without_owned(self._objects.latest(warn=False)):
            identity = identity_of(found)
            if identity not in known:
                pod, refusal = self.stored(found, found.workload.pod)
                if refusal and not found.workload.is_live:
                    self._objects.refuse(found, refusal)
                else:
                    others[identity] = found.workload, pod
        return others

    def stored(self, found: FoundWorkload, pod: Pod) -> tuple[Pod, str]:
        """Return a pod as the API server would store it, or as far as it gets, and why no further."""
        policies = self._policies(found)
        created = tuple(PriorityClass(ObjectMeta(tier.name), tier.value) for tier in self.to_create.values())
        policies = replace(policies, priority_classes=(*policies.priority_classes, *created))
        admission = admit(pod, policies, self._profile, question=Question.SURVIVAL)
        refusal = admission.refusal
        return admission.pod, "" if refusal is None else refusal.message

    def _policies(self, found: FoundWorkload) -> Policies:
        return self._objects.namespace_policies(found.source).of(identity_of(found).namespace)

    def gate(self, sized: Sequence[Candidate]) -> CheckAll:
        """Return what says which findings of the checks are new with advice: the checks that ``podqos check`` runs."""
        objects = self._objects
        made = [priority_class_object(tier) for tier in self.to_create.values()]
        made += [
            _deployment(f"{each.identity.namespace}/{each.identity.name}") for each in sized if each.before is None
        ]
        for number, value in enumerate(made):
            objects = objects.with_text(f"(new {number})", yaml_bytes(value))
        options = CheckOptions(profile=self._profile, node_memory_bytes=self._node_memory_bytes)
        known: set[tuple[str, ...]] | None = None

        def worrying(pods: Mapping[Identity, Pod]) -> Iterator[Finding]:
            found = (
                replace(each, workload=replace(each.workload, pod=pods.get(identity_of(each), each.workload.pod)))
                for each in objects.workloads
            )
            for finding in Checked(objects.only(found), options).findings:
                if finding.suppression is None and finding.severity is not FindingSeverity.INFO:
                    yield finding

        def checked(pods: Mapping[Identity, Pod]) -> dict[Identity, str]:
            nonlocal known
            if not pods:
                return {}
            if known is None:
                known = {_key(finding) for finding in worrying({})}
            refused: dict[Identity, str] = {}
            for finding in worrying(pods):
                if _key(finding) not in known:
                    text = f"{finding.facts.sentence(finding.container or '')} ({finding.check})"
                    for identity in _at_fault(finding, pods):
                        refused.setdefault(identity, text)
            return refused

        return checked

    def advice(self, end: Candidate, drift: WorkloadDrift, nodes: Sequence[Node]) -> WorkloadAdvice:
        """Return what is left of the advice about one workload, as published."""
        told, recommendation, workload = with_words(drift), end.recommendation, end.found.workload
        scaler = self._autoscalers.horizontal(end.found)
        replicas = replicas_on(workload, nodes, self._profile)
        autoscaler = ""
        if scaler is not None and end.before is not None:
            shares = (metric for metric in scaler.resource_metrics if metric.utilization)
            if any(_requested(end.before, each) != _requested(end.after, each) for each in shares):
                autoscaler = f"{scaler.metadata.namespace_or_default}/{scaler.metadata.name}"
        because: tuple[Because, ...] = ()
        if recommendation is not None:
            because = recommendation.because
        elif end.before is not None and end.used_bytes and end.advice.qos_class is QOSClass.BURSTABLE:
            is_raised = classify(end.before).qos_class is QOSClass.BEST_EFFORT
            because = (Because.USES_MEMORY,) if is_raised else ()
        return WorkloadAdvice(
            workload=str(end.identity),
            source=end.found.source,
            description=end.description,
            like="" if recommendation is None else recommendation.like,
            because=because,
            reasons=tuple(REASONS[each] for each in because),
            wanted_class=end.advice.qos_class,
            before=told.before,
            after=told.after,
            priority_class=end.priority_class,
            containers=end.advice.containers,
            moved_ahead=told.moved_ahead,
            moved_back=told.moved_back,
            refusal=end.refusal,
            replicas=replicas,
            is_withheld=end.is_withheld,
            distance=distance(end.advice.containers),
            effect=_effect(end.before, end.after, replicas),
            tried=end.trial,
            resize=told.resize,
            autoscaler=autoscaler,
        )


def _requested(pod: Pod, metric: ResourceMetric) -> list[Quantity | None]:
    own = (each for each in pod.running_containers if metric.container in {"", each.name})
    return [each.resources.requests.get(metric.name) for each in own]


def _key(finding: Finding) -> tuple[str, ...]:
    return finding.check, finding.subject.kind, finding.subject.key, finding.container or ""


def _at_fault(finding: Finding, pods: Collection[Identity]) -> Collection[Identity]:
    """Return the workload that a finding is about, or all that may have caused one about something else."""
    subject = finding.subject
    own = [each for each in pods if (each.kind, f"{each.namespace}/{each.name}") == (subject.kind, subject.key)]
    return own or [each for each in pods if subject.namespace in {"", each.namespace}]


def _as_known(written: Pod, stored: Pod) -> Pod:
    """Return a pod in which containers without any amounts have those that the policies of the cluster give them."""
    given = {container.name: container for container in (*stored.spec.containers, *stored.spec.init_containers)}

    def filled(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(container, resources=given[container.name].resources)
            if container.name in given and container.resources == NO_RESOURCES
            else container
            for container in containers
        )

    spec = written.spec
    own = {"containers": filled(spec.containers), "init_containers": filled(spec.init_containers)}
    return replace(written, spec=replace(spec, **own))


def with_room_for_settings(
    advice: PodAdvice, workload: Workload, written: Plain, usages: Mapping[str, UsageHistory]
) -> PodAdvice:
    """Return advice that leaves each program what its own settings let it take; ``written`` is the whole object."""
    spec = workload.pod.spec
    paths = {
        container.name: f"spec.{field}[{index}]"
        for field, own in zip(_LISTS, (spec.containers, spec.init_containers), strict=True)
        for index, container in enumerate(own)
    }
    containers = []
    for own in advice.containers:
        path = paths[own.container]
        container = at_path(written, workload.at(path))
        usage = usages.get(own.container, UsageHistory())
        most_bytes = 0 if own.memory_need is None else own.memory_need.most_bytes
        setting = (
            unread_setting(path, own.limits_before)
            if workload.is_live and isinstance(container, dict) and _OF_SETTINGS.isdisjoint(container)
            else program_setting(container, path, own.requests_before, own.limits_before, most_bytes)
        )
        if setting is not None:
            had_limit = MEMORY in own.limits_before
            requests, limits, setting = with_room(setting, own.requests, own.limits, had_limit=had_limit)
            if setting.decides and MEMORY in requests and MEMORY in limits:
                # What was requested until now is enough; less may be too little beside such a limit.
                before = {**own.limits_before, **own.requests_before}.get(MEMORY, requests[MEMORY])
                least = ceil(limits[MEMORY].value / (CheckOptions().memory_ratio * _MIB)) * _MIB
                requests[MEMORY] = max(requests[MEMORY], min(before, Quantity.of_units(least, "BinarySI")))
            own = replace(with_amounts(own, usage, requests, limits), setting=setting)  # noqa: PLW2901 - the same
        containers.append(own)
    return with_containers(advice, tuple(containers))


def _end(sized: Candidate, end: Candidate) -> Candidate:
    """Return what is left of advice after its trial, in words, with the priority class that goes with it."""
    stays = sized.before is not None and end.advice.pod is end.written
    has_class = not end.is_withheld and end.written.spec.priority_class_name == sized.priority_class
    trial = end.trial
    if trial is not None:
        words = trial_words(trial, end.usages.values(), is_withheld=end.is_withheld, refusal=end.refusal)
        trial = replace(trial, text=words)
    priority_class = sized.priority_class if has_class or not stays else None
    return replace(end, trial=trial, priority_class=priority_class, refusal=sized.refusal)


def _advised(end: Candidate) -> Advised:
    used = {name: percentile(usage.memory_bytes, 95) for name, usage in end.usages.items() if usage.memory_bytes}
    return Advised(end.identity, end.before, end.after, used)


def _effect(before: Pod | None, after: Pod, replicas: int | None) -> Effect:
    """Return what becomes of the requests of a workload; pods as the API server stores them."""
    per_replica = _requests(after) - (Amounts() if before is None else _requests(before))
    return Effect(
        now=None if before is None else _pod_amounts(before),
        advised=_pod_amounts(after),
        per_replica=per_replica,
        total=None if replicas is None else per_replica.times(replicas),
    )


def _requests(pod: Pod) -> Amounts:
    requests = pod_requests(pod)
    return Amounts(
        requests[CPU].milli_value if CPU in requests else 0, requests[MEMORY].value if MEMORY in requests else 0
    )


def _pod_amounts(pod: Pod) -> PodAmounts:
    """Return what a pod requests and is limited to as a whole: not at all where a container has no limit."""

    def both(amounts: ResourceList) -> ResourceList:
        return {name: amounts[name] for name in (CPU, MEMORY) if name in amounts}

    own = pod.spec.resources
    limits = {
        name: amount
        for name, amount in both(pod_limits(pod)).items()
        if (own is not None and own.limits.get(name))
        or all(container.resources.limits.get(name) for container in pod.running_containers)
    }
    return PodAmounts(both(pod_requests(pod)), limits)


def _added(ends: Iterable[Candidate], workloads: Iterable[WorkloadAdvice]) -> dict[str, dict[str, Quantity]]:
    """Return what all pods of a namespace request more, as a quota counts it."""
    added: dict[str, Amounts] = {}
    for end, advice in zip(ends, workloads, strict=True):
        if advice.effect is not None:
            more, namespace = advice.effect.total or advice.effect.per_replica, end.identity.namespace
            added[namespace] = added.get(namespace, Amounts()) + more
    return {
        namespace: {
            f"requests.{CPU}": Quantity.of_milli(max(0, more.cpu_milli)),
            f"requests.{MEMORY}": Quantity.of_units(max(0, more.memory_bytes), "BinarySI"),
        }
        for namespace, more in added.items()
    }


def _unmatched(names: Sequence[str], samples: Sequence[ContainerSamples]) -> Iterator[Problem]:
    """Yield what samples are of no workload; monitoring may see thousands of pods that are none of ours."""
    places = {f"{sample.pod} {sample.container}".strip(): sample.where for sample in reversed(samples)}
    for name in names[:_UNMATCHED_TOLD]:
        yield Problem(places[name], 0, 0, Severity.WARNING, "", f"no workload matches the samples of {name}")
    if len(names) > _UNMATCHED_TOLD:
        what = f"nor those of {counted(len(names) - _UNMATCHED_TOLD, 'more container')}"
        yield Problem(places[names[_UNMATCHED_TOLD]], 0, 0, Severity.WARNING, "", what)


def _expected(described: DescribedWorkload, found: FoundWorkload) -> Mapping[str, UsageHistory]:
    """Return what the only container of a workload is expected to use: it counts where nothing was measured."""
    containers, memory, cpu = found.workload.pod.running_containers, described.memory, described.cpu
    if len(containers) != 1 or (memory is None and cpu is None):
        return {}
    memory_bytes = () if memory is None else (memory.value,)
    cpu_milli = () if cpu is None else (cpu.milli_value,)
    return {containers[0].name: UsageHistory(memory_bytes, cpu_milli, is_expected=True)}


# ---- written ---------------------------------------------------------------------------------------------------------


def priority_class_object(tier: PriorityTier) -> dict[str, Plain]:
    """Return a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": tier.name},
        "value": tier.value,
        "globalDefault": False,
        "description": tier.description,
    }


def _created(described: DescribedWorkload) -> tuple[FoundWorkload, Plain]:
    """Make a Deployment for a workload of which there is no manifest."""
    path = f"{described.source or '(described)'} {described.name}"
    objects = Objects().with_text(path, yaml_bytes(_deployment(described.name, described.image)))
    if not objects.workloads:
        raise InputError(f"{described.name!r} is not a valid workload name", fix="write name or namespace/name")
    (found,) = objects.workloads
    return found, objects.plain(found)


def _deployment(named: str, image: str = "") -> dict[str, Plain]:
    namespace, slash, name = named.rpartition("/")
    metadata: dict[str, Plain] = {"name": name, **({"namespace": namespace} if slash else {})}
    labels: dict[str, Plain] = {"app.kubernetes.io/name": name}
    container: dict[str, Plain] = {"name": name, "image": image or name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def new_objects(report: AdviceReport, descriptions: Sequence[DescribedWorkload] = ()) -> list[dict[str, Plain]]:
    """Return the objects that do not exist yet: priority classes, and workloads that are only described."""
    advised = {workload.workload: workload for workload in report.workloads if workload.before is None}
    made = [priority_class_object(tier) for tier in report.priority_classes]
    for found, value in map(_created, descriptions):
        advice = advised.get(str(identity_of(found)))
        if advice is not None and not advice.is_withheld:
            for edit in _edits(found.workload, advice):
                value = with_field(value, parse_path(edit.path), plain_value(edit.value))  # noqa: PLW2901 - the same
            assert isinstance(value, dict)
            made.append(value)
    return made


def advised_patches(objects: Objects, report: AdviceReport) -> list[tuple[CheckedObject, ObjectPatch]]:
    """Return a patch for every object that advice changes; one may hold several workloads."""
    changed: dict[tuple[str, Place], tuple[FoundWorkload, list[FieldEdit]]] = {}
    for found, edits in _changed(objects, report):
        changed.setdefault((found.source, found.place), (found, []))[1].extend(edits)
    patches = []
    for found, edits in changed.values():
        patch = object_patch(objects.plain(found), edits)
        metadata = found.workload.metadata
        if patch is not None:
            name = metadata.name or metadata.generate_name
            patches.append((CheckedObject(found.workload.kind, name, metadata.namespace_or_default), patch))
    return patches


def resizable(report: AdviceReport) -> list[str]:
    """Return the pods, as ``namespace/name``, that can be resized in place as they are advised."""
    advised = ((advice.workload, advice.resize) for advice in report.workloads)
    return [
        name.removeprefix("Pod ")
        for name, resize in advised
        if resize is not None and resize.outcome is not Resizing.REFUSED and name.startswith("Pod ")
    ]


class EditedFile(Struct, frozen=True):
    """A file with advice written into it, or why that cannot be done."""

    source: str
    before: bytes
    outcome: Edited | CannotEdit
    workloads: tuple[str, ...]
    """Those that change in it."""


def edited_files(objects: Objects, report: AdviceReport, sources: Sequence[str]) -> list[EditedFile]:
    """Return the files with the advice about their workloads written into them; only the lines that change do."""
    texts = {source.path: source.data for source in objects.sources}
    edits: dict[str, list[ObjectEdit]] = {source: [] for source in sources}
    names: dict[str, list[str]] = {source: [] for source in sources}
    for found, own in _changed(objects, report):
        if found.source in edits:
            edits[found.source] += [ObjectEdit(found.place, edit.path, plain_value(edit.value)) for edit in own]
            names[found.source].append(str(identity_of(found)))
    return [
        EditedFile(source, texts[source], apply_edits(texts[source], own), tuple(names[source]))
        for source, own in edits.items()
    ]


def _changed(objects: Objects, report: AdviceReport) -> Iterator[tuple[FoundWorkload, list[FieldEdit]]]:
    """Yield the workloads of files that advice changes, with the fields that do."""
    advised = {workload.workload: workload for workload in report.workloads}
    for found in objects.latest(warn=False):
        advice = advised.get(str(identity_of(found)))
        edits = [] if advice is None else _edits(found.workload, advice)
        if edits:
            yield found, edits


def _edits(workload: Workload, advice: WorkloadAdvice) -> list[FieldEdit]:
    """Return the fields of an object that advice changes, and nothing else."""
    spec, edits = workload.pod.spec, []
    if advice.priority_class is not None and advice.priority_class != spec.priority_class_name:
        edits.append(FieldEdit(workload.at("spec.priorityClassName"), advice.priority_class or None))
        if spec.priority is not None:
            edits.append(FieldEdit(workload.at("spec.priority"), None))
    by_name = {container.container: container for container in advice.containers}
    for field, containers in zip(_LISTS, (spec.containers, spec.init_containers), strict=True):
        for index, container in enumerate(containers):
            path = workload.at(f"spec.{field}[{index}].resources")
            edits += _resource_edits(path, by_name[container.name])
    return edits


def _resource_edits(path: str, advice: ContainerAdvice) -> Iterator[FieldEdit]:
    sides = (("requests", advice.requests_before, advice.requests), ("limits", advice.limits_before, advice.limits))
    for side, before, after in sides:
        if before and not after:
            yield FieldEdit(f"{path}.{side}", None)
            continue
        for name in QOS_RESOURCES:
            amount = after.get(name)
            if before.get(name) != amount:
                yield FieldEdit(f"{path}.{side}.{name}", None if amount is None else str(amount))
