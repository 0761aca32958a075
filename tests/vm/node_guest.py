"""Runs the tests of the real node inside the virtual machine, where cgroups are of version 2, and reports each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from vm.boot import report

PROJECT = Path(__file__).parents[2]
# A guest without hardware support is ten to fifty times slower than its host: these are tests that version 2 decides.
PATIENCE = "20"
CHECKS = (
    "tests/host/test_node.py::test_the_tree_and_its_values_are_the_plans",
    "tests/host/test_node.py::test_the_manager_evicts_the_pod_above_its_request_and_no_other",
    "tests/host/test_node.py::test_a_hard_eviction_stops_growth_but_lets_a_pod_that_does_not_grow_finish",
    "tests/host/test_node.py::test_a_kernel_kill_is_told_with_its_reasons",
    "tests/host/test_node_speed.py::test_a_pod_that_ignores_sigterm_and_grows_on_is_killed_before_the_kernel_has_to",
    "tests/host/test_node_speed.py::test_a_container_that_runs_out_of_memory_dies_as_a_whole",
    "tests/host/test_node_speed.py::test_negative_scores_are_set_for_guaranteed_pods_and_the_agent",
    "tests/host/test_claim.py::test_a_second_node_leaves_the_cgroup_of_a_living_one_alone",
    "tests/host/test_claim.py::test_a_node_whose_agent_is_gone_keeps_its_cgroup_as_long_as_it_has_its_directory",
    "tests/host/test_lost_agent.py::test_a_pod_that_was_kept_from_growing_and_not_stopped_may_grow_again[running]",
    "tests/host/test_lost_agent.py::test_a_pod_that_was_being_evicted_stays_held_until_it_is_gone",
    "tests/host/test_api.py::test_metrics_are_prometheus_text_under_the_conventional_names",
    "tests/host/test_pressure.py::test_a_cgroup_that_waits_for_memory_is_heard_also_after_it_was_made_again",
    "tests/guard/test_beside_a_kubelet.py::test_the_pod_that_grows_is_evicted_and_the_others_go_on[systemd-patch]",
    "tests/guard/test_beside_a_kubelet.py::test_on_cgroup_v2_it_needs_neither_the_hosts_pids_nor_its_cgroup_namespace[systemd]",
    "tests/guard/test_beside_a_kubelet.py::test_it_protects_itself_as_far_as_the_machine_allows_and_says_where_not",
    # Last: it leaves the machine with little memory.
    "tests/host/test_global_oom.py::test_the_global_oom_killer_takes_the_predicted_pod_and_nothing_else_of_a_node",
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
    os.environ["PODQOS_TEST_PATIENCE"] = PATIENCE
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--color=no",
        "--rootdir",
        str(PROJECT),
        "-c",
        str(PROJECT / "pyproject.toml"),
    ]
    chosen = sys.argv[1:] or CHECKS
    sys.exit(pytest.main([*options, *(str(PROJECT / name) for name in chosen)], plugins=[Reporter()]))
