"""Whom MemoryPressure keeps away: `thresholds`, `place` and `simulate` give one answer for each version."""

from __future__ import annotations

import json

import pytest
import yaml

from podqos.cli.main import main

PODS = ("best-effort", "burstable", "guaranteed", "tolerant")
WHOM = {
    "1.11": {"best-effort", "tolerant"},
    "1.12": {"best-effort", "burstable", "guaranteed"},
    "1.36": {"best-effort", "burstable", "guaranteed"},
}
"""Repelled by the scheduler: by class up to 1.11, then by toleration."""


def pod(name):
    resources = {"burstable": {"requests": {"memory": "1Mi"}}, "guaranteed": {"limits": {"cpu": "1m", "memory": "1Mi"}}}
    toleration = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": resources.get(name, {})}],
            "tolerations": [toleration] if name == "tolerant" else [],
        },
    }


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "short"},
    "status": {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"},
        "conditions": [{"type": "MemoryPressure", "status": "True"}],
    },
}
KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "evictionHard": {"memory.available": "500Mi"},
}
SCENARIO = {
    "apiVersion": "podqos.dev/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "short"},
    "spec": {
        "duration": "3m",
        "manifests": ["pods.yaml"],
        "nodes": [{"name": "short", "capacity": {"cpu": 4, "memory": "1Gi"}, "kubelet": "kubelet.yaml"}],
        "workloads": [
            {
                "workload": "leak",
                "nodes": ["short"],
                "recreate": False,
                "demand": {"memory": "100Mi + 20Mi per second"},
            },
            *({"workload": name, "arrives": "2m"} for name in PODS),
        ],
    },
}


def placed(tmp_path, capsys, *options):
    """Return the pods that `place` leaves pending."""
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([NODE, *map(pod, PODS)]))
    main(["place", "-f", str(file), "-o", "json", *options])
    return {each["name"] for each in json.loads(capsys.readouterr().out)["pods"] if each["status"] == "Pending"}


def simulated(tmp_path, capsys, **spec):
    """Return the pods that `simulate` leaves pending, and those that the kubelet turns away."""
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all([pod("leak"), *map(pod, PODS)]))
    (tmp_path / "kubelet.yaml").write_text(yaml.safe_dump(KUBELET))
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump({**SCENARIO, "spec": {**SCENARIO["spec"], **spec}}))
    assert main(["simulate", str(file), "-o", "jsonl"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return tuple(
        {each["pod"].removeprefix("default/") for each in entries if each["kind"] == kind}
        for kind in ("Pending", "Rejected")
    )


@pytest.mark.parametrize("version", WHOM)
def test_every_command_has_memory_pressure_repel_the_same_pods(tmp_path, capsys, version):
    assert placed(tmp_path, capsys, "--kubernetes-version", version) == WHOM[version]
    assert simulated(tmp_path, capsys, kubernetesVersion=version)[0] == WHOM[version]
    main(["thresholds", "--node-memory", "64Gi", "--kubernetes-version", version])
    text = capsys.readouterr().out
    main(["thresholds", "--node-memory", "64Gi", "--kubernetes-version", version, "-o", "json"])
    pressure = {each["condition"]: each for each in json.loads(capsys.readouterr().out)["pressure"]}
    is_by_class = version == "1.11"
    assert ("MemoryPressure repels BestEffort pods, Disk- and PIDPressure every pod" in text) is is_by_class
    assert ("pressure of any kind repels every pod that doesn't tolerate it" in text) is not is_by_class
    assert pressure["MemoryPressure"]["repels"] == ("BestEffort" if is_by_class else "WithoutToleration")


@pytest.mark.parametrize("version", WHOM)
def test_the_plug_in_lets_all_but_best_effort_pods_in(tmp_path, capsys, version):
    kept = WHOM[version] - {"burstable", "guaranteed"}
    plugins = ["PodTolerationRestriction"]
    assert simulated(tmp_path, capsys, kubernetesVersion=version, enableAdmissionPlugins=plugins)[0] == kept


@pytest.mark.parametrize(("version", "refused"), [("1.10", {"best-effort", "tolerant"}), ("1.36", {"best-effort"})])
def test_the_kubelets_own_admission_looks_at_the_class(tmp_path, capsys, version, refused):
    bound = [{**each, "nodes": ["short"]} for each in SCENARIO["spec"]["workloads"]]
    assert simulated(tmp_path, capsys, kubernetesVersion=version, workloads=bound) == (set(), refused)


def test_thresholds_says_what_the_kubelets_own_admission_rejects(capsys):
    main(["thresholds", "--node-memory", "64Gi"])
    text = capsys.readouterr().out
    assert "MemoryPressure rejects BestEffort pods that don't tolerate it, Disk- and PIDPressure all but" in text
    main(["thresholds", "--node-memory", "64Gi", "--kubernetes-version", "1.10"])
    assert "MemoryPressure rejects BestEffort pods, Disk- and PIDPressure all but" in capsys.readouterr().out


def test_a_scenario_names_the_plug_ins_that_there_are(tmp_path, capsys):
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all([pod("leak"), *map(pod, PODS)]))
    (tmp_path / "kubelet.yaml").write_text(yaml.safe_dump(KUBELET))
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump({**SCENARIO, "spec": {**SCENARIO["spec"], "enableAdmissionPlugins": ["Nothing"]}}))
    assert main(["simulate", str(file)]) == 2
    assert "PodTolerationRestriction" in capsys.readouterr().err
