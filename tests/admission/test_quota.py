from __future__ import annotations

import pytest
from hypothesis import given as for_every
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import amounts, container, pod, quota, resources
from podqos.admission.quota import Exceeded, charge_more, check_quotas, counts, pod_usage
from podqos.model.pod import Pod, PodStatus, QOSClass
from podqos.model.policy import ScopeRequirement, ScopeSelector
from podqos.model.quantity import Quantity
from podqos.model.scheduling import Affinity, PodAffinity, PodAffinityTerm, PreferredPods
from podqos.model.selector import LabelSelector

BURSTABLE = pod(container(requests="cpu=1,memory=1Gi", limits="cpu=2,memory=2Gi"))
BEST_EFFORT = pod(container())


def test_usage_is_the_effective_pod_under_every_name():
    """Overhead counts; devices only by requests.*."""
    given = pod(
        container(requests="cpu=1,example.com/gpu=2,hugepages-2Mi=2Mi", limits="cpu=2"), overhead=amounts("cpu=250m")
    )
    assert pod_usage(given) == amounts(
        "pods=1,count/pods=1,cpu=1250m,requests.cpu=1250m,limits.cpu=2250m,requests.example.com/gpu=2,"
        "hugepages-2Mi=2Mi,requests.hugepages-2Mi=2Mi"
    )


@pytest.mark.parametrize(
    ("hard", "used", "message"),
    [
        pytest.param("requests.cpu=1", None, "", id="just-fits"),
        pytest.param(
            "requests.cpu=1,limits.memory=3Gi",
            "requests.cpu=100m,limits.memory=2Gi",
            "exceeded quota: quota, requested: limits.memory=2Gi,requests.cpu=1, "
            "used: limits.memory=2Gi,requests.cpu=100m, limited: limits.memory=3Gi,requests.cpu=1",
            id="two-at-once",
        ),
        pytest.param(
            "pods=0", None, "exceeded quota: quota, requested: pods=1, used: pods=0, limited: pods=0", id="none"
        ),
        pytest.param("count/pods=1", "count/pods=0", "", id="object-count"),
        pytest.param("services=0", None, "", id="not-of-pods"),
        pytest.param(
            "pods=1,requests.cpu=9", "pods=0", "status unknown for quota: quota, resources: pods,requests.cpu", id="?"
        ),
    ],
)
def test_a_pod_must_fit_into_what_is_left(hard, used, message):
    """In the API server's words."""
    denied = check_quotas(BURSTABLE, [quota(hard=hard, used=used)]).denied
    assert (denied.message if denied else "") == message


def test_the_refusal_carries_the_amounts():
    """Reasons are data."""
    denied = check_quotas(BURSTABLE, [quota(hard="cpu=500m", used="cpu=0")]).denied
    assert denied is not None
    one, nothing, half = (Quantity.parse(text) for text in ("1", "0", "500m"))
    assert denied.exceeded == (Exceeded("cpu", one, nothing, half),)


def test_what_a_quota_tracks_every_container_must_state():
    """Init containers as well; ephemeral storage and devices are not demanded."""
    given = pod(container("a", requests="cpu=1"), container("b"), init=(container("i"),))
    hard = "requests.cpu=9,limits.cpu=9,requests.ephemeral-storage=1Gi"
    denied = check_quotas(given, [quota(hard=hard)]).denied
    assert denied is not None
    assert denied.message == "failed quota: quota: must specify limits.cpu for: a,b,i; requests.cpu for: b,i"
    assert denied.unstated == (("limits.cpu", ("a", "b", "i")), ("requests.cpu", ("b", "i")))


def test_pod_level_resources_lift_the_demand():
    """The pod as a whole has said it."""
    given = pod(container(), resources=resources("cpu=1", "cpu=1"))
    assert check_quotas(given, [quota(hard="limits.cpu=9")]).denied is None


def _near(term: PodAffinityTerm) -> Pod:
    return pod(container(), affinity=Affinity(pod_affinity=PodAffinity((term,))))


def _away(term: PodAffinityTerm) -> Pod:
    preferred = PodAffinity(preferred=(PreferredPods(1, term),))
    return pod(container(), affinity=Affinity(pod_anti_affinity=preferred))


def _selector(scope: str, operator: str, *values: str) -> dict:
    return {"scope_selector": ScopeSelector((ScopeRequirement(scope, operator, values),))}


