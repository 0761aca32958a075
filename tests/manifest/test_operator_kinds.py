"""Pods that operators build: read where they are plainly stated, and otherwise named with the reason.

The source of every row is the operator's CustomResourceDefinition; the examples are our own.
"""

import json
import random
import re

import pytest

from podqos.manifest.custom_kind import Built
from podqos.manifest.operator_kinds import OPERATOR_KINDS
from podqos.manifest.plain import format_path, parse_path
from podqos.manifest.pod_kinds import CUSTOM_KINDS
from podqos.objects.sources import Source
from podqos.qos.classes import classify

BURSTABLE = "{requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: 1, memory: 2Gi}}"
GUARANTEED = "{requests: {cpu: 1, memory: 2Gi}, limits: {cpu: 1, memory: 2Gi}}"
POD = "{spec: {containers: [{name: NAME, image: i, resources: R}]}}"

# apiVersion, kind, spec with R for the resources, and of each pod: its name, how many, and where the resources are.
ROWS = [
    ("postgresql.cnpg.io/v1", "Cluster", "{instances: 3, resources: R}", ("x", 3, "spec.resources")),
    (
        "postgresql.cnpg.io/v1",
        "Pooler",
        f"{{instances: 2, template: {POD.replace('NAME', 'pgbouncer')}}}",
        ("x", 2, "spec.template.spec.containers[0].resources"),
    ),
    (
        "acid.zalan.do/v1",
        "postgresql",
        "{numberOfInstances: 2, resources: R, enableConnectionPooler: true, connectionPooler: {resources: R}}",
        ("x", 2, "spec.resources"),
        ("x-pooler", 2, "spec.connectionPooler.resources"),
    ),
    (
        "pxc.percona.com/v1",
        "PerconaXtraDBCluster",
        """{pxc: {size: 3, resources: R}, haproxy: {enabled: true, size: 2, resources: R, sidecarResources: R},
        proxysql: {enabled: false, size: 2, resources: R}}""",
        ("x-pxc", 3, "spec.pxc.resources"),
        ("x-haproxy", 2, "spec.haproxy.resources"),
    ),
    (
        "psmdb.percona.com/v1",
        "PerconaServerMongoDB",
        """{replsets: [{name: rs0, size: 3, resources: R}],
        sharding: {enabled: true, configsvrReplSet: {size: 3, resources: R}, mongos: {size: 2, resources: R}}}""",
        ("x-rs0", 3, "spec.replsets[0].resources"),
        ("x-cfg", 3, "spec.sharding.configsvrReplSet.resources"),
        ("x-mongos", 2, "spec.sharding.mongos.resources"),
    ),
    (
        "pgv2.percona.com/v2",
        "PerconaPGCluster",
        "{instances: [{name: a, replicas: 3, resources: R}], proxy: {pgBouncer: {replicas: 2, resources: R}}}",
        ("x-a", 3, "spec.instances[0].resources"),
        ("x-pgbouncer", 2, "spec.proxy.pgBouncer.resources"),
    ),
    (
        "postgres-operator.crunchydata.com/v1beta1",
        "PostgresCluster",
        "{instances: [{name: a, replicas: 2, resources: R}]}",
        ("x-a", 2, "spec.instances[0].resources"),
    ),
    ("crdb.cockroachlabs.com/v1alpha1", "CrdbCluster", "{nodes: 3, resources: R}", ("x", 3, "spec.resources")),
    (
        "planetscale.com/v2",
        "VitessCluster",
        """{cells: [{name: z, gateway: {replicas: 2, resources: R}}], keyspaces: [{name: k, partitionings: [
        {equal: {parts: 2, shardTemplate: {tabletPools: [
        {replicas: 3, vttablet: {resources: R}, mysqld: {resources: R}}]}}}]}]}""",
        ("x-vtgate-z", 2, "spec.cells[0].gateway.resources"),
        (
            "x-k-0-0",
            6,
            "spec.keyspaces[0].partitionings[0].equal.shardTemplate.tabletPools[0].vttablet.resources",
        ),
    ),
    (
        "mysql.oracle.com/v2",
        "InnoDBCluster",
        "{instances: 3, podSpec: {containers: [{name: mysql, resources: R}]}}",
        ("x", 3, "spec.podSpec.containers[0].resources"),
    ),
    (
        "mongodbcommunity.mongodb.com/v1",
        "MongoDBCommunity",
        "{members: 3, statefulSet: {spec: {template: {spec: {containers: [{name: mongod, resources: R}]}}}}}",
        ("x", 3, "spec.statefulSet.spec.template.spec.containers[0].resources"),
    ),
    ("cassandra.datastax.com/v1beta1", "CassandraDatacenter", "{size: 3, resources: R}", ("x", 3, "spec.resources")),
    (
        "k8ssandra.io/v1alpha1",
        "K8ssandraCluster",
        "{cassandra: {resources: R, datacenters: [{metadata: {name: dc1}, size: 3}]}}",
        ("x-0", 3, "spec.cassandra.resources"),
    ),
    (
        "scylla.scylladb.com/v1",
        "ScyllaCluster",
        "{datacenter: {racks: [{name: r, members: 3, resources: R}]}}",
        ("x-r", 3, "spec.datacenter.racks[0].resources"),
    ),
    (
        "pingcap.com/v1alpha1",
        "TidbCluster",
        "{tikv: {replicas: 3, requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: 1, memory: 2Gi}}}",
        ("x-tikv", 3, "spec.tikv"),
    ),
    (
        "druid.apache.org/v1alpha1",
        "Druid",
        "{nodes: {brokers: {replicas: 2, resources: R}}}",
        ("x-brokers", 2, "spec.nodes.brokers.resources"),
    ),
    *(
        (
            f"{group}/v1",
            kind,
            "{templates: {podTemplates: [{name: a, spec: {containers: [{name: c, resources: R}]}}]}}",
            ("x-a", 0, "spec.templates.podTemplates[0].spec.containers[0].resources"),
        )
        for kind, group in (
            ("ClickHouseInstallation", "clickhouse.altinity.com"),
            ("ClickHouseKeeperInstallation", "clickhouse-keeper.altinity.com"),
        )
    ),
    (
        "databases.spotahome.com/v1",
        "RedisFailover",
        "{redis: {replicas: 2, resources: R}, sentinel: {resources: R}}",
        ("rfr-x", 2, "spec.redis.resources"),
        ("rfs-x", 3, "spec.sentinel.resources"),
    ),
    (
        "redis.redis.opstreelabs.in/v1beta2",
        "Redis",
        "{kubernetesConfig: {resources: R}}",
        ("x", None, "spec.kubernetesConfig.resources"),
    ),
    (
        "redis.redis.opstreelabs.in/v1beta2",
        "RedisReplication",
        "{clusterSize: 3, kubernetesConfig: {resources: R}}",
        ("x", 3, "spec.kubernetesConfig.resources"),
    ),
    (
        "redis.redis.opstreelabs.in/v1beta2",
        "RedisSentinel",
        "{clusterSize: 3, kubernetesConfig: {resources: R}}",
        ("x-sentinel", 3, "spec.kubernetesConfig.resources"),
    ),
    (
        "redis.redis.opstreelabs.in/v1beta2",
        "RedisCluster",
        "{clusterSize: 3, kubernetesConfig: {resources: R}}",
        ("x-leader", 3, "spec.kubernetesConfig.resources"),
        ("x-follower", 3, "spec.kubernetesConfig.resources"),
    ),
    ("rabbitmq.com/v1beta1", "RabbitmqCluster", "{replicas: 3, resources: R}", ("x-server", 3, "spec.resources")),
    ("nats.io/v1alpha2", "NatsCluster", "{size: 3, pod: {resources: R}}", ("x", 3, "spec.pod.resources")),
    (
        "zookeeper.pravega.io/v1beta1",
        "ZookeeperCluster",
        "{pod: {resources: R}}",
        ("x", 3, "spec.pod.resources"),
    ),
    (
        "kafka.strimzi.io/v1beta2",
        "Kafka",
        """{kafka: {replicas: 3, resources: R}, zookeeper: {replicas: 3, resources: R},
        entityOperator: {topicOperator: {resources: R}}}""",
        ("x-kafka", 3, "spec.kafka.resources"),
        ("x-zookeeper", 3, "spec.zookeeper.resources"),
        ("x-entity-operator", None, "spec.entityOperator.topicOperator.resources"),
    ),
    ("kafka.strimzi.io/v1beta2", "KafkaNodePool", "{replicas: 3, resources: R}", ("x", 3, "spec.resources")),
    *(
        ("kafka.strimzi.io/v1beta2", kind, "{replicas: 2, resources: R}", (f"x-{name}", 2, "spec.resources"))
        for kind, name in (
            ("KafkaConnect", "connect"),
            ("KafkaMirrorMaker", "mirror-maker"),
            ("KafkaMirrorMaker2", "mirrormaker2"),
            ("KafkaBridge", "bridge"),
        )
    ),
    *(
        ("monitoring.coreos.com/v1", kind, "{replicas: 2, resources: R}", (name, 2, "spec.resources"))
        for kind, name in (
            ("Prometheus", "prometheus-x"),
            ("PrometheusAgent", "prom-agent-x"),
            ("Alertmanager", "alertmanager-x"),
            ("ThanosRuler", "thanos-ruler-x"),
        )
    ),
    *(
        (
            "operator.victoriametrics.com/v1beta1",
            kind,
            "{replicaCount: 2, resources: R}",
            (f"{kind.lower()}-x", 2, "spec.resources"),
        )
        for kind in (
            *("VMAgent", "VMAlert", "VMAlertmanager", "VMAuth", "VMSingle", "VMAnomaly"),
            *("VLAgent", "VLogs", "VLSingle", "VTSingle"),
        )
    ),
    *(
        (
            "operator.victoriametrics.com/v1",
            kind,
            f"{{{field}storage: {{replicaCount: 2, resources: R}}}}",
            (f"{name}storage-x", 2, f"spec.{field}storage.resources"),
        )
        for kind, field, name in (("VMCluster", "vm", "vm"), ("VLCluster", "vl", "vl"), ("VTCluster", "", "vt"))
    ),
    (
        "opentelemetry.io/v1beta1",
        "OpenTelemetryCollector",
        "{replicas: 2, resources: R, targetAllocator: {enabled: true, replicas: 2, resources: R}}",
        ("x-collector", 2, "spec.resources"),
        ("x-targetallocator", 2, "spec.targetAllocator.resources"),
    ),
    ("opentelemetry.io/v1alpha1", "TargetAllocator", "{resources: R}", ("x-targetallocator", None, "spec.resources")),
    ("opentelemetry.io/v1alpha1", "OpAMPBridge", "{resources: R}", ("x-opamp-bridge", None, "spec.resources")),
    (
        "jaegertracing.io/v1",
        "Jaeger",
        "{strategy: production, resources: R, allInOne: {}, collector: {replicas: 2}}",
        ("x-collector", 2, "spec.resources"),
    ),
    ("tempo.grafana.com/v1alpha1", "TempoMonolithic", "{resources: R}", ("tempo-x", None, "spec.resources")),
    (
        "grafana.integreatly.org/v1beta1",
        "Grafana",
        f"{{deployment: {{spec: {{replicas: 2, template: {POD.replace('NAME', 'grafana')}}}}}}}",
        ("x-deployment", 2, "spec.deployment.spec.template.spec.containers[0].resources"),
    ),
    (
        "argoproj.io/v1beta1",
        "ArgoCD",
        "{server: {replicas: 2, resources: R}, repo: {resources: R}}",
        ("x-server", 2, "spec.server.resources"),
        ("x-repo-server", None, "spec.repo.resources"),
    ),
    ("k8s.keycloak.org/v2alpha1", "Keycloak", "{instances: 2, resources: R}", ("x", 2, "spec.resources")),
    (
        "minio.min.io/v2",
        "Tenant",
        "{pools: [{name: p, servers: 4, resources: R}]}",
        ("x-p", 4, "spec.pools[0].resources"),
    ),
    (
        "solr.apache.org/v1beta1",
        "SolrCloud",
        "{replicas: 2, customSolrKubeOptions: {podOptions: {resources: R}}}",
        ("x-solrcloud", 2, "spec.customSolrKubeOptions.podOptions.resources"),
    ),
]


