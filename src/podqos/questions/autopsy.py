"""Why processes were killed and pods evicted: what logs, statuses and Events tell, put together into deaths.

A kill that several sources tell of is one death: a report that two logs have, the notice of a daemon, the status of the
container, the Events of node and pod.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.agent.reasons import OOMKill
from podqos.errors import InvalidOption
from podqos.eviction.signals import Signal, observe
from podqos.eviction.thresholds import default_eviction_hard
from podqos.logs.report import OOMReport
from podqos.logs.said import (
    OOM_SIGNS,
    EvictionTrace,
    Killer,
    NodeSign,
    PastedPod,
    Said,
    SignKind,
    WhatWasRead,
    seconds_apart,
    seconds_of,
)
from podqos.manifest.decode import convert
from podqos.model.assumption import Assumption, of_version
from podqos.model.event import Event
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.listing import Listing
from podqos.model.node import Node
from podqos.model.pod_fate import FatedPod, FullPodStatus
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.naming import stated_with
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import Objects
from podqos.placement.pods import counted
from podqos.qos.cgroup_paths import cgroup_uid, place_of
from podqos.qos.classes import qos_class_of
from podqos.questions.autopsy_death import ContainerEnd, Death, EndCause, Fact, Manner, Reason
from podqos.questions.autopsy_ended import NOT_KILLED, Ended, containers_by_id, ends_of
from podqos.questions.autopsy_eviction import (
    SceneNode,
    condition_signs,
    event_sign,
    event_trace,
    examine_eviction,
    gathered,
    journal_traces,
    message_trace,
    status_trace,
)
from podqos.questions.autopsy_headline import headline, headline_without_deaths
from podqos.questions.autopsy_memory import NodeFacts, with_nodes
from podqos.questions.autopsy_next import NextStep, next_steps, valid_name
from podqos.questions.autopsy_oom import MOST_SHOWN, Examiner, journal_kill
from podqos.questions.autopsy_words import end_words, failure_words, noticed, read_words, sign_words, worded

MOST_KILLS = 10_000
"""The last of them are kept, so that memory does not grow with the log."""
MOST_PICTURES = 1000
"""The last of them keep their ranking and tree, which are most of what a kill holds."""
MOST_EVICTIONS = 2_000


class Line(Struct, frozen=True, omit_defaults=True):
    """Something that is no death, in words."""

    words: str
    pod: str = ""


class Autopsy(Listing[Death], Struct, frozen=True, rename="camel"):
    """What was found: the whole output of ``podqos autopsy -o json``, and its page."""

    deaths: tuple[Death, ...] = ()
    """In the order of time where that is known, else by who killed."""
    left_out: int = 0
    """Of very many the first ones, which are counted alone."""
    headline: str = ""
    exits: tuple[Line, ...] = ()
    """Containers not known to have been killed: they crashed, exited, or are restarted for an unknown reason."""
    program_errors: tuple[str, ...] = ()
    """Programs that ran out of their own memory, such as Java's OutOfMemoryError."""
    node_events: tuple[str, ...] = ()
    read: str = ""
    """How much of what was read."""
    next_steps: tuple[NextStep, ...] = ()
    """What to run next, where what was read does not explain everything."""
    assumptions: tuple[Assumption, ...] = ()
    counted: WhatWasRead = WhatWasRead()
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Autopsy"

    def _listed(self) -> tuple[Death, ...]:
        return self.deaths


