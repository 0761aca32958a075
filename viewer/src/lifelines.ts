// Node conditions and the lifetimes of pods.

import { s } from "./dom";
import { time } from "./format";
import { shape } from "./marks";
import { isDark, shortOfCpu, type Panel, type Plot } from "./panels";
import { nameOf } from "./run";
import { fitted, NAME, textWidth } from "./text";

const ROW = 19;
const MOST = 40;
/** Half the width of a small mark. */
const MARK = 8;

export function conditionsPanel(plot: Plot): Panel {
  const { node } = plot;
  const names = [...new Set(node.conditions.map((span) => span.condition))].sort();
  return {
    name: "conditions",
    title: "Conditions",
    note: "as the node reported them",
    height: names.length * ROW,
    draw(body) {
      names.forEach((name, row) => {
        const spans = node.conditions.filter((each) => each.condition === name).map((each) => ({ from: each.startUs, to: each.endUs ?? plot.run.endUs }));
        const drawn = onScreen(plot, spans);
        for (const span of drawn) {
          body.append(s("rect", { class: "condition", x: span.from, y: row * ROW + 1, width: Math.max(2, span.to - span.from), height: ROW - 4, rx: 3 }, s("title", {}, `${name} from ${time(spans[0]?.from ?? 0)}`)));
        }
        label(body, plot, name, drawn, [], row * ROW, (inside) => (inside ? "on-condition" : "outside"));
      });
    },
  };
}

const CHECKS = 12;
/** Ticks closer than this are merged. */
const CLOSE = 4;

/** The kubelet's eviction checks, whether or not it found anything to do. */
export function checksPanel(plot: Plot): Panel {
  const { looks } = plot.node;
  const every = [...new Set(looks.map((each) => time(each.everyUs, 1e6)))].join(", ");
  return {
    name: "checks",
    title: "Kubelet checks",
    note: `of its eviction thresholds, every ${every}`,
    height: CHECKS,
    draw(body) {
      for (const span of looks) {
        const [first, last] = [Math.max(0, Math.ceil((plot.fromUs - span.firstUs) / span.everyUs)), Math.floor((Math.min(plot.toUs, span.lastUs) - span.firstUs) / span.everyUs)];
        if (last < first) continue;
        const at = (index: number) => plot.x(span.firstUs + index * span.everyUs);
        if (at(1) - at(0) < CLOSE) {
          body.append(s("rect", { class: "checks", x: at(first), y: 0, width: Math.max(1.5, at(last) - at(first)), height: CHECKS }));
        } else {
          const ticks = Array.from({ length: last - first + 1 }, (_, index) => `M${at(first + index).toFixed(1)} 0v${CHECKS}`);
          body.append(s("path", { class: "checks", d: ticks.join("") }));
        }
      }
    },
  };
}

interface Span {
  from: number;
  to: number;
}

export function lifelinesPanel(plot: Plot): Panel {
  const { node, run } = plot;
  const rows = node.pods.slice(0, MOST);
  const hidden = node.pods.length - rows.length;
  const slowed = rows.some((series) => shortOfCpu(node, series).length > 0);
  return {
    name: "lifelines",
    title: "Pods",
    note: ["running time", ...(slowed ? ["red: short of CPU"] : []), ...(hidden > 0 ? [`${hidden} more not shown`] : [])].join("; "),
    height: rows.length * ROW,
    draw(body) {
      rows.forEach((series, row) => {
        const pod = run.pods[series.pod];
        if (pod === undefined) return;
        const top = row * ROW;
        const spans = onScreen(plot, running(plot, series.anonBytes));
        for (const span of spans) {
          body.append(s("rect", { class: `life ${pod.qosClass}`, "data-pod": series.pod, x: span.from, y: top + 1, width: Math.max(1.5, span.to - span.from), height: ROW - 4, rx: 3, fill: pod.colour }));
        }
        for (const span of onScreen(plot, shortOfCpu(node, series))) {
          body.append(s("rect", { class: "short-of-cpu", x: span.from, y: top + ROW - 6, width: Math.max(1.5, span.to - span.from), height: 3 }, s("title", {}, "short of CPU")));
        }
        const kills = plot.state.kills.filter((kill) => kill.pod === pod.key && kill.timeUs >= plot.fromUs && kill.timeUs <= plot.toUs);
        const marks = kills.map((kill) => plot.x(kill.timeUs));
        label(body, plot, nameOf(run, pod.key), spans, marks, top, (inside) => (inside ? (isDark(pod.colour) ? "on-dark" : "on-light") : "outside"), series.pod);
        kills.forEach((kill, index) => body.append(s("g", { class: `mark small ${kill.by}` }, shape(kill.by, marks[index] ?? 0, top + ROW / 2 - 1, 5))));
      });
    },
  };
}

/** Write a name where it fits: on one of the spans, or else between them, clear of marks. */
function label(body: SVGGElement, plot: Plot, text: string, spans: readonly Span[], marks: readonly number[], top: number, kind: (inside: boolean) => string, pod?: number): void {
  const width = textWidth(text, NAME) + 12;
  const edges = [...new Set([plot.left, ...spans.flatMap((span) => [span.from, span.to]), ...marks.flatMap((x) => [x - MARK, x + MARK]), plot.right])].sort((one, other) => one - other);
  const parts = edges.slice(1).map((to, index) => ({ from: edges[index] ?? 0, to }));
  const free = parts.filter((part) => !marks.some((x) => part.from < x + MARK && part.to > x - MARK));
  const within = (part: Span) => spans.some((span) => span.from <= part.from && span.to >= part.to);
  const fits = (part: Span) => part.to - part.from >= width;
  const place = free.find((part) => within(part) && fits(part)) ?? free.find((part) => !within(part) && fits(part));
  const widest = free.toSorted((one, other) => other.to - other.from - (one.to - one.from))[0];
  const part = place ?? widest;
  if (part === undefined) return;
  const words = place === undefined ? fitted(text, part.to - part.from - 8, NAME) : text;
  body.append(s("text", { class: `name ${kind(within(part))}`, x: part.from + 6, y: top + 12.5, ...(pod === undefined ? {} : { "data-pod": pod }) }, words));
}

/** The visible parts of spans, in pixels. */
function onScreen(plot: Plot, spans: readonly Span[]): Span[] {
  return spans
    .map((span) => ({ from: Math.max(plot.left, plot.x(span.from)), to: Math.min(plot.right, plot.x(span.to)) }))
    .filter((span) => span.to > plot.left && span.from < plot.right);
}

/** Where a series has values. */
function running(plot: Plot, values: readonly (number | null)[]): Span[] {
  const times = plot.node.timesUs;
  const spans: Span[] = [];
  let from: number | null = null;
  values.forEach((value, index) => {
    const at = times[index] ?? 0;
    if (value !== null && from === null) from = at;
    if (value === null && from !== null) {
      spans.push({ from, to: at });
      from = null;
    }
  });
  if (from !== null) spans.push({ from, to: times.at(-1) ?? 0 });
  return spans;
}
