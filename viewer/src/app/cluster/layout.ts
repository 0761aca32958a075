// The layout of a node's pods: in strips from the upper left to the lower right, first victims first, sized
// by their share of memory. Unlike other treemaps, it shows the order.

export interface Strip {
  top: number;
  height: number;
  from: number;
  to: number;
}

export interface Layout {
  width: number;
  height: number;
  strips: readonly Strip[];
  /** The left edges and widths of the blocks. */
  left: Float64Array;
  wide: Float64Array;
}

/** The minimum area of a block in pixels: large enough to click, and to see its colour. */
const LEAST = 90;

/** Lay out blocks of these sizes. A strip takes another block as long as its blocks become more square. */
export function layout(sizes: readonly number[], width: number, height: number): Layout {
  const count = sizes.length;
  const sum = Math.max(
    1,
    sizes.reduce((total, size) => total + size, 0),
  );
  const area = width * height;
  const least = Math.min(LEAST, (area * 0.6) / Math.max(1, count));
  const areas = new Float64Array(count);
  let taken = 0;
  for (let index = 0; index < count; index++)
    taken += areas[index] = Math.max(least, ((sizes[index] ?? 0) / sum) * area);
  // Small blocks were enlarged, so all shrink a little to fit.
  const scale = area / taken;
  const left = new Float64Array(count);
  const wide = new Float64Array(count);
  const strips: Strip[] = [];
  let top = 0;
  for (let from = 0; from < count;) {
    let to = from;
    let strip = 0;
    let worst = Infinity;
    while (to < count) {
      const longer = strip + (areas[to] ?? 0) * scale;
      const high = longer / width;
      // The mean deviation from squares.
      let mean = 0;
      for (let index = from; index <= to; index++) {
        const across = ((areas[index] ?? 0) * scale) / high;
        mean += Math.max(across / high, high / across);
      }
      mean /= to - from + 1;
      if (to > from && mean > worst) break;
      worst = mean;
      strip = longer;
      to++;
    }
    const high = strip / width;
    let x = 0;
    for (let index = from; index < to; index++) {
      left[index] = x;
      x += wide[index] = ((areas[index] ?? 0) * scale) / high;
    }
    strips.push({ top, height: high, from, to });
    top += high;
    from = to;
  }
  return { width, height, strips, left, wide };
}

/** Return the block at a point, or -1. */
export function at(layout: Layout, x: number, y: number): number {
  const strip = layout.strips.find((each) => y >= each.top && y < each.top + each.height);
  if (strip === undefined || x < 0) return -1;
  for (let index = strip.from; index < strip.to; index++) {
    if (x < (layout.left[index] ?? 0) + (layout.wide[index] ?? 0)) return index;
  }
  return -1;
}

export function boxOf(
  layout: Layout,
  index: number,
): { left: number; top: number; width: number; height: number } {
  const strip = layout.strips.find((each) => index >= each.from && index < each.to);
  return {
    left: layout.left[index] ?? 0,
    top: strip?.top ?? 0,
    width: layout.wide[index] ?? 0,
    height: strip?.height ?? 0,
  };
}

/** Return the block above or below, or the same one if there is none. */
export function beyond(layout: Layout, index: number, by: -1 | 1): number {
  const here = layout.strips.findIndex((each) => index >= each.from && index < each.to);
  const strip = layout.strips[here + by];
  if (strip === undefined) return index;
  const found = at(
    layout,
    (layout.left[index] ?? 0) + (layout.wide[index] ?? 0) / 2,
    strip.top + strip.height / 2,
  );
  return found === -1 ? strip.to - 1 : found;
}
