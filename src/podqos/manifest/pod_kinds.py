"""Well-known kinds of custom resources that hold pods: where their templates are, and how many pods each makes.

Adding a kind is adding a line. A path leads from the object to a pod template or to a pod's spec, whichever stands
there; ``*`` stands for every item of a list or mapping. What a controller adds to the pods is not in the manifest, so
it is named. Kinds whose controllers build the pods out of something else are named as well: such an object is not
judged, and that is said.

Sources: the CustomResourceDefinitions of each project.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from podqos.manifest.kinds import group_of

WORKFLOW_SETTINGS = "executor, mainContainer and workflowDefaults in Argo's workflow-controller-configmap"
"""What a cluster may say about the pods of all workflows."""
_FROM_CLUSTER = "use the running pods: kubectl get pods -o yaml"


class Template(Struct, frozen=True):
    """Where a kind keeps a pod template."""

    path: str
    """From the object, such as ``spec.workerGroupSpecs.*.template``."""
    replicas: tuple[str, ...] = ()
    """Paths of the numbers that multiply to how many pods there are; ``*`` is what it is in ``path``."""
    part: str = ""
    """What distinguishes the pods from those of the kind's other templates."""
    workflow: str = ""
    """The path of the workflow's spec, if it is a template of Argo's, out of which its controller builds a pod."""


class CustomKind(Struct, frozen=True):
    """A kind of custom resource that holds pods, or makes them."""

    kind: str
    group: str
    """Its API group; empty for a kind that a user names, whatever its group is."""
    templates: tuple[Template, ...] = ()
    adds: str = ""
    """Containers that the controller adds to every pod."""
    settings: str = ""
    """Settings of the controller that change its pods, and are assumed not to be set."""
    built: str = ""
    """What the pods are built from, if they cannot be read from the object."""
    hint: str = _FROM_CLUSTER
    """What to give to podqos instead."""


def _beside(path: str, part: str = "", *, count: str = "replicas") -> Template:
    """Return a template whose number of pods is next to it."""
    return Template(path, (f"{path.rpartition('.')[0]}.{count}",), part)


_CONTROLLER = _beside("spec.template")
_ECK = _beside("spec.podTemplate", count="count")
_BEATS = (
    Template("spec.daemonSet.podTemplate", part="daemonset"),
    _beside("spec.deployment.podTemplate", "deployment"),
)
_WORKFLOW = ("{0}.templates.*", "{0}.templates.*.steps.*.*.inline", "{0}.templates.*.dag.tasks.*.inline")
_REPLICATED = Template(
    "{0}.replicatedJobs.*.template.spec.template",
    ("{0}.replicatedJobs.*.replicas", "{0}.replicatedJobs.*.template.spec.parallelism"),
)


def _replicated_jobs(spec: str) -> Template:
    return Template(_REPLICATED.path.format(spec), tuple(replica.format(spec) for replica in _REPLICATED.replicas))


def _ray(spec: str) -> tuple[Template, ...]:
    return (
        Template(f"{spec}.headGroupSpec.template", part="head"),
        _beside(f"{spec}.workerGroupSpecs.*.template"),
    )


def _united(name: str) -> Template:
    return Template(f"spec.template.{name}.spec.template", ("spec.replicas",))


def _workflow(kind: str, spec: str) -> CustomKind:
    """Return a kind of Argo's workflows."""
    templates = tuple(Template(path.format(spec), workflow=spec) for path in _WORKFLOW)
    return CustomKind(kind, "argoproj.io", templates, settings=WORKFLOW_SETTINGS)


