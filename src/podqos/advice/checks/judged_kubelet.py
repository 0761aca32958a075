"""A kubelet's configuration as its checks look at it: what its node has, fixes as they are tried, wrong units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from podqos.advice.checks.amounts import implausible_amount, implausible_facts
from podqos.advice.checks.bundle import FoundKubelet
from podqos.advice.checks.check import Check
from podqos.advice.checks.finding import Choice, Fact, FieldEdit, Finding, Patch
from podqos.advice.checks.flag_edits import FlagFile
from podqos.advice.checks.trying import measure, refuted, what_appears
from podqos.advice.checks.units import Machines, Stated, is_implausible, meant
from podqos.advice.checks.view import CheckContext
from podqos.errors import InvalidQuantity
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import (
    ASSUMED_FILESYSTEM,
    default_eviction_hard,
    parse_thresholds,
)
from podqos.manifest.kubelet import Notation
from podqos.manifest.plain import Plain, parse_path
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.quantity import Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY, NO_RESOURCES, ResourceList, is_hugepages

if TYPE_CHECKING:
    from podqos.orders.plain_node import FirstActor, PlainNode

_MEBIBYTE = 1 << 20


class JudgedKubelet:
    """One configuration as its checks look at it."""

    def __init__(self, found: FoundKubelet, context: CheckContext, known: dict[bytes, FirstActor]) -> None:
        self.config: KubeletConfiguration = found.configuration
        self.options = context.options
        self.capacity = _capacity(context)
        self.machines = Machines(context.surroundings.nodes, context.options.node_memory_bytes)
        self.flags = None if found.arguments is None else FlagFile(found.configuration, found.arguments)
        self._subject = found.subject
        self._known = known
        self._fields: dict[tuple[str, str], tuple[FieldEdit, ...]] = {}
        self._place = found.notation.place if self.flags is None else self.flags.place

    def finding(self, check: Check, path: str, facts: Fact, patch: Patch) -> Finding:
        """Return a finding with its places as they are in the file."""
        if patch.needs_choice is not None:
            patch = Patch.choose(patch.needs_choice, [self._place(path) for path in patch.paths], patch.candidates)
            return check.finding(self._subject, self._place(path), facts, patch)
        fields = patch.edits
        if self.flags is not None:
            patch = Patch.write(*self.flags.edits(fields))
        else:
            patch = Patch.write(*(replace(edit, path=self._place(edit.path)) for edit in fields))
        finding = check.finding(self._subject, self._place(path), facts, patch)
        self._fields[finding.check, finding.path] = fields
        return finding

    def fixed(self, finding: Finding) -> KubeletConfiguration | None:
        """Return the configuration with the fix of a finding; None where the kubelet cannot read that."""
        from podqos.advice.checks.finding import plain_value
        from podqos.manifest.edits.values import with_field

        value: Plain = msgspec.to_builtins(self.config)
        for edit in self._fields[finding.check, finding.path]:
            value = with_field(value, parse_path(edit.path), plain_value(edit.value))
        try:
            return msgspec.convert(value, KubeletConfiguration)
        except msgspec.ValidationError:
            return None

    @property
    def memory_bytes(self) -> int:
        """What the node has."""
        return self.capacity[MEMORY].value

    @property
    def growth(self) -> int:
        """How fast memory is taken to grow, in bytes per second."""
        return self.options.growth_bytes_per_second

    def first_actor(self) -> FirstActor:
        """Return whether kubelet or kernel acts first: what ``forecast`` says of a node with this kubelet."""
        from podqos.orders.plain_node import first_actor

        key = msgspec.json.encode(self.config)
        if key not in self._known:
            self._known[key] = first_actor(self._node(self.config), self.growth)
        return self._known[key]

    def hard_edits(self, threshold_bytes: int) -> list[FieldEdit] | None:
        """Return the edits that set the hard threshold of memory; None if the kubelet would still not be first.

        Naming one threshold drops the defaults of all others, so they are written as well.
        """
        from podqos.orders.plain_node import always_first

        name, written = Signal.MEMORY.value, self.config.eviction_hard
        hard = {name: in_mebibytes(threshold_bytes)}
        if written is None:
            hard = {**hard, **{key: text for key, text in self._default_hard().items() if key != name}}
        node = self._node(replace(self.config, eviction_hard={**(written or {}), **hard}))
        if not always_first(node, self.growth):
            return None
        edits = [FieldEdit(f"evictionHard[{key}]", text, (written or {}).get(key)) for key, text in hard.items()]
        soft = [
            threshold.amount(self.memory_bytes).value
            for threshold in parse_thresholds(self.config, self.options.profile)
            if threshold.signal is Signal.MEMORY and not threshold.is_hard
        ]
        if soft and soft[0] <= Quantity.parse(hard[name]).value:
            # A soft threshold that is not above the hard one would never take effect (PQ402).
            edits.append(FieldEdit(f"evictionSoft[{name}]", twice(hard[name]), self.config.eviction_soft[name]))
        return edits

    def _default_hard(self) -> Mapping[str, str]:
        return default_eviction_hard(self.options.profile)

    def _node(self, config: KubeletConfiguration) -> PlainNode:
        from podqos.orders.plain_node import PlainNode

        hugepages_bytes = sum(amount.value for name, amount in self.capacity.items() if is_hugepages(name))
        return PlainNode(self.memory_bytes, config, profile=self.options.profile, hugepages_bytes=hugepages_bytes)


def _capacity(context: CheckContext) -> ResourceList:
    """Return what a node has: the smallest, with as much memory as is stated."""
    capacity: ResourceList = {EPHEMERAL_STORAGE: ASSUMED_FILESYSTEM}
    nodes = [node for node in context.surroundings.nodes if MEMORY in node.status.capacity]
    if nodes:
        capacity = min(nodes, key=lambda node: (node.status.capacity[MEMORY].nanos, node.name)).status.capacity
        if capacity[MEMORY].value == context.node_memory_bytes:
            return capacity
    return {**capacity, MEMORY: Quantity.of_units(context.node_memory_bytes, "BinarySI")}


_BYTE_SIGNALS = {
    Signal.MEMORY.value: MEMORY,
    Signal.NODEFS.value: EPHEMERAL_STORAGE,
    Signal.IMAGEFS.value: EPHEMERAL_STORAGE,
}


def wrong_units(kubelet: JudgedKubelet) -> Iterator[Finding]:
    """Yield reservations and thresholds in the wrong unit: half a byte that is kept free looks like care."""
    config = kubelet.config
    amounts = [
        (f"{field}.{name}", name, text)
        for field, reserved in (("systemReserved", config.system_reserved), ("kubeReserved", config.kube_reserved))
        for name, text in reserved.items()
    ]
    amounts += [
        (f"{field}[{signal}]", _BYTE_SIGNALS[signal], text)
        for field, thresholds in (("evictionHard", config.eviction_hard or {}), ("evictionSoft", config.eviction_soft))
        for signal, text in thresholds.items()
        if signal in _BYTE_SIGNALS and not text.endswith("%")
    ]
    for path, name, text in amounts:
        try:
            stated = Stated(name, "requests", Quantity.parse(text))
        except InvalidQuantity:
            continue  # which has a finding of its own
        if not is_implausible(stated, NO_RESOURCES, kubelet.machines):
            continue
        reading = meant(name, stated.amount, kubelet.machines)
        patch = Patch.choose(Choice.UNIT, (path,), reading.readings)
        if reading.is_plain:
            patch = Patch.write(FieldEdit(path, reading.readings[0], text))
        facts = replace(implausible_facts(stated, reading, patch), setting=path)
        yield kubelet.finding(implausible_amount, path, facts, patch)


def in_mebibytes(count: int) -> str:
    """Return an amount of memory, rounded up to whole mebibytes."""
    return str(Quantity.of_units(-(-count // _MEBIBYTE) * _MEBIBYTE, "BinarySI"))


def twice(text: str) -> str:
    """Return double an amount or share, as a threshold is written."""
    if text.endswith("%"):
        return f"{min(99.0, 2 * float(text[:-1])):g}%"
    amount = Quantity.parse(text)
    return str(amount + amount)


class KubeletTrials:
    """The fixes of kubelets, written into their configurations and checked; many kubelets have the same."""

    def __init__(self, context: CheckContext, find: Callable[[JudgedKubelet], Iterable[Finding]]) -> None:
        self._context, self._find = context, find
        # Fleets have many kubelets with the same settings.
        self._known: dict[bytes, FirstActor] = {}
        self._found: dict[bytes, list[Finding]] = {}

    def findings(self, found: FoundKubelet) -> Iterator[Finding]:
        """Yield what is found about a kubelet; a fix that would not help is a choice."""
        kubelet = JudgedKubelet(found, self._context, self._known)
        findings = list(self._find(kubelet))
        for finding in findings:
            if not finding.patch.is_complete:
                yield finding
                continue
            fixed = kubelet.fixed(finding)
            patch = replace(finding.patch, is_tried=True)
            if fixed is None:
                patch = refuted(patch, Choice.THRESHOLD, "the kubelet cannot read it")
            else:
                after = self._after(fixed, found)
                if measure(after) >= measure(findings):
                    patch = refuted(patch, Choice.THRESHOLD, what_appears(findings, after))
            yield replace(finding, patch=patch)

    def _after(self, fixed: KubeletConfiguration, found: FoundKubelet) -> list[Finding]:
        key = msgspec.json.encode(fixed)
        if key not in self._found:
            again = replace(found, configuration=fixed, notation=Notation.CONFIGURATION, arguments=None)
            self._found[key] = list(self._find(JudgedKubelet(again, self._context, self._known)))
        return self._found[key]


def starting(kubelet: JudgedKubelet, path: str) -> Patch | None:
    """Return what lets a kubelet start that does not because of a setting; None where that has to be chosen."""
    if path == "enforceNodeAllocatable":
        # Without the line the default counts, which is true; a flag has to be there.
        value = None if kubelet.flags is None else "true"
        return Patch.write(FieldEdit("cgroupsPerQOS", value, "false"))
    return Patch.write(FieldEdit("reservedSystemCPUs", "0")) if path == "cpuManagerPolicy" else None
