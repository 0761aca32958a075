"""What the kubelet's side leaves of deaths, gathered while logs are read: evictions, terminations, what nodes saw."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import OOMKill
from podqos.answers.event_lines import EventLines
from podqos.answers.log_marks import Mark, Needle, next_mark
from podqos.answers.other_killers import FEW_MARKS, TOLD_NOTHING, OtherKillers, Topic, without_echoes, without_repeats
from podqos.eviction.observation import observe
from podqos.eviction.signals import Signal
from podqos.kernel.message import Message
from podqos.manifest.decode import convert
from podqos.model.event import Event
from podqos.model.node import Node
from podqos.model.pod_fate import FatedPod
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.kubectl_text.pasted import NOTHING, Pasted, PastedPod, joined, without_known
from podqos.objects.objects import Objects
from podqos.placement.demand import counted
from podqos.survival.autopsy.autopsy import Autopsies, OOMAutopsy
from podqos.survival.autopsy.eviction_autopsy import PodEviction, best_message, examine_eviction, gathered
from podqos.survival.autopsy.eviction_scene import SceneNode
from podqos.survival.autopsy.eviction_traces import (
    EvictionTrace,
    NodeSign,
    SignKind,
    condition_signs,
    event_sign,
    event_trace,
    journal_traces,
    message_trace,
    seconds_of,
    status_trace,
)
from podqos.survival.autopsy.journal import journal_kill
from podqos.survival.autopsy.kubelet_log import MARKS, ONSETS, KubeletLog, may_say
from podqos.survival.autopsy.terminations import (
    ContainerTermination,
    Evidence,
    TerminationCause,
    containers_by_id,
    exits,
    is_evidence,
    terminations,
)
from podqos.survival.autopsy.userspace_kill import UserspaceKill
from podqos.survival.autopsy.what_was_read import WhatWasRead

_VERSION = re.compile(r"v?(\d{1,3})\.(\d{1,3})\b")
_POD = "Pod"
_MOST_TRACES = 100_000
_MOST_SIGNS = 10_000
MOST_EVICTIONS = 2_000
"""The last of them are examined."""
_HEAD_BYTES = 1 << 16
_MOST_ROWS = 1_000_000
_JOURNAL = b'"time_us":'
_IN_JOURNALS = (b'"OOMKilled"', b'"ConditionChanged"', b'"Rejected"', b'"Preempted"', b'"RoomForCritical"')
_EVICTED = Needle(
    b"Evict",
    re.compile(rb"Evict(?!ion manager:)"),
    beside=re.compile(rb"[IWEF][0-9]{4} [0-9]{2}:|msg|reason|REASON|time_us"),
)
"""What is said of evictions, by klog or in fields."""
_MANAGER = b"viction manager:"
_BY_MANAGER = tuple(
    Needle(onset, re.compile(re.escape(onset)), beside=re.compile(re.escape(_MANAGER))) for onset in ONSETS
)
"""What the eviction manager says; of a verbose kubelet it says of every check that nothing is to be done."""
TELLING_FIELDS = frozenset(("time_us", "reason", "msg"))
"""By one of them a record tells of the kubelet's decisions whatever its message says."""
_CREDIT, _MOST_CREDIT = 2, 64
"""More than one line in three tells something: so few are read where marks are far apart."""
_MOST_EVENTS = 10_000
"""Of a log, those that may be about the end of a container: the last of them are kept."""


def fated_pods(objects: Objects | None, cluster: ClusterSnapshot | None) -> list[FatedPod]:
    """Return the pods of a cluster or among objects, with all that nodes say about them."""
    if cluster is not None:
        return list(cluster.fated_pods)
    pods = []
    for workload in () if objects is None else objects.workloads:
        if workload.workload.kind == _POD and objects is not None:
            known = workload.workload.pod
            if isinstance(known, FatedPod):
                pods.append(known)
                continue
            try:
                pods.append(
                    replace(convert(objects.plain(workload), FatedPod), metadata=known.metadata, spec=known.spec)
                )
            except msgspec.ValidationError:  # its status is not in order: the rest is
                pods.append(FatedPod(known.metadata, known.spec))
    return pods


