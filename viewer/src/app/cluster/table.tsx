// The pods as a table, drawn where the reader looks: the same data as the blocks, for reading, sorting and
// screen readers.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { bytes, count } from "../../format";
import type { PodBlock } from "../../schema";
import { colourOf } from "../colours";
import { afterFrame, useLater, useTurns } from "../frames";
import { change, href } from "../router";
import { kept, NONE } from "../ui";
import "../swatch.css";
import { lines } from "../text";
import { useWidth, useWindow, type Windowed } from "../windowed";
import { keyOf, WAITING, type Fits, type Order, type Panel } from "./model";

interface Column {
  id: string;
  name: string;
  /** In pixels; below 1, a share of the remaining width. */
  width: number;
  number?: boolean;
  value: (pod: PodBlock) => number | string | null;
  text?: (pod: PodBlock) => string;
}

const amount = (value: number | null) => (value === null ? NONE : bytes(value));

const COLUMNS: readonly Column[] = [
  { id: "pod", name: "Pod", width: 0.66, value: keyOf },
  {
    id: "evicted",
    name: "Evicted",
    width: 74,
    number: true,
    value: (pod) => pod.evictionPlace,
    text: (pod) => (pod.spared ? "spared" : String(pod.evictionPlace ?? NONE)),
  },
  { id: "killed", name: "Killed", width: 66, number: true, value: (pod) => pod.killPlace },
  { id: "class", name: "Class", width: 112, value: (pod) => pod.qosClass },
  {
    id: "priority",
    name: "Priority",
    width: 112,
    number: true,
    value: (pod) => pod.priority,
    text: (pod) => count(pod.priority),
  },
  {
    id: "used",
    name: "Used",
    width: 84,
    number: true,
    value: (pod) => pod.usedBytes,
    text: (pod) => amount(pod.usedBytes),
  },
  {
    id: "requested",
    name: "Requested",
    width: 92,
    number: true,
    value: (pod) => pod.requestedBytes,
    text: (pod) => amount(pod.requestedBytes),
  },
  {
    id: "limit",
    name: "Limit",
    width: 84,
    number: true,
    value: (pod) => pod.limitBytes,
    text: (pod) => amount(pod.limitBytes),
  },
  {
    id: "score",
    name: "oom_score_adj",
    width: 122,
    number: true,
    value: (pod) => pod.oomScoreAdj,
    text: (pod) => (pod.oomScoreAdj === null ? NONE : String(pod.oomScoreAdj).replace("-", "−")),
  },
  {
    id: "node",
    name: "Node",
    width: 0.34,
    value: (pod) => pod.node,
    text: (pod) => (pod.node === "" ? NONE : pod.node),
  },
];
const BETWEEN = 14;
const FIXED = COLUMNS.reduce(
  (sum, column) => sum + (column.width < 1 ? 0 : column.width),
  BETWEEN * (COLUMNS.length - 1),
);
const LINE = 19;
/** The width of the colour before a name. */
const SWATCH = 17;
/** If columns would be narrower than this, rows become blocks. */
const NARROW = 920;
const BLOCK_ROWS = Math.ceil(COLUMNS.filter((column) => column.width >= 1).length / 2);

/** The pods of a table, and where their rows start. */
interface Laid {
  rows: readonly PodBlock[];
  tops: Float64Array;
}

const NOTHING: Laid = { rows: [], tops: new Float64Array(1) };

