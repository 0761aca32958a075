"""Measures the page: how long it takes to load and to react, with 100 and with 5,000 pods, and whether it stays so.

In Chromium: from the request of the page until its pods are drawn (at most a second), and how long the browser is busy
with an interaction (at most 16 ms: a frame). Of the server: a what-if (at most 100 ms), also beside a long simulation;
and its memory under ten updates a second, for ten minutes (`--short`: twenty seconds).
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

PODS_PER_NODE = 100
WHAT_IFS = 50
_LIVE = """
import random, sys
from msgspec.structs import replace
from podqos.cli.main import main
from podqos.library.page import feeds
from podqos.model.quantity import Quantity
class Changing(feeds.FilesFeed):
    pause_seconds = 0.1
    def look(self):
        now = lambda: Quantity.of_units(random.randrange(64 << 20, 1 << 30))
        return replace(self.first, usage=tuple(replace(each, memory=now()) for each in self.first.usage))
feeds.FilesFeed = Changing
sys.exit(main(["ui", *sys.argv[1:]]))
"""
_LONG = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: long}
spec:
  duration: 800000h
  manifests: [pod.yaml]
  nodes: [{name: worker-1, capacity: {cpu: 4, memory: 8Gi}}]
  workloads: [{workload: leaky, demand: {memory: 10Mi + 64Mi per minute}}]
"""
_LEAKY = """
apiVersion: v1
kind: Pod
metadata: {name: leaky}
spec: {containers: [{name: c, image: i, resources: {limits: {memory: 100Mi}}}]}
"""


def cluster(folder: Path, pods: int) -> list[str]:
    """Write nodes, pods and what they use; return the files."""
    chance = random.Random(7)
    items: list[dict[str, Any]] = []
    rows = ["pod,memory"]
    for number in range(-(-pods // PODS_PER_NODE)):
        sizes = {"cpu": "32", "memory": "128Gi", "pods": "110"}
        status = {"capacity": sizes, "allocatable": sizes}
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"worker-{number}"}, "status": status})
    for number in range(pods):
        namespace, name = f"team-{number % 40}", f"service-{number}"
        request = chance.choice([0, 128, 256, 512, 1024])
        resources: dict[str, Any] = {"requests": {"memory": f"{request}Mi"}} if request else {}
        if request and chance.random() < 0.3:
            resources = {"limits": {"memory": f"{request}Mi", "cpu": "100m"}}
        container = {"name": "main", "image": "registry.example/service:1", "resources": resources}
        spec = {
            "nodeName": f"worker-{number // PODS_PER_NODE}",
            "containers": [container],
            "priority": number % 3 * 1000,
        }
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{number}"}
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        used = chance.randrange(16, 1200) if not resources.get("limits") else chance.randrange(16, request)
        rows.append(f"{namespace}/{name},{used}Mi")
    manifests, usage = folder / f"pods-{pods}.json", folder / f"usage-{pods}.csv"
    manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    usage.write_text("\n".join(rows))
    return [str(manifests), str(usage)]


