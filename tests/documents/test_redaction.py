"""What docs/how-to/redact.md says that outputs never contain, looked for in them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from documents.test_commands import PAGE_OF_A_RUN
from documents.world import podqos

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: secret-workload
  namespace: secret-namespace
  labels: {secret-label-key: secret-label-value}
  annotations: {secret-annotation-key: secret-annotation-value}
spec:
  selector: {matchLabels: {app: secret-label-value}}
  template:
    metadata: {labels: {app: secret-label-value}}
    spec:
      containers:
        - name: secret-container
          image: registry.example.com/secret-image:1
          command: [secret-command]
          args: [secret-argument]
          env: [{name: SECRET_ENV, value: secret-env-value}]
          resources: {requests: {memory: 128Mi}, limits: {memory: 256Mi}}
# secret-comment
"""
SHOWN = {"secret-workload", "secret-namespace", "secret-container"}
HIDDEN = {
    "secret-label-key",
    "secret-label-value",
    "secret-annotation-key",
    "secret-annotation-value",
    "secret-image",
    "secret-command",
    "secret-argument",
    "SECRET_ENV",
    "secret-env-value",
    "secret-comment",
}


@pytest.mark.parametrize(
    "words",
    [
        *(
            pytest.param((command, "pod.yaml", "-o", "json"), id=command)
            for command in ("explain", "check", "rank", "blast", "cpu")
        ),
        pytest.param(("check", "pod.yaml", "-o", "sarif"), id="sarif"),
        pytest.param(
            ("ui", "pod.yaml", "--html", "page.html"),
            id="page",
            marks=pytest.mark.skipif(not PAGE_OF_A_RUN.exists(), reason="needs the page that npm builds"),
        ),
    ],
)
def test_outputs_have_names_and_nothing_else_that_could_be_secret(tmp_path, words):
    with contextlib.chdir(tmp_path):
        Path("pod.yaml").write_text(MANIFEST)
        ran = podqos([*words])
        assert ran.code in {0, 1}, ran.err
        out = Path("page.html").read_text() if "page.html" in words else ran.out
    assert {word for word in HIDDEN if word in out} == set()
    assert any(word in out for word in SHOWN)
