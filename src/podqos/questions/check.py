"""``podqos check``: all checks over objects: what will fail when memory runs short, with a place in its file for each.

``Checked`` has the ``report``, and what it is made of, for callers that also fix files. Checking workloads one by one
and wording what was found may be spread over cores, file by file; in between comes what needs everything at once.

Findings that say the same are reported once: of copies of a workload, and of several workloads at one place. A copy is
a workload of the same kind, namespace and name whose pods are the same but for their images, in another file: a base
and what was rendered from it, an installation in one file and in many, releases side by side. Versions that differ in
anything else are different workloads, each judged.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.relevance import rejections, with_names
from podqos.advice.checks.baseline import Baseline, BaselineEntry, ObjectKey, baseline_of, compare
from podqos.advice.checks.bundle import (
    CheckOptions,
    ClusterObjects,
    FoundAutoscaler,
    FoundBudget,
    FoundKubelet,
    LocatedWorkload,
    Resize,
)
from podqos.advice.checks.catalogue import check_names
from podqos.advice.checks.check_identity import IGNORE_ANNOTATION, ignored_names
from podqos.advice.checks.checking import CheckedWorkload, check_bundle, check_workload
from podqos.advice.checks.configuration import Ignore, ignored
from podqos.advice.checks.finding import CheckedObject, Effect, FieldEdit, Finding, FindingSeverity, SuppressedBy
from podqos.advice.checks.gate import Gate, summarize
from podqos.advice.checks.trying import tries_of_each
from podqos.advice.checks.view import CheckContext
from podqos.manifest.kinds import POLICY_GROUPS, is_kubelet
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.runtime_memory import Mention, Written, mention
from podqos.manifest.text import Place
from podqos.model.assumption import Assumption, of_version
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.node import Node
from podqos.model.pod import PodSpec
from podqos.model.profile import Profile
from podqos.model.service import GatewayRoute, Ingress, Service
from podqos.model.snapshot import NodeUsage, PodUsage
from podqos.naming import naming, published, stated_with
from podqos.objects.assumptions import (
    added_containers,
    as_written,
    missing_classes,
    node_memory,
    policy_scopes,
    unlabelled_namespaces,
    without_policies,
)
from podqos.objects.autoscaling import Autoscalers
from podqos.objects.files import STDIN, file_behind
from podqos.objects.node_pods import numbered
from podqos.objects.objects import FoundWorkload, Objects
from podqos.objects.other_objects import FoundObject, KubeletObject, decides_about_pods, is_own_policy
from podqos.objects.purposes import Purpose
from podqos.objects.scopes import enclosing
from podqos.objects.sources import Source
from podqos.objects.spreading import Input, Result, Spread, one_by_one
from podqos.orders.pods import pods_on_node
from podqos.orders.usage import UsageRow, from_usage
from podqos.qos.cgroup_values import memory_limits
from podqos.questions.findings import AlsoFound, CheckReport, FindingReport, finding_report, verdict

if TYPE_CHECKING:
    from podqos.admission.policies import ClusterPolicies
    from podqos.advice.fixes.fixing import Fixes
    from podqos.advice.fixes.patches import ObjectPatch
    from podqos.questions.patches import Replacement

Item = TypeVar("Item")
Namespaced = TypeVar("Namespaced", Service, PodDisruptionBudget)
Scoped = dict[str | None, list[Item]]
"""Objects by the directory they count in; None: everywhere."""

_OF_THE_POD = "PQ1"
_NAMESPACED = ("LimitRange", "ResourceQuota", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler")


_BELOW_LIMITS = Assumption("usage of resized pods", "below their new memory limits", stated_with("usage"))


class Checked:
    """Objects, and what was found about them.

    ``gate`` says what is reported, known and ignored; ``paths`` are files as its configuration would write them, where
    that is not how they were named. ``resized`` are workloads of the objects with other resources, as they are to be
    resized in place, ``usage`` what their pods use. ``tries_all``: fixes are asked for, and tried however many
    workloads there are. ``spread`` may check files on several cores. What is wrong with the files is among the problems
    of the objects, and of those to be resized.
    """

    def __init__(
        self,
        objects: Objects,
        options: CheckOptions | None = None,
        gate: Gate | None = None,
        *,
        resized: Objects | None = None,
        usage: Sequence[UsageRow] = (),
        tries_all: bool = False,
        paths: Mapping[str, str] | None = None,
        spread: Spread = one_by_one,
    ) -> None:
        options, gate, resized = options or CheckOptions(), gate or Gate(), resized or Objects()
        self._again = partial(
            Checked, options=options, gate=gate, usage=usage, tries_all=tries_all, paths=paths, spread=spread
        )
        self.objects, self.resized, self.options, self.gate = objects, resized, options, gate
        self._usage, self._tries_all, self._spread_over = usage, tries_all, spread
        self._sources = {source.path: source for source in (*objects.sources, *resized.sources)}
        self._mentions: dict[tuple[str, int], Mention | None] = {}
        autoscalers = Autoscalers(objects)
        workloads = [_located(found, autoscalers, objects) for found in objects.workloads]
        memory_bytes, assumed = node_memory(options.node_memory_bytes, objects.of(Node))
        around = _Around(objects, memory_bytes)
        whole = around.whole
        for source in objects.sources:
            objects.note(*_misspelt(source), *_unknown_checks(source))
        objects.check_policies()
        resizes = self._resizes(workloads)
        units = {source.path: source.scope or "" for source in objects.sources}
        for source in resized.sources:  # which may be among the objects, and then belong to their directory
            units.setdefault(source.path, source.scope or "")
        by_scopes: dict[tuple[str, ...], CheckContext] = {}

        def context_of(path: str) -> CheckContext:
            scopes = around.scopes(path)
            if scopes not in by_scopes:
                by_scopes[scopes] = CheckContext(around.applying_to(path), options, resizes, units)
            return by_scopes[scopes]

        for path in units:
            context_of(path)
        context = CheckContext(whole, options, resizes, units)
        found = check_bundle(self._results(workloads, context_of), context, context_of)
        checked = (*(workload.subject for workload in workloads), *whole.subjects)
        left_out = _left_out(objects, workloads, whole.subjects)
        unread = _unread_kubelets(objects, whole.subjects)
        judged = [
            checked_object
            for checked_object in checked
            if checked_object.source in self._sources and checked_object not in left_out | unread
        ]
        self.files = len({checked_object.source for checked_object in judged})
        """How many files these are in."""
        self._copied_from = _copies(workloads)
        self.subjects = tuple(checked_object for checked_object in judged if checked_object not in self._copied_from)
        """Everything that was checked; of workloads with copies in other files the first."""
        self.copies = len(judged) - len(self.subjects)
        have_pods = {workload.subject for workload in workloads}
        self.with_pods = tuple(subject for subject in self.subjects if subject in have_pods)
        """Of these, what has pods."""
        self.left_out = len(left_out)
        """How many count and are not judged."""
        self.assumptions: tuple[Assumption, ...] = (
            *of_version(options.profile),
            *_later_rules(objects, options.profile),
            *(assumed if self.subjects else ()),
            *without_policies(objects),
            *objects.assumptions,
            *missing_classes(_unknown_classes(workloads, context_of), objects),
            *policy_scopes(objects),
            *unlabelled_namespaces(objects, whole.demands + options.demands),
            *added_containers({found.workload.kind for found in objects.workloads}),
            *as_written(objects),
            *((_BELOW_LIMITS,) if any(map(_is_lowered_unmeasured, resizes)) else ()),
        )
        about_files = [
            finding for finding in found if finding.subject.source in self._sources and finding.subject not in left_out
        ]
        self._purposes = {path: source.purpose for path, source in self._sources.items() if source.purpose is not None}
        lowered = [_lowered(finding, self._purposes.get(finding.subject.source)) for finding in about_files]
        compared = compare(_without_ignored(lowered, gate.ignore, paths or {}), gate.baseline, self.object_keys)
        self.findings = compared.findings
        """All of them; known and ignored ones are marked."""
        self.stale: tuple[BaselineEntry, ...] = compared.stale
        """Entries of the baseline that are no longer found."""

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with the files."""
        return sorted({*self.objects.problems, *self.resized.problems})

    @property
    def unread(self) -> list[str]:
        """The files of which something could not be read."""
        return sorted({problem.source for problem in self.problems if problem.severity is Severity.ERROR})

    @property
    def cluster(self) -> str:
        """The name of the cluster whose objects were checked; empty where they are of files."""
        return next((source.cluster for source in self.objects.sources if source.cluster), "")

    @property
    def named_subjects(self) -> tuple[CheckedObject, ...]:
        """Everything that was checked, with what people know its source by."""
        return tuple(replace(subject, source=self._sources[subject.source].name) for subject in self.subjects)

    @property
    def object_keys(self) -> set[ObjectKey]:
        """What was checked, as a baseline names it."""
        return {(subject.kind, subject.namespace, subject.name) for subject in self.subjects}

    @property
    def open(self) -> list[Finding]:
        """The findings that are neither suppressed nor hidden."""
        return [finding for finding in self.findings if self.gate.is_open(finding)]

    def new_baseline(self) -> tuple[int, Baseline]:
        """Return a baseline of all findings, and how many they are; entries about objects not checked stay."""
        known = [
            finding
            for finding in self.findings
            if self.gate.is_severe(finding)
            and (finding.suppression is None or finding.suppression.by is SuppressedBy.BASELINE)
        ]
        unseen = [entry for entry in self.gate.baseline.findings if entry.object_key not in self.object_keys]
        return len(known), Baseline(tuple(sorted([*baseline_of(known).findings, *unseen])))

    @cached_property
    def report(self) -> CheckReport:
        """What is reported, in words, with line and column, in the order of the files."""
        items = tuple(self._reports())
        return CheckReport(
            items=items,
            summary=replace(
                summarize(self.findings, self.gate, (item.severity for item in items if item.suppression is None)),
                files=self.files,
                objects=len(self.subjects),
                stale_baseline_entries=len(self.stale),
                copies=self.copies,
                unread=len(self.unread),
                lowered=sum(item.purpose is not None and item.suppression is None for item in items),
            ),
            kubernetes_version=self.options.profile.version_text,
            fail_on=self.gate.fail_on,
            notes=tuple(problem.worded(published) for problem in self.problems if problem.severity is Severity.WARNING),
            assumptions=self.assumptions,
            verdict=verdict(items),
            cluster=self.cluster,
        )

    def _reports(self) -> Iterator[FindingReport]:
        by_source = self._reported()

        def report_file(path: str) -> list[FindingReport]:
            name, purpose = self._sources[path].name, self._purposes.get(path)
            return [
                finding_report(
                    told.finding,
                    name,
                    self._position(told.finding),
                    tuple(map(self._also, told.also)),
                    purpose if told.finding.is_lowered else None,
                )
                for told in by_source[path]
            ]

        for reports in self._spread(report_file, list(by_source)):
            yield from reports

    def _reported(self) -> dict[str, list[_Gathered]]:
        """Return what is reported by file, in the order of the files."""
        by_source: dict[str, list[_Gathered]] = {path: [] for path in self._sources}
        reported = (finding for finding in self.findings if self.gate.is_reported(finding))
        for told in _gathered(reported, self._copied_from, lambda path: bool(self._sources[path].cluster)):
            by_source[told.finding.subject.source].append(told)
        return {path: group for path, group in by_source.items() if group}

    def _also(self, finding: Finding) -> AlsoFound:
        subject = finding.subject
        name = self._sources[subject.source].name
        return AlsoFound(
            subject.kind, subject.namespace, subject.name, finding.container, name, *self._position(finding)
        )

    def _position(self, finding: Finding) -> tuple[int, int]:
        place = finding.subject.place
        return (1, 1) if place is None else self._sources[finding.subject.source].locate(place, finding.path)

    # ---- fixing -----------------------------------------------------------------------------------------------------

    def text(self, path: str) -> bytes:
        """Return what a file held when it was read."""
        return self._sources[path].data

    def fix(self) -> tuple[Fixes, Checked]:
        """Apply every patch that ``is_applied``; return what changes, and what is found in the texts after it."""
        from podqos.advice.fixes.fixing import fix

        after, checked_texts = self, dict[str, bytes]()

        def recheck(texts: Mapping[str, bytes]) -> list[Finding]:
            nonlocal after, checked_texts
            objects, resized = self.objects.with_texts(texts), self.resized.with_texts(texts)
            after = self._again(objects, resized=resized)
            checked_texts = dict(texts)
            return after.open

        fixes = fix(self.open, self.text, recheck)
        written = {file.source: file.after for file in fixes.files}
        if written != checked_texts:  # what was tried last did not help
            recheck(written)
        return fixes, after

    def replacements(self) -> list[Sequence[Replacement]]:
        """Return what to replace in its file for each reported finding; nothing where that is not safe."""
        from podqos.questions.patches import replacements

        return [
            () if self._sources[path].cluster or file_behind(path) else replacements(told.finding, self.text(path))
            for path, group in self._reported().items()
            for told in group
        ]

    def patches(self) -> list[tuple[CheckedObject, ObjectPatch]]:
        """Return one patch for each fixable object."""
        from podqos.advice.fixes.patches import object_patch

        edits: dict[CheckedObject, dict[str, FieldEdit]] = {}
        for finding in sorted(self.open, key=lambda finding: finding.check):
            if finding.patch.is_applied:
                wanted = edits.setdefault(finding.subject, {})
                for edit in finding.patch.edits:
                    wanted.setdefault(edit.path, edit)
        patches = []
        for subject, wanted in sorted(edits.items(), key=lambda item: (item[0].source, item[0].kind, item[0].key)):
            assert subject.place is not None
            patch = object_patch(self._sources[subject.source].plain(subject.place), wanted.values())
            if patch is not None:
                patches.append((subject, patch))
        return patches

    # ---- checking ----------------------------------------------------------------------------------------------------

    def _results(
        self, workloads: Sequence[LocatedWorkload], context_of: Callable[[str], CheckContext]
    ) -> list[CheckedWorkload]:
        keep_pods = len(workloads) <= self.options.compare_up_to
        tries = tries_of_each(len(workloads), is_asked=self._tries_all)
        by_source: dict[str, list[LocatedWorkload]] = {}
        for workload in workloads:
            by_source.setdefault(workload.subject.source, []).append(workload)

        def check_group(group: list[LocatedWorkload]) -> tuple[list[CheckedWorkload], list[Problem]]:
            context = context_of(group[0].subject.source)
            results: list[CheckedWorkload] = []
            problems: list[Problem] = []
            for workload in group:
                subject = workload.subject
                assert subject.place is not None
                about = f" in the checks of {subject.kind} {subject.key}"
                with self._sources[subject.source].isolated(subject.place, problems, about):
                    results.append(
                        check_workload(
                            workload, context, keep_pod=keep_pods, written=self._written(subject), tries=tries
                        )
                    )
            return results, problems

        groups = self._spread(check_group, list(by_source.values()))
        self.objects.note(*(problem for _, problems in groups for problem in problems))
        return [result for results, _ in groups for result in results]

    def _written(self, subject: CheckedObject) -> Written | None:
        """Return the whole object, where its text mentions what only commands and environments say."""
        source, place = self._sources[subject.source], subject.place
        if place is None:
            return None
        # All objects of a list have the same text, which may be long.
        key = subject.source, place.chunk.start
        if key not in self._mentions:
            self._mentions[key] = mention(source.lookup.chunk_text(place.chunk))
        found = self._mentions[key]
        if found is not None and place.path and place.chunk.notation == "json":
            found = mention(source.lookup.json_text(place), found.marks)
        return None if found is None else Written(lambda: source.plain(place), found.harmless_bytes)

    def _spread(self, task: Callable[[Input], Result], inputs: Sequence[Input]) -> Sequence[Result]:
        return self._spread_over(task, inputs, sum(len(source.data) for source in self._sources.values()))

    def _resizes(self, workloads: Iterable[LocatedWorkload]) -> list[Resize]:
        """Return what is to be resized: the new version of each workload beside the pod as it is."""
        running = {_key(workload): workload for workload in workloads}
        measured = self._measured(workloads) if self._usage else {}
        resizes = []
        for found in self.resized.workloads:
            new = _located(found, Autoscalers(self.resized), self.resized)
            old = running.get(_key(new))
            if old is None:
                what = f"no {new.subject.kind} {new.subject.key} to resize"
                source = self._sources[found.source]
                fix = "give it with " + naming("files") + ", as it is now"
                self.resized.note(source.problem(found.place, ("metadata", "name"), what, fix))
            else:
                resizes.append(Resize(old.workload.pod, new, tuple(measured.get(_key(old), ()))))
        return resizes

    def _measured(self, workloads: Iterable[LocatedWorkload]) -> dict[tuple[str, str, str], list[PodUsage]]:
        """Return what the pods of each workload use, where that is known."""
        named, taken = [row.pod for row in self._usage], set[str]()
        pods = [
            (_key(each), entry) for each in workloads for entry in numbered(pods_on_node(each.workload, named), taken)
        ]
        found = from_usage([entry for _, entry in pods], self._usage, NodeUsage(0)).pods
        measured: dict[tuple[str, str, str], list[PodUsage]] = {}
        for (key, _), usage in zip(pods, found, strict=True):
            if usage.stats is not None:
                measured.setdefault(key, []).append(usage)
        return measured


