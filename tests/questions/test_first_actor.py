"""Kubelet or kernel first: every command that answers it says what ``forecast`` says, on drawn nodes."""

from __future__ import annotations

import json
import random

import pytest

from podqos.cli.main import main

MI, GI = 1 << 20, 1 << 30
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n"
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
DRAWN = range(14)


class Drawn:
    """A node, its kubelet and a growth rate, and the commands that are asked about them."""

    def __init__(self, seed: int, directory, capsys) -> None:
        chance = random.Random(seed)  # noqa: S311
        self.memory_bytes = chance.choice((4, 8, 16, 64, 128)) * GI
        self.hard_bytes = chance.choice((100, 100, 500, chance.randrange(1, 2000))) * MI
        self.reserved_bytes = chance.choice((0, 0, 200, 1024, chance.randrange(1, 1500))) * MI
        self.system_bytes = chance.choice((0, self.reserved_bytes, chance.randrange(1 + 2 * self.reserved_bytes)))
        self.rate = chance.choice((1, 10, 50, 50, 200)) * MI
        self._directory, self._capsys = directory, capsys
        (directory / "pod.yaml").write_text(POD)
        (directory / "usage.csv").write_text(f"pod,memory\na,{chance.randrange(64, 512)}Mi\n")
        reserved = f"systemReserved: {{memory: '{self.reserved_bytes}'}}\n" if self.reserved_bytes else ""
        soft = "evictionSoft: {memory.available: 2Gi}\nevictionSoftGracePeriod: {memory.available: 30s}\n"
        hard = "" if seed == 0 else f"evictionHard: {{memory.available: '{self.hard_bytes}'}}\n"
        self.kubelet = HEAD + hard + reserved + (soft if chance.random() < 0.3 and self.memory_bytes > 4 * GI else "")
        self.config = self.write("kubelet.yaml", self.kubelet)

    def write(self, name: str, text: str) -> str:
        (self._directory / name).write_text(text)
        return str(self._directory / name)

    def asked(self, *words: object) -> dict:
        assert main([*map(str, words), "-o", "json"]) == 0
        return json.loads(self._capsys.readouterr().out)

    def sizes(self, system_bytes: int) -> tuple[object, ...]:
        used = ("--system-memory", system_bytes) if system_bytes else ()
        return ("--node-memory", self.memory_bytes, *used)

    def on_node(self, command: str, config: str, system_bytes: int, *words: object) -> dict:
        node = (*self.sizes(system_bytes), "--kubelet-config", config)
        files = ("-f", self._directory / "pod.yaml", "--usage", self._directory / "usage.csv")
        return self.asked(command, *files, *node, *words)

    def forecast(self, rate: int, *, config: str = "", system_bytes: int = 0) -> dict:
        words = ("--growing", "a", "--rate", f"{rate}/s", "--win", "100")
        return self.on_node("forecast", config or self.config, system_bytes, *words)["growths"][0]

    def with_hard(self, amount: int) -> str:
        lines = [line for line in self.kubelet.splitlines() if not line.startswith("evictionHard")]
        return self.write("tried.yaml", "\n".join([*lines, f"evictionHard: {{memory.available: '{amount}'}}", ""]))


@pytest.fixture(params=DRAWN)
def node(request, tmp_path, capsys):
    return Drawn(request.param, tmp_path, capsys)


def test_the_growth_that_thresholds_calls_sure_is_where_forecast_begins_to_lose(node):
    sure = node.asked("thresholds", "-f", node.config, *node.sizes(node.system_bytes))["sureGrowth"]
    for rate, system_bytes in (
        (sure["bytesPerSecond"], node.system_bytes),
        (sure["reservedInUseBytesPerSecond"], sure["reservedBytes"]),
    ):
        if rate is not None:
            assert node.forecast(rate, system_bytes=system_bytes)["kubeletFirst"] == 1
        assert node.forecast((rate or 0) + 1, system_bytes=system_bytes)["kubeletFirst"] < 1


