"""The values of all views of one source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice

from msgspec import Struct
from msgspec.structs import asdict, replace

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import check_named
from podqos.manifest.problems import Problem
from podqos.model.assumption import Assumption
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import PodUsage
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import FoundWorkload
from podqos.objects.selection import Selection
from podqos.objects.spreading import Spread, one_by_one
from podqos.orders.drift import Identity
from podqos.orders.pods import NodePod
from podqos.page.cluster import (
    ClusterView,
    NodePanel,
    PageNode,
    PodBlock,
    ShownNode,
    ShownSource,
    cluster_tiles,
    owner,
)
from podqos.page.fixes import (
    AnswerView,
    CheckView,
    FixRequest,
    FixView,
    PodToSave,
    answer_about,
    check_view,
    fix_view,
    next_deaths,
    ways_to_save,
    withheld_changes,
)
from podqos.page.history import SampleIndex, UsageHistory, how_to_get_samples, usage_history
from podqos.page.pod import Places, PodPage, neighbours_of
from podqos.page.session import Age, ErrorAnswer, Hello, JobInfo, PageSource, PastedAutopsy, Session
from podqos.page.what_if import ForecastRequest, ForecastView, WhatIf, WhatIfEngine, WhatIfView
from podqos.qos.classes import qos_class_of
from podqos.questions.admit import AdmissionReport, admit
from podqos.questions.autopsy import Autopsy
from podqos.questions.check import Checked
from podqos.questions.node import USAGE
from podqos.questions.overview import node_overview
from podqos.questions.patches import patch_lines
from podqos.questions.saving import unknown_usage
from podqos.runs.comparison import CompareView

_MOST_NOTES = 100

Autopsied = Callable[[PageSource, Kubelet | None, Profile], Autopsy]
"""Returns every death that the logs of a source tell of, where nodes have these settings and this version."""


class Page(ShownSource):
    """A source, and what its views show.

    ``autopsied`` reads its logs, which may be files; ``spread`` may check objects on several cores.
    """

    def __init__(
        self, source: PageSource, autopsied: Autopsied, before: Page | None = None, *, spread: Spread = one_by_one
    ) -> None:
        super().__init__(source, before)
        self._autopsied = autopsied
        self._answers: dict[str, AnswerView] = {}
        self._spread = spread

    # ---- the cluster -------------------------------------------------------------------------------------------------

    def cluster(self) -> ClusterView:
        """Return all nodes and pods."""
        nodes = self.nodes
        made = [self._shown(node) for node in nodes.nodes.values()]
        made.sort(
            key=lambda shown_node: (
                shown_node.panel.headroom_bytes is None,
                shown_node.panel.headroom_bytes or 0,
                shown_node.panel.name,
            )
        )
        pods = [block for shown_node in made for block in shown_node.blocks]
        pods += [self._unranked(node_pod, "") for node_pod in nodes.waiting]
        panels = tuple(shown_node.panel for shown_node in made)
        return ClusterView(
            name=self.source.name,
            kubernetes_version=nodes.profile.version_text,
            taken_at="" if self.source.cluster is None else self.source.cluster.header.taken_at,
            nodes=panels,
            pods=tuple(pods),
            tiles=cluster_tiles(panels, pods),
            classes={
                str(qos_class): count for qos_class, count in sorted(Counter(pod.qos_class for pod in pods).items())
            },
            notes=tuple(self._notes()),
            guard=self.source.guard,
            assumptions=tuple(dict.fromkeys(assumed for shown_node in made for assumed in shown_node.assumptions)),
            next_deaths=next_deaths(shown_node.panel for shown_node in made),
        )

    def answer(self, node: str = "") -> AnswerView:
        """Return who acts first on a node, and the safest fix; without a name, on the one whose pod is next to die."""
        if not node:
            deaths = next_deaths(self._shown(page_node).panel for page_node in self.nodes.nodes.values())
            if not deaths and not self.nodes_by_headroom():
                return AnswerView("", None, None, "", ())  # whoever asks just when the last pod goes
            node = deaths[0].node if deaths else ""
        if node not in self._answers:
            self._answers[node] = answer_about(self, self.node(node))
        return self._answers[node]

    def _shown(self, node: PageNode) -> ShownNode:
        if node.shown is None:
            node.shown = ShownNode(self._panel(node), tuple(self._blocks(node)), tuple(self._assumptions(node)))
        return node.shown

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with the source, and with pods as far as they have been asked for."""
        return list(
            dict.fromkeys(
                (
                    *self.source.problems,
                    *(problem for node in self.nodes.nodes.values() for problem in node.objects.problems),
                    *self.nodes.objects.problems,
                )
            )
        )

    def _notes(self) -> Iterator[str]:
        """Yield what is wrong with the source, and which pods the API server would not store."""
        found = self.problems
        yield from map(str, islice(found, _MOST_NOTES))
        if len(found) > _MOST_NOTES:
            yield f"and {len(found) - _MOST_NOTES} more"

    def _panel(self, node: PageNode) -> NodePanel:
        state, watched, report = node.state, node.watched, node.report
        pods = [entry.pod for entry in (node.unranked if state is None else state.snapshot.pods)]
        capacity = node.node.status.capacity
        figures = node_overview(node.node, pods, state, watched, report)
        if state is not None and self.source.cluster is None:
            # What a table of usage or a scenario states is as good as what a kubelet measured.
            figures = replace(
                figures, is_measured=all(assumption.state_with != USAGE.state_with for assumption in state.assumptions)
            )
        figures = replace(figures, problem=node.problem or figures.problem)
        return NodePanel(
            **asdict(figures),
            memory_bytes=_bytes(capacity.get(MEMORY)) if state is None else state.snapshot.node.memory_bytes,
            used_bytes=None if state is None else state.used_bytes,
            threshold_bytes=0 if watched is None else watched.threshold_bytes,
            is_assumed=node.is_assumed,
            reversed_pairs=0 if report is None else report.reversed_pairs,
        )

    def _assumptions(self, node: PageNode) -> Sequence[Assumption]:
        if node.report is not None:
            return node.report.assumptions
        return () if node.state is None else node.state.assumptions

    def _blocks(self, node: PageNode) -> Iterator[PodBlock]:
        if node.state is None:
            yield from (self._unranked(node_pod, node.name) for node_pod in node.unranked)
            return
        places = self.places(node)
        blocks = [
            self._block(entry, node.name, self.workload_of(node.state, entry.pod), places)
            for entry in node.state.snapshot.pods
        ]
        yield from sorted(blocks, key=lambda block: block.eviction_place or 0)

    def _unranked(self, entry: NodePod, node: str) -> PodBlock:
        workload = owner(entry.kind, entry.workload) or self.maker_of(entry.pod)
        return self._block(PodUsage(entry.pod, None, ()), node, workload, None)

    def _block(self, entry: PodUsage, node: str, workload: str, places: Places | None) -> PodBlock:
        pod = entry.pod
        standing = None if places is None else places.standing(pod.key)
        is_limited = all(MEMORY in container.resources.limits for container in pod.running_containers)
        limits = pod_limits(pod)
        own = pod.spec.resources
        if own is not None and MEMORY in own.limits:
            is_limited = True
        return PodBlock(
            namespace=pod.metadata.namespace_or_default,
            name=pod.metadata.name or pod.metadata.generate_name,
            node=node,
            workload=workload,
            qos_class=qos_class_of(pod, self.nodes.profile) if standing is None else standing.qos_class,
            priority=pod.spec.priority or 0,
            requested_bytes=_bytes(pod_requests(pod).get(MEMORY)),
            limit_bytes=_bytes(limits.get(MEMORY)) if is_limited else None,
            used_bytes=None
            if entry.stats is None
            else sum(container.working_set_bytes for container in entry.containers),
            oom_score_adj=None if standing is None else standing.oom_score_adj,
            eviction_place=None if standing is None else standing.eviction_place,
            kill_place=None if standing is None else standing.kill_place,
            spared=None if standing is None else standing.spared,
            active_cache_bytes=sum(container.active_file_bytes for container in entry.containers),
            inactive_cache_bytes=sum(container.inactive_file_bytes for container in entry.containers),
        )

    # ---- a pod -------------------------------------------------------------------------------------------------------

    def pod(self, pod: str, node: str = "") -> PodPage:
        """Return everything about one pod, named ``namespace/name``; ``node`` tells two of that name apart."""
        at, entry, found = self.found(pod, node)
        profile = self.nodes.profile
        explained = self.explained(found, at)
        places = None if at is None else self.places(at)
        evicted = None if places is None else places.evicted.get(pod)
        kills = () if places is None else tuple(places.kills.get(pod, ()))
        report = None if at is None else at.report
        now = None if places is None else places.standing(pod)
        saved = None
        if at is not None and now is not None and not entry.pod.is_windows:
            saved = PodToSave(self, at, entry, found, now)
        ways = () if saved is None else tuple(ways_to_save(saved))
        return PodPage(
            namespace=entry.pod.metadata.namespace_or_default,
            name=entry.pod.metadata.name or entry.pod.metadata.generate_name,
            node="" if at is None else at.name,
            workload=owner(found.workload.kind, found.workload.pod.key) or self.maker_of(entry.pod),
            kubernetes_version=profile.version_text,
            explanation=explained.items[0],
            admission=None if found.workload.is_stored else self._admission(found),
            standing=now,
            eviction=evicted,
            kills=kills,
            problem="" if at is None else at.problem,
            safer=ways,
            withheld=() if saved is None else tuple(withheld_changes(saved, ways)),
            unknown=unknown_usage(pod)
            if at is not None and at.state is not None and pod in at.state.unmeasured
            else "",
            deaths=tuple(death for death in self._autopsy.deaths if death.pod == pod),
            endings=tuple(line.words for line in self._autopsy.exits if line.pod == pod),
            idle=()
            if report is None
            else tuple(container for container in report.without_process if container.pod == pod),
            neighbours=() if report is None else tuple(neighbours_of(pod, report)),
            usage=self._usage(entry, found),
            assumptions=tuple(dict.fromkeys((*explained.assumptions, *(() if at is None else self._assumptions(at))))),
        )

    def _usage(self, entry: PodUsage, found: FoundWorkload) -> UsageHistory:
        """Return what the pod used over time, or how to get to know it."""
        source, pod = self.source, entry.pod
        kind, _, key = (owner(found.workload.kind, found.workload.pod.key) or self.maker_of(pod)).partition(" ")
        namespace, _, name = key.partition("/")
        samples, whose = self._samples.of(pod, Identity(namespace, kind, name) if kind else None)
        history = usage_history(samples, pod, self._autopsy)
        if history.charts:
            return replace(history, whose=whose)
        how = how_to_get_samples(is_cluster=source.cluster is not None, is_scenario=source.scenario is not None)
        return UsageHistory(how=how)

    @cached_property
    def _samples(self) -> SampleIndex:
        samples = self.source.samples
        identities = (Identity(*_split(key, kind)) for kind, key in self.makers) if samples else ()
        return SampleIndex(samples, identities)

    def _admission(self, found: FoundWorkload) -> AdmissionReport | None:
        metadata = found.workload.metadata
        name = metadata.name or metadata.generate_name
        own = Selection(metadata.namespace, objects=((found.workload.kind.lower(), name),))
        objects = self.nodes.objects.only(self.nodes.objects.workloads).with_selection(own)
        return next(iter(admit(objects, profile=self.nodes.profile).items), None)

    # ---- what if -----------------------------------------------------------------------------------------------------

    def what_if(self, request: WhatIf) -> WhatIfView:
        """Return what edits of pods and of their kubelet would do; only the nodes they touch are looked at again."""
        return WhatIfEngine(self).answer(request)

    def forecast(self, request: ForecastRequest) -> ForecastView:
        """Return what becomes of a container that grows."""
        return WhatIfEngine(self).forecast(request)

    # ---- checks ------------------------------------------------------------------------------------------------------

    @cached_property
    def _checked(self) -> Checked:
        return self._check(CheckOptions(profile=self.nodes.profile, node_memory_bytes=self.source.node_memory_bytes))

    def _check(self, options: CheckOptions, *, tries_all: bool = False) -> Checked:
        return Checked(self.declared, options, tries_all=tries_all, spread=self._spread)

    def check(self) -> CheckView:
        """Return what ``podqos check`` finds."""
        return check_view(self._checked.report, can_fix=self.source.cluster is None)

    def fix(self, request: FixRequest) -> FixView:
        """Return what the fixes of checks change: the files as a diff and as they are then; of a cluster, patches."""
        options = self._checked.options
        if request.checks:
            only = frozenset(check_named(check, "checks").id for check in request.checks)
            options = replace(options, only=only)
        checked = self._check(options, tries_all=True)
        if self.source.cluster is not None:
            patches = tuple(patch_lines(checked.patches(), "kubectl"))
            return FixView((), (), patches, len(checked.open) - len(patches))
        fixes, after = checked.fix()
        return fix_view(fixes, len(after.open))

    # ---- deaths ------------------------------------------------------------------------------------------------------

    @cached_property
    def _autopsy(self) -> Autopsy:
        return self._autopsied(self.source, self.nodes.kubelet, self.nodes.profile)

    def autopsy(self) -> Autopsy:
        """Return every death that the source tells of."""
        return self._autopsy


def _split(key: str, kind: str) -> tuple[str, str, str]:
    namespace, _, name = key.partition("/")
    return namespace, kind, name


def _bytes(amount: Quantity | None) -> int:
    return 0 if amount is None else amount.value


class PageValues(Struct, frozen=True, rename="camel"):
    """What the page asks for, and what it is answered."""

    cluster: ClusterView
    answer: AnswerView
    pod: PodPage
    what_if_request: WhatIf
    what_if: WhatIfView
    forecast_request: ForecastRequest
    forecast: ForecastView
    check: CheckView
    fix_request: FixRequest
    fix: FixView
    compare: CompareView
    pasted: PastedAutopsy
    session: Session
    job: JobInfo
    hello: Hello
    age: Age
    error: ErrorAnswer
