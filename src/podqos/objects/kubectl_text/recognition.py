"""Whether a text is worth reading as one that kubectl printed, or as one with objects in its midst.

Every log is asked this, most are neither, and the start of the command waits for it: patterns are made when needed.
"""

from __future__ import annotations

import re
from functools import cache

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
    *(b"- event for ", b"terminated_reason{", b'"terminated":', b'"OOMKilling"', b'"involvedObject"'),
)
_MOST_SEARCHED = 1 << 17
_OBJECT_WORDS = (b"apiVersion", b"kind", b"items", b"metadata")
_ROW_WORDS = (b"OOMKilled", b"Evicted", b"CrashLoopBackOff", b"Error", b"Normal ", b"Warning ")


@cache
def _rows() -> re.Pattern[bytes]:
    """Return what finds rows of a table without its headings."""
    return re.compile(
        rb"\d/\d{1,4}\s{1,80}(?:Init:)?(?:OOMKilled|Evicted|Error|CrashLoopBackOff|ContainerStatusUnknown|Completed|Running"
        rb"|Terminating|NodeLost|Unknown|Pending|ExitCode:|Signal:)"
        rb"|(?:Normal|Warning)\s{1,40}[A-Z][A-Za-z]{2,62}\s{1,80}(?:[A-Za-z.]{1,63}/|[\d<])"
        rb"|(?:^|\n)\s{0,80}(?:Reason:\s{0,80}(?:Evicted|OOMKilled)|Message:\s{0,80}The node )"
        rb"|(?:^|\n)[ \t>|]{0,40}(?:POD|PODNAME|NS|NAMESPACE)[A-Z ]{0,10}\s{2,80}[A-Z]"
    )


@cache
def _object() -> re.Pattern[bytes]:
    """Return what finds the beginning of an object."""
    return re.compile(
        rb"(?:^|\n)(?:[ \t>|]|\xe2\x94[\x82\x83]){0,40}(?:- )?(?:apiVersion|kind): ?[A-Za-z]"
        rb"|\{(?:[\s>|]|\xe2\x94[\x82\x83]){0,80}\"(?:apiVersion|kind|items|metadata)\"\s{0,4}:"
    )


def may_be_kubectl(head: bytes) -> bool:
    """Whether a text may hold something that kubectl prints for people; says quickly that a log does not."""
    if any(token in head for token in _TOKENS):
        return True
    return any(word in head for word in _ROW_WORDS) and _rows().search(head, 0, _MOST_SEARCHED) is not None


def may_embed(head: bytes) -> bool:
    """Whether a text may have objects in it."""
    return any(word in head for word in _OBJECT_WORDS) and _object().search(head) is not None
