"""Finds the place of a node's cgroup: at the root, or in a systemd unit where systemd manages the tree."""

from __future__ import annotations

import contextlib

from msgspec.structs import replace

from podqos.errors import HostError
from podqos.host.linux.capabilities import detect, find_mounts
from podqos.host.linux.claim import check_name
from podqos.host.linux.procfs import Procfs
from podqos.host.node.settings import HostSettings
from podqos.host.runtimes.shim_client import ShimClient
from podqos.qos.cgroup_settings import CgroupVersion


def delegated(settings: HostSettings) -> HostSettings:
    """Return the settings with the cgroup to use; asks systemd for one where necessary.

    With cgroup v1 systemd has a hierarchy of its own for its units, and the controllers are free to use.
    """
    check_name(settings.own)
    procfs = Procfs()
    capabilities, mount = detect(procfs), find_mounts(procfs).v2
    if not capabilities.has_systemd or capabilities.version is not CgroupVersion.V2 or mount is None:
        return settings
    from podqos.host.linux.systemd import delegated_root

    try:
        settings.state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"state directory {settings.state_dir}: {error.strerror}") from error
    name = settings.cgroup_root.strip("/").replace("/", "-")
    with contextlib.closing(ShimClient(settings.state_dir)) as shim:
        root = delegated_root(name, shim.pid, procfs, mount)
    return replace(settings, cgroup_root=root, is_delegated=True)
