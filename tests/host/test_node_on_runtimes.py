"""A whole node on each container runtime: restarts, probes, kernel kills, evictions, adoption, and nothing left."""

from __future__ import annotations

import shutil
import tempfile

import pytest
from msgspec.structs import replace

from host.container_images import Layout, directory, file, layer
from host.machine import MI, needs_node
from host.nodes import NodeStage, kubelet, pod_document, running_node
from host.runtime_stages import IMAGE, mounts_below
from podqos.agent.journal import Kind
from podqos.errors import HostError
from podqos.host.api.pod_list import PodList
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.runtimes.choice import RuntimeChoice, RuntimeName

pytestmark = [pytest.mark.slow, needs_node]

STEADY = 'trap "exit 0" TERM; echo up >> /mnt/ups; while :; do sleep 0.05; done'
# Takes 64 MiB once it is told to, and keeps them.
GROW = 'echo up; while [ ! -e /mnt/go ]; do sleep 0.05; done; x=$(printf %01048576d 0); x=$x$x$x$x$x$x$x$x; \
x=$x$x$x$x$x$x$x$x; trap "exit 0" TERM; while :; do sleep 0.05; done'
OUT_OF_MEMORY = "x=xxxxxxxx; while :; do x=$x$x; done"
WITH_IMAGES = [name for name in RuntimeName if name is not RuntimeName.PROCESS]


def document(name: str, script: str, memory: str | None, volume, **container: object) -> dict:
    amounts = {} if memory is None else {"limits": {"memory": memory, "cpu": "500m"}}
    return pod_document(
        name,
        image=IMAGE,
        args=[script],
        resources=amounts,
        volumeMounts=[{"name": "v", "mountPath": "/mnt"}],
        spec={"terminationGracePeriodSeconds": 5, "volumes": [{"name": "v", "hostPath": {"path": str(volume)}}]},
        **container,
    )


@pytest.mark.parametrize("choice", WITH_IMAGES, ids=WITH_IMAGES, indirect=True)
def test_a_node_on_a_container_runtime(choice, tmp_path):
    asked = {"exec": {"command": ["cat", "/mnt/ups"]}, "periodSeconds": 1, "initialDelaySeconds": 1}
    probe = {"livenessProbe": {**asked, "timeoutSeconds": 60}}
    configuration = kubelet(evictionHard={"memory.available": "200Mi"})
    with running_node(configuration, 256 * MI, choice) as stage:
        stage.put(
            document("steady", STEADY, "16Mi", tmp_path, **probe),
            document("growing", GROW, None, tmp_path),
            document("too-big", OUT_OF_MEMORY, "16Mi", tmp_path),
        )
        stage.until(lambda: (tmp_path / "ups").exists() and "up" in stage.log("growing"))
        stage.until(lambda: (Kind.RESTARTED, "too-big") in stage.lines())
        stage.until(lambda: (Kind.OOM_KILLED, "too-big") in stage.lines())
        steady = stage.pod("steady").runs["main"]
        stage.until(lambda: steady.pid is not None)

        stage.lose_agent()
        stage.until(lambda: stage.is_up("steady", "growing"))
        again = stage.pod("steady").runs["main"]
        stage.until(lambda: again.pid is not None)
        assert (again.pid, again.cgroup) == (steady.pid, steady.cgroup)
        assert stage.node.cgroups.holds(again.cgroup, again.pid)

        (tmp_path / "go").touch()
        stage.until(lambda: (Kind.EVICTED, "growing") in stage.lines())
        assert stage.is_up("steady")
        assert (tmp_path / "ups").read_text() == "up\n"

        for name in ("steady", "growing", "too-big"):
            (stage.manifests / f"{name}.json").unlink()
        stage.until(lambda: not stage.node.world.pods)
        stage.until(lambda: stage.node.runtime.containers() == [])
        assert mounts_below(stage.folder) == []


@pytest.mark.parametrize("choice", [RuntimeName.RUNC], ids=["runc"], indirect=True)
def test_an_image_that_would_delete_its_neighbours_is_the_failure_of_its_own_pod(choice, tmp_path):
    assert choice.images is not None
    images = shutil.copytree(choice.images, tmp_path / "images")
    Layout(images / "evil").add("1", [layer(directory("d"), file("d/.wh..."), file(".wh..."))], {"Cmd": ["true"]})
    with running_node(kubelet(), 256 * MI, replace(choice, images=images)) as stage:
        stage.put(document("steady", STEADY, None, tmp_path))
        stage.until((tmp_path / "ups").exists)
        stage.put(pod_document("evil", image="evil:1"))
        stage.until(lambda: len(stage.lines("Exited")) == 2)
        (status,) = PodList(stage.node).document(stage.pod("evil").uid)["status"]["containerStatuses"]
        assert status["state"]["waiting"]["reason"] == "ImagePullBackOff"
        assert "whiteout" in status["state"]["waiting"]["message"]
        unpacked = stage.settings.state_dir / "images"
        assert [len(list(unpacked.iterdir())), unpacked.stat().st_mode & 0o777] == [1, 0o700]
        assert stage.is_up("steady")


def test_a_node_without_its_runtime_leaves_the_machine_as_it_was(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(HostError, match="runc is not installed"):
        NodeStage(kubelet(), 256 * MI, RuntimeChoice(name=RuntimeName.RUNC), cgroup_root="podqos-test-no-runtime")
    assert not open_cgroups("/podqos-test-no-runtime").exists("/podqos-test-no-runtime")
