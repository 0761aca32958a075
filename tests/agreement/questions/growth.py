"""A container grows: who acts first, on which pod, and how far off that is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from agreement.asking import Asking
from agreement.printed import Among, Every, Rounded, amount, rounded, table
from agreement.question import Answers, Question, Reader
from agreement.questions.pods import check, has_cgroup_v2
from agreement.settings import MI, NODE, PHASE_SECONDS, Setting
from podqos.manifest.encoding import json_line
from podqos.page.what_if import ForecastRequest

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
    seconds = asking.setting.begins_seconds + growth(asking)["outOfMemoryAfterSeconds"]
    return f"{int(seconds * 1000) + 1000}ms"


def _first(journal: list[Any]) -> tuple[str, str] | None:
    return next(((each["by"], each["pod"]) for each in journal if each["kind"] in {"OOMKilled", "Evicted"}), None)


def simulate(asking: Asking, phase: int) -> tuple[str, ...]:
    """Return how the growth is simulated, until it has ended."""
    return "simulate", asking.file(f"phase-{phase}.yaml"), "--until", until(asking)


def _simulated(asking: Asking) -> Answers:
    return _among([_first(asking.journal(*simulate(asking, phase))) for phase in range(len(PHASE_SECONDS))])


def _among(firsts: list[tuple[str, str] | None]) -> Answers:
    by_kubelet = sum(first is not None and first[0] == "kubelet" for first in firsts) / len(firsts)
    low, high = (
        (0.0 if by_kubelet < 1 else 1 / len(firsts)),
        (1.0 if by_kubelet > 0 else 1 - 1 / len(firsts)),
    )
    return {OUTCOMES: Every(frozenset(firsts)), SHARE: Rounded(low, high)}


def shows_timeline(setting: Setting) -> bool:
    """Whether to have a timeline printed: it takes longer than everything else together."""
    return setting.seed % 8 == 0


def _simulated_text(asking: Asking) -> Answers:
    if not shows_timeline(asking.setting):
        return {}
    first = _first_text(asking, asking.text(*simulate(asking, 0)))
    return {OUTCOMES: Every(frozenset([first]))}


_DEATH = re.compile(r"[◆●] (\S+?)(?: \(\S+\))? (OOM-killed|evicted by the kubelet)")


def _first_text(asking: Asking, text: str) -> tuple[str, str] | None:
    """Return the first death of the timeline, which leaves namespaces out."""
    found = _DEATH.search(text)
    if found is None:
        return None
    (pod,) = (each for each in asking.keys if each.partition("/")[2] == found[1])
    return "kernel" if found[2] == "OOM-killed" else "kubelet", pod


def _sweep(asking: Asking) -> tuple[str, ...]:
    phases = ",".join(f"{seconds}s" for seconds in PHASE_SECONDS)
    varied = "--vary", f"phase={phases}", "--vary", f"spec.duration={until(asking)}"
    return "simulate", asking.file("phase-0.yaml"), *varied


def _swept(asking: Asking) -> Answers:
    found: list[tuple[str, str] | None] = []
    for each in asking.json(*_sweep(asking))["combinations"]:
        first = next(iter(each["firstVictims"]), None)
        found.append(first and ("kubelet" if each["kubeletFirst"] else "kernel", first))
    return _among(found)


def _swept_text(asking: Asking) -> Answers:
    rows = table(asking.text(*_sweep(asking)), "phase", "spec.duration", "RUNS", "KERNEL")
    victims = [(row["KUBELET"], row["FIRST VICTIM"].split()[0]) for row in rows]
    return _among([("kubelet" if share == "100 %" else "kernel", pod) for share, pod in victims])


def _page_forecast(asking: Asking) -> Any:
    request = ForecastRequest(":".join(asking.setting.growing), NODE, rate_bytes_per_second=asking.setting.rate)
    return json.loads(json_line(asking.page.forecast(request)))


def _of_growth(read: Callable[[Asking], Answers]) -> Callable[[Asking], Answers]:
    """Read a simulation, unless its kubelet acts before anything grows: of that the forecast says nothing."""

    def found(asking: Asking) -> Answers:
        is_met = any(not each["crossedAfterSeconds"] for each in growth(asking)["thresholds"])
        return {} if is_met and asking.setting.begins_seconds else read(asking)

    return found


FIRST_ACTOR = Question(
    "who acts first, and on which pod",
    (
        Reader(
            "forecast",
            lambda asking: _outcomes(growth(asking)),
            lambda asking: _outcomes_text(asking.text(*_forecast(asking))),
        ),
        Reader(
            "forecast --snapshot",
            lambda asking: _outcomes(asking.json(*_forecast_snapshot(asking))["growths"][0]),
            lambda asking: _outcomes_text(asking.text(*_forecast_snapshot(asking))),
            has_cgroup_v2,
        ),
        Reader("simulate", _of_growth(_simulated), _of_growth(_simulated_text), lambda setting: setting.is_measured),
        Reader(
            "simulate --vary",
            _of_growth(_swept),
            _of_growth(_swept_text),
            lambda setting: setting.is_measured and setting.seed % 2 == 0,
        ),
        Reader(
            "ui",
            lambda asking: _outcomes(_page_forecast(asking)["report"]["growths"][0]),
            when=has_cgroup_v2,
        ),
    ),
)


# ---- several that grow at once ---------------------------------------------------------------------------------------

ORDERS = "orders"


def _several(asking: Asking) -> tuple[str, ...]:
    growing = (word for each in asking.setting.several for word in ("--growing", ":".join(each)))
    return "forecast", *asking.node, *asking.cgroup, *growing, "--rate", f"{asking.setting.rate}/s"


def _grows_alone(setting: Setting) -> bool:
    return len(setting.several) < 2 or setting.seed % 2 == 1


def _forecast_several(asking: Asking) -> Answers:
    if _grows_alone(asking.setting):
        return {}
    (found,) = asking.json(*_several(asking))["together"]
    orders = (each["deaths"] for each in found["orders"])
    return {ORDERS: frozenset(tuple((each["by"], each["pod"]) for each in order) for order in orders)}


def _ends_seconds(asking: Asking) -> float:
    (found,) = asking.json(*_several(asking))["together"]
    return max((each["latestSeconds"] for order in found["orders"] for each in order["deaths"]), default=0.0)


def _simulated_several(asking: Asking) -> Answers:
    setting = asking.setting
    if _grows_alone(setting):
        return {}
    until = f"{int((setting.begins_seconds + _ends_seconds(asking)) * 1000) + 1000}ms"
    orders = set()
    for phase in range(len(PHASE_SECONDS)):
        journal = asking.journal("simulate", asking.file(f"several-{phase}.yaml"), "--until", until)
        orders.add(_order([each for each in journal if each["kind"] in {"OOMKilled", "Evicted"}], setting.several))
    return {ORDERS: Every(frozenset(orders))}


def _order(deaths: list[Any], growing: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return who dies first, second and so on, each once, until all that grow have."""
    found: dict[tuple[str, str | None], tuple[str, str]] = {}
    left = {*growing}
    for each in deaths:
        pod, container = each["pod"], each.get("container")
        if container or all(pod != known for known, _ in found):
            found.setdefault((pod, container), (each["by"], pod))
        left = {grows for grows in left if grows[0] != pod or container not in {None, grows[1]}}
        if not left:
            break
    return (*found.values(),)


