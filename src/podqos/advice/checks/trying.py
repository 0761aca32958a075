"""Try a fix before it is offered: write it into the pod, admit that, look for a node, and run all checks again.

A fix is kept where the checks' own measure is better for it: what it fixes is gone, and there are fewer errors, or else
fewer warnings, or else fewer infos, or else the pod is killed later. It is refuted where the pod would be killed
earlier, where no node of the input, or no machine that can be rented, holds an amount it writes, and where it lowers a
memory limit, as nothing in a manifest shows that less is enough. A refuted fix becomes a choice that says what was
tried. What a fix costs (a CPU limit, a memory limit, a larger reservation) is the difference between the two pods.

Fixes of kubelets are tried in ``kubelet``; what a fix does to other objects is seen by ``fixes.fixing``, which checks
everything again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.costs import containers_of, costs_between
from podqos.advice.checks.finding import Alternative, Choice, CostKind, Effect, Finding, FindingSeverity, Patch
from podqos.advice.checks.look_up import peak_usage
from podqos.advice.checks.repair import patch_of, with_fields
from podqos.advice.checks.units import Machines
from podqos.advice.checks.view import CheckContext, View
from podqos.amounts import listed
from podqos.manifest.plain import format_path, parse_path
from podqos.model.effective import pod_requests
from podqos.model.node import Node
from podqos.model.pod import CLASS_RANK, QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from podqos.qos.edits import edits_to_guaranteed

Measure = tuple[int, ...]
"""How many findings there are, of the worst severity first: the smaller is better."""
Look = Callable[[View], Sequence[Finding]]
"""Runs all checks of one workload."""

_MEASURED = (CPU, MEMORY, EPHEMERAL_STORAGE)
_IN_WRONG_UNIT = "PQ117"
_MAY_RESERVE = "PQ101"
"""Its fix is applied although it reserves more: 4Gi instead of 4G."""
_ENDED_BY_GUARANTEED = ("PQ114", "PQ306")
"""Checks whose choice can be to make the pod Guaranteed, which throttles and reserves more: a person decides."""
_TREE, _LARGEST_TREE = 1_000, 20_000
_OF_FEW, _OF_A_TREE = 20, 2


def measure(findings: Iterable[Finding]) -> Measure:
    """Return how bad findings are together. Suppressed ones do not count."""
    counts = dict.fromkeys(FindingSeverity, 0)
    for finding in findings:
        if finding.suppression is None:
            counts[finding.severity] += 1
    return tuple(counts[severity] for severity in sorted(counts, key=lambda severity: severity.rank))


def tries_of_each(workloads: int, *, is_asked: bool = False) -> int:
    """Return how many fixes of each workload are tried, of so many: a try takes about as long as checking it.

    ``is_asked`` says that they are what was asked for.
    """
    if workloads > _TREE and not is_asked:
        return _OF_A_TREE if workloads <= _LARGEST_TREE else 0
    return _OF_FEW


def with_tried_fixes(view: View, findings: Sequence[Finding], look: Look, tries: int) -> tuple[Finding, ...]:
    """Return the findings about a workload with patches that were tried, or that say why they are none.

    The fixes of the most severe findings are tried first; in a large tree those that wait for a request are not. The
    others stay as they are: complete, and not tried.
    """
    fixable = [
        finding
        for finding in findings
        if (finding.patch.is_complete or finding.check in _ENDED_BY_GUARANTEED) and finding.subject is view.subject
    ]
    if tries < _OF_FEW:
        fixable = [finding for finding in fixable if not finding.patch.on_request]
    if not fixable or not tries:
        return tuple(findings)
    if len(fixable) > tries:
        fixable = sorted(fixable, key=lambda finding: finding.severity.rank)[:tries]
    trials = _Trials(view, findings, look)
    tried = {
        id(finding): replace(
            finding, patch=trials.tried(finding) if finding.patch.is_complete else trials.with_guaranteed(finding)
        )
        for finding in fixable
    }
    return tuple(tried.get(id(finding), finding) for finding in findings)


class _Trials:
    """The fixes of one workload, tried one by one."""

    def __init__(self, view: View, findings: Sequence[Finding], look: Look) -> None:
        self._view = view
        self._look = look
        self._context = _with_all_checks(view.context)
        if self._context is not view.context:
            # Where only some checks run, a fix must not be better by these alone.
            findings = look(view.tried(view.pod, self._context))
        self._before = findings
        self._measure = measure(findings)

    def tried(self, finding: Finding) -> Patch:
        """Return the patch of a finding, tried: with its costs, or refuted."""
        patch, view = finding.patch, self._view
        fields = [(view.field(edit.path), edit.value) for edit in patch.edits]
        pod = with_fields(view.pod, fields)
        if pod is None:
            return patch
        after = view.tried(pod, self._context)
        why_not = next(self._refutations(finding, after), None)
        if why_not is not None:
            left = refuted(patch, Choice.RESOURCES, why_not)
            return replace(left, look_up=view.peak_usage(left, finding.container))
        if finding.check == _IN_WRONG_UNIT or finding.consequence.effect is Effect.NOT_CREATED:
            return replace(patch, is_tried=True)  # there was no pod that could have cost less
        costs = tuple(costs_between(view, after))
        limited = [cost for cost in costs if cost.kind is CostKind.MEMORY_LIMIT]
        look_up = peak_usage(view.subject.namespace, [cost.container for cost in limited]) if limited else ""
        # What costs something is for a person to decide, above all a new limit, at which a container is throttled or
        # killed: also one that a policy adds to an innocent edit.
        is_free = all(cost.kind is CostKind.RESERVATION and finding.check == _MAY_RESERVE for cost in costs)
        on_request = patch.on_request or not is_free
        return replace(patch, is_tried=True, costs=costs, look_up=look_up, on_request=on_request)

    def with_guaranteed(self, finding: Finding) -> Patch:
        """Return a choice with what makes the pod Guaranteed beside it, where all amounts are known and it helps."""
        view = self._view
        patch = patch_of(edits_to_guaranteed(view.pod, view.options.profile), view, Choice.RESOURCES)
        if not patch.is_complete:
            return finding.patch
        tried = self.tried(replace(finding, patch=patch))
        if not tried.is_tried:
            return finding.patch
        alternative = Alternative("guaranteed", tried.edits, tried.costs, f"make the pod Guaranteed:\n{tried.text}")
        return replace(finding.patch, alternatives=(alternative,), look_up=tried.look_up or finding.patch.look_up)

    def _refutations(self, finding: Finding, after: View) -> Iterator[str]:
        view = self._view
        yield from _beyond_machines(finding.patch, view.machines)
        if view.pod.is_partial and after.stored_class is QOSClass.GUARANTEED:
            yield "its controller adds containers, so it isn't known to become Guaranteed"
        if finding.check != _IN_WRONG_UNIT:
            yield from _lowered_memory_limits(view, after)
        nodes = view.context.surroundings.nodes
        if nodes and not _fits(after, nodes) and (_fits(view, nodes) or finding.check == _IN_WRONG_UNIT):
            yield "then no node has room for the pod"
        findings = self._look(after)
        if any(_is_same(each, finding) for each in findings):
            yield "the finding would remain"
        then = measure(findings)
        if then > self._measure or (then == self._measure and not _stands_worse(after, view)):
            yield what_appears(self._before, findings)
        if finding.consequence.effect is not Effect.NOT_CREATED and _stands_worse(view, after):
            yield f"the pod would be killed earlier: {after.stored_class}, oom_score_adj {after.standing.oom_score_adj}"


def _with_all_checks(context: CheckContext) -> CheckContext:
    """Return the context in which every check runs."""
    options: CheckOptions = context.options
    if not options.only and not options.disabled:
        return context
    everything = replace(options, only=frozenset(), disabled=frozenset())
    return CheckContext(context.surroundings, everything, context.resizes, context.units)


def _is_same(one: Finding, other: Finding) -> bool:
    keys = [(finding.check, finding.path, finding.container) for finding in (one, other)]
    return one.suppression is None and keys[0] == keys[1]


def what_appears(before: Sequence[Finding], after: Sequence[Finding]) -> str:
    """Return why it is no better with a fix: what is found then and was not before."""
    known = {(finding.check, finding.container) for finding in before}
    new = next((finding for finding in after if (finding.check, finding.container) not in known), None)
    if new is None:
        return "it would be no better"
    return f"{new.facts.sentence(new.container or '')} ({new.check})"


def _beyond_machines(patch: Patch, machines: Machines) -> Iterator[str]:
    for edit in patch.edits:
        name = str(parse_path(edit.path)[-1])
        if name in _MEASURED and isinstance(edit.value, str) and not machines.hold(name, Quantity.parse(edit.value)):
            yield f"no node has {edit.value} of {name}"


def _lowered_memory_limits(view: View, after: View) -> Iterator[str]:
    """Yield which limits a fix lowers: also one that a LimitRange fills in."""
    for old, new in zip(containers_of(view), containers_of(after), strict=True):
        before, limit = old.resources.limits.get(MEMORY), new.resources.limits.get(MEMORY)
        if before and limit and limit < before:
            yield f"{old.name} may use {before} of memory now, and there is no evidence that {limit} is enough"


def _fits(view: View, nodes: Sequence[Node]) -> bool:
    """Whether a pod fits a node that runs nothing else."""
    requests = {name: amount for name, amount in pod_requests(view.stored).items() if name in _MEASURED}
    return any(_holds(node.status.allocatable or node.status.capacity, requests) for node in nodes)


def _holds(allocatable: ResourceList, requests: ResourceList) -> bool:
    return all(name not in allocatable or amount <= allocatable[name] for name, amount in requests.items())


def _stands_worse(view: View, after: View) -> bool:
    before, then = view.standing, after.standing
    if before.is_spared and not then.is_spared:
        return True
    ranks = CLASS_RANK[before.qos_class], CLASS_RANK[then.qos_class]
    return ranks[1] < ranks[0] or then.oom_score_adj > before.oom_score_adj or then.priority < before.priority


def refuted(patch: Patch, choice: Choice, why_not: str) -> Patch:
    """Return the choice that is left where a fix does not help."""
    written = listed([_shortly(edit.path, edit.value) for edit in patch.edits])
    were = ("was", "is") if len(patch.edits) == 1 else ("were", "are")
    chosen = Patch.choose(choice, [edit.path for edit in patch.edits])
    return replace(chosen, refuted=f"{written} {were[0]} tried and {were[1]} not offered: {why_not}")


def _shortly(path: str, value: object) -> str:
    """Return an edit without the way to its container: ``limits.memory: 2Gi``."""
    field = format_path(parse_path(path)[-2:])
    return f"{field} removed" if value is None else f"{field}: {value}"
