"""Write ``deploy/``: the Helm chart and the kustomize bases, from the objects that ``podqos … manifests`` prints.

    python tools/deploy.py [DIRECTORY]

A chart is the same objects with other settings: where a user may choose, the settings hold a marker that becomes an
action of the template. What differs between two choices as a whole is written twice, with a condition around it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml
from msgspec.structs import replace

from podqos.manifest.encoding import manifest_yaml
from podqos.version import __version__
from podqos.web.guard_installation import GuardInstallation, guard_objects
from podqos.web.installation import (
    STARTER_POLICY,
    Object,
    ServingCertificate,
    Settings,
    exporter_objects,
    namespace_object,
    webhook_objects,
)
from podqos.web.settings import IMAGE

POLICY = Path(STARTER_POLICY).read_text()
_HEAD = "# Written by tools/deploy.py; change src/podqos/web/installation.py instead.\n"


def _value(path: str, function: str = "") -> str:
    return f"«.{path}{' | ' + function if function else ''}»"


_CHOSEN = {"namespace": _value("Release.Namespace"), "image": _value("Values.image")}
_CHOSEN_OF_WEBHOOK = {
    **_CHOSEN,
    "replicas": _value("Values.webhook.replicas"),
    "failure_policy": _value("Values.webhook.failurePolicy"),
}
_KUBELET_CONFIG, _EVICTION_API = ".Values.guard.kubeletConfig", ".Values.guard.evictionAPI"
_GIVEN = ServingCertificate(
    certificate=_value("Values.webhook.certificate.certificate"),
    key=_value("Values.webhook.certificate.key"),
    authority=_value("Values.webhook.certificate.authority"),
)


_CERTIFICATES = {"cert-manager": None, "given": _GIVEN}
"""What a chart's user may choose, and what is given then."""


def written(objects: Iterable[Object]) -> str:
    """Return objects as a stream of YAML."""
    return "---\n".join(map(manifest_yaml, objects))


def semantic(version: str) -> str:
    """Return a version as Helm takes it: 1.2.3.dev0 is 1.2.3-dev.0."""
    return version.replace(".dev", "-dev.")


def chart_files() -> dict[str, str]:
    """Return the chart: text by path."""
    policy = _value("Values.webhook.policy", "quote")
    webhooks = {
        f'eq .Values.webhook.certificate.from "{source}"': webhook_objects(
            Settings(given=given, mutate=True, **_CHOSEN_OF_WEBHOOK), policy
        )
        for source, given in _CERTIFICATES.items()
    }
    return {
        "Chart.yaml": _yaml(
            {
                "apiVersion": "v2",
                "name": "podqos",
                "description": "Admission webhook and metrics of podqos: QoS classes that stay what they are",
                "type": "application",
                "version": semantic(__version__),
                "appVersion": __version__,
                "kubeVersion": ">=1.27.0-0",
            }
        ),
        "values.yaml": _VALUES.format(policy=_indented(POLICY, 4), image=IMAGE),
        "values.schema.json": json.dumps(_VALUES_SCHEMA, indent=2) + "\n",
        "templates/exporter.yaml": _guarded(
            ".Values.exporter.enabled", _template([written(exporter_objects(Settings(**_CHOSEN)))])
        ),
        "templates/guard.yaml": _guarded(".Values.guard.enabled", _template(_guard_documents())),
        "templates/webhook.yaml": _guarded(".Values.webhook.enabled", _template(_either(webhooks))),
    }


def _guard_documents() -> Iterable[str]:
    """Yield the documents of the guard: each choice is about other objects."""
    plain = GuardInstallation(mode=_value("Values.guard.mode"), host_pid=_value("Values.guard.hostPID"), **_CHOSEN)
    with_file = replace(plain, kubelet_config=_value(_KUBELET_CONFIG.removeprefix(".")))
    with_api = replace(plain, may_use_eviction_api=True)
    for is_pod, condition, other in ((False, _EVICTION_API, with_api), (True, _KUBELET_CONFIG, with_file)):
        yield from _either(
            {
                each: [found for found in guard_objects(settings) if (found["kind"] == "DaemonSet") == is_pod]
                for each, settings in ((f"not {condition}", plain), (condition, other))
            }
        )


