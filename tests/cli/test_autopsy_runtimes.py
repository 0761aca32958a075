"""``podqos autopsy`` on what container runtimes show: docker, podman and crictl; whole or in part."""

from __future__ import annotations

import io
import json
import re

import pytest
import yaml

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
PS = """CONTAINER ID   IMAGE     COMMAND                  CREATED       STATUS                        PORTS     NAMES
abababababab   web:1     "/docker-entrypoint.…"   2 hours ago   Exited (137) 5 minutes ago              web
cdcdcdcdcdcd   db:1      "postgres"               2 hours ago   Up 2 hours                    5432/tcp  db
"""
OOM_EVENTS = (
    f"2026-11-18T09:00:01.011072877+01:00 container oom {ID} (image=web:1, name=web)\n"
    f"2026-11-18T09:00:01.211072877+01:00 container die {ID} (execDuration=3, exitCode=137, image=web:1, name=web)\n"
)
STOP_EVENTS = (
    f"2026-11-18T09:00:03.2+01:00 container kill {ID} (image=web:1, name=web, signal=15)\n"
    f"2026-11-18T09:00:13.2+01:00 container kill {ID} (image=web:1, name=web, signal=9)\n"
    f"2026-11-18T09:00:13.3+01:00 container die {ID} (exitCode=137, image=web:1, name=web)\n"
)
JSON_EVENTS = "".join(
    json.dumps({"Type": "container", "Action": action, "Actor": {"ID": ID, "Attributes": {"name": "web"} | more},
                "time": 1795000000}, separators=(",", ":")) + "\n"
    for action, more in (("oom", {}), ("die", {"exitCode": "137"}))
)  # fmt: skip
FORMS = {
    "docker inspect": json.dumps([inspected()], indent=4),
    "docker inspect, one line": json.dumps([inspected()]),
    "docker inspect, JSON of one": json.dumps(inspected()),
    "docker inspect, quoted in Markdown": "see below\n\n```json\n" + json.dumps([inspected()], indent=4) + "\n```\n",
    "podman inspect": json.dumps([inspected(name="web")], indent=5),
    "docker events": OOM_EVENTS,
    "docker events as JSON": JSON_EVENTS,
}


@pytest.mark.parametrize("form", FORMS)
def test_an_oom_killed_container_is_recognised_in_every_form(told, form):
    (ended,) = told(FORMS[form])["terminations"]
    assert (ended["cause"], ended["container"], ended["exitCode"]) == ("KernelUnreported", "web", 137)
    assert (ended["containerId"], ended["pod"], ended["isFromRuntime"]) == (ID, "", True)


@pytest.mark.parametrize("text", [json.dumps(CRI, indent=2), json.dumps(CRI), yaml.safe_dump(CRI)])
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
        ('State:{\nExitCode:137,\nFinishedAt:"2026-11-18T09:00:01Z",\nOOMKilled:false,\nStatus:"exited"\n}', "Sigkill"),
        (PS, "Sigkill"),
        (STOP_EVENTS, "GracePeriod"),
        (STOP_EVENTS.replace("signal=15", "signal=9"), "Sigkill"),
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


