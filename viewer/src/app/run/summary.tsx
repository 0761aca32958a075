// The outcome of a run: tiles, and a row per workload and per service.

import { CAUSES, count, cpuTime, duration, percent, plural } from "../../format";
import type { RunView, ServiceOutcome, WorkloadSummary } from "../../schema";
import { Chip, Key, NONE, Table, Tile, type Column } from "../ui";

export function Tiles({ run }: { run: RunView }) {
  const { summary } = run;
  const { oomKills, evictions } = summary;
  const rejected = summary.rejections ? `${summary.rejections} rejected` : "";
  return (
    <>
      <Tile
        value={count(oomKills)}
        name="killed by the kernel"
        note={countsOf(summary.oomKillsByLevel, oomKills)}
        kind={oomKills ? "kernel" : ""}
      />
      <Tile
        value={count(evictions)}
        name="evicted by the kubelet"
        note={countsOf(summary.evictionsBySignal)}
        kind={evictions ? "kubelet" : ""}
      />
      <Tile
        value={`${count(summary.untouched)} of ${count(summary.pods)}`}
        name="pods unaffected"
        note={run.affected || plural(summary.nodes, "node")}
      />
      <Tile value={count(summary.restarts)} name="restarts" note={rejected} />
      <Tile value={duration(summary.downtimeUs)} name="downtime" note="sum over all pods" />
    </>
  );
}

/** How many by what; where all were by the same, only that. */
function countsOf(counts: Readonly<Record<string, number>>, total = 0): string {
  const words = Object.entries(counts).map(([name, number]) => {
    const cause = CAUSES[name];
    return cause === undefined ? `${number} ${name}` : number === total ? cause : `${number}: ${cause}`;
  });
  return words.join(", ");
}

const none = (value: number) => (value === 0 ? NONE : count(value));

/** A column of numbers; `isShown` tells for which rows there is something in it. */
function numbers<Row>(name: string, cell: (row: Row) => string, isShown: (row: Row) => boolean = () => true) {
  return { name, cell, isShown, number: true };
}

type Optional<Row> = Column<Row> & { isShown?: (row: Row) => boolean };

/** A column in which there is nothing is left out. */
function filled<Row>(columns: readonly Optional<Row>[], rows: readonly Row[]): Column<Row>[] {
  return columns.filter(({ isShown }) => isShown === undefined || rows.some(isShown));
}

const WORKLOADS: readonly Optional<WorkloadSummary>[] = [
  { name: "Workload", cell: (row) => <Key of={row.workload} /> },
  { name: "Class", cell: (row) => <Chip qosClass={row.qosClass} /> },
  numbers(
    "Priority",
    (row) => count(row.priority),
    (row) => row.priority !== 0,
  ),
  numbers("Unaffected", (row) => `${count(row.untouched)}/${count(row.pods)}`),
  numbers(
    "Never ran",
    (row) => none(row.neverRan),
    (row) => row.neverRan > 0,
  ),
  numbers(
    "OOM kills",
    (row) => none(row.oomKills),
    (row) => row.oomKills > 0,
  ),
  numbers(
    "Evicted",
    (row) => none(row.evictions),
    (row) => row.evictions > 0,
  ),
  numbers(
    "Restarts",
    (row) => none(row.restarts),
    (row) => row.restarts > 0,
  ),
  numbers(
    "Downtime",
    (row) => duration(row.downtimeUs),
    (row) => row.downtimeUs > 0,
  ),
  numbers(
    "Short of CPU",
    (row) => duration(row.throttledUs),
    (row) => row.throttledUs > 0,
  ),
  numbers(
    "Denied",
    (row) => none(row.refused),
    (row) => row.refused > 0,
  ),
];

export function Workloads({ run }: { run: RunView }) {
  const rows = run.summary.workloads;
  const kind = (row: WorkloadSummary) => (row.untouched < row.pods ? "hit" : "");
  return <Table columns={filled(WORKLOADS, rows)} rows={rows} kind={kind} />;
}

function works({ cpu }: WorkloadSummary): number {
  return (cpu?.workDone ?? 0) + (cpu?.workUnfinished ?? 0);
}

function slowdown({ cpu }: WorkloadSummary): string {
  if (!cpu) return NONE;
  return typeof cpu.slowdown === "number" ? `${Number(cpu.slowdown.toPrecision(3))}×` : "no progress";
}

const CPU: readonly Optional<WorkloadSummary>[] = [
  { name: "Workload", cell: (row) => <Key of={row.workload} /> },
  numbers("CPU denied", ({ cpu }) => (cpu?.deniedUs ? cpuTime(cpu.deniedUs) : NONE)),
  numbers("Least share", ({ cpu }) => (cpu ? percent(cpu.leastShare) : NONE)),
  numbers("Mean share", ({ cpu }) => (cpu ? percent(cpu.meanShare) : NONE)),
  numbers(
    "Throttled periods",
    ({ cpu }) => none(cpu?.throttledPeriods ?? 0),
    ({ cpu }) => (cpu?.throttledPeriods ?? 0) > 0,
  ),
  numbers("Slowdown", slowdown),
  numbers(
    "Work done",
    (row) => (works(row) > 0 ? `${count(row.cpu?.workDone ?? 0)}/${count(works(row))}` : NONE),
    (row) => works(row) > 0,
  ),
];

/** The workloads that were slowed, or have work to do. */
export function cpuRows(run: RunView): readonly WorkloadSummary[] {
  return run.summary.workloads.filter((row) => row.cpu);
}

/** What workloads got of the CPU. */
export function CpuTable({ rows }: { rows: readonly WorkloadSummary[] }) {
  return <Table columns={filled(CPU, rows)} rows={rows} kind={(row) => (row.cpu?.slowed ? "hit" : "")} />;
}

const SERVICES: readonly Optional<ServiceOutcome>[] = [
  { name: "Service", cell: (row) => <Key of={row.workload} /> },
  numbers("Requests", (row) => count(row.requests)),
  numbers("Errors", (row) => (row.errors && row.requests ? percent(row.errors / row.requests) : NONE)),
  numbers("Peak utilisation", (row) => percent(row.highestUtilisationPermille / 1000)),
  numbers("Worst p99", (row) => (row.worstP99Us === null ? NONE : duration(row.worstP99Us))),
  numbers(
    "Overloaded",
    (row) => (row.overloadedUs ? duration(row.overloadedUs) : NONE),
    (row) => row.overloadedUs > 0,
  ),
];

/** What became of requests, a row per service. */
export function Services({ rows }: { rows: readonly ServiceOutcome[] }) {
  const kind = (row: ServiceOutcome) => (row.overloadedUs > 0 ? "hit" : "");
  return <Table columns={filled(SERVICES, rows)} rows={rows} kind={kind} />;
}
