"""Source 004 through the command: the levels node → class → pod → container, and what a kubelet's settings change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.cli.main import main

GIB = 2**30

# The document's pod, beside one of each other class.
PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: qos-demo}
spec:
  containers:
    - name: nginx
      image: nginx:latest
      resources:
        requests: {cpu: 250m, memory: 1Gi}
        limits: {cpu: 500m, memory: 2Gi}
---
apiVersion: v1
kind: Pod
metadata: {name: guaranteed}
spec:
  containers:
    - name: app
      image: app
      resources:
        limits: {cpu: "2", memory: 4Gi}
---
apiVersion: v1
kind: Pod
metadata: {name: best-effort}
spec:
  containers:
    - name: app
      image: app
"""
NODE, BURSTABLE_TIER, BEST_EFFORT_TIER = (
    "/kubepods.slice",
    "/kubepods.slice/kubepods-burstable.slice",
    "/kubepods.slice/kubepods-besteffort.slice",
)


@pytest.fixture
def explain(tmp_path: Path, capsys):
    """Explain the three pods on a node with such a kubelet; return the JSON."""

    def run(kubelet: str | None = None, *options: str) -> dict:
        (tmp_path / "pods.yaml").write_text(PODS)
        arguments = ["explain", "-f", str(tmp_path / "pods.yaml"), "--node-memory", "64Gi", "-o", "json", *options]
        if kubelet is not None:
            identity = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
            (tmp_path / "kubelet.yaml").write_text(identity + kubelet)
            arguments += ["--kubelet-config", str(tmp_path / "kubelet.yaml")]
        assert main(arguments) == 0
        return json.loads(capsys.readouterr().out)

    return run


def _tiers(whole: dict) -> dict[str, dict[str, str]]:
    return {each["path"]: _files(each) for each in whole["node"]["cgroups"]}


def _files(cgroup: dict) -> dict[str, str]:
    return {file["name"]: file["value"] for file in cgroup["files"] if file["value"] is not None}


def _of_pod(whole: dict, name: str, level: str) -> dict[str, str]:
    (item,) = (item for item in whole["items"] if item["name"] == name)
    return next(_files(cgroup) for cgroup in item["cgroups"] if cgroup["level"] == level)


def test_all_four_levels_are_shown_with_their_values(explain):
    whole = explain(None, "--cores", "16")
    assert [each["level"] for each in whole["node"]["cgroups"]] == ["node", "qos", "qos"]
    assert _tiers(whole) == {
        NODE: {"cpu.weight": "625", "memory.max": str(64 * GIB)},
        BURSTABLE_TIER: {"cpu.weight": "10"},
        BEST_EFFORT_TIER: {"cpu.weight": "1"},
    }
    assert _of_pod(whole, "qos-demo", "pod")["memory.max"] == str(2 * GIB)
    assert _of_pod(whole, "qos-demo", "container")["cpu.max"] == "50000 100000"


def test_the_text_says_the_tree_once_and_what_it_assumes(capsys, tmp_path):
    (tmp_path / "pods.yaml").write_text(PODS)
    main(["explain", "-v", "-f", str(tmp_path / "pods.yaml"), "--node-memory", "64Gi"])
    out = capsys.readouterr().out
    assert out.count("Above the pods") == 1
    assert "Above the pods: all 3 pods on one node of 64Gi, one of each workload" in out
    assert "requests of the class: 250m" in out


@pytest.mark.parametrize(
    ("version", "below"),
    [("v2", "/sys/fs/cgroup"), ("v1", "/sys/fs/cgroup/cpu and /sys/fs/cgroup/memory")],
)
def test_the_text_says_below_which_mounts_the_directories_are(capsys, tmp_path, version, below):
    """The document asks `mount | grep cgroup` for it, and lists what is below."""
    (tmp_path / "pods.yaml").write_text(PODS)
    main(["explain", "-v", "-f", str(tmp_path / "pods.yaml"), "--cgroup", version])
    assert f"  These are all directories under {below}.\n" in capsys.readouterr().out


def test_reservations_lower_the_ceiling_of_all_pods(explain):
    whole = explain("systemReserved: {memory: 2Gi, cpu: '1'}\nkubeReserved: {memory: 2Gi}\n", "--cores", "16")
    assert _tiers(whole)[NODE] == {"cpu.weight": "586", "memory.max": str(60 * GIB)}


def test_without_enforcement_the_ceiling_is_the_capacity(explain):
    whole = explain("systemReserved: {memory: 2Gi}\nenforceNodeAllocatable: []\n")
    assert _tiers(whole)[NODE] == {"memory.max": str(64 * GIB)}