def autopsy(
    reports: Iterable[tuple[int, OOMReport]],
    said: Said,
    *,
    objects: Objects | None = None,
    cluster: ClusterSnapshot | None = None,
    most_shown: int = MOST_SHOWN,
    kubelet: Kubelet | None = None,
    growth_bytes_per_second: int | None = None,
    profile: Profile = LATEST,
    namespace: str = "",
    pod: str = "",
) -> Autopsy:
    """Return every death that logs, objects or a cluster tell of; of one pod or namespace, if one is named.

    ``reports`` are the kernel's, each with the number of its log; reading them fills ``said`` with what else the logs
    say. ``kubelet`` is what the nodes reserve and when they evict; without it counts what the cluster says of each.
    ``growth_bytes_per_second``, how fast memory was used up, says which threshold would have saved a victim.
    """
    known = _Known(objects if cluster is None else cluster.objects, cluster, kubelet, growth_bytes_per_second, profile)
    facts = known.facts()
    kills: deque[Death] = deque(maxlen=MOST_KILLS)
    examiner, examined, last = Examiner(most_shown, facts), 0, 0
    for number, report in reports:
        if number != last:
            examiner, last = Examiner(most_shown, facts), number
        examiner.facts = with_nodes(facts, said.nodes)
        kills.append(examiner.examine(report))
        examined += 1
        if len(kills) > MOST_PICTURES:
            kills[-MOST_PICTURES - 1] = replace(kills[-MOST_PICTURES - 1], ranking=(), tree=())
    gathering = _Gathering(said, known, most_shown)
    gathering.gather(kills)
    if pod and not any(_is_about(each, namespace, pod) for each in gathering.names):
        fix = "check the path or -n, or say where the pod is: -f, --snapshot or --context"
        if said.read.cluster:
            fix = "check the name and -n; a deleted pod's events are kept for an hour only"
        raise InvalidOption(f"no such file or pod: {pod!r}", fix=fix)
    exits, signs = gathering.exits, gathering.signs
    deaths = [*gathering.deaths, *map(noticed, gathering.notices)]
    if namespace or pod:
        deaths = [death for death in deaths if _is_about(death.pod, namespace, pod)]
        exits = [end for end in exits if _is_about(end.pod, namespace, pod)]
        signs = [*signs, *(sign for sign in gathering.notices if not sign.pod)]
    deaths = _in_order(deaths)
    read = gathering.read(examined)
    if namespace and pod:
        read = replace(read, pod=f"{namespace}/{pod}")
    read = replace(read, mention=None if deaths or exits or signs else read.mention)
    told, left_out = tuple(map(worded, deaths)), examined - len(kills) + gathering.left_out
    nothing = headline_without_deaths(exits, signs, said.failures, read)
    return Autopsy(
        told,
        left_out=left_out,
        headline=headline(told, left_out) if told else nothing,
        exits=tuple(Line(end_words(end), end.pod) for end in exits),
        program_errors=tuple(map(failure_words, said.failures)),
        node_events=tuple(map(sign_words, signs)),
        read=read_words(read),
        next_steps=next_steps(deaths, exits, signs, read, others=bool(said.failures)),
        assumptions=(*_assumed(deaths, profile), *of_version(profile), *(cluster.assumptions if cluster else ())),
        counted=read,
    )


def autopsy_of(
    report: OOMReport,
    examiner: Examiner,
    *,
    objects: Objects | None = None,
    cluster: ClusterSnapshot | None = None,
    kubelet: Kubelet | None = None,
    growth_bytes_per_second: int | None = None,
    profile: Profile = LATEST,
) -> Autopsy:
    """Return one OOM that has just happened; ``examiner`` knows those before it."""
    known = _Known(objects if cluster is None else cluster.objects, cluster, kubelet, growth_bytes_per_second, profile)
    examiner.facts = known.facts()
    (kill,) = _named([examiner.examine(report)], known.pods, profile)
    assumptions = (*_assumed([kill], profile), *of_version(profile))
    death = worded(kill)
    return Autopsy((death,), headline=death.what, assumptions=assumptions)


class _Known(Struct, frozen=True):
    """What is known besides logs."""

    objects: Objects | None
    cluster: ClusterSnapshot | None
    kubelet: Kubelet | None
    """That of all nodes; None: what the cluster says of each."""
    growth_bytes_per_second: int | None
    profile: Profile

    @property
    def pods(self) -> list[FatedPod]:
        """Those of the cluster or among the objects, with all that nodes say about them."""
        if self.cluster is not None:
            return list(self.cluster.fated_pods)
        pods = []
        for found in () if self.objects is None else self.objects.workloads:
            if found.workload.kind != "Pod" or self.objects is None:
                continue
            known = found.workload.pod
            if not isinstance(known, FatedPod):
                try:
                    status = convert(self.objects.plain(found), FatedPod).status
                except msgspec.ValidationError:  # its status is not in order: the rest is
                    status = FullPodStatus()
                known = FatedPod(known.metadata, known.spec, status)
            pods.append(known)
        return pods

    @property
    def nodes(self) -> Iterable[Node]:
        """Those among the objects."""
        return () if self.objects is None else self.objects.of(Node)

    @property
    def events(self) -> Iterable[Event]:
        """Those among the objects, and of the cluster."""
        yield from () if self.objects is None else self.objects.of(Event)
        yield from () if self.cluster is None else self.cluster.events

    def facts(self) -> NodeFacts:
        """Return what is known of nodes."""

        @cache
        def kubelet_of(node: str) -> KubeletConfiguration | None:
            is_of_cluster = self.kubelet is None and self.cluster is not None
            known = self.cluster.kubelet(node) if is_of_cluster and self.cluster is not None else self.kubelet
            return None if known is None else known.config

        pods = {cgroup_uid(pod): pod for pod in self.pods}
        return with_nodes(NodeFacts(pods, {}, kubelet_of, self.growth_bytes_per_second, self.profile), self.nodes)


