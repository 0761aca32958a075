"""The Kubernetes objects that run podqos in a cluster, from the manifests that the chart and the kustomize bases share.

``deploy/chart/manifests`` is the only source. As they are, the manifests are the kustomize bases. Where a user may
choose, a comment says so in the words of Helm: ``replicas: 2  # {{ .Values.webhook.replicas }}`` names what stands in
place of the 2, ``# {{ if … }}`` to ``# {{ end }}`` what depends on a choice, and ``#> `` precedes lines that only
another choice than the default has. The chart makes actions of these comments, and so does ``filled`` here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podqos.errors import HostError
from podqos.manifest.encoding import manifest_yaml

Object = dict[str, Any]
Values = Mapping[str, object]
"""As in the chart's ``values.yaml``."""

WEBHOOK = "podqos-webhook"

_VALUE = re.compile(r"(?m)^( *(?:- )?(?:[\w./-]+: )?)\S.*?  # (.*\{\{.*)$")
_HELD_BACK = re.compile(r"(?m)^( *)#> ")
_CONDITION = re.compile(r" *# \{\{ (?:(if) (?:(eq|ne) (\S+) \"(.*)\"|(\S+))|else|(end)) \}\}")
_ACTION = re.compile(r"\{\{ (\S+?)( \| quote)? \}\}")


def manifests(part: str, namespace: str, values: Values, policy: str = "") -> str:
    """Return the namespace and the objects of a part: ``exporter``, ``guard``, or ``webhook`` with its policy file."""
    scope = {"Values": values, "Release": {"Namespace": namespace}}
    files = (Path(_home(), part, name) for name in ("namespace.yaml", "manifests.yaml"))
    texts = [filled(file.read_text(encoding="utf-8"), scope) for file in files]
    if part == "webhook":
        texts.append(manifest_yaml(_config_map(namespace, policy)))
    return "---\n".join(texts)


def starter_policy() -> str:
    """Return the file of the starter policy: it only warns."""
    return str(Path(_home(), "webhook/policy.yaml"))


def filled(text: str, scope: Mapping[str, object]) -> str:
    """Return a manifest with what was chosen in place of the defaults."""
    lines, shown = [], [True]
    for line in _VALUE.sub(r"\1\2", _HELD_BACK.sub(r"\1", text)).splitlines():
        mark = _CONDITION.fullmatch(line)
        if mark is None:
            if all(shown):
                lines.append(_ACTION.sub(lambda action: _written(_value(action[1], scope), action[2]), line))
        elif mark[1] is not None:
            value = _value(mark[3] or mark[5], scope)
            shown.append(bool(value) if mark[2] is None else (value == mark[4]) is (mark[2] == "eq"))
        elif mark[6] is not None:
            shown.pop()
        else:
            shown[-1] = not shown[-1]
    return "\n".join(lines) + "\n"


def _value(path: str, scope: Mapping[str, object]) -> object:
    value: Any = scope
    for name in path.removeprefix(".").split("."):
        value = value[name]
    return value


def _written(value: object, quote: str | None) -> str:
    """Return a value in YAML. A text that is a whole value is in quotes: a namespace may be called 1e3."""
    return json.dumps(value, ensure_ascii=False) if quote or not isinstance(value, str) else value


def _config_map(namespace: str, policy: str) -> Object:
    labels = {"app.kubernetes.io/name": "podqos", "app.kubernetes.io/component": "webhook"}
    metadata = {"name": "podqos-policy", "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.yaml": policy}}


def _home() -> Path:
    """Return where the manifests are: in the package once installed, in the source tree while developing."""
    package = Path(__file__).resolve().parents[1]
    for home in (package / "manifests", package.parents[1] / "deploy/chart/manifests"):
        if home.is_dir():
            return home
    raise HostError(f"the manifests are missing from {package}; install podqos again")
