// The shapes of rows: conditions and pods while they lasted, the kubelet's checks, and places for names.

import type { LookSpan, Row, TimeSpan } from "../../schema";
import type { Plot } from "./plot";
import { fitted, NAME, textWidth } from "./text";

export interface Span {
  from: number;
  to: number;
}

export interface Place {
  x: number;
  text: string;
  /** Whether it is written on one of the spans. */
  isInside: boolean;
}

/** The visible parts of spans, in pixels. */
export function onScreen({ x, left, right }: Plot, spans: readonly TimeSpan[]): Span[] {
  return spans
    .map((span) => ({ from: Math.max(left, x(span.fromUs)), to: Math.min(right, x(span.toUs)) }))
    .filter((span) => span.to > left && span.from < right);
}

/** The ends of a row's pod that are in view, with their places. */
export function endsOf({ kills, fromUs, toUs, x }: Plot, row: Row): { by: string; x: number }[] {
  return row.victims.flatMap((victim) => {
    const kill = kills[victim];
    return kill && kill.timeUs >= fromUs && kill.timeUs <= toUs ? [{ by: kill.by, x: x(kill.timeUs) }] : [];
  });
}

/** Where a name fits: on one of the spans, or else between them, clear of signs. */
export function placeFor(
  plot: Plot,
  text: string,
  spans: readonly Span[],
  signs: readonly number[],
): Place | null {
  const { left, right } = plot;
  const margin = plot.picture.measures.signMargin;
  const width = textWidth(text, NAME) + 12;
  const around = signs.flatMap((x) => [x - margin, x + margin]);
  const edges = [left, right, ...spans.flatMap((span) => [span.from, span.to]), ...around];
  const sorted = [...new Set(edges)].sort((one, other) => one - other);
  const parts = sorted.slice(1).map((to, index) => ({ from: sorted[index] ?? 0, to }));
  const free = parts.filter((part) => !signs.some((x) => part.from < x + margin && part.to > x - margin));
  const isInside = (part: Span) => spans.some((span) => span.from <= part.from && span.to >= part.to);
  const fits = (part: Span) => part.to - part.from >= width;
  const enough = free.filter(fits);
  const fitting = enough.find(isInside) ?? enough[0];
  const widest = free.toSorted((one, other) => other.to - other.from - (one.to - one.from))[0];
  const part = fitting ?? widest;
  if (part === undefined) return null;
  const words = fitting === undefined ? fitted(text, part.to - part.from - 8, NAME) : text;
  return { x: part.from + 6, text: words, isInside: isInside(part) };
}

/** Ticks for the kubelet's checks, or a band where they are too close together; null if none is shown. */
export function checksOf(plot: Plot, span: LookSpan, height: number): Span | string | null {
  const { fromUs, toUs, x } = plot;
  const first = Math.max(0, Math.ceil((fromUs - span.firstUs) / span.everyUs));
  const last = Math.floor((Math.min(toUs, span.lastUs) - span.firstUs) / span.everyUs);
  if (last < first) return null;
  const at = (index: number) => x(span.firstUs + index * span.everyUs);
  if (at(1) - at(0) < plot.picture.measures.checkGap) return { from: at(first), to: at(last) };
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => at(first + index).toFixed(1));
  return ticks.map((tick) => `M${tick} 0v${height}`).join("");
}
