"""What a server means that says no: one line, and the RBAC that would help."""

from __future__ import annotations

import pytest
import yaml

from cluster.recorded import recorded_answer, recorded_json
from cluster.serving import Server
from podqos.cli import command_list, main
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access, User
from podqos.cluster.refusals import RBACQuestion, question, refusal, role_for, status_of
from podqos.cluster.resources import LIMIT_RANGES, NODES, POD_METRICS, PODS
from podqos.errors import BadAnswer, Forbidden, NotFound, Refused, Unauthorized

WHERE = "https://prod:6443"


def refused(file, name, asked):
    code, _headers, body = recorded_answer(file, name)
    return refusal(asked, status_of(code, body), WHERE)


@pytest.mark.parametrize(
    ("file", "name", "asked", "line"),
    [
        (
            "errors.json",
            "invalid-bearer-token-401",
            question("list", PODS),
            "cannot list pods: 401 Unauthorized (log in again)",
        ),
        (
            "errors.json",
            "anonymous-403",
            question("list", PODS),
            "cannot list pods: not logged in (system:anonymous) (log in; the credentials were none)",
        ),
        (
            "errors.json",
            "rbac-other-namespace-403",
            question("list", PODS, "batch"),
            "cannot list pods in namespace batch as alice (the RBAC below grants this permission)",
        ),
        (
            "errors.json",
            "rbac-limitranges-403",
            question("list", LIMIT_RANGES, "production"),
            "cannot list limitranges in namespace production as alice (the RBAC below grants this permission)",
        ),
        (
            "errors.json",
            "rbac-watch-403",
            question("watch", PODS),
            "cannot watch pods as alice (the RBAC below grants this permission)",
        ),
        (
            "errors_rbac_metrics.json",
            "rbac-node-proxy-403",
            question("get", NODES, subresource="proxy"),
            "cannot get nodes/proxy as limited (the RBAC below grants this permission)",
        ),
        (
            "errors_rbac_metrics.json",
            "rbac-metrics-403",
            question("list", POD_METRICS),
            "cannot list pods.metrics.k8s.io as limited (the RBAC below grants this permission)",
        ),
        ("errors.json", "pod-not-found-404", question("get", PODS), 'cannot get pods: pods "nope" not found'),
        ("errors.json", "unknown-group-404", question("list", PODS), "cannot list pods: 404 page not found"),
        (
            "errors.json",
            "bad-label-selector-400",
            question("list", PODS),
            "cannot list pods: 400 unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "errors.json",
            "resource-version-in-the-future-504",
            question("list", PODS),
            "cannot list pods: 504 Timeout: Too large resource version: 99999999, current: 1475",
        ),
        (
            "errors.json",
            "flow-control-429",
            question("list", PODS),
            "cannot list pods: 429 Too many requests, please try again later.",
        ),
        (
            "errors_rbac_metrics.json",
            "metrics-api-registered-no-service-503",
            question("list", POD_METRICS),
            "cannot list pods.metrics.k8s.io: 503 service unavailable",
        ),
        (
            "node_proxy.json",
            "node-proxy-kubelet-down",
            question("get", NODES, subresource="proxy"),
            "cannot get nodes/proxy: 503 error trying to reach service: dial tcp 10.77.0.1:10250: connect: connection refused",  # noqa: E501
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith(tuple("0123456789")) else "",
)
def test_what_the_recorded_server_said_is_one_line(file, name, asked, line):
    assert str(refused(file, name, asked)) == f"{WHERE}: {line}"


@pytest.mark.parametrize("file", ["errors.json", "errors_rbac_metrics.json", "node_proxy.json"])
def test_every_recorded_error_has_its_kind_and_one_line(file):
    kinds = {401: Unauthorized, 403: Forbidden, 404: NotFound}
    seen = 0
    for each in recorded_json(file):
        code = each.get("http_status", 200)
        if code >= 400:
            error = refused(file, each["name"], question("list", PODS))
            assert type(error) is kinds.get(code, Refused), each["name"]
            assert error.status == code
            assert "\n" not in str(error)
            seen += 1
    assert seen >= 9


def test_a_proxys_page_and_control_characters_are_not_repeated():
    page = refusal(None, status_of(502, b"<html><body>Bad gateway</body></html>"), WHERE)
    assert str(page) == f"{WHERE}: cannot be read: 502"
    text = refusal(None, status_of(500, b"\x1b[2Jboom\n\nagain" + b"x" * 5000), WHERE)
    assert str(text).startswith(f"{WHERE}: cannot be read: 500 ?[2Jboom againxxx")
    assert len(str(text)) < 300


def test_a_redirect_is_not_followed():
    assert isinstance(refusal(None, status_of(302, b""), WHERE), BadAnswer)


@pytest.mark.parametrize(
    ("asked", "user", "kind", "rule", "subject"),
    [
        pytest.param(
            question("list", PODS),
            "alice",
            "ClusterRole",
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
            {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"},
            id="a user, all namespaces",
        ),
        pytest.param(
            question("list", POD_METRICS, "shop"),
            "system:serviceaccount:tools:podqos",
            "Role",
            {"apiGroups": ["metrics.k8s.io"], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
            {"kind": "ServiceAccount", "namespace": "tools", "name": "podqos"},
            id="a service account, one namespace",
        ),
        pytest.param(
            RBACQuestion("get", "nodes/proxy"),
            'odd "name": x',
            "ClusterRole",
            {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]},
            {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": 'odd "name": x'},
            id="a subresource",
        ),
    ],
)
def test_the_rbac_grants_what_was_refused(asked, user, kind, rule, subject):
    role, binding = yaml.safe_load_all(role_for(asked, user))
    assert (role["kind"], binding["kind"]) == (kind, f"{kind}Binding")
    assert role["rules"] == [rule]
    assert binding["subjects"] == [subject]
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": kind,
        "name": role["metadata"]["name"],
    }
    assert role["metadata"].get("namespace") == binding["metadata"].get("namespace") == (asked.namespace or None)


def test_what_is_granted_to_one_user_or_for_one_group_is_not_taken_from_another():
    granted = [
        list(yaml.safe_load_all(role_for(asked, user)))
        for asked in (question("list", PODS), question("list", POD_METRICS))
        for user in ("alice", "https://issuer/%41#bob smith")
    ]
    assert len({role["metadata"]["name"] for role, _ in granted}) == 2
    assert len({binding["metadata"]["name"] for _, binding in granted}) == 4
    assert not any({*"/%"} & {*binding["metadata"]["name"]} for _, binding in granted)


def test_a_kubelet_names_who_asked_in_words_of_its_own():
    said = (
        b"Forbidden (user=system:serviceaccount:shop:reader, verb=get, resource=nodes, subresource(s)=[configz proxy])"
    )
    error = refusal(question("get", NODES, subresource="configz"), status_of(403, said), WHERE)

    assert error.what == "cannot get nodes/configz as system:serviceaccount:shop:reader"
    assert "resources: [nodes/configz]" in error.role


def test_no_rights_are_offered_to_everyone():
    said = status_of(
        403, b'{"kind":"Status","code":403,"message":"nodes is forbidden: User \\"system:anonymous\\" cannot"}'
    )
    error = refusal(question("list", NODES), said, WHERE, identity="none")

    assert isinstance(error, Forbidden)
    assert error.role == ""
    assert "cannot list nodes: not logged in (system:anonymous) (log in; the credentials were none)" in str(error)


def test_a_path_of_the_server_itself_is_granted_as_such():
    role, _ = yaml.safe_load_all(role_for(RBACQuestion("get", "/version"), "alice"))
    assert role["rules"] == [{"nonResourceURLs": ["/version"], "verbs": ["get"]}]


def test_a_command_prints_the_rbac_below_the_error(monkeypatch, capsys):
    def run(_arguments):
        with Cluster(Access(server.url, user=User(token="t"))) as cluster:
            cluster.read(NODES)

    forbidden = recorded_answer("errors.json", "rbac-nodes-403")
    parser, command = command_list.parser_of("explain", "podqos")
    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(main, "parser_of", lambda *_: (parser, command))
    with Server(lambda _: forbidden) as server:
        assert main.main(["explain", "-f", "x"]) == main.EXIT_HOST
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == f"podqos: error: {server.url}: cannot list nodes as alice (the RBAC below grants this permission)"
    assert [each["kind"] for each in yaml.safe_load_all("\n".join(rest))] == ["ClusterRole", "ClusterRoleBinding"]
