"""``tools/image.py``: an image as a file, of a root file system and wheels."""

import gzip
import hashlib
import importlib.util
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from podqos.guard import lifeline

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("image_tool", ROOT / "tools/image.py")
image_tool = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(image_tool)

MINOR = sys.version_info.minor
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine())
MACHINE = {"amd64": 62, "arm64": 183}
pytestmark = pytest.mark.skipif(not ARCHITECTURE, reason=f"not an architecture that images are built for: {os.uname()}")


def elf(architecture: str | None = ARCHITECTURE) -> bytes:
    return b"\x7fELF" + bytes(14) + MACHINE[architecture].to_bytes(2, "little") + bytes(44)


def rootfs(path: Path, files: dict[str, bytes] | None = None, mode: str = "w") -> Path:
    standard = {f"./usr/bin/python3.{MINOR}": elf(), f"./usr/lib/python3.{MINOR}/this.py": b"ZEN = 1\n"}
    with tarfile.open(path, mode) as tar:
        for name, data in (standard if files is None else files).items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> Path:
    """Return wheels that look like ours: podqos with its extra, and a manual page."""
    folder = tmp_path_factory.mktemp("wheels")
    metadata = "Metadata-Version: 2.1\nName: podqos\nVersion: 1.0\nProvides-Extra: webhook\n"
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / "podqos-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("podqos/__init__.py", "")
        wheel.writestr("podqos/cli/__init__.py", "")
        wheel.writestr("podqos/cli/main.py", "import sys\ndef command_line():\n    print(sys.prefix, sys.argv[1:])\n")
        wheel.writestr("podqos-1.0.data/data/share/doc/podqos/NEWS", "news")
        wheel.writestr("podqos-1.0.dist-info/METADATA", metadata)
        wheel.writestr("podqos-1.0.dist-info/WHEEL", tags)
        wheel.writestr("podqos-1.0.dist-info/entry_points.txt", "[console_scripts]\npodqos = podqos.cli.main:main\n")
        wheel.writestr("podqos-1.0.dist-info/RECORD", "")
    return folder


@pytest.fixture(scope="module")
def archive(wheels, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("image")
    output = folder / "image.tar"
    image_tool.build("registry.example.com/podqos:1.0", rootfs(folder / "root.tar.gz", mode="w:gz"), wheels, output)
    return output


class Image:
    """An archive, read as a container engine does."""

    def __init__(self, archive: Path) -> None:
        with tarfile.open(archive) as tar:
            self.files = {member.name: tar.extractfile(member).read() for member in tar}
        (described,) = json.loads(self.files["index.json"])["manifests"]
        self.name = described["annotations"]["io.containerd.image.name"]
        self.manifest = json.loads(self.blob(described))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layers = [gzip.decompress(self.blob(layer)) for layer in self.manifest["layers"]]

    def blob(self, described: dict) -> bytes:
        data = self.files[described["digest"].replace("sha256:", "blobs/sha256/")]
        assert f"sha256:{hashlib.sha256(data).hexdigest()}" == described["digest"]
        assert len(data) == described["size"]
        return data


def test_an_image_is_a_base_layer_and_podqos_run_by_an_ordinary_user(archive):
    image = Image(archive)
    assert image.name == "registry.example.com/podqos:1.0"
    assert (image.config["os"], image.config["architecture"]) == ("linux", ARCHITECTURE)
    assert image.config["config"]["User"] == "65532:65532", "a number, or runAsNonRoot cannot be verified"
    assert image.config["config"]["Entrypoint"] == ["/opt/podqos/bin/podqos"]
    digests = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in image.layers]
    assert image.config["rootfs"] == {"type": "layers", "diff_ids": digests}, "of what is unpacked, gzip or not"


def test_docker_load_finds_the_same_image(archive):
    image = Image(archive)
    (described,) = json.loads(image.files["manifest.json"])
    assert described["RepoTags"] == [image.name]
    assert json.loads(image.files[described["Config"]]) == image.config
    assert [gzip.decompress(image.files[name]) for name in described["Layers"]] == image.layers


