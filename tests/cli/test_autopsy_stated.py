"""``podqos autopsy`` on ends of containers as other programs than kubectl and the runtimes pass them on."""

from __future__ import annotations

import pytest

ID = "ab" * 32
MAP = f"containerID:containerd://{ID} exitCode:137 finishedAt:2026-11-18T09:00:01Z reason:OOMKilled startedAt:x"
AT = "2026-11-18T09:00:01Z"


@pytest.mark.parametrize(
    ("text", "pod", "container", "at"),
    [
        pytest.param(f"map[terminated:map[{MAP}]]\n", "", "", AT, id="go's map"),
        pytest.param(
            "v1.ContainerStatus{LastTerminationState:v1.ContainerState{Terminated:&ContainerStateTerminated{"
            "ExitCode:137,Signal:0,Reason:OOMKilled,FinishedAt:2026-11-18 09:00:01 +0000 UTC,}}}\n",
            "",
            "",
            AT,
            id="go's struct",
        ),
        pytest.param(
            "ERROR - Pod etl-x7k2p returned a failure.\n{'metadata': {'namespace': 'batch'},\n"
            " 'terminated': {'exit_code': 137,\n"
            "  'finished_at': datetime.datetime(2026, 11, 18, 9, 0, 1, tzinfo=tzutc()),\n  'reason': 'OOMKilled'}}\n",
            "batch/etl-x7k2p",
            "",
            AT,
            id="python's client",
        ),
        pytest.param(
            "\t container name: executor\n\t container state: terminated\n"
            f"\t container finished at: {AT}\n\t exit code: 137\n\t termination reason: OOMKilled\n",
            "",
            "executor",
            AT,
            id="spark",
        ),
        pytest.param("[n0-0] terminated with exit code (137). Reason [OOMKilled]. Message:\n", "", "", "", id="flyte"),
        pytest.param(
            '"step-build" exited with code 137 (image: "x"; container: "step-build"): OOMKilled\n',
            "",
            "step-build",
            "",
            id="tekton",
        ),
        pytest.param(
            "Pod tm-1-3 terminated. Container exit code 137, Reason: OOMKilled\n", "tm-1-3", "", "", id="flink"
        ),
        pytest.param(
            "build Container maven was terminated (Exit Code: 137, Reason: OOMKilled)\n", "", "", "", id="jenkins"
        ),
        pytest.param(
            'level=info msg="node wf-1 message: OOMKilled (exit code 137)" workflow=wf\n', "", "", "", id="argo"
        ),
        pytest.param(
            "Name:    wf\nStatus:  Failed\nMessage: OOMKilled (exit code 137)\n", "", "", "", id="argo's description"
        ),
        pytest.param(
            "Labels:\n - container = app\n - namespace = shop\n - pod = web-0\n - reason = OOMKilled\n",
            "shop/web-0",
            "app",
            "",
            id="alertmanager",
        ),
        pytest.param(
            (
                '{"data":{"result":[{"metric":{"container":"app","namespace":"shop","pod":"web-0","rea'
                'son":"OOMKilled"}}]}}\n'
            ),
            "shop/web-0",
            "app",
            "",
            id="prometheus",
        ),
        pytest.param(
            "- Error: the last termination reason is OOMKilled container=app pod=web-0\n",
            "web-0",
            "app",
            "",
            id="k8sgpt",
        ),
        pytest.param(
            '{\n "exitCode": 137,\n "reason": "OutOfMemoryError: Container killed due to memory usage"\n}\n',
            "",
            "",
            "",
            id="ecs",
        ),
    ],
)
def test_a_container_that_was_oom_killed_is_recognised_in_the_words_of_other_programs(told, text, pod, container, at):
    answer = told(text)
    (ended,) = answer["terminations"]
    assert (ended["cause"], ended["pod"], ended["container"]) == ("KernelUnreported", pod, container)
    assert ended.get("at", "") == at
    assert not answer["kills"]
    assert "OOM-killed" in told(text, output="text").splitlines()[0]
    assert answer["nextSteps"]


def test_what_a_workflow_calls_a_node_is_no_machine(told):
    answer = told('msg="node wf-1 message: OOMKilled (exit code 137)"\n')
    assert not any("wf-1" in step["command"] for step in answer["nextSteps"])


