"""Nothing another site, another visitor or a rude client does reaches what the page shows."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import socket
import subprocess
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from serve.running import LONG, POD, running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manifests")
    (folder / "pod.yaml").write_bytes(POD)
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with running(folder) as server:
        yield server


@pytest.fixture
def visitor(server):
    return server.visitor()


def cpu_seconds(pid):
    """Return the CPU time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def goes_on(visitor):
    assert visitor.value("/api/sources/start/cluster")["pods"][0]["name"] == "leaky"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost@evil.example", "", "a b", "[::1"]
)
def test_a_server_that_is_called_by_another_name_answers_nothing(visitor, host):
    for path in ("/", "/api/session", "/api/sources/start/cluster"):
        status, message = visitor.error(path, Host=host)
        assert status == 421, path
        assert "unknown host name" in message


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:9000", "10.0.0.7"])
def test_addresses_and_localhost_are_its_names_also_through_a_forwarded_port(visitor, host, server):
    assert visitor.ask("/api/session", Host=host.format(port=server.port))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_another_site_cannot_upload_or_begin_or_remove_anything(visitor, headers):
    sent = {name.replace("-", "_"): value for name, value in headers.items()}
    for method, path in (("POST", "/api/sources?name=a.yaml"), ("POST", "/api/jobs"), ("DELETE", "/api/sources/start")):
        status, message = visitor.error(path, POD, method, **sent)
        assert status == 403
        assert "other sites" in message


def test_another_site_cannot_read_but_may_link_to_the_page(visitor):
    assert visitor.ask("/api/sources/start/cluster", Sec_Fetch_Site="cross-site")[0] == 403
    assert visitor.ask("/api/live", Sec_Fetch_Site="same-site")[0] == 403
    assert visitor.ask("/", Sec_Fetch_Site="cross-site")[0] == 200


def test_the_page_of_this_server_may_do_all_of_it(visitor, server):
    own = {"Origin": f"http://127.0.0.1:{server.port}", "Sec_Fetch_Site": "same-origin"}
    assert visitor.ask("/api/sources?name=a.yaml", POD, **own)[0] == 201


def test_no_answer_may_be_read_by_other_origins_framed_or_guessed_at(visitor):
    for path, kind in (("/", "text/html"), ("/api/session", "application/json"), ("/api/nothing", "application/json")):
        _, headers, _ = visitor.ask(path, Origin=f"http://127.0.0.1:{visitor.port}")
        assert headers["content-type"].startswith(kind)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert not any(name.lower().startswith("access-control-") for name in headers)
    policy = visitor.ask("/")[1]["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/api/sources/../../etc/passwd",
        "/api/sources/%2fetc%2fpasswd/cluster",
        "/api/jobs/..%2f..%2fetc%2fpasswd/result",
        "/api/sources/start/..%2f..%2fetc",
        "/src/podqos/version.py",
        "/api/",
        "/api",
    ],
)
def test_no_path_leads_to_a_file(visitor, path):
    status, _, body = visitor.ask(path)
    assert status == 404
    assert b"root:" not in body


def test_methods_that_mean_nothing_here_are_refused(visitor):
    for method in ("PUT", "PATCH", "OPTIONS", "TRACE", "POST", "DELETE"):
        status, headers, _ = visitor.ask("/api/session", b"{}", method)
        assert status == 404
        assert "access-control-allow-origin" not in headers


def test_the_head_of_an_answer_comes_without_its_body(visitor):
    for path in ("/", "/api/session", "/api/sources/start/cluster"):
        status, headers, body = visitor.ask(path, method="HEAD")
        assert (status, body) == (200, b"")
        assert int(headers["content-length"]) > 0


# ---- what is uploaded ------------------------------------------------------------------------------------------------


