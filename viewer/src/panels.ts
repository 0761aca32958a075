// The panels that show amounts over time: memory by pod, memory left, CPU, and whatever else runs short.

import { s } from "./dom";
import { bare, bytes, cores, count } from "./format";
import type { NodeView, RunView } from "./schema";
import { linear, logarithmic, ticks, type Scale } from "./scale";
import type { State } from "./state";

export interface Plot {
  run: RunView;
  node: NodeView;
  state: State;
  fromUs: number;
  toUs: number;
  x: Scale;
  left: number;
  right: number;
}

export interface Panel {
  name: string;
  title: string;
  note?: string;
  titleX?: number;
  height: number;
  draw(body: SVGGElement): void;
}

const MI = 2 ** 20;

interface Layer {
  pod: number | null;
  label: string;
  fill: string;
  className: string;
  values: readonly number[];
}

export function memoryPanel(plot: Plot): Panel {
  const { node, run } = plot;
  const height = 2 * Math.min(...node.availableBytes) < node.memoryBytes ? 300 : 160;
  return {
    name: "memory",
    title: "Memory by pod",
    note: `working sets, stacked; the node has ${bytes(node.memoryBytes)}`,
    height,
    draw(body) {
      const y = linear([0, node.memoryBytes], [height, 0]);
      grid(body, plot, y, ticks(0, node.memoryBytes, 5, 2), bytes);
      const layers: Layer[] = [{ pod: null, label: "system", fill: "var(--system)", className: "system", values: node.systemBytes }];
      const cache = node.timesUs.map(() => 0);
      for (const series of node.pods) {
        const pod = run.pods[series.pod];
        if (pod === undefined) continue;
        const values = series.anonBytes.map((anon, index) => (anon ?? 0) + (series.activeFileBytes[index] ?? 0));
        series.inactiveFileBytes.forEach((each, index) => (cache[index] = (cache[index] ?? 0) + (each ?? 0)));
        layers.push({ pod: series.pod, label: bare(pod.key), fill: pod.colour, className: `band ${pod.qosClass}`, values });
      }
      layers.push({ pod: null, label: "page cache", fill: "url(#cache)", className: "cache", values: cache });
      stack(body, plot, y, layers);
      activeCache(body, plot, y);
      for (const threshold of node.thresholds) {
        if (threshold.signal !== "memory.available") continue;
        const at = y(node.memoryBytes - threshold.amount);
        body.append(s("line", { class: `threshold ${threshold.hard ? "hard" : "soft"}`, x1: plot.left, x2: plot.right, y1: at, y2: at }));
      }
      body.append(s("line", { class: "capacity", x1: plot.left, x2: plot.right, y1: 0, y2: 0 }));
      if (node.podsLimitBytes !== null) {
        const at = y(node.podsLimitBytes);
        body.append(s("line", { class: "threshold pods", x1: plot.left, x2: plot.right, y1: at, y2: at }), label(plot, at < 16 ? at + 13 : at - 4, `limit of all pods ${bytes(node.podsLimitBytes)}`, "pods"));
      }
    },
  };
}

export function leftPanel(plot: Plot): Panel {
  const { node } = plot;
  const height = 130;
  const thresholds = node.thresholds.filter((each) => each.signal === "memory.available");
  const lowest = Math.min(node.kernelMinBytes || 64 * MI, ...thresholds.map((each) => each.amount)) / 2;
  const low = 2 ** Math.floor(Math.log2(Math.max(MI, lowest)));
  const high = Math.max(low * 4, ...node.availableBytes, ...node.freeBytes);
  return {
    name: "left",
    title: "Memory left",
    note: "logarithmic: memory.available as the kubelet counts, free as the kernel counts",
    height,
    draw(body) {
      const y = logarithmic([low, high], [height, 0]);
      const steps = ticks(Math.ceil(Math.log2(low)), Math.floor(Math.log2(high)), 5).filter(Number.isInteger);
      grid(body, plot, y, steps.map((power) => 2 ** power), bytes);
      if (node.kernelMinBytes > 0) {
        const at = y(node.kernelMinBytes);
        body.append(s("rect", { class: "killing", x: plot.left, y: at, width: plot.right - plot.left, height: Math.max(0, height - at) }));
        body.append(s("text", { class: "label kernel", x: plot.left + 6, y: Math.min(height - 4, at + 12) }, `the kernel kills at ${bytes(node.kernelMinBytes)}`));
      }
      for (const threshold of thresholds) {
        const at = y(threshold.amount);
        body.append(s("line", { class: `threshold ${threshold.hard ? "hard" : "soft"}`, x1: plot.left, x2: plot.right, y1: at, y2: at }));
        body.append(label(plot, threshold.hard && at + 14 < height ? at + 13 : at - 4, `${threshold.hard ? "hard" : "soft"}: ${threshold.statement}`, threshold.hard ? "hard" : "soft"));
      }
      line(body, plot, y, node.freeBytes, "series free");
      line(body, plot, y, node.availableBytes, "series available");
    },
  };
}

