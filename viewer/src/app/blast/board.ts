// The matrix of leaking pods and victims. It has a cell for each pair of pods on a node, so only visible cells are rendered,
// without Preact: a frame has time for a few hundred.

import { h } from "../../dom";
import { bare, count, fate, seconds } from "../../format";
import type { Death } from "../../schema";
import { afterFrame } from "../frames";
import { href } from "../router";
import { lines, textWidth } from "../text";
import { NONE } from "../ui";
import { even, rowsIn, type Range } from "../windowed";

/** A leaking pod and its victims: the first death of each, and its position. */
export interface Leaking {
  pod: string;
  qosClass: string;
  deaths: ReadonlyMap<string, { death: Death; place: number }>;
}

export interface Shown {
  rows: readonly Leaking[];
  victims: readonly string[];
  /** The name of a column or a victim, with a minus if descending. */
  sort: string;
  /** The leaking pod and its victim. */
  chosen: readonly [pod: string, victim: string] | null;
}

/** The columns left of the victims. */
const COLUMNS = [
  ["pod", "Leaking pod"],
  ["taken", "Takes down"],
  ["soonest", "First victim after"],
] as const;
/** Column widths in pixels, as in blast.css. */
const [CELL, TAKEN, SOONEST] = [36, 64, 100];
/** The pods: with the class next to the name, or below it in a window narrower than this. */
const [BESIDE, BELOW, NARROW] = [320, 132, 640];
const [CHIP, LINE, PADDING] = [104, 18, 8];
/** Longer names of victims are cut with an ellipsis. */
const LONGEST = 170;
/** The margin rendered above and below in pixels; columns per step; and the time budget of a frame. */
const [BEYOND, STEP, BUDGET_MS] = [80, 4, 1];

/** A cell without a victim. */
const EMPTY = h("td", { role: "gridcell" }, h("button", { type: "button", tabindex: -1, "aria-pressed": "false" }));

interface Drawn {
  element: HTMLElement;
}

interface Row extends Drawn {
  /** The pod that leaks: all are in one element that stays at the left, for each that does so by itself costs a layer. */
  corner: HTMLElement;
  link: HTMLAnchorElement;
  chip: HTMLElement;
  taken: HTMLElement;
  soonest: HTMLElement;
  /** By the victim's column. */
  cells: Map<number, Drawn & { button: HTMLElement }>;
  /** The rendered content, and its column range. */
  of: Leaking | null;
  columns: Range;
}

export class Board {
  readonly element: HTMLElement;
  readonly #table = h("table", { role: "grid", "aria-label": "Leaking pods and their victims" });
  readonly #head = h("tr", { role: "row", "aria-rowindex": 1 });
  readonly #body = h("tbody", { role: "rowgroup" });
  readonly #pods = h("div", { class: "pods" });
  /** Both by their number, the headings of the columns before the victims below 0. */
  readonly #headings = new Map<number, Drawn>();
  readonly #rows = new Map<number, Row>();
  #shown: Shown = { rows: [], victims: [], sort: "", chosen: null };
  #columnOf: ReadonlyMap<string, number> = new Map();
  #tops = even(0, CELL);
  #lefts = even(0, CELL);
  /** How wide the columns before the victims are. */
  #before = 0;
  /** How wide and high the box is, and how far it is scrolled to the right and down. */
  #size: Range = [0, 0];
  #scrolled: Range = [0, 0];
  #isLaid = false;
  #later: (() => void) | null = null;

