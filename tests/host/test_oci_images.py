from __future__ import annotations

import io
import os
import tarfile

import pytest

from host.container_images import Layout, directory, file, layer, symlink
from podqos.errors import HostError
from podqos.host.runtimes.oci_layout import ImageFolder, parse_reference
from podqos.host.runtimes.oci_unpack import inside, unpack


@pytest.mark.parametrize(
    ("text", "name", "tag", "full_name"),
    [
        ("web", "web", "latest", "docker.io/library/web"),
        ("shop/web:1.2", "shop/web", "1.2", "docker.io/shop/web"),
        ("registry.example:5000/web", "registry.example:5000/web", "latest", "registry.example:5000/web"),
        ("localhost/web:1", "localhost/web", "1", "localhost/web"),
        ("web:1@sha256:abc", "web", "1", "docker.io/library/web"),
    ],
)
def test_a_reference_has_a_name_and_a_tag(text, name, tag, full_name):
    found = parse_reference(text)
    assert (found.name, found.tag, found.full_name) == (name, tag, full_name)


def test_two_spellings_mean_the_same_image():
    assert parse_reference("busybox").is_same("docker.io/library/busybox:latest")
    assert not parse_reference("busybox:1").is_same("busybox:2")


class TestFinding:
    def test_one_layout_holds_many_images_each_under_its_reference(self, tmp_path):
        layout = Layout(tmp_path)
        layout.add("registry.example/web:1", [], {"Cmd": ["web"]})
        layout.add("registry.example/db:1", [], {"Cmd": ["db"]})
        assert ImageFolder(tmp_path).find("registry.example/db:1").config.cmd == ("db",)

    @pytest.mark.parametrize("folder", ["registry.example/shop/web", "registry.example/shop/web:1", "web", "web:1"])
    def test_a_layout_of_its_own_lies_under_the_name_or_its_last_part(self, tmp_path, folder):
        Layout(tmp_path / folder).add("1", [], {"Cmd": ["web"]})
        assert ImageFolder(tmp_path).find("registry.example/shop/web:1").config.cmd == ("web",)

    def test_another_tag_in_it_is_another_image(self, tmp_path):
        Layout(tmp_path / "web").add("1", [], {})
        with pytest.raises(HostError, match=r"^images are not pulled: web:2 is not in "):
            ImageFolder(tmp_path).find("web:2")

    def test_a_digest_is_taken_at_its_word(self, tmp_path):
        layout = Layout(tmp_path)
        layout.add("web:1", [], {"Cmd": ["first"]})
        second = layout.add("web:1", [], {"Cmd": ["second"]})
        assert ImageFolder(tmp_path).find(f"web:1@{second}").config.cmd == ("second",)

    def test_a_directory_without_an_index_is_a_root_filesystem(self, tmp_path):
        (tmp_path / "web" / "bin").mkdir(parents=True)
        assert ImageFolder(tmp_path).find("registry.example/web:9").rootfs == tmp_path / "web"

    @pytest.mark.parametrize("name", ["../outside", "a/../../outside", "/etc"])
    def test_no_name_leads_out_of_the_directory(self, tmp_path, name):
        (tmp_path / "images").mkdir()
        (tmp_path / "outside" / "bin").mkdir(parents=True)
        with pytest.raises(HostError, match="images are not pulled"):
            ImageFolder(tmp_path / "images").find(name)

    def test_without_a_directory_the_option_is_named(self):
        with pytest.raises(HostError, match=r"images are not pulled: say where web is with --images DIR"):
            ImageFolder(None).find("web")

    def test_a_blob_that_is_not_what_its_digest_says_is_refused(self, tmp_path):
        digest = Layout(tmp_path).add("web:1", [], {})
        blob = tmp_path / "blobs" / "sha256" / digest.removeprefix("sha256:")
        blob.write_bytes(blob.read_bytes() + b" ")
        with pytest.raises(HostError, match="content does not match its digest"):
            ImageFolder(tmp_path).find("web:1")

    def test_of_an_index_the_manifest_of_this_machine_is_taken(self, tmp_path, monkeypatch):
        monkeypatch.setattr("platform.machine", lambda: "aarch64")
        layout = Layout(tmp_path)
        manifests = []
        for architecture in ("amd64", "arm64"):
            layout.add(f"part-{architecture}:1", [], {"Cmd": [architecture]})
            descriptor = layout.manifests[-1]
            manifests.append({**descriptor, "platform": {"architecture": architecture, "os": "linux"}})
        layout.add_index("web:1", manifests)
        assert ImageFolder(tmp_path).find("web:1").config.cmd == ("arm64",)


