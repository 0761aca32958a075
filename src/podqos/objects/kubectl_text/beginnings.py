"""How rows of kubectl's tables and objects begin; apart from ``recognition``, because most logs do not need them."""

from __future__ import annotations

import re

ROWS = re.compile(
    rb"\d/\d{1,4}\s{1,80}(?:Init:)?(?:OOMKilled|Evicted|Error|CrashLoopBackOff|ContainerStatusUnknown|Completed|Running"
    rb"|Terminating|NodeLost|Unknown|Pending|ExitCode:|Signal:)"
    rb"|(?:Normal|Warning)\s{1,40}[A-Z][A-Za-z]{2,62}\s{1,80}(?:[A-Za-z.]{1,63}/|[\d<])"
    rb"|(?:^|\n)\s{0,80}(?:Reason:\s{0,80}(?:Evicted|OOMKilled|OutOf[a-z]|Preempting|NodeShutdown|NodeLost)"
    rb"|Message:\s{0,80}The node )"
    rb"|(?:^|\n)[ \t>|'\"]{0,40}(?:Completed |Error ){0,8}OOMKilled"
    rb"(?: Completed| Error| OOMKilled){0,8}['\"\s]{0,40}(?:\n|\Z)"
    rb"|[Rr]eason[\"':=\[ is]{1,8}(?:OOM ?Killed|OutOfMemoryError: Container )"
    rb"|OOMKilled \(exit code \d|137[^\w\n]{1,4}(?:[^()\n]{1,200}\)[: ]{1,3})?OOM ?Killed"
    rb"|[Rr]eason[:*'\" ]{1,5}`?OOM ?Killed"
    rb"|(?:[Pp]od|[Cc]ontainer)[ /][^\n]{1,300}OOM[ -]?[Kk]illed"
    rb"|(?:[Ss]tat(?:us|e)|[Cc]ause|msg)[:=] ?\"?(?:\w{3,9} )?OOM ?Killed"
    rb"|(?:^|\n)[ \t]{0,8}[a-z0-9./-]{2,300}[ \t:|,\[\"]{1,20}(?:[a-z0-9./-]{1,253}[ \t:|,\[\"]{1,20}){0,3}OOMKilled"
    rb"|pod/[a-z0-9.-]{1,253} evicted\s|(?:Memory|Disk|PID)Pressure\s{1,40}True\s{1,40}[A-Z][a-z]{2}, \d"
    rb"|container_reason: OOMKilled|previous instance of the container '"
    rb"|[Ee]xit [Cc]ode:? {1,16}137[ \t)]{0,8}\(OOMKilled|OOMKilled \(exit code: \d"
    rb"|for pod [^\s]{3,320} failed with exit code \d"
    rb"|(?:true|false)\s{1,80}OOMKilled\s|OOMKilled \(exit code \d|System OOM encountered, victim process: [^\s%]"
    rb"|(?:^|\n)[ \t>|]{0,40}(?:POD|PODNAME|NS|NAMESPACE)[A-Z ]{0,10}\s{2,80}[A-Z]"
)
"""Finds rows of a table without its headings."""
OBJECT = re.compile(
    rb"(?:^|\n)(?:[ \t>|]|\xe2\x94[\x82\x83]){0,40}(?:- )?(?:apiVersion|kind): ?[A-Za-z]"
    rb"|\{(?:[\s>|]|\xe2\x94[\x82\x83]){0,80}\"(?:apiVersion|kind|items|metadata)\"\s{0,4}:"
)
"""Finds the beginning of an object."""