class KubeletSide:
    """Takes what tells of evictions, and puts it together."""

    def __init__(self) -> None:
        self._marks: tuple[Mark, ...] = ()
        self._far_marks: tuple[Mark, ...] = ()
        self._words: tuple[str, ...] = ()
        self.repeatable: Topic | None = None
        """What the last line was about, if lines like it need only be counted or tell nothing."""
        self._others = OtherKillers()
        self._log = KubeletLog()
        self._traces: list[EvictionTrace] = []
        self._signs: list[NodeSign] = []
        self._event_lines = EventLines()
        self._events: list[Event] = []
        self._logged = set[tuple[str, ...]]()
        """Events in lines of logs: what kubectl printed may be the same text."""
        self._logged_events: deque[Event] = deque(maxlen=_MOST_EVENTS)
        """Those of logs that are evidence."""
        self._events_seen = 0
        self._credit = 0
        """It grows with lines that tell something, and shrinks with others."""
        self._left_out = 0
        self._kills: list[OOMAutopsy] = []
        self._pastes: list[Pasted] = []
        self._pods: list[FatedPod] = []
        self._nodes: set[str] = set()

    def read_in(self, read: WhatWasRead) -> WhatWasRead:
        """Return what was read with the pods, nodes and Events, wherever they come from; after ``told``."""
        keys = list({pod.metadata.uid or pod.key: pod.key for pod in self._pods}.values())  # files may overlap
        names = {pod.spec.node_name for pod in self._pods if pod.spec.node_name} or self._nodes
        return replace(
            read,
            pods=len(keys),
            nodes=len(self._nodes),
            events=self._events_seen,
            pod=keys[0] if len(keys) == 1 else "",
            node=read.node or (next(iter(names)) if len(names) == 1 else ""),
        )

    def begin(self, head: bytes) -> int:
        """Begin another log, and return how many of its lines matter: all of events in JSON, else those with a mark."""
        self._log = KubeletLog()
        first = head[:_HEAD_BYTES].lstrip().partition(b"\n")[0]
        is_journal = first.startswith(b"{") and _JOURNAL in first
        own = (*MARKS, *_IN_JOURNALS) if is_journal else MARKS
        in_journals = _IN_JOURNALS if is_journal else ()
        near, far = self._others.marks(head)
        self._marks = (_EVICTED, *in_journals, *near)
        self._far_marks = (*(() if far is FEW_MARKS else (_EVICTED,)), *in_journals, *far)
        self._words = tuple(mark.decode() for mark in own)
        is_whole = self._others.begin(head)
        are_events = self._event_lines.begin(first)
        return _MOST_ROWS if is_whole or are_events else 0

    def marks_in(self, chunk: bytes, *, is_far: bool) -> tuple[Mark, ...]:
        """Return what a fast reader looks for in a part of a log, or ``is_far``: beyond what is ``VERY_LARGE``."""
        by_manager = _BY_MANAGER if next_mark(chunk, _MANAGER, 0) >= 0 else ()
        return (*by_manager, *(self._far_marks if is_far else self._marks), *self._others.marks_of_counted)

    @property
    def lines_after(self) -> int:
        """How many lines after the last one matter as well: all where most have told something."""
        return max(self._others.lines_after, self._credit if self.is_dense else 0)

    @property
    def is_dense(self) -> bool:
        """Whether so many of the last lines told something that to read all is faster than to look for the next."""
        return self._credit > _MOST_CREDIT // 2

    @property
    def containers(self) -> int:
        """How many containers their runtime shows."""
        return self._others.containers

    def repeat(self, topic: Topic, times: int) -> None:
        """Count lines like one that was about a topic."""
        self._others.repeat(topic, times)

    def take_lines(self, lines: Sequence[str]) -> tuple[bool, Sequence[str]]:
        """Take lines as they were found; return whether one is of a container or an event, and those to be read."""
        if self._others.feed_lines(lines):
            return True, lines
        taken = self._event_lines.read(lines)
        for event in taken.events:
            self._add_logged(event)
        return bool(taken.events), taken.rest

    def may_tell(self, line: str) -> bool:
        """Whether a line as it was found may tell anything, if nothing but what precedes its message carries it."""
        return self._others.may_tell(line) or may_say(line)

    def take(self, message: Message, *, is_every: bool) -> None:
        """Take a line of a log; ``is_every``: of one whose lines all matter."""
        is_told = self._add(self._others.feed(message)) or self._others.lines_after > 0
        is_kubelets = is_every or message.fields or any(word in message.text for word in self._words)
        if is_kubelets and self.feed(message):
            is_told = True
        elif ".go:" in message.text:
            self._log.others += 1
        self._credit = min(_MOST_CREDIT, self._credit + _CREDIT) if is_told else max(0, self._credit - 1)
        topic = self._others.repeatable
        self.repeatable = None if is_told and topic is TOLD_NOTHING else topic

    def feed(self, message: Message) -> bool:
        """Take a line of a log that may tell of the kubelet's decisions; return whether it does."""
        fields = message.fields
        if "time_us" in fields:
            self._add_entry(fields)
        elif "reason" in fields and ("involvedObject" in fields or "regarding" in fields):
            self._add_event(fields)
        else:
            self._add(self._log.feed(message))
            return self._log.is_told
        return True

    def add_events(self, events: Iterable[Event]) -> None:
        """Take events of a cluster."""
        for event in events:
            self._events.append(event)
            self._see(event)

    def _add_logged(self, event: Event) -> None:
        if is_evidence(event):
            self._logged_events.append(event)
        if len(self._logged) < _MOST_EVENTS:
            self._logged.add(_key(event))
        self._see(event)

    def _see(self, event: Event) -> None:
        self._events_seen += 1
        if (trace := event_trace(event)) is not None:
            self._add([trace])
        if (sign := event_sign(event)) is not None:
            self._add([sign])

    def add_paste(self, paste: Pasted) -> None:
        """Take what kubectl printed in a text."""
        if paste is not NOTHING:
            self._pastes.append(paste)

    def _add_entry(self, fields: Mapping[str, object]) -> None:
        try:
            entry = msgspec.convert(dict(fields), Entry)
        except (msgspec.ValidationError, RecursionError):
            return  # of another program, or of a journal that is yet to be invented
        if entry.kind is Kind.OOM_KILLED and isinstance(entry.because, OOMKill):
            self._kills.append(journal_kill(entry, entry.because))
        self._add(journal_traces([entry]))

    def _add_event(self, fields: Mapping[str, object]) -> None:
        try:
            self._add_logged(convert(dict(fields), Event))
        except (msgspec.ValidationError, RecursionError):
            return  # something else that has a reason

    def _add(self, found: Iterable[EvictionTrace | NodeSign | Event]) -> bool:
        """Keep what was found; return whether any of it had room."""
        before = len(self._traces) + len(self._signs)
        for each in found:
            if isinstance(each, EvictionTrace):
                if len(self._traces) < _MOST_TRACES:
                    self._traces.append(each)
            elif isinstance(each, Event):
                self._logged_events.append(each)
            elif len(self._signs) < _MOST_SIGNS:
                self._signs.append(each)
        return len(self._traces) + len(self._signs) > before

    def told(
        self,
        found: Autopsies,
        pods: list[FatedPod],
        objects: Objects | None,
        cluster: ClusterSnapshot | None,
        *,
        most_shown: int,
        profile: Profile = LATEST,
    ) -> Autopsies:
        """Return what was found with the kubelet's side of it; ``pods`` are those of the objects or of the cluster."""
        paste = self._pastes[0] if len(self._pastes) == 1 else joined(self._pastes)
        paste = without_known(paste, pods)
        pods = [*pods, *paste.pods]
        nodes = (*(() if objects is None else objects.of(Node)), *paste.nodes)
        self._pods, self._nodes = pods, {node.name for node in nodes}
        self.add_events(() if objects is None else objects.of(Event))
        self.add_events(event for event in paste.events if _key(event) not in self._logged)
        self.add_events(() if cluster is None else cluster.events)
        self._add(trace for pod in pods if (trace := status_trace(pod)) is not None)
        told = {trace.text.strip() for trace in self._traces}
        self._add(message_trace(message) for message in paste.messages if message.strip() not in told)
        for node in nodes:
            self._add(condition_signs(node))
        pasted = [_of_pasted(kill, paste.pods) for kill in without_echoes(found.kills)]
        kills = (*_named_by_status(pasted, paste.pods), *self._kills)
        evictions = self._evictions(pods, _Nodes(pods, nodes, cluster), most_shown, profile)
        by_programs = self._others.kills(pods, kills)
        evidence = Evidence(kills, evictions, [*self._logged_events, *self._events], by_programs)
        versions = {node.name: node.status.node_info.kubelet_version for node in nodes}
        ended, signs = tuple(self._ended(pods, evidence, kills)), tuple(self._told_signs(kills, by_programs, versions))
        kills = _placed(kills, signs)
        if any(killed.cause is TerminationCause.KERNEL_UNREPORTED for killed in ended):
            signs = tuple(sign for sign in signs if not _is_nameless(sign))
        return replace(
            found,
            kills=kills,
            evictions=tuple(evictions),
            evictions_left_out=self._left_out,
            terminations=ended,
            exits=(*exits(pods, evidence), *self._others.exits(kills)),
            node_events=signs,
            userspace_kills=by_programs,
            userspace_kills_left_out=self._others.kills_left_out,
            program_failures=self._others.failures,
        )

    def _ended(
        self, pods: list[FatedPod], evidence: Evidence, kills: Sequence[OOMAutopsy]
    ) -> Iterator[ContainerTermination]:
        """Yield containers that were killed: by the status of their pods, others by what the runtime shows."""
        by_runtime = list(self._others.terminations(kills))
        times = {ended.at for ended in by_runtime}
        seen = set()
        for ended in terminations(pods, evidence):
            # A part of a runtime's output can look like a part of a pod's status.
            if ended.container or ended.container_id or ended.at not in times:
                seen.add(ended.container_id)
                yield ended
        yield from (ended for ended in by_runtime if not ended.container_id or ended.container_id not in seen)

    def _evictions(self, pods: list[FatedPod], nodes: _Nodes, most_shown: int, profile: Profile) -> list[PodEviction]:
        gone: dict[str, set[str]] = {}
        of_pod = {pod.metadata.uid or pod.key: pod.spec.node_name for pod in pods}
        of_pod |= {pod.key: pod.spec.node_name for pod in pods if pod.key not in of_pod}
        times = (seconds_of(trace.at) for trace in self._traces)
        near = next((seconds for seconds in times if seconds is not None), None)
        groups = sorted(gathered(self._traces), key=lambda traces: _when(traces, near))
        messages = {traces[0].uid or traces[0].pod: said for traces in groups if (said := best_message(traces))}
        self._left_out = max(0, len(groups) - MOST_EVICTIONS)
        for traces in groups[: self._left_out]:
            gone.setdefault(next((trace.node for trace in traces if trace.node), ""), set()).add(traces[0].uid)
        found = []
        for traces in groups[self._left_out :]:
            uid = next((trace.uid for trace in traces if trace.uid), "")
            told = next((trace.node for trace in traces if trace.node), "")
            # A host in a log may be the node by another name, and a pod of a StatefulSet may have come back elsewhere.
            node = of_pod.get(uid) or (told if nodes.has(told) else of_pod.get(traces[0].pod)) or told
            before = gone.setdefault(node, set())
            known, out = replace(nodes.known(node), messages=messages), frozenset(before)
            found.append(examine_eviction(traces, known, gone=out, most_shown=most_shown, profile=profile))
            before.add(found[-1].uid)
        return found

    def _told_signs(
        self, kills: Sequence[OOMAutopsy], by_programs: Sequence[UserspaceKill], versions: Mapping[str, str]
    ) -> list[NodeSign]:
        """Return what nodes went through, once each, those about a kill with the kill."""
        by_victim = {(victim.pid, victim.name): number for number, kill in enumerate(kills) for victim in kill.victims}
        all_signs = _without_starts(sorted(self._signs, key=lambda sign: seconds_of(sign.at) or 0.0))
        own = [
            replace(sign, is_machines=True)
            if sign.kind is SignKind.SYSTEM_OOM and _tells_cgroups_apart(versions.get(sign.node, ""))
            else sign
            for sign in all_signs
        ]
        signs = dict.fromkeys(without_repeats(own, kills, by_programs))
        return [
            replace(sign, kill=by_victim[sign.pid, sign.process])
            if sign.kind in {SignKind.SYSTEM_OOM, SignKind.OOM_KILLING} and (sign.pid, sign.process) in by_victim
            else sign
            for sign in signs
        ]


