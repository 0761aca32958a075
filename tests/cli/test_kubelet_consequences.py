"""What follows from a kubelet's settings: `check` says that the kernel kills first only where it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.cli.main import main

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
SOFT = (
    "evictionHard: {memory.available: 5%}\n"
    "evictionSoft: {memory.available: 10%}\n"
    "evictionSoftGracePeriod: {memory.available: 30s}\n"
)
KERNEL = "the kernel"


@pytest.fixture
def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "kubelet.yaml"

    def check(settings: str, *options: str) -> str:
        path.write_text(KUBELET + settings)
        main(["check", str(path), "--node-memory", "64Gi", *options])
        return capsys.readouterr().out

    return check


def test_where_the_kubelet_is_first_no_finding_says_that_the_kernel_chooses(checked):
    text = checked(SOFT)
    assert "PQ405" in text
    assert "PQ406" in text
    assert KERNEL not in text


def test_that_the_kernel_kills_first_is_the_headline_however_many_settings_are_wrong(checked):
    headline = checked("enforceNodeAllocatable: [none]\n").splitlines()[0]
    assert headline.endswith("the kernel acts before the kubelet every time, unless memory.available is at least 825Mi")


@pytest.mark.parametrize("check", ["PQ402", "PQ405", "PQ406", "PQ408", "PQ409"])
def test_a_setting_that_does_not_decide_who_acts_first_names_no_victim_of_the_kernel(checked, check):
    soft = "evictionSoft: {memory.available: 5Gi}\nevictionSoftGracePeriod: {memory.available: 30s}\n"
    settings = {
        "PQ402": "evictionHard: {memory.available: 5Gi}\n" + soft,
        "PQ405": soft,
        "PQ408": "enforceNodeAllocatable: [none]\n",
        "PQ409": "evictionHard: {memory.available: 1Gi}\nevictionMinimumReclaim: {memory.available: 16Gi}\n",
    }
    (found, *_) = (
        each for each in json.loads(checked(settings.get(check, ""), "-o", "json"))["items"] if each["check"] == check
    )
    assert not found["consequence"]
