"""What the further command lines read: a directory where they run, and what is piped into them.

The directory has ``scenarios`` and ``tests`` of the repository, ``inputs`` from beside this file (a snapshot, logs,
objects), ``configured``, which has settings of its own, and ``bad``: input that has to be refused, or warned about, in
words that help.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from outputs.commands import ROOT

_TESTS = ROOT / "tests"
_POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: bad}}\nspec:\n  containers:\n  - {{name: app, image: app, {}}}\n"
_KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
_SCENARIO = (
    "apiVersion: podqos.dev/v1alpha1\nkind: Scenario\nmetadata: {name: bad}\nspec:\n  duration: 10s\n"
    "  nodes: [{name: node-1, capacity: {cpu: 8, memory: 32Gi}}]\n"
)
_POLICY = "apiVersion: podqos.dev/v1alpha1\nkind: Policy\nmetadata: {name: bad}\nspec:\n"

BAD_MANIFESTS: dict[str, str] = {
    "no-yaml.yaml": "apiVersion: v1\nkind: [Pod\nmetadata:\n",
    "tabs.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: bad\n",
    "no-json.json": '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"',
    "empty.yaml": "",
    "text.yaml": "just a sentence\n",
    "other-kind.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {a: b}\n",
    "no-containers.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: []}\n",
    "spec-is-a-list.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: [1, 2]\n",
    "no-image.yaml": _POD.format("resources: {requests: {memory: 1Gi}}").replace(", image: app", ""),
    "no-quantity.yaml": _POD.format("resources: {requests: {memory: 1GB}}"),
    "negative.yaml": _POD.format('resources: {limits: {memory: "-1Gi"}}'),
    "above-limit.yaml": _POD.format("resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}"),
    "unknown-field.yaml": _POD.format("resource: {requests: {memory: 1Gi}}"),
    "twice-a-key.yaml": _POD.format("resources: {}, resources: {requests: {memory: 1Gi}}"),
    "restart-policy.yaml": _POD.format("resources: {}") + "  restartPolicy: Sometimes\n",
    "no-selector.yaml": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bad}\nspec:\n  replicas: 1\n"
        "  template: {spec: {containers: [{name: app, image: app}]}}\n"
    ),
}
BAD_KUBELETS: dict[str, str] = {
    "kubelet-cgroups.yaml": f"{_KUBELET}cgroupsPerQOS: false\n",
    "kubelet-reserved.yaml": f"{_KUBELET}systemReserved: {{memory: 100Gi}}\n",
    "kubelet-soft.yaml": f"{_KUBELET}evictionSoft: {{memory.available: 1Gi}}\n",
    "kubelet-signal.yaml": f"{_KUBELET}evictionHard: {{memory.avail: 1Gi}}\n",
    "kubelet-amount.yaml": f"{_KUBELET}evictionHard: {{memory.available: much}}\n",
    "kubelet-field.yaml": f"{_KUBELET}evictionHardest: {{memory.available: 1Gi}}\n",
    "kubelet-openshift-3.yaml": "kubeletArguments:\n  eviction-hard: [memory.available<500Mi]\n",
}
BAD_SCENARIOS: dict[str, str] = {
    "scenario-field.yaml": f"{_SCENARIO}  workload: []\n",
    "scenario-duration.yaml": _SCENARIO.replace("10s", "ten"),
    "scenario-manifest.yaml": f"{_SCENARIO}  manifests: [missing.yaml]\n",
    "scenario-pods.yaml": f"{_SCENARIO}  manifests: [restart-policy.yaml]\n",
}
BAD_POLICIES: dict[str, str] = {
    "policy-rule.yaml": f"{_POLICY}  rules: [{{name: a, require: {{minimumClass: Burstable}}, action: Deny}}]\n",
    "policy-action.yaml": f"{_POLICY}  rules: [{{name: a, require: {{minClass: Burstable}}, action: Forbid}}]\n",
}
_CONFIGURED: dict[str, str] = {
    ".podqos.yaml": "inject: [istio]\ndisable: [PQ101]\nfailOn: error\nkinds: {Widget: spec.pod}\n",
    "pod.yaml": _POD.format("resources: {requests: {memory: 1Gi}}"),
    "widget.yaml": (
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: gear}\n"
        "spec: {pod: {containers: [{name: app, image: app}]}}\n"
    ),
}
_OTHERS: dict[str, str] = {
    "usage-amount.csv": "pod,memory\nlog-collector,many\n",
    "usage-column.csv": "name,bytes\nlog-collector,1Gi\n",
    "usage-stranger.csv": "pod,memory\nnobody,1Gi\n",
    "review.json": '{"kind": "Pod"}',
    "quiet.log": "Nov 16 10:00:02 node-1 systemd[1]: Started Session 42 of user root.\n",
}


@contextmanager
def directory() -> Iterator[Path]:
    """Make the directory, for as long as it is used."""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made)
        for name in ("scenarios", "tests"):
            (path / name).symlink_to(ROOT / name)
        (path / "inputs").symlink_to(Path(__file__).with_name("inputs"))
        (path / "bad").mkdir()
        (path / "configured").mkdir()
        for name, text in _CONFIGURED.items():
            (path / "configured" / name).write_text(text)
        for texts in (BAD_MANIFESTS, BAD_KUBELETS, BAD_SCENARIOS, BAD_POLICIES, _OTHERS):
            for name, text in texts.items():
                (path / "bad" / name).write_text(text)
        whole = (path / "inputs" / "cluster.jsonl").read_bytes()
        (path / "bad" / "cut.jsonl").write_bytes(whole[: len(whole) // 2])
        yield path


def piped(name: str) -> bytes:
    """Return what is piped in: ``ooms/…``, ``evictions/…``, ``conformance/…``, ``review/…``, by the file it is from."""
    kind, _, of = name.partition("/")
    return _PIPED[kind](of)


def _ooms(kernel: str) -> bytes:
    """Return the log of a kernel that killed again and again."""
    with gzip.open(_TESTS / f"kernel/ooms/{kernel}.jsonl.gz") as file:
        return "".join(f"{line}\n" for row in file for line in json.loads(row)["log"]).encode()


def _evictions(run: str) -> bytes:
    """Return the log of a kubelet that evicted."""
    with gzip.open(_TESTS / f"recordings/kubelet/{run}/run.json.gz") as file:
        return "".join(f"{line}\n" for line in json.loads(file.read())["log"]).encode()


def _conformance(family: str) -> bytes:
    """Return a few questions of a family."""
    first, step = (1300, 40) if family == "admission_wide" else (100, 20)
    with gzip.open(_TESTS / f"conformance/{family}.jsonl.gz") as file:
        return b"".join(islice(file, 0, first, step))


def _review(number: str) -> bytes:
    """Return a review as an API server sent it."""
    with gzip.open(_TESTS / "recordings/admission_reviews.jsonl.gz") as file:
        return json.dumps(json.loads(next(islice(file, int(number), None)))["review"]).encode()


_PIPED: dict[str, Callable[[str], bytes]] = {
    "ooms": _ooms,
    "evictions": _evictions,
    "conformance": _conformance,
    "review": _review,
    "text": lambda text: text.encode(),
}
