"""Rows of kubectl's tables: ``get pods``, ``get nodes``, ``get events``, ``events``, and the events of a description.

Rows are read by what is in them, so that headings may be missing and columns may have lost their alignment.

Sources: Kubernetes v1.36 pkg/printers/internalversion/printers.go (printPod, printNode, printEvent),
kubectl pkg/describe/describe.go (DescribeEvents) and pkg/cmd/events/event_printer.go; older forms: v1.2 to v1.12.
"""

from __future__ import annotations

import re

from podqos.model.event import Event, EventSource, ObjectReference
from podqos.model.node import Node, NodeCondition, NodeSpec, NodeStatus
from podqos.model.pod import ObjectMeta, PodSpec, WhyIdle
from podqos.model.pod_fate import ContainerRunning, ContainerState, ContainerStatus, ContainerTerminated, FullPodStatus
from podqos.objects.kubectl_text.pasted import PastedPod

_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,252})"
# In public, people replace parts of names: web-<id>, ***, XXX.
_ANY_NAME = r"(?:[A-Za-z0-9.*\[\]{}_-]|<[^<>\s]{1,40}(?: [^<>\s]{1,20}){0,3}>){1,253}"
_NAMESPACE = r"[a-z0-9](?:[a-z0-9-]{0,62})"
_AGE = r"(?:<unknown>|<invalid>|<none>|(?:\d{1,6}[ydhms]){1,3})"
_SUBOBJECT = r"spec\.[A-Za-z]{1,40}\{[^}\s]{1,253}\}"
_POD = re.compile(
    rf"(?:(?P<namespace>{_NAMESPACE})\s+)?(?:pod/)?(?P<name>{_ANY_NAME})\s+(?P<ready>\d{{1,4}})/(?P<all>\d{{1,4}})\s+"
    rf"(?P<status>[A-Z][A-Za-z0-9]{{1,60}}(?:[:/][A-Za-z0-9/]{{1,60}}){{0,2}})\s+"
    rf"(?P<restarts>\d{{1,9}})(?:\s+\({_AGE}\s+ago\))?\s+{_AGE}(?P<rest>\s.{{0,2000}})?$"
)
_WIDE = re.compile(rf"\s+(?:<none>|[0-9a-f.:]{{3,45}})\s+(?P<node><none>|{_NAME})(?:\s|$)")
_NODE = re.compile(
    rf"(?:node/)?(?P<name>{_NAME})\s+(?P<status>(?:Ready|NotReady|Unknown)(?:,SchedulingDisabled)?)\s+(?:\S{{1,253}}\s+)?"
    rf"{_AGE}\s+v\d{{1,3}}\.\d{{1,4}}\S{{0,80}}(?:\s|$)"
)
_TIMES = rf"{_AGE}(?:\s+\(x(?P<count>\d{{1,9}})\s+over\s+{_AGE}\))?"
_FROM = r"(?P<component>[A-Za-z][A-Za-z0-9./_-]{0,252})(?:,\s(?P<host>[a-z0-9][a-z0-9.-]{0,252}))?"
_REASON = r"(?P<type>Normal|Warning)\s+(?P<reason>[A-Z][A-Za-z0-9]{1,127})"
_OF_DESCRIPTION = re.compile(rf"{_REASON}\s+{_TIMES}\s+{_FROM}\s+(?P<message>\S.{{0,16000}})$")
_OF_GET = re.compile(
    rf"(?:(?P<namespace>{_NAMESPACE})\s+)?{_TIMES}\s+{_REASON}\s+"
    rf"(?P<kind>[A-Za-z.]{{1,63}})/(?P<name>{_ANY_NAME})\s+(?P<message>\S.{{0,16000}})$"
)
# With -o wide: what it is about inside the object, who saw it; and behind the message first seen, count and name.
_BEFORE = re.compile(rf"(?:(?P<field>{_SUBOBJECT})\s+)?{_FROM}\s{{2,}}(?P<message>\S.*)$")
_AFTER = re.compile(rf"\s{{1,80}}{_AGE}\s{{1,80}}(?P<count>\d{{1,9}})\s{{1,80}}{_NAME}\.[0-9a-f]{{12,18}}$")
_OF_OLD_GET = re.compile(
    rf"(?:(?P<namespace>{_NAMESPACE})\s+)?{_AGE}\s+{_AGE}\s+(?P<count>\d{{1,9}})\s+(?P<name>{_NAME})\s+"
    rf"(?P<kind>[A-Z][A-Za-z]{{1,62}})\s+(?:(?P<field>{_SUBOBJECT})\s+)?{_REASON}\s+{_FROM}\s+(?P<message>\S.{{0,16000}})$"
)
_OF_OLD_DESCRIPTION = re.compile(
    rf"{_AGE}\s+{_AGE}\s+(?P<count>\d{{1,9}})\s+\{{?(?P<component>[A-Za-z][A-Za-z0-9./_-]{{0,252}})"
    rf"(?:,?\s(?P<host>[a-z0-9][a-z0-9.-]{{0,252}}))?\}}?\s+(?:(?P<field>{_SUBOBJECT})\s+)?"
    rf"{_REASON}\s+(?P<message>\S.{{0,16000}})$"
)
# As tests of Kubernetes print them.
_DUMPED = re.compile(
    r"(?:.{0,200}\s)?At (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}) \w{1,5} - event for "
    rf"(?P<name>{_NAME}): "
    r"\{(?P<component>[A-Za-z][A-Za-z0-9./_-]{0,252}) (?P<host>[a-z0-9][a-z0-9.-]{0,252})?\} "
    r"(?P<reason>[A-Z][A-Za-z0-9]{1,127}): (?P<message>\S.{0,16000})$"
)
_FIELD_PREFIX = re.compile(rf"({_SUBOBJECT}):\s")
# The name of an event ends in when it was created, in nanoseconds.
_EVENT_NAME = re.compile(r"\.[0-9a-f]{12,18}$")
_OF_CONTAINER = re.compile(
    r"(?:Container|Stopping container|Created container:?|Started container|Back-off restarting failed container) "
    r"([a-z0-9][a-z0-9-]{0,62})(?= |$)"
)
_UNNAMED = ("failed", "is", "was", "in", "with")
FAILED_BY = frozenset(
    (
        *("Evicted", "Preempting", "Terminated", "Shutdown", "NodeShutdown", "NodeLost", "NodeAffinity"),
        *("DeadlineExceeded", "UnexpectedAdmissionError", "OutOfcpu", "OutOfmemory", "OutOfpods"),
        "OutOfephemeral-storage",
    )
)
ENDED_BY = frozenset(("OOMKilled", "ContainerStatusUnknown", "Error", "Completed", "ContainerCannotRun", "StartError"))
PHASES = frozenset(("Pending", "Running", "Succeeded", "Failed", "Unknown"))
_INIT, _EXIT, _SIGNAL = "Init:", "ExitCode:", "Signal:"


