"""Every remedy that ``rank`` prints, applied to the manifests it is about, and ranked again.

None makes anything worse by the tool's own orders, unless it says so: the pod that goes instead is named.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from podqos.agent.journal import By
from podqos.model.quantity import Quantity
from podqos.objects.objects import Objects
from podqos.orders.usage import UsageRow
from podqos.questions.node import node_state
from podqos.questions.rank import rank

MI = 1 << 20
THRESHOLD = 100 * MI
SIZES = (64, 128, 256, 300, 512)
CLASSES = {"": 0, "low": -5, "high": 1000}


@st.composite
def workloads(draw, name):
    """Draw a Deployment of one or two pods with one or two containers, and what each container uses."""
    containers, used = [], {}
    for container in ("app", "proxy")[: draw(st.integers(1, 2))]:
        requested = draw(st.sampled_from((None, *SIZES)))
        limit = draw(st.sampled_from((None, None, 1, 2, 4)))
        resources = {}
        if requested is not None:
            resources["requests"] = {"memory": f"{requested}Mi"}
        if limit is not None:
            resources["limits"] = {"memory": f"{(requested or 128) * limit}Mi"}
        if draw(st.booleans()):
            resources.setdefault("requests", {})["cpu"] = "100m"
        most = (requested or 128) * (limit or 3)
        used[container] = draw(st.integers(1, most))
        containers.append({"name": container, "image": "i", "resources": resources})
    spec = {"containers": containers}
    priority = draw(st.sampled_from(tuple(CLASSES)))
    if priority:
        spec["priorityClassName"] = priority
    template = {"metadata": {"labels": {"a": name}}, "spec": spec}
    replicas = draw(st.sampled_from((1, 1, 2)))
    made = {"replicas": replicas, "selector": {"matchLabels": {"a": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": made}, used


@st.composite
def nodes(draw):
    """Draw workloads, what they use, and perhaps a LimitRange."""
    drawn = [draw(workloads(f"w{index}")) for index in range(draw(st.integers(2, 5)))]
    bound = draw(st.sampled_from((None, None, "700Mi", "2Gi")))
    others = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in CLASSES.items()
        if name
    ]
    if bound is not None:
        limits = [{"type": "Container", "max": {"memory": bound}}]
        bounds = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds"}, "spec": {"limits": limits}}
        others.append(bounds)
    made = [each for each, _ in drawn]
    held = sum(sum(used.values()) * each["spec"]["replicas"] for each, used in drawn) * MI
    room = max(held, requested(made)) + THRESHOLD + draw(st.sampled_from((64, 256, 4096))) * MI
    return made, others, {each["metadata"]["name"]: used for each, used in drawn}, room


def ranked(made, others, used, memory_bytes):
    """Rank the pods of workloads; None where the API server refuses one."""
    objects = Objects()
    for index, each in enumerate((*made, *others)):
        objects = objects.with_text(f"{index}.json", json.dumps(each).encode())
    rows = [
        UsageRow(name, container, memory=Quantity.parse(f"{amount}Mi"))
        for name, containers in used.items()
        for container, amount in containers.items()
    ]
    admitted = [each for each in made if not _is_beyond(each, others)]
    if len(admitted) < len(made):
        return None
    report = rank(node_state(objects, rows, node_memory_bytes=memory_bytes))
    assert len(report.eviction_order) == sum(each["spec"]["replicas"] for each in made), "none was refused"
    return report


def _is_beyond(workload, others):
    """Whether a container has a limit or request above a LimitRange's, or none where that has one."""
    bounds = [each["spec"]["limits"][0]["max"]["memory"] for each in others if each["kind"] == "LimitRange"]
    for bound in map(Quantity.parse, bounds):
        for container in workload["spec"]["template"]["spec"]["containers"]:
            stated = container["resources"]
            amounts = [stated.get(which, {}).get("memory") for which in ("limits", "requests")]
            if any(amount is not None and Quantity.parse(amount) > bound for amount in amounts):
                return True
    return False


def owner(pod):
    return pod.partition("/")[2].rpartition("-")[0]


