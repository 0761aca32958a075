"""What everybody gets when everybody bursts: the examples of the sources, and what always holds."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import amounts, container
from eviction.nodes import pod, pod_of
from podqos.cli.main import main
from podqos.errors import InputError
from podqos.kernel.cpu import CORE_NANO, CpuBound, CpuGroup, cpu_shares
from podqos.model.effective import pod_limits
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.resources import CPU
from podqos.qos.cgroup import Cgroup, Level, node_cgroups, pod_cgroups
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.classes import classify
from podqos.questions.cpu import burst
from strategies import accepted_pods

SETTINGS = CgroupSettings(node_memory_bytes=64 << 30)
V1 = CgroupSettings(node_memory_bytes=64 << 30, cgroup_version=CgroupVersion.V1)


def cores(pods: list[Pod], count: int, settings: CgroupSettings = SETTINGS) -> dict[str, float]:
    """Return what each pod gets, in cores."""
    result = burst(pods, count, settings).pods
    return {entry.pod.partition("/")[2]: entry.granted_milli / 1000 for entry in result}


@pytest.mark.parametrize("settings", [SETTINGS, V1], ids=["v2", "v1"])
def test_spare_cpu_is_shared_in_proportion_to_requests(settings):
    assert cores([pod("a", "cpu=500m"), pod("b", "cpu=250m")], 3, settings) == {"a": 2, "b": 1}


def _user_facing() -> list[Pod]:
    return [pod(name, "cpu=2,memory=1Gi", "cpu=2,memory=1Gi") for name in ("article", "search", "cdn")]


def test_32_cores_wanted_where_8_are_left():
    """Four analytics at 500m, four indexers at 1, all with a limit of 4: a quarter of what they want, by request."""
    batch = [pod(f"analytics-{index}", "cpu=500m", "cpu=4") for index in range(4)]
    batch += [pod(f"indexer-{index}", "cpu=1", "cpu=4") for index in range(4)]
    result = burst([*_user_facing(), *batch], 14, V1).pods
    by_name = {entry.pod.partition("/")[2]: entry for entry in result}
    assert sum(entry.wanted_milli for entry in result[3:]) == 32_000
    assert sum(entry.granted_milli for entry in result[3:]) == pytest.approx(8000, abs=4)
    assert by_name["article"].granted_milli == 2000
    assert by_name["analytics-0"].granted_milli == 667
    assert by_name["indexer-0"].granted_milli == 1333
    assert {entry.bound for entry in result[3:]} == {CpuBound.CONTENTION}


def test_16_cores_wanted_where_8_are_left():
    """With a budget of twice the requests everybody gets half of what he wants."""
    batch = [pod(f"batch-{index}", "cpu=1", "cpu=2") for index in range(8)]
    result = burst([*_user_facing(), *batch], 14, SETTINGS).pods
    assert [entry.denied_percent for entry in result] == [0] * 3 + [50] * 8


def test_guaranteed_pods_that_want_their_limit_get_it():
    got = cores(
        [pod("g", "cpu=2,memory=1Gi", "cpu=2,memory=1Gi"), *(pod(f"b{index}", "cpu=1") for index in range(6))], 8
    )
    assert got["g"] == 2


def test_best_effort_gets_what_nobody_else_wants():
    alone = cores([pod("idle"), pod("b", "cpu=1", "cpu=1")], 8)
    assert alone == {"idle": 7, "b": 1}
    contended = cores([pod("idle"), pod("b", "cpu=1")], 8)
    assert contended["idle"] == pytest.approx(8 / 40, rel=0.01)  # weight 1 against the 39 of one core


@pytest.mark.parametrize(
    ("settings", "weight", "granted_milli"),
    [
        pytest.param(V1, 1024, 667, id="v1: cpu.shares of one core against 2048"),
        pytest.param(SETTINGS, 100, 1000, id="v2: cpu.weight 100 against the 79 of two cores"),
    ],
)
def test_daemons_compete_with_all_pods_by_the_weight_systemd_gives_a_slice(settings, weight, granted_milli):
    node = replace(settings, node_allocatable=amounts("cpu=2"))
    daemons = burst([pod("a", "cpu=2")], 2, node, reserved_milli=1000).daemons
    assert (daemons.weight, daemons.granted_milli) == (weight, granted_milli)


def test_containers_share_what_their_pod_gets():
    two = pod_of("two", container("large", requests="cpu=300m"), container("small", requests="cpu=100m"))
    result = burst([two, pod("other", "cpu=400m")], 4, V1).pods
    assert [each.granted_milli / 1000 for each in result[0].containers] == pytest.approx([1.5, 0.5], rel=0.01)


@pytest.mark.parametrize(("second", "limit"), [("cpu=500m", "1500m"), ("", None)])
def test_a_pod_has_a_limit_where_all_its_containers_have_one(second, limit):
    two = pod_of("two", container("a", limits="cpu=1"), container("b", limits=second))
    (entry,) = burst([two], 8, SETTINGS).pods
    assert (entry.limit and str(entry.limit)) == limit


def test_a_limit_binds_though_cores_are_idle():
    result = burst([pod("a", "cpu=1", "cpu=1")], 8, SETTINGS).pods
    assert [(entry.wanted_milli, entry.granted_milli) for entry in result] == [(1000, 1000)]


@given(st.lists(accepted_pods(), min_size=1, max_size=6), st.integers(1, 16), st.sampled_from([SETTINGS, V1]))
def test_nobody_gets_more_than_he_may_and_all_together_no_more_than_there_is(pods, count, settings):
    result = burst(pods, count, settings).pods
    wanted, granted = sum(entry.wanted_milli for entry in result), sum(entry.granted_milli for entry in result)
    rounding = len(pods)  # each pod to a thousandth of a core
    assert granted <= count * 1000 + rounding
    assert granted >= min(wanted, count * 1000) - rounding or any(entry.bound is CpuBound.QUOTA for entry in result)
    for given_pod, entry in zip(pods, result, strict=True):
        assert 0 <= entry.granted_milli <= entry.wanted_milli
        limits = [container.resources.limits.get(CPU) for container in given_pod.running_containers]
        if len(limits) == 1 and limits[0]:
            assert entry.granted_milli <= max(limits[0].milli_value, 10)
        if CPU in pod_limits(given_pod) and all(limits):
            assert entry.wanted_milli <= sum(max(limit.milli_value, 10) for limit in limits)


@given(accepted_pods(), accepted_pods(), st.integers(1, 16))
def test_the_division_is_that_of_the_planned_cgroups(one, other, count):
    """Building every cgroup of the plan from its files gives the same, also where pod and container are one here."""
    pods = [replace(each, metadata=ObjectMeta(uid=uid)) for each, uid in ((one, "1"), (other, "2"))]
    groups = [_group(cgroup, 0) for cgroup in node_cgroups(pods, SETTINGS)]
    paths = []
    for each in pods:
        ids = {container.name: container.name for container in each.running_containers}
        plan = pod_cgroups(each, classify(each).qos_class, SETTINGS, ids=ids)
        groups += [_group(cgroup, 0) for cgroup in plan if cgroup.level is Level.POD]
        groups += [_group(cgroup, count) for cgroup in plan if cgroup.container in ids]
        by_name = {cgroup.container: cgroup.path for cgroup in plan if cgroup.level is Level.CONTAINER}
        paths += [by_name[name] for name in ids]
    whole = cpu_shares(groups, count)
    mine = [each.granted_milli for entry in burst(pods, count, SETTINGS).pods for each in entry.containers]
    assert mine == pytest.approx([whole[path].granted_nano * 1000 / CORE_NANO for path in paths], abs=0.51)


def _group(cgroup: Cgroup, count: int) -> CpuGroup:
    """Return a group of the CPU controller as its files have it; a container wants so many cores."""
    quota, _, period = (cgroup.text("cpu.max") or "max 100000").partition(" ")
    weight = int(cgroup.text("cpu.weight") or 100)
    if quota == "max":
        return CpuGroup(cgroup.path, weight, demand_nano=count * CORE_NANO)
    wanted = min(count * CORE_NANO, int(quota) * CORE_NANO // int(period))
    return CpuGroup(cgroup.path, weight, int(quota), int(period), wanted)


class TestExclusiveCores:
    """What a static CPU manager changes."""

    STATIC = replace(SETTINGS, static_cpu_manager=True)

    def test_cores_of_its_own_are_not_shared_out(self):
        pods = [pod("own", "cpu=2,memory=1Gi", "cpu=2,memory=1Gi"), pod("a", "cpu=6"), pod("b", "cpu=2")]
        assert cores(pods, 4)["own"] < 2
        assert cores(pods, 4, self.STATIC) == pytest.approx({"own": 2, "a": 1.5, "b": 0.5}, rel=1e-2)

    def test_a_fraction_of_a_core_stays_in_the_shared_pool(self):
        pods = [pod("own", "cpu=1500m,memory=1Gi", "cpu=1500m,memory=1Gi"), pod("a", "cpu=1500m")]
        assert cores(pods, 2, self.STATIC) == cores(pods, 2)

    def test_containers_of_one_pod_are_told_apart(self):
        mixed = pod_of(
            "mixed",
            container("whole", requests="cpu=2,memory=1Gi", limits="cpu=2,memory=1Gi"),
            container("part", requests="cpu=500m,memory=1Gi", limits="cpu=500m,memory=1Gi"),
        )
        (entry,) = burst([mixed], 4, self.STATIC).pods
        assert [each.granted_milli for each in entry.containers] == [2000, 500]
        assert entry.granted_milli == 2500

    def test_all_cores_can_be_taken_and_then_nothing_is_left(self):
        pods = [pod("own", "cpu=2,memory=1Gi", "cpu=2,memory=1Gi"), pod("a", "cpu=1")]
        assert cores(pods, 2, self.STATIC) == {"own": 2, "a": 0}

    def test_the_weight_of_all_pods_is_spread_over_all_cores(self):
        """Of 118 for three cores the half counts on the two that are shared, against 100 of the daemons."""
        node = replace(self.STATIC, node_allocatable=amounts("cpu=3"))
        pods = [pod("own", "cpu=2,memory=1Gi", "cpu=2,memory=1Gi"), pod("a", "cpu=1")]
        daemons = burst(pods, 4, node, reserved_milli=2000).daemons
        assert (daemons.pods_weight, daemons.granted_milli) == (118, 1258)

    def test_more_than_there_is_cannot_be_given_away(self):
        with pytest.raises(InputError, match=r"4 exclusive CPUs .*, but pods have 3"):
            burst([pod("own", "cpu=4,memory=1Gi", "cpu=4,memory=1Gi")], 3, self.STATIC)


def test_without_qos_cgroups_containers_compete_alone_and_classes_do_not_count():
    flat = replace(SETTINGS, cgroups_per_qos=False, weight_conversion="linear")
    two = pod_of("two", container("a", requests="cpu=1"), container("b", requests="cpu=1"))
    nothing = [pod(f"nothing-{index}") for index in range(9)]
    pods = [two, pod("guaranteed", "cpu=1,memory=1Gi", "cpu=4,memory=1Gi"), *nothing]
    got = cores(pods, 3, flat)
    assert got["two"] == pytest.approx(2 * got["guaranteed"], rel=1e-2)
    assert got["nothing-0"] > 5 * cores(pods, 3)["nothing-0"]
    assert sum(got.values()) == pytest.approx(3, abs=0.01)


# ---- the command -----------------------------------------------------------------------------------------------------

SCENARIO = Path(__file__).parents[2] / "scenarios" / "content-platform" / "platform"


def command(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and standard error."""
    code = main(["cpu", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def deployment(name: str, request: str, limit: str = "", replicas: int = 1, memory: str = "") -> str:
    """Write a Deployment of one container."""
    limits = {key: value for key, value in (("cpu", limit), ("memory", memory)) if value}
    requests = {key: value for key, value in (("cpu", request), ("memory", memory)) if value}
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


USER_FACING = [deployment(name, "2", "2", memory="1Gi") for name in ("article-service", "search-api", "cdn-origin")]
BUDGETED = [*USER_FACING, deployment("analytics", "1", "2", 4), deployment("indexer", "1", "2", 4)]


def two_containers(big: str = "500m", small: str = "250m") -> str:
    """Write a pod of two containers without limits."""
    containers = [
        {"name": name, "image": "i", "resources": {"requests": {"cpu": request}}}
        for name, request in (("big", big), ("small", small))
    ]
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "two"}, "spec": {"containers": containers}}
    )


