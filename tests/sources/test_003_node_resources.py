"""Source 003, "Allocating Node Resources" (OKD 3.9): reservations, eviction, classes, cgroups and overcommitment.

Its snippets go through the commands as the document prints them.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.qos.cgroup import Level, node_cgroups, pod_cgroups
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.classes import class_per_resource
from said import without_assumptions

BEST_EFFORT, BURSTABLE, GUARANTEED = QOSClass.BEST_EFFORT, QOSClass.BURSTABLE, QOSClass.GUARANTEED


def _container(resources: str) -> str:
    return f"containers: [{{name: app, resources: {resources}}}]"


def _resources(pod):
    (container,) = pod.spec.containers
    return container.resources


def test_limits_are_the_default_of_requests(admitted):
    resources = _resources(admitted(_container("{limits: {cpu: 500m, memory: 1Gi}}")))

    assert resources.requests == {"cpu": Quantity.parse("500m"), "memory": Quantity.parse("1Gi")}


def test_a_request_that_is_stated_stays(admitted):
    resources = _resources(admitted(_container("{requests: {cpu: 100m}, limits: {cpu: 500m, memory: 1Gi}}")))

    assert resources.requests == {"cpu": Quantity.parse("100m"), "memory": Quantity.parse("1Gi")}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param("{requests: {cpu: 1}, limits: {cpu: 1}}", GUARANTEED, id="0 < requests == limits"),
        pytest.param("{requests: {cpu: 1}, limits: {cpu: 2}}", BURSTABLE, id="0 < requests < limits"),
        pytest.param("{requests: {cpu: 1}}", BURSTABLE, id="0 < requests, no limit"),
        pytest.param("{}", BEST_EFFORT, id="neither"),
    ],
)
def test_class_of_each_compute_resource(admitted, resources, expected):
    assert class_per_resource(_resources(admitted(_container(resources))))["cpu"] is expected


def test_cpu_and_memory_of_one_container_can_have_different_classes(admitted):
    view = class_per_resource(
        _resources(admitted(_container("{requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}")))
    )

    assert view == {"cpu": BURSTABLE, "memory": GUARANTEED}


# What becomes of requests and limits in the kernel

GIB = 2**30


def _app_cgroup(pod, version=CgroupVersion.V1):
    settings = CgroupSettings(node_memory_bytes=64 * GIB, cgroup_version=version)
    (cgroup,) = (each for each in pod_cgroups(pod, BURSTABLE, settings) if each.level is Level.CONTAINER)
    return cgroup


def test_excess_cpu_is_shared_in_proportion_to_requests(admitted):
    """500m to 250m is 2 to 1."""
    larger, smaller = (
        int(_app_cgroup(admitted(_container(f"{{requests: {{cpu: {cpu}}}}}"))).text("cpu.shares"))
        for cpu in ("500m", "250m")
    )

    assert larger == 2 * smaller


def test_cpu_limits_are_enforced_over_100_ms(admitted):
    cgroup = _app_cgroup(admitted(_container("{limits: {cpu: 250m}}")), CgroupVersion.V2)

    assert cgroup.text("cpu.max") == "25000 100000"


@pytest.mark.parametrize(
    ("percent", "burstable_gib", "best_effort_gib"),
    [
        pytest.param(0, 60, 60, id="nothing is kept for the higher class"),
        pytest.param(50, 55, 53, id="half"),
        pytest.param(100, 50, 46, id="everything a higher class requests is kept for it"),
    ],
)
def test_qos_reserved_keeps_the_memory_of_higher_classes(admitted, percent, burstable_gib, best_effort_gib):
    guaranteed = admitted(_container("{limits: {cpu: 2, memory: 10Gi}}"))
    burstable = admitted(_container("{requests: {memory: 4Gi}}"))
    settings = CgroupSettings(
        node_memory_bytes=64 * GIB,
        node_allocatable={"memory": Quantity.parse("60Gi")},
        qos_reserved_memory_percent=percent,
    )

    _, *classes = node_cgroups((guaranteed, burstable), settings)

    assert [int(cgroup.text("memory.max")) for cgroup in classes] == [burstable_gib * GIB, best_effort_gib * GIB]


# What a node keeps back, and when it evicts: the snippets of the document, through the commands


@pytest.fixture
def podqos(capsys, tmp_path, monkeypatch):
    """Run a command in a directory of its own, in which ``files`` are; return exit code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **files: str) -> tuple[int, str, str]:
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        code = main([*arguments])
        captured = capsys.readouterr()
        return code, captured.out, without_assumptions(captured.err)

    return run


