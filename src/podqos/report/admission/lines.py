"""``podqos admit`` for people: the steps of each workload, or one line per workload.

Each function takes reports (the documented value) and a style, and returns lines or rows. The machine formats are the
value itself and need no code here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from podqos.admission.chain import Step
from podqos.admission.refusal import Code
from podqos.admission.workloads import Operation
from podqos.answers.admission import AdmissionReport, Outcome, RefusalReport, StepReport
from podqos.answers.admission_changes import change_lines
from podqos.model.pod import QOSClass
from podqos.report.text.style import Style, columns, wrapped
from podqos.words import admission as words
from podqos.words.qos import kept_scores

_LABEL = 27  # columns of the name of a step within a block
_INDENT = " " * (2 + _LABEL)
_NOTHING = "–"

CSV_HEADER = (
    "namespace", "kind", "name", "operation", "class_as_written", "class", "class_changed", "pods", "pods_admitted",
    "outcome", "refused_by", "code", "message", "not_judged",
)  # fmt: skip


def text(item: AdmissionReport, style: Style) -> list[str]:
    """Return a block of lines: each step with what it changed, and the outcome."""
    lines = [f"{style.strong(_title(item))}  {_classes(item, style)}"]
    lines += _steps(item, style)
    if item.override is not None:
        lines += _labelled("override", [item.override.message], style)
    if item.refusal is not None:
        lines += _refusal_lines(item, item.refusal, style)
    elif item.steps:
        lines += _labelled("outcome", [_allowed(item)], style)
    if item.keeps_scores:
        lines += _labelled("scores", [kept_scores(item.keeps_scores)], style)
    if item.pending is not None:
        pending = item.pending
        lines += _labelled(
            "kubelet", [f"{pending.reason} on node {pending.node}: {pending.message}"], style, is_alarm=True
        )
    if item.not_judged:
        lines += _labelled("not evaluated", [words.not_judged(item.not_judged)], style)
    for warning in item.warnings:
        lines += _labelled("warning", [warning.message], style, is_alarm=True)
    lines.append("")
    return lines


def table(items: Sequence[AdmissionReport], style: Style) -> list[str]:
    """Return one line per workload."""
    rows = [
        (
            item.namespace,
            f"{item.kind}/{item.name}",
            _class(item.qos_class_as_written, style),
            _class(item.qos_class, style),
            _drift(item),
            _outcome(item),
        )
        for item in items
    ]
    return columns(("NAMESPACE", "NAME", "AS WRITTEN", "ADMITTED", "CLASS CHANGED BY", "OUTCOME"), rows, style)


def csv_row(item: AdmissionReport) -> tuple[str | int, ...]:
    """Return the values of a row, in the order of ``CSV_HEADER``."""
    refusal = item.refusal
    return (
        item.namespace,
        item.kind,
        item.name,
        item.operation,
        item.qos_class_as_written or "",
        item.qos_class or "",
        "true" if item.class_changed else "false",
        item.pods,
        item.pods_admitted,
        item.outcome,
        refusal.step if refusal else "",
        refusal.code if refusal else "",
        refusal.message if refusal else "",
        " ".join(item.not_judged),
    )


# ---- one block -----------------------------------------------------------------------------------------------------


def _title(item: AdmissionReport) -> str:
    count = f" × {item.pods}" if item.pods != 1 else ""
    resize = "resize of " if item.operation is Operation.RESIZE else ""
    return f"{resize}{item.kind} {item.namespace}/{item.name}{count}"


def _classes(item: AdmissionReport, style: Style) -> str:
    """Return the class, or the way from the class as written to what became of it."""
    if item.qos_class_as_written is None:
        return style.alarm("rejected")
    before = style.qos_class(item.qos_class_as_written)
    if item.qos_class is None:
        return f"{before} → {style.alarm('rejected')}"
    after = style.qos_class(item.qos_class)
    return after if item.qos_class is item.qos_class_as_written else f"{before} → {after}"


def _steps(item: AdmissionReport, style: Style) -> list[str]:
    """Return the steps in their order; those that changed nothing share a line."""
    lines: list[str] = []
    # A quota that let the first pods in and refuses the next speaks once, below.
    passed = [step for step in item.steps if item.refusal is None or step.step != item.refusal.step]
    for has_changes, group in groupby(passed, key=lambda step: bool(step.changes)):
        if has_changes:
            for step in group:
                lines += _step_lines(step, style)
        else:
            lines += _labelled("passed", [", ".join(step.step for step in group)], style)
    return lines


def _step_lines(step: StepReport, style: Style) -> list[str]:
    paragraphs = change_lines(step.changes)
    is_drift = step.qos_class_before is not step.qos_class_after
    if is_drift:
        before, after = style.qos_class(step.qos_class_before), style.qos_class(step.qos_class_after)
        paragraphs.insert(0, f"{before} → {after}: {step.reason}")
    # What defaulting does belongs to what a manifest means.
    is_alarm = is_drift and step.step not in {Step.DEFAULTING, Step.POD_LEVEL_DEFAULTING}
    return _labelled(step.step, paragraphs, style, is_alarm=is_alarm)


def _refusal_lines(item: AdmissionReport, refusal: RefusalReport, style: Style) -> list[str]:
    code = words.status(Code(refusal.code))
    lines = _labelled(refusal.step, [f"{style.alarm(f'rejected, {code}')}: {refusal.message}"], style, is_alarm=True)
    # What comes from a cluster has no line.
    places = [
        f"{item.source}:{field.line}:{field.column}: {field.path}" if field.line else field.path
        for field in refusal.fields
    ]
    lines += _labelled("", places, style)
    if item.outcome is Outcome.PARTLY_ALLOWED:
        lines += _labelled("outcome", [f"{item.pods_admitted} of {item.pods} pods allowed"], style)
    stored = words.stored_without_pods(item.kind) if refusal.holder_is_stored else ""
    return lines + _labelled("note", filter(None, (refusal.hint, stored)), style)


def _allowed(item: AdmissionReport) -> str:
    if item.pods == 1:
        return "allowed, on every node" if item.kind == "DaemonSet" else "allowed"
    return f"{item.pods} of {item.pods} pods allowed" if item.pods else "would be allowed; 0 replicas requested"


def _labelled(label: str, paragraphs: Iterable[str], style: Style, *, is_alarm: bool = False) -> list[str]:
    lines = [line for paragraph in paragraphs for line in wrapped(paragraph, style, _INDENT)]
    if lines:
        mark = style.alarm("! ") if is_alarm else "  "
        lines[0] = f"{mark}{style.faint(label.ljust(_LABEL))}{lines[0][len(_INDENT) :]}"
    return lines


# ---- one line ------------------------------------------------------------------------------------------------------


def _class(qos_class: QOSClass | None, style: Style) -> str:
    return _NOTHING if qos_class is None else style.qos_class(qos_class)


def _drift(item: AdmissionReport) -> str:
    """Return the steps that changed the class, if it ends as another."""
    changed = [step.step for step in item.steps if step.qos_class_before is not step.qos_class_after]
    return ", ".join(changed) if item.qos_class is not item.qos_class_as_written and changed else _NOTHING


def _outcome(item: AdmissionReport) -> str:
    resize = "resize " if item.operation is Operation.RESIZE else ""
    undefined = "; its defaults are undefined" if item.warnings else ""
    if item.refusal is None:
        count = len(item.not_judged)
        unjudged = f"; {count} field{'s' if count > 1 else ''} not evaluated" if count else ""
        pending = "" if item.pending is None else f", then {item.pending.reason} on node {item.pending.node}"
        return f"{resize}allowed{pending}{undefined}{unjudged}"
    code = words.status(Code(item.refusal.code))
    allowed = f"{item.pods_admitted} of {item.pods} pods allowed, then " if item.pods_admitted else ""
    return f"{allowed}{resize}rejected by {item.refusal.step}, {code}: {item.refusal.message}"
