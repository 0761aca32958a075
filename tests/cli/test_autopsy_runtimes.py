"""``podqos autopsy`` on what container runtimes show: docker, podman and crictl; whole or in part."""

from __future__ import annotations

import io
import json
import re

import pytest

from kernel.oom_logs import CONTAINER, ROWS, cgroup
from podqos.answers import inspected_containers

ID, OTHER = "ab" * 32, "cd" * 32


def inspected(identity=ID, *, name="/web", memory=1 << 29, **state) -> dict:
    """Return a container as ``docker inspect`` shows it."""
    known = {
        "Status": "exited",
        "Running": False,
        "OOMKilled": True,
        "ExitCode": 137,
        "FinishedAt": "2026-11-18T09:00:01.123456789Z",
        "Health": {"Status": "unhealthy", "Log": [{"ExitCode": 1}]},
    }
    return {
        "Id": identity,
        "Created": "2026-11-18T08:00:00Z",
        "Args": ["--Name", "x"],
        "State": known | state,
        "Name": name,
        "RestartCount": 2,
        "HostConfig": {"RestartPolicy": {"Name": "always"}, "Memory": memory, "OomKillDisable": False},
    }


CRI = {
    "status": {
        "id": ID,
        "metadata": {"attempt": 3, "name": "app"},
        "state": "CONTAINER_EXITED",
        "finishedAt": "2026-11-18T09:00:01.1Z",
        "exitCode": 137,
        "image": {"image": "web:1"},
        "reason": "OOMKilled",
        "labels": {
            "io.kubernetes.container.name": "app",
            "io.kubernetes.pod.name": "db-0",
            "io.kubernetes.pod.namespace": "shop",
            "io.kubernetes.pod.uid": "11111111-2222-3333-4444-555555555555",
        },
        "resources": {"linux": {"memoryLimitInBytes": "536870912"}},
    },
    "info": {"sandboxID": OTHER, "pid": 0},
}
FORMS = {
    "docker inspect": json.dumps([inspected()], indent=4),
    "docker inspect, one line": json.dumps([inspected()]),
    "docker inspect, JSON of one": json.dumps(inspected()),
    "docker inspect, quoted in Markdown": "see below\n\n```json\n" + json.dumps([inspected()], indent=4) + "\n```\n",
    "podman inspect": json.dumps([inspected(name="web")], indent=5),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_oom_killed_container_is_recognised_in_every_form(told, form):
    (ended,) = told(FORMS[form])["terminations"]
    assert (ended["cause"], ended["container"], ended["exitCode"]) == ("KernelUnreported", "web", 137)
    assert (ended["containerId"], ended["pod"], ended["isFromRuntime"]) == (ID, "", True)


@pytest.mark.parametrize("text", [json.dumps(CRI, indent=2), json.dumps(CRI)])
def test_crictl_names_pod_container_and_limit(told, text):
    (ended,) = told(text)["terminations"]
    assert (ended["pod"], ended["container"], ended["cause"]) == ("shop/db-0", "app", "KernelUnreported")
    assert ended["memoryLimitBytes"] == 1 << 29
    assert told(text, output="text").startswith(
        "shop/db-0 (app) was OOM-killed, at its memory limit of 512Mi or because"
    )


def test_restarts_and_limit_of_docker_are_shown(told):
    (ended,) = told(FORMS["docker inspect"])["terminations"]
    assert (ended["restarts"], ended["memoryLimitBytes"]) == (2, 1 << 29)
    assert told(FORMS["docker inspect"], output="text").startswith(
        "Container web was OOM-killed (2 restarts), at its memory"
    )


def test_several_containers_are_told_apart(told):
    text = json.dumps([inspected(), inspected(OTHER, name="/db", OOMKilled=False)], indent=4)
    found = told(text)["terminations"]
    assert [(ended["container"], ended["cause"]) for ended in found] == [("web", "KernelUnreported"), ("db", "Sigkill")]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('            "OOMKilled": true,\n', "KernelUnreported"),
        (json.dumps([inspected(ExitCode=1)], indent=4), "KernelOfChild"),
        (json.dumps([inspected(Status="running", Running=True, ExitCode=0)], indent=4), "KernelOfChild"),
    ],
)
def test_137_without_the_flag_is_not_an_oom_kill_and_a_part_is_enough(told, text, cause):
    (ended,) = told(text)["terminations"]
    assert ended["cause"] == cause


def test_a_limit_that_is_not_shown_is_not_called_missing(told):
    assert told('"OOMKilled": true', output="text").splitlines()[0] == (
        "A container was OOM-killed: the machine's kernel log says what was full."
    )


def test_a_container_that_ended_by_itself_is_not_killed(told):
    causes = {
        ended["cause"] for ended in told(json.dumps([inspected(OOMKilled=False, ExitCode=0)], indent=4))["terminations"]
    }
    assert causes <= {"Exit"}


