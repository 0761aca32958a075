"""Measures the page: how long it takes to load and to react, with 100 and with 5,000 pods, and whether it stays so.

In Chromium: from the request of the page until its pods are drawn (at most a second); and for each thing that a person
does, how much CPU time the main thread of the page takes for the frame that takes it longest (at most 16 ms: no frame
is missed). That is from a trace, without what the tool does; a key that does nothing says what is left of it. The blast
radius of a full node with 110 pods, 72 of which leaks take down: how long it takes, and its matrix. Of the
server: a what-if (at most 100 ms), also beside a long simulation. And under ten updates a second, for ten minutes
(`--short`: twenty seconds): the memory of the server, the heap and the nodes of the page, and its frames.
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
import time
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from history import record

import podqos

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PODS_PER_NODE = 100
WHAT_IFS = 50
_RUN, _RUN_PODS = "graceful-degradation", 10
_CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")
_PAGE = Path(podqos.__file__).parent / "page/viewer.html"
# When all that is seen is drawn.
_DRAWN = "() => document.querySelector('.blocks canvas') && podqosIsDrawn() && performance.now()"
_CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline"]
# Ten times a second one of the nodes says what its pods use now.
_LIVE = """
import json, random, sys
from itertools import groupby
from pathlib import Path
from msgspec import Raw
from msgspec.json import encode
from podqos.cli.main import main
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Header, NodeSummary
from podqos.serve import feeds
def measured(node, pods):
    used = [random.randrange(64 << 20, 1 << 30) for _ in pods]
    memory = lambda used: {"workingSetBytes": used, "usageBytes": used, "rssBytes": used}
    told = [
        {"podRef": pod["metadata"], "memory": memory(used), "containers": [{"name": "main", "memory": memory(used)}]}
        for pod, used in zip(pods, used)
    ]
    own = {"nodeName": node, "memory": {"availableBytes": (128 << 30) - sum(used), **memory(sum(used))}}
    return encode(NodeSummary(node, Raw(encode({"node": own, "pods": told}))))
class Changing:
    pause_seconds = 0.1
    def __init__(self, paths):
        items = json.loads(Path(paths[0]).read_bytes())["items"]
        nodes, pods = ([each for each in items if each["kind"] == kind] for kind in ("Node", "Pod"))
        self.pods = {node: list(own) for node, own in groupby(pods, lambda pod: pod["spec"]["nodeName"])}
        self.lines = [
            encode(Header()),
            encode({"apiVersion": "v1", "kind": "NodeList", "items": nodes}),
            *(encode({"apiVersion": "v1", "kind": "PodList", "items": own}) for own in self.pods.values()),
        ]
        self.told = {node: measured(node, own) for node, own in self.pods.items()}
        self.last = None
        self.first = self.look()
    def look(self):
        node = random.choice(list(self.pods))
        self.told[node] = measured(node, self.pods[node])
        lines = [*self.lines, *self.told.values()]
        self.last = ClusterSnapshot([*lines, encode(End(len(lines)))], "cluster", self.last)
        return feeds.of_cluster(self.last)
