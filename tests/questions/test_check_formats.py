"""What ``podqos check`` says: the table, the verdict, the words of findings; GitHub, JUnit, SARIF."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import get_args
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from advice.bundles import check_example, check_text
from podqos.advice.checks import examples
from podqos.advice.checks.catalogue import CHECKS, Facts
from podqos.advice.checks.classes import NearlyGuaranteed
from podqos.advice.checks.finding import Choice, Consequence, Effect, Fact, Patch, PodStanding
from podqos.advice.checks.sizes import NoDiskLimit
from podqos.manifest.problems import Problem, Severity
from podqos.model.pod import QOSClass
from podqos.questions.check_formats import escape_data, escape_property, github, junit, sarif, uri
from podqos.questions.findings import Fate, badness, consequence, table, verdict
from podqos.questions.patches import Replacement, line_replacements
from podqos.text.style import Style
from questions.check_reports import CHECKED, EMPTY, KNOWN, NASTY, NOTE, PLAIN, REPORT, SUPPRESSED, WORSE, report_of
from questions.sarif_rules import problems

_LOW = PodStanding(QOSClass.BURSTABLE, 0, 985, "proxy")
_HIGH = PodStanding(QOSClass.GUARANTEED, 0, -997, "proxy")

# ---- table -------------------------------------------------------------------------------------------------------


def test_the_table_begins_with_a_verdict_groups_by_workload_and_ends_in_a_summary():
    lines = list(table(report_of(PLAIN, NOTE, KNOWN), Style()))
    assert lines == [
        "Deployment shop/web: one container keeps the pod from being Guaranteed",
        "",
        "Deployment shop/web",
        "  apps/web.yaml:12:9: warning PQ101 accidental-burstable, container proxy",
        "    why  proxy has no cpu limit",
        "    so   it is evicted before shop/api",
        "    fix  spec.template.spec.containers[1].resources.limits.cpu: 100m",
        "",
        "Deployment shop/known",
        "  apps/web.yaml:12:9: warning PQ101 accidental-burstable, container proxy",
        "    left suppressed by baseline: no reason given",
        "    why  proxy has no cpu limit",
        "    so   it is evicted before shop/api",
        "    fix  spec.template.spec.containers[1].resources.limits.cpu: 100m",
        "",
        "1 error, 1 warning; 3 objects in 2 files checked",
        "  1 info hidden (-v shows it)",
        "  1 suppressed by annotation or configuration (-v shows them)",
        "  1 known from the baseline",
        "  2 hidden by --min-severity",
        "  2 findings are fixable with --fix, infos included (--diff shows how)",
        "  podqos check --explain PQ101 explains a check",
    ]


def test_what_is_worst_comes_first():
    note = replace(NOTE, name="noted")
    lines = list(table(report_of(note, PLAIN, WORSE), Style(), verbose=True))
    places = [lines.index(line) for word in ("error PQ", "warning PQ", "info PQ") for line in lines if word in line]
    assert places == sorted(places)
    assert lines[0].startswith("Deployment shop/<b>")


def test_what_many_share_is_said_once_with_the_places():
    facts = NoDiskLimit(containers=("proxy",))
    items = tuple(
        replace(
            PLAIN, name=f"web-{number}", container=None, line=number, reason=facts.sentence(""), title="Disks fill up"
        )
        for number in range(1, 13)
    )
    lines = list(table(report_of(*items), Style()))
    assert lines[2:9] == [
        "warning PQ101 accidental-burstable: Disks fill up (12 objects)",
        "    why  the container has no ephemeral-storage limit",
        "    fix  spec.template.spec.containers[1].resources.limits.cpu: 100m",
        "    apps/web.yaml:1:9: Deployment shop/web-1, container proxy",
        "    apps/web.yaml:2:9: Deployment shop/web-2, container proxy",
        "    apps/web.yaml:3:9: Deployment shop/web-3, container proxy",
        "    apps/web.yaml:4:9: Deployment shop/web-4, container proxy",
    ]
    assert "    and 2 more; -v lists all of them" in lines
    assert sum("Deployment shop/web-" in line for line in table(report_of(*items), Style(), verbose=True)) == 13


_CAUSED = replace(PLAIN, facts=NearlyGuaranteed(in_order=("web",), spoilers=()))
_SO = ", because its own requests and limits keep it from being Guaranteed"
_FOUND = "one container keeps the pod from being Guaranteed"
_ALSO = f". Worst finding: {_FOUND}"
_SHORT = "when every pod is at its memory limit"
_EARLIER = Consequence(Effect.ORDER, _LOW, _HIGH, "shop/db", is_compared=True)


@pytest.mark.parametrize(
    ("effects", "fate", "said"),
    [
        (Consequence(Effect.NOT_CREATED), Fate.NOT_CREATED, f"no pod of {{}} is created or scheduled: {_FOUND}"),
        (Consequence(Effect.FEWER), Fate.FEWER, f"{{}}: {_FOUND}"),
        (
            _EARLIER,
            Fate.EARLIER,
            f"{{}} is evicted before shop/db {_SHORT}{_SO}",
        ),
        (
            Consequence(Effect.ORDER, _LOW, killed_before="shop/db"),
            Fate.EARLIER,
            f"{{}} is OOM-killed before shop/db {_SHORT}{_ALSO}",
        ),
        (
            Consequence(Effect.STANDING, _LOW, _HIGH),
            Fate.BY_CLASS,
            f"{{}} is evicted once it uses more than it requests{_SO}",
        ),
        (
            Consequence(Effect.STANDING, _LOW, _LOW),
            Fate.BY_CLASS,
            f"{{}} is evicted once it uses more than it requests{_ALSO}",
        ),
        (Consequence(Effect.STANDING, _HIGH, _LOW), Fate.SAFER, f"{{}} is safer than its manifest suggests{_SO}"),
        (
            replace(_EARLIER, now=_HIGH, repaired=_LOW),
            Fate.SAFER,
            f"{{}} is safer than its manifest suggests{_SO}",
        ),
        (Consequence(Effect.STANDING, _HIGH), Fate.NONE, f"{{}}: {_FOUND}"),
        (Consequence(Effect.NONE, _LOW), Fate.NONE, f"{{}}: {_FOUND}"),
        (
            Consequence(Effect.DISK, disk_request="0"),
            Fate.DISK,
            f"{{}} is among the first to be evicted when the disk fills up{_ALSO}",
        ),
        (Consequence(Effect.NODE), Fate.NONE, f"{{}}: {_FOUND}"),
    ],
)
def test_the_verdict_says_what_becomes_of_the_worst_off_and_because_of_what_if_it_is_so(effects, fate, said):
    found = verdict([replace(_CAUSED, effects=effects), NOTE])
    assert found is not None
    assert found.text == said.format("Deployment shop/web")
    assert (found.fate, found.check, found.others) == (fate, "PQ101", 0)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ((("shop", "api"),), " (so is Deployment shop/api)"),
        ((("shop", "api"), ("shop", "db")), " (so are 2 others)"),
    ],
    ids=["one", "several"],
)
def test_the_verdict_counts_the_others_of_the_same_fate(others, said):
    items = [replace(_CAUSED, effects=_EARLIER)]
    items += [
        replace(_CAUSED, namespace=namespace, name=name, line=13, check="PQ102", effects=_EARLIER)
        for namespace, name in others
    ]
    hidden = replace(NOTE, name="noted", effects=_EARLIER)
    found = verdict([*items, hidden, SUPPRESSED])
    assert found is not None
    assert found.text == f"Deployment shop/web is evicted before shop/db {_SHORT}{said}{_SO}"
    assert (found.fate, found.others) == (Fate.EARLIER, len(others))


def test_the_worst_of_equal_severity_is_what_is_not_created_then_what_dies_first():
    harms = [
        Consequence(Effect.NOT_CREATED),
        Consequence(Effect.ORDER, _LOW, evicted_before="shop/0"),
        Consequence(Effect.NODE),
        Consequence(Effect.STANDING, replace(_LOW, priority=9)),
        Consequence(Effect.STANDING, _LOW),
    ]
    items = [replace(PLAIN, name="0", effects=each) for each in harms]
    assert sorted(items, key=badness, reverse=True) == items[::-1]
    assert len({badness(item) for item in items}) == len(items)


def test_texts_of_the_input_do_not_talk_to_the_terminal():
    assert not [line for line in table(REPORT, Style()) if not line.isprintable()]


def test_the_table_stays_within_the_terminal():
    lines = list(table(REPORT, Style(width=60), verbose=True))
    assert max(len(line) for line in lines if " " in line.strip()) <= 60
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(table(REPORT, Style(), verbose=True)).split())


# ---- github ------------------------------------------------------------------------------------------------------

_COMMAND = re.compile(r"::(error|warning|notice) ([^\n]*?)::([^\n\r]*)")


def parse_command(line: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as a runner does."""
    matched = _COMMAND.fullmatch(line)
    assert matched is not None, line
    properties = dict(part.split("=", 1) for part in matched[2].split(","))
    return matched[1], {name: _unescaped(value) for name, value in properties.items()}, _unescaped(matched[3])


