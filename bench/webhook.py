"""How many reviews a second the webhook answers, how soon, with how much memory, and whether it loses any.

`podqos webhook` runs as a process of its own with the documented policy and all findings as warnings. The clients
speak TLS with keep-alive over the loopback, send a pod of 6 KB that is another one in every request (uid, names,
amounts), and hold each answer's uid against the request's. Reviews per core are those per second of the server's CPU
time: clients use another core.

    python bench/webhook.py [--requests 30000] [--memory 200000]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from history import record

from podqos.serve.certificate import make

ROOT = Path(__file__).resolve().parents[1]
POLICY = ROOT / "scenarios" / "policy" / "policy.yaml"
NAMES = ("localhost", "127.0.0.1")
CONNECTIONS = 8
RATE, RATE_SECONDS = 500, 20


def review(number: int, chance: random.Random) -> tuple[str, bytes]:
    """Return the uid and the body of one review: a pod of five containers and two init containers."""
    uid = f"{chance.getrandbits(128):032x}-{number}"

    def container(name: str) -> dict[str, object]:
        cpu, memory = chance.randrange(10, 2000), chance.randrange(16, 4096)
        higher = chance.choice((1, 1, 2))
        resources = {
            "limits": {"cpu": f"{cpu * higher}m", "memory": f"{memory * higher}Mi"},
            "requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"},
        }
        return {
            "name": name,
            "image": f"registry.example.com/team/{name}:{number}",
            "env": [{"name": f"SETTING_{index}", "value": f"value-{number}-{index}"} for index in range(6)],
            "resources": resources,
            "volumeMounts": [
                {"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
            ],
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }

    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"web-{number}",
            "namespace": f"team-{number % 97}",
            "uid": f"{chance.getrandbits(128):032x}",
            "creationTimestamp": "2026-11-16T12:00:00Z",
            "labels": {"app": "web", "pod-template-hash": f"{number:x}"},
            "managedFields": [
                {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:spec": {}}}
            ],
        },
        "spec": {
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
            "initContainers": [container("migrate"), container("proxy") | {"restartPolicy": "Always"}],
            "containers": [container(name) for name in ("web", "cache", "exporter", "log", "agent")],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "priority": 0,
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": f"web-{number}",
        "namespace": f"team-{number % 97}",
        "operation": "CREATE",
        "userInfo": {
            "username": "system:serviceaccount:kube-system:replicaset-controller",
            "groups": ["system:authenticated"],
        },
        "object": pod,
        "oldObject": None,
        "dryRun": False,
    }
    whole = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return uid, json.dumps(whole, separators=(",", ":")).encode()


def encoded(body: bytes) -> bytes:
    """Return the HTTP request of a review, as an API server writes it."""
    head = (
        f"POST /validate?timeout=10s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\n"
        f"Content-Length: {len(body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n\r\n"
    )
    return head.encode() + body


class Client:
    """One connection, opened again whenever the server has closed it with an answer."""

    def __init__(self, address: tuple[str, int], trust: ssl.SSLContext) -> None:
        self.address, self.trust = address, trust
        self.connection: ssl.SSLSocket | None = None

    def send(self, data: bytes) -> None:
        """Send a request."""
        if self.connection is None:
            plain = socket.create_connection(self.address, timeout=20)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connection = self.trust.wrap_socket(plain, server_hostname="127.0.0.1")
        self.connection.sendall(data)

    def answered(self, uid: str) -> bool:
        """Read an answer; return whether it is 200 and to this request."""
        assert self.connection is not None
        data = b""
        while b"\r\n\r\n" not in data:
            part = self.connection.recv(65536)
            if not part:
                raise ConnectionError("closed without an answer")
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self.connection.recv(65536)
        if b"connection: close" in head:
            self.connection.close()
            self.connection = None
        return head.startswith(b"HTTP/1.1 200 ") and f'"uid":"{uid}"'.encode() in body


class Server:
    """`podqos webhook` in a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.policy = folder / "policy.yaml"
        self.policy.write_bytes(POLICY.read_bytes())
        make(str(folder / "certs"), NAMES)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = free.getsockname()
        command = [
            Path(sys.executable).parent / "podqos", "webhook", "--certificate", folder / "certs",
            "--policy", self.policy, "--warn-on", "info", "--listen", f"127.0.0.1:{self.address[1]}",
            "--audit", folder / "audit.log", "--drain", "2s",
        ]  # fmt: skip
        self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "listening" in line:
                break
        self.trust = ssl.create_default_context(cafile=str(folder / "certs" / "ca.crt"))

    def cpu_seconds(self) -> float:
        """Return how much CPU time the server has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self) -> int:
        """Return how much of its memory is resident."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()


