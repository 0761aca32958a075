"""``podqos check -o sarif``: the format in which code scanners exchange results, SARIF 2.1.0.

Every check is a rule with its page as help, every finding a result with its place in the file and in the cluster, its
fingerprint, its suppressions, and, where the text of the file is known, the replacement that fixes it.

Source: OASIS Static Analysis Results Interchange Format 2.1.0 (sections are named beside the properties that need it).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import repeat
from typing import TypeAlias

from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.check import Check
from podqos.advice.checks.finding import FindingSeverity
from podqos.answers.findings import AlsoFound, CheckReport, FindingReport
from podqos.answers.replacements import Replacement
from podqos.manifest.problems import Problem, Severity
from podqos.objects.files import file_behind
from podqos.report.check.catalogue import GoodExample
from podqos.version import PROJECT_URL
from podqos.words.fixes import patch_lines

JSON: TypeAlias = "str | int | bool | list[JSON] | dict[str, JSON]"

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {FindingSeverity.ERROR: "error", FindingSeverity.WARNING: "warning", FindingSeverity.INFO: "note"}
_KINDS = {"annotation": "inSource", "configuration": "external", "baseline": "external"}
# Characters that a URI reference may hold as they are (RFC 3986: unreserved, and those allowed in a path).
_DRIVE = re.compile("[A-Za-z]:/")  # of Windows
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/!$&'()*+,;=@")


def sarif(
    report: CheckReport,
    version: str,
    good: GoodExample,
    *,
    problems: Sequence[Problem] = (),
    fixes: Sequence[Sequence[Replacement]] | None = None,
) -> JSON:
    """Return the log of one run; ``problems`` are those of the input, ``fixes`` the replacements per finding."""
    indexes = {check: index for index, check in enumerate(CHECKS)}
    notifications = [_notification(problem) for problem in problems]
    is_whole = not any(problem.severity is Severity.ERROR for problem in problems)
    run: dict[str, JSON] = {
        "tool": {
            "driver": {
                "name": "podqos",
                "version": version,
                "semanticVersion": version,
                "rules": [_rule(check, good) for check in CHECKS.values()],
            }
        },
        "invocations": [{"executionSuccessful": is_whole, "toolExecutionNotifications": notifications}],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(item, indexes[item.check], replacements)
            for item, replacements in zip(report.items, fixes or repeat(()), strict=False)
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(check: Check, good: GoodExample) -> JSON:
    """Return a reportingDescriptor (3.49)."""
    severity = "recommendation" if check.severity is FindingSeverity.INFO else str(check.severity)
    return {
        "id": check.id,
        "name": "".join(word.capitalize() for word in check.name.split("-")),
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": check.why},
        "helpUri": f"{PROJECT_URL}/docs/reference/checks.md#{check.id.lower()}-{check.name}",
        "help": {"text": f"{check.why}\n\n{check.fix}", "markdown": _markdown(check, good)},
        "defaultConfiguration": {"level": _LEVELS[check.severity]},
        "properties": {"tags": ["kubernetes", "qos", "reliability"], "problem.severity": severity},
    }


def _markdown(check: Check, good: GoodExample) -> str:
    return (
        f"{check.why}\n\n**Fix:** {check.fix}\n\nInstead of\n\n```yaml\n{check.example.text.strip()}\n```\n\n"
        f"write\n\n```yaml\n{good(check).strip()}\n```\n"
    )


def _result(item: FindingReport, rule_index: int, replacements: Sequence[Replacement]) -> JSON:
    """Return a result (3.27)."""
    container = f", container {item.container}" if item.container else ""
    text = f"{item.subject}{container}: {item.reason}"
    logical = item.subject.replace(" ", "/", 1) + (f"#{item.path}" if item.path else "")
    result: dict[str, JSON] = {
        "ruleId": item.check,
        "ruleIndex": rule_index,
        "level": _LEVELS[item.severity],
        "message": {"text": f"{text}\n{item.consequence}" if item.consequence else text},
        "locations": [{**_physical(item), "logicalLocations": [{"fullyQualifiedName": logical, "kind": "object"}]}],
        "partialFingerprints": {"podqos/v1": item.fingerprint},
    }
    if item.also:
        result["relatedLocations"] = [
            {**_physical(other), "message": {"text": f"the same for {other.subject}"}} for other in item.also
        ]
    if replacements:
        result["fixes"] = [_fix(item, replacements)]
    if item.suppression is not None:
        # Its status is left out, which means accepted: two editions of the schema call the property differently.
        suppression: dict[str, JSON] = {"kind": _KINDS[item.suppression.by]}
        if item.suppression.reason:
            suppression["justification"] = item.suppression.reason
        result["suppressions"] = [suppression]
    return result


def _physical(item: FindingReport | AlsoFound) -> dict[str, JSON]:
    """Return the place in the file (3.28.3), which an object of a cluster does not have."""
    if not item.line:
        return {}
    rendered = file_behind(item.source)
    if rendered is not None:  # whose lines are others
        return {"physicalLocation": {"artifactLocation": {"uri": uri(rendered)}}}
    region: dict[str, JSON] = {"startLine": item.line, "startColumn": item.column}
    return {"physicalLocation": {"artifactLocation": {"uri": uri(item.source)}, "region": region}}


def _fix(item: FindingReport, replacements: Sequence[Replacement]) -> JSON:
    """Return a fix (3.55); what is replaced are whole lines."""
    names = ("startLine", "startColumn", "endLine", "endColumn")
    changes: list[JSON] = [
        {
            "deletedRegion": dict(zip(names, (*replacement.start, *replacement.end), strict=True)),
            "insertedContent": {"text": replacement.text},
        }
        for replacement in replacements
    ]
    return {
        "description": {"text": "\n".join(patch_lines(item.patch)).removeprefix("fix: ")},
        "artifactChanges": [{"artifactLocation": {"uri": uri(item.source)}, "replacements": changes}],
    }


def _notification(problem: Problem) -> JSON:
    """Return a notification (3.58) about the input."""
    text = "\n".join((problem.what, *problem.details))
    notification: dict[str, JSON] = {"level": str(problem.severity), "message": {"text": text}}
    if problem.subject:
        name = f"{problem.subject.replace(' ', '/', 1)}#{problem.field}".removesuffix("#")
        notification["locations"] = [{"logicalLocations": [{"fullyQualifiedName": name, "kind": "object"}]}]
        return notification
    rendered = file_behind(problem.source)
    location: dict[str, JSON] = {"artifactLocation": {"uri": uri(rendered or problem.source)}}
    if problem.line and rendered is None:
        location["region"] = {"startLine": problem.line, "startColumn": problem.column}
    notification["locations"] = [{"physicalLocation": location}]
    return notification


def uri(path: str) -> str:
    """Return a file as a URI reference: relative to the repository, or absolute (3.4.3)."""
    if path == "-":
        return "stdin"
    written = "".join(
        c if c in _SAFE else "".join(f"%{byte:02X}" for byte in c.encode(errors="surrogateescape")) for c in path
    )
    if _DRIVE.match(path):
        return f"file:///{path[:2]}{written[written.index('/') :]}"
    return f"file://{written}" if path.startswith("/") else written.removeprefix("./")
