// The cluster as the view needs it: pods by node in the chosen order, and which of them pass the filters.
// Unchanged parts keep their identity between states, so that they are not rendered again.

import type { ClusterView, NodePanel, PodBlock } from "../../schema";

export type Order = "kubelet" | "kernel";
export type Size = "used" | "requested" | "limit";

export interface Filters {
  namespace: string;
  qosClass: string;
  priority: string;
  text: string;
}

/** A node and its pods. */
export class Panel {
  private readonly orders = new Map<Order, readonly PodBlock[]>();

  constructor(
    readonly node: NodePanel,
    readonly title: string,
    /** In the order of the source. */
    readonly pods: readonly PodBlock[],
  ) {}

  /** In the chosen order, otherwise in the order of the source. */
  by(order: Order): readonly PodBlock[] {
    let found = this.orders.get(order);
    if (found === undefined) {
      const place = (pod: PodBlock) => placeOf(pod, order) ?? Number.MAX_SAFE_INTEGER;
      this.orders.set(order, (found = this.pods.toSorted((one, other) => place(one) - place(other))));
    }
    return found;
  }
}

export const ASSUMED = "One node (assumed)";
/** The panel of unscheduled pods. */
export const WAITING = "Not scheduled";

let last: ReadonlyMap<string, Panel> = new Map();

/** Return the nodes with their pods; an unchanged node keeps its panel object. */
export function panelsOf(view: ClusterView): readonly Panel[] {
  const byNode = new Map<string, PodBlock[]>(view.nodes.map((node) => [node.name, []]));
  const hasAssumed = view.nodes.some((node) => node.isAssumed);
  const waiting: PodBlock[] = [];
  for (const pod of view.pods) {
    const isWaiting = pod.node === "" && pod.evictionPlace === null && !hasAssumed;
    (isWaiting ? waiting : (byNode.get(pod.node) ?? waiting)).push(pod);
  }
  const panels = view.nodes.map((node) =>
    panelOf(node, node.isAssumed && !node.name ? ASSUMED : node.name, byNode.get(node.name) ?? []),
  );
  if (waiting.length > 0) panels.push(new Panel(nowhere(waiting.length), WAITING, waiting));
  last = new Map(panels.map((panel) => [panel.title, panel]));
  return panels;
}

function panelOf(node: NodePanel, title: string, pods: readonly PodBlock[]): Panel {
  const before = last.get(title);
  const isSame =
    before?.node === node &&
    before.pods.length === pods.length &&
    pods.every((pod, index) => pod === before.pods[index]);
  return isSame ? before : new Panel(node, title, pods);
}

const NOTHING = { allocatable: 0, requests: 0, limits: 0, used: null, usedByPods: null };

/** The panel of pods without a node. */
function nowhere(pods: number): NodePanel {
  return {
    name: "",
    pods,
    mostPods: null,
    memory: NOTHING,
    cpu: NOTHING,
    conditions: [],
    headroomBytes: null,
    isMeasured: false,
    nextEvicted: null,
    nextKilled: null,
    memoryBytes: 0,
    usedBytes: null,
    headroom: null,
    kernelLeftBytes: null,
    firstBy: null,
    thresholdBytes: 0,
    isAssumed: false,
    reversedPairs: 0,
    problem: "",
  };
}

export function keyOf(pod: PodBlock): string {
  return `${pod.namespace}/${pod.name}`;
}

export function placeOf(pod: PodBlock, order: Order): number | null {
  return order === "kernel" ? pod.killPlace : pod.evictionPlace;
}

/** Whether a node has more pods than it can run. */
export function isCrowded(node: NodePanel, pods: number): boolean {
  return node.mostPods !== null && pods > node.mostPods;
}

/** How many pods of a node have no memory limit. */
export function unlimitedOf({ pods }: Panel): number {
  return pods.reduce((sum, pod) => sum + (pod.limitBytes === null ? 1 : 0), 0);
}

export function hasUsage(view: ClusterView): boolean {
  return view.pods.some((pod) => pod.usedBytes !== null);
}

/** The size of a pod's block; a pod without a limit is sized by its request. */
export function sizeOf(pod: PodBlock, size: Size): number {
  if (size === "used") return pod.usedBytes ?? pod.requestedBytes;
  return size === "limit" ? (pod.limitBytes ?? pod.requestedBytes) : pod.requestedBytes;
}

const texts = new WeakMap<PodBlock, string>();

/** The lower-case text of a pod that the filter searches. */
function textOf(pod: PodBlock): string {
  let text = texts.get(pod);
  if (text === undefined) texts.set(pod, (text = `${keyOf(pod)} ${pod.workload} ${pod.node}`.toLowerCase()));
  return text;
}

/** The filter function; null if everything passes. */
export type Fits = ((pod: PodBlock) => boolean) | null;

export function fitting({ namespace, qosClass, priority, text }: Filters): Fits {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (namespace === "" && qosClass === "" && priority === "" && words.length === 0) return null;
  const atLeast = priority === "" ? -Infinity : Number(priority);
  return (pod) =>
    (namespace === "" || pod.namespace === namespace) &&
    (qosClass === "" || pod.qosClass === qosClass) &&
    pod.priority >= atLeast &&
    (words.length === 0 || words.every((word) => textOf(pod).includes(word)));
}

/** A node, and how many of its pods pass the filters. */
export interface Match {
  panel: Panel;
  count: number;
}

export function matching(panels: readonly Panel[], fits: Fits): readonly Match[] {
  return panels.map((panel) => {
    let count = fits === null ? panel.pods.length : 0;
    if (fits !== null) for (const pod of panel.pods) if (fits(pod)) count++;
    return { panel, count };
  });
}

const masks = new WeakMap<readonly PodBlock[], Uint8Array>();

/** Return which of these pods pass, one byte each, or null if all do; an unchanged mask keeps its identity.
 * */
export function maskOf(pods: readonly PodBlock[], fits: Fits): Uint8Array | null {
  if (fits === null) return null;
  const mask = Uint8Array.from(pods, (pod) => (fits(pod) ? 1 : 0));
  if (mask.every((each) => each === 1)) return null;
  const before = masks.get(pods);
  if (before !== undefined && mask.every((each, index) => each === before[index])) return before;
  masks.set(pods, mask);
  return mask;
}
