"""``podqos check --all``: a score per namespace, worst first, as value and text.

An object without errors and warnings counts 1, one with warnings ½, one with an error 0: the score is their mean, in
percent, rounded down. Counted are the objects that have pods, and others that have errors or warnings.
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.answers.scores import NamespaceScores
from podqos.naming import stated_with
from podqos.report.text.style import Style, columns, wrapped
from podqos.wording import counted


def table(whole: NamespaceScores, style: Style) -> Iterator[str]:
    """Yield a line per namespace, worst first."""
    if whole.verdict is not None and any(item.worst for item in whole.items):
        yield from map(style.strong, wrapped(whole.verdict.text, style, ""))
        yield ""
    rows = [
        (
            item.namespace or "(cluster)",
            str(item.score),
            str(item.objects),
            str(item.errors or "–"),
            str(item.warnings or "–"),
            item.worst or "–",
        )
        for item in whole.items
    ]
    yield from columns(("NAMESPACE", "SCORE", "OBJECTS", "ERRORS", "WARNINGS", "WORST"), rows, style)
    yield ""
    objects = counted(sum(item.objects for item in whole.items), "object")
    of = f" of {whole.cluster}" if whole.cluster else ""
    yield f"score {whole.score} of 100; {objects}{of} in {counted(len(whole.items), 'namespace')}"
    namespace = next((item.namespace for item in whole.items if item.worst and item.namespace), "")
    if whole.cluster and namespace:
        chosen = stated_with("namespace", namespace)
        yield f"  {style.faint(f'podqos check {chosen} lists the findings of a namespace')}"
    elif namespace:
        hint = f"without {stated_with('all')} the findings are listed"
        yield f"  {style.faint(hint)}"
