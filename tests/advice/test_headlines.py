"""The headline of ``check`` never repeats the reason below it, and says "because" only of what was tried.

Over the examples of the catalogue, alone and beside another pod, and over manifests that are drawn.
"""

from __future__ import annotations

import re
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advice.bundles import apply_patch, bundle_of, check, check_example, first_phase, plain_objects
from podqos.advice.checks import examples
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.comparison import _orders, _Places
from podqos.advice.checks.view import CheckContext
from podqos.orders.usage import NOMINAL
from podqos.questions.findings import Fate, finding_report, verdict

RUN = 6
"""So many words in a row are a repetition."""
OTHER = examples.pod(examples.container("web", *examples.USUAL), name="batch", spec="  priority: 7\n")
SIZES = [
    "",
    "requests: {cpu: 500m, memory: 512Mi}, limits: {cpu: 1, memory: 1Gi}",
    "requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}",
    "requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 4Gi}",
    "requests: {memory: 2Gi}",
    "requests: {cpu: 500m}",
    "limits: {memory: 256Mi}",
]
LIMIT_RANGE = examples.limit_range("team", "default: {memory: 512Mi}\ndefaultRequest: {memory: 128Mi}\n")


def report(finding):
    """Return a finding in words."""
    return finding_report(finding, finding.subject.source, (1, 1))


def assert_no_repetition(items):
    """Hold the headline of findings against what is said below it."""
    headline = verdict(items)
    assert headline is not None
    words = re.findall(r"\w\S*", headline.text)
    runs = {" ".join(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}
    for item in items:
        if item.fingerprint == headline.fingerprint:
            assert item.reason not in headline.text
            assert not any(run in item.reason for run in runs), (headline.text, item.reason)


@pytest.mark.parametrize("each", CHECKS.values(), ids=lambda each: each.id)
def test_the_headline_of_an_example_does_not_repeat_the_reason(each):
    assert_no_repetition([report(finding) for finding in check_example(each)])


@pytest.mark.parametrize(
    "each", [each for each in CHECKS.values() if not each.example.replaces], ids=lambda each: each.id
)
def test_so_it_does_not_beside_another_pod(each):
    options = CheckOptions(inject=each.example.inject)
    found = check(bundle_of(plain_objects(examples.documents(each.example.text, OTHER))), options)
    if found:
        assert_no_repetition([report(finding) for finding in found])


def test_a_class_that_a_limit_range_raises_makes_a_pod_safer_and_not_evicted_first():
    text = examples.documents(CHECKS["PQ201"].example.text, OTHER)
    headline = verdict([report(finding) for finding in check(bundle_of(plain_objects(text)))])

    assert headline is not None
    assert headline.fate is Fate.SAFER
    assert (
        headline.text == "Pod debug-tools is safer than its manifest suggests, because default-limits changes its class"
    )


@st.composite
def manifests(draw):
    """Draw pods of one directory, some with a sidecar, and perhaps a LimitRange."""
    pods = []
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=2))
        containers = "".join(
            f"    - {{name: c{index}, image: i, resources: {{{size}}}}}\n" for index, size in enumerate(sizes)
        )
        priority = draw(st.sampled_from(["", "  priority: 10\n"]))
        pods.append(examples.pod(containers, name=f"pod-{name}", spec=priority))
    return examples.documents(*pods, *draw(st.sampled_from([(), (LIMIT_RANGE,)])))


def order_of(objects, way):
    """Return when pods die, by name: a smaller number is earlier."""
    bundle = bundle_of(objects)
    context = CheckContext(bundle.surroundings, CheckOptions())
    pods = {each.sketch.subject.name: each.sketch.pod for each in first_phase(bundle, context)}
    places = _Places(_orders(pods, context))
    return places.kernel if way == "killed" else places.eviction


def with_what_it_is_taken_to_use(value, path):
    """Write the memory that containers without any are taken to use into an object."""
    for index, container in enumerate(value["spec"]["containers"]):
        resources = container["resources"]
        if f"containers[{index}]" in path and not any("memory" in side for side in resources.values()):
            for side in ("requests", "limits"):
                resources.setdefault(side, {})["memory"] = str(NOMINAL)


@given(manifests())
def test_what_is_said_to_die_before_another_because_of_a_finding_does_not_without_it(text):
    objects = plain_objects(text)
    found = check(bundle_of(objects))
    if not found:
        return
    items = [report(finding) for finding in found]
    assert_no_repetition(items)
    for finding, item in zip(found, items, strict=True):
        headline = verdict([item])
        assert headline is not None
        assert (", because " in headline.text) is (headline.is_cause and headline.fate is not Fate.NOT_CREATED)
        if headline.fate is not Fate.EARLIER or not headline.is_cause:
            continue
        without = deepcopy(objects)
        subject = without[finding.subject.position[0]]
        if finding.check == "PQ201":
            without = [each for each in without if each["kind"] != "LimitRange"]
        elif finding.patch.is_complete:
            apply_patch(subject, finding.patch)
        elif finding.check in {"PQ120", "PQ121"}:
            with_what_it_is_taken_to_use(subject, finding.path)
        elif finding.check == "PQ102":
            with_what_it_is_taken_to_use(subject, "containers[0] containers[1]")
        else:
            continue
        own = finding.subject.name
        found_before = {"evicted": finding.consequence.evicted_before, "killed": finding.consequence.killed_before}
        for way, other in found_before.items():
            if other is not None:
                now, then = order_of(objects, way), order_of(without, way)
                assert now[own] < now[other]
                assert then[own] >= then[other], headline.text
