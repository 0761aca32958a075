"""``podqos thresholds`` as a user meets it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main

SCENARIO = Path(__file__).parents[2] / "scenarios" / "content-platform"
RECORDINGS = Path(__file__).parents[1] / "recordings" / "kubelet"


def thresholds(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command on a node of 64 GiB and return exit code, standard output and standard error."""
    code = main(["thresholds", "--node-memory", "64Gi", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_content_platforms_kubelet_explained(capsys):
    kubelet = SCENARIO / "node" / "kubelet.yaml"
    code, out, err = thresholds(capsys, "-f", kubelet, "--nodefs-capacity", "200Gi")
    assert (code, err) == (0, "")
    assert "memory.available        100Mi       500Mi       2m     –        Memory\n" in out
    assert "500Mi  soft threshold: reports pressure, evicts after 2 min" in out
    assert "nodefs.available        10%=20.0Gi  15%=30.0Gi  2m     –        Disk\n" in out
    order = [line.split("  ")[-1] for line in out.split("As memory.available falls")[1].splitlines()[1:5]]
    assert [line.split()[0] for line in order] == ["soft", "the", "the", "hard"]
    assert "100Mi is too low" in out


@pytest.fixture
def bar(capsys):
    """Return the lines of the bar: memory, what its parts are, the last part; and who acts there."""

    def of(*arguments: object, memory: str = "64Gi") -> list[str]:
        out = thresholds(capsys, *arguments, "--node-memory", memory)[1]
        lines = out.splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("Memory  "))
        falls = lines.index("As memory.available falls") + 1
        actors = [line[2:] for line in lines[falls:] if line.startswith("  ")]
        return [line.removeprefix("Memory").strip() for line in lines[start : start + 3]] + ["; ".join(actors)]

    return of


def test_memory_is_a_bar_of_reservations_allocatable_and_hard_eviction(bar):
    memory, parts, last, actors = bar("-f", SCENARIO / "node" / "kubelet.yaml")
    cells, _, size = memory.rpartition("  ")
    assert size == "64Gi"
    assert [cells.count(glyph) for glyph in "█▓▒"] == [1, 1, 1]
    assert (cells[:2], cells[-1], {*cells[2:-1]}) == ("█▓", "▒", {"░"})
    assert parts == "█ kube-reserved  ▓ system-reserved  ░ allocatable  ▒ hard eviction"
    ruler, _, size = last.partition("  ")
    assert (ruler.replace("─", ""), size) == ("SRKH", "last 1000Mi")
    assert ruler.index("S") == round((len(ruler) - 1) / 2)
    assert "K  325.0Mi  the kernel kills if nothing is left to reclaim; H    100Mi  hard threshold" in actors


@pytest.mark.parametrize(
    ("hard", "order"),
    [("memory.available<1Gi", "HRK"), ("memory.available<101Mi", "RHK"), ("memory.available<0.001%", "RKH")],
)
def test_the_last_part_of_memory_has_its_actors_in_order_also_where_they_are_close(bar, hard, order):
    _, _, last, _ = bar(f"--eviction-hard={hard}", memory="8Gi")
    assert last.partition("  ")[0].replace("─", "") == order


def test_svg_draws_the_bar_with_every_part_and_every_actor(capsys, tmp_path):
    file = tmp_path / "thresholds.svg"
    assert thresholds(capsys, "-f", SCENARIO / "node" / "kubelet.yaml", "--svg", file)[0] == 0
    drawn = re.findall(r"<text[^>]*>([^<]+)</text>", file.read_text())
    for words in (
        *("kube-reserved 2Gi", "system-reserved 2Gi", "allocatable 61340Mi", "hard eviction 100Mi"),
        *("500Mi: soft threshold", "390.5Mi: the kernel reclaims page cache", "325.0Mi: the kernel kills"),
        "100Mi: hard threshold",
    ):
        assert words in drawn


FLAGS = [
    "--eviction-hard=memory.available<1Gi,nodefs.available<10%",
    "--eviction-soft=memory.available<2Gi",
    "--eviction-soft-grace-period=memory.available=2m",
    "--enforce-node-allocatable=none",
]
CONFIGURATION = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 1Gi, nodefs.available: 10%}
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 2m}
enforceNodeAllocatable: [none]
"""
OKD = """\
kubeletArguments:
  eviction-hard: ["memory.available<1Gi,nodefs.available<10%"]
  eviction-soft: ["memory.available<2Gi"]
  eviction-soft-grace-period: ["memory.available=2m"]
  enforce-node-allocatable: ["none"]