SEVERAL = Question(
    "who dies in which order when several grow",
    (
        Reader("forecast", _forecast_several),
        Reader("simulate", _of_growth(_simulated_several), when=lambda setting: setting.is_measured),
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


# ---- what the kubelet's settings are enough for ----------------------------------------------------------------------

SURE, SHARE_AT_50, NEEDED = "the growth it is sure to win", "how often it wins at 50Mi/s", "the threshold it needs"
_RATE = 50 * MI


def _plain(asking: Asking, rate: int, system_bytes: int) -> Any:
    """Return what the forecast says of a node with nothing on it but a pod that grows."""
    used = ("--system-memory", str(system_bytes)) if system_bytes else ()
    node = "-f", asking.file("plain.yaml"), "--usage", asking.file("plain.csv"), *asking.memory, *asking.kubelet
    words = "--growing", "plain", "--rate", f"{rate}/s", "--win", "100"
    (found,) = asking.json("forecast", *node, *used, *asking.version, *words)["growths"]
    return found


def _is_met(asking: Asking, system_bytes: int) -> bool:
    """Whether a threshold is met before anything grows: then the kubelet acts at once, however fast it grows."""
    return any(not each["crossedAfterSeconds"] for each in _plain(asking, _RATE, system_bytes)["thresholds"])


def _thresholds(asking: Asking) -> tuple[str, ...]:
    system = asking.setting.system_bytes
    used = ("--system-memory", str(system)) if system else ()
    return "thresholds", "-f", asking.file("kubelet.yaml"), *asking.memory, *used, *asking.version


def _sure(asking: Asking) -> Answers:
    return {SURE: asking.json(*_thresholds(asking))["sureGrowth"]["bytesPerSecond"]}


def _sure_text(asking: Asking) -> Answers:
    """Return the growth that one of the thresholds is enough for; none is printed where none is."""
    lines = re.findall(r"^ +([\d.]+\w*)/s  (?!with the reserved)", asking.text(*_thresholds(asking)), re.MULTILINE)
    return {SURE: max(map(amount, lines), key=attrgetter("high"))} if lines else {}


def _wins_until(asking: Asking) -> Answers:
    """Return the growth that thresholds calls sure, where the forecast wins at it and not beyond."""
    system = asking.setting.system_bytes
    if _is_met(asking, system):
        return {}
    sure = asking.json(*_thresholds(asking))["sureGrowth"]["bytesPerSecond"]
    at = 1 if sure is None else _plain(asking, sure, system)["kubeletFirst"]
    beyond = _plain(asking, (sure or 0) + 1, system)["kubeletFirst"]
    return {SURE: sure if at == 1 and beyond < 1 else f"kubelet first {at} at {sure}, {beyond} at one byte more"}


SURE_GROWTH = Question(
    "how fast memory may grow for the kubelet to be sure to act first",
    (
        Reader("thresholds", _sure, _sure_text),
        Reader("forecast", _wins_until),
    ),
)


def _forecast_at_50(asking: Asking) -> Answers:
    if _is_met(asking, 0):
        return {}
    found = _plain(asking, _RATE, 0)
    return {SHARE_AT_50: found["kubeletFirst"], NEEDED: found["needed"] and found["needed"]["evictionHardBytes"]}


def _found_404(asking: Asking) -> Any:
    items = asking.json(*check(asking))["items"]
    return next((each for each in items if each["check"] == "PQ404"), None)


def _check_404(asking: Asking) -> Answers:
    if not _forecast_at_50(asking) or not asking.setting.kubelet.get("evictionHard", {"memory.available": ""}):
        return {}  # Without a threshold the kubelet does not watch memory at all, which is another finding.
    found = _found_404(asking)
    if found is None:
        return {SHARE_AT_50: 1}
    facts = found["facts"]
    share = facts["kubeletFirst"]
    return {SHARE_AT_50: Rounded(share - 1e-9, share + 1e-9), NEEDED: facts["neededBytes"]}


def _check_404_text(asking: Asking) -> Answers:
    # What a fix would lead to that is not offered is not so.
    text = "\n".join(line for line in asking.text(*check(asking)).splitlines() if "not offered" not in line)
    if "the kernel always kills before the kubelet evicts" in text:
        return {SHARE_AT_50: Rounded(-1e-9, 1e-9)} if _forecast_at_50(asking) else {}
    found = re.search(r"the kernel kills before the kubelet evicts in (\d+)% of cases", text)
    # Rounded, but never to 0 or 100: there, all is possible up to the next percent.
    kernel = int(found[1]) / 100 if found else 0
    return {SHARE_AT_50: Rounded(1 - kernel - 0.01, 1 - kernel + 0.01)} if found and _forecast_at_50(asking) else {}


THRESHOLD = Question(
    "which threshold the kubelet needs",
    (
        Reader("forecast", _forecast_at_50),
        Reader("check", _check_404, _check_404_text),
    ),
)
