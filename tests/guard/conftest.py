"""Kubelets for the tests of the guard."""

from __future__ import annotations

import pytest

from guard.kubelets import REAL, real_kubelet, suite_kubelet


@pytest.fixture
def suite():
    """Run the suite's own kubelet, whose API server does what a test wants."""
    with suite_kubelet() as kubelet:
        yield kubelet


@pytest.fixture(params=["suite", pytest.param("real", marks=pytest.mark.slow)])
def kubelet(request):
    """Run a kubelet: the suite's own, and a real one where there is one."""
    if request.param == "real" and REAL is None:
        pytest.skip("PODQOS_TEST_KUBELET names no kubeconfig")
    with suite_kubelet() if request.param == "suite" else real_kubelet() as running:
        yield running