def _assumed(deaths: Iterable[Death], profile: Profile) -> Iterator[Assumption]:
    """Yield what the causes take for granted."""
    if any(cause.is_default for death in deaths for cause in death.causes):
        threshold = default_eviction_hard(profile)[Signal.MEMORY]
        yield Assumption("the kubelet's eviction threshold", threshold, stated_with("kubelet_config"))


def _is_about(pod: str, namespace: str, name: str) -> bool:
    """Whether a pod is of a namespace and has a name, where they are not empty."""
    own_namespace, _, own_name = pod.rpartition("/")
    # A text by kubectl may name a pod without its namespace.
    is_anywhere = bool(own_name) and not own_namespace
    return name in {"", own_name} and (is_anywhere or namespace in {"", own_namespace})


def _in_order(deaths: list[Death]) -> list[Death]:
    times = {id(death): seconds_of(death.when) for death in deaths}
    return deaths if None in times.values() else sorted(deaths, key=lambda death: times[id(death)] or 0.0)


# ---- one death, whoever tells of it ----------------------------------------------------------------------------------

_SAME_MOMENT_SECONDS = 2.0
"""By how much two clocks differ, of which one may have whole seconds."""
_SAME_KILL_SECONDS = 10.0
_SAME_UNIT_SECONDS = 60.0
"""A unit whose processes were killed may take some time to fail."""
_SINCE_BOOT = re.compile(r"\d{1,8}(?:\.\d{1,9})?", re.ASCII)
_ID_CHARACTERS = 12
_VERSION = re.compile(r"v?(\d{1,3})\.(\d{1,3})\b")
_NOTICED_BY = {
    SignKind.SYSTEM_OOM: "the kubelet (SystemOOM)",
    SignKind.OOM_KILLING: "an Event (OOMKilling)",
    SignKind.UNIT_OOM_KILLED: "systemd",
    SignKind.CONTAINER_OOM_KILLED: "the container runtime",
}


def _apart(one: str, other: str) -> float | None:
    """Return how far apart two moments are; None where that is not known."""
    if _is_since_boot(one) and _is_since_boot(other):
        return abs(float(other) - float(one))
    # A time without a year is given that of the other.
    known = [apart for apart in (seconds_apart(one, other), seconds_apart(other, one)) if apart is not None]
    return min(map(abs, known), default=None)


def _is_within(one: str, other: str, seconds: float, *, unknown: bool) -> bool:
    """Whether two moments are so near; ``unknown``, where that cannot be told."""
    apart = _apart(one, other)
    return unknown if apart is None else apart <= seconds


def _is_since_boot(at: str) -> bool:
    return _SINCE_BOOT.fullmatch(at) is not None


def _without_echoes(kills: Iterable[Death]) -> list[Death]:
    """Return the kernel's kills without bare lines that repeat one: the node problem detector logs its words."""
    known: dict[Hashable, Death] = {}
    kept = []
    for kill in kills:
        victim = kill.victims[0] if kill.victims else None
        if victim is not None and victim.pid is not None and victim.rss_bytes is not None:
            key = victim.pid, victim.name, victim.rss_bytes
            is_bare = len(kill.victims) == 1 and not kill.candidates and (kill.oom is None or kill.oom.trigger is None)
            first = known.get(key)
            if is_bare and first is not None and _is_echo(kill, first):
                continue
            known[key] = kill
        kept.append(kill)
    return kept


