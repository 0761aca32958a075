"""What the API server makes of workloads in their namespaces, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import Step
from podqos.admission.chain import admit as admit_pod
from podqos.admission.coverage import not_judged
from podqos.admission.decoding import decoding_refusal, read_pod
from podqos.admission.policies import NamespacePolicies, Policies
from podqos.admission.refusal import Refusal
from podqos.admission.resource_override import PROFILES, OverrideProfile
from podqos.admission.workload_validation import workload_refusal
from podqos.admission.workloads import Admissions, Operation, WorkloadAdmission
from podqos.answers.admission import (
    AdmissionList,
    AdmissionReport,
    Locate,
    rejection_of_object,
    report,
    report_undecodable,
    report_unread,
)
from podqos.answers.resize_surroundings import ROOM_FOR_RESIZE, ResizeSurroundings
from podqos.errors import InputError, InvalidArgument
from podqos.manifest.contents import RefusedDocument
from podqos.manifest.kinds import POD_HOLDERS, group_of, is_custom_group, is_served
from podqos.manifest.plain import Plain
from podqos.manifest.text import Place
from podqos.model.assumption import Assumption, of_version
from podqos.model.pod import Pod, Workload
from podqos.model.policy import ResourceQuota
from podqos.model.profile import LATEST, Profile
from podqos.naming import naming
from podqos.objects.assumptions import cluster_assumptions, without_policies
from podqos.objects.files import STDIN
from podqos.objects.objects import Objects, in_namespace
from podqos.objects.sources import Source
from podqos.objects.spreading import Progress
from podqos.words.qos import taken_for


def admit(
    objects: Objects,
    *,
    resizes: Objects | None = None,
    override_profile: str | None = None,
    profile: Profile = LATEST,
    progress: Progress | None = None,
) -> AdmissionList:
    """Return what becomes of each workload, in the order of the files; all replicas are charged to the quotas.

    ``resizes`` are workloads of the objects with other resources: their pods are resized in place once they are
    admitted. ``override_profile`` names the generation of ClusterResourceOverride (``okd-3.9`` or ``current``), by
    default that of its object's shape. ``progress`` is called with how many workloads are done, of how many.

    Raises InputError where the policies are not valid, as the problems of the objects say.
    """
    admitting = AdmissionRun(objects, resizes, override_profile, profile)
    return admitting.whole(admitting.items(progress))


class _Item(Struct, frozen=True):
    """A workload, or an object that should be one and is not in order, and where it stands."""

    source: Source
    place: Place
    what: Workload | RefusedDocument
    namespace: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name: what is resized has the same as its resized version."""
        return self.what.kind, self.namespace, self.what.metadata.name

    @property
    def pod_path(self) -> tuple[str, ...]:
        """From the object to its pod or template."""
        if isinstance(self.what, RefusedDocument):
            return POD_HOLDERS[self.what.kind].pod_path
        return tuple(self.what.pod_path.split(".")) if self.what.pod_path else ()


class _AsStored(NamedTuple):
    """The pods of a workload as they are before a resize."""

    pod: Pod
    pods: int


