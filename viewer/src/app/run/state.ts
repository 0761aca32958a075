// What the reader is looking at. Components listen to the parts they show; clicks and keys change it.

import { useLayoutEffect, useState } from "preact/hooks";
import type { Kill, NodeView, RunView } from "../../schema";

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
  /** Whether panels without events are drawn as well. */
  all: boolean;
}

export type Change = keyof Looking;
type Listener = (changed: ReadonlySet<Change>) => void;

const ENDS: ReadonlySet<string> = new Set(["OOMKilled", "Evicted"]);

export class State {
  readonly run: RunView;
  private looking: Looking;
  private readonly listeners = new Set<Listener>();

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
    const { name } = this.looking.node;
    const ends = this.run.events.filter((event) => event.node === name && ENDS.has(event.kind));
    return Math.max(0, ends.length - this.kills.length);
  }

  /** Call a listener after each change; return the function that ends that. */
  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
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

  /** Show the next kill, or the one before. */
  stepKill(by: 1 | -1): void {
    const { kills } = this;
    const at = this.now.kill === null ? -1 : kills.indexOf(this.now.kill);
    const next = kills[Math.min(kills.length - 1, Math.max(0, at + by))];
    if (next !== undefined) this.showKill(next);
  }

  get isAll(): boolean {
    return this.now.fromUs === 0 && this.now.toUs === this.run.endUs;
  }

  /** Show the part with the victims, or all of the run again. */
  toggleZoom(): void {
    const { endUs } = this.run;
    if (!this.isAll) {
      this.change({ fromUs: 0, toUs: endUs });
      return;
    }
    const times = this.kills.map((kill) => kill.timeUs);
    if (times.length === 0) return;
    const [first, last] = [Math.min(...times), Math.max(...times)];
    const around = Math.max((last - first) * 0.4, endUs * 0.02, 1000);
    this.change({ fromUs: Math.max(0, first - around), toUs: Math.min(endUs, last + around) });
  }

  /** Begin at the first kill, close enough to tell the kills apart. */
  private firstLook(node: NodeView): Partial<Looking> {
    const kill = this.run.kills.find((each) => each.node === node.name) ?? null;
    return { timeUs: kill?.timeUs ?? 0, kill, fromUs: 0, toUs: node.drawnUntilUs ?? this.run.endUs };
  }
}

/** What the reader is looking at; the component is rendered again when one of the named parts changes. */
export function useLooking(state: State, ...parts: readonly Change[]): Readonly<Looking> {
  const [, render] = useState<unknown>(null);
  useLayoutEffect(
    () =>
      state.subscribe((changed) => {
        if (parts.some((part) => changed.has(part))) render({});
      }),
    [state],
  );
  return state.now;
}
