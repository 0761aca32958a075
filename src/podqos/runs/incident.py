"""``podqos demo`` as text: a platform, the accident on it, who is evicted and why, two fixes and what each costs.

Every number is taken from the answers that the commands print, and so is every reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.agent.reasons import OOMKill
from podqos.amounts import counted, mebibytes
from podqos.questions.explain import ExplanationList, asked
from podqos.questions.findings import FindingReport, finding_lines
from podqos.runs.timeline import kill_title, seconds
from podqos.runs.view import Kill, RunView
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.summary import WorkloadSummary
from podqos.text.style import Style, columns, wrapped

_INDENT = "  "
_REASONS = 3  # the rest is in the output of `podqos simulate`


class Incident(Struct, frozen=True):
    """What is told: answers of ``explain`` and ``check``; a day as it was, with the limits of ``check``, and sized."""

    platform: ExplanationList
    finding: FindingReport
    accident: RunView
    undersized: RunView
    fixed: RunView
    peak_bytes: int


def peak_bytes(scenario: Scenario, finding: FindingReport) -> int:
    """Return the most memory that the container of a finding wants in a scenario."""
    return max(
        size_bytes
        for workload in scenario.workloads
        if (workload.namespace, workload.name) == (finding.namespace, finding.name)
        for demands in workload.demands
        for _, size_bytes in demands[finding.container or ""].anon_bytes.knots
    )


def story(told: Incident, commands: Iterable[str], style: Style) -> Iterator[list[str]]:
    """Yield the parts; ``commands`` are the check of the manifest and the three runs, as a reader would type them."""
    check, *runs = (f"{_INDENT}{style.faint(f'$ {command}')}" for command in commands)
    node, service = told.accident.nodes[0], f"{told.finding.namespace}/{told.finding.name}"
    jobs = next(row for row in told.accident.summary.workloads if row.workload != service)
    own, others = told.finding.name, jobs.workload.partition("/")[2]
    days = told.accident, told.undersized, told.fixed
    limits = [_limit(run, service, told.finding.container) for run in days]
    sizes = ["no limit" if limit is None else mebibytes(limit) for limit in limits]

    def chapter(number: int, text: str) -> list[str]:
        return [style.strong(line) for line in wrapped(text, style, "   ", f"{number}. ")]

    def killed(kill: Kill, reasons: Iterable[str]) -> Iterator[str]:
        start = f"{_INDENT}{seconds(kill.time_us, 0)}  "
        for text, first in ((kill_title(kill, style), start), *((reason, None) for reason in reasons)):
            yield from wrapped(text, style, " " * len(start), first)

    size = f"{node.cpu_milli / 1000:g} cores and {mebibytes(node.memory_bytes)}"
    text = f"A news site: {len(told.platform.items)} services on a node with {size}."
    yield [*chapter(1, text), *_services(told.platform, style)]
    text = f"One day the kubelet evicted {own}, and no batch job. Four hours were spent on why. This takes a second:"
    yield [*chapter(2, text), check, *finding_lines(replace(told.finding, line=0, path=""), style)]

    kill = told.accident.kills[0]
    text = f"That day, simulated: {own} and {jobs.pods} pods of {others}."
    yield [*chapter(3, text), runs[0], *killed(kill, kill.reasons[:_REASONS])]

    text = f"With those two lines: {_row(told.undersized, service).qos_class}, but {sizes[1]} was a guess."
    lines = [*chapter(4, text), runs[1]]
    alike: dict[tuple[str, str | None], list[Kill]] = {}
    for kill in told.undersized.kills:
        alike.setdefault((kill.pod, kill.container), []).append(kill)
    for kills in alike.values():
        lack = []
        if isinstance(because := kills[0].because, OOMKill):
            need = f"it needs {mebibytes(told.peak_bytes)}, its limit is {mebibytes(because.limit_bytes)}"
            lack = [f"{counted(len(kills), 'OOM kill')}: {need}."]
        lines += killed(kills[0], lack)
    yield lines

    above = (limits[2] or 0) * 100 // told.peak_bytes - 100
    needed = f"the {mebibytes(told.peak_bytes)} that {told.finding.container} uses"
    text = f"The same day sized from usage: {sizes[2]}, {above}% above {needed}. The price is room on the node:"
    pending = (event.text for event in told.fixed.events if event.kind is Kind.PENDING)
    waiting = (line for text in pending for line in wrapped(text, style, _INDENT * 2, _INDENT))
    yield [*chapter(5, text), runs[2], *waiting]

    rows = [
        (size, _outcome(_row(run, service)), _outcome(_row(run, jobs.workload)))
        for size, run in zip(sizes, days, strict=True)
    ]
    yield columns([header.upper() for header in ("memory limit", own, others)], rows, style, _INDENT)


def _services(platform: ExplanationList, style: Style) -> list[str]:
    """Return the services, those with the highest priority first."""
    rows = [
        (
            item.name,
            style.qos_class(item.qos_class),
            f"{item.priority:,}",
            ", ".join(asked(container, "memory") for container in item.containers),
            ", ".join(dict.fromkeys(str(container.oom_score_adj) for container in item.containers)),
        )
        for item in sorted(platform.items, key=lambda item: (-item.priority, item.qos_class, item.name))
    ]
    return columns(("WORKLOAD", "CLASS", "PRIORITY", "MEMORY REQUEST / LIMIT", "OOM ADJ"), rows, style, _INDENT)


def _limit(run: RunView, workload: str, name: str | None) -> int | None:
    pod = next(pod for pod in run.pods if pod.workload == workload)
    return next(container.memory_limit_bytes for container in pod.containers if container.name == name)


def _row(run: RunView, workload: str) -> WorkloadSummary:
    return next(row for row in run.summary.workloads if row.workload == workload)


def _outcome(row: WorkloadSummary) -> str:
    """Return how a workload fared, in a few words."""
    is_one = row.pods == 1
    parts = [counted(row.oom_kills, "OOM kill")] if row.oom_kills else []
    for count, what in ((row.evictions, "evicted"), (row.never_ran, "pending"), (row.throttled, "short of CPU")):
        if count:
            parts.append(what if is_one and count == 1 else f"{count} {what}")
    if row.downtime_us and is_one:
        parts.append(f"down {seconds(row.downtime_us, 0)}")
    unaffected = "unaffected" if is_one else f"{row.untouched} of {row.pods} unaffected"
    return ", ".join(parts if is_one and parts else [unaffected, *parts])
