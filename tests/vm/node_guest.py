"""Runs the tests of the real node inside the virtual machine, where cgroups are of version 2, and reports each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vm.boot import report

PROJECT = Path(__file__).parents[2]
# A guest without hardware support is some ten times slower than its host; these are the tests that version 2 decides.
CHECKS = (
    "tests/host/test_node.py::test_the_tree_and_its_values_are_the_plans",
    "tests/host/test_node.py::test_the_manager_evicts_the_pod_above_its_request_and_no_other",
    "tests/host/test_node.py::test_a_hard_eviction_stops_growth_but_lets_a_pod_that_does_not_grow_finish",
    "tests/host/test_node.py::test_a_soft_eviction_lets_the_pod_wind_up_within_its_grace",
    "tests/host/test_node.py::test_a_kernel_kill_is_told_with_its_reasons",
    "tests/host/test_node_speed.py::test_a_pod_that_ignores_sigterm_and_grows_on_is_killed_before_the_kernel_has_to",
    "tests/host/test_node_speed.py::test_a_container_that_runs_out_of_memory_dies_as_a_whole",
    "tests/host/test_node_speed.py::test_negative_scores_are_set_for_guaranteed_pods_and_the_agent",
    "tests/host/test_adoption.py::test_a_pod_that_ended_without_an_agent_is_handled_by_the_next_one",
    "tests/host/test_api.py::test_metrics_are_prometheus_text_under_the_conventional_names",
)


class Reporter:
    """Tells how each test went."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Pass on how a phase of a test went, unless it is of no interest."""
        if report.when == "call" or report.outcome != "passed":
            tell(report)


def tell(result: pytest.TestReport) -> None:
    """Report one test."""
    name = result.nodeid.rpartition("::")[2]
    report(check=name, outcome=result.outcome, text=result.longreprtext[-3000:], seconds=round(result.duration, 2))


if __name__ == "__main__":
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--color=no",
        "--assert=plain",
        "--rootdir",
        str(PROJECT),
        "-c",
        str(PROJECT / "pyproject.toml"),
    ]
    chosen = sys.argv[1:] or CHECKS
    sys.exit(pytest.main([*options, *(str(PROJECT / name) for name in chosen)], plugins=[Reporter()]))