def test_several_containers_of_one_text_are_several(told):
    block = "\t container name: {}\n\t exit code: 137\n\t termination reason: OOMKilled\n\n"
    text = "".join(block.format(name) for name in ("driver", "executor", "driver"))
    assert [ended["container"] for ended in told(text)["terminations"]] == ["driver", "executor"]


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("System OOM encountered, victim process: java, pid: 12345\n", ""),
        ("*Warning* on node `worker-3`: System OOM encountered, victim process: java, pid: 12345\n", "worker-3"),
        (
            "Event: SystemOOM Node None/worker-3. Message: System OOM encountered, victim process: java, pid: 12345.\n",
            "worker-3",
        ),
        ('{"node":"worker-3","message":"System OOM encountered, victim process: java, pid: 12345"}\n', "worker-3"),
    ],
)
def test_the_kubelets_message_about_an_oom_is_read_wherever_it_is_quoted(told, text, node):
    (sign,) = told(text)["nodeEvents"]
    assert (sign["kind"], sign.get("node", ""), sign["process"], sign["pid"]) == ("SystemOOM", node, "java", 12345)


@pytest.mark.parametrize(
    "text",
    [
        'State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},',
        'if state.Terminated.Reason == "OOMKilled" && state.Terminated.ExitCode == 137 {',
        "const state = { terminated: { exitCode: 137, reason: 'OOMKilled' } };",
        'expr: kube_pod_container_status_last_terminated_reason{reason="OOMKilled"} == 1\nfor: {{ $labels.pod }}',
        "- Fixed pods that were OOMKilled (exit code 137) after an upgrade",
        "The reason is now OOMKilled instead of Error.",
        "Look for `Reason: OOMKilled` and `Exit Code: 137` in its description.",
        "| `pod_status` | `Last State: Terminated, Reason: OOMKilled, Exit Code: 137` |",
        "message: 'System OOM encountered, victim process: my-app, pid: 7',",
        'fmt.Sprintf("System OOM encountered, victim process: %s, pid: %d", name, pid)',
        "    oom_test.go:12: expecting exit code 137 and OOMKilled",
    ],
)
def test_source_code_rules_and_prose_are_no_ends_of_containers(told, text):
    answer = told(f"{text}\n")
    assert not any(answer[found] for found in ("terminations", "nodeEvents", "kills"))


def test_what_kubectl_prints_in_the_same_text_counts_alone(told):
    table = "NAME    READY   STATUS      RESTARTS   AGE\nweb-0   0/1     OOMKilled   3          5m\n"
    (ended,) = told(f"{table}\nmap[terminated:map[{MAP}]]\n")["terminations"]
    assert ended["pod"] == "web-0"


def test_a_table_on_a_screen_may_have_a_single_space_between_columns(told):
    text = (
        " NAMESPACE↑  NAME   PF READY STATUS     RESTARTS CPU %MEM/L NODE     AGE\n"
        " shop        web-0  ●  0/1   OOMKilled         3   0      0 worker-1  5m\n"
        " shop        web-1  ●  1/1   Running           0   1     20 worker-1  5m\n"
    )
    (ended,) = told(text)["terminations"]
    assert (ended["pod"], ended["node"], ended["restarts"]) == ("shop/web-0", "worker-1", 3)


