"""``podqos autopsy`` on pastes as people make them: numbered, out of web pages, in parts, of two programs at once."""

from __future__ import annotations

import pytest

ID = "ab" * 32
UID = "5a5a5a5a-1111-2222-3333-444455556666"
LAST_STATE = (
    "    Last State:     Terminated",
    "      Reason:       OOMKilled",
    "      Exit Code:    137",
    "      Finished:     Wed, 18 Nov 2026 09:00:01 +0000",
)
AT = "2026-11-18T09:00:01+00:00"
LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 4Ki."
USED = "Container app was using 2Gi, request is 1Gi, has larger consumption of memory."
HEADER = "Nov 18 09:00:01 worker-1"


# ---- what is around lines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["{:3} {}", "{:6}\t{}", "{:3}: {}", "{:3} | {}"])
def test_the_numbers_of_lines_are_no_names(told, form):
    (ended,) = told(*(form.format(number, line) for number, line in enumerate(LAST_STATE, 9)))["terminations"]
    assert (ended["pod"], ended["container"], ended["at"]) == ("", "", AT)


def test_a_number_before_a_reason_is_no_pod(told):
    answer = told("Exit Code: 137", "13        Reason:       OOMKilled")
    assert not any("13" in ended["pod"] for ended in answer["terminations"])


@pytest.mark.parametrize(
    "page",
    [
        lambda line: line.replace(" ", "&nbsp;"),
        lambda line: f"&gt; {line.replace('+', '&#43;')}<br>",
        lambda line: f"<p>{line}</p>",
    ],
)
def test_tags_and_entities_of_a_web_page_are_taken_out_of_what_kubectl_printed(told, page):
    (ended,) = told(*map(page, LAST_STATE))["terminations"]
    assert (ended["reason"], ended["exitCode"], ended["at"]) == ("OOMKilled", 137, AT)


def test_a_table_on_a_web_page(told):
    (ended,) = told(
        "NAME&nbsp; READY&nbsp; STATUS&nbsp; RESTARTS&nbsp; AGE<br>",
        "web-0&nbsp; 0/1&nbsp; OOMKilled&nbsp; 4&nbsp; 10m<br>",
    )["terminations"]
    assert (ended["pod"], ended["restarts"]) == ("web-0", 4)


def folded(table: str, width: int) -> list[str]:
    return [row[start : start + width] for row in table.splitlines() for start in range(0, len(row), width)]


@pytest.mark.parametrize("width", [80, 100])
def test_rows_of_pods_that_a_terminal_broke_are_whole(told, width):
    table = (
        f"{'NAME':64} READY   STATUS      RESTARTS       AGE    IP            NODE       NOMINATED NODE\n"
        f"{'a-deployment-of-a-very-long-name-for-a-pod-6b5c7d8e9f-zzk2p':64} 0/1     OOMKilled   7 (5m12s ago) "
        " 15m    10.244.33.11  worker-1   <none>        \n"
    )
    (ended,) = told(*folded(table, width))["terminations"]
    assert (ended["pod"], ended["restarts"]) == ("a-deployment-of-a-very-long-name-for-a-pod-6b5c7d8e9f-zzk2p", 7)
    assert ended["node"] == "worker-1"


@pytest.mark.parametrize("width", [80, 133])
def test_rows_of_events_that_a_terminal_broke_are_whole(told, width):
    rows = "".join(
        f"5m          Warning   Evicted   pod/web-{number}   {LOW} Container app was using {number}Gi, request is 0, "
        "has larger consumption of memory.\n"
        for number in (1, 2)
    )
    evictions = told(*folded(rows, width))["evictions"]
    assert [(each["pod"], each["containers"][0]["used"]) for each in evictions] == [
        ("web-1", 1 << 30),
        ("web-2", 2 << 30),
    ]


@pytest.mark.parametrize("kept", ["Name|Reason|Exit", "Name|Node|Reason|Exit", "Name|Last State|Reason|Exit"])
def test_of_descriptions_of_which_someone_kept_some_lines_each_pod_keeps_its_own(told, kept):
    of_pods = [
        ("web-0", "Completed", 0),
        ("web-1", "OOMKilled", 137),
        ("web-2", "Error", 1),
    ]
    lines = [
        line
        for name, reason, code in of_pods
        for line in (
            f"Name:             {name}",
            "Node:             worker-1/10.0.0.1",
            "    Last State:     Terminated",
            f"      Reason:       {reason}",
            f"      Exit Code:    {code}",
        )
        if line.strip().startswith(tuple(kept.split("|")))
    ]
    answer = told(*lines)
    assert [(ended["pod"], ended["exitCode"]) for ended in answer["terminations"]] == [("web-1", 137)]
    assert [(ended["pod"], ended["exitCode"]) for ended in answer["exits"]][-1:] == [("web-2", 1)]


