"""AdmissionReviews as an API server sends them, made for a test."""

from __future__ import annotations

import json

GROUPS = {
    "Pod": "",
    "Deployment": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "ReplicaSet": "apps",
    "Job": "batch",
    "CronJob": "batch",
}
AMOUNTS = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
LOOSE = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}


def container(name="main", resources=AMOUNTS):
    return {"name": name, "image": "registry.example.com/app:1", "resources": resources}


def pod(*containers, labels=None, annotations=None, name="web", **spec):
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {"managedFields": [{"manager": "kubectl"}]},
        "spec": {"containers": list(containers) or [container()], "priority": 0, **spec},
        "status": {},
    }


def deployment(*containers, labels=None, template_labels=None, replicas=1, **metadata):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": labels or {}, "managedFields": [{"manager": "kubectl"}], **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"} | (template_labels or {})},
                "spec": {"containers": list(containers) or [container()]},
            },
        },
    }


def review(thing, operation="CREATE", *, uid="u-1", old=None, namespace="shop", sub_resource="", **request):
    kind = (thing or old)["kind"]
    if thing and "metadata" in thing:
        thing = thing | {"metadata": {"namespace": namespace} | thing["metadata"]}
    body = {
        "uid": uid,
        "kind": {"group": GROUPS.get(kind, ""), "version": "v1", "kind": kind},
        "resource": {"group": GROUPS.get(kind, ""), "version": "v1", "resource": f"{kind.lower()}s"},
        "namespace": namespace,
        "operation": operation,
        "userInfo": {"username": "alice", "groups": ["developers"]},
        "object": thing,
        "oldObject": old,
        "dryRun": False,
        **request,
    }
    if sub_resource:
        body["subResource"] = sub_resource
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": body}).encode()


def policy(*rules, exemptions=()):
    return {
        "apiVersion": "podqos.dev/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "shop"},
        "spec": {"rules": list(rules), "exemptions": list(exemptions)},
    }


GUARANTEED = {"name": "guaranteed", "require": {"minClass": "Guaranteed"}, "action": "Deny"}
