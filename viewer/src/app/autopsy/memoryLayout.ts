// Where the bars of the memory picture begin and end: all to one scale, as shares of the longest.

import type { TreeRow } from "../../schema";

/** The parts in the order in which they are drawn, with their names in the legend and the table. */
export const KINDS: readonly (readonly [kind: string, name: string])[] = [
  ["anon", "anonymous"],
  ["file", "page cache, files"],
  ["shmem", "tmpfs, shared"],
  ["rss", "resident, not split"],
  ["kernel", "kernel"],
  ["other", "not in the report"],
  ["swap", "swap"],
];

export interface Bar {
  /** Shares of the longest bar, from 0 to 1: of each part, and where the mark is; null: no mark. */
  parts: readonly { kind: string; share: number }[];
  limit: number | null;
}

export interface MemoryLayout {
  bars: readonly Bar[];
  /** The kinds that occur. */
  kinds: readonly (readonly [kind: string, name: string])[];
  /** What the red mark means; empty where there is none. */
  limitName: string;
}

export function total(row: TreeRow): number {
  return row.parts.reduce((sum, part) => sum + part.bytes, 0);
}

/** Return the picture of some rows; null where there is nothing to draw. */
export function memoryLayout(rows: readonly TreeRow[]): MemoryLayout | null {
  const reach = (row: TreeRow) => Math.max(total(row), row.limitBytes ?? 0);
  const whole = Math.max(0, ...rows.map(reach));
  if (whole === 0) return null;
  const share = (bytes: number) => Math.min(1, bytes / whole);
  const limited = rows.filter((row) => row.limitBytes);
  const isMachine = limited.every((row) => row.kind === "machine");
  const bars = rows.map((row): Bar => {
    return {
      parts: row.parts.map((part) => ({ kind: part.kind, share: share(part.bytes) })),
      limit: row.limitBytes ? share(row.limitBytes) : null,
    };
  });
  return {
    bars,
    kinds: KINDS.filter(([kind]) => rows.some((row) => row.parts.some((part) => part.kind === kind))),
    limitName: limited.length === 0 ? "" : isMachine ? "all memory" : "limit",
  };
}