class Server:
    """A `podqos ui` process."""

    def __init__(self, arguments: list[str], start: tuple[str, ...] = ("-m", "podqos", "ui")) -> None:
        command = [sys.executable, *start, *arguments, "--listen", "127.0.0.1:0", "--no-open"]
        began = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        self.started_seconds = time.perf_counter() - began
        self.connection = http.client.HTTPConnection("127.0.0.1", urlsplit(self.url).port or 0)
        self.cookie = ""

    def ask(self, path: str, body: object = None, method: str | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return what is answered."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Cookie": self.cookie} if self.cookie else {}
        self.connection.request(method or ("GET" if body is None else "POST"), path, data, headers)
        answer = self.connection.getresponse()
        self.cookie = (answer.getheader("set-cookie") or self.cookie).partition(";")[0]
        text = answer.read()
        assert answer.status < 300, (path, text[:300])
        return json.loads(text) if text else None

    def memory_bytes(self) -> int:
        """Return how much memory it has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10


@contextmanager
def serving(arguments: list[str], start: tuple[str, ...] = ("-m", "podqos", "ui")) -> Iterator[Server]:
    """Serve for as long as it is needed."""
    server = Server(arguments, start)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait()


def what_ifs(server: Server, pods: list[dict[str, Any]]) -> list[float]:
    """Return how long what-ifs take, in milliseconds."""
    found = []
    for number in range(WHAT_IFS):
        pod = pods[number * len(pods) // WHAT_IFS]
        edit = {"pod": f"{pod['namespace']}/{pod['name']}", "requests": {"memory": f"{256 + number}Mi"}}
        began = time.perf_counter()
        server.ask("/api/sources/start/what-if", {"node": pod["node"], "edits": [edit]})
        found.append((time.perf_counter() - began) * 1000)
    return found


def worded(times: list[float]) -> str:
    """Return median and almost the worst."""
    return f"median {statistics.median(times):.0f} ms, p95 {sorted(times)[int(len(times) * 0.95)]:.0f} ms"


def in_browser(server: Server, pods: int) -> None:
    """Load the page, and use it."""
    chromium = which("chromium")
    if chromium is None:
        print(f"{pods:>6} pods  no chromium: load and interactions are not measured")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        loads = []
        for _ in range(5):
            page.goto("about:blank")
            page.goto(f"{server.url}#/cluster", wait_until="commit")
            page.locator("canvas").first.wait_for()
            loads.append(page.evaluate("performance.now()"))
        print(f"{pods:>6} pods  page drawn with its pods: {worded(loads)}")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")

        def busy() -> float:
            metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
            return float(metrics["TaskDuration"]) * 1000

        find = page.get_by_label("Find")
        for what, act in {
            "a letter typed into the filter": lambda number: find.press_sequentially("service-1234"[number % 12]),
            "the pointer moved over blocks": lambda number: page.mouse.move(200 + 37 * number % 900, 700),
            "scrolling": lambda number: page.mouse.wheel(0, 300 if number % 2 else -300),
        }.items():
            times = []
            for number in range(24):
                before = busy()
                act(number)
                page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
                times.append(busy() - before)
            find.fill("")
            print(f"{pods:>6} pods  {what}: {worded(times)}")
        browser.close()


def updates(folder: Path, seconds: float) -> None:
    """Update ten times a second, with a page that listens, and look at the server's memory."""
    files = cluster(folder, 100)
    with serving(files, ("-c", _LIVE)) as server:
        seen = [0]

        def listen() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", urlsplit(server.url).port or 0)
            connection.request("GET", "/api/live")
            answer = connection.getresponse()
            while line := answer.readline():
                seen[0] += line.startswith(b"event: cluster")

        threading.Thread(target=listen, daemon=True).start()
        warm = min(60.0, seconds / 4)
        time.sleep(warm)
        first, before = server.memory_bytes(), seen[0]
        samples = []
        until = time.monotonic() + seconds - warm
        while time.monotonic() < until:
            time.sleep(1)
            samples.append(server.memory_bytes())
        rate = (seen[0] - before) / (seconds - warm)
        print(
            f"live    {rate:.1f} updates a second for {seconds:.0f} s: {first / 2**20:.1f} MiB after {warm:.0f} s, "
            f"at most {max(samples) / 2**20:.1f} MiB, {samples[-1] / 2**20:.1f} MiB at the end"
        )


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="twenty seconds of updates, not ten minutes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for pods in (100, 5_000):
            with serving(cluster(folder, pods)) as server:
                known = server.ask("/api/sources/start/cluster")["pods"]
                assert len(known) == pods
                print(f"{pods:>6} pods  server ready after {server.started_seconds:.1f} s")
                in_browser(server, pods)
                what_ifs(server, known)  # what is made once
                print(f"{pods:>6} pods  what-if: {worded(what_ifs(server, known))}")
                both = {"files": [_packed("long.yaml", _LONG), _packed("pod.yaml", _LEAKY)]}
                server.connection.close()
                job = _begin(server, both)
                times = what_ifs(server, known)
                assert server.ask(f"/api/jobs/{job}")["state"] == "running"
                print(f"{pods:>6} pods  what-if beside a simulation: {worded(times)}")
                server.ask(f"/api/jobs/{job}", method="DELETE")
        updates(folder, 20 if arguments.short else 600)


def _packed(name: str, text: str) -> dict[str, str]:
    from base64 import b64encode

    return {"name": name, "data": b64encode(text.encode()).decode()}


def _begin(server: Server, files: dict[str, Any]) -> str:
    """Upload a scenario that takes half an hour, and run it."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(server.url).port or 0)
    kind = "application/vnd.podqos.files+json"
    connection.request("POST", "/api/sources", json.dumps(files), {"Content-Type": kind, "Cookie": server.cookie})
    answer = connection.getresponse()
    server.cookie = (answer.getheader("set-cookie") or server.cookie).partition(";")[0]
    source = json.loads(answer.read())["id"]
    job: str = server.ask("/api/jobs", {"kind": "run", "source": source})["id"]
    while server.ask(f"/api/jobs/{job}")["progress"] == 0:
        time.sleep(0.1)
    return job


if __name__ == "__main__":
    main()
