"""``podqos advise -o html``: the table, what it comes to, and the reasons, as one page without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.answers.advice import AdviceReport, WorkloadAdvice
from podqos.report.advice.lines import workload_lines
from podqos.report.advice.table import headline, rows_of, summary
from podqos.report.text.html_page import escape, page
from podqos.report.text.style import Style
from podqos.wording import counted

_STYLE = """\
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .875rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { white-space: nowrap; } body { max-width: 90rem; }
"""


def html(report: AdviceReport) -> Iterator[str]:
    """Yield the lines of the page."""
    title = "Recommended resources"
    return page(title, _STYLE, _header(report, title), _main(report))


def _header(report: AdviceReport, title: str) -> Iterator[str]:
    yield f"<h1>{title}</h1>"
    rules = f"Rules of Kubernetes {report.kubernetes_version}"
    goal = "" if report.goal is None else f", goal: {report.goal}"
    yield f'<p class="faint">{counted(len(report.workloads), "workload")}. {escape(rules + goal)}.</p>'


def _main(report: AdviceReport) -> Iterator[str]:
    headers, rows = rows_of(report, Style())
    if report.workloads:
        yield f"<p>{escape(headline(report))}</p>"
    yield '<div class="wide"><table>'
    yield f"<thead>{_cells('th', headers)}</thead><tbody>"
    yield from (_cells("td", row) for row in rows)
    yield "</tbody></table></div>"
    yield from (f"<p>{escape(said)}</p>" for said in summary(report))
    for workload in report.workloads:
        yield from _details(workload)
    if report.steps:
        yield "<h2>Rollout steps</h2><ol>"
        yield from (f"<li>{escape(step.text)}</li>" for step in report.steps)
        yield "</ol>"
    if report.assumptions:
        yield "<h2>Assumed</h2>"
        for assumption in report.assumptions:
            yield f'<p class="faint">{escape(f"{assumption.what}: {assumption.value} ({assumption.state_with})")}</p>'


def _details(workload: WorkloadAdvice) -> Iterator[str]:
    yield f"<h2>{escape(workload.workload)}</h2>"
    yield f"<pre>{escape(chr(10).join(line.removeprefix('  ') for line in _lines_of(workload)))}</pre>"


def _lines_of(workload: WorkloadAdvice) -> Iterator[str]:
    return workload_lines(workload, Style(), verbose=True)


def _cells(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