def test_visitors_do_not_see_what_others_upload_or_run(server):
    one, other = server.visitor(), server.visitor()
    own = one.upload({"a.yaml": POD})["id"]
    run = one.begin({"long.yaml": LONG, "pod.yaml": POD})
    other.value("/api/session")
    for path in (f"/api/sources/{own}", f"/api/sources/{own}/cluster", f"/api/jobs/{run}", f"/api/jobs/{run}/result"):
        status, message = other.error(path)
        assert status == 404
        assert "another visitor" in message
    assert other.error(f"/api/jobs/{run}", method="DELETE")[0] == 404
    assert other.error("/api/jobs", json.dumps({"kind": "blast", "source": own}).encode())[0] == 404
    assert [each["id"] for each in other.value("/api/session")["sources"]] == ["start"]
    assert other.value("/api/jobs") == []
    assert own in [each["id"] for each in one.value("/api/session")["sources"]]
    one.value(f"/api/jobs/{run}", method="DELETE")


def test_what_the_command_was_started_with_cannot_be_changed_by_visitors(visitor):
    assert visitor.error("/api/sources/start", method="DELETE")[0] == 404
    assert visitor.error("/api/sources?name=a.yaml&to=start", POD)[0] == 404
    goes_on(visitor)


_LISTENING = """
import pickle, sys
from podqos.errors import InputError
from podqos.serve.sources import read_given
opened, watching = [], False

def heard(event, arguments):
    if watching and event in {"open", "os.listdir", "os.scandir", "subprocess.Popen", "os.exec", "os.fork"}:
        opened.append((event, str(arguments[0])))

sys.addaudithook(heard)
for files in pickle.load(sys.stdin.buffer):
    for watching in (False, True):  # what is imported is opened in the first turn
        try:
            said = read_given(files).kind
        except InputError as error:
            said = str(error)
    watching = False
    print(said)
print(opened)
"""


def test_names_are_never_opened(tmp_path):
    """Whatever an upload is called and refers to, no file is opened for it."""
    secret = tmp_path / "secret.yaml"
    secret.write_bytes(POD)
    (tmp_path / "kustomization.yaml").write_text("resources: [secret.yaml]")
    uploads = [
        {str(secret): b"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [secret.yaml]\n"},
        {f"{tmp_path}/kustomization.yaml": f"resources: [{secret}]\n".encode()},
        {f"{tmp_path}/Chart.yaml": b"apiVersion: v2\nname: a\nversion: 1.0.0\n", "pod.yaml": POD},
        {"s.yaml": LONG.replace(b"[pod.yaml]", f"[{secret}]".encode())},
        {f"{tmp_path}/s.yaml": LONG.replace(b"[pod.yaml]", b"[secret.yaml, ../secret.yaml, .]")},
        {"s.yaml": LONG.replace(b"name: worker-1", f"name: a, kubelet: {secret}".encode()), "pod.yaml": POD},
        {
            "s.yaml": LONG.replace(b"10Mi + 64Mi per minute", f"{{samples: {{file: {secret}}}}}".encode()),
            "pod.yaml": POD,
        },
        {"-": POD},
        {str(secret): b"pod,memory\nleaky,1Mi\n", "pod.yaml": POD},
        {str(secret): b"Out of memory: Killed process 1 (a)\n"},
    ]
    done = subprocess.run(
        [sys.executable, "-c", _LISTENING], input=pickle.dumps(uploads), capture_output=True, check=True, cwd=tmp_path
    )
    *said, opened = done.stdout.decode().splitlines()
    assert opened == "[]"
    missing = [number for number, each in enumerate(said) if "not among the given files" in each]
    assert missing == [3, 4, 5, 6]


def test_a_scenario_finds_only_what_was_uploaded_with_it(visitor, folder):
    scenario = LONG.replace(b"pod.yaml", str(folder / "pod.yaml").encode().replace(b"pod.yaml", b"other.yaml"))
    (folder.parent / "other.yaml").write_bytes(POD)
    status, message = visitor.error("/api/sources?name=s.yaml", scenario)
    assert status == 422
    assert "not among the given files" in message


