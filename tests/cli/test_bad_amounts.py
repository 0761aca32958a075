"""Forty and some manifests with bad units and sizes: the fix a person would write, or what they would ask first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Struct

from podqos.cli.main import main

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: web
      resources:
        requests: {REQUESTS}
        limits: {LIMITS}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      initContainers:
        - name: migrate
          image: migrate
          resources: {limits: {INIT}}
      containers:
        - name: app
          image: app
          resources:
            requests: {cpu: 500m, memory: 1Gi}
            limits: {cpu: 500m, memory: 1Gi, ephemeral-storage: 1Gi}
        - name: proxy
          image: proxy
          resources:
            requests: {PROXY}
            limits: {ephemeral-storage: 1Gi}
"""
CRON_JOB = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: report
              image: report
              resources:
                requests:
                  cpu: CPU  # half a core is enough
                  memory: MEMORY
"""
VOLUME = """\
apiVersion: v1
kind: Pod
metadata: {name: cache}
spec:
  containers:
    - name: cache
      image: cache
      resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {memory: 1Gi, ephemeral-storage: 1Gi}}
  volumes:
    - name: tmp
      emptyDir: {SIZE}
"""
OF_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: whole}
spec:
  resources:
    requests: {REQUESTS}
    limits: {LIMITS}
  containers:
    - {name: a, image: a}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: node-1}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
"""
LIMIT_RANGE = """\
apiVersion: v1
kind: LimitRange
metadata: {name: bounds, namespace: default}
spec: {limits: [{type: Container, RULE}]}
"""


KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
systemReserved: {RESERVED}
evictionHard: {memory.available: THRESHOLD, nodefs.available: 10%}
"""
ARGUMENTS = """\
apiVersion: v1
kind: NodeConfig
kubeletArguments:
  system-reserved: ["cpu=500M,memory=1Gi"]
  eviction-hard: ["memory.available<1Gi"]
