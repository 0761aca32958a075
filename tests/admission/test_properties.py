"""What holds for every pod and every policy, not only for the rows of tables."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import amounts as amounts_of
from admission.pods import quota, resources
from podqos.admission.chain import admit
from podqos.admission.defaulting import defaulted
from podqos.admission.limit_range import defaulted_limit_range
from podqos.admission.policies import Policies, validate_policies
from podqos.admission.resource_override import PROFILES, is_overridden
from podqos.admission.validation import validate_resources
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec, QOSClass
from podqos.model.policy import (
    ClusterResourceOverride,
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    Namespace,
)
from podqos.model.quantity import Quantity
from podqos.qos.classes import classify
from strategies import pods

OVERRIDDEN = Namespace(ObjectMeta("shop", labels={PROFILES["current"].opt_in_label: "true"}))


# Mostly what people write, so that many pods come through; amounts at and just beyond the bounds below.
SHAPES = [
    resources(requests, limits)
    for requests, limits in (
        ("", ""),
        ("cpu=100m,memory=64Mi", ""),
        ("", "cpu=1,memory=1Gi"),
        ("cpu=1,memory=1Gi", "cpu=1,memory=1Gi"),
        ("cpu=250m,memory=128Mi", "cpu=1,memory=1Gi"),
        ("cpu=0", "memory=1Gi"),
        ("", "memory=100M,example.com/dongle=2"),
        ("cpu=100u", "cpu=1500m"),
        ("cpu=2,memory=1Gi", "cpu=1"),
    )
]
ITEMS = [
    LimitRangeItem(kind, **{field: amounts_of(text) for field, text in bounds.items()})
    for kind, bounds in (
        ("Container", {"default": "cpu=1,memory=512Mi", "default_request": "cpu=100m,memory=128Mi"}),
        ("Container", {"default": "cpu=2"}),
        ("Container", {"max": "cpu=1,memory=1Gi"}),
        ("Container", {"max": "cpu=4", "min": "cpu=200m"}),
        ("Container", {"min": "memory=64Mi", "max_limit_request_ratio": "cpu=4"}),
        ("Pod", {"max": "cpu=2,memory=4Gi", "min": "cpu=100m"}),
        ("Pod", {"max_limit_request_ratio": "memory=2"}),
        ("Container", {"min": "cpu=2", "max": "cpu=1"}),
    )
]
HARD = ["pods=1", "pods=0", "requests.cpu=2,limits.memory=4Gi", "count/pods=3,requests.memory=1Gi", "services=1"]


def limit_ranges() -> st.SearchStrategy[LimitRange]:
    """LimitRanges of up to two items, some of them senseless."""
    return st.lists(st.sampled_from(ITEMS), min_size=1, max_size=2).map(
        lambda limits: LimitRange(ObjectMeta("lr"), LimitRangeSpec(tuple(limits)))
    )


def policies() -> st.SearchStrategy[Policies]:
    """Everything that decides, in both profiles of the override."""
    percentages = [(25, 25, 200), (50, 0, 0), (0, 29, 0), (100, 100, 0)]
    return st.builds(
        Policies,
        namespace=st.just(OVERRIDDEN),
        limit_ranges=st.lists(limit_ranges(), max_size=2).map(tuple),
        resource_quotas=st.lists(st.sampled_from(HARD).map(lambda hard: quota(hard=hard)), max_size=2).map(tuple),
        override=st.none() | st.sampled_from(percentages).map(lambda percent: ClusterResourceOverride(*percent)),
        override_profile=st.sampled_from(tuple(PROFILES.values())),
    )


@st.composite
def new_pods(draw: st.DrawFn) -> Pod:
    """Pods as a client sends them."""
    shapes = st.sampled_from(SHAPES)
    containers = draw(st.lists(shapes, min_size=1, max_size=2))
    init = draw(st.lists(st.tuples(shapes, st.sampled_from((None, "Always"))), max_size=1))
    return Pod(
        ObjectMeta("p"),
        PodSpec(
            tuple(Container(f"c{index}", "x", shape) for index, shape in enumerate(containers)),
            tuple(Container(f"i{index}", "x", shape, policy) for index, (shape, policy) in enumerate(init)),
            resources=draw(st.sampled_from([None, None, None, *SHAPES[:5]])),
        ),
    )


@given(pods())
def test_defaulting_twice_is_defaulting_once(pod):
    """The API server defaults an object every time it reads it."""
    once = defaulted(pod)
    assert defaulted(once) is once


@given(pods())
def test_defaulting_never_lowers_the_class(pod):
    """Filled-in requests can only bring a pod nearer to Guaranteed."""
    order = [QOSClass.BEST_EFFORT, QOSClass.BURSTABLE, QOSClass.GUARANTEED]
    assert order.index(classify(defaulted(pod)).qos_class) >= order.index(classify(pod).qos_class)


@given(pods())
def test_the_record_of_defaulting_tells_every_change(pod):
    """Replayed onto the pod, it gives the defaulted one."""
    record = []
    after = defaulted(pod, record=record)
    lists = {change.path: dict(_at(pod, change.path)) for change in record}
    for change in record:
        assert lists[change.path].get(change.resource) == change.before != change.after
        lists[change.path][change.resource] = change.after
    assert all(amounts == _at(after, path) for path, amounts in lists.items())
    assert bool(record) == (after != pod)


def _at(pod: Pod, path: str) -> dict[str, Quantity]:
    """Return the resource list at ``spec.containers[0].resources.requests`` and the like."""
    if path == "spec.overhead":
        return pod.spec.overhead
    where, _, side = path.rpartition(".")
    if where == "spec.resources":
        return getattr(pod.spec.resources, side)
    field, index = where.removeprefix("spec.").removesuffix("].resources").split("[")
    containers = pod.spec.containers if field == "containers" else pod.spec.init_containers
    return getattr(containers[int(index)].resources, side)


@given(limit_ranges())
def test_the_defaults_of_a_limit_range_are_filled_in_once(limit_range):
    """The stored object stays as it is."""
    once = defaulted_limit_range(limit_range)
    assert defaulted_limit_range(once) == once


@given(new_pods(), policies())
def test_an_admitted_pod_keeps_every_bound_and_has_no_field_errors(pod, rules):
    """Whatever the chain did to it."""
    admission = admit(pod, rules)
    if not admission.allowed:
        return
    stored = admission.pod
    assert validate_resources(stored) == ()
    for limit_range in rules.stored_limit_ranges():
        for item in limit_range.spec.limits:
            if item.type != "Container":
                continue
            for container in (*stored.spec.containers, *stored.spec.init_containers):
                assert all(container.resources.limits[name] <= most for name, most in item.max.items())
                assert all(container.resources.requests[name] >= least for name, least in item.min.items())


@given(new_pods(), policies())
def test_admitting_an_admitted_pod_changes_nothing(pod, rules):
    """Mutating admission may be run again by the API server at any time."""
    first = admit(pod, replace(rules, resource_quotas=()))
    if first.allowed:
        again = admit(first.pod, replace(rules, resource_quotas=()))
        assert again.pod == first.pod


@given(new_pods(), policies())
def test_the_steps_chain_up_and_end_at_the_stored_class(pod, rules):
    """Each step begins where the one before ended."""
    admission = admit(pod, rules)
    results = admission.steps
    assert all(before.class_after is after.class_before for before, after in pairwise(results))
    if admission.allowed:
        assert results[-1].class_after is admission.pod.status.qos_class
    else:
        assert admission.refusal.message
        assert admission.refused_by is not None


@given(new_pods(), policies())
def test_an_allowed_pod_never_takes_a_quota_beyond_its_ceiling(pod, rules):
    """And a refused one is not counted."""
    admission = admit(pod, rules)
    for status in (charged.status for charged in admission.quotas):
        assert all(status.used[name] <= most for name, most in status.hard.items() if status.used[name])


@given(new_pods(), policies())
def test_one_order_of_limit_ranges_is_as_good_as_another_unless_it_was_said(pod, rules):
    """The warning is exact: without one, the order does not decide what a container gets."""
    if rules.conflicts():
        return
    turned = replace(rules, limit_ranges=rules.limit_ranges[::-1])
    resources = [c.resources for c in admit(pod, rules).pod.spec.containers]
    assert resources == [c.resources for c in admit(pod, turned).pod.spec.containers]


@given(policies())
def test_checking_policies_never_fails(rules):
    """Senseless policies give complaints, not exceptions."""
    assert all(str(error) for error in validate_policies(rules))
    assert isinstance(is_overridden(OVERRIDDEN, rules.override_profile), bool)
