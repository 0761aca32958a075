"""``podqos autopsy`` claims no death that its input does not prove, no name that it does not have, and none twice."""

from __future__ import annotations

import io
import json
import sys

import pytest

from deaths import parsed
from kernel.oom_logs import CONTAINER, ROWS, cgroup
from podqos.cli.main import main

LOW = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container app was using 1Gi, "
    "request is 100Mi, has larger consumption of memory."
)
HEADINGS = "Type     Reason   Age  From     Message\n----     ------   ---  ----     -------\n"
OOMD = "Jul 22 08:34:22 host systemd-oomd[62078]:"
UID, ID = "11111111-2222-3333-4444-555555555555", "ab" * 32
LIMIT_KB = 204_800


@pytest.fixture
def told(capsys, monkeypatch):
    """Return what the command answers to a paste."""

    def run(text, *options):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["autopsy", "-", *options]) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("headings", ["", HEADINGS])
@pytest.mark.parametrize("source", ["kubelet", "kubelet, worker-1"])
@pytest.mark.parametrize("indent", ["", "  "])
def test_a_row_of_a_description_names_no_pod(told, headings, source, indent):
    said = told(f"{headings}{indent}Warning  Evicted  2m (x3 over 5m)  {source}  {LOW}\n")
    assert said.startswith("The node was low on memory: a pod was evicted; the text does not say which.\n")
    assert "kubelet was" not in said


@pytest.mark.parametrize(
    ("row", "who"),
    [
        ("2m  Warning  Evicted  pod/web-0  ", "web-0"),
        ("shop  2m  Warning  Evicted  pod/web-0  ", "shop/web-0"),
        ("LAST SEEN   TYPE      REASON    OBJECT      MESSAGE\n2m  Warning  Evicted  pod/web-0  ", "web-0"),
        ("2m  Warning  Evicted  pod/web-0  spec.containers{app}  kubelet, worker-1  ", "web-0"),
    ],
)
def test_a_row_of_events_names_its_pod(told, row, who):
    after = "  2m  1  web-0.17ab34cd56ef7890" if "spec." in row else ""
    assert told(f"{row}{LOW}{after}\n").startswith(f"The node was low on memory: {who} was evicted.\n")


CONSIDERED = f"{OOMD} Considered 31 cgroups for killing, top candidates were:"
RULE = f"{OOMD} Rule 'low_memory' conditions met for cgroup /a.slice (lasting 1s), taking action kill-by-swap"
STALLED = (
    f"{OOMD} Memory pressure for /a.slice is greater than 50 for more than 20 seconds and there was reclaim activity"
)
SWAPPED = f"{OOMD} Swap used (7000000000) / total (8000000000) is more than 90%"
AVAILABLE = "earlyoom[9]: mem avail:   374 of  7841 MiB ( 4.78%), swap free:    0 of    0 MiB ( 0.00%)"
LITTLE = "earlyoom[9]: low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%"


@pytest.mark.parametrize("lines", [(RULE, CONSIDERED), (RULE,), (STALLED,), (SWAPPED, CONSIDERED), (AVAILABLE, LITTLE)])
def test_a_killer_that_only_considers_a_kill_killed_nothing(told, lines):
    answer = parsed(told("\n".join(lines) + "\n", "-o", "json"))
    assert not answer["userspaceKills"]
    assert "killed everything" not in told("\n".join(lines) + "\n")


def test_the_rule_of_systemd_oomd_is_the_reason_of_the_kill_that_follows(told):
    text = f"{RULE}\nJul 22 08:34:22 host systemd[1]: db.service: systemd-oomd killed 3 process(es) in this unit.\n"
    assert "killed db.service (3 processes), because its rule 'low_memory' applied." in told(text)


