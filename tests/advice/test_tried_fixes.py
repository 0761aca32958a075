"""Every fix of drawn manifests is applied to their texts, and judged by what ``explain`` says of the pods then.

``explain`` knows no fixes: it admits the pods and says their class, their scores and what the kernel is given.
"""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import podqos
from podqos.advice.checks.finding import CostKind, Effect, Finding
from podqos.advice.checks.trying import measure
from podqos.advice.fixes.patches import plain_value
from podqos.manifest.edits.apply import CannotEdit, ObjectEdit, apply_edits
from podqos.model.pod import CLASS_RANK
from podqos.model.quantity import Quantity
from podqos.objects.objects import Objects
from podqos.questions.check import Checked
from podqos.questions.explain import Explanation

CPU = st.sampled_from((None, None, "0", "100m", "250m", "1", "2", "500M", "100Mi", "500", "1500m"))
MEMORY = st.sampled_from(
    (None, None, "0", "64Mi", "128Mi", "1Gi", "1G", "4Gi", "8Gi", "512m", "512", "4", "2Mi", "900Gi")
)
SIDE = st.tuples(CPU, MEMORY)
CONTAINERS = st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=3)
AROUND = {
    "": "",
    "max": "limits: [{type: Container, max: {memory: 2Gi, cpu: 1}}]",
    "defaults": "limits: [{type: Container, default: {cpu: 500m, memory: 512Mi}, defaultRequest: {memory: 128Mi}}]",
    "min": "limits: [{type: Container, min: {memory: 256Mi}}]",
    "ratio": "limits: [{type: Container, maxLimitRequestRatio: {memory: 2}}]",
}
NODES = ("", "cpu: 4, memory: 8Gi", "cpu: 64, memory: 2Ti")
KINDS = st.sampled_from(("Pod", "Deployment", "DaemonSet"))
VOLUMES = st.sampled_from(("", "1Gi", "64m"))


def amounts(side: tuple[str | None, str | None]) -> str:
    named = zip(("cpu", "memory"), side, strict=True)
    return ", ".join(f"{name}: {amount}" for name, amount in named if amount is not None)


def workload(kind: str, name: str, containers: list, volume: str) -> str:
    lines = [
        f"apiVersion: {'v1' if kind == 'Pod' else 'apps/v1'}",
        f"kind: {kind}",
        f"metadata: {{name: {name}}}",
        "spec:",
    ]
    start = "  "
    if kind != "Pod":
        lines += [
            "  selector: {matchLabels: {app: web}}",
            "  template:",
            "    metadata: {labels: {app: web}}",
            "    spec:",
        ]
        start = "      "
    lines.append(f"{start}containers:")
    for index, (requests, limits) in enumerate(containers):
        lines += [f"{start}- name: c{index}", f"{start}  image: i", f"{start}  resources:"]
        lines += [f"{start}    requests: {{{amounts(requests)}}}", f"{start}    limits: {{{amounts(limits)}}}"]
    if volume:
        lines += [f"{start}volumes:", f"{start}- {{name: v, emptyDir: {{sizeLimit: {volume}}}}}"]
    return "\n".join(lines) + "\n"


@st.composite
def texts(draw: st.DrawFn) -> dict[str, str]:
    around, node = draw(st.sampled_from(sorted(AROUND))), draw(st.sampled_from(NODES))
    drawn = {
        f"{name}.yaml": workload(draw(KINDS), name, draw(CONTAINERS), draw(VOLUMES))
        for name in ("web", "job")[: draw(st.integers(1, 2))]
    }
    if around:
        head = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: lr, namespace: default}\n"
        drawn["range.yaml"] = f"{head}spec: {{{AROUND[around]}}}\n"
    if node:
        head = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n"
        drawn["node.yaml"] = f"{head}status: {{capacity: {{{node}, pods: 110}}, allocatable: {{{node}, pods: 110}}}}\n"
    kubelet = draw(st.sampled_from(("", "evictionSoft: {memory.available: 2Gi}", "enforceNodeAllocatable: [none]")))
    if kubelet:
        head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        drawn["kubelet.yaml"] = f"{head}{kubelet}\n"
    return drawn


