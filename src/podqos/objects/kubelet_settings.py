"""A kubelet's settings from flags, and the allocatable they result in."""

from __future__ import annotations

from collections.abc import Mapping

from podqos.errors import InvalidConfiguration
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import check_alone
from podqos.manifest.kubelet import kubelet_settings
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.placement.allocatable import Allocatable, divided


def settings_from_flags(flags: Mapping[str, list[str]]) -> KubeletConfiguration:
    """Return the settings of kubelet flags on a command line."""
    try:
        settings = kubelet_settings({"kubeletArguments": {name: [*values] for name, values in flags.items()}})
        assert settings is not None
        check_alone(settings)
    except InvalidConfiguration as error:
        raise error.placed(lambda where: where.replace("kubeletArguments.", "--")) from None
    return settings.configuration


def memory_allocatable(
    config: KubeletConfiguration, capacities: Mapping[Signal, int], cpu: Quantity | None = None
) -> Allocatable:
    """Divide memory, and cpu and disk where known, as this kubelet does; it must not reserve more than there is."""
    capacity = {MEMORY: Quantity.of_units(capacities[Signal.MEMORY], "BinarySI")}
    if cpu is not None:
        capacity = {CPU: cpu, **capacity}
    if Signal.NODEFS in capacities:
        capacity[EPHEMERAL_STORAGE] = Quantity.of_units(capacities[Signal.NODEFS], "BinarySI")
    return divided(capacity, config)
