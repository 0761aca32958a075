"""The API of a real node: the kubelet's shapes hold, and asking never gets in the way of evicting."""

from __future__ import annotations

import http.client
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from host.machine import needs_node
from host.nodes import GROW, PYTHON, kubelet, pod_document, running_node
from podqos.agent.journal import decode
from podqos.cli.main import main
from podqos.eviction.signals import Signal, decode_summary, observe
from podqos.host.api.api import Api
from podqos.host.api.status_document import NodeStatus, PodListDocument
from podqos.manifest.decode import model_decoder
from podqos.model.kubelet_config import kubelet_configuration

pytestmark = [needs_node, pytest.mark.slow]

HARD = kubelet(evictionHard={"memory.available": "64Mi"})
TALK = ("sh", "-c", "echo hello; echo again; sleep 1000")


class Served:
    """A node with its API, and a way to ask while the node lives."""

    def __init__(self, stage):
        self.stage = stage
        self.api = Api(stage.node, "0.1.0")
        self.port = self.api.open(("127.0.0.1", 0))
        self.socket = str(stage.settings.state_dir / "api.sock")
        self._pool = ThreadPoolExecutor(40)
        self._clients = []

    def begin(self, target, method="GET", *, tcp=False):
        return self._pool.submit(self._ask, target, method, tcp)

    def ask(self, target, method="GET", *, tcp=False):
        """Return status and body."""
        asked = self.begin(target, method, tcp=tcp)
        self.stage.until(asked.done)
        return asked.result()

    def get(self, target):
        status, body = self.ask(target)
        assert status == 200, body
        return body

    def json(self, target):
        return msgspec.json.decode(self.get(target))

    def metrics(self):
        families = text_string_to_metric_families(self.get("/metrics").decode())
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    def _ask(self, target, method, tcp):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        if not tcp:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(300)
            connection.sock.connect(self.socket)
        connection.request(method, target)
        response = connection.getresponse()
        try:
            return response.status, response.read()
        finally:
            connection.close()

    def connected(self):
        client = socket.socket(socket.AF_UNIX)
        self._clients.append(client)
        client.connect(self.socket)
        return client

    def close(self):
        for client in self._clients:
            client.close()
        self._pool.shutdown(wait=False)
        self.api.close()


@contextmanager
def served(configuration=None, **settings):
    with running_node(configuration, **settings) as stage:
        node = Served(stage)
        try:
            yield node
        finally:
            node.close()


def _status(served, pod):
    """Return the status of a pod's one container."""
    (status,) = _pods(served)[pod]["status"]["containerStatuses"]
    return status


def _pods(served):
    return {pod["metadata"]["name"]: pod for pod in served.json("/pods")["items"]}