def test_podqos_starts_in_its_own_environment(archive, tmp_path):
    subprocess.run(["tar", "-x", "-C", tmp_path], input=Image(archive).layers[1], check=True)
    python = tmp_path / "opt/podqos/bin/python"
    assert str(python.readlink()) == f"/usr/bin/python3.{MINOR}"
    python.unlink()
    python.symlink_to(Path(sys.executable).resolve())
    done = subprocess.run(
        [python, tmp_path / "opt/podqos/bin/podqos", "guard", "run"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{tmp_path}/opt/podqos ['guard', 'run']\n"


def test_all_of_python_is_compiled_because_nobody_may_write_there(archive):
    with tarfile.open(fileobj=io.BytesIO(Image(archive).layers[1])) as tar:
        members = {member.name: member for member in tar}
    version = f"cpython-3{MINOR}"
    assert f"usr/lib/python3.{MINOR}/__pycache__/this.{version}.pyc" in members
    assert f"usr/lib/python3.{MINOR}/this.py" not in members, "it is in the layer below"
    assert f"opt/podqos/lib/python3.{MINOR}/site-packages/podqos/cli/__pycache__/main.{version}.pyc" in members
    assert not [name for name in members if name.endswith("podqos/NEWS")]
    assert {(member.uid, member.gid, member.mtime) for member in members.values()} == {(0, 0, 0)}
    assert "etc/passwd" in members


def test_accounts_of_the_root_file_system_stay(wheels, tmp_path):
    files = {f"usr/local/bin/python3.{MINOR}": elf(), "etc/passwd": b"theirs", "etc/group": b"theirs"}
    image_tool.build("podqos", rootfs(tmp_path / "root.tar", files), wheels, tmp_path / "image.tar")
    image = Image(tmp_path / "image.tar")
    with tarfile.open(fileobj=io.BytesIO(image.layers[1])) as tar:
        assert "etc/passwd" not in tar.getnames()
        assert tar.getmember("opt/podqos/bin/python").linkname == f"/usr/local/bin/python3.{MINOR}"


def test_the_same_input_gives_the_same_bytes(archive, wheels, tmp_path):
    root = rootfs(tmp_path / "root.tar")
    image_tool.build("registry.example.com/podqos:1.0", root, wheels, tmp_path / "image.tar")
    assert (tmp_path / "image.tar").read_bytes() == archive.read_bytes()


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("podqos", "docker.io/library/podqos:latest"),
        ("team/podqos:1.0", "docker.io/team/podqos:1.0"),
        ("localhost/podqos:1", "localhost/podqos:1"),
        ("mirror:5000/podqos", "mirror:5000/podqos:latest"),
        ("registry.example.com/a/b:v1", "registry.example.com/a/b:v1"),
    ],
)
def test_an_image_has_the_name_under_which_a_kubelet_asks_for_it(name, full):
    assert image_tool.full_name(name) == full


def test_the_base_of_the_image_has_the_shell_that_thaws_pods_of_a_killed_guard():
    packages = re.search(r"^PACKAGES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert lifeline._SHELL == "/bin/sh"
    assert {"dash", "python3-minimal", "libpython3-stdlib"} <= set(packages[1].split(","))


OTHER = next(name for name in MACHINE if name != ARCHITECTURE)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({"bin/sh": b""}, "no Python 3 in /usr/bin or /usr/local/bin: install python3 in it", id="none"),
        pytest.param({"usr/bin/python3.9": elf()}, "has Python 3.9, but the wheels are for Python 3.", id="older"),
        pytest.param({f"usr/bin/python3.{MINOR}": elf(OTHER)}, f"is for {OTHER}, but the wheels", id="architecture"),
        pytest.param({f"usr/bin/python3.{MINOR}": b"#!/bin/sh"}, "is not a program for Linux", id="a script"),
    ],
)
def test_a_root_file_system_that_cannot_run_podqos_is_refused(files, message, wheels, tmp_path, capsys):
    root = rootfs(tmp_path / "root.tar", files)
    options = ["--name", "podqos", "--rootfs", root, "--wheels", wheels, "--output", tmp_path / "image.tar"]
    assert image_tool.main([str(option) for option in options]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {root}")
    assert message in said
    assert not (tmp_path / "image.tar").exists()


def test_what_is_not_a_tar_file_or_not_an_image_name_is_said_in_one_line(wheels, tmp_path, capsys):
    (tmp_path / "root.tar").write_text("no")
    for name, root in (("podqos", "root.tar"), ("podqos", "absent.tar"), ("Pod QoS", "root.tar")):
        options = ["--name", name, "--rootfs", tmp_path / root, "--wheels", wheels, "--output", tmp_path / "image.tar"]
        assert image_tool.main([str(option) for option in options]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_wheels_that_are_missing_are_said(tmp_path, capfd):
    (tmp_path / "empty").mkdir()
    root = rootfs(tmp_path / "root.tar")
    options = ["--name", "podqos", "--rootfs", root, "--wheels", tmp_path / "empty", "--output", tmp_path / "image.tar"]
    assert image_tool.main([str(option) for option in options]) == 2
    assert "not the wheels of podqos" in capfd.readouterr().err
