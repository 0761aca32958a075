"""A kubelet that does not start with its settings is an error in every command that reads them, in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.cli.main import main

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
SETTINGS = {
    "soft without grace": (
        "evictionSoft: {memory.available: 1Gi}\n",
        (
            "evictionSoft[memory.available]: grace period must be specified for the soft eviction threshold "
            "memory.available: the kubelet does not start"
        ),
    ),
    "negative": (
        "evictionHard: {memory.available: -1Gi}\n",
        (
            "evictionHard[memory.available]: eviction threshold memory.available must be positive: -1Gi: "
            "the kubelet does not start"
        ),
    ),
    "nothing to enforce on": (
        "cgroupsPerQOS: false\n",
        (
            "enforceNodeAllocatable: without cgroupsPerQOS there are no cgroups to enforce it on: "
            "the kubelet does not start"
        ),
    ),
}
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - {name: web, image: web, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}}
"""
AMONG_FILES = ("admit", "advise", "blast", "cpu", "explain", "forecast", "place", "rank")


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(POD)
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()


def errors(capsys, *arguments: str) -> str:
    """Return what a command that fails says about it."""
    assert main([*arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(("settings", "message"), SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("command", AMONG_FILES)
def test_among_the_files_it_is_an_error_in_every_command(capsys, command, settings, message):
    Path("kubelet.yaml").write_text(HEAD + settings)

    said = errors(capsys, command, "-f", "pod.yaml", "-f", "kubelet.yaml")
    assert "kubelet.yaml" in said
    assert message in said


@pytest.mark.parametrize(("settings", "message"), SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("command", ["blast", "cpu", "explain", "forecast", "place", "rank"])
def test_as_an_option_it_is_an_error_in_every_command(capsys, command, settings, message):
    Path("kubelet.yaml").write_text(HEAD + settings)

    assert message in errors(capsys, command, "-f", "pod.yaml", "--kubelet-config", "kubelet.yaml")


@pytest.mark.parametrize(("settings", "message"), SETTINGS.values(), ids=SETTINGS)
def test_so_it_is_in_thresholds_drift_and_simulate(capsys, settings, message):
    for name in ("kubelet.yaml", "new/kubelet.yaml"):
        Path(name).write_text(HEAD + settings)
    for name in ("old/pod.yaml", "new/pod.yaml"):
        Path(name).write_text(POD)
    Path("scenario.yaml").write_text(
        "apiVersion: podqos.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec:\n  duration: 10s\n"
        "  nodes: [{name: n1, capacity: {cpu: 4, memory: 8Gi}, kubelet: kubelet.yaml}]\n"
        "  manifests: [pod.yaml]\n"
    )

    assert message in errors(capsys, "thresholds", "-f", "kubelet.yaml")
    assert message in errors(capsys, "drift", "old", "new")
    assert message in errors(capsys, "simulate", "scenario.yaml")


def test_one_of_several_is_an_error_though_none_of_them_is_used(capsys):
    Path("good.yaml").write_text(f"{HEAD}evictionHard: {{memory.available: 1Gi}}\n")
    settings, message = SETTINGS["negative"]
    Path("kubelet.yaml").write_text(HEAD + settings)

    assert message in errors(capsys, "rank", "-f", "pod.yaml", "-f", "good.yaml", "-f", "kubelet.yaml")


def test_one_that_reserves_more_than_there_is_says_the_same_in_check(capsys):
    Path("kubelet.yaml").write_text(f"{HEAD}systemReserved: {{memory: 90Gi}}\n")
    message = "92260Mi of memory is withheld from pods, but the node has only 64Gi: the kubelet does not start"

    assert message in errors(capsys, "rank", "-f", "pod.yaml", "-f", "kubelet.yaml")
    assert main(["check", "pod.yaml", "kubelet.yaml"]) == 1
    assert message in capsys.readouterr().out