def _is_lowered_unmeasured(resize: Resize) -> bool:
    """Whether a resize lowers a memory limit of a pod whose usage is not known."""
    before, after = memory_limits(resize.old), memory_limits(resize.new.workload.pod)
    return not resize.measured and any(limit < before.get(name, limit + 1) for name, limit in after.items())


def _lowered(finding: Finding, purpose: Purpose | None) -> Finding:
    """Return a finding; in tests, examples and what is vendored, none of which is run for long, it is an info.

    That an example cannot be created at all is an error there, too; in a test it may be what is tested. The policies of
    an example may be those of another one.
    """
    if purpose is None or finding.severity is FindingSeverity.INFO:
        return finding
    is_rejected = finding.consequence.effect is Effect.NOT_CREATED and finding.check.startswith(_OF_THE_POD)
    if purpose is Purpose.EXAMPLE and is_rejected:
        return finding
    return replace(finding, severity=FindingSeverity.INFO, is_lowered=True)


def _later_rules(objects: Objects, profile: Profile) -> tuple[Assumption, ...]:
    if not objects.kubelets:
        return ()
    from podqos.objects.kubelet_node import later_rules

    rules = (later_rules(kubelet.settings.notation, profile) for kubelet in objects.kubelets)
    return tuple(dict.fromkeys(assumed for rule in rules for assumed in rule))


