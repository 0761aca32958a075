"""A kubelet's file with mistakes: all of them at once, each with its place and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.cli.main import main

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
GOOD = "kubeReserved: {memory: 1Gi}\nsystemReserved: {memory: 3Gi}\n"
MEANT = {
    "a duration in seconds": ("evictionPressureTransitionPeriod: 300", "300s or 5m"),
    "in quotes": ('evictionPressureTransitionPeriod: "300"', "300s or 5m"),
    "of a soft threshold": ("evictionSoftGracePeriod: {memory.available: 90}", "90s"),
    "a short one": ("cpuCFSQuotaPeriod: 100", "such as 100ms"),
    "of a nested field": ("crashLoopBackOff: {maxContainerRestartPeriod: 60}", "60s or 1m"),
    "one that is not modelled": ("shutdownGracePeriod: 30", "30s"),
    "a number in quotes": ('maxPods: "110"', "write 110, without quotes"),
    "seconds with their unit": ("evictionMaxPodGracePeriod: 30s", "write 30"),
    "a share as a factor": ("memoryThrottlingFactor: 90%", "write 0.9"),
    "truth in quotes": ('failSwapOn: "false"', "write false, without quotes"),
    "memory without a unit": ("kubeReserved: {memory: 512}", "such as 512Mi"),
    "cores": ("kubeReserved: {cpu: 1}", 'put it in quotes: "1"'),
    "bytes": ("kubeReserved: {memory: 1073741824}", 'put it in quotes: "1073741824"'),
    "a threshold without a unit": ("evictionHard: {memory.available: 10}", "such as 10Mi or 10%"),
    "a share": ("qosReserved: {memory: 50}", "write 50%"),
    "a list for a map": ("evictionHard: [memory.available<1Gi]", "write {memory.available: 1Gi}"),
    "a flag for a map": ("evictionHard: memory.available<1Gi", "write {memory.available: 1Gi}"),
    "a text for a list": ("enforceNodeAllocatable: pods", "write [pods]"),
    "null in a map": ("evictionHard: {memory.available: null}", "write a value, or remove it"),
    "a unit of programs": ("kubeReserved: {memory: 1GiB}", "did you mean 1Gi?"),
    "a misspelt field": ("evictionHrad: {}", "did you mean evictionHard?"),
}
SEVERAL = """\
evictionPressureTransitionPeriod: 300
kubeReserved: {memory: 512, cpu: 100mi}
evictionHard: {memory.available: 5GB}
evictionSoft: {nodefs.available: 20%}
maxPods: "110"
"""
PLACES = ("3:1", "4:16", "4:29", "5:16", "6:16", "7:1")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def kubelet(text: str) -> None:
    Path("kubelet.yaml").write_text(HEAD + text)


@pytest.mark.parametrize(("text", "meant"), MEANT.values(), ids=MEANT)
@pytest.mark.parametrize("command", ["check", "thresholds"])
def test_the_suggestion_is_one_that_the_kubelet_takes(capsys, command, text, meant):
    kubelet(f"{text}\n")
    assert main([command, "kubelet.yaml"]) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if "kubelet.yaml:3:" in line]
    assert meant in error


@pytest.mark.parametrize("command", ["check", "thresholds"])
def test_all_mistakes_are_reported_at_once_with_their_places(capsys, command):
    kubelet(SEVERAL)
    assert main([command, "kubelet.yaml"]) == 2
    lines = [line.removeprefix("podqos: error: ") for line in capsys.readouterr().err.splitlines()]
    found = [line.split(": ")[0] for line in lines if line.startswith("kubelet.yaml:")]
    assert found == [f"kubelet.yaml:{place}" for place in PLACES]


def test_all_with_which_it_does_not_start_are_findings(capsys):
    kubelet(
        f"{GOOD}evictionHard: {{memory.available: 5GB, nodefs.available: 120%}}\nevictionSoft: {{pid.available: 1k}}\n"
    )
    assert main(["check", "kubelet.yaml"]) == 1
    out = capsys.readouterr().out
    assert [out.count(check) for check in ("error PQ412", "error PQ403")] == [2, 1]


def test_what_could_not_be_read_is_said_instead_of_no_findings(capsys):
    kubelet("maxPods: many\n")
    assert main(["check", "kubelet.yaml"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "not checked, or not all of it: kubelet.yaml" in said.err
    Path("good.yaml").write_text(f"{HEAD}{GOOD}evictionHard: {{memory.available: 1Gi, nodefs.available: 10%}}\n")
    assert main(["check", "kubelet.yaml", "good.yaml"]) == 2
    assert capsys.readouterr().out.startswith("no findings in what could be read; 1 object in 1 file checked")


@pytest.mark.parametrize(
    ("hard", "is_found"),
    [
        ("{memory.available: 1Gi}", True),
        ("{memory.available: 1Gi, pid.available: 10%}", True),
        ("{memory.available: 1Gi, nodefs.available: 10%}", False),
        ('{memory.available: 1Gi, nodefs.available: "0%"}', False),
        ("{memory.available: 1Gi}\nmergeDefaultEvictionSettings: true", False),
        ("null", False),
    ],
)
def test_thresholds_of_memory_only_drop_those_of_disks(capsys, hard, is_found):
    kubelet(f"{GOOD}evictionHard: {hard}\n")
    main(["check", "kubelet.yaml", "--node-memory", "16Gi"])
    assert ("PQ415 no-disk-threshold" in capsys.readouterr().out) is is_found
    code = main(["thresholds", "kubelet.yaml", "--node-memory", "16Gi", "--fail-on", "warning"])
    assert ("no threshold for disk space" in capsys.readouterr().out) is is_found
    assert code == 1 or not is_found


@pytest.mark.parametrize(("version", "is_warned"), [("1.36", True), ("1.37", False)])
@pytest.mark.parametrize("command", ["check", "rank", "explain", "place", "thresholds"])
def test_memory_qos_is_on_in_1_37(capsys, command, version, is_warned):
    kubelet(f"{GOOD}memoryReservationPolicy: TieredReservation\n")
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n"
    Path("pod.yaml").write_text(pod)
    files = ["kubelet.yaml"] if command == "thresholds" else ["-f", "pod.yaml", "-f", "kubelet.yaml"]
    main([command, *files, "--kubernetes-version", version])
    assert ("has no effect without featureGates.MemoryQoS" in capsys.readouterr().err) is is_warned


@pytest.mark.parametrize("amount", ["256Gib", "256GiB", "256 Gi", "256GB", "256gi"])
def test_an_option_takes_what_kubernetes_reads_and_suggests_it_for_the_rest(capsys, amount):
    kubelet(GOOD)
    for command in ("check", "thresholds"):
        assert main([command, "kubelet.yaml", "--node-memory", amount]) == 2
        assert f"--node-memory: '{amount}' is not a valid quantity (did you mean 256Gi" in capsys.readouterr().err