export function cpuPanel(plot: Plot): Panel | null {
  const { node, run } = plot;
  const height = 110;
  const wanted = node.timesUs.map((_, index) => node.pods.reduce((sum, series) => sum + (series.cpuWantedMilli[index] ?? 0), 0));
  const most = Math.max(...wanted);
  if (!(most > 0)) return null;
  const full = most > node.cpuMilli / 2;
  return {
    name: "cpu",
    title: "CPU granted",
    note: `hatched: wanted and not granted; the node has ${cores(node.cpuMilli)} cores`,
    height,
    draw(body) {
      const top = full ? Math.max(node.cpuMilli, most) * 1.02 : most * 1.15;
      const y = linear([0, top], [height, 0]);
      grid(body, plot, y, ticks(0, top, 4), cores);
      const layers: Layer[] = [];
      const missing = node.timesUs.map(() => 0);
      for (const series of node.pods) {
        const pod = run.pods[series.pod];
        if (pod === undefined) continue;
        const values = series.cpuGrantedMilli.map((each) => each ?? 0);
        series.cpuWantedMilli.forEach((each, index) => (missing[index] = (missing[index] ?? 0) + Math.max(0, (each ?? 0) - (values[index] ?? 0))));
        layers.push({ pod: series.pod, label: bare(pod.key), fill: pod.colour, className: `band ${pod.qosClass}`, values });
      }
      layers.push({ pod: null, label: "throttled", fill: "url(#throttled)", className: "throttled", values: missing });
      stack(body, plot, y, layers);
      if (full) {
        const at = y(node.cpuMilli);
        body.append(s("line", { class: "capacity", x1: plot.left, x2: plot.right, y1: at, y2: at }));
      }
    },
  };
}

export function signalPanels(plot: Plot): Panel[] {
  return plot.node.signals.map((series) => {
    const height = 80;
    const amount = series.signal.endsWith("inodesFree") || series.signal.startsWith("pid") ? count : bytes;
    return {
      name: "signal",
      title: series.signal,
      note: `what is left of ${amount(series.capacity)}`,
      height,
      draw(body: SVGGElement) {
        const thresholds = plot.node.thresholds.filter((each) => each.signal === series.signal);
        const top = Math.max(1, ...series.left, ...thresholds.map((each) => each.amount)) * 1.08;
        const y = linear([0, top], [height, 0]);
        grid(body, plot, y, ticks(0, top, 3, amount === bytes ? 2 : 10), amount);
        for (const threshold of thresholds) {
          const at = y(threshold.amount);
          const kind = threshold.hard ? "hard" : "soft";
          body.append(s("line", { class: `threshold ${kind}`, x1: plot.left, x2: plot.right, y1: at, y2: at }));
          body.append(label(plot, threshold.hard && at + 14 < height ? at + 13 : at - 4, `${kind}: ${threshold.statement}`, kind));
        }
        line(body, plot, y, series.left, "series available");
      },
    };
  });
}

/** A veil over the page cache of each pod: the kubelet counts it, but the kernel can reclaim it. */
function activeCache(body: SVGGElement, plot: Plot, y: Scale): void {
  const [first, last] = shown(plot);
  const base = [...plot.node.systemBytes];
  for (const series of plot.node.pods) {
    let upper = "";
    let lower = "";
    for (let index = first; index <= last; index++) {
      const x = plot.x(plot.node.timesUs[index] ?? 0).toFixed(1);
      const anon = (base[index] ?? 0) + (series.anonBytes[index] ?? 0);
      base[index] = anon + (series.activeFileBytes[index] ?? 0);
      upper += `${index === first ? "M" : "L"}${x} ${y(base[index] ?? 0).toFixed(1)}`;
      lower = `L${x} ${y(anon).toFixed(1)}${lower}`;
    }
    if (series.activeFileBytes.some((each) => (each ?? 0) > 0)) {
      body.append(s("path", { class: "veil", d: `${upper}${lower}Z`, fill: "url(#active)", "clip-path": "url(#plot)" }));
    }
  }
}

// ---- parts ----------------------------------------------------------------------------------------------------------

