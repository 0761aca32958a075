// What differs between two runs: who was killed or evicted, and the outcome by workload.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { count, duration, time } from "../../format";
import type { ComparedDeath, ComparedWorkload, CompareView, WorkloadSummary } from "../../schema";
import type { Kill, RunView } from "../../schema";
import { Swatch } from "../swatch";
import { Chip, Key, NONE, Table, type Column } from "../ui";
import { Sign } from "./sign";

const VERDICTS: Readonly<Record<string, string>> = {
  same: "the same",
  "other hand": "kernel ↔ kubelet",
  moved: "other place in the order",
  "only expected": "saved",
  "only happened": "new",
};

/** The victims of both runs. */
export function Ends({ view, runs }: { view: CompareView; runs: readonly [RunView, RunView] }) {
  const [before, after] = runs;
  const classes = useMemo(
    () => new Map([...after.pods, ...before.pods].map((pod) => [pod.key, pod.qosClass])),
    [before, after],
  );
  if (view.deaths.length === 0) return <p class="quiet">No OOM kills and no evictions in either run.</p>;
  const columns: readonly Column<ComparedDeath>[] = [
    {
      name: "Pod",
      cell: ({ pod }) => (
        <>
          <Swatch pod={pod} qosClass={classes.get(pod) ?? null} />
          <Key of={pod} />
        </>
      ),
    },
    { name: "Change", cell: (row) => <span class="compared">{changeOf(row)}</span> },
    { name: "Before", cell: (row) => <Death kill={killOf(before, row.before)} /> },
    { name: "After", cell: (row) => <Death kill={killOf(after, row.after)} /> },
  ];
  const kind = (row: ComparedDeath) => (row.runsInBoth ? row.verdict.replace(" ", "-") : "");
  return <Table rows={view.deaths} kind={kind} columns={columns} />;
}

function killOf(run: RunView, place: number | null): Kill | undefined {
  return place === null ? undefined : run.kills[place];
}

function changeOf({ runsInBoth, verdict, after }: ComparedDeath): string {
  if (runsInBoth) return VERDICTS[verdict] ?? verdict;
  return after === null ? "does not run" : "did not run";
}

function Death({ kill }: { kill: Kill | undefined }) {
  if (kill === undefined) return <>{NONE}</>;
  return (
    <span class="end">
      <Sign by={kill.by} />
      {`${time(kill.timeUs, 1e5)}: ${kill.cause}`}
    </span>
  );
}

type Events = "oomKills" | "evictions" | "restarts";
type Figure = Events | "pods" | "neverRan" | "untouched" | "downtimeUs" | "throttledUs";

/** A column with a figure of a workload in both runs. */
function figure(name: string, field: Figure, words: (value: number) => string = count) {
  const of = (workload: WorkloadSummary | null) => workload?.[field] ?? null;
  const cell = (row: ComparedWorkload) => <Turned from={of(row.before)} to={of(row.after)} show={words} />;
  return { name, number: true, cell };
}

const COLUMNS: readonly (Column<ComparedWorkload> & { onlyIf?: Figure })[] = [
  { name: "Workload", cell: (row) => row.workload },
  {
    name: "Class",
    cell: ({ before, after }) => (
      <Turned
        from={before?.qosClass ?? null}
        to={after?.qosClass ?? null}
        show={(value) => <Chip qosClass={String(value)} />}
      />
    ),
  },
  figure("Pods", "pods"),
  { ...figure("Never ran", "neverRan"), onlyIf: "neverRan" },
  figure("Killed", "oomKills"),
  figure("Evicted", "evictions"),
  figure("Restarts", "restarts"),
  figure("Unaffected", "untouched"),
  figure("Downtime", "downtimeUs", duration),
  { ...figure("Short of CPU", "throttledUs", duration), onlyIf: "throttledUs" },
];

/** The outcome by workload in both runs. */
export function Workloads({ view }: { view: CompareView }) {
  const has = (field: Figure) => view.workloads.some((row) => row.before?.[field] || row.after?.[field]);
  const columns = COLUMNS.filter(({ onlyIf }) => onlyIf === undefined || has(onlyIf));
  const kind = (row: ComparedWorkload) => (row.isDifferent ? "different" : "");
  return <Table rows={view.workloads} kind={kind} columns={columns} />;
}

interface TurnedProps<T> {
  from: T | null;
  to: T | null;
  show: (value: T) => ComponentChildren;
}

/** The old and the new value, if they differ. */
function Turned<T extends string | number>({ from, to, show }: TurnedProps<T>) {
  const shown = (value: T | null) => (value === null ? NONE : show(value));
  if (from === to) return <>{shown(to)}</>;
  return (
    <>
      <del>{shown(from)}</del> → <b>{shown(to)}</b>
    </>
  );
}
