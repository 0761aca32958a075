// The panels that show amounts over time: memory by pod, memory left, CPU, and whatever else runs short.

import { h, s } from "./dom";
import { bytes, cores, count, duration, percent } from "./format";
import { nameOf } from "./run";
import type { NodeView, RunView, ServiceOutcome, ThresholdLine } from "./schema";
import { linear, logarithmic, ticks, type Scale } from "./scale";
import type { State } from "./state";
import { NAME, textWidth } from "./text";

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
  note: string;
  height: number;
  draw(body: SVGGElement): void;
}

const MI = 2 ** 20;
const MEMORY = "memory.available";
/** The lines of services, the worst first. */
const SERVICES = ["#b3261e", "#1f6feb", "#9a6700", "#8250df", "#1a7f37", "#57606a"] as const;

interface Layer {
  pod: number | null;
  label: string;
  fill: string;
  className: string;
  values: readonly number[];
}

/** What can be drawn of a node, by the names in its list of panels. */
export function possible(node: NodeView): Map<string, (plot: Plot) => Panel | readonly Panel[]> {
  const found = new Map<string, (plot: Plot) => Panel | readonly Panel[]>([
    ["memory", memoryPanel],
    [MEMORY, leftPanel],
  ]);
  const wanted = node.timesUs.map((_, index) => node.pods.reduce((sum, series) => sum + (series.cpuWantedMilli[index] ?? 0), 0));
  const most = Math.max(...wanted);
  const slowed = node.pods.some((series) => shortOfCpu(node, series).length > 0);
  if (most > 0) found.set("cpu", (plot) => (slowed ? [cpuPanel(plot, most), sharePanel(plot)] : cpuPanel(plot, most)));
  for (const series of node.signals) found.set(series.signal, (plot) => signalPanel(plot, series));
  return found;
}

/** Say which panels are left out because nothing happens there, and offer to draw them. */
export function leftOut(state: State, element: HTMLElement): void {
  const draw = () => {
    const { node, all } = state.now;
    const least = Math.min(...node.availableBytes);
    const words = new Map([
      ["memory", `memory (at least ${bytes(least)} available)`],
      [MEMORY, node.panels.includes("memory") ? `memory left (at least ${bytes(least)})` : ""],
      ["cpu", "CPU (no contention)"],
    ]);
    const names = [...possible(node).keys()].filter((name) => !node.panels.includes(name)).map((name) => words.get(name) ?? name);
    const button = h("button", { type: "button", class: "link", click: () => state.change({ all: !all }) }, all ? "Hide them" : "Show them");
    element.replaceChildren(all ? "Panels without events are shown. " : `Hidden because nothing happens there: ${names.filter(Boolean).join(", ")}. `, button);
    element.hidden = names.length === 0;
  };
  state.subscribe((changed) => {
    if (changed.has("node") || changed.has("all")) draw();
  });
  draw();
}

function memoryPanel(plot: Plot): Panel {
  const { node, run } = plot;
  const layers: Layer[] = [{ pod: null, label: "system", fill: "var(--system)", className: "system", values: node.systemBytes }];
  const cache = node.timesUs.map(() => 0);
  for (const series of node.pods) {
    const pod = run.pods[series.pod];
    if (pod === undefined) continue;
    const values = series.anonBytes.map((anon, index) => (anon ?? 0) + (series.activeFileBytes[index] ?? 0));
    series.inactiveFileBytes.forEach((each, index) => (cache[index] = (cache[index] ?? 0) + (each ?? 0)));
    layers.push({ pod: series.pod, label: nameOf(run, pod.key), fill: pod.colour, className: `band ${pod.qosClass}`, values });
  }
  layers.push({ pod: null, label: "inactive page cache", fill: "url(#cache)", className: "cache", values: cache });
  const most = Math.max(...node.timesUs.map((_, index) => layers.reduce((sum, layer) => sum + (layer.values[index] ?? 0), 0)));
  // Where most memory is never used the axis ends earlier, and the note says so.
  const whole = 2 * most >= node.memoryBytes;
  const top = whole ? node.memoryBytes : most * 1.15;
  const height = plot.right - plot.left < 400 || !whole ? 230 : 300;
  const has = `the node has ${bytes(node.memoryBytes)}`;
  return {
    name: "memory",
    title: "Memory by pod",
    note: `working sets, stacked; ${whole ? has : `${has}, the axis ends at ${bytes(Math.round(top / MI) * MI)}`}`,
    height,
    draw(body) {
      const y = linear([0, top], [height, 0]);
      grid(body, plot, y, ticks(0, top, 5, 2), bytes);
      // All pods together may use so much: what the system uses is below them and does not count.
      const limit = node.podsLimitBytes;
      const reachable = limit !== null && Math.min(...node.systemBytes) + limit <= top;
      const marks: Mark[] = [];
      if (reachable) {
        const [, last] = shown(plot);
        marks.push({ y: Math.max(0, y((node.systemBytes[last] ?? 0) + limit)), text: `limit of all pods, ${bytes(limit)}`, kind: "pods" });
      }
      const placed = places(plot, marks, height);
      stack(body, plot, y, layers, placed);
      activeCache(body, plot, y);
      if (whole) {
        for (const threshold of node.thresholds) {
          if (threshold.signal !== MEMORY) continue;
          const at = y(node.memoryBytes - threshold.amount);
          body.append(s("line", { class: `threshold ${kindOf(threshold)}`, x1: plot.left, x2: plot.right, y1: at, y2: at }));
        }
        body.append(s("line", { class: "capacity", x1: plot.left, x2: plot.right, y1: 0, y2: 0 }));
      }
      if (reachable) line(body, plot, y, node.systemBytes.map((each) => Math.min(each + limit, top)), "threshold pods");
      write(body, placed);
    },
  };
}

