"""Reading whole texts: what is found, what is reported, what is left alone."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from msgspec import structs

from podqos.manifest.contents import Reading
from podqos.manifest.lookup import Lookup
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.reading import read
from podqos.model.pod import QOSClass, Workload
from timing import takes_less_than

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(path.name for path in CORPUS.iterdir() if path.suffix in {".yaml", ".json"})


def expected_problems(name: str) -> list[str]:
    lines = (CORPUS / "problems.txt").read_text().splitlines()
    return [line for line in lines if line.startswith(f"{name}:")]


def lines_of(reading: Reading) -> list[str]:
    return [str(problem) for problem in reading.problems]


def kubectl(name: str) -> bytes:
    return gzip.decompress((CORPUS / f"kubectl-pods.{name}.gz").read_bytes())


@pytest.mark.parametrize("name", FILES)
def test_each_problem_is_one_line_with_place_reason_and_remedy(name: str):
    reading = read(name, (CORPUS / name).read_bytes())
    assert lines_of(reading) == expected_problems(name)


def test_the_corpus_and_its_problems_belong_together():
    named = {line.partition(":")[0] for line in (CORPUS / "problems.txt").read_text().splitlines()}
    assert named == set(FILES)


def test_what_is_sound_is_read_although_its_neighbours_are_not():
    names = {
        name: [workload.metadata.name for workload in read(name, (CORPUS / name).read_bytes()).workloads]
        for name in FILES
    }
    found = {name: workloads for name, workloads in names.items() if workloads}
    assert found == {
        "list.json": ["c", "d"],
        "misspelt.yaml": ["bystander"],
        "status.yaml": ["exported"],
        "stream.json": ["a"],
    }


POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n  - name: a\n"


def test_objects_and_documents_are_told_apart():
    text = "\n---\n".join(
        (
            POD.format(name="p"),
            "apiVersion: v1\nkind: LimitRange\nmetadata:\n  name: l\n  namespace: n\nspec:\n  limits: []\n",
            "some: values\n",
            "- a list\n",
            "just a text\n",
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 5\n",
        )
    )
    reading = read("f", text.encode())
    assert [workload.metadata.name for workload in reading.workloads] == ["p"]
    assert [(other.kind, other.metadata.name) for other in reading.others] == [
        ("LimitRange", "l"),
        ("KubeletConfiguration", ""),
    ]
    assert (reading.skipped, reading.problems) == (3, ())


def test_a_byte_order_mark_and_windows_line_ends_change_nothing():
    text = POD.format(name="p") + "    resource: {}\n"
    plain = read("f", text.encode())
    windows = read("f", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert lines_of(plain) == lines_of(windows) != []


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"# nothing\n", b"---\n---\n", b"--- # a\n\n...\n", b"null\n"], ids=repr
)
def test_a_text_without_documents_is_worth_a_warning(data: bytes):
    (problem,) = read("f", data).problems
    assert problem == Problem("f", 1, 1, Severity.WARNING, "", "contains no documents")


HUGE = {
    "spaces": b" " * 5_000_000,
    "line ends": b"\n" * 5_000_000,
    "comments": b"# nothing\n" * 500_000,
    "separators": b"---\n" * 500_000,
    "one long comment": b"#" * 5_000_000,
}


@pytest.mark.parametrize("data", HUGE.values(), ids=HUGE.keys())
def test_a_huge_file_of_nothing_is_told_quickly(data: bytes):
    readings = []
    assert takes_less_than(2, lambda: readings.append(read("f", data)))
    assert lines_of(readings[0]) == ["f:1:1: warning: contains no documents"]


def test_utf_16_is_named():
    assert lines_of(read("f", POD.encode("utf-16"))) == ["f:1:1: error: the file is UTF-16 (save it as UTF-8)"]


def test_a_problem_stays_on_one_line_and_does_not_talk_to_the_terminal():
    (line,) = lines_of(read("f", b'apiVersion: v1\nkind: Pod\nmetadata: {name: "p"}\nspec: "a\\n\\e[31mb"\n'))
    assert line == r'f:4:1: error: spec: must be a mapping, not "a\n\x1b[31mb"'


def test_problems_come_in_the_order_of_the_text():
    reading = read("f", (CORPUS / "types.yaml").read_bytes())
    assert list(reading.problems) == sorted(reading.problems)
    assert [problem.line for problem in reading.problems] == [4, 6, 8, 9, 20, 22]


# ---- what kubectl prints ------------------------------------------------------------------------------------------


def test_kubectl_prints_the_same_pods_in_yaml_and_json():
    from_json, from_yaml = read("f", kubectl("json")), read("f", kubectl("yaml"))
    assert from_json.problems == from_yaml.problems == ()
    assert from_json.workloads == from_yaml.workloads
    assert len(from_json.workloads) == 5
    assert all(workload.is_live for workload in from_json.workloads)
    assert {workload.pod.status.qos_class for workload in from_json.workloads} == {
        QOSClass.BURSTABLE,
        QOSClass.GUARANTEED,
    }


def test_a_pod_list_gives_the_pods_that_kubectls_list_gives():
    value = json.loads(kubectl("json"))
    for item in value["items"]:
        del item["kind"], item["apiVersion"]
    value["kind"] = "PodList"
    assert read("f", json.dumps(value).encode()).workloads == read("f", kubectl("json")).workloads


def test_the_express_lane_for_lists_of_pods_ends_where_the_general_way_does():
    """One object that is no live pod sends the whole list the general way."""
    express = read("f", kubectl("json"))
    value = json.loads(kubectl("json"))
    value["items"].append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}})
    general = read("f", json.dumps(value, indent=4).encode())
    assert general.workloads == express.workloads
    assert [place.path for place in general.places] == [place.path for place in express.places]
    assert [other.metadata.name for other in general.others] == ["s"]


DAMAGE = {
    "misspelt resources": lambda item: item["spec"]["containers"][0]["resources"].update(request={}),
    "bad amount": lambda item: item["spec"]["containers"][0]["resources"].update(limits={"cpu": "x"}),
    "no containers": lambda item: item["spec"].update(containers=[]),
    "unknown class": lambda item: item["status"].update(qosClass="Best"),
    "another kind": lambda item: item.update(kind="pod"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_one_bad_pod_in_a_live_list_is_reported_and_the_others_read(damage):
    value = json.loads(kubectl("json"))
    damage(value["items"][2])
    reading = read("f", json.dumps(value, indent=4).encode())
    assert len(reading.workloads) == 4
    assert [problem.severity for problem in reading.problems] == [Severity.ERROR]


# ---- notations ----------------------------------------------------------------------------------------------------

VALUE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}]},
}
NOTATIONS = {
    "json": json.dumps(VALUE),
    "indented json": json.dumps(VALUE, indent=4),
    "json as yaml": "# a comment makes it YAML\n" + json.dumps(VALUE),
    "yaml": POD.format(name="p") + "    resources:\n      limits:\n        cpu: 1500m\n        memory: 1Gi\n",
    "numbers": POD.format(name="p") + "    resources:\n      limits:\n        cpu: 1.50\n        memory: 0x40000000\n",
    "anchors": "x: &l {cpu: 1500m, memory: 1Gi}\n" + POD.format(name="p") + "    resources: {limits: *l}\n",
    "second document": "a: b\n---\n" + json.dumps(VALUE),
}


@pytest.mark.parametrize("text", NOTATIONS.values(), ids=NOTATIONS.keys())
def test_a_pod_is_the_same_in_every_notation(text: str):
    def amounts(workload: Workload) -> object:
        return structs.asdict(workload.pod.spec.containers[0].resources)

    (workload,) = read("f", text.encode()).workloads
    (expected,) = read("f", NOTATIONS["json"].encode()).workloads
    assert workload.metadata == expected.metadata
    assert amounts(workload) == amounts(expected)


def test_a_stream_of_json_is_read_to_its_end():
    stream = " ".join(
        json.dumps({**VALUE, "metadata": {"name": f"ü{number}"}}, ensure_ascii=False) for number in range(3)
    )
    reading = read("f", stream.encode())
    assert [workload.metadata.name for workload in reading.workloads] == ["ü0", "ü1", "ü2"]
    assert not reading.problems


@pytest.mark.parametrize("depth", [100, 500, 950, 980, 990, 1000, 2000, 100_000])
def test_deep_json_is_read_once_or_not_at_all(depth: int):
    deep = {"kind": "Thing", "apiVersion": "v1", "metadata": {"name": "deep"}}
    items = ",".join((json.dumps(VALUE), json.dumps(deep)[:-1] + ', "x": ' + "[" * depth + "]" * depth + "}"))
    reading = read("f", f'{{"apiVersion": "v1", "kind": "List", "items": [{items}]}}'.encode())
    assert len(reading.workloads) <= 1
    assert len(reading.workloads) + len(reading.problems) >= 1


TWICE = {
    "yaml": (
        POD.format(name="p").encode() + b"    image: x\n    image: z\n",
        'f:9:5: warning: key "image" is set twice (it is already set on line 8)',
    ),
    "json": (
        b'{"apiVersion": "v1","kind":"Pod","metadata":{"name":"o","name":"p"},"spec":{"containers":[{"name":"a"}]}}',
        'f:1:57: warning: key "name" is set twice (remove one of them)',
    ),
}


@pytest.mark.parametrize(("text", "problem"), TWICE.values(), ids=TWICE.keys())
def test_a_workload_with_a_key_set_twice_is_reported_and_read_as_kubectl_reads_it(text: bytes, problem: str):
    reading = read("f", text)
    assert lines_of(reading) == [problem]
    assert [workload.metadata.name for workload in reading.workloads] == ["p"]


def test_json_documents_may_follow_each_other_without_a_separator():
    pod = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME"}, "spec": {"containers": [{"name": "c"}]}}'
    text = "".join((pod.replace("NAME", "a"), "\n\n", pod.replace("NAME", "b"), pod.replace("NAME", "c"), "\n---\n"))
    reading = read("f", (text + POD.format(name="d")).encode())
    assert lines_of(reading) == []
    assert [workload.metadata.name for workload in reading.workloads] == ["a", "b", "c", "d"]
    lookup = Lookup(text.encode())
    assert lookup.locate(reading.places[2], "metadata.name") == (3, len(pod) - 3 + pod.index('"name"') + 1)


def test_what_begins_like_json_and_is_yaml_is_read_as_yaml():
    text = b'{"apiVersion": v1, "kind": Pod, metadata: {name: p},\n "spec": {"containers": [{"name": c}]}}\n'
    reading = read("f", text)
    assert lines_of(reading) == []
    assert Lookup(text).locate(reading.places[0], "spec.containers[0].name") == (2, 27)
    assert lines_of(read("f", b'{"a": ]')) == ["f:1:7: error: broken JSON: Expecting value"]
