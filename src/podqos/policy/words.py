"""A violation in words, as an API server would say it: for findings, which word their own facts, and for ``report``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podqos.amounts import listed, shown_ratio
from podqos.model.quantity import Quantity
from podqos.policy.budgets import OverBudget
from podqos.policy.violation import Amounts, Violation, Why

LONGEST = 900
"""Maximum length: an API server keeps no more of a policy's message."""


def message(violation: Violation) -> str:
    """Return the message of a violation: the rule, its own message, what is wrong."""
    head = f'policy "{violation.policy}", rule "{violation.rule}": '
    own = f"{_one_line(violation.message).rstrip('.: ')}: " if violation.message else ""
    return cut(f"{head}{own}{_one_line(sentence(violation, LONGEST - len(head) - len(own)))}")


def budget_message(over: OverBudget) -> str:
    """Return how far a budget is exceeded, and by which workloads."""
    where = f" in {over.budget.per.lower()} {over.group}" if over.group else ""
    largest = f"; most by {listed(over.largest)}" if over.largest else ""
    resource, side = over.budget.resource, over.side
    return cut(
        f'policy "{over.policy}", budget "{over.budget.name}": {side} of {resource}{where} add up to {over.total}, '
        f"{shown_ratio(over.ratio):.3g}× the {over.allocatable} allocatable, must be {float(over.allowed):g}× at most"
        f"{largest}"
    )


def _one_line(text: str) -> str:
    """Return a text that is safe in a log or an HTTP header: annotations may contain anything."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text that is not too long."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def sentence(violation: Violation, longest: int = LONGEST) -> str:
    """Return what is wrong, without a full stop; of many containers, as many as there is room for."""
    actual, wanted = violation.actual, violation.wanted
    match violation.why:
        case Why.CLASS_TOO_LOW:
            head = f"QoS class would be {actual}, must be {wanted}"
            if not violation.amounts:
                return f"{head if wanted == 'Guaranteed' else f'{head} or better'}: no container states cpu or memory"
            return _listing(f"{head}: ", _by_container(violation.amounts), longest)
        case Why.CLASS_TOO_HIGH:
            return f"QoS class would be {actual}, must be {wanted} at most"
        case Why.NO_SUCH_CLASS:
            where = violation.path or "of the namespace"
            return f'{wanted} ({where}) is "{cut(actual, 63)}", must be Guaranteed, Burstable or BestEffort'
        case Why.NO_PRIORITY_CLASS:
            return f"no priorityClassName, must be {wanted}" if wanted else "no priorityClassName, must be set"
        case Why.PRIORITY_CLASS_NOT_ALLOWED:
            return f'priority class "{actual}" is not allowed' + (f", must be {wanted}" if wanted else "")
        case Why.PRIORITY_TOO_LOW:
            return f"priority is {actual}, must be at least {wanted}"
        case Why.PRIORITY_TOO_HIGH:
            return f"priority is {actual}, must be at most {wanted}"
    [amounts] = violation.amounts
    who, resource = _who(amounts), amounts.resource
    if violation.why is Why.RATIO_TOO_HIGH:
        ratio = f"{resource} limit {amounts.limit} is {actual}× its request {amounts.request}"
        return f"{who}: {ratio}, must be {wanted}× at most"
    return f"{who} has {_both(amounts)}, must {'request' if violation.why is Why.NO_REQUEST else 'limit'} {resource}"


def _by_container(amounts: Iterable[Amounts]) -> list[str]:
    has: dict[tuple[str, str], list[str]] = {}
    for amount in amounts:
        has.setdefault((amount.path, _who(amount)), []).append(_both(amount))
    return [f"{who} has {', '.join(all_of_it)}" for (_, who), all_of_it in has.items()]


def _who(amounts: Amounts) -> str:
    return f'container "{amounts.container}"' if amounts.container else "the pod"


def _both(amounts: Amounts) -> str:
    """Return request and limit: ``cpu request 100m and no cpu limit``."""
    resource, request, limit = amounts.resource, amounts.request, amounts.limit
    if not request and not limit:
        return f"neither {resource} request nor limit"
    return f"{_one(resource, 'request', request)} and {_one(resource, 'limit', limit)}"


def _one(resource: str, side: str, amount: Quantity | None) -> str:
    return f"{resource} {side} {amount}" if amount else f"no {resource} {side}"


def _listing(head: str, parts: Sequence[str], longest: int) -> str:
    """Return as many parts as there is room for, and how many are left out."""
    text = head
    for index, part in enumerate(parts):
        more = f"; and {len(parts) - index} more"
        if index and len(text) + len(part) + len(more) + 2 > longest:
            return text + more
        text += f"; {part}" if index else part
    return text
