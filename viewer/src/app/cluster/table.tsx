// The pods as a table, drawn where the reader looks: the same data as the blocks, for reading, sorting and screen readers.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { bytes, count } from "../../format";
import type { PodBlock } from "../../schema";
import { change, href } from "../router";
import { Chip, NONE } from "../ui";
import { useWidth, useWindow } from "../windowed";
import { WAITING, type Model, type Panel } from "./model";

interface Column {
  id: string;
  name: string;
  /** In pixels; a share of what is left where it is below 1. */
  width: number;
  number?: boolean;
  value: (pod: PodBlock) => number | string | null;
  cell?: (pod: PodBlock) => ComponentChildren;
}

const amount = (value: number | null) => (value === null ? NONE : bytes(value));

const COLUMNS: readonly Column[] = [
  { id: "pod", name: "Pod", width: 0.66, value: (pod) => `${pod.namespace}/${pod.name}` },
  { id: "evicted", name: "Evicted", width: 74, number: true, value: (pod) => pod.evictionPlace, cell: (pod) => (pod.spared ? "spared" : (pod.evictionPlace ?? NONE)) },
  { id: "killed", name: "Killed", width: 66, number: true, value: (pod) => pod.killPlace },
  { id: "class", name: "Class", width: 112, value: (pod) => pod.qosClass, cell: (pod) => <Chip qosClass={pod.qosClass} /> },
  { id: "priority", name: "Priority", width: 112, number: true, value: (pod) => pod.priority, cell: (pod) => count(pod.priority) },
  { id: "used", name: "Used", width: 84, number: true, value: (pod) => pod.usedBytes, cell: (pod) => amount(pod.usedBytes) },
  { id: "requested", name: "Requested", width: 92, number: true, value: (pod) => pod.requestedBytes, cell: (pod) => amount(pod.requestedBytes) },
  { id: "limit", name: "Limit", width: 84, number: true, value: (pod) => pod.limitBytes, cell: (pod) => amount(pod.limitBytes) },
  { id: "score", name: "oom_score_adj", width: 122, number: true, value: (pod) => pod.oomScoreAdj, cell: (pod) => (pod.oomScoreAdj === null ? NONE : String(pod.oomScoreAdj).replace("-", "−")) },
  { id: "node", name: "Node", width: 0.34, value: (pod) => pod.node, cell: (pod) => (pod.node === "" ? NONE : pod.node) },
];
const BETWEEN = 14;
const FIXED = COLUMNS.reduce((sum, column) => sum + (column.width < 1 ? 0 : column.width), BETWEEN * (COLUMNS.length - 1));
const LINE = 19;
/** Where columns would be narrower than this, a row is a block. */
const NARROW = 920;
const BLOCK_ROWS = Math.ceil(COLUMNS.filter((column) => column.width >= 1).length / 2);

