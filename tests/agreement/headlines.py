"""What a command says first, held against the figures it prints below.

To add a command: a function here that raises ``AssertionError``, and its entry in ``HEADLINES``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from agreement.asking import Asking
from agreement.printed import rounded, table
from agreement.questions.growth import shows_timeline, simulate
from agreement.questions.pods import CLASSES, check, cpu, drift, prints_blast
from agreement.questions.room import place, thresholds

_NUMBERS = {"no": 0, "No": 0, "one": 1}


def _number(text: str) -> int:
    return _NUMBERS[text] if text in _NUMBERS else int(text.replace(",", ""))


def _sum(rows: list[dict[str, str]], column: str) -> int:
    return sum(int(row[column]) for row in rows if row[column] not in {"", "–"})


def _place(asking: Asking) -> None:
    text = asking.text(*place(asking))
    found = re.match(r"(\d+) of (\d+) pods? (?:is|are) placed on (\d+) nodes?", text)
    assert found, text.partition("\n")[0]
    placed, pods, nodes = map(int, found.groups())
    rows = [row for row in table(text, "NODE", "PODS") if row["NODE"]]
    assert nodes == len(rows)
    assert placed == sum(int(row["PODS"].partition("/")[0]) for row in rows)
    assert pods == _sum(table(text, "NAMESPACE", "WORKLOAD", "PODS"), "PODS")


def _simulate(asking: Asking) -> None:
    if not shows_timeline(asking.setting):
        return
    text = asking.text(*simulate(asking, 0))
    rows = table(text, "WORKLOAD", "CLASS")
    found = re.search(r"^(\S+) OOM kills?, (\S+) evictions?;", text, re.MULTILINE)
    assert found, text.splitlines()[:2]
    killed, evicted = map(_number, found.groups())
    assert killed == _sum(rows, "OOM KILLS") == len(re.findall(r"◆ .* OOM-killed", text))
    assert evicted == _sum(rows, "EVICTED") == len(re.findall(r"● .* evicted by the kubelet", text))
    unaffected = re.search(r"(\d+) of (\d+) pods? unaffected", text)
    if unaffected:
        shares = [row["UNAFFECTED"].split("/") for row in rows]
        assert int(unaffected[1]) == sum(int(one) for one, _ in shares)
        assert int(unaffected[2]) == sum(int(every) for _, every in shares)


def _blast(asking: Asking) -> None:
    if not prints_blast(asking.setting):
        return
    text = asking.text("blast", *asking.node)
    if text.startswith("No pod is left to leak."):
        assert {each["pod"] for each in asking.json("blast", *asking.node)["evictedBefore"]} == {*asking.keys}
        return
    found = re.search(r"^(\d+) pods? on (\S+) nodes?", text, re.MULTILINE)
    assert found, text.partition("\n")[0]
    before = {each["pod"] for each in asking.json("blast", *asking.node)["evictedBefore"]}
    assert ("Evicted without any leak: " in text) is bool(before)
    left = [each for each in asking.keys if each not in before]
    matrix = table(text, "LEAKS") or [{"LEAKS": pod} for pod in left]
    assert int(found[1]) == len(matrix) == len(left)
    harmless = [row["LEAKS"] for row in matrix if not any(set(cell) & {"s", "f"} for cell in [*row.values()][1:])]
    some = re.match(r"(\d+) of (\d+) pods? takes? others down", text)
    if some:
        assert (int(some[1]), int(some[2])) == (len(matrix) - len(harmless), len(matrix))
    dangerous = {row["POD"] for row in table(text, "POD", "NODE", "CLASS")}
    assert dangerous.isdisjoint(harmless)


def _check(asking: Asking) -> None:
    text = asking.text(*check(asking))
    counted = {name.rstrip("s"): int(count) for count, name in re.findall(r"(\d+) (errors?|warnings?|infos?)\b", text)}
    items = asking.json(*check(asking))["items"]
    assert counted == Counter(each["severity"] for each in items) or not items
    verdict = asking.json(*check(asking))["verdict"]
    if verdict is not None:
        assert text.startswith(verdict["text"])


def _cpu(asking: Asking) -> None:
    text = asking.text(*cpu(asking))
    found = re.match(
        r"The pods want ([\d.,]+) cores? in total; (\S+) (?:is|are) available, ([\d.]+) (?:is|are) used", text
    )
    assert found, text.partition("\n")[0]
    rows = [row for row in table(text, "POD", "CLASS") if "/" in row["POD"]]
    for said, column in ((found[1], "WANTS"), (found[3], "GETS")):
        whole = rounded(said, 1)
        parts = [rounded(row[column], 1) for row in rows if row[column] not in {"–", ""}]
        assert sum(each.low for each in parts) <= whole.high
        assert whole.low <= sum(each.high for each in parts)


def _rank(asking: Asking) -> None:
    text = asking.text("rank", *asking.node, *asking.cgroup)
    found = re.search(
        r"^The orders disagree about (\d+) pairs? of pods(?:; (\d+) of them \(-v\))?:", text, re.MULTILINE
    )
    places = [int(row["#"]) for row in table(text, "#", "POD", "CLASS")]
    assert places == list(range(1, len(places) + 1))
    report = asking.json("rank", *asking.node, *asking.cgroup)
    evicted = [place["pod"] for place in report["evictionOrder"] if not place["spared"]]
    killed = [place["pod"] for place in report["killOrder"]]
    said = text.partition("\n\n")[0].replace("\n", " ")
    assert said.startswith(f"{evicted[0]} is evicted first" if evicted else "No pod can be evicted"), said
    assert not killed or "OOM-killed first" in said
    assert not killed or killed[0] in said
    assert int(found[1] if found else 0) == report["reversedPairs"]
    if found:
        assert int(found[2] or found[1]) == text[found.end() :].count("\n  the kubelet evicts ")


def _drift(asking: Asking) -> None:
    text = asking.text(*drift(asking))
    statuses = Counter(row["WORKLOAD"].split()[2] for row in table(text, "WORKLOAD"))
    head = text.partition("\n")[0]
    assert {name: int(count) for count, name in re.findall(r"(\d+) (\w+)(?=[,.])", head.partition(": ")[2])} == statuses


def _overview(asking: Asking) -> None:
    text = asking.text("overview", *asking.snapshot)
    found = re.search(r"^.*?: (\d+) nodes?, (\d+) pods? \((.*?)\)", text, re.MULTILINE)
    assert found, text.partition("\n")[0]
    nodes = table(text, "NODE", "HEADROOM")
    assert int(found[1]) == len(nodes)
    least = re.match(r"Least headroom: (\S+), (\S+)(?: \(\w+\))? before eviction\.", text)
    assert least is None or (least[1], least[2]) == (nodes[0]["NODE"], nodes[0]["HEADROOM"].split()[0])
    assert int(found[2]) == sum(map(int, re.findall(rf"(\d+) (?:{CLASSES})", found[3])))
    # With the usage that was measured, which the table is about; otherwise the sentence has to say what it assumes.
    first = re.search(r"^Pod (\S+) is ([\w ]+) first when memory runs short,", text, re.MULTILINE)
    if first:
        (row,) = table(text, "NODE", "HEADROOM")
        for way, column in (("evicted", "EVICTED NEXT"), ("killed", "KILLED NEXT")):
            assert way not in first[2] or row[column] == first[1], first[0]


def _thresholds(asking: Asking) -> None:
    text, report = asking.text(*thresholds(asking)), asking.json(*thresholds(asking))
    assert ("No warnings." in text) is (not report["warnings"])


def _forecast(asking: Asking) -> None:
    text = asking.text("forecast", *asking.node, *asking.cgroup, *asking.growth).partition("How likely")[0]
    shares = [rounded(each, 1) for each in re.findall(r"^ +([\d.]+) %  the ", text, re.MULTILINE)]
    assert sum(each.low for each in shares) <= 100 <= sum(each.high for each in shares), text


HEADLINES: dict[str, Callable[[Asking], None]] = {
    "place": _place,
    "simulate": _simulate,
    "blast": _blast,
    "check": _check,
    "cpu": _cpu,
    "rank": _rank,
    "drift": _drift,
    "overview": _overview,
    "thresholds": _thresholds,
    "forecast": _forecast,
}
