"""Scenario files: read with all they refer to, and everything wrong with them said at once."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent, indent

import pytest

from podqos.cli.main import main
from podqos.eviction.ranking import Policy
from podqos.manifest.problems import Severity
from podqos.qos.classes import classify
from podqos.reading.scenario_files import InvalidScenario, load_scenario, read_scenario
from podqos.sim.engine.curve import Clock, constant
from podqos.sim.scenario.scenario import IDLE, NodeAdded, NodeLost

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"), key=lambda path: path.stem)
GI = 2**30

PODS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: web, resources: {limits: {cpu: 1, memory: 1Gi}}}
      volumes:
        - {name: cache, emptyDir: {}}
---
apiVersion: v1
kind: Pod
metadata: {name: pair, namespace: other}
spec:
  containers:
    - {name: main, image: a}
    - {name: side, image: b}
"""
HEAD = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: test}
spec:
  duration: 10m
  manifests: [pods.yaml]
  nodes:
    - {name: node, capacity: {cpu: 4, memory: 8Gi}}
"""


@pytest.fixture
def reads(tmp_path):
    """Return what is read of a scenario with these lines at the end."""
    (tmp_path / "pods.yaml").write_text(PODS)

    def read(lines="", head=HEAD):
        file = tmp_path / "test.yaml"
        file.write_text(head.lstrip() + indent(dedent(lines), "  "))
        return read_scenario(str(file))

    return read


def scenario(reading):
    assert [str(problem) for problem in reading.problems] == []
    assert reading.scenario is not None
    return reading.scenario


def workload(reading, name):
    return next(each for each in scenario(reading).workloads if each.name == name)


# ---- what a file means -------------------------------------------------------------------------------------------


def test_workloads_of_the_manifests_run_as_stored_and_are_idle_unless_something_is_said(reads):
    web = workload(reads(), "web")
    assert (web.kind, web.namespace, web.replicas, web.recreate) == ("Deployment", "default", 3, True)
    assert classify(web.pod).qos_class == "Guaranteed"  # the API server has copied requests from limits
    assert web.demand_of(2, "web") == IDLE


def test_a_bare_pod_is_not_replaced_unless_the_file_says_so(reads):
    assert workload(reads(), "pair").recreate is False
    assert workload(reads("workloads: [{workload: pair, recreate: true}]"), "pair").recreate is True


LIVE = """
apiVersion: v1
kind: Pod
metadata: {name: live, uid: "1"}
spec:
  nodeName: NODE
  priority: 5
  containers: [{name: a, image: a, resources: {requests: {memory: 1Gi}}}]