def places(report, workload):
    """Return the places of a workload's pods in the kubelet's order and in the kernel's, among pods."""
    kernel = list(dict.fromkeys(each.pod for each in report.kill_order))
    evicted = [each.place for each in report.eviction_order if owner(each.pod) == workload]
    return sorted(evicted), sorted(at for at, pod in enumerate(kernel, 1) if owner(pod) == workload)


def written(made, workload, lines):
    """Return the workloads with lines as they are printed written into one of them."""
    changed = deepcopy(made)
    spec = next(each for each in changed if each["metadata"]["name"] == workload)["spec"]["template"]["spec"]
    for line in lines:
        path, index, which, name, value = re.fullmatch(
            r"(spec\.containers)\[(\d)\]\.resources\.(\w+)\.(\w+): (\S+)(?:   # was \S+)?", line
        ).groups()
        assert path == "spec.containers"
        stated = spec["containers"][int(index)]["resources"].setdefault(which, {})
        stated[name] = "100m" if value == "<choose>" else value
    return changed


def requested(made):
    """Return the memory that the workloads request, as the API server stores them."""
    total = 0
    for each in made:
        for container in each["spec"]["template"]["spec"]["containers"]:
            stated = container["resources"]
            amount = stated.get("requests", {}).get("memory") or stated.get("limits", {}).get("memory")
            total += 0 if amount is None else Quantity.parse(amount).value * each["spec"]["replicas"]
    return total


def applied(remedy, workload, node):
    """Return the workloads and what they use with a remedy."""
    made, others, used, room = node
    if remedy.kind == "higher priority":
        value = int(remedy.change.split()[-1])
        higher = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "made"},
            "value": value,
        }
        changed = deepcopy(made)
        next(each for each in changed if each["metadata"]["name"] == workload)["spec"]["template"]["spec"][
            "priorityClassName"
        ] = "made"
        return changed, [*others, higher], used, room
    return written(made, workload, remedy.edits), others, used, room


@settings(max_examples=25)
@given(nodes())
def test_every_remedy_does_what_it_says_and_makes_nothing_worse_in_the_other_order(node):
    made, others, used, room = node
    report = ranked(made, others, used, room)
    if report is None:
        return
    for found in report.remedies:
        workload = owner(found.pod)
        for remedy in found.remedies:
            if not remedy.saves or remedy.kind == "use less":
                continue
            again = applied(remedy, workload, node)
            after = ranked(*again)
            assert after is not None, "the API server stores it"
            kernel = next(iter(after.kill_order)).pod
            first = after.eviction_order[0].pod if found.by is By.KUBELET else kernel
            assert owner(first) != workload, remedy
            assert owner(remedy.instead[0]) == owner(first)
            for before, then in zip(places(report, workload), places(after, workload), strict=True):
                assert all(one <= other for one, other in zip(before, then, strict=True)), remedy
            if requested(again[0]) > requested(made):
                assert requested(again[0]) <= room - THRESHOLD
                assert any("requested on the node, which has room" in each for each in remedy.costs)
            for line in remedy.edits:
                limit = re.fullmatch(r"spec\.containers\[(\d)\]\.resources\.limits\.memory: (\S+).*", line)
                if limit is not None:
                    container = ("app", "proxy")[int(limit[1])]
                    assert Quantity.parse(limit[2]).value * 100 >= used[workload][container] * MI * 120


@settings(max_examples=25)
@given(nodes())
def test_using_as_much_less_as_a_remedy_says_lets_another_go_first(node):
    """The pod alone uses less: its replicas do not change with it."""
    made, others, used, room = node
    made = [{**each, "spec": {**each["spec"], "replicas": 1}} for each in made]
    report = ranked(made, others, used, room)
    for found in () if report is None else report.remedies:
        workload = owner(found.pod)
        for remedy in found.remedies:
            if remedy.kind != "use less" or not remedy.saves:
                continue
            amount = Quantity.parse(remedy.change.split()[1]).value // MI
            lighter = dict(used[workload])
            of = found.container or max(lighter, key=lighter.get)
            if lighter[of] < amount:
                continue  # it takes from more than one container
            after = ranked(made, others, {**used, workload: {**lighter, of: lighter[of] - amount}}, room)
            first = after.eviction_order[0].pod if found.by is By.KUBELET else after.kill_order[0].pod
            assert owner(first) == owner(remedy.instead[0]) != workload