def unpacked(tmp_path, *layers):
    layout = Layout(tmp_path / "layout")
    layout.add("web:1", list(layers), {})
    unpack(ImageFolder(tmp_path / "layout").find("web:1"), tmp_path / "rootfs")
    return tmp_path / "rootfs"


def names(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


class TestUnpacking:
    def test_later_layers_replace_earlier_ones(self, tmp_path):
        root = unpacked(
            tmp_path,
            layer(
                directory("etc"), file("etc/name", b"old"), file("was-file"), directory("was-dir"), file("was-dir/x")
            ),
            layer(file("etc/name", b"new", 0o600), directory("was-file"), file("was-dir")),
        )
        assert (root / "etc/name").read_bytes() == b"new"
        assert (root / "etc/name").stat().st_mode & 0o7777 == 0o600
        assert names(root) == ["etc", "etc/name", "was-dir", "was-file"]
        assert (root / "was-file").is_dir()

    def test_a_whiteout_removes_what_lies_below(self, tmp_path):
        lower = layer(directory("a"), file("a/x"), file("a/y"), directory("b"), file("b/z"))
        root = unpacked(tmp_path, lower, layer(file("a/.wh.x"), file(".wh.b")))
        assert names(root) == ["a", "a/y"]

    def test_an_opaque_directory_hides_lower_layers_and_not_its_own(self, tmp_path):
        lower = layer(directory("a"), file("a/x"))
        root = unpacked(tmp_path, lower, layer(directory("a"), file("a/new"), file("a/.wh..wh..opq")))
        assert names(root) == ["a", "a/new"]

    def test_links_are_followed_inside_of_the_root(self, tmp_path):
        (tmp_path / "outside").mkdir()
        root = unpacked(
            tmp_path,
            layer(directory("usr"), directory("usr/bin"), symlink("bin", "usr/bin"), symlink("abs", "/usr/bin")),
            layer(file("bin/a"), file("abs/b")),
        )
        assert {"usr/bin/a", "usr/bin/b"} <= set(names(root))

    @pytest.mark.parametrize(
        "evil",
        [
            layer(file("../escaped")),
            layer(file("/escaped")),
            layer(symlink("out", "../.."), file("out/escaped")),
            layer(symlink("out", "/"), file("out/escaped")),
            layer(directory("d"), symlink("d/out", "../../.."), file("d/out/escaped")),
        ],
        ids=["dots", "absolute", "link up", "link to the root", "link further up"],
    )
    def test_nothing_is_written_outside(self, tmp_path, evil):
        root = unpacked(tmp_path, evil)
        assert (root / "escaped").is_file()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["layout", "rootfs"]

    def test_a_hard_link_to_the_outside_is_one_to_the_inside(self, tmp_path):
        info = tarfile.TarInfo("link")
        info.type, info.linkname = tarfile.LNKTYPE, "../../../etc/passwd"
        root = unpacked(tmp_path, layer(directory("etc"), file("etc/passwd", b"ours"), info))
        assert (root / "link").read_bytes() == b"ours"
        assert os.path.samefile(root / "link", root / "etc/passwd")  # noqa: PTH121

    def test_links_in_a_circle_are_an_error(self, tmp_path):
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(HostError, match="too many links"):
            inside(tmp_path, "a/file")

    def test_a_layer_that_breaks_off_leaves_nothing(self, tmp_path):
        with pytest.raises(HostError, match="not a layer"):
            unpacked(tmp_path, io.BytesIO(layer(file("a", b"x" * 4096))).read(1024))
        assert not (tmp_path / "rootfs").exists()
        assert not (tmp_path / "rootfs.partial").exists()
