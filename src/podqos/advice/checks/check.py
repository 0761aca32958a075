"""A check: one rule, with everything that belongs to it in one value.

A module of checks (``classes``, ``sizes``, ``kubelet``, …) holds, check by check: the facts of its findings with their
sentence, the rule, and the ``Check`` that names the rule and adds severity, reasons and an example. ``catalogue`` has
all of them by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from podqos.advice.checks.check_identity import CheckIdentity
from podqos.advice.checks.finding import Finding
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import Context, View

WorkloadRule = Callable[[View], None]
"""Looks at one workload that the API server takes, and notes findings about it."""
BundleRule = Callable[[Context, Sequence[Sketch]], Iterator[Finding]]
"""Looks at everything together."""


class Check(CheckIdentity, frozen=True):
    """A rule by which findings are made."""

    rule: WorkloadRule | None = None
    """Several checks may share one rule."""
    bundle_rule: BundleRule | None = None