"""


def test_what_comes_from_an_api_server_is_taken_as_it_is_and_runs_where_it_is_bound_to(reads, tmp_path):
    (tmp_path / "pods.yaml").write_text(LIVE.replace("NODE", "node"))
    live = workload(reads(), "live")
    assert (live.nodes, live.pod.spec.priority, live.replicas) == (("node",), 5, 1)


def test_a_pod_bound_to_a_node_that_is_not_there_is_an_error_unless_it_is_put_elsewhere(reads, tmp_path):
    (tmp_path / "pods.yaml").write_text(LIVE.replace("NODE", "other"))
    assert "default/live is bound to the node other" in str(reads().problems)
    assert workload(reads("workloads: [{workload: live, nodes: [node]}]"), "live").nodes == ("node",)


def test_the_demand_of_the_only_container(reads):
    demand = workload(
        reads("""
        workloads:
          - workload: web
            replicas: 2
            arrives: 10s
            deleted: 5m
            demand:
              memory: 512Mi
              cpu: 250m
              processes: 4
              logs: 1Mi per second
              volumes: {cache: 2Gi}
              exits: {after: 30s, code: 1}
        """),
        "web",
    )
    assert (demand.replicas, demand.arrives_us, demand.deleted_us) == (2, 10_000_000, 300_000_000)
    web = demand.demand_of(0, "web")
    assert web.anon_bytes == constant(512 * 2**20)
    assert web.cpu_milli == constant(250)
    assert web.processes == web.pids_wanted == constant(4)
    assert web.logs_bytes.at(60_000_000) == 60 * 2**20
    assert web.logs_bytes.clock is Clock.CONTAINER
    assert web.volumes["cache"].used_bytes == constant(2 * GI)
    assert (web.exits_after_us, web.exit_code) == (30_000_000, 1)


def test_several_containers_are_told_apart_by_name(reads):
    pair = workload(reads("workloads: [{workload: other/pair, containers: {side: {memory: 1Gi}}}]"), "pair")
    assert pair.demand_of(0, "side").anon_bytes == constant(GI)
    assert pair.demand_of(0, "main") == IDLE


def test_replicas_take_turns(reads):
    web = workload(
        reads("workloads: [{workload: web, perReplica: [{demand: {memory: 1Gi}}, {demand: {memory: 2Gi}}]}]"), "web"
    )
    assert [web.demand_of(replica, "web").anon_bytes.at(0) // GI for replica in range(3)] == [1, 2, 1]


def test_random_demands_differ_between_replicas_and_repeat_with_the_seed(reads):
    lines = "workloads: [{workload: web, demand: {cpu: {random: {low: 0, high: 4, every: 1m}}}}]"
    web = workload(reads(lines), "web")
    curves = [web.demand_of(replica, "web").cpu_milli for replica in range(3)]
    assert len(set(curves)) == 3
    assert [workload(reads(lines), "web").demand_of(index, "web").cpu_milli for index in range(3)] == curves
    other = workload(reads("seed: 7\n" + lines), "web")
    assert other.demand_of(0, "web").cpu_milli != curves[0]


def test_mappings_have_a_base_a_delay_and_a_clock(reads):
    memory = "{steps: {0s: 1Gi, 10s: 2Gi}, base: 1Gi, delay: 5s, clock: container}"
    curve = (
        workload(reads(f"workloads: [{{workload: web, demand: {{memory: {memory}}}}}]"), "web")
        .demand_of(0, "web")
        .anon_bytes
    )
    assert [curve.at(second * 10**6) // GI for second in (0, 14, 15)] == [2, 2, 3]
    assert curve.clock is Clock.CONTAINER


def test_samples_come_from_files_beside_the_scenario(reads, tmp_path):
    (tmp_path / "usage.csv").write_text("time,memory\n0,1Gi\n60,3Gi\n")
    demand = "{memory: {samples: {file: usage.csv}}}"
    curve = workload(reads(f"workloads: [{{workload: web, demand: {demand}}}]"), "web").demand_of(0, "web").anon_bytes
    assert curve.at(30_000_000) == 2 * GI


def test_nodes(reads):
    head = HEAD.replace(
        "    - {name: node, capacity: {cpu: 4, memory: 8Gi}}",
        """
    - name: worker
      count: 3
      capacity: {cpu: 4, memory: 8Gi, pids: 32768}
      filesystems: {nodefs: {capacity: 32Gi}, imagefs: {capacity: 16Gi, inodes: 1000}}
      reclaimable: {images: 4Gi, deadContainers: 1Gi}
      system: {memory: 1Gi, cpu: 100m}
      watermarks: {min: 50Mi, low: 60Mi}
      labels: {zone: a}
      taints: [{key: dedicated, effect: NoSchedule}]
      loopPhase: 8s
      phaseStep: 1500ms
      kubelet: {evictionHard: {memory.available: 1Gi}}
