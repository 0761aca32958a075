"""The settings of a guard: its own, and those of its kubelet.

A kubelet's settings come from the kubelet itself (``/configz``) and are saved: a guard starts with the last ones,
whether the API server is available or not, and restarts if the kubelet's have changed. For a kubelet that may not be
asked, as with its own credentials, they come from its command line and files (``kubelet_files``). The guard uses the
kubelet's thresholds for memory and process IDs. Disk thresholds are left to the kubelet: they need its clean-up and
statistics that only it has, and disks fill slowly.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.agent import MEMORY_SIGNALS
from podqos.agent.state import AgentConfig, MemoryNotification, PodPlans
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubelets import Kubelets
from podqos.errors import ClusterError, Forbidden, HostError, InputError, InvalidArgument
from podqos.eviction.manager import ManagerConfig, configure
from podqos.eviction.signals import Layout, Signal
from podqos.eviction.thresholds import Threshold, ThresholdValue
from podqos.guard.eviction import KillWhen
from podqos.guard.kubelet_files import LocalKubelet, NoKubeletRuns, local_kubelet
from podqos.host.linux.procfs import Procfs
from podqos.host.storage.writing import replace_file
from podqos.kernel.memory import machine
from podqos.manifest.kubelet import kubelet_settings_in
from podqos.manifest.pruning import pruned_kubelet
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile, parse_version
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.naming import naming, published, stated_with
from podqos.orders.race import Race, winning_threshold_bytes
from podqos.placement.allocatable import cgroup_settings, node_allocatable
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion

STATE_DIR, RUN_DIR = "/var/lib/podqos/guard", "/run/podqos/guard"
OOM_SCORE_ADJ = -999
STOP_FILE = "stop"
"""In the run directory: while it exists, nothing is evicted."""
_KEPT = "kubelet.json"
_LAST_SEEN = "those that the kubelet was last seen running with (no kubelet process is visible)"
_SIGNALS = frozenset({*MEMORY_SIGNALS, Signal.PID})


class OwnThreshold(Struct, frozen=True):
    """The memory threshold for a reaction: growth of ``bytes_per_second`` is noticed in time."""

    reaction_us: int
    bytes_per_second: int

    def value(self, memory_bytes: int) -> Quantity:
        """Return how much must be left, on this machine size, for the kernel not to act within the reaction time.

        The kernel kills when its ``min`` watermark is reached, not when nothing is left.
        """
        kept_bytes = machine(memory_bytes).watermarks.min_bytes
        race = Race(memory_bytes, memory_bytes - kept_bytes, 0, self.bytes_per_second, reaction_us=self.reaction_us)
        return Quantity.of_units(winning_threshold_bytes(race, Fraction(0)), "BinarySI")


class GuardSettings(Struct, frozen=True, kw_only=True):
    """The settings given to a guard."""

    node: str
    kubelet: KubeletConfiguration
    kubelet_source: str = ""
    """Where the kubelet's settings come from; empty if the kubelet reported them."""
    profile: Profile = LATEST
    state: Path = Path(STATE_DIR)
    run: Path = Path(RUN_DIR)
    enforce: bool = False
    kill_when: KillWhen = KillWhen.PATCH
    most: int = 3
    """Maximum number of evictions …"""
    most_within_us: int = 300_000_000
    """… within this time."""
    cool_down_us: int = 100_000
    """Minimum time between two evictions."""
    own_threshold: OwnThreshold | None = None
    """Replaces the kubelet's memory thresholds."""
    realtime: bool = False

    # ---- as ``host.shell.protection`` asks for it
    @property
    def configuration(self) -> KubeletConfiguration:
        """The settings of a process that should die last."""
        return replace(self.kubelet, oom_score_adj=OOM_SCORE_ADJ)

    @property
    def is_delegated(self) -> bool:
        """It stays in the cgroup of its pod or its unit."""
        return True


