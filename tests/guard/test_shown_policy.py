"""What the guard may do in a cluster, tried on a real API server: its own node's pods, Failed and Evicted, no more."""

from __future__ import annotations

import json
import shutil
from urllib.error import HTTPError

import pytest
import yaml

from podqos.eviction.messages import GUARD_ANNOTATION
from podqos.guard.eviction import GuardVictim
from podqos.guard.requests import event_of, patch_of
from podqos.serve.installation import manifests
from podqos.serve.settings import GUARD_NAMESPACE
from real_api_server import ApiServer, writes

pytestmark = [pytest.mark.slow, writes]
STRATEGIC = "application/strategic-merge-patch+json"
ACCOUNT = f"/api/v1/namespaces/{GUARD_NAMESPACE}/serviceaccounts/podqos-guard"
PODS = "/api/v1/namespaces/default/pods"
PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "DaemonSet": "daemonsets",
    "ServiceAccount": "serviceaccounts",
    "Namespace": "namespaces",
}


def objects(**chosen):
    guard = {"mode": "shadow", "hostPID": False, "kubeletConfig": "", "evictionAPI": False, **chosen}
    return list(yaml.safe_load_all(manifests("guard", GUARD_NAMESPACE, {"image": "podqos", "guard": guard})))


def path_of(each):
    version = each["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = each["metadata"].get("namespace")
    return f"{root}/{f'namespaces/{namespace}/' if namespace else ''}{PLURALS[each['kind']]}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a key with")
    with ApiServer(tmp_path_factory.mktemp("server")) as started:
        for each in objects():
            started.call("POST", path_of(each), each)
        for name in ("own", "other"):
            started.call("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        yield started


def token(server, node="own"):
    spec = {"expirationSeconds": 3600}
    if node:
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Node", "name": node}
    answer = json.loads(server.call("POST", f"{ACCOUNT}/token", {"kind": "TokenRequest", "spec": spec}))
    return answer["status"]["token"]


made = iter(range(1000))


def pod(server, node="own", *, priority_class=None, annotations=None, phase="Running"):
    container = {"name": "c", "image": "x"}
    name = f"pod-{next(made)}"
    metadata = {"name": name, "labels": {"app": "a"}, "annotations": {"kept": "yes"} | (annotations or {})}
    spec = {"nodeName": node, "containers": [container]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    stored = json.loads(server.call("POST", PODS, {"metadata": metadata, "spec": spec}))
    status = {"status": {"phase": phase, "podIP": "10.9.8.7", "podIPs": [{"ip": "10.9.8.7"}]}}
    server.call("PATCH", f"{PODS}/{name}/status", status, kind=STRATEGIC)
    return stored


def victim_of(stored):
    metadata = stored["metadata"]
    return GuardVictim(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        "The node was low on resource: memory. ",
        "2026-11-16T20:09:47.990753Z",
        generation=1,
        node="own",
    )


def eviction(stored, **more):
    """Return the patch that the guard sends, or another one."""
    patch = patch_of(victim_of(stored))
    for path, value in more.items():
        part, _, name = path.partition("_")
        patch[part][name] = value
    return patch


def answered(server, method, path, body, **options):
    try:
        return 200, json.loads(server.call(method, path, body, **options))
    except HTTPError as error:
        return error.code, json.loads(error.read())["message"]


def patched(server, stored, patch, with_token):
    path = f"{PODS}/{stored['metadata']['name']}/status"
    return answered(server, "PATCH", path, patch, kind=STRATEGIC, token=with_token)


@pytest.fixture(scope="module")
def enforced(server):
    """Wait until the policies are enforced, which takes the API server a moment."""
    stored = pod(server, "other")
    for _ in range(600):
        code, _said = patched(server, stored, eviction(stored), token(server))
        if code == 403:
            return server
        stored = pod(server, "other")
    raise AssertionError("the policy is not enforced")


def test_a_pod_of_its_own_node_may_be_evicted(enforced):
    stored = pod(enforced)
    code, said = patched(enforced, stored, eviction(stored), token(enforced))

    assert code == 200, said
    assert (said["status"]["phase"], said["status"]["reason"]) == ("Failed", "Evicted")
    assert said["metadata"]["annotations"] == {"kept": "yes", GUARD_ANNOTATION: "2026-11-16T20:09:47.990753Z"}


@pytest.mark.parametrize(
    ("of_pod", "of_patch", "bound_to", "why"),
    [
        ({"node": "other"}, {}, "own", "pods of its own node"),
        ({}, {}, None, "pods of its own node"),
        ({}, {}, "other", "pods of its own node"),
        ({}, {"metadata_labels": {"app": "b"}}, "own", "not change labels"),
        ({}, {"metadata_finalizers": ["example.com/kept"]}, "own", "not change finalizers"),
        ({}, {"metadata_annotations": {"kept": "no"}}, "own", "no annotation but podqos.dev/evicted-at"),
        ({}, {"metadata_annotations": {"kept": None}}, "own", "no annotation but podqos.dev/evicted-at"),
        ({}, {"metadata_annotations": {"new": "1"}}, "own", "no annotation but podqos.dev/evicted-at"),
        ({}, {"status_phase": "Running"}, "own", "only set Failed, Evicted"),
        ({}, {"status_reason": "Other"}, "own", "only set Failed, Evicted"),
        ({}, {"status_podIPs": [{"ip": "10.9.8.7"}, {"ip": "fd00::1"}]}, "own", "not change podIPs"),
        ({"phase": "Succeeded"}, {}, "own", "pods that have succeeded"),
        ({"priority_class": "system-node-critical"}, {}, "own", "not evict critical pods"),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, {}, "own", "not evict static pods"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_a_403(enforced, of_pod, of_patch, bound_to, why):
    stored = pod(enforced, **of_pod)
    code, said = patched(enforced, stored, eviction(stored, **of_patch), token(enforced, bound_to))

    assert code == 403
    assert why in said


def test_another_uid_is_a_422_and_not_taken_for_a_refusal(enforced):
    stored = pod(enforced)
    patch = eviction(stored, metadata_uid="00000000-0000-0000-0000-000000000000")

    assert patched(enforced, stored, patch, token(enforced))[0] == 422


@pytest.mark.parametrize(
    ("method", "path"),
    [("PATCH", ""), ("DELETE", ""), ("POST", "/eviction"), ("POST", "/binding"), ("PATCH", "/ephemeralcontainers")],
)
def test_nothing_but_the_status_may_be_written(enforced, method, path):
    stored = pod(enforced)
    name = stored["metadata"]["name"]
    kind = STRATEGIC if method == "PATCH" else "application/json"
    code, _ = answered(enforced, method, f"{PODS}/{name}{path}", {}, kind=kind, token=token(enforced))

    assert code == 403


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, 200),
        ({"source": {"component": "podqos-guard", "host": "other"}}, 403),
        ({"reason": "Killing"}, 403),
        ({"involvedObject": {"kind": "Node", "name": "own", "namespace": "default"}}, 403),
    ],
)
def test_events_are_of_its_own_node_and_about_evicted_pods(enforced, more, code):
    event = event_of(victim_of(pod(enforced))) | more
    found, said = answered(enforced, "POST", "/api/v1/namespaces/default/events", event, token=token(enforced))

    assert found == code, said


def test_the_policies_have_no_faults_the_server_finds(enforced):
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    for each in json.loads(enforced.call("GET", path))["items"]:
        assert not each.get("status", {}).get("typeChecking", {}).get("expressionWarnings")


def test_with_the_eviction_api_only_a_bound_token_may_use_it(enforced):
    for each in objects(evictionAPI=True):
        if each["kind"] in {"ClusterRole", "ValidatingAdmissionPolicy"}:
            enforced.call(
                "PATCH", f"{path_of(each)}/{each['metadata']['name']}", each, kind="application/merge-patch+json"
            )
    bound, unbound = token(enforced), token(enforced, None)
    for _ in range(600):
        stored = pod(enforced)
        name = stored["metadata"]["name"]
        asked = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        path = f"{PODS}/{name}/eviction"
        refused, _ = answered(enforced, "POST", path, asked, token=unbound)
        code, said = answered(enforced, "POST", path, asked, token=bound)
        if code == 200:
            break
    assert (code, refused) == (200, 403), said
    assert patched(enforced, other := pod(enforced, "other"), eviction(other), bound)[0] == 403