"""


def test_file_flags_okd_and_configz_say_the_same(capsys, tmp_path):
    answers = [json.loads(thresholds(capsys, *FLAGS, "-o", "json")[1])]
    configz = json.dumps({"kubeletconfig": yaml.safe_load(CONFIGURATION)})
    for name, text in (("kubelet.yaml", CONFIGURATION), ("okd.yaml", OKD), ("configz.json", configz)):
        (tmp_path / name).write_text(text)
        answers.append(json.loads(thresholds(capsys, "-f", tmp_path / name, "-o", "json")[1]))
    assumed = [[each["what"] for each in answer.pop("assumptions")] for answer in answers]
    assert assumed[2] == ["rules for kubeletArguments (OpenShift 3)", *assumed[0]]
    first, *rest = answers
    assert first["thresholds"]
    assert first["allocatable"]
    assert all(answer == first for answer in rest)


def test_a_recorded_kubelets_configuration_is_read(capsys, tmp_path):
    (tmp_path / "configz.json").write_bytes(gzip.decompress((RECORDINGS / "configz.json.gz").read_bytes()))
    code, out, _ = thresholds(capsys, "-f", tmp_path / "configz.json", "-o", "json")
    assert code == 0
    assert json.loads(out)["thresholds"]


def test_without_settings_the_defaults_are_explained(capsys):
    whole = json.loads(thresholds(capsys, "-o", "json")[1])
    values = {each["signal"]: each["value"] for each in whole["thresholds"] if not each["isDerived"]}
    assert values == {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
    }
    older = json.loads(thresholds(capsys, "-o", "json", "--kubernetes-version", "1.29")[1])
    assert "imagefs.inodesFree" not in {each["signal"] for each in older["thresholds"]}


def test_capacities_make_amounts_of_shares(capsys):
    options = ["--nodefs-capacity", "100Gi", "--nodefs-inodes", "1000", "--layout", "dedicated"]
    whole = json.loads(thresholds(capsys, *options, "-o", "json")[1])
    amounts = {each["signal"]: each["amount"] for each in whole["thresholds"]}
    assert amounts["nodefs.inodesFree"] == 50
    assert amounts["imagefs.available"] is None  # another filesystem, of which nothing was said
    single = json.loads(thresholds(capsys, "--nodefs-capacity", "100Gi", "-o", "json")[1])
    assert {each["signal"]: each["amount"] for each in single["thresholds"]}["imagefs.available"] is not None


WRONG = {
    "soft after hard": (
        ["--eviction-hard=memory.available<1Gi,nodefs.available<10%", "--eviction-soft=memory.available<500Mi",
         "--eviction-soft-grace-period=memory.available=1m"],
        "SoftAfterHard",
    ),
    "nothing watches a disk": (["--eviction-hard=memory.available<1Gi"], "DiskUnwatched"),
    "nothing watches memory": (["--eviction-hard=nodefs.available<10%"], "MemoryUnwatched"),
    "swap": (
        ["--eviction-hard=memory.available<1Gi,nodefs.available<10%", "--fail-swap-on=false",
         "--kubernetes-version=1.27"],
        "SwapHidesPressure",
    ),
    "too late": (["--eviction-hard=memory.available<100Mi,nodefs.available<10%"], "TooLate"),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "kind"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_and_strict_makes_it_a_finding(capsys, flags, kind):
    code, out, _ = thresholds(capsys, *flags, "-o", "json")
    (warning,) = json.loads(out)["warnings"]
    assert (code, warning["kind"]) == (0, kind)
    assert warning["text"] in thresholds(capsys, *flags)[1]
    assert thresholds(capsys, *flags, "--fail-on", "warning")[0] == 1


def test_nothing_wrong_is_said_too(capsys):
    code, out, _ = thresholds(capsys, *FLAGS, "--system-reserved=memory=3Gi", "--fail-on", "warning")
    assert code == 0
    assert out.splitlines()[0] == "No warnings."


def test_csv_has_a_row_per_threshold(capsys):
    rows = list(csv.DictReader(io.StringIO(thresholds(capsys, *FLAGS, "-o", "csv")[1])))
    assert [(row["signal"], row["type"], row["amount"]) for row in rows[:2]] == [
        ("memory.available", "soft", str(2 << 30)),
        ("memory.available", "hard", str(1 << 30)),
    ]


def test_a_soft_threshold_that_no_reservation_covers_is_wrong(capsys, tmp_path):
    """Pods that the scheduler was right to place would be evicted; 002's kubelet reserves enough."""
    (tmp_path / "kubelet.yaml").write_text(CONFIGURATION)
    warnings = json.loads(thresholds(capsys, "-f", tmp_path / "kubelet.yaml", "-o", "json")[1])["warnings"]
    assert [warning["kind"] for warning in warnings] == ["SoftNotCovered"]
    assert "63Gi, but cross the soft threshold at 62Gi: add 2Gi to systemReserved" in warnings[0]["text"]
    (tmp_path / "kubelet.yaml").write_text(CONFIGURATION + "systemReserved: {memory: 3Gi}\n")
    assert not json.loads(thresholds(capsys, "-f", tmp_path / "kubelet.yaml", "-o", "json")[1])["warnings"]


