"""Where a node's cgroup is: beside everybody else's, or in a unit of systemd's where systemd runs the tree."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.errors import HostError
from podqos.host.linux.capabilities import detect, find_mounts
from podqos.host.linux.procfs import Procfs
from podqos.host.node.settings import NodeSettings
from podqos.qos.cgroup_settings import CgroupVersion


def delegated(settings: NodeSettings) -> NodeSettings:
    """Return the settings with the cgroup to use; asks systemd for one where it has to be asked.

    With cgroup v1 systemd keeps a hierarchy of its own for its units, and the controllers are anybody's.
    """
    procfs = Procfs()
    capabilities, mount = detect(procfs), find_mounts(procfs).v2
    if not capabilities.has_systemd or capabilities.version is not CgroupVersion.V2 or mount is None:
        return settings
    from podqos.host.linux.systemd import delegated_root

    try:
        settings.state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"state directory {settings.state_dir}: {error.strerror}") from error
    root = delegated_root(settings.cgroup_root.strip("/").replace("/", "-"), settings.state_dir, procfs, mount)
    return replace(settings, cgroup_root=root, is_delegated=True)
