"""``podqos check`` for programs (SARIF 2.1.0, GitHub's annotations, JUnit), and the checks themselves, with examples.

Sources: OASIS Static Analysis Results Interchange Format 2.1.0 (sections are named beside the properties that need it);
actions/toolkit packages/core/src/command.ts (escapeData, escapeProperty).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import repeat
from typing import TypeAlias
from xml.etree.ElementTree import Element

from msgspec import Struct

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.check import Check
from podqos.advice.checks.finding import CheckedObject, FailOn, FindingSeverity, plain_value
from podqos.manifest.edits.apply import CannotEdit, ObjectEdit, apply_edits
from podqos.manifest.problems import Position, Problem, Severity
from podqos.naming import published
from podqos.objects.files import file_behind
from podqos.objects.objects import Objects
from podqos.questions.check import Checked
from podqos.questions.findings import AlsoFound, CheckReport, FindingReport, is_shown, patch_lines
from podqos.questions.patches import Replacement
from podqos.text.junit import document, element
from podqos.text.style import Style, columns, wrapped
from podqos.version import PROJECT_URL

# ---- the checks ------------------------------------------------------------------------------------------------------


class CheckDescription(Struct, frozen=True):
    """One check."""

    id: str
    name: str
    severity: FindingSeverity
    title: str
    why: str
    fix: str
    bad: str
    """A manifest that has the finding."""
    good: str
    """The same manifest without the finding."""
    references: tuple[str, ...]


class CheckList(Struct, frozen=True, rename="camel"):
    """The output of ``podqos check --list -o json``."""

    items: tuple[CheckDescription, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CheckList"


def check_list(checks: Iterable[Check]) -> CheckList:
    """Return the checks in the documented shape."""
    return CheckList(
        tuple(
            CheckDescription(
                *(check.id, check.name, check.severity, check.title, check.why, check.fix),
                bad=check.example.text,
                good=good_example(check),
                references=check.references,
            )
            for check in checks
        )
    )


def list_table(checks: Iterable[Check], style: Style) -> list[str]:
    """Return one line per check."""
    rows = [(check.id, style.severity(check.severity), check.name, check.title) for check in checks]
    return columns(("ID", "SEVERITY", "NAME", "WHAT IT FINDS"), rows, style)


def page(check: Check, style: Style) -> Iterator[str]:
    """Yield everything about one check."""
    yield f"{style.strong(f'{check.id} {check.name}')} ({style.severity(check.severity)}): {check.title}"
    for heading, text in (("Why it matters", check.why), ("How to fix it", check.fix)):
        yield from ("", style.strong(heading))
        yield from wrapped(text, style, "  ")
    injected = f" (with inject: [{', '.join(check.example.inject)}] in .podqos.yaml)" if check.example.inject else ""
    for heading, text in (("Instead of", check.example.text), ("Write", good_example(check))):
        yield from ("", style.strong(heading + injected))
        yield from (f"  {line}" for line in text.strip().splitlines())
    if check.references:
        yield from ("", style.strong("References"), *(f"  {reference}" for reference in check.references))


def good_example(check: Check) -> str:
    """Return a check's example without the finding: with its own patch, as ``--fix`` would write it."""
    return check.example.good or _fixed(check.id)


@cache
def _fixed(check_id: str) -> str:
    """Write the patch into the bad example; once, for a report of all checks does it for each."""
    example = CHECKS[check_id].example
    data = example.text.encode()
    running = Objects().with_text("running.yaml", (example.replaces or example.text).encode())
    changed = Objects().with_text("example.yaml", data) if example.replaces else None
    options = CheckOptions(inject=example.inject, compare_up_to=0)
    (finding,) = Checked(running, options, resized=changed).findings
    place = finding.subject.place
    assert place is not None
    edits = {edit.path: edit.value for edit in finding.patch.edits} or example.chosen
    edited = apply_edits(data, [ObjectEdit(place, path, plain_value(value)) for path, value in edits.items()])
    assert not isinstance(edited, CannotEdit), (check_id, edited)
    return edited.data.decode()


# ---- SARIF -----------------------------------------------------------------------------------------------------------

JSON: TypeAlias = "str | int | bool | list[JSON] | dict[str, JSON]"

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {FindingSeverity.ERROR: "error", FindingSeverity.WARNING: "warning", FindingSeverity.INFO: "note"}
_SUPPRESSED = {"annotation": "inSource", "configuration": "external", "baseline": "external"}
# Characters that a URI reference may hold as they are (RFC 3986: unreserved, and those allowed in a path).
_DRIVE = re.compile("[A-Za-z]:/")  # of Windows
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/!$&'()*+,;=@")