def _is_echo(kill: Death, first: Death) -> bool:
    """Whether two reports of one process come from two logs; a log that repeats itself is taken at its word."""
    apart = _apart(first.when, kill.when)
    if apart is not None:
        return kill.where != first.where and apart <= _SAME_KILL_SECONDS
    return _is_since_boot(kill.when) != _is_since_boot(first.when) or bool(kill.when) != bool(first.when)


def _named(deaths: Iterable[Death], pods: Iterable[FatedPod], profile: Profile) -> list[Death]:
    """Return deaths with their pods, where a pod has the uid or a container the id."""
    pods = list(pods)
    by_uid = {cgroup_uid(pod): pod for pod in pods if pod.metadata.uid or not isinstance(pod, PastedPod)}
    by_id = containers_by_id(pods)
    found = []
    for death in deaths:
        pod, name = by_id.get(death.container_id, (None, "")) if death.container_id else (None, "")
        pod = pod or (by_uid.get(death.pod_uid) if death.pod_uid else None)
        if pod is None or death.pod:
            found.append(death)
            continue
        names = [container.name for container in (*pod.spec.init_containers, *pod.spec.containers)]
        if not name and death.container_id and len(names) == 1:
            name = names[0]  # without a status only the runtime knows which of several an id belongs to
        is_whole = not isinstance(pod, PastedPod) or pod.is_whole
        own = pod.status.qos_class or (qos_class_of(pod, profile) if is_whole else death.qos_class)
        found.append(replace(death, pod=pod.key, container=name, qos_class=own))
    return found