""",
    )
    (group,) = scenario(reads("", head)).nodes
    spec = group.spec
    assert [group.name_of(index) for index in range(3)] == ["worker-0", "worker-1", "worker-2"]
    assert [group.loop_phase_us(index) for index in range(3)] == [8_000_000, 9_500_000, 1_000_000]
    assert (spec.memory_bytes, spec.cpu_milli, spec.max_pids) == (8 * GI, 4000, 32768)
    assert (spec.nodefs.inodes, spec.imagefs.inodes) == (32 * GI // 16384, 1000)
    assert (spec.watermarks.min_bytes, spec.watermarks.high_bytes) == (50 * 2**20, 60 * 2**20)
    assert spec.config.eviction_hard == {"memory.available": "1Gi"}
    assert spec.system.cpu_milli == constant(100)
    assert (spec.unused_image_bytes, spec.dead_container_bytes) == (4 * GI, GI)


def test_the_rest(reads):
    read = scenario(
        reads("""
        seed: 5
        kubernetesVersion: "1.30"
        evictionPolicy: qos-tiers
        events: [{at: 1m, nodeLost: node}, {at: 2m, nodeJoins: node}]
        timing: {containerStart: 2s, recreate: 3s}
        """)
    )
    assert (read.seed, read.profile.version, read.policy) == (5, (1, 30), Policy.QOS_TIERS)
    assert read.happenings == (NodeLost(60_000_000, "node"), NodeAdded(120_000_000, "node"))
    assert (read.options.container_start_us, read.options.recreate_us, read.options.pleg_period_us) == (2e6, 3e6, 1e6)


def test_times_are_plain_numbers_that_a_journal_can_hold(reads):
    web = workload(
        reads("""
        workloads:
          - workload: web
            arrives: 1s
            deleted: 2s
            demand:
              cpu: {wave: {high: 1, period: 1m, peak: 1s}, delay: 1s}
              memory: {random: {high: 1, every: 1m}}
              logs: {points: {0s: 1, 1s: 2}}
              exits: {after: 1s}
        """),
        "web",
    )
    demand = web.demand_of(0, "web")
    curves = (demand.cpu_milli, demand.anon_bytes, demand.logs_bytes)
    numbers = [web.arrives_us, web.deleted_us, demand.exits_after_us, demand.cpu_milli.period_us]
    numbers += [number for curve in curves for knot in curve.knots for number in knot]
    assert {type(number) for number in numbers} == {int}


# ---- what is wrong with a file -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("durration: 10m", '9:3: error: spec.durration: unknown field "durration" (did you mean "duration"?)'),
        ("seed: high", 'spec.seed: must be a whole number, not "high"'),
        ("kubernetesVersion: 1.99.0", "spec.kubernetesVersion: unknown Kubernetes version '1.99.0'"),
        ("evictionPolicy: fair", "spec.evictionPolicy: must be one of kubelet, qos-tiers, qos-usage"),
        ("events: [{at: 1m, nodeLost: nod}]", 'spec.events[0].nodeLost: no such node: "nod" (nodes are node)'),
        ("events: [{at: 1m}]", "spec.events[0]: exactly one event is required"),
        ("timing: {plegPeriod: 0s}", "spec.timing.plegPeriod: must be positive"),
        ("workloads: [{workload: webb}]", 'no manifest has a workload "webb" (did you mean "web"?)'),
        ("workloads: [{}]", "spec.workloads[0].workload: Required value"),
        ("workloads: [{workload: web}, {workload: web}]", "default/web is listed twice"),
        ("workloads: [{workload: pair, demand: {memory: 1Gi}}]", "the pod has several containers: main and side"),
        ("workloads: [{workload: pair, containers: {mian: {}}}]", 'no container "mian" (did you mean "main"?)'),
        ("workloads: [{workload: web, demand: {volumes: {cahce: 1Gi}}}]", 'no volume "cahce" (did you mean "cache"?)'),
        ("workloads: [{workload: web, demand: {memory: 8Gi ower 2s}}]", '"ower" is not expected in "8Gi ower 2s"'),
        ("workloads: [{workload: web, demand: {memory: {}}}]", "states no demand"),
        ("workloads: [{workload: web, demand: {cpu: {steps: {1s: 1}, shape: 2}}}]", "shape and steps exclude"),
        ("workloads: [{workload: web, demand: {cpu: {points: {2s: 1, 1s: 2}}}}]", "cpu.points.1s: is not later than"),
        ("workloads: [{workload: web, demand: {cpu: {wave: {high: 1}}}}]", "cpu.wave.period: Required value"),
        ("workloads: [{workload: web, demand: {cpu: {random: {low: 2, high: 1, every: 1s}}}}]", "higher than high"),
        ("workloads: [{workload: web, demand: {cpu: {random: {every: 1us}}}}]", "600,000,000 random values"),
        ("workloads: [{workload: web, demand: {memory: 1Gi - 2Gi at 5s}}]", "the demand falls below zero"),
        ("workloads: [{workload: web, demand: {processes: 0}}]", "at least one process"),
        ("workloads: [{workload: web, demand: {processes: 3 over 5s}}]", "at least one process"),
        ("workloads: [{workload: web, demand: {memory: {samples: {file: no.csv}}}}]", "no.csv: No such file"),
        ("workloads: [{workload: web, deleted: 1s, arrives: 2s}]", "deleted before it arrives"),
        ("workloads: [{workload: web, nodes: [nod]}]", 'no such node: "nod" (did you mean "node"?)'),
        ("workloads: [{workload: web, nodes: [node], spread: true}]", "exclude each other"),
        ("workloads: [{workload: web, demand: {}, containers: {web: {}}}]", "exclude each other"),
        ("workloads: [{workload: web, demand: {exits: {code: 1}}}]", "exits.after: Required value"),
    ],
)
def test_every_error_has_its_place_and_help(reads, lines, said):
    reading = reads(lines)
    assert reading.scenario is None
    assert [problem for problem in map(str, reading.problems) if said in problem], list(map(str, reading.problems))
    assert all(problem.line for problem in reading.problems)


def test_one_process_is_enough(reads):
    reading = reads("workloads: [{workload: web, demand: {processes: 1}}]")
    assert reading.problems == ()
    assert reading.scenario is not None


@pytest.mark.parametrize("times", ["deleted: 5s, arrives: 5s", "deleted: 0s"])
def test_what_is_deleted_the_moment_it_arrives_is_a_warning_with_its_place_and_not_an_error(reads, times):
    reading = reads(f"workloads: [{{workload: web, {times}}}]")
    assert reading.scenario is not None
    (problem,) = reading.problems
    assert problem.severity is Severity.WARNING
    assert str(problem).endswith(
        "spec.workloads[0].deleted: is deleted the moment it arrives: its pods never run "
        "(delete it later, or leave it out with replicas: 0)"
    )
    assert problem.line


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: Scenario", "kind: Senario", "2:1: error: kind: must be Scenario"),
        ("metadata: {name: test}", "metadata: {}", "metadata.name: Required value"),
        ("  duration: 10m\n", "", "spec.duration: Required value"),
        ("duration: 10m", "duration: 10", "write the unit: 10s"),
        ("pods.yaml", "nowhere", "nowhere: no such file or directory"),
        ("memory: 8Gi", "memory: 8gi", "did you mean 8Gi?"),
        ("memory: 8Gi", "memory: 0", "must be positive"),
        ("{cpu: 4, memory: 8Gi}", "{cpu: 4}", "spec.nodes[0].capacity.memory: Required value"),
        ("{name: node,", "{name: node, count: 0,", "must lie between 1 and 100,000"),
        ("{name: node,", "{name: node, cgroupVersion: 3,", "must be 1 or 2"),
        ("{name: node,", "{name: node, kubelet: none.yaml,", "none.yaml: No such file"),
        ("{name: node,", "{name: node, kubelet: {evictionHrad: {}},", "did you mean evictionHard?"),
        ("{name: node,", "{name: node, kubelet: {evictionSoft: {memory.available: 1Gi}},", "does not start"),
        ("{name: node,", "{name: node, watermarks: {min: 2Gi, low: 1Gi},", "min, low and high must increase"),
        ("{name: node,", "{name: node, system: {memory: 1Gi - 2Gi at 1s},", "falls below zero"),
        ("{name: node,", "{name: node, taints: [{kay: x}],", 'unknown field "kay"'),
        (
            "    - {name: node,",
            "    - {name: node, capacity: {cpu: 1, memory: 1Gi}}\n    - {name: node,",
            "duplicate node",
        ),
        ("spec:", "spec: [", "broken YAML"),
    ],
)
def test_errors_of_the_frame(reads, old, new, said):
    assert old in HEAD
    reading = reads("", HEAD.replace(old, new))
    assert reading.scenario is None
    assert said in "\n".join(map(str, reading.problems))


def test_all_errors_are_said_at_once_in_the_order_of_the_file(reads, capsys, tmp_path):
    reads("seed: x\nworkloads: [{workload: web, demand: {memory: lots, cpu: {wave: {}}}}]")
    assert main(["scenario", "validate", str(tmp_path / "test.yaml")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines == sorted(lines, key=lambda line: tuple(map(int, line.split(":")[1:3])))


def test_a_pod_that_the_api_server_refuses_is_an_error_at_its_place(reads, tmp_path):
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {pods: 2}}\n"
    (tmp_path / "quota.yaml").write_text(quota)
    reading = reads("", HEAD.replace("[pods.yaml]", "[pods.yaml, quota.yaml]"))
    (problem,) = reading.problems
    assert (problem.source.endswith("pods.yaml"), problem.line) == (True, 2)
    assert "rejects 1 of 3 pods" in problem.what


def test_several_objects_of_one_name_must_be_told_apart(reads, tmp_path):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: a}]}"
    (tmp_path / "more.yaml").write_text(pod)
    head = HEAD.replace("[pods.yaml]", "[pods.yaml, more.yaml]")
    problems = str(reads("workloads: [{workload: web}]", head).problems)
    assert "use one of Deployment/default/web, Pod/default/web" in problems
    assert reads("workloads: [{workload: Pod/default/web}]", head).problems == ()


def test_load_scenario_raises_what_is_wrong_and_prints_nothing(tmp_path, capsys):
    (tmp_path / "bad.yaml").write_text("kind: Scenario\n")
    with pytest.raises(InvalidScenario, match="the scenario has") as raised:
        load_scenario(str(tmp_path / "bad.yaml"))
    assert "apiVersion: Required value" in str(raised.value.problems[0])
    assert capsys.readouterr() == ("", "")


def test_a_command_prints_everything_wrong_with_its_scenario(tmp_path, capsys):
    (tmp_path / "bad.yaml").write_text("kind: Scenario\n")
    assert main(["simulate", str(tmp_path / "bad.yaml")]) == 2
    err = capsys.readouterr().err
    assert "apiVersion: Required value" in err
    assert "the scenario has" in err


# ---- the command -------------------------------------------------------------------------------------------------


def test_a_new_scenario_is_valid_and_never_overwrites(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["scenario", "new", "mine"]) == 0
    assert main(["scenario", "validate", "mine.yaml"]) == 0
    assert "mine.yaml: 1 node, 3 pods, 600 s" in capsys.readouterr().out
    (tmp_path / "mine.yaml").unlink()
    before = (tmp_path / "mine" / "manifests.yaml").read_text()
    assert main(["scenario", "new", "mine"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert not (tmp_path / "mine.yaml").exists()
    assert (tmp_path / "mine" / "manifests.yaml").read_text() == before


@pytest.mark.parametrize("name", ["../up", "Mine", "", "a/b"])
def test_a_new_scenario_needs_a_plain_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["scenario", "new", name]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_are_valid_and_found_by_name(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["scenario", "validate", path.stem]) == 0
    assert capsys.readouterr().err == ""


def test_a_directory_of_the_same_name_does_not_hide_a_shipped_scenario(monkeypatch):
    monkeypatch.chdir(ROOT / "scenarios")
    assert load_scenario("oom-loop").name == "oom-loop"


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("raec", "did you mean race?"),
        ("Race", "did you mean race?"),
        ("oom-by-clas", "did you mean oom-by-class?"),
        ("scenarios/oom-loop.yaml", "built in as oom-loop"),
        ("scenarios/mine.yaml", "check the path"),
        ("other", "podqos scenario list"),
    ],
)
def test_a_name_that_is_none_is_refused_with_help(name, fix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (problem,) = read_scenario(name).problems
    assert fix in problem.fix


def test_the_shipped_scenarios_are_listed(capsys):
    assert main(["scenario", "list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [path.stem for path in SHIPPED]


def test_the_schema_describes_every_definition_it_refers_to():
    schema = (ROOT / "docs" / "schema" / "scenario.json").read_text()
    definitions = json.loads(schema)["$defs"]
    referred = {part.split('"')[0] for part in schema.split('"#/$defs/')[1:]}
    assert referred == set(definitions)
    assert all("description" in definition or "anyOf" in definition for definition in definitions.values())


# ---- the page ----------------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs/reference/scenario-format.md").read_text()


def test_the_example_of_the_page_is_valid(tmp_path):
    example = PAGE.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "content-platform").symlink_to(ROOT / "scenarios" / "content-platform")
    (tmp_path / "page.yaml").write_text(example)
    assert [str(problem) for problem in read_scenario(str(tmp_path / "page.yaml")).problems] == []


@pytest.mark.parametrize("notation", [line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `")])
def test_every_demand_of_the_page_can_be_read(reads, tmp_path, notation):
    (tmp_path / "usage.csv").write_text("time,memory\n0,1Gi\n")
    if "{" not in notation and not notation[0].isdigit():
        assert f'"{notation}"' in (ROOT / "docs" / "schema" / "scenario.json").read_text()
        return
    workload(reads(f"workloads: [{{workload: web, demand: {{memory: {notation}}}}}]"), "web")


def test_the_page_names_every_field_of_demands_nodes_and_workloads():
    definitions = json.loads((ROOT / "docs" / "schema" / "scenario.json").read_text())["$defs"]
    for name in ("Demand", "Workload", "Timing", "ScenarioSpec"):
        missing = [
            field for field in definitions[name]["properties"] if f"`{field}" not in PAGE and f"{field}:" not in PAGE
        ]
        assert missing in ([], ["description"]), name


NOTIFIED = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: notified}
spec:
  duration: 1s
  nodes:
    - name: worker
      capacity: {cpu: 1, memory: 1Gi}
      kubelet: {kernelMemcgNotification: true}
      EXTRA
"""


@pytest.mark.parametrize(
    ("extra", "warns"), [("cgroupVersion: 2", 1), ("cgroupVersion: 1", 0), ("fastPath: true", 0)], ids=str
)
def test_a_notification_that_never_comes_is_warned_of_once(tmp_path, capsys, extra, warns):
    path = tmp_path / "scenario.yaml"
    path.write_text(NOTIFIED.replace("EXTRA", extra))
    assert main(["simulate", str(path)]) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if "never fires" in line]
    assert len(warned) == warns
    assert all(line.startswith(f"{path}:9:7: warning: spec.nodes[0].kubelet: ") for line in warned)