def kustomize_files() -> dict[str, str]:
    """Return the bases, one per part: text by path."""
    settings = Settings()
    guard = GuardInstallation()
    parts = {
        "exporter": (settings, exporter_objects(settings)),
        "guard": (guard, guard_objects(guard)),
        "webhook": (settings, webhook_objects(settings, POLICY)),
    }
    files = {}
    for name, (chosen, objects) in parts.items():
        files[f"{name}/manifests.yaml"] = _HEAD + written([namespace_object(chosen), *objects])
        files[f"{name}/kustomization.yaml"] = _HEAD + _yaml(
            {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["manifests.yaml"]}
        )
    return files


def _either(variants: Mapping[str, Iterable[Object]]) -> Iterable[str]:
    """Yield each document once where all variants have it, else under the condition that it depends on."""
    names = {condition: {_name(each): each for each in objects} for condition, objects in variants.items()}
    for name in dict.fromkeys(name for each in names.values() for name in each):
        texts = {condition: written([each[name]]) for condition, each in names.items() if name in each}
        if len(texts) == len(variants) and len(set(texts.values())) == 1:
            text = next(iter(texts.values()))
        else:
            text = "".join(_guarded(condition, text) for condition, text in texts.items())
        yield _guarded(".Values.webhook.mutate", text) if name[0] == "MutatingWebhookConfiguration" else text


def _name(each: Object) -> tuple[str, str]:
    return each["kind"], each["metadata"]["name"]


def _guarded(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n---\n{text.removeprefix('---' + chr(10))}{{{{- end }}}}\n"


def _template(documents: Iterable[str]) -> str:
    text = "---\n".join(documents)
    return re.sub(r"'?«(.*?)»'?", r"{{ \1 }}", text)


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False)


def _indented(text: str, width: int) -> str:
    return "".join(" " * width + line if line.strip() else line for line in text.splitlines(keepends=True))


_VALUES = """\
# An image with podqos in it: deploy/Containerfile builds one.
image: {image}

webhook:
  enabled: true
  replicas: 2
  # What the API server does where no replica answers: Ignore lets pods in, Fail refuses them.
  failurePolicy: Ignore
  # Also change pods, where the policy or their annotations ask for it.
  mutate: false
  certificate:
    # cert-manager; or given: below is base64 of tls.crt, tls.key and ca.crt, which `podqos webhook certificate` makes.
    from: cert-manager
    certificate: ""
    key: ""
    authority: ""
  # podqos webhook test -f review.json --policy FILE tries it first.
  policy: |
{policy}
exporter:
  enabled: true

guard:
  # It uses the host: the namespace has to take privileged pods, and should have no others in it.
  enabled: false
  # shadow only says what it would evict; enforce does it.
  mode: shadow
  # Share the host's pid namespace: needed with cgroup v1; with v2 the memory of a killed pod is freed sooner.
  hostPID: false
  # The kubelet's configuration file on nodes, such as /var/lib/kubelet/config.yaml. Empty: the kubelet is asked, which
  # needs a serving certificate that the cluster's authority signed.
  kubeletConfig: ""
  # Also let it evict through the API, as soft thresholds ask for. No policy can keep that right to its own node.
  evictionAPI: false
"""


def _object(properties: dict[str, object]) -> dict[str, object]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


_TEXT, _SWITCH = {"type": "string"}, {"type": "boolean"}
_VALUES_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    **_object(
        {
            "global": {"type": "object"},
            "image": {"type": "string", "minLength": 1},
            "exporter": _object({"enabled": _SWITCH}),
            "guard": _object(
                {
                    "enabled": _SWITCH,
                    "mode": {"enum": ["shadow", "enforce"]},
                    "hostPID": _SWITCH,
                    "kubeletConfig": {"type": "string", "pattern": "^(/.*)?$"},
                    "evictionAPI": _SWITCH,
                }
            ),
            "webhook": _object(
                {
                    "enabled": _SWITCH,
                    "replicas": {"type": "integer", "minimum": 1},
                    "failurePolicy": {"enum": ["Ignore", "Fail"]},
                    "mutate": _SWITCH,
                    "certificate": _object(
                        {"from": {"enum": list(_CERTIFICATES)}}
                        | dict.fromkeys(ServingCertificate.__struct_fields__, _TEXT)
                    )
                    | {
                        "if": {"properties": {"from": {"const": "given"}}},
                        "then": {
                            "properties": dict.fromkeys(ServingCertificate.__struct_fields__, _TEXT | {"minLength": 1})
                        },
                    },
                    "policy": {"type": "string", "minLength": 1},
                }
            ),
        }
    ),
}


def main(directory: Path) -> None:
    """Write all of it, in place of what was there."""
    for place, files in (("chart", chart_files()), ("kustomize", kustomize_files())):
        for name, text in files.items():
            path = directory / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "deploy"))
