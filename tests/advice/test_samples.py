from __future__ import annotations

import json

import pytest

from podqos.advice.sizing.matching import match_samples
from podqos.advice.sizing.memory_need import Replica
from podqos.advice.sizing.samples import ContainerSamples, read_samples
from podqos.advice.sizing.sizing import MIB
from podqos.errors import InputError
from podqos.model.pod import Container, Pod, PodSpec
from podqos.orders.drift import Identity


def series(name: str, values: list[tuple[float, str]], **labels: str) -> dict:
    """Make a series of a matrix."""
    named = {"__name__": name} if name else {}
    return {"metric": {**named, "namespace": "prod", "pod": "web-1", "container": "app", **labels}, "values": values}


def prometheus(*result: dict, kind: str = "matrix", status: str = "success") -> bytes:
    return json.dumps({"status": status, "data": {"resultType": kind, "result": result}}).encode()


def test_a_row_of_csv_is_a_sample():
    text = b"time,pod,container,memory,cpu,oomKills\n1,prod/web,app,100Mi,250m,\n2,prod/web,app,200Mi,0.5,1\n"
    (found,) = read_samples("u.csv", text)
    assert (found.pod, found.container) == ("prod/web", "app")
    assert (found.memory_bytes, found.cpu_milli, found.oom_kills) == ((100 * MIB, 200 * MIB), (250, 500), 1)


def test_json_has_the_same_names():
    text = json.dumps([{"pod": "web", "memory": "100Mi"}, {"pod": "web", "memory": 1048576, "cpu": 0.25}]).encode()
    (found,) = read_samples("u.json", text)
    assert (found.memory_bytes, found.cpu_milli) == ((100 * MIB, MIB), (250,))


def test_prometheus_names_say_what_is_measured():
    """Memory as it is; of a counter of cpu seconds, what was used in between; of OOM events, their number."""
    answer = prometheus(
        series("container_memory_working_set_bytes", [(0, "1048576"), (60, "2097152")]),
        series("container_cpu_usage_seconds_total", [(0, "100"), (60, "130"), (120, "6"), (180, "36")]),
        series("container_oom_events_total", [(0, "2"), (60, "3"), (120, "1")]),
    )
    (found,) = read_samples("p.json", answer)
    assert found.pod == "prod/web-1"
    assert found.memory_bytes == (MIB, 2 * MIB)
    # 30 s in 60 s; after a restart the counter begins anew: 6 s in 60 s; 30 s in 60 s.
    assert found.cpu_milli == (500, 100, 500)
    assert found.oom_kills == 2


def test_the_last_reason_of_termination_counts_once_if_it_is_an_oom_kill():
    name = "kube_pod_container_status_last_terminated_reason"
    answer = prometheus(
        series(name, [(0, "1"), (60, "1")], reason="OOMKilled"),
        series(name, [(0, "1")], reason="Completed", pod="web-2"),
    )
    assert [(each.pod, each.oom_kills) for each in read_samples("p.json", answer)] == [("prod/web-1", 1)]


def test_a_result_without_a_name_is_what_the_caller_says():
    answer = prometheus(series("", [(0, "0.25"), (60, "1.5")]))
    (cpu,) = read_samples("p.json", answer, unnamed="cpu")
    assert cpu.cpu_milli == (250, 1500)
    (memory,) = read_samples("p.json", prometheus(series("", [(0, "1048576")])))
    assert memory.memory_bytes == (MIB,)