function grid(body: SVGGElement, plot: Plot, y: Scale, at: readonly number[], format: (value: number) => string): void {
  for (const value of at) {
    body.append(
      s("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y(value), y2: y(value) }),
      s("text", { class: "tick", x: plot.left - 8, y: y(value) + 4 }, format(value)),
    );
  }
}

function label(plot: Plot, y: number, text: string, kind: string): SVGTextElement {
  return s("text", { class: `label ${kind}`, x: plot.right - 6, y: Math.max(10, y) }, text);
}

/** The indices to draw: those in view and one more on either side. */
function shown(plot: Plot): [number, number] {
  const times = plot.node.timesUs;
  let first = times.findIndex((each) => each >= plot.fromUs);
  let last = times.findLastIndex((each) => each <= plot.toUs);
  first = Math.max(0, (first < 0 ? times.length : first) - 1);
  last = Math.min(times.length - 1, last + 1);
  return [first, last];
}

function stack(body: SVGGElement, plot: Plot, y: Scale, layers: readonly Layer[]): void {
  const [first, last] = shown(plot);
  const times = plot.node.timesUs;
  const base = new Float64Array(times.length);
  const clipped = s("g", { "clip-path": "url(#plot)" });
  const labels = s("g", { class: "names" });
  for (const layer of layers) {
    if (!layer.values.some((value) => value > 0)) continue;
    let upper = "";
    let lower = "";
    const spans: Span[] = [];
    for (let index = first; index <= last; index++) {
      const x = plot.x(times[index] ?? 0);
      const from = base[index] ?? 0;
      const to = from + (layer.values[index] ?? 0);
      upper += `${index === first ? "M" : "L"}${x.toFixed(1)} ${y(to).toFixed(1)}`;
      lower = `L${x.toFixed(1)} ${y(from).toFixed(1)}${lower}`;
      base[index] = to;
      spans.push({ x, top: y(to), bottom: y(from) });
    }
    clipped.append(s("path", { class: layer.className, d: `${upper}${lower}Z`, fill: layer.fill, ...(layer.pod === null ? {} : { "data-pod": layer.pod }) }));
    const place = roomFor(spans, plot, layer.label.length * 6.8 + 12);
    if (place !== null) {
      const dark = layer.pod === null ? "" : isDark(layer.fill) ? " on-dark" : " on-light";
      labels.append(s("text", { class: `name${dark}`, x: place.x + 8, y: place.y + 4, ...(layer.pod === null ? {} : { "data-pod": layer.pod }) }, layer.label));
    }
  }
  body.append(clipped, labels);
}

interface Span {
  x: number;
  top: number;
  bottom: number;
}

/** The first place in a band where a text of this width fits, and the middle of the band there. */
function roomFor(spans: readonly Span[], plot: Plot, width: number): { x: number; y: number } | null {
  for (const [index, start] of spans.entries()) {
    const x = Math.max(plot.left, start.x);
    if (x + width > plot.right || (spans[index + 1]?.x ?? Infinity) <= x) continue;
    let [top, bottom] = [start.top, start.bottom];
    for (let next = index + 1; next < spans.length; next++) {
      const span = spans[next] as Span;
      const before = spans[next - 1] as Span;
      const share = span.x > x + width ? (x + width - before.x) / (span.x - before.x) : 1;
      top = Math.max(top, before.top + (span.top - before.top) * share);
      bottom = Math.min(bottom, before.bottom + (span.bottom - before.bottom) * share);
      if (share < 1) break;
    }
    if (bottom - top >= 13) return { x, y: (top + bottom) / 2 };
  }
  return null;
}

function line(body: SVGGElement, plot: Plot, y: Scale, values: readonly number[], className: string): void {
  const [first, last] = shown(plot);
  let path = "";
  for (let index = first; index <= last; index++) {
    const [time, value] = [plot.node.timesUs[index] ?? 0, values[index] ?? 0];
    const [span, change] = [(plot.node.timesUs[index + 1] ?? time) - time, (values[index + 1] ?? value) - value];
    // On a logarithmic scale a steep piece is no straight line.
    const steps = span > 0 && 4 * Math.abs(change) > Math.min(value, value + change) ? 16 : 1;
    for (let step = 0; step < steps; step++) {
      path += `${path === "" ? "M" : "L"}${plot.x(time + (span * step) / steps).toFixed(1)} ${y(value + (change * step) / steps).toFixed(1)}`;
    }
  }
  body.append(s("path", { class: className, d: path, "clip-path": "url(#plot)" }));
}

/** Whether white text is easier to read on a colour such as #1f77b4. */
export function isDark(colour: string): boolean {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * (red ?? 0) + 0.587 * (green ?? 0) + 0.114 * (blue ?? 0) < 140;
}