def _unescaped(text: str) -> str:
    for escaped, plain in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(escaped, plain)
    return text


def test_each_open_finding_is_a_command():
    commands = [parse_command(line) for line in github(REPORT, verbose=True)]
    assert [command for command, _, _ in commands] == ["warning", "notice", "error"]
    _, properties, message = commands[0]
    assert properties == {
        "file": "apps/web.yaml",
        "line": "12",
        "col": "9",
        "title": "PQ101 accidental-burstable: One container keeps the pod from being Guaranteed",
    }
    assert message.splitlines()[0] == "Deployment shop/web, container proxy: proxy has no cpu limit"


@given(st.text())
def test_escapes_come_back_and_end_nothing(text: str):
    assert _unescaped(escape_data(text)) == text
    assert _unescaped(escape_property(text)) == text
    assert not set(escape_property(text)) & set(":,\n\r")


# ---- junit -------------------------------------------------------------------------------------------------------


def test_junit_has_a_suite_for_each_file_and_a_case_for_each_check_of_an_object():
    root = ET.fromstring(junit(REPORT, CHECKED))  # noqa: S314 - our own
    suites = root.findall("testsuite")
    assert root.tag == "testsuites"
    assert suites[0].get("name") == "apps/web.yaml"
    cases = [(case.get("classname"), case.get("name")) for case in suites[0]]
    assert cases == [
        ("Deployment shop/web", "PQ101 accidental-burstable"),
        ("Deployment shop/web", "PQ108 no-ephemeral-storage-limit"),
        ("Deployment shop/known", "PQ101 accidental-burstable"),
        ("Node node-1", "no findings"),
    ]