feeds.FilesFeed = Changing
sys.exit(main(["ui", *sys.argv[1:]]))
"""
_COUNT_UPDATES = """
const Own = EventSource;
window.updates = 0;
window.EventSource = class extends Own {
  constructor(...given) {
    super(...given);
    for (const kind of ["cluster", "change"]) this.addEventListener(kind, () => window.updates++);
  }
};
"""
_TYPED = [*"service-1234", *["Backspace"] * 12]
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


def full_node(folder: Path) -> list[str]:
    """Write a node that is almost full: whichever pod leaks slowly, those of lower priority are evicted first."""
    pods, used, sizes = 110, 583, {"memory": "64Gi", "pods": "110"}
    node = {"metadata": {"name": "full"}, "status": {"capacity": sizes, "allocatable": sizes}}
    items: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "Node", **node}]
    for number in range(pods):
        resources = {} if number % 3 else {"requests": {"memory": "1500Mi"}}
        container = {"name": "main", "image": "registry.example/service:1", "resources": resources}
        spec = {"nodeName": "full", "priority": number, "containers": [container]}
        metadata = {"name": f"service-{number}", "namespace": f"team-{number % 7}", "uid": f"uid-{number}"}
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    texts = {
        "full.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
        "full.csv": "\n".join(["pod,memory", *(f"team-{n % 7}/service-{n},{used}Mi" for n in range(pods))]),
        "kubelet.yaml": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "evictionHard: {memory.available: 1Gi}\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [str(folder / name) for name in texts]


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
    server.connection.close()  # the server may have closed it while the browser was used
    found = []
    for number in range(WHAT_IFS):
        pod = pods[number * len(pods) // WHAT_IFS]
        amounts = {"requests": {"memory": f"{256 + number}Mi"}, "limits": {"memory": f"{512 + number}Mi"}}
        edit = {"pod": f"{pod['namespace']}/{pod['name']}", "container": "main", **amounts}
        began = time.perf_counter()
        server.ask("/api/sources/start/what-if", {"node": pod["node"], "edits": [edit]})
        found.append((time.perf_counter() - began) * 1000)
    return found


def tell(pods: int, what: str, times: list[float]) -> None:
    """Print median, almost the worst and the worst, and keep the first two."""
    ordered = sorted(times)
    median, p95 = statistics.median(ordered), ordered[int(len(ordered) * 0.95)]
    print(f"{pods:>6} pods  {what}: median {median:.1f} ms, p95 {p95:.1f} ms, worst {ordered[-1]:.1f} ms", flush=True)
    record(f"ui, {pods} pods: {what}, median", median, "ms")
    record(f"ui, {pods} pods: {what}, p95", p95, "ms")


class Tab:
    """The page in Chromium, and what its main thread does."""

    def __init__(self, browser: Any, url: str) -> None:  # noqa: ANN401 - playwright is optional
        self._browser = browser
        self.page = browser.new_page(viewport={"width": 1280, "height": 900})
        self.url = url
        self._protocol = self.page.context.new_cdp_session(self.page)
        self._protocol.send("Performance.enable")

    def metrics(self) -> dict[str, float]:
        """Return what Chromium counts: tasks, nodes, the heap."""
        return {each["name"]: each["value"] for each in self._protocol.send("Performance.getMetrics")["metrics"]}

    def memory(self) -> tuple[int, int]:
        """Return the heap of the page without garbage, in bytes, and how many nodes it has."""
        self._protocol.send("HeapProfiler.collectGarbage")
        found = self.metrics()
        return int(found["JSHeapUsedSize"]), int(found["Nodes"])

    def open(self, route: str, awaited: str = "canvas") -> None:
        """Go to a view, and wait for something in it."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}{route}", wait_until="commit")
        self.page.locator(awaited).first.wait_for()

    def frames(self, act: Callable[[int], object], times: int, pause_seconds: float) -> list[float]:
        """Act so many times; return the CPU time of the main thread for the longest frame of each, in ms."""
        windows = []
        self._browser.start_tracing(page=self.page, categories=_CATEGORIES)
        for number in range(times):
            began = time.monotonic()  # the clock of Chromium's traces
            act(number)
            time.sleep(pause_seconds)
            windows.append((began * 1e6, time.monotonic() * 1e6))
        trace = json.loads(self._browser.stop_tracing())["traceEvents"]
        return longest_frames(trace, windows)


def longest_frames(trace: list[dict[str, Any]], windows: list[tuple[float, float]]) -> list[float]:
    """Return the CPU time of the main thread of the page for the frame that took it longest, by window.

    A frame begins where the one before was handed to the compositor: what handles the input, what is drawn for it, and
    what was put off to a later frame count where they were done.
    """
    [main] = {
        (each["pid"], each["tid"])
        for each in trace
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    } & {(each["pid"], each["tid"]) for each in trace if each["name"] == "Commit"}
    own = sorted((each for each in trace if (each["pid"], each["tid"]) == main), key=lambda each: each.get("ts", 0))
    commits = [each["ts"] for each in own if each["name"] == "Commit"]
    tasks = [(each["ts"], each.get("dur", 0), each.get("tdur", 0)) for each in own if each["name"] == "RunTask"]
    found = []
    for began, ended in windows:
        work = longest = 0.0
        for at, lasted, worked in tasks:
            if began <= at < ended:
                work += worked
                longest = max(longest, work)
                if any(at <= commit <= at + lasted for commit in commits):
                    work = 0.0
        found.append(longest / 1000)
    return found


