"""The kubelet's log: what its eviction manager wrote, as text of klog in all its forms and as JSON; events in lines.

Known are sentences (up to 1.20), sentences with fields (since 1.21) and ``--logging-format=json``.

Sources: Kubernetes v1.8 to v1.36 pkg/kubelet/eviction/eviction_manager.go, pkg/kubelet/util/format/pod.go;
klog v2 internal/serialize, k8s_references.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from podqos.agent.journal import Entry
from podqos.eviction.messages import NODE_WAS_LOW, THRESHOLD_MET, EvictionMessage, MessageKind, read_message
from podqos.logs.carriers import Line
from podqos.logs.said import MONTHS, EvictionCause, EvictionTrace, NodeSign, Said, SignKind, TraceSource
from podqos.manifest.decode import convert
from podqos.model.event import Event, EventSource, ObjectReference

WORDS = (
    "vict",
    "SystemOOM",
    "'Killing'",
    "Shutdown manager killing pod",
    "Message for Container of pod",
    "Event occurred",
)
"""What every line holds that matters in a log."""
_MOST = 100_000
"""Traces, signs and events that are kept of each."""
_MOST_HOSTS = 256
_LEAST_OTHERS = 20
_MOST_PODS = 2000

_HEADER = re.compile(
    r"(?:^|[ :])[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?) {1,8}\d{1,10} [\w./-]{1,80}:\d{1,6}\] "
)
_MILLISECONDS = re.compile(r"(\d{10})(\d{3})(?:\.\d{1,9})?", re.ASCII)
_CARRIER = re.compile(r"(?:^|\s)([A-Za-z0-9._-]{1,253}) [\w.@-]{1,64}(?:\[\d{1,10}\])?:\s{0,4}$")
_SENTENCE = re.compile(r'"((?:[^"\\]|\\.){0,200})"')
_FIELD = re.compile(r'(\w{1,40})=("(?:[^"\\]|\\.){0,4000}"|\[[^\]]{0,200000}\]|\S{1,600})')
_OLD = re.compile(r"(eviction manager: .{1,200000})", re.DOTALL)
_OLD_POD = re.compile(r"([a-z0-9][a-z0-9.-]{0,252})_([a-z0-9][a-z0-9-]{0,62})\(([0-9A-Za-z-]{0,64})\)")
_NEW_POD = re.compile(r"([a-z0-9][a-z0-9-]{0,62})/([a-z0-9][a-z0-9.-]{0,252})")
_WORD = re.compile(r"([A-Za-z][A-Za-z.-]{0,62})")
_OLD_EVENT = re.compile(
    r"Event\(v1\.ObjectReference\{Kind:\"(\w{1,63})\", Namespace:\"([^\"]{0,63})\", Name:\"([^\"]{1,253})\", "
    r"UID:\"([^\"]{0,64})\", [^}]{0,300}FieldPath:\"([^\"]{0,300})\"\}\): type: '\w{1,20}' reason: '(\w{1,128})' "
    r"(.{0,16000})"
)
"""An event as client-go logged it up to 1.20."""
_ONSET = {
    "attempting to reclaim": "reclaim",
    "must evict pod(s) to reclaim": "reclaim",
    "pods ranked for eviction": "ranked",
    "is evicted successfully": "evicted",
    "timed out waiting for pod": "timed out",
    "able to reduce": "reduced",
    "unable to evict any pods": "nothing",
    "no pods are active to evict": "nothing",
    "threshold observed resource": "observed",
}


class _Reclaim(Struct):
    """What a kubelet is at."""

    resource: str = ""
    signal: str = ""
    threshold: str = ""
    available: str = ""
    ranked: tuple[str, ...] = ()


class KubeletLog:
    """Takes lines, and adds what they tell of evictions to what is said. Several hosts may be in one log."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._hosts: dict[str, _Reclaim] = {}
        self._others = 0
        """How many lines of the kubelet's tell nothing here: of a log that is whole there are many."""
        self._reclaims = False
        """Whether anything was ever reclaimed."""
        self._events: set[tuple[str, ...]] = set()

    def feed(self, line: Line) -> bool:
        """Take a line; return whether it tells anything, if only for those after it."""
        fields = line.fields
        if "time_us" in fields:
            self._add_entry(fields)
            return True
        if "reason" in fields and ("involvedObject" in fields or "regarding" in fields):
            self._add_logged(fields)
            return True
        if isinstance(fields.get("msg"), str):
            plain = {key: _plain(value) for key, value in fields.items()}
            return self._read(plain.pop("msg"), plain, _in_seconds(line.at), line.host)
        text = line.raw
        found = _HEADER.search(text, 0, 600)
        if found is None:
            return False
        carrier = _CARRIER.search(text[: found.start() + 1].rstrip())
        at, host = line.origin(text[: found.start() + 1] or " ")
        month = int(found[1])
        own = f"{MONTHS[month - 1]} {int(found[2]):2} {found[3]}" if 1 <= month <= 12 else ""
        sentence, said = _of_klog(text[found.end() :])
        is_told = self._read(sentence, said, at or line.said_at or own, host or (carrier[1] if carrier else line.host))
        self._others += not is_told
        return is_told

    def _add_entry(self, fields: Mapping[str, object]) -> None:
        try:
            entry = msgspec.convert(dict(fields), Entry)
        except (msgspec.ValidationError, RecursionError):
            return  # of another program, or of a journal that is yet to be invented
        if len(self._said.journal) < _MOST:
            self._said.journal.append(entry)

    def _add_logged(self, fields: Mapping[str, object]) -> None:
        try:
            self._add_event(convert(dict(fields), Event))
        except (msgspec.ValidationError, RecursionError):
            return  # something else that has a reason

    def _add_event(self, event: Event) -> None:
        about = event.about
        key = event.reason, event.text, about.namespace, about.name, event.first_at, event.last_timestamp or ""
        if key not in self._events and len(self._events) < _MOST:
            self._events.add(key)
            self._said.events.append(event)

    def _add_trace(self, trace: EvictionTrace) -> None:
        if len(self._said.traces) < _MOST:
            self._said.traces.append(trace)

    def _add_sign(self, sign: NodeSign) -> None:
        if len(self._said.signs) < _MOST:
            self._said.signs.append(sign)

    def _read(self, sentence: str, fields: Mapping[str, str], at: str, host: str) -> bool:
        """Read what a kubelet, or a descheduler, said."""
        pods = _pods(fields.get("pod", ""))
        if sentence == "Event occurred":
            namespace, slash, name = fields.get("object", "").rpartition("/")
            about = ObjectReference(fields.get("kind", ""), namespace if slash else "", name)
            self._of_event(fields.get("reason", ""), host, fields.get("message", ""), about, at)
        elif sentence.startswith("Event(v1") and (found := _OLD_EVENT.match(sentence)):
            about = ObjectReference(found[1], found[2], found[3], found[4], found[5])
            self._of_event(found[6], host, found[7], about, at)
        elif sentence == "Message for Container of pod" and pods:
            namespace, _, name = pods[0].partition("/")
            field = f"spec.containers{{{fields.get('containerName', '')}}}"
            about = ObjectReference("Pod", namespace, name, field_path=field)
            self._of_event("Killing", host, fields.get("containerMessage", ""), about, at)
        elif sentence == "Evicting pod" and pods:
            self._evicted(pods[0], at, host, text=fields.get("message", ""), uid=fields.get("podUID", ""))
        elif sentence.startswith("Shutdown manager killing pod") and pods:
            self._add_trace(EvictionTrace(TraceSource.KUBELET_LOG, pods[0], EvictionCause.NODE_SHUTDOWN, at, host))
        elif sentence == "Evicted pod" and "strategy" in fields and pods:
            # The descheduler's; what it is run on is another node.
            node = fields.get("node", "")
            self._add_trace(EvictionTrace(TraceSource.MESSAGE, pods[0], EvictionCause.EVICTION_API, at, node))
        elif sentence.startswith("Failed to admit pod ") and "ondition" in sentence + "".join(fields):
            for pod in (pods or _pods(sentence))[:1]:
                self._add_trace(EvictionTrace(TraceSource.KUBELET_LOG, pod, EvictionCause.NOT_ADMITTED, at, host))
        elif sentence[1:].startswith("viction manager:"):
            return self._by_manager(sentence, fields, at, host)
        else:
            return False
        return True

    def _by_manager(self, sentence: str, fields: Mapping[str, str], at: str, host: str) -> bool:
        what = next((what for words, what in _ONSET.items() if words in sentence), "")
        pods = _pods(fields.get("pods", "") or fields.get("pod", "") or sentence)
        at_work = self._at_work(host)
        match what:
            case "reclaim":
                self._reclaims = True
                named = _WORD.match(fields.get("resourceName", "") or sentence.rpartition("reclaim ")[2])
                resource = named[1] if named is not None else ""
                if resource != at_work.resource:
                    at_work = self._hosts[host] = _Reclaim(signal=at_work.signal)
                at_work.resource = resource
                if "attempting" in sentence:
                    self._add_sign(NodeSign(SignKind.THRESHOLD_MET, at, host, resource=resource))
            case "ranked":
                at_work.ranked = pods
            case "observed":
                if fields.get("log", "").endswith("updated stats"):
                    at_work.signal = fields.get("signal", "")
                    at_work.threshold, at_work.available = fields.get("quantity", ""), fields.get("available", "")
            case "evicted" if pods:
                self._evicted(pods[0], at, host)
                self._hosts[host] = _Reclaim()
            case "timed out":
                self._add_sign(NodeSign(SignKind.CLEAN_UP_TIMED_OUT, at, host, pod=pods[0] if pods else ""))
            case "reduced" | "nothing":
                kind = SignKind.RECLAIMED if what == "reduced" else SignKind.NOTHING_TO_EVICT
                self._add_sign(NodeSign(kind, at, host, resource=at_work.resource))
                self._hosts[host] = _Reclaim()
            case _:
                return bool(what)
        return True

    def _evicted(self, pod: str, at: str, host: str, *, text: str = "", uid: str = "") -> None:
        at_work = self._at_work(host)
        said = text
        if not said and at_work.resource:
            said = NODE_WAS_LOW.format(resource=at_work.resource)
            if at_work.threshold:
                said += THRESHOLD_MET.format(threshold=at_work.threshold, available=at_work.available)
        message = read_message(said)
        is_pressure = bool(at_work.ranked) or (message is not None and message.kind is MessageKind.PRESSURE)
        name, _, own_uid = pod.partition("(")
        self._add_trace(
            EvictionTrace(
                TraceSource.KUBELET_LOG,
                name,
                EvictionCause.NODE_PRESSURE if is_pressure else self._without_pressure(message),
                at,
                host,
                uid or own_uid.rstrip(")"),
                text,
                message,
                at_work.signal,
                tuple(each.partition("(")[0] for each in at_work.ranked),
            )
        )

    def _without_pressure(self, message: EvictionMessage | None) -> EvictionCause:
        """Return why a pod was evicted that nothing was reclaimed for, unless someone kept too few lines to tell."""
        is_told = message is not None or self._reclaims or self._others >= _LEAST_OTHERS
        return EvictionCause.LOCAL_STORAGE_LIMIT if is_told else EvictionCause.UNKNOWN

    def _at_work(self, host: str) -> _Reclaim:
        if host not in self._hosts and len(self._hosts) >= _MOST_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return self._hosts.setdefault(host, _Reclaim())

    def _of_event(self, reason: str, host: str, text: str, about: ObjectReference, at: str) -> None:
        source = EventSource(host=host)
        self._add_event(Event(reason=reason, message=text, involved_object=about, source=source, first_timestamp=at))


