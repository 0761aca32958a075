"""What the eviction manager logs is read in all forms that kubelets and their carriers write."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.eviction.signals import Signal
from podqos.logs.said import EvictionCause, EvictionTrace, Said, SignKind
from podqos.logs.search import LogReader

UID = "11111111-2222-3333-4444-555555555555"
WEB, DB = f"web-0_shop({UID})", "db-0_shop(21111111-2222-3333-4444-555555555555)"
OLD = [
    "W1116 10:00:00.100000    1234 eviction_manager.go:344] eviction manager: attempting to reclaim memory",
    "I1116 10:00:00.200000    1234 eviction_manager.go:355] eviction manager: must evict pod(s) to reclaim memory",
    f"I1116 10:00:00.3 1234 eviction_manager.go:373] eviction manager: pods ranked for eviction: {WEB}, {DB}",
    f"I1116 10:00:00.4 1234 eviction_manager.go:589] eviction manager: pod {WEB} is evicted successfully",
]
FIELDS = [
    ("Eviction manager: attempting to reclaim", {"resourceName": "memory"}),
    ("Eviction manager: must evict pod(s) to reclaim", {"resourceName": "memory"}),
    ("Eviction manager: pods ranked for eviction", {"pods": ["shop/web-0", "shop/db-0"]}),
    ("Eviction manager: pod is evicted successfully", {"pod": "shop/web-0"}),
]


def klog(message: str, fields: dict[str, object], *, quoted: bool = True) -> str:
    """Return a line as klog writes it since 1.21; lists of pods in quotes since 1.26."""
    words = []
    for key, value in fields.items():
        if isinstance(value, list):
            text = "[" + (",".join(json.dumps(each) for each in value) if quoted else " ".join(value)) + "]"
        else:
            text = json.dumps(value)
        words.append(f"{key}={text}")
    return f'I1116 10:00:00.400000    1234 eviction_manager.go:577] "{message}" {" ".join(words)}'


def as_json(message: str, fields: dict[str, object]) -> str:
    """Return a line of --logging-format=json."""

    def reference(text: str) -> dict[str, str]:
        namespace, _, name = text.partition("/")
        return {"name": name, "namespace": namespace}

    made = {
        key: [reference(each) for each in value]
        if isinstance(value, list)
        else reference(str(value))
        if key == "pod"
        else value
        for key, value in fields.items()
    }
    return json.dumps(
        {"ts": 1794823200.4, "caller": "eviction/eviction_manager.go:577", "msg": message, "v": 0, **made}
    )


FORMS = {
    "sentences": OLD,
    "fields up to 1.25": [klog(message, fields, quoted=False) for message, fields in FIELDS],
    "fields": [klog(message, fields) for message, fields in FIELDS],
    "JSON": [as_json(message, fields) for message, fields in FIELDS],
}
CARRIERS = {
    "plain": lambda line: line,
    "syslog": lambda line: f"Nov 16 10:00:00 node-1 kubelet[1234]: {line}",
    "journalctl -o short-iso": lambda line: f"2026-11-16T10:00:00+0000 node-1 kubelet[1234]: {line}",
    "journalctl -o json": lambda line: json.dumps(
        {"__REALTIME_TIMESTAMP": "1794823200000000", "_HOSTNAME": "node-1", "MESSAGE": line}
    ),
    "container log": lambda line: f"2026-11-16T10:00:00.123456789Z stderr F {line}",
}


def read(lines: list[str]) -> Said:
    said = Said()
    assert not [*LogReader(said).read(io.BytesIO("\n".join(lines).encode(errors="replace")))]
    return said


def evictions(lines: list[str]) -> list[EvictionTrace]:
    return read(lines).traces


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_eviction_is_found_with_its_ranking(form, carrier):
    (trace,) = evictions([CARRIERS[carrier](line) for line in FORMS[form]])
    assert (trace.pod, trace.cause) == ("shop/web-0", EvictionCause.NODE_PRESSURE)
    assert trace.ranked == ("shop/web-0", "shop/db-0")
    assert trace.message is not None
    assert trace.message.resource == "memory"
    assert trace.at
    assert trace.uid == (UID if form == "sentences" else "")
    assert trace.node == ("" if carrier in {"plain", "container log"} else "node-1")


@pytest.mark.parametrize("form", FORMS)
def test_a_threshold_that_is_met_is_a_sign_of_its_node(form):
    (sign,) = read([CARRIERS["syslog"](line) for line in FORMS[form]]).signs
    assert (sign.kind, sign.node, sign.resource) == (SignKind.THRESHOLD_MET, "node-1", "memory")


def test_the_amounts_and_the_signal_come_from_a_verbose_log():
    observed = klog(
        "Eviction manager: threshold observed resource",
        {
            "log": "thresholds - updated stats",
            "signal": "allocatableMemory.available",
            "resourceName": "memory",
            "quantity": "100Mi",
            "available": "90Mi",
        },
    )
    (trace,) = evictions([observed, *FORMS["fields"]])
    assert trace.signal == Signal.ALLOCATABLE_MEMORY
    assert trace.message is not None


def test_the_line_of_the_eviction_itself_has_message_and_uid():
    text = 'Usage of EmptyDir volume "cache" exceeds the limit "1Gi". '
    (trace,) = evictions([klog("Evicting pod", {"pod": "shop/web-0", "podUID": UID, "message": text})])
    assert (trace.cause, trace.uid, trace.text) == (EvictionCause.LOCAL_STORAGE_LIMIT, UID, text)


def test_an_eviction_that_nothing_was_reclaimed_for_exceeded_a_limit_of_its_own():
    others = [f"I1116 10:00:00.0 1 kubelet.go:{n}] evictions: nothing" for n in range(30)]
    others = [line.replace("evictions", "Evictions") for line in others]
    (trace,) = evictions([*others, FORMS["fields"][-1]])
    assert trace.cause is EvictionCause.LOCAL_STORAGE_LIMIT


def test_the_line_of_an_eviction_by_itself_does_not_say_why():
    (trace,) = evictions(FORMS["fields"][-1:])
    assert trace.cause is EvictionCause.UNKNOWN


def test_what_was_reclaimed_before_does_not_count_for_the_next_eviction():
    reduced = klog(
        "Eviction manager: able to reduce resource pressure without evicting pods.", {"resourceName": "memory"}
    )
    said = read([FORMS["fields"][0], reduced, FORMS["fields"][-1]])
    assert [each.kind for each in said.signs] == [SignKind.THRESHOLD_MET, SignKind.RECLAIMED]
    assert [each.cause for each in said.traces] == [EvictionCause.LOCAL_STORAGE_LIMIT]


def test_hosts_in_one_log_are_kept_apart():
    other = [line.replace("memory", "ephemeral-storage").replace("web-0", "batch-0") for line in FORMS["fields"]]
    lines = [
        line
        for one, two in zip(FORMS["fields"], other, strict=True)
        for line in (
            CARRIERS["syslog"](one),
            CARRIERS["syslog"](two).replace("node-1", "node-2"),
        )
    ]
    assert [(each.node, each.pod, each.message and each.message.resource) for each in evictions(lines)] == [
        ("node-1", "shop/web-0", "memory"),
        ("node-2", "shop/batch-0", "ephemeral-storage"),
    ]


LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "


def test_an_event_that_a_kubelet_logs_is_read():
    line = f'I1116 10:00:00.0 1 event.go:307] "Event occurred" object="shop/web-0" reason="Evicted" message="{LOW}"'
    (event,) = read([line, line]).events
    assert (event.reason, event.about.namespace, event.about.name, event.text) == ("Evicted", "shop", "web-0", LOW)


@pytest.mark.parametrize(
    "line",
    [
        'I9999 99:99:99.9 1 x.go:1] "Eviction manager: pod is evicted successfully" pod=""',
        '{"msg":["Eviction manager"],"pod":{"name":{"a":1}}}',
        '{"msg":"Eviction manager: pods ranked for eviction","pods":[[[[1]]],null,{"name":7}]}',
        "eviction manager: " + "[" * 100_000,
        'I1116 10:00:00.4 1 e.go:1] "Eviction manager: pods ranked for eviction" pods=[' + "a/b " * 100_000,
        "Warning Evicted pod/" + "x" * 100_000,
        "Name:" + "\x00" * 9000,
        'W1116 10:00:00.1 1 e.go:1] "' + "\\" * 50_000,
    ],
)
def test_lines_that_are_not_in_order_do_no_harm(line):
    assert evictions([line, line]) == []


PIECES = (
    *OLD,
    *FORMS["fields"],
    *FORMS["JSON"],
    "Warning Evicted pod/a ",
    "Name: ",
    "Namespace: ",
    LOW,
    '{"msg":',
    '"Eviction manager: ',
    "\x00",
)


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=12))
def test_no_line_makes_the_reader_fail(parts):
    text = "".join(parts)
    said = Said()
    lines = [text, text[: len(text) // 2], *parts]
    for _ in LogReader(said).read(io.BytesIO("\n".join(lines).encode(errors="replace"))):
        pass