PODMAN_PS = """CONTAINER ID  IMAGE            COMMAND     CREATED         STATUS                       PORTS       NAMES
abababababab  localhost/web:1  serve       26 minutes ago  Exited (137) 25 minutes ago              web
"""
COMPOSE_PS = """NAME         IMAGE     COMMAND     SERVICE   CREATED      STATUS                       PORTS
shop-web-1   web:1     "serve"     web       2 hours ago  Exited (137) 5 minutes ago
shop-db-1    db:1      "postgres"  db        2 hours ago  Up 2 hours                   5432/tcp
"""
OLD_COMPOSE_PS = """   Name              Command         State     Ports
-------------------------------------------------------
shop_web_1   /entrypoint.sh serve   Exit 137
shop_db_1    postgres               Up         5432/tcp
"""
PS_AS_JSON = (
    '{"Command":"\\"serve\\"","ID":"abababababab","Image":"web:1","Names":"web","State":"exited",'
    '"Status":"Exited (137) 5 minutes ago"}\n'
    '{"Command":"\\"postgres\\"","ID":"cdcdcdcdcdcd","Image":"db:1","Names":"db",'
    '"State":"running","Status":"Up 2 hours"}\n'
)
SWARM_PS = """ID             NAME        IMAGE   NODE    DESIRED STATE   CURRENT STATE            ERROR
ababababab12   web.1       web:1   box-1   Running         Running 2 minutes ago
cdcdcdcdcd34    \\_ web.1   web:1   box-1   Shutdown        Failed 2 minutes ago     "task: non-zero exit (137)"
"""
CRICTL_PS = """CONTAINER        IMAGE            CREATED          STATE     NAME   ATTEMPT   POD ID           POD
abababababab1    1234567890abc    5 minutes ago    Exited    app    3         cdcdcdcdcdcd1    web-0
abababababab2    1234567890abc    5 minutes ago    Running   app    4         cdcdcdcdcdcd1    web-0
abababababab3    1234567890abc    9 minutes ago    Exited    init   0         cdcdcdcdcdcd1    web-0
"""


@pytest.mark.parametrize(
    ("text", "container", "command"),
    [
        pytest.param(PS, "web", "docker inspect web |", id="docker ps"),
        pytest.param(PS.partition("\n")[2], "web", "docker inspect web |", id="docker ps, without headings"),
        pytest.param(re.sub(" {2,}", " ", PS), "web", "docker inspect web |", id="docker ps, with single spaces"),
        pytest.param(PODMAN_PS, "web", "podman inspect web |", id="podman ps"),
        pytest.param(
            f"$ sudo nerdctl ps -a\n{PS.partition(chr(10))[2]}", "web", "nerdctl inspect web |", id="nerdctl ps"
        ),
        pytest.param(PS_AS_JSON, "web", "docker inspect web |", id="docker ps as JSON"),
        pytest.param(COMPOSE_PS, "shop-web-1", "docker inspect shop-web-1 |", id="compose"),
        pytest.param(OLD_COMPOSE_PS, "shop_web_1", "docker inspect shop_web_1 |", id="docker-compose"),
        pytest.param(SWARM_PS, "web.1", "journalctl -k ", id="swarm"),
    ],
)
def test_a_list_does_not_show_whether_a_container_was_oom_killed_and_the_runtime_is_asked(
    told, text, container, command
):
    answer = told(text)
    (ended,) = answer["terminations"]
    assert (ended["cause"], ended["container"], ended["exitCode"]) == ("Sigkill", container, 137)
    assert (ended["pod"], ended["isOomUnknown"], answer["read"].get("pods", 0)) == ("", True, 0)
    assert answer["nextSteps"][0]["command"].startswith(command)
    assert "the list does not show whether it was OOM-killed" in " ".join(told(text, output="text").split())


def test_crictl_lists_containers_that_ended_without_saying_how(told):
    answer = told(CRICTL_PS)
    assert not answer["terminations"]
    (ended,) = answer["exits"]
    assert (ended["cause"], ended["pod"], ended["container"], ended["restarts"]) == ("Unknown", "web-0", "app", 3)
    assert answer["nextSteps"][0]["command"] == "crictl inspect abababababab | podqos autopsy -"


@pytest.mark.parametrize(
    ("command", "output", "causes"),
    [
        ("docker inspect -f '{{.State.OOMKilled}}' web", "true", ["KernelUnreported"]),
        ("docker inspect -f '{{.State.OOMKilled}}' web", "false", []),
        (
            "sudo docker inspect web --format '{{.State.OOMKilled}} {{.State.ExitCode}}'",
            "true 137",
            ["KernelUnreported"],
        ),
        ("podman inspect --format={{.State.OOMKilled}},{{.State.ExitCode}} web", "false,137", ["Sigkill"]),
        ("docker inspect web -f 'oom={{json .State.OOMKilled}}'", "oom=true", ["KernelUnreported"]),
        ("docker inspect -f '{{.State.OOMKilled}}' web db", "true", []),
        ("docker inspect -f '{{.State.OOMKilled}}' web", "Error: No such object: web", []),
    ],
)
def test_what_a_template_prints_is_read_by_the_command_above_it(told, command, output, causes):
    for prompt in ("$ ", "me@box:~$ ", "# "):
        answer = told(f"{prompt}{command}\n{output}\n")
        assert [ended["cause"] for ended in answer["terminations"]] == causes
        assert all(ended["container"] == "web" for ended in answer["terminations"])


