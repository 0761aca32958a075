"""PQ126: a database whose sidecar makes it die before the others.

Needs the other workloads: that some of them are Guaranteed shows what is meant for databases here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.advice.checks import examples
from podqos.advice.checks.check import WARNING, bundle_check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Fact, Finding, Patch
from podqos.advice.checks.references import OOM, QOS
from podqos.advice.checks.sizes import FAR_BELOW, LIKE_NOTHING
from podqos.advice.checks.sketch import Sketch, latest
from podqos.advice.checks.view import CheckContext
from podqos.model.pod import Pod, QOSClass
from podqos.qos.oom import oom_scores

TOLD_BY = ("PQ101", "PQ114", "PQ121")
"""Checks that say the same of a workload, and how to mend it: then this one does not."""

_STATEFUL_SET = "StatefulSet"
_DATABASES = (
    *(
        "cassandra",
        "clickhouse-server",
        "cockroach",
        "couchdb",
        "elasticsearch",
        "etcd",
        "influxdb",
        "mariadb",
        "mongo",
    ),
    *(
        "mongodb",
        "mysql",
        "neo4j",
        "opensearch",
        "percona-server",
        "postgres",
        "postgresql",
        "redis",
        "scylla",
        "spilo",
    ),
    *("timescaledb", "valkey"),
)


class BurstableAmongGuaranteed(Fact, frozen=True, gc=False):
    """A database that dies by way of its sidecar, beside others that are Guaranteed."""

    guaranteed: str
    """One of the others."""
    sidecar: str
    oom_score_adj: int
    main: str
    main_oom_score_adj: int

    def sentence(self, _: str) -> str:
        """Return what makes it different from the others."""
        scores = (
            f"its sidecar {self.sidecar} has an oom_score_adj of {self.oom_score_adj}, "
            f"and {self.main} one of {self.main_oom_score_adj}"
        )
        return f"{scores}, while {self.guaranteed} is Guaranteed"


def find_burstable_among_guaranteed(context: CheckContext, sketches: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield databases with a sidecar that dies almost first, where another database is Guaranteed."""
    databases = [sketch for sketch in latest(sketches) if sketch.pod is not None and _is_database(sketch, sketch.pod)]
    guaranteed = next(
        (database.subject.key for database in databases if database.qos_class is QOSClass.GUARANTEED), None
    )
    if guaranteed is None:
        return
    for sketch in databases:
        if sketch.pod is None or sketch.qos_class is not QOSClass.BURSTABLE or len(sketch.pod.spec.containers) < 2:
            continue
        scores = oom_scores(sketch.pod, sketch.qos_class, context.node_memory_bytes, context.options.profile)
        regular = scores[: len(sketch.pod.spec.containers)]
        main = min(regular, key=lambda score: score.value)
        index, worst = max(enumerate(regular), key=lambda each: each[1].value)
        if worst.value >= LIKE_NOTHING and worst.value - main.value >= FAR_BELOW:
            facts = BurstableAmongGuaranteed(guaranteed, worst.container, worst.value, main.container, main.value)
            patch = Patch.choose(Choice.SIDECAR_FORM, (sketch.at(f"spec.containers[{index}]"),))
            path = f"spec.containers[{index}].resources"
            yield sketch.finding(burstable_among_guaranteed, path, facts, patch)


def _is_database(sketch: Sketch, pod: Pod) -> bool:
    """Whether it is a StatefulSet, or runs the image of a database."""
    if sketch.subject.kind == _STATEFUL_SET:
        return True
    images = (container.image.rpartition("/")[2] for container in pod.spec.containers)
    return any(image.partition("@")[0].partition(":")[0] in _DATABASES for image in images)


_EXPORTER = ("cpu: 50m, memory: 64Mi", "memory: 128Mi, ephemeral-storage: 1Gi")


@bundle_check("PQ126", "burstable-database", WARNING, OOM, QOS, rule=find_burstable_among_guaranteed)
def burstable_among_guaranteed() -> Example:
    """PQ126: A database depends on a sidecar that is killed early, while other databases are Guaranteed.

    Every container of a Burstable pod has its own oom_score_adj, which depends on its memory request alone: a small
    exporter or proxy is near 999. When the node runs out of memory, the kernel kills it right after the BestEffort
    pods, and the database stops being ready. A Guaranteed database, sidecars included, has -997. Databases are
    StatefulSets, and pods that run a database image. When it is fine: if nothing depends on the sidecar, such as an
    exporter without a probe.

    Fix: Make the pod Guaranteed, at the cost of throttling at its CPU limits, or make the sidecar an init container
    with restartPolicy: Always, whose score follows the main container's.
    """
    main = examples.container("postgres", 'cpu: "2", memory: 8Gi', "memory: 12Gi, ephemeral-storage: 10Gi")
    exporter = examples.container("exporter", *_EXPORTER)
    other = examples.stateful_set("orders", examples.container("postgres", *examples.EQUAL))
    as_init = "  initContainers:\n" + exporter.replace(
        "      resources:", "      restartPolicy: Always\n      resources:"
    )
    return Example(
        examples.documents(examples.stateful_set("users", main, exporter), other),
        good=examples.documents(examples.stateful_set("users", main, spec=as_init), other),
    )
