"""Source 000 through the command: what a reader of "Pod QoS, Quality of Service Classes" would type."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.cli.main import main

# The document's simple example.
THREE_PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: pod1}
spec: {containers: [{name: app, image: app:1, resources: {limits: {cpu: 1, memory: 2Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pod2}
spec: {containers: [{name: app, image: app:1, resources: {requests: {memory: 1Gi}, limits: {memory: 4Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pod3}
spec: {containers: [{name: app, image: app:1}]}
"""


@pytest.fixture
def ranked(tmp_path: Path, capsys):
    """Rank the three pods on a node of 8Gi; return what is printed."""

    def of(usage: str | None = None) -> str:
        (tmp_path / "pods.yaml").write_text(THREE_PODS)
        arguments = ["rank", "-v", str(tmp_path / "pods.yaml"), "--node-memory", "8Gi"]
        if usage is not None:
            (tmp_path / "usage.csv").write_text(f"pod,memory\n{usage}")
            arguments += ["--usage", str(tmp_path / "usage.csv")]
        assert main(arguments) == 0
        return capsys.readouterr().out

    return of


def test_a_sum_of_0_is_not_exempt_and_one_above_1000_not_sure_to_die_and_rank_says_so(ranked):
    """Two of the three have sums above 1000, and one of them dies; the document has both die for certain."""
    out = ranked("pod1,2Gi\npod2,2Gi\npod3,2Gi\n")

    assert (
        "The kernel never kills at oom_score_adj -1000. Among the rest it kills the highest badness, however low."
        in out
    )


def test_places_that_differ_between_equal_pods_are_not_passed_over(ranked):
    """Within their requests both are equal to the kubelet; the kernel tells them apart."""
    assert ranked().splitlines()[-1] == ("Both orders agree; places differ only between pods that tie in one of them.")
    assert ranked("pod1,2Gi\npod2,2Gi\npod3,2Gi\n").splitlines()[-1] == "Both orders agree."
