"""``podqos advise`` as text: what each workload should have, why, what stays open, and what follows."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.sizing.applying import ContainerAdvice
from podqos.advice.sizing.coverage import RECOMMENDED
from podqos.advice.sizing.sizing import Doubt, Percentiles, Share
from podqos.answers.advice import AdviceReport, NodeAdvice, WorkloadAdvice
from podqos.model.pod import QOSClass
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.naming import stated_with
from podqos.report.advice.table import table
from podqos.report.survival.drift_lines import change, worst_score
from podqos.report.text.style import Style, wrapped
from podqos.wording import mebibytes
from podqos.words.advice import (
    DOUBTS,
    autoscaler_words,
    bounded_words,
    need_words,
    new_cpu_limit,
    quota_words,
    setting_words,
)
from podqos.words.usage import coverage_line

# Moves that are listed.
_TOLD = 3


def text(report: AdviceReport, style: Style) -> list[str]:
    """Return the advice about all workloads: a table first, then the reasons."""
    lines = table(report, style)
    for workload in report.workloads:
        lines += ["", style.strong(workload.workload), *workload_lines(workload, style)]
    for shortfall in report.short_quotas:
        lines += ["", *wrapped(style.alarm(quota_words(shortfall)), style, "  ", "! ")]
    if report.priority_classes:
        names = ", ".join(
            f"{priority_class.name} ({priority_class.value})" for priority_class in report.priority_classes
        )
        prints = f"{stated_with('output', 'manifests')} prints them"
        lines += ["", *wrapped(f"Priority classes to create: {names}. {prints}.", style, "")]
    return lines


def node_comments(report: NodeAdvice, style: Style) -> list[str]:
    """Return the reasons as comments above a configuration."""
    return [line for reason in report.reasons for line in wrapped(reason, Style(width=style.width or 118), "# ")]


def workload_lines(workload: WorkloadAdvice, style: Style) -> Iterator[str]:
    """Yield what one workload should have, why, what stays open, and what follows."""
    before, after = workload.before, workload.after
    classes = change(before and style.qos_class(before.qos_class), after and style.qos_class(after.qos_class))
    priorities = change(before and before.priority, after and after.priority)
    scores = change(worst_score(before), worst_score(after))
    named = f" ({workload.priority_class})" if workload.priority_class else ""
    like = f", like {workload.like} in the matrix" if workload.like else ""
    yield f"  {classes}, priority {priorities}{named}, oom_score_adj {scores}{like}"
    for reason in workload.reasons:
        yield from wrapped(reason, style, "    ", "  - ")
    if workload.is_withheld and workload.tried is not None:
        yield from wrapped(style.alarm(workload.tried.text), style, "    ", "  ! ")
    elif after is not None and after.qos_class is not workload.wanted_class:
        yield from wrapped(style.alarm(f"{workload.wanted_class} is not achieved"), style, "    ", "  ! ")
    if workload.refusal and not workload.is_withheld:
        yield from wrapped(style.alarm(f"the API server would reject it: {workload.refusal}"), style, "    ", "  ! ")
    for container in workload.containers:
        yield from _container(container, style, workload.wanted_class)
    if workload.tried is not None and not workload.is_withheld:
        yield from wrapped(workload.tried.text, style, "    ", "  ")
    if workload.autoscaler:
        yield from wrapped(autoscaler_words(workload.autoscaler), style, "    ", "  ")
    for moves in (workload.moved_back, workload.moved_ahead):
        shown = style.shown(moves, _TOLD)
        for move in shown:
            yield from wrapped(move.text, style, "    ", "  → ")
        if len(moves) > len(shown):
            yield f"  → … and {len(moves) - len(shown)} more"


def _container(container: ContainerAdvice, style: Style, qos_class: QOSClass) -> Iterator[str]:
    amounts = [
        f"{resource} {_amounts(container, resource)}"
        for resource in (CPU, MEMORY)
        if any(resource in side for side in _sides(container))
    ]
    provisional = " (provisional: too little data to lower anything)" if container.is_provisional else ""
    yield f"  {container.container}: {'; '.join(amounts) or 'no requests and no limits'}{provisional}"
    if container.needs_choice:
        yield from wrapped(style.alarm(_to_choose(container)), style, "      ", "    ! ")
    if CPU in container.limits and CPU not in container.limits_before:
        yield from wrapped(new_cpu_limit(container.limits[CPU], qos_class), style, "      ", "    ! ")
    for line in _seen(container):
        yield from wrapped(line, style, "    ")
    for bound in container.bounded:
        yield from wrapped(bounded_words(bound), style, "      ", "    ")
    if container.setting is not None and container.setting.decides:
        yield from wrapped(setting_words(container.setting, container.memory_need), style, "      ", "    ! ")
    for doubt in container.doubts:
        if doubt not in _implied(container):
            yield from wrapped(DOUBTS[doubt], style, "      ", "    ? ")


def _to_choose(container: ContainerAdvice) -> str:
    known = {CPU: container.cpu_milli, MEMORY: container.memory_bytes}
    unknown = [resource for resource, used in known.items() if used is None and resource not in container.requests]
    return f"choose its {' and '.join(unknown or known)} request{'s' if len(unknown) != 1 else ''}: no measurements"


def _implied(container: ContainerAdvice) -> set[Doubt]:
    """Return the doubts that other lines state: nothing was measured at all, or a CPU limit is new."""
    implied = set()
    if container.memory_bytes is None and container.cpu_milli is None:
        implied |= {Doubt.NO_CPU_SAMPLES, Doubt.NO_MEMORY_SAMPLES}
    if CPU not in container.limits_before:
        implied.add(Doubt.CPU_LIMIT_THROTTLES)
    if container.coverage == RECOMMENDED:
        implied.add(Doubt.FEW_SAMPLES)
    return implied


def _sides(container: ContainerAdvice) -> tuple[ResourceList, ...]:
    return container.requests_before, container.limits_before, container.requests, container.limits


def _amounts(container: ContainerAdvice, resource: str) -> str:
    old_request, old_limit, request, limit = (side.get(resource, "–") for side in _sides(container))
    return change(f"{old_request} / {old_limit}", f"{request} / {limit}")


def _seen(container: ContainerAdvice) -> Iterator[str]:
    risk = container.risk
    if Doubt.EXPECTED_ONLY in container.doubts:
        return
    if container.coverage.samples or container.coverage.shortfalls:
        yield f"based on {coverage_line(container.coverage)}"
    if container.coverage == RECOMMENDED:
        return
    if container.memory_bytes is not None:
        over = f"{_share(risk.memory_over_request)} above the recommended request"
        over = f"{over}, {_share(risk.memory_over_limit)} above the recommended limit"
        yield f"memory used: {_percentiles(container.memory_bytes, is_memory=True)}; {over}"
    if container.memory_need is not None:
        yield f"memory {need_words(container.memory_need)}"
    if container.cpu_milli is not None:
        over = f"{_share(risk.cpu_over_request)} above the recommended request"
        over = f"{over}, {_share(risk.cpu_over_limit)} throttled by the recommended limit"
        yield f"cpu used: {_percentiles(container.cpu_milli, is_memory=False)}; {over}"


def _percentiles(found: Percentiles, *, is_memory: bool) -> str:
    values = (("p50", found.p50), ("p95", found.p95), ("p99", found.p99), ("max", found.most))
    return " ".join(f"{name} {mebibytes(value) if is_memory else f'{value}m'}" for name, value in values)


def _share(share: Share | None) -> str:
    if share is None:
        return "?"
    return f"{share.percent:.3g} % ({share.count} of {share.of})" if share.count else "none"