def _located(found: FoundWorkload, autoscalers: Autoscalers, objects: Objects) -> LocatedWorkload:
    metadata = found.workload.metadata
    name = metadata.name or metadata.generate_name
    subject = CheckedObject(found.workload.kind, name, metadata.namespace, found.source, found.place)
    scaling = autoscalers.found_horizontal(found) if autoscalers else None
    scaled_by = None if scaling is None else FoundAutoscaler(scaling[1], _other(scaling[0], metadata.namespace))
    workload = found.workload
    # A part of a manifest is not held to what the rest of it may say.
    rejected = () if found.place.taken_for else rejections(workload, objects.written(found))
    return LocatedWorkload(replace(workload, pod=with_names(workload.pod)), subject, scaled_by, rejected)


def _left_out(
    objects: Objects, workloads: Iterable[LocatedWorkload], others: Iterable[CheckedObject]
) -> set[CheckedObject]:
    """Return what counts and is not judged."""
    selection = objects.selection
    if selection is None:
        return set()
    neighbours = {workload.subject for workload in workloads if not selection.takes(workload.workload)}
    return neighbours | {
        other for other in others if not selection.takes_object(other.kind, other.namespace, other.name)
    }


def _unread_kubelets(objects: Objects, others: Iterable[CheckedObject]) -> set[CheckedObject]:
    """Return the kubelets whose settings cannot be read, about which nothing was found out."""
    read = {(kubelet.found.source.path, kubelet.found.other.place) for kubelet in objects.kubelets}
    unread = {
        (found.source.path, found.other.place)
        for found in objects.others
        if is_kubelet(found.other.kind, found.other.api_version)
    } - read
    return {other for other in others if (other.source, other.place) in unread}


