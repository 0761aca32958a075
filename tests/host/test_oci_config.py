from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from podqos.errors import HostError
from podqos.host.linux.descriptors import original_limit
from podqos.host.runtimes.oci_config import bundle_config
from podqos.host.runtimes.oci_layout import ImageConfig
from podqos.host.runtimes.runtime import ContainerId, ContainerStart, Mount, Security, StartError
from podqos.host.runtimes.security import own_capabilities
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

    def test_lines_that_make_no_sense_are_skipped(self, rootfs):
        (rootfs / "etc/passwd").write_text("web:x:many:0::/:\n:::\nweb:x:99999999999:0::/:\nweb:x:7:8::/:\n\0\n")
        (rootfs / "etc/group").write_text("staff:x:ten:web\nstaff:x:50:web\n")
        found = config(start(), ImageConfig(entrypoint=("x",), user="web"), rootfs)["process"]["user"]
        assert (found["uid"], found["gid"], found["additionalGids"]) == (7, 8, [50])

    @pytest.mark.parametrize("user", ["99999999999", "0:99999999999", "-1"])
    def test_an_id_that_is_not_possible_is_an_error(self, rootfs, user):
        with pytest.raises(StartError, match="which is not in its"):
            config(start(), ImageConfig(entrypoint=("x",), user=user), rootfs)

    @pytest.mark.parametrize(
        ("security", "image_user", "found"),
        [
            (Security(run_as_user=1000), "", (1000, 1001, [50])),
            (Security(run_as_user=4321), "web", (4321, 0, [])),
            (Security(run_as_user=4321, run_as_group=7), "web:staff", (4321, 7, [])),
            (Security(run_as_group=7), "web:staff", (1000, 7, [50])),
            (Security(run_as_group=7), "", (0, 7, [])),
            (Security(groups=(9, 50)), "web", (1000, 1001, [50, 9])),
        ],
        ids=["user", "unknown user", "user and group", "group of the image's user", "group of root", "groups"],
    )
    def test_the_pod_stands_before_the_image(self, rootfs, security, image_user, found):
        made = config(start(security=security), ImageConfig(entrypoint=("x",), user=image_user), rootfs)
        user = made["process"]["user"]
        assert (user["uid"], user["gid"], user["additionalGids"]) == found

    @pytest.mark.parametrize(
        ("security", "image_user", "message"),
        [
            (Security(run_as_user=0), "1000", "container's runAsUser breaks non-root policy"),
            (Security(), "", "image will run as root"),
            (Security(), "0:7", "image will run as root"),
            (Security(), "000", "image will run as root"),
            (Security(), "web", r"image has non-numeric user \(web\), cannot verify user is non-root"),
        ],
    )
    def test_root_is_refused_where_it_must_not_be(self, rootfs, security, image_user, message):
        wanted = start(security=replace(security, run_as_non_root=True))
        with pytest.raises(StartError, match=message) as refused:
            config(wanted, ImageConfig(entrypoint=("x",), user=image_user), rootfs)
        assert refused.value.reason == "CreateContainerConfigError"

    @pytest.mark.parametrize(("security", "image_user"), [(Security(run_as_user=5), ""), (Security(), "1000")])
    def test_others_are_not(self, rootfs, security, image_user):
        wanted = start(security=replace(security, run_as_non_root=True))
        assert config(wanted, ImageConfig(entrypoint=("x",), user=image_user), rootfs)["process"]["user"]["uid"] > 0


class TestPrivileges:
    @staticmethod
    def capabilities(**fields) -> list[str]:
        found = config(start(security=Security(**fields)))["process"]["capabilities"]
        assert found["bounding"] == found["effective"] == found["permitted"]
        return found["bounding"]

    def test_capabilities_are_added_to_the_usual_and_dropped_from_them(self):
        usual = self.capabilities()
        assert len(usual) == 14
        assert self.capabilities(add=("net_admin",)) == [*usual, "CAP_NET_ADMIN"]
        assert self.capabilities(drop=("CAP_CHOWN",)) == [each for each in usual if each != "CAP_CHOWN"]

    def test_all_come_before_single_ones(self):
        assert self.capabilities(drop=("ALL",)) == []
        assert self.capabilities(drop=("all",), add=("CHOWN",)) == ["CAP_CHOWN"]
        assert self.capabilities(add=("ALL",)) == own_capabilities()
        assert "CAP_CHOWN" not in self.capabilities(add=("ALL",), drop=("CHOWN",))

    def test_a_capability_that_does_not_exist_is_named(self):
        with pytest.raises(StartError, match="unknown capability 'FLY'"):
            self.capabilities(add=("FLY",))

    def test_by_default_the_root_is_writable_and_privileges_can_be_gained(self):
        made = config(start())
        assert (made["root"]["readonly"], made["process"]["noNewPrivileges"]) == (False, False)

    def test_a_read_only_root_and_no_new_privileges_reach_runc(self):
        made = config(start(security=Security(read_only_root=True, no_new_privileges=True)))
        assert (made["root"]["readonly"], made["process"]["noNewPrivileges"]) == (True, True)

    def test_only_a_privileged_container_sees_all_of_the_machine(self):
        for privileged in (False, True):
            made = config(start(security=Security(privileged=privileged)))
            linux = made["linux"]
            assert bool(linux["maskedPaths"] and linux["readonlyPaths"]) is not privileged
            assert linux["resources"]["devices"] == [{"allow": privileged, "access": "rwm"}]
            assert any(device["path"] == "/dev/null" for device in linux["devices"]) is privileged
            (sysfs,) = (mount for mount in made["mounts"] if mount["destination"] == "/sys")
            assert ("rw" in sysfs["options"]) is privileged

    def test_open_files_are_limited_as_for_the_node_when_it_started(self):
        soft, hard = original_limit()
        assert config(start())["process"]["rlimits"] == [{"type": "RLIMIT_NOFILE", "soft": soft, "hard": hard}]
