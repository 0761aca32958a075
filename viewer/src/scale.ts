// From numbers to pixels and back, and round numbers for axes.

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

/** Logarithmic; values below the domain are clamped to its lower end. */
export function logarithmic(from: readonly [number, number], to: readonly [number, number]): Scale {
  const inner = linear([Math.log2(from[0]), Math.log2(from[1])], to);
  const scale = ((value: number) => inner(Math.log2(Math.min(from[1], Math.max(from[0], value))))) as Scale;
  scale.invert = (pixel) => 2 ** inner.invert(pixel);
  return scale;
}

/** Round steps of which about `wanted` fit. `base` 2 is for bytes, 10 for the rest. */
export function ticks(low: number, high: number, wanted: number, base: 2 | 10 = 10): number[] {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, wanted);
  const step = base === 2 ? 2 ** Math.ceil(Math.log2(rough)) : roundStep(rough);
  const found: number[] = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) found.push(index * step + 0); // and not −0
  return found;
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const ratio = rough / power;
  return power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
}

const TIME_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 1.2e5, 3e5, 6e5, 9e5, 1.8e6, 3.6e6, 7.2e6, 1.08e7, 2.16e7, 4.32e7, 8.64e7];

/** Steps of time in milliseconds that are familiar to people. */
export function timeTicks(lowUs: number, highUs: number, wanted: number): { step: number; at: number[] } {
  const rough = (highUs - lowUs) / 1000 / Math.max(1, wanted);
  const step = (TIME_STEPS.find((each) => each >= rough) ?? Math.ceil(rough / 8.64e7) * 8.64e7) * 1000;
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
