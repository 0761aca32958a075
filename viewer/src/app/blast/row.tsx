// A row of the matrix: the pod that leaks, how many it takes down and how soon, and a cell for each victim
// that is near. All pods are in one element that stays at the left: each that did so by itself would cost a
// layer.

import { count, fate, seconds } from "../../format";
import { href } from "../router";
import { Swatch } from "../swatch";
import { Key, kept, NONE } from "../ui";
import { COLUMNS, POD, SIZES, isIn, type Slot } from "./layout";
import type { Leaking } from "./model";

interface Placed {
  number: number;
  top: number;
  height: number;
  isChosen: boolean;
}

export const Corner = kept(({ number, top, height, of, isChosen }: Placed & { of: Leaking }) => (
  <div
    id={`leak-${number}`}
    role="rowheader"
    class={`corner${isChosen ? " chosen-row" : ""}`}
    aria-colindex={1}
    data-row={number}
    data-column={POD}
    style={{ top: `${top}px`, height: `${height}px` }}
  >
    <Swatch pod={of.pod} qosClass={of.qosClass} />
    <a href={href("pod", of.pod.split("/"))}>
      <Key of={of.pod} />
    </a>
    <span class={`chip ${of.qosClass}`}>{of.qosClass}</span>
  </div>
));

interface RowProps extends Placed {
  slot: Slot;
  /** How wide the columns before the victims are. */
  before: number;
  /** The column that has the focus. */
  kept: number | null;
  /** The column that is chosen. */
  pressed: number | null;
}

export const Row = kept((props: RowProps) => {
  const { number, top, height, slot, before, kept: focused, isChosen, pressed } = props;
  const { of, victims, columns, own } = slot;
  const shown = [];
  for (let column = columns[0]; column < columns[1]; column++) shown.push(column);
  if (focused !== null && focused >= 0 && !isIn(focused, columns)) shown.push(focused);
  const [first] = of.deaths.values();
  const left = (column: number) => before + column * SIZES.cell;
  return (
    <tr
      role="row"
      class={isChosen ? "chosen-row" : ""}
      aria-rowindex={number + 2}
      aria-owns={`leak-${number}`}
      data-row={number}
      style={{
        top: `${top}px`,
        height: `${height}px`,
        backgroundPositionX: own === null ? "-100px" : `${left(own)}px`,
      }}
    >
      <td role="gridcell" class="number" aria-colindex={2}>
        {count(of.deaths.size)}
      </td>
      <td role="gridcell" class="number" aria-colindex={3}>
        {first === undefined ? NONE : seconds(first.death.afterSeconds)}
      </td>
      {shown.map((column) => {
        const victim = victims[column] ?? "";
        const lost = of.deaths.get(victim);
        if (lost === undefined) return null;
        const { death, place } = lost;
        const how = `${fate(death.by)} after ${seconds(death.afterSeconds)}`;
        return (
          <td
            key={column}
            role="gridcell"
            aria-colindex={COLUMNS.length + 1 + column}
            data-column={column}
            style={{ left: `${left(column)}px` }}
          >
            <button
              type="button"
              tabIndex={-1}
              class={`cell ${death.by === "kernel" ? "kernel" : "kubelet"}`}
              aria-pressed={column === pressed}
              aria-label={`${of.pod} leaks: ${victim} is victim number ${place}, ${how}`}
            >
              {count(place)}
            </button>
          </td>
        );
      })}
    </tr>
  );
});