def sarif(
    report: CheckReport,
    version: str,
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
                "rules": [_rule(check) for check in CHECKS.values()],
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


def _rule(check: Check) -> JSON:
    """Return a reportingDescriptor (3.49)."""
    severity = "recommendation" if check.severity is FindingSeverity.INFO else str(check.severity)
    return {
        "id": check.id,
        "name": "".join(word.capitalize() for word in check.name.split("-")),
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": check.why},
        "helpUri": f"{PROJECT_URL}/docs/reference/checks.md#{check.id.lower()}-{check.name}",
        "help": {"text": f"{check.why}\n\n{check.fix}", "markdown": _markdown(check)},
        "defaultConfiguration": {"level": _LEVELS[check.severity]},
        "properties": {"tags": ["kubernetes", "qos", "reliability"], "problem.severity": severity},
    }


def _markdown(check: Check) -> str:
    return (
        f"{check.why}\n\n**Fix:** {check.fix}\n\nInstead of\n\n```yaml\n{check.example.text.strip()}\n```\n\n"
        f"write\n\n```yaml\n{good_example(check).strip()}\n```\n"
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
        suppression: dict[str, JSON] = {"kind": _SUPPRESSED[item.suppression.by]}
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


# ---- GitHub: workflow commands, which are shown beside the changed lines of a pull request ---------------------------

_COMMANDS = {FindingSeverity.ERROR: "error", FindingSeverity.WARNING: "warning", FindingSeverity.INFO: "notice"}


def github(report: CheckReport, problems: Iterable[Problem] = (), *, verbose: bool = False) -> Iterator[str]:
    """Yield one command for each problem of the input and each finding.

    Suppressed findings are left out, and so are infos, as in the table: GitHub shows ten annotations of a step at most.
    """
    for problem in problems:
        parts = (problem.subject, problem.field, problem.what)
        title = ": ".join(filter(None, parts))
        file = "" if problem.subject else problem.source
        message = "\n".join((published(problem.fix) or title, *problem.details))
        yield _command(problem.severity, file, (problem.line, problem.column), title, message)
    for item in report.items:
        if item.suppression is None and is_shown(item, report, verbose=verbose):
            title = f"{item.check} {item.check_name}: {item.title}"
            file = item.source if item.line else ""
            yield _command(_COMMANDS[item.severity], file, (item.line, item.column), title, _annotation(item))


def _command(name: str, file: str, position: Position, title: str, message: str) -> str:
    properties = {"title": title}
    rendered = file_behind(file)
    if rendered is not None:  # whose lines are others
        properties = {"file": rendered, "title": title}
    elif file:  # what comes from a cluster has none
        # A file that cannot be opened has no lines.
        line, column = (str(max(1, number)) for number in position)
        properties = {"file": file, "line": line, "col": column, "title": title}
    written = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items())
    return f"::{name} {written}::{escape_data(message)}"


def _annotation(item: FindingReport) -> str:
    container = f", container {item.container}" if item.container else ""
    is_rendered = file_behind(item.source) is not None
    field = f" {item.path}" if item.path and (is_rendered or not item.line) else ""
    also = f"also: {item.also_text}" if item.also else ""
    lines = [f"{item.subject}{field}{container}: {item.reason}", item.consequence, also]
    return "\n".join(filter(None, [*lines, *patch_lines(item.patch)]))


def escape_data(text: str) -> str:
    """Escape a message, which ends at a line break."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape the value of a property, which ends at a colon or comma."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


# ---- JUnit: a file, or a cluster, is a test suite, a check of an object a test case ----------------------------------


def junit(report: CheckReport, checked: Sequence[CheckedObject]) -> str:
    """Return the document; ``checked`` are all objects that were checked."""
    found: dict[tuple[str, str], dict[str, list[FindingReport]]] = {}
    for item in report.items:
        found.setdefault((item.source, item.subject), {}).setdefault(item.check, []).append(item)
    files: dict[str, list[Element]] = {subject.source: [] for subject in checked}
    for (source, _), checks in found.items():
        files.setdefault(source, []).extend(_case(items, report.fail_on) for items in checks.values())
    for subject in checked:
        name = f"{subject.kind} {subject.key}"
        if (subject.source, name) not in found:
            files[subject.source].append(element("testcase", classname=name, name="no findings"))
    return document("podqos check", files)


def _case(items: Sequence[FindingReport], fail_on: FailOn) -> Element:
    """Return what a check found about an object."""
    first = items[0]
    name = f"{first.check} {first.check_name}"
    rendered = file_behind(first.source)
    where = {"file": first.source, "line": str(first.line)} if first.line else {}
    where = where if rendered is None else {"file": rendered}
    case = element("testcase", classname=first.subject, name=name, **where)
    text = "\n\n".join(map(_description, items))
    shown = [item for item in items if item.suppression is None]
    if not shown and first.suppression is not None:
        why = f"suppressed by {first.suppression.by}: {first.suppression.reason or 'no reason given'}"
        case.append(element("skipped", message=why))
    elif any(fail_on.fails(item.severity) for item in shown):
        case.append(element("failure", text, type=first.severity, message=first.title))
    else:
        case.append(element("system-out", text))
    return case


def _description(item: FindingReport) -> str:
    place = f"{item.place}: {item.severity}: {item.path}" if item.line else f"{item.severity}: {item.path}"
    also = f"also: {item.also_text}" if item.also else ""
    lines = [place, item.reason, item.consequence, also]
    return "\n".join(filter(None, [*lines, *patch_lines(item.patch)]))
