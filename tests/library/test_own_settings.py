"""``explain`` of a live cluster describes cgroups as the node of each pod has them."""

from __future__ import annotations

import json

import pytest

from cluster.serving import Request, status
from library.test_live_cluster import api_server
from podqos.cli.main import main

INFO = {"kubeletVersion": "v1.34.2", "containerRuntimeVersion": "cri-o://1.34.0"}
CONFIG = {"cgroupDriver": "cgroupfs", "cgroupRoot": "/own", "systemReserved": {"memory": "2Gi"}}


def answering(*, metrics: bool = True, configz: bool = True):
    """Return an API server whose nodes say how they are set up."""

    def answer(request: Request) -> object:
        if request.path.endswith("/configz"):
            return json.dumps({"kubeletconfig": CONFIG}).encode() if configz else status(503, "ServiceUnavailable")
        if request.path.endswith("/proxy/metrics"):
            text = (
                b"# TYPE kubelet_cgroup_version gauge\nkubelet_cgroup_version 1\n" if metrics else b"kubelet_other 1\n"
            )
            return 200, {"Content-Type": "text/plain"}, text
        found = api_server(request)
        if request.path != "/api/v1/nodes":
            return found
        nodes = json.loads(found)
        for node in nodes["items"]:
            node["status"]["nodeInfo"] = INFO
        return json.dumps(nodes).encode()

    return answer


def explained(capsys, *words: str) -> tuple[str, str]:
    assert main(["explain", *words]) == 0
    return capsys.readouterr()


def test_driver_root_reservations_and_cgroup_version_are_those_of_the_node(served, capsys):
    server = served(answering())
    out, err = explained(capsys, "pod/shell", "-v")
    assert "  cgroup  /own/kubepods/besteffort/pod" in out
    assert "cpu.shares=2" in out
    assert "\n  /own/kubepods " in out
    assert f"memory.limit_in_bytes={6 << 30}" in out
    assert "kubepods.slice" not in out
    assert "kubelet settings" not in err
    asked = {request.path.split("/")[4] for request in server.requests if request.path.endswith("/configz")}
    assert asked == {"atlas-1"}, "only the node of the pod is asked"


def test_version_and_runtime_are_those_of_the_node(served, capsys):
    served(answering())
    item = json.loads(explained(capsys, "pod/shell", "-o", "json").out)["items"][0]
    paths = [cgroup["ociPath"] for cgroup in item["cgroups"] if cgroup["level"] == "container"]
    assert all("crio-" in path for path in paths), paths


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(("--driver", "systemd"), "/own.slice/own-kubepods.slice", id="driver"),
        pytest.param(("--cgroup", "v2"), "cpu.weight=", id="cgroup"),
    ],
)
def test_options_win(served, capsys, words, expected):
    served(answering())
    assert expected in explained(capsys, "pod/shell", "-v", *words).out


def test_what_a_node_does_not_say_is_assumed_and_named(served, capsys):
    served(answering(metrics=False, configz=False))
    out, err = explained(capsys, "pod/shell", "-v")
    assert "/kubepods.slice/" in out
    assert "assumed: kubelet settings: defaults" in err
    assert "kubelet settings of node atlas-1: not known: " in err
    assert "cgroup version of node atlas-1: not known: the kubelet's metrics do not state it (--cgroup v1)" in err


def test_classes_alone_ask_no_kubelet(served, capsys):
    server = served(answering())
    explained(capsys, "pod/shell")
    assert not any("/proxy/" in request.path for request in server.requests)


def test_a_snapshot_knows_what_its_nodes_said(served, capsys, tmp_path):
    served(answering())
    assert main(["snapshot", "-o", "c.json"]) == 0
    capsys.readouterr()
    assert "  cgroup  /own/kubepods/besteffort/pod" in explained(capsys, "--snapshot", "c.json", "pod/shell", "-v").out
