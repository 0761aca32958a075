"""Who asks: tokens, token files, certificates, exec plugins, impersonation; each kept fresh."""

from __future__ import annotations

import json
import stat
import sys
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from cluster.serving import Server, status
from podqos.cluster import exec_plugin
from podqos.cluster.cluster import Cluster
from podqos.cluster.credentials import Credentials
from podqos.cluster.kubeconfig import Access, AuthProvider, ExecConfig, ExecVariable, User
from podqos.cluster.resources import NODES
from podqos.errors import ClusterError, InputError, Unauthorized

V1 = "client.authentication.k8s.io/v1"
EMPTY = b'{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'


def only_for(token):
    return lambda request: (
        EMPTY if request.header("Authorization") == f"Bearer {token()}" else status(401, "Unauthorized")
    )


def access_for(server, **user):
    return Access(server.url, context="test", user=User(**user))


def plugin_at(folder, script, **settings):
    """Return an exec plugin that is a Python script."""
    path = folder / "plugin"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time, pathlib\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ExecConfig(**{"command": str(path), "api_version": V1, **settings})


def counting(directory, expires: datetime | None = None):
    """Return a script that prints token-1, then token-2, and so on."""
    expiry = f", 'expirationTimestamp': '{expires:%Y-%m-%dT%H:%M:%SZ}'" if expires else ""
    return (
        f"count = pathlib.Path({str(directory / 'count')!r})\n"
        "number = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(number))\n"
        f"status = {{'token': f'token-{{number}}'{expiry}}}\n"
        f"print(json.dumps({{'apiVersion': '{V1}', 'kind': 'ExecCredential', 'status': status}}))"
    )


@pytest.mark.parametrize(
    ("user", "described"),
    [
        ({"token": "t"}, "the token in the kubeconfig"),
        ({"token": "t", "username": "a"}, "the token in the kubeconfig"),
        ({"username": "a", "password": "b"}, "the password of a"),
        ({"token_file": "/t", "token": "t"}, "the token in /t"),
        ({"exec": ExecConfig(command="login", api_version=V1)}, "from exec plugin login"),
        ({}, "none"),
    ],
    ids=["token", "token first", "password", "token file", "exec", "none"],
)
def test_an_error_says_which_credentials_were_used_and_none_of_them(user, described):
    assert Credentials(Access("https://localhost", user=User(**user))).described() == described


def test_a_token_is_sent_with_every_request():
    with Server(only_for(lambda: "t")) as server, Cluster(access_for(server, token="t")) as cluster:
        assert cluster.read(NODES) == []


def test_a_password_is_sent_where_there_is_no_token():
    with Server(lambda _: EMPTY) as server, Cluster(access_for(server, username="a", password="b")) as cluster:
        cluster.read(NODES)
    assert server.requests[0].header("Authorization") == "Basic YTpi"


def test_a_token_file_that_changes_is_read_again(tmp_path):
    path = tmp_path / "token"
    path.write_text("one\n")
    with Server(only_for(lambda: current)) as server, Cluster(access_for(server, token_file=str(path))) as cluster:
        current = "one"
        cluster.read(NODES)
        current = "another"
        path.write_text("another")
        cluster.read(NODES)
        # While a new one is being written there may be none: the last counts.
        path.unlink()
        cluster.read(NODES)
    assert len(server.requests) == 3


def test_a_token_file_counts_before_a_token(tmp_path):
    (tmp_path / "token").write_text("file")
    user = {"token": "written", "token_file": str(tmp_path / "token")}
    with Server(only_for(lambda: "file")) as server, Cluster(access_for(server, **user)) as cluster:
        cluster.read(NODES)


def test_a_token_that_would_break_the_request_is_not_sent():
    with (
        Server(lambda _: EMPTY) as server,
        Cluster(access_for(server, token="a\r\nX-Evil: b")) as cluster,
        pytest.raises(InputError, match="the token contains invalid characters"),
    ):
        cluster.read(NODES)
    assert not server.requests