class _Gathering:
    """Puts together what the kernel, the kubelet, programs and statuses tell."""

    def __init__(self, said: Said, known: _Known, most_shown: int) -> None:
        self._said = said
        self._known = known
        self._most_shown = most_shown
        self._pods = known.pods
        names: dict[str, set[str]] = {}
        for pod in self._pods:
            names.setdefault(pod.metadata.name, set()).add(pod.metadata.namespace_or_default)
        # A pod of a text that is known in full; a text may leave out the namespace.
        self._pods += [pod for pod in said.pods if not _is_among(pod, names)]
        self._nodes = (*known.nodes, *said.nodes)
        self._events = [*said.events, *known.events]
        self.deaths: list[Death] = []
        self.exits: list[ContainerEnd] = []
        self.signs: list[NodeSign] = []
        """What nodes went through, without what is told by a death."""
        self.notices: list[NodeSign] = []
        """Kills by the kernel of which nothing else is known."""
        self.left_out = 0

    @property
    def names(self) -> Iterator[str]:
        """All known pods."""
        yield from (pod.key for pod in self._pods)
        yield from (death.pod for death in self.deaths)
        yield from (end.pod for end in self.exits)

    def read(self, reports: int) -> WhatWasRead:
        """Return what was read, wherever it comes from."""
        read, objects = self._said.read, self._known.objects
        pods = list({pod.metadata.uid or pod.key: pod for pod in self._pods}.values())  # files may overlap
        nodes = {node.name for node in self._nodes}
        names = {pod.spec.node_name for pod in pods if pod.spec.node_name} or nodes
        hosts = {death.where for death in self.deaths if death.manner is Manner.OOM_KILL}
        node = read.node or (next(iter(names)) if len(names) == 1 else "")
        workloads = 0 if objects is None else sum(found.workload.kind != "Pod" for found in objects.workloads)
        return replace(
            read,
            pods=sum(not _is_from_runtime(pod) for pod in pods),
            nodes=len(nodes),
            events=len(self._events),
            pod=pods[0].key if len(pods) == 1 else "",
            node=valid_name(node or (hosts.pop() if len(hosts) == 1 else "")),
            oom_reports=reports,
            containers=sum(map(_is_from_runtime, pods)),
            workloads=workloads,
            program_messages=len(self._said.kills) + sum(failure.times for failure in self._said.failures),
        )

    def gather(self, reported: Iterable[Death]) -> None:
        """Put everything together."""
        said = self._said
        kills = _named(_without_echoes(reported), self._pods, self._known.profile)
        traces, signs = list(said.traces), list(said.signs)
        for entry in said.journal:
            if entry.kind is Kind.OOM_KILLED and isinstance(entry.because, OOMKill):
                kills.append(journal_kill(entry, entry.because))
            for each in journal_traces(entry):
                (traces if isinstance(each, EvictionTrace) else signs).append(each)  # type: ignore[arg-type]
        for event in self._events:
            if (trace := event_trace(event)) is not None:
                traces.append(trace)
            if (sign := event_sign(event)) is not None:
                signs.append(sign)
        traces += [trace for pod in self._pods if (trace := status_trace(pod)) is not None]
        told = {trace.text.strip() for trace in traces}
        traces += [message_trace(message) for message in said.messages if message.strip() not in told]
        for node in self._nodes:
            signs += condition_signs(node)
        programs = self._program_kills(kills)
        self.deaths = [*kills, *self._evictions(traces), *programs]
        notices = self._notices(signs, len(kills))
        self._end(notices)
        is_unnamed = any(death.reason is Reason.NO_REPORT for death in self.deaths)
        # A text that says of a container nothing but that it was OOM-killed is about one that is listed.
        self.notices = [
            sign
            for sign in notices
            if not (is_unnamed and not (sign.at or sign.node or sign.pod or sign.container_id or sign.unit))
        ]

    def _program_kills(self, kills: Sequence[Death]) -> list[Death]:
        """Return the kills by programs, without those that the kernel reports itself."""
        reported: dict[int, list[str]] = {}
        for kill in kills:
            for victim in kill.victims:
                if victim.pid is not None:
                    reported.setdefault(victim.pid, []).append(kill.when)
        found = []
        for program in self._said.kills:
            times = reported.get(program.pid or 0, ())
            if any(_is_within(at, program.at, _SAME_KILL_SECONDS, unknown=False) for at in times):
                continue
            place = place_of(program.cgroup)
            found.append(
                Death(
                    Manner.PROGRAM,
                    program.killer.value,
                    when=program.at,
                    where=program.host,
                    pod_uid=program.pod_uid or place.pod_uid,
                    container_id=program.container_id or place.container_id,
                    qos_class=program.qos_class or place.qos_class,
                    program=program,
                )
            )
        return _named(found, self._pods, self._known.profile)

    def _evictions(self, traces: Sequence[EvictionTrace]) -> Iterator[Death]:
        gone: dict[str, set[str]] = {}
        of_pod = {key: pod.spec.node_name for pod in self._pods for key in (pod.key, pod.metadata.uid) if key}
        nodes = _Nodes(self._pods, self._nodes, self._known.cluster)
        near = next((seconds for trace in traces if (seconds := seconds_of(trace.at)) is not None), None)

        def when(group: list[EvictionTrace]) -> float:
            times = (seconds_of(trace.at, near) for trace in group)
            return min((seconds for seconds in times if seconds is not None), default=0.0)

        groups = sorted(gathered(traces), key=when)
        self.left_out += max(0, len(groups) - MOST_EVICTIONS)
        for group in groups[-MOST_EVICTIONS:]:
            uid = next((trace.uid for trace in group if trace.uid), "")
            told = next((trace.node for trace in group if trace.node), "")
            # A host in a log may be the node by another name, and a pod of a StatefulSet may have come back elsewhere.
            node = of_pod.get(uid) or (told if nodes.has(told) else of_pod.get(group[0].pod)) or told
            before = gone.setdefault(node, set())
            out = frozenset(before)
            shown, profile = self._most_shown, self._known.profile
            death = examine_eviction(group, nodes.known(node), gone=out, most_shown=shown, profile=profile)
            before.add(death.pod_uid)
            yield death

    def _notices(self, signs: Iterable[NodeSign], kills: int) -> list[NodeSign]:
        """Return what tells of kills by the kernel whose reports are not there; those of a report are its evidence.

        systemd gives a unit the result 'oom-kill' for systemd-oomd's kills, too: those are not the kernel's. All else
        that nodes went through is in ``signs``.
        """
        by_oomd = [
            (death.program, unit)
            for death in self.deaths
            if death.program is not None and death.program.killer is Killer.SYSTEMD_OOMD
            for unit in (death.program.victim, *_units(death.program.cgroup))
        ]
        found: dict[tuple[str, str, str], NodeSign] = {}
        notices = []
        versions = {node.name: node.status.node_info.kubelet_version for node in self._nodes}
        for each in _once(signs):
            sign = each
            if sign.kind is SignKind.OOMD_KILLED_NOTHING:
                if all(program.host != sign.node for program, _ in by_oomd):  # else it did kill
                    self.signs.append(sign)
                continue
            if sign.kind not in OOM_SIGNS:
                self.signs.append(sign)
                continue
            if sign.kind is SignKind.SYSTEM_OOM and _tells_cgroups_apart(versions.get(sign.node, "")):
                sign = replace(sign, is_machines=True)
            place = self._kill_of(sign, kills)
            if place is not None:
                kill, by = self.deaths[place], _NOTICED_BY.get(sign.kind, "")
                evidence = (*kill.evidence, *[Fact("noticed", f"by {by}")] * bool(by))
                is_quoted = sign.kind is SignKind.OOM_KILLING
                self.deaths[place] = replace(
                    kill,
                    where=kill.where or (sign.node if is_quoted else ""),
                    when=kill.when or (sign.at if is_quoted else ""),
                    evidence=tuple(dict.fromkeys(evidence)),
                )
                continue
            if any(
                unit == sign.unit != ""
                and program.host in {sign.node, ""}
                and _is_within(program.at, sign.at, _SAME_UNIT_SECONDS, unknown=True)
                for program, unit in by_oomd
            ):
                continue
            key = sign.node, sign.kind.value, sign.container_id[:_ID_CHARACTERS] or sign.unit or f"{sign.pid}"
            known = found.get(key)
            if known is not None and _is_within(known.at, sign.at, _SAME_KILL_SECONDS, unknown=True):
                continue  # systemd says it twice: of the process, and of the unit that failed
            found[key] = sign
            notices.append(sign)
        return notices

    def _kill_of(self, sign: NodeSign, kills: int) -> int | None:
        """Return the place of the kernel's kill that a daemon or an event tells of."""
        reported = list(enumerate(self.deaths[:kills]))
        for place, kill in reported:
            path = "" if kill.oom is None else kill.oom.victim_cgroup or kill.oom.cgroup
            if sign.pid is not None:
                if any((victim.pid, victim.name) == (sign.pid, sign.process) for victim in kill.victims):
                    return place
            elif sign.container_id:
                if kill.container_id == sign.container_id:
                    return place
            elif sign.unit and sign.unit in _units(path):
                return place
        if sign.pid is not None:
            return None
        for place, kill in reported:
            # Lines of a report that do not say where the victim was: on its host, at its time.
            path = "" if kill.oom is None else kill.oom.victim_cgroup or kill.oom.cgroup
            is_placed = kill.container_id or path or not kill.victims or kill.where != sign.node
            if not is_placed and _is_within(kill.when, sign.at, _SAME_MOMENT_SECONDS, unknown=False):
                return place
        return None

    def _end(self, notices: list[NodeSign]) -> None:
        """Add how containers ended: to the deaths that they are, or as deaths of their own."""
        for ended in ends_of(self._pods, self.deaths, self._events):
            end = ended.end
            if ended.death is not None:
                self._add_status(ended.death, ended)
            elif end.cause in NOT_KILLED:
                self.exits.append(end)
            else:
                is_oom = end.cause in {EndCause.KERNEL, EndCause.KERNEL_OF_CHILD}
                by = (
                    "kernel"
                    if is_oom
                    else "unknown"
                    if end.cause in {EndCause.SIGKILL, EndCause.NODE_LOST}
                    else "kubelet"
                )
                notices[:] = [sign for sign in notices if not (is_oom and _is_of(sign, end))]
                self.deaths.append(
                    Death(
                        Manner.OOM_KILL if is_oom else Manner.CONTAINER,
                        by,
                        when=end.at,
                        where=end.node,
                        reason=Reason.NO_REPORT if is_oom else Reason.NOT_RANKED,
                        pod=end.pod,
                        container=end.container,
                        container_id=end.container_id,
                        qos_class=next((pod.status.qos_class for pod in self._pods if pod.key == end.pod), None),
                        status=end,
                    )
                )

    def _add_status(self, place: int, ended: Ended) -> None:
        death, end = self.deaths[place], ended.end
        own = next((pod for pod in self._pods if pod.key == end.pod), None)
        if not death.pod and end.pod and death.manner is not Manner.EVICTION:
            qos_class = own.status.qos_class if own is not None else None
            death = replace(death, pod=end.pod, container=end.container, qos_class=qos_class or death.qos_class)
        self.deaths[place] = replace(death, status=death.status or end)