def _tells_cgroups_apart(kubelet_version: str) -> bool:
    """Whether a kubelet takes no cgroup's OOM for the machine's: since 1.21."""
    found = _VERSION.match(kubelet_version)
    return found is not None and (int(found[1]), int(found[2])) >= (1, 21)


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
            self._known[name] = self._look_up(name)
        return self._known[name]

    def _look_up(self, name: str) -> SceneNode:
        pods = (*self._pods.get(name, ()), *(self._pods.get("", ()) if name else ()))
        summary = None if self._cluster is None or not name else self._cluster.summary(name)
        seen = None if summary is None else observe(summary)
        node = self._nodes.get(name)
        capacity = (
            {} if seen is None else {signal: observation.capacity for signal, observation in seen.signals.items()}
        )
        if node is not None and MEMORY in node.status.capacity:
            capacity.setdefault(Signal.MEMORY, node.status.capacity[MEMORY].value)
        allocatable = None if node is None or not node.status.allocatable else counted(node.status.allocatable)
        return SceneNode(name, pods, {} if seen is None else seen.pods, capacity, allocatable)


def _key(event: Event) -> tuple[str, ...]:
    return event.reason, event.text, event.about.namespace, event.about.name, event.first_at, event.last_timestamp or ""


def _is_nameless(sign: NodeSign) -> bool:
    """Whether a text says of a container nothing but that it was OOM-killed: it is one that is listed."""
    is_of_container = sign.kind is SignKind.CONTAINER_OOM_KILLED and sign.kill is None
    return is_of_container and not (sign.at or sign.node or sign.pod or sign.container_id)


