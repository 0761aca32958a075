"""``docs/reference/checks.md``, generated from the catalogue: a page on every check, with examples that tests run.

A test compares the file in the repository with ``document``; ``record.py`` writes it again.
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.check import Check
from podqos.advice.checks.check_identity import Example
from podqos.questions.check_formats import good_example

_GROUPS = {
    "1": "QoS class and sizes",
    "2": "LimitRanges, quotas, injectors",
    "3": "Priority",
    "4": "Kubelet settings",
    "5": "Node capacity",
    "6": "Autoscalers and disruption budgets",
    "7": "podqos policies",
}

_START = """\
# Checks

What `podqos check` finds. This page is generated from the code (`src/podqos/advice/checks/`). Tests run every
example: the first of each pair has exactly this finding, the second has none.

| severity | meaning |
|---|---|
| error | does not work, or kills what must not die |
| warning | works until memory or CPU runs short, load grows or a node is drained |
| info | worth knowing; shown with `-v` |

One fact makes one finding: a pod that requests nothing has one of PQ102, PQ103, PQ104, PQ206, PQ302 and PQ601, not
several. Copies of a workload in other files (same kind, namespace and name, same pods but for their images) count once,
and so do their findings, which name the copies under `also`; so do workloads that share the place of a finding. A
workload of the same name with other content is judged by itself. `--fix` writes every copy.

Findings in directories of tests, examples, documentation, archives and vendored code are infos, because nobody runs
these for long: below the directory that you name, one called `test`, `e2e`, `testdata`, `examples`, `samples`, `demo`,
`docs`, `archive`, `vendor` or alike. The summary says how many there are, `purpose` in JSON why. Objects that the API
server rejects by themselves (PQ111, PQ127 and alike) are errors in examples, too. Name such a directory, or a file, to
have it judged like the rest.

Objects found in a directory (policies, Services, Ingresses and routes, autoscalers, disruption budgets, Nodes, kubelet
configurations) apply to that directory and below. Files that you name apply to everything.

The kill order is computed with every container at its memory limit (without a limit at twice its request, without
either at 64Mi), because a manifest does not say what its pods use.

## Suppress a finding

Annotate the object, or its pod template:

```yaml
metadata:
  annotations:
    podqos.dev/ignore: PQ103, PQ108
    podqos.dev/ignore-reason: an hour of logs may be lost
```

## Fixes

Every fix is tried before it is printed: written into the object, admitted, placed on the known nodes, and checked by
all checks. It is offered if it leaves fewer errors (or else warnings, or else infos) and the pod is not killed earlier.
A fix that would not help is named with the reason, and the decision is yours. `--fix` applies the fixes that need no
decision, checks everything again, and writes only improvements. `--diff` shows the changes and writes nothing, even
together with `--fix`.

- **CPU limits.** A container that has used up its CPU limit within a period of 100 ms is throttled until the next
  period, even on an idle node. Users see slow responses. So `--fix` never adds a CPU limit unasked. Where one would
  make the pod Guaranteed (PQ101, PQ205), the fix is shown with its cost, and `--fix --only PQ101` applies it. Where
  Guaranteed is one option of several, it is shown under `or`, with what it throttles and reserves, and never applied
  automatically.
- **Memory limits.** No fix lowers a memory limit, and none adds one unasked. If a fix sets one (PQ101), or you have to
  choose a request or limit, it names the number to look up, the peak usage, and the command that shows it.
- **Units.** No fix writes more than the largest node of the input has, or, without nodes, the largest machine you can
  rent: 1,920 cores and 32Ti of memory (Amazon's u7inh-32tb.480xlarge), 1Pi of disk. Less than 1Mi
  of memory is treated as a wrong unit.
- **Large inputs.** With up to 1,000 workloads, 20 fixes each are tried; up to 20,000, two each, without those that need
  `--only`; beyond that none. `--only`, `--diff` and `--fix` try everything they apply to. A fix that was not tried is
  not printed (`isTried` in JSON).
"""


_ON_REQUEST = "the amount is a rule of thumb, or depends on another object's policy."


def document() -> str:
    """Return the whole page."""
    return "\n".join((_START, *_table(), *_pages()))


def _table() -> Iterator[str]:
    yield "| id | severity | name | what it finds |"
    yield "|---|---|---|---|"
    for check in CHECKS.values():
        yield f"| [{check.id}](#{check.id.lower()}-{check.name}) | {check.severity} | `{check.name}` | {check.title} |"
    yield ""


def _pages() -> Iterator[str]:
    group = ""
    for check in CHECKS.values():
        if check.id[2] != group:
            group = check.id[2]
            yield f"## {_GROUPS[group]}\n"
        yield from _page(check, good_example(check))


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
    options = f"inject: [{', '.join(example.inject)}]" if example.inject else ""
    if example.replaces:
        yield f"{word} the second, for a pod that runs as the first:\n"
        yield f"```yaml\n{example.replaces}```\n"
    else:
        yield f"{word} (with `{options}` in `.podqos.yaml`):\n" if options else f"{word}\n"
    yield f"```yaml\n{text}```\n"
