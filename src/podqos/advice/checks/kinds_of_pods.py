"""What the kind of a workload says about its pods: that they end by themselves, or that an operator completes them."""

from __future__ import annotations

from podqos.model.pod import Workload

_ARGO = "Workflow WorkflowTemplate ClusterWorkflowTemplate CronWorkflow Experiment AnalysisTemplate"
_TEKTON = "Task ClusterTask TaskRun Pipeline PipelineRun StepAction"
_KUBEFLOW = "MPIJob TFJob PyTorchJob MXJob XGBoostJob PaddleJob JAXJob TrainJob TrainingRuntime ClusterTrainingRuntime"
_OTHERS = "JobSet RayJob RayCronJob SparkApplication ScheduledSparkApplication BroadcastJob AdvancedCronJob ScaledJob"
_BATCH_KINDS = frozenset(
    f"Job CronJob ClusterAnalysisTemplate AnalysisRun {_ARGO} {_TEKTON} {_KUBEFLOW} {_OTHERS}".split()
)
_ENDS = ("Never", "OnFailure")
# Operators that give containers resources where the object states none.
_COMPLETED_KINDS = frozenset(
    {
        *("Elasticsearch", "Kibana", "Beat", "Agent", "Logstash", "ApmServer", "EnterpriseSearch", "ElasticMapsServer"),
        *("InferenceService", "ServingRuntime", "ClusterServingRuntime", "SeldonDeployment"),
    }
)


def runs_until_done(workload: Workload) -> bool:
    """Whether its pods end: by their kind, or because they are not restarted when they succeed."""
    return workload.kind in _BATCH_KINDS or workload.pod.spec.restart_policy in _ENDS


def is_completed_by_operator(workload: Workload) -> bool:
    """Whether its operator has defaults for resources: what the object leaves out, its pods need not lack."""
    return workload.kind in _COMPLETED_KINDS
