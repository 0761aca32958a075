// The data of a page: what `podqos simulate -o json` prints. The names follow src/podqos/report/simulation/view.py.

export type QOSClass = "Guaranteed" | "Burstable" | "BestEffort";
export type By = "kernel" | "kubelet" | "scheduler" | "controller" | "user";
type Gaps = readonly (number | null)[];

export interface Container {
  name: string;
  oomScoreAdj: number;
  oomReason: string;
  memoryRequestBytes: number | null;
  memoryLimitBytes: number | null;
  cpuRequestMilli: number | null;
  cpuLimitMilli: number | null;
}

export interface Pod {
  key: string;
  node: string;
  workload: string;
  qosClass: QOSClass;
  priority: number;
  colour: string;
  containers: readonly Container[];
  memoryRequestBytes: number | null;
  memoryLimitBytes: number | null;
  cpuRequestMilli: number | null;
  cpuLimitMilli: number | null;
}

export interface Threshold {
  signal: string;
  hard: boolean;
  amount: number;
  gracePeriodSeconds: number;
  statement: string;
}

export interface PodSeries {
  pod: number;
  anonBytes: Gaps;
  activeFileBytes: Gaps;
  inactiveFileBytes: Gaps;
  cpuWantedMilli: Gaps;
  cpuGrantedMilli: Gaps;
}

export interface SignalSeries {
  signal: string;
  capacity: number;
  left: readonly number[];
}

export interface ConditionSpan {
  condition: string;
  startUs: number;
  endUs: number | null;
}

export interface EvictionRank {
  pod: number;
  usage: number | null;
  request: number;
  priority: number;
  overRequest: boolean;
  spared: string | null;
  reason: string;
}

export interface KernelRank {
  pod: number;
  container: string;
  usedBytes: number;
  oomScoreAdj: number;
  badnessBytes: number;
  reason: string;
}

export interface Orders {
  timeUs: number;
  availableBytes: number;
  kernelLeftBytes: number;
  kubelet: readonly EvictionRank[];
  kernel: readonly KernelRank[];
  reversedPairs: number;
}

export interface Node {
  name: string;
  memoryBytes: number;
  swapBytes: number;
  cpuMilli: number;
  kernelMinBytes: number;
  podsLimitBytes: number | null;
  thresholds: readonly Threshold[];
  timesUs: readonly number[];
  availableBytes: readonly number[];
  freeBytes: readonly number[];
  systemBytes: readonly number[];
  pods: readonly PodSeries[];
  signals: readonly SignalSeries[];
  conditions: readonly ConditionSpan[];
  orders: readonly Orders[];
}

export interface Saving {
  change: string;
  effect: string;
  saves: boolean;
  edits: readonly string[];
}

export interface Kill {
  timeUs: number;
  node: string;
  by: By;
  pod: string;
  qosClass: QOSClass | null;
  container: string | null;
  title: string;
  reasons: readonly string[];
  kernelPlace: number | null;
  kubeletPlace: number | null;
  wouldEvict: string | null;
  savings: readonly Saving[];
}

export interface EventLine {
  timeUs: number;
  node: string;
  kind: string;
  by: By | null;
  pod: string | null;
  container: string | null;
  text: string;
  firstPod: string | null;
}

export interface RepeatedEvictions {
  pod: string;
  times: number;
  firstUs: number;
  lastUs: number;
}

export interface WorkloadSummary {
  workload: string;
  qosClass: QOSClass;
  priority: number;
  pods: number;
  untouched: number;
  oomKills: number;
  evictions: number;
  restarts: number;
  rejections: number;
  downtimeUs: number;
  throttledUs: number;
}

export interface Summary {
  nodes: number;
  pods: number;
  untouched: number;
  oomKills: number;
  evictions: number;
  restarts: number;
  rejections: number;
  downtimeUs: number;
  oomKillsByLevel: Readonly<Record<string, number>>;
  evictionsBySignal: Readonly<Record<string, number>>;
  workloads: readonly WorkloadSummary[];
  repeatedEvictions: readonly RepeatedEvictions[];
}

export interface Run {
  name: string;
  description: string;
  seed: number;
  endUs: number;
  kubernetesVersion: string;
  policy: string;
  summary: Summary;
  pods: readonly Pod[];
  nodes: readonly Node[];
  kills: readonly Kill[];
  events: readonly EventLine[];
}

/** Read the data written into the page; null where the page was opened bare. */
export function readRun(): Run | null {
  const text = document.getElementById("run")?.textContent ?? "null";
  return JSON.parse(text) as Run | null;
}
