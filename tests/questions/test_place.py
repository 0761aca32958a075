"""``podqos place`` as a user meets it: outputs, options, bad input, exit codes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main
from said import without_assumptions

NODES = ["--nodes", "2", "--node-capacity", "cpu=4,memory=8Gi,pods=10"]


def deployment(name: str, cpu: str, replicas: int = 1, **spec: object) -> dict[str, object]:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "production"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}},
        },
    }


def node(name: str, **properties: object) -> dict[str, object]:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {"capacity": capacity}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status, **properties}


@pytest.fixture
def place(capsys, tmp_path):
    """Write the documents to a file, run the command, and return exit code, standard output and standard error."""

    def run(*documents: object, options: list[str] = NODES) -> tuple[int, str, str]:
        file = tmp_path / "manifests.yaml"
        file.write_text("---\n".join(d if isinstance(d, str) else yaml.safe_dump(d) for d in documents))
        code = main(["place", "-f", str(file), *options])
        captured = capsys.readouterr()
        return code, captured.out, without_assumptions(captured.err)

    return run


def test_the_table_tells_how_full_the_nodes_are_and_where_everything_lies(place):
    code, out, err = place(deployment("web", "1500m", 3))
    assert (code, err) == (0, "")
    assert "÷" not in out
    lines = out.splitlines()
    assert lines[0] == "3 of 3 pods are placed on 2 nodes"
    assert lines[1].startswith("1 more of Deployment production/web fits; cpu: requests 56 %, limits 0 × allocatable")
    assert " ".join(lines[4].split()) == "node-1 2/10 3 of 4 (75%) 1 0 of 8092Mi (0%) 8092Mi"
    for options in (["-v"], ["-o", "wide"]):
        lines = place(deployment("web", "1500m", 3), options=[*NODES, *options])[1].splitlines()
        assert " ".join(lines[8].split()) == "node-1 cpu 0 0.00× 0.00× 0.00× of 4 2"
        assert " ".join(lines[9].split()) == "memory 0 0.00× – 0.00× of 8092Mi 2"
    lines = out.splitlines()
    assert " ".join(lines[-1].split()) == "production Deployment/web 3 node-1 ×2, node-2"


def room(place, *documents: object) -> dict | None:
    """Return how much more fits."""
    return json.loads(place(*documents, options=[*NODES, "-o", "json"])[1])["room"]


@pytest.mark.parametrize(
    ("documents", "workload", "more"),
    [
        pytest.param([deployment("web", "1", 3)], "Deployment production/web", 5, id="what nodes have left"),
        pytest.param([deployment("web", "1", 9)], "Deployment production/web", 0, id="some are pending already"),
        pytest.param([deployment("web", "100m", 3)], "Deployment production/web", 17, id="the number of pods"),
        pytest.param(
            [deployment("web", "1", 2), deployment("large", "3")], "Deployment production/large", 1, id="the largest"
        ),
        pytest.param(
            [deployment("web", "1", nodeSelector={"kubernetes.io/hostname": "node-2"})],
            "Deployment production/web",
            3,
            id="where it may run",
        ),
    ],
)
def test_how_many_more_of_the_largest_workload_fit(place, documents, workload, more):
    assert room(place, *documents) == {"workload": workload, "more": more, "isAtLeast": False}


def test_nobody_is_preempted_to_make_room_and_who_requests_nothing_has_no_answer(place):
    important = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "i"}, "value": 9}
    documents = [important, deployment("web", "3", priorityClassName="i"), deployment("other", "2")]
    assert room(place, *documents)["more"] == 0
    assert room(place, deployment("idle", "0")) is None


def test_what_is_left_on_a_node_is_shown_and_negative_where_bound_pods_ask_for_more_than_there_is(place):
    bound = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "large"},
        "spec": {
            "nodeName": "node-1",
            "containers": [
                {"name": "app", "image": "app", "resources": {"requests": {"cpu": "5", "memory": "9216Mi"}}},
            ],
        },
    }
    _, out, _ = place(bound)
    assert " ".join(out.splitlines()[4].split()).endswith("5 of 4 (125%) −1 9Gi of 8092Mi (114%) −1124Mi")
    _, out, _ = place(bound, options=[*NODES, "-o", "json"])
    remaining = [each["remaining"] for each in json.loads(out)["nodes"]]
    assert remaining == [{"cpu": "-1", "memory": "-1124Mi"}, {"cpu": "4", "memory": "8092Mi"}]


@pytest.mark.parametrize(
    ("options", "assumed"),
    [
        ((), ["kubelet settings", "cluster policies", "choice among equally good nodes"]),
        (("--kubelet-config", "kubelet.yaml"), ["cluster policies", "choice among equally good nodes"]),
    ],
    ids=["nothing stated", "the kubelet's settings stated"],
)
def test_what_was_not_stated_is_an_assumption(place, tmp_path, monkeypatch, options, assumed):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kubelet.yaml").write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
    whole = json.loads(place(deployment("web", "1"), options=[*NODES, *options, "-o", "json"])[1])
    assert [each["what"] for each in whole["assumptions"]] == assumed


def test_json_shows_the_score_of_every_node_by_plugin_and_which_are_equally_good(place):
    """The second of two replicas goes where the first is not, and nothing is left to chance."""
    whole = json.loads(place(deployment("web", "1", 2), options=[*NODES, "-o", "json"])[1])
    first, second = whole["pods"]
    assert first["equallyGood"] == ["node-1", "node-2"]
    assert [(each["node"], each["total"]) for each in first["scores"]] == [("node-1", 354), ("node-2", 354)]
    assert (second["node"], second["equallyGood"]) == ("node-2", [])
    crowded, free = second["scores"]
    assert crowded["points"]["PodTopologySpread"] < free["points"]["PodTopologySpread"] == 200
    assert all(sum(each["points"].values()) == each["total"] for each in (crowded, free))


def test_verbose_text_shows_scores_and_that_the_scheduler_picks_at_random(place):
    out = place(deployment("web", "1"), options=[*NODES, "-v"])[1]
    assert "node-1: 354 (NodeResourcesFit 86, NodeResourcesBalancedAllocation 68, PodTopologySpread 200)" in out
    assert "2 nodes equally good; the real scheduler picks one at random" in out
    assert "Scores" not in place(deployment("web", "1"))[1]


def test_older_versions_score_the_balance_with_the_pod(place):
    options = [*NODES, "-o", "json", "--kubernetes-version", "1.35"]
    (pod,) = json.loads(place(deployment("web", "1"), options=options)[1])["pods"]
    assert pod["scores"][0]["points"]["NodeResourcesBalancedAllocation"] == 87


def test_pods_that_a_service_selects_are_spread(place):
    """A bare pod goes to the other node, although that one is fuller."""
    there = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "there", "namespace": "production", "labels": {"app": "db"}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]},
    }
    other = {**there, "metadata": {"name": "other", "namespace": "production"}}
    other["spec"] = {
        "nodeName": "node-2",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    }
    waiting = {**there, "metadata": {**there["metadata"], "name": "waiting"}}
    waiting["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "db", "namespace": "production"},
        "spec": {"selector": {"app": "db"}, "ports": [{"port": 1}]},
    }

    def where(*objects) -> str:
        pods = json.loads(place(*objects, options=[*NODES, "-o", "json"])[1])["pods"]
        return next(each["node"] for each in pods if each["name"] == "waiting")

    assert where(there, other, waiting) == "node-1"
    assert where(there, other, waiting, service) == "node-2"


def test_pods_that_wait_are_told_with_the_schedulers_words_and_the_numbers_of_every_node(place):
    code, out, _ = place(deployment("web", "3", 3))
    assert code == 1
    assert "production/Deployment/web: 1 pod\n" in out
    assert "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: " in out
    assert "node-1, node-2: cpu: requests 3, 3 of 4 already requested" in out


def test_displaced_pods_are_told_and_a_bare_one_does_not_come_back(place):
    low = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "low"},
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}],
        },
    }
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    code, out, _ = place(
        low,
        important,
        deployment("web", "4", priorityClassName="high"),
        options=["--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi"],
    )
    assert code == 1
    assert "Displaced\n  default/low was preempted on node-1 by production/web-0" in out
    assert "1 displaced" in out.splitlines()[0]


def test_csv_has_a_row_per_pod(place):
    _, out, _ = place(deployment("web", "3", 3), options=[*NODES, "-o", "csv"])
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["pod"], row["status"], row["node"]) for row in rows] == [
        ("web-0", "Placed", "node-1"),
        ("web-1", "Placed", "node-2"),
        ("web-2", "Pending", ""),
    ]
    assert rows[2]["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_json_and_yaml_hold_the_reasons_as_data(place, output, load):
    _, out, _ = place(deployment("web", "3", 3), options=[*NODES, "-o", output])
    whole = load(out)
    assert (whole["kind"], whole["apiVersion"]) == ("Placement", "podqos.dev/v1alpha1")
    (pending,) = whole["pending"]
    assert pending["pods"] == ["production/web-2"]
    assert pending["nodes"][0] == {
        "node": "node-1",
        "reasons": [{"kind": "Insufficient", "resource": "cpu", "requested": 3000, "used": 3000, "capacity": 4000}],
    }
    assert whole["nodes"][0]["fullness"]["cpu"] == 0.75


def test_nodes_come_from_manifests_and_allocatable_from_the_kubelets_configuration(place):
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "systemReserved": {"cpu": "1", "memory": "1Gi"},
        "evictionHard": {"memory.available": "1Gi"},
        "maxPods": 5,
    }
    _, out, _ = place(deployment("web", "1"), node("a"), kubelet, options=["-o", "json"])
    (found,) = json.loads(out)["nodes"]
    assert (found["allocatable"], found["allowedPods"]) == ({"cpu": "3", "memory": "6Gi"}, 5)


def test_without_a_configuration_a_node_keeps_the_allocatable_it_states(place):
    stated = node(
        "a",
        status={"capacity": {"cpu": "8", "memory": "8Gi"}, "allocatable": {"cpu": "2", "memory": "1Gi", "pods": "3"}},
    )
    _, out, _ = place(deployment("web", "1"), stated, options=["-o", "json"])
    assert json.loads(out)["nodes"][0]["allocatable"] == {"cpu": "2", "memory": "1Gi"}


def test_a_soft_threshold_that_pods_can_meet_is_told(place):
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "evictionHard": {},
        "evictionSoft": {"memory.available": "1Gi"},
        "evictionSoftGracePeriod": {"memory.available": "30s"},
    }
    _, out, _ = place(deployment("web", "1"), node("a"), kubelet, options=[])
    assert "pods may request 8Gi of memory, but the soft threshold of 1Gi is crossed once they use 7Gi" in out


def test_new_pods_go_through_admission_first(place):
    """The LimitRange gives the container its request, and that is what the scheduler goes by."""
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "defaults", "namespace": "production"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "3"}, "defaultRequest": {"cpu": "3"}}]},
    }
    web = deployment("web", "1", 3)
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
    assert place(web)[0] == 0
    code, out, _ = place(web, limits)
    assert code == 1
    assert "2 Insufficient cpu" in out


@pytest.mark.parametrize(("budget", "code"), [("2", 0), ("0.9", 1)])
def test_limits_over_the_budget_are_a_finding_with_those_behind_it(place, budget, code):
    web = deployment("web", "1")
    web["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "4", "memory": "1Gi"}
    got, out, _ = place(web, options=[*NODES, "--cpu-budget", budget])
    assert got == code
    assert ("node-1: cpu limits over budget; furthest above their requests: production/web-0 by 3" in out) is bool(code)


def test_pods_that_wait_for_each_other_are_told(place):
    def near(app: str) -> dict[str, object]:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    _, out, _ = place(
        deployment("a", "1", affinity=near("b")),
        deployment("b", "1", affinity=near("a")),
        deployment("c", "1", affinity=near("nobody")),
    )
    assert "circular affinity: production/a-0 → production/b-0 → production/a-0" in out
    assert "its required pod affinity matches no pod" in out


def test_live_pods_stay_where_they_are_unless_they_are_unbound(place):
    def live(name: str, cpu: str, on: str) -> dict[str, object]:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        metadata = {"name": name, "namespace": "default", "uid": name, "generateName": "web-"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": on, "containers": [container]},
        }

    pods = [live("web-x", "2", "node-1"), live("web-y", "2", "node-1")]
    controller = deployment("web", "2", 2)
    controller["metadata"]["uid"] = "w"
    assert "default    Pod/web-*  2     node-1 ×2" in place(*pods, controller)[1]
    assert "default    Pod/web-*  2     node-1, node-2" in place(*pods, controller, options=[*NODES, "--unbind"])[1]


def test_a_job_has_as_many_pods_as_may_run_at_a_time(place):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {"parallelism": 3, "template": template}
    manifests = [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": job},
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job}},
        },
    ]
    assert place(*manifests)[1].startswith("6 of 6 pods are placed")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no nodes to place pods on (add Node manifests with -f, or --nodes 10"),
        (["--nodes", "2"], "--nodes: the capacity of the nodes is missing"),
        (
            ["--node-capacity", "cpu=1,memory=1Gi"],
            "--node-capacity: the number of nodes is missing (add --nodes N)",
        ),
        (["--nodes", "-1", "--node-capacity", "cpu=1,memory=1Gi"], "--nodes: -1 is not a valid number of nodes"),
        (["--nodes", "1", "--node-capacity", "cpu=many"], "--node-capacity: 'many' is not a valid quantity"),
        (["--nodes", "1", "--node-capacity", "cpu=4"], "--node-capacity: missing memory (write cpu=16,memory=64Gi)"),
        ([*NODES, "--cpu-budget", "lots"], "--cpu-budget: 'lots' is not a ratio (for example 1.5)"),
        ([*NODES, "--kubelet-config", "/nowhere.yaml"], "/nowhere.yaml"),
    ],
)
def test_bad_options_are_one_clear_line(place, options, message):
    code, _, err = place(deployment("web", "1"), options=options)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            deployment(
                "web",
                "1",
                topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            ),
            "spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            deployment("web", "1", priority=5),
            'error: pods "web-xxxxxxxxxx-" is forbidden: the integer value of priority (5) must not be provided in pod',
        ),
        (
            node("x", spec={"taints": [{"key": 5}]}),
            "error: spec.taints[0].key: must be a string, not 5 (put it in quotes)",
        ),
        (
            {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "evictionHrad": {}},
            "error: evictionHrad: unknown field (did you mean evictionHard?)",
        ),
        (deployment("web", "1mm"), "is not a valid quantity"),
    ],
    ids=["spread", "priority", "node", "kubelet", "quantity"],
)
def test_bad_objects_are_told_with_their_place_and_the_rest_is_placed(place, document, message):
    code, out, err = place(document, deployment("good", "1"))
    assert code == 2
    assert message in err
    assert "manifests.yaml:" in err
    assert out.startswith("1 of 1 pods are placed on 2 nodes")


def test_a_node_that_states_nothing_is_refused(place):
    code, _, err = place(
        deployment("web", "1"), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}, options=[]
    )
    assert code == 2
    assert "Node a has neither capacity nor allocatable" in err


def test_the_content_platform_fits_on_its_node():
    folder = Path(__file__).parents[2] / "scenarios" / "content-platform"
    assert main(["place", "-f", str(folder / "platform"), "-f", str(folder / "node")]) == 0