def test_without_cgroups_per_qos_there_is_no_level_above_the_containers(explain, capsys, tmp_path):
    flat = "cgroupsPerQOS: false\nenforceNodeAllocatable: []\ncgroupDriver: cgroupfs\n"
    whole = explain(flat)
    assert whole["node"]["cgroups"] == []
    assert {cgroup["level"] for item in whole["items"] for cgroup in item["cgroups"]} == {"sandbox", "container"}
    main(["explain", "-v", "-f", str(tmp_path / "pods.yaml"), "--kubelet-config", str(tmp_path / "kubelet.yaml")])
    assert "cgroupsPerQOS: false, the kubelet creates no cgroups" in capsys.readouterr().out


def test_memory_qos_protects_requests_at_every_level(explain):
    whole = explain("featureGates: {MemoryQoS: true}\nmemoryReservationPolicy: TieredReservation\n")
    assert _tiers(whole)[NODE]["memory.min"] == str(5 * GIB)
    assert _tiers(whole)[BURSTABLE_TIER]["memory.low"] == str(GIB)
    assert _of_pod(whole, "guaranteed", "pod")["memory.min"] == str(4 * GIB)
    assert _of_pod(whole, "qos-demo", "pod")["memory.low"] == str(GIB)
    # 1Gi + 0.9 × (2Gi − 1Gi), in whole pages
    assert _of_pod(whole, "qos-demo", "container")["memory.high"] == "2040107008"


