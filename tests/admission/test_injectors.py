from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import amounts, container, pod, resources
from podqos.admission.chain import admit
from podqos.admission.injectors import (
    INJECTORS,
    CustomInjector,
    SkipReason,
    custom_injector,
    inject,
)
from podqos.admission.policies import Policies
from podqos.errors import InputError
from podqos.model.pod import ObjectMeta, Pod, QOSClass
from podqos.model.profile import parse_version
from podqos.qos.classes import classify

GUARANTEED = container("app", requests="cpu=1,memory=1Gi", limits="cpu=1,memory=1Gi")
ISTIO = resources("cpu=100m,memory=128Mi", "cpu=2,memory=1Gi")
VAULT = resources("cpu=250m,memory=64Mi", "cpu=500m,memory=128Mi")
WANTS_VAULT = {"vault.hashicorp.com/agent-inject": "true"}


def annotated(annotations: dict[str, str] | None = None, *, labels: dict[str, str] | None = None, **spec) -> Pod:
    """Return a Guaranteed pod that says so much about itself."""
    metadata = ObjectMeta("p", "prod", labels=labels or {}, annotations=annotations or {})
    return replace(pod(GUARANTEED, **spec), metadata=metadata)


def names(of: Pod) -> tuple[list[str], list[str]]:
    """Return the names of the init containers and of the containers."""
    return [each.name for each in of.spec.init_containers], [each.name for each in of.spec.containers]


def test_istio_adds_a_native_sidecar_before_all_other_init_containers():
    """As it does from Kubernetes 1.33: first the network, then the proxy, then what the pod brings."""
    injection = inject(annotated(init=(container("migrate"),)), "istio")
    assert names(injection.pod) == (["istio-init", "istio-proxy", "migrate"], ["app"])
    proxy = injection.pod.spec.init_containers[1]
    assert (proxy.is_sidecar, proxy.resources) == (True, ISTIO)
    assert [(each.container.name, each.among) for each in injection.added] == [
        ("istio-init", "initContainers"),
        ("istio-proxy", "initContainers"),
    ]


def test_istio_without_native_sidecars_adds_the_proxy_last():
    """And redirects the network after the pod's own init containers."""
    classic = annotated({"sidecar.istio.io/nativeSidecar": "false"}, init=(container("migrate"),))
    assert names(inject(classic, "istio").pod) == (["migrate", "istio-init"], ["app", "istio-proxy"])


def test_istio_has_no_native_sidecars_before_kubernetes_1_33():
    """Unless the pod asks for them."""
    older = parse_version("1.32")
    assert names(inject(annotated(), "istio", older).pod) == (["istio-init"], ["app", "istio-proxy"])
    wish = annotated({"sidecar.istio.io/nativeSidecar": "true"})
    assert names(inject(wish, "istio", older).pod) == (["istio-init", "istio-proxy"], ["app"])


def test_istio_injects_again_where_only_the_status_of_a_former_injection_is_left():
    """As in a pod copied from a running one without its proxy."""
    copied = annotated({"sidecar.istio.io/status": "{}"})
    assert names(inject(copied, "istio").pod) == (["istio-init", "istio-proxy"], ["app"])


@pytest.mark.parametrize("name", INJECTORS)
@pytest.mark.parametrize("version", ["1.32", "1.36"])
def test_injecting_twice_is_injecting_once(name, version):
    """A webhook may be called again; the pod must not grow."""
    profile = parse_version(version)
    once = inject(annotated(WANTS_VAULT, init=(container("migrate"),)), name, profile).pod
    assert inject(once, name, profile).pod == once


def test_linkerd_adds_its_proxy_first_and_asks_for_nothing():
    """By default it has no resources at all."""
    injection = inject(annotated(init=(container("migrate"),)), "linkerd")
    assert names(injection.pod) == (["migrate", "linkerd-init"], ["linkerd-proxy", "app"])
    assert injection.pod.spec.containers[0].resources == resources()


