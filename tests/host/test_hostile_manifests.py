"""Manifests that mean harm, or are merely wrong, and a machine that fails: one pod's fault stays that pod's."""

from __future__ import annotations

import copy
import gc
import os
import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest

from host.fake_machine import FakeStage, fake_node
from host.nodes import pod_document
from podqos.agent.port import MemoryNotified, PodBound
from podqos.host.api.pod_list import PodList
from podqos.host.node import manifests
from podqos.host.node.manifests import ManifestFolder, RefusedManifest
from podqos.host.runtimes.runtime import ContainerStart
from podqos.host.storage.state import PodState

SEED, MUTANTS, BATCH = 20, 400, 100

# A pod with everything that a node reads.
FULL = pod_document(
    "full",
    "serve",
    args=["--port", "$(PORT)"],
    workingDir="/var",
    env=[
        {"name": "PORT", "value": "80"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ],
    ports=[{"name": "http", "containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
    resources={"requests": {"cpu": "10m", "memory": "1Mi"}, "limits": {"memory": "2Mi"}},
    volumeMounts=[{"name": "data", "mountPath": "/data", "subPath": "a/b", "readOnly": True}],
    startupProbe={"tcpSocket": {"port": "http", "host": "127.0.0.1"}, "failureThreshold": 1000},
    livenessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1, "terminationGracePeriodSeconds": 1},
    readinessProbe={
        "httpGet": {"port": 80, "path": "/", "host": "localhost", "httpHeaders": [{"name": "A", "value": "b"}]},
        "initialDelaySeconds": 1,
    },
    spec={
        "initContainers": [{"name": "first", "image": "none", "command": ["true"], "restartPolicy": "Always"}],
        "volumes": [
            {"name": "data", "emptyDir": {"sizeLimit": "1Mi"}},
            {"name": "host", "hostPath": {"path": "/var", "type": "Directory"}},
        ],
        "hostname": "full",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 1,
        "priorityClassName": "",
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}],
        "activeDeadlineSeconds": 100,
    },
)
FULL["metadata"] |= {"namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"}, "generateName": "g-"}

HOSTILE = (
    None, True, 0, -1, 1, 70_000, 2**31, 2**63, 10**30, 0.5, 1e308,
    "", " ", "..", "../../etc", "/", "a/b", ".", "a\0b", "\x1b[2J", "a\nb", "é", "\U0001f600", "99999999", "-1",
    "x" * 300, "x" * 200_000, "$(PORT)" * 1000, "$(", "$$", "1e9", "9" * 400, "-5Gi", "nan", "localhost\0",
    [], [None], [[]], [{}], ["..", 1], {}, {"": ""}, {"..": ".."}, {"a": {"b": {"c": []}}},
)  # fmt: skip


@pytest.fixture(autouse=True)
def _ordinary(monkeypatch):
    """Leave the priority and the garbage of the tests alone."""
    monkeypatch.setattr(os, "setpriority", lambda *_: None)
    monkeypatch.setattr(os, "sched_setscheduler", lambda *_: None)
    monkeypatch.setattr(gc, "collect", lambda: 0)
    yield
    gc.unfreeze()
    gc.enable()


@pytest.fixture
def stage():
    with fake_node() as made:
        made.put(pod_document("bystander", "serve"))
        made.until(lambda: made.is_up("bystander"))
        yield made


def _untouched(stage: FakeStage) -> bool:
    told = [kind for kind, pod in stage.lines() if pod == "bystander" and kind != "Adopted"]
    return stage.is_up("bystander") and told == ["Admitted", "Started"]


