"""Texts as other systems write them: UTF-16 by PowerShell's ``>``, byte order marks, CRLF; and paths with a drive."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.cluster.tls import _as_file
from podqos.objects.scopes import is_within, scope_of
from podqos.questions.check_formats import uri
from podqos.reading.paths import begins_with_drive, has_folder, relative, with_slashes

ROOT = Path(__file__).resolve().parents[2]
ACCIDENTAL = (ROOT / "scenarios/content-platform/accidental/article-service.yaml").read_text(encoding="utf-8")
PLATFORM = ROOT / "scenarios/content-platform/platform"
USAGE = (ROOT / "scenarios/content-platform/usage.csv").read_text(encoding="utf-8")
KERNEL_LOG = (ROOT / "tests/outputs/inputs/kern.log").read_text(encoding="utf-8")
KUBELET = (ROOT / "scenarios/node/kubelet.yaml").read_text(encoding="utf-8")
POWERSHELL = "PowerShell's >"
WRITTEN = {
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "a byte order mark": lambda text: text.encode("utf-8-sig"),
    "a mark and CRLF": lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
    POWERSHELL: lambda text: b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le"),
    "UTF-16, big end first": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
}


@pytest.fixture(params=WRITTEN)
def written(request):
    """Return a function that writes a text as another system would."""
    return WRITTEN[request.param]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        pytest.param("check {}/web.yaml", ACCIDENTAL, id="manifests"),
        pytest.param(f"rank {PLATFORM} --usage {{}}/usage.csv", USAGE, id="usage"),
        pytest.param(f"advise {PLATFORM} --usage {{}}/usage.csv", USAGE, id="samples"),
        pytest.param("autopsy {}/kern.log", KERNEL_LOG, id="a kernel log"),
        pytest.param("thresholds {}/kubelet.yaml", KUBELET, id="a kubelet's settings"),
    ],
)
def test_a_file_means_the_same_however_it_is_written(command, text, written, tmp_path, capsys):
    words = command.format(tmp_path).split()
    file = Path(words[-1])
    file.write_bytes(text.encode())
    expected = main(words), capsys.readouterr()
    file.write_bytes(written(text))
    assert (main(words), capsys.readouterr()) == expected
    assert expected[0] in {0, 1}


@pytest.mark.parametrize("command", ["check -", "autopsy -"])
def test_what_powershell_pipes_is_read(command, monkeypatch, capsys):
    text = ACCIDENTAL if command.startswith("check") else KERNEL_LOG
    answers = []
    for data in (text.encode(), WRITTEN[POWERSHELL](text)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        answers.append((main(command.split()), capsys.readouterr().out))
    assert answers[0] == answers[1]


def test_a_fix_keeps_encoding_and_line_ends(written, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("plain.yaml").write_bytes(ACCIDENTAL.encode())
    Path("written.yaml").write_bytes(written(ACCIDENTAL))
    assert [main(["check", "--fix", "--only", "PQ101", name]) for name in ("plain.yaml", "written.yaml")] == [0, 0]
    fixed = Path("plain.yaml").read_text(encoding="utf-8")
    assert fixed != ACCIDENTAL
    assert Path("written.yaml").read_bytes() == written(fixed)


def test_a_kubeconfig_with_crlf_is_read(tmp_path, monkeypatch, capsys):
    text = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: []\n"
    (tmp_path / "config").write_bytes(WRITTEN["a mark and CRLF"](text))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    assert main(["overview"]) in {2, 3}
    err = capsys.readouterr().err
    assert "context" in err
    assert err.count("\n") == 1


def test_a_client_certificate_is_in_a_file_of_its_owner_only_while_it_is_read(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    with _as_file(b"certificate") as path:
        assert Path(path).read_bytes() == b"certificate"
        assert Path(path).stat().st_mode & 0o077 == 0
    assert not Path(path).exists()


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437"])
def test_a_console_that_lacks_characters_gets_others(encoding, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert main(["simulate", "race"]) == 0
    sys.stdout.flush()
    assert b"log-collector" in written.getvalue()


@pytest.mark.parametrize(("system", "code"), [("win32", 0), ("linux", 3)])
def test_a_reader_that_has_gone_is_no_error_on_windows_which_calls_it_an_invalid_argument(system, code, monkeypatch):
    class Gone(io.TextIOWrapper):
        def write(self, _text):
            raise OSError(errno.EINVAL, "Invalid argument")

    with Gone(Path(os.devnull).open("wb"), encoding="utf-8") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        monkeypatch.setattr(sys, "platform", system)
        assert main(["explain", str(PLATFORM)]) == code


# ---- paths -------------------------------------------------------------------------------------------------------


@pytest.fixture
def windows(monkeypatch):
    """Separate paths as Windows does, as far as podqos writes them."""
    monkeypatch.setattr(os, "sep", "\\")


def test_paths_are_written_with_slashes(windows):
    assert with_slashes("C:\\deploy\\web.yaml") == "C:/deploy/web.yaml"


def test_a_backslash_is_part_of_a_name_elsewhere():
    assert with_slashes("odd\\name.yaml") == "odd\\name.yaml"


def test_a_path_on_another_drive_stays_absolute(windows, monkeypatch):
    def other_drive(*_):
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr(os.path, "relpath", other_drive)
    assert relative("D:\\deploy\\web.yaml") == "D:/deploy/web.yaml"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("deploy/web.yaml", "deploy/web.yaml"),
        ("./deploy/web.yaml", "deploy/web.yaml"),
        ("/srv/deploy/web.yaml", "file:///srv/deploy/web.yaml"),
        ("C:/my deploy/web.yaml", "file:///C:/my%20deploy/web.yaml"),
    ],
)
def test_sarif_has_uris(path, shown):
    assert uri(path) == shown


@pytest.mark.parametrize(
    ("path", "directory", "scope"),
    [
        ("deploy/web.yaml", "C:/shop", "C:/shop/deploy"),
        ("C:/other/web.yaml", "C:/shop", "C:/other"),
        ("../web.yaml", "C:/shop/deploy", "C:/shop"),
        ("deploy/web.yaml", "/srv/shop", "/srv/shop/deploy"),
    ],
)
def test_policies_apply_below_their_directory_on_every_drive(path, directory, scope):
    assert scope_of(path, directory) == scope
    assert is_within(scope_of(path, directory), scope)


@pytest.mark.parametrize("path", ["C:\\deploy", "d:/deploy/web.yaml"])
def test_a_drive_is_not_a_revision_of_git(path, capsys):
    assert begins_with_drive(path)
    assert main(["drift", path, path]) == 2
    err = capsys.readouterr().err
    assert "No such file" in err
    assert "revision" not in err


def test_a_path_is_told_from_a_name():
    assert [has_folder(path) for path in ("race", "race.yaml", "./race", "a/race")] == [False, False, True, True]
