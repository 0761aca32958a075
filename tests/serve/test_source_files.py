"""What the page is about is recognised by what files hold, whatever they are called."""

from __future__ import annotations

import gzip
import json

import pytest

from podqos.errors import InputError
from podqos.manifest.encoding import json_line
from podqos.page.session import SourceKind
from podqos.reading.scenario_files import load_scenario
from podqos.runs.layout import with_pictures
from podqos.runs.run import simulate
from podqos.serve.sources import read_given, read_paths, varied
from podqos.serve.work import page_about
from serve.test_feeds_of_files import POD, SCENARIO

WEB = POD.replace("NAME", "web").encode()
SMALL = SCENARIO.replace("NAME", "web").replace("[manifests]", "[pod.yaml]").encode()
SNAPSHOT = b"\n".join(
    json.dumps(each).encode()
    for each in (
        {"apiVersion": "podqos.dev/v1alpha1", "kind": "ClusterSnapshot", "serverVersion": "v1.36.0"},
        {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}]},
        {"kind": "End", "lines": 2},
    )
)
LOG = b"[1.0] a invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0\n[1.1] Out of memory: Killed process 1 (a)\n"
JOURNAL = b'{"time_us":1,"node":"a","kind":"PodStarted","pod":"shop/web"}\n'
USAGE = b"pod,memory\nshop/web,50Mi\n"
TOP = b"NAMESPACE  NAME  CPU(cores)  MEMORY(bytes)\nshop       web   1m          50Mi\n"
LIST = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": []}).encode()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"pod.yaml": WEB}, SourceKind.MANIFESTS),
        ({"pasted": WEB}, SourceKind.MANIFESTS),
        ({"list.json": LIST}, SourceKind.MANIFESTS),
        ({"pod.yaml": WEB, "usage.csv": USAGE}, SourceKind.MANIFESTS),
        ({"pod.yaml": WEB, "top.txt": TOP}, SourceKind.MANIFESTS),
        ({"pod.yaml": WEB, "kern.log": LOG}, SourceKind.MANIFESTS),
        ({"small.yaml": SMALL, "pod.yaml": WEB}, SourceKind.SCENARIO),
        ({"a/small.yaml": SMALL, "a/pod.yaml": WEB}, SourceKind.SCENARIO),
        ({"cluster.json": SNAPSHOT}, SourceKind.SNAPSHOT),
        ({"pasted": SNAPSHOT, "kern.log": LOG}, SourceKind.SNAPSHOT),
        ({"kern.log": LOG}, SourceKind.LOG),
        ({"pasted": LOG}, SourceKind.LOG),
        ({"messages": b"Nov 16 03:00:00 a systemd: started\n", "kern.log": LOG}, SourceKind.LOG),
        ({"journal.jsonl": JOURNAL}, SourceKind.LOG),
        ({"kern.log": b"\0" * 512 + LOG}, SourceKind.LOG),  # as a crash leaves it
    ],
)
def test_files_are_recognised_by_what_they_hold(files, kind, pack):
    source = read_given({name: pack(data) for name, data in files.items()})
    assert source.kind is kind
    assert source.size_bytes == sum(map(len, files.values()))


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({"usage.csv": USAGE}, "a usage table without manifests"),
        ({"a.json": SNAPSHOT, "b.json": SNAPSHOT}, "more than one"),
        ({"a.yaml": SMALL, "b.yaml": SMALL, "pod.yaml": WEB}, "more than one"),
        ({"a.json": SNAPSHOT, "pod.yaml": WEB}, "a snapshot cannot be combined with manifests"),
        ({"small.yaml": SMALL}, "not among the given files"),
        ({"a.json": SNAPSHOT[:-20]}, "broken"),
        ({"photo.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"}, "photo.png: a PNG picture, which podqos cannot open"),
    ],
)
def test_what_does_not_go_together_is_said(files, what):
    with pytest.raises(InputError, match=what):
        read_given(files)


def test_a_run_is_shown_as_it_was_written(tmp_path):
    run = simulate(load_scenario("race")).report
    (tmp_path / "run.json").write_bytes(json_line(run))
    source = read_paths([str(tmp_path / "run.json")])
    assert source.kind is SourceKind.RUN
    assert source.run == with_pictures(run)


@pytest.mark.parametrize("field", ["timesUs", "systemBytes", "pods"])
def test_a_run_whose_series_do_not_belong_together_is_rejected(field):
    run = json.loads(json_line(simulate(load_scenario("race")).report))
    values = run["nodes"][0][field]
    run["nodes"][0][field] = [{**values[0], "pod": 99}] if field == "pods" else values[1:]
    with pytest.raises(InputError, match="not a run that this version can show"):
        read_given({"run.json": json.dumps(run).encode()})


def test_usage_is_that_of_the_pods_and_each_node_has_its_own():
    bound = POD.replace("spec:", "spec:\n  nodeName: node-NAME").replace("u1", "u-NAME")
    files = {f"{name}.yaml": bound.replace("NAME", name).encode() for name in "ab"}
    usage = b"pod,memory\na,50Mi\nshop/b,60Mi\nnobody,1Mi\n"
    view = page_about(source := read_given({**files, "usage.csv": usage})).cluster()
    assert {each.node: each.used_bytes for each in view.pods} == {"node-a": 50 << 20, "node-b": 60 << 20}
    assert [each.what for each in source.objects.problems] == ["no such pod: nobody"]


def test_values_of_a_scenario_can_be_changed_but_not_which_files_it_reads(tmp_path):
    (tmp_path / "pod.yaml").write_bytes(WEB)
    (tmp_path / "small.yaml").write_bytes(SMALL)
    (tmp_path / "secret.yaml").write_bytes(WEB)
    source = read_paths([str(tmp_path / "small.yaml")])
    limits = varied(source, ["limits.memory@web=1Gi"]).workloads[0].pod.spec.containers[0].resources.limits
    assert str(limits["memory"]) == "1Gi"
    with pytest.raises(InputError, match="not among the given files"):
        varied(source, [f"spec.manifests[0]={tmp_path / 'secret.yaml'}"])
