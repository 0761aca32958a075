"""A container grows: who acts first, on which pod, and how far off that is."""

from __future__ import annotations

import json
import re
from typing import Any

from agreement.asking import Asking
from agreement.printed import Among, Every, Rounded, rounded
from agreement.question import Answers, Question, Reader
from agreement.questions.pods import has_cgroup_v2
from agreement.settings import NODE, PHASES, Setting
from podqos.report.page.forecast import ForecastRequest
from podqos.report.text.encoding import json_line

OUTCOMES, SHARE = "outcomes", "kubelet first"


def _forecast(asking: Asking) -> tuple[str, ...]:
    return "forecast", *asking.node, *asking.cgroup, *asking.growth


def _forecast_snapshot(asking: Asking) -> tuple[str, ...]:
    return "forecast", *asking.snapshot, *asking.growth


def growth(asking: Asking) -> Any:
    """Return what the forecast says of the growth."""
    (found,) = asking.json(*_forecast(asking))["growths"]
    return found


def _outcomes(found: Any) -> Answers:
    happens = frozenset((each["by"], each["pod"]) for each in found["outcomes"])
    return {OUTCOMES: happens, SHARE: found["kubeletFirst"]}


_OUTCOME = re.compile(r"^ +([\d.]+(?:e-\d+)?|<[\d.]+) %  the (kubelet evicts|kernel kills) (\S+) ", re.MULTILINE)


def _outcomes_text(text: str) -> Answers:
    found = [(share, verb.split()[0], pod) for share, verb, pod in _OUTCOME.findall(text.partition("How likely")[0])]
    by_kubelet = [rounded(share, 0.01) for share, by, _ in found if by == "kubelet"]
    low, high = sum(each.low for each in by_kubelet), sum(each.high for each in by_kubelet)
    return {OUTCOMES: frozenset((by, pod) for _, by, pod in found), SHARE: Rounded(low - 1e-9, high + 1e-9)}


def until(asking: Asking) -> str:
    """Return how long a simulation has to run for something to happen."""
    seconds = growth(asking)["outOfMemoryAfterSeconds"]
    return f"{int(seconds * 1000) + 1000}ms"


def _first(journal: list[Any]) -> tuple[str, str] | None:
    return next(((each["by"], each["pod"]) for each in journal if each["kind"] in {"OOMKilled", "Evicted"}), None)


def simulate(asking: Asking, phase: int) -> tuple[str, ...]:
    """Return how the growth is simulated, until it has ended."""
    return "simulate", asking.file(f"phase-{phase}.yaml"), "--until", until(asking)


def _simulated(asking: Asking) -> Answers:
    return _among([_first(asking.journal(*simulate(asking, phase))) for phase in range(PHASES)])


def _among(firsts: list[tuple[str, str] | None]) -> Answers:
    by_kubelet = sum(first is not None and first[0] == "kubelet" for first in firsts) / len(firsts)
    low, high = (
        (0.0 if by_kubelet < 1 else 1 / len(firsts)),
        (1.0 if by_kubelet > 0 else 1 - 1 / len(firsts)),
    )
    return {OUTCOMES: Every(frozenset(firsts)), SHARE: Rounded(low, high)}


def _simulated_text(asking: Asking) -> Answers:
    first = _first_text(asking, asking.text(*simulate(asking, 0)))
    return {OUTCOMES: Every(frozenset([first]))}


_DEATH = re.compile(r"[◆●] (\S+?)(?: \(\S+\))? (?:killed|evicted) by the (kernel|kubelet)")


def _first_text(asking: Asking, text: str) -> tuple[str, str] | None:
    """Return the first death of the timeline, which leaves namespaces out."""
    found = _DEATH.search(text)
    if found is None:
        return None
    (pod,) = (each for each in asking.keys if each.partition("/")[2] == found[1])
    return found[2], pod


def _page_forecast(asking: Asking) -> Any:
    request = ForecastRequest(":".join(asking.setting.growing), NODE, rate_bytes_per_second=asking.setting.rate)
    return json.loads(json_line(asking.page.forecast(request)))


