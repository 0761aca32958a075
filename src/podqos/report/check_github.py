"""``podqos check -o github``: workflow commands, which GitHub shows beside the changed lines of a pull request.

Source: actions/toolkit packages/core/src/command.ts (escapeData, escapeProperty).
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.finding import Severity
from podqos.report.check import CheckReport, FindingReport

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def github(report: CheckReport) -> Iterator[str]:
    """Yield one command for each finding; what is suppressed is not shown there."""
    return (_command(item) for item in report.items if item.suppression is None)


def _command(item: FindingReport) -> str:
    properties = {
        "file": item.source,
        "line": str(item.line),
        "col": str(item.column),
        "title": f"{item.check} {item.check_name}: {item.title}",
    }
    written = ",".join(f"{name}={escape_property(value)}" for name, value in properties.items())
    container = f", container {item.container}" if item.container else ""
    lines = [f"{item.subject}{container}: {item.reason}", item.consequence]
    lines += [f"fix: {item.patch.text}" if item.patch.text else ""]
    return f"::{_COMMANDS[item.severity]} {written}::{escape_data(chr(10).join(filter(None, lines)))}"


def escape_data(text: str) -> str:
    """Write a message so that it stays on its line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Write a property's value, which a colon or comma would end."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
