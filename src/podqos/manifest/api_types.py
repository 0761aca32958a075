"""Every field of pods and workloads, at every depth. Written by ``tools/api_types.py``; do not edit.

Source: the OpenAPI documents of a Kubernetes 1.36 API server, k8s.io/api/{core,apps,batch}/v1/types.go,
apimachinery's meta/v1. What is new in 1.37 (evictionResponders, bindMountOptions, …) is added from its types.go.
"""

from __future__ import annotations

from functools import cache

_TABLE = """\
AWSElasticBlockStoreVolumeSource: fsType=string partition=int32 readOnly=bool volumeID=string
Affinity: nodeAffinity=v1.NodeAffinity podAffinity=v1.PodAffinity podAntiAffinity=v1.PodAntiAffinity
AppArmorProfile: localhostProfile=string type=v1.AppArmorProfileType
AzureDiskVolumeSource: cachingMode=v1.AzureDataDiskCachingMode diskName=string diskURI=string fsType=string
 kind=v1.AzureDataDiskKind readOnly=bool
AzureFileVolumeSource: readOnly=bool secretName=string shareName=string
CSIVolumeSource: driver=string fsType=string nodePublishSecretRef=v1.LocalObjectReference readOnly=bool
 volumeAttributes=map[string]string
Capabilities: add=[]v1.Capability drop=[]v1.Capability
CephFSVolumeSource: monitors=[]string path=string readOnly=bool secretFile=string secretRef=v1.LocalObjectReference
 user=string
CinderVolumeSource: fsType=string readOnly=bool secretRef=v1.LocalObjectReference volumeID=string
ClusterTrustBundleProjection: labelSelector=v1.LabelSelector name=string optional=bool path=string signerName=string
 user=int64
ConfigMapEnvSource: name=LocalObjectReference>string optional=bool
ConfigMapKeySelector: key=string name=LocalObjectReference>string optional=bool
ConfigMapProjection: items=[]v1.KeyToPath name=LocalObjectReference>string optional=bool
ConfigMapVolumeSource: defaultMode=int32 defaultUser=int64 items=[]v1.KeyToPath name=LocalObjectReference>string
 optional=bool
Container: args=[]string command=[]string env=[]v1.EnvVar envFrom=[]v1.EnvFromSource image=string
 imagePullPolicy=v1.PullPolicy lifecycle=v1.Lifecycle livenessProbe=v1.Probe name=string ports=[]v1.ContainerPort
 readinessProbe=v1.Probe resizePolicy=[]v1.ContainerResizePolicy resources=v1.ResourceRequirements
 restartPolicy=v1.ContainerRestartPolicy restartPolicyRules=[]v1.ContainerRestartRule
 securityContext=v1.SecurityContext startupProbe=v1.Probe stdin=bool stdinOnce=bool terminationMessagePath=string
 terminationMessagePolicy=v1.TerminationMessagePolicy tty=bool volumeDevices=[]v1.VolumeDevice
 volumeMounts=[]v1.VolumeMount workingDir=string
ContainerExtendedResourceRequest: containerName=string requestName=string resourceName=string
ContainerPort: containerPort=int32 hostIP=string hostPort=int32 name=string protocol=v1.Protocol
ContainerResizePolicy: resourceName=v1.ResourceName restartPolicy=v1.ResourceResizeRestartPolicy
ContainerRestartRule: action=v1.ContainerRestartRuleAction exitCodes=v1.ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator=v1.ContainerRestartRuleOnExitCodesOperator values=[]int32
ContainerState: running=v1.ContainerStateRunning terminated=v1.ContainerStateTerminated
 waiting=v1.ContainerStateWaiting
ContainerStateRunning: startedAt=v1.Time
ContainerStateTerminated: containerID=string exitCode=int32 finishedAt=v1.Time message=string reason=string
 signal=int32 startedAt=v1.Time
ContainerStateWaiting: message=string reason=string
ContainerStatus: allocatedResources=v1.ResourceList allocatedResourcesStatus=[]v1.ResourceStatus containerID=string
 image=string imageID=string lastState=v1.ContainerState name=string ready=bool resources=v1.ResourceRequirements
 restartCount=int32 started=bool state=v1.ContainerState stopSignal=v1.Signal user=v1.ContainerUser
 volumeMounts=[]v1.VolumeMountStatus
ContainerUser: linux=v1.LinuxContainerUser
CronJob: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta spec=v1.CronJobSpec
 status=v1.CronJobStatus
CronJobSpec: concurrencyPolicy=v1.ConcurrencyPolicy failedJobsHistoryLimit=int32 jobTemplate=v1.JobTemplateSpec
 schedule=string startingDeadlineSeconds=int64 successfulJobsHistoryLimit=int32 suspend=bool timeZone=string
CronJobStatus: active=[]v1.ObjectReference lastScheduleTime=v1.Time lastSuccessfulTime=v1.Time
DaemonSet: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta spec=v1.DaemonSetSpec
 status=v1.DaemonSetStatus
DaemonSetCondition: lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus
 type=v1.DaemonSetConditionType
DaemonSetSpec: minReadySeconds=int32 revisionHistoryLimit=int32 selector=v1.LabelSelector template=v1.PodTemplateSpec
 updateStrategy=v1.DaemonSetUpdateStrategy
DaemonSetStatus: collisionCount=int32 conditions=[]v1.DaemonSetCondition currentNumberScheduled=int32
 desiredNumberScheduled=int32 numberAvailable=int32 numberMisscheduled=int32 numberReady=int32 numberUnavailable=int32
 observedGeneration=int64 updatedNumberScheduled=int32
DaemonSetUpdateStrategy: rollingUpdate=v1.RollingUpdateDaemonSet type=v1.DaemonSetUpdateStrategyType
Deployment: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta spec=v1.DeploymentSpec
 status=v1.DeploymentStatus
DeploymentCondition: lastTransitionTime=v1.Time lastUpdateTime=v1.Time message=string reason=string
 status=v1.ConditionStatus type=v1.DeploymentConditionType
DeploymentSpec: minReadySeconds=int32 paused=bool progressDeadlineSeconds=int32 replicas=int32
 revisionHistoryLimit=int32 selector=v1.LabelSelector strategy=v1.DeploymentStrategy template=v1.PodTemplateSpec
DeploymentStatus: availableReplicas=int32 collisionCount=int32 conditions=[]v1.DeploymentCondition
 observedGeneration=int64 readyReplicas=int32 replicas=int32 terminatingReplicas=int32 unavailableReplicas=int32
 updatedReplicas=int32
DeploymentStrategy: rollingUpdate=v1.RollingUpdateDeployment type=v1.DeploymentStrategyType
DownwardAPIProjection: items=[]v1.DownwardAPIVolumeFile
DownwardAPIVolumeFile: fieldRef=v1.ObjectFieldSelector mode=int32 path=string
 resourceFieldRef=v1.ResourceFieldSelector user=int64
DownwardAPIVolumeSource: defaultMode=int32 defaultUser=int64 items=[]v1.DownwardAPIVolumeFile
EmptyDirVolumeSource: medium=v1.StorageMedium mode=int32 sizeLimit=resource.Quantity
EnvFromSource: configMapRef=v1.ConfigMapEnvSource prefix=string secretRef=v1.SecretEnvSource
EnvVar: name=string value=string valueFrom=v1.EnvVarSource
EnvVarSource: configMapKeyRef=v1.ConfigMapKeySelector fieldRef=v1.ObjectFieldSelector fileKeyRef=v1.FileKeySelector
 resourceFieldRef=v1.ResourceFieldSelector secretKeyRef=v1.SecretKeySelector
EphemeralContainer: args=EphemeralContainerCommon>[]string command=EphemeralContainerCommon>[]string
 env=EphemeralContainerCommon>[]v1.EnvVar envFrom=EphemeralContainerCommon>[]v1.EnvFromSource
 image=EphemeralContainerCommon>string imagePullPolicy=EphemeralContainerCommon>v1.PullPolicy
 lifecycle=EphemeralContainerCommon>v1.Lifecycle livenessProbe=EphemeralContainerCommon>v1.Probe
 name=EphemeralContainerCommon>string ports=EphemeralContainerCommon>[]v1.ContainerPort
 readinessProbe=EphemeralContainerCommon>v1.Probe resizePolicy=EphemeralContainerCommon>[]v1.ContainerResizePolicy
 resources=EphemeralContainerCommon>v1.ResourceRequirements
 restartPolicy=EphemeralContainerCommon>v1.ContainerRestartPolicy
 restartPolicyRules=EphemeralContainerCommon>[]v1.ContainerRestartRule
 securityContext=EphemeralContainerCommon>v1.SecurityContext startupProbe=EphemeralContainerCommon>v1.Probe
 stdin=EphemeralContainerCommon>bool stdinOnce=EphemeralContainerCommon>bool targetContainerName=string
 terminationMessagePath=EphemeralContainerCommon>string
 terminationMessagePolicy=EphemeralContainerCommon>v1.TerminationMessagePolicy tty=EphemeralContainerCommon>bool
 volumeDevices=EphemeralContainerCommon>[]v1.VolumeDevice volumeMounts=EphemeralContainerCommon>[]v1.VolumeMount
 workingDir=EphemeralContainerCommon>string
EphemeralVolumeSource: volumeClaimTemplate=v1.PersistentVolumeClaimTemplate
EvictionResponder: name=string priority=int32
ExecAction: command=[]string
FCVolumeSource: fsType=string lun=int32 readOnly=bool targetWWNs=[]string wwids=[]string
FileKeySelector: key=string optional=bool path=string volumeName=string
FlexVolumeSource: driver=string fsType=string options=map[string]string readOnly=bool
 secretRef=v1.LocalObjectReference
FlockerVolumeSource: datasetName=string datasetUUID=string
GCEPersistentDiskVolumeSource: fsType=string partition=int32 pdName=string readOnly=bool
GRPCAction: mode=v1.GRPCMode port=int32 service=string
GitRepoVolumeSource: directory=string repository=string revision=string
GlusterfsVolumeSource: endpoints=string path=string readOnly=bool
HTTPGetAction: host=string httpHeaders=[]v1.HTTPHeader path=string port=intstr.IntOrString protocol=v1.HTTPProtocol
 scheme=v1.URIScheme
HTTPHeader: name=string value=string
HostAlias: hostnames=[]string ip=string
HostIP: ip=string
HostPathVolumeSource: path=string type=v1.HostPathType
ISCSIVolumeSource: chapAuthDiscovery=bool chapAuthSession=bool fsType=string initiatorName=string iqn=string
 iscsiInterface=string lun=int32 portals=[]string readOnly=bool secretRef=v1.LocalObjectReference targetPortal=string
ImageVolumeSource: pullPolicy=v1.PullPolicy reference=string
ImageVolumeStatus: imageRef=string
Job: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta spec=v1.JobSpec status=v1.JobStatus
JobCondition: lastProbeTime=v1.Time lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus
 type=v1.JobConditionType
JobSpec: activeDeadlineSeconds=int64 backoffLimit=int32 backoffLimitPerIndex=int32 completionMode=v1.CompletionMode
 completions=int32 managedBy=string manualSelector=bool maxFailedIndexes=int32 parallelism=int32
 podFailurePolicy=v1.PodFailurePolicy podReplacementPolicy=v1.PodReplacementPolicy selector=v1.LabelSelector
 successPolicy=v1.SuccessPolicy suspend=bool template=v1.PodTemplateSpec ttlSecondsAfterFinished=int32
JobStatus: active=int32 completedIndexes=string completionTime=v1.Time conditions=[]v1.JobCondition failed=int32
 failedIndexes=string ready=int32 startTime=v1.Time succeeded=int32 terminating=int32
 uncountedTerminatedPods=v1.UncountedTerminatedPods
JobTemplateSpec: metadata=v1.ObjectMeta spec=v1.JobSpec
KeyToPath: key=string mode=int32 path=string user=int64
LabelSelector: matchExpressions=[]v1.LabelSelectorRequirement matchLabels=map[string]string
LabelSelectorRequirement: key=string operator=v1.LabelSelectorOperator values=[]string
Lifecycle: postStart=v1.LifecycleHandler preStop=v1.LifecycleHandler stopSignal=v1.Signal
LifecycleHandler: exec=v1.ExecAction httpGet=v1.HTTPGetAction sleep=v1.SleepAction tcpSocket=v1.TCPSocketAction
LinuxContainerUser: gid=int64 supplementalGroups=[]int64 uid=int64
LocalObjectReference: name=string
ManagedFieldsEntry: apiVersion=string fieldsType=string fieldsV1=v1.FieldsV1 manager=string
 operation=v1.ManagedFieldsOperationType subresource=string time=v1.Time
ModifyVolumeStatus: status=v1.PersistentVolumeClaimModifyVolumeStatus targetVolumeAttributesClassName=string
NFSVolumeSource: path=string readOnly=bool server=string
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution=[]v1.PreferredSchedulingTerm
 requiredDuringSchedulingIgnoredDuringExecution=v1.NodeSelector
NodeAllocatableResourceClaimStatus: containers=[]string resourceClaimName=string
 resources=map[v1.ResourceName]resource.Quantity
NodeSelector: nodeSelectorTerms=[]v1.NodeSelectorTerm
NodeSelectorRequirement: key=string operator=v1.NodeSelectorOperator values=[]string
NodeSelectorTerm: matchExpressions=[]v1.NodeSelectorRequirement matchFields=[]v1.NodeSelectorRequirement
ObjectFieldSelector: apiVersion=string fieldPath=string
ObjectMeta: annotations=map[string]string creationTimestamp=v1.Time deletionGracePeriodSeconds=int64
 deletionTimestamp=v1.Time finalizers=[]string generateName=string generation=int64 labels=map[string]string
 managedFields=[]v1.ManagedFieldsEntry name=string namespace=string ownerReferences=[]v1.OwnerReference
 resourceVersion=string selfLink=string uid=types.UID
ObjectReference: apiVersion=string fieldPath=string kind=string name=string namespace=string resourceVersion=string
 uid=types.UID
OwnerReference: apiVersion=string blockOwnerDeletion=bool controller=bool kind=string name=string uid=types.UID
PersistentVolumeClaim: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta
 spec=v1.PersistentVolumeClaimSpec status=v1.PersistentVolumeClaimStatus
PersistentVolumeClaimCondition: lastProbeTime=v1.Time lastTransitionTime=v1.Time message=string reason=string
 status=v1.ConditionStatus type=v1.PersistentVolumeClaimConditionType
PersistentVolumeClaimSpec: accessModes=[]v1.PersistentVolumeAccessMode dataSource=v1.TypedLocalObjectReference
 dataSourceRef=v1.TypedObjectReference resources=v1.VolumeResourceRequirements selector=v1.LabelSelector
 storageClassName=string volumeAttributesClassName=string volumeMode=v1.PersistentVolumeMode volumeName=string
PersistentVolumeClaimStatus: accessModes=[]v1.PersistentVolumeAccessMode
 allocatedResourceStatuses=map[v1.ResourceName]v1.ClaimResourceStatus allocatedResources=v1.ResourceList
 capacity=v1.ResourceList conditions=[]v1.PersistentVolumeClaimCondition currentVolumeAttributesClassName=string
 modifyVolumeStatus=v1.ModifyVolumeStatus phase=v1.PersistentVolumeClaimPhase
PersistentVolumeClaimTemplate: metadata=v1.ObjectMeta spec=v1.PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName=string readOnly=bool
PhotonPersistentDiskVolumeSource: fsType=string pdID=string
Pod: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta spec=v1.PodSpec status=v1.PodStatus
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution=[]v1.WeightedPodAffinityTerm
 requiredDuringSchedulingIgnoredDuringExecution=[]v1.PodAffinityTerm
PodAffinityTerm: labelSelector=v1.LabelSelector matchLabelKeys=[]string mismatchLabelKeys=[]string
 namespaceSelector=v1.LabelSelector namespaces=[]string topologyKey=string
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution=[]v1.WeightedPodAffinityTerm
 requiredDuringSchedulingIgnoredDuringExecution=[]v1.PodAffinityTerm
PodCertificateProjection: certificateChainPath=string credentialBundlePath=string keyPath=string keyType=string
 maxExpirationSeconds=int32 signerName=string user=int64 userAnnotations=map[string]string
PodCondition: lastProbeTime=v1.Time lastTransitionTime=v1.Time message=string observedGeneration=int64 reason=string
 status=v1.ConditionStatus type=v1.PodConditionType
PodDNSConfig: nameservers=[]string options=[]v1.PodDNSConfigOption searches=[]string
PodDNSConfigOption: name=string value=string
PodExtendedResourceClaimStatus: requestMappings=[]v1.ContainerExtendedResourceRequest resourceClaimName=string
PodFailurePolicy: rules=[]v1.PodFailurePolicyRule
PodFailurePolicyOnExitCodesRequirement: containerName=string operator=v1.PodFailurePolicyOnExitCodesOperator
 values=[]int32
PodFailurePolicyOnPodConditionsPattern: status=v1.ConditionStatus type=v1.PodConditionType
PodFailurePolicyRule: action=v1.PodFailurePolicyAction onExitCodes=v1.PodFailurePolicyOnExitCodesRequirement
 onPodConditions=[]v1.PodFailurePolicyOnPodConditionsPattern
PodIP: ip=string
PodOS: name=v1.OSName
PodReadinessGate: conditionType=v1.PodConditionType
PodResourceClaim: name=string resourceClaimName=string resourceClaimTemplateName=string
PodResourceClaimStatus: name=string resourceClaimName=string
PodSchedulingGate: name=string
PodSchedulingGroup: podGroupName=string
PodSecurityContext: appArmorProfile=v1.AppArmorProfile fsGroup=int64 fsGroupChangePolicy=v1.PodFSGroupChangePolicy
 runAsGroup=int64 runAsNonRoot=bool runAsUser=int64 seLinuxChangePolicy=v1.PodSELinuxChangePolicy
 seLinuxOptions=v1.SELinuxOptions seccompProfile=v1.SeccompProfile supplementalGroups=[]int64
 supplementalGroupsPolicy=v1.SupplementalGroupsPolicy sysctls=[]v1.Sysctl
 windowsOptions=v1.WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds=int64 affinity=v1.Affinity automountServiceAccountToken=bool containers=[]v1.Container
 dnsConfig=v1.PodDNSConfig dnsPolicy=v1.DNSPolicy enableServiceLinks=bool ephemeralContainers=[]v1.EphemeralContainer
 evictionResponders=[]v1.EvictionResponder
 hostAliases=[]v1.HostAlias hostIPC=bool hostNetwork=bool hostPID=bool hostUsers=bool hostname=string
 hostnameOverride=string imagePullSecrets=[]v1.LocalObjectReference initContainers=[]v1.Container nodeName=string
 nodeSelector=map[string]string os=v1.PodOS overhead=v1.ResourceList preemptionPolicy=v1.PreemptionPolicy
 priority=int32 priorityClassName=string readinessGates=[]v1.PodReadinessGate resourceClaims=[]v1.PodResourceClaim
 resources=v1.ResourceRequirements restartPolicy=v1.RestartPolicy runtimeClassName=string schedulerName=string
 schedulingGates=[]v1.PodSchedulingGate schedulingGroup=v1.PodSchedulingGroup securityContext=v1.PodSecurityContext
 serviceAccount=string serviceAccountName=string setHostnameAsFQDN=bool shareProcessNamespace=bool subdomain=string
 terminationGracePeriodSeconds=int64 tolerations=[]v1.Toleration
 topologySpreadConstraints=[]v1.TopologySpreadConstraint volumes=[]v1.Volume
PodStatus: allocatedResources=v1.ResourceList conditions=[]v1.PodCondition containerStatuses=[]v1.ContainerStatus
 ephemeralContainerStatuses=[]v1.ContainerStatus extendedResourceClaimStatus=v1.PodExtendedResourceClaimStatus
 hostIP=string hostIPs=[]v1.HostIP initContainerStatuses=[]v1.ContainerStatus message=string
 nodeAllocatableResourceClaimStatuses=[]v1.NodeAllocatableResourceClaimStatus nominatedNodeName=string
 observedGeneration=int64 phase=v1.PodPhase podIP=string podIPs=[]v1.PodIP qosClass=v1.PodQOSClass reason=string
 resize=v1.PodResizeStatus resourceClaimStatuses=[]v1.PodResourceClaimStatus resources=v1.ResourceRequirements
 startTime=v1.Time
PodTemplate: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta template=v1.PodTemplateSpec
PodTemplateSpec: metadata=v1.ObjectMeta spec=v1.PodSpec
PortworxVolumeSource: fsType=string readOnly=bool volumeID=string
PreferredSchedulingTerm: preference=v1.NodeSelectorTerm weight=int32
Probe: exec=ProbeHandler>v1.ExecAction failureThreshold=int32 grpc=ProbeHandler>v1.GRPCAction
 httpGet=ProbeHandler>v1.HTTPGetAction initialDelaySeconds=int32 periodSeconds=int32 successThreshold=int32
 tcpSocket=ProbeHandler>v1.TCPSocketAction terminationGracePeriodSeconds=int64 timeoutSeconds=int32
ProjectedVolumeSource: defaultMode=int32 defaultUser=int64 sources=[]v1.VolumeProjection
QuobyteVolumeSource: group=string readOnly=bool registry=string tenant=string user=string volume=string
RBDVolumeSource: fsType=string image=string keyring=string monitors=[]string pool=string readOnly=bool
 secretRef=v1.LocalObjectReference user=string
ReplicaSet: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta spec=v1.ReplicaSetSpec
 status=v1.ReplicaSetStatus
ReplicaSetCondition: lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus
 type=v1.ReplicaSetConditionType
ReplicaSetSpec: minReadySeconds=int32 replicas=int32 selector=v1.LabelSelector template=v1.PodTemplateSpec
ReplicaSetStatus: availableReplicas=int32 conditions=[]v1.ReplicaSetCondition fullyLabeledReplicas=int32
 observedGeneration=int64 readyReplicas=int32 replicas=int32 terminatingReplicas=int32
ReplicationController: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta
 spec=v1.ReplicationControllerSpec status=v1.ReplicationControllerStatus
ReplicationControllerCondition: lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus
 type=v1.ReplicationControllerConditionType
ReplicationControllerSpec: minReadySeconds=int32 replicas=int32 selector=map[string]string template=v1.PodTemplateSpec
ReplicationControllerStatus: availableReplicas=int32 conditions=[]v1.ReplicationControllerCondition
 fullyLabeledReplicas=int32 observedGeneration=int64 readyReplicas=int32 replicas=int32
ResourceClaim: name=string request=string
ResourceFieldSelector: containerName=string divisor=resource.Quantity resource=string
ResourceHealth: health=v1.ResourceHealthStatus message=string resourceID=v1.ResourceID
ResourceRequirements: claims=[]v1.ResourceClaim limits=v1.ResourceList requests=v1.ResourceList
ResourceStatus: name=v1.ResourceName resources=[]v1.ResourceHealth
RollingUpdateDaemonSet: maxSurge=intstr.IntOrString maxUnavailable=intstr.IntOrString
RollingUpdateDeployment: maxSurge=intstr.IntOrString maxUnavailable=intstr.IntOrString
RollingUpdateStatefulSetStrategy: maxUnavailable=intstr.IntOrString partition=int32
SELinuxOptions: level=string role=string type=string user=string
ScaleIOVolumeSource: fsType=string gateway=string protectionDomain=string readOnly=bool
 secretRef=v1.LocalObjectReference sslEnabled=bool storageMode=string storagePool=string system=string
 volumeName=string
SeccompProfile: localhostProfile=string type=v1.SeccompProfileType
SecretEnvSource: name=LocalObjectReference>string optional=bool
SecretKeySelector: key=string name=LocalObjectReference>string optional=bool
SecretProjection: items=[]v1.KeyToPath name=LocalObjectReference>string optional=bool
SecretVolumeSource: defaultMode=int32 defaultUser=int64 items=[]v1.KeyToPath optional=bool secretName=string
SecurityContext: allowPrivilegeEscalation=bool appArmorProfile=v1.AppArmorProfile capabilities=v1.Capabilities
 privileged=bool procMount=v1.ProcMountType readOnlyRootFilesystem=bool runAsGroup=int64 runAsNonRoot=bool
 runAsUser=int64 seLinuxOptions=v1.SELinuxOptions seccompProfile=v1.SeccompProfile
 windowsOptions=v1.WindowsSecurityContextOptions
ServiceAccountTokenProjection: audience=string expirationSeconds=int64 path=string user=int64
SleepAction: seconds=int64
StatefulSet: apiVersion=TypeMeta>string kind=TypeMeta>string metadata=v1.ObjectMeta spec=v1.StatefulSetSpec
 status=v1.StatefulSetStatus
StatefulSetCondition: lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus
 type=v1.StatefulSetConditionType
StatefulSetOrdinals: start=int32
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted=v1.PersistentVolumeClaimRetentionPolicyType
 whenScaled=v1.PersistentVolumeClaimRetentionPolicyType
StatefulSetSpec: minReadySeconds=int32 ordinals=v1.StatefulSetOrdinals
 persistentVolumeClaimRetentionPolicy=v1.StatefulSetPersistentVolumeClaimRetentionPolicy
 podManagementPolicy=v1.PodManagementPolicyType replicas=int32 revisionHistoryLimit=int32 selector=v1.LabelSelector
 serviceName=string template=v1.PodTemplateSpec updateStrategy=v1.StatefulSetUpdateStrategy
 volumeClaimTemplates=[]v1.PersistentVolumeClaim
StatefulSetStatus: availableReplicas=int32 collisionCount=int32 conditions=[]v1.StatefulSetCondition
 currentReplicas=int32 currentRevision=string observedGeneration=int64 readyReplicas=int32 replicas=int32
 updateRevision=string updatedReplicas=int32
StatefulSetUpdateStrategy: rollingUpdate=v1.RollingUpdateStatefulSetStrategy type=v1.StatefulSetUpdateStrategyType
StorageOSVolumeSource: fsType=string readOnly=bool secretRef=v1.LocalObjectReference volumeName=string
 volumeNamespace=string
SuccessPolicy: rules=[]v1.SuccessPolicyRule
SuccessPolicyRule: succeededCount=int32 succeededIndexes=string
Sysctl: name=string value=string
TCPSocketAction: host=string port=intstr.IntOrString
Toleration: effect=v1.TaintEffect key=string operator=v1.TolerationOperator tolerationSeconds=int64 value=string
TopologySpreadConstraint: labelSelector=v1.LabelSelector matchLabelKeys=[]string maxSkew=int32 minDomains=int32
 nodeAffinityPolicy=v1.NodeInclusionPolicy nodeTaintsPolicy=v1.NodeInclusionPolicy topologyKey=string
 whenUnsatisfiable=v1.UnsatisfiableConstraintAction
TypedLocalObjectReference: apiGroup=string kind=string name=string
TypedObjectReference: apiGroup=string kind=string name=string namespace=string
UncountedTerminatedPods: failed=[]types.UID succeeded=[]types.UID
Volume: awsElasticBlockStore=VolumeSource>v1.AWSElasticBlockStoreVolumeSource
 azureDisk=VolumeSource>v1.AzureDiskVolumeSource azureFile=VolumeSource>v1.AzureFileVolumeSource
 cephfs=VolumeSource>v1.CephFSVolumeSource cinder=VolumeSource>v1.CinderVolumeSource
 configMap=VolumeSource>v1.ConfigMapVolumeSource csi=VolumeSource>v1.CSIVolumeSource
 downwardAPI=VolumeSource>v1.DownwardAPIVolumeSource emptyDir=VolumeSource>v1.EmptyDirVolumeSource
 ephemeral=VolumeSource>v1.EphemeralVolumeSource fc=VolumeSource>v1.FCVolumeSource
 flexVolume=VolumeSource>v1.FlexVolumeSource flocker=VolumeSource>v1.FlockerVolumeSource
 gcePersistentDisk=VolumeSource>v1.GCEPersistentDiskVolumeSource gitRepo=VolumeSource>v1.GitRepoVolumeSource
 glusterfs=VolumeSource>v1.GlusterfsVolumeSource hostPath=VolumeSource>v1.HostPathVolumeSource
 image=VolumeSource>v1.ImageVolumeSource iscsi=VolumeSource>v1.ISCSIVolumeSource name=string
 nfs=VolumeSource>v1.NFSVolumeSource persistentVolumeClaim=VolumeSource>v1.PersistentVolumeClaimVolumeSource
 photonPersistentDisk=VolumeSource>v1.PhotonPersistentDiskVolumeSource
 portworxVolume=VolumeSource>v1.PortworxVolumeSource projected=VolumeSource>v1.ProjectedVolumeSource
 quobyte=VolumeSource>v1.QuobyteVolumeSource rbd=VolumeSource>v1.RBDVolumeSource
 scaleIO=VolumeSource>v1.ScaleIOVolumeSource secret=VolumeSource>v1.SecretVolumeSource
 storageos=VolumeSource>v1.StorageOSVolumeSource vsphereVolume=VolumeSource>v1.VsphereVirtualDiskVolumeSource
VolumeDevice: devicePath=string name=string
VolumeMount: bindMountOptions=[]v1.BindMountOption mountPath=string mountPropagation=v1.MountPropagationMode name=string
 readOnly=bool recursiveReadOnly=v1.RecursiveReadOnlyMode subPath=string subPathExpr=string
VolumeMountStatus: mountPath=string name=string readOnly=bool recursiveReadOnly=v1.RecursiveReadOnlyMode
 volumeStatus=v1.VolumeStatus
VolumeProjection: clusterTrustBundle=v1.ClusterTrustBundleProjection configMap=v1.ConfigMapProjection
 downwardAPI=v1.DownwardAPIProjection podCertificate=v1.PodCertificateProjection secret=v1.SecretProjection
 serviceAccountToken=v1.ServiceAccountTokenProjection
VolumeResourceRequirements: limits=v1.ResourceList requests=v1.ResourceList
VolumeStatus: image=v1.ImageVolumeStatus
VsphereVirtualDiskVolumeSource: fsType=string storagePolicyID=string storagePolicyName=string volumePath=string
WeightedPodAffinityTerm: podAffinityTerm=v1.PodAffinityTerm weight=int32
WindowsSecurityContextOptions: gmsaCredentialSpec=string gmsaCredentialSpecName=string hostProcess=bool
 runAsUserName=string
"""


@cache
def api_types() -> dict[str, dict[str, str]]:
    """Return the fields of each struct with their types, as Go writes them: ``Container`` → ``args`` → ``[]string``.

    ``VolumeSource>v1.EmptyDirVolumeSource`` is the type of a field that comes with an embedded struct.
    """
    lines = _TABLE.replace("\n ", " ").splitlines()
    return {
        name: dict(field.split("=", 1) for field in fields.split())
        for name, _, fields in (line.partition(":") for line in lines)
    }
