"""Advise class, priority and sizes of workloads from their descriptions and usage, and a kubelet's settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from podqos.admission.chain import admit
from podqos.admission.policies import Policies
from podqos.admission.relevance import Question, tolerated
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.finding import FieldEdit, Finding, FindingSeverity
from podqos.advice.sizing.applying import Asked, PodAdvice, advise_pod, priority_class_for
from podqos.advice.sizing.description import (
    DescribedWorkload,
    description_from_annotations,
)
from podqos.advice.sizing.effect import Advised, effect
from podqos.advice.sizing.goals import Goal, caution_for, class_for, toward
from podqos.advice.sizing.matching import match_samples
from podqos.advice.sizing.matrix import (
    Because,
    BurstPattern,
    Description,
    PriorityTier,
    Recommendation,
    recommend,
)
from podqos.advice.sizing.node_settings import NodeNeeds, reservations
from podqos.advice.sizing.node_settings import advise_node as node_settings
from podqos.advice.sizing.samples import ContainerSamples
from podqos.advice.sizing.severity import distance
from podqos.advice.sizing.sizing import UsageHistory, percentile
from podqos.advice.sizing.tried import WorkloadTrial
from podqos.answers.advice import AdviceReport, NodeAdvice, WorkloadAdvice
from podqos.answers.advice_effects import Amounts, effect_of, total_of
from podqos.answers.advice_ground import Ground, ground_of, replicas_on, without_owned
from podqos.answers.advice_ladder import Candidate, CheckAll, Climbed, climb
from podqos.answers.advice_replay import recording_of
from podqos.answers.advice_surroundings import scales_on_requests, short_quotas, with_room_for_settings, within_bounds
from podqos.answers.advice_trial import Trials, TriedWorkload
from podqos.answers.advised_edits import edits_of
from podqos.answers.advised_objects import edited_object, priority_class_object
from podqos.answers.check import Checked, CheckRequest
from podqos.answers.drift import overtakings
from podqos.answers.node_options import NodeKeywords, NodeOptions
from podqos.answers.place import PlaceOptions
from podqos.errors import InputError, InvalidArgument
from podqos.manifest.encoding import yaml_bytes
from podqos.manifest.plain import Plain
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.text import Place
from podqos.model.assumption import Assumption, of_version
from podqos.model.node import Node
from podqos.model.pod import Container, ObjectMeta, Pod, QOSClass
from podqos.model.policy import PriorityClass, ResourceQuota
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import NO_RESOURCES, ResourceList
from podqos.naming import naming, stated_with
from podqos.objects.assumptions import KUBELET_SETTINGS, cluster_assumptions, node_memory
from podqos.objects.autoscaling import Autoscalers
from podqos.objects.kubelet_node import DEFAULT_KUBELET, judged_cgroups, rules_of
from podqos.objects.objects import FoundWorkload, Objects
from podqos.placement.workloads import DAEMON_SET
from podqos.qos.classes import classify
from podqos.survival.drift.drift import Identity, WorkloadChange
from podqos.wording import counted
from podqos.words.advice import REASONS, node_reasons

USAGE = Assumption("unmeasured usage", "the pods' requests", stated_with("usage"))

_UNMATCHED_TOLD = 3
"""So many pods without a workload are named."""


class AdviceRequest(NodeOptions, frozen=True, kw_only=True):
    """What is known about workloads, and the node that they are compared on."""

    samples: Sequence[ContainerSamples] = ()
    """What containers used."""
    descriptions: Sequence[DescribedWorkload] = ()
    assumptions: tuple[Assumption, ...] = ()
    """What is assumed about the samples."""
    goal: Goal | None = None
    """What all workloads are to be made into, whether or not something is known about them."""
    node_count: int | None = None
    """How many nodes there are besides those among the objects."""
    node_capacity: ResourceList = field(default_factory=dict)
    """What each of them has."""

    @property
    def placing(self) -> PlaceOptions:
        """How pods are placed."""
        return PlaceOptions(
            node_count=self.node_count, node_capacity=self.node_capacity, kubelet=self.kubelet, profile=self.profile
        )


class AdviceKeywords(NodeKeywords, total=False):
    """``AdviceRequest`` as keyword arguments, but for what is known about workloads."""

    goal: Goal | None
    node_count: int | None
    node_capacity: ResourceList


def advise(objects: Objects, request: AdviceRequest) -> AdviceReport:
    """Advise class, priority and sizes of every workload that something is known about.

    What does not pass its trial is not advised.
    """
    profile = request.profile
    objects.check_kubelets()
    advising = _Adviser(objects, request)
    sized = [advising.advise(subject) for subject in advising.subjects(request)]
    others = tuple(advising.others(sized))
    ground = ground_of(objects, request.placing)
    trials = advising.trials(sized, others, ground, request.samples)
    climbed = advising.tried(sized, others, trials)
    results = [_after(result, climbed) for result in sized]
    nodes = objects.of(Node) if ground is None else ground.nodes
    memory_bytes, assumptions = node_memory(request.node_memory_bytes, nodes)
    kubelet = request.kubelet or DEFAULT_KUBELET
    settings = judged_cgroups(kubelet, memory_bytes=memory_bytes, profile=profile)
    advised = [*map(_advised, results), *others]
    drifts = effect(advised, settings, profile)
    if any(each.before is not None and not each.memory_bytes for each in advised):
        assumptions += (USAGE,)
    if not kubelet.is_stated:
        assumptions += (KUBELET_SETTINGS,)
    workloads = tuple(
        _with_effect(
            advising.surrounded(
                result,
                replace(
                    _workload_advice(result, drifts[result.subject.identity]),
                    replicas=replicas_on(result.subject.found.workload, nodes, profile),
                ),
            ),
            result,
        )
        for result in results
    )
    named = {workload.priority_class for workload in workloads}
    classes = tuple(tier for name, tier in advising.to_create.items() if name in named)
    return AdviceReport(
        kubernetes_version=profile.version_text,
        node_memory_bytes=memory_bytes,
        workloads=workloads,
        priority_classes=classes,
        assumptions=(*rules_of(kubelet, profile), *assumptions, *cluster_assumptions(objects), *request.assumptions),
        goal=request.goal,
        tried=climbed.whole,
        total=total_of(workload.effect for workload in workloads if workload.effect is not None),
        short_quotas=short_quotas(objects.of(ResourceQuota), _added(results, workloads)),
    )


def _added(results: Sequence[_Result], workloads: Sequence[WorkloadAdvice]) -> dict[str, Amounts]:
    """Return what all pods of a namespace request more."""
    added: dict[str, Amounts] = {}
    for result, advice in zip(results, workloads, strict=True):
        if advice.effect is not None:
            more, namespace = advice.effect.total or advice.effect.per_replica, result.subject.identity.namespace
            before = added.get(namespace, Amounts())
            added[namespace] = Amounts(before.cpu_milli + more.cpu_milli, before.memory_bytes + more.memory_bytes)
    return added


def advised_manifests(
    objects: Objects, report: AdviceReport, descriptions: Sequence[DescribedWorkload] = (), *, patches: bool = False
) -> list[dict[str, Plain]]:
    """Return the objects that advice asks for: priority classes, then every workload as advised.

    With ``patches`` only what changes, as strategic merge patches; a new workload is whole all the same.
    """
    found = {str(identity_of(workload)): workload for workload in objects.latest(warn=False)}
    new = {str(identity_of(new.found)): new for new in map(_created, descriptions)}
    manifests = [priority_class_object(priority_class) for priority_class in report.priority_classes]
    edited: dict[tuple[str, Place], tuple[Plain, list[FieldEdit], bool]] = {}
    for advice in report.workloads:
        own = found.get(advice.workload)
        if own is None and advice.is_withheld:
            continue
        one = new[advice.workload].found if own is None else own
        value = new[advice.workload].value if own is None else objects.plain(own)
        _, edits, _ = edited.setdefault((one.source, one.place), (value, [], patches and own is not None))
        edits += edits_of(one.workload, advice)
    made = (edited_object(value, edits, patches=is_patch) for value, edits, is_patch in edited.values())
    return [*manifests, *(manifest for manifest in made if manifest is not None)]


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


def identity_of(found: FoundWorkload) -> Identity:
    """Return the identity of a workload."""
    namespace, _, name = found.workload.pod.key.partition("/")
    return Identity(namespace, found.workload.kind, name)


# ---- workloads and what is known about them ----------------------------------------------------------------------


class _Subject(Struct, frozen=True):
    """A workload that is advised, and what is known about it."""

    found: FoundWorkload
    identity: Identity
    description: Description | None
    usages: Mapping[str, UsageHistory]
    is_new: bool
    """Whether there is no manifest of it."""

    @property
    def used_bytes(self) -> int:
        """The most memory that its containers were measured to use."""
        return sum(max(usage.memory_bytes, default=0) for usage in self.usages.values())


class _Result(Struct, frozen=True):
    """The advice about one workload."""

    subject: _Subject
    advice: PodAdvice
    recommendation: Recommendation | None
    priority_class: str | None
    before: Pod
    after: Pod
    refusal: str
    trial: WorkloadTrial | None = None
    is_withheld: bool = False

    @property
    def older(self) -> Pod | None:
        """The pod as it is; None for a workload that does not exist yet."""
        return None if self.subject.is_new else self.before


class _Adviser:
    """Workloads under the policies among the objects."""

    def __init__(self, objects: Objects, request: AdviceRequest) -> None:
        self._objects, self._profile, self._goal = objects, request.profile, request.goal
        self._node_memory_bytes = request.node_memory_bytes
        self._autoscalers = Autoscalers(objects)
        self.to_create: dict[str, PriorityTier] = {}

    def subjects(self, request: AdviceRequest) -> list[_Subject]:
        """Return the workloads that something is known about, by name."""
        described = {description.name: description for description in request.descriptions}
        # A dump of a cluster has Deployments and the pods they have made: advice is about what made them.
        found = {identity_of(workload): workload for workload in without_owned(self._objects.latest())}
        for workload in found.values():
            errors = tolerated(workload.workload, Question.SURVIVAL, self._objects.written(workload))
            self._objects.tolerate(workload, errors)
        by_identity = {identity: _described(identity, described) for identity in found}
        existing = set(found)
        used = {workload.name for workload in by_identity.values() if workload is not None}
        for name, entry in described.items():
            if name not in used:
                created = _created(entry).found
                found[identity_of(created)] = created
                by_identity[identity_of(created)] = entry
        if not found:
            fix = "name manifests with " + naming("files") + ", or descriptions with " + naming("describe")
            raise InputError("nothing to advise about", fix=fix)
        matched = match_samples(
            {identity: workload.workload.pod for identity, workload in found.items()}, request.samples
        )
        for problem in _unmatched(matched.unmatched, request.samples):
            self._objects.note(problem)
        subjects = [
            self._subject(found[identity], by_identity[identity], matched.usages.get(identity, {}))
            for identity in sorted(found)
        ]
        chosen = [subject for subject in subjects if self._objects.takes(subject.found)]
        is_about_all = self._goal is not None
        known = [subject for subject in chosen if is_about_all or subject.description is not None or subject.usages]
        if not known:
            self._refuse_all(len(chosen))
        return [replace(subject, is_new=subject.identity not in existing) for subject in known]

    def _subject(
        self, found: FoundWorkload, described: DescribedWorkload | None, usages: Mapping[str, UsageHistory]
    ) -> _Subject:
        identity = identity_of(found)
        if described is not None:
            return _Subject(found, identity, described.description, _expected(described, found, usages), is_new=False)
        metadata, pod = found.workload.metadata, found.workload.pod.metadata
        description = None
        try:
            description = description_from_annotations({**metadata.annotations, **pod.annotations})
        except InputError as error:
            self._objects.refuse(found, f"{error.where}: {error.what}", error.fix)
        return _Subject(found, identity, description, usages, is_new=False)

    def _refuse_all(self, count: int) -> None:
        if self._objects.errors:
            raise InputError("nothing left to advise about", fix="fix the errors above")
        annotated = f"annotate {'it' if count == 1 else 'them'} with podqos.dev/latency-sensitive, or give "
        fix = annotated + naming("describe") + " or " + naming("usage")
        raise InputError(f"no usage or description for {count} workload{'s' if count > 1 else ''}", fix=fix)

    def others(self, advised: Iterable[_Result]) -> Iterator[Advised]:
        """Yield the other workloads of the files, which have places in the orders too."""
        known = {result.subject.identity for result in advised}
        for found in without_owned(self._objects.latest(warn=False)):
            identity = identity_of(found)
            if identity not in known:
                pod, refusal = self._stored(found.workload.pod, found)
                if refusal and not found.workload.is_live:
                    self._objects.refuse(found, refusal)
                else:
                    yield Advised(identity, pod, pod)

    def advise(self, subject: _Subject) -> _Result:
        """Return what one workload should have."""
        description, written = subject.description, subject.found.workload.pod
        before, _ = self._stored(written, subject.found)
        recommendation = self._recommendation(subject)
        priority_class = None
        if recommendation is not None:
            existing = self._objects.cluster(subject.found.source).policies.priority_classes
            priority_class, is_missing = priority_class_for(recommendation.tier, existing)
            if is_missing:
                self.to_create[priority_class] = recommendation.tier
        current = classify(before, self._profile).qos_class
        advice = advise_pod(
            written if self._goal is None else _as_known(written, before),
            class_for(self._goal, current, is_measured=bool(subject.usages)),
            subject.usages,
            recommendation,
            Asked(
                burst=BurstPattern.STEADY if description is None else description.burst_pattern,
                priority_class=priority_class,
                caution=caution_for(self._goal),
            ),
        )
        if not subject.is_new:
            workload, value = subject.found.workload, self._objects.plain(subject.found)
            advice = with_room_for_settings(advice, workload, value, subject.usages)
        if self._goal is not None:
            advice = toward(self._goal, advice, subject.usages)
        ranges = self._policies(subject.found).limit_ranges
        advice = within_bounds(advice, ranges, self._autoscalers.vertical(subject.found), subject.usages)
        after, refusal = self._stored(advice.pod, subject.found)
        return _Result(subject, advice, recommendation, priority_class, before, after, refusal)

    def _recommendation(self, subject: _Subject) -> Recommendation | None:
        """Return what the description of a workload asks for, as far as the goal leaves it to decide."""
        if subject.description is None:
            return None
        is_daemon_set = subject.found.workload.kind == DAEMON_SET
        found = recommend(subject.description, used_bytes=subject.used_bytes, is_daemon_set=is_daemon_set)
        return replace(found, qos_class=QOSClass.GUARANTEED) if self._goal is Goal.GUARANTEED else found

    def trials(
        self,
        sized: Sequence[_Result],
        others: Sequence[Advised],
        ground: Ground | None,
        samples: Sequence[ContainerSamples],
    ) -> Trials:
        """Return what tries versions of all workloads, on nodes if there are any."""
        found = {result.subject.identity: result.subject.found for result in sized}
        found.update((identity_of(workload), workload) for workload in without_owned(self._objects.latest(warn=False)))
        workloads = [
            TriedWorkload(result.subject.identity, result.subject.found.workload, result.older, result.subject.usages)
            for result in sized
        ]
        workloads += [TriedWorkload(other.identity, found[other.identity].workload, other.before) for other in others]
        recording = recording_of(samples, {identity: workload.workload.pod for identity, workload in found.items()})
        return Trials(workloads, ground, recording, self._profile)

    def tried(self, sized: Sequence[_Result], others: Sequence[Advised], trials: Trials) -> Climbed:
        """Try what was sized, among all other workloads."""
        found = {result.subject.identity: result.subject.found for result in sized}
        candidates = [
            Candidate(
                identity=result.subject.identity,
                written=result.subject.found.workload.pod,
                before=result.older,
                advice=result.advice,
                after=result.after,
                refusal=result.refusal,
                usages=result.subject.usages,
            )
            for result in sized
        ]
        return climb(
            candidates,
            trials,
            {other.identity: other.after for other in others},
            lambda identity, pod: self._stored(pod, found[identity]),
            self._gate(sized),
        )

    def _gate(self, sized: Sequence[_Result]) -> CheckAll:
        """Return what says which findings of the checks are new with advice: the checks that ``podqos check`` runs."""
        objects = self._objects
        made = [priority_class_object(tier) for tier in self.to_create.values()]
        for subject in (result.subject for result in sized if result.subject.is_new):
            name = f"{subject.identity.namespace}/{subject.identity.name}"
            made.append(
                _deployment(DescribedWorkload(name, subject.description or Description(latency_sensitive=False)))
            )
        for number, value in enumerate(made):
            objects = objects.with_text(f"(new {number})", yaml_bytes(value))
        workloads = objects.workloads
        options = CheckOptions(profile=self._profile, node_memory_bytes=self._node_memory_bytes)

        def worrying(pods: Mapping[Identity, Pod]) -> Iterator[Finding]:
            found = (
                replace(each, workload=replace(each.workload, pod=pods.get(identity_of(each), each.workload.pod)))
                for each in workloads
            )
            for finding in Checked(CheckRequest(objects=objects.only(found), options=options)).findings:
                if finding.suppression is None and finding.severity is not FindingSeverity.INFO:
                    yield finding

        known: set[tuple[str, ...]] | None = None

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

    def _stored(self, pod: Pod, found: FoundWorkload) -> tuple[Pod, str]:
        """Return a pod as the API server would store it, or as far as it gets, and why no further."""
        policies = self._policies(found)
        created = tuple(PriorityClass(ObjectMeta(tier.name), tier.value) for tier in self.to_create.values())
        policies = replace(policies, priority_classes=(*policies.priority_classes, *created))
        admission = admit(pod, policies, self._profile, question=Question.SURVIVAL)
        refusal = admission.refusal
        return admission.pod, "" if refusal is None else refusal.message

    def _policies(self, found: FoundWorkload) -> Policies:
        return self._objects.namespace_policies(found.source).of(identity_of(found).namespace)

    def surrounded(self, result: _Result, advice: WorkloadAdvice) -> WorkloadAdvice:
        """Return advice with the autoscaler whose targets are shares of the requests that change."""
        scaler = self._autoscalers.horizontal(result.subject.found)
        if scaler is None or result.older is None or not scales_on_requests(scaler, result.older, result.after):
            return advice
        return replace(advice, autoscaler=f"{scaler.metadata.namespace_or_default}/{scaler.metadata.name}")


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


def _after(sized: _Result, climbed: Climbed) -> _Result:
    """Return what is left of advice after its trial."""
    identity = sized.subject.identity
    end = climbed.ends[identity]
    stays = sized.older is not None and end.advice.pod is end.written
    has_class = not end.is_withheld and end.written.spec.priority_class_name == sized.priority_class
    return replace(
        sized,
        advice=end.advice,
        after=end.after,
        priority_class=sized.priority_class if has_class or not stays else None,
        trial=climbed.trials.get(identity),
        is_withheld=end.is_withheld,
    )


def _with_effect(advice: WorkloadAdvice, result: _Result) -> WorkloadAdvice:
    return replace(
        advice,
        is_withheld=result.is_withheld,
        distance=distance(result.advice.containers),
        effect=effect_of(result.older, result.after, advice.replicas),
        tried=result.trial,
    )


def _workload_advice(result: _Result, drift: WorkloadChange) -> WorkloadAdvice:
    subject, recommendation = result.subject, result.recommendation
    because = _because(result)
    return WorkloadAdvice(
        workload=str(subject.identity),
        source=subject.found.source,
        description=subject.description,
        like="" if recommendation is None else recommendation.like,
        because=because,
        reasons=tuple(REASONS[each] for each in because),
        wanted_class=result.advice.qos_class,
        before=drift.before,
        after=drift.after,
        priority_class=result.priority_class,
        containers=result.advice.containers,
        moved_ahead=overtakings(drift.moved_ahead, drift.workload),
        moved_back=overtakings(drift.moved_back, drift.workload),
        refusal=result.refusal,
        resize=drift.resize,
    )


def _because(result: _Result) -> tuple[Because, ...]:
    """Return why a workload has the class it is advised to have."""
    if result.recommendation is not None:
        return result.recommendation.because
    was = None if result.older is None else classify(result.older).qos_class
    is_raised = was is QOSClass.BEST_EFFORT and result.advice.qos_class is QOSClass.BURSTABLE
    return (Because.USES_MEMORY,) if is_raised and result.subject.used_bytes else ()


def _advised(result: _Result) -> Advised:
    subject = result.subject
    used = {name: percentile(usage.memory_bytes, 95) for name, usage in subject.usages.items() if usage.memory_bytes}
    return Advised(subject.identity, result.older, result.after, used)


def _unmatched(names: Sequence[str], samples: Sequence[ContainerSamples]) -> Iterator[Problem]:
    """Yield what samples are of no workload; monitoring may see thousands of pods that are none of ours."""
    places = {f"{sample.pod} {sample.container}".strip(): sample.where for sample in reversed(samples)}
    for name in names[:_UNMATCHED_TOLD]:
        yield Problem(places[name], 0, 0, Severity.WARNING, "", f"no workload matches the samples of {name}")
    if len(names) > _UNMATCHED_TOLD:
        what = f"nor those of {counted(len(names) - _UNMATCHED_TOLD, 'more container')}"
        yield Problem(places[names[_UNMATCHED_TOLD]], 0, 0, Severity.WARNING, "", what)


def _described(identity: Identity, described: Mapping[str, DescribedWorkload]) -> DescribedWorkload | None:
    return described.get(f"{identity.namespace}/{identity.name}") or described.get(identity.name)


def _expected(
    described: DescribedWorkload, found: FoundWorkload, usages: Mapping[str, UsageHistory]
) -> Mapping[str, UsageHistory]:
    """Return what is known about the containers; what was expected counts where nothing was measured."""
    containers = found.workload.pod.running_containers
    if usages or len(containers) != 1 or (described.cpu is None and described.memory is None):
        return usages
    memory, cpu = described.memory, described.cpu
    expected = UsageHistory(
        () if memory is None else (memory.value,), () if cpu is None else (cpu.milli_value,), is_expected=True
    )
    return {containers[0].name: expected}


# ---- workloads that do not exist yet -----------------------------------------------------------------------------


class _New(Struct, frozen=True):
    found: FoundWorkload
    value: Plain


def _created(described: DescribedWorkload) -> _New:
    """Make a Deployment for a workload of which there is no manifest."""
    path = f"{described.source or '(described)'} {described.name}"
    objects = Objects().with_text(path, yaml_bytes(_deployment(described)))
    if not objects.workloads:
        raise InputError(f"{described.name!r} is not a valid workload name", fix="write name or namespace/name")
    (found,) = objects.workloads
    return _New(found, objects.plain(found))


def _deployment(described: DescribedWorkload) -> dict[str, Plain]:
    namespace, slash, name = described.name.rpartition("/")
    metadata: dict[str, Plain] = {"name": name, **({"namespace": namespace} if slash else {})}
    labels: dict[str, Plain] = {"app.kubernetes.io/name": name}
    container: dict[str, Plain] = {"name": name, "image": described.image or name}
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
