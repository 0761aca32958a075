// The headings of the matrix: three columns that stay, and the victims that are near.

import { useMemo } from "preact/hooks";
import { bare } from "../../format";
import { useLater } from "../frames";
import { kept } from "../ui";
import type { Range } from "../windowed";
import { COLUMNS, POD, isIn, leftOf, type MatrixLayout } from "./layout";

interface HeadingsProps {
  victims: readonly string[];
  sort: string;
  columns: Range;
  /** The column that has the focus. */
  kept: number | null;
  layout: MatrixLayout;
}

/** They follow a frame after the input: cells are drawn over several, too. */
export const Headings = kept(({ sort, kept: focused, ...next }: HeadingsProps) => {
  const { victims, columns, layout } = useLater(
    useMemo(() => next, [next.victims, next.columns, next.layout]),
  );
  const shown = [];
  for (let column = columns[0]; column < columns[1]; column++) shown.push(column);
  const isKept = focused !== null && focused >= 0 && focused < victims.length && !isIn(focused, columns);
  if (isKept) shown.push(focused);
  return (
    <thead role="rowgroup">
      <tr role="row" aria-rowindex={1} style={{ height: `${layout.headHeight}px` }}>
        {COLUMNS.map(([name, title], index) => (
          <Heading
            key={name}
            column={index + POD}
            name={name}
            words={title}
            kind={index === 0 ? "corner" : "number"}
            sort={sort}
          />
        ))}
        {shown.map((column) => (
          <Heading
            key={column}
            column={column}
            name={victims[column] as string}
            words={bare(victims[column] as string)}
            left={leftOf(layout, column)}
            kind="victim-name"
            sort={sort}
          />
        ))}
      </tr>
    </thead>
  );
});

interface HeadingProps {
  column: number;
  name: string;
  words: string;
  kind: string;
  sort: string;
  /** Of a victim's column. */
  left?: number;
}

const Heading = kept(({ column, name, words, kind, sort, left }: HeadingProps) => {
  const [isUp, isDown] = [sort === name, sort === `-${name}`];
  return (
    <th
      scope="col"
      role="columnheader"
      class={kind}
      aria-colindex={column - POD + 1}
      aria-sort={isUp ? "ascending" : isDown ? "descending" : "none"}
      data-column={column}
      {...(left === undefined ? {} : { title: name, style: { left: `${left}px` } })}
    >
      <button type="button" class="link">
        {words}
        <span aria-hidden="true">{isUp ? " ▲" : isDown ? " ▼" : ""}</span>
      </button>
    </th>
  );
});
