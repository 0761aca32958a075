"""What the views of a source share, each computed once: its nodes, where pods stand, what a pod is made from."""

from __future__ import annotations

from functools import cached_property

from podqos.errors import InputError
from podqos.library.explain import ExplainOptions, explain
from podqos.library.inputs.objects import FoundWorkload
from podqos.library.page.nodes import PageNode, PageNodes
from podqos.library.page.places import Places
from podqos.library.page.source import PageSource
from podqos.model.snapshot import PodUsage
from podqos.report.explain.explanation import ExplanationList
from podqos.survival.forecast import CurvePoint


class Shown:
    """A source that is looked at; ``before`` is an earlier state of it, of which is taken what has not changed."""

    def __init__(self, source: PageSource, before: Shown | None = None) -> None:
        self.source = source
        self._before = before
        self.curves: dict[tuple[str, str], tuple[CurvePoint, ...]] = {}
        """Of growing containers, by node and container, with the settings that the node has."""

    @cached_property
    def nodes(self) -> PageNodes:
        """The nodes with their pods."""
        before, self._before = self._before, None  # which is not kept alive
        return PageNodes(self.source, None if before is None else before.nodes)

    def places(self, node: PageNode) -> Places | None:
        """Return where the pods of a node stand; None where they are in no order."""
        return node.places

    def found(self, pod: str, node: str = "") -> tuple[PageNode | None, PodUsage, FoundWorkload]:
        """Return a pod with its node, if it has one, and the object that it is made from."""
        for at in self.nodes.nodes.values():
            if at.state is None or (node and at.name != node):
                continue
            for entry in at.state.snapshot.pods:
                if entry.pod.key == pod:
                    return at, entry, self.nodes.workloads[at.state.owners[entry.pod.metadata.uid]]
        nodes = [each for each in self.nodes.nodes.values() if not node or each.name == node]
        unranked = [(at, each) for at in nodes for each in at.unranked]
        for place, each in (*unranked, *((None, each) for each in self.nodes.waiting)):
            if each.pod.key == pod:
                return place, PodUsage(each.pod, None, ()), self.nodes.workloads[each.kind, each.workload]
        where = f" on {node}" if node else ""
        raise InputError(f"there is no pod {pod}{where}", fix="it may be gone: see the cluster")

    def explained(self, found: FoundWorkload) -> ExplanationList:
        """Return what ``podqos explain`` says of one workload."""
        objects = self.nodes.objects.only([found])
        explained = explain(objects, ExplainOptions(profile=self.nodes.profile, kubelet=self.nodes.kubelet))
        if not explained.items:
            first = next(iter(objects.problems), None)
            raise InputError("the API server would not store it" if first is None else str(first))
        return explained