export function PodTable({ model, panels, mask, sort }: { model: Model; panels: readonly Panel[]; mask: Uint8Array; sort: string }) {
  const [place, width] = useWidth();
  const isDescending = sort.startsWith("-");
  const by = COLUMNS.find((column) => column.id === sort.replace("-", ""));
  const rows = useMemo(() => {
    const all = panels.flatMap((panel) => panel.pods.filter((pod) => mask[pod]));
    if (by === undefined) return all;
    const value = (index: number) => by.value(model.pods[index] as PodBlock);
    return all.toSorted((one, other) => compared(value(one), value(other), isDescending));
  }, [model, panels, mask, by, isDescending]);
  const isNarrow = width < NARROW;
  const wide = (column: Column) => (column.width >= 1 ? column.width : isNarrow ? width : column.width * (width - FIXED));
  const [forPod, forNode] = [wide(COLUMNS[0] as Column), wide(COLUMNS.at(-1) as Column)];
  const tops = useMemo(() => {
    const found = new Float64Array(rows.length + 1);
    rows.forEach((pod, index) => {
      const [name, node] = [lines(model.keys[pod] as string, forPod), lines((model.pods[pod] as PodBlock).node, forNode)];
      const high = isNarrow ? (name + node + BLOCK_ROWS) * LINE + 20 : Math.max(name, node) * LINE + 13;
      found[index + 1] = (found[index] as number) + high;
    });
    return found;
  }, [rows, model, forPod, forNode, isNarrow]);
  const window = useWindow(tops);
  const [current, setCurrent] = useState(0);
  const moved = useRef(false);
  const here = Math.max(0, Math.min(current, rows.length - 1));
  useLayoutEffect(() => {
    if (!moved.current) return;
    window.reveal(here);
    const link = window.ref.current?.querySelector<HTMLElement>(`[data-row="${here}"]`);
    if (link) {
      moved.current = false;
      link.focus({ preventScroll: true });
    }
  });
  const press = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(innerHeight / (LINE * 2)));
    const steps: Record<string, number> = { ArrowUp: here - 1, ArrowDown: here + 1, PageUp: here - page, PageDown: here + page, Home: 0, End: rows.length - 1 };
    const to = steps[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moved.current = true;
    setCurrent(Math.max(0, Math.min(rows.length - 1, to)));
  };
  const grid = isNarrow ? {} : { gridTemplateColumns: COLUMNS.map((column) => `${wide(column)}px`).join(" "), columnGap: `${BETWEEN}px` };
  return (
    <div ref={place} class={`pod-table ${isNarrow ? "narrow" : ""}`}>
      {isNarrow ? <SortChoice by={by} isDescending={isDescending} /> : null}
      <div role="table" aria-label="Pods" aria-rowcount={rows.length + 1} aria-colcount={COLUMNS.length}>
        <div role="rowgroup">
          <div role="row" class="pod-row pod-head" style={grid} aria-rowindex={1}>
            {COLUMNS.map((column) => (
              <div key={column.id} role="columnheader" class={column.number ? "number" : ""} aria-sort={column === by ? (isDescending ? "descending" : "ascending") : "none"}>
                <button type="button" onClick={() => sortBy(column, by, isDescending)}>
                  {column.name}
                  {column === by ? (isDescending ? " ▼" : " ▲") : ""}
                </button>
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" ref={window.ref} class="pod-rows" style={{ height: `${window.height}px` }} onKeyDown={press}>
          {width === 0
            ? null
            : rows.slice(window.from, window.to).map((index, offset) => {
                const row = window.from + offset;
                const pod = model.pods[index] as PodBlock;
                return (
                  <div key={index} role="row" class="pod-row" aria-rowindex={row + 2} style={{ ...grid, top: `${window.top(row)}px`, height: `${window.top(row + 1) - window.top(row)}px` }}>
                    {COLUMNS.map((column) => (
                      <div key={column.id} role={column.id === "pod" ? "rowheader" : "cell"} class={`${column.number ? "number" : ""} ${column.id}`} data-name={column.name}>
                        {column.id === "pod" ? (
                          <a href={href("pod", [pod.namespace, pod.name])} data-row={row} tabIndex={row === here ? 0 : -1} onFocus={() => setCurrent(row)}>
                            {model.keys[index]}
                          </a>
                        ) : (
                          (column.cell ?? ((each) => column.value(each) ?? NONE))(pod)
                        )}
                      </div>
                    ))}
                  </div>
                );
              })}
        </div>
      </div>
      {panels.some((panel) => panel.title === WAITING) ? <p class="quiet">Pods without a node are in no order.</p> : null}
    </div>
  );
}

/** Nothing is after everything, whichever way one sorts. */
function compared(one: number | string | null, other: number | string | null, isDescending: boolean): number {
  if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1;
  const found = one < other ? -1 : one > other ? 1 : 0;
  return isDescending ? -found : found;
}

function sortBy(column: Column, by: Column | undefined, isDescending: boolean): void {
  change({ sort: column !== by ? column.id : isDescending ? null : `-${column.id}` });
}

/** Where rows are blocks there is no head to click on. */
function SortChoice({ by, isDescending }: { by: Column | undefined; isDescending: boolean }) {
  return (
    <label class="field">
      <span>Sort by</span>
      <select value={by === undefined ? "" : `${isDescending ? "-" : ""}${by.id}`} onChange={(event) => change({ sort: event.currentTarget.value })}>
        <option value="">node, and who goes first</option>
        {COLUMNS.flatMap((column) => ["", "-"].map((sign) => (
          <option key={sign + column.id} value={sign + column.id} selected={column === by && isDescending === (sign === "-")}>
            {column.name} {sign ? "▼" : "▲"}
          </option>
        )))}
      </select>
    </label>
  );
}

const widths = new Map<string, number>();
const context = document.createElement("canvas").getContext("2d");

/** How many lines a name takes that may be broken anywhere. */
function lines(text: string, width: number): number {
  if (text === "" || width <= 0) return text === "" ? 0 : 1;
  let wide = widths.get(text);
  if (wide === undefined) {
    if (widths.size > 50_000) widths.clear();
    if (context !== null && widths.size === 0) context.font = `600 13.5px ${getComputedStyle(document.body).fontFamily}`;
    wide = context?.measureText(text).width ?? text.length * 8;
    widths.set(text, wide);
  }
  // A letter that does not fit goes to the next line as a whole.
  return wide <= width - 1 ? 1 : Math.ceil(wide / Math.max(20, width - 12));
}