# ---- one kill, told twice ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [f"cri-containerd-{ID}.scope", f"crio-{ID}.scope", f"docker-{ID}.scope"])
def test_what_systemd_and_the_runtime_say_of_one_container_is_one_kill(told, scope):
    answer = told(
        f"{HEADER} systemd[1]: {scope}: A process of this unit has been killed by the OOM killer.",
        f'{HEADER} containerd[8]: time="2026-11-18T09:00:01Z" level=info msg="TaskOOM event container_id:\\"{ID}\\""',
        f"{HEADER} conmon[9]: conmon {ID[:20]} <ninfo>: OOM received",
        f"{HEADER} systemd[1]: {scope}: Failed with result 'oom-kill'.",
    )
    (sign,) = answer["nodeEvents"]
    assert (sign["kind"], sign["containerId"]) == ("ContainerOOMKilled", ID)


def test_a_kill_in_dmesgs_dates_and_a_description_of_that_second_are_one_death(told):
    cgroup = f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope"
    answer = told(
        "$ kubectl -n shop describe pod web-0 | grep -A3 'Last State'",
        *LAST_STATE,
        "$ dmesg -T | tail -1",
        f"[Wed Nov 18 09:00:00 2026] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,"
        f"oom_memcg={cgroup},task_memcg={cgroup},task=app,pid=7,uid=0",
        "[Wed Nov 18 09:00:00 2026] Memory cgroup out of memory: Killed process 7 (app) total-vm:8000kB, "
        "anon-rss:4000kB, file-rss:96kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0",
    )
    (ended,), (kill,) = answer["terminations"], answer["kills"]
    assert (ended["cause"], ended["kill"], kill["pod"]) == ("Kernel", 0, "shop/web-0")


def test_a_container_of_a_nameless_status_ends_with_its_eviction(told):
    text = """\
status:
  conditions:
  - type: DisruptionTarget
    status: "True"
    reason: EvictionByEvictionAPI
    lastTransitionTime: "2026-11-18T09:00:00Z"
  containerStatuses:
  - name: web
    state:
      terminated: {exitCode: 137, reason: Error, finishedAt: "2026-11-18T09:00:31Z"}
  phase: Failed
"""
    answer = told(text)
    assert [eviction["cause"] for eviction in answer["evictions"]] == ["EvictionAPI"]
    assert [ended["cause"] for ended in answer["terminations"]] == ["Eviction"]


def test_a_node_that_a_description_shows_to_be_lost_is_lost_once(told):
    answer = told(
        "Conditions:",
        "  Type   Status   LastHeartbeatTime  LastTransitionTime  Reason  Message",
        "  Ready  Unknown  Wed, 18 Nov 2026 09:00:00 +0000  Wed, 18 Nov 2026 09:01:00 +0000  NodeStatusUnknown  gone",
        "Events:",
        "  Type    Reason        Age   From             Message",
        "  Normal  NodeNotReady  12m   node-controller  Node worker-1 status is now: NodeNotReady",
    )
    (sign,) = answer["nodeEvents"]
    assert (sign["kind"], sign["node"], sign["at"]) == ("NotReady", "worker-1", "2026-11-18T09:01:00+00:00")


def test_an_event_that_quotes_the_kernel_says_where_and_when(told):
    answer = told(
        "LAST SEEN   TYPE      REASON       OBJECT          MESSAGE",
        "2m          Warning   OOMKilling   node/worker-1   Out of memory: Killed process 7 (a) total-vm:8000kB, "
        "anon-rss:4000kB, file-rss:96kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0",
    )
    (kill,), (sign,), (step, *_) = answer["kills"], answer["nodeEvents"], answer["nextSteps"]
    assert (kill["host"], sign["kill"]) == ("worker-1", 0)
    assert step["command"].startswith("kubectl debug node/worker-1 ")


