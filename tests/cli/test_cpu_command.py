"""``podqos cpu`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main

SCENARIO = Path(__file__).parents[2] / "scenarios" / "content-platform" / "platform"


def cpu(capsys, *arguments: object) -> tuple[int, str, str]:
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
OVERCOMMITTED = [*USER_FACING, deployment("analytics", "500m", "4", 4), deployment("indexer", "1", "4", 4)]
BUDGETED = [*USER_FACING, deployment("analytics", "1", "2", 4), deployment("indexer", "1", "2", 4)]


def shares(capsys, tmp_path: Path, documents: list[str], *options: object) -> dict[str, dict]:
    """Return the pods of the answer by name."""
    (tmp_path / "all.yaml").write_text("---\n".join(documents))
    out = cpu(capsys, "-f", tmp_path / "all.yaml", "-o", "json", *options)[1]
    return {pod["pod"].partition("/")[2]: pod for pod in json.loads(out)["pods"]}


def test_500m_and_250m_are_two_to_one(capsys, tmp_path):
    got = shares(capsys, tmp_path, [deployment("a", "500m"), deployment("b", "250m")], "--cores", 3)
    assert (got["a-0"]["grantedMilli"], got["b-0"]["grantedMilli"]) == (2000, 1000)


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


def test_containers_of_one_pod_have_lines_and_500m_and_250m_are_two_to_one_on_cgroup_v1(capsys, tmp_path):
    (tmp_path / "two.yaml").write_text(two_containers())
    out = cpu(capsys, "-f", tmp_path, "--cores", 3, "--cgroup", "v1")[1]
    shown = rows(out)
    assert shown["default/two"][:4] == ["Burstable", "750m", "/", "unlimited"]
    assert (shown["big"][4:6], shown["small"][4:6]) == (["3.00", "2.00"], ["3.00", "1.00"])
    assert "weigh" not in out.lower().replace("weight", "")


def test_on_cgroup_v2_the_runtimes_curve_bends_two_to_one_and_that_is_said(capsys, tmp_path):
    (tmp_path / "two.yaml").write_text(two_containers())
    out = cpu(capsys, "-f", tmp_path, "--cores", 3)[1]
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
    whole = json.loads(cpu(capsys, "-f", tmp_path, "--cores", 3, "--cgroup", cgroup, "-o", "json")[1])
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
    out = cpu(capsys, *arguments)[1]
    assert "; 14 are available, 14.00 are used." in out
    assert "Of the node's 16 cores the daemons are assumed to use the 2 reserved for them" in out
    whole = json.loads(cpu(capsys, *arguments, "-o", "json")[1])
    assert (whole["nodeCores"], whole["cores"]) == (16, 14)
    assert {pod["deniedPercent"] for pod in whole["pods"]} == {0, 50}


def test_on_cgroup_v1_the_default_shares_of_a_slice_do_not_cover_a_reservation_of_two_cores(capsys, tmp_path, reserved):
    (tmp_path / "all.yaml").write_text("---\n".join(BUDGETED))
    arguments = ("-f", tmp_path / "all.yaml", "--cores", 16, "--kubelet-config", reserved, "--cgroup", "v1")
    out = cpu(capsys, *arguments)[1]
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
    whole = json.loads(cpu(capsys, *arguments, "--cores", 16)[1])
    assert (whole["daemons"]["grantedMilli"], whole["cores"], whole["grantedMilli"]) == (2000, 14, 14000)
    code, _, err = cpu(capsys, *arguments, "--cores", 7)
    assert code == 2
    assert "6 exclusive CPUs (cpuManagerPolicy: static), but pods have 5" in err


def test_a_reservation_beyond_the_cores_keeps_the_kubelet_from_starting(capsys, tmp_path, reserved):
    (tmp_path / "all.yaml").write_text(deployment("a", "500m"))
    code, out, err = cpu(capsys, "-f", tmp_path / "all.yaml", "--cores", 1, "--kubelet-config", reserved)
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
    whole = json.loads(cpu(capsys, "-f", tmp_path, *options, "-o", "json")[1])
    assert whole["nodeCores"] == cores
    assert "cores" not in {each["what"] for each in whole["assumptions"]}


def test_of_a_node_whose_kubelet_is_known_the_capacity_counts(capsys, tmp_path, reserved):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": NODES[0]}
    (tmp_path / "all.yaml").write_text(f"{deployment('a', '500m')}---\n{json.dumps(node)}\n")
    for option in (("-f", tmp_path / "all.yaml", "--kubelet-config", reserved), ("-f", tmp_path)):
        whole = json.loads(cpu(capsys, *option, "-o", "json")[1])
        assert (whole["nodeCores"], whole["cores"]) == (32, 30)


def test_without_a_node_16_cores_are_assumed_on_every_machine(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    (tmp_path / "all.yaml").write_text(deployment("a", "500m"))
    assumed = json.loads(cpu(capsys, "-f", tmp_path, "-o", "json")[1])["assumptions"]
    assert assumed[0] == {"what": "cores", "value": "16", "stateWith": "--cores"}
    stated = json.loads(cpu(capsys, "-f", tmp_path, "-o", "json", "--cores", 3)[1])["assumptions"]
    assert stated == assumed[1:]


def test_a_node_that_neither_is_there_nor_has_pods_is_refused(capsys, tmp_path):
    (tmp_path / "all.yaml").write_text(deployment("a", "500m"))
    code, out, err = cpu(capsys, "-f", tmp_path, "--node", "x")
    assert (code, out) == (2, "")
    assert "no pods run on x" in err


def test_32_cores_wanted_are_severe_for_everybody_who_bursts(capsys, tmp_path):
    got = shares(capsys, tmp_path, OVERCOMMITTED, "--cores", 14, "--cgroup", "v1")
    assert [got[name]["deniedPercent"] for name in ("article-service-0", "analytics-0", "indexer-0")] == pytest.approx(
        [0, 83.3, 66.7], abs=0.1
    )


def test_16_cores_wanted_are_half_for_everybody_who_bursts(capsys, tmp_path):
    got = shares(capsys, tmp_path, BUDGETED, "--cores", 14)
    assert {pod["deniedPercent"] for pod in got.values()} == {0, 50}
    assert got["cdn-origin-0"]["bound"] is None
    assert got["indexer-3"]["bound"] == "contention"


def test_table_has_a_line_per_pod_and_one_for_all(capsys):
    code, out, _ = cpu(capsys, "-f", SCENARIO, "--cores", 14)
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
    rows = list(csv.DictReader(io.StringIO(cpu(capsys, "-f", SCENARIO, "--cores", 14, "-o", "csv")[1])))
    whole = yaml.safe_load(cpu(capsys, "-f", SCENARIO, "--cores", 14, "-o", "yaml")[1])
    assert [row["pod"] for row in rows] == [pod["pod"] for pod in whole["pods"]]


@pytest.mark.parametrize("cores", ["none", "0", "-1"])
def test_a_number_of_cores_is_an_amount_above_zero(capsys, cores):
    code, out, err = cpu(capsys, "-f", SCENARIO, f"--cores={cores}")
    assert (code, out) == (2, "")
    what = "'none' is not a valid quantity" if cores == "none" else f"must be above zero, not {cores}"
    assert err.startswith(f"podqos: error: --cores: {what} ")
    assert "for example 16 or 500m" in err


def test_parts_of_cores_are_divided_too(capsys):
    whole = json.loads(cpu(capsys, "-f", SCENARIO, "--cores", "13800m", "-o", "json")[1])
    assert (whole["cores"], whole["grantedMilli"]) == (13.8, 13800)
    assert "; 13.8 are available, 13.80 are used." in cpu(capsys, "-f", SCENARIO, "--cores", 13.8)[1]
    assert json.loads(cpu(capsys, "-f", SCENARIO, "--cores", 14, "-o", "json")[1])["cores"] == 14


def test_no_pods_are_bad_input(capsys, tmp_path):
    (tmp_path / "empty.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    assert cpu(capsys, "-f", tmp_path, "--cores", 2)[0] == 2


def test_a_pod_that_gets_a_little_is_not_denied_everything(capsys):
    _, out, *_ = cpu(capsys, "-f", SCENARIO, "--cores", 14)
    row = next(line for line in out.splitlines() if line.startswith("monitoring/log-collector"))
    assert " 0.02  99 %  " in row
