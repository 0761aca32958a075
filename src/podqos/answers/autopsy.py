"""Why processes were killed and pods evicted, by logs and by what is known of the cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TypedDict

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.inspected_containers import WithoutQuietContainers
from podqos.answers.kubelet_side import KubeletSide, fated_pods
from podqos.answers.log_tally import LogTally
from podqos.answers.oom_reports import reports
from podqos.answers.pasted_text import PastedText, counted, told_together
from podqos.kernel.log_lines import LogStream
from podqos.kernel.oom_report import OOMReport
from podqos.model.assumption import of_version
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Node
from podqos.model.pod import Pod
from podqos.model.pod_fate import FatedPod
from podqos.model.profile import LATEST, Profile
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import Objects
from podqos.qos.cgroup_paths import cgroup_uid
from podqos.qos.classes import qos_class_of
from podqos.survival.autopsy.autopsy import MOST_SHOWN, Autopsies, Examiner, OOMAutopsy, assumed_by
from podqos.survival.autopsy.eviction_traces import OOM_SIGNS
from podqos.survival.autopsy.facts import NodeFacts, with_nodes
from podqos.survival.autopsy.next_step import valid_name
from podqos.survival.autopsy.next_steps import next_steps
from podqos.survival.autopsy.seen_reports import SeenReports
from podqos.survival.autopsy.terminations import TerminationCause, containers_by_id
from podqos.survival.autopsy.what_was_read import WhatWasRead

MOST_KILLS = 10_000
"""The last of them are kept, so that memory does not grow with the log."""
MOST_PICTURES = 1000
"""The last of them keep their ranking and tree, which are most of what a kill holds."""


class AutopsyRequest(Struct, frozen=True, kw_only=True):
    """What is known besides logs, and how much to tell."""

    objects: Objects | None = None
    """With the pods, nodes and events of the cluster."""
    cluster: ClusterSnapshot | None = None
    """The same, of a cluster at a moment; counts before the objects."""
    most_shown: int = MOST_SHOWN
    """So many rows of each ranking are kept."""
    kubelet: Kubelet | None = None
    """What the nodes reserve and when they evict; None: what the cluster says of each."""
    growth_bytes_per_second: int | None = None
    """How fast memory was used up: says which threshold would have saved a victim."""
    profile: Profile = LATEST
    read: WhatWasRead = WhatWasRead()
    """Where everything comes from, and the lines of the objects' files; the rest is counted."""

    @property
    def known(self) -> Objects | None:
        """The objects, wherever they are from."""
        return self.objects if self.cluster is None else self.cluster.objects


class AutopsyKeywords(TypedDict, total=False):
    """``AutopsyRequest`` as keyword arguments."""

    objects: Objects | None
    cluster: ClusterSnapshot | None
    most_shown: int
    kubelet: Kubelet | None
    growth_bytes_per_second: int | None
    profile: Profile
    read: WhatWasRead


