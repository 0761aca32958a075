"""A whole node on the real kernel: what the agent decides is what happens."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest

from host.machine import needs_node
from host.nodes import GROW, MI, PYTHON, kubelet, pod_document, running_node
from podqos.qos.cgroup import pod_cgroups, tier_cgroups
from podqos.qos.cgroup_paths import UNKNOWN_ID
from podqos.qos.classes import classify

pytestmark = [needs_node, pytest.mark.slow]

HARD = kubelet(evictionHard={"memory.available": "64Mi"})
_SLEEP = ("sleep", "1000")


def _requests(memory: str, limit: str | None = None) -> dict[str, object]:
    return {"requests": {"memory": memory, "cpu": "10m"}, "limits": {"memory": limit} if limit else {}}


def test_the_tree_and_its_values_are_the_plans():
    fixed = {"memory": "32Mi", "cpu": "100m"}
    with running_node(HARD) as stage:
        stage.put(
            pod_document("guaranteed", *_SLEEP, resources={"requests": fixed, "limits": fixed}),
            pod_document("burstable", *_SLEEP, resources=_requests("16Mi", "64Mi")),
            pod_document("best-effort", *_SLEEP),
        )
        stage.until(lambda: stage.is_up("guaranteed", "burstable", "best-effort"))
        node, settings = stage.node, stage.node.config.cgroups
        planned = list(tier_cgroups(node.driver.state.tiers, settings))
        for record in node.driver.state.pods.values():
            (run,) = node.world.pods[record.pod.metadata.uid].running
            ids = {"main": run.cgroup.rpartition("/")[2]}
            cgroups = pod_cgroups(record.pod, classify(record.pod).qos_class, settings, ids=ids)
            planned += (cgroup for cgroup in cgroups if UNKNOWN_ID not in cgroup.path)
            (pid,) = node.cgroups.processes(run.cgroup)
            wanted, _ = node.capabilities.oom_score_adj(run.plan.oom_score_adj)
            assert node.procfs.oom_score_adj(pid) == wanted
        assert len(planned) == 3 + 3 * 2
        for cgroup in planned:
            for file in cgroup.files:
                if file.text is not None:
                    assert node.cgroups.read(cgroup.path, file.name).strip() == file.text, (cgroup.path, file.name)


def test_the_manager_evicts_the_pod_above_its_request_and_no_other():
    with running_node(HARD) as stage:
        stage.put(
            pod_document("modest", *PYTHON, GROW, "40", resources=_requests("64Mi")),
            pod_document("greedy", *PYTHON, GROW, "160", resources=_requests("8Mi")),
        )
        stage.until(lambda: stage.lines("CleanedUp"))
        assert stage.lines("Evicted", "OOMKilled") == [("Evicted", "greedy")]
        (entry,) = stage.entries("Evicted")
        assert entry.because.over_request
        assert stage.is_up("modest")
        (state,) = stage.node.world.over.values()
        assert (state.phase, state.reason) == ("Failed", "Evicted")


def test_a_pod_that_is_evicted_stays_so_until_its_manifest_is_another():
    with running_node(HARD) as stage:
        greedy = pod_document("greedy", *PYTHON, GROW, "220", resources=_requests("8Mi"))
        stage.put(greedy)
        stage.until(lambda: stage.lines("CleanedUp"))
        stage.node.manifests.scan()
        stage.node.loop.run_for(0.3)
        assert stage.lines("Admitted") == [("Admitted", "greedy")]
        stage.put(pod_document("greedy", *_SLEEP, resources=_requests("8Mi")))
        stage.until(lambda: stage.is_up("greedy"))


def test_a_critical_pod_is_never_evicted():
    critical = pod_document("critical", *PYTHON, GROW, "150")
    critical["metadata"]["annotations"] = {"kubernetes.io/config.source": "file"}
    with running_node(HARD) as stage:
        stage.put(critical, pod_document("other", *PYTHON, GROW, "60", resources=_requests("8Mi")))
        stage.until(lambda: stage.lines("CleanedUp"))
        assert stage.lines("Evicted") == [("Evicted", "other")]
        assert stage.is_up("critical")


def test_of_two_that_grow_at_once_both_go_without_waiting_for_a_pass():
    # At last slowly enough for a node that is held up for seconds, whichever way, to be before the kernel.
    leak = "import time\nkept = [b'x' * (110 << 20)]\nwhile True: kept.append(b'x' * (1 << 20)); time.sleep(0.03)"
    with running_node(kubelet(evictionHard={"memory.available": "256Mi"}), memory_bytes=512 * MI) as stage:
        stage.put(*(pod_document(name, *PYTHON, leak, resources=_requests("8Mi")) for name in ("one", "two")))
        stage.until(lambda: len(stage.lines("CleanedUp")) == 2)
        assert sorted(stage.lines("Evicted", "OOMKilled")) == [("Evicted", "one"), ("Evicted", "two")]
        assert [reaction.noticed is not None for reaction in stage.node.world.reactions] == [True, True]


def test_a_shadow_decides_and_lets_live():
    with running_node(HARD, shadow=True) as stage:
        stage.put(pod_document("greedy", *PYTHON, GROW, "210", resources=_requests("8Mi")))
        stage.until(lambda: stage.lines("WouldEvict"))
        assert stage.is_up("greedy")
        assert not stage.lines("Evicted", "Stopped")


def test_without_the_fast_path_nothing_is_seen_before_the_next_pass():
    with running_node(HARD, fast_path=False) as stage:
        stage.put(pod_document("greedy", *PYTHON, GROW, "210", resources=_requests("8Mi")))
        stage.until(lambda: "grown" in stage.log("greedy"))
        stage.node.loop.run_for(0.5)
        assert stage.is_up("greedy")
        assert not stage.lines("Evicted")


_WINDS_UP = (
    "import signal, sys, time\n"
    "def end(*_): print('winding up', flush=True); time.sleep(0.3); print('done', flush=True); sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, end); kept = bytearray(100 << 20)\n"
    "for at in range(0, len(kept), 4096): kept[at] = 1\n"
    "print('grown', flush=True)\n"
    "while True: time.sleep(1)"
)


def test_a_soft_eviction_lets_the_pod_wind_up_within_its_grace():
    soft = kubelet(
        evictionHard={"memory.available": "10Mi"},
        evictionSoft={"memory.available": "200Mi"},
        evictionSoftGracePeriod={"memory.available": "1s"},
        evictionMaxPodGracePeriod=5,
    )
    with running_node(soft) as stage:
        stage.put(pod_document("polite", *PYTHON, _WINDS_UP))
        stage.until(lambda: "grown" in stage.log("polite"))
        stage.look()
        stage.node.loop.run_for(1.1)
        stage.look()
        assert stage.lines("Evicted")
        stage.until(lambda: stage.lines("Stopped"))
        (entry,) = stage.entries("Evicted")
        assert entry.because.grace_period_seconds == 5
        stage.until(lambda: stage.log("polite").endswith(" stdout F done\n"))


def test_a_hard_eviction_stops_growth_but_lets_a_pod_that_does_not_grow_finish():
    growing = pod_document("growing", *PYTHON, GROW, "100")
    growing["metadata"]["annotations"] = {"kubernetes.io/config.source": "file"}
    with running_node(HARD) as stage:
        stage.put(pod_document("polite", *PYTHON, _WINDS_UP))
        stage.until(lambda: "grown" in stage.log("polite"))
        stage.put(growing)
        stage.until(lambda: stage.lines("Stopped"))
        assert stage.lines("Evicted", "Stopped") == [("Evicted", "polite"), ("Stopped", "polite")]
        stage.until(lambda: stage.log("polite").endswith(" stdout F done\n"))
        (reaction,) = stage.node.world.reactions
        assert reaction.killed is None


def test_an_empty_dir_above_its_limit_has_its_pod_evicted():
    document = pod_document(
        "writer",
        "sh", "-c", "dd if=/dev/zero of=$PODQOS_VOLUME_DATA/file bs=1M count=20 2>/dev/null; echo written; sleep 1000",
        spec={"volumes": [{"name": "data", "emptyDir": {"sizeLimit": "5Mi"}}]},
        volumeMounts=[{"name": "data", "mountPath": "/mnt"}],
    )  # fmt: skip
    with running_node(HARD) as stage:
        stage.put(document, pod_document("other", *_SLEEP))
        stage.until(lambda: "written" in stage.log("writer") and stage.is_up("other"))
        figures = stage.node.figures
        figures.disk.begin(figures.folders(stage.node.world.pods.values()))
        figures.disk.go_on(10)
        stage.look()
        stage.until(lambda: stage.lines("CleanedUp"))
        (entry,) = stage.entries("Evicted")
        assert (entry.pod, entry.because.limit_kind, entry.because.name) == (
            "default/writer", "emptydirfs.limit", "data",
        )  # fmt: skip
        assert entry.because.used_bytes >= 20 * MI
        assert not list((stage.settings.state_dir / "data").glob("*/volumes/data/file"))


def test_a_volume_is_shown_where_the_container_expects_it(tmp_path):
    shown = tmp_path / "shown"
    for folder in (shown, tmp_path / "machine"):
        folder.mkdir()
    (tmp_path / "machine" / "given").write_text("from the machine")
    document = pod_document(
        "reader",
        "sh", "-c", "cat $0/given; echo; echo new > $0/x || echo cannot write; sleep 1000", str(shown),
        spec={"volumes": [{"name": "host", "hostPath": {"path": str(tmp_path / "machine")}}]},
        volumeMounts=[{"name": "host", "mountPath": str(shown), "readOnly": True}],
    )  # fmt: skip
    with running_node(HARD) as stage:
        if not stage.node.capabilities.can_mount:
            pytest.skip("CAP_SYS_ADMIN is missing")
        stage.put(document)
        stage.until(lambda: "cannot write" in stage.log("reader"))
        assert "from the machine" in stage.log("reader")


def test_process_ids_running_out_evict_the_pod_with_most_of_them():
    from podqos.host.linux.procfs import Procfs

    procfs = Procfs()
    threshold = procfs.max_pids() - procfs.running_threads() - 500  # others on the machine come and go
    forks = (
        "import os, time\nfor _ in range(1000):\n    if os.fork() == 0: time.sleep(1000)\n"
        "print('forked', flush=True); time.sleep(1000)"
    )
    with running_node(kubelet(evictionHard={"pid.available": str(threshold)}), memory_bytes=1024 * MI) as stage:
        stage.put(pod_document("forker", *PYTHON, forks), pod_document("other", *_SLEEP))
        stage.until(lambda: "forked" in stage.log("forker") and stage.is_up("other"))
        stage.look()
        stage.until(lambda: stage.lines("CleanedUp"))
        assert stage.lines("Evicted") == [("Evicted", "forker")]
        assert stage.is_up("other")


def test_what_ends_is_restarted_at_once_and_then_after_ten_seconds():
    with running_node(HARD) as stage:
        stage.put(pod_document("crash", "sh", "-c", "exit 3"))
        stage.until(lambda: len(stage.lines("Exited")) == 2)
        first, second = stage.entries("Exited")
        assert (first.because.exit_code, second.because.exit_code) == (3, 3)
        (restarted,) = stage.entries("Restarted")
        assert (restarted.because.restarts, restarted.because.back_off_seconds) == (1, 0)
        (due,) = stage.node.driver.state.restarts
        # Since it ended, which the journal may tell a little later.
        assert 5_000_000 < due.wake_us - second.time_us <= 10_000_000


def test_init_containers_run_in_order_and_sidecars_end_last():
    said = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(sys.argv[1], 'ends', flush=True)))\n"
        "print(sys.argv[1], 'begins', flush=True)\n"
        "while True: time.sleep(1)"
    )
    init = {"name": "init", "image": "none", "command": ["sh", "-c", "sleep 0.2; echo init ends"]}
    sidecar = {"name": "side", "image": "none", "restartPolicy": "Always", "command": [*PYTHON, said, "side"]}
    document = pod_document("ordered", *PYTHON, said, "main", spec={"initContainers": [sidecar, init]})
    with running_node(HARD) as stage:
        stage.put(document)
        stage.until(lambda: "main begins" in stage.log("ordered"))
        uid = stage.pod("ordered").uid
        folder = stage.settings.state_dir / "logs" / f"default_ordered_{uid}"
        kept = [stage.folder / name for name in ("side", "init", "main")]
        for copy in kept:
            os.link(folder / copy.name / "0.log", copy)
        (stage.manifests / "ordered.json").unlink()
        stage.until(lambda: stage.lines("CleanedUp"))
        stage.until(lambda: sum(copy.read_text().count("\n") for copy in kept) == 5)
        lines = sorted(line for copy in kept for line in copy.read_text().splitlines())
        said_in_order = [" ".join(line.split()[3:]) for line in lines]
        assert said_in_order == ["side begins", "init ends", "main begins", "main ends", "side ends"]


def test_a_container_that_ignores_sigterm_is_killed_when_its_grace_is_over():
    stubborn = pod_document(
        "stubborn", "sh", "-c", "trap '' TERM; echo up; while true; do sleep 0.1; done",
        spec={"terminationGracePeriodSeconds": 1},
    )  # fmt: skip
    with running_node(HARD) as stage:
        stage.put(stubborn)
        stage.until(lambda: "up" in stage.log("stubborn"))
        (stage.manifests / "stubborn.json").unlink()
        began = time.monotonic()
        stage.until(lambda: stage.lines("CleanedUp"))
        assert 0.9 < time.monotonic() - began < 29, "not the thirty seconds of a pod that says nothing"


def test_a_container_that_its_probe_finds_dead_is_restarted():
    probe = {"exec": {"command": ["test", "!", "-e", "dead"]}, "periodSeconds": 1, "failureThreshold": 1}
    with running_node(HARD) as stage:
        stage.put(
            pod_document(
                "sick", "sh", "-c", "sleep 0.5; touch dead; while true; do sleep 0.1; done", livenessProbe=probe
            )
        )
        stage.until(lambda: stage.lines("Restarted"))
        assert stage.entries("Exited")[0].because.exit_code == 128 + signal.SIGTERM


_SERVER = (
    "import socket, sys, time\n"
    "server = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
    "began = time.time()\n"
    "while True:\n"
    "    peer, _ = server.accept()\n"
    "    peer.settimeout(0.2)\n"
    "    try: peer.recv(1000)\n"
    "    except OSError: continue\n"
    "    status = b'200 OK' if time.time() - began > 1.5 else b'503 Not yet'\n"
    "    peer.sendall(b'HTTP/1.1 ' + status + b'\\r\\n\\r\\n'); peer.close()\n"
)


def test_a_container_is_ready_when_its_probes_say_so(unused_port):
    document = pod_document(
        "web", *PYTHON, _SERVER, str(unused_port),
        startupProbe={"tcpSocket": {"port": "http"}, "periodSeconds": 1, "failureThreshold": 30},
        readinessProbe={"httpGet": {"port": unused_port, "path": "/ready"}, "periodSeconds": 1},
        ports=[{"name": "http", "containerPort": unused_port}],
    )  # fmt: skip
    with running_node(HARD) as stage:
        stage.put(document)
        stage.until(lambda: stage.is_up("web"))
        (run,) = stage.pod("web").running
        assert not run.is_ready
        stage.until(lambda: run.is_ready)


def test_a_changed_manifest_replaces_its_pod_and_half_of_one_does_nothing():
    with running_node(HARD) as stage:
        stage.put(pod_document("web", *_SLEEP))
        stage.until(lambda: stage.is_up("web"))
        before = stage.pod("web").uid
        (stage.manifests / "web.json").write_text('{"apiVersion": "v1", "kind": "Pod", "meta')
        stage.node.loop.run_for(0.3)
        assert stage.pod("web").uid == before
        stage.put(pod_document("web", "sleep", "2000"))
        stage.until(lambda: stage.is_up("web") and stage.pod("web").uid != before)
        assert stage.lines("Started", "CleanedUp") == [
            ("Started", "web"), ("CleanedUp", "web"), ("Started", "web"),
        ]  # fmt: skip


def test_a_container_that_cannot_be_started_is_tried_again_and_named():
    with running_node(HARD) as stage:
        stage.put(pod_document("wrong", "/no/such/command"))
        stage.until(lambda: len(stage.lines("Exited")) == 2)
        assert any("/no/such/command" in line for line in stage.said)


def test_what_no_process_can_be_given_and_probes_that_hang_end_neither_the_shim_nor_other_pods():
    with running_node(HARD) as stage:
        stage.put(pod_document("bystander", *_SLEEP))
        stage.until(lambda: stage.is_up("bystander"))
        shim, (pid,) = stage.node.runtime._shim.pid, [run.pid for run in stage.pod("bystander").running]
        descriptors = Path(f"/proc/{shim}/fd")
        before = len(list(descriptors.iterdir()))
        many = [{"name": f"V{number}", "value": "x" * 100_000} for number in range(30)]
        hangs = {"exec": {"command": ["sh", "-c", "sleep 1001 & exec sleep 1001"]}, "periodSeconds": 1}
        stage.put(
            pod_document("one", *_SLEEP, env=[{"name": "BIG", "value": "x" * 1_100_000}]),
            pod_document("sum", *_SLEEP, env=many),
            pod_document("probed", *_SLEEP, readinessProbe=hangs),
        )
        stage.until(lambda: len(stage.lines("Exited")) >= 4 and stage.is_up("probed"))
        stage.node.loop.run_for(2.5)
        assert any("default/one: env BIG: argument list too long" in line for line in stage.said)
        assert any("default/sum: sleep: " in line and "Argument list too long" in line for line in stage.said)
        (probed,) = stage.pod("probed").running
        # One probe at a time, once what was killed is gone; open are the output of the container and its log.
        stage.until(lambda: len(stage.node.cgroups.processes(probed.cgroup)) <= 1 + 2)
        stage.until(lambda: len(list(descriptors.iterdir())) <= before + 3)
        assert stage.node.runtime._shim.pid == shim
        assert [run.pid for run in stage.pod("bystander").running] == [pid]


def test_a_kernel_kill_is_told_with_its_reasons():
    with running_node(HARD) as stage:
        stage.put(pod_document("small", *PYTHON, GROW, "60", resources=_requests("16Mi", "32Mi")))
        stage.until(lambda: stage.lines("Exited") and stage.lines("OOMKilled"))
        exited = stage.entries("Exited")[0]
        assert (exited.because.exit_code, exited.because.oom_killed) == (137, True)
        killed = stage.entries("OOMKilled")[0]
        assert (killed.pod, killed.container, killed.by) == ("default/small", "main", "kernel")
        assert killed.because.limit_bytes == 32 * MI


def test_logs_are_rotated():
    chatty = pod_document(
        "chatty", "sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; sleep 1000"
    )
    with running_node(kubelet(containerLogMaxSize="20Ki", containerLogMaxFiles=3)) as stage:
        stage.put(chatty)
        stage.until(lambda: "line 2999" in stage.log("chatty"))
        (folder,) = (stage.settings.state_dir / "logs").glob("default_chatty_*/main")
        sizes = [file.stat().st_size for file in folder.iterdir()]
        assert len(sizes) == 3
        assert max(sizes) <= 20 << 10


def test_a_shim_that_dies_costs_restarts_but_nothing_else():
    with running_node(HARD) as stage:
        stage.put(pod_document("web", *_SLEEP))
        stage.until(lambda: stage.is_up("web"))
        (run,) = stage.pod("web").running
        parent = int(stage.node.procfs.stat(run.pid)[1])
        assert "shim" in (stage.node.procfs.root / str(parent) / "cmdline").read_text()
        os.kill(parent, signal.SIGKILL)
        stage.until(lambda: stage.lines("Restarted") and stage.is_up("web"))
        (again,) = stage.pod("web").running
        stage.until(lambda: stage.node.cgroups.processes(stage.pod("web").cgroup) == [again.pid])


_STUBBORN = ("sh", "-c", "trap '' TERM; echo up; while true; do sleep 0.1; done")


def test_a_pod_that_was_being_stopped_when_the_agent_was_lost_is_stopped_by_the_next_one_and_not_kept():
    """Its manifest is back by then: it is to run again, but not to run on."""
    document = pod_document("stubborn", *_STUBBORN, spec={"terminationGracePeriodSeconds": 1})
    with running_node(HARD) as stage:
        stage.put(document)
        stage.until(lambda: "up" in stage.log("stubborn"))
        (before,) = stage.pod("stubborn").running
        (stage.manifests / "stubborn.json").unlink()
        stage.until(lambda: stage.pod("stubborn").is_stopping)
        stage.put(document)
        stage.lose_agent()
        stage.until(lambda: stage.lines("CleanedUp") and stage.is_up("stubborn"))
        assert stage.lines("Adopted", "Stopped", "CleanedUp", "Started") == [
            ("Started", "stubborn"), ("Adopted", "stubborn"), ("Stopped", "stubborn"), ("CleanedUp", "stubborn"),
            ("Started", "stubborn"),
        ]  # fmt: skip
        (after,) = stage.pod("stubborn").running
        assert after.pid != before.pid


def test_without_the_fast_path_a_victim_may_grow_on_until_its_grace_is_over():
    grow_on = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); kept = [b'x' * (200 << 20)]\n"
        "print('grown', flush=True)\n"
        "while True: kept.append(b'x' * (1 << 16)); print('more', flush=True); time.sleep(0.1)"
    )
    with running_node(HARD, fast_path=False) as stage:
        stage.put(pod_document("greedy", *PYTHON, grow_on, resources=_requests("8Mi")))
        stage.until(lambda: "grown" in stage.log("greedy"))
        stage.look()
        assert stage.lines("Evicted") == [("Evicted", "greedy")]
        before = stage.log("greedy").count("more")
        log = stage.pod("greedy").runs["main"].start.log
        stage.until(lambda: log.read_text().count("more") > before)
        assert not stage.lines("Stopped")
        assert stage.node.world.reactions == []
        assert stage.node.world.memory_watch.levels == {}


def test_a_cgroup_that_vanishes_is_survived():
    with running_node(HARD) as stage:
        stage.put(pod_document("web", *_SLEEP), pod_document("other", *_SLEEP))
        stage.until(lambda: stage.is_up("web", "other"))
        path = stage.pod("web").cgroup
        stage.node.cgroups.kill(path)
        while not stage.node.cgroups.remove(path):
            time.sleep(0.01)
        stage.look()
        stage.until(lambda: stage.lines("Restarted") and stage.is_up("web", "other"))


@pytest.fixture
def unused_port():
    """Find a port that the kernel gives to none that asks for any."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in range(first - 1 - os.getpid() % 10_000, 1024, -1):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    pytest.fail("every port is taken")