RESERVED = """\
kubeletArguments:
  kube-reserved:
    - "cpu=200m,memory=512Mi"
  system-reserved:
    - "cpu=200m,memory=512Mi"
"""
HARD = """\
kubeletArguments:
  eviction-hard:
  - memory.available<500Mi
  - nodefs.available<500Mi
  - nodefs.inodesFree<100Mi
  - imagefs.available<100Mi
  - imagefs.inodesFree<100Mi
"""
SOFT = """\
kubeletArguments:
  eviction-soft:
  - memory.available<500Mi
  - nodefs.available<500Mi
  - nodefs.inodesFree<100Mi
  - imagefs.available<100Mi
  - imagefs.inodesFree<100Mi
  eviction-soft-grace-period:
  - memory.available=1m30s
  - nodefs.available=1m30s
  - nodefs.inodesFree=1m30s
  - imagefs.available=1m30s
  - imagefs.inodesFree=1m30s
"""
OSCILLATION = 'kubeletArguments:\n  eviction-pressure-transition-period="{}"\n'
QOS_RESERVED = "kubeletArguments:\n  experimental-qos-reserved:\n  - 'memory=50%'\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: app, namespace: shop}
spec:
  containers:
  - name: app
    image: example.com/app
    resources: {limits: {memory: 1Gi}}