def test_a_token_file_that_is_not_there_is_one_line():
    with (
        Server(lambda _: EMPTY) as server,
        Cluster(access_for(server, token_file="/none/token")) as cluster,
        pytest.raises(InputError, match=r"^/none/token: cannot be read: No such file or directory"),
    ):
        cluster.read(NODES)


def test_secrets_are_not_printed():
    user = User(
        token="hush", password="hush", client_key_data="hush", exec=ExecConfig(env=(ExecVariable("T", "hush"),))
    )
    assert "hush" not in repr(Access("https://x", user=user))
    assert "hush" not in repr(exec_plugin.ExecStatus(token="hush"))


def test_impersonation_is_asked_for_in_headers():
    user = {
        "token": "t",
        "impersonate": "bob",
        "impersonate_uid": "7",
        "impersonate_groups": ("ops", "dev"),
        "impersonate_extra": {"Scopes/x": ("a", "b")},
    }
    with Server(lambda _: EMPTY) as server, Cluster(access_for(server, **user)) as cluster:
        cluster.read(NODES)
    sent = [(name, value) for name, value in server.requests[0].headers if name.startswith("Impersonate")]
    assert sent == [
        ("Impersonate-User", "bob"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Extra-scopes%2Fx", "a"),
        ("Impersonate-Extra-scopes%2Fx", "b"),
    ]


def test_an_exec_plugin_runs_once_while_its_token_is_good(tmp_path):
    plugin = plugin_at(tmp_path, counting(tmp_path, datetime.now(UTC) + timedelta(hours=1)))
    with Server(only_for(lambda: "token-1")) as server, Cluster(access_for(server, exec=plugin)) as cluster:
        cluster.read(NODES)
        cluster.read(NODES)
    assert len(server.requests) == 2


def test_an_exec_plugin_runs_again_when_its_token_has_expired(tmp_path):
    plugin = plugin_at(tmp_path, counting(tmp_path, datetime.now(UTC) - timedelta(hours=1)))
    with Server(lambda _: EMPTY) as server, Cluster(access_for(server, exec=plugin)) as cluster:
        cluster.read(NODES)
        cluster.read(NODES)
    assert [request.header("Authorization") for request in server.requests] == ["Bearer token-1", "Bearer token-2"]


def test_an_exec_plugin_runs_again_after_a_401_and_the_question_is_repeated(tmp_path):
    plugin = plugin_at(tmp_path, counting(tmp_path))
    with Server(only_for(lambda: "token-2")) as server, Cluster(access_for(server, exec=plugin)) as cluster:
        assert cluster.read(NODES) == []
    assert len(server.requests) == 2


def test_a_401_that_stays_is_told_with_the_credentials_that_were_used(tmp_path):
    plugin = plugin_at(tmp_path, counting(tmp_path))
    with (
        Server(only_for(lambda: "none")) as server,
        Cluster(access_for(server, exec=plugin)) as cluster,
        pytest.raises(Unauthorized) as caught,
    ):
        cluster.read(NODES)
    assert len(server.requests) == 2
    assert str(caught.value) == (
        f"{server.url}: cannot list nodes: 401 Unauthorized "
        f"(log in again; the credentials were from exec plugin {plugin.command})"
    )


def test_an_exec_plugin_is_told_the_cluster_and_its_own_variables(tmp_path):
    seen = str(tmp_path / "seen")
    script = f"pathlib.Path({seen!r}).write_text(os.environ['KUBERNETES_EXEC_INFO'] + os.environ['ROLE'])\n"
    script += counting(tmp_path)
    plugin = plugin_at(tmp_path, script, provide_cluster_info=True, env=(ExecVariable("ROLE", "#reader"),))
    with Server(lambda _: EMPTY) as server:
        access = replace(access_for(server, exec=plugin), ca_data="PEM", tls_server_name="api")
        with Cluster(access) as cluster:
            cluster.read(NODES)
    seen, _, role = (tmp_path / "seen").read_text().partition("#")
    assert role == "reader"
    assert json.loads(seen) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {"server": server.url, "tls-server-name": "api", "certificate-authority-data": "UEVN"},
        },
    }


