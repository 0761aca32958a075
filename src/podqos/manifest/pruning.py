"""Lists from an API server, reduced to what decisions need: small, and without secrets.

What the model declares is kept: environments, commands, arguments and addresses of probes are gone by construction,
also those of fields that are yet to be invented. Of the annotations only those stay that a decision reads, of the
managedFields only who resized a pod. A pruned object reads back as the same value as the whole one, but for these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Any, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields

from podqos.errors import InputError
from podqos.manifest.decode import REFUSALS
from podqos.manifest.kinds import item_type
from podqos.model.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.event import TELLING, Event
from podqos.model.jobs import CronJobSpec, JobSpec
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.metrics import NodeMetrics, PodMetrics
from podqos.model.node import Node
from podqos.model.pod import POD_RESIZE_IN_PROGRESS, POD_RESIZE_PENDING, ObjectMeta, Pod
from podqos.model.pod_fate import FatedPod
from podqos.model.policy import LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass
from podqos.model.resized import LAST_APPLIED, applied_pod
from podqos.model.selector import LabelSelector
from podqos.model.service import Ingress, Service
from podqos.model.stats import Summary


class _JobSpec(JobSpec, frozen=True, gc=False, rename="camel"):
    template: Pod = Pod()


class _JobTemplate(Struct, frozen=True, gc=False, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSpec = _JobSpec()


class _WorkloadSpec(_JobSpec, frozen=True, gc=False, rename="camel"):
    replicas: int | None = None
    selector: LabelSelector | None = None


class _CronJobSpec(CronJobSpec, frozen=True, gc=False, rename="camel"):
    job_template: _JobTemplate | None = None


class _CronJob(Struct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: _CronJobSpec = _CronJobSpec()


class _Workload(Struct, frozen=True, gc=False):
    """An object with a pod template, of any of the other kinds Kubernetes has."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _WorkloadSpec = _WorkloadSpec()


MODELS: dict[str, type[Struct]] = {
    "Pod": Pod,
    "Node": Node,
    "Namespace": Namespace,
    "LimitRange": LimitRange,
    "ResourceQuota": ResourceQuota,
    "PriorityClass": PriorityClass,
    "RuntimeClass": RuntimeClass,
    "PodDisruptionBudget": PodDisruptionBudget,
    "HorizontalPodAutoscaler": HorizontalPodAutoscaler,
    "VerticalPodAutoscaler": VerticalPodAutoscaler,
    "PodMetrics": PodMetrics,
    "NodeMetrics": NodeMetrics,
    "Service": Service,
    "Ingress": Ingress,
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"), _Workload),
    "CronJob": _CronJob,
}
"""The kinds to keep, and the type to keep of each."""
_IN_LISTS: dict[str, type[Struct]] = {**MODELS, "Pod": FatedPod, "Event": Event}
"""The same in what is written down for later questions, such as why a pod died."""

# Annotations that decisions read: who a pod is, what a check is told, and what an injector would add.
_ANNOTATIONS = ("podqos.dev/", "kubernetes.io/config.", "autoscaling.alpha.kubernetes.io/metrics")
_OF_INJECTORS = ("sidecar.istio.io/", "config.linkerd.io/", "linkerd.io/", "vault.hashicorp.com/")
_KEPT_CONDITIONS = {"DisruptionTarget", POD_RESIZE_PENDING, POD_RESIZE_IN_PROGRESS}
_LONGEST = 63
"""Maximum length of amounts, names and switches; a longer text may be a configuration."""


def pruned_list(data: bytes) -> bytes | None:
    """Return an API server's list, on one line, with what decisions read; None if no decision reads such objects."""
    try:
        envelope = _ENVELOPE.decode(data)
        model = _IN_LISTS.get(item_type(envelope.kind, envelope.api_version)[0])
        if model is None:
            return None
        items = _decoder(model, in_list=True).decode(data).items
        if model is Event:
            items = [item for item in items if item.reason in TELLING]
        elif model is FatedPod:
            _forget_small_talk(items)
    except REFUSALS as error:
        raise InputError(f"not a list from an API server: {error}") from None
    return encoded_list(envelope.api_version, envelope.kind, items)


def pruned_type(kind: str) -> Any:  # noqa: ANN401 - a type made at run time
    """Return the type that objects of a kind are read as to keep no more than what decisions read."""
    return _pruned(MODELS[kind])


def encoded_list(api_version: str, kind: str, items: Collection[Any]) -> bytes:
    """Return objects that were read as ``pruned_type`` as a list on one line; ``kind`` is that of the list."""
    for metadata in _metadata_of(items):
        if metadata:
            _prune_metadata(metadata)
    return _ENCODER.encode(_List(api_version, kind, items))


