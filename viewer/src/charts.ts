// The big picture: one drawing of stacked panels over one axis of time. Panels know how to draw themselves; what they
// share (time, marks of kills, the cursor, zooming) is here.

import { s } from "./dom";
import { time } from "./format";
import { checksPanel, conditionsPanel, lifelinesPanel } from "./lifelines";
import { rail, type Extent } from "./marks";
import { possible, servicePanels, type Panel, type Plot } from "./panels";
import { linear, timeTicks } from "./scale";
import type { State } from "./state";
import { textWidth, wrapped } from "./text";

const LEFT = 50;
const RIGHT = 10;
const TITLE = 24;
const NOTE = 15;
const GAP = 14;
const AXIS = 26;
const HEADING = { size: 13.5, weight: 650 };
const ABOUT = { size: 12, weight: 400 };

export class Charts {
  readonly element: HTMLElement;
  private readonly state: State;
  private svg: SVGSVGElement;
  private plot: Plot | null = null;
  private cursor: SVGGElement | null = null;
  private drag: { startX: number; box: SVGRectElement } | null = null;
  private width = 0;
  private extents: readonly Extent[] = [];

  constructor(state: State, element: HTMLElement) {
    this.state = state;
    this.element = element;
    this.svg = s("svg");
    element.append(this.svg);
    state.subscribe((changed) => {
      if (changed.has("node") || changed.has("fromUs") || changed.has("toUs") || changed.has("all")) this.draw();
      else {
        if (changed.has("kill")) this.draw();
        if (changed.has("timeUs")) this.placeCursor();
        if (changed.has("pod")) this.highlight();
      }
    });
    const fit = (width: number) => {
      if (width <= 0 || width === this.width) return;
      this.width = width;
      this.draw();
    };
    // Once it is on the page, before that is painted: what is below does not move.
    queueMicrotask(() => fit(element.clientWidth));
    new ResizeObserver(([entry]) => fit(Math.round(entry?.contentRect.width ?? 0))).observe(element);
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
    const panels = shownPanels(plot).map((panel) => ({ panel, ...headed(panel, plot) }));
    const above = rail(plot);
    const height = above.height + panels.reduce((sum, { head, panel }) => sum + head + panel.height + GAP, 0) + AXIS;
    const svg = s("svg", {
      width: this.width,
      height,
      viewBox: `0 0 ${this.width} ${height}`,
      role: "group",
      "aria-label": `${panels.map(({ panel }) => panel.title).join(", ")} of ${node.name} over time`,
    });
    svg.append(defs(plot, height), s("rect", { class: "backdrop", x: LEFT, y: 0, width: plot.right - LEFT, height }));
    const ends = timeTicks(fromUs, toUs, (plot.right - LEFT) / 110);
    let top = above.height;
    this.extents = panels.map(({ panel, title, head }) => {
      svg.append(this.panel(panel, title, plot, top, head, ends));
      const extent: Extent = [top + head, top + head + panel.height];
      top = extent[1] + GAP;
      return extent;
    });
    svg.append(axis(plot, top - GAP + 4, ends), above.draw(this.extents));
    this.cursor = s("g", { class: "cursor" });
    svg.append(this.cursor);
    this.listen(svg, plot);
    this.svg.replaceWith(svg);
    this.svg = svg;
    this.plot = plot;
    this.placeCursor();
    this.highlight();
  }

  private panel(panel: Panel, title: SVGTextElement, plot: Plot, top: number, head: number, ends: { at: number[] }): SVGGElement {
    const body = s("g", { transform: `translate(0 ${head})` });
    for (const tick of ends.at) {
      body.append(s("line", { class: "grid", x1: plot.x(tick), x2: plot.x(tick), y1: 0, y2: panel.height }));
    }
    panel.draw(body);
    return s("g", { class: `panel ${panel.name}`, transform: `translate(0 ${top})` }, title, body);
  }

  private placeCursor(): void {
    const { plot, cursor } = this;
    if (plot === null || cursor === null) return;
    const { timeUs } = this.state.now;
    cursor.replaceChildren();
    const ticks = this.svg.querySelectorAll<SVGTextElement>(".axis text");
    for (const tick of ticks) tick.removeAttribute("visibility");
    if (timeUs < plot.fromUs || timeUs > plot.toUs) return;
    const x = plot.x(timeUs);
    const top = (this.extents.at(-1)?.[1] ?? 0) + 2;
    const text = time(timeUs, (plot.toUs - plot.fromUs) / 1000);
    const width = textWidth(text, { size: 11.5, weight: 600 }) + 14;
    const left = Math.min(plot.right - width, Math.max(plot.left, x - width / 2));
    cursor.append(
      s("path", { d: this.extents.map(([from, to]) => `M${x} ${from}V${to}`).join("") }),
      s("rect", { x: left, y: top, width, height: 20, rx: 4 }),
      s("text", { x: left + width / 2, y: top + 14 }, text),
    );
    for (const tick of ticks) {
      const [middle, half] = [Number(tick.getAttribute("x")), textWidth(tick.textContent ?? "") / 2];
      if (middle + half > left - 4 && middle - half < left + width + 4) tick.setAttribute("visibility", "hidden");
    }
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
      const [top, bottom] = [this.extents[0]?.[0] ?? 0, this.extents.at(-1)?.[1] ?? 0];
      const box = s("rect", { class: "brush", y: top, height: bottom - top, x: at(event), width: 0 });
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

/** The panels to draw: those that matter, or all; then what the node reported, and when pods ran. */
function shownPanels(plot: Plot): Panel[] {
  const there = possible(plot.node);
  const names = plot.state.now.all ? [...new Set([...plot.node.panels, ...there.keys()])] : plot.node.panels;
  const conditions = plot.node.conditions.length > 0 ? [conditionsPanel(plot)] : [];
  const checks = plot.node.looks.length > 0 ? [checksPanel(plot)] : [];
  return [...names.flatMap((name) => there.get(name)?.(plot) ?? []), ...servicePanels(plot), ...checks, ...conditions, lifelinesPanel(plot)];
}

/** The title of a panel with its note, behind it or in lines of its own, and how high that is. */
function headed(panel: Panel, plot: Plot): { title: SVGTextElement; head: number } {
  const title = s("text", { class: "title", x: LEFT, y: 15 }, panel.title);
  const room = plot.right - LEFT;
  if (textWidth(panel.title, HEADING) + 8 + textWidth(panel.note, ABOUT) <= room) {
    title.append(s("tspan", { class: "note", dx: 8 }, panel.note));
    return { title, head: TITLE };
  }
  const lines = wrapped(panel.note, room, ABOUT);
  title.append(...lines.map((line, index) => s("tspan", { class: "note", x: LEFT, y: 15 + NOTE * (index + 1) }, line)));
  return { title, head: TITLE + NOTE * lines.length };
}

function axis(plot: Plot, top: number, ends: { step: number; at: number[] }): SVGGElement {
  const group = s("g", { class: "axis", transform: `translate(0 ${top})` });
  let free = -Infinity;
  for (const tick of ends.at) {
    const text = time(tick, ends.step);
    const half = textWidth(text) / 2;
    const x = Math.min(plot.x(tick), plot.right + RIGHT - half);
    if (x - half < free) continue;
    free = x + half + 8;
    group.append(s("text", { x, y: 14, "text-anchor": "middle" }, text));
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
    hatch("active", 6, "hatch-active"),
    hatch("throttled", 5, "hatch-throttled"),
  );
}
