// The outcome of a run: tiles, a row per workload, and the journal in words.

import { h } from "./dom";
import { CAUSES, count, cpuTime, duration, percent, plural, time } from "./format";
import { breakable, NONE, table, tile, type Column } from "./frame";
import { icon } from "./kills";
import type { RunSummary, RunView, ServiceOutcome, WorkloadSummary } from "./schema";
import type { State } from "./state";

const MOST_EVENTS = 500;
const HOUSEKEEPING = new Set(["Placed", "Admitted", "Stopped", "CleanedUp", "Exited"]);

export function tiles(summary: RunSummary): HTMLElement[] {
  const by = (counts: Readonly<Record<string, number>>, total = 0) =>
    Object.entries(counts)
      .map(([name, number]) => (CAUSES[name] === undefined ? `${number} ${name}` : number === total ? CAUSES[name] : `${number}: ${CAUSES[name]}`))
      .join(", ");
  const levels = by(summary.oomKillsByLevel, summary.oomKills);
  return [
    tile(count(summary.oomKills), "killed by the kernel", levels, summary.oomKills ? "kernel" : ""),
    tile(count(summary.evictions), "evicted by the kubelet", by(summary.evictionsBySignal), summary.evictions ? "kubelet" : ""),
    tile(`${count(summary.untouched)}/${count(summary.pods)}`, "pods unaffected", affected(summary) || plural(summary.nodes, "node")),
    tile(count(summary.restarts), "restarts", summary.rejections ? `${summary.rejections} rejected` : ""),
    tile(duration(summary.downtimeUs), "downtime", "sum over all pods"),
  ];
}

/** How pods were affected that were not interrupted. */
function affected(summary: RunSummary): string {
  const counts = { "never ran": summary.neverRan, "pending": summary.waited, [summary.cpu?.slowed ? `slowed, worst to ${percent(summary.cpu.leastShare)}` : "short of CPU"]: summary.throttled, "denied processes or disk": summary.refused };
  return Object.entries(counts)
    .filter(([, number]) => number > 0)
    .map(([words, number]) => `${count(number)} ${words}`)
    .join(", ");
}

/** A row per workload. A column in which there is nothing is left out. */
export function workloads(run: RunView): HTMLElement {
  const rows = run.summary.workloads;
  const number = (name: string, cell: (each: WorkloadSummary) => string): Column<WorkloadSummary> => ({ name, cell, number: true });
  const columns = [
    { name: "Workload", cell: (each: WorkloadSummary) => breakable(each.workload) },
    { name: "Class", cell: (each: WorkloadSummary) => h("span", { class: `chip ${each.qosClass}` }, each.qosClass) },
    rows.some((each) => each.priority !== 0) && number("Priority", (each) => count(each.priority)),
    number("Unaffected", (each) => `${count(each.untouched)}/${count(each.pods)}`),
    rows.some((each) => each.neverRan > 0) && number("Never ran", (each) => none(each.neverRan)),
    rows.some((each) => each.oomKills > 0) && number("OOM kills", (each) => none(each.oomKills)),
    rows.some((each) => each.evictions > 0) && number("Evicted", (each) => none(each.evictions)),
    rows.some((each) => each.restarts > 0) && number("Restarts", (each) => none(each.restarts)),
    rows.some((each) => each.downtimeUs > 0) && number("Downtime", (each) => duration(each.downtimeUs)),
    rows.some((each) => each.throttledUs > 0) && number("Short of CPU", (each) => duration(each.throttledUs)),
    rows.some((each) => each.refused > 0) && number("Denied", (each) => none(each.refused)),
  ].filter((column): column is Column<WorkloadSummary> => column !== false);
  return table(columns, rows, (each) => (each.untouched < each.pods ? "hit" : ""));
}