# ---- what says the same ---------------------------------------------------------------------------------------------


class _Gathered(Struct, frozen=True, gc=False):
    """A finding, and those that say the same."""

    finding: Finding
    also: list[Finding]


def _copies(workloads: Iterable[LocatedWorkload]) -> dict[CheckedObject, CheckedObject]:
    """Return the workloads that are copies, each with the one it is a copy of, which comes first."""
    named: dict[tuple[str, str], list[LocatedWorkload]] = {}
    for workload in workloads:
        if not workload.workload.is_live:
            named.setdefault((workload.subject.kind, workload.subject.key), []).append(workload)
    found: dict[CheckedObject, CheckedObject] = {}
    for versions in named.values():
        different: list[LocatedWorkload] = []
        for version in versions if len(versions) > 1 else ():
            first = next((other for other in different if _is_copy(version, other)), None)
            if first is None:
                different.append(version)
            else:
                found[version.subject] = first.subject
    return found


def _is_copy(one: LocatedWorkload, other: LocatedWorkload) -> bool:
    own, others = one.workload, other.workload
    is_elsewhere = one.subject.source != other.subject.source
    return is_elsewhere and own.replicas == others.replicas and _same(own.pod.spec, others.pod.spec)


def _same(one: PodSpec, other: PodSpec) -> bool:
    return one == other or _without_images(one) == _without_images(other)