@pytest.mark.parametrize(
    "text",
    [
        "true\n",
        "Run `docker inspect -f '{{.State.OOMKilled}}' NAME`: it prints true after an OOM kill.\ntrue\n",
        "docker ps shows Exited (137) 5 minutes ago for such containers\n",
        "NAME     COMMAND   SERVICE   STATUS\nweb-0    serve     web       exited with 137\n",
        '{"Name":"web","Status":"Exited (137) 5 minutes ago"}\n',
    ],
)
def test_what_only_looks_like_a_list_or_an_answer_tells_of_no_container(told, text):
    answer = told(text)
    assert (answer["terminations"], answer["exits"]) == ([], [])


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


def listed(number: int) -> str:
    state = (
        ("Exited (137) 5 minutes ago", "Restarting (1) 2 seconds ago")[number % 2] if number % 9 == 0 else "Up 2 hours"
    )
    return f'{number:012x}   web:1     "/docker-entrypoint.…"   2 hours ago   {state:<29}           web-{number}\n'


def listed_by_crictl(number: int) -> str:
    state = "Exited " if number % 9 == 0 else "Running"
    return (
        f"{number:013x}    1234567890abc    5 minutes ago    {state}   app    3         cdcdcdcdcdcd1    web-{number}\n"
    )


def happened(number: int) -> str:
    what = ("oom", "die", "kill")[number % 3] if number % 9 == 0 else ("start", "exec_create: sh", "attach")[number % 3]
    more = "signal=9, " * (what == "kill") + f"exitCode={137 * (what == 'die')}, name=web-{number}"
    return f"2026-11-18T09:00:01.011072877+01:00 container {what} {number:064x} (image=web:1, {more})\n"


def in_a_line(number: int) -> str:
    state = {} if number % 9 == 0 else {"Status": "running", "OOMKilled": False, "ExitCode": 0}
    separators = (",", ":") if number % 2 else None
    return json.dumps(inspected(f"{number:064x}", name=f"/web-{number}", **state), separators=separators) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PS.partition("\n")[0] + "\n" + "".join(map(listed, range(1, 90))), id="docker ps"),
        pytest.param(
            CRICTL_PS.partition("\n")[0] + "\n" + "".join(map(listed_by_crictl, range(1, 90))), id="crictl ps"
        ),
        pytest.param("".join(map(happened, range(1, 90))), id="docker events"),
        pytest.param("".join(map(in_a_line, range(1, 90))), id="docker inspect, a container in a line"),
    ],
)
def test_lines_that_tell_nothing_are_left_out_and_the_answer_stays_the_same(told, monkeypatch, text):
    monkeypatch.setattr(inspected_containers, "_HEAD_BYTES", 1500)
    few = told(text)
    log = inspected_containers.WithoutQuietContainers(io.BytesIO(text.encode()))
    assert len(b"".join(iter(lambda: log.read(700), b""))) < len(text) / 2
    monkeypatch.setattr(inspected_containers, "_LINES", ())
    assert few == told(text)


def test_fields_of_a_log_line_say_that_a_container_was_oom_killed(told):
    line = 'time="2026-11-18T09:00:01Z" level=warning msg="container exited" OOMKilled={} container=web exitCode=137\n'
    (ended,) = told(line.format("true"))["terminations"]
    assert (ended["cause"], ended["exitCode"]) == ("KernelUnreported", 137)
    assert not told(line.format("false"))["terminations"]
