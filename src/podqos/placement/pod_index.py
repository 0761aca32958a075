"""The pods of a cluster by what rules can tell of them: namespace and labels. Needs numpy (``podqos[fleet]``).

A rule that counts pods (a term, a constraint) gets a ``PodGroup``: how many of the pods it means are on each node.
Groups are filled when they are first asked for and kept up to date from then on. Pods with the same labels are of one
``_Kind``; whether a rule means a kind is found out once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec
import numpy as np

from podqos.model.scheduling import PodAffinityTerm
from podqos.model.selector import LabelSelector
from podqos.placement.columns import Floats
from podqos.placement.pod_view import PodView

Means = Callable[[PodView], bool]
Label = tuple[str, str]


class PodGroup:
    """Some pods, per node."""

    def __init__(
        self, means: Means, selector: LabelSelector | None, nodes: int, topology_key: str = "", weight: int = 0
    ) -> None:
        self.means = means
        self.label = _telling_label(selector)
        self.topology_key = topology_key
        self.weight = weight
        self.per_node: Floats = np.zeros(nodes)


class _Kind:
    """Pods that no rule tells apart."""

    def __init__(self, view: PodView) -> None:
        self.view = view
        self.per_node: Counter[int] = Counter()
        self.meant_by: list[PodGroup] = []
        self.kept_away_by: list[PodGroup] = []
        self.drawn_by: list[PodGroup] = []

    def know(self, owners: PodGroup) -> None:
        """Note pods with a term that matches this kind."""
        (self.drawn_by if owners.weight else self.kept_away_by).append(owners)


class Crowd:
    """All pods on all nodes."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._kinds: dict[object, _Kind] = {}
        self._kinds_by_label: dict[Label, list[_Kind]] = {}
        self._meant = _Groups()
        self._owners = _Groups()

    def count(self, index: int, view: PodView, change: int) -> None:
        """Count a pod that was added to (1) or removed from (-1) a node."""
        kind = self._kind(view)
        kind.per_node[index] += change
        for group in kind.meant_by:
            group.per_node[index] += change

    def meant(self, key: object, selector: LabelSelector | None, means: Means) -> PodGroup:
        """Return the pods that a rule matches; ``selector`` is a condition that they all meet."""
        group = self._meant.get(key)
        if group is None:
            group = self._meant.add(key, PodGroup(means, selector, self._nodes))
            for kind in self._kinds_meant(group):
                kind.meant_by.append(group)
                for index, number in kind.per_node.items():
                    group.per_node[index] += number
        return group

    def owners(self, key: object, term: PodAffinityTerm, means: Means, weight: int = 0) -> PodGroup:
        """Return the pods that have a term: of a weight, or an anti-affinity; the caller keeps their number."""
        group = self._owners.get(key)
        if group is None:
            group = self._owners.add(key, PodGroup(means, term.label_selector, self._nodes, term.topology_key, weight))
            for kind in self._kinds_meant(group):
                kind.know(group)
        return group

    def keeping_away(self, view: PodView) -> list[PodGroup]:
        """Return the groups of pods that must not be near this one."""
        return self._kind(view).kept_away_by if self._owners else []

    def drawing(self, view: PodView) -> list[PodGroup]:
        """Return the groups of pods that would, or by their weight would not, have this one near."""
        return self._kind(view).drawn_by if self._owners else []

    def _kind(self, view: PodView) -> _Kind:
        key = (view.namespace, msgspec.json.encode(view.labels), view.is_terminating)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind(view)
            for label in view.labels.items():
                self._kinds_by_label.setdefault(label, []).append(kind)
            kind.meant_by.extend(self._meant.meaning(view))
            for group in self._owners.meaning(view):
                kind.know(group)
        return kind

    def _kinds_meant(self, group: PodGroup) -> Iterable[_Kind]:
        kinds = self._kinds.values() if group.label is None else self._kinds_by_label.get(group.label, ())
        return (kind for kind in kinds if group.means(kind.view))


class _Groups:
    """Groups by key, and by a label that the pods they mean must have."""

    def __init__(self) -> None:
        self._by_key: dict[object, PodGroup] = {}
        self._by_label: dict[Label | None, list[PodGroup]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def get(self, key: object) -> PodGroup | None:
        """Return the group of this key, if there is one."""
        return self._by_key.get(key)

    def add(self, key: object, group: PodGroup) -> PodGroup:
        """Keep a new group."""
        self._by_key[key] = group
        self._by_label.setdefault(group.label, []).append(group)
        return group

    def meaning(self, view: PodView) -> list[PodGroup]:
        """Return the groups that match a pod."""
        labels: Iterable[Label | None] = (None, *view.labels.items())
        return [group for label in labels for group in self._by_label.get(label, ()) if group.means(view)]


def _telling_label(selector: LabelSelector | None) -> Label | None:
    """Return one label that everything selected has, so that most pods need not be asked."""
    return next(iter(selector.match_labels.items()), None) if selector is not None else None
