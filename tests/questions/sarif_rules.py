"""The rules of SARIF 2.1.0 for what podqos writes, as a validator: properties, types, requirements, references.

Written from the standard's text; the numbers are its sections. Whatever property is not named here is refused, so that
nothing is written that nobody has looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

Rule = Callable[[object, str], list[str]]


def text(value: object, where: str) -> list[str]:
    return [] if isinstance(value, str) and value else [f"{where}: not a text"]


def boolean(value: object, where: str) -> list[str]:
    return [] if isinstance(value, bool) else [f"{where}: not a boolean"]


def whole(least: int) -> Rule:
    def rule(value: object, where: str) -> list[str]:
        is_whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return [] if is_whole else [f"{where}: not a whole number from {least}"]

    return rule


def one_of(*values: str) -> Rule:
    return lambda value, where: [] if value in values else [f"{where}: {value!r} is none of {values}"]


def uri(value: object, where: str) -> list[str]:
    """Hold it to RFC 3986: ASCII, percent signs only as escapes."""
    if not isinstance(value, str) or not re.fullmatch(r"(?:[!#-;=?-\[\]_a-z~]|%[0-9A-Fa-f]{2})+", value):
        return [f"{where}: {value!r} is no URI reference"]
    return [] if urlsplit(value).scheme in {"", "file", "https"} else [f"{where}: odd scheme in {value!r}"]


def list_of(rule: Rule, *, unique: bool = False, least: int = 0) -> Rule:
    def check(value: object, where: str) -> list[str]:
        if not isinstance(value, list) or len(value) < least:
            return [f"{where}: not a list of {least} or more"]
        problems = [problem for index, item in enumerate(value) for problem in rule(item, f"{where}[{index}]")]
        texts = [str(item) for item in value]
        return problems + ([f"{where}: not unique"] if unique and len(set(texts)) < len(texts) else [])

    return check


def shape(required: dict[str, Rule], optional: dict[str, Rule] | None = None) -> Rule:
    def check(value: object, where: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{where}: not an object"]
        known = {**required, **(optional or {})}
        problems = [f"{where}: lacks {name}" for name in required if name not in value]
        for name, item in value.items():
            problems += known[name](item, f"{where}.{name}") if name in known else [f"{where}: unknown {name}"]
        return problems

    return check


def texts_by_name(value: object, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: not an object"]
    return [problem for name, item in value.items() for problem in text(item, f"{where}.{name}")]


def anything(_value: object, _where: str) -> list[str]:
    return []


LEVEL = one_of("none", "note", "warning", "error")  # 3.27.10
MESSAGE = shape({"text": text}, {"markdown": text})  # 3.11, and 3.12 for multiformatMessageString
ARTIFACT_LOCATION = shape({"uri": uri}, {"uriBaseId": text})  # 3.4
REGION = shape(  # 3.30: lines and columns count from one
    {"startLine": whole(1)}, {"startColumn": whole(1), "endLine": whole(1), "endColumn": whole(1)}
)
PHYSICAL_LOCATION = shape({"artifactLocation": ARTIFACT_LOCATION}, {"region": REGION})  # 3.29
LOGICAL_LOCATION = shape({"fullyQualifiedName": text}, {"kind": text, "name": text})  # 3.33
LOCATION = shape({"physicalLocation": PHYSICAL_LOCATION}, {"logicalLocations": list_of(LOGICAL_LOCATION)})  # 3.28
RELATED_LOCATION = shape({"physicalLocation": PHYSICAL_LOCATION}, {"message": MESSAGE})  # 3.28
REPLACEMENT = shape({"deletedRegion": REGION}, {"insertedContent": shape({"text": anything})})  # 3.57
ARTIFACT_CHANGE = shape(  # 3.56
    {"artifactLocation": ARTIFACT_LOCATION, "replacements": list_of(REPLACEMENT, least=1)}
)
FIX = shape({"artifactChanges": list_of(ARTIFACT_CHANGE, least=1)}, {"description": MESSAGE})  # 3.55
SUPPRESSION = shape(  # 3.35
    {"kind": one_of("inSource", "external")},
    {"justification": text},
)
RESULT = shape(  # 3.27
    {"message": MESSAGE},
    {
        "ruleId": text,
        "ruleIndex": whole(0),
        "level": LEVEL,
        "locations": list_of(LOCATION),
        "relatedLocations": list_of(RELATED_LOCATION, least=1),
        "partialFingerprints": texts_by_name,
        "fixes": list_of(FIX, unique=True),
        "suppressions": list_of(SUPPRESSION, unique=True),
    },
)
RULE = shape(  # 3.49
    {"id": text},
    {
        "name": text,
        "shortDescription": MESSAGE,
        "fullDescription": MESSAGE,
        "helpUri": text,
        "help": MESSAGE,
        "defaultConfiguration": shape({}, {"level": LEVEL}),
        "properties": anything,
    },
)
NOTIFICATION = shape({"message": MESSAGE}, {"level": LEVEL, "locations": list_of(LOCATION)})  # 3.58
INVOCATION = shape({"executionSuccessful": boolean}, {"toolExecutionNotifications": list_of(NOTIFICATION)})  # 3.20
DRIVER = shape(  # 3.19
    {"name": text}, {"version": text, "semanticVersion": text, "rules": list_of(RULE, unique=True)}
)
RUN = shape(  # 3.14
    {"tool": shape({"driver": DRIVER})},
    {
        "results": list_of(RESULT),
        "invocations": list_of(INVOCATION),
        "columnKind": one_of("utf16CodeUnits", "unicodeCodePoints"),
    },
)
LOG = shape({"version": one_of("2.1.0"), "runs": list_of(RUN)}, {"$schema": uri})  # 3.13


def problems(log: dict[str, object]) -> list[str]:
    """Return everything in a log that the standard does not allow."""
    return LOG(log, "") or [problem for run in log["runs"] for problem in _references(run)]  # type: ignore[attr-defined]


def _references(run: dict[str, object]) -> list[str]:
    """Rules are named by index and id (3.52.4), replacements do not overlap (3.56.3), regions end after they begin."""
    rules = run["tool"]["driver"]["rules"]  # type: ignore[index]
    found = []
    for result in run["results"]:  # type: ignore[attr-defined]
        if rules[result["ruleIndex"]]["id"] != result["ruleId"]:
            found.append(f"{result['ruleId']}: the index names another rule")
        for fix in result.get("fixes", ()):
            for change in fix["artifactChanges"]:
                ends = (0, 0)
                for replacement in change["replacements"]:
                    region = replacement["deletedRegion"]
                    start = (region["startLine"], region["startColumn"])
                    if start < ends:
                        found.append(f"{result['ruleId']}: replacements overlap")
                    ends = (region["endLine"], region["endColumn"])
                    if ends < start:
                        found.append(f"{result['ruleId']}: a region ends before it begins")
    return found
