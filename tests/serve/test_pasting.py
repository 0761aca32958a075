"""A text that is pasted into the page: answered as by the command that the page names, bounded, and not kept."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import sys
from pathlib import Path

import pytest

from kernel.oom_logs import CARRIERS, POD, ROWS, cgroup, machine
from podqos.cli.main import main
from podqos.serve.sessions import PASTE_BYTES
from serve.running import running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

LOG = "\n".join(map(CARRIERS["syslog"], [*machine(), *cgroup(ROWS, 102, "java (main) [x]")])).encode()
UID = POD.rpartition("-pod")[2].removesuffix(".slice").replace("_", "-")
KNOWN = f"""apiVersion: v1
kind: Pod
metadata: {{name: db-0, namespace: shop, uid: {UID}}}
spec:
  containers: [{{name: db, image: i, resources: {{limits: {{memory: 1Gi}}, requests: {{memory: 100Mi}}}}}}]
"""
KILLED = f"""{KNOWN}status:
  containerStatuses:
  - name: db
    restartCount: 3
    lastState: {{terminated: {{reason: OOMKilled, exitCode: 137, finishedAt: "2026-01-05T15:19:27Z"}}}}
"""


SNAPSHOT = b'{"apiVersion":"podqos.dev/v1alpha1","kind":"ClusterSnapshot"}\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a folder")
    (folder / "pod.yaml").write_text(KNOWN)
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with running(folder / "pod.yaml") as server:
        yield server


@pytest.fixture
def visitor(server):
    return server.visitor()


@pytest.fixture
def there(folder, monkeypatch):
    """Go to where the server's files are: pages do not name directories of the server."""
    monkeypatch.chdir(folder)


def printed(command, text, monkeypatch, capsys):
    """Return what a command prints of a text on its standard input, as the page would show it."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    podqos, *arguments = shlex.split(command)
    assert podqos == "podqos"
    assert main([*arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("text", [LOG, KILLED.encode(), b"nothing of interest\n"], ids=["log", "pod", "nothing"])
@pytest.mark.parametrize("query", ["", "?source=start"])
@pytest.mark.usefixtures("there")
def test_a_pasted_text_is_answered_as_by_the_command_that_is_shown(visitor, text, query, monkeypatch, capsys):
    answer = visitor.value(f"/api/autopsy{query}", text, status=200)
    for step in answer["page"]["nextSteps"]:  # the path was quoted because of its directory
        step["command"] = step["command"].replace("'pod.yaml'", "pod.yaml")
    assert answer["page"] == printed(answer["command"], text, monkeypatch, capsys)
    assert answer["problems"] == []


@pytest.mark.parametrize("text", [LOG, LOG.partition(b"java (main) [x] invoked")[0], KILLED.encode(), b"nothing\n"])
def test_the_page_leads_with_the_first_line_of_the_command(visitor, text, monkeypatch, capsys):
    lead = visitor.value("/api/autopsy", text, status=200)["page"]["headline"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["autopsy", "-"]) == 0
    assert " ".join(capsys.readouterr().out.split()).startswith(" ".join(lead.split()))


def test_the_pods_of_the_source_name_the_victim_where_that_is_asked_for(visitor, folder):
    alone = visitor.value("/api/autopsy", LOG, status=200)
    assert alone["command"] == "podqos autopsy -"
    assert alone["page"]["deaths"][-1]["who"] == f"pod {UID}"
    known = visitor.value("/api/autopsy?source=start", LOG, status=200)
    assert shlex.split(known["command"]) == ["podqos", "autopsy", "-", "-f", "pod.yaml"]
    assert known["page"]["deaths"][-1]["who"] == "shop/db-0 (db)"


def test_a_large_text_is_read_in_a_process_of_its_own_with_the_same_result(visitor):
    small, large = (LOG + b"\nJan  5 15:19:28 node-1 kernel: [ 5864.8] nothing of interest" * n for n in (9, 8000))
    answers = [visitor.value("/api/autopsy", text, status=200)["page"]["deaths"] for text in (small, large)]
    assert len(answers[0]) == 2
    assert answers[0] == answers[1]


def test_a_text_that_is_too_large_is_refused(visitor):
    limit = visitor.value("/api/session")["limits"]["pasteBytes"]
    assert limit == PASTE_BYTES
    assert visitor.error("/api/autopsy", b"x" * (limit + 1)) == (413, "more than 8 MiB at once")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b" \n", "pasted: it is empty (paste a kernel log, or what kubectl prints about a pod)"),
        (SNAPSHOT, "pasted: a snapshot of a cluster (open it as a file)"),
        (gzip.compress(LOG), "pasted: compressed (open it as a file)"),
    ],
)
def test_a_text_that_cannot_be_read_is_one_clear_message(visitor, text, message):
    assert visitor.error("/api/autopsy", text) == (422, message)


def test_problems_of_pasted_objects_have_their_line(visitor):
    answer = visitor.value("/api/autopsy", KILLED.replace("100Mi", "100Mo").encode(), status=200)
    (problem,) = answer["problems"]
    assert (problem["file"], problem["line"]) == ("pasted", 5)
    assert "100Mo" in problem["message"]


def test_a_pasted_text_is_kept_nowhere(server, visitor, tmp_path):
    secret = b"a-very-secret-name"
    before = visitor.value("/api/session")["sources"]
    visitor.value("/api/autopsy", LOG + b"\n" + secret, status=200)
    assert visitor.value("/api/session")["sources"] == before
    written = [path for path in Path(f"/proc/{server.process.pid}/fd").iterdir() if path.resolve().is_file()]
    assert not any(secret in path.resolve().read_bytes() for path in written)


@pytest.mark.parametrize("headers", [{"Sec_Fetch_Site": "cross-site"}, {"Origin": "https://evil.example"}])
def test_another_site_cannot_paste_anything(visitor, headers):
    assert visitor.error("/api/autopsy", LOG, **headers) == (403, "requests from other sites are not allowed")


def test_a_source_of_another_visitor_names_nothing(server, visitor):
    other = server.visitor().value("/api/sources?name=pod.yaml", KNOWN.encode())
    assert visitor.error(f"/api/autopsy?source={other['id']}", LOG)[0] == 404
