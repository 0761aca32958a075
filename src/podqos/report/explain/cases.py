"""The table of cases: which requests and limits make which class (``podqos explain --cases``).

The cases are pods like any others (``scenarios/sources/cases.yaml``), and their classes are explained like any others.
"""

from __future__ import annotations

from collections.abc import Sequence

from podqos.answers.explanation import ContainerExplanation, Explanation
from podqos.model.quantity import Quantity
from podqos.report.text.style import Style, columns, wrapped

_NOTE = (
    "Pods are shown as the API server stores them. + marks another container of the pod above. Zero values are ignored."
)


def case_table(items: Sequence[Explanation], style: Style) -> list[str]:
    """Return a line per pod: how requests stand to limits, the class and why; a line for each further container."""
    rows = []
    for item in items:
        first, *others = sorted(item.containers, key=lambda container: container.type != "container")
        why = "; ".join((item.reason, *item.notes))
        rows.append((_stated(first, "cpu"), _stated(first, "memory"), style.qos_class(item.qos_class), why))
        rows += [(f"+ {_stated(other, 'cpu')}", f"+ {_stated(other, 'memory')}", "", "") for other in others]
    return [*columns(("CPU", "MEMORY", "CLASS", "WHY"), rows, style), "", *wrapped(_NOTE, style, "")]


def _stated(container: ContainerExplanation, resource: str) -> str:
    request, limit = container.requests.get(resource), container.limits.get(resource)
    if not request and not limit:
        return "–"
    if limit is None or not Quantity.parse(limit):
        return "zero" if not Quantity.parse(request or "0") else "request"
    if request is None:
        return "limit"
    return "request < limit" if Quantity.parse(request) < Quantity.parse(limit) else "request = limit"
