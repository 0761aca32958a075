"""A directory in which the commands of the documents run: the files they name, and a cluster to ask for others."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

from msgspec import Struct

from cluster.serving import Request, Server
from documents.commands import ROOT, Command, commands_of
from library.test_live_cluster import api_server
from podqos.cli.main import main

SCENARIO = ROOT / "scenarios/content-platform"
RECORDINGS = ROOT / "tests/recordings/kubelet"
# Where the world keeps programs, and what its cluster answers.
_HIDDEN = ".world"

_KUBECTL = """\
#!/bin/sh
cd "$(dirname "$0")"
case "$*" in
  *stats/summary) cat summary.json;;
  *configz) cat configz.json;;
  *json*) cat pods.json;;
  "get ns,"*|"get limits,"*) cat cluster.yaml;;
  *) cat pods.yaml;;
esac
"""
_SSH = "#!/bin/sh\necho '[Mon Nov 16 03:00:00 2026] Out of memory: Killed process 4711 (article-service)'\n"

_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: prod
clusters: [{{name: prod, cluster: {{server: "{server}"}}}}]
contexts: [{{name: prod, context: {{cluster: prod, user: me, namespace: shop}}}}]
users: [{{name: me, user: {{}}}}]
"""

_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: monitoring}
spec:
  containers:
    - name: web
      image: web
      resources: {requests: {memory: 128Mi}, limits: {cpu: 500m, memory: 256Mi}}
"""
_NODE = """\
apiVersion: v1
kind: Node
metadata: {{name: node-{}}}
status:
  capacity: {{cpu: "16", memory: 64Gi, pods: "110"}}
  allocatable: {{cpu: "16", memory: 64Gi, pods: "110"}}
"""
_FILES = {
    "kern.log": "[ 5864.7] Out of memory: Killed process 4711 (article-service)\n",
    "nodes.yaml": "---\n".join(map(_NODE.format, (1, 2))),
    "pod.yaml": _POD,
    "new.yaml": _POD,
    "policy.yaml": """\
apiVersion: podqos.dev/v1alpha1
kind: Policy
metadata: {name: rollout}
spec:
  rules: [{name: no-best-effort, require: {minClass: Burstable}, action: Warn}]