def autopsies(logs: Iterable[AbstractContextManager[LogStream]], request: AutopsyRequest) -> Autopsies:
    """Return every OOM and eviction in logs of the kernel, of kubelets and of podqos; each is opened in its turn."""
    objects, cluster, profile = request.known, request.cluster, request.profile
    known = fated_pods(objects, cluster)
    pods = {cgroup_uid(pod): pod for pod in known}
    facts = _facts(pods, request)
    kills: deque[OOMAutopsy] = deque(maxlen=MOST_KILLS)
    examined = containers_left_out = 0
    side = KubeletSide()
    seen = SeenReports(MOST_KILLS)
    tally = LogTally()
    texts: list[PastedText] = []
    for number, log in enumerate(logs):
        examiner = Examiner(request.most_shown, facts)
        with log as opened:
            inspected = WithoutQuietContainers(tally.counting(opened))
            text = PastedText(inspected)
            texts.append(text)
            examiner.facts = with_nodes(examiner.facts, text.nodes)
            for report in reports(text, side):
                if seen.has(report, number):
                    continue
                kills.append(_named(examiner.examine(report), pods, profile))
                examined += 1
                if len(kills) > MOST_PICTURES:
                    kills[-MOST_PICTURES - 1] = replace(kills[-MOST_PICTURES - 1], ranking=(), tree=())
            containers_left_out += inspected.left_out
    assumptions = (*assumed_by(kills, profile), *of_version(profile), *(() if cluster is None else cluster.assumptions))
    found = Autopsies(tuple(kills), kills_left_out=examined - len(kills), assumptions=assumptions)
    has_kubelet_log = bool(tally.kubelet_messages or tally.journal_entries)
    pastes, quiet = told_together(
        texts,
        {pod.metadata.name for pod in known},
        has_kubelet_log=has_kubelet_log,
        has_others=bool(kills or objects or cluster),
    )
    for paste in pastes:
        side.add_paste(paste)
    found = side.told(found, known, objects, cluster, most_shown=request.most_shown, profile=profile)
    found = replace(
        found,
        evictions_left_out=found.evictions_left_out + quiet.evictions,
        terminations_left_out=quiet.terminations,
        exits_left_out=quiet.exits,
    )
    pasted = (pod for paste in pastes for pod in paste.pods)
    read = counted(side.read_in(tally.added_to(request.read)), quiet, (*known, *pasted))
    hosts = {kill.host for kill in found.kills}
    return _guided(
        replace(
            found,
            read=replace(
                read,
                oom_reports=examined,
                containers=max(side.containers, sum(ended.is_from_runtime for ended in found.terminations))
                + containers_left_out,
                program_messages=len(found.userspace_kills)
                + found.userspace_kills_left_out
                + sum(failure.times for failure in found.program_failures),
                workloads=0
                if objects is None
                else sum(found_in.workload.kind != "Pod" for found_in in objects.workloads),
                node=valid_name(read.node or (hosts.pop() if len(hosts) == 1 else "")),
                mention=None if len(found) or found.exits else read.mention,
            ),
        )
    )


def autopsy_of(report: OOMReport, examiner: Examiner, request: AutopsyRequest) -> Autopsies:
    """Return one OOM that has just happened; ``examiner`` knows those before it."""
    pods = {cgroup_uid(pod): pod for pod in fated_pods(request.known, request.cluster)}
    examiner.facts = _facts(pods, request)
    kill = _named(examiner.examine(report), pods, request.profile)
    return Autopsies((kill,), assumptions=(*assumed_by([kill], request.profile), *of_version(request.profile)))


def _facts(pods: Mapping[str, Pod], request: AutopsyRequest) -> NodeFacts:
    """Return what manifests, a cluster and options say of nodes; a kubelet that is given is that of all."""
    cluster, kubelet = request.cluster, request.kubelet
    nodes = () if request.known is None else request.known.of(Node)

    @cache
    def kubelet_of(node: str) -> KubeletConfiguration | None:
        known = cluster.kubelet(node) if kubelet is None and cluster is not None else kubelet
        return None if known is None else known.config

    facts = NodeFacts(pods, {}, kubelet_of, request.growth_bytes_per_second, request.profile)
    return with_nodes(facts, nodes)


def has_deaths(found: Autopsies) -> bool:
    """Whether anything was killed or evicted, by a report or by what else tells of it.

    A container that stopped when it was asked to was not killed.
    """
    killed = (ended for ended in found.terminations if ended.cause is not TerminationCause.SIGTERM)
    deaths = (*found.kills, *found.evictions, *killed, *found.userspace_kills)
    return bool(deaths) or any(node_event.kind in OOM_SIGNS for node_event in found.node_events)