class AdmissionRun:
    """Workloads on their way through the API server, one after the other."""

    def __init__(
        self, objects: Objects, resizes: Objects | None, override_profile: str | None, profile: Profile
    ) -> None:
        if resizes is not None and not profile.in_place_resize:
            version = profile.version_text
            raise InvalidArgument(
                f"Kubernetes {version} cannot resize pods in place", where=naming("resize"), fix="use 1.33 or newer"
            )
        self._objects = objects
        self._profile = profile
        self._override = PROFILES[override_profile] if override_profile else None
        self._check_policies()
        self._policies: dict[tuple[str, ...], NamespacePolicies] = {}
        self._items = list(_items(objects))
        self._is_node_missing = False
        """Whether a pod was resized whose node is not known."""
        known = {item.key for item in self._items}
        self._resizes: dict[tuple[str, str, str], _Item] = {}
        for item in [] if resizes is None else _items(resizes):
            self._resizes[item.key] = item
            if resizes is not None and item.key not in known:
                kind, namespace, name = item.key
                what = f"no {kind} {namespace}/{name} to resize"
                fix = "give it with " + naming("files") + ", as it is now"
                resizes.note(item.source.problem(item.place, ("metadata", "name"), what, fix))

    def items(self, progress: Progress | None = None) -> Iterator[AdmissionReport]:
        """Yield what becomes of each workload that the answer is about, in the order of the files."""
        for item, admission in self._admitted(progress):
            if self._takes(item):
                yield admission

    def _takes(self, item: _Item) -> bool:
        selection, what = self._objects.selection, item.what
        if selection is None:
            return True
        if isinstance(what, Workload):
            return selection.takes(what)
        return selection.takes_object(what.kind, item.namespace, what.metadata.name, what.metadata.labels)

    def _admitted(self, progress: Progress | None) -> Iterator[tuple[_Item, AdmissionReport]]:
        admissions = Admissions(self._objects.cluster(STDIN, self._override), self._profile)
        # What a quota has room for depends on all workloads; nothing else does.
        is_charged = bool(self._objects.of(ResourceQuota))
        for number, item in enumerate(self._items, 1):
            if not is_charged and not self._takes(item):
                continue
            if progress is not None:
                progress(number, len(self._items))
            if isinstance(item.what, RefusedDocument):
                value = item.source.lookup.plain(item.place)
                yield item, self._noted(self._unread(item, item.what, value), item, value)
                continue
            resized = self._resizes.get(item.key)
            old, pods = item.what.pod, 1
            if resized is None or not item.what.is_live:
                written = None if _is_custom(value := item.source.lookup.plain(item.place)) else value
                create = partial(admissions.create, item.what, self._policies_of(item), written)
                created, outcome = self._followed(item, item.what, create)
                yield item, created
                if outcome is None:
                    continue
                old, pods = outcome.first.pod, outcome.admitted
            if resized is not None and isinstance(resized.what, Workload) and pods:
                yield resized, self._resized(admissions, resized, resized.what, _AsStored(old, pods))

    def _resized(
        self, admissions: Admissions, resized: _Item, workload: Workload, stored: _AsStored
    ) -> AdmissionReport:
        """Follow a resize, through the API server and then its kubelet."""
        nodes, old = self._nodes, stored.pod
        resize = partial(admissions.resize, old, workload, stored.pods, self._policies_of(resized), nodes.known)
        admission, outcome = self._followed(resized, workload, resize)
        admission = replace(admission, operation=Operation.RESIZE)
        is_known = nodes.known.knows(old)
        self._is_node_missing = self._is_node_missing or not is_known
        if outcome is None or outcome.refusal is not None:
            return admission
        from podqos.survival.drift.resizing import keeps_scores

        new = outcome.first.pod
        pending = nodes.resized(old, new) if is_known else None
        return replace(admission, pending=pending, keeps_scores=keeps_scores(old, new, self._profile))

    @cached_property
    def _nodes(self) -> ResizeSurroundings:
        return ResizeSurroundings(self._objects, self._profile)

    def _unread(self, item: _Item, refused: RefusedDocument, value: Plain) -> AdmissionReport:
        """Report an object that podqos cannot take, in the API server's words where it rejects it as well."""
        read = read_pod(value, refused.kind, refused.api_version, item.pod_path)
        refusal, step = (read, Step.DECODING) if isinstance(read, Refusal) else (None, Step.VALIDATION)
        if isinstance(read, Pod) and is_served(refused.kind, value):
            refusal = workload_refusal(value, refused.kind)
        elif isinstance(read, Pod) and not item.pod_path:
            policies = self._policies_of(item).of(item.namespace)
            admission = admit_pod(read, policies, self._profile)
            refusal, step = admission.refusal, admission.refused_by or step
        rejection = None if refusal is None else rejection_of_object(refusal, step, _locate(item))
        return report_unread(refused, rejection, item.namespace, item.source.name)

    def _followed(
        self, item: _Item, workload: Workload, follow: Callable[[], WorkloadAdmission]
    ) -> tuple[AdmissionReport, WorkloadAdmission | None]:
        """Follow a workload that the API server can read; one that it sent itself it can."""
        value = item.source.lookup.plain(item.place)
        refusal = None
        if not workload.is_live and not _is_custom(value):
            api_version = value.get("apiVersion") if isinstance(value, dict) else None
            refusal = decoding_refusal(value, workload.kind, str(api_version or "v1"), item.pod_path)
        if refusal is not None:
            undecodable = report_undecodable(workload, refusal, item.source.name, _locate(item))
            return self._noted(undecodable, item, value), None
        outcome = follow()
        listed = self._objects.cluster(item.source.path, self._override).listed_kinds
        return self._noted(report(outcome, item.source.name, _locate(item), listed), item, value), outcome

    def _noted(self, item_report: AdmissionReport, item: _Item, value: Plain) -> AdmissionReport:
        """Say what was assumed where the text names no kind, and which fields are not judged."""
        if _is_custom(value):
            fields: tuple[str, ...] = (f"{item.what.kind} (its controller makes the pods)",)
        else:
            fields = not_judged(value, item.pod_path, self._policies_of(item).of(item.namespace).namespace)
        kind = item.place.taken_for
        return replace(item_report, notes=(taken_for(kind),) if kind else (), not_judged=fields)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the answers rest on that was not stated."""
        for item in self._items:
            if not isinstance(item.what, RefusedDocument):
                self._policies_of(item)
        return (
            *of_version(self._profile),
            *without_policies(self._objects),
            *((ROOM_FOR_RESIZE,) if self._is_node_missing else ()),
            *cluster_assumptions(self._objects),
        )

    def whole(self, items: Iterable[AdmissionReport]) -> AdmissionList:
        """Put what became of all workloads together."""
        return AdmissionList(
            items=tuple(items),
            kubernetes_version=self._profile.version_text,
            override_profile=next((policies.override_profile.name for policies in self._overriding()), None),
            assumptions=self.assumptions,
        )

    def _check_policies(self) -> None:
        """Raise an error if the policies are not valid."""
        self._objects.check_policies()
        self._objects.check_kubelets()
        errors = self._objects.policy_errors
        if errors:
            raise InputError("the policies are not valid", fix=f"first problem: {errors[0]}")
        if self._override is not None and not any(self._overriding()):
            what = "no ClusterResourceOverride in the input"
            raise InvalidArgument(
                what, where=naming("override_profile"), fix="add a ClusterResourceOverride to the files"
            )

    def _overriding(self) -> Iterator[Policies]:
        """Yield the policies of files that an override applies to."""
        for path in (STDIN, *(source.path for source in self._objects.sources)):
            policies = self._objects.cluster(path, self._override).policies
            if policies.override is not None:
                yield policies

    def _policies_of(self, item: _Item) -> NamespacePolicies:
        """Return what applies to the pods of a file; classes that the cluster may have are taken to exist."""
        scopes = self._objects.scopes(item.source.path)
        if scopes not in self._policies:
            self._policies[scopes] = policies_for(self._objects, item.source.path, self._override)
        return self._policies[scopes]


def policies_for(objects: Objects, path: str, override: OverrideProfile | None = None) -> NamespacePolicies:
    """Return what applies to the pods of a file, quotas included; classes that the cluster may have exist."""
    cluster = objects.cluster(path, override)
    assumed = objects.with_assumed_classes(cluster.policies, objects.scopes(path), cluster.known_classes)
    return NamespacePolicies(replace(cluster, policies=assumed))


def _items(objects: Objects) -> Iterator[_Item]:
    """Yield workloads and what should be one, file by file, in the order in which they stand there."""
    for source in objects.sources:
        reading = source.reading
        items = []
        for workload, place in zip(reading.workloads, reading.places, strict=True):
            own = in_namespace(workload, objects.namespace)
            items.append(_Item(source, place, own, own.metadata.namespace))
        if reading.refused:
            items += [
                _Item(source, refused.place, refused, refused.metadata.namespace or objects.namespace)
                for refused in reading.refused
            ]
            items.sort(key=lambda item: (item.place.chunk.start, item.place.document, item.place.path))
        yield from items


def _is_custom(value: Plain) -> bool:
    """Whether an object is a custom resource, in which the API server sees no pod."""
    return isinstance(value, dict) and is_custom_group(group_of(str(value.get("apiVersion", ""))))


def _locate(item: _Item) -> Locate:
    return lambda path: item.source.locate(item.place, path)
