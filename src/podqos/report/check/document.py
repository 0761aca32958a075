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
    "1": "Classes and sizes of workloads",
    "2": "Policies and injectors",
    "3": "Priority and order",
    "4": "The kubelet",
    "5": "What nodes can hold",
    "6": "Autoscalers and disruption budgets",
    "7": "Policies of podqos",
}

_START = """\
# The checks

What `podqos check` finds. This page is generated from the code (`src/podqos/advice/checks/`); the tests run every
example: the first of each pair has exactly this finding, the second has none.

**error** does not work, or kills what must not die · **warning** works until memory or cpu runs short, load grows or a
node is drained · **info** is worth knowing (`-v` shows them). What follows from one fact is one finding: a pod that
requests nothing has one of PQ102, PQ103, PQ104, PQ206, PQ302 and PQ601, not several.

What was found while walking a directory (policies, Services, Ingresses and routes, autoscalers, disruption budgets,
Nodes, kubelet configurations) counts for that directory and those below it; files that are named count for all.

An object that is meant to be as it is says so, on itself or on its pod template:

```yaml
metadata:
  annotations:
    podqos.dev/ignore: PQ103, PQ108
    podqos.dev/ignore-reason: an hour of logs may be lost
```

The kill order is computed with every container at its memory limit (without one at twice its request, without either at
64Mi), because a manifest does not say what its pods use.

## Fixes

Every fix is tried before it is printed: written into the object, admitted, held against the nodes at hand, and checked
again by all checks. It is offered where fewer errors, or else warnings, or else infos are left, and the pod is killed
no earlier. What was tried and would not help is said, and the finding is left to you. `--fix` applies the fixes that
need no decision, checks everything again, and writes only what is better; `--diff` shows the same and writes nothing,
also together with `--fix`.

- **CPU limits.** A container that has used its CPU limit within a period of 100 ms stands still until the next period,
  even on an idle node: that is throttling, and slow answers are how users see it. So no fix adds a CPU limit, except
  where one container without limits keeps its pod from being Guaranteed (PQ101, PQ205): the two lines are the fix, and
  throttling is named as its cost. Where Guaranteed is one way out of several, it is shown under `or`, with what it
  throttles and reserves, and never applied by itself.
- **Memory limits.** No fix lowers a memory limit. Where a fix sets one (PQ101), or a request or limit has to be chosen,
  it names the number to look up, the peak usage, and the command that shows it: a manifest does not say what is used.
- **Units.** No fix writes an amount that no node of the input has, or, without nodes, that no machine one can rent has:
  1,920 cores and 32Ti of memory (Amazon's u7inh-32tb.480xlarge), 1Pi of disk. A memory limit below 6Mi, the least that
  Docker accepts, is taken for a wrong unit.
- **Budget.** Of up to 1,000 workloads, 20 fixes each are tried; of up to 20,000, two each, without those that wait for
  `--only`; beyond that none. `--only`, `--diff` and `--fix` try what they are about. A fix that was not tried is not
  printed (`isTried` in JSON).
"""


_ON_REQUEST = "the amount is a rule of thumb, or follows from another object's policy."


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
