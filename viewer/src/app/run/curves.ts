// The shapes of values over time.

import type { Curve } from "../../schema";
import { shownRange, type Plot } from "./plot";

type Height = (value: number) => number;

/** A steep piece on a logarithmic scale is drawn in so many parts, because it is not straight there. */
const PARTS = 16;

export function curvePath(plot: Plot, curve: Curve, y: Height): string {
  return curve.timesUs.length > 0 ? stepped(plot, curve, y) : sloped(plot, curve, y);
}

/** A curve with times of its own: a value holds until the next. */
function stepped({ run, x }: Plot, { timesUs, values }: Curve, y: Height): string {
  let path = "";
  let begins = true;
  values.forEach((value, index) => {
    const [from, until] = [timesUs[index] ?? 0, timesUs[index + 1] ?? run.endUs];
    const start = `${begins ? "M" : "L"}${x(from).toFixed(1)}`;
    if (value !== null) path += `${start} ${y(value).toFixed(1)}H${x(until).toFixed(1)}`;
    begins = value === null;
  });
  return path;
}

function sloped(plot: Plot, { values }: Curve, y: Height): string {
  const [first, last] = shownRange(plot);
  const times = plot.node.timesUs;
  let path = "";
  let begins = true;
  for (let index = first; index <= last; index++) {
    const [time, value] = [times[index] ?? 0, values[index] ?? null];
    if (value !== null) {
      const next = values[index + 1] ?? value;
      const span = (times[index + 1] ?? time) - time;
      const isSteep = span > 0 && 4 * Math.abs(next - value) > Math.min(value, next);
      const parts = isSteep && index < last ? PARTS : 1;
      for (let part = 0; part < parts; part++) {
        const at = plot.x(time + (span * part) / parts).toFixed(1);
        path += `${begins ? "M" : "L"}${at} ${y(value + ((next - value) * part) / parts).toFixed(1)}`;
        begins = false;
      }
    }
    begins ||= value === null;
  }
  return path;
}
