"""``podqos demo`` as text: a platform, the accident on it, who is evicted and why, two fixes and what each costs.

Every number is taken from the answers that the commands print, and so is every reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.agent.reasons import OOMKill
from podqos.answers.explanation import Explanation, ExplanationList
from podqos.answers.findings import FindingReport
from podqos.answers.run_view import ContainerView, Kill, RunView
from podqos.report.check.table import finding_lines
from podqos.report.explain.lines import asked
from podqos.report.simulation.timeline import kill_title, seconds
from podqos.report.text.style import Style, columns, wrapped
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.summary import WorkloadSummary
from podqos.wording import counted, mebibytes

_INDENT = "  "
_REASONS = 3
"""How many sentences explain an eviction; the rest is in the output of ``podqos simulate``."""


class Incident(Struct, frozen=True):
    """What is told: the answers of ``explain`` and ``check``, and three runs of the same day."""

    platform: ExplanationList
    finding: FindingReport
    accident: RunView
    undersized: RunView
    """With limits equal to the requests."""
    fixed: RunView
    """With request and limit sized from usage."""
    peak_bytes: int
    """The most memory that the container of the finding uses on all three days."""

    @property
    def service(self) -> str:
        """The workload that is about, as ``namespace/name``."""
        return f"{self.finding.namespace}/{self.finding.name}"

    @property
    def victim(self) -> WorkloadSummary:
        """How it fared in the accident."""
        return _row(self.accident, self.service)

    @property
    def jobs(self) -> WorkloadSummary:
        """Those with which it shares the node."""
        return next(row for row in self.accident.summary.workloads if row.workload != self.service)


def peak_bytes(scenario: Scenario, finding: FindingReport) -> int:
    """Return the most memory that the container of a finding wants in a scenario."""
    return max(
        size_bytes
        for workload in scenario.workloads
        if (workload.namespace, workload.name) == (finding.namespace, finding.name)
        for demands in workload.demands
        for _, size_bytes in demands[finding.container or ""].anon_bytes.knots
    )


def platform_lines(incident: Incident, style: Style) -> list[str]:
    """Return the services, those with the highest priority first."""
    node = incident.accident.nodes[0]
    size = f"{node.cpu_milli / 1000:g} cores and {mebibytes(node.memory_bytes)}"
    services = sorted(incident.platform.items, key=lambda item: (-item.priority, item.qos_class, item.name))
    rows = [
        (
            item.name,
            style.qos_class(item.qos_class),
            f"{item.priority:,}",
            ", ".join(asked(container, "memory") for container in item.containers),
            _scores(item),
        )
        for item in services
    ]
    headers = ("WORKLOAD", "CLASS", "PRIORITY", "MEMORY REQUEST / LIMIT", "OOM ADJ")
    return [
        *_chapter(1, f"A news site: {len(services)} services on a node with {size}.", style),
        *columns(headers, rows, style, _INDENT),
    ]


def finding_part(incident: Incident, command: str, style: Style) -> list[str]:
    """Return what is wrong with the manifest of that day; the command names the file."""
    text = (
        f"One day the kubelet evicted {incident.finding.name}, which readers wait for, and no batch job. It took four "
        "hours to find out why. This takes a second:"
    )
    finding = replace(incident.finding, line=0, path="")
    return [*_chapter(2, text, style), _command(command, style), *finding_lines(finding, style)]


def accident_lines(incident: Incident, command: str, style: Style) -> list[str]:
    """Return who is evicted, and why."""
    jobs = f"{incident.jobs.pods} pods of {_name(incident.jobs)}"
    kill = incident.accident.kills[0]
    return [
        *_chapter(3, f"That day, simulated: {incident.finding.name} and {jobs}.", style),
        _command(command, style),
        *_kill_lines(kill, kill.reasons[:_REASONS], style),
    ]


def undersized_lines(incident: Incident, command: str, style: Style) -> list[str]:
    """Return what the proposed limits alone do."""
    run = incident.undersized
    qos_class = _row(run, incident.service).qos_class
    limit = mebibytes(_limit(incident, run) or 0)
    text = f"The same day with those two lines: {qos_class}, but {limit} was a guess."
    lines = [*_chapter(4, text, style), _command(command, style)]
    alike: dict[tuple[str, str | None], list[Kill]] = {}
    for kill in run.kills:
        alike.setdefault((kill.pod, kill.container), []).append(kill)
    for kills in alike.values():
        lines += _kill_lines(kills[0], _repeated(kills, incident), style)
    return lines


def fixed_lines(incident: Incident, command: str, style: Style) -> list[str]:
    """Return what a size from measurements does, and what it costs."""
    limit = _limit(incident, incident.fixed) or 0
    peak = incident.peak_bytes
    text = (
        f"The same day with request and limit sized from usage: {mebibytes(limit)}, {limit * 100 // peak - 100}% above "
        f"the {mebibytes(peak)} that {incident.finding.container} uses. The price is room on the node:"
    )
    waiting = [event for event in incident.fixed.events if event.kind is Kind.PENDING]
    lines = [*_chapter(5, text, style), _command(command, style)]
    for event in waiting:
        lines += wrapped(event.text, style, _INDENT + "  ", _INDENT)
    return lines


def outcome_lines(incident: Incident, style: Style) -> list[str]:
    """Return the three days next to each other."""
    jobs = incident.jobs
    rows = []
    for run in (incident.accident, incident.undersized, incident.fixed):
        limit = _limit(incident, run)
        rows.append(
            (
                "no limit" if limit is None else mebibytes(limit),
                _outcome(_row(run, incident.service)),
                _outcome(_row(run, jobs.workload)),
            )
        )
    headers = ("memory limit", incident.finding.name, _name(jobs))
    return columns([header.upper() for header in headers], rows, style, _INDENT)


def _chapter(number: int, text: str, style: Style) -> list[str]:
    return [style.strong(line) for line in wrapped(text, style, "   ", f"{number}. ")]


def _command(command: str, style: Style) -> str:
    """Return the command on one line, however long, so that it can be copied."""
    return f"{_INDENT}{style.faint(f'$ {command}')}"


def _kill_lines(kill: Kill, reasons: Iterable[str], style: Style) -> Iterator[str]:
    start = f"{_INDENT}{_span(kill.time_us)}  "
    below = " " * len(start)
    yield from wrapped(kill_title(kill, style), style, below, start)
    for reason in reasons:
        yield from wrapped(reason, style, below)


def _repeated(kills: Sequence[Kill], incident: Incident) -> Iterator[str]:
    """Yield how often a container is killed, and what it lacks."""
    because = kills[0].because
    if isinstance(because, OOMKill):
        wanted, limit = mebibytes(incident.peak_bytes), mebibytes(because.limit_bytes)
        yield f"{counted(len(kills), 'OOM kill')}: it needs {wanted}, its limit is {limit}."


def _limit(incident: Incident, run: RunView) -> int | None:
    return _container(incident, run).memory_limit_bytes


def _container(incident: Incident, run: RunView) -> ContainerView:
    pod = next(pod for pod in run.pods if pod.workload == incident.service)
    return next(container for container in pod.containers if container.name == incident.finding.container)


def _row(run: RunView, workload: str) -> WorkloadSummary:
    return next(row for row in run.summary.workloads if row.workload == workload)


def _name(row: WorkloadSummary) -> str:
    return row.workload.partition("/")[2]


def _outcome(row: WorkloadSummary) -> str:
    """Return how a workload fared, in a few words."""
    is_one = row.pods == 1
    parts = [counted(row.oom_kills, "OOM kill")] if row.oom_kills else []
    for count, what in ((row.evictions, "evicted"), (row.never_ran, "pending"), (row.throttled, "short of CPU")):
        if count:
            parts.append(what if is_one and count == 1 else f"{count} {what}")
    if row.downtime_us and is_one:
        parts.append(f"down {_span(row.downtime_us)}")
    unaffected = "unaffected" if is_one else f"{row.untouched} of {row.pods} unaffected"
    return ", ".join(parts if is_one and parts else [unaffected, *parts])


def _scores(item: Explanation) -> str:
    return ", ".join(dict.fromkeys(str(container.oom_score_adj) for container in item.containers))


def _span(time_us: int) -> str:
    return seconds(time_us, 0)
