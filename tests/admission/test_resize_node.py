from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import amounts, container, pod, resources
from podqos.admission.chain import Step
from podqos.admission.policies import Policies
from podqos.admission.refusal import Code
from podqos.admission.resize import resize
from podqos.admission.resize_node import (
    INIT_CONTAINER_RESIZE_FEATURE,
    POD_LEVEL_RESIZE_FEATURE,
    KnownNodes,
)
from podqos.model.node import LABEL_OS, Node, NodeStatus
from podqos.model.pod import ObjectMeta
from podqos.model.profile import LATEST, profile_for

BOTH = (POD_LEVEL_RESIZE_FEATURE, INIT_CONTAINER_RESIZE_FEATURE)
FORBIDDEN = 'pods "p" is forbidden: '


def _pod(requests: str, *, on: str = "n", **spec: object):
    return pod(container(requests=requests), node_name=on, **spec)


def _node(allocatable: str = "cpu=2,memory=2Gi", features=BOTH, **labels: str) -> KnownNodes:
    node = Node(ObjectMeta("n", labels=labels), status=NodeStatus({}, amounts(allocatable), declared_features=features))
    return KnownNodes({"n": node}, are_all=True)


def _refusal(old, new, known, profile=LATEST):
    return resize(old, new, Policies(), profile, known).refusal


OLD = _pod("cpu=1,memory=1Gi")


class TestThePodAloneMustFitOnTheEmptyNode:
    def test_exactly_what_the_node_has_is_enough(self):
        assert _refusal(OLD, _pod("cpu=2,memory=2Gi"), _node()) is None

    def test_more_is_forbidden_with_every_amount_that_is_missing(self):
        refusal = _refusal(OLD, _pod("cpu=2001m,memory=3Gi"), _node())
        assert refusal.code is Code.FORBIDDEN
        assert refusal.message == (
            f"{FORBIDDEN}node didn't have enough allocatable resources: cpu, requested: 2001, allocatable: 2000; "
            "memory, requested: 3221225472, allocatable: 2147483648"
        )

    def test_pods_that_are_there_do_not_matter_to_the_api_server(self):
        assert resize(OLD, _pod("cpu=2,memory=1Gi"), Policies(), nodes=_node()).allowed

    def test_overhead_and_pod_level_requests_count(self):
        heavy = {"overhead": amounts("cpu=1")}
        refusal = _refusal(_pod("cpu=1,memory=1Gi", **heavy), _pod("cpu=1500m,memory=1Gi", **heavy), _node())
        assert "cpu, requested: 2500, allocatable: 2000" in refusal.message
        old = _pod("cpu=1,memory=1Gi", resources=resources("cpu=1,memory=1Gi"))
        new = replace(old, spec=replace(old.spec, resources=resources("cpu=5,memory=1Gi")))
        assert "cpu, requested: 5000" in _refusal(old, new, _node()).message

    def test_a_node_without_allocatable_has_none(self):
        assert "cpu, requested: 2000, allocatable: 0" in _refusal(OLD, _pod("cpu=2,memory=1Gi"), _node("")).message

    def test_a_resize_that_changes_nothing_passes(self):
        assert _refusal(_pod("cpu=9,memory=1Gi"), _pod("cpu=9,memory=1Gi"), _node()) is None


def test_only_linux_nodes_take_resizes():
    refusal = _refusal(OLD, _pod("cpu=2,memory=1Gi"), _node(**{LABEL_OS: "windows"}))
    assert refusal.message == f'{FORBIDDEN}pod resize is only supported on linux nodes, node "n" is "windows"'


class TestTheNodeMustDeclareWhatAResizeNeeds:
    def test_pod_level_resources_and_init_containers(self):
        init = container("i", requests="cpu=1")
        old = _pod("cpu=1", init=(init,), resources=resources("cpu=1"))
        spec = replace(
            old.spec, init_containers=(container("i", requests="cpu=500m"),), resources=resources("cpu=1100m")
        )
        refusal = _refusal(old, replace(old, spec=spec), _node(features=()))
        assert refusal.message == (
            f"{FORBIDDEN}pod update requires features InPlacePodLevelResourcesVerticalScaling, "
            'InPlacePodVerticalScalingInitContainers which are not available on node "n"'
        )
        assert _refusal(old, replace(old, spec=spec), _node()) is None

    def test_sidecars_and_containers_need_none(self):
        def with_sidecar(cpu):
            return _pod("cpu=1", init=(container("s", requests=cpu, restart_policy="Always"),))

        assert _refusal(with_sidecar("cpu=100m"), with_sidecar("cpu=200m"), _node(features=())) is None


class TestANodeThatIsNotKnown:
    def test_one_that_the_cluster_does_not_list_does_not_exist(self):
        refusal = _refusal(_pod("cpu=1", on="gone"), _pod("cpu=2", on="gone"), _node())
        assert refusal.message == f'{FORBIDDEN}node "gone" not found'

    @pytest.mark.parametrize("known", [None, KnownNodes()])
    def test_without_a_list_of_nodes_it_is_not_asked(self, known):
        admission = resize(OLD, _pod("cpu=900,memory=1Gi"), Policies(), nodes=known)
        assert admission.allowed
        assert Step.POD_RESIZE_VALIDATOR not in {result.step for result in admission.steps}

    def test_a_pod_without_a_node_passes(self):
        assert _refusal(_pod("cpu=1", on=""), _pod("cpu=900", on=""), _node()) is None


def test_before_1_36_the_api_server_did_not_ask_the_node():
    assert _refusal(OLD, _pod("cpu=900,memory=1Gi"), _node(), profile_for((1, 35))) is None
