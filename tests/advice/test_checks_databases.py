"""PQ126: a database that dies by its sidecar, while others are Guaranteed."""

from __future__ import annotations

import pytest

from advice.bundles import check_text
from podqos.advice.checks import examples

MAIN = examples.container("postgres", 'cpu: "2", memory: 8Gi', "memory: 12Gi")
EQUAL = examples.container("postgres", 'cpu: "2", memory: 8Gi', 'cpu: "2", memory: 8Gi')
SMALL = examples.container("exporter", "cpu: 50m, memory: 64Mi", "memory: 128Mi")
LARGE = examples.container("exporter", "cpu: 50m, memory: 8Gi", "memory: 12Gi")
NOTHING = examples.container("exporter")
GUARANTEED = examples.stateful_set("orders", EQUAL)
POD = examples.pod(MAIN.replace("image: postgres", "image: ghcr.io/acme/postgres:16@sha256:0"), SMALL, name="users")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(
            (examples.stateful_set("users", MAIN, SMALL), GUARANTEED), ["PQ126"], id="beside a Guaranteed one"
        ),
        pytest.param((POD, GUARANTEED), ["PQ126"], id="known by its image"),
        pytest.param((POD.replace("postgres:16", "web:16"), GUARANTEED), [], id="not a database"),
        pytest.param((examples.stateful_set("users", MAIN, SMALL),), [], id="no other is Guaranteed"),
        pytest.param((examples.stateful_set("users", MAIN, LARGE), GUARANTEED), [], id="the sidecar is as large"),
        pytest.param((examples.stateful_set("users", MAIN), GUARANTEED), [], id="no sidecar"),
        pytest.param((examples.stateful_set("users", MAIN, NOTHING), GUARANTEED), ["PQ121"], id="PQ121 tells"),
        pytest.param((examples.stateful_set("users", EQUAL, SMALL), GUARANTEED), ["PQ101"], id="PQ101 tells"),
    ],
)
def test_a_database_with_a_sidecar_that_dies_almost_first(texts, expected):
    found = [each.check for each in check_text(examples.documents(*texts)) if each.check != "PQ108"]

    assert found == expected


def test_the_finding_names_the_sidecar_its_score_and_the_one_that_is_guaranteed():
    text = examples.documents(examples.stateful_set("users", MAIN, SMALL), GUARANTEED)
    (finding,) = (each for each in check_text(text) if each.check == "PQ126")

    assert finding.facts.sentence("") == (
        "its sidecar exporter has an oom_score_adj of 999, and postgres one of 875, while orders is Guaranteed"
    )
    assert finding.path == "spec.template.spec.containers[1].resources"
