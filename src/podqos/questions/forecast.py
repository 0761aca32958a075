"""``podqos forecast``: the race between kernel and kubelet while a container grows, or several.

Which acts first, how likely, which pod dies, and from which rate on. One growth is computed (``questions.growth``);
several at once are simulated. The value is stable: fields are added, never renamed or removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from html import escape
from math import log2
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.agent import memory_notification
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import OOMKill, UnderPressure
from podqos.agent.state import MemoryNotification
from podqos.amounts import counted, listed, mebibytes, percent
from podqos.errors import InvalidArgument
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.ranking import Policy
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.snapshot import PodUsage
from podqos.model.time_units import SECOND_US
from podqos.naming import naming
from podqos.objects.objects import Objects
from podqos.objects.selection import object_named
from podqos.orders.exhaustion import HARD, SOFT
from podqos.orders.growing import OF_SYSTEM, SYSTEM, GrowingNode, Growth, KubeletWatch
from podqos.orders.plain_node import TurningRates, turning_rates
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.questions.growth import Forecast, ForecastOutcome, forecast_growth, race_text, rate_text, span
from podqos.questions.node import NodeState, node_state, watched_memory
from podqos.text.style import Style, columns, wrapped
from podqos.text.tables import Table

DEFAULT_RATES = (16 << 20, 128 << 20, 1 << 30)
"""Bytes per second."""
DEFAULT_WANTED = Fraction(99, 100)
INTERVAL_US = MONITORING_INTERVAL_SECONDS * SECOND_US
"""Between two checks of the kubelet."""
_SHOWN_PODS = 3
_PHASES = 10
"""At how many moments between two checks several begin to grow: the order of deaths depends on that."""
_GENERATED = re.compile(r"(?:[b-z2-9]{1,10}-)?[b-z2-9]{5}|\d+")
"""What a controller adds to the name of a workload for that of a pod."""
_CURVE_RATES = tuple(1 << exponent for exponent in range(20, 34))


class Growing(Struct, frozen=True, gc=False, rename="camel"):
    """One of several that grow at once."""

    pod: str
    """``namespace/name``; ``system`` where the daemons of the machine grow."""
    container: str
    """Empty where the daemons do."""
    rate_bytes_per_second: int


class OrderedDeath(ForecastOutcome, frozen=True, gc=False):
    """The first death of a container or pod."""

    times: int = 1
    """How often it has been killed when each that grows has died once: one that is started again grows again."""


class DeathOrder(Struct, frozen=True, gc=False, rename="camel"):
    """Who dies in which order, at some phases of the kubelet's loop."""

    probability: Fraction
    """The share of the phases that were tried."""
    deaths: tuple[OrderedDeath, ...]
    """Until each that grows has died once."""


class GrowingTogether(Struct, frozen=True, gc=False, rename="camel"):
    """What several that grow at once do to their node."""

    growing: tuple[Growing, ...]
    orders: tuple[DeathOrder, ...]
    """The likeliest first."""


class CurvePoint(Struct, frozen=True, gc=False, rename="camel"):
    """Chance that the kubelet acts first at a rate."""

    rate_bytes_per_second: int
    kubelet_first: Fraction