def _holders() -> Iterator[CustomKind]:
    argo, kruise, kubeflow, elastic = "argoproj.io", "apps.kruise.io", "kubeflow.org", "k8s.elastic.co"
    yield CustomKind("Rollout", argo, (_CONTROLLER,))
    yield CustomKind("Experiment", argo, (_beside("spec.templates.*.template"),))
    for kind in ("AnalysisTemplate", "ClusterAnalysisTemplate", "AnalysisRun"):
        yield CustomKind(kind, argo, (Template("spec.metrics.*.provider.job.spec.template"),))
    for kind in ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"):
        yield _workflow(kind, "spec")
    yield _workflow("CronWorkflow", "spec.workflowSpec")
    for kind in ("Service", "Configuration"):
        yield CustomKind(kind, "serving.knative.dev", (Template("spec.template"),), adds="queue-proxy")
    yield CustomKind("Revision", "serving.knative.dev", (Template("spec"),), adds="queue-proxy")
    yield CustomKind("ContainerSource", "sources.knative.dev", (Template("spec.template"),))
    yield CustomKind("JobSet", "jobset.x-k8s.io", (_replicated_jobs("spec"),))
    yield CustomKind(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io",
        (
            Template("spec.leaderWorkerTemplate.leaderTemplate", ("spec.replicas",), "leader"),
            Template(
                "spec.leaderWorkerTemplate.workerTemplate",
                ("spec.replicas", "spec.leaderWorkerTemplate.size"),
                "worker",
            ),
        ),
    )
    yield CustomKind("Workload", "kueue.x-k8s.io", (_beside("spec.podSets.*.template", count="count"),))
    for kind in ("CloneSet", "StatefulSet", "DaemonSet", "BroadcastJob"):
        yield CustomKind(kind, kruise, (_CONTROLLER,))
    yield CustomKind(
        "AdvancedCronJob",
        kruise,
        (
            Template("spec.template.jobTemplate.spec.template", ("spec.template.jobTemplate.spec.parallelism",)),
            Template("spec.template.broadcastJobTemplate.spec.template"),
        ),
    )
    united = ("statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate")
    yield CustomKind("UnitedDeployment", kruise, tuple(map(_united, united)))
    yield CustomKind("ScaledJob", "keda.sh", (_beside("spec.jobTargetRef.template", count="parallelism"),))
    for name in ("TF", "PyTorch", "MX", "XGBoost", "MPI", "Paddle", "JAX"):
        field = {"XGBoost": "xgb"}.get(name, name.lower())
        yield CustomKind(f"{name}Job", kubeflow, (_beside(f"spec.{field}ReplicaSpecs.*.template"),))
    yield CustomKind("Notebook", kubeflow, (Template("spec.template"),))
    yield CustomKind("Experiment", kubeflow, (Template("spec.trialTemplate.trialSpec.spec.template"),))
    for kind in ("TrainingRuntime", "ClusterTrainingRuntime"):
        yield CustomKind(kind, "trainer.kubeflow.org", (_replicated_jobs("spec.template.spec"),))
    yield CustomKind("RayCluster", "ray.io", _ray("spec"))
    yield CustomKind(
        "RayJob", "ray.io", (*_ray("spec.rayClusterSpec"), Template("spec.submitterPodTemplate", part="submitter"))
    )
    yield CustomKind("RayCronJob", "ray.io", _ray("spec.jobTemplate.rayClusterSpec"))
    yield CustomKind("RayService", "ray.io", _ray("spec.rayClusterConfig"))
    yield CustomKind("Job", "batch.volcano.sh", (_beside("spec.tasks.*.template"),))
    yield CustomKind("DeploymentConfig", "apps.openshift.io", (_CONTROLLER,))
    yield CustomKind("DeploymentConfig", "", (_CONTROLLER,))
    yield CustomKind(
        "Elasticsearch",
        f"elasticsearch.{elastic}",
        (_beside("spec.nodeSets.*.podTemplate", count="count"),),
        built="the operator's defaults",
    )
    for kind, group in (
        *(("Kibana", "kibana"), ("ApmServer", "apm"), ("EnterpriseSearch", "enterprisesearch")),
        *(("ElasticMapsServer", "maps"), ("Logstash", "logstash")),
    ):
        yield CustomKind(kind, f"{group}.{elastic}", (_ECK,))
    yield CustomKind("Beat", f"beat.{elastic}", _BEATS)
    yield CustomKind("Agent", f"agent.{elastic}", (*_BEATS, _beside("spec.statefulSet.podTemplate", "statefulset")))
    serving = "serving.kserve.io"
    for kind in ("ServingRuntime", "ClusterServingRuntime"):
        yield CustomKind(kind, serving, (Template("spec"), Template("spec.workerSpec", part="worker")))
    components = tuple(Template(f"spec.{name}", part=name) for name in ("predictor", "transformer", "explainer"))
    yield CustomKind(
        "InferenceService", serving, components, adds="storage-initializer, queue-proxy", built="a serving runtime"
    )
    for kind in ("LLMInferenceService", "LLMInferenceServiceConfig"):
        yield CustomKind(
            kind,
            serving,
            (
                _beside("spec.template", "decode"),
                Template("spec.worker", part="worker"),
                _beside("spec.prefill.template", "prefill"),
                Template("spec.prefill.worker", part="prefill-worker"),
                Template("spec.router.scheduler.template", part="scheduler"),
            ),
        )
    yield CustomKind(
        "SeldonDeployment",
        "machinelearning.seldon.io",
        (Template("spec.predictors.*.componentSpecs.*", ("spec.predictors.*.replicas",)),),
    )
    yield CustomKind("Fleet", "agones.dev", (Template("spec.template.spec.template", ("spec.replicas",)),))
    yield CustomKind("GameServerSet", "agones.dev", (Template("spec.template.spec.template", ("spec.replicas",)),))
    yield CustomKind("GameServer", "agones.dev", (Template("spec.template"),))