def stating(spec, resources):
    return re.sub(r"\bR\b", resources, spec)


def read(api_version, kind, spec, metadata="{name: x}"):
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n"
    return Source("object.yaml", text.encode()).reading


def classes(reading):
    return {workload.pod.metadata.name: str(classify(workload.pod).qos_class) for workload in reading.workloads}


def reasons(reading):
    return [unjudged.why for unjudged in reading.unjudged]


def test_every_kind_of_the_table_has_an_example():
    assert {row[1] for row in ROWS} == {known.kind for known in OPERATOR_KINDS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_pods_of_an_operator_have_the_stated_resources_names_and_numbers(row):
    api_version, kind, spec, *pods = row
    reading = read(api_version, kind, stating(spec, BURSTABLE))
    found = [
        (workload.pod.metadata.name, workload.replicas, workload.at("spec.containers[0].resources"))
        for workload in reading.workloads
    ]
    assert sorted(found) == sorted(pods)
    assert set(classes(reading).values()) == {"Burstable"}
    assert not reading.unjudged
    assert not reading.problems


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
@pytest.mark.parametrize("resources", ["{}", "null", "7", "[]", "{requests: []}", "{limits: {memory: null}}"])
def test_an_operators_object_without_amounts_is_besteffort_or_not_judged_and_never_another_class(row, resources):
    api_version, kind, spec, *_ = row
    if kind == "TidbCluster":
        return  # its amounts are not under resources
    reading = read(api_version, kind, stating(spec, resources))
    assert set(classes(reading).values()) <= {"BestEffort"}
    assert reading.workloads or reading.unjudged or reading.problems
    known = CUSTOM_KINDS[kind, api_version.partition("/")[0]]
    can_be_bare = any(not stated.needs for template in known.templates for stated in template.containers)
    assert can_be_bare or not reading.workloads


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "added"),
    [
        ("monitoring.coreos.com/v1", "Prometheus", "{resources: R}", "config-reloader"),
        ("crdb.cockroachlabs.com/v1alpha1", "CrdbCluster", "{resources: R}", "db-init"),
        ("postgresql.cnpg.io/v1", "Cluster", "{plugins: [{name: p}], resources: R}", "plugins"),
        ("operator.victoriametrics.com/v1beta1", "VMAgent", "{resources: R}", "config-reloader"),
        ("rabbitmq.com/v1beta1", "RabbitmqCluster", "{resources: R, secretBackend: {vault: {}}}", "updater"),
        ("minio.min.io/v2", "Tenant", "{pools: [{name: p, resources: R}]}", "sidecar"),
        (
            "ray.io/v1",
            "RayCluster",
            """{enableInTreeAutoscaling: true,
            headGroupSpec: {template: {spec: {containers: [{name: r, resources: R}]}}}}""",
            "autoscaler",
        ),
    ],
)
def test_a_guaranteed_pod_to_which_an_operator_adds_containers_is_not_judged(api_version, kind, spec, added):
    reading = read(api_version, kind, stating(spec, GUARANTEED))
    assert not reading.workloads
    (why,) = reasons(reading)
    assert added in why
    assert "can change the class" in why


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("postgresql.cnpg.io/v1", "Cluster", "{resources: R}"),
        ("rabbitmq.com/v1beta1", "RabbitmqCluster", "{resources: R}"),
        ("operator.victoriametrics.com/v1beta1", "VMAgent", "{resources: R, configReloaderResources: R}"),
        ("minio.min.io/v2", "Tenant", "{sideCars: {resources: R}, pools: [{name: p, resources: R}]}"),
        ("databases.spotahome.com/v1", "RedisFailover", "{sentinel: {resources: R}}"),
    ],
)
def test_a_pod_is_guaranteed_if_all_its_containers_are_known_to_be(api_version, kind, spec):
    assert set(classes(read(api_version, kind, stating(spec, GUARANTEED))).values()) == {"Guaranteed"}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "why"),
    [
        ("acid.zalan.do/v1", "postgresql", "{resources: {requests: {cpu: 1, memory: 1Gi}}}", "limits.memory"),
        (
            "monitoring.coreos.com/v1",
            "Alertmanager",
            "{resources: {limits: {cpu: 1, memory: 1Gi}}}",
            "does not state requests.memory",
        ),
        (
            "operator.victoriametrics.com/v1beta1",
            "VMSingle",
            "{resources: {limits: {memory: 1Gi}}}",
            "does not state cpu and memory",
        ),
        ("rabbitmq.com/v1beta1", "RabbitmqCluster", "{replicas: 3}", "states no resources for rabbitmq"),
        (
            "rabbitmq.com/v1beta1",
            "RabbitmqCluster",
            "{resources: R, override: {statefulSet: {spec: {template: {spec: {}}}}}}",
            "spec.override.statefulSet.spec.template changes its pods",
        ),
        (
            "jaegertracing.io/v1",
            "Jaeger",
            "{resources: R, allInOne: {resources: R}}",
            "stated at spec.allInOne.resources and spec.resources",
        ),
        (
            "monitoring.coreos.com/v1",
            "Prometheus",
            "{resources: R, containers: [{name: prometheus, resources: R}]}",
            "spec.containers[0] is merged into a container of the operator",
        ),
        ("opentelemetry.io/v1beta1", "OpenTelemetryCollector", "{mode: sidecar, resources: R}", "no pods of its own"),
        (
            "elasticsearch.k8s.elastic.co/v1",
            "Elasticsearch",
            "{nodeSets: [{name: a, count: 1, podTemplate: {spec: {containers: [{name: elasticsearch}]}}}]}",
            "states no resources for elasticsearch",
        ),
        ("loki.grafana.com/v1", "LokiStack", "{size: 1x.small}", "its size"),
        ("kubevirt.io/v1", "VirtualMachineInstance", "{domain: {resources: R}}", "overhead that KubeVirt adds"),
        (
            "operators.coreos.com/v1alpha1",
            "ClusterServiceVersion",
            "{install: {spec: {deployments: [{name: d, spec: {template: {spec: {containers: [{name: c}]}}}}]}}}",
            "Operator Lifecycle Manager",
        ),
    ],
)
def test_what_an_operator_may_fill_in_or_change_is_not_judged(api_version, kind, spec, why):
    reading = read(api_version, kind, stating(spec, BURSTABLE))
    assert not reading.workloads
    assert [why in text for text in reasons(reading)] == [True]


