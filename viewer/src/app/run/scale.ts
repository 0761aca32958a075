// From numbers to pixels and back, and round times for an axis.

import type { Axis } from "../../schema";

export interface Scale {
  (value: number): number;
  invert(pixel: number): number;
}

export function linear(from: readonly [number, number], to: readonly [number, number]): Scale {
  const slope = (to[1] - to[0]) / (from[1] - from[0] || 1);
  const scale = ((value: number) => to[0] + (value - from[0]) * slope) as Scale;
  scale.invert = (pixel) => from[0] + (pixel - to[0]) / (slope || 1);
  return scale;
}

/** Where values of an axis lie, from the top of a panel; those beyond a logarithmic one are at its ends. */
export function upright({ low, high, isLogarithmic }: Axis, height: number): (value: number) => number {
  if (!isLogarithmic) return linear([low, high], [height, 0]);
  const inner = linear([Math.log2(low), Math.log2(high)], [height, 0]);
  return (value) => inner(Math.log2(Math.min(high, Math.max(low, value))));
}

const [SECOND, MINUTE, HOUR] = [1e3, 6e4, 3.6e6];
const DAY = 24 * HOUR;
const TIME_STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * HOUR),
];

/** Steps of time in milliseconds that are familiar to people. */
export function timeTicks(lowUs: number, highUs: number, wanted: number): { step: number; at: number[] } {
  const rough = (highUs - lowUs) / 1000 / Math.max(1, wanted);
  const step = (TIME_STEPS.find((each) => each >= rough) ?? Math.ceil(rough / DAY) * DAY) * 1000;
  const at: number[] = [];
  for (let tick = Math.ceil(lowUs / step) * step; tick <= highUs; tick += step) at.push(tick);
  return { step, at };
}

/** The last index whose time is not after `timeUs`; of equal times the last. -1 before the first. */
export function indexAt(times: readonly number[], timeUs: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) <= timeUs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
