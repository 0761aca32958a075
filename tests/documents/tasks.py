"""Twelve things that an SRE wants to know, each with the command of README that answers it in its first line.

``tasks/*.txt`` are the transcripts, which ``make golden`` records again.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from cluster.serving import Request, Server
from documents.commands import ROOT, Command
from documents.world import Ran, in_world, make_world, run

TRANSCRIPTS = Path(__file__).with_name("tasks")
_PROMETHEUS = "http://localhost:9090"
# What differs from run to run.
_MASKED = {
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ": "TIME",
    r"\(\d+\.\d MB\)": "(SIZE)",
}


class Task(Struct, frozen=True):
    """A question, the command, and what its first lines say."""

    name: str
    question: str
    command: str
    answer: str
    """A pattern that the first line has."""
    lines: int = 1
    """How many lines the answer takes: the second one of ``explain`` is the reason."""

    @property
    def transcript(self) -> Path:
        return TRANSCRIPTS / f"{self.name}.txt"


TASKS = (
    Task("oomkilled", "My pod was OOMKilled. Why?", "podqos autopsy -n shop db-0", r"db-0.*limit"),
    Task(
        "evicted-first",
        "Which pod is evicted first on this node?",
        "podqos rank worker-1",
        r"shop/shell is evicted first",
    ),
    Task(
        "kubelet",
        "Is this kubelet configuration sane?",
        "podqos check kubelet.yaml",
        r"memory\.available is at least 825Mi",
    ),
    Task(
        "ci-gate",
        "Does CI have to stop this?",
        "podqos check deploy/",
        r"article-service is evicted and OOM-killed before",
    ),
    Task(
        "sizes",
        "Which requests and limits does Prometheus suggest?",
        f"podqos advise deploy/ --prometheus {_PROMETHEUS}",
        r"should change\. Total change in requests: ",
    ),
    Task(
        "fit",
        "Does this fit on three nodes of 4 cores and 16Gi?",
        "podqos place deploy/ --nodes 3 --node-capacity cpu=4,memory=16Gi,pods=110",
        r"10 of 12 pods are placed on 3 nodes; 2 pending",
    ),
    Task(
        "pull-request",
        "What does this pull request change?",
        "podqos drift main:deploy deploy",
        r"1 workload is worse off\. Of 8 compared: 1 downgraded",
    ),
    Task(
        "burstable",
        "Why is my pod Burstable?",
        "podqos explain deploy/article-service.yaml",
        r"article-service  Burstable\n  why +logging-sidecar has no",
        2,
    ),
    Task(
        "leak",
        "What happens if log-collector leaks?",
        "podqos forecast deploy/ --growing log-collector",
        r"If monitoring/log-collector \(collector\) leaks, the kernel kills it before the kubelet evicts",
    ),
    Task(
        "policy",
        "Which policy rejects this?",
        "podqos policy test -f policy.yaml -f deploy/",
        r"2 would be rejected.* platform/nothing-is-best-effort",
    ),
    Task(
        "headroom",
        "How much headroom do my nodes have?",
        "podqos overview",
        r"Least headroom: worker-1, 3596Mi before eviction",
    ),
    Task(
        "share",
        "How do I explain this to my boss?",
        "podqos ui deploy/ usage.csv --html page.html",
        r"wrote page\.html \(.*opens in any browser",
    ),
)


@contextmanager
def office(directory: Path) -> Iterator[str]:
    """Work in a directory with manifests, a cluster and a Prometheus server, whose address is yielded."""
    make_world(directory)
    shutil.copyfile(ROOT / "scenarios/policy/policy.yaml", directory / "policy.yaml")
    with in_world(directory), Server(_prometheus) as server:
        yield server.url


def ask(task: Task, prometheus: str) -> tuple[Ran, str]:
    """Run the command of a task; return what became of it, and its transcript."""
    ran = run(Command("README.md", 0, task.command.replace(_PROMETHEUS, prometheus)))
    text = "".join(printed.strip("\n") + "\n" for printed in (ran.out, ran.err) if printed.strip())
    for pattern, word in {re.escape(prometheus): _PROMETHEUS, **_MASKED}.items():
        text = re.sub(pattern, word, text)
    lines = [line.rstrip() for line in text.splitlines()]
    return ran, "\n".join([f"# {task.question}", f"$ {task.command}", *lines, f"(exit {ran.code})", ""])


def _prometheus(request: Request) -> object:
    """Answer with a week of article-service: memory that stays near 3Gi, and a quarter of a core."""
    query = request.query.get("query", "")
    if not request.path.endswith("/query_range"):
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}).encode()
    labels = {"namespace": "production", "pod": "article-service-7d8b9c4f5-x2k9p"}
    low = {"memory_working_set": 3 << 30, "cpu_usage": 0.2}
    kind = next((name for name in low if name in query), None)
    start, end, step = (float(request.query[name]) for name in ("start", "end", "step"))
    times = [start + step * number for number in range(int((end - start) / step) + 1)]
    series = [
        {
            "metric": {**labels, "container": container},
            "values": [[moment, str(low[kind] * share * (1 + (moment // step) % 5 / 50))] for moment in times],
        }
        for container, share in {"article-service": 1, "logging-sidecar": 0.05}.items()
        if kind is not None
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}).encode()