def test_containers_of_a_list_are_part_of_the_pod_and_patches_by_name_are_merged():
    spec = (
        f"{{resources: {BURSTABLE}, thanos: {{}}, priorityClassName: high, containers: [{{name: proxy, image: i}}, "
        f"{{name: thanos-sidecar, resources: {BURSTABLE}}}]}}"
    )
    (workload,) = read("monitoring.coreos.com/v1", "Prometheus", spec).workloads
    assert [container.name for container in workload.pod.spec.containers] == ["prometheus", "thanos-sidecar", "proxy"]
    assert workload.at("spec.containers[1].resources") == "spec.containers[1].resources"
    assert workload.at("spec.containers[2].resources") == "spec.containers[0].resources"
    assert workload.pod.spec.priority_class_name == "high"


def test_an_invalid_amount_is_told_where_it_stands():
    reading = read("databases.spotahome.com/v1", "RedisFailover", "{redis: {resources: {limits: {memory: 8GG}}}}")
    (problem,) = reading.problems
    assert problem.field == "spec.redis.resources.limits.memory"


def test_amounts_that_are_parameters_are_not_judged():
    reading = read("postgresql.cnpg.io/v1", "Cluster", '{resources: {limits: {memory: "${MEMORY}"}}}')
    assert not reading.workloads
    assert ["template parameters" in why for why in reasons(reading)] == [True]