def agent_config(settings: GuardSettings, version: CgroupVersion, procfs: Procfs) -> AgentConfig:
    """Return the agent's configuration."""
    kubelet, profile = settings.kubelet, settings.profile
    cgroups = cgroups_of(settings, version, procfs)
    allocatable = node_allocatable(cgroups.node_capacity, kubelet).allocatable
    return AgentConfig(
        node=settings.node,
        cgroups=cgroups,
        eviction=eviction_config(settings, cgroups.node_memory_bytes),
        allocatable=allocatable,
        shadow=not settings.enforce,
        notification=MemoryNotification.FAST_PATH,
        profile=profile,
        plans=PodPlans(cgroups, profile, allocatable),
    )


def eviction_config(settings: GuardSettings, memory_bytes: int) -> ManagerConfig:
    """Return the kubelet's thresholds that the guard acts on, or its own instead, on a machine of this size."""
    config = configure(settings.kubelet, layout=Layout.SINGLE, profile=settings.profile)
    own = None if settings.own_threshold is None else settings.own_threshold.value(memory_bytes)
    thresholds = [_own(threshold, own) for threshold in config.thresholds if threshold.signal in _SIGNALS]
    return replace(config, thresholds=tuple(thresholds), local_storage_capacity_isolation=False)


def _own(threshold: Threshold, own: Quantity | None) -> Threshold:
    if own is None or threshold.signal not in MEMORY_SIGNALS or not threshold.is_hard:
        return threshold
    return replace(threshold, value=ThresholdValue(own))


def cgroups_of(settings: GuardSettings, version: CgroupVersion, procfs: Procfs) -> CgroupSettings:
    """Return where the kubelet's cgroups are."""
    if not settings.kubelet.cgroups_per_qos:
        raise HostError("this kubelet creates no pod cgroups (cgroupsPerQOS: false): the guard has nothing to watch")
    capacity = {
        CPU: Quantity.of_units(os.cpu_count() or 1),
        MEMORY: Quantity.of_units(procfs.machine_memory().total_bytes, "BinarySI"),
    }
    return cgroup_settings(settings.kubelet, capacity, cgroup_version=version, profile=settings.profile)


# ---- the kubelet's settings ------------------------------------------------------------------------------------------


class KnownKubelet(Struct, frozen=True, rename="camel"):
    """A kubelet as last known."""

    node: str
    version: str
    """Version of the API server."""
    configz: msgspec.Raw = msgspec.Raw(b"null")
    """Not requested if its configuration is given."""
    started_with: KubeletConfiguration | None = None
    """Its settings when it was last seen running, if it may not be asked: it may be down when they are needed."""


class KubeletSettingsFound(Struct, frozen=True):
    """A kubelet's settings, and problems in finding them."""

    configuration: KubeletConfiguration
    profile: Profile
    trouble: str = ""
    source: str = ""
    """The files and flags that they come from; empty if the kubelet reported them, or they are given."""
    is_running: bool = False
    """Whether these files and flags are those of a running kubelet."""


Local = Callable[[str, Profile], LocalKubelet]
"""Finds the settings of this machine's kubelet without asking it, for a node name and the rules of a version."""


def find_kubelet(
    cluster: Cluster, node: str, state: Path, given: KubeletConfiguration | None, local: Local = local_kubelet
) -> KubeletSettingsFound:
    """Return a kubelet's last known settings at once; ask it (``ask_kubelet``) only if there are none.

    ``given`` is its configuration, if known; the rules are then those of the last known version. For a kubelet that did
    not report its settings the last time, this machine's files are tried first.
    """
    last = _last(state / _KEPT, node)
    if given is not None:
        return KubeletSettingsFound(given, LATEST if last is None else _profile(last.version))
    if last is not None:
        configuration = _configuration(last)
        if configuration is not None:
            return KubeletSettingsFound(configuration, _profile(last.version))
        with contextlib.suppress(HostError):
            return _from_files(local, last)
    return ask_kubelet(cluster, node, state, None, local)