def _placed(kills: Sequence[OOMAutopsy], signs: Iterable[NodeSign]) -> tuple[OOMAutopsy, ...]:
    """Return kills with the node and the time of the events that quote them."""
    known = list(kills)
    for sign in signs:
        if sign.kill is not None and sign.kind is SignKind.OOM_KILLING:
            kill = known[sign.kill]
            known[sign.kill] = replace(kill, host=kill.host or sign.node, at=kill.at or sign.at)
    return tuple(known)


def _of_pasted(kill: OOMAutopsy, pods: Sequence[PastedPod]) -> OOMAutopsy:
    """Return a kill with its pod, where a text has the container's id or the pod's uid."""
    if kill.pod or not pods:
        return kill
    pod, name = containers_by_id(pods).get(kill.container_id, (None, ""))
    if pod is None and kill.pod_uid:
        pod = next((pod for pod in pods if pod.metadata.uid == kill.pod_uid), None)
    return kill if pod is None else replace(kill, pod=pod.key, container=name, qos_class=pod.status.qos_class)


def _named_by_status(kills: Sequence[OOMAutopsy], pods: Sequence[PastedPod]) -> tuple[OOMAutopsy, ...]:
    """Return kills with the pods whose statuses they explain.

    A description of a container that runs again has neither the pod's uid nor the id of the one that was killed.
    """
    if not kills:
        return ()
    known = list(kills)
    classes = {pod.key: pod.status.qos_class for pod in pods}
    for ended in terminations(pods, Evidence(kills)) if pods else ():
        if ended.kill is None or not ended.pod or known[ended.kill].pod:
            continue
        kill, own = known[ended.kill], classes[ended.pod]
        if own is None or kill.qos_class in {None, own}:
            known[ended.kill] = replace(kill, pod=ended.pod, container=ended.container, qos_class=own or kill.qos_class)
    return tuple(known)