def pod_row(text: str, namespace: str = "") -> PastedPod | None:
    """Return the pod of a row of ``kubectl get pods``; None: it is something else."""
    found = _POD.match(text)
    if found is None:
        return None
    wide = _WIDE.match(found["rest"] or "")
    node = "" if wide is None or wide["node"] == "<none>" else wide["node"]
    return tabled_pod(
        ObjectMeta(name=found["name"], namespace=found["namespace"] or namespace),
        found["status"],
        node=node,
        restarts=int(found["restarts"]),
        containers=int(found["all"]),
    )


def tabled_pod(
    metadata: ObjectMeta, shown: str, *, node: str = "", restarts: int = 0, containers: int = 1
) -> PastedPod:
    """Return a pod from the STATUS that a table shows, which stands for the pod, or for one of its containers."""
    is_init = shown.startswith(_INIT)
    word = shown.removeprefix(_INIT)
    status = FullPodStatus(phase=word if word in PHASES else "")
    state = None
    if word in FAILED_BY:
        status = FullPodStatus(phase="Failed", reason=word)
    elif word in ENDED_BY or word.startswith((_EXIT, _SIGNAL)):
        state = ContainerState(terminated=_ended(word))
    elif word == "CrashLoopBackOff":
        state = ContainerState(waiting=WhyIdle(word))
    elif word == "Running":
        state = ContainerState(running=ContainerRunning()) if containers == 1 else None
    if state is not None:
        # Which of several it is, and how often that one restarted, a row does not say.
        statuses = (ContainerStatus(restart_count=restarts if containers == 1 else 0, state=state),)
        status = (
            FullPodStatus(phase="Pending", init_container_statuses=statuses)
            if is_init
            else FullPodStatus(phase=status.phase, container_statuses=statuses)
        )
    return PastedPod(metadata, PodSpec(node_name=node), status, is_terminating=word == "Terminating")