def test_a_command_with_a_slash_counts_from_the_kubeconfig(tmp_path):
    plugin = plugin_at(tmp_path, counting(tmp_path), command="./plugin", directory=str(tmp_path))
    with Server(only_for(lambda: "token-1")) as server, Cluster(access_for(server, exec=plugin)) as cluster:
        assert cluster.read(NODES) == []


@pytest.mark.parametrize(
    ("script", "settings", "error"),
    [
        pytest.param(
            "sys.exit('no session\\nplease log in')", {}, "failed with exit code 1: please log in", id="fails"
        ),
        pytest.param("print('hello')", {}, "its output is not an ExecCredential", id="prints something else"),
        pytest.param("pass", {}, "its output is not an ExecCredential", id="prints nothing"),
        pytest.param("print('{}')", {}, "it printed something of no version", id="prints nothing of use"),
        pytest.param(
            f"print(json.dumps(dict(kind='ExecCredential', apiVersion='{V1}beta1', status=dict(token='x'))))",
            {},
            "it printed ExecCredential of client.authentication.k8s.io/v1beta1",
            id="prints another version",
        ),
        pytest.param(
            f"print(json.dumps(dict(kind='ExecCredential', apiVersion='{V1}')))",
            {},
            "it printed neither a token nor a certificate",
            id="prints no credentials",
        ),
        pytest.param(
            f"print(json.dumps(dict(kind='ExecCredential', apiVersion='{V1}', status=dict(clientKeyData='x'))))",
            {},
            "it printed only one of certificate and key",
            id="prints half",
        ),
        pytest.param("print('x' * 5_000_000)", {}, "its output is not an ExecCredential", id="prints megabytes"),
        pytest.param("time.sleep(60)", {}, "no response within 0.5 s", id="hangs"),
        pytest.param("os.fork() or time.sleep(60); os._exit(3)", {}, "failed with exit code 3", id="leaves a child"),
        pytest.param("", {"command": "no-such-plugin"}, "not found (install it, or fix", id="is missing"),
        pytest.param(
            "", {"command": "no-such-plugin", "install_hint": "brew install\n x"}, "(brew install x)", id="hint"
        ),
        pytest.param("", {"interactive_mode": "Always"}, "needs a terminal", id="wants to ask"),
    ],
)
def test_what_is_wrong_with_an_exec_plugin_is_one_line(tmp_path, monkeypatch, script, settings, error):
    plugin = plugin_at(tmp_path, script, **settings)
    monkeypatch.setattr("sys.stdin", None)
    seconds = 0.5 if "sleep(60)" in script and "fork" not in script else 300.0
    with pytest.raises(ClusterError) as caught:
        exec_plugin.run_plugin(plugin, Access("https://x"), seconds=seconds)
    assert error in str(caught.value)
    assert str(caught.value).startswith(f"exec plugin {plugin.command}: ")
    assert "\n" not in str(caught.value)


def test_an_old_version_of_the_plugin_interface_is_refused():
    with pytest.raises(InputError, match="apiVersion client.authentication.k8s.io/v1alpha1".replace(".", r"\.")):
        exec_plugin.run_plugin(
            ExecConfig("x", api_version="client.authentication.k8s.io/v1alpha1"), Access("https://x")
        )


def test_an_auth_provider_is_refused_with_what_to_use_instead():
    access = Access("https://x", context="c", user=User(auth_provider=AuthProvider("gcp")))
    with pytest.raises(InputError, match=r"user of context c: auth-provider gcp is not supported \(use an exec plugin"):
        Cluster(access)
