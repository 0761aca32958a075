"""The answer card of the page: who is first, who acts first at which growth, and what its fix leads to."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from agreement.asking import Asking
from agreement.question import Answers, Question, Reader
from agreement.questions.growth import OUTCOMES, SHARE
from agreement.questions.pods import has_cgroup_v2
from agreement.settings import NODE, key, running
from podqos.manifest.encoding import json_line

EVICTED, KILLED, ACTS = "evicted first", "OOM-killed first", "acts first however slowly memory grows"
UP_TO, FROM = "the growth up to which the kubelet is first", "the growth from which the kernel is first"


def card(asking: Asking) -> Any:
    """Return the card of the node."""
    return json.loads(json_line(asking.page.answer(NODE)))


# ---- who is first ----------------------------------------------------------------------------------------------------


def _firsts(node: Any) -> Answers:
    evicted, killed = node["nextEvicted"], node["nextKilled"]
    return {EVICTED: evicted and evicted["pod"], KILLED: killed and killed["pod"], ACTS: node["firstBy"]}


def _ranked(asking: Asking, *words: str) -> Answers:
    report = asking.json("rank", *words)
    evicted = next((each["pod"] for each in report["evictionOrder"] if each["spared"] is None), None)
    killed = next((each["pod"] for each in report["killOrder"]), None)
    return {EVICTED: evicted, KILLED: killed, ACTS: "kernel" if report["node"]["kernelFirst"] else "kubelet"}


def _overview(asking: Asking) -> Answers:
    (node,) = asking.json("overview", *asking.snapshot)["nodes"]
    return _firsts(node)


def _next_death(asking: Asking) -> Answers:
    """Return who dies next on the only node: by whom, and who that is."""
    found = next(iter(asking.cluster["nextDeaths"]), None)
    if found is None:
        return {}
    return {ACTS: found["by"], KILLED if found["by"] == "kernel" else EVICTED: found["pod"]}


FIRSTS = Question(
    "who is first, on the card",
    (
        Reader("rank", lambda asking: _ranked(asking, *asking.node, *asking.cgroup)),
        Reader("rank --snapshot", lambda asking: _ranked(asking, *asking.snapshot), when=has_cgroup_v2),
        Reader(
            "overview",
            lambda asking: _firsts(asking.json("overview", *asking.snapshot)["nodes"][0]),
            when=has_cgroup_v2,
        ),
        Reader("ui", lambda asking: _firsts(asking.cluster["nodes"][0]), when=has_cgroup_v2),
        Reader("ui next deaths", _next_death, when=has_cgroup_v2),
    ),
)


# ---- who acts first --------------------------------------------------------------------------------------------------


def _forecast(asking: Asking, growing: str, *rates: int) -> list[Any]:
    words = [word for rate in rates for word in ("--rate", f"{rate}/s")]
    found: list[Any] = asking.json("forecast", *asking.snapshot, "--growing", growing, *words)["growths"]
    return found


def _forecast_of_card(asking: Asking) -> Answers:
    """Return what the forecast says of the growth that the card is about; rates where it says that they turn it."""
    growth = card(asking)["growth"] if has_cgroup_v2(asking.setting) else None
    if growth is None:
        return {}
    turning, growing = growth["turning"], growth["growing"]
    (at_rate,) = _forecast(asking, growing, growth["rateBytesPerSecond"])
    happens = frozenset((each["by"], each["pod"]) for each in at_rate["outcomes"])
    found: dict[object, object] = {OUTCOMES: happens, SHARE: at_rate["kubeletFirst"]}
    for about, rate, before, beyond in (
        (UP_TO, turning["kubeletUpTo"], lambda share: share == 1, lambda share: share < 1),
        (FROM, turning["kernelFrom"] and turning["kernelFrom"] - 1, lambda share: share > 0, lambda share: share == 0),
    ):
        if rate and not turning["isAlwaysKubelet"]:
            shares = [each["kubeletFirst"] for each in _forecast(asking, growing, rate, rate + 1)]
            found[about] = rate if before(shares[0]) and beyond(shares[1]) else f"{shares} from {rate} on"
    return found


def _growth_of_card(asking: Asking) -> Answers:
    growth = card(asking)["growth"]
    if growth is None:
        return {}
    turning = growth["turning"]
    happens = frozenset((each["by"], each["pod"]) for each in growth["ends"])
    found: dict[object, object] = {OUTCOMES: happens, SHARE: growth["kubeletFirst"]}
    if not turning["isAlwaysKubelet"]:
        rates = {UP_TO: turning["kubeletUpTo"], FROM: turning["kernelFrom"] and turning["kernelFrom"] - 1}
        found |= {about: rate for about, rate in rates.items() if rate}
    return found


ACTOR = Question(
    "who acts first, on the card",
    (Reader("forecast", _forecast_of_card), Reader("ui", _growth_of_card, when=has_cgroup_v2)),
)


# ---- the fix ---------------------------------------------------------------------------------------------------------


def _fix(asking: Asking) -> Any:
    """Return the fix of the card, if it writes amounts."""
    found = card(asking)["fix"] if has_cgroup_v2(asking.setting) and asking.setting.is_measured else None
    return None if found is None or any(edit["priority"] is not None for edit in found["edit"]["tries"]) else found


def _ranked_with_fix(asking: Asking) -> Answers:
    """Return where the pod stands once the fix is written into its manifest; it is first no more."""
    fix = _fix(asking)
    if fix is None:
        return {}
    made = deepcopy(asking.setting.pods)
    (pod,) = (each for each in made if key(each) == fix["pod"])
    for edit in fix["edit"]["tries"]:
        own = pod["spec"] if not edit["container"] else next(c for c in running(pod) if c["name"] == edit["container"])
        for side in ("requests", "limits"):
            own.setdefault("resources", {}).setdefault(side, {}).update(edit[side])
    path = asking.directory / "fixed.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    words = [word if word != asking.file("pods.yaml") else str(path) for word in asking.node]
    report = asking.json("rank", *words, "-f", asking.file("none.yaml"), *asking.cgroup)
    place = next(each for each in report["evictionOrder"] if each["pod"] == fix["pod"])
    where = place["place"] if fix["by"] == "kubelet" else place["kernelPlace"]
    assert where != 1 or place["spared"], f"{fix['pod']} is still first with {fix['copied']}"
    return {EVICTED: place["place"], KILLED: place["kernelPlace"]}


def _after_fix(asking: Asking) -> Answers:
    fix = _fix(asking)
    return (
        {}
        if fix is None
        else {EVICTED: fix["edit"]["after"]["evictionPlace"], KILLED: fix["edit"]["after"]["killPlace"]}
    )


FIX = Question(
    "where a pod stands with the fix of the card",
    (Reader("rank", _ranked_with_fix), Reader("ui", _after_fix, when=has_cgroup_v2)),
)
