"""What the kubelet writes about an eviction is read back, in the wording of every version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.pods import container, resources
from eviction.nodes import pod_of
from podqos.eviction.messages import (
    MessageKind,
    Shortage,
    local_storage_text,
    node_condition_text,
    pressure_text,
    read_message,
)
from podqos.eviction.pods import LocalStorageExcess, LocalStorageLimit
from podqos.eviction.signals import SIGNALS, NodeCondition, Signal, SignalObservation, available_quantity
from podqos.eviction.thresholds import ThresholdValue
from podqos.model.profile import parse_version
from podqos.model.quantity import Quantity
from podqos.model.stats import ContainerStats, FsStats, MemoryStats, PodStats

VERSIONS = ("1.11", "1.18", "1.25", "1.26", "1.33", "1.36")
GI, MI = 1 << 30, 1 << 20


@given(
    signal=st.sampled_from(list(Signal)),
    version=st.sampled_from(VERSIONS),
    used=st.lists(st.integers(0, 1 << 50), min_size=1, max_size=4),
    request=st.sampled_from(("0", "1", "100Mi", "0.5Gi", "1e9", "1500M")),
    threshold=st.sampled_from(("1", "100Mi", "1.5Gi", "123456789")),
    available=st.integers(0, 1 << 50),
    pod_level=st.booleans(),
)
def test_what_is_written_for_any_signal_in_any_version_reads_back(
    *, signal, version, used, request, threshold, available, pod_level
):
    profile, resource = parse_version(version), SIGNALS[signal].resource
    names = [f"c{number}" for number in range(len(used))]
    own = {"resources": resources("memory=3Gi")} if pod_level else {}
    web = pod_of("web", *(container(name, requests=f"{resource}={request}") for name in names), **own)
    stats = PodStats(
        containers=tuple(
            ContainerStats(name, MemoryStats(working_set_bytes=held), FsStats(used_bytes=held), FsStats(used_bytes=0))
            for name, held in zip(names, used, strict=True)
        ),
        memory=MemoryStats(working_set_bytes=sum(used)),
    )
    left = available_quantity(signal, SignalObservation(available, 1 << 60))
    met = ThresholdValue(Quantity.parse(threshold)).at(1 << 60)
    message = read_message(pressure_text(Shortage(resource, met, left), web, stats, profile).message)

    assert message is not None
    assert (message.kind, message.resource) == (MessageKind.PRESSURE, resource)
    assert signal in message.signals
    with_amounts = profile.eviction_message_amounts
    assert message.threshold == (met.value if with_amounts else None)
    assert message.available == (available if with_amounts else None)
    asked = Quantity.parse(request).value
    over = [(name, held, asked) for name, held in zip(names, used, strict=True) if held > asked]
    quoted = over if resource in {"memory", "ephemeral-storage"} else []
    assert [(each.name, each.used, each.request) for each in message.containers] == quoted
    if pod_level and resource == "memory" and profile.pod_level_resources:
        assert message.pod is not None
        assert (message.pod.used, message.pod.request) == (sum(used), 3 * GI)
    else:
        assert message.pod is None


@given(
    st.sampled_from(list(LocalStorageLimit)),
    st.sampled_from(("cache", "a-b-c", "x")),
    st.sampled_from(("1Gi", "0.5Gi", "1500", "2G")),
)
def test_a_limit_of_the_pods_own_reads_back(kind, name, limit):
    amount = Quantity.parse(limit)
    name = "" if kind is LocalStorageLimit.POD else name
    message = read_message(local_storage_text(LocalStorageExcess(kind, name, 1 << 40, amount)).message)
    assert message is not None
    assert (message.kind, message.limit_kind) == (MessageKind.LOCAL_STORAGE, kind)
    assert (message.limit_name, message.limit) == (name, amount.value)


@given(st.sets(st.sampled_from(list(NodeCondition)), min_size=1))
def test_the_conditions_that_kept_a_pod_out_read_back(conditions):
    message = read_message(node_condition_text(conditions))
    assert message is not None
    assert (message.kind, {*message.conditions}) == (MessageKind.NOT_ADMITTED, conditions)


@pytest.mark.parametrize(
    ("text", "kind", "resource", "signals"),
    [
        ("The node was low on compute resources.", MessageKind.PRESSURE, "", ()),  # 1.3
        ("The node was low on resource: nodefs.", MessageKind.PRESSURE, "ephemeral-storage", (Signal.NODEFS,)),  # 1.8
        ("The node was low on resource: imagefsInodes.", MessageKind.PRESSURE, "inodes", (Signal.IMAGEFS_INODES,)),
        ("The node was low on resource: [MemoryPressure DiskPressure].", MessageKind.NOT_ADMITTED, "", ()),  # 1.13
        ("The node was low on resource: EmptyDir.", MessageKind.LOCAL_STORAGE, "ephemeral-storage", ()),  # 1.8
        ('emptyDir usage exceeds the limit "1Gi"', MessageKind.LOCAL_STORAGE, "ephemeral-storage", ()),
        (
            "pod ephemeral local storage usage exceeds the total limit of containers {{1 0} {<nil>} 1 DecimalSI}",
            MessageKind.LOCAL_STORAGE,
            "ephemeral-storage",
            (),
        ),
        (
            'container\'s ephemeral local storage usage exceeds the limit "2Gi"',
            MessageKind.LOCAL_STORAGE,
            "ephemeral-storage",
            (),
        ),
    ],
)
def test_the_words_of_old_kubelets_are_known(text, kind, resource, signals):
    message = read_message(text)
    assert message is not None
    assert (message.kind, message.resource, message.signals) == (kind, resource, signals)


def test_up_to_1_25_a_message_has_usage_without_a_threshold():
    text = "The node was low on resource: memory. Container app was using 3Gi, which exceeds its request of 1Gi. "
    message = read_message(text)
    assert message is not None
    assert (message.threshold, message.available) == (None, None)
    assert [(each.name, each.used, each.request) for each in message.containers] == [("app", 3 * GI, GI)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all is well",
        "Evicted by the descheduler",
        "The node was low on resource: ",
        "The node was low on resource: \x1b[31mmemory",
        "x" * 1_000_000,
    ],
)
def test_what_is_no_such_message_is_none(text):
    assert read_message(text) is None


def test_amounts_that_are_none_are_not_known():
    low = "The node was low on resource: memory. "
    text = f"{low}Threshold quantity: 9Ei9, available: 99999999999999999999999999. "
    message = read_message(text + "Container a was using <nil>, request is 1e999999, has larger consumption of memory.")
    assert message is not None
    assert (message.threshold, message.available) == (None, None)
    assert [(each.used, each.request) for each in message.containers] == [(None, None)]


def test_a_message_of_many_megabytes_is_cut():
    one = "Container a was using 2, request is 1, has larger consumption of memory. "
    message = read_message("The node was low on resource: memory. " + one * 100_000)
    assert message is not None
    assert len(message.containers) == 100
