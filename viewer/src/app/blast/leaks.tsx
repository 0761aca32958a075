// Leaks one by one: the most dangerous with their victims in order; where no leak takes others down, how each
// ends.

import { useState } from "preact/hooks";
import { count, plural, seconds } from "../../format";
import type { Blast, BlastRadius, BlastDeath } from "../../schema";
import { Sign } from "../run/sign";
import { Swatch } from "../swatch";
import { Card, Chip, Key, kept, NONE, Table, type Column } from "../ui";
import { harmful, taken, together, type Deaths } from "./model";
import { causeOf, how, rate } from "./words";

/** More victims than these are told when asked for. */
const FEW = 3;
/** The longest bar, in pixels. */
const LONGEST = 56;

interface LeaksProps {
  radius: BlastRadius;
  /** At most so many are shown one by one; `all` says what has the others. */
  most: number;
  all: string;
}

export const Leaks = kept(({ radius, most, all }: LeaksProps) => {
  const dangerous = harmful(radius);
  if (radius.leaks.length === 0) return null;
  return dangerous.length > 0 ? (
    <Dangerous radius={radius} leaks={dangerous} most={most} all={all} />
  ) : (
    <Harmless radius={radius} most={most} />
  );
});

function Dangerous({ radius, leaks, most, all }: LeaksProps & { leaks: readonly Blast[] }) {
  const shown = leaks.slice(0, most);
  const more = leaks.length - shown.length;
  const pods = new Set(leaks.map((leak) => `${leak.node} ${leak.pod}`)).size;
  const harmless = radius.pods - pods;
  const longest = Math.max(...shown.map(taken));
  const columns: Column<Blast>[] = [
    leakingPod(radius),
    { name: "Class", cell: (leak) => (leak.qosClass === null ? NONE : <Chip qosClass={leak.qosClass} />) },
    { name: "Leak", cell: rate, number: true },
    {
      name: "Takes down",
      number: true,
      cell: (leak) => (
        <span class="amount">
          <i style={{ width: `${(taken(leak) / longest) * LONGEST}px` }} />
          {count(taken(leak))}
        </span>
      ),
    },
    { name: "Victims, in order", cell: (leak) => <Victims deaths={together(leak.others)} /> },
    { name: "Leak ends", cell: (leak) => <End end={leak.end} /> },
  ];
  const affect = harmless === 1 ? "affects" : "affect";
  const harm = `${count(harmless)} of ${plural(radius.pods, "pod")} ${affect} no other pod.`;
  return (
    <Card id="leaks" title="The most dangerous pods">
      <Table columns={columns} rows={shown} />
      <p class="quiet">{`${more > 0 ? `${plural(more, "more leak")}: ${all}. ` : ""}${harm}`}</p>
    </Card>
  );
}

/** Leaks that end with the pod that leaks, the fastest first. */
function Harmless({ radius, most }: Omit<LeaksProps, "all">) {
  const after = (leak: Blast) => leak.end?.afterSeconds ?? Infinity;
  const byName = (one: Blast, other: Blast) => (one.pod < other.pod ? -1 : 1);
  const leaks = radius.leaks.toSorted((one, other) => after(one) - after(other) || byName(one, other));
  const shown = leaks.slice(0, most);
  const more = leaks.length - shown.length;
  const columns: Column<Blast>[] = [
    leakingPod(radius),
    { name: "Class", cell: (leak) => (leak.qosClass === null ? NONE : <Chip qosClass={leak.qosClass} />) },
    { name: "Leak", cell: rate, number: true },
    { name: "Leak ends", cell: (leak) => <End end={leak.end} /> },
    { name: "Reason", cell: (leak) => (leak.end === null ? NONE : causeOf(leak.end)) },
  ];
  return (
    <Card id="leaks" title="How each leak ends, the fastest first">
      <Table columns={columns} rows={shown} />
      {more > 0 ? (
        <p class="quiet">{`${plural(more, "more leak")}: podqos blast -o csv lists them all.`}</p>
      ) : null}
    </Card>
  );
}

function leakingPod(radius: BlastRadius): Column<Blast> {
  return {
    name: "Leaking pod",
    cell: (leak) => (
      <div>
        <Swatch pod={leak.pod} qosClass={leak.qosClass} />
        <Key of={leak.pod} />
        <small class="quiet">
          {radius.nodes > 1 ? `on ${leak.node}, ` : ""}
          {`priority ${count(leak.priority)}`}
        </small>
      </div>
    ),
  };
}

function Victims({ deaths }: { deaths: readonly Deaths[] }) {
  const few = deaths.length <= FEW + 1 ? deaths : deaths.slice(0, FEW);
  // Written when it is opened: all of them are thousands.
  const [isOpen, setOpen] = useState(false);
  if (few === deaths) return <List deaths={deaths} start={1} />;
  return (
    <div>
      <List deaths={few} start={1} />
      <details onToggle={({ currentTarget }) => currentTarget.open && setOpen(true)}>
        <summary>{`${count(deaths.length - FEW)} more`}</summary>
        {isOpen ? <List deaths={deaths.slice(FEW)} start={FEW + 1} /> : null}
      </details>
    </div>
  );
}

function List({ deaths, start }: { deaths: readonly Deaths[]; start: number }) {
  return (
    <ol class="deaths" start={start}>
      {deaths.map(({ first, times }, place) => (
        <li key={place}>
          <Sign by={first.by} />
          <div>
            <b>
              <Swatch pod={first.pod} qosClass={first.qosClass} />
              <Key of={first.pod} />
            </b>{" "}
            {first.isCritical ? <span class="alarm">critical</span> : <Chip qosClass={first.qosClass} />}
            <small class="quiet">{worded(first, times)}</small>
          </div>
        </li>
      ))}
    </ol>
  );
}

function worded(death: BlastDeath, times: number): string {
  const often = times > 1 ? `, ${times} times from ` : " after ";
  return `${how(death)}${often}${seconds(death.afterSeconds)}: ${causeOf(death)}`;
}

function End({ end }: { end: BlastDeath | null }) {
  if (end === null) return <span>never</span>;
  return (
    <span class="end">
      <Sign by={end.by} />
      {`${how(end)} after ${seconds(end.afterSeconds)}`}
    </span>
  );
}
