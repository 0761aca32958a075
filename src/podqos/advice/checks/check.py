"""A check: one rule, with everything that belongs to it in one value.

A module of checks (``classes``, ``sizes``, ``kubelet``, …) holds, check by check: the facts of its findings with their
sentence, the rule, and a function under ``@check`` or ``@bundle_check``, which makes the ``Check``: its docstring says
what is wrong, why it matters and how to fix it, and it returns an example. ``catalogue`` has all of them by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from podqos.advice.checks.check_identity import CheckIdentity, Example
from podqos.advice.checks.finding import Effect, Finding, FindingSeverity
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import CheckContext, View

ERROR, WARNING, INFO = FindingSeverity
WorkloadRule = Callable[[View], None]
"""Looks at one workload that the API server takes, and notes findings about it."""
BundleRule = Callable[[CheckContext, Sequence[Sketch]], Iterator[Finding]]
"""Looks at everything together."""


class Check(CheckIdentity, frozen=True):
    """A rule by which findings are made."""

    rule: WorkloadRule | None = None
    """Several checks may share one rule."""
    bundle_rule: BundleRule | None = None


def check(
    check_id: str,
    name: str,
    severity: FindingSeverity,
    *references: str,
    effect: Effect = Effect.ORDER,
    rule: WorkloadRule | None = None,
    fix_on_request: bool = False,
) -> Callable[[Callable[[], Example]], Check]:
    """Make a check of a function that returns its example. The docstring has title, why and ``Fix:``, a paragraph each.

    ``references`` say where upstream the rule can be read, ``fix_on_request`` that ``--fix`` waits until it is named.
    """

    def made(example: Callable[[], Example]) -> Check:
        title, why, fix = (" ".join(each.split()) for each in (example.__doc__ or "\n\n\n\n").split("\n\n"))
        words = title.removeprefix(f"{check_id}: ").removesuffix("."), why, fix.removeprefix("Fix: ")
        return Check(check_id, name, severity, *words, example(), effect, references, fix_on_request, rule)

    return made


def bundle_check(
    check_id: str,
    name: str,
    severity: FindingSeverity,
    *references: str,
    effect: Effect = Effect.ORDER,
    rule: BundleRule,
    fix_on_request: bool = False,
) -> Callable[[Callable[[], Example]], Check]:
    """Make a check, like ``check``, by a rule that looks at everything together."""
    plain = check(check_id, name, severity, *references, effect=effect, fix_on_request=fix_on_request)
    return lambda example: replace(plain(example), bundle_rule=rule)