def test_junit_fails_from_the_severity_of_the_gate_on():
    root = ET.fromstring(junit(REPORT, CHECKED))  # noqa: S314 - our own
    outcome = {
        (case.get("classname"), case.get("name", "").split()[0]): [child.tag for child in case]
        for case in root.iter("testcase")
    }
    assert outcome["Deployment shop/web", "PQ101"] == ["failure"]
    assert outcome["Deployment shop/web", "PQ108"] == ["system-out"]
    assert outcome["Deployment shop/known", "PQ101"] == ["skipped"]
    assert outcome["Node node-1", "no"] == []


def test_junit_holds_every_text_that_xml_can_hold():
    root = ET.fromstring(junit(REPORT, CHECKED))  # noqa: S314 - our own
    failure = next(failure for failure in root.iter("failure") if failure.get("type") == "error")
    shown = NASTY.replace("\x00", "\N{REPLACEMENT CHARACTER}").replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert shown.replace("\r\n", "\n") in (failure.text or "")


# ---- sarif -------------------------------------------------------------------------------------------------------

FIXES = ((Replacement((12, 1), (13, 1), "x: 1\n"), Replacement((20, 1), (20, 1), "y: 2\n")), (), (), (), ())


def as_json(value: object) -> dict[str, object]:
    """Return what a reader of the JSON gets."""
    decoded = msgspec.json.decode(msgspec.json.encode(value))
    assert isinstance(decoded, dict)
    return decoded


