"""The kubelet's log: what its eviction manager wrote, as text of klog in all its forms and as JSON; events in lines.

Known are sentences (up to 1.20), sentences with fields (since 1.21) and ``--logging-format=json``. What carries the
lines is off already (``kernel.log_lines``); what kubectl prints is ``objects.kubectl_text``'s.

Sources: Kubernetes v1.8 to v1.36 pkg/kubelet/eviction/eviction_manager.go, pkg/kubelet/util/format/pod.go;
klog v2 internal/serialize, k8s_references.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from podqos.eviction.message_reading import EvictionMessage, MessageKind, read_message
from podqos.eviction.messages import NODE_WAS_LOW, THRESHOLD_MET
from podqos.kernel.message import Message
from podqos.model.event import Event, EventSource, ObjectReference
from podqos.survival.autopsy.eviction_traces import (
    MONTHS,
    EvictionCause,
    EvictionTrace,
    NodeSign,
    SignKind,
    TraceSource,
    event_sign,
    event_trace,
)
from podqos.survival.autopsy.terminations import is_evidence

_SHUTS_DOWN = "Shutdown manager killing pod"
_PROBED = "Message for Container of pod"
MARKS = (
    *(b"Evict", b"eviction manager:", b"reason: 'SystemOOM'", b"reason: 'Killing'"),
    *(_SHUTS_DOWN.encode(), _PROBED.encode()),
)
"""What every line holds that matters in a log."""
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


ONSETS = tuple(words.encode() for words in _ONSET)
"""What the eviction manager says that matters."""


_SAID = (
    "Event occurred",
    "Event(v1.ObjectReference{",
    _PROBED,
    "Evicting pod",
    "Evicted pod",
    "Failed to admit pod",
    _SHUTS_DOWN,
    *_ONSET,
)


def may_say(text: str) -> bool:
    """Whether a line may tell of an eviction, as far as its words say."""
    return bool([words for words in _SAID if words in text])


class _Reclaim(Struct):
    """What a kubelet is at."""

    resource: str = ""
    signal: str = ""
    threshold: str = ""
    available: str = ""
    ranked: tuple[str, ...] = ()


class KubeletLog:
    """Takes messages, and yields what they tell of evictions. Several hosts may be in one log."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Reclaim] = {}
        self.is_told = False
        """Whether the last message told anything, if only for those after it."""
        self.others = 0
        """How many lines of the kubelet's tell nothing here: of a log that is whole there are many."""
        self._reclaims = False
        """Whether anything was ever reclaimed."""

    def feed(self, message: Message) -> Iterator[EvictionTrace | NodeSign | Event]:
        """Yield what a message completes; of events those about the end of a container."""
        self.is_told = False
        text = message.text
        if message.fields and "msg" in message.fields:
            fields = {key: _plain(value) for key, value in message.fields.items()}
            yield from self._said(fields.pop("msg", ""), fields, _in_seconds(message.at), message.host)
            return
        found = _HEADER.search(text, 0, 600)
        if found is not None:
            at, host = _when(found, text[: found.start()], message)
            sentence, fields = _of_klog(text[found.end() :])
            yield from self._said(sentence, fields, at, host)
        elif '"msg":' in text and (start := text.find('{"', 0, 600)) >= 0:
            carrier = _CARRIER.search(text[:start])
            host = message.host or (carrier[1] if carrier is not None else "")
            yield from self._of_json(text[start:], message.at, host)

    def _of_json(self, text: str, at: str, host: str) -> Iterator[EvictionTrace | NodeSign | Event]:
        try:
            read = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return
        if isinstance(read, dict):
            fields = {key: _plain(value) for key, value in read.items()}
            yield from self._said(fields.pop("msg", ""), fields, at or _in_seconds(fields.get("ts", "")), host)

    def _said(
        self, sentence: str, fields: Mapping[str, str], at: str, host: str
    ) -> Iterator[EvictionTrace | NodeSign | Event]:
        self.is_told = True
        if sentence == "Event occurred":
            yield from _of_logged_event(fields, at, host)
        elif sentence.startswith("Event(v1") and (found := _OLD_EVENT.match(sentence)):
            about = ObjectReference(found[1], found[2], found[3], found[4], found[5])
            yield from _of_event(found[6], host, found[7], about, at)
        elif sentence == _PROBED and (pods := _pods(fields.get("pod", ""))):
            namespace, _, name = pods[0].partition("/")
            field = f"spec.containers{{{fields.get('containerName', '')}}}"
            about = ObjectReference("Pod", namespace, name, field_path=field)
            yield from _of_event("Killing", host, fields.get("containerMessage", ""), about, at)
        elif sentence == "Evicting pod" and (pods := _pods(fields.get("pod", ""))):
            yield self._trace(pods[0], at, host, text=fields.get("message", ""), uid=fields.get("podUID", ""))
        elif sentence.startswith(_SHUTS_DOWN) and (pods := _pods(fields.get("pod", ""))):
            yield EvictionTrace(TraceSource.KUBELET_LOG, pods[0], EvictionCause.NODE_SHUTDOWN, at, host)
        elif sentence == "Evicted pod" and "strategy" in fields and (pods := _pods(fields.get("pod", ""))):
            # The descheduler's; what it is run on is another node.
            node = fields.get("node", "")
            yield EvictionTrace(TraceSource.MESSAGE, pods[0], EvictionCause.EVICTION_API, at, node)
        elif sentence.startswith(("Failed to admit pod to node", "Failed to admit pod ")) and "ondition" in (
            sentence + "".join(fields)
        ):
            if pods := _pods(fields.get("pod", "") or sentence):
                yield EvictionTrace(TraceSource.KUBELET_LOG, pods[0], EvictionCause.NOT_ADMITTED, at, host)
        elif sentence[1:].startswith("viction manager:"):
            yield from self._by_manager(sentence, fields, at, host)
        else:
            self.is_told = False

    def _by_manager(
        self, sentence: str, fields: Mapping[str, str], at: str, host: str
    ) -> Iterator[EvictionTrace | NodeSign]:
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
                    yield NodeSign(SignKind.THRESHOLD_MET, at, host, resource=resource)
            case "ranked":
                at_work.ranked = pods
            case "observed":
                if fields.get("log", "").endswith("updated stats"):
                    at_work.signal = fields.get("signal", "")
                    at_work.threshold, at_work.available = fields.get("quantity", ""), fields.get("available", "")
            case "evicted" if pods:
                yield self._trace(pods[0], at, host)
                self._hosts[host] = _Reclaim()
            case "timed out":
                yield NodeSign(SignKind.CLEAN_UP_TIMED_OUT, at, host, pod=pods[0] if pods else "")
            case "reduced" | "nothing":
                kind = SignKind.RECLAIMED if what == "reduced" else SignKind.NOTHING_TO_EVICT
                yield NodeSign(kind, at, host, resource=at_work.resource)
                self._hosts[host] = _Reclaim()
            case _:
                self.is_told = bool(what)

    def _trace(self, pod: str, at: str, host: str, *, text: str = "", uid: str = "") -> EvictionTrace:
        at_work = self._at_work(host)
        said = text
        if not said and at_work.resource:
            said = NODE_WAS_LOW.format(resource=at_work.resource)
            if at_work.threshold:
                said += THRESHOLD_MET.format(threshold=at_work.threshold, available=at_work.available)
        message = read_message(said)
        is_pressure = bool(at_work.ranked) or (message is not None and message.kind is MessageKind.PRESSURE)
        name, _, own_uid = pod.partition("(")
        return EvictionTrace(
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

    def _without_pressure(self, message: EvictionMessage | None) -> EvictionCause:
        """Return why a pod was evicted that nothing was reclaimed for, unless someone kept too few lines to tell."""
        is_told = message is not None or self._reclaims or self.others >= _LEAST_OTHERS
        return EvictionCause.LOCAL_STORAGE_LIMIT if is_told else EvictionCause.UNKNOWN

    def _at_work(self, host: str) -> _Reclaim:
        if host not in self._hosts and len(self._hosts) >= _MOST_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return self._hosts.setdefault(host, _Reclaim())


def _of_event(
    reason: str, host: str, text: str, about: ObjectReference, at: str
) -> Iterator[EvictionTrace | NodeSign | Event]:
    event = Event(reason=reason, message=text, involved_object=about, source=EventSource(host=host), first_timestamp=at)
    trace = event_trace(event)
    if trace is not None:
        yield trace
    sign = event_sign(event)
    if sign is not None:
        yield sign
    if is_evidence(event):
        yield event


def _of_logged_event(fields: Mapping[str, str], at: str, host: str) -> Iterator[EvictionTrace | NodeSign | Event]:
    """Read an event that a kubelet logged."""
    namespace, slash, name = fields.get("object", "").rpartition("/")
    about = ObjectReference(fields.get("kind", ""), namespace if slash else "", name)
    yield from _of_event(fields.get("reason", ""), host, fields.get("message", ""), about, at)


def _when(found: re.Match[str], before: str, message: Message) -> tuple[str, str]:
    """Return when a line was written, and where: klog says neither year nor host, what carries it may."""
    carrier = _CARRIER.search(before)
    month = int(found[1])
    own = f"{MONTHS[month - 1]} {int(found[2]):2} {found[3]}" if 1 <= month <= 12 else ""
    return message.at or own, message.host or (carrier[1] if carrier is not None else "")


def _in_seconds(at: str) -> str:
    """Return a time in seconds; up to 1.23 kubelets write milliseconds into JSON."""
    found = _MILLISECONDS.fullmatch(at)
    return at if found is None else f"{found[1]}.{found[2]}"


def _of_klog(text: str) -> tuple[str, dict[str, str]]:
    """Return what klog said, and its fields."""
    found = _SENTENCE.match(text)
    if found is None:
        old = _OLD.match(text)
        return (old[1] if old is not None else text[:4000]), {}
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