@pytest.mark.parametrize("generation", ["", "beta.", "alpha."])
def test_linkerd_uses_a_native_sidecar_where_the_pod_asks_for_it(generation):
    """The annotation was alpha, then beta."""
    wish = {f"config.{generation}linkerd.io/proxy-enable-native-sidecar": "true"}
    assert names(inject(annotated(wish), "linkerd").pod) == (["linkerd-init", "linkerd-proxy"], ["app"])


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, (["migrate", "vault-agent-init"], ["app", "vault-agent"]), id="both"),
        pytest.param(
            {"init-first": "true"}, (["vault-agent-init", "migrate"], ["app", "vault-agent"]), id="init-first"
        ),
        pytest.param({"pre-populate": "false"}, (["migrate"], ["app", "vault-agent"]), id="only-the-sidecar"),
        pytest.param({"pre-populate-only": "true"}, (["migrate", "vault-agent-init"], ["app"]), id="only-before"),
    ],
)
def test_vault_adds_an_agent_before_one_beside_or_both(more, expected):
    """As the annotations of the pod say."""
    annotations = {**WANTS_VAULT, **{f"vault.hashicorp.com/agent-{name}": text for name, text in more.items()}}
    injection = inject(annotated(annotations, init=(container("migrate"),)), "vault")
    assert names(injection.pod) == expected
    assert all(each.container.resources == VAULT for each in injection.added)


@pytest.mark.parametrize(
    ("injector", "annotations", "expected"),
    [
        pytest.param(
            "istio", {"sidecar.istio.io/proxyCPU": "50m"}, resources("cpu=50m"), id="istio-drops-all-its-defaults"
        ),
        pytest.param(
            "istio",
            {
                "sidecar.istio.io/proxyCPU": "100m",
                "sidecar.istio.io/proxyMemory": "128Mi",
                "sidecar.istio.io/proxyCPULimit": "100m",
                "sidecar.istio.io/proxyMemoryLimit": "128Mi",
            },
            resources("cpu=100m,memory=128Mi", "cpu=100m,memory=128Mi"),
            id="istio-guaranteed",
        ),
        pytest.param(
            "linkerd",
            {"config.linkerd.io/proxy-cpu-request": "20m", "config.linkerd.io/proxy-memory-limit": "250Mi"},
            resources("cpu=20m", "memory=250Mi"),
            id="linkerd",
        ),
        pytest.param(
            "vault",
            {**WANTS_VAULT, "vault.hashicorp.com/agent-limits-mem": "256Mi"},
            resources("cpu=250m,memory=64Mi", "cpu=500m,memory=256Mi"),
            id="vault-keeps-its-other-defaults",
        ),
        pytest.param(
            "vault",
            {**WANTS_VAULT, "vault.hashicorp.com/agent-limits-cpu": ""},
            resources("cpu=250m,memory=64Mi", "memory=128Mi"),
            id="vault-takes-an-empty-one-for-no-limit",
        ),
    ],
)
def test_annotations_of_the_pod_set_the_amounts(injector, annotations, expected):
    """Of the init container as well, and the added container says which annotations decided."""
    injection = inject(annotated(annotations), injector)
    assert [each.container.resources for each in injection.added] == [expected, expected]
    decided = {key for key in annotations if key != "vault.hashicorp.com/agent-inject"}
    assert {key for each in injection.added for key in each.annotations} == decided


@pytest.mark.parametrize(
    ("injector", "given", "reason", "field"),
    [
        pytest.param(
            "istio", annotated(host_network=True), SkipReason.HOST_NETWORK, "spec.hostNetwork", id="istio-host"
        ),
        pytest.param(
            "istio",
            annotated(labels={"sidecar.istio.io/inject": "false"}),
            SkipReason.OPTED_OUT,
            "sidecar.istio.io/inject",
            id="istio-label",
        ),
        pytest.param(
            "istio",
            annotated({"sidecar.istio.io/inject": "nope"}),
            SkipReason.OPTED_OUT,
            "sidecar.istio.io/inject",
            id="istio-any-other-word-is-a-no",
        ),
        pytest.param(
            "istio",
            replace(annotated(), metadata=ObjectMeta("p", "kube-system")),
            SkipReason.SYSTEM_NAMESPACE,
            "kube-system",
            id="istio-system",
        ),
        pytest.param(
            "linkerd", annotated(host_network=True), SkipReason.HOST_NETWORK, "spec.hostNetwork", id="linkerd-host"
        ),
        pytest.param(
            "linkerd",
            annotated({"linkerd.io/inject": "disabled"}),
            SkipReason.OPTED_OUT,
            "linkerd.io/inject",
            id="linkerd-out",
        ),
        pytest.param(
            "linkerd",
            replace(annotated(), spec=pod(GUARANTEED, container("istio-proxy")).spec),
            SkipReason.ALREADY_INJECTED,
            "istio-proxy",
            id="linkerd-beside-another-mesh",
        ),
        pytest.param(
            "vault", annotated(), SkipReason.NOT_OPTED_IN, "vault.hashicorp.com/agent-inject", id="vault-not-asked-for"
        ),
        pytest.param(
            "vault",
            annotated({**WANTS_VAULT, "vault.hashicorp.com/agent-inject-status": "injected"}),
            SkipReason.ALREADY_INJECTED,
            "vault.hashicorp.com/agent-inject-status",
            id="vault-twice",
        ),
    ],
)
def test_who_does_not_take_part_is_left_as_it_is_and_told_why(injector, given, reason, field):
    """By the injector's own rules."""
    injection = inject(given, injector)
    assert injection.pod is given
    assert not injection.added
    assert injection.skipped is not None
    assert (injection.skipped.reason, injection.skipped.field) == (reason, field)


