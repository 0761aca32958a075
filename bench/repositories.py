"""Makes repositories of YAML that do not repeat themselves.

``distinct`` is workloads only: names, values, images, comments and scripts differ from file to file, as they do where
many teams write them by hand. ``gitops`` has the same workloads, but three quarters of its bytes are what GitOps
repositories mostly hold: CustomResourceDefinitions, ConfigMaps with dashboards, RBAC, Services.

Everything is drawn from a seeded generator, so that every run measures the same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

_SYLLABLES = ("ar", "bo", "ce", "di", "el", "fu", "ga", "hi", "in", "jo", "ka", "lu", "me", "no", "or", "pi", "qua")
_SYLLABLES += ("re", "so", "ti", "ur", "ve", "wa", "xe", "yo", "zu")
_KINDS = ("Deployment", "Deployment", "Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job")


def distinct(folder: Path, megabytes: float = 10.5, seed: int = 3) -> int:
    """Write workloads of which no two are alike; returns the number of files."""
    draw = _Draw(seed)
    return _write(folder, megabytes, lambda: "---\n".join(draw.workload() for _ in range(draw.chance.randint(1, 2))))


def gitops(folder: Path, megabytes: float = 30.0, seed: int = 4) -> int:
    """Write a repository of which a quarter of the bytes are workloads; returns the number of files."""
    draw = _Draw(seed)
    written = {"workloads": 0, "rest": 0}

    def text() -> str:
        if written["workloads"] * 3 <= written["rest"]:
            one = draw.workload() + "---\n" + draw.service()
            written["workloads"] += len(one)
        else:
            weights = (1, 16, 8, 4, 3, 2)
            kinds = (draw.crd, draw.dashboard, draw.settings, draw.role, draw.network_policy, draw.secret)
            one = draw.chance.choices(kinds, weights)[0]()
            written["rest"] += len(one)
        return one

    return _write(folder, megabytes, text)


def _write(folder: Path, megabytes: float, text: Callable[[], str]) -> int:
    written = files = 0
    while written < megabytes * 1e6:
        content = text()
        target = folder / f"team-{files % 40:02}" / f"{files:05}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content if files % 50 else content.removesuffix("\n"))
        written += len(content)
        files += 1
    return files


class _Draw:
    """Draws names, values and objects."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def word(self, syllables: int = 3) -> str:
        return "".join(self.chance.choices(_SYLLABLES, k=syllables))

    def words(self, count: int) -> str:
        return " ".join(self.word(self.chance.randint(1, 3)) for _ in range(count))

    def number(self, digits: int = 4) -> int:
        return self.chance.randint(10 ** (digits - 1), 10**digits - 1)

    def hexadecimal(self, digits: int) -> str:
        return f"{self.chance.getrandbits(digits * 4):0{digits}x}"

    def is_likely(self, share: float) -> bool:
        return self.chance.random() < share

    # ---- workloads ---------------------------------------------------------------------------------------------------

    def workload(self) -> str:
        kind = self.chance.choice(_KINDS)
        name = f"{self.word()}-{self.word(2)}-{self.number(3)}"
        group = "batch/v1" if kind in {"Job", "CronJob"} else "apps/v1"
        lines = [f"# {self.words(7)}", f"apiVersion: {group}", f"kind: {kind}", *self._metadata(name), "spec:"]
        pod = self._template(name)
        if kind == "CronJob":
            lines += [f'  schedule: "{self.number(2) % 60} {self.number(2) % 24} * * *"', "  jobTemplate:", "    spec:"]
            pod = ["    " + line for line in pod]
            lines += [f"      backoffLimit: {self.number(1)}"]
        else:
            lines += [f"  {'replicas' if kind != 'Job' else 'parallelism'}: {self.number(1)}  # {self.words(3)}"]
            if kind == "DaemonSet":
                lines.pop()
            if kind != "Job":
                lines += ["  selector:", f"    matchLabels: {{app: {name}, tier: {self.word(2)}}}"]
        return "\n".join([*lines, *pod]) + "\n"

    def _metadata(self, name: str) -> list[str]:
        lines = ["metadata:", f"  name: {name}", f"  namespace: {self.word(2)}-{self.word(2)}", "  labels:"]
        lines += [f"    app.kubernetes.io/name: {name}", f'    app.kubernetes.io/version: "{self._version()}"']
        lines += [f"    {self.word(2)}.example.com/{self.word(2)}: {self.word()}" for _ in range(2)]
        lines += ["  annotations:", f"    {self.word(2)}.example.com/checksum: {self.hexadecimal(40)}"]
        if self.is_likely(0.5):
            lines += [f'    description: "{self.words(9)}', f'      {self.words(6)}"']
        if self.is_likely(0.3):
            lines += [f"    owners: '{json.dumps({self.word(): self.number(), 'on-call': self.words(2)})}'"]
        return lines

    def _version(self) -> str:
        return f"{self.number(1)}.{self.number(2)}.{self.number(2)}"

    def _template(self, name: str) -> list[str]:
        lines = [
            "  template:",
            "    metadata:",
            "      labels:",
            f"        app: {name}",
            f"        tier: {self.word(2)}",
        ]
        lines += ["    spec:", f"      serviceAccountName: {self.word()}"]
        lines += [f"      terminationGracePeriodSeconds: {self.number(2)}"]
        if self.is_likely(0.3):
            lines += ["      nodeSelector:", f"        {self.word(2)}.example.com/pool: {self.word()}"]
        if self.is_likely(0.4):
            lines += ["      initContainers:", *self._container("init", f"init-{self.word(2)}")]
        lines += ["      containers:", *self._container("main", name)]
        if self.is_likely(0.5):
            lines += ["", f"      # {self.words(5)}", *self._container("side", self.word())]
        lines += ["      volumes:", f"        - name: {self.word()}-config", "          configMap:"]
        lines += [f"            name: {name}-{self.hexadecimal(10)}", f"        - name: {self.word()}"]
        return [*lines, f"          emptyDir: {{sizeLimit: {self.number(3)}Mi}}"]

    def _container(self, role: str, name: str) -> list[str]:
        lines = [f"- name: {name}", f"  image: registry.example.com/{self.word()}/{self.word()}:{self._version()}"]
        if self.is_likely(0.3):
            lines[-1] += f"@sha256:{self.hexadecimal(64)}"
        if role == "init" or self.is_likely(0.25):
            lines += ['  command: ["/bin/sh", "-c"]', "  args:", "    - |", f"      set -eu  # {self.words(3)}"]
            lines += [f"      until {self.word()} --wait {self.number()}; do sleep {self.number(1)}; done"]
            lines += ["", f'      echo "{self.words(6)}" > /tmp/{self.word()}', f"      exec /app/{self.word()}"]
        else:
            lines += [
                "  args:",
                *(f"    - --{self.word(2)}-{self.word(1)}={self.word()}{self.number()}" for _ in range(4)),
            ]
            if self.is_likely(0.2):
                lines += [f"    - --allow={self.number(2)}.0.0.0/8", "    - ::/0"]
        lines += ["  env:"]
        for _ in range(self.chance.randint(2, 7)):
            lines += [f"    - name: {self.word(2).upper()}_{self.word(2).upper()}"]
            match self.chance.randrange(4):
                case 0:
                    lines += [f'      value: "{self.number()}"']
                case 1:
                    lines += [f"      value: http://{self.word()}.{self.word(2)}.svc:{self.number()}/{self.word()}"]
                case 2:
                    lines += [f"      value: {self.words(3)}  # {self.words(2)}"]
                case _:
                    lines += [
                        "      valueFrom:",
                        "        secretKeyRef:",
                        f"          name: {self.word()}-{self.word(2)}",
                    ]
                    lines += [f"          key: {self.word()}"]
        lines += ["  ports:", f"    - {{name: {self.word(1)}{self.number(2)}, containerPort: {self.number()}}}"]
        lines += ["  resources:", *self._resources()]
        if role != "init" and self.is_likely(0.7):
            lines += ["  readinessProbe:", "    httpGet:", f"      path: /{self.word()}/{self.word(2)}"]
            lines += [f"      port: {self.number()}", f"    periodSeconds: {self.number(2)}"]
        lines += ["  volumeMounts:", f"    - name: {self.word()}-config", f"      mountPath: /etc/{self.word()}"]
        return ["        " + line if line else "" for line in lines]

    def _resources(self) -> list[str]:
        cpu, memory = f"{self.number(3)}m", f"{self.number(3)}Mi"
        match self.chance.randrange(4):
            case 0:
                return [f"    requests: {{cpu: {cpu}, memory: {memory}}}", f"    limits: {{memory: {memory}}}"]
            case 1:
                lines = ["    requests:", f"      cpu: {cpu}", f'      memory: "{memory}"']
                return [*lines, "    limits:", f"      cpu: {self.number(1)}", f"      memory: {self.number(1)}Gi"]
            case 2:
                return ["    limits:", f"      cpu: {cpu}", f"      memory: {memory}  # {self.words(3)}"]
            case _:
                return ["    requests:", f"      memory: {memory}"]

    # ---- what holds no pods ------------------------------------------------------------------------------------------

    def service(self) -> str:
        name = f"{self.word()}-{self.number()}"
        lines = ["apiVersion: v1", "kind: Service", *self._metadata(name), "spec:", f"  selector: {{app: {name}}}"]
        return "\n".join([*lines, "  ports:", f"    - port: {self.number()}", f"      targetPort: {self.word(1)}", ""])

    def crd(self) -> str:
        plural, group = self.word() + "s", f"{self.word()}.example.com"
        lines = ["apiVersion: apiextensions.k8s.io/v1", "kind: CustomResourceDefinition", "metadata:"]
        lines += [f"  name: {plural}.{group}", "spec:", f"  group: {group}", "  names:", f"    kind: {plural.title()}"]
        lines += [f"    plural: {plural}", "  scope: Namespaced", "  versions:", "  - name: v1", "    schema:"]
        lines += ["      openAPIV3Schema:", f"        description: {self.words(8)}", "        properties:"]
        lines += self._properties(6, "          ")
        return "\n".join([*lines, "        type: object", "    served: true", "    storage: true", ""])

    def _properties(self, depth: int, indent: str) -> list[str]:
        lines = []
        for _ in range(self.chance.randint(3, 6)):
            lines += [f"{indent}{self.word()}{self.hexadecimal(4)}:"]
            lines += [f"{indent}  description: |-", f"{indent}    {self.words(9)}", f"{indent}    {self.words(12)}"]
            if depth and self.is_likely(0.45):
                lines += [f"{indent}  properties:", *self._properties(depth - 1, indent + "    ")]
                lines += [f"{indent}  type: object"]
            else:
                lines += [f"{indent}  type: {self.chance.choice(('string', 'integer', 'boolean'))}"]
        return lines

    def dashboard(self) -> str:
        panels = [
            {
                "title": self.words(3),
                "type": "timeseries",
                "gridPos": {"h": self.number(1), "w": self.number(2), "x": 0, "y": self.number(2)},
                "targets": [{"expr": f'sum(rate({self.word()}_total{{job="{self.word()}"}}[5m]))', "refId": "A"}],
            }
            for _ in range(self.chance.randint(15, 80))
        ]
        text = json.dumps({"title": self.words(3), "uid": self.hexadecimal(12), "panels": panels}, indent=2)
        lines = ["apiVersion: v1", "kind: ConfigMap", *self._metadata(f"dashboard-{self.word()}"), "data:"]
        return "\n".join([*lines, f"  {self.word()}.json: |-", *("    " + line for line in text.split("\n")), ""])

    def settings(self) -> str:
        data = [f"  {self.word()}.{self.word(2)}: {self.words(2)}" for _ in range(self.chance.randint(5, 60))]
        lines = ["apiVersion: v1", "data:", *dict.fromkeys(data), "kind: ConfigMap"]
        return "\n".join([*lines, *self._metadata(f"{self.word()}-settings"), ""])

    def role(self) -> str:
        lines = [
            "apiVersion: rbac.authorization.k8s.io/v1",
            "kind: ClusterRole",
            *self._metadata(self.word()),
            "rules:",
        ]
        for _ in range(self.chance.randint(2, 12)):
            lines += [f"- apiGroups: [{self.word()}.example.com]", "  resources:", f"  - {self.word()}s", "  verbs:"]
            lines += ["  - get", "  - list"]
        return "\n".join([*lines, ""])

    def network_policy(self) -> str:
        lines = ["apiVersion: networking.k8s.io/v1", "kind: NetworkPolicy", *self._metadata(self.word()), "spec:"]
        lines += [f"  podSelector: {{matchLabels: {{app: {self.word()}}}}}", "  egress:", "    - to:"]
        lines += [f"        - ipBlock: {{cidr: {self.number(2)}.{self.number(2)}.0.0/16}}" for _ in range(5)]
        return "\n".join([*lines, ""])

    def secret(self) -> str:
        lines = ["apiVersion: v1", "kind: Secret", *self._metadata(self.word()), "data:"]
        lines += [f"  {self.word()}: {self.hexadecimal(60)}==" for _ in range(self.chance.randint(1, 8))]
        return "\n".join([*dict.fromkeys(lines), ""])
