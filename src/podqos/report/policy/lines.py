"""``podqos policy test`` for people: the verdict, then what is worst."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.checks.demands import PolicyViolated
from podqos.answers.policies import JudgedObject, PolicyReport, ViolationReport
from podqos.policy.model import Action
from podqos.report.text.style import Style, wrapped
from podqos.wording import counted, listed

_WORDS = {Action.DENY: "rejected", Action.WARN: "warned about", Action.AUDIT: "recorded", None: "exempt"}
_PAINTED = {Action.DENY: "error", Action.WARN: "warning", Action.AUDIT: "info"}
_RULES_NAMED = 3
_Key = tuple[str, str, tuple[str, ...]]


def text(report: PolicyReport, style: Style) -> Iterator[str]:
    """Return the report: verdict, expectations that are not met, budgets, then objects, the strictest first."""
    yield from wrapped(style.strong(f"{report.verdict}{_rejected_by(report)}."), style, "  ", "")
    for over in report.budgets:
        yield ""
        yield from _violation(over, style)
    unmet = [item for item in report.items if item.is_met is False]
    if unmet:
        yield ""
        yield style.alarm("not as expected")
        for item in unmet:
            yield from _unmet(item, style)
    for action in (*Action, None):
        of_action = [item for item in report.items if item.action is action and item.violations]
        for same in _alike(of_action).values():
            yield ""
            yield from _object(same, style)


def _rejected_by(report: PolicyReport) -> str:
    """Return the rules that reject objects, where they are few enough for a line."""
    rules = dict.fromkeys(
        f"{violation.facts.policy}/{violation.facts.rule}"
        for item in report.items
        for violation in item.violations
        if item.action is Action.DENY and isinstance(violation.facts, PolicyViolated)
        if violation.action is Action.DENY and violation.exemption is None
    )
    return f"; rejected by {listed([*rules])}" if 1 <= len(rules) <= _RULES_NAMED else ""


def _alike(items: list[JudgedObject]) -> dict[_Key, list[JudgedObject]]:
    """Return the pods of one controller together that violate the same."""
    found: dict[_Key, list[JudgedObject]] = {}
    for item in items:
        messages = tuple(violation.message for violation in item.violations)
        own = item.owner if item.owner and not item.line else f"{item.kind} {item.name}"
        found.setdefault((item.namespace, own, messages if own == item.owner else (*messages, item.source)), []).append(
            item
        )
    return found


def _object(same: list[JudgedObject], style: Style) -> Iterator[str]:
    item = same[0]
    subject = item.subject
    if len(same) > 1:
        kind, _, name = item.owner.partition(" ")
        subject = f"{kind} {item.namespace}/{name} ({counted(len(same), 'pod')})"
    word = _WORDS[item.action]
    painted = style.severity(_PAINTED[item.action]).replace(_PAINTED[item.action], word) if item.action else word
    as_expected = " (as expected)" if item.is_met else ""
    yield f"{style.strong(subject)}: {painted}{as_expected}"
    for violation in item.violations:
        yield from _violation(violation, style)


def _violation(violation: ViolationReport, style: Style) -> Iterator[str]:
    yield f"  {violation.place}: {violation.action}"
    yield from wrapped(violation.message, style, "    ")
    if violation.exemption is not None:
        yield from wrapped(f"exempt: {violation.exemption}", style, "    ")


def _unmet(item: JudgedObject, style: Style) -> Iterator[str]:
    rules = f" by {', '.join(item.expected_rules)}" if item.expected_rules else ""
    where = f"{item.source}:{item.line}:{item.column}: " if item.line else ""
    found = "allow" if item.action is None else item.action.lower()
    violated = sorted({violation.facts.rule for violation in item.violations if hasattr(violation.facts, "rule")})
    by = f" by {', '.join(violated)}" if violated else ""
    yield from wrapped(
        f"{where}{item.subject}: expected {item.expected}{rules}, found {found}{by}", style, "    ", "  "
    )