def bomb():
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(["apiVersion: v1", "kind: Pod", *lines]).encode()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("bomb.yaml", bomb()),
        ("deep.yaml", b"apiVersion: v1\nkind: " + b"[" * 100_000),
        ("deep.json", b'{"kind":' * 50_000),
        ("bomb.gz", gzip.compress(b"\0" * (100 << 20))),
        ("cut.gz", gzip.compress(b"kind: Pod" * 1000)[:-20]),
        ("nul.yaml", b"\0" * 1000),
        ("binary.yaml", bytes(range(256)) * 100),
        ("huge.yaml", POD.replace(b"100Mi", b"9" * 100_000)),
        ("run.json", b'{"seed":1,"endUs":2,"kubernetesVersion":"1"}'),
        ("snapshot.jsonl", b'{"apiVersion":"podqos.dev/v1alpha1","kind":"ClusterSnapshot"}\n{"kind":[]}'),
        ("usage.csv", b"pod,memory\na,1Mi\n"),
        ("empty.yaml", b"  \n"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",  # what is compressed has the time in it
)
def test_hostile_files_are_refused_or_shown_with_their_problems(visitor, name, body):
    status, _, answer = visitor.ask(f"/api/sources?name={name}", body)
    assert status in {201, 422}
    value = json.loads(answer)
    assert value["error"]["message"] if status == 422 else value["problems"]
    goes_on(visitor)


def test_a_million_replicas_are_more_than_a_page_shows(visitor):
    many = (
        b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1000000, selector: "
        b"{matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}"
    )
    status, message = visitor.error("/api/sources?name=many.yaml", many)
    assert status == 422
    assert "1,000,000 pods" in message


SCENARIO = """apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: many}}
spec:
  duration: 1m
  manifests: [pods.yaml]
  nodes: [{nodes}]
"""
DEPLOYMENT = b"""apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  replicas: 2000
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
"""
DAEMON_SETS = b"---\n".join(
    DEPLOYMENT.replace(b"Deployment", b"DaemonSet")
    .replace(b"  replicas: 2000\n", b"")
    .replace(b"{name: a}", b"{name: d%d}" % number)
    for number in range(20)
)


def nodes(count, parts=1):
    names = (f"{{name: w{number}, count: {count}, capacity: {{cpu: 4, memory: 16Gi}}}}" for number in range(parts))
    return SCENARIO.format(nodes=", ".join(names)).encode()


@pytest.mark.parametrize(
    ("scenario", "pods", "what"),
    [
        pytest.param(nodes(100_000), POD, "100,000 nodes; a page shows at most 5,000", id="nodes"),
        pytest.param(nodes(100_000, 1000), POD, "100,000,000 nodes; a page shows at most 5,000", id="nodes by parts"),
        pytest.param(nodes(4_000), DAEMON_SETS, "80,000 pods; a page shows at most 50,000", id="pods of DaemonSets"),
        pytest.param(nodes(500), DEPLOYMENT, "2,000 of 2,000 pods to be scheduled on 500 nodes", id="placements"),
    ],
)
def test_a_small_scenario_of_very_many_nodes_is_refused_before_they_are_made(visitor, server, scenario, pods, what):
    body = {
        "files": [{"name": n, "data": b64encode(d).decode()} for n, d in (("s.yaml", scenario), ("pods.yaml", pods))]
    }
    for _ in range(2):
        status, message = visitor.error(
            "/api/sources", json.dumps(body).encode(), Content_Type="application/vnd.podqos.files+json"
        )
        assert status == 422
        assert what in message
        assert "\n" not in message
    goes_on(server.visitor())


def test_pods_on_more_nodes_than_a_page_shows_are_refused(visitor):
    pods = b"---\n".join(POD.replace(b"spec:", b"spec:\n  nodeName: n%d" % number) for number in range(5001))
    status, message = visitor.error("/api/sources?name=many.yaml", pods)
    assert status == 422
    assert "5,001 nodes; a page shows at most 5,000" in message


@pytest.mark.slow
def test_files_that_are_added_past_the_limit_are_refused_and_what_was_there_stays(visitor):
    one, other = (gzip.compress(POD.replace(b"leaky", name) + b"#" * (33 << 20), 1) for name in (b"a", b"b"))
    source = visitor.upload({"a.yaml": one})
    status, message = visitor.error(f"/api/sources?to={source['id']}&name=b.yaml", other)
    assert status == 413
    assert "more than 64 MiB in all" in message
    assert visitor.value(f"/api/sources/{source['id']}")["files"] == source["files"]
    goes_on(visitor)


