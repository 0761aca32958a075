// The cluster as the view needs it: pods by node in the order that is asked for, and which of them the filters let through.

import type { ClusterView, NodePanel, PodBlock } from "../../schema";

export type Order = "kubelet" | "kernel";
export type Size = "used" | "requested" | "limit";

export interface Filters {
  namespace: string;
  qosClass: string;
  priority: string;
  text: string;
}

export interface Panel {
  node: NodePanel;
  /** Empty for pods that wait for a node. */
  title: string;
  /** Indexes into the pods, first to go first. */
  pods: readonly number[];
}

export interface Model {
  view: ClusterView;
  pods: readonly PodBlock[];
  keys: readonly string[];
  panels: readonly Panel[];
  namespaces: readonly string[];
  priorities: readonly number[];
  hasUsage: boolean;
  /** In small letters, what a filter looks for. */
  text: readonly string[];
}

export const ASSUMED = "One node (assumed)";
export const WAITING = "Without a node";

export function modelOf(view: ClusterView, order: Order): Model {
  const { pods } = view;
  const keys = pods.map((pod) => `${pod.namespace}/${pod.name}`);
  const byNode = new Map<string, number[]>(view.nodes.map((node) => [node.name, []]));
  const waiting: number[] = [];
  pods.forEach((pod, index) => {
    const isWaiting = pod.node === "" && pod.evictionPlace === null && !view.nodes.some((node) => node.isAssumed);
    (isWaiting ? waiting : (byNode.get(pod.node) ?? waiting)).push(index);
  });
  const place = (index: number) => placeOf(pods[index] as PodBlock, order) ?? Infinity;
  const panels = view.nodes.map((node) => ({
    node,
    title: node.isAssumed && !node.name ? ASSUMED : node.name,
    // By places first, and where there are none as they come.
    pods: (byNode.get(node.name) ?? []).toSorted((one, other) => (place(one) === place(other) ? one - other : place(one) - place(other))),
  }));
  if (waiting.length > 0) panels.push({ node: nowhere(waiting.length), title: WAITING, pods: waiting });
  return {
    view,
    pods,
    keys,
    panels,
    namespaces: [...new Set(pods.map((pod) => pod.namespace))].toSorted(),
    priorities: [...new Set(pods.map((pod) => pod.priority))].toSorted((one, other) => one - other),
    hasUsage: pods.some((pod) => pod.usedBytes !== null),
    text: pods.map((pod, index) => `${keys[index]} ${pod.workload} ${pod.node}`.toLowerCase()),
  };
}

const NOTHING = { allocatable: 0, requests: 0, limits: 0, used: null };

/** The panel of those that have no node. */
function nowhere(pods: number): NodePanel {
  return {
    name: "", pods, mostPods: null, memory: NOTHING, cpu: NOTHING, conditions: [], headroomBytes: null, isMeasured: false, nextEvicted: null, nextKilled: null,
    memoryBytes: 0, usedBytes: null, thresholdBytes: 0, isAssumed: false, reversedPairs: 0, problem: "",
  };
}

export function placeOf(pod: PodBlock, order: Order): number | null {
  return order === "kernel" ? pod.killPlace : pod.evictionPlace;
}

/** How large a pod is drawn; without a limit it may take all there is, and is drawn as what it requests. */
export function sizeOf(pod: PodBlock, size: Size): number {
  if (size === "used") return pod.usedBytes ?? pod.requestedBytes;
  return size === "limit" ? (pod.limitBytes ?? pod.requestedBytes) : pod.requestedBytes;
}

/** Return which pods the filters let through, one byte each, and how many these are. */
export function matching(model: Model, filters: Filters): { mask: Uint8Array; count: number } {
  const words = filters.text.toLowerCase().split(/\s+/).filter(Boolean);
  const atLeast = filters.priority === "" ? -Infinity : Number(filters.priority);
  const mask = new Uint8Array(model.pods.length);
  let count = 0;
  model.pods.forEach((pod, index) => {
    const isIn =
      (filters.namespace === "" || pod.namespace === filters.namespace) &&
      (filters.qosClass === "" || pod.qosClass === filters.qosClass) &&
      pod.priority >= atLeast &&
      words.every((word) => (model.text[index] as string).includes(word));
    if (isIn) {
      mask[index] = 1;
      count++;
    }
  });
  return { mask, count };
}
