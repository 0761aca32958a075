// Kills above the charts: a diamond for the kernel, a circle for the kubelet. Those too close to tell apart share a mark.

import { s } from "./dom";
import { bare, time } from "./format";
import type { Plot } from "./panels";
import type { Kill } from "./schema";

const CLOSE = 17;

export function marks(plot: Plot, rail: number, bottom: number): SVGGElement {
  const group = s("g", { class: "marks" });
  for (const kills of grouped(plot)) {
    const [first] = kills;
    if (first === undefined) continue;
    const x = plot.x(first.timeUs);
    const selected = kills.includes(plot.state.now.kill as Kill);
    const text = kills.length === 1 ? `${bare(first.pod)}, ${first.by}, ${time(first.timeUs)}` : `${kills.length} kills from ${time(first.timeUs)}`;
    const kind = kills.every((kill) => kill.by === first.by) ? first.by : "both";
    const mark = s(
      "g",
      { class: `mark ${kind}${selected ? " selected" : ""}`, role: "button", tabindex: 0, "aria-label": text, "aria-pressed": selected ? "true" : "false" },
      s("title", {}, text),
      s("line", { x1: x, x2: x, y1: rail - 12, y2: bottom }),
      shape(kind, x, rail - 20),
      s("text", { class: "glyph", x, y: rail - 16 }, kills.length === 1 ? String(plot.state.kills.indexOf(first) + 1) : `${kills.length}×`),
    );
    const choose = () => {
      const at = kills.indexOf(plot.state.now.kill as Kill);
      const next = kills[(at + 1) % kills.length];
      if (next) plot.state.showKill(next);
    };
    mark.addEventListener("click", choose);
    mark.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose();
      }
    });
    group.append(mark);
  }
  return group;
}

export function shape(by: string, x: number, y: number, size = 11): SVGElement {
  if (by === "kernel") return s("path", { class: "shape", d: `M${x} ${y - size - 1}L${x + size + 1} ${y}L${x} ${y + size + 1}L${x - size - 1} ${y}Z` });
  if (by === "kubelet") return s("circle", { class: "shape", cx: x, cy: y, r: size });
  return s("rect", { class: "shape", x: x - size, y: y - size, width: 2 * size, height: 2 * size, rx: 3 });
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
