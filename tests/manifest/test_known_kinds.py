"""Kinds that are probably misspelt get a suggestion; everything that may be somebody's gets none."""

from __future__ import annotations

import pytest

from podqos.manifest.known_kinds import KNOWN_KINDS, meant_kind

MISSPELT = {
    ("Deploymnt", "apps/v1"): "Deployment",
    ("Deployement", "apps/v1"): "Deployment",
    ("StatefullSet", "apps/v1"): "StatefulSet",
    ("CronJobs", "batch/v1"): "CronJob",
    ("configmap", "v1"): "ConfigMap",
    ("LimitRanges", "v1"): "LimitRange",
    ("PriorityClas", "scheduling.k8s.io/v1"): "PriorityClass",
    ("Servce", ""): "Service",
}


@pytest.mark.parametrize(("written", "meant"), MISSPELT.items(), ids=[kind for kind, _ in MISSPELT])
def test_a_misspelt_kind_of_kubernetes_is_recognised(written: tuple[str, str], meant: str):
    assert meant_kind(*written) == meant


@pytest.mark.parametrize("kind", sorted(KNOWN_KINDS))
def test_a_kind_of_kubernetes_is_not_misspelt(kind: str):
    assert meant_kind(kind, "v1") is None


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("Deploymnt", "example.com/v1"),
        ("ServiceMonitor", "monitoring.coreos.com/v1"),
        ("Rollout", "argoproj.io/v1"),
        ("Reaction", "v1"),
        ("Cluster", "kops.k8s.io/v1alpha2"),
    ],
)
def test_kinds_of_custom_groups_are_somebody_elses(kind: str, api_version: str):
    assert meant_kind(kind, api_version) is None


def test_a_kind_that_resembles_none_gets_no_suggestion():
    assert meant_kind("Zebra", "v1") is None