@pytest.mark.parametrize(
    ("spec", "given", "counted"),
    [
        pytest.param({}, BURSTABLE, True, id="no-scope"),
        pytest.param({"scopes": ("BestEffort",)}, BEST_EFFORT, True, id="best-effort"),
        pytest.param({"scopes": ("BestEffort",)}, BURSTABLE, False, id="best-effort-burstable"),
        pytest.param({"scopes": ("NotBestEffort",)}, BURSTABLE, True, id="not-best-effort"),
        pytest.param({"scopes": ("Terminating",)}, BURSTABLE, False, id="terminating-without-deadline"),
        pytest.param({"scopes": ("NotTerminating",)}, BURSTABLE, True, id="not-terminating"),
        pytest.param(
            {"scopes": ("Terminating",)},
            pod(container(), active_deadline_seconds=60),
            True,
            id="terminating-with-deadline",
        ),
        pytest.param({"scopes": ("NotTerminating", "BestEffort")}, BURSTABLE, False, id="all-scopes-must-hold"),
        pytest.param(_selector("PriorityClass", "Exists"), BURSTABLE, False, id="priority-exists-not"),
        pytest.param(_selector("PriorityClass", "DoesNotExist"), BURSTABLE, True, id="priority-does-not-exist"),
        pytest.param(_selector("PriorityClass", "NotIn", "high"), BURSTABLE, True, id="priority-none-is-not-in"),
        pytest.param(
            _selector("PriorityClass", "In", "high"),
            pod(container(), priority_class_name="high"),
            True,
            id="priority-in",
        ),
        pytest.param(
            _selector("PriorityClass", "In", "high"),
            pod(container(), priority_class_name="low"),
            False,
            id="priority-other",
        ),
        pytest.param({"scopes": ("CrossNamespacePodAffinity",)}, BURSTABLE, False, id="no-affinity"),
        pytest.param({"scopes": ("CrossNamespacePodAffinity",)}, _near(PodAffinityTerm("zone")), False, id="own"),
        pytest.param(
            {"scopes": ("CrossNamespacePodAffinity",)},
            _near(PodAffinityTerm("zone", namespaces=("other",))),
            True,
            id="another-namespace",
        ),
        pytest.param(
            {"scopes": ("CrossNamespacePodAffinity",)},
            _away(PodAffinityTerm("zone", namespace_selector=LabelSelector())),
            True,
            id="all-namespaces-preferred",
        ),
    ],
)
def test_scopes_choose_the_pods(spec, given, counted):
    """Terminating means that the pod has a deadline, not that it is being deleted."""
    assert counts(quota(hard="pods=1", **spec), given) is counted


def test_the_recorded_class_of_a_stored_pod_decides_the_scope():
    """It is what the API server stored at creation."""
    stored = replace(BURSTABLE, status=PodStatus(qos_class=QOSClass.BEST_EFFORT))
    assert counts(quota(hard="pods=1", scopes=("BestEffort",)), stored)


def test_quotas_count_what_they_let_through():
    """So that the next replica meets the rest."""
    decision = check_quotas(BURSTABLE, [quota(hard="requests.cpu=2,pods=5"), quota("other", hard="services=1")])
    first, other = decision.quotas
    assert first.status.used == amounts("requests.cpu=1,pods=1")
    assert other.status.used == amounts("services=0")
    second = check_quotas(BURSTABLE, decision.quotas)
    assert check_quotas(BURSTABLE, second.quotas).denied is not None


def test_a_resize_is_charged_for_the_difference_only():
    """What the pod had before is already counted."""
    grown = pod(container(requests="cpu=1500m,memory=1Gi", limits="cpu=2,memory=2Gi"))
    full = quota(hard="requests.cpu=2,requests.memory=1Gi", used="requests.cpu=1500m,requests.memory=1Gi")
    assert check_quotas(grown, [full], old=BURSTABLE).denied is None
    assert check_quotas(grown, [full]).denied is not None


GROWN = pod(container(requests="cpu=1500m,memory=1Gi", limits="cpu=2,memory=2Gi"))
QUOTAS = [
    quota("all", hard="requests.cpu=7,pods=9", used="requests.cpu=500m,pods=2"),
    quota("memory", hard="memory=5Gi,limits.memory=6Gi", used="memory=0,limits.memory=1Gi"),
    quota("best-effort", hard="pods=1", used="pods=0", scopes=("BestEffort",)),
    quota("burstable", hard="pods=4", used="pods=0", scopes=("NotBestEffort",)),
    quota("full", hard="requests.memory=1Gi", used="requests.memory=2Gi"),
    quota("things", hard="services=1", used="services=1"),
]


@for_every(
    st.sampled_from([BURSTABLE, BEST_EFFORT, GROWN]),
    st.lists(st.sampled_from(QUOTAS), unique_by=id),
    st.integers(0, 12),
    st.sampled_from([None, BURSTABLE, BEST_EFFORT]),
)
def test_charging_many_pods_at_once_is_charging_them_one_by_one(given, quotas, count, old):
    """As long as each is like the first, which was let in."""
    first = check_quotas(given, quotas, old)
    if first.denied is not None:
        return
    one_by_one, denied, admitted = first.quotas, None, 0
    while admitted < count:
        decision = check_quotas(given, one_by_one, old)
        denied = decision.denied
        if denied is not None:
            break
        one_by_one, admitted = decision.quotas, admitted + 1

    at_once, decision = charge_more(given, first.quotas, count, old)

    assert at_once == admitted
    assert decision.denied == denied
    assert [each.status.used for each in decision.quotas] == [each.status.used for each in one_by_one]