OLD_EVENT = (
    'I1118 09:00:01.000121 9 event.go:278] Event(v1.ObjectReference{{Kind:"{}", Namespace:"{}", Name:"{}", UID:"u", '
    'APIVersion:"v1", ResourceVersion:"1", FieldPath:"{}"}}): type: \'Warning\' reason: \'{}\' {}'
)


def test_events_as_old_kubelets_logged_them(told):
    answer = told(
        OLD_EVENT.format("Pod", "shop", "web-0", "", "Evicted", f"{LOW} {USED}"),
        OLD_EVENT.format("Node", "", "worker-1", "", "SystemOOM", "System OOM encountered, victim process: a, pid: 7"),
        OLD_EVENT.format(
            "Pod", "shop", "db-0", "spec.containers{db}", "Killing", "Container db failed liveness probe, x"
        ),
    )
    (eviction,), (sign,), (ended,) = answer["evictions"], answer["nodeEvents"], answer["terminations"]
    assert (eviction["pod"], sign["node"], sign["pid"]) == ("shop/web-0", "worker-1", 7)
    assert (ended["pod"], ended["container"], ended["cause"]) == ("shop/db-0", "db", "Probe")


def test_a_kubelets_log_tells_which_container_failed_its_probe(told):
    answer = told(
        f'{HEADER} kubelet[9]: I1118 09:00:01.000121 9 kubelet.go:1680] "Message for Container of pod" '
        'containerName="web" containerStatusID={"Type":"containerd","ID":"ab"} pod="shop/web-0" '
        'containerMessage="Container web failed liveness probe, will be restarted"'
    )
    (ended,) = answer["terminations"]
    assert (ended["pod"], ended["container"], ended["cause"], ended["node"]) == (
        "shop/web-0",
        "web",
        "Probe",
        "worker-1",
    )


# ---- who evicted ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "node"),
    [
        ("LowNodeUtilization  pod/web-0  pod eviction from worker-1 node by sigs.k8s.io/descheduler", "worker-1"),
        ("RemoveDuplicates  pod/web-0  pod evicted by sigs.k8s.io/descheduler", ""),
        ("ScaleDown  pod/web-0  deleting pod for node scale down", ""),
        ("EvictedByVPA  pod/web-0  Pod was evicted by VPA Updater to apply resource recommendation.", ""),
        ("Evicted  pod/web-0  Evicted pod: Underutilized", ""),
    ],
)
def test_a_pod_that_the_descheduler_or_an_autoscaler_moved_was_evicted_on_request(told, row, node):
    (eviction,) = told("LAST SEEN  TYPE  REASON  OBJECT  MESSAGE", f"2m  Normal  {row}")["evictions"]
    assert (eviction["cause"], eviction["pod"], eviction.get("node", "")) == ("EvictionAPI", "web-0", node)


def test_an_eviction_that_failed_is_none(told):
    row = "EvictionFailed  pod/web-0  pod eviction from worker-1 node by sigs.k8s.io/descheduler failed: limit"
    assert not told("LAST SEEN  TYPE  REASON  OBJECT  MESSAGE", f"2m  Warning  {row}")["evictions"]


def test_the_deschedulers_log_names_pod_and_node(told):
    line = 'I1118 09:00:01.1  1 evictions.go:551] "Evicted pod" pod="shop/web-0" reason="" strategy="x" node="worker-1"'
    (eviction,) = told(line)["evictions"]
    assert (eviction["cause"], eviction["pod"], eviction["node"]) == ("EvictionAPI", "shop/web-0", "worker-1")


def test_what_kubectl_drain_prints_is_an_eviction_once_it_is_done(told):
    answer = told(
        "$ kubectl drain worker-1 --ignore-daemonsets",
        "node/worker-1 cordoned",
        "evicting pod shop/web-0",
        "evicting pod shop/db-0",
        "pod/web-0 evicted",
    )
    (eviction,) = answer["evictions"]
    assert (eviction["cause"], eviction["pod"], eviction["node"]) == ("EvictionAPI", "shop/web-0", "worker-1")


def test_a_line_of_the_kubelets_by_itself_proves_no_limit_and_the_rest_is_to_be_read(told):
    line = f'{HEADER} kubelet[9]: I1118 09:00:01.1 9 eviction_manager.go:616] "Eviction manager: pod is evicted'
    answer = told(f'{line} successfully" pod="shop/web-0"')
    (eviction,) = answer["evictions"]
    assert (eviction["cause"], eviction["reason"], eviction["followsRule"]) == ("Unknown", "NoMessage", None)
    assert "KubeletLog" in [step["reason"] for step in answer["nextSteps"]]


