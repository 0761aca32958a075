"""What the pages of the scenarios show of a run: the timeline as a table, and the picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from podqos.agent.journal import Entry, Kind
from podqos.runs.timeline import Again, again, away, condensed
from podqos.sim.summary import first_pods
from podqos.text.journal import line

# What is shown.
_SHOWN = (
    Kind.OOM_KILLED,
    Kind.EVICTED,
    Kind.RESTARTED,
    Kind.PREEMPTED,
    Kind.PENDING,
    Kind.PLACED,
    Kind.OBSERVED,
    Kind.CONDITION_CHANGED,
    Kind.RECLAIMED,
    Kind.THROTTLED,
    Kind.REFUSED,
    Kind.DELETED,
    Kind.FAILED,
    Kind.LOST,
    Kind.TERMINATING,
    Kind.UNHEALTHY,
    Kind.READINESS_CHANGED,
    Kind.OVERLOADED,
    Kind.JOB_CREATED,
    Kind.JOB_FAILED,
    Kind.ROLLOUT_STARTED,
    Kind.SCALED,
    Kind.ROLLED_OUT,
)
# At the beginning of a run pods are placed and get the CPU there is; only what is unusual is shown.
_AT_THE_BEGINNING = (Kind.OOM_KILLED, Kind.EVICTED, Kind.RESTARTED, Kind.PENDING)
BEGIN, END = "<!-- timeline -->", "<!-- end of timeline -->"


def timeline(entries: Iterable[Entry]) -> str:
    """Return a run as a table; what happens to several pods at once, or to one again and again, is one row."""
    rows = ["| time | node | what happened |", "|---:|---|---|"]
    entries = list(entries)
    firsts = first_pods(entries)
    for part in condensed(entries, lambda entry: firsts.get(entry.pod, entry.pod)):
        if isinstance(part, Again):
            rows.append(f"| to {part.until_us / 1_000_000:.1f} s | – | {again(part)}; {away(part)} |")
            continue
        shown = [entry for entry in part if entry.kind in (_SHOWN if entry.time_us > 0 else _AT_THE_BEGINNING)]
        for _, together in groupby(shown, lambda entry: (entry.time_us, entry.node, entry.kind, str(entry.because))):
            rows.extend(_rows(list(together)))
    return "\n".join(rows)


def _rows(together: list[Entry]) -> Iterator[str]:
    first = together[0]
    more = f", and {len(together) - 1} more" if len(together) > 1 else ""
    yield f"| {first.time_us / 1_000_000:.1f} s | {first.node or '–'} | {line(first)}{more} |"


def with_timeline(page: str, table: str) -> str:
    """Return a page with its timeline replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"
