"""The indexes of an Indexed Job, as its status writes them: ``0,2-4``.

Source: Kubernetes v1.36 pkg/controller/job/indexed_job_utils.go (orderedIntervals.String, parseIndexesFromString) and
success_policy.go (matchSuccessPolicy, matchSucceededIndexesRule).
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.model.jobs import SuccessPolicy


def as_text(indexes: Iterable[int]) -> str:
    """Return indexes as a Job's status writes them: two neighbours with a comma, more with a hyphen."""
    intervals: list[list[int]] = []
    for index in sorted(indexes):
        if intervals and intervals[-1][1] == index - 1:
            intervals[-1][1] = index
        else:
            intervals.append([index, index])
    return ",".join(
        str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}"
        for first, last in intervals
    )


def parsed(text: str, completions: int) -> frozenset[int]:
    """Return the indexes of a text, without those that a Job does not have; parts that are not numbers are skipped."""
    indexes: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            continue
        if int(first) >= completions:
            break
        indexes.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return frozenset(indexes)


def matching_rule(policy: SuccessPolicy | None, completions: int, succeeded: frozenset[int]) -> int | None:
    """Return the index of the first rule of a success policy that is met."""
    if policy is None or not succeeded:
        return None
    for index, rule in enumerate(policy.rules):
        if rule.succeeded_indexes is None:
            if rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count:
                return index
            continue
        required = parsed(rule.succeeded_indexes, completions)
        if not required:
            continue
        contained = len(required & succeeded)
        if contained == len(required) or (rule.succeeded_count is not None and contained >= rule.succeeded_count):
            return index
    return None
