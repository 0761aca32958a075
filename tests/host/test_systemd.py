from __future__ import annotations

import pytest
from msgspec.structs import replace

from podqos.errors import HostError
from podqos.host.linux import systemd
from podqos.host.linux.procfs import Procfs
from podqos.host.node import delegation
from podqos.host.node.delegation import delegated
from podqos.host.node.settings import HostSettings


def test_a_scope_is_asked_for_that_is_ours_to_divide():
    message = systemd.scope_request("podqos.scope", 4711)
    unit, mode, properties, _ = message.body
    assert (unit, mode) == ("podqos.scope", "fail")
    assert dict(properties)["Delegate"] == ("b", True)
    assert dict(properties)["PIDs"] == ("au", [4711])
    assert message.serialise(serial=1)


def test_the_scope_of_a_process_is_found_in_its_cgroup(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text("0::/system.slice/podqos.scope/shim\n")
    procfs = Procfs(tmp_path)
    assert systemd._scope(procfs, 7, "podqos.scope") == "/system.slice/podqos.scope"
    assert systemd._scope(procfs, 7, "other.scope") is None


def test_a_systemd_that_is_not_there_is_an_error_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(systemd, "PRIVATE_SOCKET", str(tmp_path / "private"))
    with pytest.raises(HostError, match="systemd does not answer at"):
        systemd._call(systemd.scope_request("podqos.scope", 1))


def test_without_systemd_the_cgroup_stays_where_it_was_asked_for(monkeypatch, tmp_path):
    settings = HostSettings(node="n", manifests=tmp_path, state_dir=tmp_path)
    found = delegation.detect()
    monkeypatch.setattr(delegation, "detect", lambda _procfs: replace(found, has_systemd=False))
    assert delegated(settings) is settings