def _in_seconds(at: str) -> str:
    """Return a time in seconds; up to 1.23 kubelets write milliseconds into JSON."""
    found = _MILLISECONDS.fullmatch(at)
    return at if found is None else f"{found[1]}.{found[2]}"


def _of_klog(text: str) -> tuple[str, dict[str, str]]:
    """Return what klog said, and its fields."""
    found = _SENTENCE.match(text)
    if found is None:
        old = _OLD.match(text)
        return (old[1] if old is not None else text[:20_000]), {}
    fields = {}
    for each in _FIELD.finditer(text, found.end()):
        value = each[2]
        fields[each[1]] = _unquoted(value) if value.startswith('"') else value
    return _unquoted(f'"{found[1]}"'), fields


def _unquoted(text: str) -> str:
    try:
        read = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text.strip('"')
    return read if isinstance(read, str) else text


def _plain(value: object) -> str:
    """Return a field of a JSON line as text; an object's name, and lists of them, as klog writes them."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return f"{value.get('namespace', '')}/{value.get('name', '')}"
    if isinstance(value, list):
        return " ".join(_plain(each) for each in value[:_MOST_PODS])
    return str(value) if isinstance(value, int | float) else ""


def _pods(text: str) -> tuple[str, ...]:
    """Return the pods that a text names, in their order: namespace/name, and the uid in parentheses if it says so."""
    old = [f"{found[2]}/{found[1]}({found[3]})" for found in _OLD_POD.finditer(text)]
    found = old or [f"{each[1]}/{each[2]}" for each in _NEW_POD.finditer(text)]
    return tuple(found[:_MOST_PODS])
