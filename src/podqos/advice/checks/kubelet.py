"""PQ401–PQ413: settings of a kubelet that leave the choice of victims to the kernel, or to chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from podqos.advice.checks.bundle import FoundKubelet
from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.facts import (
    Facts,
    GraceCut,
    KernelFirst,
    KubeletRefuses,
    MemoryUnwatched,
    NoEffect,
    NothingReserved,
    OverReserved,
    PodsNotEnforced,
    QOSCgroupsOff,
    ReclaimsTooMuch,
    SoftAfterHard,
    SoftNotCovered,
    SoftWithoutGrace,
    SwapHidesPressure,
)
from podqos.advice.checks.finding import Choice, Consequence, Effect, FieldEdit, Finding, Patch
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import Context
from podqos.advice.fixes.flag_edits import FlagFile
from podqos.errors import InvalidConfiguration
from podqos.eviction.grace import soft_grace_seconds
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.signals import Signal
from podqos.eviction.threshold_warnings import ThresholdWarning, WarningKind, threshold_warnings
from podqos.eviction.thresholds import Threshold, default_eviction_hard, effective_eviction_hard, parse_thresholds
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY, ResourceList
from podqos.placement.allocatable import node_allocatable
from podqos.survival.race import Race, run_race, winning_threshold_bytes

_MEBIBYTE = 1 << 20
_GRACE_PERIOD = "1m30s"
"""For a soft threshold that has none: long enough for a burst to pass, as in upstream's documentation."""
_MUCH = 5
"""A minimum reclaim of more than so many thresholds evicts pods that pressure did not ask for."""

Found = Iterator[Finding]


def check_kubelets(context: Context, sketches: Sequence[Sketch]) -> Found:
    """Yield what is wrong with the configurations of kubelets; ``sketches`` are the workloads they may run."""
    for found in context.surroundings.kubelets:
        yield from _KubeletCheck(found, context).findings(sketches)