function leftPanel(plot: Plot): Panel {
  const { node } = plot;
  const height = 130;
  const thresholds = node.thresholds.filter((each) => each.signal === MEMORY);
  const lowest = Math.min(node.kernelMinBytes || 64 * MI, ...thresholds.map((each) => each.amount)) / 2;
  const low = 2 ** Math.floor(Math.log2(Math.max(MI, lowest)));
  const high = Math.max(low * 4, ...node.availableBytes, ...node.freeBytes);
  return {
    name: "left",
    title: "Memory left",
    note: "logarithmic; line: memory.available, as the kubelet counts; dots: free memory, as the kernel counts",
    height,
    draw(body) {
      const y = logarithmic([low, high], [height, 0]);
      const steps = ticks(Math.ceil(Math.log2(low)), Math.floor(Math.log2(high)), 5).filter(Number.isInteger);
      grid(body, plot, y, steps.map((power) => 2 ** power), bytes);
      const marks = thresholds.map((each) => thresholdMark(each, y));
      if (node.kernelMinBytes > 0) {
        const at = y(node.kernelMinBytes);
        body.append(s("rect", { class: "killing", x: plot.left, y: at, width: plot.right - plot.left, height: Math.max(0, height - at) }));
        // Below a threshold that would go through its words.
        const above = Math.max(at, ...thresholds.map((each) => y(each.amount)).filter((line) => line < at + LINE));
        marks.push({ y: above + 16, text: `the kernel kills at ${bytes(node.kernelMinBytes)}`, kind: "kernel" });
      }
      drawThresholds(body, plot, y, thresholds);
      line(body, plot, y, node.freeBytes, "series free");
      line(body, plot, y, node.availableBytes, "series available");
      write(body, places(plot, marks, height));
    },
  };
}

function cpuPanel(plot: Plot, most: number): Panel {
  const { node, run } = plot;
  const height = node.panels[0] === "cpu" ? 220 : 130;
  const full = most > node.cpuMilli / 2;
  return {
    name: "cpu",
    title: "CPU granted and wanted",
    note: `in cores; hatched: demand not granted; the node has ${cores(node.cpuMilli)}`,
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
        layers.push({ pod: series.pod, label: nameOf(run, pod.key), fill: pod.colour, className: `band ${pod.qosClass}`, values });
      }
      layers.push({ pod: null, label: "not granted", fill: "url(#throttled)", className: "throttled", values: missing });
      const placed = places(plot, full ? [{ y: y(node.cpuMilli), text: `all ${cores(node.cpuMilli)} cores`, kind: "pods" }] : [], height);
      stack(body, plot, y, layers, placed);
      if (missing.some((each) => each > 0)) line(body, plot, y, node.timesUs.map((_, index) => layers.reduce((sum, layer) => sum + (layer.values[index] ?? 0), 0)), "series wanted");
      if (full) body.append(s("line", { class: "capacity", x1: plot.left, x2: plot.right, y1: y(node.cpuMilli), y2: y(node.cpuMilli) }));
      write(body, placed);
    },
  };
}

const MOST_SHARES = 6;