def one_by_one(found: Autopsies) -> Iterator[Autopsies]:
    """Yield a value for each death, and for what else is known."""
    bare = replace(
        found,
        kills=(),
        kills_left_out=0,
        evictions=(),
        evictions_left_out=0,
        terminations=(),
        terminations_left_out=0,
        exits=(),
        exits_left_out=0,
        node_events=(),
        userspace_kills=(),
        userspace_kills_left_out=0,
        program_failures=(),
        next_steps=(),
    )
    yield from (_guided(replace(bare, kills=(kill,))) for kill in found.kills)
    yield from (_guided(replace(bare, evictions=(eviction,))) for eviction in found.evictions)
    for termination in found.terminations:
        alone = replace(bare, terminations=(replace(termination, kill=None, eviction=None, userspace_kill=None),))
        yield alone if termination.kill is not None else _guided(alone)
    for node_event in found.node_events:
        alone = replace(bare, node_events=(replace(node_event, kill=None),))
        yield alone if node_event.kill is not None else _guided(alone)
    yield from (_guided(replace(bare, exits=(ended,))) for ended in found.exits)
    yield from (_guided(replace(bare, userspace_kills=(kill,))) for kill in found.userspace_kills)
    yield from (_guided(replace(bare, program_failures=(failure,))) for failure in found.program_failures)


def _guided(found: Autopsies) -> Autopsies:
    """Return what was found with what to run next."""
    return replace(found, next_steps=next_steps(found))


def is_about(pod: str, namespace: str, name: str) -> bool:
    """Whether a pod is of a namespace and has a name, where they are not empty."""
    own_namespace, _, own_name = pod.rpartition("/")
    # A text by kubectl may name a pod without its namespace.
    is_anywhere = bool(own_name) and not own_namespace
    return name in {"", own_name} and (is_anywhere or namespace in {"", own_namespace})


def of_pod(found: Autopsies, namespace: str, name: str) -> Autopsies:
    """Return what is about one pod, and about nodes; without a name everything, of one namespace if one is named."""
    if not (namespace or name):
        return found

    is_meant = partial(is_about, namespace=namespace, name=name)
    kept = [number for number, kill in enumerate(found.kills) if is_meant(kill.pod)]
    numbers = {number: place for place, number in enumerate(kept)}
    evicted = [number for number, eviction in enumerate(found.evictions) if is_meant(eviction.pod)]
    places = {number: place for place, number in enumerate(evicted)}
    programs = [number for number, kill in enumerate(found.userspace_kills) if is_meant(kill.pod)]
    new_places = {number: place for place, number in enumerate(programs)}
    about = replace(
        found,
        kills=tuple(found.kills[number] for number in kept),
        evictions=tuple(found.evictions[number] for number in evicted),
        exits=tuple(ended for ended in found.exits if is_meant(ended.pod)),
        userspace_kills=tuple(found.userspace_kills[number] for number in programs),
        terminations=tuple(
            replace(
                termination,
                kill=numbers.get(_number(termination.kill)),
                eviction=places.get(_number(termination.eviction)),
                userspace_kill=new_places.get(_number(termination.userspace_kill)),
            )
            for termination in found.terminations
            if is_meant(termination.pod)
        ),
        node_events=tuple(
            replace(node_event, kill=numbers.get(_number(node_event.kill))) for node_event in found.node_events
        ),
        read=replace(found.read, pod=f"{namespace}/{name}") if namespace and name else found.read,
    )
    unexplained = tuple(node_event for node_event in found.node_events if node_event.kill is None)
    return replace(about, next_steps=next_steps(replace(about, node_events=unexplained)))


def _number(place: int | None) -> int:
    return -1 if place is None else place


def _named(kill: OOMAutopsy, pods: Mapping[str, Pod], profile: Profile) -> OOMAutopsy:
    """Return an OOM with the victim's pod, where it is known."""
    pod = pods.get(kill.pod_uid) if kill.pod_uid else None
    if pod is None:
        return kill
    names = [container.name for container in (*pod.spec.init_containers, *pod.spec.containers)]
    # Without a status only the runtime knows which of several the id in the path belongs to.
    known = containers_by_id([pod]) if isinstance(pod, FatedPod) else {}
    _, name = known.get(kill.container_id, (pod, names[0] if len(names) == 1 else ""))
    container = name if kill.container_id else ""
    return replace(kill, pod=pod.key, container=container, qos_class=pod.status.qos_class or qos_class_of(pod, profile))