def test_files_that_are_added_at_the_same_time_are_all_there_or_refused(visitor):
    source = visitor.upload({"pod.yaml": POD})
    paths = [f"/api/sources?to={source['id']}&name={number}.yaml" for number in range(6)]
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda path: visitor.ask(path, POD)[0], paths))
    assert set(answers) <= {201, 409}
    added = {f"{number}.yaml" for number, status in enumerate(answers) if status == 201}
    assert added
    assert set(visitor.value(f"/api/sources/{source['id']}")["files"]) == {"pod.yaml", *added}


def test_markup_in_names_stays_text(visitor):
    source = visitor.upload({"<script>alert(1)</script>.yaml": POD.replace(b"leaky", b"'</script><b>'")})
    _, headers, body = visitor.ask(f"/api/sources/{source['id']}")
    assert headers["content-type"] == "application/json"
    assert "script" in json.loads(body)["name"]


def test_what_is_asked_for_is_decoded_or_refused(visitor):
    for body in (b"", b"[]", b"{", b'{"kind":"rm -rf"}', b'{"kind":"run","source":"start","x":1}', b"[" * 200_000):
        assert visitor.error("/api/jobs", body)[0] == 400
    status, message = visitor.error("/api/jobs", b'{"kind":"run","source":"start"}')
    assert status == 422
    assert "only a scenario can be run" in message
    assert visitor.error("/api/sources/start/pods?pod=../../etc/passwd")[0] == 422
    assert visitor.error("/api/compare?before=a&after=b")[0] == 404


# ---- rude clients ----------------------------------------------------------------------------------------------------


def test_large_bodies_are_refused_where_they_are_not_expected(visitor):
    with socket.create_connection(("127.0.0.1", visitor.port), timeout=300) as client:
        client.sendall(b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", visitor.port), timeout=300) as client:
        client.sendall(b"POST /api/sources HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", visitor.port), timeout=300) as client:
        client.sendall(b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.sendall(b"40000\r\n" + b"x" * 0x40000 + b"\r\n1000\r\n" + b"x" * 0x1000 + b"\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 413")
    goes_on(visitor)


def test_two_names_in_one_request_are_none(visitor):
    with socket.create_connection(("127.0.0.1", visitor.port), timeout=300) as client:
        client.sendall(b"GET /api/session HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert client.recv(1000).startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


def test_a_thousand_connections_that_say_nothing_keep_nobody_out(visitor):
    with ExitStack() as silent:
        for _ in range(1000):
            silent.enter_context(socket.create_connection(("127.0.0.1", visitor.port), timeout=300))
        goes_on(visitor)
    goes_on(visitor)


def test_a_visitor_has_so_many_streams_and_others_have_theirs(server):
    one, other = server.visitor(), server.visitor()
    one.value("/api/session")
    with ExitStack() as held:
        for _ in range(8):
            next(held.enter_context(one.events("/api/live")))
        for _ in range(192):
            assert one.error("/api/live")[0] == 429
        # Whoever has too many still hears how things are, and others have their own.
        assert "cluster" in [kind for kind, _, _ in one.once()]
        with other.events("/api/live") as events:
            assert "cluster" in [next(events)[0] for _ in range(3)]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/session", {"Cookie": 'a="' + "\\" * 15_000 + '"'}, 200),
        ("/api/session", {"Cookie": ";" * 15_000}, 200),
        ("/api/session?" + "a=%41&" * 2_400, {}, 400),
        ("/?" + "a=%41&" * 2_400, {}, 400),
    ],
    ids=["backslashes in a cookie", "many cookies", "many parameters", "many parameters of the page"],
)
def test_heads_that_take_long_to_parse_cost_little(server, visitor, path, headers, status):
    before = cpu_seconds(server.process.pid)
    for _ in range(20):
        assert visitor.ask(path, **headers)[0] == status
    assert cpu_seconds(server.process.pid) - before < 0.5
