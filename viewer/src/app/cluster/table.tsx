// The pods as a table, drawn where the reader looks: the same data as the blocks, for reading, sorting and screen readers.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { bytes, count } from "../../format";
import type { PodBlock } from "../../schema";
import { change, href } from "../router";
import { Chip, kept, NONE } from "../ui";
import { useWidth, useWindow } from "../windowed";
import { keyOf, WAITING, type Fits, type Panel } from "./model";

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
  { id: "pod", name: "Pod", width: 0.66, value: keyOf },
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

export function PodTable({ panels, fits, sort }: { panels: readonly Panel[]; fits: Fits; sort: string }) {
  const [place, width] = useWidth("table");
  const isDescending = sort.startsWith("-");
  const by = COLUMNS.find((column) => column.id === sort.replace("-", ""));
  const all = useMemo(() => sorted(panels.flatMap((panel) => panel.pods), by, isDescending), [panels, by, isDescending]);
  const rows = useMemo(() => all.filter(fits), [all, fits]);
  const isNarrow = width < NARROW;
  const wide = (column: Column) => (column.width >= 1 ? column.width : isNarrow ? width : column.width * (width - FIXED));
  const [forPod, forNode] = [wide(COLUMNS[0] as Column), wide(COLUMNS.at(-1) as Column)];
  const tops = useMemo(() => {
    const found = new Float64Array(rows.length + 1);
    rows.forEach((pod, index) => {
      const [name, node] = [lines(keyOf(pod), forPod), lines(pod.node, forNode)];
      const high = isNarrow ? (name + node + BLOCK_ROWS) * LINE + 20 : Math.max(name, node) * LINE + 13;
      found[index + 1] = (found[index] as number) + high;
    });
    return found;
  }, [rows, forPod, forNode, isNarrow]);
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
  const focused = (event: FocusEvent) => {
    const row = (event.target as HTMLElement).dataset["row"];
    if (row !== undefined) setCurrent(Number(row));
  };
  const head = useMemo(() => <Head by={by} isDescending={isDescending} />, [by, isDescending]);
  return (
    <div ref={place} class={`pod-table ${isNarrow ? "narrow" : ""}`} style={isNarrow ? {} : { "--columns": COLUMNS.map((column) => `${wide(column)}px`).join(" "), "--between": `${BETWEEN}px` }}>
      {isNarrow ? <SortChoice by={by} isDescending={isDescending} /> : null}
      <div role="table" aria-label="Pods" aria-rowcount={rows.length + 1} aria-colcount={COLUMNS.length}>
        {head}
        <div role="rowgroup" ref={window.ref} class="pod-rows" style={{ height: `${window.height}px` }} onKeyDown={press} onFocusIn={focused}>
          {width === 0
            ? null
            : rows.slice(window.from, window.to).map((pod, offset) => {
                const row = window.from + offset;
                const top = window.top(row);
                return <Row key={row} pod={pod} row={row} top={top} height={window.top(row + 1) - top} isHere={row === here} />;
              })}
        </div>
      </div>
      {panels.some((panel) => panel.title === WAITING) ? <p class="quiet">Pods without a node are in no order.</p> : null}
    </div>
  );
}

function Head({ by, isDescending }: { by: Column | undefined; isDescending: boolean }) {
  return (
    <div role="rowgroup">
      <div role="row" class="pod-row pod-head" aria-rowindex={1}>
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
  );
}

const Row = kept(function Row({ pod, row, top, height, isHere }: { pod: PodBlock; row: number; top: number; height: number; isHere: boolean }) {
  return (
    <div role="row" class="pod-row" aria-rowindex={row + 2} style={{ top: `${top}px`, height: `${height}px` }}>
      {COLUMNS.map((column) => (
        <div key={column.id} role={column.id === "pod" ? "rowheader" : "cell"} class={`${column.number ? "number" : ""} ${column.id}`} data-name={column.name}>
          {column.id === "pod" ? (
            <a href={href("pod", [pod.namespace, pod.name])} data-row={row} tabIndex={isHere ? 0 : -1}>
              {keyOf(pod)}
            </a>
          ) : (
            (column.cell ?? ((each) => column.value(each) ?? NONE))(pod)
          )}
        </div>
      ))}
    </div>
  );
});

function sorted(pods: readonly PodBlock[], by: Column | undefined, isDescending: boolean): readonly PodBlock[] {
  if (by === undefined) return pods;
  const values = pods.map((pod) => ({ pod, value: by.value(pod) }));
  return values.sort((one, other) => compared(one.value, other.value, isDescending)).map((each) => each.pod);
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

const letters = new Map<string, number>();
const context = document.createElement("canvas").getContext("2d");

function letterWidth(letter: string): number {
  let wide = letters.get(letter);
  if (wide === undefined) {
    if (context !== null && letters.size === 0) context.font = `600 13.5px ${getComputedStyle(document.body).fontFamily}`;
    letters.set(letter, (wide = context?.measureText(letter).width ?? 8));
  }
  return wide;
}

/** How many lines a name takes that may be broken anywhere. Letter by letter: measuring each name takes far longer. */
function lines(text: string, width: number): number {
  if (text === "" || width <= 0) return text === "" ? 0 : 1;
  let wide = 0;
  for (const letter of text) wide += letterWidth(letter);
  // A letter that does not fit goes to the next line as a whole.
  return wide <= width - 1 ? 1 : Math.ceil(wide / Math.max(20, width - 12));
}