class _KubeletCheck:
    """One configuration."""

    def __init__(self, found: FoundKubelet, context: Context) -> None:
        self._config: KubeletConfiguration = found.configuration
        self._subject = found.subject
        self._flags = None if found.arguments is None else FlagFile(found.configuration, found.arguments)
        self._place = found.notation.place if self._flags is None else self._flags.place
        self._context = context
        self._capacity = _capacity(context)

    def findings(self, sketches: Sequence[Sketch]) -> Found:
        """Yield everything; settings with which the kubelet does not start are all there is to say about them."""
        missing = list(self._missing_grace_periods())
        yield from missing
        if missing:
            return
        try:
            thresholds = parse_thresholds(self._config, self._context.options.profile)
            warnings = threshold_warnings(self._config, self._capacities(), self._context.options.profile)
            yield from self._allocatable()
        except InvalidConfiguration as error:
            path = error.where.replace('"', "") if error.where else ""
            yield self._finding("PQ412", path, KubeletRefuses(str(error)), Patch(needs_choice=Choice.THRESHOLD))
            return
        for warning in warnings:
            yield from self._warned(warning)
        yield from self._kernel_first(thresholds)
        yield from self._minimum_reclaim(thresholds)
        yield from self._enforcement()
        yield from self._grace(sketches)

    def _finding(self, check: str, path: str, facts: Facts, patch: Patch) -> Finding:
        """Return a finding with its places as they are in the file."""
        edits = tuple(replace(edit, path=self._place(edit.path)) for edit in patch.edits)
        return Finding(
            check,
            CHECKS[check].severity,
            self._subject,
            self._place(path),
            facts,
            Consequence(CHECKS[check].effect),
            replace(
                patch,
                edits=edits if self._flags is None else self._flags.edits(patch.edits),
                paths=tuple(map(self._place, patch.paths)),
            ),
        )

    def _capacities(self) -> dict[Signal, int]:
        """Return what the shares of thresholds are of, as far as that is known."""
        signals = {Signal.MEMORY: MEMORY, Signal.NODEFS: EPHEMERAL_STORAGE}
        return {signal: self._capacity[name].value for signal, name in signals.items() if name in self._capacity}

    def _missing_grace_periods(self) -> Found:
        """PQ403, as far as the kubelet does not start."""
        for signal in self._config.eviction_soft:
            if signal not in self._config.eviction_soft_grace_period:
                yield self._soft_without_grace(signal, None)

    def _soft_without_grace(self, signal: str, grace_period: str | None) -> Finding:
        path = f"evictionSoftGracePeriod[{signal}]"
        return self._finding(
            "PQ403",
            f"evictionSoft[{signal}]",
            SoftWithoutGrace(signal, grace_period),
            Patch((FieldEdit(path, _GRACE_PERIOD, grace_period),)),
        )

    def _warned(self, warning: ThresholdWarning) -> Found:
        """PQ401, PQ402, PQ403, PQ407, PQ410: what eviction itself warns of."""
        signal = warning.signal.value
        config = self._config
        match warning.kind:
            case WarningKind.MEMORY_UNWATCHED:
                written = (config.eviction_hard or {}).get(signal)
                named = tuple(name for name in config.eviction_hard or {} if name != signal)
                threshold = _in_mebibytes(winning_threshold_bytes(self._race(0)))
                patch = Patch((FieldEdit(f"evictionHard[{signal}]", threshold, written),))
                yield self._finding("PQ401", "evictionHard", MemoryUnwatched(named), patch)
            case WarningKind.SOFT_AFTER_HARD:
                soft = config.eviction_soft[signal]
                hard = effective_eviction_hard(self._config, self._context.options.profile)[signal]
                facts = SoftAfterHard(signal, soft, hard)
                path = f"evictionSoft[{signal}]"
                yield self._finding("PQ402", path, facts, Patch((FieldEdit(path, _twice(hard), soft),)))
            case WarningKind.SOFT_WITHOUT_GRACE:
                yield self._soft_without_grace(signal, config.eviction_soft_grace_period[signal])
            case WarningKind.SWAP_HIDES_PRESSURE:
                behavior = config.memory_swap.swap_behavior
                edit = FieldEdit("memorySwap.swapBehavior", "NoSwap", behavior or None)
                if self._flags is not None:  # there is no such flag
                    edit = FieldEdit("failSwapOn", True, "false")
                yield self._finding("PQ407", "failSwapOn", SwapHidesPressure(behavior), Patch((edit,)))
            case _:
                yield from self._without_effect(warning)

    def _without_effect(self, warning: ThresholdWarning) -> Found:
        """PQ410."""
        signal = warning.signal.value
        grace_periods = self._config.eviction_soft_grace_period
        settings = {"evictionHard": self._config.eviction_hard or {}, "evictionSoft": self._config.eviction_soft}
        if warning.kind is WarningKind.UNUSED_GRACE_PERIOD:
            settings = {"evictionSoftGracePeriod": grace_periods}
        named = [name for name, statements in settings.items() if signal in statements]
        if not named:
            return
        edits = [FieldEdit(f"{name}[{signal}]", None, settings[name][signal]) for name in named]
        if "evictionSoft" in named:
            edits.append(FieldEdit(f"evictionSoftGracePeriod[{signal}]", None, grace_periods[signal]))
        facts = NoEffect(signal, named[0], warning.kind.value)
        yield self._finding("PQ410", f"{named[0]}[{signal}]", facts, Patch(tuple(edits)))

    def _allocatable(self) -> Found:
        """PQ405, PQ406, PQ412: what is held back."""
        config = self._config
        divided = node_allocatable(self._capacity, config)
        for resource in divided.over_reserved:
            over = OverReserved(resource, str(divided.reservation[resource]), str(self._capacity[resource]))
            yield self._finding("PQ412", "systemReserved", over, Patch(needs_choice=Choice.RESERVATION))
        for coverage in divided.soft_coverage:
            if coverage.is_covered:
                continue
            resource = coverage.resource
            written = config.system_reserved.get(resource)
            system = config.reserved_for_system.get(resource)
            needed = coverage.soft if system is None else coverage.soft + system
            facts = SoftNotCovered(
                resource, coverage.soft.value, coverage.allocatable.value, coverage.usable_before_soft.value
            )
            edit = FieldEdit(f"systemReserved.{resource}", _in_mebibytes(needed.value), written)
            signal = Signal.MEMORY if resource == MEMORY else Signal.NODEFS
            finding = self._finding("PQ405", f"evictionSoft[{signal.value}]", facts, Patch((edit,)))
            yield finding if resource == MEMORY else replace(finding, consequence=Consequence(Effect.NONE))
        if MEMORY not in config.reserved_for_kube and MEMORY not in config.reserved_for_system:
            paths = ("kubeReserved.memory", "systemReserved.memory")
            patch = Patch(needs_choice=Choice.RESERVATION, paths=paths)
            yield self._finding("PQ406", "", NothingReserved((MEMORY,)), patch)

    def _race(self, threshold_bytes: int) -> Race:
        """Return the race of a node all of whose memory is private: nothing can be reclaimed before the kernel kills.

        Where a cgroup holds the pods to what is allocatable, the same race is run there, by the threshold's copy.
        """
        capacity_bytes = self._capacity[MEMORY].value
        growth = self._context.options.growth_bytes_per_second
        return Race(
            available_bytes=capacity_bytes,
            until_oom_bytes=capacity_bytes,
            threshold_bytes=threshold_bytes,
            growth_bytes_per_second=growth,
        )

    def _kernel_first(self, thresholds: Sequence[Threshold]) -> Found:
        """PQ404. With notifications of the kernel the kubelet does not wait for its next look."""
        hard = [each for each in thresholds if each.signal is Signal.MEMORY and each.is_hard]
        if not hard or self._config.kernel_memcg_notification:
            return
        race = self._race(max(each.amount(self._capacity[MEMORY].value).value for each in hard))
        result = run_race(race)
        if result.kubelet_first >= 1:
            return
        needed_bytes = winning_threshold_bytes(race)
        signal = Signal.MEMORY.value
        written = self._config.eviction_hard
        edits = [
            FieldEdit(
                f"evictionHard[{signal}]",
                _in_mebibytes(needed_bytes),
                None if written is None else written.get(signal),
            )
        ]
        if written is None:
            # Naming one threshold drops the defaults of all others.
            defaults = default_eviction_hard(self._context.options.profile)
            edits += [FieldEdit(f"evictionHard[{name}]", text) for name, text in defaults.items() if name != signal]
        facts = KernelFirst(
            race.threshold_bytes,
            race.growth_bytes_per_second,
            MONITORING_INTERVAL_SECONDS,
            float(result.kubelet_first),
            needed_bytes,
        )
        yield self._finding("PQ404", f"evictionHard[{signal}]", facts, Patch(tuple(edits)))

    def _minimum_reclaim(self, thresholds: Sequence[Threshold]) -> Found:
        """PQ409."""
        capacity_bytes = self._capacity[MEMORY].value
        for each in thresholds:
            if each.signal is not Signal.MEMORY or each.min_reclaim is None:
                continue
            amount, reclaim = each.amount(capacity_bytes), each.min_reclaim.at(capacity_bytes)
            if reclaim.nanos > _MUCH * amount.nanos:
                signal = each.signal.value
                path = f"evictionMinimumReclaim[{signal}]"
                written = self._config.eviction_minimum_reclaim[signal]
                edit = FieldEdit(path, str(amount), written)
                yield self._finding("PQ409", path, ReclaimsTooMuch(signal, str(reclaim), str(amount)), Patch((edit,)))
                return

    def _enforcement(self) -> Found:
        """PQ408, PQ413. Without cgroups for the classes nothing can be enforced, so that one is told alone."""
        if not self._config.cgroups_per_qos:
            edits = (
                FieldEdit("cgroupsPerQOS", True, "false"),
                FieldEdit("enforceNodeAllocatable", ["pods"], ", ".join(self._config.enforce_node_allocatable)),
            )
            yield self._finding("PQ413", "cgroupsPerQOS", QOSCgroupsOff(), Patch(edits))
        elif "pods" not in self._config.enforce_node_allocatable:
            enforced = tuple(name for name in self._config.enforce_node_allocatable if name != "none")
            edit = FieldEdit(
                "enforceNodeAllocatable", ["pods", *enforced], ", ".join(self._config.enforce_node_allocatable)
            )
            yield self._finding("PQ408", "enforceNodeAllocatable", PodsNotEnforced(enforced), Patch((edit,)))

    def _grace(self, sketches: Sequence[Sketch]) -> Found:
        """PQ411: only where somebody states a grace period, and a soft threshold could honour it."""
        most = self._config.eviction_max_pod_grace_period
        if not self._config.eviction_soft:
            return
        stating = [sketch for sketch in sketches if sketch.grace_seconds is not None]
        longest = max(stating, key=lambda sketch: (sketch.grace_seconds or 0, sketch.subject.key), default=None)
        if longest is None or longest.grace_seconds is None:
            return
        pod = Pod(spec=PodSpec(termination_grace_period_seconds=longest.grace_seconds))
        given = soft_grace_seconds(pod, most, self._context.options.profile)
        if given < longest.grace_seconds:
            facts = GraceCut(longest.subject.key, longest.grace_seconds, given)
            edit = FieldEdit("evictionMaxPodGracePeriod", longest.grace_seconds, str(most) if most else None)
            yield self._finding("PQ411", "evictionMaxPodGracePeriod", facts, Patch((edit,)))


def _capacity(context: Context) -> ResourceList:
    """Return what a node has: that of the bundle with the least memory, or what the options say."""
    nodes = [node for node in context.surroundings.nodes if MEMORY in node.status.capacity]
    if nodes:
        return min(nodes, key=lambda node: (node.status.capacity[MEMORY].nanos, node.name)).status.capacity
    return {
        MEMORY: Quantity.of_units(context.node_memory_bytes, "BinarySI"),
        EPHEMERAL_STORAGE: Quantity.parse("100Gi"),
    }


def _in_mebibytes(count: int) -> str:
    """Return an amount of memory, rounded up to whole mebibytes."""
    return str(Quantity.of_units(-(-count // _MEBIBYTE) * _MEBIBYTE, "BinarySI"))


def _twice(text: str) -> str:
    """Return double an amount or share, as a threshold is written."""
    if text.endswith("%"):
        return f"{min(99.0, 2 * float(text[:-1])):g}%"
    amount = Quantity.parse(text)
    return str(amount + amount)