def rows(out: str) -> dict[str, list[str]]:
    """Return the cells of each line of a table by the first of them."""
    return {
        cells[0]: cells[1:] for line in out.splitlines() if (cells := line.replace("no limit", "unlimited").split())
    }


def test_on_cgroup_v2_the_runtimes_curve_bends_two_to_one_and_that_is_said(capsys, tmp_path):
    (tmp_path / "two.yaml").write_text(two_containers())
    out = command(capsys, "-f", tmp_path, "--cores", 3)[1]
    assert (rows(out)["big"][3:6], rows(out)["small"][3:6]) == (["59", "3.00", "1.88"], ["35", "3.00", "1.12"])
    assert "In default/two, big and small request CPU 2 : 1 (500m : 250m), but weigh 1.69 : 1 (59 : 35)." in out
    assert "by a curve (runc since 1.3.2, crun since 1.23)" in out


@pytest.mark.parametrize(
    ("documents", "cgroup", "cause"),
    [
        pytest.param([two_containers("1", "1m")], "v1", "minimum", id="nobody has less than 2 shares"),
        pytest.param([deployment("a", "50m"), deployment("b", "40m")], "v2", "rounding", id="weights are whole"),
        pytest.param([deployment("a", "500m"), deployment("b", "250m")], "v2", None, id="pods keep 2 to 1"),
        pytest.param([two_containers("500m", "500m")], "v2", None, id="equal requests have equal weights"),
    ],
)
def test_what_bends_the_ratio_of_requests(capsys, tmp_path, documents, cgroup, cause):
    (tmp_path / "all.yaml").write_text("---\n".join(documents))
    whole = json.loads(command(capsys, "-f", tmp_path, "--cores", 3, "--cgroup", cgroup, "-o", "json")[1])
    assert [bend["cause"] for bend in whole["bends"]] == ([cause] if cause else [])