"""
NODE = ("--nodes", "1", "--node-capacity", "cpu=4,memory=16Gi,ephemeral-storage=100Gi")


def _thresholds(podqos, *options: str, **files: str) -> dict:
    code, out, err = podqos("thresholds", "-o", "json", *options, **files)
    assert (code, err) == (0, "")
    return json.loads(out)


def test_thresholds_takes_reservations_off_the_capacity(podqos):
    found = _thresholds(podqos, "-f", "node.yaml", "--node-memory", "16Gi", "--node-cpu", "4", node=RESERVED)
    assert {each["resource"]: each["allocatable"] for each in found["allocatable"]} == {
        "cpu": "3600m",
        "memory": "15260Mi",
    }


def test_place_fills_a_node_up_to_what_its_node_config_leaves(podqos):
    code, out, err = podqos("place", "-f", "pod.yaml", *NODE, "--kubelet-config", "node.yaml", pod=POD, node=RESERVED)
    assert (code, err) == (0, "")
    assert "of 3600m" in out
    assert "1Gi of 15260Mi" in out


def test_hard_thresholds_act_at_once(podqos):
    found = _thresholds(podqos, "-f", "node.yaml", "--node-memory", "16Gi", node=HARD)
    own = [each for each in found["thresholds"] if not each["isDerived"]]
    assert [(each["signal"], each["type"], each["value"], each["graceSeconds"]) for each in own] == [
        ("memory.available", "hard", "500Mi", 0),
        ("nodefs.available", "hard", "500Mi", 0),
        ("nodefs.inodesFree", "hard", "100Mi", 0),
        ("imagefs.available", "hard", "100Mi", 0),
        ("imagefs.inodesFree", "hard", "100Mi", 0),
    ]


def test_soft_thresholds_act_after_their_grace_period(podqos):
    found = _thresholds(podqos, "-f", "node.yaml", "--node-memory", "16Gi", node=SOFT)
    soft = {each["signal"]: each["graceSeconds"] for each in found["thresholds"] if each["type"] == "soft"}
    assert len([signal for signal in soft if not signal.startswith("containerfs")]) == 5
    assert set(soft.values()) == {90}


@pytest.mark.parametrize("command", ["thresholds", "place", "check"])
def test_a_soft_threshold_without_its_grace_period_keeps_the_node_from_starting(podqos, command):
    alone = SOFT.partition("  eviction-soft-grace-period")[0]
    options = {"thresholds": ("-f", "node.yaml"), "place": ("-f", "node.yaml", *NODE), "check": ("node.yaml",)}
    code, out, err = podqos(command, *options[command], node=alone)
    assert code == (1 if command == "check" else 2)
    assert "grace period" in out + err
    assert "node.yaml" in out + err


@pytest.mark.parametrize("period", ["5m", "90s"])
def test_the_transition_period_is_read_as_the_document_writes_it(podqos, period):
    code, out, _ = podqos("thresholds", "-f", "node.yaml", "--node-memory", "16Gi", node=OSCILLATION.format(period))
    assert code == 0
    assert f"pressure stays reported for {'1m30s' if period == '90s' else period} after it ends" in out


@pytest.mark.parametrize("grace", ["0", "45"])
def test_the_maximum_grace_of_pods_is_for_soft_eviction(podqos, grace):
    """Without it a pod is killed at once."""
    arguments = f"{SOFT}  eviction-max-pod-grace-period: ['{grace}']\n"
    found = _thresholds(podqos, "-f", "node.yaml", "--node-memory", "16Gi", node=arguments)
    assert found["softPodGraceSeconds"] == int(grace)


# capacity = 100, kube-reserved + system-reserved = 5, hard = 5, soft = 10; then system-reserved covers soft
CASES = {
    "case 1": ("3", "2", ["90 = 100 − 3 − 2 − 5", "85 = 100 − 10 − 5 < 90: not covered"]),
    "case 2": ("3", "12", ["80 = 100 − 3 − 12 − 5", "85 = 100 − 10 − 5 > 80: covered"]),
}


@pytest.mark.parametrize(("kube", "system", "lines"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("unit", ["Mi", "Gi"])
def test_allocatable_and_whether_it_stays_clear_of_the_soft_threshold(podqos, kube, system, lines, unit):
    arguments = (
        "kubeletArguments:\n"
        f'  kube-reserved: ["memory={kube}{unit}"]\n'
        f'  system-reserved: ["memory={system}{unit}"]\n'
        f'  eviction-hard: ["memory.available<5{unit}"]\n'
        f'  eviction-soft: ["memory.available<10{unit}"]\n'
        '  eviction-soft-grace-period: ["memory.available=1m30s"]\n'
    )
    code, out, err = podqos("thresholds", "-f", "node.yaml", "--node-memory", f"100{unit}", node=arguments)
    assert (code, err) == (0, "")
    allocatable = out.partition("HARD EVICTION\n")[2].splitlines()[:2]
    shown = [re.sub(r"(\d)[MG]i", r"\1", line.partition("  ")[2].strip()) for line in allocatable]
    assert [line.removeprefix("until soft").strip() for line in shown] == lines
    assert ("but cross the soft threshold" in out) == (system == "2")


def test_everything_about_a_node_fits_one_screen(podqos):
    """All snippets together, minimum reclaim and grace of pods as well."""
    arguments = (
        RESERVED
        + HARD.partition("\n")[2]
        + SOFT.partition("\n")[2].replace("<500Mi", "<1Gi")
        + "  eviction-minimum-reclaim: ['memory.available=200Mi']\n"
        + "  eviction-max-pod-grace-period: ['30']\n"
        + "  eviction-pressure-transition-period: ['2m']\n"
    )
    options = ("--node-memory", "16Gi", "--node-cpu", "4", "--nodefs-capacity", "100Gi")
    code, out, _ = podqos("thresholds", "-f", "node.yaml", *options, node=arguments)
    lines = out[out.index("ALLOCATABLE") :].splitlines()
    assert code == 0
    assert len(lines) <= 38
    sentences = ("no threshold: ", "Scheduling  ", "Admission   ")  # wrapped on a terminal
    assert max(len(line) for line in lines if not line.startswith(sentences)) <= 80
    told = ("3600m = 4", "14860Mi = 16384Mi", "14336Mi = 16384Mi", "+200Mi", "for 2m", "30s, or", "1m30s")
    assert [part for part in told if part not in out] == []


SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: okd}
spec:
  duration: 10s
  nodes:
  - name: one
    capacity: {cpu: 4, memory: 16Gi}
    kubelet: KUBELET
  manifests: [pod.yaml]
"""