def test_the_label_comes_before_the_annotation():
    """Istio's own order."""
    both = annotated({"sidecar.istio.io/inject": "false"}, labels={"sidecar.istio.io/inject": "true"})
    assert inject(both, "istio").skipped is None


def test_what_a_pod_writes_under_the_name_of_the_proxy_stands():
    """Istio merges it over its template; the container moves to where the proxy belongs."""
    custom = annotated()
    custom = replace(custom, spec=pod(GUARANTEED, container("istio-proxy", limits="cpu=100m")).spec)
    after = inject(custom, "istio").pod
    assert names(after) == (["istio-init", "istio-proxy"], ["app"])
    assert after.spec.init_containers[1].resources == resources("cpu=100m,memory=128Mi", "cpu=100m,memory=1Gi")


@pytest.mark.parametrize("name", INJECTORS)
def test_every_known_injector_takes_a_guaranteed_pod_down_to_burstable(name):
    """The trap: the manifest says Guaranteed, and what runs is not."""
    given = annotated(WANTS_VAULT)
    assert classify(given).qos_class is QOSClass.GUARANTEED
    assert classify(inject(given, name).pod).qos_class is QOSClass.BURSTABLE


def test_a_proxy_with_all_four_amounts_keeps_the_pod_guaranteed():
    """The way out: limits for the proxy, which defaulting copies to requests."""
    limits = {"config.linkerd.io/proxy-cpu-limit": "100m", "config.linkerd.io/proxy-memory-limit": "64Mi"}
    stored = admit(inject(annotated(limits), "linkerd").pod, Policies())
    assert stored.pod.status.qos_class is QOSClass.GUARANTEED


def test_an_unknown_injector_is_an_error_that_names_the_nearest():
    """Bad input, not a pod without sidecars."""
    with pytest.raises(InputError, match=r"unknown injector 'istioo' \(did you mean istio\?\)"):
        inject(annotated(), "istioo")


def test_an_annotation_that_is_no_amount_is_an_error_at_its_place():
    """The webhook would fail, and the pod would not be created."""
    with pytest.raises(InputError, match=r"metadata.annotations\[sidecar.istio.io/proxyCPU\]"):
        inject(annotated({"sidecar.istio.io/proxyCPU": "lots"}), "istio")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"containers": [{"name": "agent", "resources": {"limits": {"cpu": "1"}}}]}, id="fragment"),
        pytest.param(
            {"kind": "Pod", "spec": {"containers": [{"name": "agent", "resources": {"limits": {"cpu": 1}}}]}}, id="pod"
        ),
    ],
)
def test_an_injector_can_be_described(value):
    """By a fragment of a pod's spec, or by a pod."""
    injection = inject(annotated(), custom_injector("ours", value))
    assert names(injection.pod) == ([], ["app", "agent"])
    assert injection.added[0].container.resources.limits == amounts("cpu=1")
    assert injection.injector == "ours"


def test_a_described_injector_does_not_inject_twice():
    """Its own container is there already."""
    agent = CustomInjector("ours", (container("agent"),))
    once = inject(annotated(), agent).pod
    again = inject(once, agent)
    assert again.pod is once
    assert again.skipped is not None
    assert again.skipped.reason is SkipReason.ALREADY_INJECTED


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(["x"], "not a valid injector", id="list"),
        pytest.param({}, "adds no containers", id="empty"),
        pytest.param({"container": []}, "did you mean", id="misspelt"),
        pytest.param({"containers": [{"image": "x"}]}, r"containers\[0\]", id="no-name"),
        pytest.param(
            {"containers": [{"name": "a", "resources": {"request": {}}}]}, r"containers\[0\].resources", id="request"
        ),
    ],
)
def test_a_description_that_makes_no_sense_is_refused_at_its_field(value, message):
    """One line: where, what, how to mend it."""
    with pytest.raises(InputError, match=message):
        custom_injector("ours", value)
