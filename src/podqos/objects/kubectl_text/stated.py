"""Ends of containers and OOMs of nodes as other programs pass them on: CI, workflow engines, alerts, clients.

They print a status in forms of their own: Go's ``map[exitCode:137 reason:OOMKilled]`` and structs, Python's dicts,
``Reason [OOMKilled]``, ``OOMKilled (exit code 137)``, or a sentence: ``Pod p in namespace n was OOMKilled``. What says
why is found by its words, and what belongs to it, such as exit code and pod, near it. Only read where a text has
nothing of kubectl's own. Prose, rules for alerts and source code are nothing of the kind: there, names or values have
quotes that a program would not print, and a sentence goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from podqos.model.event import Event, ObjectReference
from podqos.model.pod import ObjectMeta, PodSpec
from podqos.model.pod_fate import ContainerState, ContainerStatus, ContainerTerminated, FullPodStatus
from podqos.objects.kubectl_text.loose_rows import rows_of
from podqos.objects.kubectl_text.pasted import Pasted, PastedPod

_MOST_TRIED = 1_000
_NEAR = 1_200
_BEFORE_REASON = re.compile(
    r"(?<![\w.$])(?P<key>[\"']?)(?:[Tt]ermination |[Tt]ermination_|stopped|container_)?[Rr]eason(?P=key)"
    r"(?:\s{0,3}[:=]\s{0,16}|\sis\s|\s?\[)(?P<value>[\"']?)$"
)
_REASON = re.compile(r"OOM ?Killed(?![\w-])|OutOfMemoryError: Container killed due to memory usage")
"""Of Kubernetes, now and up to 1.0; of Amazon ECS."""
_WITH_CODE = re.compile(
    r"(?:^|[:\"'(]\s{0,80}|\s{2,80}| - |\b(?:terminated|exited|failed|killed) with )"
    r"OOMKilled \(exit code:? (\d{1,3})\)(?=[\"')]|\s{2}|\s*$)",
    re.MULTILINE,
)
# So a claim ends, or goes on with what programs add; prose goes on with words.
_END = (
    r"(?=[\"'*`)\]]{0,4}(?:[.!;,]?\s{0,80}$|[.;] |,? (?:\(|with |exit|at \d|on node |\d{1,6} times|x\d|[\w.]{1,40}=)))"
)
_ENDED = r"\b(?i:terminated|exited|failed|killed|died|ended|stopped|crashed|restarted)\b"
_OWN = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_Q = r"[\"'`*]{0,2}"
_CLAIM = re.compile(
    rf"(?P<by_code>{_ENDED}[^\n\"'`]{{0,80}}? [Cc]ode:? \(?137\)?(?: \([^()\n]{{0,200}}\))?(?::|,| -)?"
    rf" \(?OOM ?Killed\)?){_END}"
    rf"|(?P<by_reason>{_ENDED}[^\n`]{{0,120}}?[ ,(](?:[Rr]eason:? [\"']?OOM ?Killed|\(OOMKilled\))){_END}"
    rf"|(?P<by_label>\*[Rr]eason:?\*{{1,2}}:?\s{{1,4}}`?OOM ?Killed)(?=[`*]{{0,2}}\s{{0,80}}$)"
    rf"|(?P<by_field>\b(?:[Ss]tatus|[Ss]tate|[Cc]ause|msg)[:=] ?\"?(?:[Cc]ontainer |[Pp]od )?(?:was )?OOM ?Killed)"
    rf"{_END}|(?P<by_event>previous instance of the container '(?P<previous>{_OWN})' \([^)\n]{{1,100}}\) was OOMKilled)"
    rf"|(?:[Cc]ontainer {_Q}(?P<container>{_OWN}){_Q} (?:in|of) )?\b[Pp]od[ /]{_Q}"
    rf"(?:(?P<namespace>{_OWN})/)?(?P<pod>{_OWN}){_Q}"
    rf"(?: (?:in|of|from) (?:the )?(?:namespace|ns) {_Q}(?P<its>{_OWN}){_Q})?"
    rf"(?:,? \(?container:? {_Q}(?P<inside>{_OWN}){_Q}\)?)?(?: on (?:node )?{_Q}(?:{_OWN}){_Q})?"
    r"(?: (?:has been|have been|has|was|is|got))?(?: (?:restarted|killed|terminated))?(?: \d{1,6} times)?(?::| -| –|,)?"
    rf" {_Q}OOM[ -]?[Kk]illed{_END}",
    re.MULTILINE,
)
"""Sentences about an end."""
_EXPLAINS = re.compile(
    r"^\s{0,80}(?:\||//|/\*|\*|#) |\b(?:if|when|whenever|unless|until|that|which|e\.g|example|such as|means?|like)\b"
    r"|(?:[(,+\[] ?|= |== ?|\b(?:echo|printf|return|raise|throw) )(?<!\w=)[frb]?[\"'][^\"'\n]{0,200}$",
    re.IGNORECASE,
)
"""What precedes a claim in its line in prose and in source code."""
_RECORDED = re.compile(r"containerI[Dd]|container_id|finished|started|startTime|\bpod|namespace|lastStatus|Arn\"")
_LITERAL = re.compile(
    r"[\w\])] ?= ?[\[{(]|^\s{0,200}(?:return|yield|assert|const|let|var|expect|def)\b|[\])}],?\s{0,8}(?:#|//)"
)
_OF_ROW = re.compile(
    rf"^[ \t]{{0,8}}(?:(?P<namespace>{_OWN})/)?(?P<pod>(?=[\d.-]{{0,252}}[a-z])(?=[a-z.]{{0,252}}[\d-]){_OWN})"
    r"(?:\t|  +|: )"
)
_LABEL = r"[a-zA-Z_]\w{0,60}=\"[^\"\n]{0,300}\""
_ALERT = re.compile(
    rf"\((?P<labels>(?:{_LABEL}[, ]{{1,2}}){{0,60}}reason=\"OOMKilled\"(?:[, ]{{1,2}}{_LABEL}){{0,60}})\)"
)
"""The labels of an alert as Alertmanager prints them; in a query they are in braces."""
_ONE_LABEL = re.compile(r"([a-zA-Z_]\w{0,60})=\"([^\"\n]{0,300})\"")
_OF_WORKFLOW = re.compile(
    rf"\s{{2,80}}(?P<pod>(?=[a-z.]{{0,252}}-){_OWN})\s{{2,80}}(?:\d{{1,6}}[smhd]){{1,3}}\s{{0,80}}$"
)
"""A step of Argo's: its pod and how long it took precede its message."""
_IN_POD = re.compile(rf"\b[Cc]ontainer {_Q}(?P<name>{_OWN}){_Q} (?:in|of) (?:the )?[Pp]od\b")
_POLICY = re.compile(
    rf"\bContainer (?P<container>{_OWN}) for pod (?P<namespace>{_OWN})/(?P<pod>{_OWN}) failed with exit code "
    r"(?P<code>\d{1,3}) matching (?:FailJob|FailIndex|Count|Ignore) rule at index \d"
)
_JSON_NAME = re.compile(rf'"name"\s{{0,4}}:\s{{0,4}}"({_OWN})"')
_NODE_OOM = re.compile(r"System OOM encountered, victim process: [^\s,%]{1,64}, pid: \d{1,10}")
_MOST_BEFORE = 200
_CODE = re.compile(r"[Ee]xit[ _]?[Cc]ode[\"']?(?:\s{0,3}[:=]\s{0,16}|\s?\(|\s)[\"']?(\d{1,3})(?!\d)")
_NAME = r"[a-z0-9][a-z0-9-]{0,252}(?:\.[a-z0-9-]{1,63}){0,8}"
_SEPARATED = r"[\"'*]{0,3}\s{0,3}[:=]\*{0,2}\s{0,4}[\"'`]?"
_POD = re.compile(
    rf"(?<![\w.])(?:pod(?:[ _]?[Nn]ame)?|Pod(?: [Nn]ame)?){_SEPARATED}"
    rf"(?:(?P<namespace>{_NAME})/)?(?P<name>{_NAME})(?![\w{{(])"
    rf"|(?<![\w.])[Pp]od[ /][\"'`]?(?:(?P<its>{_NAME})/)?(?P<own>(?=[a-z.-]{{0,252}}[\d-])(?!-){_NAME})(?![\w{{(])"
)
_NAMESPACE = re.compile(rf"(?<![\w.])[Nn]amespace{_SEPARATED}(?P<name>{_NAME})(?![\w{{(])")
_CONTAINER = re.compile(rf"(?<![\w.])[Cc]ontainer(?:[ _]?[Nn]ame)?{_SEPARATED}(?P<name>{_NAME})(?![\w{{(])")
_NODE = re.compile(rf"(?<![\w.])(?:[Nn]ode(?:[ _]?[Nn]ame)?{_SEPARATED}|on node [\"'`*]?)(?P<name>{_NAME})(?![\w{{(])")
_ON_NODE = re.compile(rf"(?<![\w.])[Nn]ode(?:{_SEPARATED}|[ /][\"'`]?)(?:None/)?(?P<name>{_NAME})(?![\w{{(])")
_IN_YAML = re.compile(rf"[ \t>|-]{{0,40}}message: (['\"]?){_NODE_OOM.pattern}\1\s{{0,8}}$", re.MULTILINE)
_ABOUT_NODE = re.compile(rf"\bkind: Node\n[ \t>|]{{1,40}}name: (?P<name>{_NAME})(?=\n)")
_FINISHED = re.compile(
    r"[Ff]inished[ _]?[Aa]t[\"']?\s{0,3}[:=]\s{0,4}[\"']?"
    r"(?:(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d| [+-]\d{4})?)"
    r"|datetime\.datetime\((?P<figures>\d{4}(?:, \d{1,2}){5}))"
)
_ID = re.compile(r"[Cc]ontainer_?I[Dd][\"']?\s{0,3}[:=]\s{0,4}[\"']?([a-z-]{1,20}://[0-9a-f]{12,64})")
_ID_OF_PYTHON = re.compile(r"'container_id': '([a-z-]{1,20}://[0-9a-f]{12,64})'")