@pytest.mark.parametrize("kubelet", ["node.yaml", "{kubeletArguments: {kube-reserved: ['memory=15500Mi']}}"])
def test_a_scenarios_node_is_configured_by_its_node_config(podqos, kubelet):
    """15500Mi are reserved, so that the 1Gi of the pod find no place."""
    node = "kubeletArguments:\n  kube-reserved:\n  - memory=15500Mi\n  node-labels: [a=b]\n"
    scenario = SCENARIO.replace("KUBELET", kubelet)
    code, out, err = podqos("simulate", "okd.yaml", "-o", "json", okd=scenario, pod=POD, node=node)
    assert code in {0, 1}
    assert "not enough memory" in out
    *ignored, rules = sorted(err.splitlines())
    assert ignored == (
        ["node.yaml: warning: kubeletArguments: ignored (no effect on pods): node-labels"]
        if kubelet == "node.yaml"
        else []
    )
    assert rules.endswith("(OpenShift 3): those of Kubernetes 1.36 (state spec.kubernetesVersion)")


def test_check_finds_and_mends_what_is_wrong_with_a_node_config(podqos):
    together = RESERVED + HARD.partition("\n")[2] + SOFT.partition("\n")[2]
    code, out, _ = podqos("check", "node.yaml", node=together)
    assert code == 1
    assert out.count("inodesFree must stay above 100Mi, 104,857,600 inodes") == 4
    # Which share was meant is for a person to say.
    together = together.replace("inodesFree<100Mi", "inodesFree<5%", 2).replace("inodesFree<100Mi", "inodesFree<10%")
    code, out, _ = podqos("check", "node.yaml", node=together)
    assert code == 1
    assert "warning PQ402 soft-after-hard: A soft threshold comes too late" in out
    assert "node.yaml:13:5: NodeConfig node.yaml: the soft threshold of memory.available, 500Mi" in out
    # Raised alone, the soft threshold is met by pods within their requests: the reservation has to cover it.
    assert "eviction-soft[0]: memory.available<1000Mi was tried and is not offered" in out
    hard, soft = together.split("eviction-soft:")
    raised = soft.replace("available<500Mi", "available<1Gi").replace("available<100Mi", "available<200Mi")
    reserved = hard.replace(
        'system-reserved:\n    - "cpu=200m,memory=512Mi', 'system-reserved:\n    - "cpu=200m,memory=2Gi'
    )
    mended = f"{reserved.replace('memory=2Gi', 'memory=2Gi,ephemeral-storage=1Gi')}eviction-soft:{raised}"
    podqos("check", "--fix", "node.yaml", node=mended)
    assert podqos("check", "node.yaml")[1].startswith("no findings")


@pytest.mark.parametrize("command", ["blast", "forecast"])
def test_other_commands_read_the_node_config_too(podqos, command):
    """A bad amount in it is their error."""
    node = "kubeletArguments:\n  kube-reserved:\n  - memory=memory\n"
    Path("usage.csv").write_text("pod,container,memory\napp,app,100Mi\n")
    growing = ("--growing", "app", "--rate", "1Mi/s") if command == "forecast" else ()
    options = (
        "-f",
        "pod.yaml",
        "--usage",
        "usage.csv",
        "--node-memory",
        "16Gi",
        "--kubelet-config",
        "node.yaml",
        *growing,
    )
    code, _, err = podqos(command, *options, pod=POD, node=node)
    assert code == 2
    assert "node.yaml:2:3: kubeletArguments.kube-reserved: 'memory': quantities must match" in err