def pruned_summary(data: bytes) -> bytes:
    """Return a kubelet's statistics, on one line, with what decisions read."""
    try:
        return _ENCODER.encode(_decoder(Summary).decode(data))
    except REFUSALS as error:
        raise InputError(f"not the stats of a kubelet: {error}") from None


def pruned_kubelet(data: bytes) -> bytes:
    """Return what a kubelet answers at /configz, on one line, with what decisions read."""
    try:
        return _ENCODER.encode(_decoder(_Configz).decode(data))
    except REFUSALS as error:
        raise InputError(f"not the configuration of a kubelet: {error}") from None


def prepare_usage() -> None:
    """Make the decoders of what is said about usage, before threads need them (``cluster.pages.prepare``)."""
    for answer in (Summary, _Configz):
        _decoder(answer)
    for item in (PodMetrics, NodeMetrics):
        _decoder(item, in_list=True)


def _forget_small_talk(pods: Iterable[Any]) -> None:
    """Keep of statuses what tells of an end: messages of the kubelet's, the condition of a pod that had to go."""
    for pod in pods:
        status = pod.status
        if not status:
            continue
        if status.reason not in TELLING:
            status.message = UNSET
        if status.conditions:
            status.conditions = [
                condition for condition in status.conditions if condition.type in _KEPT_CONDITIONS
            ] or UNSET


class _Configz(Struct, frozen=True):
    kubeletconfig: KubeletConfiguration = KubeletConfiguration()


class _Envelope(Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""


class _List(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    items: Any


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_ENCODER = msgspec.json.Encoder()


def _kept(annotations: dict[str, str]) -> dict[str, str] | UnsetType:
    kept = {
        key: value
        for key, value in annotations.items()
        if key.startswith(_ANNOTATIONS) or (key.startswith(_OF_INJECTORS) and len(value) <= _LONGEST)
    }
    return kept or UNSET


def _prune_metadata(metadata: Any) -> None:  # noqa: ANN401
    """Keep the annotations that decisions read, and what shows resizes: who did it, and what the pod started with."""
    annotations = metadata.annotations or {}
    if annotations:
        metadata.annotations = _kept(annotations)
    if not metadata.managed_fields:
        return
    metadata.managed_fields = [entry for entry in metadata.managed_fields if entry.subresource == "resize"] or UNSET
    if not metadata.managed_fields:
        metadata.generation = UNSET  # the changes that it counts were no resizes
    applied = (
        applied_pod(annotations[LAST_APPLIED]) if metadata.managed_fields and LAST_APPLIED in annotations else None
    )
    if applied is not None:
        metadata.annotations = {**(metadata.annotations or {}), LAST_APPLIED: _ENCODER.encode(applied).decode()}


def _metadata_of(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the metadata of objects, and of the pods and jobs they are templates of."""
    for item in items:
        yield item.metadata
        spec = getattr(item, "spec", UNSET)
        for template in (getattr(spec, "template", UNSET), getattr(spec, "job_template", UNSET)):
            if template:
                yield from _metadata_of((template,))


# ---- the model's types, as they are written down ---------------------------------------------------------------------


@cache
def _decoder(model: type[Struct], *, in_list: bool = False) -> msgspec.json.Decoder[Any]:
    kind = _pruned(model)
    return msgspec.json.Decoder(msgspec.defstruct("_Items", [("items", _list_of(kind))]) if in_list else kind)


@cache
def _pruned(model: type[Struct]) -> Any:  # noqa: ANN401 - a type made at run time
    """Return a type with the fields of a model. What is absent stays absent, amounts and numbers stay as written."""
    declared = [
        (field.name, _type(field.type) | UnsetType, msgspec.field(default=UNSET, name=field.encode_name))
        for field in fields(model)
    ]
    return msgspec.defstruct(model.__name__, declared)


def _type(kind: Any) -> Any:  # noqa: ANN401
    """Return the type to read a field as: lists and objects of the model by their parts, the rest whatever it is."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _pruned(kind) | None
    parts = [part for part in get_args(kind) if part not in {type(None), Ellipsis}]
    if get_origin(kind) is dict and isinstance(parts[1], type) and issubclass(parts[1], Struct):
        return _map_of(_pruned(parts[1])) | None
    if len(parts) == 1 and (inner := _type(parts[0])) is not Any:
        return _list_of(inner) | None if get_origin(kind) is tuple else inner
    return Any


def _list_of(kind: Any) -> Any:  # noqa: ANN401
    return list[kind]


def _map_of(kind: Any) -> Any:  # noqa: ANN401
    return dict[str, kind]
