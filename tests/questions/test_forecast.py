"""``podqos forecast`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from podqos.cli.main import main

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "scenarios" / "content-platform"
NODE = ["-f", str(PLATFORM / "platform"), "--usage", str(PLATFORM / "usage.csv"), "--node-memory", "64Gi"]
CONFIG = ["--kubelet-config", str(PLATFORM / "node" / "kubelet.yaml")]


def _forecast(capsys, *options: str) -> tuple[int, str, str]:
    code = main(["forecast", *NODE, *options])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_table_says_who_acts_first_how_likely_and_what_would_be_needed(capsys):
    code, out, _ = _forecast(capsys, *CONFIG, "--growing", "log-collector", "--rate", "2Mi/s")
    assert code == 0
    assert "monitoring/log-collector (collector) grows by 2Mi/s" in out
    assert "the kernel kills monitoring/log-collector" in out
    assert "For the kubelet to act first 99 % of the time, set evictionHard memory.available<" in out
    assert "1Mi/s    100 %" in out


def test_a_threshold_that_is_high_enough_is_not_advised_to_be_lowered(capsys, tmp_path):
    config = tmp_path / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {memory.available: 4Gi}\n"
    )
    _, out, _ = _forecast(
        capsys, "--kubelet-config", str(config), "--growing", "log-collector", "--rate", "2Mi/s", "-o", "json"
    )
    said = json.loads(out)["growths"][0]["needed"]["text"]
    assert "set evictionHard" not in said
    assert " would be enough for the kubelet to act first 99 % of the time." in said


def test_thresholds_that_would_be_met_after_memory_ran_out_are_not_listed(capsys, tmp_path):
    config = tmp_path / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "kubeReserved: {memory: 1Gi}\nevictionHard: {memory.available: 500Mi}\n"
    )
    options = ["--growing", "log-collector", "--rate", "50Mi/s", "--kubelet-config", str(config)]
    _, out, _ = _forecast(capsys, *options)
    race = next(line for line in out.splitlines() if "The pods together reach their limit" in line)
    assert race.strip().startswith("allocatableMemory.available crosses its hard threshold of 500Mi after")
    assert "memory.available crosses" not in race.replace("allocatableMemory.available", "")


def test_a_kubelet_without_a_memory_threshold_is_called_that(capsys, tmp_path):
    config = tmp_path / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {nodefs.available: 10%}\n"
    )
    _, out, _ = _forecast(capsys, "--growing", "log-collector", "--rate", "50Mi/s", "--kubelet-config", str(config))
    assert ". No memory threshold is set." in out


def test_what_is_recommended_makes_the_kubelet_win(capsys, tmp_path):
    """The threshold of one forecast is the configuration of the next."""
    options = ["--growing", "log-collector", "--rate", "128Mi/s", "-o", "json", "--win", "90"]
    _, out, _ = _forecast(capsys, *options)
    (before,) = json.loads(out)["growths"]
    assert before["kubeletFirst"] < 0.9
    config = tmp_path / "kubelet.yaml"
    threshold = before["needed"]["evictionHardBytes"]
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        f"enforceNodeAllocatable: [none]\nevictionHard: {{memory.available: '{threshold}'}}\n"
    )
    _, out, _ = _forecast(capsys, *options, "--kubelet-config", str(config))
    (after,) = json.loads(out)["growths"]
    assert after["kubeletFirst"] == pytest.approx(0.9, abs=1e-3)
    assert after["kubeletFirst"] >= 0.9
    assert {outcome["by"] for outcome in after["outcomes"]} == {"kubelet", "kernel"}


def test_an_impractical_threshold_is_called_that_with_what_to_do_instead(capsys):
    _, out, _ = _forecast(capsys, "--growing", "log-collector", "--rate", "1Gi/s", "--rate", "4Gi/s")
    assert "memory.available<10463Mi, which is impractical: pods request more than it leaves. It would reduce" in out
    assert "; batch/content-generator-1 no longer fits. Instead, give" in out
    assert "No evictionHard lets the kubelet act first 99 % of the time: at this rate memory runs out between" in out


def test_the_limit_to_set_instead_does_what_is_said_and_displaces_no_pod(capsys, tmp_path):
    _, out, _ = _forecast(capsys, "--growing", "log-collector", "--rate", "1Gi/s")
    assert "memory limit of at most 11763Mi and a request (without one, the limit becomes the request)" in out
    container, pods = "        - name: collector\n", tmp_path / "platform"
    shutil.copytree(PLATFORM / "platform", pods)
    file = pods / "log-collector.yaml"
    written = file.read_text()
    node = ["--nodes", "1", "--node-capacity", "cpu=16,memory=64Gi,pods=110"]
    for requests, placed in (("", "9 of 10 pods"), (", requests: {memory: 250Mi}", "10 of 10 pods")):
        resources = f"          resources: {{limits: {{memory: 11763Mi}}{requests}}}\n"
        file.write_text(written.replace(container, container + resources))
        main(["place", str(pods), *node])
        assert capsys.readouterr().out.startswith(placed)
    usage = ["--usage", str(PLATFORM / "usage.csv"), "--node-memory", "64Gi"]
    assert main(["forecast", str(pods), *usage, "--growing", "log-collector", "--rate", "1Gi/s"]) == 0
    assert "The container reaches its own limit after" in capsys.readouterr().out


def test_page_cache_is_reclaimed_first(capsys, tmp_path):
    config, usage, manifest = (tmp_path / name for name in ("kubelet.yaml", "usage.csv", "pods.yaml"))
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {memory.available: 1Gi}\n"
    )
    usage.write_text("pod,memory,anon\na,1Gi,1Gi\nb,9Gi,1Gi\n")
    pods = (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: i}}]}}\n"
        for name in "ab"
    )
    manifest.write_text("---\n".join(pods))
    options = ["-f", str(manifest), "--usage", str(usage), "--node-memory", "16Gi", "--kubelet-config", str(config)]
    growing = ["--growing", "a", "--rate", "1Gi/s"]
    assert main(["forecast", *options, *growing]) == 0
    assert (
        "The kernel first reclaims 8Gi of page cache. memory.available crosses its hard threshold of"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(("version", "first"), [("v1", 1), ("v2", 0.625)])
def test_a_kubelet_is_notified_by_the_kernel_on_cgroup_v1_alone(capsys, tmp_path, version, first):
    """Of 80 MiB/s an interval is 800 MiB; from 825 MiB on the kernel has 500 MiB left to give."""
    config = tmp_path / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nkernelMemcgNotification: true\n"
        "enforceNodeAllocatable: [none]\nevictionHard: {memory.available: 825Mi}\n"
    )
    options = ["--growing", "log-collector", "--rate", "80Mi/s", "--kubelet-config", str(config), "--cgroup", version]
    (growth,) = json.loads(_forecast(capsys, *options, "-o", "json")[1])["growths"]
    assert growth["kubeletFirst"] == pytest.approx(first, abs=1e-3)


def test_system_daemons_can_grow_and_nothing_that_happens_to_pods_ends_that(capsys):
    code, out, _ = _forecast(capsys, *CONFIG, "--growing", "system", "--rate", "64Mi/s")
    assert code == 0
    assert "System daemons grow by 64Mi/s" in out
    assert "the kernel kills monitoring/log-collector" in out
    assert "and the growth continues" in out
    (growth,) = json.loads(_forecast(capsys, "--growing", "system", "--rate", "64Mi/s", "-o", "json")[1])["growths"]
    assert (growth["pod"], growth["container"], growth["outOfMemory"]) == ("system", "", "node")
    assert not any(outcome["endsGrowth"] for outcome in growth["outcomes"])


def test_the_limit_of_all_pods_is_not_met_because_daemons_grow(capsys, tmp_path):
    config = tmp_path / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "systemReserved: {memory: 2Gi}\nevictionHard: {memory.available: 1Gi}\n"
    )
    options = ["--kubelet-config", str(config), "--rate", "64Mi/s", "-o", "json"]
    pod, system = (
        json.loads(_forecast(capsys, *options, "--growing", each)[1])["growths"][0]["thresholds"]
        for each in ("log-collector", "system")
    )
    assert [each["signal"] for each in pod] == ["memory.available", "allocatableMemory.available"]
    assert [each["signal"] for each in system] == ["memory.available"]


# ---- several that grow at once ---------------------------------------------------------------------------------------

POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: i{more}}}]}}\n"
WEB = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n"
    "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n"
    "    spec: {containers: [{name: c, image: i}]}\n"
)
LIMITED = ", resources: {limits: {memory: 2Gi}, requests: {memory: 1Gi}}"


@pytest.fixture
def leaking(capsys, tmp_path):
    """Return a function that lets pods of a small node grow: a, b with a limit, web-0, web-1, and 26 others."""
    names = ["a", "b", *(f"other-{number}" for number in range(26))]
    pods = [POD.format(name=name, more=LIMITED if name == "b" else "") for name in names]
    (tmp_path / "pods.yaml").write_text("---\n".join([*pods, WEB]))
    used = "".join(f"{name},{'1Gi' if name in 'ab' else '64Mi'}\n" for name in (*names, "web-0", "web-1"))
    (tmp_path / "usage.csv").write_text(f"pod,memory\n{used}")
    node = ["-f", str(tmp_path / "pods.yaml"), "--usage", str(tmp_path / "usage.csv"), "--node-memory", "8Gi"]

    def run(*options: str) -> tuple[int, str, str]:
        code = main(["forecast", *node, *options])
        return code, *capsys.readouterr()

    return run


def _grow(*names: str) -> list[str]:
    return [word for name in names for word in ("--growing", name)]


def _deaths(out: str) -> list[tuple[str, str, int]]:
    (together,) = json.loads(out)["together"]
    (order,) = together["orders"]
    return [(death["by"], death["pod"], death["times"]) for death in order["deaths"]]


def test_thirty_pods_of_which_three_leak_are_one_command_that_says_who_dies_in_which_order(leaking):
    code, out, _ = leaking(*_grow("a", "b", "web-0"), "--rate", "64Mi/s")
    assert code == 0
    assert out.startswith(
        "If default/a (c), default/b (c) and default/web-0 (c) leak, default/b is OOM-killed, then default/a is "
        "OOM-killed, then default/web-0 is OOM-killed.\n"
    )
    assert "default/a (c), default/b (c) and default/web-0 (c) grow by 64Mi/s\n" in out
    first, second, third = (line for line in out.splitlines() if line.startswith("   ") and ": default/" in line)
    assert "after 16 s: default/b (c) OOM-killed: the container out of memory; badness" in first
    assert "times in all, as it starts again" in first
    assert ": default/a (c) OOM-killed: the machine out of memory" in second
    assert ": default/web-0 (c) OOM-killed: the machine out of memory" in third


def test_each_of_several_may_have_its_own_rate_and_the_others_have_those_of_the_option(leaking):
    _, out, _ = leaking(*_grow("a=1Gi/s", "web-0"), "--rate", "64Mi/s", "--rate", "128Mi/s", "-o", "json")
    together = json.loads(out)["together"]
    rates = [[each["rateBytesPerSecond"] >> 20 for each in one["growing"]] for one in together]
    assert rates == [[1024, 64], [1024, 128]]
    _, out, _ = leaking(*_grow("a=1Gi/s", "web-0=3Mi/s"), "-o", "json")
    assert len(json.loads(out)["together"]) == 1
    _, out, _ = leaking(*_grow("a=1Gi/s"), "-o", "json")
    assert [each["rateBytesPerSecond"] for each in json.loads(out)["growths"]] == [1 << 30]


@pytest.mark.parametrize("name", ["web", "default/web", "deploy/web", "Deployment/web", "web:c"])
def test_a_workload_grows_with_all_its_pods(leaking, name):
    _, out, _ = leaking(*_grow(name), "--rate", "64Mi/s", "-o", "json")
    (together,) = json.loads(out)["together"]
    assert [each["pod"] for each in together["growing"]] == ["default/web-0", "default/web-1"]


def test_what_grows_beside_pods_does_not_die_and_every_pod_does_once(leaking):
    _, out, _ = leaking(*_grow("a", "system=1Gi/s"), "--rate", "1Mi/s", "-o", "json")
    assert len({pod for _, pod, _ in _deaths(out)}) == 30


def test_one_that_hardly_grows_changes_nothing_about_the_leak_of_another(leaking, tmp_path):
    (tmp_path / "kubelet").mkdir()
    config = tmp_path / "kubelet" / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {memory.available: 1Gi}\n"
    )
    options = ("--rate", "150Mi/s", "--kubelet-config", str(config), "-o", "json")
    (alone,) = json.loads(leaking(*_grow("a"), *options)[1])["growths"]
    (together,) = json.loads(leaking(*_grow("a", "other-1=1/s"), *options)[1])["together"]
    first = {order["deaths"][0]["by"]: 0.0 for order in together["orders"]}
    for order in together["orders"]:
        first[order["deaths"][0]["by"]] += order["probability"]
    assert 0 < alone["kubeletFirst"] < 1
    assert first["kubelet"] == pytest.approx(alone["kubeletFirst"], abs=0.1)


def test_a_leak_a_million_times_slower_than_another_is_not_waited_for(leaking):
    _, out, _ = leaking(*_grow("b=1Gi/s", "a=1Ki/s"))
    assert "(50 times in all, as it starts again)\n      default/a (c) runs on\n" in out


def test_several_as_csv_and_names(leaking):
    rows = list(csv.DictReader(io.StringIO(leaking(*_grow("a", "b"), "--rate", "64Mi/s", "-o", "csv")[1])))
    assert [(row["place"], row["victim"]) for row in rows] == [("1", "default/b"), ("2", "default/a")]
    assert leaking(*_grow("a", "b"), "--rate", "64Mi/s", "-o", "name")[1] == "pod/b\npod/a\n"


SEVERAL_BAD = {
    "unknown": (_grow("a", "nope", "wbe"), "--growing: no such pods: nope, wbe (one of default/a, default/b,"),
    "twice": (_grow("a", "a=1Mi/s"), "--growing: a is given twice"),
    "twice in other words": (_grow("a", "default/a"), "--growing: default/a is given twice"),
    "a workload and its pod": (_grow("web", "web-1"), "--growing: web-1 is given twice"),
    "a rate that is none": (_grow("a=fast", "b"), "--growing: 'fast' is not a valid rate"),
    "no rate": (_grow("a=", "b"), "--growing: '' is not a valid rate"),
    "a rate for nobody": ([*_grow("a=1Mi/s"), "--rate", "2Mi/s"], "--rate: nothing grows by it"),
    "settings": ([*_grow("a", "b"), "--win", "90"], "--win: this is computed for one growing container only"),
    "another chance": ([*_grow("a", "b"), "--win", "50"], "--win: this is computed for one"),
    "a curve": ([*_grow("a", "b"), "--svg", "x.svg"], "--svg: there is no curve of several"),
}


@pytest.mark.parametrize(("options", "message"), SEVERAL_BAD.values(), ids=SEVERAL_BAD)
def test_bad_input_about_several_is_one_line_too(leaking, options, message):
    code, out, err = leaking(*options)
    assert (code, out) == (2, "")
    assert message in err


def test_csv_has_a_line_per_outcome_and_probabilities_that_add_up(capsys):
    _, out, _ = _forecast(capsys, "--growing", "debug-tools", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    by_rate: dict[str, float] = {}
    for row in rows:
        by_rate[row["rate_bytes_per_second"]] = by_rate.get(row["rate_bytes_per_second"], 0) + float(row["probability"])
    assert [*by_rate.values()] == pytest.approx([1, 1, 1])


def test_the_curve_is_drawn_as_well_formed_svg(capsys, tmp_path):
    picture = tmp_path / "curve.svg"
    assert _forecast(capsys, "--growing", "log-collector", "--svg", str(picture))[0] == 0
    root = ET.fromstring(picture.read_text())  # noqa: S314 # our own file
    (line,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    assert len(line.attrib["points"].split()) == 14
    assert [path.name for path in tmp_path.iterdir()] == ["curve.svg"]


BAD = {
    "nobody grows": ([], "--growing: no growing pod given (one of batch/analytics-pipeline-0,"),
    "many pods": (["--growing", ":x"], " and 7 more, or system"),
    "no such pod": (["--growing", "log-colector"], "no such pod: log-colector (did you mean log-collector?)"),
    "no such container": (["--growing", "log-collector:x"], "has no container x (add one of them:"),
    "no rate": (["--growing", "log-collector", "--rate", "fast"], "--rate: 'fast'"),
    "no unit of time": (["--growing", "log-collector", "--rate", "1Gi/d"], "--rate: '1Gi/d' is not a valid rate"),
    "too slow": (["--growing", "log-collector", "--rate", "10/h"], "less than a byte per second"),
    "no percentage": (["--growing", "log-collector", "--win", "110"], "--win: '110' is not a percentage"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, options, message):
    code, out, err = _forecast(capsys, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_picture_that_cannot_be_written_is_the_machines_fault(capsys):
    code, out, err = _forecast(capsys, "--growing", "log-collector", "--svg", "/nowhere/x.svg")
    assert (code, out) == (3, "")
    assert "/nowhere/x.svg: No such file or directory" in err


def test_a_growth_that_memory_high_would_slow_is_assumed_to_be_as_stated(capsys, tmp_path):
    config = tmp_path / "kubelet.yaml"
    identity = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    for gate, is_said in (("true", True), ("false", False)):
        config.write_text(f"{identity}featureGates: {{MemoryQoS: {gate}}}\n")
        _, _, told = _forecast(capsys, "--growing", "log-collector", "--rate", "2Mi/s", "--kubelet-config", str(config))
        assert ("growth above memory.high: as stated" in told) == is_said