class _Claim(Struct, frozen=True, gc=False):
    """Where a text says that something was OOM-killed."""

    start: int
    code: int | None = None
    """The exit code if that is a part of it."""
    namespace: str = ""
    pod: str = ""
    container: str = ""
    """What a sentence names."""
    needs_pod: bool = False
    """Whether an exit code near it is not enough."""


def stated(text: str) -> Pasted:
    """Return the containers that a text says were OOM-killed, and the OOMs of nodes, once each."""
    pods: dict[tuple[str, ...], tuple[PastedPod, int]] = {}
    seen: set[tuple[str, str]] = set()
    for claim in islice(_claims(text), _MOST_TRIED):
        around = text[max(0, claim.start - _NEAR) : claim.start], text[claim.start : claim.start + _NEAR]
        if around in seen:
            continue
        seen.add(around)
        found = _pod(text, claim)
        if found is not None and not any(
            _is_less(found[0], key) and abs(claim.start - place) < _NEAR for key, (_, place) in pods.items()
        ):
            for key in [
                key for key, (_, place) in pods.items() if _is_less(key, found[0]) and abs(claim.start - place) < _NEAR
            ]:
                del pods[key]
            pods[found[0]] = found[1], claim.start
    containers = (*(pod for pod, _ in pods.values()), *rows_of(text), *_of_policies(text), *_of_alerts(text))
    return Pasted(containers, events=tuple(islice(_node_ooms(text), _MOST_TRIED)))


