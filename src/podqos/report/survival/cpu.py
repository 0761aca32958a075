"""``podqos cpu`` as text and CSV: what each pod gets when all burst at once."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.kernel.cpu import CpuBound
from podqos.model.quantity import Quantity
from podqos.report.text.style import Style, columns, wrapped
from podqos.report.text.tables import Table, csv_table
from podqos.survival.orders.cpu import BendCause, ContainerCpu, CpuReport, DaemonsCpu, PodCpu, WeightBend

_BOUNDS = {CpuBound.CONTENTION: "contention", CpuBound.QUOTA: "its own limit", None: ""}
_CAUSES = {
    BendCause.CURVE: (
        "On cgroup v2 the runtime converts a container's cpu.shares to cpu.weight by a curve (runc since 1.3.2, crun "
        "since 1.23). Pods and classes keep the ratio, and so does cgroup v1."
    ),
    BendCause.ROUNDING: "cpu.weight is an integer: one step per 25.6m requested.",
    BendCause.MINIMUM: "The kernel's minimum is 2 cpu.shares, the equivalent of 2m.",
}


def table(report: CpuReport, style: Style) -> list[str]:
    """Return what all pods want together, a line per pod and per container beside others, and what bends the ratio."""
    rows = [row for pod in report.pods for row in _rows(pod, style)]
    headers = ("POD", "CLASS", "REQUEST / LIMIT", "WEIGHT", "WANTS", "GETS", "DENIED", "REASON")
    total = (
        f"The pods want {_cores(report.wanted_milli)} cores in total; {round(report.cores, 2):g} are available, "
        f"{_cores(report.granted_milli)} are used. A CPU shortage kills no pod."
    )
    lines = wrapped(total, style, "")
    if report.daemons is not None:
        lines += wrapped(_daemons(report.daemons, report.node_cores or 0), style, "")
    lines += ["", *columns(headers, rows, style)]
    for bend in report.bends:
        lines += ["", *wrapped(_bend(bend), style, "")]
    return lines


def csv_rows(report: CpuReport) -> Table:
    """Return headings, and a row per pod: its fields without its containers."""
    figures = ("weight", "wanted_milli", "granted_milli", "denied_percent", "bound", "request", "limit")
    return csv_table(report.pods, "pod", "class=qos_class", *figures)


def _rows(pod: PodCpu, style: Style) -> Iterator[tuple[str, ...]]:
    """Yield the line of a pod, and of each of its containers if there are several."""
    bound = _BOUNDS[pod.bound]
    asked, denied = _asked(pod.request, pod.limit), _percent(pod.denied_percent)
    figures = (str(pod.weight), _cores(pod.wanted_milli), _cores(pod.granted_milli), denied, bound)
    yield (pod.pod, style.qos_class(pod.qos_class), asked, *figures)
    if len(pod.containers) > 1:
        for container in pod.containers:
            yield (f"  {container.name}", "", *_container(container))


def _container(container: ContainerCpu) -> tuple[str, ...]:
    wanted, granted = container.wanted_milli, container.granted_milli
    denied = 100 * (wanted - granted) / wanted if wanted else 0.0
    asked = _asked(container.request, container.limit)
    return asked, str(container.weight), _cores(wanted), _cores(granted), _percent(denied), ""


def _percent(denied: float) -> str:
    # All but everything is not everything: whoever gets a little is not denied 100 %.
    return f"{denied if denied == 100 else min(denied, 99):.0f} %" if denied >= 0.5 else "–"


def _asked(request: Quantity | None, limit: Quantity | None) -> str:
    """Return request and limit; without a limit all cores are the ceiling."""
    return f"{request or '–'} / {limit or 'no limit'}" if request or limit else "–"


def _daemons(daemons: DaemonsCpu, cores: float) -> str:
    """Return what the reservation means: daemons get it as far as their weight goes, and pods may use what is idle."""
    reserved = f"{daemons.reserved_milli / 1000:g}"
    if daemons.granted_milli == daemons.reserved_milli:
        return (
            f"Of the node's {cores:g} cores the daemons are assumed to use the {reserved} reserved for them; pods may "
            "use what the daemons leave idle."
        )
    return (
        f"Of the node's {cores:g} cores {reserved} are reserved for daemons, which get "
        f"{_cores(daemons.granted_milli)} if they want all of it: "
        f"their slice weighs {daemons.weight}, all pods together weigh {daemons.pods_weight}."
    )


def _bend(bend: WeightBend) -> str:
    (larger, smaller), (large, small), (heavy, light) = bend.names, bend.requests, bend.weights
    where = "" if bend.pod is None else f"In {bend.pod}, "
    requested = f"{_ratio(large.milli_value, small.milli_value)} ({large} : {small})"
    weights = f"{_ratio(heavy, light)} ({heavy} : {light})"
    return f"{where}{larger} and {smaller} request CPU {requested}, but weigh {weights}. {_CAUSES[bend.cause]}"


def _ratio(larger: int, smaller: int) -> str:
    ratio = larger / smaller
    return f"{ratio:.0f} : 1" if ratio >= 100 else f"{ratio:.3g} : 1"


def _cores(amount_milli: int) -> str:
    return f"{amount_milli / 1000:.2f}"
