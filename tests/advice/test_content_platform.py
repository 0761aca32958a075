"""The story of the content platform: what a check before the incident would have said."""

from __future__ import annotations

from pathlib import Path

import pytest

from advice.bundles import check_text
from podqos.model.pod import QOSClass

SCENARIO = Path(__file__).resolve().parents[2] / "scenarios/content-platform"


def text_of(*patterns: str, without: str = "") -> str:
    """Return the manifests of the scenario, one after the other."""
    files = [file for pattern in patterns for file in sorted(SCENARIO.glob(pattern))]
    return "---\n".join(file.read_text() for file in files if file.name != without)


@pytest.fixture(scope="module")
def before():
    """Return the findings about the platform as it was, by object and check."""
    text = text_of("platform/*.yaml", without="article-service.yaml")
    text += "---\n" + text_of("accidental/article-service-logging.yaml", "accidental/limit-range.yaml", "node/*.yaml")
    return {(finding.subject.key, finding.check): finding for finding in check_text(text)}


def test_a_logging_sidecar_makes_the_article_service_die_before_the_batch_jobs(before):
    """It was evicted before the analytics jobs, because nobody had given the sidecar limits."""
    finding = before["production/article-service", "PQ101"]

    assert finding.container == "logging-sidecar"
    assert finding.facts.in_order == ("article-service",)
    assert (finding.consequence.now.qos_class, finding.consequence.repaired.qos_class) == (
        QOSClass.BURSTABLE,
        QOSClass.GUARANTEED,
    )
    assert finding.consequence.evicted_before == "batch/analytics-pipeline"


def test_nobody_had_given_out_priorities(before):
    finding = before["production/article-service", "PQ301"]

    assert (finding.facts.priority, finding.facts.higher_priority) == (0, 1_000_000)
    assert finding.patch.candidates[0] == "latency-critical"


def test_the_limit_range_trap_changes_pods_that_nobody_touched(before):
    for key in ("monitoring/log-collector", "monitoring/debug-tools"):
        facts = before[key, "PQ201"].facts
        assert (facts.before, facts.after) == (QOSClass.BEST_EFFORT, QOSClass.BURSTABLE)
        assert facts.sources == ("default-limits",)


def test_the_kernel_is_first_when_memory_goes_fast(before):
    """In the incident a job took 6 GB in a second; the kubelet looks every ten, and 64Gi end 325Mi early."""
    finding = before["", "PQ404"]

    assert finding.facts.kubelet_first == 0
    assert finding.facts.needed_bytes == 825 << 20


def test_the_repaired_service_is_guaranteed_and_only_lacks_its_priority():
    text = text_of("platform/*.yaml", without="article-service.yaml")
    text += "---\n" + text_of("accidental/article-service-fixed.yaml")
    found = [
        each.check for each in check_text(text) if each.subject.name == "article-service" and each.check != "PQ108"
    ]

    assert found == ["PQ301"]


def test_the_platform_as_it_is_now_has_only_its_helpers_warned_of():
    """The two BestEffort helpers are on purpose; nothing else is worse than worth knowing."""
    found = {
        (each.subject.name, each.check) for each in check_text(text_of("platform/*.yaml")) if each.severity != "info"
    }

    assert found == {("log-collector", "PQ103"), ("debug-tools", "PQ102")}
