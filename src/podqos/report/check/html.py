"""``podqos check -o html``: one self-contained page.

What all such pages have in common is in ``report.text.html_page``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.check import Check
from podqos.answers.findings import CheckReport, FindingReport
from podqos.report.check.catalogue import GoodExample
from podqos.report.check.table import left_out
from podqos.report.text.html_page import escape, page
from podqos.wording import counted
from podqos.words.fixes import alternative_words, cost_words, fix_words

_STYLE = """\
article { background: var(--card); border: 1px solid var(--line); border-left: .3rem solid var(--colour);
  border-radius: 8px; padding: .8rem 1rem; margin: .75rem 0; }
h3 { font-size: 1rem; margin: 1.5rem 0 0; overflow-wrap: anywhere; }
article h3 { margin: 0; } article.suppressed { opacity: .75; }
.error { --colour: var(--error); } .warning { --colour: var(--warning); } .info { --colour: var(--info); }
.severity { color: var(--colour); font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem .9rem; margin: .6rem 0 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; } dd pre { margin: 0; }
summary { cursor: pointer; color: var(--faint); }
"""


def html(report: CheckReport, good: GoodExample) -> Iterator[str]:
    """Yield the lines of the page."""
    return page(f"podqos check: {_headline(report)}", _STYLE, _header(report), _main(report, good))


def _header(report: CheckReport) -> Iterator[str]:
    yield "<h1>podqos check</h1>"
    yield f'<p class="faint">{_headline(report)}, by the rules of Kubernetes {escape(report.kubernetes_version)}</p>'
    if report.verdict is not None:
        yield f"<p><strong>{escape(report.verdict.text)}</strong></p>"
    yield from _numbers(report)
    yield from (f'<p class="faint">{escape(line)}</p>' for line in left_out(report.summary))


def _main(report: CheckReport, good: GoodExample) -> Iterator[str]:
    for source, items in groupby(report.items, key=lambda item: item.source):
        yield f"<section><h2>{escape(source)}</h2>"
        for item in items:
            yield from _finding(item)
        yield "</section>"
    checks = sorted({item.check for item in report.items})
    if checks:
        yield "<section><h2>The checks</h2>"
        for check in checks:
            yield from _check(CHECKS[check], good)
        yield "</section>"


def _headline(report: CheckReport) -> str:
    summary = report.summary
    found = counted(summary.findings, "finding") if summary.findings else "no findings"
    return f"{found}; {counted(summary.objects, 'object')} checked"


def _numbers(report: CheckReport) -> Iterator[str]:
    summary = report.summary
    yield '<ul class="numbers">'
    for name, count in (("error", summary.errors), ("warning", summary.warnings), ("info", summary.infos)):
        yield f'<li class="{name}"><b class="severity">{count}</b> {name}{"" if count == 1 else "s"}</li>'
    files = "" if report.cluster else f"<li><b>{summary.files}</b> files</li>"
    yield f"<li><b>{summary.objects}</b> objects</li>{files}</ul>"


def _finding(item: FindingReport) -> Iterator[str]:
    suppressed = " suppressed" if item.suppression else ""
    container = f", container <code>{escape(item.container)}</code>" if item.container else ""
    yield f'<article class="{item.severity}{suppressed}">'
    yield (
        f'<h3><span class="severity">{item.severity}</span> <a href="#{item.check}">{item.check}</a> '
        f"{escape(item.title)}</h3>"
    )
    place = f"line {item.line}, column {item.column}" if item.line else ""
    field = f"<code>{escape(item.path)}</code>" if item.path else ""
    where = ": ".join(filter(None, (place, field)))
    yield f'<p>{escape(item.subject)}{container} <span class="faint">{where}</span></p>'
    yield "<dl>"
    if item.suppression is not None:
        reason = item.suppression.reason or "no reason given"
        yield f"<dt>left</dt><dd>suppressed by {escape(item.suppression.by)}: {escape(reason)}</dd>"
    if item.also:
        yield f"<dt>also</dt><dd>{escape(item.also_text)}</dd>"
    yield f"<dt>why</dt><dd>{escape(item.reason)}</dd>"
    if item.consequence:
        yield f"<dt>so</dt><dd>{escape(item.consequence)}</dd>"
    if item.patch.text:
        text = escape(fix_words(item.patch))
        yield f"<dt>fix</dt><dd>{f'<pre>{text}</pre>' if item.patch.is_complete else text}</dd>"
    for name, words in (("cost", cost_words(item.patch)), ("or", alternative_words(item.patch))):
        if words:
            yield f"<dt>{name}</dt><dd>{escape(words)}</dd>"
    yield "</dl></article>"


def _check(check: Check, good: GoodExample) -> Iterator[str]:
    yield (
        f'<div id="{check.id}"><h3>{check.id} {escape(check.name)}: {escape(check.title)}</h3>'
        f"<p>{escape(check.why)}</p><p>{escape(check.fix)}</p>"
        "<details><summary>Example</summary>"
        f"<p>Instead of</p><pre>{escape(check.example.text.strip())}</pre>"
        f"<p>write</p><pre>{escape(good(check).strip())}</pre></details></div>"
    )