def _of_alerts(text: str) -> Iterator[PastedPod]:
    """Yield the containers of alerts, once each."""
    found = (dict(_ONE_LABEL.findall(alert["labels"])) for alert in islice(_ALERT.finditer(text), _MOST_TRIED))
    known = {tuple(labels.get(name, "") for name in ("namespace", "pod", "container", "node")) for labels in found}
    for namespace, pod, container, node in sorted(known):
        if pod:
            ended = ContainerState(terminated=ContainerTerminated(reason="OOMKilled", exit_code=None))
            status = ContainerStatus(name=container, last_state=ended)
            metadata = ObjectMeta(name=pod, namespace=namespace)
            yield PastedPod(metadata, PodSpec(node_name=node), FullPodStatus(container_statuses=(status,)))


def _of_policies(text: str) -> Iterator[PastedPod]:
    """Yield the pods that a Job's pod failure policy says ended with an exit code."""
    for found in islice(_POLICY.finditer(text), _MOST_TRIED):
        ended = ContainerState(terminated=ContainerTerminated(reason="", exit_code=int(found["code"])))
        status = ContainerStatus(name=found["container"], last_state=ended)
        metadata = ObjectMeta(name=found["pod"], namespace=found["namespace"])
        yield PastedPod(metadata, status=FullPodStatus(container_statuses=(status,)))