def test_check_warns_where_forecast_loses_and_its_threshold_is_the_one_that_forecast_needs(node):
    options = node.write("podqos.yaml", f"options: {{growthPerSecond: '{node.rate}'}}\n")
    words = ("--node-memory", node.memory_bytes, "--config-file", options, "--fail-on", "never")
    items = node.asked("check", node.config, *words)["items"]
    found = next((each for each in items if each["check"] == "PQ404"), None)
    truth = node.forecast(node.rate)
    assert (found is None) == (truth["kubeletFirst"] == 1)
    if found is None:
        return
    facts = found["facts"]
    assert facts["kubeletFirst"] == pytest.approx(truth["kubeletFirst"], abs=1e-9)
    assert facts["neededBytes"] == truth["needed"]["evictionHardBytes"]
    kernel = 1 - truth["kubeletFirst"]
    likely = f"in {min(99, max(1, round(kernel * 100)))}% of cases"
    said = "always kills before the kubelet evicts" if kernel == 1 else f"kills before the kubelet evicts {likely}"
    assert f"the kernel {said}" in found["reason"]
    if not found["patch"]["isComplete"]:
        return
    # The fix is tried as it is written: it wins whatever the system uses.
    (edit,) = (each for each in found["patch"]["edits"] if "memory.available" in each["path"])
    tried = node.with_hard(edit["value"])
    for system_bytes in (0, node.reserved_bytes):
        assert node.forecast(node.rate, config=tried, system_bytes=system_bytes)["kubeletFirst"] == 1


def test_the_kubelet_that_advise_writes_is_first_as_often_as_it_says(node):
    chance = random.Random(node.memory_bytes + node.rate).choice((0.3, 0.9, 1))  # noqa: S311
    words = ("--node-memory", node.memory_bytes, "--node-cpu", 8, "--growth", node.rate, "--probability", chance)
    if main(list(map(str, ("thresholds", "--advise", *words)))):
        return  # refused: it would withhold more than half of the node
    node._capsys.readouterr()
    advice = node.asked("thresholds", "--advise", *words)["node"]
    hard_only = {key: value for key, value in advice["configuration"].items() if "Soft" not in key}
    config = node.write("advised.yaml", json.dumps(hard_only))
    sure = node.asked("thresholds", "-f", config, "--node-memory", node.memory_bytes)["sureGrowth"]
    truth = node.forecast(node.rate, config=config, system_bytes=sure["reservedBytes"])
    assert truth["kubeletFirst"] == pytest.approx(advice["hardWins"], abs=1e-9)
    assert truth["kubeletFirst"] >= chance


def test_what_rank_has_left_for_kubelet_and_kernel_is_what_forecast_uses_up(node):
    left = node.on_node("rank", node.config, node.system_bytes)["node"]
    truth = node.forecast(MI, system_bytes=node.system_bytes)
    assert left["kernelLeftBytes"] == pytest.approx(truth["outOfMemoryAfterSeconds"] * MI, abs=1)
    assert left["kernelFirst"] == (node.forecast(1, system_bytes=node.system_bytes)["kubeletFirst"] == 0)
    first = min(each["crossedAfterSeconds"] for each in truth["thresholds"])
    assert max(0, left["headroom"]["headroomBytes"]) == pytest.approx(first * MI, abs=1)


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_huge_pages_count_for_check_as_for_forecast(tmp_path, capsys, version):
    """Up to 1.36 they seem to be available, and the kubelet waits for memory that is not there."""
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: w}\nstatus: {capacity: {memory: 16Gi, hugepages-2Mi: 1Gi}}\n"
    (tmp_path / "all.yaml").write_text(f"{node}---\n{HEAD}evictionHard: {{memory.available: 500Mi}}\n---\n{POD}")
    words = ["-f", str(tmp_path / "all.yaml"), "--kubernetes-version", version, "-o", "json"]
    assert main(["forecast", *words, "--growing", "a", "--rate", "50Mi/s", "--win", "100"]) == 0
    (truth,) = json.loads(capsys.readouterr().out)["growths"]
    assert main(["check", *words, "--fail-on", "never"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    (facts,) = (each["facts"] for each in items if each["check"] == "PQ404")
    assert facts["kubeletFirst"] == pytest.approx(truth["kubeletFirst"])
    assert facts["neededBytes"] == truth["needed"]["evictionHardBytes"]
