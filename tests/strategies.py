"""Generators of Kubernetes values for property tests. Each is made once: that takes longer than to draw from it."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st
from msgspec.structs import replace

from podqos.admission.defaulting import defaulted
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements, largest_of

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+6")


@cache
def quantity_texts() -> st.SearchStrategy[str]:
    """Texts that Kubernetes accepts as amounts, in every notation."""
    digits = st.text("0123456789", min_size=1, max_size=12)
    fraction = st.one_of(st.just(""), st.just("."), st.text("0123456789", min_size=1, max_size=12).map(".{}".format))
    return st.builds("{}{}{}{}".format, st.sampled_from(("", "+", "-")), digits, fraction, st.sampled_from(SUFFIXES))


@cache
def quantities() -> st.SearchStrategy[Quantity]:
    """Amounts, in every notation."""
    return quantity_texts().map(Quantity.parse)


@cache
def amounts() -> st.SearchStrategy[Quantity]:
    """Amounts as people write them in manifests, zero among them."""
    return st.sampled_from(("0", "1", "2", "100m", "250m", "500m", "1500m", "64Mi", "128Mi", "1Gi", "4Gi")).map(
        Quantity.parse
    )


@cache
def resource_lists() -> st.SearchStrategy[dict[str, Quantity]]:
    """Resource lists with any of cpu, memory and two resources that do not decide the class."""
    return st.dictionaries(
        st.sampled_from(("cpu", "memory", "ephemeral-storage", "example.com/dongle")), amounts(), max_size=4
    )


@cache
def resource_requirements() -> st.SearchStrategy[ResourceRequirements]:
    """Draw requests and limits apart (so often invalid) or equal."""
    apart = st.builds(ResourceRequirements, requests=resource_lists(), limits=resource_lists())
    equal = resource_lists().map(lambda amounts: ResourceRequirements(amounts, amounts))
    return st.one_of(apart, equal)


@cache
def containers(restart_policies: tuple[str | None, ...] = (None,)) -> st.SearchStrategy[Container]:
    """Containers without names; ``pods`` names them."""
    return st.builds(Container, resources=resource_requirements(), restart_policy=st.sampled_from(restart_policies))


_REGULAR = st.lists(containers(), min_size=1, max_size=3)
_INIT = st.lists(containers((None, "Always")), max_size=3)
_POD_LEVEL = st.none() | resource_requirements()
_OVERHEAD = st.just({}) | resource_lists()


@st.composite
def pods(draw: st.DrawFn, *, pod_level: bool = True) -> Pod:
    """Pods with containers, init containers, sidecars and, where wanted, pod-level resources."""
    regular = draw(_REGULAR)
    init = draw(_INIT)
    return Pod(
        metadata=ObjectMeta(name="pod", namespace="default"),
        spec=PodSpec(
            containers=tuple(_named(container, f"c{index}") for index, container in enumerate(regular)),
            init_containers=tuple(_named(container, f"i{index}") for index, container in enumerate(init)),
            resources=draw(_POD_LEVEL) if pod_level else None,
            overhead=draw(_OVERHEAD),
        ),
    )


@cache
def _requests_within_limits() -> st.SearchStrategy[ResourceRequirements]:
    def ordered(drawn: dict[str, tuple[Quantity | None, Quantity | None]]) -> ResourceRequirements:
        requests, limits = {}, {}
        for name, (low, high) in drawn.items():
            if low is not None:
                requests[name] = low if high is None else min(low, high)
            if high is not None:
                limits[name] = high if low is None else max(low, high)
        return ResourceRequirements(requests, limits)

    either = st.none() | amounts()
    return st.dictionaries(st.sampled_from(("cpu", "memory")), st.tuples(either, either)).map(ordered)


_REGULAR_ACCEPTED = st.lists(_requests_within_limits(), min_size=1, max_size=3)
_INIT_ACCEPTED = st.lists(st.tuples(_requests_within_limits(), st.sampled_from((None, "Always"))), max_size=3)


@st.composite
def accepted_pods(draw: st.DrawFn) -> Pod:
    """Pods that the API server accepts, as it stores them: requests within limits, the pod's own above the sums."""
    regular = draw(_REGULAR_ACCEPTED)
    init = draw(_INIT_ACCEPTED)
    pod = defaulted(
        Pod(
            spec=PodSpec(
                containers=tuple(Container(f"c{index}", "app", each) for index, each in enumerate(regular)),
                init_containers=tuple(Container(f"i{index}", "app", *each) for index, each in enumerate(init)),
            )
        )
    )
    if draw(st.booleans()):
        requests = pod_requests(pod)
        limits = largest_of((requests, pod_limits(pod), draw(_requests_within_limits()).limits))
        pod = defaulted(replace(pod, spec=replace(pod.spec, resources=ResourceRequirements(requests, limits))))
    return pod


def _named(container: Container, name: str) -> Container:
    return Container(name, container.image, container.resources, container.restart_policy)