def test_a_kubelet_that_shuts_down_its_node_says_which_pods_it_ends(told):
    line = (
        f'{HEADER} kubelet[9]: I1118 09:00:01.000121 9 nodeshutdown_manager.go:149] "Shutdown manager killing pod with'
    )
    (eviction,) = told(f'{line} gracePeriod" pod="shop/web-0" gracePeriod=20')["evictions"]
    assert (eviction["cause"], eviction["pod"], eviction["node"]) == ("NodeShutdown", "shop/web-0", "worker-1")


@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        ("Preempting", "Preempted in order to admit critical pod", "CriticalPod"),
        ("NodeShutdown", "Pod was rejected as the node is shutting down.", "NotAdmittedAtShutdown"),
    ],
)
def test_the_reason_in_a_part_of_a_description_is_read(told, reason, message, cause):
    answer = told("Status:           Failed", f"Reason:           {reason}", f"Message:          {message}")
    assert [eviction["cause"] for eviction in answer["evictions"]] == [cause]


# ---- parts of objects and of messages ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        f"WARNING: Event retrieved from the cluster: {LOW} {USED}",
        f"job 7 failed: pod was evicted: {LOW}",
        'The pod was evicted: Usage of EmptyDir volume "cache" exceeds the limit "1Gi".',
    ],
)
def test_an_evictions_message_behind_the_words_of_another_program_is_read(told, line):
    (eviction,) = told(line)["evictions"]
    assert eviction["cause"] in {"NodePressure", "LocalStorageLimit"}


@pytest.mark.parametrize(
    "line",
    [
        "The docs say: The node was low on resource: memory. Is that an eviction?",
        'Which means: Usage of EmptyDir volume "%s" exceeds the limit "%s".',
    ],
)
def test_an_evictions_message_without_figures_in_prose_is_none(told, line):
    assert not told(line)["evictions"]


def test_an_amount_below_a_mebibyte_is_not_zero(told):
    assert "memory.available 4Ki, threshold 100Mi" in told(f"{LOW} {USED}", output="text")


def test_a_list_of_objects_in_the_midst_of_a_text_is_read(told):
    item = """\
- apiVersion: v1
  kind: Event
  reason: Evicted
  message: '{}'
  involvedObject: {{kind: Pod, name: web-{}, namespace: shop}}
  metadata: {{name: web-{}.1, namespace: shop}}
"""
    answer = told("Here is what I get:", "```", *(item.format(LOW, n, n).rstrip() for n in (0, 1)), "```", "Why?")
    assert [eviction["pod"] for eviction in answer["evictions"]] == ["shop/web-0", "shop/web-1"]


def test_a_status_by_itself_says_why_its_pod_failed(told):
    answer = told(
        "status:", "  phase: Failed", "  reason: Preempting", "  message: Preempted in order to admit critical pod"
    )
    assert [eviction["cause"] for eviction in answer["evictions"]] == ["CriticalPod"]


@pytest.mark.parametrize("before", [(), ("Our exporter writes:",)])
def test_events_as_exporters_write_them_do_not_say_what_they_are(told, before):
    line = (
        f'{{"metadata":{{"name":"web-0.1"}},"reason":"Evicted","message":"{LOW}","source":{{"host":"worker-1"}},'
        '"firstTimestamp":"2026-11-18T09:00:01Z","involvedObject":{"kind":"Pod","namespace":"shop","name":"web-0"}}'
    )
    answer = told(*before, line)
    (eviction,) = answer["evictions"]
    assert (eviction["pod"], eviction["node"], answer["read"]["events"]) == ("shop/web-0", "worker-1", 1)


def test_what_a_container_is_told_to_print_is_not_its_end(told):
    answer = told(
        "Name:         web-0",
        "Namespace:    shop",
        "Node:         worker-1/10.0.0.3",
        "Containers:",
        "  web:",
        "    Image:      web",
        "    Command:",
        "      sh",
        "      -c",
        '      echo Reason: OOMKilled; echo "Exit Code: 137"',
        "    State:          Running",
        "    Ready:          True",
        "QoS Class: BestEffort",
        "Events:    <none>",
    )
    assert not answer["terminations"]


