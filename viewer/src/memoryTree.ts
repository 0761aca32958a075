// Who held the memory when it ran out: a bar for the node or cgroup, its pod, its container and each process, all to one
// scale, with limit and peak; and the same figures as a table.

import { h } from "./dom";
import { about, bytes } from "./format";
import { NONE, table, type Column } from "./frame";
import type { MemoryPart, TreeRow } from "./schema";

/** The parts in the order in which they are drawn, with their names in the legend and the table. */
const KINDS: readonly (readonly [string, string])[] = [
  ["anon", "anonymous"],
  ["file", "page cache, files"],
  ["shmem", "tmpfs, shared"],
  ["rss", "resident, not split"],
  ["kernel", "kernel"],
  ["other", "not in the report"],
  ["swap", "swap"],
];

export function memoryTree(rows: readonly TreeRow[]): HTMLElement[] {
  const whole = Math.max(...rows.map((row) => Math.max(total(row), row.limitBytes ?? 0, row.peakBytes ?? 0)), 0);
  if (whole === 0) return [];
  const used = KINDS.filter(([kind]) => rows.some((row) => row.parts.some((part) => part.kind === kind)));
  const peaked = rows.some(isPeakShown);
  const limited = rows.filter((row) => row.limitBytes);
  return [
    h("h3", {}, "Memory at that moment"),
    h(
      "figure",
      { class: "tree" },
      h(
        "figcaption",
        { class: "legend" },
        ...used.map(([kind, name]) => h("span", { class: `chip held-${kind}` }, h("span", { class: "ink" }, name))),
        limited.length > 0 ? h("span", { class: "mark-name limit" }, limited.every((row) => row.kind === "machine") ? "all memory" : "limit") : null,
        peaked ? h("span", { class: "mark-name peak" }, "peak") : null,
      ),
      h("ul", {}, ...rows.map((row) => line(row, whole))),
    ),
    h("details", { class: "as-table" }, h("summary", {}, "Memory as a table"), figures(rows, used, peaked)),
  ];
}

const [MI, GI] = [2 ** 20, 2 ** 30];

/** An amount next to others: page tables are kibibytes, nodes are gibibytes. */
function size(count: number): string {
  return count > 0 && count < MI ? `${Math.ceil(count / 1024)}Ki` : count < GI ? bytes(count) : about(count);
}

function total(row: TreeRow): number {
  return row.parts.reduce((sum, part) => sum + part.bytes, 0);
}

/** A peak above what is in use now; otherwise the bar itself ends there. */
function isPeakShown(row: TreeRow): boolean {
  return row.peakBytes !== null && row.peakBytes > (row.usedBytes ?? total(row));
}

function line(row: TreeRow, whole: number): HTMLElement {
  const share = (size: number) => `${Math.min(100, (size / whole) * 100)}%`;
  const limit = row.limitBytes ? `, ${limitName(row)} ${size(row.limitBytes)}` : "";
  const peak = isPeakShown(row) ? `, peak ${size(row.peakBytes ?? 0)}` : "";
  const words = `${row.name}: ${row.parts.map(worded).join(", ") || "not in the report"}${limit}${peak}`;
  const bar = h(
    "span",
    { class: "held", role: "img", "aria-label": words, title: words },
    ...row.parts.map((part) => h("i", { class: `held-${part.kind}`, style: `width:${share(part.bytes)}` })),
    row.limitBytes ? h("b", { class: "limit", style: `left:${share(row.limitBytes)}` }) : null,
    isPeakShown(row) ? h("b", { class: "peak", style: `left:${share(row.peakBytes ?? 0)}` }) : null,
  );
  const isKnown = row.parts.length > 0 || row.limitBytes !== null;
  return h(
    "li",
    { class: `${row.kind}${row.mark ? " hit" : ""}`, style: `--depth:${row.depth}` },
    h("span", { class: "key" }, row.name, row.mark ? h("span", { class: "alarm" }, ` ${row.mark}`) : null),
    ...(isKnown ? [bar, h("span", { class: "much" }, amount(row))] : []),
  );
}

function worded(part: MemoryPart): string {
  return `${part.name} ${size(part.bytes)}`;
}

function limitName(row: TreeRow): string {
  return row.kind === "machine" ? "memory" : "limit";
}

function amount(row: TreeRow): string {
  const used = row.usedBytes ?? total(row);
  return row.limitBytes ? `${size(used)} of ${size(row.limitBytes)}` : size(used);
}

function figures(rows: readonly TreeRow[], used: readonly (readonly [string, string])[], peaked: boolean): HTMLElement {
  const cell = (count: number | null | undefined) => (count === null || count === undefined ? NONE : size(count));
  const columns: Column<TreeRow>[] = [
    { name: "Name", cell: (row) => h("span", { class: "key", style: `padding-left:${row.depth}em` }, row.name, row.mark ? h("span", { class: "alarm" }, ` ${row.mark}`) : null) },
    ...used.map(([kind, name]): Column<TreeRow> => ({ name: name.charAt(0).toUpperCase() + name.slice(1), cell: (row) => cell(row.parts.find((part) => part.kind === kind)?.bytes), number: true })),
    { name: "In all", cell: (row) => cell(row.usedBytes ?? (row.parts.length > 0 ? total(row) : null)), number: true },
    { name: "Limit", cell: (row) => cell(row.limitBytes), number: true },
    ...(peaked ? [{ name: "Peak", cell: (row: TreeRow) => cell(row.peakBytes), number: true }] : []),
  ];
  return table(columns, rows, (row) => (row.mark ? "hit" : ""));
}
