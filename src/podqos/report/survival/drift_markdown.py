"""``podqos drift`` as Markdown for a comment on a pull request.

GitHub cuts comments at 65,536 characters, so this stays well below and says how much it left out. Everything that
comes from manifests is in code spans, where nothing is a mention or markup.
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.answers.drift import DriftReport, WorkloadDrift
from podqos.report.survival.drift_lines import basis, change, figures, movers, reasons_of, status_word, summary

MOST_CHARACTERS = 65_536
# Room for the heading, the last lines and what is said about the rest.
_FOR_TABLE, _FOR_DETAILS = 25_000, 35_000


def markdown(report: DriftReport) -> str:
    """Return the comment."""
    changed = report.changed
    heading = f"### podqos drift: {_plain(summary(report))}"
    parts = [heading]
    if changed:
        head = "| workload | | class | oom_score_adj | evicted # | killed # | priority |\n|---|---|---|---|---|---|---|"
        parts.append("\n".join([head, *_within(map(_row, changed), _FOR_TABLE, len(changed))]))
        details = [_details(mover) for mover in movers(report)]
        told = "\n".join(_within(details, _FOR_DETAILS, len(details)))
        parts += [f"<details><summary>Why</summary>\n\n{told}\n\n</details>"] if details else []
    parts.append(f"<sub>{_code(report.old)} → {_code(report.new)}. {_plain(basis(report))}</sub>")
    text = "\n\n".join(parts)
    assert len(text) < MOST_CHARACTERS
    return text


def _within(lines: Iterable[str], room: int, total: int) -> list[str]:
    """Return the lines that fit, and how many were left out."""
    kept: list[str] = []
    for line in lines:
        if len(line) + 1 > room:
            return [*kept, f"\n… and {total - len(kept)} more workloads; `podqos drift` prints them all."]
        kept.append(line)
        room -= len(line) + 1
    return kept


def _row(workload: WorkloadDrift) -> str:
    status = f"**{status_word(workload)}**" if workload.fails else status_word(workload)
    classes = (standing and standing.qos_class for standing in (workload.before, workload.after))
    score, *places = figures(workload)
    return f"| {' | '.join((_code(workload.workload), status, change(*classes), _code(score), *places))} |"


def _details(workload: WorkloadDrift) -> str:
    reasons = "\n".join(f"- {_code(reason)}" for reason in reasons_of(workload))
    return f"{_code(workload.workload)}\n{reasons}\n"


def _code(text: str) -> str:
    """Return a text in which nothing is markup."""
    clean = " ".join(text.replace("`", "'").replace("|", "¦").split())
    return f"`{clean[:500]}`"


def _plain(text: str) -> str:
    """Return a sentence of podqos, which may hold a file name, without markup."""
    return "".join(character for character in text if character not in "<>@`|*[]")
