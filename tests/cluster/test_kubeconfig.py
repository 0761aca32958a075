"""kubeconfig files: merged as kubectl does, and what a context says."""

from __future__ import annotations

from base64 import b64encode

import pytest

from podqos.cluster.access import find_access, read_kubeconfig
from podqos.cluster.kubeconfig import merge
from podqos.errors import InputError

FIRST = b"""
apiVersion: v1
kind: Config
current-context: prod
clusters:
- name: prod
  cluster: {server: "https://prod.example.com:6443/", certificate-authority: pki/ca.crt, tls-server-name: api.internal}
- name: red
  cluster: {server: https://first.example.com}
contexts:
- name: prod
  context: {cluster: prod, user: alice, namespace: shop}
users:
- name: alice
  user: {token: first, tokenFile: /run/token, as: bob, as-groups: [ops, dev], as-uid: "7", as-user-extra: {x: [a, b]}}
"""
SECOND = b"""
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: red
  cluster: {server: https://second.example.com, insecure-skip-tls-verify: true}
contexts:
- {name: dev, context: {cluster: red, user: alice}}
- {name: prod, context: {cluster: red, user: alice, namespace: other}}
users:
- name: alice
  user: {token: second, client-certificate: alice.crt}
"""


def test_the_first_file_that_has_an_entry_wins_and_wins_whole():
    config = merge([("/a/config", FIRST), ("/b/config", SECOND)])
    assert config.current_context == "prod"
    assert sorted(config.contexts) == ["dev", "prod"]
    assert config.clusters["red"].server == "https://first.example.com"
    assert not config.clusters["red"].insecure_skip_tls_verify
    assert config.users["alice"].token == "first"
    assert config.users["alice"].client_certificate == ""
    assert config.contexts["prod"].namespace == "shop"


def test_a_context_says_server_namespace_and_user():
    access = merge([("/a/config", FIRST)]).access()
    assert access.server == "https://prod.example.com:6443"
    assert (access.namespace, access.context, access.tls_server_name) == ("shop", "prod", "api.internal")
    user = access.user
    assert (user.impersonate, user.impersonate_uid, user.impersonate_groups) == ("bob", "7", ("ops", "dev"))
    assert user.impersonate_extra == {"x": ("a", "b")}
    assert merge([("/b/config", SECOND)]).access().namespace == "default"


@pytest.mark.parametrize(
    ("settings", "server"),
    [
        ("", "http://host:8080"),
        (", insecure-skip-tls-verify: true", "https://host:8080"),
        (", certificate-authority: x", "https://host:8080"),
    ],
)
def test_a_server_without_a_scheme_is_spoken_to_by_tls_if_there_are_settings_for_it(settings, server):
    cluster = f"{{name: c, cluster: {{server: 'host:8080'{settings}}}}}"
    text = f"clusters: [{cluster}]\ncontexts: [{{name: a, context: {{cluster: c}}}}]"
    assert merge([("f", text.encode())]).access("a").server == server


def test_files_in_a_kubeconfig_count_from_its_directory():
    config = merge([("/a/config", FIRST), ("/b/config", SECOND.replace(b"alice", b"carol"))])
    assert config.clusters["prod"].certificate_authority == "/a/pki/ca.crt"
    assert config.users["alice"].token_file == "/run/token"
    assert config.users["carol"].client_certificate == "/b/carol.crt"


def test_data_is_base64_of_pem():
    pem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
    text = b"clusters: [{name: c, cluster: {server: https://x, certificate-authority-data: %s}}]"
    config = merge([("f", text % b64encode(pem.encode()))])
    assert config.clusters["c"].certificate_authority_data == pem
    with pytest.raises(InputError, match="f: cluster c: certificate-authority-data is not valid base64"):
        merge([("f", text % b"x***")])


def test_null_and_missing_sections_are_empty():
    config = merge([("f", b"apiVersion: v1\nkind: Config\nclusters: null\ncontexts: null\nusers: null\n"), ("g", b"")])
    assert (config.clusters, config.contexts, config.users, config.current_context) == ({}, {}, {}, "")


