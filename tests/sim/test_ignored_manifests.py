"""What manifests say and a run ignores is reported, once per kind, where it stands."""

from __future__ import annotations

import textwrap

from podqos.cli.main import main
from podqos.reading.scenario_files import read_scenario
from podqos.reading.shipped_scenarios import shipped_scenarios

SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: test}
spec:
  duration: 1m
  manifests: [pods.yaml]
  nodes: [{name: node-a, capacity: {cpu: 8, memory: 8Gi}, filesystems: {nodefs: {capacity: 100Gi}}}]
  workloads: []
"""
STATEFUL_SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  serviceName: db
  template:
    metadata: {labels: {app: db}}
    spec:
      schedulerName: own
      readinessGates: [{conditionType: example.com/ready}]
      containers:
      - {name: main, image: main, lifecycle: {postStart: {exec: {command: [warm-up]}}}}
      - {name: other, image: other, lifecycle: {postStart: {exec: {command: [warm-up]}}}}
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: data}}
  volumeClaimTemplates:
  - metadata: {name: logs}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  schedulerName: default-scheduler
  readinessGates: []
  containers:
  - {name: main, image: main, env: [{name: postStart, value: persistentVolumeClaim}]}
"""
QUOTA = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: '9'}}\n"
VERTICAL = """\
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {{name: web}}
spec: {{targetRef: {{kind: Deployment, name: web}}, updatePolicy: {{updateMode: {}}}}}
"""
KEDA = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: web}\nspec: {triggers: []}\n"


def said(tmp_path, *documents: str, scenario: str = SCENARIO) -> list[str]:
    """Return line, field and text of the problems of a scenario with these manifests."""
    (tmp_path / "pods.yaml").write_text("---\n".join(documents))
    (tmp_path / "scenario.yaml").write_text(scenario)
    reading = read_scenario(str(tmp_path / "scenario.yaml"))
    assert reading.scenario is not None
    return [f"{problem.line} {problem.field} {problem.what}" for problem in reading.problems]


def test_fields_that_a_run_ignores_are_reported_where_they_are_first(tmp_path):
    assert said(tmp_path, STATEFUL_SET) == [
        "10 spec.template.spec.schedulerName ignored: pods are placed by the rules of the default scheduler",
        "11 spec.template.spec.readinessGates ignored: a pod is ready when its containers are",
        "13 spec.template.spec.containers[0].lifecycle.postStart ignored: the hook takes no time and does not fail",
        "16 spec.template.spec.volumes[0].persistentVolumeClaim ignored: the volume is available on every node at once",
        "17 spec.volumeClaimTemplates ignored: the volume is available on every node at once",
    ]


def test_what_changes_nothing_is_not_reported(tmp_path):
    assert said(tmp_path, POD) == []


def test_objects_that_would_act_in_a_cluster_are_reported_once(tmp_path):
    vertical = VERTICAL.format("Auto"), VERTICAL.format("Off")
    assert said(tmp_path, POD, *vertical) == ["10  VerticalPodAutoscaler is ignored: it changes no requests"]
    assert said(tmp_path, POD, KEDA, KEDA.replace("web", "other")) == [
        "10  ScaledObject is ignored: it scales nothing",
    ]


def test_a_quota_is_reported_where_pods_are_added_later(tmp_path):
    deployment = textwrap.dedent("""\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          selector: {matchLabels: {app: web}}
          template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: main}]}}
        """)
    assert said(tmp_path, deployment, QUOTA) == []
    scaled = SCENARIO.replace("  workloads", "  events: [{at: 9s, scale: {workload: web, replicas: 3}}]\n  workloads")
    assert said(tmp_path, deployment, QUOTA, scenario=scaled) == [
        "8  ResourceQuota is applied to the first pods only: it rejects none that are added during the run"
    ]


def test_the_command_says_it_with_file_and_line(tmp_path, capsys):
    said(tmp_path, STATEFUL_SET)
    assert main(["simulate", str(tmp_path / "scenario.yaml")]) == 0
    assert "pods.yaml:13:" in capsys.readouterr().err


def test_shipped_scenarios_use_nothing_that_is_ignored():
    problems = [problem for name in shipped_scenarios() for problem in read_scenario(name).problems]
    assert [problem for problem in problems if "ignored" in problem.what] == []
