"""Which kinds of objects hold a pod, and where.

Adding a kind is adding a line to the table. A kind belongs to an API group; a custom resource that only shares the
name (``batch.volcano.sh`` has a Job, too) is somebody else's.
"""

from __future__ import annotations

from msgspec import Struct


class PodHolder(Struct, frozen=True):
    """A kind that is a pod or holds the template of one."""

    kind: str
    groups: tuple[str, ...]
    """API groups that serve or served the kind; the first is today's."""
    pod_path: tuple[str, ...]
    """From the object to the pod or template; empty if the object is the pod."""

    @property
    def api_version(self) -> str:
        """What to write as apiVersion."""
        return f"{self.groups[0]}/v1" if self.groups[0] else "v1"


class Scale(Struct, frozen=True):
    """The part of a controller's spec that most of them share."""

    replicas: int | None = None


_TEMPLATE = ("spec", "template")
_WORKLOADS = ("apps", "extensions")

POD_HOLDERS: dict[str, PodHolder] = {
    holder.kind: holder
    for holder in (
        PodHolder("Pod", ("",), ()),
        PodHolder("PodTemplate", ("",), ("template",)),
        PodHolder("ReplicationController", ("",), _TEMPLATE),
        PodHolder("Deployment", _WORKLOADS, _TEMPLATE),
        PodHolder("ReplicaSet", _WORKLOADS, _TEMPLATE),
        PodHolder("StatefulSet", _WORKLOADS, _TEMPLATE),
        PodHolder("DaemonSet", _WORKLOADS, _TEMPLATE),
        PodHolder("Job", ("batch",), _TEMPLATE),
        PodHolder("CronJob", ("batch",), ("spec", "jobTemplate", "spec", "template")),
    )
}
_BY_LOWER_CASE = {kind.lower(): holder for kind, holder in POD_HOLDERS.items()}


def group_of(api_version: str) -> str:
    """Return the API group of an apiVersion: ``apps`` of ``apps/v1``, empty of ``v1``."""
    return api_version.rpartition("/")[0]


def is_custom_group(group: str) -> bool:
    """Whether a group can be one of custom resources: their names are domains, Kubernetes' older ones are not."""
    return "." in group


def meant_holder(kind: str) -> PodHolder | None:
    """Return the holder whose name was probably meant: ``deployment`` for ``Deployment``."""
    return _BY_LOWER_CASE.get(kind.lower())


def item_type(list_kind: str, api_version: str) -> tuple[str, str]:
    """Return kind and apiVersion that a list gives its items: of ``PodList`` Pod, of kubectl's ``List`` none."""
    kind = list_kind.removesuffix("List")
    return (kind, api_version) if kind else ("", "")
