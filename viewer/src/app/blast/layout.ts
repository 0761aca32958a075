// Where the rows and columns of the matrix are, which of them are near what is seen, what a frame draws next,
// and where keys lead: values only, so that they can be tested without a browser.

import { bare } from "../../format";
import { even, rowsIn, type Range } from "../windowed";
import type { Leaking } from "./model";

/** The columns left of the victims. */
export const COLUMNS = [
  ["pod", "Leaking pod"],
  ["taken", "Takes down"],
  ["soonest", "First victim after"],
] as const;
/** The column of the pods: columns of victims count from 0. */
export const POD = -COLUMNS.length;
/** The row of the headings. */
export const HEADINGS = -1;

/** Column widths in pixels; blast.css gets them as variables. */
export const SIZES = { cell: 36, taken: 64, soonest: 100 };
/** Windows narrower than this have the class of a pod below its name, not next to it. */
const NARROW = 640;
const [BESIDE, BELOW] = [344, 132];
const [SWATCH, CHIP, LINE, PADDING] = [17, 104, 18, 8];
/** Longer names of victims are cut with an ellipsis; below them is room for the arrow of a sorted column. */
const [LONGEST, BELOW_NAMES] = [170, 40];
/** The margin rendered above and below in pixels; columns per step; the most cells that a frame changes. */
const [BEYOND, STEP, CELLS] = [80, 4, 12];

export interface Matrix {
  rows: readonly Leaking[];
  victims: readonly string[];
  columnOf: ReadonlyMap<string, number>;
}

export function matrixOf(rows: readonly Leaking[], victims: readonly string[]): Matrix {
  return { rows, victims, columnOf: new Map(victims.map((victim, column) => [victim, column])) };
}

/** How texts are measured: in a browser by its fonts. */
export interface Measures {
  width(text: string): number;
  lines(text: string, width: number): number;
}

export interface MatrixLayout {
  isNarrow: boolean;
  /** Widths of the pods' column, and of all columns before the victims. */
  corner: number;
  before: number;
  /** Of all columns together, and of the headings. */
  width: number;
  headHeight: number;
  /** Where each row begins and, at the end, where the last one ends; the same of the victims' columns. */
  tops: Float64Array;
  lefts: Float64Array;
}

export function layoutOf({ rows, victims }: Matrix, windowWidth: number, measures: Measures): MatrixLayout {
  const isNarrow = windowWidth < NARROW;
  const corner = isNarrow ? BELOW : BESIDE;
  const before = corner + SIZES.taken + SIZES.soonest;
  const forName = corner - 2 * PADDING - SWATCH - (isNarrow ? 0 : CHIP);
  const tops = new Float64Array(rows.length + 1);
  rows.forEach(({ pod }, number) => {
    const height = (measures.lines(pod, forName) + (isNarrow ? 1 : 0)) * LINE + 2 * PADDING;
    tops[number + 1] = (tops[number] as number) + Math.max(SIZES.cell, height);
  });
  const longest = victims.reduce((most, victim) => Math.max(most, measures.width(bare(victim))), 0);
  return {
    isNarrow,
    corner,
    before,
    width: before + victims.length * SIZES.cell,
    headHeight: Math.ceil(Math.min(LONGEST, longest)) + BELOW_NAMES,
    tops,
    lefts: even(victims.length, SIZES.cell),
  };
}

/** The left edge of a victim's column. */
export function leftOf(layout: MatrixLayout, column: number): number {
  return layout.before + column * SIZES.cell;
}

/** The box that the matrix scrolls in. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** The rows and the columns of victims that are seen, or almost. */
export interface Near {
  rows: Range;
  columns: Range;
}

export function near({ tops, lefts, before }: MatrixLayout, box: Box): Near {
  const [from, to] = rowsIn(lefts, box.left - before, box.left + box.width - before);
  return {
    rows: rowsIn(tops, box.top - BEYOND, box.top + box.height + BEYOND),
    columns: [from - (from % STEP), Math.min(lefts.length - 1, to + STEP - (to % STEP))],
  };
}

/** What a rendered row shows: kept until it is its turn to show something else. */
export interface Slot {
  of: Leaking;
  victims: readonly string[];
  columns: Range;
  /** The column of the leaking pod itself. */
  own: number | null;
}

export interface Drawn {
  slots: ReadonlyMap<number, Slot>;
  isDone: boolean;
}

export const NOTHING: Drawn = { slots: new Map(), isDone: true };

/** Return what is shown with the next frame: rows that are not near are dropped, and as many cells change as
 * it has time for; at least one row does. */
export function advance({ slots }: Drawn, { rows, victims, columnOf }: Matrix, near: Near): Drawn {
  const [[from, to], columns] = [near.rows, near.columns];
  const next = new Map<number, Slot>();
  let left = CELLS;
  let isDone = true;
  for (let number = from; number < to; number++) {
    const of = rows[number] as Leaking;
    const slot = slots.get(number);
    if (slot !== undefined && slot.of === of && slot.victims === victims && isSame(slot.columns, columns)) {
      next.set(number, slot);
    } else if (left > 0) {
      left -= changes(slot, of, victims, columns);
      next.set(number, { of, victims, columns, own: columnOf.get(of.pod) ?? null });
    } else {
      isDone = false;
      if (slot !== undefined) next.set(number, slot);
    }
  }
  return { slots: next, isDone };
}

/** How many columns of a row are drawn anew. */
function changes(slot: Slot | undefined, of: Leaking, victims: readonly string[], columns: Range): number {
  const all = columns[1] - columns[0];
  if (slot === undefined || slot.of !== of || slot.victims !== victims) return all;
  const kept = Math.min(slot.columns[1], columns[1]) - Math.max(slot.columns[0], columns[0]);
  return all - Math.max(0, kept);
}

export function isSame(one: Range, other: Range): boolean {
  return one[0] === other[0] && one[1] === other[1];
}

export function isIn(number: number, [from, to]: Range): boolean {
  return number >= from && number < to;
}

/** A row and a column. */
export type Place = readonly [row: number, column: number];

/** Return where a key leads to: from cell to cell, to the leaking pod, to headings; null: not for us. */
export function step(key: string, [number, column]: Place, { rows, victims }: Matrix): Place | null {
  const isStop = (row: number, at: number) =>
    row === HEADINGS || at === POD || (rows[row]?.deaths.has(victims[at] ?? "") ?? false);
  const along = (from: number, way: number): Place => {
    for (let at = from; at >= POD && at < victims.length; at += way) {
      if (isStop(number, at)) return [number, at];
    }
    return [number, column];
  };
  const down = (way: number): Place => {
    for (let row = number + way; row >= HEADINGS && row < rows.length; row += way) {
      if (isStop(row, column)) return [row, column];
    }
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
      return along(POD, 1);
    case "End":
      return along(victims.length - 1, -1);
    default:
      return null;
  }
}

/** Return how far to scroll so that a place is seen: as little as possible. */
export function scrolledTo(layout: MatrixLayout, box: Box, place: Place): { left: number; top: number } {
  const [row, column] = place;
  const { tops, corner, before } = layout;
  const start = before - corner + column * SIZES.cell;
  const room = box.height - layout.headHeight;
  return {
    left: column < 0 ? box.left : toSee(box.left, box.width - corner, start, start + SIZES.cell),
    top: row < 0 ? box.top : toSee(box.top, room, tops[row] ?? 0, tops[row + 1] ?? 0),
  };
}

function toSee(scrolled: number, size: number, from: number, to: number): number {
  return Math.min(from, Math.max(scrolled, to - size));
}
