"""Restarts of kubelets and changes of their settings, of a scenario file, as values; what is invalid is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from podqos.errors import InputError
from podqos.manifest.examine import Examination
from podqos.manifest.kubelet import kubelet_settings
from podqos.manifest.plain import FieldPath, Plain, parse_path
from podqos.model.kubelet_config import API_VERSION, KIND, KubeletConfiguration
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.placement.kubelet_start import check_starts
from podqos.sim.scenario.happenings import Happening, KubeletRestart, stated_fields
from podqos.sim.scenario.scenario import MachineSpec, NodeGroup
from podqos.sim.scenario_format.events import EventOfKind, EventPart, KubeletChangePart
from podqos.sim.scenario_format.shape_document import Report

_NAMES = ("node", "nodes")


def read_kubelet_change(examination: Examination, value: Plain, path: FieldPath) -> KubeletChangePart:
    """Read the machines and the settings that an event names."""
    if not isinstance(value, dict):
        examination.report(path, "must be a mapping", "write node, and the fields of a KubeletConfiguration")
        return KubeletChangePart()
    listed = value.get("nodes", [])
    names = [value["node"]] if "node" in value else listed if isinstance(listed, list) else [listed]
    if not names or not all(isinstance(name, str) for name in names):
        examination.report((*path, "node"), "Required value", "write node: NAME, or nodes: [NAME, NAME]")
        return KubeletChangePart()
    fields = {name: given for name, given in value.items() if name not in _NAMES}
    if not fields:
        examination.report(path, "changes nothing", "write fields of a KubeletConfiguration, or use kubeletRestart")
        return KubeletChangePart()
    try:
        settings = kubelet_settings({"apiVersion": API_VERSION, "kind": KIND, **fields})
    except InputError as error:
        examination.report((*path, *parse_path(error.where)), error.what, error.fix)
        return KubeletChangePart()
    assert settings is not None
    return KubeletChangePart(tuple(map(str, names)), settings.configuration, tuple(fields))


class KubeletEventReader:
    """Makes restarts of kubelets from events."""

    def __init__(self, groups: Sequence[NodeGroup], profile: Profile, report: Report, warn: Report) -> None:
        self._specs: Mapping[str, MachineSpec] = {
            group.name_of(index): group.spec for group in groups for index in range(group.count)
        }
        self._profile = profile
        self._report = report
        self._warn = warn
        self._configs: dict[str, KubeletConfiguration] = {}
        """The configuration of machines, as the last event so far has made it."""

    @property
    def readers(self) -> Mapping[str, EventOfKind]:
        """What reads which field of an event."""
        return {"kubelet_restart": self._restart, "kubelet_config": self._configure}

    def _restart(self, event: EventPart, path: FieldPath) -> Happening | None:
        name = event.kubelet_restart
        return KubeletRestart(int(event.at), name) if self._is_node(name, path) else None

    def _configure(self, event: EventPart, path: FieldPath) -> tuple[Happening, ...]:
        part = event.kubelet_config
        assert part is not None
        for name in part.changed:
            if name not in part.config.__struct_encode_fields__:
                self._warn((*path, name), f"{name} has no effect in a simulation", "remove it")
        return tuple(self._changed(event, part, path))

    def _changed(self, event: EventPart, part: KubeletChangePart, path: FieldPath) -> Iterator[Happening]:
        stated = stated_fields(part.config, part.changed)
        for name in part.nodes:
            if not self._is_node(name, (*path, "node")):
                continue
            spec = self._specs[name]
            config = replace(self._configs.get(name, spec.config), **stated)
            try:
                check_starts(config, _capacity(spec), profile=self._profile)
            except InputError as error:
                place = f"{error.where}: " if error.where else ""
                self._report(path, f"the kubelet of {name} would not start: {place}{error.what}", error.fix)
            self._configs[name] = config
            yield KubeletRestart(int(event.at), name, part.config, part.changed)

    def _is_node(self, name: str, path: FieldPath) -> bool:
        if name not in self._specs:
            self._report(path, f'no such node: "{name}"', f"nodes are {', '.join([*self._specs][:5])}")
        return name in self._specs


def _capacity(spec: MachineSpec) -> ResourceList:
    return {CPU: Quantity.of_milli(spec.cpu_milli), MEMORY: Quantity.of_units(spec.memory_bytes, "BinarySI")}