@pytest.mark.parametrize(
    ("config", "context", "error"),
    [
        pytest.param(
            FIRST,
            "prud",
            "f: no such context: 'prud' (did you mean prod? the contexts are prod)",
            id="a mistyped context",
        ),
        pytest.param(
            FIRST.replace(b"user: alice,", b"user: eve,"), None, "f: context prod: no user 'eve'", id="no user"
        ),
        pytest.param(
            FIRST.replace(b"cluster: prod,", b"cluster: x,"), None, "f: context prod: no cluster 'x'", id="cluster"
        ),
        pytest.param(
            b"kind: Config", None, "f: no current context (set KUBECONFIG to a kubeconfig with contexts)", id="nothing"
        ),
        pytest.param(
            SECOND.replace(b"current-context: dev", b""), None, "choose one with context: dev and prod", id="none"
        ),
        pytest.param(b"kind: Pod", None, "f: a Pod, no kubeconfig", id="another kind"),
        pytest.param(b"[]", None, "f: not a kubeconfig", id="a list"),
        pytest.param(b"a: b\n---\nb: c", None, "f: 2 documents", id="two documents"),
        pytest.param(
            b"kind: Config\nclusters: {a: b}", None, "f: clusters: expected `array`, got `object`", id="a type"
        ),
        pytest.param(
            b"clusters: [{name: a, cluster: x}]", None, "f: clusters[0].cluster: expected `object`", id="a field"
        ),
        pytest.param(b"a: [", None, "f:2:1: broken YAML", id="broken YAML"),
        pytest.param(b"\xff\xfe\x00", None, "f:1:1:", id="no text"),
        pytest.param(
            FIRST.replace(b"https://prod.example.com:6443/", b"ftp://x"), None, "'ftp://x' is not a valid", id="ftp"
        ),
        pytest.param(
            FIRST.replace(b"https://prod.example.com:6443/", b"https://x:99999"), None, "not a valid address", id="port"
        ),
        pytest.param(
            FIRST.replace(b"https://prod.example.com:6443/", b""), None, "prod: the server is missing", id="no server"
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(config, context, error):
    with pytest.raises(InputError) as caught:
        merge([("f", config)]).access(context)
    assert error in str(caught.value)
    assert "\n" not in str(caught.value)


def test_many_contexts_are_not_all_named():
    contexts = b"".join(b"- {name: c%02d, context: {}}\n" % number for number in range(30))
    with pytest.raises(InputError, match=r"the contexts are c00, .*, c07 and 22 more"):
        merge([("f", b"contexts:\n" + contexts)]).access("zzz")


def test_kubeconfig_lists_files_of_which_some_may_be_missing(tmp_path):
    (tmp_path / "a").write_bytes(FIRST)
    (tmp_path / "b").write_bytes(SECOND)
    environment = {"KUBECONFIG": f"{tmp_path}/none:{tmp_path}/b::{tmp_path}/a"}
    assert read_kubeconfig(environment=environment).current_context == "dev"
    assert find_access("prod", environment=environment).server == "https://second.example.com"


def test_without_kubeconfig_it_is_the_file_in_the_home_directory(tmp_path):
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_bytes(FIRST)
    assert find_access(environment={"HOME": str(tmp_path)}).context == "prod"


def test_a_named_file_must_exist(tmp_path):
    with pytest.raises(InputError, match="none: cannot be read: No such file"):
        find_access(kubeconfig=str(tmp_path / "none"))


@pytest.fixture
def service_account(tmp_path):
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    for name, text in (("token", "t1\n"), ("ca.crt", "pem"), ("namespace", "shop")):
        (directory / name).write_text(text)
    return str(directory)


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_in_a_pod_it_is_the_pods_own_cluster(tmp_path, service_account, host, server):
    environment = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    access = find_access(environment=environment, service_account=service_account)
    assert (access.server, access.namespace) == (server, "shop")
    assert access.user.token_file == f"{service_account}/token"
    assert access.ca_file == f"{service_account}/ca.crt"


def test_a_kubeconfig_counts_before_the_pods_own_cluster(tmp_path, service_account):
    (tmp_path / "a").write_bytes(FIRST)
    environment = {
        "KUBECONFIG": str(tmp_path / "a"),
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    assert find_access(environment=environment, service_account=service_account).context == "prod"


def test_without_any_cluster_it_says_where_it_looked(tmp_path):
    with pytest.raises(InputError) as caught:
        find_access(environment={"KUBECONFIG": "/none", "HOME": str(tmp_path)}, service_account="/none")
    assert str(caught.value) == "/none: no kubeconfig found (set KUBECONFIG, or give files with files)"
