// The matrix of leaking pods and victims, in a box that scrolls. It has a cell for each pair of pods on a
// node, so only what is near is rendered, and not more of it with a frame than that has time for: layout.ts
// says what.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { lines, textWidth } from "../text";
import { Headings } from "./headings";
import { COLUMNS, HEADINGS, POD, SIZES } from "./layout";
import { isSame, layoutOf, leftOf, matrixOf, scrolledTo, step } from "./layout";
import type { MatrixLayout, Place } from "./layout";
import type { Leaking } from "./model";
import { Corner, Row } from "./row";
import { useDrawn } from "./drawn";

interface BoardProps {
  rows: readonly Leaking[];
  victims: readonly string[];
  /** The name of a column or a victim, with a minus if descending. */
  sort: string;
  /** The leaking pod and its victim; null: none is chosen. */
  chosen: readonly [pod: string, victim: string] | null;
  onSort: (name: string) => void;
  onChoose: (pod: string, victim: string) => void;
}

const MEASURES = { width: textWidth, lines };

export function Board({ rows, victims, sort, chosen, onSort, onChoose }: BoardProps) {
  const box = useRef<HTMLDivElement>(null);
  const [windowWidth, setWindowWidth] = useState(innerWidth);
  const matrix = useMemo(() => matrixOf(rows, victims), [rows, victims]);
  const layout = useMemo(() => layoutOf(matrix, windowWidth, MEASURES), [matrix, windowWidth]);
  const { seen, drawn, look, isAt } = useDrawn(matrix, layout);
  // What has the focus stays, wherever one scrolls to.
  const [focus, setFocus] = useState<Place | null>(null);
  const keep = (place: Place | null) =>
    setFocus((before) => (before !== null && place !== null && isSame(before, place) ? before : place));
  const wanted = useRef<Place | null>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      setWindowWidth(innerWidth);
      isAt({ ...isAt(), width: element.clientWidth, height: element.clientHeight });
      look();
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (wanted.current === null) return;
    const [row, column] = wanted.current;
    wanted.current = null;
    const inRow = row === HEADINGS ? "thead" : `[data-row="${row}"]`;
    const inColumn = `[data-column="${column}"]`;
    const place = box.current?.querySelector(`${inRow} ${inColumn}, ${inRow}${inColumn}`);
    place?.querySelector<HTMLElement>("a, button")?.focus({ preventScroll: true });
  });
  const onClick = ({ target }: Event) => {
    const [row, column] = placeOf(target);
    const [leaking, victim] = [rows[row], victims[column]];
    if (leaking !== undefined && victim !== undefined) onChoose(leaking.pod, victim);
    else if (row === HEADINGS && !Number.isNaN(column)) onSort(victim ?? COLUMNS[column - POD]?.[0] ?? "");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const place = placeOf(event.target);
    if (Number.isNaN(place[1]) || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = step(event.key, place, matrix);
    if (to === null || box.current === null) return;
    event.preventDefault();
    box.current.scrollTo(scrolledTo(layout, isAt(), to));
    isAt({ ...isAt(), left: box.current.scrollLeft, top: box.current.scrollTop });
    wanted.current = to;
    setFocus(to);
    look();
  };
  const onScroll = ({ currentTarget }: { currentTarget: HTMLElement }) => {
    isAt({ ...isAt(), left: currentTarget.scrollLeft, top: currentTarget.scrollTop });
    look();
  };
  const slots = [...drawn.slots].filter(([number]) => number < rows.length);
  if (focus !== null && focus[0] >= 0 && !drawn.slots.has(focus[0]) && rows[focus[0]] !== undefined) {
    const of = rows[focus[0]] as Leaking;
    slots.push([focus[0], { of, victims, columns: seen.columns, own: matrix.columnOf.get(of.pod) ?? null }]);
    slots.sort(([one], [other]) => one - other);
  }
  const chosenColumn = matrix.columnOf.get(chosen?.[1] ?? "") ?? null;
  const place = (number: number) => {
    const top = layout.tops[number] as number;
    return { top, height: (layout.tops[number + 1] as number) - top };
  };
  const height = layout.tops[rows.length];
  return (
    <div
      ref={box}
      class={`matrix${layout.isNarrow ? " narrow" : ""}`}
      style={{
        "--cell": `${SIZES.cell}px`,
        "--taken": `${SIZES.taken}px`,
        "--soonest": `${SIZES.soonest}px`,
        "--corner": `${layout.corner}px`,
      }}
      tabIndex={0}
      role="region"
      aria-label="Matrix of leaking pods and their victims"
      onClick={onClick}
      onKeyDown={onKeyDown}
      onScroll={onScroll}
      onFocusIn={({ target }: FocusEvent) => keep(focusOf(target))}
      // A window that is left has no related target, and keeps its focus.
      onFocusOut={({ relatedTarget }: FocusEvent) => keep(focusOf(relatedTarget ?? document.activeElement))}
      onPointerOver={showTitle}
    >
      <div class="sheet">
        <table
          role="grid"
          aria-label="Leaking pods and their victims"
          aria-rowcount={rows.length + 1}
          aria-colcount={COLUMNS.length + victims.length}
          style={{ width: `${layout.width}px` }}
        >
          <Headings
            victims={victims}
            sort={sort}
            columns={seen.columns}
            kept={focus?.[1] ?? null}
            layout={layout}
          />
          <tbody
            role="rowgroup"
            style={{ height: `${height}px`, backgroundPositionX: lit(layout, chosenColumn) }}
          >
            {slots.map(([number, slot]) => (
              <Row
                key={number}
                number={number}
                {...place(number)}
                slot={slot}
                before={layout.before}
                kept={focus?.[0] === number ? focus[1] : null}
                isChosen={slot.of.pod === chosen?.[0]}
                pressed={slot.of.pod === chosen?.[0] ? chosenColumn : null}
              />
            ))}
          </tbody>
        </table>
        <div class="pods" style={{ height: `${height}px` }}>
          {slots.map(([number, { of }]) => (
            <Corner
              key={number}
              number={number}
              {...place(number)}
              of={of}
              isChosen={of.pod === chosen?.[0]}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

/** The positions of what is drawn behind the rows: the chosen column, and lines between columns. */
function lit(layout: MatrixLayout, column: number | null): string {
  return `${column === null ? -100 : leftOf(layout, column)}px, ${layout.before}px`;
}

/** Return the row and the column of something that can be clicked or has the focus. */
function placeOf(target: EventTarget | null): Place {
  const button = target instanceof Element ? target.closest("a, button") : null;
  const cell = button?.closest<HTMLElement>("[data-column]");
  const row = cell?.closest<HTMLElement>("[data-row]")?.dataset["row"];
  return [Number(row ?? HEADINGS), Number(cell?.dataset["column"] ?? NaN)];
}

function focusOf(target: EventTarget | null): Place | null {
  const place = placeOf(target);
  return Number.isNaN(place[1]) ? null : place;
}

/** What a cell says is its title where the pointer is: to write all of them takes time. */
function showTitle({ target }: Event): void {
  const cell = (target as Element).closest(".cell");
  if (cell instanceof HTMLElement) cell.title = cell.ariaLabel ?? "";
}