/** What slowed workloads, and those with work to do, got of the CPU; null if there are none. */
export function cpuOf(run: RunView): HTMLElement | null {
  const rows = run.summary.workloads.filter((each) => each.cpu);
  if (rows.length === 0) return null;
  const number = (name: string, cell: (each: WorkloadSummary) => string): Column<WorkloadSummary> => ({ name, cell, number: true });
  const columns = [
    { name: "Workload", cell: (each: WorkloadSummary) => breakable(each.workload) },
    number("CPU denied", (each) => (each.cpu?.deniedUs ? cpuTime(each.cpu.deniedUs) : NONE)),
    number("Least share", (each) => (each.cpu ? percent(each.cpu.leastShare) : NONE)),
    number("Mean share", (each) => (each.cpu ? percent(each.cpu.meanShare) : NONE)),
    rows.some((each) => each.cpu?.throttledPeriods) && number("Throttled periods", (each) => none(each.cpu?.throttledPeriods ?? 0)),
    number("Slowdown", (each) => (each.cpu ? (typeof each.cpu.slowdown === "number" ? `${Number(each.cpu.slowdown.toPrecision(3))}×` : "no progress") : NONE)),
    rows.some((each) => works(each) > 0) && number("Work done", (each) => (works(each) > 0 ? `${count(each.cpu?.workDone ?? 0)}/${count(works(each))}` : NONE)),
  ].filter((column): column is Column<WorkloadSummary> => column !== false);
  return table(columns, rows, (each) => (each.cpu?.slowed ? "hit" : ""));
}

/** What became of requests, a row per service; null if no workload answers any. */
export function services(run: RunView): HTMLElement | null {
  const rows = run.summary.services ?? [];
  if (rows.length === 0) return null;
  const number = (name: string, cell: (each: ServiceOutcome) => string): Column<ServiceOutcome> => ({ name, cell, number: true });
  const columns = [
    { name: "Service", cell: (each: ServiceOutcome) => breakable(each.workload) },
    number("Requests", (each) => count(each.requests)),
    number("Errors", (each) => (each.errors && each.requests ? percent(each.errors / each.requests) : NONE)),
    rows.some((each) => each.retries > 0) && number("Retries", (each) => none(each.retries)),
    number("Peak utilisation", (each) => percent(each.highestUtilisationPermille / 1000)),
    number("Worst p99", (each) => (each.worstP99Us === null ? NONE : duration(each.worstP99Us))),
    rows.some((each) => each.overloadedUs > 0) && number("Overloaded", (each) => (each.overloadedUs ? duration(each.overloadedUs) : NONE)),
  ].filter((column): column is Column<ServiceOutcome> => column !== false);
  return table(columns, rows, (each) => (each.overloadedUs > 0 ? "hit" : ""));
}

function works(row: WorkloadSummary): number {
  return (row.cpu?.workDone ?? 0) + (row.cpu?.workUnfinished ?? 0);
}

function none(value: number): string {
  return value === 0 ? NONE : count(value);
}

export function journalView(state: State, element: HTMLElement): void {
  let all = false;
  const draw = () => {
    const own = state.run.events.filter((event) => event.node === state.now.node.name || event.node === "");
    const events = all ? own : own.filter((event) => !HOUSEKEEPING.has(event.kind));
    const shown = events.slice(0, MOST_EVENTS);
    const toggle = h("input", { type: "checkbox", change: () => ((all = !all), draw()) });
    toggle.checked = all;
    element.replaceChildren(
      h("label", { class: "quiet" }, toggle, " include housekeeping: placed, admitted, exited, stopped, cleaned up"),
      h(
        "ol",
        { class: "journal scroll tall", tabindex: 0, "aria-label": "Journal" },
        ...shown.map((event) =>
          h(
            "li",
            { class: event.kind },
            h("button", { type: "button", title: "Move the cursor here", click: () => state.moveTo(event.timeUs) }, time(event.timeUs)),
            event.kind === "OOMKilled" || event.kind === "Evicted" ? icon(event.by ?? "kubelet") : h("span", { class: "icon" }),
            h("span", {}, event.text),
          ),
        ),
      ),
      ...(events.length > shown.length ? [h("p", { class: "quiet" }, `${count(events.length - shown.length)} more: use -o jsonl to see all.`)] : []),
    );
  };
  state.subscribe((changed) => {
    if (changed.has("node")) draw();
  });
  draw();
}
