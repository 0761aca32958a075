// The part of a node's run that is drawn, and how wide.

import type { Kill, Layer, NodePicture, NodeView, Panel, RunView } from "../../schema";
import { inkOn } from "../colours";
import { linear, type Scale } from "./scale";

/** The room for ticks at the left, and a little at the right. */
const LEFT = 50;
const RIGHT = 10;

export interface Plot {
  run: RunView;
  node: NodeView;
  /** What is drawn of the node. */
  picture: NodePicture;
  /** The kills of the node, in the order of the picture's victims. */
  kills: readonly Kill[];
  fromUs: number;
  toUs: number;
  x: Scale;
  left: number;
  right: number;
}

export interface Part {
  node: NodeView;
  fromUs: number;
  toUs: number;
}

/** Return the plot of a part of a run; null if there is no picture of the node. */
export function plotOf(run: RunView, { node, fromUs, toUs }: Part, width: number): Plot | null {
  const picture = run.pictures.find((each) => each.node === node.name);
  if (picture === undefined) return null;
  const right = Math.max(LEFT, width - RIGHT);
  const kills = run.kills.filter((kill) => kill.node === node.name);
  const x = linear([fromUs, toUs], [LEFT, right]);
  return { run, node, picture, kills, fromUs, toUs, x, left: LEFT, right };
}

export function heightOf(panel: Panel, { picture, left, right }: Plot): number {
  return right - left < picture.measures.narrow ? panel.narrowHeight : panel.height;
}

/** The indices to draw: those in view and one more on either side. */
export function shownRange({ node, fromUs, toUs }: Plot): readonly [number, number] {
  const times = node.timesUs;
  const first = times.findIndex((each) => each >= fromUs);
  const last = times.findLastIndex((each) => each <= toUs);
  return [Math.max(0, (first < 0 ? times.length : first) - 1), Math.min(times.length - 1, last + 1)];
}

/** The columns that a layer is the sum of. */
export function columnsOf({ node }: Plot, layer: Layer): readonly (readonly (number | null)[])[] {
  const series = layer.series === null ? undefined : node.pods[layer.series];
  if (series === undefined) return [layer.values];
  return layer.columns.map((name) => series[name as "anonBytes"]);
}

/** The place of a layer's pod in the run's list; null if it is not about a pod. */
export function podOf({ node }: Plot, layer: Layer): number | null {
  return layer.series === null ? null : (node.pods[layer.series]?.pod ?? null);
}

/** Whether white text is easier to read on a colour such as #1f77b4. */
export function isDark(colour: string): boolean {
  return inkOn(colour) === "#ffffff";
}