class ForecastReport(Listing[Forecast], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos forecast -o json``."""

    kubernetes_version: str
    node_memory_bytes: int
    interval_seconds: float
    growths: tuple[Forecast, ...]
    curve: tuple[CurvePoint, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Forecast"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    turning: TurningRates | None = None
    """Up to which growth the kubelet always acts first, and from which the kernel always does. Null where several grow:
    then the fields above are empty, too."""
    together: tuple[GrowingTogether, ...] = ()
    """Where several grow at once: one for each rate. They are simulated, a container that is killed starts again."""

    def _listed(self) -> tuple[Forecast, ...]:
        return self.growths


def forecast(
    source: Objects | NodeState,
    *,
    growing: str | Mapping[str, int | None],
    rates: Sequence[int] = DEFAULT_RATES,
    wanted: Fraction = DEFAULT_WANTED,
    interval_us: int = INTERVAL_US,
    fast_path: bool = False,
    policy: Policy | None = None,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
) -> ForecastReport:
    """Forecast what becomes of a container that grows at these ``rates``, in bytes per second, or of several.

    ``source`` is the state of a node (``node_state``), or objects that are all on one. ``growing`` is a pod, or
    ``pod:container``; ``system`` is what runs besides pods; or several that grow at once, each with a rate of its own
    or None: then the name of a workload stands for all its pods. The settings are computed for the kubelet to act first
    as often as ``wanted``. ``fast_path`` checks as soon as a hard threshold is met, as ``podqos node`` does.
    """
    state = node_state(source)
    growths = growths_of(state, growing)
    state.check_fits()
    report = ForecastReport(
        kubernetes_version=state.profile.version_text,
        node_memory_bytes=state.snapshot.node.memory_bytes,
        interval_seconds=interval_us / SECOND_US,
        growths=(),
        curve=(),
        assumptions=state.growing_on,
    )
    if len(growths) > 1:
        if wanted != DEFAULT_WANTED:
            what = "this is computed for one growing container only"
            raise InvalidArgument(what, where=naming("win"), fix="leave it out")
        return replace(report, together=tuple(_together(state, growths, rates, policy, cgroup_version)))
    ((_, own),) = growths
    node = growing_node(
        state,
        growing,
        interval_us=interval_us,
        fast_path=fast_path,
        policy=policy,
        cgroup_version=cgroup_version,
    )
    return replace(
        report,
        growths=tuple(forecast_growth(node, rate, wanted=wanted) for rate in (rates if own is None else (own,))),
        curve=tuple(CurvePoint(rate, node.kubelet_first(rate)) for rate in _CURVE_RATES),
        turning=turning_rates(node),
    )


def growing_node(
    state: NodeState,
    growing: str | Mapping[str, int | None],
    *,
    interval_us: int = INTERVAL_US,
    fast_path: bool = False,
    policy: Policy | None = None,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
) -> GrowingNode:
    """Return a node while what is asked about grows."""
    state.check_fits()
    watched = watched_memory(state, cgroup_version)
    watch = KubeletWatch(
        watched.exhaustion,
        watched.limit_bytes,
        # As for ``place``: what the Node states counts where the kubelet's settings are not given.
        requestable_bytes=None if state.kubelet.is_stated else state.allocatable_bytes,
        interval_us=interval_us,
        notification=memory_notification(state.kubelet.config, cgroup_version, fast_path=fast_path),
        policy=policy,
    )
    ((grows, _),) = growths_of(state, growing)
    return GrowingNode(state.snapshot, watched.settings, grows, watch, state.profile)


# ---- what grows ------------------------------------------------------------------------------------------------------


def growths_of(state: NodeState, growing: str | Mapping[str, int | None]) -> list[tuple[Growth, int | None]]:
    """Return what grows, each with its own rate or None."""
    pods = [entry for entry in state.snapshot.pods if entry.pod.key not in state.neighbours]
    asked = {growing: None} if isinstance(growing, str) else growing
    found = {text: _called(text.partition(":")[0], state, pods) for text in asked}
    names = sorted(entry.pod.key for entry in pods)
    more = f" and {len(names) - _SHOWN_PODS} more" if len(names) > _SHOWN_PODS else ""
    some = f"one of {', '.join(names[:_SHOWN_PODS])}{more}"
    if not asked or any(text.startswith(":") or not text for text in asked):
        fix = f"{some}, or {SYSTEM} for everything outside pods"
        raise InvalidArgument("no growing pod given", where=naming("growing"), fix=fix)
    unknown = [text.partition(":")[0] for text in asked if not found[text] and text != SYSTEM]
    if unknown:
        close = [get_close_matches(name, [*names, *(key.partition("/")[2] for key in names)], 1) for name in unknown]
        meant = ", ".join(match[0] for match in close if match)
        what = f"no such pod{'s' if len(unknown) > 1 else ''}: {', '.join(unknown)}"
        raise InvalidArgument(what, where=naming("growing"), fix=f"did you mean {meant}?" if meant else some)
    growths: dict[Growth, int | None] = {}
    for text, rate in asked.items():
        name, _, container = text.partition(":")
        workloads = {state.owners.get(entry.pod.metadata.uid, ("", ""))[1] for entry in found[text]}
        if len(found[text]) > 1 and (isinstance(growing, str) or len(workloads) > 1):
            raise InvalidArgument(f"{name} matches several pods", where=naming("growing"), fix=some)
        for growth in [_container(entry, name, container) for entry in found[text]] or [OF_SYSTEM]:
            if growth in growths:
                raise InvalidArgument(f"{text} is given twice", where=naming("growing"), fix="give each pod once")
            growths[growth] = rate
    return [*growths.items()]


def _called(name: str, state: NodeState, pods: Sequence[PodUsage]) -> list[PodUsage]:
    """Return the pod that is called so, or those of the workload: ``web``, ``shop/web`` or ``deploy/web``."""
    found = [entry for entry in pods if name in {entry.pod.key, entry.pod.metadata.name}]
    if found or not name:
        return found
    kind, bare = object_named(name) or ("", name)
    for entry in pods:
        of, owner = state.owners.get(entry.pod.metadata.uid, ("", ""))
        if bare in {owner, owner.partition("/")[2]} and kind in {"", of.lower()}:
            found.append(entry)
    # Of a pod that only its own name is known of, the name of the workload is what it begins with.
    starts = [entry for entry in pods if f"/{entry.pod.key}-".find(f"/{bare}-") >= 0]
    made = [entry for entry in starts if _GENERATED.fullmatch(entry.pod.key.partition(f"{bare}-")[2])]
    return found or made or starts


def _container(entry: PodUsage, name: str, container: str) -> Growth:
    """Return the container that is meant: the only one if none is named."""
    containers = [usage.name for usage in entry.containers]
    if not container and len(containers) == 1:
        container = containers[0]
    if container not in containers:
        what = f"{name} has no container {container}" if container else f"{name} has several containers"
        raise InvalidArgument(what, where=naming("growing"), fix=f"add one of them: {name}:{containers[0]}")
    return Growth(entry.pod.metadata.uid, container)


# ---- several at once -------------------------------------------------------------------------------------------------


def _together(
    state: NodeState,
    growths: Sequence[tuple[Growth, int | None]],
    rates: Sequence[int],
    policy: Policy | None,
    cgroup_version: CgroupVersion,
) -> Iterator[GrowingTogether]:
    """Yield what becomes of several that grow, for each rate: simulated at phases that divide the kubelet's loop."""
    # One leak needs no simulator, and loading it takes a fifth of the time that the answer does.
    from podqos.questions.blast import pods_of_node
    from podqos.sim.blast import Leak, leak_together

    config, profile = state.kubelet.config, state.profile
    state.cgroups(cgroup_version)  # a kubelet that does not start there is an error
    pods = pods_of_node(state.snapshot, config)
    keys = {entry.pod.metadata.uid: entry.pod.key for entry in state.snapshot.pods}
    # The kernel notifies a kubelet that has looked once.
    is_told = memory_notification(config, cgroup_version, fast_path=False) is not MemoryNotification.OFF
    begins_us, version = INTERVAL_US * is_told, 1 if cgroup_version is CgroupVersion.V1 else 2
    for rate in rates if any(own is None for _, own in growths) else (0,):
        leaks = [Leak(keys.get(grows.uid, SYSTEM), grows.container, own or rate) for grows, own in growths]
        runs = []
        for phase in range(_PHASES):
            spec = replace(pods.node, loop_phase_us=phase * INTERVAL_US // _PHASES, cgroup_version=version)
            on_node = replace(pods, node=spec)
            runs.append([*leak_together(on_node, leaks, begins_us=begins_us, profile=profile, policy=policy)])
        growing = tuple(Growing(leak.pod, leak.container, leak.bytes_per_second) for leak in leaks)
        yield GrowingTogether(growing, tuple(_orders(runs, growing, begins_us)))


def _orders(runs: Iterable[list[Entry]], growing: Sequence[Growing], begins_us: int) -> Iterator[DeathOrder]:
    """Yield the orders of the runs, each once, the likeliest first."""
    same: dict[tuple[object, ...], list[list[list[Entry]]]] = {}
    for run in runs:
        found: dict[tuple[str | None, str | None], list[Entry]] = {}
        for entry in run:
            # A pod that is evicted after one of its containers was killed is not new on the list.
            is_known = entry.kind is Kind.EVICTED and any(pod == entry.pod for pod, _ in found)
            if not is_known:
                found.setdefault((entry.pod, entry.container), []).append(entry)
        first = ((each[0].kind, each[0].pod, each[0].container) for each in found.values())
        same.setdefault((*first,), []).append([*found.values()])
    of_growing = {(each.pod, each.container) for each in growing}
    for alike in sorted(same.values(), key=len, reverse=True):
        share = Fraction(len(alike), _PHASES)
        yield DeathOrder(share, tuple(_death(each, share, of_growing, begins_us) for each in zip(*alike, strict=True)))


def _death(
    repeated: Sequence[Sequence[Entry]], probability: Fraction, growing: set[tuple[str, str]], begins_us: int
) -> OrderedDeath:
    """Return one death as it is at several phases, in the words of the first; it may be repeated at each."""
    from podqos.text.journal import fate

    entries = [entries[0] for entries in repeated]
    first, because = entries[0], entries[0].because
    assert first.pod is not None
    seconds = [Fraction(max(0, entry.time_us - begins_us), SECOND_US) for entry in entries]
    is_kill, pressure = isinstance(because, OOMKill), because if isinstance(because, UnderPressure) else None
    who = f"{first.pod} ({first.container})" if is_kill else first.pod
    return OrderedDeath(
        by=By.KERNEL if first.kind is Kind.OOM_KILLED else By.KUBELET,
        pod=first.pod,
        container=first.container if is_kill else None,
        probability=probability,
        earliest_seconds=min(seconds),
        latest_seconds=max(seconds),
        ends_growth=any(pod == first.pod and first.container in {None, container} for pod, container in growing),
        text=f"{who} {fate(first)}",
        signal=None if pressure is None else pressure.signal,
        threshold_type=None if pressure is None else HARD if pressure.hard else SOFT,
        oom_score_adj=because.oom_score_adj if isinstance(because, OOMKill) else None,
        times=max(map(len, repeated)),
    )


# ---- as text ---------------------------------------------------------------------------------------------------------

_BAR = 30

_GROWTH = ("pod", "container", "rate_bytes_per_second")
_OF_SEVERAL = (
    "growing", "probability", "place", "by", "victim", "victim_container", "earliest_seconds", "latest_seconds", "times"
)  # fmt: skip
_OUTCOME = ("by", "pod", "container", "probability", "earliest_seconds", "latest_seconds", "ends_growth")


def table(report: ForecastReport, style: Style) -> list[str]:
    """Return a paragraph per rate, and the curve."""
    answer = headline(report)
    lines = [*wrapped(answer, style, "  ", ""), ""] if answer else []
    for together in report.together:
        lines += [*_together_lines(together, style), ""]
    if report.together:
        lines += wrapped(_simulated(), style, "  ", "")
    for growth in report.growths:
        rate = rate_text(growth.rate_bytes_per_second)
        lines += [style.strong(f"{subject(growth)} by {rate}")]
        lines += wrapped(race_text(growth), style, "  ")
        for outcome in growth.outcomes:
            lines += wrapped(outcome.text, style, " " * 11, f"  {percent(outcome.probability):>7}  ")
        if growth.needed is not None:
            lines += wrapped(growth.needed.text, style, "  ")
        lines.append("")
    if any(point.kubelet_first for point in report.curve):
        lines.append(style.strong("Chance that the kubelet acts first, by growth rate"))
        lines += columns(
            ("GROWTH", "KUBELET", ""),
            [
                (
                    rate_text(point.rate_bytes_per_second),
                    percent(point.kubelet_first),
                    "█" * round(point.kubelet_first * _BAR) or "▏",
                )
                for point in report.curve
            ],
            style,
            "  ",
        )
    return lines


def _together_lines(together: GrowingTogether, style: Style) -> list[str]:
    """Return who dies in which order while several grow at once."""
    rates: dict[str, list[str]] = {}
    for each in together.growing:
        rates.setdefault(rate_text(each.rate_bytes_per_second), []).append(_name(each))
    who = "; ".join(f"{_names(of)} {'grows' if len(of) == 1 else 'grow'} by {rate}" for rate, of in rates.items())
    lines = wrapped(style.strong(who), style, "  ", "")
    for place, death in enumerate(together.orders[0].deaths, 1):
        again = f" ({death.times} times in all, as it starts again)" if death.times > 1 else ""
        text = f"{span(death.earliest_seconds, death.latest_seconds)}: {death.text}{again}"
        lines += wrapped(text, style, "      ", f"  {place:>2}  ")
    died = {(death.pod, death.container) for death in together.orders[0].deaths}
    left = [each for each in together.growing if not died & {(each.pod, each.container), (each.pod, None)}]
    alive = [_name(each) for each in left if each.container]
    if alive:
        lines += wrapped(f"{_names(alive)} {'runs' if len(alive) == 1 else 'run'} on", style, "      ")
    if len(together.orders) > 1:
        share = percent(together.orders[0].probability)
        lines.append(f"  {share} of the time, depending on when the kubelet checks. Otherwise:")
        for order in together.orders[1:]:
            lines += wrapped(_fates(order, len(order.deaths)), style, " " * 11, f"  {percent(order.probability):>7}  ")
    return lines


def _name(growing: Growing) -> str:
    return f"{growing.pod} ({growing.container})" if growing.container else "everything outside pods"


def _names(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return listed([*names[:_SHOWN], counted(more, "more container")] if more > 0 else names)


def _fates(order: DeathOrder, shown: int = 4) -> str:
    """Return who dies in which order, with as many as are shown."""
    told = [f"{death.pod} is {_FATES[death.by]}" for death in order.deaths[:shown]]
    more = [f"{len(order.deaths) - shown} more"] if len(order.deaths) > shown else []
    return ", then ".join([*told, *more]) or "nothing is evicted or killed"


def _likeliest_orders(every: Sequence[GrowingTogether]) -> str:
    """Return in which order pods most likely die, by the rate that is not always the same."""
    first, last = every[0].growing, every[-1].growing
    varied = next((place for place, each in enumerate(first) if each != last[place]), 0)
    said: dict[str, list[str]] = {}
    for together in every:
        fates = f"{'most likely ' if len(together.orders) > 1 else ''}{_fates(together.orders[0])}"
        said.setdefault(fates, []).append(rate_text(together.growing[varied].rate_bytes_per_second))
    who = f"{_names([_name(each) for each in first])} leak"
    if len(said) == 1:
        return f"If {who}, {next(iter(said))}."
    return f"If {who}: {'; '.join(f'at {listed(rates)} {fates}' for fates, rates in said.items())}."


_FATES = {By.KERNEL: "OOM-killed", By.KUBELET: "evicted"}
_SHOWN = 4


def headline(report: ForecastReport) -> str | None:
    """Return who acts first and which pod dies, at each rate; None where there is nothing to say."""
    if report.together:
        return _likeliest_orders(report.together)
    groups: dict[str, list[str]] = {}
    for growth in report.growths:
        rate = rate_text(growth.rate_bytes_per_second)
        groups.setdefault(_likeliest(growth), []).append(rate)
    if not groups:
        return None
    leaks = _leaking(report.growths[0])
    if len(groups) == 1:
        (act,) = groups
        return f"If {leaks}, {act}."
    return f"If {leaks}: {'; '.join(f'at {listed(rates)} {act}' for act, rates in groups.items())}."


def _leaking(growth: Forecast) -> str:
    return f"{growth.pod} ({growth.container}) leaks" if growth.container else "system daemons leak"


def _likeliest(growth: Forecast) -> str:
    if not growth.outcomes:
        return "nothing is evicted or killed"
    outcome = max(growth.outcomes, key=lambda candidate: candidate.probability)
    act = _act(outcome, growth)
    return act if outcome.probability == 1 else f"most likely {act}"


def _act(outcome: ForecastOutcome, growth: Forecast) -> str:
    who = "it" if outcome.ends_growth and outcome.pod == growth.pod else outcome.pod
    if outcome.by is By.KUBELET:
        return f"the kubelet evicts {who} before the kernel kills"
    before = " at its own memory limit" if growth.needed is None and who == "it" else " before the kubelet evicts"
    return f"the kernel kills {who}{before}"


def subject(growth: Forecast) -> str:
    """Return what grows, with its verb."""
    return f"{growth.pod} ({growth.container}) grows" if growth.container else "System daemons grow"


def csv_table(report: ForecastReport) -> Table:
    """Return headings, and a row per outcome, or per death of several that grow."""
    if report.together:
        return _OF_SEVERAL, (row for together in report.together for row in _rows(together))
    pairs = ((growth, outcome) for growth in report.growths for outcome in growth.outcomes)
    by, *victim = _OUTCOME
    return (*_GROWTH, by, "victim", "victim_container", *victim[2:]), (
        [
            float(value) if isinstance(value, Fraction) else value
            for value in (*attrgetter(*_GROWTH)(growth), *attrgetter(*_OUTCOME)(outcome))
        ]
        for growth, outcome in pairs
    )


def _rows(together: GrowingTogether) -> Iterator[tuple[object, ...]]:
    growing = " ".join(f"{each.pod}:{each.container}={each.rate_bytes_per_second}" for each in together.growing)
    for order in together.orders:
        for place, death in enumerate(order.deaths, 1):
            times = float(death.earliest_seconds), float(death.latest_seconds), death.times
            yield growing, float(order.probability), place, death.by, death.pod, death.container, *times


def _simulated() -> str:
    from podqos.sim.blast import MOST_KILLS  # only the answer about several leaks loads the simulator

    return (
        "Simulated from ten moments between two checks of the kubelet, until each that grows has died once, or one "
        f"{MOST_KILLS} times: a killed container starts again and grows again. The settings with which the kubelet "
        "acts first are computed for one leak."
    )


def victims(report: ForecastReport) -> Iterator[str]:
    """Yield the pods that may die."""
    yield from (outcome.pod for growth in report.growths for outcome in growth.outcomes)
    yield from (death.pod for together in report.together for order in together.orders for death in order.deaths)


# ---- as a picture ----------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 20, 44, 48
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#444}.title{font-size:14px;font-weight:600;fill:#222}"
    ".grid{stroke:#ddd}.curve{fill:none;stroke:#0072b2;stroke-width:2.5}.area{fill:#0072b2;opacity:.12}"
)


def curve_svg(report: ForecastReport) -> str:
    """Draw the curve; the growth rates are on a logarithmic scale."""
    if report.together:
        what = "there is no curve of several that grow at once"
        raise InvalidArgument(what, where=naming("svg"), fix="leave it out")
    points = report.curve
    low, high = log2(points[0].rate_bytes_per_second), log2(points[-1].rate_bytes_per_second)
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def across(rate: int) -> float:
        return _LEFT + wide * (log2(rate) - low) / ((high - low) or 1)

    def up(share: float) -> float:
        return _TOP + tall * (1 - share)

    line = " ".join(
        f"{across(point.rate_bytes_per_second):.1f},{up(float(point.kubelet_first)):.1f}" for point in points
    )
    first = report.growths[0]
    name = first.pod if first.container else "system daemons"
    title = f"{name}: chance that the kubelet acts before the kernel"
    who = f"growth of {first.pod} ({first.container})" if first.container else f"growth of {name}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text class="title" x="{_LEFT}" y="24">{escape(title)}</text>',
    ]
    for share in (0, 25, 50, 75, 100):
        y = up(share / 100)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share} %</text>')
    for point in points[::2]:
        label = f"{mebibytes(point.rate_bytes_per_second)}/s"
        x = across(point.rate_bytes_per_second)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 26}" text-anchor="middle">{escape(label)}</text>')
    parts += [
        f'<polygon class="area" points="{_LEFT},{up(0):.1f} {line} {_WIDTH - _RIGHT},{up(0):.1f}"/>',
        f'<polyline class="curve" points="{line}"/>',
        f'<text x="{_LEFT + wide / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(who)}</text>',
        "</svg>\n",
    ]
    return "\n".join(parts)
