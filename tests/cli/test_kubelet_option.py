"""``--kubelet-config``: one name and one meaning for every command whose answer depends on a kubelet."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

import pytest

from podqos.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "scenarios" / "content-platform" / "platform"
USAGE = ROOT / "scenarios" / "content-platform" / "usage.csv"

WITH = {
    "advise", "autopsy", "blast", "check", "cpu", "drift", "explain", "forecast", "guard run", "node run",
    "place", "rank", "thresholds",
}  # fmt: skip
WITHOUT = {
    "admit": "the API server knows no kubelet",
    "completion": "has nothing to set",
    "demo": "has nothing to set",
    "exporter": "a cluster tells its kubelets",
    "eval": "questions carry their settings",
    "help": "has nothing to set",
    "schema": "has nothing to set",
    "overview": "a cluster tells its kubelets",
    "policy": "policies are about pods, not about kubelets",
    "rehearse": "a scenario carries its kubelets",
    "scenario": "a scenario carries its kubelets",
    "simulate": "a scenario carries its kubelets",
    "snapshot": "a cluster tells its kubelets",
    "webhook": "the API server knows no kubelet",
    "ui": "takes a KubeletConfiguration among its files, and has controls for it",
    **dict.fromkeys(("guard journal", "guard report", "guard status"), "a guard's journal carries its figures"),
    **dict.fromkeys(("node journal", "node status"), "asks a running node"),
}


def _parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command, and of every command of ``node`` and ``guard``."""
    found = {}
    for name, (module, _) in COMMANDS.items():
        parser = argparse.ArgumentParser(name)
        import_module(f"podqos.cli.commands.{module}").add_arguments(parser)
        below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        if name in {"node", "guard"}:
            found.update({f"{name} {each}": below[0].choices[each] for each in below[0].choices})
            found.pop("guard manifests", None)  # its own is the path of a file on nodes
        else:
            found[name] = parser
    return found


PARSERS = _parsers()


def _option(name: str) -> argparse.Action | None:
    return PARSERS[name]._option_string_actions.get("--kubelet-config")


def test_every_command_is_decided_about():
    assert {*WITH, *WITHOUT} == set(PARSERS)


@pytest.mark.parametrize("command", sorted(WITH))
def test_a_command_that_depends_on_a_kubelet_takes_its_configuration(command):
    option, known = _option(command), _option("explain")
    assert option is not None
    assert known is not None
    assert str(option.help).partition(" (default: ")[0] == str(known.help).partition(" (default: ")[0]
    # Beside a running kubelet its own settings are the default.
    assert ("started with" in str(option.help)) == command.startswith("guard")


@pytest.mark.parametrize("command", sorted(WITHOUT))
def test_no_other_command_does(command):
    assert _option(command) is None


@pytest.mark.parametrize(
    ("command", "name"),
    [("node run", "--config"), ("thresholds", "-f")],
)
def test_the_older_spelling_still_means_the_same(command, name):
    assert PARSERS[command]._option_string_actions[name] is _option(command)


# ---- what it changes ---------------------------------------------------------------------------------------------


@pytest.fixture
def kubelet(tmp_path: Path):
    def write(**settings: object) -> str:
        document = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **settings}
        (tmp_path / "kubelet.json").write_text(json.dumps(document))
        return str(tmp_path / "kubelet.json")

    return write


@pytest.fixture
def answer(capsys):
    def of(*arguments: object) -> dict:
        main([*map(str, arguments), "-o", "json"])
        return json.loads(capsys.readouterr().out)

    return of


POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec: {{containers: [{{name: app, image: app, resources: {{requests: {requests}, limits: {limits}}}}}]}}
---
"""


def _pod(name: str, requests: str, limits: str) -> str:
    return POD.format(name=name, requests=requests, limits=limits)


def test_rank_kills_within_what_the_kubelet_leaves_to_pods(answer, kubelet):
    files = ("rank", "-f", PLATFORM, "--usage", USAGE, "--node-memory", "64Gi")
    assert answer(*files)["node"]["oomCgroup"] == "/"
    confined = answer(*files, "--kubelet-config", kubelet(systemReserved={"memory": "8Gi"}))["node"]
    assert (confined["oomCgroup"], confined["oomTotalBytes"]) == ("/kubepods.slice", 56 << 30)


def test_rank_has_an_answer_without_qos_cgroups(answer, kubelet):
    files = ("rank", "-f", PLATFORM, "--usage", USAGE, "--node-memory", "64Gi")
    flat = kubelet(cgroupsPerQOS=False, enforceNodeAllocatable=[], cgroupDriver="systemd")
    assert answer(*files, "--kubelet-config", flat)["node"]["oomCgroup"] == "/"


def test_cpu_gives_a_static_cpu_manager_its_due(answer, kubelet):
    files = ("cpu", "-f", PLATFORM, "--cores", "8")
    shared = {pod["pod"]: pod["grantedMilli"] for pod in answer(*files)["pods"]}
    own = {
        pod["pod"]: pod["grantedMilli"]
        for pod in answer(*files, "--kubelet-config", kubelet(cpuManagerPolicy="static", reservedSystemCPUs="0"))[
            "pods"
        ]
    }
    assert shared["production/article-service-0"] < own["production/article-service-0"] == 2000
    assert own["batch/search-indexer-0"] < shared["batch/search-indexer-0"]


def test_cpu_without_quota_lets_pods_past_their_limits(answer, kubelet, tmp_path):
    (tmp_path / "pod.yaml").write_text(_pod("a", "{cpu: 1}", "{cpu: 1}"))
    files = ("cpu", "-f", tmp_path / "pod.yaml", "--cores", "8")
    assert [pod["grantedMilli"] for pod in answer(*files)["pods"]] == [1000]
    free = answer(*files, "--kubelet-config", kubelet(cpuCFSQuota=False))
    assert [pod["grantedMilli"] for pod in free["pods"]] == [8000]


def test_drift_judges_by_the_limit_of_all_pods(answer, kubelet, tmp_path):
    """Of 64Gi the adjustment outweighs 3Gi in use; of the 8Gi that are left to pods it does not."""
    pods = _pod("small", "{memory: 1Mi}", "{memory: 2Mi}") + _pod("large", "{memory: 4Gi}", "{memory: 8Gi}")
    (tmp_path / "pods.yaml").write_text(pods)
    (tmp_path / "usage.csv").write_text("pod,memory\nsmall,1Mi\nlarge,3Gi\n")
    files = ("drift", tmp_path / "pods.yaml", tmp_path / "pods.yaml", "--usage", tmp_path / "usage.csv")
    config = kubelet(systemReserved={"memory": "56Gi"})

    def first_killed(report: dict) -> str:
        return next(each["name"] for each in report["workloads"] if each["after"]["kernelPlace"] == 1)

    assert first_killed(answer(*files, "--node-memory", "64Gi")) == "small"
    assert first_killed(answer(*files, "--node-memory", "64Gi", "--kubelet-config", config)) == "large"


def test_advise_judges_by_the_limit_of_all_pods(answer, kubelet, tmp_path):
    pods = _pod("small", "{memory: 1Mi}", "{memory: 2Mi}") + _pod("large", "{memory: 4Gi}", "{memory: 8Gi}")
    (tmp_path / "pods.yaml").write_text(pods)
    samples = "".join(
        f"{name},app,{memory}\n" for name, memory in (("small", "1Mi"), ("large", "3Gi")) for _ in range(3)
    )
    (tmp_path / "usage.csv").write_text(f"pod,container,memory\n{samples}")
    files = ("advise", "-f", tmp_path / "pods.yaml", "--usage", tmp_path / "usage.csv", "--node-memory", "64Gi")

    def first_killed(report: dict) -> str:
        return next(each["workload"] for each in report["workloads"] if each["before"]["kernelPlace"] == 1)

    assert first_killed(answer(*files)) == "Pod default/small"
    confined = answer(*files, "--kubelet-config", kubelet(systemReserved={"memory": "56Gi"}))
    assert first_killed(confined) == "Pod default/large"


def test_check_looks_at_the_workloads_and_at_the_file(answer, kubelet, tmp_path):
    (tmp_path / "pod.yaml").write_text(_pod("a", "{cpu: 1500m, memory: 1Gi}", "{cpu: 1500m, memory: 1Gi}"))
    file = kubelet(cpuManagerPolicy="static", evictionHard={})
    found = answer("check", tmp_path / "pod.yaml", "--kubelet-config", file)["items"]
    assert "PQ115" in {each["check"] for each in found if each["source"].endswith("pod.yaml")}
    assert any(each["source"] == file for each in found)


def test_check_says_where_a_setting_is_wrong(capsys, kubelet, tmp_path):
    (tmp_path / "pod.yaml").write_text(_pod("a", "{cpu: 1}", "{cpu: 1}"))
    file = kubelet(cgroupDriver="systemdd")
    assert main(["check", str(tmp_path / "pod.yaml"), "--kubelet-config", file]) == 2
    assert f"{file}:1:" in capsys.readouterr().err


def test_check_refuses_a_file_that_is_no_kubelets(capsys, tmp_path):
    (tmp_path / "pod.yaml").write_text(_pod("a", "{cpu: 1}", "{cpu: 1}"))
    assert main(["check", str(tmp_path / "pod.yaml"), "--kubelet-config", str(tmp_path / "pod.yaml")]) == 2
    assert "contains no kubelet configuration" in capsys.readouterr().err


def test_a_kubelet_is_advised_or_given_but_not_both(capsys, kubelet):
    assert main(["thresholds", "--advise", "--node-cpu", "4", "-f", kubelet()]) == 2
    assert "--advise and " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "-f", str(PLATFORM)],
        ["cpu", "-f", str(PLATFORM)],
        ["rank", "-f", str(PLATFORM), "--usage", str(USAGE)],
        ["thresholds"],
        ["check", str(PLATFORM)],
        ["drift", str(PLATFORM), str(PLATFORM)],
        ["forecast", "-f", str(PLATFORM), "--usage", str(USAGE), "--growing", "log-collector"],
        ["blast", "-f", str(PLATFORM), "--usage", str(USAGE)],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("bad", ["missing", "malformed", "empty"])
def test_a_bad_file_is_one_line_and_exit_code_2(capsys, tmp_path, arguments, bad):
    file = tmp_path / "kubelet.yaml"
    if bad != "missing":
        file.write_text("kind: [" if bad == "malformed" else "")
    assert main([*arguments, "--kubelet-config", str(file)]) == 2
    error = capsys.readouterr().err
    assert "kubelet.yaml" in error
    assert "Traceback" not in error