@pytest.fixture
def reserved(tmp_path: Path) -> Path:
    """Return the configuration of a kubelet that reserves two cores."""
    file = tmp_path / "kubelet" / "kubelet.yaml"
    file.parent.mkdir()
    identity = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    file.write_text(identity + 'kubeReserved: {cpu: "1"}\nsystemReserved: {cpu: "1"}\n')
    return file


def test_daemons_use_the_cpu_that_is_reserved_for_them(capsys, tmp_path, reserved):
    (tmp_path / "all.yaml").write_text("---\n".join(BUDGETED))
    arguments = ("-f", tmp_path / "all.yaml", "--cores", 16, "--kubelet-config", reserved)
    out = command(capsys, *arguments)[1]
    assert "; 14 are available, 14.00 are used." in out
    assert "Of the node's 16 cores the daemons are assumed to use the 2 reserved for them" in out
    whole = json.loads(command(capsys, *arguments, "-o", "json")[1])
    assert (whole["nodeCores"], whole["cores"]) == (16, 14)
    assert {pod["deniedPercent"] for pod in whole["pods"]} == {0, 50}


def test_on_cgroup_v1_the_default_shares_of_a_slice_do_not_cover_a_reservation_of_two_cores(capsys, tmp_path, reserved):
    (tmp_path / "all.yaml").write_text("---\n".join(BUDGETED))
    arguments = ("-f", tmp_path / "all.yaml", "--cores", 16, "--kubelet-config", reserved, "--cgroup", "v1")
    out = command(capsys, *arguments)[1]
    # 1024 shares of 1024 + 14 × 1024: one fifteenth of 16 cores.
    assert "2 are reserved for daemons, which get 1.07 if they want all of it" in out
    assert "their slice weighs 1024, all pods together weigh 14336." in out
    assert "; 14.93 are available" in out


