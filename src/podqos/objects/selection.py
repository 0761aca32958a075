"""Which workloads an answer covers: by namespace, labels, kind and name, as kubectl selects them.

A selection determines what is reported. Everything else still counts: policies apply, pods use the node and quotas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from podqos.errors import InvalidArgument
from podqos.model.pod import Workload
from podqos.model.selector import LabelSelector, LabelSelectorRequirement
from podqos.naming import naming

# kubectl's short names of what podqos judges
_SHORT = {
    "po": "pod", "rc": "replicationcontroller", "deploy": "deployment", "rs": "replicaset", "sts": "statefulset",
    "ds": "daemonset", "cj": "cronjob", "limits": "limitrange", "quota": "resourcequota", "pc": "priorityclass",
}  # fmt: skip
_KINDS = frozenset({*_SHORT.values(), "job"})
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_CONDITION = re.compile(
    r"\s*(?:(?P<not>!)?\s*(?P<alone>[\w./-]+)"
    r"|(?P<key>[\w./-]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[\w.-]*)"
    r"|(?P<set_key>[\w./-]+)\s+(?P<set>in|notin)\s*\((?P<values>[\w.,\s-]*)\))\s*(?:,|$)"
)


class Selection(Struct, frozen=True):
    """Conditions that a workload must meet, all of them."""

    namespace: str | None = None
    selector: LabelSelector = LabelSelector()
    objects: tuple[tuple[str, str], ...] = ()
    """Kinds, in lower case, and names: ``deploy/web``; any of them."""
    own_namespace: str = "default"
    """The namespace of objects without one, unless ``namespace`` is given."""

    def takes(self, workload: Workload) -> bool:
        """Whether the answer covers a workload; its pods' labels count as its own."""
        own = workload.metadata
        labels = {**workload.pod.metadata.labels, **own.labels}
        return self.takes_object(workload.kind, own.namespace, own.name or own.generate_name, labels)

    def takes_object(self, kind: str, namespace: str, name: str, labels: Mapping[str, str] | None = None) -> bool:
        """Whether the answer covers any object."""
        return (
            self.namespace in {None, namespace}
            and (not self.objects or (kind.lower(), name) in self.objects)
            and self.selector.matches(labels or {})
        )


def namespace_of(selection: Selection | None) -> str:
    """Return the namespace of objects without one."""
    return "default" if selection is None else selection.namespace or selection.own_namespace


def kind_named(text: str) -> str:
    """Return the normalized name of a kind: ``deploy``, ``Deployments`` and ``deployment.apps`` are the same."""
    kind = text.lower().partition(".")[0]
    if kind.endswith("s") and not kind.endswith("ss"):
        kind = kind.removesuffix("es") if kind.endswith("sses") else kind.removesuffix("s")
    return _SHORT.get(text.lower()) or _SHORT.get(kind, kind)


def object_named(text: str) -> tuple[str, str] | None:
    """Return the kind and name of ``deploy/web``; None for other texts."""
    kind, slash, name = text.partition("/")
    found = kind_named(kind)
    return (found, name) if slash and _NAME.fullmatch(name) and found in _KINDS else None


def parse_selector(text: str) -> LabelSelector:
    """Read a label selector as kubectl does: ``app=web,tier!=cache,env in (a,b),!canary``."""
    conditions: list[LabelSelectorRequirement] = []
    position = 0
    while position < len(text):
        found = _CONDITION.match(text, position)
        if found is None or found.end() == position:
            what = f"{text[position:].strip()!r} is not a valid label selector"
            raise InvalidArgument(
                what, where=naming("selector"), fix="for example app=web,tier!=cache,'env in (a,b)',!canary"
            )
        conditions.append(_condition(found.groupdict()))
        position = found.end()
    return LabelSelector(match_expressions=tuple(conditions))


def _condition(parts: dict[str, str | None]) -> LabelSelectorRequirement:
    if parts["alone"]:
        return LabelSelectorRequirement(parts["alone"], "DoesNotExist" if parts["not"] else "Exists")
    if parts["key"]:
        operator = "NotIn" if parts["operator"] == "!=" else "In"
        return LabelSelectorRequirement(parts["key"], operator, (parts["value"] or "",))
    values = tuple(each.strip() for each in (parts["values"] or "").split(","))
    return LabelSelectorRequirement(parts["set_key"] or "", "In" if parts["set"] == "in" else "NotIn", values)