def _is_from_runtime(pod: FatedPod) -> bool:
    return isinstance(pod, PastedPod) and pod.is_from_runtime


def _is_among(pod: PastedPod, names: Mapping[str, set[str]]) -> bool:
    namespaces = names.get(pod.metadata.name, set())
    return bool(namespaces) and pod.metadata.namespace in {"", *namespaces} and bool(pod.metadata.name)


def _is_of(sign: NodeSign, end: ContainerEnd) -> bool:
    """Whether a notice is about the end of a container."""
    return bool(sign.container_id and sign.container_id == end.container_id) or bool(sign.pod and sign.pod == end.pod)


def _tells_cgroups_apart(kubelet_version: str) -> bool:
    """Whether a kubelet takes no cgroup's OOM for the machine's: since 1.21."""
    found = _VERSION.match(kubelet_version)
    return found is not None and (int(found[1]), int(found[2])) >= (1, 21)


def _units(cgroup: str) -> list[str]:
    """Return the systemd units of a cgroup, the one that it belongs to last."""
    return [part for part in cgroup.split("/") if part.endswith((".service", ".scope"))]


def _once(signs: Iterable[NodeSign]) -> Iterator[NodeSign]:
    """Yield signs once each, in time, without pressure that ended and never began: a kubelet says that at its start."""
    signs = sorted(dict.fromkeys(signs), key=lambda sign: seconds_of(sign.at) or 0.0)
    lost = {sign.node for sign in signs if sign.kind is SignKind.NOT_READY and sign.node}
    victims = {(sign.kind, sign.pid, sign.process) for sign in signs if sign.pid is not None and (sign.node or sign.at)}
    timed = {(sign.kind, sign.node, sign.condition) for sign in signs if sign.at}
    begun: set[tuple[str, str]] = set()
    for sign in signs:
        if sign.kind is SignKind.NOT_READY and lost and not sign.node:
            continue  # every pod of a lost node gets an event
        if not (sign.node or sign.at) and (sign.kind, sign.pid, sign.process) in victims:
            continue  # the same words again, without what was around them
        is_of_condition = sign.condition or sign.kind is SignKind.NOT_READY
        if not sign.at and is_of_condition and (sign.kind, sign.node, sign.condition) in timed:
            continue  # a table without times, and the condition itself
        if sign.kind is SignKind.PRESSURE_BEGAN:
            begun.add((sign.node, sign.condition))
        if sign.kind is not SignKind.PRESSURE_ENDED or (sign.node, sign.condition) in begun:
            yield sign


