from __future__ import annotations

import pytest

from conformance.compare import difference, vectors
from podqos.cli.families import evaluate


def test_every_vector_of_the_family_agrees():
    """Upstream's recorded answers, all of them."""
    wrong = {
        line["id"]: found
        for line in vectors("cgroup")
        if (found := difference(line["expected"], evaluate("cgroup", line["input"]))) is not None
    }
    assert wrong == {}


def test_nothing_is_answered_that_the_kubelet_leaves_unset():
    """A key too many would be a limit that no kubelet sets."""
    for line in vectors("cgroup"):
        if line["input"]["kind"] == "pod":
            answer = evaluate("cgroup", line["input"])
            assert answer["pod"].keys() == line["expected"]["pod"].keys(), line["id"]
            for name, expected in line["expected"]["containers"].items():
                assert answer["containers"][name]["unified"] == expected["unified"], line["id"]


@pytest.mark.parametrize(
    ("milli", "period", "weight", "expected"),
    [
        pytest.param(0, 100_000, 1, (2, 1, 1, 0, 2, 0, 2), id="nothing requested, no limit"),
        pytest.param(1, 100_000, 2, (2, 1, 1, 1000, 2, 10, 28), id="one milli: minimum share and quota"),
        pytest.param(250, 50_000, 245, (256, 10, 35, 12_500, 250, 250, 6398), id="a quarter, shorter period"),
        pytest.param(
            1000, 100_000, 39, (1024, 39, 100, 100_000, 1000, 1000, 998), id="one CPU is the kernel's default"
        ),
        pytest.param(
            256_000, 100_000, 10_000, (262_144, 10_000, 10_000, 25_600_000, 256_000, 256_000, 262_144), id="the most"
        ),
        pytest.param(
            1_000_000, 1000, 10_000, (262_144, 10_000, 10_000, 1_000_000, 256_000, 1_000_000, 262_144), id="beyond"
        ),
    ],
)
def test_conversions(milli, period, weight, expected):
    """Figures worked out by hand from the formulas; weights 2, 245 and 10000 are upstream's own examples."""
    keys = (
        "cpuShares",
        "cpuWeightLinear",
        "cpuWeightQuadratic",
        "cpuQuota",
        "milliCPUFromShares",
        "milliCPUFromQuota",
        "sharesFromWeight",
    )
    answer = evaluate("cgroup", {"kind": "convert", "milliCPU": milli, "cpuPeriod": period, "cpuWeight": weight})
    assert answer == dict(zip(keys, expected, strict=True))


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="unknown kind 'node'"):
        evaluate("cgroup", {"kind": "node"})