def checked(drawn: dict[str, str]) -> Checked:
    objects = Objects()
    for name, text in drawn.items():
        objects = objects.with_text(name, text.encode())
    return Checked(objects)


def with_fix(drawn: dict[str, str], finding: Finding) -> dict[str, str]:
    source, place = finding.subject.source, finding.subject.place
    assert place is not None
    edits = [ObjectEdit(place, edit.path, plain_value(edit.value)) for edit in finding.patch.edits]
    edited = apply_edits(drawn[source].encode(), edits)
    assert not isinstance(edited, CannotEdit)
    return drawn | {source: edited.data.decode()}


def limits(explained: Explanation, resource: str) -> Iterator[Quantity | None]:
    for container in explained.containers:
        amount = container.limits.get(resource)
        yield None if amount is None or amount == "0" else Quantity.parse(amount)


@settings(max_examples=20, deadline=None)
@given(texts())
def test_a_fix_that_is_offered_makes_nothing_worse_unless_it_says_so(drawn):
    before = checked(drawn)
    for finding in before.findings:
        patch = finding.patch
        assert not (patch.is_complete and not patch.is_tried)
        ways = [patch] if patch.is_complete else []
        ways += [replace(patch, edits=way.edits, costs=way.costs) for way in patch.alternatives]
        for way in ways:
            tried = replace(finding, patch=way)
            after = checked(with_fix(drawn, tried))
            assert not after.problems
            assert what(finding) not in map(what, after.findings)
            judge(tried, before, after)


def what(finding: Finding) -> tuple[str, str, str]:
    return finding.subject.name, finding.check, finding.path


def without_file(explained: Explanation) -> Explanation:
    return replace(explained, source="")


def judge(finding: Finding, before: Checked, after: Checked) -> None:
    pods = [{each.name: each for each in podqos.explain(state.objects).items} for state in (before, after)]
    for name, other in pods[0].items():
        if name != finding.subject.name:
            assert without_file(pods[1][name]) == without_file(other)
    if finding.subject.name not in pods[0]:
        return  # a kubelet, or a pod that the API server does not take
    old, new = (state[finding.subject.name] for state in pods)
    costs = {cost.kind for cost in finding.patch.costs}
    was_impossible = finding.consequence.effect is Effect.NOT_CREATED or finding.check == "PQ117"
    assert new.refusal is None or old.refusal is not None
    if not was_impossible and new.refusal is None:
        assert CLASS_RANK[new.qos_class] >= CLASS_RANK[old.qos_class]
        scores = [max(each.oom_score_adj for each in explained.containers) for explained in (old, new)]
        assert scores[1] <= scores[0]
        for was, is_now in zip(limits(old, "memory"), limits(new, "memory"), strict=True):
            assert is_now is None or was is None or is_now >= was
            assert (is_now is None or was is not None) or CostKind.MEMORY_LIMIT in costs
        added = [
            is_now for was, is_now in zip(limits(old, "cpu"), limits(new, "cpu"), strict=True) if is_now and not was
        ]
        assert not added or CostKind.THROTTLING in costs
        assert not added or finding.check == "PQ101" or not finding.patch.is_applied
        assert len(added) <= 1 or not finding.patch.is_applied


@settings(max_examples=20, deadline=None)
@given(texts())
def test_what_fix_writes_is_better_by_the_checks_own_measure_and_is_written_once(drawn):
    before = checked(drawn)
    fixes, after = before.fix()
    assert fixes.remaining == tuple(after.open)
    assert (measure(after.open) < measure(before.open)) is bool(fixes.files)
    again, _ = after.fix()
    assert not again.files
    for file in fixes.files:
        assert file.after != file.before
        old, new = file.before.decode().splitlines(), file.after.decode().splitlines()
        assert len([line for line in old if line not in new]) <= sum(len(each.patch.edits) for each in file.findings)