class _Nodes:
    """What is known of nodes, by their names; each is looked up once."""

    def __init__(self, pods: Iterable[FatedPod], nodes: Iterable[Node], cluster: ClusterSnapshot | None) -> None:
        self._pods: dict[str, list[FatedPod]] = {}
        for pod in pods:
            # One of a table has no requests there, and cannot be ranked.
            if not isinstance(pod, PastedPod) or pod.is_whole:
                self._pods.setdefault(pod.spec.node_name, []).append(pod)
        self._nodes = {node.name: node for node in nodes}
        self._cluster = cluster
        self._known: dict[str, SceneNode] = {}

    def has(self, name: str) -> bool:
        """Whether anything is known of a node."""
        return name in self._pods or name in self._nodes

    def known(self, name: str) -> SceneNode:
        """Return what is known of a node; pods that name no node may be on any."""
        if name not in self._known:
            summary = None if self._cluster is None or not name else self._cluster.summary(name)
            seen = None if summary is None else observe(summary)
            node = self._nodes.get(name)
            capacity = {} if seen is None else {signal: own.capacity for signal, own in seen.signals.items()}
            if node is not None and MEMORY in node.status.capacity:
                capacity.setdefault(Signal.MEMORY, node.status.capacity[MEMORY].value)
            self._known[name] = SceneNode(
                name,
                (*self._pods.get(name, ()), *(self._pods.get("", ()) if name else ())),
                {} if seen is None else seen.pods,
                capacity,
                None if node is None or not node.status.allocatable else counted(node.status.allocatable),
            )
        return self._known[name]