def test_a_pod_that_was_evicted_and_is_there_again_was_evicted(told):
    answer = told(
        "evicting pod shop/web-0",
        "pod/web-0 evicted",
        "$ kubectl get pods -n shop",
        "NAME    READY   STATUS    RESTARTS   AGE",
        "web-0   1/1     Running   0          10s",
    )
    assert [(eviction["pod"], eviction["cause"]) for eviction in answer["evictions"]] == [("shop/web-0", "EvictionAPI")]


def test_a_status_as_json_in_a_sentence_is_read_as_json(told):
    status = '{"name":"api","restartCount":5,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}'
    (ended,) = told(f'Our bot says: {{"containerStatuses":[{status}]}} any idea?')["terminations"]
    assert (ended["container"], ended["restarts"]) == ("api", 5)


@pytest.mark.parametrize("kind", ["Init Containers", "Containers", "Ephemeral Containers"])
def test_a_description_may_begin_with_containers_of_any_kind(told, kind):
    (ended,) = told(f"{kind}:", "  side:", "    Image:   x", *LAST_STATE)["terminations"]
    assert ended["container"] == "side"


def test_a_row_of_a_nodes_conditions_tells_of_its_pressure(told):
    answer = told(
        "$ kubectl describe node worker-1 | grep Pressure",
        "  MemoryPressure   True    Wed, 18 Nov 2026 09:00:00 +0000   Wed, 18 Nov 2026 08:58:00 +0000   Kubelet   low",
        "  DiskPressure     False   Wed, 18 Nov 2026 09:00:00 +0000   Wed, 18 Nov 2026 08:58:00 +0000   Kubelet   ok",
    )
    (sign,) = answer["nodeEvents"]
    assert (sign["kind"], sign["node"], sign["condition"]) == ("PressureBegan", "worker-1", "MemoryPressure")


def test_events_name_the_pod_of_a_description_without_its_beginning(told):
    answer = told(
        "Events:",
        "  Type     Reason   Age                From     Message",
        "  Normal   Killing  17m (x3 over 18m)  kubelet  Container web failed liveness probe, will be restarted",
        f"  Warning  BackOff  4m (x20 over 12m)  kubelet  Back-off in pod web-0_shop({UID})",
    )
    assert [(ended["pod"], ended["cause"]) for ended in answer["terminations"]] == [("shop/web-0", "Probe")]


# ---- what is said, and what to run next ----------------------------------------------------------------------------


def test_nodes_that_are_not_ready_are_in_the_headline_and_each_is_to_be_described(told):
    rows = (
        "NAME      STATUS     ROLES    AGE   VERSION",
        "worker-1  NotReady   <none>   4d    v1.33.1",
        "worker-2  NotReady   <none>   4d    v1.33.1",
    )
    assert told(*rows, output="text").startswith("No OOM kills and no evictions found, but 2 nodes became NotReady.\n")
    commands = [step["command"] for step in told(*rows)["nextSteps"]]
    assert commands == [f"kubectl describe node worker-{number} | podqos autopsy -" for number in (2, 1)]


def test_a_command_is_proposed_once(told):
    rows = [f"5m  Warning  Evicted  pod/web-{number}  {LOW}" for number in range(2)]
    commands = [step["command"] for step in told(*rows)["nextSteps"]]
    assert len(commands) == len(set(commands)) == 1


def test_klog_has_no_year_but_the_kubelet_says_when_the_process_died(told):
    event = '{"Pid":7,"ProcessName":"a","TimeOfDeath":"2026-11-18T09:00:01.98Z","ContainerName":"/"}'
    answer = told(f'E1118 09:00:01.000121 9 oom_watcher_linux.go:82] "Got sys oom event" event={event}')
    (sign,), (step,) = answer["nodeEvents"], answer["nextSteps"]
    assert sign["at"] == "2026-11-18T09:00:01Z"
    assert "--since '2026-11-18 08:55:01 UTC'" in step["command"]


def test_a_kubelets_log_in_json_is_counted_as_its_own(told):
    line = '{"ts":1793000000000.1,"caller":"eviction/eviction_manager.go:616","msg":"Eviction manager: x","v":0}'
    assert told(line)["read"]["kubeletMessages"] == 1


def test_a_resource_that_is_not_named_is_no_question_mark(told):
    line = (
        f'{HEADER} kubelet[9]: E1118 09:00:01.1 9 eviction_manager.go:411] "Eviction manager: unable to evict any pods'
    )
    text = told(f'{line} from the node"', output="text")
    assert "the node was low on something, and no pod could be evicted" in text