def _builders() -> Iterator[CustomKind]:
    """Yield kinds whose controllers build pods from something else."""
    for kinds, group, built, hint in (
        ("Task ClusterTask TaskRun Pipeline PipelineRun StepAction", "tekton.dev", "its steps, by Tekton", ""),
        (
            "SparkApplication ScheduledSparkApplication",
            "sparkoperator.k8s.io",
            "its driver and executors, by Spark",
            "",
        ),
        ("FlinkDeployment FlinkSessionCluster", "flink.apache.org", "its resources, by the Flink operator", ""),
        (
            "Kafka KafkaNodePool KafkaConnect KafkaBridge KafkaMirrorMaker KafkaMirrorMaker2",
            "kafka.strimzi.io",
            "its resources, by Strimzi",
            "",
        ),
        (
            "Prometheus PrometheusAgent Alertmanager ThanosRuler",
            "monitoring.coreos.com",
            "its settings, by its operator",
            "",
        ),
        ("HelmRelease", "helm.toolkit.fluxcd.io", "a Helm chart", "render it: helm template CHART --values FILE"),
        ("HelmChart", "helm.cattle.io", "a Helm chart", "render it: helm template CHART --values FILE"),
        ("Application ApplicationSet", "argoproj.io", "the source it names", "render that: argocd app manifests NAME"),
        ("Template", "template.openshift.io", "its objects and parameters", "render it: oc process -f FILE"),
    ):
        for kind in kinds.split():
            yield CustomKind(kind, group, built=built, hint=hint or _FROM_CLUSTER)


CUSTOM_KINDS: dict[tuple[str, str], CustomKind] = {
    (each.kind, each.group): each for each in (*_holders(), *_builders())
}
"""By kind and API group."""


def custom_kind(kind: str, api_version: str) -> CustomKind | None:
    """Return what is known of a kind of custom resources."""
    return CUSTOM_KINDS.get((kind, group_of(api_version)))


def configured_kind(kind: str, path: str) -> CustomKind:
    """Return a kind as a user describes it: by the path to its pod template."""
    return CustomKind(kind, "", (Template(path.replace("[*]", ".*").replace("[]", ".*")),))
