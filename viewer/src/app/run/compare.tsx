// Two runs side by side, with what differs marked.

import { useCallback, useMemo } from "preact/hooks";
import { Charts } from "../../charts";
import { h } from "../../dom";
import { count, duration, plural, time } from "../../format";
import { icon } from "../../kills";
import type { ComparedDeath, ComparedWorkload, CompareView, Kill, RunView } from "../../schema";
import { State } from "../../state";
import { href } from "../router";
import { useAnswer } from "../source";
import { Awaited, Card, Chip, Dom, Empty, Key, NONE, Page, Table, Tile } from "../ui";
import type { ViewProps } from "../view";
import { nameOf, Progress, useJob, useRuns } from "./jobs";

const VERDICTS: Readonly<Record<string, string>> = {
  same: "the same",
  "other hand": "kernel ↔ kubelet",
  moved: "other place in the order",
  "only expected": "saved",
  "only happened": "new",
};

export function ComparePage({ route, app }: ViewProps) {
  const [before = "", after = ""] = route.parts;
  const jobs = [useJob<RunView>(app.source, after ? before : null), useJob<RunView>(app.source, after || null)] as const;
  const [first, second] = [jobs[0].result, jobs[1].result];
  const view = useAnswer<CompareView>(app.source, first === null || second === null ? null : { path: `/api/compare?before=${encodeURIComponent(before)}&after=${encodeURIComponent(after)}` });
  const [one, ...others] = (useRuns(app) ?? []).filter((each) => each.state === "done");
  if (!after) {
    return (
      <Page title="Compare">
        <div class="wide">
          <Empty title="Which two runs?">
            {one === undefined || others.length === 0 ? (
              <p>
                <a href={href("run")}>Run the scenario</a>, then run it again with other values. Any two runs can be compared.
              </p>
            ) : (
              <p class="runs-done">
                {`${nameOf(one)}, and:`}
                {others.map((each) => (
                  <a key={each.id} href={href("compare", [one.id, each.id])}>
                    {nameOf(each)}
                  </a>
                ))}
              </p>
            )}
          </Empty>
        </div>
      </Page>
    );
  }
  if (first === null || second === null || view.data === null || view.failure !== null) {
    const awaited = jobs.find((each) => each.result === null);
    return (
      <Page title="Compare" tools={<a href={href("run", [before])}>← Earlier run</a>}>
        <div class="wide">
          {awaited === undefined ? (
            <Awaited answer={view} what="Comparing…">
              {() => null}
            </Awaited>
          ) : (
            <Progress job={awaited} what="Simulating" />
          )}
        </div>
      </Page>
    );
  }
  return <Shown view={view.data} runs={[first, second]} ids={[before, after]} />;
}