def _without_starts(signs: Iterable[NodeSign]) -> dict[NodeSign, None]:
    """Return signs once each, without pressure that ended and never began: a kubelet says that when it starts."""
    begun: set[tuple[str, str]] = set()
    kept: dict[NodeSign, None] = {}
    signs = list(signs)
    lost = {sign.node for sign in signs if sign.kind is SignKind.NOT_READY and sign.node}
    victims = {(sign.kind, sign.pid, sign.process) for sign in signs if sign.pid is not None and (sign.node or sign.at)}
    timed = {(sign.kind, sign.node, sign.condition) for sign in signs if sign.at}
    for sign in signs:
        if sign.kind is SignKind.NOT_READY and lost and not sign.node:
            continue  # every pod of a lost node gets an event
        if not (sign.node or sign.at) and (sign.kind, sign.pid, sign.process) in victims:
            continue  # the same words again, without what was around them
        is_of_condition = sign.condition or sign.kind is SignKind.NOT_READY
        if not sign.at and is_of_condition and (sign.kind, sign.node, sign.condition) in timed:
            continue  # a table without times, and the condition itself
        key = sign.node, sign.condition
        if sign.kind is SignKind.PRESSURE_BEGAN:
            begun.add(key)
        if sign.kind is not SignKind.PRESSURE_ENDED or key in begun:
            kept[sign] = None
    return kept


def _when(traces: list[EvictionTrace], near: float | None) -> float:
    times = (seconds_of(trace.at, near) for trace in traces)
    return min((seconds for seconds in times if seconds is not None), default=0.0)
