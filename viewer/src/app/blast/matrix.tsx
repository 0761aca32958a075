// Which pod takes which down: the matrix with its leak rate, and what the chosen cell says; above it the
// chosen leak.

import { useMemo } from "preact/hooks";
import { bytes, fate, plural, seconds } from "../../format";
import type { BlastRadius } from "../../schema";
import { afterFrame, useLater } from "../frames";
import { change, here, href, useRoute } from "../router";
import { Card, Key, Select } from "../ui";
import { Board } from "./board";
import { harmful, leaksOf, ratesOf, sorted } from "./model";
import { Story } from "./story";

const HELP =
  "Each row is a leaking pod, each column a possible victim. Numbers show the order in which victims are " +
  "lost: ◆ OOM-killed by the kernel, ● evicted by the kubelet. Click a heading to sort, or a number for " +
  "details (arrow keys work, too).";
const HARMLESS =
  "At this rate, no pod takes others down: a leaking pod is always the first to be OOM-killed or evicted.";

export function Matrix({ radius }: { radius: BlastRadius }) {
  const { query } = useRoute();
  const [worst] = useMemo(() => harmful(radius), [radius]);
  const rates = useMemo(() => ratesOf(radius), [radius]);
  // It opens on what is most dangerous.
  const wanted = Number(query.get("rate")) || (worst?.rateBytesPerSecond ?? rates.at(-1) ?? 0);
  const rate = useLater(wanted);
  const sort = query.get("sort") ?? "-taken";
  const { leaks, victims } = useMemo(() => leaksOf(radius, rate), [radius, rate]);
  const rows = useMemo(() => sorted(leaks, sort), [leaks, sort]);
  const [leaking, victim] = [query.get("leaks") ?? "", query.get("dies") ?? ""];
  const lost = leaks.find((leak) => leak.pod === leaking)?.deaths.get(victim);
  const isChosen = lost !== undefined;
  const chosen = useMemo(
    () => (isChosen ? ([leaking, victim] as const) : null),
    [isChosen, leaking, victim],
  );
  if (worst === undefined) return null;
  const shown =
    lost === undefined
      ? worst
      : (radius.leaks.find((leak) => leak.pod === leaking && leak.rateBytesPerSecond === rate) ?? worst);
  const figures = `${plural(rows.length, "pod")}, ${plural(victims.length, "victim")}.`;
  return (
    <>
      <Story leak={shown} isWorst={shown === worst} />
      <Card title="Which pod takes which down" tools={<Rates rates={rates} rate={wanted} />}>
        <p class="quiet">{victims.length > 0 ? HELP : HARMLESS}</p>
        {victims.length > 0 ? (
          <>
            <Board
              rows={rows}
              victims={victims}
              sort={sort}
              chosen={chosen}
              onSort={(name) => afterFrame(() => sortBy(name))}
              onChoose={(pod, dies) => afterFrame(() => change({ leaks: pod, dies }, true))}
            />
            <p class="chosen-death" role="status">
              {lost === undefined ? (
                <span class="quiet">{figures}</span>
              ) : (
                <>
                  If <Key of={leaking} /> leaks {bytes(rate)}/s,{" "}
                  <a href={href("pod", victim.split("/"))}>{victim}</a> is victim number {lost.place}:{" "}
                  {fate(lost.death.by)} after {seconds(lost.death.afterSeconds)}.
                </>
              )}
            </p>
          </>
        ) : null}
      </Card>
    </>
  );
}

/** Sort by a column, or reverse the order if it is already sorted by it. */
function sortBy(name: string): void {
  change({ sort: here().query.get("sort") === name ? `-${name}` : name }, true);
}

function Rates({ rates, rate }: { rates: readonly number[]; rate: number }) {
  if (rates.length < 2) return null;
  const options = rates.map((value) => [String(value), `${bytes(value)}/s`] as const);
  const choose = (value: string) => change({ rate: value });
  return <Select label="Leak rate" value={String(rate)} options={options} change={choose} />;
}