def test_a_kind_of_the_same_name_in_another_group_is_unknown():
    reading = read("example.com/v1", "Cluster", f"{{resources: {BURSTABLE}}}")
    assert reasons(reading) == ["it has resources at spec.resources, but its kind is unknown"]


def test_paths_of_the_table_are_well_formed():
    for known in OPERATOR_KINDS:
        for template in known.templates:
            assert template.path.startswith("spec")
            stars = template.path.count("*")
            assert all(path.count("*") <= stars for path in template.replicas), known.kind
            assert not isinstance(template, Built) or template.containers, known.kind


# ---- unknown kinds ---------------------------------------------------------------------------------------------------


def nested(rng):
    """Return an object with cpu or memory under requests or limits, at a random place, and where that is."""
    value = {rng.choice(("requests", "limits")): {rng.choice(("cpu", "memory")): rng.choice((1, "1Gi", None, "{{x}}"))}}
    path = ()
    for depth in range(rng.randrange(20)):
        if rng.random() < 0.3:
            before = [rng.choice(("text", 5, None, {})) for _ in range(rng.randrange(3))]
            value, path = [*before, value], (len(before), *path)
        else:
            key = rng.choice(("spec", "a", "requests", "limits", "containers", "template", f"k{depth}"))
            value, path = {"other": [1], key: value}, (key, *path)
    return value, path


