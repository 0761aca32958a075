from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
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
        with pytest.raises(
            HostError, match=r"images are not pulled: give the directory of web with the node's option images"
        ):
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


def unpacked(tmp_path, *layers, **options):
    layout = Layout(tmp_path / "layout")
    layout.add("web:1", list(layers), {}, **options)
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

    def test_a_whiteout_hides_nothing_of_its_own_layer(self, tmp_path):
        lower = layer(directory("a"), file("a/old"), file("x", b"old"))
        upper = layer(directory("a"), file("a/new"), file("x", b"new"), file(".wh.a"), file(".wh.x"))
        root = unpacked(tmp_path, lower, upper)
        assert names(root) == ["a", "a/new", "x"]
        assert (root / "x").read_bytes() == b"new"

    @pytest.mark.parametrize("is_first", [True, False], ids=["before the files", "after the files"])
    def test_an_opaque_directory_hides_all_that_lies_below_wherever_it_is_said(self, tmp_path, is_first):
        lower = layer(directory("a"), directory("a/sub"), file("a/sub/old"), file("a/sub/deep/old"), file("b"))
        own = [directory("a"), directory("a/sub"), file("a/sub/new"), file("a/implied/new")]
        opaque = file("a/.wh..wh..opq")
        root = unpacked(tmp_path, lower, layer(*([opaque, *own] if is_first else [*own, opaque])))
        assert names(root) == ["a", "a/implied", "a/implied/new", "a/sub", "a/sub/new", "b"]

    def test_the_root_of_a_container_is_open_to_its_users(self, tmp_path):
        before = os.umask(0o077)
        try:
            root = unpacked(tmp_path, layer(file("a")))
        finally:
            os.umask(before)
        assert root.stat().st_mode & 0o7777 == 0o755

    def test_device_files_of_dev_are_left_out(self, tmp_path):
        assert names(unpacked(tmp_path, layer(directory("dev"), special("dev/null"), file("a")))) == ["a", "dev"]

    def test_attributes_that_order_the_overlay_about_are_left_out(self, tmp_path):
        info, data = file("a")
        info.pax_headers = {"SCHILY.xattr.trusted.overlay.opaque": "y"}
        assert not [name for name in os.listxattr(unpacked(tmp_path, layer((info, data))) / "a") if "overlay" in name]


