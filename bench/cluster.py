"""How long reading 150,000 pods from an API server takes, against the download alone and ``json.loads`` of each page.

The server replays recorded pages with other names, uids and amounts, no two pods alike, 500 at a time; it is a process
of its own. Ours decodes to the model's values and keeps all of them; the comparison decodes to dictionaries and drops
each page. Also: how long ``import podqos.cluster.cluster`` takes, and ``podqos rank NODE`` from beginning to end with
110 pods, against a Python process that sends the same requests and reads the answers. A kubelet takes its time: at
100 ms for /stats/summary, which it computes when asked, and 20 ms for the rest the server is no slow one.

    python bench/cluster.py [--pods 150000]
"""

from __future__ import annotations

import argparse
import gc
import gzip
import http.client
import json
import os
import random
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from history import record

DATA = Path(__file__).parent / "data" / "cluster"
RECORDED = Path(__file__).parents[1] / "tests" / "recordings" / "cluster" / "pages"
PAGE_ITEMS = 500
NODE, NODE_PODS = "worker-1", 110
DELAYS = {"summary": 0.1, "other": 0.02}
ROUNDS = 3


def generate(pods: int) -> None:
    """Write the pages of a list: every pod has its own name, uid and amounts."""
    DATA.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1)
    items = [
        json.dumps(item, separators=(",", ":"))
        for path in sorted(RECORDED.glob("pods-*.json.gz"))
        for item in json.loads(gzip.decompress(path.read_bytes()))["items"]
    ]
    uid = re.compile(r'"uid":"[0-9a-f-]{36}"')
    memory, cpu = re.compile(r'"memory":"\d+Mi"'), re.compile(r'"cpu":"\d+m"')

    def distinct(number: int) -> str:
        text = items[number % len(items)]
        text = text.replace('"name":"', f'"name":"p{number}-', 1)
        text = uid.sub(lambda _: f'"uid":"{chance.getrandbits(128):032x}"', text)
        text = memory.sub(lambda _: f'"memory":"{chance.randrange(1, 65_536)}Mi"', text)
        return cpu.sub(lambda _: f'"cpu":"{chance.randrange(1, 64_000)}m"', text)

    count = -(-pods // PAGE_ITEMS)
    for page in range(count):
        body = ",".join(distinct(number) for number in range(page * PAGE_ITEMS, min((page + 1) * PAGE_ITEMS, pods)))
        more = f',"continue":"{page + 1}"' if page + 1 < count else ""
        meta = f'"metadata":{{"resourceVersion":"1000"{more}}}'
        (DATA / f"{page}.json").write_text(f'{{"kind":"PodList","apiVersion":"v1",{meta},"items":[{body}]}}\n')
    (DATA / "count").write_text(str(pods))


def generate_node() -> None:
    """Write what is asked about one node with many pods."""
    recorded = [
        item
        for path in sorted(RECORDED.glob("pods-*.json.gz"))
        for item in json.loads(gzip.decompress(path.read_bytes()))["items"]
    ]
    chance = random.Random(2)
    pods, stats = [], []
    for number in range(NODE_PODS):
        pod = json.loads(json.dumps(recorded[number % len(recorded)]))
        pod["metadata"] |= {"name": f"pod-{number}", "uid": f"uid-{number}"}
        pod["spec"]["nodeName"], pod["status"]["phase"] = NODE, "Running"
        pods.append(pod)
        memory = {"workingSetBytes": chance.randrange(1 << 28), "rssBytes": chance.randrange(1 << 27)}
        own = {"podRef": {name: pod["metadata"][name] for name in ("name", "namespace", "uid")}, "memory": memory}
        stats.append(
            own | {"containers": [{"name": each["name"], "memory": memory} for each in pod["spec"]["containers"]]}
        )
    capacity = {"cpu": "16", "memory": "64Gi", "pods": str(NODE_PODS)}
    node = {"metadata": {"name": NODE, "uid": "u"}, "status": {"capacity": capacity, "allocatable": capacity}}
    machine = {"nodeName": NODE, "memory": {"availableBytes": 32 << 30, "workingSetBytes": 32 << 30}}
    answers = {
        "version": {"major": "1", "minor": "36", "gitVersion": "v1.36.4"},
        "nodes": {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": [node]},
        "pods": {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods},
        "summary": {"node": machine, "pods": stats},
        "configz": {"kubeletconfig": {"evictionHard": {"memory.available": "500Mi"}}},
    }
    for name, answer in answers.items():
        (DATA / f"node-{name}.json").write_text(json.dumps(answer))


def serve() -> None:
    """Answer lists with the pages, until killed; the port is printed."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=16)
    print(listening.getsockname()[1], flush=True)
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    buffer = b""
    with connection:
        while True:
            while b"\r\n\r\n" not in buffer:
                piece = connection.recv(65_536)
                if not piece:
                    return
                buffer += piece
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            with (DATA / _file(head)).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                lines = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
                connection.sendall(lines.encode())
                connection.sendfile(file)


def _file(head: bytes) -> str:
    """Return the name of the answer to a request; what is about one node takes a moment."""
    path, _, query = head.split()[1].decode().partition("?")
    last = path.rpartition("/")[2]
    if last == "pods" and "nodeName" not in query:
        page = re.search(r"continue=(\d+)", query)
        return f"{page[1] if page else 0}.json"
    time.sleep(DELAYS.get(last, DELAYS["other"]))
    return f"node-{last}.json"


def ours(port: int) -> int:
    """Read all pods and keep them."""
    from podqos.cluster.cluster import Cluster
    from podqos.cluster.kubeconfig import Access
    from podqos.cluster.resources import PODS

    with Cluster(Access(f"http://127.0.0.1:{port}")) as cluster:
        return len(cluster.read(PODS))


def theirs(port: int) -> int:
    """Download all pages and decode each to dictionaries."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    token, count = "", 0
    while True:
        connection.request("GET", f"/api/v1/pods?limit={PAGE_ITEMS}{token and '&continue=' + token}")
        page = json.loads(connection.getresponse().read())
        count += len(page["items"])
        token = page["metadata"].get("continue", "")
        if not token:
            return count


def node_requests(port: int) -> int:
    """Send what ``rank`` asks, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for path in (
        "/version",
        f"/api/v1/nodes?limit={PAGE_ITEMS}&fieldSelector=metadata.name%3D{NODE}",
        f"/api/v1/pods?limit={PAGE_ITEMS}&fieldSelector=spec.nodeName%3D{NODE}",
        f"/api/v1/nodes/{NODE}/proxy/stats/summary",
        f"/api/v1/nodes/{NODE}/proxy/configz",
    ):
        connection.request("GET", path)
        connection.getresponse().read()
    return 5


def rank_seconds(port: int) -> tuple[float, float]:
    """Return how long ``rank NODE`` takes as a process, and one that only sends its requests: the best of ten."""
    config = DATA / "kubeconfig"
    context = {"name": "bench", "context": {"cluster": "bench", "user": "bench"}}
    clusters = [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}]
    users = [{"name": "bench", "user": {}}]
    named = {"current-context": "bench", "contexts": [context], "clusters": clusters, "users": users}
    config.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **named}))
    commands = (
        [sys.executable, "-m", "podqos", "rank", NODE, "--kubeconfig", str(config)],
        [sys.executable, __file__, "--way", "requests", "--port", str(port)],
    )

    def seconds(command: list[str]) -> float:
        started = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        return time.perf_counter() - started

    whole, requests = ([seconds(command) for _ in range(10)] for command in commands)
    return min(whole), min(requests)


def measured(way: str, port: int, pods: int) -> tuple[float, float, int]:
    """Return seconds, seconds of CPU time and peak bytes of one way, in a process of its own."""
    command = [sys.executable, __file__, "--way", way, "--port", str(port)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, cpu, count, peak = done.stdout.split()
    assert int(count) == pods
    return float(seconds), float(cpu), int(peak) * 1024


def import_seconds() -> float:
    """Return how long the import takes: the best of ten."""
    script = "import time; t = time.perf_counter(); import podqos.cluster.cluster; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", script]
    return min(float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=("ours", "theirs", "requests"), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
    if arguments.way:
        gc.disable()  # as the command does; it only helps the comparison
        started = time.perf_counter(), time.process_time()
        count = {"ours": ours, "theirs": theirs, "requests": node_requests}[arguments.way](arguments.port)
        print(
            time.perf_counter() - started[0],
            time.process_time() - started[1],
            count,
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        )
        return
    if not (DATA / "count").exists() or (DATA / "count").read_text() != str(arguments.pods):
        generate(arguments.pods)
    generate_node()
    size = sum(path.stat().st_size for path in DATA.glob("[0-9]*.json"))
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            rounds = [
                (measured("ours", port, arguments.pods), measured("theirs", port, arguments.pods))
                for _ in range(ROUNDS)
            ]
            whole, requests = rank_seconds(port)
        finally:
            server.kill()
    mine, other = min(each[0][0] for each in rounds), min(each[1][0] for each in rounds)
    my_cpu, other_cpu = min(each[0][1] for each in rounds), min(each[1][1] for each in rounds)
    peak = max(each[0][2] for each in rounds)
    print(f"{arguments.pods:,} pods, {size >> 20} MiB, in pages of {PAGE_ITEMS}")
    print(f"read and kept: {mine:.2f} s against {other:.2f} s: ratio {mine / other:.2f} (target ≤ 1.0)")
    print(f"of that CPU time: {my_cpu:.2f} s against {other_cpu:.2f} s: ratio {my_cpu / other_cpu:.2f}")
    print(f"peak memory: {peak >> 20} MiB (target < 1024)")
    took = import_seconds()
    print(f"import podqos.cluster.cluster: {took * 1000:.0f} ms (target ≤ 100)")
    record(f"cluster: read {arguments.pods} pods", mine / other, "ratio")
    record(f"cluster: peak of reading {arguments.pods} pods", peak, "bytes")
    print(f"rank NODE: {whole:.2f} s against {requests:.2f} s: ratio {whole / requests:.2f} (target ≤ 1.5)")
    record("cluster: rank NODE against its requests", whole / requests, "ratio")
    record("cluster: import", took * 1000, "ms")


if __name__ == "__main__":
    main()
