// Victims above the charts: a diamond for the kernel, a circle for the kubelet, with a number, the name and the reason.
// Those too close to tell apart share a mark; what happens again to the same workload has a number only.

import { s } from "./dom";
import { fate, time, victims } from "./format";
import type { Plot } from "./panels";
import { nameOf } from "./run";
import type { Kill } from "./schema";
import { fitted, NAME, SMALL, textWidth } from "./text";

const CLOSE = 24;
const MARKS = 34;
const LANE = 31;
const LANES = 4;

/** From where to where a panel is drawn. */
export type Extent = readonly [number, number];

export interface Rail {
  height: number;
  /** Draw marks and names above the panels, and a line through each of them. */
  draw(panels: readonly Extent[]): SVGGElement;
}

interface Label {
  kills: Kill[];
  x: number;
  left: number;
  width: number;
  lane: number;
  name: string;
  cause: string;
}

export function rail(plot: Plot): Rail {
  const groups = grouped(plot);
  const labels = named(plot, groups);
  const lanes = Math.max(0, ...labels.map((label) => label.lane + 1));
  const height = groups.length === 0 ? 8 : lanes * LANE + MARKS;
  return {
    height,
    draw(panels) {
      const leaders = s("g", { class: "leaders" });
      const names = s("g", { class: "victims" });
      for (const label of labels) {
        const top = label.lane * LANE;
        const by = signOf(label.kills);
        leaders.append(s("path", { class: `leader ${by}`, d: `M${label.x} ${top + 20}V${height - MARKS}` }));
        names.append(
          s("rect", { class: "behind", x: label.left - 3, y: top, width: label.width + 6, height: LANE - 2 }),
          s("text", { class: `victim ${by}`, x: label.left, y: top + 12 }, label.name),
          s("text", { class: "cause", x: label.left, y: top + 25.5 }, label.cause),
        );
      }
      return s("g", { class: "marks" }, leaders, names, ...groups.map((kills) => mark(plot, kills, height, panels)));
    },
  };
}

function mark(plot: Plot, kills: readonly Kill[], rail: number, panels: readonly Extent[]): SVGGElement {
  const [first] = kills as [Kill];
  const x = plot.x(first.timeUs);
  const selected = plot.state.now.kill !== null && kills.includes(plot.state.now.kill);
  const text = kills.length === 1 ? `${nameOf(plot.run, first.pod)} ${fate(first.by)} after ${time(first.timeUs)}: ${first.cause}` : `${victims(kills.map((kill) => kill.by))} from ${time(first.timeUs)}`;
  const by = signOf(kills);
  const number = kills.length === 1 ? String(plot.state.kills.indexOf(first) + 1) : `${kills.length}×`;
  const element = s(
    "g",
    { class: `mark ${by}${selected ? " selected" : ""}`, role: "button", tabindex: 0, "aria-label": `${number} ${text}`, "aria-pressed": selected ? "true" : "false" },
    s("title", {}, text),
    s("path", { class: "through", d: panels.map(([top, bottom]) => `M${x} ${top}V${bottom}`).join("") }),
    shape(by, x, rail - 19),
    glyph(number, x, rail - 19),
  );
  const choose = () => {
    const at = kills.indexOf(plot.state.now.kill as Kill);
    const next = kills[(at + 1) % kills.length];
    if (next) plot.state.showKill(next);
  };
  element.addEventListener("click", choose);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose();
    }
  });
  return element;
}

export function shape(by: string, x: number, y: number, size = 11): SVGElement {
  if (by === "kernel") return s("path", { class: "shape", d: `M${x} ${y - size - 1}L${x + size + 1} ${y}L${x} ${y + size + 1}L${x - size - 1} ${y}Z` });
  if (by === "both") return s("rect", { class: "shape", x: x - size, y: y - size, width: 2 * size, height: 2 * size, rx: 3 });
  return s("circle", { class: "shape", cx: x, cy: y, r: size });
}

/** A number on a sign: the longer, the smaller. */
export function glyph(words: string, x: number, y: number): SVGTextElement {
  const size = words.length < 3 ? 11 : words.length === 3 ? 8.5 : 7;
  return s("text", { class: "glyph", x, y: y + size * 0.36, style: `font-size:${size}px` }, words);
}

function signOf(kills: readonly Kill[]): string {
  const signs = new Set(kills.map((kill) => (kill.by === "kernel" ? "kernel" : "kubelet")));
  return signs.size === 1 ? ([...signs][0] as string) : "both";
}

function grouped(plot: Plot): Kill[][] {
  const groups: Kill[][] = [];
  let end = -Infinity;
  for (const kill of plot.state.kills) {
    if (kill.timeUs < plot.fromUs || kill.timeUs > plot.toUs) continue;
    const x = plot.x(kill.timeUs);
    if (x - end < CLOSE) groups.at(-1)?.push(kill);
    else {
      groups.push([kill]);
      end = x;
    }
  }
  return groups;
}

/** The names and reasons that there is room for: earlier ones higher, so that the lines down to marks stay free. */
function named(plot: Plot, groups: readonly Kill[][]): Label[] {
  const workloads = new Map(plot.run.pods.map((pod) => [pod.key, pod.workload]));
  // The same again: the same workload for the same reason, whatever the figures.
  const alike = (kill: Kill) => `${workloads.get(kill.pod) ?? kill.pod} ${kill.by} ${kill.cause.replace(/\d[\d.]*/g, "")}`;
  const times = new Map<string, number>();
  for (const kill of plot.state.kills) times.set(alike(kill), (times.get(alike(kill)) ?? 0) + 1);
  const seen = new Set<string>();
  const ends: number[] = [];
  const labels: Label[] = [];
  for (const kills of groups) {
    const fresh = kills.filter((kill) => !seen.has(alike(kill)) && seen.add(alike(kill)));
    const [first] = fresh;
    if (first === undefined) continue;
    const room = plot.right - plot.left;
    const often = times.get(alike(first)) ?? 1;
    const others = fresh.length > 1 ? ` and ${fresh.length - 1} more` : often > 1 ? ` ×${often}` : "";
    const name = `${fitted(nameOf(plot.run, first.pod), room - textWidth(others, NAME), NAME)}${others}`;
    const cause = fitted(first.cause, room);
    const width = Math.max(textWidth(name, NAME), textWidth(cause, SMALL));
    const x = plot.x(first.timeUs);
    const left = Math.max(plot.left, Math.min(x - 6, plot.right - width));
    let lane = ends.findIndex((end) => end + 12 < left);
    if (lane < 0) lane = ends.length;
    if (lane >= LANES) continue;
    ends[lane] = left + width;
    labels.push({ kills, x, left, width, lane, name, cause });
  }
  return labels;
}
