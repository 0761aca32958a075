from __future__ import annotations

from pathlib import Path

import pytest

from podqos.errors import HostError
from podqos.host.runtimes.oci_config import bundle_config
from podqos.host.runtimes.oci_layout import ImageConfig
from podqos.host.runtimes.runtime import ContainerId, ContainerStart, Mount
from podqos.qos.cgroup import Cgroup, Level

IMAGE = ImageConfig(entrypoint=("/entry",), cmd=("default",), env=("PATH=/image", "A=image"), working_dir="/image")


def start(**fields) -> ContainerStart:
    path = "/own/kubepods/podu/id"
    values = {
        "id": ContainerId("u", "main", 0), "image": "web:1", "command": (), "args": (), "env": {}, "working_dir": "",
        "mounts": (), "cgroup": Cgroup(Level.CONTAINER, path, (), "main", path), "oom_score_adj": 900,
        "folder": Path("/f"), "log": Path("/l"), "log_bytes": 1, "log_files": 1,
    }  # fmt: skip
    return ContainerStart(**{**values, **fields})


def config(container: ContainerStart, image: ImageConfig = IMAGE, rootfs: Path = Path("/nowhere")) -> dict:
    return dict(bundle_config(container, image, rootfs, oom_score_adj=container.oom_score_adj, hostname="web"))


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        ((), (), ["/entry", "default"]),
        ((), ("given",), ["/entry", "given"]),
        (("/own",), (), ["/own"]),
        (("/own",), ("given",), ["/own", "given"]),
    ],
    ids=["image", "args replace the cmd", "a command replaces both", "both"],
)
def test_command_and_args_stand_before_entrypoint_and_cmd(command, args, expected):
    assert config(start(command=command, args=args))["process"]["args"] == expected


def test_nothing_to_run_is_an_error():
    with pytest.raises(HostError, match="neither the pod nor the image web:1 has a command"):
        config(start(), ImageConfig())


def test_variables_of_the_pod_stand_before_those_of_the_image():
    env = config(start(env={"A": "pod", "B": "pod"}))["process"]["env"]
    assert env == ["PATH=/image", "A=pod", "B=pod"]


def test_there_is_always_a_path():
    assert config(start(command=("x",)), ImageConfig())["process"]["env"][0].startswith("PATH=/usr/local/sbin:")


@pytest.mark.parametrize(("own", "expected"), [("", "/image"), ("/own", "/own")])
def test_the_working_directory_is_the_pods_or_the_images(own, expected):
    assert config(start(working_dir=own))["process"]["cwd"] == expected


def test_cgroup_score_and_network_are_those_of_the_node():
    made = config(start())
    assert made["linux"]["cgroupsPath"] == "/own/kubepods/podu/id"
    assert made["process"]["oomScoreAdj"] == 900
    assert [each["type"] for each in made["linux"]["namespaces"]] == ["pid", "ipc", "uts", "mount"]
    assert set(made["linux"]["resources"]) == {"devices"}


def test_volumes_are_bound_outer_ones_first(tmp_path):
    mounts = (Mount("b", str(tmp_path), "/data/inner", read_only=True), Mount("a", str(tmp_path), "/data"))
    made = [each for each in config(start(mounts=mounts))["mounts"] if each["source"] == str(tmp_path)]
    assert [(each["destination"], each["options"][-1]) for each in made] == [("/data", "rw"), ("/data/inner", "ro")]


def test_a_volume_that_is_not_there_is_named():
    with pytest.raises(HostError, match=r"container main: volume v: /no/such does not exist"):
        config(start(mounts=(Mount("v", "/no/such", "/data"),)))


class TestUsers:
    @pytest.fixture
    def rootfs(self, tmp_path):
        etc = tmp_path / "etc"
        etc.mkdir()
        (etc / "passwd").write_text("root:x:0:0::/:/bin/sh\nweb:x:1000:1001::/:/bin/sh\n")
        (etc / "group").write_text("root:x:0:\nstaff:x:50:web,other\nweb:x:1001:\n")
        return tmp_path

    @pytest.mark.parametrize(
        ("user", "ids"),
        [
            ("", (0, 0, [])),
            ("web", (1000, 1001, [50])),
            ("1000", (1000, 1001, [50])),
            ("4321", (4321, 0, [])),
            ("web:staff", (1000, 50, [])),
            ("7:8", (7, 8, [])),
        ],
    )
    def test_names_are_those_of_the_image(self, rootfs, user, ids):
        found = config(start(), ImageConfig(entrypoint=("x",), user=user), rootfs)["process"]["user"]
        assert (found["uid"], found["gid"], found["additionalGids"]) == ids

    @pytest.mark.parametrize("user", ["nobody", "web:nogroup"])
    def test_a_name_that_the_image_does_not_know_is_an_error(self, rootfs, user):
        with pytest.raises(HostError, match="which is not in its"):
            config(start(), ImageConfig(entrypoint=("x",), user=user), rootfs)
