// The big picture: one drawing of stacked panels over one axis of time. Panels know how to draw themselves; what they
// share (time, marks of kills, the cursor, zooming) is here.

import { s } from "./dom";
import { time } from "./format";
import { marks } from "./marks";
import { conditionsPanel, lifelinesPanel } from "./lifelines";
import { cpuPanel, leftPanel, memoryPanel, signalPanels, type Panel, type Plot } from "./panels";
import { linear, timeTicks } from "./scale";
import type { State } from "./state";

const LEFT = 62;
const RIGHT = 14;
const TITLE = 24;
const GAP = 14;
const RAIL = 40;
const AXIS = 26;

export class Charts {
  readonly element: HTMLElement;
  private readonly state: State;
  private svg: SVGSVGElement;
  private plot: Plot | null = null;
  private cursor: SVGGElement | null = null;
  private drag: { startX: number; box: SVGRectElement } | null = null;
  private width = 0;

  constructor(state: State, element: HTMLElement) {
    this.state = state;
    this.element = element;
    this.svg = s("svg");
    element.append(this.svg);
    state.subscribe((changed) => {
      if (changed.has("node") || changed.has("fromUs") || changed.has("toUs")) this.draw();
      else {
        if (changed.has("kill")) this.draw();
        if (changed.has("timeUs")) this.placeCursor();
        if (changed.has("pod")) this.highlight();
      }
    });
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry?.contentRect.width ?? 0);
      if (width > 0 && width !== this.width) {
        this.width = width;
        this.draw();
      }
    }).observe(element);
  }

  private draw(): void {
    if (this.width === 0) return;
    const { node, fromUs, toUs } = this.state.now;
    const plot: Plot = {
      run: this.state.run,
      node,
      state: this.state,
      fromUs,
      toUs,
      x: linear([fromUs, toUs], [LEFT, this.width - RIGHT]),
      left: LEFT,
      right: this.width - RIGHT,
    };
    const panels: Panel[] = [
      memoryPanel(plot),
      leftPanel(plot),
      cpuPanel(plot),
      ...signalPanels(plot),
      conditionsPanel(plot),
      lifelinesPanel(plot),
    ].filter((panel): panel is Panel => panel !== null);
    const height = RAIL + panels.reduce((sum, panel) => sum + TITLE + panel.height + GAP, 0) + AXIS;
    const svg = s("svg", {
      width: this.width,
      height,
      viewBox: `0 0 ${this.width} ${height}`,
      role: "group",
      "aria-label": `Memory, CPU and conditions of ${node.name} over time`,
    });
    svg.append(defs(plot, height), s("rect", { class: "backdrop", x: LEFT, y: 0, width: plot.right - LEFT, height }));
    const ends = timeTicks(fromUs, toUs, (plot.right - LEFT) / 110);
    let top = RAIL;
    for (const panel of panels) {
      svg.append(this.panel(panel, plot, top, ends));
      top += TITLE + panel.height + GAP;
    }
    svg.append(axis(plot, top - GAP + 4, ends), marks(plot, RAIL, top - GAP));
    this.cursor = s("g", { class: "cursor" });
    svg.append(this.cursor);
    this.listen(svg, plot);
    this.svg.replaceWith(svg);
    this.svg = svg;
    this.plot = plot;
    this.placeCursor();
    this.highlight();
  }

  private panel(panel: Panel, plot: Plot, top: number, ends: { at: number[] }): SVGGElement {
    const group = s("g", { class: `panel ${panel.name}`, transform: `translate(0 ${top})` });
    const title = s("text", { class: "title", x: panel.titleX ?? LEFT, y: 15 }, panel.title);
    if (panel.note) title.append(s("tspan", { class: "note", dx: 8 }, panel.note));
    const body = s("g", { transform: `translate(0 ${TITLE})` });
    for (const tick of ends.at) {
      body.append(s("line", { class: "grid", x1: plot.x(tick), x2: plot.x(tick), y1: 0, y2: panel.height }));
    }
    panel.draw(body);
    group.append(title, body);
    return group;
  }

  private placeCursor(): void {
    const { plot, cursor } = this;
    if (plot === null || cursor === null) return;
    const { timeUs } = this.state.now;
    cursor.replaceChildren();
    if (timeUs < plot.fromUs || timeUs > plot.toUs) return;
    const x = plot.x(timeUs);
    const height = Number(this.svg.getAttribute("height"));
    const text = time(timeUs, (plot.toUs - plot.fromUs) / 1000);
    const width = text.length * 6.4 + 14;
    const left = Math.min(plot.right - width, Math.max(plot.left, x - width / 2));
    cursor.append(
      s("line", { x1: x, x2: x, y1: RAIL - 4, y2: height - AXIS + 2 }),
      s("rect", { x: left, y: height - AXIS + 2, width, height: 20, rx: 4 }),
      s("text", { x: left + width / 2, y: height - AXIS + 16 }, text),
    );
  }

  private highlight(): void {
    const { pod } = this.state.now;
    this.svg.classList.toggle("focused", pod !== null);
    for (const element of this.svg.querySelectorAll<SVGElement>("[data-pod]")) {
      element.classList.toggle("focus", element.dataset["pod"] === String(pod));
    }
  }

  private listen(svg: SVGSVGElement, plot: Plot): void {
    const at = (event: PointerEvent | MouseEvent) => {
      const x = event.clientX - svg.getBoundingClientRect().left;
      return Math.min(plot.right, Math.max(plot.left, x));
    };
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || (event.target as Element).closest("[role=button]")) return;
      const box = s("rect", { class: "brush", y: RAIL, height: Number(svg.getAttribute("height")) - RAIL - AXIS, x: at(event), width: 0 });
      this.drag = { startX: at(event), box };
      svg.append(box);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (this.drag === null) {
        const over = (event.target as Element).closest<SVGElement>("[data-pod]");
        this.state.change({ pod: over ? Number(over.dataset["pod"]) : null });
        return;
      }
      const [low, high] = [Math.min(this.drag.startX, at(event)), Math.max(this.drag.startX, at(event))];
      this.drag.box.setAttribute("x", String(low));
      this.drag.box.setAttribute("width", String(high - low));
    });
    svg.addEventListener("pointerup", (event) => {
      if (this.drag === null) return;
      const { startX, box } = this.drag;
      this.drag = null;
      box.remove();
      const end = at(event);
      if (Math.abs(end - startX) < 6) this.state.moveTo(plot.x.invert(end));
      else this.state.change({ fromUs: Math.max(0, plot.x.invert(Math.min(startX, end))), toUs: Math.min(plot.run.endUs, plot.x.invert(Math.max(startX, end))) });
    });
    svg.addEventListener("pointerleave", () => this.state.change({ pod: null }));
    svg.addEventListener("dblclick", () => this.state.change({ fromUs: 0, toUs: plot.run.endUs }));
  }
}

function axis(plot: Plot, top: number, ends: { step: number; at: number[] }): SVGGElement {
  const group = s("g", { class: "axis", transform: `translate(0 ${top})` });
  for (const tick of ends.at) {
    const x = plot.x(tick);
    group.append(s("text", { x: Math.min(x, plot.right - 12), y: 14, "text-anchor": "middle" }, time(tick, ends.step)));
  }
  return group;
}

function defs(plot: Plot, height: number): SVGDefsElement {
  const hatch = (id: string, spacing: number, className: string) =>
    s(
      "pattern",
      { id, width: spacing, height: spacing, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      s("line", { class: className, x1: 0, x2: 0, y1: 0, y2: spacing }),
    );
  return s(
    "defs",
    {},
    s("clipPath", { id: "plot" }, s("rect", { x: plot.left, y: -2, width: Math.max(0, plot.right - plot.left), height })),
    hatch("cache", 6, "hatch-cache"),
    hatch("throttled", 5, "hatch-throttled"),
  );
}