def test_exclusive_cpus_take_nothing_from_what_daemons_weigh(capsys, tmp_path):
    """Six of 16 cores are exclusive: on the other ten all pods weigh ten sixteenths of what they weigh on 16."""
    identity = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    (tmp_path / "kubelet.yaml").write_text(identity + 'cpuManagerPolicy: static\nreservedSystemCPUs: "0-1"\n')
    (tmp_path / "all.yaml").write_text("---\n".join(BUDGETED))
    arguments = ("-f", tmp_path / "all.yaml", "--kubelet-config", tmp_path / "kubelet.yaml", "-o", "json")
    whole = json.loads(command(capsys, *arguments, "--cores", 16)[1])
    assert (whole["daemons"]["grantedMilli"], whole["cores"], whole["grantedMilli"]) == (2000, 14, 14000)
    code, _, err = command(capsys, *arguments, "--cores", 7)
    assert code == 2
    assert "6 exclusive CPUs (cpuManagerPolicy: static), but pods have 5" in err


def test_a_reservation_beyond_the_cores_keeps_the_kubelet_from_starting(capsys, tmp_path, reserved):
    (tmp_path / "all.yaml").write_text(deployment("a", "500m"))
    code, out, err = command(capsys, "-f", tmp_path / "all.yaml", "--cores", 1, "--kubelet-config", reserved)
    assert (code, out) == (2, "")
    assert "the kubelet does not start" in err


NODES = [
    {"name": "big", "capacity": {"cpu": "32"}, "allocatable": {"cpu": "31500m"}},
    {"name": "small", "capacity": {"cpu": "8"}, "allocatable": {"cpu": "7900m"}},
    {"name": "unstated"},
]


