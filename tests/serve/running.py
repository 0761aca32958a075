"""`podqos ui` as a process on this machine, and clients that speak to it. The page itself is a stand-in."""

from __future__ import annotations

import http.client
import io
import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

VIEWER = """<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'" />
<div id="app"></div><script id="run" type="application/json">null</script>"""
START = f"""
import sys
from podqos.reading import built_page
built_page.built_viewer = lambda: {VIEWER!r}
from podqos.cli.main import main
sys.exit(main(["ui", *sys.argv[1:]]))
"""
PATIENCE = 300.0

POD = b"""apiVersion: v1
kind: Pod
metadata: {name: leaky}
spec:
  containers: [{name: c, image: i, resources: {limits: {memory: 100Mi}}}]
"""
# Takes half an hour of real time: a container dies of its limit, again and again, for ninety years.
LONG = b"""apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: long}
spec:
  duration: 800000h
  manifests: [pod.yaml]
  nodes: [{name: worker-1, capacity: {cpu: 4, memory: 8Gi}}]
  workloads: [{workload: leaky, demand: {memory: 10Mi + 64Mi per minute}}]
"""
SHORT = LONG.replace(b"800000h", b"5m")


def eventually(ask, what="it"):
    """Wait until something is true, and return it."""
    until = time.monotonic() + PATIENCE
    while not (found := ask()):
        assert time.monotonic() < until, f"{what} never came"
        time.sleep(0.02)
    return found


class Running:
    """A process that serves the page."""

    def __init__(self, *arguments, listen="127.0.0.1:0", program=(sys.executable, "-c", START), env=None):
        given = [*arguments, "--no-open", *(() if listen is None else ("--listen", listen))]
        self.process = subprocess.Popen(
            [*program, *map(str, given)],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.url = self.process.stdout.readline().strip()
        self.port = urlsplit(self.url).port

    def visitor(self):
        return Visitor(self.port)

    def workers(self):
        """Return what computes for visitors: processes that a child of the server has forked."""
        return [int(pid) for child in _children(self.process.pid) for pid in _children(child)]

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        return self.process.communicate(timeout=PATIENCE)


@contextmanager
def running(*arguments, **options):
    server = Running(*arguments, **options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


class Visitor:
    """A browser with its cookies."""

    def __init__(self, port):
        self.port = port
        self.cookie = ""

    def ask(self, path, body=None, method=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            sent.setdefault("Cookie", self.cookie)
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, sent)
            answer = connection.getresponse()
            given = answer.getheader("set-cookie")
            if given:
                self.cookie = given.partition(";")[0]
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def value(self, path, body=None, method=None, status=None, **headers):
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        code, _, data = self.ask(path, body, method, **headers)
        assert code == (status or (200 if body is None else 201)), (code, data[:500])
        return json.loads(data)

    def upload(self, files, **query):
        from base64 import b64encode
        from urllib.parse import urlencode

        each = [{"name": name, "data": b64encode(data).decode()} for name, data in files.items()]
        body = json.dumps({"files": each}).encode()
        asked = f"/api/sources?{urlencode(query)}"
        return self.value(asked, body, Content_Type="application/vnd.podqos.files+json")

    def error(self, path, body=None, method=None, **headers):
        code, _, data = self.ask(path, body, method, **headers)
        return code, json.loads(data)["error"]["message"]

    def begin(self, files, kind="run"):
        source = self.upload(files)
        return self.value("/api/jobs", {"kind": kind, "source": source["id"]})["id"]

    def job(self, key):
        return self.value(f"/api/jobs/{key}")

    def ended(self, key):
        eventually(lambda: self.job(key)["state"] not in {"queued", "running"}, "the end of the run")
        return self.job(key)

    def once(self, since="", **headers):
        """Return the events of a stream that tells how things are now."""
        status, found, data = self.ask(f"/api/live?once=1&since={since}", **headers)
        assert (status, found["content-type"], int(found["content-length"])) == (200, "text/event-stream", len(data))
        return list(_events(io.BytesIO(data)))

    @contextmanager
    def events(self, path, **headers):
        """Give an iterator over the server-sent events: type and value."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers={"Cookie": self.cookie, **sent})
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.getheader("content-type") == "text/event-stream"
        try:
            yield _events(answer)
        finally:
            answer.close()
            connection.close()


def _events(answer):
    fields, until = {}, time.monotonic() + PATIENCE
    while line := answer.readline():
        assert time.monotonic() < until, "the event that was waited for never came"
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
            continue
        yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
        fields = {}


def _of_process(pid, name):
    """Return what the kernel says of a process; nothing where it is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def _children(pid):
    """Return what any thread of a process has started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for task in tasks for child in _of_process(pid, task.relative_to(f"/proc/{pid}")).split()]


def is_gone(pid):
    """Whether a process has ended; one that is not yet collected has."""
    return _of_process(pid, "stat").rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"])
