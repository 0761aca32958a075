"""``podqos policy test -o junit``: a file, or a cluster, is a test suite, an object a test case."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from podqos.advice.checks.demands import PolicyOverBudget
from podqos.answers.policies import JudgedObject, PolicyReport
from podqos.report.text.junit import document, element


def junit(report: PolicyReport) -> str:
    """Return the document: what is not as expected fails, and so does what fails without an expectation."""
    suites: dict[str, list[Element]] = {}
    for item in report.items:
        suites.setdefault(item.source, []).append(_case(item, report))
    for over in report.budgets:
        assert isinstance(over.facts, PolicyOverBudget)
        name = " ".join(filter(None, (over.facts.budget, over.facts.side, over.facts.group)))
        case = element("testcase", classname=f"Policy {over.facts.policy}", name=name)
        failed = report.fail_on.fails(over.action)
        case.append(element("failure" if failed else "system-out", over.message))
        suites.setdefault(over.source, []).append(case)
    return document("podqos policy test", suites)


def _case(item: JudgedObject, report: PolicyReport) -> Element:
    where = {"file": item.source, "line": str(item.line)} if item.line else {}
    name = "allow" if item.expected is None else item.expected.value
    case = element("testcase", classname=item.subject, name=name, **where)
    messages = "\n".join(violation.message for violation in item.violations)
    fails = report.fail_on.fails(item.action) if item.is_met is None else not item.is_met
    found = "allow" if item.action is None else item.action.lower()
    if fails:
        case.append(element("failure", messages, type=found, message=f"expected {name}, found {found}"))
    elif item.is_exempt and item.expected is None:
        case.append(element("skipped", message=f"exempt: {item.violations[0].exemption}"))
    elif messages:
        case.append(element("system-out", messages))
    return case
