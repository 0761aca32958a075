"""Kinds of operators that build pods from stated resources: a table of paths.

Adding a kind is adding a line: where the part of the object is that describes a pod, how many of them there are, how
they are called, and where the resources of each container are. ``needs`` says what has to be stated because the
operator has defaults for it, ``Added`` which containers it adds. Where those could change the class, the pod is not
judged, so an answer never rests on an operator's settings; ``_OTHERS`` stands for containers that nobody has counted.

Sources: the CustomResourceDefinitions of each project, and the code of its operator that builds the pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.manifest.custom_kind import EVERY_AMOUNT, EVERY_RESOURCE, Added, Built, CustomKind, Stated, Template

_OTHERS = (Added("other containers"),)
_NOTHING: tuple[str, ...] = ()
_BOTH_SIDES = ("requests", "limits")
_DEFAULTS = "the operator's defaults"


def _bare(name: str, path: str = "resources", when: str = "") -> Stated:
    """Return a container that has no resources if none are stated."""
    return Stated(name, path, when, _NOTHING)


# ---- databases -----------------------------------------------------------------------------------------------------


def _postgres() -> Iterator[CustomKind]:
    cnpg, zalando = "postgresql.cnpg.io", "acid.zalan.do"
    plugins = (Added("plugins", "plugins"),)
    yield CustomKind("Cluster", cnpg, (Built("spec", ("spec.instances",), "", (_bare("postgres"),), plugins),))
    pooler = Template("spec.template", ("spec.instances",), containers=(_bare("pgbouncer"),))
    yield CustomKind("Pooler", cnpg, (pooler,), built=_DEFAULTS)
    spilo = Built(
        "spec",
        ("spec.numberOfInstances",),
        containers=(Stated("postgres", needs=EVERY_AMOUNT),),
        added=(Added("sidecars", "sidecars"),),
        lists=(("initContainers", "initContainers"),),
        priority="podPriorityClassName",
    )
    bouncer = Built(
        "spec.connectionPooler",
        ("spec.connectionPooler.numberOfInstances",),
        "{}-pooler",
        (Stated("connection-pooler", needs=EVERY_AMOUNT),),
        when="/spec.enableConnectionPooler",
        default_replicas=2,
    )
    yield CustomKind("postgresql", zalando, (spilo, bouncer))
    for kind, group in (
        ("PerconaPGCluster", "pgv2.percona.com"),
        ("PostgresCluster", "postgres-operator.crunchydata.com"),
    ):
        instances = Built("spec.instances.*", ("spec.instances.*.replicas",), "", (Stated("database"),), _OTHERS)
        proxy = "spec.proxy.pgBouncer"
        bouncer = Built(proxy, (f"{proxy}.replicas",), "{}-pgbouncer", (Stated("pgbouncer"),), _OTHERS)
        yield CustomKind(kind, group, (instances, bouncer))


def _percona() -> Iterator[CustomKind]:
    pmm = _bare("pmm-client", "/spec.pmm.resources", "/spec.pmm.enabled")
    init = Stated("pxc-init", "/spec.initContainer.resources", "/spec.initContainer.resources", is_init=True)
    added = (Added("pxc-init", keeps_guaranteed=True),)
    logs = [_bare(name, "/spec.logcollector.resources", "/spec.logcollector.enabled") for name in ("logs", "logrotate")]
    monitors = [_bare(name, "sidecarResources") for name in ("pxc-monit", "proxysql-monit")]
    sidecars = (("containers", "sidecars"),)
    pods = Built("spec.pxc", ("spec.pxc.size",), "{}-pxc", (Stated("pxc"), *logs, pmm, init), added, sidecars)
    proxies = (
        Built(
            f"spec.{name}",
            (f"spec.{name}.size",),
            f"{{}}-{name}",
            (Stated(name), *own, pmm, init),
            added,
            sidecars,
            when="enabled",
        )
        for name, own in (("haproxy", monitors[:1]), ("proxysql", monitors))
    )
    yield CustomKind("PerconaXtraDBCluster", "pxc.percona.com", (pods, *proxies))
    backup = _bare("backup-agent", "/spec.backup.resources", "/spec.backup.enabled")
    collector = (Added("logs, logrotate", "/spec.logcollector.enabled"),)
    sharding = "spec.sharding"
    replica_set = Built(
        "spec.replsets.*",
        ("spec.replsets.*.size",),
        containers=(Stated("mongod"), backup, pmm),
        added=collector,
        lists=sidecars,
    )
    config = replace(
        replica_set,
        path=f"{sharding}.configsvrReplSet",
        replicas=(f"{sharding}.configsvrReplSet.size",),
        part="{}-cfg",
        when="/spec.sharding.enabled",
    )
    mongos = replace(
        config,
        path=f"{sharding}.mongos",
        replicas=(f"{sharding}.mongos.size",),
        part="{}-mongos",
        containers=(Stated("mongos"), pmm),
    )
    yield CustomKind("PerconaServerMongoDB", "psmdb.percona.com", (replica_set, config, mongos))


def _tablets(shards: str, *counts: str) -> Built:
    path = f"spec.keyspaces.*.partitionings.*.{shards}.tabletPools.*"
    containers = (Stated("vttablet", "vttablet.resources"), Stated("mysqld", "mysqld.resources", "mysqld"))
    return Built(path, (f"{path}.replicas", *counts), "", containers, (Added("mysqld-exporter, init containers"),))


_VITESS = (
    Built(
        "spec.cells.*.gateway",
        ("spec.cells.*.gateway.replicas",),
        "vtgate",
        (Stated("vtgate", needs=_BOTH_SIDES),),
        default_replicas=2,
    ),
    _tablets("equal.shardTemplate", "spec.keyspaces.*.partitionings.*.equal.parts"),
    _tablets("custom.shards.*"),
    Built("spec.vitessDashboard", (), "vtctld", (Stated("vtctld", needs=_BOTH_SIDES),)),
)


def _databases() -> Iterator[CustomKind]:
    yield from _postgres()
    yield from _percona()
    crdb = Built("spec", ("spec.nodes",), "", (Stated("db"),), (Added("db-init"),))
    yield CustomKind("CrdbCluster", "crdb.cockroachlabs.com", (crdb,))
    yield CustomKind("VitessCluster", "planetscale.com", _VITESS)
    mysql = Template("spec.podSpec", ("spec.instances",), "", (Stated("mysql"),), _OTHERS)
    router = Template("spec.router.podSpec", ("spec.router.instances",), "router", (Stated("router"),), _OTHERS)
    yield CustomKind("InnoDBCluster", "mysql.oracle.com", (mysql, router), built=_DEFAULTS)
    mongo = Template(
        "spec.statefulSet.spec.template",
        ("spec.members",),
        containers=(Stated("mongod", needs=EVERY_AMOUNT), Stated("mongodb-agent", needs=EVERY_AMOUNT)),
        added=(Added("mongod-posthook, mongodb-agent-readinessprobe"),),
    )
    yield CustomKind("MongoDBCommunity", "mongodbcommunity.mongodb.com", (mongo,), built=_DEFAULTS)
    cassandra = Built("spec", ("spec.size",), "", (Stated("cassandra"),), _OTHERS, patches=("podTemplateSpec",))
    yield CustomKind("CassandraDatacenter", "cassandra.datastax.com", (cassandra,))
    centers = "spec.cassandra.datacenters.*"
    containers = (Stated("cassandra", "resources|/spec.cassandra.resources"),)
    yield CustomKind(
        "K8ssandraCluster", "k8ssandra.io", (Built(centers, (f"{centers}.size",), "", containers, _OTHERS),)
    )
    racks = "spec.datacenter.racks.*"
    scylla = Built(racks, (f"{racks}.members",), "", (Stated("scylla"),), _OTHERS)
    yield CustomKind("ScyllaCluster", "scylla.scylladb.com", (scylla,))
    parts = ("pd", "tikv", "tidb", "tiflash", "ticdc", "tiproxy")
    tidb = (Built(f"spec.{name}", (f"spec.{name}.replicas",), name, (Stated(name, "."),), _OTHERS) for name in parts)
    yield CustomKind("TidbCluster", "pingcap.com", tuple(tidb))
    nodes = "spec.nodes.*"
    more = (
        Added("additional containers", "/spec.additionalContainer"),
        Added("additional containers", "additionalContainer"),
    )
    yield CustomKind("Druid", "druid.apache.org", (Built(nodes, (f"{nodes}.replicas",), "", (Stated("druid"),), more),))
    for kind, group in (
        ("ClickHouseInstallation", "clickhouse.altinity.com"),
        ("ClickHouseKeeperInstallation", "clickhouse-keeper.altinity.com"),
    ):
        yield CustomKind(kind, group, (Template("spec.templates.podTemplates.*", added=_OTHERS),), built=_DEFAULTS)


# ---- caches and queues ---------------------------------------------------------------------------------------------


def _redis() -> Iterator[CustomKind]:
    spotahome = (
        Built(
            f"spec.{name}",
            (f"spec.{name}.replicas",),
            part,
            (main, Stated(f"{name}-exporter", "exporter.resources", "exporter.enabled")),
            added,
            lists=(("containers", "extraContainers"), ("initContainers", "initContainers")),
            default_replicas=3,
        )
        for name, part, main, added in (
            ("redis", "rfr-{}", _bare("redis"), ()),
            ("sentinel", "rfs-{}", Stated("sentinel"), (Added("sentinel-config-copy", keeps_guaranteed=True),)),
        )
    )
    yield CustomKind("RedisFailover", "databases.spotahome.com", tuple(spotahome))
    opstree, own = "redis.redis.opstreelabs.in", "kubernetesConfig.resources"
    redis = Built(
        "spec",
        containers=(_bare("redis", own), _bare("redis-exporter", "redisExporter.resources", "redisExporter.enabled")),
        added=(Added("init container", "initContainer.enabled"),),
        lists=(("containers", "sidecars"),),
    )
    yield CustomKind("Redis", opstree, (redis,))
    redis = replace(redis, replicas=("spec.clusterSize",))
    yield CustomKind("RedisReplication", opstree, (redis,))
    yield CustomKind("RedisSentinel", opstree, (replace(redis, part="sentinel"),))
    parts = (
        replace(
            redis,
            part=part,
            containers=(_bare(f"redis-{part}", f"redis{part.capitalize()}.resources|{own}"), redis.containers[1]),
        )
        for part in ("leader", "follower")
    )
    yield CustomKind("RedisCluster", opstree, tuple(parts))


def _queues() -> Iterator[CustomKind]:
    rabbitmq = Built(
        "spec",
        ("spec.replicas",),
        "server",
        (Stated("rabbitmq"),),
        (
            Added("setup-container", keeps_guaranteed=True),
            Added("default-user-credential-updater", "secretBackend.vault"),
        ),
        patches=("override.statefulSet.spec.template",),
    )
    yield CustomKind("RabbitmqCluster", "rabbitmq.com", (rabbitmq,))
    nats = Built("spec.pod", ("spec.size",), "", (Stated("nats"),), (Added("reloader, metrics"),))
    yield CustomKind("NatsCluster", "nats.io", (nats,))
    zookeeper = Built("spec.pod", ("spec.replicas",), "", (Stated("zookeeper"),), _OTHERS, default_replicas=3)
    yield CustomKind("ZookeeperCluster", "zookeeper.pravega.io", (zookeeper,))
    yield from _strimzi()


def _kafka_part(path: str, name: str, when: str = "") -> Built:
    return Built(path, (f"{path}.replicas",), name, (_bare(name),), when=when, priority=_KAFKA_PRIORITY)


_KAFKA_PRIORITY = "template.pod.priorityClassName"


def _strimzi() -> Iterator[CustomKind]:
    strimzi = "kafka.strimzi.io"
    operators = Built(
        "spec.entityOperator",
        part="entity-operator",
        containers=tuple(
            _bare(f"{name}-operator", f"{name}Operator.resources", f"{name}Operator") for name in ("topic", "user")
        ),
        added=(Added("tls-sidecar", "tlsSidecar"),),
        priority=_KAFKA_PRIORITY,
    )
    kafka = (
        _kafka_part("spec.kafka", "kafka", when="replicas"),
        _kafka_part("spec.zookeeper", "zookeeper", when="replicas"),
        operators,
        _kafka_part("spec.kafkaExporter", "kafka-exporter"),
        _kafka_part("spec.cruiseControl", "cruise-control"),
    )
    yield CustomKind("Kafka", strimzi, kafka, built="its node pools, by Strimzi")
    pool = Built("spec", ("spec.replicas",), "", (Stated("kafka"),), priority=_KAFKA_PRIORITY)
    yield CustomKind("KafkaNodePool", strimzi, (pool,))
    for kind, name in (
        *(("KafkaConnect", "connect"), ("KafkaMirrorMaker", "mirror-maker"), ("KafkaMirrorMaker2", "mirrormaker2")),
        ("KafkaBridge", "bridge"),
    ):
        part = replace(_kafka_part("spec", name), added=(Added(f"{name}-init", "rack"),))
        yield CustomKind(kind, strimzi, (part,))


# ---- monitoring ----------------------------------------------------------------------------------------------------

_MERGED = (("containers", "containers"), ("initContainers", "initContainers"))


def _prometheus() -> Iterator[CustomKind]:
    thanos = Stated("thanos-sidecar", "thanos.resources", "thanos")
    reloader = (Added("config-reloader"),)
    for kind, name, main, more in (
        ("Prometheus", "prometheus-{}", Stated("prometheus", needs=("memory",)), (thanos,)),
        ("PrometheusAgent", "prom-agent-{}", Stated("prometheus", needs=("memory",)), ()),
        ("Alertmanager", "alertmanager-{}", Stated("alertmanager", needs=("requests.memory",)), ()),
        ("ThanosRuler", "thanos-ruler-{}", Stated("thanos-ruler"), ()),
    ):
        pods = Built("spec", ("spec.replicas", "spec.shards"), name, (main, *more), reloader, _MERGED)
        yield CustomKind(kind, "monitoring.coreos.com", (pods,))


def _victoria(path: str, name: str, *more: Stated, added: tuple[Added, ...] = ()) -> Built:
    """Return the pods of one component; the operator fills in cpu and memory, each by itself."""
    counts = (f"{path}.replicaCount", f"{path}.shardCount")
    return Built(path, counts, f"{name}-{{}}", (Stated(name, needs=EVERY_RESOURCE), *more), added, _MERGED)


def _victoria_metrics() -> Iterator[CustomKind]:
    group = "operator.victoriametrics.com"
    reloader = Stated("config-reloader", "configReloaderResources", needs=EVERY_RESOURCE)
    backup = (Added("vmbackuper", "vmBackup"),)
    for kind in ("VMAgent", "VMAlert", "VMAlertmanager", "VMAuth"):
        yield CustomKind(kind, group, (_victoria("spec", kind.lower(), reloader),))
    for kind in ("VLogs", "VLSingle", "VTSingle"):
        yield CustomKind(kind, group, (_victoria("spec", kind.lower()),))
    for kind in ("VLAgent", "VMAnomaly"):
        yield CustomKind(kind, group, (_victoria("spec", kind.lower(), added=_OTHERS),))
    single = (*backup, Added("config-reloader", "ingestOnlyMode=false"))
    yield CustomKind("VMSingle", group, (_victoria("spec", "vmsingle", added=single),))
    for kind, field, name in (("VMCluster", "vm", "vm"), ("VLCluster", "vl", "vl"), ("VTCluster", "", "vt")):
        parts = (
            _victoria(f"spec.{field}{part}", f"{name}{part}", added=backup if part == "storage" else ())
            for part in ("select", "insert", "storage")
        )
        yield CustomKind(kind, group, tuple(parts))


def _tracing() -> Iterator[CustomKind]:
    telemetry = "opentelemetry.io"
    lists = (("containers", "additionalContainers"), ("initContainers", "initContainers"))
    collector = Built(
        "spec", ("spec.replicas",), "collector", (_bare("otc-container"),), lists=lists, when="mode!=sidecar"
    )
    allocator = Built(
        "spec.targetAllocator",
        ("spec.targetAllocator.replicas",),
        "targetallocator",
        (_bare("ta-container"),),
        when="enabled",
    )
    alone = replace(allocator, path="spec", replicas=("spec.replicas",), lists=lists, when="")
    bridge = Built("spec", ("spec.replicas",), "opamp-bridge", (_bare("opamp-bridge-container"),))
    yield CustomKind("OpenTelemetryCollector", telemetry, (collector, allocator))
    yield CustomKind("TargetAllocator", telemetry, (alone,))
    yield CustomKind("OpAMPBridge", telemetry, (bridge,))
    own, strategy = "resources|/spec.resources", "/spec.strategy"
    several = f"{strategy}=production|streaming"
    proxy = Added("oauth-proxy", "/spec.ingress.security=oauth-proxy")
    jaeger = (
        Built("spec.allInOne", containers=(_bare("jaeger", own),), added=(proxy,), when=f"{strategy}=none|allinone"),
        *(
            Built(f"spec.{name}", (f"spec.{name}.replicas",), name, (_bare(f"jaeger-{name}", own),), when=when)
            for name, when in (("collector", several), ("ingester", f"{strategy}=streaming"))
        ),
        Built(
            "spec.query",
            ("spec.query.replicas",),
            "query",
            (Stated("jaeger-query", own),),
            (Added("jaeger-agent"), proxy),
            when=several,
        ),
    )
    yield CustomKind("Jaeger", "jaegertracing.io", jaeger, built=_DEFAULTS)
    tempo = Built("spec", (), "tempo-{}", (Stated("tempo"),), _OTHERS)
    yield CustomKind("TempoMonolithic", "tempo.grafana.com", (tempo,))
    grafana = Template(
        "spec.deployment.spec.template",
        ("spec.deployment.spec.replicas",),
        "deployment",
        (Stated("grafana", needs=EVERY_AMOUNT),),
    )
    yield CustomKind("Grafana", "grafana.integreatly.org", (grafana,), built=_DEFAULTS)


# ---- platforms -----------------------------------------------------------------------------------------------------


def _platforms() -> Iterator[CustomKind]:
    argo = (
        Built(f"spec.{path}", (f"spec.{path}.replicas",), name, (Stated(f"argocd-{name}"),), _OTHERS)
        for path, name in (
            *(("server", "server"), ("repo", "repo-server"), ("controller", "application-controller")),
            *(("redis", "redis"), ("applicationSet", "applicationset-controller"), ("sso.dex", "dex-server")),
            ("notifications", "notifications-controller"),
        )
    )
    yield CustomKind("ArgoCD", "argoproj.io", tuple(argo), built=_DEFAULTS)
    keycloak = Built("spec", ("spec.instances",), "", (Stated("keycloak"),), patches=("unsupported.podTemplate",))
    yield CustomKind("Keycloak", "k8s.keycloak.org", (keycloak,))
    pools, sidecar = "spec.pools.*", Stated("sidecar", "/spec.sideCars.resources")
    yield CustomKind("Tenant", "minio.min.io", (Built(pools, (f"{pools}.servers",), "", (Stated("minio"), sidecar)),))
    options = "customSolrKubeOptions.podOptions"
    solr = Built(
        "spec",
        ("spec.replicas",),
        "solrcloud",
        (Stated("solrcloud-node", f"{options}.resources"),),
        _OTHERS,
        (("containers", f"{options}.sidecarContainers"), ("initContainers", f"{options}.initContainers")),
        default_replicas=3,
        priority=f"{options}.priorityClassName",
    )
    yield CustomKind("SolrCloud", "solr.apache.org", (solr,))


OPERATOR_KINDS: tuple[CustomKind, ...] = (
    *_databases(),
    *_redis(),
    *_queues(),
    *_prometheus(),
    *_victoria_metrics(),
    *_tracing(),
    *_platforms(),
)
"""Kinds whose pods operators build, with what each of them states."""