def test_sums_of_pods_and_the_sandbox_are_left_out():
    name = "container_memory_working_set_bytes"
    answer = prometheus(
        series(name, [(0, "1")], container=""), series(name, [(0, "1")], container="POD"), series(name, [(0, "2")])
    )
    assert [each.memory_bytes for each in read_samples("p.json", answer)] == [(2,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            b"pod,memry\nweb,1Gi\n", r"u:1: unknown column 'memry' \(did you mean \"memory\"\?\)", id="column"
        ),
        pytest.param(b"pod,memory\nweb,lots\n", "u:2: ", id="amount"),
        pytest.param(b"pod,memory\nweb,-1\n", "below zero", id="negative"),
        pytest.param(b"pod,memory\nweb\n", "more or fewer columns", id="columns"),
        pytest.param(b"pod,memory\n,1Gi\n", "the row has no pod", id="no-pod"),
        pytest.param(b"pod,memory\n", "no samples", id="empty"),
        pytest.param(b"", "no samples", id="nothing"),
        pytest.param(b"{", "not JSON", id="broken"),
        pytest.param(b"[1]", r"u: \[0\]: a sample must be an object", id="no-object"),
        pytest.param(b'{"status": 1, "data": []}', "not a Prometheus response", id="another-shape"),
        pytest.param(prometheus(kind="vector"), "the result is a vector", id="instant-query"),
        pytest.param(b'{"status": "error", "error": "bad"}', "Prometheus returned error: bad", id="prometheus-error"),
        pytest.param(prometheus(series("up", [])), "unknown metric up", id="metric"),
        pytest.param(prometheus(series("", [(0, "NaN")])), "no samples", id="nan"),
        pytest.param(prometheus(series("", [], pod="")), "no pod label", id="no-label"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_place(text, message):
    with pytest.raises(InputError, match=message):
        read_samples("u", text)


def pods(*names: str, containers: tuple[str, ...] = ("app",)) -> dict[Identity, Pod]:
    """Make workloads by ``namespace/name``."""
    spec = PodSpec(containers=tuple(Container(name) for name in containers))
    return {Identity(*_split(name)): Pod(spec=spec) for name in names}


def _split(name: str) -> tuple[str, str, str]:
    namespace, _, rest = name.partition("/")
    return namespace, "Deployment", rest


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ("prod/web", "web"),
        ("prod/web-7d8b9c4f5-x2k9p", "web"),
        ("prod/web-api-7d8b9c4f5-x2k9p", "web-api"),
        ("web-0", "web"),
        ("other/web", None),
        ("website", None),
        ("prod/web-shop-7d8b9c4f5-x2k9p", None),  # of a Deployment web-shop, which is not here
        ("prod/web-29384756-x2k9p", "web"),
        ("prod/web-api-0", "web-api"),
    ],
)
def test_a_pod_belongs_to_the_longest_name_it_begins_with(pod, expected):
    samples = read_samples("u", f"pod,memory\n{pod},1Mi\n".encode())
    matched = match_samples(pods("prod/web", "prod/web-api"), samples)
    assert [identity.name for identity in matched.usages] == ([expected] if expected else [])
    assert matched.unmatched == (() if expected else (pod,))


def test_the_samples_of_all_pods_are_one_collection():
    samples = read_samples("u", b"pod,container,memory\nweb-a,app,1Mi\nweb-b,app,2Mi\nweb-b,proxy,3Mi\n")
    matched = match_samples(pods("prod/web"), samples)
    (usage,) = matched.usages.values()
    assert usage["app"].memory_bytes == (MIB, 2 * MIB)
    assert matched.unmatched == ("web-b proxy",)


def test_every_pod_is_a_replica_of_its_own_and_those_of_a_job_are_runs():
    samples = (
        ContainerSamples("web-a", memory_bytes=(MIB,), memory_times_us=(5,), oom_limit_bytes=7),
        ContainerSamples("web-b", memory_bytes=(2 * MIB, 3 * MIB), memory_times_us=(9, 8)),
    )
    (usage,) = match_samples(pods("prod/web"), samples).usages.values()
    assert usage["app"].replicas == (Replica((MIB,), (5,)), Replica((3 * MIB, 2 * MIB), (8, 9)))
    assert usage["app"].oom_limit_bytes == 7
    assert not usage["app"].is_runs
    job = {Identity("prod", "Job", "web"): Pod(spec=PodSpec(containers=(Container("app"),)))}
    (usage,) = match_samples(job, samples).usages.values()
    assert usage["app"].is_runs


def test_an_init_container_runs_and_ends_and_a_sidecar_does_not():
    containers = {
        "app": Container("app"),
        "once": Container("once"),
        "proxy": Container("proxy", restart_policy="Always"),
    }
    pod = Pod(spec=PodSpec(containers=(containers["app"],), init_containers=(containers["once"], containers["proxy"])))
    samples = [ContainerSamples("web-a", name, memory_bytes=(MIB,)) for name in containers]
    (usage,) = match_samples({Identity("prod", "Deployment", "web"): pod}, samples).usages.values()
    assert {name: usage[name].is_runs for name in containers} == {"app": False, "once": True, "proxy": False}