@pytest.mark.parametrize(
    ("placed_on", "options", "cores"),
    [
        (None, (), 7.9),
        (None, ("--node", "big"), 31.5),
        (None, ("--node", "unstated"), 7.9),
        (None, ("--node", "big", "--cores", 3), 3),
        ("big", (), 31.5),
        ("big", ("--node", "big"), 31.5),
    ],
)
def test_the_cores_are_those_of_the_node_in_the_files(capsys, tmp_path, placed_on, options, cores):
    pod = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": placed_on} if placed_on else {})}
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": node["name"]}, "status": node} for node in NODES]
    objects = [*nodes, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": pod}]
    (tmp_path / "all.yaml").write_text("---\n".join(json.dumps(each) + "\n" for each in objects))
    whole = json.loads(command(capsys, "-f", tmp_path, *options, "-o", "json")[1])
    assert whole["nodeCores"] == cores
    assert "cores" not in {each["what"] for each in whole["assumptions"]}


def test_of_a_node_whose_kubelet_is_known_the_capacity_counts(capsys, tmp_path, reserved):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": NODES[0]}
    (tmp_path / "all.yaml").write_text(f"{deployment('a', '500m')}---\n{json.dumps(node)}\n")
    for option in (("-f", tmp_path / "all.yaml", "--kubelet-config", reserved), ("-f", tmp_path)):
        whole = json.loads(command(capsys, *option, "-o", "json")[1])
        assert (whole["nodeCores"], whole["cores"]) == (32, 30)


def test_without_a_node_16_cores_are_assumed_on_every_machine(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    (tmp_path / "all.yaml").write_text(deployment("a", "500m"))
    assumed = json.loads(command(capsys, "-f", tmp_path, "-o", "json")[1])["assumptions"]
    assert assumed[0] == {"what": "cores", "value": "16", "stateWith": "--cores"}
    stated = json.loads(command(capsys, "-f", tmp_path, "-o", "json", "--cores", 3)[1])["assumptions"]
    assert stated == assumed[1:]


def test_a_node_that_neither_is_there_nor_has_pods_is_refused(capsys, tmp_path):
    (tmp_path / "all.yaml").write_text(deployment("a", "500m"))
    code, out, err = command(capsys, "-f", tmp_path, "--node", "x")
    assert (code, out) == (2, "")
    assert "no pods run on x" in err


def test_table_has_a_line_per_pod_and_one_for_all(capsys):
    code, out, _ = command(capsys, "-f", SCENARIO, "--cores", 14)
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 1 + 10 + 2
    assert any(
        line.split()[:2] == ["production/article-service-0", "Guaranteed"] and line.split()[-1] == "–" for line in lines
    )
    assert (
        lines[0] == "The pods want 44.00 cores in total; 14 are available, 14.00 are used. A CPU shortage kills no pod."
    )


def test_csv_and_yaml(capsys):
    rows = list(csv.DictReader(io.StringIO(command(capsys, "-f", SCENARIO, "--cores", 14, "-o", "csv")[1])))
    whole = yaml.safe_load(command(capsys, "-f", SCENARIO, "--cores", 14, "-o", "yaml")[1])
    assert [row["pod"] for row in rows] == [pod["pod"] for pod in whole["pods"]]


@pytest.mark.parametrize("cores", ["none", "0", "-1"])
def test_a_number_of_cores_is_an_amount_above_zero(capsys, cores):
    code, out, err = command(capsys, "-f", SCENARIO, f"--cores={cores}")
    assert (code, out) == (2, "")
    what = "'none' is not a valid quantity" if cores == "none" else f"must be above zero, not {cores}"
    assert err.startswith(f"podqos: error: --cores: {what} ")
    assert "for example 16 or 500m" in err


def test_parts_of_cores_are_divided_too(capsys):
    whole = json.loads(command(capsys, "-f", SCENARIO, "--cores", "13800m", "-o", "json")[1])
    assert (whole["cores"], whole["grantedMilli"]) == (13.8, 13800)
    assert "; 13.8 are available, 13.80 are used." in command(capsys, "-f", SCENARIO, "--cores", 13.8)[1]
    assert json.loads(command(capsys, "-f", SCENARIO, "--cores", 14, "-o", "json")[1])["cores"] == 14


def test_a_pod_that_gets_a_little_is_not_denied_everything(capsys):
    _, out, *_ = command(capsys, "-f", SCENARIO, "--cores", 14)
    row = next(line for line in out.splitlines() if line.startswith("monitoring/log-collector"))
    assert " 0.02  99 %  " in row
