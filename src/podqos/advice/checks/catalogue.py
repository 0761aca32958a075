"""Every check by its id: what it is called, why it matters, how to mend it, and an example of each.

Ids are for ever: PQ1xx classes and sizes of workloads, PQ2xx policies, PQ3xx priority and order, PQ4xx the kubelet,
PQ5xx what nodes can hold. A check that is given up keeps its number. The texts are in one file per hundred
(``catalogue_*``), the rules in ``checks_*``.
"""

from __future__ import annotations

from podqos.advice.checks.catalogue_capacity import CAPACITY
from podqos.advice.checks.catalogue_kubelet import KUBELET
from podqos.advice.checks.catalogue_policies import POLICIES
from podqos.advice.checks.catalogue_priority import PRIORITY
from podqos.advice.checks.catalogue_workloads import WORKLOADS
from podqos.advice.checks.finding import Check

CHECKS: dict[str, Check] = {check.id: check for check in (*WORKLOADS, *POLICIES, *PRIORITY, *KUBELET, *CAPACITY)}
"""All checks by id, in the order of their ids."""