def test_limited_swap_gives_burstable_containers_their_share(explain):
    swap = "failSwapOn: false\nmemorySwap: {swapBehavior: LimitedSwap}\n"
    whole = explain(swap, "--node-swap", "8Gi")
    assert _of_pod(whole, "qos-demo", "container")["memory.swap.max"] == str(8 * GIB // 64)
    assert _of_pod(whole, "guaranteed", "container")["memory.swap.max"] == "0"


def test_a_static_cpu_manager_gives_whole_cpus_of_guaranteed_pods_and_takes_their_quota_away(explain):
    whole = explain("cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n", "--cores", "16")
    own = _of_pod(whole, "guaranteed", "container")
    assert (own["cpuset.cpus"], own["cpu.max"]) == ("<2 of its own>", "max 100000")
    assert _of_pod(whole, "guaranteed", "pod")["cpu.max"] == "max 100000"
    assert _of_pod(whole, "qos-demo", "container")["cpu.max"] == "50000 100000"
    then = explain("cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n", "--kubernetes-version", "1.32")
    assert _of_pod(then, "guaranteed", "container")["cpu.max"] == "200000 100000"


@pytest.mark.parametrize(
    ("kubelet", "level", "name", "value"),
    [
        ("cpuCFSQuota: false\n", "container", "cpu.max", None),
        ("cpuCFSQuotaPeriod: 20ms\n", "container", "cpu.max", "10000 20000"),
        ("podPidsLimit: 4096\n", "pod", "pids.max", "4096"),
        ("singleProcessOOMKill: true\n", "container", "memory.oom.group", None),
    ],
)
def test_setting_reaches_the_files(explain, kubelet, level, name, value):
    assert _of_pod(explain(kubelet), "qos-demo", level).get(name) == value


@pytest.mark.parametrize(
    ("kubelet", "options", "path"),
    [
        ("cgroupDriver: cgroupfs\n", (), "/kubepods/burstable"),
        ("cgroupDriver: cgroupfs\n", ("--driver", "systemd"), BURSTABLE_TIER),
        ("cgroupRoot: /pods\n", (), "/pods.slice/pods-kubepods.slice/pods-kubepods-burstable.slice"),
        ("maxPods: 250\n", (), BURSTABLE_TIER),
    ],
)
def test_driver_and_root_move_the_tree(explain, kubelet, options, path):
    assert explain(kubelet, *options)["node"]["cgroups"][1]["path"] == path


@pytest.mark.parametrize(
    ("kubelet", "options", "message"),
    [
        ("cgroupsPerQOS: false\n", [], "kubelet.yaml:1:1: enforceNodeAllocatable: without cgroupsPerQOS"),
        ("cpuManagerPolicy: static\n", [], "kubelet.yaml:3:1: cpuManagerPolicy: static needs CPUs reserved"),
        ("maxPods: 110\n", ["--node-swap", "8Gi"], "kubelet.yaml: failSwapOn: is true, but the node has swap"),
        ("systemReserved: {memory: 80Gi}\n", [], "memory is withheld from pods"),
        ("cpuManagerPolicy: dynamic\n", [], "kubelet.yaml:3:1: cpuManagerPolicy: 'dynamic' is not a valid value"),
        ("evictionHrad: {}\n", [], "kubelet.yaml:3:1: evictionHrad: unknown field"),
    ],
)
def test_a_kubelet_that_does_not_start_is_refused_in_one_line(capsys, tmp_path, kubelet, options, message):
    (tmp_path / "pods.yaml").write_text(PODS)
    file = tmp_path / "kubelet.yaml"
    file.write_text(f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{kubelet}")
    pods = ["-f", str(tmp_path / "pods.yaml"), "--node-memory", "64Gi"]
    assert main(["explain", *pods, "--kubelet-config", str(file), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_every_pod_counts_once_whatever_else_a_list_of_the_cluster_holds(capsys, tmp_path):
    """Controllers beside their pods, pods that have ended, and pods of several nodes."""

    def live(kind: str, name: str, **rest: object) -> dict:
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "uid": name}, **rest}

    spec = {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "1"}}}]}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec}
    items = [
        live("Pod", "a-1", spec={**spec, "nodeName": "one"}),
        live("Pod", "a-2", spec={**spec, "nodeName": "two"}),
        live("Pod", "done", spec={**spec, "nodeName": "one"}, status={"phase": "Succeeded"}),
        {
            **live("Deployment", "a", spec={"selector": {"matchLabels": {"app": "a"}}, "template": template}),
            "apiVersion": "apps/v1",
        },
    ]
    (tmp_path / "list.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    main(["explain", "-v", "-f", str(tmp_path / "list.json"), "--node-memory", "64Gi"])
    out = capsys.readouterr().out
    assert "all 2 pods on one node of 64Gi (they run on 2), one of each workload" in out
    assert "requests of the class: 2" in out


# The document's five examples: as printed, where every item of the list lacks its dash, and with the dashes. They have
# neither kind nor images.

_LIMITS = "      limits:\n        cpu: {}\n        memory: {}\n"
_BOTH = f"{_LIMITS}      requests:\n        cpu: {{}}\n        memory: {{}}\n"
PRINTED = {
    "limits alone": (
        (
            f"containers:\n  name: foo\n    resources:\n{_LIMITS.format('10m', '1Gi')}"
            f"  name: bar\n    resources:\n{_LIMITS.format('100m', '100Mi')}\n"
        ),
        "Guaranteed",
    ),
    "requests and limits": (
        (
            f"containers:\n  name: foo\n    resources:\n{_BOTH.format('10m', '1Gi', '10m', '1Gi')}"
            f"  name: bar\n    resources:\n{_BOTH.format('100m', '100Mi', '100m', '100Mi')}\n"
        ),
        "Guaranteed",
    ),
    "bar without resources": (
        f"containers:\n  name: foo\n    resources:\n{_BOTH.format('10m', '1Gi', '10m', '1Gi')}  name: bar\n\n",
        "Burstable",
    ),
    "one limit each": (
        (
            "containers:\n  name: foo\n    resources:\n      limits:\n        memory: 1Gi\n"
            "  name: bar\n    resources:\n      limits:\n        cpu: 100m\n\n"
        ),
        "Burstable",
    ),
    "resources left empty": ("containers:\n  name: foo\n    resources:\n  name: bar\n    resources:\n\n", "BestEffort"),
}


@pytest.mark.parametrize("name", ["explain", "check", "rank", "admit"])
@pytest.mark.parametrize("printed", [text for text, _ in PRINTED.values()], ids=[*PRINTED])
def test_an_example_as_printed_lacks_its_dashes_and_the_error_says_so(command, name, printed):
    code, _, err = command(name, printed)

    assert code == 2
    assert err.startswith(
        "example.yaml:3:14: error: broken YAML: mapping values are not allowed in this context "
        '("name: foo" already has a value: start a list item with a dash ("- name: foo"), or indent both lines '
        "alike)\n"
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("explain", ()),
        ("rank", ()),
        ("cpu", ("--cores", "2")),
        ("place", ("--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize(("printed", "qos_class"), PRINTED.values(), ids=[*PRINTED])
def test_an_example_with_its_dashes_is_answered_although_it_has_no_kind_and_no_images(
    command, name, options, printed, qos_class
):
    code, out, err = command(name, printed.replace("  name:", "  - name:"), *options)

    assert code == 0
    assert err.splitlines()[0] == (
        "example.yaml:1:1: warning: no kind: treated as Pod example (add apiVersion: v1, kind: Pod and spec:)"
    )
    assert qos_class in out or name == "place"
    assert "example" in out