"""


class Case(Struct, frozen=True):
    """A manifest, the lines a person would write instead, or what podqos has to say where it cannot know."""

    text: str
    fixes: tuple[tuple[str, str], ...] = ()
    """Each text that is replaced, with what replaces it; none: the file stays as it is."""
    says: str = ""
    """Of what stays: among the reasons, the fixes and the errors."""
    beside: str = ""
    """What lies in the same directory."""


def pod(requests: str, limits: str, *fixes: tuple[str, str], says: str = "", beside: str = "") -> Case:
    return Case(POD.replace("REQUESTS", requests).replace("LIMITS", limits), fixes, says, beside)


CASES = {
    # thousandths, millions and mebibytes of cores
    "cpu-500M": pod("cpu: 500M, memory: 1Gi", "memory: 1Gi", ("500M", "500m")),
    "cpu-both-sides": pod("cpu: 250M, memory: 1Gi", "cpu: 1000M, memory: 1Gi", ("250M", "250m"), ("1000M", "1000m")),
    "cpu-100Mi": pod("cpu: 100Mi, memory: 1Gi", "memory: 1Gi", ("100Mi", "100m")),
    "cpu-1500M": pod("cpu: 1500M, memory: 1Gi", "memory: 1Gi", ("1500M", "1500m")),
    "cpu-limit-only": pod("cpu: 500m, memory: 1Gi", "cpu: 900M, memory: 1Gi", ("900M", "900m")),
    "cpu-500": pod("cpu: 500, memory: 1Gi", "memory: 1Gi", says="500m was probably meant"),
    "cpu-1000": pod("cpu: 1000, memory: 1Gi", "memory: 1Gi", says="1000m was probably meant"),
    "cpu-50-beside-64Mi": pod("cpu: 50, memory: 64Mi", "memory: 64Mi", says="50m was probably meant"),
    "cpu-2Gi": pod("cpu: 2Gi, memory: 1Gi", "memory: 1Gi", says="2 was probably meant"),
    "cpu-500000m": pod("cpu: 500000m, memory: 1Gi", "memory: 1Gi", says="500m was probably meant"),
    "cpu-250MI": pod("cpu: 250MI, memory: 1Gi", "memory: 1Gi", says="did you mean 250m?"),
    "cpu-half-a-millicore": pod("cpu: 0.5m, memory: 1Gi", "memory: 1Gi", says="500m was probably meant"),
    "cpu-no-node-has": pod("cpu: 300, memory: 1Gi", "memory: 1Gi", says="300m was probably meant", beside=NODE),
    # memory
    "memory-512m": pod("cpu: 1, memory: 512m", "memory: 512m", ("memory: 512m", "memory: 512Mi")),
    "memory-request-512m": pod("cpu: 1, memory: 512m", "memory: 1Gi", ("512m", "512Mi")),
    "memory-limit-512m": pod("cpu: 1, memory: 256Mi", "memory: 512m", ("512m", "512Mi")),
    "memory-512": pod("cpu: 1, memory: 512", "memory: 512", ("memory: 512", "memory: 512Mi")),
    "memory-2048": pod("cpu: 1, memory: 1024", "memory: 2048", ("1024", "1024Mi"), ("2048", "2048Mi")),
    "memory-4": pod("cpu: 1, memory: 4", "memory: 4", says="4Mi or 4Gi was probably meant"),
    "memory-1g": pod("cpu: 1, memory: 1g", "memory: 1g", says="did you mean 1Gi or 1G?"),
    "memory-512mb": pod("cpu: 1, memory: 512mb", "memory: 512mb", says="did you mean 512Mi or 512M?"),
    "memory-1.5": pod("cpu: 1, memory: 1.5", "memory: 1.5", says="1.5Gi was probably meant"),
    "memory-2m": pod("cpu: 1, memory: 2m", "memory: 2m", says="2Mi or 2Gi was probably meant"),
    "memory-64Ti": pod("cpu: 1, memory: 64Ti", "memory: 64Ti", says="64Gi or 64Mi was probably meant"),
    "memory-bytes-with-m": pod(
        "cpu: 1, memory: 1073741824m", "memory: 1073741824m", says="1073741824 was probably meant"
    ),
    "memory-no-node-has": pod("cpu: 1, memory: 16384", "memory: 16384", says="too little for a container", beside=NODE),
    # both at once, and swapped
    "cpu-and-memory": pod(
        "cpu: 250M, memory: 128m", "cpu: 1, memory: 128m", ("250M", "250m"), ("memory: 128m", "memory: 128Mi")
    ),
    "swapped": pod("cpu: 512Mi, memory: 500m", "cpu: 512Mi, memory: 500m", says="512m was probably meant"),
    # sizes
    "request-above-limit": pod("cpu: 1, memory: 2Gi", "memory: 1Gi", ("{memory: 1Gi}", "{memory: 2Gi}")),
    "512Mi-above-500M": pod("cpu: 1, memory: 512Mi", "memory: 500M", ("500M", "512Mi")),
    "request-above-limit-and-nodes": pod(
        "cpu: 1, memory: 16Gi", "memory: 1Gi", says="no node has 16Gi of memory", beside=NODE
    ),
    "limit-above-a-limit-range": pod(
        "cpu: 1, memory: 4Gi",
        "memory: 4Gi",
        says="web may use 4Gi of memory now, and there is no evidence that 2Gi is enough",
        beside=LIMIT_RANGE.replace("RULE", "max: {memory: 2Gi}"),
    ),
    "zero": pod("cpu: 0, memory: 1Gi", "cpu: 0, memory: 1Gi", ("{cpu: 0, memory", "{memory")),
    # other places than a pod's containers
    "init-container": Case(
        DEPLOYMENT.replace("INIT", "cpu: 200M, memory: 64Mi").replace("PROXY", "cpu: 50m"),
        (("cpu: 200M", "cpu: 200m"),),
    ),
    "cron-job": Case(
        CRON_JOB.replace("CPU", "500M").replace("MEMORY", "256m"), (("cpu: 500M", "cpu: 500m"), ("256m", "256Mi"))
    ),
    "limit-range": Case(
        LIMIT_RANGE.replace(
            "RULE", "default: {cpu: 500M, memory: 512m}, defaultRequest: {memory: 256m}, max: {cpu: 1}"
        ),
        (("500M", "500m"), ("512m", "512Mi"), ("256m", "256Mi")),
    ),
    "limit-range-of-4": Case(LIMIT_RANGE.replace("RULE", "default: {memory: 4}"), says="4Mi or 4Gi was probably meant"),
    "limit-range-below-its-request": Case(
        LIMIT_RANGE.replace("RULE", "default: {memory: 512m}, defaultRequest: {memory: 1Gi}"),
        says="512Mi was probably meant",
    ),
    "kubelet": Case(
        KUBELET.replace("RESERVED", "cpu: 500M, memory: 512m").replace("THRESHOLD", "1Gi"),
        (("500M", "500m"), ("512m", "512Mi")),
    ),
    "kubelet-threshold": Case(
        KUBELET.replace("RESERVED", "memory: 1Gi").replace("THRESHOLD", "900m"), (("900m", "900Mi"),)
    ),
    "kubelet-reserves-4": Case(
        KUBELET.replace("RESERVED", 'memory: "4"').replace("THRESHOLD", "1Gi"), says="4Mi or 4Gi was probably meant"
    ),
    "kubelet-flags": Case(ARGUMENTS, (("500M", "500m"),)),
    "volume": Case(VOLUME.replace("SIZE", "sizeLimit: 512m"), (("512m", "512Mi"),)),
    "volume-of-2": Case(VOLUME.replace("SIZE", "sizeLimit: 2"), says="2Mi or 2Gi was probably meant"),
    "of-the-pod": Case(
        OF_POD.replace("REQUESTS", "cpu: 500M, memory: 1Gi").replace("LIMITS", "cpu: 1, memory: 1Gi"),
        (("500M", "500m"),),
    ),
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, case in CASES.items():
        folder = tmp_path / "bad" / name
        folder.mkdir(parents=True)
        (folder / "it.yaml").write_text(case.text)
        if case.beside:
            (folder / "beside.yaml").write_text(case.beside)


def texts() -> dict[str, str]:
    return {name: Path("bad", name, "it.yaml").read_text() for name in CASES}


def expected(case: Case) -> str:
    text = case.text
    for old, new in case.fixes:
        assert old in text
        text = text.replace(old, new)
    return text


def test_manifests_are_fixed_as_a_person_would_fix_them_or_left_alone_with_the_likely_readings(capsys):
    assert len(CASES) >= 40
    main(["check", "--fix", "bad"])
    fixed = texts()
    for name, case in CASES.items():
        assert fixed[name] == expected(case), name
    main(["check", "--fix", "bad"])
    assert texts() == fixed
    capsys.readouterr()
    main(["check", "-o", "json", "bad"])
    out, err = capsys.readouterr()
    items = json.loads(out)["items"]
    for name, case in CASES.items():
        of_case = [item for item in items if item["source"] == f"bad/{name}/it.yaml"]
        lines = [line for line in err.splitlines() if line.startswith(f"bad/{name}/it.yaml:")]
        said = [*lines, *(f"{item['reason']}; {item['patch']['refuted']}" for item in of_case)]
        errors = [item for item in of_case if item["severity"] == "error"]
        assert not any(item["patch"]["isComplete"] and not item["patch"]["onRequest"] for item in of_case), name
        if case.says:
            assert any(case.says in each for each in said), (name, said)
            assert errors or lines, name
        else:
            assert not errors, name
