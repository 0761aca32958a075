// Who held the memory when it ran out: a bar for the node or cgroup, its pod, its container and each process,
// all to one scale, with limit and peak; and the same figures as a table. Where the report has no processes,
// one bar.

import { about, bytes } from "../../format";
import type { TreeRow } from "../../schema";
import { NONE, Table, type Column } from "../ui";
import { memoryLayout, total, type Bar, type MemoryLayout } from "./memoryLayout";

const [MI, GI] = [2 ** 20, 2 ** 30];

/** An amount next to others: page tables are kibibytes, nodes are gibibytes. */
export function size(count: number): string {
  return count > 0 && count < MI ? `${Math.ceil(count / 1024)}Ki` : count < GI ? bytes(count) : about(count);
}

export function percent(share: number): string {
  return `${share * 100}%`;
}

export function MemoryTree({ rows }: { rows: readonly TreeRow[] }) {
  const layout = memoryLayout(rows);
  if (layout === null) return null;
  return (
    <>
      <h3>Memory at that moment</h3>
      <figure class="tree">
        <figcaption class="legend">
          {layout.kinds.map(([kind, name]) => (
            <Legend key={kind} kind={`held-${kind}`} name={name} />
          ))}
          {layout.limitName ? <span class="mark-name limit">{layout.limitName}</span> : null}
        </figcaption>
        <ul>
          {rows.map((row, place) => (
            <Line key={place} row={row} bar={layout.bars[place] as Bar} />
          ))}
        </ul>
      </figure>
      <details class="as-table">
        <summary>Memory as a table</summary>
        <Figures rows={rows} layout={layout} />
      </details>
    </>
  );
}

function Legend({ kind, name }: { kind: string; name: string }) {
  return (
    <span class={`chip ${kind}`}>
      <span class="ink">{name}</span>
    </span>
  );
}

function Name({ row }: { row: TreeRow }) {
  return (
    <>
      {row.name}
      {row.mark ? <span class="alarm">{` ${row.mark}`}</span> : null}
    </>
  );
}

function Line({ row, bar }: { row: TreeRow; bar: Bar }) {
  const isKnown = row.parts.length > 0 || row.limitBytes !== null;
  const words = spoken(row);
  return (
    <li class={`${row.kind}${row.mark ? " hit" : ""}`} style={{ "--depth": String(row.depth) }}>
      <span class="key">
        <Name row={row} />
      </span>
      {isKnown ? (
        <span class="held" role="img" aria-label={words} title={words}>
          {bar.parts.map((part, place) => (
            <i key={place} class={`held-${part.kind}`} style={{ width: percent(part.share) }} />
          ))}
          {bar.limit === null ? null : <b class="limit" style={{ left: percent(bar.limit) }} />}
        </span>
      ) : null}
      {isKnown ? <span class="much">{amount(row)}</span> : null}
    </li>
  );
}

function spoken(row: TreeRow): string {
  const parts = row.parts.map((part) => `${part.name} ${size(part.bytes)}`).join(", ");
  const limitName = row.kind === "machine" ? "memory" : "limit";
  const limit = row.limitBytes ? `, ${limitName} ${size(row.limitBytes)}` : "";
  return `${row.name}: ${parts || "not in the report"}${limit}`;
}

function amount(row: TreeRow): string {
  const used = row.usedBytes ?? total(row);
  return row.limitBytes ? `${size(used)} of ${size(row.limitBytes)}` : size(used);
}

function Figures({ rows, layout }: { rows: readonly TreeRow[]; layout: MemoryLayout }) {
  const cell = (count: number | null | undefined) => (typeof count === "number" ? size(count) : NONE);
  const figure = (name: string, of: (row: TreeRow) => number | null | undefined): Column<TreeRow> => ({
    name,
    cell: (row) => cell(of(row)),
    number: true,
  });
  const columns: Column<TreeRow>[] = [
    {
      name: "Name",
      cell: (row) => (
        <span class="key" style={{ paddingLeft: `${row.depth}em` }}>
          <Name row={row} />
        </span>
      ),
    },
    ...layout.kinds.map(([kind, name]) =>
      figure(capital(name), (row) => row.parts.find((part) => part.kind === kind)?.bytes),
    ),
    figure("In all", (row) => row.usedBytes ?? (row.parts.length > 0 ? total(row) : null)),
    figure("Limit", (row) => row.limitBytes),
  ];
  return <Table columns={columns} rows={rows} kind={(row) => (row.mark ? "hit" : "")} />;
}

export function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