def _ended(word: str) -> ContainerTerminated:
    if word.startswith(_EXIT):
        return ContainerTerminated(exit_code=_number(word.removeprefix(_EXIT)))
    if word.startswith(_SIGNAL):
        return ContainerTerminated(exit_code=None, signal=_number(word.removeprefix(_SIGNAL)) or 0)
    return ContainerTerminated(reason=word, exit_code=0 if word == "Completed" else None)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else None


def node_row(text: str) -> Node | None:
    """Return the node of a row of ``kubectl get nodes``; None: it is something else."""
    found = _NODE.match(text)
    if found is None:
        return None
    ready, _, disabled = found["status"].partition(",")
    status = {"Ready": "True", "NotReady": "False"}.get(ready, "Unknown")
    conditions = (NodeCondition("Ready", status),)
    return Node(
        ObjectMeta(name=found["name"]), NodeSpec(unschedulable=bool(disabled)), NodeStatus(conditions=conditions)
    )


def event_row(text: str, namespace: str = "") -> Event | None:
    """Return the event of a row of ``kubectl get events`` or ``kubectl events``; None: it is something else."""
    if "- event for " in text and (dumped := _DUMPED.match(text)):
        return Event(
            reason=dumped["reason"],
            message=dumped["message"],
            involved_object=ObjectReference("Pod", namespace, dumped["name"]),
            source=EventSource(dumped["component"], dumped["host"] or ""),
            first_timestamp=dumped["at"],
        )
    if "Normal" not in text and "Warning" not in text:
        return None
    if found := _OF_GET.match(text):
        message, field, host, count = found["message"], "", "", found["count"]
        if after := _AFTER.search(message):
            message, count = message[: after.start()], after["count"]
            if before := _BEFORE.match(message):
                message, field, host = before["message"], before["field"] or "", before["host"] or ""
        kind = found["kind"].capitalize()
        about = ObjectReference(kind, found["namespace"] or namespace, found["name"], field_path=field)
        return _event(found, about, message, host, count)
    if found := _OF_OLD_GET.match(text):
        name = _EVENT_NAME.sub("", found["name"])
        about = ObjectReference(found["kind"], found["namespace"] or namespace, name, field_path=found["field"] or "")
        return _event(found, about, found["message"], found["host"] or "", found["count"])
    return None


def described_event(text: str, about: ObjectReference) -> Event | None:
    """Return the event of a row at the end of a description; None: it is something else."""
    if "Normal" not in text and "Warning" not in text:
        return None
    found = _OF_DESCRIPTION.match(text)
    field = ""
    if found is None:
        found = _OF_OLD_DESCRIPTION.match(text)
        field = "" if found is None else found["field"] or ""
    if found is None:
        return None
    message = found["message"]
    if prefix := _FIELD_PREFIX.match(message):
        field, message = prefix[1], message[prefix.end() :]
    own = ObjectReference(about.kind, about.namespace, about.name, field_path=field)
    return _event(found, own, message, found["host"] or "", found["count"])


def _event(found: re.Match[str], about: ObjectReference, message: str, host: str, count: str | None) -> Event:
    field = about.field_path
    named = _OF_CONTAINER.match(message)
    if not field and about.kind == "Pod" and named is not None and named[1] not in _UNNAMED:
        field = f"spec.containers{{{named[1]}}}"
    component = found.groupdict().get("component") or ""
    return Event(
        type=found["type"],
        reason=found["reason"],
        message=message.strip(),
        involved_object=ObjectReference(about.kind, about.namespace, about.name, field_path=field),
        source=EventSource(component, host),
        count=int(count) if count else None,
    )