def load(server: Server, requests: int, seed: int) -> tuple[float, float]:
    """Send as many as the server takes; return the seconds it took by the clock, and of the server's CPU."""
    chance = random.Random(seed)
    clients = [Client(server.address, server.trust) for _ in range(CONNECTIONS)]
    elapsed = cpu = 0.0
    for first in range(0, requests, 2000):
        prepared = [review(number, chance) for number in range(first, first + 2000)]
        sent = [(uid, encoded(body)) for uid, body in prepared]
        began, before = time.perf_counter(), server.cpu_seconds()
        for start in range(0, len(sent), CONNECTIONS):
            group = list(zip(clients, sent[start : start + CONNECTIONS], strict=False))
            for client, (_, data) in group:
                client.send(data)
            for client, (uid, _) in group:
                assert client.answered(uid), uid
        elapsed += time.perf_counter() - began
        cpu += server.cpu_seconds() - before
    return elapsed, cpu


def paced(server: Server) -> list[float]:
    """Send at a fixed rate; return how long each answer took from when its request was due, sorted."""
    chance = random.Random(2)
    sent = [(uid, encoded(body)) for uid, body in (review(number, chance) for number in range(RATE * RATE_SECONDS))]
    seconds: list[float] = []
    begin = time.perf_counter() + 0.5
    threads = 4

    def run(mine: int) -> None:
        client = Client(server.address, server.trust)
        for index in range(mine, len(sent), threads):
            due = begin + index / RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            client.send(sent[index][1])
            assert client.answered(sent[index][0])
            seconds.append(time.perf_counter() - due)

    running = [threading.Thread(target=run, args=(mine,)) for mine in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert len(seconds) == len(sent)
    return sorted(seconds)


def changing(server: Server) -> tuple[int, int, int]:
    """Replace policy and certificate under load, then stop the server under load; return answered, wrong and lost.

    As in a cluster, a server that is not ready is connected to for a moment still, and then no more.
    """
    is_removed, lock = threading.Event(), threading.Lock()
    counts = {"answered": 0, "wrong": 0, "lost": 0}

    def run(seed: int) -> None:
        chance, client = random.Random(seed), Client(server.address, server.trust)
        number = 0
        while client.connection is not None or not is_removed.is_set():
            uid, body = review(number, chance)
            number += 1
            try:
                client.send(encoded(body))
                right = client.answered(uid)
            except OSError:
                with lock:
                    counts["lost"] += 1
                return
            with lock:
                counts["answered" if right else "wrong"] += 1

    running = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in running:
        thread.start()
    text = server.policy.read_text()
    for generation in range(6):
        server.policy.write_text(f"{text}# {generation}\n")
        make(str(server.folder / "certs"), NAMES, force=True)
        time.sleep(1.2)
    server.process.send_signal(signal.SIGTERM)
    time.sleep(1.0)
    is_removed.set()
    server.process.wait(60)
    for thread in running:
        thread.join()
    return counts["answered"], counts["wrong"], counts["lost"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=30_000)
    parser.add_argument("--memory", type=int, default=200_000)
    arguments = parser.parse_args()
    size = len(review(1, random.Random(1))[1])
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        load(server, 2000, 0)
        elapsed, cpu = load(server, arguments.requests, 1)
        rate, per_core = arguments.requests / elapsed, arguments.requests / cpu
        print(
            f"{size} bytes a review: {per_core:,.0f} reviews per second of CPU, {rate:,.0f} a second by the clock",
            flush=True,
        )
        record("webhook.review_cpu", cpu / arguments.requests, "s")
        seconds = paced(server)
        middle, late = seconds[len(seconds) // 2] * 1000, seconds[len(seconds) * 99 // 100] * 1000
        print(
            f"{RATE} a second: median {middle:.2f} ms, p99 {late:.2f} ms, worst {seconds[-1] * 1000:.2f} ms", flush=True
        )
        record("webhook.p99", late, "ms")
        before = server.memory_bytes()
        load(server, arguments.memory, 3)
        after = server.memory_bytes()
        print(f"{arguments.memory:,} requests: {before / 1e6:.1f} → {after / 1e6:.1f} MB", flush=True)
        record("webhook.growth", after / before, "ratio")
        answered, wrong, lost = changing(server)
        print(
            f"policy and certificate replaced 6 times, then stopped: {answered:,} answered, {wrong} wrong, {lost} lost"
        )
        print(f"exit code {server.process.returncode}")


if __name__ == "__main__":
    main()
