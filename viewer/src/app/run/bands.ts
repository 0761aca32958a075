// The shapes of stacked layers, and places for their names.

import type { Label, Panel } from "../../schema";
import { columnsOf, isDark, podOf, shownRange, type Plot } from "./plot";
import { NAME, textWidth } from "./text";

type Height = (value: number) => number;

export interface Band {
  kind: string;
  pod: number | null;
  /** The colour of a pod. */
  fill: string | null;
  path: string;
  /** The part of it that is page cache. */
  veil: string | null;
}

export interface Name {
  pod: number | null;
  text: string;
  x: number;
  y: number;
  kind: string;
}

export interface Stack {
  bands: readonly Band[];
  names: readonly Name[];
}

/** A band between two heights at a place. */
interface Span {
  x: number;
  top: number;
  bottom: number;
}

export function stackOf(plot: Plot, panel: Panel, y: Height, labels: readonly Label[]): Stack {
  const [first, last] = shownRange(plot);
  const xs = plot.node.timesUs.map(plot.x);
  const base = new Float64Array(xs.length);
  const bands: Band[] = [];
  const names: Name[] = [];
  for (const layer of panel.layers) {
    const columns = columnsOf(plot, layer);
    if (!columns.some((column) => column.some((value) => (value ?? 0) > 0))) continue;
    const pod = podOf(plot, layer);
    const fill = pod === null ? null : (plot.run.pods[pod]?.colour ?? null);
    const before = base.slice();
    const veiled = columns.length > 1 ? columns.at(-1) : undefined;
    const plain = base.slice();
    for (let index = first; index <= last; index++) {
      for (const column of columns) {
        if (column === veiled) plain[index] = base[index] as number;
        base[index] = (base[index] as number) + (column[index] ?? 0);
      }
    }
    const outline = (low: Float64Array, high: Float64Array) => area(xs, [first, last], y, low, high);
    const isVeiled = veiled?.some((value) => (value ?? 0) > 0) ?? false;
    const veil = isVeiled ? outline(plain, base) : null;
    bands.push({ kind: layer.kind, pod, fill, path: outline(before, base), veil });
    const spans: Span[] = [];
    for (let index = first; index <= last; index++) {
      const [low, high] = [before[index] as number, base[index] as number];
      spans.push({ x: xs[index] as number, top: y(high), bottom: y(low) });
    }
    const place = roomFor(closer(spans, plot), plot, textWidth(layer.label, NAME) + 14, labels);
    const kind = fill === null ? "" : isDark(fill) ? "on-dark" : "on-light";
    if (place !== null) names.push({ pod, text: layer.label, x: place.x + 8, y: place.y + 4, kind });
  }
  return { bands, names };
}

function area(
  xs: readonly number[],
  [first, last]: readonly [number, number],
  y: Height,
  low: Float64Array,
  high: Float64Array,
): string {
  const upper: string[] = [];
  const lower: string[] = [];
  for (let index = first; index <= last; index++) {
    const x = (xs[index] as number).toFixed(1);
    upper.push(`${x} ${y(high[index] as number).toFixed(1)}`);
    lower.push(`${x} ${y(low[index] as number).toFixed(1)}`);
  }
  return `M${upper.join("L")}L${lower.reverse().join("L")}Z`;
}

/** The points of a band, and some between those that are far apart: a name may begin there. */
function closer(spans: readonly Span[], { left, right, picture }: Plot): Span[] {
  return spans.flatMap((one, index) => {
    const other = spans[index + 1] ?? one;
    const visible = Math.min(right, other.x) - Math.max(left, one.x);
    const steps = Math.max(1, Math.ceil(visible / picture.measures.nameStep));
    const between = (start: number, end: number, step: number) => start + ((end - start) * step) / steps;
    return Array.from({ length: steps }, (_, step) => ({
      x: between(one.x, other.x, step),
      top: between(one.top, other.top, step),
      bottom: between(one.bottom, other.bottom, step),
    }));
  });
}

/** The first place in a band where a text of this width fits, and the middle of the band there. */
function roomFor(spans: readonly Span[], plot: Plot, width: number, labels: readonly Label[]) {
  const { line, nameHeight } = plot.picture.measures;
  for (const [index, start] of spans.entries()) {
    const x = Math.max(plot.left, start.x);
    if (x + width > plot.right || (spans[index + 1]?.x ?? Infinity) <= x) continue;
    const [top, bottom] = narrowest(spans, index, x + width, nameHeight);
    const y = (top + bottom) / 2;
    const isFree = labels.every((label) => {
      const begin = plot.right - 6 - textWidth(label.words);
      return x + width < begin || Math.abs(label.y - 4 - y) > line;
    });
    if (bottom - top >= nameHeight && isFree) return { x, y };
  }
  return null;
}

/** The top and the bottom between which a band stays from a point to an end, or to where it is too low. */
function narrowest(
  spans: readonly Span[],
  from: number,
  end: number,
  least: number,
): readonly [number, number] {
  let { top, bottom } = spans[from] as Span;
  for (let next = from + 1; next < spans.length; next++) {
    const [before, span] = [spans[next - 1] as Span, spans[next] as Span];
    const share = span.x > end ? (end - before.x) / (span.x - before.x) : 1;
    top = Math.max(top, before.top + (span.top - before.top) * share);
    bottom = Math.min(bottom, before.bottom + (span.bottom - before.bottom) * share);
    if (share < 1 || bottom - top < least) break;
  }
  return [top, bottom];
}
