"""Well-known kinds of custom resources that hold pods: where their templates are, and how many pods each makes.

Adding a kind is adding a line. A path leads from the object to a pod template or to a pod's spec, whichever stands
there; ``*`` stands for every item of a list or mapping. What a controller adds to the pods is not in the manifest, so
it is named. Kinds whose controllers build the pods out of something else are named as well: such an object is not
judged, and that is said.

Sources: the CustomResourceDefinitions of each project.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.manifest.custom_kind import FROM_CLUSTER, Added, CustomKind, Stated, Template, beside
from podqos.manifest.kinds import group_of
from podqos.manifest.operator_kinds import OPERATOR_KINDS

WORKFLOW_SETTINGS = "executor, mainContainer and workflowDefaults in Argo's workflow-controller-configmap"
"""What a cluster may say about the pods of all workflows."""
_DEFAULTS = "the operator's defaults"
_CONTROLLER = beside("spec.template")
_ECK_INIT = (Added("elastic-internal-init-filesystem", keeps_guaranteed=True),)
_OF_BEATS = (
    Template("spec.daemonSet.podTemplate", part="daemonset"),
    beside("spec.deployment.podTemplate", "deployment"),
    beside("spec.statefulSet.podTemplate", "statefulset"),
)
_WORKFLOW = ("{0}.templates.*", "{0}.templates.*.steps.*.*.inline", "{0}.templates.*.dag.tasks.*.inline")
_REPLICATED = Template(
    "{0}.replicatedJobs.*.template.spec.template",
    ("{0}.replicatedJobs.*.replicas", "{0}.replicatedJobs.*.template.spec.parallelism"),
)


def _replicated_jobs(spec: str) -> Template:
    return Template(_REPLICATED.path.format(spec), tuple(replica.format(spec) for replica in _REPLICATED.replicas))


def _ray(spec: str) -> tuple[Template, ...]:
    autoscaler = Added("autoscaler", f"/{spec}.enableInTreeAutoscaling")
    waiting = Added("wait-gcs-ready", keeps_guaranteed=True)
    return (
        Template(f"{spec}.headGroupSpec.template", part="head", added=(autoscaler,)),
        replace(beside(f"{spec}.workerGroupSpecs.*.template"), added=(waiting,)),
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
    yield CustomKind("Experiment", argo, (beside("spec.templates.*.template"),))
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
    yield CustomKind("Workload", "kueue.x-k8s.io", (beside("spec.podSets.*.template", count="count"),))
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
    yield CustomKind("ScaledJob", "keda.sh", (beside("spec.jobTargetRef.template", count="parallelism"),))
    for name in ("TF", "PyTorch", "MX", "XGBoost", "MPI", "Paddle", "JAX"):
        field = {"XGBoost": "xgb"}.get(name, name.lower())
        yield CustomKind(f"{name}Job", kubeflow, (beside(f"spec.{field}ReplicaSpecs.*.template"),))
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
    yield CustomKind("Job", "batch.volcano.sh", (beside("spec.tasks.*.template"),))
    yield CustomKind("DeploymentConfig", "apps.openshift.io", (_CONTROLLER,))
    yield CustomKind("DeploymentConfig", "", (_CONTROLLER,))
    yield CustomKind(
        "Elasticsearch",
        f"elasticsearch.{elastic}",
        (
            replace(
                beside("spec.nodeSets.*.podTemplate", count="count"),
                containers=(Stated("elasticsearch"),),
                added=_ECK_INIT,
            ),
        ),
        built=_DEFAULTS,
    )
    for kind, group, main in (
        *(("Kibana", "kibana", "kibana"), ("ApmServer", "apm", "apm-server"), ("Logstash", "logstash", "logstash")),
        ("EnterpriseSearch", "enterprisesearch", "enterprise-search"),
        ("ElasticMapsServer", "maps", "maps"),
    ):
        template = replace(beside("spec.podTemplate", count="count"), containers=(Stated(main),), added=_ECK_INIT)
        yield CustomKind(kind, f"{group}.{elastic}", (template,), built=_DEFAULTS)
    beats = (replace(template, added=(Added("default resources"),)) for template in _OF_BEATS[:2])
    yield CustomKind("Beat", f"beat.{elastic}", tuple(beats), built=_DEFAULTS)
    agents = (replace(template, containers=(Stated("agent"),)) for template in _OF_BEATS)
    yield CustomKind("Agent", f"agent.{elastic}", tuple(agents), built=_DEFAULTS)
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
                beside("spec.template", "decode"),
                Template("spec.worker", part="worker"),
                beside("spec.prefill.template", "prefill"),
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
        ("LokiStack", "loki.grafana.com", "its size, by the operator", ""),
        ("TempoStack", "tempo.grafana.com", "its total resources, which the operator shares out", ""),
        ("TrainJob", "trainer.kubeflow.org", "the training runtime it names", ""),
        (
            "VirtualMachine VirtualMachineInstance VirtualMachineInstanceReplicaSet VirtualMachinePool",
            "kubevirt.io",
            "its machine, with overhead that KubeVirt adds",
            "",
        ),
        ("VirtualMachinePool", "pool.kubevirt.io", "its machine, with overhead that KubeVirt adds", ""),
        ("ClusterServiceVersion", "operators.coreos.com", "its deployments, by the Operator Lifecycle Manager", ""),
        ("Instrumentation", "opentelemetry.io", "the agents it adds to other pods", ""),
        ("HelmRelease", "helm.toolkit.fluxcd.io", "a Helm chart", "render it with helm template"),
        ("HelmChart", "helm.cattle.io", "a Helm chart", "render it with helm template"),
        ("Application ApplicationSet", "argoproj.io", "the source it names", "render that: argocd app manifests NAME"),
        ("Template", "template.openshift.io", "its objects and parameters", "render it: oc process -f FILE"),
    ):
        for kind in kinds.split():
            yield CustomKind(kind, group, built=built, hint=hint or FROM_CLUSTER)


CUSTOM_KINDS: dict[tuple[str, str], CustomKind] = {
    (each.kind, each.group): each for each in (*_holders(), *OPERATOR_KINDS, *_builders())
}
"""By kind and API group."""


def custom_kind(kind: str, api_version: str) -> CustomKind | None:
    """Return what is known of a kind of custom resources."""
    return CUSTOM_KINDS.get((kind, group_of(api_version)))


def configured_kind(kind: str, path: str) -> CustomKind:
    """Return a kind as a user describes it: by the path to its pod template."""
    return CustomKind(kind, "", (Template(path.replace("[*]", ".*").replace("[]", ".*")),))