def _without_images(spec: PodSpec) -> PodSpec:
    containers, init_containers = (
        tuple(replace(container, image="", image_pull_policy=None) for container in group)
        for group in (spec.containers, spec.init_containers)
    )
    return replace(spec, containers=containers, init_containers=init_containers)


def _gathered(
    findings: Iterable[Finding],
    copied_from: Mapping[CheckedObject, CheckedObject],
    is_live: Callable[[str], bool],
) -> list[_Gathered]:
    """Return the findings in their order, each with later ones that say the same; ``is_live`` of a source."""
    kept: list[_Gathered] = []
    by_place: dict[tuple[object, ...], list[_Gathered]] = {}
    for finding in findings:
        first = copied_from.get(finding.subject, finding.subject) if copied_from else finding.subject
        where: tuple[object, ...] = (first.kind, first.key)
        if first.place is not None and not is_live(first.source):
            where = first.position
        place = (finding.check, finding.severity, finding.suppression, first.source, where, finding.path)
        alike = by_place.setdefault(place, [])
        same = next((other for other in alike if other.finding.facts == finding.facts), None)
        if same is None:
            same = _Gathered(finding, [])
            alike.append(same)
            kept.append(same)
        else:
            same.also.append(finding)
    return kept


# ---- what surrounds the workloads -----------------------------------------------------------------------------------


