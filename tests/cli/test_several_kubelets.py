"""Commands about a node ask which of several kubelet configurations is meant, and take none by themselves."""

from pathlib import Path

import pytest

from podqos.cli.main import main

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i}]}\n"
KUBELET = (
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {memory.available: %s}\n"
)
COMMANDS = [
    ("rank",),
    ("forecast", "--growing", "system"),
    ("blast",),
    ("place", "--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("all").mkdir()
    Path("all/pod.yaml").write_text(POD)


def write(**thresholds):
    for name, threshold in thresholds.items():
        Path(f"all/{name}.yaml").write_text(KUBELET % threshold)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_several_configurations_are_named_with_the_option_that_chooses_one(capsys, command):
    write(blue="1Gi", green="2Gi")
    assert main([*command, "-f", "all"]) == 2
    said = "2 different kubelet configurations: in all/blue.yaml, all/green.yaml"
    assert f"{said} (keep one of them, or choose it with --kubelet-config all/blue.yaml)" in capsys.readouterr().err
    assert main([*command, "-f", "all", "--kubelet-config", "all/green.yaml"]) in {0, 1}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_equal_configurations_are_one(capsys, command):
    write(blue="1Gi", green="1Gi")
    assert main([*command, "-f", "all"]) in {0, 1}
    assert "kubelet settings: defaults" not in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_two_in_one_file_cannot_be_chosen_by_its_name(capsys, command):
    Path("all/both.yaml").write_text(KUBELET % "1Gi" + "---\n" + KUBELET % "2Gi")
    assert main([*command, "-f", "all"]) == 2
    assert "in all/both.yaml (keep one of them, or choose it with --kubelet-config FILE)" in capsys.readouterr().err