@pytest.mark.parametrize(
    "prose",
    [
        (
            "A container with exit code 137 was killed with SIGKILL.\n"
            "Java says java.lang.OutOfMemoryError: Java heap space when it is full.\n"
        ),
        "Then we saw java.lang.OutOfMemoryError: Java heap space\n",
        "Node.js prints FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory and exits.\n",
        "In Python you catch a MemoryError\n",
        "The container was OOMKilled. Pod web-0 in namespace shop was OOMKilled.\n",
        "The container instance was found to be using too much memory and was terminated.\n",
        "Memory limit of 512 MiB exceeded with 531 MiB used. Consider increasing the memory limit\n",
        "make: *** [Makefile:3: all] Killed\n",
    ],
)
def test_prose_is_no_death(told, prose):
    said = told(prose)
    assert "nothing to explain" in said.splitlines()[0]


@pytest.mark.parametrize(
    "line",
    [
        "java.lang.OutOfMemoryError: Java heap space",
        'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
        "2026-11-18 09:00:01 ERROR [main] c.e.App - request failed: java.lang.OutOfMemoryError: Java heap space",
        '{"time":"2026-11-18T09:00:01Z","level":"error","msg":"java.lang.OutOfMemoryError: Java heap space"}',
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        "MemoryError",
    ],
)
def test_a_line_of_a_log_says_that_a_heap_is_full(told, line):
    assert told(f"{line}\n").startswith("Not the kernel: ")


def ended(**more) -> dict:
    return {
        "name": "app",
        "restartCount": 1,
        "containerID": f"containerd://{'cd' * 32}",
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-18T09:00:00Z"}},
    } | more


def pod(status=None, spec=None, **more) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-0", "namespace": "shop", "uid": UID},
            "spec": {"nodeName": "worker-1", "containers": [{"name": "app", "resources": more.get("stated", {})}]}
            | (spec or {}),
            "status": {"qosClass": "Burstable", "containerStatuses": [ended(**more.get("own", {}))]} | (status or {}),
        }
    )


STATED, IN_FORCE = {"limits": {"memory": "512Mi"}}, {"limits": {"memory": "256Mi"}}


@pytest.mark.parametrize(
    "text",
    [
        pod(stated=STATED, own={"resources": IN_FORCE}),
        pod({"resources": IN_FORCE}, {"resources": STATED}, own={"resources": {}}),
    ],
    ids=["of the container", "of the pod"],
)
def test_a_kill_during_a_resize_has_the_limit_that_was_in_force(told, text):
    assert "at its memory limit of 256Mi (in force by its status; its spec states 512Mi)" in told(text)
    (killed,) = parsed(told(text, "-o", "json"))["terminations"]
    assert (killed["memoryLimitBytes"], killed["statedLimitBytes"]) == (256 << 20, 512 << 20)


def description(name: str, limit_kb: int) -> str:
    return f"""\
Name:             {name}
Namespace:        shop
Node:             worker-1.example.internal/10.0.0.5
Status:           Running
Containers:
  app:
    Container ID:   containerd://{"cd" * 32}
    Image:          x
    State:          Running
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Wed, 18 Nov 2026 09:00:00 +0000
    Restart Count:  1
    Limits:
      memory:  {limit_kb}Ki
QoS Class:                   Burstable

"""


def report() -> tuple[str, int]:
    """Return a report with seconds since the machine started, and the limit that was reached."""
    lines = cgroup(ROWS, 102, "java (main) [x]")
    limit = next(line for line in lines if line.startswith("memory: usage")).partition("limit ")[2].partition("kB")[0]
    return "".join(f"[ 812.{at:06d}] {line}\n" for at, line in enumerate(lines)), int(limit)


def deaths(answer: str) -> int:
    return len(json.loads(answer)["deaths"])


def test_one_kill_in_a_log_and_in_a_description_is_one_death(told):
    log, limit_kb = report()
    assert CONTAINER in log
    assert deaths(told(log + description("web-0", limit_kb), "-o", "json")) == 1
    # Another limit, or two pods that may be meant: nothing proves that it is the same.
    assert deaths(told(log + description("web-0", limit_kb * 2), "-o", "json")) == 2
    two = description("web-0", limit_kb) + description("web-1", limit_kb)
    assert deaths(told(log + two, "-o", "json")) == 3


def test_one_kill_in_a_log_and_in_a_status_is_one_death(told):
    log, _ = report()
    assert deaths(told(f"{pod()}\n{log}", "-o", "json")) == 1
