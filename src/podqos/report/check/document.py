"""``docs/reference/checks.md``, generated from the catalogue: a page on every check, with examples that tests run.

A test compares the file in the repository with ``document``; write it again after changing a check.
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.check import Check
from podqos.advice.checks.check_identity import Example
from podqos.report.check.catalogue import GoodExample

_GROUPS = {
    "1": "Workload classes and sizes",
    "2": "Policies and injectors",
    "3": "Priority and order",
    "4": "The kubelet",
    "5": "Node capacity",
    "6": "Autoscalers and disruption budgets",
    "7": "podqos policies",
}

_START = """\
# The checks

Everything `podqos check` looks for. This page is generated from the code (`src/podqos/advice/checks/`), and the tests
run every example: the first of each pair has exactly this finding, the second has none.

**error**: does not work, or kills what must not die · **warning**: works until memory or CPU runs short, load grows
or a node is drained · **info**: worth knowing (`-v` shows them). One cause is one finding: a pod that requests
nothing gets one of PQ102, PQ103, PQ104, PQ206, PQ302 and PQ601, not several.

Related objects found in a directory (policies, Services, Ingresses and routes, autoscalers, disruption budgets,
Nodes, kubelet configurations) apply to that directory and the ones below it. Files named on the command line apply
everywhere.

To suppress a finding, annotate the object or its pod template:

```yaml
metadata:
  annotations:
    podqos.dev/ignore: PQ103, PQ108
    podqos.dev/ignore-reason: an hour of logs may be lost
```

Manifests don't show usage, so the kill orders are computed with every container at its memory limit: twice its
request if it has no limit, 64Mi if it has neither.

## Fixes

Every fix is tested before it is printed: applied to the object, admitted, placed on the given nodes and checked again
by all checks. It is offered only if it leaves fewer errors, or fewer warnings, or fewer infos, and the pod is not
killed any earlier. If a fix was tested and does not help, podqos says so and leaves the decision to you. `--fix`
applies the fixes that need no decision, checks everything again and writes only improvements. `--diff` shows the same
and writes nothing, even with `--fix`.

- **CPU limits.** A container that has used up its CPU limit within a 100 ms period is stopped until the next period,
  even on an idle node. That is throttling, and users notice it as slow responses. So no fix adds a CPU limit, except
  where one container without limits keeps its pod from being Guaranteed (PQ101, PQ205): there the two lines are the
  fix, and throttling is listed as its cost. Where Guaranteed is one of several options, it is shown under `or` with
  what it throttles and reserves, and never applied automatically.
- **Memory limits.** No fix lowers a memory limit. Where a fix sets one (PQ101), or you have to choose a request or
  limit, it names the number to look up, the peak usage, and the command that shows it.
- **Units.** No fix writes an amount larger than any given node or, without nodes, larger than any machine for rent:
  1,920 cores and 32Ti of memory (Amazon's u7inh-32tb.480xlarge), 1Pi of disk. A memory limit below 6Mi, Docker's
  minimum, is treated as a wrong unit.
- **Budget.** With up to 1,000 workloads, 20 fixes are tested for each; with up to 20,000, two for each, without those
  that need `--only`; with more, none. `--only`, `--diff` and `--fix` always test the fixes they are about. A fix that
  was not tested is not printed (`isTried` in JSON).
"""


_ON_REQUEST = "the amount is a rule of thumb, or depends on another object's policy."


def document(good: GoodExample) -> str:
    """Return the whole page."""
    return "\n".join((_START, *_table(), *_pages(good)))


def _table() -> Iterator[str]:
    yield "| id | severity | name | what it finds |"
    yield "|---|---|---|---|"
    for check in CHECKS.values():
        yield f"| [{check.id}](#{check.id.lower()}-{check.name}) | {check.severity} | `{check.name}` | {check.title} |"
    yield ""


def _pages(good: GoodExample) -> Iterator[str]:
    group = ""
    for check in CHECKS.values():
        if check.id[2] != group:
            group = check.id[2]
            yield f"## {_GROUPS[group]}\n"
        yield from _page(check, good(check))


def _page(check: Check, good: str) -> Iterator[str]:
    yield f"### {check.id} {check.name}\n"
    yield f"**{check.severity}** · {check.title}\n"
    yield f"{check.why}\n"
    yield f"*How to fix it:* {check.fix}\n"
    if check.fix_on_request:
        yield f"`--fix` writes it only with `--only {check.id}`: {_ON_REQUEST}\n"
    yield from _example("Instead of", check.example, check.example.text)
    yield from _example("write", check.example, good)
    yield f"References: {'; '.join(check.references)}\n"


def _example(word: str, example: Example, text: str) -> Iterator[str]:
    options = "".join(f" --inject {name}" for name in example.inject)
    if example.replaces:
        yield f"{word} the second, for a pod that runs as the first:\n"
        yield f"```yaml\n{example.replaces}```\n"
    else:
        yield f"{word} (with `{options.strip()}`):\n" if options else f"{word}\n"
    yield f"```yaml\n{text}```\n"
