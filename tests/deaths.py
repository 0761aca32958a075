"""Deaths of an answer of ``podqos autopsy`` by their kind, with their figures beside what all deaths have."""

from __future__ import annotations

import json


def parsed(text: str) -> dict:
    """Return an answer in JSON with lists of each kind of death."""
    answer = json.loads(text)
    deaths = [
        death
        | (death["oom"] or {})
        | (death["eviction"] or {})
        | {"reason": death["reason"], "causes": death["causes"], "cause": death["cause"]}
        for death in answer["deaths"]
    ]
    for death, own in zip(deaths, answer["deaths"], strict=True):
        death.update(
            at=own["when"],
            host=own["where"],
            node=own["where"],
            followsRule=own["followsRule"],
            tasks=own["candidates"],
        )
        death["evictionCause"] = (own["eviction"] or {}).get("cause")
    statuses = []
    for place, death in enumerate(answer["deaths"]):
        if death["status"]:
            statuses.append(death["status"] | {"death": place, "isReported": death["reason"] != "NoReport"})
    return answer | {
        "kills": [death for death in deaths if death["manner"] == "OOMKill" and death["oom"]],
        "unreported": [death for death in deaths if death["reason"] == "NoReport"],
        "evictions": [death | {"cause": death["evictionCause"]} for death in deaths if death["manner"] == "Eviction"],
        "userspaceKills": [death["program"] for death in deaths if death["program"]],
        "terminations": statuses,
        "read": answer["counted"],
    }
