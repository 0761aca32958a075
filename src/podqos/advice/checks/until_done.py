"""Which pods end by themselves: batch work that is repeated when it fails is not long-running."""

from __future__ import annotations

from podqos.model.pod import Workload

_BATCH_KINDS = frozenset(
    (
        "Job CronJob "
        # Argo
        "Workflow WorkflowTemplate ClusterWorkflowTemplate CronWorkflow "
        "Experiment AnalysisTemplate ClusterAnalysisTemplate AnalysisRun "
        # Tekton
        "Task ClusterTask TaskRun Pipeline PipelineRun StepAction "
        # Kubeflow
        "MPIJob TFJob PyTorchJob MXJob XGBoostJob PaddleJob JAXJob TrainJob TrainingRuntime ClusterTrainingRuntime "
        # others
        "JobSet RayJob RayCronJob SparkApplication ScheduledSparkApplication BroadcastJob AdvancedCronJob ScaledJob"
    ).split()
)
_ENDS = ("Never", "OnFailure")


def runs_until_done(workload: Workload) -> bool:
    """Whether its pods end: by their kind, or because they are not restarted when they succeed."""
    return workload.kind in _BATCH_KINDS or workload.pod.spec.restart_policy in _ENDS
