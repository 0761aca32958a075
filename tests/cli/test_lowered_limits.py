"""A memory limit that is lowered below measured usage is no harmless resize, whichever command is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.cli.main import main

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
"""
REQUESTS = "requests: {cpu: 100m, memory: 64Mi}"


def container(limit: str | None, name: str = "app", more: str = "") -> str:
    limits = "" if limit is None else f", limits: {{memory: {limit}}}"
    return f"{{name: {name}, image: i, {more}resources: {{{REQUESTS}{limits}}}}}"


def spec(*containers: str, more: str = "", head: str = POD) -> str:
    indent = head.rpartition("spec:")[0].rpartition("\n")[2]
    return f"{head}{indent}  containers: [{', '.join(containers)}]\n" + (f"{indent}  {more}\n" if more else "")


def pod_level(limit: str) -> str:
    resources = f"resources: {{requests: {{memory: 128Mi}}, limits: {{memory: {limit}}}}}"
    return spec(container(None), container(None, "log"), more=resources)


def sidecar(limit: str) -> str:
    proxy = container(limit, "proxy", "restartPolicy: Always, ")
    return spec(container("1Gi"), more=f"initContainers: [{proxy}]")


RESTARTS = "resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}], "
TWO = "pod,container,memory\nweb,app,300Mi\nweb,log,300Mi\n"
ONE = "pod,memory\nweb,900Mi\n"
WORSE = {
    "lowered below usage": (spec(container("1Gi")), spec(container("512Mi")), ONE, "app uses 900Mi"),
    "lowered to usage": (spec(container("1Gi")), spec(container("900Mi")), ONE, "app uses 900Mi"),
    "a first limit below usage": (spec(container(None)), spec(container("512Mi")), ONE, "app uses 900Mi"),
    "one of several containers": (
        spec(container("1Gi"), container("1Gi", "log")),
        spec(container("1Gi"), container("256Mi", "log")),
        TWO,
        "log uses 300Mi",
    ),
    "of the pod": (pod_level("1Gi"), pod_level("512Mi"), TWO, "the pod's containers use 600Mi"),
    "a sidecar's": (sidecar("1Gi"), sidecar("256Mi"), "pod,container,memory\nweb,proxy,300Mi\n", "proxy uses 300Mi"),
    "one pod of a Deployment": (
        spec(container("1Gi"), head=DEPLOYMENT),
        spec(container("512Mi"), head=DEPLOYMENT),
        "pod,memory\nweb-a,100Mi\nweb-b,900Mi\nweb-c,100Mi\n",
        "app uses 900Mi",
    ),
    "a container that restarts for it": (
        spec(container("1Gi", more=RESTARTS)),
        spec(container("512Mi", more=RESTARTS)),
        ONE,
        "app uses 900Mi",
    ),
    "a renamed container": (spec(container("1Gi")), spec(container("512Mi", "main")), ONE, "main uses 900Mi"),
}
HARMLESS = {
    "just above usage": (spec(container("1Gi")), spec(container("901Mi")), ONE),
    "raised": (spec(container("1Gi")), spec(container("2Gi")), ONE),
    "only the request": (spec(container("1Gi")), spec(container("1Gi")).replace("memory: 64Mi", "memory: 32Mi"), ONE),
    "of the pod, above usage": (pod_level("1Gi"), pod_level("700Mi"), TWO),
    "usage is not known": (spec(container("1Gi")), spec(container("65Mi")), "pod,disk\nweb,1Gi\n"),
}


@pytest.fixture
def commands(tmp_path: Path, monkeypatch, capsys):
    """Return a function that asks drift and check about one change, and returns exit code and output of each."""
    monkeypatch.chdir(tmp_path)

    def run(old: str, new: str, usage: str) -> list[tuple[int, str]]:
        for name, text in (("old.yaml", old), ("new.yaml", new), ("usage.csv", usage)):
            Path(name).write_text(text)
        lines = (
            ("drift", "old.yaml", "new.yaml"),
            ("check", "-f", "old.yaml", "--resize", "new.yaml", "--only", "PQ113"),
        )
        return [(main([*line, "--usage", "usage.csv"]), capsys.readouterr().out) for line in lines]

    return run


@pytest.mark.parametrize(("old", "new", "usage", "said"), WORSE.values(), ids=WORSE)
def test_a_limit_below_usage_is_worse_off(commands, old, new, usage, said):
    for code, out in commands(old, new, usage):
        assert code == 1, out
        assert f"{said}, not less than the new memory limit" in " ".join(out.split())
        assert "can be resized in place, without" not in out


@pytest.mark.parametrize(("old", "new", "usage"), HARMLESS.values(), ids=HARMLESS)
def test_any_other_limit_is_not(commands, old, new, usage):
    for code, out in commands(old, new, usage):
        assert code == 0, out
        assert "not less than the new memory limit" not in out


def test_the_resize_itself_is_said_to_be_refused(commands):
    (_, out), _ = commands(spec(container("1Gi")), spec(container("512Mi")), ONE)
    assert "running pods are not resized in place: the kubelet sets no memory limit below current usage" in out
    assert out.startswith("1 workload is worse off. Of 1 compared: 1 with a memory limit below usage.")


def test_without_usage_check_says_what_it_rests_on(commands, capsys):
    commands(spec(container("1Gi")), spec(container("512Mi")), ONE)
    assert main(["check", "-f", "old.yaml", "--resize", "new.yaml", "--only", "PQ113"]) == 0
    assert "usage of resized pods: below their new memory limits (--usage)" in capsys.readouterr().err
    assert main(["check", "-f", "old.yaml", "--usage", "usage.csv"]) == 2
    assert "--usage: only a resize is compared with usage" in capsys.readouterr().err