# Overriding requests on the master

OVERRIDE = """\
admissionConfig:
  pluginConfig:
    ClusterResourceOverride:
      configuration:
        apiVersion: v1
        kind: ClusterResourceOverrideConfig
        memoryRequestToLimitPercent: 25
        cpuRequestToLimitPercent: 25
        limitCPUToMemoryPercent: 200
"""
BARE_OVERRIDE = textwrap.dedent(OVERRIDE.partition("configuration:\n")[2])
OPERATOR = """\
apiVersion: operator.autoscaling.openshift.io/v1
kind: ClusterResourceOverride
metadata: {name: cluster}
spec:
  podResourceOverride:
    spec: {memoryRequestToLimitPercent: 25, cpuRequestToLimitPercent: 25, limitCPUToMemoryPercent: 200}
"""
LABEL = "clusterresourceoverrides.admission.autoscaling.openshift.io/enabled"
ANNOTATION = "quota.openshift.io/cluster-resource-override-enabled"


def _namespace(kind: str = "labels", name: str = "", value: str = "") -> str:
    return f'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  {kind}: {{a: b, {name or "c"}: "{value}"}}\n'


OVERRIDES = {
    "in the master's configuration": (OVERRIDE, _namespace(), "okd-3.9"),
    "in that of older masters": (
        f"kubernetesMasterConfig:\n{textwrap.indent(OVERRIDE, '  ')}kind: MasterConfig\napiVersion: v1\n",
        _namespace(),
        "okd-3.9",
    ),
    "by itself": (BARE_OVERRIDE, _namespace(), "okd-3.9"),
    "opted in": (OPERATOR, _namespace("labels", LABEL, "true"), "current"),
}


@pytest.mark.parametrize(("override", "namespace", "profile"), OVERRIDES.values(), ids=OVERRIDES)
def test_the_override_is_applied_in_every_shape(podqos, override, namespace, profile):
    files = {"pod": POD, "master": override, "namespace": namespace}
    options = ("admit", "-f", "pod.yaml", "-f", "namespace.yaml", "--policies", "master.yaml")
    code, out, err = podqos(*options, "-o", "json", **files)
    assert (code, err) == (0, "")
    (item,) = json.loads(out)["items"]
    (container,) = item["containers"]
    assert container["requests"] == {"memory": "256Mi", "cpu": "500m"}
    assert container["limits"] == {"memory": "1Gi", "cpu": "2"}
    assert item["override"]["profile"] == profile
    assert f"override                   applied to namespace shop (profile {profile})" in podqos(*options)[1]


NOT_APPLIED = {
    "current, no label": (OPERATOR, _namespace(), f"the namespace lacks the label {LABEL}=true"),
    "current, no namespace": (OPERATOR, "", f"the namespace lacks the label {LABEL}=true"),
    "okd-3.9, annotation": (OVERRIDE, _namespace("annotations", ANNOTATION, "false"), f"the annotation {ANNOTATION}"),
}


@pytest.mark.parametrize(("override", "namespace", "reason"), NOT_APPLIED.values(), ids=NOT_APPLIED)
def test_an_override_that_is_not_applied_says_why(podqos, override, namespace, reason):
    files = {"all": "---\n".join(filter(None, (POD, override, namespace)))}
    _, out, _ = podqos("admit", "-f", "all.yaml", **files)
    assert "override                   not applied to namespace shop: " in out
    assert reason in out
    code, _, err = podqos("place", "-f", "all.yaml", *NODE)
    assert code == 0
    assert "warning: ClusterResourceOverride not applied to namespace shop: " in err
    assert reason in err


