"""What the API server makes of workloads in their namespaces, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.decoding import read_pod
from podqos.admission.policies import Cluster
from podqos.admission.refusal import Refusal
from podqos.admission.resource_override import PROFILES
from podqos.admission.workloads import Admissions
from podqos.errors import InputError, InvalidOption
from podqos.library.inputs.assumptions import without_policies
from podqos.library.inputs.objects import Objects, Progress, in_namespace
from podqos.library.inputs.sources import Source
from podqos.manifest.contents import Refused
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.problems import Severity
from podqos.manifest.text import Place
from podqos.model.assumption import Assumption
from podqos.model.pod import Workload
from podqos.model.profile import LATEST, Profile
from podqos.report.admission.value import AdmissionList, AdmissionReport, Locate, report, report_unread
from podqos.report.text.words import taken_for


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
    default that of its object's shape. ``progress`` is told how many workloads are done, of how many.

    Raises InputError where the policies are not in order, as the problems of the objects say.
    """
    admitting = Admitting(objects, resizes, override_profile, profile)
    return admitting.whole(admitting.items(progress))


class _Item(Struct, frozen=True):
    """A workload, or an object that should be one and is not in order, and where it stands."""

    source: Source
    place: Place
    what: Workload | Refused
    namespace: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name: what is resized has the same as its resized version."""
        return self.what.kind, self.namespace, self.what.metadata.name


class Admitting:
    """Workloads on their way through the API server, one after the other."""

    def __init__(
        self, objects: Objects, resizes: Objects | None, override_profile: str | None, profile: Profile
    ) -> None:
        if resizes is not None and not profile.in_place_resize:
            version = ".".join(map(str, profile.version))
            raise InvalidOption(
                f"Kubernetes {version} cannot resize pods in place", where="--resize", fix="use 1.33 or newer"
            )
        self._objects = objects
        self._profile = profile
        self._cluster = _cluster(objects, override_profile)
        self._items = list(_items(objects))
        known = {item.key for item in self._items}
        self._resizes: dict[tuple[str, str, str], _Item] = {}
        for item in [] if resizes is None else _items(resizes):
            self._resizes[item.key] = item
            if resizes is not None and item.key not in known:
                kind, namespace, name = item.key
                what = f"there is no {kind} {namespace}/{name} to resize"
                fix = "give it with -f, as it is now"
                resizes.note(item.source.problem(item.place, ("metadata", "name"), what, fix))

    def items(self, progress: Progress | None = None) -> Iterator[AdmissionReport]:
        """Yield what becomes of each workload that the answer is about, in the order of the files."""
        for item, admission in self._admitted(progress):
            if self._takes(item):
                yield _noted(admission, item)

    def _takes(self, item: _Item) -> bool:
        selection, what = self._objects.selection, item.what
        if selection is None:
            return True
        if isinstance(what, Workload):
            return selection.takes(what)
        return selection.takes_object(what.kind, item.namespace, what.metadata.name, what.metadata.labels)

    def _admitted(self, progress: Progress | None) -> Iterator[tuple[_Item, AdmissionReport]]:
        admissions = Admissions(self._cluster, self._profile)
        for number, item in enumerate(self._items, 1):
            if progress is not None:
                progress(number, len(self._items))
            if isinstance(item.what, Refused):
                yield item, _unread(item, item.what)
                continue
            resized = self._resizes.get(item.key)
            old, pods = item.what.pod, 1
            if resized is None or not item.what.is_live:
                outcome = admissions.create(item.what)
                yield item, report(outcome, item.source.path, _locate(item))
                old, pods = outcome.first.pod, outcome.admitted
            if resized is not None and isinstance(resized.what, Workload) and pods:
                outcome = admissions.resize(old, resized.what, pods)
                yield resized, report(outcome, resized.source.path, _locate(resized))

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the answers rest on that nobody stated."""
        return without_policies(self._objects)

    def whole(self, items: Iterable[AdmissionReport]) -> AdmissionList:
        """Put what became of all workloads together."""
        policies = self._cluster.policies
        return AdmissionList(
            items=tuple(items),
            kubernetes_version=".".join(map(str, self._profile.version)),
            override_profile=policies.override_profile.name if policies.override else None,
            assumptions=self.assumptions,
        )


def _cluster(objects: Objects, override_profile: str | None) -> Cluster:
    """Return the policies, which must be in order."""
    cluster = objects.cluster(PROFILES[override_profile] if override_profile else None)
    errors = [problem for problem in objects.policy_problems if problem.severity is Severity.ERROR]
    if errors:
        raise InputError("the policies are not in order", fix=f"the first problem: {errors[0]}")
    if override_profile and cluster.policies.override is None:
        what = "there is no override for it"
        raise InvalidOption(what, where="--override-profile", fix="add a ClusterResourceOverride to the files")
    return cluster


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


def _noted(item_report: AdmissionReport, item: _Item) -> AdmissionReport:
    """Say what was assumed where the text names no kind."""
    kind = item.place.taken_for
    return replace(item_report, notes=(taken_for(kind),)) if kind else item_report


def _locate(item: _Item) -> Locate:
    return lambda path: item.source.lookup.locate(item.place, path)


def _unread(item: _Item, refused: Refused) -> AdmissionReport:
    path = POD_HOLDERS[refused.kind].pod_path
    read = read_pod(item.source.lookup.plain(item.place), refused.kind, refused.api_version, path)
    return report_unread(refused, read if isinstance(read, Refusal) else None, item.namespace, item.source.path)