@pytest.mark.parametrize(
    "log",
    [
        sarif(REPORT, "0.1.0"),
        sarif(REPORT, "0.1.0", fixes=FIXES),
        sarif(EMPTY, "0.1.0"),
        sarif(EMPTY, "0.1.0", problems=[Problem("a b.yaml", 0, 0, Severity.ERROR, "", "gone", "")]),
        sarif(EMPTY, "0.1.0", problems=[Problem("-", 3, 4, Severity.WARNING, "kind", "odd", "")]),
    ],
    ids=["findings", "fixes", "none", "unreadable file", "warning"],
)
def test_sarif_keeps_to_the_standard(log):
    assert problems(as_json(log)) == []


def _location(log):
    return log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]


SPOILT = {
    "no version": lambda log: log.pop("version"),
    "no tool": lambda log: log["runs"][0].pop("tool"),
    "no message": lambda log: log["runs"][0]["results"][0].pop("message"),
    "no such level": lambda log: log["runs"][0]["results"][0].update(level="warn"),
    "another rule": lambda log: log["runs"][0]["results"][0].update(ruleIndex=1),
    "line zero": lambda log: _location(log)["region"].update(startLine=0),
    "no uri": lambda log: _location(log)["artifactLocation"].update(uri="a b"),
    "unknown property": lambda log: log["runs"][0].update(surprise=1),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_what_breaks_the_standard_is_noticed(spoil):
    log = as_json(sarif(REPORT, "0.1.0"))
    spoil(log)
    assert problems(log)


def test_every_check_is_a_rule_with_help():
    rules = as_json(sarif(EMPTY, "0.1.0"))["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CHECKS)
    assert all(rule["help"]["text"] and rule["help"]["markdown"] for rule in rules)


def test_a_result_has_level_places_fingerprint_and_suppressions():
    results = as_json(sarif(REPORT, "0.1.0", fixes=FIXES))["runs"][0]["results"]
    assert [result["level"] for result in results] == ["warning", "note", "warning", "warning", "error"]
    first, suppressed, known = results[0], results[2], results[3]
    location = first["locations"][0]
    assert location["physicalLocation"]["region"] == {"startLine": PLAIN.line, "startColumn": PLAIN.column}
    assert location["logicalLocations"][0]["fullyQualifiedName"] == f"Deployment/shop/web#{PLAIN.path}"
    assert first["partialFingerprints"] == {"podqos/v1": PLAIN.fingerprint}
    assert "suppressions" not in first
    assert suppressed["suppressions"] == [{"kind": "inSource", "justification": SUPPRESSED.suppression.reason}]
    assert known["suppressions"] == [{"kind": "external"}]
    assert [len(result.get("fixes", ())) for result in results] == [1, 0, 0, 0, 0]


def test_problems_of_the_input_are_notifications():
    problem = Problem("a.yaml", 3, 4, Severity.ERROR, "spec", "unknown", "")
    invocation = as_json(sarif(EMPTY, "0.1.0", problems=[problem]))["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"] == {"text": "unknown"}


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("a/b.yaml", "a/b.yaml"),
        ("./a.yaml", "a.yaml"),
        ("-", "stdin"),
        ("a b%.yaml", "a%20b%25.yaml"),
        ("/x", "file:///x"),
    ],
)
def test_a_file_is_a_uri_reference(path: str, written: str):
    assert uri(path) == written


@given(st.text(min_size=1).filter(lambda text: not text.startswith(("/", "./", "-"))))
def test_a_uri_leads_back_to_its_file(path: str):
    assert unquote(uri(path)) == path


# ---- replacements ------------------------------------------------------------------------------------------------