def test_the_pods_cgroup_is_as_large_as_the_reservations_leave_it(capsys, tmp_path):
    text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nsystemReserved: {memory: 4Gi}\n"
    (tmp_path / "kubelet.yaml").write_text(text + "evictionHard: {memory.available: 10%}\n")
    whole = json.loads(thresholds(capsys, "-f", tmp_path / "kubelet.yaml", "-o", "json")[1])
    amounts = {each["signal"]: each["amount"] for each in whole["thresholds"]}
    assert amounts["allocatableMemory.available"] == pytest.approx(6 << 30, rel=1e-6)


BAD = {
    "both": ([*FLAGS, "-f", "kubelet.yaml"], "-f and --enforce-node-allocatable cannot be combined"),
    "unknown signal": (["--eviction-hard=memory.availabel<1Gi"], "did you mean memory.available?"),
    "soft without grace": (["--eviction-soft=memory.available<1Gi"], "grace period must be specified"),
    "malformed": (["--eviction-hard=memory.available"], "malformed pair"),
    "in a file": (["-f", "broken.yaml"], "broken.yaml:3:16: evictionHard[memory.available]: "),
    "misspelt": (
        ["-f", "misspelt.yaml"],
        "misspelt.yaml:3:1: evictionHrad: unknown field (did you mean evictionHard?)",
    ),
    "more than there is": (["-f", "greedy.yaml"], "greedy.yaml: 70Gi of memory is withheld from pods"),
    "not a configuration": (["-f", "pod.yaml"], "pod.yaml: contains no kubelet configuration"),
    "broken YAML": (["-f", "torn.yaml"], "torn.yaml:"),
    "missing": (["-f", "missing.yaml"], "missing.yaml: No such file"),
    "capacity": (["--nodefs-capacity", "big"], "--nodefs-capacity"),
    "cores": (["--node-cpu", "0"], "--node-cpu: must be above zero, not 0"),
    "a flag": (["--system-reserved=memory=lots"], "--system-reserved: 'lots': quantities must match"),
    "two": (["-f", "two.yaml"], "two.yaml: contains 2 kubelet configurations"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    Path("kubelet.yaml").write_text(CONFIGURATION)
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    Path("broken.yaml").write_text(head + "evictionHard: {memory.available: lots}\n")
    Path("misspelt.yaml").write_text(head + "evictionHrad: {memory.available: 1Gi}\n")
    Path("greedy.yaml").write_text(head + "evictionHard: {}\nsystemReserved: {memory: 70Gi}\n")
    Path("pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    Path("two.yaml").write_text(f"{CONFIGURATION}---\n{OKD}")
    Path("torn.yaml").write_text("kind: {\n")
    code, out, err = thresholds(capsys, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("soft", "actor"),
    [
        pytest.param((), "so only the kernel acts", id="none"),
        pytest.param(
            ("--eviction-soft", "memory.available<2Gi", "--eviction-soft-grace-period", "memory.available=30s"),
            "so only the soft threshold acts before the kernel",
            id="soft",
        ),
    ],
)
def test_without_a_hard_threshold_the_soft_one_is_what_acts_before_the_kernel(capsys, soft, actor):
    _, out, _ = thresholds(capsys, "--eviction-hard", "nodefs.available<10%", *soft)
    assert f"no hard threshold for memory, {actor} (" in out
    assert ("The kubelet always acts before the kernel" in out) == bool(soft)