export const PodTable = kept(function PodTable({
  panels,
  order,
  fits,
  sort,
}: {
  panels: readonly Panel[];
  order: Order;
  fits: Fits;
  sort: string;
}) {
  const [place, width] = useWidth("table");
  const isDescending = sort.startsWith("-");
  const by = COLUMNS.find((column) => column.id === sort.replace("-", ""));
  const all = useMemo(
    () =>
      sorted(
        panels.flatMap((panel) => panel.by(order)),
        by,
        isDescending,
      ),
    [panels, order, by, isDescending],
  );
  const found = useMemo(() => (fits === null ? all : all.filter(fits)), [all, fits]);
  const isNarrow = width < NARROW;
  const wide = (column: Column) =>
    column.width >= 1 ? column.width : isNarrow ? width : column.width * (width - FIXED);
  const [forPod, forNode] = [wide(COLUMNS[0] as Column), wide(COLUMNS.at(-1) as Column)];
  const heightOf = useMemo(() => {
    const known = new WeakMap<PodBlock, number>();
    return (pod: PodBlock): number => {
      let high = known.get(pod);
      if (high === undefined) {
        const [name, node] = [lines(keyOf(pod), forPod - SWATCH), lines(pod.node || NONE, forNode)];
        known.set(
          pod,
          (high = isNarrow ? (name + node + BLOCK_ROWS) * LINE + 20 : Math.max(name, node) * LINE + 13),
        );
      }
      return high;
    };
  }, [forPod, forNode, isNarrow]);
  /** The usual height of a row, so that content below does not move when the rows arrive. */
  const usual = isNarrow ? (2 + BLOCK_ROWS) * LINE + 20 : LINE + 13;
  // First the head, then the row heights, then the rows.
  const isBegun = useTurns(2) > 1 && width > 0;
  const laid = useMemo(() => {
    if (!isBegun) return NOTHING;
    const tops = new Float64Array(found.length + 1);
    for (let index = 0; index < found.length; index++)
      tops[index + 1] = (tops[index] as number) + heightOf(found[index] as PodBlock);
    return { rows: found, tops };
  }, [isBegun, found, heightOf]);
  const { rows, tops } = useLater<Laid>(laid);
  const window = useWindow(tops);
  const [current, setCurrent] = useState(0);
  const moved = useRef(false);
  const here = Math.max(0, Math.min(current, rows.length - 1));
  useRows(window, rows, here);
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
    const steps: Record<string, number> = {
      ArrowUp: here - 1,
      ArrowDown: here + 1,
      PageUp: here - page,
      PageDown: here + page,
      Home: 0,
      End: rows.length - 1,
    };
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
    <div
      ref={place}
      class={`pod-table ${isNarrow ? "narrow" : ""}`}
      style={
        isNarrow
          ? {}
          : {
              "--columns": COLUMNS.map((column) => `${wide(column)}px`).join(" "),
              "--between": `${BETWEEN}px`,
            }
      }
    >
      {isNarrow ? <SortChoice by={by} isDescending={isDescending} /> : null}
      <div role="table" aria-label="Pods" aria-rowcount={rows.length + 1} aria-colcount={COLUMNS.length}>
        {head}
        <div
          role="rowgroup"
          ref={window.ref}
          class="pod-rows"
          style={{ height: `${tops === NOTHING.tops ? found.length * usual : window.height}px` }}
          onKeyDown={press}
          onFocusIn={focused}
        />
      </div>
      {panels.some((panel) => panel.title === WAITING) ? (
        <p class="quiet">Pods that are not on a node are not ranked.</p>
      ) : null}
    </div>
  );
});