function Shown({ view, runs, ids }: { view: CompareView; runs: readonly [RunView, RunView]; ids: readonly [string, string] }) {
  const { before, after } = view;
  const was = (one: number, other: number) => (one === other ? "unchanged" : `was ${count(one)}`);
  const endUs = Math.max(runs[0].endUs, runs[1].endUs);
  const only = useMemo(() => [new Set(view.deaths.filter((each) => each.after === null).map((each) => each.before)), new Set(view.deaths.filter((each) => each.before === null).map((each) => each.after))] as const, [view]);
  const looks = useMemo(() => beside(runs), [runs[0], runs[1]]);
  return (
    <Page
      title="Compare"
      facts={[view.beforeName, view.beforeName === view.afterName ? "" : view.afterName, time(endUs, 1e6)].filter(Boolean)}
      headline={view.headline}
      tools={<a href={href("run", [ids[1]])}>← Later run</a>}
      tiles={
        <>
          <Tile value={count(after.oomKills)} name="killed by the kernel" note={was(before.oomKills, after.oomKills)} kind={after.oomKills > 0 ? "kernel" : ""} />
          <Tile value={count(after.evictions)} name="evicted by the kubelet" note={was(before.evictions, after.evictions)} kind={after.evictions > 0 ? "kubelet" : ""} />
          <Tile value={`${count(after.untouched)}/${count(after.pods)}`} name="pods unaffected" note={before.pods === after.pods ? was(before.untouched, after.untouched) : `was ${count(before.untouched)}/${count(before.pods)}`} />
          <Tile value={duration(after.downtimeUs)} name="downtime" note={before.downtimeUs === after.downtimeUs ? "unchanged" : `was ${duration(before.downtimeUs)}`} />
        </>
      }
    >
      <div class="sides">
        {(["Before", "After"] as const).map((title, index) => (
          <Side key={title} title={title} run={runs[index] as RunView} look={looks[index] ?? null} id={ids[index] as string} only={only[index] as ReadonlySet<number | null>} />
        ))}
      </div>
      <Card title="Killed and evicted">
        {view.deaths.length === 0 ? (
          <p class="quiet">No OOM kills and no evictions in either run.</p>
        ) : (
          <Table<ComparedDeath>
            rows={view.deaths}
            kind={(each) => (each.runsInBoth ? each.verdict.replace(" ", "-") : "")}
            columns={[
              { name: "Pod", cell: (each) => <Key of={each.pod} /> },
              { name: "Change", cell: (each) => <span class="compared">{each.runsInBoth ? (VERDICTS[each.verdict] ?? each.verdict) : each.after === null ? "does not run" : "did not run"}</span> },
              { name: "Before", cell: (each) => <Death kill={each.before === null ? undefined : runs[0].kills[each.before]} /> },
              { name: "After", cell: (each) => <Death kill={each.after === null ? undefined : runs[1].kills[each.after]} /> },
            ]}
          />
        )}
      </Card>
      <Card title="Workloads">
        <Table<ComparedWorkload>
          rows={view.workloads}
          kind={(each) => (each.isDifferent ? "different" : "")}
          columns={[
            { name: "Workload", cell: (each) => each.workload },
            { name: "Class", cell: (each) => <Turned from={each.before?.qosClass ?? null} to={each.after?.qosClass ?? null} show={(value) => <Chip qosClass={String(value)} />} /> },
            { name: "Pods", number: true, cell: (each) => <Turned from={each.before?.pods ?? null} to={each.after?.pods ?? null} /> },
            ...(view.workloads.some((each) => (each.before?.neverRan || each.after?.neverRan) ?? 0) ? [{ name: "Never ran", number: true, cell: (each: ComparedWorkload) => <Turned from={each.before?.neverRan ?? null} to={each.after?.neverRan ?? null} /> }] : []),
            { name: "Killed", number: true, cell: (each) => <Turned from={each.before?.oomKills ?? null} to={each.after?.oomKills ?? null} /> },
            { name: "Evicted", number: true, cell: (each) => <Turned from={each.before?.evictions ?? null} to={each.after?.evictions ?? null} /> },
            { name: "Restarts", number: true, cell: (each) => <Turned from={each.before?.restarts ?? null} to={each.after?.restarts ?? null} /> },
            { name: "Unaffected", number: true, cell: (each) => <Turned from={each.before?.untouched ?? null} to={each.after?.untouched ?? null} /> },
            { name: "Downtime", number: true, cell: (each) => <Turned from={each.before?.downtimeUs ?? null} to={each.after?.downtimeUs ?? null} show={(value) => duration(Number(value))} /> },
            ...(view.workloads.some((each) => (each.before?.throttledUs || each.after?.throttledUs) ?? 0) ? [{ name: "Short of CPU", number: true, cell: (each: ComparedWorkload) => <Turned from={each.before?.throttledUs ?? null} to={each.after?.throttledUs ?? null} show={(value) => duration(Number(value))} /> }] : []),
          ]}
        />
      </Card>
    </Page>
  );
}

/** Both runs at the node of the first victim and over the same time, so that they line up. */
function beside(runs: readonly RunView[]): (State | null)[] {
  const hit = runs.flatMap((run) => run.kills.map((kill) => kill.node))[0];
  const looks = runs.map((run) => {
    const node = run.nodes.find((each) => each.name === hit) ?? run.nodes[0];
    return node === undefined ? null : new State(run, node);
  });
  const ends = looks.flatMap((look) => (look === null || look.kills.length === 0 ? [] : [look.now.toUs]));
  if (ends.length > 0) for (const look of looks) look?.change({ fromUs: 0, toUs: Math.min(Math.max(...ends), look.run.endUs) });
  return looks;
}

function Side({ title, run, look, id, only }: { title: string; run: RunView; look: State | null; id: string; only: ReadonlySet<number | null> }) {
  const node = look?.now.node;
  const make = useCallback(() => {
    if (look === null) return [];
    const place = h("div", { class: "charts" });
    new Charts(look, place);
    return [place];
  }, [look]);
  const own = run.kills.map((_, index) => index).filter((index) => only.has(index));
  return (
    <section class="card" aria-label={`${title}: ${run.name}`}>
      <div class="card-head">
        <h2>{`${title}: ${plural(run.summary.oomKills + run.summary.evictions, "victim")}`}</h2>
        <a href={href("run", [id])}>Full run</a>
      </div>
      <p class="quiet">{`${node?.name ?? "no node"}${run.nodes.length > 1 ? ` of ${plural(run.nodes.length, "node")}` : ""}${own.length > 0 ? `; only here: ${own.map((index) => index + 1).join(", ")}` : ""}`}</p>
      <Dom make={make} />
    </section>
  );
}

function Death({ kill }: { kill: Kill | undefined }) {
  const make = useCallback(() => (kill === undefined ? [] : [h("span", { class: "end" }, icon(kill.by), `${time(kill.timeUs, 1e5)}: ${kill.cause}`)]), [kill]);
  return kill === undefined ? <>{NONE}</> : <Dom make={make} />;
}

/** The old and the new value, if they differ. */
function Turned<T extends string | number>({ from, to, show = (value) => (typeof value === "number" ? count(value) : value) }: { from: T | null; to: T | null; show?: (value: T) => preact.ComponentChildren }) {
  const shown = (value: T | null) => (value === null ? NONE : show(value));
  if (from === to) return <>{shown(to)}</>;
  return (
    <>
      <del>{shown(from)}</del> → <b>{shown(to)}</b>
    </>
  );
}