def _places(value: object, path: tuple = ()) -> Iterator[tuple]:
    """Yield the path of every field and item."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from _places(item, (*path, key))


def _mutant(chance: random.Random, number: int) -> dict:
    """Return the full pod with hostile values in one to three places, and a name of its own."""
    pod = copy.deepcopy(FULL)
    pod["metadata"]["name"] = f"mutant-{number}"
    places = [place for place in _places(FULL) if len(place) > 1]
    for place in chance.sample(places, chance.choice((1, 1, 2, 3))):
        holder = pod
        try:
            for step in place[:-1]:
                holder = holder[step]
            # A value of another type rarely gets far.
            alike = [value for value in HOSTILE if type(value) is type(holder[place[-1]])]
            holder[place[-1]] = chance.choice(alike if alike and chance.random() < 0.8 else HOSTILE)
        except (TypeError, KeyError, IndexError):
            continue  # what was around it is gone
    return pod


def _settle(stage: FakeStage) -> None:
    """Have the directory read and everything done about it."""
    stage.node.manifests.scan()
    stage.until(lambda: not stage.node.manifests.is_scanning and not stage.node.reconciliation.is_working)


def test_no_value_of_any_field_ends_the_agent_or_touches_another_pod(stage):
    chance = random.Random(SEED)  # noqa: S311
    stage.runtime.execute = lambda *_: None
    listed = PodList(stage.node)
    for start in range(0, MUTANTS, BATCH):
        for number in range(BATCH):
            document = _mutant(chance, start + number)
            (stage.manifests / f"m{number}.json").write_bytes(msgspec.json.encode(document))
        _settle(stage)
        stage.node.loop.run_for(0.1)
        msgspec.json.decode(b"".join(listed.pieces()))
    assert [line for line in stage.said if re.search("internal error|[a-z]Error|failed:", line)] == []
    assert len(stage.lines("Started")) > MUTANTS // 20, "some are harmless"
    assert len(stage.node.reconciliation.refused) > BATCH // 20, "some are not"
    assert _untouched(stage)
    ran = set(stage.node.world.pods)
    stage.lose_agent()
    assert ran == set(stage.node.world.pods), "what was saved about them can be read"
    assert _untouched(stage)


# ---- the loop is never held up ---------------------------------------------------------------------------------------


def test_three_thousand_manifests_at_once_never_hold_the_loop_up(stage):
    for number in range(3000):
        (stage.manifests / f"p{number}.json").write_bytes(msgspec.json.encode(pod_document(f"p{number}", "serve")))
    turns = []

    def are_all_there() -> bool:
        turns.append(time.thread_time())
        return len(stage.node.world.pods) + len(stage.node.world.over) == 3001

    stage.node.manifests.scan()
    stage.until(are_all_there, seconds=300)
    assert len(stage.node.world.pods) == stage.node.config.max_pods
    assert {state.reason for state in stage.node.world.over.values()} == {"OutOfpods"}
    assert max(after - before for before, after in pairwise(turns)) < 1, "a few milliseconds each"
    assert _untouched(stage)


def test_replicas_beyond_what_a_node_can_have_are_counted_and_not_made(stage):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod_document("x", "serve")["spec"]}
    stage.put({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1_000_000, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    })  # fmt: skip
    stage.until(lambda: len(stage.runtime.running) == 110)
    _settle(stage)
    assert any("1000000 replicas" in line and "999890 are not created" in line for line in stage.said)
    assert "the node is full (110 pods): 1 more pending" in stage.said
    assert not stage.node.world.over, "none is rejected"
    assert _untouched(stage)
    (stage.manifests / "bystander.json").unlink()
    stage.until(lambda: len([each for each in stage.node.world.pods.values() if each.running]) == 110)
    stage.until(lambda: stage.is_up("web-109"))


def _mount(sub_path: str) -> dict:
    return {"name": "data", "mountPath": "/data", "subPath": sub_path}


# ---- what the API server would refuse --------------------------------------------------------------------------------

_WRONG = [
    ({"name": "a/b"}, '.name: Invalid value: "a/b": a lowercase RFC 1123 label'),
    ({"name": "x" * 64}, "must be no more than 63 characters"),
]


@pytest.mark.parametrize(("change", "words"), _WRONG)
def test_what_the_api_server_refuses_is_refused_in_its_words_before_anything_is_done(stage, change, words):
    wrong = pod_document("wrong", "serve", spec={"volumes": [{"name": "data", "emptyDir": {}}]})
    wrong["spec"]["containers"][0] |= change
    stage.put(wrong)
    stage.until(lambda: stage.node.reconciliation.refused)
    (refused,) = stage.node.reconciliation.refused.values()
    assert refused.why.startswith('Pod "wrong" is invalid: ')
    assert words in refused.why
    assert f"wrong.json: default/wrong: {refused.why}" in stage.said
    assert not list((stage.settings.state_dir / "data").glob("*/volumes/data"))
    assert _untouched(stage)


@pytest.mark.parametrize(
    ("metadata", "spec", "field"),
    [
        ({"name": "../x"}, {}, "metadata.name"),
        ({"name": "x" * 254}, {}, "metadata.name"),
        ({"namespace": "../../x"}, {}, "metadata.namespace"),
        ({"namespace": "a/b"}, {}, "metadata.namespace"),
        ({}, {"volumes": [{"name": "../../../x", "emptyDir": {}}]}, "spec.volumes[0].name"),
    ],
)
def test_names_are_not_paths(tmp_path, metadata, spec, field):
    document = pod_document("wrong", "serve", spec=spec)
    document["metadata"] |= metadata
    (tmp_path / "wrong.json").write_bytes(msgspec.json.encode(document))
    scan = ManifestFolder(tmp_path).scan()
    (wanted,) = scan.wanted
    refused = scan.admitted(wanted)
    assert isinstance(refused, RefusedManifest)
    assert f"is invalid: {field}: Invalid value" in refused.why


def test_an_object_larger_than_a_request_may_be_is_refused_in_the_api_servers_words(tmp_path):
    document = pod_document("large", "serve", env=[{"name": "A", "value": "x" * (3 << 20)}])
    (tmp_path / "large.json").write_bytes(msgspec.json.encode(document))
    scan = ManifestFolder(tmp_path).scan()
    assert scan.admitted(scan.wanted[0]).why == "Request entity too large: limit is 3145728"


# ---- what only this machine refuses ----------------------------------------------------------------------------------


def _doubling(times: int) -> list[dict]:
    grown = [{"name": f"V{number}", "value": f"$(V{number - 1})" * 2} for number in range(1, times)]
    return [{"name": "V0", "value": "x" * 1024}, *grown]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"env": [{"name": "BIG", "value": "x" * 1_100_000}]}, "env BIG: argument list too long: 1100000 bytes"),
        ({"env": _doubling(40)}, "env V7: argument list too long"),
        ({"args": ["a\0b"]}, "contains a NUL character"),
        ({"workingDir": "/var\0x"}, "contains a NUL character"),
        ({"volumeMounts": [{"name": "host", "mountPath": "/x"}]}, "contains a NUL character"),
    ],
)
def test_what_the_kernel_would_not_take_fails_the_container_which_backs_off_and_says_so(stage, change, words):
    volumes = [{"name": "host", "hostPath": {"path": "/var\0/x"}}] if "volumeMounts" in change else []
    stage.put(pod_document("wrong", "serve", spec={"volumes": volumes}, **change))
    stage.until(lambda: len(stage.lines("Exited")) == 2)
    assert {entry.because.exit_code for entry in stage.entries("Exited")} == {128}
    assert any(line.startswith("default/wrong: ") and words in line for line in stage.said)
    status = PodList(stage.node).document(stage.pod("wrong").uid)["status"]["containerStatuses"][0]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["lastState"]["terminated"]["reason"] == "StartError"
    assert words in status["lastState"]["terminated"]["message"]
    assert _untouched(stage)


def test_links_in_a_volume_do_not_lead_a_sub_path_out_of_it(stage, tmp_path):
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "out").symlink_to("/etc")
    (tmp_path / "volume" / "in").symlink_to("deep/er")
    volumes = [{"name": "host", "hostPath": {"path": str(tmp_path / "volume")}}]
    for name in ("out", "in"):
        mounts = [{"name": "host", "mountPath": "/x", "subPath": f"{name}/ssl"}]
        stage.put(pod_document(name, "serve", spec={"volumes": volumes}, volumeMounts=mounts))
    stage.until(lambda: stage.is_up("in") and stage.lines("Exited"))
    assert "default/out: subPath out/ssl leads out of its volume" in stage.said
    (run,) = stage.pod("in").running
    assert run.start.mounts[0].source == str(tmp_path / "volume" / "deep" / "er" / "ssl")
    assert (tmp_path / "volume" / "deep" / "er" / "ssl").is_dir()


def test_whatever_a_runtime_raises_about_one_container_is_about_that_container(stage, monkeypatch):
    start = stage.runtime.start

    def some_fail(container: ContainerStart) -> int:
        if container.command == ("fail",):
            raise RuntimeError("a mistake of ours")
        return start(container)

    monkeypatch.setattr(stage.runtime, "start", some_fail)
    stage.put(pod_document("wrong", "fail"), pod_document("right", "serve"))
    stage.until(lambda: stage.is_up("right") and len(stage.lines("Exited")) == 2)
    assert "default/wrong: RuntimeError: a mistake of ours" in stage.said
    assert _untouched(stage)


def test_a_pod_that_the_agent_itself_cannot_handle_is_refused_and_the_others_run(stage, monkeypatch):
    deliver = stage.node.driver.deliver

    def some_fail(now_us: int, event: object) -> None:
        if isinstance(event, PodBound) and event.pod.metadata.name == "wrong":
            raise KeyError("a mistake of ours")
        deliver(now_us, event)

    monkeypatch.setattr(stage.node.driver, "deliver", some_fail)
    stage.put(pod_document("wrong", "serve"), pod_document("zright", "serve"))
    stage.until(lambda: stage.is_up("zright"))
    (refused,) = stage.node.reconciliation.refused.values()
    assert refused.why == "podqos cannot run it: KeyError: 'a mistake of ours'"
    assert any(line.startswith("internal error: KeyError") and "the node keeps running" in line for line in stage.said)
    assert _untouched(stage)


def test_a_pod_that_could_not_be_stopped_is_stopped_later(stage, monkeypatch):
    terminate = stage.runtime.terminate
    calls = []

    def fails_once(container: object) -> None:
        calls.append(container)
        if len(calls) == 1:
            raise OSError(5, "Input/output error")
        terminate(container)

    monkeypatch.setattr(stage.runtime, "terminate", fails_once)
    stage.put(pod_document("web", "serve", spec={"terminationGracePeriodSeconds": 60}))
    stage.until(lambda: stage.is_up("web"))
    (stage.manifests / "web.json").unlink()
    stage.until(lambda: stage.lines("CleanedUp"))
    assert any("default/web: StopPod failed" in line for line in stage.said)
    assert stage.runtime.signals == [("main", signal.SIGTERM)]
    assert _untouched(stage)


def test_a_pod_whose_state_cannot_be_saved_keeps_no_other_from_running(stage, monkeypatch):
    save = stage.node.state.save

    def some_fail(state: PodState, **named: object) -> None:
        if state.pod.metadata.name == "wrong" and state.containers:
            raise UnicodeEncodeError("utf-8", "", 0, 1, "surrogates not allowed")
        save(state, **named)

    monkeypatch.setattr(stage.node.state, "save", some_fail)
    stage.put(pod_document("wrong", "serve"), pod_document("zright", "serve"))
    stage.until(lambda: stage.is_up("wrong", "zright"))
    assert any(line.startswith("default/wrong: its state cannot be saved") for line in stage.said)
    assert _untouched(stage)


def test_figures_that_cannot_be_read_do_not_end_the_watch_over_memory(stage, monkeypatch):
    real = stage.node.figures.full, stage.node.figures.quick

    def fails(_pods: object) -> None:
        raise OSError(24, "Too many open files")

    for name in ("full", "quick"):
        monkeypatch.setattr(stage.node.figures, name, fails)
    stage.node.deliver(MemoryNotified())
    assert any("statistics cannot be read" in line for line in stage.said)
    for name, function in zip(("full", "quick"), real, strict=True):
        monkeypatch.setattr(stage.node.figures, name, function)
    stage.use("bystander", 220)
    stage.until(lambda: stage.lines("Evicted"))


def test_a_directory_that_hangs_holds_nothing_up_and_is_said(stage, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(stage.node.manifests.folder, "scan", gate.wait)
    stage.node.manifests.scan()
    stage.node.manifests.rescan()
    stage.node.loop.run_for(0.05)
    assert any(line.endswith("not read within 20 s: pods stay as they are until then") for line in stage.said)
    assert _untouched(stage)
    stage.node.manifests._is_outdated = False
    gate.set()


# ---- files whose content is not known --------------------------------------------------------------------------------


def test_pods_of_a_directory_that_cannot_be_listed_are_left_as_they_are(stage):
    hidden = stage.manifests.with_name("hidden")
    stage.manifests.rename(hidden)
    _settle(stage)
    assert stage.is_up("bystander")
    assert any(line.endswith("No such file or directory: pods stay as they are") for line in stage.said)
    stage.lose_agent()
    _settle(stage)
    assert stage.is_up("bystander"), "the next agent does not make an empty directory either"
    stage.manifests.write_text("")
    _settle(stage)
    assert stage.is_up("bystander")
    stage.manifests.unlink()
    hidden.rename(stage.manifests)
    (stage.manifests / "bystander.json").unlink()
    _settle(stage)
    stage.until(lambda: stage.lines("CleanedUp"))


@pytest.mark.parametrize("what", ["loop", "dangling", "fifo", "folder", "broken", "empty", "huge"])
def test_pods_of_a_file_that_cannot_be_read_are_left_as_they_are_also_by_the_next_agent(stage, what, monkeypatch):
    stage.put(pod_document("zlast", "serve"))
    stage.until(lambda: stage.is_up("zlast"))
    file = stage.manifests / "bystander.json"
    file.unlink()
    match what:
        case "loop" | "dangling":
            file.symlink_to(file.name if what == "loop" else "nothing")
        case "fifo":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case "huge":
            monkeypatch.setattr(manifests, "_MOST_FILE_BYTES", 200)
            file.write_bytes(b" " * 300)
        case _:
            file.write_text("{" if what == "broken" else "")
    for _ in range(2):
        _settle(stage)
        assert stage.is_up("bystander", "zlast")
        stage.lose_agent()
    if what not in {"broken", "empty"}:
        assert any(line.endswith("the pods of this file stay as they are") for line in stage.said)
    # It is gone; that is known.
    file.rmdir() if what == "folder" else file.unlink()
    _settle(stage)
    stage.until(lambda: stage.lines("CleanedUp"))
    assert stage.is_up("zlast")


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    file.write_bytes(msgspec.json.encode(pod_document("a", "serve")))
    folder = ManifestFolder(tmp_path)
    (before,) = folder.scan().wanted
    file.write_bytes(msgspec.json.encode(pod_document("a", "other")))
    fstat, looks = os.fstat, []

    def grows(descriptor: int) -> os.stat_result:
        looks.append(descriptor)
        if len(looks) == 2:
            with file.open("ab") as more:
                more.write(b" ")
        return fstat(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", grows)
        scan = folder.scan()
    assert not scan.reading.is_settled
    assert scan.wanted == (before,)
    assert scan.leaves("a.json")
    scan = folder.scan()
    assert scan.reading.is_settled
    assert scan.wanted[0].run.container("main").command == ("other",)


def test_a_name_of_a_file_may_be_any_bytes(stage):
    name = os.fsencode(stage.manifests) + b"/\xff\n.json"
    too_much = {"requests": {"memory": "2Mi"}, "limits": {"memory": "1Mi"}}
    with open(name, "wb") as file:  # noqa: PTH123 - no path of text
        file.write(msgspec.json.encode(pod_document("odd", "serve", resources=too_much)))
    stage.until(lambda: stage.node.reconciliation.refused)
    assert all(line.isprintable() for line in stage.said)
    msgspec.json.encode(list(stage.node.reconciliation.refused.values()))