def _is_less(key: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether what is known of a container is no more than what is known of another: it is the same one."""
    return all(not mine or mine == its for mine, its in zip(key, other, strict=True))


def _claims(text: str) -> Iterator[_Claim]:
    """Yield where a text says that something was OOM-killed."""
    for found in _WITH_CODE.finditer(text):
        yield _Claim(found.start(), int(found[1]))
    for found in _REASON.finditer(text):
        before = _BEFORE_REASON.search(text, max(0, found.start() - 40), found.start())
        is_printed = before is not None and bool(before["key"]) >= bool(before["value"])
        if is_printed and not (_is_in_prose(text, found.start()) or _is_literal(text, found)):
            yield _Claim(found.start())
    for found in _CLAIM.finditer(text):
        low = max(0, found.start() - _NEAR)
        line = max(low, text.rfind("\n", low, found.start()) + 1)
        if _EXPLAINS.search(text[line : found.start()]) or _is_in_prose(text, found.start()):
            continue
        namespace, pod = found["namespace"] or found["its"] or "", found["pod"] or ""
        if pod and not (namespace or any(sign in pod for sign in "-0123456789")):
            continue
        yield _Claim(
            found.start() if pod else found.end(),
            137 if found["by_code"] else None,
            namespace,
            pod,
            found["container"] or found["inside"] or found["previous"] or "",
            needs_pod=not (pod or found["by_code"] or found["by_reason"]),
        )


def _is_literal(text: str, found: re.Match[str]) -> bool:
    """Whether a value in quotes is that of a dictionary in source code: in one line with the code, and nothing else."""
    low, high = max(0, found.start() - _NEAR), min(len(text), found.end() + _NEAR)
    start, end = text.rfind("\n", low, found.start()) + 1, text.find("\n", found.end(), high)
    line = text[max(low, start) : high if end < 0 else end]
    is_one_line = "xit" in line and ("{" in line or "}" in line) and '": ' in line
    if not is_one_line or _RECORDED.search(line):
        return False
    return line.rstrip().endswith(",") or _LITERAL.search(line) is not None


def _is_in_prose(text: str, start: int) -> bool:
    """Whether a sentence quotes what is here, between backticks."""
    before = text[max(text.rfind("\n", max(0, start - _NEAR), start) + 1, start - _NEAR, 0) : start]
    before = before.replace("``", "`")
    return before.count("`") % 2 == 1 and any(map(str.isalnum, before[: before.rfind("`")]))


def _pod(text: str, claim: _Claim) -> tuple[tuple[str, ...], PastedPod] | None:
    """Return the pod of a container that was OOM-killed, and what tells it from others; None: no end of a container."""
    start, code = claim.start, claim.code
    low, high = _paragraph(text, start)
    line = text[max(low, text.rfind("\n", low, start) + 1) : start]
    pod = None
    if not claim.pod:
        pod = _OF_WORKFLOW.search(line) or _nearest(_POD, text, low, high, start) or _OF_ROW.match(line)
    own = None if claim.container else _IN_POD.search(line) or _nearest(_CONTAINER, text, low, high, start)
    exited = _nearest(_CODE, text, low, high, start)
    is_proven = claim.pod or pod is not None or not (claim.needs_pod or (code is None and exited is None))
    if not is_proven:
        return None
    groups = {} if pod is None else pod.groupdict()
    name = claim.pod or groups.get("pod") or groups.get("name") or groups.get("own") or ""
    where = _nearest(_NAMESPACE, text, low, high, start) if name else None
    namespace = claim.namespace or groups.get("namespace") or groups.get("its") or ""
    namespace = namespace or ("" if where is None else where["name"])
    node = _nearest(_NODE, text, low, high, start)
    finished = _nearest(_FINISHED, text, low, high, start)
    identity = _nearest(_ID, text, low, high, start) or _nearest(_ID_OF_PYTHON, text, low, high, start)
    ended = ContainerTerminated(
        reason="OOMKilled",
        exit_code=code if code is not None or exited is None else int(exited[1]),
        finished_at=None if finished is None else _time(finished),
        container_id="" if identity is None else identity[1],
    )
    container = claim.container or ("" if own is None else own["name"]) or _named_in_json(text, start, low, high)
    status = ContainerStatus(name=container, last_state=ContainerState(terminated=ended))
    key = namespace, name, container, ended.finished_at or ""
    return key, PastedPod(
        ObjectMeta(name=name, namespace=namespace),
        PodSpec(node_name="" if node is None else node["name"]),
        FullPodStatus(container_statuses=(status,)),
    )


def _named_in_json(text: str, start: int, low: int, high: int) -> str:
    """Return the name beside a reason in an object of Amazon ECS."""
    if not text.startswith("OutOfMemoryError: ", start):
        return ""
    opens, closes = text.rfind("{", low, start), text.find("}", start, high)
    found = _JSON_NAME.search(text, opens, closes) if 0 <= opens < closes else None
    return "" if found is None else found[1]


def _paragraph(text: str, start: int) -> tuple[int, int]:
    """Return where the text around a place begins and ends that may belong to it."""
    low, high = max(0, start - _NEAR), min(len(text), start + _NEAR)
    return text.rfind("\n---", low, start) + 1 or low, high


def _nearest(pattern: re.Pattern[str], text: str, low: int, high: int, place: int) -> re.Match[str] | None:
    """Return what is nearest to a place, in its line before other lines, and in its paragraph before others."""
    edges = [(max(low, text.rfind(end, low, place)), text.find(end, place, high)) for end in ("\n", "\n\n")]

    def distance(found: re.Match[str]) -> tuple[list[bool], int]:
        start = found.start()
        outside = [not begin <= start <= (high if end < 0 else end) for begin, end in edges]
        return outside, abs(start - place)

    return min(pattern.finditer(text, low, high), key=distance, default=None)


def _time(found: re.Match[str]) -> str:
    if found["figures"]:
        year, month, day, hour, minute, second = (int(figure) for figure in found["figures"].split(", "))
        return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    return str(found["time"]).replace(" ", "T", 1).replace(" +0000", "Z")


def _node_ooms(text: str) -> Iterator[Event]:
    """Yield the OOMs of nodes that the kubelet's message about them tells of, wherever it is quoted."""
    for found in _NODE_OOM.finditer(text):
        start = max(0, found.start() - _MOST_BEFORE)
        start = text.rfind("\n", start, found.start()) + 1 or start
        before = text[start : found.start()]
        is_yaml = _IN_YAML.match(text, start) is not None
        ends = ('"', "\\", "':", '":', "=")
        if before.endswith(("'", '"', "`")) and not (is_yaml or before.rstrip("\"'` ").endswith(ends)):
            continue  # source code: a program that prints values in quotes has its names in quotes, too
        node = _nearest(_ON_NODE, text, start, found.end(), found.start())
        if node is None and is_yaml:
            low, high = _paragraph(text, found.start())
            node = _nearest(_ABOUT_NODE, text, low, high, found.start())
        about = ObjectReference("Node", "", "" if node is None else node["name"])
        yield Event(reason="SystemOOM", message=found[0], involved_object=about)
