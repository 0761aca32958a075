// The cluster as the view needs it: pods by node in the order that is asked for, and which of them the filters let through.
// What did not change stays the same object from one state to the next, so that it is not drawn again.

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
  title: string;
  order: Order;
  /** First to go first. */
  pods: readonly PodBlock[];
  /** The same as they came. */
  given: readonly PodBlock[];
}

export const ASSUMED = "One node (assumed)";
/** The panel of pods that wait for a node. */
export const WAITING = "Without a node";

let last: ReadonlyMap<string, Panel> = new Map();

/** Return the nodes with their pods; one that is as it was the last time is the same panel. */
export function panelsOf(view: ClusterView, order: Order): readonly Panel[] {
  const byNode = new Map<string, PodBlock[]>(view.nodes.map((node) => [node.name, []]));
  const hasAssumed = view.nodes.some((node) => node.isAssumed);
  const waiting: PodBlock[] = [];
  for (const pod of view.pods) {
    const isWaiting = pod.node === "" && pod.evictionPlace === null && !hasAssumed;
    (isWaiting ? waiting : (byNode.get(pod.node) ?? waiting)).push(pod);
  }
  const panels = view.nodes.map((node) => panelOf(node, node.isAssumed && !node.name ? ASSUMED : node.name, order, byNode.get(node.name) ?? []));
  if (waiting.length > 0) panels.push({ node: nowhere(waiting.length), title: WAITING, order, pods: waiting, given: waiting });
  last = new Map(panels.map((panel) => [panel.title, panel]));
  return panels;
}

function panelOf(node: NodePanel, title: string, order: Order, given: readonly PodBlock[]): Panel {
  const before = last.get(title);
  if (before?.node === node && before.order === order && before.given.length === given.length && given.every((pod, index) => pod === before.given[index])) return before;
  // By places, and where there are none as they come.
  const place = (pod: PodBlock) => placeOf(pod, order) ?? Number.MAX_SAFE_INTEGER;
  return { node, title, order, given, pods: given.toSorted((one, other) => place(one) - place(other)) };
}

const NOTHING = { allocatable: 0, requests: 0, limits: 0, used: null };

/** The panel of those that have no node. */
function nowhere(pods: number): NodePanel {
  return {
    name: "", pods, mostPods: null, memory: NOTHING, cpu: NOTHING, conditions: [], headroomBytes: null, isMeasured: false, nextEvicted: null, nextKilled: null,
    memoryBytes: 0, usedBytes: null, thresholdBytes: 0, isAssumed: false, reversedPairs: 0, problem: "",
  };
}

export function keyOf(pod: PodBlock): string {
  return `${pod.namespace}/${pod.name}`;
}

export function placeOf(pod: PodBlock, order: Order): number | null {
  return order === "kernel" ? pod.killPlace : pod.evictionPlace;
}

export function hasUsage(view: ClusterView): boolean {
  return view.pods.some((pod) => pod.usedBytes !== null);
}

/** How large a pod is drawn; without a limit it may take all there is, and is drawn as what it requests. */
export function sizeOf(pod: PodBlock, size: Size): number {
  if (size === "used") return pod.usedBytes ?? pod.requestedBytes;
  return size === "limit" ? (pod.limitBytes ?? pod.requestedBytes) : pod.requestedBytes;
}

const texts = new WeakMap<PodBlock, string>();

/** In small letters, what is looked for in a pod. */
function textOf(pod: PodBlock): string {
  let text = texts.get(pod);
  if (text === undefined) texts.set(pod, (text = `${keyOf(pod)} ${pod.workload} ${pod.node}`.toLowerCase()));
  return text;
}

export type Fits = (pod: PodBlock) => boolean;

/** Return what the filters let through. */
export function fitting(filters: Filters): Fits {
  const { namespace, qosClass, priority, text } = filters;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const atLeast = priority === "" ? -Infinity : Number(priority);
  return (pod) =>
    (namespace === "" || pod.namespace === namespace) &&
    (qosClass === "" || pod.qosClass === qosClass) &&
    pod.priority >= atLeast &&
    (words.length === 0 || words.every((word) => textOf(pod).includes(word)));
}

/** A node, and which of its pods the filters let through. */
export interface Match {
  panel: Panel;
  /** One byte each, in the order of the panel; null where all do. */
  mask: Uint8Array | null;
  count: number;
}

const masks = new WeakMap<Panel, Uint8Array>();

/** Return which pods of each node fit; a mask that is as it was the last time is the same mask. */
export function matching(panels: readonly Panel[], fits: Fits): readonly Match[] {
  return panels.map((panel) => {
    const mask = new Uint8Array(panel.pods.length);
    const before = masks.get(panel);
    let count = 0;
    let isOther = before === undefined;
    for (let index = 0; index < mask.length; index++) {
      const isIn = fits(panel.pods[index] as PodBlock) ? 1 : 0;
      mask[index] = isIn;
      count += isIn;
      isOther ||= before?.[index] !== isIn;
    }
    if (count === mask.length) return { panel, mask: null, count };
    if (isOther) masks.set(panel, mask);
    return { panel, mask: isOther ? mask : (before ?? mask), count };
  });
}
