"""Whatever a text file holds, the outcome is an answer or one clear line: never a traceback, never a long wait."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podqos.agent.journal import By, Entry, Kind, decode, encode
from podqos.cli.journals import in_words
from podqos.cli.main import main
from podqos.errors import InputError
from timing import takes_less_than

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, annotations: {podqos.dev/ignore: PQ101}}
spec:
  containers:
    - {name: app, image: web:1, resources: {requests: {memory: 1Gi, cpu: 250m}, limits: {memory: 2Gi}}}
"""
SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  duration: 10s
  manifests: [pod.yaml]
  nodes: [{name: worker, count: 1, capacity: {cpu: 4, memory: 8Gi}}]
  workloads: [{workload: shop/web, demand: {memory: 100Mi + 10Mi per second}}]
"""
KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 5%, nodefs.available: 1Gi}
evictionSoft: {memory.available: 1Gi}
evictionSoftGracePeriod: {memory.available: 30s}
kubeReserved: {memory: 512Mi, cpu: 100m}
"""
WRITTEN = ""
"""What the command itself writes."""
STATS = """\
{"node": {"nodeName": "w", "memory": {"time": "2026-01-01T00:00:00Z", "availableBytes": 4, "workingSetBytes": 4}},
 "pods": [{"podRef": {"name": "web", "namespace": "shop", "uid": "u"}, "memory": {"workingSetBytes": 9}}]}
"""
PODS = """\
{"kind": "PodList", "apiVersion": "v1", "items": [
    {"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"containers": [{"name": "app"}]}}
]}
"""
DESCRIPTION = "- name: shop/web\n  latencySensitive: true\n  restartCost: high\n"

COMMANDS = {
    "usage": ("pod,container,memory,processes\nweb,app,300Mi,1\n", "rank -f pod.yaml --node-memory 8Gi --usage FILE"),
    "usage as YAML": ("- {pod: web, memory: 300Mi, inodes: 3}\n", "rank -f pod.yaml --node-memory 8Gi --usage FILE"),
    "samples": (
        "time,pod,container,memory,cpu\n0,web,app,300Mi,1\n9,web,app,1e8,2\n",
        "advise -f pod.yaml --usage FILE",
    ),
    "samples of Prometheus": (
        (
            '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"web","container":"app",'
            '"__name__":"container_memory_working_set_bytes"},"values":[[0,"1e8"],[60,"2e8"]]}]}}'
        ),
        "advise -f pod.yaml --usage FILE",
    ),
    "description": (DESCRIPTION, "advise -f pod.yaml --describe FILE"),
    "baseline": (WRITTEN, "check -f pod.yaml --baseline FILE"),
    "configuration": (
        (
            "disable: [PQ101]\nkinds: {Widget: spec.pod}\nignore: [{checks: [PQ1*], paths: ['**/x'], reason: known}]\n"
            "options: {nodeMemory: 8Gi, growthPerSecond: 10Mi}\nkubernetesVersion: '1.36'\n"
        ),
        "check -f pod.yaml --config-file FILE",
    ),
    "kubelet": (KUBELET, "thresholds -f FILE --node-memory 8Gi"),
    "kubelet of a rank": (KUBELET, "rank -f pod.yaml --node-memory 8Gi --kubelet-config FILE"),
    "stats": (STATS, "rank --pods pods.json --stats FILE --node-memory 8Gi"),
    "scenario": (SCENARIO, "scenario validate FILE"),
    "manifest explained": (POD, "explain -f FILE -o json"),
    "manifest admitted": (POD, "admit -f FILE"),
    "manifest checked": (POD, "check -f FILE -o sarif"),
    "manifest ranked": (POD, "rank -f FILE --node-memory 8Gi"),
    "manifest placed": (POD, "place -f FILE --nodes 2 --node-capacity cpu=4,memory=8Gi"),
    "manifest compared": (POD, "drift pod.yaml FILE"),
    "injector": (POD, "drift pod.yaml pod.yaml --inject FILE"),
}
PIECES = [
    *(b"\r", b"\n", b"\r\n", b"\x00", b"\x1b[31m", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xff\xfe", b'"'),
    *(b"'", b",", b",,", b":", b"{", b"}", b"[", b"]", b"- ", b"null", b"true", b"-1", b"1e999", b"NaN", b"&a "),
    *(b"*a", b"!!binary ", b"9" * 30, b"9" * 4000, b"9" * 5000, b"0." + b"0" * 4000 + b"1", b"x" * 200_000),
    *(b"100000000", b"[" * 3000, b"\\ud800", b"=1+1", b"---\n", b"? ", b"<<: ", "٣".encode(), "²".encode(), b"\x85"),
]  # fmt: skip
MUTATIONS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True), st.sampled_from(("insert", "replace", "cut")), st.sampled_from(PIECES)
    ),
    min_size=1,
    max_size=4,
)
SECONDS = 5


def mutated(text: str, mutations: list[tuple[float, str, bytes]]) -> bytes:
    data = text.encode()
    for share, kind, piece in mutations:
        at = int(share * (len(data) + 1))
        if kind == "cut":
            data = data[:at] + data[at + len(piece) % 40 :]
        else:
            data = data[:at] + piece + data[at + (min(len(piece), 8) if kind == "replace" else 0) :]
    return data


@contextmanager
def captured() -> Iterator[Callable[[], str]]:
    before = sys.stdout, sys.stderr
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in before]
    sys.stdout, sys.stderr = streams
    try:
        yield lambda: streams[1].buffer.getvalue().decode()
    finally:
        for stream in streams:
            stream.flush()
        sys.stdout, sys.stderr = before


def outcome(arguments: list[str]) -> None:
    """Run a command; raises what it does not handle."""
    assert takes_less_than(SECONDS, lambda: _outcome(arguments))


def _outcome(arguments: list[str]) -> None:
    with captured() as errors:
        code = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        said = errors()
    assert code in {0, 1, 2}
    assert code != 2 or said.strip()
    assert "\x1b" not in said
    assert "\r" not in said


@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_text_gets_an_answer_or_one_clear_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(POD)
    Path("small.yaml").write_text(SCENARIO)
    Path("pods.json").write_text(PODS)
    text, command = COMMANDS[name]
    file = Path("file.yaml")
    arguments = [file.name if word == "FILE" else word for word in command.split()]
    if text:
        file.write_text(text)
    elif name == "baseline":
        main([*arguments, "--write-baseline"])
    with captured():
        assert main(arguments) in {0, 1}, "the text is good before it is damaged"
    text = file.read_text()

    @settings(derandomize=True, deadline=None, max_examples=40, database=None)
    @given(MUTATIONS)
    def damaged(mutations):
        file.write_bytes(mutated(text, mutations))
        outcome(arguments)

    damaged()


@settings(derandomize=True, deadline=None, max_examples=200, database=None)
@given(MUTATIONS)
def test_a_damaged_journal_is_shown_or_refused_by_its_line(mutations):
    entry = Entry(1_000_000, "worker", Kind.OOM_KILLED, pod="shop/web", container="app", by=By.KERNEL)
    data = mutated(encode([entry, entry]).decode(), mutations)
    with suppress(InputError):
        list(decode(data, "journal"))
    for line in data.splitlines(keepends=True):
        shown = in_words(line).decode()
        assert shown.count("\n") == 1
        assert "\x1b" not in shown


def test_a_journal_with_a_time_beyond_the_calendar_is_shown():
    entry = Entry(10**30, "worker", Kind.OOM_KILLED, pod="shop/web")
    assert b"shop/web" in in_words(encode([entry]))
