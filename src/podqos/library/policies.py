"""What policies of podqos object to, judged on all cores where that pays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from podqos.answers import policies as answers
from podqos.answers.policies import PolicyKeywords, PolicyReport, PolicyRequest
from podqos.library.parallel import over_cores
from podqos.objects.objects import Objects
from podqos.objects.spreading import Progress
from podqos.policy.model import Policy


def judge_policies(
    objects: Objects,
    policies: Iterable[Policy] = (),
    *,
    progress: Progress | None = None,
    **options: Unpack[PolicyKeywords],
) -> PolicyReport:
    """Return what the policies among the objects, and those given besides, object to; what is wrong is a problem.

    ``today`` is the day on which exemptions may have expired; without it, none has. ``inject`` names injectors that add
    containers to every pod. ``fail_on`` is from which action on a violation makes the report fail.
    """
    return answers.judge_policies(objects, PolicyRequest(policies=policies, **options), over_cores(progress))