def test_resources_anywhere_in_an_unknown_kind_are_not_judged():
    for seed in range(300):
        value, path = nested(random.Random(seed))  # noqa: S311
        document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": value}
        reading = Source("object.json", json.dumps(document).encode()).reading
        assert len(reading.unjudged) == 1, document
        assert not reading.others
        assert not reading.workloads
        named = parse_path(reading.unjudged[0].why.split(" at ")[1].split(",")[0])
        assert named == ("spec", *path), format_path(named)


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("karpenter.sh/v1", "NodePool", "{limits: {cpu: 1000, memory: 1000Gi}}"),
        ("kyverno.io/v1", "ClusterPolicy", f"{{rules: [{{validate: {{pattern: {BURSTABLE}}}}}]}}"),
        ("example.com/v1", "Widget", "{requests: {storage: 1Gi}, limits: [cpu], cpu: 1}"),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            f"{{versions: [{{schema: {{default: {BURSTABLE}}}}}]}}",
        ),
    ],
)
def test_what_is_no_request_of_a_pod_is_an_object_without_pods(api_version, kind, spec):
    reading = read(api_version, kind, spec)
    assert not reading.unjudged
    assert len(reading.others) == 1


def test_examples_in_annotations_are_not_read():
    text = '{"spec": {"resources": {"limits": {"cpu": 1}}}}'
    metadata = f"{{name: x, annotations: {{alm-examples: '[{text}]'}}}}"
    assert not read("example.com/v1", "Widget", "{a: 1}", metadata).unjudged
