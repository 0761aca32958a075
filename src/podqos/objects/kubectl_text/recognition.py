"""Whether a text is worth reading as one that kubectl printed, or as one with objects in its midst.

Every log is asked this, most are neither, and the start of the command waits for it: patterns are imported when needed.
"""

from __future__ import annotations

_TOKENS = (
    *(
        b"Last State:",
        b"Exit Code:",
        b"Restart Count:",
        b"QoS Class:",
        b"Non-terminated Pods:",
        b"Allocated resources:",
    ),
    *(b"Start Time:", b"LAST SEEN", b"LASTSEEN", b"FIRST SEEN", b"RESTARTS", b"NAME ", b"NAME\t", b"Unschedulable:"),
    *(b"The node was low on ", b"The node had condition: ", b"exceeds the limit ", b"exceeds the total limit of "),
    *(b"exceeded its local ephemeral storage limit", b"    Reason", b"Roles:", b"terminated:", b'"exitCode"'),
    *(
        b"DisruptionTarget",
        b"phase: Failed",
        b'"phase": "Failed"',
        b"- event for ",
        b"terminated_reason{",
        b'"terminated":',
        b'"OOMKilling"',
        b'"involvedObject"',
    ),
)
_MOST_SEARCHED = 1 << 17
_OBJECT_WORDS = (b"apiVersion", b"kind", b"items", b"metadata")
_ROW_WORDS = (
    b"OOMKilled",
    b"OOM Killed",
    b"OOM killed",
    b"OOM-killed",
    b"System OOM",
    b" rule at index ",
    b"OutOf",
    b"OutOfMemoryError: Cont",
    b"Evicted",
    b"Preempting",
    b"NodeShutdown",
    b"NodeLost",
    b" evicted",
    b"Pressure ",
    b"CrashLoopBackOff",
    b"Error",
    b"Normal ",
    b"Warning ",
)


def may_be_kubectl(head: bytes) -> bool:
    """Whether a text may hold something that kubectl prints for people; says quickly that a log does not."""
    for blank in (b"&nbsp;", b"\xc2\xa0"):
        if blank in head:
            head = head.replace(blank, b" ")
    if any(token in head for token in _TOKENS):
        return True
    if not any(word in head for word in _ROW_WORDS):
        return False
    from podqos.objects.kubectl_text.beginnings import ROWS

    return ROWS.search(head, 0, _MOST_SEARCHED) is not None


def may_embed(head: bytes) -> bool:
    """Whether a text may have objects in it."""
    if not any(word in head for word in _OBJECT_WORDS):
        return False
    from podqos.objects.kubectl_text.beginnings import OBJECT

    return OBJECT.search(head) is not None
