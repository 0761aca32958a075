"""Whether what a pod asks of its place makes sense at all, before any node is looked at.

The API server's rules are in ``admission.constraints``. One thing is checked that it lets through: a bound of ``Gt`` or
``Lt`` that is no number, which no node can ever meet.
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.admission.field_errors import FieldError, invalid
from podqos.model.pod import Pod
from podqos.placement.node_affinity import required_terms, whole_number

_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def unmeetable_bounds(pod: Pod) -> Iterator[FieldError]:
    """Yield the bounds that are stored although no node can meet them."""
    required = required_terms(pod.spec)
    for index, term in enumerate(required.node_selector_terms if required is not None else ()):
        for number, requirement in enumerate(term.match_expressions):
            values = requirement.values
            if requirement.operator in {"Gt", "Lt"} and len(values) == 1 and whole_number(values[0]) is None:
                path = f"{_TERMS}[{index}].matchExpressions[{number}].values[0]"
                yield invalid(path, values[0], "for 'Gt', 'Lt' operators, the value must be an integer")