def ask_kubelet(
    cluster: Cluster, node: str, state: Path, given: KubeletConfiguration | None, local: Local = local_kubelet
) -> KubeletSettingsFound:
    """Ask a kubelet for its settings, except for given ones, and save them.

    If it may not be asked, or never answered, they come from this machine's files.
    """
    file = state / _KEPT
    last = _last(file, node)
    has_last = last is not None and _configuration(last) is not None
    try:
        version = cluster.version().git_version
    except ClusterError as error:
        if given is not None or has_last:
            raise _unknown(node, error) from error
        return _instead(error, local, last or KnownKubelet(node, ""))
    if given is not None:
        known = KnownKubelet(node, version) if last is None else replace(last, version=version)
        return KubeletSettingsFound(given, _profile(version), _keep(file, known))
    try:
        known = KnownKubelet(node, version, msgspec.Raw(Kubelets(cluster).ask(node, "configz", pruned_kubelet)))
        configuration = _configuration(known)
        assert configuration is not None, "it has answered"
    except (ClusterError, InputError) as error:
        if has_last and not isinstance(error, Forbidden):
            raise _unknown(node, error) from error
        last = KnownKubelet(node, version, started_with=None if last is None else last.started_with)
        found = _instead(error, local, last)
        # Its earlier answer would be outdated by the next start.
        unkept = _keep(file, replace(last, started_with=found.configuration if found.is_running else last.started_with))
        return replace(found, trouble="; ".join(filter(None, (found.trouble, unkept))))
    return KubeletSettingsFound(configuration, _profile(version), _keep(file, known))


def _from_files(local: Local, last: KnownKubelet) -> KubeletSettingsFound:
    """Return the settings in this machine's files; while no kubelet runs, those that it was last seen running with."""
    profile, before = _profile(last.version), last.started_with
    try:
        found = local(last.node, profile)
    except NoKubeletRuns:
        if before is None:
            raise
        found = None
    if before is not None and (found is None or not found.is_running):
        return KubeletSettingsFound(before, profile, source=_LAST_SEEN)
    assert found is not None, "it was raised"
    return KubeletSettingsFound(found.configuration, profile, found.trouble, found.source, found.is_running)


def _instead(error: ClusterError | InputError, local: Local, last: KnownKubelet) -> KubeletSettingsFound:
    """Return the settings in this machine's files; if there are none, the error has both reasons."""
    try:
        found = _from_files(local, last)
    except HostError as missing:
        raise _unknown(last.node, error, str(missing)) from error
    return replace(found, source=f"{found.source}, because {_reason(error)}")


def _unknown(node: str, error: ClusterError | InputError, missing: str = "") -> HostError:
    in_cluster = f"`podqos guard manifests {stated_with('kubelet_config', 'PATH')}`"
    fix = "give its configuration file: " + naming("kubelet_config", "FILE") + ", for a DaemonSet " + in_cluster
    reasons = "; ".join(filter(None, (_reason(error), missing)))
    return HostError(f"the kubelet settings of node {node} are unknown: {reasons} (" + fix + ")")


def _reason(error: ClusterError | InputError) -> str:
    if isinstance(error, Forbidden):
        return f"the kubelet may not be asked: {error.what} (403 Forbidden)"
    return f"the kubelet did not answer: {error.worded(published)}"


def _profile(version: str) -> Profile:
    try:
        return parse_version(version)
    except InvalidArgument:
        return LATEST


def _configuration(known: KnownKubelet) -> KubeletConfiguration | None:
    data = bytes(known.configz)
    return None if data == b"null" else kubelet_settings_in(f"configz of node {known.node}", data).configuration


def _keep(file: Path, known: KnownKubelet) -> str:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(file, msgspec.json.encode(known))
    except OSError as error:
        return f"{file}: {error.strerror}: the kubelet's settings were not saved"
    return ""


def last_node(state: Path) -> str:
    """Return the node that was guarded last; empty if none was."""
    known = _saved(state / _KEPT)
    return "" if known is None else known.node


def _last(file: Path, node: str) -> KnownKubelet | None:
    known = _saved(file)
    return known if known is not None and known.node == node else None


def _saved(file: Path) -> KnownKubelet | None:
    try:
        known = msgspec.json.decode(file.read_bytes(), type=KnownKubelet)
        _configuration(known)
    except (OSError, msgspec.DecodeError, InputError):
        return None
    return known