function Head({ by, isDescending }: { by: Column | undefined; isDescending: boolean }) {
  return (
    <div role="rowgroup">
      <div role="row" class="pod-row pod-head" aria-rowindex={1}>
        {COLUMNS.map((column) => (
          <div
            key={column.id}
            role="columnheader"
            class={column.number ? "number" : ""}
            aria-sort={column === by ? (isDescending ? "descending" : "ascending") : "none"}
          >
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

/** A row with its cells and its pod. */
interface Row {
  element: HTMLElement;
  link: HTMLAnchorElement;
  chip: HTMLElement;
  /** The text of each column. */
  texts: readonly Text[];
  pod: PodBlock | null;
  number: number;
  top: number;
  height: number;
}

const CLASS = COLUMNS.findIndex((column) => column.id === "class");
const EMPTY = element("row", "pod-row");
EMPTY.append(
  ...COLUMNS.map(({ id, name, number }, index) => {
    const cell = element(index === 0 ? "rowheader" : "cell", `${number ? "number " : ""}${id}`);
    cell.dataset["name"] = name;
    const inner =
      index === 0 ? document.createElement("a") : index === CLASS ? document.createElement("span") : cell;
    if (inner !== cell) cell.append(inner);
    inner.append(" ");
    return cell;
  }),
);

function element(role: string, kind: string): HTMLElement {
  const created = document.createElement("div");
  created.setAttribute("role", role);
  created.className = kind;
  return created;
}

function newRow(): Row {
  const element = EMPTY.cloneNode(true) as HTMLElement;
  const contents = [...element.children].map((cell) => cell.firstChild);
  const [link, chip] = [contents[0] as HTMLAnchorElement, contents[CLASS] as HTMLElement];
  return {
    element,
    link,
    chip,
    texts: contents.map((content) => (content instanceof Text ? content : (content?.firstChild as Text))),
    pod: null,
    number: -1,
    top: -1,
    height: -1,
  };
}

function write(row: Row, pod: PodBlock): void {
  const { link, chip, texts } = row;
  row.pod = pod;
  COLUMNS.forEach((column, index) => {
    const text = column.text?.(pod) ?? String(column.value(pod) ?? NONE);
    const node = texts[index] as Text;
    if (node.data !== text) node.data = text;
  });
  link.href = href("pod", [pod.namespace, pod.name]);
  link.className = `swatched ${pod.qosClass}`;
  link.style.setProperty("--pod", colourOf(keyOf(pod), pod.qosClass));
  chip.className = `chip ${pod.qosClass}`;
}

/** Move a row to its position. */
function stand(row: Row, number: number, top: number, height: number, isHere: boolean): void {
  const { element, link } = row;
  if (row.number !== number) {
    row.number = number;
    element.ariaRowIndex = String(number + 2);
    link.dataset["row"] = String(number);
  }
  if (row.top !== top) element.style.top = `${(row.top = top)}px`;
  if (row.height !== height) element.style.height = `${(row.height = height)}px`;
  const order = isHere ? 0 : -1;
  if (link.tabIndex !== order) link.tabIndex = order;
}

/** Write the rows that are drawn into their place, each into the element that it had: a screen of cells is
 * written many times faster than it is compared. What is not seen is written with the next frame. */
function useRows({ ref, from, to, top, seen }: Windowed, pods: readonly PodBlock[], here: number): void {
  const shown = useRef(new Map<number, Row>());
  useLayoutEffect(() => {
    const place = ref.current;
    if (place === null) return;
    const rows = shown.current;
    const [first, end] = seen();
    // Tab leads to the row that was focused last, or to the first visible one.
    const stop = here >= from && here < to ? here : Math.max(from, first);
    for (const [number, row] of rows) {
      if (number >= from && number < to) continue;
      rows.delete(number);
      row.element.remove();
    }
    const late: [Row, PodBlock][] = [];
    let next: Element | null = null;
    for (let number = to - 1; number >= from; number--) {
      const pod = pods[number] as PodBlock;
      const known = rows.get(number);
      const row = known ?? newRow();
      stand(row, number, top(number), top(number + 1) - top(number), number === stop);
      if (row.pod !== pod) {
        if (known === undefined || (number >= first && number < end)) write(row, pod);
        else late.push([row, pod]);
      }
      if (known === undefined) {
        rows.set(number, row);
        place.insertBefore(row.element, next);
      }
      next = row.element;
    }
    return late.length === 0 ? undefined : afterFrame(() => late.forEach(([row, pod]) => write(row, pod)));
  });
}

/** Return a stable order of the values; missing values come last. */
function sorted(
  pods: readonly PodBlock[],
  by: Column | undefined,
  isDescending: boolean,
): readonly PodBlock[] {
  if (by === undefined) return pods;
  const values = pods.map(by.value);
  const places = new Map<number | string | null, number>();
  for (const value of values) places.set(value, (places.get(value) ?? 0) + 1);
  const without = places.get(null) ?? 0;
  places.delete(null);
  const distinct = [...places.keys()];
  const ordered =
    typeof distinct[0] === "number" ? Float64Array.from(distinct as number[]).sort() : distinct.sort();
  if (isDescending) ordered.reverse();
  let place = 0;
  for (const value of ordered) {
    const many = places.get(value) ?? 0;
    places.set(value, place);
    place += many;
  }
  places.set(null, pods.length - without);
  const found = Array.from<PodBlock>({ length: pods.length });
  pods.forEach((pod, index) => {
    const value = values[index] ?? null;
    const place = places.get(value) ?? 0;
    found[place] = pod;
    places.set(value, place + 1);
  });
  return found;
}

function sortBy(column: Column, by: Column | undefined, isDescending: boolean): void {
  change({ sort: column !== by ? column.id : isDescending ? null : `-${column.id}` });
}

/** If rows are blocks, there is no head to click. */
function SortChoice({ by, isDescending }: { by: Column | undefined; isDescending: boolean }) {
  return (
    <label class="field">
      <span>Sort by</span>
      <select
        value={by === undefined ? "" : `${isDescending ? "-" : ""}${by.id}`}
        onChange={(event) => change({ sort: event.currentTarget.value })}
      >
        <option value="">node, then order</option>
        {COLUMNS.flatMap((column) =>
          ["", "-"].map((sign) => (
            <option
              key={sign + column.id}
              value={sign + column.id}
              selected={column === by && isDescending === (sign === "-")}
            >
              {column.name} {sign ? "▼" : "▲"}
            </option>
          )),
        )}
      </select>
    </label>
  );
}