def interactions(tab: Tab) -> Iterator[tuple[str, Callable[[int], object], float]]:
    """Bring the page to where something can be done, and yield what; a person does it again and again."""
    page, keyboard, mouse = tab.page, tab.page.keyboard, tab.page.mouse

    def to_and_fro(one: str, other: str, steps: int = 1) -> Callable[[int], object]:
        return lambda number: keyboard.press(other if number // steps % 2 else one)

    def there_and_back(there: tuple[str, str], back: tuple[str, str], steps: int) -> Callable[[int], object]:
        """Turn round before there is nothing left to go to."""
        return lambda number: keyboard.press((back if number // steps % 2 else there)[number % 2])

    def focus(label: str) -> None:
        page.locator(f".filters .field:has(> span:text-is('{label}')) :is(input, select)").focus()

    tab.open("#/cluster?show=blocks")
    yield "a key that does nothing", lambda _: keyboard.press("Shift"), 0.1
    focus("Find")
    type_one = lambda number: keyboard.press(_TYPED[number % len(_TYPED)])  # noqa: E731
    yield "a letter typed into the filter, or erased", type_one, 0.1
    for what, label, steps in (
        ("another namespace", "Namespace", 40),
        ("another class", "Class", 3),
        ("another priority", "Priority", 3),
        ("blocks of another size", "Size by memory", 2),
    ):
        tab.open("#/cluster?show=blocks")
        focus(label)
        yield what, to_and_fro("ArrowDown", "ArrowUp", steps), 0.1
    tab.open("#/cluster?show=blocks")
    page.get_by_role("radio", name="Eviction order").focus()
    yield "the other order", to_and_fro("ArrowRight", "ArrowLeft"), 0.15
    page.get_by_role("radio", name="Blocks").focus()
    yield "blocks or table", to_and_fro("ArrowRight", "ArrowLeft"), 0.15
    tab.open("#/cluster?show=blocks")
    yield "the pointer moved over blocks", lambda number: mouse.move(200 + 37 * number % 900, 720), 0.1
    page.locator(".spot").first.focus()
    over_blocks = there_and_back(("ArrowRight", "ArrowDown"), ("ArrowLeft", "ArrowUp"), 6)
    yield "an arrow key from block to block", over_blocks, 0.1
    mouse.move(640, 500)
    wheel = lambda number: mouse.wheel(0, -300 if number // 15 % 2 else 300)  # noqa: E731
    yield "the wheel turned over blocks", wheel, 0.3
    tab.open("#/cluster?show=table", ".pod-rows a")
    yield "the wheel turned over the table", wheel, 0.3
    tab.open("#/cluster", ".queue-lines a")
    yield "the wheel turned over the queue", wheel, 0.3
    tab.open("#/cluster?show=table", ".pod-rows a")
    heads = [each.bounding_box() for each in page.locator(".pod-head button").all()]
    yield "the table sorted", lambda number: mouse.click(*_middle(heads[number // 2 % len(heads)])), 0.15
    page.locator(".pod-rows a").first.focus()
    over_rows = there_and_back(("ArrowDown", "PageDown"), ("ArrowUp", "PageUp"), 6)
    yield "an arrow key or a page in the table", over_rows, 0.1
    focus("Find")
    yield "a letter typed into the filter of the table", type_one, 0.1
    tab.open("#/cluster?show=blocks")
    blocks = page.locator(".blocks").first.bounding_box()
    back = "location.hash.startsWith('#/pod') && history.back()"
    click = lambda number: mouse.click(blocks["x"] + 9 + 13 * number % 300, blocks["y"] + 9)  # noqa: E731
    yield (
        "a pod opened, or back to the cluster",
        lambda number: page.evaluate(back) if number % 2 else click(number),
        0.6,
    )
    tab.open("#/what-if", "[type=range]")
    page.get_by_role("slider").first.focus()
    yield "a what-if's slider moved", to_and_fro("ArrowRight", "ArrowLeft", 7), 0.3


def matrix(tab: Tab) -> Iterator[tuple[str, Callable[[int], object], float]]:
    """Do the same with the blast radius."""
    page, keyboard, mouse = tab.page, tab.page.keyboard, tab.page.mouse
    page.locator(".matrix").evaluate("each => each.scrollIntoView({block: 'center'})")
    page.wait_for_timeout(500)
    heads = [each.bounding_box() for each in page.locator(".matrix thead button").all()[:12]]
    yield "the matrix sorted", lambda number: mouse.click(*_middle(heads[number // 2 % len(heads)])), 0.3
    box = page.locator(".matrix").bounding_box()
    at = lambda number: (box["x"] + 500 + 36 * (number % 15), box["y"] + 200 + 36 * (number % 11))  # noqa: E731
    yield "a cell of the matrix chosen", lambda number: mouse.click(*at(number)), 0.2
    yield "an arrow key in the matrix", lambda number: keyboard.press("ArrowDown" if number % 2 else "ArrowRight"), 0.1
    mouse.move(*at(0))
    yield "the wheel turned over the matrix", lambda number: mouse.wheel(0, -300 if number // 8 % 2 else 300), 0.4
    yield "the wheel turned sideways", lambda number: mouse.wheel(-300 if number // 8 % 2 else 300, 0), 0.4
    page.get_by_label("Leak rate").focus()
    yield "leaks of another rate", lambda number: keyboard.press("ArrowUp" if number % 2 else "ArrowDown"), 0.4


def _middle(box: Any) -> tuple[float, float]:  # noqa: ANN401 - playwright is optional
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def in_browser(server: Server, pods: int, times: int) -> None:
    """Load the page, and use it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        tab = Tab(browser, server.url)
        loads = []
        for _ in range(5):
            tab.open("#/cluster?show=blocks")
            loads.append(tab.page.wait_for_function(_DRAWN).json_value())
        tell(pods, "page drawn with its pods", loads)
        for what, act, pause_seconds in interactions(tab):
            time.sleep(0.5)  # what the view before it left
            tell(pods, what, tab.frames(act, times, pause_seconds))
        browser.close()


def blast(folder: Path, times: int) -> None:
    """Let the pods of a full node leak, and use the matrix."""
    from playwright.sync_api import sync_playwright

    with serving(full_node(folder)) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        tab = Tab(browser, server.url)
        tab.page.set_default_timeout(120_000)
        began = time.perf_counter()
        tab.open("#/blast", ".matrix .cell")
        seconds = time.perf_counter() - began
        print(f"{110:>6} pods  blast radius of a full node: {seconds:.1f} s", flush=True)
        record("ui, 110 pods: blast radius of a full node", seconds, "s")
        for what, act, pause_seconds in matrix(tab):
            time.sleep(0.5)
            tell(110, what, tab.frames(act, times, pause_seconds))
        browser.close()


def run_page(folder: Path, times: int) -> None:
    """Move the cursor of a run, zoom in and out, and point at pods."""
    from playwright.sync_api import sync_playwright

    path = folder / "run.html"
    command = [sys.executable, "-m", "podqos", "simulate", _RUN, "--html", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        tab = Tab(browser, path.as_uri())
        keyboard, mouse = tab.page.keyboard, tab.page.mouse
        tab.open("", ".charts .axis")
        left, top = _middle(tab.page.locator(".panel.memory").bounding_box())

        def zoom(is_in: bool) -> None:
            if not is_in:
                mouse.dblclick(left, top)
                return
            mouse.move(left - 60, top)
            mouse.down()
            mouse.move(left + 60, top)
            mouse.up()

        for what, act in (
            ("the cursor of a run moved", lambda _: keyboard.press("ArrowRight")),
            ("a run zoomed in or out", lambda number: zoom(number % 2 == 0)),
            ("the pointer moved over a run", lambda number: mouse.move(left - 200, top - 100 + 13 * number % 200)),
            ("another victim chosen", lambda number: keyboard.press("k" if number // 10 % 2 else "j")),
        ):
            time.sleep(0.5)
            tell(_RUN_PODS, what, tab.frames(act, times, 0.15))
        browser.close()


def updates(folder: Path, pods: int, seconds: float, times: int) -> None:
    """Update ten times a second, with a page that shows it and is used; look at the memory of both."""
    from playwright.sync_api import sync_playwright

    with serving(cluster(folder, pods), ("-c", _LIVE)) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        tab = Tab(browser, server.url)
        tab.page.add_init_script(_COUNT_UPDATES)
        tab.open("#/cluster?show=blocks")
        time.sleep(min(60.0, seconds / 4))
        began, first = time.monotonic(), tab.page.evaluate("updates")
        samples = [(server.memory_bytes(), *tab.memory())]
        while time.monotonic() < began + seconds:
            time.sleep(min(10.0, seconds / 8))
            samples.append((server.memory_bytes(), *tab.memory()))
        rate = (tab.page.evaluate("updates") - first) / (time.monotonic() - began)
        print(f"{pods:>6} pods  live: {rate:.1f} updates a second shown, for {seconds:.0f} s")
        for what, unit, values in zip(
            ("memory of the server", "heap of the page", "nodes of the page"),
            (2**20, 2**20, 1),
            zip(*samples, strict=True),
            strict=True,
        ):
            begin, most, end = (
                f"{each / unit:,.1f}" if unit > 1 else each for each in (values[0], max(values), values[-1])
            )
            print(f"{pods:>6} pods  live, {what}: {begin} to begin with, at most {most}, {end} at the end")
        tab.page.get_by_label("Find").focus()
        typing = tab.frames(lambda number: tab.page.keyboard.press(_TYPED[number % len(_TYPED)]), times, 0.2)
        tell(pods, "live, a letter typed into the filter", typing)
        tab.open("#/cluster?show=blocks")
        tab.page.mouse.move(640, 500)
        wheeling = tab.frames(lambda number: tab.page.mouse.wheel(0, -300 if number // 15 % 2 else 300), times, 0.3)
        tell(pods, "live, the wheel turned over blocks", wheeling)
        browser.close()


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="twenty seconds of updates, not ten minutes")
    parser.add_argument("--frames", action="store_true", help="only the frames of a run and of the blast radius")
    arguments = parser.parse_args()
    times = 24 if arguments.short else 60
    has_page = _CHROMIUM is not None and _PAGE.is_file()
    if not has_page:
        print("no chromium, or no page (make viewer): only the server is measured")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.frames:
            run_page(folder, times)
            blast(folder, times)
            return
        for pods in (100, 5_000):
            with serving(cluster(folder, pods)) as server:
                known = server.ask("/api/sources/start/cluster")["pods"]
                assert len(known) == pods
                print(f"{pods:>6} pods  server ready after {server.started_seconds:.1f} s")
                if has_page:
                    in_browser(server, pods, times)
                what_ifs(server, known)  # what is made once
                tell(pods, "what-if", what_ifs(server, known))
                both = {"files": [_packed("long.yaml", _LONG), _packed("pod.yaml", _LEAKY)]}
                server.connection.close()
                job = _begin(server, both)
                beside = what_ifs(server, known)
                assert server.ask(f"/api/jobs/{job}")["state"] == "running"
                tell(pods, "what-if beside a simulation", beside)
                server.ask(f"/api/jobs/{job}", method="DELETE")
        if has_page:
            run_page(folder, times)
            blast(folder, times)
        for pods in (100, 5_000) if has_page else ():
            updates(folder, pods, 20 if arguments.short else 600, times)


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
