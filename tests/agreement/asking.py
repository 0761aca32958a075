"""One setting, asked through commands as a user would: in this process, each command line once."""

from __future__ import annotations

import io
import json
import sys
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from agreement.settings import NODE, Setting, key
from podqos.cli.main import main
from podqos.manifest.encoding import json_line
from podqos.page.page import Page
from podqos.questions.metrics import overview_metrics
from podqos.questions.overview import overview
from podqos.reading.snapshot_files import read_snapshot
from podqos.serve.sources import read_given, read_paths
from podqos.serve.work import page_about

SECONDS: Counter[str] = Counter()
"""What the commands took so far, for whoever wants to know what the tests spend their time with."""


class Refused(AssertionError):
    """A command that does not answer."""


class Said(NamedTuple):
    """What a command printed."""

    code: int
    out: str
    err: str


class Asking:
    """Asks commands about a setting whose files are in a directory; ``{name}`` in a word is one of these files."""

    def __init__(self, setting: Setting, directory: Path) -> None:
        self.setting = setting
        self.directory = directory
        self._said: dict[tuple[str, ...], Said] = {}
        setting.write(directory)

    @property
    def keys(self) -> list[str]:
        """Return all pods that run."""
        return [key(each) for each in self.setting.pods]

    def file(self, name: str) -> str:
        """Return the path of a file."""
        return str(self.directory / name)

    def said(self, *words: str) -> Said:
        """Return what a command prints."""
        if words not in self._said:
            began = time.process_time()
            self._said[words] = run(*words)
            SECONDS[words[0]] += time.process_time() - began
        return self._said[words]

    def json(self, *words: str) -> Any:
        """Return what a command prints as JSON."""
        said = self.said(*words, "-o", "json")
        if not said.out:
            raise Refused(f"{' '.join(words)}: {said.err}")
        return json.loads(said.out)

    def journal(self, *words: str) -> list[Any]:
        """Return what a simulation noted."""
        said = self.said(*words, "-o", "jsonl")
        if not said.out:
            raise Refused(f"{' '.join(words)}: {said.err}")
        return [json.loads(line) for line in said.out.splitlines()]

    def text(self, *words: str) -> str:
        """Return what a command prints for people."""
        said = self.said(*words)
        if not said.out:
            raise Refused(f"{' '.join(words)}: {said.err}")
        return said.out

    # ---- the words that several questions are asked with ----

    @property
    def version(self) -> tuple[str, ...]:
        """Return the version whose rules apply."""
        return "--kubernetes-version", self.setting.version

    @property
    def kubelet(self) -> tuple[str, ...]:
        """Return the kubelet of the node."""
        return "--kubelet-config", self.file("kubelet.yaml")

    @property
    def memory(self) -> tuple[str, ...]:
        """Return the memory of the node."""
        return "--node-memory", str(self.setting.memory_bytes)

    @property
    def pods(self) -> tuple[str, ...]:
        """Return the manifests, on a node of that size."""
        return "-f", self.file("pods.yaml"), *self.memory, *self.kubelet, *self.version

    @property
    def node(self) -> tuple[str, ...]:
        """Return the node with its pods and what they use."""
        system = self.setting.system_bytes
        return *self.pods, "--usage", self.file("usage.csv"), *(("--system-memory", str(system)) if system else ())

    @property
    def cgroup(self) -> tuple[str, ...]:
        """Return the version of cgroups."""
        return "--cgroup", self.setting.cgroup

    @property
    def snapshot(self) -> tuple[str, ...]:
        """Return the same as a cluster of one node, which its kubelet measured."""
        return "--snapshot", self.file("cluster.json")

    @property
    def unstated(self) -> tuple[str, ...]:
        """Return that cluster without what the kubelet says about its settings."""
        path = self.directory / "unstated.json"
        if not path.exists():
            lines = (self.directory / "cluster.json").read_text().splitlines()
            kept = [line for line in lines[:-1] if '"kind":"NodeKubelet"' not in line]
            path.write_text("\n".join((*kept, json.dumps({"kind": "End", "lines": len(kept)}))))
        return "--snapshot", str(path)

    @property
    def growth(self) -> tuple[str, ...]:
        """Return what grows, and how fast."""
        return "--growing", ":".join(self.setting.growing), "--rate", f"{self.setting.rate}/s"

    def evaluated(self, family: str, *inputs: object) -> list[Any]:
        """Return what ``podqos eval`` makes of inputs."""
        lines = "".join(f"{json.dumps({'id': str(n), 'input': each})}\n" for n, each in enumerate(inputs))
        said = run("eval", family, given=lines)
        return [json.loads(line)["result"] for line in said.out.splitlines()]

    @cached_property
    def page(self) -> Page:
        """Return the page of the snapshot."""
        return page_about(read_given({"cluster.json": (self.directory / "cluster.json").read_bytes()}))

    @cached_property
    def cluster(self) -> Any:
        """Return what the page shows of the cluster."""
        return json.loads(json_line(self.page.cluster()))

    @cached_property
    def files(self) -> Any:
        """Return what the page shows of the cluster of the files, whose version is the newest."""
        return json.loads(json_line(self.page_of_files.cluster()))

    @cached_property
    def page_of_files(self) -> Page:
        """Return the page of manifests, Node, kubelet and usage."""
        names = ("pods.yaml", "node.yaml", "kubelet.yaml", "usage.csv")
        return page_about(read_given({name: (self.directory / name).read_bytes() for name in names}))

    @cached_property
    def page_of_scenario(self) -> Page:
        """Return the page of the scenario in which a container grows: as it begins."""
        return page_about(read_paths([self.file("phase-1.yaml")]))

    @cached_property
    def scenario(self) -> Any:
        """Return what the page shows of the cluster of that scenario."""
        return json.loads(json_line(self.page_of_scenario.cluster()))

    def pod_page(self, pod: str) -> Any:
        """Return what the page shows of a pod."""
        return json.loads(json_line(self.page.pod(pod, NODE)))

    def summed(self, metric: str, label: str) -> dict[str, float]:
        """Return a metric of the exporter, summed over all but one of its labels."""
        found: dict[str, float] = {}
        for labels, value in self.metrics.get(metric, ()):
            found[labels[label]] = found.get(labels[label], 0) + value
        return found

    @cached_property
    def metrics(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """Return what the exporter serves, by metric."""
        whole = overview(read_snapshot(self.file("cluster.json")))
        return {
            family.name: [(sample.labels, sample.value) for sample in family.samples]
            for family in text_string_to_metric_families(overview_metrics(whole, {}))
        }


def run(*words: str, given: str = "") -> Said:
    """Run a command in this process; it reads what is ``given`` on standard input."""
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(given.encode()), "utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(words))
        finally:
            sys.stdin = stdin
    for each in (out, err):
        each.flush()
        each.seek(0)
    return Said(code, out.read(), err.read())
