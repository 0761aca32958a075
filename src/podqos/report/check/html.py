"""``podqos check -o html``: one self-contained page.

It is readable without scripts and offline, follows the reader's choice of light or dark, and quotes nothing of the
input unescaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape as escape_markup
from itertools import groupby

from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.check import Check
from podqos.report.check.catalogue import GoodExample
from podqos.report.check.table import left_out
from podqos.report.check.value import CheckReport, FindingReport
from podqos.wording import counted

# What HTML cannot hold, not even escaped.
_NOT_HTML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_STYLE = """\
:root { color-scheme: light dark; --ink: #1c2128; --faint: #59636e; --page: #ffffff; --card: #f6f8fa; --line: #d1d9e0;
  --error: #c21c2c; --warning: #8a5a00; --info: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9198a1; --page: #0d1117; --card: #161b22;
  --line: #3d444d; --error: #ff7b72; --warning: #e3b341; --info: #79c0ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1rem 4rem; max-width: 62rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
code, pre { font: .875em/1.45 ui-monospace, monospace; } a { color: var(--info); }
pre { background: var(--page); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; margin: .5rem 0;
  overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.faint { color: var(--faint); } .numbers { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0; padding: 0;
  list-style: none; } .numbers li { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .5rem 1rem; min-width: 7rem; } .numbers b { display: block; font-size: 1.5rem; line-height: 1.2; }
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
    yield from (
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>podqos check: {_headline(report)}</title>",
        f"<style>\n{_STYLE}</style></head>",
        "<body>",
        "<header><h1>podqos check</h1>",
        f'<p class="faint">{_headline(report)}, by the rules of Kubernetes {escape(report.kubernetes_version)}</p>',
        *(() if report.verdict is None else (f"<p><strong>{escape(report.verdict.text)}</strong></p>",)),
        *_numbers(report),
        *(f'<p class="faint">{escape(line)}</p>' for line in left_out(report.summary)),
        "</header>",
        "<main>",
    )
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
    yield "</main></body></html>"


def escape(text: str) -> str:
    """Escape a text of the input for the page."""
    return escape_markup(_NOT_HTML.sub("\N{REPLACEMENT CHARACTER}", text))


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
    yield f"<dt>why</dt><dd>{escape(item.reason)}</dd>"
    if item.consequence:
        yield f"<dt>so</dt><dd>{escape(item.consequence)}</dd>"
    if item.patch.text:
        text = escape(item.patch.text)
        yield f"<dt>fix</dt><dd>{f'<pre>{text}</pre>' if item.patch.is_complete else text}</dd>"
    yield "</dl></article>"


def _check(check: Check, good: GoodExample) -> Iterator[str]:
    yield (
        f'<div id="{check.id}"><h3>{check.id} {escape(check.name)}: {escape(check.title)}</h3>'
        f"<p>{escape(check.why)}</p><p>{escape(check.fix)}</p>"
        "<details><summary>Example</summary>"
        f"<p>Instead of</p><pre>{escape(check.example.text.strip())}</pre>"
        f"<p>write</p><pre>{escape(good(check).strip())}</pre></details></div>"
    )
