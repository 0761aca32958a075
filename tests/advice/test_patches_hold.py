"""Complete patches keep their promise on manifests that nobody thought of."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from advice.bundles import apply_patch, bundle_of, check
from podqos.advice.checks.bundle import CheckOptions
from podqos.model.kubelet_flags import flag_of, flag_values

CPU = st.sampled_from(["0", "100m", "1", "1500m", "2", "2000"])
MEMORY = st.sampled_from(["0", "64", "512m", "128Mi", "1G", "1Gi", "4Gi"])
AMOUNTS = st.fixed_dictionaries({}, optional={"cpu": CPU, "memory": MEMORY, "ephemeral-storage": st.just("1Gi")})
RESOURCES = st.fixed_dictionaries({}, optional={"requests": AMOUNTS, "limits": AMOUNTS})
BOUND = st.fixed_dictionaries({}, optional={"cpu": st.just("1"), "memory": st.sampled_from(["256Mi", "1Gi"])})
# What a manifest is refused for on its own. An amount in its right unit may well break the bounds of a LimitRange.
REFUSALS = {"PQ111", "PQ112"}


def container(name: str, resources, restarts: bool) -> dict:
    """Return a container; one that restarts is a sidecar where it stands among init containers."""
    plain = {"name": name, "image": "x", "resources": resources}
    return {**plain, "restartPolicy": "Always"} if restarts else plain


@st.composite
def manifests(draw):
    """Draw a Deployment, and perhaps a LimitRange for it."""
    regular = draw(st.lists(RESOURCES, min_size=1, max_size=3))
    init = draw(st.lists(st.tuples(RESOURCES, st.booleans()), max_size=2))
    spec = {
        "containers": [container(f"c{index}", each, restarts=False) for index, each in enumerate(regular)],
        "initContainers": [container(f"i{index}", each, restarts=r) for index, (each, r) in enumerate(init)],
    }
    objects = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "w", "namespace": "default"},
            "spec": {"template": {"metadata": {"labels": {"app": "w"}}, "spec": spec}},
        }
    ]
    if draw(st.booleans()):
        item = {"type": "Container", **draw(st.fixed_dictionaries({}, optional={"default": BOUND, "max": BOUND}))}
        metadata = {"name": "l", "namespace": "default"}
        objects.append({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [item]}})
    return objects


def found(objects, options):
    """Return what is found, by check and place."""
    return {(each.check, each.container, each.path): each for each in check(bundle_of(objects), options)}


@given(manifests(), st.sampled_from([(), ("istio",), ("linkerd",)]))
def test_a_complete_patch_ends_its_finding_and_breaks_nothing(objects, inject):
    options = CheckOptions(inject=inject)
    before = found(objects, options)
    for key, finding in before.items():
        if not finding.patch.is_complete:
            continue
        patched = copy.deepcopy(objects)
        apply_patch(patched[0], finding.patch)
        after = found(patched, options)

        assert key not in after
        was_refused = any(check_id in REFUSALS for check_id, *_ in before)
        assert was_refused or not [check_id for check_id, *_ in after if check_id in REFUSALS]


@given(manifests())
def test_all_complete_patches_together_leave_none(objects):
    """One after the other, as ``--fix`` applies them, they come to an end."""
    for _ in range(40):
        findings = [each for each in check(bundle_of(objects)) if each.patch.is_complete]
        if not findings:
            return
        apply_patch(objects[0], findings[0].patch)
    raise AssertionError([each.check for each in findings])


SIGNALS = st.sampled_from(["memory.available", "nodefs.available", "imagefs.available", "containerfs.available"])
THRESHOLDS = st.dictionaries(SIGNALS, st.sampled_from(["0%", "1%", "10%", "100Mi", "500Mi", "2Gi", "100%"]), max_size=3)
SETTINGS = st.fixed_dictionaries(
    {"apiVersion": st.just("kubelet.config.k8s.io/v1beta1"), "kind": st.just("KubeletConfiguration")},
    optional={
        "evictionHard": THRESHOLDS,
        "evictionSoft": THRESHOLDS,
        "evictionSoftGracePeriod": st.dictionaries(SIGNALS, st.sampled_from(["0s", "1m", "2m30s"]), max_size=3),
        "evictionMinimumReclaim": st.dictionaries(SIGNALS, st.sampled_from(["0", "1Gi", "50%"]), max_size=2),
        "mergeDefaultEvictionSettings": st.booleans(),
        "systemReserved": st.dictionaries(st.sampled_from(["memory", "cpu"]), st.sampled_from(["1", "1Gi", "4Gi"])),
        "kubeReserved": st.dictionaries(st.just("memory"), st.sampled_from(["1Gi", "63Gi", "65Gi"])),
        "enforceNodeAllocatable": st.lists(
            st.sampled_from(["pods", "none", "system-reserved"]), max_size=2, unique=True
        ),
        "cgroupsPerQOS": st.booleans(),
        "failSwapOn": st.booleans(),
        "memorySwap": st.fixed_dictionaries({}, optional={"swapBehavior": st.sampled_from(["NoSwap", "LimitedSwap"])}),
    },
)


@given(SETTINGS)
def test_patches_of_settings_end_their_findings(settings):
    for key, finding in found([settings], CheckOptions()).items():
        if finding.patch.is_complete:
            patched = copy.deepcopy(settings)
            apply_patch(patched, finding.patch)

            assert key not in found([patched], CheckOptions())


@given(SETTINGS)
def test_patches_of_settings_come_to_an_end(settings):
    for _ in range(20):
        findings = [each for each in check(bundle_of([settings])) if each.patch.is_complete]
        if not findings:
            return
        apply_patch(settings, findings[0].patch)
    raise AssertionError([each.check for each in findings])


def as_flags(settings, *, joined: bool) -> dict:
    """Write settings as an OKD node has them, a pair in each value or all in one; what has no flag is left out."""
    arguments = {}
    for field, value in settings.items():
        flag = flag_of(field)
        if flag is not None:
            values = flag_values(flag, value) or [""]
            arguments[flag] = [",".join(values)] if joined else values
    return {"apiVersion": "v1", "kind": "NodeConfig", "kubeletArguments": arguments}


@given(SETTINGS, st.booleans())
def test_flags_are_found_the_same_faults_with_and_their_patches_come_to_an_end(settings, joined):
    node = as_flags(settings, joined=joined)
    same = {name: value for name, value in settings.items() if flag_of(name) or name in {"apiVersion", "kind"}}
    assert [each.check for each in check(bundle_of([node]))] == [each.check for each in check(bundle_of([same]))]
    for _ in range(20):
        findings = [each for each in check(bundle_of([node])) if each.patch.is_complete]
        if not findings:
            return
        apply_patch(node, findings[0].patch)
    raise AssertionError([each.check for each in findings])