def test_the_kernels_report_explains_the_container(told):
    report = "\n".join(cgroup(ROWS, 102, "java (main) [x]"))
    plain = report.replace(CONTAINER, f"/docker/{ID}")
    for text in (report, plain):
        found = told(FORMS["docker inspect"] + "\n" + text)
        (ended,) = found["terminations"]
        assert (ended["cause"], ended["kill"], len(found["kills"])) == ("Kernel", 0, 1)


PS_AS_JSON = (
    '{"Command":"\\"serve\\"","ID":"abababababab","Image":"web:1","Names":"web","State":"exited",'
    '"Status":"Exited (137) 5 minutes ago"}\n'
    '{"Command":"\\"postgres\\"","ID":"cdcdcdcdcdcd","Image":"db:1","Names":"db",'
    '"State":"running","Status":"Up 2 hours"}\n'
)


def crictl_shows(number: int, *, is_killed: bool = True) -> dict:
    """Return a container as crictl shows it, what it belongs to first."""
    labels = CRI["status"]["labels"] | {"io.kubernetes.pod.name": f"db-{number}"}
    state = {"state": "CONTAINER_EXITED", "exitCode": 137, "reason": "OOMKilled"}
    running = {"state": "CONTAINER_RUNNING", "exitCode": 0, "reason": "", "finishedAt": "0001-01-01T00:00:00Z"}
    status = CRI["status"] | (state if is_killed else running) | {"id": f"{number:064x}"}
    return {"info": {"config": {"labels": labels}, "pid": number}, "status": status}


def test_of_several_containers_of_crictl_each_has_its_own_pod_and_end(told):
    shown = [crictl_shows(number, is_killed=number % 3 == 0) for number in range(1, 13)]
    found = told("\n".join(json.dumps(each, indent=2) for each in shown))
    ended = [(each["pod"], each["containerId"], each["cause"], each["exitCode"]) for each in found["terminations"]]
    assert ended == [(f"shop/db-{number}", f"{number:064x}", "KernelUnreported", 137) for number in (3, 6, 9, 12)]
    assert "exits" not in found or found["exits"] == []


@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize("tool", ["docker", "crictl"])
def test_containers_that_run_are_left_out_and_the_answer_stays_the_same(told, monkeypatch, tool, width):
    def container(number):
        if tool == "crictl":
            return crictl_shows(number, is_killed=number % 7 == 0)
        state = {} if number % 7 == 0 else {"Status": "running", "OOMKilled": number % 11 == 0, "ExitCode": 0}
        return inspected(f"{number:064x}", name=f"/web-{number}", **state)

    shown = [container(number) for number in range(1, 60)]
    text = (
        json.dumps(shown, indent=width) if tool == "docker" else "\n".join(json.dumps(c, indent=width) for c in shown)
    )
    monkeypatch.setattr(inspected_containers, "_HEAD_BYTES", 2048)
    few = told(text)
    monkeypatch.setattr(inspected_containers, "_WORDS", ())
    assert few == told(text)
    assert len(few["terminations"]) >= 8


def test_only_containers_that_tell_something_are_read(monkeypatch):
    monkeypatch.setattr(inspected_containers, "_HEAD_BYTES", 1024)
    said = {70: "oom-kill: x"}
    shown = [
        inspected(f"{n:064x}", Status="running", OOMKilled=n == 50, ExitCode=0, Error=said.get(n, ""))
        for n in range(100)
    ]
    text = json.dumps(shown, indent=4).encode()
    log = inspected_containers.WithoutQuietContainers(io.BytesIO(text))
    read = b"".join(iter(lambda: log.read(500), b""))
    assert len(read) < len(text) / 10
    assert [number for number in range(100) if f"{number:064x}".encode() in read][-2:] == [50, 70]


def in_a_line(number: int) -> str:
    state = {} if number % 9 == 0 else {"Status": "running", "OOMKilled": False, "ExitCode": 0}
    separators = (",", ":") if number % 2 else None
    return json.dumps(inspected(f"{number:064x}", name=f"/web-{number}", **state), separators=separators) + "\n"


def test_lines_that_tell_nothing_are_left_out_and_the_answer_stays_the_same(told, monkeypatch):
    text = "".join(map(in_a_line, range(1, 90)))
    monkeypatch.setattr(inspected_containers, "_HEAD_BYTES", 1500)
    few = told(text)
    log = inspected_containers.WithoutQuietContainers(io.BytesIO(text.encode()))
    assert len(b"".join(iter(lambda: log.read(700), b""))) < len(text) / 2
    monkeypatch.setattr(inspected_containers, "_LINE", re.compile(b"(?!)"))
    assert few == told(text)