  /** `sort` is told the name of a heading, `choose` the cell. */
  constructor(sort: (name: string) => void, choose: (pod: string, victim: string) => void, gone: AbortSignal) {
    this.#table.append(h("thead", { role: "rowgroup" }, this.#head), this.#body);
    this.element = h("div", { class: "matrix", tabindex: 0, role: "region", "aria-label": "Matrix of leaking pods and their victims" }, h("div", { class: "sheet" }, this.#table, this.#pods));
    COLUMNS.forEach(([, title], index) => this.#addHeading(index - COLUMNS.length, title, index === 0 ? "corner" : "number"));
    this.element.addEventListener("click", ({ target }) => {
      const [number, column] = placeOf(target);
      const [row, victim] = [this.#shown.rows[number], this.#shown.victims[column]];
      if (row !== undefined && victim !== undefined) choose(row.pod, victim);
      else if (number === -1) sort(this.#nameOf(column));
    });
    this.element.addEventListener("keydown", (event) => this.#press(event));
    this.element.addEventListener("pointerover", ({ target }) => {
      const cell = (target as Element).closest(".cell");
      if (cell instanceof HTMLElement) cell.title = cell.ariaLabel ?? "";
    });
    // Where it is and how large is asked for when that changes: to ask lays the page out.
    const { element } = this;
    element.addEventListener("scroll", () => {
      this.#scrolled = [element.scrollLeft, element.scrollTop];
      this.#look();
    });
    const observer = new ResizeObserver(() => {
      this.#size = [element.clientWidth, element.clientHeight];
      this.#isLaid = false;
      this.#look();
    });
    observer.observe(this.element);
    gone.addEventListener("abort", () => {
      observer.disconnect();
      this.#later?.();
    });
  }

  /** Show another matrix, or the same one in another order or with another cell chosen: headings and the choice at once. */
  show(shown: Shown): void {
    const { rows, victims, sort } = this.#shown;
    this.#shown = shown;
    if (victims !== shown.victims) {
      this.#columnOf = new Map(shown.victims.map((victim, column) => [victim, column]));
      this.#lefts = even(shown.victims.length, CELL);
    }
    if (sort !== shown.sort || victims !== shown.victims) for (const [column, { element }] of this.#headings) this.#markSorted(column, element);
    if (rows !== shown.rows || victims !== shown.victims) {
      this.#isLaid = false;
      // What is below is to stay where it is.
      if (this.#before === 0) this.#lay();
      this.#goOn();
    }
    this.#markColumn();
    for (const row of this.#rows.values()) this.#markChosen(row);
  }

  #goOn(): void {
    this.#later?.();
    this.#later = afterFrame(() => this.#look());
  }

  /** Find out where everything is. */
  #lay(): void {
    const { rows, victims } = this.#shown;
    this.#isLaid = true;
    const isNarrow = innerWidth < NARROW;
    const corner = isNarrow ? BELOW : BESIDE;
    const before = corner + TAKEN + SOONEST;
    if (before !== this.#before) {
      this.#before = before;
      for (const [column, { element }] of this.#headings) if (column >= 0) element.style.left = this.#left(column);
      for (const row of this.#rows.values()) empty(row);
    }
    const forName = corner - 2 * PADDING - (isNarrow ? 0 : CHIP);
    this.#tops = new Float64Array(rows.length + 1);
    rows.forEach(({ pod }, number) => {
      const height = (lines(pod, forName) + (isNarrow ? 1 : 0)) * LINE + 2 * PADDING;
      this.#tops[number + 1] = (this.#tops[number] as number) + Math.max(CELL, height);
    });
    const longest = victims.reduce((most, victim) => Math.max(most, textWidth(bare(victim))), 0);
    this.#table.style.width = `${before + victims.length * CELL}px`;
    this.#head.style.height = `${Math.ceil(Math.min(LONGEST, longest)) + 40}px`;
    this.#body.style.height = this.#pods.style.height = `${this.#tops[rows.length]}px`;
    this.element.classList.toggle("narrow", isNarrow);
    this.#table.ariaRowCount = String(1 + rows.length);
    this.#table.ariaColCount = String(COLUMNS.length + victims.length);
    this.#markColumn();
    for (const [number, row] of this.#rows) if (number < rows.length) this.#stand(row, number);
  }

  /** Draw what is near, as much as a frame has time for; the rest comes with the next ones. */
  #look(): void {
    if (this.#size[0] === 0) return;
    if (!this.#isLaid) {
      this.#lay();
      return this.#goOn();
    }
    const until = performance.now() + BUDGET_MS;
    const [rows, columns] = this.#near();
    for (const [number, row] of this.#rows) {
      if (isIn(number, rows) || (number < this.#shown.rows.length && hasFocus(row))) continue;
      row.element.remove();
      row.corner.remove();
      this.#rows.delete(number);
    }
    if (this.#drawHeadings(columns) > STEP) return this.#goOn();
    for (let number = rows[0]; number < rows[1]; number++) {
      if (performance.now() > until) return this.#goOn();
      this.#draw(number, columns);
    }
  }

  /** Return the rows and the columns of victims that are seen, or almost. */
  #near(): readonly [Range, Range] {
    const [[width, height], [left, top]] = [this.#size, this.#scrolled];
    const [from, to] = rowsIn(this.#lefts, left - this.#before, left + width - this.#before);
    const columns: Range = [from - (from % STEP), Math.min(this.#lefts.length - 1, to + STEP - (to % STEP))];
    return [rowsIn(this.#tops, top - BEYOND, top + height + BEYOND), columns];
  }

  #left(column: number): string {
    return `${this.#before + column * CELL}px`;
  }

  // ---- headings ----

  #nameOf(column: number): string {
    return this.#shown.victims[column] ?? COLUMNS[column + COLUMNS.length]?.[0] ?? "";
  }

  #addHeading(column: number, title: string, kind: string): HTMLElement {
    const button = h("button", { type: "button", class: "link" }, title, h("span", { "aria-hidden": "true" }));
    const element = h("th", { scope: "col", role: "columnheader", class: kind, "aria-colindex": column + COLUMNS.length + 1, "data-column": column }, button);
    insert(this.#head, this.#headings, column, { element });
    this.#markSorted(column, element);
    return element;
  }

  #markSorted(column: number, heading: HTMLElement): void {
    const [name, { sort }] = [this.#nameOf(column), this.#shown];
    const [isUp, isDown] = [sort === name, sort === `-${name}`];
    heading.ariaSort = isUp ? "ascending" : isDown ? "descending" : "none";
    (heading.querySelector("span") as HTMLElement).textContent = isUp ? " ▲" : isDown ? " ▼" : "";
  }

  /** Return how many are others than before. */
  #drawHeadings(columns: Range): number {
    const { victims } = this.#shown;
    let changed = 0;
    for (const [column, { element }] of this.#headings) {
      if (column < 0 || isIn(column, columns) || (column < victims.length && element.contains(document.activeElement))) continue;
      element.remove();
      this.#headings.delete(column);
    }
    for (let column = columns[0]; column < columns[1]; column++) {
      const victim = victims[column] as string;
      let heading = this.#headings.get(column)?.element;
      if (heading?.title === victim) continue;
      if (heading === undefined) {
        heading = this.#addHeading(column, "", "victim-name");
        heading.style.left = this.#left(column);
      }
      heading.title = victim;
      ((heading.firstChild as HTMLElement).firstChild as Text).data = bare(victim);
      changed++;
    }
    return changed;
  }

  // ---- rows ----

  /** Write a row into the element that its number has: what is there is changed faster than replaced. */
  #draw(number: number, columns: Range): Row {
    const { rows, victims } = this.#shown;
    const of = rows[number] as Leaking;
    const known = this.#rows.get(number);
    const row = known ?? newRow(number);
    const isOther = row.of !== of;
    if (!isOther && row.columns[0] === columns[0] && row.columns[1] === columns[1]) return row;
    [row.of, row.columns] = [of, columns];
    if (isOther) {
      const slash = of.pod.indexOf("/") + 1;
      row.link.replaceChildren(of.pod.slice(0, slash), h("wbr"), of.pod.slice(slash));
      row.link.href = href("pod", of.pod.split("/"));
      row.chip.className = `chip ${of.qosClass}`;
      row.chip.textContent = of.qosClass;
      row.taken.textContent = count(of.deaths.size);
      const [first] = of.deaths.values();
      row.soonest.textContent = first === undefined ? NONE : seconds(first.death.afterSeconds);
      const own = this.#columnOf.get(of.pod);
      row.element.style.backgroundPositionX = own === undefined ? "-100px" : this.#left(own);
    }
    for (const [column, { element }] of row.cells) {
      if ((isIn(column, columns) || element.contains(document.activeElement)) && of.deaths.has(victims[column] as string)) continue;
      element.remove();
      row.cells.delete(column);
    }
    for (let column = columns[0]; column < columns[1]; column++) {
      const victim = victims[column] as string;
      const found = of.deaths.get(victim);
      let cell = row.cells.get(column);
      if (found === undefined || (cell !== undefined && !isOther)) continue;
      if (cell === undefined) {
        const element = EMPTY.cloneNode(true) as HTMLElement;
        cell = { element, button: element.firstChild as HTMLElement };
        element.ariaColIndex = String(COLUMNS.length + 1 + column);
        element.dataset["column"] = String(column);
        element.style.left = this.#left(column);
        insert(row.element, row.cells, column, cell);
      }
      const { death, place } = found;
      cell.button.className = `cell ${death.by === "kernel" ? "kernel" : "kubelet"}`;
      cell.button.textContent = count(place);
      cell.button.ariaLabel = `${of.pod} leaks: ${victim} is victim number ${place}, ${fate(death.by)} after ${seconds(death.afterSeconds)}`;
      if (cell.button.title !== "") cell.button.title = "";
    }
    this.#stand(row, number);
    this.#markChosen(row);
    if (known === undefined) {
      const next = insert(this.#body, this.#rows, number, row);
      this.#pods.insertBefore(row.corner, next?.corner ?? null);
    }
    return row;
  }

  #stand({ element, corner }: Row, number: number): void {
    const [top, end] = [this.#tops[number] as number, this.#tops[number + 1] as number];
    element.style.top = corner.style.top = `${top}px`;
    element.style.height = corner.style.height = `${end - top}px`;
  }

  #markColumn(): void {
    const chosen = this.#columnOf.get(this.#shown.chosen?.[1] ?? "");
    this.#body.style.backgroundPositionX = `${chosen === undefined ? "-100px" : this.#left(chosen)}, ${this.#left(0)}`;
  }

  #markChosen({ element, corner, of, cells }: Row): void {
    const [pod, victim] = this.#shown.chosen ?? [];
    const isChosen = of?.pod === pod;
    for (const part of [element, corner]) part.classList.toggle("chosen-row", isChosen);
    const chosen = isChosen ? this.#columnOf.get(victim ?? "") : undefined;
    for (const [column, { button }] of cells) {
      const pressed = String(column === chosen);
      if (button.ariaPressed !== pressed) button.ariaPressed = pressed;
    }
  }

  // ---- keys ----

  /** Go from cell to cell, to the pod that leaks and to headings; Tab stops only at headings and pods. */
  #press(event: KeyboardEvent): void {
    const [number, column] = placeOf(event.target);
    if (Number.isNaN(column) || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = this.#step(event.key, number, column);
    if (to === null) return;
    event.preventDefault();
    this.#focus(...to);
  }

  /** Return where a key leads to; null where it is not for us. */
  #step(key: string, number: number, column: number): Range | null {
    const { rows, victims } = this.#shown;
    const pod = -COLUMNS.length;
    /** Whether there is something to stop at. */
    const isStop = (row: number, at: number) => row === -1 || at === pod || (rows[row]?.deaths.has(victims[at] ?? "") ?? false);
    const along = (from: number, way: number): Range => {
      for (let at = from; at >= pod && at < victims.length; at += way) if (isStop(number, at)) return [number, at];
      return [number, column];
    };
    const down = (way: number): Range => {
      for (let row = number + way; row >= -1 && row < rows.length; row += way) if (isStop(row, column)) return [row, column];
      return [number, column];
    };
    switch (key) {
      case "ArrowLeft":
        return along(column - 1, -1);
      case "ArrowRight":
        return along(column + 1, 1);
      case "ArrowUp":
        return down(-1);
      case "ArrowDown":
        return down(1);
      case "Home":
        return along(pod, 1);
      case "End":
        return along(victims.length - 1, -1);
      default:
        return null;
    }
  }

  #focus(number: number, column: number): void {
    const { element } = this;
    const [width, height] = this.#size;
    const corner = this.#before - TAKEN - SOONEST;
    const [left, top] = this.#scrolled;
    if (number >= 0) element.scrollTop = toSee(top, height - this.#head.offsetHeight, this.#tops[number] ?? 0, this.#tops[number + 1] ?? 0);
    if (column >= 0) element.scrollLeft = toSee(left, width - corner, this.#before - corner + column * CELL, this.#before - corner + (column + 1) * CELL);
    this.#scrolled = [element.scrollLeft, element.scrollTop];
    this.#look();
    const row = number < 0 ? null : this.#draw(number, this.#near()[1]);
    const found = row === null ? this.#headings.get(column)?.element.firstElementChild : column < 0 ? row.link : row.cells.get(column)?.button;
    if (found instanceof HTMLElement) found.focus({ preventScroll: true });
  }
}

/** Return how far to scroll a view of this size so that it shows what is between `from` and `to`: as little as possible. */
function toSee(scrolled: number, size: number, from: number, to: number): number {
  return Math.min(from, Math.max(scrolled, to - size));
}

/** Return the row and the column of something that can be clicked or has the focus; -1 is the row of the headings. */
function placeOf(target: EventTarget | null): Range {
  const button = target instanceof Element ? target.closest("a, button") : null;
  const cell = button?.closest<HTMLElement>("[data-column]");
  const row = cell?.closest<HTMLElement>("[data-row]")?.dataset["row"];
  return [Number(row ?? -1), Number(cell?.dataset["column"] ?? NaN)];
}

function isIn(number: number, [from, to]: Range): boolean {
  return number >= from && number < to;
}

function hasFocus({ element, corner }: Row): boolean {
  return element.contains(document.activeElement) || corner.contains(document.activeElement);
}

/** Put an element among the others, by their numbers; return the one after it. */
function insert<Item extends Drawn>(place: HTMLElement, items: Map<number, Item>, number: number, item: Item): Item | undefined {
  const next = items.get(Math.min(...[...items.keys()].filter((each) => each > number)));
  items.set(number, item);
  place.insertBefore(item.element, next?.element ?? null);
  return next;
}

function newRow(number: number): Row {
  const [link, chip] = [h("a"), h("span")];
  const figure = (column: number) => h("td", { role: "gridcell", class: "number", "aria-colindex": column });
  const [taken, soonest] = [figure(2), figure(3)];
  const id = `leak-${number}`;
  const corner = h("div", { id, role: "rowheader", class: "corner", "aria-colindex": 1, "data-row": number, "data-column": -COLUMNS.length }, link, chip);
  const element = h("tr", { role: "row", "aria-rowindex": number + 2, "aria-owns": id, "data-row": number }, taken, soonest);
  return { element, corner, link, chip, taken, soonest, cells: new Map(), of: null, columns: [0, 0] };
}

/** Take everything from a row that is somewhere else now. */
function empty(row: Row): void {
  for (const { element } of row.cells.values()) element.remove();
  row.cells.clear();
  row.of = null;
}