def test_the_profile_can_be_told(podqos):
    options = ("admit", "-f", "pod.yaml", "--policies", "master.yaml", "--override-profile", "current")
    _, out, _ = podqos(*options, pod=POD, master=OVERRIDE)
    assert "not applied to namespace shop" in out


def test_overridden_requests_decide_where_a_pod_runs(podqos):
    code, out, _ = podqos("place", "-f", "all.yaml", *NODE, all=f"{POD}---\n{OVERRIDE}")
    assert code == 0
    assert "256Mi of" in out


def test_containers_need_limits_to_be_overridden(podqos):
    bare = POD.replace("{limits: {memory: 1Gi}}", "{}")
    _, out, _ = podqos("admit", "-f", "all.yaml", all=f"{bare}---\n{OVERRIDE}")
    assert "but changes nothing: limits are missing" in out


@pytest.mark.parametrize("command", ["admit", "place"])
@pytest.mark.parametrize(
    ("override", "message"),
    [
        (OVERRIDE.replace(" 25", " 101"), "must be between 0 and 100"),
        (
            OVERRIDE.replace("memoryRequestToLimit", "memoryRequestsToLimit"),
            'did you mean "memoryRequestToLimitPercent"',
        ),
        (OVERRIDE.partition("configuration:")[0] + "location: /etc/override.yaml\n", "the override is in another file"),
    ],
    ids=["a percentage", "misspelt", "elsewhere"],
)
def test_what_is_wrong_with_an_override_is_said_with_its_place(podqos, command, override, message):
    options = NODE if command == "place" else ()
    code, _, err = podqos(command, "-f", "pod.yaml", "-f", "master.yaml", *options, pod=POD, master=override)
    assert code == 2
    assert re.search(rf"master\.yaml:\d+:\d+: error: .*{message}", err)


# Node configurations that are not quite right

MALFORMED = {
    "a flag twice": (RESERVED + RESERVED.partition("\n")[2], 'key "kube-reserved" is set twice'),
    "a text in place of a list": ("kubeletArguments:\n  max-pods: '20'\n", "max-pods: expected a list of strings"),
    "a misspelt flag": ("kubeletArguments:\n  eviction-hrad: [a<1]\n", "did you mean eviction-hard?"),
    "a misspelt signal": (
        "kubeletArguments:\n  eviction-hard: [memory.availabel<1Gi]\n",
        "did you mean memory.available",
    ),
    "the wrong separator": ("kubeletArguments:\n  eviction-hard: [memory.available=1Gi]\n", "malformed pair"),
    "a list of flags": ("kubeletArguments:\n- max-pods=20\n", "must be a mapping from flags to lists"),
}


@pytest.mark.parametrize(("node", "message"), MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("command", ["thresholds", "place", "simulate", "check"])
def test_a_malformed_node_config_is_one_message_with_its_file(podqos, command, node, message):
    options = {
        "thresholds": ("-f", "node.yaml"),
        "place": ("-f", "pod.yaml", *NODE, "--kubelet-config", "node.yaml"),
        "simulate": ("okd.yaml",),
        "check": ("node.yaml",),
    }
    scenario = SCENARIO.replace("KUBELET", "node.yaml")
    code, out, err = podqos(command, *options[command], node=node, pod=POD, okd=scenario)
    # What keeps a kubelet from starting is what check is there to find.
    told = out if command == "check" and "signal" in out else err
    assert code == (1 if told is out else 2)
    lines = [line for line in told.splitlines() if message in line]
    assert len(lines) == 1
    assert "node.yaml" in (out if told is out else lines[0])


def test_blanks_in_thresholds_do_not_matter(podqos):
    node = 'kubeletArguments:\n  eviction-hard: [" memory.available < 500Mi , nodefs.available<10%"]\n'
    found = _thresholds(podqos, "-f", "node.yaml", "--node-memory", "16Gi", node=node)
    values = {each["signal"]: each["value"] for each in found["thresholds"] if not each["isDerived"]}
    assert values == {"memory.available": "500Mi", "nodefs.available": "10%"}
