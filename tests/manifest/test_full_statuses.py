"""Pods that an API server keeps, with their full status."""

from __future__ import annotations

import pytest

from podqos.manifest.reading import read
from podqos.model.pod_fate import FatedPod

POD = """\
- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      note: |
        items:
        - apiVersion: v1
    name: web-{number}
    namespace: shop
    uid: uid-{number}
  spec:
    containers:
    - name: app
      resources:
        limits:
          memory: {limit}
  status:
    containerStatuses:
    - lastState:
        terminated:
          exitCode: {code}
          reason: OOMKilled
      name: app
    phase: Running
"""


def pods(count: int, **values: object) -> str:
    known = {"limit": "64Mi", "code": 137, **values}
    return "".join(POD.format(number=number, **known) for number in range(count))


def listed(items: str, rest: str = "kind: List\n") -> bytes:
    return f"apiVersion: v1\nitems:\n{items}{rest}".encode()


@pytest.mark.parametrize("notation", ["yaml", "json"])
def test_pods_have_their_full_status_where_it_is_asked_for_and_in_order(notation: str):
    text = listed(pods(1)) if notation == "yaml" else JSON
    (workload,) = read("f", text, full_statuses=True).workloads
    (plain,) = read("f", text).workloads
    assert isinstance(workload.pod, FatedPod)
    assert workload.pod.status.container_statuses[0].last_state.terminated.exit_code == 137
    assert type(plain.pod) is not FatedPod
    (broken,) = read("f", text.replace(b"137", b'"137"'), full_statuses=True).workloads
    assert type(broken.pod) is not FatedPod
    assert broken.pod == plain.pod


JSON = b"""{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "web-0", "namespace": "shop", "uid": "uid-0"}, "spec": {"containers": [{"name": "app"}]},
  "status": {"containerStatuses": [{"name": "app", "lastState": {"terminated": {"exitCode": 137}}}]}}]}"""