@pytest.mark.parametrize(
    ("text", "pod", "container"),
    [
        ("Container app in pod shop/web-0 terminated with exit code 137 (OOMKilled)\n", "shop/web-0", "app"),
        ("worker: pod web-0 exited with code 137: OOMKilled\n", "web-0", ""),
        ("Container 'app' of pod 'web-0' was terminated, reason 'OOMKilled'\n", "web-0", "app"),
        ("pod web-0 was killed with reason OOMKilled\n", "web-0", ""),
        ("pod shop/web-0 terminated with reason 'OOMKilled', exit code 137\n", "shop/web-0", ""),
        (":fire: *Pod:* web-0\n*Namespace:* shop\n*Container:* app\n*Reason:* OOMKilled\n", "shop/web-0", "app"),
        ("*Pod*: `web-0`\n*Reason*: `OOMKilled`\n", "web-0", ""),
        ("Container app in pod shop/web-0 has been OOMKilled\n", "shop/web-0", "app"),
        ("[ALERT] Pod web-0 in namespace shop OOMKilled\n", "shop/web-0", ""),
        ("Pod shop/web-0 (container app) was OOMKilled at 2026-11-18T09:00:01Z\n", "shop/web-0", "app"),
        (
            "Komodor alert\nPod web-0 in namespace shop OOMKilled\nReason: OOMKilled\nExit code: 137\nContainer: app\n",
            "shop/web-0",
            "app",
        ),
        (
            'level=warning msg="container OOMKilled" pod=web-0 namespace=shop container=app exitCode=137\n',
            "shop/web-0",
            "app",
        ),
        ("Pod web-0 OOMKilled (exit code 137)\n", "web-0", ""),
        ("pod/web-0 container=app status: OOMKilled exit code: 137\n", "web-0", "app"),
        ('Pod "web-0" has restarted 3 times: OOMKilled\n', "web-0", ""),
        ("web-0 OOMKilled 137\n", "web-0", ""),
        ("shop/web-0\tapp\tOOMKilled\t137\n", "shop/web-0", "app"),
        ("web-0: OOMKilled\n", "web-0", ""),
        ("web-7d9f8c6b5-x2x7q OOMKilled\n", "web-7d9f8c6b5-x2x7q", ""),
        ("shop web-7d9f8c6b5-x2x7q app OOMKilled 2026-11-18T09:00:01Z\n", "shop/web-7d9f8c6b5-x2x7q", "app"),
        ("web-0   [OOMKilled]   [137]\n", "web-0", ""),
        ("web-0\tmap[terminated:map[exitCode:137 finishedAt:2026-11-18T09:00:01Z reason:OOMKilled]]\n", "web-0", ""),
        ('web-0\t{"terminated":{"exitCode":137,"reason":"OOMKilled"}}\n', "web-0", ""),
        (
            (
                "STEP          TEMPLATE   PODNAME                DURATION  MESSAGE\n"
                " └─✖ train    train      wf-1-train-123456      2m        OOMKilled (exit code 137)\n"
            ),
            "wf-1-train-123456",
            "",
        ),
        (
            (
                "{\n"
                ' "containers": [\n'
                "  {\n"
                '   "containerArn": "arn:aws:ecs:x",\n'
                '   "name": "app",\n'
                '   "exitCode": 137,\n'
                '   "reason": "OutOfMemoryError: Container killed due to memory usage"\n'
                "  }\n"
                " ]\n"
                "}\n"
            ),
            "",
            "app",
        ),
        (
            (
                '{"name":"app","lastStatus":"STOPPED","exitCode":137,"reason":"OutOfMemoryError: '
                'Container killed due to memory usage"}\n'
            ),
            "",
            "app",
        ),
        (" app   ●  web:1   false  OOMKilled   false   5   on:on   0   0\n", "", "app"),
        (
            (
                " Containers(shop/web-0)[1]\n"
                " NAME↑ PF IMAGE READY STATE INIT RESTARTS PROBES(L:R) CPU MEM AGE\n"
                " app   ●  web:1   false  OOMKilled   false   5   on:on   0   0  5m\n"
            ),
            "shop/web-0",
            "app",
        ),
    ],
)
def test_sentences_and_rows_that_name_what_was_oom_killed_are_read_with_their_names(told, text, pod, container):
    for before in ("", "all is well otherwise\n\n"):
        (ended,) = told(before + text)["terminations"]
        assert (ended["cause"], ended["pod"], ended["container"]) == ("KernelUnreported", pod, container)


@pytest.mark.parametrize(
    "text",
    [
        "- Fixed pods that were OOMKilled (exit code 137) after an upgrade\n",
        "Pods that terminated with reason OOMKilled are restarted.\n",
        "If container app in pod shop/web-0 has been OOMKilled, raise its limit.\n",
        "A pod exits with exit code 137 (OOMKilled) if it uses too much.\n",
        "Exit code 137 (OOMKilled) means that the kernel killed it.\n",
        "Look for `Pod web-0 was OOMKilled` in its events.\n",
        'log.Printf("Pod %s in namespace %s OOMKilled", name, ns)\n',
        'assert said == "Pod web-0 in namespace shop OOMKilled"\n',
        'summary: "Pod {{ $labels.pod }} in namespace {{ $labels.namespace }} OOMKilled"\n',
        'state = {"exitCode": 137, "reason": "OOMKilled"}\n',
        '    status = {"exitCode": 137, "reason": "OOMKilled"}  # killed\n',
        '{"exitCode": 137, "reason": "OOMKilled"},\n',
        (
            '    {"exitCode": 137, "reason": "OOMKilled"},\n'
            '    {"exitCode": 1, "reason": "Error"},\n'
            "]\n"
            "def test_it():\n"
            "    pass\n"
        ),
        'expected = [{"exitCode": 137, "reason": "OOMKilled"}]\n',
        '    "terminated": {"exitCode": 137, "reason": "OOMKilled"},\n',
        "| exited with code 137: OOMKilled | the limit was reached |\n",
        "pods get OOMKilled\n",
        "the pod was OOMKilled\n",
        "some pods are OOMKilled 3 times a day\n",
        "web was OOMKilled\n",
        'case "OOMKilled":\n',
        "OOMKilled: the limit is too low\n",
        "Reason for the change: OOMKilled pods of web-0\n",
        "# Troubleshooting\n\n**Reason:** OOMKilled\n\nThe container used more than its limit.\n",
        "When a pod fails with reason OOMKilled, exit code 137, its limit is too low.\n",
        "kubectl get pods | grep OOMKilled\n",
        "  reason: OOMKilled\n",
        'container_terminated{reason="OOMKilled"} counts them\n',
    ],
)
def test_prose_dashboards_and_dictionaries_in_source_code_are_no_ends_of_containers(told, text):
    answer = told(text)
    assert not any(answer[found] for found in ("terminations", "nodeEvents", "kills", "evictions", "userspaceKills"))


