"""No document takes the others down: whatever its kind and however broken it is, the rest is still judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from podqos.cli import main as program
from podqos.cli.main import EXIT_BAD_INPUT, EXIT_HOST, EXIT_INTERNAL, main

BYSTANDER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: bystander}
spec:
  selector: {matchLabels: {app: bystander}}
  template:
    metadata: {labels: {app: bystander}}
    spec: {containers: [{name: main, image: i}]}
"""
POD = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": "64Mi"}}}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
KINDS = {
    "v1 Pod": {"spec": POD},
    "apps/v1 Deployment": {"spec": {"replicas": 2, "template": TEMPLATE}},
    "v1 Service": {"spec": {"selector": {"a": "b"}, "ports": [{"name": "http", "port": 80}]}},
    "networking.k8s.io/v1 Ingress": {
        "spec": {"rules": [{"host": "h", "http": {"paths": [{"backend": {"service": {"name": "x"}}}]}}]}
    },
    "gateway.networking.k8s.io/v1 HTTPRoute": {"spec": {"rules": [{"backendRefs": [{"name": "x", "port": 80}]}]}},
    "gateway.networking.k8s.io/v1 Gateway": {"spec": {"listeners": [{"name": "x", "port": 80}]}},
    "policy/v1 PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
    "autoscaling/v2 HorizontalPodAutoscaler": {
        "spec": {
            "scaleTargetRef": REFERENCE,
            "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": {"averageUtilization": 80}}}],
        }
    },
    "autoscaling.k8s.io/v1 VerticalPodAutoscaler": {
        "spec": {"targetRef": REFERENCE, "resourcePolicy": {"containerPolicies": [{"minAllowed": {"cpu": "1"}}]}}
    },
    "v1 LimitRange": {"spec": {"limits": [{"type": "Container", "default": {"memory": "1Gi"}}]}},
    "v1 ResourceQuota": {"spec": {"hard": {"requests.memory": "1Gi"}, "scopes": ["BestEffort"]}},
    "scheduling.k8s.io/v1 PriorityClass": {"value": 5, "globalDefault": True},
    "node.k8s.io/v1 RuntimeClass": {"handler": "x", "overhead": {"podFixed": {"memory": "1Mi"}}},
    "v1 Node": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "status": {"capacity": {"memory": "1Gi"}}},
    "v1 Namespace": {"spec": {"finalizers": ["x"]}},
    "v1 ConfigMap": {"data": {"a": "b"}},
    "kubelet.config.k8s.io/v1beta1 KubeletConfiguration": {
        "evictionHard": {"memory.available": "500Mi"},
        "enforceNodeAllocatable": ["pods"],
        "maxPods": 3,
    },
    "podqos.dev/v1alpha1 Policy": {"spec": {"rules": [{"name": "r", "require": {"class": "Guaranteed"}}]}},
    "argoproj.io/v1alpha1 Rollout": {"spec": {"replicas": 2, "template": TEMPLATE}},
    "example.com/v1 Widget": {"spec": {"template": TEMPLATE}},
    "kustomize.config.k8s.io/v1beta1 Kustomization": {"patches": [{"target": {"kind": "Deployment"}}]},
    "operator.openshift.io/v1 ClusterResourceOverride": {
        "spec": {"podResourceOverride": {"spec": {"memoryRequestToLimitPercent": 50}}}
    },
}
VALUES = ["*.example.com", "{{ .Values.host }}", "[{}]", "{a: []}", "-1e999", "~", "2026-01-01", '"\\q"']


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def broken(head: str, rest: dict) -> Iterator[str]:
    """Yield a document with each of its lines spoilt in turn."""
    api_version, kind = head.split()
    value = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **rest}
    lines = yaml.safe_dump(value, sort_keys=False).splitlines()
    for number in range(2, len(lines)):
        key, colon, _ = lines[number].partition(":")
        for spoilt in VALUES:
            line = f"{key}{colon} {spoilt}" if colon else f"{key.split('-')[0]}- {spoilt}"
            yield "\n".join([*lines[:number], line, *lines[number + 1 :]]) + "\n"
        yield "\n".join(lines[:number]) + "\n" + lines[number][:-1]