def test_pods_and_figures_are_what_a_kubelet_would_say(tmp_path, capsys):
    fixed = {"memory": "32Mi", "cpu": "100m"}
    with served(HARD) as node:
        node.stage.put(
            pod_document("greedy", *PYTHON, GROW, "40", resources={"requests": {"memory": "8Mi"}}),
            pod_document("fixed", *TALK, resources={"requests": fixed, "limits": fixed}),
        )
        node.stage.until(lambda: "grown" in node.stage.log("greedy") and node.stage.is_up("fixed"))
        pods, stats = node.get("/pods"), node.get("/stats/summary")

        decoded = {pod.metadata.name: pod for pod in model_decoder(PodListDocument).decode(pods).items}
        for record in node.stage.node.driver.state.pods.values():
            seen = decoded[record.pod.metadata.name]
            assert seen.metadata.uid == record.pod.metadata.uid
            assert seen.spec.containers == record.pod.spec.containers
            assert seen.spec.priority == record.pod.spec.priority
        status = _pods(node)["fixed"]["status"]
        assert (status["phase"], status["qosClass"]) == ("Running", "Guaranteed")
        assert {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True"
        assert "podIP" not in status
        (container,) = status["containerStatuses"]
        assert container["state"]["running"]["startedAt"]
        assert (container["restartCount"], container["ready"]) == (0, True)
        assert _pods(node)["fixed"]["spec"]["containers"][0]["command"] == list(TALK)

        summary = decode_summary(stats)
        assert observe(summary).signals[Signal.MEMORY].capacity == node.stage.settings.memory_bytes
        used = {each.pod_ref.name: each.memory.working_set_bytes for each in summary.pods}
        assert 40 << 20 < used["greedy"] < 80 << 20
        (tmp_path / "pods.json").write_bytes(pods)
        (tmp_path / "stats.json").write_bytes(stats)
    files = ["--pods", str(tmp_path / "pods.json"), "--stats", str(tmp_path / "stats.json")]
    assert main(["rank", *files, "-o", "json"]) == 0
    report = msgspec.json.decode(capsys.readouterr().out)
    assert [place["pod"] for place in report["evictionOrder"]] == ["default/greedy", "default/fixed"]


def test_a_container_killed_by_the_kernel_is_shown_with_its_end_and_counted():
    with served(HARD) as node:
        limits = {"limits": {"memory": "24Mi"}}
        node.stage.put(pod_document("tight", *PYTHON, GROW, "60", resources=limits))
        node.stage.until(lambda: len(node.stage.lines("Exited")) >= 2)
        key = ("container_oom_events_total", ("container", "main"), ("namespace", "default"), ("pod", "tight"))
        seen = []

        def is_read_while_it_waits():
            before, kills, after = _status(node, "tight"), node.metrics()[key], _status(node, "tight")
            seen.append((after, kills))
            return before == after and "waiting" in after["state"]

        node.stage.until(is_read_while_it_waits)
        container, kills = seen[-1]
        assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert container["lastState"]["terminated"]["reason"] == "OOMKilled"
        assert container["lastState"]["terminated"]["exitCode"] == 137
        assert container["restartCount"] >= 1
        assert kills == container["restartCount"] + 1


def test_phases_and_init_containers_are_the_apis():
    with served(HARD) as node:
        held = pod_document("held", *TALK)
        held["spec"]["initContainers"] = [{"name": "first", "image": "none", "command": ["sleep", "1000"]}]
        job = {"restartPolicy": "Never"}
        node.stage.put(
            held, pod_document("good", "true", spec=job), pod_document("bad", "sh", "-c", "exit 3", spec=job)
        )
        node.stage.until(lambda: len(node.stage.node.world.over) == 2 and node.stage.is_up("held"))
        found = {name: pod["status"] for name, pod in _pods(node).items()}
        assert {name: status["phase"] for name, status in found.items()} == {
            "held": "Pending",
            "good": "Succeeded",
            "bad": "Failed",
        }
        assert found["held"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
        assert "running" in found["held"]["initContainerStatuses"][0]["state"]
        ends = {name: found[name]["containerStatuses"][0]["state"]["terminated"] for name in ("good", "bad")}
        assert {name: (end["exitCode"], end["reason"]) for name, end in ends.items()} == {
            "good": (0, "Completed"),
            "bad": (3, "Error"),
        }


def test_what_a_pod_is_made_of_is_shown_as_written():
    document = pod_document("full", *TALK, env=[{"name": "A", "value": "b"}], workingDir="/tmp")  # noqa: S108
    document["metadata"]["labels"] = {"app": "full"}
    document["spec"]["volumes"] = [
        {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "plain", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "c"}},
    ]
    document["spec"]["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
    with served(HARD) as node:
        node.stage.put(document)
        node.stage.until(lambda: node.stage.pod("full"))
        shown = _pods(node)["full"]
        assert shown["metadata"]["labels"] == {"app": "full"}
        (container,) = shown["spec"]["containers"]
        written = document["spec"]["containers"][0]
        assert {name: container[name] for name in written} == written
        assert shown["spec"]["volumes"] == [*document["spec"]["volumes"][:2], {"name": "settings", "configMap": {}}]
        assert shown["spec"]["restartPolicy"] == "Always"


def test_metrics_are_prometheus_text_under_the_conventional_names():
    with served(HARD) as node:
        node.stage.put(
            pod_document("modest", *TALK, resources={"requests": {"memory": "64Mi"}}),
            pod_document("greedy", *PYTHON, GROW, "220", resources={"requests": {"memory": "8Mi"}}),
        )
        node.stage.until(lambda: node.stage.lines("CleanedUp"))
        values = node.metrics()
        # Of a counter without _total the parser makes one with it; the text has the kubelet's name.
        assert b'\nkubelet_evictions{eviction_signal="memory.available"} 1\n' in node.get("/metrics")
        assert values["kubelet_evictions_total", ("eviction_signal", "memory.available")] == 1
        assert values[("kubelet_running_pods",)] == 1
        assert values["kubelet_running_containers", ("container_state", "running")] == 1
        modest = (("container", "main"), ("namespace", "default"), ("pod", "modest"))
        assert 0 < values["container_memory_working_set_bytes", *modest] < 64 << 20
        assert values["container_oom_events_total", *modest] == 0
        assert values["podqos_node_condition", ("condition", "MemoryPressure")] == 1
        assert values["podqos_reaction_seconds_count", ("stage", "held")] == 1
        assert values["podqos_reaction_seconds_bucket", ("le", "+Inf"), ("stage", "terminated")] == 1
        assert values["podqos_reaction_seconds_sum", ("stage", "held")] < 20
        assert values[("process_resident_memory_bytes",)] > 1 << 20
        assert values[("process_open_fds",)] > 3


def test_status_says_how_far_it_is_to_an_eviction_and_what_was_kept():
    with served(HARD) as node:
        node.stage.put(pod_document("one", *TALK, resources={"requests": {"memory": "64Mi", "cpu": "100m"}}))
        node.stage.until(lambda: node.stage.is_up("one"))
        status = msgspec.json.decode(node.get("/status"), type=NodeStatus)
        (row,) = [row for row in status.thresholds if row.signal is Signal.MEMORY]
        assert row.distance == row.available - (64 << 20)
        assert {each.type: each.status for each in status.conditions} == {
            "Ready": True, "MemoryPressure": False, "DiskPressure": False, "PIDPressure": False,
        }  # fmt: skip
        requested = {each.name: each.requested for each in status.resources}
        assert (requested["cpu"], requested["memory"], requested["pods"]) == (100, 64 << 20, 1)
        (pod,) = status.pods
        (container,) = pod.containers
        kept, _ = node.stage.node.capabilities.oom_score_adj(container.oom_score_adj)
        assert container.kept_oom_score_adj == kept
        assert status.fast_path.enabled
        assert status.fast_path.levels_bytes


def test_the_configuration_in_force_can_be_read_back():
    with served(
        kubelet(evictionSoft={"memory.available": "10%"}, evictionSoftGracePeriod={"memory.available": "1m"})
    ) as node:
        shown = node.json("/configz")["kubeletconfig"]
        assert shown["evictionHard"]["memory.available"] == "100Mi"
        assert kubelet_configuration(shown).eviction_soft == {"memory.available": "10%"}


def test_the_journal_can_be_read_from_a_time_on_and_followed():
    with served(HARD) as node:
        node.stage.put(pod_document("one", *TALK))
        node.stage.until(lambda: node.stage.is_up("one"))
        every = node.get("/journal").splitlines()
        assert list(decode(b"\n".join([*every, b""]))) == node.stage.entries()
        last_us = node.stage.entries()[-1].time_us
        later = [line for line in every if msgspec.json.decode(line)["time_us"] >= last_us]
        assert node.get(f"/journal?sinceUs={last_us}").splitlines() == later
        assert node.get(f"/journal?sinceUs={last_us + 1}") == b""
        assert node.get("/journal?tailLines=1").splitlines() == every[-1:]

        client = node.connected()
        client.send(b"GET /journal?follow=1&tailLines=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.setblocking(False)
        node.stage.until(lambda: node.api.server._turns.followers == 1)
        (node.stage.manifests / "one.json").unlink()
        heard = b""

        def came():
            nonlocal heard
            try:
                heard += client.recv(65536)
            except BlockingIOError:
                return False
            return b"CleanedUp" in heard

        node.stage.until(came)


def test_ready_until_it_ends():
    with served(HARD) as node:
        assert node.get("/healthz") == node.get("/readyz") == b"ok"
        assert node.ask("/healthz", tcp=True) == (200, b"ok")
        assert node.ask("/nothing")[0] == 404
        node.stage.node.reconciliation.end()
        assert node.ask("/readyz")[0] == 503


def test_rude_clients_do_not_slow_an_eviction():
    """Some ask for much and read nothing, some begin a request and stop, some ask again and again."""
    with served(HARD) as node, ExitStack() as rude:
        for number in range(16):
            client = rude.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            client.connect_ex(node.socket)
            node.stage.node.loop.step(0.01)
            target = ("/journal?follow=1", "/stats/summary", "/metrics", "/po")[number % 4]
            client.send(
                f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{'' if number % 3 else chr(13) + chr(10)}".encode()
            )
        names = [f"modest-{number}" for number in range(5)]
        node.stage.put(*(pod_document(name, *TALK, resources={"requests": {"memory": "16Mi"}}) for name in names))
        node.stage.until(lambda: node.stage.is_up(*names))
        node.stage.put(pod_document("greedy", *PYTHON, GROW, "230", resources={"requests": {"memory": "8Mi"}}))
        asking = [node.begin(target) for target in ("/metrics", "/stats/summary", "/pods", "/status") * 3]
        node.stage.until(lambda: node.stage.lines("Evicted"))
        node.stage.until(lambda: all(each.done() for each in asking))
        assert {each.result()[0] for each in asking} == {200}
        assert node.stage.lines("Evicted", "OOMKilled") == [("Evicted", "greedy")]
        (reaction,) = node.stage.node.world.reactions
        assert reaction.noticed is not None
        assert reaction.held - reaction.noticed < 20


def test_answering_takes_the_loop_a_moment_at_a_time():
    with served(HARD) as node:
        names = [f"p{number}" for number in range(30)]
        node.stage.put(*(pod_document(name, "sleep", "1000") for name in names))
        node.stage.until(lambda: node.stage.is_up(*names))
        longest = []
        for target in ("/metrics", "/stats/summary", "/pods", "/status"):
            asked = node.begin(target)
            while not asked.done():
                began = time.thread_time()
                node.stage.node.loop.step(0.01)
                longest.append(time.thread_time() - began)
            assert asked.result()[0] == 200
        longest.sort()
        assert longest[len(longest) * 9 // 10] < 0.05


def test_a_node_whose_socket_cannot_be_made_is_still_a_node():
    with running_node(HARD) as stage:
        (stage.settings.state_dir / "api.sock").mkdir()
        api = Api(stage.node, "0.1.0")
        api.open()
        assert any(said.startswith("no API: ") for said in stage.said)
        stage.put(pod_document("one", *TALK))
        stage.until(lambda: stage.is_up("one"))
        api.close()