class _Around:
    """Everything but the workloads. What was found in a directory counts there and below, like a policy."""

    def __init__(self, objects: Objects, node_memory_bytes: int) -> None:
        self._objects = objects
        namespace = objects.namespace
        self._services = _by_scope(
            (found, _in_namespace(service, namespace)) for found, service in objects.found(Service)
        )
        self._routes = _by_scope((*_routes(objects, Ingress), *_routes(objects, GatewayRoute)))
        self._budgets = _by_scope(
            (found, FoundBudget(_in_namespace(budget, namespace), _other(found, namespace)))
            for found, budget in objects.disruption_budgets()
        )
        self._nodes = _by_scope(objects.found(Node))
        self._kubelets = _by_scope((kubelet.found, _kubelet(kubelet, namespace)) for kubelet in objects.kubelets)
        self._demands = _by_scope((policy.found, policy.policy) for policy in objects.own_policies)
        self._subjects = _by_scope(
            (found, _other(found, namespace))
            for found in objects.others
            if decides_about_pods(found.other) and not (found.is_stored and is_own_policy(found.other))
        )
        groups = (
            *(self._services, self._routes, self._budgets, self._nodes, self._kubelets, self._demands),
            self._subjects,
        )
        everywhere = dict.fromkeys(scope for group in groups for scope in group)
        self._scopes = frozenset(scope for scope in everywhere if scope is not None)
        self._of_folders: dict[str, tuple[str, ...]] = {}
        self.whole = self._within(objects.cluster(STDIN), everywhere, node_memory_bytes, None)
        """Without regard to directories."""

    def scopes(self, path: str) -> tuple[str, ...]:
        """Return the directories of which something applies to what a file holds."""
        if path == STDIN:
            return ()
        folder = self._objects.folder(path)
        if folder not in self._of_folders:
            self._of_folders[folder] = tuple(sorted({*enclosing(folder, self._scopes), *self._objects.scopes(path)}))
        return self._of_folders[folder]

    def applying_to(self, path: str) -> ClusterObjects:
        """Return what surrounds the objects of one file."""
        policies = {(source.path, place) for source, place in self._objects.policy_places(path)}
        scopes = (None, *self.scopes(path))
        return self._within(self._objects.cluster(path), scopes, self.whole.node_memory_bytes, policies)

    def _within(
        self,
        cluster: ClusterPolicies,
        scopes: Iterable[str | None],
        node_memory_bytes: int,
        policies: set[tuple[str, Place]] | None,
    ) -> ClusterObjects:
        def here(items: Scoped[Item]) -> tuple[Item, ...]:
            return tuple(each for scope in scopes for each in items.get(scope, ()))

        return ClusterObjects(
            cluster=cluster,
            services=here(self._services),
            routes=dict(here(self._routes)),
            disruption_budgets=here(self._budgets),
            nodes=here(self._nodes),
            kubelets=here(self._kubelets),
            demands=here(self._demands),
            node_memory_bytes=node_memory_bytes,
            subjects=tuple(
                checked_object
                for checked_object in here(self._subjects)
                if policies is None
                or checked_object.kind not in POLICY_GROUPS
                or (checked_object.source, checked_object.place) in policies
            ),
        )