@pytest.mark.parametrize("head", KINDS)
def test_however_broken_a_document_is_the_others_are_judged(capsys, head):
    for number, text in enumerate(broken(head, KINDS[head])):
        folder = Path(f"tree/{number}")
        folder.mkdir(parents=True)
        (folder / "object.yaml").write_text(text)
    Path("tree/bystander.yaml").write_text(BYSTANDER)
    code = main(["check", "tree"])
    out, err = capsys.readouterr()
    assert code != EXIT_INTERNAL, err
    assert "Deployment default/bystander" in out


BROKEN = {
    "flow": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: [\n",
    "tab": "apiVersion: v1\nkind: Secret\nmetadata:\n\tname: a\n",
    "template": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Values.name }}\n",
    "indentation": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  a: b\n c: d\n",
    "quote": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: 'a}\n",
}


@pytest.mark.parametrize("command", ["check", "explain"])
@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_whatever_kubectl_cannot_read_is_an_error_though_it_holds_no_pods(capsys, text, command):
    Path("manifests").mkdir()
    Path("manifests/web.yaml").write_text(BYSTANDER)
    Path("manifests/other.yaml").write_text(f"{BYSTANDER.replace('bystander', 'beside')}---\n{text}")
    assert main([command, "-f", "manifests"]) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert "bystander" in out
    assert "beside" in out
    assert "manifests/other.yaml:" in err


def test_a_key_that_is_set_twice_in_a_config_map_is_a_warning_as_anywhere(capsys):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b, a: c}\n"
    Path("web.yaml").write_text(f"{BYSTANDER}---\n{text}")
    assert main(["check", "-f", "web.yaml"]) == 1
    assert 'warning: key "a" is set twice' in capsys.readouterr().err


def test_an_ingress_that_cannot_be_parsed_is_an_error_at_its_line(capsys):
    ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec:\n  rules:\n  - host: *.example.com\n"
    Path("shop.yaml").write_text(f"{ingress}---\n{BYSTANDER}")
    code = main(["check", "shop.yaml"])
    out, err = capsys.readouterr()
    assert code == EXIT_BAD_INPUT
    assert "Deployment default/bystander" in out
    assert "shop.yaml:5:12: error: broken YAML: " in err


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_kind_that_is_said_to_hold_pods_may_be_broken_too(capsys, command):
    Path(".podqos.yaml").write_text("kinds: {ConfigMap: spec.template}\n")
    Path("shop.yaml").write_text(f"apiVersion: v1\nkind: ConfigMap\nspec: {{\n---\n{BYSTANDER}")
    code = main([command, "shop.yaml"])
    out, err = capsys.readouterr()
    assert code == EXIT_BAD_INPUT
    assert "bystander" in out
    assert "shop.yaml:4:1: error: broken YAML: " in err


# ---- what nobody thought of ----------------------------------------------------------------------------------------


@pytest.fixture
def failing(monkeypatch):
    """Make every command fail in the same way."""

    def fail_with(error: BaseException) -> None:
        def failing(_program: str, _arguments: list[str]) -> int:
            raise error

        monkeypatch.setattr(program, "_run", failing)

    return fail_with


def test_an_internal_error_is_not_taken_for_findings_and_asks_for_a_report_in_one_line(capsys, failing):
    failing(KeyError("two\nlines"))
    assert main(["check", "."]) == EXIT_INTERNAL == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("podqos: internal error: KeyError at test_broken_documents.py:")
    assert "Please report it at https://podqos.dev, with `podqos --version` and what the same command prints" in err
    assert err.count("\n") == 1


def test_the_traceback_of_an_internal_error_is_printed_on_request(capsys, failing, monkeypatch):
    monkeypatch.setenv("PODQOS_TRACEBACK", "1")
    failing(AssertionError())
    assert main(["check", "."]) == EXIT_INTERNAL
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.splitlines()[-1].startswith("podqos: internal error: AssertionError at test_broken_documents.py:")


def test_too_little_memory_is_the_hosts_fault(capsys, failing):
    failing(MemoryError())
    assert main(["check", "."]) == EXIT_HOST
    assert capsys.readouterr().err == "podqos: error: out of memory\n"


def test_the_exit_code_of_an_internal_error_is_documented():
    root = Path(__file__).resolve().parents[2]
    assert ", 70 a bug in podqos, " in (root / "README.md").read_text()
    assert "\n| 70 | an internal error" in (root / "docs/how-to/ci-gate.md").read_text()
