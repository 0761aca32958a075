"""Objects without pods: which kinds are read, how, and their problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from podqos.amounts import counted, nearest
from podqos.manifest.contents import Other, Reading
from podqos.manifest.kinds import NAMESPACE, group_of, is_custom_group, is_kubelet, is_policy
from podqos.manifest.problems import Problem, Severity
from podqos.objects.sources import Source

if TYPE_CHECKING:
    from podqos.manifest.kubelet import KubeletSettings
    from podqos.model.disruption import PodDisruptionBudget
    from podqos.policy.model import Policy

Model = TypeVar("Model", bound=Struct)

# (API group, kind) → module and name of what it is read as
_MODELS = {
    ("", "Node"): ("podqos.model.node", "Node"),
    ("", "Service"): ("podqos.model.service", "Service"),
    ("policy", "PodDisruptionBudget"): ("podqos.model.disruption", "PodDisruptionBudget"),
    ("autoscaling", "HorizontalPodAutoscaler"): ("podqos.model.autoscaling", "HorizontalPodAutoscaler"),
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): ("podqos.model.autoscaling", "VerticalPodAutoscaler"),
}
# The same for kinds that only lead to a Service: they decide nothing about pods, and nothing is found about them.
_ROUTES = {
    ("networking.k8s.io", "Ingress"): ("podqos.model.service", "Ingress"),
    ("extensions", "Ingress"): ("podqos.model.service", "Ingress"),
    **{
        ("gateway.networking.k8s.io", f"{protocol}Route"): ("podqos.model.service", "GatewayRoute")
        for protocol in ("HTTP", "GRPC", "TCP", "TLS", "UDP")
    },
}
# The same for what tells of pods and decides nothing.
_TELLING = {(group, "Event"): ("podqos.model.event", "Event") for group in ("", "events.k8s.io")}


class FoundObject(Struct, frozen=True):
    """An object that holds no pod, and where it was found."""

    other: Other
    source: Source
    is_stored: bool
    """Whether the cluster has it already."""

    @property
    def is_policy(self) -> bool:
        """Whether admission depends on its kind."""
        return is_policy(self.other.kind, self.other.api_version)

    @property
    def is_decisive(self) -> bool:
        """Whether it is a policy with an effect; a namespace alone has none."""
        return self.is_policy and self.other.kind != NAMESPACE


class NotJudged(Struct, frozen=True):
    """An object whose pods cannot be read from it, and where it is."""

    kind: str
    name: str
    why: str
    hint: str
    source: str
    line: int
    column: int

    @property
    def identity(self) -> tuple[str, int, int, str, str]:
        """What distinguishes the object from others; it can have several reasons."""
        return self.source, self.line, self.column, self.kind, self.name


def not_judged(found: Iterable[NotJudged]) -> Iterator[Problem]:
    """Yield which objects are not judged: one problem for all of a kind and reason, at the first of them."""
    groups: dict[tuple[str, str], list[NotJudged]] = {}
    for item in dict.fromkeys(found):
        groups.setdefault((item.kind, item.why), []).append(item)
    for group in groups.values():
        first = group[0]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        named = f"{first.kind} {first.name}".rstrip()
        what = f"{named}{more} not judged: {first.why}"
        yield Problem(first.source, first.line, first.column, Severity.WARNING, "", what, first.hint)


def count_not_judged(found: Iterable[NotJudged]) -> str:
    """Return how many custom resources are not judged, by kind; nothing if all are."""
    kinds = Counter(identity[3] for identity in {item.identity for item in found})
    if not kinds:
        return ""
    named = ", ".join(
        f"{kind} ({count})" for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    )
    return f"{counted(kinds.total(), 'custom resource')} not judged: {named}"


def broken_fixtures(sources: Iterable[Source]) -> Iterator[Problem]:
    """Yield that files of tests are skipped: one problem for all of them, at the first."""
    paths = [source.path for source in sources if source.is_broken_fixture]
    if paths:
        more = f", here and in {counted(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
        what = f"test input: what cannot be read is skipped{more}"
        yield Problem(paths[0], 0, 0, Severity.WARNING, "", what, "name a file to see its errors")


class KubeletObject(Struct, frozen=True):
    """The settings of a kubelet in the files."""

    settings: KubeletSettings
    found: FoundObject


class PolicyObject(Struct, frozen=True):
    """A podqos policy in the files."""

    policy: Policy
    found: FoundObject


def is_own_policy(other: Other) -> bool:
    """Whether an object is a podqos policy of any version, or was probably meant to be one."""
    return group_of(other.api_version) == "podqos.dev" and nearest(other.kind, ("Policy",)) is not None


def decides_about_pods(other: Other) -> bool:
    """Whether an object is of a kind that is read: a policy, a Node, a Service, a budget, a kubelet's settings."""
    return (
        is_policy(other.kind, other.api_version)
        or (group_of(other.api_version), other.kind) in _MODELS
        or is_kubelet(other.kind, other.api_version)
        or is_own_policy(other)
    )


def is_known(model: type[Struct]) -> bool:
    """Whether a kind is read as a model other than a policy."""
    return (model.__module__, model.__name__) in {*_MODELS.values(), *_TELLING.values()}


def is_read_as(other: Other, model: type[Struct]) -> bool:
    """Whether a model is what an object is read as."""
    known = _read_as(other)
    return known is not None and known[1] == model.__name__


def _read_as(other: Other) -> tuple[str, str] | None:
    key = group_of(other.api_version), other.kind
    return _MODELS.get(key) or _ROUTES.get(key) or _TELLING.get(key)


def is_looked_up(reading: Reading) -> bool:
    """Whether something may be looked up in the text of a reading again: not in what was only counted."""
    return bool(reading.workloads or reading.problems or reading.refused or reading.unjudged) or any(
        decides_about_pods(other) or _read_as(other) is not None or is_custom_group(group_of(other.api_version))
        for other in reading.others
    )


def converted(source: Source, other: Other, model: type[Model]) -> tuple[Model | None, list[Problem]]:
    """Return an object without pods as a value, or None and its problems."""
    from podqos.manifest.decode import convert
    from podqos.manifest.examine import Examination

    problems: list[Problem] = []
    with source.isolated(other.place, problems):
        value = source.lookup.plain(other.place)
        try:
            return convert(value, model), []
        except msgspec.ValidationError:
            examination = Examination(is_live=True)
            cleaned = examination.clean(value, model, ())
        if not examination.findings:
            return convert(cleaned, model), []
        problems += [
            source.problem(other.place, finding.path, finding.what, finding.fix) for finding in examination.findings
        ]
    return None, problems


def budget_problem(source: Source, other: Other, budget: PodDisruptionBudget) -> Problem | None:
    """Return why the API server rejects a PodDisruptionBudget, if it does."""
    if budget.spec.refusal is None:
        return None
    field, what, fix = budget.spec.refusal
    return source.problem(other.place, ("spec", field), what, fix)
