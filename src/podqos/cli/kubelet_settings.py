"""A kubelet's settings from a file: its configuration, its /configz, or OKD's kubeletArguments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import cast

from podqos.cli.inputs import read_bytes
from podqos.cli.kubelet_notes import ignored_problems
from podqos.errors import InputError, InvalidConfiguration
from podqos.eviction.settings import EvictionSettings, settings_from_configuration, settings_from_kubelet_arguments
from podqos.eviction.signals import Signal
from podqos.manifest.documents import plain_documents
from podqos.manifest.plain import Plain
from podqos.model.kubelet_config import API_VERSION, KIND, KubeletConfiguration, kubelet_configuration
from podqos.model.kubelet_ignored import Reader
from podqos.model.quantity import Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.placement.allocatable import Allocatable, node_allocatable


def read_kubelet_settings(path: str, reader: Reader = "plan") -> tuple[EvictionSettings, KubeletConfiguration | None]:
    """Return the settings about eviction in a file, and all settings where it holds a KubeletConfiguration.

    What ``reader`` ignores of them is said on standard error.
    """
    for document in plain_documents(path, read_bytes(path)):
        value = document.value
        if not isinstance(value, dict):
            continue
        if isinstance(value.get("kubeletArguments"), dict):
            return settings_from_kubelet_arguments(cast("Mapping[str, list[str]]", value["kubeletArguments"])), None
        if isinstance(value.get("kubeletconfig"), dict):
            # What /configz answers does not say what it is.
            value = {"apiVersion": API_VERSION, "kind": KIND, **cast("dict[str, Plain]", value["kubeletconfig"])}
        if value.get("kind") == KIND:
            settings = settings_from_configuration(value), kubelet_configuration(value, "")
            for problem in ignored_problems(value, path, reader=reader):
                print(problem, file=sys.stderr)
            return settings
    fix = "kind: KubeletConfiguration, kubeletconfig (of /configz) or kubeletArguments (OKD)"
    raise InputError("no kubelet configuration in it", where=path, fix=fix)


def memory_allocatable(config: KubeletConfiguration, capacities: Mapping[Signal, int]) -> Allocatable:
    """Divide memory, and disk where its size is known, as this kubelet does; it must not reserve more than that."""
    capacity = {MEMORY: Quantity.of_units(capacities[Signal.MEMORY], "BinarySI")}
    if Signal.NODEFS in capacities:
        capacity[EPHEMERAL_STORAGE] = Quantity.of_units(capacities[Signal.NODEFS], "BinarySI")
    allocatable = node_allocatable(capacity, config)
    for resource in allocatable.over_reserved:
        withheld, there = allocatable.reservation[resource], capacity[resource]
        what = f"{withheld} of {resource} are withheld from pods, and there are {there}: the kubelet does not start"
        raise InvalidConfiguration(what, fix="reserve less, or give the node's own --node-memory and --nodefs-capacity")
    return allocatable
