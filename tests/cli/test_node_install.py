from __future__ import annotations

import os
import subprocess
from configparser import ConfigParser
from shutil import which

import pytest

from podqos.cli.main import main


def _unit(text):
    parser = ConfigParser(interpolation=None, strict=False)  # of several capability lines the last counts here
    parser.optionxform = str
    parser.read_string(text)
    return parser


def _install(tmp_path, *options):
    return main(["node", "install", "--manifests", "pods", "--unit-dir", str(tmp_path), *options])


def test_the_unit_is_printed_with_the_options_of_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _install(tmp_path, "--memory", "4Gi", "--shadow", "--config", "my kubelet.yaml", "--node-name", "50%") == 0
    service = _unit(capsys.readouterr().out)["Service"]
    command = service["ExecStart"]
    assert f" node run --manifests {tmp_path}/pods" in command
    assert f'--kubelet-config "{tmp_path}/my kubelet.yaml" --memory 4Gi --node-name "50%%" --shadow' in command
    assert command.startswith("/")
    assert service["KillMode"] == "process"
    assert service["OOMScoreAdjust"] == "-999"
    assert "CAP_SYS_RESOURCE" in service["CapabilityBoundingSet"]
    assert service["StateDirectory"] == "podqos"
    assert list(tmp_path.iterdir()) == []


def test_a_runtime_is_passed_on_and_not_confined(tmp_path, capsys):
    assert _install(tmp_path, "--runtime", "podman", "--podman-option=--root=/r", "--podman-option=--syslog") == 0
    service = _unit(capsys.readouterr().out)["Service"]
    assert "--runtime podman --podman-option=--root=/r --podman-option=--syslog" in service["ExecStart"]
    assert "CapabilityBoundingSet" not in service


@pytest.mark.skipif(which("systemd-analyze") is None, reason="systemd-analyze is missing")
@pytest.mark.parametrize("runtime", ["process", "runc"])
def test_systemd_understands_the_unit(tmp_path, capsys, runtime):
    _install(tmp_path, "--runtime", runtime, "--manifests", "/etc/a folder")
    file = tmp_path / "podqos-test.service"
    file.write_text(capsys.readouterr().out)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "podqos-test" in line] == []


def test_a_state_directory_elsewhere_is_left_to_its_owner(tmp_path, capsys):
    _install(tmp_path, "--state-dir", "/srv/podqos")
    unit = capsys.readouterr().out
    assert "StateDirectory" not in unit
    assert "--state-dir /srv/podqos" in unit


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write units")
def test_the_unit_is_written_and_never_overwritten_unasked(tmp_path, capsys):
    assert _install(tmp_path, "--write") == 0
    assert "systemctl daemon-reload && systemctl enable --now podqos-node" in capsys.readouterr().out
    file = tmp_path / "podqos-node.service"
    first = file.read_text()
    assert _install(tmp_path, "--write") == 0
    assert _install(tmp_path, "--write", "--memory", "1Gi") == 3
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == first
    assert _install(tmp_path, "--write", "--memory", "1Gi", "--force") == 0
    assert "--memory 1Gi" in file.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["podqos-node.service"]


def test_who_is_not_root_is_told_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert _install(tmp_path, "--write") == 3
    assert "only root" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "a b", ""])
def test_a_unit_has_a_decent_name(tmp_path, name):
    assert _install(tmp_path, "--name", name) == 2


@pytest.mark.parametrize("who", ["node", "guard"])
def test_memory_that_a_unit_keeps_is_kept_because_no_slice_is_above_it(who, capsys):
    assert main([who, "install", *(["--manifests", "pods"] if who == "node" else ["--node", "one"])]) == 0
    service = _unit(capsys.readouterr().out)["Service"]
    assert (service["MemoryMin"], service["Slice"]) == ("64M", "-.slice")