""",
}


_OOM_KILLED = [
    {
        "name": "db",
        "restartCount": 3,
        "containerID": "containerd://4f1c",
        "state": {"running": {"startedAt": "2026-11-16T03:00:05Z"}},
        "lastState": {
            "terminated": {
                "reason": "OOMKilled",
                "exitCode": 137,
                "startedAt": "2026-11-16T01:12:00Z",
                "finishedAt": "2026-11-16T03:00:00Z",
                "containerID": "containerd://3e0b",
            }
        },
    }
]


class Ran(Struct, frozen=True):
    """What a command led to."""

    code: int
    out: str
    err: str


def make_world(directory: Path) -> None:
    """Fill a directory: the repository that the guide to an incident makes, and the files that other pages name."""
    hidden = directory / _HIDDEN
    hidden.mkdir()
    for name, text in {
        "kubectl": _KUBECTL,
        "ssh": _SSH,
        "podqos": f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m podqos "$@"\n',
    }.items():
        (hidden / name).write_text(text)
        (hidden / name).chmod(0o755)
    for name, recorded in {"summary": "stats_summary", "configz": "configz", "pods": "pods"}.items():
        data = gzip.decompress((RECORDINGS / f"{recorded}.json.gz").read_bytes())
        # The kubelet's own list of pods names no kind; kubectl's does.
        (hidden / f"{name}.json").write_bytes(
            data if name != "pods" else data.replace(b"{", b'{"apiVersion": "v1", "kind": "PodList", ', 1)
        )
    (hidden / "cluster.yaml").write_text(_joined(sorted((SCENARIO / "platform").glob("0*.yaml"))))

    with in_world(directory):
        for command in commands_of(ROOT / "docs/tutorials/first-incident.md"):
            if command.words[0] in {"git", "cp"}:
                _bash(command.text, check=True)
        _bash("git branch --force main HEAD~1", check=True)
        assert podqos(["snapshot", "-o", "cluster.json.gz"]).code == 0
    (hidden / "pods.yaml").write_text(_joined(sorted((directory / "deploy").glob("*.yaml"))))
    # Without what is filled in before it is a manifest.
    shutil.copytree(ROOT / "scenarios", directory / "scenarios", ignore=shutil.ignore_patterns("starter"))
    shutil.copytree(SCENARIO / "accidental", directory / "accidental")
    shutil.copytree(directory / "deploy", directory / "manifests")
    for name, source in {
        "usage.csv": SCENARIO / "incident/usage.csv",
        "samples.csv": SCENARIO / "incident/samples.csv",
        "review.json": ROOT / "scenarios/policy/review.json",
        "kubelet.yaml": SCENARIO / "node/kubelet.yaml",
        "limits.yaml": SCENARIO / "accidental/limit-range.yaml",
        "deployment.yaml": SCENARIO / "accidental/article-service.yaml",
        "pods.yaml": hidden / "pods.yaml",
        "cluster.yaml": hidden / "cluster.yaml",
        "pods.json": hidden / "pods.json",
        "summary.json": hidden / "summary.json",
        "stats.json": hidden / "summary.json",
    }.items():
        shutil.copyfile(source, directory / name)
    for name, text in _FILES.items():
        (directory / name).write_text(text)


def _joined(paths: list[Path]) -> str:
    return "---\n".join(path.read_text() for path in paths)


@contextlib.contextmanager
def in_world(directory: Path) -> Iterator[None]:
    """Work in a world, with its programs first and nothing of the caller's home, git or terminal."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "COLUMNS"))}
    variables |= {
        "PATH": f"{directory / _HIDDEN}{os.pathsep}{os.environ['PATH']}",
        "SCENARIO": str(SCENARIO),
        "HOME": str(directory / _HIDDEN),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "KUBECONFIG": str(directory / _HIDDEN / "kubeconfig"),
        **{
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in {"NAME": "somebody", "EMAIL": "somebody@example.org"}.items()
        },
    }
    serving = Server(_ask)
    with mock.patch.dict(os.environ, variables, clear=True), contextlib.chdir(directory), serving as server:
        (directory / _HIDDEN / "kubeconfig").write_text(_KUBECONFIG.format(server=server.url))
        yield


def _ask(request: Request) -> object:
    """Answer a request as the cluster, which a test may replace."""
    return cluster(request)


def cluster(request: Request) -> object:
    """Answer as the cluster that the pages speak of: its nodes are called worker-1 and worker-2."""
    if request.path.endswith("/events"):
        return json.dumps({"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": []}).encode()
    answer = api_server(replace(request, target=request.target.replace("worker-", "atlas-")))
    if not isinstance(answer, bytes):
        return answer
    listed = json.loads(answer)
    for item in listed.get("items", ()):
        if item["metadata"]["name"] == "db-0":
            item["status"]["containerStatuses"] = _OOM_KILLED
    return json.dumps(listed).replace("atlas-", "worker-").encode()


def run(command: Command) -> Ran:
    """Run a command as written, in the current directory: podqos in this process, anything else by a shell."""
    words = command.words
    before, _, last = command.text.rpartition(" | ")
    given = _bash(before, check=True).stdout if last.startswith("podqos ") and before else ""
    if given:
        words = words[len(words) - words[::-1].index("|") :]
    if words[:2] == ["kubectl", "podqos"]:
        words = words[1:]
    target = None
    if len(words) > 2 and words[-2] == ">":
        *words, _, target = words
    if words[0] != "podqos" or {"|", "&&", ";", "<(", ">"} & {*words}:
        done = _bash(command.text)
        return Ran(done.returncode, done.stdout, done.stderr)
    ran = podqos([os.path.expandvars(word) for word in words[1:]], given)
    if target is not None:
        Path(target).write_text(ran.out)
    return ran


def podqos(arguments: list[str], given: str = "") -> Ran:
    """Run podqos in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    with mock.patch("sys.stdin", stdin), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return Ran(code, *(each.buffer.getvalue().decode() for each in (out, err) if each.flush() is None))


def _bash(script: str, *, check: bool = False) -> subprocess.CompletedProcess[str]:
    command = ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, check=check, capture_output=True, text=True)