def test_ecs_says_why_the_task_stopped(told):
    text = '{"stoppedReason": "OutOfMemoryError: Container killed due to memory usage", "exitCode": 137}\n'
    (ended,) = told(text)["terminations"]
    assert (ended["cause"], ended["pod"]) == ("KernelUnreported", "")


def test_one_notice_is_one_kill_and_two_notices_of_two_pods_are_two(told):
    notice = "Pod {} in namespace shop OOMKilled\nReason: OOMKilled\nExit code: 137\n"
    assert [ended["pod"] for ended in told(notice.format("web-0"))["terminations"]] == ["shop/web-0"]
    two = notice.format("web-0") + "\n" + notice.format("web-1")
    assert {ended["pod"] for ended in told(two)["terminations"]} == {"shop/web-0", "shop/web-1"}


def test_the_node_is_known_where_a_sentence_names_it(told):
    answer = told("Warning: Pod shop/web-0 on node worker-3 was OOMKilled at 2026-11-18T09:00:01Z\n")
    (ended,) = answer["terminations"]
    assert (ended["pod"], ended["node"]) == ("shop/web-0", "worker-3")
    assert any("node/worker-3" in step["command"] for step in answer["nextSteps"])


@pytest.mark.parametrize(
    ("text", "pod", "container"),
    [
        (
            (
                "Task etl.1 failed in pod batch/etl-x7k2p. Pod phase: Failed, reason: None, container_name: base, "
                "container_state: terminated, container_reason: OOMKilled, exit_code: 137\n"
            ),
            "batch/etl-x7k2p",
            "base",
        ),
        (
            (
                "5m   Warning   PreviousContainerWasOOMKilled   pod/web-0   The previous instance of the container "
                "'app' (docker://ab) was OOMKilled\n"
            ),
            "web-0",
            "app",
        ),
    ],
)
def test_airflow_and_controllers_of_events_name_pod_and_container(told, text, pod, container):
    (ended,) = told(text)["terminations"]
    assert (ended["cause"], ended["pod"], ended["container"]) == ("KernelUnreported", pod, container)


def test_a_code_that_is_said_not_to_be_an_oom_kill_is_none(told):
    assert not told("Container web exited with code 137 (OOMKilled: false)\n")["terminations"]


@pytest.mark.parametrize(
    ("text", "pod", "container"),
    [
        ("Reason:       OOMKilled\nExit Code:    137\n", "", ""),
        ("Terminated at Nov 18, 2026, 9:00:01 AM with exit code 137 (OOMKilled)\n", "", ""),
        ("Pod web-0: container app terminated (OOMKilled)\n", "web-0", ""),
        ("Container app in pod web-0 was OOM killed\n", "web-0", "app"),
        ("web-0 shop OOMKilled\n", "web-0", ""),
    ],
)
def test_more_words_for_the_same_end_are_read_and_no_name_is_guessed(told, text, pod, container):
    (ended,) = told(text)["terminations"]
    assert (ended["cause"], ended["pod"], ended["container"]) == ("KernelUnreported", pod, container)
    assert ended.get("namespace", "") == ""


@pytest.mark.parametrize(
    "text",
    [
        "| web-0 | shop | OOMKilled |\n",
        "Pods in production are OOM killed now and then\n",
        "Find out why a pod was terminated (OOMKilled) with describe\n",
    ],
)
def test_tables_of_manuals_and_prose_name_no_pod(told, text):
    assert not told(text)["terminations"]