FIRST_ACTOR = Question(
    "who acts first, and on which pod",
    (
        Reader("forecast", lambda asking: _outcomes(growth(asking)), lambda asking: _outcomes_text(asking.text(*_forecast(asking)))),
        Reader(
            "forecast --snapshot",
            lambda asking: _outcomes(asking.json(*_forecast_snapshot(asking))["growths"][0]),
            lambda asking: _outcomes_text(asking.text(*_forecast_snapshot(asking))),
            has_cgroup_v2,
        ),
        Reader("simulate", _simulated, _simulated_text, lambda setting: setting.is_measured),
        Reader(
            "ui",
            lambda asking: _outcomes(_page_forecast(asking)["report"]["growths"][0]),
            when=has_cgroup_v2,
        ),
    ),
)


# ---- a leak in every pod ---------------------------------------------------------------------------------------------


def _leaks(asking: Asking) -> list[Any]:
    """Return the leaks of some pods: to forecast all of them would take long."""
    leaks: list[Any] = asking.json("blast", *asking.node)["leaks"]
    return [each for each in leaks if each["pod"] == asking.setting.growing[0]]


def _about(leak: Any) -> str:
    return f"{leak['pod']}:{leak['container']} by {leak['rateBytesPerSecond']}"


def _forecast_leaks(asking: Asking) -> Answers:
    found: dict[object, object] = {}
    for leak in _leaks(asking):
        words = "--growing", f"{leak['pod']}:{leak['container']}", "--rate", f"{leak['rateBytesPerSecond']}/s"
        (one,) = asking.json("forecast", *asking.node, *words)["growths"]
        found[_about(leak)] = frozenset((each["by"], each["pod"]) for each in one["outcomes"])
    return found


def _blast(asking: Asking) -> Answers:
    before = {each["pod"] for each in asking.json("blast", *asking.node)["evictedBefore"]}
    found: dict[object, object] = {}
    for leak in _leaks(asking):
        deaths = [*leak["others"], *([leak["end"]] if leak["end"] else [])]
        first = min(deaths, key=lambda each: each["afterSeconds"], default=None)
        if not before:
            found[_about(leak)] = Among(first and (first["by"], first["pod"]))
    return found


LEAKS = Question(
    "who acts first on a leak",
    (
        Reader("forecast", lambda asking: _forecast_leaks(asking) if has_cgroup_v2(asking.setting) else {}),
        Reader("blast", _blast, when=lambda setting: has_cgroup_v2(setting) and setting.is_measured),
    ),
)


# ---- headroom --------------------------------------------------------------------------------------------------------

UNTIL_EVICTION = "until the kubelet evicts"


def _has_no_cache(setting: Setting) -> bool:
    """Whether nothing is reclaimed on the way: only then memory that is left is memory that can be used."""
    return has_cgroup_v2(setting) and not any(used.inactive_bytes for used in setting.usage.values())


def _room(setting: Setting) -> int | None:
    """Return how much the container may grow before its own limit, or its pod's, stops it."""
    return None


def _headroom(asking: Asking) -> Answers:
    setting = asking.setting
    hard = [each for each in growth(asking)["thresholds"] if each["type"] == "hard"]
    crossed = [each["crossedAfterSeconds"] for each in hard if each["crossedAfterSeconds"] is not None]
    # A threshold that is met already is crossed after no time: by how much is not said.
    if not _has_no_cache(setting) or not setting.is_measured or not crossed or min(crossed) <= 0:
        return {}
    return {UNTIL_EVICTION: min(crossed) * setting.rate}


def _near(found: object, setting: Setting) -> Answers:
    """Seconds are to the microsecond, so bytes are as exact as a microsecond's growth."""
    if not isinstance(found, (int, float)) or not _has_no_cache(setting):
        return {}
    return {UNTIL_EVICTION: Rounded(found - setting.rate / 1000, found + setting.rate / 1000)}
