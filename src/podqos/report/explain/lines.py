"""``podqos explain`` as text: a block of text per pod, one line per pod, or one line per container.

Each function takes explanations (the documented value) and a style, and returns lines. The machine formats are the
value itself and need no code here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podqos.answers.admission_changes import change_lines
from podqos.answers.explanation import CgroupExplanation, ContainerExplanation, Explanation
from podqos.report.text.style import Style, columns, labelled
from podqos.words.qos import edits as edit_lines
from podqos.words.qos import flag_fate

_LABEL = 8  # columns of a label, such as "why", within a block
_SANDBOX = "sandbox (pause)"


def text(item: Explanation, style: Style, *, verbose: bool = False) -> list[str]:
    """Return a block of lines that explains one pod; ``verbose`` adds its cgroups, and run flags with their reasons."""
    lines = [f"{style.strong(title(item))}  {style.qos_class(item.qos_class)}"]
    lines += _labelled("why", [item.reason], style)
    lines += _labelled("stored", _stored_lines(item), style)
    if item.refusal is not None:
        lines += _labelled("denied", [item.refusal], style)
    for note in item.notes:
        lines += _labelled("note", [note], style)
    lines += _labelled("edit", _edit_lines(item), style)
    lines += ["", *_container_table(item.containers, style), ""]
    if not verbose:
        return lines
    lines += _labelled("classes", map(_classes, item.containers), style)
    lines += _cgroup_lines(item, style)
    for container in (container for container in item.containers if container.run_flags):
        flags = " ".join(f"{flag.name}={flag.value}" for flag in container.run_flags if flag.value is not None)
        lines += [*_labelled("run", [f"{container.name}: {flags}"], style), "", *_flag_table(container, style), ""]
    lines.append("")
    return lines


def table(items: Sequence[Explanation], style: Style) -> list[str]:
    """Return one line per pod, or workload."""
    rows = [
        (
            item.namespace,
            f"{item.kind}/{item.name}",
            style.qos_class(item.qos_class),
            _scores(item.containers),
            item.reason,
        )
        for item in items
    ]
    return columns(("NAMESPACE", "NAME", "CLASS", "OOM_SCORE_ADJ", "WHY"), rows, style)


def wide(items: Sequence[Explanation], style: Style) -> list[str]:
    """Return one line per container, with its cgroup."""
    rows = []
    for item in items:
        cgroups = {cgroup.container: cgroup for cgroup in item.cgroups if cgroup.level == "container"}
        rows += [
            (
                item.namespace,
                f"{item.kind}/{item.name}",
                container.name,
                container.type,
                style.qos_class(item.qos_class),
                asked(container, "cpu"),
                asked(container, "memory"),
                _score(container.oom_score_adj),
                files_text(cgroups[container.name]) if cgroups else "–",
                (cgroups[container.name].path or "–") if cgroups else "–",
            )
            for container in item.containers
        ]
    headers = ("NAMESPACE", "NAME", "CONTAINER", "TYPE", "CLASS", "CPU", "MEMORY", "OOM_SCORE_ADJ", "VALUES", "CGROUP")
    return columns(headers, rows, style)


def title(item: Explanation) -> str:
    """Return kind, name and replicas of the object."""
    count = f" × {item.replicas}" if item.replicas is not None and item.replicas != 1 else ""
    return f"{item.kind} {item.namespace}/{item.name}{count}"


def _labelled(label: str, paragraphs: Iterable[str], style: Style) -> list[str]:
    return labelled(label, paragraphs, style, 2, _LABEL)


def _stored_lines(item: Explanation) -> list[str]:
    """Return what policies wrote into the pod; preemptionPolicy has no effect on quality of service."""
    changes = [change for change in item.policy_changes if change.path != "spec.preemptionPolicy"]
    return change_lines(changes)


def _edit_lines(item: Explanation) -> list[str]:
    edits = item.edits_to_guaranteed
    if not edits:
        return []
    several = f"these {len(edits)} lines make" if len(edits) > 1 else "this line makes"
    # A limit that is only replaced throttled before.
    throttled = any(edit.path.endswith(".limits.cpu") and not edit.replaces for edit in edits)
    cost = f", and {'throttle' if len(edits) > 1 else 'throttles'} it at that cpu limit" if throttled else ""
    return [f"{several} it Guaranteed{cost}:", *(f"  {line}" for line in edit_lines(edits))]


def _container_table(containers: Sequence[ContainerExplanation], style: Style) -> list[str]:
    headers = ("CONTAINER", "CPU", "MEMORY", "OOM_SCORE_ADJ", "IDLE SCORE", "REASON")
    rows = [
        (
            container.name if container.type == "container" else f"{container.name} ({container.type})",
            asked(container, "cpu"),
            asked(container, "memory"),
            _score(container.oom_score_adj),
            _score(container.oom_score_idle),
            container.oom_reason,
        )
        for container in containers
    ]
    return columns(headers, rows, style, indent="  ")


def _flag_table(container: ContainerExplanation, style: Style) -> list[str]:
    rows = [
        (flag.name, flag.value or "–", flag_fate(flag.status, flag.value, flag.reason)) for flag in container.run_flags
    ]
    return columns((f"FLAG FOR {container.name}", "VALUE", "OUTCOME"), rows, style, indent="  ")


def _cgroup_lines(item: Explanation, style: Style) -> list[str]:
    lines = []
    parent = ""
    for cgroup in item.cgroups:
        path = cgroup.path or "(rejected by the runtime)"
        if cgroup.level == "pod":
            parent = path
            lines += _labelled("cgroup", [path, f"  {files_text(cgroup)}"], style)
        else:
            shown = path.removeprefix(f"{parent}/") if parent else path
            name = _SANDBOX if cgroup.level == "sandbox" else cgroup.container
            # Without a cgroup of the pod the containers stand alone.
            lines += _labelled("" if lines else "cgroup", [f"{name}: {shown}", f"  {files_text(cgroup)}"], style)
    given = dict.fromkeys(
        cgroup.oci_path for cgroup in item.cgroups if cgroup.oci_path and cgroup.oci_path != cgroup.path
    )
    return lines + _labelled("oci", [f"{path}   # cgroupsPath, not a directory" for path in given], style)


def _classes(container: ContainerExplanation) -> str:
    """Return the class of each resource of a container; that of the pod is made of all of them."""
    classes = container.qos_class_per_resource.items()
    return f"{container.name}: {', '.join(f'{resource} {qos_class}' for resource, qos_class in classes)}"


def files_text(cgroup: CgroupExplanation) -> str:
    """Return what is written into a cgroup, in a line."""
    return ", ".join(f"{file.name}={file.value}" for file in cgroup.files if file.value is not None) or "nothing set"


def asked(container: ContainerExplanation, resource: str) -> str:
    """Return ``request / limit``; without a limit the node's whole capacity is the ceiling."""
    request, limit = container.requests.get(resource), container.limits.get(resource)
    if request is None and limit is None:
        return "–"
    return f"{request or '–'} / {limit or 'no limit'}"


def _scores(containers: Sequence[ContainerExplanation]) -> str:
    values = sorted({container.oom_score_adj for container in containers if container.oom_score_adj is not None})
    return f"{values[0]} … {values[-1]}" if len(values) > 1 else "".join(map(str, values)) or "–"


def _score(value: int | None) -> str:
    return "–" if value is None else str(value)
