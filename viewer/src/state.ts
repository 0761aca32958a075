// What the reader is looking at. Views subscribe to it; clicks change it.

import type { Kill, NodeView, RunView } from "./schema";

export interface Looking {
  node: NodeView;
  /** The moment whose orders are shown. */
  timeUs: number;
  /** The part of the run that is drawn. */
  fromUs: number;
  toUs: number;
  kill: Kill | null;
  /** The pod that is pointed at, by its place in the run's list. */
  pod: number | null;
  /** Whether Panels without events are drawn as well. */
  all: boolean;
}

export type Change = keyof Looking;

export class State {
  readonly run: RunView;
  private looking: Looking;
  private readonly listeners: ((changed: ReadonlySet<Change>) => void)[] = [];

  constructor(run: RunView, node: NodeView) {
    this.run = run;
    this.looking = { node, timeUs: 0, fromUs: 0, toUs: run.endUs, kill: null, pod: null, all: false };
    Object.assign(this.looking, this.firstLook(node));
  }

  get now(): Readonly<Looking> {
    return this.looking;
  }

  /** The kills on the node that is shown. */
  get kills(): Kill[] {
    return this.run.kills.filter((kill) => kill.node === this.looking.node.name);
  }

  /** How many more victims the node has than are told in full. */
  get untold(): number {
    const all = this.run.events.filter((event) => event.node === this.looking.node.name && (event.kind === "OOMKilled" || event.kind === "Evicted"));
    return Math.max(0, all.length - this.kills.length);
  }

  subscribe(listener: (changed: ReadonlySet<Change>) => void): void {
    this.listeners.push(listener);
  }

  change(wanted: Partial<Looking>): void {
    const changed = new Set<Change>();
    for (const [name, value] of Object.entries(wanted) as [Change, never][]) {
      if (this.looking[name] !== value) changed.add(name);
    }
    if (changed.size === 0) return;
    this.looking = { ...this.looking, ...wanted };
    for (const listener of this.listeners) listener(changed);
  }

  showNode(node: NodeView): void {
    this.change({ node, pod: null, ...this.firstLook(node) });
  }

  showKill(kill: Kill): void {
    const { fromUs, toUs } = this.now;
    const inView = kill.timeUs >= fromUs && kill.timeUs <= toUs;
    this.change({ kill, timeUs: kill.timeUs, ...(inView ? {} : { fromUs: 0, toUs: this.run.endUs }) });
  }

  moveTo(timeUs: number): void {
    this.change({ timeUs: Math.min(this.run.endUs, Math.max(0, Math.round(timeUs))) });
  }

  /** Begin at the first kill, close enough to tell the kills apart. */
  private firstLook(node: NodeView): Partial<Looking> {
    const kill = this.run.kills.find((each) => each.node === node.name) ?? null;
    return { timeUs: kill?.timeUs ?? 0, kill, fromUs: 0, toUs: node.drawnUntilUs ?? this.run.endUs };
  }
}
