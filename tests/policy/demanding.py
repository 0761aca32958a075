"""Policies and subjects for tests, from little text."""

from __future__ import annotations

import yaml

from podqos.admission.defaulting import defaulted
from podqos.manifest.decode import convert_pod
from podqos.model.pod import ObjectMeta, Pod, Workload
from podqos.policy.model import Policy
from podqos.policy.reading import read_policy
from podqos.policy.subject import Subject


def policy(spec: str, name: str = "shop") -> Policy:
    """Return the policy with this spec, in YAML."""
    head = {"apiVersion": "podqos.dev/v1alpha1", "kind": "Policy", "metadata": {"name": name}}
    reading = read_policy({**head, "spec": yaml.safe_load(spec)})
    assert reading.policy is not None, reading.findings
    return reading.policy


def rule(require: str, match: str = "{}", more: str = "") -> Policy:
    """Return a policy with one rule that denies."""
    return policy(f"{{rules: [{{name: rule, match: {match}, require: {require}, action: Deny}}]{more}}}")


def pod(spec: str, metadata: str = "{name: web, namespace: shop}") -> Pod:
    """Return a pod."""
    return convert_pod({"metadata": yaml.safe_load(metadata), "spec": yaml.safe_load(spec)})


def container(resources: str = "{}", name: str = "web") -> str:
    """Return a container."""
    return f"{{name: {name}, image: {name}, resources: {resources}}}"


def one(resources: str = "{}") -> Pod:
    """Return a pod with one container."""
    return pod(f"containers: [{container(resources)}]")


def subject_of(
    given: Pod, namespace: ObjectMeta | None = None, priority: int | None = 0, user: str = "", *groups: str
) -> Subject:
    """Return a pod to judge."""
    workload = Workload("Pod", given.metadata, given)
    return Subject(workload, defaulted(given), priority, namespace or ObjectMeta(), user, groups)


def template_of(given: Pod, kind: str = "Deployment", metadata: ObjectMeta | None = None) -> Subject:
    """Return an object to judge whose template is a pod."""
    metadata = metadata or ObjectMeta(given.metadata.name, given.metadata.namespace)
    return Subject(Workload(kind, metadata, given, "spec.template"), defaulted(given), 0)
