"""``podqos overview -o html``: a card for each node, least headroom first, and what is wrong by namespace."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.answers.node_figures import NextVictim, NodeOverview
from podqos.answers.overview import Overview
from podqos.report.cluster.overview import headline
from podqos.report.text.html_page import escape, page
from podqos.wording import counted, mebibytes
from podqos.words.headroom import bound_by

_MOST_CARDS = 500
_STYLE = """\
.nodes { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: .75rem; }
article { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem;
  min-width: 0; }
article.short { border-left: .3rem solid var(--error); } h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
.bar { position: relative; height: .6rem; border: 1px solid var(--line); border-radius: 4px; margin: .5rem 0 .2rem;
  background: var(--page); overflow: hidden; }
.bar i { position: absolute; inset: 0 auto 0 0; background: var(--info); }
.bar i.asked { background: repeating-linear-gradient(45deg, var(--line) 0 4px, transparent 4px 8px); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .9rem; margin: .4rem 0 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
.condition { color: var(--error); font-weight: 600; } .wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--faint); }
"""


def html(whole: Overview) -> Iterator[str]:
    """Yield the lines of the page."""
    return page(f"podqos overview: {escape(headline(whole))}", _STYLE, _header(whole), _main(whole))


def _header(whole: Overview) -> Iterator[str]:
    yield "<h1>podqos overview</h1>"
    yield f'<p class="faint">{escape(headline(whole))}</p>'
    if whole.verdict:
        yield f"<p><strong>{escape(whole.verdict)}</strong></p>"
    numbers = (
        (len(whole.nodes), "nodes"),
        *((count, name) for name, count in whole.classes.items()),
        (len(whole.pending), "pods without a node"),
        (sum(namespace.errors for namespace in whole.namespaces), "errors"),
        (sum(namespace.warnings for namespace in whole.namespaces), "warnings"),
    )
    yield '<ul class="numbers">'
    yield from (f"<li><b>{count:,}</b> {escape(name)}</li>" for count, name in numbers)
    yield "</ul>"


def _main(whole: Overview) -> Iterator[str]:
    yield '<section><h2>Nodes, least headroom first</h2><div class="nodes">'
    for node in whole.nodes[:_MOST_CARDS]:
        yield from _card(node)
    yield "</div>"
    if len(whole.nodes) > _MOST_CARDS:
        yield f'<p class="faint">and {counted(len(whole.nodes) - _MOST_CARDS, "more node")} with more headroom</p>'
    yield "</section>"
    wrong = [namespace for namespace in whole.namespaces if namespace.objects]
    if wrong:
        yield '<section><h2>Findings by namespace</h2><div class="wide"><table>'
        yield "<tr><th>namespace</th><th>score</th><th>errors</th><th>warnings</th><th>objects</th></tr>"
        for overview in wrong:
            cells = (
                escape(overview.namespace or "(cluster)"),
                overview.score,
                overview.errors,
                overview.warnings,
                overview.objects,
            )
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        yield "</table></div></section>"
    if whole.assumptions:
        yield "<section><h2>Assumed</h2><ul>"
        yield from (
            f"<li>{escape(assumption.what)}: {escape(assumption.value)}</li>" for assumption in whole.assumptions
        )
        yield "</ul></section>"


def _card(node: NodeOverview) -> Iterator[str]:
    memory, headroom = node.memory, node.headroom_bytes
    is_short = bool(node.conditions) or (headroom is not None and headroom < 0)
    yield f'<article class="{"short" if is_short else ""}"><h3>{escape(node.name)}</h3>'
    if node.conditions:
        yield f'<p class="condition">{escape(", ".join(node.conditions))}</p>'
    asked, used = (_percent(each, memory.allocatable) for each in (memory.requests, memory.used_by_pods))
    words = f"memory: {asked:.0f} % requested" + (f", {used:.0f} % used" if memory.used_by_pods is not None else "")
    yield f'<div class="bar" role="img" aria-label="{words}"><i style="width:{used:.0f}%"></i>'
    yield f'<i class="asked" style="width:{asked:.0f}%"></i></div><p class="faint">{words}</p><dl>'
    if headroom is not None:
        text = mebibytes(headroom) if headroom >= 0 else f"−{mebibytes(-headroom)}"
        by = "" if node.headroom is None else f" <span class=faint>{escape(bound_by(node.headroom))}</span>"
        yield f"<dt>headroom</dt><dd>{text}{by}{'' if node.is_measured else ' if pods use their requests'}</dd>"
    pods = f"{node.pods} of {node.most_pods}" if node.most_pods is not None else str(node.pods)
    yield f"<dt>pods</dt><dd>{pods}</dd>"
    yield from _victim("evicted next", node.next_evicted)
    yield from _victim("killed next", node.next_killed)
    yield "</dl></article>"


def _victim(title: str, victim: NextVictim | None) -> Iterator[str]:
    if victim is not None:
        reason = f" <span class=faint>{escape(victim.reason)}</span>" if victim.reason else ""
        yield f"<dt>{title}</dt><dd>{escape(victim.pod)} ({victim.qos_class}){reason}</dd>"


def _percent(part: int | None, whole: int) -> float:
    return min(100.0, 100 * (part or 0) / whole) if whole else 0.0
