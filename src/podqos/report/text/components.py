"""The processes of a node that belong to no pod, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.report.text.style import Style, columns
from podqos.survival.node.components import ComponentReport

_EXEMPT = "The kernel never kills at oom_score_adj -1000. Among the rest it kills the highest badness, however low."


def component_table(components: Sequence[ComponentReport], style: Style) -> list[str]:
    """Return a line per process of the node itself, and which processes the kernel never kills."""
    rows = [
        (component.name, str(component.oom_score_adj), str(component.oom_score_idle), component.set_by)
        for component in components
    ]
    return [*columns(("NODE COMPONENT", "ADJ", "IDLE SCORE", "SET BY"), rows, style), _EXEMPT]
