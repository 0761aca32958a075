"""Strict decoding: what the API server cannot read it refuses before anything else (400).

``fieldValidation=Strict``, kubectl's default, refuses fields that do not exist. ``resource:`` for ``resources:`` would
otherwise make a pod BestEffort without a word. Field names are checked where podqos reads; the insides of volumes,
probes and the like are taken as they are.

Source: Kubernetes v1.36 staging/src/k8s.io/api/core/v1/types.go (field names).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from podqos.admission.refusal import Code, Refusal
from podqos.errors import InvalidQuantity
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity

# The kinds whose field names are checked, and the names.
_FIELD_NAMES = {
    "Pod": "apiVersion kind metadata spec status",
    "ObjectMeta": """
        annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation
        labels managedFields name namespace ownerReferences resourceVersion selfLink uid""",
    "PodSpec": """
        activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks
        ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride
        imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName
        readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates
        schedulingGroup securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace
        subdomain terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes""",
    "Container": """
        args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy
        resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath
        terminationMessagePolicy tty volumeDevices volumeMounts workingDir""",
    "ResourceRequirements": "claims limits requests",
    "ResourceClaim": "name request",
    "Toleration": "effect key operator tolerationSeconds value",
}
_FIELD_NAMES["EphemeralContainer"] = f"{_FIELD_NAMES['Container']} targetContainerName"
_FIELDS = {kind: frozenset(names.split()) for kind, names in _FIELD_NAMES.items()}
# (kind, field) → the kind of what the field holds
_CHILDREN = {
    ("Pod", "metadata"): "ObjectMeta",
    ("Pod", "spec"): "PodSpec",
    ("PodSpec", "containers"): "Container",
    ("PodSpec", "initContainers"): "Container",
    ("PodSpec", "ephemeralContainers"): "EphemeralContainer",
    ("PodSpec", "resources"): "ResourceRequirements",
    ("PodSpec", "tolerations"): "Toleration",
    ("Container", "resources"): "ResourceRequirements",
    ("EphemeralContainer", "resources"): "ResourceRequirements",
    ("ResourceRequirements", "claims"): "ResourceClaim",
}


def read_pod(value: object) -> Pod | Refusal:
    """Read a pod as a client sends it, or say why the API server could not."""
    try:
        unknown = list(unknown_fields(value))
        if not unknown:
            return msgspec.convert(_without_nulls(value), Pod, dec_hook=_quantity)
    except RecursionError:
        return _unreadable("exceeded max depth")
    except msgspec.ValidationError as error:
        cause = error.__cause__
        return _unreadable(cause.what if isinstance(cause, InvalidQuantity) else str(error))
    listed = ", ".join(f'unknown field "{path}"' for path in unknown)
    return _unreadable(f"strict decoding error: {listed}")


def unknown_fields(value: object, kind: str = "Pod", path: str = "") -> Iterator[str]:
    """Yield the paths of fields that do not exist."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from unknown_fields(entry, kind, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for field, inner in value.items():
            place = f"{path}.{field}" if path else str(field)
            if field not in _FIELDS[kind]:
                yield place
            elif (kind, field) in _CHILDREN:
                yield from unknown_fields(inner, _CHILDREN[kind, field], place)


def _without_nulls(value: object) -> object:
    """Drop what is null: to Kubernetes it is the same as absent."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _quantity(kind: type, value: object) -> Quantity:
    assert kind is Quantity
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidQuantity("quantities are texts or numbers")
    return Quantity.from_json(str(value))


def _unreadable(why: str) -> Refusal:
    return Refusal(Code.BAD_REQUEST, f'Pod in version "v1" cannot be handled as a Pod: {why}')