/** What pods got of the CPU they wanted; those that fared alike share a line. */
function sharePanel(plot: Plot): Panel {
  const { node, run } = plot;
  const height = 110;
  const alike = new Map<string, { shares: readonly (number | null)[]; pods: number[] }>();
  for (const series of node.pods) {
    if (shortOfCpu(node, series).length === 0) continue;
    const shares = series.cpuWantedMilli.map((wanted, index) => (wanted ? (100 * (series.cpuGrantedMilli[index] ?? 0)) / wanted : null));
    const same = alike.get(shares.join());
    if (same === undefined) alike.set(shares.join(), { shares, pods: [series.pod] });
    else same.pods.push(series.pod);
  }
  const least = (shares: readonly (number | null)[]) => Math.min(...shares.filter((share) => share !== null));
  const worst = [...alike.values()].sort((one, other) => least(one.shares) - least(other.shares)).slice(0, MOST_SHARES);
  const more = alike.size > worst.length ? `; the worst ${worst.length} of ${alike.size} lines` : "";
  return {
    name: "cpu-share",
    title: "CPU share",
    note: `granted of wanted, of pods that were short of CPU${more}`,
    height,
    draw(body) {
      const y = linear([0, 108], [height, 0]);
      grid(body, plot, y, [0, 50, 100], (value) => `${value} %`);
      const marks: Mark[] = [];
      for (const { shares, pods } of worst) {
        const pod = run.pods[pods[0] ?? 0];
        if (pod === undefined) continue;
        const [first, last] = shown(plot);
        let path = "";
        let begins = true;
        for (let index = first; index <= last; index++) {
          const share = shares[index] ?? null;
          if (share !== null) path += `${begins ? "M" : "L"}${plot.x(node.timesUs[index] ?? 0).toFixed(1)} ${y(share).toFixed(1)}`;
          begins = share === null;
        }
        body.append(s("path", { class: "series share", d: path, stroke: pod.colour, "clip-path": "url(#plot)" }));
        const others = pods.length > 1 ? ` and ${pods.length - 1} more` : "";
        marks.push({ y: y(least(shares)), text: `${nameOf(run, pod.key)}${others}: ${percent(least(shares) / 100)}`, kind: "pods" });
      }
      write(body, places(plot, marks, height));
    },
  };
}

/** How services answered, and how often not: those of the whole run, with its first node. */
export function servicePanels(plot: Plot): Panel[] {
  const { run, node } = plot;
  const all = run.summary.services ?? [];
  if (all.length === 0 || node !== run.nodes[0]) return [];
  const worst = all.toSorted((one, other) => other.errors - one.errors || (other.worstP99Us ?? 0) - (one.worstP99Us ?? 0)).slice(0, MOST_SHARES);
  const more = all.length > worst.length ? `; the worst ${worst.length} of ${all.length}` : "";
  const latency = servicePanel(plot, worst, { name: "latency", title: "Latency of services", note: `p99, a model${more}`, value: (sample) => sample.p99Us, words: (value) => (value === 0 ? "0 s" : duration(value)) });
  const fails = worst.some((each) => each.worstErrorsPermille > 0);
  const errors = servicePanel(plot, worst, {
    name: "errors",
    title: "Errors of services",
    note: `requests refused, late or failed, a model${more}`,
    value: (sample) => sample.errorsPermille,
    words: (value) => percent(value / 1000),
  });
  return fails ? [latency, errors] : [latency];
}

interface ServiceFigure {
  name: string;
  title: string;
  note: string;
  value(sample: ServiceOutcome["samples"][number]): number | null;
  words(value: number): string;
}

/** One figure of each service over time; between two samples the earlier one holds. */
function servicePanel(plot: Plot, services: readonly ServiceOutcome[], figure: ServiceFigure): Panel {
  const height = 110;
  const most = (service: ServiceOutcome) => Math.max(0, ...service.samples.map((sample) => figure.value(sample) ?? 0));
  const top = Math.max(1, ...services.map(most));
  return {
    name: figure.name,
    title: figure.title,
    note: figure.note,
    height,
    draw(body) {
      const y = linear([0, top * 1.08], [height, 0]);
      grid(body, plot, y, ticks(0, top, 3), figure.words);
      const marks: Mark[] = [];
      services.forEach((service, index) => {
        let path = "";
        let begins = true;
        service.samples.forEach((sample, at) => {
          const value = figure.value(sample);
          const until = service.samples[at + 1]?.timeUs ?? plot.run.endUs;
          if (value !== null) path += `${begins ? "M" : "L"}${plot.x(sample.timeUs).toFixed(1)} ${y(value).toFixed(1)}H${plot.x(until).toFixed(1)}`;
          begins = value === null;
        });
        body.append(s("path", { class: "series share", d: path, stroke: SERVICES[index] ?? "", "clip-path": "url(#plot)" }));
        marks.push({ y: y(most(service)), text: `${service.workload.split("/")[1] ?? service.workload}: ${figure.words(most(service))} at most`, kind: "pods" });
      });
      write(body, places(plot, marks, height));
    },
  };
}

/** When a pod got less CPU than it wanted. */
export function shortOfCpu(node: NodeView, series: NodeView["pods"][number]): { from: number; to: number }[] {
  const denied = series.cpuWantedMilli.map((wanted, index) => (wanted ?? 0) - (series.cpuGrantedMilli[index] ?? 0));
  const spans: { from: number; to: number }[] = [];
  node.timesUs.forEach((to, index) => {
    const from = node.timesUs[index - 1];
    if (from === undefined || from >= to || ((denied[index - 1] ?? 0) <= 0 && (denied[index] ?? 0) <= 0)) return;
    const before = spans.at(-1);
    if (before?.to === from) before.to = to;
    else spans.push({ from, to });
  });
  return spans;
}