def special(name, kind=tarfile.CHRTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.devmajor, info.devminor = kind, 1, 3
    return info


def with_fields(name="a", **fields):
    info = tarfile.TarInfo(name)
    info.pax_headers = {key: value for key, value in fields.items() if isinstance(value, str)}
    for key, value in fields.items():
        if not isinstance(value, str):
            setattr(info, key, value)
    return info


def hard_link(target):
    info = tarfile.TarInfo("link")
    info.type, info.linkname = tarfile.LNKTYPE, target
    return info


def with_header(size):
    """Return a layer whose first header says that a name of so many bytes follows."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, size
    return info.tobuf(tarfile.GNU_FORMAT) + b"a" * 4096


WHOLE = layer(file("a", b"x" * 4096), file("b", b"y" * 4096))
HOSTILE = {
    "whiteout of the directory above": layer(file(".wh...")),
    "whiteout of the directory above, further down": layer(directory("d"), file("d/.wh...")),
    "whiteout of the directory itself": layer(file(".wh..")),
    "whiteout of nothing": layer(file(".wh.")),
    "time beyond all times": layer(with_fields(mtime="1e300")),
    "time that is no number": layer(with_fields(mtime="nan")),
    "time without end": layer(with_fields(mtime="-inf")),
    "owner too large": layer(with_fields(uid=str(1 << 40))),
    "owner that means unchanged": layer(with_fields(gid=str((1 << 32) - 1))),
    "owner below zero": layer(with_fields(uid="-1")),
    "NUL in a name": layer(with_fields(path="a\0b")),
    "NUL in a link": layer(with_fields(linkpath="a\0b", type=tarfile.SYMTYPE)),
    "name that is no text": layer(special("\udcff")),
    "device": layer(special("sda", tarfile.BLKTYPE)),
    "character device": layer(special("null")),
    "hard link to nothing": layer(hard_link("../../../../etc/passwd")),
    "hard link to a directory": layer(directory("d"), hard_link("d")),
    "hard link to itself": layer(hard_link("link")),
    "links in a circle": layer(symlink("a", "b"), symlink("b", "a"), file("a/x")),
    "directory below a file": layer(file("a"), file("a/b")),
    "deep tree": layer(directory("d/" * 300)),
    "deeper tree": layer(directory("d/" * 2000)),
    "long part of a name": layer(file("x" * 300)),
    "long name": layer(file("d/" * 40_000)),
    "name of a gigabyte": with_header(1 << 30),
    "name of no end": with_header((1 << 33) - 1),
    "file larger than the disk": with_fields("a", size=(1 << 33) - 1).tobuf() + bytes(4096),
    "unknown kind": layer(with_fields(type=b"Z")),
    "sparse file without sense": layer(with_fields(**{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})),
    "sparse map without sense": layer(with_fields(**{"GNU.sparse.map": "a,b", "GNU.sparse.size": "1"})),
    "nothing at all": b"",
    "no archive": b"no archive" * 200,
    "broken off in a file": WHOLE[:1024],
    "broken off between two": WHOLE[:4608] + b"x" * 512,
    "broken off in a header": WHOLE[:4800],
    "more after the end": WHOLE + b"x" * (3 << 20),
}


class TestHostileLayers:
    @pytest.fixture
    def neighbour(self, tmp_path):
        (tmp_path / "neighbour").mkdir()
        (tmp_path / "neighbour" / "file").touch()
        return tmp_path

    @pytest.mark.parametrize("evil", HOSTILE.values(), ids=HOSTILE)
    def test_a_layer_that_makes_no_sense_is_an_error_of_its_image_and_nothing_else(self, neighbour, evil):
        with pytest.raises(HostError) as refused:
            unpacked(neighbour, layer(file("fine")), evil)
        assert str(refused.value).encode()
        assert sorted(path.name for path in neighbour.iterdir()) == ["layout", "neighbour"]
        assert (neighbour / "neighbour" / "file").exists()

    @pytest.mark.parametrize(
        "compress", [gzip.compress, lzma.compress, bz2.compress, bytes], ids=lambda how: how.__module__
    )
    def test_every_compression_is_told_by_its_first_bytes(self, tmp_path, compress):
        assert names(unpacked(tmp_path, WHOLE, compress=compress)) == ["a", "b"]

    @pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress], ids=lambda how: how.__module__)
    @pytest.mark.parametrize(
        "damage",
        [lambda data: data[:-20], lambda data: data[:100] + data[100:110][::-1] + data[110:]],
        ids=["cut", "turned"],
    )
    def test_a_damaged_compression_is_an_error_of_its_image(self, neighbour, compress, damage):
        noise = layer(file("noise", hashlib.shake_256().digest(9000)))
        with pytest.raises(HostError, match="not a layer"):
            unpacked(neighbour, noise, compress=lambda data: damage(compress(data)))
        assert sorted(path.name for path in neighbour.iterdir()) == ["layout", "neighbour"]

    def test_zstd_is_read(self, tmp_path):
        zstandard = pytest.importorskip("zstandard")
        assert names(unpacked(tmp_path, WHOLE, compress=zstandard.compress)) == ["a", "b"]

    def test_damaged_zstd_is_an_error_of_its_image(self, tmp_path):
        zstandard = pytest.importorskip("zstandard")
        with pytest.raises(HostError, match="not a layer"):
            unpacked(tmp_path, WHOLE, compress=lambda data: zstandard.compress(data)[:20] + b"x" * 50)

    def test_zstd_without_its_package_says_what_to_install(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "zstandard", None)
        with pytest.raises(HostError, match=r"compressed with zstd.*pip install '\.\[runc\]'"):
            unpacked(tmp_path, WHOLE, compress=lambda data: b"\x28\xb5\x2f\xfd" + data)

    def test_content_that_is_not_what_the_image_says_is_refused(self, tmp_path):
        with pytest.raises(HostError, match="does not match its diff_id"):
            unpacked(tmp_path, WHOLE, compress=lambda _data: gzip.compress(layer(file("other"))))
        assert not (tmp_path / "rootfs").exists()

    @pytest.mark.parametrize("name", ["a\0b", "a b", "x" * 2000, "a\nb"])
    def test_what_is_no_name_of_an_image_is_an_error(self, tmp_path, name):
        with pytest.raises(HostError, match="is not the name of an image"):
            ImageFolder(tmp_path).find(name)

    @pytest.mark.parametrize("text", ["[" * 100_000, "{", "null", "\0", '{"manifests": 1}', " " * (5 << 20)])
    def test_an_index_that_makes_no_sense_is_an_error(self, tmp_path, text):
        (tmp_path / "index.json").write_text(text)
        with pytest.raises(HostError, match="not an OCI image layout"):
            ImageFolder(tmp_path).find("web")