def _by_scope(found: Iterable[tuple[FoundObject, Item]]) -> Scoped[Item]:
    by_scope: Scoped[Item] = {}
    for where, item in found:
        by_scope.setdefault(where.source.scope, []).append(item)
    return by_scope


def _routes(
    objects: Objects, model: type[Ingress | GatewayRoute]
) -> Iterator[tuple[FoundObject, tuple[tuple[str, str], str]]]:
    """Yield the Services that users are led to, each with what leads them."""
    for found, route in objects.found(model):
        for namespace, name in route.backends():
            target = namespace or route.metadata.namespace or objects.namespace, name
            yield found, (target, f"{route.kind} {route.metadata.name}")


def _kubelet(each: KubeletObject, namespace: str) -> FoundKubelet:
    settings = each.settings
    return FoundKubelet(settings.configuration, _other(each.found, namespace), settings.notation, settings.arguments)


def _in_namespace(item: Namespaced, namespace: str) -> Namespaced:
    metadata = item.metadata
    return item if metadata.namespace else replace(item, metadata=replace(metadata, namespace=namespace))


def _other(found: FoundObject, namespace: str) -> CheckedObject:
    other, path = found.other, found.source.path
    metadata = other.metadata
    own = metadata.namespace or (namespace if other.kind in _NAMESPACED else "")
    # A kubelet's configuration is a file and has no other name.
    name = metadata.name or metadata.generate_name or posixpath.basename(path)
    return CheckedObject(other.kind, name, own, path, other.place)


def _unknown_classes(
    workloads: Iterable[LocatedWorkload], context_of: Callable[[str], CheckContext]
) -> Iterator[tuple[str, str]]:
    """Yield the classes that pods name and that were not given; of priority classes PQ305 tells, where it can."""
    for found in workloads:
        spec = found.workload.pod.spec
        if (spec.priority_class_name or spec.runtime_class_name) and not found.workload.is_stored:
            for missing in context_of(found.subject.source).missing_classes(found.workload.pod):
                yield missing.kind, missing.name


def _misspelt(source: Source) -> Iterator[Problem]:
    """Yield a warning for each object whose kind is probably misspelt."""
    for other in source.reading.others:
        if decides_about_pods(other):
            continue
        from podqos.manifest.known_kinds import meant_kind

        meant = meant_kind(other.kind, other.api_version)
        if meant is not None:
            what, fix = f'unknown kind "{other.kind}", so it is not checked', f"did you mean {meant}?"
            yield source.problem(other.place, "kind", what, fix, severity=Severity.WARNING)


def _unknown_checks(source: Source) -> Iterator[Problem]:
    """Yield a warning for each check that an annotation tells to ignore and that does not exist."""
    reading = source.reading
    for workload, place in zip(reading.workloads, reading.places, strict=True):
        for name in ignored_names(workload.metadata.annotations):
            known = check_names()
            if name not in known:
                from podqos.manifest.fields import suggestion

                path = ("metadata", "annotations", IGNORE_ANNOTATION)
                what, fix = f'no check "{name}"', suggestion(name, known)
                yield source.problem(place, path, what, fix, severity=Severity.WARNING)


def _without_ignored(findings: list[Finding], ignore: Sequence[Ignore], paths: Mapping[str, str]) -> list[Finding]:
    """Return the findings; ignored ones are marked."""
    if not ignore:
        return findings
    marked = []
    for finding in findings:
        source = finding.subject.source
        reason = None if finding.suppression else ignored(finding, ignore, paths.get(source, source))
        marked.append(finding if reason is None else replace(finding, suppression=reason))
    return marked


def _key(found: LocatedWorkload) -> tuple[str, str, str]:
    return found.subject.kind, found.subject.namespace, found.subject.name