function signalPanel(plot: Plot, series: NodeView["signals"][number]): Panel {
  const height = plot.node.panels[0] === series.signal ? 180 : 100;
  const amount = series.signal.endsWith("inodesFree") || series.signal.startsWith("pid") ? count : bytes;
  const thresholds = plot.node.thresholds.filter((each) => each.signal === series.signal);
  return {
    name: "signal",
    title: series.signal,
    note: `what is left of ${amount(series.capacity)}`,
    height,
    draw(body: SVGGElement) {
      const top = Math.max(1, ...series.left, ...thresholds.map((each) => each.amount)) * 1.08;
      const y = linear([0, top], [height, 0]);
      grid(body, plot, y, ticks(0, top, 4, amount === bytes ? 2 : 10), amount);
      drawThresholds(body, plot, y, thresholds);
      line(body, plot, y, series.left, "series available");
      write(body, places(plot, thresholds.map((each) => thresholdMark(each, y)), height));
    },
  };
}

// ---- thresholds and their labels ------------------------------------------------------------------------------------

interface Mark {
  y: number;
  text: string;
  kind: string;
}

/** Where a label is written, and the room that it takes. */
interface Place extends Mark {
  x: number;
  left: number;
}

const LINE = 14;

function kindOf(threshold: ThresholdLine): string {
  return threshold.hard ? "hard" : "soft";
}

function thresholdMark(threshold: ThresholdLine, y: Scale): Mark {
  const kind = kindOf(threshold);
  return { y: y(threshold.amount), text: `${kind}: ${threshold.statement}`, kind };
}

function drawThresholds(body: SVGGElement, plot: Plot, y: Scale, thresholds: readonly ThresholdLine[]): void {
  for (const each of thresholds) {
    body.append(s("line", { class: `threshold ${kindOf(each)}`, x1: plot.left, x2: plot.right, y1: y(each.amount), y2: y(each.amount) }));
  }
}

/** Find a line for each label: above its mark where there is room, and never two on one another. */
function places(plot: Plot, marks: readonly Mark[], height: number): Place[] {
  const wanted = marks.map((mark) => ({ ...mark, y: mark.y - 5 })).sort((one, other) => one.y - other.y);
  let top = LINE - 3;
  for (const mark of wanted) {
    mark.y = Math.max(mark.y, top);
    top = mark.y + LINE;
  }
  let bottom = height - 3;
  for (const mark of wanted.toReversed()) {
    mark.y = Math.min(mark.y, bottom);
    bottom = mark.y - LINE;
  }
  const x = plot.right - 6;
  return wanted.map((mark) => ({ ...mark, x, left: x - textWidth(mark.text) }));
}

function write(body: SVGGElement, found: readonly Place[]): void {
  for (const each of found) body.append(s("text", { class: `label ${each.kind}`, x: each.x, y: each.y }, each.text));
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

/** The indices to draw: those in view and one more on either side. */
function shown(plot: Plot): [number, number] {
  const times = plot.node.timesUs;
  let first = times.findIndex((each) => each >= plot.fromUs);
  let last = times.findLastIndex((each) => each <= plot.toUs);
  first = Math.max(0, (first < 0 ? times.length : first) - 1);
  last = Math.min(times.length - 1, last + 1);
  return [first, last];
}

function stack(body: SVGGElement, plot: Plot, y: Scale, layers: readonly Layer[], taken: readonly Place[]): void {
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
    const place = roomFor(closer(spans, plot), plot, textWidth(layer.label, NAME) + 14, taken);
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

/** The points of a band, and some between those that are far apart: a name may begin there. */
function closer(spans: readonly Span[], plot: Plot): Span[] {
  return spans.flatMap((one, index) => {
    const other = spans[index + 1] ?? one;
    const steps = Math.max(1, Math.ceil((Math.min(plot.right, other.x) - Math.max(plot.left, one.x)) / 24));
    const between = (start: number, end: number, step: number) => start + ((end - start) * step) / steps;
    return Array.from({ length: steps }, (_, step) => ({ x: between(one.x, other.x, step), top: between(one.top, other.top, step), bottom: between(one.bottom, other.bottom, step) }));
  });
}

/** The first place in a band where a text of this width fits, and the middle of the band there. */
function roomFor(spans: readonly Span[], plot: Plot, width: number, taken: readonly Place[]): { x: number; y: number } | null {
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
    const y = (top + bottom) / 2;
    const free = taken.every((each) => x + width < each.left || Math.abs(each.y - 4 - y) > LINE);
    if (bottom - top >= 14 && free) return { x, y };
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
