"""Which kinds hold a pod, and where; which are policies; which hold kubelet settings.

Adding a kind is adding a line to the table. A kind belongs to an API group; a custom resource that only shares the
name (``batch.volcano.sh`` has a Job, too) is not meant.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from podqos.manifest.plain import Plain
from podqos.model.selector import LabelSelector


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
    """How many pods a controller wants, in the words of most controllers and in those of a Job."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    selector: LabelSelector | None = None

    @property
    def pods(self) -> int | None:
        """How many pods run at a time, where that is stated."""
        if self.parallelism is None:
            return self.replicas
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)


_TEMPLATE = ("spec", "template")
SELECTING = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
"""The kinds of apps/v1, which must have a selector."""
CRON_JOB = "CronJob"
BATCH = frozenset({"Job", CRON_JOB})
"""The kinds of batch/v1."""
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
        PodHolder(CRON_JOB, ("batch",), ("spec", "jobTemplate", "spec", "template")),
    )
}
NAMESPACE = "Namespace"
POLICY_GROUPS = {
    NAMESPACE: "",
    "LimitRange": "",
    "ResourceQuota": "",
    "PriorityClass": "scheduling.k8s.io",
    "RuntimeClass": "node.k8s.io",
    "ClusterResourceOverride": "operator.autoscaling.openshift.io",
    "ClusterResourceOverrideConfig": "",
}
"""The kinds that affect pods, and the API group of each."""

_KUBELETS = {
    ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"),
    ("v1", "NodeConfig"),  # of OpenShift 3
    ("machineconfiguration.openshift.io/v1", "KubeletConfig"),  # of OpenShift 4
}
# Files without a kind that are known by a field, and what they are: OpenShift's documentation shows node-config.yaml
# without its kind, and a kubelet's /configz has none.
_KNOWN_BY_FIELD = {
    "kubeletArguments": ("NodeConfig", "v1"),
    "kubeletconfig": ("KubeletConfiguration", "kubelet.config.k8s.io/v1beta1"),
}

_POLICIES_BY_LOWER_CASE = {kind.lower(): kind for kind in POLICY_GROUPS}
_BY_LOWER_CASE = {kind.lower(): holder for kind, holder in POD_HOLDERS.items()}


def group_of(api_version: str) -> str:
    """Return the API group of an apiVersion: ``apps`` of ``apps/v1``, empty of ``v1``."""
    return api_version.rpartition("/")[0]


def is_served(kind: str, value: Plain) -> bool:
    """Whether an object is one of Kubernetes' own around a pod template, in the version that is served today."""
    holder = POD_HOLDERS.get(kind)
    is_ours = holder is not None and holder.pod_path != ()
    return is_ours and isinstance(value, dict) and value.get("apiVersion") == POD_HOLDERS[kind].api_version


def is_custom_group(group: str) -> bool:
    """Whether a group can be one of custom resources: their names are domains, Kubernetes' older ones are not."""
    return "." in group


def meant_holder(kind: str) -> PodHolder | None:
    """Return the holder whose name was probably meant: ``deployment`` for ``Deployment``."""
    return _BY_LOWER_CASE.get(kind.lower())


def meant_policy(kind: str) -> str | None:
    """Return the kind of policy that was probably meant: ``LimitRange`` by ``limitrange``."""
    return _POLICIES_BY_LOWER_CASE.get(kind.lower())


def is_policy(kind: str, api_version: str) -> bool:
    """Whether an object is a policy, or was probably meant to be one: kinds of custom groups are not meant."""
    meant = meant_policy(kind)
    group = group_of(api_version)
    return meant is not None and (group == POLICY_GROUPS[meant] or not is_custom_group(group))


def is_kubelet(kind: str, api_version: str) -> bool:
    """Whether an object holds the settings of a kubelet."""
    return (api_version, kind) in _KUBELETS


def type_by_field(value: Iterable[str]) -> tuple[str, str]:
    """Return kind and apiVersion of a document that does not state them but is known by one of its fields."""
    return next((_KNOWN_BY_FIELD[name] for name in value if name in _KNOWN_BY_FIELD), ("", ""))


def item_type(list_kind: str, api_version: str) -> tuple[str, str]:
    """Return kind and apiVersion that a list gives its items: of ``PodList`` Pod, of kubectl's ``List`` none."""
    kind = list_kind.removesuffix("List")
    return (kind, api_version) if kind else ("", "")