def replaced(text: str, replacements: tuple[Replacement, ...]) -> str:
    """Replace regions of a text, as a reader of SARIF does."""
    starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]

    def offset(position: tuple[int, int]) -> int:
        line, column = position
        return starts[line - 1] + column - 1

    for replacement in reversed(replacements):
        text = text[: offset(replacement.start)] + replacement.text + text[offset(replacement.end) :]
    return text


_LINES = st.lists(st.sampled_from(("a: 1", "b: 2", "  c: é", "", "d\r")), max_size=8)
_TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, _LINES, st.sampled_from(("", "\n")))


@given(_TEXTS, _TEXTS)
def test_replacements_make_one_text_of_the_other(before: str, after: str):
    replacements = line_replacements(before.encode(), after.encode())
    assert replaced(before, replacements) == after
    assert all(first.end <= second.start for first, second in pairwise(replacements))


# ---- words -----------------------------------------------------------------------------------------------------------

ALL = [pytest.param(each, id=each.id) for each in CHECKS.values()]


def test_every_kind_of_fact_is_in_the_schema():
    assert set(get_args(Facts)) == set(Fact.__subclasses__())


def test_every_choice_has_words():
    assert all(Patch.choose(choice).text for choice in Choice)


@pytest.mark.parametrize("each", ALL)
def test_the_words_of_an_example_are_whole_sentences_without_their_stop(each):
    (finding,) = check_example(each)

    for text in (finding.facts.sentence(finding.container or ""), finding.patch.text):
        assert text
        assert not re.search(r"None|\{|  |<", text.replace("{medium", ""))
        assert not text.endswith(".")
    assert "None" not in consequence(finding.consequence, finding.facts)


@pytest.mark.parametrize(
    ("check_id", "reason", "patch"),
    [
        (
            "PQ101",
            "envoy-sidecar has no cpu limit and no memory limit, unlike article-service",
            "spec.containers[1].resources.limits.cpu: 100m\nspec.containers[1].resources.limits.memory: 128Mi",
        ),
        (
            "PQ105",
            "web may use 8Gi of memory, 32.0× the 256Mi it requests (at most 4×)",
            "spec.containers[0].resources.requests.memory: 2Gi (was 256Mi)",
        ),
        (
            "PQ204",
            "the default memory limit can come from small 512Mi or team 2Gi",
            "choose which LimitRange sets the default: small or team (spec.limits)",
        ),
        (
            "PQ404",
            (
                "at 50Mi/s the kernel kills before the kubelet evicts in 80% of cases (memory.available 100Mi, checked "
                "every 10 s); with 500Mi the kubelet always evicts first, with 825Mi even if the system uses its "
                "whole reservation"
            ),
            "evictionHard[memory.available]: 825Mi (was 100Mi)",
        ),
        ("PQ116", "web has a cpu limit of zero", "remove spec.containers[0].resources.limits.cpu"),
        ("PQ408", "enforceNodeAllocatable does not include pods", "enforceNodeAllocatable: [pods] (was none)"),
        (
            "PQ502",
            "limits add up to 12Gi of memory, 1.50× the 8Gi allocatable on the node (budget 1.2×); largest: web",
            "choose whose limits to lower, or add nodes",
        ),
    ],
)
def test_what_was_found_and_what_to_write(check_id, reason, patch):
    (finding,) = check_example(CHECKS[check_id])

    assert finding.facts.sentence(finding.container or "") == reason
    assert finding.patch.text == patch


def test_what_follows_alone_and_beside_others():
    alone = check_example(CHECKS["PQ101"])[0]
    batch = examples.pod(examples.container("web", *examples.USUAL), name="batch", spec="  priority: 7\n")
    beside = check_text(CHECKS["PQ101"].example.text + "---\n" + batch)[0]

    place = (
        "Burstable, oom_score_adj 999 (envoy-sidecar), evicted once it uses more than it requests; "
        "once fixed, Guaranteed, oom_score_adj -997"
    )
    assert consequence(alone.consequence, alone.facts) == place
    assert consequence(beside.consequence, beside.facts) == (
        f"because of this, the kubelet evicts it before batch when every pod is at its memory limit; {place}"
    )
