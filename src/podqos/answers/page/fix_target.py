"""Which object a user edits so that a pod becomes another: what made it, and never what that has made in turn.

A ReplicaSet of a Deployment, a Job of a CronJob and the pods of both are made anew from a template, and of a pod that
runs the API server refuses most changes. Where the object is not known here its name still is, and so are the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from podqos.advice.checks.finding import FieldEdit
from podqos.answers.page.editing import patch_of
from podqos.answers.page.edits import PodEdit
from podqos.answers.page.nodes import PageNode
from podqos.answers.page.pod import PatchText
from podqos.answers.page.shown import ShownSource, owner
from podqos.answers.patches import kubectl_patch, kustomize_patch, template_lines, template_patch
from podqos.errors import InputError
from podqos.manifest.plain import format_path
from podqos.model.owners import controllers
from podqos.model.snapshot import PodUsage
from podqos.objects.objects import FoundWorkload
from podqos.placement.workloads import POD

_DEPLOYMENT, _REPLICA_SET = "Deployment", "ReplicaSet"
_MIRROR_OWNER = "Node"
"""The controller of a static pod's mirror: what is edited is a file on that node."""


class FixTarget(Struct, frozen=True):
    """An object that a user edits."""

    kind: str
    key: str
    """``namespace/name``."""
    found: FoundWorkload | None = None
    """The object; None where only its name is known."""

    @property
    def name(self) -> str:
        """As ``Deployment shop/web``; a static pod's file has no name here."""
        return f"static pod file on {self.key.partition('/')[2]}" if self.kind == _MIRROR_OWNER else self.text

    @property
    def text(self) -> str:
        """Kind and key."""
        return f"{self.kind} {self.key}"


def fix_target(page: ShownSource, at: PageNode, entry: PodUsage, found: FoundWorkload) -> FixTarget:
    """Return what is edited so that a pod, which is read from ``found``, becomes another."""
    if page.source.scenario is not None:
        kind, _, key = page.maker_of(entry.pod).partition(" ")
        return FixTarget(kind, key) if kind else FixTarget(POD, entry.pod.key, found)
    kind, key = found.workload.kind, found.workload.pod.key
    if found.workload.is_stored and at.state is not None:
        made_by = page.workload_of(at.state, entry.pod) or owner(kind, key) or f"{POD} {entry.pod.key}"
        kind, _, key = made_by.partition(" ")
    known = found if (found.workload.kind, found.workload.pod.key) == (kind, key) else page.makers.get((kind, key))
    # A dump of a cluster also has what is made by others.
    makers = [] if known is None else list(controllers(known.workload.metadata))
    if makers:
        kind, name = makers[-1]
        key = f"{key.partition('/')[0]}/{name}"
        known = page.makers.get((kind, key))
    if kind == _REPLICA_SET and known is None:
        # Without the label that tells the hash, the name of a Deployment that is known tells as much.
        known = page.makers.get((_DEPLOYMENT, key.rpartition("-")[0]))
        kind, key = (kind, key) if known is None else (_DEPLOYMENT, known.workload.pod.key)
    return FixTarget(kind, key, known)


def target_patch(page: ShownSource, target: FixTarget, edits: Sequence[PodEdit], *, resizes: bool) -> PatchText | None:
    """Return edits as patches of the object; None where they have no amounts, and for a container that was injected."""
    if target.found is None:
        patch = template_patch(target.kind, target.key, _resources(edits)) if _resources(edits) else None
        return None if patch is None else PatchText(kubectl_patch(patch), kustomize_patch(patch), "")
    try:
        fields = list(written_fields(edits, target.found))
    except InputError:
        return None
    objects = page.nodes.objects if target.found.workload.is_stored else page.declared  # a pod of its own, or a maker
    return patch_of(objects, target.found, fields, resizes=resizes)


def target_lines(target: FixTarget, edits: Iterable[PodEdit]) -> str:
    """Return the lines to write into the object, as YAML."""
    resources = _resources(edits)
    return template_lines(target.kind, target.key, resources) if resources else ""


def _resources(edits: Iterable[PodEdit]) -> dict[str, dict[str, dict[str, str | None]]]:
    resources: dict[str, dict[str, dict[str, str | None]]] = {}
    for edit in edits:
        for side, amounts in (("requests", edit.requests), ("limits", edit.limits)):
            if amounts:
                resources.setdefault(edit.container, {}).setdefault(side, {}).update(amounts)
    return resources


def written_fields(edits: Iterable[PodEdit], found: FoundWorkload) -> Iterator[FieldEdit]:
    """Yield the fields of an object that edits write, where its containers are."""
    spec = found.workload.pod.spec
    lists = (("containers", spec.containers), ("initContainers", spec.init_containers))
    places = {container.name: f"spec.{field}[{number}]" for field, of in lists for number, container in enumerate(of)}
    for edit in edits:
        if edit.container and edit.container not in places:
            raise InputError(f"{edit.pod} has no container {edit.container}", fix=f"one of {', '.join(places)}")
        path = places[edit.container] if edit.container else "spec"
        for side, amounts in (("requests", edit.requests), ("limits", edit.limits)):
            for resource, amount in amounts.items():
                key = format_path(("resources", side, resource))
                yield FieldEdit(found.workload.at(f"{path}.{key}"), amount)
